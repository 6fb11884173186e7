//! The topology file: nodes, which of them are switches, and links.

use std::collections::{BTreeSet, HashMap};

use engine::units::{Rate, Time};

use super::forks::{Fork, Rates, hpcc};
use super::tokens::{Announced, MAX_DELAY, MAX_RATE, Token, Tokens, Want};
use files::problem::Problem;

/// The most nodes a topology can have: an address of the reference has 16 bits for the node.
pub const MAX_NODES: u32 = 65_536;

/// A topology file.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Which nodes are switches; the others are hosts.
    pub is_switch: Vec<bool>,
    /// The links in the order of the file.
    pub links: Vec<LinkLine>,
    /// The places of those that carry nothing, because a later one joins the same two nodes.
    pub unused: BTreeSet<usize>,
    /// How many hosts a rack has, where the file says so.
    pub hosts_per_rack: Option<u32>,
    /// Switches inside servers, which mark no packets.
    pub nvswitches: BTreeSet<u32>,
}

/// One link of a topology file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkLine {
    /// The node at its first end.
    pub a: u32,
    /// The node at its second end.
    pub b: u32,
    /// Its rate in each direction.
    pub rate: Rate,
    /// Its propagation delay, in whole nanoseconds.
    pub delay: Time,
    /// The probability that it loses a packet; 0 means that the configuration's ERROR_RATE_PER_LINK holds.
    pub error_rate: f64,
    /// Where it stands in the file, counted from 1.
    pub line: usize,
}

impl Topology {
    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.is_switch.len() as u32
    }

    /// Whether `node` exists and is a host.
    pub fn is_host(&self, node: u32) -> bool {
        self.is_switch.get(node as usize) == Some(&false)
    }

    /// The hosts, in ascending order.
    pub fn hosts(&self) -> impl Iterator<Item = u32> {
        (0..self.nodes()).filter(|node| self.is_host(*node))
    }

    /// The link between two nodes. Of several, the last: the reference knows one port per neighbour.
    pub fn link(&self, a: u32, b: u32) -> Option<&LinkLine> {
        self.links.iter().rfind(|link| (link.a, link.b) == (a, b) || (link.a, link.b) == (b, a))
    }

    /// Whether a link, by its place in the file, carries anything: it does not if a later one joins the same two nodes.
    pub fn is_used(&self, number: usize) -> bool {
        !self.unused.contains(&number)
    }

    /// Two hosts with no path of switches between them.
    fn separated(&self) -> Option<(u32, u32)> {
        // Each switch points towards one that stands for all those it can reach.
        let mut leader: Vec<u32> = (0..self.nodes()).collect();
        let mut peers: HashMap<u32, Vec<u32>> = HashMap::new();
        for link in &self.links {
            match (self.is_host(link.a), self.is_host(link.b)) {
                (false, false) => {
                    let (a, b) = (find(&mut leader, link.a), find(&mut leader, link.b));
                    if let Some(slot) = leader.get_mut(a as usize) {
                        *slot = b;
                    }
                }
                (true, true) => {
                    peers.entry(link.a).or_default().push(link.b);
                    peers.entry(link.b).or_default().push(link.a);
                }
                _ => {}
            }
        }
        // The groups of switches that each host is linked to, and the hosts of each group.
        let mut groups: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut members: HashMap<u32, Vec<u32>> = HashMap::new();
        for link in &self.links {
            for (host, switch) in [(link.a, link.b), (link.b, link.a)] {
                if self.is_host(host) && !self.is_host(switch) {
                    let group = find(&mut leader, switch);
                    let of_host = groups.entry(host).or_default();
                    if !of_host.contains(&group) {
                        of_host.push(group);
                        members.entry(group).or_default().push(host);
                    }
                }
            }
        }
        let hosts = self.hosts().count();
        if members.values().any(|members| members.len() == hosts) {
            return None;
        }
        // No group has them all, but a host with several links can stand in several groups.
        let mut reached_from = vec![u32::MAX; self.is_switch.len()];
        for from in self.hosts() {
            let in_groups = groups.get(&from).into_iter().flatten().filter_map(|group| members.get(group)).flatten();
            for to in in_groups.chain(peers.get(&from).into_iter().flatten()).chain([&from]) {
                if let Some(mark) = reached_from.get_mut(*to as usize) {
                    *mark = from;
                }
            }
            let missed = self.hosts().find(|to| reached_from.get(*to as usize) != Some(&from));
            if let Some(to) = missed {
                return Some((from, to));
            }
        }
        None
    }
}

