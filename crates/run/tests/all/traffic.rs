//! Traffic as scenarios describe it: read, drawn, written and refused.

use engine::Time;
use fabric::id::FlowId;
use fabric::setup::FlowSpec;
use files::problem::Problem;
use proptest::prelude::*;
use scenario::resolve::{Resolved, resolve};
use scenario::{GroupReport, Scenario};
use std::collections::BTreeSet;
use std::path::Path;
use traffic::{After, FlowRequest};

/// BFC's T1: 128 hosts, 8 racks, 8 spines, twice as much below as above.
const T1: &str = "[topology]\nkind = \"leaf-spine\"\n";
const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 4\n";
const SITES: &str = "[topology]\nkind = \"two-sites\"\nleaves = 2\nhosts_per_leaf = 4\nspines = 2\n";

fn read(text: &str, sets: &[&str]) -> Result<Scenario, Problem> {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    Scenario::parse("a.toml", text, Path::new("/nowhere"), &sets)
}

#[track_caller]
fn scenario(text: &str, sets: &[&str]) -> Scenario {
    read(text, sets).unwrap_or_else(|problem| panic!("{problem}"))
}

fn group(scenario: &Scenario, name: &str) -> GroupReport {
    scenario.groups().into_iter().find(|group| group.name == name).unwrap_or_else(|| panic!("no group {name}"))
}

fn flows_of(scenario: &Scenario, name: &str) -> Vec<FlowRequest> {
    let number = scenario.traffic.groups.iter().position(|group| group == name).unwrap() as u16;
    let mine = scenario.traffic.flows.iter().filter(|flow| flow.group == number);
    mine.map(|flow| FlowRequest { group: 0, ..*flow }).collect()
}

const LOAD: &str =
    "[[load]]\nsizes = \"google\"\nload = 0.6\nof = \"core\"\narrivals = \"lognormal\"\nduration = \"200us\"\n";
const INCAST: &str = "[[incast]]\ndegree = 100\nsize = \"20MB\"\nload = 0.05\nof = \"core\"\nduration = \"2ms\"\n";
const LONG: &str = "[[long]]\nto = \"h0..h3\"\nflows = 4\nleave = \"100us\"\n";

/// Everything together.
fn mix() -> String {
    format!("{T1}{LOAD}{INCAST}{LONG}[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\n")
}

#[test]
fn the_traffic_is_the_same_with_every_scheme_and_another_with_every_seed() {
    let drawn = |sets: &[&str]| scenario(&mix(), sets).traffic;
    let first = drawn(&[]);
    assert!(first.flows.len() > 1000);
    for preset in scenario::presets::all() {
        assert_eq!(drawn(&[&format!("scheme.preset={}", preset.name)]), first, "{}", preset.name);
    }
    assert_eq!(drawn(&["switch.buffer=40MB", "nic.payload=4000B"]), first);
    assert_eq!(drawn(&["seed=1"]), first);
    assert_ne!(drawn(&["seed=2"]), first);
}

#[test]
fn a_generator_more_changes_nothing_about_the_others() {
    let alone = |table: &str, name: &str| flows_of(&scenario(&format!("{T1}{table}"), &[]), name);
    let all = scenario(&format!("{}{LOAD}", mix()), &[]);
    for (table, name) in [(LOAD, "load"), (INCAST, "incast"), (LONG, "long")] {
        assert_eq!(flows_of(&all, name), alone(table, name), "{name}");
    }
    assert_eq!(all.traffic.groups, ["flows", "load", "load2", "incast", "long"]);
    assert_ne!(flows_of(&all, "load"), flows_of(&all, "load2"));
}

