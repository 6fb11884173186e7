//! `tailwater htsim`: the command line of the Ultra Ethernet group's simulator.

use crate::desk::Desk;
use interop::htsim::command::OPTIONS;

const PAIR: &str = "Nodes 16\nConnections 2\n0->13 start 0 size 200000\n13->0 start 2 size 200000\n";

fn desk() -> Desk {
    Desk::with(&[("pair.cm", PAIR)])
}

#[test]
fn all_options_that_are_wrong_are_refused_at_once_by_name() {
    let said = desk().refuses("htsim -tm pair.cm -q x -ecmp 3 -sleek -planes 2 -mtu 60", "-q: PACKETS is \"x\"");
    for place in
        ["-ecmp: there is no such option", "-sleek: is refused", "-planes: \"2\" is refused", "-mtu: BYTES is \"60\""]
    {
        assert!(said.contains(&format!("error: {place}")), "{place}: {said}");
    }
}

#[test]
fn every_option_is_listed_with_what_it_does() {
    let (printed, _) = desk().works("htsim --options");
    for key in OPTIONS {
        assert!(printed.lines().any(|line| line.starts_with(&format!("{} ", key.name))), "{}", key.name);
    }
}

#[test]
fn what_is_wrong_with_both_files_is_told_with_its_lines() {
    let desk = Desk::with(&[("a.cm", "Nodes 16\nConnections 1\n0->1 start 0\n"), ("a.topo", "Nodes 16\nTears 2\n")]);
    let said = desk.refuses("htsim -tm a.cm -topo a.topo", "a.topo:2:1: unknown key");
    assert!(said.contains("error: a.cm:3"), "{said}");
    desk.refuses("htsim -tm none.cm", "none.cm: cannot be read");
}
