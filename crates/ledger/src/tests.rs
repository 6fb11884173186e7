use super::evidence::{Evidence, Measured, Run};
use super::experiment::Scale;
use super::expression::{Bindings, Expression, Label, NoSizes, Scope, Sizes, Step, matches};
use super::*;
use proptest::prelude::*;
use results::exhibit::Unit;
use results::records::{BufferSeries, FlowRow, FlowSeries, LinkRow, PortSeries, Records};
use results::verdict::{Holds, Judged, Overall, Range, Verdict, state};
use serde_json::{Value, json};

/// One experiment per claim of the papers, and what none of them has.
const ROWS: &[&str] = &[
    "ai/collisions",
    "ai/expert-incast",
    "ai/headroom",
    "ai/interference",
    "ai/nic-failure",
    "ai/storm",
    "ai/uplink-failure",
    "bfc/bloom",
    "bfc/fig2",
    "bfc/fig3",
    "bfc/fig4",
    "bfc/fig5a",
    "bfc/fig5b",
    "bfc/fig5c",
    "bfc/fig6",
    "bfc/fig7",
    "bfc/fig8",
    "bfc/fig9",
    "bfc/fig10",
    "bfc/fig11",
    "bfc/fig12",
    "bfc/fig13",
    "bfc/fig14",
    "bfc/flood",
    "bfc/overhead",
    "bfc/queued-flows",
    "bfc/vfids",
    "blitz/convergence",
    "blitz/dart-incast",
    "blitz/dart-latency",
    "blitz/dart-throughput",
    "blitz/ecn",
    "blitz/edge",
    "blitz/fig1a",
    "blitz/fig1b",
    "blitz/ib-settings",
    "blitz/localised",
    "blitz/ndp",
    "blitz/order",
    "blitz/reaction",
    "blitz/scale",
    "blitz/throughput",
    "conweave/irn",
    "conweave/lossless",
    "conweave/queues",
    "dvl/802.1qcz",
    "dvl/ecn",
    "dvl/hot-spot",
    "dvl/net1-1024",
    "dvl/net1",
    "dvl/net2",
    "dvl/order",
    "dvl/reaction",
    "dvl/resources",
    "dvl/static-queues",
    "floodgate/incast",
    "hpcc/fig11-hadoop-incast",
    "hpcc/fig11-hadoop",
    "hpcc/fig11-websearch-incast",
    "hpcc/fig11-websearch",
    "league/ai-1024",
    "league/ai-balancers",
    "league/ai-jobs",
    "league/ai-others",
    "league/ai",
    "league/bcube",
    "league/clos",
    "letflow/asymmetry",
    "letflow/testbed",
    "portfc/deadlock",
    "portfc/holb",
    "portfc/irn-waste",
    "portfc/latency",
    "portfc/load",
    "portfc/lossless",
    "portfc/prevention",
    "portfc/relay",
    "portfc/throughput",
    "portfc/up-down",
    "reps/asymmetry",
    "reps/failure",
    "sfc/appendix-c",
    "sfc/appendix-c2",
    "sfc/appendix-c3",
    "sfc/cache-gain",
    "sfc/fig1",
    "sfc/fig2",
    "sfc/fig5",
    "sfc/fig6",
    "sfc/fig7",
    "sfc/fig8",
    "sfc/fig9",
    "sfc/fig10",
    "sfc/fig11",
    "sfc/fig12",
    "sfc/fig13",
    "sfc/fig14",
    "sfc/fig15",
    "sfc/fig16",
    "sfc/fig16b",
    "sfc/hpcc-no-trigger",
    "sfc/ndp-packets",
    "sfc/pfc-gbn",
    "sfc/reset",
    "sfc/table2",
    "sfc/throughput",
    "sfc/tor-only",
    "uec/credits-buffer",
    "uec/credits-cycle",
    "uec/credits-incast",
    "uec/credits-length",
    "uec/credits-square",
    "uec/llr-goodput",
    "uec/llr-tail",
    "uec/nscc-incast",
    "uec/nscc-permutation",
    "uec/reps-failure",
    "uec/side-by-side-bcube",
    "uec/side-by-side",
];

// ------------------------------------------------------------------------------------------------------ the experiments

/// Rows that judge nothing; each says why.
const MEASURES: &[&str] = &[
    "bfc/overhead",
    "blitz/dart-latency",
    "blitz/ndp",
    "dvl/802.1qcz",
    "dvl/ecn",
    "dvl/resources",
    "dvl/static-queues",
    "portfc/load",
    "portfc/prevention",
];

#[test]
fn every_claim_has_its_experiment_in_natural_order() {
    assert_eq!(ids().collect::<Vec<_>>(), ROWS);
}

#[test]
fn every_experiment_reads_and_is_called_by_its_path() {
    for id in ids() {
        let experiment = built_in(id, text(id).unwrap()).unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(experiment.id, id);
        assert!(!experiment.expectations.is_empty(), "{id} expects nothing");
        assert!(experiment.expectations.iter().all(|e| !e.paper.is_empty() && e.text.len() > 3), "{id}");
        let measures = id.starts_with("league/") || MEASURES.contains(&id);
        assert_eq!(experiment.expectations.iter().all(|e| e.range.is_open()), measures, "{id}: a claim has a range");
        assert_eq!(experiment.scenario.is_none(), experiment.cells(Scale::Quick).is_empty(), "{id}");
        for scale in [Scale::Quick, Scale::Paper] {
            let cells = experiment.cells(scale);
            assert!(cells.iter().all(|cell| cells.iter().filter(|other| other.sets == cell.sets).count() == 1), "{id}");
        }
    }
}

#[test]
fn every_scenario_is_toml_and_takes_every_change() {
    for experiment in all().unwrap() {
        let Some(scenario) = &experiment.scenario else { continue };
        for scale in [Scale::Quick, Scale::Paper] {
            for cell in experiment.cells(scale) {
                let mut document =
                    scenario::document::Document::parse(experiment.id.as_str(), scenario.as_str()).unwrap();
                for set in cell.sets.iter().filter(|set| !set.starts_with('-')) {
                    document.set(set).unwrap_or_else(|problem| panic!("{}, {}: {problem}", experiment.id, cell.name()));
                }
            }
        }
    }
}

/// The experiments that the pages on papers name as evidence.
fn why() -> Vec<Experiment> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/why");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: &std::path::PathBuf| {
        let experiment = named(file.to_str().unwrap()).unwrap_or_else(|problem| panic!("{problem}")).remove(0);
        assert_eq!(format!("why/{}", file.file_stem().unwrap().to_str().unwrap()), experiment.id);
        experiment
    };
    files.iter().map(read).collect()
}

#[test]
fn every_scheme_and_every_value_that_can_be_run_resolves() {
    let mut seen = std::collections::BTreeSet::new();
    for experiment in all().unwrap().into_iter().chain(why()) {
        let Some(scenario) = &experiment.scenario else { continue };
        let mut cells = experiment.cells(Scale::Quick);
        cells.retain(|cell| experiment.missing(&cell.variant).is_empty());
        let Some(first) = cells.first().cloned() else { continue };
        // Every scheme with one value, and every value with one scheme.
        cells.retain(|cell| cell.variant == first.variant || cell.values == first.values);
        for cell in cells.into_iter().filter(|cell| seen.insert((scenario.clone(), cell.sets.clone()))) {
            // A few of the flows show as much; evenly, so that there are some.
            let document = scenario::document::Document::parse("", scenario.as_str()).unwrap();
            let fewer = [
                "load.0.flows=200",
                "load.0.duration=50us",
                "load.1.duration=50us",
                "load.0.sigma=0.1",
                "load.1.sigma=0.1",
            ];
            let fewer = fewer.iter().filter(|set| document.value(set.split('=').next().unwrap()).is_some());
            let other = cell.sets.iter().any(|set| set.contains(".arrivals="));
            let fewer = fewer.filter(|set| !other || !set.contains("sigma"));
            let sets: Vec<String> = cell.sets.iter().cloned().chain(fewer.map(|set| set.to_string())).collect();
            let read = scenario::Scenario::parse(&experiment.id, scenario, Path::new(""), &sets);
            let resolved = read.and_then(scenario::resolve::resolve);
            assert!(resolved.is_ok(), "{}, {}: {}", experiment.id, cell.name(), resolved.err().unwrap());
        }
    }
}

#[test]
fn experiments_that_are_alike_share_their_runs() {
    let (a, b) = (named("bfc/fig5a").unwrap().remove(0), named("bfc/fig6").unwrap().remove(0));
    assert_eq!((a.cells(Scale::Quick), &a.scenario), (b.cells(Scale::Quick), &b.scenario));
    let c = named("bfc/fig7").unwrap().remove(0);
    let bfc = |e: &Experiment| e.cells(Scale::Paper).into_iter().find(|cell| cell.variant == "BFC").unwrap();
    assert_eq!((bfc(&a), &a.scenario), (bfc(&c), &c.scenario));
}

#[test]
fn a_paper_names_all_of_its_experiments_and_a_near_miss_is_suggested() {
    assert_eq!(named("blitz").unwrap().len(), 15);
    assert_eq!(named("blitz/").unwrap().len(), 15);
    let help = |word: &str| named(word).unwrap_err().help.clone().unwrap();
    assert!(help("fig5a").contains("did you mean bfc/fig5a?"), "{}", help("fig5a"));
    let help_of = help("bfc/fig5");
    assert!(help_of.starts_with("did you mean bfc/fig5a, bfc/fig5b or bfc/fig5c?"), "{help_of}");
    assert!(help("fig5").contains("did you mean sfc/fig5?"), "{}", help("fig5"));
    assert!(help("bcf/fig5a").contains("bfc/fig5a"), "{}", help("bcf/fig5a"));
    assert!(help("sfc/tabel2").contains("sfc/table2"), "{}", help("sfc/tabel2"));
    assert!(help("something else").contains("tailwater claims"));
    assert!(named("nowhere.toml").unwrap_err().message.starts_with("cannot be read"));
}

const MINE: &str = include_str!("../../../tests/samples/experiment.toml");

fn mine() -> Experiment {
    Experiment::read("mine.toml", MINE, &text).unwrap_or_else(|problem| panic!("{problem}"))
}

