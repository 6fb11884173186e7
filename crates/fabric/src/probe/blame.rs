//! What fills a node that orders a stop, and what that waits for.

use super::causes::{Causes, Fill, Found, Heap, Key, More, Reason, Scope, Waiting};
use super::crowd::{Crowd, Guests};
use crate::id::{ClassId, QueueId};
use crate::packet::NONE;
use crate::run::Core;
use std::ops::Range;

/// Who asks what fills a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A stop is ordered: ports that are as full as others have their turns.
    Order,
    /// What was ordered goes on: the fullest of several.
    Again,
    /// A packet is dropped: the fullest of several, and nobody asks what let go of what is there.
    Drop,
}

impl Core {
    /// What fills a node now, for that reason, and what that waits for.
    pub(super) fn found(&self, causes: &mut Causes, reason: Reason, asked: Asked) -> Option<Found> {
        match reason {
            Reason::Queue { port, queue } => {
                let bytes = self.switches.queues[(self.ports[port as usize].first_queue + queue) as usize].bytes;
                Some(self.fill(causes, Heap { bytes, port, queue }, asked))
            }
            Reason::Account { port, class, second } => {
                let total = self.switches.accounts[self.account_number(port, class, second)].total();
                if total == 0 && self.ports[port as usize].host {
                    return Some(Found::only(Fill { port, queue: 0, bytes: 0, flows: 0, waiting: Waiting::Receiver }));
                }
                let local = self.ports[port as usize].local;
                let which = |guests: &Guests| guests.from(local, second);
                let own = self.fullest(causes, port, self.class_queues(class), total, asked, which);
                // A scheme may keep packets in queues of another class than that of their account.
                own.or_else(|| self.fullest(causes, port, 0..self.switches.per_port, total, asked, which))
            }
            Reason::Toward { port, host, class } => {
                let local = self.ports[port as usize].local;
                self.fullest(causes, port, self.class_queues(class), u64::MAX, asked, |guests| {
                    let own = guests.flows().filter(|guest| guest.in_port() == local && guest.dst == host);
                    own.map(|guest| guest.bytes).sum()
                })
            }
            Reason::Memory { port } => {
                self.fullest(causes, port, 0..self.switches.per_port, u64::MAX, asked, |guests| guests.bytes())
            }
            // What it waits for is known when the run is over: it may be run by another thread.
            Reason::LastHop { port } => {
                Some(Found::only(Fill { port, queue: 0, bytes: 0, flows: 0, waiting: Waiting::Busy }))
            }
            Reason::Heard { .. } => None,
        }
    }

    /// The egress port, of the node of `port`, with most bytes in these queues of those that `which` counts, which are `total` in all. Of
    /// several with at least half as many, the one whose turn it is: each of them would be enough to keep the node full.
    fn fullest(
        &self,
        causes: &mut Causes,
        port: u32,
        among: Range<u32>,
        total: u64,
        asked: Asked,
        which: impl Fn(&Guests) -> u64,
    ) -> Option<Found> {
        let queues = |out: u32| {
            let first = self.ports[out as usize].first_queue;
            among.clone().map(move |queue| (queue, (first + queue) as usize))
        };
        // A port without queues has none with packets.
        let masks = &self.switches.masks;
        let outs = self.map.of(self.ports[port as usize].node).filter(|&out| masks.any_filled(out));
        let bytes = |out: u32| queues(out).map(|(_, slot)| self.switches.queues[slot].bytes).sum::<u64>();
        // Lists that are kept for the next time.
        let (mut full, mut heaps) = std::mem::take(&mut causes.lists);
        full.clear();
        heaps.clear();
        full.extend(outs.map(|out| (bytes(out), out)).filter(|(bytes, _)| *bytes > 0));
        if full.len() > 1 {
            full.sort_unstable_by_key(|&(bytes, out)| (std::cmp::Reverse(bytes), out));
        }
        let heap = |crowd: &mut Crowd, out: u32| {
            let (mut sum, mut deepest) = (0, (0, 0));
            for (queue, slot) in queues(out).filter(|(_, slot)| self.switches.queues[*slot].bytes > 0) {
                let here = which(crowd.of(slot, &self.switches.queues, &self.pool));
                sum += here;
                if here > deepest.0 {
                    deepest = (here, queue);
                }
            }
            Some(Heap { bytes: sum, port: out, queue: deepest.1 }).filter(|heap| heap.bytes > 0)
        };
        // Mostly there is one.
        if let &[(_, only)] = full.as_slice() {
            causes.lists = (full, heaps);
            return heap(&mut causes.crowd, only).map(|heap| self.fill(causes, heap, asked));
        }
        let (mut best, mut rest) = (0u64, total);
        for &(most, out) in &full {
            // No other port can have half as much as the fullest.
            if most.min(rest) < best.div_ceil(2) {
                break;
            }
            if let Some(heap) = heap(&mut causes.crowd, out) {
                (best, rest) = (best.max(heap.bytes), rest.saturating_sub(heap.bytes));
                heaps.push(heap);
            }
        }
        if heaps.len() > 1 {
            heaps.retain(|heap| heap.bytes >= best.div_ceil(2));
            heaps.sort_unstable_by_key(|heap| (std::cmp::Reverse(heap.bytes), heap.port));
        }
        let place = if heaps.len() < 2 || asked != Asked::Order { 0 } else { causes.next_turn(&heaps) };
        let blamed = heaps.get(place).copied();
        let others = heaps.iter().enumerate().filter(|(at, _)| *at != place).map(|(_, heap)| heap);
        let saturated = |heap: &&Heap| self.waits_for(causes, heap.port, heap.queue).0 == Waiting::Busy;
        let also: Vec<u32> = others.filter(saturated).map(|heap| heap.port).collect();
        causes.lists = (full, heaps);
        let mut found = self.fill(causes, blamed?, asked);
        if !also.is_empty() {
            found.more.get_or_insert_default().also = also;
        }
        Some(found)
    }

