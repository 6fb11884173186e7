//! Lists of flows of SimCCL, SimAI's model of what NCCL sends (`ncclFlowModel_detailed_flows.csv`), as schedules in GOAL.
//!
//! A line is a flow: its collective, its number there, two ranks, bytes, and the flows that must have come before (`parent_flow_ids`). What stands under
//! `prev_flow_ids` are ranks, whatever the name says: those that its sender hears from.

use crate::chakra::{problems, schedule};
use crate::htsim::{Imported, Text};
use engine::Time;
use fabric::id::{ClassId, FlowId, NodeId};
use fabric::topology::{Graph, Shape, star::Star};
use files::problem::Problem;
use scenario::document::quoted;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use traffic::weave::Weave;
use traffic::{After, FlowRequest, MAX_FLOWS, MAX_SIZE, Names, Traffic};

/// How an imported scenario begins.
pub const FROM: &str = "# From a list of flows of SimCCL";

/// The columns that matter. Versions differ in the others.
const COLUMNS: [&str; 7] = ["collective", "flow_id", "src", "dest", "flow_size", "conn_type", "parent_flow_ids"];

/// The most ranks: hosts of a star.
const MAX_RANKS: u64 = if cfg!(fuzzing) { 256 } else { 65_536 };

/// A field of a line, and the column at which it begins.
#[derive(Clone, Copy)]
struct Field<'a> {
    name: &'static str,
    text: &'a str,
    line: usize,
    column: usize,
    source: &'a str,
}

impl Field<'_> {
    fn problem(&self, file: &str, message: String, help: &str) -> Problem {
        Problem::new(file, message).at(self.line, self.column, self.source).help(help)
    }

    fn number(&self, file: &str, most: u64) -> Result<u64, Problem> {
        match self.text.parse::<u64>() {
            Ok(number) if number <= most => Ok(number),
            _ => {
                let message = format!("{} is {}", self.name, quoted(self.text));
                Err(self.problem(file, message, &format!("write a whole number up to {most}")))
            }
        }
    }
}

/// A flow, as its line says.
struct Row<'a> {
    collective: usize,
    id: u64,
    src: u32,
    dest: u32,
    size: u64,
    first: Field<'a>,
    parents: Field<'a>,
}

/// The flows of a list, and the names of the collectives in the order in which they begin.
struct Lines<'a> {
    file: &'a str,
    rows: Vec<Row<'a>>,
    collectives: Vec<&'a str>,
    wrong: Vec<Problem>,
}

