//! The command line.

mod answer;
mod commands;
mod compare;
mod deadlock;
mod drawing;
mod estimate;
mod explain;
mod export;
mod forward;
mod htsim;
mod import;
mod interrupt;
mod ledger;
mod listing;
mod ns3;
mod place;
mod planned;
mod progress;
mod reference;
mod shell;
mod slurm;
mod store;
mod studio;
mod sweep;
mod theory;
mod traffic;
mod usage;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// A laboratory for flow control in lossless data-centre fabrics.
#[derive(Parser)]
#[command(version = env!("TAILWATER_VERSION"), long_version = shell::version(), about, max_term_width = 100)]
#[command(after_help = usage::DOCUMENTATION)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario and write a folder of results.
    Run {
        /// The scenario file.
        scenario: PathBuf,
        /// Override a key, such as `switch.buffer=4MB` or `scheme.preset=hpcc`; may be given several times.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
        /// Where the results go [default: results/NAME-OF-THE-FILE].
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
        /// Keep a recording.bin of what every port did, frame by frame.
        #[arg(long)]
        record: bool,
        /// How long a frame of the recording is to begin with, such as 1us [default: what suits the run]. Implies --record.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        record_every: Option<String>,
        /// Record only what is after this instant, in frames of 100ns: for a closer look at a window that ends with `stop`. Implies --record.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        record_from: Option<String>,
        /// Write what is recorded so far to this file now and then, for who watches the run while it goes on. Implies --record.
        #[arg(long, value_name = "FILE")]
        record_live: Option<PathBuf>,
        /// Skip what is steady, as long as the error that is measured stays within this share, such as `1%`. The result says so.
        #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = forward::share)]
        within: Option<forward::Share>,
        /// Write no report.html and no figures.
        #[arg(long)]
        no_report: bool,
        /// How many threads [default: as many as there are cores]. The results are the same.
        #[arg(long, value_name = "N", value_parser = commands::from_one)]
        threads: Option<std::num::NonZeroUsize>,
        /// Show no progress and print nothing but problems.
        #[arg(long, short)]
        quiet: bool,
        #[command(flatten)]
        reporting: progress::Reporting,
    },
    /// Estimate the completion times of a scenario in seconds instead of simulating it, and write a folder of results that says how far off they are.
    Estimate {
        /// The scenario file.
        scenario: PathBuf,
        #[command(flatten)]
        how: estimate::How,
        /// Override a key, as with `run`.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
        /// Where the results go [default: results/NAME-OF-THE-FILE-estimate].
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
        /// Write no report.html and no figures.
        #[arg(long)]
        no_report: bool,
        /// Show no progress and print nothing but problems.
        #[arg(long, short)]
        quiet: bool,
        #[command(flatten)]
        reporting: progress::Reporting,
    },
    /// Read a scenario, say what it means, and run nothing.
    Check {
        /// The scenario file; `-` for standard input.
        scenario: PathBuf,
        /// Override a key, as with `run`.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
        /// Answer in JSON, for programs: the same with the fabric's nodes and ports, or the problems with their places.
        #[arg(long)]
        json: bool,
    },
    /// Run a scenario with several schemes, values and seeds, and compare them in a table.
    Compare(compare::Arguments),
    /// Do the runs of a sweep's file, here or on a cluster, together with any number of other processes.
    Sweep(Box<sweep::Arguments>),
    /// Look after a store of runs.
    Store {
        /// What is to be done.
        #[command(subcommand)]
        what: store::What,
    },
    /// Say whether links can come to wait for one another in a cycle, and where; nothing is run.
    Deadlock(deadlock::Arguments),
    /// Draw folders of results: a page of one, or of several side by side, and its figures as images.
    Report {
        /// Folders of results, as `run` writes them, or of a store.
        #[arg(required = true)]
        folders: Vec<PathBuf>,
        /// Where report.html and the figures go [default: the folder itself, or results/report].
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
    /// Write a table of results, such as the flows of a run or of a whole comparison, as CSV.
    Export(export::Arguments),
    /// Say why flows waited: who stopped whom, and the root of it.
    Explain(explain::Arguments),
    /// Write the flows of a scenario, in order of start, and run nothing.
    Traffic {
        /// The scenario file.
        scenario: PathBuf,
        /// Override a key, as with `run`.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
        /// Where the flows go [default: standard output].
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// How they are written.
        #[arg(long, value_enum, default_value_t = traffic::Format::Csv)]
        format: traffic::Format,
        /// Print a table of the groups of flows instead: how much was drawn, and how much was asked for.
        #[arg(long)]
        describe: bool,
    },
    /// Run the files of the HPCC authors' ns-3 simulator or of one that descends from it: the configuration and what it names, with its results.
    ///
    /// Paths in the configuration are relative to the working directory, as in that simulator. Which one it is is told by its keys.
    Ns3(Box<ns3::Arguments>),
    /// Run the command line of the Ultra Ethernet group's simulator (uet-htsim, `htsim_uec`): its options and files, and what it prints of flows.
    ///
    /// Paths are relative to the working directory, as in that simulator.
    Htsim(htsim::Arguments),
    /// Turn files of another simulator into a scenario.
    Import {
        /// Whose.
        #[command(subcommand)]
        from: import::From,
    },
    /// List the schemes and presets with their parameters and defaults, or tell about one.
    Schemes {
        /// Only those of this name, with the paper, the presets that use it, and what these set.
        name: Option<String>,
    },
    /// Closed forms of the papers, with numbers put in.
    Theory {
        /// Which.
        #[command(subcommand)]
        theory: theory::Theory,
    },
    /// List the topologies with their parameters and defaults.
    Topologies,
    /// Print the JSON Schema of scenario files, with which editors complete and check them.
    Schema,
    /// List what the papers claim, as experiments, with the state of each.
    Claims(ledger::Claims),
    /// Run experiments by name and say whether what the papers claim holds.
    Reproduce {
        /// Ids such as bfc/fig4, papers such as bfc, or experiment files of your own.
        #[arg(required_unless_present = "all", value_name = "ID")]
        names: Vec<String>,
        /// Every experiment.
        #[arg(long, conflicts_with = "names")]
        all: bool,
        /// Write results that are to be published, too: verdict and figures of each row [default folder: published].
        #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true, default_missing_value = ::ledger::published::FOLDER)]
        publish: Option<PathBuf>,
        #[command(flatten)]
        how: ledger::How,
    },
    /// Run every scheme that can on each fabric against the papers' traffic and collectives, and rank them on one page.
    League(ledger::How),
    /// Open a web page on this machine in which experiments are found, run, watched and compared.
    Studio(studio::Arguments),
    /// Print a script with which a shell completes commands and options.
    Completions {
        /// Whose.
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one for each command.
    Man {
        /// The folder, such as ~/.local/share/man/man1; made if it does not exist.
        folder: PathBuf,
    },
    /// Answer a question about a folder of results as JSON: how the studio reads what may be damaged.
    #[command(hide = true)]
    Ask {
        /// What: `flows`, `why` or `stops`.
        what: String,
        /// The folder.
        folder: PathBuf,
        /// Which, in JSON.
        query: String,
    },
    /// Measure packet-hops per second on this machine, with the floor beside it.
    Bench {
        /// Numbers of hosts.
        #[arg(long, value_delimiter = ',', default_values_t = [64, 128, 512, 1024])]
        hosts: Vec<u32>,
        /// Presets, as `tailwater schemes` lists them.
        #[arg(long, value_delimiter = ',', default_values_t = ["dcqcn+win".to_string(), "hpcc".to_string()])]
        presets: Vec<String>,
        /// Simulated time during which messages start.
        #[arg(long, default_value = "1ms", allow_hyphen_values = true)]
        duration: String,
        /// Share of the host links that the messages take.
        #[arg(long, value_name = "SHARE", default_value_t = 0.3, allow_hyphen_values = true)]
        load: f64,
        /// How many threads each run may use.
        #[arg(long, value_name = "N", default_value = "1", value_parser = commands::from_one)]
        threads: std::num::NonZeroUsize,
        /// How many blocks a fabric is run in, 1 for the order of time [default: node by node, unless links are short].
        #[arg(long, value_name = "N", value_parser = commands::from_one)]
        blocks: Option<std::num::NonZeroUsize>,
        /// Print what the shards of a run exchange instead: how often, how much, and how far ahead each runs alone; and how fast it would be on so
        /// many --cores.
        #[arg(long)]
        exchange: bool,
        /// With --exchange: cores for which the speed-up is computed. Each shard's time is measured on one core, one after the other.
        #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [8, 32, 64], value_parser = clap::value_parser!(u16).range(2..=1024))]
        cores: Vec<u16>,
        /// Compare runs that skip what is steady, as far as this error allows, with those that do not instead: how much faster they are, and how far off.
        #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = forward::share, conflicts_with = "exchange")]
        within: Option<forward::Share>,
        /// With --within: what is run: ring, halving-doubling, all-to-all, long, permutation, websearch or incast.
        #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', default_values_t = ["ring".to_string(), "long".to_string()], value_parser = forward::traffic)]
        traffic: Vec<String>,
        /// With --within: bytes that each host has to reduce or to send, or that each flow has.
        #[arg(long, value_name = "SIZE", default_value = "64MB")]
        size: String,
    },
}

/// The whole program, with what the registry holds.
pub(crate) fn main() -> ExitCode {
    report::pages::drawn_by(env!("TAILWATER_VERSION"));
    let result = match usage::parse().command {
        Command::Run {
            scenario,
            mut sets,
            out,
            record,
            record_every,
            record_from,
            record_live,
            within,
            no_report,
            threads,
            quiet,
            reporting,
        } => {
            reporting.begin();
            let record = commands::Record { wanted: record, every: record_every, from: record_from, live: record_live };
            let options: Vec<_> = within.iter().map(|share| ("within", share.to_string())).collect();
            let command = commands::command("run", &scenario, &options, &sets);
            sets.extend(within.as_ref().map(forward::Share::set));
            commands::run(&scenario, &sets, out, &record, !no_report, threads, quiet, &command)
        }
        Command::Estimate { scenario, how, sets, out, no_report, quiet, reporting } => {
            reporting.begin();
            estimate::estimate(&scenario, &how, sets, out, !no_report, quiet)
        }
        Command::Report { folders, out } => drawing::report(&folders, out),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Export(arguments) => export::export(&arguments),
        Command::Check { scenario, sets, json } => commands::check(&scenario, &sets, json),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Sweep(arguments) => sweep::sweep(&arguments),
        Command::Store { what } => store::store(&what),
        Command::Deadlock(arguments) => deadlock::deadlock(&arguments),
        Command::Traffic { scenario, sets, out, format, describe } => {
            traffic::traffic(&scenario, &sets, out, format, describe)
        }
        Command::Ns3(arguments) if arguments.keys => listing::ns3_keys(),
        Command::Ns3(arguments) => ns3::ns3(*arguments),
        Command::Htsim(arguments) if arguments.options => htsim::options(),
        Command::Htsim(arguments) => htsim::htsim(arguments),
        Command::Import { from } => import::import(&from),
        Command::Schemes { name } => listing::schemes(name.as_deref()),
        Command::Theory { theory } => theory::theory(&theory),
        Command::Topologies => listing::topologies(),
        Command::Schema => listing::schema(),
        Command::Claims(arguments) => ledger::claims(&arguments),
        Command::Reproduce { names, all, publish, how } => ledger::reproduce(&names, all, publish.as_deref(), &how),
        Command::League(how) => ledger::league(&how),
        Command::Studio(arguments) => studio::studio(arguments),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man { folder } => shell::man(&folder),
        Command::Ask { what, folder, query } => {
            commands::printed(commands::say(::studio::ask(&what, &folder, &query).to_string()))
        }
        Command::Bench { hosts, presets, within: Some(within), traffic, size, .. } => {
            forward::bench(&hosts, &presets, &traffic, &size, &within)
        }
        Command::Bench { hosts, presets, duration, load, threads, blocks, exchange, cores, .. } => {
            let threads = (threads.get(), blocks.map(std::num::NonZeroUsize::get));
            let cores: Vec<usize> = cores.into_iter().map(usize::from).collect();
            commands::bench(&hosts, &presets, &duration, load, threads, (exchange, &cores))
        }
    };
    match result {
        Ok(code) => code,
        Err(problem) => usage::refuse(&[problem]),
    }
}
