//! Adaptive routing as switches have it: a packet, or a flowlet, takes a port of the best grade.
//!
//! Makers describe the same mechanism under several names (adaptive routing, dynamic load balancing). A switch measures two things of each port:
//! its *load*, a moving average of what it sent, and its *queue*. Both are put into one of a few bands, which are weighed against each other; of the
//! ports in the best band, one is chosen at random. Juniper's DLB has eight bands, and gives load and queue the same weight unless it is told
//! otherwise; NVIDIA's adaptive routing goes by queue and port utilisation, too. Who chooses is a packet, or the first of a flowlet, which
//! follows the last one of its flow after an inactivity interval.
//!
//! How bands are cut is the makers' own. Here a port's load is its moving average as a share of its rate, and its queue a share of `queue`, the
//! depth from which a port counts as full.

use engine::{Bytes, Time};
use fabric::axes::load_balancing::Crossroads;
use fabric::axes::{Counter, Definition, LoadBalancer, LoadBalancingDef};
use fabric::id::PortId;
use fabric::routing::Rule;
use fabric::view::Site;

engine::choice! {
    /// What chooses a port.
    pub enum Mode {
        /// Every packet.
        Packet = "packet",
        /// The first packet of a flowlet.
        Flowlet = "flowlet",
    }
}

engine::parameters! {
    /// Parameters of adaptive routing.
    pub struct Params {
        /// What chooses a port: every packet, or the first of a flowlet.
        mode: Mode = Mode::Packet,
        /// A packet that comes later than this after the last of its entry begins a flowlet. Auto: the longest base round trip among the flows.
        interval: Option<Time> = None, in Time::from_ns(1)..=Time::from_ms(10_000), if mode == Mode::Flowlet,
        /// Entries of the table of flowlets.
        entries: u32 = 65_536, in 1..=1 << 20, if mode == Mode::Flowlet,
        /// How often the load of a port is sampled.
        sample: Time = Time::from_us(1), in Time::from_ns(10)..=Time::from_ms(10),
        /// Weight of a sample in the moving average, as a power of two: 1 is a half, 4 a sixteenth.
        gain: u32 = 4, in 0..=8,
        /// A port where this much waits is in the worst band.
        queue: Bytes = Bytes(100_000), in Bytes(1000)..=Bytes(100_000_000),
        /// Bands.
        bands: u32 = 8, in 2..=256,
        /// Weight of the load; the rest is the queue's.
        load_weight: f64 = 0.5, in 0.0..=1.0,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "adaptive"
    }
    fn about(&self) -> &'static str {
        "Adaptive routing: a packet, or a flowlet, takes a port whose load and queue are in the best band. Packets overtake one another."
    }
    fn source(&self) -> &'static str {
        "Juniper Networks, Customize Egress Port Link Quality Metrics for DLB, Junos AI-ML documentation; NVIDIA, Adaptive Routing, Cumulus Linux \
         documentation"
    }
}

impl LoadBalancingDef for Params {
    fn rule(&self) -> Rule {
        Rule::ByPacket
    }
    fn switch(&self, site: &Site<'_>) -> Option<Box<dyn LoadBalancer>> {
        site.forwards().then(|| Box::new(Adaptive::new(self, site)) as Box<dyn LoadBalancer>)
    }
    fn may_reorder(&self) -> bool {
        true
    }
}

/// One, in fractions of a port's rate.
const WHOLE: u64 = 1 << 16;
/// So many samples later nothing is left of an average.
const FORGOTTEN: u64 = 1 << 20;

/// The moving average of what a port sends, as a share of its rate.
#[derive(Clone, Copy, Default)]
struct Meter {
    /// Up to which sample it has been brought, and what the port had sent then.
    sample: u64,
    sent: u64,
    load: u64,
}

impl Meter {
    /// Brings it up to a sample. `full` is what the port can send between two.
    fn advance(&mut self, sample: u64, sent: u64, full: u64, gain: u32) {
        let passed = sample - self.sample;
        if passed == 0 {
            return;
        }
        // What was sent since is taken to have been sent evenly: nobody looked.
        let each = ((sent - self.sent) * WHOLE / full.max(1) / passed).min(WHOLE);
        (self.sample, self.sent) = (sample, sent);
        if passed >= FORGOTTEN {
            self.load = each;
            return;
        }
        for _ in 0..passed {
            let before = self.load;
            self.load = before + (each >> gain) - (before >> gain);
            if self.load == before {
                break;
            }
        }
    }
}

/// An entry of the table of flowlets.
#[derive(Clone, Copy)]
struct Flowlet {
    last: Time,
    port: PortId,
}

struct Adaptive {
    params: Params,
    interval: Time,
    /// Of the weights of load and queue, 1/256.
    load_weight: u64,
    /// By port.
    meters: Vec<Meter>,
    flowlets: Vec<Option<Flowlet>>,
    begun: u64,
}

