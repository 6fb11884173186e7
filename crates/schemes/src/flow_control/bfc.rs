//! Backpressure Flow Control: per-hop, per-flow pauses with few queues and little state.
//!
//! A switch gives every flow that has packets queued a physical queue of its own, as long as there are any (§3.3). A flow whose
//! queue is longer than it needs to be is paused at the upstream neighbour, by a Bloom filter of all paused flows that is sent
//! up every link twice in a hop's round trip (§3.4 to §3.6). The upstream holds every queue whose first packet matches;
//! a NIC, which has a queue per flow, every flow that does. The first packet of a flow goes ahead of everything (§3.7). PFC
//! stays underneath and should never be needed (§3.9).
//!
//! A frame every microsecond on every link would cost more to simulate than the traffic. Frames that say nothing new are not
//! sent as packets; the time they take on a link is charged to the next packet there ([`FlowControl::lag`]).

mod filter;
#[cfg(test)]
mod model;
mod table;
#[cfg(test)]
mod tests;

use super::{lets_all_come, max, pfc, samples, sum};
use engine::{Bytes, Misfit, Rate, Time};
use fabric::axes::flow_control::{FlowControl, FlowControlDef, Headroom, Job, Layout, Over, Visit};
use fabric::axes::{Chosen, Counter, Definition, Histogram};
use fabric::buffer::{Account, Buffer};
use fabric::deadlock::Waits;
use fabric::id::{ClassId, FlowId, PortId, QueueId};
use fabric::message::Payload;
use fabric::packet::{Kind, Packet, flag};
use fabric::probe::{Because, Scope, Subject};
use fabric::routing::Tuple;
use fabric::topology::Graph;
use fabric::view::{NodeView, Site};
use fabric::{Outcome, Setup, message};
use filter::{Counting, MAX_HASHES, Received, Shape};
use pfc::Pfc;
use std::collections::{BTreeMap, VecDeque};
use table::{EntryId, NO_QUEUE, NONE, State, Table};

engine::choice! {
    /// How a flow gets its physical queue.
    pub enum Assignment {
        /// One that no other flow has, if there is any.
        Dynamic = "dynamic",
        /// By hash, and pauses hold the queue of that hash upstream (the paper's straw proposal, BFC-VFID).
        Hashed = "hashed",
    }
}

engine::choice! {
    /// Which physical queue a flow gets when all have one.
    pub enum Crowded {
        /// Any.
        Random = "random",
        /// The shortest.
        Shortest = "shortest",
        /// Any that is not held by the downstream neighbour.
        Unpaused = "unpaused",
    }
}

engine::choice! {
    /// Which paused flows of a physical queue go on when it is short again.
    pub enum Resume {
        /// One whenever a pause frame is due (§3.5).
        Paced = "paced",
        /// One in the same time, as soon as it may, and none while the queue is longer than its threshold.
        Checked = "checked",
        /// All at once (BFC-BufferOpt).
        All = "all",
        /// A flow when the last of its packets that found the queue too long has left (NSDI'22). A frame says so at once.
        Marked = "marked",
    }
}

engine::choice! {
    /// What a pause names.
    pub enum Pauses {
        /// A flow.
        Flows = "flows",
        /// The queue that the flow has upstream, which packets carry (NSDI'22). At a NIC, which has a queue per flow, a flow.
        Queues = "queues",
    }
}

engine::choice! {
    /// When a paused flow with no packet left in a queue is to be resumed.
    pub enum Emptied {
        /// When the queue is short, as for a flow that has.
        Waits = "waits",
        /// When its last packet leaves.
        Listed = "listed",
    }
}

engine::parameters! {
    /// Parameters of BFC.
    pub struct Params {
        /// Physical queues of every egress port.
        queues: u32 = 32,
        /// Virtual flow IDs: values of the hash of a flow's addresses and ports.
        vfids: u32 = 16_384,
        /// Entries in each bucket of the flow table, which has as many buckets as there are VFIDs.
        bucket: u32 = 4,
        /// Entries of a switch's cache for flows whose bucket is full.
        cache: u32 = 100,
        /// Size of the Bloom filter in a pause frame.
        filter: Bytes = Bytes(128),
        /// Hash functions of the Bloom filter.
        hashes: u32 = 4,
        /// Size of the headers of a pause frame.
        frame_header: Bytes = Bytes(18),
        /// Time from a pause frame to its effect, over one hop and back. Auto: the two delays of the link.
        hop_rtt: Option<Time> = None,
        /// Time between pause frames on a link. Auto: half of hop_rtt, and eight times what a frame takes at least. Never less
        /// than twice that.
        period: Option<Time> = None,
        /// How a flow gets its physical queue.
        assignment: Assignment = Assignment::Dynamic,
        /// Which physical queue a flow gets when every one has a flow.
        crowded: Crowded = Crowded::Random,
        /// Which paused flows of a physical queue go on when it is short again.
        resume: Resume = Resume::Paced,
        /// When a paused flow that has no packet left in its physical queue is to be resumed, with `resume = "paced"`.
        emptied: Emptied = Emptied::Waits, if resume == Resume::Paced,
        /// The first packet of a flow goes into a queue that goes before all others.
        high_priority: bool = true,
        /// What a pause names. A queue that is paused is no free one, and free ones are taken at random.
        pauses: Pauses = Pauses::Flows,
        /// How long a flow comes back to its physical queue after its last packet has left there. Others may have it meanwhile.
        keep: Time = Time::ZERO,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "bfc"
    }
    fn about(&self) -> &'static str {
        "Backpressure flow control: switches give flows queues of their own and pause them one by one at the upstream \
         neighbour. PFC stays underneath. Lossless."
    }
    fn source(&self) -> &'static str {
        "P. Goyal, P. Shah, N. K. Sharma, M. Alizadeh and T. E. Anderson, Backpressure Flow Control, \
         arXiv:1909.09923, 2019"
    }
    fn conflict(&self, with: &Chosen<'_>) -> Option<Misfit> {
        // A flow at a switch is its addresses and the ports by which it comes and goes (§3.3). The two paths of a flow that is moved are two flows at the
        // last switch, with a queue each. When the last packet of the old path has joined its queue those put aside join the other, and the two are
        // served in turns. With one queue, or queues by hash, order is kept.
        let because = "packets of a flow that come by two ports have two queues, whose turns would undo the order";
        lets_all_come(self.name(), because, with)
    }
    fn check(&self) -> Result<(), Misfit> {
        let range = |name: &'static str, value: u64, least: u64, most: u64| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(Misfit::new(name, value, format!("write {least} to {most}"))),
        };
        range("queues", self.queues as u64, 1, 128)?;
        range("vfids", self.vfids as u64, 1, 65_536)?;
        range("bucket", self.bucket as u64, 1, 1024)?;
        range("cache", self.cache as u64, 0, 1_000_000)?;
        range("hashes", self.hashes as u64, 1, MAX_HASHES as u64)?;
        if !(1..=1024).contains(&self.filter.0) || self.filter.0 * 8 < self.hashes as u64 {
            let help = "write a size from \"1B\" to \"1024B\", with a bit for each hash function at least";
            return Err(Misfit::new("filter", self.filter, help));
        }
        if self.frame_header.0 > 512 {
            return Err(Misfit::new("frame_header", self.frame_header, "write a size up to \"512B\""));
        }
        if self.keep > Time::from_ms(1000) {
            return Err(Misfit::new("keep", self.keep, "write a time up to \"1s\""));
        }
        for (name, time) in [("hop_rtt", self.hop_rtt), ("period", self.period)] {
            if time.is_some_and(|time| !(Time::from_ns(10)..=Time::from_ms(1000)).contains(&time)) {
                return Err(Misfit::new(name, time.unwrap_or_default(), "write \"10ns\" to \"1s\", or \"auto\""));
            }
        }
        Ok(())
    }
}

