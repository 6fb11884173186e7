//! CONGA (Alizadeh et al., SIGCOMM 2014): a flowlet takes the least congested of four paths in a row, from a random one on.
//!
//! Feedback about a random path goes back with every packet.

use super::{Balancing, Ticks, flowlet_key, follow};
use engine::Time;
use fabric::axes::Counter;
use fabric::axes::load_balancing::{Crossroads, Label, Labeller, Orders, Pass};
use fabric::id::NodeId;
use fabric::packet::Kind;
use std::collections::{BTreeMap, HashMap};

/// A packet that comes later than this after the last begins a flowlet.
const TIMEOUT: Time = Time::from_us(100);
/// How often the estimate of a port loses a share of itself.
const PERIOD: Time = Time::from_us(50);
const SHARE: f64 = 0.2;
/// Levels of congestion: two to the power of three.
const LEVELS: f64 = 8.0;
/// How often tables are swept of what is older.
const SWEEP: Time = Time::from_us(500);
/// Paths that are compared.
const SAMPLE: usize = 4;
/// No path.
const NONE: u64 = u32::MAX as u64;

/// What is known of a path: its congestion, and when that was heard of.
type Known = BTreeMap<u32, (u32, Time)>;

pub(super) struct Conga {
    all: Balancing,
    decays: Ticks,
    decayed: u64,
    sweeps: Ticks,
    swept: u64,
    /// By port: bytes, less what was lost to decay.
    sent: HashMap<u32, u32>,
    /// By other leaf: congestion of paths to it, as it has said, and of those from it.
    to_leaf: HashMap<NodeId, Known>,
    from_leaf: HashMap<NodeId, Known>,
    /// When the last packet of a flowlet came, and its path.
    flowlets: HashMap<(u32, u16, u16), (Time, u32)>,
    timeouts: u64,
}

impl Conga {
    pub(super) fn new(all: &Balancing) -> Conga {
        Conga {
            all: all.clone(),
            decays: Ticks::new(PERIOD),
            decayed: 0,
            sweeps: Ticks::new(SWEEP),
            swept: 0,
            sent: HashMap::new(),
            to_leaf: HashMap::new(),
            from_leaf: HashMap::new(),
            flowlets: HashMap::new(),
            timeouts: 0,
        }
    }

    /// Does what was due since the last packet.
    fn catch_up(&mut self, now: Time) {
        self.decays.begin(now);
        self.sweeps.begin(now);
        let decays = self.decays.count(now);
        for sent in self.sent.values_mut() {
            for _ in self.decayed..decays {
                if *sent == 0 {
                    break;
                }
                *sent = (*sent as f64 * (1.0 - SHARE)) as u32;
            }
        }
        self.decayed = decays;
        let sweeps = self.sweeps.count(now);
        if sweeps > self.swept {
            self.swept = sweeps;
            let old = |heard: Time| self.sweeps.swept(now, heard);
            let all = self.to_leaf.values_mut().flat_map(|known| known.values_mut());
            all.filter(|(_, heard)| old(*heard)).for_each(|(congestion, _)| *congestion = 0);
            self.from_leaf.values_mut().for_each(|known| known.retain(|_, (_, heard)| !old(*heard)));
            self.flowlets.retain(|_, (active, _)| !old(*active));
        }
    }

    /// The level of congestion of the port at `place`.
    fn level(&self, at: &Crossroads<'_>, place: usize) -> u32 {
        let Some(sent) = self.sent.get(&(at.id(place).0 as u32)) else { return 0 };
        let most = at.rate(place).0 as f64 * PERIOD.secs_f64() / SHARE;
        (sent.wrapping_mul(8) as f64 / most * LEVELS) as u32
    }

    /// Counts a packet at the port at `place`, and says how congested that is.
    fn count(&mut self, at: &Crossroads<'_>, place: usize) -> u32 {
        *self.sent.entry(at.id(place).0 as u32).or_default() += at.packet.size as u32;
        self.level(at, place)
    }

    /// The best path to a leaf.
    fn best(&self, at: &Crossroads<'_>, last: NodeId) -> u32 {
        let mut paths = self.all.paths.between(at.node(), last);
        if paths.len() >= SAMPLE {
            let from = self.all.dice.below(paths.len() - SAMPLE + 1);
            paths = &paths[from..from + SAMPLE];
        }
        let said = self.to_leaf.get(&last);
        let congestion = |path: &u32| {
            let said = said.and_then(|known| known.get(path)).map_or(0, |(congestion, _)| *congestion);
            self.level(at, follow(at, *path, 0)).max(said)
        };
        let levels: Vec<u32> = paths.iter().map(congestion).collect();
        let least = levels.iter().min().copied().unwrap_or(0);
        let equal: Vec<u32> =
            paths.iter().zip(levels).filter(|(_, level)| *level == least).map(|(path, _)| *path).collect();
        equal[self.all.dice.below(equal.len())]
    }

    /// The label of a packet at its first switch.
    fn label(&mut self, at: &Crossroads<'_>, last: NodeId) -> Label {
        let known = self.from_leaf.get(&last).filter(|known| !known.is_empty());
        let drawn = known.and_then(|known| known.iter().nth(self.all.dice.below(known.len())));
        let (about, congestion) = drawn.map_or((NONE, NONE), |(path, said)| (*path as u64, said.0 as u64));
        let (key, now) = (flowlet_key(at, &self.all.priorities), at.now);
        let path = match self.flowlets.get(&key) {
            Some((active, path)) if now - *active <= TIMEOUT => *path,
            known => {
                self.timeouts += known.is_some() as u64;
                self.best(at, last)
            }
        };
        self.flowlets.insert(key, (now, path));
        let own = self.count(at, follow(at, path, 0));
        [path as u64, own as u64, about, congestion]
    }
}

/// Where the label counts the switches that a packet has passed.
const HOPS: u32 = 32;

impl Labeller for Conga {
    fn pass(&mut self, at: &mut Crossroads<'_>, label: &mut Label, _: &mut Orders<'_>) -> Pass {
        if at.packet.kind != Kind::Data {
            return Pass::By(at.hashed());
        }
        self.catch_up(at.now);
        let Some((first, last)) = at.leaves() else { return Pass::By(at.hashed()) };
        if at.node() == first {
            *label = self.label(at, last);
            return Pass::By(follow(at, label[0] as u32, 0));
        }
        let path = label[0] as u32;
        if at.node() == last {
            let [_, congestion, about, said] = *label;
            if about != NONE && said != NONE {
                self.to_leaf.entry(first).or_default().insert(about as u32, (said as u32, at.now));
            }
            self.from_leaf.entry(first).or_default().insert(path, (congestion as u32, at.now));
            return Pass::By(0);
        }
        label[0] += 1 << HOPS;
        let place = follow(at, path, (label[0] >> HOPS) as u32);
        label[1] = label[1].max(self.count(at, place) as u64);
        Pass::By(place)
    }

    fn counters(&self) -> Vec<Counter> {
        vec![Counter::sum("flowlet_timeouts", self.timeouts)]
    }
}
