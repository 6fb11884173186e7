//! IRN (Mittal et al., SIGCOMM 2018) as ConWeave's simulator does it (`ENABLE_IRN`).
//!
//! Receivers keep what comes early and name it; senders go back to the first byte that is missing, once for each recovery, and skip what they
//! know to have arrived. What decides a run to the byte: a sender skips only when somebody looks at it, be it the NIC in search of a
//! packet, an answer, or the simulator's monitor of queue pairs; what is in flight is counted from where the last packet *begins*, in 32
//! bits, so that it is huge when all is acknowledged.

use engine::{Parameter, Parameters, Raw, Time, ValueError};
use fabric::axes::transport::Ground;
use fabric::axes::{Definition, Transport, TransportDef};
use fabric::host::{PerFlow, Sender};
use fabric::id::{FlowId, PortId};
use fabric::packet::{Kind, Packet, PacketId, flag};
use fabric::view::{HostView, Reply};

/// What a configuration says of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Irn {
    /// Bytes that may be in flight.
    pub cap: u32,
    /// Whether switches pause their neighbours: then senders have no timeout.
    pub pauses: bool,
    /// Answers count down to a multiple of this many bytes; 0 for the byte itself.
    pub chunk: u64,
    /// ACKs acknowledge nothing.
    pub deaf: bool,
    /// When the monitor looks at queue pairs.
    pub monitor: Monitor,
}

/// Looks at all queue pairs now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// The first time.
    pub from: Time,
    /// Not later than one interval after this.
    pub to: Time,
    /// How often.
    pub every: Time,
}

impl Monitor {
    /// The last look up to `now`, if there was one.
    fn last(&self, now: Time) -> Option<Time> {
        let past = now.min(self.end()).0.checked_sub(self.from.0)?;
        Some(Time(self.from.0 + past - past % self.every.0.max(1)))
    }

    /// The last look of all: the first that is not before `to`.
    fn end(&self) -> Time {
        let every = self.every.0.max(1);
        Time(self.from.0 + self.to.0.saturating_sub(self.from.0).div_ceil(every) * every)
    }
}

const RTO_LOW: Time = Time::from_us(100);
const RTO_HIGH: Time = Time::from_us(320);
/// More packets than these in flight have the longer timeout.
const FEW: u32 = 3;

impl Parameters for Irn {
    fn list(&self) -> Vec<Parameter> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: &Raw) -> Option<Result<(), ValueError>> {
        None
    }
}

impl Definition for Irn {
    fn name(&self) -> &'static str {
        "enable-irn"
    }
    fn about(&self) -> &'static str {
        "IRN as ConWeave's simulator does it."
    }
    fn source(&self) -> &'static str {
        "R. Mittal et al., Revisiting Network Support for RDMA, SIGCOMM 2018"
    }
}

impl TransportDef for Irn {
    fn build(&self, ground: &Ground<'_>) -> Box<dyn Transport> {
        Box::new(Machine {
            irn: *self,
            payload: ground.setup.nic.payload as u32,
            sending: ground.per_sender(|_| Sending::default()),
            arrived: ground.per_receiver(|_| Blocks::default()),
        })
    }
    fn in_order(&self) -> bool {
        false
    }
    fn selective(&self) -> bool {
        true
    }
    fn sequential(&self) -> bool {
        true
    }
    fn patience(&self, _: &fabric::Setup) -> Time {
        RTO_HIGH
    }
}

/// Stretches of bytes that have arrived, in order and apart from one another: first byte, and the one after the last.
#[derive(Clone, Debug, Default, PartialEq)]
struct Blocks(Vec<(u64, u64)>);

impl Blocks {
    fn insert(&mut self, from: u64, to: u64) {
        let (mut from, mut to) = (from, to);
        // All that touch become one.
        self.0.retain(|&(start, end)| {
            let apart = end < from || to < start;
            if !apart {
                (from, to) = (from.min(start), to.max(end));
            }
            apart
        });
        let place = self.0.partition_point(|&(start, _)| start < from);
        self.0.insert(place, (from, to));
    }

    /// Forgets all before `byte`.
    fn pass(&mut self, byte: u64) {
        self.0.retain(|&(_, end)| end > byte);
        if let Some(first) = self.0.first_mut() {
            first.0 = first.0.max(byte);
        }
    }

    fn has(&self, from: u64, to: u64) -> bool {
        self.0.iter().any(|&(start, end)| start <= from && to <= end)
    }
}

/// A flow at its sender.
#[derive(Clone, Debug, Default)]
struct Sending {
    arrived: Blocks,
    /// The highest byte that an answer named.
    acked: u32,
    /// Where the furthest packet begins.
    furthest: u32,
    /// It repairs a loss, until this byte is acknowledged. A timeout leaves the byte as it was.
    repairs: bool,
    until: u64,
    /// When it was looked at last.
    seen: Time,
}

impl Sending {
    fn in_flight(&self) -> u32 {
        self.furthest.wrapping_sub(self.acked)
    }

    /// What is known to have arrived right here is not sent.
    fn skip(&mut self, s: &mut Sender) {
        if let Some(&(start, end)) = self.arrived.0.first().filter(|(start, _)| *start == s.next) {
            debug_assert!(start < end);
            s.next = end;
            self.arrived.pass(end);
        }
    }
}

struct Machine {
    irn: Irn,
    payload: u32,
    sending: PerFlow<Sending>,
    arrived: PerFlow<Blocks>,
}

