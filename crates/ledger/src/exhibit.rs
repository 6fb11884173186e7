//! From evidence to what an experiment has to show.

use crate::evidence::Evidence;
use crate::experiment::{Experiment, Kind};
use crate::papers;
use results::exhibit::{Column, Entry, Exhibit, Figure, Style};

/// What an experiment has to show, by the evidence.
pub fn exhibit(experiment: &Experiment, evidence: &Evidence<'_>) -> Exhibit {
    let figures = experiment.figures.iter().map(|figure| Figure {
        title: figure.title.clone(),
        style: match figure.kind {
            Kind::Lines { .. } => Style::Lines,
            Kind::Bars { .. } => Style::Bars,
            Kind::Cdf { .. } | Kind::Sizes { .. } => Style::Distribution,
            Kind::Series { .. } => Style::Series,
        },
        x: figure.x.clone(),
        y: figure.y.clone(),
        marks: figure.marks.clone(),
        plots: evidence.plots(figure),
    });
    let columns = experiment.columns.iter().map(|column| Column {
        title: column.title.clone(),
        unit: column.unit.clone(),
        better: column.better,
        entries: evidence
            .column(column)
            .into_iter()
            .map(|(name, measured)| {
                let measured = measured.ok();
                let interval = measured.as_ref().and_then(|measured| measured.interval);
                Entry { name: name.to_string(), value: measured.map(|measured| measured.value), interval }
            })
            .collect(),
    });
    let cited = std::iter::once(&experiment.document).chain(&experiment.cites);
    let cited: Vec<String> = cited.filter_map(|name| Some(papers::named(name)?.cite())).collect();
    Exhibit {
        id: experiment.id.clone(),
        title: experiment.title.clone(),
        citation: (!cited.is_empty()).then(|| cited.join("; ")),
        says: experiment.says.clone(),
        reading: experiment.reading.clone(),
        scenario: experiment.scenario.clone(),
        variants: experiment.variants.iter().map(|variant| variant.name.clone()).collect(),
        seeds: evidence.seeds().len(),
        scale: evidence.scale().name(),
        figures: figures.collect(),
        columns: columns.collect(),
    }
}
