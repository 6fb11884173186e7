//! Topologies: fat trees of two or three tiers, read or regular.

use super::{Line, MOST_GBPS, MOST_HOSTS, MOST_NS, Text};
use fabric::topology::{MAX_LINKS, MAX_NODES, MAX_PORTS, MAX_ROUTES};
use files::problem::Problem;
use scenario::document::quoted;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Slow links have this part of their rate, and of their queues.
const SLOWER: u64 = 4;

/// A tier of a topology, with the links below it.
#[derive(Clone, Copy, Default)]
pub(super) struct Tier {
    /// Rate of a link, in Mbps.
    pub mbps: u64,
    /// Delay of a link, in picoseconds.
    pub latency: u64,
    /// In picoseconds.
    pub switch_latency: u64,
    down: u64,
    up: u64,
    oversubscribed: u64,
    bundle: u64,
}

/// A topology: a fat tree of two or three tiers.
pub(super) struct Tree {
    pub nodes: u64,
    /// Switches of a pod: those above hosts, and those above these.
    tors: u64,
    aggs: u64,
    pods: u64,
    cores: u64,
    pub tiers: Vec<Tier>,
    /// Whether it has sizes of queues.
    pub queues: bool,
    /// Links that are not there, between an aggregation and a core switch: the first of their bundles.
    missing: BTreeSet<(u64, u64)>,
    /// How many links below the top run at a quarter of their rate towards the hosts; with two tiers, how many switches there have such links, in both
    /// directions. Their queues are a quarter as long.
    pub slow: u64,
}

impl Tree {
    pub(super) fn read(file: Text<'_>) -> Result<Tree, Problem> {
        let (mut nodes, mut count, mut podsize, mut queues) = (None, None, None, false);
        let mut tiers: BTreeMap<u64, Tier> = BTreeMap::new();
        let mut current = None;
        for line in Line::all(file) {
            let words = line.words();
            let key = words[0].to_lowercase();
            let value = line.number(words[0], words.get(1))?;
            let most = match key.as_str() {
                "downlink_speed_gbps" => MOST_GBPS,
                "downlink_latency_ns" | "switch_latency_ns" => MOST_NS,
                "queue_up" | "queue_down" => u64::MAX,
                _ => MOST_HOSTS,
            };
            if value > most {
                let message = format!("{} is {value}, and {most} is the most", words[0]);
                return Err(line.problem(words.get(1).unwrap_or(&""), message, format!("write {most} or less")));
            }
            match (key.as_str(), current) {
                ("nodes", None) => nodes = Some(value),
                ("tiers", None) => count = Some(value),
                ("podsize", None) => podsize = Some(value),
                ("tier", _) if value > 2 => {
                    return Err(line.problem("", format!("there is no tier {value}"), "tiers are 0, 1 and 2"));
                }
                ("tier", _) => {
                    current = Some(value);
                    tiers.insert(value, Tier { oversubscribed: 1, bundle: 1, ..Tier::default() });
                }
                (key, Some(number)) => {
                    let tier = tiers.entry(number).or_default();
                    match key {
                        "downlink_speed_gbps" => tier.mbps = value * 1000,
                        "downlink_latency_ns" => tier.latency = value * 1000,
                        "switch_latency_ns" => tier.switch_latency = value * 1000,
                        "radix_down" => tier.down = value,
                        "radix_up" => tier.up = value,
                        "oversubscribed" => tier.oversubscribed = value,
                        "bundle" => tier.bundle = value,
                        "queue_up" | "queue_down" => queues = true,
                        _ => {
                            let help = "the keys of a tier are Downlink_speed_Gbps, Downlink_Latency_ns, Switch_Latency_ns, Radix_Down, Radix_Up, Oversubscribed, Bundle, Queue_Up and Queue_Down";
                            return Err(line.problem(words[0], format!("unknown key {}", quoted(words[0])), help));
                        }
                    }
                }
                _ => {
                    let help = "before the first Tier there are Nodes, Tiers and Podsize";
                    return Err(line.problem(words[0], format!("unknown key {}", quoted(words[0])), help));
                }
            }
        }
        let problem = |message: String, help: &str| Problem::new(file.name, message).help(help);
        let needed = |value: Option<u64>, key: &str| {
            value
                .filter(|value| (1..=MOST_HOSTS).contains(value))
                .ok_or_else(|| problem(format!("has no {key} above 0"), "add it before the first Tier"))
        };
        let (nodes, podsize) = (needed(nodes, "Nodes")?, needed(podsize, "Podsize")?);
        let count = needed(count, "Tiers")?;
        if !(2..=3).contains(&count) || !tiers.keys().copied().eq(0..count) {
            let found: Vec<String> = tiers.keys().map(u64::to_string).collect();
            let message = format!("says Tiers {count}, and has Tier {}", found.join(", "));
            return Err(problem(message, "write 2 or 3 tiers, from Tier 0 on"));
        }
        let tiers: Vec<Tier> = tiers.into_values().collect();
        for (number, tier) in tiers.iter().enumerate() {
            let up = number + 1 == tiers.len() || tier.up > 0;
            if tier.mbps == 0
                || tier.latency == 0
                || tier.down == 0
                || tier.bundle == 0
                || tier.oversubscribed == 0
                || !up
            {
                let message = format!("Tier {number} lacks its speed, latency or radix");
                return Err(problem(
                    message,
                    "give it Downlink_speed_Gbps, Downlink_Latency_ns, Radix_Down and, below the top, Radix_Up",
                ));
            }
        }
        if tiers.iter().any(|tier| tier.switch_latency != tiers[0].switch_latency) {
            let message = "its tiers have different Switch_Latency_ns, and switches here are all alike".into();
            return Err(problem(message, "give them one value, or put the difference into the links' latency"));
        }
        Tree { nodes, tors: 0, aggs: 0, pods: 0, cores: 0, tiers, queues, missing: BTreeSet::new(), slow: 0 }
            .sized(podsize)
            .map_err(|(message, help)| problem(message, help))
    }

