//! Mechanisms that do not know of each other, put together: they work, or the scenario is refused with a reason.

use files::problem::Problem;
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use std::path::Path;

fn read(text: &str) -> Result<Resolved, Problem> {
    Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]).and_then(resolve)
}

fn complete(text: &str) -> fabric::Outcome {
    let resolved = read(text).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
    let outcome = resolved.simulate(&mut |_, _| true);
    assert_eq!(outcome.violations, Vec::<String>::new(), "{text}");
    assert!(outcome.complete(), "{:?}\n{text}", outcome.stall);
    outcome
}

const BCUBE: &str = "[topology]\nkind = \"bcube\"\nn = 4\nk = 1\n";
const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 4\n";
const FLOW: &str =
    "[[flow]]\nsrc = \"h0\"\ndst = \"h3\"\nsize = \"1MB\"\n[[flow]]\nsrc = \"h1\"\ndst = \"h3\"\nsize = \"1MB\"\n";

#[test]
fn ndp_goes_through_hosts_that_forward() {
    let text = format!(
        "stop = \"20ms\"\n{BCUBE}[scheme]\npreset = \"ndp\"\n[[flow]]\nsrc = \"h0\"\ndst = \"h5\"\nsize = \"1MB\"\n"
    );
    complete(&text);
}

#[test]
fn receivers_count_their_flows_with_any_transport() {
    for transport in ["go-back-n", "irn"] {
        let text = format!("stop = \"20ms\"\n{STAR}[scheme]\npreset = \"dasr\"\ntransport = \"{transport}\"\n{FLOW}");
        let outcome = complete(&text);
        let end = outcome.flows.iter().map(|flow| flow.received).max().unwrap_or_default();
        assert!(end < engine::Time::from_us(250), "two shares of one link: {end}");
    }
}

#[test]
fn a_full_nic_takes_the_promise_back_where_nothing_can_stop_its_switch() {
    let slow = "[[slow]]\nhost = \"h3\"\nrate = \"10Gbps\"\nbuffer = \"150KB\"\n";
    for preset in ["dvl", "lossy", "pfc", "blitz"] {
        let outcome = complete(&format!("{STAR}[scheme]\npreset = \"{preset}\"\n{slow}{FLOW}"));
        let pauses = ["pfc", "blitz"].contains(&preset);
        assert_eq!(outcome.counts.dropped_full == 0, pauses, "{preset}");
    }
}

#[test]
fn what_cannot_be_together_is_refused_with_a_reason() {
    let slow = "[[slow]]\nhost = \"h3\"\nrate = \"10Gbps\"\n";
    for (text, part) in [
        (format!("{BCUBE}[scheme]\npreset = \"edvl\"\n{FLOW}"), "hosts of this fabric forward"),
        (format!("{BCUBE}{slow}{FLOW}"), "forwards for others"),
        (format!("{STAR}[scheme]\npreset = \"ndp\"\n{slow}{FLOW}"), "its receivers are not slow"),
        (format!("{STAR}[scheme]\npreset = \"ndp\"\nedge_control = \"onramp\"\n{FLOW}"), "does not go with it"),
        (format!("{STAR}[nic]\nack_every = 60\n[scheme]\npreset = \"irn\"\n{FLOW}"), "holds fewer than ack_every"),
        (format!("{STAR}[scheme]\npreset = \"irn\"\n[scheme.irn]\nrto_low = \"1ns\"\n{FLOW}"), "rto_low"),
        (format!("{STAR}[scheme.pfc]\npause = \"1ns\"\n{FLOW}"), "pause"),
    ] {
        match read(&text) {
            Ok(_) => panic!("accepted:\n{text}"),
            Err(problem) => assert!(problem.to_string().contains(part), "{problem}\n{text}"),
        }
    }
}

#[test]
fn deflection_in_order_keeps_it_where_a_balancer_goes_other_ways_than_the_hash() {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nhosts_per_leaf = 4\nspines = 3\n\
                [scheme]\nflow_control = \"iofd\"\ncongestion_control = \"none\"\nload_balancing = \"wcmp\"\n\
                [[link]]\nbetween = [\"leaf0\", \"spine0\"]\nrate = \"25Gbps\"\n\
                [[link]]\nbetween = [\"leaf1\", \"spine1\"]\nrate = \"50Gbps\"\n\
                [[incast]]\ndegree = 6\nsize = \"1MB\"\nevery = \"50us\"\ncount = 6\n";
    for seed in 1..4 {
        let outcome = complete(&format!("seed = {seed}\n{text}"));
        assert_eq!((outcome.left, outcome.counts.out_of_order), (0, 0));
        let moved = outcome.flow_control.iter().find(|counter| counter.name == "flows_moved").map(|it| it.value);
        assert!(moved > Some(0));
    }
}
