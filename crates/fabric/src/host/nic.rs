//! The host's NIC: flows take turns, paced and windowed.

use super::flow::{BY_SCHEME, IN_LINE, Sender};
use crate::axes::congestion_control::FlowStart;
use crate::axes::flow_control::FlowControl;
use crate::id::FlowId;
use crate::packet::{Fifo, Kind, NONE, PacketId, Pool, flag};
use crate::run::shard::PerFlow;
use crate::run::{Class, Core, Network, hook};
use crate::setup::{AckLane, FlowSpec, Lines, NicWake, Overflow, Presence};
use engine::{Event, Rate, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Numbers for the congestion-control states of active flows.
#[derive(Default)]
pub(crate) struct Slots {
    pub(crate) free: Vec<u32>,
    used: u32,
}
impl Slots {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        })
    }
}

/// A set of places in a NIC's list. The first 64, which is all most NICs ever need, lie in the NIC itself.
#[derive(Default)]
pub(crate) struct Places {
    low: u64,
    high: Vec<u64>,
}
impl Places {
    #[inline]
    pub(crate) fn set(&mut self, place: u32, on: bool) {
        if place < 64 {
            self.low = self.low & !(1 << place) | (on as u64) << place;
        } else {
            self.set_high(place, on);
        }
    }
    #[cold]
    fn set_high(&mut self, place: u32, on: bool) {
        let (word, bit) = (place as usize / 64, 1u64 << (place % 64));
        if word > self.high.len() {
            self.high.resize(word, 0);
        }
        let bits = &mut self.high[word - 1];
        *bits = if on { *bits | bit } else { *bits & !bit };
    }
    #[inline]
    pub(crate) fn has(&self, place: u32) -> bool {
        let word = place as usize / 64;
        let bits = if word == 0 { self.low } else { self.high.get(word - 1).copied().unwrap_or(0) };
        bits >> (place % 64) & 1 == 1
    }
    /// The first member in `from..to`.
    #[inline]
    fn first(&self, from: u32, to: u32) -> Option<u32> {
        if from < 64 {
            let bits = self.low & u64::MAX << from;
            if bits != 0 || to <= 64 {
                let place = bits.trailing_zeros();
                return (place < to && bits != 0).then_some(place);
            }
        }
        self.first_high(from.max(64), to)
    }
    fn first_high(&self, from: u32, to: u32) -> Option<u32> {
        let mut word = from as usize / 64;
        let mut mask = u64::MAX << (from % 64);
        while word <= self.high.len() && (word as u32) * 64 < to {
            let bits = mask & self.high[word - 1];
            if bits != 0 {
                let place = word as u32 * 64 + bits.trailing_zeros();
                return (place < to).then_some(place);
            }
            mask = u64::MAX;
            word += 1;
        }
        None
    }
    #[inline]
    fn is_empty(&self) -> bool {
        self.low == 0 && (self.high.is_empty() || self.high.iter().all(|&w| w == 0))
    }
}

/// One port of a host, with the flows that send by it.
pub(crate) struct Nic {
    pub(crate) port: u32,
    pub(crate) line: Rate,
    /// Active flows in the order they started. Finished ones are swept out when the search for the next
    /// packet comes past them.
    pub(crate) flows: Vec<u32>,
    /// Places of flows with bytes left to send.
    pub(crate) backlogged: Places,
    /// Places of flows with bytes left that their window lets go.
    pub(crate) eligible: Places,
    /// Places of those among them that are due, or will be when the transmission under way ends: at line rate that is all.
    pub(crate) ready: Places,
    /// When flows that are not due will be. Stale entries are skipped.
    pub(crate) later: BinaryHeap<Reverse<(Time, u32)>>,
    /// Places of finished flows.
    pub(crate) finished: Places,
    /// Places that were seen with a finished flow, where such flows stay on the list.
    pub(crate) spent: Places,
    /// Place of the flow that sent last.
    pub(crate) last: u32,
    pub(crate) acks: Fifo,
    /// Of a host that forwards: the last data packet was another's.
    pub(crate) relayed: bool,
    /// When the pending look comes; [`Time::MAX`] for none.
    pub(crate) wake: Time,
    /// Its rank, to know it from one that was put off.
    pub(crate) wake_rank: u32,
    /// When it was planned.
    pub(crate) wake_set: Time,
}

