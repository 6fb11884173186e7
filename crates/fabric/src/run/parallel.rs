//! One run on several threads, with the result of one.
//!
//! The fabric is cut into shards ([`super::shard`]). What a shard does before some instant can touch another only a link's delay
//! later, so that all shards may run side by side from the earliest event of all for as long as the shortest link between
//! two of them (conservative synchronisation). Then they exchange what they sent each other, and go on. The order of events is
//! a property of the events alone, so that each shard sees exactly what it would see in a run by one thread.
//!
//! Two things belong to no shard: when to sample next, and when the run is over. A stretch ends with every sample, and the shards
//! are asked together; and near the end a shard that has nothing left to do waits until it is known how far the others got.

use super::shard::{Mail, Shard};
use super::{Core, Exchange, Network, Outcome, Paths};
use crate::axes::flow_control::FlowControl;
use crate::axes::{Chosen, TransportDef};
use crate::probe::Pulse;
use crate::routing::PortMap;
use crate::setup::{Dice, FlowSpec, Setup, Ties};
use crate::topology::{Graph, Kind};
use engine::{Event, Time};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How a fabric is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The shard of each node.
    pub owner: Vec<u16>,
    /// How many shards there are.
    pub shards: usize,
}

/// Packet-hops below which a run is over before a second thread has begun.
const WORTHWHILE: u64 = 1_500_000;

/// Whether a run is long enough for more than one thread.
pub fn worthwhile(setup: &Setup) -> bool {
    let packets = |flow: &FlowSpec| flow.size.div_ceil(setup.nic.payload as u64);
    // Two links and two switches in each direction, at the least, for most.
    setup.flows.iter().map(packets).fold(0, u64::saturating_add).saturating_mul(6) >= WORTHWHILE
}

/// Cuts the fabric of a run into at most `threads` shards with about the same work. `None` where one thread must do: there is
/// nothing to cut, or the run is defined by the order in which one thread does things.
pub fn partition(setup: &Setup, transport: &dyn TransportDef, threads: usize) -> Option<Plan> {
    if one_by_one(setup) || transport.sequential() { None } else { cut(&setup.graph, threads) }
}

/// Whether what comes out is defined by the order in which one thread does things.
pub(super) fn one_by_one(setup: &Setup) -> bool {
    setup.ties == Ties::Sequence || setup.dice != Dice::PerNode
}

/// Cuts a fabric into at most `threads` shards of about the same weight.
pub(super) fn cut(graph: &Graph, threads: usize) -> Option<Plan> {
    if threads < 2 {
        return None;
    }
    let map = PortMap::new(graph);
    let nodes = graph.nodes.len();
    let speed = |port: u32| map.rate(graph, port).0 as u128;
    let weight = |node: u32| map.of(node).map(speed).sum::<u128>();
    // A switch and the hosts that hang on it alone stay together.
    let anchor = |node: u32| {
        let ports = map.of(node);
        if graph.nodes[node as usize].kind == Kind::Switch || ports.len() != 1 {
            return node;
        }
        map.node[map.peer[ports.start as usize] as usize]
    };
    let mut weights = vec![0u128; nodes];
    let mut hosts = vec![false; nodes];
    for node in 0..nodes as u32 {
        weights[anchor(node) as usize] += weight(node);
        hosts[anchor(node) as usize] |= graph.nodes[node as usize].kind == Kind::Host;
    }
    let racks: Vec<u32> = (0..nodes as u32).filter(|&node| anchor(node) == node && hosts[node as usize]).collect();
    let shards = threads.min(racks.len()).min(u16::MAX as usize);
    if shards < 2 {
        return None;
    }
    let mut owner = vec![u16::MAX; nodes];
    // Neighbouring racks go together: they share the switches above them.
    let total: u128 = racks.iter().map(|&rack| weights[rack as usize]).sum();
    let mut before = 0;
    for &rack in &racks {
        let middle = before + weights[rack as usize] / 2;
        owner[rack as usize] = ((middle * shards as u128 / total.max(1)) as usize).min(shards - 1) as u16;
        before += weights[rack as usize];
    }
    // Then the switches above, tier by tier, each to the shard that most of its links lead to, as long as that shard has no more
    // than its share of the tier; among equals to the one that has least.
    let mut above: Vec<u32> = (0..nodes as u32).filter(|&node| anchor(node) == node && !hosts[node as usize]).collect();
    above.sort_by_key(|&node| (graph.nodes[node as usize].tier, node));
    for tier in above.chunk_by(|&a, &b| graph.nodes[a as usize].tier == graph.nodes[b as usize].tier) {
        let share = tier.iter().map(|&node| weights[node as usize]).sum::<u128>().div_ceil(shards as u128);
        let mut taken = vec![0u128; shards];
        for &node in tier {
            let mut links = vec![0u128; shards];
            for port in map.of(node) {
                let far = owner[anchor(map.node[map.peer[port as usize] as usize]) as usize];
                if let Some(links) = links.get_mut(far as usize) {
                    *links += speed(port);
                }
            }
            let room = |shard: &usize| taken[*shard] + weights[node as usize] <= share;
            let best = |shards: &mut dyn Iterator<Item = usize>| {
                shards.max_by_key(|&shard| (links[shard], Reverse(taken[shard]), Reverse(shard)))
            };
            let shard =
                best(&mut (0..shards).filter(room)).or_else(|| (0..shards).min_by_key(|&shard| (taken[shard], shard)));
            let shard = shard.unwrap_or(0);
            taken[shard] += weights[node as usize];
            owner[node as usize] = shard as u16;
        }
    }
    let owner = (0..nodes as u32).map(|node| owner[anchor(node) as usize]).collect();
    Some(Plan { owner, shards })
}

