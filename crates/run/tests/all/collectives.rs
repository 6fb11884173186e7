//! When collectives are done, computed by hand.

use scenario::Scenario;
use scenario::resolve::resolve;
use std::path::Path;

fn run(text: &str) -> run::Finished {
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]);
    let resolved = scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
    run::run(resolved, &mut |_, _| true)
}

const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 8\n[scheme]\npreset = \"pfc\"\n";

#[test]
fn a_ring_takes_its_steps_one_after_the_other() {
    // Two hosts and 2 KB: a kilobyte each way at once, and then another, each as if it were alone, but that the ACK of the first goes out
    // before the second: 66 bytes at 100 Gbps. Background traffic goes on for longer.
    let text = format!(
        "{STAR}[[collective]]\nkind = \"ring-all-reduce\"\nhosts = [\"h0\", \"h1\"]\nsize = \"2KB\"\nrounds = 3\ngap = \"7us\"\nstart = \"1us\"\n\
         [[flow]]\nsrc = \"h4\"\ndst = \"h5\"\nsize = \"3MB\"\n"
    );
    let finished = run(&text);
    let alone = finished.outcome.flows.iter().map(|flow| flow.spec.ideal).min().unwrap().0;
    let round = 2 * alone + 5_280;
    let [ring] = finished.summary.collectives.as_slice() else { panic!("one collective") };
    assert_eq!((ring.kind, ring.hosts, ring.steps, ring.rounds, ring.finished), ("ring-all-reduce", 2, 2, 3, 3));
    let spread = &ring.completion_ps;
    assert_eq!((spread.mean, spread.max), (Some(round as f64), Some(round as f64)));
    assert_eq!(ring.total_ps, Some(3 * round + 2 * 7_000_000));
    assert!(finished.summary.end_ps > 2 * ring.total_ps.unwrap(), "the end of the run says nothing about it");

    let tables = finished.tables();
    let (_, columns) = tables.iter().find(|(name, _)| *name == "collectives.parquet").expect("a table of collectives");
    let bytes = results::tables::encode(columns);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.parquet"), bytes).unwrap();
    let table = results::tables::read(&folder.path().join("a.parquet")).unwrap();
    assert_eq!(table.rows(), 9, "three rounds and six steps");
    assert_eq!(table.maybe_counts("step").unwrap()[..4], [None, Some(0), Some(1), None]);
    assert_eq!(table.counts("completion_ps").unwrap()[..3], [round, alone, alone + 5_280]);
    assert_eq!(table.counts("start_ps").unwrap()[0], 1_000_000);
}

#[test]
fn a_round_that_is_cut_off_is_not_done() {
    let text = format!(
        "stop = \"20us\"\n{STAR}[[collective]]\nkind = \"all-to-all\"\nsize = \"70KB\"\nrounds = 40\n\
         [[collective]]\nkind = \"halving-doubling-all-reduce\"\nsize = \"1KB\"\nstart = \"3us\"\n"
    );
    let finished = run(&text);
    let [exchange, reduce] = finished.summary.collectives.as_slice() else { panic!("two collectives") };
    assert_eq!(
        (exchange.name.as_str(), exchange.steps, reduce.name.as_str(), reduce.steps),
        ("collective", 1, "collective2", 6)
    );
    assert!(exchange.finished > 0 && exchange.finished < 40 && exchange.total_ps.is_none(), "{exchange:?}");
    assert_eq!((reduce.finished, reduce.total_ps.is_some()), (1, true));
}

/// One collective of 8 hosts on a star: when it was done, and the run.
fn once(keys: &str) -> (u64, run::Finished) {
    of(&format!("[nic]\nqueues = \"destination\"\n[[collective]]\n{keys}"))
}

/// The same with ACKs of a byte, which take next to nothing of what data has.
fn bare(keys: &str) -> (u64, run::Finished) {
    of(&format!("[nic]\nqueues = \"destination\"\nack_size = \"1B\"\n[[collective]]\n{keys}"))
}

fn of(keys: &str) -> (u64, run::Finished) {
    let finished = run(&format!("{STAR}{keys}"));
    let [one] = finished.summary.collectives.as_slice() else { panic!("one collective") };
    let took = one.completion_ps.max.unwrap_or_else(|| panic!("{keys} is not done")) as u64;
    (took, finished)
}

/// What a message of so many bytes takes alone from host to host of the star: links of 100 Gbps and 1 us, packets of 1000 bytes with 62 more.
fn alone(bytes: u64) -> u64 {
    let run = run(&format!("{STAR}[[flow]]\nsrc = \"h0\"\ndst = \"h1\"\nsize = \"{bytes}B\"\n"));
    run.outcome.flows[0].spec.ideal.0
}

/// A packet of 1062 bytes at 100 Gbps.
const PACKET: u64 = 84_960;

