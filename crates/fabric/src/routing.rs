//! Shortest paths, and the choice among equal ones by a hash of the flow.
//!
//! Hosts that hang on the same switch by one link share a row of the tables (a *group*), and equal lists of
//! next hops are kept once per switch, so that the tables of an 8192-host fat-tree stay small enough for a cache.

use crate::id::NodeId;
use crate::topology::{Graph, Kind};
use engine::{Rate, Time};
use std::collections::HashMap;

/// How a node chooses among equally short paths, where no [`LoadBalancer`](crate::axes::LoadBalancer) does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// By a hash of the flow: all its packets take the same path.
    ByFlow,
    /// Each packet for itself.
    ByPacket,
    /// By the number of the destination, so that all that goes to a host comes down the same path.
    ByDestination,
}

/// Which ports exist and how they are numbered: those of node 0 in link order, then node 1's, …
#[derive(Clone, Debug)]
pub struct PortMap {
    /// The first port of each node, and at the end the number of ports.
    pub base: Vec<u32>,
    /// The node of each port.
    pub node: Vec<u32>,
    /// The port at the other end of the link.
    pub peer: Vec<u32>,
    /// The link of each port.
    pub link: Vec<u32>,
}

impl PortMap {
    /// Numbers the ports of a graph.
    pub fn new(graph: &Graph) -> PortMap {
        let mut base = vec![0u32; graph.nodes.len() + 1];
        for link in &graph.links {
            base[link.a.index() + 1] += 1;
            base[link.b.index() + 1] += 1;
        }
        for node in 0..graph.nodes.len() {
            base[node + 1] += base[node];
        }
        let total = graph.links.len() * 2;
        let mut map = PortMap { node: vec![0; total], peer: vec![0; total], link: vec![0; total], base };
        let mut next = map.base.clone();
        for (number, link) in graph.links.iter().enumerate() {
            let (a, b) = (next[link.a.index()], next[link.b.index()]);
            next[link.a.index()] += 1;
            next[link.b.index()] += 1;
            for (port, node, peer) in [(a, link.a, b), (b, link.b, a)] {
                map.node[port as usize] = node.0;
                map.peer[port as usize] = peer;
                map.link[port as usize] = number as u32;
            }
        }
        map
    }

    /// The rate at which a port sends.
    pub fn rate(&self, graph: &Graph, port: u32) -> Rate {
        graph.links[self.link[port as usize] as usize].rate(NodeId(self.node[port as usize]))
    }

    /// The ports of a node.
    pub fn of(&self, node: u32) -> std::ops::Range<u32> {
        self.base[node as usize]..self.base[node as usize + 1]
    }
    /// The number of ports.
    pub fn count(&self) -> usize {
        self.node.len()
    }
}

/// A list of next hops: where it starts among all ports, and in the low byte how long it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Entry(u32);

/// The most equal next hops that are kept.
const MAX_PATHS: usize = 255;

