//! The configuration file: keys and values.
//!
//! [`KEYS`] says of each key what it means, what it takes and whether it has an effect; the reader works from the same
//! table.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use engine::units::Rate;

use super::tokens::{MAX_SECONDS, Token, Tokens, Want};
use crate::problem::Problem;

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
    let distances = KEYS.iter().map(|key| (edit_distance(&text, key.name), key.name));
    distances.filter(|(distance, _)| *distance <= allowed).min().map(|(_, name)| name)
}

/// How many characters must be put in, left out or changed to make `a` into `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut above: Vec<usize> = (0..=b.chars().count()).collect();
    for (row, from) in a.chars().enumerate() {
        let mut left = row + 1;
        let mut corner = row;
        for (to, cell) in b.chars().zip(above.iter_mut().skip(1)) {
            let changed = corner + usize::from(from != to);
            corner = *cell;
            left = changed.min(corner + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = above.first_mut() {
            *first = row + 1;
        }
    }
    above.last().copied().unwrap_or_default()
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
    /// The error says which map lacks the rate and what to write.
    pub fn ecn_for(&self, rate_bps: u64) -> Result<(u32, u32, f64), String> {
        let (kmin, kmax) = (self.kmin_map.get(&rate_bps), self.kmax_map.get(&rate_bps));
        if let (Some(kmin), Some(kmax), Some(pmax)) = (kmin, kmax, self.pmax_map.get(&rate_bps)) {
            return Ok((*kmin, *kmax, *pmax));
        }
        let lacking = [
            lacks("KMIN_MAP", &self.kmin_map, rate_bps, "<KB>"),
            lacks("KMAX_MAP", &self.kmax_map, rate_bps, "<KB>"),
            lacks("PMAX_MAP", &self.pmax_map, rate_bps, "<probability>"),
        ];
        Err(lacking.into_iter().flatten().collect::<Vec<_>>().join("; "))
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

/// What to say if `map` lacks `rate`.
fn lacks<T: std::fmt::Display>(name: &str, map: &BTreeMap<u64, T>, rate: u64, value: &str) -> Option<String> {
    if map.contains_key(&rate) {
        return None;
    }
    let pairs: String = map.iter().map(|(rate, value)| format!("{rate} {value} ")).collect();
    let count = map.len() + 1;
    let speed = Rate(rate);
    Some(format!("{name} has no entry for {rate} b/s ({speed}); write {name} {count} {pairs}{rate} {value}"))
}

#[cfg(test)]
mod tests {
    use super::super::tokens::fuzz;
    use super::*;
    use proptest::prelude::*;

    const CONFIG: &str = "\
ENABLE_QCN 1
USE_DYNAMIC_PFC_THRESHOLD 1
PACKET_PAYLOAD_SIZE 1000
TOPOLOGY_FILE topology.txt
FLOW_FILE flow.txt
TRACE_FILE trace.txt
TRACE_OUTPUT_FILE mix.tr
FCT_OUTPUT_FILE out/fct.txt
PFC_OUTPUT_FILE out/pfc.txt
SIMULATOR_STOP_TIME 2.5
CC_MODE 3
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
CLAMP_TARGET_RATE 0
RP_TIMER 300
EWMA_GAIN 0.00390625
FAST_RECOVERY_TIMES 1
RATE_AI 40Mb/s
RATE_HAI 200Mb/s
MIN_RATE 1000Mb/s
DCTCP_RATE_AI 1000Mb/s
ERROR_RATE_PER_LINK 0.0000
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
L2_BACK_TO_ZERO 0
HAS_WIN 1
GLOBAL_T 1
VAR_WIN 1
FAST_REACT 1
U_TARGET 0.95
MI_THRESH 5
INT_MULTI 4
MULTI_RATE 0
SAMPLE_FEEDBACK 0
PINT_LOG_BASE 1.01
PINT_PROB 1.0
RATE_BOUND 1
ACK_HIGH_PRIO 0
LINK_DOWN 10 1 2
ENABLE_TRACE 0
KMAX_MAP 2 100000000000 1600 400000000000 6400
KMIN_MAP 2 100000000000 400 400000000000 1600
PMAX_MAP 2 100000000000 0.2 400000000000 0.2
BUFFER_SIZE 12
QLEN_MON_FILE qlen.txt
QLEN_MON_START 3000000000
QLEN_MON_END 3000000000
";

    /// The least that can be run.
    const LEAST: &str = "TOPOLOGY_FILE t FLOW_FILE f L2_ACK_INTERVAL 1 CC_MODE 0 ";

    fn error(text: &str) -> Problem {
        parse("config.txt", text).unwrap_err()
    }

    fn least(more: &str) -> Result<Config, Problem> {
        parse("config.txt", &format!("{LEAST}\n{more}"))
    }

    /// `CONFIG` with one piece of it replaced.
    fn with(from: &str, to: &str) -> Result<Config, Problem> {
        assert!(CONFIG.contains(from), "{from}");
        parse("config.txt", &CONFIG.replacen(from, to, 1))
    }

    fn place(problem: &Problem) -> (usize, usize) {
        (problem.line.unwrap(), problem.column.unwrap())
    }

    #[test]
    fn a_configuration_is_read_into_its_types() {
        let config = parse("config.txt", CONFIG).unwrap();
        assert_eq!(config.cc_mode, CcMode::Hpcc);
        assert_eq!(config.topology_file, PathBuf::from("topology.txt"));
        assert_eq!(config.trace_file, Some("trace.txt".into()));
        assert_eq!(config.fct_output_file, PathBuf::from("out/fct.txt"));
        assert_eq!(config.simulator_stop_time_s, 2.5);
        assert_eq!(config.rate_ai, Rate::from_mbps(40));
        assert_eq!(config.min_rate, Rate::from_gbps(1));
        assert_eq!(config.ewma_gain, 1.0 / 256.0);
        assert_eq!((config.int_multi, config.buffer_size_mib), (4, 12));
        assert!(config.var_win && !config.multi_rate && !config.enable_trace);
        assert_eq!(config.link_down, Some(LinkDown { time_us: 10, a: 1, b: 2 }));
        assert_eq!(config.kmax_map, BTreeMap::from([(100_000_000_000, 1600), (400_000_000_000, 6400)]));
        assert_eq!(config.ecn_for(400_000_000_000), Ok((1600, 6400, 0.2)));
        assert!(config.is_given("CC_MODE") && !config.is_given("PAUSE_TIME"));
        assert_eq!(config.problem("CC_MODE", "x").line, Some(11));
        assert_eq!(config.problem("PAUSE_TIME", "x").to_string(), "config.txt: x");
    }

    #[test]
    fn line_breaks_mean_nothing() {
        let (mut a, mut b) = (parse("c", CONFIG).unwrap(), parse("c", &CONFIG.replace('\n', " ")).unwrap());
        a.places.clear();
        b.places.clear();
        assert_eq!(a, b);
    }

    #[test]
    fn the_table_and_the_reader_know_the_keys_of_the_reference() {
        let names = "ENABLE_QCN USE_DYNAMIC_PFC_THRESHOLD CLAMP_TARGET_RATE PAUSE_TIME DATA_RATE LINK_DELAY \
            PACKET_PAYLOAD_SIZE L2_CHUNK_SIZE L2_ACK_INTERVAL L2_BACK_TO_ZERO TOPOLOGY_FILE FLOW_FILE TRACE_FILE \
            TRACE_OUTPUT_FILE FCT_OUTPUT_FILE PFC_OUTPUT_FILE SIMULATOR_STOP_TIME CC_MODE ALPHA_RESUME_INTERVAL \
            RATE_DECREASE_INTERVAL RP_TIMER EWMA_GAIN FAST_RECOVERY_TIMES RATE_AI RATE_HAI MIN_RATE \
            DCTCP_RATE_AI ERROR_RATE_PER_LINK HAS_WIN GLOBAL_T MI_THRESH VAR_WIN FAST_REACT U_TARGET INT_MULTI \
            RATE_BOUND ACK_HIGH_PRIO LINK_DOWN ENABLE_TRACE KMAX_MAP KMIN_MAP PMAX_MAP BUFFER_SIZE QLEN_MON_FILE \
            QLEN_MON_START QLEN_MON_END MULTI_RATE SAMPLE_FEEDBACK PINT_LOG_BASE PINT_PROB";
        let mut expected: Vec<&str> = names.split(' ').collect();
        let mut known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        expected.sort_unstable();
        known.sort_unstable();
        assert_eq!(known, expected);
        for key in KEYS {
            assert!(!key.meaning.is_empty() && !key.meaning.contains('\n'), "{}", key.name);
            // The reader takes every key, and a file with nothing but examples can be run.
            let alone = format!("{} {}", key.name, key.example);
            let problem = parse("c", &alone).unwrap_err();
            assert!(problem.message.ends_with("is missing"), "{problem}");
        }
        let all: String = KEYS.iter().map(|key| format!("{} {}\n", key.name, key.example)).collect();
        let config = parse("c", &all).unwrap();
        assert!(KEYS.iter().all(|key| config.is_given(key.name)));
    }

    #[test]
    fn the_table_shows_the_defaults_that_hold() {
        for key in KEYS {
            let Some(default) = key.default else { continue };
            let mut tokens = Tokens::new("c", default);
            let at = Tokens::new("c", key.name).next().unwrap();
            let mut config = Config::default();
            (key.read)(&mut config, &mut Value { tokens: &mut tokens, at, key }).unwrap();
            assert_eq!(config, Config::default(), "{}", key.name);
            assert!(tokens.next().is_none(), "{}", key.name);
        }
    }

    #[test]
    fn every_key_sets_its_own_field() {
        // A value other than the default changes the configuration, and two keys never change the same.
        let others = |key: &Key| match key.name {
            "CC_MODE" => "8",
            "GLOBAL_T" => "2",
            "LINK_DOWN" => "1 2 3",
            "PACKET_PAYLOAD_SIZE" | "BUFFER_SIZE" => "99",
            _ if key.default == Some("0") && key.form == FLAG => "7",
            _ if key.form == FLAG => "0",
            _ if key.form == RATE => "77Mbps",
            _ if key.form == PATH => "elsewhere",
            _ if key.name.ends_with("_MAP") => "1 5 1",
            _ if key.form.contains("probability") || key.form.contains("0 to 1") => "0.125",
            _ => "17",
        };
        let mut seen: Vec<(Config, &str)> = vec![(Config::default(), "default")];
        for key in KEYS {
            let mut tokens = Tokens::new("c", others(key));
            let at = Tokens::new("c", key.name).next().unwrap();
            let mut config = Config::default();
            (key.read)(&mut config, &mut Value { tokens: &mut tokens, at, key }).unwrap();
            let same = seen.iter().find(|(other, _)| *other == config);
            assert!(same.is_none(), "{} and {}", key.name, same.unwrap().1);
            seen.push((config, key.name));
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_one_probably_meant() {
        let problem = with("CC_MODE 3", "CC_MOD 3").unwrap_err();
        assert_eq!(problem.message, "unknown key \"CC_MOD\"");
        assert_eq!(place(&problem), (11, 1));
        assert_eq!(problem.help.as_deref(), Some("did you mean CC_MODE?"));
        assert!(error("rp_timer 3").to_string().contains("did you mean RP_TIMER?"));
        assert!(error("KMAXMAP 3").to_string().contains("did you mean KMAX_MAP?"));
        assert!(error("\u{feff}ENABLE_QCN 1").to_string().contains("\"\\u{feff}ENABLE_QCN\""));
        let problem = error("SOMETHING_ELSE_ALTOGETHER 3");
        assert!(problem.help.as_deref().unwrap().contains("--keys"), "{problem}");
    }

    #[test]
    fn a_comment_is_refused() {
        let problem = error("# rates\nRATE_AI 40Mb/s");
        assert_eq!(problem.message, "\"#\" is not a key");
        assert!(problem.help.as_deref().unwrap().contains("no comments"));
    }

    #[test]
    fn a_key_given_twice_is_refused_with_both_lines() {
        let problem = with("BUFFER_SIZE 12", "BUFFER_SIZE 12\nCC_MODE 1").unwrap_err();
        assert_eq!(problem.message, "CC_MODE is given a second time; the first is on line 11");
        assert_eq!(place(&problem), (45, 1));
    }

    #[test]
    fn a_key_without_a_value_is_refused() {
        let problem = with("CC_MODE 3", "CC_MODE").unwrap_err();
        assert_eq!(problem.message, "CC_MODE has no value");
        assert_eq!(place(&problem), (11, 1));
        assert!(problem.help.as_deref().unwrap().ends_with("write for example CC_MODE 1"), "{problem}");
        assert_eq!(error("TRACE_FILE").message, "TRACE_FILE has no value");
        assert_eq!(with("10 1 2", "10 1").unwrap_err().message, "LINK_DOWN has no value");
    }

    #[test]
    fn a_value_too_many_is_refused_after_its_key() {
        let problem = with("BUFFER_SIZE 12", "BUFFER_SIZE 12 13").unwrap_err();
        assert_eq!(problem.message, "\"13\" stands where a key should, after the value of BUFFER_SIZE");
        assert_eq!(place(&problem), (44, 16));
    }

    #[test]
    fn a_bad_value_is_refused_at_its_place_with_an_example() {
        let case = |line: &str, column: usize, message: &str| {
            let problem = least(line).unwrap_err();
            assert!(problem.message.contains(message), "{problem}");
            assert_eq!(place(&problem), (2, column), "{problem}");
            assert!(problem.help.is_some(), "{problem}");
        };
        case("ENABLE_QCN yes", 12, "ENABLE_QCN \"yes\" is not 0 or 1");
        case("ENABLE_QCN 4294967296", 12, "ENABLE_QCN");
        case("GLOBAL_T 1.0", 10, "GLOBAL_T \"1.0\" is not 1, or another whole number");
        case("PAUSE_TIME 0", 12, "PAUSE_TIME \"0\" is not a number of microseconds of at least 1");
        case("PAUSE_TIME 0.5", 12, "PAUSE_TIME");
        case("PACKET_PAYLOAD_SIZE 0", 21, "is not a whole number of bytes from 1 to 9000");
        case("PACKET_PAYLOAD_SIZE 9001", 21, "is not a whole number of bytes from 1 to 9000");
        case("PACKET_PAYLOAD_SIZE -1", 21, "\"-1\"");
        case("L2_CHUNK_SIZE 4294967296", 15, "L2_CHUNK_SIZE");
        case("SIMULATOR_STOP_TIME 0", 21, "SIMULATOR_STOP_TIME \"0\" is not a number of seconds above 0");
        case("SIMULATOR_STOP_TIME 1e300", 21, "SIMULATOR_STOP_TIME");
        case("SIMULATOR_STOP_TIME nan", 21, "SIMULATOR_STOP_TIME");
        case("EWMA_GAIN 1.5", 11, "EWMA_GAIN \"1.5\" is not a number from 0 to 1");
        case("RP_TIMER -1", 10, "RP_TIMER \"-1\" is not a number of microseconds");
        case("RATE_AI 40Mx/s", 9, "RATE_AI \"40Mx/s\" has none of the units");
        case("MIN_RATE 0Mb/s", 10, "MIN_RATE \"0Mb/s\" is zero");
        case("ERROR_RATE_PER_LINK 1", 21, "is not a probability of at least 0 and below 1");
        case("U_TARGET 0", 10, "U_TARGET \"0\" is not a number above 0");
        case("INT_MULTI 0", 11, "INT_MULTI \"0\" is not a whole number of at least 1");
        case("BUFFER_SIZE 0", 13, "BUFFER_SIZE \"0\" is not a whole number of MiB from 1 to 4095");
        case("BUFFER_SIZE 4096", 13, "BUFFER_SIZE \"4096\"");
        case("LINK_DOWN soon 0 1", 11, "LINK_DOWN \"soon\" is not a whole number of microseconds");
        case("LINK_DOWN 5 0 -1", 15, "LINK_DOWN \"-1\" is not a node");
        case("LINK_DOWN 5 1 1", 15, "LINK_DOWN names node 1 twice");
        case("QLEN_MON_START -1", 16, "QLEN_MON_START \"-1\" is not a whole number of nanoseconds");
        case("KMAX_MAP -1", 10, "KMAX_MAP \"-1\" is not the number of pairs");
        case("KMAX_MAP 1 0 5", 12, "KMAX_MAP \"0\" is not a rate in whole bits per second");
        case("KMAX_MAP 1 1Gbps 5", 12, "KMAX_MAP \"1Gbps\" is not a rate in whole bits per second");
        case("KMAX_MAP 1 10 5.5", 15, "KMAX_MAP \"5.5\" is not a whole number of KB");
        case("KMIN_MAP 1 10 4294968", 15, "is not a whole number of KB up to 4294967");
        case("PMAX_MAP 1 10 1.01", 15, "PMAX_MAP \"1.01\" is not a probability from 0 to 1");
        case("PMAX_MAP 2 10 1 10 1", 17, "PMAX_MAP has rate 10 twice");
        case("KMAX_MAP 2 10 5", 10, "KMAX_MAP ends after 1 of the 2 pairs that it announces");
        case("KMAX_MAP 4294967295 10 5 20", 10, "KMAX_MAP ends after 1 of the 4294967295 pairs");
    }

    #[test]
    fn a_flag_is_any_integer_as_in_the_reference() {
        assert!(least("VAR_WIN 7").unwrap().var_win);
        assert!(least("VAR_WIN -1").unwrap().var_win);
        assert!(!least("FAST_REACT 0").unwrap().fast_react);
        assert!(!least("GLOBAL_T 2").unwrap().global_t);
    }

    #[test]
    fn a_congestion_control_that_cannot_be_run_is_refused_by_name() {
        let problem = with("CC_MODE 3", "CC_MODE 10").unwrap_err();
        assert!(problem.message.contains("HPCC-PINT"), "{problem}");
        assert!(problem.help.as_deref().unwrap().contains("rand()"), "{problem}");
        let problem = with("CC_MODE 3", "CC_MODE 5").unwrap_err();
        assert!(problem.message.contains("one of 0 (none), 1 (DCQCN), 3 (HPCC), 7 (TIMELY), 8 (DCTCP)"), "{problem}");
        assert_eq!(place(&problem), (11, 9));
        for mode in [0, 1, 3, 7, 8] {
            assert_eq!(with("CC_MODE 3", &format!("CC_MODE {mode}")).unwrap().cc_mode.number(), mode);
        }
    }

    #[test]
    fn what_the_run_needs_must_be_given() {
        let missing = |key: &str, from: &str| {
            let problem = parse("config.txt", &CONFIG.replace(from, "").replace("CC_MODE 3", "CC_MODE 1")).unwrap_err();
            assert_eq!(problem.message, format!("{key} is missing"));
            assert!(problem.help.as_deref().unwrap().starts_with(&format!("write for example {key} ")), "{problem}");
        };
        missing("TOPOLOGY_FILE", "TOPOLOGY_FILE topology.txt\n");
        missing("FLOW_FILE", "FLOW_FILE flow.txt\n");
        missing("L2_ACK_INTERVAL", "L2_ACK_INTERVAL 1\n");
        missing("RP_TIMER", "RP_TIMER 300\n");
        missing("RATE_AI", "\nRATE_AI 40Mb/s");
        missing("RATE_HAI", "RATE_HAI 200Mb/s\n");
        for mode in [3, 7] {
            let problem =
                least("").map(|_| ()).and(parse("c", &LEAST.replace("CC_MODE 0", &format!("CC_MODE {mode}"))));
            assert_eq!(problem.unwrap_err().message, "RATE_AI is missing");
        }
        assert!(parse("c", &LEAST.replace("CC_MODE 0", "CC_MODE 8")).is_ok());
    }

    #[test]
    fn values_that_cannot_go_together_are_refused() {
        let problem = with("L2_ACK_INTERVAL 1", "L2_ACK_INTERVAL 0").unwrap_err();
        assert_eq!(place(&problem), (24, 17));
        assert!(problem.help.as_deref().unwrap().contains("never acknowledges"), "{problem}");

        let text = CONFIG.replace("L2_CHUNK_SIZE 4000", "L2_CHUNK_SIZE 0");
        assert!(parse("c", &text).is_ok());
        let problem = error(&text.replace("L2_BACK_TO_ZERO 0", "L2_BACK_TO_ZERO 1"));
        assert_eq!(place(&problem), (25, 1));
        assert!(problem.message.contains("L2_CHUNK_SIZE is 0"), "{problem}");

        let problem = with("HAS_WIN 1", "HAS_WIN 0").unwrap_err();
        assert_eq!(problem.message, "CC_MODE 3, HPCC, cannot run with HAS_WIN 0");
        assert_eq!(place(&problem), (26, 1));

        let problem = with("KMIN_MAP 2 100000000000 400", "KMIN_MAP 2 100000000000 1601").unwrap_err();
        assert_eq!(problem.message, "KMIN 1601 is above KMAX 1600 at rate 100000000000");
        assert_eq!(place(&problem), (42, 1));
        assert!(with("KMIN_MAP 2 100000000000 400", "KMIN_MAP 2 100000000000 1600").is_ok());

        let dcqcn = CONFIG.replace("CC_MODE 3", "CC_MODE 1");
        let problem = error(&dcqcn.replace("RP_TIMER 300", "RP_TIMER 0.5"));
        assert_eq!(problem.message, "RP_TIMER 0.5 is below 1, which CC_MODE 1 cannot run with");
        assert_eq!(place(&problem), (15, 1));
        assert!(with("RP_TIMER 300", "RP_TIMER 0").is_ok(), "HPCC does not use it");
    }

    #[test]
    fn a_rate_without_thresholds_is_named_with_what_to_write() {
        let config = least("KMAX_MAP 1 10 8 KMIN_MAP 2 10 4 25000000000 9 PMAX_MAP 1 10 0.5").unwrap();
        assert_eq!(config.ecn_for(10), Ok((4, 8, 0.5)));
        let expected = "KMAX_MAP has no entry for 25000000000 b/s (25Gbps); write KMAX_MAP 2 10 8 25000000000 <KB>; \
                        PMAX_MAP has no entry for 25000000000 b/s (25Gbps); \
                        write PMAX_MAP 2 10 0.5 25000000000 <probability>";
        assert_eq!(config.ecn_for(25_000_000_000), Err(expected.to_string()));
        let none = least("").unwrap().ecn_for(10).unwrap_err();
        assert!(none.starts_with("KMIN_MAP has no entry for 10 b/s (10bps); write KMIN_MAP 1 10 <KB>"), "{none}");
    }

    #[test]
    fn the_distance_between_words_counts_slips() {
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", ""), 3);
        assert_eq!(edit_distance("abc", "abc"), 0);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("ä", "a"), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_a_configuration_or_a_problem(text in fuzz::any_text()) {
            let _ = parse("c", &text).map_err(|problem| problem.to_string());
        }

        #[test]
        fn any_change_to_a_configuration_leaves_one_or_a_problem(text in fuzz::changed(CONFIG), rate in any::<u64>()) {
            match parse("c", &text) {
                Ok(config) => drop(config.ecn_for(rate)),
                Err(problem) => drop(problem.to_string()),
            }
        }
    }
}
