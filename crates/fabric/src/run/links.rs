//! Links that fail and come back, and packets lost on them.

use super::{Core, Network, hook};
use crate::axes::flow_control::FlowControl;
use crate::id::FlowId;
use crate::packet::{Kind, PacketId};
use crate::probe::{Counted, Lost};
use crate::routing::Routing;
use crate::setup::{Dice, Relist, Setup, Turn};
use engine::Time;
use std::sync::Arc;

/// The states of the links over time, from their outages; nothing if none ever fails. A link that fails for a moment only, and repeats
/// afterwards what was under way, counts as one that works.
pub(super) fn changes(setup: &Setup) -> Vec<(Time, Vec<bool>)> {
    let links = &setup.graph.links;
    let mut times: Vec<Time> =
        links.iter().flat_map(|l| &l.outages).flat_map(|&(a, b)| [Some(a), b]).flatten().collect();
    times.sort_unstable();
    times.dedup();
    times.into_iter().map(|t| (t, links.iter().map(|link| !link.failed_at(t)).collect())).collect()
}

/// What becomes of a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It arrives as it was sent.
    Arrives,
    /// Something arrives.
    Damaged,
    /// Nothing arrives.
    Vanishes,
    /// Nothing arrives: the link went down, for so long.
    Cut(Time),
}

impl Core {
    /// What becomes of a packet of `size` bytes that comes to the end of a link with faults, or of one that went down.
    pub(super) fn fate(&mut self, port: u32, size: u16) -> Fate {
        let number = self.map.link[port as usize] as usize;
        let link = &self.setup.graph.links[number];
        // A packet that left before its link failed and came back in time for the next repair is lost too.
        let sent = self.sent_at(port, size);
        let cuts = |&&(from, to): &&(Time, Option<Time>)| from <= self.time.now && to.is_none_or(|to| sent < to);
        let lasts = |&(from, to): &(Time, Option<Time>)| to.map_or(Time::MAX, |to| to - from);
        if let Some(longest) = link.outages.iter().filter(cuts).map(lasts).max() {
            return Fate::Cut(longest);
        }
        match self.setup.dice {
            Dice::PerNode => {
                let stream = &mut self.dice.streams[self.ports[port as usize].node as usize];
                // Two draws, so that the same seed loses the same packets whatever the other probability.
                let (lost, damaged) = (stream.chance(link.loss), stream.chance(link.corruption));
                let spoilt = link.bit_errors > 0.0 && stream.chance(link.spoils(size));
                match (lost, damaged || spoilt) {
                    (true, _) => Fate::Vanishes,
                    (false, true) => Fate::Damaged,
                    (false, false) => Fate::Arrives,
                }
            }
            Dice::Shared { .. } | Dice::Alike { .. } => {
                let own = if link.own_dice { number } else { self.dice.faults.len() - 1 };
                if self.dice.faults[own].uniform() < link.loss { Fate::Vanishes } else { Fate::Arrives }
            }
        }
    }

    /// Whether a packet is lost on a link with faults, or with a link that went down.
    pub(super) fn lost_on_link(&mut self, port: u32, id: PacketId) -> bool {
        let how = match self.fate(port, self.pool[id].size) {
            Fate::Arrives => {
                self.draw_again(port, id);
                return false;
            }
            Fate::Cut(_) => {
                self.counts.dropped_down += 1;
                Lost::Down
            }
            Fate::Damaged | Fate::Vanishes => {
                self.counts.dropped_fault += 1;
                Lost::Fault
            }
        };
        self.probes.count_at(port, Counted::Drop, 1);
        self.note_loss(self.ports[port as usize].peer, id, how);
        self.discard(id);
        true
    }
}

