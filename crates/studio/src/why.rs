//! Why a run was slow: what the page asks of a folder of results, answered by a process of its own.

use crate::limits;
use crate::results::flows;
use files::problem::Problem;
use results::causes::{Causes, Root, Stop, Waited};
use results::explain::{Question, explain};
use results::records::{FlowRow, Records};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Victims of a root that are named.
const VICTIMS: usize = 40;
/// Waits of a flow that are listed.
const WAITS: usize = 5000;

/// The words of a query.
pub type Words = HashMap<String, String>;

/// Answers a question of a page about a folder of results: `flows`, `why` or `stops`, each with words in JSON. Gives JSON with the answer,
/// or with an error.
pub fn ask(what: &str, folder: &Path, query: &str) -> Value {
    let words = serde_json::from_str(query).map_err(|error| Problem::new("the query", error.to_string()));
    let answer = words.and_then(|words: Words| match what {
        "flows" => flows(folder, &words),
        "why" => why(folder, &words),
        "stops" => stops(folder, &words),
        _ => Err(Problem::new(what, "is no question").help("ask for flows, why or stops")),
    });
    answer.unwrap_or_else(|problem| json!({ "error": problem.json() }))
}

/// Refuses words that are not among those known.
pub fn check(query: &Words, known: &[&str]) -> Result<(), Problem> {
    match query.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            Err(Problem::new(key.as_str(), "is not known").help(format!("the words are {}", known.join(", "))))
        }
        None => Ok(()),
    }
}

/// A whole number among the words.
pub fn number(query: &Words, key: &str) -> Result<Option<u64>, Problem> {
    let wrong = |_| Problem::new(key, "is not a whole number").help("write one, or leave it out");
    query.get(key).map(|text| text.parse().map_err(wrong)).transpose()
}

/// The run, and its stops where they were kept.
fn open(folder: &Path) -> Result<(Records, Causes), Problem> {
    let records = store::open(folder)?;
    match Causes::open(&records)? {
        Some(causes) => Ok((records, causes)),
        None => Err(Problem::new("this run", "was not asked why, so nothing of it was kept")
            .help("run it again with measure.why = true")),
    }
}

/// What `tailwater explain` says of a flow, a link, an instant or the whole run. Each root has its words and its victims besides, and a flow
/// the stops at which it waited.
fn why(folder: &Path, query: &Words) -> Result<Value, Problem> {
    check(query, &["flow", "link", "at"])?;
    let question = match (number(query, "flow")?, query.get("link"), number(query, "at")?) {
        (None, None, None) => Question::Run,
        (Some(flow), None, None) => Question::Flow(flow),
        (None, Some(link), None) => Question::Link(link.clone()),
        (None, None, Some(at)) => Question::At(at),
        _ => return Err(Problem::new("the query", "asks for several at once").help("write one of flow, link and at")),
    };
    let (records, causes) = open(folder)?;
    let table = results::parts::open(folder)?;
    let parts = table.as_ref().map(results::parts::rows).transpose()?.unwrap_or_default();
    let mut answer = explain(&records, &causes, &parts, &question)?.json;
    let (roots, of_stop) = causes.forest();
    if question == Question::Run {
        answer["causes"] = roots.iter().map(|root| json!({ "root": root })).collect();
        answer["roots"] = Value::Null;
    }
    let mut told = Told { records: &records, causes: &causes, roots: &roots, of_stop: &of_stop };
    for cause in answer["causes"].as_array_mut().into_iter().flatten() {
        told.add(&mut cause["root"]);
    }
    if let Question::Link(link) = &question {
        // What grew from it, where it is a root itself.
        let named = |root: &&Root| root.ports.iter().any(|port| port.eq_ignore_ascii_case(&link.replace(' ', "")));
        let own = roots.iter().filter(named).map(|root| {
            let mut json = json!(root);
            told.add(&mut json);
            json
        });
        answer["root"] = own.collect();
    }
    if let Question::Flow(flow) = question {
        let waits = causes.waits.iter().filter(|wait| wait.flow == flow).take(WAITS);
        let wait = |wait: &results::causes::Wait| {
            let until = causes.until(wait.stop);
            json!([wait.stop, until.saturating_sub(wait.time_ps), until, of_stop[wait.stop]])
        };
        answer["waits"] = waits.map(wait).collect();
    }
    Ok(answer)
}

