//! What came of jobs: how long iterations took, and what that was spent on.
//!
//! An iteration ends when the last of its ranks is done with it. Two more times of it are worked out from the same graph of tasks and messages: one as if
//! messages took no time, and one as if each had the network to itself. Between these three lies what communication adds.

use engine::Time;
use fabric::Outcome;
use fabric::id::FlowId;
use fabric::setup::{After, Setup, Task};
use results::measure::Spread;
use results::tables::{Column, Columns};
use serde::Serialize;
use traffic::job::{Dimension, Go, Outline};

/// A job in a few numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trained {
    /// Its name.
    pub name: String,
    /// Ranks.
    pub ranks: u64,
    /// Ranks that share every layer.
    pub tensor: u64,
    /// Stages of layers.
    pub pipeline: u64,
    /// Replicas.
    pub data: u64,
    /// Replicas that share experts.
    pub expert: u64,
    /// Iterations that were to be done.
    pub iterations: u64,
    /// Those that were.
    pub finished: usize,
    /// From the end of an iteration to that of the next, in picoseconds, over those that were done.
    pub iteration_ps: Spread,
    /// The mean of the same if messages took no time.
    pub compute_ps: Option<f64>,
    /// The mean of the same if each message had the network to itself.
    pub alone_ps: Option<f64>,
    /// The mean of what communication adds to an iteration: exposed communication.
    pub exposed_ps: Option<f64>,
    /// What takes most of an iteration: `compute`, `messages` or `contention`.
    pub bound: Option<&'static str>,
    /// What it sent, by parallelism.
    pub collectives: Vec<Shared>,
}

/// The collectives of one parallelism of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shared {
    /// Tensor, pipeline, data or expert.
    pub name: &'static str,
    /// What was done; of the first.
    pub kind: &'static str,
    /// How often, by how many at a time.
    pub count: usize,
    /// Ranks of one.
    pub ranks: u64,
    /// Those that were completed.
    pub finished: usize,
    /// Bytes that every rank had to reduce or to send, on average.
    pub bytes: f64,
    /// From the start of the first message to the receipt of the last, in picoseconds.
    pub completion_ps: Spread,
    /// By how much a mean iteration is longer than if these messages took no time and each of the others had the network to itself, as these have.
    pub adds_ps: Option<f64>,
    /// The mean of the size over the completion time, in bits per second, as NCCL's tests define it.
    pub algorithm_bps: Option<f64>,
    /// The same for bus bandwidth.
    pub bus_bps: Option<f64>,
}

/// Who waits for whom in a run.
struct Waits<'a> {
    setup: &'a Setup,
    /// By place, flows and behind them tasks: where its followers begin.
    first: Vec<u32>,
    followers: Vec<&'a After>,
}

