//! What decides all that happens next, as a number: where it comes again, so does all that followed.
//!
//! Instants are taken as far off as they are, and bytes of a message as far ahead of what is acknowledged, so that the number is the same after a while in which
//! everything has moved on by as much. What a run counts and what it shows is not in it.

use crate::axes::congestion_control::Known;
use crate::axes::flow_control::FlowControl;
use crate::packet::{Hop, Kind, PacketId, flag};
use crate::run::{Core, Network};
use engine::Time;

/// A number that is made of others, in order.
#[derive(Clone, Copy, Default)]
struct Digest(u64);

impl Digest {
    #[inline]
    fn word(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(31);
    }
    fn words(&mut self, words: impl IntoIterator<Item = u64>) {
        words.into_iter().for_each(|word| self.word(word));
    }
}

impl Core {
    /// How far off an instant is.
    fn ahead(&self, time: Time) -> u64 {
        if time == Time::MAX { u64::MAX } else { time.0.wrapping_sub(self.time.now.0) }
    }

    /// The same of what a switch said: the bytes that its port has sent since.
    fn hop(&self, digest: &mut Digest, hop: &Hop) {
        let sent = self.ports.get(hop.port() as usize).map_or(0, |port| port.tx_bytes);
        let since = sent.wrapping_sub(hop.tx_bytes()) & ((1 << 44) - 1);
        digest.words([self.ahead(hop.time), since, hop.queued as u64, hop.mbps as u64, hop.port() as u64]);
    }

    /// A packet; none where it carries what is not known here.
    fn packet(&self, digest: &mut Digest, id: PacketId) -> Option<()> {
        let p = &self.pool[id];
        if p.flags & flag::PAYLOAD != 0 {
            return None;
        }
        // Of what is the scheme's own nothing is known: it is the same only if it is the same.
        let own = !matches!(p.kind, Kind::Data | Kind::Ack | Kind::Nack);
        let acked = if own { 0 } else { self.hosts.senders[p.flow as usize].acked };
        digest.words([
            p.seq.wrapping_sub(acked),
            if own { p.stamp.0 } else { self.ahead(p.stamp) },
            (p.flow as u64) << 32 | p.dst as u64,
            (p.tuple.source as u64) << 32 | p.tuple.destination as u64,
            (p.tuple.source_port as u64) << 32 | p.tuple.destination_port as u64,
            (p.in_port as u64) << 48 | (p.size as u64) << 32 | (p.tag as u64) << 16 | p.flags as u64,
            (p.kind as u64) << 16 | (p.class as u64) << 8 | p.reports as u64,
        ]);
        self.pool.telemetry(id).iter().for_each(|hop| self.hop(digest, hop));
        if let Some(answer) = self.pool.said(id).filter(|_| !own) {
            digest.words([answer.sack.wrapping_sub(acked), answer.delay.0]);
        }
        Some(())
    }

    /// Packets of a list, in order; gives how many there are.
    fn packets(&self, digest: &mut Digest, list: impl Iterator<Item = PacketId>) -> Option<u64> {
        let mut count = 0;
        for id in list {
            self.packet(digest, id)?;
            count += 1;
        }
        digest.word(count);
        Some(count)
    }

    /// The two halves of a flow, and what congestion control knows of it.
    fn flow(&self, digest: &mut Digest, flow: u32) -> Option<()> {
        let (s, r) = (&self.hosts.senders[flow as usize], &self.hosts.receivers[flow as usize]);
        digest.words([
            flow as u64,
            s.next.wrapping_sub(s.acked),
            s.high.wrapping_sub(s.acked),
            s.window,
            s.rate.0,
            (s.last_size as u64) << 32
                | (s.class as u64) << 24
                | (s.held as u64) << 16
                | (s.tries as u64) << 8
                | s.own as u64,
            (s.tag as u64) << 32 | s.place as u64,
            (s.tuple.source_port as u64) << 32 | s.tuple.destination_port as u64,
        ]);
        digest.words([s.due, s.timer, s.armed, s.expires].map(|time| self.ahead(time)));
        // Of gaps: they are the same only if there is none.
        digest.words([r.nack.0, r.nack.1.0, r.early, r.unacked as u64, r.forgotten as u64]);
        digest.words([r.expected.wrapping_sub(s.acked), self.ahead(r.latest)]);
        self.hosts.control.known()?.recall(s.slot, self.time.now, &mut |known| match known {
            Known::Level(value, _) => digest.word(value.to_bits()),
            Known::Instant(time) => digest.word(self.ahead(time)),
            Known::Byte(byte) => digest.word(byte.wrapping_sub(s.acked)),
            Known::Word(word) => digest.word(word),
            Known::Hop(hop) => self.hop(digest, &hop),
        });
        Some(())
    }

