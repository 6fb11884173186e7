//! A grid of switches whose ends are joined, in up to three dimensions.

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, product, sum};

engine::parameters! {
    /// A torus: every switch is joined with the two next to it in each dimension, around the end. Two in a dimension are joined once.
    ///
    /// Hosts are numbered first, then switches along x, then y, then z. Links are those of the hosts, and then switch by switch those to the next in x, y and z.
    pub struct Torus {
        /// Switches along x.
        x: u32 = 4,
        /// Switches along y.
        y: u32 = 4,
        /// Switches along z.
        z: u32 = 1,
        /// Hosts on each switch.
        hosts_per_switch: u32 = 1,
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

impl Shape for Torus {
    fn name(&self) -> &'static str {
        "torus"
    }

    fn about(&self) -> &'static str {
        "A grid of switches in up to three dimensions, each joined with the two next to it in every dimension, around the end."
    }

    fn against_deadlock(&self) -> Option<&'static str> {
        Some(
            "packets need to go dimension by dimension, with two lanes in each, the second from the link around the end on (Dally and Seitz 1987); to go in any order they need a third lane, from which those two can always be taken (Duato 1993)",
        )
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let sizes = [at_least(1, "x", self.x)?, at_least(1, "y", self.y)?, at_least(1, "z", self.z)?];
        let each = at_least(1, "hosts_per_switch", self.hosts_per_switch)?;
        let host_wire = Wire::new(("host_rate", self.host_rate), ("host_delay", self.host_delay))?;
        let wire = Wire::new(("link_rate", self.link_rate), ("link_delay", self.link_delay))?;
        let all = product(&sizes);
        let hosts = product(&[all, each]);
        let along = |size: u64| match size {
            1 => 0,
            2 => all / 2,
            _ => all,
        };
        let size = Size {
            nodes: sum(&[hosts, all]),
            links: sum(&[hosts, along(sizes[0]), along(sizes[1]), along(sizes[2])]),
            roots: all,
            ports: sum(&[each, 6]),
        };
        let mut graph = Graph::sized(size, "x, y, z or hosts_per_switch")?;
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        let switches = graph.row(Kind::Switch, 1, "sw", all);
        graph.hang(hosts, switches.clone(), host_wire);
        let sizes = [self.x, self.y, self.z];
        for switch in 0..all as u32 {
            let mut stride = 1;
            for size in sizes {
                let place = switch / stride % size;
                // The second of two has the first before it and behind it.
                if size > 2 || size == 2 && place == 0 {
                    let next = switch - place * stride + (place + 1) % size * stride;
                    graph.wire(switches.start + switch, switches.start + next, wire);
                }
                stride *= size;
            }
        }
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::degrees;
    use super::*;

    #[test]
    fn every_switch_has_two_neighbours_in_every_dimension() {
        let graph = Torus { x: 3, y: 4, z: 5, ..Torus::default() }.build().unwrap();
        assert_eq!(graph.links.len(), 60 + 3 * 60);
        assert_eq!(degrees(&graph, 60..120), [1 + 6; 60]);
        let flat = Torus { x: 5, y: 2, z: 1, hosts_per_switch: 3, ..Torus::default() }.build().unwrap();
        assert_eq!(degrees(&flat, 30..40), [3 + 2 + 1; 10]);
        let one = Torus { x: 1, y: 1, z: 1, ..Torus::default() }.build().unwrap();
        assert_eq!((one.nodes.len(), one.links.len()), (2, 1));
    }
}