impl<'a> Lines<'a> {
    fn read(from: Text<'a>) -> Result<Lines<'a>, Problem> {
        let mut lines = (1..).zip(from.text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let help = "give the file ncclFlowModel_detailed_flows.csv that SimCCL writes, with its first line";
        let Some((number, head)) = lines.next() else {
            return Err(Problem::new(from.name, "has no lines").help(help));
        };
        let head_fields: Vec<&str> = head.split(',').map(str::trim).collect();
        let mut at = [0; COLUMNS.len()];
        let mut missing = Vec::new();
        for (place, name) in at.iter_mut().zip(COLUMNS) {
            match head_fields.iter().position(|field| *field == name) {
                Some(found) => *place = found,
                None => missing.push(name),
            }
        }
        if !missing.is_empty() {
            let message = format!("the first line has no {}", missing.join(", "));
            return Err(Problem::new(from.name, message).at(number, 1, head).help(help));
        }
        let mut all = Lines { file: from.name, rows: Vec::new(), collectives: Vec::new(), wrong: Vec::new() };
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (line, source) in lines {
            let texts: Vec<&str> = source.split(',').collect();
            if texts.len() != head_fields.len() {
                let message = format!("{} fields, and the first line has {}", texts.len(), head_fields.len());
                all.wrong.push(Problem::new(from.name, message).at(line, 1, source).help("give the file whole"));
                continue;
            }
            let field = |which: usize| {
                let before = texts[..at[which]].iter().map(|text| text.chars().count() + 1).sum::<usize>();
                let text = texts[at[which]];
                let blank = text.chars().take_while(|c| c.is_whitespace()).count();
                Field { name: COLUMNS[which], text: text.trim(), line, column: before + blank + 1, source }
            };
            all.row([0, 1, 2, 3, 4, 5, 6].map(field), &mut known);
            if all.rows.len() as u64 > MAX_FLOWS {
                let message = format!("there are more than {MAX_FLOWS} flows");
                all.wrong.push(Problem::new(from.name, message).at(line, 1, source).help("give fewer of them"));
                break;
            }
        }
        Ok(all)
    }

    fn row(&mut self, fields: [Field<'a>; COLUMNS.len()], known: &mut HashMap<&'a str, usize>) {
        let [collective, id, src, dest, size, kind, parents] = fields;
        let file = self.file;
        if kind.text.starts_with("NVLS") {
            let message = format!("conn_type is {}: such a flow begins or ends at a switch", quoted(kind.text));
            let help = "let SimCCL write the list without NVLS (AS_NVLS_ENABLE=0): only hosts send and receive here";
            self.wrong.push(kind.problem(file, message, help));
            return;
        }
        let mut read =
            |field: Field<'_>, most: u64| field.number(file, most).map_err(|problem| self.wrong.push(problem)).ok();
        let numbers = (read(id, u64::MAX), read(src, MAX_RANKS - 1), read(dest, MAX_RANKS - 1), read(size, MAX_SIZE.0));
        let (Some(number), Some(from), Some(to), Some(size)) = numbers else { return };
        if from == to {
            let message = format!("dest is {to}, which is src");
            self.wrong.push(dest.problem(file, message, "name another rank"));
            return;
        }
        let collectives = &mut self.collectives;
        let collective = *known.entry(collective.text).or_insert_with(|| {
            collectives.push(collective.text);
            collectives.len() - 1
        });
        let (src, dest) = (from as u32, to as u32);
        self.rows.push(Row { collective, id: number, src, dest, size: size.max(1), first: id, parents });
    }
}

/// A list of flows as a scenario called `stem` and its schedule.
pub fn import(list: Text<'_>, stem: &str) -> Result<Imported, Problem> {
    let Lines { file, rows, collectives, mut wrong } = Lines::read(list)?;
    let mut numbers: HashMap<(usize, u64), usize> = HashMap::new();
    for (place, row) in rows.iter().enumerate() {
        if numbers.insert((row.collective, row.id), place).is_some() {
            let message = format!("flow_id {} is there twice in {}", row.id, quoted(collectives[row.collective]));
            wrong.push(row.first.problem(file, message, "give every flow of a collective an id of its own"));
        }
    }
    let mut after: Vec<After> = Vec::new();
    let id = |place: usize| FlowId(place as u32);
    for (place, row) in rows.iter().enumerate() {
        for text in row.parents.text.split(';').map(str::trim).filter(|text| !text.is_empty()) {
            let first = text.parse().ok().and_then(|number: u64| numbers.get(&(row.collective, number)));
            let wrong_with = |message: String, help: &str| row.parents.problem(file, message, help);
            match first.map(|&first| (first, &rows[first])) {
                Some((first, parent)) if parent.dest == row.src || parent.src == row.src => {
                    after.push(After { flow: id(place), first: id(first), gap: Time::ZERO });
                }
                Some(_) => {
                    let message =
                        format!("flow {text} neither begins nor ends at rank {}, which waits for it", row.src);
                    wrong.push(wrong_with(message, "let a rank wait for what it sends or receives"));
                }
                None => {
                    let message = format!("parent_flow_ids has {}, and the collective no such flow", quoted(text));
                    wrong.push(wrong_with(message, "give the file whole; several numbers have a ; between them"));
                }
            }
        }
    }
    if wrong.is_empty() && rows.is_empty() {
        wrong.push(Problem::new(file, "has no flows").help("give a list that has some"));
    }
    if let Some(problem) = problems(wrong, file) {
        return Err(problem);
    }
    let count = rows.iter().map(|row| row.src.max(row.dest)).max().unwrap_or(0) + 1;
    let shape = Star { hosts: count, ..Star::default() };
    let graph: Graph = shape.build().map_err(|error| Problem::new(file, error.problem()).help(error.remedy()))?;
    let flow = |row: &Row<'_>| FlowRequest {
        class: ClassId(0),
        ..FlowRequest::new(NodeId(row.src), NodeId(row.dest), row.size, Time::ZERO)
    };
    let mut weave = Weave { flows: rows.iter().map(flow).collect(), after, ..Weave::default() };
    in_turn(&mut weave, &rows, collectives.len());
    let Weave { flows, tasks, after, .. } = weave;
    let mut traffic = Traffic { flows, tasks, after, ..Traffic::default() };
    traffic.group("simccl");
    if let Err((flow, fault)) = traffic.check_after(&Names::new(&graph)) {
        let problem = Problem::new(file, fault.message).help("let no flow wait for itself, through others or not");
        let row = rows.get(flow.index());
        return Err(match row {
            Some(row) => problem.at(row.parents.line, row.parents.column, row.parents.source),
            None => problem,
        });
    }
    let mut imported = schedule(FROM, &graph, &traffic, stem)?;
    if collectives.len() > 1 {
        imported.notes.push(format!(
            "{} collectives, each once: a rank begins one when it has done its part in those before it in the list, which does not say when they begin",
            collectives.len()
        ));
    }
    Ok(imported)
}

/// Lets every rank begin a collective when it has sent and received all of those before it in the list.
fn in_turn(weave: &mut Weave, rows: &[Row<'_>], collectives: usize) {
    let mut of: Vec<Vec<usize>> = vec![Vec::new(); collectives];
    rows.iter().enumerate().for_each(|(place, row)| of[row.collective].push(place));
    // By rank, what has ended when its last collective has.
    let mut done: BTreeMap<u32, FlowId> = BTreeMap::new();
    // The last collective of a rank is waited for by nobody.
    let mut left: HashMap<u32, usize> = HashMap::new();
    let ranks =
        |places: &[usize]| places.iter().flat_map(|&at| [rows[at].src, rows[at].dest]).collect::<BTreeSet<u32>>();
    of.iter().for_each(|places| ranks(places).into_iter().for_each(|rank| *left.entry(rank).or_default() += 1));
    for places in &of {
        let mut parts: BTreeMap<u32, Vec<FlowId>> = BTreeMap::new();
        for &place in places {
            let (row, flow) = (&rows[place], FlowId(place as u32));
            weave.after.extend(done.get(&row.src).map(|&first| After { flow, first, gap: Time::ZERO }));
            parts.entry(row.src).or_default().push(flow);
            parts.entry(row.dest).or_default().push(flow);
        }
        for (rank, mut parts) in parts {
            let more = left.entry(rank).or_default();
            *more -= 1;
            if *more > 0 {
                // Its turn may be one in which it sends nothing.
                parts.extend(done.get(&rank));
                done.insert(rank, weave.task(NodeId(rank), Time::ZERO, Time::ZERO, parts));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "collective,op,data_size,algorithm,protocol,channel_id,flow_id,src,dest,flow_size,chunk_id,chunk_count,conn_type,parent_flow_ids,prev_flow_ids\n";

    fn of(text: &str) -> Result<Imported, String> {
        import(Text { name: "flows.csv", text }, "t").map_err(|problem| problem.to_string())
    }

    fn read(imported: &Imported, hosts: u32) -> Traffic {
        let graph = Star { hosts, ..Star::default() }.build().unwrap();
        traffic::read_goal(&imported.flows, &Names::new(&graph)).unwrap_or_else(|faults| panic!("{faults}"))
    }

    #[test]
    fn every_flow_and_dependency_is_accounted_for() {
        // A ring of three, in two steps: what a rank has received it sends on. The last columns are ranks.
        let list = format!(
            "{HEAD}TP_0,2,3000,1,0,0,0,0,1,1000,0,2,RING,,2\nTP_0,2,3000,1,0,0,1,1,2,1000,0,2,RING,,0\nTP_0,2,3000,1,0,0,2,2,0,1000,0,2,RING,,1\n\
             TP_0,2,3000,1,0,0,3,0,1,1000,1,2,RING,2,2\nTP_0,2,3000,1,0,0,4,1,2,1000,1,2,RING,0;1,0\nTP_0,2,3000,1,0,0,5,2,0,0,1,2,RING,1,1\n"
        );
        let made = of(&list).unwrap();
        assert!(made.notes.is_empty() && made.scenario.starts_with(FROM) && made.scenario.contains("hosts = 3"));
        let flat = read(&made, 3).without_tasks(1000).unwrap();
        let mut flows: Vec<(u32, u32, u64)> = flat.flows.iter().map(|f| (f.src.0, f.dst.0, f.size)).collect();
        let waits: BTreeSet<[u32; 4]> = flat
            .after
            .iter()
            .map(|wait| (&flat.flows[wait.flow.index()], &flat.flows[wait.first.index()]))
            .map(|(flow, first)| [first.src.0, first.dst.0, flow.src.0, flow.dst.0])
            .collect();
        flows.sort_unstable();
        assert_eq!(flows, [(0, 1, 1000), (0, 1, 1000), (1, 2, 1000), (1, 2, 1000), (2, 0, 1), (2, 0, 1000)]);
        // The fifth flow waits for one that its sender receives, and for one that it sends.
        let expected = [[0, 1, 1, 2], [1, 2, 1, 2], [1, 2, 2, 0], [2, 0, 0, 1]];
        assert_eq!(waits, BTreeSet::from(expected));
        assert_eq!(flat.after.len(), 4);
    }

    #[test]
    fn ranks_take_collectives_in_turn_and_older_lists_have_fewer_columns() {
        let head = HEAD.replace("algorithm,protocol,", "");
        let made = of(&format!(
            "{head}A,4,2,0,0,0,1,10,0,1,RING,,1\r\nA,4,2,0,1,2,3,20,0,1,RING,,3\r\n\nB,4,2,0,0,0,2,30,0,1,PTP,,2\r\n"
        ))
        .unwrap();
        assert!(made.notes[0].starts_with("2 collectives, each once"), "{:?}", made.notes);
        let flat = read(&made, 4).without_tasks(1000).unwrap();
        let size = |id: FlowId| flat.flows[id.index()].size;
        let waits: Vec<(u64, u64)> = flat.after.iter().map(|wait| (size(wait.flow), size(wait.first))).collect();
        assert_eq!(
            waits,
            [(30, 10)],
            "rank 0 sends when its first flow has gone; what 2 and 3 do is none of its concern"
        );
    }

    #[test]
    fn a_bad_record_is_named_and_so_are_the_others() {
        let good = "A,4,2,1,0,0,0,0,1,10,0,1,RING,,1\n";
        for (rows, words) in [
            ("A,4,2,1,0,0,1,0,x,10,0,1,RING,,1\n", "flows.csv:3:17: dest is \"x\""),
            ("A,4,2,1,0,0,1,0,0,10,0,1,RING,,1\n", "dest is 0, which is src"),
            ("A,4,2,1,0,0,1,-1,0,10,0,1,RING,,1\n", "src is \"-1\""),
            ("A,4,2,1,0,0,1,1,0,1e9,0,1,RING,,1\n", "flow_size is \"1e9\""),
            ("A,4,2,1,0,0,0,0,1,10,0,1,RING,,1\n", "flow_id 0 is there twice in \"A\""),
            ("A,4,2,1,0,0,1,1,0,10,0,1,RING,7,1\n", "parent_flow_ids has \"7\", and the collective no such flow"),
            ("B,4,2,1,0,0,1,1,0,10,0,1,RING,0,1\n", "parent_flow_ids has \"0\", and the collective no such flow"),
            ("A,4,2,1,0,0,1,2,3,10,0,1,RING,0,1\n", "flow 0 neither begins nor ends at rank 2"),
            ("A,4,2,1,0,0,1,1,0,10,0,1,RING,2,1\nA,4,2,1,0,0,2,0,1,10,0,1,RING,1,1\n", "wait"),
            ("A,4,2,1,0,0,1,1,0,10,0,1,NVLS,,1\n", "conn_type is \"NVLS\""),
            ("A,4,2,1,0\n", "5 fields, and the first line has 15"),
        ] {
            let said = of(&format!("{HEAD}{good}{rows}")).unwrap_err();
            assert!(said.contains(words), "{words} is not in {said}");
        }
        let both =
            of(&format!("{HEAD}A,4,2,1,0,0,1,x,y,10,0,1,RING,,1\nA,4,2,1,0,0,1,0,0,10,0,1,RING,,1\n")).unwrap_err();
        for words in ["src is \"x\"", "dest is \"y\"", "dest is 0, which is src"] {
            assert!(both.contains(words), "{words} is not in {both}");
        }
        assert!(of(&format!("{HEAD}{}", "A,4,2\n".repeat(30))).unwrap_err().contains("and 10 more problems"));
        assert!(of("").unwrap_err().contains("has no lines"));
        assert!(of(HEAD).unwrap_err().contains("has no flows"));
        let said = of("src,dst,size_bytes\n").unwrap_err();
        assert!(said.contains("the first line has no collective, flow_id, dest"), "{said}");
    }
}
