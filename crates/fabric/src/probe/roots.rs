//! From every stop to its root: stops and orders are joined when the run is over.

use super::blame::Asked;
use super::causes::{
    Burst, Causes, Fill, Filler, Found, Kept, Loss, Missing, Order, Place, Reason, Scope, Seen, Source, Stop, Stops,
    Waiting,
};
use super::crowd::{Had, Map};
use super::parts::Repeat;
use crate::id::FlowId;
use crate::packet::NONE;
use crate::routing::Rule;
use crate::run::Core;
use engine::Time;

/// Who ordered a stop and when, what filled it, and by which rule if nothing did.
type Ordered = (u32, Option<Time>, Option<Found>, Option<&'static str>);

/// Why a stop is ordered for an account that has nothing in any queue.
const AT_ONCE: &str = "a single packet on its way through takes more room than its threshold";

impl Core {
    /// Joins stops and orders, at the end of the run.
    pub(crate) fn end_causes(&mut self, repeats: &[Repeat]) -> Option<Stops> {
        let mut causes = self.probes.causes.take()?;
        debug_assert_eq!(causes.crowd.audit(&self.switches.queues, &self.pool), None);
        let now = self.time.now;
        let mut seen = std::mem::take(&mut causes.seen);
        let mut all = Vec::new();
        for seen in seen.iter_mut().filter(|seen| seen.until.is_none()) {
            // A flow that is done is no longer stopped.
            let done = match seen.scope {
                Scope::Flow(flow) => Some(self.hosts.senders[flow.index()].finished).filter(|end| *end != Time::MAX),
                _ => None,
            };
            seen.until = done.map(|end| end.max(seen.from));
            if seen.until.is_none() {
                self.kept_by(&mut all, &mut causes.crowd, seen.key.0, seen.scope, seen.from, now);
                causes.keep(seen.key, &all);
            }
        }
        let mut seen: Vec<&Seen> = seen.iter().collect();
        seen.sort_unstable_by_key(|seen| (seen.from, seen.key));
        let rows = Rows::new(self.ports.len(), &seen);
        let mut bursts: Vec<(u32, Burst)> = Vec::new();
        let mut stops: Vec<Stop> = Vec::with_capacity(seen.len());
        for (row, &seen) in (0..).zip(&seen) {
            let (by, ordered, found, rule) = self.ordered(&mut causes, seen);
            let cause = found.as_ref().and_then(|found| found.stop).and_then(|key| rows.get(key));
            let fill = found.as_ref().map(|found| found.fill);
            let rule = seen.rule.or(rule).filter(|_| fill.is_none());
            let more = found.and_then(|found| found.more);
            bursts.extend(more.as_ref().and_then(|more| more.burst).map(|burst| (row, burst)));
            let also = more.map(|more| more.also).unwrap_or_default();
            let &Seen { key: (port, _), scope, from, until, .. } = seen;
            stops.push(Stop { port, scope, from, until, by, ordered, fill, also, rule, cause, root: NONE });
        }
        find_last_hops(&causes, &seen, &mut stops);
        self.find_bursts(&mut stops, &bursts);
        find_roots(&mut stops);
        let kept = self.find_victims(&causes, &stops, &rows);
        let mut losses = std::mem::take(&mut causes.losses);
        let losses = self.sum_up(&causes, &mut losses, repeats, &stops, &rows);
        let mut fillers = std::mem::take(&mut causes.fillers);
        causes.crowd.fillers().into_iter().for_each(|(who, had)| fillers.entry(who).or_default().add(had));
        let filler =
            |((port, flow), Had { drops, bytes }): ((u32, u32), Had)| Filler { port, flow: FlowId(flow), drops, bytes };
        let mut fillers: Vec<Filler> = fillers.into_iter().map(filler).collect();
        fillers.sort_unstable();
        let needs = &self.hosts.needs;
        let marks_only = !(needs.every_ack || needs.telemetry || needs.delay || needs.incidents);
        let fullest = causes.fullest.filter(|_| stops.is_empty());
        let fullest_port = causes.fullest_port.filter(|(bytes, begins)| bytes <= begins);
        let queued = causes.queued();
        let dynamic = self.switches.buffers.iter().all(|buffer| buffer.ingress_part.is_none());
        Some(Stops { stops, kept, losses, fillers, fullest, fullest_port, marks_only, queued, dynamic })
    }

    /// What fills a node at the end of the run, for a stop that has not ended, or what did when it was ordered.
    fn now_or(&self, causes: &mut Causes, seen: &Seen, reason: Reason, then: Option<Found>) -> Option<Found> {
        let now = if seen.until.is_none() { self.found(causes, reason, Asked::Again) } else { None };
        now.or(then)
    }

    fn ordered(&self, causes: &mut Causes, seen: &Seen) -> Ordered {
        let port = seen.key.0;
        let peer = self.map.peer[port as usize];
        let (place, subject, until) = match &seen.source {
            Source::Own(own) => {
                let found = own.clone().and_then(|own| self.now_or(causes, seen, own.0, own.1));
                return (self.map.node[port as usize], own.as_ref().map(|_| seen.from), found, None);
            }
            Source::Neighbour(None) => return (self.map.node[peer as usize], None, None, None),
            &Source::Neighbour(Some(subject)) => {
                // What the neighbour decided while its word was under way is another order.
                let under_way = self.ports[peer as usize].latency + self.setup.switch.reaction;
                let sent = seen.from.saturating_sub(under_way);
                (Place::Port(peer), subject, sent)
            }
            &Source::Node(node, subject) => (Place::Node(node), subject, seen.from),
        };
        let by = |place: Place| match place {
            Place::Port(port) => self.map.node[port as usize],
            Place::Node(node) => node,
        };
        let (mut place, mut order) = (place, causes.order(place, subject, until));
        while let Some(&Order { reason: Reason::Heard { place: next, subject }, time, .. }) = order {
            (place, order) = (next, causes.order(next, subject, time));
        }
        let Some(order) = order else { return (by(place), None, None, None) };
        let (time, reason, found) = (order.time, order.reason, order.found(seen.until));
        let rule = matches!(reason, Reason::Account { .. }).then_some(AT_ONCE);
        (by(place), Some(time), self.now_or(causes, seen, reason, found), rule)
    }

    /// Ports that were full only of what another stop let go of at once: that stop is the cause. One that had something to send all the
    /// while is full by itself, and so is one because of which that stop was.
    fn find_bursts(&self, stops: &mut [Stop], bursts: &[(u32, Burst)]) {
        if bursts.is_empty() {
            return;
        }
        let mut ended: Map<u32, Vec<(Time, u32)>> = Map::default();
        for (row, stop) in (0..).zip(stops.iter()).filter(|(_, stop)| !matches!(stop.scope, Scope::Flow(_))) {
            if let Some(until) = stop.until {
                ended.entry(stop.port).or_default().push((until, row));
            }
        }
        ended.values_mut().for_each(|all| all.sort_unstable());
        // Where following causes leads from stops before the one at hand: none of these changes any more.
        let (mut known, mut path) = (vec![NONE; stops.len()], Vec::new());
        for &(row, burst) in bursts {
            let covers = |stop: &Stop| match stop.scope {
                Scope::Class(class) => class.0 as u32 == burst.first.queue / self.setup.switch.queues,
                Scope::Queue(queue) | Scope::Held(queue) => queue.0 == burst.first.queue,
                Scope::Flow(_) => false,
            };
            let Some(all) = ended.get(&burst.first.port) else { continue };
            let last = all.partition_point(|(until, _)| *until <= burst.first.start);
            let found = all[..last].iter().rev().map(|(_, row)| *row).find(|&row| covers(&stops[row as usize]));
            let Some(fill) = stops[row as usize].fill else { continue };
            let mut own = |cause: u32| {
                let end = follow(stops, cause, row, &mut known, &mut path);
                stops[end as usize].fill.is_some_and(|root| root.port == fill.port)
            };
            if let Some(cause) = found.filter(|&cause| stops[cause as usize].from <= burst.since && !own(cause)) {
                stops[row as usize].fill = Some(Fill { waiting: Waiting::Released, flows: 0, ..fill });
                stops[row as usize].cause = Some(cause);
                stops[row as usize].also.clear();
            }
        }
    }

    /// Who waited at which stop, in the order of these, and who of them does not go through the root.
    fn find_victims(&self, causes: &Causes, stops: &[Stop], rows: &Rows) -> Vec<Kept> {
        // By row, where those that waited there are, and how many.
        let mut places = vec![(0, 0); stops.len()];
        let mut begin = 0;
        for &(key, count) in &causes.kept_at {
            if let Some(row) = rows.get(key) {
                places[row as usize] = (begin, count as usize);
            }
            begin += count as usize;
        }
        let mut roots: Map<u32, Vec<u32>> = Map::default();
        let mut known: Map<(u32, FlowId), bool> = Map::default();
        // By flow, the port that was last asked for, counted from 1, and the answer: the next stop often has the same root.
        let mut last: Vec<(u32, bool)> = vec![(0, false); self.setup.flows.len()];
        let mut all = Vec::with_capacity(causes.kept.len());
        for (stop, &(begin, count)) in (0..).zip(&places).filter(|(_, (_, count))| *count > 0) {
            let root = stops[stop as usize].root;
            let Stop { fill, cause, also, .. } = &stops[root as usize];
            // Mostly it is a single port.
            let only = fill.filter(|_| cause.is_none() && also.is_empty()).map(|fill| [fill.port]);
            let ports = match &only {
                Some(only) => only.as_slice(),
                None => roots.entry(root).or_insert_with(|| root_ports(stops, root)),
            };
            let mut passes = |port: u32, flow: FlowId| {
                let last = &mut last[flow.index()];
                if last.0 != port + 1 {
                    let known = *known.entry((port, flow)).or_insert_with(|| self.passes(causes, flow, port));
                    *last = (port + 1, known);
                }
                last.1
            };
            let mut victim = |flow: FlowId| match *fill {
                // What is not known is not blamed.
                None => false,
                Some(Fill { port, waiting: Waiting::Receiver, .. }) => {
                    self.setup.flows[flow.index()].dst.0 != self.map.node[port as usize]
                }
                Some(_) => ports.iter().all(|&port| !passes(port, flow)),
            };
            let waited = &causes.kept[begin..begin + count];
            all.extend(waited.iter().map(|&(flow, time)| Kept { stop, flow, time, victim: victim(flow) }));
        }
        all
    }

    /// What flows lost, by port. What a flow was at sending again from a byte on is charged to what lost the byte last; if nothing did, to what lost its
    /// last packet without data, an acknowledgement. Otherwise nothing was lost: the sender did not wait long enough.
    fn sum_up(
        &self,
        causes: &Causes,
        missing: &mut [Vec<Missing>],
        repeats: &[Repeat],
        stops: &[Stop],
        rows: &Rows,
    ) -> Vec<Loss> {
        // What had taken the room waited for that stop, if there was none for the packet: with the port that filled, and that of the root.
        let rooms: Vec<(Option<u32>, (u32, u32))> = causes
            .rooms
            .iter()
            .map(|found| {
                let cause = found.stop.and_then(|key| rows.get(key));
                let end = cause.and_then(|cause| stops[stops[cause as usize].root as usize].fill);
                (cause, (found.fill.port, end.unwrap_or(found.fill).port))
            })
            .collect();
        let (mut all, mut places): (Vec<(_, Loss)>, Map<_, usize>) = Default::default();
        // The losses that a flow's packets are part of.
        let mut part_of: Vec<usize> = Vec::new();
        for (number, own) in (0..).zip(missing.iter_mut()).filter(|(_, own)| !own.is_empty()) {
            let flow = FlowId(number);
            // Mostly they are in order as they are.
            let order = |lost: &Missing| (lost.at, lost.port);
            if !own.is_sorted_by_key(order) {
                own.sort_by_key(order);
            }
            part_of.clear();
            // Mostly a packet is part of what the one before is part of.
            let (mut last, mut place) = (None, 0);
            for &Missing { at, port, how, room, .. } in own.iter() {
                if last != Some((port, how, room)) {
                    last = Some((port, how, room));
                    let found = causes.rooms.get(room as usize);
                    let (cause, by) = rooms.get(room as usize).copied().unwrap_or((None, (NONE, NONE)));
                    let key = (port, how, by, flow);
                    if all.get(place).is_none_or(|(before, _)| *before != key) {
                        place = *places.entry(key).or_insert_with(|| {
                            let victim = found.is_some_and(|found| self.is_victim(causes, flow, found, cause, stops));
                            let fill = found.map(|found| found.fill);
                            let cost = Time::ZERO;
                            let loss =
                                Loss { port, how, flow, packets: 0, first: at, last: at, cost, fill, cause, victim };
                            all.push((key, loss));
                            all.len() - 1
                        });
                    }
                    if let (Some(fill), Some(found)) = (&mut all[place].1.fill, found) {
                        fill.flows = fill.flows.max(found.fill.flows);
                    }
                }
                let loss = &mut all[place].1;
                (loss.packets, loss.last) = (loss.packets + 1, at);
                part_of.push(place);
            }
            let begin = repeats.partition_point(|repeat| repeat.flow < flow);
            for repeat in repeats[begin..].iter().take_while(|repeat| repeat.flow == flow) {
                let before = &own[..own.partition_point(|lost| lost.at < repeat.at)];
                let byte = |lost: &Missing| lost.byte <= repeat.byte && repeat.byte < lost.byte + lost.bytes as u64;
                let answer = |lost: &Missing| (lost.byte, lost.bytes) == (0, 0);
                if let Some(lost) = before.iter().rposition(byte).or_else(|| before.iter().rposition(answer)) {
                    all[part_of[lost]].1.cost += Time(repeat.time);
                }
            }
        }
        all.sort_unstable_by_key(|(key, _)| *key);
        all.into_iter().map(|(_, loss)| loss).collect()
    }

    /// Whether a flow for whose packet there was no room does not pass through the root of that.
    fn is_victim(&self, causes: &Causes, flow: FlowId, found: &Found, cause: Option<u32>, stops: &[Stop]) -> bool {
        let fill = found.fill;
        let ports = match cause {
            Some(cause) => root_ports(stops, stops[cause as usize].root),
            None if fill.waiting == Waiting::Receiver => {
                return self.setup.flows[flow.index()].dst.0 != self.map.node[fill.port as usize];
            }
            None => {
                [fill.port].into_iter().chain(found.more.iter().flat_map(|more| more.also.iter().copied())).collect()
            }
        };
        ports.into_iter().all(|port| !self.passes(causes, flow, port))
    }

    /// Whether packets of a flow left by a port, or may have: its path leads there, or one of several that they take.
    fn passes(&self, causes: &Causes, flow: FlowId, wanted: u32) -> bool {
        if causes.taken.get(&flow.0).is_some_and(|ports| ports.contains(&wanted)) {
            return true;
        }
        let spec = &self.setup.flows[flow.index()];
        let nic = self.nic_of(spec.src.0, flow.0, false);
        let first = self.hosts.nics[nic as usize].port;
        let several = self.setup.rule == Rule::ByPacket || self.switches.balances();
        let behind = |port: u32| self.map.node[self.map.peer[port as usize] as usize];
        if !several {
            // No path has more links than there are nodes.
            let mut port = Some(first);
            for _ in 0..self.setup.graph.nodes.len() {
                match port {
                    Some(port) if port == wanted => return true,
                    Some(own) if behind(own) != spec.dst.0 => {
                        port = self.path(behind(own), spec.dst.0, &spec.tuple, spec.start);
                    }
                    _ => return false,
                }
            }
            return false;
        }
        let (mut todo, mut seen) = (vec![first], Map::default());
        while let Some(port) = todo.pop() {
            if port == wanted {
                return true;
            }
            let node = behind(port);
            if node != spec.dst.0 && seen.insert(node, ()).is_none() {
                todo.extend(self.routing.next_hops(node, spec.dst.0));
            }
        }
        false
    }
}

/// The rows of stops, by port and number there.
struct Rows {
    /// By port, where its own begin.
    first: Vec<u32>,
    rows: Vec<u32>,
}

impl Rows {
    fn new(ports: usize, seen: &[&Seen]) -> Rows {
        let mut first = vec![0; ports + 1];
        // Those of a port are numbered from 1 on.
        seen.iter().for_each(|seen| first[seen.key.0 as usize + 1] += 1);
        (0..ports).for_each(|port| first[port + 1] += first[port]);
        let mut rows = vec![NONE; seen.len()];
        (0..).zip(seen).for_each(|(row, seen)| rows[(first[seen.key.0 as usize] + seen.key.1 - 1) as usize] = row);
        Rows { first, rows }
    }

    fn get(&self, (port, number): (u32, u32)) -> Option<u32> {
        let place = self.first[port as usize] + number.checked_sub(1)?;
        self.rows.get(place as usize).copied().filter(|row| *row != NONE)
    }
}

/// What the last links wait for that orders were about: a stop there at that instant.
fn find_last_hops(causes: &Causes, seen: &[&Seen], stops: &mut [Stop]) {
    let far = |stop: &Stop, seen: &Seen| {
        let Source::Node(node, subject) = seen.source else { return None };
        let order = causes.order(Place::Node(node), subject, stop.from)?;
        let Reason::LastHop { port } = order.reason else { return None };
        Some((port, order.time))
    };
    let asked: Vec<(usize, u32, Time)> = seen
        .iter()
        .enumerate()
        .filter_map(|(row, seen)| far(&stops[row], seen).map(|(port, time)| (row, port, time)))
        .collect();
    if asked.is_empty() {
        return;
    }
    let mut by_port: Map<u32, Vec<u32>> = Map::default();
    for (row, stop) in (0..).zip(stops.iter()).filter(|(_, stop)| !matches!(stop.scope, Scope::Flow(_))) {
        by_port.entry(stop.port).or_default().push(row);
    }
    for (row, port, time) in asked {
        let covers = |other: &&u32| {
            let stop = &stops[**other as usize];
            stop.from <= time && stop.until.is_none_or(|until| until > time)
        };
        let cause = by_port.get(&port).and_then(|rows| rows.iter().rev().find(covers)).copied();
        stops[row].cause = cause;
        if let Some(fill) = stops[row].fill.as_mut().filter(|_| cause.is_some()) {
            fill.waiting = Waiting::Stopped;
        }
    }
}

/// Where following causes leads: a stop without one, or any of a cycle. What is `known` of stops before `now` is used, and kept. `path` is room for it.
fn follow(stops: &[Stop], first: u32, now: u32, known: &mut [u32], path: &mut Vec<u32>) -> u32 {
    path.clear();
    path.push(first);
    let end = loop {
        let row = path[path.len() - 1];
        if known[row as usize] != NONE {
            break known[row as usize];
        }
        match stops[row as usize].cause {
            Some(next) if path.len() <= stops.len() => path.push(next),
            _ => break row,
        }
    };
    if path.iter().all(|&row| row < now) {
        path.iter().for_each(|&row| known[row as usize] = end);
    }
    end
}

/// Follows causes from every stop.
fn find_roots(stops: &mut [Stop]) {
    let mut path = Vec::new();
    for first in 0..stops.len() as u32 {
        path.clear();
        path.push(first);
        let root = loop {
            let last = path[path.len() - 1];
            let stop = &stops[last as usize];
            if stop.root != NONE {
                break stop.root;
            }
            let Some(next) = stop.cause else { break last };
            let Some(begin) = path.iter().position(|&row| row == next) else {
                path.push(next);
                continue;
            };
            let cycle = &path[begin..];
            if cycle.iter().all(|&row| stops[row as usize].until.is_none()) {
                break cycle.iter().copied().min().unwrap_or(last);
            }
            // What has ended waits for nothing. A stop that has not, and of whose node nothing is full any more, closes the round.
            let open = cycle.iter().copied().filter(|&row| stops[row as usize].until.is_none()).max();
            let cut = open.unwrap_or(last);
            stops[cut as usize].cause = None;
            if let Some(fill) = &mut stops[cut as usize].fill {
                fill.waiting = Waiting::Busy;
            }
            break cut;
        };
        path.iter().for_each(|&row| stops[row as usize].root = root);
    }
}

/// The ports that a root is: the one that filled, with those that were as full, or those of a cycle.
fn root_ports(stops: &[Stop], root: u32) -> Vec<u32> {
    let mut ports = Vec::new();
    let mut row = root;
    while let Some(next) = stops[row as usize].cause {
        ports.push(stops[row as usize].port);
        row = next;
        if row == root {
            return ports;
        }
    }
    let Stop { fill, also, .. } = &stops[root as usize];
    fill.iter().map(|fill| fill.port).chain(also.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ClassId;

    fn stop(port: u32, until: Option<u64>, cause: Option<u32>) -> Stop {
        let fill = Fill { port: port + 100, queue: 0, bytes: 1, flows: 0, waiting: Waiting::Busy };
        Stop {
            port,
            scope: Scope::Class(ClassId(0)),
            from: Time(1),
            until: until.map(Time),
            by: 0,
            ordered: None,
            fill: Some(fill),
            also: Vec::new(),
            rule: None,
            cause,
            root: NONE,
        }
    }

    fn stops(causes: &[Option<u32>]) -> Vec<Stop> {
        (0..).zip(causes).map(|(port, &cause)| stop(port, None, cause)).collect()
    }

    #[test]
    fn causes_lead_to_a_stop_without_one_or_round_in_a_cycle() {
        let mut stops = stops(&[None, Some(0), Some(1), Some(5), Some(3), Some(4), Some(4)]);
        find_roots(&mut stops);
        assert_eq!(stops.iter().map(|stop| stop.root).collect::<Vec<_>>(), [0, 0, 0, 3, 3, 3, 3]);
        assert_eq!(root_ports(&stops, 0), [100], "what filled");
        assert_eq!(root_ports(&stops, 3), [3, 5, 4], "the cycle");
        stops[0].also.push(9);
        assert_eq!(root_ports(&stops, 0), [100, 9], "what filled, and what was as full");
    }

    #[test]
    fn a_round_with_a_stop_that_has_ended_is_no_cycle() {
        let mut stops = stops(&[Some(2), Some(0), Some(1), Some(2)]);
        stops[1].until = Some(Time(5));
        find_roots(&mut stops);
        assert_eq!(stops.iter().map(|stop| stop.root).collect::<Vec<_>>(), [2, 2, 2, 2]);
        assert_eq!((stops[2].cause, root_ports(&stops, 2)), (None, vec![102]));
    }
}
