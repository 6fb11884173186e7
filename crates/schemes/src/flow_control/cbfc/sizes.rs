//! How many credits a link needs, and how many it is given.
//!
//! A packet's credits are taken when its transmission begins. Until they are back
//! 1. it is sent, crosses the link and is queued (its own time on the link, delay, pipeline);
//! 2. it waits for the packet under way where it leaves, for which it is no fault of the link's;
//! 3. its credits wait until the next CF_Update may go (the least spacing);
//! 4. that waits for what is under way in the other direction (the largest packet, and a CC_Update), is sent, crosses the link and takes effect.
//!
//! That is the link's *loop*. Packets that begin one after the other within it, the first included, must all have credits: as many as the link carries in a
//! loop, rounded up to whole packets. With fewer, so many packets go in each loop: at least that part of the rate, if nothing else is in the way.
//!
//! Of several VCs that send at once each waits for its turn among CF_Updates, but has as small a part of the rate.

use super::{CC_UPDATE, CF_UPDATE, MOST, Params, Sharing};
use engine::{Bytes, Rate, Time};
use fabric::axes::flow_control::{Fabric, Room};
use fabric::id::NodeId;
use fabric::routing::PortMap;
use fabric::topology::{Graph, Kind};
use std::collections::BTreeMap;

/// What a node grants to what comes in by a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Grant {
    /// Credits of each VC.
    pub(super) reserved: u32,
    /// Credits that all VCs share.
    pub(super) shared: u32,
    /// The most that a VC may have of these.
    most: u32,
    /// Or a power of two times what is free of them.
    shift: Option<i8>,
    /// With more than this at its end, a VC cannot send at the full rate of the link.
    pub(super) mark: u32,
}

impl Grant {
    /// What a VC may have of what is shared while so much is free of it.
    #[inline]
    pub(super) fn most(&self, free: u32) -> u64 {
        match self.shift {
            None => self.most as u64,
            Some(shift @ 0..) => (free as u64) << shift,
            Some(shift) => free as u64 >> -shift,
        }
    }
    /// What a VC alone may have in use at most.
    pub(super) fn limit(&self) -> u32 {
        let shared = match self.shift {
            None => self.shared.min(self.most),
            // x = a (shared - x)
            Some(shift @ 0..) => ((self.shared as u64) << shift).div_euclid((1 << shift) + 1) as u32,
            Some(shift) => self.shared / ((1 << -shift) + 1),
        };
        self.reserved + shared
    }
    /// All of them.
    fn total(&self, classes: u8) -> u64 {
        self.reserved as u64 * classes as u64 + self.shared as u64
    }
}

/// One direction of a link: what decides how many credits it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Loop {
    /// Of its packets.
    pub(super) rate: Rate,
    /// Of the other direction, in which credits come back.
    pub(super) back: Rate,
    /// From the end of a packet's transmission to its being queued.
    pub(super) to_receiver: Time,
    /// From the end of an update's transmission to its taking effect.
    pub(super) to_sender: Time,
    /// Bytes of the largest packet.
    pub(super) largest: u64,
    /// Bytes of the packets that it must do for.
    pub(super) packet: u64,
    /// Bytes of link time between two CF_Updates.
    pub(super) spacing: u64,
    /// Credits of such a packet.
    pub(super) cost: u64,
}

impl Loop {
    /// Bytes of link time in it, in the direction of its packets and in the other.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.packet + self.largest, self.spacing + self.largest + CC_UPDATE as u64 + CF_UPDATE as u64)
    }
    /// From the beginning of a packet's transmission until its credits are back at the latest.
    pub(super) fn time(&self) -> Time {
        let (forth, back) = self.bytes();
        let on_link = match self.rate == self.back {
            true => self.rate.time_for(forth + back),
            false => self.rate.time_for(forth) + self.back.time_for(back),
        };
        self.to_receiver + on_link + self.to_sender
    }
    /// Packets that begin in that time.
    pub(super) fn packets(&self) -> u64 {
        self.rate.bytes_over(self.time()).div_ceil(self.packet)
    }
    /// Credits for the full rate.
    pub(super) fn needed(&self) -> u64 {
        self.packets() * self.cost
    }
    /// What so many credits are enough for at least, in thousandths of the rate.
    pub(super) fn share(&self, credits: u64) -> u64 {
        let bytes = credits / self.cost * self.packet;
        (bytes as u128 * 1000 / self.rate.bytes_over(self.time()) as u128).min(1000) as u64
    }
}