impl Nic {
    pub(crate) fn new(port: u32, line: Rate) -> Nic {
        Nic {
            port,
            line,
            flows: Vec::new(),
            backlogged: Places::default(),
            eligible: Places::default(),
            ready: Places::default(),
            later: BinaryHeap::new(),
            finished: Places::default(),
            spent: Places::default(),
            last: 0,
            acks: Fifo::default(),
            relayed: false,
            wake: Time::MAX,
            wake_rank: 0,
            wake_set: Time::ZERO,
        }
    }

    /// Brings the sets up to date with a flow that is on the list, and is due only after the transmission under way if it is `later`. True if
    /// it may send now and could not before.
    #[inline(always)]
    fn note(&mut self, s: &Sender, later: bool) -> bool {
        let place = s.place;
        let (backlogged, eligible, done) = (s.backlogged(), s.eligible(), s.done());
        if place < 64 {
            let bit = 1u64 << place;
            let set = |set: &mut Places, on: bool| set.low = set.low & !bit | (on as u64) << place;
            let eligible = eligible && self.spent.low & bit == 0;
            let new = eligible && self.eligible.low & bit == 0;
            set(&mut self.backlogged, backlogged);
            set(&mut self.eligible, eligible);
            set(&mut self.ready, eligible && !later);
            set(&mut self.finished, done);
            return new;
        }
        let eligible = eligible && !self.spent.has(place);
        let new = eligible && !self.eligible.has(place);
        self.backlogged.set(place, backlogged);
        self.eligible.set(place, eligible);
        self.ready.set(place, eligible && !later);
        self.finished.set(place, done);
        new
    }

    /// Whether the end of a transmission should look for more, or for `all` that have bytes left, whether their window lets them go or not.
    ///
    /// If nothing is there to be found, there is no need to look. Should a window open before the end, it is planned then ([`Core::note`]).
    #[inline(always)]
    pub(crate) fn has_work(&self, all: bool) -> bool {
        let flows = if all { &self.backlogged } else { &self.eligible };
        !self.acks.is_empty() || !flows.is_empty() || !self.finished.is_empty()
    }

    /// Whose turn it is, and who may send, as numbers.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        let sets = [&self.backlogged, &self.eligible, &self.ready, &self.finished, &self.spent];
        let bits = sets.into_iter().flat_map(|set| std::iter::once(set.low).chain(set.high.iter().copied()));
        let flows = self.flows.iter().map(|flow| *flow as u64);
        bits.chain(flows).chain([self.last as u64, self.relayed as u64])
    }

    pub(crate) fn drop_acks(&mut self, pool: &Pool) -> Vec<PacketId> {
        std::iter::from_fn(|| self.acks.pop(pool)).collect()
    }

    /// ACKs waiting to be sent.
    pub(crate) fn acks(&self) -> &Fifo {
        &self.acks
    }

    /// Removes finished flows from `from` on, and says where `kept` has moved.
    fn sweep(&mut self, from: u32, kept: Option<u32>, senders: &mut PerFlow<Sender>) -> Option<u32> {
        let mut moved = kept;
        let mut to = from;
        for place in from..self.flows.len() as u32 {
            let flow = self.flows[place as usize];
            let sender = &mut senders[flow as usize];
            if sender.done() {
                sender.place = NONE;
                continue;
            }
            if kept == Some(place) {
                moved = Some(to);
            }
            self.flows[to as usize] = flow;
            sender.place = to;
            self.backlogged.set(to, sender.backlogged());
            self.eligible.set(to, sender.eligible());
            let ready = self.ready.has(place);
            self.ready.set(to, ready);
            self.finished.set(to, false);
            to += 1;
        }
        for place in to..self.flows.len() as u32 {
            self.backlogged.set(place, false);
            self.eligible.set(place, false);
            self.ready.set(place, false);
            self.finished.set(place, false);
        }
        self.flows.truncate(to as usize);
        moved
    }
}