/// FNV-1a, 64 bits.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn the_flows_drawn_are_what_they_were() {
    // On every machine, to the bit. A digest that differs is a fault, or a change that makes all earlier results incomparable.
    let sites = format!(
        "{SITES}[[load]]\nsizes = \"hadoop\"\nload = 0.3\ninter_site = 0.2\nduration = \"1ms\"\narrivals = \"lognormal\"\nprocess = \"network\"\n\
         [[load]]\nsizes = \"dvl-bytes\"\nflows = 50\nduration = \"1ms\"\npattern = \"permutation\"\n\
         [[incast]]\ndegree = 9\nsize_each = \"3KB\"\nevery = \"100us\"\ncount = 5\nspread = \"7us\"\narrivals = \"poisson\"\n"
    );
    for (text, expected) in [(mix(), 0x07cc_5310_00ad_9c65), (sites, 0xc62b_8fe0_ca3e_7260)] {
        let found = digest(&scenario(&text, &[]).trace().unwrap());
        assert_eq!(found, expected, "{found:#018x} now");
    }
}

#[test]
fn a_load_of_the_core_is_half_of_that_of_the_hosts_where_there_are_twice_as_many_links_below() {
    let table = "[[load]]\nsizes = \"50KB\"\nload = 0.65\nof = \"core\"\nduration = \"10ms\"\n";
    let report = group(&scenario(&format!("{T1}{table}"), &[]), "load");
    assert!((report.of_core.unwrap() - 0.65).abs() < 0.0065, "{report:?}");
    assert!((report.of_hosts.unwrap() - 0.325).abs() < 0.00325, "{report:?}");
    assert!((report.of_asked.unwrap() - 1.0).abs() < 0.01, "{report:?}");
    assert_eq!((report.window, report.expected_size), ((Time::ZERO, Time::from_ms(10)), Some(50_000.0)));
    let sets = ["load.0.of=hosts", "load.0.load=0.325"];
    assert_eq!(scenario(&format!("{T1}{table}"), &sets).traffic, scenario(&format!("{T1}{table}"), &[]).traffic);
}

#[test]
fn the_incast_of_bfc_comes_as_often_as_its_load_says() {
    // 5 % of 64 × 100 Gb/s is 40 GB/s: an event of 20 MB every 500 us.
    let scenario = scenario(&format!("{T1}{INCAST}"), &[]);
    let starts: BTreeSet<Time> = scenario.traffic.flows.iter().map(|flow| flow.start).collect();
    assert_eq!(starts, [0, 500, 1000, 1500].map(Time::from_us).into());
    assert_eq!(scenario.traffic.flows.len(), 400);
    let report = group(&scenario, "incast");
    assert_eq!((report.bytes, report.of_core), (80_000_000, Some(0.05)));
}

#[test]
fn the_flows_of_dvl_make_the_load_that_its_authors_had() {
    let table = "[topology]\nkind = \"leaf-spine\"\nleaves = 32\nhosts_per_leaf = 32\nspines = 16\nhost_rate = \"40Gbps\"\n\
                 [[load]]\nsizes = \"dvl\"\nflows = 10000\nduration = \"2ms\"\n";
    let report = group(&scenario(table, &[]), "load");
    assert_eq!(report.flows, 10_000);
    // As shares of messages 76 % of the hosts' links, as shares of bytes 7 %.
    assert!((report.of_hosts.unwrap() - 0.757).abs() < 0.03, "{report:?}");
    let report = group(&scenario(table, &["load.0.sizes=dvl-bytes"]), "load");
    assert!((report.of_hosts.unwrap() - 0.07).abs() < 0.01, "{report:?}");
}

#[test]
fn an_incast_without_a_period_happens_once() {
    let scenario =
        scenario(&format!("{STAR}[[incast]]\ndegree = 3\nsize = \"10KB\"\nstart = \"4us\"\nto = \"h2\"\n"), &[]);
    let flows: Vec<_> = scenario.traffic.flows.iter().map(|flow| (flow.dst.0, flow.size, flow.start)).collect();
    assert_eq!(flows, [3334, 3333, 3333].map(|size| (2, size, Time::from_us(4))));
}

