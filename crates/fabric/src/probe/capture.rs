//! Packets of chosen ports, kept as they are put on the link.

use crate::packet::{Packet, PacketId, flag};
use crate::run::Core;
use engine::Time;

/// A packet that a captured port sent.
#[derive(Clone, Debug)]
pub struct Captured {
    /// When its first bit was put on the link.
    pub time: Time,
    /// By which port.
    pub port: u32,
    /// The packet.
    pub packet: Packet,
    /// What it carries, if it is a frame that carries something.
    pub payload: Box<[u64]>,
}

impl Core {
    /// Keeps a packet that is being put on the link of `port`, if the port may keep more.
    pub(crate) fn capture(&mut self, port: u32, id: PacketId) {
        let Some(left) = self.probes.capture_left.get_mut(port as usize).filter(|left| **left > 0) else { return };
        *left -= 1;
        let (p, mut packet) = (&self.ports[port as usize], self.pool[id]);
        packet.flags &= !flag::ASKED;
        let time = p.free_at - self.wire.time(p.table, packet.size);
        let carries = packet.flags & flag::PAYLOAD != 0;
        let payload = if carries { self.pool.payload(packet.flow).into() } else { Box::default() };
        self.probes.captured.push(Captured { time, port, packet, payload });
    }
}