/// A shard that runs.
struct Worker<F: FlowControl> {
    network: Network<F>,
    /// What the others have sent, by shard.
    inbox: Vec<Mail>,
    /// The last event that happened here.
    last: Event,
    /// It stopped because nothing was left to do here.
    idle: bool,
}

impl<F: FlowControl> Worker<F> {
    /// Whether nothing is left to do here but timers without a purpose.
    fn is_idle(&self) -> bool {
        self.network.core.progress.active == 0 && self.network.core.is_done()
    }

    fn step(&mut self, event: Event) {
        self.last = event;
        self.network.step(event);
    }

    /// Runs from `next`, when something happens somewhere, to `limit`, or until there is nothing left to do if `stop_idle` says so.
    fn stretch(&mut self, next: Time, limit: Time, stop_idle: bool) {
        self.network.core.record_until(next);
        for mail in &mut self.inbox {
            self.network.core.accept(mail);
        }
        if stop_idle && let Some(last) = self.network.core.leave_blocks() {
            self.last = self.last.max(last);
        }
        if self.network.core.blocks.is_some() {
            while let Some(next) = self.network.core.next_time().filter(|next| *next < limit) {
                self.network.turn(next, limit);
            }
            return;
        }
        let limit = Event::first_at(limit);
        loop {
            self.idle = stop_idle && self.is_idle();
            if self.idle {
                return;
            }
            match self.network.core.time.events.pop_before(limit) {
                Some(event) => self.step(event),
                None => return,
            }
        }
    }

    /// When something happens here next.
    fn next(&mut self) -> Time {
        let posted = self.inbox.iter().filter_map(Mail::first).min();
        self.network.core.next_time().into_iter().chain(posted).min().unwrap_or(Time::MAX)
    }
}

/// Whether at some instant before `limit` nothing was left to do anywhere. All shards have stopped because they are idle, each at
/// its own instant; timers that go off after that may set it to work again.
fn settle<F: FlowControl>(shards: &mut [MutexGuard<'_, Worker<F>>], limit: Time) -> bool {
    let mut until = shards.iter().map(|shard| shard.last).max();
    loop {
        let before = until;
        for shard in shards.iter_mut() {
            loop {
                let next = shard.network.core.time.events.next_event();
                let behind = next.is_some() && next <= until;
                if !behind && shard.is_idle() {
                    break;
                }
                match shard.network.core.time.events.pop_before(Event::first_at(limit)) {
                    Some(event) => shard.step(event),
                    None => return false,
                }
            }
            until = until.max(Some(shard.last));
        }
        if until == before {
            return true;
        }
    }
}

/// How threads are sent off together, and waited for.
#[derive(Default)]
struct Gate {
    /// Counts the stretches that were begun.
    turn: AtomicU64,
    /// Threads that have finished the one under way.
    done: AtomicUsize,
    asleep: AtomicUsize,
    lock: Mutex<()>,
    wake: Condvar,
    next: AtomicU64,
    limit: AtomicU64,
    stop_idle: AtomicBool,
    over: AtomicBool,
    /// A thread did not finish its stretch: it panicked.
    failed: AtomicBool,
}

/// How often a thread looks again before it lets others have the processor.
const SPINS: u32 = 4_000;

impl Gate {
    /// Sends everyone off.
    fn open(&self) {
        self.done.store(0, Ordering::SeqCst);
        self.turn.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.wake.notify_all();
        }
    }

    /// Waits for a turn after `seen`.
    fn wait(&self, seen: u64) -> u64 {
        for _ in 0..SPINS {
            let turn = self.turn.load(Ordering::SeqCst);
            if turn != seen {
                return turn;
            }
            std::hint::spin_loop();
        }
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        while self.turn.load(Ordering::SeqCst) == seen {
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        self.turn.load(Ordering::SeqCst)
    }

    /// Waits until `others` threads are done.
    fn join(&self, others: usize) {
        let mut spins = 0;
        while self.done.load(Ordering::SeqCst) < others {
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}

/// Says that a thread is done with its stretch, also if it fails: the others would wait for it for ever.
struct Done<'a>(&'a Gate);
impl Drop for Done<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::SeqCst);
        }
        self.0.done.fetch_add(1, Ordering::SeqCst);
    }
}

