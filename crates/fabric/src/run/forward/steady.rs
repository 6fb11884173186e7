//! Flows that go on as they did.
//!
//! **Exactly**: where the state of everything comes again ([`super::state`]), so does all that followed, and whole periods are skipped.
//!
//! **By rates**, where they are the same in one window as in the one before, and nothing that congestion control knows moves on by and by. Nodes do not know of a jump, so that what is simulated
//! after it goes on from what was before: no look at it tells what would have become of a slow change in the time between. So all that is simulated from the beginning or end of a flow to the next counts as one stretch: windows in
//! it are twice as long every time, and by what their rates differ they are taken to go on differing, at the same pace, in all that is skipped. That, with a packet for what single windows cannot show, is the error; it decides how much
//! may be skipped. With every window, what was skipped is estimated anew.

use super::{Forward, Forwarded};
use crate::axes::Counter;
use crate::axes::congestion_control::Known;
use crate::axes::flow_control::FlowControl;
use crate::probe::{Counts, Paused};
use crate::run::{Class, Core, Network};
use engine::{Event, Time};
use std::collections::HashMap;

/// How things stand at the beginning or the end of a window.
pub(super) struct Window {
    pub(super) time: Time,
    /// The flows under way, what each has received, and for how long it was held.
    pub(super) flows: Vec<(u32, u64, Time)>,
    /// By node, the memory in use.
    used: Vec<u64>,
    /// By port.
    pub(super) sent: Vec<u64>,
    pub(super) paused: Vec<Time>,
    pub(super) breadth: Paused,
    pub(super) counts: Counts,
    pub(super) counters: Vec<Counter>,
}

impl Window {
    fn has_the_flows_of(&self, other: &Window) -> bool {
        self.flows.iter().map(|flow| flow.0).eq(other.flows.iter().map(|flow| flow.0))
    }
}

/// What congestion control knows of the flows, on average over each quarter of a window: values, and what they are compared with.
#[derive(Clone, Default)]
struct Levels([(u32, Vec<(f64, f64)>); 4]);

impl Levels {
    fn add(&mut self, quarter: usize, levels: &[(f64, f64)]) {
        let (count, sums) = &mut self.0[quarter.min(3)];
        if *count == 0 {
            sums.clear();
            sums.resize(levels.len(), (0.0, 0.0));
        }
        *count += 1;
        sums.iter_mut().zip(levels).for_each(|(sum, level)| *sum = (sum.0 + level.0, sum.1 + level.1));
    }

    /// Two of its quarters as one.
    fn both(&self, quarter: usize) -> (u32, Vec<(f64, f64)>) {
        let ((m, a), (n, b)) = (&self.0[quarter], &self.0[quarter + 1]);
        match (m, n) {
            (_, 0) => (*m, a.clone()),
            (0, _) => (*n, b.clone()),
            _ => (m + n, a.iter().zip(b).map(|(a, b)| (a.0 + b.0, a.1 + b.1)).collect()),
        }
    }

    /// By how much of themselves values move on from one half to the other: those that do so by and by. Others go up and down, and then so do the rates, which can be
    /// seen. None where too little is known.
    fn moves(&self) -> Option<Vec<f64>> {
        let [a, b, c, d] = &self.0;
        let known = |(count, sums): &(u32, Vec<(f64, f64)>)| *count > 0 && sums.len() == a.1.len();
        if ![a, b, c, d].into_iter().all(known) {
            return None;
        }
        let moves = |level: usize| {
            let mean = |(count, sums): &(u32, Vec<(f64, f64)>)| sums[level].0 / *count as f64;
            let scale = |(count, sums): &(u32, Vec<(f64, f64)>)| sums[level].1 / *count as f64;
            let values = [mean(a), mean(b), mean(c), mean(d)];
            let steps = [values[1] - values[0], values[2] - values[1], values[3] - values[2]];
            let change = (values[2] + values[3] - values[0] - values[1]) / 2.0;
            let straight = (steps[1] - steps[0]).abs() + (steps[2] - steps[1]).abs() <= change.abs() / 2.0;
            let scale = scale(a).max(scale(d)).max(f64::MIN_POSITIVE);
            let one_way = steps.iter().all(|step| *step > 0.0) || steps.iter().all(|step| *step < 0.0);
            if one_way && straight { change.abs() / scale } else { 0.0 }
        };
        Some((0..a.1.len()).map(moves).collect())
    }
}

