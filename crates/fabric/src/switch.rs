//! The switches: admit → queue → schedule → transmit, and the memory behind it.
//!
//! A forwarding host has the same queues, memory and accounts, and its packets go by the same code.

mod labels;
mod programs;
mod trim;

use crate::axes::flow_control::{FlowControl, Visit};
use crate::axes::load_balancing::Crossroads;
use crate::axes::queueing::{Discipline, PortQueues};
use crate::axes::{Chosen, Counter, LoadBalancer, Marking};
use crate::buffer::{Account, Buffer};
use crate::id::{ClassId, NodeId, PortId, QueueId};
use crate::packet::{Hop, Kind, PacketId, flag};
use crate::port::{Queue, QueueMasks, after};
use crate::prefetch::prefetch;
use crate::probe::{Counted, Lost, Scope};
use crate::routing::{PortMap, Tuple};
use crate::run::{Core, Network, hook};
use crate::setup::{AckLane, Overflow, Setup, Split, part};
use crate::topology::WHOLE;
use crate::view::{NodeView, Site};
use engine::{Event, Time};
use labels::Labels;
pub(crate) use labels::Siding;
use trim::Headers;

/// The state of all switches, and of what forwarding hosts queue.
pub(crate) struct Switches {
    pub(crate) queues: Vec<Queue>,
    pub(crate) masks: QueueMasks,
    /// By node; hosts that do not forward have an unused one.
    pub(crate) buffers: Vec<Buffer>,
    /// By port and class; behind them all, those of the second group.
    pub(crate) accounts: Vec<Account>,
    /// Classes of data.
    pub(crate) classes: u32,
    /// Queues of a port.
    pub(crate) per_port: u32,
    /// Timers of flow control at every port, and the first of each of its layers.
    pub(crate) timers: u32,
    /// As many as the scheme declares, which may be none.
    pub(crate) declared_timers: u32,
    pub(crate) first_timers: [u32; 2],
    /// How many flow controls there are.
    pub(crate) layers: u8,
    /// The control packets of trimming switches.
    headers: Option<Headers>,
    /// By node, what chooses among paths. Empty where the rule of routing is all.
    balancers: Vec<Option<Box<dyn LoadBalancer>>>,
    /// What chooses and writes labels.
    pub(crate) labels: Labels,
    /// Whether there is any of the two.
    balanced: bool,
    /// By node, programs that mark. Empty where there are none.
    markings: Vec<Option<Box<dyn Marking>>>,
    discipline: Discipline,
    /// By port, bytes that stay charged though its link has failed. Empty where none do.
    leaked: Vec<u64>,
    /// Whether something is noted on data packets when they leave a queue: telemetry, or how long they were stopped.
    pub(crate) noted: bool,
    /// Whether ACKs go ahead of all data, and nothing looks at them at switches but routing.
    pub(crate) answers_pass: bool,
    /// Whether nothing but routing, the memory's accounts and flow control have to do with data.
    pub(crate) data_passes: bool,
    /// Whether the same is true of ACKs, which join the data.
    pub(crate) answers_queue: bool,
    /// The class that goes ahead of all data, where that is a habit.
    control_class: Option<ClassId>,
    /// Whether nothing but flow control and round robin has to do with queues, which have no limits of their own.
    plain_queues: bool,
    /// Whether queues of ports have limits.
    egress_limited: bool,
    /// By port, what part of the usual limit its queues have. Empty where all have the whole.
    depths: Vec<u32>,
    /// Whether queues take turns packet by packet, and none is ahead of others.
    plain_turns: bool,
}

impl Setup {
    /// The memory of a node before the first packet.
    pub fn buffer(&self, map: &PortMap, node: usize) -> Buffer {
        let switch = &self.switch;
        let parts = map.of(node as u32).len() as u64 * self.classes as u64;
        let part = |of: u64| switch.pool[node].map(|pool| pool / of.max(1));
        let (ingress_part, egress_part) = match switch.split {
            Split::Dynamic => (None, None),
            Split::Absolute(most) => (Some(most), None),
            Split::Ingress => (part(parts * switch.groups as u64), None),
            Split::Egress => (None, part(parts * switch.queues as u64)),
        };
        let egress_part = match switch.overflow {
            Overflow::Drop => egress_part,
            Overflow::Trim(trimming) => {
                Some(trimming.queue as u64 * (self.nic.payload as u64 + self.nic.header as u64))
            }
        };
        Buffer {
            pool: switch.pool[node],
            reserve: switch.reserve,
            resume_gap: switch.resume_gap,
            cell: switch.cell as u64,
            global: (switch.global_headroom, 0),
            ingress_part,
            egress_part,
            ..Buffer::default()
        }
        .with_least_alpha(map.of(node as u32).map(|port| self.ports[port as usize].share.alpha).min().unwrap_or(0))
    }
}

