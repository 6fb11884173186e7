//! Bolt (Arslan et al., NSDI 2023): switches notify senders of congestion without the detour by the receiver, and hand out
//! bandwidth packet by packet before it lies idle.
//!
//! * **Sub-RTT control** (SRC): a packet that finds `threshold` bytes at its egress port makes the switch send a control
//!   packet back to its sender, with the queue and the rate of the port. The packet is flagged DEC, so that no switch after it does the
//!   same. The sender takes one packet off its window, as often as its share of the queue asks for.
//! * **Proactive ramp-up** (PRU): packets of a flow's last window are flagged LAST. None follows when they are acknowledged, so
//!   that each is a token: the right of another flow's packet, one round trip later.
//! * **Supply matching** (SM): a port counts what it could have sent less what it was given to send, up to one packet. A whole
//!   packet of that is a token too.
//!
//! A packet flagged INC asks for a token at every switch; if its ACK still has the flag, the window grows by a packet. FIRST, the flag of
//! packets sent before the first ACK, is not carried: such packets neither ask nor leave a token, as packets without LAST and INC do.
//!
//! The switch half is a [`Marking`] program. It runs where a packet is queued, before it has waited, as in the authors' simulator
//! (serhatarslan-hub/bolt_cc_ns3), from which the defaults come.

use super::{Slots, check_shares};
use crate::flow_control::check_frame;
use engine::{Bytes, Misfit, Rate, Time};
use fabric::axes::congestion_control::{Ack, FlowStart, Incident, Needs, Notice, Permit};
use fabric::axes::flow_control::Visit;
use fabric::axes::{CongestionControl, CongestionControlDef, Counter, Definition, Marking, MarkingDef};
use fabric::view::{NodeView, Site};

/// A packet of the last window: nothing will follow when it is acknowledged.
const LAST: u16 = 0x1000;
/// The sender asks for a larger window; a switch without a token takes the flag off.
const INC: u16 = 0x2000;
/// A switch has notified the sender already.
const DEC: u16 = 0x4000;

engine::parameters! {
    /// Parameters of Bolt; defaults as in the authors' simulator, where not said otherwise.
    pub struct Params {
        /// A packet that finds this much at its egress port makes the switch notify its sender (CC_THRESH). Auto: two full packets.
        threshold: Option<Bytes> = None,
        /// Packets of last windows are tokens for other flows (PRU).
        pru: bool = true,
        /// Tokens of that kind that a port keeps at most.
        pru_tokens: u32 = 256, if pru == true,
        /// Bandwidth that a port did not use is a token (SM).
        sm: bool = true,
        /// Packets by which the window grows in every round trip.
        ai: f64 = 1.0,
        /// Share of the window that is left after a loss, and, of a window of a packet or less, after a notification.
        cut: f64 = 0.5,
        /// The window never falls below this share of a packet.
        min_window: f64 = 0.01,
        /// The window never grows beyond. Auto: the scenario's window.
        max_window: Option<Bytes> = None,
        /// Size of an SRC packet: the headers of a data packet, the queue and the rate of the port.
        packet: Bytes = Bytes(78),
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "bolt"
    }
    fn about(&self) -> &'static str {
        "Bolt: switches notify senders of congestion directly, and hand out tokens for bandwidth that is or will be free."
    }
    fn needs_size(&self) -> bool {
        true
    }
    fn source(&self) -> &'static str {
        "S. Arslan, Y. Li, G. Kumar, N. Dukkipati, Bolt: Sub-RTT Congestion Control for Ultra-Low Latency, NSDI 2023"
    }
    fn control_packet(&self) -> u64 {
        self.packet.0
    }
    fn check(&self) -> Result<(), Misfit> {
        check_shares(&[("cut", self.cut), ("min_window", self.min_window)])?;
        // At nothing, or next to it, a flow would stand still for good.
        if self.min_window < 1e-4 {
            return Err(Misfit::new("min_window", self.min_window, "write a share from 0.0001 to 1, such as 0.01"));
        }
        if !(0.0..=1e6).contains(&self.ai) {
            return Err(Misfit::new("ai", self.ai, "write a number of packets from 0 to 1000000"));
        }
        if self.max_window == Some(Bytes(0)) {
            return Err(Misfit::new("max_window", "zero", "write at least \"1B\", or \"auto\""));
        }
        check_frame("packet", self.packet)
    }
}

impl CongestionControlDef for Params {
    fn needs_window(&self) -> bool {
        true
    }
    fn header(&self) -> (u16, u16) {
        (10, 10) // a time stamp and the flags, in the packet and again in its ACK
    }
    fn switch_half(&self) -> Option<Box<dyn MarkingDef>> {
        Some(Box::new(self.clone()))
    }
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Bolt { params: self.clone(), flows: Slots::default(), raises: 0, steps: 0, cuts: 0 })
    }
}