#[test]
fn cells_are_variants_times_values_with_changes_in_order() {
    let experiment = mine();
    let cells = experiment.cells(Scale::Quick);
    let names: Vec<String> = cells.iter().map(|cell| cell.name()).collect();
    assert_eq!(names, ["A (rate=10Gbps)", "A (rate=100Gbps)", "B (rate=10Gbps)", "B (rate=100Gbps)", "C"]);
    let sets = ["load.0.duration=1ms", "scheme.preset=dcqcn", "scheme.dcqcn.ai=50Mbps", "topology.rate=10Gbps"];
    assert_eq!(cells[2].sets, sets);
    assert_eq!(experiment.cells(Scale::Paper).len(), 7);
    assert_eq!((experiment.seeds(Scale::Quick), experiment.seeds(Scale::Paper)), (2, 5));
    assert_eq!((experiment.missing("A"), experiment.missing("C")), (vec![], vec!["quic".to_string()]));
    let scenario = experiment.scenario.as_deref().unwrap();
    assert!(scenario.starts_with("stop = \"1ms\"\nname = \"mine/first\"\n"), "{scenario}");
    assert!(scenario.contains("\n[topology]\n") && scenario.contains("\n[[load]]\n"), "{scenario}");
}

/// Changes a piece of [`MINE`], which must then be refused.
#[track_caller]
fn refused(from: &str, to: &str, expected: &[&str]) {
    assert!(MINE.contains(from), "{from}");
    let problem = Experiment::read("mine.toml", &MINE.replacen(from, to, 1), &text).unwrap_err().to_string();
    for part in expected {
        assert!(problem.contains(part), "no \"{part}\" in:\n{problem}");
    }
    assert!(problem.contains("\n  help: "), "{problem}");
}

#[test]
fn a_unit_at_the_end_of_a_title_is_read_once() {
    let axis = |given: &str| {
        let text = MINE.replacen("x_scale = \"log\"", &format!("x_scale = \"log\"\nx_title = \"{given}\""), 1);
        let experiment = Experiment::read("mine.toml", &text, &crate::text).unwrap();
        let x = experiment.figures.into_iter().map(|figure| figure.x).find(|x| x.log).unwrap();
        (x.title, x.unit)
    };
    for unit in Unit::ALL {
        assert_eq!(axis(&format!("depth (of all) ({})", unit.symbol())), ("depth (of all)".into(), Some(unit)));
    }
    for plain in ["p99 slowdown", "f(x)", "(1 - U) times flows"] {
        assert_eq!(axis(plain), (plain.into(), None));
    }
}

#[test]
fn a_wrong_experiment_is_refused_at_its_place_with_a_remedy() {
    refused("id = \"mine/first\"", "id = \"../first\"", &["mine.toml:2:6", "cannot be an id"]);
    refused("document =", "documnet =", &["the file has no document"]);
    refused("seeds = 5", "seeds = 0", &["seeds is out of range"]);
    refused("seeds = 5", "seed = 5", &["unknown key \"seed\"", "did you mean \"seeds\""]);
    refused("name = \"B\"", "name = \"A\"", &["two variants \"A\""]);
    refused("set = [\"scheme.dcqcn.ai=50Mbps\"]", "set = [\"ai\"]", &["\"ai\" changes nothing"]);
    refused("label = \"rate\"", "label = \"variant\"", &["cannot be a label"]);
    refused("quick = [\"10Gbps\"", "quick = [\"11Gbps\"", &["\"11Gbps\" is not among the values"]);
    refused("variants = [\"A\", \"B\"]", "variants = [\"A\", \"D\"]", &["there is no variant \"D\""]);
    refused("kind = \"bars\"", "kind = \"bar\"", &["did you mean \"bars\""]);
    refused("x = \"rate\"", "x = \"speed\"", &["\"speed\" has no values"]);
    refused("of = \"queue(port='sw0->h0')\"", "of = \"slowdown\"", &["has no values over time"]);
    refused("x_scale = \"log\"", "x_scale = \"cubic\"", &["neither"]);
    refused("x_scale = \"log\"", "x_title = \"delay (µs)\"", &["there is no unit \"µs\"", "B, us, ms, Gb/s, %, BDP"]);
    refused("label = \"rate\"", "label = \"rate\"\ntitle = \"speed (Gbs)\"", &["mine.toml:39:9", "no unit \"Gbs\""]);
    refused("bins = [\"1KB\", \"10KB\"]", "bins = [\"10KB\", \"1KB\"]", &["do not increase"]);
    refused("partly = { at_least = 1.0 }", "partly = { at_least = 2.0 }", &["not wider"]);
    refused("partly = { at_least = 1.0 }", "partly = { at_most = 2.0 }", &["not wider"]);
    refused("at_most = 2\n", "at_most = \"2 apples\"\n", &["expected the end"]);
    refused("at_most = 2\n", "at_most = \"drops()\"\n", &["is not a number"]);
    refused("at_most = 2\n", "at_least = 3\nat_most = 2\n", &["no value can lie"]);
    refused("at_most = 2\n", "at_most = 2\nunit = \"furlongs\"\n", &["no unit \"furlongs\""]);
    refused("[scenario]", "like = \"bfc/fig5a\"\n[scenario]", &["is like another"]);
    let many: String =
        ('a'..='t').map(|label| format!("[[vary]]\nlabel = \"{label}\"\nkey = \"a\"\nvalues = [1, 2, 3]\n")).collect();
    refused("[[figure]]", &(many + "[[figure]]"), &["runs; 100000 is the most"]);
    refused("bins =", "like = \"bfc/fig99\"\nbins =", &["there is no experiment \"bfc/fig99\""]);
}

#[test]
fn a_fault_of_an_expression_is_shown_at_its_character() {
    let bad = MINE.replacen("p99(slowdown, variant='C')", "p99(slowdwn, variant='C')", 1);
    let problem = Experiment::read("mine.toml", &bad, &text).unwrap_err();
    let line = bad.lines().position(|line| line.contains("slowdwn")).unwrap() + 1;
    let expected = format!(
        "mine.toml:{line}:14: there is no quantity \"slowdwn\"\n   {line} | value = \"p99(slowdwn, variant='C')\"\n      |              ^\n  help: did you mean \"slowdown\"?"
    );
    assert!(problem.to_string().starts_with(&expected), "{problem}");
    let bad = MINE.replacen("\"p99(slowdown, variant='C')\"", "\"\"\"\np99(slowdown,\n  variant='D')\"\"\"", 1);
    let problem = Experiment::read("mine.toml", &bad, &text).unwrap_err();
    let line = bad.lines().position(|line| line.contains("variant='D'")).unwrap() + 1;
    assert_eq!((problem.line, problem.column), (Some(line), Some(3)));
    // An escape moves things, so that only the value's place is certain.
    let bad = MINE.replacen("variant='C')\"", "variant=\\\"D\\\")\"", 1);
    let problem = Experiment::read("mine.toml", &bad, &text).unwrap_err();
    assert!(problem.message.contains("there is no variant \"D\", at character 15"), "{problem}");
}

// ----------------------------------------------------------------------------------------------------------- expressions

fn constant(text: &str) -> f64 {
    Expression::parse(text).unwrap().constant().unwrap_or(f64::NAN)
}

#[test]
fn arithmetic_follows_its_rules_and_units_their_base() {
    let cases = [
        ("2 + 3 * 4 - 6 / 2", 11.0),
        ("-(1 + 2) * 2", -6.0),
        ("--2 - -2", 4.0),
        ("8 / 2 / 2", 2.0),
        ("1e3 + 1.5e-1 + .5", 1000.65),
        ("16MB / 1KB", 16_000.0),
        ("4KiB", 4096.0),
        ("1.5ms + 2us + 500ns", 1502.5),
        ("1Tbps + 250Mbps", 1000.25),
        ("20%", 0.2),
        ("max(1, 2, 3) - min(4, 5)", -1.0),
        ("abs(-3) + sqrt(16) + pow(2, 10)", 1031.0),
        ("bdp(100Gbps, 12us)", 150_000.0),
    ];
    for (text, expected) in cases {
        assert!((constant(text) - expected).abs() < 1e-9, "{text} gives {}", constant(text));
    }
    assert!(constant("drops()").is_nan(), "what is measured is no constant");
}

#[test]
fn a_fault_says_where_what_and_what_instead() {
    let cases = [
        ("p99(slowdwn)", 4, "no quantity \"slowdwn\"", "\"slowdown\""),
        ("1 + p98slowdown", 4, "no measure or function", ""),
        ("peek_buffer()", 0, "no measure or function \"peek_buffer\"", "\"peak_buffer\""),
        ("slowdown / 2", 0, "has many values", "p99(slowdown)"),
        ("p99", 0, "needs parentheses", "p99(…)"),
        ("(1 + 2", 6, "expected \")\", found the end", ""),
        ("1 + 2)", 5, "expected the end, found \")\"", ""),
        ("1 +", 3, "expected a value, found the end", ""),
        ("", 0, "expected a value, found the end", ""),
        ("3 parsecs", 2, "expected the end", ""),
        ("3parsecs", 1, "no unit \"parsecs\"", ""),
        ("5KBs", 1, "no unit \"KBs\"", "KB"),
        ("1 ? 2", 2, "does not belong", ""),
        (". + 1", 0, "a point alone", ""),
        ("p99(slowdown, group=background)", 20, "expected the value of group", "group='value'"),
        ("p99(slowdown, group='a', group='b')", 25, "given twice", ""),
        ("p99(slowdown, 'a')", 14, "expected a filter", ""),
        ("p99(slowdown, group='a)", 20, "never closed", ""),
        ("p99(1 + 2)", 4, "expected a quantity", "p99(slowdown)"),
        ("counter(collisions)", 8, "expected text in quotation marks", "counter('…')"),
        ("bytes_share('gogle', '1KB')", 12, "no workload \"gogle\"", "\"google\""),
        ("bytes_share('google', '1')", 22, "no unit", ""),
        ("1 + 2e308", 4, "too large", "smaller"),
        ("2e307GB", 0, "too large", "smaller"),
        ("bdp(100Gbps)", 0, "does not take 1 values", "bdp(100Gbps, 8us)"),
        ("increasing(drops())", 18, "expected \"over\"", "over key"),
        ("increasing(drops() over 3)", 24, "expected a key", ""),
        ("smallest(drops() over rate in rate)", 30, "expected a value of rate", ""),
    ];
    for (text, at, message, help) in cases {
        let fault = Expression::parse(text).unwrap_err();
        assert_eq!(fault.at, at, "{text}: {fault:?}");
        assert!(fault.message.contains(message) && fault.help.contains(help), "{text}: {fault:?}");
        assert!(!fault.help.is_empty(), "{text}");
    }
    let deep = "(".repeat(10_000);
    assert!(Expression::parse(&deep).unwrap_err().message.contains("too deep"));
}