impl Entry {
    fn new(start: usize, len: usize) -> Entry {
        debug_assert!(start < 1 << 24 && len <= MAX_PATHS);
        Entry((start as u32) << 8 | len as u32)
    }
    #[inline]
    fn range(self) -> std::ops::Range<usize> {
        let start = (self.0 >> 8) as usize;
        start..start + (self.0 & 0xff) as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct Destination {
    group: u32,
    /// The switch on which a host with a single link hangs, and its port there, if the link is up.
    home: u32,
    port: u32,
}

/// Where the entries of a node are: one for each group, or one for all but its own.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// The first, or [`NOWHERE`] for a node that never chooses.
    start: u32,
    /// Which bits of a group's number count.
    mask: u32,
}

/// Next hops from every node towards every host, for one state of the links.
#[derive(Clone, Debug)]
pub struct Routing {
    destinations: Vec<Destination>,
    /// By node.
    rows: Vec<Row>,
    entries: Vec<Entry>,
    ports: Vec<u32>,
    /// The only port of a host with one.
    only: Vec<u32>,
    /// By tier: how many paths up a packet has had to choose from below it, all choices together.
    spans: Vec<u32>,
    /// By node.
    tiers: Vec<u8>,
}

const NOWHERE: u32 = u32::MAX;

impl Routing {
    /// Shortest paths by number of links, over the links that are up. Hosts forward only in a graph that says so.
    ///
    /// Equal next hops are listed in the order a breadth-first search from the destination finds them,
    /// neighbours taken from the highest node number down, or up if the graph says so.
    pub fn new(graph: &Graph, map: &PortMap, up: &[bool]) -> Routing {
        let nodes = graph.nodes.len();
        let mut destinations = vec![Destination { group: NOWHERE, home: NOWHERE, port: NOWHERE }; nodes];
        let mut roots: Vec<u32> = Vec::new();
        let mut group_of_switch: HashMap<u32, u32> = HashMap::new();
        for host in graph.hosts() {
            let ports = map.of(host.0);
            let peer = map.peer[ports.start.min(map.count() as u32 - 1) as usize];
            let switch = map.node[peer as usize];
            let single = ports.len() == 1 && graph.nodes[switch as usize].kind == Kind::Switch;
            let mut new_group = |root| {
                roots.push(root);
                roots.len() as u32 - 1
            };
            let d = &mut destinations[host.index()];
            if single {
                d.group = *group_of_switch.entry(switch).or_insert_with(|| new_group(switch));
                d.home = switch;
                if up[map.link[peer as usize] as usize] {
                    d.port = peer;
                }
            } else {
                d.group = new_group(host.0);
            }
        }
        let groups = roots.len() as u32;
        // A host with one link has no choice to look up.
        let mut rows = vec![Row { start: NOWHERE, mask: u32::MAX }; nodes];
        let chooses = |n: &usize| graph.nodes[*n].kind == Kind::Switch || map.of(*n as u32).len() != 1;
        let choosers: Vec<usize> = (0..nodes).filter(chooses).collect();
        (0..).zip(&choosers).for_each(|(i, &n)| rows[n].start = i * groups);
        // Nothing passes a host with one link, and hosts are most of the nodes.
        let mut neighbours = sorted_neighbours(graph, map);
        for ports in &mut neighbours {
            ports.retain(|&port| rows[map.node[map.peer[port as usize] as usize] as usize].start != NOWHERE);
        }
        let entries = vec![Entry::default(); choosers.len() * groups as usize];
        let only: Vec<u32> =
            (0..nodes).map(|n| if rows[n].start == NOWHERE { map.of(n as u32).start } else { NOWHERE }).collect();
        let tiers = graph.nodes.iter().map(|node| node.tier).collect();
        let mut routing = Routing { destinations, rows, entries, ports: Vec::new(), only, spans: spans(graph), tiers };
        let mut known: HashMap<Vec<u32>, Entry> = HashMap::new();
        // Most nodes send what is for the next group by the paths for the one before: that costs a comparison and no hash.
        let mut before: Vec<Entry> = vec![Entry::default(); nodes];
        let mut lists: Vec<Vec<u32>> = vec![Vec::new(); nodes];
        let mut distance = vec![u32::MAX; nodes];
        let mut order = Vec::with_capacity(nodes);
        for (group, &root) in roots.iter().enumerate() {
            distance.fill(u32::MAX);
            order.clear();
            order.push(root);
            distance[root as usize] = 0;
            let mut at = 0;
            while at < order.len() {
                let now = order[at];
                at += 1;
                let next_distance = distance[now as usize] + 1;
                for &port in &neighbours[now as usize] {
                    if !up[map.link[port as usize] as usize] {
                        continue;
                    }
                    let back = map.peer[port as usize];
                    let next = map.node[back as usize];
                    if distance[next as usize] == u32::MAX {
                        distance[next as usize] = next_distance;
                        if graph.forwards(NodeId(next), map.of(next).len()) {
                            order.push(next);
                        }
                    }
                    if distance[next as usize] == next_distance {
                        lists[next as usize].push(back);
                    }
                }
            }
            for &node in &choosers {
                let list = &mut lists[node];
                if list.is_empty() {
                    continue;
                }
                list.truncate(MAX_PATHS);
                if routing.ports[before[node].range()] != **list {
                    before[node] = known.get(list.as_slice()).copied().unwrap_or_else(|| {
                        let entry = Entry::new(routing.ports.len(), list.len());
                        routing.ports.extend_from_slice(list);
                        known.insert(list.clone(), entry);
                        entry
                    });
                }
                list.clear();
                routing.entries[routing.rows[node].start as usize + group] = before[node];
            }
        }
        routing.pack(&roots);
        routing
    }

