//! Links that repeat frames: the ends of [`crate::retry`] on the ports of a fabric.
//!
//! A packet is one thing here and has one place, so that no copy of it is kept at the sender. What a receiver discards it puts *aside*, and
//! what is sent again is a stand-in with a number and a size: when it comes and is taken, the packet itself goes on from there. Links keep
//! order, so that the packets aside are those between the one that is expected and the one that comes next for the first time, in this order.
//!
//! A port whose link has something of its own to send, or must not send anything new, is *urgent*, and claims a byte of its queue: that is
//! what sends all packets the long way, where the link has its say ([`Core::link_first`]). Ports without retry have no branch more than they had.

use super::links::Fate;
use super::{Class, Core, Network};
use crate::axes::flow_control::FlowControl;
use crate::packet::{BARE, Fifo, Kind, Packet, PacketId};
use crate::port::{Port, detour};
use crate::probe::{Counted, Lost};
use crate::retry::{Condition, Expiry, Number, Receiver, SET, Said, Sender, Sent, Taken, Tally};
use crate::routing::PortMap;
use crate::setup::Setup;
use engine::{Event, Time};

/// What is in the tag of a frame that belongs to its link, where others have the layer that sent them.
const ACK: u16 = 0x100;
const NACK: u16 = 0x101;
const INIT: u16 = 0x102;
const INIT_ECHO: u16 = 0x103;
const ECHO: u16 = 0x104;
const AGAIN: u16 = 0x105;

/// A port's end of a link that repeats.
struct End {
    tx: Sender,
    rx: Receiver,
    /// What has come and was not taken yet.
    aside: Fifo,
    /// When the next look is planned; [`Time::MAX`] for none.
    planned: Time,
    /// The link has something to send, or sends nothing new.
    claims: bool,
    /// Nothing is lost while it works.
    faithful: bool,
    /// A link that is down for so long loses what it keeps.
    link_lost: Time,
    /// It is down, and not for so long: its port waits.
    dark: bool,
    tally: Tally,
}

impl End {
    /// Whether the link has something to send itself.
    fn speaks(&self, now: Time) -> bool {
        !self.dark && (self.rx.due() <= now || self.tx.speaks() || self.tx.repeats())
    }
    /// Whether others may send.
    fn is_open(&self) -> bool {
        !self.dark && self.tx.is_open()
    }
}

/// The ends, by port; empty where no link repeats.
#[derive(Default)]
pub(crate) struct Retries(Vec<Option<Box<End>>>);

impl Retries {
    pub(super) fn new(setup: &Setup, ports: &mut [Port], map: &PortMap) -> Retries {
        if !setup.graph.repeats() {
            return Retries::default();
        }
        let end = |port: usize| {
            let retry = setup.graph.links[map.link[port] as usize].retry?;
            let limits = setup.retry_limits(map, port as u32)?;
            Some(Box::new(End {
                tx: Sender::new(limits),
                rx: Receiver::new(&limits),
                aside: Fifo::default(),
                planned: Time::MAX,
                claims: false,
                faithful: !retry.gives_up(),
                link_lost: retry.link_lost,
                dark: false,
                tally: Tally::default(),
            }))
        };
        let ends: Vec<Option<Box<End>>> = (0..ports.len()).map(end).collect();
        for (port, _) in ports.iter_mut().zip(&ends).filter(|(_, end)| end.is_some()) {
            port.faulty = true;
            port.detour |= detour::REPEATED;
        }
        Retries(ends)
    }

    fn end(&mut self, port: u32) -> Option<&mut End> {
        self.0.get_mut(port as usize)?.as_deref_mut()
    }

    /// Takes over what another shard has of a port, with its packets aside moved by `moved`.
    pub(crate) fn absorb_port(&mut self, other: &mut Retries, port: usize, moved: impl FnOnce(Fifo) -> Fifo) {
        if let (Some(mine), Some(Some(mut theirs))) = (self.0.get_mut(port), other.0.get_mut(port).map(Option::take)) {
            theirs.aside = moved(theirs.aside);
            *mine = Some(theirs);
        }
    }

    /// The packets aside, by port.
    pub(crate) fn aside(&self) -> impl Iterator<Item = &Fifo> {
        self.0.iter().flatten().map(|end| &end.aside)
    }

