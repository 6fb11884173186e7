//! NSCC, network-signalled congestion control: what senders of Ultra Ethernet do (UE Specification 1.0, 2025).
//!
//! A window in bytes on the wire. Every ACK says whether its packet was marked, and its round trip less the base round trip is how long packets
//! queue. The two make four cases:
//!
//! | mark | delay | the window |
//! |---|---|---|
//! | no | below target | grows in proportion to how far the delay is below the target |
//! | no | target or more | grows by a fair, small part |
//! | yes | target or more | shrinks by up to a half, once per round trip, if the average delay is above the target, too |
//! | yes | below target | stays: load balancing takes another path |
//!
//! What it grows by is collected and applied every few packets or once per round trip, when a constant η is added, too. *Quick adapt*: where little arrives
//! in a round trip, and packets are trimmed or very late, the window becomes what has arrived. A trimmed packet takes its own size from the window.
//!
//! All constants are those of the Ultra Ethernet group's simulator (uet-htsim, commit 40ccb05), and so are integers: bytes, picoseconds and what is
//! collected are cut off to whole numbers. A packet that is lost without a word takes one full packet from the window, as there.

use super::Slots;
use engine::{Bytes, Misfit, Rate, Time};
use fabric::axes::congestion_control::{Ack, FlowStart, Incident, Needs, Permit, Trim};
use fabric::axes::{Chosen, CongestionControl, CongestionControlDef, Counter, Definition};

engine::parameters! {
    /// Parameters of NSCC.
    pub struct Params {
        /// The round trip of the idle network, by which constants are scaled. Auto: the longest base round trip of all flows.
        network_rtt: Option<Time> = None,
        /// The queueing delay that it aims at. Auto: three quarters of the network's round trip where switches trim, else all of it.
        target: Option<Time> = None,
        /// The first window, in bytes on the wire. Auto: the largest, which is 1.5 bandwidth-delay products.
        window: Option<Bytes> = None,
        /// Whether a window becomes what has arrived where that is little.
        quick_adapt: bool = true,
        /// Little is less than the largest window divided by two to this power.
        gate: u32 = 3, in 0..=16, if quick_adapt == true,
    }
}

/// The network for which the constants were chosen (100 Gb/s): its round trip and its bandwidth-delay product.
const REFERENCE_RTT: f64 = 12e6;
const REFERENCE_BDP: f64 = 150_000.0;
/// Weight of a sample in the average delay.
const WEIGHT: f64 = 0.0125;
/// A delay below this is none.
const NO_DELAY: u64 = 1_000_000;

impl Definition for Params {
    fn name(&self) -> &'static str {
        "nscc"
    }
    fn about(&self) -> &'static str {
        "NSCC of Ultra Ethernet: a window that marks and queueing delay together let grow and shrink, with a quick cut where packets are trimmed."
    }
    fn source(&self) -> &'static str {
        "Ultra Ethernet Consortium, Ultra Ethernet Specification 1.0, 2025; constants as in its simulator, uet-htsim"
    }
    fn check(&self) -> Result<(), Misfit> {
        for (name, time) in [("network_rtt", self.network_rtt), ("target", self.target)] {
            if let Some(time) = time
                && !(Time::from_ns(100)..=Time::from_ms(10_000)).contains(&time)
            {
                return Err(Misfit::new(name, time, "write a time from \"100ns\" to \"10s\", or \"auto\""));
            }
        }
        match self.window {
            Some(window) if !(1..=1_000_000_000_000).contains(&window.0) => {
                Err(Misfit::new("window", window, "write a size from \"1B\" to \"1TB\", or \"auto\""))
            }
            _ => Ok(()),
        }
    }
    fn conflict(&self, with: &Chosen<'_>) -> Option<Misfit> {
        if with.window {
            return Some(Misfit {
                parameter: "scheme.window",
                message: "nscc sets the window by itself".to_string(),
                help: "write window = \"none\" in [scheme]; the first window is window in [scheme.nscc]".to_string(),
            });
        }
        (with.transport.name() != "uet").then(|| Misfit {
            parameter: "scheme.transport",
            message: format!(
                "nscc needs to know what arrives out of order and what is in flight, which {} does not tell",
                with.transport.name()
            ),
            help: "write transport = \"uet\" in [scheme]".to_string(),
        })
    }
}

impl CongestionControlDef for Params {
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Nscc { params: self.clone(), flows: Slots::default(), counts: Counts::default() })
    }
    fn uses_marks(&self) -> bool {
        true
    }
    fn hears_of_trims(&self) -> bool {
        true
    }
}

/// What follows from the network alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Constants {
    network_rtt: u64,
    target: u64,
    /// Proportional increase, per byte acknowledged and picosecond below the target.
    alpha: f64,
    /// Fair increase, per byte acknowledged.
    fair: f64,
    /// Added once per round trip.
    eta: f64,
    /// Fast increase, of bytes acknowledged.
    fast: f64,
    /// What is collected is applied after more than so many bytes.
    adjust_after: u64,
}

