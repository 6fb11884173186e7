//! Switches in a row.

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, product, sum};

engine::parameters! {
    /// Switches in a row, with hosts on each. The hosts of the first switch come first; the links between switches
    /// come last.
    pub struct Chain {
        /// Switches in the row.
        switches: u32 = 4,
        /// Hosts on each switch.
        hosts_per_switch: u32 = 4,
        /// Rate of the links between hosts and switches.
        host_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between hosts and switches.
        host_delay: Time = Time::from_us(1),
        /// Rate of the links between switches.
        trunk_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between switches.
        trunk_delay: Time = Time::from_us(1),
    }
}

impl Shape for Chain {
    fn name(&self) -> &'static str {
        "chain"
    }

    fn about(&self) -> &'static str {
        "Switches in a row, with hosts on each."
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let switches = at_least(1, "switches", self.switches)?;
        let each = at_least(1, "hosts_per_switch", self.hosts_per_switch)?;
        let host_wire = Wire::new(("host_rate", self.host_rate), ("host_delay", self.host_delay))?;
        let trunk = Wire::new(("trunk_rate", self.trunk_rate), ("trunk_delay", self.trunk_delay))?;
        let hosts = product(&[switches, each]);
        let size = Size {
            nodes: sum(&[hosts, switches]),
            links: sum(&[hosts, switches - 1]),
            roots: switches,
            ports: each + (switches - 1).min(2),
        };
        let mut graph = Graph::sized(size, "switches or hosts_per_switch")?;
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        let switches = graph.row(Kind::Switch, 1, "sw", switches);
        graph.hang(hosts, switches.clone(), host_wire);
        for (left, right) in switches.clone().zip(switches.skip(1)) {
            graph.wire(left, right, trunk);
        }
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{degrees, ends, names, refused};
    use super::*;

    #[test]
    fn a_chain_is_a_row() {
        let shape = Chain { switches: 3, hosts_per_switch: 2, trunk_delay: Time::from_us(7), ..Chain::default() };
        let graph = shape.build().unwrap();
        assert_eq!(names(&graph, 5..9), ["h5", "sw0", "sw1", "sw2"]);
        assert_eq!(ends(&graph, 0..8), [(0, 6), (1, 6), (2, 7), (3, 7), (4, 8), (5, 8), (6, 7), (7, 8)]);
        assert_eq!(degrees(&graph, 0..9), [1, 1, 1, 1, 1, 1, 3, 4, 3]);
        assert_eq!((graph.links[5].delay, graph.links[6].delay), (Time::from_us(1), Time::from_us(7)));
    }

    #[test]
    fn a_chain_of_one_has_no_trunk() {
        let graph = Chain { switches: 1, hosts_per_switch: 3, ..Chain::default() }.build().unwrap();
        assert_eq!((graph.nodes.len(), graph.links.len()), (4, 3));
    }

    #[test]
    fn a_chain_needs_switches_and_hosts() {
        refused(&Chain { switches: 0, ..Chain::default() }, &["switches is 0", "1 or more"]);
        refused(&Chain { hosts_per_switch: 0, ..Chain::default() }, &["hosts_per_switch is 0", "1 or more"]);
    }
}
