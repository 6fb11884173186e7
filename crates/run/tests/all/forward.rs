//! Runs that skip what is steady: as far off as they say, and no farther.

use fabric::Outcome;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use run::bench::forward::{Compared, Traffic, compare, race, scenario};
use scenario::Scenario;
use scenario::resolve::resolve;
use std::path::Path;

fn compared(text: &str, within: f64) -> Compared {
    compare(text, within).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

/// What was asked for holds: half of the flows and the end are within it, and 99 flows in 100 within three times as much. What is said is an estimate, and is good to a factor of
/// two and a hundredth of a per cent.
fn holds(c: &Compared) -> bool {
    let said = |share: Option<f64>| 2.0 * share.unwrap_or(0.0) + 1e-4;
    let ((half, most, end), within) = (c.off, c.about.within);
    half <= within.min(said(c.about.error.fct.p50))
        && most <= (3.0 * within).min(said(c.about.error.fct.p99))
        && end <= within
}

/// What was skipped is kept, and what is said of it holds.
fn assert_kept(c: &Compared, what: &str) {
    assert!(c.about.jumps > 0 && !c.exceeds, "{what}: {}", c.about.sentence());
    assert!(holds(c), "{what}: off by {:?}; {}", c.off, c.about.sentence());
}

const PAIR: &str = "[topology]\nkind = \"dumbbell\"\nleft = 4\nright = 4\n[scheme]\npreset = \"PRESET\"\n";

fn flows(pairs: &[(u32, u32)], size: &str) -> String {
    pairs.iter().map(|(a, b)| format!("[[flow]]\nsrc = {a}\ndst = {b}\nsize = \"{size}\"\n")).collect()
}

/// Flows to one host of a star, 9 MB longer each and so much later than the one before; and a short one elsewhere when all of them are over.
fn one_after_the_other(preset: &str, count: u32, every_us: u32) -> String {
    let mut text = format!("[topology]\nkind = \"star\"\nhosts = 9\n[scheme]\npreset = \"{preset}\"\n");
    for flow in 0..count {
        let (src, size, start) = (flow + 1, 20 + 9 * flow, flow * every_us);
        text += &format!("[[flow]]\nsrc = {src}\ndst = 0\nsize = \"{size}MB\"\nstart = \"{start}us\"\n");
    }
    text + "[[flow]]\nsrc = 7\ndst = 8\nsize = \"1KB\"\nstart = \"5s\"\n"
}

#[test]
fn flows_that_share_a_link_are_skipped_and_end_when_they_would() {
    for preset in ["bfc", "dctcp"] {
        let text = PAIR.replace("PRESET", preset) + &flows(&[(0, 4), (1, 5), (2, 6), (3, 7)], "80MB");
        let c = compared(&text, 0.01);
        assert_kept(&c, preset);
        assert!(c.about.skipped > 0.5, "{preset}: {}", c.about.sentence());
    }
}

#[test]
fn a_flow_alone_is_skipped_exactly() {
    for preset in ["pfc", "dcqcn", "dcqcn+win"] {
        let text = PAIR.replace("PRESET", preset) + &flows(&[(0, 4)], "100MB");
        let c = compared(&text, 0.01);
        assert_kept(&c, preset);
        assert!(c.same && c.about.exact() && c.about.skipped > 0.9, "{preset}: {}", c.about.sentence());
        assert!(c.about.sentence().contains("flows end exactly when they would"), "{}", c.about.sentence());
    }
    // What BFC keeps at nodes is not known: its rate is as good as that.
    let c = compared(&(PAIR.replace("PRESET", "bfc") + &flows(&[(0, 4)], "100MB")), 0.01);
    assert_kept(&c, "bfc");
    assert!(c.about.skipped > 0.7, "{}", c.about.sentence());
}

#[test]
fn what_is_counted_where_everything_repeats_is_what_would_have_been() {
    let text = "[topology]\nkind = \"star\"\nhosts = 8\n".to_string() + &flows(&[(0, 4), (1, 5), (2, 6)], "20MB");
    let (exact, skipping) = (run(&text, None), run(&text, Some(0.01)));
    let about = skipping.forwarded.as_ref().expect("it may skip");
    assert!(about.jumps > 0 && about.repeated == about.skipped, "{about:?}");
    assert_eq!(exact.flows, skipping.flows);
    assert_eq!((exact.end, &exact.sent, &exact.paused), (skipping.end, &skipping.sent, &skipping.paused));
    assert_eq!((&exact.counts, &exact.flow_control), (&skipping.counts, &skipping.flow_control));
}

#[test]
fn a_window_that_grows_unseen_is_not_skipped() {
    // Alone, the first flow is held back by its NIC, and Swift's window grows all the same: what the second meets depends on it.
    let c = compared(&one_after_the_other("swift", 2, 700), 0.01);
    assert!(c.exceeds || holds(&c), "off by {:?}; {}", c.off, c.about.sentence());
    assert!(c.exceeds || c.off.1 <= 0.03, "off by {:?}; {}", c.off, c.about.sentence());
}

#[test]
fn idle_time_does_not_make_errors_smaller() {
    for preset in ["swift", "powertcp", "dcqcn+win", "hpcc", "pfc", "bfc"] {
        let c = compared(&one_after_the_other(preset, 4, 700), 0.01);
        assert!(c.exceeds || holds(&c), "{preset}: off by {:?}; {}", c.off, c.about.sentence());
        // Shares are of the time in which there was something to do, which is a few milliseconds of five seconds.
        assert!(c.about.jumps == 0 || c.about.skipped > 0.001, "{preset}: {}", c.about.sentence());
    }
}

/// A run, and what it produced.
fn run(text: &str, within: Option<f64>) -> Outcome {
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]);
    let mut resolved = scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}"));
    resolved.setup.within = within;
    resolved.on_threads(1).simulate(&mut |_, _| true)
}

