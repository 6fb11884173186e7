//! Switches with a host on each, and flows between the hosts.

/// The fabric, as a graph file.
pub fn graph(switches: u32, links: &[(u32, u32)]) -> String {
    let mut text = String::new();
    for (kind, letter) in [("host", 'h'), ("switch", 's')] {
        (0..switches).for_each(|i| text += &format!("[[node]]\nname = \"{letter}{i}\"\nkind = \"{kind}\"\n"));
    }
    let mut link = |a: String, b: String| {
        text += &format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"100Gbps\"\ndelay = \"1us\"\n");
    };
    (0..switches).for_each(|i| link(format!("h{i}"), format!("s{i}")));
    links.iter().for_each(|(a, b)| link(format!("s{a}"), format!("s{b}")));
    text
}

/// The links of a ring of switches.
pub fn ring(switches: u32) -> Vec<(u32, u32)> {
    (0..switches).map(|i| (i, (i + 1) % switches)).collect()
}

/// A flow from one host to another.
pub fn flow(src: u32, dst: u32, size: &str) -> String {
    format!("[[flow]]\nsrc = \"h{src}\"\ndst = \"h{dst}\"\nsize = \"{size}\"\n")
}

/// Every host sends to the one two places on.
pub fn around(hosts: u32, size: &str) -> String {
    (0..hosts).map(|i| flow(i, (i + 2) % hosts, size)).collect()
}
