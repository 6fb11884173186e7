//! Frames that have arrived and do not act yet: hardware takes a while from the arrival of a pause to its effect.

use super::{Class, Core, Network, hook};
use crate::axes::flow_control::FlowControl;
use crate::packet::PacketId;
use crate::port::Flying;
use crate::setup::Setup;
use engine::{Event, Time};

/// Frames by the port that they have come in by; empty where they act at once.
#[derive(Default)]
pub(crate) struct Reactions(Vec<Flying>);

impl Reactions {
    pub(crate) fn new(setup: &Setup, ports: usize) -> Reactions {
        let count = if setup.switch.reaction > Time::ZERO { ports } else { 0 };
        Reactions(vec![Flying::default(); count])
    }

    /// Takes over the ports that `mine` picks, their frames moved by `moved`.
    pub(crate) fn absorb(
        &mut self,
        other: Reactions,
        mine: impl Fn(usize) -> bool,
        mut moved: impl FnMut(Flying) -> Flying,
    ) {
        for (port, list) in other.0.into_iter().enumerate().filter(|(port, _)| mine(*port)) {
            self.0[port] = moved(list);
        }
    }

    /// The frames, by port.
    pub(crate) fn waiting(&self) -> &[Flying] {
        &self.0
    }

    /// Whether a frame waits at a port.
    pub(crate) fn waits_at(&self, port: u32) -> bool {
        self.0.get(port as usize).is_some_and(|list| !list.is_empty())
    }
}

impl Core {
    /// Puts a frame that has come in aside until it acts; false where it does so at once.
    fn react_later(&mut self, port: u32, id: PacketId) -> bool {
        if self.reactions.0.is_empty() {
            return false;
        }
        let at = self.time.now + self.setup.switch.reaction;
        let rank = self.rank(at);
        if self.reactions.0[port as usize].push(&mut self.pool, id, at, rank) {
            self.time.events.push(Event::new(at, rank, Class::Reaction as u8, port));
        }
        true
    }
}

impl<F: FlowControl> Network<F> {
    /// A frame has come in.
    #[inline]
    pub(crate) fn frame_arrives(&mut self, port: u32, id: PacketId) {
        if !self.core.react_later(port, id) {
            self.frame_acts(port, id);
        }
    }

    /// The first of the frames that wait at a port acts, unless its link has failed meanwhile.
    pub(crate) fn reaction_event(&mut self, port: u32) {
        let core = &mut self.core;
        let Some((id, next)) = core.reactions.0[port as usize].pop(&core.pool) else { return };
        if let Some((at, rank)) = next {
            core.time.events.push(Event::new(at, rank, Class::Reaction as u8, port));
        }
        let (now, link) = (core.time.now, &core.setup.graph.links[core.map.link[port as usize] as usize]);
        let came = now - core.setup.switch.reaction;
        if link.failures().any(|(from, _)| came < from && from <= now) {
            let packet = core.pool[id];
            core.pool.open_frame(&packet);
            core.pool.remove(id);
            core.counts.consumed += 1;
            return;
        }
        self.frame_acts(port, id);
    }

    #[inline]
    fn frame_acts(&mut self, port: u32, id: PacketId) {
        let core = &mut self.core;
        let packet = core.pool[id];
        let sealed = core.pool.open_frame(&packet);
        core.pool.remove(id);
        core.counts.consumed += 1;
        hook!(self, port, |scheme, node, at, local| scheme.frame(node, at, local, sealed.open()));
    }
}
