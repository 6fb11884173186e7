//! As many switches as there can be, nearly, of which no two are more than two links apart (Besta and Hoefler 2014).

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, product, sum};

engine::parameters! {
    /// A slim fly: the graph of McKay, Miller and Širáň for a prime q. It has 2 q² switches, each with (3 q − 1)/2 or (3 q + 1)/2 links to others, and no
    /// two are more than two links apart.
    ///
    /// Hosts are numbered first, then the switches of the first half, column by column, and those of the second.
    pub struct SlimFly {
        /// A prime, 5 or more.
        q: u32 = 5,
        /// Hosts on each switch.
        hosts_per_switch: u32 = 4,
        /// Rate of the links between hosts and switches.
        host_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between hosts and switches.
        host_delay: Time = Time::from_ns(500),
        /// Rate of the links between switches.
        link_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between switches.
        link_delay: Time = Time::from_ns(500),
    }
}

/// The least number whose powers are all numbers from 1 to q − 1, for a prime q.
fn generator(q: u64) -> u64 {
    let reaches = |of: &u64| {
        let (mut power, mut count) = (*of, 1);
        while power != 1 {
            (power, count) = (power * of % q, count + 1);
        }
        count == q - 1
    };
    (2..q).find(reaches).unwrap_or(1)
}

/// What two switches of one column differ by that are joined: in the first half, and in the second.
fn differences(q: u64) -> [Vec<u64>; 2] {
    let root = generator(q);
    let powers: Vec<u64> =
        std::iter::successors(Some(1), |power| Some(power * root % q)).take(q as usize - 1).collect();
    let every_second =
        |from: usize, to: usize| (from..=to).step_by(2).map(|at| powers[at % (q as usize - 1)]).collect::<Vec<_>>();
    let last = q as usize - 2;
    match q % 4 {
        1 => [every_second(0, last), every_second(1, last)],
        // q = 4 w − 1: so that a difference and its negative are both there (Hafner 2004).
        _ => {
            let w = q.div_ceil(4) as usize;
            let first = [every_second(0, 2 * w - 2), every_second(2 * w - 1, 4 * w - 3)].concat();
            let second = [every_second(1, 2 * w - 1), every_second(2 * w, 4 * w - 2)].concat();
            [first, second]
        }
    }
}

impl Shape for SlimFly {
    fn name(&self) -> &'static str {
        "slim-fly"
    }

    fn about(&self) -> &'static str {
        "2 q² switches for a prime q, joined so that no two are more than two links apart."
    }

    fn against_deadlock(&self) -> Option<&'static str> {
        Some(
            "packets need a lane for each link on their way: two, and with detours over a third switch four (Besta and Hoefler 2014, §IV)",
        )
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let q = at_least(5, "q", self.q)?;
        let each = at_least(1, "hosts_per_switch", self.hosts_per_switch)?;
        let host_wire = Wire::new(("host_rate", self.host_rate), ("host_delay", self.host_delay))?;
        let wire = Wire::new(("link_rate", self.link_rate), ("link_delay", self.link_delay))?;
        let all = product(&[2, q, q]);
        let hosts = product(&[all, each]);
        let degree = if q % 4 == 1 { (3 * q - 1) / 2 } else { (3 * q).div_ceil(2) };
        let size = Size {
            nodes: sum(&[hosts, all]),
            links: sum(&[hosts, product(&[q, q, degree])]),
            roots: all,
            ports: sum(&[each, degree]),
        };
        let mut graph = Graph::sized(size, "q or hosts_per_switch")?;
        if (2..q).take_while(|by| by * by <= q).any(|by| q % by == 0) {
            return Err(ShapeError::NotPrime { parameter: "q", count: self.q });
        }
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        let switches = graph.row(Kind::Switch, 1, "sw", all);
        graph.hang(hosts, switches.clone(), host_wire);
        let at = |half: u64, column: u64, row: u64| switches.start + ((half * q + column) * q + row) as u32;
        for (half, differences) in (0..).zip(differences(q)) {
            for column in 0..q {
                for row in 0..q {
                    let joined = differences.iter().map(|by| (row + by) % q).filter(|&other| other > row);
                    joined.for_each(|other| graph.wire(at(half, column, row), at(half, column, other), wire));
                }
            }
        }
        for x in 0..q {
            for m in 0..q {
                (0..q).for_each(|c| graph.wire(at(0, x, (m * x + c) % q), at(1, m, c), wire));
            }
        }
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{degrees, refused};
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_switches_are_more_than_two_links_apart() {
        for (q, degree) in [(5, 7), (7, 11), (11, 17), (13, 19)] {
            let graph = SlimFly { q, hosts_per_switch: 1, ..SlimFly::default() }.build().unwrap();
            let all = 2 * (q * q) as usize;
            assert_eq!(degrees(&graph, all..2 * all), vec![1 + degree; all], "{q}");
            let ports = graph.ports();
            let next = |node: usize| ports[node].iter().map(|&(_, peer)| peer.index()).filter(|&peer| peer >= all);
            for switch in all..2 * all {
                let near: HashSet<usize> =
                    next(switch).flat_map(|near| next(near).chain([near])).chain([switch]).collect();
                assert_eq!(near.len(), all, "{q}: {switch}");
            }
        }
    }

    #[test]
    fn q_is_a_prime() {
        refused(&SlimFly { q: 9, ..SlimFly::default() }, &["q is 9", "no prime", "7 or 11"]);
        refused(&SlimFly { q: 4, ..SlimFly::default() }, &["q is 4", "5 or more"]);
    }
}
