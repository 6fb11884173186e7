//! The configuration file: keys and values.
//!
//! The tables of [`super::forks`] say of each key what it means, what it takes and whether it has an effect; the reader works from
//! the same tables.

pub mod key;

use std::collections::BTreeMap;
use std::path::PathBuf;

use engine::units::Rate;

use super::Options;
use super::balancing::{LbMode, Timing};
use super::forks::{self, Fork};
use super::tokens::{Token, Tokens};
use files::problem::{Cause, Problem};
use key::{Effect, Key, Value};

/// A configuration, checked: what it asks for can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// ENABLE_QCN: whether switches mark packets.
    pub enable_qcn: bool,
    /// USE_DYNAMIC_PFC_THRESHOLD; no effect.
    pub use_dynamic_pfc_threshold: bool,
    /// CLAMP_TARGET_RATE: whether every decrease of DCQCN lowers its target rate too.
    pub clamp_target_rate: bool,
    /// PAUSE_TIME in microseconds; no effect.
    pub pause_time_us: f64,
    /// DATA_RATE as written; no effect.
    pub data_rate: Option<String>,
    /// LINK_DELAY as written; no effect.
    pub link_delay: Option<String>,
    /// PACKET_PAYLOAD_SIZE in bytes.
    pub packet_payload_size: u32,
    /// L2_CHUNK_SIZE in bytes: where a sender goes back to with L2_BACK_TO_ZERO.
    pub l2_chunk_size: u32,
    /// L2_ACK_INTERVAL in bytes: how often a receiver acknowledges.
    pub l2_ack_interval: u32,
    /// L2_BACK_TO_ZERO: whether a loss repeats the whole chunk.
    pub l2_back_to_zero: bool,
    /// TOPOLOGY_FILE, as written.
    pub topology_file: PathBuf,
    /// FLOW_FILE, as written.
    pub flow_file: PathBuf,
    /// TRACE_FILE, as written.
    pub trace_file: Option<PathBuf>,
    /// TRACE_OUTPUT_FILE, as written.
    pub trace_output_file: Option<PathBuf>,
    /// FCT_OUTPUT_FILE, as written.
    pub fct_output_file: PathBuf,
    /// PFC_OUTPUT_FILE, as written.
    pub pfc_output_file: PathBuf,
    /// SIMULATOR_STOP_TIME in seconds.
    pub simulator_stop_time_s: f64,
    /// CC_MODE: the congestion control.
    pub cc_mode: CcMode,
    /// ALPHA_RESUME_INTERVAL in microseconds; the reference counts whole ones.
    pub alpha_resume_interval_us: f64,
    /// RATE_DECREASE_INTERVAL in microseconds; the reference counts whole ones.
    pub rate_decrease_interval_us: f64,
    /// RP_TIMER in microseconds; the reference counts whole ones.
    pub rp_timer_us: f64,
    /// EWMA_GAIN: the gain of DCQCN's alpha.
    pub ewma_gain: f64,
    /// FAST_RECOVERY_TIMES: the stages before DCQCN's additive increase.
    pub fast_recovery_times: u32,
    /// RATE_AI: the additive increase.
    pub rate_ai: Rate,
    /// RATE_HAI: the hyper increase.
    pub rate_hai: Rate,
    /// MIN_RATE: the least rate of a flow.
    pub min_rate: Rate,
    /// DCTCP_RATE_AI: the additive increase of DCTCP.
    pub dctcp_rate_ai: Rate,
    /// ERROR_RATE_PER_LINK: the probability that a link without its own loses a packet.
    pub error_rate_per_link: f64,
    /// HAS_WIN: whether a flow has a window.
    pub has_win: bool,
    /// GLOBAL_T: whether all flows take the largest round trip and window of all pairs.
    pub global_t: bool,
    /// MI_THRESH: the stages of additive increase before HPCC's next multiplicative one.
    pub mi_thresh: u32,
    /// VAR_WIN: whether the window shrinks with the rate.
    pub var_win: bool,
    /// FAST_REACT: whether HPCC reacts to every acknowledgement.
    pub fast_react: bool,
    /// U_TARGET: the utilisation that HPCC aims at.
    pub u_target: f64,
    /// INT_MULTI: the unit of the telemetry's counters.
    pub int_multi: u32,
    /// RATE_BOUND: whether the rate limits sending.
    pub rate_bound: bool,
    /// ACK_HIGH_PRIO: whether hosts send acknowledgements first.
    pub ack_high_prio: bool,
    /// LINK_DOWN: the link that fails.
    pub link_down: Option<LinkDown>,
    /// ENABLE_TRACE: whether a binary packet trace is written.
    pub enable_trace: bool,
    /// KMAX_MAP: from rates in bits per second to the queue in KB from which all packets are marked.
    pub kmax_map: BTreeMap<u64, u32>,
    /// KMIN_MAP: from rates in bits per second to the queue in KB from which some packets are marked.
    pub kmin_map: BTreeMap<u64, u32>,
    /// PMAX_MAP: from rates in bits per second to the probability of a mark just below KMAX.
    pub pmax_map: BTreeMap<u64, f64>,
    /// BUFFER_SIZE of a switch in MiB.
    pub buffer_size_mib: u32,
    /// QLEN_MON_FILE, as written.
    pub qlen_mon_file: Option<PathBuf>,
    /// QLEN_MON_START in nanoseconds. It can be beyond what a time holds.
    pub qlen_mon_start_ns: u64,
    /// QLEN_MON_END in nanoseconds. It can be beyond what a time holds.
    pub qlen_mon_end_ns: u64,
    /// MULTI_RATE: whether HPCC keeps a rate per hop.
    pub multi_rate: bool,
    /// SAMPLE_FEEDBACK: whether HPCC looks at some acknowledgements only.
    pub sample_feedback: bool,
    /// PINT_LOG_BASE: the base of HPCC-PINT's logarithms.
    pub pint_log_base: f64,
    /// PINT_PROB: the share of ACKs that HPCC-PINT acts on.
    pub pint_prob: f64,
    /// ENABLE_PFC of ConWeave's simulator: whether switches pause their neighbours.
    pub enable_pfc: bool,
    /// FLOWGEN_START_TIME of ConWeave's simulator in seconds: the origin of LINK_DOWN's time.
    pub flows_begin_s: f64,
    /// RANDOM_SEED of ConWeave's simulator.
    pub random_seed: u32,
    /// LB_MODE of ConWeave's simulator: the load balancing.
    pub lb_mode: LbMode,
    /// ENABLE_IRN of ConWeave's simulator: whether hosts recover from losses as IRN does.
    pub enable_irn: bool,
    /// CONWEAVE_… of its simulator.
    pub conweave: Timing,
    /// SW_MONITORING_INTERVAL of ConWeave's simulator in nanoseconds.
    pub monitor_every_ns: u64,
    /// What only configurations of Floodgate's simulator say.
    pub floodgate: forks::floodgate::Settings,
    /// The simulator whose configuration it is.
    pub fork: &'static Fork,
    file: String,
    /// Where each key was given.
    places: Vec<(&'static str, Problem)>,
}

