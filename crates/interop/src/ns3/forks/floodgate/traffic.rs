//! Floodgate's generators: Poisson flows with or without incasts beside them, and incasts alone.
//!
//! They draw from streams of ns-3's generator and from the C library's dice, so that the flows can be the same. Sizes and times between
//! flows come from two copies of one stream. `SEED` seeds the C library alone: it moves the starts of incasts by less than 100 ns.

use crate::ns3::config::Config;
use crate::ns3::flows::FlowLine;
use crate::ns3::rand::Rand;
use crate::ns3::tokens::{Tokens, Want};
use crate::ns3::topology::Topology;
use engine::random::Fixed;
use fabric::clock::whole_ns;
use files::problem::{Problem, read_text};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::path::Path;

/// Incasts alone.
const INCASTS: u32 = 99;
/// Sizes of incasts that follow from the rate of the hosts' links.
const BY_RATE: u32 = 9;
/// No flow is later than this; a load so low is refused.
const LATEST_NS: u64 = 17_000_000_000_000_000;
/// Flows start from this second on.
const ORIGIN_S: f64 = 2.0;
/// Poisson flows come so much later than the first incast.
const AFTER_INCAST_US: u64 = 30;
/// The most flows that are drawn.
const MOST: u64 = 20_000_000;
/// The simulator takes a pair of hosts for one number.
const MOST_HOSTS: u32 = 1000;

/// The file of a distribution of sizes, in the working directory.
fn file_of(cdf: u32) -> Option<&'static str> {
    Some(match cdf {
        4 => "distribution/FacebookKeyValueMsgSizeDist.txt",
        5 => "distribution/Google_SearchRPC.txt",
        6 => "distribution/Google_AllRPC.txt",
        7 => "distribution/Facebook_HadoopDist_All.txt",
        8 => "distribution/DCTCP_MsgSizeDist.txt",
        13 => "distribution/Facebook_WebServerDist_IntraCluster.txt",
        14 => "distribution/Facebook_CacheFollowerDist_IntraCluster.txt",
        _ => return None,
    })
}

