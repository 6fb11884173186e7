//! IRN (Mittal et al., SIGCOMM 2018): selective repeat, a cap of one bandwidth-delay product, two timeouts.
//!
//! Receivers take packets in any order and name every one that came too early; senders send again only what is missing.
//! A sender's `next` is what it sends next, as with every transport; while it repairs a loss that is a missing packet, and `high` is
//! where it goes on afterwards.

use super::bandwidth_delay;
use engine::{Bytes, Misfit, Time};
use fabric::Setup;
use fabric::axes::congestion_control::Incident;
use fabric::axes::transport::{Ground, Progress};
use fabric::axes::{Counter, Definition, Transport, TransportDef};
use fabric::host::{PerFlow, Sender};
use fabric::id::{FlowId, PortId};
use fabric::packet::{Kind, Packet, PacketId};
use fabric::setup::AckPolicy;
use fabric::view::{HostView, Reply};
use std::collections::VecDeque;

engine::parameters! {
    /// Parameters of IRN.
    pub struct Params {
        /// The most of a message that may be in flight. Auto: the bandwidth-delay product of the longest base round trip and
        /// the fastest link of a host.
        cap: Option<Bytes> = None,
        /// How long a sender with few packets in flight waits for news before it sends again. Auto: 100us, or twice the longest
        /// base round trip if that is more.
        rto_low: Option<Time> = None,
        /// The same with more packets in flight. Auto: nic.timeout if that is written, otherwise 320us, or twice the longest base
        /// round trip if that is more.
        rto_high: Option<Time> = None,
        /// Fewer packets than this are few.
        few: u32 = 3,
        /// A packet is lost when one has arrived that was so many packets behind it. More than one is for paths on which packets overtake each other
        /// (the paper proposes a threshold of NACKs).
        reordering: u32 = 1, in 1..=65_536,
    }
}

/// Published for a fabric of 40 Gb/s links with a round trip of 24 us (§4.1).
const RTO_LOW: Time = Time::from_us(100);
/// See [`RTO_LOW`].
const RTO_HIGH: Time = Time::from_us(320);

/// A published timeout, made longer where the answer to a packet cannot be there before it ends: senders would fill their paths
/// with repetitions.
fn timeout(published: Time, setup: &Setup) -> Time {
    published.max(Time(setup.longest_rtt().0.saturating_mul(2)))
}

/// The parameters as numbers of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limits {
    /// At most this many bytes of message between the first that is not acknowledged and the next to be sent.
    cap: u64,
    /// Without news for so long, something is lost, if fewer than `few` packets are in flight.
    low: Time,
    /// The same if there are more.
    high: Time,
    /// See `low`.
    few: u32,
    /// By how many bytes of message more than one packet another may be overtaken without being lost.
    slack: u64,
}

impl Params {
    fn limits(&self, setup: &Setup) -> Limits {
        let high = self.patience(setup);
        let cap = self.cap.map_or_else(|| bandwidth_delay(setup), |cap| cap.0).max(1);
        let low = self.rto_low.unwrap_or_else(|| timeout(RTO_LOW, setup)).min(high);
        let slack = (self.reordering as u64 - 1) * setup.nic.payload as u64;
        Limits { cap, low, high, few: self.few, slack }
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "irn"
    }
    fn about(&self) -> &'static str {
        "Selective repeat (IRN): receivers take packets in any order and name each that came early; senders repeat only what is \
         missing, with at most one bandwidth-delay product in flight."
    }
    fn source(&self) -> &'static str {
        "R. Mittal et al., Revisiting Network Support for RDMA, SIGCOMM 2018"
    }
    fn check(&self) -> Result<(), Misfit> {
        let longest = Time::from_ms(1_000_000);
        for (name, time) in [("rto_low", self.rto_low), ("rto_high", self.rto_high)] {
            if let Some(time) = time
                && (time < Time::from_us(1) || time > longest)
            {
                return Err(Misfit::new(name, time, "write a time from \"1us\" to \"1000s\""));
            }
        }
        match self.cap {
            Some(Bytes(0)) => Err(Misfit::new("cap", "zero", "write a size above zero, or \"auto\"")),
            _ => Ok(()),
        }
    }
}