impl Core {
    /// Draws once more for a packet that a host takes, where that is a habit. It does not take ACKs of flows that are over.
    fn draw_again(&mut self, port: u32, id: PacketId) {
        let packet = &self.pool[id];
        let over = || packet.kind != Kind::Data && self.hosts.senders[packet.flow as usize].done();
        if !self.setup.habits.draws_twice || !self.ports[port as usize].host || packet.kind == Kind::Frame || over() {
            return;
        }
        let number = self.map.link[port as usize] as usize;
        let own = if self.setup.graph.links[number].own_dice { number } else { self.dice.faults.len() - 1 };
        if let Some(dice) = self.dice.faults.get_mut(own) {
            dice.uniform();
        }
    }
}

impl<F: FlowControl> Network<F> {
    /// Links fail or come back.
    pub(super) fn change_links(&mut self, index: u32) {
        let up = self.core.progress.changes[index as usize].1.clone();
        for port in self.core.ports_at_hand() {
            let core = &mut self.core;
            let works = up[core.map.link[port as usize] as usize];
            if !core.owns(core.ports[port as usize].node) {
                continue;
            }
            if works == core.ports[port as usize].up {
                core.darken_link_end(port);
                continue;
            }
            core.ports[port as usize].up = works;
            core.refresh_nic(port);
            if works {
                core.kicks.push(port);
            } else {
                let freed = core.flush(port);
                let leaks = core.setup.habits.leaks;
                for class in 0..core.switches.classes as u8 {
                    if core.ports[port as usize].paused >> class & 1 == 1 && !leaks {
                        core.pause_class(port, class, false);
                    }
                }
                if !leaks {
                    hook!(self, port, |scheme, node, at, local| scheme.link_lost(node, at, local));
                }
                for visit in freed {
                    if !leaks {
                        hook!(self, port, |scheme, node, at, local| scheme.dequeued(node, at, &visit));
                    }
                    self.core.discard(visit.packet);
                }
            }
            self.core.change_link_end(port);
            // Packets in flight when a link fails are lost when they would arrive.
            self.core.ports[port as usize].faulty = true;
        }
    }

    /// New routes for the links that work now.
    pub(super) fn reroute(&mut self, index: u32) {
        let core = &mut self.core;
        let (changes, links) = (&core.progress.changes, &core.setup.graph.links);
        let up = &changes[index as usize].1;
        let same = match index.checked_sub(1) {
            Some(before) => changes[before as usize].1 == *up,
            None => up.iter().zip(links).all(|(up, link)| *up || link.never()),
        };
        // A link that is down for a moment is nothing to route around.
        if same {
            return;
        }
        if core.is_first() {
            core.routing = Arc::new(Routing::new(&core.setup.graph, &core.map, up));
        }
        core.switches.rerouted();
        if let Some(order) = core.setup.habits.relist {
            return self.relist_flows(order);
        }
        for flow in core.reassign_flows() {
            let hosts = &self.core.hosts;
            let port = hosts.nics[hosts.senders[flow as usize].nic as usize].port;
            hook!(self, port, |scheme, node, at, local| scheme.flow_moved(node, at, local, FlowId(flow)));
        }
    }

    /// Empties the lists of all hosts and fills them again in `order`. A port that is idle sends as soon as a flow is listed.
    fn relist_flows(&mut self, order: Relist) {
        let hosts: Vec<u32> = self.core.setup.graph.hosts().map(|host| host.0).collect();
        for host in hosts {
            let setup = &self.core.setup;
            let turns: Vec<Turn<'_>> = self
                .core
                .hosts
                .journal
                .iter()
                .map(|&(flow, presence)| (flow, &setup.flows[flow.index()], presence))
                .filter(|(_, spec, _)| spec.src.0 == host)
                .collect();
            let flows = order(&turns);
            for port in self.core.map.of(host) {
                self.core.unlist_flows(self.core.ports[port as usize].nic);
            }
            for flow in flows {
                let nic = self.core.nic_of(host, flow.0, false);
                self.core.list_flow(flow.0, nic);
                let port = self.core.hosts.nics[nic as usize].port;
                hook!(self, port, |scheme, node, at, local| scheme.flow_moved(node, at, local, flow));
                self.kick(port);
            }
        }
    }
}
