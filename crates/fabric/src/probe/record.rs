//! Recording: what every port did and how chosen flows fared, frame by frame, for people to look at.
//!
//! A frame ends at an instant and is taken when nothing is left to happen up to it: no event of its own takes part in the run, so
//! that a recorded run is the same as any other. Only what is not zero is kept. A recording that grows too long merges its frames in
//! pairs and goes on at half the pace.

use super::Probes;
use crate::id::FlowId;
use crate::port::Port;
use crate::routing::PortMap;
use crate::run::Core;
use crate::run::shard::Shard;
use crate::setup::{RecordSetup, Setup};
use engine::Time;
use std::collections::BTreeMap;

/// What is kept of a port in each frame: name and unit, in order.
pub const PORT_COLUMNS: [(&str, &str); 13] = [
    ("queued", "bytes"),
    ("sent", "bytes"),
    ("paused", "ps"),
    ("paused_class", "ps"),
    ("paused_port", "ps"),
    ("held_queues", "queues"),
    ("held_flows", "flows"),
    ("pause_frames", "frames"),
    ("signals", "packets"),
    ("marked", "packets"),
    ("dropped", "packets"),
    ("pauses", "pauses"),
    ("resumes", "resumes"),
];

/// What is kept of a flow at the end of each frame: name and unit, in order.
pub const FLOW_COLUMNS: [(&str, &str); 6] = [
    ("sent", "bytes"),
    ("received", "bytes"),
    ("acknowledged", "bytes"),
    ("held", "ps"),
    ("paused", "ps"),
    ("by", "node + 1"),
];

const QUEUED: usize = 0;
const SENT: usize = 1;
const PAUSED: usize = 2;
const PAUSED_CLASS: usize = 3;
const PAUSED_PORT: usize = 4;
const HELD_QUEUES: usize = 5;
const HELD_FLOWS: usize = 6;
/// The first of those that are counted as they happen; see [`Counted`].
const COUNTED: usize = 7;

/// What is counted as it happens.
#[derive(Clone, Copy)]
pub(crate) enum Counted {
    Frame,
    Signal,
    Mark,
    Drop,
    Pause,
    Resume,
}

/// One quantity over all frames: those ports, or flows, of which there is something to say, in ascending order in each frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    items: Vec<(u32, u64)>,
    /// By frame, how many items there are up to its end.
    ends: Vec<usize>,
}

impl Column {
    fn push(&mut self, place: u32, value: u64) {
        self.items.push((place, value));
    }

    fn end_frame(&mut self) {
        self.ends.push(self.items.len());
    }

    /// What there is in a frame.
    fn frame(&self, frame: usize) -> &[(u32, u64)] {
        let begin = frame.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.items[begin..self.ends[frame]]
    }

    /// A column whose frames each join two lists, given how two values of the same place become one.
    fn joined<'a>(
        frames: impl Iterator<Item = (&'a [(u32, u64)], &'a [(u32, u64)])>,
        both: fn(u64, u64) -> u64,
    ) -> Column {
        let mut column = Column::default();
        for (mut a, mut b) in frames {
            loop {
                let item = match (a.first(), b.first()) {
                    (Some(&one), Some(&two)) if one.0 == two.0 => {
                        (a, b) = (&a[1..], &b[1..]);
                        (one.0, both(one.1, two.1))
                    }
                    (Some(&one), two) if two.is_none_or(|two| one.0 < two.0) => {
                        a = &a[1..];
                        one
                    }
                    (_, Some(&two)) => {
                        b = &b[1..];
                        two
                    }
                    _ => break,
                };
                column.items.push(item);
            }
            column.end_frame();
        }
        column
    }

    /// Merges every frame of even number with the next; there must be an even number of them.
    fn halve(&mut self, both: fn(u64, u64) -> u64) {
        let pairs = (0..self.ends.len() / 2).map(|pair| (self.frame(2 * pair), self.frame(2 * pair + 1)));
        *self = Column::joined(pairs, both);
    }

    /// Takes over the places of another shard.
    fn absorb(&mut self, other: &Column) {
        if !other.items.is_empty() {
            let frames = (0..self.ends.len()).map(|frame| (self.frame(frame), other.frame(frame)));
            *self = Column::joined(frames, |mine, _| mine);
        }
    }

    /// Place by place, what there is as (frame, value).
    pub fn by_place(&self, places: usize) -> Vec<Vec<(u32, u64)>> {
        let mut counts = vec![0; places];
        self.items.iter().for_each(|(place, _)| counts[*place as usize] += 1);
        let mut all: Vec<Vec<(u32, u64)>> = counts.into_iter().map(Vec::with_capacity).collect();
        for frame in 0..self.ends.len() {
            for &(place, value) in self.frame(frame) {
                all[place as usize].push((frame as u32, value));
            }
        }
        all
    }
}

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// When the first frame begins.
    pub first: Time,
    /// How long a frame is: frame f lasts from just after `first + f * every` to `first + (f + 1) * every`.
    pub every: Time,
    /// How many there are.
    pub frames: usize,
    /// See [`PORT_COLUMNS`]; a port of which nothing is said has 0.
    pub ports: [Column; PORT_COLUMNS.len()],
    /// The chosen flows.
    pub chosen: Vec<FlowId>,
    /// See [`FLOW_COLUMNS`]; by place among the chosen flows. A flow of which nothing is said is as in the frame before.
    pub flows: [Column; FLOW_COLUMNS.len()],
}