    /// Switches, hosts and links; none where something is at work of which it is not known what it keeps.
    fn hardware(&self, digest: &mut Digest) -> Option<()> {
        let (hosts, switches, blocks) = (&self.hosts, &self.switches, self.blocks.as_ref()?);
        let plain = switches.keep_packets_alone()
            && hosts.census.is_none()
            && hosts.selectors.is_empty()
            && hosts.slow.is_empty()
            && hosts.lines.is_empty()
            && self.dice.shared.is_none()
            && self.shard.is_none();
        if !plain {
            return None;
        }
        let mut packets = 0;
        for p in &self.ports {
            if p.relays || p.faulty || !p.flying.is_empty() {
                return None;
            }
            // How long a transmitter has been idle does not matter.
            let busy = p.free_at >= self.time.now;
            digest.words([
                if busy { self.ahead(p.free_at) } else { u64::MAX },
                if busy { p.end_rank as u64 } else { 0 },
                p.queued,
                (p.paused as u64) << 32
                    | (p.last as u64) << 3
                    | (p.wake as u64) << 2
                    | (p.up as u64) << 1
                    | p.urgent as u64,
            ]);
            packets += self.packets(digest, p.frames.iter(&self.pool))?;
            packets += self.packets(digest, p.control.iter(&self.pool))?;
        }
        for queue in &switches.queues {
            digest.words([queue.bytes, queue.deficit as u64]);
            packets += self.packets(digest, queue.packets.iter(&self.pool))?;
        }
        digest.words(switches.masks.numbers());
        for account in &switches.accounts {
            digest.words([account.bytes, account.headroom as u64, account.global as u64, account.paused as u64]);
        }
        for buffer in &switches.buffers {
            digest.words([buffer.shared, buffer.global.1, buffer.used]);
        }
        for nic in &hosts.nics {
            digest.words(nic.numbers());
            if nic.wake != Time::MAX {
                digest.words([self.ahead(nic.wake), nic.wake_rank as u64, self.ahead(nic.wake_set)]);
            }
            packets += self.packets(digest, nic.acks().iter(&self.pool))?;
        }
        // What is on links is in no order.
        let mut sum = 0u64;
        for (event, id) in blocks.under_way() {
            let mut flight = Digest::default();
            flight.words([self.ahead(event.time()), event.rank() as u64, event.source() as u64]);
            self.packet(&mut flight, id)?;
            sum = sum.wrapping_add(flight.0);
            packets += 1;
        }
        digest.word(sum);
        for stream in &self.dice.streams {
            digest.word(stream.clone().bits());
        }
        for flow in self.under_way() {
            self.flow(digest, flow)?;
        }
        // One that is elsewhere is somewhere that is not looked at here.
        (packets == self.pool.live()).then_some(())
    }
}

impl<F: FlowControl> Network<F> {
    /// What decides all that happens next, as a number; none where something does not say what it keeps.
    pub(super) fn state(&self) -> Option<u64> {
        if !self.transport.keeps_nothing() || self.core.hosts.control.known().is_none() {
            return None;
        }
        let mut digest = Digest::default();
        for node in &self.nodes {
            digest.word(self.scheme.digest(node, self.core.time.now)?);
        }
        self.core.hardware(&mut digest)?;
        digest.word(self.core.progress.timers as u64);
        Some(digest.0)
    }
}
