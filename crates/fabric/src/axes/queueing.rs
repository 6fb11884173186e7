//! Queueing: which queue of an egress port sends next?

use super::Definition;
use crate::id::{ClassId, QueueId};
use crate::packet::{Packet, Pool};
use crate::port::{Queue, QueueMasks};
use crate::setup::Setup;

/// The queues of one egress port that is about to send.
pub struct PortQueues<'a> {
    pub(crate) port: u32,
    pub(crate) last: u32,
    pub(crate) queues: &'a mut [Queue],
    pub(crate) masks: &'a QueueMasks,
    pub(crate) pool: &'a Pool,
    pub(crate) setup: &'a Setup,
}

impl PortQueues<'_> {
    /// The queue that was served last.
    pub fn last(&self) -> QueueId {
        QueueId(self.last)
    }
    /// The first queue after `queue`, going round, that has packets and may send.
    pub fn next_after(&self, queue: QueueId) -> Option<QueueId> {
        self.masks.next_ready(self.port, queue.0).map(QueueId)
    }
    /// All queues that have packets and may send, in order.
    pub fn ready(&self) -> impl Iterator<Item = QueueId> + '_ {
        self.masks.all_ready(self.port).map(QueueId)
    }
    /// Whether a queue has packets and may send.
    pub fn is_ready(&self, queue: QueueId) -> bool {
        self.masks.is_ready(self.port, queue.0)
    }
    /// The first packet of a queue that has any.
    pub fn head(&self, queue: QueueId) -> &Packet {
        &self.pool[self.queues[queue.index()].packets.head()]
    }
    /// The class of a queue.
    pub fn class(&self, queue: QueueId) -> ClassId {
        ClassId((queue.0 / self.setup.switch.queues) as u8)
    }
    /// Bytes that a queue may still send in its turn.
    pub fn deficit(&mut self, queue: QueueId) -> &mut u32 {
        &mut self.queues[queue.index()].deficit
    }
    /// Bytes of a queue's turn, for disciplines that count them.
    pub fn quantum(&self) -> u32 {
        self.setup.switch.quantum
    }
    /// Bytes of message left from a packet to the end of its flow.
    pub fn left(&self, packet: &Packet) -> u64 {
        self.setup.flows[packet.flow as usize].size.saturating_sub(packet.seq)
    }
}

/// A discipline. What it must remember of a queue is the queue's `deficit` and which was served last; it has no state of its own.
pub trait Queueing: Send + Sync {
    /// The queue that sends next.
    fn pick(&self, port: &mut PortQueues<'_>) -> Option<QueueId>;
    /// A queue has sent a packet of so many bytes; so many are left in it.
    fn sent(&self, _queue: &mut Queue, _size: u32, _left: u64) {}
}

/// How an egress port chooses among its queues. Taking turns is built into the switch.
pub enum Discipline {
    /// One packet from each queue in turn.
    Packets,
    /// The same number of bytes from each queue in turn, as its deficit allows: the setup's quantum.
    Bytes,
    /// By a rule of its own.
    Own(Box<dyn Queueing>),
}

/// What the program knows of a discipline.
pub trait QueueingDef: Definition {
    /// The discipline.
    fn build(&self) -> Discipline;
}