impl TransportDef for Params {
    fn build(&self, ground: &Ground<'_>) -> Box<dyn Transport> {
        let nic = &ground.setup.nic;
        Box::new(Machine {
            limits: self.limits(ground.setup),
            full: nic.payload as u64,
            ack_every: if let AckPolicy::Every(every) = nic.acks { every } else { 1 },
            arrived: ground.per_receiver(|_| Arrived { packets: Packets::default(), end: u64::MAX }),
            repair: ground.per_sender(|_| Repair::default()),
            nacks: 0,
            duplicates: 0,
            recoveries: 0,
            timeouts_low: 0,
            timeouts_high: 0,
        })
    }
    fn in_order(&self) -> bool {
        false
    }
    fn selective(&self) -> bool {
        true
    }
    fn own_timeout(&self) -> bool {
        true
    }
    fn patience(&self, setup: &Setup) -> Time {
        self.rto_high.or(setup.nic.timeout).unwrap_or_else(|| timeout(RTO_HIGH, setup))
    }
    fn describe(&self, setup: &Setup) -> String {
        let Limits { cap, low, high, .. } = self.limits(setup);
        format!("at most {} in flight, timeouts {low} and {high}", Bytes(cap))
    }
    fn ignores(&self) -> &'static [&'static str] {
        &["nic.nack_interval"]
    }
    fn cap(&self, setup: &Setup) -> Option<(u64, &'static str)> {
        Some((self.limits(setup).cap, "irn's cap"))
    }
}

/// Numbers of packets of one flow, from a moving first one on.
#[derive(Clone, Debug, Default)]
struct Packets {
    /// Words that have been passed.
    gone: u64,
    words: VecDeque<u64>,
    count: u64,
}