    /// Bytes of its queue that the link of a port claims.
    pub(crate) fn claimed(&self, port: usize) -> u64 {
        self.0.get(port).and_then(Option::as_ref).map_or(0, |end| end.claims as u64)
    }

    /// Whether an end will do something by itself.
    pub(crate) fn moving(&self) -> bool {
        self.0.iter().flatten().any(|end| end.tx.due() != Time::MAX || end.tx.repeats())
    }

    /// Whether something is on its way by the link from `port` to `peer`, however often it must be repeated.
    pub(crate) fn is_busy(&self, port: u32, peer: u32) -> bool {
        let end = |port: u32| self.0.get(port as usize).and_then(Option::as_deref);
        end(port).is_some_and(|end| end.tx.is_busy()) || end(peer).is_some_and(|end| end.rx.missing() > 0)
    }

    /// Whether nothing will ever be sent by a port again.
    pub(crate) fn is_blocked(&self, port: u32) -> bool {
        self.0.get(port as usize).and_then(Option::as_ref).is_some_and(|end| end.tx.is_blocked())
    }

    /// What the ends have done, by port, of links that repeat.
    pub(crate) fn tallies(&self) -> Vec<(u32, Tally)> {
        (0..).zip(&self.0).filter_map(|(port, end)| Some((port, end.as_ref()?.tally))).collect()
    }
}

/// Whose turn it is at an urgent port.
#[derive(PartialEq, Eq)]
pub(super) enum First {
    /// The link has sent something of its own.
    Sent,
    /// Nothing may be sent.
    Waits,
    /// The others may send.
    Others,
}

impl Core {
    /// Whether nothing may be sent by `port` until its link hears something, or until it is time for the link to say something: both give the port
    /// its chance then. The end of a transmission would be planned in vain, and not be where a packet goes straight on.
    #[inline(always)]
    pub(crate) fn link_waits(&self, port: u32) -> bool {
        let p = &self.ports[port as usize];
        p.urgent && p.detour & detour::REPEATED != 0 && self.link_is_silent(port)
    }

    #[cold]
    fn link_is_silent(&self, port: u32) -> bool {
        let end = self.retry.0.get(port as usize).and_then(Option::as_deref);
        end.is_some_and(|end| !end.speaks(self.time.now) && !end.is_open())
    }

    /// Sends what the link of an urgent port has to send itself, ahead of everything else.
    pub(super) fn link_first(&mut self, port: u32) -> First {
        let now = self.time.now;
        let Some(end) = self.retry.end(port) else { return First::Others };
        if end.dark {
            return First::Waits;
        }
        let said = end.rx.say(now).or_else(|| end.tx.say());
        let first = if let Some(said) = said {
            let (tag, seq) = match said {
                Said::Ack(expected) => (ACK, expected.bits()),
                Said::Nack(expected) => (NACK, expected.bits()),
                Said::Init { next, echo } => (if echo { INIT_ECHO } else { INIT }, next.bits()),
                Said::Echo(next) => (ECHO, next.bits()),
            };
            end.tally.acks += (tag == ACK) as u64;
            end.tally.nacks += (tag == NACK) as u64;
            self.put_on_link(port, tag, seq, SET);
            First::Sent
        } else if let Some((number, size)) = end.tx.repeat(now) {
            end.tally.repeated.0 += 1;
            end.tally.repeated.1 += size as u64;
            self.put_on_link(port, AGAIN, number.bits(), size);
            self.note_replay(port);
            First::Sent
        } else if end.tx.is_open() {
            First::Others
        } else {
            First::Waits
        };
        self.settle_link(port);
        first
    }

    /// Sends something of the link's own.
    fn put_on_link(&mut self, port: u32, tag: u16, seq: u64, size: u16) {
        let now = self.time.now;
        let blank = Packet { seq, size, tag, kind: Kind::Frame, stamp: now, next_arrival: now, ..Packet::BLANK };
        let id = self.pool.insert(blank);
        self.counts.created += 1;
        let (arrival, rank) = self.time.begin(&mut self.ports[port as usize], &self.wire, size, Time::ZERO);
        self.carry(port, id, arrival, rank);
    }

