//! A training job: iterations of compute and communication of ranks that share a model.
//!
//! A rank is one of `tensor` that share every layer, of `pipeline` stages that share the layers, and of `data` replicas that share the batch; ranks are
//! numbered in that order of nearness: tensor first, then data, then pipeline. Of the replicas, `expert` that follow each other share the experts.
//! A stage does its microbatches one forward, one backward (Narayanan et al. 2021, §2.2). What a rank computes and what it sends is a graph of tasks
//! and messages; sizes and flops are those of a transformer (ibid., §2.3 and appendix).

use crate::collective::{self, Cut, Operate, Operation, skewed};
use crate::weave::{Party, Received, Weave};
use crate::{After, Fault, FlowRequest, Kind, MAX_SIZE, Origin, Task, beyond};
use engine::{Stream, Time};
use fabric::id::{FlowId, NodeId};

/// A transformer in a few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Layers.
    pub layers: u32,
    /// Width of a layer.
    pub hidden: u64,
    /// Tokens of a sequence.
    pub sequence: u64,
    /// Sequences of an iteration, of all replicas.
    pub batch: u64,
    /// Sequences that a replica does at once.
    pub microbatch: u64,
    /// Experts of a layer; 0 for a dense model.
    pub experts: u64,
    /// Experts that each token goes to.
    pub top_k: u64,
    /// Bytes of a number.
    pub precision: u64,
}

/// How fast ranks compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// So many operations per second.
    Flops(u64),
    /// So long for a layer of a microbatch, forward.
    Layer(Time),
}

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// The model.
    pub model: Model,
    /// Ranks that share every layer.
    pub tensor: u32,
    /// Stages of layers.
    pub pipeline: u32,
    /// Replicas that share experts.
    pub expert: u32,
    /// By rank, its host.
    pub hosts: Vec<NodeId>,
    /// Iterations.
    pub iterations: u64,
    /// When it begins.
    pub start: Time,
    /// How fast ranks compute.
    pub speed: Speed,
    /// Gradients are sent while earlier layers are still computed.
    pub overlap: bool,
    /// In how many parts the gradients of a stage are sent.
    pub buckets: u32,
    /// How far compute times are off, as a share of them, to either side.
    pub jitter: f64,
    /// Ranks that are slower than the others.
    pub stragglers: u32,
    /// How many times as long they take.
    pub slowdown: f64,
    /// How gradients are summed.
    pub all_reduce: Operation,
    /// Of a hierarchical one, the replicas of a domain.
    pub domain: u32,
    /// How data is cut into messages.
    pub cut: Cut,
    /// What a host takes from the receipt of a message to sending it on.
    pub latency: Time,
    /// How much more some experts are sent than others: the exponent of Zipf's law.
    pub skew: f64,
}

/// A kind of parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dimension {
    /// Ranks that share every layer.
    Tensor,
    /// Stages of layers.
    Pipeline,
    /// Replicas.
    Data,
    /// Replicas that share experts.
    Expert,
}

impl Dimension {
    /// All of them.
    pub const ALL: [Dimension; 4] = [Dimension::Tensor, Dimension::Pipeline, Dimension::Data, Dimension::Expert];

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Dimension::Tensor => "tensor",
            Dimension::Pipeline => "pipeline",
            Dimension::Data => "data",
            Dimension::Expert => "expert",
        }
    }
}

/// One go of a collective of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Go {
    /// Of which parallelism.
    pub dimension: Dimension,
    /// What is done.
    pub operation: Operation,
    /// By how many.
    pub ranks: u32,
    /// Bytes that each has to reduce, or sends.
    pub bytes: u64,
    /// Its first flow.
    pub first: FlowId,
    /// How many flows it has.
    pub flows: u32,
}

/// What is known of a job beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Its name.
    pub name: String,
    /// Ranks.
    pub ranks: u64,
    /// Ranks that share every layer, stages, replicas, and those that share experts.
    pub shape: [u64; 4],
    /// Iterations.
    pub iterations: u64,
    /// When it begins.
    pub start: Time,
    /// The task that ends the first iteration of rank 0. Those of other ranks follow, and then those of other iterations.
    pub marks: usize,
    /// What is sent, collective by collective.
    pub goes: Vec<Go>,
}

