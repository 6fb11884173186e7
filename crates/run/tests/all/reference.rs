//! The `ns3` front end against the simulator it stands in for: the same files in, the same bytes out.
//!
//! What is expected is output of the HPCC authors' simulator, commit 9f4be2a, and of ConWeave's, commit 236a801. Small runs have their
//! `fct.txt` here in full; of the large ones, and of most `pfc.txt`, only a digest is kept.

use fabric::Outcome;
use fabric::routing::PortMap;
use interop::ns3::{self, output};
use std::path::{Path, PathBuf};

/// The configuration of plain DCQCN; every other run differs from it in a few keys.
const CONFIG: &str = "\
ENABLE_QCN 1
USE_DYNAMIC_PFC_THRESHOLD 1
PACKET_PAYLOAD_SIZE 1000
TOPOLOGY_FILE topology.txt
FLOW_FILE flow.txt
TRACE_FILE trace.txt
TRACE_OUTPUT_FILE mix.tr
FCT_OUTPUT_FILE fct.txt
PFC_OUTPUT_FILE pfc.txt
SIMULATOR_STOP_TIME 2.5
CC_MODE 1
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
CLAMP_TARGET_RATE 0
RP_TIMER 300
EWMA_GAIN 0.00390625
FAST_RECOVERY_TIMES 1
RATE_AI 20Mb/s
RATE_HAI 200Mb/s
MIN_RATE 1000Mb/s
DCTCP_RATE_AI 1000Mb/s
ERROR_RATE_PER_LINK 0.0000
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
L2_BACK_TO_ZERO 0
HAS_WIN 0
GLOBAL_T 1
VAR_WIN 0
FAST_REACT 0
U_TARGET 0.95
MI_THRESH 5
INT_MULTI 1
MULTI_RATE 0
SAMPLE_FEEDBACK 0
PINT_LOG_BASE 1.01
PINT_PROB 1.0
RATE_BOUND 1
ACK_HIGH_PRIO 1
LINK_DOWN 0 0 0
ENABLE_TRACE 0
KMAX_MAP 1 100000000000 1600
KMIN_MAP 1 100000000000 400
PMAX_MAP 1 100000000000 0.2
BUFFER_SIZE 12
QLEN_MON_FILE qlen.txt
QLEN_MON_START 3000000000
QLEN_MON_END 3000000000
";

/// A scheme's name and the keys in which it differs from [`CONFIG`].
type Scheme = (&'static str, &'static [(&'static str, &'static str)]);

const DCQCN: Scheme = ("dcqcn", &[]);
const DCQCN_ACK0: Scheme = ("dcqcn_ack0", &[("ACK_HIGH_PRIO", "0")]);
const DCQCN_WIN: Scheme = ("dcqcn_win", &[("HAS_WIN", "1"), ("VAR_WIN", "1"), ("ACK_HIGH_PRIO", "0")]);
const DCQCN_WIN_K100: Scheme = (
    "dcqcn_win_k100",
    &[
        ("HAS_WIN", "1"),
        ("VAR_WIN", "1"),
        ("ACK_HIGH_PRIO", "0"),
        ("KMAX_MAP", "1 100000000000 400"),
        ("KMIN_MAP", "1 100000000000 100"),
    ],
);
const HPCC: Scheme = (
    "hpcc",
    &[
        ("CC_MODE", "3"),
        ("RATE_AI", "40Mb/s"),
        ("RATE_HAI", "40Mb/s"),
        ("HAS_WIN", "1"),
        ("VAR_WIN", "1"),
        ("FAST_REACT", "1"),
        ("INT_MULTI", "4"),
        ("ACK_HIGH_PRIO", "0"),
    ],
);
const TIMELY: Scheme = ("timely", &[("CC_MODE", "7"), ("RATE_AI", "100Mb/s"), ("RATE_HAI", "500Mb/s")]);
const DCTCP: Scheme = (
    "dctcp",
    &[
        ("CC_MODE", "8"),
        ("EWMA_GAIN", "0.0625"),
        ("RATE_AI", "10Mb/s"),
        ("RATE_HAI", "10Mb/s"),
        ("DCTCP_RATE_AI", "615Mb/s"),
        ("HAS_WIN", "1"),
        ("VAR_WIN", "1"),
        ("ACK_HIGH_PRIO", "0"),
        ("KMAX_MAP", "1 100000000000 300"),
        ("KMIN_MAP", "1 100000000000 300"),
        ("PMAX_MAP", "1 100000000000 1.0"),
    ],
);

