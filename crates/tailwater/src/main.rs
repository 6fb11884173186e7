//! temporary
use std::path::Path;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let inputs = match lab::ns3::read(Path::new(&args[2])) { Ok(i) => i, Err(e) => { eprintln!("{e}"); std::process::exit(1) } };
    let t = lab::ns3::translate::translate(&inputs).unwrap();
    let graph = t.setup.graph.clone();
    let map = fabric::routing::PortMap::new(&graph);
    let start = std::time::Instant::now();
    let outcome = t.run(&mut |_, _| true);
    println!("{}", lab::ns3::output::summary(&outcome, start.elapsed()));
    for v in &outcome.violations { println!("VIOLATION {v}"); }
    println!("{:?} {:?}", outcome.counts, outcome.stall);
    std::fs::write(&inputs.config.fct_output_file, lab::ns3::output::fct(&outcome)).unwrap();
    std::fs::write(&inputs.config.pfc_output_file, lab::ns3::output::pfc(&outcome, &graph, &map)).unwrap();
}
