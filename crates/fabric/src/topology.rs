//! Who is wired to whom: a [`Graph`] of hosts, switches and links, and the shapes that people build.
//!
//! A [`Shape`] turns a few parameters into a graph. A new one is a file under `topology/` and a line in [`shapes`].
//! All of them number the hosts first, from 0, and then the switches tier by tier.

use std::collections::HashMap;
use std::ops::{Index, Range};

use engine::{Rate, Time};

use crate::id::NodeId;
use crate::retry::Retry;

pub mod bcube;
pub mod chain;
pub mod dragonfly;
pub mod dual_tor;
pub mod dumbbell;
pub mod error;
pub mod fat_tree;
pub mod k_ary_n_tree;
pub mod leaf_spine;
pub mod multi_plane;
pub mod rail;
pub mod slim_fly;
pub mod star;
pub mod three_tier;
pub mod torus;
pub mod two_sites;

pub use error::{GraphError, LinkError, ShapeError};

/// The most nodes that a shape builds.
pub const MAX_NODES: u64 = if cfg!(fuzzing) { 400 } else { 1_000_000 };
/// The most links that a shape builds.
pub const MAX_LINKS: u64 = if cfg!(fuzzing) { 1_600 } else { 4_000_000 };
/// The most ports of a node.
pub const MAX_PORTS: u64 = u16::MAX as u64;
/// The most entries of the routing tables, of eight bytes each.
pub const MAX_ROUTES: u64 = 1 << 28;

/// All of a queue's usual length, see [`Link::depths`].
pub const WHOLE: u32 = 1 << 16;

/// What a node does with a packet that is not for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Sends and receives messages. In server-centric fabrics (BCube, see [`Graph::forwarding`]) it forwards too.
    Host,
    /// Forwards.
    Switch,
}

/// A host or a switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Host or switch.
    pub kind: Kind,
    /// Its place in the fabric, for people and pictures: hosts are 0, the switches they hang on 1, and so on.
    pub tier: u8,
    /// A short name that is unique in the graph, such as `h3`, `tor1` or `spine0`.
    pub name: String,
}

/// A full-duplex link between two nodes. Two nodes may have several.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// Bits per second from `a` to `b`, and from `b` to `a`.
    pub rates: [Rate; 2],
    /// Propagation delay; above zero.
    pub delay: Time,
    /// Length of the queues that feed each direction, and of what they mark from on, as a part of what is usual, in 1/65536. Those from `a` to `b` come
    /// first.
    pub depths: [u32; 2],
    /// Probability that a packet is lost on the link.
    pub loss: f64,
    /// Probability that a packet arrives damaged and is discarded by the receiver.
    pub corruption: f64,
    /// Probability that a bit arrives wrong, whatever the others do: a packet with such a bit is damaged.
    pub bit_errors: f64,
    /// How it repeats what is lost or damaged, if it does.
    pub retry: Option<Retry>,
    /// Losses are drawn from a stream of its own, and not from one that all such links share. It matters with [shared](crate::setup::Dice)
    /// dice only.
    pub own_dice: bool,
    /// When the link is down: from the first instant, to the second if it comes back. In order, not overlapping.
    pub outages: Vec<(Time, Option<Time>)>,
}

impl Link {
    /// A faultless link of the same rate in both directions.
    pub fn new(a: NodeId, b: NodeId, rate: Rate, delay: Time) -> Link {
        Link {
            a,
            b,
            rates: [rate; 2],
            delay,
            depths: [WHOLE; 2],
            loss: 0.0,
            corruption: 0.0,
            bit_errors: 0.0,
            retry: None,
            own_dice: false,
            outages: Vec::new(),
        }
    }

    /// Which direction leads away from an end: 0 from `a`, 1 from `b`.
    pub fn direction(&self, from: NodeId) -> usize {
        (from != self.a) as usize
    }

    /// Bits per second of what an end sends.
    pub fn rate(&self, from: NodeId) -> Rate {
        self.rates[self.direction(from)]
    }

    /// Bits per second of what an end receives.
    pub fn rate_to(&self, to: NodeId) -> Rate {
        self.rates[1 - self.direction(to)]
    }

    /// The rate of its slower direction.
    pub fn slowest(&self) -> Rate {
        self.rates[0].min(self.rates[1])
    }

    /// The rate of its faster direction.
    pub fn fastest(&self) -> Rate {
        self.rates[0].max(self.rates[1])
    }