impl Switches {
    pub(crate) fn new(setup: &Setup, map: &PortMap, chosen: &Chosen<'_>, lossless: bool) -> Switches {
        let (graph, switch, classes) = (&setup.graph, &setup.switch, setup.classes as u32);
        let per_port = classes * switch.queues;
        let buffer = |node: usize| setup.buffer(map, node);
        let nodes = 0..graph.nodes.len();
        let longest_rtt = setup.longest_rtt();
        let site = |node: usize| Site { setup, map, node: NodeId(node as u32), longest_rtt };
        let forwards = |node: &usize| graph.forwards(NodeId(*node as u32), map.of(*node as u32).len());
        let queues = nodes.clone().filter(forwards).map(|node| map.of(node as u32).len()).sum::<usize>();
        let group = || setup.ports.iter().flat_map(|p| std::iter::repeat_n(Account::new(p.share), classes as usize));
        // A list with a place for every node if any node needs one, else an empty list.
        fn only_if_any<T>(all: Vec<Option<T>>) -> Vec<Option<T>> {
            if all.iter().any(Option::is_some) { all } else { Vec::new() }
        }
        let balancer = |node| forwards(&node).then(|| chosen.load_balancing.switch(&site(node))).flatten();
        let labeller = |node| forwards(&node).then(|| chosen.load_balancing.labeller(&site(node), lossless)).flatten();
        let half = chosen.congestion_control.switch_half();
        let marking = half.as_deref().unwrap_or(chosen.marking);
        let marking = |node| forwards(&node).then(|| marking.switch(&site(node))).flatten();
        let balancers = only_if_any(nodes.clone().map(balancer).collect());
        let labels = Labels::new(only_if_any(nodes.clone().map(labeller).collect()));
        let markings = only_if_any(nodes.clone().map(marking).collect());
        let balanced = !balancers.is_empty() || labels.any();
        // With a single queue, turns are all the same.
        let discipline = match chosen.queueing.build() {
            Discipline::Bytes if per_port == 1 => Discipline::Packets,
            discipline => discipline,
        };
        let buffers: Vec<Buffer> = nodes.map(buffer).collect();
        let limited = switch.egress_alpha.is_some() || buffers.iter().any(|buffer| buffer.egress_part.is_some());
        let trims = !matches!(switch.overflow, Overflow::Drop);
        Switches {
            answers_queue: false,
            data_passes: !limited
                && markings.is_empty()
                && !matches!(discipline, Discipline::Own(_))
                && !balanced
                && setup.habits.control_class.is_none(),
            answers_pass: setup.nic.ack_lane == AckLane::Control && !balanced && !trims && markings.is_empty(),
            control_class: setup.habits.control_class,
            plain_queues: !limited && markings.is_empty() && !matches!(discipline, Discipline::Own(_)),
            egress_limited: limited,
            depths: match setup.ports.iter().all(|port| port.depth == WHOLE) {
                true => Vec::new(),
                false => setup.ports.iter().map(|port| port.depth).collect(),
            },
            plain_turns: switch.express.is_none() && matches!(discipline, Discipline::Packets),
            queues: vec![Queue::default(); queues * per_port as usize],
            masks: QueueMasks::new(map.count(), per_port as usize),
            buffers,
            accounts: (0..switch.groups).flat_map(|_| group()).collect(),
            classes,
            per_port,
            timers: 1,
            declared_timers: 0,
            first_timers: [0; 2],
            layers: 1,
            headers: match switch.overflow {
                Overflow::Drop => None,
                Overflow::Trim(trimming) => {
                    let apart = setup.nic.ack_lane == AckLane::Control;
                    assert!(apart, "switches that trim need ACKs in the control queue: an ACK cannot be trimmed");
                    Some(Headers::new(trimming, setup))
                }
            },
            balanced,
            balancers,
            labels,
            markings,
            discipline,
            leaked: Vec::new(),
            noted: false,
        }
    }

    /// Bytes of a packet that is dropped at `port` stay charged.
    fn leak(&mut self, port: u32, size: u64) {
        if self.leaked.len() <= port as usize {
            self.leaked.resize(port as usize + 1, 0);
        }
        self.leaked[port as usize] += size;
    }

    /// What stays charged of packets that were dropped at `port`.
    pub(crate) fn leaked_at(&self, port: u32) -> u64 {
        self.leaked.get(port as usize).copied().unwrap_or(0)
    }

    /// Whether queues, accounts and memory are all that switches keep: no program of load balancing, marking or trimming has something of its own.
    pub(crate) fn keep_packets_alone(&self) -> bool {
        !self.balanced && self.markings.is_empty() && self.headers.is_none() && self.leaked.is_empty()
    }

    /// What trimming, load balancing and marking counted.
    pub(crate) fn counters(&self) -> Vec<Counter> {
        let mut all = Counter::merged(self.balancers.iter().flatten().map(|balancer| balancer.counters()));
        all.extend(self.labels.counters());
        all.extend(Counter::merged(self.markings.iter().flatten().map(|marking| marking.counters())));
        all
    }

    /// Whether a marking program or a discipline of its own wants to see every packet in its queue.
    #[inline]
    fn looks_at_queues(&self) -> bool {
        !self.markings.is_empty() || matches!(self.discipline, Discipline::Own(_))
    }

    /// Notifies what chooses among paths of new routing tables.
    pub(crate) fn rerouted(&mut self) {
        self.balancers.iter_mut().flatten().for_each(|balancer| balancer.rerouted());
        self.labels.rerouted();
    }

    /// Whether packets of a flow may take several paths.
    pub(crate) fn balances(&self) -> bool {
        self.balanced
    }

    /// What trimming counted.
    pub(crate) fn trim_counters(&self) -> Vec<Counter> {
        self.headers.iter().flat_map(Headers::counters).collect()
    }

    /// Takes over what another shard has of a node, but for its packets.
    pub(crate) fn absorb_node(&mut self, other: &mut Switches, node: usize) {
        self.buffers[node] = other.buffers[node].clone();
        if let (Some(mine), Some(theirs)) = (self.balancers.get_mut(node), other.balancers.get_mut(node)) {
            std::mem::swap(mine, theirs);
        }
        self.labels.absorb_node(&mut other.labels, node);
        if let (Some(mine), Some(theirs)) = (self.markings.get_mut(node), other.markings.get_mut(node)) {
            std::mem::swap(mine, theirs);
        }
    }

    /// Takes over what another shard has of a port, but for its packets.
    pub(crate) fn absorb_port(&mut self, other: &Switches, port: usize, ports: usize, groups: usize) {
        self.masks.copy(&other.masks, port as u32);
        for group in 0..groups {
            let first = (group * ports + port) * self.classes as usize;
            let accounts = first..first + self.classes as usize;
            self.accounts[accounts.clone()].copy_from_slice(&other.accounts[accounts]);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.headers, &other.headers) {
            mine.absorb_port(theirs, port);
        }
    }

    /// Adds what another shard counted as a whole.
    pub(crate) fn absorb_counts(&mut self, other: &Switches) {
        if let (Some(mine), Some(theirs)) = (&mut self.headers, &other.headers) {
            mine.absorb_counts(theirs);
        }
    }

