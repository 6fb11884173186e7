//! Which queue waits for which: distinguishes a network that is stuck from one that is done, or was stopped while it moved.

use super::Core;
use super::outcome::{Stall, Wait};
use crate::axes::flow_control::FlowControl;
use crate::id::{NodeId, PortId, QueueId};
use crate::setup::Setup;
use crate::topology::Link;
use engine::{Rate, Time};

/// How long nothing may move, besides what links and timeouts take, before a run is ended.
pub(super) const PATIENCE: Time = Time::from_ms(1000);
/// The same before queues that wait in a cycle at the end of a run are taken for deadlocked although timers are set.
const QUIET: Time = Time::from_ms(1);

/// How long packets may move without any flow coming further: they may be sent again and again into a deadlock, or faster than they are
/// answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GainPatience {
    /// Besides what memory takes to drain.
    base: Time,
    /// How often memory may drain, and where packets are lost by chance also time out, before it cannot be chance that nothing came of it.
    rounds: u64,
    /// The slowest link.
    slowest: Rate,
    /// What the fullest node has held.
    pub(crate) peak: u64,
}

impl GainPatience {
    /// None where links lose nearly everything. `patience` is how long nothing may move.
    pub(super) fn new(setup: &Setup, patience: Time, timeout: Time) -> Option<GainPatience> {
        // A packet and its answer may cross every link that loses some.
        let links = &setup.graph.links;
        let comes: f64 = links.iter().map(|link| arrives(link, setup).powi(2)).product();
        let slowest = setup.graph.rates().min()?;
        let (rounds, timeouts) = match comes {
            1.0.. => (ROUNDS, 0),
            _ if comes < RARELY => return None,
            _ => {
                let rounds = ((UNLIKELY.ln() / (1.0 - comes).ln()).ceil() as u64).max(ROUNDS);
                (rounds, timeout.0.saturating_mul(rounds))
            }
        };
        Some(GainPatience { base: Time(patience.0.saturating_add(timeouts)), rounds, slowest, peak: 0 })
    }

    /// How long that is now.
    pub(super) fn time(&self) -> Time {
        Time(self.base.0.saturating_add(self.slowest.time_for(self.peak).0.saturating_mul(self.rounds)))
    }
}

/// How likely the largest packet arrives at the other end of a link, sooner or later where that repeats it.
fn arrives(link: &Link, setup: &Setup) -> f64 {
    let size = setup.max_packet().min(u16::MAX as u64) as u16;
    (1.0 - link.loss - link.corruption - link.spoils(size)).max(0.0)
}

/// How often memory may drain where nothing is lost by chance.
const ROUNDS: u64 = 16;
/// Where fewer packets than this come through with their answer, nobody can tell bad luck from a deadlock.
const RARELY: f64 = 1e-3;
/// So unlikely is it that nothing comes through in all of the rounds.
const UNLIKELY: f64 = 1e-12;

impl Core {
    /// Why flows are unfinished, if nothing or not everything can go on.
    pub(super) fn stall<F: FlowControl>(&self, scheme: &F, nodes: &[F::Node]) -> Option<Stall> {
        if self.progress.active == 0 {
            return None;
        }
        let rest = self.progress.stuck || self.at_rest();
        // While timers are set, or links change, what is stopped now may be set free; unless that has not helped for a while. A scheme may know better of its
        // timers.
        let changes = !self.progress.changes.is_empty();
        let limit = Time(self.progress.patience.0 - PATIENCE.0 + QUIET.0);
        let quiet = self.moved() == self.progress.last.0 && self.time.now.saturating_sub(self.progress.last.1) > limit;
        if !rest && changes && !quiet {
            return None;
        }
        let waits = Waits::new(self, scheme, nodes, rest || quiet);
        if let Some(cycle) = waits.cycle() {
            return Some(Stall::Deadlock(cycle));
        }
        if !rest {
            return None;
        }
        let stopped = |port: &u32| {
            let p = &self.ports[*port as usize];
            // A link that has given up for good is a failed one.
            p.paused != 0 && (p.queued > 0 || p.host) || self.retry.is_blocked(*port)
        };
        let mut stuck: Vec<u32> = (0..self.ports.len() as u32).filter(stopped).collect();
        stuck.extend(waits.nodes.iter().map(|wait| wait.port));
        stuck.sort_unstable();
        stuck.dedup();
        Some(if stuck.is_empty() { Stall::Lost } else { Stall::Blocked(stuck) })
    }

    /// The queues with packets that came in by `port` in `class`, at a node that forwards.
    fn queues_fed_by(&self, port: u32, class: u32) -> Vec<Wait> {
        let each = self.setup.switch.queues;
        let ports = self.map.of(self.ports[port as usize].node).filter(|&p| self.ports[p as usize].has_queues());
        let all = ports.flat_map(|port| (class * each..(class + 1) * each).map(move |queue| Wait { port, queue }));
        all.filter(|&Wait { port: out, queue }| {
            let list = &self.switches.queues[(self.ports[out as usize].first_queue + queue) as usize].packets;
            list.iter(&self.pool).any(|id| self.pool[id].in_port == self.ports[port as usize].local)
        })
        .collect()
    }
}

/// The wait-for graph of the queues that can never send again.
struct Waits {
    /// In order.
    nodes: Vec<Wait>,
    /// By node: the places of the nodes it waits for.
    edges: Vec<Vec<usize>>,
}