    /// Works out how many switches there are, as htsim does, and holds that against the radices.
    fn sized(mut self, podsize: u64) -> Result<Tree, (String, &'static str)> {
        const HELP: &str = "check Nodes, Podsize, the radices, Oversubscribed and Bundle: htsim refuses it, too";
        let exact = |a: u64, b: u64, what: &str| match (b > 0 && a.is_multiple_of(b)).then(|| a / b) {
            Some(parts @ 1..) => Ok(parts),
            _ => Err((format!("{what}: {a} is not a multiple of {b}"), HELP)),
        };
        let [bottom, middle] = [self.tiers[0], self.tiers[1]];
        if bottom.bundle != 1 {
            return Err(("Tier 0 has a Bundle: hosts have one link".into(), HELP));
        }
        self.pods = exact(self.nodes, podsize, "Nodes by Podsize")?;
        if self.tiers.len() == 2 && self.pods != 1 {
            return Err(("with two tiers there is one pod".into(), "write Podsize as Nodes"));
        }
        self.tors = exact(podsize, bottom.down, "Podsize by Radix_Down of Tier 0")?;
        let uplinks =
            exact(self.nodes * bottom.mbps, middle.mbps * bottom.oversubscribed, "speed of hosts by that of uplinks")?;
        self.aggs = exact(uplinks, self.pods * middle.down, "uplinks by Radix_Down of Tier 1")?;
        let same = |what: &str, has: u64, needs: u64| match has == needs {
            true => Ok(()),
            false => Err((format!("{what} is {has}, but the rest needs {needs}"), HELP)),
        };
        same("Radix_Down of Tier 1", middle.down, self.tors * middle.bundle)?;
        same("Radix_Up of Tier 0", bottom.up, self.aggs * middle.bundle)?;
        if let Some(top) = self.tiers.get(2) {
            let uplinks =
                exact(uplinks * middle.mbps, top.mbps * middle.oversubscribed, "speed below by that of the top")?;
            self.cores = exact(uplinks, top.down, "uplinks by Radix_Down of Tier 2")?;
            let each = exact(middle.up, top.bundle, "Radix_Up of Tier 1 by Bundle of Tier 2")?;
            same("Radix_Down of Tier 2", top.down, self.pods * top.bundle)?;
            same("the number of top switches", self.cores, self.aggs * each)?;
        }
        self.fits()?;
        Ok(self)
    }