/// The credits of every link of a fabric.
pub(super) struct Sizes {
    /// Bytes of a credit.
    credit: u64,
    overhead: i64,
    /// Bytes of the largest packet.
    pub(super) largest: u64,
    /// Memory that so many credits take at most: so many bytes for so many credits.
    worst: (u64, u64),
    classes: u8,
    /// By port, what its node grants.
    pub(super) grants: Vec<Grant>,
    /// By kind of link and grant, how many of them there are.
    kinds: BTreeMap<(Loop, Grant), usize>,
    /// Nodes whose memory is not enough: how many there are, and the first with what it has and what it needs.
    short: (usize, Option<(String, u64, u64)>),
    /// Whether any port has less than asked for, because of memory.
    cut: bool,
    /// Whether less was asked for than one packet takes.
    raised: bool,
}

/// Bytes of memory that credits take.
fn memory(credits: u64, (bytes, of): (u64, u64)) -> u64 {
    u64::try_from((credits as u128 * bytes as u128).div_ceil(of as u128)).unwrap_or(u64::MAX)
}

impl Sizes {
    pub(super) fn new(params: &Params, fabric: &Fabric<'_>) -> Sizes {
        let mut sizes = Sizes::plain(params, fabric.largest, fabric.cell);
        sizes.classes = fabric.classes;
        sizes.grant_all(params, fabric);
        sizes
    }

    /// Bytes of memory that a VC must have, so that the largest packet can go.
    pub(super) fn least(params: &Params, largest: u64, cell: u64) -> u64 {
        let sizes = Sizes::plain(params, largest, cell);
        memory(sizes.cost(largest), sizes.worst)
    }

    /// What credits are, for packets and cells of a size.
    fn plain(params: &Params, largest: u64, cell: u64) -> Sizes {
        let cell = cell.max(1);
        let native = if cell > 1 { (1 << cell.ilog2()).clamp(16, 16_384) } else { 128 };
        let mut sizes = Sizes {
            credit: params.credit.map_or(native, |credit| credit.0),
            overhead: params.overhead as i64,
            largest,
            worst: (1, 1),
            classes: 1,
            grants: Vec::new(),
            kinds: BTreeMap::new(),
            short: (0, None),
            cut: false,
            raised: false,
        };
        // The size that takes the most memory for a credit.
        for size in 1..=largest {
            let (bytes, credits) = (size.next_multiple_of(cell), sizes.cost(size));
            if bytes as u128 * sizes.worst.1 as u128 > sizes.worst.0 as u128 * credits as u128 {
                sizes.worst = (bytes, credits);
            }
        }
        sizes
    }

    /// Credits of a packet.
    #[inline]
    pub(super) fn cost(&self, size: u64) -> u64 {
        let size = (size as i64 + self.overhead).max(1) as u64;
        size.div_ceil(self.credit)
    }

