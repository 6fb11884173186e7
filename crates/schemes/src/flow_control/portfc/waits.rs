//! What PortFC makes wait for what, for the analysis of deadlocks.

use super::layout::Layout;
use fabric::deadlock::{Channel, PathRules};
use fabric::routing::PortMap;
use fabric::topology::Graph;

/// A host's own packets wait for the queue of the switch that they join next. Transit waits for the forwarding host's queue of
/// forwarded packets and, past it, for the last hop. Forwarded packets, and those on their last hop, are never stopped.
pub struct Rules(pub Layout);

impl PathRules for Rules {
    fn lanes(&self) -> u16 {
        (2 * (self.0.n - 1) + 1) as u16
    }

    fn waits(&self, _: &Graph, map: &PortMap, path: &[u32], wait: &mut dyn FnMut(Channel, Channel)) {
        let Some((&first, &last)) = path.first().zip(path.last()) else { return };
        let far = |port: u32| map.node[map.peer[port as usize] as usize];
        let (src, dst) = (map.node[first as usize], far(last));
        // A host's ports are numbered by level.
        let level = |port: u32| port - map.base[map.node[port as usize] as usize];
        let at_host = |port: u32| {
            let host = map.node[port as usize];
            Channel { port, lane: self.0.host_queue(level(port), host, src, dst) as u16 }
        };
        let at_switch = |port: u32| {
            let level = level(map.peer[port as usize]);
            Channel { port, lane: self.0.switch_queue(level, far(port), dst) as u16 }
        };
        match *path {
            [own, last] => wait(at_host(own), at_switch(last)),
            [own, transit, remote, last] => {
                wait(at_host(own), at_switch(transit));
                wait(at_switch(transit), at_host(remote));
                wait(at_switch(transit), at_switch(last));
            }
            _ => {}
        }
    }
}