impl Outline {
    /// The same where its tasks are so many places later, and its flows elsewhere. Flows that start together stay together.
    pub fn moved(&self, tasks: usize, flow: impl Fn(FlowId) -> FlowId) -> Outline {
        let goes = self.goes.iter().map(|go| Go { first: flow(go.first), ..*go });
        Outline { marks: self.marks + tasks, goes: goes.collect(), ..self.clone() }
    }
}

/// What a job is made of.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its flows.
    pub flows: Vec<FlowRequest>,
    /// What ranks compute.
    pub tasks: Vec<Task>,
    /// Who waits for whom.
    pub after: Vec<After>,
    /// What is known beforehand, of flows and tasks numbered from 0.
    pub outline: Outline,
}

/// Forward or backward, of one microbatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Forward(u64),
    Backward(u64),
}

/// A stage's passes in order: so many forward that the last stage has its first, then by turns, then backward.
fn one_by_one(stage: u64, stages: u64, microbatches: u64) -> Vec<Pass> {
    let ahead = (stages - 1 - stage).min(microbatches);
    let mut all: Vec<Pass> = (0..ahead).map(Pass::Forward).collect();
    for number in ahead..microbatches {
        all.extend([Pass::Forward(number), Pass::Backward(number - ahead)]);
    }
    all.extend((microbatches - ahead..microbatches).map(Pass::Backward));
    all
}

impl Job {
    fn replicas(&self) -> u64 {
        self.hosts.len() as u64 / (self.tensor as u64 * self.pipeline as u64).max(1)
    }

    /// Whether it can be done.
    fn check(&self) -> Result<(), Fault> {
        let fault = |field, message: String, help: String| Err(Fault { field, message, help });
        let (ranks, model) = (self.hosts.len() as u64, &self.model);
        let each = self.tensor as u64 * self.pipeline as u64;
        if ranks < 2 {
            return fault("ranks", "a job of less than two ranks sends nothing".into(), "give it two or more".into());
        }
        if ranks % each != 0 {
            let message =
                format!("{ranks} ranks are no whole number of replicas of {} × {}", self.tensor, self.pipeline);
            return fault("ranks", message, format!("write a multiple of tensor × pipeline, {each}"));
        }
        let replicas = self.replicas();
        if model.layers < self.pipeline {
            let message = format!("{} layers are fewer than {} stages", model.layers, self.pipeline);
            return fault("pipeline", message, "write fewer stages, or more layers".into());
        }
        let at_once = replicas.saturating_mul(model.microbatch);
        if model.batch % at_once != 0 {
            let message = format!(
                "a batch of {} is no whole number of microbatches of {} for each of {replicas} replicas",
                model.batch, model.microbatch
            );
            return fault("batch", message, format!("write a multiple of {at_once}"));
        }
        if self.expert > 1 && model.experts == 0 {
            return fault("expert", "a dense model has no experts to share".into(), "write experts, too".into());
        }
        if self.expert > 0 && !replicas.is_multiple_of(self.expert as u64) {
            let message = format!("{replicas} replicas cannot be cut into groups of {}", self.expert);
            return fault("expert", message, "write a divisor of the number of replicas".into());
        }
        if self.expert > 1 && model.experts % self.expert as u64 != 0 {
            let message = format!("{} experts cannot be shared equally by {} replicas", model.experts, self.expert);
            return fault("experts", message, format!("write a multiple of {}", self.expert));
        }
        if self.stragglers as u64 > ranks {
            let message = format!("{} stragglers of {ranks} ranks", self.stragglers);
            return fault("stragglers", message, format!("write {ranks} or fewer"));
        }
        let all_reduce = self.all_reduce;
        if replicas > 1 && all_reduce == Operation::HalvingDoublingAllReduce && !replicas.is_power_of_two() {
            let message = format!("halving and doubling cannot be done by {replicas} replicas");
            return fault("all_reduce", message, "have 2, 4, 8, … replicas, or choose another".into());
        }
        if replicas > 1 && all_reduce == Operation::HierarchicalAllReduce {
            let help =
                || format!("write domain = how many replicas a domain has, which divides their number, {replicas}");
            if self.domain == 0 {
                return fault("all_reduce", "a hierarchical all-reduce of no domains".into(), help());
            }
            if !replicas.is_multiple_of(self.domain as u64) {
                let message = format!("{replicas} replicas are no whole number of domains of {}", self.domain);
                return fault("domain", message, help());
            }
        }
        let layers = model.layers as u64;
        let mut parts = vec![("activations", self.activation()), ("gradients of a stage", self.gradient(layers))];
        if model.experts > 0 {
            parts.push(("gradients of a stage's experts", self.expert_gradient(layers)));
            parts.push(("tokens for the experts", self.tokens()));
        }
        for (what, bytes) in parts {
            if bytes > MAX_SIZE.0 as u128 {
                let message = format!("the {what} would have {bytes} B, more than a message may have");
                return fault("hidden", message, "make the model or its microbatches smaller".into());
            }
        }
        Ok(())
    }

