//! Load balancers on fabrics small enough to say beforehand what comes out, and on one whose paths differ: one uplink at half its rate
//! and one down.

use fabric::Outcome;
use scenario::Scenario;
use scenario::resolve::resolve;
use std::path::Path;

fn simulate(text: &str, sets: &[String]) -> Outcome {
    let scenario = Scenario::parse("fabric.toml", text, Path::new("/nowhere"), sets);
    let resolved = scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}"));
    let outcome = resolved.simulate(&mut |_, _| true);
    assert!(outcome.complete() && outcome.violations.is_empty(), "{sets:?}: {:?}", outcome.violations);
    outcome
}

/// Two racks of two hosts, two spines, all links at 100 Gb/s: two flows from rack to rack fit if they take different spines.
const TWO_FLOWS: &str = "\
[topology]
kind = \"leaf-spine\"
leaves = 2
hosts_per_leaf = 2
spines = 2
host_rate = \"100Gbps\"
uplink_rate = \"100Gbps\"
[[flow]]
src = \"h0\"
dst = \"h2\"
size = \"5MB\"
[[flow]]
src = \"h1\"
dst = \"h3\"
size = \"5MB\"
";

/// How long the two flows take together, over the time of one alone.
fn two_flows(salt: u32, sets: &[&str]) -> (f64, Outcome) {
    let mut all = vec![format!("scheme.salt={salt}"), "scheme.preset=pfc".into()];
    all.extend(sets.iter().map(|set| set.to_string()));
    let outcome = simulate(TWO_FLOWS, &all);
    let last = outcome.flows.iter().map(|flow| flow.received).max().unwrap_or_default();
    (last.0 as f64 / outcome.flows[0].spec.ideal.0 as f64, outcome)
}

#[test]
fn two_flows_that_are_hashed_to_one_path_take_twice_as_long_and_part_where_they_can() {
    let ecmp = |salt| two_flows(salt, &[]).0;
    // Half of all salts hash them to one spine: then each has half of its link.
    let together = (0..20).find(|&salt| ecmp(salt) > 1.5).unwrap();
    let apart = (0..20).find(|&salt| ecmp(salt) < 1.5).unwrap();
    assert!((1.95..2.05).contains(&ecmp(together)), "{}", ecmp(together));
    assert!((1.0..1.01).contains(&ecmp(apart)), "{}", ecmp(apart));
    // Every packet for itself: both spines carry half of each flow. IRN takes what is overtaken for lost and sends it again, which costs
    // less the shorter the queues are: one packet with DRILL, more by chance.
    let [drill, spray] = ["drill", "spray"].map(|balancing| {
        let sets = [format!("scheme.load_balancing={balancing}"), "scheme.transport=irn".into()];
        two_flows(together, &sets.each_ref().map(String::as_str)).0
    });
    assert!(drill < spray && spray < 1.8, "{drill} {spray}");
    // Replies are late while both share a path; each change is to one of two paths. 5 MB take 400 us, a change less than 20.
    let (time, outcome) = two_flows(together, &["scheme.load_balancing=conweave"]);
    assert!(time < 1.5, "{time}");
    assert_eq!((outcome.counts.out_of_order, outcome.counts.retransmitted.0), (0, 0));
}

/// What came out of the example.
struct Seen {
    outcome: Outcome,
    /// Mean slowdown of the flows of 100 KB and more, and the 99th percentile of all.
    large: f64,
    tail: f64,
}

fn asymmetric(balancing: &str, seed: u64, more: &[&str]) -> Seen {
    let text = include_str!("../../../../examples/asymmetric.toml");
    let mut sets = vec![format!("scheme.load_balancing={balancing}"), format!("seed={seed}")];
    sets.extend(more.iter().map(|more| more.to_string()));
    let outcome = simulate(text, &sets);
    let mut all = run::slowdown::slowdowns(outcome.flows.iter(), outcome.end);
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let tail = all[all.len() * 99 / 100].1;
    let large: Vec<f64> = all.iter().filter(|(size, _)| *size >= 100_000).map(|(_, slowdown)| *slowdown).collect();
    let large = large.iter().sum::<f64>() / large.len() as f64;
    let c = &outcome.counts;
    println!(
        "{balancing} {seed} {more:?}: large {large:.2}, p99 {tail:.2}, {} out of order, {} sent again, {} pauses",
        c.out_of_order, c.retransmitted.0, c.pauses
    );
    Seen { outcome, large, tail }
}

#[test]
fn on_unequal_paths_balancers_come_in_the_order_of_their_papers() {
    for seed in 1..=3 {
        let run = |balancing: &str| asymmetric(balancing, seed, &[]);
        let ecmp = run("ecmp");
        // WCMP, EuroSys 2014: weights by capacity. CONGA, SIGCOMM 2014: congestion all the way. ConWeave, SIGCOMM 2023, §4.2.
        for balancing in ["wcmp", "conga", "conweave"] {
            let seen = run(balancing);
            assert!(seen.tail < 0.75 * ecmp.tail && seen.large < ecmp.large, "{balancing}");
        }
        // LetFlow, NSDI 2017: flowlets leave slow paths. RDMA has few of them.
        assert!(run("letflow").large < ecmp.large);
    }
}

#[test]
fn with_go_back_n_reordering_has_its_price_and_conweave_pays_none() {
    let ecmp = asymmetric("ecmp", 1, &[]);
    for balancing in ["drill", "spray", "adaptive", "reps", "bitmap"] {
        let [gbn, irn] =
            ["go-back-n", "irn"].map(|transport| asymmetric(balancing, 1, &[&format!("scheme.transport={transport}")]));
        // What arrives early is discarded and sent again; a receiver that keeps it is well off.
        assert!(gbn.tail > 2.0 * ecmp.tail && gbn.outcome.counts.retransmitted.0 > 10_000, "{balancing}");
        assert!(irn.tail < ecmp.tail && irn.large < gbn.large / 3.0, "{balancing}");
    }
    let conweave = asymmetric("conweave", 1, &[]);
    let c = &conweave.outcome.counts;
    assert_eq!((c.out_of_order, c.retransmitted.0, c.timeouts, c.dropped_full), (0, 0, 0, 0));
    let count = |name: &str| conweave.outcome.switches.iter().find(|counter| counter.name == name).unwrap().value;
    assert!(count("conweave_reroutes") > 10 && count("conweave_reordered") > 500 && count("conweave_early") == 0);
}
