//! What load balancing does beyond a choice: labels on packets, packets that wait aside, and advice from switch to switch.

use super::Core;
use crate::axes::Counter;
use crate::axes::flow_control::FlowControl;
use crate::axes::load_balancing::{Crossroads, Labeller, Order, Orders, Pass};
use crate::id::{FlowId, PortId};
use crate::packet::{Fifo, Kind, NONE, Packet, PacketId};
use crate::probe::Counted;
use crate::run::{Class, Network};
use engine::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a control packet from switch to switch.
const ADVICE: u16 = 64;

/// Packets that wait aside at a switch.
#[derive(Clone, Copy)]
pub(crate) struct Siding {
    packets: Fifo,
    /// They go on as soon as there is room.
    released: bool,
}

/// What chooses at switches and writes labels, and what waits for it.
pub(crate) struct Labels {
    /// By node; empty where there are none.
    labellers: Vec<Option<Box<dyn Labeller>>>,
    /// By node and number. None is empty.
    sidings: BTreeMap<(u32, u32), Siding>,
    /// Nodes that will look again whether there is room for what they have released.
    looking: BTreeSet<u32>,
    /// What is to be done after a hook.
    orders: Vec<Order>,
}

/// Where a packet goes.
enum Way {
    Out(u32),
    Aside(u32),
}

impl Labels {
    pub(super) fn new(labellers: Vec<Option<Box<dyn Labeller>>>) -> Labels {
        Labels { labellers, sidings: BTreeMap::new(), looking: BTreeSet::new(), orders: Vec::new() }
    }

    /// Whether packets have labels.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        !self.labellers.is_empty()
    }

    pub(super) fn rerouted(&mut self) {
        self.labellers.iter_mut().flatten().for_each(|labeller| labeller.rerouted());
    }

    pub(super) fn counters(&self) -> Vec<Counter> {
        Counter::merged(self.labellers.iter().flatten().map(|labeller| labeller.counters()))
    }

    /// Whether packets were kept in order, by schemes that do.
    pub(crate) fn in_order(&self) -> bool {
        self.labellers.iter().flatten().all(|labeller| labeller.in_order())
    }

    /// What waits aside.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Fifo> {
        self.sidings.values().map(|siding| &siding.packets)
    }

    /// Takes over what another shard has of a node, but for its packets.
    pub(super) fn absorb_node(&mut self, other: &mut Labels, node: usize) {
        if let (Some(mine), Some(theirs)) = (self.labellers.get_mut(node), other.labellers.get_mut(node)) {
            std::mem::swap(mine, theirs);
        }
    }

    /// Gives away what waits aside.
    pub(crate) fn take_sidings(&mut self) -> impl Iterator<Item = ((u32, u32), Fifo)> + use<> {
        std::mem::take(&mut self.sidings).into_iter().map(|(key, siding)| (key, siding.packets))
    }

    /// Takes over what waited aside in another shard, whose run is over.
    pub(crate) fn put_siding(&mut self, key: (u32, u32), packets: Fifo) {
        self.sidings.insert(key, Siding { packets, released: false });
    }
}

impl Core {
    /// Lets a switch's labeller do something without a packet.
    fn at_labeller(&mut self, node: u32, act: impl FnOnce(&mut dyn Labeller, &mut Orders<'_>)) {
        let Labels { labellers, sidings, orders, .. } = &mut self.switches.labels;
        if let Some(labeller) = &mut labellers[node as usize] {
            act(&mut **labeller, &mut Orders { now: self.time.now, node, sidings, list: orders });
        }
    }

    /// Where a packet goes that came in by `in_port`, if any path is left.
    fn way(&mut self, node: u32, in_port: u32, id: PacketId) -> Option<Way> {
        let dst = self.pool[id].dst;
        let candidates = self.routing.next_hops(node, dst);
        if candidates.is_empty() {
            return None;
        }
        let Labels { labellers, sidings, orders, .. } = &mut self.switches.labels;
        let Some(labeller) = &mut labellers[node as usize] else {
            let packet = &self.pool[id];
            return self.path(node, dst, &packet.tuple, packet.stamp).map(Way::Out);
        };
        let now = self.time.now;
        let (packet, label) = self.pool.labelled(id);
        let at = &mut Crossroads {
            now,
            packet,
            in_port: Some(PortId(self.ports[in_port as usize].local)),
            node,
            base: self.map.base[node as usize],
            salt: self.setup.salt,
            candidates,
            ports: &self.ports,
            mbps: &self.wire.mbps,
            flows: &self.setup.flows,
            routing: &self.routing,
            map: &self.map,
            dice: &mut self.dice.streams[node as usize],
        };
        Some(match labeller.pass(at, label, &mut Orders { now, node, sidings, list: orders }) {
            Pass::By(place) => Way::Out(candidates[place]),
            Pass::Wait(siding) => Way::Aside(siding),
        })
    }

    /// Sends a word from a switch to the first one on the path of a flow.
    fn send_advice(&mut self, node: u32, order: Order) {
        let Order::Advise { flow, class, tuple, kind, word, .. } = order else { return };
        let (now, dst) = (self.time.now, self.setup.flows[flow as usize].src.0);
        let Some(port) = self.path(node, dst, &tuple, now).filter(|&port| self.ports[port as usize].up) else { return };
        self.probes.count_at(port, Counted::Signal, 1);
        self.counts.created += 1;
        self.counts.control_bytes += ADVICE as u64;
        let blank = Packet { kind: Kind::Advice, size: ADVICE, stamp: now, ..Packet::BLANK };
        let id = self.pool.insert(Packet { seq: word, tag: kind, flow, class, dst, tuple, ..blank });
        self.queue_signal(port, id);
    }

    /// Looks again for room a little later.
    fn look_again(&mut self, node: u32, after: Time) {
        if self.switches.labels.looking.insert(node) {
            self.plan_timer(self.time.now + after, Class::Balance, node * 2 + 1);
        }
    }
}

impl<F: FlowControl> Network<F> {
    /// A packet has come in at a switch of a scheme with labels.
    pub(super) fn labelled_receive(&mut self, node: u32, in_port: u32, id: PacketId) {
        let core = &mut self.core;
        let packet = &core.pool[id];
        if packet.kind == Kind::Advice && core.routing.home(packet.dst) == Some(node) {
            let (flow, kind, word) = (FlowId(packet.flow), packet.tag, packet.seq);
            core.counts.consumed += 1;
            core.pool.remove(id);
            core.at_labeller(node, |labeller, orders| labeller.advised(flow, kind, word, orders));
            return self.follow_orders(node);
        }
        let way = core.way(node, in_port, id);
        let ahead = |order: &Order| matches!(order, Order::Advise { ahead: true, .. });
        if core.switches.labels.orders.iter().any(ahead) {
            let (first, rest) = std::mem::take(&mut core.switches.labels.orders).into_iter().partition(ahead);
            core.switches.labels.orders = rest;
            let first: Vec<Order> = first;
            first.into_iter().for_each(|order| core.send_advice(node, order));
            self.drain_kicks();
        }
        let core = &mut self.core;
        match way {
            Some(Way::Out(out)) => self.send_on(in_port, out, id),
            Some(Way::Aside(siding)) => {
                let (local, now) = (core.ports[in_port as usize].local, core.time.now);
                (core.pool[id].in_port, core.pool[id].next_arrival) = (local, now);
                let empty = Siding { packets: Fifo::default(), released: false };
                let siding = core.switches.labels.sidings.entry((node, siding)).or_insert(empty);
                siding.packets.push(&mut core.pool, id);
            }
            None => {
                self.count_gone(in_port, id);
                self.core.lose(in_port, id, false);
            }
        }
        self.follow_orders(node);
    }