/// What the links of `crossroads` need: marks for two rates, and so little memory that neighbours are paused.
macro_rules! crossroads {
    ($($change:expr),* $(,)?) => {
        &[
            ("KMAX_MAP", "2 25000000000 100 100000000000 400"),
            ("KMIN_MAP", "2 25000000000 25 100000000000 100"),
            ("PMAX_MAP", "2 25000000000 0.2 100000000000 0.2"),
            ("BUFFER_SIZE", "1"),
            $($change),*
        ]
    };
}

/// HPCC-PINT, whose dice nobody seeds; half of the ACKs are acted on.
const PINT: Scheme = (
    "pint",
    crossroads![
        ("CC_MODE", "10"),
        ("RATE_AI", "40Mb/s"),
        ("HAS_WIN", "1"),
        ("VAR_WIN", "1"),
        ("FAST_REACT", "1"),
        ("PINT_LOG_BASE", "1.05"),
        ("PINT_PROB", "0.5"),
    ],
);
/// HPCC whose rate does not limit sending: a change of it shifts the next packet all the same.
const UNBOUND: Scheme = (
    "unbound",
    crossroads![
        ("CC_MODE", "3"),
        ("RATE_AI", "40Mb/s"),
        ("HAS_WIN", "1"),
        ("VAR_WIN", "1"),
        ("FAST_REACT", "1"),
        ("RATE_BOUND", "0"),
    ],
);
/// A link fails under load: queue pairs are listed anew in the order of a hash map, and memory leaks.
const DOWN: Scheme = ("down", crossroads![("LINK_DOWN", "30 6 9"), ("ACK_HIGH_PRIO", "0")]);
/// Losses repeat whole chunks: a flow of part of one never ends.
const CHUNKS: Scheme = ("chunks", crossroads![("L2_BACK_TO_ZERO", "1"), ("ERROR_RATE_PER_LINK", "0.002")]);
/// ACKs acknowledge nothing, and no flow ends.
const DEAF: Scheme = ("deaf", crossroads![("L2_ACK_INTERVAL", "0")]);
/// Timers of DCQCN that go off at the same instants.
const TIES: Scheme =
    ("ties", crossroads![("RP_TIMER", "4"), ("RATE_DECREASE_INTERVAL", "4"), ("CLAMP_TARGET_RATE", "1")]);

/// A configuration of ConWeave's simulator.
const WEAVE: &str = "\
TOPOLOGY_FILE topology.txt
FLOW_FILE flow.txt
FLOW_INPUT_FILE in.txt
CNP_OUTPUT_FILE cnp.txt
FCT_OUTPUT_FILE fct.txt
PFC_OUTPUT_FILE pfc.txt
QLEN_MON_FILE qlen.txt
VOQ_MON_FILE voq.txt
VOQ_MON_DETAIL_FILE voq_detail.txt
UPLINK_MON_FILE uplink.txt
CONN_MON_FILE conn.txt
EST_ERROR_MON_FILE est_error.txt
QLEN_MON_START 2.0
QLEN_MON_END 2.001
SW_MONITORING_INTERVAL 10000
FLOWGEN_START_TIME 2.0
FLOWGEN_STOP_TIME 2.001
BUFFER_SIZE 1
CC_MODE 1
LB_MODE 0
ENABLE_PFC 1
ENABLE_IRN 0
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
CLAMP_TARGET_RATE 0
RP_TIMER 300
FAST_RECOVERY_TIMES 1
EWMA_GAIN 0.00390625
RATE_AI 40Mb/s
RATE_HAI 100Mb/s
MIN_RATE 100Mb/s
ERROR_RATE_PER_LINK 0.0000
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
L2_BACK_TO_ZERO 0
RATE_BOUND 1
HAS_WIN 0
VAR_WIN 1
GLOBAL_T 1
ENABLE_QCN 1
PACKET_PAYLOAD_SIZE 1000
LINK_DOWN 0 0 0
KMAX_MAP 1 100000000000 400
KMIN_MAP 1 100000000000 100
PMAX_MAP 1 100000000000 0.2
LOAD 50
RANDOM_SEED 1
";