/// The switch that stands for `node`'s group; shortens the path there.
fn find(leader: &mut [u32], mut node: u32) -> u32 {
    loop {
        let next = leader.get(node as usize).copied().unwrap_or(node);
        if next == node {
            return node;
        }
        let after = leader.get(next as usize).copied().unwrap_or(next);
        if let Some(slot) = leader.get_mut(node as usize) {
            *slot = after;
        }
        node = after;
    }
}

/// Reads a topology file of the HPCC authors' simulator: the numbers of nodes, switches and links, the switches' ids, then a line per link with its
/// two nodes, rate, delay and error rate.
///
/// `file` is its name, for problems only. More links than announced are refused.
pub fn parse(file: &str, text: &str) -> Result<Topology, Problem> {
    match parse_as(file, text, &hpcc::FORK)? {
        (_, Some(surplus)) => Err(surplus),
        (topology, None) => Ok(topology),
    }
}

/// As [`parse`] in the form of any of the family, but what the reference passes over is returned beside the topology: what comes after the
/// links announced, and links that carry nothing.
pub fn parse_as(file: &str, text: &str, fork: &Fork) -> Result<(Topology, Option<Problem>), Problem> {
    // What is read out of step fails at some link, which is not where the fault is.
    let out_of_step = || (fork.counts == hpcc::FORK.counts).then(|| out_of_step(file, text)).flatten();
    read_topology(file, text, fork).map_err(|problem| out_of_step().unwrap_or(problem))
}

/// The problem that there are not as many numbers before the first link as the counts and the switches announced take.
fn out_of_step(file: &str, text: &str) -> Option<Problem> {
    const HELP: &str =
        "begin with the numbers of nodes, switches and links, list the switches, then write a line per link";
    let whole = |word: &str| word.parse::<u64>().is_ok();
    let is_link = |token: &Token<'_>| {
        let words = token.line_words();
        // A rate without its unit would pass for a switch.
        token.starts_line && words.len() == 5 && !whole(words[2])
    };
    let mut tokens = Tokens::new(file, text);
    let mut before = Vec::new();
    let link = loop {
        match tokens.next()? {
            token if is_link(&token) => break token,
            token if whole(token.text) => before.push(token),
            // This is part of a link that is wrong in itself.
            _ => return None,
        }
    };
    let [_, switches, _, listed @ ..] = before.as_slice() else {
        let message = "the first link comes before the numbers of nodes, switches and links";
        return Some(link.problem(file, message).help(HELP));
    };
    let announced: u64 = switches.text.parse().ok()?;
    let found = listed.len() as u64;
    let message = format!(
        "line {} announces {announced} switches, and {found} are listed before the first link, on line {}",
        switches.line, link.line
    );
    (announced != found).then(|| switches.problem(file, message).help(HELP))
}

/// What a file counts before it lists the switches.
struct Counts<'a> {
    nodes: Announced<'a>,
    /// With those inside servers, which come first.
    switches: Announced<'a>,
    links: Announced<'a>,
    nvswitches: u64,
    hosts_per_rack: Option<u32>,
}