    /// What is wrong with the books of a node, whose queues hold `held` bytes.
    pub(crate) fn audit_node(
        &self,
        name: &str,
        node: usize,
        ports: std::ops::Range<u32>,
        all_ports: usize,
        held: u64,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        let buffer = &self.buffers[node];
        let leaked: u64 = ports.clone().map(|port| self.leaked_at(port)).sum();
        if held + leaked != buffer.used {
            wrong.push(format!("the queues of {name} hold {held} B, its buffer says {}", buffer.used));
        }
        let each = all_ports * self.classes as usize;
        let (mut by_ingress, mut global) = (0, 0);
        for port in ports {
            let first = (port * self.classes) as usize;
            for group in self.accounts.chunks(each.max(1)) {
                for account in &group[first..first + self.classes as usize] {
                    by_ingress += account.total();
                    global += account.global as u64;
                }
            }
        }
        if by_ingress != buffer.used {
            wrong
                .push(format!("the ingress accounts of {name} sum to {by_ingress} B, its buffer says {}", buffer.used));
        }
        if global != buffer.global.1 {
            wrong.push(format!(
                "the accounts of {name} have {global} B of common headroom, its buffer says {}",
                buffer.global.1
            ));
        }
        if buffer.pool.is_some_and(|pool| buffer.shared > pool) || buffer.global.1 > buffer.global.0 {
            wrong.push(format!("{name} holds more than its memory"));
        }
        wrong
    }

    /// What is wrong with the control packets at a port, which are so many bytes.
    pub(crate) fn audit_control(&self, port: usize, control: u64) -> Option<String> {
        let (counted, most) = self.headers.as_ref()?.bytes(port);
        let wrong = control != counted || counted > most;
        wrong.then(|| format!("port {port} has {control} B of headers of {most}, its counter says {counted}"))
    }
}

impl Core {
    /// Whether a pause of its class could stop a packet: data, and ACKs that travel with it.
    #[inline]
    pub(crate) fn is_counted(&self, id: PacketId) -> bool {
        match self.pool[id].kind {
            Kind::Data => self.switches.control_class != Some(ClassId(self.pool[id].class)),
            Kind::Frame | Kind::Signal | Kind::Notice | Kind::Advice => false,
            _ => self.setup.nic.ack_lane != AckLane::Control,
        }
    }

    /// The port by which `node` sends to `host` what has these addresses and was sent at `sent`, by the rule of routing, if any path is
    /// left.
    #[inline(never)]
    pub(crate) fn path(&self, node: u32, host: u32, tuple: &Tuple, sent: Time) -> Option<u32> {
        self.routing.choose(node, host, self.setup.rule, node ^ self.setup.salt, tuple, sent)
    }

    #[inline(never)]
    fn balanced(&mut self, node: u32, in_port: u32, id: PacketId) -> Option<u32> {
        let packet = &self.pool[id];
        let candidates = self.routing.next_hops(node, packet.dst);
        // A switch without a choice is not asked.
        if candidates.len() < 2 {
            return candidates.first().copied();
        }
        let Some(balancer) = &mut self.switches.balancers[node as usize] else {
            return self.path(node, packet.dst, &packet.tuple, packet.stamp);
        };
        let place = balancer.choose(&mut Crossroads {
            now: self.time.now,
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
        });
        Some(candidates[place])
    }

    /// A queue for a packet: its class's, and among these by hash of the flow.
    #[inline]
    pub(crate) fn hashed_queue(&self, id: PacketId) -> u32 {
        let packet = &self.pool[id];
        let each = self.setup.switch.queues;
        let base = packet.class as u32 * each;
        if each == 1 { base } else { base + packet.tuple.hash(QUEUE_SEED) % each }
    }

    /// The queues of a class at any port.
    pub(crate) fn class_queues(&self, class: u8) -> std::ops::Range<u32> {
        let each = self.setup.switch.queues;
        class as u32 * each..(class as u32 + 1) * each
    }

    /// Which account packets that came in by `port` in `class` are in, or that of the second group.
    #[inline]
    pub(crate) fn account_number(&self, port: u32, class: u8, second: bool) -> usize {
        let group = if second { self.ports.len() } else { 0 };
        group * self.switches.classes as usize + (port * self.switches.classes + class as u32) as usize
    }

    /// Whether a queue may take `size` more bytes under the egress limit.
    #[inline]
    fn egress_admits(&self, out: u32, queue: QueueId, size: u64) -> bool {
        let p = &self.ports[out as usize];
        let buffer = &self.switches.buffers[p.node as usize];
        let limit = match (self.setup.switch.egress_alpha, buffer.pool, buffer.egress_part) {
            (_, _, Some(part)) => part,
            (Some(alpha), Some(pool), None) => (((pool - buffer.shared) * alpha) >> 16) + buffer.reserve,
            _ => return true,
        };
        let limit = match self.switches.depths.get(out as usize) {
            None | Some(&WHOLE) => limit,
            Some(&depth) => self.shortened(limit, depth),
        };
        self.switches.queues[(p.first_queue + queue.0) as usize].bytes + size <= limit
    }

    /// The limit of a queue whose length is a part of what is usual. Limits of trimming count all but the packet that is being sent, and the part is of
    /// the whole queue. A packet always fits.
    fn shortened(&self, limit: u64, depth: u32) -> u64 {
        let packet = self.setup.max_packet();
        let sending = if self.switches.headers.is_some() { packet } else { 0 };
        part(limit + sending, depth).saturating_sub(sending).max(packet.min(limit))
    }

    /// Whether the queue of a packet has room for it.
    pub(crate) fn queue_admits(&self, out: u32, visit: &Visit) -> bool {
        self.egress_admits(out, visit.queue, visit.size as u64)
    }

    /// Takes a packet into the switch's memory, if there is room in its queue and in its account.
    #[inline(always)]
    fn admits(&mut self, node: u32, in_port: u32, out: u32, visit: &Visit, second: bool) -> bool {
        let size = visit.size as u64;
        if self.switches.egress_limited && !self.egress_admits(out, visit.queue, size) {
            return false;
        }
        let account = self.account_number(in_port, visit.class.0, second);
        self.switches.buffers[node as usize].admit(&mut self.switches.accounts[account], size)
    }

    /// Puts a packet that was admitted in its queue.
    #[inline]
    fn join(&mut self, out: u32, visit: &Visit, second: bool) {
        let &Visit { packet, in_port, queue, size, .. } = visit;
        let joining = &mut self.pool[packet];
        joining.in_port = in_port.0;
        // Since when it waits. On a link the same word is about the packet behind it.
        joining.next_arrival = self.time.now;
        if second {
            joining.flags |= flag::SECOND;
        }
        let p = &mut self.ports[out as usize];
        p.queued += size as u64;
        let q = &mut self.switches.queues[(p.first_queue + queue.0) as usize];
        if q.bytes == 0 {
            self.switches.masks.set_filled(out, queue.0, true);
        }
        q.bytes += size as u64;
        q.packets.push(&mut self.pool, packet);
        if self.pool.traced() {
            self.note_joining(out, visit);
        }
    }