impl Params {
    /// Bytes of a pause frame.
    fn frame_size(&self) -> u64 {
        self.filter.0 + self.frame_header.0
    }
    /// Queues of every port and class: the physical queues, the one that goes first and the overflow queue.
    fn all_queues(&self) -> u32 {
        self.queues + 2
    }
}

impl FlowControlDef for Params {
    fn soon_over(&self) -> bool {
        true
    }
    fn layout(&self, _: &Graph) -> Result<Layout, Misfit> {
        Ok(Layout {
            queues: Some(self.all_queues()),
            express: Some(self.queues),
            // The filter that waits, one that is charged to the packet under way, and one that comes due meanwhile.
            headroom: Some(Headroom { other_frames: 3 }),
            frame: self.frame_size(),
            stops_for_hosts: true,
            ..Layout::default()
        })
    }
    fn waits(&self, _: &Setup) -> Waits {
        // A held flow holds up the packets behind it in its queue, which may have any flows in it: as PFC underneath does it.
        Waits::Classes
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // An entry: ingress, egress and queue in a byte each, packets in two, and its state in one.
        const ENTRY: u64 = 6;
        let table = (self.vfids as u64 * self.bucket as u64 + self.cache as u64) * ENTRY;
        // A counter of a byte for every bit that is sent, and the filter that was received.
        let filters = ports * (self.filter.0 * 8 + self.filter.0);
        // By queue: how many flows it has, and who is to be resumed next.
        let queues = ports * classes * self.queues as u64 * 4;
        table + filters + queues + pfc::Params::default().switch_state(ports, classes)
    }
    fn pause_in(&self, frame: &Packet) -> Option<(u8, bool)> {
        pfc::pause_beneath(frame)
    }
    fn run(&self, job: Job<'_>) -> Outcome {
        let scheme = over_pfc(self, &job.setup, job.promised);
        job.run(scheme)
    }
}

/// BFC as it is meant to be run: over PFC.
fn over_pfc(params: &Params, setup: &Setup, promised: bool) -> Over<Bfc, Pfc> {
    Over { upper: Bfc::new(params, setup), lower: Pfc::beneath(&setup.graph, promised) }
}

message! {
    /// A pause frame.
    pub struct Frame {
        /// The flows that are paused, as [`Counting::snapshot`] has them.
        filter: Payload,
    }
}

/// A port of a node that forwards, as packets come in by it: whom it pauses at the neighbour.
struct Ingress {
    filter: Counting,
    /// Packets queued here that found their queue too long, by what their pause names, with `resume = "marked"`.
    marks: BTreeMap<u16, u32>,
    /// How often a filter that says nothing is still sent: once after a change, or as often as makes sure that one arrives.
    repeats: u32,
    /// How often that is after a change.
    most: u32,
    /// Its link repeats frames, and may have none to spare for new ones: a frame that waits is sent as the newest is.
    latest: bool,
    /// The next frame is on the event queue.
    ticking: bool,
    /// Time between frames.
    period: Time,
    /// Frames go at this time past every period.
    phase: Time,
    /// How long a frame takes on the link.
    frame_time: Time,
    /// Bytes that the link carries from one frame to the next.
    capacity: u64,
    /// The first of its row of thresholds.
    row: usize,
    /// Physical queues whose next flow to be resumed came by this port.
    waiting: Vec<Spot>,
}

/// A port as packets leave by it: whom the neighbour has paused.
struct Egress {
    received: Received,
    /// When the next frame is due; [`Time::MAX`] where none ever is.
    due: Time,
    /// Which column of the thresholds.
    column: usize,
}

/// Why a flow is stopped that nobody paused.
const FALSE_POSITIVE: &str = "a false positive, others have set its bits in the pause frame's Bloom filter";

/// A physical queue.
#[derive(Clone, Default)]
struct Physical {
    /// Flows that have it.
    flows: u32,
    /// Flows to be resumed, with the turn of their entry.
    list: VecDeque<(EntryId, u32)>,
    /// Paused flows with no packet left here, which are to be resumed when it is short.
    emptied: Vec<(EntryId, u32)>,
    /// No flow is resumed before.
    next_resume: Time,
    /// A resume is on the event queue, or the port of the next flow to be resumed knows of it.
    waiting: bool,
}

/// A queue of a port, counted within its class.
#[derive(Clone, Copy)]
struct Spot {
    port: PortId,
    class: ClassId,
    queue: u32,
}

/// Where the packet at hand goes.
#[derive(Clone, Copy)]
enum Plan {
    /// Ahead of everything, or without an entry in the table.
    Apart,
    /// With its flow, in that queue.
    With(EntryId, u16),
    /// The first of its flow here, in that queue.
    First(u16),
}

#[derive(Default)]
struct Counts {
    assignments: u64,
    collisions: u64,
    pauses: u64,
    resumes: u64,
    frames: u64,
    lookups: u64,
    false_positives: u64,
    insertions: u64,
    vfid_collisions: u64,
    /// Bytes of frames that were due, and what their links could have carried from one to the next.
    frame_bytes: u64,
    capacity_bytes: u64,
    overflows: u64,
    express: u64,
    filter_peak: u64,
    /// Sampled: flows with a physical queue, and those of them that share it.
    flows_queued: u64,
    flows_sharing: u64,
    /// Sampled: ports with a physical queue in use, and those with one that is shared.
    ports_busy: u64,
    ports_sharing: u64,
    /// Sampled as long as flows start: all ports, and those with a physical queue that is shared.
    ports_sampled: u64,
    ports_sampled_sharing: u64,
}