#[test]
fn without_a_duration_a_generator_goes_on_until_the_run_stops() {
    let tables = "[[load]]\nsizes = \"1KB\"\nload = 0.5\nstart = \"20us\"\n[[incast]]\ndegree = 2\nsize = \"1KB\"\nevery = \"30us\"\n";
    let with_stop = scenario(&format!("stop = \"100us\"\n{STAR}{tables}[[long]]\nto = \"h0\"\n"), &[]);
    assert_eq!(group(&with_stop, "load").window, (Time::from_us(20), Time::from_us(100)));
    let last = with_stop.traffic.flows.iter().map(|flow| flow.start).max().unwrap();
    assert!(last > Time::from_us(90) && last < Time::from_us(100));
    assert_eq!(flows_of(&with_stop, "incast").len(), 8);
    assert_eq!(flows_of(&with_stop, "long")[0].until, Time::from_us(100));
    assert!(read(&format!("{STAR}{tables}"), &[]).unwrap_err().message.contains("no duration"));
}

#[test]
fn hosts_are_named_one_by_one_by_range_by_switch_and_all_at_once() {
    let senders = |from: &str| -> Vec<u32> {
        let table = format!("{T1}[[long]]\nto = \"h127\"\nleave = \"1us\"\nfrom = {from}\n");
        scenario(&table, &[]).traffic.flows.iter().map(|flow| flow.src.0).collect()
    };
    assert_eq!(senders("\"h3\""), [3]);
    assert_eq!(senders("5"), [5]);
    assert_eq!(senders("\"h9..h12\""), [9, 10, 11, 12]);
    assert_eq!(senders("\"leaf2\""), (32..48).collect::<Vec<_>>());
    assert_eq!(senders("[\"leaf1\", \"h16..h17\", \"h2\", 1]"), [1, 2].into_iter().chain(16..32).collect::<Vec<_>>());
    assert_eq!(senders("\"all\"").len(), 127);
}

#[test]
fn tables_of_the_same_name_are_one_group() {
    let tables = "[[long]]\nto = \"h0\"\nfrom = \"h1\"\nleave = \"2us\"\nname = \"a\"\n[[long]]\nto = \"h0\"\nfrom = \"h2\"\n\
                  start = \"1us\"\nleave = \"3us\"\nname = \"a\"\n[[flow]]\nsrc = 0\ndst = 3\nsize = \"1KB\"\nname = \"b\"\n";
    let scenario = scenario(&format!("{STAR}{tables}"), &[]);
    assert_eq!(scenario.traffic.groups, ["b", "a"]);
    let report = group(&scenario, "a");
    assert_eq!((report.flows, report.leaves, report.of_hosts), (2, true, None));
    assert_eq!(report.window, (Time::ZERO, Time::from_us(3)));
}

#[test]
fn flows_wait_for_others_by_their_ids() {
    let tables = "[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\nid = \"ask\"\ncount = 2\n\
                  [[flow]]\nsrc = 1\ndst = 0\nsize = \"9KB\"\nafter = \"ask\"\ngap = \"3us\"\nid = \"answer\"\n\
                  [[flow]]\nsrc = 0\ndst = 2\nsize = \"1KB\"\nafter = [\"answer\", \"ask\"]\nuntil = \"1ms\"\n";
    let scenario = scenario(&format!("{STAR}{tables}"), &[]);
    let wait = |flow, first, us| After { flow, first, gap: Time::from_us(us) };
    let expected = [
        wait(FlowId(2), FlowId(0), 3),
        wait(FlowId(2), FlowId(1), 3),
        wait(FlowId(3), FlowId(2), 0),
        wait(FlowId(3), FlowId(0), 0),
        wait(FlowId(3), FlowId(1), 0),
    ];
    assert_eq!(scenario.traffic.after, expected);
    assert_eq!(scenario.traffic.flows[3].until, Time::from_ms(1));
}