    /// Keeps one entry of a node that sends everything for elsewhere by the same paths, as the switches of the first tier do: theirs
    /// are most of the table, and it is looked up for every packet.
    fn pack(&mut self, roots: &[u32]) {
        let whole = std::mem::take(&mut self.entries);
        for (node, row) in (0..).zip(&mut self.rows).filter(|(_, row)| row.start != NOWHERE) {
            let entries = &whole[row.start as usize..row.start as usize + roots.len()];
            row.start = self.entries.len() as u32;
            let mut elsewhere = entries.iter().zip(roots).filter(|(_, root)| **root != node).map(|(entry, _)| *entry);
            match elsewhere.next() {
                Some(first) if elsewhere.all(|entry| entry == first) => {
                    row.mask = 0;
                    self.entries.push(first);
                }
                _ => self.entries.extend_from_slice(entries),
            }
        }
    }

    /// The switch that a host with a single link hangs on.
    pub fn home(&self, host: u32) -> Option<u32> {
        let home = self.destinations[host as usize].home;
        (home != NOWHERE && home != host).then_some(home)
    }

    /// The ports of `node` that lie on a shortest path to `host`; empty where there is none.
    #[inline(always)]
    pub fn next_hops(&self, node: u32, host: u32) -> &[u32] {
        let d = &self.destinations[host as usize];
        if d.home == node {
            return if d.port == NOWHERE { &[] } else { std::slice::from_ref(&d.port) };
        }
        let row = self.rows[node as usize];
        if row.start == NOWHERE {
            return std::slice::from_ref(&self.only[node as usize]);
        }
        &self.ports[self.entries[(row.start + (d.group & row.mask)) as usize].range()]
    }

    /// The port of `node` on its path to `host` for a packet with these addresses, sent at `sent`. With [`Rule::ByFlow`] and
    /// [`Rule::ByPacket`] it depends on `seed`.
    ///
    /// D-mod-K takes the digits of the destination's number one by one: with w paths up from every switch of the first tier, a
    /// switch of that tier takes path d mod w, one of the second ⌊d / w⌋ mod its own number of paths, and so on. So what goes
    /// to a host comes down one path, and the hosts of a switch are spread evenly over the paths down to it.
    #[inline(always)]
    pub fn choose(&self, node: u32, host: u32, rule: Rule, seed: u32, tuple: &Tuple, sent: Time) -> Option<u32> {
        let d = &self.destinations[host as usize];
        if d.home == node {
            return (d.port != NOWHERE).then_some(d.port);
        }
        let row = self.rows[node as usize];
        if row.start == NOWHERE {
            return self.only.get(node as usize).copied();
        }
        let paths = self.entries[(row.start + (d.group & row.mask)) as usize].range();
        let count = paths.len() as u32;
        let place = match rule {
            _ if count == 1 => 0,
            _ if count == 0 => return None,
            Rule::ByFlow => tuple.hash(seed) % count,
            Rule::ByPacket => sprayed(tuple, seed, sent, count),
            // Paths are listed from the highest neighbour down.
            Rule::ByDestination => count - 1 - host / self.spans[self.tiers[node as usize] as usize] % count,
        };
        self.ports.get(paths.start + place as usize).copied()
    }
}

/// The place among `count` paths of a packet that finds its own: packets whose `sent` counts up from one to the next take all paths in
/// turn, and begin each round with another.
#[inline]
fn sprayed(tuple: &Tuple, seed: u32, sent: Time, count: u32) -> u32 {
    let (round, turn) = (sent.0 / count as u64, (sent.0 % count as u64) as u32);
    let first = tuple.hash(seed ^ (round as u32).wrapping_mul(0x9e37_79b1)) % count;
    (first + turn) % count
}

/// By tier of switches: the product of the numbers of paths up of all tiers of switches below.
fn spans(graph: &Graph) -> Vec<u32> {
    let tiers = graph.nodes.iter().map(|node| node.tier as usize + 1).max().unwrap_or(0);
    let mut up = vec![0u32; graph.nodes.len()];
    for link in &graph.links {
        let (a, b) = (&graph[link.a], &graph[link.b]);
        if a.tier != b.tier {
            up[if a.tier < b.tier { link.a } else { link.b }.index()] += 1;
        }
    }
    let mut width = vec![1u32; tiers];
    for (node, up) in graph.nodes.iter().zip(up).filter(|(node, _)| node.kind == Kind::Switch) {
        width[node.tier as usize] = width[node.tier as usize].max(up);
    }
    let below = |span: &mut u32, width: u32| {
        let here = *span;
        *span = span.saturating_mul(width);
        Some(here)
    };
    width.into_iter().scan(1, below).collect()
}

/// Each node's ports, the neighbour with the highest number first; parallel links in link order.
fn sorted_neighbours(graph: &Graph, map: &PortMap) -> Vec<Vec<u32>> {
    (0..graph.nodes.len() as u32)
        .map(|node| {
            let mut ports: Vec<u32> = map.of(node).collect();
            let neighbour = |port: u32| map.node[map.peer[port as usize] as usize];
            ports.sort_by_key(|&p| if graph.ascending { (neighbour(p), p) } else { (u32::MAX - neighbour(p), p) });
            ports
        })
        .collect()
}

/// What a switch hashes to choose among equal paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuple {
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub destination: u32,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

impl Tuple {
    /// The tuple of packets that go in the opposite direction.
    pub fn reversed(self) -> Tuple {
        Tuple {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
        }
    }

