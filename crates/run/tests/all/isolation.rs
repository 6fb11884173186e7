//! A hot spot behind two switches, and a victim that only shares the link between them.

use engine::Time;
use fabric::Outcome;
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use std::path::Path;

/// The example of the documentation, with other settings.
fn hot_spot(preset: &str, more: &[&str]) -> (Resolved, Outcome) {
    let text = include_str!("../../../../examples/hot_spot.toml");
    let mut set = vec![format!("scheme.preset={preset}")];
    set.extend(more.iter().map(|more| more.to_string()));
    let scenario = Scenario::parse("hot_spot.toml", text, Path::new("/nowhere"), &set);
    let resolved = scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}"));
    let outcome = resolved.simulate(&mut |_, _| true);
    assert_eq!(outcome.violations, Vec::<String>::new());
    (resolved, outcome)
}

/// How much later than alone in the network the victim ends, and how long it takes alone.
fn delay(preset: &str, more: &[&str]) -> (Time, Time) {
    let (resolved, outcome) = hot_spot(preset, more);
    let victim = resolved.groups.iter().position(|group| group == "victim").unwrap() as u16;
    let flow = outcome.flows.iter().find(|flow| flow.spec.tag == victim).unwrap();
    assert!(flow.received != Time::MAX, "the victim ends before the scenario does");
    (flow.received - flow.start - flow.spec.ideal, flow.spec.ideal)
}

#[test]
fn a_victim_is_blocked_by_pfc_slowed_with_ecn_and_untouched_by_dvl() {
    let (pfc, alone) = delay("pfc", &[]);
    let (ecn, _) = delay("dcqcn", &[]);
    // With PFC the five share what the hot receiver takes, though the link between the switches could carry all.
    assert!(pfc.0 > 2 * alone.0, "{pfc} against {alone}");
    assert!(ecn.0 * 10 > alone.0 && ecn < pfc, "{ecn} against {alone}");
    for preset in ["dvl", "edvl", "802.1qcz"] {
        let (dvl, _) = delay(preset, &[]);
        // A hop's delay is a microsecond, and no more may pass from detection until the neighbour keeps the hot flows apart.
        assert!(dvl < Time::from_us(1), "{preset}: {dvl}");
    }
}

#[test]
fn a_table_without_room_is_pfc_and_is_counted() {
    let (few, _) = delay("dvl", &["scheme.dvl.cft=1"]);
    let (enough, _) = delay("dvl", &[]);
    assert!(few.0 > 100 * enough.0.max(1), "{few} against {enough}");
    let (_, outcome) = hot_spot("dvl", &["scheme.dvl.cft=1"]);
    let count = |name: &str| outcome.flow_control.iter().find(|counter| counter.name == name).unwrap().value;
    assert!(count("cft_full") > 0 && count("cft_peak") == 1);
    assert_eq!(outcome.counts.dropped_full, 0);
}

#[test]
fn hot_flows_are_kept_apart_at_both_switches_and_at_their_nics_and_nothing_else_is_stopped() {
    for preset in ["dvl", "edvl"] {
        let (_, outcome) = hot_spot(preset, &[]);
        let count = |name: &str| outcome.flow_control.iter().find(|counter| counter.name == name).unwrap().value;
        assert_eq!((count("flows_isolated"), count("flows_isolated_at_hosts")), (8, 4), "{preset}");
        assert!(count("pause_frames_cfq") > 0);
        assert_eq!(count("pause_frames"), count("pause_frames_cfq"), "{preset}");
    }
}