    /// A packet has been put on a link that repeats. True if it is dropped.
    pub(super) fn keep_sent(&mut self, port: u32, id: PacketId) -> bool {
        let (now, size) = (self.time.now, self.pool[id].size);
        let Some(end) = self.retry.end(port) else { return false };
        match end.tx.sent(now, size) {
            Sent::Numbered => {}
            Sent::Bare => self.pool[id].in_port = BARE,
            Sent::Dropped => {
                end.tally.lost += 1;
                self.lose_on_link(port, port, id, Lost::Fault);
                return true;
            }
        }
        self.settle_link(port);
        false
    }

    /// A packet is lost, as is noticed at `port`, with its link, which it would have left, or has left, by `from`.
    fn lose_on_link(&mut self, port: u32, from: u32, id: PacketId, how: Lost) {
        match how {
            Lost::Down => self.counts.dropped_down += 1,
            _ => self.counts.dropped_fault += 1,
        }
        self.probes.count_at(port, Counted::Drop, 1);
        self.note_loss(from, id, how);
        self.discard(id);
    }

    /// What is aside at a port will not be sent again.
    fn lose_aside(&mut self, port: u32, how: Lost) {
        let from = self.ports[port as usize].peer;
        while let Some(end) = self.retry.end(port)
            && let Some(id) = end.aside.pop(&self.pool)
        {
            end.tally.lost += 1;
            self.lose_on_link(port, from, id, how);
        }
    }

    /// Something has come to the end of a link, at `port`. What is to be handled there because of it, if anything is.
    pub(super) fn cross_link(&mut self, port: u32, id: PacketId) -> Option<PacketId> {
        if self.retry.end(port).is_none() {
            return (!self.lost_on_link(port, id)).then_some(id);
        }
        let packet = self.pool[id];
        let fate = self.fate(port, packet.size);
        let condition = match fate {
            Fate::Arrives => Condition::Good,
            Fate::Damaged => Condition::Damaged,
            Fate::Vanishes | Fate::Cut(_) => Condition::Missing,
        };
        if packet.kind == Kind::Frame && packet.tag >= ACK {
            self.pool.remove(id);
            self.counts.consumed += 1;
            let passed = self.hear_link(port, &packet, condition);
            self.settle_link(port);
            return passed;
        }
        let now = self.time.now;
        let end = self.retry.end(port)?;
        if packet.in_port == BARE {
            self.pool[id].in_port = 0;
            if condition == Condition::Good {
                return Some(id);
            }
            end.tally.lost += 1;
            let from = self.ports[port as usize].peer;
            self.lose_on_link(port, from, id, if matches!(fate, Fate::Cut(_)) { Lost::Down } else { Lost::Fault });
            return None;
        }
        // The link was down for so long that nothing is sent again.
        if let Fate::Cut(lasted) = fate
            && lasted >= end.link_lost
        {
            end.rx.cut();
            end.aside.push(&mut self.pool, id);
            self.lose_aside(port, Lost::Down);
            return None;
        }
        let taken = end.rx.first(condition);
        if taken != Taken::Passed {
            end.tally.damaged += (condition != Condition::Good) as u64;
            end.tally.discarded += (condition == Condition::Good) as u64;
            self.pool[id].next_arrival = now;
            end.aside.push(&mut self.pool, id);
        }
        self.settle_link(port);
        (taken == Taken::Passed).then_some(id)
    }

    /// Something of a link's own has come. What is handled because of it.
    fn hear_link(&mut self, port: u32, packet: &Packet, condition: Condition) -> Option<PacketId> {
        let (now, number, good) = (self.time.now, Number::from_bits(packet.seq), condition == Condition::Good);
        let end = self.retry.end(port)?;
        end.tally.sets_lost += (packet.tag != AGAIN && !good) as u64;
        match packet.tag {
            ACK if good => end.tx.ack(now, number),
            NACK if good => end.tally.replays += end.tx.nack(now, number) as u64,
            ECHO if good => end.tx.echo(number),
            INIT | INIT_ECHO => {
                end.rx.renew(number);
                if packet.tag == INIT_ECHO && good {
                    end.rx.hear();
                }
                self.lose_aside(port, Lost::Fault);
            }
            AGAIN => match end.rx.again(number, condition) {
                Taken::Passed => {
                    let id = end.aside.pop(&self.pool)?;
                    let late = now - self.pool[id].next_arrival;
                    end.tally.late += late.0;
                    if self.pool.traced() {
                        let from = self.ports[port as usize].peer;
                        self.trace_late(from, id, late);
                    }
                    return Some(id);
                }
                Taken::Duplicate => end.tally.duplicates += 1,
                Taken::Awaited => {
                    end.tally.damaged += !good as u64;
                    end.tally.discarded += good as u64;
                }
            },
            _ => {}
        }
        None
    }

