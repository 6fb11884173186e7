//! What a report says of jobs: how long their iterations took, what bounds them, and what they sent.

use crate::format::Format;
use crate::page::{Cell, Column, Section, Table};
use results::records::Records;
use serde_json::Value;

fn time(value: &Value) -> String {
    value.as_f64().map_or("–".into(), |ps| Format::Time.exact(ps / 1e12))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

fn rate(value: &Value) -> String {
    value.as_f64().map_or("–".into(), |bps| Format::Rate.exact(bps))
}

/// A sentence on a job: what takes most of its iterations.
fn sentence(job: &Value) -> Option<String> {
    let (took, compute, alone) =
        (job["iteration_ps"]["mean"].as_f64()?, job["compute_ps"].as_f64()?, job["alone_ps"].as_f64()?);
    // Packets that take a nearer path than routing's rule are sooner than that says of them alone.
    let alone = alone.min(took).max(compute);
    let share = |part: f64| Format::Percent.show(part / took.max(1.0));
    let bound = match job["bound"].as_str()? {
        "messages" => {
            let adds = |one: &&Value| one["adds_ps"].as_f64().unwrap_or(0.0);
            let parts = job["collectives"].as_array().filter(|parts| parts.len() > 1);
            let most = parts.and_then(|parts| parts.iter().max_by(|a, b| adds(a).total_cmp(&adds(b))));
            let most = most.map_or(String::new(), |one| format!(" most by {} parallelism,", text(&one["name"])));
            format!("the network,{most} even if every message had it to itself")
        }
        "contention" => "messages that share links and queues".into(),
        _ => "compute".to_string(),
    };
    Some(format!(
        "{} is bound by {bound}: of an iteration of {}, compute with its bubbles and stragglers is {}, messages alone add {}, and contention adds {}.",
        text(&job["name"]),
        Format::Time.exact(took / 1e12),
        share(compute),
        share(alone - compute),
        share(took - alone)
    ))
}

/// The section of a run's jobs; `None` where it has none.
pub(crate) fn section(run: &Records) -> Option<Section> {
    let jobs = run.summary["jobs"].as_array().filter(|jobs| !jobs.is_empty())?;
    let mut section = Section::new("Jobs");
    jobs.iter().filter_map(sentence).for_each(|said| section.push(said.as_str()));
    let names = ["ranks", "iterations done", "mean", "p99", "compute", "alone", "exposed"];
    let row = |job: &Value| -> Vec<Cell> {
        let done = format!("{} of {}", job["finished"], job["iterations"]);
        let spread = &job["iteration_ps"];
        let times =
            [&spread["mean"], &spread["p99"], &job["compute_ps"], &job["alone_ps"], &job["exposed_ps"]].map(time);
        let first = [text(&job["name"]), job["ranks"].to_string(), done];
        first.into_iter().chain(times).map(Cell::from).collect()
    };
    section.push(Table {
        caption: "Iterations: what they took; what they would take if messages took no time, and if each had the network to itself; and what \
                  communication adds to compute."
            .into(),
        columns: [Column::text("job")].into_iter().chain(names.map(Column::number)).collect(),
        rows: jobs.iter().map(row).collect(),
    });
    let mut sent = Table {
        caption: "Collectives: what they take; by how much an iteration is longer than if they took no time, every other message having the network to itself; and algorithm and bus bandwidth as NCCL's tests define them.".into(),
        columns: [Column::text("job"), Column::text("parallelism"), Column::text("collective")]
            .into_iter()
            .chain(["count", "ranks", "size", "mean", "p99", "adds", "algorithm", "bus"].map(Column::number))
            .collect(),
        rows: Vec::new(),
    };
    for job in jobs {
        for one in job["collectives"].as_array().into_iter().flatten() {
            let size = one["bytes"].as_f64().map_or("–".into(), |bytes| Format::Bytes.show(bytes));
            let spread = &one["completion_ps"];
            let cells = [
                text(&job["name"]),
                text(&one["name"]),
                text(&one["kind"]),
                one["count"].to_string(),
                one["ranks"].to_string(),
                size,
                time(&spread["mean"]),
                time(&spread["p99"]),
                time(&one["adds_ps"]),
                rate(&one["algorithm_bps"]),
                rate(&one["bus_bps"]),
            ];
            sent.rows.push(cells.into_iter().map(Cell::from).collect());
        }
    }
    section.push(sent);
    Some(section)
}
