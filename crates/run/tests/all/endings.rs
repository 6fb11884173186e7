//! Every flow ends, or the run says why not.

use crate::same::assert_same;
use engine::Time;
use fabric::run::Stall;
use run::outcome::STALLED;
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use std::path::Path;

fn read(text: &str, sets: &[String]) -> Resolved {
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), sets);
    scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

/// Links of three speeds, so that packets that take different paths overtake each other.
const UNEVEN: &str = r#"
[topology]
kind = "fat-tree"
k = 4
host_rate = "33.3Gbps"
edge_rate = "10Gbps"
core_rate = "25Gbps"
[switch]
buffer = "60KB"
[scheme]
preset = "pfc"
routing = "spray"
[[incast]]
degree = 15
size_each = "20KB"
count = 3
every = "1ns"
arrivals = "fixed"
"#;

#[test]
fn go_back_n_ends_although_its_packets_overtake_each_other() {
    for seed in 1..=20 {
        let resolved = read(UNEVEN, &[format!("seed={seed}")]);
        assert!(resolved.promised, "no packet is lost: a timeout is needed all the same");
        let finished = run::run(resolved, &mut |_, _| true);
        let summary = &finished.summary;
        assert_eq!((summary.ending, summary.finished), ("complete", summary.flows), "seed {seed}");
        assert_eq!((summary.dropped.packets, &summary.violations), (0, &vec![]), "seed {seed}");
    }
}

#[test]
fn no_link_is_used_more_than_all_of_the_time_however_soon_a_run_stops() {
    let text = "[topology]\nkind = \"star\"\nhosts = 4\n[[incast]]\ndegree = 3\nsize_each = \"30KB\"\ncount = 1\nevery = \"1us\"\n";
    for stop in ["1ps", "75ps", "1ns", "130ns", "1001ns", "2us"] {
        let summary = run::run(read(text, &[format!("stop={stop}")]), &mut |_, _| true).summary;
        let used = &summary.utilisation;
        for spread in [&used.from_hosts, &used.to_hosts, &used.between_switches] {
            assert!(spread.max.is_none_or(|most| most <= 1.0), "stopped at {stop}: {spread:?}");
        }
        assert!(used.receivers_gbps.max.is_none_or(|most| most <= 100.0), "stopped at {stop}");
    }
}

#[test]
fn a_switch_may_have_more_memory_than_32_bits_count() {
    for buffer in ["5GB", "8000066KB", "1000GB"] {
        let sets = [format!("switch.buffer={buffer}"), "scheme.preset=\"swift+irn\"".into()];
        let text = "[topology]\nkind = \"star\"\nhosts = 4\n[[incast]]\ndegree = 3\nsize_each = \"3MB\"\ncount = 1\nevery = \"1us\"\n";
        let summary = run::run(read(text, &sets), &mut |_, _| true).summary;
        assert_eq!((summary.ending, summary.dropped.packets), ("complete", 0), "{buffer}");
    }
}

#[test]
fn nobody_loses_patience_with_a_sender_that_backs_off_on_a_slow_link() {
    let text = r#"
        [topology]
        kind = "dumbbell"
        left = 6
        host_rate = "1294944bps"
        [scheme]
        congestion_control = "swift"
        [[link]]
        between = ["h8", "sw1"]
        corruption = 0.0328
        [[incast]]
        degree = 7
        size = "18088B"
        every = "1ns"
        count = 2
    "#;
    let summary = run::run(read(text, &[]), &mut |_, _| true).summary;
    assert_eq!((summary.ending, summary.finished), ("complete", 14));
}

/// At the least window of Swift a packet goes every thousand round trips; behind a link of 1 Mb/s that is minutes.
#[test]
fn nobody_loses_patience_with_a_sender_that_is_paced_slowly() {
    let text = r#"
        [topology]
        kind = "dumbbell"
        left = 3
        right = 3
        host_rate = "10Gbps"
        bottleneck_rate = "1131506bps"
        [nic]
        timeout = "4772994ps"
        [scheme]
        preset = "swift"
        [[flow]]
        src = 0
        dst = 3
        size = "1KB"
        [[flow]]
        src = 0
        dst = 4
        size = "1KB"
        [[flow]]
        src = 0
        dst = 5
        size = "9KB"
    "#;
    let summary = run::run(read(text, &[]), &mut |_, _| true).summary;
    assert_eq!((summary.ending, summary.finished), ("complete", 3));
}

