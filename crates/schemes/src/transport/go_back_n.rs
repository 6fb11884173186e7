//! Go-back-N: receivers take packets in order only; a sender that hears of a gap, or of nothing for too long, starts over from there.

use engine::{Parameter, Parameters, Raw, Time, ValueError};
use fabric::Setup;
use fabric::axes::congestion_control::Incident;
use fabric::axes::transport::Ground;
use fabric::axes::{Definition, Transport, TransportDef};
use fabric::id::{FlowId, PortId};
use fabric::packet::{Kind, Packet, PacketId, flag};
use fabric::setup::AckPolicy;
use fabric::view::{HostView, Reply};

/// Go-back-N. Its timeout and how often it asks for a repeat are the NIC's (`nic.timeout`, `nic.nack_interval`); what is here are
/// habits that the field's reference simulator has, and that no scenario sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoBackN {
    /// Start over at a multiple of this many bytes instead of at the gap; 0 for the gap itself.
    pub chunk: u64,
    /// Whether a packet that was received before is acknowledged again. Its first ACK may be what was lost.
    pub ack_duplicates: bool,
    /// A receiver that sees the sender start over and still misses the same packet says so at once.
    pub rounds: bool,
    /// A sender that starts over again without progress first waits a random time, longer every time.
    pub backoff: bool,
    /// ACKs acknowledge nothing: what a sender has sent stays in flight for ever.
    pub deaf: bool,
    /// A sender that went back stays there when bytes beyond are acknowledged. If it has a window, it sends nothing until it goes back again.
    pub lags: bool,
    /// The timeout starts anew with every packet sent and every ACK that comes, as long as something is in flight.
    pub restarts: bool,
    /// A receiver that misses something says so with a mark, as if a switch had made one.
    pub marks: bool,
    /// A packet that was received before and ends where the next is expected counts as one in order: it is answered when that is due, and not
    /// because it came again.
    pub overlaps: bool,
    /// The receiver forgets a flow the instant its sender is done, and takes stray packets for a new one. Such a run needs a single thread.
    pub forget: bool,
}

impl Default for GoBackN {
    fn default() -> GoBackN {
        GoBackN {
            chunk: 0,
            ack_duplicates: true,
            rounds: true,
            backoff: true,
            deaf: false,
            lags: false,
            restarts: false,
            marks: false,
            overlaps: false,
            forget: false,
        }
    }
}

impl GoBackN {
    /// The start of the chunk that `byte` is in, or the byte itself without chunks.
    fn whole_chunks(&self, byte: u64) -> u64 {
        byte - byte.checked_rem(self.chunk).unwrap_or(0)
    }
}

impl Parameters for GoBackN {
    fn list(&self) -> Vec<Parameter> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: &Raw) -> Option<Result<(), ValueError>> {
        None
    }
}

impl Definition for GoBackN {
    fn name(&self) -> &'static str {
        "go-back-n"
    }
    fn about(&self) -> &'static str {
        "Receivers take packets in order only; a sender that hears of a gap, or of nothing for too long, starts over from there."
    }
}

impl TransportDef for GoBackN {
    fn build(&self, ground: &Ground<'_>) -> Box<dyn Transport> {
        let (timeout, acks) = (ground.setup.nic.timeout, ground.setup.nic.acks);
        match *self == GoBackN::default() {
            true => Box::new(Machine::<true> { habits: *self, timeout, acks }),
            false => Box::new(Machine::<false> { habits: *self, timeout, acks }),
        }
    }
    fn sequential(&self) -> bool {
        self.forget
    }
    fn patience(&self, setup: &Setup) -> Time {
        let timeout = setup.nic.timeout.unwrap_or_default();
        // The longest back-off: so many of the largest packets at the slowest host's rate.
        let slowest = setup.graph.rates().min().filter(|_| self.backoff);
        let largest = setup.nic.payload as u64 + setup.nic.header as u64;
        let backoff = slowest.map_or(0, |rate| rate.time_for(largest).0.saturating_mul(1 << MOST_TRIES));
        Time(timeout.0.saturating_add(backoff))
    }
}

/// A sender that starts over waits for up to two to the power of its tries in packets, and of no more than these.
const MOST_TRIES: u8 = 12;

/// The mechanism. All of its state is in the two halves of a flow. Without the reference's habits it is `PLAIN`, and nobody asks for them.
struct Machine<const PLAIN: bool> {
    habits: GoBackN,
    timeout: Option<Time>,
    acks: AckPolicy,
}

impl<const PLAIN: bool> Machine<PLAIN> {
    #[inline(always)]
    fn habits(&self) -> GoBackN {
        if PLAIN { GoBackN::default() } else { self.habits }
    }