/// One of the problems must be at that line, say this and help.
#[track_caller]
fn refused(text: &str, line: usize, message: &str, help: &str) {
    let Err(problem) = read(text, &[]) else { panic!("{text} is accepted") };
    let fits = |problem: &Problem| {
        problem.line == Some(line)
            && problem.message.contains(message)
            && problem.help.as_deref().is_some_and(|remedy| remedy.contains(help))
    };
    let found = problem.clone().split().iter().any(fits);
    assert!(found, "\"{message}\", line {line}, with help \"{help}\" is not in: {problem}");
}

#[test]
fn a_wrong_table_is_refused_with_place_and_remedy() {
    // Tables begin in the line after the topology's.
    let load = |lines: &str, line: usize, message: &str, help: &str| {
        refused(&format!("{STAR}[[load]]\n{lines}"), 4 + line, message, help);
    };
    let good = "sizes = \"1KB\"\nload = 0.5\nduration = \"1us\"\n";
    load("load = 0.5\n", 0, "no sizes", "websearch");
    load("sizes = \"websaerch\"\n", 1, "no distribution \"websaerch\"", "did you mean \"websearch\"");
    load("sizes = \"1XB\"\n", 1, "unknown unit", "write a distribution");
    load("sizes = \"0B\"\n", 1, "no bytes", "above zero");
    load("sizes = \"my.cdf\"\n", 1, "cannot be read", "folder of the scenario");
    load("sizes = \"uniform 5KB..1KB\"\n", 1, "5KB is more than 1KB", "smaller size first");
    load("sizes = \"uniform 5KB\"\n", 1, "not two sizes", "uniform 1KB..100KB");
    load("sizes = 5\n", 1, "expected text", "");
    load("sizes = \"1KB\"\n", 0, "no load", "flows and duration");
    load("sizes = \"1KB\"\nload = 0\n", 2, "load is 0", "above 0");
    load("sizes = \"1KB\"\nload = 50\n", 2, "load is 50", "0.5 is half");
    load("sizes = \"1KB\"\nload = nan\n", 2, "expected a number", "");
    load("sizes = \"1KB\"\nload = 1e-300\nduration = \"1us\"\n", 2, "too low", "higher");
    load("sizes = \"1KB\"\nload = 1e-20\nflows = 3\n", 2, "start after 1000000s", "less time");
    load("sizes = \"1KB\"\nload = 0.5\n", 0, "no duration", "flows");
    load("sizes = \"1KB\"\nload = 0.5\nduration = \"0us\"\n", 3, "duration is 0", "above zero");
    load("sizes = \"1KB\"\nload = 0.5\nduration = \"2000000s\"\n", 3, "duration is", "ends by");
    load("sizes = \"1KB\"\nload = 0.5\nduration = \"1000s\"\n", 2, "more than 50000000 flows", "shorter");
    load("sizes = \"1KB\"\nload = 0.5\nflows = 0\n", 3, "flows is 0", "1 or more");
    load("sizes = \"1KB\"\nload = 0.5\nflows = 60000000\n", 3, "more than 50000000", "");
    load(&format!("{good}flows = 4\n"), 4, "say too much", "leave out");
    load(&format!("{good}of = \"core\"\n"), 4, "no core", "hosts");
    load(&format!("{good}of = \"spine\"\n"), 4, "expected one of \"hosts\" \"core\"", "");
    load(&format!("{good}sigma = 2\n"), 4, "only lognormal", "lognormal");
    load(&format!("{good}arrivals = \"lognormal\"\nsigma = 0\n"), 5, "sigma is 0", "above 0");
    load(&format!("{good}arrivals = \"uniform\"\n"), 4, "so many in so much time", "no load");
    load("sizes = \"1KB\"\nflows = 5\nduration = \"1us\"\narrivals = \"poisson\"\n", 4, "need a load", "uniform");
    load("sizes = \"1KB\"\nflows = 5\nduration = \"1us\"\nprocess = \"host\"\n", 4, "whole network", "leave out");
    load("sizes = \"1KB\"\nflows = 5\nduration = \"1us\"\nof = \"hosts\"\n", 4, "there is no load", "add load");
    load(&format!("{good}inter_site = 0.2\n"), 4, "single site", "two-sites");
    load(&format!("{good}inter_site = 2\n"), 4, "inter_site is 2", "0 to 1");
    load(&format!("{good}pattern = \"inter-rack\"\n"), 4, "h0 has no receiver", "another pattern");
    load(&format!("{good}from = \"h1\"\nto = \"h1\"\n"), 5, "h1 has no receiver", "choose other hosts");
    load(&format!("{good}from = \"h1\"\nto = \"h1\"\npattern = \"permutation\"\n"), 5, "only sender", "another host");
    load(&format!("{good}to = \"h1..h2\"\npattern = \"permutation\"\n"), 5, "as many partners", "as many hosts");
    load(&format!("{good}from = \"h7\"\n"), 4, "no node \"h7\"", "did you mean");
    load(&format!("{good}from = \"h0..h7\"\n"), 4, "no node \"h7\"", "did you mean");
    load(&format!("{good}from = \"h0..sw0\"\n"), 4, "sw0 is a switch", "with a host");
    load(&format!("{good}from = \"h2..h1\"\n"), 4, "backwards", "lower host first");
    load(&format!("{good}from = []\n"), 4, "names no host", "all");
    load(&format!("{good}class = 1\n"), 4, "class 1 is not there", "traffic.classes");
    load(&format!("{good}name = \"a,b\"\n"), 4, "no name for a group", "64");
    load(&format!("{good}start = \"2000000s\"\n"), 4, "start is", "or before");
    load(&format!("{good}lod = 1\n"), 4, "unknown key \"lod\"", "did you mean \"load\"");
    refused(&format!("load = 3\n{STAR}"), 1, "expected tables", "[[load]]");
    refused(&format!("{T1}[[load]]\n{good}from = \"spine0\"\n"), 7, "without hosts", "that has some");
    refused(
        &format!("{SITES}[[load]]\n{good}inter_site = 0.2\nfrom = \"h0\"\nto = \"h1\"\n"),
        10,
        "at another site",
        "",
    );
    refused(&format!("{SITES}[[load]]\n{good}inter_site = 0.2\npattern = \"permutation\"\n"), 10, "one partner", "");

    let incast = |lines: &str, line: usize, message: &str, help: &str| {
        refused(&format!("{STAR}[[incast]]\n{lines}"), 4 + line, message, help);
    };
    let good = "degree = 2\nsize = \"1KB\"\n";
    incast("size = \"1KB\"\n", 0, "no degree", "whole number");
    incast("degree = 0\nsize = \"1KB\"\n", 1, "degree is 0", "1 or more");
    incast("degree = 2\n", 0, "no size", "size_each");
    incast(&format!("{good}size_each = \"1KB\"\n"), 3, "say too much", "size_each for those");
    incast("degree = 2\nsize = \"1B\"\n", 2, "not enough for 2 flows", "larger");
    incast("degree = 2\nsize = \"2000GB\"\n", 2, "size is", "to \"1000GB\"");
    incast(&format!("{good}count = 2\n"), 0, "no every", "load");
    incast(&format!("{good}arrivals = \"poisson\"\n"), 0, "no every", "load");
    incast(&format!("{good}every = \"1us\"\n"), 0, "no duration", "count");
    incast(&format!("{good}every = \"0us\"\n"), 3, "every is 0", "500us");
    incast(&format!("{good}every = \"1us\"\nload = 0.5\ncount = 1\n"), 3, "say too much", "leave out");
    incast(&format!("{good}every = \"1us\"\nduration = \"1us\"\ncount = 1\n"), 5, "say too much", "leave out");
    incast(&format!("{good}every = \"1us\"\ncount = 1\narrivals = \"uniform\"\n"), 5, "not drawn uniformly", "fixed");
    incast(&format!("{good}every = \"1ps\"\nduration = \"1s\"\n"), 1, "more than 50000000", "shorter");
    incast(&format!("{good}every = \"1000000s\"\ncount = 3\n"), 4, "start after 1000000s", "");
    incast(&format!("{good}from = \"h1\"\n"), 3, "h1 is the only host", "more hosts");
    incast(&format!("{good}flows_per_sender = 0\n"), 3, "flows_per_sender is 0", "1 or more");
    incast(&format!("{good}spread = \"9000000s\"\n"), 3, "spread is", "shorter");
    incast(&format!("{good}of = \"core\"\n"), 3, "there is no load", "add load");

    let long = |lines: &str, line: usize, message: &str, help: &str| {
        refused(&format!("{STAR}[[long]]\n{lines}"), 4 + line, message, help);
    };
    long("leave = \"1ms\"\n", 0, "no to", "all");
    long("to = \"h0\"\n", 0, "never leave", "stop");
    long("to = \"h0\"\nleave = \"0us\"\n", 2, "leaves at 0", "later");
    long("to = \"h0\"\nleave = \"2000000s\"\n", 2, "leave is", "to \"1000000s\"");
    long("to = \"h0\"\nleave = \"1ms\"\nflows = 0\n", 3, "flows is 0", "1 or more");
    long("to = \"h0\"\nleave = \"1ms\"\nfrom = \"h0\"\n", 3, "no host to receive from", "another host");
    long("to = \"h0\"\nleave = \"5us\"\nflows = 3\nstagger = \"3us\"\n", 2, "would start at 6us", "later");

    let flow = |lines: &str, line: usize, message: &str, help: &str| {
        let text =
            "[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\nid = \"a\"\n[[flow]]\nsrc = 1\ndst = 0\nsize = \"1KB\"\n";
        refused(&format!("{STAR}{text}{lines}"), 12 + line, message, help);
    };
    flow("id = \"a\"\n", 1, "there twice", "of its own");
    flow("after = \"aa\"\n", 1, "no flow with the id \"aa\"", "did you mean \"a\"");
    flow("after = 3\n", 1, "expected text", "");
    flow("gap = \"1us\"\n", 1, "after nothing", "add after");
    flow("gap = \"2000000s\"\nafter = \"a\"\n", 1, "gap is", "to \"1000000s\"");
    flow("id = \"b\"\nafter = [\"a\", \"b\"]\n", 2, "waits for itself", "another");
    flow(
        "id = \"b\"\nafter = \"c\"\n[[flow]]\nsrc = 1\ndst = 2\nsize = \"1B\"\nid = \"c\"\nafter = \"b\"\n",
        2,
        "each other",
        "without waiting",
    );
    flow("[[flow]]\nsrc = 2\ndst = 0\nsize = \"1B\"\nafter = \"a\"\n", 5, "h2 cannot know", "begin or end");
    flow(
        "until = \"1us\"\nid = \"b\"\n[[flow]]\nsrc = 0\ndst = 2\nsize = \"1B\"\nafter = \"b\"\n",
        7,
        "may never end",
        "start",
    );
    flow("until = \"0us\"\n", 1, "leaves at", "after its start");
    flow(
        "count = 8000\nid = \"b\"\n[[flow]]\nsrc = 0\ndst = 1\nsize = \"1B\"\nafter = \"b\"\ncount = 8000\n",
        7,
        "too many",
        "smaller count",
    );
}

