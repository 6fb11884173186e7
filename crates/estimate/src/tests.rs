use super::*;
use crate::max_min::fair_rates;
use proptest::prelude::*;
use scenario::Scenario;
use scenario::resolve::resolve;
use std::path::Path;

fn resolved(text: &str) -> Resolved {
    let scenario =
        Scenario::parse("test.toml", text, Path::new("."), &[]).unwrap_or_else(|problem| panic!("{problem}"));
    resolve(scenario).unwrap_or_else(|problem| panic!("{problem}"))
}

fn refused(text: &str) -> String {
    let scenario =
        Scenario::parse("test.toml", text, Path::new("."), &[]).unwrap_or_else(|problem| panic!("{problem}"));
    resolve(scenario)
        .err()
        .map(|problem| problem.to_string())
        .unwrap_or_else(|| panic!("nothing is wrong with\n{text}"))
}

const METHODS: [&str; 2] = ["links", "max-min"];

/// Flow control that stops nobody, so that nothing needs to be calibrated.
fn plain(method: &str, flows: &str) -> String {
    format!(
        "[topology]\nkind = \"star\"\nhosts = 6\n[scheme]\nflow_control = \"none\"\n\
         [estimate]\nmethod = \"{method}\"\ncalibrate = 0\n{flows}"
    )
}

fn flow(src: u32, dst: u32, size: u64, start: &str) -> String {
    format!("[[flow]]\nsrc = {src}\ndst = {dst}\nsize = \"{size}B\"\nstart = \"{start}\"\n")
}

fn times(text: &str) -> Vec<Time> {
    let resolved = resolved(text);
    let estimate = estimate(&resolved, &mut |_, _| true);
    estimate.outcome.flows.iter().map(|flow| flow.received - flow.start).collect()
}

/// Bytes of a message's packets, over 100 Gbit/s, in picoseconds.
fn on_the_wire(size: u64) -> u64 {
    (size + size.div_ceil(1000) * 62) * 80
}

#[test]
fn a_flow_that_meets_nobody_takes_as_long_as_alone() {
    for method in METHODS {
        for size in [1, 999, 1_000, 1_001, 64_000, 5_000_000] {
            let text = plain(method, &(flow(0, 1, size, "3us") + &flow(2, 3, size, "3us")));
            let ideal = resolved(&text).setup.flows[0].ideal;
            assert_eq!(times(&text), [ideal; 2], "{method}, {size} B");
        }
    }
}

#[test]
fn two_flows_into_one_host_take_twice_their_time_on_the_wire() {
    let size = 1_000_000;
    for method in METHODS {
        let text = plain(method, &(flow(0, 2, size, "0us") + &flow(1, 2, size, "0us")));
        let ideal = resolved(&text).setup.flows[0].ideal.0;
        for time in times(&text) {
            assert!(time.0.abs_diff(ideal + on_the_wire(size)) <= 10, "{method}: {time}");
        }
    }
}

#[test]
fn a_short_flow_beside_a_long_one_takes_half_of_the_link_while_it_lasts() {
    let (long, short) = (10_000_000, 1_000_000);
    let text = plain("links", &(flow(0, 2, long, "0us") + &flow(1, 2, short, "100us")));
    let ideals: Vec<u64> = resolved(&text).setup.flows.iter().map(|flow| flow.ideal.0).collect();
    let taken = times(&text);
    let lost = on_the_wire(short);
    assert!(taken[0].0.abs_diff(ideals[0] + lost) <= 10, "{}", taken[0]);
    assert!(taken[1].0.abs_diff(ideals[1] + lost) <= 10, "{}", taken[1]);
}

#[test]
fn flows_that_wait_begin_when_what_they_wait_for_is_there() {
    let collective = "[[collective]]\nkind = \"ring-all-reduce\"\nsize = \"600KB\"\n";
    let text = plain("max-min", collective);
    let resolved = resolved(&text);
    let flows = estimate(&resolved, &mut |_, _| true).outcome.flows;
    assert!(!resolved.setup.after.is_empty());
    for after in &resolved.setup.after {
        let (first, then) = (&flows[after.first.index()], &flows[after.flow.index()]);
        assert!(then.start >= first.received + after.gap, "{} after {}", after.flow, after.first);
    }
    // In a ring nobody is in anybody's way.
    assert!(flows.iter().all(|flow| flow.received - flow.start == flow.spec.ideal));
}

fn path(ports: &[u32]) -> Vec<(u32, Time)> {
    ports.iter().map(|&port| (port, Time::ZERO)).collect()
}

#[test]
fn rates_are_fair_by_hand() {
    // A on the first link, B on both, C on the second, which carries twice as much.
    let [a, b, c] = [path(&[0]), path(&[0, 1]), path(&[1])];
    assert_eq!(fair_rates(&[1.0, 2.0], &[&a, &b, &c]), [0.5, 0.5, 1.5]);
    // Three on a link of 3, one of which also crosses one of 0.5: the others share what it leaves.
    let [a, b, c] = [path(&[0]), path(&[0]), path(&[0, 1])];
    assert_eq!(fair_rates(&[3.0, 0.5], &[&a, &b, &c]), [1.25, 1.25, 0.5]);
}

