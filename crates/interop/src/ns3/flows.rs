//! The flow file: who sends how much to whom, and when.

use std::collections::HashMap;

use engine::units::Time;

use super::forks::{self, Column, Fork, Ports, Results, hpcc};
use super::tokens::{Announced, MAX_SECONDS, Token, Tokens, Want, seconds_to_ns};
use super::topology::Topology;
use files::problem::Problem;

/// The highest priority accepted. The plain reference has 0 to 7; its build with fair queueing has more queues.
pub const MAX_PRIORITY: u8 = 32;

/// The first source port of each pair of hosts.
pub const FIRST_SPORT: u16 = 10_000;

/// The most flows that one host can send to one other: a source port has 16 bits.
pub const MAX_FLOWS_PER_PAIR: u32 = u16::MAX as u32 - FIRST_SPORT as u32 + 1;

/// One flow of a flow file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowLine {
    /// The sending host.
    pub src: u32,
    /// The receiving host.
    pub dst: u32,
    /// Its priority. 0 goes in the queue of control frames: before all others, in no account, never paused.
    pub priority: u8,
    /// Its destination port.
    pub dport: u16,
    /// Its size in bytes.
    pub size: u64,
    /// Its start in seconds, as written.
    pub start_s: f64,
    /// Where it stands in the file, counted from 1.
    pub line: usize,
    /// Its place among all flows, in the order in which they get their ports.
    pub place: u32,
    /// Its source port, if it has one before ports are given out.
    pub sport: Option<u16>,
    /// The queue pair and the number in it by which Floodgate's results name it.
    pub message: (u32, u32),
}

impl FlowLine {
    /// Its start as the reference has it: cut to whole nanoseconds.
    pub fn start(&self) -> Time {
        // A start is at most MAX_SECONDS, so that its picoseconds fit.
        Time::from_ns(seconds_to_ns(self.start_s))
    }
}

/// Reads a flow file of the HPCC authors' simulator: a count, then a line per flow with source, destination, priority, destination port, size and
/// start.
///
/// `file` is its name, for problems only. More flows than announced are refused, and so is a file without a count.
pub fn parse(file: &str, text: &str, topology: &Topology) -> Result<Vec<FlowLine>, Problem> {
    match parse_as(file, text, topology, &hpcc::FORK)? {
        (_, Some(surplus)) => Err(surplus),
        (flows, None) => Ok(flows),
    }
}

/// As [`parse`] in the form of any of the family, but what comes after the flows announced is returned beside them.
///
/// The reference ignores it, and its own example relies on this to run the first two of many flows. Where none is announced and something
/// comes all the same, the first number was no count.
pub fn parse_as(
    file: &str,
    text: &str,
    topology: &Topology,
    fork: &Fork,
) -> Result<(Vec<FlowLine>, Option<Problem>), Problem> {
    match read_flows(file, text, topology, fork) {
        Ok((flows, None)) => Ok((flows, None)),
        // Without its count the first flow's source would pass for one, and the file for one with no flows or too many.
        read => {
            let problem = other_form(file, text, fork);
            match (problem.or_else(|| Tokens::new(file, text).uncounted("flow", fork.flow.len())), read) {
                (Some(problem), _) => Err(problem),
                (None, Ok((flows, Some(surplus)))) if flows.is_empty() => Err(surplus),
                (None, read) => read,
            }
        }
    }
}

/// The problem that all flows have as many values as those of another simulator.
fn other_form(file: &str, text: &str, fork: &Fork) -> Option<Problem> {
    let mut tokens = Tokens::new(file, text);
    tokens.next()?;
    let mut firsts = tokens.filter(|token| token.starts_line && !token.opens_a_note());
    let first = firsts.next()?;
    let values = first.line_words().len();
    let alike = firsts.all(|token| token.line_words().len() == values);
    let other = forks::FORKS.iter().find(|other| other.flow.len() == values).filter(|_| alike)?;
    // Floodgate's own have more values where messages share queue pairs.
    if values == fork.flow.len() || fork.results == Results::Tabs {
        return None;
    }
    let names = |fork: &Fork| fork.flow.iter().map(|column| column.name()).collect::<Vec<_>>().join(", ");
    let message = format!(
        "the flows have {values} values, as those of {} ({}); the configuration is of {}",
        other.name,
        names(other),
        fork.name
    );
    Some(first.problem(file, message).help(format!("write {} of each flow", names(fork))))
}