#[test]
fn a_scenario_that_sends_nothing_is_refused() {
    assert!(read(STAR, &[]).unwrap_err().help.as_deref().unwrap().contains("[[load]]"));
    let nothing = format!("{STAR}[[load]]\nsizes = \"1GB\"\nload = 0.0001\nduration = \"1ns\"\n");
    assert!(read(&nothing, &[]).unwrap_err().message.contains("what it draws is nothing"));
}

#[test]
fn a_problem_with_a_flow_names_the_table_that_made_it() {
    // Three hosts in a row, the one in the middle on both switches: it does not forward.
    let mut graph = String::new();
    for (name, kind) in [("h0", "host"), ("h1", "host"), ("h2", "host"), ("s", "switch"), ("t", "switch")] {
        graph += &format!("[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
    }
    for (a, b) in [("h0", "s"), ("h1", "s"), ("h1", "t"), ("h2", "t")] {
        graph += &format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"10Gbps\"\ndelay = \"1us\"\n");
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("row.toml"), graph).unwrap();
    let text = "topology = { kind = \"file\", path = \"row.toml\" }\n\n[[load]]\nsizes = \"1KB\"\nload = 0.5\nduration = \"100us\"\n";
    let problem = Scenario::parse("a.toml", text, folder.path(), &[]).and_then(resolve).unwrap_err();
    assert_eq!(problem.line, Some(3), "{problem}");
    assert!(problem.message.contains("of it, from h") && problem.message.contains("no path"), "{problem}");
}