    /// Whether ranks compute no more often than there may be flows: what they compute takes memory, too.
    fn computes(&self, budget: u64) -> Result<(), Fault> {
        let microbatches = (self.model.batch / (self.replicas() * self.model.microbatch)) as u128;
        // Attention and what follows it, forward and backward, of every layer.
        let once = 4 * self.tensor as u128 * self.replicas() as u128 * self.model.layers as u128 * microbatches;
        let all = once.saturating_mul(self.iterations as u128);
        if all <= budget as u128 {
            return Ok(());
        }
        let message = format!("ranks would compute {all} parts of layers in all, and there is room for {budget}");
        let field = match (once <= budget as u128, microbatches) {
            (true, _) => "iterations",
            (false, 1) => "layers",
            (false, _) => "batch",
        };
        Err(Fault { field, message, help: "write fewer iterations, sequences or layers".into() })
    }

    /// Bytes of what a rank has for the experts of a layer, its own among them.
    fn tokens(&self) -> u128 {
        self.activation() * self.model.top_k as u128 / self.tensor as u128
    }

    /// Bytes of what a microbatch's layer gives to the next, whole.
    fn activation(&self) -> u128 {
        let model = &self.model;
        [model.microbatch, model.sequence, model.hidden, model.precision].map(u128::from).into_iter().product()
    }

    /// Bytes of a rank's gradients of so many layers that all replicas have.
    fn gradient(&self, layers: u64) -> u128 {
        let Model { hidden, precision, experts, .. } = self.model;
        let weights = if experts == 0 { 12 } else { 4 };
        layers as u128 * weights * hidden as u128 * hidden as u128 * precision as u128 / self.tensor as u128
    }

    /// The same of its experts.
    fn expert_gradient(&self, layers: u64) -> u128 {
        let Model { hidden, precision, experts, .. } = self.model;
        let own = experts / (self.expert.max(1) as u64);
        layers as u128 * own as u128 * 8 * hidden as u128 * hidden as u128 * precision as u128 / self.tensor as u128
    }

    /// What a rank takes forward for the attention of a layer and for what follows it.
    fn forward(&self) -> [Time; 2] {
        let Model { hidden, sequence, microbatch, experts, top_k, .. } = self.model;
        match self.speed {
            // As 4 to 8 of 12 matrices of weights.
            Speed::Layer(layer) => [Time(layer.0 / 3), Time(layer.0 - layer.0 / 3)],
            Speed::Flops(rate) => {
                let (wide, tokens) = (hidden as u128, microbatch as u128 * sequence as u128);
                let chosen = if experts == 0 { 1 } else { top_k as u128 };
                let time = |flops: u128| {
                    let each = flops.saturating_mul(tokens) / self.tensor as u128;
                    Time((each.saturating_mul(1_000_000_000_000) / rate.max(1) as u128).min(u64::MAX as u128 >> 8)
                        as u64)
                };
                [time(8 * wide * wide + 4 * sequence as u128 * wide), time(16 * wide * wide * chosen)]
            }
        }
    }

