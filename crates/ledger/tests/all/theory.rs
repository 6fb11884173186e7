//! Closed forms of papers against simulation.

use engine::Time;
use ledger::theory::sfc::EXAMPLE;
use scenario::Scenario;
use scenario::resolve::resolve;

/// The most that the congested switch holds when `senders` join one that is in its steady state, until the last
/// packet that they sent before they heard of it has arrived.
fn simulated(senders: u64, host_delay: Time, scheme: &str, notice: Time) -> u64 {
    let start = Time::from_us(50);
    let stop = start + notice + EXAMPLE.to_switch + Time::from_us(1);
    let flow = |host: u64| {
        let start = if host == 0 { Time::ZERO } else { start };
        format!("[[flow]]\nsrc = \"h{host}\"\ndst = \"h{}\"\nsize = \"10MB\"\nstart = \"{start}\"\n", senders + 1)
    };
    let flows: String = (0..=senders).map(flow).collect();
    let left = senders + 1;
    let text = format!(
        "stop = \"{stop}\"\n[topology]\nkind = \"dumbbell\"\nleft = {left}\nright = 1\nhost_rate = \"100Gbps\"\nhost_delay = \"{host_delay}\"\n\
         bottleneck_rate = \"10Tbps\"\nbottleneck_delay = \"3us\"\n[switch]\nunlimited = true\n[nic]\npayload = \"3938B\"\n\
         [scheme]\npreset = \"bts-ingress\"\n[scheme.sfc]\n{scheme}{flows}"
    );
    let resolved = Scenario::parse("a.toml", &text, std::path::Path::new("/nowhere"), &[]).and_then(resolve);
    let resolved = resolved.unwrap_or_else(|problem| panic!("{problem}\n{text}"));
    let outcome = resolved.simulate(&mut |_, _| true);
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert!(outcome.flow_control.iter().any(|counter| counter.name == "sender_pauses" && counter.value > senders));
    outcome.peak.into_iter().max().unwrap_or(0)
}

fn within(simulated: u64, computed: u64, packets: u64) {
    let off = simulated.abs_diff(computed);
    assert!(off <= packets * EXAMPLE.mtu, "{simulated} B simulated, {computed} B computed");
}

#[test]
fn a_second_sender_fills_as_much_as_the_form_says_before_it_hears() {
    // The form has senders pause long enough; a target of nothing makes them. The k-th packet that meets a queue
    // finds k − 1.
    let k = EXAMPLE.target_packets();
    let scheme = format!("trigger = \"{}B\"\ntarget = \"0B\"\n", (k - 1) * EXAMPLE.mtu - 1);
    within(simulated(1, EXAMPLE.to_tor, &scheme, EXAMPLE.notice_by_bts(k)), EXAMPLE.buffer_with_bts(k), 1);
}

/// The form has control packets take no time on the wire, and the first packets of all senders meet the queue at one instant. Here
/// they come one after the other by the wire between the switches: 32 × 3.2 ns, and 78 B at 100 Gb/s, which this takes off the path.
const LESS: Time = Time::from_ns(940);

/// Senders that say at every packet what they meet, for as good as no queue, and often.
const AT_ONCE: &str = "trigger = \"0B\"\ntarget = \"0B\"\nreset = \"10ns\"\n";

#[test]
fn senders_that_start_at_once_fill_as_much_as_the_form_says_before_they_hear() {
    // T_F·R is 26 packets of each sender. Besides, pauses are whole microseconds: the first four packets find a queue that
    // drains in less, and say nothing, so that their senders hear with their second packets, and send one more.
    for senders in [8, 16, 32] {
        let computed = EXAMPLE.buffer_of_incast(senders);
        let simulated = simulated(senders, LESS, AT_ONCE, EXAMPLE.feedback());
        within(simulated, computed, senders);
        assert_eq!(simulated, computed + 4 * EXAMPLE.mtu);
    }
}

#[test]
fn a_signal_that_takes_time_on_the_wire_costs_every_sender_the_packet_it_has_begun() {
    // With the delays of the example to the letter a signal comes some nanoseconds after T_F, when a sender has begun its next packet.
    for senders in [8, 16, 32] {
        let simulated = simulated(senders, EXAMPLE.to_tor, AT_ONCE, EXAMPLE.feedback());
        assert_eq!(simulated, EXAMPLE.buffer_of_incast(senders) + (senders + 4) * EXAMPLE.mtu);
    }
}