    /// Whether it loses or damages packets while it works.
    pub fn errs(&self) -> bool {
        self.loss > 0.0 || self.corruption > 0.0 || self.bit_errors > 0.0
    }

    /// Whether packets are lost on it while it works, so that somebody else has to repeat them.
    pub fn lossy(&self) -> bool {
        self.retry.map_or(self.errs(), |retry| retry.gives_up() && (retry.hasty || self.errs()))
    }

    /// Whether it is down from the beginning and for good. No table ever has it, so that it loses nothing.
    pub fn never(&self) -> bool {
        self.outages.first() == Some(&(Time::ZERO, None))
    }

    /// Whether it works at an instant.
    pub fn up_at(&self, time: Time) -> bool {
        !self.outages.iter().any(|&(down, up)| down <= time && up.is_none_or(|up| time < up))
    }

    /// When it fails for its ends and for routing: not where it repeats afterwards what was under way, so that they only wait.
    pub fn failures(&self) -> impl Iterator<Item = (Time, Option<Time>)> + '_ {
        let waits = self.retry.map_or(Time::ZERO, |retry| retry.link_lost);
        self.outages.iter().copied().filter(move |&(down, up)| up.is_none_or(|up| up - down >= waits))
    }

    /// Whether it has failed at an instant.
    pub fn failed_at(&self, time: Time) -> bool {
        self.failures().any(|(down, up)| down <= time && up.is_none_or(|up| time < up))
    }

    /// Whether a simulation can use it, given that its ends exist.
    fn check(&self) -> Result<(), LinkError> {
        if self.a == self.b {
            return Err(LinkError::SameEnds);
        }
        if self.rates.contains(&Rate(0)) {
            return Err(LinkError::NoRate);
        }
        if self.delay == Time::ZERO {
            return Err(LinkError::NoDelay);
        }
        // A range also refuses NaN, which comparisons would let through.
        let probability = 0.0..=1.0;
        if !probability.contains(&self.loss) {
            return Err(LinkError::Loss(self.loss));
        }
        if !probability.contains(&self.corruption) {
            return Err(LinkError::Corruption(self.corruption));
        }
        if !probability.contains(&self.bit_errors) {
            return Err(LinkError::BitErrors(self.bit_errors));
        }
        for &(down, up) in &self.outages {
            if let Some(up) = up.filter(|&up| up <= down) {
                return Err(LinkError::EndsFirst { down, up });
            }
        }
        for pair in self.outages.windows(2) {
            let (next, _) = pair[1];
            match pair[0] {
                (down, None) => return Err(LinkError::AfterTheLast { down, next }),
                // Touching outages are refused too: the link would go up and down in one instant.
                (_, Some(up)) if next <= up => return Err(LinkError::Touching { next, up }),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A fabric's wiring. Ports are not listed: a node's port `i` is the `i`-th link that names it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Nodes by number.
    pub nodes: Vec<Node>,
    /// Links by number.
    pub links: Vec<Link>,
    /// Hosts with several links forward what is not for them, as in server-centric fabrics.
    pub forwarding: bool,
    /// Of equal next hops, those to nodes of lower numbers come first. It matters to hashes, and to nothing else.
    pub ascending: bool,
}

impl Graph {
    /// Adds a node and gives its number.
    pub fn add(&mut self, kind: Kind, tier: u8, name: impl Into<String>) -> NodeId {
        self.nodes.push(Node { kind, tier, name: name.into() });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Adds a faultless link.
    pub fn connect(&mut self, a: NodeId, b: NodeId, rate: Rate, delay: Time) {
        self.links.push(Link::new(a, b, rate, delay));
    }

    /// The numbers of all hosts, in order.
    pub fn hosts(&self) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        (0..self.nodes.len() as u32).map(NodeId).filter(|&node| self[node].kind == Kind::Host)
    }

    /// Whether a node forwards what is not for it, being a switch or a host of a fabric where hosts do. `ports` is how many it has.
    pub fn forwards(&self, node: NodeId, ports: usize) -> bool {
        self[node].kind == Kind::Switch || self.forwarding && ports > 1
    }

    /// A switch that its hosts can ask for more than its links to other switches carry, if there is one: the first.
    pub fn narrow(&self) -> Option<NodeId> {
        // By switch: what goes to hosts, and to other switches.
        let mut rates = vec![(0u64, 0u64); self.nodes.len()];
        for link in &self.links {
            for (here, there) in [(link.a, link.b), (link.b, link.a)] {
                let sum = &mut rates[here.index()];
                match self[there].kind {
                    Kind::Host => sum.0 += link.rate(here).0,
                    Kind::Switch => sum.1 += link.rate(here).0,
                }
            }
        }
        let found = rates
            .iter()
            .zip(&self.nodes)
            .position(|(&(hosts, others), node)| node.kind == Kind::Switch && others > 0 && hosts > others);
        found.map(|place| NodeId(place as u32))
    }

    /// Whether any link may lose something, being lossy or failing.
    pub fn fallible(&self) -> bool {
        self.links.iter().any(|link| link.lossy() || !link.never() && link.failures().next().is_some())
    }

    /// Whether any link repeats frames.
    pub fn repeats(&self) -> bool {
        self.links.iter().any(|link| link.retry.is_some())
    }

    /// The rate of the fastest link of a host, in either direction.
    pub fn hosts_rate(&self) -> Option<Rate> {
        let host = |node: NodeId| self[node].kind == Kind::Host;
        self.links.iter().filter(|link| host(link.a) || host(link.b)).map(Link::fastest).max()
    }

    /// The rates of all links in both directions.
    pub fn rates(&self) -> impl Iterator<Item = Rate> + '_ {
        self.links.iter().flat_map(|link| link.rates)
    }

    /// Every node's ports in link order: each is a link and the node at its other end.
    ///
    /// # Panics
    ///
    /// Where a link names a node that is not there; [`Graph::check`] finds those.
    pub fn ports(&self) -> Vec<Vec<(u32, NodeId)>> {
        let mut ports = vec![Vec::new(); self.nodes.len()];
        for (number, link) in (0u32..).zip(&self.links) {
            ports[link.a.index()].push((number, link.b));
            ports[link.b.index()].push((number, link.a));
        }
        ports
    }

    /// Whether a simulation can run on it. The error names the first fault and what to write instead.
    pub fn check(&self) -> Result<(), GraphError> {
        if self.hosts().next().is_none() {
            return Err(GraphError::NoHost);
        }
        let mut seen = HashMap::with_capacity(self.nodes.len());
        for (number, node) in (0u32..).zip(&self.nodes) {
            if let Some(other) = seen.insert(node.name.as_str(), number) {
                let (first, second) = (NodeId(other), NodeId(number));
                return Err(GraphError::SameName { first, second, name: node.name.clone() });
            }
        }
        for (number, link) in (0u32..).zip(&self.links) {
            let name = |end: NodeId| self.nodes.get(end.index()).map(|node| node.name.as_str());
            let (Some(a), Some(b)) = (name(link.a), name(link.b)) else {
                let last = NodeId(self.nodes.len() as u32 - 1);
                return Err(GraphError::NoSuchNode { link: number, ends: (link.a, link.b), last });
            };
            let place = |error| GraphError::Link { link: number, ends: (a.into(), b.into()), error };
            link.check().map_err(place)?;
        }
        let mut ports = vec![0u32; self.nodes.len()];
        for link in &self.links {
            ports[link.a.index()] += 1;
            ports[link.b.index()] += 1;
        }
        if let Some(node) = ports.iter().position(|&count| count as u64 > MAX_PORTS) {
            return Err(GraphError::TooManyPorts { name: self.nodes[node].name.clone(), ports: ports[node] });
        }
        let (nodes, roots) = (self.nodes.len() as u64, self.roots(&ports));
        if nodes * roots > MAX_ROUTES {
            return Err(GraphError::TooManyRoutes { nodes, roots });
        }
        self.check_connected()
    }

    /// How many rows the routing tables have: one per switch with hosts, and one per host with several links or without a switch.
    fn roots(&self, ports: &[u32]) -> u64 {
        let mut root = vec![false; self.nodes.len()];
        for link in &self.links {
            for (end, peer) in [(link.a, link.b), (link.b, link.a)] {
                if self[end].kind == Kind::Host {
                    let hangs = ports[end.index()] == 1 && self[peer].kind == Kind::Switch;
                    root[if hangs { peer } else { end }.index()] = true;
                }
            }
        }
        root.into_iter().filter(|root| *root).count() as u64
    }

    fn check_connected(&self) -> Result<(), GraphError> {
        let ports = self.ports();
        let name = |node: NodeId| self[node].name.clone();
        if let Some(host) = self.hosts().find(|&host| ports[host.index()].is_empty()) {
            return Err(GraphError::Unlinked { host, name: name(host) });
        }
        let Some(first) = self.hosts().next() else { return Ok(()) };
        let mut reached = vec![false; self.nodes.len()];
        reached[first.index()] = true;
        let mut open = vec![first];
        while let Some(node) = open.pop() {
            for &(_, peer) in &ports[node.index()] {
                if !std::mem::replace(&mut reached[peer.index()], true) {
                    open.push(peer);
                }
            }
        }
        match self.hosts().find(|&host| !reached[host.index()]) {
            Some(host) => Err(GraphError::Unreachable { host, name: name(host), from: first, from_name: name(first) }),
            None => Ok(()),
        }
    }

    /// An empty graph with room for a fabric of that size, or an error that names the parameters to lower.
    fn sized(size: Size, lower: &'static str) -> Result<Graph, ShapeError> {
        let Size { nodes, links, roots, ports } = size;
        let limits =
            [(nodes, MAX_NODES, "nodes"), (links, MAX_LINKS, "links"), (ports, MAX_PORTS, "ports at one switch")];
        for (count, most, what) in limits {
            if count > most {
                return Err(ShapeError::TooLarge { what, most, lower });
            }
        }
        if product(&[nodes, roots]) > MAX_ROUTES {
            return Err(ShapeError::TooManyRoutes { nodes, roots, lower });
        }
        Ok(Graph {
            nodes: Vec::with_capacity(nodes as usize),
            links: Vec::with_capacity(links as usize),
            ..Graph::default()
        })
    }

    /// Adds `count` nodes named by `prefix` and their place in the row.
    fn row(&mut self, kind: Kind, tier: u8, prefix: &str, count: u64) -> Range<u32> {
        let first = self.nodes.len() as u32;
        for place in 0..count {
            self.add(kind, tier, format!("{prefix}{place}"));
        }
        first..self.nodes.len() as u32
    }

    /// Adds one link.
    fn wire(&mut self, a: u32, b: u32, wire: Wire) {
        self.connect(NodeId(a), NodeId(b), wire.rate, wire.delay);
    }

    /// Hangs the hosts on the switches in order, the same number on each.
    fn hang(&mut self, hosts: Range<u32>, switches: Range<u32>, wire: Wire) {
        let each = (hosts.len() / switches.len()).max(1);
        for (place, host) in hosts.enumerate() {
            self.wire(host, switches.start + (place / each) as u32, wire);
        }
    }

    /// Joins every lower node with every upper one, lower node by lower node.
    fn mesh(&mut self, lower: Range<u32>, upper: Range<u32>, parallel: u32, wire: Wire) {
        for a in lower {
            for b in upper.clone() {
                for _ in 0..parallel {
                    self.wire(a, b, wire);
                }
            }
        }
    }
}

impl Index<NodeId> for Graph {
    type Output = Node;

    fn index(&self, node: NodeId) -> &Node {
        &self.nodes[node.index()]
    }
}

/// How large a fabric will be. A million nodes take seconds to build, and arithmetic none.
struct Size {
    nodes: u64,
    links: u64,
    /// Rows of the routing tables.
    roots: u64,
    /// Ports of the node that has the most.
    ports: u64,
}

/// A rate and a delay that a link may have.
#[derive(Clone, Copy)]
struct Wire {
    rate: Rate,
    delay: Time,
}

impl Wire {
    /// From a rate and a delay, each with the name of its parameter.
    fn new(rate: (&'static str, Rate), delay: (&'static str, Time)) -> Result<Wire, ShapeError> {
        if rate.1 == Rate(0) {
            return Err(ShapeError::NoRate { parameter: rate.0 });
        }
        if delay.1 == Time::ZERO {
            return Err(ShapeError::NoDelay { parameter: delay.0 });
        }
        Ok(Wire { rate: rate.1, delay: delay.1 })
    }
}

/// A count as a number that can be multiplied, or an error where it is below `least`.
fn at_least(least: u32, parameter: &'static str, count: u32) -> Result<u64, ShapeError> {
    if count < least {
        return Err(ShapeError::TooFew { parameter, count, least });
    }
    Ok(count.into())
}

/// The product, or the largest number there is; both are then compared with the limits.
fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |product, &factor| product.saturating_mul(factor))
}