impl Default for Config {
    /// The reference's defaults. Some of them cannot be run; [`parse`] says so where they are left.
    fn default() -> Config {
        Config {
            enable_qcn: true,
            use_dynamic_pfc_threshold: true,
            clamp_target_rate: false,
            pause_time_us: 5.0,
            data_rate: None,
            link_delay: None,
            packet_payload_size: 1000,
            l2_chunk_size: 0,
            l2_ack_interval: 0,
            l2_back_to_zero: false,
            topology_file: PathBuf::new(),
            flow_file: PathBuf::new(),
            trace_file: None,
            trace_output_file: None,
            fct_output_file: "fct.txt".into(),
            pfc_output_file: "pfc.txt".into(),
            simulator_stop_time_s: 3.01,
            cc_mode: CcMode::Dcqcn,
            alpha_resume_interval_us: 55.0,
            rate_decrease_interval_us: 4.0,
            rp_timer_us: 0.0,
            // The reference divides the integers 1 and 16.
            ewma_gain: 0.0,
            fast_recovery_times: 5,
            rate_ai: Rate(0),
            rate_hai: Rate(0),
            min_rate: Rate::from_mbps(100),
            dctcp_rate_ai: Rate::from_mbps(1000),
            error_rate_per_link: 0.0,
            has_win: true,
            global_t: true,
            mi_thresh: 5,
            var_win: false,
            fast_react: true,
            u_target: 0.95,
            int_multi: 1,
            rate_bound: true,
            ack_high_prio: false,
            link_down: None,
            enable_trace: true,
            kmax_map: BTreeMap::new(),
            kmin_map: BTreeMap::new(),
            pmax_map: BTreeMap::new(),
            buffer_size_mib: 16,
            qlen_mon_file: None,
            qlen_mon_start_ns: 2_000_000_000,
            qlen_mon_end_ns: 2_100_000_000,
            multi_rate: true,
            sample_feedback: false,
            pint_log_base: 1.05,
            pint_prob: 1.0,
            enable_pfc: true,
            flows_begin_s: 2.0,
            random_seed: 1,
            lb_mode: LbMode::Ecmp,
            enable_irn: false,
            conweave: Timing::default(),
            monitor_every_ns: 10_000,
            floodgate: forks::floodgate::Settings::default(),
            fork: &forks::hpcc::FORK,
            file: String::new(),
            places: Vec::new(),
        }
    }
}

