//! Links that repeat what they damage, over random fabrics and every preset: nothing is lost, what may give up ends, and it is the same on any
//! number of threads.

use super::*;
use fabric::retry::Tally;

/// Errors of all links and of some, and how links repeat.
fn repeating(presets: Vec<&'static str>) -> impl Strategy<Value = Case> {
    let own = prop::collection::vec((any::<prop::sample::Index>(), 0.0001f64..0.02, 0.0f64..0.01), 0..3);
    let settings = (0u32..4, 64u32..6_000, 0u32..4, 1u32..3, 0u32..5);
    (case(0..7, presets), own, settings).prop_map(|(case, own, (errors, spacing, bytes, timer, replays))| {
        let errors = ["0", "1e-8", "1e-7", "2e-6"][errors as usize];
        let mut text = format!("[links]\nbit_error_rate = {errors}\n[links.retry]\nack_spacing = \"{spacing}B\"\n");
        if bytes > 0 {
            text += &format!("bytes = \"{}KB\"\n", 10 * bytes);
        }
        if timer > 1 {
            text += "timer = \"30us\"\n";
        }
        if replays > 0 {
            text += &format!("pause_replays = {replays}\n");
        }
        Case { faults: text + &faults(&case.fabric, &own), ..case }
    })
}

fn endless(presets: Vec<&'static str>) -> impl Strategy<Value = Case> {
    repeating(presets).prop_map(|case| {
        let faults = case.faults.replace("[links.retry]\n", "[links.retry]\nendless = true\n");
        Case { faults, ..case }
    })
}

fn tally(outcome: &Outcome) -> Tally {
    let mut all = Tally::default();
    outcome.retries.iter().for_each(|(_, tally)| all.add(tally));
    all
}

#[test]
fn links_that_repeat_for_ever_lose_nothing() {
    holds(endless(lossless()), 0.3, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        // Where pauses may come later than headroom allows for, memory may be short; links lose nothing.
        prop_assert_eq!((outcome.counts.dropped_fault, outcome.counts.dropped_down), (0, 0));
        if resolved.promised {
            undisturbed(&resolved, &outcome)?;
        }
        let tally = tally(&outcome);
        prop_assert_eq!((tally.lost, tally.flushes), (0, 0));
        Ok(Some(tally.repeated.0 > 0))
    });
}

#[test]
fn links_that_give_up_leave_the_rest_to_the_ends() {
    let strategy =
        (repeating(every()), 0usize..5, any::<bool>(), 100u64..2_000).prop_map(|(case, then, aged, timeout)| {
            let [after, restart] = [
                ["best-effort", "false"],
                ["best-effort", "true"],
                ["discard", "true"],
                ["block", "true"],
                ["best-effort", "true"],
            ][then];
            let age = if aged { "data_age = \"40us\"\n" } else { "" };
            let more =
                format!("[links.retry]\nmax_replays = {}\nafter = \"{after}\"\nrestart = {restart}\n{age}", then % 2);
            let nic = format!("{}timeout = \"{timeout}us\"\n", case.nic);
            // Ends that give up sooner than any answer can come would bring little but that across.
            let patient = case.faults.replace("timer = \"30us\"", "timer = \"60us\"");
            Case { faults: patient.replace("[links.retry]\n", &more), nic, ..case }
        });
    holds(strategy, 0.02, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        let tally = tally(&outcome);
        prop_assert_eq!(tally.lost, outcome.counts.dropped_fault);
        Ok(Some(tally.flushes > 0))
    });
}

#[test]
fn links_that_fail_for_a_moment_repeat_what_was_under_way() {
    let outage = (any::<prop::sample::Index>(), 0u64..60_000, 1u64..100_000, 0u64..100);
    let strategy = (endless(lossless()), outage).prop_map(|(case, (at, from, length, lost))| {
        let (a, b) = &case.fabric.links[at.index(case.fabric.links.len())];
        let down = format!("down = [[\"{from}ns\", \"{}ns\"]]", from + length);
        let faults = case.faults.split("[[link]]").next().unwrap_or_default().to_string();
        let faults = faults.replace("[links.retry]\n", &format!("[links.retry]\nlink_lost = \"{lost}us\"\n"));
        let case = Case { faults: format!("{faults}[[link]]\nbetween = [\"{a}\", \"{b}\"]\n{down}\n"), ..case };
        (case, length < lost * 1000)
    });
    holds(strategy, 0.1, |(case, bridged)| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        // A detour by hosts that forward can close a cycle.
        if case.fabric.base.is_some() && matches!(outcome.stall, Some(Stall::Deadlock(_))) {
            return Ok(Some(true));
        }
        sound(&resolved, &outcome, buffer)?;
        prop_assert_eq!(outcome.counts.dropped_fault, 0);
        prop_assert!(!bridged || outcome.counts.dropped_down == 0);
        Ok(Some(outcome.counts.dropped_down > 0 || tally(&outcome).repeated.0 > 0))
    });
}