#[test]
fn a_file_of_sizes_is_found_beside_the_scenario_and_refused_at_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{STAR}[[load]]\nsizes = \"my.cdf\"\nload = 0.5\nflows = 1000\n");
    let read = |content: &str| {
        std::fs::write(folder.path().join("my.cdf"), content).unwrap();
        Scenario::parse("a.toml", &text, folder.path(), &[])
    };
    let scenario = read("# mine\n0 0\n100 50\n200 100\n").unwrap();
    assert!(scenario.traffic.flows.iter().all(|flow| (1..=200).contains(&flow.size)));
    assert_eq!(group(&scenario, "load").expected_size, Some(100.5));
    let problem = read("0 0\n100 0.5\n50 1\n").unwrap_err();
    assert_eq!((problem.line, problem.column), (Some(3), Some(1)));
    assert!(problem.file.ends_with("my.cdf") && problem.help.is_some(), "{problem}");
}

fn setup(scenario: Scenario) -> Resolved {
    resolve(scenario).unwrap_or_else(|problem| panic!("{problem}"))
}

#[test]
fn a_scenario_with_its_traffic_written_out_is_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let tables = "[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\nid = \"a\"\nstart = \"9us\"\n[[flow]]\nsrc = 1\ndst = 0\nsize = \"1KB\"\nafter = \"a\"\n";
    let drawn = scenario(&format!("{}{tables}", mix()), &[]);
    std::fs::write(folder.path().join("flows.csv"), drawn.trace().unwrap()).unwrap();
    let text = format!("{T1}[traffic]\ntrace = \"flows.csv\"\n");
    let read = Scenario::parse("b.toml", &text, folder.path(), &[]).unwrap();
    let shown = |scenario: &Scenario| {
        let traffic = scenario.traffic.in_order();
        let group = |flow: &FlowRequest| traffic.groups[flow.group as usize].clone();
        let flows: Vec<_> = traffic.flows.iter().map(|flow| (group(flow), FlowRequest { group: 0, ..*flow })).collect();
        (flows, traffic.after)
    };
    assert_eq!(shown(&read), shown(&drawn));
    assert_eq!(read.trace().unwrap(), drawn.trace().unwrap());
    // Groups are numbered as they come; by name they are the same.
    let specs = |resolved: Resolved| {
        let named = |mut flow: FlowSpec| (resolved.groups[std::mem::take(&mut flow.tag) as usize].clone(), flow);
        resolved.setup.flows.iter().map(|flow| named(*flow)).collect::<Vec<_>>()
    };
    assert!(specs(setup(read)) == specs(setup(drawn)));
}

