//! The pages that have every published number: what each paper says, what was measured, and the figures.

use crate::papers;
use crate::published::{Published, Row, cell};
use results::verdict::Judged;

/// Where the pages are, in the repository.
pub const FOLDER: &str = "docs/numbers";

/// A page for every paper that has something published, by the name of its file.
pub fn pages(rows: &[Row]) -> Vec<(String, String)> {
    let mut keys: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| row.published.is_some()) {
        if !keys.contains(&row.key()) {
            keys.push(row.key());
        }
    }
    keys.into_iter().map(|key| (format!("{key}.md"), page(rows, key))).collect()
}

fn page(rows: &[Row], key: &str) -> String {
    let own = rows.iter().filter(|row| row.key() == key);
    let published: Vec<(&Row, &Published)> = own.filter_map(|row| Some((row, row.published.as_ref()?))).collect();
    let first = published.first().map(|(_, first)| &first.paper);
    let name = first.filter(|paper| !papers::shared(key, paper)).map_or(key, |paper| paper);
    let mut out = format!("# Every published number: {name}\n\n");
    out += &format!(
        "What [the table of the page on it](../{key}.md) says in a line for each row, one by one. `tailwater claims --write-docs` makes this page \
         from `published/{key}/`. Numbers in parentheses are 95 % intervals; [*same in all seeds*](../ledger.md#verdicts) is an exact answer and no sample, *with any seed left out* need not be; *asked* is what \
         is measured and not judged; [what the other words mean](../ledger.md#verdicts). In figures, a band around a line, and a whisker elsewhere, is the \
         95 % interval of each point over seeds, drawn from three seeds on; distributions are of the samples of all seeds together, courses over time of the first \
         seed, and neither has an interval.\n"
    );
    published.iter().for_each(|(row, published)| out += &section(published, &row.whence()));
    out
}

fn section(row: &Published, whence: &str) -> String {
    let seeds = match row.seeds.len() {
        0 => "no seed: nothing is drawn".into(),
        1 => "1 seed".into(),
        seeds => format!("{seeds} seeds"),
    };
    let mut out = format!("\n## {}\n\n{} ({}). ", row.id, cell(&row.title), whence);
    out += &format!("**{}**", row.verdict.name());
    if row.claims > 0 {
        out += &format!(", {} of {}", row.hold, row.claims);
    }
    let again = row.judged.as_ref().map_or(String::new(), |date| format!(" (judged again {date})"));
    out += &format!(
        ". {} scale, {seeds}, {} runs, version {}, {}{again}: `{}`, of [this experiment](../../experiments/{}.toml).\n\n",
        initial(&row.scale),
        row.runs,
        row.version,
        row.date,
        row.command,
        row.id
    );
    out += "| the paper | measured | expected | |\n|---|---|---|---|\n";
    row.expectations.iter().for_each(|judged| out += &line(judged));
    let folder = row.id.split('/').next().unwrap_or_default();
    for (number, figure) in (1..).zip(&row.figures) {
        out += &format!("\n![{}, figure {number}](../../published/{folder}/{figure})\n", cell(&row.title));
    }
    out
}

fn line(judged: &Judged) -> String {
    let few = judged.few().map_or(String::new(), |few| format!(" ({few})"));
    let why = judged.why.as_ref().map_or(String::new(), |why| format!(": {}", cell(why)));
    let (measured, expected) = (judged.measured(), judged.expected());
    format!("| {} | {measured}{few} | {expected} | {}{why} |\n", cell(&judged.paper), judged.holds.name())
}

/// With a capital letter.
fn initial(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