fn scope() -> Scope {
    mine().scope(None)
}

#[test]
fn names_are_checked_against_the_experiment() {
    let scope = scope();
    let good = [
        "p99(slowdown, variant='A', rate='10Gbps')",
        "p99(slowdown, variant='C')",
        "increasing(p99(slowdown, variant='A', group='back*|incast', size='1KB..') over rate)",
        "average(increasing(p99(slowdown, variant='B') over rate) over size)",
        "smallest(drops(rate='10Gbps') over variant in 'A', 'B')",
        "fairness(variant='A', rate=10Gbps, during='1ms..2ms', seed=1)",
    ];
    for text in good {
        Expression::parse(text).unwrap().check(&scope, &[]).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
    }
    let bad = [
        ("p99(slowdown, variant='a')", "no variant \"a\"", "\"A\""),
        ("p99(slowdown, variant='A')", "at which rate?", "rate='10Gbps'"),
        ("p99(slowdown, rate='10Gbps')", "of which variant?", "A, B, C"),
        ("p99(slowdown, variant='A', rate='11Gbps')", "no rate \"11Gbps\"", "\"10Gbps\""),
        ("p99(slowdown, variant='A', speed='10Gbps')", "no filter here \"speed\"", "rate"),
        ("p99(slowdown, variant='C', grop='incast')", "no filter here \"grop\"", "\"group\""),
        ("p99(slowdown, variant='C', group='incats')", "no group \"incats\"", "\"incast\""),
        ("p99(slowdown, variant='C', size='1KB')", "not a range", "size='1KB..100KB'"),
        ("p99(slowdown, variant='C', size='2KB..1KB')", "is empty", "size"),
        ("p99(buffer, variant='C', during='2KB..')", "unknown unit", "during='1ms..2ms'"),
        ("p99(buffer, variant='C', group='incast')", "no filter here \"group\"", "switch"),
        ("pause_share(variant='C', kind='middle')", "no kind \"middle\"", "core"),
        ("drops(variant='C', seed='one')", "not a seed", "whole number"),
        ("increasing(drops(variant='A') over speed)", "no varied label \"speed\"", "rate"),
        ("increasing(drops(variant='A') over rate in '1Gbps')", "no rate \"1Gbps\"", "10Gbps"),
    ];
    for (text, message, help) in bad {
        let fault = Expression::parse(text).unwrap().check(&scope, &[]).unwrap_err();
        assert!(fault.message.contains(message) && fault.help.contains(help), "{text}: {fault:?}");
    }
    assert!(Expression::parse("drops()").unwrap().check(&scope, &["variant", "rate"]).is_ok());
    // One within another is the ratio to the best; forty are more than anyone waits for.
    let nested = |depth: usize| {
        let text = format!("{}drops(variant='A'){}", "largest(".repeat(depth), " over rate)".repeat(depth));
        Expression::parse(&text).unwrap().check(&scope, &[])
    };
    assert!(nested(2).is_ok());
    let fault = nested(40).unwrap_err();
    assert!(fault.message.contains("100000 is the most") && fault.help.contains("fewer"), "{fault:?}");
    let empty = Scope { bins: Vec::new(), ..scope };
    let fault = Expression::parse("average(drops(variant='C') over size)").unwrap().check(&empty, &[]).unwrap_err();
    assert!(fault.message.contains("no values to go over"), "{fault:?}");
}

#[test]
fn an_over_asks_once_per_value_and_the_innermost_decision_counts() {
    let scope = scope();
    let text = "smallest(largest(p99(slowdown, size='..2KB') over variant in 'A', 'B') over size) + drops(variant='C')";
    let bound: Bindings = vec![("rate".into(), "10Gbps".into())];
    let probes = Expression::parse(text).unwrap().probes(&scope, &bound);
    let asked: Vec<(Option<&str>, Option<&str>, Option<&str>)> =
        probes.iter().map(|p| (p.filter("variant"), p.filter("size"), p.filter("rate"))).collect();
    let (a, b, rate) = ((Some("A"), Some("..2KB")), (Some("B"), Some("..2KB")), Some("10Gbps"));
    let expected = [a, b, a, b].map(|(variant, size)| (variant, size, rate));
    assert_eq!(asked[..4], expected, "a filter of its own beats the size bins");
    assert_eq!(asked[4], (Some("C"), None, rate), "drops has no size");
}

#[test]
fn folds_do_what_they_are_called() {
    let label = Label {
        name: "n".into(),
        values: ["1", "2", "4"].iter().enumerate().map(|(i, n)| Step::new(*n, i)).collect(),
        variants: None,
    };
    let scope = Scope { variants: vec!["A".into()], labels: vec![label], ..Scope::default() };
    let value = |text: &str, ys: [f64; 3]| {
        let mut probe = |probe: &super::expression::Probe| {
            let place = ["1", "2", "4"].iter().position(|n| Some(*n) == probe.filter("n")).unwrap();
            Ok(ys[place])
        };
        let answers = &mut super::expression::Answers { scope: &scope, sizes: &NoSizes, probe: &mut probe };
        Expression::parse(text).unwrap().evaluate(&Bindings::new(), answers)
    };
    let close = |text: &str, ys: [f64; 3], expected: f64| {
        let found = value(text, ys).unwrap();
        assert!((found - expected).abs() < 1e-12, "{text} gives {found}");
    };
    close("smallest(drops() over n)", [3.0, 1.0, 2.0], 1.0);
    close("largest(drops() over n)", [3.0, 1.0, 2.0], 3.0);
    close("largest(drops() over n in 2, 4)", [3.0, 1.0, 2.0], 2.0);
    close("average(drops() over n)", [3.0, 1.0, 2.0], 2.0);
    close("growth(drops() over n)", [2.0, 1.0, 6.0], 3.0);
    close("spread(drops() over n)", [2.0, 1.0, 6.0], 6.0);
    close("increasing(drops() over n)", [2.0, 3.0, 6.0], 1.5);
    close("increasing(drops() over n)", [2.0, 1.0, 6.0], 0.5);
    close("decreasing(drops() over n)", [6.0, 3.0, 2.0], 1.5);
    close("slope(drops() over n)", [3.0, 5.0, 9.0], 2.0);
    close("linearity(drops() over n)", [3.0, 5.0, 9.0], 1.0);
    close("linearity(drops() over n)", [5.0, 5.0, 5.0], 1.0);
    assert!(value("linearity(drops() over n)", [0.0, 9.0, 0.0]).unwrap() < 0.5);
    assert!(value("growth(drops() over n in 2)", [1.0; 3]).unwrap_err().contains("too few values of n"));
    assert!(value("1 / smallest(drops() over n)", [0.0; 3]).unwrap_err().contains("divided by zero"));
}

#[test]
fn patterns_match_names() {
    for (pattern, text, expected) in [
        ("leaf*", "leaf12", true),
        ("leaf*", "spine1", false),
        ("*->h0", "leaf0->h0", true),
        ("*->h0", "leaf0->h01", false),
        ("leaf*->spine*", "leaf1->spine2", true),
        ("leaf*->spine*", "spine2->leaf1", false),
        ("a*b*a", "aba", true),
        ("a*b*a", "aa", false),
        ("*", "", true),
        ("a|b", "b", true),
        ("h3..h11", "h3", true),
        ("h3..h11", "h11", true),
        ("h3..h11", "h12", false),
        ("h3..h11", "g5", false),
        ("h3..h11|h20", "h20", true),
        ("exact", "exactly", false),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z0-9 .,()'=*/+%|_-]{0,60}", any in "\\PC{0,40}") {
        for text in [text, any] {
            if let Ok(expression) = Expression::parse(&text) {
                _ = expression.check(&scope(), &[]);
                _ = expression.constant();
                _ = expression.probes(&scope(), &Bindings::new());
            }
            _ = Expression::parse_quantity(&text);
            _ = matches(&text, "leaf0->h1");
        }
    }

    #[test]
    fn no_experiment_file_makes_the_reader_panic(from in 0usize..2600, cut in 0usize..12, put in "[a-z\"=\\[\\]{}.,0-9()' ]{0,6}") {
        let mut changed: Vec<char> = MINE.chars().collect();
        let from = from.min(changed.len());
        let to = (from + cut).min(changed.len());
        changed.splice(from..to, put.chars());
        _ = Experiment::read("mine.toml", &changed.into_iter().collect::<String>(), &text);
    }
}

// -------------------------------------------------------------------------------------------------------------- evidence

fn flow(group: &str, size: u64, slowdown: Option<f64>) -> FlowRow {
    let ideal = size * 80 + 1_000_000;
    let received = slowdown.map(|s| (s * ideal as f64) as u64);
    FlowRow {
        src: "h1".into(),
        dst: "h0".into(),
        group: group.into(),
        size,
        start_ps: Some(0),
        injected_ps: received.map(|t| t / 2),
        received_ps: received,
        acknowledged_ps: received.map(|t| t + 1_000_000),
        held_ps: 0,
        paused_ps: 0,
        ideal_ps: Some(ideal),
        slowdown,
        slowdown_acknowledged: slowdown.map(|s| s + 0.5),
    }
}

fn link(from: &str, to: &str, sent_bytes: u64, paused_ps: u64) -> LinkRow {
    let (from_host, to_host) = (from.starts_with('h'), to.starts_with('h'));
    let (from, to, paused_class_ps) = (from.into(), to.into(), paused_ps);
    let (rate_bps, most_queued_bytes) = (100_000_000_000, None);
    LinkRow { from, to, from_host, to_host, rate_bps, sent_bytes, paused_ps, paused_class_ps, most_queued_bytes }
}