fn read_flows(
    file: &str,
    text: &str,
    topology: &Topology,
    fork: &Fork,
) -> Result<(Vec<FlowLine>, Option<Problem>), Problem> {
    let mut tokens = Tokens::new(file, text);
    let announced = tokens.announced("flows", fork.flow.len())?;
    let mut paired = false;
    if fork.results == Results::Tabs {
        // Floodgate's files say next whether each flow comes with its queue pair and its number there.
        let want = Want {
            what: "whether flows have queue pairs",
            is: "0 or 1",
            help: "write 0 after the number of flows, or 1 and the queue pair and the message's number after each start",
        };
        if let Some(token) = tokens.next() {
            paired = tokens.whole(token, want, 0..=1)? == 1;
        }
    }
    let announced = Announced { fields: fork.flow.len() + if paired { 2 } else { 0 }, ..announced };
    let is_node = format!("a node, 0 to {}", topology.nodes().saturating_sub(1));
    // By source alone where that is what ports are numbered by.
    let by_pair = fork.ports == Ports::PerPair;
    let mut per_pair: HashMap<(u32, u32), u32> = HashMap::new();
    // The count is not trusted with memory: the list grows with what is there.
    let mut flows: Vec<FlowLine> = Vec::new();
    while (flows.len() as u64) < announced.count {
        let mut message = None;
        let record = match announced.fields {
            4 => columns(&tokens.record::<4>(&announced, flows.len())?, fork),
            5 => columns(&tokens.record::<5>(&announced, flows.len())?, fork),
            _ => {
                let record = tokens.record::<6>(&announced, flows.len())?;
                message = paired.then_some((record[4], record[5]));
                columns(&record, fork)
            }
        };
        let place = flows.len() as u32;
        let message = match message {
            None => (place, 0),
            Some((pair, number)) => {
                let want = Want {
                    what: "queue pair",
                    is: "a whole number",
                    help: "number queue pairs and their messages from 0",
                };
                let read = |token| tokens.whole(token, want, 0..=u64::from(u32::MAX)).map(|number| number as u32);
                (read(pair)?, read(number)?)
            }
        };
        let flow = FlowLine { place, message, ..read_flow(&tokens, record, topology, fork, &is_node)? };
        if let Some(earlier) = flows.last().filter(|_| !fork.any_order)
            && flow.start() < earlier.start()
        {
            let (start, then, line) = (flow.start_s, earlier.start_s, earlier.line);
            let message = format!("start {start} s is before that of the flow above it, {then} s on line {line}");
            return Err(record[5]
                .problem(file, message)
                .help("the reference starts flows in the order of the file; sort them by start"));
        }
        let count = per_pair.entry((flow.src, if by_pair { flow.dst } else { 0 })).or_default();
        *count += 1;
        if *count > MAX_FLOWS_PER_PAIR {
            let FlowLine { src, dst, .. } = flow;
            let to = if by_pair { format!(" to host {dst}") } else { String::new() };
            let message = format!("this is flow {count} from host {src}{to}; {MAX_FLOWS_PER_PAIR} can be told apart");
            return Err(record[0]
                .problem(file, message)
                .help("their source ports count from 10000 and have 16 bits; spread the flows over more hosts"));
        }
        flows.push(flow);
    }
    Ok((flows, tokens.surplus(&announced)))
}

/// Puts flows in the order of their starts; those that start together stay as they are.
pub fn in_order(mut flows: Vec<FlowLine>) -> Vec<FlowLine> {
    flows.sort_by_key(FlowLine::start);
    flows
}

/// The values of a flow in the order of the HPCC authors' columns; those that a fork does not have are the usual ones.
fn columns<'a>(record: &[Token<'a>], fork: &Fork) -> [Token<'a>; 6] {
    hpcc::COLUMNS.map(|column| match fork.flow.iter().position(|own| *own == column) {
        Some(place) => record[place],
        None => record[0].reading(if column == Column::Priority { "3" } else { "100" }),
    })
}