impl Recording {
    fn columns(&mut self) -> impl Iterator<Item = &mut Column> {
        self.ports.iter_mut().chain(&mut self.flows)
    }

    /// Merges the frames in pairs.
    fn halve(&mut self) {
        for (number, column) in self.ports.iter_mut().enumerate() {
            // Of what is, the most is kept; of what happens, all.
            let is = [QUEUED, HELD_QUEUES, HELD_FLOWS].contains(&number);
            column.halve(if is { u64::max } else { |a, b| a + b });
        }
        self.flows.iter_mut().for_each(|column| column.halve(|_, later| later));
        self.frames /= 2;
        self.every = Time(self.every.0.saturating_mul(2));
    }

    pub(crate) fn absorb(&mut self, mut other: Recording) {
        self.columns().zip(other.columns()).for_each(|(mine, theirs)| mine.absorb(theirs));
    }
}

/// A recording under way, of the nodes that are run here.
pub(crate) struct Recorder {
    pub(crate) recording: Recording,
    /// When the frame under way ends.
    next: Time,
    /// The most frames; even.
    most: usize,
    /// The ports of these nodes.
    own: Vec<u32>,
    /// By port of those: bytes sent, and time that something, a class and all of it was paused, by the end of the last frame.
    before: Vec<(u64, [Time; 3])>,
    /// By port, what was counted since, and whether anything was.
    counts: [(bool, Vec<u32>); PORT_COLUMNS.len() - COUNTED],
    /// By port, the classes that its neighbour holds as a whole.
    whole: Vec<u32>,
    /// Whether queues were ever held one by one.
    singly: bool,
    /// Flows that are held, and by which node.
    held: BTreeMap<u32, u32>,
    /// Chosen flows whose time had come, by place: how many in all, and those that are not over.
    begun: usize,
    live: Vec<usize>,
    /// By place, what was last said of a flow.
    said: Vec<[u64; FLOW_COLUMNS.len()]>,
}

impl Recorder {
    pub(crate) fn new(record: &RecordSetup, setup: &Setup, map: &PortMap, shard: &Option<Shard>) -> Recorder {
        let own = |port: &u32| shard.as_ref().is_none_or(|shard| shard.owns(map.node[*port as usize]));
        let own: Vec<u32> = (0..map.count() as u32).filter(own).collect();
        let first = setup.flows.first().map_or(Time::ZERO, |flow| flow.start);
        let every = record.every.max(Time(1));
        Recorder {
            recording: Recording { first, every, chosen: record.flows.clone(), ..Recording::default() },
            next: first.saturating_add(every),
            most: (record.frames / 2).max(1) * 2,
            before: vec![(0, [Time::ZERO; 3]); own.len()],
            own,
            counts: std::array::from_fn(|_| (false, vec![0; map.count()])),
            whole: vec![0; map.count()],
            singly: false,
            held: BTreeMap::new(),
            begun: 0,
            live: Vec::new(),
            said: vec![[0; FLOW_COLUMNS.len()]; record.flows.len()],
        }
    }

    #[cold]
    #[inline(never)]
    fn count(&mut self, port: u32, what: Counted, times: usize) {
        let (any, counts) = &mut self.counts[what as usize];
        *any = true;
        counts[port as usize] += times as u32;
    }

    /// The frame under way is over.
    fn end_frame(&mut self) {
        let recording = &mut self.recording;
        recording.columns().for_each(Column::end_frame);
        recording.frames += 1;
        if recording.frames == self.most {
            recording.halve();
        }
        self.next = self.next.saturating_add(recording.every);
    }
}