    /// Lets go of a queued packet's memory.
    #[inline]
    fn release(&mut self, node: u32, base: u32, id: PacketId) {
        let packet = &mut self.pool[id];
        let (in_port, class, size) = (base + packet.in_port as u32, packet.class, packet.size as u64);
        let second = packet.flags & flag::SECOND != 0;
        packet.flags &= !flag::SECOND;
        let number = self.account_number(in_port, class, second);
        self.switches.buffers[node as usize].release(&mut self.switches.accounts[number], size);
    }

    /// Puts a control packet at the end of the control queue of `port`.
    pub(crate) fn queue_control(&mut self, port: u32, id: PacketId) {
        let p = &mut self.ports[port as usize];
        p.queued += self.pool[id].size as u64;
        p.control.push(&mut self.pool, id);
        self.kicks.push(port);
    }

    /// Puts a control packet that this node made in the control queue of `port`, if a trimming switch has room for it.
    pub(crate) fn queue_signal(&mut self, port: u32, id: PacketId) {
        match self.switches.headers {
            Some(_) => self.queue_header(port, id),
            None => self.queue_control(port, id),
        }
    }

    /// Marks the packet that just left a queue if what it leaves behind there, or at the port, is long: more than [`Port::ecn_min`].
    ///
    /// [`Port::ecn_min`]: crate::port::Port::ecn_min
    #[inline(never)]
    fn mark(&mut self, port: u32, left: u64, queued: u64, id: PacketId) {
        let Some(ecn) = self.setup.ports[port as usize].ecn else { return };
        let left = if ecn.by_port { queued } else { left };
        if left <= ecn.min {
            return;
        }
        let marked = left > ecn.max || {
            let node = self.ports[port as usize].node;
            self.dice.chance(node, ecn.probability * (left - ecn.min) as f64 / (ecn.max - ecn.min) as f64)
        };
        // An ACK that shares the data's queue is marked too, but that mark is never read: its flag echoes the data's mark.
        if marked && self.pool[id].kind == Kind::Data {
            self.pool[id].flags |= flag::MARKED;
            self.counts.marked += 1;
            self.probes.count_at(port, Counted::Mark, 1);
            let peer = self.ports[port as usize].peer;
            self.counts.marked_receiver += self.ports[peer as usize].host as u64;
        }
    }

    /// Whether a packet for `port` need not wait for anything, unless it is for the end of a transmission at this very instant.
    #[inline]
    fn is_free(&self, port: u32) -> bool {
        let p = &self.ports[port as usize];
        // At a host that forwards, every packet takes a turn with the host's own, and leaves a look for those behind it.
        p.queued == 0 && !p.wake && p.paused == 0 && !p.relays && p.free_at <= self.time.now
    }

    /// Whether such a packet may go on at once if it moves nothing in the books.
    #[inline]
    fn is_quick(&self, port: u32) -> bool {
        self.quick || self.is_quick_noted(port)
    }

    #[cold]
    #[inline(never)]
    fn is_quick_noted(&self, port: u32) -> bool {
        let idle = self.ports[port as usize].free_at < self.time.now;
        idle && self.probes.causes.as_ref().is_some_and(|causes| causes.idle_passes())
    }

    /// The same of a packet that was admitted to that account. In a run that asks why, one that has to wait for that end joins its queue if it may be why
    /// its node orders something.
    #[inline]
    fn may_pass(&self, port: u32, account: usize) -> bool {
        self.is_free(port) && (self.unwatched || self.may_pass_noted(port, account))
    }

    #[inline(never)]
    fn may_pass_noted(&self, port: u32, account: usize) -> bool {
        let (p, account) = (&self.ports[port as usize], &self.switches.accounts[account]);
        let quiet = || account.paused || !self.switches.buffers[p.node as usize].over(account);
        p.free_at < self.time.now || self.quick && quiet()
    }

    /// Which queue of `port` sends next.
    #[inline(always)]
    fn pick_queue(&mut self, port: u32) -> Option<u32> {
        if !self.switches.plain_turns {
            return self.pick_any(port);
        }
        let p = &mut self.ports[port as usize];
        let queue = self.switches.masks.next_ready(port, p.last as u32)?;
        p.last = queue as u16;
        Some(queue)
    }

    /// The same where a queue goes before all others, or queues have bytes to spend. Most ports have one word of queues.
    #[inline(never)]
    fn pick_any(&mut self, port: u32) -> Option<u32> {
        if self.switches.masks.one_word()
            && self.switches.classes == 1
            && matches!(self.switches.discipline, Discipline::Bytes)
        {
            let ready = self.switches.masks.ready(port);
            if let Some(express) = self.setup.switch.express
                && ready >> express & 1 == 1
            {
                return Some(express);
            }
            let p = &mut self.ports[port as usize];
            let queues = &mut self.switches.queues[p.first_queue as usize..][..self.switches.per_port as usize];
            let mut queue = p.last as u32;
            while ready >> queue & 1 == 0
                || queues[queue as usize].deficit < self.pool[queues[queue as usize].packets.head()].size as u32
            {
                queue = after(ready, queue)?;
                let deficit = &mut queues[queue as usize].deficit;
                *deficit = deficit.saturating_add(self.setup.switch.quantum);
            }
            p.last = queue as u16;
            return Some(queue);
        }
        self.pick_any_of_many(port)
    }