impl Constants {
    fn new(p: &Params, flow: &FlowStart) -> Constants {
        let network_rtt = p.network_rtt.unwrap_or(flow.longest_rtt).0.max(1);
        let target = p
            .target
            .map_or(if flow.trims { network_rtt / 4 * 3 + network_rtt % 4 * 3 / 4 } else { network_rtt }, |time| {
                time.0
            });
        let mss = flow.payload as f64;
        let a = flow.line.bytes_over(Time(network_rtt)) as f64 / REFERENCE_BDP;
        let b = target as f64 / REFERENCE_RTT;
        Constants {
            network_rtt,
            target,
            alpha: 4.0 * mss * a * b / target as f64,
            fair: 5.0 * mss * a,
            eta: 0.15 * mss * a,
            fast: 0.25 * a,
            adjust_after: 8 * (flow.payload + flow.header) as u64,
        }
    }
}

/// What a sender knows of a flow. Bytes are bytes on the wire, except for `told`.
#[derive(Clone, Debug)]
struct Flow {
    constants: Constants,
    line: Rate,
    /// Bytes of message in a full packet, and all its bytes.
    payload: u64,
    full: u64,
    /// The shortest round trip so far; at first the network's.
    base: u64,
    most: i64,
    window: i64,
    /// What the window will grow by, times the window.
    collected: i64,
    /// Bytes acknowledged since that was last applied.
    since: u64,
    /// Bytes acknowledged since quick adapt last looked, and when it looks again; zero before the first ACK.
    achieved: u64,
    look: Time,
    /// Something was trimmed since the last quick cut.
    hurt: bool,
    /// After a quick cut, ACKs with marks are ignored until as much was acknowledged or trimmed as was in flight then.
    ignored: u64,
    to_ignore: u64,
    /// Bytes acknowledged without delay, and whether that is a whole window.
    free: u64,
    fast: bool,
    average: u64,
    last_cut: Time,
    last_adjust: Time,
    /// Bytes of message that had arrived at the last ACK.
    told: u64,
}

#[derive(Debug, Default)]
struct Counts {
    cuts: u64,
    quick_cuts: u64,
    trims: u64,
}

impl Flow {
    fn on_wire(&self, payload: u64) -> u64 {
        (payload as u128 * self.full as u128 / self.payload as u128) as u64
    }

    fn bound(&mut self) {
        self.window = self.window.min(self.most).max(self.full as i64);
    }

    /// A shorter round trip than any before is the base, and the largest window follows it.
    fn rebase(&mut self, rtt: u64) {
        if rtt < self.base {
            self.base = rtt.max(1);
            self.most = most(self.line, self.base, self.full);
        }
    }

    /// Takes a delay into the average. One above the target without a mark is hardly believed.
    fn sample(&mut self, delay: u64, marked: bool) {
        let sample = if !marked && delay > self.constants.target { self.base as f64 * 0.25 } else { delay as f64 };
        self.average = (WEIGHT * sample + (1.0 - WEIGHT) * self.average as f64) as u64;
    }

    /// Looks whether little has arrived. True if the window has become just that, or the ACK belongs to what was in flight then.
    fn quick_adapt(
        &mut self,
        p: &Params,
        now: Time,
        trimmed: bool,
        marked: bool,
        delay: u64,
        flight: u64,
    ) -> (bool, bool) {
        if !p.quick_adapt {
            return (false, false);
        }
        let (mut over, mut cut) = (false, false);
        if self.ignored < self.to_ignore && marked {
            over = true;
        } else if now > self.look {
            let late = self.hurt || trimmed || delay > 4 * self.constants.target;
            if self.look != Time::ZERO && late && (self.achieved as i64) < self.most >> p.gate {
                self.window = (self.achieved as i64).max(self.full as i64);
                (self.to_ignore, self.ignored, self.hurt) = (flight, 0, false);
                (over, cut) = (true, true);
            }
            self.achieved = 0;
            self.look = now + Time(self.base + self.constants.target);
        }
        if over {
            (self.collected, self.since) = (0, 0);
        }
        (over, cut)
    }

    fn grow(&mut self, bytes: u64, delay: u64) {
        // A window without delay: a quarter of all that is acknowledged.
        if delay < NO_DELAY {
            self.free += bytes;
            if self.free as i64 > self.window || self.fast {
                self.window = self.window.saturating_add((bytes as f64 * self.constants.fast) as i64);
                self.fast = true;
                return;
            }
        } else {
            self.free = 0;
        }
        self.fast = false;
        // Extreme settings reach the end of the numbers; the window is bounded when this is applied.
        let grown = (self.constants.alpha * bytes as f64 * (self.constants.target - delay) as f64) as i64;
        self.collected = self.collected.saturating_add(grown);
    }

    fn shrink(&mut self, now: Time) -> bool {
        (self.fast, self.free) = (false, 0);
        let (average, target) = (self.average, self.constants.target);
        let cut = average > target && now.saturating_sub(self.last_cut).0 > self.base;
        if cut {
            let factor = (1.0 - 0.8 * (average - target) as f64 / average as f64).max(0.5);
            self.window = ((self.window as f64 * factor) as i64).max(self.full as i64);
            self.last_cut = now;
        }
        cut
    }

