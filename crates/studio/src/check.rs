//! What a scenario means, before it is run.

use crate::helper;
use crate::job::{input, inputs, problem_json};
use fabric::routing::PortMap;
use fabric::topology::Kind;
use lab::problem::Problem;
use lab::resolve::resolve;
use lab::scenario::Scenario;
use serde_json::{Value, json};
use std::path::Path;

/// Fabrics with more ports are not drawn.
const MOST_PORTS: usize = 100_000;

fn wrong(problems: &[Problem]) -> Value {
    json!({ "ok": false, "problems": problems.iter().map(problem_json).collect::<Vec<_>>() })
}

/// Reads a scenario, and says in JSON what it means or what is wrong with it. Files that it names are looked for in `base`.
pub fn answer(name: &str, text: &str, base: &Path, sets: &[String]) -> Value {
    let read = || -> Result<Value, Problem> {
        let scenario = Scenario::parse(name, text, base, sets)?;
        let groups = scenario.describe_groups();
        let topology = topology(&scenario);
        let resolved = resolve(scenario)?;
        let graph = &resolved.setup.graph;
        Ok(json!({
            "ok": true,
            "describe": resolved.describe() + &groups,
            "notes": resolved.notes,
            "nodes": graph.nodes.len(),
            "hosts": graph.hosts().count(),
            "flows": resolved.setup.flows.len(),
            "groups": resolved.groups,
            "topology": topology,
        }))
    };
    read().unwrap_or_else(|problem| wrong(&[problem]))
}

/// The fabric as a recording has it: nodes and ports.
fn topology(scenario: &Scenario) -> Value {
    let graph = &scenario.graph;
    if graph.links.len() * 2 > MOST_PORTS {
        return Value::Null;
    }
    let map = PortMap::new(graph);
    let nodes = (0..).zip(&graph.nodes).map(|(number, node)| {
        let switch = node.kind == Kind::Switch;
        let buffer = (switch && !scenario.switch.unlimited).then(|| scenario.buffer(number).0);
        json!({ "name": node.name, "kind": if switch { "switch" } else { "host" }, "tier": node.tier, "buffer": buffer })
    });
    let ports = map.node.iter().zip(&map.peer).zip(&map.link).map(|((node, peer), link)| {
        let link = &graph.links[*link as usize];
        json!({ "node": node, "peer": peer, "rate_bps": link.rate.0, "delay_ps": link.delay.0 })
    });
    json!({
        "kind": scenario.topology_kind(),
        "nodes": nodes.collect::<Vec<_>>(),
        "ports": ports.collect::<Vec<_>>(),
    })
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