    fn grant_all(&mut self, params: &Params, fabric: &Fabric<'_>) {
        let (graph, map) = (fabric.graph, PortMap::new(fabric.graph));
        let forwards = |node: u32| graph.forwards(NodeId(node), map.of(node).len());
        let inside = |node: u32| match graph.nodes[node as usize].kind {
            Kind::Switch => fabric.pipeline,
            Kind::Host if forwards(node) => fabric.forward.delay,
            Kind::Host => Time::ZERO,
        };
        let pipeline = |node: u32| match graph.nodes[node as usize].kind {
            Kind::Switch => fabric.pipeline,
            Kind::Host => Time::ZERO,
        };
        let packet = params.packet.map_or(self.largest, |packet| packet.0.min(self.largest));
        let loops: Vec<Loop> = (0..map.count())
            .map(|port| {
                let link = &graph.links[map.link[port] as usize];
                Loop {
                    rate: link.rate_to(NodeId(map.node[port])),
                    back: link.rate(NodeId(map.node[port])),
                    to_receiver: link.delay + inside(map.node[port]),
                    to_sender: link.delay + pipeline(map.node[map.peer[port] as usize]) + fabric.reaction,
                    largest: self.largest,
                    packet,
                    spacing: params.cf_spacing.0,
                    cost: self.cost(packet),
                }
            })
            .collect();
        let asked: Vec<u64> = loops.iter().map(|link| self.asked(params, link)).collect();
        self.grants = vec![Grant::default(); map.count()];
        for node in 0..graph.nodes.len() as u32 {
            // A host that takes packets at once has room for whatever is under way.
            let nic = || fabric.nics.iter().find(|(slow, _)| slow.0 == node).map(|(_, memory)| *memory);
            let room = if forwards(node) { fabric.pool[node as usize] } else { None };
            let ports: Vec<usize> = map.of(node).map(|port| port as usize).collect();
            let fits = |bytes: u64| {
                u64::try_from(bytes as u128 * self.worst.1 as u128 / self.worst.0 as u128).unwrap_or(u64::MAX)
            };
            // A packet for each VC is there, see [`Sizes::least`]; what is left of the memory goes by what is asked for beyond.
            let least = self.classes as u64 * self.cost(self.largest);
            let beyond = |port: usize| asked[port].saturating_sub(least);
            let all: u128 = ports.iter().map(|&port| beyond(port) as u128).sum();
            let spare = room.map_or(u128::MAX, |room| fits(room).saturating_sub(least * ports.len() as u64) as u128);
            // Each port of a host has a NIC of its own.
            let (slow, nic) = (nic(), nic().map(fits));
            for &port in &ports {
                let wanted = asked[port];
                let given = match params.credits {
                    None if all > spare => least + (spare * beyond(port) as u128 / all) as u64,
                    _ => wanted,
                };
                let given = given.min(nic.unwrap_or(u64::MAX));
                self.cut |= given < wanted;
                self.grants[port] = self.grant(params, &loops[port], given);
                *self.kinds.entry((loops[port], self.grants[port])).or_default() += 1;
            }
            let granted = ports.iter().map(|&port| self.grants[port].total(self.classes));
            let granted = if slow.is_some() { granted.max().unwrap_or(0) } else { granted.sum() };
            let granted = memory(granted, self.worst);
            if let Some(room) = room.or(slow).filter(|&room| granted > room) {
                self.short.0 += 1;
                let name = &graph.nodes[node as usize].name;
                self.short.1.get_or_insert_with(|| (name.clone(), room, granted));
            }
        }
    }

    /// Credits of a VC besides what it shares with others.
    fn reserve(&self, params: &Params) -> u64 {
        let one = self.cost(self.largest);
        params.reserve.map_or(2 * one, |reserve| (reserve as u64).max(one))
    }

    /// What a port is to have, if there is memory for it: all VCs together.
    fn asked(&mut self, params: &Params, link: &Loop) -> u64 {
        let (one, classes) = (self.cost(self.largest), self.classes as u64);
        let needed = ((link.needed() as f64 * params.factor).ceil() as u64).max(one);
        let reserve = self.reserve(params);
        let (asked, least) = match (params.sharing, params.credits) {
            (Sharing::Reserved, credits) => (classes * credits.map_or(needed, u64::from), classes * one),
            (_, Some(credits)) => (credits as u64, classes * one),
            (Sharing::Static, None) => (classes * reserve + needed.saturating_sub(reserve), 0),
            (Sharing::Dynamic, None) => {
                let beyond = needed.saturating_sub(reserve);
                let shared = match params.shift().unwrap_or(0) {
                    // x = a (shared - x): so that one VC alone may have what it needs.
                    shift @ 0.. => (beyond * ((1 << shift) + 1)).div_ceil(1 << shift),
                    shift => beyond * ((1 << -shift) + 1),
                };
                (classes * reserve + shared, 0)
            }
        };
        self.raised |= asked < least;
        asked.max(least)
    }

