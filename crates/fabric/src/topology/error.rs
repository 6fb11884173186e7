//! Why a graph or a shape is refused. Each error has a problem and, where there is one, a remedy; it prints as `problem; remedy`.

use std::fmt;

use engine::Time;

use crate::id::NodeId;

/// Why no simulation can run on a graph.
#[derive(Clone, Debug, PartialEq)]
pub enum GraphError {
    /// It has no host.
    NoHost,
    /// Two nodes have one name.
    SameName {
        /// The first of them.
        first: NodeId,
        /// The second.
        second: NodeId,
        /// Their name.
        name: String,
    },
    /// A link has an end that is not there.
    NoSuchNode {
        /// The link's number.
        link: u32,
        /// Its ends.
        ends: (NodeId, NodeId),
        /// The last node that there is.
        last: NodeId,
    },
    /// A link cannot be as it is.
    Link {
        /// The link's number.
        link: u32,
        /// The names of its ends.
        ends: (String, String),
        /// What is wrong with it.
        error: LinkError,
    },
    /// A node has more ports than can be numbered.
    TooManyPorts {
        /// The node's name.
        name: String,
        /// How many it has.
        ports: u32,
    },
    /// The routing tables would be too large.
    TooManyRoutes {
        /// Nodes.
        nodes: u64,
        /// Switches with hosts, and hosts with several links.
        roots: u64,
    },
    /// A host has no link.
    Unlinked {
        /// The host.
        host: NodeId,
        /// Its name.
        name: String,
    },
    /// There is no path between two hosts.
    Unreachable {
        /// The host that is not reached.
        host: NodeId,
        /// Its name.
        name: String,
        /// The graph's first host.
        from: NodeId,
        /// Its name.
        from_name: String,
    },
}

/// What is wrong with a link whose ends exist.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkError {
    /// Both ends are one node.
    SameEnds,
    /// Its rate is 0.
    NoRate,
    /// Its delay is 0.
    NoDelay,
    /// Its loss is no probability.
    Loss(f64),
    /// Its bit error rate is no probability.
    BitErrors(f64),
    /// Its corruption is no probability.
    Corruption(f64),
    /// An outage ends before it begins, or in the same instant.
    EndsFirst {
        /// When it begins.
        down: Time,
        /// When it ends.
        up: Time,
    },
    /// An outage follows one that never ends.
    AfterTheLast {
        /// When the one that never ends begins.
        down: Time,
        /// When the later one begins.
        next: Time,
    },
    /// An outage begins before the one before it has ended, or in the same instant.
    Touching {
        /// When it begins.
        next: Time,
        /// When the one before ends.
        up: Time,
    },
}

/// That routing tables would be too large: they have a row for each root.
fn too_many_routes(nodes: u64, roots: u64) -> String {
    let gigabytes = nodes.saturating_mul(roots) / 125_000_000;
    format!("{nodes} nodes and {roots} switches with hosts are too many: the routing tables would take {gigabytes} GB")
}

impl GraphError {
    /// What is wrong, and where.
    pub fn problem(&self) -> String {
        match self {
            GraphError::NoHost => "the graph has no host".into(),
            GraphError::SameName { first, second, name } => {
                format!("nodes {first} and {second} are both named \"{name}\"")
            }
            GraphError::NoSuchNode { link, ends: (a, b), last } => {
                format!("link {link} joins {a} and {b}, but the last node is {last}")
            }
            GraphError::Link { link, ends: (a, b), error } => format!("link {link} ({a} to {b}) {}", error.problem()),
            GraphError::TooManyPorts { name, ports } => {
                format!("{name} would have {ports} ports, and {} is the most", u16::MAX)
            }
            GraphError::TooManyRoutes { nodes, roots } => too_many_routes(*nodes, *roots),
            GraphError::Unlinked { host, name } => format!("host {host} ({name}) has no link"),
            GraphError::Unreachable { host, name, from, from_name } => {
                format!("host {host} ({name}) cannot be reached from host {from} ({from_name})")
            }
        }
    }

    /// What to do about it, where that can be said.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            GraphError::NoHost => Some("add at least one"),
            GraphError::SameName { .. } => Some("rename one"),
            GraphError::NoSuchNode { .. } => None,
            GraphError::Link { error, .. } => Some(error.remedy()),
            GraphError::TooManyPorts { .. } | GraphError::TooManyRoutes { .. } => Some("make the fabric smaller"),
            GraphError::Unlinked { .. } => Some("connect it"),
            GraphError::Unreachable { .. } => Some("connect them"),
        }
    }
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem())?;
        self.remedy().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

impl std::error::Error for GraphError {}