    #[inline(never)]
    fn pick_any_of_many(&mut self, port: u32) -> Option<u32> {
        if let Some(express) = self.setup.switch.express {
            let each = self.setup.switch.queues;
            let mut first = (0..self.switches.classes).map(|class| class * each + express);
            if let Some(queue) = first.find(|&queue| self.switches.masks.is_ready(port, queue)) {
                return Some(queue);
            }
        }
        let p = &self.ports[port as usize];
        let (last, first) = (p.last as u32, p.first_queue as usize);
        let queue = match &self.switches.discipline {
            Discipline::Packets => self.switches.masks.next_ready(port, last)?,
            Discipline::Bytes => {
                let mut queue = last;
                loop {
                    let q = &mut self.switches.queues[first + queue as usize];
                    let fits = |deficit: u32| deficit >= self.pool[q.packets.head()].size as u32;
                    if self.switches.masks.is_ready(port, queue) && fits(q.deficit) {
                        break queue;
                    }
                    queue = self.switches.masks.next_ready(port, queue)?;
                    let deficit = &mut self.switches.queues[first + queue as usize].deficit;
                    *deficit = deficit.saturating_add(self.setup.switch.quantum);
                }
            }
            Discipline::Own(queueing) => {
                let queues = &mut self.switches.queues[first..first + self.switches.per_port as usize];
                let (masks, pool, setup) = (&self.switches.masks, &self.pool, &*self.setup);
                queueing.pick(&mut PortQueues { port, last, queues, masks, pool, setup })?.0
            }
        };
        self.ports[port as usize].last = queue as u16;
        Some(queue)
    }

    /// Fetches the packet that `port` will most likely send next: it may have lain in its queue for long.
    #[inline]
    pub(crate) fn fetch_next(&self, port: u32) {
        let p = &self.ports[port as usize];
        if let Some(queue) = self.switches.masks.next_ready(port, p.last as u32) {
            self.pool.fetch(self.switches.queues[(p.first_queue + queue) as usize].packets.head());
        }
    }

    /// Drops everything that waits at `port`. Gives the data packets, whose memory is free again and who are to be discarded.
    pub(crate) fn flush(&mut self, port: u32) -> Vec<Visit> {
        let mut freed = Vec::new();
        if self.ports[port as usize].has_queues() {
            (0..self.switches.per_port).for_each(|queue| freed.extend(self.empty_queue(port, queue)));
            self.counts.dropped_down += freed.len() as u64;
            freed.iter().for_each(|visit| self.note_loss(port, visit.packet, Lost::Down));
        }
        let p = &mut self.ports[port as usize];
        p.urgent = false;
        if let Some(headers) = &mut self.switches.headers {
            headers.forget(port);
        }
        let mut waiting = vec![];
        while let Some(id) = p.frames.pop(&self.pool).or_else(|| p.control.pop(&self.pool)) {
            p.queued -= self.pool[id].size as u64;
            waiting.push(id);
        }
        if p.host {
            waiting.extend(self.hosts.nics[p.nic as usize].drop_acks(&self.pool));
        }
        for id in waiting {
            self.counts.dropped_down += 1;
            self.probes.count_at(port, Counted::Drop, 1);
            self.note_loss(port, id, Lost::Down);
            self.discard(id);
        }
        freed
    }

    /// Takes everything out of a queue of `port`, to be dropped.
    pub(crate) fn empty_queue(&mut self, port: u32, queue: u32) -> Vec<Visit> {
        let mut freed = Vec::new();
        let p = &self.ports[port as usize];
        let (first, node, base, local) = (p.first_queue, p.node, p.base, PortId(p.local));
        while let Some(id) = self.switches.queues[(first + queue) as usize].pop(&self.pool) {
            let (in_port, class, size) = (self.pool[id].in_port, self.pool[id].class, self.pool[id].size);
            match self.setup.habits.leaks {
                true => self.switches.leak(port, size as u64),
                false => self.release(node, base, id),
            }
            freed.push(Visit {
                packet: id,
                in_port: PortId(in_port),
                out_port: local,
                queue: QueueId(queue),
                class: ClassId(class),
                size,
            });
            self.ports[port as usize].queued -= size as u64;
        }
        self.probes.count_at(port, Counted::Drop, freed.len());
        self.note_rearranged((first + queue) as usize);
        self.switches.queues[(first + queue) as usize].deficit = 0;
        self.switches.masks.set_filled(port, queue, false);
        let hears = !self.setup.habits.leaks;
        for visit in &freed {
            if hears && self.pool[visit.packet].kind == Kind::Data {
                self.run_marking(node, base, |marking, at| marking.dequeued(at, visit));
            }
        }
        freed
    }

    /// Drops a packet at `port` for want of room, or of a path.
    #[cold]
    #[inline(never)]
    fn lose(&mut self, port: u32, id: PacketId, full: bool) {
        *(if full { &mut self.counts.dropped_full } else { &mut self.counts.dropped_down }) += 1;
        self.probes.count_at(port, Counted::Drop, 1);
        match (full, self.ports[port as usize].up) {
            (true, _) => self.note_loss(port, id, Lost::Room),
            // What finds no path is lost behind the link it came by.
            (false, true) => self.note_loss(self.ports[port as usize].peer, id, Lost::NoPath),
            (false, false) => self.note_loss(port, id, Lost::Down),
        }
        self.discard(id);
    }

    /// Stops or resumes one class of everything that `port` sends.
    pub(crate) fn pause_class(&mut self, port: u32, class: u8, pause: bool) {
        self.log_pause(port, pause);
        self.turn_class(port, class, pause);
    }

    /// Keeps the instant of a pause or a resume, if that is asked for.
    pub(crate) fn log_pause(&mut self, port: u32, pause: bool) {
        if self.setup.measure.pause_log {
            self.probes.log_pause(self.time.now, port, pause);
        }
    }

    /// The same of which nothing is kept.
    pub(crate) fn turn_class(&mut self, port: u32, class: u8, pause: bool) {
        self.note_pause(port, class, pause, pause);
        self.probes.note_whole(port, class, pause);
        self.probes.breadth.turn(port, class, self.time.now, pause);
        if self.probes.causes.is_some() {
            self.note_stop(port, Scope::Class(ClassId(class)), pause);
        }
        if self.ports[port as usize].has_queues() {
            for queue in self.class_queues(class) {
                self.switches.masks.set_paused(port, queue, pause);
                self.refresh_queue(port, queue);
            }
        }
    }

    /// A pause or resume of something in a class has come, of which something is `paused` now.
    pub(crate) fn note_pause(&mut self, port: u32, class: u8, pause: bool, paused: bool) {
        let p = &mut self.ports[port as usize];
        let (before, now) = (p.paused, self.time.now);
        p.paused = if paused { before | 1 << class } else { before & !(1 << class) };
        match (before != 0, p.paused != 0) {
            (false, true) => p.pause_start = now,
            (true, false) => p.pause_total += now - p.pause_start,
            _ => {}
        }
        // A word that changes nothing, such as a pause that is renewed, is none of them.
        if before != p.paused {
            *(if pause { &mut self.counts.pauses } else { &mut self.counts.resumes }) += 1;
            self.probes.count_at(port, if pause { Counted::Pause } else { Counted::Resume }, 1);
            self.refresh_nic(port);
        }
        if !pause {
            self.kicks.push(port);
        }
    }
}