/// The congestion controls of the reference that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CcMode {
    /// 0: every flow sends at line rate, up to its window.
    None,
    /// 1: DCQCN.
    Dcqcn,
    /// 3: HPCC.
    Hpcc,
    /// 7: TIMELY.
    Timely,
    /// 8: DCTCP.
    Dctcp,
    /// 10: HPCC-PINT.
    Pint,
    /// 3 in ns3-datacenter: PowerTCP.
    PowerTcp,
    /// 3 in ns3-datacenter with an option: θ-PowerTCP.
    ThetaPowerTcp,
}

impl CcMode {
    /// Its number in the configuration.
    pub fn number(self) -> u32 {
        match self {
            CcMode::None => 0,
            CcMode::Dcqcn => 1,
            CcMode::Hpcc | CcMode::PowerTcp | CcMode::ThetaPowerTcp => 3,
            CcMode::Timely => 7,
            CcMode::Dctcp => 8,
            CcMode::Pint => 10,
        }
    }

    /// The one with that number.
    pub(super) fn from_number(number: u64) -> Option<CcMode> {
        let modes = [CcMode::None, CcMode::Dcqcn, CcMode::Hpcc, CcMode::Timely, CcMode::Dctcp, CcMode::Pint];
        modes.into_iter().find(|mode| u64::from(mode.number()) == number)
    }
}

/// A link that fails during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkDown {
    /// When, in microseconds after second 2.
    pub time_us: u64,
    /// The node at one end.
    pub a: u32,
    /// The node at the other end.
    pub b: u32,
}

/// Reads a configuration and checks that it can be run.
///
/// `file` is its name, for problems only. Whose it is is told by its keys. The reference skips keys that it does not know and takes the last
/// of two values; both are refused here, since either is a slip. All that is wrong is said at once.
pub fn parse(file: &str, text: &str) -> Result<Config, Problem> {
    parse_with(file, text, &Options::default())
}

/// The same, with files that the command line names.
pub fn parse_with(file: &str, text: &str, options: &Options) -> Result<Config, Problem> {
    let fork = forks::told_by(Tokens::new(file, text).map(|token| token.text));
    let mut config = Config { file: file.to_owned(), fork, ..Config::default() };
    (fork.defaults)(&mut config);
    let mut tokens = Tokens::new(file, text);
    let (mut problems, mut previous) = (Vec::new(), None);
    while let Some(at) = tokens.next() {
        if at.text.starts_with('{') {
            problems.extend(explanation(fork, &mut tokens, at));
            continue;
        }
        let Some(key) = fork.key(at.text) else {
            problems.push(not_a_key(fork, file, at, previous));
            skip_value(fork, &mut tokens);
            continue;
        };
        previous = Some(key);
        if let Effect::Refused(reason) = key.effect {
            problems.push(at.problem(file, format!("{} is refused", key.name)).help(reason));
            skip_value(fork, &mut tokens);
            continue;
        }
        if let Some(line) = config.place(key.name).and_then(|place| place.line) {
            let message = format!("{} is given a second time; the first is on line {line}", key.name);
            problems.push(at.problem(file, message).help("keep one of the two"));
            skip_value(fork, &mut tokens);
            continue;
        }
        config.places.push((key.name, at.problem(file, "")));
        if let Err(problem) = (key.read)(&mut config, &mut Value { tokens: &mut tokens, at, key, fork }) {
            problems.push(problem.cause(Cause::Value));
            skip_value(fork, &mut tokens);
        }
    }
    let named = [
        (&options.topology, &mut config.topology_file, "TOPOLOGY_FILE", "--topology"),
        (&options.flows, &mut config.flow_file, "FLOW_FILE", "--flows"),
    ];
    for (path, slot, key, option) in named {
        if let Some(path) = path {
            *slot = path.clone();
            config.places.push((key, Problem::new(option, "")));
        }
    }
    if let Some(folder) = &options.out {
        let files = [&mut config.fct_output_file, &mut config.pfc_output_file];
        for file in files.into_iter().chain(&mut config.qlen_mon_file) {
            *file = folder.join(file.file_name().unwrap_or_default());
        }
    }
    problems.extend((fork.check)(&config));
    match Problem::all(problems) {
        Some(problem) => Err(problem),
        None => config.check().map(|()| config),
    }
}