impl MarkingDef for Params {
    fn switch(&self, site: &Site<'_>) -> Option<Box<dyn Marking>> {
        let nic = &site.setup.nic;
        let mtu = nic.payload as u64 + nic.header as u64;
        let ports = vec![Port::default(); site.ports().len()];
        let threshold = self.threshold.map_or(2 * mtu, |bytes| bytes.0);
        Some(Box::new(Switch { params: self.clone(), mtu, threshold, ports, counts: Counts::default() }))
    }
}

/// What a switch remembers of an egress port.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    /// PRU's tokens.
    tokens: u32,
    /// SM's bucket, in bits per second times picoseconds, which is exact at any rate. Below zero: more came than could be sent.
    spare: i128,
    /// When the bucket was last brought up to date.
    at: Time,
    /// Bytes that the port had been given by then.
    given: u64,
}

/// A byte in the unit of [`Port::spare`].
const BYTE: i128 = 8_000_000_000_000;

/// A packet that a port is given, and how it finds the port.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    now: Time,
    rate: Rate,
    /// Bytes that the port was ever given, of all kinds, with this packet.
    given: u64,
    /// Bytes that wait, without this packet.
    queued: u64,
    /// Its flags.
    own: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    notified: u64,
    left: u64,
    ramped: u64,
    matched: u64,
    refused: u64,
}

struct Switch {
    params: Params,
    mtu: u64,
    threshold: u64,
    ports: Vec<Port>,
    counts: Counts,
}

impl Switch {
    /// The flags of a packet after this switch, and whether its sender is to be notified.
    fn take(&mut self, port: usize, packet: Arrival) -> (u16, bool) {
        let (params, counts, port) = (&self.params, &mut self.counts, &mut self.ports[port]);
        let mtu = self.mtu as i128 * BYTE;
        // What could be sent since the last packet, less what came. A link that went down has lost some of that again.
        let supply = packet.rate.0 as i128 * packet.now.saturating_sub(port.at).0 as i128;
        let demand = (packet.given as i128 - port.given as i128) * BYTE;
        port.spare = (port.spare + supply - demand).min(mtu);
        (port.at, port.given) = (packet.now, packet.given);
        let own = packet.own;
        if packet.queued >= self.threshold {
            let first = own & DEC == 0;
            counts.notified += first as u64;
            return (own & !INC | DEC, first);
        }
        if own & LAST != 0 {
            if params.pru && port.tokens < params.pru_tokens {
                port.tokens += 1;
                counts.left += 1;
            }
        } else if own & INC != 0 {
            if port.tokens > 0 {
                port.tokens -= 1;
                counts.ramped += 1;
            } else if params.sm && port.spare >= mtu {
                port.spare -= mtu;
                counts.matched += 1;
            } else {
                counts.refused += 1;
                return (own & !INC, false);
            }
        }
        (own, false)
    }
}

impl Marking for Switch {
    fn enqueued(&mut self, at: &mut NodeView<'_>, visit: &Visit) {
        let (out, waiting) = (visit.out_port, at.queued(visit.out_port));
        let packet = Arrival {
            now: at.now(),
            rate: at.rate(out),
            given: at.sent(out) + waiting,
            queued: waiting - visit.size as u64,
            own: at.packet(visit.packet).flags & (LAST | INC | DEC),
        };
        let (own, notify) = self.take(out.index(), packet);
        if notify {
            // The report counts this packet, too; the sender takes it off again.
            at.notify_sender(visit.packet, out, self.params.packet.0 as u16, visit.size);
        }
        let flags = &mut at.packet_mut(visit.packet).flags;
        *flags = *flags & !(LAST | INC | DEC) | own;
    }
    fn counters(&self) -> Vec<Counter> {
        vec![
            Counter::sum("bolt_src_sent", self.counts.notified),
            Counter::sum("bolt_pru_left", self.counts.left),
            Counter::sum("bolt_pru_taken", self.counts.ramped),
            Counter::sum("bolt_sm_taken", self.counts.matched),
            Counter::sum("bolt_inc_refused", self.counts.refused),
        ]
    }
}

#[derive(Clone, Debug)]
struct Flow {
    line: Rate,
    size: u64,
    payload: u64,
    /// Bytes of a full packet on the wire.
    mtu: u64,
    /// Bytes of message that may be unacknowledged.
    window: u64,
    max: u64,
    /// The last round-trip time; zero before the first ACK.
    rtt: Time,
    /// The next byte to send, as of the last ACK.
    next: u64,
    /// The round trip ends when this byte is acknowledged.
    round: u64,
    /// When the window was last made smaller.
    cut_at: Time,
}