impl Packets {
    /// Adds a number that has not been passed; false if it is there already.
    fn insert(&mut self, number: u64) -> bool {
        let (word, bit) = ((number / 64 - self.gone) as usize, 1 << (number % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += new as u64;
        new
    }

    /// Forgets all numbers before `number`.
    fn pass(&mut self, number: u64) {
        while self.gone < number / 64 {
            let Some(word) = self.words.pop_front() else {
                self.gone = number / 64;
                return;
            };
            self.count -= word.count_ones() as u64;
            self.gone += 1;
        }
        if let Some(word) = self.words.front_mut() {
            let left = *word & u64::MAX << (number % 64);
            self.count -= (*word ^ left).count_ones() as u64;
            *word = left;
        }
    }

    /// The first number from `number` on that is not there.
    fn gap(&self, number: u64) -> u64 {
        let mut word = (number / 64).saturating_sub(self.gone) as usize;
        let mut below = !(u64::MAX << (number % 64));
        while let Some(&bits) = self.words.get(word) {
            let missing = !(bits | below);
            if missing != 0 {
                return (self.gone + word as u64) * 64 + missing.trailing_zeros() as u64;
            }
            below = 0;
            word += 1;
        }
        number.max((self.gone + word as u64) * 64)
    }
}

/// What a receiver knows of a flow beyond what came in order.
#[derive(Clone, Debug)]
struct Arrived {
    packets: Packets,
    /// Bytes of message; `u64::MAX` before the last packet has come.
    end: u64,
}

/// What a sender knows of a flow beyond what is acknowledged in order.
#[derive(Clone, Debug, Default)]
struct Repair {
    /// Packets that arrived ahead of missing ones.
    sacked: Packets,
    /// It repairs until everything before this byte is acknowledged.
    until: u64,
    /// Packets before this byte that are not acknowledged are lost.
    lost: u64,
    /// What was missing before this byte was sent again.
    resent: u64,
    /// The last news of the flow, or its first packet in flight after none.
    since: Time,
    /// The last timeout, if it began the repair that goes on now.
    timeout: Option<Time>,
}

/// The mechanism.
struct Machine {
    limits: Limits,
    /// Bytes of message in a full packet.
    full: u64,
    /// Packets in order that one ACK answers.
    ack_every: u32,
    arrived: PerFlow<Arrived>,
    repair: PerFlow<Repair>,
    nacks: u64,
    duplicates: u64,
    recoveries: u64,
    timeouts_low: u64,
    timeouts_high: u64,
}

impl Machine {
    /// How long a flow waits for news now, and whether that is the short timeout: it counts where too few packets are in flight for
    /// NACKs to reveal a loss.
    fn wait(&self, s: &Sender, flow: FlowId) -> (Time, bool) {
        let sacked = self.repair[flow.index()].sacked.count;
        let few = (s.high - s.acked).div_ceil(self.full) - sacked < self.limits.few as u64;
        (if few { self.limits.low } else { self.limits.high }, few)
    }

    /// Chooses what a flow sends next: what is lost first, then what is new.
    fn aim(&self, s: &mut Sender, flow: FlowId) {
        let f = &self.repair[flow.index()];
        s.next = s.high;
        if s.acked < f.until {
            let missing = f.sacked.gap(f.resent.max(s.acked).div_ceil(self.full)) * self.full;
            if missing < f.lost {
                s.next = missing;
            }
        }
    }
}

impl Transport for Machine {
    fn sent(&mut self, at: &mut HostView<'_>, flow: FlowId, _: PacketId, again: bool) {
        let now = at.now();
        let (s, f) = (at.sender(flow), &mut self.repair[flow.index()]);
        let repairing = s.acked < f.until;
        if again {
            f.resent = s.next;
        }
        if s.expires == Time::MAX {
            f.since = now;
            let (wait, _) = self.wait(s, flow);
            s.expires = now + wait;
            at.arm(flow);
        }
        if repairing {
            self.aim(at.sender(flow), flow);
        }
    }

    fn data(&mut self, at: &mut HostView<'_>, port: PortId, id: PacketId) {
        let (packet, now) = (*at.packet(id), at.now());
        let flow = FlowId(packet.flow);
        let payload = (packet.size - at.setup().nic.header) as u64;
        let (r, here) = (at.receiver(flow), &mut self.arrived[flow.index()]);
        let number = packet.seq / self.full;
        let fresh = packet.seq >= r.expected && here.packets.insert(number);
        self.duplicates += !fresh as u64;
        if HostView::is_last(&packet) {
            here.end = packet.seq + payload;
        }
        let (mut ended, mut early) = (false, false);
        let answer = if packet.seq > r.expected {
            early = fresh;
            self.nacks += 1;
            Some(Kind::Nack)
        } else if fresh {
            let next = here.packets.gap(number + 1);
            here.packets.pass(next);
            r.expected = (next * self.full).min(here.end);
            r.unacked += 1;
            ended = r.expected == here.end;
            if ended {
                r.finished = now;
                here.packets = Packets::default();
            }
            (ended || r.unacked >= self.ack_every).then_some(Kind::Ack)
        } else {
            Some(Kind::Ack)
        };
        if answer.is_some() {
            r.unacked = 0;
        }
        let seq = r.expected;
        at.counts().out_of_order += early as u64;
        at.extra(id).sack = packet.seq;
        at.reply(port, id, Reply { answer, seq, ended });
    }

    fn control(&mut self, at: &mut HostView<'_>, packet: &Packet, id: PacketId) {
        let (now, sack) = (at.now(), at.extra(id).sack);
        let flow = FlowId(packet.flow);
        let (s, f) = (at.sender(flow), &mut self.repair[flow.index()]);
        let (mut news, mut found) = (false, false);
        if packet.seq > s.acked {
            s.acked = packet.seq;
            f.sacked.pass(packet.seq.div_ceil(self.full));
            news = true;
            // What was sent after the timeout is there, and what was sent before is not.
            if f.timeout.is_some_and(|timeout| packet.stamp >= timeout) {
                f.lost = f.lost.max(f.until);
            }
        }
        // One that overtook or was overtaken by a later ACK says nothing new.
        if packet.kind == Kind::Nack && sack > s.acked {
            news |= f.sacked.insert(sack / self.full);
            let reach = sack.saturating_sub(self.limits.slack);
            found = s.acked >= f.until && reach > s.acked;
            if found {
                self.recoveries += 1;
                (f.until, f.lost, f.resent, f.timeout) = (s.high, s.acked + 1, s.acked, None);
            }
            f.lost = f.lost.max(reach);
        }
        if s.done() {
            *f = Repair::default();
            s.next = s.high;
            return;
        }
        if news {
            f.since = now;
            let (wait, _) = self.wait(s, flow);
            s.expires = if s.high > s.acked { now + wait } else { Time::MAX };
        }
        self.aim(s, flow);
        at.arm(flow);
        if found {
            at.report(flow, Incident::Lost);
        }
    }

    fn expired(&mut self, at: &mut HostView<'_>, flow: FlowId) {
        let now = at.now();
        let s = at.sender(flow);
        let (wait, few) = self.wait(s, flow);
        let f = &mut self.repair[flow.index()];
        // There has been news since the alarm was set, or more packets are in flight now, which have longer.
        if f.since + wait > now {
            s.expires = f.since + wait;
            return;
        }
        *(if few { &mut self.timeouts_low } else { &mut self.timeouts_high }) += 1;
        self.recoveries += (s.acked >= f.until) as u64;
        (f.until, f.lost, f.resent, f.timeout, f.since) = (s.high, s.acked + 1, s.acked, Some(now), now);
        s.expires = now + wait;
        self.aim(s, flow);
        at.counts().timeouts += 1;
        at.note(flow);
        at.report_timeout(flow);
    }

    fn window_cap(&self) -> u64 {
        self.limits.cap
    }

    fn progress(&self, _: FlowId, sender: &Sender) -> Progress {
        Progress { next: sender.high, received: sender.acked, flight: sender.high.saturating_sub(sender.acked) }
    }

    fn counters(&self) -> Vec<Counter> {
        vec![
            Counter::sum("irn_nacks", self.nacks),
            Counter::sum("irn_duplicates", self.duplicates),
            Counter::sum("irn_recoveries", self.recoveries),
            Counter::sum("irn_timeouts_low", self.timeouts_low),
            Counter::sum("irn_timeouts_high", self.timeouts_high),
        ]
    }
}

#[cfg(test)]
mod tests;