#[test]
fn every_collective_takes_what_its_closed_form_says_to_the_packet() {
    // On an idle fabric: steps in a row, each with the latency of a message and the time of its bytes.
    let size = 800_000;
    let ring = |steps: u64| steps * alone(size / 8);
    // Halves, quarters, eighths and back.
    let halving = 2 * (alone(size / 2) + alone(size / 4) + alone(size / 8));
    // A pipeline of 10 chunks: the last leaves the first host when all before it have, and has 7 links to go.
    let chunk = alone(size / 10);
    let broadcast = 7 * chunk + 9 * (size / 10 / 1000 * PACKET);
    for (keys, expected, steps) in [
        ("kind = \"ring-all-reduce\"", ring(14), 14),
        ("kind = \"reduce-scatter\"", ring(7), 7),
        ("kind = \"all-gather\"", ring(7), 7),
        ("kind = \"halving-doubling-all-reduce\"", halving, 6),
        ("kind = \"hierarchical-all-reduce\"\ndomain = 4", 6 * alone(size / 4) + 2 * alone(size / 8), 8),
        ("kind = \"broadcast\"\nchunks = 10", broadcast, 7),
        ("kind = \"broadcast\"", 7 * alone(size), 7),
        ("kind = \"pipeline\"", 14 * alone(size), 14),
    ] {
        let (took, finished) = bare(&format!("{keys}\nsize = \"{size}B\"\n"));
        assert_eq!(finished.summary.collectives[0].steps, steps, "{keys}");
        assert!(
            took >= expected && took <= expected + steps * PACKET,
            "{keys}: {took} ps, and {expected} in closed form"
        );
        let latency = 3_000_000;
        let (slower, _) = bare(&format!("{keys}\nsize = \"{size}B\"\nlatency = \"3us\"\n"));
        let more = (steps - 1) * latency;
        assert!(slower.abs_diff(took + more) <= steps * PACKET, "{keys}: {slower} ps with 3 us a step");
    }
    // All at once: every link carries all of it, in 7 messages to the packet.
    let (took, _) = bare(&format!("kind = \"all-to-all\"\nsize = \"{}B\"\n", 7 * 100_000));
    assert!(took.abs_diff(alone(7 * 100_000)) <= 7 * 8 * PACKET, "{took}");
}

#[test]
fn a_double_tree_is_done_in_twice_its_height_and_its_links_time() {
    // 100 chunks: the pipeline is full most of the time. Each host sends twice the data at the most, so that this is what bounds it; two trees of
    // height 3 add their chunks' ways up and down.
    let size = 8_000_000;
    let (took, finished) = once(&format!("kind = \"tree-all-reduce\"\nchunks = 100\nsize = \"{size}B\"\n"));
    let wire = 2 * size / 1000 * PACKET;
    assert!(took > wire && took < wire + wire / 4, "{took} {wire}");
    assert_eq!(finished.summary.collectives[0].steps, 6);
    // A packet in each tree, where nothing but latency counts: three levels up and three down, and at every level a packet may find one of the
    // other child, or of the other tree, before it.
    let (took, _) = bare("kind = \"tree-all-reduce\"\nsize = \"2KB\"\n");
    let steps = 6 * alone(1000);
    assert!(took >= steps && took <= steps + 6 * PACKET, "{took} {steps}");
}

#[test]
fn links_carry_what_the_algorithm_moves_and_nothing_else() {
    for keys in [
        "kind = \"ring-all-reduce\"",
        "kind = \"ring-all-reduce\"\nchannels = 2\nchunks = 4\nslots = 2",
        "kind = \"halving-doubling-all-reduce\"",
        "kind = \"tree-all-reduce\"\nchunks = 5",
        "kind = \"hierarchical-all-reduce\"\ndomain = 2",
        "kind = \"reduce-scatter\"",
        "kind = \"all-gather\"",
        "kind = \"all-to-all\"\nskew = 1.2",
        "kind = \"broadcast\"\nchunks = 3",
        "kind = \"pipeline\"\nprotocol = \"ll\"",
    ] {
        let (_, finished) = once(&format!("{keys}\nsize = \"96KB\"\n"));
        let graph =
            fabric::topology::Shape::build(&fabric::topology::star::Star { hosts: 8, ..Default::default() }).unwrap();
        let map = fabric::routing::PortMap::new(&graph);
        let packets = |bytes: u64| bytes.div_ceil(1000);
        for host in graph.hosts() {
            let port = map.of(host.0).start as usize;
            let sent: u64 = (finished.outcome.flows.iter())
                .map(|flow| match (flow.spec.src == host, flow.spec.dst == host) {
                    (true, _) => flow.spec.size + 62 * packets(flow.spec.size),
                    (_, true) => 66 * packets(flow.spec.size),
                    _ => 0,
                })
                .sum();
            assert_eq!(finished.outcome.sent[port], sent, "{keys}: {host}");
        }
    }
}

