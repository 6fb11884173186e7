//! CONGA (Alizadeh et al., SIGCOMM 2014): a flowlet takes the path that is least congested all the way, by what the other leaf says.
//!
//! Every port has a *discounting rate estimator* (DRE, §3.2): a register that grows with every byte sent and loses a share of itself in every
//! period, so that it follows the port's rate. A packet carries the path that its first switch chose and the largest quantised DRE of the ports
//! on it so far. The last switch keeps that by first switch and path (*from-leaf*), and tells the first switch, one path at a time, on
//! whatever goes back: paths in turn, those first whose value has changed (§3.3). The first switch keeps what it is told (*to-leaf*). A new
//! flowlet takes the path for which the larger of the own port's DRE and the to-leaf value is smallest; it moves only if another
//! path is better than the one it had (§3.5). A value of which nothing was heard for a while counts as zero.
//!
//! CONGA is made for two tiers of switches, where the first switch's port is the path. With more tiers, a path is named by every switch on it that
//! has a choice, and switches in between follow it. Flows that begin or end at a host with several links, or at one switch, are hashed.
//!
//! Eight levels, a time constant of 160 us and the aging are the paper's (§3.6), and the time constant is made of a period of 16 us and
//! a tenth. The flowlet timeout follows the fabric, as LetFlow's does here.

use engine::Time;
use fabric::axes::load_balancing::{Crossroads, Label, Labeller, Orders, Pass, Route};
use fabric::axes::{Counter, Definition, LoadBalancingDef};
use fabric::id::NodeId;
use fabric::packet::Kind;
use fabric::routing::Rule;
use fabric::view::Site;
use std::collections::HashMap;

engine::parameters! {
    /// Parameters of CONGA.
    pub struct Params {
        /// A packet that comes later than this after the last of its entry begins a flowlet. Auto: the longest base round trip among the flows.
        timeout: Option<Time> = None, in Time::from_ns(1)..=Time::from_ms(10_000),
        /// Entries of the table of flowlets.
        entries: u32 = 65_536, in 1..=1 << 20,
        /// How often a port's estimator loses a share of itself.
        period: Time = Time::from_us(16), in Time::from_ns(10)..=Time::from_ms(100),
        /// The share that it loses.
        share: f64 = 0.1, in 0.001..=1.0,
        /// Bits of a congestion metric.
        bits: u32 = 3, in 1..=8,
        /// A metric of which nothing was heard for so long counts as zero.
        aging: Time = Time::from_ms(10), in Time::from_us(1)..=Time::from_ms(10_000),
        /// How many paths are compared: so many in a row from a random one. Auto: all.
        sample: Option<u32> = None, in 1..=1024,
        /// Whether a flowlet stays on the path of the one before, if none is better.
        stay: bool = true,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "conga"
    }
    fn about(&self) -> &'static str {
        "CONGA: a flowlet takes the path whose most congested port is the least, by the first switch's own ports and what the last switch reports."
    }
    fn source(&self) -> &'static str {
        "M. Alizadeh, T. Edsall, S. Dharmapurikar, R. Vaidyanathan, K. Chu, A. Fingerhut, V. T. Lam, F. Matus, R. Pan, N. Yadav, G. Varghese, CONGA: \
         Distributed Congestion-Aware Load Balancing for Datacenters, SIGCOMM 2014"
    }
}

