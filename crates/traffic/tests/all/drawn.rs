//! What is drawn is what was described: loads, sizes, gaps, patterns, incasts.
//!
//! Seeds are fixed, so a test passes or fails for good; tolerances are several standard errors, so that another seed would do.

use engine::{Raw, Stream, Time};
use fabric::id::{ClassId, NodeId};
use fabric::topology::Graph;
use proptest::prelude::*;
use std::collections::BTreeSet;
use traffic::incast::Volume;
use traffic::load::{Extent, Pattern, Process, Timing};
use traffic::sizes::PUBLISHED;
use traffic::{Arrivals, FlowRequest, Incast, Load, Long, MAX_FLOWS, Names, Origin, Places, Sizes};

fn graph(shape: &str, parameters: &[(&str, i64)]) -> Graph {
    let mut shape = fabric::topology::shape(shape).unwrap();
    for (name, value) in parameters {
        shape.set(name, &Raw::Integer(*value)).unwrap().unwrap();
    }
    shape.build().unwrap()
}

/// Four racks of eight hosts, and two links out of each.
fn leaf_spine() -> Graph {
    graph("leaf-spine", &[("leaves", 4), ("hosts_per_leaf", 8), ("spines", 2)])
}

fn origin(seed: u64) -> Origin {
    Origin { seed, number: 0, group: 0, class: ClassId(0) }
}

/// All-to-all messages at `load` of all hosts' links.
fn load(places: &Places<'_>, sizes: Sizes, load: f64, arrivals: Arrivals, process: Process, time: Time) -> Load {
    let hosts = places.hosts().to_vec();
    let bytes_per_second = load * places.rate_of(&hosts) / 8.0;
    let timing = Timing::Offered { bytes_per_second, arrivals, process, extent: Extent::Lasting(time) };
    let (from, to) = (hosts.clone(), hosts);
    Load { sizes, timing, start: Time::ZERO, from, to, pattern: Pattern::AllToAll, inter_site: None }
}

fn bytes(flows: &[FlowRequest]) -> f64 {
    flows.iter().map(|flow| flow.size as f64).sum()
}

#[test]
fn the_load_of_a_long_window_is_within_one_percent() {
    // Of N messages the bytes have a relative variance of (c² + v²)/N, where c² is the squared coefficient of variation of
    // the gaps and v² that of the sizes (5.4 for websearch). One percent is then 3.9 standard errors with a million
    // Poisson arrivals (c² = 1), and 3.2 with six million lognormal ones of σ = 2 (c² = 54). Those come from many seeds.
    let graph = leaf_spine();
    let places = Places::new(&graph);
    let sizes = Sizes::published("websearch").unwrap();
    let cases = [
        (Arrivals::Poisson, Process::Host, 2),
        (Arrivals::Poisson, Process::Network, 2),
        (Arrivals::Fixed, Process::Host, 2),
        (Arrivals::Lognormal(1.0), Process::Host, 2),
        (Arrivals::Lognormal(2.0), Process::Host, 12),
        (Arrivals::Lognormal(2.0), Process::Network, 12),
    ];
    for (arrivals, process, seeds) in cases {
        let time = Time::from_ms(4_280); // half a million messages
        let load = load(&places, sizes.clone(), 0.5, arrivals, process, time);
        let drawn: f64 = (0..seeds).map(|seed| bytes(&load.generate(origin(seed), &places, MAX_FLOWS).unwrap())).sum();
        let asked = seeds as f64 * time.secs_f64() * 0.5 * 32.0 * 100e9 / 8.0;
        assert!((drawn / asked - 1.0).abs() < 0.01, "{arrivals:?}, {process:?}: {}", drawn / asked);
    }
}