const WEAVE_DCQCN: Scheme = ("dcqcn", &[]);
const WEAVE_SEED_7: Scheme = ("dcqcn_seed7", &[("RANDOM_SEED", "7")]);
const WEAVE_HPCC: Scheme = ("hpcc", &[("CC_MODE", "3"), ("HAS_WIN", "1")]);
/// Flows that are shorter than the interval of ACKs never end, however often they are sent.
const WEAVE_INTERVAL: Scheme = ("interval", &[("L2_ACK_INTERVAL", "4000")]);

/// A load balancing of ConWeave's simulator, lossless.
macro_rules! weave {
    ($name:literal, $mode:literal $(, ($key:literal, $value:literal))*) => {
        ($name, &[("LB_MODE", $mode) $(, ($key, $value))*])
    };
}
/// The same with IRN.
macro_rules! weave_irn {
    ($name:literal, $mode:literal $(, ($key:literal, $value:literal))*) => {
        weave!($name, $mode, ("ENABLE_PFC", "0"), ("ENABLE_IRN", "1") $(, ($key, $value))*)
    };
}

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(path)
}

/// The scheme's configuration, with the files of one scenario.
fn config(base: &str, folder: &Path, topology: &Path, flows: &Path, (_, changes): Scheme) -> String {
    let mut text = String::new();
    for line in base.lines() {
        let (key, value) = line.split_once(' ').unwrap();
        let changed = changes.iter().find(|(name, _)| *name == key).map_or(value, |(_, value)| value);
        let value = match key {
            "TOPOLOGY_FILE" => topology.display().to_string(),
            "FLOW_FILE" => flows.display().to_string(),
            _ if key.ends_with("_FILE") => folder.join(changed).display().to_string(),
            _ => changed.to_string(),
        };
        text += &format!("{key} {value}\n");
    }
    text
}

/// What a run wrote.
struct Written {
    outcome: Outcome,
    fct: String,
    pfc: String,
    queues: String,
}

/// Runs a scheme on the scenario of that name; `fabric` is the one whose topology it has.
fn run(scenario: &str, fabric: &str, scheme: Scheme) -> Written {
    run_on(CONFIG, scenario, fabric, scheme)
}

/// The same with another configuration to begin with.
fn run_on(base: &str, scenario: &str, fabric: &str, scheme: Scheme) -> Written {
    run_in_order(base, scenario, fabric, scheme, None)
}

/// The same in our own order of ties, on so many threads, if a number is given.
fn run_in_order(base: &str, scenario: &str, fabric: &str, scheme: Scheme, ours: Option<usize>) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let (topology, flows) = (data(&format!("{fabric}/topology.txt")), data(&format!("{scenario}/flow.txt")));
    let file = folder.path().join("config.txt");
    std::fs::write(folder.path().join("trace.txt"), "0\n").unwrap();
    std::fs::write(&file, config(base, folder.path(), &topology, &flows, scheme)).unwrap();
    let inputs = ns3::read(&file).unwrap_or_else(|problem| panic!("{problem}"));
    let mut translated = ns3::translate::translate(&inputs).unwrap_or_else(|problem| panic!("{problem}"));
    if let Some(threads) = ours {
        translated = translated.in_our_order(&inputs.config, threads).unwrap_or_else(|problem| panic!("{problem}"));
    }
    let graph = translated.setup.graph.clone();
    let outcome = translated.run(&mut |_, _| true);
    assert_eq!(outcome.violations, Vec::<String>::new(), "{scenario} with {}", scheme.0);
    let results = inputs.config.fork.results;
    let map = PortMap::new(&graph);
    let (fct, pfc) = (output::fct(&outcome, results), output::pfc(&outcome, &graph, &map));
    let queues = output::queue_lengths(&outcome, &graph, &map);
    Written { outcome, fct, pfc, queues }
}