/// The sum, or the largest number there is.
fn sum(terms: &[u64]) -> u64 {
    terms.iter().fold(0, |sum, &term| sum.saturating_add(term))
}

/// A family of fabrics: parameters in, graph out.
pub trait Shape: engine::Parameters {
    /// Its name in scenario files, such as `leaf-spine`.
    fn name(&self) -> &'static str;
    /// What it looks like, in a sentence or two.
    fn about(&self) -> &'static str;
    /// What packets need where shortest paths alone can close a cycle of waits, in half a sentence; `None` where they cannot.
    fn against_deadlock(&self) -> Option<&'static str> {
        None
    }
    /// The graph, which passes [`Graph::check`]. The error says which parameter is wrong and what to write instead.
    ///
    /// Shapes of more than [`MAX_NODES`] nodes, [`MAX_LINKS`] links, [`MAX_PORTS`] ports of a node or [`MAX_ROUTES`] routes are refused
    /// before anything is built.
    fn build(&self) -> Result<Graph, ShapeError>;
}

/// Every shape, with default parameters.
pub fn shapes() -> Vec<Box<dyn Shape>> {
    vec![
        Box::new(star::Star::default()),
        Box::new(dumbbell::Dumbbell::default()),
        Box::new(leaf_spine::LeafSpine::default()),
        Box::new(fat_tree::FatTree::default()),
        Box::new(k_ary_n_tree::KAryNTree::default()),
        Box::new(two_sites::TwoSites::default()),
        Box::new(chain::Chain::default()),
        Box::new(bcube::Bcube::default()),
        Box::new(rail::Rail::default()),
        Box::new(dual_tor::DualTor::default()),
        Box::new(multi_plane::MultiPlane::default()),
        Box::new(three_tier::ThreeTier::default()),
        Box::new(dragonfly::Dragonfly::default()),
        Box::new(slim_fly::SlimFly::default()),
        Box::new(torus::Torus::default()),
    ]
}