impl LoadBalancingDef for Params {
    fn rule(&self) -> Rule {
        Rule::ByPacket
    }
    fn labeller(&self, site: &Site<'_>, _: bool) -> Option<Box<dyn Labeller>> {
        Some(Box::new(Conga::new(self, site)))
    }
    fn names_paths(&self) -> bool {
        true
    }
    fn may_reorder(&self) -> bool {
        true
    }
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tag {
    route: Route,
    /// How many switches that had a choice it has passed.
    choices: u32,
    /// The most congested port so far.
    metric: u8,
    /// A path in the opposite direction, and its metric.
    feedback: Option<(Route, u8)>,
}

impl Tag {
    fn read(label: &Label) -> Tag {
        let [route, word, back, _] = *label;
        Tag {
            route: Route(route),
            choices: (word >> 8) as u8 as u32,
            metric: word as u8,
            feedback: (word >> 24 != 0).then_some((Route(back), (word >> 16) as u8)),
        }
    }
    fn write(&self, label: &mut Label) {
        let (back, metric) = self.feedback.unwrap_or_default();
        let word = (self.feedback.is_some() as u64) << 24
            | (metric as u64) << 16
            | (self.choices as u64) << 8
            | self.metric as u64;
        *label = [self.route.0, word, back.0, 0];
    }
}

/// A discounting rate estimator.
#[derive(Clone, Copy, Default)]
struct Estimator {
    /// The period up to which it has been brought.
    period: u64,
    bytes: u64,
}

/// One, in fractions of an estimator.
const WHOLE: u64 = 1 << 16;

impl Estimator {
    /// Brings it up to a period. `kept` of it is left after each.
    fn advance(&mut self, period: u64, kept: u64) {
        for _ in self.period..period {
            if self.bytes == 0 {
                break;
            }
            self.bytes = self.bytes * kept / WHOLE;
        }
        self.period = period;
    }
}

#[derive(Clone, Copy)]
struct Flowlet {
    last: Time,
    /// The last switch on its path.
    leaf: NodeId,
    route: Route,
}

/// What was measured of a path from another switch.
struct Measured {
    route: Route,
    metric: u8,
    /// Not yet fed back.
    fresh: bool,
}

#[derive(Default)]
struct FromLeaf {
    paths: Vec<Measured>,
    /// The path whose turn it is.
    turn: usize,
}

impl FromLeaf {
    fn measure(&mut self, route: Route, metric: u8) {
        match self.paths.iter_mut().find(|path| path.route == route) {
            Some(path) => {
                path.fresh |= path.metric != metric;
                path.metric = metric;
            }
            None => self.paths.push(Measured { route, metric, fresh: true }),
        }
    }
    /// What is fed back next: in turn, those first that have changed.
    fn feedback(&mut self) -> Option<(Route, u8)> {
        let count = self.paths.len();
        let turns = || (0..count).map(|step| (self.turn + step) % count);
        let place = turns().find(|&place| self.paths[place].fresh).or_else(|| turns().next())?;
        self.turn = place + 1;
        let path = &mut self.paths[place];
        path.fresh = false;
        Some((path.route, path.metric))
    }
}

struct Conga {
    params: Params,
    timeout: Time,
    kept: u64,
    /// By port.
    estimators: Vec<Estimator>,
    flowlets: Vec<Option<Flowlet>>,
    /// By last switch: the paths there.
    routes: HashMap<NodeId, Vec<Route>>,
    /// What the last switches said, and when.
    to_leaf: HashMap<(NodeId, Route), (u8, Time)>,
    from_leaf: HashMap<NodeId, FromLeaf>,
    begun: u64,
    moved: u64,
}

impl Conga {
    fn new(params: &Params, site: &Site<'_>) -> Conga {
        Conga {
            timeout: params.timeout.unwrap_or(site.longest_rtt),
            kept: WHOLE - (params.share * WHOLE as f64).round() as u64,
            estimators: vec![Estimator::default(); site.ports().len()],
            flowlets: Vec::new(),
            routes: HashMap::new(),
            to_leaf: HashMap::new(),
            from_leaf: HashMap::new(),
            begun: 0,
            moved: 0,
            params: params.clone(),
        }
    }

    fn estimator(&mut self, at: &Crossroads<'_>, place: usize) -> &mut Estimator {
        let estimator = &mut self.estimators[at.id(place).index()];
        estimator.advance(at.now.0 / self.params.period.0, self.kept);
        estimator
    }

    /// How congested a candidate is: what its estimator has of what it would have at the full rate.
    fn metric(&mut self, at: &Crossroads<'_>, place: usize) -> u8 {
        let levels = 1u64 << self.params.bits;
        // A port that is always busy adds a period's worth, and loses a share of all: it comes to that worth divided by the share.
        let full = at.rate(place).bytes_over(self.params.period) * WHOLE / (WHOLE - self.kept);
        let bytes = self.estimator(at, place).bytes;
        (bytes * levels / full.max(1)).min(levels - 1) as u8
    }