fn counts<'a>(tokens: &mut Tokens<'a>, fork: &Fork) -> Result<Counts<'a>, Problem> {
    let (mut nodes, mut switches, mut links, mut nvswitches, mut hosts_per_rack) = (None, None, None, 0, None);
    for &what in fork.counts {
        match what {
            "nodes" => nodes = Some(tokens.announced(what, 1)?),
            "switches" => switches = Some(tokens.announced(what, 1)?),
            "links" => links = Some(tokens.announced(what, fork.link_fields)?),
            "NVSwitches" => nvswitches = tokens.announced(what, 1)?.count,
            "hosts per rack" => hosts_per_rack = u32::try_from(tokens.announced(what, 1)?.count).ok(),
            "GPU type" => drop(tokens.next()),
            _ => drop(tokens.announced(what, 1)?),
        }
    }
    let (Some(nodes), Some(mut switches), Some(links)) = (nodes, switches, links) else {
        return Err(tokens.problem_here("the file does not say how many nodes, switches and links there are"));
    };
    switches.count += nvswitches;
    Ok(Counts { nodes, switches, links, nvswitches, hosts_per_rack })
}

fn read_topology(file: &str, text: &str, fork: &Fork) -> Result<(Topology, Option<Problem>), Problem> {
    let mut tokens = Tokens::new(file, text);
    let Counts { nodes, switches, links, nvswitches, hosts_per_rack } = counts(&mut tokens, fork)?;
    let (is_switch, listed) = node_kinds(&mut tokens, &nodes, &switches)?;
    let nvswitches = listed.into_iter().take(nvswitches as usize).collect();
    let mut topology = Topology { is_switch, links: Vec::new(), unused: BTreeSet::new(), hosts_per_rack, nvswitches };
    let last = topology.nodes() - 1;
    let is_node = format!("a node, 0 to {last}");
    let mut pairs: HashMap<(u32, u32), usize> = HashMap::new();
    let mut note = None;
    // The count is not trusted with memory: the list grows with what is there.
    while (topology.links.len() as u64) < links.count {
        let record = match fork.link_fields {
            5 => tokens.record(&links, topology.links.len())?,
            _ => {
                let [a, b, rate, delay] = tokens.record(&links, topology.links.len())?;
                [a, b, rate, delay, delay.reading("0")]
            }
        };
        let link = read_link(&tokens, record, fork.rates, last, &is_node)?;
        let number = topology.links.len();
        if let Some(earlier) = pairs.insert((link.a.min(link.b), link.a.max(link.b)), number) {
            let (a, b, line) = (link.a, link.b, topology.links[earlier].line);
            let message = format!("a second link joins nodes {a} and {b}; the one on line {line} carries nothing");
            note.get_or_insert_with(|| {
                record[0].problem(file, message).help(
                    "the reference knows one port per neighbour, that of the last link; for more, write one link of their joint rate",
                )
            });
            topology.unused.insert(earlier);
        }
        topology.links.push(link);
    }
    let mut linked = vec![false; topology.is_switch.len()];
    for end in topology.links.iter().flat_map(|link| [link.a, link.b]) {
        if let Some(slot) = linked.get_mut(end as usize) {
            *slot = true;
        }
    }
    let surplus = tokens.surplus(&links);
    let lonely = topology.hosts().find(|host| linked.get(*host as usize) != Some(&true));
    if let Some(host) = lonely {
        // Links that are not read are the likely reason.
        let problem = nodes.token.problem(file, format!("host {host} has no link"));
        let help = format!("add a link for it, or announce fewer nodes on line {}", nodes.token.line);
        return Err(surplus.unwrap_or(problem.help(help)));
    }
    if let Some((a, b)) = topology.separated() {
        let problem = Problem::new(file, format!("host {a} cannot reach host {b}: no path of switches joins them"));
        return Err(surplus.unwrap_or(problem.help("hosts do not forward; add a link between their switches")));
    }
    Ok((topology, surplus.or(note)))
}

