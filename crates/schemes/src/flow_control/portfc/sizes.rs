//! Thresholds, and the memory with which nothing is lost.
//!
//! With T the threshold and L what may still arrive over a link after a queue has asked it to stop ([`in_flight`], as headroom is
//! computed for PFC):
//!
//! - *Forwarded packets at a host* come by one link: T + L.
//! - *Transit queues of a switch port.* Each holds T before it is congested; the first that is stops what all of them are fed with,
//!   from n−1 hosts: (n−1)·T + (n−1)·L.
//! - *Last-hop queues.* After one is congested each of n−1 hosts may still send W = L + (T + L'): what is under way from the host, and what the
//!   host forwards, which is what it has queued or what its other switch still sends, never both in full. The queue is being emptied
//!   meanwhile, at an nth of the link at least (deficit round robin over n queues), and so are all others that are congested. Congested one after
//!   another, the a-th of them gains (n−1)·W · (1 − a / ((n−1)·n − a·(n−1))): while a of them are emptied at a/n of a link, and the rest
//!   of those links is used by transit that is replaced as fast.
//!
//! Where links differ, classes share a port or queues are served otherwise, every last-hop queue is given (n−1)·W.

use super::{Layout, Params};
use engine::{Bytes, Rate, Time};
use fabric::axes::flow_control::{Fabric, Room};
use fabric::clock::Clock;
use fabric::topology::Kind;
use fabric::topology::Link;

/// When a queue is congested, and when no longer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Above this it is.
    pub pause: u64,
    /// Not above this it no longer is.
    pub resume: u64,
}

/// All thresholds of a fabric.
pub struct Sizes {
    /// Of switches.
    pub switch: Marks,
    /// Of hosts.
    pub host: Marks,
    /// Whether memory is enough for them.
    pub room: Room,
}

/// Bytes that may still arrive after a packet that came in at time 0 has made a queue ask the neighbour to stop, in whichever direction there are more.
fn in_flight(link: &Link, there: Time, back: Time, largest: u64, frame: u64, frames: u64) -> u64 {
    let arrive = |asks: Rate, comes: Rate| {
        let time = |bytes: u64| Clock::Exact.duration(bytes, asks).0;
        let open = there.0 + time(largest.max(frame)) + frames * time(frame) + back.0;
        comes.bytes_over(Time(open)).min(u64::MAX / 4) + 2 * largest
    };
    let [forth, back_again] = link.rates;
    arrive(forth, back_again).max(arrive(back_again, forth))
}

impl Sizes {
    /// The thresholds that a fabric's memory allows.
    pub fn new(params: &Params, layout: &Layout, fabric: &Fabric<'_>) -> Sizes {
        let (n, classes, largest) = (layout.n as u64, fabric.classes as u64, fabric.largest);
        let frame = params.frame.0;
        let links = &fabric.graph.links;
        let most = |of: &dyn Fn(&Link) -> u64| links.iter().map(of).max().unwrap_or(0);
        // A pause and a resume for each thing that a link is notified of may go ahead of a frame.
        let at_switch = most(&|l| {
            let (there, back) = (l.delay + fabric.pipeline, l.delay + fabric.reaction);
            in_flight(l, there, back, largest, frame, 4 * (n - 1) * classes + 1)
        });
        let at_host = most(&|l| {
            let (there, back) = (l.delay + fabric.forward.delay, l.delay + fabric.pipeline + fabric.reaction);
            in_flight(l, there, back, largest, frame, 2 * n * classes + 1)
        });

        let alike = links.iter().all(|link| link.rates == [links[0].rates[0]; 2]);
        let in_turn = alike && classes == 1 && !fabric.unfair;
        // How often (n−1)·W in all; in units of 1/65536.
        let excess: u64 = match in_turn {
            false => (n * classes) << 16,
            true => (1..n)
                .map(|a| {
                    let rest = (n - 1) * n - a * (n - 1);
                    ((rest - a.min(rest)) << 16).div_ceil(rest)
                })
                .sum(),
        };
        // In 128 bits: thresholds and links may be anything.
        let wide = |number: u64| number as u128;
        let transit = wide(n * (n - 1) * classes);
        let need = |pause: u64| {
            let late = wide(pause) + wide(at_switch) + wide(at_host);
            let excess = (wide(n - 1) * wide(excess) * late).div_ceil(1 << 16);
            transit * (wide(pause) + wide(at_switch)) + wide(n * classes) * (wide(pause) + wide(largest)) + excess
        };
        let host_need = |pause: u64| wide(2 * classes) * (wide(pause) + wide(at_host));

        let of = |kind: Kind| {
            let nodes = fabric.graph.nodes.iter().zip(fabric.pool);
            nodes.filter(|(node, _)| node.kind == kind).map(|(_, pool)| pool.unwrap_or(u64::MAX)).min().unwrap_or(0)
        };
        let (memory, host_memory) = (of(Kind::Switch), of(Kind::Host));
        let (least, best) = (largest, 2 * at_switch.max(at_host));
        let fits = |pause: u64| need(pause) <= wide(memory) && host_need(pause) <= wide(host_memory);
        let pause = params.pause.map_or_else(|| largest_that(least, best, fits), |pause| pause.0);
        let resume = params.resume.map_or(pause / 2, |resume| resume.0.min(pause));
        let room = match fits(pause) {
            true => Room::Enough,
            false if host_need(pause) > wide(host_memory) => {
                Room::Short(short("hosts that forward", "nic.forward_buffer", host_need(pause), host_memory))
            }
            false => Room::Short(short("switches", "switch.buffer", need(pause), memory)),
        };
        let marks = Marks { pause, resume };
        Sizes { switch: marks, host: marks, room }
    }
}

fn short(who: &str, key: &str, need: u128, has: u64) -> String {
    let more = need.saturating_sub(has as u128).div_ceil(1000) * 1000;
    let more = Bytes(u64::try_from(more).unwrap_or(u64::MAX));
    format!("PortFC wants {more} more of memory at {who} ({key}): packets may be lost")
}

/// The largest number from `least` to `best` that fits; `least` if none does.
fn largest_that(least: u64, best: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (least, best.max(least));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}