/// A run of 100 us.
fn records() -> Records {
    Records {
        folder: "somewhere".into(),
        summary: json!({
            "end_ps": 100_000_000u64,
            "ending": "complete",
            "dropped": { "packets": 3, "buffer": 2 },
            "counters": { "pause_frames": 7 },
            "histograms": { "queues_occupied": [2, 0, 1, 1] },
            "list": [5, 6],
            "buffer": { "peak": 900, "switches": [{ "switch": "sw0", "peak": 900 }, { "switch": "top0", "peak": 300 }] },
        }),
        flows: vec![
            flow("background", 500, Some(1.0)),
            flow("background", 1000, Some(2.0)),
            flow("background", 5000, Some(3.0)),
            flow("background", 10_000, Some(10.0)),
            flow("background", 20_000, None),
            flow("incast", 1000, Some(50.0)),
        ],
        buffers: vec![
            BufferSeries {
                switch: "sw0".into(),
                time_ps: vec![0, 10_000_000, 20_000_000],
                bytes: vec![100, 200, 600],
                peak_bytes: vec![100, 300, 900],
            },
            BufferSeries {
                switch: "top0".into(),
                time_ps: vec![0, 10_000_000],
                bytes: vec![0, 40],
                peak_bytes: vec![0, 50],
            },
        ],
        links: vec![
            link("h0", "sw0", 0, 50_000_000),
            link("sw0", "h0", 1_250_000, 0),
            link("h1", "sw0", 625_000, 0),
            link("sw0", "h1", 0, 0),
            link("sw0", "top0", 0, 10_000_000),
            link("top0", "sw0", 0, 0),
        ],
        ports: vec![PortSeries {
            from: "sw0".into(),
            to: "h0".into(),
            time_ps: vec![0, 10_000_000, 20_000_000, 30_000_000],
            queue_bytes: vec![10, 20, 30, 40],
            sent_bytes: vec![0, 1, 2, 3],
        }],
        rates: vec![
            FlowSeries {
                flow: 0,
                group: "background".into(),
                time_ps: vec![0, 10_000_000, 20_000_000],
                received_bytes: vec![0, 1000, 4000],
            },
            FlowSeries {
                flow: 1,
                group: "background".into(),
                time_ps: vec![0, 10_000_000, 20_000_000],
                received_bytes: vec![0, 1000, 2000],
            },
        ],
    }
}

const ONE: &str = r#"
id = "one"
document = "d"
place = "p"
title = "t"
says = "s"
[scenario]
[[scenario.load]]
name = "background"
[[scenario.incast]]
name = "incast"
[[variant]]
name = "A"
preset = "hpcc"
"#;

/// What an expression gives on [`records`].
fn measured(expression: &str) -> Result<f64, String> {
    let text = format!("{ONE}\n[[expect]]\npaper = \"p\"\nvalue = \"{expression}\"\n");
    let experiment = Experiment::read("one.toml", &text, &super::text).unwrap_or_else(|problem| panic!("{problem}"));
    let mut evidence = Evidence::new(&experiment, Scale::Quick, &NoSizes);
    evidence.add(&Run { variant: "A".into(), values: vec![], seed: 1, records: records() });
    evidence.expected(&experiment.expectations[0]).map(|measured| measured.value)
}

#[test]
fn every_measure_is_what_its_records_say() {
    let cases = [
        ("p50(slowdown, group='background')", 2.5),
        ("p100(slowdown)", 50.0),
        ("p0(slowdown)", 1.0),
        ("max(slowdown, group='background')", 10.0),
        ("min(slowdown, size='1KB..')", 3.0),
        ("mean(slowdown, size='..1KB', group='background')", 1.5),
        ("count(slowdown, group='background')", 4.0),
        ("count(slowdown, group='background', size='1GB..')", 0.0),
        ("total(size, group='background')", 36_500.0),
        ("deviation(slowdown, size='..1KB', group='background')", 0.5),
        ("max(slowdown_acknowledged, group='background')", 10.5),
        // Two samples of 0, one of 2 and one of 3.
        ("mean(sampled, name='queues_occupied')", 1.25),
        ("count(sampled, name='queues_occupied')", 4.0),
        ("min(fct_us, group='background')", 1.04),
        ("min(acknowledged_us, group='background')", 2.04),
        ("min(injected_us, group='background')", 0.52),
        ("max(throughput_gbps, size='..500B')", 4000.0 / 1040.0),
        ("max(receiver_gbps)", 100.0),
        ("mean(receiver_gbps)", 50.0),
        ("max(receiver_gbps, host='h1')", 0.0),
        ("max(buffer)", 600.0),
        ("mean(buffer, switch='top*')", 20.0),
        ("max(buffer, switch='sw0', during='0us..15us')", 200.0),
        ("max(watermark)", 900.0),
        ("mean(watermark, switch='top*')", 25.0),
        ("mean(queue, port='sw0->h*')", 25.0),
        ("mean(queue, during='10us..30us')", 25.0),
        ("max(rate_gbps, group='background')", 2.4),
        ("mean(rate_gbps, group='background', during='15us..')", 1.6),
        ("max(sent_gbps, port='sw0->h*')", 8e-4),
        ("count(sent_gbps, during='15us..')", 2.0),
        ("settled_us(port='sw0->h0', rate='800kbps', during='0us..')", 0.0),
        ("settled_us(port='sw0->h0', rate='880kbps', during='0us..25us')", 0.0),
        ("settled_us(port='sw0->h0', rate='900kbps', during='0us..25us')", 20.0),
        ("settled_us(port='sw0->h0', rate='900kbps', during='10us..')", 20.0),
        ("peak_buffer()", 900.0),
        ("peak_buffer(switch='top*')", 300.0),
        ("pause_share()", 0.6 / 6.0),
        ("pause_share(kind='core')", 0.05),
        ("pause_share(kind='up')", 0.25),
        ("pause_share(link='sw0->top0')", 0.1),
        ("utilisation(kind='down')", 0.5),
        ("utilisation(kind='up', link='h1->*')", 0.5),
        ("finished_share(group='background')", 0.8),
        ("finished_share(group='incast')", 1.0),
        // The fifth flow never ended, the fourth took 18 us.
        ("delivered_share(group='background')", 16_500.0 / 36_500.0),
        ("delivered_share(group='background', until='2us')", 500.0 / 36_500.0),
        ("max(fct_us, group='background', until='50us')", 50.0),
        ("count(fct_us, group='background', until='50us')", 5.0),
        ("min(throughput_gbps, group='background', until='50us')", 0.0),
        ("max(throughput_gbps, size='..500B', until='50us')", 4000.0 / 1040.0),
        ("drops()", 2.0),
        ("summary('dropped.packets') + summary('list.1')", 9.0),
        ("counter('pause_frames')", 7.0),
        ("ending('complete') - ending('deadlock')", 1.0),
        ("fairness(group='background', during='0us..10us')", 1.0),
        ("fairness(group='background', during='10us..20us')", 16.0 / 20.0),
        ("goodput_gbps(group='background', during='10us..20us')", 3.2),
        ("goodput_gbps(group='background')", 2.4),
    ];
    for (expression, expected) in cases {
        let found = measured(expression).unwrap_or_else(|why| panic!("{expression}: {why}"));
        assert!((found - expected).abs() < 1e-9, "{expression} gives {found}, not {expected}");
    }
    // Without series, fairness and goodput come from completed flows.
    let incast = measured("goodput_gbps(group='incast')").unwrap();
    assert!((incast - 8000.0 / 54_000.0).abs() < 1e-9, "{incast}");
    assert_eq!(measured("fairness(group='incast')"), Ok(1.0));
}

#[test]
fn what_has_no_value_says_why() {
    for (expression, why) in [
        ("p99(slowdown, size='1GB..')", "no such flow finished"),
        ("p99(queue, port='nowhere')", "no such port was watched"),
        ("p99(buffer, switch='nowhere')", "no such switch was sampled"),
        ("peak_buffer(switch='nowhere')", "no such switch"),
        ("counter('collisions')", "did not count collisions"),
        ("summary('no.such.path')", "has no no.such.path"),
        ("summary('ending')", "is no number"),
        ("utilisation(link='nowhere')", "no such link"),
        ("drops() / (drops() - 2)", "divided by zero"),
        ("bytes_share('google', '1KB')", "no table of flow sizes for google"),
        ("drops(seed=9)", "no run of A"),
    ] {
        let found = measured(expression).unwrap_err();
        assert!(found.contains(why), "{expression}: {found}");
    }
}

/// Runs of [`MINE`] whose background flows all have the slowdown that `slowdown` says.
fn evidence<'a>(experiment: &'a Experiment, seeds: u64, slowdown: &dyn Fn(&str, &str, u64) -> f64) -> Evidence<'a> {
    let mut evidence = Evidence::new(experiment, Scale::Quick, &NoSizes);
    for cell in experiment.cells(Scale::Quick).iter().filter(|cell| cell.variant != "C") {
        for seed in 1..=seeds {
            let mut records = records();
            let value = slowdown(&cell.variant, &cell.values[0].1, seed);
            records.flows.iter_mut().for_each(|flow| flow.slowdown = Some(value));
            evidence.add(&Run { variant: cell.variant.clone(), values: cell.values.clone(), seed, records });
        }
    }
    evidence
}

