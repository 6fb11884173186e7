//! A sender that waits until a time, which may be put off or brought forward (§3.3).

use engine::Time;

/// Whether something is stopped, and until when.
#[derive(Clone, Debug)]
pub(super) struct Pause {
    until: Time,
    /// When the next timer goes off that counts; [`Time::MAX`] for none.
    armed: Time,
    /// Since when it is stopped; [`Time::MAX`] if it is not.
    since: Time,
}

impl Default for Pause {
    fn default() -> Pause {
        Pause { until: Time::ZERO, armed: Time::MAX, since: Time::MAX }
    }
}

/// What a timer means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bell {
    /// Nothing: the end was brought forward since it was set.
    Stale,
    /// The end was put off: another timer is to be set.
    Later(Time),
    /// The pause has ended after so long.
    Over(Time),
}

impl Pause {
    /// Whether it is stopped.
    pub(super) fn holds(&self) -> bool {
        self.since != Time::MAX
    }

    /// Stops it until `end`, whatever was said before. Gives the timer to set, if one is needed.
    pub(super) fn set(&mut self, now: Time, end: Time) -> Option<Time> {
        if !self.holds() {
            self.since = now;
        }
        self.until = end;
        (end < self.armed).then(|| {
            self.armed = end;
            end
        })
    }

    /// When its timer goes off, if it has one.
    #[cfg(test)]
    pub(super) fn next(&self) -> Option<Time> {
        (self.armed != Time::MAX).then_some(self.armed)
    }

    /// What decides what it does next: whether it holds, and how far off its end and its timer are.
    #[cfg(test)]
    pub(super) fn outlook(&self, left: impl Fn(Time) -> u64) -> (bool, u64, u64) {
        (self.holds(), left(self.until), left(self.armed))
    }

    /// A timer went off.
    pub(super) fn ring(&mut self, now: Time) -> Bell {
        if self.armed != now {
            return Bell::Stale;
        }
        self.armed = Time::MAX;
        if self.until > now {
            self.armed = self.until;
            return Bell::Later(self.until);
        }
        Bell::Over(now - std::mem::replace(&mut self.since, Time::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Time = Time::from_us;

    #[test]
    fn a_later_order_replaces_the_end_either_way() {
        let mut pause = Pause::default();
        assert!(!pause.holds());
        assert_eq!(pause.set(US(0), US(10)), Some(US(10)));
        assert_eq!(pause.set(US(2), US(30)), None, "the timer at 10 us will see");
        assert_eq!(pause.ring(US(10)), Bell::Later(US(30)));
        assert_eq!(pause.set(US(12), US(15)), Some(US(15)), "brought forward");
        assert!(pause.holds());
        assert_eq!(pause.ring(US(15)), Bell::Over(US(15)));
        assert!(!pause.holds());
        assert_eq!(pause.ring(US(30)), Bell::Stale);
        assert_eq!(pause.set(US(31), US(32)), Some(US(32)));
        assert_eq!(pause.ring(US(32)), Bell::Over(US(1)));
    }
}
