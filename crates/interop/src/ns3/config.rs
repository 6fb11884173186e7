//! The configuration file: keys and values.
//!
//! [`KEYS`] says of each key what it means, what it takes and whether it has an effect; the reader works from the same
//! table.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use engine::units::Rate;

use super::tokens::{MAX_SECONDS, Token, Tokens, Want};
use files::problem::Problem;

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
    /// PINT_LOG_BASE; no effect.
    pub pint_log_base: f64,
    /// PINT_PROB; no effect.
    pub pint_prob: f64,
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
}

impl CcMode {
    /// Its number in the configuration.
    pub fn number(self) -> u32 {
        match self {
            CcMode::None => 0,
            CcMode::Dcqcn => 1,
            CcMode::Hpcc => 3,
            CcMode::Timely => 7,
            CcMode::Dctcp => 8,
        }
    }

    fn from_number(number: u64) -> Option<CcMode> {
        let modes = [CcMode::None, CcMode::Dcqcn, CcMode::Hpcc, CcMode::Timely, CcMode::Dctcp];
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

/// What giving a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It does what it does in the reference.
    Honoured,
    /// It is accepted and changes nothing, for this reason.
    NoEffect(&'static str),
    /// It is refused whatever its value, for this reason.
    Refused(&'static str),
}

/// One key of the configuration.
#[derive(Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub form: &'static str,
    /// A value, as in a file.
    pub example: &'static str,
    /// Its value where it is not given.
    pub default: Option<&'static str>,
    /// What it means, in one line.
    pub meaning: &'static str,
    /// What giving it does.
    pub effect: Effect,
    read: fn(&mut Config, &mut Value<'_, '_>) -> Result<(), Problem>,
}

/// Finds a key by its name.
pub fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The value of a key that is being read.
struct Value<'t, 'a> {
    tokens: &'t mut Tokens<'a>,
    at: Token<'a>,
    key: &'static Key,
}

const ANY_32_BITS: RangeInclusive<u64> = 0..=u32::MAX as u64;
const ANY_64_BITS: RangeInclusive<u64> = 0..=u64::MAX;

impl<'a> Value<'_, 'a> {
    /// The next word, if it belongs to this key.
    fn word(&mut self) -> Option<Token<'a>> {
        match self.tokens.peek() {
            Some(token) if key(token.text).is_none() => self.tokens.next(),
            _ => None,
        }
    }