/// Passes over an explanation in braces, which some examples have after their values. The reference takes its words for keys that it does
/// not know; one that it knows is a problem.
fn explanation(fork: &Fork, tokens: &mut Tokens<'_>, first: Token<'_>) -> Option<Problem> {
    let (mut word, mut problem) = (first, None);
    loop {
        if problem.is_none() && fork.key(word.text).is_some() {
            let message = format!("{} stands in an explanation, and the reference reads it as a key", word.text);
            let remedy = "write the explanation without that word";
            problem = Some(word.problem(tokens.file(), message).help(remedy));
        }
        if word.text.ends_with('}') {
            return problem;
        }
        let Some(next) = tokens.next() else { return problem };
        word = next;
    }
}

/// Passes over the value of a key that was not read.
fn skip_value(fork: &Fork, tokens: &mut Tokens<'_>) {
    let is_value = |token: &Token<'_>| fork.key(token.text).is_none() && !looks_like_a_key(token.text);
    while tokens.peek().is_some_and(|token| is_value(&token) && !token.text.starts_with('{')) {
        tokens.next();
    }
}

/// Keys are words of capitals, joined by underscores.
fn looks_like_a_key(word: &str) -> bool {
    word.len() > 2
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// What to say of a word that stands where a key should.
fn not_a_key(fork: &Fork, file: &str, at: Token<'_>, previous: Option<&Key>) -> Problem {
    if at.text.starts_with('#') || at.text.starts_with("//") {
        let message = format!("{} is not a key", at.quoted());
        return at.problem(file, message).help("this format has no comments; remove this one");
    }
    if let Some(previous) = previous
        && at.text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
    {
        let Key { name, form, .. } = previous;
        let message = format!("{} stands where a key should, after the value of {name}", at.quoted());
        return at.problem(file, message).help(format!("{name} takes {form}"));
    }
    let problem = at.problem(file, format!("unknown key {}", at.quoted())).cause(Cause::UnknownKey);
    if let Some(other) = forks::other_with(fork, at.text) {
        let (home, this) = (other.home, fork.name);
        return problem.help(format!("it is a key of {home}; by its other keys this configuration is of {this}"));
    }
    match nearest_key(fork, at.text) {
        Some(name) => problem.meant(Some(name)).help(format!("did you mean {name}?")),
        None => problem.help(format!(
            "{} skips it, and no other simulator of the family has it; `tailwater ns3 --keys` lists their keys",
            fork.name
        )),
    }
}

/// The key that `text` is most likely a slip of.
fn nearest_key(fork: &Fork, text: &str) -> Option<&'static str> {
    // No key is near what is far longer than all of them.
    let text: String = text.chars().take(64).map(|c| c.to_ascii_uppercase()).collect();
    let allowed = (text.chars().count() / 3).clamp(1, 4);
    let distances = fork.all_keys().map(|key| (strsim::levenshtein(&text, key.name), key.name));
    distances.filter(|(distance, _)| *distance <= allowed).min().map(|(_, name)| name)
}

impl Config {
    fn place(&self, key: &str) -> Option<&Problem> {
        self.places.iter().find(|(name, _)| *name == key).map(|(_, place)| place)
    }

    /// Whether the file gives this key.
    pub fn is_given(&self, key: &str) -> bool {
        self.place(key).is_some()
    }

    /// The monitors that it names files for, and that are not written.
    pub fn unwritten(&self) -> Option<Problem> {
        let named = |name: &&str| self.fork.key(name).is_some_and(|key| key.effect == Effect::Unwritten);
        let names: Vec<&str> = self.places.iter().map(|(name, _)| *name).filter(named).collect();
        let first = names.first()?;
        let message = format!("{}: what is monitored there is not written", names.join(", "));
        Some(self.problem(first, message).help("the run itself is the same; completion times and pauses are written"))
    }

    /// The configuration's own file, for messages.
    pub fn name(&self) -> &str {
        &self.file
    }

    /// A problem with the value of `key`, at the line that gives it.
    pub fn problem(&self, key: &str, message: impl Into<String>) -> Problem {
        match self.place(key) {
            Some(place) => place.clone().saying(message),
            None => Problem::new(self.file.clone(), message),
        }
    }