/// The mechanism: what all nodes share.
#[derive(Clone)]
pub struct Bfc {
    params: Params,
    shape: Shape,
    /// The queue that goes first.
    express: u32,
    /// The queue of flows without an entry.
    overflow: u32,
    classes: u32,
    /// How often a change is sent: once, or more often where links lose frames.
    repeats: u32,
    /// When the last flow starts.
    last_start: Time,
    /// It is BFC as the paper has it: the first free queue, pauses of flows, paced resumes.
    plain: bool,
}

/// What a node keeps. A host that does not forward has only what its ports received.
pub struct Node {
    table: Table,
    plan: Plan,
    /// By port.
    egress: Vec<Egress>,
    /// By port.
    ingress: Vec<Ingress>,
    /// Physical queues that have a flow, by lane: port and class.
    taken: Vec<u128>,
    /// By lane and queue.
    physical: Vec<Physical>,
    /// (HRTT + period) times the egress rate in bytes, by kind of ingress and kind of egress.
    thresholds: Vec<u64>,
    /// Flows that keep their physical queue although they have no packet there: until when, entry and turn.
    kept: VecDeque<(Time, EntryId, u32)>,
    counts: Counts,
    /// Samples by number of physical queues in use at a port that has any.
    in_use: Vec<u64>,
    /// Samples by kilobytes in a physical queue that has any; and of those at ports to hosts.
    kilobytes: Vec<u64>,
    kilobytes_to_hosts: Vec<u64>,
    /// As long as flows start, samples of every port by physical queues in use and by flows that share theirs, and of ports to
    /// hosts by flows with packets queued.
    occupied: Vec<u64>,
    sharing: Vec<u64>,
    flows_to_hosts: Vec<u64>,
    /// The same of the switch by flows with packets queued.
    active: Vec<u64>,
}

/// How often a filter that has become empty is sent where links lose frames. The protocol never stops sending; that all of
/// these get lost is as good as impossible.
const REPEATS: u32 = 64;
/// The most of all, where a link is so patient that it would be a long time.
const MOST_REPEATS: u64 = 1 << 16;

/// Set in the word of a packet that found its queue too long, beside its entry.
const MARK: u32 = 1 << 31;

/// The timer of a port for its next frame. Those of its physical queues, class by class, come after it.
const TICK: u32 = 0;

/// The seed of the hash that names flows; unlike any node's.
const VFID_SEED: u32 = 0x0bfc_0bfc;

/// Adds a sample to a histogram.
fn count(counts: &mut Vec<u64>, value: usize) {
    if counts.len() <= value {
        counts.resize(value + 1, 0);
    }
    counts[value] += 1;
}

/// The value that a share `q` of a histogram's samples do not exceed.
fn quantile(counts: &[u64], q: f64) -> u64 {
    let mut left = (counts.iter().sum::<u64>() as f64 * q).ceil() as u64;
    let reached = counts.iter().position(|&count| {
        left = left.saturating_sub(count);
        left == 0
    });
    reached.unwrap_or(0) as u64
}

impl Bfc {
    /// BFC over the fabric of a setup.
    pub fn new(params: &Params, setup: &Setup) -> Bfc {
        Bfc {
            params: params.clone(),
            shape: Shape::new(params.filter.0 as u32, params.hashes),
            express: params.queues,
            overflow: params.queues + 1,
            classes: setup.classes as u32,
            repeats: if setup.graph.links.iter().any(|link| link.lossy()) { REPEATS } else { 1 },
            last_start: setup.flows.iter().map(|flow| flow.start).max().unwrap_or_default(),
            plain: params.assignment == Assignment::Dynamic
                && params.pauses == Pauses::Flows
                && params.resume == Resume::Paced
                && params.keep == Time::ZERO,
        }
    }

    /// How often a filter that has become empty is sent. A link that gives up repeating loses at once whatever it has kept until then: all frames of that
    /// time count as one.
    fn repeats(&self, site: &Site<'_>, port: PortId, period: Time) -> u32 {
        let limits = site.setup.retry_limits(site.map, site.number(port)).filter(|limits| limits.gives_up());
        let kept = limits.map_or(0, |limits| limits.patience().0 / period.0);
        (self.repeats as u64).saturating_mul(1 + kept).min(MOST_REPEATS) as u32
    }

    /// Time from a pause frame to its effect, and time between frames, at a port.
    fn timing(&self, site: &Site<'_>, port: PortId) -> (Time, Time) {
        let (to, back) = site.latency(port);
        let hop_rtt = self.params.hop_rtt.unwrap_or(to + back).max(Time::from_ns(10));
        let frame = self.frame_time(site, port).max(self.turn(site, port)).0;
        // A link shorter than its frames must not carry nothing else.
        let period = match self.params.period {
            None => (hop_rtt.0 / 2).max(8 * frame),
            Some(period) => period.0.max(2 * frame),
        };
        (hop_rtt, Time(period))
    }

    /// Time in which a link that repeats carries a frame, of as many as it keeps until they are acknowledged.
    fn turn(&self, site: &Site<'_>, port: PortId) -> Time {
        site.setup.retry_limits(site.map, site.number(port)).map_or(Time::ZERO, |limits| {
            let kept = limits.frames.min(limits.bytes / self.params.frame_size()).max(1);
            Time(limits.round.0 / kept)
        })
    }

    fn frame_time(&self, site: &Site<'_>, port: PortId) -> Time {
        site.setup.clock.duration(self.params.frame_size(), site.rate(port))
    }

    /// Its name for a flow in filters: the flow's VFID, or that of its queue.
    #[inline]
    fn name(&self, vfid: u16) -> u16 {
        match self.params.assignment {
            Assignment::Dynamic => vfid,
            Assignment::Hashed => vfid % self.params.queues as u16,
        }
    }

    /// A packet's virtual flow.
    #[inline]
    fn vfid(&self, packet: &Packet) -> u16 {
        match self.params.pauses {
            Pauses::Flows => packet.tag,
            Pauses::Queues => self.tag(&packet.tuple),
        }
    }

    /// The name in filters of a queue, by its number among all of its port's. VFIDs are small numbers, these great ones.
    #[inline]
    fn queue_name(queue: QueueId) -> u16 {
        !(queue.0 as u16)
    }

    /// What leaves by a port in a class.
    #[inline]
    fn lane(&self, port: PortId, class: ClassId) -> u32 {
        port.0 as u32 * self.classes + class.0 as u32
    }