/// What of the keys asks for a generator that is not here.
pub fn check(config: &Config) -> Vec<Problem> {
    let its = &config.floodgate;
    if its.from_file {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut refuse = |key: &str, message: String| {
        let remedy = "or write FLOW_FROM_FILE 1 and the flows in FLOW_FILE: their number and 0, then source, destination, bytes and start of each";
        problems.push(config.problem(key, message).help(remedy));
    };
    if its.per_pair == 0 {
        refuse(
            "AVG_MESSAGE_PER_QP",
            "AVG_MESSAGE_PER_QP 0 asks for a generator that is not here: write 1 or more".into(),
        );
    }
    let sizes = "4 to 8, 13 and 14 are";
    if its.flow_cdf == INCASTS && its.incast_mix == 0 {
        if its.incast_cdf != 0 {
            refuse(
                "INCAST_CDF",
                format!(
                    "FLOW_CDF 99 with INCAST_CDF {} asks for a generator that is not here: write INCAST_CDF 0",
                    its.incast_cdf
                ),
            );
        }
        if its.incast_time as u64 * its.flow_num as u64 > MOST {
            refuse("INCAST_TIME", format!("INCAST_TIME times FLOW_NUM is more than {MOST} flows: write fewer"));
        }
        if its.incast_time == 0 || its.incast_interval_us == 0 {
            refuse(
                "INCAST_TIME",
                "FLOW_CDF 99 needs INCAST_TIME and INCAST_INTERVAL above 0: there would be no flows".into(),
            );
        }
    } else if file_of(its.flow_cdf).is_none() {
        refuse(
            "FLOW_CDF",
            format!(
                "FLOW_CDF {} asks for a generator or a table inside its simulator that is not here: {sizes}, and 99 where INCAST_MIX is 0",
                its.flow_cdf
            ),
        );
    }
    if its.incast_mix > 0 {
        if its.incast_load == 0.0 {
            refuse("INCAST_LOAD", "INCAST_LOAD 0 asks for a generator that is not here: write a load above 0".into());
        }
        if its.incast_cdf != BY_RATE && file_of(its.incast_cdf).is_none() {
            refuse(
                "INCAST_CDF",
                format!(
                    "INCAST_CDF {} asks for a table inside its simulator that is not here: {sizes}, and 9",
                    its.incast_cdf
                ),
            );
        }
    }
    problems
}

/// How many streams of random numbers the generators leave behind that nobody else gets.
pub fn streams(config: &Config) -> u64 {
    let its = &config.floodgate;
    // Two are given back by each generator, and two are taken; beside incasts one for senders and one for sizes.
    if !its.from_file && its.incast_mix > 0 { 2 } else { 0 }
}

/// Draws the flows, in the order in which they get their ports. `stream` is the first that the simulator's own parts leave free.
pub fn draw(config: &Config, topology: &Topology, stream: u64) -> Result<Vec<FlowLine>, Problem> {
    let its = &config.floodgate;
    let hosts = topology.hosts().count() as u32;
    let per_rack = topology.hosts_per_rack.unwrap_or(0);
    let wrong = |message: String, remedy: &str| Err(config.problem("FLOW_FROM_FILE", message).help(remedy.to_owned()));
    if topology.hosts().enumerate().any(|(place, host)| place as u32 != host) {
        return wrong(
            "the generators need hosts that are numbered from 0 on, before all switches".into(),
            "number the nodes so, or write FLOW_FROM_FILE 1",
        );
    }
    if per_rack == 0 || hosts / per_rack < 2 || hosts > MOST_HOSTS {
        return wrong(
            format!(
                "the generators draw flows from rack to rack, and {hosts} hosts with {per_rack} in each rack are not two racks of at most {MOST_HOSTS} hosts in all"
            ),
            "correct the third number of the topology file, or write FLOW_FROM_FILE 1",
        );
    }
    // The reference takes that of the first host for all.
    let rate = topology.links.iter().find(|link| link.a == 0 || link.b == 0).map_or(0, |link| link.rate.0);
    let mut drawing = Drawing {
        config,
        hosts,
        per_rack,
        bytes_per_second: (rate / 8) as f64,
        stream,
        dice: Rand::seeded(its.seed),
        flows: Vec::new(),
        pairs: 0,
        latest: 0,
    };
    if its.incast_mix > 0 {
        drawing.mix()?;
    } else if its.flow_cdf == INCASTS {
        drawing.incasts();
    } else {
        drawing.poisson(0, its.own_pairs)?;
    }
    if drawing.latest >= LATEST_NS {
        let message = "the load is so low that flows start after the end of all runs";
        return Err(config.problem("LOAD", message).help("write a higher load, or fewer flows"));
    }
    Ok(drawing.flows.into_iter().enumerate().map(|(place, flow)| FlowLine { place: place as u32, ..flow }).collect())
}

/// Flows that are being drawn.
struct Drawing<'a> {
    config: &'a Config,
    hosts: u32,
    per_rack: u32,
    bytes_per_second: f64,
    stream: u64,
    dice: Rand,
    flows: Vec<FlowLine>,
    /// Queue pairs so far.
    pairs: u32,
    /// The latest start, in nanoseconds from the origin.
    latest: u64,
}