    /// Goes back to the last acknowledged byte. Senders that lose the same race again and again could do so for ever;
    /// from the second time on without progress, each waits a random time, twice as long every time.
    fn start_over(&self, at: &mut HostView<'_>, flow: FlowId) {
        let s = at.sender(flow);
        s.next = s.acked;
        if self.habits().backoff {
            let (tries, size) = (s.tries, s.last_size as u64);
            if tries > 0 {
                let packets = at.draw(1 << tries.min(MOST_TRIES));
                let wait = Time(at.line(flow).time_for(size).0 * packets);
                let due = at.due(flow).max(at.now() + wait);
                at.due_at(flow, due);
            }
            let s = at.sender(flow);
            s.tries = s.tries.saturating_add(1);
        }
        at.note(flow);
    }
}

impl<const PLAIN: bool> Transport for Machine<PLAIN> {
    fn hears_sent(&self) -> bool {
        self.timeout.is_some()
    }

    fn keeps_nothing(&self) -> bool {
        true
    }

    #[inline]
    fn sent(&mut self, at: &mut HostView<'_>, flow: FlowId, _: PacketId, _: bool) {
        let now = at.now();
        let s = at.sender(flow);
        if let Some(timeout) = self.timeout
            && (s.expires == Time::MAX || self.habits().restarts)
        {
            s.expires = now + timeout;
            at.arm(flow);
        }
    }

    fn data(&mut self, at: &mut HostView<'_>, port: PortId, id: PacketId) {
        let (packet, now) = (at.packet(id), at.now());
        let flow = FlowId(packet.flow);
        let (seq, stamp, end) = (packet.seq, packet.stamp, HostView::is_last(packet));
        let payload = (packet.size - at.setup().nic.header) as u64;
        let nack_interval = at.setup().nic.nack_interval;
        let forget = self.habits().forget && at.sender_done(flow);
        let r = at.receiver(flow);
        if forget && !r.forgotten {
            (r.expected, r.nack, r.forgotten) = (0, (0, Time::ZERO), true);
        }
        let overtaken = stamp < r.latest;
        r.latest = r.latest.max(stamp);
        let (mut answer, mut ended, mut early) = (None, false, false);
        let reaches = self.habits().overlaps && seq < r.expected && seq + payload >= r.expected;
        if seq == r.expected || reaches {
            let fresh = seq + payload > r.expected;
            r.expected = seq + payload;
            r.unacked += 1;
            ended = end && fresh && !r.forgotten;
            if ended {
                r.finished = now;
            }
            let due = match self.acks {
                AckPolicy::Every(k) => end || r.unacked >= k,
                AckPolicy::After { interval, chunk } => {
                    r.expected >= interval || (chunk > 0 && r.expected.is_multiple_of(chunk))
                }
            };
            if due {
                r.unacked = 0;
                answer = Some(Kind::Ack);
            }
        } else if seq > r.expected {
            early = !r.forgotten;
            // A packet behind the last one is of a new round, whose first packet got lost like that of the last.
            let again = self.habits().rounds && seq <= r.early;
            r.early = seq;
            if now >= r.nack.1 || r.nack.0 != r.expected || again {
                r.nack = (r.expected, now + nack_interval);
                r.expected = self.habits().whole_chunks(r.expected);
                answer = Some(Kind::Nack);
            }
        } else if self.habits().ack_duplicates {
            answer = Some(Kind::Ack);
        }
        let seq = r.expected;
        if self.habits().marks && answer == Some(Kind::Nack) {
            at.packet_mut(id).flags |= flag::MARKED;
        }
        let counts = at.counts();
        counts.overtaken += overtaken as u64;
        counts.out_of_order += early as u64;
        at.reply(port, id, Reply { answer, seq, ended });
    }

    fn control(&mut self, at: &mut HostView<'_>, packet: &Packet, _: PacketId) {
        let now = at.now();
        let flow = FlowId(packet.flow);
        let s = at.sender(flow);
        // A last chunk that is not full is never acknowledged: such a message does not end.
        let seq = self.habits().whole_chunks(packet.seq);
        if seq > s.acked && !self.habits().deaf {
            s.acked = seq;
            s.tries = 0;
            if !self.habits().lags {
                s.next = s.next.max(seq);
            }
            s.expires = match self.timeout {
                Some(timeout) if s.next > s.acked => now + timeout,
                _ => Time::MAX,
            };
        }
        if let Some(timeout) = self.timeout
            && self.habits().restarts
            && !s.done()
            && s.next > s.acked
        {
            s.expires = now + timeout;
        }
        if packet.kind == Kind::Nack && !s.done() {
            self.start_over(at, flow);
            at.report(flow, Incident::Lost);
        }
    }