/// The end of a transmission was planned for a link that waited for ACKs, but not where its last packet had gone straight on: which of them do
/// depends on what else is planned, and so on how a fabric is cut.
#[test]
fn what_is_planned_for_a_link_that_waits_does_not_depend_on_the_rest() {
    let flow = |src: u32, dst: u32, size: u64, more: &str| {
        format!("[[flow]]\nsrc = {src}\ndst = {dst}\nsize = \"{size}B\"\n{more}\n")
    };
    let text = "[switch]\nalpha = 0.92\nbuffer = \"30MB\"\n[nic]\npayload = \"1874B\"\nack_every = 8\n\
                [topology]\nkind = \"chain\"\nswitches = 2\ntrunk_delay = \"10089ns\"\n\
                [links.retry]\nack_spacing = \"5988B\"\nbytes = \"30KB\"\n"
        .to_string()
        + &flow(1, 3, 176_634, "start = \"0ns\"")
        + &flow(1, 3, 7_693, "start = \"0ns\"")
        + &flow(1, 3, 339, "start = \"0ns\"")
        + &flow(7, 3, 42_354, "start = \"0ns\"\nid = \"first\"")
        + &flow(3, 7, 42_354, "after = \"first\"\ngap = \"30000ns\"");
    let scenario = Scenario::parse("waits.toml", &text, Path::new("/nowhere"), &[]);
    let mut resolved = scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}"));
    resolved.setup.measure.why = true;
    let outcome = resolved.simulate(&mut |_, _| true);
    assert_eq!(outcome.violations, Vec::<String>::new());
    for (threads, blocks) in [(1, 2), (1, 3), (2, 1), (2, 2)] {
        let other = resolved.simulate_in(threads, Some(blocks), &mut |_, _| true);
        assert_same(&outcome, &other, &format!("{threads} threads, {blocks} blocks"));
    }
}

/// BFC says its last word to a port 64 times where links lose frames, which is enough where losses come one by one. What gives up repeating loses all of
/// them at once: a flow stayed paused for ever.
#[test]
fn pauses_end_although_a_link_that_gives_up_loses_all_of_the_last_frames() {
    let flow = |src: u32, dst: u32, size: u64| format!("[[flow]]\nsrc = {src}\ndst = {dst}\nsize = \"{size}B\"\n");
    let ends = |name: &str, text: String| {
        let scenario = Scenario::parse("ends.toml", &text, Path::new("/nowhere"), &[]);
        let resolved = scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}"));
        let outcome = resolved.simulate(&mut |_, _| true);
        assert_eq!(outcome.violations, Vec::<String>::new());
        assert!(outcome.complete(), "{name}: {:?}", outcome.stall);
        tally(&outcome).flushes
    };
    let incast: Vec<(u32, u32, u64)> = vec![
        (2, 0, 500_000),
        (1, 0, 200_000),
        (3, 0, 200_000),
        (2, 0, 20_000),
        (2, 3, 20_000),
        (1, 0, 500_000),
        (1, 0, 500_000),
    ];
    let flows: String = incast.iter().map(|&(src, dst, size)| flow(src, dst, size)).collect();
    let text = |preset: &str, seed: u32| {
        format!(
            "seed = {seed}\nstop = \"300ms\"\n[scheme]\npreset = \"{preset}\"\n[topology]\nkind = \"chain\"\n[nic]\ntimeout = \"1ms\"\n\
             [links.retry]\nafter = \"block\"\nrestart = true\ntimer = \"60us\"\nbytes = \"30KB\"\nack_spacing = \"6000B\"\n\
             [[link]]\nbetween = [\"h1\", \"sw0\"]\nloss = 0.02\ncorruption = 0.01\n{flows}"
        )
    };
    let seeds = 1180..1200;
    let flushes: u64 = seeds.map(|seed| ends(&format!("seed {seed}"), text("bfc-vfid", seed))).sum();
    assert!(flushes > 0);
}

/// A link that keeps one frame carries one in a round trip: pauses that went more often than that left nothing to data.
#[test]
fn pauses_leave_room_on_a_link_that_keeps_a_single_frame() {
    for preset in ["bfc", "bfc-vfid"] {
        let text = format!(
            "stop = \"60ms\"\n[topology]\nkind = \"star\"\nhosts = 4\n[scheme]\npreset = \"{preset}\"\n\
             [links.retry]\nmax_replays = 255\nframes = 1\nlink_lost = \"50ms\"\n\
             [[link]]\nbetween = [\"h3\", \"sw0\"]\ndown = [[\"100us\", \"5ms\"]]\n\
             [[flow]]\nsrc = 3\ndst = 1\nsize = \"100KB\"\n[[flow]]\nsrc = 1\ndst = 3\nsize = \"300KB\"\n"
        );
        let scenario = Scenario::parse("single.toml", &text, Path::new("/nowhere"), &[]);
        let resolved = scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}"));
        let outcome = resolved.simulate(&mut |_, _| true);
        assert_eq!(outcome.violations, Vec::<String>::new());
        assert!(outcome.complete(), "{preset}: {:?}", outcome.stall);
    }
}
