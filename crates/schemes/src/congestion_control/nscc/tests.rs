//! Windows worked out by hand, on a network of which the public simulator prints its constants: 100 Gb/s, a round trip of 14.02272 us, packets of 4150 B.

use super::super::{plain_ack, plain_start};
use super::*;

const RTT: u64 = 14_022_720;
const FULL: i64 = 4150;

fn begin() -> FlowStart {
    let rtt = Time(RTT);
    FlowStart { base_rtt: rtt, longest_rtt: rtt, payload: 4086, header: 64, trims: true, ..plain_start() }
}

/// A sender, and how it is fed.
struct Fed {
    nscc: Nscc,
    permit: Permit,
    received: u64,
}

impl Fed {
    fn new(params: Params) -> Fed {
        let mut nscc = Nscc { params, flows: Slots::default(), counts: Counts::default() };
        let permit = nscc.start(0, begin());
        Fed { nscc, permit, received: 0 }
    }
    /// At `us`, an ACK of so many full packets, the last of which had waited for `delay`.
    fn ack(&mut self, us: u64, packets: u64, delay: Time, marked: bool) -> i64 {
        self.received += packets * 4086;
        let now = Time::from_us(us);
        let stamp = now.saturating_sub(Time(RTT) + delay);
        let ack = Ack { stamp, marked, received: self.received, flight: 100_000, ..plain_ack(now) };
        self.nscc.ack(0, &ack, &mut self.permit);
        self.flow().window
    }
    fn trim(&mut self, us: u64, forgiven: bool) -> i64 {
        let trim = Trim { bytes: 4086, flight: 100_000, rtt: Time(RTT), forgiven };
        self.nscc.incident(0, Time::from_us(us), Incident::Trimmed(trim), &mut self.permit);
        self.flow().window
    }
    fn flow(&mut self) -> &mut Flow {
        self.nscc.flows.get(0)
    }
}

#[test]
fn constants_are_those_that_the_public_simulator_prints() {
    let c = Constants::new(&Params::default(), &begin());
    assert_eq!((c.network_rtt, c.target, c.adjust_after), (14_022_720, 10_517_040, 33_200));
    let close = |ours: f64, printed: f64| (ours / printed - 1.0).abs() < 1e-5;
    assert!(close(c.alpha, 0.00159158) && close(c.fair, 23873.7) && close(c.eta, 716.21) && close(c.fast, 0.29214));
    // Without trimming, the target is the round trip.
    assert_eq!(Constants::new(&Params::default(), &FlowStart { trims: false, ..begin() }).target, RTT);
}

#[test]
fn a_flow_begins_with_one_and_a_half_products_and_sends_while_a_packet_fits() {
    let mut fed = Fed::new(Params::default());
    assert_eq!(fed.flow().window, 262_926);
    // 63 packets of 4150 B are 261 450 B, and another does not fit.
    let packets = |permit: &Permit| (0..).find(|sent| sent * 4086 >= permit.window).expect("a bound");
    assert_eq!(packets(&fed.permit), 63);
    let small = Fed::new(Params { window: Some(Bytes(1)), ..Params::default() });
    assert_eq!(packets(&small.permit), 1, "one packet always goes");
}

#[test]
fn the_window_does_what_its_four_cases_say() {
    let target = Time(10_517_040);
    let half = Time(target.0 / 2);
    let fed = || {
        let mut fed = Fed::new(Params::default());
        fed.flow().window = 100_000;
        fed.flow().last_adjust = Time::from_us(1000);
        // It looks for the first time at the first ACK, and then not for a while.
        fed.flow().look = Time::from_us(2000);
        fed
    };
    // Eight packets, 33 200 B, are not more than what is waited for; the ninth is. α · 37 350 · half the target, over the window.
    let mut below = fed();
    assert_eq!(below.ack(1001, 8, half, false), 100_000);
    let grown = (0.001591580 * 37_350.0 * half.0 as f64 / 100_000.0) as i64;
    assert!((below.ack(1002, 1, half, false) - 100_000 - grown).abs() <= 1);
    let mut above = fed();
    above.ack(1001, 8, target, false);
    assert_eq!(above.ack(1002, 1, target, false), 100_000 + (23_873.7 * 37_350.0 / 100_000.0) as i64);
    // Once per round trip, and only if the average is above the target as well.
    let mut marked = fed();
    assert_eq!(marked.ack(1001, 1, target, true), 100_000);
    marked.flow().average = target.0 * 2;
    let after = marked.ack(1002, 1, target + target, true);
    // 1 − 0.8 · (avg − target) / avg, with the average at twice the target: 0.6.
    assert_eq!(after, 60_000);
    assert_eq!(marked.ack(1003, 1, target + target, true), after);
    let next = marked.ack(1002 + 15, 1, target + target, true);
    assert!(next < after && next >= after / 2, "{next}");
    // The load balancer's business.
    assert_eq!(fed().ack(1001, 20, half, true), 100_000);
}

