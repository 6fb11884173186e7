//! Measuring while running: samples of the switches' memory, histograms of queue lengths, and whether anything moves.

use crate::run::{Class, Core};
use crate::setup::SeriesSetup;
use crate::topology::Kind;
use engine::{Event, Time};

impl Core {
    /// Samples the occupancy of every switch.
    pub(crate) fn sample(&mut self) {
        let Some(every) = self.probes.sample_every else { return };
        self.probes.samples.times.push(self.time.now + self.time.skipped);
        for (node, buffer) in self.switches.buffers.iter_mut().enumerate() {
            let mine = self.shard.as_ref().is_none_or(|shard| shard.owns(node as u32));
            if mine && self.setup.graph.nodes[node].kind == Kind::Switch {
                self.probes.samples.used[node].push(clip(buffer.used));
                self.probes.samples.watermarks[node].push(clip(buffer.take_watermark()));
            }
        }
        // A very long run keeps every other sample and goes on at half the pace.
        if self.probes.samples.times.len() >= MAX_SAMPLES {
            self.probes.sample_every = Some(Time(every.0 * 2));
            self.probes.samples.thin_out();
        }
        let pulse = self.pulse(true);
        self.progress.moved_before = pulse.moved;
        match &mut self.shard {
            // The shards must be asked together.
            Some(shard) => shard.pulse = Some((self.time.now, pulse)),
            None => _ = self.plan_sample(self.time.now, pulse),
        }
    }

    /// What there is to know when the next sample is planned.
    fn pulse(&self, rest: bool) -> Pulse {
        let moved = self.moved();
        // Looked for only where it could be.
        let still = rest && moved == self.progress.moved_before;
        // It may be in the future, where the next flow is.
        let long = self.time.now.saturating_sub(self.progress.last.1) > self.progress.patience;
        let look = rest && self.progress.gain_due(self.time.now);
        let flows = || 0..self.progress.next_flow as u32;
        Pulse {
            active: self.progress.active,
            planned: self.hosts.waiting.any_planned(),
            next_start: self.setup.flows.get(self.progress.next_flow).map(|flow| self.time.planned(flow.start)),
            moved,
            answers: self.progress.answers,
            at_rest: still && self.at_rest(),
            paced: still && long && flows().any(|flow| self.waits_for_its_rate(flow))
                || look && flows().any(|flow| self.is_paced(flow)),
            gained: if look { flows().map(|flow| self.gained(flow)).sum() } else { 0 },
            peak: self.switches.buffers.iter().map(|buffer| buffer.peak.max(buffer.watermark)).max().unwrap_or(0),
        }
    }

    /// Sets the time of the next sample, given how the whole fabric is.
    pub(crate) fn plan_sample(&mut self, now: Time, pulse: Pulse) -> Option<Time> {
        let every = self.probes.sample_every?;
        if let Some(patience) = &mut self.progress.gain_patience {
            patience.peak = patience.peak.max(pulse.peak);
        }
        if pulse.moved != self.progress.last.0 {
            self.progress.last = (pulse.moved, now);
        }
        if pulse.answers != self.progress.answered.0 {
            self.progress.answered = (pulse.answers, now);
        }
        let next = if pulse.active == 0 && pulse.planned {
            self.progress.last.1 = now;
            now + every
        } else if pulse.active > 0 {
            // Frames that renew a pause keep a deadlock busy, so it is recognised by how long it lasts.
            let idle = now - self.progress.last.1;
            let long = idle > self.progress.patience && !self.is_answered(now);
            let long = long || self.gains_nothing(now, pulse);
            let long = long && !pulse.paced && self.later_changes(now) == 0;
            if idle > Time::ZERO && pulse.at_rest || long {
                // Flows to come may go on where others are stuck.
                let Some(start) = pulse.next_start else {
                    self.progress.stuck = true;
                    return None;
                };
                let at = start.max(now + every);
                self.progress.last.1 = at;
                at
            } else {
                now + every
            }
        } else if let Some(start) = pulse.next_start {
            let at = start.max(now + every);
            self.progress.last.1 = at;
            at
        } else {
            return None;
        };
        self.time.events.push(Event::new(next, Event::LAST, Class::Sample as u8, 0));
        Some(next)
    }

