//! A line that tells how far a run has come, on a terminal only.

use engine::Time;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Instant;

/// Progress of one run.
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    begin: Time,
    until: Time,
}

impl Progress {
    /// Of a run whose flows start between `begin` and `until`; silent if told so, or where nobody watches.
    pub fn new(begin: Time, until: Time, quiet: bool) -> Progress {
        let bar = if quiet || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            let style =
                ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
            ProgressBar::new_spinner().with_style(style)
        };
        Progress { bar, start: Instant::now(), begin, until }
    }

    /// The run has come to simulated time `now` after so many packet-hops.
    pub fn report(&self, now: Time, hops: u64) {
        let seconds = self.start.elapsed().as_secs_f64();
        let (done, all) = (now.saturating_sub(self.begin).0 as f64, self.until.saturating_sub(self.begin).0 as f64);
        let left = if done > 0.0 && done < all {
            format!(", about {:.0} s until the last flow starts", seconds * (all - done) / done)
        } else {
            String::new()
        };
        let speed = hops as f64 / seconds.max(1e-9) / 1e6;
        self.bar.set_message(format!("{:.1} us simulated, {speed:.1} M packet-hops/s{left}", now.us_f64()));
        self.bar.tick();
    }

    /// The run is over.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