    /// Does what a labeller wants done.
    fn follow_orders(&mut self, node: u32) {
        while !self.core.switches.labels.orders.is_empty() {
            let mut orders = std::mem::take(&mut self.core.switches.labels.orders);
            for order in orders.drain(..) {
                match order {
                    Order::Advise { .. } => self.core.send_advice(node, order),
                    Order::Timer(at) => self.core.plan_timer(at, Class::Balance, node * 2),
                    Order::Release(siding) => {
                        if let Some(siding) = self.core.switches.labels.sidings.get_mut(&(node, siding)) {
                            siding.released = true;
                        }
                        self.drain_siding(node, siding);
                    }
                }
            }
            // What a hook wanted done meanwhile comes after.
            let list = &mut self.core.switches.labels.orders;
            orders.append(list);
            *list = orders;
        }
        self.drain_kicks();
    }

    /// Lets packets of a siding go on while they fit into the switch's shared memory. The headroom is for what is in flight.
    fn drain_siding(&mut self, node: u32, number: u32) {
        loop {
            let core = &mut self.core;
            let Some(siding) = core.switches.labels.sidings.get_mut(&(node, number)) else { return };
            let id = siding.packets.head();
            if id == NONE {
                core.switches.labels.sidings.remove(&(node, number));
                return core.at_labeller(node, |labeller, orders| labeller.drained(number, orders));
            }
            let packet = &core.pool[id];
            let (in_port, class, size) =
                (core.map.base[node as usize] + packet.in_port as u32, packet.class, packet.size);
            let out = core.routing.next_hops(node, packet.dst).first().copied();
            let account = &core.switches.accounts[core.account_number(in_port, class, false)];
            if account.total() > 0 && !core.switches.buffers[node as usize].fits(account, size as u64) {
                // By the time that a packet takes on the way out, there may be room for one.
                let table = core.ports[out.unwrap_or(in_port) as usize].table;
                let after = core.wire.time(table, size);
                return core.look_again(node, after);
            }
            if let Some(siding) = core.switches.labels.sidings.get_mut(&(node, number)) {
                siding.packets.pop(&core.pool);
            }
            match out {
                Some(out) => self.send_on(in_port, out, id),
                None => {
                    self.count_gone(in_port, id);
                    self.core.lose(in_port, id, false);
                }
            }
        }
    }

    /// A timer of a labeller goes off, or a switch looks again whether there is room for what it has released.
    pub(crate) fn balance_event(&mut self, source: u32) {
        let node = source / 2;
        self.core.progress.timers -= 1;
        if source.is_multiple_of(2) {
            self.core.at_labeller(node, |labeller, orders| labeller.timer(orders));
            return self.follow_orders(node);
        }
        let labels = &mut self.core.switches.labels;
        labels.looking.remove(&node);
        let own = labels.sidings.range((node, 0)..=(node, u32::MAX));
        let released: Vec<u32> = own.filter(|(_, siding)| siding.released).map(|(key, _)| key.1).collect();
        released.into_iter().for_each(|siding| self.drain_siding(node, siding));
        self.follow_orders(node);
    }
}
