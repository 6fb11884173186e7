//! Racks with two switches each: every host has a link to both.

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, product, sum};

engine::parameters! {
    /// Racks with two switches. Every host has two NIC ports, one on each, and uses both, flow by flow; the fabric survives the loss of either.
    ///
    /// Hosts are numbered first, then the two switches of every rack, then spines.
    pub struct DualTor {
        /// Racks.
        racks: u32 = 4,
        /// Hosts of a rack.
        hosts_per_rack: u32 = 8,
        /// Spine switches, each joined with every switch of every rack.
        spines: u32 = 4,
        /// Rate of each of the two links of a host.
        host_rate: Rate = Rate::from_gbps(200),
        /// Propagation delay of the links of hosts.
        host_delay: Time = Time::from_us(1),
        /// Rate of the links between racks' switches and spines.
        uplink_rate: Rate = Rate::from_gbps(400),
        /// Propagation delay of the links between racks' switches and spines.
        uplink_delay: Time = Time::from_us(1),
    }
}

impl Shape for DualTor {
    fn name(&self) -> &'static str {
        "dual-tor"
    }

    fn about(&self) -> &'static str {
        "Racks with two switches; every host has a link to both, and every switch of a rack is joined with every spine."
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let racks = at_least(1, "racks", self.racks)?;
        let each = at_least(1, "hosts_per_rack", self.hosts_per_rack)?;
        let spines = at_least(1, "spines", self.spines)?;
        let host_wire = Wire::new(("host_rate", self.host_rate), ("host_delay", self.host_delay))?;
        let uplink = Wire::new(("uplink_rate", self.uplink_rate), ("uplink_delay", self.uplink_delay))?;
        let (hosts, switches) = (product(&[racks, each]), product(&[2, racks]));
        let size = Size {
            nodes: sum(&[hosts, switches, spines]),
            links: sum(&[product(&[2, hosts]), product(&[switches, spines])]),
            roots: hosts,
            ports: sum(&[each, spines]).max(switches),
        };
        let mut graph = Graph::sized(size, "racks, hosts_per_rack or spines")?;
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        let switches = graph.row(Kind::Switch, 1, "tor", switches);
        let spines = graph.row(Kind::Switch, 2, "spine", spines);
        for host in hosts {
            let first = switches.start + 2 * (host / self.hosts_per_rack);
            graph.wire(host, first, host_wire);
            graph.wire(host, first + 1, host_wire);
        }
        graph.mesh(switches, spines, 1, uplink);
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{degrees, ends};
    use super::*;

    #[test]
    fn every_host_is_on_both_switches_of_its_rack() {
        let graph = DualTor { racks: 2, hosts_per_rack: 2, spines: 3, ..DualTor::default() }.build().unwrap();
        assert_eq!(ends(&graph, 0..8), [(0, 4), (0, 5), (1, 4), (1, 5), (2, 6), (2, 7), (3, 6), (3, 7)]);
        assert_eq!(degrees(&graph, 4..8), [2 + 3; 4]);
        assert_eq!(degrees(&graph, 8..11), [4; 3]);
    }
}