impl Core {
    /// The NIC by which packets of `flow` leave `host` in the given direction.
    pub(crate) fn nic_of(&self, host: u32, flow: u32, reverse: bool) -> u32 {
        let spec = &self.setup.flows[flow as usize];
        let (to, tuple) = if reverse { (spec.src, spec.tuple.reversed()) } else { (spec.dst, spec.tuple) };
        let port = match self.routing.next_hops(host, to.0) {
            [] => self.map.of(host).start,
            [only] => *only,
            several => several[tuple.hash(NIC_SEED ^ self.setup.salt) as usize % several.len()],
        };
        self.ports[port as usize].nic
    }

    /// Whether a flow will send by itself, now or later.
    pub(crate) fn may_send(&self, flow: u32) -> bool {
        let s = &self.hosts.senders[flow as usize];
        // One that waits for another flow has no NIC yet.
        if !s.started() {
            return false;
        }
        let held = self.ports[self.hosts.nics[s.nic as usize].port as usize].paused >> s.class & 1 == 1;
        !s.done() && !held && (s.eligible() || s.expires != Time::MAX)
    }

    /// Whether nothing but its rate keeps a flow from sending: it will send when that is due.
    pub(crate) fn waits_for_its_rate(&self, flow: u32) -> bool {
        let s = &self.hosts.senders[flow as usize];
        s.started()
            && s.eligible()
            && s.due > self.time.now
            && self.ports[self.hosts.nics[s.nic as usize].port as usize].paused >> s.class & 1 == 0
    }

    /// The same for a rate that is, or was at the last packet, so low that patience with it must be long.
    pub(crate) fn is_paced(&self, flow: u32) -> bool {
        let s = &self.hosts.senders[flow as usize];
        // A rate that has recovered does not shorten the gap that the low one left.
        let gap = || self.pace(s.nic, s.last_size, s.rate).max(s.due.saturating_sub(self.time.now));
        self.waits_for_its_rate(flow) && gap().0 > self.progress.patience.0 / 16
    }

    /// Brings the NIC's sets up to date with a flow.
    pub(crate) fn note(&mut self, flow: u32) {
        self.note_here(flow);
    }

    /// The same, for what happens with every ACK.
    #[inline(always)]
    pub(crate) fn note_here(&mut self, flow: u32) {
        let s = &self.hosts.senders[flow as usize];
        if s.place == NONE {
            return;
        }
        let nic = &mut self.hosts.nics[s.nic as usize];
        let port = nic.port;
        let later = s.due > self.ports[port as usize].free_at.max(self.time.now);
        if nic.note(s, later) {
            // The heap forgets flows that may not send.
            if later {
                nic.later.push(Reverse((s.due, flow)));
            }
            // The transmission under way did not know that there would be something to look for.
            if !self.hosts.looks_for_all && !self.ports[port as usize].wake && self.is_sending(port) {
                self.schedule_end(port);
            }
        }
        if self.pool.traced() {
            self.refresh_parts(flow);
        }
    }

    /// The time the flow must wait after a packet of `size` bytes.
    #[inline]
    pub(crate) fn pace(&self, nic: u32, size: u16, rate: Rate) -> Time {
        let line = self.hosts.nics[nic as usize].line;
        if !self.setup.nic.paced || rate == line {
            let table = self.ports[self.hosts.nics[nic as usize].port as usize].table;
            return self.wire.time(table, size);
        }
        self.setup.clock.duration(size as u64, rate)
    }