impl LinkError {
    /// What is wrong, as a phrase that follows the link.
    pub fn problem(&self) -> String {
        match self {
            LinkError::SameEnds => "has the same node at both ends".into(),
            LinkError::NoRate => "has rate 0".into(),
            LinkError::NoDelay => "has delay 0".into(),
            LinkError::Loss(chance) => format!("has loss {chance}"),
            LinkError::BitErrors(chance) => format!("has a bit error rate of {chance}"),
            LinkError::Corruption(chance) => format!("has corruption {chance}"),
            LinkError::EndsFirst { down, up } => format!("goes down at {down} and up at {up}"),
            LinkError::AfterTheLast { down, next } => format!("goes down at {down} for good and again at {next}"),
            LinkError::Touching { next, up } => {
                format!("goes down at {next}, not after the outage before, which ends at {up}")
            }
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            LinkError::SameEnds => "join two different nodes",
            LinkError::NoRate => "write a rate above zero",
            LinkError::NoDelay => "write a delay above zero",
            LinkError::Loss(_) | LinkError::BitErrors(_) | LinkError::Corruption(_) => {
                "write a probability from 0 to 1"
            }
            LinkError::EndsFirst { .. } => "let every outage end after it begins",
            LinkError::AfterTheLast { .. } => "drop the later outage",
            LinkError::Touching { .. } => "sort the outages and join those that touch",
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem(), self.remedy())
    }
}

impl std::error::Error for LinkError {}

/// Why a shape cannot be built with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeError {
    /// A count is too small.
    TooFew {
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        count: u32,
        /// The smallest that it may be.
        least: u32,
    },
    /// A count is odd and has to be even.
    Odd {
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        count: u32,
        /// The shape that needs an even one, with its article.
        shape: &'static str,
    },
    /// A count has to be a prime and is none.
    NotPrime {
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        count: u32,
    },
    /// A rate is 0.
    NoRate {
        /// The parameter.
        parameter: &'static str,
    },
    /// A delay is 0.
    NoDelay {
        /// The parameter.
        parameter: &'static str,
    },
    /// A count is too large for another one.
    TooMany {
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        count: u64,
        /// The most that it may be.
        most: u64,
        /// What there is no more of: the words before its number, the number and the words after it.
        why: (&'static str, u64, &'static str),
        /// The parameter that would have to be larger.
        or_raise: &'static str,
    },
    /// The routing tables would be too large.
    TooManyRoutes {
        /// Nodes.
        nodes: u64,
        /// Switches with hosts, and hosts with several links.
        roots: u64,
        /// The parameters to lower, as a list in words.
        lower: &'static str,
    },
    /// There would be more of something than a fabric may have.
    TooLarge {
        /// What there is too much of, such as `nodes`.
        what: &'static str,
        /// How many there may be.
        most: u64,
        /// The parameters to lower, as a list in words.
        lower: &'static str,
    },
}

impl ShapeError {
    /// The parameter at fault, where it is a single one.
    pub fn parameter(&self) -> Option<&'static str> {
        match *self {
            ShapeError::TooFew { parameter, .. }
            | ShapeError::Odd { parameter, .. }
            | ShapeError::TooMany { parameter, .. }
            | ShapeError::NotPrime { parameter, .. }
            | ShapeError::NoRate { parameter }
            | ShapeError::NoDelay { parameter } => Some(parameter),
            ShapeError::TooLarge { .. } | ShapeError::TooManyRoutes { .. } => None,
        }
    }

    /// What is wrong.
    pub fn problem(&self) -> String {
        match self {
            ShapeError::TooFew { parameter, count, .. } => format!("{parameter} is {count}"),
            ShapeError::Odd { parameter, count, shape } => {
                format!("{parameter} is {count}, but {shape} needs an even one")
            }
            ShapeError::NotPrime { parameter, count } => format!("{parameter} is {count}, which is no prime"),
            ShapeError::TooMany { parameter, count, why: (has, number, of), .. } => {
                format!("{parameter} is {count}, but {has} {number} {of}")
            }
            ShapeError::NoRate { parameter } | ShapeError::NoDelay { parameter } => format!("{parameter} is 0"),
            ShapeError::TooManyRoutes { nodes, roots, .. } => too_many_routes(*nodes, *roots),
            ShapeError::TooLarge { what, most, .. } => format!("the fabric would have more than {most} {what}"),
        }
    }

    /// What to write instead.
    pub fn remedy(&self) -> String {
        match *self {
            ShapeError::TooFew { least, .. } => format!("write {least} or more"),
            ShapeError::Odd { count, .. } => format!("write {} or {}", count - 1, u64::from(count) + 1),
            ShapeError::TooMany { most, or_raise, .. } => format!("write {most} or fewer, or a larger {or_raise}"),
            ShapeError::NotPrime { count, .. } => {
                let prime = |&of: &u32| (2..of).take_while(|by| by * by <= of).all(|by| of % by != 0);
                let (below, above) = ((5..count).rev().find(prime), (count.saturating_add(1)..).find(prime));
                format!("write {} or {}", below.unwrap_or(5), above.unwrap_or(5))
            }
            ShapeError::NoRate { .. } => "write a rate above zero, such as \"100Gbps\"".into(),
            ShapeError::NoDelay { .. } => "write a delay above zero, such as \"1us\"".into(),
            ShapeError::TooManyRoutes { lower, .. } => format!("make the fabric smaller: lower {lower}"),
            ShapeError::TooLarge { lower, .. } => format!("lower {lower}"),
        }
    }
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem(), self.remedy())
    }
}

impl std::error::Error for ShapeError {}