    /// Refuses what is larger than any fabric here, before its graph is written.
    fn fits(&self) -> Result<(), (String, &'static str)> {
        let all = |each: u64| self.pods.saturating_mul(each);
        let bundles = |switches: u64, links: u64, tier: usize| {
            switches.saturating_mul(links).saturating_mul(self.tiers.get(tier).map_or(0, |tier| tier.bundle))
        };
        let (roots, aggs) = (all(self.tors), all(self.aggs));
        let nodes = self.nodes.saturating_add(roots).saturating_add(aggs).saturating_add(self.cores);
        let links = self.nodes.saturating_add(bundles(roots, self.aggs, 1));
        let links = links.saturating_add(if self.cores > 0 { bundles(aggs, self.tiers[1].up, 2) } else { 0 });
        let ports = self.tiers.iter().map(|tier| tier.down.saturating_add(tier.up)).max().unwrap_or(0);
        let limits = [
            (nodes, MAX_NODES, "nodes"),
            (links, MAX_LINKS, "links"),
            (ports, MAX_PORTS, "ports at one switch"),
            (nodes.saturating_mul(roots), MAX_ROUTES, "entries of routing tables"),
        ];
        match limits.into_iter().find(|(count, most, _)| count > most) {
            Some((count, most, what)) => {
                Err((format!("it describes {count} {what}, and {most} is the most"), "give a smaller topology"))
            }
            None => Ok(()),
        }
    }

    /// The tree of switches with as many ports each that htsim makes of so many hosts, if it does.
    pub(super) fn regular(nodes: u64, count: u64, link: Tier) -> Result<Tree, (String, &'static str)> {
        let three = count == 3;
        let hosts = |k: u64| if three { k * k * k / 4 } else { k * k / 2 };
        let Some(k) = (1..=512u64).map(|half| 2 * half).find(|&k| hosts(k) == nodes) else {
            let formula = if three { "k³/4" } else { "k²/2" };
            let message = format!("{nodes} nodes are not a fat tree of k-port switches, which has {formula}");
            return Err((message, "give the topology, too"));
        };
        let tier = |down: u64, up: u64| Tier { down, up, oversubscribed: 1, bundle: 1, ..link };
        let (half, none) = (k / 2, BTreeSet::new());
        let (tors, pods, cores) = if three { (half, k, half * half) } else { (k, 1, 0) };
        let mut tiers = vec![tier(half, half), tier(tors, if three { half } else { 0 })];
        tiers.extend(three.then(|| tier(k, 0)));
        let tree = Tree { nodes, tors, aggs: half, pods, cores, tiers, queues: false, missing: none, slow: 0 };
        tree.fits()?;
        Ok(tree)
    }

    /// Takes away a link between an aggregation and a core switch.
    pub(super) fn fail(&mut self, agg: u64, link: u64) -> Result<(), (String, String)> {
        let Some(top) = self.tiers.get(2) else {
            return Err(("with two tiers no link fails".into(), "give a topology of three tiers".into()));
        };
        let (aggs, links) = (self.aggs * self.pods, self.tiers[1].up / top.bundle);
        if agg >= aggs {
            return Err((format!("there is no aggregation switch {agg}"), format!("they are 0 to {}", aggs - 1)));
        }
        if link >= links {
            return Err((format!("there is no link {link} upwards"), format!("they are 0 to {}", links - 1)));
        }
        self.missing.insert((agg, agg % self.aggs + self.aggs * link));
        Ok(())
    }

    /// How many links a packet takes between two hosts at the most.
    pub(super) fn diameter(&self) -> u64 {
        2 * self.tiers.len() as u64
    }

    /// What these links and the switches between them take of time, in picoseconds.
    pub(super) fn latency(&self) -> u64 {
        let links: u64 = self.tiers.iter().map(|tier| 2 * tier.latency).sum();
        links + (self.diameter() - 1) * self.tiers[0].switch_latency
    }

    /// Names of switches, with how many ports each has.
    pub(super) fn ports(&self) -> Vec<(&'static str, u64)> {
        let top = self.tiers.get(2);
        let middle = self.tors * self.tiers[1].bundle + top.map_or(0, |_| self.tiers[1].up);
        let mut all = vec![("tor*", self.tiers[0].down + self.aggs * self.tiers[1].bundle), ("agg*", middle)];
        all.extend(top.map(|top| ("core*", self.pods * top.bundle)));
        all
    }