#[test]
fn every_sender_offers_in_proportion_to_its_link() {
    let mut graph = graph("star", &[("hosts", 4)]);
    graph.links[3].rates.iter_mut().for_each(|rate| rate.0 *= 3);
    let places = Places::new(&graph);
    for process in [Process::Host, Process::Network] {
        let load = load(&places, Sizes::fixed(10_000).unwrap(), 0.5, Arrivals::Poisson, process, Time::from_ms(100));
        let flows = load.generate(origin(1), &places, MAX_FLOWS).unwrap();
        for (host, share) in [(0, 1.0 / 6.0), (1, 1.0 / 6.0), (2, 1.0 / 6.0), (3, 0.5)] {
            let found = flows.iter().filter(|flow| flow.src == NodeId(host)).count() as f64 / flows.len() as f64;
            assert!((found - share).abs() < 0.005, "host {host}, {process:?}: {found} of {}", flows.len());
        }
    }
}

/// The greatest difference between what was drawn and its distribution, times the root of how many there are. For a
/// continuous distribution it is above 1.95 once in a thousand times; for a discrete one less often.
fn kolmogorov_smirnov(mut drawn: Vec<u64>, cdf: impl Fn(u64) -> f64) -> f64 {
    drawn.sort_unstable();
    let count = drawn.len() as f64;
    let groups = drawn.chunk_by(|a, b| a == b);
    let mut below = 0.0;
    let mut most: f64 = 0.0;
    for group in groups {
        // Just below the value, and at it.
        let before = group[0].checked_sub(1).map_or(0.0, &cdf);
        most = most.max((below / count - before).abs());
        below += group.len() as f64;
        most = most.max((below / count - cdf(group[0])).abs());
    }
    most * count.sqrt()
}

#[test]
fn sizes_pass_a_kolmogorov_smirnov_test_against_their_distribution() {
    let graph = leaf_spine();
    let places = Places::new(&graph);
    let mut all: Vec<(String, Sizes)> =
        PUBLISHED.iter().map(|published| (published.name.to_string(), published.sizes().unwrap())).collect();
    all.push(("uniform".into(), Sizes::uniform(1_000, 100_000).unwrap()));
    for (name, sizes) in all {
        let mut load = load(&places, sizes.clone(), 0.5, Arrivals::Poisson, Process::Host, Time::ZERO);
        if let Timing::Offered { extent, .. } = &mut load.timing {
            *extent = Extent::Counted(200_000);
        }
        let flows = load.generate(origin(3), &places, MAX_FLOWS).unwrap();
        assert_eq!(flows.len(), 200_000);
        let drawn: Vec<u64> = flows.iter().map(|flow| flow.size).collect();
        let distance = kolmogorov_smirnov(drawn.clone(), |size| sizes.cdf(size));
        assert!(distance < 1.95, "{name}: {distance}");
        // The test has teeth: two percent off is seen.
        let distance = kolmogorov_smirnov(drawn, |size| sizes.cdf((size as f64 * 0.98) as u64));
        assert!(distance > 1.95, "{name}: {distance}");
    }
}

#[test]
fn the_sigma_of_lognormal_arrivals_can_be_measured_from_the_starts() {
    let graph = leaf_spine();
    let places = Places::new(&graph);
    for sigma in [1.0, 2.0] {
        let arrivals = Arrivals::Lognormal(sigma);
        let load =
            load(&places, Sizes::fixed(1_000_000).unwrap(), 0.5, arrivals, Process::Network, Time::from_ms(1000));
        let flows = load.generate(origin(5), &places, MAX_FLOWS).unwrap();
        assert!(flows.len() > 100_000);
        // Mean gap: 5 us, so that rounding to a picosecond is nothing.
        let logs: Vec<f64> = flows.windows(2).map(|pair| ((pair[1].start - pair[0].start).0 as f64).ln()).collect();
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let found = (logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / count).sqrt();
        assert!((found - sigma).abs() < 4.0 * sigma / (2.0 * count).sqrt(), "σ is {found}, not {sigma}");
        let median = (logs.iter().filter(|log| **log < mean).count() as f64 / count - 0.5).abs();
        assert!(median < 4.0 * 0.5 / count.sqrt(), "lognormal gaps have their mean logarithm in the middle");
    }
}