    /// The grant of so many credits.
    fn grant(&self, params: &Params, link: &Loop, credits: u64) -> Grant {
        let (one, classes) = (self.cost(self.largest), self.classes as u64);
        let cap = |credits: u64| credits.min(MOST as u64) as u32;
        let each = (credits / classes).max(one);
        let (reserved, shared) = match params.sharing {
            Sharing::Reserved => (each, 0),
            _ => {
                let reserved = self.reserve(params).min(each);
                (reserved, credits.saturating_sub(reserved * classes))
            }
        };
        let (reserved, most) = (cap(reserved), if params.most == 0 { u32::MAX } else { params.most });
        let shared = cap(shared).min(MOST - reserved);
        let shift = params.shift().filter(|_| params.sharing == Sharing::Dynamic);
        let grant = Grant { reserved, shared, most, shift, mark: 0 };
        let spare = (grant.limit() as u64).saturating_sub(link.needed());
        Grant { mark: cap(spare.max(2 * one)), ..grant }
    }

    /// Whether all that is granted fits.
    pub(super) fn room(&self, _: &Fabric<'_>) -> Room {
        match &self.short.1 {
            None => Room::Enough,
            Some((name, room, granted)) => {
                let others = match self.short.0 {
                    1 => String::new(),
                    count => format!(" (so it is with {count} nodes)"),
                };
                Room::Short(format!(
                    "{name} grants credits for {granted} B and has {room} B of memory for them{others}: packets may be lost; write fewer \
                     credits, fewer classes, or a larger buffer in [switch]"
                ))
            }
        }
    }

    /// What was set and has no effect.
    fn idle(&self, params: &Params, graph: &Graph) -> Vec<String> {
        let usual = Params::default();
        let mut notes = Vec::new();
        let mut idle = |set: bool, key: &str, why: &str| {
            notes.extend(set.then(|| format!("scheme.cbfc.{key} has no effect: {why}")));
        };
        let fixed = params.credits.is_some();
        idle(fixed && params.factor != usual.factor, "factor", "scheme.cbfc.credits is set");
        idle(fixed && params.packet.is_some(), "packet", "scheme.cbfc.credits is set");
        let larger = params.packet.filter(|packet| packet.0 > self.largest && !fixed);
        idle(larger.is_some(), "packet", "no packet is that large");
        let alone = params.sharing == Sharing::Reserved;
        idle(alone && params.reserve.is_some(), "reserve", "scheme.cbfc.sharing is reserved");
        idle(!alone && self.classes == 1, "sharing", "there is one VC, which shares with no other");
        idle(params.cf_longest != usual.cf_longest && !graph.fallible(), "cf_longest", "no link loses frames");
        notes
    }