    /// Spreads the flows over their hosts' ports again after a change of routes.
    /// Gives those that moved.
    pub(crate) fn reassign_flows(&mut self) -> Vec<u32> {
        let mut elsewhere = Vec::new();
        for flow in self.begun_at_hand() {
            let (src, old) = (self.setup.flows[flow as usize].src, self.hosts.senders[flow as usize].nic);
            if !self.owns(src.0) || self.hosts.senders[flow as usize].done() || self.map.of(src.0).len() == 1 {
                continue;
            }
            let nic = self.nic_of(src.0, flow, false);
            if nic == old {
                continue;
            }
            let place = self.hosts.senders[flow as usize].place;
            let list = &mut self.hosts.nics[old as usize].flows;
            list.remove(place as usize);
            for (i, &f) in list.iter().enumerate().skip(place as usize) {
                self.hosts.senders[f as usize].place = i as u32;
            }
            let gone = list.len() as u32;
            let moved: Vec<u32> = list[place as usize..].to_vec();
            let n = &mut self.hosts.nics[old as usize];
            for set in [&mut n.backlogged, &mut n.eligible, &mut n.ready, &mut n.finished] {
                set.set(gone, false);
            }
            moved.into_iter().for_each(|f| self.note(f));
            self.count_standstill(flow, false);
            let n = &mut self.hosts.nics[nic as usize];
            n.flows.push(flow);
            self.hosts.senders[flow as usize].nic = nic;
            self.hosts.senders[flow as usize].place = n.flows.len() as u32 - 1;
            self.count_standstill(flow, true);
            self.note(flow);
            self.refresh_flow(flow);
            self.kicks.push(self.hosts.nics[nic as usize].port);
            elsewhere.push(flow);
        }
        elsewhere
    }

    /// Takes all flows off a NIC's list.
    pub(crate) fn unlist_flows(&mut self, nic: u32) {
        let n = &mut self.hosts.nics[nic as usize];
        for (place, flow) in n.flows.drain(..).enumerate() {
            self.hosts.senders[flow as usize].place = NONE;
            for set in [&mut n.backlogged, &mut n.eligible, &mut n.ready, &mut n.finished] {
                set.set(place as u32, false);
            }
        }
    }

    /// Puts a flow at the end of a NIC's list.
    pub(crate) fn list_flow(&mut self, flow: u32, nic: u32) {
        let n = &mut self.hosts.nics[nic as usize];
        n.flows.push(flow);
        let s = &mut self.hosts.senders[flow as usize];
        (s.nic, s.place) = (nic, n.flows.len() as u32 - 1);
        self.note(flow);
        self.refresh_flow(flow);
    }

    /// Keeps that a flow began or ended, for hosts that list their flows anew.
    #[inline]
    pub(crate) fn note_presence(&mut self, flow: u32, presence: Presence) {
        if self.setup.habits.relist.is_some() {
            self.hosts.journal.push((FlowId(flow), presence));
        }
    }

    /// How long the class of a flow has been paused at its NIC, all in all.
    pub(crate) fn class_paused(&self, flow: u32, now: Time) -> Time {
        let s = &self.hosts.senders[flow as usize];
        self.probes.breadth.of_class(self.hosts.nics[s.nic as usize].port, s.class, now)
    }

    /// From now on, a pause of its class keeps a flow from sending, or does not: it has sent all, or is held by itself.
    pub(crate) fn count_standstill(&mut self, flow: u32, counts: bool) {
        let s = &self.hosts.senders[flow as usize];
        let counts = counts && s.high < s.size && s.held & BY_SCHEME == 0;
        let paused = self.class_paused(flow, self.time.now);
        self.hosts.standstills[flow as usize].turn(paused, counts);
    }

