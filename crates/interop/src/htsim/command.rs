//! The command line of uet-htsim's program `htsim_uec`: its options, what each does here, and what they come to.
//!
//! Options are read from left to right, as there: of two that say different things the later one counts. An option that is not in [`OPTIONS`],
//! one that is refused, or a value that is none is a problem, and all of them are told at once.

use files::problem::{Cause, Problem};
use scenario::document::quoted;
use strsim::jaro_winkler;

/// What an option does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// What it does there.
    Honoured,
    /// It is accepted and changes nothing, for this reason.
    NoEffect(&'static str),
    /// Only this value is taken; this is why.
    Only(&'static str, &'static str),
    /// It is refused, for this reason.
    Refused(&'static str),
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name, with the dash.
    pub name: &'static str,
    /// What follows it.
    pub values: &'static [&'static str],
    /// What it says.
    pub meaning: &'static str,
    /// What stands if it is left out.
    pub default: Option<&'static str>,
    /// What it does here.
    pub effect: Effect,
}

const fn key(
    name: &'static str,
    values: &'static [&'static str],
    meaning: &'static str,
    default: Option<&'static str>,
    effect: Effect,
) -> Key {
    Key { name, values, meaning, default, effect }
}

const HONOURED: Effect = Effect::Honoured;
const UNLOGGED: Effect = Effect::NoEffect("its binary log of samples is not written; what flows do is printed");
const ADAPTIVE: Effect = Effect::NoEffect("it is about -strat's adaptive routing, which is refused");