#[test]
fn a_check_reports_what_the_groups_came_to() {
    let scenario = scenario(&mix(), &[]);
    let text = scenario.describe_groups();
    assert!(text.lines().all(|line| line.starts_with("group           ")), "{text}");
    assert!(
        text.contains(
            "incast: 400 flows, 80MB, 2.5% of the hosts' links, 5% of the core (4.425% counting what crosses it), \
             100% of what was asked, 0ps to 2ms"
        ),
        "{text}"
    );
    assert!(text.contains("long: 16 flows, 0ps to 100us"), "{text}");
    let table = scenario.describe_traffic();
    let widths: BTreeSet<usize> = table.lines().map(|line| line.chars().count()).collect();
    assert_eq!((table.lines().count(), widths.len()), (5, 1), "{table}");
    let plain = format!("{STAR}[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\n");
    assert_eq!(self::scenario(&plain, &[]).describe_groups(), "");
}

/// The keys that a table takes, as it says itself when it is given another.
fn keys(text: &str) -> Vec<String> {
    let help = read(text, &[]).unwrap_err().help.clone().unwrap();
    let keys = help.split("keys are ").nth(1).unwrap_or_else(|| panic!("{help}"));
    keys.split(", ").map(String::from).collect()
}

#[test]
fn the_manual_has_every_key_of_every_table_and_every_distribution() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let manual = std::fs::read_to_string(docs.join("scenario.md")).unwrap();
    let flow = "[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\n";
    for (title, text) in [("flow", flow), ("load", LOAD), ("incast", INCAST), ("long", LONG)] {
        let section = manual.split(&format!("| key of `[[{title}]]` |")).nth(1).unwrap_or_else(|| panic!("no {title}"));
        let section = section.split("\n\n").next().unwrap();
        for key in keys(&format!("{T1}{text}zzzzzz = 1\n")) {
            assert!(section.contains(&format!("\n| `{key}` |")), "{key} of [[{title}]]");
        }
    }
    let page = std::fs::read_to_string(docs.join("traffic.md")).unwrap();
    for published in traffic::sizes::PUBLISHED {
        let sizes = published.sizes().unwrap();
        let row = format!("| `{}` | {} | {:.0} |", published.name, published.about, sizes.mean());
        assert!(page.contains(&row), "{row}");
    }
    let examples: Vec<&str> = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() > 3);
    for example in examples {
        let whole = if example.contains("[topology]") { example.into() } else { format!("{T1}{example}") };
        setup(scenario(&whole, &[]));
    }
}

