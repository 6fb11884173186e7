//! The flows of a run as streams over links: how much, from when on, and over which.

use engine::Time;
use fabric::Setup;
use fabric::routing::PortMap;
use scenario::resolve::Paths;

/// The competition for the links of a fabric.
pub struct Fluid {
    /// By link and direction (the number of the port that sends): what it carries, in bytes of packets per picosecond.
    pub capacity: Vec<f64>,
    /// In the order of the run's flows.
    pub flows: Vec<Stream>,
    /// Which flows wait for which, as in the run.
    pub after: Vec<fabric::setup::After>,
    /// What hosts do between flows.
    pub tasks: Vec<fabric::setup::Task>,
    /// The shortest time in which a sender can learn of anything.
    pub reaction: Time,
}

/// A flow.
pub struct Stream {
    /// When it begins, if it waits for nobody.
    pub start: Time,
    /// When its sender leaves.
    pub until: Time,
    /// Bytes of message.
    pub size: u64,
    /// Bytes of its packets.
    pub bytes: f64,
    /// The ports by which it leaves the nodes on its path, and how long after its start its first byte is there.
    pub path: Vec<(u32, Time)>,
    /// How long it takes alone, packet by packet.
    pub ideal: Time,
    /// How long its bytes take over the slowest of its links.
    pub alone: f64,
}

impl Fluid {
    /// That of the first so many flows of a run.
    pub fn new(setup: &Setup, flows: usize) -> Fluid {
        let map = PortMap::new(&setup.graph);
        let paths =
            Paths::new(&setup.graph, &map, setup.rule, setup.switch.pipeline, setup.forward.delay).salted(setup.salt);
        let rate = |port: usize| map.rate(&setup.graph, port as u32).0 as f64 / 8e12;
        let capacity: Vec<f64> = (0..map.count()).map(rate).collect();
        let (payload, header) = (setup.nic.payload as u64, setup.nic.header as u64);
        let stream = |flow: &fabric::setup::FlowSpec| {
            let bytes = (flow.size + flow.size.div_ceil(payload).max(1) * header) as f64;
            let first = (flow.size.min(payload) + header) as f64;
            let mut reached = 0.0;
            let path: Vec<(u32, Time)> = (paths.steps(flow.src, flow.dst, flow.tuple))
                .map(|port| {
                    let here = Time(reached as u64);
                    reached += paths.leg(port).latency.0 as f64 + first / capacity[port as usize];
                    (port, here)
                })
                .collect();
            let slowest = path.iter().map(|(port, _)| capacity[*port as usize]).fold(f64::INFINITY, f64::min);
            let (start, until, size, ideal) = (flow.start, flow.until, flow.size, flow.ideal);
            Stream { start, until, size, bytes, path, ideal, alone: bytes / slowest }
        };
        let flows: Vec<Stream> = setup.flows[..flows].iter().map(stream).collect();
        let reaction = setup.flows.iter().map(|flow| flow.base_rtt).min().unwrap_or(Time(1)).max(Time(1));
        Fluid { capacity, flows, after: setup.after.clone(), tasks: setup.tasks.clone(), reaction }
    }
}