impl Drawing<'_> {
    fn rack(&self, host: u32) -> u32 {
        host / self.per_rack
    }

    fn add(&mut self, src: u32, dst: u32, size: u32, start_ns: u64, message: Option<(u32, u32)>) {
        let message = message.unwrap_or((self.pairs, 0));
        self.pairs = self.pairs.max(message.0) + 1;
        // Starts go from nanoseconds to seconds and back twice.
        let start = whole_ns(ORIGIN_S + seconds(start_ns.min(LATEST_NS)));
        let (line, place) = (self.flows.len() + 1, 0);
        let size = size.max(1) as u64;
        self.flows.push(FlowLine {
            src,
            dst,
            priority: 3,
            dport: 100,
            sport: None,
            size,
            start_s: seconds(start),
            line,
            place,
            message,
        });
    }

    /// Flows between pairs of hosts of different racks, each pair's with exponential times between them.
    fn poisson(&mut self, shift_us: u64, own_pairs: bool) -> Result<(), Problem> {
        let its = &self.config.floodgate;
        let mut sizes = Sizes::read(its.flow_cdf, self.config.packet_payload_size)?;
        let rate = self.bytes_per_second * its.load / sizes.mean as f64;
        let racks = self.hosts / self.per_rack;
        // In whole numbers.
        let each = rate / (self.hosts * (racks - 1) / racks) as f64;
        let mut gaps = Fixed::new(0);
        let mut gap = || whole_ns((-(1.0 / each) * gaps.uniform().ln()).min(LATEST_NS as f64 / 1e9));
        let pairs = self.pairs_of(its.flow_num, its.per_pair);
        let mut due = BinaryHeap::new();
        let mut count: HashMap<u32, (u32, u32)> = HashMap::new();
        for (number, &(from, to)) in pairs.iter().enumerate() {
            let pair = from * 1000 + to;
            due.push(Reverse((gap() + shift_us * 1000, pair)));
            count.insert(pair, (number as u32, 0));
        }
        for _ in 0..its.flow_num {
            let Some(Reverse((at, pair))) = due.pop() else { break };
            let size = sizes.draw();
            due.push(Reverse((at.saturating_add(gap()), pair)));
            let message = count.get_mut(&pair).map(|message| {
                message.1 += 1;
                (message.0, message.1 - 1)
            });
            self.add(pair / 1000, pair % 1000, size, at, message.filter(|_| !own_pairs));
            self.latest = self.latest.max(at);
        }
        Ok(())
    }

    /// The pairs of hosts of different racks, or as many of them as there are to be.
    fn pairs_of(&self, flows: u32, per_pair: u32) -> Vec<(u32, u32)> {
        let all = (0..self.hosts).flat_map(|from| (0..self.hosts).map(move |to| (from, to)));
        let mut all: Vec<(u32, u32)> = all.filter(|&(from, to)| self.rack(from) != self.rack(to)).collect();
        let wanted = ((flows / per_pair.max(1)) as usize).clamp(1, all.len());
        let mut draw = Fixed::handed_out(self.stream.saturating_sub(1));
        let mut one_of = |all: &mut Vec<(u32, u32)>| {
            let at = draw.uniform() * all.len() as f64;
            all.remove(at as usize)
        };
        if wanted < all.len() / 2 {
            return (0..wanted).map(|_| one_of(&mut all)).collect();
        }
        while all.len() > wanted {
            one_of(&mut all);
        }
        all
    }

    /// Poisson flows, and incasts to the first host of one rack after the other. Those hosts have nothing else to send or receive.
    fn mix(&mut self) -> Result<(), Problem> {
        let its = &self.config.floodgate;
        self.poisson(AFTER_INCAST_US, true)?;
        let poisson = std::mem::take(&mut self.flows);
        let mut sizes = match its.incast_cdf {
            BY_RATE => Sizes::by_rate(self.bytes_per_second, self.config.packet_payload_size, self.stream + 1),
            cdf => Sizes::read(cdf, self.config.packet_payload_size)?,
        };
        let mut senders = Fixed::handed_out(self.stream);
        let bytes = sizes.mean.wrapping_mul(its.incast_mix);
        let interval = (bytes as f64 / (self.bytes_per_second * its.incast_load / 1e9)) as u32;
        if interval == 0 {
            let message = "the incasts' load leaves less than a nanosecond between two of them";
            return Err(self
                .config
                .problem("INCAST_LOAD", message)
                .help("write a lower load, or more flows of an incast"));
        }
        let incasts = (self.latest as u32 / interval).max(1);
        if incasts as u64 * its.incast_mix as u64 > MOST {
            let message = format!("{incasts} incasts of {} flows are more than {MOST} flows", its.incast_mix);
            return Err(self.config.problem("INCAST_LOAD", message).help("write a lower load, or a higher LOAD"));
        }
        let mut receivers = BTreeSet::new();
        for incast in 0..incasts {
            let shift_us = (incast.wrapping_mul(interval) as f64 / 1e3) as u32;
            let dst = incast % (self.hosts / self.per_rack) * self.per_rack;
            receivers.insert(dst);
            let mut sent = 0;
            while sent < its.incast_mix {
                let at = whole_ns(1e-7) + (self.dice.draw() % 100) as u64 + shift_us as u64 * 1000;
                let src = (senders.uniform() * self.hosts as f64) as u32;
                if self.rack(src) != self.rack(dst) {
                    let size = sizes.draw();
                    self.add(src, dst, size, at, None);
                    sent += 1;
                }
            }
        }
        let apart = |flow: &FlowLine| !receivers.contains(&flow.src) && !receivers.contains(&flow.dst);
        self.flows.extend(poisson.into_iter().filter(apart));
        Ok(())
    }

    /// Incasts to host 0 and nothing else: FLOW_NUM flows each.
    fn incasts(&mut self) {
        let its = self.config.floodgate.clone();
        let others: Vec<u32> = (0..self.hosts).filter(|&host| self.rack(host) != 0).collect();
        let mut pairs = others.clone();
        if its.incast_scale != 1.0 {
            let mut draw = Fixed::handed_out(self.stream.saturating_sub(2));
            let wanted = (self.hosts as f64 * its.incast_scale).min(others.len() as f64);
            pairs.clear();
            while (pairs.len() as f64) < wanted {
                let host = (draw.uniform() * (self.hosts - 1) as f64) as u32;
                // The last host is never drawn, so that there may be fewer than wanted.
                if pairs.len() + 1 >= others.len() {
                    break;
                }
                if self.rack(host) != 0 && !pairs.contains(&host) {
                    pairs.push(host);
                }
            }
        }
        let mut due = BinaryHeap::new();
        for incast in 0..its.incast_time {
            let shift_us = incast as u64 * its.incast_interval_us as u64;
            while (due.len() as u64) < (incast as u64 + 1) * its.flow_num as u64 {
                let at = whole_ns(1e-7) + (self.dice.draw() % 100) as u64 + shift_us * 1000;
                due.push(Reverse((at, due.len() % pairs.len().max(1))));
            }
        }
        let mut sizes = Sizes::by_rate_in_bytes(self.bytes_per_second, self.stream.saturating_sub(1));
        let mut count = vec![0; pairs.len()];
        while let Some(Reverse((at, pair))) = due.pop() {
            let Some((&src, number)) = pairs.get(pair).zip(count.get_mut(pair)) else { continue };
            let message = (!its.own_pairs).then_some((pair as u32, *number));
            *number += 1;
            let size = sizes.draw();
            self.add(src, 0, size, at, message);
        }
    }
}

