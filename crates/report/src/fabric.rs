//! Pictures of a fabric: its nodes and links in their places, with what happened there on top.
//!
//! The wiring alone decides where things are. Where links join neighbouring tiers only (a Clos, a BCube), tiers are rows with the
//! hosts below, and below them the switches that only join the accelerators of a server; planes stand side by side. A torus is a grid, a dragonfly groups on a ring, a slim fly two blocks. Any other graph is drawn as a circle with the hosts outside. What would be too small to read is drawn
//! together: hosts by their switch, switches with their neighbours in the row.

use results::records::Records;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI, TAU};

/// A node of a fabric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// A host; otherwise a switch.
    pub host: bool,
    /// The most bytes it held, if that is known.
    pub peak: Option<f64>,
}

/// One direction of a link over a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// Share of the time for which the receiver held it up.
    pub paused: f64,
    /// Share of its rate that it carried.
    pub used: f64,
}

/// One link of a cycle of waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// The node that waits.
    pub from: u32,
    /// The node it waits for.
    pub to: u32,
    /// What else to say of it.
    pub label: String,
}

/// A fabric, and what is to be seen on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// What it is called in file names.
    pub id: String,
    /// Title.
    pub title: String,
    /// A second, smaller line.
    pub subtitle: String,
    /// What to see in it.
    pub caption: String,
    /// Nodes by number.
    pub nodes: Vec<Node>,
    /// The ends of every link.
    pub links: Vec<(u32, u32)>,
    /// How busy and how held up the links were: the congestion tree.
    pub loads: Vec<Load>,
    /// Links that wait for one another, in order.
    pub cycle: Vec<Wait>,
}

/// The most hosts that are drawn one by one.
pub const MAX_HOSTS: usize = 128;
/// The most switches of a row that are.
pub const MAX_SWITCHES: usize = 64;

/// Nodes that are drawn as one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) host: bool,
    pub(crate) members: Vec<u32>,
    pub(crate) peak: Option<f64>,
}

/// How items stand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Places {
    /// From the hosts up.
    Rows(Vec<Vec<usize>>),
    /// Switches in a circle, each with its hosts.
    Circle(Vec<(usize, Vec<usize>)>),
    /// Switches where their wiring puts them.
    Spots(Vec<Spot>),
}

/// Where a switch stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spot {
    pub(crate) item: usize,
    /// In units of its kind, y down.
    pub(crate) at: (f64, f64),
    /// The direction in which its hosts stand.
    pub(crate) out: f64,
    pub(crate) hosts: Vec<usize>,
}

/// A picture ready to be drawn.
pub(crate) struct Layout {
    pub(crate) items: Vec<Item>,
    /// The item of every node.
    pub(crate) item_of: Vec<usize>,
    pub(crate) places: Places,
}

impl Picture {
    /// A fabric with nothing on it yet.
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Picture {
        Picture { id: id.into(), title: title.into(), ..Default::default() }
    }