proptest! {
    #[test]
    fn no_link_carries_too_much_and_every_flow_is_stopped_by_one_where_none_has_more(
        capacity in prop::collection::vec(1u32..100, 2..8),
        flows in prop::collection::vec(prop::collection::btree_set(0u32..8, 1..4), 1..20),
    ) {
        let capacity: Vec<f64> = capacity.into_iter().map(f64::from).collect();
        let paths: Vec<Vec<(u32, Time)>> = flows
            .iter()
            .map(|links| links.iter().map(|link| (link % capacity.len() as u32, Time::ZERO)).collect())
            .map(|mut links: Vec<_>| { links.sort(); links.dedup(); links })
            .collect();
        let borrowed: Vec<&[(u32, Time)]> = paths.iter().map(Vec::as_slice).collect();
        let rates = fair_rates(&capacity, &borrowed);
        let on = |link: u32| paths.iter().zip(&rates).filter(move |(path, _)| path.iter().any(|(port, _)| *port == link));
        for (link, capacity) in (0..).zip(&capacity) {
            let carried: f64 = on(link).map(|(_, rate)| rate).sum();
            prop_assert!(carried <= capacity * (1.0 + 1e-9), "{carried} on a link of {capacity}");
        }
        for (path, rate) in paths.iter().zip(&rates) {
            let stopped = path.iter().any(|(link, _)| {
                let full = on(*link).map(|(_, rate)| rate).sum::<f64>() >= capacity[*link as usize] * (1.0 - 1e-9);
                full && on(*link).all(|(_, other)| *other <= rate * (1.0 + 1e-9))
            });
            prop_assert!(stopped, "{rate} of {rates:?}");
        }
    }
}

/// Sixty-four hosts with messages at half of what their links carry.
fn loaded(preset: &str, method: &str) -> String {
    format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nhosts_per_leaf = 16\nspines = 8\n[scheme]\npreset = \"{preset}\"\n\
         [[load]]\nsizes = \"fb-hadoop\"\nload = 0.4\nduration = \"1ms\"\n\
         [estimate]\nmethod = \"{method}\"\ncalibrate = 0.3\n"
    )
}

/// The p50 and p99 of slowdown.
fn quantiles(flows: &[FlowRecord]) -> [f64; 2] {
    let mut all: Vec<f64> =
        flows.iter().map(|flow| (flow.received - flow.start).0 as f64 / flow.spec.ideal.0 as f64).collect();
    all.sort_by(f64::total_cmp);
    [0.5, 0.99].map(|q| results::measure::percentile(&all, q))
}

/// Prints the table of docs/estimate.md.
#[test]
fn an_estimate_is_the_same_every_time_and_its_error_is_what_it_says() {
    println!(
        "| preset | method | FCT, median off by (stated) | of all flows | p50 slowdown, exact and estimated | p99 | processor time |\n\
         |---|---|---|---|---|---|---|"
    );
    for preset in ["dcqcn+win", "hpcc", "bfc"] {
        for method in METHODS {
            let resolved = resolved(&loaded(preset, method));
            let begun = std::time::Instant::now();
            let once = estimate(&resolved, &mut |_, _| true);
            let quick = begun.elapsed().as_secs_f64();
            assert_eq!(once.outcome.flows, estimate(&resolved, &mut |_, _| true).outcome.flows, "{preset}, {method}");
            let begun = std::time::Instant::now();
            let exact = resolved.simulate(&mut |_, _| true);
            let slow = begun.elapsed().as_secs_f64();
            let mut off: Vec<f64> = std::iter::zip(&exact.flows, &once.outcome.flows)
                .map(|(exact, ours)| {
                    let taken = |flow: &FlowRecord| (flow.received - flow.start).0 as f64;
                    (taken(ours) / taken(exact) - 1.0).abs()
                })
                .collect();
            off.sort_by(f64::total_cmp);
            let truth = results::measure::percentile(&off, 0.5);
            let fct = &once.about.error.as_ref().unwrap().fct;
            let (stated, (low, high)) = (fct.p50.unwrap(), fct.interval.p50.unwrap());
            let [[p50, p99], [our_p50, our_p99]] = [quantiles(&exact.flows), quantiles(&once.outcome.flows)];
            println!(
                "| {preset} | {method} | {:.1} % ({:.1} to {:.1}) | {:.1} % | {p50:.2}, {our_p50:.2} | {p99:.1}, {our_p99:.1} | {:.2} of the run's |",
                100.0 * stated,
                100.0 * low,
                100.0 * high,
                100.0 * truth,
                quick / slow
            );
            assert!(truth <= 2.0 * stated + 0.05, "{preset}, {method}: {truth} where {stated} is stated");
            let said = once.about.sentence();
            assert!(said.contains("not simulated") && said.contains(method), "{said}");
        }
    }
}

#[test]
fn what_cannot_be_estimated_is_refused_by_name() {
    let said = refused(&loaded("pfc", "links"));
    assert!(said.contains("with pfc and no congestion control nothing but backpressure"), "{said}");
    let base = loaded("dcqcn+win", "links");
    let said = refused(&base.replace("calibrate = 0.3", "calibrate = 0"));
    assert!(said.contains("pfc stops neighbours") && said.contains("calibrate = 0.1"), "{said}");
    let said = refused(&base.replace("duration = \"1ms\"", "duration = \"10us\""));
    assert!(said.contains("too few to calibrate with"), "{said}");
    let said = refused(&base.replace("[scheme]", "[scheme]\nload_balancing = \"drill\""));
    assert!(said.contains("drill chooses paths while packets flow"), "{said}");
    let said = refused(&(base.clone() + "[measure]\nwhy = true\n[[slow]]\nhost = \"h0\"\nrate = \"10Gbps\"\n"));
    assert!(said.contains("no packets that could be followed") && said.contains("slow receivers"), "{said}");
    let said = refused(&plain("links", "[[collective]]\nkind = \"ring-all-reduce\"\nsize = \"600KB\"\n"));
    assert!(said.contains("cannot be estimated link by link") && said.contains("max-min"), "{said}");
}