/// What was skipped by rates since flows began or ended.
struct Skipped {
    flows: Vec<u32>,
    /// How much time.
    time: Time,
    /// How much of it by the last jump, if nothing was simulated since that says something of it.
    unchecked: Time,
    /// By flow: its rate, how many packets of it were skipped, and by how much of that time it is off.
    each: Vec<Estimate>,
    /// How far apart the windows were from which that is known.
    apart: Time,
    /// What flows had received at the last jump, and at the last look.
    then: (Time, Vec<u64>),
    now: (Time, Vec<u64>),
}

#[derive(Clone, Copy)]
struct Estimate {
    rate: f64,
    packets: i64,
    off: f64,
}

impl Skipped {
    /// What was simulated since the last jump, if it is enough: flows that differ from what was assumed were off by as much at the least.
    fn check(&mut self, payload: f64, least: Time) {
        let span = self.now.0.saturating_sub(self.then.0);
        if self.unchecked == Time::ZERO || span < least {
            return;
        }
        for (each, (a, b)) in self.each.iter_mut().zip(self.then.1.iter().zip(&self.now.1)) {
            let received = b.saturating_sub(*a) as f64;
            // Either end of it may be in the middle of a packet.
            let differ = (received / span.0 as f64 - each.rate).abs() - 2.0 * payload / span.0 as f64;
            each.off = each.off.max(differ.max(0.0) / each.rate);
        }
        self.unchecked = Time::ZERO;
    }
}

/// A state that came again.
struct Cycle {
    digest: u64,
    from: Window,
    period: Time,
}

/// What is known of the rates.
#[derive(Default)]
pub(super) struct Steady {
    /// Looks since flows began or ended.
    looks: u32,
    /// The last three windows whose number is a power of two.
    kept: Vec<Window>,
    /// What congestion control knew between the last two looks whose number is a power of two, and since.
    levels: [Levels; 2],
    skipped: Option<Skipped>,
    /// States since flows began or ended, and when they were.
    seen: HashMap<u64, Time>,
    cycle: Option<Cycle>,
    /// How far ahead congestion control plans: what is shorter does not show what its timers do.
    ahead: Time,
    /// Packet-hops when the last of them was looked at.
    hops: u64,
    /// What repeats was skipped; or nothing did for long.
    over: bool,
}

impl Steady {
    /// What was known is of other flows.
    pub(super) fn forget(&mut self, about: &mut Books<'_>) {
        self.close(about);
        *self = Steady { hops: self.hops, ..Steady::default() };
    }

    /// Puts down how far off is what was skipped.
    pub(super) fn close(&mut self, books: &mut Books<'_>) {
        let Some(mut skipped) = self.skipped.take() else { return };
        skipped.check(books.payload, Time(skipped.apart.0 / 8).max(books.least));
        books.about.unchecked += skipped.unchecked;
        let checked = (skipped.time - skipped.unchecked).0 as f64;
        for (&flow, each) in skipped.flows.iter().zip(&skipped.each) {
            books.longer.entry(flow).or_default().off += each.off * checked + skipped.unchecked.0 as f64;
        }
        let all: f64 = skipped.each.iter().map(|each| each.rate).sum();
        let off: f64 = skipped.each.iter().map(|each| each.rate * each.off).sum();
        books.about.throughput.push((off / all.max(f64::MIN_POSITIVE)).min(1.0));
    }
}

/// Where it is put down.
pub(super) struct Books<'a> {
    pub(super) longer: &'a mut HashMap<u32, super::Longer>,
    pub(super) about: &'a mut Forwarded,
    /// Bytes of a packet.
    pub(super) payload: f64,
    /// What is shorter says nothing.
    pub(super) least: Time,
}

/// How fast a flow is.
#[derive(Clone, Copy)]
struct Rate {
    /// In bytes per picosecond.
    each: f64,
    /// Of how many packets that is known.
    packets: f64,
}

/// What windows, one after the other, say of the rates.
struct Found {
    /// Of each flow.
    rates: Vec<Rate>,
    /// By how much of itself each moves from one window to the next, which are so far apart; at the least by what half of them do, and by a packet.
    differ: Vec<f64>,
    apart: Time,
    /// The same of what congestion control knows, flow by flow.
    moves: Vec<f64>,
    /// They are the same, as far as can be seen.
    steady: bool,
}