    /// The fabric of a run, with what held up what; nothing if it has no links.
    pub fn of_run(run: &Records) -> Option<Picture> {
        let mut picture = Picture::new("fabric", "Where traffic was held up");
        let mut number: HashMap<&str, u32> = HashMap::new();
        for link in &run.links {
            for (name, host) in [(&link.from, link.from_host), (&link.to, link.to_host)] {
                number.entry(name.as_str()).or_insert_with(|| {
                    picture.nodes.push(Node { name: name.clone(), host, peak: None });
                    picture.nodes.len() as u32 - 1
                });
            }
        }
        // Rows come port by port, so that nodes were met in the order of their ports' neighbours: sort them as the run has them.
        let (mut order, mut seen): (Vec<&str>, HashSet<&str>) = (Vec::new(), HashSet::new());
        // A node that sends to nobody, which no run has, comes after all others.
        let senders = run.links.iter().map(|link| link.from.as_str());
        for name in senders.chain(run.links.iter().map(|link| link.to.as_str())) {
            if seen.insert(name) {
                order.push(name);
            }
        }
        let sorted = order.iter().map(|name| picture.nodes[number[name] as usize].clone()).collect();
        picture.nodes = sorted;
        (0..).zip(&order).for_each(|(at, name)| _ = number.insert(name, at));
        let start = run.flows.iter().filter_map(|flow| flow.start_ps).min().unwrap_or(0);
        let span = run.summary["end_ps"].as_u64().unwrap_or(0).saturating_sub(start).max(1) as f64;
        for link in &run.links {
            let (from, to) = (number[link.from.as_str()], number[link.to.as_str()]);
            // Every link has a row for each direction.
            if from < to {
                picture.links.push((from, to));
            }
            let used = link.sent_bytes as f64 * 8e12 / (link.rate_bps.max(1) as f64 * span);
            // A link of which one queue is paused still carries the others.
            let paused = (link.paused_class_ps as f64 / span).min(1.0);
            picture.loads.push(Load { from, to, paused, used: used.min(1.0) });
        }
        for buffer in &run.buffers {
            let peak = buffer.peak_bytes.iter().chain(&buffer.bytes).max();
            if let (Some(&at), Some(&peak)) = (number.get(buffer.switch.as_str()), peak) {
                picture.nodes[at as usize].peak = Some(peak as f64);
            }
        }
        if run.summary["ending"].as_str() == Some("deadlock") {
            let empty = Vec::new();
            for wait in run.summary["waits"].as_array().unwrap_or(&empty) {
                let node = |end: &str| number.get(wait[end].as_str()?).copied();
                if let (Some(from), Some(to)) = (node("from"), node("to")) {
                    let label = wait["queue"].as_u64().map_or(String::new(), |queue| format!("queue {queue}"));
                    picture.cycle.push(Wait { from, to, label });
                }
            }
        }
        picture.subtitle = match picture.cycle.as_slice() {
            [] => "links by share of the time paused, switches by the most they held".into(),
            cycle => format!("the run ended in a deadlock of {} links that wait for one another", cycle.len()),
        };
        picture.caption =
            "Colour is the share of the run for which the receiving end held a direction of a link up, width the \
                           share of its rate that it carried."
                .into();
        (!picture.links.is_empty()).then_some(picture)
    }

    fn neighbours(&self) -> Vec<Vec<u32>> {
        let mut neighbours = vec![Vec::new(); self.nodes.len()];
        for &(a, b) in &self.links {
            neighbours[a as usize].push(b);
            neighbours[b as usize].push(a);
        }
        neighbours
    }

    /// By node: hosts 0, switches by their distance from the hosts. Switches that all connect to hosts, as in a BCube, are told
    /// apart by level: no host has two links to the same.
    fn tiers(&self, neighbours: &[Vec<u32>]) -> Vec<u32> {
        let mut tier: Vec<u32> = self.nodes.iter().map(|node| if node.host { 0 } else { u32::MAX }).collect();
        let mut now: Vec<u32> = (0..self.nodes.len() as u32).filter(|&at| tier[at as usize] == 0).collect();
        for distance in 1.. {
            let mut next = Vec::new();
            for &at in now.iter().flat_map(|&node| &neighbours[node as usize]) {
                if tier[at as usize] == u32::MAX {
                    tier[at as usize] = distance;
                    next.push(at);
                }
            }
            if next.is_empty() {
                break;
            }
            now = next;
        }
        let served =
            |at: usize| !self.nodes[at].host && neighbours[at].iter().all(|&peer| self.nodes[peer as usize].host);
        let shared = |at: usize| self.nodes[at].host && neighbours[at].len() > 1;
        if (0..self.nodes.len()).all(|at| self.nodes[at].host || served(at)) && (0..self.nodes.len()).any(shared) {
            for switch in (0..self.nodes.len()).filter(|&at| !self.nodes[at].host) {
                let met = neighbours[switch].iter().flat_map(|&host| &neighbours[host as usize]);
                let taken: Vec<u32> =
                    met.filter(|&&other| (other as usize) < switch).map(|&o| tier[o as usize]).collect();
                tier[switch] = (1..).find(|level| !taken.contains(level)).unwrap_or(1);
            }
        }
        tier.iter_mut().for_each(|tier| *tier = if *tier == u32::MAX { 1 } else { *tier });
        tier
    }

    /// By node: switches that lead to no other, at hosts that each have one that does. They join the accelerators of a server.
    fn own_to_servers(&self, neighbours: &[Vec<u32>]) -> Vec<bool> {
        let switch = |at: u32| !self.nodes[at as usize].host;
        let leads = |at: u32| switch(at) && neighbours[at as usize].iter().any(|&peer| switch(peer));
        let own = |at: u32| {
            let hosts = &neighbours[at as usize];
            switch(at)
                && !hosts.is_empty()
                && !leads(at)
                && hosts.iter().all(|&host| neighbours[host as usize].iter().any(|&peer| leads(peer)))
        };
        (0..self.nodes.len() as u32).map(own).collect()
    }