#[test]
fn everybody_sends_to_everybody_else_alike() {
    let graph = leaf_spine();
    let places = Places::new(&graph);
    let load = load(&places, Sizes::fixed(1_000).unwrap(), 0.5, Arrivals::Poisson, Process::Host, Time::from_ms(2));
    let flows = load.generate(origin(1), &places, MAX_FLOWS).unwrap();
    let mut counts = vec![0.0; 32 * 32];
    flows.iter().for_each(|flow| counts[(flow.src.0 * 32 + flow.dst.0) as usize] += 1.0);
    assert!((0..32).all(|host| counts[host * 33] == 0.0));
    // Chi-squared over 992 pairs has mean 991 and standard deviation 44.5.
    let mean = flows.len() as f64 / 992.0;
    let chi: f64 = (0..32 * 32).filter(|pair| pair % 33 != 0).map(|pair| (counts[pair] - mean).powi(2) / mean).sum();
    assert!((chi - 991.0).abs() < 4.0 * 44.5, "{chi}");
}

#[test]
fn racks_are_kept_or_left_as_the_pattern_says() {
    let graph = leaf_spine();
    let places = Places::new(&graph);
    let share = |pattern| {
        let load = Load {
            pattern,
            ..load(&places, Sizes::fixed(1_000).unwrap(), 0.5, Arrivals::Poisson, Process::Network, Time::from_us(100))
        };
        let flows = load.generate(origin(1), &places, MAX_FLOWS).unwrap();
        assert!(flows.len() > 10_000 && flows.iter().all(|flow| flow.src != flow.dst));
        let inside = flows.iter().filter(|flow| places.rack(flow.src) == places.rack(flow.dst)).count();
        inside as f64 / flows.len() as f64
    };
    assert_eq!((share(Pattern::RackLocal), share(Pattern::InterRack)), (1.0, 0.0));
    // Seven of the 31 others are in the rack.
    assert!((share(Pattern::AllToAll) - 7.0 / 31.0).abs() < 0.02, "{}", share(Pattern::AllToAll));
}

#[test]
fn the_share_between_sites_is_what_was_asked_for() {
    let graph = graph("two-sites", &[("leaves", 2), ("hosts_per_leaf", 4), ("spines", 2)]);
    let places = Places::new(&graph);
    for (pattern, share) in [
        (Pattern::AllToAll, 0.2),
        (Pattern::AllToAll, 0.0),
        (Pattern::AllToAll, 1.0),
        (Pattern::RackLocal, 0.2),
        (Pattern::InterRack, 0.2),
    ] {
        let load = Load {
            pattern,
            inter_site: Some(share),
            ..load(&places, Sizes::fixed(1_000).unwrap(), 0.5, Arrivals::Poisson, Process::Host, Time::from_ms(4))
        };
        let flows = load.generate(origin(1), &places, MAX_FLOWS).unwrap();
        assert!(flows.len() > 30_000);
        let far = |flow: &&FlowRequest| places.site(flow.src) != places.site(flow.dst);
        let found = flows.iter().filter(far).count() as f64 / flows.len() as f64;
        assert!((found - share).abs() < 0.01, "{pattern:?}: {found}");
        for flow in flows.iter().filter(|flow| !far(flow)) {
            let inside = places.rack(flow.src) == places.rack(flow.dst);
            assert!(flow.src != flow.dst);
            assert!(pattern != Pattern::RackLocal || inside);
            assert!(pattern != Pattern::InterRack || !inside);
        }
    }
}

