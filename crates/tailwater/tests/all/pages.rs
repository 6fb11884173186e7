//! Pages of the ledger's own experiments.

use ledger::evidence::Evidence;
use ledger::exhibit;
use ledger::experiment::Scale;
use report::{Format, Page, claims};
use results::exhibit::Exhibit;

/// A text as it stands in a page.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

#[test]
fn an_experiments_page_has_its_verdict_its_figure_and_the_link_back() {
    let experiment = ledger::named("bfc/fig4").unwrap().remove(0);
    let evidence = Evidence::new(&experiment, Scale::Quick, ledger::sizes());
    let verdict = ledger::judge(&experiment, Scale::Quick, &evidence);
    let report = claims::experiment(&exhibit(&experiment, &evidence), &verdict, "tailwater reproduce bfc/fig4");
    let [figure] = &report.figures[..] else { panic!("one figure") };
    assert_eq!((figure.id.as_str(), figure.series.len()), ("1-cumulative-bytes-by-flow-size", 3));
    assert_eq!((figure.x.format, figure.marks[1].at), (Format::Bytes, 150_000.0));
    let html = report.page.html();
    for part in ["Verdict", "large majority", "tailwater reproduce bfc/fig4", "flows_share"] {
        assert!(html.contains(part), "{part}");
    }
    let index = claims::ledger(&[verdict]).html();
    assert!(index.contains("bfc/fig4/report.html") && index.contains("of 8"));
}

#[test]
fn the_leagues_page_has_every_fabric_with_its_ranking() {
    let experiments = ledger::named("league").unwrap();
    let pages: Vec<(Exhibit, Page)> = experiments
        .iter()
        .map(|experiment| {
            let evidence = Evidence::new(experiment, Scale::Quick, ledger::sizes());
            let verdict = ledger::judge(experiment, Scale::Quick, &evidence);
            let exhibit = exhibit(experiment, &evidence);
            let page = claims::experiment(&exhibit, &verdict, "tailwater league").page;
            (exhibit, page)
        })
        .collect();
    let all: Vec<(&Exhibit, &str, &Page)> = pages.iter().map(|(exhibit, page)| (exhibit, "folder", page)).collect();
    let html = claims::league(&all).html();
    assert!(experiments.len() >= 3);
    for experiment in &experiments {
        assert!(html.contains(&escaped(&experiment.title)) && html.contains(&experiment.id));
    }
    assert_eq!(html.matches("A rank says how many are better for certain").count(), experiments.len());
}