#[test]
fn a_median_over_seeds_has_students_interval_on_a_logarithmic_scale() {
    let experiment = mine();
    let evidence = evidence(&experiment, 3, &|_, _, seed| 2f64.powi(seed as i32));
    let measured = evidence.expected(&experiment.expectations[2]).unwrap();
    // Five flows each with 2, 4 and 8. Without a seed the median is 6, 5 and 3.
    assert_eq!((measured.value, measured.seeds, measured.samples), (4.0, 3, Some(15)));
    let pseudo = [6.0, 5.0, 3.0].map(|other: f64| 3.0 * 4f64.ln() - 2.0 * other.ln());
    let mean = pseudo.iter().sum::<f64>() / 3.0;
    let deviation = (pseudo.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    // t(2) = 4.303.
    let half = 4.303 * deviation / 3f64.sqrt();
    let (low, high) = measured.interval.unwrap();
    assert!((low / (4.0 * (-half).exp()) - 1.0).abs() < 1e-9, "{low}");
    assert!((high / (4.0 * half.exp()) - 1.0).abs() < 1e-9, "{high}");
}

/// Evidence on an expression from runs whose records are made by seed.
fn over_seeds(expression: &str, seeds: u64, records: &dyn Fn(u64) -> Records) -> Result<Measured, String> {
    let text = format!("{ONE}\n[[expect]]\npaper = \"p\"\nvalue = \"{expression}\"\n");
    let experiment = Experiment::read("one.toml", &text, &super::text).unwrap_or_else(|problem| panic!("{problem}"));
    let mut evidence = Evidence::new(&experiment, Scale::Quick, &NoSizes);
    for seed in 1..=seeds {
        evidence.add(&Run { variant: "A".into(), values: vec![], seed, records: records(seed) });
    }
    evidence.expected(&experiment.expectations[0])
}

/// Background flows of 1 KB with these slowdowns.
fn slowed(slowdowns: &[f64]) -> Records {
    let flows = slowdowns.iter().map(|slowdown| flow("background", 1000, Some(*slowdown))).collect();
    Records { flows, ..records() }
}

#[test]
fn samples_of_all_seeds_are_pooled_and_numbers_of_a_run_are_averaged() {
    // A seed with one flow, and one with four.
    let records = |seed: u64| match seed {
        1 => slowed(&[10.0]),
        _ => slowed(&[1.0, 2.0, 3.0, 4.0]),
    };
    for (expression, expected) in [
        // Of 1, 2, 3, 4 and 10.
        ("p50(slowdown)", 3.0),
        ("p75(slowdown)", 4.0),
        ("p90(slowdown)", 4.0 + 0.6 * 6.0),
        ("mean(slowdown)", 4.0),
        ("max(slowdown)", 10.0),
        ("min(slowdown)", 1.0),
        ("deviation(slowdown)", 10f64.sqrt()),
        // Of what each seed has.
        ("count(slowdown)", 2.5),
        ("total(slowdown)", 10.0),
        ("finished_share()", 1.0),
        ("counter('pause_frames')", 7.0),
    ] {
        let found = over_seeds(expression, 2, &records).unwrap().value;
        assert!((found - expected).abs() < 1e-12, "{expression} gives {found}, not {expected}");
    }
}

proptest! {
    #[test]
    fn a_pooled_percentile_is_that_of_all_samples_sorted(seeds in prop::collection::vec(prop::collection::vec(-1e3f64..1e3, 1..20), 1..5), q in 0u32..100) {
        let name = format!("p{q:02}(slowdown)");
        let found = over_seeds(&name, seeds.len() as u64, &|seed| slowed(&seeds[seed as usize - 1])).unwrap().value;
        let mut all: Vec<f64> = seeds.concat();
        all.sort_by(f64::total_cmp);
        prop_assert_eq!(found, results::measure::percentile(&all, q as f64 / 100.0));
    }
}

#[test]
fn runs_that_are_the_same_whatever_the_seed_have_an_interval_of_no_width() {
    // The 99th percentile of these values three times is not that of them twice.
    for expression in ["p99(slowdown)", "mean(slowdown) / 3", "counter('pause_frames')", "p99(slowdown) - 100"] {
        let measured = over_seeds(expression, 3, &|_| slowed(&[1.0, 2.0, 0.1])).unwrap();
        assert_eq!(measured.interval, Some((measured.value, measured.value)), "{expression}");
    }
    assert_eq!(over_seeds("p99(slowdown)", 1, &|_| slowed(&[1.0, 2.0])).unwrap().interval, None);
}

#[test]
fn an_interval_stays_where_its_value_can_lie() {
    let finished = |seed: u64| {
        let mut records = slowed(&[1.0; 10]);
        records.flows.iter_mut().take(seed as usize / 3 * 3).for_each(|flow| flow.received_ps = None);
        records
    };
    let interval = |expression: &str| over_seeds(expression, 3, &finished).unwrap().interval.unwrap();
    let (low, high) = interval("finished_share()");
    assert!(low > 0.0 && high == 1.0, "{low} {high}");
    let (low, high) = interval("1 - finished_share()");
    assert!(low == 0.0 && high > 0.5 && high < 0.6, "{low} {high}: zero has no logarithm");
    let (low, _) = interval("finished_share() - 1");
    assert!(low < -0.1, "{low}");
    for (expression, expected) in [
        ("pause_share()", (0.0, 1.0)),
        ("1 - ending('deadlock')", (0.0, 1.0)),
        ("pause_share() * utilisation() / 2", (0.0, 0.5)),
        ("drops() / counter('a')", (0.0, f64::INFINITY)),
        ("drops() - counter('a')", (f64::NEG_INFINITY, f64::INFINITY)),
        ("-p99(slowdown)", (f64::NEG_INFINITY, 0.0)),
        ("max(2, fairness()) + min(1, drops())", (2.0, 3.0)),
        ("summary('a')", (f64::NEG_INFINITY, f64::INFINITY)),
        ("bdp(drops(), 5us)", (0.0, f64::INFINITY)),
        ("bdp(drops(), -5us)", (f64::NEG_INFINITY, f64::INFINITY)),
        ("1e300 * 1e300 - 1e300 * 1e300", (f64::NEG_INFINITY, f64::INFINITY)),
    ] {
        assert_eq!(Expression::parse(expression).unwrap().bounds(), expected, "{expression}");
    }
}

#[test]
fn a_percentile_of_few_samples_is_marked_with_their_number() {
    for (expression, count, samples, few) in [
        ("p50(slowdown)", 99, Some(99), true),
        ("p50(slowdown)", 100, Some(100), false),
        ("p99(slowdown)", 999, Some(999), true),
        ("p99(slowdown)", 1000, Some(1000), false),
        ("p999(slowdown)", 1000, Some(1000), true),
        ("p50(slowdown) / p99(slowdown, group='background')", 500, Some(500), true),
        ("mean(slowdown)", 3, None, false),
        ("counter('pause_frames')", 3, None, false),
    ] {
        let measured = over_seeds(expression, 1, &|_| slowed(&vec![1.0; count])).unwrap();
        assert_eq!((measured.samples, measured.few), (samples, few), "{expression} of {count}");
    }
    let pooled = over_seeds("p50(slowdown)", 2, &|seed| slowed(&vec![seed as f64; 50])).unwrap();
    assert_eq!((pooled.samples, pooled.few), (Some(100), false));
    // Seeds that give the same are no more samples.
    let same = over_seeds("p50(slowdown)", 3, &|_| slowed(&[1.0; 50])).unwrap();
    assert_eq!((same.samples, same.few, same.interval), (Some(50), true, Some((1.0, 1.0))));
}

#[test]
fn a_ratio_of_schemes_with_the_same_traffic_has_no_interval_where_seeds_change_both_alike() {
    let experiment = mine();
    let twice = |variant: &str, _: &str, seed: u64| if variant == "B" { 2.0 * seed as f64 } else { seed as f64 };
    let evidence = evidence(&experiment, 4, &twice);
    let measured = evidence.expected(&experiment.expectations[0]).unwrap();
    assert_eq!(measured.value, 2.0);
    let (low, high) = measured.interval.unwrap();
    assert!(high - low < 1e-9, "{low} {high}");
}

#[test]
fn one_seed_has_no_interval_and_a_computed_value_no_seeds() {
    let experiment = mine();
    let one = evidence(&experiment, 1, &|_, _, _| 1.0);
    assert_eq!(one.expected(&experiment.expectations[2]).unwrap().interval, None);
    let text = format!("{ONE}\n[[expect]]\npaper = \"p\"\nvalue = \"1 + 1\"\n");
    let computed = Experiment::read("one.toml", &text, &super::text).unwrap();
    let evidence = Evidence::new(&computed, Scale::Quick, &NoSizes);
    let measured = evidence.expected(&computed.expectations[0]).unwrap();
    assert_eq!((measured.value, measured.interval, measured.seeds), (2.0, None, 0));
}

#[test]
fn figures_have_a_curve_for_every_variant_and_value_that_was_run() {
    let experiment = mine();
    let evidence = evidence(&experiment, 2, &|variant, rate, _| match (variant, rate) {
        ("A", "10Gbps") => 1.0,
        ("A", _) => 2.0,
        _ => 4.0,
    });
    let [tails, by_speed, buffers, queue] = &experiment.figures[..] else { panic!("four figures") };
    let plots = evidence.plots(tails);
    let titles: Vec<&str> = plots.iter().map(|plot| plot.title.as_str()).collect();
    assert_eq!(titles, ["Tails, rate 10Gbps", "Tails, rate 100Gbps"]);
    let names: Vec<&str> = plots[0].curves.iter().map(|curve| curve.name.as_str()).collect();
    assert_eq!(names, ["A", "B"], "C cannot be run");
    let points: Vec<(f64, f64)> = plots[1].curves[0].points.iter().map(|point| (point.x, point.y)).collect();
    assert_eq!(points, [(1000.0, 2.0), (10_000.0, 2.0)]);

    let plot = &evidence.plots(by_speed)[0];
    assert_eq!(plot.categories.as_deref(), Some(&["10Gbps".to_string(), "100Gbps".to_string()][..]));
    assert_eq!(plot.curves[0].points.iter().map(|point| point.x).collect::<Vec<_>>(), [0.0, 1.0]);

    let plot = &evidence.plots(buffers)[0];
    assert_eq!(plot.curves[0].name, "A, rate 10Gbps");
    assert_eq!(plot.curves.len(), 4);
    let points = &plot.curves[0].points;
    assert_eq!((points[0].x, points[0].y), (100.0, 0.0));
    assert_eq!(points.last().map(|point| (point.x, point.y)), Some((600.0, 1.0)));
    assert!(points.windows(2).all(|pair| pair[0].x <= pair[1].x && pair[0].y <= pair[1].y));

    let plot = &evidence.plots(queue)[0];
    let points: Vec<(f64, f64)> = plot.curves[0].points.iter().map(|point| (point.x, point.y)).collect();
    assert_eq!(points, [(0.0, 10.0), (10.0, 20.0), (20.0, 30.0), (30.0, 40.0)]);
}

#[test]
fn a_figure_shows_what_the_paper_states_in_its_panel_and_at_its_place() {
    let stated = r#"
[[figure.mark]]
axis = "y"
at = 1.5
title = "the bound"
[[figure.paper]]
variant = "B"
x = "100Gbps"
y = "16KB"
[[figure.paper]]
x = "40Gbps"
y = 3
"#;
    let next = "[[figure]]\ntitle = \"Buffers\"";
    assert!(MINE.contains(next));
    let text = MINE.replace(next, &format!("{stated}\n{next}"));
    let experiment = Experiment::read("mine.toml", &text, &super::text).unwrap_or_else(|problem| panic!("{problem}"));
    let figure = &experiment.figures[1];
    assert_eq!(figure.marks.iter().map(|mark| (mark.level, mark.at)).collect::<Vec<_>>(), [(true, 1.5)]);
    let evidence = evidence(&experiment, 1, &|_, _, _| 1.0);
    let plot = &evidence.plots(figure)[0];
    let shown: Vec<_> =
        plot.stated.iter().map(|curve| (curve.name.as_str(), curve.points[0].x, curve.points[0].y)).collect();
    assert_eq!(shown, [("B, in the paper", 1.0, 16_000.0)], "40 Gb/s is not run at this scale");
    for (bad, says) in [("x = \"100Gbps\"", "x"), ("variant = \"B\"", "variant")] {
        let text = text.replacen(bad, &format!("{says} = \"Z\""), 1);
        let problem = Experiment::read("mine.toml", &text, &super::text).unwrap_err().to_string();
        assert!(problem.contains(&format!("the figure has no {says} \"Z\"")), "{problem}");
    }
}

/// All flows have 1 KB.
struct Alike;

impl Sizes for Alike {
    fn bytes_share(&self, _: &str, up_to: u64) -> Option<f64> {
        Some(if up_to >= 1000 { 1.0 } else { 0.0 })
    }
    fn flows_share(&self, workload: &str, up_to: u64) -> Option<f64> {
        self.bytes_share(workload, up_to)
    }
}

#[test]
fn an_experiment_without_runs_is_judged_by_the_tables_alone() {
    let experiment = named("bfc/fig4").unwrap().remove(0);
    let evidence = Evidence::new(&experiment, Scale::Quick, &Alike);
    let verdict = judge(&experiment, Scale::Quick, &evidence);
    assert_eq!((verdict.verdict, verdict.tally()), (Overall::Holds, (8, 8)));
    let plots = evidence.plots(&experiment.figures[0]);
    assert_eq!(plots[0].curves.len(), 3);
    assert!(plots[0].curves[0].points.iter().any(|point| point.x < 1000.0 && point.y == 0.0));
    let untold = judge(&experiment, Scale::Quick, &Evidence::new(&experiment, Scale::Quick, &NoSizes));
    assert_eq!(untold.verdict, Overall::NotRun);
}

// -------------------------------------------------------------------------------------------------------------- verdicts

fn judged(experiment: &Experiment, seeds: u64, ratio: &dyn Fn(u64) -> f64) -> Verdict {
    let evidence = evidence(experiment, seeds, &|variant, _, seed| if variant == "B" { ratio(seed) } else { 1.0 });
    judge(experiment, Scale::Quick, &evidence)
}

#[test]
fn an_expectation_is_judged_by_the_whole_interval() {
    let (range, partly) = (Range { at_least: Some(2.0), at_most: None }, Range { at_least: Some(1.0), at_most: None });
    let band = Range { at_least: Some(2.0), at_most: Some(3.0) };
    let open = Range::default();
    for (range, partly, value, interval, seeds, expected) in [
        (range, Some(partly), 3.0, Some((2.0, 4.0)), 3, Holds::Yes),
        (range, Some(partly), 3.0, Some((1.5, 6.0)), 3, Holds::Partly),
        (range, Some(partly), 1.5, Some((1.2, 1.8)), 3, Holds::Partly),
        (range, Some(partly), 3.0, Some((0.9, 9.0)), 3, Holds::CannotTell),
        (range, Some(partly), 0.5, Some((0.1, 2.5)), 3, Holds::CannotTell),
        (range, Some(partly), 0.5, Some((0.1, 0.9)), 3, Holds::No),
        (range, None, 3.0, Some((1.5, 6.0)), 3, Holds::CannotTell),
        // It reaches past both ends, and none of value, low and high is in the range.
        (band, None, 4.0, Some((1.0, 9.0)), 3, Holds::CannotTell),
        (band, None, 4.0, Some((3.5, 9.0)), 3, Holds::No),
        // The same whatever the seed.
        (range, None, 2.0, Some((2.0, 2.0)), 2, Holds::Yes),
        // One seed.
        (range, Some(partly), 3.0, None, 1, Holds::Partly),
        (range, None, 3.0, None, 1, Holds::Partly),
        (range, Some(partly), 0.5, None, 1, Holds::No),
        // Computed.
        (range, Some(partly), 3.0, None, 0, Holds::Yes),
        (range, Some(partly), 1.5, None, 0, Holds::Partly),
        (range, None, 1.5, None, 0, Holds::No),
        (open, None, 1.5, Some((0.0, 9.0)), 3, Holds::Asked),
    ] {
        let measured = Measured { value, interval, seeds, samples: None, few: false };
        let found = judge::holds(range, partly, &measured);
        assert_eq!(found, expected, "{value} {interval:?} of {seeds} seeds in {range:?}, {partly:?}");
    }
}

#[test]
fn a_single_seed_says_why_it_shows_no_more() {
    let experiment = mine();
    let one = &judged(&experiment, 1, &|_| 2.0).expectations[0];
    assert_eq!((one.holds, one.why.as_deref()), (Holds::Partly, Some("in the range, with no interval to be sure")));
    assert_eq!(one.expected(), "≥ 1.5× (partly ≥ 1×)");
    assert_eq!(one.few().as_deref(), Some("few samples: 5"));
    let near = &judged(&experiment, 3, &|seed| 1.5 + seed as f64 / 10.0).expectations[0];
    assert_eq!((near.holds, near.why.as_deref()), (Holds::Partly, Some("the interval reaches beyond the range")));
    let wide = &judged(&experiment, 3, &|seed| 6f64.powi(seed as i32 - 1)).expectations[0];
    let why = "the interval has values that hold and values that do not";
    assert_eq!((wide.holds, wide.why.as_deref()), (Holds::CannotTell, Some(why)));
}

#[test]
fn what_needs_a_scheme_says_so_and_a_question_goes_over_what_there_is() {
    let experiment = mine();
    let verdict = judged(&experiment, 2, &|_| 3.0);
    assert_eq!(verdict.verdict, Overall::Needs);
    assert_eq!(verdict.needs, ["quic"]);
    assert_eq!(verdict.line(), "needs quic (1 of 2 expectations hold)");
    let holds: Vec<Holds> = verdict.expectations.iter().map(|judged| judged.holds).collect();
    assert_eq!(holds, [Holds::Yes, Holds::Untold, Holds::Asked, Holds::Asked], "what is for paper scale is not asked");
    assert_eq!(verdict.expectations[3].value, Some(3.0));
    assert_eq!(verdict.expectations[1].why.as_deref(), Some("needs quic (not there yet)"));
}

#[test]
fn the_overall_verdict_follows_from_the_expectations() {
    let plain = judged(&mine(), 2, &|_| 3.0).expectations[0].clone();
    // y holds, p holds partly, i too but its interval has values that hold, n does not hold, c cannot be told, l neither but it can
    // no longer hold, u has no data, a is a question.
    let one = |letter: char| {
        let (holds, value, interval) = match letter {
            'y' => (Holds::Yes, Some(2.0), Some((1.9, 2.1))),
            'p' => (Holds::Partly, Some(1.2), Some((1.1, 1.3))),
            'i' => (Holds::Partly, Some(2.0), Some((1.2, 2.8))),
            'n' => (Holds::No, Some(0.5), Some((0.4, 0.6))),
            'c' => (Holds::CannotTell, Some(1.2), Some((0.5, 2.0))),
            'l' => (Holds::CannotTell, Some(1.1), Some((0.9, 1.3))),
            'u' => (Holds::Untold, None, None),
            _ => (Holds::Asked, Some(1.0), Some((0.9, 1.1))),
        };
        Judged { holds, value, interval, ..plain.clone() }
    };
    for (letters, expected) in [
        ("yya", Overall::Holds),
        ("yp", Overall::InPart),
        ("yn", Overall::InPart),
        ("ypnn", Overall::InPart),
        ("yc", Overall::InPart),
        ("yu", Overall::InPart),
        ("ynn", Overall::Fails),
        ("ynnp", Overall::InPart),
        ("pp", Overall::Fails),
        ("pn", Overall::Fails),
        ("nnnnn", Overall::Fails),
        ("cnn", Overall::Fails),
        ("cn", Overall::CannotTell),
        ("nu", Overall::CannotTell),
        ("ii", Overall::CannotTell),
        ("inn", Overall::Fails),
        ("pc", Overall::CannotTell),
        ("yccc", Overall::CannotTell),
        ("ycnnn", Overall::Fails),
        ("cc", Overall::CannotTell),
        ("cua", Overall::CannotTell),
        ("l", Overall::Fails),
        ("lp", Overall::Fails),
        ("cl", Overall::CannotTell),
        ("yl", Overall::InPart),
        ("ylln", Overall::CannotTell),
        ("ua", Overall::NotRun),
        ("a", Overall::Measured),
        ("", Overall::NotRun),
    ] {
        let expectations: Vec<Judged> = letters.chars().map(one).collect();
        assert_eq!(judge::overall(&expectations), expected, "{letters}");
    }
    let needing = Judged { needs: vec!["quic".into()], ..one('u') };
    assert_eq!(judge::overall(&[one('y'), needing]), Overall::Needs);
}

#[test]
fn a_verdict_is_written_as_json_and_read_back_as_a_state() {
    let experiment = mine();
    let verdict = judged(&experiment, 2, &|_| 3.0);
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("mine/first");
    assert_eq!(state(&inside), None);
    let path = verdict.write(&inside).unwrap();
    let value: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(value["id"], "mine/first");
    assert_eq!((&value["scale"], &value["verdict"]), (&json!("quick"), &json!("needs a scheme")));
    assert_eq!((&value["seeds"], &value["runs"], &value["needs"]), (&json!(2), &json!(8), &json!(["quic"])));
    let first = &value["expectations"][0];
    assert_eq!(first["paper"], "A beats B");
    assert_eq!(first["expression"], experiment.expectations[0].text.as_str());
    assert_eq!((&first["value"], &first["holds"]), (&json!(3.0), &json!("holds")));
    assert_eq!((&first["samples"], &first["few_samples"]), (&json!(5), &json!(true)));
    assert_eq!(first["interval"], json!([3.0, 3.0]));
    assert_eq!((&first["at_least"], &first["at_most"]), (&json!(1.5), &Value::Null));
    assert_eq!(first["partly"], json!({ "at_least": 1.0, "at_most": null }));
    assert_eq!(value["expectations"][1]["holds"], "no data");
    assert_eq!(value["expectations"][2]["holds"], "asked");
    assert_eq!(state(&inside).as_deref(), Some("needs quic (1 of 2, quick)"));
}

#[test]
fn a_value_that_no_seed_changes_is_said_to_be_so() {
    let told = |expression: &str, interval: (f64, f64)| {
        let experiment = mine();
        let judged = judge::unjudged(&experiment.expectations[0], Vec::new());
        let judged = Judged { expression: expression.into(), value: Some(2.0), interval: Some(interval), ..judged };
        judged.measured()
    };
    for expression in ["counter('pause_frames')", "largest(mean(fct_us) over size)", "peak_buffer()"] {
        assert_eq!(told(expression, (2.0, 2.0)), "2× (same in all seeds)", "{expression}");
    }
    for expression in ["max(queue)", "p99(slowdown) / 2", "1 - min(buffer) / 2"] {
        assert_eq!(told(expression, (2.0, 2.0 + 1e-15)), "2× (same with any seed left out)", "{expression}");
    }
    assert_eq!(told("max(queue)", (1.9, 2.1)), "2× (1.9× to 2.1×)");
}

#[test]
fn values_are_shown_with_their_units() {
    use results::verdict::show;
    for (value, unit, expected) in [
        (12_345_678.0, "B", "12.35 MB"),
        (12.0, "B", "12 B"),
        (1500.0, "us", "1.5 ms"),
        (0.387, "%", "38.7 %"),
        (2.5, "x", "2.5×"),
        (0.0, "", "0"),
        (1.92e-4, "", "1.920e-4"),
        (100.0, "Gbps", "100 Gbps"),
        (-3.25, "", "-3.25"),
    ] {
        assert_eq!(show(value, unit), expected);
    }
    assert!(Range { at_least: Some(1.0), at_most: Some(2.0) }.holds(2.0));
}

// ------------------------------------------------------------------------------------------------------------- published

use published::{Published, Row};

/// What is published of [`MINE`] with two seeds.
fn publication(experiment: &Experiment) -> Published {
    let evidence = evidence(experiment, 2, &|variant, _, _| if variant == "B" { 0.5 } else { 1.0 });
    let verdict = judge(experiment, Scale::Quick, &evidence);
    Published::new(experiment, Scale::Quick, &evidence, &verdict, "tailwater reproduce mine/first", "c0de").unwrap()
}

#[test]
fn a_result_is_published_with_its_figures_and_read_back() {
    let experiment = mine();
    let folder = tempfile::tempdir().unwrap();
    let mut published = publication(&experiment);
    let file = published.write(folder.path(), &["<svg>1</svg>".into(), "<svg>2</svg>".into()]).unwrap();
    assert_eq!(file, folder.path().join("mine/first.json"));
    assert_eq!(published.figures, ["first-1.svg", "first-2.svg"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("mine/first-2.svg")).unwrap(), "<svg>2</svg>");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("{\n  \"id\": \"mine/first\",\n  \"paper\": \"a thesis\",\n"), "{text}");
    assert_eq!(Published::read("first.json", &text).unwrap(), published);
    assert_eq!((published.seeds.as_slice(), published.runs), (&[1, 2][..], 8));
    assert_eq!(published.line(), "needs quic (0 of 2, quick, 2 seeds)");
    // With fewer figures the old ones go.
    published.write(folder.path(), &["<svg>1</svg>".into()]).unwrap();
    assert!(!folder.path().join("mine/first-2.svg").exists());
    let problem = Published::read("first.json", "{}").unwrap_err();
    assert!(problem.help.as_ref().unwrap().contains("publish"), "{}", problem.message);
}