/// FNV-1a, 64 bits.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3))
}

/// The digest of an empty file.
const NOTHING: u64 = 0xcbf2_9ce4_8422_2325;

/// The first line in which two texts differ, so that a failure does not print them whole.
#[track_caller]
fn same_text(written: &str, expected: &str, what: &str) {
    let (mut ours, mut theirs) = (written.lines(), expected.lines());
    for number in 1.. {
        match (ours.next(), theirs.next()) {
            (None, None) => break,
            (ours, theirs) => assert_eq!(ours, theirs, "{what}, line {number}"),
        }
    }
    assert!(written == expected, "{what}: line ends");
}

#[track_caller]
fn small(scenario: &str, fabric: &str, schemes: &[Scheme]) {
    for &scheme in schemes {
        let expected = std::fs::read_to_string(data(&format!("{scenario}/{}.fct.txt", scheme.0))).unwrap();
        let written = run(scenario, fabric, scheme);
        same_text(&written.fct, &expected, &format!("{scenario} with {}", scheme.0));
        assert_eq!(written.pfc, "", "{scenario} with {}", scheme.0);
    }
}

#[track_caller]
fn large(scenario: &str, scheme: Scheme, flows: usize, fct: u64, pfc: u64) {
    let written = run(scenario, scenario, scheme);
    assert_eq!(written.outcome.finished.len(), flows, "{scenario} with {}", scheme.0);
    let digests = (digest(&written.fct), digest(&written.pfc));
    assert_eq!(digests, (fct, pfc), "{scenario} with {}: fct.txt and pfc.txt", scheme.0);
}

#[test]
fn the_digest_is_fnv_1a() {
    // Values from the authors' published test suite.
    assert_eq!((digest(""), digest("a"), digest("foobar")), (NOTHING, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8));
}

#[test]
fn isolated_flows_of_many_sizes_take_the_same_time() {
    small("probe", "clos64", &[DCQCN, DCQCN_WIN, HPCC, TIMELY, DCTCP]);
}

#[test]
fn two_long_flows_into_one_host_agree() {
    small("dumbbell", "dumbbell", &[DCQCN, HPCC]);
}

#[test]
fn sixteen_flows_into_one_host_agree() {
    small("incast16", "incast16", &[DCQCN, DCQCN_WIN, HPCC, TIMELY, DCTCP]);
}

/// A small run with pauses, and the digest of these.
#[track_caller]
fn paused(base: &str, scenario: &str, scheme: Scheme, pfc: u64) {
    let expected = std::fs::read_to_string(data(&format!("{scenario}/{}.fct.txt", scheme.0))).unwrap();
    let written = run_on(base, scenario, scenario, scheme);
    same_text(&written.fct, &expected, &format!("{scenario} with {}", scheme.0));
    assert_eq!(digest(&written.pfc), pfc, "{scenario} with {}: pfc.txt", scheme.0);
}

/// Six hosts, a second link between two switches that carries nothing, and flows in the queue of control frames.
#[test]
fn what_only_the_reference_does_is_done_as_there() {
    for (scheme, pfc) in [
        (PINT, 0xbeb1_f9e3_c4e1_f52b),
        (UNBOUND, 0xde3f_921d_66f2_6e2e),
        (DOWN, 0x4602_9938_1604_fa26),
        (CHUNKS, 0xe268_e6aa_63f5_7dcd),
        (DEAF, 0x204c_9df7_4292_86a9),
        (TIES, 0x720e_ad30_d0be_ce06),
    ] {
        paused(CONFIG, "crossroads", scheme, pfc);
    }
}

#[test]
fn conweaves_simulator_agrees_with_ecmp_in_its_pauses_too() {
    for (scheme, pfc) in [
        (WEAVE_DCQCN, 0xec12_9d52_afce_11cf),
        (WEAVE_SEED_7, 0xc0e5_09b3_3f61_98ed),
        (WEAVE_HPCC, 0x8b48_6197_e45f_976e),
        (WEAVE_INTERVAL, 0x3a82_476e_9371_1686),
    ] {
        paused(WEAVE, "weave", scheme, pfc);
    }
}

