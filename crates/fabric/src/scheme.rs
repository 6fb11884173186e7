//! What a scheme implements: [`FlowControl`] around the switch's queues, [`CongestionControl`] at the sender.
//!
//! Both are state machines without a clock or a network of their own: every call says what time it is and what
//! happened, the answer says what to do. Nothing in the fabric asks which scheme is running.

use crate::network::{Core, Wait};
use crate::packet::{Hop, Packet, PacketId};
use crate::routing::Tuple;
use engine::{Rate, Time};

/// A named count that a scheme keeps, shown in every result.
pub type Counter = (&'static str, u64);
/// A named histogram that a scheme keeps: how many samples had the value 0, 1, 2 and so on.
pub type Histogram = (&'static str, Vec<u64>);

/// Flow control between neighbours: what happens around the queues of switches, and at the NICs.
///
/// The fabric owns queues, buffers and schedulers and calls these hooks; a scheme acts through [`Core`]
/// (pause a class, send a frame to the neighbour or a signal to a host, set a timer). All hooks default to doing nothing.
pub trait FlowControl: Sized + Send {
    /// Whether the scheme promises that no buffer overflows. A run that breaks the promise fails.
    fn lossless(&self) -> bool {
        false
    }
    /// Whether packets of a flow must have arrived in order, as far as none was lost. A run that breaks the promise fails.
    fn in_order(&self) -> bool {
        true
    }
    /// The scheme's name for a flow, which its packets carry.
    fn tag(&self, _tuple: &Tuple) -> u16 {
        0
    }
    /// A flow was handed to the NIC at `port`.
    #[inline]
    fn flow_started(&mut self, _core: &mut Core, _port: u32, _flow: u32) {}
    /// A flow sends by another `port` of its host from now on, because routes have changed.
    #[inline]
    fn flow_moved(&mut self, _core: &mut Core, _port: u32, _flow: u32) {}
    /// A data packet has come in by `in_port` and would leave by `chosen`, as routing has it: the port it leaves by.
    #[inline]
    fn way(&mut self, _core: &mut Core, _in_port: u32, _packet: PacketId, chosen: u32) -> u32 {
        chosen
    }
    /// Whether [`FlowControl::enqueued`] or [`FlowControl::dequeued`] look at the queues of a port, or whether queues are held or
    /// served by rules of the scheme's own. If not, a packet that finds its port idle is sent without joining a queue, which is faster
    /// and cannot be seen from outside.
    const LOOKS_AT_QUEUES: bool = true;
    /// A packet is at hand that leaves by `visit.out_port`: the queue of that port it should join. It may yet find no room;
    /// if it does, [`FlowControl::enqueued`] comes next.
    #[inline]
    fn queue(&mut self, core: &mut Core, visit: &Visit) -> u32 {
        core.hashed_queue(visit.packet)
    }
    /// The account of its ingress port and class that a packet for `visit.queue` is to be in: the first, or the second in
    /// schemes that have [`crate::setup::SwitchSetup::groups`] of 2.
    #[inline]
    fn second_group(&mut self, _core: &mut Core, _visit: &Visit) -> bool {
        false
    }
    /// A packet was put in `visit.queue`.
    #[inline]
    fn enqueued(&mut self, _core: &mut Core, _visit: &Visit) {}
    /// A packet has left `visit.queue`, to be sent or because its link failed.
    #[inline]
    fn dequeued(&mut self, _core: &mut Core, _visit: &Visit) {}
    /// A packet is about to be sent by `port`: for how long the link is still taken by what was not simulated.
    #[inline]
    fn lag(&mut self, _core: &Core, _port: u32) -> Time {
        Time::ZERO
    }
    /// A neighbour's frame arrived at `port`, of a switch or of a host.
    fn frame(&mut self, _core: &mut Core, _port: u32, _frame: &Packet) {}
    /// A signal sent with [`Core::send_signal`] passes a switch other than the one that sent it: it came in by
    /// `in_port` and leaves by `out_port` as this leaves it.
    fn passing(&mut self, _core: &mut Core, _in_port: u32, _out_port: u32, _signal: &mut Packet) {}
    /// A signal has reached its host, at `port`.
    fn signal(&mut self, _core: &mut Core, _port: u32, _signal: &Packet) {}
    /// A timer set with [`Core::set_timer`] went off.
    fn timer(&mut self, _core: &mut Core, _token: u32) {}
    /// The memory of the NIC at a host's `port` is full, or no longer so; said again with every packet.
    fn receiver_full(&mut self, _core: &mut Core, _port: u32, _full: bool) {}
    /// The link at `port` went down: whatever was agreed over it is void.
    fn link_lost(&mut self, _core: &mut Core, _port: u32) {}
    /// The occupancy of the switches is being sampled: time to fill histograms.
    fn observe(&mut self, _core: &Core) {}
    /// Adds what another member of the same scheme has counted and seen, which ran other nodes of the same fabric. Of what it knows
    /// of single nodes and ports only that is needed of which [`FlowControl::holder`] or the counters tell.
    fn merge(&mut self, other: Self);
    /// The run has ended with a queue of `port` held by [`Core::hold_queue`]: the queues that must empty before it may go on.
    /// `None` where it does not tell: then it is whatever the packets of that link wait for at its other end.
    fn holder(&self, _core: &Core, _port: u32, _queue: u32) -> Option<Vec<Wait>> {
        None
    }
    /// What it counted.
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
    /// What it saw.
    fn histograms(&self) -> Vec<Histogram> {
        Vec::new()
    }
}

/// A packet at a switch.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// The packet.
    pub packet: PacketId,
    /// The port it came in by.
    pub in_port: u32,
    /// The port it leaves by.
    pub out_port: u32,
    /// The queue of that port, counted from its first.
    pub queue: u32,
    /// Its priority class.
    pub class: u8,
    /// Bytes on the wire.
    pub size: u16,
}

/// No flow control: what does not fit is dropped.
pub struct NoFlowControl;
impl FlowControl for NoFlowControl {
    const LOOKS_AT_QUEUES: bool = false;
    fn merge(&mut self, _: Self) {}
}

/// What the sender's NIC lets a flow do, as its congestion control has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Permit {
    /// The rate at which packets are paced.
    pub rate: Rate,
    /// When the controller wants to be called next without an ACK; [`Time::MAX`] for never.
    pub timer: Time,
    /// The pause after the last packet is stretched or shrunk to the new rate, rather than left as it was.
    pub repace: bool,
    /// The flow sends nothing before this instant.
    pub resume: Time,
}

