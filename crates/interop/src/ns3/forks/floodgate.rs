//! Floodgate's simulator (Liu et al., CoNEXT 2021): windows between switches, flows from its own generators.

pub mod results;
pub mod traffic;
pub mod windows;

use super::Column::{Destination, Size, Source, Start};
use super::{Fork, Ports, Rates, Results};
use crate::ns3::config::Config;
use crate::ns3::config::key::*;
use files::problem::Problem;
use std::path::PathBuf;

/// The simulator.
pub static FORK: Fork = Fork {
    name: "Floodgate's simulator",
    home: "NASA-NJU/Floodgate-NS3",
    keys: KEYS,
    defaults: |config| config.floodgate.from_file = false,
    check: |config| {
        let mut problems = windows::check(config);
        problems.extend(traffic::check(config));
        problems
    },
    counts: &["nodes", "switches", "hosts per rack", "ToRs", "cores", "links"],
    link_fields: 4,
    rates: Rates::Plain,
    flow: &[Source, Destination, Size, Start],
    without_flows: None,
    size_bits: 32,
    ports: Ports::PerSource,
    any_order: true,
    link_header: 38,
    ack_size: 84,
    headroom: 8,
    shift: 2,
    results: Results::Tabs,
    differs: Some(
        "windows and credits are those of our own Floodgate, a lost packet is asked for again by go-back-N, and no run of that simulator was at hand to compare with",
    ),
};

/// What only its configurations say.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// FLOW_FROM_FILE.
    pub from_file: bool,
    /// USE_FLOODGATE: whether switches have windows towards destinations.
    pub windows: bool,
    /// FLOODGATE_CONFIG_FILE: which switches have windows, and how many queues beside.
    pub config_file: Option<PathBuf>,
    /// SWTICH_ACK_MODE: how windows are given back.
    pub ack_mode: u32,
    /// SWITCH_WIN_M: a window, in bandwidth-delay products of the next link.
    pub win_m: f64,
    /// SWITCH_ACK_TH_M: what may wait for a destination before its windows are kept back.
    pub ack_th_m: f64,
    /// SWTICH_BYTE_COUNTER: bytes that are given back together.
    pub byte_counter: u32,
    /// SWTICH_CREDIT_INTERVAL in microseconds.
    pub credit_interval_us: f64,
    /// RESET_ONLY_TOR_SWITCH_WIN: whether only first and last switches have windows.
    pub only_tors: bool,
    /// SWITCH_SYN_TIMEOUT_US.
    pub syn_timeout_us: u32,
    /// SRCTOR_DST_PFC: whether the first switch pauses senders by destination, and switches do not pause each other.
    pub dst_pause: bool,
    /// PFC_TH_STATIC: what it holds for a destination before it does, in bandwidth-delay products of the host's link.
    pub pause_at: f64,
    /// SYMMETRIC_ROUTING_MODE: whether ACKs take the path of their data back.
    pub symmetric: bool,
    /// RTO_us: after how long a sender starts over; 0 for never.
    pub rto_us: u32,
    /// RESET_PER_QP_MSG: whether results name every flow as a queue pair of its own.
    pub own_pairs: bool,
    /// SEED of the C library's dice.
    pub seed: u32,
    /// FLOW_CDF: the distribution of sizes, or the pattern.
    pub flow_cdf: u32,
    /// FLOW_NUM: how many flows are drawn.
    pub flow_num: u32,
    /// LOAD of the hosts' links.
    pub load: f64,
    /// AVG_MESSAGE_PER_QP: flows for each pair of hosts that is drawn.
    pub per_pair: u32,
    /// INCAST_MIX: flows of an incast beside the others.
    pub incast_mix: u32,
    /// INCAST_LOAD of the receiver's link.
    pub incast_load: f64,
    /// INCAST_CDF: the distribution of incasts' sizes.
    pub incast_cdf: u32,
    /// INCAST_INTERVAL in microseconds.
    pub incast_interval_us: u32,
    /// INCAST_TIME: how many incasts there are.
    pub incast_time: u32,
    /// INCAST_SCALE: the share of hosts that send in an incast.
    pub incast_scale: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            from_file: true,
            windows: false,
            config_file: None,
            ack_mode: 1,
            win_m: 1.5,
            ack_th_m: 0.0,
            byte_counter: 1,
            credit_interval_us: 10.0,
            only_tors: false,
            syn_timeout_us: 1000,
            dst_pause: true,
            pause_at: 1.5,
            symmetric: false,
            rto_us: 5000,
            own_pairs: false,
            seed: 1,
            flow_cdf: 4,
            flow_num: 0,
            load: 0.8,
            per_pair: 1,
            incast_mix: 0,
            incast_load: 0.5,
            incast_cdf: 9,
            incast_interval_us: 30,
            incast_time: 0,
            incast_scale: 1.0,
        }
    }
}

