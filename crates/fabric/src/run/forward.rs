//! Fast-forward: what is steady is not simulated again.
//!
//! A run that may skip is an exact run of another, shorter scenario. Nothing that nodes, packets and controllers know is changed: their clock goes on
//! without a gap. A *jump* happens at an instant to which all nodes have come. It makes every flow shorter by what it would have sent meanwhile, lets
//! all that is still to come from outside (starts, the stop) come sooner, and adds to the books what would have been counted. No scheme knows of it, and every
//! audit holds. Instants of results are those of the longer scenario: `Forward::real`.
//!
//! What is skipped repeats exactly, or is steady: flows whose rates are the same in one window as in the one before go on at these rates until one of them is near its
//! end, or until something comes from outside (`steady`).
//!
//! **The error is measured.** After every jump that is not exact, the same is simulated packet by packet. What was skipped lies between what was simulated before and after it, and half of what these
//! differ by is part of the result: [`Forwarded`]. What no check would show is not skipped: what congestion control keeps must not move on by and by, and no flow may come while others
//! are under way of which something was estimated.

mod state;
mod steady;

use super::{Class, Core, Network};
use crate::axes::flow_control::FlowControl;
use crate::axes::{Counter, Merge};
use crate::probe::Counts;
use crate::setup::Setup;
use engine::{Event, Time};
use std::collections::HashMap;
use steady::{Books, Steady, Window};

/// What was skipped of a run, and how far off its result is by that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forwarded {
    /// The error that was asked for, as a share.
    pub within: f64,
    /// How often something was skipped.
    pub jumps: u64,
    /// How much of the run's time was skipped.
    pub skipped: Time,
    /// Of that, how much is exact: the state of everything had come again.
    pub repeated: Time,
    /// Of all, how much could not be checked afterwards, because flows began or ended too soon.
    pub unchecked: Time,
    /// Flows that began while others were under way of which something was estimated: what becomes of the error with them is not known.
    pub followers: u64,
    /// By flow that was skipped in part: by how much of its completion time what was assumed is off. All of what could not be checked is.
    pub fct: Vec<f64>,
    /// By jump that is not exact: by how much of it the throughput of all flows is.
    pub throughput: Vec<f64>,
}

/// What is skipped, and what is known of what may be.
pub(crate) struct Forward {
    within: f64,
    /// Time between two looks.
    every: Time,
    /// Instants of the simulation after which time had been skipped, and how much by then.
    jumps: Vec<(Time, Time)>,
    /// How many flows had begun, and had ended, at the last look.
    census: (usize, usize),
    /// When that last changed, as the longer scenario has it.
    since: Time,
    steady: Steady,
    /// Something was estimated since flows are under way.
    estimated: bool,
    /// By flow.
    longer: HashMap<u32, Longer>,
    extra: Extra,
    about: Forwarded,
}

/// A flow that was skipped in part.
#[derive(Default)]
struct Longer {
    /// By how many bytes it is longer than what is simulated of it.
    bytes: u64,
    /// By how much of its time what was assumed is off, in picoseconds: the sum over all jumps, none of which makes up for another.
    off: f64,
    /// By how much of itself what its congestion control knows would have moved on.
    moved: f64,
    /// By how much of itself its rate differed from one window to another at the most, and since when that counts: after a jump by rates all that follows is another run of the same,
    /// and differs from it by as much.
    differ: f64,
    since: Option<Time>,
}

/// What would have been counted in what was skipped.
#[derive(Default)]
struct Extra {
    counts: Counts,
    /// By port.
    sent: Vec<u64>,
    counters: HashMap<&'static str, u64>,
}

impl Forward {
    /// For a run that may skip; none for others.
    pub(super) fn new(setup: &Setup) -> Option<Box<Forward>> {
        let within = setup.within?;
        let packet = setup.clock.duration(setup.max_packet(), setup.top_rate()).0.max(1);
        let every = (setup.longest_rtt().0 * 3 / 2).max(FEWEST * packet).div_ceil(packet) * packet;
        Some(Box::new(Forward {
            within,
            every: Time(every),
            jumps: Vec::new(),
            census: (0, 0),
            since: Time::ZERO,
            steady: Steady::default(),
            estimated: false,
            longer: HashMap::new(),
            extra: Extra { sent: vec![0; setup.graph.links.len() * 2], ..Extra::default() },
            about: Forwarded { within, ..Forwarded::default() },
        }))
    }