/// Every option of that program.
pub const OPTIONS: &[Key] = &[
    key("-tm", &["FILE"], "the connection matrix", Some("standard input"), HONOURED),
    key("-topo", &["FILE"], "the topology", Some("a fat tree of as many hosts"), HONOURED),
    key("-nodes", &["N"], "hosts, as many as the matrix has", None, HONOURED),
    key("-tiers", &["N"], "tiers of the fat tree: 2 or 3", Some("3"), HONOURED),
    key(
        "-planes",
        &["N"],
        "planes, each with a port of every NIC",
        Some("1"),
        Effect::Only("1", "that program itself ends with more"),
    ),
    key("-linkspeed", &["MBPS"], "rate of the links", Some("100000"), HONOURED),
    key("-hop_latency", &["US"], "delay of a link", Some("1"), HONOURED),
    key("-switch_latency", &["US"], "delay of a switch", Some("0"), HONOURED),
    key("-end", &["US"], "when the run ends", Some("1000"), HONOURED),
    key("-seed", &["N"], "seed of all that is drawn, which is drawn differently here", Some("13"), HONOURED),
    key("-mtu", &["BYTES"], "bytes of a full packet with its headers of 64", Some("4150"), HONOURED),
    key("-q", &["PACKETS"], "full packets that a queue holds", Some("-queue_size_bdp_factor"), HONOURED),
    key(
        "-queue_size_bdp_factor",
        &["N"],
        "the same as a multiple of the bandwidth-delay product",
        Some("1, or 5 with -disable_trim"),
        HONOURED,
    ),
    key(
        "-ecn",
        &["LOW", "HIGH"],
        "packets of a queue from which on some and all packets are marked",
        Some("0.2 and 0.8 bandwidth-delay products"),
        HONOURED,
    ),
    key(
        "-queue_type",
        &["TYPE"],
        "the switches' queues",
        Some("composite"),
        Effect::Only("composite", "other queues of that program are not here"),
    ),
    key("-disable_trim", &[], "packets that find no room are dropped instead of trimmed", None, HONOURED),
    key("-trimsize", &["BYTES"], "bytes of a trimmed packet", Some("64"), HONOURED),
    key("-failed", &["N"], "so many links below the top run at a quarter of their rate", Some("0"), HONOURED),
    key("-paths", &["N"], "entropies of a flow", Some("64"), HONOURED),
    key(
        "-load_balancing_algo",
        &["NAME"],
        "bitmap, reps, oblivious or mixed; reps_legacy is refused: mixed recycles as it does",
        Some("mixed"),
        HONOURED,
    ),
    key("-sender_cc_only", &[], "control by the sender alone", None, HONOURED),
    key("-receiver_cc_only", &[], "control by the receiver's credits alone", None, HONOURED),
    key("-sender_cc", &[], "control by the sender", Some("on"), HONOURED),
    key("-receiver_cc", &[], "control by the receiver's credits", None, HONOURED),
    key(
        "-sender_cc_algo",
        &["NAME"],
        "the sender's control: nscc or constant; dctcp is refused: it is not here with this transport",
        Some("nscc"),
        HONOURED,
    ),
    key("-cwnd", &["PACKETS"], "the first window of a flow", Some("1.5 bandwidth-delay products"), HONOURED),
    key(
        "-target_q_delay",
        &["US"],
        "the delay in queues that NSCC aims at",
        Some("3/4 round trip, or 1 with -disable_trim"),
        HONOURED,
    ),
    key("-qa_gate", &["N"], "NSCC's quick adaptation needs losses of a 2^N-th of the window", Some("3"), HONOURED),
    key("-sack_threshold", &["BYTES"], "bytes after which a receiver acknowledges", Some("16384"), HONOURED),
    key(
        "-enable_accurate_base_rtt",
        &[],
        "each flow has the round trip of its own path as base",
        None,
        Effect::Refused("NSCC begins with the longest of the network here"),
    ),
    key(
        "-disable_base_rtt_update_on_nack",
        &[],
        "the base round trip is learnt from ACKs only",
        None,
        Effect::Refused("NSCC learns it from NACKs, too, here"),
    ),
    key(
        "-sleek",
        &[],
        "losses are found out by counting, without trimming",
        None,
        Effect::Refused("that heuristic is not here"),
    ),
    key(
        "-oversubscribed_cc",
        &[],
        "receivers slow down in oversubscribed fabrics",
        Some("on with -receiver_cc_only where the fabric is"),
        HONOURED,
    ),
    key("-force_disable_oversubscribed_cc", &[], "they do not", None, HONOURED),
    key("-Ai", &["SHARE"], "-oversubscribed_cc: additive increase", Some("0.01"), HONOURED),
    key("-Md", &["SHARE"], "-oversubscribed_cc: multiplicative decrease", Some("0.5"), HONOURED),
    key("-alpha", &["SHARE"], "-oversubscribed_cc: weight of the mean", Some("0.5"), HONOURED),
    key("-conn_reuse", &[], "lines of the matrix with one id are messages of one connection", None, HONOURED),
    key(
        "-strat",
        &["NAME"],
        "how switches choose among paths",
        Some("ecmp_host"),
        Effect::Only("ecmp_host", "switches hash a packet's entropy here, and choose in no other way"),
    ),
    key("-ar_sticky_delta", &["US"], "how long adaptive routing stays", Some("10"), ADAPTIVE),
    key("-ar_granularity", &["NAME"], "packet or flow", Some("packet"), ADAPTIVE),
    key("-ar_method", &["NAME"], "what adaptive routing looks at", None, ADAPTIVE),
    key(
        "-pcie",
        &["SHARE"],
        "the receiver's bus as a share of its link",
        None,
        Effect::Refused("a receiver's bus that is slower than its link is [[slow]] in a scenario"),
    ),
    key(
        "-host_queue_type",
        &["NAME"],
        "queues of hosts",
        Some("fair_prio"),
        Effect::Only("fair_prio", "NICs serve their flows in turns here"),
    ),
    key(
        "-log",
        &["WHAT"],
        "what is logged",
        Some("flow_events"),
        Effect::Only(
            "flow_events",
            "samples are not written in that program's format; `tailwater run --record` keeps all of them in ours",
        ),
    ),
    key("-logtime", &["MS"], "time between samples of the log", Some("0.25"), UNLOGGED),
    key("-logtime_us", &["US"], "the same in microseconds", None, UNLOGGED),
    key("-o", &["FILE"], "the log", Some("logout.dat"), UNLOGGED),
    key("-debug", &[], "print every step", None, Effect::NoEffect("its debugging lines are not printed")),
];