impl<'a> Waits<'a> {
    fn new(setup: &'a Setup) -> Waits<'a> {
        let flows = setup.flows.len();
        let mut first = vec![0u32; flows + setup.tasks.len() + 1];
        setup.after.iter().for_each(|after| first[Task::place(after.first, flows) + 1] += 1);
        (1..first.len()).for_each(|place| first[place] += first[place - 1]);
        let mut next = first.clone();
        let mut followers: Vec<Option<&After>> = vec![None; setup.after.len()];
        for after in &setup.after {
            let place = &mut next[Task::place(after.first, flows)];
            followers[*place as usize] = Some(after);
            *place += 1;
        }
        Waits { setup, first, followers: followers.into_iter().flatten().collect() }
    }

    /// When each task ends, where a flow that may start at an instant is received and acknowledged at those that `ends` says.
    fn tasks(&self, ends: impl Fn(usize, Time) -> (Time, Time)) -> Vec<Time> {
        let (setup, flows) = (self.setup, self.setup.flows.len());
        let bus = setup.nic.bus;
        let mut left = vec![0u32; flows + setup.tasks.len()];
        setup.after.iter().for_each(|after| left[Task::place(after.flow, flows)] += 1);
        // As hosts see it, and not as their NICs do.
        let mut ready: Vec<Time> = setup.flows.iter().map(|flow| flow.start.saturating_sub(bus.send)).collect();
        ready.extend(setup.tasks.iter().map(|task| task.start));
        let mut free: Vec<usize> = (0..left.len()).filter(|&place| left[place] == 0).collect();
        let mut done = vec![Time::MAX; setup.tasks.len()];
        while let Some(place) = free.pop() {
            let (received, acknowledged, src) = match place.checked_sub(flows) {
                Some(task) => {
                    let end = ready[place].saturating_add(setup.tasks[task].lasts);
                    done[task] = end;
                    (end, end, setup.tasks[task].host)
                }
                None => {
                    let (received, acknowledged) = ends(place, ready[place]);
                    (received, acknowledged, setup.flows[place].src)
                }
            };
            for after in &self.followers[self.first[place] as usize..self.first[place + 1] as usize] {
                let follower = Task::place(after.flow, flows);
                let (home, passed) = match (Task::number(after.flow), place < flows) {
                    (Some(task), true) => (setup.tasks[task].host, bus.receive),
                    (Some(task), false) => (setup.tasks[task].host, Time::ZERO),
                    (None, true) => (setup.flows[follower].src, bus.send + bus.receive),
                    (None, false) => (setup.flows[follower].src, bus.send),
                };
                let end = if home == src { acknowledged } else { received };
                let gap = after.gap.saturating_sub(passed);
                ready[follower] = ready[follower].max(end.saturating_add(gap));
                left[follower] -= 1;
                if left[follower] == 0 {
                    free.push(follower);
                }
            }
        }
        done
    }
}

/// When the iterations of a job end: none where one does not.
fn ends(job: &Outline, tasks: &[Time], stop: Time) -> Vec<Option<Time>> {
    let end = |iteration: u64| {
        let first = job.marks + (iteration * job.ranks) as usize;
        tasks[first..first + job.ranks as usize].iter().max().copied().filter(|&end| end < stop)
    };
    (0..job.iterations).map(end).collect()
}

/// From one end to the next.
fn lengths(job: &Outline, ends: &[Option<Time>]) -> Vec<Option<u64>> {
    let before = std::iter::once(Some(job.start)).chain(ends.iter().copied());
    before.zip(ends).map(|(before, end)| Some((*end)?.saturating_sub(before?).0)).collect()
}

/// The jobs of a run: what came of each, and a row for each iteration.
pub(crate) struct Jobs {
    pub(crate) all: Vec<Trained>,
    rows: Vec<Row>,
}

struct Row {
    job: String,
    iteration: u64,
    end: Option<u64>,
    took: Option<u64>,
    compute: Option<u64>,
    alone: Option<u64>,
}

impl Jobs {
    pub(crate) fn new(jobs: &[Outline], setup: &Setup, outcome: &Outcome) -> Jobs {
        let mut made = Jobs { all: Vec::new(), rows: Vec::new() };
        if jobs.is_empty() {
            return made;
        }
        let waits = Waits::new(setup);
        let flows = &outcome.flows;
        let real = waits.tasks(|flow, _| (flows[flow].received, flows[flow].acknowledged));
        let compute = waits.tasks(|_, ready| (ready, ready));
        let alone = waits.tasks(|flow, ready| {
            let spec = &setup.flows[flow];
            (ready.saturating_add(spec.ideal), ready.saturating_add(spec.ideal_acknowledged))
        });
        // The same without the messages of one parallelism. Those of all jobs at once: jobs do not wait for one another.
        let mut dimensions: Vec<Option<Dimension>> = vec![None; setup.flows.len()];
        for go in jobs.iter().flat_map(|job| &job.goes) {
            dimensions[go.first.index()..FlowId(go.first.0 + go.flows).index()].fill(Some(go.dimension));
        }
        let without = Dimension::ALL.map(|of| {
            let there = jobs.iter().flat_map(|job| &job.goes).any(|go| go.dimension == of);
            there.then(|| {
                waits.tasks(|flow, ready| match dimensions[flow] == Some(of) {
                    true => (ready, ready),
                    false => {
                        let spec = &setup.flows[flow];
                        (ready.saturating_add(spec.ideal), ready.saturating_add(spec.ideal_acknowledged))
                    }
                })
            })
        });
        for job in jobs {
            let real = ends(job, &real, setup.stop);
            let times = lengths(job, &real);
            let (compute, alone) =
                (lengths(job, &ends(job, &compute, Time::MAX)), lengths(job, &ends(job, &alone, Time::MAX)));
            let done = |of: &[Option<u64>]| -> Vec<f64> {
                let both = times.iter().zip(of).filter(|(took, _)| took.is_some());
                both.filter_map(|(_, of)| of.map(|of| of as f64)).collect()
            };
            let iteration = Spread::of(done(&times));
            let (computed, single) = (Spread::of(done(&compute)).mean, Spread::of(done(&alone)).mean);
            let exposed = iteration.mean.zip(computed).map(|(took, compute)| (took - compute).max(0.0));
            let bound = iteration.mean.zip(computed).zip(single).map(|((took, compute), alone)| {
                let parts = [("compute", compute), ("messages", alone - compute), ("contention", took - alone)];
                parts.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("compute", |part| part.0)
            });
            for (number, took) in times.iter().enumerate() {
                made.rows.push(Row {
                    job: job.name.clone(),
                    iteration: number as u64,
                    end: real[number].map(|end| end.0),
                    took: *took,
                    compute: compute[number],
                    alone: alone[number],
                });
            }
            let adds = |of: Dimension| {
                let rest = lengths(job, &ends(job, without[of as usize].as_ref()?, Time::MAX));
                Some((single? - Spread::of(done(&rest)).mean?).max(0.0))
            };
            let [tensor, pipeline, data, expert] = job.shape;
            made.all.push(Trained {
                name: job.name.clone(),
                ranks: job.ranks,
                tensor,
                pipeline,
                data,
                expert,
                iterations: job.iterations,
                finished: iteration.count,
                iteration_ps: iteration,
                compute_ps: computed,
                alone_ps: single,
                exposed_ps: exposed,
                bound,
                collectives: Dimension::ALL.iter().filter_map(|&of| Shared::new(job, of, outcome, adds(of))).collect(),
            });
        }
        made
    }

