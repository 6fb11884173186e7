//! A command line and its files as a scenario: what `tailwater htsim` runs.
//!
//! What that program works out from its options is worked out here as there: the round trip of the idle network, the queues and their marks as
//! multiples of the bandwidth-delay product, and the shortest timeout.

use super::Text;
use super::command::{Algorithm, Balancing, Command, HEADER, PER_US};
use super::matrix::{self, Flow, Matrix, Starts};
use super::printed::six_digits;
use super::tree::{Tier, Tree, in_ns};
use fabric::axes::Registry;
use files::problem::{Cause, Problem};
use scenario::document::quote;
use scenario::resolve::{Resolved, resolve};
use scenario::{Beside, Scenario};
use std::fmt::Write;

/// The name of the scenario and of the files that it names.
const STEM: &str = "htsim";
/// Where that program begins to number flows that have no id: each takes two, as its receiver has one, too.
const FIRST_ID: u64 = 1_000_000_001;

/// A run of that program, ready to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The scenario.
    pub scenario: String,
    /// The flows, which it names `htsim.csv`.
    pub trace: String,
    /// The graph, which it names `htsim.graph.toml`.
    pub graph: String,
    /// The flows, in the order of the trace.
    pub flows: Vec<Flow>,
    /// Bytes of message in a full packet.
    pub payload: u64,
    /// What is printed before the run.
    pub head: String,
    /// What is said besides.
    pub notes: Vec<String>,
}

/// What that program works out before it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Derived {
    /// Round trip of the idle network, in picoseconds.
    rtt: u64,
    /// Bandwidth-delay product in full packets.
    product: u64,
    /// Full packets of a queue.
    queue: u64,
    /// Packets of a queue from which on some and all packets are marked.
    ecn: (u64, u64),
    /// The shortest timeout, in picoseconds.
    timeout: u64,
}

impl Derived {
    fn new(command: &Command, tree: &Tree) -> Derived {
        let gbps = command.mbps as f64 / 1000.0;
        let hops = tree.diameter() as f64 * 1000.0;
        let bits = |bytes: u64| (bytes * 8) as f64 / gbps;
        let rtt = (2 * tree.latency()) as f64 + bits(command.mtu) * hops + bits(HEADER) * hops;
        let rtt = rtt as u64;
        let bytes = rtt as f64 / 1e12 * (command.mbps as f64 * 1e6 / 8.0);
        let product = (bytes / command.mtu as f64).ceil() as u64;
        let factor = command.factor.unwrap_or(if command.trim { 1 } else { 5 });
        let queue = command.queue.unwrap_or(product * factor);
        let share = |share: f64| (product as f64 * share).ceil() as u64;
        let timeout = 15.0 + (queue * command.mtu) as f64 * 48.0 / command.mbps as f64;
        let timeout = (timeout * PER_US as f64) as u64;
        Derived { rtt, product, queue, ecn: command.ecn.unwrap_or((share(0.2), share(0.8))), timeout }
    }
}

impl Planned {
    /// The line's first words of a flow.
    pub fn title(&self, place: usize) -> String {
        let Flow { src, dst, id, .. } = self.flows[place];
        let number = id.unwrap_or(FIRST_ID + 2 * place as u64);
        format!("Flow Uec_{src}_{dst} flowId {number} uecSrc {place}")
    }

