//! The trace file: which nodes' packets the reference writes to its binary trace.

use super::tokens::{Tokens, Want};
use super::topology::Topology;
use files::problem::Problem;

/// Reads a trace file: a count, then that many node ids.
///
/// `file` is its name, for problems only. More ids than announced are refused.
pub fn parse(file: &str, text: &str, topology: &Topology) -> Result<Vec<u32>, Problem> {
    match parse_with_surplus(file, text, topology)? {
        (_, Some(surplus)) => Err(surplus),
        (nodes, None) => Ok(nodes),
    }
}

/// As [`parse`], but what the reference passes over is returned beside them: what comes after the ids announced, and nodes that the
/// topology does not have. Files that rely on this exist: one list for all topologies.
pub fn parse_with_surplus(file: &str, text: &str, topology: &Topology) -> Result<(Vec<u32>, Option<Problem>), Problem> {
    let mut tokens = Tokens::new(file, text);
    if tokens.peek().is_none() {
        return Err(Problem::new(file, "the file is empty")
            .help("write 0 to trace no node, or leave TRACE_FILE out of the configuration"));
    }
    let announced = tokens.announced("traced nodes", 1)?;
    let last = topology.nodes().saturating_sub(1);
    let want = Want { what: "traced node", is: "the number of a node", help: "write a whole number" };
    // The count is not trusted with memory: the list grows with what is there.
    let (mut nodes, mut absent, mut read) = (Vec::new(), Vec::new(), 0);
    while (read as u64) < announced.count {
        let [token] = tokens.record(&announced, read)?;
        read += 1;
        match tokens.whole(token, want, 0..=u64::from(u32::MAX))? as u32 {
            node if node <= last => nodes.push(node),
            _ => absent.push(token),
        }
    }
    let skipped = absent.first().map(|first| {
        let message = match absent.len() {
            1 => format!("there is no node {}: the topology has 0 to {last}", first.text),
            more => format!(
                "{more} of the traced nodes, from {} on, do not exist: the topology has 0 to {last}",
                first.text
            ),
        };
        first
            .problem(file, message)
            .help("the reference skips a node that it does not have; correct the number or remove it")
    });
    Ok((nodes, skipped.or(tokens.surplus(&announced))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn star() -> Topology {
        super::super::topology::tests::star(3)
    }

    fn error(text: &str) -> Problem {
        parse("trace.txt", text, &star()).unwrap_err()
    }

    #[test]
    fn traced_nodes_are_read_whatever_the_line_breaks() {
        assert_eq!(parse("trace.txt", "0\n", &star()).unwrap(), Vec::<u32>::new());
        assert_eq!(parse("trace.txt", "3\n0\n1 3\n", &star()).unwrap(), [0, 1, 3]);
        assert_eq!(parse("trace.txt", "2 0 1", &star()).unwrap(), [0, 1]);
    }

    #[test]
    fn notes_after_the_nodes_are_no_problem() {
        let text = "1\n2\n\nFirst line: number of nodes\nNode IDs...\n";
        assert_eq!(parse("trace.txt", text, &star()).unwrap(), [2]);
    }

    #[test]
    fn an_empty_file_is_refused_with_what_to_write() {
        let error = error(" \n\n");
        assert_eq!(error.message, "the file is empty");
        assert!(error.help.as_deref().unwrap().contains("write 0"), "{error}");
    }

    #[test]
    fn nodes_that_do_not_exist_are_skipped_with_a_note() {
        let (nodes, note) = parse_with_surplus("trace.txt", "3\n0\n4\n3\n", &star()).unwrap();
        let note = note.unwrap();
        assert_eq!((nodes, note.line, note.column), (vec![0, 3], Some(3), Some(1)));
        assert_eq!(note.message, "there is no node 4: the topology has 0 to 3");
        assert!(note.help.as_deref().unwrap().contains("skips"), "{note}");
        let (nodes, note) = parse_with_surplus("trace.txt", "4\n0\n4 9 3\n", &star()).unwrap();
        assert_eq!(nodes, [0, 3]);
        assert_eq!(note.unwrap().message, "2 of the traced nodes, from 4 on, do not exist: the topology has 0 to 3");
        assert!(error("2\n0\n4\n").message.contains("no node 4"));
        assert!(error("1 -1").message.contains("\"-1\""));
        assert!(error("1 x").message.contains("\"x\""));
    }

    #[test]
    fn a_count_that_does_not_match_is_refused() {
        let problem = error("3\n0\n1\n");
        assert_eq!(problem.message, "the file ends after 2 of the 3 traced nodes that line 1 announces");
        assert_eq!((problem.line, problem.column), (Some(3), Some(1)));
        let problem = error("0\n0\n");
        assert_eq!(problem.message, "\"0\" comes after the 0 traced nodes that line 1 announces");
        assert_eq!((problem.line, problem.column), (Some(2), Some(1)));
        assert!(problem.help.as_deref().unwrap().starts_with("announce 1 traced nodes on line 1"), "{problem}");
        let (nodes, surplus) = parse_with_surplus("trace.txt", "0\n0\n", &star()).unwrap();
        assert!(nodes.is_empty() && surplus.is_some());
        assert!(error("many").message.contains("\"many\" is not the number of traced nodes"));
        assert!(error("4294967295").message.contains("ends after 0 of the 4294967295"));
        assert!(error("4294967296").message.contains("is not the number"));
    }
}
