//! When collectives are done, computed by hand.

use scenario::Scenario;
use scenario::resolve::resolve;
use std::path::Path;

fn run(text: &str) -> run::Finished {
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]);
    let resolved = scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
    run::run(resolved, &mut |_, _| true)
}

const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 8\n[scheme]\npreset = \"pfc\"\n";

#[test]
fn a_ring_takes_its_steps_one_after_the_other() {
    // Two hosts and 2 KB: a kilobyte each way at once, and then another, each as if it were alone, but that the ACK of the first goes out
    // before the second: 66 bytes at 100 Gbps. Background traffic goes on for longer.
    let text = format!(
        "{STAR}[[collective]]\nkind = \"ring-all-reduce\"\nhosts = [\"h0\", \"h1\"]\nsize = \"2KB\"\nrounds = 3\ngap = \"7us\"\nstart = \"1us\"\n\
         [[flow]]\nsrc = \"h4\"\ndst = \"h5\"\nsize = \"3MB\"\n"
    );
    let finished = run(&text);
    let alone = finished.outcome.flows.iter().map(|flow| flow.spec.ideal).min().unwrap().0;
    let round = 2 * alone + 5_280;
    let [ring] = finished.summary.collectives.as_slice() else { panic!("one collective") };
    assert_eq!((ring.kind, ring.hosts, ring.steps, ring.rounds, ring.finished), ("ring-all-reduce", 2, 2, 3, 3));
    let spread = &ring.completion_ps;
    assert_eq!((spread.mean, spread.max), (Some(round as f64), Some(round as f64)));
    assert_eq!(ring.total_ps, Some(3 * round + 2 * 7_000_000));
    assert!(finished.summary.end_ps > 2 * ring.total_ps.unwrap(), "the end of the run says nothing about it");

    let tables = finished.tables();
    let (_, columns) = tables.iter().find(|(name, _)| *name == "collectives.parquet").expect("a table of collectives");
    let bytes = results::tables::encode(columns);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.parquet"), bytes).unwrap();
    let table = results::tables::read(&folder.path().join("a.parquet")).unwrap();
    assert_eq!(table.rows(), 9, "three rounds and six steps");
    assert_eq!(table.maybe_counts("step").unwrap()[..4], [None, Some(0), Some(1), None]);
    assert_eq!(table.counts("completion_ps").unwrap()[..3], [round, alone, alone + 5_280]);
    assert_eq!(table.counts("start_ps").unwrap()[0], 1_000_000);
}

#[test]
fn a_round_that_is_cut_off_is_not_done() {
    let text = format!(
        "stop = \"20us\"\n{STAR}[[collective]]\nkind = \"all-to-all\"\nsize = \"70KB\"\nrounds = 40\n\
         [[collective]]\nkind = \"halving-doubling-all-reduce\"\nsize = \"1KB\"\nstart = \"3us\"\n"
    );
    let finished = run(&text);
    let [exchange, reduce] = finished.summary.collectives.as_slice() else { panic!("two collectives") };
    assert_eq!(
        (exchange.name.as_str(), exchange.steps, reduce.name.as_str(), reduce.steps),
        ("collective", 1, "collective2", 6)
    );
    assert!(exchange.finished > 0 && exchange.finished < 40 && exchange.total_ps.is_none(), "{exchange:?}");
    assert_eq!((reduce.finished, reduce.total_ps.is_some()), (1, true));
}