    /// What is simulated for less time says nothing.
    fn least(&self) -> Time {
        Time(4 * self.every.0)
    }

    /// Lets what is known of the rates be put down.
    fn with_books(&mut self, payload: f64, act: impl FnOnce(&mut Steady, &mut Books<'_>)) {
        let least = self.least();
        act(&mut self.steady, &mut Books { longer: &mut self.longer, about: &mut self.about, payload, least });
    }

    /// When something happened that was simulated at `time`.
    fn real(&self, time: Time) -> Time {
        if time == Time::MAX {
            return time;
        }
        let before = self.jumps.partition_point(|(at, _)| *at < time);
        before.checked_sub(1).map_or(time, |last| time + self.jumps[last].1)
    }
}

impl Core {
    /// Plans the first look, in runs that may skip.
    pub(super) fn plan_first_look(&mut self) {
        let (Some(forward), Some(first)) = (&self.forward, self.setup.flows.first()) else { return };
        let at = first.start + forward.every;
        self.time.events.push(Event::new(at, Event::LAST, Class::Forward as u8, 0));
    }

    /// Skips so much time from now on: what comes from outside comes sooner.
    fn jump(&mut self, forward: &mut Forward, by: Time) {
        self.time.skipped += by;
        forward.jumps.push((self.time.now, self.time.skipped));
        forward.about.jumps += 1;
        forward.about.skipped += by;
        self.replan_starts();
    }

    /// When something comes from outside next: the start of a flow, or the stop. In the time of the simulation.
    fn next_from_outside(&self) -> Time {
        let start = self.setup.flows.get(self.first_to_start()).map_or(Time::MAX, |flow| self.time.planned(flow.start));
        start.min(self.time.planned(self.setup.stop))
    }

    /// Samples of the memory for a time that was skipped: those of the time before, over and over.
    fn repeat_samples(&mut self, of: Time, by: Time) {
        let Some(every) = self.probes.sample_every.filter(|every| *every > Time::ZERO) else { return };
        let end = self.time.now + self.time.skipped;
        let begin = end.saturating_sub(by);
        let samples = &mut self.probes.samples;
        let last = samples.times.len();
        let first = samples.times.partition_point(|time| *time < begin.saturating_sub(of)).min(last.saturating_sub(1));
        if first == last {
            return;
        }
        // No more than are worth their memory: what is many times as long has them farther apart.
        let count = (by.0 / every.0).min(MOST_SAMPLES);
        for number in 0..count {
            let from = first + number as usize % (last - first);
            samples.times.push(begin + Time((by.0 as u128 * (number + 1) as u128 / (count + 1) as u128) as u64));
            for column in samples.used.iter_mut().chain(&mut samples.watermarks).filter(|column| column.len() > from) {
                column.push(column[from]);
            }
        }
    }

    /// Makes the books those of the longer scenario. The run is over.
    pub(super) fn unwind(&mut self) -> Option<Forwarded> {
        let mut forward = self.forward.take()?;
        forward.with_books(self.setup.nic.payload as f64, Steady::close);
        let now = self.time.now;
        for flow in 0..self.setup.flows.len() {
            self.hosts.holds[flow].turn(now, false);
            if self.hosts.senders[flow].started() && self.hosts.senders[flow].nic != crate::packet::NONE {
                let paused = self.class_paused(flow as u32, now);
                self.hosts.standstills[flow].turn(paused, false);
            }
        }
        self.probes.breadth.settle(now);
        for (&flow, longer) in &forward.longer {
            self.hosts.senders[flow as usize].size += longer.bytes;
            self.hosts.receivers[flow as usize].expected += longer.bytes;
        }
        for flow in 0..self.setup.flows.len() {
            let (s, r) = (&mut self.hosts.senders[flow], &mut self.hosts.receivers[flow]);
            s.finished = forward.real(s.finished);
            r.finished = forward.real(r.finished);
            self.hosts.injected[flow] = forward.real(self.hosts.injected[flow]);
        }
        self.hosts.waiting.each_begun(|begun| *begun = forward.real(*begun));
        self.time.now = forward.real(now);
        for (&flow, longer) in &forward.longer {
            let start = self.hosts.waiting.begun(flow as usize, self.setup.flows[flow as usize].start);
            let end = self.hosts.receivers[flow as usize].finished.min(self.time.now);
            let took = end.saturating_sub(start).0.max(1) as f64;
            let after = longer.since.map_or(0, |since| end.saturating_sub(since).0) as f64;
            forward.about.fct.push((longer.off + longer.differ * after) / took + longer.moved);
        }
        forward.about.fct.sort_by(f64::total_cmp);
        self.counts.add(&forward.extra.counts);
        for (port, sent) in self.ports.iter_mut().zip(&forward.extra.sent) {
            port.tx_bytes += sent;
        }
        self.counters_skipped = std::mem::take(&mut forward.extra.counters);
        Some(forward.about)
    }