    /// The first queue of a class among all of a port's.
    #[inline]
    fn first_queue(&self, class: ClassId) -> u32 {
        class.0 as u32 * self.params.all_queues()
    }

    /// The queue that a packet was put in.
    #[inline]
    fn spot(&self, visit: &Visit) -> Spot {
        Spot { port: visit.out_port, class: visit.class, queue: visit.queue.0 - self.first_queue(visit.class) }
    }

    /// A queue's number among all of its port's.
    #[inline]
    fn number(&self, spot: Spot) -> QueueId {
        QueueId(self.first_queue(spot.class) + spot.queue)
    }

    /// The place of a physical queue.
    #[inline]
    fn place(&self, spot: Spot) -> usize {
        self.lane(spot.port, spot.class) as usize * self.params.queues as usize + spot.queue as usize
    }

    /// The timer of a physical queue: when its next flow may be resumed.
    fn resume_timer(&self, spot: Spot) -> u32 {
        TICK + 1 + spot.class.0 as u32 * self.params.queues + spot.queue
    }

    /// A physical queue of a port and class for a flow.
    fn assign(&self, node: &Node, at: &mut NodeView<'_>, port: PortId, class: ClassId, vfid: u16) -> u16 {
        let queues = self.params.queues;
        if self.params.assignment == Assignment::Hashed {
            return vfid % queues as u16;
        }
        let number = |queue: u32| self.number(Spot { port, class, queue });
        let mut free = !node.taken[self.lane(port, class) as usize] & (u128::MAX >> (128 - queues));
        let received = &node.egress[port.index()].received;
        let by_queue = self.params.pauses == Pauses::Queues;
        if by_queue && received.any() {
            let paused = |&queue: &u32| received.pauses(self.shape, Self::queue_name(number(queue)));
            (0..queues).filter(paused).for_each(|queue| free &= !(1 << queue));
        }
        if free != 0 {
            // The first one, or the first from a random one on, lest a flow find the queue taken that it comes back to.
            let from = if by_queue || self.params.keep > Time::ZERO { at.draw(queues as u64) } else { 0 };
            let later = free & (u128::MAX << from);
            return if later == 0 { free } else { later }.trailing_zeros() as u16;
        }
        let queue = match self.params.crowded {
            Crowded::Random => at.draw(queues as u64) as u32,
            Crowded::Shortest => {
                let length = |queue: &u32| at.queue_bytes(port, number(*queue));
                (0..queues).min_by_key(|queue| (length(queue), *queue)).unwrap_or(0)
            }
            Crowded::Unpaused => {
                let open: Vec<u32> = (0..queues).filter(|&queue| !at.is_held(port, number(queue))).collect();
                match open.len() as u64 {
                    0 => at.draw(queues as u64) as u32,
                    many => open[at.draw(many) as usize],
                }
            }
        };
        queue as u16
    }

    /// Whether a flow's queue is longer than what keeps it busy until a resume takes effect:
    /// Th = (HRTT + τ) · μ / N (§3.4).
    #[inline(always)]
    fn over(&self, node: &Node, at: &NodeView<'_>, in_port: PortId, spot: Spot) -> bool {
        let (out_port, queue) = (spot.port, self.number(spot));
        let bytes = at.queue_bytes(out_port, queue);
        let threshold = node.thresholds[node.ingress[in_port.index()].row + node.egress[out_port.index()].column];
        // Short even if all queues were active: most are.
        if bytes * (self.classes * self.params.all_queues()) as u64 <= threshold {
            return false;
        }
        // A held queue computes as if it were not; the high-priority queue does not count.
        let express =
            |class: u32| at.is_filled(out_port, QueueId(class * self.params.all_queues() + self.express)) as u32;
        let active = at.active_queues(out_port) + at.is_held(out_port, queue) as u32
            - (0..self.classes).map(express).sum::<u32>();
        bytes * active.max(1) as u64 > threshold
    }

    /// Charges the frames that were due at a port and were not sent to the packet that is about to be.
    #[inline(never)]
    fn charge(&self, node: &mut Node, at: &NodeView<'_>, port: PortId) -> Time {
        let egress = &mut node.egress[port.index()];
        let (now, due) = (at.now(), egress.due);
        // The latest frame that was due; it went as soon as the link was free.
        let ingress = &node.ingress[port.index()];
        let frames = (now.0 - due.0) / ingress.period.0 + 1;
        node.counts.frame_bytes += frames * self.params.frame_size();
        node.counts.capacity_bytes += frames * ingress.capacity;
        let due = Time(now.0 - (now.0 - due.0) % ingress.period.0);
        egress.due = due + ingress.period;
        (due.max(at.free_at(port)) + ingress.frame_time).saturating_sub(now)
    }

    /// A queue that is too long.
    fn because(&self, spot: Spot) -> Because {
        Because::Queue { port: spot.port, queue: QueueId(self.first_queue(spot.class) + spot.queue) }
    }

    /// Pauses a flow, whose queue is at `spot`, by that name.
    fn pause(&self, node: &mut Node, at: &mut NodeView<'_>, id: EntryId, spot: Spot, name: u16) {
        let entry = &mut node.table[id];
        match std::mem::replace(&mut entry.state, State::Paused) {
            State::Running => {}
            // It leaves the list, and goes to the list's end if it is listed again.
            State::Listed => return entry.turn += 1,
            State::Paused => return,
        }
        entry.name = name;
        let (in_port, turn) = (entry.in_port, entry.turn);
        at.orders(in_port, Subject::name(name as u32), self.because(spot));
        node.counts.pauses += 1;
        let ingress = &mut node.ingress[in_port.index()];
        ingress.filter.insert(name);
        ingress.repeats = ingress.most;
        node.counts.filter_peak = node.counts.filter_peak.max(ingress.filter.len() as u64);
        ingress.tick_later(at, in_port);
        if self.params.resume == Resume::All {
            node.physical[self.place(spot)].list.push_back((id, turn));
        }
    }

    fn resume(&self, node: &mut Node, at: &mut NodeView<'_>, id: EntryId) {
        let entry = &mut node.table[id];
        entry.state = State::Running;
        let (in_port, name) = (entry.in_port, entry.name);
        // It may still come back to its queue.
        let gone = entry.packets == 0 && (self.params.keep == Time::ZERO || entry.until < at.now());
        node.counts.resumes += 1;
        let ingress = &mut node.ingress[in_port.index()];
        ingress.filter.remove(name);
        ingress.repeats = ingress.most;
        ingress.tick_later(at, in_port);
        if gone {
            node.table.remove(id);
        }
    }