/// Lets the other threads go home, also if this one fails.
struct Dismiss<'a>(&'a Gate);
impl Drop for Dismiss<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
        self.0.open();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Events of a stretch from which on it is worth sending other threads off, and below which it no longer is.
const BUSY: (u64, u64) = (600, 200);
/// Events between two reports.
const REPORT_EVERY: u64 = 1 << 18;

impl<F: FlowControl> Network<F> {
    /// Runs a fabric that is cut by `plan`, on as many threads as it has shards. The outcome is that of [`Network::run`].
    pub fn run_shards(
        setup: Setup,
        plan: &Plan,
        scheme: F,
        chosen: &Chosen<'_>,
        mut report: impl FnMut(Time, u64) -> bool,
    ) -> Outcome {
        let paths = Paths::new(&setup);
        let setup = Arc::new(setup);
        let owner: Arc<[u16]> = plan.owner.clone().into();
        let count = plan.shards;
        let shards = (0..count).map(|number| {
            let shard = Shard::new(number as u16, count, owner.clone());
            let mut network = Network::shard(setup.clone(), paths.clone(), scheme.clone(), chosen, Some(shard));
            network.core.cut_into_blocks();
            let inbox = (0..count).map(|_| Mail::default()).collect();
            let last = Event::new(Time::ZERO, 0, 0, 0);
            Mutex::new(Worker { network, inbox, last, idle: false })
        });
        let shards: Vec<Mutex<Worker<F>>> = shards.collect();
        let gate = Gate::default();
        let mut exchange = Exchange { shards: count, ..Exchange::default() };
        let interrupted = std::thread::scope(|scope| {
            for shard in &shards[1..] {
                let gate = &gate;
                scope.spawn(move || {
                    let mut turn = 0;
                    loop {
                        turn = gate.wait(turn);
                        if gate.over.load(Ordering::SeqCst) {
                            return;
                        }
                        let next = Time(gate.next.load(Ordering::SeqCst));
                        let limit = Time(gate.limit.load(Ordering::SeqCst));
                        let _done = Done(gate);
                        lock(shard).stretch(next, limit, gate.stop_idle.load(Ordering::SeqCst));
                    }
                });
            }
            let _dismiss = Dismiss(&gate);
            let begun = setup.clocked.map(|clock| clock());
            let interrupted = lead(&shards, &gate, &setup, &mut report, &mut exchange);
            if let (Some(clock), Some(begun)) = (setup.clocked, begun) {
                exchange.whole = clock().saturating_sub(begun);
            }
            interrupted
        });
        let mut shards = shards.into_iter().map(|shard| {
            let mut shard = shard.into_inner().unwrap_or_else(PoisonError::into_inner);
            shard.network.core.leave_blocks();
            for mail in &mut shard.inbox {
                shard.network.core.accept(mail);
            }
            shard.network
        });
        let Some(mut whole) = shards.next() else { unreachable!("a plan has shards") };
        let others: Vec<Network<F>> = shards.collect();
        let end = others.iter().map(|shard| shard.core.last_instant()).fold(whole.core.last_instant(), Time::max);
        whole.core.end_recording(end);
        for mut other in others {
            other.core.end_recording(end);
            whole.absorb(other);
        }
        whole.core.shard = None;
        Outcome { exchange, ..whole.outcome(interrupted) }
    }
}