    /// By node: the first of the switches that a switch reaches without hosts. Planes share nothing else. It is 0 for hosts, and for switches that lead to no other.
    fn planes(&self, neighbours: &[Vec<u32>]) -> Vec<u32> {
        let mut plane: Vec<u32> = vec![0; self.nodes.len()];
        let mut seen: Vec<bool> = self.nodes.iter().map(|node| node.host).collect();
        for first in 0..self.nodes.len() as u32 {
            let mut queue = if seen[first as usize] { Vec::new() } else { vec![first] };
            let mut all = Vec::new();
            while let Some(at) = queue.pop() {
                if !std::mem::replace(&mut seen[at as usize], true) {
                    all.push(at);
                    queue.extend(neighbours[at as usize].iter().copied().filter(|&peer| !seen[peer as usize]));
                }
            }
            if all.len() > 1 {
                all.iter().for_each(|&at| plane[at as usize] = first + 1);
            }
        }
        plane
    }

    fn item(&self, members: Vec<u32>) -> Item {
        let node = |at: u32| &self.nodes[at as usize];
        let (first, last) = (node(members[0]), node(members[members.len() - 1]));
        let name = match members.len() {
            1 => first.name.clone(),
            count if first.host => format!("{count} hosts"),
            _ => {
                // What both begin with is said once: tor0–7.
                let same = first.name.chars().zip(last.name.chars()).take_while(|(a, b)| a == b && !a.is_ascii_digit());
                let rest: String = last.name.chars().skip(same.count()).collect();
                format!("{}–{rest}", first.name)
            }
        };
        let peak = members.iter().filter_map(|&at| node(at).peak).reduce(f64::max);
        Item { name, host: first.host, members, peak }
    }

    /// By switch of a circle: those that it has links to.
    fn between(&self, circle: &[(usize, Vec<usize>)], items: &[Item], neighbours: &[Vec<u32>]) -> Vec<BTreeSet<usize>> {
        let nodes: Vec<u32> = circle.iter().map(|(switch, _)| items[*switch].members[0]).collect();
        let number: HashMap<u32, usize> = nodes.iter().enumerate().map(|(number, &node)| (node, number)).collect();
        let peers =
            |&node: &u32| neighbours[node as usize].iter().filter_map(|peer| number.get(peer).copied()).collect();
        nodes.iter().map(peers).collect()
    }