proptest! {
    #[test]
    fn no_value_of_any_key_makes_drawing_panic(
        which in any::<prop::sample::Index>(), other in any::<prop::sample::Index>(),
        values in prop::collection::vec(prop::sample::select(vec![
            "0", "1", "-1", "2.5", "nan", "1e300", "1e-300", "9223372036854775807", "true", "all", "h0", "h0..h3", "sw0", "[]", "[0,1]", "a", "",
            "0B", "1B", "1GB", "1000GB", "18446744073709551615B", "uniform 1B..2B", "google", "hosts", "core", "permutation", "lognormal", "uniform",
            "0ps", "1ps", "1us", "1s", "1000000s", "18446744073709551615ps",
        ]), 2),
    ) {
        let text = format!(
            "{STAR}[[load]]\nsizes = \"1GB\"\nload = 0.5\nduration = \"1us\"\n[[incast]]\ndegree = 2\nsize = \"1GB\"\n[[long]]\nto = \"h0\"\nleave = \"1us\"\n\
             [[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\n"
        );
        let mut all = Vec::new();
        for (title, table) in [("flow", "[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\n"), ("load", LOAD), ("incast", INCAST), ("long", LONG)] {
            all.extend(keys(&format!("{T1}{table}zzzzzz = 1\n")).into_iter().map(|key| format!("{title}.0.{key}")));
        }
        let both = [which, other];
        let sets = both.iter().zip(&values).map(|(which, value)| format!("{}={value}", all[which.index(all.len())]));
        let sets: Vec<String> = sets.filter(|set| !set.ends_with('=')).collect();
        if let Ok(scenario) = Scenario::parse("a.toml", &text, Path::new("/nowhere"), &sets) {
            prop_assert!(scenario.describe_traffic().lines().count() > 1 && scenario.trace().is_ok());
            let _ = interop::ns3::export::flow_file(&scenario);
            if let Ok(resolved) = resolve(scenario) {
                prop_assert!(!resolved.describe().is_empty());
            }
        }
    }
}