#[test]
fn load_balancers_of_conweaves_simulator_agree() {
    let cases: [(Scheme, u64); 4] = [
        (weave!("drill", "2"), 0x56ad_2bc1_cf30_6e3d),
        (weave!("conga", "3"), 0xded8_ad8e_29e1_5b01),
        (weave!("letflow", "6", ("RANDOM_SEED", "7")), 0xbca9_f2d0_744c_9fd3),
        (weave!("conweave", "9"), 0xd52d_5819_3e13_671d),
    ];
    cases.into_iter().for_each(|(scheme, pfc)| paused(WEAVE, "weave", scheme, pfc));
}

#[test]
fn irn_of_conweaves_simulator_agrees_under_every_load_balancing() {
    let cases: [Scheme; 5] = [
        weave_irn!("ecmp_irn", "0", ("ERROR_RATE_PER_LINK", "0.001")),
        weave_irn!("drill_irn", "2"),
        weave_irn!("conga_irn", "3", ("CC_MODE", "8")),
        weave_irn!("letflow_irn", "6"),
        weave_irn!("conweave_irn", "9", ("ERROR_RATE_PER_LINK", "0.001")),
    ];
    cases.into_iter().for_each(|scheme| paused(WEAVE, "weave", scheme, NOTHING));
}

/// What its simulator counts, by our names.
#[test]
fn conweave_counts_what_its_simulator_counts() {
    let count = |scheme: Scheme| {
        let switches = run_on(WEAVE, "weave", "weave", scheme).outcome.switches;
        let value = |name: &str| switches.iter().find(|counter| counter.name == name).unwrap().value;
        [
            "replies",
            "timely_replies",
            "clears",
            "timely_clears",
            "notifies",
            "reroutes",
            "reordered",
            "flushes",
            "flushes_by_tail",
        ]
        .map(|name| value(&format!("conweave_{name}")))
    };
    assert_eq!(count(weave!("conweave", "9")), [358, 295, 50, 50, 24, 47, 501, 21, 21]);
    let lossy: Scheme = weave_irn!("conweave_irn", "9", ("ERROR_RATE_PER_LINK", "0.001"));
    assert_eq!(count(lossy), [879, 846, 34, 34, 21, 28, 71, 7, 7]);
}

#[test]
fn half_loaded_clos_of_64_hosts_with_dcqcn_and_a_window_agrees() {
    large("clos64", DCQCN_WIN, 6710, 0x94dc_86b3_6a4a_887a, NOTHING);
}

#[test]
fn half_loaded_clos_of_64_hosts_with_hpcc_agrees() {
    large("clos64", HPCC, 6710, 0x8f3f_2553_6147_f7bd, NOTHING);
}

#[test]
fn half_loaded_clos_of_64_hosts_with_plain_dcqcn_agrees_in_its_pauses_too() {
    large("clos64", DCQCN, 6710, 0x1a64_729c_303d_d9c1, 0xbb07_b95c_a327_96ab);
}

#[test]
fn half_loaded_clos_of_64_hosts_with_early_marking_agrees() {
    large("clos64", DCQCN_WIN_K100, 6710, 0xb91c_797d_82ad_9c02, NOTHING);
}

#[test]
fn overloaded_clos_of_128_hosts_with_hpcc_agrees_in_its_pauses_too() {
    large("clos128", HPCC, 8380, 0x1e27_135f_8b6f_fd68, 0x1293_5744_d21a_e080);
}

#[test]
fn overloaded_clos_of_128_hosts_with_dcqcn_and_acks_among_the_data_agrees() {
    large("clos128", DCQCN_ACK0, 8380, 0x3dac_098c_8690_7299, 0x2442_441e_2331_fd43);
}

#[test]
fn overloaded_clos_of_128_hosts_with_dcqcn_and_a_window_agrees() {
    large("clos128", DCQCN_WIN, 8380, 0x97ba_f18b_fdad_1ad9, 0x3392_e08c_b894_b261);
}

