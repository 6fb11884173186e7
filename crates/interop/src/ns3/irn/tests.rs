use super::*;

fn blocks(list: &[(u64, u64)]) -> Blocks {
    let mut blocks = Blocks::default();
    list.iter().for_each(|&(from, to)| blocks.insert(from, to));
    blocks
}

#[test]
fn what_touches_becomes_one_stretch() {
    assert_eq!(blocks(&[(3, 4), (1, 2), (5, 6)]).0, [(1, 2), (3, 4), (5, 6)]);
    assert_eq!(blocks(&[(3, 4), (1, 2), (2, 3)]).0, [(1, 4)]);
    assert_eq!(blocks(&[(1, 9), (2, 3), (20, 30), (0, 1)]).0, [(0, 9), (20, 30)]);
    let mut some = blocks(&[(1, 4), (6, 8)]);
    assert!(some.has(2, 4) && !some.has(3, 5) && some.has(6, 8));
    some.pass(7);
    assert_eq!(some.0, [(7, 8)]);
    some.pass(8);
    assert_eq!(some, Blocks::default());
}

#[test]
fn a_sender_skips_what_has_arrived_right_where_it_is_and_nothing_else() {
    let mut flow = Sending { arrived: blocks(&[(2_000, 3_000), (5_000, 6_000)]), ..Sending::default() };
    let mut sender = Sender::default();
    (sender.next, sender.size) = (1_000, 9_000);
    flow.skip(&mut sender);
    assert_eq!(sender.next, 1_000);
    sender.next = 2_000;
    flow.skip(&mut sender);
    assert_eq!((sender.next, flow.arrived.0.as_slice()), (3_000, [(5_000, 6_000)].as_slice()));
    sender.next = 5_500;
    flow.skip(&mut sender);
    assert_eq!(sender.next, 5_500);
}

#[test]
fn what_is_in_flight_is_huge_when_all_is_acknowledged() {
    let flow = Sending { furthest: 4_000, acked: 5_000, ..Sending::default() };
    assert!(flow.in_flight() > 1 << 31);
}

#[test]
fn the_monitor_looks_until_its_time_is_over() {
    let us = Time::from_us;
    let monitor = Monitor { from: us(100), to: us(125), every: us(10) };
    assert_eq!(
        [us(99), us(100), us(119), us(120)].map(|now| monitor.last(now)),
        [None, Some(us(100)), Some(us(110)), Some(us(120))]
    );
    // The one at 120 us plans another; the one at 130 us does not.
    assert_eq!([us(130), us(1_000)].map(|now| monitor.last(now)), [Some(us(130)), Some(us(130))]);
}