    /// The candidate by which a path leaves this switch, the first on it, if its link works.
    fn own(at: &Crossroads<'_>, route: Route) -> Option<usize> {
        let place = if at.len() == 1 { 0 } else { at.place(route.first())? };
        at.up(place).then_some(place)
    }

    /// The best path for a new flowlet, given the one of the flowlet before.
    fn best(&mut self, at: &mut Crossroads<'_>, leaf: NodeId, before: Option<Route>) -> Option<Route> {
        let all = self.routes.entry(leaf).or_insert_with(|| at.routes());
        let count = self.params.sample.map_or(all.len(), |sample| all.len().min(sample as usize));
        let from = if count < all.len() { at.draw((all.len() - count + 1) as u64) as usize } else { 0 };
        let routes: Vec<Route> = all[from..from + count].to_vec();
        let (mut best, mut equal, mut chosen) = (u8::MAX, 0, None);
        for route in routes {
            let Some(place) = Self::own(at, route) else { continue };
            let heard = self.to_leaf.get(&(leaf, route)).filter(|(_, when)| at.now - *when <= self.params.aging);
            let heard = heard.map_or(0, |heard| heard.0);
            let metric = self.metric(at, place).max(heard);
            if metric > best {
                continue;
            }
            equal = if metric < best { 1 } else { equal + 1 };
            best = metric;
            let stays = self.params.stay && before == Some(route);
            let held = self.params.stay && equal > 1 && chosen == before && before.is_some();
            if stays || equal == 1 || !held && at.draw(equal) == 0 {
                chosen = Some(route);
            }
        }
        chosen
    }