struct Told<'a> {
    records: &'a Records,
    causes: &'a Causes,
    roots: &'a [Root],
    of_stop: &'a [usize],
}

impl Told<'_> {
    /// Puts its words, its victims and the ports that it stopped into a root in JSON.
    fn add(&mut self, json: &mut Value) {
        let same = |root: &Root| {
            // A scheme may hold by several rules at one node.
            json["place"] == root.place && json["kind"] == json!(root.kind) && json["rule"] == json!(root.rule)
        };
        let Some(place) = self.roots.iter().position(same) else { return };
        let root = &self.roots[place];
        json["clause"] = json!(root.clause());
        json["sentence"] = json!(root.sentence(&self.records.flows));
        let victims = self.causes.victims(self.of_stop, place);
        json["victim_flows"] = victims.iter().take(VICTIMS).map(|waited| self.victim(waited)).collect();
        // From each port to the one that it waited for: the congestion tree.
        let stops = self.causes.stops.iter().zip(self.of_stop).filter(|(_, of)| **of == place);
        let mut tree: Vec<(u64, Option<u64>)> =
            stops.map(|(stop, _)| (stop.port, stop.fill.map(|fill| fill.port))).collect();
        tree.sort_unstable();
        tree.dedup();
        json["tree"] = json!(tree);
    }

    fn victim(&self, waited: &Waited) -> Value {
        let &Waited { flow, waited_ps, for_ever } = waited;
        let row: Option<&FlowRow> = self.records.flows.get(flow as usize);
        json!({
            "flow": flow,
            "waited_ps": waited_ps,
            "for_ever": for_ever,
            "src": row.map(|row| &row.src),
            "dst": row.map(|row| &row.dst),
            "group": row.map(|row| &row.group),
            "slowdown": row.and_then(|row| row.slowdown),
        })
    }
}

/// The stops around an instant, column by column, with all that caused them: [`limits::STOPS`] that begin next to it, and those that last
/// until then. Numbers of ports are those of a recording.
fn stops(folder: &Path, query: &Words) -> Result<Value, Problem> {
    check(query, &["at"])?;
    let at = number(query, "at")?.unwrap_or(0);
    let (_, causes) = open(folder)?;
    Ok(columns(&causes, &around(&causes, at, limits::STOPS)))
}

/// Rows in order of time, of which the first and the last of those that follow each other are told.
struct Around {
    rows: Vec<usize>,
    begin: usize,
    end: usize,
}

fn around(causes: &Causes, at: u64, most: usize) -> Around {
    let count = causes.stops.len();
    let middle = causes.stops.partition_point(|stop| stop.from_ps < at);
    let begin = middle.saturating_sub(most / 2).min(count.saturating_sub(most));
    let end = count.min(begin + most);
    let mut rows: HashSet<usize> = (begin..end).collect();
    if let Some(first) = causes.stops.get(begin) {
        rows.extend((0..begin).rev().filter(|&row| causes.until(row) > first.from_ps).take(most));
    }
    let mut open: Vec<usize> = rows.iter().copied().collect();
    while let Some(row) = open.pop() {
        open.extend(causes.stops[row].cause.filter(|&cause| rows.insert(cause)));
    }
    let mut rows: Vec<usize> = rows.into_iter().collect();
    rows.sort_unstable();
    Around { rows, begin, end }
}

