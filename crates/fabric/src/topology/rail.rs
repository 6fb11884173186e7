//! Servers of several accelerators, each with a NIC on the switch of its rail, and a scale-up switch between them.

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, product, sum};

engine::parameters! {
    /// A rail-optimised fabric. A host is an accelerator; the first of every server is on the first rail, and so on. Accelerators of a server also share
    /// a scale-up switch, over which they reach each other and nobody else: hosts do not forward.
    ///
    /// Hosts are numbered server by server; then come rail switches, unit by unit, then scale-up switches, server by server, and spines.
    pub struct Rail {
        /// Units of servers; each has rail switches of its own.
        units: u32 = 1,
        /// Servers of a unit.
        servers: u32 = 16,
        /// Rails: accelerators of a server, and rail switches of a unit.
        rails: u32 = 8,
        /// Spine switches, each joined with every rail switch.
        spines: u32 = 8,
        /// Parallel links between a rail switch and a spine.
        links_per_pair: u32 = 1,
        /// Whether accelerators of a server share a scale-up switch.
        scale_up: bool = true,
        /// Rate of the links between hosts and rail switches.
        host_rate: Rate = Rate::from_gbps(400),
        /// Propagation delay of the links between hosts and rail switches.
        host_delay: Time = Time::from_ns(600),
        /// Rate of the links between rail switches and spines.
        uplink_rate: Rate = Rate::from_gbps(800),
        /// Propagation delay of the links between rail switches and spines.
        uplink_delay: Time = Time::from_ns(600),
        /// Rate of the links between hosts and scale-up switches.
        scale_up_rate: Rate = Rate::from_gbps(3600),
        /// Propagation delay of the links between hosts and scale-up switches.
        scale_up_delay: Time = Time::from_ns(250),
    }
}

impl Shape for Rail {
    fn name(&self) -> &'static str {
        "rail-optimised"
    }

    fn about(&self) -> &'static str {
        "Servers of several accelerators, each of which is a host with a link to the switch of its rail and one to its server's scale-up switch; every rail switch is joined with every spine."
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let units = at_least(1, "units", self.units)?;
        let servers = at_least(1, "servers", self.servers)?;
        let rails = at_least(1, "rails", self.rails)?;
        let spines = at_least(1, "spines", self.spines)?;
        let parallel = at_least(1, "links_per_pair", self.links_per_pair)?;
        let host_wire = Wire::new(("host_rate", self.host_rate), ("host_delay", self.host_delay))?;
        let uplink = Wire::new(("uplink_rate", self.uplink_rate), ("uplink_delay", self.uplink_delay))?;
        let scale_up = Wire::new(("scale_up_rate", self.scale_up_rate), ("scale_up_delay", self.scale_up_delay))?;
        let all_servers = product(&[units, servers]);
        let hosts = product(&[all_servers, rails]);
        let switches = product(&[units, rails]);
        let domains = if self.scale_up { all_servers } else { 0 };
        let up = product(&[spines, parallel]);
        let size = Size {
            nodes: sum(&[hosts, switches, domains, spines]),
            links: sum(&[hosts, if self.scale_up { hosts } else { 0 }, product(&[switches, up])]),
            roots: if self.scale_up { hosts } else { switches },
            ports: sum(&[servers, up]).max(rails).max(product(&[switches, parallel])),
        };
        let mut graph = Graph::sized(size, "units, servers, rails, spines or links_per_pair")?;
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        let switches = graph.row(Kind::Switch, 1, "rail", switches);
        let domains = graph.row(Kind::Switch, 1, "up", domains);
        let spines = graph.row(Kind::Switch, 2, "spine", spines);
        for host in hosts.clone() {
            let (server, rail) = (host / self.rails, host % self.rails);
            graph.wire(host, switches.start + server / self.servers * self.rails + rail, host_wire);
        }
        if self.scale_up {
            hosts.for_each(|host| graph.wire(host, domains.start + host / self.rails, scale_up));
        }
        graph.mesh(switches, spines, self.links_per_pair, uplink);
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{degrees, names};
    use super::*;

    #[test]
    fn accelerators_are_on_their_rails_and_in_their_domains() {
        let shape = Rail { units: 2, servers: 3, rails: 2, spines: 2, ..Rail::default() };
        let graph = shape.build().unwrap();
        assert_eq!(graph.nodes.len(), 12 + 4 + 6 + 2);
        assert_eq!(names(&graph, 12..17), ["rail0", "rail1", "rail2", "rail3", "up0"]);
        let ports = graph.ports();
        let peers = |node: usize| ports[node].iter().map(|&(_, peer)| graph[peer].name.as_str()).collect::<Vec<_>>();
        assert_eq!(peers(0), ["rail0", "up0"]);
        assert_eq!(peers(5), ["rail1", "up2"]);
        assert_eq!(peers(6), ["rail2", "up3"]);
        assert_eq!(degrees(&graph, 12..16), [3 + 2; 4]);
        let bare = Rail { scale_up: false, ..shape }.build().unwrap();
        assert_eq!(degrees(&bare, 0..12), [1; 12]);
    }
}
