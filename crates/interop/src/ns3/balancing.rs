//! Load balancing as ConWeave's simulator does it (`LB_MODE`): DRILL, CONGA, LetFlow and ConWeave itself.
//!
//! The same mechanisms are there for scenarios, as their papers have them. These differ in what decides a run to the byte: all switches draw
//! from one `rand()`, seeded with `RANDOM_SEED`; paths are numbered by the ports on them; flowlets are told apart by less than a
//! whole address; tables are swept now and then.

mod conga;
mod conweave;
mod drill;
mod letflow;
mod paths;

pub use conweave::Timing;
pub use paths::Paths;

use super::rand::Shared;
use engine::{Parameter, Parameters, Raw, Time, ValueError};
use fabric::axes::load_balancing::{Crossroads, Labeller, LoadBalancer};
use fabric::axes::{Definition, LoadBalancingDef};
use fabric::id::PortId;
use fabric::view::Site;
use std::sync::Arc;

/// `LB_MODE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LbMode {
    /// 0: ECMP per flow.
    Ecmp,
    /// 2: DRILL.
    Drill,
    /// 3: CONGA.
    Conga,
    /// 6: LetFlow.
    LetFlow,
    /// 9: ConWeave.
    ConWeave,
}

impl LbMode {
    /// All of them, with their numbers.
    pub const ALL: [(u64, LbMode); 5] =
        [(0, LbMode::Ecmp), (2, LbMode::Drill), (3, LbMode::Conga), (6, LbMode::LetFlow), (9, LbMode::ConWeave)];

    /// Whether the first switch chooses whole paths.
    pub fn by_path(self) -> bool {
        !matches!(self, LbMode::Ecmp | LbMode::Drill)
    }
}

/// What all switches of a run share.
#[derive(Clone, Debug)]
pub struct Balancing {
    /// Which one.
    pub mode: LbMode,
    /// The dice.
    pub dice: Shared,
    /// Where there are paths.
    pub paths: Arc<Paths>,
    /// The priority of each class.
    pub priorities: Vec<u8>,
    /// Of ConWeave.
    pub timing: Timing,
}

impl Parameters for Balancing {
    fn list(&self) -> Vec<Parameter> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: &Raw) -> Option<Result<(), ValueError>> {
        None
    }
}

impl Definition for Balancing {
    fn name(&self) -> &'static str {
        "lb-mode"
    }
    fn about(&self) -> &'static str {
        "Load balancing as ConWeave's simulator does it."
    }
}

impl LoadBalancingDef for Balancing {
    fn switch(&self, _: &Site<'_>) -> Option<Box<dyn LoadBalancer>> {
        (self.mode == LbMode::Drill).then(|| Box::new(drill::Drill::new(self)) as _)
    }
    fn labeller(&self, _: &Site<'_>, _: bool) -> Option<Box<dyn Labeller>> {
        match self.mode {
            LbMode::Ecmp | LbMode::Drill => None,
            LbMode::Conga => Some(Box::new(conga::Conga::new(self))),
            LbMode::LetFlow => Some(Box::new(letflow::LetFlow::new(self))),
            LbMode::ConWeave => Some(Box::new(conweave::ConWeave::new(self))),
        }
    }
    fn may_reorder(&self) -> bool {
        self.mode != LbMode::Ecmp
    }
    fn sets_aside(&self) -> bool {
        self.mode == LbMode::ConWeave
    }
}

/// The place of the port by which a path leaves the switch that is number `hop` on it.
fn follow(at: &Crossroads<'_>, path: u32, hop: u32) -> usize {
    let port = path >> (8 * hop) & 0xff;
    at.place(PortId(port.wrapping_sub(1) as u16)).unwrap_or_else(|| at.hashed())
}

/// By what a switch tells flowlets apart: flows from different hosts of a rack may be one to it, and so may neighbouring ports.
fn flowlet_key(at: &Crossroads<'_>, priorities: &[u8]) -> (u32, u16, u16) {
    let (tuple, class) = (at.packet.tuple, at.packet.class as usize);
    let priority = priorities.get(class).copied().unwrap_or(0) as u16;
    (tuple.destination, tuple.source_port, tuple.destination_port | priority)
}

/// Something that a switch does over and over once its first packet has come. It was planned long before what happens at the same instant, so
/// it goes first.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    every: Time,
    first: Option<Time>,
}

impl Ticks {
    fn new(every: Time) -> Ticks {
        Ticks { every, first: None }
    }

    /// A packet has come.
    fn begin(&mut self, now: Time) {
        self.first.get_or_insert(now + self.every);
    }

    /// How often it was done.
    fn count(&self, now: Time) -> u64 {
        match self.first {
            Some(first) if first <= now => (now - first).0 / self.every.0 + 1,
            _ => 0,
        }
    }

    /// Whether what was touched last at `active` has been swept out: a sweep found it older than the time between two.
    fn swept(&self, now: Time, active: Time) -> bool {
        let (Some(first), count @ 1..) = (self.first, self.count(now)) else { return false };
        let last = first + Time(self.every.0 * (count - 1));
        last.saturating_sub(active) > self.every
    }
}

#[cfg(test)]
mod tests;