    /// Makes the flows and tasks. `origins` are those of each dimension; `budget` is the most flows there may be.
    pub fn generate(&self, name: &str, origins: [Origin; 4], budget: u64) -> Result<Made, Fault> {
        self.check()?;
        let ranks = self.hosts.len();
        let marks = (ranks as u64).saturating_mul(self.iterations);
        if marks > budget {
            return Err(beyond("iterations", marks as f64, budget));
        }
        self.computes(budget)?;
        let mut random = origins[0].stream(Kind::Job, 1);
        let mut slow = vec![false; ranks];
        for _ in 0..self.stragglers {
            let free = slow.iter().filter(|slow| !**slow).count() as u64;
            let place = random.below(free) as usize;
            let rank = (0..ranks).filter(|&rank| !slow[rank]).nth(place).unwrap_or(0);
            slow[rank] = true;
        }
        let weights = skewed(self.expert.max(1) as usize, self.skew, &mut random);
        let mut weave = Weave::default();
        // The ends of iterations come first, so that they are easily found.
        for _ in 0..self.iterations {
            self.hosts.iter().for_each(|&host| _ = weave.task(host, self.start, Time::ZERO, None));
        }
        let mut loom = Loom {
            job: self,
            origins,
            budget,
            random,
            slow,
            weights,
            weave,
            goes: Vec::new(),
            ready: vec![Vec::new(); ranks],
            sent: vec![Vec::new(); ranks],
            forward: self.forward(),
        };
        for iteration in 0..self.iterations {
            loom.iteration()?;
            for rank in 0..ranks {
                let mark = Task::id(iteration as usize * ranks + rank);
                let firsts =
                    std::mem::take(&mut loom.ready[rank]).into_iter().chain(std::mem::take(&mut loom.sent[rank]));
                let waits = firsts.map(|first| After { flow: mark, first, gap: Time::ZERO });
                loom.weave.after.extend(waits);
                loom.ready[rank] = vec![mark];
            }
        }
        let Loom { weave, goes, .. } = loom;
        let shape = [self.tensor as u64, self.pipeline as u64, self.replicas(), self.expert.max(1) as u64];
        let outline = Outline {
            name: name.into(),
            ranks: ranks as u64,
            shape,
            iterations: self.iterations,
            start: self.start,
            marks: 0,
            goes,
        };
        Ok(Made { flows: weave.flows, tasks: weave.tasks, after: weave.after, outline })
    }
}

/// A job as it is made.
struct Loom<'a> {
    job: &'a Job,
    origins: [Origin; 4],
    budget: u64,
    random: Stream,
    slow: Vec<bool>,
    weights: Vec<u64>,
    weave: Weave,
    goes: Vec<Go>,
    /// By rank, what must have ended before it computes on.
    ready: Vec<Vec<FlowId>>,
    /// By rank, what of its gradients is under way.
    sent: Vec<Vec<FlowId>>,
    forward: [Time; 2],
}

