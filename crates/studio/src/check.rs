//! What a scenario means, before it is run.

use crate::helper;
use crate::job::{input, inputs};
use files::problem::Problem;
use run::recording::Scene;
use scenario::Scenario;
use scenario::resolve::resolve;
use serde_json::{Value, json};
use std::path::Path;

/// Fabrics with more ports are not drawn.
const MOST_PORTS: usize = 100_000;

fn wrong(problems: &[Problem]) -> Value {
    json!({ "ok": false, "problems": problems.iter().map(Problem::json).collect::<Vec<_>>() })
}

/// Reads a scenario, and says in JSON what it means or what is wrong with it. Files that it names are looked for in `base`.
pub fn answer(name: &str, text: &str, base: &Path, sets: &[String]) -> Value {
    let read = || -> Result<Value, Problem> {
        let scenario = Scenario::parse(name, text, base, sets)?;
        let groups = scenario.describe_groups();
        let resolved = resolve(scenario)?;
        let graph = &resolved.setup.graph;
        let drawn = graph.links.len() * 2 <= MOST_PORTS;
        Ok(json!({
            "ok": true,
            "describe": resolved.describe() + &groups,
            "notes": resolved.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "nodes": graph.nodes.len(),
            "hosts": graph.hosts().count(),
            "flows": resolved.setup.flows.len(),
            "scene": drawn.then(|| Scene::new(&resolved)),
        }))
    };
    read().unwrap_or_else(|problem| wrong(&problem.split()))
}

/// The same by a process of its own.
pub async fn aside(program: &Path, base: &Path, text: &str, sets: &[String]) -> Value {
    let names = inputs(text, sets, &[]);
    let allowed = names.and_then(|names| names.iter().try_for_each(|name| input(base, name).map(drop)));
    if let Err(problem) = allowed {
        return wrong(&[problem]);
    }
    let options = ["check", "-", "--json"].map(String::from).into_iter();
    let arguments: Vec<String> = options.chain(sets.iter().map(|set| format!("--set={set}"))).collect();
    helper::ask(program, base, &arguments, text).await.unwrap_or_else(|problem| wrong(&[problem]))
}
