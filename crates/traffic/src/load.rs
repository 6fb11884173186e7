//! Messages at random, at an average load.

use crate::arrivals::{Arrivals, Clock, MAX_GAP};
use crate::places::Places;
use crate::sizes::Sizes;
use crate::{Fault, FlowRequest, Kind, Origin, beyond, in_time, not_empty, too_late, too_many};
use engine::{Stream, Time};
use fabric::id::NodeId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

engine::choice! {
    /// Whom a sender sends to.
    pub enum Pattern {
        /// Any other host.
        AllToAll = "all-to-all",
        /// One partner each, which no other sender has.
        Permutation = "permutation",
        /// Other hosts of its rack.
        RackLocal = "rack-local",
        /// Hosts of other racks.
        InterRack = "inter-rack",
    }
}

engine::choice! {
    /// Who has an arrival process.
    pub enum Process {
        /// Each sender has its own.
        Host = "host",
        /// There is one, and whose message it is is drawn for each: a sender with a link twice as fast is drawn twice as often.
        Network = "network",
    }
}

/// How many messages come, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timing {
    /// So many bytes per second on average. Each sender offers in proportion to its link.
    Offered {
        /// Bytes of message per second, of all senders together.
        bytes_per_second: f64,
        /// The gaps between messages.
        arrivals: Arrivals,
        /// Who has an arrival process.
        process: Process,
        /// When it ends.
        extent: Extent,
    },
    /// So many messages, each at an instant of its own that is drawn uniformly.
    Scattered {
        /// Messages.
        flows: u64,
        /// How long after the start.
        duration: Time,
    },
}

/// When arrivals end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    /// After that long.
    Lasting(Time),
    /// After that many.
    Counted(u64),
}

/// Messages of random sizes between random hosts.
#[derive(Clone, Debug)]
pub struct Load {
    /// How large they are.
    pub sizes: Sizes,
    /// How many there are.
    pub timing: Timing,
    /// When the first may come.
    pub start: Time,
    /// Who sends, in order.
    pub from: Vec<NodeId>,
    /// Who receives, in order.
    pub to: Vec<NodeId>,
    /// Whom a sender sends to.
    pub pattern: Pattern,
    /// The share of messages that go to another site; the others stay at the sender's. `None`: sites play no part.
    pub inter_site: Option<f64>,
}

/// A range of receivers without a part of it.
#[derive(Clone, Debug, Default)]
struct Choice {
    all: Range<u32>,
    without: Range<u32>,
}

impl Choice {
    fn count(&self) -> u64 {
        (self.all.len() - self.without.len()) as u64
    }

    fn draw(&self, random: &mut Stream) -> usize {
        let place = self.all.start + random.below(self.count()) as u32;
        let skipped = if place >= self.without.start { self.without.len() } else { 0 };
        place as usize + skipped
    }
}

/// Where the messages of one sender go.
#[derive(Clone, Debug)]
struct Targets {
    near: Choice,
    /// At other sites.
    far: Choice,
}

/// The receivers, so ordered that those of a rack, and those of a site, are neighbours.
struct Receivers {
    hosts: Vec<NodeId>,
    /// By sender.
    targets: Vec<Targets>,
    inter_site: f64,
}

impl Receivers {
    fn draw(&self, sender: usize, random: &mut Stream) -> NodeId {
        let targets = &self.targets[sender];
        let far = self.inter_site > 0.0 && random.chance(self.inter_site);
        self.hosts[if far { &targets.far } else { &targets.near }.draw(random)]
    }
}

/// One load, being drawn.
struct Draw<'a> {
    load: &'a Load,
    origin: Origin,
    places: &'a Places<'a>,
    receivers: Receivers,
    flows: Vec<FlowRequest>,
}

