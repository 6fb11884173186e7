//! The flows of PowerTCP's workload program: Poisson flows with sizes of a distribution, and requests that several hosts answer at once.
//!
//! All is drawn from the C library's `rand()`, so that the flows can be the same.

use crate::ns3::flows::FlowLine;
use crate::ns3::rand::Rand;
use crate::ns3::tokens::{MAX_SECONDS, Tokens, Want};
use crate::ns3::topology::Topology;
use files::problem::{Problem, read_text};
use std::path::PathBuf;

/// The largest number of the C library's dice.
const RAND_MAX: f64 = 2_147_483_647.0;
/// A port after which numbers begin anew.
const LAST_PORT: u16 = u16::MAX - 1;
/// The most flows that are drawn.
const MOST: usize = 20_000_000;

/// What flows are drawn by, with the program's own values where an option is not given.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// `--cdfFileName`: sizes and shares.
    pub sizes: PathBuf,
    /// `--load` of the links between ToRs and the next switches.
    pub load: f64,
    /// `--START_TIME` in seconds.
    pub start_s: f64,
    /// `--END_TIME` in seconds.
    pub end_s: f64,
    /// `--FLOW_LAUNCH_END_TIME` in seconds.
    pub launch_end_s: f64,
    /// `--SERVER_COUNT`: hosts of a ToR.
    pub servers: u32,
    /// `--LEAF_COUNT`: ToRs whose hosts send.
    pub leaves: u32,
    /// `--SPINE_COUNT`: switches above a ToR.
    pub spines: u32,
    /// `--LEAF_SERVER_CAPACITY` in Gbit/s.
    pub server_gbps: u64,
    /// `--SPINE_LEAF_CAPACITY` in Gbit/s.
    pub spine_gbps: u64,
    /// `--request`: bytes that a request asks for.
    pub request: u32,
    /// `--queryRequestRate`: requests of a host in a second.
    pub request_rate: f64,
    /// `--incast`: how many answer.
    pub incast: u32,
    /// `--randomSeed`.
    pub seed: u32,
}

impl Default for Workload {
    fn default() -> Workload {
        Workload {
            sizes: PathBuf::new(),
            load: 0.2,
            start_s: 0.1,
            end_s: 6.0,
            launch_end_s: 5.0,
            servers: 32,
            leaves: 2,
            spines: 2,
            server_gbps: 25,
            spine_gbps: 100,
            request: 1_000_000,
            request_rate: 1.0,
            incast: 5,
            seed: 7,
        }
    }
}

impl Workload {
    fn check(&self, topology: &Topology) -> Result<(), Problem> {
        let wrong =
            |option: &str, message: String, help: &str| Err(Problem::new(option, message).help(help.to_owned()));
        let hosts = topology.hosts().count() as u64;
        let wanted = self.servers as u64 * self.leaves as u64;
        if topology.hosts().enumerate().any(|(place, host)| place as u32 != host) {
            let message = "hosts are not numbered from 0 on, before all switches".into();
            return wrong("--SERVER_COUNT", message, "number the nodes so, or write the flows in FLOW_FILE");
        }
        if wanted == 0 || wanted > hosts || self.spines == 0 {
            let message =
                format!("{} ToRs of {} hosts are not in a topology of {hosts} hosts", self.leaves, self.servers);
            return wrong(
                "--LEAF_COUNT",
                message,
                "write --LEAF_COUNT, --SERVER_COUNT and --SPINE_COUNT as the topology has them",
            );
        }
        if wanted < 2 {
            return wrong("--SERVER_COUNT", "a host alone has nobody to send to".into(), "write 2 or more");
        }
        if self.server_gbps == 0 || self.spine_gbps == 0 || self.server_gbps.max(self.spine_gbps) > 100_000 {
            let message = "a capacity is not from 1 to 100000 Gbit/s".into();
            return wrong("--LEAF_SERVER_CAPACITY", message, "write both capacities in Gbit/s, such as 25 and 100");
        }
        let time = |s: f64| (0.0..=MAX_SECONDS).contains(&s);
        if ![self.start_s, self.end_s, self.launch_end_s].into_iter().all(time) || self.end_s == 0.0 {
            let message = "a time is below 0 or not a number of seconds, or the run ends before it begins".into();
            return wrong(
                "--END_TIME",
                message,
                "write seconds, such as --START_TIME=0.1 --END_TIME=0.2 --FLOW_LAUNCH_END_TIME=0.15",
            );
        }
        if !(0.0..=100.0).contains(&self.load) || !(0.0..=1e9).contains(&self.request_rate) {
            return wrong(
                "--load",
                "the load or the rate of requests is no number from 0 on".into(),
                "write for example --load=0.8",
            );
        }
        if self.requests() && (self.incast == 0 || self.request / self.incast.max(1) == 0) {
            return wrong(
                "--incast",
                "requests are answered by nobody, or with nothing".into(),
                "write 1 or more, or --request=0",
            );
        }
        if self.requests() && self.leaves < 2 {
            return wrong(
                "--LEAF_COUNT",
                "requests go to another ToR, and there is one".into(),
                "write 2 or more, or --request=0",
            );
        }
        if self.seed == 0 {
            return wrong("--randomSeed", "0 takes the time of day for a seed".into(), "write a number above 0");
        }
        Ok(())
    }