#[test]
fn the_digest_of_a_row_is_of_what_decides_its_runs_and_judgement() {
    let digest = |from: &str, to: &str, scale: Scale| {
        assert!(MINE.contains(from), "{from}");
        Experiment::read("mine.toml", &MINE.replace(from, to), &text).unwrap().digest(scale).unwrap()
    };
    let plain = mine().digest(Scale::Quick).unwrap();
    for (from, to) in [
        ("title = \"Two schemes at two speeds\"", "title = \"Two\""),
        ("says = \"A is better than B.\"", "says = \"s\"\ncost = \"a year\""),
        ("[scenario]", "# Why so.\n[scenario]"),
        ("x_scale = \"log\"", ""),
        ("spread(p50(slowdown, rate", "spread(p50(slowdown,  rate"),
    ] {
        assert_eq!(digest(from, to, Scale::Quick), plain, "{to}");
    }
    for (from, to) in [
        ("stop = \"1ms\"", "stop = \"2ms\""),
        ("load.0.duration=1ms", "load.0.duration=2ms"),
        ("scheme.dcqcn.ai=50Mbps", "scheme.dcqcn.ai=60Mbps"),
        ("at_least = 1.5", "at_least = 1.6"),
        ("partly = { at_least = 1.0 }", "partly = { at_least = 1.1 }"),
        ("bins = [\"1KB\"", "bins = [\"2KB\""),
        ("p99(slowdown, variant='C')", "p98(slowdown, variant='C')"),
    ] {
        assert_ne!(digest(from, to, Scale::Quick), plain, "{to}");
    }
    assert_ne!(mine().digest(Scale::Paper).unwrap(), plain);
}

