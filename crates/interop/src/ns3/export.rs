//! A scenario's flows as a flow file of the reference.

use std::collections::HashMap;
use std::fmt::Write;

use engine::Time;
use traffic::Traffic;

use super::flows::MAX_FLOWS_PER_PAIR;
use super::tokens::seconds_to_ns;
use files::problem::Problem;
use scenario::Scenario;

/// The priority of class 0: the reference's examples use 3, and 0 is the queue of control frames. Class 1 has 4, and so on.
const FIRST_PRIORITY: u8 = 3;
/// The highest priority of the plain reference.
const LAST_PRIORITY: u8 = 7;
/// The destination port, which is part of the hash that chooses a path: the one that a scenario's run uses, so that the flows
/// take the same path in both.
const DPORT: u16 = 4791;

/// Writes the flows of a scenario in order of start: a count, then a line per flow with source, destination, priority,
/// destination port, size and start in seconds.
///
/// The reference cuts starts to whole nanoseconds; they are so written that none loses one. What the format cannot hold is
/// refused: flows that wait or leave, sizes of more than 32 bits, more flows between two hosts than there are ports.
pub fn flow_file(scenario: &Scenario) -> Result<String, Problem> {
    let Traffic { flows, after, .. } = &scenario.traffic;
    const HELP: &str = "write it as CSV, which can";
    if let Some(wait) = after.first() {
        let message = "the flow waits for another, which the reference's flow file cannot say";
        return Err(scenario.flow_problem(wait.flow.index(), message).help(HELP));
    }
    let mut per_pair: HashMap<(u32, u32), u32> = HashMap::new();
    for (number, flow) in flows.iter().enumerate() {
        let refuse = |message: String, help: &str| Err(scenario.flow_problem(number, message).help(help));
        if flow.until != Time::MAX {
            return refuse("the flow leaves, which the reference's flow file cannot say".into(), HELP);
        }
        if flow.size > u32::MAX as u64 {
            let message = format!("{} bytes are more than the reference holds in 32 bits", flow.size);
            return refuse(message, "make it smaller or split it");
        }
        if flow.class.0 > LAST_PRIORITY - FIRST_PRIORITY {
            let message =
                format!("class {} has no priority in the reference, which has up to {LAST_PRIORITY}", flow.class);
            return refuse(message, "use classes 0 to 4");
        }
        let count = per_pair.entry((flow.src.0, flow.dst.0)).or_default();
        *count += 1;
        if *count > MAX_FLOWS_PER_PAIR {
            let message = format!("there are more than {MAX_FLOWS_PER_PAIR} flows between the two hosts");
            return refuse(message, "the reference has no more ports; spread the flows over more hosts");
        }
    }
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by_key(|&flow| flows[flow].start);
    let mut text = format!("{}\n", flows.len());
    for flow in order.into_iter().map(|flow| &flows[flow]) {
        let priority = FIRST_PRIORITY + flow.class.0;
        _ = writeln!(text, "{} {} {priority} {DPORT} {} {}", flow.src, flow.dst, flow.size, seconds(flow.start));
    }
    Ok(text)
}

/// A time in seconds that the reference reads as the same nanosecond.
fn seconds(time: Time) -> String {
    let print = |ps: u64| format!("{}.{:012}", ps / 1_000_000_000_000, ps % 1_000_000_000_000);
    let same = |text: &String| text.parse().is_ok_and(|seconds| seconds_to_ns(seconds) == time.ns());
    // The nearest floating-point number may lie in the nanosecond before or after: half a nanosecond in, it does not.
    Some(print(time.0)).filter(same).unwrap_or_else(|| print(time.ns() * 1000 + 500))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ns3::flows;
    use crate::ns3::topology::tests::star;
    use proptest::prelude::*;
    use std::path::Path;

    fn scenario(tables: &str) -> Scenario {
        let text = format!("[topology]\nkind = \"star\"\nhosts = 3\n[traffic]\nclasses = 6\n{tables}");
        Scenario::parse("a.toml", &text, Path::new("/nowhere"), &[]).unwrap_or_else(|problem| panic!("{problem}"))
    }

    #[test]
    fn the_flow_file_is_read_back_as_it_was_meant() {
        let load = "[[load]]\nsizes = \"hadoop\"\nload = 0.5\nduration = \"5ms\"\nclass = 2\n[[incast]]\ndegree = 2\nsize = \"1MB\"\n";
        let scenario = scenario(load);
        let flows = flows::parse("flow.txt", &flow_file(&scenario).unwrap(), &star(3)).unwrap();
        let sorted = scenario.traffic.in_order();
        assert_eq!(flows.len(), sorted.flows.len());
        assert!(flows.len() > 100);
        for (read, flow) in flows.iter().zip(&sorted.flows) {
            assert_eq!((read.src, read.dst, read.size), (flow.src.0, flow.dst.0, flow.size));
            assert_eq!((read.priority, read.dport), (3 + flow.class.0, 4791));
            assert_eq!(read.start(), Time::from_ns(flow.start.ns()));
        }
    }

    #[test]
    fn what_the_format_cannot_hold_is_refused() {
        let flow = "[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\n";
        let refused = |tables: &str, line: usize, message: &str| {
            let problem = flow_file(&scenario(tables)).unwrap_err();
            assert!(problem.message.contains(message) && problem.help.is_some(), "{problem}");
            assert_eq!(problem.line, Some(line), "{problem}");
        };
        assert!(flow_file(&scenario(flow)).unwrap().starts_with("1\n0 1 3 4791 1000 0.000000000000\n"));
        refused(&format!("{flow}id = \"a\"\n[[flow]]\nsrc = 1\ndst = 0\nsize = \"1B\"\nafter = \"a\"\n"), 11, "waits");
        refused(&format!("{flow}until = \"1ms\"\n"), 6, "leaves");
        refused(&flow.replace("1KB", "5GB"), 6, "32 bits");
        refused(&format!("{flow}class = 5\n"), 6, "class 5");
        refused(&format!("{flow}count = 55537\n"), 6, "more than 55536");
    }

    proptest! {
        #[test]
        fn no_start_loses_a_nanosecond(start in prop_oneof![0..=traffic::MAX_START.0, 0..10_000_000_000_000u64, (0..1_000_000_000u64).prop_map(|ns| ns * 1000)]) {
            let text = seconds(Time(start));
            prop_assert_eq!(seconds_to_ns(text.parse().unwrap()), start / 1000, "{}", text);
        }
    }
}