/// Seed of the hash that spreads flows over the queues of a class; unlike any node's.
const QUEUE_SEED: u32 = 0x9e37_79b9;

impl<F: FlowControl> Network<F> {
    /// A packet has come in by `in_port`.
    #[inline(never)]
    pub(crate) fn switch_receive(&mut self, in_port: u32, id: PacketId, next: Event) {
        let core = &mut self.core;
        let node = core.ports[in_port as usize].node;
        if core.switches.balanced {
            return self.balanced_receive(node, in_port, id);
        }
        // For every packet at every switch: worth a copy of its own.
        let (packet, seed) = (&core.pool[id], node ^ core.setup.salt);
        match core.routing.choose(node, packet.dst, core.setup.rule, seed, &packet.tuple, packet.stamp) {
            Some(out) => self.forward(in_port, out, id, next),
            None => {
                self.count_gone(in_port, id);
                self.core.lose(in_port, id, false);
            }
        }
    }

    /// Notifies flow control that counts of a packet that is no longer here and was in no queue.
    #[inline(always)]
    pub(crate) fn count_gone(&mut self, in_port: u32, id: PacketId) {
        if F::COUNTS && self.core.is_counted(id) {
            let (class, size) = (ClassId(self.core.pool[id].class), self.core.pool[id].size);
            hook!(self, in_port, |scheme, node, at, local| scheme.gone(node, at, local, class, size));
        }
    }

    /// The same of one that has come in.
    #[inline(always)]
    pub(crate) fn count_arrival(&mut self, in_port: u32, id: PacketId) {
        if F::COUNTS && self.core.is_counted(id) {
            let (class, size) = (ClassId(self.core.pool[id].class), self.core.pool[id].size);
            hook!(self, in_port, |scheme, node, at, local| scheme.arrived(node, at, local, class, size));
        }
    }

    /// The same of one that is being sent.
    #[inline(always)]
    pub(crate) fn count_sent(&mut self, port: u32, class: u8, size: u16) {
        if F::COUNTS {
            hook!(self, port, |scheme, node, at, local| scheme.sent(node, at, local, ClassId(class), size));
        }
    }

    /// The same where something else than routing's rule chooses among paths.
    #[inline(never)]
    fn balanced_receive(&mut self, node: u32, in_port: u32, id: PacketId) {
        let core = &mut self.core;
        if core.switches.labels.any() {
            return self.labelled_receive(node, in_port, id);
        }
        match core.balanced(node, in_port, id) {
            Some(out) => self.send_on(in_port, out, id),
            None => {
                self.count_gone(in_port, id);
                self.core.lose(in_port, id, false);
            }
        }
    }

    /// As [`Network::forward`], for all but the most common case, which has a copy of its own.
    #[inline(never)]
    fn send_on(&mut self, in_port: u32, out: u32, id: PacketId) {
        self.forward(in_port, out, id, Event::ZERO);
    }

    /// A packet that came in by `in_port` is to leave by `out`. The next arrival here that is no event yet comes at `next`.
    #[inline(always)]
    fn forward(&mut self, in_port: u32, out: u32, id: PacketId, next: Event) {
        let core = &mut self.core;
        let p = &core.ports[in_port as usize];
        let (node, base, local) = (p.node, p.base, PortId(p.local));
        let state = &mut self.nodes[node as usize];
        let out = match core.pool[id].kind {
            Kind::Data => {
                let chosen = PortId((out - base) as u16);
                let port = self.scheme.divert(state, &mut NodeView::new(core, node, base), local, id, chosen);
                if port != chosen {
                    assert!(port.index() < core.map.of(node).len(), "port {port} is not a port of this node");
                }
                base + port.0 as u32
            }
            _ => out,
        };
        if core.large {
            prefetch(&core.ports[out as usize].free_at);
        }
        let (class, kind, size) = (core.pool[id].class, core.pool[id].kind, core.pool[id].size);
        let apart = matches!(kind, Kind::Signal | Kind::Notice | Kind::Advice);
        let express = core.switches.control_class == Some(ClassId(class));
        let up = core.ports[out as usize].up;
        if kind != Kind::Data && (core.setup.nic.ack_lane == AckLane::Control || apart) || express {
            return self.pass_control(in_port, out, id);
        }
        let out_port = PortId((out - base) as u16);
        let visit = Visit { packet: id, in_port: local, out_port, queue: QueueId(0), class: ClassId(class), size };
        let at = &mut NodeView::new(core, node, base);
        let queue = self.scheme.queue(state, at, &visit);
        let visit = Visit { queue, ..visit };
        let second = self.scheme.second_group(state, at, &visit);
        if !F::LOOKS_AT_QUEUES && core.switches.plain_queues && up && core.is_free(out) && core.is_quick(out) && !second
        {
            let account = core.account_number(in_port, class, false);
            let (account, buffer) = (&core.switches.accounts[account], &mut core.switches.buffers[node as usize]);
            if self.scheme.unmoved(account, buffer, size as u64) {
                let used = buffer.used + buffer.charge(size as u64);
                let admitted = self.scheme.admits(state, &mut NodeView::new(core, node, base), &visit);
                let p = &mut core.ports[out as usize];
                if admitted && (p.free_at < core.time.now || core.ends_next(out, next)) {
                    let buffer = &mut core.switches.buffers[node as usize];
                    buffer.watermark = buffer.watermark.max(used);
                    core.ports[out as usize].last = queue.0 as u16;
                    if core.switches.noted {
                        core.note_passing(in_port, out, id, false);
                    }
                    let lag = self.lag_at(node, base, out_port);
                    return self.core.start_late(out, id, size, lag);
                }
            }
        }
        let (core, state) = (&mut self.core, &mut self.nodes[node as usize]);
        let admitted = up
            && self.scheme.admits(state, &mut NodeView::new(core, node, base), &visit)
            && core.admits(node, in_port, out, &visit, second);
        if !admitted {
            if up && core.pool.traced() {
                core.note_no_room(in_port, out, &visit, second);
            }
            if up && core.switches.headers.is_some() {
                self.trim(out, &visit, second);
                return self.drain_kicks();
            }
            self.count_gone(in_port, id);
            return self.core.lose(out, id, up);
        }
        let account = core.account_number(in_port, class, second);
        if !F::LOOKS_AT_QUEUES && core.may_pass(out, account) && !core.switches.looks_at_queues() {
            self.scheme.enqueued(state, &mut NodeView::new(core, node, base), &visit);
            self.drain_kicks();
            // Unless the scheme has something to say by this port, or the packet before is not quite through.
            let core = &mut self.core;
            let p = &core.ports[out as usize];
            if core.may_pass(out, account) && (p.free_at < core.time.now || core.ends_next(out, next)) {
                return self.pass(out, &visit, second);
            }
            self.core.join(out, &visit, second);
        } else {
            core.join(out, &visit, second);
            self.scheme.enqueued(state, &mut NodeView::new(core, node, base), &visit);
            if !self.core.switches.markings.is_empty() && kind == Kind::Data {
                self.core.run_marking(node, base, |marking, at| marking.enqueued(at, &visit));
            }
            self.drain_kicks();
        }
        self.kick(out);
    }