    /// A packet has found its queue too long: what its pause names is paused until it has left.
    fn mark(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, spot: Spot, name: u16) {
        let ingress = &mut node.ingress[port.index()];
        let marks = ingress.marks.entry(name).or_default();
        *marks += 1;
        if *marks > 1 {
            return;
        }
        at.orders(port, Subject::name(name as u32), self.because(spot));
        node.counts.pauses += 1;
        ingress.filter.insert(name);
        ingress.repeats = ingress.most;
        node.counts.filter_peak = node.counts.filter_peak.max(ingress.filter.len() as u64);
        ingress.tick_later(at, port);
    }

    /// Such a packet has left. A frame tells of the last one at once.
    fn unmark(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, name: u16) {
        let ingress = &mut node.ingress[port.index()];
        let Some(marks) = ingress.marks.get_mut(&name) else { return };
        *marks -= 1;
        if *marks > 0 {
            return;
        }
        ingress.marks.remove(&name);
        node.counts.resumes += 1;
        ingress.filter.remove(name);
        ingress.repeats = ingress.most;
        self.send(node, at, port);
        node.ingress[port.index()].tick_later(at, port);
    }

    /// Forgets the flows that have not come back to their queues in time.
    fn forget(&self, node: &mut Node, now: Time) {
        while let Some(&(until, id, turn)) = node.kept.front()
            && until < now
        {
            node.kept.pop_front();
            let entry = &mut node.table[id];
            if entry.turn != turn || entry.packets > 0 || entry.until != until {
                continue;
            }
            entry.queue = NO_QUEUE;
            if entry.state == State::Running {
                node.table.remove(id);
            }
        }
    }

    /// Sends what is paused to the neighbour at a port.
    fn send(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        let ingress = &node.ingress[port.index()];
        node.counts.frames += 1;
        node.counts.frame_bytes += self.params.frame_size();
        let (size, frame) = (self.params.frame_size() as u16, Frame { filter: ingress.filter.snapshot() });
        match ingress.latest {
            true => _ = at.send_latest(port, size, frame, |_: &Frame| true),
            false => at.send_frame(port, size, frame),
        }
    }

    fn tick(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        for spot in std::mem::take(&mut node.ingress[port.index()].waiting) {
            self.resume_due(node, at, spot, port);
        }
        let ingress = &mut node.ingress[port.index()];
        ingress.ticking = false;
        if ingress.repeats > 0 || !ingress.filter.is_empty() {
            ingress.repeats = ingress.repeats.saturating_sub(1);
            node.egress[port.index()].due = at.now() + ingress.period;
            node.counts.capacity_bytes += ingress.capacity;
            self.send(node, at, port);
            node.ingress[port.index()].tick_later(at, port);
        }
    }

    /// A flow of the queue may be resumed when its turn comes (§3.5).
    fn list(&self, node: &mut Node, at: &mut NodeView<'_>, spot: Spot, id: EntryId) {
        node.table[id].state = State::Listed;
        let turn = node.table[id].turn;
        node.physical[self.place(spot)].list.push_back((id, turn));
        match self.params.resume {
            Resume::Checked => self.resume_next(node, at, spot),
            _ => self.await_frame(node, spot),
        }
    }

    /// A queue is short: its flows that have no packet left there may be resumed, too.
    ///
    /// They would not ask for themselves. A queue that runs empty is short, so that none is forgotten.
    fn list_emptied(&self, node: &mut Node, at: &mut NodeView<'_>, spot: Spot) {
        for (id, turn) in std::mem::take(&mut node.physical[self.place(spot)].emptied) {
            let entry = &node.table[id];
            if entry.turn == turn && entry.state == State::Paused && entry.packets == 0 {
                self.list(node, at, spot, id);
            }
        }
    }

    /// The first flow on a queue's list that still waits to be resumed, and the port it came by.
    fn next_listed(&self, node: &mut Node, place: usize) -> Option<(EntryId, PortId)> {
        while let Some(&(id, turn)) = node.physical[place].list.front() {
            let entry = &node.table[id];
            if entry.turn == turn && entry.state == State::Listed {
                return Some((id, entry.in_port));
            }
            node.physical[place].list.pop_front();
        }
        None
    }

    /// The first flow on a queue's list is resumed when the next frame goes to where it comes from.
    fn await_frame(&self, node: &mut Node, spot: Spot) {
        let place = self.place(spot);
        if !node.physical[place].waiting
            && let Some((_, in_port)) = self.next_listed(node, place)
        {
            node.physical[place].waiting = true;
            node.ingress[in_port.index()].waiting.push(spot);
        }
    }

    /// A frame goes out by `port`: resumes the first flow on a queue's list if it came by there, and if none of the queue was
    /// resumed in this interval.
    ///
    /// Frames go by every port once in an interval, so that a queue resumes one flow in each as long as any is listed.
    fn resume_due(&self, node: &mut Node, at: &mut NodeView<'_>, spot: Spot, port: PortId) {
        let place = self.place(spot);
        node.physical[place].waiting = false;
        if let Some((id, in_port)) = self.next_listed(node, place)
            && in_port == port
            && node.physical[place].next_resume <= at.now()
        {
            let period = node.ingress[port.index()].period.0;
            node.physical[place].next_resume = Time((at.now().0 / period + 1) * period);
            node.physical[place].list.pop_front();
            self.resume(node, at, id);
        }
        self.await_frame(node, spot);
    }

    /// Resumes the first flow on a queue's list if the queue is short and it is time, and otherwise when it is.
    ///
    /// The paper has flows leave the list whatever the queue has become meanwhile ([`Resume::Paced`]).
    fn resume_next(&self, node: &mut Node, at: &mut NodeView<'_>, spot: Spot) {
        let place = self.place(spot);
        while let Some((id, in_port)) = self.next_listed(node, place) {
            if node.physical[place].waiting || self.over(node, at, in_port, spot) {
                return;
            }
            let physical = &mut node.physical[place];
            if at.now() < physical.next_resume {
                physical.waiting = true;
                return at.set_timer(spot.port, self.resume_timer(spot), physical.next_resume);
            }
            physical.next_resume = at.now() + node.ingress[in_port.index()].period;
            self.resume(node, at, id);
            node.physical[place].list.pop_front();
        }
    }

    /// Resumes all paused flows of a queue.
    fn resume_all(&self, node: &mut Node, at: &mut NodeView<'_>, place: usize) {
        for (id, turn) in std::mem::take(&mut node.physical[place].list) {
            if node.table[id].turn == turn && node.table[id].state == State::Paused {
                self.resume(node, at, id);
            }
        }
    }