impl Found {
    /// By how much of the time the flows are off, if so much is skipped in all.
    fn off(&self, place: usize, skipped: f64) -> f64 {
        self.differ[place] * skipped / (2.0 * self.apart.0.max(1) as f64)
    }

    /// The most that may be skipped in all: half of the flows, and 99 in 100, are to stay well within what was asked for, also with what follows, which is off by as much as windows differ.
    fn most(&self, within: f64) -> f64 {
        let mut sorted = self.differ.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| sorted[((sorted.len() as f64 * share) as usize).min(sorted.len() - 1)];
        let solve = |differ: f64, share: f64| {
            (share - differ).max(0.0) * 2.0 * self.apart.0 as f64 / differ.max(f64::MIN_POSITIVE)
        };
        solve(at(0.5), 0.8 * within).min(solve(at(0.99), 2.0 * within))
    }
}

/// Whether rates are the same, as far as that matters: single flows may differ by more than most.
fn alike(before: &[Rate], after: &[Rate], within: f64) -> bool {
    let off = |(a, b): (&Rate, &Rate)| (a.each - b.each).abs() / a.each.max(b.each).max(f64::MIN_POSITIVE);
    let mut each: Vec<f64> = before.iter().zip(after).map(off).collect();
    each.sort_by(f64::total_cmp);
    let at = |share: f64| each.get(((each.len() as f64 * share) as usize).min(each.len().saturating_sub(1)));
    at(0.5).is_none_or(|off| *off <= within)
        && at(0.99).is_none_or(|off| *off <= 3.0 * within)
        && all_together(before, after) <= within / 2.0
}

/// By how much the rates of all flows together differ.
fn all_together(before: &[Rate], after: &[Rate]) -> f64 {
    let sum = |rates: &[Rate]| rates.iter().map(|rate| rate.each).sum::<f64>();
    let (a, b) = (sum(before), sum(after));
    (a - b).abs() / a.max(b).max(f64::MIN_POSITIVE)
}

/// The most that something of each flow moves on, of several things of each.
fn by_flow(moves: Vec<f64>, flows: usize) -> Vec<f64> {
    let each = (moves.len() / flows.max(1)).max(1);
    moves.chunks(each).map(|moves| moves.iter().copied().fold(0.0, f64::max)).collect()
}

impl Core {
    /// The flows under way, NIC by NIC.
    pub(super) fn under_way(&self) -> impl Iterator<Item = u32> {
        let flows = self.hosts.nics.iter().flat_map(|nic| nic.flows.iter().copied());
        flows.filter(|flow| !self.hosts.senders[*flow as usize].done())
    }

    /// What congestion control knows of the flows under way, as many numbers of each, and how far ahead it plans; none if it does not say.
    fn levels(&self) -> Option<(Vec<(f64, f64)>, Time)> {
        let control = self.hosts.control.known()?;
        let (mut levels, mut ahead) = (Vec::new(), Time::ZERO);
        let until = |time: Time| if time == Time::MAX { Time::ZERO } else { time.saturating_sub(self.time.now) };
        for flow in self.under_way() {
            let s = &self.hosts.senders[flow as usize];
            // Whether there is a window does not change.
            let window = if s.window == u64::MAX { 0.0 } else { s.window as f64 };
            for value in [window, s.rate.0 as f64] {
                levels.push((value, value.max(1.0)));
            }
            ahead = ahead.max(until(s.timer));
            control.recall(s.slot, self.time.now, &mut |known| match known {
                Known::Level(value, scale) => levels.push((value, scale)),
                Known::Instant(time) => ahead = ahead.max(until(time)),
                _ => {}
            });
        }
        Some((levels, ahead))
    }

    /// Rates over a window, in bytes per picosecond. Flows of one NIC that have sent the same, but for a packet or two, take turns there: each has the mean.
    fn rates(&self, from: &Window, to: &Window, within: f64) -> Vec<Rate> {
        let payload = self.setup.nic.payload as f64;
        let span = (to.time - from.time).0 as f64;
        let bytes: Vec<f64> = from.flows.iter().zip(&to.flows).map(|(a, b)| (b.1 - a.1) as f64).collect();
        let (mut begin, mut rates) = (0, Vec::with_capacity(bytes.len()));
        let nic = |place: usize| self.hosts.senders[from.flows[place].0 as usize].nic;
        while begin < bytes.len() {
            let end = (begin..bytes.len()).find(|&place| nic(place) != nic(begin)).unwrap_or(bytes.len());
            let group = &bytes[begin..end];
            let (least, most) = group.iter().fold((f64::MAX, 0.0f64), |(a, b), &x| (a.min(x), b.max(x)));
            let mean = group.iter().sum::<f64>() / group.len() as f64;
            let together = most - least <= (2.0 * payload).max(within * mean);
            let packets = if together { mean * group.len() as f64 } else { least } / payload;
            for &bytes in group.iter() {
                rates.push(Rate { each: if together { mean } else { bytes } / span, packets });
            }
            begin = end;
        }
        rates
    }