impl Adaptive {
    fn new(params: &Params, site: &Site<'_>) -> Adaptive {
        let entries = if params.mode == Mode::Flowlet { params.entries as usize } else { 0 };
        Adaptive {
            interval: params.interval.unwrap_or(site.longest_rtt),
            load_weight: (params.load_weight * 256.0).round() as u64,
            meters: vec![Meter::default(); site.ports().len()],
            flowlets: vec![None; entries],
            begun: 0,
            params: params.clone(),
        }
    }

    /// The band of a candidate: 0 is the best.
    fn band(&mut self, at: &Crossroads<'_>, place: usize) -> u64 {
        let full = at.rate(place).bytes_over(self.params.sample);
        let meter = &mut self.meters[at.id(place).index()];
        meter.advance(at.now.0 / self.params.sample.0, at.sent(place), full, self.params.gain);
        let queue = (at.queued(place) * WHOLE / self.params.queue.0).min(WHOLE);
        let grade = (meter.load * self.load_weight + queue * (256 - self.load_weight)) >> 8;
        (grade * self.params.bands as u64 / WHOLE).min(self.params.bands as u64 - 1)
    }

    /// A random one of the candidates in the best band, whose links work.
    fn best(&mut self, at: &mut Crossroads<'_>) -> usize {
        let (mut best, mut count, mut chosen) = (u64::MAX, 0, 0);
        for place in 0..at.len() {
            let band = if at.up(place) { self.band(at, place) } else { u64::MAX - 1 };
            if band > best {
                continue;
            }
            count = if band < best { 1 } else { count + 1 };
            best = band;
            // Each of those that are equally good is kept with the same probability.
            if count == 1 || at.draw(count) == 0 {
                chosen = place;
            }
        }
        chosen
    }
}

impl LoadBalancer for Adaptive {
    fn choose(&mut self, at: &mut Crossroads<'_>) -> usize {
        if self.params.mode == Mode::Packet {
            return self.best(at);
        }
        let entry = at.hash() as usize % self.flowlets.len();
        let current = self.flowlets[entry].filter(|flowlet| at.now - flowlet.last <= self.interval);
        let place = current.and_then(|flowlet| at.place(flowlet.port)).filter(|&place| at.up(place));
        let place = place.unwrap_or_else(|| {
            self.begun += 1;
            self.best(at)
        });
        self.flowlets[entry] = Some(Flowlet { last: at.now, port: at.id(place) });
        place
    }
    fn counters(&self) -> Vec<Counter> {
        match self.params.mode {
            Mode::Packet => Vec::new(),
            Mode::Flowlet => vec![Counter::sum("flowlets", self.begun)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::axes::flow_control::NoFlowControl;
    use fabric::bench::Builder;

    #[test]
    fn the_load_is_a_moving_average_of_what_was_sent() {
        // A sample of 12 500 B at 100 Gb/s is 1 us. With a gain of a half: full for one sample, then idle for two.
        let mut meter = Meter::default();
        meter.advance(1, 12_500, 12_500, 1);
        assert_eq!(meter.load, WHOLE / 2);
        meter.advance(3, 12_500, 12_500, 1);
        assert_eq!(meter.load, WHOLE / 8);
        // Nobody looks for long: nothing is left, and it takes no time to find out.
        meter.advance(3 + FORGOTTEN, 12_500, 12_500, 1);
        assert_eq!(meter.load, 0);
    }

    fn ports(params: &Params, closed: &[u16], packets: usize, gap: Time) -> Vec<u16> {
        let mut bench = Builder::switch(1, 2).load_balancing(params).build(NoFlowControl);
        closed.iter().for_each(|&port| bench.close(PortId(port)));
        let flow = bench.flow(0, 3, 0);
        for _ in 0..packets {
            bench.arrive(PortId(0), flow);
            bench.advance(gap);
        }
        bench.data().iter().map(|sent| sent.port.0).collect()
    }

    #[test]
    fn packets_avoid_a_port_where_a_queue_grows() {
        // By queue alone, with a band for every 12.5 kB: port 1 sends nothing, and is left with a dozen packets in a hundred.
        let params = Params { load_weight: 0.0, ..Params::default() };
        let sent = ports(&params, &[1], 100, Time::from_us(1));
        assert!(sent.len() >= 85 && sent.iter().all(|port| *port == 2), "{}", sent.len());
    }

    #[test]
    fn packets_avoid_a_port_that_has_sent_more() {
        // By load alone, which is sampled between any two packets: what was just used is worse, so that packets alternate.
        let params = Params { load_weight: 1.0, gain: 0, bands: 256, sample: Time::from_us(1), ..Params::default() };
        let sent = ports(&params, &[], 20, Time::from_us(1));
        assert!(sent[2..].windows(2).all(|two| two[0] != two[1]), "{sent:?}");
    }

    #[test]
    fn a_flowlet_stays_where_its_first_packet_went() {
        let params = Params { mode: Mode::Flowlet, interval: Some(Time::from_us(5)), ..Params::default() };
        let together = ports(&params, &[], 50, Time::from_us(5));
        assert!(together.iter().all(|port| *port == together[0]));
        let apart = ports(&params, &[], 50, Time::from_us(6));
        assert!(apart.iter().any(|port| *port != apart[0]));
    }
}