/// Sets one stretch after the other, and takes part in them. True if the report ended the run.
fn lead<F: FlowControl>(
    shards: &[Mutex<Worker<F>>],
    gate: &Gate,
    setup: &Setup,
    report: &mut impl FnMut(Time, u64) -> bool,
    exchange: &mut Exchange,
) -> bool {
    let mut all: Vec<MutexGuard<'_, Worker<F>>> = shards.iter().map(lock).collect();
    let ahead = all.iter().map(|shard| shard.network.core.look_ahead()).min().unwrap_or(Time::MAX);
    exchange.look_ahead = ahead;
    let first = setup.flows.first().map(|flow| flow.start);
    let mut sample = first.filter(|_| setup.measure.sample.is_some());
    let mut series = first.filter(|_| setup.measure.series.is_some());
    let (mut busy, mut done, mut reported) = (false, 0, 0);
    loop {
        for from in 0..all.len() {
            for to in 0..all.len() {
                let mut mail = match &mut all[from].network.core.shard {
                    Some(shard) if from != to => std::mem::take(&mut shard.outbox[to]),
                    _ => continue,
                };
                let (packets, bytes) = mail.size();
                exchange.mails += u64::from(packets > 0);
                exchange.packets += packets;
                exchange.bytes += bytes;
                // The emptied one goes back, to be filled again without growing.
                std::mem::swap(&mut all[to].inbox[from], &mut mail);
                if let Some(shard) = &mut all[from].network.core.shard {
                    shard.outbox[to] = mail;
                }
            }
        }
        sample =
            plan_together(&mut all, sample, |shard| &mut shard.pulse, |core, now, pulse| core.plan_sample(now, pulse));
        series =
            plan_together(&mut all, series, |shard| &mut shard.beat, |core, now, pulse| core.plan_series(now, pulse));
        let next = all.iter_mut().map(|shard| shard.next()).min().unwrap_or(Time::MAX);
        if next == Time::MAX {
            return false;
        }
        let stuck = all[0].network.core.progress.stuck;
        if next >= setup.stop || stuck {
            let core = &mut all[0].network.core;
            core.time.now = core.time.now.max(setup.stop.min(next));
            return false;
        }
        // The other shards take their frames when they are sent off.
        all[0].network.core.record_until(next);
        let mut limit = next.saturating_add(ahead).min(all[0].network.core.frame_edge(setup.stop));
        for instant in [sample, series].into_iter().flatten() {
            limit = limit.min(instant.max(next) + Time(1));
        }
        // The run cannot end in this stretch if flows start later, or have to send across shards or blocks.
        let later = |shard: &MutexGuard<'_, Worker<F>>| {
            let core = &shard.network.core;
            setup.flows.get(core.first_to_start()).is_some_and(|flow| flow.start >= limit)
        };
        let stop_idle = !all.iter().any(later) && !all.iter_mut().any(|shard| shard.network.core.goes_on());
        exchange.stretches += 1;
        exchange.together += u64::from(busy);
        if busy {
            gate.next.store(next.0, Ordering::SeqCst);
            gate.limit.store(limit.0, Ordering::SeqCst);
            gate.stop_idle.store(stop_idle, Ordering::SeqCst);
            all.truncate(1);
            gate.open();
            all[0].stretch(next, limit, stop_idle);
            gate.join(shards.len() - 1);
            assert!(!gate.failed.load(Ordering::SeqCst), "another thread failed");
            all.extend(shards[1..].iter().map(lock));
        } else {
            let mut slowest = Duration::ZERO;
            for shard in &mut all {
                let begun = setup.clocked.map(|clock| clock());
                shard.stretch(next, limit, stop_idle);
                if let (Some(clock), Some(begun)) = (setup.clocked, begun) {
                    let took = clock().saturating_sub(begun);
                    exchange.work += took;
                    slowest = slowest.max(took);
                }
            }
            exchange.slowest += slowest;
        }
        if stop_idle {
            if all.iter().all(|shard| shard.idle) && settle(&mut all, limit) {
                return false;
            }
            all.iter_mut().for_each(|shard| shard.stretch(next, limit, false));
        }
        let events: u64 = all.iter().map(|shard| shard.network.core.counts.events).sum();
        busy = setup.clocked.is_none() && events - done > if busy { BUSY.1 } else { BUSY.0 };
        done = events;
        if done - reported >= REPORT_EVERY {
            reported = done;
            let hops = all.iter().map(|shard| shard.network.core.counts.hops).sum();
            if !report(next, hops) {
                return true;
            }
            let others: Vec<&Core> = all[1..].iter().map(|shard| &shard.network.core).collect();
            all[0].network.core.offer_recording(&others);
        }
    }
}

/// Plans the next sample in all shards, if they have just taken one. Gives its time, or that of the one that is still to come.
fn plan_together<F: FlowControl>(
    shards: &mut [MutexGuard<'_, Worker<F>>],
    planned: Option<Time>,
    of: impl Fn(&mut Shard) -> &mut Option<(Time, Pulse)>,
    plan: impl Fn(&mut Core, Time, Pulse) -> Option<Time>,
) -> Option<Time> {
    let taken =
        shards.iter_mut().filter_map(|shard| shard.network.core.shard.as_mut().and_then(|shard| of(shard).take()));
    let together = taken.reduce(|(now, a), (_, b)| (now, a.and(b)));
    let Some((now, pulse)) = together else { return planned };
    shards.iter_mut().map(|shard| plan(&mut shard.network.core, now, pulse)).last().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_a_thread_that_failed() {
        let gate = Gate::default();
        std::thread::scope(|scope| {
            let failing = scope.spawn(|| {
                let _done = Done(&gate);
                panic!("on purpose");
            });
            gate.join(1);
            assert!(failing.join().is_err());
        });
        assert!(gate.failed.load(Ordering::SeqCst));
    }
}
