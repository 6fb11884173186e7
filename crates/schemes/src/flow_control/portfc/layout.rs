//! Which queue a packet joins: by the egress port it will take after the next hop.
//!
//! A host of BCube(n, 1) is a number of two digits in base n. It has a port on each of two levels; at its switch of level `l` it is on the port
//! of its digit `l`. Two hosts *meet* at a level if they are on the same switch there.

use std::fmt;

use fabric::topology::{Graph, Shape, bcube::Bcube};

/// Why a graph has no [`Layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLayout {
    /// Its hosts do not forward.
    HostsDoNotForward,
    /// It is wired in another way.
    OtherWiring,
}

impl fmt::Display for NoLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PortFC is defined for BCube(n, 1) only")?;
        f.write_str(match self {
            NoLayout::HostsDoNotForward => ", where hosts with two ports forward",
            NoLayout::OtherWiring => {
                ": with more levels a packet is forwarded more than once, and its queues do not determine where to"
            }
        })
    }
}

impl std::error::Error for NoLayout {}

/// BCube(n, 1), as far as queues are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Ports of a switch.
    pub n: u32,
}

impl Layout {
    /// The layout of a graph, or why there is none.
    pub fn of(graph: &Graph) -> Result<Layout, NoLayout> {
        let hosts = graph.hosts().count() as u32;
        let n = hosts.isqrt();
        if !graph.forwarding || n < 2 {
            return Err(NoLayout::HostsDoNotForward);
        }
        let same = |k: u32, n: u32| {
            let built = Bcube { n, k, ..Bcube::default() }.build();
            built.is_ok_and(|b| {
                let ends = |graph: &Graph| graph.links.iter().map(|link| (link.a, link.b)).collect::<Vec<_>>();
                b.nodes.len() == graph.nodes.len() && ends(&b) == ends(graph)
            })
        };
        match same(1, n) {
            true => Ok(Layout { n }),
            false => Err(NoLayout::OtherWiring),
        }
    }

    /// The digit of a host that is its port at its switch of a level.
    #[inline]
    pub fn digit(&self, host: u32, level: u32) -> u32 {
        if level == 0 { host % self.n } else { host / self.n }
    }

    /// Whether two hosts are on the same switch of a level.
    #[inline]
    pub fn meet(&self, level: u32, a: u32, b: u32) -> bool {
        self.digit(a, 1 - level) == self.digit(b, 1 - level)
    }

    /// The place of a port among those of a switch without `own`.
    #[inline]
    pub fn rank(&self, port: u32, own: u32) -> u32 {
        port - (port > own) as u32
    }

    /// The port at a place among those of a switch without `own`.
    pub fn unrank(&self, place: u32, own: u32) -> u32 {
        place + (place >= own) as u32
    }

    /// The queue of packets for the host itself, behind the n−1 of those that it forwards.
    #[inline]
    pub fn last_hop(&self) -> u32 {
        self.n - 1
    }

    /// The queue of a packet to `dst` at a switch of `level`, on its port to `host`: of those that `host` forwards, by the egress port at the
    /// switch after it.
    #[inline]
    pub fn switch_queue(&self, level: u32, host: u32, dst: u32) -> u32 {
        match host == dst {
            true => self.last_hop(),
            false => self.rank(self.digit(dst, 1 - level), self.digit(host, 1 - level)),
        }
    }

    /// The queue of a packet from `src` to `dst` at `host`, on its port of `level`: n−1 for its own over four links, n−1 for its own over two,
    /// each by the egress port at the next switch, and one for all that it forwards.
    pub fn host_queue(&self, level: u32, host: u32, src: u32, dst: u32) -> u32 {
        let place = self.rank(self.digit(dst, level), self.digit(host, level));
        match (src == host, self.meet(level, host, dst)) {
            (false, _) => 2 * (self.n - 1),
            (true, true) => self.n - 1 + place,
            (true, false) => place,
        }
    }
}
