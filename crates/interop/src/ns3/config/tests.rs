//! What a configuration may say, and what is said to one that may not.

use super::super::tokens::fuzz;
use super::key::{FLAG, PATH, RATE};
use super::*;
use crate::ns3::forks::hpcc::FORK;
use engine::Time;
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
    let mut known: Vec<&str> = FORK.keys.iter().map(|key| key.name).collect();
    expected.sort_unstable();
    known.sort_unstable();
    assert_eq!(known, expected);
    for key in FORK.keys {
        assert!(!key.meaning.is_empty() && !key.meaning.contains('\n'), "{}", key.name);
        // The reader takes every key, and a file with nothing but examples can be run.
        let alone = format!("{} {}", key.name, key.example);
        let problem = parse("c", &alone).unwrap_err();
        assert!(problem.message.ends_with("is missing"), "{problem}");
    }
    let all: String = FORK.keys.iter().map(|key| format!("{} {}\n", key.name, key.example)).collect();
    let config = parse("c", &all).unwrap();
    assert!(FORK.keys.iter().all(|key| config.is_given(key.name)));
}

#[test]
fn the_table_shows_the_defaults_that_hold() {
    for key in FORK.keys {
        let Some(default) = key.default else { continue };
        let mut tokens = Tokens::new("c", default);
        let at = Tokens::new("c", key.name).next().unwrap();
        let mut config = Config::default();
        (key.read)(&mut config, &mut Value { tokens: &mut tokens, at, key, fork: &FORK }).unwrap();
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
        "PINT_LOG_BASE" => "1.5",
        _ if key.default == Some("0") && key.form == FLAG => "7",
        _ if key.form == FLAG => "0",
        _ if key.form == RATE => "77Mbps",
        _ if key.form == PATH => "elsewhere",
        _ if key.name.ends_with("_MAP") => "1 5 1",
        _ if key.form.contains("probability") || key.form.contains("0 to 1") => "0.125",
        _ => "17",
    };
    let mut seen: Vec<(Config, &str)> = vec![(Config::default(), "default")];
    for key in FORK.keys {
        let mut tokens = Tokens::new("c", others(key));
        let at = Tokens::new("c", key.name).next().unwrap();
        let mut config = Config::default();
        (key.read)(&mut config, &mut Value { tokens: &mut tokens, at, key, fork: &FORK }).unwrap();
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
fn all_that_is_wrong_is_said_at_once() {
    let text =
        CONFIG.replacen("CC_MODE 3", "CC_MODE 5\nNO_SUCH_KEY 1 2\nNOR_THIS x", 1).replacen("HAS_WIN 1", "HAS_WIN y", 1);
    let problems: Vec<String> = error(&text).split().into_iter().map(|problem| problem.message.clone()).collect();
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(problems[0].starts_with("CC_MODE \"5\" is not one of"));
    assert_eq!(problems[1..3], ["unknown key \"NO_SUCH_KEY\"", "unknown key \"NOR_THIS\""]);
    assert!(problems[3].starts_with("HAS_WIN \"y\" is not"));
}

#[test]
fn explanations_in_braces_are_passed_over_unless_they_have_a_key_in_them() {
    let text: String = CONFIG.lines().map(|line| format!("{line} {{what it\nmeans (1: yes)}}\n")).collect();
    let (mut a, mut b) = (parse("c", CONFIG).unwrap(), parse("c", &text).unwrap());
    a.places.clear();
    b.places.clear();
    assert_eq!(a, b);
    let problem = with("CC_MODE 3", "CC_MODE 3 {not HAS_WIN 1}").unwrap_err();
    assert_eq!(problem.message, "HAS_WIN stands in an explanation, and the reference reads it as a key");
    assert_eq!((place(&problem), problem.split().len()), ((11, 16), 1));
}

#[test]
fn a_configuration_of_a_fork_is_told_by_its_keys() {
    let of = |keys: &str| least(keys).map(|config| config.fork.home);
    assert_eq!(of(""), Ok("alibaba-edu/High-Precision-Congestion-Control"));
    assert_eq!(of("LB_MODE 0 ENABLE_IRN 0 LOAD 50"), Ok("conweave-project/conweave-ns3"));
    assert_eq!(of("FLOW_FROM_FILE 1 USE_FLOODGATE 0 SRCTOR_DST_PFC 0 LOAD 0.8"), Ok("NASA-NJU/Floodgate-NS3"));
    assert_eq!(of("RATE_MON_FILE a MON_START 0"), Ok("aliyun/ns-3-alibabacloud"));
    for fork in super::forks::FORKS {
        let mut names: Vec<&str> = fork.all_keys().map(|key| key.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{fork:?}");
        let text: String = fork.all_keys().map(|key| format!("{} {}\n", key.name, key.example)).collect();
        let config = parse("c", &text).unwrap_or_else(|problem| panic!("{fork:?}: {problem}"));
        assert!(config.fork == *fork || fork.keys.is_empty(), "{fork:?}");
    }
}

#[test]
fn what_a_fork_has_and_we_lack_is_refused_by_name_and_off_is_accepted() {
    let refused = |keys: &str, what: &[&str]| {
        let problems = least(keys).unwrap_err().split();
        assert_eq!(problems.len(), what.len(), "{problems:?}");
        for (problem, what) in problems.iter().zip(what) {
            let help = problem.help.as_deref().unwrap();
            assert!(problem.message.contains(what) && !help.contains("remove"), "{problem}");
        }
    };
    refused("LB_MODE 4 ENABLE_IRN x", &["is not 0 (ECMP), 2 (DRILL)", "ENABLE_IRN \"x\" is not 0 or 1"]);
    refused("USE_FLOODGATE 1 ROUTING_MODE 1 FLOW_FROM_FILE 1 SRCTOR_DST_PFC 0", &["DRILL", "CONFIG_FILE is missing"]);
    refused("USE_FLOODGATE 0 FLOW_CDF 3 SRCTOR_DST_PFC 0", &["FLOW_CDF 3 asks for"]);
    refused("USE_FLOODGATE 0 FLOW_FROM_FILE 1", &["SRCTOR_DST_PFC is missing, and is 1 there"]);
    assert!(least("USE_FLOODGATE 0 FLOW_FROM_FILE 1 SRCTOR_DST_PFC 0 PFC_TH_STATIC 0.0").is_ok());
    // A key of another fork says whose it is.
    refused("LB_MODE 0 ENABLE_IRN 0 USE_FLOODGATE 0", &["unknown key \"USE_FLOODGATE\""]);
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
    let problem = with("CC_MODE 3", "CC_MODE 5").unwrap_err();
    assert!(
        problem.message.contains("one of 0 (none), 1 (DCQCN), 3 (HPCC), 7 (TIMELY), 8 (DCTCP), 10 (HPCC-PINT)"),
        "{problem}"
    );
    assert_eq!(place(&problem), (11, 9));
    for mode in [0, 1, 3, 7, 8, 10] {
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
    for mode in [3, 7, 10] {
        let problem = least("").map(|_| ()).and(parse("c", &LEAST.replace("CC_MODE 0", &format!("CC_MODE {mode}"))));
        assert_eq!(problem.unwrap_err().message, "RATE_AI is missing");
    }
    assert!(parse("c", &LEAST.replace("CC_MODE 0", "CC_MODE 8")).is_ok());
}

#[test]
fn values_that_cannot_go_together_are_refused() {
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
    let lack = |message: &str, help: &str| Lack { message: message.into(), help: help.into() };
    let expected = vec![
        lack("KMAX_MAP has no entry for 25000000000 b/s (25Gbps)", "write KMAX_MAP 2 10 8 25000000000 <KB>"),
        lack("PMAX_MAP has no entry for 25000000000 b/s (25Gbps)", "write PMAX_MAP 2 10 0.5 25000000000 <probability>"),
    ];
    assert_eq!(config.ecn_for(25_000_000_000), Err(expected));
    let none = least("").unwrap().ecn_for(10).unwrap_err();
    assert_eq!(none[0], lack("KMIN_MAP has no entry for 10 b/s (10bps)", "write KMIN_MAP 1 10 <KB>"));
}

#[test]
fn the_distance_between_words_counts_slips() {
    assert_eq!(strsim::levenshtein("", "abc"), 3);
    assert_eq!(strsim::levenshtein("abc", ""), 3);
    assert_eq!(strsim::levenshtein("abc", "abc"), 0);
    assert_eq!(strsim::levenshtein("kitten", "sitting"), 3);
    assert_eq!(strsim::levenshtein("ä", "a"), 1);
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

#[test]
fn what_conweaves_simulator_is_told_is_read() {
    let text = format!(
        "{CONFIG}LB_MODE 9\nENABLE_IRN 1\nCONWEAVE_PATH_PAUSE_TIME 16\nSW_MONITORING_INTERVAL 5000\nUPLINK_MON_FILE u\n"
    );
    let config = parse("c", &text).unwrap();
    assert_eq!((config.lb_mode, config.enable_irn, config.monitor_every_ns), (LbMode::ConWeave, true, 5_000));
    assert_eq!(config.conweave, Timing { avoid: Time::from_us(16), ..Timing::default() });
    // Files of monitors are named, each by its key.
    let note = parse("c", &format!("{text}CONN_MON_FILE c\n")).unwrap().unwritten().unwrap();
    assert_eq!(note.message, "UPLINK_MON_FILE, CONN_MON_FILE: what is monitored there is not written");
    assert_eq!(parse("c", CONFIG).unwrap().unwritten(), None);
}
