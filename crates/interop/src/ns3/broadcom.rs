//! The switches of ConWeave's simulator: memory with accounts as Broadcom's have them, and pauses that run out.
//!
//! A packet is counted by its ingress port and class, by ingress pool, and by egress queue. What is above a guarantee comes out of the pool;
//! when the pool is used up, out of the port's headroom. A class is paused, with every packet anew, while it holds more than a sixteenth of
//! what is left of the pool; the pause ends after a time, at the neighbour and in the switch's own books.

use engine::Time;
use fabric::axes::flow_control::{FlowControl, Visit};
use fabric::id::{ClassId, PortId};
use fabric::message;
use fabric::view::{NodeView, Site};

/// The guarantees of the accounts are in units of this.
const MTU: i64 = 1_048;
/// Classes that a switch has, whether flows use them or not.
const CLASSES: i64 = 8;
/// Memory for each port where no size is given.
const PER_PORT: i64 = 375_000;
/// The headroom of the port that is not there: the switch adds up ports from 0, and leaves the last one out.
const PORT_ZERO: i64 = 12_500 + 2 * MTU;
/// What an ingress port and class has before it is paused.
const GUARANTEED: i64 = 2 * MTU;
/// Egress queues are counted from here on.
pub const EGRESS_GUARANTEED: i64 = MTU + 1;
/// A class may hold this share of what is left.
const INGRESS_ALPHA: f64 = 1.0 / 16.0;
/// How far below its threshold a class is resumed, in bytes of the pool.
const RESUME_GAP: f64 = 16.0;
const PAUSE_FRAME: u16 = 43;

/// What all switches share.
#[derive(Clone, Debug)]
pub struct Broadcom {
    /// Memory of a switch in bytes; 0 for as much as its ports ask for.
    pub memory: i64,
    /// Whether it pauses its neighbours.
    pub pauses: bool,
    /// How long a pause lasts.
    pub pause: Time,
    /// Of each class, whether it has the second ingress pool: priority 1 has.
    pub second_pool: Vec<bool>,
}

/// The headroom of an ingress port.
pub fn headroom(bps: u64, delay: Time) -> i64 {
    (bps as u128 * delay.ns() as u128 / 8 / 1_000_000_000) as i64 * 2 + 2 * MTU
}

message! {
    /// What a frame says.
    pub enum Frame {
        /// Stop this class for a while.
        Pause {
            /// The class.
            class: ClassId,
        },
        /// Go on.
        Resume {
            /// The class.
            class: ClassId,
        },
    }
}

/// An ingress port and class.
#[derive(Clone, Copy, Debug, Default)]
struct Ingress {
    used: i64,
    headroom: i64,
    /// Its neighbour is paused, as far as the switch knows, until then.
    paused: Option<Time>,
    /// A pause was sent that no look at this port has ended.
    told: bool,
    /// What this port sends is paused by its neighbour until then.
    obeys: Option<Time>,
}

/// What a switch keeps.
#[derive(Debug, Default)]
pub struct Node {
    /// By port and class.
    ingress: Vec<Ingress>,
    /// By port.
    ports: Vec<(i64, i64)>,
    /// By port and class.
    egress: Vec<i64>,
    /// All that is held, and all of it that is above the egress guarantees.
    held: i64,
    shared: i64,
    pools: [i64; 2],
    memory: i64,
    ingress_limit: i64,
    egress_limit: i64,
}

const OWN: u32 = 0;
const OBEYED: u32 = 1;

impl Broadcom {
    fn place(&self, port: PortId, class: ClassId) -> usize {
        port.index() * self.second_pool.len() + class.index()
    }

    fn pool(&self, class: ClassId) -> usize {
        self.second_pool[class.index()] as usize
    }

    /// What a class may hold above its guarantee before it is paused.
    fn threshold(&self, node: &Node, class: ClassId, gap: f64) -> f64 {
        INGRESS_ALPHA * (node.ingress_limit as f64 - node.pools[self.pool(class)] as f64 - gap)
    }

    fn may_resume(&self, node: &Node, port: PortId, class: ClassId) -> bool {
        let account = &node.ingress[self.place(port, class)];
        account.paused.is_some()
            && ((account.used - GUARANTEED) as f64) < self.threshold(node, class, RESUME_GAP)
            && account.headroom == 0
    }

    fn resume(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, class: ClassId) {
        if self.pauses {
            at.send_frame(port, PAUSE_FRAME, Frame::Resume { class });
        }
        node.ingress[self.place(port, class)].paused = None;
    }

    fn timer(&self, class: ClassId, what: u32) -> u32 {
        class.0 as u32 * 2 + what
    }
}

fn above(bytes: i64) -> i64 {
    (bytes - EGRESS_GUARANTEED).max(0)
}

impl FlowControl for Broadcom {
    type Node = Node;
    type Frame = Frame;
    type Signal = ();
    const LOOKS_AT_QUEUES: bool = false;

