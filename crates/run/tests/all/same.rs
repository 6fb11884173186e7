//! Whether two runs are one.

use fabric::Outcome;
use fabric::packet::flag;
use fabric::probe::Captured;
use std::fmt::Debug;

/// What a result can show and two runs do not have in common: the name of each, and both values where they are short.
pub fn differences(one: &Outcome, other: &Outcome) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    let mut compare = |name, same: bool, values: [&dyn Debug; 2]| {
        if !same {
            let [one, other] = values.map(|value| format!("{value:?}"));
            let short = one.len().max(other.len()) < 2000;
            all.push((name, if short { format!("{one} and {other}") } else { String::new() }));
        }
    };
    macro_rules! fields {
        ($($field:ident)+) => { $(compare(stringify!($field), one.$field == other.$field, [&one.$field, &other.$field]);)+ };
    }
    fields!(end counts finished flow_control histograms congestion_control transport switches samples series);
    fields!(flows paused peak sent left stall violations retries);
    // A run that is not asked why is the same run.
    let stops = [one, other].map(|outcome| outcome.stops.as_ref());
    if let [Some(one), Some(other)] = stops {
        let first = one.stops.iter().zip(&other.stops).find(|(one, other)| one != other);
        let same = first.is_none() && one.stops.len() == other.stops.len();
        compare("stops", same, [&first.map(|first| first.0), &first.map(|first| first.1)]);
        compare("waits", one.kept == other.kept, [&one.kept.len(), &other.kept.len()]);
        compare("losses", one.losses == other.losses, [&one.losses, &other.losses]);
        compare("queued", one.queued == other.queued, [&one.queued, &other.queued]);
        compare("causes", one == other, [&(one.fullest, one.fullest_port), &(other.fullest, other.fullest_port)]);
    }
    let parts = [one, other].map(|outcome| outcome.parts.as_ref());
    compare("parts", parts.contains(&None) || parts[0] == parts[1], [&"", &""]);
    let recordings = [one, other].map(|outcome| outcome.recording.as_ref());
    compare("recording", recordings[0].is_some() == recordings[1].is_some(), [&"", &""]);
    if let [Some(one), Some(other)] = recordings {
        let frames = [one, other].map(|recording| (recording.first, recording.every, recording.frames));
        compare("frames of the recording", frames[0] == frames[1], [&frames[0], &frames[1]]);
        compare("ports of the recording", one.ports == other.ports, [&"", &""]);
        compare("flows of the recording", (&one.chosen, &one.flows) == (&other.chosen, &other.flows), [&"", &""]);
    }
    let captured = one.captured.iter().map(visible).eq(other.captured.iter().map(visible));
    compare("captured", captured, [&one.captured.len(), &other.captured.len()]);
    all
}

/// Everything that a result can show is the same.
pub fn assert_same(one: &Outcome, several: &Outcome, what: &str) {
    assert_eq!(differences(one, several), [], "{what}");
}

/// What a capture shows of a packet.
fn visible(captured: &Captured) -> impl PartialEq {
    let Captured { time, port, packet: p, payload } = captured;
    // In a frame with a payload the flow says where that lies in memory.
    let flow = if p.flags & flag::PAYLOAD == 0 { p.flow } else { 0 };
    let header = (p.kind, flow, p.seq, p.stamp, p.size, p.flags, p.class, p.tag, p.dst, p.tuple);
    (*time, *port, header, payload.clone())
}
