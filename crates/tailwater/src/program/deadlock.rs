//! `tailwater deadlock`: whether links can come to wait for one another in a cycle, and where.

use crate::program::commands::{Output, printed, say};
use fabric::topology::{Graph, Kind};
use files::problem::Problem;
use report::fabric::{Node, Picture, Wait};
use scenario::deadlock::{Answer, Scope, analyse};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// With `--fail`: it can deadlock.
const CAN: u8 = 4;

/// What `tailwater deadlock` is asked.
#[derive(clap::Args)]
pub struct Arguments {
    /// The scenario file.
    scenario: PathBuf,
    /// Override a key, as with `run`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Look at the scenario's own flows only, not at any traffic.
    #[arg(long)]
    flows: bool,
    /// Print the answer as JSON.
    #[arg(long)]
    json: bool,
    /// Draw the fabric with a cycle on it, if there is one; an image if the name ends in `.png`.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Exit with status 4 if it can deadlock, for scripts; otherwise either answer is a success.
    #[arg(long)]
    fail: bool,
}

/// `tailwater deadlock`.
pub fn deadlock(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let resolved = run::load(&arguments.scenario, &arguments.sets)?;
    if let Some(path) = &arguments.svg {
        crate::program::traffic::check_output(path, &arguments.scenario, &arguments.sets)?;
    }
    let scopes: &[Scope] = if arguments.flows { &[Scope::Flows] } else { &[Scope::Any, Scope::Flows] };
    let answer = analyse(&resolved, scopes)?;
    if let Some(path) = &arguments.svg {
        draw(&picture(&resolved.setup.graph, &answer), path)?;
    }
    printed(print(&answer, arguments.json))?;
    Ok(if arguments.fail && !answer.free() { ExitCode::from(CAN) } else { ExitCode::SUCCESS })
}

fn print(answer: &Answer, json: bool) -> Output {
    match json {
        true => say(serde_json::to_string_pretty(answer).map_err(std::io::Error::other)? + "\n"),
        false => say(answer.text()),
    }
}

fn draw(picture: &Picture, path: &Path) -> Result<(), Problem> {
    let ends = |ending: &str| path.extension().is_some_and(|own| own.eq_ignore_ascii_case(ending));
    let image = ends("png");
    if !image && !ends("svg") {
        let problem = Problem::new(path.display().to_string(), "is neither an .svg nor a .png file");
        return Err(problem.help("give --svg a name that ends in .svg or .png"));
    }
    let bytes = match image {
        true => (picture.drawing().png())
            .map_err(|error| Problem::new(path.display().to_string(), format!("cannot be drawn: {error}")))?,
        false => picture.svg().into_bytes(),
    };
    files::write_all(&[(path, bytes)])
}

/// The fabric, with the first cycle of the answer.
fn picture(graph: &Graph, answer: &Answer) -> Picture {
    let mut picture = Picture::new("deadlock", format!("{} under {}", answer.scenario, answer.flow_control));
    let node =
        |node: &fabric::topology::Node| Node { name: node.name.clone(), host: node.kind == Kind::Host, peak: None };
    picture.nodes = graph.nodes.iter().map(node).collect();
    picture.links = graph.links.iter().map(|link| (link.a.0, link.b.0)).collect();
    picture.subtitle = match answer.cases.iter().find(|case| !case.free) {
        None => "free of deadlock".into(),
        Some(case) => {
            let number = |name: &str| graph.nodes.iter().position(|node| node.name == name).unwrap_or(0) as u32;
            let wait = |step: &scenario::deadlock::Waiting| Wait {
                from: number(&step.from),
                to: number(&step.to),
                label: [step.lane.clone(), Some(format!("{} to {}", step.src, step.dst))]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(", "),
            };
            picture.cycle = case.cycle.iter().map(wait).collect();
            format!("can deadlock with {}, {}", case.whose(), case.links)
        }
    };
    picture.caption = "Links that can come to wait for one another in a cycle, in the order in which they wait.".into();
    picture
}