/// The shape of that name, with default parameters.
pub fn shape(name: &str) -> Option<Box<dyn Shape>> {
    shapes().into_iter().find(|shape| shape.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Raw;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn a_node_with_more_ports_than_can_be_numbered_is_refused() {
        let mut graph = Graph::default();
        let hosts: Vec<NodeId> = (0..70_000).map(|host| graph.add(Kind::Host, 0, format!("h{host}"))).collect();
        let switch = graph.add(Kind::Switch, 1, "sw0");
        hosts.iter().for_each(|&host| graph.connect(host, switch, Rate::from_gbps(100), Time::from_us(1)));
        assert!(graph.check().is_err_and(|error| error.to_string().contains("70000 ports, and 65535 is the most")));
    }

    /// How many ports each node of the range has.
    pub(super) fn degrees(graph: &Graph, nodes: Range<usize>) -> Vec<usize> {
        graph.ports()[nodes].iter().map(Vec::len).collect()
    }

    /// The names of a range of nodes.
    pub(super) fn names(graph: &Graph, nodes: Range<usize>) -> Vec<&str> {
        graph.nodes[nodes].iter().map(|node| node.name.as_str()).collect()
    }

    /// The two ends of each link of the range.
    pub(super) fn ends(graph: &Graph, links: Range<usize>) -> Vec<(u32, u32)> {
        graph.links[links].iter().map(|link| (link.a.0, link.b.0)).collect()
    }

    /// The error, which must contain every one of the words.
    #[track_caller]
    pub(super) fn refused(shape: &dyn Shape, words: &[&str]) {
        let error = shape.build().map(drop).expect_err("the parameters are bad").to_string();
        for word in words {
            assert!(error.contains(word), "\"{word}\" is not in: {error}");
        }
    }

    fn pair() -> Graph {
        let mut graph = Graph::default();
        let a = graph.add(Kind::Host, 0, "h0");
        let b = graph.add(Kind::Host, 0, "h1");
        let s = graph.add(Kind::Switch, 1, "sw0");
        graph.connect(a, s, Rate::from_gbps(100), Time::from_us(1));
        graph.connect(b, s, Rate::from_gbps(100), Time::from_us(1));
        graph
    }

    #[track_caller]
    fn fault(change: impl FnOnce(&mut Graph), words: &[&str]) {
        let mut graph = pair();
        assert_eq!(graph.check(), Ok(()));
        change(&mut graph);
        let error = graph.check().expect_err("the graph has a fault").to_string();
        for word in words {
            assert!(error.contains(word), "\"{word}\" is not in: {error}");
        }
    }

    #[test]
    fn a_graph_needs_a_host() {
        assert!(Graph::default().check().unwrap_err().to_string().contains("no host"));
        fault(|g| g.nodes.iter_mut().for_each(|n| n.kind = Kind::Switch), &["no host"]);
    }

    #[test]
    fn a_link_needs_two_different_ends_that_exist() {
        fault(|g| g.links[1].b = NodeId(3), &["link 1", "joins 1 and 3", "last node is 2"]);
        fault(|g| g.links[1].a = NodeId(u32::MAX), &["link 1", "last node is 2"]);
        fault(|g| g.links[1].b = NodeId(1), &["link 1 (h1 to h1)", "same node"]);
    }

    #[test]
    fn a_link_needs_a_rate_and_a_delay() {
        fault(|g| g.links[0].rates[1] = Rate(0), &["link 0 (h0 to sw0)", "rate above zero"]);
        fault(|g| g.links[0].delay = Time::ZERO, &["link 0 (h0 to sw0)", "delay above zero"]);
    }

    #[test]
    fn loss_and_corruption_are_probabilities() {
        for bad in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            fault(|g| g.links[0].loss = bad, &["loss", "from 0 to 1"]);
            fault(|g| g.links[0].corruption = bad, &["corruption", "from 0 to 1"]);
        }
        let mut graph = pair();
        (graph.links[0].loss, graph.links[0].corruption) = (1.0, 0.5);
        assert_eq!(graph.check(), Ok(()));
    }

    #[test]
    fn outages_come_in_order_and_apart() {
        let us = Time::from_us;
        let mut graph = pair();
        graph.links[0].outages = vec![(us(1), Some(us(2))), (us(3), Some(us(4))), (us(5), None)];
        assert_eq!(graph.check(), Ok(()));
        fault(|g| g.links[0].outages = vec![(us(2), Some(us(2)))], &["end after it begins"]);
        fault(|g| g.links[0].outages = vec![(us(3), Some(us(4))), (us(1), Some(us(2)))], &["sort the outages"]);
        fault(|g| g.links[0].outages = vec![(us(1), Some(us(3))), (us(2), Some(us(4)))], &["sort the outages"]);
        fault(|g| g.links[0].outages = vec![(us(1), Some(us(2))), (us(2), None)], &["join those that touch"]);
        fault(|g| g.links[0].outages = vec![(us(1), None), (us(2), Some(us(3)))], &["for good"]);
    }

    #[test]
    fn names_are_unique() {
        fault(|g| g.nodes[2].name = "h1".into(), &["nodes 1 and 2", "\"h1\""]);
    }

    #[test]
    fn a_host_without_a_link_is_named() {
        fault(|g| g.nodes.push(Node { kind: Kind::Host, tier: 0, name: "lonely".into() }), &["lonely", "no link"]);
        let mut alone = Graph::default();
        alone.add(Kind::Host, 0, "h0");
        assert!(alone.check().unwrap_err().to_string().contains("no link"));
    }

    #[test]
    fn a_disconnected_host_is_named() {
        let island = |g: &mut Graph| {
            let (h, s) = (g.add(Kind::Host, 0, "robinson"), g.add(Kind::Switch, 1, "island"));
            g.connect(h, s, Rate(1), Time(1));
        };
        fault(island, &["robinson", "cannot be reached", "h0"]);
    }

    #[test]
    fn a_switch_may_stand_alone() {
        let mut graph = pair();
        graph.add(Kind::Switch, 1, "spare");
        assert_eq!(graph.check(), Ok(()));
    }

    #[test]
    fn an_outage_does_not_disconnect() {
        let mut graph = pair();
        graph.links[0].outages = vec![(Time::ZERO, None)];
        assert_eq!(graph.check(), Ok(()));
    }

    #[test]
    fn ports_are_in_link_order() {
        let mut graph = pair();
        graph.connect(NodeId(2), NodeId(0), Rate(1), Time(1));
        let ports =
            graph.ports().into_iter().map(|ports| ports.into_iter().map(|(link, peer)| (link, peer.0)).collect());
        let ports: Vec<Vec<(u32, u32)>> = ports.collect();
        assert_eq!(ports, [vec![(0, 2), (2, 2)], vec![(1, 2)], vec![(0, 0), (1, 1), (2, 0)]]);
    }

    #[test]
    fn every_shape_is_found_by_its_name() {
        let names: Vec<_> = shapes().iter().map(|shape| shape.name()).collect();
        assert_eq!(
            names,
            [
                "star",
                "dumbbell",
                "leaf-spine",
                "fat-tree",
                "k-ary-n-tree",
                "two-sites",
                "chain",
                "bcube",
                "rail-optimised",
                "dual-tor",
                "multi-plane",
                "three-tier",
                "dragonfly",
                "slim-fly",
                "torus"
            ]
        );
        for name in names {
            assert_eq!(shape(name).map(|shape| shape.name()), Some(name));
        }
        assert!(shape("hypercube").is_none());
    }

    #[test]
    fn every_shape_and_parameter_is_described() {
        for shape in shapes() {
            assert!(shape.about().ends_with('.'), "{}", shape.name());
            for parameter in shape.list() {
                assert!(parameter.about.ends_with('.'), "{} {}", shape.name(), parameter.name);
            }
        }
    }

    #[test]
    fn every_default_can_be_simulated() {
        for shape in shapes() {
            assert_eq!(shape.build().unwrap().check(), Ok(()), "{}", shape.name());
        }
    }

    #[test]
    fn a_zero_rate_or_delay_is_refused_by_name() {
        for name in shapes().iter().map(|shape| shape.name()) {
            for parameter in shape(name).unwrap().list() {
                let zero = match parameter.name {
                    p if p.ends_with("rate") => "0bps",
                    p if p.ends_with("delay") => "0ps",
                    _ => continue,
                };
                let mut shape = shape(name).unwrap();
                assert_eq!(shape.set(parameter.name, &Raw::Text(zero.into())), Some(Ok(())));
                refused(&*shape, &[parameter.name, "above zero"]);
            }
        }
    }

    #[test]
    fn a_huge_count_is_refused_before_anything_is_built() {
        for name in shapes().iter().map(|shape| shape.name()) {
            for parameter in shape(name).unwrap().list().iter().filter(|p| p.kind == "a whole number") {
                let mut shape = shape(name).unwrap();
                // Even, because a fat tree would refuse an odd one for that.
                assert_eq!(shape.set(parameter.name, &Raw::Integer(u32::MAX as i64 - 1)), Some(Ok(())));
                refused(&*shape, &["more than", "lower", parameter.name]);
            }
        }
    }

    #[test]
    fn the_limits_themselves_are_allowed() {
        let sized = |nodes, links, roots, ports| Graph::sized(Size { nodes, links, roots, ports }, "x");
        assert!(sized(MAX_NODES, MAX_LINKS, 1, MAX_PORTS).is_ok());
        assert!(sized(1 << 14, 0, 1 << 14, 0).is_ok());
        for (size, words) in [
            (sized(MAX_NODES + 1, 0, 0, 0), "more than 1000000 nodes; lower x"),
            (sized(0, MAX_LINKS + 1, 0, 0), "more than 4000000 links; lower x"),
            (sized(0, 0, 0, MAX_PORTS + 1), "more than 65535 ports at one switch; lower x"),
            (sized((1 << 14) + 1, 0, 1 << 14, 0), "routing tables would take 2 GB; make the fabric smaller: lower x"),
        ] {
            let error = size.unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    /// A shape, some of its parameters, and the largest value that one more may have.
    type Case = (&'static str, &'static [(&'static str, i64)], &'static str, i64);

    /// A shape with some of its parameters set.
    fn with(name: &str, parameters: &[(&'static str, i64)]) -> Box<dyn Shape> {
        let mut shape = shape(name).unwrap();
        for (parameter, value) in parameters {
            assert_eq!(shape.set(parameter, &Raw::Integer(*value)), Some(Ok(())), "{name} {parameter}");
        }
        shape
    }

    #[test]
    fn a_switch_of_a_shape_may_have_as_many_ports_as_can_be_numbered_and_no_more() {
        let cases: [Case; 9] = [
            ("star", &[], "hosts", 65_535),
            ("dumbbell", &[("right", 1), ("bottlenecks", 5)], "left", 65_530),
            ("dumbbell", &[("left", 1), ("bottlenecks", 5)], "right", 65_530),
            ("leaf-spine", &[("leaves", 1), ("spines", 2), ("links_per_pair", 3)], "hosts_per_leaf", 65_529),
            ("leaf-spine", &[("leaves", 5), ("spines", 1), ("hosts_per_leaf", 1)], "links_per_pair", 13_107),
            ("fat-tree", &[("k", 2)], "oversubscription", 65_534),
            ("k-ary-n-tree", &[("n", 1)], "k", 65_535),
            ("two-sites", &[("leaves", 1), ("spines", 5)], "hosts_per_leaf", 65_530),
            ("chain", &[("switches", 3)], "hosts_per_switch", 65_533),
        ];
        for (name, parameters, last, most) in cases {
            let sized = |most: i64| with(name, &[parameters, &[(last, most)]].concat());
            let graph = sized(most).build().unwrap_or_else(|error| panic!("{name} {last}: {error}"));
            assert_eq!(graph.check(), Ok(()), "{name}");
            assert_eq!(graph.ports().iter().map(Vec::len).max(), Some(65_535), "{name} {last}");
            refused(&*sized(most + 1), &["more than 65535 ports at one switch", last]);
        }
    }

    #[test]
    fn shapes_and_their_graphs_agree_on_what_routing_tables_can_hold() {
        // Just within the limit, and just beyond. What is beyond is built link by link for comparison.
        let cases: [Case; 7] = [
            ("leaf-spine", &[("hosts_per_leaf", 1), ("spines", 1)], "leaves", 11_584),
            ("two-sites", &[("hosts_per_leaf", 1), ("spines", 1)], "leaves", 5_792),
            ("chain", &[("hosts_per_switch", 1)], "switches", 11_585),
            ("fat-tree", &[], "k", 72),
            ("bcube", &[("k", 1)], "n", 127),
            ("k-ary-n-tree", &[("n", 2)], "k", 644),
            ("k-ary-n-tree", &[("k", 2)], "n", 13),
        ];
        for (name, parameters, last, most) in cases {
            let sized = |most: i64| with(name, &[parameters, &[(last, most)]].concat());
            let graph = sized(most).build().unwrap_or_else(|error| panic!("{name} {last}: {error}"));
            assert_eq!(graph.check(), Ok(()), "{name} {last}");
            let step = if name == "fat-tree" { 2 } else { 1 };
            refused(&*sized(most + step), &["routing tables", "smaller", last]);
        }
        let rows = |name: &str, parameters: &[(&'static str, i64)]| {
            let graph = with(name, parameters).build().unwrap();
            let ports: Vec<u32> = graph.ports().iter().map(|ports| ports.len() as u32).collect();
            graph.roots(&ports)
        };
        assert_eq!(rows("star", &[]), 1);
        assert_eq!(rows("bcube", &[("n", 4), ("k", 0)]), 1);
        assert_eq!(rows("bcube", &[("n", 4), ("k", 1)]), 16);
        assert_eq!(rows("fat-tree", &[("k", 4)]), 8);
        assert_eq!(rows("dumbbell", &[]), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_parameters_give_a_good_graph_or_a_message(
            which in 0..shapes().len(),
            counts in prop::collection::vec(prop_oneof![9 => 0..7i64, 1 => Just(u32::MAX as i64)], 8),
        ) {
            let mut shape = shapes().swap_remove(which);
            let parameters = shape.list();
            for (parameter, &count) in parameters.iter().filter(|p| p.kind == "a whole number").zip(&counts) {
                prop_assert_eq!(shape.set(parameter.name, &Raw::Integer(count)), Some(Ok(())));
            }
            let graph = match shape.build() {
                Ok(graph) => graph,
                Err(error) => {
                    let message = error.to_string();
                    prop_assert!(parameters.iter().any(|p| message.contains(p.name)), "{}", message);
                    return Ok(());
                }
            };
            prop_assert_eq!(graph.check(), Ok(()));
            // The size was foretold exactly: a wrong formula would have made the vectors grow or left room.
            prop_assert_eq!(graph.nodes.capacity(), graph.nodes.len());
            prop_assert_eq!(graph.links.capacity(), graph.links.len());
            let hosts: Vec<NodeId> = graph.hosts().collect();
            prop_assert_eq!(&hosts, &(0..hosts.len() as u32).map(NodeId).collect::<Vec<_>>());
            for (number, node) in graph.nodes.iter().enumerate() {
                prop_assert_eq!(node.kind == Kind::Host, node.tier == 0);
                if node.kind == Kind::Host {
                    prop_assert_eq!(&node.name, &format!("h{number}"));
                }
            }
            let ports = graph.ports();
            for host in hosts {
                let (_, first) = ports[host.index()][0];
                prop_assert_eq!(graph[first].tier, 1);
            }
            let names: HashSet<_> = graph.nodes.iter().map(|node| &node.name).collect();
            prop_assert_eq!(names.len(), graph.nodes.len());
        }
    }
}