impl Draw<'_> {
    fn message(&mut self, sender: usize, start: u64, random: &mut Stream) {
        let size = self.load.sizes.draw(random);
        let dst = self.receivers.draw(sender, random);
        self.flows.push(self.origin.flow(self.load.from[sender], dst, size, Time(start)));
    }

    /// Every sender has a process of its own and a stream of its own. `gap` is the mean gap of all of them together.
    fn by_host(&mut self, arrivals: Arrivals, gap: f64, end: u64, count: u64) {
        struct Sender {
            random: Stream,
            clock: Clock,
            gap: f64,
        }
        let total = self.places.rate_of(&self.load.from);
        let sender = |&host: &NodeId| {
            let mut random = self.origin.stream(Kind::Load, host.0);
            let mut clock = Clock::new(self.load.start.0);
            let gap = gap * (total / self.places.rate(host));
            clock.advance(arrivals.wait(&mut random) * gap);
            Sender { random, clock, gap }
        };
        let mut senders: Vec<Sender> = self.load.from.iter().map(sender).collect();
        let mut next: BinaryHeap<Reverse<(u64, usize)>> =
            senders.iter().enumerate().map(|(number, sender)| Reverse((sender.clock.now(), number))).collect();
        while (self.flows.len() as u64) < count
            && let Some(mut first) = next.peek_mut()
        {
            let Reverse((now, number)) = *first;
            if now >= end {
                break;
            }
            let sender = &mut senders[number];
            self.message(number, now, &mut sender.random);
            sender.clock.advance(arrivals.gap(&mut sender.random) * sender.gap);
            *first = Reverse((sender.clock.now(), number));
        }
    }

    /// One process and one stream for all.
    fn by_network(&mut self, arrivals: Arrivals, gap: f64, end: u64, count: u64) {
        let mut random = self.origin.stream(Kind::Load, u32::MAX);
        let senders = Senders::new(&self.load.from, self.places);
        let mut clock = Clock::new(self.load.start.0);
        clock.advance(arrivals.wait(&mut random) * gap);
        while (self.flows.len() as u64) < count && clock.now() < end {
            let sender = senders.draw(&mut random);
            self.message(sender, clock.now(), &mut random);
            clock.advance(arrivals.gap(&mut random) * gap);
        }
    }

    /// Instants drawn uniformly.
    fn scattered(&mut self, count: u64, duration: Time) {
        let mut random = self.origin.stream(Kind::Load, u32::MAX);
        let senders = Senders::new(&self.load.from, self.places);
        for _ in 0..count {
            let start = self.load.start.0 + random.below(duration.0);
            let sender = senders.draw(&mut random);
            self.message(sender, start, &mut random);
        }
        self.flows.sort_by_key(|flow| flow.start);
    }
}

impl Load {
    /// Draws the messages, in order of start. `budget` is the most there may be.
    pub fn generate(&self, origin: Origin, places: &Places<'_>, budget: u64) -> Result<Vec<FlowRequest>, Fault> {
        not_empty("from", &self.from)?;
        not_empty("to", &self.to)?;
        let expected = self.expected();
        let field = match self.timing {
            Timing::Offered { extent: Extent::Lasting(_), .. } => "load",
            _ => "flows",
        };
        if expected.is_nan() || expected > budget as f64 {
            return Err(beyond(field, expected, budget));
        }
        let receivers = self.receivers(origin, places)?;
        let mut draw = Draw { load: self, origin, places, receivers, flows: Vec::with_capacity(expected as usize) };
        match self.timing {
            Timing::Offered { bytes_per_second, arrivals, process, extent } => {
                let (end, count) = match extent {
                    Extent::Lasting(duration) => (self.start.saturating_add(duration).0, budget),
                    Extent::Counted(count) => (u64::MAX, count),
                };
                let gap = self.sizes.mean() * 1e12 / bytes_per_second;
                if !(0.0..=MAX_GAP).contains(&gap) {
                    let help = "write a higher load".into();
                    return Err(Fault { field: "load", message: "the load is too low".into(), help });
                }
                match process {
                    Process::Host => draw.by_host(arrivals, gap, end, count),
                    Process::Network => draw.by_network(arrivals, gap, end, count),
                }
                match extent {
                    // Luck may bring more than the mean.
                    Extent::Lasting(_) if draw.flows.len() as u64 == budget => return Err(too_many(field, budget)),
                    // The end of time came first.
                    Extent::Counted(count) if (draw.flows.len() as u64) < count => return Err(too_late("load")),
                    _ => {}
                }
            }
            Timing::Scattered { flows, duration } => draw.scattered(flows, duration),
        }
        in_time("load", draw.flows)
    }

    /// Bytes of message per second, on average.
    pub fn bytes_per_second(&self) -> f64 {
        match self.timing {
            Timing::Offered { bytes_per_second, .. } => bytes_per_second,
            Timing::Scattered { flows, duration } => flows as f64 * self.sizes.mean() / duration.secs_f64(),
        }
    }

    /// How many messages there will be, on average.
    fn expected(&self) -> f64 {
        match self.timing {
            Timing::Offered { bytes_per_second, extent: Extent::Lasting(duration), .. } => {
                bytes_per_second * duration.secs_f64() / self.sizes.mean()
            }
            Timing::Offered { extent: Extent::Counted(flows), .. } | Timing::Scattered { flows, .. } => flows as f64,
        }
    }

