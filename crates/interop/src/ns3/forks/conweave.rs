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
    without_flows: None,
    size_bits: 32,
    ports: Ports::PerHost,
    any_order: false,
    link_header: 14,
    ack_size: 60,
    headroom: 3,
    shift: 3,
    results: Results::Numbers,
    differs: None,
};

const LB: &str = "0 (ECMP), 2 (DRILL), 3 (CONGA), 6 (LetFlow) or 9 (ConWeave)";
const MICROSECONDS: &str = "a whole number of microseconds up to 1000000000";

static KEYS: &[Key] = &[
    Key {
        name: "LB_MODE",
        form: LB,
        example: "0",
        default: Some("0"),
        meaning: "the load balancing; in a scenario scheme.load_balancing",
        effect: Effect::Honoured,
        read: |config, value| value.lb_mode(&mut config.lb_mode),
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
    Key {
        name: "ENABLE_IRN",
        form: FLAG,
        example: "0",
        default: Some("0"),
        meaning: "whether hosts recover from losses as IRN does",
        effect: Effect::Honoured,
        read: |config, value| value.flag(&mut config.enable_irn),
    },
    Key {
        name: "RANDOM_SEED",
        form: "a whole number of at least 1 and at most 32 bits",
        example: "1",
        default: Some("1"),
        meaning: "the seed of marks, losses and load balancing",
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
    Key {
        name: "CONWEAVE_TX_EXPIRY_TIME",
        form: MICROSECONDS,
        example: "1000",
        default: Some("1000"),
        meaning: "after how long a silence ConWeave begins an epoch, in microseconds",
        effect: Effect::Honoured,
        read: |config, value| value.microseconds(&mut config.conweave.silence),
    },
    Key {
        name: "CONWEAVE_REPLY_TIMEOUT_EXTRA",
        form: MICROSECONDS,
        example: "4",
        default: Some("4"),
        meaning: "what ConWeave adds to a reply's deadline, in microseconds",
        effect: Effect::Honoured,
        read: |config, value| value.microseconds(&mut config.conweave.reply),
    },
    Key {
        name: "CONWEAVE_PATH_PAUSE_TIME",
        form: MICROSECONDS,
        example: "8",
        default: Some("8"),
        meaning: "how long ConWeave avoids a path, in microseconds",
        effect: Effect::Honoured,
        read: |config, value| value.microseconds(&mut config.conweave.avoid),
    },
    Key {
        name: "CONWEAVE_EXTRA_VOQ_FLUSH_TIME",
        form: MICROSECONDS,
        example: "32",
        default: Some("32"),
        meaning: "what ConWeave adds to a flush, in microseconds",
        effect: Effect::Honoured,
        read: |config, value| value.microseconds(&mut config.conweave.margin),
    },
    Key {
        name: "CONWEAVE_DEFAULT_VOQ_WAITING_TIME",
        form: MICROSECONDS,
        example: "500",
        default: Some("500"),
        meaning: "ConWeave's first flush, in microseconds",
        effect: Effect::Honoured,
        read: |config, value| value.microseconds(&mut config.conweave.wait),
    },
    Key::without_effect("FLOW_INPUT_FILE", "in.txt", "where flows would be logged", "the reference leaves it empty"),
    Key::monitor("CNP_OUTPUT_FILE", "cnp.txt", "where notifications are counted"),
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
    Key::monitor("VOQ_MON_FILE", "voq.txt", "where ConWeave's queues are counted"),
    Key::monitor("VOQ_MON_DETAIL_FILE", "voq_detail.txt", "the same by destination"),
    Key::monitor("UPLINK_MON_FILE", "uplink.txt", "where the bytes of uplinks are written"),
    Key::monitor("CONN_MON_FILE", "conn.txt", "where queue pairs are counted"),
    Key {
        name: "SW_MONITORING_INTERVAL",
        form: "a whole number of nanoseconds of at least 1",
        example: "10000",
        default: Some("10000"),
        meaning: "how often monitors look, in nanoseconds; with IRN that moves senders",
        effect: Effect::Honoured,
        read: |config, value| {
            value.whole(&mut config.monitor_every_ns, 1..=u64::from(u32::MAX), "the run never goes on with 0")
        },
    },
    Key::without_effect("LOAD", "50", "the load for which the flows were made", "the flows are those of FLOW_FILE"),
];
