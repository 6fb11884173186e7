//! Two switches with hosts on each and a bottleneck between.

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, sum};

engine::parameters! {
    /// Two switches with hosts on each and a bottleneck between. The hosts on the left come first.
    pub struct Dumbbell {
        /// Hosts on the first switch.
        left: u32 = 8,
        /// Hosts on the second switch.
        right: u32 = 8,
        /// Parallel links between the two switches.
        bottlenecks: u32 = 1,
        /// Rate of the links between hosts and switches.
        host_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between hosts and switches.
        host_delay: Time = Time::from_us(1),
        /// Rate of each link between the switches.
        bottleneck_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of each link between the switches.
        bottleneck_delay: Time = Time::from_us(1),
    }
}

impl Shape for Dumbbell {
    fn name(&self) -> &'static str {
        "dumbbell"
    }

    fn about(&self) -> &'static str {
        "Two switches with hosts on each and one or more parallel links between."
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let left = at_least(1, "left", self.left)?;
        let right = at_least(1, "right", self.right)?;
        let bottlenecks = at_least(1, "bottlenecks", self.bottlenecks)?;
        let host_wire = Wire::new(("host_rate", self.host_rate), ("host_delay", self.host_delay))?;
        let bottleneck =
            Wire::new(("bottleneck_rate", self.bottleneck_rate), ("bottleneck_delay", self.bottleneck_delay))?;
        let size = Size {
            nodes: sum(&[left, right, 2]),
            links: sum(&[left, right, bottlenecks]),
            roots: 2,
            ports: left.max(right) + bottlenecks,
        };
        let mut graph = Graph::sized(size, "left, right or bottlenecks")?;
        let hosts = graph.row(Kind::Host, 0, "h", left + right);
        let switches = graph.row(Kind::Switch, 1, "sw", 2);
        let (first, second) = (switches.start, switches.start + 1);
        for host in hosts {
            let switch = if u64::from(host) < left { first } else { second };
            graph.wire(host, switch, host_wire);
        }
        graph.mesh(first..second, second..second + 1, self.bottlenecks, bottleneck);
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{degrees, ends, names, refused};
    use super::*;

    #[test]
    fn a_dumbbell_has_its_bottlenecks_last() {
        let dumbbell = Dumbbell {
            left: 2,
            right: 3,
            bottlenecks: 2,
            bottleneck_rate: Rate::from_gbps(40),
            bottleneck_delay: Time::from_us(5),
            ..Dumbbell::default()
        };
        let graph = dumbbell.build().unwrap();
        assert_eq!(names(&graph, 0..7), ["h0", "h1", "h2", "h3", "h4", "sw0", "sw1"]);
        assert_eq!(ends(&graph, 0..7), [(0, 5), (1, 5), (2, 6), (3, 6), (4, 6), (5, 6), (5, 6)]);
        assert_eq!(degrees(&graph, 0..7), [1, 1, 1, 1, 1, 4, 5]);
        let rates: Vec<_> = graph.links.iter().map(|link| link.rates[0].bps() / 1_000_000_000).collect();
        assert_eq!(rates, [100, 100, 100, 100, 100, 40, 40]);
        assert_eq!(graph.links[6].delay, Time::from_us(5));
    }

    #[test]
    fn a_dumbbell_needs_both_sides_and_a_bottleneck() {
        refused(&Dumbbell { left: 0, ..Dumbbell::default() }, &["left is 0", "1 or more"]);
        refused(&Dumbbell { right: 0, ..Dumbbell::default() }, &["right is 0", "1 or more"]);
        refused(&Dumbbell { bottlenecks: 0, ..Dumbbell::default() }, &["bottlenecks is 0", "1 or more"]);
    }
}