impl Flow {
    /// Grows by a number of packets.
    fn grow(&mut self, packets: f64) {
        self.window = (self.window + (packets * self.payload as f64) as u64).min(self.max);
    }

    /// Shrinks to a share, as far as it may.
    fn shrink(&mut self, share: f64, p: &Params) {
        let floor = ((p.min_window * self.payload as f64) as u64).max(1);
        self.window = ((self.window as f64 * share) as u64).max(floor);
    }

    /// How long to wait between two steps down, in picoseconds: the flow's share of the queue, in packets, is to be gone after the time that
    /// notifications take.
    fn interval(&self, notice: &Notice) -> f64 {
        let delay = notice.now.saturating_sub(notice.stamp).0 as f64;
        let rate = match self.rtt {
            Time::ZERO => self.line.0 as f64,
            rtt => self.window as f64 * 8e12 / rtt.0 as f64,
        };
        let packets = (notice.queued as f64 - notice.word as f64) / self.mtu as f64;
        delay / (packets * rate / notice.rate.0 as f64)
    }

    /// What the NIC is given for a window. It sends while fewer bytes than that are in flight: a byte more than room for all packets but one,
    /// so that a fraction of a packet is not a whole one.
    fn room(&self) -> u64 {
        self.window.saturating_sub(self.payload) + 1
    }

    /// What the NIC lets the flow do. A window of less than a packet is one packet, and time to wait after it.
    fn settle(&self, permit: &mut Permit) {
        permit.window = self.room();
        permit.rate = self.line;
        if self.window < self.payload && self.rtt > Time::ZERO {
            let share = self.window as f64 / self.payload as f64;
            let rate = Rate((self.mtu as f64 * 8e12 / self.rtt.0 as f64 * share) as u64);
            permit.rate = rate.max(Rate(1)).min(self.line);
        }
        permit.repace = true;
        permit.own = match (self.rtt, self.next.saturating_add(self.window) >= self.size) {
            (Time::ZERO, _) => 0,
            (_, true) => LAST,
            (_, false) => INC,
        };
    }
}

struct Bolt {
    params: Params,
    flows: Slots<Flow>,
    raises: u64,
    steps: u64,
    cuts: u64,
}

impl CongestionControl for Bolt {
    fn needs(&self) -> Needs {
        Needs { every_ack: true, window: true, incidents: true, ..Needs::default() }
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        let window = if flow.window > 0 { flow.window } else { flow.line.bytes_over(flow.base_rtt) };
        let max = self.params.max_window.map_or(window, |bytes| bytes.0).max(1);
        let state = Flow {
            line: flow.line,
            size: flow.size,
            payload: flow.payload as u64,
            mtu: (flow.payload + flow.header) as u64,
            window: window.min(max).max(1),
            max,
            rtt: Time::ZERO,
            next: 0,
            round: 0,
            cut_at: flow.now,
        };
        let permit = Permit { window: state.room(), ..Permit::at(flow.line) };
        self.flows.put(slot, state);
        permit
    }

    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        let flow = self.flows.get(slot);
        flow.rtt = Time(ack.now.saturating_sub(ack.stamp).0.max(1));
        flow.next = ack.next;
        if ack.own & INC != 0 {
            flow.grow(1.0);
            self.raises += 1;
        }
        if ack.seq >= flow.round {
            flow.grow(self.params.ai);
            flow.round = ack.next;
        }
        flow.settle(permit);
    }

    fn notice(&mut self, slot: u32, notice: &Notice, permit: &mut Permit) {
        let flow = self.flows.get(slot);
        if flow.window <= flow.payload {
            flow.shrink(self.params.cut, &self.params);
            self.cuts += 1;
        } else if notice.now.saturating_sub(flow.cut_at).0 as f64 >= flow.interval(notice) {
            flow.window -= flow.payload;
            flow.cut_at = notice.now;
            self.steps += 1;
        }
        flow.settle(permit);
    }

    fn incident(&mut self, slot: u32, now: Time, incident: Incident, permit: &mut Permit) {
        let flow = self.flows.get(slot);
        if incident == Incident::Lost && now.saturating_sub(flow.cut_at) >= flow.rtt {
            flow.shrink(self.params.cut, &self.params);
            flow.cut_at = now;
            self.cuts += 1;
            flow.settle(permit);
        }
    }

    fn counters(&self) -> Vec<Counter> {
        vec![
            Counter::sum("bolt_raises", self.raises),
            Counter::sum("bolt_steps_down", self.steps),
            Counter::sum("bolt_cuts", self.cuts),
        ]
    }
}

#[cfg(test)]
mod tests;