    fn requests(&self) -> bool {
        self.request > 0 && self.request_rate > 0.0
    }

    /// Draws the flows, in the order in which they are installed.
    pub fn draw(&self, topology: &Topology) -> Result<Vec<FlowLine>, Problem> {
        self.check(topology)?;
        let name = self.sizes.display().to_string();
        let sizes = sizes(&name, &read_text(&self.sizes)?)?;
        let hosts = topology.hosts().count();
        let mut drawing = Drawing { dice: Rand::default(), hosts, ports: Vec::new(), flows: Vec::new() };
        // Nobody has seeded the dice yet.
        drawing.ports = (0..hosts * hosts).map(|_| drawing.port()).map(|port| (port, port)).collect();
        drawing.dice = Rand::seeded(self.seed);
        let servers = self.servers as f64 * self.server_gbps as f64 * 1e9;
        let oversubscribed = servers / (self.spine_gbps as f64 * 1e9 * self.spines as f64);
        let rate = self.load * (self.server_gbps as f64 * 1e9) * self.servers as f64
            / oversubscribed
            / (8.0 * mean(&sizes))
            / self.servers as f64;
        for from in 0..self.leaves * self.servers {
            let first = from / self.servers * self.servers;
            let mut start = self.start_s + drawing.gap(rate);
            while start < self.launch_end_s && start > self.start_s {
                let mut to = from;
                while to == from {
                    to = drawing.between(first, self.servers * self.leaves);
                }
                let ports = drawing.ports(from, to);
                let mut size = 0;
                while size == 0 {
                    size = drawing.size(&sizes);
                }
                drawing.add(from, to, ports, size, start)?;
                start += drawing.gap(rate);
            }
        }
        let mut target = 0;
        for to in (0..self.leaves * self.servers).filter(|_| self.requests()) {
            let leaf = to / self.servers;
            let mut start = drawing.gap(self.request_rate);
            while start < self.launch_end_s && start > 0.0 {
                loop {
                    target = (target + 1) % self.leaves;
                    if target != leaf {
                        break;
                    }
                }
                for _ in 0..self.incast {
                    let from = self.servers * target + drawing.between(0, self.servers);
                    let ports = drawing.ports(from, to);
                    drawing.add(from, to, ports, (self.request / self.incast) as u64, start)?;
                }
                start += drawing.gap(self.request_rate);
            }
        }
        Ok(drawing.flows)
    }
}

struct Drawing {
    dice: Rand,
    hosts: usize,
    /// The next source and destination port of each pair.
    ports: Vec<(u16, u16)>,
    flows: Vec<FlowLine>,
}

impl Drawing {
    /// A whole number from `min` up to `max`, which comes once in 2³¹ draws.
    fn between(&mut self, min: u32, max: u32) -> u32 {
        (min as f64 + (max as f64 - min as f64) * self.dice.draw() as f64 / RAND_MAX) as u32
    }

    fn port(&mut self) -> u16 {
        self.between(10_000, 11_000) as u16
    }

    /// The time to the next flow, by a logarithm of 32 bits.
    fn gap(&mut self, rate: f64) -> f64 {
        if rate <= 0.0 {
            return 0.0;
        }
        let share = 1.0 - self.dice.draw() as f64 / RAND_MAX;
        f64::from(-(share as f32).ln()) / rate
    }

    fn ports(&mut self, from: u32, to: u32) -> (u16, u16) {
        let at = from as usize * self.hosts + to as usize;
        if self.ports.get(at).is_some_and(|ports| ports.1 == LAST_PORT) {
            let again = self.port();
            if let Some(ports) = self.ports.get_mut(at) {
                ports.1 = again;
            }
        }
        let Some(ports) = self.ports.get_mut(at) else { return (10_000, 10_000) };
        let now = *ports;
        *ports = (now.0.wrapping_add(1), now.1.wrapping_add(1));
        now
    }

    fn size(&mut self, points: &[(f64, f64)]) -> u64 {
        let share = self.dice.draw() as f64 / RAND_MAX;
        let mut before = (0.0, 0.0);
        for &(size, up_to) in points {
            if share <= up_to {
                let (value, until) = before;
                return match until == up_to {
                    true => (value + size) / 2.0,
                    false => value + (share - until) * (size - value) / (up_to - until),
                } as u64;
            }
            before = (size, up_to);
        }
        before.0 as u64
    }

    fn add(&mut self, src: u32, dst: u32, (sport, dport): (u16, u16), size: u64, start_s: f64) -> Result<(), Problem> {
        if self.flows.len() >= MOST {
            let message = format!("the workload has more than {MOST} flows");
            return Err(Problem::new("--FLOW_LAUNCH_END_TIME", message).help("write an earlier time, or a lower load"));
        }
        // The draw that comes once in 2³¹ is a host that is not there, or the host itself.
        if src == dst || src as usize >= self.hosts || dst as usize >= self.hosts {
            return Ok(());
        }
        let place = self.flows.len() as u32;
        let (line, message) = (self.flows.len() + 1, (place, 0));
        let sport = Some(sport);
        self.flows.push(FlowLine { src, dst, priority: 3, dport, size, start_s, line, place, sport, message });
        Ok(())
    }
}