    /// Hands a flow whose time has come to its NIC.
    pub(crate) fn begin_flow(&mut self, flow: u32, tag: u16) {
        let spec = self.setup.flows[flow as usize];
        let nic = self.nic_of(spec.src.0, flow, false);
        let slot = self.hosts.slots.take();
        let line = self.hosts.nics[nic as usize].line;
        let permit = self.hosts.control.start(
            slot,
            FlowStart {
                now: self.time.now,
                line,
                base_rtt: spec.base_rtt,
                window: spec.window,
                size: spec.size,
                hops: spec.hops as u32,
                payload: self.setup.nic.payload as u32,
                header: self.setup.nic.header as u32,
                longest_rtt: self.hosts.longest_rtt,
                trims: matches!(self.setup.switch.overflow, Overflow::Trim(_)),
            },
        );
        let n = &mut self.hosts.nics[nic as usize];
        n.flows.push(flow);
        self.hosts.senders[flow as usize] = Sender {
            size: spec.size,
            due: self.time.now.max(permit.resume),
            rate: permit.rate,
            window: permit.window,
            timer: permit.timer,
            own: (permit.own >> flag::OWN_SHIFT) as u8,
            nic,
            place: n.flows.len() as u32 - 1,
            slot,
            class: spec.class.0,
            dst: spec.dst.0,
            tuple: spec.tuple,
            tag,
            ..Sender::default()
        };
        if self.setup.nic.lines == Lines::Destination {
            self.join_line(flow);
        }
        self.progress.active += 1;
        self.note_presence(flow, Presence::Begins);
        self.count_standstill(flow, true);
        self.note_beginning(flow);
        self.rewindow(flow);
        self.note(flow);
        self.arm(flow);
        self.kicks.push(self.hosts.nics[nic as usize].port);
    }

    /// A flow joins the messages from its host that have the same destination and class, and waits if it is not the first.
    fn join_line(&mut self, flow: u32) {
        let FlowSpec { src, dst, class, .. } = self.setup.flows[flow as usize];
        let line = self.hosts.lines.entry((src.0, dst.0, class.0)).or_default();
        if !line.is_empty() {
            self.hosts.senders[flow as usize].held |= IN_LINE;
        }
        line.push_back(flow);
    }

    /// All of a flow has been sent, for the first time or again: the next in its line may begin.
    pub(crate) fn leave_line(&mut self, flow: u32) {
        let FlowSpec { src, dst, class, .. } = self.setup.flows[flow as usize];
        let Some(line) = self.hosts.lines.get_mut(&(src.0, dst.0, class.0)).filter(|line| line.front() == Some(&flow))
        else {
            return;
        };
        line.pop_front();
        let Some(&next) = line.front() else {
            self.hosts.lines.remove(&(src.0, dst.0, class.0));
            return;
        };
        self.hosts.senders[next as usize].held &= !IN_LINE;
        self.note(next);
        self.kicks.push(self.hosts.nics[self.hosts.senders[next as usize].nic as usize].port);
    }

    /// A flow is due at another time than before.
    pub(crate) fn due_at(&mut self, flow: u32, due: Time) {
        self.set_due(flow, due);
        self.note(flow);
    }

    /// The same without bringing the NIC's sets up to date.
    #[inline]
    pub(crate) fn set_due(&mut self, flow: u32, due: Time) {
        let s = &mut self.hosts.senders[flow as usize];
        s.due = due;
        if s.place != NONE {
            let nic = &mut self.hosts.nics[s.nic as usize];
            if due > self.ports[nic.port as usize].free_at.max(self.time.now) {
                nic.later.push(Reverse((due, flow)));
            }
        }
    }

    /// A flow that has just sent waits as its rate has it.
    #[inline(always)]
    fn space(&mut self, flow: u32) {
        let now = self.time.now;
        let s = &mut self.hosts.senders[flow as usize];
        let nic = &mut self.hosts.nics[s.nic as usize];
        let port = nic.port;
        let p = &self.ports[port as usize];
        let pace = match self.setup.nic.paced && s.rate != nic.line {
            true => self.setup.clock.duration(s.last_size as u64, s.rate),
            false => self.wire.time(p.table, s.last_size),
        };
        s.due = now + pace;
        if s.place != NONE {
            let later = s.due > p.free_at.max(now);
            if later {
                nic.later.push(Reverse((s.due, flow)));
            }
            nic.note(s, later);
        }
        if self.pool.traced() {
            self.refresh_sent(flow, port);
        }
    }