fn read_flow(
    tokens: &Tokens<'_>,
    record: [Token<'_>; 6],
    topology: &Topology,
    fork: &Fork,
    is_node: &str,
) -> Result<FlowLine, Problem> {
    let file = tokens.file();
    let [src, dst, priority, dport, size, start] = record;
    let line = src.line;
    let host = |token: Token<'_>, what: &str| {
        let names: Vec<&str> = fork.flow.iter().map(|column| column.name()).collect();
        let help = &format!("a flow is {}", names.join(", "));
        let last = u64::from(topology.nodes().saturating_sub(1));
        let node = tokens.whole(token, Want { what, is: is_node, help }, 0..=last)? as u32;
        if topology.is_host(node) {
            return Ok(node);
        }
        let message = format!("{what} {node} is a switch");
        Err(token
            .problem(file, message)
            .help("only hosts send and receive; name a node that the topology does not list as a switch"))
    };
    let (from, to) = (host(src, "source")?, host(dst, "destination")?);
    if from == to {
        let message = format!("the flow goes from host {from} to itself");
        return Err(dst.problem(file, message).help("name two different hosts"));
    }
    let want = Want { what: "priority", is: "a whole number from 0 to 32", help: "the reference's examples use 3" };
    let priority = tokens.whole(priority, want, 0..=u64::from(MAX_PRIORITY))?;
    let want = Want {
        what: "destination port",
        is: "a whole number from 0 to 65535",
        help: "the reference's examples use 100",
    };
    let dport = tokens.whole(dport, want, 0..=u64::from(u16::MAX))?;
    let most = (1 << fork.size_bits) - 1;
    let want = Want {
        what: "size",
        is: &format!("a whole number of bytes from 1 to {most}"),
        help: &format!("write a size in bytes, such as 10000; the reference holds it in {} bits", fork.size_bits),
    };
    let size = tokens.whole(size, want, 1..=most)?;
    let want = Want {
        what: "start",
        is: "a number of seconds from 0 to 18000000",
        help: "write the start in seconds, such as 2.0",
    };
    let start_s = tokens.number(start, want, |s| (0.0..=MAX_SECONDS).contains(&s))?;
    let (priority, dport) = (priority as u8, dport as u16);
    Ok(FlowLine { src: from, dst: to, priority, dport, size, start_s, line, place: 0, sport: None, message: (0, 0) })
}

#[cfg(test)]
mod tests {
    use super::super::forks::{conweave, floodgate, powertcp};
    use super::super::tokens::fuzz;
    use super::super::topology::tests::star;
    use super::*;
    use proptest::prelude::*;

    const FLOWS: &str = "\
3
0 2 3 100 10000000 2.000000000
1 2 3 100 396 2.000000314
1 0 32 65535 4294967295 2.1
";

    fn error(text: &str) -> Problem {
        parse("flow.txt", text, &star(3)).unwrap_err()
    }

    fn place(problem: &Problem) -> (usize, usize) {
        (problem.line.unwrap(), problem.column.unwrap())
    }

    #[test]
    fn flows_are_read_with_their_starts() {
        let flows = parse("flow.txt", FLOWS, &star(3)).unwrap();
        assert_eq!(flows.len(), 3);
        let expected = FlowLine {
            src: 1,
            dst: 2,
            priority: 3,
            dport: 100,
            size: 396,
            start_s: 2.000000314,
            line: 3,
            place: 1,
            sport: None,
            message: (1, 0),
        };
        assert_eq!(flows[1], expected);
        assert_eq!(flows[1].start(), Time::from_ns(2_000_000_313));
        assert_eq!((flows[2].priority, flows[2].dport, flows[2].size), (32, 65535, 4294967295));
    }

    #[test]
    fn the_columns_of_the_family_are_read() {
        let usual = parse("f", "1\n0 2 3 100 5000 2.5\n", &star(3)).unwrap();
        let read = |text: &str, fork| parse_as("f", text, &star(3), fork).unwrap().0;
        assert_eq!(read("1\n0 2 3 5000 2.5\n", &conweave::FORK), usual);
        assert_eq!(read("1 0\n0 2 5000 2.5\n", &floodgate::FORK), usual);
        assert_eq!(read("1\n0 2 3 100 1000000000000 2.5\n", &powertcp::FORK)[0].size, 1_000_000_000_000);
        let paired = read("2 1\n0 2 5000 2.5 7 1\n1 2 5000 2.25 8 0\n", &floodgate::FORK);
        assert_eq!([paired[0].message, paired[1].message], [(7, 1), (8, 0)]);
        assert_eq!(in_order(paired).iter().map(|flow| flow.place).collect::<Vec<_>>(), [1, 0]);
        let problem = parse_as("f", "1 2\n0 2 5000 2.5\n", &star(3), &floodgate::FORK).unwrap_err();
        assert!(problem.message.contains("have queue pairs") && problem.help.is_some(), "{problem}");
        let problem = parse_as("f", "1\n0 9 3 5000 2.5\n", &star(3), &conweave::FORK).unwrap_err();
        assert_eq!(problem.help.as_deref(), Some("a flow is source, destination, priority, size, start"));
    }

