//! The example of a slow receiver (SFC's appendix A): under PFC its pauses spread, under SFC they do not.

use engine::Time;
use fabric::Outcome;
use fabric::routing::PortMap;
use scenario::Scenario;
use scenario::resolve::resolve;
use std::path::Path;

struct Seen {
    outcome: Outcome,
    map: PortMap,
    names: Vec<String>,
}

fn run(preset: &str, more: &[&str]) -> Seen {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/slow_receiver.toml");
    let sets: Vec<String> =
        more.iter().map(|s| s.to_string()).chain([format!("scheme.preset={preset}"), "stop=1ms".into()]).collect();
    let resolved = Scenario::load(&path, &sets).and_then(resolve).unwrap_or_else(|problem| panic!("{problem}"));
    let map = PortMap::new(&resolved.setup.graph);
    let names = resolved.setup.graph.nodes.iter().map(|node| node.name.clone()).collect();
    let outcome = resolved.simulate(&mut |_, _| true);
    assert_eq!(outcome.violations, Vec::<String>::new());
    Seen { outcome, map, names }
}

impl Seen {
    /// How long the ports from nodes whose names begin so to nodes whose names begin so were paused, all together.
    fn paused(&self, from: &str, to: &str) -> Time {
        let name = |port: usize| &self.names[self.map.node[port] as usize];
        let ports = (0..self.map.count())
            .filter(|&port| name(port).starts_with(from) && name(self.map.peer[port] as usize).starts_with(to));
        Time(ports.map(|port| self.outcome.paused[port].0).sum())
    }
    fn counter(&self, name: &str) -> u64 {
        let all = self.outcome.flow_control.iter().chain(&self.outcome.transport);
        all.into_iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
    }
    /// Bytes of the bystander that have arrived, which are the most of all.
    fn bystander(&self) -> u64 {
        self.outcome.flows.iter().map(|flow| flow.delivered).max().unwrap_or(0)
    }
}

#[test]
fn a_slow_receiver_holds_up_the_whole_fabric_under_pfc_and_only_its_senders_under_sfc() {
    let (pfc, sfc) = (run("pfc", &[]), run("sfc", &[]));
    for seen in [&pfc, &sfc] {
        // The NIC pauses the port that leads to it for about half of the time, and loses nothing.
        assert!(seen.paused("leaf1", "h15") > Time::from_us(300), "{}", seen.paused("leaf1", "h15"));
        assert_eq!((seen.counter("receiver_dropped"), seen.outcome.counts.dropped_full), (0, 0));
    }
    // PFC: from the ToR to the spines, to the other ToR, to the senders.
    for (from, to) in [("spine", "leaf1"), ("leaf0", "spine"), ("h", "leaf0")] {
        assert!(pfc.paused(from, to) > Time::from_us(100), "{from} to {to}: {}", pfc.paused(from, to));
        assert_eq!(sfc.paused(from, to), Time::ZERO, "{from} to {to}");
    }
    // SFC: the queue that grows there makes the ToR notify the senders.
    assert!(sfc.counter("bts_from_queue") > 10 && sfc.counter("sender_pauses") > 10);
    // The bystander has its link to itself, 11.7 MB of messages in a millisecond, and gets it.
    assert!(sfc.bystander() > 11_400_000, "{}", sfc.bystander());
    assert!(pfc.bystander() < sfc.bystander() / 2, "{} against {}", pfc.bystander(), sfc.bystander());
}

#[test]
fn without_pauses_the_nic_of_a_slow_receiver_drops() {
    for preset in ["irn", "hpcc+irn+sfc"] {
        let seen = run(preset, &["slow.0.buffer=50KB"]);
        assert!(seen.counter("receiver_dropped") > 0, "{preset}");
        assert_eq!(seen.paused("", ""), Time::ZERO);
        assert!(seen.outcome.counts.retransmitted.0 > 0);
    }
}

#[test]
fn a_slow_receiver_that_cannot_be_is_refused_with_a_remedy() {
    let refused = |slow: &str| {
        let text =
            format!("[topology]\nkind = \"star\"\nhosts = 3\n{slow}[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\n");
        let problem = Scenario::parse("a.toml", &text, Path::new(""), &[]).err().map(|problem| problem.to_string());
        problem.unwrap_or_else(|| panic!("accepted: {slow}"))
    };
    assert!(refused("[[slow]]\nrate = \"1Gbps\"\n").contains("host"));
    assert!(refused("[[slow]]\nhost = \"sw0\"\nrate = \"1Gbps\"\n").contains("sw0 is a switch"));
    assert!(refused("[[slow]]\nhost = \"h9\"\nrate = \"1Gbps\"\n").contains("there is no node"));
    assert!(refused("[[slow]]\nhost = 1\n").contains("rate"));
    assert!(refused("[[slow]]\nhost = 1\nrate = \"0Gbps\"\n").contains("\"1Mbps\" to"));
    let twice = "[[slow]]\nhost = 1\nrate = \"1Gbps\"\n".repeat(2);
    assert!(refused(&twice).contains("h1 has a [[slow]] already"));
    let before = "[[slow]]\nhost = 1\nrate = \"1Gbps\"\nfrom = \"2us\"\nuntil = \"1us\"\n";
    assert!(refused(before).contains("until is out of range"));
    assert!(
        refused("[[slow]]\nhost = 1\nrate = \"1Gbps\"\nbuffer = \"1KB\"\nxoff = \"2KB\"\n")
            .contains("xoff is 2KB, above buffer")
    );
}

/// Runs a scenario that is written out.
fn written(text: &str) -> (bool, Outcome) {
    let resolved = Scenario::parse("written.toml", text, Path::new("/nowhere"), &[]).and_then(resolve);
    let resolved = resolved.unwrap_or_else(|problem| panic!("{problem}"));
    let outcome = resolved.simulate(&mut |_, _| true);
    assert_eq!(outcome.violations, Vec::<String>::new());
    (resolved.promised, outcome)
}

#[test]
fn a_slow_nic_promises_nothing_where_its_pauses_may_be_lost_whatever_memory_switches_have() {
    let text = |corruption: f64| {
        format!(
            "[topology]\nkind = \"leaf-spine\"\nhost_delay = \"1ps\"\n[switch]\nunlimited = true\n\
             [[link]]\nbetween = [\"h1\", \"leaf0\"]\ncorruption = {corruption}\n\
             [[slow]]\nhost = \"h1\"\nrate = \"1Gbps\"\nbuffer = \"5347B\"\n\
             [[flow]]\nsrc = \"h0\"\ndst = \"h1\"\nsize = \"12638B\"\ncount = 4\n"
        )
    };
    let (promised, outcome) = written(&text(0.0533));
    assert!(!promised && outcome.counts.dropped_full > 0);
    let (promised, outcome) = written(&text(0.0));
    assert!(promised && outcome.counts.dropped_full == 0);
}

#[test]
fn credits_of_a_receiver_are_queued_with_data_by_what_is_left_of_it() {
    // A credit counts what it gives, which is more than its flow has.
    let text = "[topology]\nkind = \"chain\"\nswitches = 5\nhosts_per_switch = 5\n[switch]\nscheduler = \"shortest\"\n\
                [nic]\nack_lane = \"data\"\n[scheme]\npreset = \"uec-rccc\"\n[scheme.uet]\ntrim = false\n\
                [[flow]]\nsrc = \"h23\"\ndst = \"h6\"\nsize = \"4010B\"\n";
    assert!(written(text).1.complete());
}