/// DCQCN's rate falls to some bits a second and recovers by its timers, long before the packet that the low rate put off is due.
#[test]
fn nobody_loses_patience_with_a_sender_whose_rate_has_recovered() {
    let text = r#"
        [topology]
        kind = "two-sites"
        host_rate = "14Gbps"
        uplink_delay = "3525614ps"
        long_delay = "1ps"
        [scheme]
        preset = "dcqcn+win+irn"
        [scheme.dcqcn]
        min_rate = "1bps"
        [[incast]]
        degree = 15
        size_each = "71072B"
    "#;
    let summary = run::run(read(text, &[]), &mut |_, _| true).summary;
    assert_eq!((summary.ending, summary.finished), ("complete", summary.flows));
}

/// Hosts take so long to hand over each message that nothing moves for longer than anybody has patience, while flows wait for others.
#[test]
fn flows_that_wait_for_others_may_wait_for_long() {
    let text = r#"
        [topology]
        kind = "torus"
        [nic]
        send_latency = "25ms"
        [[collective]]
        kind = "ring-all-reduce"
        size = "1B"
        rounds = 2
    "#;
    let summary = run::run(read(text, &[]), &mut |_, _| true).summary;
    assert_eq!((summary.ending, summary.finished), ("complete", summary.flows));
}

/// Their ACKs are stuck in a cycle of queues; the timeout is shorter than the round trip, so that they send again and again.
#[test]
fn a_deadlock_is_recognised_although_others_send_for_ever() {
    let text = r#"
        [topology]
        kind = "bcube"
        [switch]
        alpha = 0.000001
        [nic]
        ack_lane = "data"
        timeout = "1716533ps"
        [[incast]]
        degree = 10
        size_each = "23901B"
        every = "15ns"
        count = 3
    "#;
    // Where packets are lost by chance, it takes longer to tell.
    let lossy = format!("{text}\n[[link]]\nbetween = [\"h0\", \"l0s0\"]\nloss = 0.01\n");
    for text in [text, &lossy] {
        let resolved = read(text, &[]);
        let ends = [1, 2].map(|threads| {
            let outcome = resolved.simulate_on(threads, &mut |_, _| true);
            assert!(matches!(outcome.stall, Some(Stall::Deadlock(_))), "{text}: {:?}", outcome.stall);
            outcome.end
        });
        assert_eq!(ends[0], ends[1]);
    }
}

/// Pauses and resumes that each go in a frame of their own pile up before a slow link: they come too late to keep memory from running over,
/// and ACKs do not come through.
#[test]
fn changes_of_mind_do_not_pile_up_before_a_slow_link() {
    let dvl = "[topology]\nkind = \"dumbbell\"\nbottleneck_rate = \"14Gbps\"\n[switch]\nalpha = 0.000001\n\
               [nic]\nack_lane = \"data\"\ntimeout = \"1000001ps\"\npayload = \"110B\"\n\
               [scheme]\npreset = \"dvl\"\n[scheme.dvl]\nframe = \"102B\"\n\
               [[flow]]\nsrc = \"h10\"\ndst = \"h3\"\nsize = \"5746B\"\n[[flow]]\nsrc = \"h15\"\ndst = \"h10\"\nsize = \"2873B\"\n";
    let qcz = "[topology]\nkind = \"two-sites\"\nleaves = 1\nhosts_per_leaf = 5\nspines = 4\nhost_rate = \"100Gbps\"\n\
               host_delay = \"2048654ps\"\nuplink_rate = \"10Gbps\"\nuplink_delay = \"376474ps\"\nlong_rate = \"17638266bps\"\n\
               [switch]\nalpha = 0\n[nic]\npayload = \"1B\"\n[scheme]\npreset = \"802.1qcz\"\n\
               [[slow]]\nhost = \"h7\"\nrate = \"56Gbps\"\n[[incast]]\ndegree = 1\nsize = \"41B\"\nevery = \"8660ns\"\ncount = 2\n";
    for text in [dvl, qcz] {
        let finished = run::run(read(text, &["stop=\"1s\"".into()]), &mut |_, _| true);
        assert_eq!((finished.summary.finished, finished.outcome.violations), (2, vec![]), "{text}");
    }
}