    /// The files that the scenario names.
    pub fn files(&self) -> [(&'static str, &str); 2] {
        [("htsim.csv", &self.trace), ("htsim.graph.toml", &self.graph)]
    }

    /// The run.
    pub fn resolved(&self) -> Result<Resolved, Problem> {
        Scenario::parse_beside(STEM, &self.scenario, Beside::Texts(&self.files()), &[]).and_then(resolve)
    }
}

/// Turns a command line and what its files have into a scenario.
///
/// What comes out can be run: it is checked as a scenario here, and what is wrong is put down to a line of these files.
pub fn plan(command: &Command, matrix: Text<'_>, topology: Option<Text<'_>>) -> Result<Planned, Problem> {
    let read = Matrix::read(matrix, Starts::Microseconds);
    let tree = topology.map(Tree::read).transpose();
    let (read, tree) = match (read, tree) {
        (Ok(read), Ok(tree)) => (read, tree),
        (read, tree) => {
            // One of them at the least is wrong.
            let wrong = [read.err(), tree.err()];
            return Err(
                Problem::all(wrong.into_iter().flatten()).unwrap_or_else(|| Problem::new(matrix.name, "is wrong"))
            );
        }
    };
    let mut wrong = missing(command);
    if let Some(nodes) = command.nodes.filter(|nodes| *nodes != read.nodes) {
        let message = format!("there are to be {nodes} nodes, and {} has {}", matrix.name, read.nodes);
        wrong.push(
            Problem::new("-nodes", message).help(format!("write {}, or leave it out", read.nodes)).cause(Cause::Value),
        );
    }
    let mut tree = tree_of(command, &read, matrix.name, topology, tree)?;
    tree.slow = command.failed;
    wrong.extend(read.fail(&mut tree).err());
    let reused = |connection: &&matrix::Connection<'_>| connection.message;
    match read.connections.iter().find(reused) {
        Some(connection) if !command.reuse => {
            let help = "add -conn_reuse, as that program wants it";
            wrong.push(connection.line.problem("msg", "messages need -conn_reuse", help));
        }
        _ => {}
    }
    if let Some(connection) = read.connections.iter().find(|connection| command.reuse && connection.id.is_none()) {
        let message = "with -conn_reuse a connection needs an id";
        wrong.push(connection.line.problem("->", message, "write id and a number, one for each connection"));
    }
    let derived = Derived::new(command, &tree);
    if derived.ecn.1 > derived.queue {
        let message = format!(
            "a queue of {} packets is shorter than what marks begin to be all: {}",
            derived.queue, derived.ecn.1
        );
        wrong.push(
            Problem::new("-q", message)
                .help(format!("write {} or more, or -ecn LOW HIGH", derived.ecn.1))
                .cause(Cause::Value),
        );
    }
    if let Some(problem) = Problem::all(wrong) {
        return Err(problem);
    }
    let flows = read.flows(command.reuse)?;
    let mut notes = command.notes.clone();
    notes.extend(read.notes(matrix.name));
    if command.reuse && flows.iter().any(|flow| flow.messages > 1) {
        let whole = read.connections.iter().all(|connection| connection.size.is_multiple_of(command.mtu - HEADER));
        let rest = if whole { "" } else { ": the last packet of each but the last is full here" };
        notes.push(format!("messages of a connection that start at the same instant are one{rest}"));
    }
    let planned = Planned {
        scenario: text(command, &tree, &derived, matrix.name),
        trace: matrix::trace(&flows),
        graph: tree.graph(),
        payload: command.mtu - HEADER,
        head: head(command, &read, &derived, matrix.name),
        flows,
        notes,
    };
    let file = topology.unwrap_or(matrix).name;
    planned.resolved().map_err(|problem| read.blame(&problem, &planned.flows, "htsim.csv", file))?;
    Ok(planned)
}

/// The fabric, and whether it goes with the options.
fn tree_of(
    command: &Command,
    read: &Matrix<'_>,
    name: &str,
    topology: Option<Text<'_>>,
    tree: Option<Tree>,
) -> Result<Tree, Problem> {
    let (Some(file), Some(tree)) = (topology, tree) else {
        let link = Tier::of(command.mbps, command.hop, command.switch);
        let tree = Tree::regular(read.nodes, command.tiers, link);
        return tree.map_err(|(message, help)| Problem::new(name, message).help(format!("{help} with -topo")));
    };
    let mut wrong = Vec::new();
    if tree.nodes != read.nodes {
        let message = format!("has {} nodes, and {name} has {}", tree.nodes, read.nodes);
        wrong.push(Problem::new(file.name, message).help("give the topology that the matrix was made for"));
    }
    if tree.tiers[0].mbps != command.mbps {
        let (own, said) = (tree.tiers[0].mbps, command.mbps);
        let message = format!("NICs are to send {said} Mbps, and the links of hosts in {} carry {own}", file.name);
        wrong.push(Problem::new("-linkspeed", message).help(format!("write -linkspeed {own}")).cause(Cause::Value));
    }
    if tree.queues {
        // That program reads them and sets all queues alike afterwards.
        let message = "Queue_Up and Queue_Down are there, which that program passes over: -q sets all queues";
        wrong.push(Problem::new(file.name, message).help("take them out, and give -q"));
    }
    Problem::all(wrong).map_or(Ok(tree), Err)
}

/// What the program has nothing for.
fn missing(command: &Command) -> Vec<Problem> {
    let registry = Registry::get();
    let mut wrong = Vec::new();
    let known = |axis: &str, name: &str| {
        let all = registry.definitions();
        all.iter().any(|(found, names)| *found == axis && names.iter().any(|definition| definition.name() == name))
    };
    let mut needs = vec![("transport", "uet", "-tm"), ("load_balancing", balancing(command), "-load_balancing_algo")];
    needs.extend(sender(command).map(|name| ("congestion_control", name, "-sender_cc")));
    needs.extend(command.by_receiver.then_some(("edge_control", "rccc", "-receiver_cc")));
    for (axis, name, option) in needs {
        if !known(axis, name) {
            let message = format!("needs {name}, a {} that this build does not have", axis.replace('_', " "));
            wrong.push(Problem::new(option, message).help("take a build that lists it in `tailwater schemes`"));
        }
    }
    wrong
}

/// The sender's congestion control by its name here.
fn sender(command: &Command) -> Option<&'static str> {
    let nscc = command.by_sender && command.algorithm == Algorithm::Nscc;
    nscc.then_some("nscc")
}