#[test]
fn a_permutation_gives_everybody_one_partner_of_its_own() {
    let graph = leaf_spine();
    let places = Places::new(&graph);
    let partners = |seed, from: &[NodeId], to: &[NodeId]| {
        let load = Load {
            pattern: Pattern::Permutation,
            from: from.to_vec(),
            to: to.to_vec(),
            ..load(&places, Sizes::fixed(1_000).unwrap(), 0.5, Arrivals::Poisson, Process::Host, Time::from_us(20))
        };
        let flows = load.generate(origin(seed), &places, MAX_FLOWS).unwrap();
        let pairs: BTreeSet<(NodeId, NodeId)> = flows.iter().map(|flow| (flow.src, flow.dst)).collect();
        assert_eq!(pairs.len(), from.len(), "one partner each");
        assert_eq!(pairs.iter().map(|pair| pair.1).collect::<BTreeSet<_>>().len(), from.len(), "no partner twice");
        assert!(pairs.iter().all(|(src, dst)| src != dst));
        pairs
    };
    let all = places.hosts();
    let drawn: BTreeSet<_> = (0..20).map(|seed| partners(seed, all, all)).collect();
    assert_eq!(drawn.len(), 20, "each seed draws its own");
    partners(1, &all[..2], &all[..2]);
    partners(1, &all[4..8], &all[6..20]);
    // All nine derangements of four hosts are alike.
    let mut counts = std::collections::BTreeMap::new();
    (0..1800).for_each(|seed| *counts.entry(partners(seed, &all[..4], &all[..4])).or_insert(0) += 1);
    assert_eq!(counts.len(), 9);
    assert!(counts.values().all(|&count: &i32| (count - 200).abs() < 60), "{counts:?}");
}

#[test]
fn so_many_messages_fall_anywhere_in_their_time() {
    let graph = leaf_spine();
    let places = Places::new(&graph);
    let duration = Time::from_ms(2);
    let load = Load {
        timing: Timing::Scattered { flows: 50_000, duration },
        start: Time::from_us(7),
        ..load(&places, Sizes::published("dvl").unwrap(), 0.5, Arrivals::Poisson, Process::Host, duration)
    };
    let flows = load.generate(origin(1), &places, MAX_FLOWS).unwrap();
    assert_eq!(flows.len(), 50_000);
    let since: Vec<u64> = flows.iter().map(|flow| (flow.start - load.start).0).collect();
    let distance = kolmogorov_smirnov(since, |at| (at as f64 / duration.0 as f64).min(1.0));
    assert!(distance < 1.95, "{distance}");
}

fn incast(places: &Places<'_>) -> Incast {
    Incast {
        degree: 20,
        replacement: false,
        flows_per_sender: 1,
        volume: Volume::Total(20_000_003),
        period: 500e6,
        arrivals: Arrivals::Fixed,
        extent: Extent::Lasting(Time::from_ms(500)),
        start: Time::from_us(3),
        spread: Time::from_us(100),
        from: places.hosts().to_vec(),
        to: places.hosts().to_vec(),
    }
}

#[test]
fn the_senders_of_an_incast_are_different_hosts_that_start_uniformly_within_its_spread() {
    let graph = leaf_spine();
    let places = Places::new(&graph);
    let incast = incast(&places);
    let flows = incast.generate(origin(1), &places, MAX_FLOWS).unwrap();
    assert_eq!(flows.len(), 20_000);
    let mut since = Vec::new();
    let mut receivers = BTreeSet::new();
    for (number, event) in (0u64..).zip(flows.chunks(20)) {
        let begin = incast.start + Time(number * 500_000_000);
        let senders: BTreeSet<NodeId> = event.iter().map(|flow| flow.src).collect();
        assert_eq!(senders.len(), 20);
        assert!(event.iter().all(|flow| flow.dst == event[0].dst && flow.src != flow.dst));
        assert_eq!(event.iter().map(|flow| flow.size).sum::<u64>(), 20_000_003);
        assert!(event.iter().all(|flow| (1_000_000..=1_000_001).contains(&flow.size)));
        assert!(event.iter().all(|flow| flow.start >= begin && flow.start < begin + incast.spread));
        since.extend(event.iter().map(|flow| (flow.start - begin).0));
        receivers.insert(event[0].dst);
    }
    assert_eq!(receivers.len(), 32, "every host receives at some time");
    let distance = kolmogorov_smirnov(since, |at| (at as f64 / incast.spread.0 as f64).min(1.0));
    assert!(distance < 1.95, "{distance}");
    let sent = |host| flows.iter().filter(|flow| flow.src == host).count() as f64;
    // Each sends in 20/32 of 1000 events: 625, with a standard deviation of 15.
    assert!((0..32).all(|host| (sent(NodeId(host)) - 625.0).abs() < 70.0));
}

