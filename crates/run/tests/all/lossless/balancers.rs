//! Every load balancer over random fabrics: everything arrives, in order where that is promised, and the same on any number of threads.

use super::*;

/// Tables of a load balancer with random parameters, extreme ones among them.
fn table(name: &str, [a, b, c]: [u32; 3]) -> String {
    let keys = match name {
        "letflow" => format!("timeout = \"{}ns\"\nentries = {}\n", 1 + a % 20_000, 1 + b % 100),
        "drill" => {
            format!("d = {}\nm = {}\nmemory = \"{}\"\n", 1 + a % 4, 1 + b % 3, ["switch", "host"][c as usize % 2])
        }
        "adaptive" => {
            let interval = if a % 2 == 0 {
                format!("interval = \"{}ns\"\nmode = \"flowlet\"\n", 1 + b % 20_000)
            } else {
                String::new()
            };
            format!(
                "{interval}bands = {}\nload_weight = {}\nsample = \"{}ns\"\n",
                2 + c % 20,
                (b % 11) as f64 / 10.0,
                10 + a % 5_000
            )
        }
        "conga" => {
            let sample = if c % 2 == 0 { format!("sample = {}\n", 1 + c % 5) } else { String::new() };
            format!(
                "timeout = \"{}ns\"\nperiod = \"{}ns\"\nbits = {}\n{sample}",
                1 + a % 20_000,
                10 + b % 50_000,
                1 + c % 8
            )
        }
        // Replies that are late for the least queue, and paths that are avoided for no time or for ever.
        "conweave" => format!(
            "reply = \"{}ns\"\navoid = \"{}ns\"\nmargin = \"{}ns\"\nwait = \"{}ns\"\nsilence = \"{}ns\"\n",
            1 + a % 1_000,
            b % 1_000_000,
            c % 20_000,
            1 + b % 100_000,
            1 + c % 300_000
        ),
        "bitmap" => format!("paths = {}\nmost = {}\nloss = {}\n", 1 << (a % 8), 1 + b % 20, c % 10),
        "reps" => format!(
            "ring = {}\npaths = {}\nfrozen = \"{}us\"\nexplore = {}\n",
            1 + a % 16,
            2 + b % 500,
            1 + c % 200,
            c % 20
        ),
        _ => return String::new(),
    };
    format!("[scheme.{name}]\n{keys}")
}

/// A case with any load balancer, any salt, and a transport that takes packets in order or not.
fn balanced(kinds: std::ops::Range<usize>, presets: Vec<&'static str>) -> impl Strategy<Value = (String, Case)> {
    let names: Vec<&'static str> = Registry::get().load_balancing.names();
    assert!(names.len() >= 11, "{names:?}");
    let choice = (prop::sample::select(names), any::<[u32; 3]>(), any::<bool>(), any::<u32>());
    (case(kinds, presets), choice).prop_map(|(case, (name, numbers, irn, salt))| {
        let transport = if irn { "transport = \"irn\"\n" } else { "" };
        let scheme = format!(
            "[scheme]\npreset = \"{}\"\nload_balancing = \"{name}\"\nsalt = {salt}\n{transport}{}",
            case.preset,
            table(name, numbers)
        );
        (name.to_string(), Case { scheme: Some(scheme), ..case })
    })
}

#[test]
fn every_balancer_delivers_everything_and_in_order_where_it_promises_to() {
    let moved = Cell::new(0);
    holds(balanced(0..7, vec!["pfc", "window", "dcqcn", "dcqcn+win", "hpcc"]), 0.1, |(_, case)| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let exempt = case.classes > 1 && case.nic.contains("data");
        prop_assert_eq!(resolved.promised, !exempt, "{:?}", resolved.notes);
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        // IRN's own timeouts may be too short for a queue.
        if resolved.promised && resolved.choices.transport.in_order() {
            undisturbed(&resolved, &outcome)?;
        }
        let reordered = outcome.switches.iter().find(|counter| counter.name == "conweave_reordered");
        moved.set(moved.get() + reordered.map_or(0, |counter| counter.value));
        Ok(Some(outcome.counts.pauses > 0))
    });
    println!("{} packets were put in order", moved.get());
}

/// Links of their own rate, and one that is down from the beginning.
fn unequal(fabric: &Fabric, links: &[(prop::sample::Index, u64)], down: Option<prop::sample::Index>) -> String {
    let spare = &fabric.spare;
    if spare.is_empty() {
        return String::new();
    }
    let dead = down.map(|at| at.index(spare.len()));
    let table = |at: usize, keys: String| {
        let (a, b) = &spare[at];
        format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\n{keys}\n")
    };
    // One table for each link.
    let mut rates: Vec<(usize, u64)> = links.iter().map(|(at, rate)| (at.index(spare.len()), *rate)).collect();
    rates.sort_unstable();
    rates.dedup_by_key(|(at, _)| *at);
    let rates = rates.into_iter().filter(|(at, _)| Some(*at) != dead);
    let own: String = rates.map(|(at, rate)| table(at, format!("rate = \"{rate}Gbps\""))).collect();
    own + &dead.map_or(String::new(), |at| table(at, "down = [[\"0us\"]]".into()))
}