fn balancing(command: &Command) -> &'static str {
    match command.balancing {
        Balancing::Oblivious => "oblivious",
        Balancing::Bitmap => "bitmap",
        Balancing::Reps => "reps",
        Balancing::Mixed => "mixed",
    }
}

/// The scenario.
fn text(command: &Command, tree: &Tree, derived: &Derived, matrix: &str) -> String {
    let mut out = format!("# From htsim's command line for {}.\n", scenario::document::quoted(matrix));
    let mut line = |text: String| {
        out += &text;
        out.push('\n');
    };
    let (mtu, queue) = (command.mtu, derived.queue * command.mtu);
    let (low, high) = derived.ecn;
    line(format!("name = {}", quote(STEM)));
    line(format!("seed = {}", command.seed));
    command.end.iter().for_each(|end| line(format!("stop = \"{}us\"", end / PER_US)));
    line("\n[topology]\nkind = \"file\"\npath = \"htsim.graph.toml\"".into());
    line("\n[switch]".into());
    let pipeline = tree.tiers[0].switch_latency;
    if pipeline > 0 {
        line(format!("pipeline = \"{}\"", in_ns(pipeline)));
    }
    if command.trim {
        // Queues are limited by the transport, which has them trimmed.
        line("unlimited = true\necn = true".into());
    } else {
        line("sharing = \"static\"\nreserve = \"0B\"\necn = true".into());
        line(format!("ecn_min = \"{}B\"\necn_max = \"{}B\"", low * mtu, high * mtu));
        line("ecn_probability = 1.0\necn_scale = false\n\n[switch.buffers]".into());
        for (name, ports) in tree.ports() {
            line(format!("{} = \"{}B\"", quote(name), ports * queue));
        }
    }
    line(format!("\n[nic]\npayload = \"{}B\"\nheader = \"{HEADER}B\"\nack_size = \"{HEADER}B\"", mtu - HEADER));
    line("\n[scheme]\nflow_control = \"none\"\ntransport = \"uet\"\nsalt = \"seed\"".into());
    line(format!("congestion_control = \"{}\"", sender(command).unwrap_or("none")));
    line(format!("edge_control = \"{}\"", if command.by_receiver { "rccc" } else { "none" }));
    line(match (command.by_sender, command.algorithm) {
        (true, Algorithm::Constant) => {
            let product = derived.rtt as u128 * command.mbps as u128 / 8_000_000;
            let usual = product as u64 * 3 / 2;
            format!("window = \"{}B\"\nwindow_rule = \"fixed\"", command.cwnd.map_or(usual, |cwnd| cwnd * mtu))
        }
        _ => "window = \"none\"".into(),
    });
    line(format!("load_balancing = \"{}\"", balancing(command)));
    line("\n[scheme.uet]".into());
    match command.trim {
        true => {
            line(format!("queue = \"{queue}B\"\nheader = \"{}B\"", command.trim_size));
            // It rounds up to whole packets; half a packet less keeps a share from being rounded beyond what it is of.
            let share = |packets: u64| (packets as f64 - 0.5).max(0.0) / derived.queue as f64;
            line(format!("mark_from = {:?}\nmark_all = {:?}", share(low), share(high)));
        }
        false => line("trim = false".into()),
    }
    line(format!("rto = \"{}\"\nack_after = \"{}B\"", in_ns(derived.timeout), command.sack));
    if sender(command) == Some("nscc") {
        line(format!("\n[scheme.nscc]\nnetwork_rtt = \"{}\"", in_ns(derived.rtt)));
        command.target.iter().for_each(|target| line(format!("target = \"{}\"", in_ns(*target))));
        command.cwnd.iter().for_each(|cwnd| line(format!("window = \"{}B\"", cwnd * mtu)));
        command.gate.iter().for_each(|gate| line(format!("gate = {gate}")));
    }
    // It turns itself on where nothing else slows senders down.
    let by_itself = command.by_itself && !command.by_sender && tree.oversubscription() > 1;
    if command.by_receiver && (command.oversubscribed || by_itself) {
        let least = if by_itself { 0.9 / tree.oversubscription() as f64 } else { 0.0 };
        line(format!("\n[scheme.rccc]\noversubscribed = true\nleast = {:?}", least.max(0.01)));
        line(format!("every = \"{}\"", in_ns(derived.rtt * 3 / 2)));
        line(format!(
            "increase = {:?}\ndecrease = {:?}\nweight = {:?}",
            command.increase, command.decrease, command.weight
        ));
    }
    line(format!("\n[scheme.{}]\npaths = {}", balancing(command), command.paths));
    line("\n[traffic]\ntrace = \"htsim.csv\"".into());
    out
}