#[test]
fn the_links_above_carry_what_the_algorithm_sends_across() {
    // Two racks of four, in the order of ranks, and one spine. Bytes of message that cross from the first rack to the second, and back; those of
    // a host are (n - 1)/n of the size, or twice that, for all that go round a ring.
    let size = 56_000u64;
    let across = |forth: u64, back: u64| [forth, back];
    for (keys, expected) in [
        ("kind = \"ring-all-reduce\"", across(2 * size * 7 / 8, 2 * size * 7 / 8)),
        ("kind = \"reduce-scatter\"", across(size * 7 / 8, size * 7 / 8)),
        ("kind = \"all-gather\"", across(size * 7 / 8, size * 7 / 8)),
        // Only the halves go to a rank of the other rack, and come back from there.
        ("kind = \"halving-doubling-all-reduce\"", across(4 * size, 4 * size)),
        // A quarter of the data a rank, summed up by two.
        ("kind = \"hierarchical-all-reduce\"\ndomain = 4", across(size, size)),
        // Each of four sends to four of the seven others.
        ("kind = \"all-to-all\"", across(4 * size * 4 / 7, 4 * size * 4 / 7)),
        ("kind = \"broadcast\"", across(size, 0)),
        ("kind = \"broadcast\"\nchunks = 4", across(size, 0)),
        ("kind = \"pipeline\"", across(size, size)),
    ] {
        let finished = run(&format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 4\nspines = 1\n[scheme]\npreset = \"pfc\"\n[nic]\nqueues = \"destination\"\npayload = \"1000B\"\n\
             [[collective]]\nsize = \"{size}B\"\n{keys}\n"
        ));
        let sent = |rack: std::ops::Range<u32>| -> u64 {
            let flows = finished.outcome.flows.iter().filter(|flow| rack.contains(&flow.spec.src.0));
            flows.filter(|flow| !rack.contains(&flow.spec.dst.0)).map(|flow| flow.spec.size).sum()
        };
        assert_eq!([sent(0..4), sent(4..8)], expected, "{keys}");
        // On the wire, with headers, and with the ACKs of what came the other way.
        let shape =
            fabric::topology::leaf_spine::LeafSpine { leaves: 2, hosts_per_leaf: 4, spines: 1, ..Default::default() };
        let graph = fabric::topology::Shape::build(&shape).unwrap();
        let map = fabric::routing::PortMap::new(&graph);
        let packets = |from: usize| -> u64 {
            let racks = (from as u32, 1 - from as u32);
            let flows = finished.outcome.flows.iter();
            let crossing = flows.filter(|flow| (flow.spec.src.0 / 4, flow.spec.dst.0 / 4) == racks);
            crossing.map(|flow| flow.spec.size.div_ceil(1000)).sum()
        };
        for (leaf, volume) in expected.iter().enumerate() {
            let uplink = map.of(8 + leaf as u32).end as usize - 1;
            let wire = volume + 62 * packets(leaf) + 66 * packets(1 - leaf);
            assert_eq!(finished.outcome.sent[uplink], wire, "{keys}: leaf{leaf}");
        }
    }
}

#[test]
fn bandwidths_are_those_of_nccls_tests() {
    let (took, finished) = once("kind = \"ring-all-reduce\"\nsize = \"8MB\"\n");
    let one = &finished.summary.collectives[0];
    let algorithm = 8e6 * 8e12 / took as f64;
    assert!((one.algorithm_bps.unwrap() - algorithm).abs() < 1.0);
    assert!((one.bus_bps.unwrap() - algorithm * 14.0 / 8.0).abs() < 1.0);
    // Of 100 Gbps, headers take 4.6 % and the latency of 14 steps a part.
    assert!((85e9..96e9).contains(&one.bus_bps.unwrap()), "{one:?}");
    let (took, finished) = once("kind = \"all-to-all\"\nsize = \"7MB\"\n");
    let bus = finished.summary.collectives[0].bus_bps.unwrap();
    assert!((bus - 7e6 * 8e12 / took as f64).abs() < 1.0);
}

#[test]
fn ranks_are_in_the_order_in_which_hosts_are_written() {
    let text =
        format!("{STAR}[[collective]]\nkind = \"broadcast\"\nhosts = [\"h3\", \"h0\", \"h5..h6\"]\nsize = \"1KB\"\n");
    let finished = run(&text);
    let pairs: Vec<(u32, u32)> = finished.outcome.flows.iter().map(|flow| (flow.spec.src.0, flow.spec.dst.0)).collect();
    assert_eq!(pairs, [(3, 0), (0, 5), (5, 6)]);
}

#[test]
fn what_does_not_go_together_is_refused_with_its_remedy() {
    for (keys, words) in [
        ("kind = \"hierarchical-all-reduce\"", "domain"),
        ("kind = \"hierarchical-all-reduce\"\ndomain = 3", "8 hosts are no whole number of domains of 3"),
        ("kind = \"ring-all-reduce\"\ndomain = 2", "ring-all-reduce has no domains"),
        ("kind = \"ring-all-reduce\"\nskew = 1.0", "sends the same to all"),
        ("kind = \"broadcast\"\nchunks = 4\nslots = 4", "a slot for each of 4 chunks"),
        ("kind = \"broadcast\"\nhosts = [\"h0\", \"h1\", \"h0\"]", "a host is there twice"),
    ] {
        let text = format!("{STAR}[[collective]]\nsize = \"1MB\"\n{keys}\n");
        let problem = Scenario::parse("a.toml", &text, Path::new("/nowhere"), &[]).map(drop).unwrap_err().to_string();
        assert!(problem.contains(words), "{keys}: {problem}");
    }
}