    /// Finds out which flows have become due.
    #[inline(always)]
    fn ripen(&mut self, nic: u32) {
        let first = self.hosts.nics[nic as usize].later.peek();
        if first.is_some_and(|&Reverse((due, _))| due <= self.time.now) {
            self.ripen_some(nic);
        }
    }

    #[inline(never)]
    fn ripen_some(&mut self, nic: u32) {
        let n = &mut self.hosts.nics[nic as usize];
        while let Some(&Reverse((due, flow))) = n.later.peek()
            && due <= self.time.now
        {
            n.later.pop();
            let s = &self.hosts.senders[flow as usize];
            if s.nic == nic && s.place != NONE && s.due <= self.time.now && s.eligible() && !n.spent.has(s.place) {
                n.ready.set(s.place, true);
            }
        }
    }

    /// The flow whose turn it is, or none. Sweeps finished flows that the search passes.
    #[inline(always)]
    fn pick_flow(&mut self, nic: u32) -> Option<u32> {
        self.ripen(nic);
        let n = &mut self.hosts.nics[nic as usize];
        let count = n.flows.len() as u32;
        if count > 64 || !n.finished.is_empty() || self.ports[n.port as usize].paused != 0 {
            return self.pick_any_flow(nic);
        }
        // The first that is ready after the last one, going round.
        let next = n.last + 1;
        let start = if next < count { next } else { next.checked_rem(count)? };
        let after = n.ready.low & u64::MAX << start;
        let place = if after != 0 { after } else { n.ready.low }.trailing_zeros();
        let flow = n.flows.get(place as usize).copied()?;
        n.last = place;
        Some(flow)
    }

    /// The same with many flows, with some that have finished or with a class that is paused.
    #[inline(never)]
    fn pick_any_flow(&mut self, nic: u32) -> Option<u32> {
        let n = &mut self.hosts.nics[nic as usize];
        let count = n.flows.len() as u32;
        if count == 0 {
            return None;
        }
        let paused = self.ports[n.port as usize].paused;
        let next = n.last + 1;
        let start = if next < count { next } else { next % count };
        let mut found = None;
        'search: for (from, to) in [(start, count), (0, start)] {
            let mut at = from;
            while let Some(place) = n.ready.first(at, to) {
                if paused == 0 || paused >> self.hosts.senders[n.flows[place as usize] as usize].class & 1 == 0 {
                    found = Some(place);
                    break 'search;
                }
                at = place + 1;
            }
        }
        let passed = match found {
            Some(place) if place >= start => n.finished.first(start, place),
            Some(place) => n.finished.first(0, place).or_else(|| n.finished.first(start, count)),
            None => n.finished.first(0, count),
        };
        if self.setup.habits.keeps_finished {
            let (end, wrapped) = found.map_or((count, start), |at| if at >= start { (at, 0) } else { (count, at) });
            for (from, to) in [(start, end), (0, wrapped)] {
                while let Some(place) = n.finished.first(from, to) {
                    n.finished.set(place, false);
                    n.spent.set(place, true);
                }
            }
        } else if let Some(from) = passed {
            found = n.sweep(from, found, &mut self.hosts.senders);
        }
        let place = found?;
        n.last = place;
        Some(n.flows[place as usize])
    }

    /// Sends the next ACK of a host's port. Gives its class and its size; nothing if there is none that may go.
    #[inline(always)]
    pub(crate) fn send_ack(&mut self, port: u32) -> Option<(u8, u16)> {
        let p = &self.ports[port as usize];
        let Nic { acks, .. } = &mut self.hosts.nics[p.nic as usize];
        if acks.is_empty() {
            return None;
        }
        let free = match self.setup.nic.ack_lane {
            AckLane::Data(Some(class)) => p.paused >> class & 1 == 0,
            _ => true,
        };
        if !free {
            return None;
        }
        let id = acks.pop(&self.pool)?;
        let (class, size) = (self.pool[id].class, self.pool[id].size);
        self.start_sized(port, id, size, Time::ZERO);
        Some((class, size))
    }

    /// Nothing can be sent now: look again when a flow is due.
    fn plan_wake(&mut self, nic: u32) {
        let n = &mut self.hosts.nics[nic as usize];
        if n.wake != Time::MAX {
            return;
        }
        let paused = self.ports[n.port as usize].paused;
        let (all, later) = (self.setup.nic.wake != NicWake::Due, self.setup.nic.wake == NicWake::Later);
        if !all && paused == 0 {
            // Whatever is due goes now; the first of the others decides.
            while let Some(&Reverse((due, flow))) = n.later.peek() {
                let s = &self.hosts.senders[flow as usize];
                if s.nic == nic && s.place != NONE && s.due == due && s.eligible() {
                    self.set_wake(nic, due);
                    return;
                }
                n.later.pop();
            }
            return;
        }
        let set = if all { &n.backlogged } else { &n.eligible };
        let (mut at, mut earliest) = (0, Time::MAX);
        while let Some(place) = set.first(at, n.flows.len() as u32) {
            let s = &self.hosts.senders[n.flows[place as usize] as usize];
            at = place + 1;
            if !all && paused >> s.class & 1 == 1 {
                continue;
            }
            if later && s.due <= self.time.now {
                continue;
            }
            earliest = earliest.min(s.due);
            if earliest <= self.time.now {
                return;
            }
        }
        if earliest != Time::MAX {
            self.set_wake(nic, earliest);
        }
    }

    /// Plans the NIC's next look.
    pub(crate) fn set_wake(&mut self, nic: u32, at: Time) {
        let rank = self.rank(at);
        let n = &mut self.hosts.nics[nic as usize];
        (n.wake, n.wake_rank, n.wake_set) = (at, rank, self.time.now);
        self.time.events.push(Event::new(at, rank, Class::NicWake as u8, nic));
    }
}

