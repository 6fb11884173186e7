//! Incasts: many senders, one receiver, at once.

use crate::arrivals::{Arrivals, Clock, MAX_GAP};
use crate::load::Extent;
use crate::places::Places;
use crate::{Fault, FlowRequest, Kind, MAX_START, Origin, beyond, in_time, not_empty, too_many};
use engine::{Stream, Time};
use fabric::id::NodeId;

/// How many bytes an event has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// In all. Flows have equal shares; where that leaves bytes over, the first flows have one more.
    Total(u64),
    /// In each flow.
    Each(u64),
}

/// Events in which many hosts send to one.
#[derive(Clone, Debug)]
pub struct Incast {
    /// Senders of an event. If there are fewer hosts, they take turns.
    pub degree: u32,
    /// Senders are drawn with replacement: one host may be several of them.
    pub replacement: bool,
    /// Flows of every sender.
    pub flows_per_sender: u32,
    /// Bytes of an event.
    pub volume: Volume,
    /// The mean time between events, in picoseconds.
    pub period: f64,
    /// How the events come. Fixed ones begin with one at `start`.
    pub arrivals: Arrivals,
    /// When they end.
    pub extent: Extent,
    /// When the first may come.
    pub start: Time,
    /// Every sender starts within that time of its event, uniformly; zero: at once.
    pub spread: Time,
    /// Who sends, in order.
    pub from: Vec<NodeId>,
    /// Who receives, in order: one is drawn for each event.
    pub to: Vec<NodeId>,
}

impl Incast {
    /// Flows of an event.
    fn flows(&self) -> u64 {
        self.degree as u64 * self.flows_per_sender as u64
    }

    /// Bytes of an event.
    pub fn bytes(&self) -> u64 {
        match self.volume {
            Volume::Total(bytes) => bytes,
            Volume::Each(bytes) => bytes.saturating_mul(self.flows()),
        }
    }

    /// Draws the flows, event after event. `budget` is the most there may be.
    pub fn generate(&self, origin: Origin, places: &Places<'_>, budget: u64) -> Result<Vec<FlowRequest>, Fault> {
        self.check(places, budget)?;
        let mut random = origin.stream(Kind::Incast, 0);
        let mut hosts = self.from.clone();
        let mut clock = Clock::new(self.start.0);
        if self.arrivals != Arrivals::Fixed {
            clock.advance(self.arrivals.wait(&mut random) * self.period);
        }
        let (end, count) = match self.extent {
            Extent::Lasting(duration) => (self.start.saturating_add(duration).0, u64::MAX),
            Extent::Counted(count) => (u64::MAX, count),
        };
        let mut flows = Vec::new();
        let mut events = 0;
        while events < count && clock.now() < end {
            // Luck may bring more than the mean.
            if flows.len() as u64 + self.flows() > budget {
                return Err(too_many("degree", budget));
            }
            // Flows that late are refused below; here they must only not pass the end of time.
            let now = clock.now().min(2 * MAX_START.0);
            self.event(Time(now), origin, &mut hosts, &mut random, &mut flows);
            clock.advance(self.arrivals.gap(&mut random) * self.period);
            events += 1;
        }
        flows.sort_by_key(|flow: &FlowRequest| flow.start);
        in_time("count", flows)
    }

    fn event(&self, at: Time, origin: Origin, hosts: &mut [NodeId], random: &mut Stream, flows: &mut Vec<FlowRequest>) {
        let dst = self.to[random.below(self.to.len() as u64) as usize];
        // The first places of `hosts` are the senders: a shuffle begun and not finished, with the receiver put away.
        let mut available = hosts.len();
        let mut senders = 0;
        while !self.replacement && senders < available.min(self.degree as usize) {
            let drawn = senders + random.below((available - senders) as u64) as usize;
            hosts.swap(senders, drawn);
            if hosts[senders] == dst {
                available -= 1;
                hosts.swap(senders, available);
            } else {
                senders += 1;
            }
        }
        let all = self.flows();
        let mut number = 0;
        for turn in 0..self.degree as usize {
            let src = if self.replacement { self.any_but(dst, random) } else { hosts[turn % senders] };
            let start = if self.spread == Time::ZERO { at } else { at + Time(random.below(self.spread.0)) };
            for _ in 0..self.flows_per_sender {
                let size = match self.volume {
                    Volume::Each(bytes) => bytes,
                    Volume::Total(bytes) => bytes / all + (number < bytes % all) as u64,
                };
                flows.push(origin.flow(src, dst, size, start));
                number += 1;
            }
        }
    }

    /// A sender other than the receiver.
    fn any_but(&self, dst: NodeId, random: &mut Stream) -> NodeId {
        loop {
            let src = self.from[random.below(self.from.len() as u64) as usize];
            if src != dst {
                return src;
            }
        }
    }

    fn check(&self, places: &Places<'_>, budget: u64) -> Result<(), Fault> {
        let fault = |field, message: String, help: &str| Err(Fault { field, message, help: help.into() });
        not_empty("from", &self.from)?;
        not_empty("to", &self.to)?;
        if self.degree == 0 || self.flows_per_sender == 0 {
            let field = if self.degree == 0 { "degree" } else { "flows_per_sender" };
            return fault(field, format!("{field} is 0"), "write 1 or more");
        }
        if let Some(&alone) = self.to.iter().find(|&&host| self.from == [host]) {
            let message = format!("{} is the only host of `from`, and may be the receiver", places.name(alone));
            return fault("from", message, "choose more hosts for `from`, or another receiver");
        }
        if let Volume::Total(bytes) = self.volume
            && bytes < self.flows()
        {
            let message = format!("{bytes} bytes are not enough for {} flows", self.flows());
            return fault("size", message, "write a larger size, or fewer flows");
        }
        if self.spread > MAX_START {
            return fault("spread", format!("spread is {}", self.spread), "write a shorter time");
        }
        if !(0.0..=MAX_GAP).contains(&self.period) {
            return fault("load", "the load is too low".into(), "write a higher load, or `every`");
        }
        let events = match self.extent {
            Extent::Lasting(duration) => (duration.0 as f64 / self.period).ceil(),
            Extent::Counted(count) => count as f64,
        };
        let expected = events * self.flows() as f64;
        if expected > budget as f64 || expected.is_nan() {
            return Err(beyond("degree", expected, budget));
        }
        Ok(())
    }
}