#[test]
fn more_senders_than_hosts_take_turns() {
    let graph = leaf_spine();
    let places = Places::new(&graph);
    let mut incast = Incast { degree: 800, spread: Time::ZERO, extent: Extent::Counted(1), ..incast(&places) };
    let flows = incast.generate(origin(1), &places, MAX_FLOWS).unwrap();
    assert_eq!((flows.len(), bytes(&flows)), (800, 20_000_003.0));
    let sent = |host| flows.iter().filter(|flow| flow.src == host).count();
    let counts: BTreeSet<usize> = (0..32).map(NodeId).filter(|&host| host != flows[0].dst).map(sent).collect();
    assert_eq!(counts, BTreeSet::from([25, 26]));
    assert!(flows.iter().all(|flow| flow.start == incast.start));
    (incast.degree, incast.flows_per_sender, incast.volume) = (5, 25, Volume::Each(1000));
    let flows = incast.generate(origin(1), &places, MAX_FLOWS).unwrap();
    assert_eq!((flows.len(), incast.bytes()), (125, 125_000));
    assert_eq!(flows.iter().map(|flow| flow.src).collect::<BTreeSet<_>>().len(), 5);
}

#[test]
fn senders_drawn_with_replacement_may_be_one_host_several_times() {
    let graph = leaf_spine();
    let places = Places::new(&graph);
    let incast = Incast { replacement: true, ..incast(&places) };
    let flows = incast.generate(origin(1), &places, MAX_FLOWS).unwrap();
    assert_eq!(flows.len(), 20_000);
    let mut different = 0;
    for event in flows.chunks(20) {
        assert!(event.iter().all(|flow| flow.dst == event[0].dst && flow.src != flow.dst));
        assert_eq!(event.iter().map(|flow| flow.size).sum::<u64>(), 20_000_003);
        different += event.iter().map(|flow| flow.src).collect::<BTreeSet<_>>().len();
    }
    // Of 31 hosts, 31 (1 - (30/31)^20) = 14.9 are expected to send.
    assert!((14.5..15.3).contains(&(different as f64 / 1000.0)), "{different}");
    let sent = |host| flows.iter().filter(|flow| flow.src == host).count() as f64;
    assert!((0..32).all(|host| (sent(NodeId(host)) - 625.0).abs() < 100.0));
}

#[test]
fn incasts_that_come_at_random_come_as_often_as_asked() {
    let graph = leaf_spine();
    let places = Places::new(&graph);
    for arrivals in [Arrivals::Poisson, Arrivals::Lognormal(1.0)] {
        let duration = Time::from_ms(10_000);
        let incast = Incast { arrivals, extent: Extent::Lasting(duration), degree: 2, ..incast(&places) };
        let flows = incast.generate(origin(2), &places, MAX_FLOWS).unwrap();
        // 20000 events; the standard error is 1 % at most.
        let ratio = flows.len() as f64 / 2.0 / 20_000.0;
        assert!((ratio - 1.0).abs() < 0.04, "{arrivals:?}: {ratio}");
    }
}

