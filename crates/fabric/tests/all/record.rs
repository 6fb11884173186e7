//! Recordings whose every number can be computed by hand.

use engine::{Rate, Time};
use fabric::axes::flow_control::NoFlowControl;
use fabric::id::FlowId;
use fabric::probe::{Column, FLOW_COLUMNS, PORT_COLUMNS, Recording};
use fabric::setup::{FlowSpec, RecordSetup};
use fabric::topology::{Graph, Kind};
use fabric::{Outcome, Setup};

/// Ten packets of 1062 B from one host to another behind a switch, at 100 Gb/s, and 1 µs a link.
fn ten_packets(record: Option<RecordSetup>) -> Outcome {
    let mut graph = Graph::default();
    let (a, b) = (graph.add(Kind::Host, 0, "a"), graph.add(Kind::Host, 0, "b"));
    let switch = graph.add(Kind::Switch, 1, "s");
    [a, b].iter().for_each(|&host| graph.connect(host, switch, Rate::from_gbps(100), Time::from_us(1)));
    let mut setup = Setup::plain(graph, vec![FlowSpec::plain(0, a.0, b.0, 10_000, Time::from_us(5))]);
    setup.measure.record = record;
    crate::run(setup, NoFlowControl)
}

fn every(ns: u64, frames: usize) -> Option<RecordSetup> {
    Some(RecordSetup { every: Time::from_ns(ns), frames, flows: vec![FlowId(0)] })
}

fn recording(outcome: &Outcome) -> &Recording {
    outcome.recording.as_ref().unwrap()
}

/// What a column of ports says of one, frame by frame.
fn port(recording: &Recording, name: &str, port: usize) -> Vec<u64> {
    let column = PORT_COLUMNS.iter().position(|(other, _)| *other == name).unwrap();
    let mut dense = vec![0; recording.frames];
    of(&recording.ports[column], 4, port).iter().for_each(|(frame, value)| dense[*frame as usize] = *value);
    dense
}

fn of(column: &Column, places: usize, place: usize) -> Vec<(u32, u64)> {
    column.by_place(places)[place].clone()
}

fn flow(recording: &Recording, name: &str) -> Vec<(u32, u64)> {
    of(&recording.flows[FLOW_COLUMNS.iter().position(|(other, _)| *other == name).unwrap()], 1, 0)
}

#[test]
fn a_link_that_is_busy_sends_its_rate_in_every_frame() {
    let outcome = ten_packets(every(100, 4096));
    let r = recording(&outcome);
    // 10 620 B take 849.6 ns; the first packet is at the switch after 84.96 ns and a microsecond.
    let full = [1250; 8];
    let mut sent = vec![0; r.frames];
    sent[..8].copy_from_slice(&full);
    sent[8] = 620;
    assert_eq!((r.first, r.every), (Time::from_us(5), Time::from_ns(100)));
    assert_eq!(port(r, "sent", 0), sent);
    // Then by the switch, from 1084.96 ns on: 15.04 ns of the frame that ends at 1100 ns.
    let mut sent = vec![0; r.frames];
    (sent[10], sent[19]) = (188, 10_620 - 188 - 8 * 1250);
    sent[11..19].copy_from_slice(&full);
    assert_eq!(port(r, "sent", 3), sent);
    // The ten ACKs of 66 B come back by b.
    assert_eq!(port(r, "sent", 1).iter().sum::<u64>(), 660);
    assert_eq!(r.frames as u64, (outcome.end - r.first).0.div_ceil(100_000));
    for name in ["queued", "paused", "held_queues", "held_flows", "pause_frames", "signals", "marked", "dropped"] {
        assert_eq!(port(r, name, 0), vec![0; r.frames], "{name}");
    }
    // Two packets have been begun after 100 ns, and so on; the first arrives after 2169.92 ns.
    assert_eq!(flow(r, "sent")[..3], [(0, 2000), (1, 3000), (2, 4000)]);
    assert_eq!(flow(r, "sent").last(), Some(&(7, 10_000)));
    assert_eq!(flow(r, "received")[0], (21, 1000));
    assert_eq!(flow(r, "received").last().unwrap().1, 10_000);
    assert_eq!(flow(r, "acknowledged").last(), Some(&(r.frames as u32 - 1, 10_000)));
    assert!(flow(r, "held").is_empty() && flow(r, "by").is_empty());
}

#[test]
fn a_recording_that_is_full_has_frames_of_twice_the_length_and_the_same_sums() {
    let fine = ten_packets(every(100, 4096));
    let coarse = ten_packets(every(100, 16));
    let (fine, coarse) = (recording(&fine), recording(&coarse));
    assert_eq!(coarse.every, Time::from_ns(400));
    assert_eq!(coarse.frames, fine.frames.div_ceil(4));
    for place in 0..4 {
        let summed: Vec<u64> = port(fine, "sent", place).chunks(4).map(|four| four.iter().sum()).collect();
        assert_eq!(port(coarse, "sent", place), summed);
    }
    // Frames of a flow keep what was at their end: the packets begun by 400 ns and by 800 ns.
    assert_eq!(flow(coarse, "sent"), [(0, 5000), (1, 10_000)]);
    assert!(coarse.frames < 16);
}

#[test]
fn a_recorded_run_ends_as_any_other() {
    let (recorded, plain) = (ten_packets(every(7, 64)), ten_packets(None));
    assert_eq!((recorded.end, recorded.counts), (plain.end, plain.counts));
    assert!(plain.recording.is_none());
}