    /// Compares windows, each as long as the one before or twice as long; none if they are not of the same flows.
    fn compare(&self, [z, a, b, c]: [&Window; 4], moves: Vec<f64>, within: f64) -> Option<Found> {
        if c.flows.is_empty() || ![z, a, b].iter().all(|window| window.has_the_flows_of(c)) {
            return None;
        }
        let first = self.rates(z, a, within);
        let (before, after) = (self.rates(a, b, within), self.rates(b, c, within));
        let rates = self.rates(a, c, within);
        let off = |a: &Rate, b: &Rate, mean: f64| (a.each - b.each).abs() / mean.max(f64::MIN_POSITIVE);
        let differ = |place: usize| {
            let mean = rates[place].each;
            off(&before[place], &after[place], mean).max(off(&first[place], &before[place], mean) / 2.0)
        };
        let differ: Vec<f64> = (0..rates.len()).map(differ).collect();
        let mut sorted = differ.clone();
        sorted.sort_by(f64::total_cmp);
        let half = sorted[sorted.len() / 2];
        // Two windows may happen to be more alike than most.
        let floor = |(differ, after): (f64, &Rate)| CAREFUL * differ.max(half) + 1.0 / after.packets.max(1.0);
        let differ = differ.into_iter().zip(&after).map(floor).collect();
        let steady = alike(&before, &after, within) && after.iter().all(|rate| rate.packets >= 0.5 / within);
        Some(Found { rates, differ, apart: b.time - a.time, moves: by_flow(moves, c.flows.len()), steady })
    }

    /// Whether marks are drawn. What comes of one cannot be told from what came of others, nor whether there would have been one: completion
    /// times move by several per cent with it.
    fn draws_marks(&self) -> bool {
        self.setup.ports.iter().any(|port| port.ecn.is_some_and(|ecn| ecn.min < ecn.max))
    }

    /// How long memory may go on filling or emptying as it did, before that is no longer the same state.
    fn until_full(&self, a: &Window, b: &Window, c: &Window) -> Time {
        let room = self.setup.top_rate().bytes_over(self.setup.longest_rtt()).max(16 * self.setup.max_packet());
        let span = (c.time - b.time).0 as f64;
        let mut time = f64::MAX;
        for (node, (b, c)) in b.used.iter().zip(&c.used).enumerate() {
            let (first, second) = (*b as i64 - a.used[node] as i64, *c as i64 - *b as i64);
            if first.signum() == second.signum() && first != 0 {
                time = time.min(room as f64 / first.abs().min(second.abs()) as f64 * span);
            }
        }
        Time(time.min(u64::MAX as f64 / 4.0) as u64)
    }

    /// Whether a flow is sending new bytes, and has many more.
    fn goes_on_sending(&self, flow: u32) -> bool {
        let s = &self.hosts.senders[flow as usize];
        s.next == s.high && s.size - s.high > 4 * self.setup.nic.payload as u64
    }

    /// Makes a flow shorter by so many packets, or longer.
    fn shorten(&mut self, forward: &mut Forward, flow: u32, packets: i64) {
        let payload = self.setup.nic.payload as i64;
        let s = &mut self.hosts.senders[flow as usize];
        s.size = s.size.saturating_add_signed(-packets * payload);
        let longer = forward.longer.entry(flow).or_default();
        longer.bytes = longer.bytes.saturating_add_signed(packets * payload);
        let counts = &mut forward.extra.counts;
        for volume in [&mut counts.injected, &mut counts.delivered] {
            let more = (volume.0.saturating_add_signed(packets), volume.1.saturating_add_signed(packets * payload));
            *volume = more;
        }
    }
}