    /// The thresholds of marking for links of this rate: KMIN and KMAX in KB, and PMAX.
    ///
    /// The error says of each map that lacks the rate what to write.
    pub fn ecn_for(&self, rate_bps: u64) -> Result<(u32, u32, f64), Vec<Lack>> {
        let (kmin, kmax) = (self.kmin_map.get(&rate_bps), self.kmax_map.get(&rate_bps));
        if let (Some(kmin), Some(kmax), Some(pmax)) = (kmin, kmax, self.pmax_map.get(&rate_bps)) {
            return Ok((*kmin, *kmax, *pmax));
        }
        let lacking = [
            lacks("KMIN_MAP", &self.kmin_map, rate_bps, "<KB>"),
            lacks("KMAX_MAP", &self.kmax_map, rate_bps, "<KB>"),
            lacks("PMAX_MAP", &self.pmax_map, rate_bps, "<probability>"),
        ];
        Err(lacking.into_iter().flatten().collect())
    }

    /// Refuses what each value allows and their combination does not.
    pub(super) fn check(&self) -> Result<(), Problem> {
        self.require("TOPOLOGY_FILE", "")?;
        if self.floodgate.from_file {
            self.require("FLOW_FILE", "")?;
        }
        self.require("L2_ACK_INTERVAL", "the reference takes 0 where it is not given, and then no flow ends")?;
        if self.l2_back_to_zero && self.l2_chunk_size == 0 {
            return Err(self
                .problem("L2_BACK_TO_ZERO", "L2_BACK_TO_ZERO needs a chunk to go back in, and L2_CHUNK_SIZE is 0")
                .help("write for example L2_CHUNK_SIZE 4000, or L2_BACK_TO_ZERO 0"));
        }
        let mode = self.cc_mode.number();
        if self.cc_mode == CcMode::Dcqcn {
            self.require("RP_TIMER", "CC_MODE 1 needs it, and the reference has no default")?;
            let timers = [
                ("RP_TIMER", self.rp_timer_us),
                ("ALPHA_RESUME_INTERVAL", self.alpha_resume_interval_us),
                ("RATE_DECREASE_INTERVAL", self.rate_decrease_interval_us),
            ];
            for (name, us) in timers {
                if us < 1.0 {
                    return Err(self
                        .problem(name, format!("{name} {us} is below 1, which CC_MODE 1 cannot run with"))
                        .help("the reference counts whole microseconds, and a timer of 0 never lets time pass"));
                }
            }
        }
        if matches!(self.cc_mode, CcMode::Dcqcn | CcMode::Hpcc | CcMode::Timely | CcMode::Pint) {
            for name in ["RATE_AI", "RATE_HAI"] {
                self.require(name, &format!("CC_MODE {mode} needs it, and the reference has no default"))?;
            }
        }
        if self.cc_mode == CcMode::Hpcc && !self.has_win {
            return Err(self
                .problem("HAS_WIN", "CC_MODE 3, HPCC, cannot run with HAS_WIN 0")
                .help("HPCC divides by the window; write HAS_WIN 1"));
        }
        for (rate, kmin) in &self.kmin_map {
            if let Some(kmax) = self.kmax_map.get(rate).filter(|kmax| *kmax < kmin) {
                return Err(self
                    .problem("KMIN_MAP", format!("KMIN {kmin} is above KMAX {kmax} at rate {rate}"))
                    .help("marks begin at KMIN and reach every packet at KMAX; write KMIN at most as large as KMAX"));
            }
        }
        Ok(())
    }

    fn require(&self, name: &str, why: &str) -> Result<(), Problem> {
        if self.is_given(name) {
            return Ok(());
        }
        let separator = if why.is_empty() { "" } else { "; " };
        let example = self.fork.key(name).map_or("", |key| key.example);
        Err(Problem::new(self.file.clone(), format!("{name} is missing"))
            .help(format!("write for example {name} {example}{separator}{why}")))
    }
}

/// A map without an entry for a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// What is wrong.
    pub message: String,
    /// What to write.
    pub help: String,
}

/// What to say if `map` lacks `rate`.
fn lacks<T: std::fmt::Display>(name: &str, map: &BTreeMap<u64, T>, rate: u64, value: &str) -> Option<Lack> {
    if map.contains_key(&rate) {
        return None;
    }
    let pairs: String = map.iter().map(|(rate, value)| format!("{rate} {value} ")).collect();
    let count = map.len() + 1;
    let speed = Rate(rate);
    Some(Lack {
        message: format!("{name} has no entry for {rate} b/s ({speed})"),
        help: format!("write {name} {count} {pairs}{rate} {value}"),
    })
}

#[cfg(test)]
mod tests;