    /// MurmurHash3 (x86, 32 bit) of the twelve bytes, seeded per switch so that the choices of consecutive
    /// switches are unrelated.
    #[inline]
    pub fn hash(self, seed: u32) -> u32 {
        let words = [self.source, self.destination, self.source_port as u32 | (self.destination_port as u32) << 16];
        let mut h = seed;
        for word in words {
            let k = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
            h = (h ^ k).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
        }
        h ^= 12;
        h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
        h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
        h ^ (h >> 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Rate;

    fn leaf_spine(leaves: u32, hosts: u32, spines: u32) -> Graph {
        let mut g = Graph::default();
        (0..leaves * hosts).for_each(|i| _ = g.add(Kind::Host, 0, format!("h{i}")));
        (0..leaves).for_each(|i| _ = g.add(Kind::Switch, 1, format!("leaf{i}")));
        (0..spines).for_each(|i| _ = g.add(Kind::Switch, 2, format!("spine{i}")));
        let (rate, delay) = (Rate::from_gbps(100), Time::from_us(1));
        (0..leaves * hosts).for_each(|i| g.connect(NodeId(i), NodeId(leaves * hosts + i / hosts), rate, delay));
        for leaf in 0..leaves {
            (0..spines).for_each(|s| {
                g.connect(NodeId(leaves * hosts + leaf), NodeId(leaves * hosts + leaves + s), rate, delay)
            });
        }
        g
    }

    #[test]
    fn next_hops_are_the_spines_from_the_highest_down() {
        let g = leaf_spine(2, 2, 3);
        let map = PortMap::new(&g);
        let routing = Routing::new(&g, &map, &vec![true; g.links.len()]);
        let to = |node, host| -> Vec<u32> {
            let hops = routing.next_hops(node, host).iter();
            hops.map(|&p| map.node[map.peer[p as usize] as usize]).collect()
        };
        assert_eq!(to(4, 2), [8, 7, 6]);
        assert_eq!(to(4, 1), [1]);
        assert_eq!(to(7, 3), [5]);
        assert_eq!(to(0, 3), [4]);
    }

    #[test]
    fn d_mod_k_spreads_the_hosts_of_a_switch_over_all_paths_down_and_gives_each_host_one() {
        use crate::topology::{Shape, fat_tree};
        // 128 hosts, 4 on each of 32 edge switches; 4 paths up from these, and 4 from each of the next tier.
        let g = fat_tree::FatTree { k: 8, ..Default::default() }.build().unwrap();
        let map = PortMap::new(&g);
        let routing = Routing::new(&g, &map, &vec![true; g.links.len()]);
        let mut by_core: HashMap<u32, std::collections::BTreeSet<u32>> = HashMap::new();
        for (from, to) in (0..128).flat_map(|from| (0..128).map(move |to| (from, to))).filter(|(a, b)| a / 16 != b / 16)
        {
            let tuple = Tuple { source: from, destination: to, source_port: 1, destination_port: 2 };
            let (mut node, mut path) = (from, vec![]);
            while node != to {
                let port = routing.choose(node, to, Rule::ByDestination, node, &tuple, Time::ZERO).unwrap();
                node = map.node[map.peer[port as usize] as usize];
                path.push(node);
            }
            // Up to the second tier, to a core switch, and down.
            assert_eq!(path.len(), 6);
            by_core.entry(to).or_default().insert(path[2]);
        }
        assert!(by_core.values().all(|cores| cores.len() == 1));
        // Sixteen cores, and of each pod's sixteen hosts one behind each of them.
        let cores = |pod: u32| (0..16).map(|h| *by_core[&(pod * 16 + h)].first().unwrap()).collect::<Vec<_>>();
        for pod in 0..8 {
            let mut all = cores(pod);
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 16);
        }
        // On a leaf-spine fabric: the spine of the host's number.
        let g = leaf_spine(2, 8, 4);
        let map = PortMap::new(&g);
        let routing = Routing::new(&g, &map, &vec![true; g.links.len()]);
        for to in 8..16 {
            let port = routing.choose(16, to, Rule::ByDestination, 16, &Tuple::default(), Time::ZERO).unwrap();
            assert_eq!(map.node[map.peer[port as usize] as usize], 18 + to % 4);
        }
    }

    #[test]
    fn a_link_that_is_down_carries_nothing() {
        let g = leaf_spine(2, 1, 2);
        let map = PortMap::new(&g);
        let mut up = vec![true; g.links.len()];
        up[2] = false; // leaf 2 – spine 4
        let routing = Routing::new(&g, &map, &up);
        assert_eq!(routing.next_hops(2, 1).len(), 1);
        up[1] = false; // host 1's own link
        let routing = Routing::new(&g, &map, &up);
        assert!(routing.next_hops(3, 1).is_empty());
    }

    #[test]
    fn sprayed_packets_take_every_way_once_in_each_round() {
        let tuple = Tuple { source: 1, destination: 2, source_port: 3, destination_port: 4 };
        for count in [2, 3, 8, 31] {
            let paths: Vec<u32> = (100..100 + count).collect();
            let path = |sent: u64| paths[sprayed(&tuple, 7, Time(sent), paths.len() as u32) as usize];
            let mut beginnings = std::collections::HashSet::new();
            for round in 0..100 {
                let mut taken: Vec<u32> = (0..count as u64).map(|turn| path(round * count as u64 + turn)).collect();
                beginnings.insert(taken[0]);
                taken.sort_unstable();
                assert_eq!(taken, paths);
            }
            assert!(beginnings.len() > paths.len() / 2, "{count} paths, {} beginnings", beginnings.len());
        }
        // Packets sent at a steady pace are spread, too, whatever the pace has in common with the number of paths.
        let paths: Vec<u32> = (0..8).collect();
        let mut taken = [0; 8];
        (0..8000).for_each(|packet| {
            let sent = Time(packet * 84_960);
            taken[paths[sprayed(&tuple, 7, sent, paths.len() as u32) as usize] as usize] += 1;
        });
        assert!(taken.iter().all(|taken| (850..1150).contains(taken)), "{taken:?}");
    }

    #[test]
    fn the_hash_is_murmur3() {
        // Values of an independent implementation (the mmh3 package) for the same bytes.
        let tuple = Tuple { source: 1, destination: 2, source_port: 3, destination_port: 4 };
        assert_eq!((tuple.hash(0), tuple.hash(64)), (0xcaa0_d353, 0x96c3_6a7c));
        assert_ne!(tuple.hash(0), tuple.hash(1));
        assert_ne!(tuple.hash(0), tuple.reversed().hash(0));
    }
}