/// Nanoseconds as seconds, as the reference has them: by a product with the inverse of 10⁹ in 128 bits.
fn seconds(ns: u64) -> f64 {
    const INVERSE: u128 = u128::MAX / 1_000_000_000 + 1;
    let ns = ns as u128;
    let product = ns * (INVERSE >> 64) + ((ns * (INVERSE & u64::MAX as u128)) >> 64);
    (product >> 64) as f64 + (product as u64) as f64 / 18_446_744_073_709_551_616.0
}

/// A distribution of sizes.
struct Sizes {
    /// By ascending share: bytes, and the share of flows up to them. Two points with shares 0 and 1 are a uniform one.
    points: Vec<(f64, f64)>,
    /// What the load is computed with, in bytes.
    mean: u32,
    /// Bytes of a unit.
    unit: u32,
    draw: Fixed,
}

impl Sizes {
    /// Uniform, in packets.
    fn by_rate(bytes_per_second: f64, payload: u32, stream: u64) -> Sizes {
        let tens = bytes_per_second / 1_250_000_000.0;
        let mean = (tens * 3.5 * payload as f64) as u32;
        Sizes {
            points: vec![(tens * 3.0, 0.0), (tens * 4.0 + 1.0, 1.0)],
            mean,
            unit: payload,
            draw: Fixed::handed_out(stream),
        }
    }

    /// Uniform, in bytes of packets of 1460.
    fn by_rate_in_bytes(bytes_per_second: f64, stream: u64) -> Sizes {
        let tens = bytes_per_second / 1_250_000_000.0 * 1460.0;
        let points = vec![(tens * 3.0, 0.0), (tens * 4.0 + 1.0, 1.0)];
        Sizes { points, mean: (tens * 3.5) as u32, unit: 1, draw: Fixed::handed_out(stream) }
    }

    fn read(cdf: u32, payload: u32) -> Result<Sizes, Problem> {
        let file = file_of(cdf).unwrap_or_default();
        let text = read_text(Path::new(file)).map_err(|problem| {
            problem.help(format!(
                "FLOW_CDF or INCAST_CDF {cdf} has it read from the working directory, as Floodgate's simulator does"
            ))
        })?;
        let (mean, mut points) = points(file, &text)?;
        let (mean, factor) = if cdf == 8 { (mean.wrapping_mul(1460), payload) } else { (mean, 1) };
        points.iter_mut().for_each(|point| point.0 *= factor as f64);
        if cdf == 4 {
            lengthen(&mut points);
        }
        Ok(Sizes { points, mean, unit: 1, draw: Fixed::new(0) })
    }

    fn draw(&mut self) -> u32 {
        let share = self.draw.uniform();
        // The last point whose share is not above.
        let above = self.points.partition_point(|point| point.1 <= share);
        let value = match (above.checked_sub(1).and_then(|at| self.points.get(at)), self.points.get(above)) {
            (Some(a), Some(b)) => a.0 + (b.0 - a.0) / (b.1 - a.1) * (share - a.1),
            (Some(point), None) | (None, Some(point)) => point.0,
            (None, None) => 1.0,
        };
        (value as u32).wrapping_mul(self.unit)
    }
}