#[test]
fn long_flows_come_from_different_hosts_and_outlast_their_time() {
    let graph = leaf_spine();
    let places = Places::new(&graph);
    let long = Long {
        to: vec![NodeId(3), NodeId(4), NodeId(5)],
        from: None,
        flows: Some(8),
        start: Time::from_us(1),
        stagger: Time::from_us(2),
        until: Time::from_ms(1),
    };
    let flows = long.generate(origin(1), &places, MAX_FLOWS).unwrap();
    assert_eq!(flows.len(), 24);
    for (place, receiver) in flows.chunks(8).enumerate() {
        assert!(receiver.iter().all(|flow| flow.dst == NodeId(3 + place as u32) && flow.src != flow.dst));
        assert_eq!(receiver.iter().map(|flow| flow.src).collect::<BTreeSet<_>>().len(), 8);
    }
    for (number, flow) in (0..).zip(&flows) {
        assert_eq!((flow.start, flow.until), (Time::from_us(1 + 2 * number), Time::from_ms(1)));
        assert!(flow.size as f64 * 8.0 > 100e9 * (flow.until - flow.start).secs_f64());
    }
    let named = Long { from: Some([3, 7, 8].map(NodeId).to_vec()), flows: None, ..long.clone() };
    let ends: Vec<(NodeId, NodeId)> =
        named.generate(origin(1), &places, MAX_FLOWS).unwrap().iter().map(|flow| (flow.src, flow.dst)).collect();
    let expected = [(7, 3), (8, 3), (3, 4), (7, 4), (8, 4), (3, 5), (7, 5), (8, 5)];
    assert_eq!(ends, expected.map(|(src, dst)| (NodeId(src), NodeId(dst))));
    let late = Long { until: Time::from_us(20), ..long };
    assert_eq!(late.generate(origin(1), &places, MAX_FLOWS).unwrap_err().field, "leave");
}

#[test]
fn a_generator_depends_on_its_seed_and_its_number_and_on_nothing_else() {
    let graph = leaf_spine();
    let places = Places::new(&graph);
    let hadoop = || Sizes::published("hadoop").unwrap();
    for process in [Process::Host, Process::Network] {
        let load = load(&places, hadoop(), 0.5, Arrivals::Lognormal(2.0), process, Time::from_ms(1));
        let draw = |origin| load.generate(origin, &places, MAX_FLOWS).unwrap();
        assert_eq!(draw(origin(1)), draw(origin(1)));
        assert_ne!(draw(origin(1)), draw(origin(2)));
        assert_ne!(draw(origin(1)), draw(Origin { number: 1, ..origin(1) }));
    }
    // A sender's messages do not depend on who else sends.
    let all = load(&places, hadoop(), 0.5, Arrivals::Poisson, Process::Host, Time::from_ms(1));
    let some = load(&places, hadoop(), 0.5 * 4.0 / 32.0, Arrivals::Poisson, Process::Host, Time::from_ms(1));
    let some = Load { from: vec![NodeId(0), NodeId(5), NodeId(9), NodeId(31)], ..some };
    let of_five = |load: &Load| {
        let flows = load.generate(origin(1), &places, MAX_FLOWS).unwrap();
        flows.into_iter().filter(|flow| flow.src == NodeId(5)).collect::<Vec<_>>()
    };
    assert_eq!(of_five(&all), of_five(&some));
    assert!(of_five(&all).len() > 10);
}

#[test]
fn more_than_may_be_is_refused_before_it_is_drawn() {
    let graph = leaf_spine();
    let places = Places::new(&graph);
    let long = Time::from_ms(1_000_000_000);
    let load = load(&places, Sizes::fixed(1).unwrap(), 1.0, Arrivals::Poisson, Process::Host, long);
    let fault = load.generate(origin(1), &places, MAX_FLOWS).unwrap_err();
    assert!(fault.field == "load" && fault.message.contains("more than 50000000 flows"), "{fault:?}");
    let incast = Incast { degree: u32::MAX, flows_per_sender: u32::MAX, volume: Volume::Each(1), ..incast(&places) };
    assert_eq!(incast.generate(origin(1), &places, MAX_FLOWS).unwrap_err().field, "degree");
    let long = Long {
        to: vec![NodeId(0)],
        from: None,
        flows: Some(1 << 40),
        start: Time::ZERO,
        stagger: Time(1),
        until: long,
    };
    assert_eq!(long.generate(origin(1), &places, MAX_FLOWS).unwrap_err().field, "flows");
}