/// A frame of 64 B takes 243 us at 2.1 Mb/s: one that has to be renewed more often leaves no room for data.
#[test]
fn pauses_that_are_renewed_do_not_fill_a_slow_link() {
    let text = "[topology]\nkind = \"k-ary-n-tree\"\nk = 3\nn = 3\nrate = \"2106517bps\"\ndelay = \"6ps\"\n\
                [switch]\nalpha = 0.001\nthreshold = \"0B\"\n[[incast]]\ndegree = 24\nsize_each = \"15B\"\nevery = \"23ns\"\ncount = 3\n";
    let sets = ["scheme.pfc.pause=4389671ps".to_string()];
    let refused = Scenario::parse("a.toml", text, Path::new("/nowhere"), &sets).and_then(resolve).err().unwrap();
    assert!(refused.to_string().contains("write \"7778us\" or more"), "{refused}");
    let lossy = format!("{text}\n[[link]]\nbetween = [\"h0\", \"l0s0\"]\nloss = 0.001\n");
    for (text, sets) in [(text, &["scheme.pfc.pause=7778us".to_string()][..]), (&lossy, &[])] {
        let finished = run::run(read(text, sets), &mut |_, _| true);
        assert_eq!(finished.summary.ending, "complete", "{text}");
    }
}

/// A pause waits for a control packet that is longer than all data.
#[test]
fn headroom_counts_control_packets() {
    for scheme in
        ["congestion_control = \"bolt\"\n[scheme.bolt]\n", "preset = \"sfc\"\n[scheme.sfc]\ntrigger = \"1B\"\n"]
    {
        let text = format!(
            "[topology]\nkind = \"dumbbell\"\nhost_delay = \"1ps\"\n[switch]\nthreshold = \"1B\"\n[nic]\npayload = \"1B\"\n\
             [[incast]]\ndegree = 3\nsize_each = \"95B\"\nevery = \"1ns\"\ncount = 3\n[scheme]\n{scheme}packet = \"290B\"\n"
        );
        let finished = run::run(read(&text, &[]), &mut |_, _| true);
        assert_eq!((finished.summary.ending, finished.outcome.violations), ("complete", vec![]), "{text}");
    }
}

#[test]
fn a_part_of_memory_that_no_packet_fits_in_is_refused() {
    let text = "[topology]\nkind = \"star\"\nhosts = 4\n[switch]\nsharing = \"static\"\nqueues = 2\nbuffer = \"21KB\"\n\
                [scheme]\npreset = \"hpcc+irn\"\n[[flow]]\nsrc = 0\ndst = 1\nsize = \"1783B\"\n";
    let refused = Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]).and_then(resolve).err().unwrap();
    assert!(refused.message.contains("has 577 B, less than one packet"), "{refused}");
    let sets = ["switch.buffer=30KB".to_string()];
    let summary = run::run(read(text, &sets), &mut |_, _| true).summary;
    assert_eq!(summary.ending, "complete");
}

#[test]
fn a_nic_that_keeps_less_than_a_packet_is_refused() {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n[[slow]]\nhost = \"h1\"\nrate = \"1Gbps\"\nbuffer = \"1B\"\n\
                [[flow]]\nsrc = 0\ndst = 1\nsize = \"9KB\"\n";
    let refused = Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]).and_then(resolve).err().unwrap();
    assert!(refused.message.contains("the NIC of h1 keeps 1B, less than one packet of 1062 B"), "{refused}");
    assert_eq!(refused.line, Some(7), "{refused}");
    let text = text.replace("1B", "1062B");
    assert_eq!(run::run(read(&text, &[]), &mut |_, _| true).summary.ending, "complete");
}

#[test]
fn a_quantum_of_any_size_is_served() {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n[switch]\nquantum = \"1GB\"\n[scheme]\npreset = \"bfc-no-high-priority\"\n\
                [[flow]]\nsrc = 1\ndst = 0\nsize = \"137487B\"\n[[flow]]\nsrc = 1\ndst = 0\nsize = \"137487B\"\n\
                [[flow]]\nsrc = 2\ndst = 0\nsize = \"137487B\"\n";
    assert_eq!(run::run(read(text, &[]), &mut |_, _| true).summary.ending, "complete");
}