/// Reads the switches' ids: of each node whether it is one, and the ids in the order of the file.
fn node_kinds(
    tokens: &mut Tokens<'_>,
    nodes: &Announced<'_>,
    switches: &Announced<'_>,
) -> Result<(Vec<bool>, Vec<u32>), Problem> {
    let file = tokens.file();
    if nodes.count == 0 {
        return Err(nodes.token.problem(file, "there are no nodes").help("announce the number of hosts and switches"));
    }
    if nodes.count > u64::from(MAX_NODES) {
        let message = format!("{} nodes are more than the {MAX_NODES} that addresses can tell apart", nodes.count);
        return Err(nodes.token.problem(file, message).help(
            "an address of the reference has 16 bits for the node, and it takes node 65536 for node 0; use fewer nodes",
        ));
    }
    if switches.count >= nodes.count {
        let message = format!("{} switches among {} nodes leave no hosts", switches.count, nodes.count);
        return Err(switches.token.problem(file, message).help("the number of nodes counts hosts and switches"));
    }
    let mut is_switch = vec![false; nodes.count as usize];
    let last = nodes.count - 1;
    let is = format!("a node, 0 to {last}");
    let help = "nodes are numbered from 0; correct the id, or announce more nodes or fewer switches";
    let mut listed: HashMap<u64, usize> = HashMap::new();
    let mut ids = Vec::new();
    while (listed.len() as u64) < switches.count {
        let [token] = tokens.record(switches, listed.len())?;
        let id = tokens.whole(token, Want { what: "switch", is: &is, help }, 0..=last)?;
        if let Some(first) = listed.insert(id, token.line) {
            let message = format!("switch {id} is listed a second time; the first is on line {first}");
            return Err(token.problem(file, message).help("list each switch once, and announce as many as are listed"));
        }
        if let Some(slot) = is_switch.get_mut(id as usize) {
            *slot = true;
        }
        ids.push(id as u32);
    }
    Ok((is_switch, ids))
}