fn columns(causes: &Causes, around: &Around) -> Value {
    let Around { rows, begin, end } = around;
    let of = |value: &dyn Fn(&Stop) -> Value| rows.iter().map(|&row| value(&causes.stops[row])).collect::<Value>();
    let place: HashMap<usize, usize> = rows.iter().enumerate().map(|(place, &row)| (row, place)).collect();
    // From where to where nothing is left out.
    let whole = *begin == 0 && *end == causes.stops.len();
    let from = if whole { 0 } else { causes.stops[*begin].from_ps };
    let until = if *end == causes.stops.len() { causes.end_ps } else { causes.stops[*end].from_ps };
    json!({
        "total": causes.stops.len(),
        "from_ps": from,
        "until_ps": until,
        "end_ps": causes.end_ps,
        "nodes": causes.nodes,
        "stop": rows,
        "port": of(&|stop| json!(stop.port)),
        "scope": of(&|stop| json!(stop.scope.word())),
        "number": of(&|stop| json!(stop.scope.number())),
        "begin": of(&|stop| json!(stop.from_ps)),
        "end": of(&|stop| json!(stop.until_ps)),
        "by": of(&|stop| json!(stop.by)),
        "ordered": of(&|stop| json!(stop.ordered_ps)),
        "filled": of(&|stop| json!(stop.fill.map(|fill| fill.port))),
        "bytes": of(&|stop| json!(stop.fill.map_or(0, |fill| fill.bytes))),
        "flows": of(&|stop| json!(stop.fill.map_or(0, |fill| fill.flows))),
        "waiting": of(&|stop| json!(stop.fill.map(|fill| fill.waiting.word()))),
        "cause": of(&|stop| json!(stop.cause.and_then(|cause| place.get(&cause)))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::causes::{Fill, Scope, Waiting};

    /// So many stops of 100 ps, one after the other, of which each waits for the one before; and one that lasts.
    fn causes(count: usize) -> Causes {
        let fill = Fill { port: 1, queue: 0, bytes: 5, flows: 2, waiting: Waiting::Busy };
        let stop = |row: usize| Stop {
            port: row as u64 % 3,
            scope: Scope::Class(0),
            from_ps: row as u64 * 100,
            until_ps: (row > 0).then_some(row as u64 * 100 + 100),
            by: 0,
            ordered_ps: None,
            fill: Some(fill),
            also: Vec::new(),
            rule: None,
            cause: (!row.is_multiple_of(10)).then(|| row - 1),
        };
        let names = (0..3).map(|port| format!("a{port}->b")).collect();
        let stops = (0..count).map(stop).collect();
        Causes { nodes: vec!["b".into()], names, stops, end_ps: count as u64 * 100 + 50, ..Causes::default() }
    }

    #[test]
    fn of_very_many_stops_those_around_an_instant_come_with_all_that_caused_them() {
        let causes = causes(100);
        let all = columns(&causes, &around(&causes, 0, 1000));
        assert_eq!((&all["total"], &all["from_ps"], &all["until_ps"]), (&json!(100), &json!(0), &json!(10_050)));
        assert_eq!(all["stop"].as_array().unwrap().len(), 100);
        let some = columns(&causes, &around(&causes, 5_550, 10));
        // Rows 51 to 60, with 50, which caused 51; row 0 lasts until the end.
        let rows: Vec<u64> = some["stop"].as_array().unwrap().iter().map(|row| row.as_u64().unwrap()).collect();
        assert_eq!(rows, [vec![0, 50], (51..=60).collect()].concat());
        assert_eq!((&some["from_ps"], &some["until_ps"]), (&json!(5_100), &json!(6_100)));
        assert_eq!(some["cause"], json!([null, null, 1, 2, 3, 4, 5, 6, 7, 8, 9, null]));
        assert_eq!(around(&causes, u64::MAX, 10).rows.last(), Some(&99));
        assert_eq!(columns(&Causes::default(), &around(&Causes::default(), 7, 10))["stop"], json!([]));
    }

    #[test]
    fn what_is_asked_is_known() {
        let said = |what: &str, query: &str| ask(what, Path::new("/nowhere"), query)["error"]["message"].to_string();
        assert!(said("weather", "{}").contains("no question"));
        assert!(said("why", "{\"colour\":\"1\"}").contains("not known"));
        assert!(said("why", "{\"flow\":\"1\",\"at\":\"2\"}").contains("several at once"));
        assert!(said("why", "{\"flow\":\"x\"}").contains("not a whole number"));
        assert!(said("stops", "nonsense").contains("expected"));
    }
}
