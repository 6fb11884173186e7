//! The tables of causes: written by a run, read by whoever asks it.

use super::{Causes, Fill, Filler, How, Loss, Scope, Stop, Wait, Waiting};
use crate::records::{FlowRow, Records, link_names};
use crate::tables::{self, Column, Columns, Table};
use files::problem::Problem;
use std::collections::HashMap;

/// The table of stops.
pub const STOPS: &str = "stops.parquet";
/// The table of the flows that waited at them.
pub const WAITS: &str = "waits.parquet";
/// The table of what flows lost on links.
pub const LOSSES: &str = "losses.parquet";
/// The table of what was dropped for want of room; there only if something was.
pub const DROPS: &str = "drops.parquet";
/// The table of who filled ports because of which packets were dropped for want of room; there only if some were.
pub const FILLERS: &str = "fillers.parquet";

fn damaged(file: &str, what: &str) -> Problem {
    Problem::new(file, format!("is not what a run writes: {what}")).help("remove its folder and run the scenario again")
}

impl Causes {
    /// Reads the tables of a folder of results; `None` if the run was not asked why.
    pub fn open(records: &Records) -> Result<Option<Causes>, Problem> {
        let [stops, waits, losses, drops, fillers] =
            [STOPS, WAITS, LOSSES, DROPS, FILLERS].map(|name| records.folder.join(name));
        if !stops.is_file() {
            return Ok(None);
        }
        let mut all = Causes::of_links(records);
        all.read_stops(&tables::read(&stops)?)?;
        all.read_waits(&tables::read(&waits)?)?;
        // Earlier runs had none.
        if losses.is_file() {
            all.read_losses(&tables::read(&losses)?, LOSSES)?;
        }
        if drops.is_file() {
            all.read_losses(&tables::read(&drops)?, DROPS)?;
            all.losses.sort_by_key(|loss| (loss.port, loss.how));
        }
        if fillers.is_file() {
            all.read_fillers(&tables::read(&fillers)?)?;
        }
        Ok(Some(all))
    }

    /// No stops, and the names of all links.
    fn of_links(records: &Records) -> Causes {
        let mut nodes: Vec<String> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut place = |name| {
            *places.entry(name).or_insert_with(|| {
                nodes.push(String::from(name));
                nodes.len() - 1
            })
        };
        let ends = records.links.iter().map(|row| (place(row.from.as_str()), place(row.to.as_str()))).collect();
        let names = link_names(records.links.iter().map(|row| (row.from.as_str(), row.to.as_str())));
        let end_ps = records.summary["end_ps"].as_u64().unwrap_or(0);
        let ending = records.summary["ending"].as_str().unwrap_or_default();
        let ended = |row: &FlowRow| Some(row.start_ps?.saturating_add(row.received_ps?));
        let ended_ps = records.flows.iter().map(|row| ended(row).unwrap_or(u64::MAX)).collect();
        let (deadlock, stalled) = (ending == "deadlock", ["deadlock", "blocked", "lost"].contains(&ending));
        Causes { nodes, ends, names, ended_ps, end_ps, deadlock, stalled, ..Causes::default() }
    }