    fn node(&self, site: &Site<'_>) -> Node {
        let (ports, classes) = (site.ports().len(), self.second_pool.len());
        let headroom: Vec<i64> = site.ports().map(|port| headroom(site.rate(port).0, site.link(port).delay)).collect();
        let memory = if self.memory > 0 { self.memory } else { PER_PORT * ports as i64 };
        let guaranteed = ports as i64 * CLASSES * MTU;
        let counted = PORT_ZERO + headroom.iter().take(ports.saturating_sub(1)).sum::<i64>();
        Node {
            ingress: vec![Ingress::default(); ports * classes],
            ports: headroom.into_iter().map(|headroom| (0, headroom)).collect(),
            egress: vec![0; ports * classes],
            memory,
            ingress_limit: memory - counted - guaranteed,
            egress_limit: memory - guaranteed,
            ..Node::default()
        }
    }

    fn timers(&self, classes: u8) -> u32 {
        classes as u32 * 2
    }

    fn admits(&self, node: &mut Node, _: &mut NodeView<'_>, visit: &Visit) -> bool {
        let size = visit.size as i64;
        let queued = above(node.egress[self.place(visit.out_port, visit.class)]);
        if node.shared + size > node.egress_limit || queued + size > node.egress_limit - node.shared {
            return false;
        }
        let account = node.ingress[self.place(visit.in_port, visit.class)];
        let (port, headroom) = node.ports[visit.in_port.index()];
        let guaranteed = account.used + size <= MTU || port + size <= MTU;
        let pool_left = node.pools[self.pool(visit.class)] <= node.ingress_limit;
        node.held + size <= node.memory && (guaranteed || pool_left || account.headroom + size <= headroom)
    }

    fn enqueued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        let (port, size) = (visit.in_port, visit.size as i64);
        let (pool, place) = (self.pool(visit.class), self.place(port, visit.class));
        node.held += size;
        node.pools[pool] += size;
        node.ports[port.index()].0 += size;
        node.ingress[place].used += size;
        if node.pools[pool] > node.ingress_limit {
            node.ingress[place].headroom += size;
        }
        let queue = &mut node.egress[self.place(visit.out_port, visit.class)];
        node.shared += above(*queue + size) - above(*queue);
        *queue += size;
        let headroom_used = node.ingress[place].headroom != 0;
        for class in (0..at.classes()).map(ClassId) {
            let over = node.ingress[self.place(port, class)].used - GUARANTEED;
            // The pool is that of the packet's own class.
            if over > 0 && (over as f64 > self.threshold(node, visit.class, 0.0) || headroom_used) {
                if self.pauses {
                    at.send_frame(port, PAUSE_FRAME, Frame::Pause { class });
                }
                let ends = at.now() + if self.pauses { self.pause } else { Time::ZERO };
                let account = &mut node.ingress[self.place(port, class)];
                (account.paused, account.told) = (Some(ends), true);
                at.set_timer(port, self.timer(class, OWN), ends);
            }
        }
        for class in (0..at.classes()).map(ClassId) {
            if node.ingress[self.place(port, class)].told && self.may_resume(node, port, class) {
                self.resume(node, at, port, class);
                node.ingress[self.place(port, class)].told = false;
            }
        }
    }

    fn dequeued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        let (port, size) = (visit.in_port, visit.size as i64);
        let place = self.place(port, visit.class);
        node.held -= size;
        node.pools[self.pool(visit.class)] -= size;
        node.ports[port.index()].0 -= size;
        let account = &mut node.ingress[place];
        account.used -= size;
        account.headroom = (account.headroom - size).max(0);
        let queue = &mut node.egress[self.place(visit.out_port, visit.class)];
        node.shared -= above(*queue) - above(*queue - size);
        *queue -= size;
        if self.may_resume(node, port, visit.class) {
            self.resume(node, at, port, visit.class);
        }
    }

    fn frame(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, frame: Frame) {
        let (class, pause) = match frame {
            Frame::Pause { class } => (class, true),
            Frame::Resume { class } => (class, false),
        };
        at.pause_class(port, class, pause);
        let ends = pause.then(|| at.now() + self.pause);
        node.ingress[self.place(port, class)].obeys = ends;
        if let Some(ends) = ends {
            at.set_timer(port, self.timer(class, OBEYED), ends);
        }
    }

    fn timer(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, timer: u32) {
        let class = ClassId((timer / 2) as u8);
        let account = &mut node.ingress[self.place(port, class)];
        // A timer that was set anew meanwhile goes off for nothing.
        match timer % 2 {
            OWN if account.paused == Some(at.now()) => account.paused = None,
            OBEYED if account.obeys == Some(at.now()) => {
                account.obeys = None;
                at.end_pause(port, class);
            }
            _ => {}
        }
    }
}