    pub(crate) fn layout(&self) -> Layout {
        let neighbours = self.neighbours();
        let tier = self.tiers(&neighbours);
        let top = tier.iter().copied().max().unwrap_or(0);
        let level = |&(a, b): &(u32, u32)| (tier[a as usize], tier[b as usize]);
        // Links within the top row are drawn over it; anywhere else they would cross what is there.
        let fits = |(a, b): (u32, u32)| a.abs_diff(b) == 1 || a == 0 || b == 0 || (a == b && a == top && top > 1);
        let rows = self.links.iter().all(|link| fits(level(link)) && level(link) != (0, 0));

        // Hosts in the order of their server's switch, or of their first.
        let own = self.own_to_servers(&neighbours);
        let home = |host: u32| {
            let mut switches = neighbours[host as usize].iter().copied().filter(|&at| !self.nodes[at as usize].host);
            switches.clone().find(|&at| own[at as usize]).or_else(|| switches.next())
        };
        let mut hosts: Vec<u32> = (0..self.nodes.len() as u32).filter(|&at| self.nodes[at as usize].host).collect();
        hosts.sort_by_key(|&host| (home(host), host));
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let crowded = hosts.len() > MAX_HOSTS;
        for &host in &hosts {
            let single = |at: u32| neighbours[at as usize].len() == 1;
            match groups.last_mut().filter(|group| crowded && single(group[0]) && single(host)) {
                Some(group) if home(group[0]) == home(host) => group.push(host),
                _ => groups.push(vec![host]),
            }
        }
        let mut items = Vec::new();
        let mut item_of = vec![0; self.nodes.len()];
        let mut add = |groups: Vec<Vec<u32>>, most: usize| -> Vec<usize> {
            // Still too many: some of them together, the same number each.
            let each = groups.len().div_ceil(most).max(1);
            let together = groups.chunks(each).map(<[_]>::concat);
            together
                .map(|members| {
                    members.iter().for_each(|&member| item_of[member as usize] = items.len());
                    items.push(self.item(members));
                    items.len() - 1
                })
                .collect()
        };
        let row_of_hosts = add(groups, if crowded { MAX_SWITCHES } else { MAX_HOSTS });
        let of_tier = |at: u32, owned: bool| -> Vec<Vec<u32>> {
            let all = (0..self.nodes.len() as u32).filter(|&node| tier[node as usize] == at);
            all.filter(|&node| own[node as usize] == owned).map(|node| vec![node]).collect()
        };
        let mut all_rows = vec![add(of_tier(1, true), MAX_SWITCHES), row_of_hosts];
        for at in 1..=top {
            all_rows.push(add(of_tier(at, false), MAX_SWITCHES));
        }
        all_rows.retain(|row| !row.is_empty());
        if !rows {
            let switches: Vec<usize> = all_rows.iter().flatten().copied().filter(|&at| !items[at].host).collect();
            let mut circle: Vec<(usize, Vec<usize>)> = switches.iter().map(|&at| (at, Vec::new())).collect();
            for host in (0..items.len()).filter(|&at| items[at].host) {
                let home = home(items[host].members[0]).map_or(0, |switch| item_of[switch as usize]);
                let place = circle.iter().position(|(switch, _)| *switch == home).unwrap_or(0);
                match circle.get_mut(place) {
                    Some((_, hosts)) => hosts.push(host),
                    None => circle.push((host, Vec::new())),
                }
            }
            // In the order of their numbers: that is how a ring is most often written.
            circle.sort_by_key(|(switch, _)| items[*switch].members[0]);
            let single = circle.iter().all(|(switch, _)| !items[*switch].host && items[*switch].members.len() == 1);
            let known = if single { known(&self.between(&circle, &items, &neighbours)) } else { None };
            if let Some(known) = known {
                let spot = |((item, hosts), (at, out))| Spot { item, at, out, hosts };
                let spots = circle.into_iter().zip(known).map(spot).collect();
                return Layout { items, item_of, places: Places::Spots(spots) };
            }
            return Layout { items, item_of, places: Places::Circle(circle) };
        }
        // Each row in the order of what hangs below it, plane by plane.
        let plane = self.planes(&neighbours);
        let mut x = vec![0.0; items.len()];
        for (at, row) in all_rows.iter_mut().enumerate() {
            if at > 0 {
                let mean = |item: usize| {
                    let below = items[item].members.iter().flat_map(|&member| &neighbours[member as usize]);
                    let below: Vec<f64> = below
                        .filter(|&&n| tier[n as usize] < tier[items[item].members[0] as usize])
                        .map(|&n| x[item_of[n as usize]])
                        .collect();
                    below.iter().sum::<f64>() / below.len().max(1) as f64
                };
                let means: BTreeMap<usize, f64> = row.iter().map(|&item| (item, mean(item))).collect();
                let plane = |item: usize| plane[items[item].members[0] as usize];
                row.sort_by(|&a, &b| plane(a).cmp(&plane(b)).then(means[&a].total_cmp(&means[&b])).then(a.cmp(&b)));
            }
            let count = row.len() as f64;
            (0..).zip(row.iter()).for_each(|(place, &item)| x[item] = (f64::from(place) + 0.5) / count);
        }
        Layout { items, item_of, places: Places::Rows(all_rows) }
    }
}

/// Where a switch stands, and in which direction its hosts do.
type Known = Vec<((f64, f64), f64)>;

/// Where the switches of a fabric of known wiring stand, in the order of their numbers. By switch: those that it has links to.
fn known(to: &[BTreeSet<usize>]) -> Option<Known> {
    torus(to).or_else(|| slim_fly(to)).or_else(|| dragonfly(to))
}

