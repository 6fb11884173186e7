//! Who is wired to whom: a [`Graph`] of hosts, switches and links, and the shapes that people build.

use engine::{Rate, Time};

/// What a node does with a packet that is not for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Sends and receives messages. In server-centric fabrics (BCube) it forwards too.
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
    pub a: u32,
    /// The other end.
    pub b: u32,
    /// Bits per second in each direction.
    pub rate: Rate,
    /// Propagation delay; above zero.
    pub delay: Time,
    /// Probability that a packet vanishes on the way.
    pub loss: f64,
    /// Probability that a packet arrives damaged and is discarded by the receiver.
    pub corruption: f64,
    /// When the link is down: from the first instant, to the second if it comes back. In order, not overlapping.
    pub outages: Vec<(Time, Option<Time>)>,
}

impl Link {
    /// A faultless link.
    pub fn new(a: u32, b: u32, rate: Rate, delay: Time) -> Link {
        Link { a, b, rate, delay, loss: 0.0, corruption: 0.0, outages: Vec::new() }
    }
}

/// A fabric's wiring. Ports are not listed: a node's port `i` is the `i`-th link that names it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Nodes by number.
    pub nodes: Vec<Node>,
    /// Links by number.
    pub links: Vec<Link>,
}

impl Graph {
    /// Adds a node and gives its number.
    pub fn add(&mut self, kind: Kind, tier: u8, name: impl Into<String>) -> u32 {
        self.nodes.push(Node { kind, tier, name: name.into() });
        self.nodes.len() as u32 - 1
    }

    /// Adds a faultless link.
    pub fn connect(&mut self, a: u32, b: u32, rate: Rate, delay: Time) {
        self.links.push(Link::new(a, b, rate, delay));
    }

    /// The numbers of all hosts, in order.
    pub fn hosts(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.nodes.len() as u32).filter(|&n| self.nodes[n as usize].kind == Kind::Host)
    }
}