    fn expired(&mut self, at: &mut HostView<'_>, flow: FlowId) {
        at.counts().timeouts += 1;
        self.start_over(at, flow);
        at.report_timeout(flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::axes::flow_control::NoFlowControl;
    use fabric::bench::{Bench, Builder};

    const PORT: PortId = PortId(0);

    fn bench(timeout: Option<Time>) -> Bench<NoFlowControl> {
        let builder = Builder::host(1).setup(|setup| setup.nic.timeout = timeout);
        builder.transport(&GoBackN::default()).build(NoFlowControl)
    }

    /// The numbers of the packets that were sent within a microsecond, which is enough for eleven.
    fn sent(bench: &mut Bench<NoFlowControl>) -> Vec<u64> {
        bench.advance(Time::from_us(1));
        bench.data().iter().map(|sent| sent.packet.seq / 1000).collect()
    }

    #[test]
    fn a_sender_that_hears_of_a_gap_starts_over_from_there() {
        let mut bench = bench(None);
        let flow = bench.flow(0, 1, 0);
        bench.start(flow, 5_000);
        assert_eq!(sent(&mut bench), [0, 1, 2, 3, 4]);
        bench.control(PORT, flow, Kind::Nack, 2_000);
        assert_eq!(sent(&mut bench), [2, 3, 4]);
        bench.control(PORT, flow, Kind::Ack, 5_000);
        assert!(bench.view().flow_done(flow));
    }

    #[test]
    fn a_sender_that_hears_nothing_for_the_timeout_starts_over_from_the_last_acknowledged_byte() {
        let mut bench = bench(Some(Time::from_us(100)));
        let flow = bench.flow(0, 1, 0);
        bench.start(flow, 4_000);
        assert_eq!(sent(&mut bench), [0, 1, 2, 3]);
        bench.control(PORT, flow, Kind::Ack, 1_000);
        bench.advance_to(Time::from_us(101) - Time(1));
        assert!(bench.data().is_empty());
        assert_eq!((sent(&mut bench), bench.counts().timeouts), (vec![1, 2, 3], 1));
    }

    #[test]
    fn the_habits_of_the_reference_are_kept() {
        let start = |habits: GoBackN| {
            let mut bench = Builder::host(1).transport(&habits).build(NoFlowControl);
            let flow = bench.flow(0, 1, 0);
            bench.start(flow, 5_000);
            assert_eq!(sent(&mut bench), [0, 1, 2, 3, 4]);
            (bench, flow)
        };
        // A chunk that is not full is never acknowledged; a sender that hears nothing never ends.
        for habits in [GoBackN { chunk: 4_000, ..GoBackN::default() }, GoBackN { deaf: true, ..GoBackN::default() }] {
            let (mut bench, flow) = start(habits);
            bench.control(PORT, flow, Kind::Ack, 5_000);
            assert!(!bench.view().flow_done(flow), "{habits:?}");
        }
        // What is acknowledged beyond where a sender is moves it, or does not.
        for (lags, expected) in [(false, vec![4]), (true, vec![1, 2, 3, 4])] {
            let (mut bench, flow) = start(GoBackN { lags, ..GoBackN::default() });
            bench.control(PORT, flow, Kind::Nack, 1_000);
            bench.control(PORT, flow, Kind::Ack, 4_000);
            let again = sent(&mut bench);
            assert!(again.ends_with(&expected) && again.len() <= expected.len() + 1, "{lags}: {again:?}");
        }
    }

    #[test]
    fn a_receiver_asks_once_for_a_packet_that_it_misses_and_takes_none_behind_it() {
        let mut bench = bench(None);
        let flow = bench.flow(1, 0, 0);
        let mut answer = |seq: u64| {
            bench.arrive_as(PORT, flow, |packet| packet.seq = seq);
            bench.advance(Time::from_us(1));
            bench.controls().iter().map(|sent| (sent.packet.kind, sent.packet.seq)).collect::<Vec<_>>()
        };
        assert_eq!(answer(0), [(Kind::Ack, 1_000)]);
        assert_eq!(answer(2_000), [(Kind::Nack, 1_000)]);
        assert_eq!(answer(3_000), []);
        assert_eq!(answer(2_000), [(Kind::Nack, 1_000)], "the sender has started over and it is still missing");
        assert_eq!(answer(1_000), [(Kind::Ack, 2_000)]);
        assert_eq!(answer(2_000), [(Kind::Ack, 3_000)]);
        assert_eq!(answer(0), [(Kind::Ack, 3_000)], "the first ACK may be what was lost");
    }
}