    #[test]
    fn flows_of_another_simulator_are_told_by_their_columns() {
        let message = |text: &str, fork| parse_as("f", text, &star(3), fork).unwrap_err();
        let problem = message("1\n0 2 3 100 5000 2.5\n", &conweave::FORK);
        assert!(problem.message.contains("6 values, as those of the HPCC authors' simulator"), "{problem}");
        assert_eq!(problem.help.as_deref(), Some("write source, destination, priority, size, start of each flow"));
        let problem = message("2\n0 2 3 5000 2.5\n1 2 3 5000 2.5\n\nsource and so on\n", &hpcc::FORK);
        assert!(problem.message.contains("5 values, as those of ConWeave's simulator"), "{problem}");
        let problem = message("1 0\n0 2 5000 2.5\n", &hpcc::FORK);
        assert!(problem.message.contains("4 values, as those of Floodgate's simulator"), "{problem}");
        assert_eq!(place(&problem), (2, 1));
    }

    #[test]
    fn line_breaks_mean_nothing() {
        let flows = parse("flow.txt", &FLOWS.replace('\n', " "), &star(3)).unwrap();
        assert_eq!(flows.len(), 3);
        assert!(parse("flow.txt", "0", &star(3)).unwrap().is_empty());
    }

    #[test]
    fn notes_after_the_flows_are_no_problem() {
        let text = format!("{FLOWS}\nFirst line: number of flows\nsrc0 dst0 3 dst_port0 size0 start_time0\n...\n");
        assert_eq!(parse("flow.txt", &text, &star(3)).unwrap().len(), 3);
    }

    #[test]
    fn a_count_that_does_not_match_is_refused() {
        let problem = error(&FLOWS.replace("3\n0 2", "5\n0 2"));
        assert_eq!(problem.message, "the file ends after 3 of the 5 flows that line 1 announces");
        assert_eq!(place(&problem), (4, 25));
        assert_eq!(problem.help.as_deref(), Some("add what is missing, or announce 3 flows on line 1"));
        let problem = error(&FLOWS.replace(" 2.1\n", ""));
        assert!(problem.message.ends_with("and 5 of the next one's 6 values"), "{problem}");

        let fewer = FLOWS.replace("3\n0 2", "1\n0 2");
        let problem = error(&fewer);
        assert_eq!(problem.message, "\"1\" comes after the 1 flows that line 1 announces");
        assert_eq!(place(&problem), (3, 1));
        let help = "announce 3 flows on line 1, or remove what comes after the first 1";
        assert_eq!(problem.help.as_deref(), Some(help));
        let (flows, surplus) = parse_as("flow.txt", &fewer, &star(3), &hpcc::FORK).unwrap();
        assert_eq!((flows.len(), surplus.unwrap().line), (1, Some(3)));

        assert_eq!(error("").message, "the file ends before the number of flows");
        assert!(error("-1").message.contains("is not the number of flows"));
        assert!(error("4294967295").message.contains("ends after 0 of the 4294967295 flows"));
    }

    #[test]
    fn a_file_without_its_count_is_refused_whatever_its_first_source() {
        for first in ["0 2", "1 0", "2 0"] {
            let text = FLOWS.replace("3\n0 2", first);
            let problem = parse_as("flow.txt", &text, &star(3), &hpcc::FORK).unwrap_err();
            assert_eq!(problem.message, "the file begins with a flow, and not with the number of flows");
            assert_eq!(place(&problem), (1, 1));
            assert_eq!(problem.help.as_deref(), Some("write 3 on a line before it"));
        }
        // More words in the first line than a flow has, and none before it that would count flows.
        for text in ["0 2 3 100 10 2.0 first\n1 2 3 100 10 2.0\n", "0\n0 2 3 100 10 2.0\n"] {
            let problem = parse_as("flow.txt", text, &star(3), &hpcc::FORK).unwrap_err();
            assert!(problem.message.contains("comes after the 0 flows that line 1 announces"), "{problem}");
        }
        assert!(parse_as("flow.txt", "0\n", &star(3), &hpcc::FORK).unwrap().0.is_empty());
        let cut = "0 2 3 100 10 2.0\n1 2 3\n";
        let problem = error(cut);
        assert_eq!(problem.help.as_deref(), Some("write the number of flows on a line before it"));
        // Line breaks still mean nothing.
        assert_eq!(parse("flow.txt", "1 0 2 3 100 10\n2.0\n", &star(3)).unwrap().len(), 1);
    }