/// All that a run produced, but for how it was done.
fn whole(outcome: Outcome) -> String {
    format!("{:?}", Outcome { turns: 0, exchange: Default::default(), forwarded: None, ..outcome })
}

#[test]
fn a_run_that_skips_nothing_is_the_same_to_the_byte_also_where_it_stalls() {
    // A ring of four switches that deadlocks: nothing happens any more after 30 us.
    let ring = "stop = \"5ms\"\n[topology]\nkind = \"torus\"\nx = 4\ny = 1\n[switch]\nbuffer = \"400KB\"\n".to_string()
        + &flows(&[(0, 2), (1, 3), (2, 0), (3, 1)], "50MB");
    let load = "[topology]\nkind = \"star\"\nhosts = 8\n[scheme]\npreset = \"dcqcn+win\"\n[[load]]\nsizes = \"hadoop\"\nload = 0.6\nduration = \"300us\"\n";
    for text in [ring.as_str(), load] {
        let (exact, skipping) = (run(text, None), run(text, Some(0.02)));
        assert_eq!(skipping.forwarded.as_ref().map(|about| about.jumps), Some(0));
        assert!(whole(exact) == whole(skipping), "{text}");
    }
}

#[test]
fn a_collective_of_several_steps_says_what_is_not_known() {
    let text = scenario(Traffic::HalvingDoubling, 32, "64MB", "hpcc");
    let c = compared(&text, 0.01);
    assert!(c.about.followers > 0 && c.exceeds, "off by {:?}: {}", c.off, c.about.sentence());
    assert!(c.about.sentence().contains("is not in that"), "{}", c.about.sentence());
}

#[test]
fn where_nothing_is_steady_nothing_is_skipped_and_the_result_is_the_same() {
    let text = "[topology]\nkind = \"star\"\nhosts = 8\n[scheme]\npreset = \"dcqcn+win\"\n[[load]]\nsizes = \"hadoop\"\nload = 0.6\nduration = \"300us\"\n";
    let c = compared(text, 0.01);
    assert!(c.same && c.about.jumps == 0, "{}", c.about.sentence());
    assert!(c.about.sentence().contains("nothing was skipped: exact"));
}

#[test]
fn flows_that_come_and_leave_by_the_clock_do_so_when_they_would() {
    let text = format!(
        "stop = \"6ms\"\n{}{}[[flow]]\nsrc = 2\ndst = 6\nsize = \"30MB\"\nstart = \"2ms\"\n[[long]]\nfrom = \"h3\"\nto = \"h7\"\nleave = \"4ms\"\n",
        PAIR.replace("PRESET", "bfc"),
        flows(&[(0, 4), (1, 5)], "30MB")
    );
    let c = compared(&text, 0.01);
    assert!(c.about.jumps > 0 && c.about.skipped > 0.3, "{}", c.about.sentence());
    let (exact, skipping) = (run(&text, None), run(&text, Some(0.01)));
    assert_eq!((exact.end, exact.stall), (skipping.end, skipping.stall));
    for (a, b) in exact.flows.iter().zip(&skipping.flows) {
        assert_eq!(a.start, b.start);
        let off = a.delivered.abs_diff(b.delivered) as f64 / a.delivered as f64;
        assert!(off < 0.02, "{} and {} bytes of {:?}", a.delivered, b.delivered, a.spec);
        let sent = |port: usize| (exact.sent[port] as f64, skipping.sent[port] as f64);
        assert!((0..exact.sent.len()).all(|port| (sent(port).0 - sent(port).1).abs() <= 0.05 * sent(port).0 + 1e5));
    }
}