    /// The path of a data packet at its first switch.
    fn route(&mut self, at: &mut Crossroads<'_>, leaf: NodeId) -> Option<Route> {
        if self.flowlets.is_empty() {
            self.flowlets = vec![None; self.params.entries as usize];
        }
        let entry = at.hash() as usize % self.flowlets.len();
        let known =
            self.flowlets[entry].filter(|flowlet| flowlet.leaf == leaf && Self::own(at, flowlet.route).is_some());
        let current = known.filter(|flowlet| at.now - flowlet.last <= self.timeout).map(|flowlet| flowlet.route);
        let route = match current {
            Some(route) => route,
            None => {
                let before = known.map(|flowlet| flowlet.route);
                let route = self.best(at, leaf, before)?;
                self.begun += 1;
                self.moved += before.is_some_and(|before| before != route) as u64;
                route
            }
        };
        self.flowlets[entry] = Some(Flowlet { last: at.now, leaf, route });
        Some(route)
    }
}

impl Labeller for Conga {
    fn pass(&mut self, at: &mut Crossroads<'_>, label: &mut Label, _: &mut Orders<'_>) -> Pass {
        let data = at.packet.kind == Kind::Data;
        // What switches make has not passed a first switch: its label is that of another packet.
        let from_host = matches!(at.packet.kind, Kind::Data | Kind::Ack | Kind::Nack);
        let Some((first, last)) = at.leaves().filter(|_| from_host) else { return Pass::By(at.hashed()) };
        let mut tag = Tag::read(label);
        if at.node() == last {
            if let Some((route, metric)) = tag.feedback {
                self.to_leaf.insert((first, route), (metric, at.now));
            }
            if data {
                self.from_leaf.entry(first).or_default().measure(tag.route, tag.metric);
            }
            return Pass::By(at.hashed());
        }
        let mut routed = data;
        if at.node() == first {
            let feedback = self.from_leaf.get_mut(&last).and_then(FromLeaf::feedback);
            let route = if data { self.route(at, last) } else { None };
            routed = route.is_some();
            tag = Tag { feedback, route: route.unwrap_or_default(), ..Tag::default() };
        }
        let place = if routed { at.follow(tag.route, &mut tag.choices) } else { at.hashed() };
        let size = at.packet.size as u64;
        self.estimator(at, place).bytes += size;
        tag.metric = tag.metric.max(self.metric(at, place));
        tag.write(label);
        Pass::By(place)
    }
    fn rerouted(&mut self) {
        self.routes.clear();
        self.flowlets.fill(None);
    }
    fn counters(&self) -> Vec<Counter> {
        vec![Counter::sum("flowlets", self.begun), Counter::sum("conga_moved", self.moved)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_balancing::tests::{Fabric, leaf_spine};
    use fabric::id::PortId;

    #[test]
    fn a_label_is_read_as_it_was_written() {
        for feedback in [None, Some((Route(5), 0)), Some((Route(u64::MAX), 7))] {
            let tag = Tag { route: Route(9), choices: 2, metric: 6, feedback };
            let mut label = Label::default();
            tag.write(&mut label);
            assert_eq!(Tag::read(&label), tag);
        }
    }

    #[test]
    fn an_estimator_that_is_kept_full_comes_to_the_rate_and_decays_by_its_share() {
        let mut estimator = Estimator::default();
        let kept = WHOLE - WHOLE / 8;
        for period in 1..200 {
            estimator.advance(period, kept);
            estimator.bytes += 1000;
        }
        // 1000 / (1/8), of which an eighth is lost before the next 1000 come.
        assert!((7_990..=8_000).contains(&estimator.bytes), "{}", estimator.bytes);
        estimator.advance(201, kept);
        assert!((6_100..=6_130).contains(&estimator.bytes), "{}", estimator.bytes);
    }

    #[test]
    fn feedback_takes_turns_and_what_has_changed_comes_first() {
        let mut from = FromLeaf::default();
        assert_eq!(from.feedback(), None);
        (0..3).for_each(|path| from.measure(Route(path), 1));
        let said: Vec<u64> = (0..5).map(|_| from.feedback().unwrap().0.0).collect();
        assert_eq!(said, [0, 1, 2, 0, 1]);
        from.measure(Route(1), 4);
        assert_eq!((from.feedback(), from.feedback()), (Some((Route(1), 4)), Some((Route(2), 1))));
    }

    #[test]
    fn a_congested_far_link_is_heard_of_and_avoided() {
        // Two leaves with a host each, two spines. The first leaf's flowlets are one packet each.
        let params = Params { timeout: Some(Time::from_ns(1)), ..Params::default() };
        let Fabric { setup, hosts, leaves, spines } = leaf_spine(2, 1, 2);
        let (mut near, mut far) =
            (Fabric::bench(&setup, leaves[0], &params), Fabric::bench(&setup, leaves[1], &params));
        let flow = near.flow(hosts[0].0, hosts[1].0, 0);
        let back = near.flow(hosts[1].0, hosts[0].0, 0);
        // A packet, by one of the spines, of which the metric says that it is full.
        near.arrive(PortId(0), flow);
        near.advance(Time::from_us(1));
        let mut sent = near.data().remove(0);
        let (full, other) = (sent.port, PortId(3 - sent.port.0));
        let mut spine = Fabric::bench(&setup, spines[full.index() - 1], &params);
        spine.hear(PortId(0), &sent);
        spine.advance(Time::from_us(1));
        let passed = spine.data().remove(0);
        assert_eq!((passed.port, Tag::read(&passed.label.unwrap()).metric), (PortId(1), 0));
        let mut tag = Tag::read(&passed.label.unwrap());
        tag.metric = 7;
        sent = passed;
        tag.write(sent.label.as_mut().unwrap());
        far.hear(full, &sent);
        // The next packet from there says so, and from then on that spine is avoided.
        far.arrive(PortId(0), back);
        far.advance(Time::from_us(1));
        let answer = far.data().into_iter().find(|sent| sent.packet.flow == back.0).unwrap();
        assert_eq!(Tag::read(&answer.label.unwrap()).feedback, Some((tag.route, 7)));
        near.hear(answer.port, &answer);
        near.advance(Time::from_us(1));
        near.data();
        for _ in 0..50 {
            near.arrive(PortId(0), flow);
            near.advance(Time::from_us(10));
        }
        assert!(near.data().iter().all(|sent| sent.port == other));
        // Nothing is heard for long, and nothing is worse anywhere: it stays.
        near.advance(Time::from_ms(11));
        let mut taken = std::collections::BTreeSet::new();
        for _ in 0..50 {
            near.arrive(PortId(0), flow);
            near.advance(Time::from_us(200));
            taken.extend(near.data().iter().map(|sent| sent.port));
        }
        assert_eq!(taken, [other].into());
    }
}