    fn read_stops(&mut self, table: &Table) -> Result<(), Problem> {
        let damaged = |what| damaged(STOPS, what);
        let port = table.counts("port")?;
        let (scope, number) = (table.texts("scope")?, table.counts("number")?);
        let (begin, end) = (table.counts("from_ps")?, table.maybe_counts("until_ps")?);
        let (by, ordered) = (table.texts("by")?, table.maybe_counts("ordered_ps")?);
        let filled = table.maybe_counts("filled_port")?;
        let (queue, bytes) = (table.counts("filled_queue")?, table.counts("filled_bytes")?);
        let (flows, waiting) = (table.counts("filled_flows")?, table.texts("waiting")?);
        let (also, rule) = (table.texts("also")?, table.texts("rule")?);
        let cause = table.maybe_counts("cause")?;
        let nodes: HashMap<String, usize> = self.nodes.iter().cloned().zip(0..).collect();
        let names: HashMap<String, u64> = self.names.iter().cloned().zip(0..).collect();
        let known = |port: u64| match (port as usize) < names.len() {
            true => Ok(port),
            false => Err(damaged("a port is not in links.parquet")),
        };
        let mut rules: HashMap<&str, usize> = HashMap::new();
        for row in 0..table.rows() {
            let fill = match filled[row] {
                None => None,
                Some(port) => {
                    let word = Waiting::ALL.iter().find(|(_, word)| *word == waiting[row]);
                    let &(waiting, _) = word.ok_or_else(|| damaged("a port waits for nothing that is known"))?;
                    Some(Fill { port: known(port)?, queue: queue[row], bytes: bytes[row], flows: flows[row], waiting })
                }
            };
            let others = also[row].split(", ").filter(|name| !name.is_empty());
            let others = others.map(|name| names.get(name).copied().ok_or_else(|| damaged("a link is not known")));
            let cause = cause[row].map(|cause| cause as usize);
            if cause.is_some_and(|cause| cause >= table.rows()) {
                return Err(damaged("a cause is not in it"));
            }
            let rule = (!rule[row].is_empty()).then(|| {
                *rules.entry(rule[row]).or_insert_with(|| {
                    self.rules.push(rule[row].into());
                    self.rules.len() - 1
                })
            });
            self.stops.push(Stop {
                port: known(port[row])?,
                scope: Scope::read(scope[row], number[row]).ok_or_else(|| damaged("a scope is not known"))?,
                from_ps: begin[row],
                until_ps: end[row],
                by: *nodes.get(by[row]).ok_or_else(|| damaged("a node has no link"))?,
                ordered_ps: ordered[row],
                fill,
                also: others.collect::<Result<_, _>>()?,
                rule,
                cause,
            });
        }
        Ok(())
    }

    fn read_waits(&mut self, table: &Table) -> Result<(), Problem> {
        let (stop, flow) = (table.counts("stop")?, table.counts("flow")?);
        let (time, victim) = (table.counts("waited_ps")?, table.counts("victim")?);
        for row in 0..table.rows() {
            let stop = stop[row] as usize;
            if stop >= self.stops.len() {
                return Err(damaged(WAITS, "a flow waited at a stop that there is not"));
            }
            self.waits.push(Wait { stop, flow: flow[row], time_ps: time[row], victim: victim[row] != 0 });
        }
        Ok(())
    }

    /// Adds what was lost on links, or dropped for want of room.
    fn read_losses(&mut self, table: &Table, file: &str) -> Result<(), Problem> {
        let damaged = |what| damaged(file, what);
        let rooms = file == DROPS;
        let (port, flow) = (table.counts("port")?, table.counts("flow")?);
        let how = if rooms { vec![How::Room.word(); table.rows()] } else { table.texts("how")? };
        let (packets, cost) = (table.counts("packets")?, table.counts("cost_ps")?);
        let (first, last) = (table.counts("first_ps")?, table.counts("last_ps")?);
        let none = || vec![None; table.rows()];
        let maybe = |name: &str| if rooms { table.maybe_counts(name) } else { Ok(none()) };
        let [filled, queue, bytes] = [maybe("filled_port")?, maybe("filled_queue")?, maybe("filled_bytes")?];
        let [flows, cause, victim] = [maybe("filled_flows")?, maybe("cause")?, maybe("victim")?];
        let waiting = if rooms { table.texts("waiting")? } else { vec![""; table.rows()] };
        let known = |port: u64| {
            let port = Some(port).filter(|port| (*port as usize) < self.names.len());
            port.ok_or_else(|| damaged("a port is not in links.parquet"))
        };
        let mut losses = Vec::with_capacity(table.rows());
        for row in 0..table.rows() {
            let way = How::ALL.iter().find(|(_, word)| *word == how[row]);
            let &(how, _) = way.ok_or_else(|| damaged("a packet was lost in no way that is known"))?;
            let fill = match filled[row] {
                None => None,
                Some(port) => {
                    let word = Waiting::ALL.iter().find(|(_, word)| *word == waiting[row]);
                    let &(waiting, _) = word.ok_or_else(|| damaged("a port waits for nothing that is known"))?;
                    let [queue, bytes, flows] = [&queue, &bytes, &flows].map(|of| of[row].unwrap_or(0));
                    Some(Fill { port: known(port)?, queue, bytes, flows, waiting })
                }
            };
            let cause = cause[row].map(|cause| cause as usize);
            if cause.is_some_and(|cause| cause >= self.stops.len()) {
                return Err(damaged("a cause is not among the stops"));
            }
            losses.push(Loss {
                port: known(port[row])?,
                how,
                flow: flow[row],
                packets: packets[row],
                first_ps: first[row],
                last_ps: last[row],
                cost_ps: cost[row],
                fill,
                cause,
                victim: victim[row] == Some(1),
            });
        }
        self.losses.extend(losses);
        Ok(())
    }