#[test]
fn what_cannot_be_skipped_is_refused_by_name_all_of_it_at_once() {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 2\nspines = 2\n[scheme]\npreset = \"bolt\"\n[measure]\nwhy = true\nports = [\"*->h0\"]\n\
                [[link]]\nbetween = [\"leaf0\", \"spine0\"]\nloss = 0.01\n[[slow]]\nhost = \"h1\"\nrate = \"10Gbps\"\n[fast_forward]\nwithin = 0.01\n[[flow]]\nsrc = 0\ndst = 1\nsize = \"1MB\"\n";
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]);
    let problem = scenario.and_then(resolve).err().map(|problem| problem.to_string()).unwrap_or_default();
    for said in ["fail or lose packets", "slow receivers", "why flows are slow", "followed", "bolt looks at how long"] {
        assert!(problem.contains(said), "{said}: {problem}");
    }
    assert!(problem.contains("leave --within and [fast_forward] out"), "{problem}");
    let line = |pairs: &[(u32, u32)]| {
        let text = PAIR.replace("PRESET", "pfc")
            + "[nic]\nqueues = \"destination\"\n[fast_forward]\nwithin = 0.01\n"
            + &flows(pairs, "1MB");
        let scenario = Scenario::parse("a.toml", &text, Path::new("/nowhere"), &[]);
        scenario.and_then(resolve).err().map(|problem| problem.to_string()).unwrap_or_default()
    };
    assert!(line(&[(0, 4), (0, 4)]).contains("messages that wait in line"), "{}", line(&[(0, 4), (0, 4)]));
    assert_eq!(line(&[(0, 4), (0, 5)]), "", "none waits for another");
}

/// Flows of all sizes that begin together or a little later, under schemes of all sorts.
fn any_scenario() -> impl Strategy<Value = String> {
    let flow = (0u32..16, 1u32..16, 1u64..20_000, 0u64..2);
    let presets = prop::sample::select(vec!["pfc", "dcqcn+win", "hpcc", "bfc", "swift", "timely", "dctcp", "powertcp"]);
    (presets, 2u32..5, prop::collection::vec(flow, 2..10)).prop_map(|(preset, spines, flows)| {
        let mut text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 8\nspines = {spines}\n[scheme]\npreset = \"{preset}\"\n"
        );
        for (number, (src, step, size, start)) in flows.into_iter().enumerate() {
            let dst = (src + step) % 16;
            text += &format!("[[flow]]\nsrc = {src}\ndst = {dst}\nsize = \"{size}KB\"\nname = \"f{number}\"\n");
            text += &format!("start = \"{}us\"\n", start * 150);
        }
        text
    })
}

/// Hosts of a star that do together what it says.
fn together(kind: &str, hosts: u32, size: &str, preset: &str) -> String {
    format!(
        "[topology]\nkind = \"star\"\nhosts = {hosts}\n[scheme]\npreset = \"{preset}\"\n[[collective]]\nkind = \"{kind}\"\nsize = \"{size}\"\n"
    )
}

fn raced(text: &str, within: f64) -> Compared {
    race(text, within).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

#[test]
fn collectives_whose_flows_are_alone_are_streams_and_end_when_they_would() {
    for (kind, preset) in [
        ("ring-all-reduce", "pfc"),
        ("ring-all-reduce", "dcqcn"),
        ("halving-doubling-all-reduce", "bfc"),
        ("halving-doubling-all-reduce", "sfc"),
        ("all-to-all", "dvl"),
    ] {
        let c = raced(&together(kind, 8, "64MB", preset), 0.01);
        let what = format!("{kind} under {preset}");
        assert!(!c.exceeds && c.about.flows_alone(), "{what}: {}", c.about.sentence());
        assert!(c.off.0 <= 0.01 && c.off.1 <= 0.03 && c.off.2 <= 0.01, "{what}: off by {:?}", c.off);
        assert!(c.about.skipped > 0.9, "{what}: {}", c.about.sentence());
    }
}

#[test]
fn where_streams_do_not_say_enough_all_is_simulated() {
    // Who meets whom on sixteen spines decides when messages end, and is decided by that.
    let text = scenario(Traffic::HalvingDoubling, 32, "16MB", "pfc");
    let c = raced(&text, 0.01);
    assert!(c.same && !c.about.flows_alone(), "off by {:?}: {}", c.off, c.about.sentence());
}

#[test]
fn what_repeats_exactly_is_no_stream() {
    let c = raced(&(PAIR.replace("PRESET", "pfc") + &flows(&[(0, 4)], "100MB")), 0.01);
    assert!(c.same && c.about.exact() && c.about.skipped > 0.9, "{}", c.about.sentence());
}

#[test]
fn the_same_windows_say_the_same_again() {
    let text = together("ring-all-reduce", 8, "32MB", "hpcc");
    let (a, b) = (raced(&text, 0.02), raced(&text, 0.02));
    assert_eq!((a.off, a.about), (b.off, b.about));
}

#[test]
fn random_runs_are_within_what_was_asked_for_as_they_say_or_are_done_again() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(24);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new_with_rng(config, rng).run(&any_scenario(), |text| {
        let c = compare(&text, 0.02).map_err(|problem| TestCaseError::fail(problem.to_string()))?;
        prop_assert!(c.exceeds || holds(&c), "{:?}: {}\n{}", c.off, c.about.sentence(), text);
        prop_assert!(!c.about.exact() || c.same, "{}\n{}", c.about.sentence(), text);
        if c.about.jumps == 0 {
            let (exact, skipping) = (run(&text, None), run(&text, Some(0.02)));
            prop_assert!(whole(exact) == whole(skipping), "{text}");
        }
        Ok(())
    });
    result.unwrap_or_else(|problem| panic!("{problem}"));
}