#[test]
fn the_automatic_timeout_is_longer_than_the_round_trip() {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\ndelay = \"3ms\"\n[scheme]\npreset = \"lossy\"\n\
                [[flow]]\nsrc = 1\ndst = 0\nsize = \"1MB\"\n";
    let resolved = read(text, &[]);
    assert!(
        resolved.setup.nic.timeout.is_some_and(|timeout| timeout >= Time::from_ms(24)),
        "{:?}",
        resolved.setup.nic.timeout
    );
    let finished = run::run(resolved, &mut |_, _| true);
    assert_eq!((finished.summary.ending, finished.summary.retransmitted.packets), ("complete", 0));
}

/// ACKs are larger than what they are for, so that they are under way long after all data has come.
#[test]
fn nobody_loses_patience_while_acks_come_in() {
    let text = "[topology]\nkind = \"dumbbell\"\nleft = 2\nhost_rate = \"1Mbps\"\nbottleneck_rate = \"1Mbps\"\n\
                [scheme]\npreset = \"pfc\"\n[nic]\npayload = \"1B\"\nack_size = \"1KB\"\n\
                [[flow]]\nsrc = 0\ndst = 2\nsize = \"3KB\"\n";
    let resolved = read(text, &[]);
    let one = resolved.simulate_on(1, &mut |_, _| true);
    for (threads, blocks) in [(2, 2), (1, 2)] {
        let other = resolved.simulate_in(threads, Some(blocks), &mut |_, _| true);
        assert_same(&one, &other, &format!("{threads} threads, {blocks} blocks"));
    }
    let summary = run::run(resolved, &mut |_, _| true).summary;
    assert_eq!((summary.ending, summary.finished), ("complete", 1), "{:?}", summary.violations);
}

#[test]
fn a_flow_that_waits_for_ever_breaks_a_promise_unless_a_link_fails() {
    for seed in 1..=20 {
        let mut resolved = read(UNEVEN, &[format!("seed={seed}")]);
        resolved.setup.nic.timeout = None;
        let summary = run::run(resolved, &mut |_, _| true).summary;
        if summary.finished < summary.flows {
            assert_eq!(summary.ending, STALLED, "seed {seed}");
            let waiting = summary.flows - summary.finished;
            let [said] = &summary.violations[..] else { panic!("{:?}", summary.violations) };
            assert!(said.starts_with(&format!("{waiting} flow")) && said.contains("for ever"), "{said}");
            assert!(summary.end_ps < Time::from_ms(100).0);
            return;
        }
    }
    panic!("with a timeout that never comes, none of the runs stalled: this no longer tests anything");
}

#[test]
fn an_absolute_threshold_pauses_at_so_many_bytes_and_loses_nothing_where_there_are_fewer() {
    // Two hosts at 100 Gb/s into one: each ingress fills at half of that, until it has its reserve and the threshold.
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n[scheme]\npreset = \"pfc\"\n[switch]\nthreshold = \"100KB\"\n\
                [[flow]]\nsrc = 1\ndst = 0\nsize = \"4MB\"\n[[flow]]\nsrc = 2\ndst = 0\nsize = \"4MB\"\n";
    let summary = run::run(read(text, &[]), &mut |_, _| true).summary;
    let least = 2 * (100_000 + 4_096);
    // What comes after: at most a round trip of 2 us at 100 Gb/s and three packets, of which half has left again.
    let most = least + 2 * (25_000 + 3 * 1_062);
    assert!((least - 2 * 1_062..most).contains(&summary.buffer.peak), "{}", summary.buffer.peak);
    assert!(summary.pause.pauses > 0 && summary.dropped.packets == 0);
    // More than there is for both: the memory that is free decides.
    let sets = ["switch.threshold=1MB".to_string(), "switch.buffer=300KB".to_string()];
    let summary = run::run(read(text, &sets), &mut |_, _| true).summary;
    assert_eq!((summary.ending, summary.dropped.packets), ("complete", 0));
    assert!(summary.pause.pauses > 0 && summary.buffer.peak <= 300_000);
    let sets = ["switch.threshold=0B".to_string(), "switch.reserve=0B".to_string(), "switch.headroom=1KB".to_string()];
    let refused = Scenario::parse("a.toml", text, Path::new("/nowhere"), &sets).and_then(resolve).err().unwrap();
    assert!(refused.message.contains("can never take in a packet"), "{refused}");
    assert!(refused.help.as_ref().is_some_and(|help| help.contains("larger threshold")));
}