/// [`MINE`] with some of it written otherwise.
fn otherwise(changes: &[(&str, &str)]) -> [Experiment; 1] {
    let change = |text: String, (from, to): &(&str, &str)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    };
    let changed = changes.iter().fold(MINE.to_string(), change);
    [Experiment::read("mine.toml", &changed, &text).unwrap_or_else(|problem| panic!("{problem}"))]
}

#[test]
fn the_digest_of_a_setting_is_of_what_decides_the_runs_alone() {
    let plain = mine().setting(Scale::Quick).unwrap();
    let changed = |from: &str, to: &str| otherwise(&[(from, to)])[0].setting(Scale::Quick).unwrap();
    for (from, to) in
        [("at_least = 1.5", "at_least = 1.6"), ("p99(slowdown, variant='C')", "p98(slowdown, variant='C')")]
    {
        assert_eq!(changed(from, to), plain, "{to}");
    }
    for (from, to) in [("stop = \"1ms\"", "stop = \"2ms\""), ("bins = [\"1KB\"", "bins = [\"2KB\"")] {
        assert_ne!(changed(from, to), plain, "{to}");
    }
    assert_ne!(mine().setting(Scale::Paper).unwrap(), plain);
}

#[test]
fn a_result_of_another_version_of_its_row_or_of_none_is_stale() {
    let experiment = mine();
    let published = publication(&experiment);
    assert_eq!(published.stale(std::slice::from_ref(&experiment)), None);
    let none = published.stale(&[]).unwrap();
    assert_eq!((none.file.as_str(), none.message.as_str()), ("published/mine/first.json", "is of no row"));
    for (from, to, message, help) in [
        ("at_least = 1.5", "at_least = 1.4", "was judged by another version of its experiment", "claims --rejudge"),
        ("stop = \"1ms\"", "stop = \"2ms\"", "with other runs", "reproduce mine/first"),
    ] {
        let problem = published.stale(&otherwise(&[(from, to)])).unwrap();
        assert!(problem.message.contains(message), "{}", problem.message);
        assert!(problem.help.as_ref().unwrap().contains(help), "{:?}", problem.help);
    }
}

/// [`MINE`] without what needs a scheme that is not there, published with `B` so much better than `A`.
fn measured_before(ratio: f64, changes: &[(&str, &str)]) -> Published {
    let [mut experiment] = otherwise(changes);
    experiment.expectations.truncate(1);
    let evidence =
        evidence(&experiment, 2, &|variant, _, seed| if variant == "B" { ratio + 1e-3 * seed as f64 } else { 1.0 });
    let verdict = judge(&experiment, Scale::Quick, &evidence);
    Published::new(&experiment, Scale::Quick, &evidence, &verdict, "tailwater reproduce mine/first", "c0de").unwrap()
}

/// The same, judged by [`MINE`] as it is.
fn judged_again(published: &Published, changes: &[(&str, &str)]) -> Result<Option<Published>, String> {
    let mut rows = otherwise(changes);
    rows[0].expectations.truncate(1);
    let new = published.rejudged(&rows).map_err(|problem| problem.to_string())?;
    if let Some(new) = &new {
        assert_eq!(new.stale(&rows), None);
        assert_eq!(new.rejudged(&rows), Ok(None), "judged twice");
    }
    Ok(new)
}

#[test]
fn a_result_is_judged_again_as_it_would_have_been_judged_at_once() {
    let bound = |at_least: &'static str| [("at_least = 1.5", at_least)];
    let before = measured_before(2.0, &bound("at_least = 1.4"));
    for at_least in ["at_least = 1.5", "at_least = 2.5", "at_least = 2.0016", "at_most = 1.5", "", "at_least = 1.9"] {
        let partly = if at_least.contains("least") { "partly = { at_least = 1.0 }" } else { "" };
        let changes = [bound(at_least)[0], ("partly = { at_least = 1.0 }", partly)];
        let mut new = judged_again(&before, &changes).unwrap().unwrap();
        let at_once = measured_before(2.0, &changes);
        assert!(new.judged.take().is_some());
        assert_eq!(new, at_once, "{at_least}");
    }
    assert_eq!(judged_again(&before, &bound("at_least = 1.4")), Ok(None));
    let opened = judged_again(&before, &[bound("")[0], ("partly = { at_least = 1.0 }", "")]).unwrap().unwrap();
    assert_eq!((opened.verdict, opened.hold, opened.claims), (Overall::Measured, 0, 0));
    let kept = |published: &Published| (published.date.clone(), published.code.clone(), published.seeds.clone());
    assert_eq!(kept(&opened), kept(&before));
}