#[test]
fn overloaded_clos_of_128_hosts_with_early_marking_agrees() {
    large("clos128", DCQCN_WIN_K100, 8380, 0xe911_95c4_ece2_cfee, 0x5be6_de65_0fb0_f6bc);
}

/// A paused host of the reference still sends ACKs with ACK_HIGH_PRIO 1. Switches charge them to the paused class,
/// and its headroom overflows. How many packets that costs depends on nearly everything, so it is worth a test.
#[test]
fn acks_that_ignore_pauses_lose_as_many_packets_as_in_the_reference() {
    let Written { outcome, .. } = run("clos128", "clos128", DCQCN);
    let unfinished = outcome.flows.len() - outcome.finished.len();
    assert_eq!((outcome.counts.dropped_full, unfinished), (28_892, 157));
}

/// The configuration with the monitor of queue lengths at work, in a run with pauses.
const WATCHED: Scheme = (
    "watched",
    &[
        ("QLEN_MON_START", "2000000000"),
        ("QLEN_MON_END", "2200000000"),
        ("SIMULATOR_STOP_TIME", "2.11"),
        ("BUFFER_SIZE", "4"),
    ],
);

#[test]
fn our_own_order_gives_the_same_files_on_any_number_of_threads() {
    for (scenario, scheme) in [("clos64", WATCHED), ("clos128", HPCC)] {
        let one = run_in_order(CONFIG, scenario, scenario, scheme, Some(1));
        assert_eq!(one.queues.is_empty(), scheme.0 != "watched");
        assert!(!one.pfc.is_empty(), "{scenario} with {} has no pauses", scheme.0);
        for threads in [2, 3] {
            let several = run_in_order(CONFIG, scenario, scenario, scheme, Some(threads));
            assert_eq!(several.outcome.exchange.shards, threads, "{scenario} with {}", scheme.0);
            same_text(&several.fct, &one.fct, "fct.txt");
            same_text(&several.pfc, &one.pfc, "pfc.txt");
            same_text(&several.queues, &one.queues, "qlen.txt");
        }
    }
}

#[test]
fn flows_that_meet_nobody_take_the_same_time_in_our_own_order() {
    for scheme in [DCQCN, DCQCN_WIN, HPCC, TIMELY, DCTCP] {
        let [theirs, ours] = [None, Some(1)].map(|order| run_in_order(CONFIG, "probe", "clos64", scheme, order));
        same_text(&ours.fct, &theirs.fct, scheme.0);
    }
}

/// The completion times of a run, by flow, with their slowdowns.
fn completions(written: &Written) -> Vec<Option<(f64, f64)>> {
    let record = |flow: &fabric::run::FlowRecord| {
        (flow.acknowledged != engine::Time::MAX).then(|| {
            let taken = (flow.acknowledged - flow.spec.start).0 as f64;
            (taken, taken / flow.spec.ideal.0 as f64)
        })
    };
    written.outcome.flows.iter().map(record).collect()
}

/// The p50, p95 and p99 of slowdown of what finished.
fn quantiles(completions: &[Option<(f64, f64)>]) -> [f64; 3] {
    let mut slowdowns: Vec<f64> = completions.iter().flatten().map(|(_, slowdown)| *slowdown).collect();
    slowdowns.sort_by(f64::total_cmp);
    [0.5, 0.95, 0.99].map(|q| results::measure::percentile(&slowdowns, q))
}