    /// What is odd.
    pub(super) fn notes(&self, params: &Params, graph: &Graph) -> Vec<String> {
        let mut notes = self.idle(params, graph);
        let one = self.cost(self.largest);
        if one == 1 && 2 * self.largest <= self.credit {
            notes.push(format!(
                "a packet of {} B takes a credit of {} B: most of the memory that credits stand for is never used",
                self.largest, self.credit
            ));
        }
        // What a VC alone may have of what is shared.
        let beyond = |grant: &Grant| grant.limit() - grant.reserved;
        let useless = |grant: &&Grant| grant.shared > 0 && (beyond(grant) as u64) < one;
        if let Some(grant) = self.kinds.keys().map(|(_, grant)| grant).find(useless) {
            notes.push(format!(
                "a VC may have {} of the {} that are shared, which is less than a packet of {} B takes: it never has any of them",
                beyond(grant),
                plural(grant.shared as u64),
                self.largest
            ));
        }
        if params.sharing != Sharing::Reserved
            && self.classes > 1
            && self.kinds.keys().all(|(_, grant)| grant.shared == 0)
        {
            notes.push("nothing is shared: the VCs' own credits are all that there are".into());
        }
        // The slowest direction of all.
        let slowest = graph.rates().min().filter(|rate| rate.time_for(CC_UPDATE as u64).0 * 20 > params.cc_interval.0);
        if let Some(rate) = slowest {
            let share = rate.time_for(CC_UPDATE as u64).0 as u128 * 1000 / params.cc_interval.0 as u128;
            notes.push(format!(
                "scheme.cbfc.cc_interval is {}: CC_Updates take {} of a link of {rate}",
                params.cc_interval,
                percent(share.min(1000) as u64)
            ));
        }
        if self.raised {
            notes.push(format!(
                "every VC has the {one} credits that a packet of {} B takes, though fewer are set",
                self.largest
            ));
        }
        let share = |&(link, grant): &(Loop, Grant)| link.share(grant.limit() as u64);
        if let Some((link, grant)) = self.kinds.keys().min_by_key(|kind| share(kind)).filter(|kind| share(kind) < 1000)
        {
            let why = match (self.cut, params.credits.is_some(), link.needed() > MOST as u64) {
                (_, _, true) => "a counter of 20 bits has no more; write larger credits",
                (true, _, _) => "there is no memory for more",
                (_, true, _) => "as many as are set",
                _ => "as the VCs share them",
            };
            notes.push(format!(
                "a VC has {} of the {} credits that {} over {} needs for its full rate ({why}): one that sends alone has {} of it at least",
                grant.limit(),
                link.needed(),
                link.rate,
                link.to_receiver,
                percent(share(&(*link, *grant))),
            ));
        }
        notes
    }

    /// How many credits links need, and why.
    pub(super) fn explain(&self, params: &Params) -> Vec<String> {
        let mut lines = vec![format!(
            "of {} B; a packet of {} B takes {}, up to {} B of memory for {}",
            self.credit,
            self.largest,
            self.cost(self.largest),
            self.worst.0,
            plural(self.worst.1),
        )];
        for ((link, grant), count) in self.kinds.iter().take(MOST_KINDS) {
            let time = |bytes: u64| nearest(link.rate.time_for(bytes));
            let home = |bytes: u64| nearest(link.back.time_for(bytes));
            let rate = match link.rate == link.back {
                true => link.rate.to_string(),
                false => format!("{} and {} back", link.rate, link.back),
            };
            lines.push(format!(
                "{} at {}, {} ports: {} packets of {} B, which begin within the {} until a packet's credits are back (sent {}, to the receiver {}, \
                 behind a packet there {}, between updates {}, behind a packet and a CC_Update {}, CF_Update and back {})",
                plural(link.needed()),
                rate,
                count,
                link.packets(),
                link.packet,
                nearest(link.time()),
                time(link.packet),
                nearest(link.to_receiver),
                time(link.largest),
                home(link.spacing),
                home(link.largest + CC_UPDATE as u64),
                nearest(link.back.time_for(CF_UPDATE as u64) + link.to_sender),
            ));
            let each = match params.sharing {
                Sharing::Reserved => format!("given: {} to each VC", plural(grant.reserved as u64)),
                _ => format!(
                    "given: {} to each VC, {} shared; one alone may have {}",
                    plural(grant.reserved as u64),
                    plural(grant.shared as u64),
                    grant.limit()
                ),
            };
            let memory = Bytes(memory(grant.total(self.classes), self.worst));
            let rate = match link.share(grant.limit() as u64) {
                1000 => "full rate".into(),
                share => format!("{} of the rate at least", percent(share)),
            };
            lines.push(format!("{each}: {rate}; {memory} of memory at the port"));
        }
        if self.kinds.len() > MOST_KINDS {
            lines.push(format!("and {} other kinds of link", self.kinds.len() - MOST_KINDS));
        }
        lines
    }
}

/// Kinds of links that are listed.
const MOST_KINDS: usize = 6;

fn plural(credits: u64) -> String {
    format!("{credits} credit{}", if credits == 1 { "" } else { "s" })
}

/// To the nanosecond, for people.
fn nearest(time: Time) -> Time {
    Time::from_ns((time.0 + 500) / 1000)
}

/// Thousandths as a percentage.
fn percent(share: u64) -> String {
    format!("{}.{} %", share / 10, share % 10)
}
