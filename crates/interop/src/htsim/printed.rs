//! What `htsim_uec` prints of a run, line by line as its scripts read it.

use super::plan::Planned;
use engine::Time;
use fabric::Outcome;
use std::fmt::Write;

/// A number as C++ streams print it if nothing is said: with six digits that count.
pub fn six_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".into();
    }
    // Rounding may carry into another decade, so the exponent is that of the rounded number.
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let short = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    match exponent {
        -4..6 => short(&format!("{value:.*}", (5 - exponent) as usize)),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", short(digits), exponent.abs())
        }
    }
}

fn us(time: Time) -> String {
    six_digits(time.0 as f64 / 1e6)
}

/// What comes before the run.
pub fn head(planned: &Planned) -> String {
    planned.head.clone() + "Starting simulation\n"
}

/// Starts and ends of flows in order of time, and the totals.
pub fn flows(planned: &Planned, outcome: &Outcome) -> String {
    // The run has its flows in order of start.
    let mut order: Vec<usize> = (0..planned.flows.len()).collect();
    order.sort_by_key(|&place| planned.flows[place].start);
    // An end comes before what it starts at the same instant.
    let mut lines: Vec<(Time, bool, usize, String)> = Vec::new();
    for (&place, record) in order.iter().zip(&outcome.flows) {
        if record.start != Time::MAX && (record.delivered > 0 || record.injected != Time::MAX) {
            let line = format!("{} starting at {}\n", planned.title(place), us(record.start));
            lines.push((record.start, true, place, line));
        }
    }
    for (rank, flow) in outcome.finished.iter().enumerate() {
        let (place, record) = (order[flow.index()], &outcome.flows[flow.index()]);
        let packets = planned.flows[place].size.div_ceil(planned.payload);
        let line = format!(
            "{} finished at {} total messages {} total packets {packets} RTS 0 total bytes {} in_flight now 0 fair_inc 0 prop_inc 0 \
             fast_inc 0 eta_inc 0 multi_dec -0 quick_dec -0 nack_dec -0\n",
            planned.title(place),
            us(record.acknowledged),
            planned.flows[place].messages,
            packets * planned.payload,
        );
        lines.push((record.acknowledged, false, rank, line));
    }
    lines.sort_by_key(|line| (line.0, line.1, line.2));
    let mut out: String = lines.into_iter().map(|(.., line)| line).collect();
    let counts = &outcome.counts;
    let counter = |names: &[&str]| -> u64 {
        let all = outcome.transport.iter().chain(&outcome.congestion_control).chain(&outcome.switches);
        all.filter(|counter| names.contains(&counter.name)).map(|counter| counter.value).sum()
    };
    let nacks = counter(&["nacks"]);
    let _ = writeln!(
        out,
        "Done\nNew: {} Rtx: {} RTS: 0 Bounced: {} ACKs: {} NACKs: {nacks} Pulls: {} sleek_pkts: 0",
        counts.injected.0.saturating_sub(counts.retransmitted.0),
        counts.retransmitted.0,
        counter(&["returned"]),
        counts.acks.saturating_sub(nacks),
        counter(&["pulls", "credits_sent"]),
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_digits_that_count_as_streams_of_cpp_print_them() {
        for (value, text) in [
            (176.2, "176.2"),
            (176.80352, "176.804"),
            (21029.34, "21029.3"),
            (14.0227, "14.0227"),
            (999999.5, "1e+06"),
            (1234567.0, "1.23457e+06"),
            (0.0001, "0.0001"),
            (0.00001234, "1.234e-05"),
            (100.0, "100"),
            (99.99999999, "100"),
            (0.0, "0"),
        ] {
            assert_eq!(six_digits(value), text);
        }
    }
}