impl<F: FlowControl> Network<F> {
    fn window(&self) -> Window {
        let core = &self.core;
        let now = core.time.now;
        let flow = |flow: u32| {
            (flow, core.hosts.receivers[flow as usize].expected, core.hosts.holds[flow as usize].until(now))
        };
        let paused = |port: &crate::port::Port| {
            port.pause_total + if port.paused != 0 { now - port.pause_start } else { Time::ZERO }
        };
        Window {
            time: now,
            flows: core.under_way().map(flow).collect(),
            used: core.switches.buffers.iter().map(|buffer| buffer.used).collect(),
            sent: core.ports.iter().map(|port| port.tx_bytes).collect(),
            paused: core.ports.iter().map(paused).collect(),
            breadth: core.probes.breadth.paused(now),
            counts: core.counts.clone(),
            counters: self.all_counters(),
        }
    }

    /// No flow has begun or ended since the last look.
    pub(super) fn skip_steady(&mut self, forward: &mut Forward) {
        forward.steady.looks += 1;
        if let Some(skipped) = &mut forward.steady.skipped {
            let received = |flow: &u32| self.core.hosts.receivers[*flow as usize].expected;
            skipped.now = (self.core.time.now, skipped.flows.iter().map(received).collect());
        } else if !forward.steady.over && self.skip_what_repeats(forward) {
            return;
        }
        if !self.keep_levels(forward) {
            return;
        }
        let looks = forward.steady.looks;
        if looks.is_power_of_two() {
            let window = self.window();
            let kept = &mut forward.steady.kept;
            if kept.len() == 3 {
                kept.remove(0);
            }
            kept.push(window);
            return;
        }
        let (third, rest) = (looks / 3, looks % 3);
        if rest != 0 || !third.is_power_of_two() || third < PATIENT || forward.steady.kept.len() < 3 {
            return;
        }
        let [before, since] = &forward.steady.levels;
        let quarters = [before.both(0), before.both(2), since.0[0].clone(), since.0[1].clone()];
        let Some(moves) = Levels(quarters).moves() else { return };
        let last = self.window();
        let [z, a, b] = &forward.steady.kept[..] else { return };
        let Some(found) = self.core.compare([z, a, b, &last], moves, forward.within) else { return };
        let until = self.core.until_full(a, b, &last);
        self.estimate_anew(forward, &found);
        if found.steady && found.apart.0 >= forward.steady.ahead.0.saturating_mul(TIMERS) && !self.core.draws_marks() {
            self.jump_on(forward, last, &found, until);
        }
    }

    /// Notes what congestion control knows. False if it does not say.
    fn keep_levels(&mut self, forward: &mut Forward) -> bool {
        let Some((levels, ahead)) = self.core.levels() else { return false };
        let steady = &mut forward.steady;
        steady.ahead = steady.ahead.max(ahead);
        let octave = 1 << steady.looks.ilog2();
        if steady.looks == octave {
            steady.levels = [std::mem::take(&mut steady.levels[1]), Levels::default()];
        }
        steady.levels[1].add(((steady.looks - octave) as usize * 4) >> octave.ilog2(), &levels);
        true
    }

    /// Skips whole periods where the state of everything comes again, and again. True while that is being found out.
    fn skip_what_repeats(&mut self, forward: &mut Forward) -> bool {
        let now = self.core.time.now;
        if forward.steady.cycle.as_ref().is_some_and(|cycle| now < cycle.from.time + cycle.period) {
            return true;
        }
        // It must not cost more than a small part of what was simulated.
        let (hops, due) = (self.core.counts.hops, forward.steady.cycle.is_some());
        let size = self.core.pool.live() + (self.core.ports.len() + self.core.switches.queues.len()) as u64;
        if !due && hops - forward.steady.hops < 4 * size {
            return false;
        }
        forward.steady.hops = hops;
        let Some(digest) = self.state() else {
            forward.steady.over = true;
            return false;
        };
        if let Some(cycle) = forward.steady.cycle.take()
            && cycle.digest == digest
            && now == cycle.from.time + cycle.period
        {
            self.jump_exactly(forward, &cycle.from);
            return true;
        }
        if let Some(&before) = forward.steady.seen.get(&digest) {
            let period = now - before;
            forward.steady.cycle = Some(Cycle { digest, from: self.window(), period });
            return true;
        }
        forward.steady.seen.insert(digest, now);
        forward.steady.over = forward.steady.looks > MOST_STATES;
        false
    }