impl Core {
    /// The instant before which events may happen without a frame being taken first, or `stop`.
    pub(crate) fn frame_edge(&self, stop: Time) -> Time {
        self.probes.recorder.as_ref().map_or(stop, |recorder| stop.min(recorder.next.saturating_add(Time(1))))
    }

    /// Takes the frames that end before `next`, when something happens again.
    pub(crate) fn record_until(&mut self, next: Time) {
        while let Some(end) = self.probes.recorder.as_ref().map(|recorder| recorder.next).filter(|end| *end < next) {
            self.take_frame(end);
        }
    }

    /// Takes the last frame, at the end of the run.
    pub(crate) fn end_recording(&mut self, end: Time) {
        self.record_until(end);
        let begun = |recorder: &Recorder| recorder.next.saturating_sub(recorder.recording.every) < end;
        if self.probes.recorder.as_deref().is_some_and(begun) {
            self.take_frame(end);
        }
    }

    fn take_frame(&mut self, end: Time) {
        let Some(mut recorder) = self.probes.recorder.take() else { return };
        self.take_ports(&mut recorder, end);
        self.take_held(&mut recorder);
        self.take_flows(&mut recorder, end);
        for (column, (any, counts)) in recorder.recording.ports[COUNTED..].iter_mut().zip(&mut recorder.counts) {
            if std::mem::take(any) {
                for (port, count) in (0..).zip(counts).filter(|(_, count)| **count > 0) {
                    column.push(port, std::mem::take(count) as u64);
                }
            }
        }
        recorder.end_frame();
        self.probes.recorder = Some(recorder);
    }

    fn take_ports(&self, recorder: &mut Recorder, end: Time) {
        let columns = &mut recorder.recording.ports;
        for (&port, before) in recorder.own.iter().zip(&mut recorder.before) {
            let p: &Port = &self.ports[port as usize];
            if p.queued > 0 {
                columns[QUEUED].push(port, p.queued);
            }
            let sent = self.sent_by(port as usize, end);
            if sent > before.0 {
                columns[SENT].push(port, sent - before.0);
                before.0 = sent;
            }
            let open = if p.paused != 0 { end.saturating_sub(p.pause_start) } else { Time::ZERO };
            let paused = p.pause_total + open;
            if paused > before.1[0] {
                // Classes and ports are paused only where something is.
                let (class, whole) = self.probes.breadth.until(port, end);
                for (column, (now, before)) in [PAUSED, PAUSED_CLASS, PAUSED_PORT]
                    .into_iter()
                    .zip([paused, class, whole].into_iter().zip(&mut before.1))
                {
                    if now > *before {
                        columns[column].push(port, (now - *before).0);
                        *before = now;
                    }
                }
            }
            if recorder.singly && p.has_queues() && self.switches.masks.any_blocked(port) {
                let (whole, each) = (recorder.whole[port as usize], self.setup.switch.queues);
                let by_itself =
                    |queue: &u32| self.switches.masks.is_held(port, *queue) || whole >> (queue / each) & 1 == 0;
                let held = self.switches.masks.all_blocked(port).filter(by_itself).count();
                if held > 0 {
                    columns[HELD_QUEUES].push(port, held as u64);
                }
            }
        }
    }

    /// Which NICs have flows that are held.
    fn take_held(&self, recorder: &mut Recorder) {
        recorder.held.retain(|&flow, _| !self.hosts.senders[flow as usize].done());
        let senders = recorder.held.keys().map(|&flow| &self.hosts.senders[flow as usize]);
        let mut ports: Vec<u32> =
            senders.filter(|s| s.backlogged()).map(|s| self.hosts.nics[s.nic as usize].port).collect();
        ports.sort_unstable();
        for flows in ports.chunk_by(|a, b| a == b) {
            recorder.recording.ports[HELD_FLOWS].push(flows[0], flows.len() as u64);
        }
    }