    /// Brings a port up to date with its link's end: whether the link has the first say, and when it is to be looked at again.
    fn settle_link(&mut self, port: u32) {
        let now = self.time.now;
        let p = &mut self.ports[port as usize];
        let Some(end) = self.retry.end(port) else { return };
        let speaks = end.speaks(now);
        let open = end.is_open();
        let claims = speaks || !open;
        let freed = end.claims && !claims;
        if claims != end.claims {
            p.queued = p.queued - end.claims as u64 + claims as u64;
            end.claims = claims;
        }
        p.urgent = claims || !p.frames.is_empty();
        let up = p.up;
        if self.pool.traced() {
            self.note_open(port, open);
        }
        let Some(end) = self.retry.end(port).filter(|end| up && !end.dark) else { return };
        let due = end.tx.due().min(if end.rx.due() > now { end.rx.due() } else { Time::MAX });
        if due < end.planned {
            end.planned = due.max(now);
            let at = end.planned;
            let rank = self.time.rank(at);
            self.time.events.push(Event::new(at, rank, Class::Retry as u8, port));
        }
        if speaks || freed {
            self.kicks.push(port);
        }
    }

    /// The link of `port` has failed for longer than it keeps anything, or come back after that.
    pub(super) fn change_link_end(&mut self, port: u32) {
        let now = self.time.now;
        let Some(end) = self.retry.end(port) else { return };
        end.tx.link_up(now, true);
        end.rx.restart();
        self.lose_aside(port, Lost::Down);
        self.settle_link(port);
    }

    /// The link of `port` may have gone down for a moment, or be back after one: nothing is lost by it and nobody hears of it.
    pub(super) fn darken_link_end(&mut self, port: u32) {
        let now = self.time.now;
        let works = self.setup.graph.links[self.map.link[port as usize] as usize].up_at(now);
        let up = self.ports[port as usize].up;
        let Some(end) = self.retry.end(port).filter(|end| up && end.dark == works) else { return };
        end.dark = !works;
        if works {
            end.tx.link_up(now, false);
        }
        self.settle_link(port);
    }

    /// What is wrong with the books of the links that repeat.
    pub(super) fn audit_links(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (port, end) in self.retry.0.iter().enumerate().filter_map(|(port, end)| Some((port, end.as_ref()?))) {
            let aside = end.aside.iter(&self.pool).count() as u64;
            if aside != end.rx.missing() {
                wrong.push(format!("port {port} has {aside} packets aside, its link awaits {}", end.rx.missing()));
            }
            let down = self.setup.graph.links[self.map.link[port] as usize].failures().next().is_some();
            if end.faithful && !down && end.tally.lost > 0 {
                wrong.push(format!(
                    "{} packets were lost on a link that never gives up, to port {port}",
                    end.tally.lost
                ));
            }
        }
        wrong
    }
}

impl<F: FlowControl> Network<F> {
    /// It may be time for an end of a link to do something by itself.
    pub(super) fn retry_event(&mut self, port: u32) {
        let core = &mut self.core;
        let (now, up) = (core.time.now, core.ports[port as usize].up);
        let Some(end) = core.retry.end(port) else { return };
        if end.planned <= now {
            end.planned = Time::MAX;
        }
        if up && !end.dark {
            match end.tx.expire(now) {
                Expiry::Nothing => {}
                Expiry::Replay => end.tally.timeouts += 1,
                Expiry::GaveUp(_) => end.tally.flushes += 1,
            }
        }
        core.settle_link(port);
    }
}
