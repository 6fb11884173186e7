//! LetFlow (Vanini et al., NSDI 2017): every flowlet takes a random path.

use super::{Balancing, Ticks, flowlet_key, follow};
use engine::Time;
use fabric::axes::Counter;
use fabric::axes::load_balancing::{Crossroads, Label, Labeller, Orders, Pass};
use fabric::id::NodeId;
use fabric::packet::Kind;
use std::collections::HashMap;

/// A packet that comes later than this after the last begins a flowlet.
const TIMEOUT: Time = Time::from_us(100);
/// How often the table is swept.
const SWEEP: Time = Time::from_ms(2);

pub(super) struct LetFlow {
    all: Balancing,
    sweeps: Ticks,
    /// When the last packet of a flowlet came, and its path.
    flowlets: HashMap<(u32, u16, u16), (Time, u32)>,
    timeouts: u64,
}

impl LetFlow {
    pub(super) fn new(all: &Balancing) -> LetFlow {
        LetFlow { all: all.clone(), sweeps: Ticks::new(SWEEP), flowlets: HashMap::new(), timeouts: 0 }
    }

    /// The path of a packet at its first switch.
    fn path(&mut self, at: &Crossroads<'_>, last: NodeId) -> u32 {
        let (key, now) = (flowlet_key(at, &self.all.priorities), at.now);
        let known = self.flowlets.get(&key).copied().filter(|(active, _)| !self.sweeps.swept(now, *active));
        let path = match known {
            Some((active, path)) if now - active <= TIMEOUT => path,
            _ => {
                self.timeouts += known.is_some() as u64;
                let paths = self.all.paths.between(at.node(), last);
                paths[self.all.dice.below(paths.len())]
            }
        };
        self.flowlets.insert(key, (now, path));
        path
    }
}

impl Labeller for LetFlow {
    fn pass(&mut self, at: &mut Crossroads<'_>, label: &mut Label, _: &mut Orders<'_>) -> Pass {
        let leaves = at.leaves().filter(|_| at.packet.kind == Kind::Data);
        let Some((first, last)) = leaves else { return Pass::By(at.hashed()) };
        self.sweeps.begin(at.now);
        if at.node() == last {
            return Pass::By(0);
        }
        *label = match at.node() == first {
            true => [self.path(at, last) as u64, 0, 0, 0],
            false => [label[0], label[1] + 1, 0, 0],
        };
        Pass::By(follow(at, label[0] as u32, label[1] as u32))
    }

    fn counters(&self) -> Vec<Counter> {
        vec![Counter::sum("flowlet_timeouts", self.timeouts)]
    }
}