    /// What a queue with so many bytes that count waits for.
    fn fill(&self, causes: &mut Causes, heap: Heap, asked: Asked) -> Found {
        let Heap { bytes, port, queue } = heap;
        let (waiting, stop) = self.waits_for(causes, port, queue);
        let flows = if stop.is_some() { 0 } else { self.flows_at(&mut causes.crowd, port) };
        let asks = waiting == Waiting::Busy && asked != Asked::Drop;
        let burst = if asks { causes.burst(port, self.mbps(port)) } else { None };
        let more = burst.map(|burst| Box::new(More { burst: Some(burst), also: Vec::new() }));
        Found { fill: Fill { port, queue, bytes, flows, waiting }, stop, more }
    }

    /// What a queue waits for that is the only one of its port with packets, where one more is being dropped because of it.
    #[inline(always)]
    pub(super) fn fill_alone(&self, causes: &mut Causes, port: u32, queue: u32) -> Found {
        let slot = (self.ports[port as usize].first_queue + queue) as usize;
        let (waiting, stop) = self.waits_for(causes, port, queue);
        let count = causes.crowd.note_drop(slot, port, &self.switches.queues, &self.pool) as u32;
        let (bytes, flows) = (self.switches.queues[slot].bytes, if stop.is_some() { 0 } else { count });
        Found { stop, ..Found::only(Fill { port, queue, bytes, flows, waiting }) }
    }

    #[inline(always)]
    fn waits_for(&self, causes: &Causes, port: u32, queue: u32) -> (Waiting, Option<Key>) {
        let (masks, p) = (&self.switches.masks, &self.ports[port as usize]);
        let stopped = masks.is_paused(port, queue) || masks.is_held(port, queue);
        let head = self.switches.queues[(p.first_queue + queue) as usize].packets.head();
        // Its first packet was there before the last stop ended.
        let before = head != NONE && self.pool[head].next_arrival < causes.numbers[port as usize].1;
        if (stopped || before)
            && let Some(stop) = self.stop_of(causes, port, queue, stopped, before)
        {
            return stop;
        }
        (if p.up { Waiting::Busy } else { Waiting::Down }, None)
    }

    /// The stop that a queue waits for, or whose end its first packet has seen.
    #[inline(never)]
    fn stop_of(
        &self,
        causes: &Causes,
        port: u32,
        queue: u32,
        stopped: bool,
        before: bool,
    ) -> Option<(Waiting, Option<Key>)> {
        let class = ClassId((queue / self.setup.switch.queues) as u8);
        let scopes = [Scope::Class(class), Scope::Queue(QueueId(queue)), Scope::Held(QueueId(queue))];
        if stopped {
            let open = scopes.iter().find_map(|&scope| causes.last.get(&(port, scope))?.open());
            if let Some(key) = open {
                return Some((Waiting::Stopped, Some(key)));
            }
        }
        if !before {
            return None;
        }
        let head = self.switches.queues[(self.ports[port as usize].first_queue + queue) as usize].packets.head();
        let joined = self.pool[head].next_arrival;
        let ended = scopes.iter().filter_map(|&scope| causes.last.get(&(port, scope))?.ended);
        let last = ended.filter(|(_, end)| joined < *end).max_by_key(|(key, end)| (*end, *key));
        last.map(|(key, _)| (Waiting::Draining, Some(key)))
    }

    fn mbps(&self, port: u32) -> u32 {
        self.wire.mbps[self.ports[port as usize].table as usize]
    }

    /// How many flows have packets at a port, of whatever class: all of them share its link.
    pub(super) fn flows_at(&self, crowd: &mut Crowd, port: u32) -> u32 {
        let first = self.ports[port as usize].first_queue;
        let slot = |queue: u32| (first + queue) as usize;
        let mut filled = self.switches.masks.all_filled(port).map(slot);
        let Some(only) = filled.next() else { return 0 };
        let mut of = |slot: usize, all: &mut Vec<u32>| {
            let guests = crowd.of(slot, &self.switches.queues, &self.pool);
            all.extend(guests.flows().map(|guest| guest.flow));
        };
        let Some(second) = filled.next() else {
            return crowd.of(only, &self.switches.queues, &self.pool).count() as u32;
        };
        // A flow may have packets in several queues.
        let mut all = Vec::new();
        [only, second].into_iter().chain(filled).for_each(|slot| of(slot, &mut all));
        all.sort_unstable();
        all.dedup();
        all.len() as u32
    }
}