/// How far results in our own order of ties are from the reference's, flow by flow and in the quantiles of slowdown: the table of docs/ns3.md.
/// The limits are those that the reference's own check of another simulator has for tails.
#[test]
fn in_our_own_order_tails_are_within_a_tenth_of_the_references() {
    println!(
        "| run | scheme | FCT of a flow, median off by | p95 of that | slowdown p50 | p95 | p99 |\n|---|---|---|---|---|---|---|"
    );
    for (scenario, schemes) in [
        ("dumbbell", &[DCQCN, HPCC][..]),
        ("incast16", &[DCQCN, DCQCN_WIN, HPCC, TIMELY, DCTCP]),
        ("clos64", &[DCQCN, DCQCN_WIN, DCQCN_WIN_K100, HPCC]),
        ("clos128", &[DCQCN_ACK0, DCQCN_WIN, DCQCN_WIN_K100, HPCC]),
    ] {
        for &scheme in schemes {
            let [theirs, ours] =
                [None, Some(1)].map(|order| completions(&run_in_order(CONFIG, scenario, scenario, scheme, order)));
            let mut off: Vec<f64> = std::iter::zip(&theirs, &ours)
                .map(|(theirs, ours)| {
                    let (Some((theirs, _)), Some((ours, _))) = (theirs, ours) else { panic!("a flow did not finish") };
                    (ours - theirs).abs() / theirs
                })
                .collect();
            off.sort_by(f64::total_cmp);
            let [median, p95] = [0.5, 0.95].map(|q| 100.0 * results::measure::percentile(&off, q));
            let changes = std::iter::zip(quantiles(&theirs), quantiles(&ours));
            let cells: String = changes
                .clone()
                .map(|(theirs, ours)| format!(" {theirs:.2} → {ours:.2} ({:+.1} %) |", 100.0 * (ours / theirs - 1.0)))
                .collect();
            println!("| {scenario} | {} | {median:.2} % | {p95:.1} % |{cells}", scheme.0);
            if theirs.len() > 1000 {
                for (theirs, ours) in changes {
                    assert!((0.9..1.1).contains(&(ours / theirs)), "{scenario} with {}: {theirs} is {ours}", scheme.0);
                }
            }
        }
    }
}

/// Slowdown by size in a run of the BFC authors' simulator (commit 2d3a229) on the same 6710 flows: upper end of the bin, then
/// p50, p95 and p99 of completion time to the last ACK over that of the flow alone. It models a later form of BFC (queues by
/// upstream number instead of Bloom filters, no pacing of resumes, packet round robin), so only the shape must agree.
const BFC_AUTHORS: [(u64, [f64; 3]); 5] = [
    (1_000, [1.02, 1.07, 1.10]),
    (10_000, [1.06, 1.23, 1.39]),
    (100_000, [1.60, 3.20, 4.19]),
    (1_000_000, [2.52, 5.59, 7.22]),
    (u64::MAX, [3.25, 6.48, 7.56]),
];

#[test]
fn bfc_has_the_tails_that_its_authors_simulator_has() {
    let folder = tempfile::tempdir().unwrap();
    let flows = std::fs::read_to_string(data("clos64").join("flow.txt")).unwrap();
    let mut trace = String::from("src,dst,size_bytes,start_s\n");
    for line in flows.lines().skip(1).filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let start: f64 = fields[5].parse().unwrap();
        trace += &format!("{},{},{},{:.9}\n", fields[0], fields[1], fields[4], start - 2.0);
    }
    std::fs::write(folder.path().join("flows.csv"), trace).unwrap();
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nhosts_per_leaf = 16\nspines = 8\n\
                [scheme]\npreset = \"bfc\"\n[traffic]\ntrace = \"flows.csv\"\n";
    let scenario = scenario::Scenario::parse("clos64.toml", text, folder.path(), &[]).unwrap();
    let finished = run::run(scenario::resolve::resolve(scenario).unwrap(), &mut |_, _| true);
    assert!(finished.outcome.complete() && finished.outcome.violations.is_empty());
    assert_eq!(finished.outcome.counts.pauses, 0, "PFC is not needed");
    let mut above = 0;
    for (up_to, expected) in BFC_AUTHORS {
        let inside = |flow: &&fabric::run::FlowRecord| flow.size > above && flow.size <= up_to;
        let mut slowdowns: Vec<f64> =
            finished.outcome.flows.iter().filter(inside).filter_map(run::slowdown::slowdown_acknowledged).collect();
        slowdowns.sort_by(f64::total_cmp);
        for (q, expected) in [0.5, 0.95, 0.99].into_iter().zip(expected) {
            let ratio = results::measure::percentile(&slowdowns, q) / expected;
            assert!((0.85..1.15).contains(&ratio), "p{} up to {up_to} B: {ratio} of theirs", q * 100.0);
        }
        above = up_to;
    }
}
