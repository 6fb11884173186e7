//! Links that are slower in one direction: each direction is taken for what it carries.

use crate::same::assert_same;
use run::run;
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use std::path::Path;

/// The link of `h0`, with its rates from it and to it in Gb/s, and 2 MB to it or from it.
fn star(scheme: &str, rates: (u64, u64), to_h0: bool) -> Resolved {
    let ends = if to_h0 { ("h1", "h0") } else { ("h0", "h1") };
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = 4\n[scheme]\n{scheme}\n[[link]]\nbetween = [\"h0\", \"sw0\"]\nrate = \"{}Gbps\"\n\
         rate_back = \"{}Gbps\"\n[[flow]]\nsrc = \"{}\"\ndst = \"{}\"\nsize = \"2MB\"\n",
        rates.0, rates.1, ends.0, ends.1
    );
    read(&text)
}

fn read(text: &str) -> Resolved {
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]);
    scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

/// A flow alone takes what the bottleneck of its own direction takes, whatever the other direction carries.
#[test]
fn a_flow_alone_has_the_rate_of_its_direction() {
    let exact = ["flow_control = \"pfc\"\n", "flow_control = \"none\"\n"];
    let others = ["flow_control = \"cbfc\"\n", "preset = \"pfc\"\n[links.retry]\n", "preset = \"bfc\"\n"];
    for scheme in exact.into_iter().chain(others) {
        for (rates, to_h0) in [((100, 25), true), ((100, 25), false), ((25, 100), true), ((25, 100), false)] {
            let resolved = star(scheme, rates, to_h0);
            let slow = if to_h0 { rates.1 } else { rates.0 };
            let finished = run(resolved, &mut |_, _| true);
            let flow = &finished.outcome.flows[0];
            let took = flow.received - flow.start;
            // 2000 packets of 1062 B, and 2 us and a packet on the way there.
            let expected = 2_000 * 1062 * 8_000 / slow + 2_000_000;
            // BFC pauses at a threshold of its own, and stands still for up to 5 % of the time on links of one rate, too.
            let close = took.0.abs_diff(expected) < expected / 15;
            assert!(close && took >= flow.spec.ideal, "{scheme}{rates:?} {to_h0}: {took}, {expected} ps");
            // Answers come back by the other direction; updates of credits and of filters and ordered sets take a little of both.
            if exact.contains(&scheme) {
                assert_eq!(took, flow.spec.ideal, "{scheme}{rates:?} {to_h0}");
            }
            assert_eq!(finished.outcome.violations, Vec::<String>::new());
            let used = finished.summary.utilisation;
            let (busy, full) = if to_h0 { (used.to_hosts.max, 0.94) } else { (used.from_hosts.max, 0.94) };
            assert!(busy.is_some_and(|busy| busy > full && busy <= 1.0), "{scheme}{rates:?} {to_h0}: {busy:?}");
        }
    }
}

/// Receivers that hand out credit do it at the rate at which packets can come to them.
#[test]
fn receivers_pull_at_the_rate_of_what_comes() {
    for preset in ["ndp", "uec-rccc"] {
        for rates in [(100, 25), (25, 100)] {
            let text = format!(
                "[topology]\nkind = \"star\"\nhosts = 5\n[scheme]\npreset = \"{preset}\"\n[[link]]\nbetween = [\"h0\", \"sw0\"]\n\
                 rate = \"{}Gbps\"\nrate_back = \"{}Gbps\"\n[[incast]]\ndegree = 4\nto = \"h0\"\nsize_each = \"4MB\"\ncount = 1\n\
                 every = \"1us\"\n",
                rates.0, rates.1
            );
            let finished = run(read(&text), &mut |_, _| true);
            assert_eq!((finished.summary.ending, &finished.outcome.violations), ("complete", &vec![]), "{text}");
            let last = finished.outcome.flows.iter().map(|flow| flow.received).max().unwrap();
            let payloads = (16_000_000.0 * 8e3 / rates.1 as f64) as u64;
            assert!(
                last.0 > payloads && (last.0 as f64) < payloads as f64 * 1.15,
                "{preset} {rates:?}: {last} of {payloads}"
            );
            // The first windows are trimmed, and hardly anything after them.
            let trimmed = finished.outcome.counts.trimmed.0 as f64 / finished.outcome.counts.injected.0 as f64;
            assert!(trimmed < 0.1, "{preset} {rates:?}: {trimmed}");
        }
    }
}

/// A switch's queue towards a slow direction holds and marks at its part.
#[test]
fn queues_are_as_long_as_their_part() {
    let peak = |own: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 4\n[scheme]\npreset = \"uec\"\n[scheme.uet]\nqueue = \"41620B\"\n[nic]\npayload = \"4098B\"\n\
             header = \"64B\"\n[[link]]\nbetween = [\"sw0\", \"h0\"]\n{own}[[incast]]\ndegree = 3\nto = \"h0\"\nsize_each = \"400KB\"\n\
             count = 1\nevery = \"1us\"\n"
        );
        let resolved = read(&text);
        let outcome = resolved.simulate(&mut |_, _| true);
        assert!(outcome.complete() && outcome.violations.is_empty());
        assert_same(&outcome, &resolved.simulate_in(3, Some(2), &mut |_, _| true), own);
        (outcome.peak[4], outcome.counts.trimmed.0)
    };
    // Ten packets of 4162 B, of which one is being sent.
    let (whole, few) = peak("");
    assert_eq!(whole, 9 * 4162);
    // Half of them; the rest is trimmed.
    let (half, more) = peak("queues = 0.5\n");
    assert_eq!(half, 4 * 4162);
    assert!(more > few, "{more} {few}");
    assert_eq!(peak("queues_back = 0.5\n"), (whole, few), "the other direction");
    // However short it is, a packet fits.
    assert_eq!(peak("queues = 0.01\n").0, 4162);
    assert_eq!(peak("queues = 1.5\n").0, 14 * 4162);
}