/// Seed of the hash that spreads flows over the ports of a host with several.
pub const NIC_SEED: u32 = 0x8bad_f00d;

impl<F: FlowControl> Network<F> {
    /// A packet has come in at a host.
    #[inline]
    pub(crate) fn host_receive(&mut self, port: u32, id: PacketId) {
        match self.core.pool[id].kind {
            Kind::Data if self.core.hosts.slow.is_empty() => self.receive_data(port, id),
            Kind::Data => self.receive_slowly(port, id),
            Kind::Signal => {
                let signal = Self::read_signal(&self.core.pool[id]);
                self.core.pool.remove(id);
                self.core.counts.consumed += 1;
                hook!(self, port, |scheme, node, at, local| scheme.signal(node, at, local, signal));
            }
            Kind::Notice => {
                let flow = self.core.pool[id].flow;
                self.core.receive_notice(id);
                self.window_changed(flow);
            }
            Kind::Trimmed => self.receive_data(port, id),
            _ => {
                self.count_gone(port, id);
                self.receive_control(port, id);
            }
        }
    }

    /// Starts the flows that begin now, and sets the alarm for the next.
    pub(crate) fn start_flows(&mut self) {
        let mut due = false;
        while let Some(spec) = self.core.setup.flows.get(self.core.progress.next_flow) {
            let start = self.core.time.planned(spec.start);
            if start > self.core.time.now {
                // It was planned before starts came sooner.
                if !due && self.core.time.skipped > Time::ZERO {
                    break;
                }
                self.core.time.events.push(Event::new(start, Event::LAST, Class::FlowStart as u8, 0));
                break;
            }
            due = true;
            let flow = self.core.progress.next_flow as u32;
            self.core.progress.next_flow = self.core.next_own_flow(flow as usize + 1);
            if self.core.may_begin(flow) {
                self.begin(flow);
            }
            // Each flow in turn, so that an idle NIC starts with the first of several.
            self.drain_kicks();
        }
    }