    /// Hosts for each link at the top.
    pub(super) fn oversubscription(&self) -> u64 {
        let below = &self.tiers[..self.tiers.len() - 1];
        below.iter().map(|tier| tier.oversubscribed).product()
    }

    /// Two tiers, as a shape that scenarios have.
    pub(super) fn leaf_spine(&self) -> String {
        let [bottom, middle] = [self.tiers[0], self.tiers[1]];
        format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = {}\nhosts_per_leaf = {}\nspines = {}\nlinks_per_pair = {}\n\
             host_rate = \"{}\"\nhost_delay = \"{}\"\nuplink_rate = \"{}\"\nuplink_delay = \"{}\"\n",
            self.tors,
            bottom.down,
            self.aggs,
            middle.bundle,
            bottom.rate(),
            bottom.delay(),
            middle.rate(),
            middle.delay()
        )
    }

    /// As a graph.
    pub(super) fn graph(&self) -> String {
        let mut out = String::new();
        let mut node = |name: String, kind: &str, tier: u8| {
            let _ = writeln!(out, "[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\ntier = {tier}\n");
        };
        (0..self.nodes).for_each(|host| node(format!("h{host}"), "host", 0));
        (0..self.tors * self.pods).for_each(|tor| node(format!("tor{tor}"), "switch", 1));
        (0..self.aggs * self.pods).for_each(|agg| node(format!("agg{agg}"), "switch", 2));
        (0..self.cores).for_each(|core| node(format!("core{core}"), "switch", 3));
        let two = self.tiers.len() == 2;
        let mut link = |a: &str, b: &str, tier: &Tier, slow: bool, count: u64| {
            let slowed = Tier { mbps: tier.mbps / SLOWER, ..*tier };
            let (rate, delay) = (if slow && two { slowed.rate() } else { tier.rate() }, tier.delay());
            let part = 1.0 / SLOWER as f64;
            let own = match (slow, two) {
                (false, _) => String::new(),
                (true, true) => format!("queues = {part:?}\n"),
                (true, false) => format!("rate_back = \"{}\"\nqueues_back = {part:?}\n", slowed.rate()),
            };
            for _ in 0..count {
                let _ = writeln!(
                    out,
                    "[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"{rate}\"\n{own}delay = \"{delay}\"\n"
                );
            }
        };
        let [bottom, middle] = [&self.tiers[0], &self.tiers[1]];
        (0..self.nodes).for_each(|host| {
            link(&format!("h{host}"), &format!("tor{}", host / bottom.down), bottom, false, 1);
        });
        for tor in 0..self.tors * self.pods {
            let first = tor / self.tors * self.aggs;
            for agg in first..first + self.aggs {
                link(&format!("tor{tor}"), &format!("agg{agg}"), middle, two && agg < self.slow, middle.bundle);
            }
        }
        let Some(top) = self.tiers.get(2) else { return out };
        for agg in 0..self.aggs * self.pods {
            for up in 0..middle.up / top.bundle {
                // Switches in the same place of their pods share their tops.
                let core = agg % self.aggs + self.aggs * up;
                let count = top.bundle - self.missing.contains(&(agg, core)) as u64;
                let slow = up + agg * self.aggs < self.slow;
                link(&format!("agg{agg}"), &format!("core{core}"), top, slow, count);
            }
        }
        out
    }
}

impl Tier {
    /// One of links like this.
    pub(super) fn of(mbps: u64, latency: u64, switch_latency: u64) -> Tier {
        Tier { mbps, latency, switch_latency, ..Tier::default() }
    }

    fn rate(&self) -> String {
        match self.mbps.is_multiple_of(1000) {
            true => format!("{}Gbps", self.mbps / 1000),
            false => format!("{}Mbps", self.mbps),
        }
    }

    fn delay(&self) -> String {
        in_ns(self.latency)
    }
}

/// Picoseconds as a time of a scenario.
pub(super) fn in_ns(ps: u64) -> String {
    match ps.is_multiple_of(1000) {
        true => format!("{}ns", ps / 1000),
        false => format!("{ps}ps"),
    }
}
