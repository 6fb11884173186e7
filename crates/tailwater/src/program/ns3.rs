//! `tailwater ns3`.

use crate::program::commands::{BROKEN, from_one, printed, say, threads_or_all};
use crate::program::progress::{self, Progress};

use files::problem::Problem;
use interop::ns3::forks::powertcp::workload::Workload;
use interop::ns3::forks::powertcp::{self, Choices, Program};
use interop::ns3::{Options, output};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// What the command takes.
#[derive(clap::Args)]
pub struct Arguments {
    /// Its configuration file (config.txt).
    #[arg(required_unless_present = "keys")]
    config: Option<PathBuf>,
    /// List the configurations' keys, what each means and whether it is honoured.
    #[arg(long)]
    pub keys: bool,
    /// The topology file, in place of TOPOLOGY_FILE; SimAI has it on its command line, too.
    #[arg(long, short = 'n', value_name = "FILE")]
    topology: Option<PathBuf>,
    /// The flow file, in place of FLOW_FILE.
    #[arg(long, value_name = "FILE")]
    flows: Option<PathBuf>,
    /// The folder of the results, in place of the ones that the configuration names.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Which of two events at the same instant comes first: as in that simulator, whose bytes come out, or by our own rule, which several
    /// threads can keep.
    #[arg(long, value_enum, default_value_t = Order::Reference)]
    order: Order,
    /// How many threads in our own order [default: as many as there are cores]. The results are the same.
    #[arg(long, value_name = "N", value_parser = from_one)]
    threads: Option<NonZeroUsize>,
    /// Show no progress and print nothing but problems.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    datacenter: Datacenter,
}

/// The order of events at the same instant in a run of another simulator's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// That simulator's.
    Reference,
    /// Ours.
    Ours,
}

/// Programs of ns3-datacenter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Printing {
    /// powertcp-evaluation-burst: throughput and queues of the first ToR's ports.
    Burst,
    /// powertcp-evaluation-fairness: throughput of the senders.
    Fairness,
    /// powertcp-evaluation-workload: completion times; flows are drawn.
    Workload,
}

/// Options of ns3-datacenter's programs, by their names there.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of ns3-datacenter (PowerTCP), by their names there")]
struct Datacenter {
    /// Print what that program prints; `workload` draws its flows.
    #[arg(long, value_enum)]
    program: Option<Printing>,
    /// What goes before CC_MODE.
    #[arg(long, value_name = "CC_MODE")]
    algorithm: Option<u64>,
    /// Whether CC_MODE 3 is PowerTCP, which it is there if nothing is said.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = flag)]
    wien: Option<bool>,
    /// Whether CC_MODE 3 is θ-PowerTCP.
    #[arg(long = "delayWien", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = flag)]
    delay_wien: Option<bool>,
    /// What goes before HAS_WIN and VAR_WIN.
    #[arg(long = "windowCheck", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = flag)]
    window_check: Option<bool>,
    /// Of the workload program: the file of sizes and shares, such as websearch.txt.
    #[arg(long = "cdfFileName", value_name = "FILE")]
    sizes: Option<PathBuf>,
    /// Of the workload program: the load of links between ToRs and the next switches [default: 0.2].
    #[arg(long, value_name = "SHARE")]
    load: Option<f64>,
    /// Of the workload program: when flows begin, in seconds [default: 0.1].
    #[arg(long = "START_TIME", value_name = "S")]
    start: Option<f64>,
    /// Of the workload program: when the run ends, in seconds [default: 6].
    #[arg(long = "END_TIME", value_name = "S")]
    end: Option<f64>,
    /// Of the workload program: when no more flows begin, in seconds [default: 5].
    #[arg(long = "FLOW_LAUNCH_END_TIME", value_name = "S")]
    launch_end: Option<f64>,
    /// Of the workload program: hosts of a ToR [default: 32].
    #[arg(long = "SERVER_COUNT", value_name = "N")]
    servers: Option<u32>,
    /// Of the workload program: ToRs whose hosts send [default: 2].
    #[arg(long = "LEAF_COUNT", value_name = "N")]
    leaves: Option<u32>,
    /// Of the workload program: switches above a ToR [default: 2].
    #[arg(long = "SPINE_COUNT", value_name = "N")]
    spines: Option<u32>,
    /// Of the workload program: what a host's link carries, in Gbit/s [default: 25].
    #[arg(long = "LEAF_SERVER_CAPACITY", value_name = "GBPS")]
    server_gbps: Option<u64>,
    /// Of the workload program: what a link above a ToR carries, in Gbit/s [default: 100].
    #[arg(long = "SPINE_LEAF_CAPACITY", value_name = "GBPS")]
    spine_gbps: Option<u64>,
    /// Of the workload program: bytes that a request asks for; 0 for no requests [default: 1000000].
    #[arg(long, value_name = "BYTES")]
    request: Option<u32>,
    /// Of the workload program: requests of a host in a second [default: 1].
    #[arg(long = "queryRequestRate", value_name = "RATE")]
    request_rate: Option<f64>,
    /// Of the workload program: how many hosts answer a request [default: 5].
    #[arg(long, value_name = "N")]
    incast: Option<u32>,
    /// Of the workload program: the seed [default: 7].
    #[arg(long = "randomSeed", value_name = "N")]
    seed: Option<u32>,
}