    /// Holds a queue whose first packet is of a paused flow, and lets any other go on.
    #[inline]
    fn look(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, queue: QueueId) {
        let received = &node.egress[port.index()].received;
        let (mut hold, mut really) = (None, false);
        if received.any()
            && let Some(head) = at.head(port, queue)
        {
            let name = match self.params.pauses {
                Pauses::Flows => self.name(at.packet(head).tag),
                Pauses::Queues => Self::queue_name(queue),
            };
            hold = received.pauses(self.shape, name).then_some(name);
            really = hold.is_some() && received.really(self.shape, name);
            node.counts.lookups += 1;
            node.counts.false_positives += (hold.is_some() && !really) as u64;
        }
        at.hold_queue(port, queue, hold.is_some());
        if let Some(name) = hold {
            match really {
                true => at.stopped_for(port, Scope::Held(queue), Subject::name(name as u32)),
                false => at.stopped_by_rule(port, Scope::Held(queue), FALSE_POSITIVE),
            }
        }
    }

    /// Holds a flow of a NIC if it is paused. Its first packet goes ahead here as at a switch, whose high-priority queue is never
    /// paused (§3.7).
    fn look_at_flow(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        let received = &node.egress[port.index()].received;
        let ahead = self.params.high_priority && !at.flow_open(flow);
        let name = self.name(at.flow_tag(flow));
        let hold = !ahead && received.pauses(self.shape, name);
        at.hold_flow(flow, hold);
        if hold {
            Self::tell(at, port, flow, name, received.really(self.shape, name));
        }
    }

    /// Why a flow of a NIC has just been held: its name was paused, or its bits in the filter are set by others.
    fn tell(at: &mut NodeView<'_>, port: PortId, flow: FlowId, name: u16, really: bool) {
        match really {
            true => at.held_for(flow, None, Subject::name(name as u32)),
            false => at.stopped_by_rule(port, Scope::Flow(flow), FALSE_POSITIVE),
        }
    }

    /// Holds the paused ones of a NIC's flows.
    fn look_at_flows(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        let received = &node.egress[port.index()].received;
        for flow in at.flows_at(port).collect::<Vec<FlowId>>() {
            if self.params.high_priority && !at.flow_open(flow) {
                continue;
            }
            let name = self.name(at.flow_tag(flow));
            let hold = received.pauses(self.shape, name);
            let really = hold && received.really(self.shape, name);
            node.counts.lookups += received.any() as u64;
            node.counts.false_positives += (hold && !really) as u64;
            at.hold_flow(flow, hold);
            if hold {
                Self::tell(at, port, flow, name, really);
            }
        }
    }

    fn look_at_all(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        if at.is_host() {
            self.look_at_flows(node, at, port);
        }
        if !at.has_queues() {
            return;
        }
        let each = self.params.all_queues();
        let filled = at.filled_queues(port).filter(|queue| queue.0 % each != self.express);
        let filled: Vec<QueueId> = filled.collect();
        filled.into_iter().for_each(|queue| self.look(node, at, port, queue));
    }
}

impl Ingress {
    /// Makes sure that the next frame at `port`, which this is, is sent.
    fn tick_later(&mut self, at: &mut NodeView<'_>, port: PortId) {
        if !self.ticking {
            self.ticking = true;
            let (period, phase) = (self.period.0, self.phase.0);
            let next = phase + (at.now().0 + period - phase) / period * period;
            at.set_timer(port, TICK, Time(next));
        }
    }
}

impl FlowControl for Bfc {
    type Node = Node;
    type Frame = Frame;
    type Signal = ();
    const PASSES: bool = true;

    fn node(&self, site: &Site<'_>) -> Node {
        let forwards = site.forwards();
        let feedback = |port: PortId| {
            let (hop_rtt, period) = self.timing(site, port);
            hop_rtt + period
        };
        let rate = |port: PortId| site.rate(port);
        let mut feedbacks: Vec<Time> = site.ports().map(feedback).collect();
        feedbacks.sort_unstable();
        feedbacks.dedup();
        let mut rates: Vec<Rate> = site.ports().map(rate).collect();
        rates.sort_unstable();
        rates.dedup();
        let thresholds = feedbacks.iter().flat_map(|&time| rates.iter().map(move |&rate| rate.bytes_in(time)));

        let ingress = |port: PortId| {
            let (_, period) = self.timing(site, port);
            Ingress {
                filter: Counting::new(self.shape),
                marks: BTreeMap::new(),
                repeats: 0,
                most: self.repeats(site, port, period),
                latest: site.link(port).retry.is_some(),
                ticking: false,
                period,
                phase: phase(site, port, period),
                frame_time: self.frame_time(site, port),
                capacity: rate(port).bytes_in(period),
                row: feedbacks.binary_search(&feedback(port)).unwrap_or(0) * rates.len(),
                waiting: Vec::new(),
            }
        };
        let egress = |port: PortId| Egress {
            received: Received::default(),
            due: if forwards { phase(site, port, self.timing(site, port).1) } else { Time::MAX },
            column: rates.binary_search(&rate(port)).unwrap_or(0),
        };
        let lanes = if forwards { site.ports().len() * self.classes as usize } else { 0 };
        let vfids = if forwards { self.params.vfids } else { 0 };
        Node {
            table: Table::new(vfids, self.params.bucket, self.params.cache),
            plan: Plan::Apart,
            egress: site.ports().map(egress).collect(),
            ingress: site.ports().filter(|_| forwards).map(ingress).collect(),
            taken: vec![0; lanes],
            physical: vec![Physical::default(); lanes * self.params.queues as usize],
            thresholds: thresholds.collect(),
            kept: VecDeque::new(),
            counts: Counts::default(),
            in_use: Vec::new(),
            kilobytes: Vec::new(),
            kilobytes_to_hosts: Vec::new(),
            occupied: Vec::new(),
            sharing: Vec::new(),
            flows_to_hosts: Vec::new(),
            active: Vec::new(),
        }
    }

    fn in_order(&self, nodes: &[&Node]) -> bool {
        // §3.8: a flow that finds room in the table again may overtake its own packets in the overflow queue.
        nodes.iter().all(|node| node.counts.overflows == 0)
    }

    fn timers(&self, classes: u8) -> u32 {
        TICK + 1 + classes as u32 * self.params.queues
    }

    fn tag(&self, tuple: &Tuple) -> u16 {
        (tuple.hash(VFID_SEED) % self.params.vfids) as u16
    }

    fn flow_started(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        self.look_at_flow(node, at, port, flow);
    }

    fn flow_opened(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        self.look_at_flow(node, at, port, flow);
    }

    fn flow_moved(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        // What the neighbour at the other port said is no longer about this flow.
        self.look_at_flow(node, at, port, flow);
    }