impl Loom<'_> {
    fn rank(&self, stage: u64, replica: u64, tensor: u64) -> usize {
        ((stage * self.job.replicas() + replica) * self.job.tensor as u64 + tensor) as usize
    }

    /// Ranks of a stage.
    fn stage(&self, stage: u64) -> std::ops::Range<usize> {
        self.rank(stage, 0, 0)..self.rank(stage + 1, 0, 0)
    }

    /// One iteration of all stages. A pass is made as soon as what it waits for is.
    fn iteration(&mut self) -> Result<(), Fault> {
        let model = self.job.model;
        let stages = self.job.pipeline as u64;
        let microbatches = model.batch / (self.job.replicas() * model.microbatch);
        let passes: Vec<Vec<Pass>> = (0..stages).map(|stage| one_by_one(stage, stages, microbatches)).collect();
        let mut next = vec![0; stages as usize];
        // By stage and microbatch: whether its neighbour's part has been sent, and by rank the message.
        let mut forth: Vec<std::collections::HashMap<u64, Vec<FlowId>>> = vec![Default::default(); stages as usize];
        let mut back = forth.clone();
        while (0..stages as usize).any(|stage| next[stage] < passes[stage].len()) {
            for stage in 0..stages {
                let at = stage as usize;
                let Some(&pass) = passes[at].get(next[at]) else { continue };
                let came = match pass {
                    Pass::Forward(number) if stage > 0 => forth[at].remove(&number),
                    Pass::Backward(number) if stage + 1 < stages => back[at].remove(&number),
                    _ => Some(Vec::new()),
                };
                let Some(came) = came else { continue };
                let first = self.rank(stage, 0, 0);
                self.ready[first..].iter_mut().zip(came).for_each(|(ready, came)| ready.push(came));
                let last = matches!(pass, Pass::Backward(number) if number + 1 == microbatches);
                self.pass(stage, matches!(pass, Pass::Backward(_)), last)?;
                match pass {
                    Pass::Forward(number) if stage + 1 < stages => {
                        let sent = self.hand_over(stage, stage + 1)?;
                        forth[at + 1].insert(number, sent);
                    }
                    Pass::Backward(number) if stage > 0 => {
                        let sent = self.hand_over(stage, stage - 1)?;
                        back[at - 1].insert(number, sent);
                    }
                    _ => {}
                }
                next[at] += 1;
            }
        }
        Ok(())
    }

    /// What a stage computes and sends of a microbatch; with the last one its gradients, too.
    fn pass(&mut self, stage: u64, backward: bool, last: bool) -> Result<(), Fault> {
        let job = self.job;
        let (layers, stages) = (job.model.layers as u64, job.pipeline as u64);
        let own = (stage + 1) * layers / stages - stage * layers / stages;
        let buckets = if job.overlap { (job.buckets as u64).clamp(1, own) } else { 1 };
        let [attention, mlp] = self.forward.map(|time| if backward { Time(time.0.saturating_mul(2)) } else { time });
        let mut waiting = 0;
        for layer in 0..own {
            // Backward, what came last comes first.
            let parts = if backward { [(mlp, true), (attention, false)] } else { [(attention, false), (mlp, true)] };
            for (lasts, experts) in parts {
                let exchange = experts && job.model.experts > 0 && job.expert > 1;
                if exchange {
                    self.exchange(stage)?;
                }
                self.compute(stage, lasts);
                if exchange {
                    self.exchange(stage)?;
                }
                self.sum_up(stage)?;
            }
            waiting += 1;
            let due = (layer + 1) * buckets / own > layer * buckets / own;
            if last && due {
                self.send_gradients(stage, std::mem::take(&mut waiting))?;
            }
        }
        Ok(())
    }

    fn compute(&mut self, stage: u64, lasts: Time) {
        for rank in self.stage(stage) {
            let mut time = lasts.0 as f64;
            if self.slow[rank] {
                time *= self.job.slowdown;
            }
            if self.job.jitter > 0.0 {
                time *= 1.0 + self.job.jitter * (2.0 * self.random.uniform() - 1.0);
            }
            // Exact where nothing changes it.
            let lasts = if time == lasts.0 as f64 { lasts } else { Time(time.max(0.0) as u64) };
            let firsts = std::mem::take(&mut self.ready[rank]);
            let task = self.weave.task(self.job.hosts[rank], self.job.start, lasts, firsts);
            self.ready[rank] = vec![task];
        }
    }

    /// One go of a collective between ranks that enter when these have ended. Says what each receives.
    fn go(
        &mut self,
        dimension: Dimension,
        operation: Operation,
        ranks: &[usize],
        bytes: u128,
        entry: &[FlowId],
    ) -> Result<Received, Fault> {
        let job = self.job;
        let domain = if operation == Operation::HierarchicalAllReduce { job.domain } else { 1 };
        let lines = job.cut.lines() as u64;
        let more = operation.messages(ranks.len() as u64, domain as u64).saturating_mul(lines);
        let first = self.weave.flows.len();
        if first as u64 + more > self.budget {
            return Err(beyond(job.cut.key("ranks"), first as f64 + more as f64, self.budget));
        }
        let hosts: Vec<NodeId> = ranks.iter().map(|&rank| job.hosts[rank]).collect();
        let origin = self.origins[dimension as usize];
        let party = Party { hosts: &hosts, origin, start: job.start, entry, latency: job.latency, step: 0 };
        let bytes = bytes as u64;
        let weights = if operation == Operation::AllToAll { self.weights.as_slice() } else { &[] };
        let received =
            collective::play(&mut self.weave, &party, &Operate { operation, bytes, cut: job.cut, domain, weights });
        let flows = (self.weave.flows.len() - first) as u32;
        let (ranks, first) = (ranks.len() as u32, FlowId(first as u32));
        self.goes.push(Go { dimension, operation, ranks, bytes, first, flows });
        Ok(received)
    }

    /// The last that each of these ranks has done, as one thing.
    fn entry(&mut self, ranks: &[usize]) -> Vec<FlowId> {
        let mut entry = Vec::with_capacity(ranks.len());
        for &rank in ranks {
            if let [only] = self.ready[rank].as_slice()
                && Task::number(*only).is_some()
            {
                entry.push(*only);
                continue;
            }
            let firsts = std::mem::take(&mut self.ready[rank]);
            let task = self.weave.task(self.job.hosts[rank], self.job.start, Time::ZERO, firsts);
            self.ready[rank] = vec![task];
            entry.push(task);
        }
        entry
    }

    /// Ranks that share a layer sum up their parts of it.
    fn sum_up(&mut self, stage: u64) -> Result<(), Fault> {
        let tensor = self.job.tensor as u64;
        if tensor == 1 {
            return Ok(());
        }
        for replica in 0..self.job.replicas() {
            let ranks: Vec<usize> = (0..tensor).map(|own| self.rank(stage, replica, own)).collect();
            let (entry, bytes) = (self.entry(&ranks), self.job.activation());
            let received = self.go(Dimension::Tensor, Operation::RingAllReduce, &ranks, bytes, &entry)?;
            ranks.iter().zip(received).for_each(|(&rank, received)| self.ready[rank].extend(received));
        }
        Ok(())
    }

    /// Tokens go to their experts, or back.
    fn exchange(&mut self, stage: u64) -> Result<(), Fault> {
        let (job, expert) = (self.job, self.job.expert as u64);
        // What stays with the rank itself is not sent.
        let bytes = job.tokens() * (expert as u128 - 1) / expert as u128;
        for first in (0..job.replicas()).step_by(expert as usize) {
            for own in 0..job.tensor as u64 {
                let ranks: Vec<usize> = (first..first + expert).map(|replica| self.rank(stage, replica, own)).collect();
                let entry = self.entry(&ranks);
                let received = self.go(Dimension::Expert, Operation::AllToAll, &ranks, bytes, &entry)?;
                ranks.iter().zip(received).for_each(|(&rank, received)| self.ready[rank].extend(received));
            }
        }
        Ok(())
    }

    /// Every rank sends its part of the activations, or of their gradients, to its like in another stage. By rank of that stage: the message.
    fn hand_over(&mut self, from: u64, to: u64) -> Result<Vec<FlowId>, Fault> {
        let bytes = self.job.activation() / self.job.tensor as u128;
        let mut sent = Vec::new();
        for (source, target) in self.stage(from).zip(self.stage(to)) {
            let entry = self.entry(&[source]);
            let both = [source, target];
            let received = self.go(Dimension::Pipeline, Operation::Broadcast, &both, bytes, &entry)?;
            let came = received.into_iter().flatten().collect::<Vec<_>>();
            // With several chunks the last rank has them all when a task of its own says so.
            sent.push(match came.as_slice() {
                [only] => *only,
                _ => self.weave.task(self.job.hosts[target], self.job.start, Time::ZERO, came),
            });
        }
        Ok(sent)
    }

    /// Replicas sum up the gradients of so many layers, when those before are summed up.
    fn send_gradients(&mut self, stage: u64, layers: u64) -> Result<(), Fault> {
        let job = self.job;
        let (replicas, expert) = (job.replicas(), job.expert.max(1) as u64);
        for own in 0..job.tensor as u64 {
            let all: Vec<u64> = (0..replicas).collect();
            self.reduce(stage, own, &all, job.gradient(layers))?;
            // Those who have the same experts.
            for place in 0..if job.model.experts > 0 { expert } else { 0 } {
                let alike: Vec<u64> = (place..replicas).step_by(expert as usize).collect();
                self.reduce(stage, own, &alike, job.expert_gradient(layers))?;
            }
        }
        Ok(())
    }

    fn reduce(&mut self, stage: u64, own: u64, replicas: &[u64], bytes: u128) -> Result<(), Fault> {
        if replicas.len() < 2 || bytes == 0 {
            return Ok(());
        }
        let ranks: Vec<usize> = replicas.iter().map(|&replica| self.rank(stage, replica, own)).collect();
        let computed = self.entry(&ranks);
        let mut entry = Vec::with_capacity(ranks.len());
        for (&rank, &computed) in ranks.iter().zip(&computed) {
            let before = std::mem::take(&mut self.sent[rank]);
            entry.push(match before.is_empty() {
                true => computed,
                false => {
                    let firsts = before.into_iter().chain([computed]);
                    self.weave.task(self.job.hosts[rank], self.job.start, Time::ZERO, firsts)
                }
            });
        }
        let operation = match self.job.all_reduce {
            // Fewer replicas share experts than all: what does not fit them is done in a ring.
            Operation::HalvingDoublingAllReduce if !ranks.len().is_power_of_two() => Operation::RingAllReduce,
            Operation::HierarchicalAllReduce if !(ranks.len() as u32).is_multiple_of(self.job.domain.max(1)) => {
                Operation::RingAllReduce
            }
            other => other,
        };
        let received = self.go(Dimension::Data, operation, &ranks, bytes, &entry)?;
        for ((&rank, received), entered) in ranks.iter().zip(received).zip(entry) {
            self.sent[rank] = received;
            self.sent[rank].push(entered);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MAX_FLOWS, Traffic};
    use fabric::id::ClassId;

    const ORIGIN: Origin = Origin { seed: 1, number: 0, group: 0, class: ClassId(0) };

    fn job(ranks: u32, tensor: u32, pipeline: u32) -> Job {
        let model = Model {
            layers: 4,
            hidden: 128,
            sequence: 64,
            batch: 16,
            microbatch: 1,
            experts: 0,
            top_k: 2,
            precision: 2,
        };
        Job {
            model,
            tensor,
            pipeline,
            expert: 1,
            hosts: (0..ranks).map(NodeId).collect(),
            iterations: 2,
            start: Time::from_us(5),
            speed: Speed::Layer(Time::from_us(30)),
            overlap: true,
            buckets: 2,
            jitter: 0.0,
            stragglers: 0,
            slowdown: 1.0,
            all_reduce: Operation::RingAllReduce,
            domain: 0,
            cut: Cut::default(),
            latency: Time::ZERO,
            skew: 0.0,
        }
    }

    fn made(job: &Job) -> Made {
        job.generate("job", [ORIGIN; 4], MAX_FLOWS).unwrap_or_else(|fault| panic!("{}", fault.message))
    }

    #[test]
    fn a_stage_has_one_forward_one_backward() {
        use Pass::{Backward, Forward};
        assert_eq!(one_by_one(0, 2, 3), [Forward(0), Forward(1), Backward(0), Forward(2), Backward(1), Backward(2)]);
        assert_eq!(one_by_one(1, 2, 2), [Forward(0), Backward(0), Forward(1), Backward(1)]);
        for (stages, microbatches) in [(1, 1), (4, 2), (4, 9), (3, 3)] {
            for stage in 0..stages {
                let all = one_by_one(stage, stages, microbatches);
                assert_eq!(all.len() as u64, 2 * microbatches);
                assert_eq!(all.last(), Some(&Backward(microbatches - 1)));
            }
        }
    }

    #[test]
    fn every_parallelism_sends_what_the_model_says() {
        let Made { outline, .. } = made(&job(8, 2, 2));
        let of = |dimension| outline.goes.iter().filter(move |go| go.dimension == dimension).collect::<Vec<_>>();
        let activation = 64 * 128 * 2;
        // Two replicas with 8 microbatches each. Of each: 4 layers, four sums in a layer, in 2 iterations.
        let tensor = of(Dimension::Tensor);
        assert_eq!(tensor.len(), 2 * 2 * 8 * 4 * 4);
        assert!(tensor.iter().all(|go| go.bytes == activation && go.ranks == 2));
        // Each of two tensor ranks and replicas sends half of the activations forth and back.
        let pipeline = of(Dimension::Pipeline);
        assert_eq!(pipeline.len(), 2 * 2 * 2 * 8 * 2);
        assert!(pipeline.iter().all(|go| go.bytes == activation / 2));
        // Every stage has two layers in two buckets, for each tensor rank.
        let data = of(Dimension::Data);
        assert_eq!(data.len(), 2 * 2 * 2 * 2);
        assert!(data.iter().all(|go| go.bytes == 12 * 128 * 128 * 2 / 2 && go.ranks == 2));
        assert!(of(Dimension::Expert).is_empty());
    }

    #[test]
    fn experts_are_exchanged_with_and_their_gradients_summed_by_those_who_share_them() {
        let mut moe = Job { expert: 2, ..job(4, 1, 1) };
        moe.model.experts = 8;
        let Made { outline, .. } = made(&moe);
        let expert: Vec<_> = outline.goes.iter().filter(|go| go.dimension == Dimension::Expert).collect();
        // Two groups, 4 microbatches, 4 layers, there and back, forward and backward, 2 iterations.
        assert_eq!(expert.len(), 2 * 4 * 4 * 4 * 2);
        // Of two choices for each token, half stay.
        assert!(expert.iter().all(|go| go.bytes == 64 * 128 * 2 * 2 / 2));
        let mut sizes: Vec<(u32, u64)> =
            outline.goes.iter().filter(|go| go.dimension == Dimension::Data).map(|go| (go.ranks, go.bytes)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        assert_eq!(sizes, [(2, 2 * 4 * 8 * 128 * 128 * 2), (4, 2 * 4 * 128 * 128 * 2)]);
    }

    #[test]
    fn every_task_and_message_can_end_and_is_at_home() {
        let mut moe = Job { expert: 2, cut: Cut { chunks: 2, ..Cut::default() }, ..job(16, 2, 2) };
        (moe.model.experts, moe.jitter, moe.stragglers, moe.slowdown) = (4, 0.1, 2, 1.5);
        for job in [job(2, 2, 1), job(2, 1, 2), job(2, 1, 1), job(12, 3, 4), moe] {
            let mut job = job;
            job.model.batch = job.replicas() * 3;
            let Made { flows, tasks, after, outline } = made(&job);
            let mut graph = fabric::topology::Graph::default();
            for host in 0..job.hosts.len() {
                graph.add(fabric::topology::Kind::Host, 0, format!("h{host}"));
            }
            let traffic = Traffic { flows, tasks, after, ..Traffic::default() };
            assert_eq!(traffic.check_after(&crate::Names::new(&graph)), Ok(()));
            assert_eq!(outline.marks, 0);
            let marks = job.hosts.len() * 2;
            assert!(traffic.tasks[..marks].iter().all(|task| task.lasts == Time::ZERO));
            let covered: u64 = outline.goes.iter().map(|go| go.flows as u64).sum();
            assert_eq!(covered, traffic.flows.len() as u64);
        }
    }

    #[test]
    fn compute_takes_what_its_flops_say() {
        // 24 h² + 4 s h for each token, over two ranks that share it.
        let job = Job { speed: Speed::Flops(1_000_000_000_000), ..job(8, 2, 2) };
        let [attention, mlp] = job.forward();
        assert_eq!(attention, Time((8 * 128 * 128 + 4 * 64 * 128) * 64 / 2));
        assert_eq!(mlp, Time(16 * 128 * 128 * 64 / 2));
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name() {
        let field = |job: Job| job.generate("job", [ORIGIN; 4], 100_000).map(|_| ()).map_err(|fault| fault.field);
        assert_eq!(field(job(8, 2, 2)), Ok(()));
        assert_eq!(field(job(1, 1, 1)), Err("ranks"));
        assert_eq!(field(job(9, 2, 2)), Err("ranks"));
        assert_eq!(field(job(10, 1, 5)), Err("pipeline"));
        assert_eq!(field(job(3, 1, 1)), Err("batch"));
        assert_eq!(field(Job { expert: 2, ..job(4, 1, 1) }), Err("expert"));
        assert_eq!(field(Job { stragglers: 5, ..job(4, 1, 1) }), Err("stragglers"));
        assert_eq!(field(Job { iterations: u64::MAX, ..job(4, 1, 1) }), Err("iterations"));
        assert_eq!(field(Job { iterations: 10_000, ..job(4, 2, 1) }), Err("iterations"));
        let chunks = Cut { chunks: 2000, ..Cut::default() };
        assert_eq!(field(Job { cut: chunks, ..job(8, 2, 2) }), Err("chunks"));
        let channels = Cut { channels: 4000, chunks: 2, ..Cut::default() };
        assert_eq!(field(Job { cut: channels, ..job(8, 2, 2) }), Err("channels"));
        // What ranks compute takes memory before anything is sent.
        let mut long = job(2, 1, 1);
        long.model.batch = 1 << 40;
        assert_eq!(field(long.clone()), Err("batch"));
        long.model = Model { layers: 1_000_000, batch: 2, hidden: 1, ..long.model };
        assert_eq!(field(long), Err("layers"));
        let all_reduce = Operation::HierarchicalAllReduce;
        assert_eq!(field(Job { all_reduce, domain: 3, ..job(8, 1, 1) }), Err("domain"));
        let mut huge = job(8, 2, 2);
        huge.model.hidden = 1 << 40;
        assert_eq!(field(huge), Err("hidden"));
    }
}