    #[test]
    fn a_bad_flow_is_refused_at_its_bad_value() {
        let case = |line: &str, column: usize, message: &str| {
            let problem = error(&format!("1\n{line}\n"));
            assert!(problem.message.contains(message), "{problem}");
            assert_eq!(place(&problem), (2, column), "{problem}");
            assert!(problem.help.is_some(), "{problem}");
        };
        case("4 2 3 100 10 2", 1, "source \"4\" is not a node, 0 to 3");
        case("0 4 3 100 10 2", 3, "destination \"4\" is not a node, 0 to 3");
        case("-1 2 3 100 10 2", 1, "source \"-1\"");
        case("a 2 3 100 10 2", 1, "source \"a\"");
        case("3 2 3 100 10 2", 1, "source 3 is a switch");
        case("0 3 3 100 10 2", 3, "destination 3 is a switch");
        case("0 0 3 100 10 2", 3, "from host 0 to itself");
        case("0 2 -1 100 10 2", 5, "priority \"-1\" is not a whole number from 0 to 32");
        case("0 2 33 100 10 2", 5, "priority \"33\"");
        case("0 2 3 65536 10 2", 7, "destination port \"65536\"");
        case("0 2 3 -1 10 2", 7, "destination port \"-1\"");
        case("0 2 3 100 0 2", 11, "size \"0\" is not a whole number of bytes from 1 to 4294967295");
        case("0 2 3 100 -5 2", 11, "size \"-5\"");
        case("0 2 3 100 1.5 2", 11, "size \"1.5\"");
        case("0 2 3 100 4294967296 2", 11, "size \"4294967296\"");
        case("0 2 3 100 10 -2", 14, "start \"-2\" is not a number of seconds");
        case("0 2 3 100 10 nan", 14, "start \"nan\"");
        case("0 2 3 100 10 inf", 14, "start \"inf\"");
        case("0 2 3 100 10 1e30", 14, "start \"1e30\"");
        case("0 2 3 100 10 2s", 14, "start \"2s\"");
    }

    #[test]
    fn a_problem_shows_the_line_and_the_place_in_it() {
        let expected = "\
flow.txt:2:11: size \"-5\" is not a whole number of bytes from 1 to 4294967295
    2 | 0 1 3 100 -5 2.0
      |           ^
  help: write a size in bytes, such as 10000; the reference holds it in 32 bits";
        assert_eq!(error("1\n0 1 3 100 -5 2.0\n").to_string(), expected);
    }

    #[test]
    fn starts_that_go_backwards_are_refused_with_both_lines() {
        let problem = error("2\n0 2 3 100 10 2.5\n1 2 3 100 10 2.25\n");
        assert_eq!(problem.message, "start 2.25 s is before that of the flow above it, 2.5 s on line 2");
        assert_eq!(place(&problem), (3, 14));
        assert!(problem.help.as_deref().unwrap().contains("sort"), "{problem}");
        // Within the same nanosecond there is no order to keep.
        let same = "2\n0 2 3 100 10 2.0000000009\n1 2 3 100 10 2.0000000001\n";
        assert_eq!(parse("flow.txt", same, &star(3)).unwrap().len(), 2);
    }

    #[test]
    fn a_pair_with_more_flows_than_source_ports_is_refused() {
        let many = |count: u32| {
            let mut text = format!("{}\n1 2 3 100 10 2\n", count + 1);
            text.extend((0..count).map(|_| "0 2 3 100 10 2\n"));
            text
        };
        let most = parse("flow.txt", &many(MAX_FLOWS_PER_PAIR), &star(3)).unwrap();
        assert_eq!(most.len(), 55_537);
        let problem = error(&many(MAX_FLOWS_PER_PAIR + 1));
        assert_eq!(problem.message, "this is flow 55537 from host 0 to host 2; 55536 can be told apart");
        assert_eq!(place(&problem), (55_539, 1));
    }

    proptest! {
        #[test]
        fn any_text_is_flows_or_a_problem(text in fuzz::any_text()) {
            let _ = parse("f", &text, &star(3)).map_err(|problem| problem.to_string());
        }

        #[test]
        fn any_change_to_flows_leaves_flows_or_a_problem(text in fuzz::changed(FLOWS)) {
            let parsed = parse("f", &text, &star(3)).map_err(|problem| problem.to_string());
            for flow in parsed.unwrap_or_default() {
                let _ = flow.start();
            }
        }

        #[test]
        fn any_change_to_a_trace_file_leaves_one_or_a_problem(text in fuzz::changed("3\n0\n1 2\n")) {
            let _ = super::super::trace::parse("t", &text, &star(3)).map_err(|problem| problem.to_string());
        }
    }
}