    /// A packet has come in by `in_port`, to which nothing but routing looks if it is an ACK, and nothing but routing, accounts and flow
    /// control if it is data. Most find their port idle, and most data finds the accounts so that it moves nothing there: these are sent at once. The others
    /// take the long way, which does the same.
    #[inline(always)]
    pub(crate) fn straight_on(&mut self, in_port: u32, id: PacketId, next: Event, data: bool) {
        let core = &mut self.core;
        let node = core.ports[in_port as usize].node;
        let (packet, seed) = (&core.pool[id], node ^ core.setup.salt);
        let (size, class) = (packet.size, packet.class);
        let Some(out) = core.routing.choose(node, packet.dst, core.setup.rule, seed, &packet.tuple, packet.stamp)
        else {
            self.count_gone(in_port, id);
            return self.core.lose(in_port, id, false);
        };
        let (now, p) = (core.time.now, &mut core.ports[out as usize]);
        let idle = p.queued == 0 && !p.wake && p.up && p.free_at <= now;
        if !data {
            if !idle || p.free_at == now {
                return self.pass_control(in_port, out, id);
            }
            let lag = if F::CHOOSES { self.lag(out) } else { Time::ZERO };
            return self.core.start_sized(out, id, size, lag);
        }
        if !idle || p.paused != 0 {
            return self.forward_data(in_port, out, id, next);
        }
        let account = &core.switches.accounts[(in_port * core.switches.classes + class as u32) as usize];
        let buffer = &mut core.switches.buffers[node as usize];
        if !self.scheme.unmoved(account, buffer, size as u64) {
            return self.forward_data(in_port, out, id, next);
        }
        if F::CHOOSES {
            return self.pass_chosen(in_port, out, id, next);
        }
        if p.free_at == now {
            return self.pass_after(in_port, out, id, next);
        }
        buffer.watermark = buffer.watermark.max(buffer.used + buffer.charge(size as u64));
        p.last = class as u16;
        if core.switches.noted {
            core.note_passing(in_port, out, id, F::LOOKS_AT_QUEUES);
        }
        core.start_sized(out, id, size, Time::ZERO);
    }

    /// Data that could go straight on comes as the packet before it has just been sent.
    #[inline(never)]
    fn pass_after(&mut self, in_port: u32, out: u32, id: PacketId, next: Event) {
        // While an account is watched it has to be seen in its queue.
        let watched = !self.core.quick && self.core.pool.traced();
        if watched || !self.core.ends_next(out, next) {
            return self.forward_data(in_port, out, id, next);
        }
        let queue = QueueId(self.core.pool[id].class as u32);
        self.leave_at_once(in_port, out, id, queue);
    }

    /// Data could go straight on, if flow control lets it, which has a say.
    #[inline(never)]
    fn pass_chosen(&mut self, in_port: u32, out: u32, id: PacketId, next: Event) {
        let core = &mut self.core;
        let (packet, p) = (&core.pool[id], &core.ports[out as usize]);
        let (node, base, out_port, tie) = (p.node, p.base, PortId(p.local), p.free_at == core.time.now);
        let (class, queue) = (ClassId(packet.class), QueueId(0));
        let visit =
            Visit { packet: id, in_port: PortId((in_port - base) as u16), out_port, queue, class, size: packet.size };
        let state = &mut self.nodes[node as usize];
        let Some(queue) = self.scheme.passes(state, &NodeView::new(core, node, base), &visit) else {
            return self.forward_data(in_port, out, id, next);
        };
        if tie && !core.ends_next(out, next) {
            return self.forward_data(in_port, out, id, next);
        }
        self.scheme.passed(state, &mut NodeView::new(core, node, base), &Visit { queue, ..visit });
        self.leave_at_once(in_port, out, id, queue);
    }

    /// Sends data on as if it had joined that queue and left it in the same instant.
    #[inline(always)]
    fn leave_at_once(&mut self, in_port: u32, out: u32, id: PacketId, queue: QueueId) {
        let core = &mut self.core;
        let (size, p) = (core.pool[id].size, &mut core.ports[out as usize]);
        let buffer = &mut core.switches.buffers[p.node as usize];
        buffer.watermark = buffer.watermark.max(buffer.used + buffer.charge(size as u64));
        // A queue that goes before all others has no turn.
        if !F::CHOOSES || core.setup.switch.express.is_none_or(|first| queue.0 % core.setup.switch.queues != first) {
            p.last = queue.0 as u16;
        }
        if core.switches.noted {
            core.note_passing(in_port, out, id, F::LOOKS_AT_QUEUES);
        }
        let lag = if F::CHOOSES { self.lag(out) } else { Time::ZERO };
        let class = self.core.pool[id].class;
        self.core.start_late(out, id, size, lag);
        self.count_sent(out, class, size);
    }

    /// As [`Network::forward`], for data that cannot go straight on.
    #[inline(never)]
    fn forward_data(&mut self, in_port: u32, out: u32, id: PacketId, next: Event) {
        self.forward(in_port, out, id, next);
    }