/// What a controller is told of a flow when it starts.
#[derive(Clone, Copy, Debug)]
pub struct FlowStart {
    /// The rate of the sender's link.
    pub line: Rate,
    /// Round-trip time of an idle network.
    pub base_rtt: Time,
    /// The window in bytes; 0 for none.
    pub window: u64,
}

/// What an ACK says.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// Now.
    pub now: Time,
    /// When the ACK was put on the last link before the sender: what was planned for now after that comes later.
    pub cause: Time,
    /// Everything before this byte has arrived.
    pub seq: u64,
    /// The next byte the sender will send.
    pub next: u64,
    /// The acknowledged packet was marked by a switch.
    pub marked: bool,
    /// When the acknowledged packet was sent.
    pub stamp: Time,
    /// How long that packet was on its way to the receiver, as measured there; only if asked for.
    pub delay: Time,
    /// What the switches on the way said, first switch first.
    pub telemetry: &'a [Hop],
    /// The receiver's link divided among the flows that sent to it when it answered; zero unless [`Needs::census`].
    pub share: Rate,
}

/// What a controller needs from packets and ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Per-hop telemetry.
    pub telemetry: bool,
    /// Every ACK; otherwise only marked ones are shown.
    pub every_ack: bool,
    /// One-way delays in ACKs.
    pub delay: bool,
    /// That receivers count the flows that send to them; one that says nothing for this long leaves the count.
    pub census: Option<Time>,
}

/// Congestion control of all flows that begin in one part of a fabric. A flow is known by a slot number, reused after it ends.
pub trait CongestionControl: Send {
    /// What it wants to see.
    fn needs(&self) -> Needs;
    /// A flow starts in `slot`.
    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit;
    /// An ACK arrived.
    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit);
    /// The time that [`Permit::timer`] asked for has come.
    fn timer(&mut self, _slot: u32, _now: Time, permit: &mut Permit) {
        permit.timer = Time::MAX;
    }
    /// What it counted: numbers that add up over the parts of a fabric, or whose names end in `_max` and of which the largest counts.
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}

/// No congestion control: line rate, or as fast as the window allows.
pub struct Unlimited;
impl CongestionControl for Unlimited {
    fn needs(&self) -> Needs {
        Needs::default()
    }
    fn start(&mut self, _: u32, flow: FlowStart) -> Permit {
        Permit { rate: flow.line, timer: Time::MAX, repace: false, resume: Time::ZERO }
    }
    fn ack(&mut self, _: u32, _: &Ack<'_>, _: &mut Permit) {}
}