    /// Everything is as it was at `from`: what happened since would happen again, until a flow ends or something comes from outside.
    fn jump_exactly(&mut self, forward: &mut Forward, from: &Window) {
        let last = self.window();
        let (core, now) = (&self.core, self.core.time.now);
        let period = (now - from.time).0.max(1);
        let payload = core.setup.nic.payload as u64;
        let mut outside = core.next_from_outside();
        let mut times = u64::MAX;
        for (&(flow, before, _), &(_, after, _)) in from.flows.iter().zip(&last.flows) {
            outside = outside.min(core.time.planned(core.setup.flows[flow as usize].until));
            let s = &core.hosts.senders[flow as usize];
            let unsent = (s.size - s.high).saturating_sub(4 * payload);
            times = times.min(unsent.checked_div(after - before).unwrap_or(u64::MAX));
        }
        if outside != Time::MAX {
            times = times.min(outside.saturating_sub(now).0.saturating_sub(1) / period);
        }
        let still = !from.has_the_flows_of(&last) || times == u64::MAX || core.hosts.waiting.any_planned();
        forward.steady.over = true;
        if still || times == 0 {
            return;
        }
        let by = Time(period * times);
        for (&(flow, before, _), &(_, after, _)) in from.flows.iter().zip(&last.flows) {
            self.core.shorten(forward, flow, ((after - before) / payload * times) as i64);
        }
        forward.about.repeated += by;
        self.skip(forward, from, &last, by);
    }

    /// Windows are longer than those were from which something was skipped: they say more of it.
    fn estimate_anew(&mut self, forward: &mut Forward, found: &Found) {
        let Some(mut skipped) = forward.steady.skipped.take() else { return };
        let payload = self.core.setup.nic.payload as f64;
        let time = skipped.time.0 as f64;
        for (place, each) in skipped.each.iter_mut().enumerate() {
            let (flow, rate) = (skipped.flows[place], found.rates[place].each.max(f64::MIN_POSITIVE));
            each.off = found.off(place, time).max((rate - each.rate).abs() / rate);
            each.rate = rate;
            let longer = forward.longer.entry(flow).or_default();
            longer.differ = found.differ[place];
            if self.core.goes_on_sending(flow) {
                let s = &self.core.hosts.senders[flow as usize];
                let unsent = ((s.size - s.high) as f64 / payload) as i64 - 4;
                let more = ((rate * time / payload) as i64 - each.packets).clamp(-each.packets, unsent.max(0));
                each.packets += more;
                self.core.shorten(forward, flow, more);
            }
        }
        (skipped.apart, skipped.unchecked) = (found.apart, Time::ZERO);
        forward.steady.skipped = Some(skipped);
    }

