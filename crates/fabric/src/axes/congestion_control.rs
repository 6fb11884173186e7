//! Congestion control at the sender: how fast may a flow go?

use super::{Counter, Definition, MarkingDef};
use crate::packet::{Hop, Packet};
use engine::{Rate, Time};

/// What the sender's NIC lets a flow do, as its congestion control has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Permit {
    /// The rate at which packets are paced.
    pub rate: Rate,
    /// Bytes that may be unacknowledged. It counts if the controller says that it [sets windows](Needs::window); otherwise the window is
    /// the scenario's.
    pub window: u64,
    /// When the controller wants to be called next without an ACK; [`Time::MAX`] for never.
    pub timer: Time,
    /// The pause after the last packet is stretched or shrunk to the new rate, rather than left as it was.
    pub repace: bool,
    /// The flow sends nothing before this instant.
    pub resume: Time,
    /// Bits of [`flag::OWN`](crate::packet::flag) that the packets sent from now on carry: what the controller says to its switch program.
    pub own: u16,
}

impl Permit {
    /// Paced at `rate`, with no timer, no pause, and the scenario's window.
    pub fn at(rate: Rate) -> Permit {
        Permit { rate, window: u64::MAX, timer: Time::MAX, repace: false, resume: Time::ZERO, own: 0 }
    }
}

/// What a controller knows of a flow when it starts.
#[derive(Clone, Copy, Debug)]
pub struct FlowStart {
    /// Now.
    pub now: Time,
    /// The rate of the sender's link.
    pub line: Rate,
    /// Round-trip time of an idle network.
    pub base_rtt: Time,
    /// The window in bytes; 0 for none.
    pub window: u64,
    /// Bytes of message.
    pub size: u64,
    /// Switches on the path.
    pub hops: u32,
    /// Bytes of message in a full packet.
    pub payload: u32,
    /// Bytes of headers of a data packet.
    pub header: u32,
    /// Round-trip time of the idle network between the hosts farthest apart of those that talk to each other.
    pub longest_rtt: Time,
    /// Switches trim what finds its queue full.
    pub trims: bool,
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
    /// Bytes of message that have arrived, as far as the sender knows: with transports that know of more than what arrived in order, also those.
    pub received: u64,
    /// Bytes of message in flight, as the transport counts them.
    pub flight: u64,
    /// The acknowledged packet was marked by a switch.
    pub marked: bool,
    /// What is left on the acknowledged packet of [`Permit::own`], after the controller's own switch program has changed it; see
    /// [`flag::OWN`](crate::packet::flag).
    pub own: u16,
    /// The acknowledged packet's tag: the name that flow control has for its flow, or what the controller's own switch program wrote there,
    /// where flow control has none.
    pub tag: u16,
    /// When the acknowledged packet was sent.
    pub stamp: Time,
    /// How long that packet was in flight to the receiver, as measured there; only if asked for.
    pub delay: Time,
    /// What the switches on the path said, first switch first.
    pub telemetry: &'a [Hop],
    /// The flow's part of the receiver's link, divided among those that sent to it when it answered; zero unless [`Needs::census`].
    pub share: Rate,
}

/// What a switch reports to the sender of a packet, sent by a [`Marking`](super::Marking).
#[derive(Clone, Copy, Debug)]
pub struct Notice {
    /// Now.
    pub now: Time,
    /// When the packet it is about was sent.
    pub stamp: Time,
    /// Bytes that waited at the egress port.
    pub queued: u32,
    /// The rate of that port.
    pub rate: Rate,
    /// What the switch program says besides.
    pub word: u16,
}

impl Notice {
    /// What a control packet says that arrives now.
    pub(crate) fn read(packet: &Packet, now: Time) -> Notice {
        let rate = Rate((packet.seq >> 32) * 1_000_000);
        Notice { now, stamp: packet.stamp, queued: packet.seq as u32, rate, word: packet.tag }
    }
}

/// What else a transport reports of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// Packets are lost: the receiver, or a timeout, said so.
    Lost,
    /// A switch trimmed a packet to its header.
    Trimmed(Trim),
    /// The receiver granted so many bytes.
    Granted(u64),
}

/// A packet that lost its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trim {
    /// Bytes of message that it lost.
    pub bytes: u64,
    /// Bytes of message in flight, those among them.
    pub flight: u64,
    /// From the packet's being sent to the NACK's arrival.
    pub rtt: Time,
    /// It was the receiver's link that had no room, and its receiver hands out [credits](Needs::credits), which is all that there is to do about it.
    pub forgiven: bool,
}

/// How receivers hand out what their link can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits {
    /// Full packets for which one control packet gives credit.
    pub packets: u32,
    /// How much is handed out, in thousandths of the link's rate.
    pub pace: u32,
    /// Bytes of that control packet.
    pub size: u16,
    /// How they slow down while the fabric before their own switch is congested, if they do.
    pub throttle: Option<Throttle>,
}