    /// Hands a flow to its NIC.
    pub(crate) fn begin(&mut self, flow: u32) {
        let tag = self.scheme.tag(&self.core.setup.flows[flow as usize].tuple);
        self.core.begin_flow(flow, tag);
        let port = self.core.hosts.nics[self.core.hosts.senders[flow as usize].nic as usize].port;
        hook!(self, port, |scheme, node, at, local| scheme.flow_started(node, at, local, FlowId(flow)));
    }

    /// Sends the next packet of a host's port; false if there is none.
    #[inline]
    pub(crate) fn nic_transmit(&mut self, port: u32) -> bool {
        self.next_ack(port) || self.send_own(port)
    }

    /// Sends the next ACK of a host's port; false if there is none that may go.
    #[inline]
    pub(crate) fn next_ack(&mut self, port: u32) -> bool {
        let Some((class, size)) = self.core.send_ack(port) else { return false };
        if self.core.setup.nic.ack_lane != AckLane::Control {
            self.count_sent(port, class, size);
        }
        true
    }

    /// Sends the next data packet of the host's own; false if there is none.
    #[inline]
    pub(crate) fn send_own(&mut self, port: u32) -> bool {
        let core = &mut self.core;
        let nic = core.ports[port as usize].nic;
        let asks = core.hosts.asks;
        let picked = if asks { self.ask_flows(nic) } else { core.pick_flow(nic) };
        let core = &mut self.core;
        match picked {
            Some(flow) => {
                let (id, again) = core.make_packet(flow);
                if core.hosts.tells_sent {
                    self.at_host(port, |transport, at, _| transport.sent(at, FlowId(flow), id, again));
                }
                let core = &mut self.core;
                let packet = &core.pool[id];
                let (first, size, class) = (packet.flags & flag::FRESH != 0, packet.size, packet.class);
                core.start_sized(port, id, size, Time::ZERO);
                core.space(flow);
                self.count_sent(port, class, size);
                if first {
                    hook!(self, port, |scheme, node, at, local| scheme.flow_opened(node, at, local, FlowId(flow)));
                }
                true
            }
            None => {
                match asks {
                    true => self.ask_for_wake(nic),
                    false => core.plan_wake(nic),
                }
                false
            }
        }
    }

    /// A timer of a flow's congestion control goes off: a look of its NIC at the same instant that was planned before the timer comes first.
    pub(super) fn look_before_timer(&mut self, flow: u32) {
        if !self.core.time.in_sequence {
            return;
        }
        let (hosts, now) = (&self.core.hosts, self.core.time.now);
        let s = &hosts.senders[flow as usize];
        let n = &hosts.nics[s.nic as usize];
        if s.timer <= now && n.wake == now && n.wake_set < hosts.control.timer_set(s.slot, now) {
            let (nic, port) = (s.nic, n.port);
            self.core.hosts.nics[nic as usize].wake = Time::MAX;
            self.kick(port);
        }
    }

    /// A NIC looks again.
    pub(crate) fn nic_wake(&mut self, nic: u32) {
        let n = &mut self.core.hosts.nics[nic as usize];
        if n.wake == self.core.time.now && n.wake_rank == self.core.time.current.rank() {
            n.wake = Time::MAX;
            let port = n.port;
            self.kick(port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_set_of_places_finds_the_first_in_a_range(
            members in prop::collection::btree_set(0u32..300, 0..40),
            gone in prop::collection::vec(0u32..300, 0..20),
            from in 0u32..300,
            to in 0u32..300,
        ) {
            let mut places = Places::default();
            members.iter().for_each(|&m| places.set(m, true));
            gone.iter().for_each(|&m| places.set(m, false));
            let mut left = members.iter().copied().filter(|m| !gone.contains(m));
            prop_assert_eq!(places.is_empty(), left.clone().next().is_none());
            prop_assert_eq!(places.first(from, to), left.find(|m| (from..to).contains(m)));
        }
    }
}