impl Machine {
    /// What the monitor has done to a flow meanwhile.
    fn catch_up(&mut self, flow: FlowId, s: &mut Sender, now: Time) {
        let f = &mut self.sending[flow.index()];
        if self.irn.monitor.last(now).is_some_and(|looked| looked > f.seen) {
            f.skip(s);
        }
        f.seen = now;
    }

    fn timeout(&self, flow: FlowId) -> Option<Time> {
        let few = self.sending[flow.index()].in_flight() <= FEW * self.payload;
        (!self.irn.pauses).then_some(if few { RTO_LOW } else { RTO_HIGH })
    }

    /// Starts the timeout anew.
    fn wait(&self, at: &mut HostView<'_>, flow: FlowId) {
        let now = at.now();
        if let Some(timeout) = self.timeout(flow) {
            at.sender(flow).expires = now + timeout;
            at.arm(flow);
        }
    }
}

impl Transport for Machine {
    fn sent(&mut self, at: &mut HostView<'_>, flow: FlowId, id: PacketId, _: bool) {
        let (seq, now) = (at.packet(id).seq as u32, at.now());
        let f = &mut self.sending[flow.index()];
        (f.furthest, f.seen) = (f.furthest.max(seq), now);
        self.wait(at, flow);
    }

    fn data(&mut self, at: &mut HostView<'_>, port: PortId, id: PacketId) {
        let (packet, now) = (*at.packet(id), at.now());
        let flow = FlowId(packet.flow);
        let payload = (packet.size - at.setup().nic.header) as u64;
        let (nack_interval, size, over) = (at.setup().nic.nack_interval, at.flow(flow).size, at.sender_done(flow));
        let (r, here) = (at.receiver(flow), &mut self.arrived[flow.index()]);
        if over && !r.forgotten {
            // It is a new flow to stray packets.
            (r.expected, r.nack, r.forgotten) = (0, (0, Time::ZERO), true);
            *here = Blocks::default();
        }
        let end = packet.seq + payload;
        let (mut answered, mut early) = (true, false);
        let mut names = true;
        if packet.seq > r.expected {
            if here.has(packet.seq, end) && now < r.nack.1 {
                answered = false;
            } else {
                early = true;
                r.nack.1 = now + nack_interval;
                here.insert(packet.seq, end);
            }
        } else {
            if end >= r.expected {
                r.expected = end;
                if let Some(&(_, to)) = here.0.first().filter(|(start, _)| *start <= end) {
                    r.expected = to;
                }
                here.pass(r.expected);
            }
            names = !here.0.is_empty();
        }
        let ended = r.expected == size && r.finished == Time::MAX && !r.forgotten;
        if ended {
            r.finished = now;
        }
        let overtaken = packet.stamp < r.latest;
        r.latest = r.latest.max(packet.stamp);
        let seq = r.expected;
        if early {
            at.packet_mut(id).flags |= flag::MARKED;
        }
        at.counts().overtaken += overtaken as u64;
        at.counts().out_of_order += early as u64;
        // Which bytes the answer is about, if it names any: where they begin, and how many.
        at.extra(id).sack = if names { packet.seq << 16 | payload } else { 0 };
        let kind = if names { Kind::Nack } else { Kind::Ack };
        at.reply(port, id, Reply { answer: answered.then_some(kind), seq, ended });
    }

    fn control(&mut self, at: &mut HostView<'_>, packet: &Packet, id: PacketId) {
        let (sack, now) = (at.extra(id).sack, at.now());
        let flow = FlowId(packet.flow);
        let mut s = at.sender(flow).clone();
        self.catch_up(flow, &mut s, now);
        let f = &mut self.sending[flow.index()];
        let named = sack & 0xffff;
        if !self.irn.deaf {
            s.acked = s.acked.max(packet.seq - packet.seq.checked_rem(self.irn.chunk).unwrap_or(0));
            f.acked = f.acked.max(packet.seq as u32);
            if named > 0 {
                f.arrived.insert(sack >> 16, (sack >> 16) + named);
            }
            if let Some(&(_, end)) = f.arrived.0.first().filter(|(start, _)| *start == s.acked) {
                s.acked = end;
            }
            f.arrived.pass(s.acked);
            s.next = s.next.max(s.acked);
            f.repairs &= s.acked < f.until;
            f.skip(&mut s);
        }
        let waits = !s.done() && s.next > s.acked;
        if named > 0 && !f.repairs {
            f.until = s.next;
            s.next = s.acked;
        }
        f.repairs = named > 0;
        *at.sender(flow) = s;
        if waits {
            self.wait(at, flow);
        }
    }

    fn expired(&mut self, at: &mut HostView<'_>, flow: FlowId) {
        let now = at.now();
        let mut s = at.sender(flow).clone();
        self.catch_up(flow, &mut s, now);
        let f = &mut self.sending[flow.index()];
        f.skip(&mut s);
        s.next = s.acked;
        f.repairs = true;
        *at.sender(flow) = s;
        at.counts().timeouts += 1;
        at.note(flow);
        at.report_timeout(flow);
    }

    fn asked(&self) -> bool {
        true
    }

    fn passing(&mut self, flow: FlowId, s: &mut Sender, now: Time) -> bool {
        self.catch_up(flow, s, now);
        let f = &mut self.sending[flow.index()];
        let left = s.size.saturating_sub(s.next).min(self.payload as u64);
        let within =
            f.in_flight() as u64 + left < self.irn.cap as u64 || f.acked.wrapping_add(self.irn.cap) as u64 > s.next;
        f.skip(s);
        within
    }
}

#[cfg(test)]
mod tests;