impl Waits {
    /// Of a network at rest, or of one that still moves: then a queue counts only if nothing that moves can free it.
    fn new<F: FlowControl>(core: &Core, scheme: &F, states: &[F::Node], rest: bool) -> Waits {
        let (each, timed) = (core.setup.switch.queues, core.progress.timers > 0);
        let mut nodes = Vec::new();
        // By node, the queues it waits for; `None` for one that something under way may free.
        let mut waits: Vec<Option<Vec<Wait>>> = Vec::new();
        for port in (0..core.ports.len() as u32).filter(|&port| core.ports[port as usize].has_queues()) {
            let stopped = |queue: &u32| {
                core.switches.masks.is_filled(port, *queue) && !core.switches.masks.is_ready(port, *queue)
            };
            for queue in (0..core.switches.per_port).filter(stopped) {
                let (p, class) = (&core.ports[port as usize], queue / each);
                let paused = p.paused >> class & 1 == 1;
                let far = p.peer;
                let there = &core.ports[far as usize];
                let under_way = !there.flying.is_empty()
                    || !there.frames.is_empty()
                    || timed && scheme.owes(&states[there.node as usize], PortId(there.local))
                    || core.retry.is_busy(far, port)
                    || core.reactions.waits_at(port)
                    || core.hosts.relay.delayed().get(far as usize).is_some_and(|list| !list.is_empty())
                    || paused && !core.switches.accounts[(far * core.switches.classes + class) as usize].paused;
                let held = core.switches.masks.is_held(port, queue);
                let by_scheme = held
                    .then(|| scheme.holder(&states[p.node as usize], NodeId(p.node), PortId(p.local), QueueId(queue)));
                let by_scheme = by_scheme.flatten();
                let unknown = !paused && by_scheme.is_none();
                nodes.push(Wait { port, queue });
                waits.push(match by_scheme {
                    _ if !rest && (under_way || unknown) => None,
                    Some(queues) if !paused => Some(queues),
                    _ => Some(core.queues_fed_by(far, class)),
                });
            }
        }
        // A queue that waits for none, or for one that may go, may go.
        let mut may_go: Vec<bool> = waits.iter().map(|wait| wait.is_none()).collect();
        let place = |wait: &Wait| nodes.binary_search(wait).ok();
        loop {
            let free = |(number, wait): (usize, &Option<Vec<Wait>>)| {
                let open = |wait: &Wait| place(wait).is_none_or(|to| may_go[to]);
                !may_go[number] && !rest && wait.as_ref().is_some_and(|list| list.is_empty() || list.iter().any(open))
            };
            let freed: Vec<usize> = waits.iter().enumerate().filter(|w| free(*w)).map(|(number, _)| number).collect();
            if freed.is_empty() {
                break;
            }
            freed.into_iter().for_each(|number| may_go[number] = true);
        }
        let edges = waits.iter().enumerate().map(|(number, wait)| match wait {
            Some(list) if !may_go[number] => list.iter().filter_map(place).filter(|&to| !may_go[to]).collect(),
            _ => Vec::new(),
        });
        Waits { edges: edges.collect(), nodes }
    }

    /// A cycle, if there is one.
    fn cycle(&self) -> Option<Vec<Wait>> {
        // Depth-first search with the path kept, from every queue in turn.
        let mut state = vec![0u8; self.nodes.len()];
        for root in 0..self.nodes.len() {
            let mut path = vec![(root, self.edges[root].iter())];
            while let Some((node, next)) = path.last_mut() {
                let node = *node;
                state[node] = 1;
                match next.next() {
                    Some(&to) if state[to] == 1 => {
                        let at = path.iter().position(|(node, _)| *node == to)?;
                        return Some(path[at..].iter().map(|(node, _)| self.nodes[*node]).collect());
                    }
                    Some(&to) if state[to] == 0 => path.push((to, self.edges[to].iter())),
                    Some(_) => {}
                    None => {
                        state[node] = 2;
                        path.pop();
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Graph, Kind};

    #[test]
    fn a_run_without_gain_ends_when_it_cannot_be_chance() {
        let mut graph = Graph::default();
        let hosts = [0, 1].map(|host| graph.add(Kind::Host, 0, format!("h{host}")));
        let switch = graph.add(Kind::Switch, 1, "sw0");
        hosts.into_iter().for_each(|host| graph.connect(host, switch, Rate::from_gbps(8), Time::from_us(1)));
        let mut setup = Setup::plain(graph, Vec::new());
        let wait = |setup: &Setup, peak| {
            let patience = GainPatience::new(setup, Time::from_ms(5), Time::from_ms(2));
            patience.map(|patience| GainPatience { peak, ..patience }.time())
        };
        // A megabyte takes 1 ms at 8 Gb/s, sixteen times.
        assert_eq!(wait(&setup, 1_000_000), Some(Time::from_ms(21)));
        assert_eq!(wait(&setup, 0), Some(Time::from_ms(5)));
        // With what is lost, as many timeouts; and more of both until bad luck is out of the question.
        setup.graph.links[0].loss = 0.1;
        assert_eq!(wait(&setup, 1_000_000), Some(Time::from_ms(5 + 17 * 3)));
        setup.graph.links[0].loss = 0.5;
        assert_eq!(wait(&setup, 1_000_000), Some(Time::from_ms(5 + 97 * 3)));
        setup.graph.links[0].loss = 0.99;
        assert_eq!(wait(&setup, 1_000_000), None);
    }
}
