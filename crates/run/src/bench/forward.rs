//! How much faster are runs that skip what is steady, and how far off?

use super::processor_time;
use engine::Stream;
use fabric::Outcome;
use files::problem::Problem;
use results::measure::percentile;
use scenario::Scenario;
use scenario::resolve::resolve;
use std::path::Path;

use crate::forward::FastForward;
use crate::slowdown::since;

engine::choice! {
    /// What is run with and without skipping.
    pub enum Traffic {
        /// An all-reduce in a ring: as many messages one after the other as there are hosts, twice.
        Ring = "ring",
        /// An all-reduce by halving and doubling.
        HalvingDoubling = "halving-doubling",
        /// An exchange of everybody with everybody.
        AllToAll = "all-to-all",
        /// Sixteen flows over one link.
        Long = "long",
        /// Every host sends to another, which nobody else sends to.
        Permutation = "permutation",
        /// WebSearch messages at 60 % for a millisecond.
        WebSearch = "websearch",
        /// Many to one, every 100 µs for a millisecond.
        Incast = "incast",
    }
}

impl Traffic {
    /// All of them.
    pub const ALL: [Traffic; 7] = [
        Traffic::Ring,
        Traffic::HalvingDoubling,
        Traffic::AllToAll,
        Traffic::Long,
        Traffic::Permutation,
        Traffic::WebSearch,
        Traffic::Incast,
    ];
}

/// What was compared.
pub struct Compared {
    /// Seconds of processor time of the run as a whole.
    pub exact: f64,
    /// The same of the one that skips.
    pub skipping: f64,
    /// What that says of itself.
    pub about: FastForward,
    /// By how much completion times are off: of half of the flows, of 99 in 100, and of the last.
    pub off: (f64, f64, f64),
    /// The same results, to the picosecond.
    pub same: bool,
    /// It is off by more than was asked for, as far as it knows, and would be done again.
    pub exceeds: bool,
}

/// The scenario of it. A fabric of sixteen hosts to a rack and as many spines; sixteen flows share a link between two switches.
pub fn scenario(traffic: Traffic, hosts: u32, size: &str, preset: &str) -> String {
    let leaves = hosts.div_ceil(16).max(2);
    let buffer = (leaves * 48).max(12_000);
    let fabric = match traffic {
        Traffic::Long => "kind = \"dumbbell\"\nleft = 16\nright = 16\n".to_string(),
        _ => format!(
            "kind = \"leaf-spine\"\nleaves = {leaves}\nhosts_per_leaf = 16\nspines = 16\n[switch]\nbuffer = \"{buffer}KB\"\n"
        ),
    };
    let collective = |kind: &str| format!("[[collective]]\nkind = \"{kind}\"\nsize = \"{size}\"\n");
    let flows = |pairs: &mut dyn Iterator<Item = (u32, u32)>| {
        pairs.map(|(src, dst)| format!("[[flow]]\nsrc = {src}\ndst = {dst}\nsize = \"{size}\"\n")).collect::<String>()
    };
    let traffic = match traffic {
        Traffic::Ring => collective("ring-all-reduce"),
        Traffic::HalvingDoubling => collective("halving-doubling-all-reduce"),
        Traffic::AllToAll => collective("all-to-all"),
        Traffic::Long => flows(&mut (0..16).map(|host| (host, host + 16))),
        Traffic::Permutation => {
            let mut to: Vec<u32> = (0..leaves * 16).collect();
            let mut dice = Stream::new(1, 0);
            // Sattolo's: one cycle, so that nobody sends to itself.
            for last in (1..to.len()).rev() {
                to.swap(last, dice.below(last as u64) as usize);
            }
            flows(&mut (0..).zip(to))
        }
        Traffic::WebSearch => "[[load]]\nsizes = \"websearch\"\nload = 0.6\nduration = \"1ms\"\n".into(),
        Traffic::Incast => {
            "[[incast]]\ndegree = 31\nsize_each = \"64KB\"\nevery = \"100us\"\nduration = \"1ms\"\n".into()
        }
    };
    format!("[topology]\n{fabric}[scheme]\npreset = \"{preset}\"\n{traffic}")
}

/// Runs it as a whole and with skipping, on one thread, and compares the two.
pub fn compare(text: &str, within: f64) -> Result<Compared, Problem> {
    let mut resolved = resolve(Scenario::parse("bench", text, Path::new("."), &[])?)?.on_threads(1);
    let mut timed = |within: Option<f64>| {
        resolved.setup.within = within;
        let begun = processor_time();
        let outcome = resolved.simulate(&mut |_, _| true);
        let seconds = (processor_time() - begun).as_secs_f64();
        match outcome.violations.first() {
            Some(wrong) => Err(Problem::new("bench", wrong.clone())),
            None => Ok((outcome, seconds)),
        }
    };
    let (skipping, took) = timed(Some(within))?;
    let (exact, whole) = timed(None)?;
    let missing = || Problem::new("bench", "the run says nothing of what it skipped");
    let about = FastForward::of(&skipping).ok_or_else(missing)?;
    let same = exact.flows == skipping.flows;
    let exceeds = about.exceeds(&skipping);
    Ok(Compared { exact: whole, skipping: took, off: off(&exact, &skipping), about, same, exceeds })
}

/// Runs it exactly, and as `run --within` does, which simulates it again if what it skipped is off by too much; on one thread.
pub fn race(text: &str, within: f64) -> Result<Compared, Problem> {
    let mut resolved = resolve(Scenario::parse("bench", text, Path::new("."), &[])?)?.on_threads(1);
    let missing = || Problem::new("bench", "the run says nothing of what it skipped");
    let checked = |outcome: Outcome| match outcome.violations.first() {
        Some(wrong) => Err(Problem::new("bench", wrong.clone())),
        None => Ok(outcome),
    };
    resolved.setup.within = Some(within);
    let (begun, mut about) = (processor_time(), None);
    let skipping = checked(crate::simulate(&resolved, &mut |_, _| true, &mut about))?;
    let took = (processor_time() - begun).as_secs_f64();
    let begun = processor_time();
    let exact = checked(resolved.simulate_exactly(&mut |_, _| true))?;
    let whole = (processor_time() - begun).as_secs_f64();
    let about = about.ok_or_else(missing)?;
    let (same, exceeds) = (exact.flows == skipping.flows, about.fell_back);
    Ok(Compared { exact: whole, skipping: took, off: off(&exact, &skipping), about, same, exceeds })
}

/// By how much completion times of two runs differ: of half of the flows, of 99 in 100, and when the last ends.
pub fn off(exact: &Outcome, other: &Outcome) -> (f64, f64, f64) {
    let both = exact.flows.iter().zip(&other.flows);
    let mut each: Vec<f64> = both
        .map(|(a, b)| match (since(a, a.received), since(b, b.received)) {
            (Some(a), Some(b)) => a.abs_diff(b) as f64 / a.max(1) as f64,
            (None, None) => 0.0,
            _ => 1.0,
        })
        .collect();
    each.sort_by(f64::total_cmp);
    let last = exact.end.0.abs_diff(other.end.0) as f64 / exact.end.0.max(1) as f64;
    (percentile(&each, 0.5), percentile(&each, 0.99), last)
}