#[test]
fn eta_is_added_once_per_round_trip_and_the_window_stays_within_its_bounds() {
    let mut fed = Fed::new(Params::default());
    fed.flow().window = 50_000;
    let first = fed.ack(100, 0, Time(10_000_000), true);
    assert_eq!(first, 50_000 + 716);
    assert_eq!(fed.ack(101, 0, Time(10_000_000), true), first);
    assert_eq!(fed.ack(115, 0, Time(10_000_000), true), first + 716);
    (0..200).for_each(|step| _ = fed.ack(200 + 20 * step, 10, Time::ZERO, false));
    assert_eq!(fed.flow().window, 262_926);
}

#[test]
fn without_delay_for_a_whole_window_it_grows_by_a_quarter_of_what_is_acknowledged() {
    let mut fed = Fed::new(Params::default());
    fed.flow().window = 40_000;
    fed.flow().last_adjust = Time::from_us(90);
    assert_eq!(fed.ack(91, 4, Time::ZERO, false), 40_000);
    // 41 500 B by then; 0.29214 of 6 · 4150 B.
    assert_eq!(fed.ack(92, 6, Time::ZERO, false), 40_000 + (24_900.0 * 0.29214) as i64 + collected(16_600.0, 47_274.0));
    /// What the four packets before had collected, divided by the window.
    fn collected(bytes: f64, window: f64) -> i64 {
        (0.00159158 * bytes * 10_517_040.0 / window) as i64
    }
}

#[test]
fn a_window_becomes_what_has_arrived_where_that_is_little() {
    let mut fed = Fed::new(Params::default());
    // The first ACK begins a period of the base round trip and the target, 24.54 us.
    fed.ack(100, 2, Time::ZERO, false);
    fed.ack(110, 2, Time::ZERO, false);
    fed.trim(120, false);
    let before = fed.flow().window;
    // 8300 B since the period began, and the NACK that ends it.
    assert_eq!((fed.trim(125, false), fed.nscc.counts.quick_cuts), (8_300, 1));
    assert!(before > 250_000);
    // Of what was in flight then, marks and NACKs are ignored: 100 000 B on the wire less what is acknowledged meanwhile.
    assert_eq!(fed.trim(126, false), 8_300);
    assert_eq!(fed.ack(127, 1, Time(60_000_000), true), 8_300);
    // A period without trims and with short delays is none of its business.
    let mut calm = Fed::new(Params::default());
    (0..10).for_each(|step| _ = calm.ack(100 + 30 * step, 1, Time(20_000_000), false));
    assert_eq!((calm.nscc.counts.quick_cuts, calm.flow().window > 200_000), (0, true));
    // Four targets late is.
    calm.ack(500, 1, Time(42_200_000), false);
    assert_eq!((calm.nscc.counts.quick_cuts, calm.flow().window), (1, FULL));
    let mut never = Fed::new(Params { quick_adapt: false, ..Params::default() });
    (0..10).for_each(|step| _ = never.trim(100 + 30 * step, false));
    assert_eq!((never.flow().window, never.nscc.counts.quick_cuts), (262_926 - 10 * FULL, 0));
}

#[test]
fn what_is_trimmed_or_lost_takes_its_size_unless_credits_see_to_it() {
    let mut fed = Fed::new(Params::default());
    assert_eq!(fed.trim(1, false), 262_926 - FULL);
    assert_eq!(fed.trim(1, true), 262_926 - FULL);
    fed.nscc.incident(0, Time::from_us(2), Incident::Lost, &mut fed.permit);
    assert_eq!(fed.flow().window, 262_926 - 2 * FULL);
    (0..100).for_each(|_| fed.nscc.incident(0, Time::from_us(3), Incident::Lost, &mut fed.permit));
    assert_eq!((fed.flow().window, fed.permit.window), (FULL, 1));
}

#[test]
fn a_round_trip_shorter_than_the_base_is_the_base_from_then_on() {
    let mut fed = Fed::new(Params::default());
    let ack = Ack { stamp: Time::from_us(90), received: 4086, ..plain_ack(Time::from_us(98)) };
    fed.nscc.ack(0, &ack, &mut fed.permit);
    // 8 us at 100 Gb/s are 100 000 B.
    assert_eq!((fed.flow().base, fed.flow().most, fed.flow().window), (8_000_000, 150_000, 150_000));
}

#[test]
fn the_average_hardly_believes_an_unmarked_delay_above_the_target() {
    let mut fed = Fed::new(Params::default());
    fed.flow().average = 8_000_000;
    fed.flow().sample(20_000_000, true);
    assert_eq!(fed.flow().average, 8_150_000);
    fed.flow().sample(20_000_000, false);
    // 0.0125 · 14.02272 us / 4 + 0.9875 · 8.15 us.
    assert_eq!(fed.flow().average, 8_091_946);
}

#[test]
fn extreme_settings_leave_the_window_at_its_bounds() {
    // A proportional increase beyond all numbers: both grow with the round trip that is written.
    let params = Params { network_rtt: Some(Time::from_ms(10_000)), ..Params::default() };
    let mut fed = Fed::new(params);
    for us in 1001..1101 {
        let window = fed.ack(us, 8, Time::from_us(2), false);
        let most = fed.flow().most;
        assert!((FULL..=most).contains(&window), "{window} of {most}");
    }
}
