//! Inputs with every kind of damage: each is read, or refused with a place; nothing panics and nothing takes long.

use fabric::Outcome;
use files::problem::Problem;
use interop::htsim::{self, Text};
use interop::ns3::{self, Inputs};
use proptest::prelude::*;
use scenario::resolve::resolve;
use scenario::{Beside, Scenario};
use std::path::Path;
use std::time::{Duration, Instant};

/// A whole case, with whatever is run of it.
const LONG: Duration = Duration::from_secs(10);

/// One kind of damage to a text.
#[derive(Clone, Debug)]
enum Damage {
    /// Some bits of the byte at that place are flipped.
    Flip(prop::sample::Index, u8),
    /// Everything from that place on is gone.
    Cut(prop::sample::Index),
    /// Two lines change places.
    Swap(prop::sample::Index, prop::sample::Index),
    /// A line is gone.
    Drop(prop::sample::Index),
    /// A line comes twice.
    Repeat(prop::sample::Index),
    /// A number is another one.
    Number(prop::sample::Index, &'static str),
    /// Something is put in.
    Insert(prop::sample::Index, String),
}

/// Numbers at and beyond the limits of sensible input. None of them makes a fabric that is allowed and large.
const NUMBERS: [&str; 20] = [
    "0",
    "-0",
    "-1",
    "1",
    "0.5",
    "1e-300",
    "1e308",
    "-1e308",
    "nan",
    "inf",
    "-inf",
    "268435456",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999999999",
    "0x10",
    "",
];

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        3 => (index(), 1u8..).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        1 => index().prop_map(Damage::Cut),
        1 => (index(), index()).prop_map(|(a, b)| Damage::Swap(a, b)),
        1 => index().prop_map(Damage::Drop),
        1 => index().prop_map(Damage::Repeat),
        6 => (index(), prop::sample::select(NUMBERS.to_vec())).prop_map(|(at, number)| Damage::Number(at, number)),
        1 => (index(), "[a-zA-Z_\"=\\[\\]{}.,# \n\t\\-]{1,4}").prop_map(|(at, text)| Damage::Insert(at, text)),
    ]
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Where the numbers of a text are.
fn numbers(text: &str) -> Vec<std::ops::Range<usize>> {
    let part = |c: char| c.is_ascii_digit() || c == '.';
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match start {
            None if c.is_ascii_digit() => start = Some(at),
            Some(from) if !part(c) => {
                found.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    found
}

impl Damage {
    fn apply(&self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        match self {
            Damage::Flip(at, bits) => {
                let mut bytes = text.as_bytes().to_vec();
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
                // Readers of files refuse what is not UTF-8 before these see it.
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Damage::Cut(at) => String::from_utf8_lossy(&text.as_bytes()[..at.index(text.len())]).into_owned(),
            Damage::Swap(a, b) => {
                let mut lines = lines(text);
                let (a, b) = (a.index(lines.len()), b.index(lines.len()));
                lines.swap(a, b);
                lines.concat()
            }
            Damage::Drop(at) => {
                let mut lines = lines(text);
                lines.remove(at.index(lines.len()));
                lines.concat()
            }
            Damage::Repeat(at) => {
                let mut lines = lines(text);
                let at = at.index(lines.len());
                lines.insert(at, lines[at]);
                lines.concat()
            }
            Damage::Number(at, number) => {
                let numbers = numbers(text);
                if numbers.is_empty() {
                    return text.into();
                }
                let mut changed = text.to_string();
                changed.replace_range(numbers[at.index(numbers.len())].clone(), number);
                changed
            }
            Damage::Insert(at, piece) => {
                let mut chars: Vec<char> = text.chars().collect();
                let at = at.index(chars.len());
                chars.splice(at..at, piece.chars());
                chars.into_iter().collect()
            }
        }
    }
}

fn damaged(text: &str, damages: &[Damage]) -> String {
    damages.iter().fold(text.to_string(), |text, damage| damage.apply(&text))
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    prop::collection::vec(damage(), 1..5)
}

/// Every key that a scenario can have, near enough.
const EVERYTHING: &str = "\
name = \"everything\"
seed = 3
stop = \"5ms\"

[topology]
kind = \"leaf-spine\"
leaves = 2
hosts_per_leaf = 2
spines = 2
links_per_pair = 1
host_rate = \"25Gbps\"
host_delay = \"1.5us\"
uplink_rate = \"100Gbps\"
uplink_delay = \"500ns\"

[switch]
buffer = \"2MB\"
unlimited = false
reserve = \"4096B\"
alpha = 0.25
headroom = \"auto\"
resume_gap = \"3KB\"
pipeline = \"300ns\"
queues = 4
scheduler = \"drr\"
quantum = \"1500B\"
ecn = true
ecn_min = \"20KB\"
ecn_max = \"80KB\"
ecn_probability = 0.3
ecn_scale = true

[nic]
payload = \"1000B\"
header = \"62B\"
ack_size = \"66B\"
ack_every = 1
ack_lane = \"control\"
timeout = \"900us\"
nack_interval = \"20us\"
pacing = true

[measure]
sample = \"5us\"

[scheme]
flow_control = \"pfc\"
congestion_control = \"none\"
window = \"100KB\"
window_rule = \"scaled\"

[scheme.pfc]
frame = \"64B\"

[traffic]
classes = 2

[[link]]
between = [\"leaf0\", \"spine1\"]
rate = \"40Gbps\"
delay = \"700ns\"
loss = 0.001
corruption = 0.0005
down = [[\"20us\", \"60us\"], [\"200us\"]]

[[flow]]
src = \"h0\"
dst = \"h3\"
size = \"40KB\"
start = \"2us\"
class = 1
count = 3

id = \"first\"
name = \"a\"

[[flow]]
src = 0
dst = 1
size = \"20KB\"
after = [\"first\"]
gap = \"3us\"
until = \"4ms\"

[[load]]
sizes = \"uniform 1MB..2MB\"
load = 0.01
arrivals = \"lognormal\"
sigma = 1.5
pattern = \"inter-rack\"
from = [\"leaf0\", \"h3\"]
start = \"10us\"
duration = \"100us\"
process = \"network\"
class = 1

[[load]]
sizes = \"hadoop\"
flows = 5
duration = \"100us\"
to = \"h0..h1\"
from = \"leaf1\"

[[incast]]
degree = 2
size = \"30KB\"
flows_per_sender = 2
every = \"50us\"
count = 2
spread = \"5us\"
to = \"h1\"

[[incast]]
degree = 3
size_each = \"5KB\"
load = 0.02
of = \"core\"
arrivals = \"poisson\"
count = 2

[[long]]
to = \"h2\"
from = \"h0..h1\"
flows = 1
start = \"20us\"
stagger = \"2us\"
leave = \"90us\"
";

/// The same with each congestion control, and all of its parameters written out.
fn everything() -> Vec<String> {
    let with = |choice: Box<dyn fabric::axes::CongestionControlDef>| {
        let name = choice.name();
        let chosen = EVERYTHING.replace("congestion_control = \"none\"", &format!("congestion_control = \"{name}\""));
        // One that sets windows by itself takes none from the scenario.
        let own = choice.build().needs().window && !choice.needs_window();
        let chosen = if own { chosen.replace("window = \"100KB\"", "window = \"none\"") } else { chosen };
        // What goes with Ultra Ethernet's transport alone gets it, over switches that do not trim.
        let chosen = if name == "nscc" {
            chosen.replace("[scheme.pfc]", "transport = \"uet\"\n[scheme.uet]\ntrim = false\n[scheme.pfc]")
        } else {
            chosen
        };
        let parameters: String = choice.list().iter().map(|p| format!("{} = {}\n", p.name, p.value)).collect();
        if parameters.is_empty() { chosen } else { chosen + &format!("[scheme.{name}]\n{parameters}") }
    };
    schemes::registry().congestion_control.all().into_iter().map(with).collect()
}

fn scenarios() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    paths.sort();
    let mut texts: Vec<String> = paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    texts.extend(everything());
    texts
}

/// A refusal says something, and points at a line that is there.
fn has_a_place(problem: &Problem, text: &str) -> Result<(), TestCaseError> {
    prop_assert!(!problem.message.is_empty());
    let shown = problem.to_string();
    prop_assert!(shown.starts_with(&problem.file), "{}", shown);
    let lines = text.split('\n').count().max(1);
    prop_assert!(problem.line.is_none_or(|line| (1..=lines).contains(&line)), "{} lines: {}", lines, shown);
    Ok(())
}

/// Runs for some hundred thousand events, or to the end.
fn some_of(run: impl FnOnce(&mut fabric::axes::flow_control::Report<'_>) -> Outcome) -> Result<(), TestCaseError> {
    let outcome = run(&mut |_, _| false);
    prop_assert!(
        outcome.violations.is_empty() || outcome.interrupted,
        "an input that was accepted breaks promises: {:?}",
        outcome.violations
    );
    Ok(())
}

fn read_scenario(text: &str, go: bool) -> Result<bool, TestCaseError> {
    let begin = Instant::now();
    let read = Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]).and_then(resolve);
    let accepted = read.is_ok();
    match read {
        Err(problem) => has_a_place(&problem, text)?,
        Ok(resolved) => {
            prop_assert!(!resolved.describe().is_empty());
            if go {
                some_of(|report| resolved.simulate(report))?;
            }
        }
    }
    prop_assert!(begin.elapsed() < LONG, "it took {:?}", begin.elapsed());
    Ok(accepted)
}

const CONFIG: &str = include_str!("../../../../tests/samples/ns3/config.txt");

/// Three hosts and a ring of three switches.
const TOPOLOGY: &str = include_str!("../../../../tests/samples/ns3/topology.txt");

const FLOWS: &str = include_str!("../../../../tests/samples/ns3/flow.txt");

const TRACE: &str = "2\n0 3\n";

/// Reads the four files, and runs some of what they describe.
fn read_ns3(texts: &[String; 4], go: bool) -> Result<bool, TestCaseError> {
    let [config, topology, flows, trace] = texts;
    let begin = Instant::now();
    let read = || -> Result<Inputs, (Problem, &str)> {
        let config = ns3::config::parse("config.txt", config).map_err(|problem| (problem, config.as_str()))?;
        let topology =
            ns3::topology::parse("topology.txt", topology).map_err(|problem| (problem, topology.as_str()))?;
        let flows = ns3::flows::parse("flow.txt", flows, &topology).map_err(|problem| (problem, flows.as_str()))?;
        ns3::trace::parse("trace.txt", trace, &topology).map_err(|problem| (problem, trace.as_str()))?;
        Ok(Inputs {
            config,
            topology,
            flows,
            config_file: "config.txt".into(),
            topology_file: "topology.txt".into(),
            options: Default::default(),
            notes: Vec::new(),
        })
    };
    let accepted = match read() {
        Err((problem, text)) => {
            has_a_place(&problem, text)?;
            false
        }
        Ok(inputs) => match ns3::translate::translate(&inputs) {
            Err(problem) => {
                // What is wrong shows only when the files are seen together; it is put down to one of them.
                let text = if problem.file == "config.txt" { config } else { topology };
                has_a_place(&problem, text)?;
                false
            }
            Ok(translated) => {
                if go {
                    some_of(|report| translated.run(report))?;
                }
                true
            }
        },
    };
    prop_assert!(begin.elapsed() < LONG, "it took {:?}", begin.elapsed());
    Ok(accepted)
}

fn ns3_files() -> [String; 4] {
    [CONFIG, TOPOLOGY, FLOWS, TRACE].map(String::from)
}

const MATRIX: &str = include_str!("../../../../tests/samples/htsim/triggers.cm");

const THREE_TIERS: &str = include_str!("../../../../tests/samples/htsim/three-tiers.topo");

const TWO_TIERS: &str = include_str!("../../../../tests/samples/htsim/two-tiers.topo");

/// Reads a matrix and a topology. What is accepted, `check` accepts too.
fn read_htsim(matrix: &str, topology: Option<&str>) -> Result<bool, TestCaseError> {
    let begin = Instant::now();
    let named = |name, text| Text { name, text };
    let imported = htsim::import(named("a.cm", matrix), topology.map(|text| named("a.topo", text)), "made");
    let accepted = imported.is_ok();
    match imported {
        Err(problem) => {
            prop_assert!(["a.cm", "a.topo"].contains(&problem.file.as_str()), "{}", problem);
            let text = if problem.file == "a.cm" { matrix } else { topology.unwrap_or_default() };
            has_a_place(&problem, text)?;
            prop_assert!(problem.help.is_some(), "{}", problem);
        }
        Ok(htsim::Imported { scenario, flows, graph, .. }) => {
            let files = [("made.csv", flows.as_str()), ("made.graph.toml", graph.as_deref().unwrap_or_default())];
            let read = Scenario::parse_beside("made.toml", &scenario, Beside::Texts(&files), &[]).and_then(resolve);
            prop_assert!(read.is_ok(), "{}\n{}", read.unwrap_err(), scenario);
        }
    }
    prop_assert!(begin.elapsed() < LONG, "it took {:?}", begin.elapsed());
    Ok(accepted)
}

fn config(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig { max_shrink_time: 20_000, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    config
}

#[test]
fn the_inputs_are_good_before_they_are_damaged() {
    for text in scenarios() {
        assert!(read_scenario(&text, true).unwrap(), "{text}");
    }
    assert!(read_ns3(&ns3_files(), true).unwrap());
    for topology in [Some(THREE_TIERS), Some(TWO_TIERS), None] {
        assert!(read_htsim(MATRIX, topology).unwrap());
    }
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn a_damaged_scenario_is_read_or_refused(which in any::<prop::sample::Index>(), damages in damages()) {
        let scenarios = scenarios();
        read_scenario(&damaged(&scenarios[which.index(scenarios.len())], &damages), false)?;
    }

    #[test]
    fn damaged_files_of_the_other_simulator_are_read_or_refused(which in 0usize..4, damages in damages()) {
        let mut files = ns3_files();
        files[which] = damaged(&files[which], &damages);
        read_ns3(&files, false)?;
    }

    #[test]
    fn damaged_files_of_htsim_are_refused_or_make_scenarios_that_can_be_run(
        three in any::<bool>(),
        which in 0usize..3,
        damages in damages(),
    ) {
        let topology = if three { THREE_TIERS } else { TWO_TIERS };
        match which {
            0 => read_htsim(&damaged(MATRIX, &damages), Some(topology))?,
            1 => read_htsim(&damaged(MATRIX, &damages), None)?,
            _ => read_htsim(MATRIX, Some(&damaged(topology, &damages)))?,
        };
    }
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn a_damaged_scenario_that_is_accepted_runs(which in any::<prop::sample::Index>(), damage in damage()) {
        // A damaged text often still has a meaning: it runs, with unusual values.
        let texts = everything();
        read_scenario(&damage.apply(&texts[which.index(texts.len())]), true)?;
    }

    #[test]
    fn damaged_files_of_the_other_simulator_that_are_accepted_run(which in 0usize..3, damage in damage()) {
        let mut files = ns3_files();
        files[which] = damage.apply(&files[which]);
        read_ns3(&files, true)?;
    }
}

/// Puts every one of [`NUMBERS`] in the place of every number of a text, and gives the lines with which `run` fell over.
fn every_number(text: &str, run: impl Fn(String) -> Result<bool, TestCaseError>) -> Vec<String> {
    let mut fatal = Vec::new();
    for range in numbers(text) {
        let line = text[..range.start].matches('\n').count();
        for number in NUMBERS {
            let mut changed = text.to_string();
            changed.replace_range(range.clone(), number);
            let shown = changed.lines().nth(line).unwrap_or_default().to_string();
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(changed))) {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => fatal.push(format!("{shown}: {error}")),
                Err(_) => fatal.push(format!("{shown}: panics")),
            }
        }
    }
    fatal
}

#[test]
fn any_number_of_a_scenario_may_be_any_other() {
    let fatal: Vec<String> =
        everything().iter().flat_map(|text| every_number(text, |text| read_scenario(&text, true))).collect();
    assert!(fatal.is_empty(), "{}", fatal.join("\n"));
}

#[test]
fn any_number_of_htsims_files_may_be_any_other() {
    let mut fatal = every_number(MATRIX, |text| read_htsim(&text, Some(THREE_TIERS)));
    for topology in [THREE_TIERS, TWO_TIERS] {
        fatal.extend(every_number(topology, |text| read_htsim(MATRIX, Some(&text))));
    }
    assert!(fatal.is_empty(), "{}", fatal.join("\n"));
}

#[test]
fn any_number_of_the_other_simulators_files_may_be_any_other() {
    let mut fatal = Vec::new();
    for mode in [0, 1, 3, 7, 8] {
        let mut files = ns3_files();
        files[0] = files[0].replace("CC_MODE 3", &format!("CC_MODE {mode}"));
        for which in 0..3 {
            fatal.extend(every_number(&files[which], |text| {
                let mut changed = files.clone();
                changed[which] = text;
                read_ns3(&changed, true)
            }));
        }
    }
    assert!(fatal.is_empty(), "{}", fatal.join("\n"));
}
