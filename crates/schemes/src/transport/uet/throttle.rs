//! A receiver that hands out less while the fabric before its last switch is congested (`-oversubscribed_cc` of uet-htsim, `oversubscribed_cc.cpp`).
//!
//! Each host looks about every 1.5 round trips at what has come since it looked last: how many packets, how many of them marked, how many trimmed at its own
//! switch and elsewhere. What was trimmed elsewhere takes its part off the rate at once; a mean of marks above the target takes a part of the excess; with
//! neither, the rate grows, the faster the longer nothing was wrong.

use engine::Time;
use fabric::axes::congestion_control::Throttle as Rule;

/// What a host's port knows of it.
#[derive(Clone, Debug)]
pub(super) struct Throttle {
    /// The part of its pace that it hands out.
    rate: f64,
    /// Mean of the part of packets that were marked.
    marks: f64,
    /// How often in a row the rate grew.
    grown: i32,
    /// Packets since it looked last: all, marked, trimmed at the last switch, and elsewhere.
    seen: [u32; 4],
    /// When it looks next. Not before the first packet: what it would see till then changes nothing.
    next: Option<Time>,
}

/// A packet, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Came {
    Whole,
    Marked,
    TrimmedHere,
    TrimmedElsewhere,
}

/// Parts are in millionths.
fn part(millionths: u32) -> f64 {
    millionths as f64 / 1e6
}

/// Between two looks: 3/4 to 5/4 of what is usual, so that hosts do not look all at once.
fn interval(rule: &Rule, draw: &mut dyn FnMut(u64) -> u64) -> Time {
    Time((rule.every.0 / 4 * 3 + draw(rule.every.0 / 2 + 1)).max(1))
}

impl Default for Throttle {
    fn default() -> Throttle {
        Throttle { rate: 1.0, marks: 0.0, grown: 0, seen: [0; 4], next: None }
    }
}

impl Throttle {
    /// Looks as often as it should have by now. Nothing came in between, or this would have been called.
    pub(super) fn advance(&mut self, rule: &Rule, now: Time, draw: &mut dyn FnMut(u64) -> u64) {
        let mut next = self.next.unwrap_or_else(|| now + interval(rule, draw));
        while next <= now {
            if self.seen[0] == 0 && self.rate >= 1.0 && self.marks < 1e-6 {
                // It would see the same for as long as nothing comes.
                self.marks = 0.0;
                next = now;
            } else {
                self.look(rule);
            }
            next += interval(rule, draw);
        }
        self.next = Some(next);
    }

    /// A packet has come.
    pub(super) fn count(&mut self, came: Came) {
        self.seen[0] += 1;
        match came {
            Came::Whole => {}
            Came::Marked => self.seen[1] += 1,
            Came::TrimmedHere => self.seen[2] += 1,
            Came::TrimmedElsewhere => self.seen[3] += 1,
        }
    }

    /// The time between two control packets that is so much at the full pace.
    pub(super) fn stretch(&self, time: Time) -> Time {
        Time((time.0 as f64 / self.rate) as u64)
    }

    fn look(&mut self, rule: &Rule) {
        let [all, marked, here, elsewhere] = std::mem::take(&mut self.seen);
        let whole = all - here - elsewhere;
        let share = if whole > 0 { marked as f64 / whole as f64 } else { 0.0 };
        let weight = part(rule.weight);
        self.marks = self.marks * (1.0 - weight) + weight * share;
        let over = self.marks - part(rule.target);
        if elsewhere > 0 {
            self.rate -= elsewhere as f64 / all as f64;
        }
        if over > 0.0 && rule.decrease > 0 {
            self.rate *= 1.0 - over * part(rule.decrease);
        }
        if elsewhere > 0 || over > 0.0 && rule.decrease > 0 {
            self.grown = 0;
        } else {
            let times = if marked == 0 { 2f64.powi(self.grown.min(64)) } else { 1.0 };
            self.rate += part(rule.increase) * times;
            self.grown += 1;
        }
        self.rate = self.rate.max(part(rule.least)).min(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule {
        every: Time::from_us(20),
        least: 112_500,
        increase: 10_000,
        decrease: 500_000,
        weight: 500_000,
        target: 300_000,
    };

    /// The rate after looks at so many packets each: all that are whole and unmarked, marked, trimmed here and elsewhere.
    fn after(looks: &[[u32; 4]]) -> f64 {
        let mut throttle = Throttle::default();
        for counts in looks {
            throttle.seen = [counts.iter().sum(), counts[1], counts[2], counts[3]];
            throttle.look(&RULE);
        }
        throttle.rate
    }

    #[test]
    fn what_is_trimmed_elsewhere_takes_its_part_and_what_is_trimmed_here_nothing() {
        assert_eq!(after(&[[75, 0, 0, 25]]), 0.75);
        assert_eq!(after(&[[75, 0, 25, 0]]), 1.0);
        assert_eq!(after(&[[0, 0, 0, 9]]), 0.1125, "not less than what the fabric always has");
    }

    #[test]
    fn marks_above_the_target_take_half_of_the_excess() {
        // Their mean is 0.5, then 0.75.
        let (first, second) = (1.0 - 0.2 * 0.5, 1.0 - 0.45 * 0.5);
        assert!((after(&[[0, 10, 0, 0]]) - first).abs() < 1e-12);
        assert!((after(&[[0, 10, 0, 0], [0, 10, 0, 0]]) - first * second).abs() < 1e-12);
        // A fifth of them is below the target, and lets the rate grow no faster.
        let slow = after(&[[75, 0, 0, 25], [8, 2, 0, 0], [8, 2, 0, 0], [8, 2, 0, 0]]);
        assert!((slow - 0.78).abs() < 1e-12, "{slow}");
    }

    #[test]
    fn the_rate_doubles_its_steps_while_nothing_is_wrong() {
        let idle = [10, 0, 0, 0];
        assert!((after(&[[50, 0, 0, 50], idle, idle, idle]) - 0.57).abs() < 1e-12);
        assert_eq!(after(&[[50, 0, 0, 50], idle, idle, idle, idle, idle, idle]), 1.0);
    }

    #[test]
    fn it_looks_every_so_often_and_not_while_nothing_comes() {
        let (mut throttle, mut draws) = (Throttle::default(), 0);
        let mut draw = |n: u64| {
            draws += 1;
            n / 2
        };
        throttle.advance(&RULE, Time::from_us(5), &mut draw);
        (0..3).for_each(|_| throttle.count(Came::TrimmedElsewhere));
        throttle.count(Came::Marked);
        throttle.advance(&RULE, Time::from_us(24), &mut draw);
        assert_eq!(throttle.stretch(Time(1000)), Time(1000), "not yet");
        throttle.advance(&RULE, Time::from_us(25), &mut draw);
        assert!(throttle.rate < 0.25 && throttle.stretch(Time(1000)) > Time(4000));
        // A second later it has long been at its full rate, and was not asked fifty thousand times.
        throttle.advance(&RULE, Time::from_ms(1000), &mut draw);
        assert_eq!((throttle.rate, throttle.seen), (1.0, [0; 4]));
        assert!(draws < 100, "{draws}");
    }
}