    /// Whether ACKs that were made before everything else stopped have come in until lately: they may take long.
    fn is_answered(&self, now: Time) -> bool {
        let (patience, answered) = (self.progress.patience, self.progress.answered.1);
        // Those that come soon after the rest has stopped are the last of it, and no reason to wait for longer.
        let on_their_own = answered.saturating_sub(self.progress.last.1).0 > patience.0 / SOON;
        on_their_own && now.saturating_sub(answered) <= patience
    }

    /// Whether packets move, and no flow has come any further since this was last looked for.
    fn gains_nothing(&mut self, now: Time, pulse: Pulse) -> bool {
        if !self.progress.gain_due(now) {
            return false;
        }
        let before = std::mem::replace(&mut self.progress.gain, (pulse.gained, now));
        before.0 == pulse.gained && before.1 > Time::ZERO
    }

    /// How far the halves of a flow that are here have come.
    fn gained(&self, flow: u32) -> u64 {
        let spec = &self.setup.flows[flow as usize];
        let sender = &self.hosts.senders[flow as usize];
        let sent = if self.owns(spec.src.0) { sender.acked + sender.started() as u64 } else { 0 };
        let received = if self.owns(spec.dst.0) { self.hosts.receivers[flow as usize].expected } else { 0 };
        sent + received
    }

    /// Samples the chosen ports and flows.
    pub(crate) fn follow(&mut self) {
        let Some(setup) = &self.setup.measure.series else { return };
        let every = self.probes.series.every.unwrap_or(setup.every);
        self.probes.series.times.push(self.time.now);
        for &port in &setup.ports {
            let sent = self.sent_by_now(port as usize);
            self.probes.series.ports.push((self.ports[port as usize].queued, sent));
        }
        self.probes.series.flows.extend(setup.flows.iter().map(|&flow| self.hosts.receivers[flow.index()].expected));
        let columns = (setup.ports.len() * 2 + setup.flows.len()).max(1);
        let every = if self.probes.series.times.len() * columns < MAX_FOLLOWED { every } else { Time(every.0 * 2) };
        if self.probes.series.times.len() * columns >= MAX_FOLLOWED {
            self.probes.series.thin_out(setup.ports.len(), setup.flows.len());
        }
        self.probes.series.every = Some(every);
        let pulse = self.pulse(false);
        match &mut self.shard {
            Some(shard) => shard.beat = Some((self.time.now, pulse)),
            None => _ = self.plan_series(self.time.now, pulse),
        }
    }

    /// Sets the next time to sample what is followed closely, given how the whole fabric is.
    pub(crate) fn plan_series(&mut self, now: Time, pulse: Pulse) -> Option<Time> {
        let every = self.probes.series.every?;
        let next = match pulse.next_start {
            _ if pulse.active > 0 || pulse.planned => now + every,
            Some(start) => start.max(now + every),
            None => return None,
        };
        self.time.events.push(Event::new(next, Event::LAST, Class::Series as u8, 0));
        Some(next)
    }

    /// A number that grows whenever a packet is made or delivered.
    pub(crate) fn moved(&self) -> u64 {
        self.counts.injected.0 + self.counts.delivered.0 + self.counts.acks
    }

    /// How many changes of links are still to come.
    fn later_changes(&self, now: Time) -> usize {
        self.progress.changes.iter().filter(|(time, _)| *time > now).count()
    }

    /// Adds the present queue lengths to the monitor's histograms.
    pub(crate) fn monitor(&mut self) {
        let Some(m) = self.setup.measure.queue_monitor else { return };
        for (port, counts) in self.probes.monitor.iter_mut().enumerate() {
            let p = &self.ports[port];
            if p.host {
                continue;
            }
            let first = p.first_queue as usize;
            let bytes: u64 =
                self.switches.queues[first..first + self.switches.per_port as usize].iter().map(|q| q.bytes).sum();
            let kilobytes = ((bytes + self.switches.leaked_at(port as u32)) / 1000) as usize;
            if counts.len() <= kilobytes {
                counts.resize(kilobytes + 1, 0);
            }
            counts[kilobytes] += 1;
        }
        if self.time.now.0.is_multiple_of(m.keep.0) {
            self.probes.kept.push((self.time.now, self.probes.monitor.clone()));
        }
        if self.time.now < m.to {
            self.time.events.push(Event::new(self.time.now + m.every, 0, Class::Monitor as u8, 0));
        }
    }
}