    fn read_fillers(&mut self, table: &Table) -> Result<(), Problem> {
        let (port, flow) = (table.counts("port")?, table.counts("flow")?);
        let (drops, bytes) = (table.counts("drops")?, table.counts("bytes")?);
        if port.iter().any(|port| *port as usize >= self.names.len()) {
            return Err(damaged(FILLERS, "a port is not in links.parquet"));
        }
        let filler = |row: usize| Filler { port: port[row], flow: flow[row], drops: drops[row], bytes: bytes[row] };
        self.fillers = (0..table.rows()).map(filler).collect();
        Ok(())
    }

    /// All tables, by the names of their files.
    pub fn columns(&self) -> Vec<(&'static str, Columns)> {
        let rows = || self.stops.iter();
        // What is not there is an empty text.
        let list = |names: &[String]| names.iter().cloned().chain([String::new()]).collect::<Vec<String>>();
        let (nodes, rules) = (list(&self.nodes), list(&self.rules));
        let from = |port: u64| self.ends[port as usize].0;
        let to = |port: u64| self.ends[port as usize].1;
        let filled = |end: &dyn Fn(u64) -> usize| {
            Column::named(&nodes, rows().map(|stop| stop.fill.map_or(self.nodes.len(), |fill| end(fill.port))))
        };
        let fill = |of: fn(Fill) -> u64| Column::counts(rows().map(move |stop| stop.fill.map_or(0, of)));
        let words = ["class", "queue", "held queue", "flow"];
        let scope = |stop: &Stop| words.iter().position(|word| *word == stop.scope.word()).unwrap_or(0);
        let waiting: Vec<&str> = Waiting::ALL.iter().map(|(_, word)| *word).chain([""]).collect();
        let waits_for = |fill: Option<Fill>| {
            let place = |fill: Fill| Waiting::ALL.iter().position(|(waiting, _)| *waiting == fill.waiting);
            fill.and_then(place).unwrap_or(Waiting::ALL.len())
        };
        let name = |port: &u64| self.port(*port);
        let mut also: Vec<String> = vec![String::new()];
        let others: Vec<usize> = rows()
            .map(|stop| {
                if stop.also.is_empty() {
                    return 0;
                }
                also.push(stop.also.iter().map(name).collect::<Vec<_>>().join(", "));
                also.len() - 1
            })
            .collect();
        let stops = vec![
            ("stop", Column::counts(0..self.stops.len() as u64)),
            ("port", Column::counts(rows().map(|stop| stop.port))),
            ("from", Column::named(&nodes, rows().map(|stop| from(stop.port)))),
            ("to", Column::named(&nodes, rows().map(|stop| to(stop.port)))),
            ("scope", Column::named(&words, rows().map(scope))),
            ("number", Column::counts(rows().map(|stop| stop.scope.number()))),
            ("from_ps", Column::counts(rows().map(|stop| stop.from_ps))),
            ("until_ps", Column::maybe_counts(rows().map(|stop| stop.until_ps))),
            ("by", Column::named(&nodes, rows().map(|stop| stop.by))),
            ("ordered_ps", Column::maybe_counts(rows().map(|stop| stop.ordered_ps))),
            ("filled_port", Column::maybe_counts(rows().map(|stop| stop.fill.map(|fill| fill.port)))),
            ("filled_from", filled(&from)),
            ("filled_to", filled(&to)),
            ("filled_queue", fill(|fill| fill.queue)),
            ("filled_bytes", fill(|fill| fill.bytes)),
            ("filled_flows", fill(|fill| fill.flows)),
            ("waiting", Column::named(&waiting, rows().map(|stop| waits_for(stop.fill)))),
            ("also", Column::named(&also, others.into_iter())),
            ("rule", Column::named(&rules, rows().map(|stop| stop.rule.unwrap_or(self.rules.len())))),
            ("cause", Column::maybe_counts(rows().map(|stop| stop.cause.map(|cause| cause as u64)))),
        ];
        let waits = vec![
            ("stop", Column::counts(self.waits.iter().map(|wait| wait.stop as u64))),
            ("flow", Column::counts(self.waits.iter().map(|wait| wait.flow))),
            ("waited_ps", Column::counts(self.waits.iter().map(|wait| wait.time_ps))),
            ("victim", Column::counts(self.waits.iter().map(|wait| wait.victim as u64))),
        ];
        // What was lost on links, or for want of room.
        let lost = |room: bool| {
            let rows = || self.losses.iter().filter(move |loss| (loss.how == How::Room) == room);
            let how = (!room).then(|| ("how", Column::texts(rows().map(|loss| loss.how.word()))));
            let mut columns = vec![
                ("port", Column::counts(rows().map(|loss| loss.port))),
                ("from", Column::named(&nodes, rows().map(|loss| from(loss.port)))),
                ("to", Column::named(&nodes, rows().map(|loss| to(loss.port)))),
            ];
            columns.extend(how);
            columns.extend([
                ("flow", Column::counts(rows().map(|loss| loss.flow))),
                ("packets", Column::counts(rows().map(|loss| loss.packets))),
                ("first_ps", Column::counts(rows().map(|loss| loss.first_ps))),
                ("last_ps", Column::counts(rows().map(|loss| loss.last_ps))),
                ("cost_ps", Column::counts(rows().map(|loss| loss.cost_ps))),
            ]);
            columns
        };
        let losses = lost(false);
        let mut all = vec![(STOPS, stops), (WAITS, waits), (LOSSES, losses)];
        if self.losses.iter().any(|loss| loss.how == How::Room) {
            let rows = || self.losses.iter().filter(|loss| loss.how == How::Room);
            let fill = |of: fn(Fill) -> u64| Column::counts(rows().map(move |loss| loss.fill.map_or(0, of)));
            let end = |end: &dyn Fn(u64) -> usize| {
                Column::named(&nodes, rows().map(|loss| loss.fill.map_or(self.nodes.len(), |fill| end(fill.port))))
            };
            let mut drops = lost(true);
            drops.extend([
                ("filled_port", Column::maybe_counts(rows().map(|loss| loss.fill.map(|fill| fill.port)))),
                ("filled_from", end(&from)),
                ("filled_to", end(&to)),
                ("filled_queue", fill(|fill| fill.queue)),
                ("filled_bytes", fill(|fill| fill.bytes)),
                ("filled_flows", fill(|fill| fill.flows)),
                ("waiting", Column::named(&waiting, rows().map(|loss| waits_for(loss.fill)))),
                ("cause", Column::maybe_counts(rows().map(|loss| loss.cause.map(|cause| cause as u64)))),
                ("victim", Column::counts(rows().map(|loss| loss.victim as u64))),
            ]);
            all.push((DROPS, drops));
        }
        if !self.fillers.is_empty() {
            let rows = || self.fillers.iter();
            let fillers = vec![
                ("port", Column::counts(rows().map(|filler| filler.port))),
                ("from", Column::named(&nodes, rows().map(|filler| from(filler.port)))),
                ("to", Column::named(&nodes, rows().map(|filler| to(filler.port)))),
                ("flow", Column::counts(rows().map(|filler| filler.flow))),
                ("drops", Column::counts(rows().map(|filler| filler.drops))),
                ("bytes", Column::counts(rows().map(|filler| filler.bytes))),
            ];
            all.push((FILLERS, fillers));
        }
        all
    }
}