/// The mean as the program has it: of the middles between points.
fn mean(points: &[(f64, f64)]) -> f64 {
    let mut before = (0.0, 0.0);
    let parts = points.iter().map(|&(size, share)| {
        let part = (size + before.0) / 2.0 * (share - before.1);
        before = (size, share);
        part
    });
    parts.sum()
}

/// Bytes and the share of flows up to them, a pair on each line.
pub fn sizes(file: &str, text: &str) -> Result<Vec<(f64, f64)>, Problem> {
    let help = "write bytes and the share of flows up to them on each line, up to a share of 1";
    let mut tokens = Tokens::new(file, text);
    let mut points: Vec<(f64, f64)> = Vec::new();
    while let Some(size) = tokens.next() {
        let Some(share_token) = tokens.next() else {
            return Err(size.problem(file, "a size has no share").help(help));
        };
        let want = Want { what: "size", is: "a number of bytes", help };
        let bytes = tokens.number(size, want, |bytes| (0.0..=1e15).contains(&bytes))?;
        let want = Want { what: "share", is: "a number from 0 to 1", help };
        let share = tokens.number(share_token, want, |share| (0.0..=1.0).contains(&share))?;
        if points.last().is_some_and(|last| bytes < last.0 || share < last.1) {
            return Err(size.problem(file, "sizes and shares must not fall").help("sort the lines"));
        }
        points.push((bytes, share));
    }
    if points.last().is_none_or(|last| last.1 != 1.0 || last.0 < 1.0) {
        return Err(tokens.problem_here("the shares do not reach 1 at a size of a byte or more").help(help));
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ns3::topology::tests::star;

    const SIZES: &str = "0 0\n1000 0.5\n3000 1\n";

    #[test]
    fn the_flows_have_the_load_that_is_asked_for() {
        let points = sizes("s", SIZES).unwrap();
        // A half has 500 bytes on average, the other 2000.
        assert_eq!(mean(&points), 1250.0);
        let folder = std::env::temp_dir().join(format!("tailwater-workload-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("sizes.txt");
        std::fs::write(&file, SIZES).unwrap();
        let workload = Workload {
            sizes: file,
            load: 0.5,
            start_s: 0.0,
            launch_end_s: 0.001,
            servers: 4,
            leaves: 2,
            spines: 1,
            request_rate: 2000.0,
            request: 10_000,
            incast: 2,
            ..Workload::default()
        };
        let flows = workload.draw(&star(8)).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let (requests, plain): (Vec<&FlowLine>, Vec<&FlowLine>) = flows.iter().partition(|flow| flow.size == 5000);
        // Half of 100 Gbit/s for each ToR in a millisecond: 6.25 MB, 5000 flows of 1250 bytes.
        assert!((plain.len() as f64 / 10_000.0 - 1.0).abs() < 0.05, "{}", plain.len());
        let bytes: u64 = plain.iter().map(|flow| flow.size).sum();
        assert!((bytes as f64 / 12.5e6 - 1.0).abs() < 0.05, "{bytes}");
        // Eight hosts ask twice in a millisecond on average, and two of the other rack answer.
        assert!((10..=60).contains(&requests.len()) && requests.len().is_multiple_of(2), "{}", requests.len());
        assert!(requests.iter().all(|flow| flow.src / 4 != flow.dst / 4));
        assert!(flows.iter().all(|flow| flow.src != flow.dst && flow.src < 8 && flow.dst < 8));
        let mut ports: Vec<_> = flows.iter().map(|flow| (flow.src, flow.dst, flow.sport)).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), flows.len());
    }

    #[test]
    fn what_cannot_be_drawn_is_refused_by_its_option() {
        let small = Workload { servers: 2, leaves: 2, ..Workload::default() };
        let refused = |workload: Workload| workload.draw(&star(4)).unwrap_err();
        for (workload, option) in [
            (Workload { leaves: 3, ..small.clone() }, "--LEAF_COUNT"),
            (Workload { leaves: 1, ..small.clone() }, "--LEAF_COUNT"),
            (Workload { seed: 0, ..small.clone() }, "--randomSeed"),
            (Workload { incast: 0, ..small.clone() }, "--incast"),
            (Workload { load: f64::NAN, ..small.clone() }, "--load"),
            (Workload { end_s: -1.0, ..small.clone() }, "--END_TIME"),
            (Workload { server_gbps: 0, ..small.clone() }, "--LEAF_SERVER_CAPACITY"),
        ] {
            let problem = refused(workload);
            assert!(problem.file == option && problem.help.is_some(), "{problem}");
        }
        for text in ["", "1\n", "1 2\n", "1 0.5\n", "5 0.5\n3 1\n", "5 0.5\n6 0.4\n"] {
            assert!(sizes("s", text).unwrap_err().help.is_some(), "{text}");
        }
    }
}