/// How a flow chooses its packets' entropies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancing {
    /// One after the other, in an order drawn anew in every round.
    Oblivious,
    /// The same without those that were marked or trimmed.
    Bitmap,
    /// Those of packets that came through unmarked.
    Reps,
    /// REPS, and the bitmap where it has none.
    Mixed,
}

/// What the sender's control is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// That of the Ultra Ethernet specification.
    Nscc,
    /// A window that never changes.
    Constant,
}

/// A command line, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// As it was given.
    pub words: Vec<String>,
    /// The matrix; standard input if there is none.
    pub matrix: Option<String>,
    /// The topology.
    pub topology: Option<String>,
    pub(super) nodes: Option<u64>,
    pub(super) tiers: u64,
    pub(super) mbps: u64,
    /// Times in picoseconds.
    pub(super) hop: u64,
    pub(super) switch: u64,
    /// The end of the run; none if there is no end.
    pub(super) end: Option<u64>,
    pub(super) seed: u64,
    pub(super) mtu: u64,
    pub(super) queue: Option<u64>,
    pub(super) factor: Option<u64>,
    pub(super) ecn: Option<(u64, u64)>,
    pub(super) trim: bool,
    pub(super) trim_size: u64,
    pub(super) failed: u64,
    pub(super) paths: u64,
    pub(super) balancing: Balancing,
    pub(super) by_sender: bool,
    pub(super) by_receiver: bool,
    pub(super) algorithm: Algorithm,
    pub(super) cwnd: Option<u64>,
    pub(super) target: Option<u64>,
    pub(super) gate: Option<u64>,
    pub(super) sack: u64,
    /// Whether receivers are asked to slow down in oversubscribed fabrics, or else do by themselves.
    pub(super) oversubscribed: bool,
    pub(super) by_itself: bool,
    /// Of that control: additive increase, multiplicative decrease, weight of the mean.
    pub(super) increase: f64,
    pub(super) decrease: f64,
    pub(super) weight: f64,
    pub(super) reuse: bool,
    /// What was given and changes nothing.
    pub notes: Vec<String>,
}

impl Default for Command {
    fn default() -> Command {
        Command {
            words: Vec::new(),
            matrix: None,
            topology: None,
            nodes: None,
            tiers: 3,
            mbps: 100_000,
            hop: 1_000_000,
            switch: 0,
            end: Some(1000 * PER_US),
            seed: 13,
            mtu: 4150,
            queue: None,
            factor: None,
            ecn: None,
            trim: true,
            trim_size: 64,
            failed: 0,
            paths: 64,
            balancing: Balancing::Mixed,
            by_sender: true,
            by_receiver: false,
            algorithm: Algorithm::Nscc,
            cwnd: None,
            target: None,
            gate: None,
            sack: 16_384,
            oversubscribed: false,
            by_itself: true,
            increase: 0.01,
            decrease: 0.5,
            weight: 0.5,
            reuse: false,
            notes: Vec::new(),
        }
    }
}

/// Picoseconds in a microsecond.
pub(super) const PER_US: u64 = 1_000_000;

/// The longest time of an option, ten seconds.
const MOST_US: f64 = 1e7;

/// An option with what followed it.
struct Given<'a> {
    key: &'static Key,
    values: Vec<&'a str>,
}