    #[inline]
    fn queue(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) -> QueueId {
        let packet = at.packet(visit.packet);
        let (vfid, first, data) = (self.vfid(packet), packet.flags & flag::FIRST != 0, packet.kind == Kind::Data);
        let &Visit { in_port, out_port, class, .. } = visit;
        node.plan = Plan::Apart;
        if self.params.keep > Time::ZERO {
            self.forget(node, at.now());
        }
        // ACKs among the data belong to no flow.
        if !data {
            return QueueId(self.first_queue(class) + self.express);
        }
        let queue = match node.table.find(vfid, in_port, self.lane(out_port, class)) {
            Some(id) => {
                let queue = match node.table[id].queue {
                    NO_QUEUE => self.assign(node, at, out_port, class, vfid),
                    queue => queue,
                };
                node.plan = Plan::With(id, queue);
                queue as u32
            }
            // Not paused and nothing queued (§3.7).
            None if first && self.params.high_priority => {
                node.counts.express += 1;
                self.express
            }
            None if !node.table.has_room(vfid) => self.overflow,
            None => {
                let queue = self.assign(node, at, out_port, class, vfid);
                node.plan = Plan::First(queue);
                queue as u32
            }
        };
        QueueId(self.first_queue(class) + queue)
    }

    #[inline]
    fn unmoved(&self, _: &Account, _: &Buffer, _: u64) -> bool {
        // Accounts are the business of PFC underneath.
        true
    }

    /// A packet of a flow that has no entry, and is alone at its port: it would get an entry and a physical queue, and lose both in the same instant.
    #[inline]
    fn passes(&self, node: &Node, at: &NodeView<'_>, visit: &Visit) -> Option<QueueId> {
        let (packet, egress) = (at.packet(visit.packet), &node.egress[visit.out_port.index()]);
        if !self.plain || !node.table.is_empty_at(packet.tag) || egress.received.any() {
            return None;
        }
        if packet.flags & flag::FIRST != 0 && self.params.high_priority {
            return Some(QueueId(self.first_queue(visit.class) + self.express));
        }
        let spot = Spot { port: visit.out_port, class: visit.class, queue: 0 };
        let threshold = node.thresholds[node.ingress[visit.in_port.index()].row + egress.column];
        let physical = &node.physical[self.place(spot)];
        let calm = visit.size as u64 <= threshold && physical.emptied.is_empty() && physical.flows == 0;
        calm.then(|| self.number(spot)).filter(|queue| !at.is_held(visit.out_port, *queue))
    }

    #[inline]
    fn passed(&self, node: &mut Node, _: &mut NodeView<'_>, visit: &Visit) {
        if self.spot(visit).queue == self.express {
            node.counts.express += 1;
            return;
        }
        node.counts.insertions += 1;
        node.counts.assignments += 1;
        node.table.touch();
    }