/// What that program prints before it runs, as far as it is about the run.
fn head(command: &Command, read: &Matrix<'_>, derived: &Derived, matrix: &str) -> String {
    let mut out = format!("Packet size (MTU) is {}\n", command.mtu);
    let _ = writeln!(out, "Linkspeed set to {}Gbps", command.mbps / 1000);
    let _ = writeln!(out, "Loading connection matrix from  {matrix}");
    let (connections, failures) = (read.connections.len(), read.failures.len());
    let triggers = read.triggers();
    let _ = writeln!(out, "Nodes: {} Connections: {connections} Triggers: {triggers} Failures: {failures}", read.nodes);
    let us = |ps: u64| six_digits(ps as f64 / PER_US as f64);
    let _ = writeln!(out, "Setting min RTO to {}", us(derived.timeout));
    let at_hosts = command.by_sender || !command.by_receiver;
    let (low, high) = derived.ecn;
    let _ = writeln!(
        out,
        "Setting ECN to parameters low {} high {} enable on tor downlink {}",
        low * command.mtu,
        high * command.mtu,
        at_hosts as u8
    );
    let _ = writeln!(out, "network_max_unloaded_rtt {}", us(derived.rtt));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(line: &str, nodes: u64) -> Derived {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        let command = Command::read(&words).unwrap();
        let link = Tier::of(command.mbps, command.hop, command.switch);
        Derived::new(&command, &Tree::regular(nodes, command.tiers, link).unwrap())
    }

    #[test]
    fn what_is_derived_is_what_that_program_prints() {
        // A tree of three tiers at 100 Gb/s: 6 us forth and back, and a full packet and an ACK over six links.
        let usual = derived("", 128);
        assert_eq!(usual, Derived { rtt: 14_022_720, product: 43, queue: 43, ecn: (9, 35), timeout: 100_656_000 });
        // Without trimming a queue is five products, and the timeout follows it.
        let dropping = derived("-disable_trim", 128);
        assert_eq!((dropping.queue, dropping.timeout), (215, 443_280_000));
        assert_eq!(derived("-q 500 -ecn 3 4", 16).ecn, (3, 4));
        // Two tiers: 2 x (4 us + 3 x 0.5 us), and 3.5 bytes of nothing.
        assert_eq!(derived("-tiers 2 -switch_latency 0.5", 8).rtt, 11_000_000 + (33_200 + 512) * 40);
    }

    fn planned(line: &str, matrix: &str, topology: Option<&str>) -> Result<Planned, Problem> {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        let topology = topology.map(|text| Text { name: "a.topo", text });
        plan(&Command::read(&words).unwrap(), Text { name: "a.cm", text: matrix }, topology)
    }

    /// What is printed of a run.
    fn run(line: &str, matrix: &str, topology: Option<&str>) -> String {
        let planned = planned(line, matrix, topology).unwrap_or_else(|problem| panic!("{problem}"));
        let outcome = planned.resolved().unwrap().simulate(&mut |_, _| true);
        assert_eq!(outcome.violations, Vec::<String>::new());
        super::super::printed::flows(&planned, &outcome)
    }

    const TRIGGERED: &str = "Nodes 16\nConnections 3\nTriggers 1\n0->13 id 1 start 0 size 200000 send_done_trigger 1\n\
                             13->0 start 2 size 200000\n0->5 id 3 trigger 1 size 4086\ntrigger id 1 oneshot\n";

    #[test]
    fn a_run_prints_the_lines_of_that_program() {
        // 49 packets of 332 ns and an answer over six links: what that program prints of the same line, but for sums inside of NSCC.
        let rest = "in_flight now 0 fair_inc 0 prop_inc 0 fast_inc 0 eta_inc 0 multi_dec -0 quick_dec -0 nack_dec -0";
        let expected = format!(
            "\
Flow Uec_0_13 flowId 1 uecSrc 0 starting at 0
Flow Uec_13_0 flowId 1000000003 uecSrc 1 starting at 2
Flow Uec_0_13 flowId 1 uecSrc 0 finished at 29.9723 total messages 1 total packets 49 RTS 0 total bytes 200214 {rest}
Flow Uec_0_5 flowId 3 uecSrc 2 starting at 29.9723
Flow Uec_13_0 flowId 1000000003 uecSrc 1 finished at 31.9877 total messages 1 total packets 49 RTS 0 total bytes 200214 {rest}
Flow Uec_0_5 flowId 3 uecSrc 2 finished at 43.995 total messages 1 total packets 1 RTS 0 total bytes 4086 {rest}
Done
New: 99 Rtx: 0 RTS: 0 Bounced: 0 ACKs: 27 NACKs: 0 Pulls: 0 sleek_pkts: 0
"
        );
        assert_eq!(run("-sender_cc_only", TRIGGERED, None), expected);
    }

    #[test]
    fn every_control_and_balancing_ends_with_and_without_trimming() {
        let mut matrix = "Nodes 16\nConnections 8\n".to_string();
        (0..8).for_each(|host| matrix += &format!("{host}->15 start 0 size 200000\n"));
        for control in
            ["-sender_cc_only", "-receiver_cc_only", "-receiver_cc", "-sender_cc_algo constant", "-cwnd 9 -qa_gate 2"]
        {
            for balancing in [
                "mixed",
                "reps",
                "bitmap -target_q_delay 5",
                "oblivious -disable_trim",
                "mixed -disable_trim -q 9 -ecn 2 9",
            ] {
                let printed = run(&format!("{control} -load_balancing_algo {balancing}"), &matrix, None);
                assert_eq!(printed.matches(" finished at ").count(), 8, "{control} {balancing}: {printed}");
            }
        }
    }

    #[test]
    fn messages_of_a_connection_that_start_together_are_one_line() {
        let matrix = "Nodes 2\nConnections 3\n0->1 id 7 msg start 0 size 4086\n0->1 id 7 msg 2 start 0 size 8172\n\
                      0->1 id 7 msg start 50 size 4086\n";
        let printed = run("-conn_reuse", matrix, None);
        assert!(
            printed.contains("total messages 2 total packets 3")
                && printed.contains("flowId 7 uecSrc 1 starting at 50"),
            "{printed}"
        );
        let problem = planned("", matrix, None).unwrap_err();
        assert!(problem.message.contains("-conn_reuse") && problem.line == Some(3), "{problem}");
        let problem = planned("-conn_reuse", "Nodes 2\nConnections 1\n0->1 start 0 size 1\n", None).unwrap_err();
        assert!(problem.message.contains("needs an id"), "{problem}");
    }

    #[test]
    fn slow_and_failed_links_and_two_tiers_are_wired() {
        let matrix = "Nodes 16\nConnections 1\nFailures 1\n0->15 start 0 size 4086\nfailure switch_type AGG switch_id 2 link_id 0\n";
        let graph = planned("-failed 3", matrix, None).unwrap().graph;
        let slow: Vec<&str> = graph.split("[[link]]").filter(|link| link.contains("\"25Gbps\"")).collect();
        // Both of the first aggregation switch, and one of the second, towards the hosts.
        assert_eq!(slow.len(), 3, "{slow:?}");
        assert!(slow[2].contains("[\"agg1\", \"core1\"]"), "{slow:?}");
        assert!(
            slow.iter().all(|link| link.contains("rate = \"100Gbps\"\nrate_back = \"25Gbps\"\nqueues_back = 0.25\n"))
        );
        assert!(!graph.contains("[\"agg2\", \"core0\"]") && graph.contains("[\"agg2\", \"core2\"]"));
        let two = include_str!("../../../../tests/samples/htsim/two-tiers.topo");
        let matrix = "Nodes 16\nConnections 1\n0->15 start 0 size 4086\n";
        let graph = planned("-failed 1", matrix, Some(two)).unwrap().graph;
        assert_eq!(graph.matches("rate = \"25Gbps\"\nqueues = 0.25\n").count(), 4);
        let problem = planned("-nodes 8 -linkspeed 400000", matrix, Some(two)).unwrap_err();
        assert!(
            problem.file == "-linkspeed" && problem.help.as_deref() == Some("write -linkspeed 100000"),
            "{problem}"
        );
        assert!(run("-tiers 2", "Nodes 8\nConnections 1\n0->7 start 0 size 4086\n", None).contains("finished at"));
    }

    #[test]
    fn receivers_slow_down_where_the_fabric_is_oversubscribed_and_nothing_else_does_it() {
        let narrow = "Nodes 16\nTiers 2\nPodsize 16\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 1\nOversubscribed 4\n\
                      Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 1000\n";
        let mut matrix = "Nodes 16\nConnections 16\n".to_string();
        (0..16).for_each(|host| matrix += &format!("{host}->{} start 0 size 400000\n", (host + 4) % 16));
        let text = |line: &str, topology: Option<&str>| planned(line, &matrix, topology).unwrap().scenario;
        assert!(text("-receiver_cc_only", Some(narrow)).contains("oversubscribed = true\nleast = 0.225\nevery = "));
        assert!(text("-receiver_cc_only -oversubscribed_cc -Ai 0.02", None).contains("least = 0.01\n"));
        for (line, topology) in [
            ("-receiver_cc_only", None),
            ("-receiver_cc_only -force_disable_oversubscribed_cc", Some(narrow)),
            ("-receiver_cc", Some(narrow)),
            ("-sender_cc_only", Some(narrow)),
        ] {
            assert!(!text(line, topology).contains("oversubscribed"), "{line}");
        }
        // What is trimmed at the uplinks is less than without.
        let trims = |line: &str| {
            let outcome = planned(line, &matrix, Some(narrow)).unwrap().resolved().unwrap().simulate(&mut |_, _| true);
            assert!(outcome.complete() && outcome.violations.is_empty());
            outcome.counts.trimmed.0
        };
        let (with, without) = (trims("-receiver_cc_only"), trims("-receiver_cc_only -force_disable_oversubscribed_cc"));
        assert!(with < without, "{with} {without}");
    }

    #[test]
    fn what_does_not_fit_the_files_is_refused_by_option() {
        let matrix = "Nodes 16\nConnections 1\n0->15 start 0 size 4086\n";
        for (line, file) in [("-nodes 8", "-nodes"), ("-q 3", "-q"), ("-tiers 2", "a.cm")] {
            let problem = planned(line, matrix, None).unwrap_err();
            assert!(problem.file == file && problem.help.is_some(), "{problem}");
        }
    }

    #[ctor::ctor]
    #[allow(unsafe_code)]
    fn install() {
        schemes::install();
    }
}