    /// Adds what would have been counted in what was skipped.
    pub(super) fn with_skipped(&self, mut counters: Vec<Counter>) -> Vec<Counter> {
        for counter in counters.iter_mut().filter(|counter| counter.merge == Merge::Sum) {
            counter.value += self.counters_skipped.get(counter.name).copied().unwrap_or(0);
        }
        counters
    }
}

impl<F: FlowControl> Network<F> {
    /// All nodes have come to this instant: is there something to skip?
    #[inline(never)]
    pub(super) fn look_ahead(&mut self) {
        let Some(mut forward) = self.core.forward.take() else { return };
        self.core.progress.next_flow = self.core.first_to_start();
        let next = self.core.time.now + forward.every;
        self.look(&mut forward);
        let core = &mut self.core;
        core.forward = Some(forward);
        let idle = core.progress.active == 0 && !core.hosts.waiting.any_planned();
        if let Some(forward) = core.forward.as_mut().filter(|_| idle) {
            forward.estimated = false;
        }
        let start = core.setup.flows.get(core.first_to_start()).map(|flow| core.time.planned(flow.start));
        let next = match start {
            _ if !idle => next,
            Some(start) => next.max(start + Time(1)),
            None => return,
        };
        core.time.events.push(Event::new(next, Event::LAST, Class::Forward as u8, 0));
    }

    fn look(&mut self, forward: &mut Forward) {
        let (ended, active) = (self.core.progress.finished.len(), self.core.progress.active as usize);
        let census = (ended + active, ended);
        let before = std::mem::replace(&mut forward.census, census);
        if census != before {
            if forward.estimated {
                forward.about.followers += (census.0 - before.0) as u64;
            }
            forward.since = self.core.time.now + self.core.time.skipped;
            forward.with_books(self.core.setup.nic.payload as f64, Steady::forget);
        } else if active > 0 {
            self.skip_steady(forward);
        }
    }

    /// Adds to the books what a stretch of time would have counted that is `share` of a window.
    fn extrapolate(&mut self, forward: &mut Forward, from: &Window, to: &Window, share: f64) {
        let core = &mut self.core;
        let scaled = |a: u64, b: u64| (b.saturating_sub(a) as f64 * share).round() as u64;
        for (extra, (a, b)) in forward.extra.sent.iter_mut().zip(from.sent.iter().zip(&to.sent)) {
            *extra += scaled(*a, *b);
        }
        forward.extra.counts.add(&to.counts.less(&from.counts).scaled(share));
        for (port, (a, b)) in core.ports.iter_mut().zip(from.paused.iter().zip(&to.paused)) {
            port.pause_total += Time(scaled(a.0, b.0));
        }
        core.probes.breadth.stretch(&from.breadth, &to.breadth, share);
        for (&(flow, _, a), &(_, _, b)) in from.flows.iter().zip(&to.flows) {
            core.hosts.holds[flow as usize].stretch(Time(scaled(a.0, b.0)));
        }
        for (a, b) in from.counters.iter().zip(&to.counters).filter(|(a, b)| a.merge == Merge::Sum && a.name == b.name)
        {
            *forward.extra.counters.entry(a.name).or_default() += scaled(a.value, b.value);
        }
    }

    /// What the schemes counted so far.
    fn all_counters(&self) -> Vec<Counter> {
        let nodes: Vec<&F::Node> = self.nodes.iter().collect();
        let mut all = self.scheme.counters(&nodes);
        all.extend(self.core.hosts.control_counters());
        all.extend(self.transport.counters());
        all.extend(self.core.switches.counters());
        all
    }
}

/// The fewest packet times between two looks.
const FEWEST: u64 = 48;
/// The most samples for a time that was skipped.
const MOST_SAMPLES: u64 = 1_000;