/// The mean and the points of a file: the mean on its first line, then bytes and a share on each.
pub fn points(file: &str, text: &str) -> Result<(u32, Vec<(f64, f64)>), Problem> {
    let mut tokens = Tokens::new(file, text);
    let help = "begin with the mean in bytes, then write bytes and the share of flows up to them on each line";
    let positive = |number: f64| (1.0..=4e9).contains(&number);
    let Some(first) = tokens.next() else {
        return Err(tokens.problem_here("the file is empty").help(help));
    };
    let mean = tokens.number(first, Want { what: "mean", is: "a number of bytes from 1 on", help }, positive)?;
    let mut points: Vec<(f64, f64)> = Vec::new();
    while let Some(size) = tokens.next() {
        let Some(share_token) = tokens.next() else {
            return Err(size.problem(file, "a size has no share").help(help));
        };
        // Whole numbers there.
        let bytes =
            tokens.number(size, Want { what: "size", is: "a number of bytes from 1 on", help }, positive)?.trunc();
        let want = Want { what: "share", is: "a number from 0 to 1", help };
        let share = tokens.number(share_token, want, |share| (0.0..=1.0).contains(&share))?;
        if points.last().is_some_and(|last| bytes < last.0 || share < last.1) {
            return Err(size.problem(file, "sizes and shares must not fall").help("sort the lines"));
        }
        points.push((bytes, share));
    }
    if points.is_empty() {
        return Err(tokens.problem_here("there are no sizes").help(help));
    }
    Ok((mean as u32, points))
}

/// The tail of the key-value sizes, which their file leaves out: a generalised Pareto distribution (Atikoglu et al., SIGMETRICS 2012).
fn lengthen(points: &mut Vec<(f64, f64)>) {
    const SHAPE: f64 = 0.348238;
    const SCALE: f64 = 214.476;
    const LAST: f64 = 0.999;
    let Some(&(from, share)) = points.last() else { return };
    let step = (LAST - share) / 1000.0;
    if step <= 0.0 {
        return;
    }
    let mut at = share + step;
    while at <= LAST {
        let size = (from + (((1.0 - share) / (1.0 - at)).powf(SHAPE) - 1.0) * SCALE / SHAPE).round();
        match points.last_mut() {
            Some(last) if last.0 == size => last.1 = at,
            _ => points.push((size, at)),
        }
        at += step;
    }
    if let Some(last) = points.last_mut() {
        last.1 = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_those_of_the_reference() {
        for ns in [0, 1, 99, 30_000, 123_456_789, 2_000_000_000, 2_000_030_123] {
            // As near as a double comes.
            assert!((seconds(ns) - ns as f64 / 1e9).abs() <= f64::EPSILON * 2.0, "{ns}");
        }
        assert_eq!(seconds(2_000_000_000), 2.0);
        assert_eq!(seconds(500_000_000), 0.5);
    }

    #[test]
    fn the_latest_flow_has_a_start() {
        assert!(whole_ns(ORIGIN_S + seconds(LATEST_NS)) > LATEST_NS);
        assert_eq!(whole_ns(f64::INFINITY.min(LATEST_NS as f64 / 1e9)), LATEST_NS);
    }

    #[test]
    fn a_distribution_is_read_and_drawn_from() {
        let (mean, read) = points("d.txt", "185.0\n1 0.25\n3 0.5\n3 0.75\n11 1\n").unwrap();
        assert_eq!((mean, read.len()), (185, 4));
        let mut sizes = Sizes { points: read, mean, unit: 1, draw: Fixed::new(0) };
        let mut counts: HashMap<u32, u32> = HashMap::new();
        for _ in 0..40_000 {
            *counts.entry(sizes.draw()).or_default() += 1;
        }
        let share = |sizes: std::ops::RangeInclusive<u32>| {
            sizes.filter_map(|size| counts.get(&size)).sum::<u32>() as f64 / 40_000.0
        };
        // A quarter is 1, the next quarter lies evenly between 1 and 3, a quarter is 3, a quarter between 3 and 11.
        for (range, expected) in [(1..=1, 0.375), (2..=2, 0.125), (3..=3, 0.28125), (4..=10, 0.21875)] {
            assert!((share(range.clone()) - expected).abs() < 0.01, "{range:?} {}", share(range.clone()));
        }
        for text in ["", "185\n", "185\n3\n", "185\n3 2\n", "185\n3 0.5\n2 1\n", "185\n3 0.5\n4 0.4\n", "0\n1 1\n"] {
            assert!(points("d.txt", text).unwrap_err().help.is_some(), "{text}");
        }
    }

    #[test]
    fn the_tail_of_key_value_sizes_ends_at_all_flows() {
        let mut points = vec![(1.0, 0.1), (15.0, 0.47)];
        lengthen(&mut points);
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        let &(size, share) = points.last().unwrap();
        // A thousand steps from 0.47 come out above 0.999, so that the last one counts no more: (0.53 / 0.001529)^0.348238 is 7.664.
        assert!((share, (size - 4120.0).abs() < 10.0) == (1.0, true), "{size}");
    }
}