/// A yes or no as ns-3's command line takes it.
fn flag(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" | "t" => Ok(true),
        "false" | "0" | "f" => Ok(false),
        _ => Err("write true or false, or 1 or 0".into()),
    }
}

impl Datacenter {
    fn choices(self) -> Result<Choices, Problem> {
        let drawn = self.draws();
        let workload = match (self.program, self.sizes) {
            (Some(Printing::Workload), None) => {
                let message = "the workload program needs the file that sizes of flows are drawn from";
                return Err(
                    Problem::new("--cdfFileName", message).help("write for example --cdfFileName=websearch.txt")
                );
            }
            (Some(Printing::Workload), Some(sizes)) => {
                let own = Workload::default();
                Some(Workload {
                    sizes,
                    load: self.load.unwrap_or(own.load),
                    start_s: self.start.unwrap_or(own.start_s),
                    end_s: self.end.unwrap_or(own.end_s),
                    launch_end_s: self.launch_end.unwrap_or(own.launch_end_s),
                    servers: self.servers.unwrap_or(own.servers),
                    leaves: self.leaves.unwrap_or(own.leaves),
                    spines: self.spines.unwrap_or(own.spines),
                    server_gbps: self.server_gbps.unwrap_or(own.server_gbps),
                    spine_gbps: self.spine_gbps.unwrap_or(own.spine_gbps),
                    request: self.request.unwrap_or(own.request),
                    request_rate: self.request_rate.unwrap_or(own.request_rate),
                    incast: self.incast.unwrap_or(own.incast),
                    seed: self.seed.unwrap_or(own.seed),
                })
            }
            (_, _) if drawn => {
                let message = "options of the workload program need it to be chosen";
                return Err(Problem::new("--program", message).help("write --program=workload, or leave them out"));
            }
            _ => None,
        };
        Ok(Choices {
            wien: self.wien,
            delay_wien: self.delay_wien.unwrap_or(false),
            algorithm: self.algorithm,
            window_check: self.window_check,
            program: self.program.map(|program| match program {
                Printing::Burst => Program::Burst,
                Printing::Fairness => Program::Fairness,
                Printing::Workload => Program::Workload,
            }),
            workload,
        })
    }

    /// Whether any option of the workload program is given.
    fn draws(&self) -> bool {
        let numbers = [self.load, self.start, self.end, self.launch_end, self.request_rate];
        let counts = [self.servers, self.leaves, self.spines, self.request, self.incast, self.seed];
        self.sizes.is_some()
            || numbers.iter().any(Option::is_some)
            || counts.iter().any(Option::is_some)
            || self.server_gbps.is_some()
            || self.spine_gbps.is_some()
    }
}

/// `tailwater ns3`.
pub fn ns3(arguments: Arguments) -> Result<ExitCode, Problem> {
    let Arguments { config, topology, flows, out, order, threads, quiet, datacenter, .. } = arguments;
    let config = config.unwrap_or_default();
    if order == Order::Reference && threads.is_some_and(|threads| threads.get() > 1) {
        return Err(Problem::new("--threads", "the reference's order of events is that of one thread")
            .help("leave it out, or write --order ours too, for results that are not the reference's to the byte"));
    }
    let options = Options { topology, flows, out, datacenter: datacenter.choices()? };
    let inputs = interop::ns3::read_with(&config, options)?;
    if !quiet {
        inputs.notes.iter().for_each(|note| progress::note(&note.to_string()));
    }
    let mut translated = interop::ns3::translate::translate(&inputs)?;
    if let Some(folder) = &inputs.options.out {
        std::fs::create_dir_all(folder).map_err(|error| {
            Problem::new(folder.display().to_string(), format!("cannot be made: {error}"))
                .help("choose a folder that you may write to")
        })?;
    }
    inputs.check_outputs()?;
    if order == Order::Ours {
        translated = translated.in_our_order(&inputs.config, threads_or_all(threads))?;
        if !quiet {
            let place = config.display();
            progress::note(&format!("{place}: in our own order of ties: not the reference's bytes (docs/ns3.md)"));
        }
    }
    let graph = translated.setup.graph.clone();
    let longest = translated.longest_rtt();
    let flows = &translated.setup.flows;
    let (begin, until) = (flows.first().map(|f| f.start), flows.last().map(|f| f.start));
    let progress = Progress::new(begin.unwrap_or_default(), until.unwrap_or_default(), quiet);
    let start = Instant::now();
    let outcome = translated.run(&mut |now, hops| {
        progress.report(now, hops);
        true
    });
    progress.finish();
    let wall = start.elapsed();
    if !outcome.violations.is_empty() {
        outcome.violations.iter().for_each(|v| progress::broken(v));
        progress::complain(format_args!("error: this run is not a result; nothing is written"));
        return Ok(ExitCode::from(BROKEN));
    }
    inputs.write(&graph, &outcome)?;
    if quiet {
        return Ok(ExitCode::SUCCESS);
    }
    let lines = powertcp::printed::text(&inputs, &graph, &outcome, longest);
    printed(say(format!("{lines}{}{}\n", output::counts(&outcome), output::summary(&outcome, wall))))
}