impl Given<'_> {
    fn problem(&self, message: impl Into<String>, help: impl Into<String>) -> Problem {
        Problem::new(self.key.name, message).help(help).cause(Cause::Value)
    }

    /// A whole number within limits, of that place.
    fn whole(&self, place: usize, least: u64, most: u64) -> Result<u64, Problem> {
        let word = self.values[place];
        let number = word.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| {
            let what = self.key.values[place];
            self.problem(
                format!("{what} is {}", quoted(word)),
                format!("write a whole number from {least} to {most} for {what}"),
            )
        })
    }

    /// Microseconds as picoseconds.
    fn us(&self) -> Result<u64, Problem> {
        let word = self.values[0];
        let time = word.parse::<f64>().ok().filter(|us| (0.0..=MOST_US).contains(us));
        time.map(|us| (us * PER_US as f64).round() as u64).ok_or_else(|| {
            self.problem(
                format!("{} is {}", self.key.values[0], quoted(word)),
                "write a number of microseconds from 0 to 10000000",
            )
        })
    }

    /// A part of one.
    fn share(&self, least: f64) -> Result<f64, Problem> {
        let word = self.values[0];
        let share = word.parse::<f64>().ok().filter(|share| (least..=1.0).contains(share));
        share.ok_or_else(|| {
            let what = self.key.values[0];
            self.problem(format!("{what} is {}", quoted(word)), format!("write a number from {least} to 1 for {what}"))
        })
    }

    fn one_of<T: Copy>(&self, known: &[(&str, T)]) -> Result<T, Problem> {
        let word = self.values[0];
        let found = known.iter().find(|(name, _)| *name == word);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            self.problem(format!("there is no {}", quoted(word)), format!("write one of {}", names.join(", ")))
        })
    }
}

impl Command {
    /// Reads a command line, or says all that is wrong with it.
    pub fn read(words: &[String]) -> Result<Command, Problem> {
        let mut command = Command { words: words.to_vec(), ..Command::default() };
        let mut wrong = Vec::new();
        let mut rest = words.iter().map(String::as_str);
        while let Some(word) = rest.next() {
            let Some(key) = OPTIONS.iter().find(|key| key.name == word) else {
                wrong.push(unknown(word));
                continue;
            };
            let values: Vec<&str> = rest.by_ref().take(key.values.len()).collect();
            if values.len() < key.values.len() {
                let line = [&[key.name], key.values].concat().join(" ");
                wrong.push(Problem::new(key.name, "the line ends behind it").help(format!("write {line}")));
                break;
            }
            wrong.extend(command.take(&Given { key, values }).err());
        }
        wrong.extend(command.misfits());
        Problem::all(wrong).map_or(Ok(command), Err)
    }