/// The state of a fabric, or of a shard of it, at a sampling instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pulse {
    active: u32,
    planned: bool,
    next_start: Option<Time>,
    /// Packets sent, received and acknowledged so far.
    moved: u64,
    /// ACKs and NACKs that reached their senders so far.
    answers: u64,
    /// Nothing has moved since the last sample, nor will.
    at_rest: bool,
    /// Nothing has moved, or no flow has come any further, for long, and a sender waits for its rate alone: it will go on.
    paced: bool,
    /// How far flows have come, where that is looked for.
    gained: u64,
    /// What the fullest node has held up to the sample.
    peak: u64,
}

impl Pulse {
    /// Of two shards together.
    pub(crate) fn and(self, other: Pulse) -> Pulse {
        Pulse {
            active: self.active + other.active,
            planned: self.planned || other.planned,
            next_start: self.next_start.into_iter().chain(other.next_start).min(),
            moved: self.moved + other.moved,
            answers: self.answers + other.answers,
            at_rest: self.at_rest && other.at_rest,
            paced: self.paced || other.paced,
            gained: self.gained + other.gained,
            peak: self.peak.max(other.peak),
        }
    }
}

/// Within this part of the patience with a fabric, ACKs that come are the last of what has stopped.
const SOON: u64 = 64;
/// Samples kept of each switch.
const MAX_SAMPLES: usize = 1 << 17;
/// Numbers kept of what is followed closely.
const MAX_FOLLOWED: usize = 1 << 24;

/// Occupancy of the switches at the sampling instants, in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// The instants.
    pub times: Vec<Time>,
    /// By node, what it held then; nothing for hosts.
    pub used: Vec<Vec<u32>>,
    /// By node, the most it held since the instant before.
    pub watermarks: Vec<Vec<u32>>,
}

impl Samples {
    pub(crate) fn new(nodes: usize) -> Samples {
        Samples { times: Vec::new(), used: vec![Vec::new(); nodes], watermarks: vec![Vec::new(); nodes] }
    }

    /// Keeps every other instant.
    fn thin_out(&mut self) {
        let kept = (self.times.len()).div_ceil(2);
        let at = |place: usize| place * 2;
        self.times = (0..kept).map(|place| self.times[at(place)]).collect();
        for used in self.used.iter_mut().filter(|used| !used.is_empty()) {
            *used = (0..kept).map(|place| used[at(place)]).collect();
        }
        // What an instant that goes had seen, the next one that stays has seen too.
        for marks in self.watermarks.iter_mut().filter(|marks| !marks.is_empty()) {
            *marks = (0..kept).map(|place| marks[at(place)].max(marks[at(place).saturating_sub(1)])).collect();
        }
    }
}

/// Chosen ports and flows at the instants of their own sampling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The instants.
    pub times: Vec<Time>,
    /// For each instant and port in turn: bytes waiting, and bytes sent so far.
    pub ports: Vec<(u64, u64)>,
    /// For each instant and flow in turn: bytes received in order so far.
    pub flows: Vec<u64>,
    /// Time between samples now.
    every: Option<Time>,
}

impl Series {
    /// Takes over the columns of another shard.
    pub(crate) fn absorb(
        &mut self,
        other: &Series,
        setup: &SeriesSetup,
        port: impl Fn(u32) -> bool,
        flow: impl Fn(u32) -> bool,
    ) {
        let columns = self.ports.iter_mut().zip(&other.ports).zip(setup.ports.iter().cycle());
        columns.filter(|(_, number)| port(**number)).for_each(|((mine, theirs), _)| *mine = *theirs);
        let columns = self.flows.iter_mut().zip(&other.flows).zip(setup.flows.iter().cycle());
        columns.filter(|(_, number)| flow(number.0)).for_each(|((mine, theirs), _)| *mine = *theirs);
    }

    /// Keeps every other instant.
    fn thin_out(&mut self, ports: usize, flows: usize) {
        let kept = self.times.len().div_ceil(2);
        self.times = (0..kept).map(|row| self.times[row * 2]).collect();
        let every_other = |row: usize, width: usize| row * 2 * width..(row * 2 + 1) * width;
        self.ports = (0..kept).flat_map(|row| self.ports[every_other(row, ports)].to_vec()).collect();
        self.flows = (0..kept).flat_map(|row| self.flows[every_other(row, flows)].to_vec()).collect();
    }
}

/// As many bytes as fit in a sample.
fn clip(bytes: u64) -> u32 {
    bytes.min(u32::MAX as u64) as u32
}
