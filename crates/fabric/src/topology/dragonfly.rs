//! Groups of switches that are all joined with one another, within a group and group by group (Kim, Dally, Scott and Abts 2008).

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, product, sum};

engine::parameters! {
    /// A dragonfly: the switches of a group are joined each with each, and so are the groups, by links that are dealt out evenly to their switches.
    ///
    /// Hosts are numbered first, then switches group by group. Links are those of the hosts, then those within groups, then those between them.
    pub struct Dragonfly {
        /// Groups, at most `switches_per_group × global_links + 1`.
        groups: u32 = 9,
        /// Switches of a group.
        switches_per_group: u32 = 4,
        /// Hosts on each switch.
        hosts_per_switch: u32 = 2,
        /// Links of each switch to other groups.
        global_links: u32 = 2,
        /// Rate of the links between hosts and switches.
        host_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between hosts and switches.
        host_delay: Time = Time::from_ns(500),
        /// Rate of the links within a group.
        local_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links within a group.
        local_delay: Time = Time::from_ns(500),
        /// Rate of the links between groups.
        global_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between groups.
        global_delay: Time = Time::from_us(1),
    }
}

impl Shape for Dragonfly {
    fn name(&self) -> &'static str {
        "dragonfly"
    }

    fn about(&self) -> &'static str {
        "Groups of switches, each joined with all others of its group, and every group with every other."
    }

    fn against_deadlock(&self) -> Option<&'static str> {
        Some(
            "packets need another lane after each link between groups: four, for shortest paths cross up to three; two are enough if packets go only by a link between their own two groups, and three with detours over one more (Kim et al. 2008, §4.1)",
        )
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let groups = at_least(1, "groups", self.groups)?;
        let switches = at_least(1, "switches_per_group", self.switches_per_group)?;
        let each = at_least(1, "hosts_per_switch", self.hosts_per_switch)?;
        let global = at_least(1, "global_links", self.global_links)?;
        let host_wire = Wire::new(("host_rate", self.host_rate), ("host_delay", self.host_delay))?;
        let local = Wire::new(("local_rate", self.local_rate), ("local_delay", self.local_delay))?;
        let long = Wire::new(("global_rate", self.global_rate), ("global_delay", self.global_delay))?;
        let all = product(&[groups, switches]);
        let hosts = product(&[all, each]);
        let leaving = product(&[switches, global]);
        // Every pair of groups has as many links, and what is left over has none.
        let pair = if groups > 1 { leaving / (groups - 1) } else { 0 };
        let size = Size {
            nodes: sum(&[hosts, all]),
            links: sum(&[
                hosts,
                product(&[groups, switches, switches - 1]) / 2,
                product(&[groups, groups - 1, pair]) / 2,
            ]),
            roots: all,
            ports: sum(&[each, switches - 1, global]),
        };
        let lower = "groups, switches_per_group, hosts_per_switch or global_links";
        let mut graph = Graph::sized(size, lower)?;
        if groups > 1 && pair == 0 {
            let why = ("a group has links to at most", leaving, "of the others");
            let or_raise = "global_links";
            return Err(ShapeError::TooMany { parameter: "groups", count: groups, most: leaving + 1, why, or_raise });
        }
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        let rows = graph.row(Kind::Switch, 1, "sw", all);
        graph.hang(hosts, rows.clone(), host_wire);
        let own = self.switches_per_group;
        for group in 0..self.groups {
            let first = rows.start + group * own;
            for a in 0..own {
                (a + 1..own).for_each(|b| graph.wire(first + a, first + b, local));
            }
        }
        for from in 0..self.groups {
            for to in from + 1..self.groups {
                for copy in 0..pair as u32 {
                    // The ports of a group by how many groups further they lead.
                    let port = |ahead: u32| ((ahead - 1) * pair as u32 + copy) / self.global_links;
                    let a = rows.start + from * own + port(to - from);
                    let b = rows.start + to * own + port(self.groups - (to - from));
                    graph.wire(a, b, long);
                }
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
    fn a_full_dragonfly_joins_every_pair_of_groups_once() {
        let graph = Dragonfly::default().build().unwrap();
        assert_eq!((graph.nodes.len(), graph.links.len()), (72 + 36, 72 + 9 * 6 + 36));
        assert_eq!(degrees(&graph, 72..108), [2 + 3 + 2; 36]);
        let group = |node: u32| (node - 72) / 4;
        let between = graph.links.iter().filter(|link| link.a.0 >= 72 && group(link.a.0) != group(link.b.0));
        let pairs: HashSet<(u32, u32)> = between.map(|link| (group(link.a.0), group(link.b.0))).collect();
        assert_eq!(pairs.len(), 36);
    }

    #[test]
    fn fewer_groups_have_several_links_between_them_and_more_are_refused() {
        let graph = Dragonfly { groups: 3, ..Dragonfly::default() }.build().unwrap();
        assert_eq!(graph.links.len(), 24 + 3 * 6 + 3 * 4);
        assert_eq!(degrees(&graph, 24..36), [2 + 3 + 2; 12]);
        let refusal = "groups is 10, but a group has links to at most 8 of the others; write 9 or fewer, or a larger global_links";
        refused(&Dragonfly { groups: 10, ..Dragonfly::default() }, &[refusal]);
        assert_eq!(Dragonfly { groups: 1, ..Dragonfly::default() }.build().unwrap().check(), Ok(()));
    }
}
