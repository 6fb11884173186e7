//! Floodgate's simulator (Liu et al., CoNEXT 2021): windows between switches, flows from its own generators.

use super::Column::{Destination, Size, Source, Start};
use super::{Fork, Ports, Rates, Results};
use crate::ns3::config::key::*;

/// The simulator.
pub static FORK: Fork = Fork {
    name: "Floodgate's simulator",
    home: "NASA-NJU/Floodgate-NS3",
    keys: KEYS,
    defaults: |config| config.flow_from_file = false,
    check: |config| {
        if config.flow_from_file {
            return Vec::new();
        }
        let message = "FLOW_FROM_FILE 0 has the simulator draw flows with generators of its own, which are not here";
        let remedy = "write FLOW_FROM_FILE 1 and the flows in FLOW_FILE: their number and 0, then source, destination, bytes and start of each";
        vec![config.problem("FLOW_FROM_FILE", message).help(remedy)]
    },
    counts: &["nodes", "switches", "hosts per rack", "ToRs", "cores", "links"],
    link_fields: 4,
    rates: Rates::Plain,
    flow: &[Source, Destination, Size, Start],
    size_bits: 32,
    ports: Ports::PerSource,
    results: Results::Tabs,
    differs: Some("switches are those of the HPCC authors' simulator, and ideal times are computed as there"),
};

const GENERATORS: &str = "only its own generators of flows use it";
const WINDOWS: &str = "only USE_FLOODGATE 1 uses it";
const DRILL: &str = "only ROUTING_MODE 1 uses it";
const MONITOR: &str = "files of monitors are not written";

static KEYS: &[Key] = &[
    Key::off(
        "USE_FLOODGATE",
        "0",
        "whether switches have windows towards destinations",
        "Floodgate's switches are not in this front end; a scenario with preset = \"floodgate\" has them",
    ),
    Key::off(
        "SRCTOR_DST_PFC",
        "0",
        "whether the first switch pauses senders by destination",
        "PFC by destination is not in this front end",
    ),
    Key::off("ROUTING_MODE", "0", "ECMP per flow or DRILL", "DRILL is not in this front end"),
    Key::off(
        "SYMMETRIC_ROUTING_MODE",
        "0",
        "whether ACKs take the path of their data back",
        "ACKs choose their path by a hash of their own here",
    ),
    Key::off(
        "NACK_REACTION",
        "0",
        "whether a NACK lowers the rate",
        "a rate that follows NACKs is not in this front end",
    ),
    Key::off(
        "RTO_us",
        "0",
        "after how long senders start over, in microseconds",
        "a timeout of senders is not in this front end",
    ),
    Key::off(
        "QP_MODE",
        "0",
        "whether messages share queue pairs",
        "queue pairs of several messages are not in this front end",
    ),
    Key::off(
        "RESET_PER_QP_MSG",
        "0",
        "whether a message starts its queue pair anew",
        "queue pairs of several messages are not in this front end",
    ),
    Key::off(
        "RESET_QP_RATE",
        "0",
        "whether a message starts at line rate",
        "queue pairs of several messages are not in this front end",
    ),
    Key::off("PFC_TH_STATIC", "0", "a fixed pause threshold in bytes", "fixed thresholds are not in this front end"),
    Key {
        name: "FLOW_FROM_FILE",
        form: FLAG,
        example: "1",
        default: Some("0"),
        meaning: "whether flows are read from FLOW_FILE, and not drawn",
        effect: Effect::Honoured,
        read: |config, value| value.flag(&mut config.flow_from_file),
    },
    Key::without_effect("FLOODGATE_CONFIG_FILE", "floodgate.cfg", "which switches have windows", WINDOWS),
    Key::without_effect("SWTICH_ACK_MODE", "2", "how windows are given back", WINDOWS),
    Key::without_effect("SWITCH_WIN_M", "1.5", "the size of windows", WINDOWS),
    Key::without_effect("SWITCH_ACK_TH_M", "1.5", "when windows are given back", WINDOWS),
    Key::without_effect("RESET_ONLY_TOR_SWITCH_WIN", "0", "whether only ToRs have windows", WINDOWS),
    Key::without_effect("SWTICH_BYTE_COUNTER", "10240", "bytes for each that is given back", WINDOWS),
    Key::without_effect("SWTICH_CREDIT_INTERVAL", "10", "how often windows are given back", WINDOWS),
    Key::without_effect("SWITCH_ABSOLUTE_PSN", "0", "whether windows survive losses", WINDOWS),
    Key::without_effect("SWITCH_SYN_TIMEOUT_US", "0", "when a lost window is asked for", WINDOWS),
    Key::without_effect("PFC_DST_ALHPA", "1", "the threshold of PFC by destination", "only SRCTOR_DST_PFC 1 uses it"),
    Key::without_effect("DRILL_LOAD_MODE", "1", "what DRILL takes for load", DRILL),
    Key::without_effect("QUEUE_STATISTIC_INTERVAL_US", "100", "how often DRILL looks", DRILL),
    Key::without_effect("FLOW_CDF", "4", "the distribution of sizes", GENERATORS),
    Key::without_effect("FLOW_NUM", "50000", "how many flows are drawn", GENERATORS),
    Key::without_effect("LOAD", "0.8", "the load of flows that are drawn", GENERATORS),
    Key::without_effect("SEED", "1", "the seed of flows that are drawn", GENERATORS),
    Key::without_effect("AVG_MESSAGE_PER_QP", "1", "messages of a queue pair", GENERATORS),
    Key::without_effect("INCAST_MIX", "720", "flows of an incast", GENERATORS),
    Key::without_effect("INCAST_LOAD", "0.5", "the load of incasts", GENERATORS),
    Key::without_effect("INCAST_CDF", "9", "the distribution of incasts' sizes", GENERATORS),
    Key::without_effect("INCAST_INTERVAL", "30", "how often there is an incast", GENERATORS),
    Key::without_effect("INCAST_TIME", "1", "how many incasts there are", GENERATORS),
    Key::without_effect("INCAST_SCALE", "1", "how many send in an incast", GENERATORS),
    Key::without_effect("INCAST_FLOW_SIZE", "1", "the size of an incast's flows", GENERATORS),
    Key::monitor("BW_OUTPUT_FILE", "bw.txt", "where throughput is written"),
    Key::monitor("QUEUEING_OUTPUT_FILE", "queuing.txt", "where queueing delays are written"),
    Key::monitor("REALTIME_BUFFER_BW_FILE", "realtime", "where throughput and memory over time are written"),
    Key::without_effect("OUTPUT_REALTIME_BUFFER", "0", "whether memory over time is written", MONITOR),
    Key::without_effect("BW_INTERVAL", "10", "how often throughput is written", MONITOR),
    Key::without_effect("BUFFER_INTERVAL", "10", "how often memory is written", MONITOR),
];
