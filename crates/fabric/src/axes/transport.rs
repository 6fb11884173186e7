//! The transport at hosts: how are messages cut into packets, acknowledged and repaired?

use super::congestion_control::Needs;
use super::{Counter, Definition};
use crate::host::{PerFlow, Sender};
use crate::id::{FlowId, PortId};
use crate::packet::{Packet, PacketId};
use crate::run::shard::Shard;
use crate::setup::{FlowSpec, Setup};
use crate::view::HostView;
use engine::Time;

/// Where a transport is built: the run, and which of its flows begin or end here.
pub struct Ground<'a> {
    /// The run.
    pub setup: &'a Setup,
    pub(crate) shard: &'a Option<Shard>,
    pub(crate) nics: usize,
    /// What congestion control needs.
    pub needs: Needs,
}

impl Ground<'_> {
    /// A value for every flow that is sent from here.
    pub fn per_sender<T: Clone>(&self, make: impl Fn(&FlowSpec) -> T) -> PerFlow<T> {
        PerFlow::new(self.setup, self.shard, |flow| flow.src.0, make)
    }
    /// A value for every flow that is received here.
    pub fn per_receiver<T: Clone>(&self, make: impl Fn(&FlowSpec) -> T) -> PerFlow<T> {
        PerFlow::new(self.setup, self.shard, |flow| flow.dst.0, make)
    }
    /// How many ports all hosts have together; [`HostView::nic`] numbers them.
    pub fn nics(&self) -> usize {
        self.nics
    }
}

/// The transport of all hosts of a shard. The NIC chooses whose turn it is and makes a packet of what [`Sender::next`] points at; the
/// transport moves `next`, answers what arrives, and sets [`Sender::expires`] so that nothing is waited for in vain.
pub trait Transport: Send {
    /// At the sender: the packet `id` was made and is being sent; `again` if these bytes were sent before.
    fn sent(&mut self, at: &mut HostView<'_>, flow: FlowId, id: PacketId, again: bool);
    /// Whether [`Transport::sent`] has to be called at all. It is asked once.
    fn hears_sent(&self) -> bool {
        true
    }
    /// At the receiver: a data packet has arrived at `port`, or what a trimming switch left of it. It ends in [`HostView::reply`].
    fn data(&mut self, at: &mut HostView<'_>, port: PortId, id: PacketId);
    /// At the sender: an ACK or another control packet of the transport has arrived, of a flow that is not done.
    fn control(&mut self, at: &mut HostView<'_>, packet: &Packet, id: PacketId);
    /// At the sender: the flow's [`Sender::expires`] has come.
    fn expired(&mut self, at: &mut HostView<'_>, flow: FlowId);
    /// A timer set with [`HostView::set_timer`] went off.
    fn timer(&mut self, _at: &mut HostView<'_>, _port: PortId) {}
    /// Whether NICs ask [`Transport::passing`] what may be sent. Where they do not, a flow's window says it all.
    fn asked(&self) -> bool {
        false
    }
    /// A NIC that looks for something to send comes past a flow that is not over: whether more of it may be in flight. It may move
    /// [`Sender::next`].
    fn passing(&mut self, _flow: FlowId, _sender: &mut Sender, _now: Time) -> bool {
        true
    }
    /// The most that a window may be.
    fn window_cap(&self) -> u64 {
        u64::MAX
    }
    /// Whether all that it knows of flows is in [`Sender`] and in the receiver's half.
    fn keeps_nothing(&self) -> bool {
        false
    }
    /// How far a flow is, for its congestion control.
    fn progress(&self, _flow: FlowId, sender: &Sender) -> Progress {
        Progress { next: sender.next, received: sender.acked, flight: sender.next.saturating_sub(sender.acked) }
    }
    /// Whether it counts itself what is in flight, and [holds](HostView::hold) flows whose [window](HostView::window) is full. Otherwise that is what is
    /// between the first byte that is not acknowledged and the next to be sent. It is asked once.
    fn counts_flight(&self) -> bool {
        false
    }
    /// At the sender: congestion control may have changed the flow's window. It is called only if the transport counts what is in flight.
    fn window_changed(&mut self, _at: &mut HostView<'_>, _flow: FlowId) {}
    /// Whether a NACK says that its packet was trimmed. Otherwise it says that the packet arrived, and another did not. It is asked once.
    fn nacks_trimmed(&self) -> bool {
        false
    }
    /// What it counted.
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}

/// How far a flow is, in bytes of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The next byte that will be sent.
    pub next: u64,
    /// How many are known to have arrived, in order or not.
    pub received: u64,
    /// How many are in flight.
    pub flight: u64,
}

/// What the program knows of a transport.
pub trait TransportDef: Definition {
    /// The transport of a run.
    fn build(&self, ground: &Ground<'_>) -> Box<dyn Transport>;
    /// Adjusts how switches and NICs are set up, after the scenario has.
    fn adjust(&self, _setup: &mut Setup) {}
    /// Whether receivers take packets in order only, so that packets which overtake others are lost labour, and an error where none was lost.
    fn in_order(&self) -> bool {
        true
    }
    /// Whether ACKs name the packet that they answer.
    fn selective(&self) -> bool {
        false
    }
    /// Whether packets may be dropped or trimmed by design, so that the run does not promise to be lossless.
    fn drops(&self) -> bool {
        false
    }
    /// Whether a run is defined by the order in which one thread does things.
    fn sequential(&self) -> bool {
        false
    }
    /// The timeout that "auto" stands for, if it has its own.
    fn timeout(&self) -> Option<Time> {
        None
    }
    /// Whether it knows by itself how long to wait for an acknowledgement, unless `nic.timeout` is written.
    fn own_timeout(&self) -> bool {
        false
    }
    /// The longest that it waits before it does something about silence.
    fn patience(&self, setup: &Setup) -> Time {
        setup.nic.timeout.unwrap_or_default()
    }
    /// How it repairs losses, for people, given the run.
    fn describe(&self, setup: &Setup) -> String {
        let timeout = setup.nic.timeout.map_or("none".into(), |timeout| timeout.to_string());
        format!("timeout {timeout}, NACK every {}", setup.nic.nack_interval)
    }
    /// Keys of a scenario that have no effect with it.
    fn ignores(&self) -> &'static [&'static str] {
        &[]
    }
    /// The most packets of a flow that it can number.
    fn most_packets(&self) -> u64 {
        u64::MAX
    }
    /// Whether it works with receivers that take packets slowly.
    fn slow_receivers(&self) -> bool {
        true
    }
    /// A limit on what may be unacknowledged must hold at least as many packets as a receiver waits for before it answers: the limit in bytes,
    /// and its name.
    fn cap(&self, _setup: &Setup) -> Option<(u64, &'static str)> {
        None
    }
}