    /// Applies what was collected.
    fn adjust(&mut self, now: Time) {
        self.window = self.window.saturating_add(self.collected / self.window);
        if now.saturating_sub(self.last_adjust).0 >= self.constants.network_rtt {
            self.window = self.window.saturating_add(self.constants.eta as i64);
            self.last_adjust = now;
        }
        (self.collected, self.since) = (0, 0);
    }

    /// A packet goes while all in flight and a full one fit in the window. The transport lets one go while less than its window is in flight.
    fn allow(&self, permit: &mut Permit) {
        let window = (self.window as u128 * self.payload as u128 / self.full as u128) as u64;
        permit.window = window.saturating_sub(self.payload) + 1;
    }
}

/// The largest window: 1.5 bandwidth-delay products, and no less than a packet.
fn most(line: Rate, rtt: u64, full: u64) -> i64 {
    (line.bytes_over(Time(rtt)) * 3 / 2).max(full) as i64
}

struct Nscc {
    params: Params,
    flows: Slots<Flow>,
    counts: Counts,
}

impl CongestionControl for Nscc {
    fn needs(&self) -> Needs {
        Needs { every_ack: true, window: true, incidents: true, ..Needs::default() }
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        let constants = Constants::new(&self.params, &flow);
        let full = (flow.payload + flow.header) as u64;
        let most = most(flow.line, constants.network_rtt, full);
        let window = self.params.window.map_or(most, |window| (window.0 as i64).min(most)).max(full as i64);
        let state = Flow {
            constants,
            line: flow.line,
            payload: flow.payload as u64,
            full,
            base: constants.network_rtt,
            most,
            window,
            collected: 0,
            since: 0,
            achieved: 0,
            look: Time::ZERO,
            hurt: false,
            ignored: 0,
            to_ignore: 0,
            free: 0,
            fast: false,
            average: 0,
            last_cut: Time::ZERO,
            last_adjust: flow.now,
            told: 0,
        };
        let mut permit = Permit::at(flow.line);
        state.allow(&mut permit);
        self.flows.put(slot, state);
        permit
    }

    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        let flow = self.flows.get(slot);
        let bytes = flow.on_wire(ack.received.saturating_sub(flow.told));
        flow.told = flow.told.max(ack.received);
        flow.achieved += bytes;
        flow.since += bytes;
        flow.ignored += bytes;
        let rtt = ack.now.saturating_sub(ack.stamp).0;
        flow.rebase(rtt);
        let delay = rtt - flow.base;
        flow.sample(delay, ack.marked);
        let flight = flow.on_wire(ack.flight);
        let (over, cut) = flow.quick_adapt(&self.params, ack.now, false, ack.marked, delay, flight);
        self.counts.quick_cuts += cut as u64;
        if !over {
            match (ack.marked, delay < flow.constants.target) {
                (false, true) => flow.grow(bytes, delay),
                (false, false) => {
                    flow.collected = flow.collected.saturating_add((flow.constants.fair * bytes as f64) as i64);
                }
                (true, false) => self.counts.cuts += flow.shrink(ack.now) as u64,
                (true, true) => {}
            }
            flow.bound();
            let idle = ack.now.saturating_sub(flow.last_adjust).0;
            if flow.since > flow.constants.adjust_after || idle > flow.constants.network_rtt {
                flow.adjust(ack.now);
            }
            flow.bound();
        }
        flow.allow(permit);
    }

    fn incident(&mut self, slot: u32, now: Time, incident: Incident, permit: &mut Permit) {
        let flow = self.flows.get(slot);
        match incident {
            Incident::Trimmed(Trim { bytes, flight, rtt, forgiven }) => {
                self.counts.trims += 1;
                flow.rebase(rtt.0);
                let (bytes, flight) = (flow.on_wire(bytes), flow.on_wire(flight));
                flow.ignored += bytes;
                // It stands for the longest queue that there is: one bandwidth-delay product.
                flow.sample(flow.constants.network_rtt, true);
                flow.hurt = true;
                let (over, cut) = flow.quick_adapt(&self.params, now, true, true, 0, flight);
                self.counts.quick_cuts += cut as u64;
                if !over && !forgiven {
                    flow.window -= bytes as i64;
                    flow.bound();
                }
            }
            Incident::Lost => flow.window = (flow.window - flow.full as i64).max(flow.full as i64),
            Incident::Granted(_) => {}
        }
        flow.allow(permit);
    }

    fn counters(&self) -> Vec<Counter> {
        let Counts { cuts, quick_cuts, trims } = self.counts;
        vec![
            Counter::sum("nscc_cuts", cuts),
            Counter::sum("nscc_quick_cuts", quick_cuts),
            Counter::sum("nscc_trims", trims),
        ]
    }
}

#[cfg(test)]
mod tests;