/// A grid, and layers of it side by side. Rows are bent, so that the links around the ends are to be seen. A ring is none.
fn torus(to: &[BTreeSet<usize>]) -> Option<Known> {
    let n = to.len();
    let divisors = || (1..=n).rev().filter(|size| n.is_multiple_of(*size));
    let all =
        divisors().flat_map(|x| divisors().filter(move |y| (n / x).is_multiple_of(*y)).map(move |y| [x, y, n / x / y]));
    let grid =
        |sizes: &[usize; 3]| sizes.iter().filter(|&&size| size > 1).count() > 1 && sizes.iter().any(|&size| size > 2);
    let wired = |sizes: &[usize; 3]| {
        to.iter().enumerate().all(|(at, peers)| {
            let (mut stride, mut expected) = (1, BTreeSet::new());
            for &size in sizes.iter() {
                let place = at / stride % size;
                let next = |step: usize| at - place * stride + (place + step) % size * stride;
                expected.extend([1, size - 1].iter().filter(|_| size > 1).map(|&step| next(step)));
                stride *= size;
            }
            *peers == expected
        })
    };
    let [x, y, z] = all.filter(grid).find(wired)?;
    let bulge = |at: usize, size: usize| {
        let last = size as f64 - 1.0;
        if size > 2 { 0.45 * 4.0 * at as f64 * (last - at as f64) / (last * last) } else { 0.0 }
    };
    let place = |at: usize| {
        let (i, j, k) = (at % x, at / x % y, at / x / y);
        let across = i as f64 + bulge(j, y) + k as f64 * (x as f64 + 0.9);
        ((across, (y - 1 - j) as f64 - bulge(i, x) - bulge(k, z)), -FRAC_PI_4)
    };
    Some((0..n).map(place).collect())
}

/// Small rings of `each` switches around `centres`.
fn rings(n: usize, each: usize, radius: f64, centre: impl Fn(usize) -> (f64, f64)) -> Known {
    let place = |at: usize| {
        let angle = TAU * (at % each) as f64 / each as f64 - FRAC_PI_2;
        let (x, y) = centre(at / each);
        ((x + radius * libm::cos(angle), y + radius * libm::sin(angle)), angle)
    };
    (0..n).map(place).collect()
}

/// Groups on a ring: switches of consecutive numbers that are joined each with each, as every two groups are.
fn dragonfly(to: &[BTreeSet<usize>]) -> Option<Known> {
    let n = to.len();
    let fits = |each: &usize| {
        let (each, count) = (*each, n / *each);
        let whole =
            |at: usize| (at / each * each..at / each * each + each).all(|peer| peer == at || to[at].contains(&peer));
        let reached = |group: usize| {
            let out = (group * each..(group + 1) * each).flat_map(|at| &to[at]).map(|peer| peer / each);
            out.collect::<BTreeSet<usize>>().len() == count
        };
        n.is_multiple_of(each) && (0..n).all(whole) && (0..count).all(reached)
    };
    let each = (3..=n / 3).rev().find(fits)?;
    let count = (n / each) as f64;
    let centre = |group: usize| {
        let angle = TAU * group as f64 / count - FRAC_PI_2;
        (libm::cos(angle), libm::sin(angle))
    };
    Some(rings(n, each, 0.45 * libm::sin(PI / count), centre))
}