    fn take(&mut self, given: &Given<'_>) -> Result<(), Problem> {
        const MOST: u64 = 1 << 20;
        let name = given.key.name;
        match given.key.effect {
            Effect::Refused(why) => return Err(given.problem(format!("is refused: {why}"), "leave it out")),
            Effect::Only(only, why) if given.values[0] != only => {
                let message = format!("{} is refused: {why}", quoted(given.values[0]));
                return Err(given.problem(message, format!("write {name} {only}, or leave it out")));
            }
            Effect::NoEffect(why) => {
                self.notes.push(format!("{name} changes nothing: {why}"));
                return Ok(());
            }
            Effect::Only(..) | Effect::Honoured => {}
        }
        match name {
            "-tm" => self.matrix = Some(given.values[0].into()),
            "-topo" => self.topology = Some(given.values[0].into()),
            "-nodes" => self.nodes = Some(given.whole(0, 2, MOST)?),
            "-tiers" => self.tiers = given.whole(0, 2, 3)?,
            // Whole numbers, as they are read there; a fraction behind the point would be a fraction of a megabit.
            "-linkspeed" => self.mbps = given.whole(0, 1, 100_000_000)?,
            "-hop_latency" => self.hop = given.us()?,
            "-switch_latency" => self.switch = given.us()?,
            "-end" => self.end = Some(given.whole(0, 0, 10_000_000)? * PER_US).filter(|end| *end > 0),
            "-seed" => self.seed = given.whole(0, 0, i32::MAX as u64)?,
            "-mtu" => self.mtu = given.whole(0, HEADER + 1, HEADER + 9000)?,
            "-q" => self.queue = Some(given.whole(0, 1, 1_000_000)?),
            "-queue_size_bdp_factor" => self.factor = Some(given.whole(0, 1, 1000)?),
            "-ecn" => self.ecn = Some((given.whole(0, 0, 1_000_000)?, given.whole(1, 0, 1_000_000)?)),
            "-disable_trim" => self.trim = false,
            "-trimsize" => self.trim_size = given.whole(0, HEADER, 1000)?,
            "-failed" => self.failed = given.whole(0, 0, MOST)?,
            "-paths" => self.paths = given.whole(0, 1, 10_000)?,
            "-load_balancing_algo" => {
                self.balancing = given.one_of(&[
                    ("bitmap", Balancing::Bitmap),
                    ("reps", Balancing::Reps),
                    ("oblivious", Balancing::Oblivious),
                    ("mixed", Balancing::Mixed),
                ])?;
            }
            // Each takes back that receivers slow down, as there.
            "-sender_cc_only" => (self.by_sender, self.by_receiver, self.oversubscribed) = (true, false, false),
            "-receiver_cc_only" => (self.by_sender, self.by_receiver, self.oversubscribed) = (false, true, false),
            "-sender_cc" => (self.by_sender, self.oversubscribed) = (true, false),
            "-receiver_cc" => self.by_receiver = true,
            "-sender_cc_algo" => {
                self.by_sender = true;
                self.algorithm = given.one_of(&[("nscc", Algorithm::Nscc), ("constant", Algorithm::Constant)])?;
            }
            "-cwnd" => self.cwnd = Some(given.whole(0, 0, MOST)?).filter(|cwnd| *cwnd > 0),
            "-target_q_delay" => self.target = Some(given.us()?).filter(|target| *target > 0),
            "-qa_gate" => self.gate = Some(given.whole(0, 0, 16)?),
            "-sack_threshold" => self.sack = given.whole(0, 0, 1_000_000_000)?,
            "-oversubscribed_cc" => self.oversubscribed = true,
            "-force_disable_oversubscribed_cc" => (self.oversubscribed, self.by_itself) = (false, false),
            "-Ai" => self.increase = given.share(0.0001)?,
            "-Md" => self.decrease = given.share(0.0)?,
            "-alpha" => self.weight = given.share(0.001)?,
            "-conn_reuse" => self.reuse = true,
            _ => {}
        }
        Ok(())
    }

    /// What does not go together.
    fn misfits(&self) -> Vec<Problem> {
        let problem =
            |name: &str, message: String, help: String| Problem::new(name, message).help(help).cause(Cause::Value);
        let mut wrong = Vec::new();
        if self.trim_size > self.mtu {
            let message = format!("a trimmed packet of {} bytes is longer than a full one", self.trim_size);
            wrong.push(problem("-trimsize", message, format!("write {} or less", self.mtu)));
        }
        if let Some((low, high)) = self.ecn
            && low > high
        {
            let message = format!("LOW is {low}, above HIGH, which is {high}");
            wrong.push(problem("-ecn", message, format!("write -ecn {high} {low}")));
        }
        if let (Some((_, high)), Some(queue)) = (self.ecn, self.queue)
            && high > queue
        {
            let message = format!("HIGH is {high}, and a queue holds {queue}");
            wrong.push(problem("-ecn", message, format!("write -q {high} or more, or a lower HIGH")));
        }
        let most = u16::MAX as u64 - self.mtu;
        if self.sack > most {
            let message =
                format!("{} is more than that program counts: in 16 bits, past which a packet may take it", self.sack);
            wrong.push(problem("-sack_threshold", message, format!("write {most} or less")));
        }
        let masked = self.balancing != Balancing::Reps;
        if masked && !self.paths.is_power_of_two() {
            let message = format!("{} is no power of 2, of which -load_balancing_algo makes a mask", self.paths);
            wrong.push(problem("-paths", message, format!("write {}", self.paths.next_power_of_two())));
        }
        wrong
    }
}

/// Bytes of headers on a packet of data, and of an ACK.
pub(super) const HEADER: u64 = 64;