    fn take_flows(&self, recorder: &mut Recorder, end: Time) {
        let Recorder { recording, begun, live, said, held, .. } = recorder;
        let specs = &self.setup.flows;
        while let Some(&flow) = recording.chosen.get(*begun).filter(|flow| specs[flow.index()].start <= end) {
            let spec = &specs[flow.index()];
            if self.owns(spec.src.0) || self.owns(spec.dst.0) {
                live.push(*begun);
            }
            *begun += 1;
        }
        live.retain(|&place| {
            let flow = recording.chosen[place].index();
            let mut now = said[place];
            let mut over = true;
            if self.owns(specs[flow].src.0) {
                let s = &self.hosts.senders[flow];
                // One that waits for others has nothing to send yet, and so nothing left.
                over &= s.started() && s.done();
                let by = held.get(&(flow as u32)).map_or(0, |node| *node as u64 + 1);
                let held = self.hosts.holds[flow].until(end.min(s.finished)).0;
                // One that waits for others has no NIC yet.
                let paused = if s.started() { self.class_paused(flow as u32, end) } else { Time::ZERO };
                now = [s.high, now[1], s.acked, held, self.hosts.standstills[flow].until(paused).0, by];
            }
            if self.owns(specs[flow].dst.0) {
                let r = &self.hosts.receivers[flow];
                over &= r.finished != Time::MAX;
                now[1] = r.expected;
            }
            for (column, (value, said)) in recording.flows.iter_mut().zip(now.iter().zip(&mut said[place])) {
                if value != said {
                    column.push(place as u32, *value);
                    *said = *value;
                }
            }
            !over
        });
    }

    /// A flow is held by the neighbour of its NIC, as far as is known, or no longer.
    pub(crate) fn note_held(&mut self, flow: u32, held: bool) {
        if let Some(recorder) = &mut self.probes.recorder {
            if held {
                let port = self.hosts.nics[self.hosts.senders[flow as usize].nic as usize].port;
                recorder.held.insert(flow, self.map.node[self.map.peer[port as usize] as usize]);
            } else {
                recorder.held.remove(&flow);
            }
        }
    }
}

impl Probes {
    /// Counts something that happens at `port`, if this is recorded.
    #[inline]
    pub(crate) fn count_at(&mut self, port: u32, what: Counted, times: usize) {
        if let Some(recorder) = &mut self.recorder {
            recorder.count(port, what, times);
        }
    }

    /// A neighbour holds a class of `port` as a whole, or no longer.
    pub(crate) fn note_whole(&mut self, port: u32, class: u8, held: bool) {
        if let Some(recorder) = &mut self.recorder {
            let whole = &mut recorder.whole[port as usize];
            *whole = if held { *whole | 1 << class } else { *whole & !(1 << class) };
        }
    }

    /// A single queue is held, or no longer.
    pub(crate) fn note_single(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.singly = true;
        }
    }

    /// Says that it is not the neighbour but `node` that wants a flow held which is.
    pub(crate) fn held_by(&mut self, flow: u32, node: u32) {
        if let Some(by) = self.recorder.as_mut().and_then(|recorder| recorder.held.get_mut(&flow)) {
            *by = node;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLACES: usize = 5;

    /// Frames of values of which most are 0, and the column that says so.
    fn columns(frames: usize) -> impl Strategy<Value = (Vec<[u64; PLACES]>, Column)> {
        let value = prop_oneof![3 => Just(0u64), 1 => 1..1000u64];
        prop::collection::vec(prop::array::uniform5(value), frames).prop_map(|dense| {
            let mut column = Column::default();
            for frame in &dense {
                (0..).zip(frame).filter(|(_, value)| **value > 0).for_each(|(place, value)| column.push(place, *value));
                column.end_frame();
            }
            (dense, column)
        })
    }

    fn dense(column: &Column, frames: usize) -> Vec<[u64; PLACES]> {
        let mut dense = vec![[0; PLACES]; frames];
        for (place, given) in column.by_place(PLACES).iter().enumerate() {
            given.iter().for_each(|(frame, value)| dense[*frame as usize][place] = *value);
        }
        dense
    }

    proptest! {
        #[test]
        fn merged_frames_have_the_sum_or_the_most_of_two((values, mut column) in columns(12)) {
            let mut most = column.clone();
            column.halve(|a, b| a + b);
            most.halve(u64::max);
            let pair = |both: fn(u64, u64) -> u64| -> Vec<[u64; PLACES]> {
                values.chunks(2).map(|two| std::array::from_fn(|place| both(two[0][place], two[1][place]))).collect()
            };
            prop_assert_eq!(dense(&column, 6), pair(|a, b| a + b));
            prop_assert_eq!(dense(&most, 6), pair(u64::max));
        }

        #[test]
        fn shards_put_together_are_the_whole((values, whole) in columns(7), owner in prop::array::uniform5(0..3)) {
            let shard = |number: i32| {
                let mut column = Column::default();
                for frame in &values {
                    let own = (0..).zip(frame).filter(|(place, value)| **value > 0 && owner[*place as usize] == number);
                    own.for_each(|(place, value)| column.push(place, *value));
                    column.end_frame();
                }
                column
            };
            let mut all = shard(1);
            all.absorb(&shard(0));
            all.absorb(&shard(2));
            prop_assert_eq!(all, whole);
        }
    }
}