    /// Skips as much as can be, if that is worth it. What is counted goes on as it did.
    fn jump_on(&mut self, forward: &mut Forward, last: Window, found: &Found, until: Time) {
        let core = &mut self.core;
        let (now, payload) = (core.time.now, core.setup.nic.payload as u64);
        let before = forward.steady.skipped.as_ref().map_or(0.0, |skipped| skipped.time.0 as f64);
        let lasted = (now + core.time.skipped).saturating_sub(forward.since).0 as f64 - before;
        let mut by = (found.most(forward.within) - before).min(until.0 as f64);
        // What is simulated afterwards has to fit in.
        let margin = 1.5 * (found.apart.0 / 8).max(forward.least().0) as f64;
        let mut ends = 0.0f64;
        for (&(flow, ..), &rate) in last.flows.iter().zip(&found.rates) {
            if !core.goes_on_sending(flow) || rate.each <= 0.0 {
                return;
            }
            let s = &core.hosts.senders[flow as usize];
            let mut left = (s.size - s.high).saturating_sub(4 * payload) as f64 / rate.each;
            let until = core.time.planned(core.setup.flows[flow as usize].until);
            if until != Time::MAX {
                left = left.min(until.saturating_sub(now).0 as f64);
            }
            ends = ends.max(left);
            by = by.min(left - margin);
        }
        // Flows that come while these are under way would find everything a little different from what it would have been, and what becomes of that cannot be
        // measured.
        let start = core.setup.flows.get(core.first_to_start()).map_or(Time::MAX, |flow| core.time.planned(flow.start));
        if start != Time::MAX && start.saturating_sub(now).0 as f64 <= 1.1 * ends + margin {
            return;
        }
        let stop = core.time.planned(core.setup.stop);
        if stop != Time::MAX {
            by = by.min(stop.saturating_sub(now).0 as f64 - margin);
        }
        let moves = found.moves.iter().copied().fold(0.0, f64::max);
        if moves > 0.0 {
            by = by.min(forward.within / 2.0 / moves * found.apart.0 as f64);
        }
        let Some(from) = forward.steady.kept.get(1) else { return };
        let (a, b) = (&from.counts, &last.counts);
        let lossless = a.dropped() == b.dropped()
            && (a.retransmitted, a.trimmed, a.timeouts) == (b.retransmitted, b.trimmed, b.timeouts);
        // A jump makes what follows another run of the same: for little it is not worth it.
        if by < lasted / WORTH || !lossless || core.hosts.waiting.any_planned() {
            return;
        }
        let by = Time(by as u64);
        let time = before + by.0 as f64;
        let mut skipped = forward.steady.skipped.take().unwrap_or_else(|| {
            let each = found.rates.iter().map(|rate| Estimate { rate: rate.each, packets: 0, off: 0.0 });
            Skipped {
                flows: last.flows.iter().map(|flow| flow.0).collect(),
                time: Time::ZERO,
                unchecked: Time::ZERO,
                each: each.collect(),
                apart: found.apart,
                then: Default::default(),
                now: Default::default(),
            }
        });
        for (place, each) in skipped.each.iter_mut().enumerate() {
            let flow = skipped.flows[place];
            let s = &core.hosts.senders[flow as usize];
            let unsent = (s.size - s.high).saturating_sub(2 * payload) / payload;
            let packets = ((each.rate * by.0 as f64 / payload as f64).round() as u64).min(unsent) as i64;
            each.packets += packets;
            each.off = each.off.max(found.off(place, time));
            core.shorten(forward, flow, packets);
            let moves = found.moves.get(place).copied().unwrap_or(0.0);
            let longer = forward.longer.entry(flow).or_default();
            longer.moved += moves * by.0 as f64 / found.apart.0.max(1) as f64;
            longer.differ = found.differ[place];
            longer.since = longer.since.or(Some(now + core.time.skipped));
        }
        skipped.time += by;
        skipped.unchecked = by;
        skipped.then = (now, last.flows.iter().map(|flow| flow.1).collect());
        skipped.now = skipped.then.clone();
        forward.estimated = true;
        let kept = std::mem::take(&mut forward.steady.kept);
        self.skip(forward, &kept[1], &last, by);
        // What was added to the books is not to be added again.
        forward.steady.kept = kept.into_iter().map(|window| self.with_books(window, &last)).collect();
        forward.steady.skipped = Some(skipped);
    }

    /// A window of before a jump, which was at `last`: what was counted since is less by what was added then.
    fn with_books(&self, mut window: Window, last: &Window) -> Window {
        let now = self.window();
        for (paused, (a, b)) in window.paused.iter_mut().zip(last.paused.iter().zip(&now.paused)) {
            *paused += b.saturating_sub(*a);
        }
        for (flow, (a, b)) in window.flows.iter_mut().zip(last.flows.iter().zip(&now.flows)) {
            flow.2 += b.2.saturating_sub(a.2);
        }
        window.breadth.add(&last.breadth, &now.breadth);
        window
    }

    /// So much time is over, in which what is counted went on as it did between the two.
    fn skip(&mut self, forward: &mut Forward, from: &Window, last: &Window, by: Time) {
        let span = last.time - from.time;
        self.core.jump(forward, by);
        self.core.repeat_samples(span, by);
        for &(flow, ..) in &last.flows {
            let spec = self.core.setup.flows[flow as usize];
            let at = self.core.time.planned(spec.until);
            if spec.until != Time::MAX {
                self.meanwhile(spec.src.0, |network| {
                    network.core.time.events.push(Event::new(at, 0, Class::Leave as u8, flow));
                });
            }
        }
        self.extrapolate(forward, from, last, by.0 as f64 / span.0.max(1) as f64);
    }
}

/// A window is so many times as long as what congestion control plans ahead.
const TIMERS: u64 = 4;
/// How much more rates are taken to differ than they do from one window to the next.
const CAREFUL: f64 = 3.0;
/// What is skipped is at least so small a part of what was simulated.
const WORTH: f64 = 4.0;
/// Windows are at least so many looks long: what happens now and then is to be in them, and what repeats is worth waiting for.
const PATIENT: u32 = 16;
/// After so many looks, what has not repeated is not expected to.
const MOST_STATES: u32 = 4096;