#[test]
fn on_unequal_paths_every_balancer_delivers_everything_and_in_order_where_it_promises_to() {
    let links = prop::collection::vec((any::<prop::sample::Index>(), rate()), 1..5);
    let presets = vec!["pfc", "window", "dcqcn"];
    let down = prop::option::of(any::<prop::sample::Index>());
    // Leaf-spine fabrics, whose uplinks are all between the same two tiers.
    let strategy = (balanced(2..3, presets), links, down)
        .prop_map(|((name, case), links, down)| (name, Case { faults: unequal(&case.fabric, &links, down), ..case }));
    holds(strategy, 0.1, |(_, case)| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        ended(&outcome)?;
        prop_assert!(outcome.peak.iter().all(|&peak| peak <= buffer));
        prop_assert!(outcome.flows.iter().all(|flow| flow.delivered == flow.spec.size));
        if resolved.promised && resolved.choices.transport.in_order() {
            undisturbed(&resolved, &outcome)?;
        }
        Ok(Some(!case.faults.is_empty() && outcome.counts.pauses > 0))
    });
}

#[test]
fn conweave_puts_in_order_what_it_has_spread() {
    let strategy = (case(2..5, vec!["pfc", "window", "dcqcn"]), any::<[u32; 3]>()).prop_map(|(case, numbers)| {
        let table = table("conweave", numbers);
        let scheme = format!("[scheme]\npreset = \"{}\"\nload_balancing = \"conweave\"\n{table}", case.preset);
        let messages = case.messages.iter().map(|m| Message { size: m.size.max(50_000), start_ns: 0, ..*m }).collect();
        Case { scheme: Some(scheme), messages, nic: case.nic.replace("data", "control"), ..case }
    });
    holds(strategy, 0.2, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        prop_assert!(resolved.promised, "{:?}", resolved.notes);
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        undisturbed(&resolved, &outcome)?;
        let count = |name: &str| outcome.switches.iter().find(|counter| counter.name == name).unwrap().value;
        prop_assert_eq!(count("conweave_early"), 0);
        prop_assert!(count("conweave_reroutes") <= count("conweave_clears") + outcome.flows.len() as u64);
        Ok(Some(count("conweave_reordered") > 0))
    });
}

#[test]
fn whatever_is_lost_or_fails_every_balancer_delivers_everything() {
    let own = prop::collection::vec((any::<prop::sample::Index>(), 0.0f64..0.03, 0.0f64..0.01), 0..3);
    let outage = prop::option::of((any::<prop::sample::Index>(), 0u64..60_000, 1u64..300_000));
    let strategy =
        (balanced(0..7, vec!["pfc", "dcqcn", "lossy"]), own, outage).prop_map(|((name, case), own, outage)| {
            let spare = &case.fabric.spare;
            let down = outage.filter(|_| !spare.is_empty()).map(|(at, from, length)| {
                let (a, b) = &spare[at.index(spare.len())];
                format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\ndown = [[\"{from}ns\", \"{}ns\"]]\n", from + length)
            });
            let fault = if down.is_some() { String::new() } else { faults(&case.fabric, &own) };
            (name, Case { faults: fault + &down.unwrap_or_default(), ..case })
        });
    holds(strategy, 0.1, |(_, case)| {
        let Some((resolved, _)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        ended(&outcome)?;
        prop_assert!(outcome.flows.iter().all(|flow| flow.delivered == flow.spec.size));
        let c = &outcome.counts;
        Ok(Some(c.dropped_fault + c.dropped_down + c.dropped_full > 0))
    });
}

#[test]
fn a_salt_from_the_seed_draws_new_paths_and_a_fixed_one_does_not() {
    let text = include_str!("../../../../../examples/leaf_spine.toml");
    let times = |seed: u64, salt: &str| {
        let sets = [format!("seed={seed}"), format!("scheme.salt={salt}")];
        let scenario = Scenario::parse("leaf_spine.toml", text, Path::new("/nowhere"), &sets).and_then(resolve);
        let outcome = scenario.unwrap_or_else(|problem| panic!("{problem}")).simulate(&mut |_, _| true);
        outcome.flows.iter().map(|flow| flow.received).collect::<Vec<_>>()
    };
    assert_eq!(times(1, "0"), times(2, "0"), "flows of a file, and nothing else is drawn");
    assert_eq!(times(1, "5"), times(2, "5"));
    assert_ne!(times(1, "0"), times(1, "5"));
    assert_ne!(times(1, "\"seed\""), times(2, "\"seed\""));
    assert_eq!(times(3, "\"seed\""), times(3, "\"seed\""));
}