    /// A control packet goes on by `out`, ahead of all data.
    #[inline(never)]
    fn pass_control(&mut self, in_port: u32, out: u32, id: PacketId) {
        let core = &mut self.core;
        if !core.ports[out as usize].up {
            return core.lose(out, id, false);
        }
        match core.pool[id].kind {
            Kind::Signal => {
                core.probes.count_at(out, Counted::Signal, 1);
                let out_local = PortId(core.ports[out as usize].local);
                let mut signal = Self::read_signal(&core.pool[id]);
                hook!(self, in_port, |scheme, node, at, local| scheme.passing(node, at, local, out_local, &mut signal));
                let packet = &mut self.core.pool[id];
                packet.size = signal.size;
                packet.seq = crate::message::Packer::of(signal.message).0 as u64;
            }
            Kind::Notice | Kind::Advice => core.probes.count_at(out, Counted::Signal, 1),
            _ => {}
        }
        let core = &mut self.core;
        if core.switches.headers.is_some() {
            core.queue_header(out, id);
            return self.drain_kicks();
        }
        if core.is_idle(out) {
            self.core.leave_control(out, id);
            let lag = self.lag(out);
            return self.core.start(out, id, lag);
        }
        let p = &mut core.ports[out as usize];
        p.queued += core.pool[id].size as u64;
        p.control.push(&mut core.pool, id);
        self.kick(out);
    }

    /// Sends a packet that was admitted at once, as if it had been in its queue and had left it in the same instant.
    #[inline]
    fn pass(&mut self, out: u32, visit: &Visit, second: bool) {
        let &Visit { packet, in_port, queue, class, size, .. } = visit;
        let core = &mut self.core;
        debug_assert!(core.setup.switch.express.is_none());
        let p = &mut core.ports[out as usize];
        let (node, base, tx_bytes, table) = (p.node, p.base, p.tx_bytes, p.table);
        p.last = queue.0 as u16;
        if core.switches.noted {
            if core.pool.traced() {
                core.note_passing_by(out, visit);
                core.trace_noted(out, packet);
            }
            if core.hosts.needs.telemetry && core.pool[packet].kind == Kind::Data {
                let mbps = core.wire.mbps[table as usize];
                core.pool.push_hop(packet, Hop::new(core.time.now, out, tx_bytes, 0, mbps));
            }
        }
        let number = core.account_number(base + in_port.0 as u32, class.0, second);
        core.switches.buffers[node as usize].release(&mut core.switches.accounts[number], size as u64);
        self.scheme.dequeued(&mut self.nodes[node as usize], &mut NodeView::new(core, node, base), visit);
        self.drain_kicks_after(out);
        let lag = self.lag_at(node, base, visit.out_port);
        let core = &mut self.core;
        core.start_late(out, packet, size, lag);
        if core.ports[out as usize].queued > 0 && !core.link_waits(out) {
            core.schedule_end(out);
        }
    }

    /// Sends the next data packet of a port with queues; false if none may go.
    #[inline(always)]
    pub(crate) fn switch_transmit(&mut self, port: u32) -> bool {
        let core = &mut self.core;
        let Some(queue) = core.pick_queue(port) else { return false };
        let p = &mut core.ports[port as usize];
        let number = (p.first_queue + queue) as usize;
        let q = &mut core.switches.queues[number];
        let Some(id) = q.packets.pop(&core.pool) else { return false };
        let packet = &mut core.pool[id];
        let (in_port, class, size, kind) = (packet.in_port, packet.class, packet.size as u64, packet.kind);
        let second = packet.flags & flag::SECOND != 0;
        packet.flags &= !flag::SECOND;
        q.bytes -= size;
        let left = q.bytes;
        p.queued -= size;
        let (node, base, local, queued, tx_bytes) = (p.node, p.base, PortId(p.local), p.queued, p.tx_bytes);
        let long = queued > p.ecn_min as u64;
        if !core.switches.plain_turns {
            let each = core.setup.switch.queues;
            let express = |first: u32| queue % each == first;
            match &core.switches.discipline {
                Discipline::Packets => {}
                _ if core.setup.switch.express.is_some_and(express) => {}
                Discipline::Bytes => q.deficit = if left == 0 { 0 } else { q.deficit - size as u32 },
                Discipline::Own(queueing) => queueing.sent(q, size as u32, left),
            }
        }
        if left == 0 {
            core.switches.masks.set_filled(port, queue, false);
        }
        let account = core.account_number(base + in_port as u32, class, second);
        core.switches.buffers[node as usize].release(&mut core.switches.accounts[account], size);
        if long {
            core.mark(port, left, queued, id);
        }
        let visit = Visit {
            packet: id,
            in_port: PortId(in_port),
            out_port: local,
            queue: QueueId(queue),
            class: ClassId(class),
            size: size as u16,
        };
        if core.switches.noted {
            if core.pool.traced() {
                core.mark_leaving(port, queue, id, second);
            }
            if core.hosts.needs.telemetry && kind == Kind::Data {
                let at = &NodeView::new(core, node, base);
                let queued = self.scheme.reported_queue(&self.nodes[node as usize], at, &visit).unwrap_or(queued);
                let mbps = core.wire.mbps[core.ports[port as usize].table as usize];
                let queued = queued.min(u32::MAX as u64) as u32;
                core.pool.push_hop(id, Hop::new(core.time.now, port, tx_bytes, queued, mbps));
            }
        }
        self.scheme.dequeued(&mut self.nodes[node as usize], &mut NodeView::new(core, node, base), &visit);
        if !self.core.switches.markings.is_empty() {
            self.core.run_marking(node, base, |marking, at| match kind {
                Kind::Data => marking.dequeued(at, &visit),
                _ => marking.passed(at, visit.out_port, visit.size),
            });
        }
        self.drain_kicks_after(port);
        let lag = self.lag_at(node, base, local);
        self.core.start_late(port, id, size as u16, lag);
        self.count_sent(port, class, size as u16);
        true
    }

    /// Gives every port that a hook called upon its chance, but for `port`, which is taken by a packet already: nothing that
    /// the scheme sets free may slip in before it.
    #[inline(always)]
    fn drain_kicks_after(&mut self, port: u32) {
        if !self.core.kicks.is_empty() {
            self.core.ports[port as usize].wake = true;
            self.drain_kicks();
            self.core.ports[port as usize].wake = false;
        }
    }
}