    /// Who may receive from whom. Every sender has a receiver.
    fn receivers(&self, origin: Origin, places: &Places<'_>) -> Result<Receivers, Fault> {
        let inter_site = self.inter_site.unwrap_or(0.0);
        let mut hosts = self.to.clone();
        if self.pattern == Pattern::Permutation {
            let partners = self.partners(origin)?;
            let only = |place: u32| Choice { all: place..place + 1, without: place + 1..place + 1 };
            let targets = (0..self.from.len() as u32)
                .map(|place| Targets { near: only(place), far: Choice::default() })
                .collect();
            return Ok(Receivers { hosts: partners, targets, inter_site: 0.0 });
        }
        let key = |host: NodeId| (places.site(host), places.rack(host), host.0);
        hosts.sort_unstable_by_key(|&host| key(host));
        // The neighbours that are at least `low` and not above `high`, as keys.
        let between = |low: (u32, u32, u32), high: (u32, u32, u32)| {
            let start = hosts.partition_point(|&host| key(host) < low) as u32;
            start..hosts.partition_point(|&host| key(host) <= high) as u32
        };
        let mut targets = Vec::with_capacity(self.from.len());
        for &host in &self.from {
            let (site, rack, _) = key(host);
            let own = between(key(host), key(host));
            let rack = between((site, rack, 0), (site, rack, u32::MAX));
            let all = 0..hosts.len() as u32;
            let site = between((site, 0, 0), (site, u32::MAX, u32::MAX));
            let far = Choice { all: all.clone(), without: site.clone() };
            let reach = if self.inter_site.is_some() { site } else { all };
            let near = match self.pattern {
                Pattern::RackLocal => Choice { all: rack, without: own },
                Pattern::InterRack => Choice { all: reach, without: rack },
                _ => Choice { all: reach, without: own },
            };
            if near.count() == 0 && inter_site < 1.0 {
                return Err(self.no_receiver(places.name(host), false));
            }
            if far.count() == 0 && inter_site > 0.0 {
                return Err(self.no_receiver(places.name(host), true));
            }
            targets.push(Targets { near, far });
        }
        Ok(Receivers { hosts, targets, inter_site })
    }

    /// The fault that a host has no receiver.
    fn no_receiver(&self, host: &str, far: bool) -> Fault {
        let (field, which) = match (far, self.pattern) {
            (true, _) => ("inter_site", "host of `to` at another site"),
            (_, Pattern::RackLocal) => ("pattern", "other host of `to` in its rack"),
            (_, Pattern::InterRack) if self.inter_site.is_some() => {
                ("pattern", "host of `to` in another rack of its site")
            }
            (_, Pattern::InterRack) => ("pattern", "host of `to` in another rack"),
            _ if self.inter_site.is_some() => ("inter_site", "other host of `to` at its site"),
            _ => ("to", "other host of `to`"),
        };
        Fault {
            field,
            message: format!("{host} has no receiver: there is no {which}"),
            help: "choose other hosts for `from` or `to`, or another pattern".into(),
        }
    }

    /// One receiver for each sender: drawn uniformly among all assignments in which no host has itself and no two have the same.
    fn partners(&self, origin: Origin) -> Result<Vec<NodeId>, Fault> {
        let fault = |field, message: String, help: &str| Err(Fault { field, message, help: help.into() });
        if self.inter_site.is_some() {
            let help = "leave out inter_site, or choose another pattern";
            return fault("inter_site", "a permutation has one partner for each sender".into(), help);
        }
        if self.to.len() < self.from.len() {
            let message = format!("{} senders need as many partners; `to` has {}", self.from.len(), self.to.len());
            return fault("pattern", message, "give `to` as many hosts as `from`, or choose another pattern");
        }
        if self.from.len() == 1 && self.from == self.to {
            return fault("to", "the only sender is the only receiver".into(), "choose another host for `to`");
        }
        let mut random = origin.stream(Kind::Load, u32::MAX - 1);
        let mut hosts = self.to.clone();
        // About one in three shuffles, or more, leaves no host with itself.
        'again: loop {
            for (place, &sender) in self.from.iter().enumerate() {
                let drawn = place + random.below((hosts.len() - place) as u64) as usize;
                hosts.swap(place, drawn);
                if hosts[place] == sender {
                    continue 'again;
                }
            }
            return Ok(hosts);
        }
    }
}

/// Senders drawn in proportion to their links.
struct Senders {
    /// By sender: its rate and those of all before it.
    up_to: Vec<f64>,
}

impl Senders {
    fn new(from: &[NodeId], places: &Places<'_>) -> Senders {
        let mut sum = 0.0;
        let add = |&host: &NodeId| {
            sum += places.rate(host);
            sum
        };
        Senders { up_to: from.iter().map(add).collect() }
    }

    fn draw(&self, random: &mut Stream) -> usize {
        let total = self.up_to.last().copied().unwrap_or(0.0);
        let at = random.uniform() * total;
        self.up_to.partition_point(|&up_to| up_to <= at).min(self.up_to.len() - 1)
    }
}