/// What is done otherwise than the configuration says.
pub fn notes(config: &Config) -> Vec<Problem> {
    let note = |key: &str, message: &str| config.problem(key, message);
    let mut notes = Vec::new();
    if config.floodgate.symmetric {
        let message = "ACKs choose among equal paths by a hash of their own, and do not take the path of their data";
        notes.push(note("SYMMETRIC_ROUTING_MODE", message));
    }
    if config.floodgate.windows && config.floodgate.dst_pause {
        let message = "switches pause each other, too, where their memory runs out; with SRCTOR_DST_PFC 1 those of the reference do not";
        notes.push(note("SRCTOR_DST_PFC", message));
    }
    notes
}

const QUEUE_PAIRS: &str = "queue pairs of several messages are not in this front end";
const MONITOR: &str = "files of monitors are not written";
const DRILL: &str = "only ROUTING_MODE 1 uses it";

/// A key that is honoured.
const fn key(
    name: &'static str,
    form: &'static str,
    example: &'static str,
    default: &'static str,
    meaning: &'static str,
    read: fn(&mut Config, &mut Value<'_, '_>) -> Result<(), Problem>,
) -> Key {
    Key { name, form, example, default: Some(default), meaning, effect: Effect::Honoured, read }
}

/// What such a key takes.
const FACTOR: &str = "a number from 0 to 1000";

fn factor(value: &mut Value<'_, '_>, slot: &mut f64) -> Result<(), Problem> {
    value.number(slot, |number| (0.0..=1000.0).contains(&number), "")
}

