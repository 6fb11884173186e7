//! SimAI's simulator (ns-3-alibabacloud; Wang et al., NSDI 2025): servers whose GPUs are joined by NVSwitches, flows from ASTRA-sim.

use super::Column::{Destination, Port, Priority, Size, Source, Start};
use super::{Fork, Ports, Rates, Results};
use crate::ns3::config::key::*;
use crate::ns3::tokens::MAX_SECONDS;

/// The simulator.
pub static FORK: Fork = Fork {
    name: "SimAI's simulator",
    home: "aliyun/ns-3-alibabacloud",
    keys: KEYS,
    defaults: |_| {},
    check: |config| {
        let missing = |key: &str, what: &str, remedy: &str| {
            let message = format!("{key} is missing: SimAI is given {what} on its command line");
            (!config.is_given(key)).then(|| config.problem(key, message).help(format!("write {key} and {remedy}")))
        };
        missing(
            "TOPOLOGY_FILE",
            "the topology",
            "the file that SimAI has after -n, or give it here, too: --topology FILE, or -n FILE",
        )
        .into_iter()
        .collect()
    },
    counts: &["nodes", "GPUs per server", "NVSwitches", "switches", "links", "GPU type"],
    link_fields: 5,
    rates: Rates::WithUnit,
    flow: &[Source, Destination, Priority, Port, Size, Start],
    without_flows: Some(NO_FLOWS),
    size_bits: 63,
    ports: Ports::PerPair,
    any_order: false,
    link_header: 14,
    ack_size: 60,
    headroom: 3,
    shift: 3,
    results: Results::Addresses,
    differs: Some(
        "flows are those of a flow file and not of a workload, of two equally short paths the one by an NVSwitch is not preferred, and monitors are not written",
    ),
};

/// What to say of a flow file that is not there.
const NO_FLOWS: &str = "SimAI's flows come from its workload (-w), which it turns into collectives; here they are lines of source, destination, priority, port, bytes \
     and start after their number: name the file with --flows FILE. Collectives themselves are part of scenarios (docs/traffic.md)";

const MONITOR: &str = "files of monitors are not written";

static KEYS: &[Key] = &[
    Key {
        name: "SIMULATOR_STOP_TIME",
        form: "a number of seconds above 0",
        example: "2.5",
        default: Some("3.01"),
        meaning: "when the run ends, in seconds; above 18000000 is never",
        effect: Effect::Honoured,
        read: |config, value| {
            value.number(&mut config.simulator_stop_time_s, |s| s > 0.0, "")?;
            config.simulator_stop_time_s = config.simulator_stop_time_s.min(MAX_SECONDS);
            Ok(())
        },
    },
    Key::monitor("QLEN_MON_FILE", "qlen.txt", "where queue lengths are written"),
    Key::monitor("BW_MON_FILE", "bw.txt", "where throughput is written"),
    Key::monitor("RATE_MON_FILE", "rate.txt", "where rates of queue pairs are written"),
    Key::monitor("CNP_MON_FILE", "cnp.txt", "where notifications are counted"),
    Key::without_effect("MON_START", "0", "when monitors begin", MONITOR),
    Key::without_effect("MON_END", "20000", "when monitors end", MONITOR),
    Key::without_effect("QP_MON_INTERVAL", "100", "how often queue pairs are looked at", MONITOR),
    Key::without_effect("QLEN_MON_INTERVAL", "10000", "how often queues are looked at", MONITOR),
    Key::without_effect("BW_MON_INTERVAL", "10000", "how often throughput is looked at", MONITOR),
];