/// Two blocks of columns: within a block, links do not leave their column.
fn slim_fly(to: &[BTreeSet<usize>]) -> Option<Known> {
    let q = (1..).find(|q| 2 * q * q >= to.len()).filter(|q| *q > 3 && 2 * q * q == to.len())?;
    let half = |at: usize| at / (q * q);
    let fits = |at: usize, peer: usize| at / q == peer / q || half(at) != half(peer);
    let all = to.iter().enumerate().all(|(at, peers)| peers.len() > q && peers.iter().all(|&peer| fits(at, peer)));
    let centre = |column: usize| (2.6 * (column / q) as f64, (column % q) as f64);
    all.then(|| rings(to.len(), q, 0.24, centre))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many hosts `h0`, `h1` and so on, and switches with these names.
    fn picture(hosts: u32, switches: &[&str], links: &[(u32, u32)]) -> Picture {
        let mut picture = Picture::new("fabric", "A fabric");
        let node = |name: String, host| Node { name, host, peak: None };
        picture.nodes.extend((0..hosts).map(|host| node(format!("h{host}"), true)));
        picture.nodes.extend(switches.iter().map(|name| node(name.to_string(), false)));
        picture.links.extend(links);
        picture
    }

    /// The names row by row, from below.
    fn rows(picture: &Picture) -> Vec<String> {
        let Layout { items, places: Places::Rows(rows), .. } = picture.layout() else { panic!("it has rows") };
        let names = |row: &Vec<usize>| row.iter().map(|&item| items[item].name.as_str()).collect::<Vec<_>>().join(" ");
        rows.iter().map(names).collect()
    }

    #[test]
    fn servers_stand_below_their_accelerators() {
        let switches = ["rail0", "rail1", "up0", "up1", "spine0"];
        // Two servers of two: h0 and h1, h2 and h3.
        let links = [(0, 4), (1, 5), (2, 4), (3, 5), (0, 6), (1, 6), (2, 7), (3, 7), (4, 8), (5, 8)];
        assert_eq!(rows(&picture(4, &switches, &links)), ["up0 up1", "h0 h1 h2 h3", "rail0 rail1", "spine0"]);
    }

    #[test]
    fn planes_stand_side_by_side() {
        // Two planes of two leaves and two spines; h0 is on the first leaf of each, h1 on the second.
        let switches = ["a0", "a1", "b0", "b1", "as0", "as1", "bs0", "bs1"];
        let leaves = [(0, 2), (1, 3), (0, 4), (1, 5)];
        let spines = [(2, 6), (2, 7), (3, 6), (3, 7), (4, 8), (4, 9), (5, 8), (5, 9)];
        let all = [&leaves[..], &spines[..]].concat();
        assert_eq!(rows(&picture(2, &switches, &all)), ["h0 h1", "a0 a1 b0 b1", "as0 as1 bs0 bs1"]);
    }

    /// Where switches stand that are joined so, each with a host.
    fn spots(switches: u32, links: impl IntoIterator<Item = (u32, u32)>) -> Option<Vec<(f64, f64)>> {
        let names: Vec<String> = (0..switches).map(|at| format!("sw{at}")).collect();
        let mut all: Vec<(u32, u32)> = (0..switches).map(|at| (at, switches + at)).collect();
        all.extend(links.into_iter().map(|(a, b)| (switches + a, switches + b)));
        let picture = picture(switches, &names.iter().map(String::as_str).collect::<Vec<_>>(), &all);
        match picture.layout().places {
            Places::Spots(spots) => {
                assert!(spots.iter().all(|spot| spot.hosts.len() == 1));
                Some(spots.iter().map(|spot| spot.at).collect())
            }
            _ => None,
        }
    }

    #[test]
    fn a_torus_is_a_grid() {
        let links = (0..12).flat_map(|at| [(at, at / 4 * 4 + (at + 1) % 4), (at, (at + 4) % 12)]);
        let at = spots(12, links).unwrap();
        for place in 0..12 {
            assert!(place % 4 == 3 || at[place].0 < at[place + 1].0, "{place} is left of the next");
            assert!(place > 7 || at[place].1 > at[place + 4].1, "{place} is below the next row");
        }
        // A ring stays one.
        assert_eq!(spots(6, (0..6).map(|at| (at, (at + 1) % 6))), None);
    }

    #[test]
    fn a_dragonfly_is_groups_on_a_ring() {
        let within = (0..12).flat_map(|at| (at + 1..at / 3 * 3 + 3).map(move |other| (at, other)));
        // Four groups, and a link between any two.
        let between = [(0, 3), (1, 6), (2, 9), (4, 7), (5, 10), (8, 11)];
        let at = spots(12, within.chain(between)).unwrap();
        let far = |a: usize, b: usize| (at[a].0 - at[b].0).hypot(at[a].1 - at[b].1);
        assert!(far(0, 1) < far(0, 6) / 2.0 && far(0, 2) < far(0, 6) / 2.0);
    }

    #[test]
    fn a_slim_fly_is_two_blocks() {
        let columns =
            |half: u32, step: u32| (0..25).map(move |at| (half * 25 + at, half * 25 + at / 5 * 5 + (at + step) % 5));
        let across = (0..5u32).flat_map(|a| (0..5u32).map(move |b| (a, b)));
        let across = across.flat_map(|(a, b)| (0..5).map(move |at| (a * 5 + at, 25 + b * 5 + (at + 25 - a * b) % 5)));
        let at = spots(50, columns(0, 1).chain(columns(1, 2)).chain(across)).unwrap();
        let most = at[..25].iter().map(|at| at.0).fold(f64::MIN, f64::max);
        assert!(at[25..].iter().all(|at| at.0 > most));
    }
}