/// Any fabric, and any generator on it, sensible or not.
fn shapes() -> impl Strategy<Value = Graph> {
    prop_oneof![
        (2..9i64).prop_map(|hosts| graph("star", &[("hosts", hosts)])),
        (1..4i64, 1..4i64, 1..3i64)
            .prop_map(|(l, h, s)| graph("leaf-spine", &[("leaves", l), ("hosts_per_leaf", h), ("spines", s)])),
        (1..3i64, 1..4i64, 1..3i64)
            .prop_map(|(l, h, s)| graph("two-sites", &[("leaves", l), ("hosts_per_leaf", h), ("spines", s)])),
        (1..4i64, 1..4i64).prop_map(|(left, right)| graph("dumbbell", &[("left", left), ("right", right)])),
        Just(graph("bcube", &[("n", 2), ("k", 1)])),
    ]
}

fn arrivals() -> impl Strategy<Value = Arrivals> {
    prop_oneof![Just(Arrivals::Poisson), Just(Arrivals::Fixed), (0.1..=5.0f64).prop_map(Arrivals::Lognormal)]
}

fn sizes() -> impl Strategy<Value = Sizes> {
    prop_oneof![
        prop::sample::select(PUBLISHED.to_vec()).prop_map(|published| published.sizes().unwrap()),
        (1..1_000_000_000_000u64).prop_map(|size| Sizes::fixed(size).unwrap()),
        (1..1_000_000u64, 0..1_000_000u64).prop_map(|(least, more)| Sizes::uniform(least, least + more).unwrap()),
    ]
}

/// A set of hosts that is not empty.
fn some(hosts: &[NodeId], mask: u64) -> Vec<NodeId> {
    let chosen: Vec<NodeId> = hosts.iter().copied().filter(|host| mask >> (host.0 % 64) & 1 == 1).collect();
    if chosen.is_empty() { hosts.to_vec() } else { chosen }
}

/// Everything that is drawn can be sent, and begins when it may.
fn sound(graph: &Graph, flows: &[FlowRequest], begin: Time, end: Time) -> Result<(), TestCaseError> {
    let names = Names::new(graph);
    for flow in flows {
        prop_assert_eq!(flow.check(&names, 3), Ok(()), "{:?}", flow);
        prop_assert!(flow.start >= begin && flow.start < end, "{:?}", flow);
        prop_assert_eq!((flow.class, flow.group), (ClassId(2), 7));
    }
    prop_assert!(flows.is_sorted_by_key(|flow| flow.start));
    Ok(())
}

