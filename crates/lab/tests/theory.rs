//! Closed forms of documents against simulation.

use engine::{Rate, Time};
use lab::resolve::resolve;
use lab::scenario::Scenario;
use lab::theory::sfc::Path;

/// The worked example of SFC's appendix C.
const EXAMPLE: Path = Path {
    rate: Rate::from_gbps(100),
    to_switch: Time::from_us(4),
    to_receiver: Time::from_us(1),
    to_tor: Time::from_us(1),
    mtu: 4000,
};

/// The most that the congested switch holds when `senders` join one that is in its steady state, until the last
/// packet that they sent before they heard of it has arrived.
fn simulated(senders: u64, scheme: &str, notice: Time) -> u64 {
    let start = Time::from_us(50);
    let stop = start + notice + EXAMPLE.to_switch + Time::from_us(1);
    let flow = |host: u64| {
        let start = if host == 0 { Time::ZERO } else { start };
        format!("[[flow]]\nsrc = \"h{host}\"\ndst = \"h{}\"\nsize = \"10MB\"\nstart = \"{start}\"\n", senders + 1)
    };
    let flows: String = (0..=senders).map(flow).collect();
    let left = senders + 1;
    let text = format!(
        "stop = \"{stop}\"\n[topology]\nkind = \"dumbbell\"\nleft = {left}\nright = 1\nhost_rate = \"100Gbps\"\nhost_delay = \"1us\"\n\
         bottleneck_rate = \"10Tbps\"\nbottleneck_delay = \"3us\"\n[switch]\nunlimited = true\n[nic]\npayload = \"3938B\"\n\
         [scheme]\npreset = \"bts-ingress\"\n[scheme.sfc]\n{scheme}{flows}"
    );
    let resolved = Scenario::parse("a.toml", &text, std::path::Path::new("/nowhere"), &[]).and_then(resolve);
    let resolved = resolved.unwrap_or_else(|problem| panic!("{problem}\n{text}"));
    let outcome = resolved.simulate(&mut |_, _| true);
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert!(outcome.flow_control.iter().any(|&(name, count)| name == "sender_pauses" && count > senders));
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
    within(simulated(1, &scheme, EXAMPLE.notice_by_bts(k)), EXAMPLE.buffer_with_bts(k), 1);
}

#[test]
fn senders_that_start_at_once_fill_as_much_as_the_form_says_before_they_hear() {
    // First packets are told of as good as no queue, so every later one must tell, too: no suppression to speak of. A
    // sender finishes the packet it has begun; and the first four packets find a queue that drains in less than a
    // microsecond, and say nothing.
    for senders in [8, 16, 32] {
        let scheme = "trigger = \"0B\"\ntarget = \"0B\"\nreset = \"10ns\"\n";
        within(simulated(senders, scheme, EXAMPLE.feedback()), EXAMPLE.buffer_of_incast(senders), senders + 4);
    }
}