    fn token(&mut self) -> Result<Token<'a>, Problem> {
        self.word().ok_or_else(|| {
            let Key { name, form, .. } = self.key;
            self.at
                .problem(self.tokens.file(), format!("{name} has no value"))
                .help(format!("it takes {form}; {}", self.example("")))
        })
    }

    fn example(&self, why: &str) -> String {
        let separator = if why.is_empty() { "" } else { "; " };
        format!("write for example {} {}{separator}{why}", self.key.name, self.key.example)
    }

    fn parse<T>(
        &self,
        form: &str,
        why: &str,
        read: impl FnOnce(&Tokens<'a>, Want<'_>) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let help = self.example(why);
        read(self.tokens, Want { what: self.key.name, is: form, help: &help })
    }

    /// Reads a whole number; `why` says why others are refused.
    fn whole<T: TryFrom<u64>>(&mut self, slot: &mut T, range: RangeInclusive<u64>, why: &str) -> Result<(), Problem> {
        let token = self.token()?;
        let value = self.parse(self.key.form, why, |tokens, want| tokens.whole(token, want, range))?;
        // The ranges in the table fit the fields they are for.
        if let Ok(value) = T::try_from(value) {
            *slot = value;
        }
        Ok(())
    }

    /// Reads a number; `why` says why others are refused.
    fn number(&mut self, slot: &mut f64, allowed: impl Fn(f64) -> bool, why: &str) -> Result<(), Problem> {
        let token = self.token()?;
        *slot = self.parse(self.key.form, why, |tokens, want| tokens.number(token, want, allowed))?;
        Ok(())
    }

    /// Reads a yes or no as the reference does: any integer, and all but 0 mean yes.
    fn flag(&mut self, slot: &mut bool) -> Result<(), Problem> {
        *slot = self.integer()? != 0;
        Ok(())
    }

    /// Reads any integer of 32 bits.
    fn integer(&mut self) -> Result<i64, Problem> {
        let token = self.token()?;
        let value = token.text.parse().ok();
        let value = value.filter(|value| (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(value));
        value.ok_or_else(|| {
            let Key { name, form, .. } = self.key;
            let message = format!("{name} {} is not {form}", token.quoted());
            token.problem(self.tokens.file(), message).help(self.example(""))
        })
    }

    fn rate(&mut self, slot: &mut Rate, least: u64) -> Result<(), Problem> {
        let token = self.token()?;
        *slot = self.tokens.rate(token, self.key.name)?;
        if slot.bps() >= least {
            return Ok(());
        }
        let message = format!("{} {} is zero", self.key.name, token.quoted());
        Err(token.problem(self.tokens.file(), message).help(self.example("a flow at rate 0 never ends")))
    }

    fn text(&mut self, slot: &mut Option<String>) -> Result<(), Problem> {
        *slot = Some(self.token()?.text.to_owned());
        Ok(())
    }

    fn path(&mut self, slot: &mut PathBuf) -> Result<(), Problem> {
        *slot = self.token()?.text.into();
        Ok(())
    }

    fn optional_path(&mut self, slot: &mut Option<PathBuf>) -> Result<(), Problem> {
        self.path(slot.insert(PathBuf::new()))
    }

    fn cc_mode(&mut self, slot: &mut CcMode) -> Result<(), Problem> {
        let token = self.token()?;
        if token.text.parse() == Ok(10) {
            return Err(token.problem(self.tokens.file(), "CC_MODE 10, HPCC-PINT, cannot be run").help(
                "its sampling draws from the C library's rand() and cannot be reproduced; CC_MODE 3 is HPCC without it",
            ));
        }
        let mode = token.text.parse().ok().and_then(CcMode::from_number);
        *slot = mode.ok_or_else(|| {
            let message = format!("CC_MODE {} is not {}", token.quoted(), self.key.form);
            token.problem(self.tokens.file(), message).help("use one of these")
        })?;
        Ok(())
    }

    fn link_down(&mut self, slot: &mut Option<LinkDown>) -> Result<(), Problem> {
        let [time, a, b] = [self.token()?, self.token()?, self.token()?];
        let latest = (MAX_SECONDS * 1e6) as u64;
        let is = format!("a whole number of microseconds up to {latest}");
        let time_us = self.parse(&is, "", |tokens, want| tokens.whole(time, want, 0..=latest))?;
        let node = |token| {
            self.parse("a node", "", |tokens, want| tokens.whole(token, want, ANY_32_BITS)).map(|node| node as u32)
        };
        let link = LinkDown { time_us, a: node(a)?, b: node(b)? };
        if time_us > 0 && link.a == link.b {
            let message = format!("LINK_DOWN names node {} twice", link.a);
            return Err(b.problem(self.tokens.file(), message).help("name the two nodes that the link joins"));
        }
        *slot = (time_us > 0).then_some(link);
        Ok(())
    }

    /// Reads a count, then that many pairs of a rate and a value.
    fn map<T>(
        &mut self,
        map: &mut BTreeMap<u64, T>,
        value: impl Fn(&Self, Token<'a>) -> Result<T, Problem>,
    ) -> Result<(), Problem> {
        let name = self.key.name;
        let at = self.token()?;
        let is = "the number of pairs that follow, a whole number";
        let count = self.parse(is, "", |tokens, want| tokens.whole(at, want, ANY_32_BITS))?;
        // The count is not trusted with memory: the map grows with what is there.
        while (map.len() as u64) < count {
            let (Some(rate_at), Some(value_at)) = (self.word(), self.word()) else {
                let done = map.len();
                let message = format!("{name} ends after {done} of the {count} pairs that it announces");
                let help = format!("announce {done}, or add the missing pairs; it takes {}", self.key.form);
                return Err(at.problem(self.tokens.file(), message).help(help));
            };
            let is = "a rate in whole bits per second";
            let rate = self.parse(is, "", |tokens, want| tokens.whole(rate_at, want, 1..=u64::MAX))?;
            if map.insert(rate, value(self, value_at)?).is_some() {
                let message = format!("{name} has rate {rate} twice");
                return Err(rate_at.problem(self.tokens.file(), message).help("keep one of the two"));
            }
        }
        Ok(())
    }

    fn kilobytes(&mut self, map: &mut BTreeMap<u64, u32>) -> Result<(), Problem> {
        self.map(map, |value, token| {
            let is = "a whole number of KB up to 4294967";
            let why = "the reference counts its bytes in 32 bits";
            value.parse(is, why, |tokens, want| tokens.whole(token, want, 0..=4_294_967)).map(|kb| kb as u32)
        })
    }

    fn probabilities(&mut self, map: &mut BTreeMap<u64, f64>) -> Result<(), Problem> {
        self.map(map, |value, token| {
            let is = "a probability from 0 to 1";
            value.parse(is, "", |tokens, want| tokens.number(token, want, |p| (0.0..=1.0).contains(&p)))
        })
    }
}

const FLAG: &str = "0 or 1, or another whole number for 1";
const COUNT: &str = "a whole number of at most 32 bits";
const PATH: &str = "a path";
const RATE: &str = "a rate such as 40Mb/s";
const TIMER: &str = "a number of microseconds from 0 to 1000000000";
const PROBABILITY: &str = "a probability of at least 0 and below 1";
const NANOSECONDS: &str = "a whole number of nanoseconds";
const KB_MAP: &str = "a count, then as many pairs of a rate in bits per second and KB";

fn timer(us: f64) -> bool {
    (0.0..=1e9).contains(&us)
}

/// Every key of the reference, in the order in which its own examples give them.
pub static KEYS: &[Key] = &[
    Key {
        name: "ENABLE_QCN",
        form: FLAG,
        example: "1",
        default: Some("1"),
        meaning: "whether switches mark packets when queues are long",
        effect: Effect::Honoured,
        read: |c, v| v.flag(&mut c.enable_qcn),
    },
    Key {
        name: "USE_DYNAMIC_PFC_THRESHOLD",
        form: FLAG,
        example: "1",
        default: Some("1"),
        meaning: "whether the pause threshold follows the free buffer",
        effect: Effect::NoEffect("the reference reads it, and its threshold follows the free buffer whatever it is"),
        read: |c, v| v.flag(&mut c.use_dynamic_pfc_threshold),
    },
    Key {
        name: "CLAMP_TARGET_RATE",
        form: FLAG,
        example: "0",
        default: Some("0"),
        meaning: "whether every decrease of DCQCN lowers its target rate too",
        effect: Effect::Honoured,
        read: |c, v| v.flag(&mut c.clamp_target_rate),
    },
    Key {
        name: "PAUSE_TIME",
        form: "a number of microseconds of at least 1",
        example: "5",
        default: Some("5"),
        meaning: "the time written into pause frames, in microseconds",
        effect: Effect::NoEffect("a pause of the reference lasts until its resume frame, whatever its time"),
        read: |c, v| {
            let why = "the reference keeps whole microseconds, and a pause frame of time 0 is a resume";
            v.number(&mut c.pause_time_us, |us| us >= 1.0, why)
        },
    },
    Key {
        name: "DATA_RATE",
        form: "a rate",
        example: "100Gbps",
        default: None,
        meaning: "a rate of links",
        effect: Effect::NoEffect("the reference reads it and takes each link's rate from the topology"),
        read: |c, v| v.text(&mut c.data_rate),
    },
    Key {
        name: "LINK_DELAY",
        form: "a time",
        example: "0.001ms",
        default: None,
        meaning: "a delay of links",
        effect: Effect::NoEffect("the reference reads it and takes each link's delay from the topology"),
        read: |c, v| v.text(&mut c.link_delay),
    },
    Key {
        name: "PACKET_PAYLOAD_SIZE",
        form: "a whole number of bytes from 1 to 9000",
        example: "1000",
        default: Some("1000"),
        meaning: "the payload of a full packet, in bytes",
        effect: Effect::Honoured,
        read: |c, v| v.whole(&mut c.packet_payload_size, 1..=9000, ""),
    },
    Key {
        name: "L2_CHUNK_SIZE",
        form: "a whole number of bytes of at most 32 bits",
        example: "4000",
        default: Some("0"),
        meaning: "with L2_BACK_TO_ZERO, the bytes that a loss repeats together",
        effect: Effect::Honoured,
        read: |c, v| v.whole(&mut c.l2_chunk_size, ANY_32_BITS, ""),
    },
    Key {
        name: "L2_ACK_INTERVAL",
        form: "a whole number of bytes of at least 1 and at most 32 bits",
        example: "1",
        default: None,
        meaning: "how many bytes a receiver acknowledges at once; 1 is every packet",
        effect: Effect::Honoured,
        read: |c, v| {
            v.whole(&mut c.l2_ack_interval, 1..=u64::from(u32::MAX), "with 0 the reference never acknowledges")
        },
    },
    Key {
        name: "L2_BACK_TO_ZERO",
        form: FLAG,
        example: "0",
        default: Some("0"),
        meaning: "whether a loss repeats the whole chunk of L2_CHUNK_SIZE",
        effect: Effect::Honoured,
        read: |c, v| v.flag(&mut c.l2_back_to_zero),
    },
    Key {
        name: "TOPOLOGY_FILE",
        form: PATH,
        example: "topology.txt",
        default: None,
        meaning: "where the topology is read from",
        effect: Effect::Honoured,
        read: |c, v| v.path(&mut c.topology_file),
    },
    Key {
        name: "FLOW_FILE",
        form: PATH,
        example: "flow.txt",
        default: None,
        meaning: "where the flows are read from",
        effect: Effect::Honoured,
        read: |c, v| v.path(&mut c.flow_file),
    },
    Key {
        name: "TRACE_FILE",
        form: PATH,
        example: "trace.txt",
        default: None,
        meaning: "where the nodes to trace are read from",
        effect: Effect::Honoured,
        read: |c, v| v.optional_path(&mut c.trace_file),
    },
    Key {
        name: "TRACE_OUTPUT_FILE",
        form: PATH,
        example: "mix.tr",
        default: None,
        meaning: "where the packet trace is written to",
        effect: Effect::Honoured,
        read: |c, v| v.optional_path(&mut c.trace_output_file),
    },
    Key {
        name: "FCT_OUTPUT_FILE",
        form: PATH,
        example: "fct.txt",
        default: Some("fct.txt"),
        meaning: "where the flows' completion times are written to",
        effect: Effect::Honoured,
        read: |c, v| v.path(&mut c.fct_output_file),
    },
    Key {
        name: "PFC_OUTPUT_FILE",
        form: PATH,
        example: "pfc.txt",
        default: Some("pfc.txt"),
        meaning: "where pauses and resumes are written to",
        effect: Effect::Honoured,
        read: |c, v| v.path(&mut c.pfc_output_file),
    },
    Key {
        name: "SIMULATOR_STOP_TIME",
        form: "a number of seconds above 0 and up to 18000000",
        example: "2.5",
        default: Some("3.01"),
        meaning: "when the run ends, in seconds",
        effect: Effect::Honoured,
        read: |c, v| v.number(&mut c.simulator_stop_time_s, |s| s > 0.0 && s <= MAX_SECONDS, ""),
    },
    Key {
        name: "CC_MODE",
        form: "one of 0 (none), 1 (DCQCN), 3 (HPCC), 7 (TIMELY), 8 (DCTCP)",
        example: "1",
        default: Some("1"),
        meaning: "the congestion control",
        effect: Effect::Honoured,
        read: |c, v| v.cc_mode(&mut c.cc_mode),
    },
    Key {
        name: "ALPHA_RESUME_INTERVAL",
        form: TIMER,
        example: "1",
        default: Some("55"),
        meaning: "how often DCQCN lowers alpha, in microseconds",
        effect: Effect::Honoured,
        read: |c, v| v.number(&mut c.alpha_resume_interval_us, timer, ""),
    },
    Key {
        name: "RATE_DECREASE_INTERVAL",
        form: TIMER,
        example: "4",
        default: Some("4"),
        meaning: "how often DCQCN may lower a rate, in microseconds",
        effect: Effect::Honoured,
        read: |c, v| v.number(&mut c.rate_decrease_interval_us, timer, ""),
    },
    Key {
        name: "RP_TIMER",
        form: TIMER,
        example: "300",
        default: None,
        meaning: "how often DCQCN raises a rate, in microseconds",
        effect: Effect::Honoured,
        read: |c, v| v.number(&mut c.rp_timer_us, timer, ""),
    },
    Key {
        name: "EWMA_GAIN",
        form: "a number from 0 to 1",
        example: "0.00390625",
        default: Some("0"),
        meaning: "the gain of the average of marks, for DCQCN and DCTCP",
        effect: Effect::Honoured,
        read: |c, v| v.number(&mut c.ewma_gain, |g| (0.0..=1.0).contains(&g), ""),
    },
    Key {
        name: "FAST_RECOVERY_TIMES",
        form: COUNT,
        example: "1",
        default: Some("5"),
        meaning: "how often DCQCN recovers half of a decrease before it raises its target",
        effect: Effect::Honoured,
        read: |c, v| v.whole(&mut c.fast_recovery_times, ANY_32_BITS, ""),
    },
    Key {
        name: "RATE_AI",
        form: RATE,
        example: "40Mb/s",
        default: None,
        meaning: "the additive increase of DCQCN, HPCC and TIMELY",
        effect: Effect::Honoured,
        read: |c, v| v.rate(&mut c.rate_ai, 0),
    },
    Key {
        name: "RATE_HAI",
        form: RATE,
        example: "200Mb/s",
        default: None,
        meaning: "the hyper increase of DCQCN and TIMELY",
        effect: Effect::Honoured,
        read: |c, v| v.rate(&mut c.rate_hai, 0),
    },
    Key {
        name: "MIN_RATE",
        form: RATE,
        example: "100Mb/s",
        default: Some("100Mb/s"),
        meaning: "the least rate of a flow",
        effect: Effect::Honoured,
        read: |c, v| v.rate(&mut c.min_rate, 1),
    },
    Key {
        name: "DCTCP_RATE_AI",
        form: RATE,
        example: "1000Mb/s",
        default: Some("1000Mb/s"),
        meaning: "the additive increase of DCTCP",
        effect: Effect::Honoured,
        read: |c, v| v.rate(&mut c.dctcp_rate_ai, 0),
    },
    Key {
        name: "ERROR_RATE_PER_LINK",
        form: PROBABILITY,
        example: "0",
        default: Some("0"),
        meaning: "the probability that a link without its own loses a packet",
        effect: Effect::Honoured,
        read: |c, v| v.number(&mut c.error_rate_per_link, |p| (0.0..1.0).contains(&p), ""),
    },
    Key {
        name: "HAS_WIN",
        form: FLAG,
        example: "1",
        default: Some("1"),
        meaning: "whether a flow has a window",
        effect: Effect::Honoured,
        read: |c, v| v.flag(&mut c.has_win),
    },
    Key {
        name: "GLOBAL_T",
        form: "1, or another whole number for 0",
        example: "1",
        default: Some("1"),
        meaning: "whether all flows take the largest round trip and window of all pairs",
        effect: Effect::Honoured,
        read: |c, v| {
            c.global_t = v.integer()? == 1;
            Ok(())
        },
    },
    Key {
        name: "MI_THRESH",
        form: COUNT,
        example: "5",
        default: Some("5"),
        meaning: "the additive increases of HPCC before its next multiplicative one",
        effect: Effect::Honoured,
        read: |c, v| v.whole(&mut c.mi_thresh, ANY_32_BITS, ""),
    },
    Key {
        name: "VAR_WIN",
        form: FLAG,
        example: "1",
        default: Some("0"),
        meaning: "whether the window shrinks with the rate",
        effect: Effect::Honoured,
        read: |c, v| v.flag(&mut c.var_win),
    },
    Key {
        name: "FAST_REACT",
        form: FLAG,
        example: "1",
        default: Some("1"),
        meaning: "whether HPCC reacts to every acknowledgement and not once per round trip",
        effect: Effect::Honoured,
        read: |c, v| v.flag(&mut c.fast_react),
    },
    Key {
        name: "U_TARGET",
        form: "a number above 0",
        example: "0.95",
        default: Some("0.95"),
        meaning: "the utilisation that HPCC aims at",
        effect: Effect::Honoured,
        read: |c, v| v.number(&mut c.u_target, |u| u > 0.0, "HPCC divides by it"),
    },
    Key {
        name: "INT_MULTI",
        form: "a whole number of at least 1 and at most 32 bits",
        example: "1",
        default: Some("1"),
        meaning: "the unit of the counters in HPCC's telemetry",
        effect: Effect::Honoured,
        read: |c, v| v.whole(&mut c.int_multi, 1..=u64::from(u32::MAX), "the reference divides by it"),
    },
    Key {
        name: "RATE_BOUND",
        form: FLAG,
        example: "1",
        default: Some("1"),
        meaning: "whether the rate limits sending, beside the window",
        effect: Effect::Honoured,
        read: |c, v| v.flag(&mut c.rate_bound),
    },
    Key {
        name: "ACK_HIGH_PRIO",
        form: FLAG,
        example: "0",
        default: Some("0"),
        meaning: "whether hosts send acknowledgements before data",
        effect: Effect::Honoured,
        read: |c, v| v.flag(&mut c.ack_high_prio),
    },
    Key {
        name: "LINK_DOWN",
        form: "a time in microseconds after second 2, then two nodes",
        example: "0 0 0",
        default: Some("0 0 0"),
        meaning: "when the link between two nodes fails; time 0 is never",
        effect: Effect::Honoured,
        read: |c, v| v.link_down(&mut c.link_down),
    },
    Key {
        name: "ENABLE_TRACE",
        form: FLAG,
        example: "0",
        default: Some("1"),
        meaning: "whether a binary packet trace is written",
        effect: Effect::Honoured,
        read: |c, v| v.flag(&mut c.enable_trace),
    },
    Key {
        name: "KMAX_MAP",
        form: KB_MAP,
        example: "1 100000000000 1600",
        default: Some("0"),
        meaning: "by link rate, the queue in KB above which every packet is marked",
        effect: Effect::Honoured,
        read: |c, v| v.kilobytes(&mut c.kmax_map),
    },
    Key {
        name: "KMIN_MAP",
        form: KB_MAP,
        example: "1 100000000000 400",
        default: Some("0"),
        meaning: "by link rate, the queue in KB above which some packets are marked",
        effect: Effect::Honoured,
        read: |c, v| v.kilobytes(&mut c.kmin_map),
    },
    Key {
        name: "PMAX_MAP",
        form: "a count, then as many pairs of a rate in bits per second and a probability",
        example: "1 100000000000 0.2",
        default: Some("0"),
        meaning: "by link rate, the probability of a mark at a queue of KMAX",
        effect: Effect::Honoured,
        read: |c, v| v.probabilities(&mut c.pmax_map),
    },
    Key {
        name: "BUFFER_SIZE",
        form: "a whole number of MiB from 1 to 4095",
        example: "16",
        default: Some("16"),
        meaning: "the buffer of a switch, in MiB",
        effect: Effect::Honoured,
        read: |c, v| v.whole(&mut c.buffer_size_mib, 1..=4095, "the reference counts its bytes in 32 bits"),
    },
    Key {
        name: "QLEN_MON_FILE",
        form: PATH,
        example: "qlen.txt",
        default: None,
        meaning: "where queue lengths are written to",
        effect: Effect::Honoured,
        read: |c, v| v.optional_path(&mut c.qlen_mon_file),
    },
    Key {
        name: "QLEN_MON_START",
        form: NANOSECONDS,
        example: "2000000000",
        default: Some("2000000000"),
        meaning: "when watching queue lengths begins, in nanoseconds",
        effect: Effect::Honoured,
        read: |c, v| v.whole(&mut c.qlen_mon_start_ns, ANY_64_BITS, ""),
    },
    Key {
        name: "QLEN_MON_END",
        form: NANOSECONDS,
        example: "2100000000",
        default: Some("2100000000"),
        meaning: "when watching queue lengths ends, in nanoseconds",
        effect: Effect::Honoured,
        read: |c, v| v.whole(&mut c.qlen_mon_end_ns, ANY_64_BITS, ""),
    },
    Key {
        name: "MULTI_RATE",
        form: FLAG,
        example: "0",
        default: Some("1"),
        meaning: "whether HPCC keeps a rate per hop",
        effect: Effect::Honoured,
        read: |c, v| v.flag(&mut c.multi_rate),
    },
    Key {
        name: "SAMPLE_FEEDBACK",
        form: FLAG,
        example: "0",
        default: Some("0"),
        meaning: "whether HPCC uses only the telemetry of some acknowledgements",
        effect: Effect::Honoured,
        read: |c, v| v.flag(&mut c.sample_feedback),
    },
    Key {
        name: "PINT_LOG_BASE",
        form: "a number",
        example: "1.05",
        default: Some("1.05"),
        meaning: "the base of HPCC-PINT's logarithms",
        effect: Effect::NoEffect("only CC_MODE 10 uses it, which is refused"),
        read: |c, v| v.number(&mut c.pint_log_base, |_| true, ""),
    },
    Key {
        name: "PINT_PROB",
        form: "a number",
        example: "1.0",
        default: Some("1.0"),
        meaning: "the share of packets that HPCC-PINT samples",
        effect: Effect::NoEffect("only CC_MODE 10 uses it, which is refused"),
        read: |c, v| v.number(&mut c.pint_prob, |_| true, ""),
    },
];

/// Reads a configuration and checks that it can be run.
///
/// `file` is its name, for problems only. The reference skips keys that it does not know and takes the last of two
/// values; both are refused here, since either is a slip.
pub fn parse(file: &str, text: &str) -> Result<Config, Problem> {
    let mut config = Config { file: file.to_owned(), ..Config::default() };
    let mut tokens = Tokens::new(file, text);
    let mut previous = None;
    while let Some(at) = tokens.next() {
        let Some(key) = key(at.text) else {
            return Err(not_a_key(file, at, previous));
        };
        if let Effect::Refused(reason) = key.effect {
            return Err(at.problem(file, format!("{} is refused", key.name)).help(reason));
        }
        if let Some(line) = config.place(key.name).and_then(|place| place.line) {
            let message = format!("{} is given a second time; the first is on line {line}", key.name);
            return Err(at.problem(file, message).help("keep one of the two"));
        }
        (key.read)(&mut config, &mut Value { tokens: &mut tokens, at, key })?;
        config.places.push((key.name, at.problem(file, "")));
        previous = Some(key);
    }
    config.check()?;
    Ok(config)
}

/// What to say of a word that stands where a key should.
fn not_a_key(file: &str, at: Token<'_>, previous: Option<&Key>) -> Problem {
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
    let problem = at.problem(file, format!("unknown key {}", at.quoted()));
    match nearest_key(at.text) {
        Some(name) => problem.help(format!("did you mean {name}?")),
        None => problem.help("remove it; `tailwater ns3 --keys` lists the keys"),
    }
}

/// The key that `text` is most likely a slip of.
fn nearest_key(text: &str) -> Option<&'static str> {
    // No key is near what is far longer than all of them.
    let text: String = text.chars().take(64).map(|c| c.to_ascii_uppercase()).collect();
    let allowed = (text.chars().count() / 3).clamp(1, 4);
    let distances = KEYS.iter().map(|key| (strsim::levenshtein(&text, key.name), key.name));
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
    fn check(&self) -> Result<(), Problem> {
        for required in ["TOPOLOGY_FILE", "FLOW_FILE"] {
            self.require(required, "")?;
        }
        self.require("L2_ACK_INTERVAL", "the reference takes 0 where it is not given and then never acknowledges")?;
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
        if matches!(self.cc_mode, CcMode::Dcqcn | CcMode::Hpcc | CcMode::Timely) {
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
        let example = key(name).map_or("", |key| key.example);
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