proptest! {
    #[test]
    fn whatever_load_is_drawn_can_be_sent(
        graph in shapes(), arrivals in arrivals(), sizes in sizes(), seed: u64, masks: (u64, u64),
        share in prop_oneof![9 => 0.001..1.5f64, 1 => Just(1e-300)], counted in prop::option::of(1..500u64), scattered: bool, by_host: bool,
        pattern in prop::sample::select(vec![Pattern::AllToAll, Pattern::Permutation, Pattern::RackLocal, Pattern::InterRack]),
        inter_site in prop::option::of(prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64]), start in 0..1_000_000_000u64,
    ) {
        let places = Places::new(&graph);
        let (from, to) = (some(places.hosts(), masks.0), some(places.hosts(), masks.1));
        let duration = Time::from_us(50);
        let extent = counted.map_or(Extent::Lasting(duration), Extent::Counted);
        let process = if by_host { Process::Host } else { Process::Network };
        let bytes_per_second = share * places.rate_of(&from) / 8.0;
        let timing = match scattered {
            true => Timing::Scattered { flows: counted.unwrap_or(20), duration },
            false => Timing::Offered { bytes_per_second, arrivals, process, extent },
        };
        let load = Load { sizes, timing, start: Time(start), from, to, pattern, inter_site };
        let origin = Origin { seed, number: 3, group: 7, class: ClassId(2) };
        match load.generate(origin, &places, 100_000) {
            Ok(flows) => {
                let end = match timing {
                    Timing::Offered { extent: Extent::Counted(count), .. } => {
                        prop_assert_eq!(flows.len() as u64, count);
                        Time::MAX
                    }
                    Timing::Scattered { flows: count, .. } => {
                        prop_assert_eq!(flows.len() as u64, count);
                        Time(start) + duration
                    }
                    _ => Time(start) + duration,
                };
                sound(&graph, &flows, Time(start), end)?;
            }
            Err(fault) => prop_assert!(!fault.message.is_empty() && !fault.help.is_empty()),
        }
    }

    #[test]
    fn whatever_incast_is_drawn_can_be_sent(
        graph in shapes(), arrivals in arrivals(), seed: u64, masks: (u64, u64), degree in 0..40u32, flows_per_sender in 0..4u32,
        each: bool, replacement: bool, bytes in 1..100_000u64, period in prop_oneof![9 => 1e3..1e9f64, 1 => Just(1e40)], count in prop::option::of(1..20u64),
        spread in prop_oneof![4 => Just(0), 4 => 1..1_000_000u64, 1 => Just(u64::MAX)], start in 0..1_000_000_000u64,
    ) {
        let places = Places::new(&graph);
        let (from, to) = (some(places.hosts(), masks.0), some(places.hosts(), masks.1));
        let incast = Incast {
            degree, replacement, flows_per_sender, arrivals, period, from, to, start: Time(start), spread: Time(spread),
            volume: if each { Volume::Each(bytes) } else { Volume::Total(bytes) },
            extent: count.map_or(Extent::Lasting(Time::from_us(50)), Extent::Counted),
        };
        let origin = Origin { seed, number: 3, group: 7, class: ClassId(2) };
        match incast.generate(origin, &places, 100_000) {
            Ok(flows) => {
                let end = if count.is_some() { Time::MAX } else { Time(start) + Time::from_us(50) + Time(spread.max(1)) };
                sound(&graph, &flows, Time(start), end)?;
                let each_event = degree as usize * flows_per_sender as usize;
                prop_assert_eq!(flows.len() % each_event, 0);
                prop_assert!(count.is_none_or(|count| flows.len() == each_event * count as usize));
            }
            Err(fault) => prop_assert!(!fault.message.is_empty() && !fault.help.is_empty()),
        }
    }

    #[test]
    fn whatever_long_flows_are_made_can_be_sent(
        graph in shapes(), seed: u64, masks: (u64, u64), named: bool, flows in prop::option::of(0..30u64),
        start in 0..1_000_000_000u64, stagger in prop_oneof![4 => Just(0), 4 => 1..1_000_000u64, 1 => Just(u64::MAX)], lasting in 0..10_000_000_000_000u64,
    ) {
        let places = Places::new(&graph);
        let (from, to) = (some(places.hosts(), masks.0), some(places.hosts(), masks.1));
        let until = Time(start + lasting);
        let long = Long { to, from: named.then_some(from), flows, start: Time(start), stagger: Time(stagger), until };
        match long.generate(Origin { seed, number: 3, group: 7, class: ClassId(2) }, &places, 100_000) {
            Ok(flows) => sound(&graph, &flows, Time(start), until)?,
            Err(fault) => prop_assert!(!fault.message.is_empty() && !fault.help.is_empty()),
        }
    }

    #[test]
    fn quantile_and_share_are_each_others_inverse(sizes in sizes(), seed: u64) {
        let mut random = Stream::new(seed, 0);
        for _ in 0..100 {
            let quantile = random.uniform();
            let size = sizes.at(quantile);
            prop_assert!((sizes.min()..=sizes.max()).contains(&size));
            prop_assert!(sizes.cdf(size) >= quantile * (1.0 - 1e-12), "{} {}", quantile, size);
            prop_assert!(sizes.cdf(size - 1) <= quantile * (1.0 + 1e-12) + 1e-12, "{} {}", quantile, size);
        }
        prop_assert!(sizes.cdf(sizes.min() - 1) == 0.0 && sizes.cdf(sizes.max()) == 1.0);
        prop_assert!((sizes.bytes_share(sizes.max()) - 1.0).abs() < 1e-9);
    }
}
