//! How much of a port its neighbour's pauses stop, and for how long: all of it, whole classes, or single queues.
//!
//! A port of which one queue is paused may send at its full rate. To call it paused like one that stands still would be wrong.

use crate::host::Hold;
use engine::Time;

/// Of one port.
#[derive(Clone, Copy, Debug)]
struct Broad {
    /// Classes of which all is paused, one bit each.
    whole: u32,
    /// While there is one.
    class: Hold,
    /// While it is all of them.
    port: Hold,
}

/// How long ports were paused by some instant: whole classes of them and all of them, and by port and class.
pub(crate) struct Paused {
    ports: Vec<(Time, Time)>,
    each: Vec<Time>,
}

impl Paused {
    /// The same with what was added to the books between two instants.
    pub(crate) fn add(&mut self, from: &Paused, to: &Paused) {
        for (port, (a, b)) in self.ports.iter_mut().zip(from.ports.iter().zip(&to.ports)) {
            *port = (port.0 + b.0.saturating_sub(a.0), port.1 + b.1.saturating_sub(a.1));
        }
        for (each, (a, b)) in self.each.iter_mut().zip(from.each.iter().zip(&to.each)) {
            *each += b.saturating_sub(*a);
        }
    }
}

/// Of all ports.
pub(crate) struct Breadth {
    classes: u32,
    ports: Vec<Broad>,
    /// By port and class, while all of the class is paused.
    each: Vec<Hold>,
}

impl Breadth {
    pub(super) fn new(ports: usize, classes: u32) -> Breadth {
        let none = Broad { whole: 0, class: Hold::NEVER, port: Hold::NEVER };
        Breadth { classes, ports: vec![none; ports], each: vec![Hold::NEVER; ports * classes as usize] }
    }

    /// All of a class is paused now, or no longer all of it.
    pub(crate) fn turn(&mut self, port: u32, class: u8, now: Time, whole: bool) {
        let p = &mut self.ports[port as usize];
        let before = p.whole;
        p.whole = if whole { before | 1 << class } else { before & !(1 << class) };
        if p.whole == before {
            return;
        }
        self.each[port as usize * self.classes as usize + class as usize].turn(now, whole);
        if (before == 0) != (p.whole == 0) {
            p.class.turn(now, whole);
        }
        let all = |classes: u32| classes.count_ones() == self.classes;
        if all(before) != all(p.whole) {
            p.port.turn(now, whole);
        }
    }

    /// How long whole classes of a port, and all of it, were paused until `now`.
    pub(crate) fn until(&self, port: u32, now: Time) -> (Time, Time) {
        let p = &self.ports[port as usize];
        (p.class.until(now), p.port.until(now))
    }

    /// How long all of a class was paused until `now`.
    pub(crate) fn of_class(&self, port: u32, class: u8, now: Time) -> Time {
        self.each[port as usize * self.classes as usize + class as usize].until(now)
    }

    /// How long each port, and each class of it, was paused until `now`.
    pub(crate) fn paused(&self, now: Time) -> Paused {
        let ports = self.ports.iter().map(|p| (p.class.until(now), p.port.until(now))).collect();
        Paused { ports, each: self.each.iter().map(|hold| hold.until(now)).collect() }
    }

    /// They were for longer: by a share of what they were between two instants.
    pub(crate) fn stretch(&mut self, from: &Paused, to: &Paused, share: f64) {
        let scaled = |a: Time, b: Time| Time((b.saturating_sub(a).0 as f64 * share).round() as u64);
        for (port, (a, b)) in self.ports.iter_mut().zip(from.ports.iter().zip(&to.ports)) {
            port.class.stretch(scaled(a.0, b.0));
            port.port.stretch(scaled(a.1, b.1));
        }
        for (each, (a, b)) in self.each.iter_mut().zip(from.each.iter().zip(&to.each)) {
            each.stretch(scaled(*a, *b));
        }
    }

    /// Nothing is paused from `now` on.
    pub(crate) fn settle(&mut self, now: Time) {
        for port in &mut self.ports {
            port.class.turn(now, false);
            port.port.turn(now, false);
        }
        self.each.iter_mut().for_each(|hold| hold.turn(now, false));
    }

    /// Takes over the ports of another shard that `mine` picks.
    pub(super) fn absorb(&mut self, other: &Breadth, mine: impl Fn(usize) -> bool) {
        let classes = self.classes as usize;
        for port in (0..self.ports.len()).filter(|&port| mine(port)) {
            self.ports[port] = other.ports[port];
            let each = port * classes..(port + 1) * classes;
            self.each[each.clone()].copy_from_slice(&other.each[each]);
        }
    }
}

/// How long the class of a flow was paused at its NIC, while flow control did not hold the flow itself besides and until its last byte was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standstill {
    /// How long its class had been paused when this began to be counted; [`Time::MAX`] while it is not.
    before: Time,
    /// What was counted until then.
    total: Time,
}

impl Standstill {
    pub(crate) const NONE: Standstill = Standstill { before: Time::MAX, total: Time::ZERO };

    /// Begins or ends to be counted, with the time that its class has been paused by now.
    pub(crate) fn turn(&mut self, paused: Time, counts: bool) {
        self.total = self.until(paused);
        self.before = if counts { paused } else { Time::MAX };
    }

    /// In all, with the time that its class has been paused by now.
    pub(crate) fn until(&self, paused: Time) -> Time {
        self.total + paused.saturating_sub(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_paused_as_a_whole_while_all_its_classes_are() {
        let mut breadth = Breadth::new(2, 2);
        breadth.turn(1, 0, Time(10), true);
        // A pause that is renewed changes nothing.
        breadth.turn(1, 0, Time(15), true);
        breadth.turn(1, 1, Time(20), true);
        breadth.turn(1, 0, Time(50), false);
        assert_eq!(breadth.until(1, Time(60)), (Time(50), Time(30)));
        breadth.turn(1, 1, Time(70), false);
        assert_eq!(breadth.until(1, Time(99)), (Time(60), Time(30)));
        assert_eq!((breadth.of_class(1, 0, Time(99)), breadth.of_class(1, 1, Time(99))), (Time(40), Time(50)));
        assert_eq!(breadth.until(0, Time(99)), (Time::ZERO, Time::ZERO));
    }

    #[test]
    fn a_flow_stands_still_with_its_class_while_that_counts() {
        let mut flow = Standstill::NONE;
        assert_eq!(flow.until(Time(7)), Time::ZERO);
        flow.turn(Time(7), true);
        assert_eq!(flow.until(Time(12)), Time(5));
        flow.turn(Time(12), false);
        flow.turn(Time(40), true);
        assert_eq!(flow.until(Time(41)), Time(6));
    }
}
