//! ConWeave's simulator (Song et al., SIGCOMM 2023): load balancing, IRN, switches of another make.

use super::Column::{Destination, Priority, Size, Source, Start};
use super::{Fork, Ports, Rates, Results};
use crate::ns3::config::key::*;
use crate::ns3::tokens::MAX_SECONDS;

/// The simulator.
pub static FORK: Fork = Fork {
    name: "ConWeave's simulator",
    home: "conweave-project/conweave-ns3",
    keys: KEYS,
    defaults: |config| {
        config.rp_timer_us = 300.0;
        config.fast_recovery_times = 1;
        config.simulator_stop_time_s = 12.5;
        config.buffer_size_mib = 0;
        config.enable_trace = false;
    },
    check: |_| Vec::new(),
    counts: &["nodes", "switches", "links"],
    link_fields: 5,
    rates: Rates::WithUnit,
    flow: &[Source, Destination, Priority, Size, Start],
    size_bits: 32,
    ports: Ports::PerHost,
    results: Results::Numbers,
    differs: None,
};

const LB: &str = "0 (ECMP per flow)";
const ONLY_CONWEAVE: &str = "only LB_MODE 9 uses it";
const MONITOR: &str = "what it monitors is not written; completion times and pauses are";

static KEYS: &[Key] = &[
    Key {
        name: "LB_MODE",
        form: LB,
        example: "0",
        default: Some("0"),
        meaning: "the load balancing",
        effect: Effect::Off("DRILL, CONGA, LetFlow and ConWeave itself are not in this front end"),
        read: |_, value| {
            let token = value.token()?;
            let scheme = match token.text {
                "0" => return Ok(()),
                "2" => "DRILL",
                "3" => "CONGA",
                "6" => "LetFlow",
                "9" => "ConWeave",
                _ => {
                    let message = format!(
                        "LB_MODE {} is not 0 (ECMP), 2 (DRILL), 3 (CONGA), 6 (LetFlow) or 9 (ConWeave)",
                        token.quoted()
                    );
                    return Err(token.problem(value.tokens.file(), message).help("write LB_MODE 0 for ECMP per flow"));
                }
            };
            let message = format!("LB_MODE {} asks for {scheme}, which this front end does not have", token.text);
            Err(token.problem(value.tokens.file(), message).help("only LB_MODE 0, ECMP per flow, can be run"))
        },
    },
    Key {
        name: "ENABLE_PFC",
        form: FLAG,
        example: "1",
        default: Some("1"),
        meaning: "whether switches pause their neighbours",
        effect: Effect::Honoured,
        read: |config, value| value.flag(&mut config.enable_pfc),
    },
    Key::off(
        "ENABLE_IRN",
        "0",
        "whether hosts recover from losses as IRN does",
        "IRN's selective repeat is not in this front end",
    ),
    Key {
        name: "RANDOM_SEED",
        form: "a whole number of at least 1 and at most 32 bits",
        example: "1",
        default: Some("1"),
        meaning: "the seed of marks and losses",
        effect: Effect::Honoured,
        read: |config, value| {
            value.whole(&mut config.random_seed, 1..=u64::from(u32::MAX), "a generator of zeros gives zeros")
        },
    },
    Key {
        name: "FLOWGEN_START_TIME",
        form: "a number of seconds from 0 to 18000000",
        example: "2.0",
        default: Some("2"),
        meaning: "from when LINK_DOWN's time counts, in seconds",
        effect: Effect::Honoured,
        read: |config, value| value.number(&mut config.flows_begin_s, |s| (0.0..=MAX_SECONDS).contains(&s), ""),
    },
    Key {
        name: "FLOWGEN_STOP_TIME",
        form: "a number of seconds from 0 to 17999990",
        example: "2.1",
        default: Some("2.5"),
        meaning: "ten seconds before the run ends at the latest",
        effect: Effect::Honoured,
        read: |config, value| {
            value.number(&mut config.simulator_stop_time_s, |s| (0.0..=MAX_SECONDS - 10.0).contains(&s), "")?;
            config.simulator_stop_time_s += 10.0;
            Ok(())
        },
    },
    Key {
        name: "PAUSE_TIME",
        form: "a number of microseconds of at least 1",
        example: "5",
        default: Some("5"),
        meaning: "how long a pause lasts, in whole microseconds",
        effect: Effect::Honoured,
        read: |config, value| {
            value.number(&mut config.pause_time_us, |us| (1.0..=1e9).contains(&us), "a pause of 0 is a resume")
        },
    },
    Key {
        name: "BUFFER_SIZE",
        form: "a whole number of MiB up to 4095",
        example: "9",
        default: Some("0"),
        meaning: "the memory of a switch, in MiB; 0 is 375 KB for each port",
        effect: Effect::Honoured,
        read: |config, value| {
            value.whole(&mut config.buffer_size_mib, 0..=4095, "the reference counts its bytes in 32 bits")
        },
    },
    Key::without_effect(
        "CONWEAVE_TX_EXPIRY_TIME",
        "1000",
        "how long ConWeave waits for CLEAR, in microseconds",
        ONLY_CONWEAVE,
    ),
    Key::without_effect(
        "CONWEAVE_REPLY_TIMEOUT_EXTRA",
        "4",
        "what ConWeave adds to a reply's deadline, in microseconds",
        ONLY_CONWEAVE,
    ),
    Key::without_effect(
        "CONWEAVE_PATH_PAUSE_TIME",
        "16",
        "how long ConWeave avoids a path, in microseconds",
        ONLY_CONWEAVE,
    ),
    Key::without_effect(
        "CONWEAVE_EXTRA_VOQ_FLUSH_TIME",
        "64",
        "what ConWeave adds to a flush, in microseconds",
        ONLY_CONWEAVE,
    ),
    Key::without_effect(
        "CONWEAVE_DEFAULT_VOQ_WAITING_TIME",
        "400",
        "ConWeave's first flush, in microseconds",
        ONLY_CONWEAVE,
    ),
    Key::without_effect("FLOW_INPUT_FILE", "in.txt", "where flows would be logged", "the reference leaves it empty"),
    Key::without_effect("CNP_OUTPUT_FILE", "cnp.txt", "where notifications are counted", MONITOR),
    Key::without_effect(
        "EST_ERROR_MON_FILE",
        "est_error.txt",
        "where ConWeave's estimates are logged",
        "the reference does not write it",
    ),
    Key::without_effect(
        "QLEN_MON_FILE",
        "qlen.txt",
        "where queue lengths would be written",
        "the reference does not write it",
    ),
    Key::without_effect(
        "QLEN_MON_START",
        "2.0",
        "when watching queues would begin",
        "the reference does not watch them",
    ),
    Key::without_effect("QLEN_MON_END", "2.1", "when watching queues would end", "the reference does not watch them"),
    Key::without_effect("VOQ_MON_FILE", "voq.txt", "where ConWeave's queues are counted", ONLY_CONWEAVE),
    Key::without_effect("VOQ_MON_DETAIL_FILE", "voq_detail.txt", "the same by destination", ONLY_CONWEAVE),
    Key::without_effect("UPLINK_MON_FILE", "uplink.txt", "where the bytes of uplinks are written", MONITOR),
    Key::without_effect("CONN_MON_FILE", "conn.txt", "where queue pairs are counted", MONITOR),
    Key::without_effect("SW_MONITORING_INTERVAL", "10000", "how often monitors look, in nanoseconds", MONITOR),
    Key::without_effect("LOAD", "50", "the load for which the flows were made", "the flows are those of FLOW_FILE"),
];