    /// A row for each iteration.
    pub(crate) fn columns(&self) -> Columns {
        let rows = &self.rows;
        let counts = |of: &dyn Fn(&Row) -> Option<u64>| Column::maybe_counts(rows.iter().map(of));
        vec![
            ("job", Column::texts(rows.iter().map(|row| row.job.as_str()))),
            ("iteration", Column::counts(rows.iter().map(|row| row.iteration))),
            ("end_ps", counts(&|row| row.end)),
            ("iteration_ps", counts(&|row| row.took)),
            ("compute_ps", counts(&|row| row.compute)),
            ("alone_ps", counts(&|row| row.alone)),
            ("exposed_ps", counts(&|row| Some(row.took?.saturating_sub(row.compute?)))),
        ]
    }
}

impl Shared {
    fn new(job: &Outline, of: Dimension, outcome: &Outcome, adds_ps: Option<f64>) -> Option<Shared> {
        let goes: Vec<&Go> = job.goes.iter().filter(|go| go.dimension == of).collect();
        let first = goes.first()?;
        let took = |go: &Go| {
            let flows = &outcome.flows[go.first.index()..FlowId(go.first.0 + go.flows).index()];
            let begin = flows.iter().map(|flow| flow.start).min()?;
            let end = flows.iter().map(|flow| flow.received).max().filter(|&end| end != Time::MAX)?;
            Some(end.saturating_sub(begin).0.max(1) as f64)
        };
        let done: Vec<(&Go, f64)> = goes.iter().filter_map(|&go| Some((go, took(go)?))).collect();
        let mean = |of: &dyn Fn(&(&Go, f64)) -> f64| {
            (!done.is_empty()).then(|| done.iter().map(of).sum::<f64>() / done.len() as f64)
        };
        let algorithm = |(go, took): &(&Go, f64)| go.operation.counted(go.ranks as u64, go.bytes) * 8e12 / took;
        let bus = |one: &(&Go, f64)| {
            let (pieces, of) = one.0.operation.bus(one.0.ranks as u64);
            algorithm(one) * pieces as f64 / of as f64
        };
        Some(Shared {
            name: of.word(),
            kind: match of {
                Dimension::Pipeline => "send",
                _ => first.operation.word(),
            },
            count: goes.len(),
            ranks: first.ranks as u64,
            finished: done.len(),
            bytes: goes.iter().map(|go| go.bytes as f64).sum::<f64>() / goes.len() as f64,
            completion_ps: Spread::of(done.iter().map(|one| one.1).collect()),
            adds_ps,
            algorithm_bps: mean(&algorithm),
            bus_bps: mean(&bus),
        })
    }
}