/// How a receiver hands out less than its link can take. Parts are in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// How often it looks at what has come; zero: every 1.5 times the longest base round trip.
    pub every: Time,
    /// The least part of its pace that it hands out.
    pub least: u32,
    /// What it adds to that part.
    pub increase: u32,
    /// What it takes of it, as a part of the marks above the target.
    pub decrease: u32,
    /// Weight of what came last in the mean of marks.
    pub weight: u32,
    /// The part of packets that may be marked.
    pub target: u32,
}

/// How receivers count who sends to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting {
    /// Among whom the link is divided.
    pub of: Counted,
    /// A flow that says nothing for this long leaves the count.
    pub stall: Time,
}

engine::choice! {
    /// Among whom a receiver's link is divided.
    pub enum Counted {
        /// Hosts, each of which divides its part among its flows.
        Senders = "senders",
        /// Flows.
        Flows = "flows",
    }
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
    /// That receivers count who sends to them.
    pub census: Option<Counting>,
    /// Its [`Permit::window`] is the flow's window.
    pub window: bool,
    /// What the transport reports besides ACKs.
    pub incidents: bool,
    /// That receivers hand out credits, and senders send no more than that; not every transport can.
    pub credits: Option<Credits>,
}

/// Something that a controller keeps of a flow, by what it is: from now on, an instant is as far off, and a byte of the message as far ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// A number that moves by and by, such as a window, and what it is compared with: a change by as much is a whole one.
    Level(f64, f64),
    /// When something was, or will be.
    Instant(Time),
    /// A byte of the message.
    Byte(u64),
    /// Anything else.
    Word(u64),
    /// What a switch said.
    Hop(Hop),
}

impl Known {
    /// A number above zero that counts for as much as it is.
    pub fn level(value: f64) -> Known {
        Known::Level(value, value.abs().max(f64::MIN_POSITIVE))
    }
}

/// A controller that says what it knows of a flow.
pub trait Recall {
    /// Says all that decides, together with what it will be told, what it does next; every time the same things, in the same order.
    fn recall(&self, slot: u32, now: Time, say: &mut dyn FnMut(Known));
}

/// Congestion control of all flows that begin in one shard of a fabric. A flow is known by a slot number, reused after it ends.
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
    /// When the timer that goes off at `now` was set, if that was not long ago: what was planned before comes before it, where ties go by
    /// [sequence](crate::setup::Ties::Sequence).
    fn timer_set(&self, _slot: u32, _now: Time) -> Time {
        Time::ZERO
    }
    /// A switch has sent a report.
    fn notice(&mut self, _slot: u32, _notice: &Notice, _permit: &mut Permit) {}
    /// The transport has something to report.
    fn incident(&mut self, _slot: u32, _now: Time, _incident: Incident, _permit: &mut Permit) {}
    /// What it counted.
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
    /// What it knows of flows, if it says so. Only then can time be skipped: that rates are steady does not mean that what it keeps is.
    fn known(&self) -> Option<&dyn Recall> {
        None
    }
}

/// No congestion control: line rate, or as fast as the window allows.
pub struct Unlimited;
impl CongestionControl for Unlimited {
    fn needs(&self) -> Needs {
        Needs::default()
    }
    fn start(&mut self, _: u32, flow: FlowStart) -> Permit {
        Permit::at(flow.line)
    }
    fn ack(&mut self, _: u32, _: &Ack<'_>, _: &mut Permit) {}
    fn known(&self) -> Option<&dyn Recall> {
        Some(self)
    }
}
impl Recall for Unlimited {
    fn recall(&self, _: u32, _: Time, _: &mut dyn FnMut(Known)) {}
}

/// What the program knows of a congestion control.
pub trait CongestionControlDef: Definition {
    /// The controller of a run.
    fn build(&self) -> Box<dyn CongestionControl>;
    /// Whether it reacts to marks, so that switches must make them.
    fn uses_marks(&self) -> bool {
        false
    }
    /// Whether what it hears of a mark is a notification that a NIC sends, rather than a bit of every ACK.
    fn notified(&self) -> bool {
        false
    }
    /// Whether it takes marks from ports to hosts too; otherwise switches make none there.
    fn marks_before_hosts(&self) -> bool {
        true
    }
    /// The switch program that is its other half, if it has one: it takes the place of what the scenario has on the marking axis.
    fn switch_half(&self) -> Option<Box<dyn MarkingDef>> {
        None
    }
    /// Whether it sends less when its packets are trimmed ([`Incident::Trimmed`]).
    fn hears_of_trims(&self) -> bool {
        false
    }
    /// Whether it is defined only with a window.
    fn needs_window(&self) -> bool {
        false
    }
    /// Bytes it adds to the header of every data packet, and to every ACK.
    fn header(&self) -> (u16, u16) {
        (0, 0)
    }
}