fn read_link(
    tokens: &Tokens<'_>,
    record: [Token<'_>; 5],
    rates: Rates,
    last: u32,
    is_node: &str,
) -> Result<LinkLine, Problem> {
    let file = tokens.file();
    let [a, b, rate, delay, error_rate] = record;
    let line = a.line;
    let help = "a link is two nodes, a rate, a delay and an error rate, such as 0 3 100Gbps 1us 0";
    let node = |token| {
        let want = Want { what: "link end", is: is_node, help };
        tokens.whole(token, want, 0..=u64::from(last)).map(|node| node as u32)
    };
    let (from, to) = (node(a)?, node(b)?);
    if from == to {
        return Err(b.problem(file, format!("the link joins node {from} to itself")).help("name two different nodes"));
    }
    let rate_token = rate;
    let rate = match rates {
        Rates::WithUnit => tokens.rate(rate_token, "rate")?,
        Rates::Plain => {
            let want = Want { what: "rate", is: "a whole number of Gbit/s", help: "write for example 100" };
            Rate::from_gbps(tokens.whole(rate_token, want, 0..=MAX_RATE.0 / 1_000_000_000)?)
        }
    };
    if rate.bps() == 0 {
        return Err(rate_token
            .problem(file, format!("rate {} is zero", rate_token.quoted()))
            .help("write a rate of at least 1bps, such as 100Gbps"));
    }
    let delay_token = delay;
    let delay = match rates {
        Rates::WithUnit => tokens.delay(delay_token, "delay")?,
        Rates::Plain => {
            let want = Want { what: "delay", is: "a whole number of nanoseconds", help: "write for example 1000" };
            Time::from_ns(tokens.whole(delay_token, want, 0..=MAX_DELAY.ns())?)
        }
    };
    if delay.ns() == 0 {
        return Err(delay_token
            .problem(file, format!("delay {} is below 1 ns", delay_token.quoted()))
            .help("the reference keeps whole nanoseconds; write at least 1ns"));
    }
    let want = Want {
        what: "error rate",
        is: "a probability of at least 0 and below 1",
        help: "write 0 for a link without losses",
    };
    let error_rate = tokens.number(error_rate, want, |p| (0.0..1.0).contains(&p))?;
    Ok(LinkLine { a: from, b: to, rate, delay, error_rate, line })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::forks::{floodgate, powertcp, simai};
    use super::super::tokens::fuzz;
    use super::*;
    use proptest::prelude::*;

    /// Hosts 0 to `hosts - 1` around one switch.
    pub(crate) fn star(hosts: u32) -> Topology {
        let mut text = format!("{} 1 {hosts}\n{hosts}\n", hosts + 1);
        for host in 0..hosts {
            text += &format!("{host} {hosts} 100Gbps 0.001ms 0\n");
        }
        parse("topology.txt", &text).unwrap()
    }

    const LEAF_SPINE: &str = "\
7 3 6
4 5 6
0 4 100Gbps 0.001ms 0
1 4 100Gbps 0.001ms 0
2 5 100Gbps 0.001ms 0
3 5 100Gbps 0.001ms 0
4 6 400Gbps 1us 0.000000
5 6 400Gbps 1us 0.25
";

    fn error(text: &str) -> Problem {
        parse("topology.txt", text).unwrap_err()
    }

    fn place(problem: &Problem) -> (usize, usize) {
        (problem.line.unwrap(), problem.column.unwrap())
    }

    #[test]
    fn a_topology_is_read_with_its_rates_and_delays() {
        let topology = parse("topology.txt", LEAF_SPINE).unwrap();
        assert_eq!(topology.is_switch, [false, false, false, false, true, true, true]);
        assert_eq!(topology.hosts().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(topology.links.len(), 6);
        let link =
            LinkLine { a: 5, b: 6, rate: Rate::from_gbps(400), delay: Time::from_us(1), error_rate: 0.25, line: 8 };
        assert_eq!(topology.links[5], link);
        assert_eq!(topology.link(6, 5), Some(&link));
        assert_eq!(topology.link(0, 1), None);
        assert!(topology.is_host(3) && !topology.is_host(4) && !topology.is_host(7));
    }

    #[test]
    fn line_breaks_mean_nothing() {
        let one_line = LEAF_SPINE.replace('\n', " ");
        let (a, b) = (parse("t", LEAF_SPINE).unwrap(), parse("t", &one_line).unwrap());
        assert_eq!(a.is_switch, b.is_switch);
        assert_eq!(a.links.len(), b.links.len());
        let crlf = LEAF_SPINE.replace('\n', "\r\n");
        assert_eq!(parse("t", &crlf).unwrap(), a);
    }

    #[test]
    fn two_hosts_may_share_a_link_without_a_switch() {
        let topology = parse("t", "2 0 1\n\n0 1 100Gbps 1us 0\n").unwrap();
        assert_eq!(topology.hosts().count(), 2);
    }

    #[test]
    fn notes_after_the_links_are_no_problem() {
        let text = format!("{LEAF_SPINE}\nFirst line: nodes, switches, links\nsrc0 dst0 rate delay error_rate\n...\n");
        assert_eq!(parse("t", &text).unwrap().links.len(), 6);
    }

    #[test]
    fn a_file_that_ends_early_says_how_much_it_has() {
        let short = LEAF_SPINE.replace("5 6 400Gbps 1us 0.25\n", "");
        let problem = error(&short);
        assert_eq!(problem.message, "the file ends after 5 of the 6 links that line 1 announces");
        assert_eq!(place(&problem), (7, 17));
        assert_eq!(problem.help.as_deref(), Some("add what is missing, or announce 5 links on line 1"));
        let problem = error(&LEAF_SPINE.replace(" 1us 0.25", ""));
        assert!(problem.message.ends_with("line 1 announces and 3 of the next one's 5 values"), "{problem}");
        assert_eq!(error("7 3 6 4 5").message, "the file ends after 2 of the 3 switches that line 1 announces");
        assert_eq!(error("7 3").message, "the file ends before the number of links");
        let problem = error("");
        assert_eq!(problem.message, "the file ends before the number of nodes");
        assert_eq!(problem.line, None);
        let problem = error(&format!("{short}\nFirst line: nodes, switches, links\n"));
        assert!(problem.message.contains("ends after 5 of the 6 links"), "{problem}");
    }

    #[test]
    fn more_links_than_announced_are_refused() {
        let text = format!("{LEAF_SPINE}0 6 100Gbps 1us 0\n");
        let problem = error(&text);
        assert_eq!(problem.message, "\"0\" comes after the 6 links that line 1 announces");
        assert_eq!(place(&problem), (9, 1));
        let help = "announce 7 links on line 1, or remove what comes after the first 6";
        assert_eq!(problem.help.as_deref(), Some(help));
        assert!(error(&format!("{LEAF_SPINE}0 6\n")).help.as_deref().unwrap().starts_with("correct the number"));
        let (topology, surplus) = parse_as("t", &text, &hpcc::FORK).unwrap();
        assert_eq!((topology.links.len(), surplus.unwrap().line), (6, Some(9)));
    }

    #[test]
    fn links_that_are_not_read_are_named_where_a_host_has_none() {
        let problem = parse_as("t", &LEAF_SPINE.replace("7 3 6", "7 3 5"), &hpcc::FORK).unwrap_err();
        assert_eq!(problem.message, "\"5\" comes after the 5 links that line 1 announces");
        assert!(problem.help.as_deref().unwrap().starts_with("announce 6 links on line 1"), "{problem}");
        let order = "2 5 100Gbps 0.001ms 0\n3 5 100Gbps 0.001ms 0\n4 6 400Gbps 1us 0.000000\n5 6 400Gbps 1us 0.25\n";
        let later = "4 6 400Gbps 1us 0\n5 6 400Gbps 1us 0\n2 5 100Gbps 0.001ms 0\n3 5 100Gbps 0.001ms 0\n";
        let problem =
            parse_as("t", &LEAF_SPINE.replace("7 3 6", "7 3 5").replace(order, later), &hpcc::FORK).unwrap_err();
        assert_eq!(place(&problem), (8, 1));
    }

    #[test]
    fn a_number_of_switches_that_does_not_match_is_refused_where_it_is_announced() {
        for (wrong, count) in [("7 2 6", 2), ("7 4 6", 4), ("7 0 6", 0), ("7 5 6", 5)] {
            let problem = error(&LEAF_SPINE.replace("7 3 6", wrong));
            let expected =
                format!("line 1 announces {count} switches, and 3 are listed before the first link, on line 3");
            assert_eq!(problem.message, expected);
            assert_eq!(place(&problem), (1, 3));
            assert!(problem.help.is_some());
        }
        let problem = error(&LEAF_SPINE.replace("4 5 6\n", ""));
        assert!(problem.message.starts_with("line 1 announces 3 switches, and 0 are listed"), "{problem}");
        // A first link that is wrong in itself is not mistaken for switches.
        for wrong in ["0 4 100Gbs 0.001ms 0", "0 4 100Gbps 0.001ms", "0 4 100Gbps 0.001ms 0 0"] {
            let problem = error(&LEAF_SPINE.replace("0 4 100Gbps 0.001ms 0", wrong));
            assert!(problem.line.is_some_and(|line| (3..=4).contains(&line)), "{problem}");
        }
        // Line breaks still mean nothing.
        let split = LEAF_SPINE.replace("7 3 6\n4 5 6\n", "7\n3 6 4\n5 6\n");
        assert_eq!(parse("t", &split).unwrap().links.len(), 6);
    }

    #[test]
    fn a_file_without_its_counts_is_refused() {
        let problem = error(&LEAF_SPINE.replace("7 3 6\n4 5 6\n", ""));
        assert_eq!(problem.message, "the first link comes before the numbers of nodes, switches and links");
        assert_eq!(place(&problem), (1, 1));
        let problem = error(&LEAF_SPINE.replace("7 3 6\n", ""));
        assert!(problem.message.starts_with("line 1 announces 5 switches, and 0 are listed"), "{problem}");
        assert!(problem.help.as_deref().unwrap().starts_with("begin with the numbers of nodes"), "{problem}");
    }

    #[test]
    fn a_number_of_nodes_that_does_not_match_is_refused() {
        let problem = error(&LEAF_SPINE.replace("7 3 6", "8 3 6"));
        assert_eq!((problem.message.as_str(), place(&problem)), ("host 7 has no link", (1, 1)));
        let problem = error(&LEAF_SPINE.replace("7 3 6", "6 3 6"));
        assert_eq!(problem.message, "switch \"6\" is not a node, 0 to 5");
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        let problem = error("65537 1 1 0");
        assert!(problem.message.starts_with("65537 nodes are more than the 65536"), "{problem}");
        assert!(problem.help.as_deref().unwrap().contains("16 bits"), "{problem}");
        assert_eq!(place(&problem), (1, 1));
        assert_eq!(error("0 0 0").message, "there are no nodes");
        let problem = error("3 3 2\n0 1 2");
        assert_eq!(problem.message, "3 switches among 3 nodes leave no hosts");
        assert_eq!(place(&problem), (1, 3));
        assert!(error("-4 1 3").message.contains("\"-4\" is not the number of nodes"));
        assert!(error("4 1.5 3").message.contains("\"1.5\" is not the number of switches"));
        assert!(error("4 1 99999999999").message.contains("\"99999999999\" is not the number of links"));
        assert!(error("4 1 4294967295 3").message.contains("ends after 0 of the 4294967295 links"));
    }

    #[test]
    fn a_bad_switch_id_is_refused() {
        let problem = error(&LEAF_SPINE.replace("4 5 6\n", "4 5 7\n"));
        assert_eq!(problem.message, "switch \"7\" is not a node, 0 to 6");
        assert_eq!(place(&problem), (2, 5));
        let problem = error(&LEAF_SPINE.replace("4 5 6\n", "4 5 4\n"));
        assert_eq!(problem.message, "switch 4 is listed a second time; the first is on line 2");
        assert_eq!(place(&problem), (2, 5));
    }

    #[test]
    fn a_bad_link_is_refused_at_its_bad_value() {
        let with = |line: &str| error(&LEAF_SPINE.replace("2 5 100Gbps 0.001ms 0", line));
        let case = |line: &str, column: usize, message: &str| {
            let problem = with(line);
            assert!(problem.message.contains(message), "{problem}");
            assert_eq!(place(&problem), (5, column), "{problem}");
            assert!(problem.help.is_some(), "{problem}");
        };
        case("7 5 100Gbps 1us 0", 1, "link end \"7\" is not a node, 0 to 6");
        case("2 -5 100Gbps 1us 0", 3, "link end \"-5\"");
        case("x 5 100Gbps 1us 0", 1, "link end \"x\"");
        case("2 2 100Gbps 1us 0", 3, "joins node 2 to itself");
        case("2 5 0Gbps 1us 0", 5, "rate \"0Gbps\" is zero");
        case("2 5 -1Gbps 1us 0", 5, "rate \"-1Gbps\" is negative");
        case("2 5 fast 1us 0", 5, "rate \"fast\" is not a rate");
        case("2 5 100Gb 1us 0", 5, "has none of the units");
        case("2 5 100Gbps 0us 0", 13, "delay \"0us\" is below 1 ns");
        case("2 5 100Gbps 900ps 0", 13, "is below 1 ns");
        case("2 5 100Gbps soon 0", 13, "is not a time");
        case("2 5 100Gbps 1us 1", 17, "error rate \"1\" is not a probability");
        case("2 5 100Gbps 1us -0.1", 17, "error rate");
        case("2 5 100Gbps 1us nan", 17, "error rate");
    }

    #[test]
    fn of_two_links_between_the_same_nodes_the_last_carries_all_and_a_note_says_so() {
        let text = LEAF_SPINE.replace("7 3 6", "7 3 7") + "5 2 40Gbps 1us 0\n";
        let (topology, note) = parse_as("t", &text, &hpcc::FORK).unwrap();
        let note = note.unwrap();
        assert_eq!(note.message, "a second link joins nodes 5 and 2; the one on line 5 carries nothing");
        assert_eq!(place(&note), (9, 1));
        assert!(note.help.as_deref().unwrap().contains("one port per neighbour"), "{note}");
        assert_eq!((0..7).filter(|&link| topology.is_used(link)).collect::<Vec<_>>(), [0, 1, 3, 4, 5, 6]);
        assert_eq!(topology.link(2, 5).unwrap().rate, Rate::from_gbps(40));
    }

    #[test]
    fn the_forms_of_the_family_are_read() {
        let hpcc = parse("t", "3 1 2\n2\n0 2 100Gbps 600ns 0\n1 2 100Gbps 600ns 0\n").unwrap();
        let forms: [(&Fork, &str); 3] = [
            (&floodgate::FORK, "3 1 2 1 0 2\n2\n0 2 100 600\n1 2 100 600\n"),
            (&powertcp::FORK, "3 1 1 2\n2\n0 2 100000000000.0 600ns 0\n1 2 100000000000.0 600ns 0\n"),
            (&simai::FORK, "3 1 1 0 2 H800\n2\n0 2 100Gbps 600ns 0\n1 2 100Gbps 600ns 0\n"),
        ];
        for (fork, text) in forms {
            let (read, note) = parse_as("t", text, fork).unwrap();
            assert_eq!(read.hosts_per_rack, (*fork == floodgate::FORK).then_some(2));
            assert_eq!(read.nvswitches.contains(&2), *fork == simai::FORK);
            let plain = Topology { hosts_per_rack: None, nvswitches: BTreeSet::new(), ..read };
            assert_eq!((plain, note), (hpcc.clone(), None), "{fork:?}");
            assert!(parse("t", text).is_err(), "{fork:?}");
        }
        let problem = parse_as("t", "3 1 2 1 0 2\n2\n0 2 100Gbps 600\n1 2 100 600\n", &floodgate::FORK).unwrap_err();
        assert_eq!(problem.message, "rate \"100Gbps\" is not a whole number of Gbit/s");
    }

    #[test]
    fn a_host_without_a_link_is_refused() {
        let problem = error("4 1 2\n3\n0 3 1Gbps 1us 0\n2 3 1Gbps 1us 0\n");
        assert_eq!(problem.message, "host 1 has no link");
        assert!(problem.help.is_some());
    }

    #[test]
    fn hosts_that_cannot_reach_each_other_are_refused() {
        let apart = "6 2 4\n4 5\n0 4 1Gbps 1us 0\n1 4 1Gbps 1us 0\n2 5 1Gbps 1us 0\n3 5 1Gbps 1us 0\n";
        let problem = error(apart);
        assert_eq!(problem.message, "host 0 cannot reach host 2: no path of switches joins them");
        assert!(problem.help.as_deref().unwrap().contains("do not forward"), "{problem}");
        // A host with a link to each side does not join them.
        let bridged = apart.replace("6 2 4", "6 2 5") + "1 5 1Gbps 1us 0\n";
        assert_eq!(error(&bridged).message, "host 0 cannot reach host 2: no path of switches joins them");
        // Neither does a host in the middle of a chain.
        let chain = error("3 0 2\n0 1 1Gbps 1us 0\n1 2 1Gbps 1us 0\n");
        assert_eq!(chain.message, "host 0 cannot reach host 2: no path of switches joins them");
    }

    #[test]
    fn hosts_may_reach_each_other_over_different_switches() {
        // Each pair shares a switch, and no switch has them all.
        let text = "6 3 6\n3 4 5\n0 3 1Gbps 1us 0\n1 3 1Gbps 1us 0\n1 4 1Gbps 1us 0\n2 4 1Gbps 1us 0\n\
                    2 5 1Gbps 1us 0\n0 5 1Gbps 1us 0\n";
        assert_eq!(parse("t", text).unwrap().links.len(), 6);
    }

    proptest! {
        #[test]
        fn any_text_is_a_topology_or_a_problem(text in fuzz::any_text()) {
            let _ = parse("t", &text).map_err(|problem| problem.to_string());
        }

        #[test]
        fn any_change_to_a_topology_leaves_one_or_a_problem(text in fuzz::changed(LEAF_SPINE)) {
            let _ = parse("t", &text).map_err(|problem| problem.to_string());
        }
    }
}