static KEYS: &[Key] = &[
    key(
        "USE_DYNAMIC_PFC_THRESHOLD",
        FLAG,
        "1",
        "1",
        "whether what SRCTOR_DST_PFC goes by follows the free memory",
        |config, value| value.flag(&mut config.use_dynamic_pfc_threshold),
    ),
    key("USE_FLOODGATE", FLAG, "1", "0", "whether switches have windows towards destinations", |config, value| {
        config.floodgate.windows = value.integer()? == 1;
        Ok(())
    }),
    Key {
        name: "FLOODGATE_CONFIG_FILE",
        form: PATH,
        example: "mix/floodgate.cfg",
        default: None,
        meaning: "which switches have windows, and how many queues for what is beyond them",
        effect: Effect::Honoured,
        read: |config, value| value.optional_path(&mut config.floodgate.config_file),
    },
    key(
        "SWTICH_ACK_MODE",
        "1 or 2",
        "2",
        "1",
        "whether windows are given back by destination or by port",
        |config, value| value.whole(&mut config.floodgate.ack_mode, 0..=2, ""),
    ),
    key(
        "SWITCH_WIN_M",
        "a number from 1 to 100",
        "1.5",
        "1.5",
        "a window, in bandwidth-delay products of the next link",
        |config, value| value.number(&mut config.floodgate.win_m, |number| (1.0..=100.0).contains(&number), ""),
    ),
    key(
        "SWITCH_ACK_TH_M",
        FACTOR,
        "1.5",
        "0",
        "what may wait for a destination before its windows are kept back, in bandwidth-delay products",
        |config, value| factor(value, &mut config.floodgate.ack_th_m),
    ),
    key(
        "SWTICH_BYTE_COUNTER",
        "a whole number from 0 to 100000000",
        "10240",
        "1",
        "bytes that are given back together; 1 gives every packet back by itself",
        |config, value| value.whole(&mut config.floodgate.byte_counter, 0..=100_000_000, ""),
    ),
    key(
        "SWTICH_CREDIT_INTERVAL",
        "a number of microseconds from 0 to 10000",
        "10",
        "10",
        "after how long fewer are given back",
        |config, value| value.number(&mut config.floodgate.credit_interval_us, |us| (0.0..=10_000.0).contains(&us), ""),
    ),
    key(
        "RESET_ONLY_TOR_SWITCH_WIN",
        FLAG,
        "0",
        "0",
        "whether only first and last switches have windows",
        |config, value| {
            config.floodgate.only_tors = value.integer()? == 1;
            Ok(())
        },
    ),
    Key::without_effect(
        "SWITCH_ABSOLUTE_PSN",
        "0",
        "whether windows survive losses",
        "windows are given back by sequence numbers here, which survive losses in any case",
    ),
    key(
        "SWITCH_SYN_TIMEOUT_US",
        "a whole number of microseconds up to 10000000",
        "1000",
        "1000",
        "when a window that has not come back is asked for; 0 is the default",
        |config, value| value.whole(&mut config.floodgate.syn_timeout_us, 0..=10_000_000, ""),
    ),
    key(
        "SRCTOR_DST_PFC",
        FLAG,
        "0",
        "1",
        "whether first switches pause senders by destination, and switches do not pause each other",
        |config, value| value.flag(&mut config.floodgate.dst_pause),
    ),
    key(
        "PFC_TH_STATIC",
        FACTOR,
        "1.5",
        "1.5",
        "what a first switch holds for a destination before it pauses a sender, in bandwidth-delay products",
        |config, value| factor(value, &mut config.floodgate.pause_at),
    ),
    Key::without_effect(
        "PFC_DST_ALHPA",
        "8",
        "the dynamic threshold of PFC by destination",
        "only SRCTOR_DST_PFC 1 with USE_DYNAMIC_PFC_THRESHOLD 1 uses it, which cannot be run",
    ),
    Key::off(
        "ROUTING_MODE",
        "0",
        "ECMP per flow or DRILL",
        "its DRILL comes with hosts that take packets in any order, which are not in this front end; a scenario has them, by load_balancing = \"drill\" and transport = \"irn\"",
    ),
    Key::without_effect("DRILL_LOAD_MODE", "1", "what DRILL takes for load", DRILL),
    Key::without_effect("QUEUE_STATISTIC_INTERVAL_US", "100", "how often DRILL looks", DRILL),
    key(
        "SYMMETRIC_ROUTING_MODE",
        FLAG,
        "0",
        "0",
        "whether ACKs take the path of their data back; here they choose by a hash of their own, and a note says so",
        |config, value| value.flag(&mut config.floodgate.symmetric),
    ),
    Key::without_effect(
        "NACK_REACTION",
        "0",
        "whether a sender goes back at once when a packet is missing",
        "a sender goes back here in any case; with 0 the reference waits for RTO_us",
    ),
    key(
        "RTO_us",
        "a whole number of microseconds up to 10000000",
        "0",
        "5000",
        "after how long a sender starts over; 0 is never",
        |config, value| value.whole(&mut config.floodgate.rto_us, 0..=10_000_000, ""),
    ),
    Key::off("QP_MODE", "0", "whether messages share queue pairs", QUEUE_PAIRS),
    key(
        "RESET_PER_QP_MSG",
        FLAG,
        "0",
        "0",
        "whether results name every flow as a queue pair of its own",
        |config, value| {
            config.floodgate.own_pairs = value.integer()? == 1;
            Ok(())
        },
    ),
    Key::without_effect("RESET_QP_RATE", "0", "whether a message starts at line rate", "only QP_MODE 1 uses it"),
    key("FLOW_FROM_FILE", FLAG, "1", "0", "whether flows are read from FLOW_FILE, and not drawn", |config, value| {
        value.flag(&mut config.floodgate.from_file)
    }),
    key(
        "FLOW_CDF",
        COUNT,
        "4",
        "4",
        "the distribution of sizes, by the file in distribution/ that it stands for, or 99 for incasts alone",
        |config, value| value.whole(&mut config.floodgate.flow_cdf, ANY_32_BITS, ""),
    ),
    key(
        "FLOW_NUM",
        "a whole number up to 10000000",
        "50000",
        "0",
        "how many flows are drawn beside incasts",
        |config, value| value.whole(&mut config.floodgate.flow_num, 0..=10_000_000, ""),
    ),
    key("LOAD", "a number above 0 and up to 10", "0.8", "0.8", "the load of the hosts' links", |config, value| {
        value.number(&mut config.floodgate.load, |load| load > 0.0 && load <= 10.0, "")
    }),
    key(
        "SEED",
        COUNT,
        "1",
        "1",
        "the seed of when and from whom incasts come; all else is drawn from fixed streams",
        |config, value| value.whole(&mut config.floodgate.seed, ANY_32_BITS, ""),
    ),
    key("AVG_MESSAGE_PER_QP", COUNT, "1", "1", "flows for each pair of hosts that is drawn", |config, value| {
        value.whole(&mut config.floodgate.per_pair, ANY_32_BITS, "")
    }),
    key(
        "INCAST_MIX",
        "a whole number up to 1000000",
        "720",
        "0",
        "flows of an incast beside the others",
        |config, value| value.whole(&mut config.floodgate.incast_mix, 0..=1_000_000, ""),
    ),
    key(
        "INCAST_LOAD",
        "a number from 0 to 10",
        "0.5",
        "0.5",
        "the load of incasts on the receiver's link",
        |config, value| value.number(&mut config.floodgate.incast_load, |load| (0.0..=10.0).contains(&load), ""),
    ),
    key(
        "INCAST_CDF",
        COUNT,
        "9",
        "9",
        "the distribution of incasts' sizes; 9 is 30 to 40 packets at 100 Gb/s",
        |config, value| value.whole(&mut config.floodgate.incast_cdf, ANY_32_BITS, ""),
    ),
    key(
        "INCAST_INTERVAL",
        "a whole number of microseconds up to 10000000",
        "30",
        "30",
        "how long after one the next of FLOW_CDF 99's incasts comes",
        |config, value| value.whole(&mut config.floodgate.incast_interval_us, 0..=10_000_000, ""),
    ),
    key("INCAST_TIME", "a whole number up to 100000", "1", "0", "how many incasts FLOW_CDF 99 has", |config, value| {
        value.whole(&mut config.floodgate.incast_time, 0..=100_000, "")
    }),
    key(
        "INCAST_SCALE",
        "a share above 0 and up to 1",
        "1",
        "1",
        "the share of hosts that send in FLOW_CDF 99's incasts",
        |config, value| value.number(&mut config.floodgate.incast_scale, |share| share > 0.0 && share <= 1.0, ""),
    ),
    Key::without_effect(
        "INCAST_FLOW_SIZE",
        "1",
        "the size of an incast's flows",
        "only AVG_MESSAGE_PER_QP 0 uses it, which cannot be run",
    ),
    Key::monitor("BW_OUTPUT_FILE", "bw.txt", "where throughput is written"),
    Key::monitor("QUEUEING_OUTPUT_FILE", "queuing.txt", "where queueing delays are written"),
    Key::monitor("REALTIME_BUFFER_BW_FILE", "realtime", "where throughput and memory over time are written"),
    Key::monitor("QLEN_MON_FILE", "qlen.txt", "where queue lengths are written, in a form of its own"),
    Key::without_effect("QLEN_MON_START", "2000000000", "when queue lengths are looked at first", MONITOR),
    Key::without_effect("QLEN_MON_END", "2010000000", "when queue lengths are looked at last", MONITOR),
    Key::without_effect("OUTPUT_REALTIME_BUFFER", "0", "whether memory over time is written", MONITOR),
    Key::without_effect("BW_INTERVAL", "10", "how often throughput is written", MONITOR),
    Key::without_effect("BUFFER_INTERVAL", "10", "how often memory is written", MONITOR),
];
