//! `--within`: what `run`, `compare` and `sweep` need for runs that skip what is steady.

use crate::program::commands::say;
use engine::Bytes;
use files::problem::Problem;
use run::bench::forward::{Compared, Traffic, race, scenario};
use serde_json::Value;
use std::fmt;
use std::process::ExitCode;

/// A share, as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    written: String,
    value: f64,
}

impl Share {
    /// The change to a scenario that says so.
    pub fn set(&self) -> String {
        format!("fast_forward.within={}", self.value)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// Reads a share such as `1%` or `0.01`.
pub fn share(text: &str) -> Result<Share, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let value = number.trim().parse::<f64>().ok().map(|value| value / unit);
    let value = value.filter(|value| *value > 0.0 && *value <= 0.5);
    let value =
        value.ok_or("write a share above zero and up to a half, such as 1% or 0.01, or leave the option out")?;
    Ok(Share { written: text.into(), value })
}

/// Those of some results that may have skipped something.
fn skipping(summaries: &[&Value]) -> Vec<Value> {
    let all = summaries.iter().filter_map(|summary| summary.get("fast_forward"));
    all.filter(|about| about["jumps"].as_u64().unwrap_or(0) > 0 && about["fell_back"] != true).cloned().collect()
}

/// What a title says of results of which some skip something.
pub fn titled(summaries: &[&Value]) -> &'static str {
    if skipping(summaries).is_empty() { "" } else { ": fast-forward, not all simulated" }
}

/// What is to be said of results of which some may skip something; nothing where none may.
pub fn about(summaries: &[Value]) -> Option<String> {
    let may: Vec<&Value> = summaries.iter().filter_map(|summary| summary.get("fast_forward")).collect();
    let asked = 100.0 * may.first()?["within"].as_f64().unwrap_or(0.0);
    let all: Vec<&Value> = summaries.iter().collect();
    let (skipping, back) = (skipping(&all), may.iter().filter(|about| about["fell_back"] == true).count());
    let worst = |path: &str| {
        let values = skipping.iter().filter_map(|about| about.pointer(path)?.as_f64());
        100.0 * values.fold(0.0, f64::max)
    };
    let back = if back > 0 { format!("; {back} were off by more and simulated again, exactly") } else { String::new() };
    if skipping.is_empty() {
        return Some(format!("fast-forward within {asked} %: nothing was skipped, all runs are exact{back}\n"));
    }
    Some(format!(
        "fast-forward within {asked} %: {} of {} runs were not simulated as a whole. By what was simulated, half of the completion times are off by {:.2} % in the \
         worst of them, and 99 % by {:.2} %{back}\n",
        skipping.len(),
        summaries.len(),
        worst("/error/fct/p50"),
        worst("/error/fct/p99"),
    ))
}

/// A traffic that can be compared, by name.
pub fn traffic(text: &str) -> Result<String, String> {
    let names: Vec<&str> = Traffic::ALL.iter().map(|traffic| traffic.word()).collect();
    match names.contains(&text) {
        true => Ok(text.into()),
        false => Err(format!("write one of {}", names.join(", "))),
    }
}

/// `tailwater bench --within`.
pub fn bench(
    hosts: &[u32],
    presets: &[String],
    traffic: &[String],
    size: &str,
    within: &Share,
) -> Result<ExitCode, Problem> {
    let bytes: Bytes = size.parse().map_err(|e: engine::QuantityError| {
        Problem::new("--size", e.to_string()).help("write a size above zero, such as 64MB")
    })?;
    if bytes.0 == 0 {
        return Err(Problem::new("--size", "is nothing").help("write a size above zero, such as 64MB"));
    }
    if let Some(few) = hosts.iter().find(|&&hosts| hosts < 32 || hosts % 16 != 0) {
        return Err(Problem::new("--hosts", format!("{few} hosts do not fill two racks or more"))
            .help("write multiples of 16, from 32 on"));
    }
    if let Some(preset) = presets.iter().find(|preset| scenario::presets::named(preset).is_none()) {
        return Err(Problem::new("--presets", format!("there is no preset \"{preset}\""))
            .help("`tailwater schemes` lists them"));
    }
    let head = "| traffic | hosts | scheme | exact, s | skipping, s | times as fast | FCT off: half | 99 % | end | said: half | 99 % | time skipped | kept |\n\
                |---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n";
    if say(head.into()).is_err() {
        return Ok(ExitCode::SUCCESS);
    }
    for traffic in Traffic::ALL.iter().copied().filter(|known| traffic.iter().any(|asked| known.word() == asked)) {
        // Sixteen flows have two times sixteen hosts.
        let few = [32];
        for &hosts in if traffic == Traffic::Long { &few[..] } else { hosts } {
            for preset in presets {
                let compared = race(&scenario(traffic, hosts, size, preset), within.value)?;
                if say(row(traffic, hosts, preset, &compared)).is_err() {
                    return Ok(ExitCode::SUCCESS);
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(traffic: Traffic, hosts: u32, preset: &str, compared: &Compared) -> String {
    let share = |share: f64| format!("{:.2} %", 100.0 * share);
    let exact = compared.same || compared.about.exact();
    let said = |value: Option<f64>| if exact { "exact".into() } else { value.map_or("–".into(), share) };
    let (half, most, end) = compared.off;
    let error = &compared.about.error.fct;
    format!(
        "| {} | {hosts} | {preset} | {:.2} | {:.3} | {:.1} | {} | {} | {} | {} | {} | {} | {} |\n",
        traffic.word(),
        compared.exact,
        compared.skipping,
        compared.exact / compared.skipping.max(1e-9),
        share(half),
        share(most),
        share(end),
        said(error.p50),
        said(error.p99),
        share(compared.about.skipped),
        if compared.exceeds { "no" } else { "yes" },
    )
}