    #[inline]
    fn enqueued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        let &Visit { packet, in_port, out_port, queue: number, class, .. } = visit;
        let alone = at.head(out_port, number) == Some(packet);
        *at.word(packet) = NONE;
        let (id, queue) = match node.plan {
            Plan::Apart if self.spot(visit).queue == self.overflow => {
                node.counts.overflows += 1;
                if alone {
                    self.look(node, at, out_port, number);
                }
                return;
            }
            Plan::Apart => return,
            Plan::With(id, queue) => (id, queue),
            Plan::First(queue) => {
                node.counts.insertions += 1;
                let (vfid, flow) = (self.vfid(at.packet(packet)), at.packet(packet).flow);
                (node.table.insert(vfid, in_port, self.lane(out_port, class), flow), queue)
            }
        };
        *at.word(packet) = id;
        let (flow, tag) = (at.packet(packet).flow, at.packet(packet).tag);
        let spot = Spot { port: out_port, class, queue: queue as u32 };
        let entry = &mut node.table[id];
        entry.packets += 1;
        // Two flows with the same VFID and path are one to this switch.
        node.counts.vfid_collisions += (std::mem::replace(&mut entry.flow, flow) != flow) as u64;
        if entry.packets == 1 {
            entry.queue = queue;
            let physical = &mut node.physical[self.place(spot)];
            physical.flows += 1;
            node.taken[self.lane(out_port, class) as usize] |= 1 << queue;
            node.counts.assignments += 1;
            node.counts.collisions += (physical.flows > 1) as u64;
        }
        if alone {
            self.look(node, at, out_port, number);
        }
        let name = match self.params.pauses {
            Pauses::Flows => self.name(tag),
            Pauses::Queues => tag,
        };
        if self.params.resume == Resume::Marked {
            if node.table[id].packets > 1 && self.over(node, at, in_port, spot) {
                *at.word(packet) |= MARK;
                self.mark(node, at, in_port, spot, name);
            }
        } else if node.table[id].state != State::Paused && self.over(node, at, in_port, spot) {
            self.pause(node, at, id, spot, name);
        }
    }

    #[inline]
    fn dequeued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        let &Visit { packet, in_port, out_port, queue: number, class, .. } = visit;
        let spot = self.spot(visit);
        let tag = at.packet(packet).tag;
        if self.params.pauses == Pauses::Queues {
            at.packet_mut(packet).tag = Self::queue_name(number);
        }
        if spot.queue == self.express {
            return;
        }
        // The next packet may be of another flow.
        if node.egress[out_port.index()].received.any() || at.is_held(out_port, number) {
            self.look(node, at, out_port, number);
        }
        let word = *at.word(packet);
        if word == NONE {
            return;
        }
        let id = word & !MARK;
        if word != id {
            let name = if self.params.pauses == Pauses::Queues { tag } else { self.name(tag) };
            self.unmark(node, at, in_port, name);
        }
        let place = self.place(spot);
        let entry = &mut node.table[id];
        entry.packets -= 1;
        let (last, state) = (entry.packets == 0, entry.state);
        if last {
            let keep = self.params.keep;
            if keep == Time::ZERO {
                entry.queue = NO_QUEUE;
            } else {
                entry.until = at.now() + keep;
                node.kept.push_back((entry.until, id, entry.turn));
            }
            node.physical[place].flows -= 1;
            if node.physical[place].flows == 0 {
                node.taken[self.lane(out_port, class) as usize] &= !(1 << spot.queue);
            }
            if state == State::Running && keep == Time::ZERO {
                node.table.remove(id);
            }
        }
        match self.params.resume {
            Resume::Paced => {
                if state == State::Paused {
                    let ready = !self.over(node, at, in_port, spot) || (last && self.params.emptied == Emptied::Listed);
                    if ready {
                        self.list(node, at, spot, id);
                    } else if last {
                        let turn = node.table[id].turn;
                        node.physical[place].emptied.push((id, turn));
                    }
                }
                if !node.physical[place].emptied.is_empty() && !self.over(node, at, in_port, spot) {
                    self.list_emptied(node, at, spot);
                }
            }
            // A flow with nothing queued will not ask again here whether its queue is short: it waits on the list for that.
            Resume::Checked if state == State::Paused && (last || !self.over(node, at, in_port, spot)) => {
                self.list(node, at, spot, id);
            }
            Resume::Checked if !node.physical[place].list.is_empty() => self.resume_next(node, at, spot),
            Resume::All if !node.physical[place].list.is_empty() && !self.over(node, at, in_port, spot) => {
                self.resume_all(node, at, place);
            }
            _ => {}
        }
    }

    fn frame(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, frame: Frame) {
        node.egress[port.index()].received = Received::new(frame.filter, self.shape);
        self.look_at_all(node, at, port);
    }

    fn timer(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, timer: u32) {
        if timer == TICK {
            return self.tick(node, at, port);
        }
        let own = timer - TICK - 1;
        let (class, queue) = (ClassId((own / self.params.queues) as u8), own % self.params.queues);
        let spot = Spot { port, class, queue };
        node.physical[self.place(spot)].waiting = false;
        self.resume_next(node, at, spot);
    }

    fn link_lost(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId) {
        node.egress[port.index()].received = Received::default();
        self.look_at_all(node, at, port);
    }

    #[inline(always)]
    fn lag(&self, node: &mut Node, at: &NodeView<'_>, port: PortId) -> Time {
        if at.now() < node.egress[port.index()].due {
            return Time::ZERO;
        }
        self.charge(node, at, port)
    }

    fn observe(&self, node: &mut Node, at: &NodeView<'_>) {
        let (queues, classes) = (self.params.queues, self.classes);
        let starting = at.now() <= self.last_start;
        let mut active = 0;
        for (lane, &taken) in (0..).zip(&node.taken) {
            let (port, class) = (PortId((lane / classes) as u16), ClassId((lane % classes) as u8));
            let spot = |queue: u32| Spot { port, class, queue };
            let (mut flows_here, mut sharing) = (0, 0);
            for queue in (0..queues).filter(|queue| taken >> queue & 1 == 1) {
                let flows = node.physical[self.place(spot(queue))].flows as u64;
                flows_here += flows;
                sharing += if flows > 1 { flows } else { 0 };
                let kilobytes = at.queue_bytes(port, self.number(spot(queue))).div_ceil(1000) as usize;
                count(&mut node.kilobytes, kilobytes);
                if at.faces_host(port) {
                    count(&mut node.kilobytes_to_hosts, kilobytes);
                }
            }
            node.counts.flows_queued += flows_here;
            node.counts.flows_sharing += sharing;
            if taken != 0 {
                count(&mut node.in_use, taken.count_ones() as usize);
                node.counts.ports_busy += 1;
                node.counts.ports_sharing += (sharing > 0) as u64;
            }
            if starting {
                node.counts.ports_sampled += 1;
                node.counts.ports_sampled_sharing += (sharing > 0) as u64;
                count(&mut node.occupied, taken.count_ones() as usize);
                count(&mut node.sharing, sharing as usize);
                if at.faces_host(port) {
                    count(&mut node.flows_to_hosts, flows_here as usize);
                }
            }
            active += flows_here;
        }
        if starting && !node.taken.is_empty() {
            count(&mut node.active, active as usize);
        }
    }

    fn counters(&self, nodes: &[&Node]) -> Vec<Counter> {
        let counted = |name: &'static str, of: fn(&Counts) -> u64| sum(name, nodes, |node| of(&node.counts));
        // Of all samples together, not of any one node's.
        let p99 =
            |name: &'static str, samples: Vec<u64>, unit: u64| Counter::max(name, quantile(&samples, 0.99) * unit);
        vec![
            counted("queue_assignments", |c| c.assignments),
            counted("queue_collisions", |c| c.collisions),
            counted("flows_queued", |c| c.flows_queued),
            counted("flows_sharing", |c| c.flows_sharing),
            counted("ports_busy", |c| c.ports_busy),
            counted("ports_sharing", |c| c.ports_sharing),
            counted("ports_sampled", |c| c.ports_sampled),
            counted("ports_sampled_sharing", |c| c.ports_sampled_sharing),
            counted("flows_paused", |c| c.pauses),
            counted("flows_resumed", |c| c.resumes),
            counted("filter_frames", |c| c.frames),
            max("filter_peak", nodes, |node| node.counts.filter_peak),
            counted("filter_lookups", |c| c.lookups),
            counted("filter_false_positives", |c| c.false_positives),
            counted("pause_frame_bytes", |c| c.frame_bytes),
            counted("pause_frame_capacity_bytes", |c| c.capacity_bytes),
            counted("table_insertions", |c| c.insertions),
            max("table_peak", nodes, |node| node.table.peak as u64),
            sum("table_cache_uses", nodes, |node| node.table.cache_uses),
            counted("vfid_collisions", |c| c.vfid_collisions),
            p99("physical_queues_in_use_p99", samples(nodes, |node| &node.in_use), 1),
            p99("physical_queue_p99_bytes", samples(nodes, |node| &node.kilobytes), 1000),
            p99("physical_queue_to_hosts_p99_bytes", samples(nodes, |node| &node.kilobytes_to_hosts), 1000),
            counted("overflow_packets", |c| c.overflows),
            counted("high_priority_packets", |c| c.express),
        ]
    }

    fn histograms(&self, nodes: &[&Node]) -> Vec<Histogram> {
        let mut in_use = samples(nodes, |node| &node.in_use);
        in_use.resize(self.params.queues as usize + 1, 0);
        vec![
            ("queues_in_use", in_use),
            ("physical_queue_kb", samples(nodes, |node| &node.kilobytes)),
            ("physical_queue_to_hosts_kb", samples(nodes, |node| &node.kilobytes_to_hosts)),
            ("queues_occupied", samples(nodes, |node| &node.occupied)),
            ("flows_sharing", samples(nodes, |node| &node.sharing)),
            ("flows_to_hosts", samples(nodes, |node| &node.flows_to_hosts)),
            ("active_vfids", samples(nodes, |node| &node.active)),
        ]
    }
}

/// When frames go at a port, past every period. Links are not in step with one another (§3.3); the number of a port in the
/// whole fabric spreads them evenly.
fn phase(site: &Site<'_>, port: PortId, period: Time) -> Time {
    Time((site.number(port) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % period.0)
}