#[test]
fn what_was_not_measured_or_has_other_runs_is_not_judged_again() {
    let before = measured_before(2.0, &[]);
    for (from, to, parts) in [
        (
            "p50(slowdown, variant='A'",
            "p98(slowdown, variant='A'",
            ["has no value of \"A beats B\"", "reproduce mine/first --scale paper"],
        ),
        ("stop = \"1ms\"", "stop = \"2ms\"", ["other runs than its experiment has now", "reproduce mine/first"]),
    ] {
        let problem = judged_again(&before, &[(from, to)]).unwrap_err();
        assert!(parts.iter().all(|part| problem.contains(part)), "{problem}");
    }
    // An expression may be set otherwise, and said of in other words.
    let new = judged_again(
        &before,
        &[("p50(slowdown, variant='A'", "p50(slowdown,  variant='A'"), ("\"A beats B\"", "\"A wins\"")],
    );
    assert_eq!(new.unwrap().unwrap().expectations[0].paper, "A wins");
    // A claim must not be judged by less than it says: what was asked went over the variants that are there.
    let rows = otherwise(&[("background') over variant)\"\n", "background') over variant)\"\nat_most = 2\n")]);
    let problem = publication(&mine()).rejudged(&rows).unwrap_err().to_string();
    assert!(problem.contains("has no value of \"how far apart"), "{problem}");
}

#[test]
fn a_result_from_before_there_was_a_digest_of_the_runs_gets_it_where_the_other_fits() {
    let new = measured_before(2.0, &[]);
    let old = Published { setting: String::new(), ..new.clone() };
    let text = old.text().unwrap().replace("  \"setting\": \"\",\n", "").replace("  \"judged\": null,\n", "");
    let old = Published::read("first.json", &text).unwrap();
    let stale = old.stale(&otherwise(&[])).unwrap();
    assert!(stale.message.contains("was made by another version"), "{}", stale.message);
    let mut row = otherwise(&[]);
    row[0].expectations.truncate(1);
    assert!(old.stale(&row).unwrap().help.as_ref().unwrap().contains("--rejudge"));
    assert_eq!(judged_again(&old, &[]).unwrap(), Some(new));
    assert!(judged_again(&old, &[("at_least = 1.5", "at_least = 1.6")]).unwrap_err().contains("other runs"));
}

#[test]
fn what_is_judged_again_keeps_the_digits_of_what_was_measured() {
    let mut published = measured_before(2.0, &[]);
    published.expectations[0].interval = Some((1.5, 2.5));
    // Of numbers that are read as the same, each keeps its own digits.
    let old = published.text().unwrap().replace(
        "        1.5,\n        2.5\n",
        "        1.9999999999999998889776975,\n        2.000000000000000000001\n",
    );
    let read = Published::read("first.json", &old).unwrap();
    assert_eq!(read.text_over(&old).unwrap(), old);
    let mut new = read.clone();
    new.expectations[0].at_least = Some(1.25);
    assert_eq!(new.text_over(&old).unwrap(), old.replace("\"at_least\": 1.5,", "\"at_least\": 1.25,"));
}

#[test]
fn every_published_result_is_what_judging_it_again_gives() {
    let rows = crate::all().unwrap();
    for published in published::all().unwrap() {
        assert_eq!(published.rejudged(&rows), Ok(None), "{}: `tailwater claims --rejudge`", published.id);
    }
}

#[test]
fn every_published_verdict_follows_from_its_expectations() {
    for published in published::all().unwrap() {
        let verdict = judge::overall(&published.expectations);
        assert_eq!(published.verdict, verdict, "{}", published.id);
    }
}

#[test]
fn every_published_result_is_of_a_row_as_it_is() {
    let stale = published::stale().unwrap_or_else(|problem| panic!("{problem}"));
    assert!(stale.is_empty(), "{}", stale.iter().map(|problem| problem.to_string()).collect::<String>());
}

#[test]
fn the_tables_of_the_documentation_are_what_the_data_give() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let rows = published::rows().unwrap();
    let mut pages = vec![(root.join("README.md"), "")];
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(docs.filter(|path| path.extension().is_some_and(|ending| ending == "md")).map(|path| (path, "../")));
    let mut tables = 0;
    for (path, folder) in pages {
        let text = std::fs::read_to_string(&path).unwrap();
        tables += text.matches(":begin -->\n").count();
        let fresh = published::refreshed(&text, &rows, folder).unwrap();
        assert!(fresh == text, "{} is out of date: `tailwater claims --write-docs` refreshes it", path.display());
    }
    assert!(tables >= 7, "README.md, the papers' pages and docs/papers.md have {tables} tables");
    for (name, fresh) in crate::numbers::pages(&rows) {
        let path = root.join(crate::numbers::FOLDER).join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(fresh == text, "{} is out of date: `tailwater claims --write-docs` refreshes it", path.display());
    }
}

#[test]
fn a_table_names_what_does_not_hold_and_what_is_not_published() {
    let mut other = mine();
    (other.id, other.cost) = ("yours/second".into(), Some("a week on 64 cores".into()));
    let first = Row { published: Some(publication(&mine())), experiment: mine() };
    let rows = [first, Row { experiment: other, published: None }];
    let line = |paper: &str| {
        let table = published::markdown(&rows, Some(paper), "../");
        table.lines().nth(2).unwrap().to_string()
    };
    assert_eq!(
        [line("mine"), line("yours")],
        [
            "| [mine/first](../experiments/mine/first.toml) | chapter 3 | needs a scheme | [0 of 2](numbers/mine.md#minefirst) | quick | 2 | A beats B: 0.5× (same with any seed left out) (≥ 1.5×) |",
            "| [yours/second](../experiments/yours/second.toml) | chapter 3 | not published: a week on 64 cores | | | | |",
        ]
    );
    let all = published::markdown(&rows, None, "");
    assert!(
        all.contains("needs a scheme (quick scale) | [0 of 2](docs/numbers/mine.md#minefirst) | 2 |")
            && all.lines().count() == 4,
        "{all}"
    );
    assert_eq!(published::markdown(&rows, Some("yours"), "").lines().count(), 3);
    let text =
        "a\n<!-- ledger:begin -->\nstale\n<!-- ledger:end -->\nb\n<!-- ledger:bfc:begin -->\n<!-- ledger:bfc:end -->\n";
    let fresh = published::refreshed(text, &rows, "../").unwrap();
    assert!(fresh.starts_with("a\n<!-- ledger:begin -->\n| row |") && !fresh.contains("stale"), "{fresh}");
    assert_eq!(published::refreshed(&fresh, &rows, "../").unwrap(), fresh);
    let counts = "<!-- ledger:counts:begin -->\n<!-- ledger:counts:end -->";
    let fresh = published::refreshed(counts, &rows, "").unwrap();
    let lines: Vec<&str> = fresh.lines().skip(3).take(3).collect();
    assert!(fresh.contains("| rows of | all | needs a scheme | not published |\n"), "{fresh}");
    let expected =
        ["| [mine](docs/mine.md) | 1 | 1 | |", "| [yours](docs/yours.md) | 1 | | 1 |", "| all | 2 | 1 | 1 |"];
    assert_eq!(lines, expected);
    let json = rows[1].json(Value::Null);
    assert_eq!((&json["published"], &json["paper"]["name"]), (&Value::Null, &json!("a thesis")));
}

#[test]
fn days_become_dates() {
    for (days, expected) in
        [(0, "1970-01-01"), (364, "1970-12-31"), (11_016, "2000-02-29"), (19_782, "2024-02-29"), (19_783, "2024-03-01")]
    {
        assert_eq!(published::date(days), expected);
    }
}

#[test]
fn every_row_and_every_scheme_of_a_paper_is_there() {
    let papers = papers::all().unwrap_or_else(|problem| panic!("{problem}"));
    for experiment in all().unwrap().iter().filter(|experiment| experiment.document != "no document") {
        let paper = papers::named(&experiment.document).unwrap_or_else(|| panic!("{} has no paper", experiment.id));
        assert_eq!(experiment.id.split('/').next(), Some(paper.folder.as_str()));
        assert!(experiment.cites.iter().all(|name| papers::named(name).is_some()), "{}", experiment.id);
    }
    let registry = schemes::registry();
    let known: Vec<&str> =
        registry.definitions().into_iter().flat_map(|(_, variants)| variants).map(|variant| variant.name()).collect();
    let presets = || registry.presets.iter().map(|preset| preset.name);
    let mut keys = std::collections::BTreeSet::new();
    for paper in &papers {
        for own in &paper.presets {
            let fits = presets().any(|name| name == own || name.split('+').any(|part| part == own));
            assert!(fits, "{}: there is no preset {own}", paper.key);
        }
        assert!(keys.insert(&paper.key), "{} twice", paper.key);
        for scheme in &paper.schemes {
            assert!(known.contains(&scheme.as_str()), "{}: there is no scheme {scheme}: {known:?}", paper.key);
            assert_eq!(papers::of_scheme(scheme).as_ref(), Some(paper), "{scheme} is of two papers");
        }
    }
    for preset in registry.presets.iter().filter(|preset| preset.name != "lossy") {
        assert!(!papers::of_preset(preset.name, preset.settings).is_empty(), "{} is of no paper", preset.name);
    }
    let of = |name: &str| {
        let preset = registry.presets.iter().find(|preset| preset.name == name).unwrap();
        let keys = papers::of_preset(name, preset.settings).into_iter().map(|paper| paper.key);
        keys.collect::<Vec<String>>().join(" ")
    };
    for (name, expected) in [
        ("blitz", "dart dcqcn blitz"),
        ("edvl", "dvl"),
        ("802.1qcz", "congestion-isolation dvl"),
        ("dcqcn-sigcomm15", "dcqcn pfc"),
        ("pfc-watchdog", "pfc"),
        ("bfc-nsdi22", "bfc-nsdi22 bfc"),
        ("dcqcn+win+letflow", "dcqcn letflow pfc"),
        ("dcqcn+win+sfq", "sfq dcqcn pfc"),
        ("dcqcn+win+floodgate", "dcqcn floodgate red"),
    ] {
        assert_eq!(of(name), expected, "{name}");
    }
    let cited = papers::named("SFQ").unwrap().cite();
    assert_eq!(cited, "P. E. McKenney, Stochastic Fairness Queueing, INFOCOM, 1990");
    let link = "https://doi.org/10.1145/3230543.3230557";
    assert!(papers::named("IRN").unwrap().cite().ends_with(link));
}