fn unknown(word: &str) -> Problem {
    let near = OPTIONS.iter().map(|key| (key.name, jaro_winkler(word, key.name))).max_by(|a, b| a.1.total_cmp(&b.1));
    let near = near.filter(|(_, score)| *score > 0.8).map(|(name, _)| name);
    let help = near.map_or("`tailwater htsim --options` lists them".into(), |name| format!("did you mean {name}?"));
    let message = match word.starts_with('-') {
        true => "there is no such option".to_string(),
        false => format!("{} belongs to no option", quoted(word)),
    };
    let file = if word.starts_with('-') { word } else { "--" };
    Problem::new(file, message).help(help).meant(near).cause(Cause::UnknownKey)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Command, Problem> {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        Command::read(&words)
    }

    #[test]
    fn the_later_of_two_options_counts_and_one_sided_control_takes_the_other_back() {
        let both = read("-sender_cc -receiver_cc").unwrap();
        assert!(both.by_sender && both.by_receiver);
        let receiver = read("-sender_cc_only -receiver_cc_only -end 5 -end 0").unwrap();
        assert!(!receiver.by_sender && receiver.by_receiver && receiver.end.is_none());
        assert!(read("-receiver_cc_only -sender_cc_algo nscc").unwrap().by_sender);
        let slower = |line: &str| read(line).map(|command| (command.oversubscribed, command.by_itself)).unwrap();
        assert_eq!(slower("-receiver_cc_only -oversubscribed_cc"), (true, true));
        assert_eq!(slower("-oversubscribed_cc -receiver_cc_only"), (false, true));
        assert_eq!(slower("-oversubscribed_cc -force_disable_oversubscribed_cc"), (false, false));
        let shares = read("-Ai 0.02 -Md 0 -alpha 1").unwrap();
        assert_eq!((shares.increase, shares.decrease, shares.weight), (0.02, 0.0, 1.0));
        assert!(read("-Ai 0").is_err() && read("-Md 1.5").is_err() && read("-alpha x").is_err());
        assert_eq!(read("").unwrap(), Command::default());
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once_each_with_its_option_and_a_remedy() {
        let problem = read("-q x -loadbalancing_algo reps -sleek -strat rr_ecmp -paths 6 -ecn 9 8 -end").unwrap_err();
        let told: Vec<(String, bool)> =
            problem.split().into_iter().map(|problem| (problem.file.clone(), problem.help.is_some())).collect();
        let names = ["-q", "-loadbalancing_algo", "--", "-sleek", "-strat", "-end", "-ecn", "-paths"];
        assert_eq!(told, names.map(|name| (name.to_string(), true)));
        assert!(read("-sack_threshold 61385").is_ok());
        let problem = read("-sack_threshold 61386").unwrap_err();
        assert!(problem.to_string().contains("write 61385 or less"), "{problem}");
    }

    #[test]
    fn options_without_effect_are_accepted_and_said() {
        let command = read("-o a.dat -logtime 0.1 -debug -log flow_events -ar_method pause").unwrap();
        assert_eq!(command.notes.len(), 4);
        assert!(read("-log sink").unwrap_err().help.as_deref().unwrap().contains("-log flow_events"));
    }

    #[test]
    fn times_may_have_fractions_and_numbers_have_limits() {
        assert_eq!(read("-hop_latency 0.6 -switch_latency 0.0005").map(|c| (c.hop, c.switch)).unwrap(), (600_000, 500));
        for line in ["-hop_latency -1", "-linkspeed 0", "-mtu 64", "-tiers 4", "-trimsize 63", "-nodes 1", "-seed -3"] {
            read(line).expect_err(line);
        }
        assert!(read("-mtu 500 -trimsize 900").is_err() && read("-q 10 -ecn 2 11").is_err());
    }

    #[test]
    fn every_option_is_known_once_and_has_its_sentence() {
        for (place, key) in OPTIONS.iter().enumerate() {
            assert!(OPTIONS[..place].iter().all(|other| other.name != key.name), "{}", key.name);
            assert!(!key.meaning.is_empty() && !key.meaning.ends_with('.'), "{}", key.name);
        }
    }
}