#[test]
fn headroom_holds_what_comes_until_a_pause_takes_effect() {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n[scheme]\npreset = \"pfc\"\n[switch]\nthreshold = \"100KB\"\n\
                [[flow]]\nsrc = 1\ndst = 0\nsize = \"4MB\"\n[[flow]]\nsrc = 2\ndst = 0\nsize = \"4MB\"\n";
    let set = |keys: &[&str]| keys.iter().map(|key| key.to_string()).collect::<Vec<_>>();
    let headroom = |sets: &[String]| read(text, sets).setup.ports.iter().map(|port| port.share.headroom).max().unwrap();
    // 100 Gb/s for 2 us.
    let (quick, slow) = (headroom(&[]), headroom(&set(&["switch.reaction=2us"])));
    assert_eq!(slow - quick, 25_000);
    let run = |sets: &[String]| run::run(read(text, sets), &mut |_, _| true);
    let (at_once, later) = (run(&[]).summary, run(&set(&["switch.reaction=2us"])).summary);
    assert_eq!((later.ending, later.dropped.packets), ("complete", 0));
    // Each of two senders goes on for 2 us, and half of what they send leaves again.
    let more = later.buffer.peak as i64 - at_once.buffer.peak as i64;
    assert!((25_000 - 3 * 1_062..25_000 + 3 * 1_062).contains(&more), "{more}");
    // With what would do for a quick neighbour, packets are lost where nothing else is free, and nothing is promised.
    let small = format!("switch.headroom={quick}B");
    let sets = set(&["switch.reaction=20us", "switch.threshold=10KB", "switch.buffer=120KB", &small]);
    let finished = run(&sets);
    assert!(finished.summary.dropped.packets > 0 && finished.outcome.violations.is_empty());
    assert!(
        finished.summary.notes.iter().any(|note| note.contains("headroom is less")),
        "{:?}",
        finished.summary.notes
    );
}

#[test]
fn asking_why_changes_nothing_where_hosts_forward() {
    let mut paused = 0;
    for seed in 1..=12u64 {
        // Flows of many sizes between any two hosts, most of them by way of a third that has flows of its own.
        let flows = (0..24u64).map(|number| {
            let roll = |salt: u64| (seed * 1_000 + number * 37 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            let (src, away) = (roll(1) % 16, 1 + roll(2) % 15);
            let (dst, size, start) = ((src + away) % 16, 1 + roll(3) % 300_000, roll(4) % 30_000);
            format!("[[flow]]\nsrc = {src}\ndst = {dst}\nsize = \"{size}B\"\nstart = \"{start}ns\"\n")
        });
        let text = format!(
            "[topology]\nkind = \"bcube\"\nn = 4\nk = 1\nrate = \"10Gbps\"\ndelay = \"867ns\"\n[switch]\nbuffer = \"60KB\"\n\
             [nic]\npayload = \"1635B\"\nack_every = 8\npacing = false\nsend_latency = \"1635ns\"\nforward_delay = \"346ns\"\n\
             [scheme]\npreset = \"window\"\n{}",
            flows.collect::<String>()
        );
        let mut resolved = read(&text, &[]);
        let unasked = resolved.simulate_in(1, Some(1), &mut |_, _| true);
        resolved.setup.measure.why = true;
        for (threads, blocks) in [(1, 1), (2, 1), (1, 4)] {
            let asked = resolved.simulate_in(threads, Some(blocks), &mut |_, _| true);
            assert_eq!(asked.counts, unasked.counts, "seed {seed}, {threads} threads, {blocks} blocks");
        }
        paused += unasked.counts.pauses;
    }
    assert!(paused > 100, "{paused} pauses");
}
