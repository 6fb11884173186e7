//! The loops of pause, resume and credit, every order of their steps explored.
//!
//! The nodes are real: each is a [`Bench`], with the switch or NIC, the memory and the scheme of a run. Between them are links that
//! keep order and deliver when they like, and at each step anything that can happen next may: a host sends, a port sends, a link
//! delivers, a timer goes off, a frame gets lost. What holds of all these orders holds of those that a clock would pick.
//!
//! What is looked at, in words:
//!
//! 1. *No loss.* No packet ever finds the memory full: what is in flight when a pause is sent, and until it is obeyed, fits in headroom.
//! 2. *No stuck pause.* From every state, if hosts send nothing more, the switches run empty, everything that was stopped is let go,
//!    and all credits are back. And from every state everything can be sent and delivered.
//! 3. *Agreement.* While no frame is under way on a link, its two ends agree on what is stopped there; while nothing is, on credits.
//! 4. *Few frames.* No more frames wait at a port than headroom is computed with.
//!
//! A pause must be obeyed in time for the first to hold: [`Delays`] says how much a link carries meanwhile.
//!
//! A bench cannot be copied. So what a node does in a state is found out once, by a bench that is taken there by the same steps, and is
//! known from then on; states are told apart by all that decides what a node does next ([`Bench::outlook`], and what the scheme keeps). That
//! this is all is checked by samples: now and then two benches that came to one state by two paths must do the same.

use engine::Time;
use fabric::Setup;
use fabric::axes::FlowControl;
use fabric::bench::{Bench, Builder, Sent};
use fabric::id::{FlowId, NodeId, PortId};
use fabric::packet::Kind;
use fabric::routing::PortMap;
use fabric::topology;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;

/// Time between two ticks of a world's common clock.
pub(super) const TICK: Time = Time::from_us(10);
/// What a tick is longer than that, lest the time that transmissions take put a timer off to the next.
const SLACK: Time = Time::from_ns(2);
/// Timers that go off within this are as good as due.
const AT_ONCE: Time = Time::from_ns(100);

/// What a node has to do with its neighbours, in one of its states.
#[derive(Clone, Default)]
pub(super) struct Facts {
    /// What it has asked the neighbour at a port to stop.
    pub(super) asks: Vec<(u16, u64)>,
    /// What it has stopped because the neighbour at a port asked for it.
    pub(super) obeys: Vec<(u16, u64)>,
    /// What it knows of a port, that the neighbour must know alike while nothing is under way.
    pub(super) counts: Vec<(u16, Vec<u64>)>,
    /// Ports by which it has yet to say what it asks for.
    pub(super) pending: Vec<u16>,
    /// Nothing is owed to it or by it.
    pub(super) rest: bool,
    /// What is wrong with the node alone.
    pub(super) wrong: Option<String>,
    /// By port: frames and other control packets that wait.
    waiting: Vec<(usize, usize)>,
    queued: u64,
    dropped: u64,
    timers: bool,
    /// Data packets of its own flows that it has sent so far.
    sent: u32,
}

/// How much is under way on a link at most.
#[derive(Clone, Copy)]
pub(super) struct Delays {
    /// Data packets in flight.
    pub(super) flight: usize,
    /// Data packets that the neighbour sends while a frame waits for it at a port.
    pub(super) waits: u8,
    /// Those that it sends while the frame is in flight.
    pub(super) frame: u8,
}

impl Delays {
    /// Packets that come after the one that a pause is sent for, at most: a link that is full when that one arrives has room for one again.
    pub(super) fn after_a_pause(self) -> u32 {
        self.flight as u32 - 1 + self.waits as u32 + self.frame as u32
    }
}

/// When timers go off.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Clocks {
    /// Each node has its own clock, as slow or as fast as it likes, as long as what a timer sends, and what is answered, has
    /// left before the next goes off.
    Free,
    /// All have the same. A frame is obeyed before it ticks.
    Common,
}

/// When the next timer of a node goes off, if any is set.
pub(super) type Next<N> = fn(&N) -> Option<Time>;

/// What is explored.
pub(super) struct Model<F: FlowControl> {
    pub(super) setup: Setup,
    pub(super) scheme: F,
    /// Those nodes that are there. What is sent to others leaves the world.
    pub(super) nodes: Vec<u32>,
    /// Packets of each flow.
    pub(super) packets: Vec<u64>,
    pub(super) delays: Delays,
    pub(super) clocks: Clocks,
    /// To what the times of timers are rounded.
    pub(super) grain: Time,
    /// When the next timer goes off that counts, for a scheme that sets timers anew and knows: what it says of them in `keeps` is all.
    pub(super) next: Option<Next<F::Node>>,
    /// Frames that get lost at most, and whether data packets may, too.
    pub(super) losses: u8,
    pub(super) loses_data: bool,
    /// That nothing is dropped was promised.
    pub(super) lossless: bool,
    /// The most frames that may wait at a port.
    pub(super) frames: usize,
    /// Changes a bench before it is used.
    pub(super) prepare: fn(&mut Bench<F>),
    /// Whatever of the scheme's own state decides what the node does next.
    pub(super) keeps: fn(&F, &F::Node, Time) -> String,
    pub(super) facts: fn(&mut Bench<F>, &mut Facts),
    /// Changes what nodes send, to see that mistakes are found: what is to be sent instead of it.
    pub(super) twist: Option<fn(Vec<Sent>) -> Vec<Sent>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Input {
    Hear(u16, u32),
    Send(u16),
    Timer,
    Tick,
}

/// What came out: by port, the numbers of packets.
type Output = Vec<(u16, u32)>;

struct State {
    from: Option<(u32, Input)>,
    facts: Facts,
}

/// A node and its states that are known.
struct Machine<F: FlowControl> {
    node: u32,
    states: Vec<State>,
    known: HashMap<String, u32>,
    steps: HashMap<(u32, Input), Option<(u32, Output)>>,
    /// By state: what was tried there first.
    tried: HashMap<u32, Input>,
    live: Option<(u32, Bench<F>)>,
    met_again: u32,
    compared: u32,
}

/// Everything that was ever sent.
#[derive(Default)]
struct Items {
    all: Vec<Sent>,
    known: HashMap<String, u32>,
}

impl Items {
    fn number(&mut self, sent: Sent) -> u32 {
        let p = &sent.packet;
        let payload = sent.payload();
        let flow = if payload.is_some() { 0 } else { p.flow };
        let text = format!("{:?}", (p.kind, flow, p.seq, p.dst, p.tuple, p.size, p.tag, p.class, p.flags, payload));
        *self.known.entry(text).or_insert_with(|| {
            self.all.push(sent);
            self.all.len() as u32 - 1
        })
    }
    fn is_data(&self, item: u32) -> bool {
        self.all[item as usize].packet.kind == Kind::Data
    }
}

/// Every how many meetings with a known state the two benches are compared.
const COMPARE: u32 = 5;

impl<F: FlowControl> Machine<F> {
    fn new(model: &Model<F>, node: u32) -> Machine<F> {
        let mut machine = Machine {
            node,
            states: Vec::new(),
            known: HashMap::new(),
            steps: HashMap::new(),
            tried: HashMap::new(),
            live: None,
            met_again: 0,
            compared: 0,
        };
        let mut bench = machine.make(model);
        let text = machine.text(model, &mut bench);
        let facts = facts(model, &mut bench, 0);
        machine.states.push(State { from: None, facts });
        machine.known.insert(text, 0);
        machine
    }

    fn make(&self, model: &Model<F>) -> Bench<F> {
        let mut bench = Builder::of(model.setup.clone(), NodeId(self.node)).build(model.scheme.clone());
        (model.prepare)(&mut bench);
        let ports: Vec<PortId> = bench.view().ports().collect();
        ports.into_iter().for_each(|port| bench.close(port));
        for (flow, (spec, &packets)) in (0..).zip(model.setup.flows.iter().zip(&model.packets)) {
            if spec.src.0 == self.node && packets > 0 {
                bench.start(FlowId(flow), packets * model.setup.nic.payload as u64);
            }
        }
        bench
    }

    fn text(&self, model: &Model<F>, bench: &mut Bench<F>) -> String {
        let mut text = bench.outlook(model.next.is_none().then_some(model.grain));
        let (now, dropped) = (bench.now(), dropped(bench) > 0);
        _ = write!(text, "\n{dropped} {}", (model.keeps)(&model.scheme, bench.node(), now));
        text
    }

    /// A bench in a state.
    fn at(&mut self, model: &Model<F>, items: &Items, state: u32) -> Bench<F> {
        if let Some((_, bench)) = self.live.take_if(|(at, _)| *at == state) {
            return bench;
        }
        let mut path = Vec::new();
        let mut back = state;
        while let Some((from, input)) = self.states[back as usize].from {
            path.push(input);
            back = from;
        }
        let mut bench = self.make(model);
        for input in path.into_iter().rev() {
            act(model, &mut bench, items, input);
        }
        bench
    }

    fn step(&mut self, model: &Model<F>, items: &mut Items, state: u32, input: Input) -> Option<(u32, Output)> {
        if let Some(known) = self.steps.get(&(state, input)) {
            return known.clone();
        }
        let mut bench = self.at(model, items, state);
        let step = act(model, &mut bench, items, input).map(|sent| {
            let sent = if let Some(twist) = model.twist { twist(sent) } else { sent };
            let output: Output = sent.into_iter().map(|sent| (sent.port.0, items.number(sent))).collect();
            let own = |item: u32| items.is_data(item) && model.begins_at(&items.all[item as usize]) == self.node;
            let data = output.iter().filter(|(_, item)| own(*item)).count() as u32;
            let text = self.text(model, &mut bench);
            let before = self.states[state as usize].facts.sent;
            let next = match self.known.get(&text) {
                Some(&next) => {
                    self.met_again += 1;
                    self.compare(model, items, next, &mut bench);
                    next
                }
                None => {
                    let next = self.states.len() as u32;
                    let facts = facts(model, &mut bench, before + data);
                    self.states.push(State { from: Some((state, input)), facts });
                    self.known.insert(text, next);
                    self.live = Some((next, bench));
                    next
                }
            };
            (next, output)
        });
        self.tried.entry(state).or_insert(input);
        self.steps.insert((state, input), step.clone());
        step
    }

    /// A bench came to a known state by another path: it must do there what the first did.
    fn compare(&mut self, model: &Model<F>, items: &mut Items, state: u32, bench: &mut Bench<F>) {
        if !self.met_again.is_multiple_of(COMPARE) {
            return;
        }
        let Some(&input) = self.tried.get(&state) else { return };
        let Some(first) = self.steps.get(&(state, input)).cloned() else { return };
        self.compared += 1;
        let sent = act(model, bench, items, input);
        assert_eq!(sent.is_some(), first.is_some(), "node {} in state {state}: {input:?}", self.node);
        let (Some(sent), Some((next, output))) = (sent, first) else { return };
        let sent = if let Some(twist) = model.twist { twist(sent) } else { sent };
        let sent: Output = sent.into_iter().map(|sent| (sent.port.0, items.number(sent))).collect();
        assert_eq!(sent, output, "node {} in state {state}: {input:?}", self.node);
        let text = self.text(model, bench);
        let reached = self.known.get(&text).copied();
        let other = || self.known.iter().find(|(_, number)| **number == next).map(|(text, _)| text.clone());
        assert_eq!(reached, Some(next), "{input:?} from {state}: {text}\nor {}", other().unwrap_or_default());
    }
}

fn act<F: FlowControl>(model: &Model<F>, bench: &mut Bench<F>, items: &Items, input: Input) -> Option<Vec<Sent>> {
    // No two things happen at one instant.
    bench.advance(Time(1));
    let mut sent = Vec::new();
    match input {
        Input::Hear(port, item) => bench.hear(PortId(port), &items.all[item as usize]),
        Input::Send(port) => sent.push(bench.transmit(PortId(port))?),
        Input::Timer => {
            let then = next_timer(model, bench)?;
            bench.advance_to(then);
        }
        Input::Tick => bench.advance(TICK + SLACK),
    }
    // What is due at once is not put off: how soon that is depends on how long transmissions took, which is no part of a state.
    while let Some(then) = next_timer(model, bench).filter(|&then| then < bench.now() + AT_ONCE) {
        bench.advance_to(then);
    }
    sent.extend(bench.sent());
    Some(sent)
}

/// When the next timer of a bench goes off.
fn next_timer<F: FlowControl>(model: &Model<F>, bench: &mut Bench<F>) -> Option<Time> {
    let then = match model.next {
        Some(next) => next(bench.node()),
        None => bench.timers().first().map(|&(time, _)| time),
    };
    then.map(|then| then.max(bench.now()))
}

fn dropped<F: FlowControl>(bench: &Bench<F>) -> u64 {
    bench.counts().dropped_full + bench.counts().dropped_down
}

fn facts<F: FlowControl>(model: &Model<F>, bench: &mut Bench<F>, sent: u32) -> Facts {
    let ports: Vec<PortId> = bench.view().ports().collect();
    let mut facts = Facts {
        rest: true,
        dropped: dropped(bench),
        waiting: ports.iter().map(|&port| bench.waiting(port)).collect(),
        queued: ports.iter().map(|&port| bench.view().queued(port)).sum(),
        timers: next_timer(model, bench).is_some(),
        sent,
        ..Facts::default()
    };
    (model.facts)(bench, &mut facts);
    facts.asks.sort_unstable();
    facts.obeys.sort_unstable();
    facts.counts.sort_unstable();
    facts
}

/// One direction of a link.
struct Line {
    from: (usize, u16),
    to: (usize, u16),
    /// The other direction.
    back: usize,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    nodes: Box<[u32]>,
    /// What is under way, with how much the node that it goes to has sent since it was.
    lines: Box<[Vec<(u32, u8)>]>,
    /// By direction: how much the node at its end has sent since a frame waits at its beginning.
    late: Box<[u8]>,
    losses: u8,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Deliver(usize),
    Lose(usize),
    Send(usize, u16),
    Timer(usize),
    Tick,
}

/// What an exploration found.
pub(super) struct Explored {
    /// Combinations of states of nodes and links.
    pub(super) worlds: usize,
    /// States of nodes.
    pub(super) states: usize,
    /// How often two benches in one state were compared.
    pub(super) compared: u32,
    /// The first thing that is wrong, by the number of its promise, and the shortest way there.
    pub(super) wrong: Option<(u8, String)>,
    /// What happened anywhere: the most frames at a port, and the most that was ever asked for at once.
    pub(super) frames: usize,
    pub(super) asked: usize,
}

struct Explorer<'m, F: FlowControl> {
    model: &'m Model<F>,
    machines: Vec<Machine<F>>,
    lines: Vec<Line>,
    /// By node and port.
    out: HashMap<(usize, u16), usize>,
    items: Items,
}

/// Too many worlds for a test.
const MOST: usize = 3_000_000;

impl<F: FlowControl> Model<F> {
    /// One in which nothing unusual happens and links carry a packet at a time.
    pub(super) fn new(
        setup: Setup,
        scheme: F,
        nodes: Vec<u32>,
        packets: Vec<u64>,
        keeps: fn(&F, &F::Node, Time) -> String,
        facts: fn(&mut Bench<F>, &mut Facts),
    ) -> Model<F> {
        Model {
            setup,
            scheme,
            nodes,
            packets,
            delays: Delays { flight: 1, waits: 1, frame: 1 },
            clocks: Clocks::Free,
            grain: TICK,
            next: None,
            losses: 0,
            loses_data: false,
            lossless: true,
            frames: usize::MAX,
            prepare: |_| {},
            keeps,
            facts,
            twist: None,
        }
    }

    /// The host that a data packet comes from.
    fn begins_at(&self, sent: &Sent) -> u32 {
        self.setup.flows[sent.packet.flow as usize].src.0
    }

    /// Explores everything that can happen.
    pub(super) fn explore(&self) -> Explored {
        Explorer::new(self).explore()
    }

    /// Explores it, and nothing must be wrong.
    #[track_caller]
    pub(super) fn holds(&self, name: &str) -> Explored {
        let explored = self.explore();
        let Explored { worlds, states, compared, frames, asked, .. } = explored;
        println!("{name}: {worlds} worlds of {states} states, {compared} compared; {asked} asked, {frames} frames");
        if let Some((promise, text)) = &explored.wrong {
            panic!("{name}: promise {promise} is broken\n{text}");
        }
        assert!(asked > 0, "{name}: nothing was ever stopped");
        explored
    }

    /// Explores it, and that promise must be found broken.
    #[track_caller]
    pub(super) fn breaks(&self, promise: u8) {
        match self.explore().wrong {
            Some((broken, text)) => assert_eq!(broken, promise, "{text}"),
            None => panic!("nothing is wrong"),
        }
    }
}

impl<'m, F: FlowControl> Explorer<'m, F> {
    fn new(model: &'m Model<F>) -> Explorer<'m, F> {
        let map = PortMap::new(&model.setup.graph);
        let place = |node: u32| model.nodes.iter().position(|&other| other == node);
        let end = |port: u32| {
            let node = map.node[port as usize];
            Some((place(node)?, (port - map.base[node as usize]) as u16))
        };
        let mut lines: Vec<Line> = Vec::new();
        for port in 0..map.count() as u32 {
            if let (Some(from), Some(to)) = (end(port), end(map.peer[port as usize])) {
                lines.push(Line { from, to, back: 0 });
            }
        }
        for number in 0..lines.len() {
            lines[number].back = lines.iter().position(|line| line.from == lines[number].to).unwrap();
        }
        let out = lines.iter().enumerate().map(|(number, line)| (line.from, number)).collect();
        let machines = model.nodes.iter().map(|&node| Machine::new(model, node)).collect();
        Explorer { model, machines, lines, out, items: Items::default() }
    }

    fn facts(&self, world: &World, node: usize) -> &Facts {
        &self.machines[node].states[world.nodes[node] as usize].facts
    }

    fn actions(&self, world: &World) -> Vec<Action> {
        let mut all = Vec::new();
        for (number, line) in world.lines.iter().enumerate() {
            let Some(&(first, _)) = line.first() else { continue };
            all.push(Action::Deliver(number));
            if world.losses > 0 && (self.model.loses_data || !self.items.is_data(first)) {
                all.push(Action::Lose(number));
            }
        }
        let Delays { flight, waits, frame } = self.model.delays;
        for node in 0..world.nodes.len() {
            let facts = self.facts(world, node);
            for (port, waiting) in (0..).zip(&facts.waiting) {
                let control = *waiting != (0, 0);
                let free = self.out.get(&(node, port)).is_none_or(|&line| {
                    let back = self.lines[line].back;
                    let data = world.lines[line].iter().filter(|(item, _)| self.items.is_data(*item)).count();
                    let heard = world.lines[back].iter().all(|&(item, age)| self.items.is_data(item) || age < frame);
                    let Line { from: (peer, at), .. } = self.lines[back];
                    let quiet = self.facts(world, peer).waiting[at as usize] == (0, 0);
                    data < flight && heard && (quiet || world.late[back] < waits)
                });
                if control || free {
                    all.push(Action::Send(node, port));
                }
            }
            // A link is faster than a timer: what one has sent, and what was answered, has left before the next goes off.
            let ready = self.lines.iter().enumerate().all(|(number, line)| {
                let frames = world.lines[number].iter().filter(|(item, _)| !self.items.is_data(*item)).count();
                let left = frames <= 1 && self.facts(world, line.from.0).waiting[line.from.1 as usize] == (0, 0);
                left || line.from.0 != node && line.to.0 != node
            });
            if self.model.clocks == Clocks::Free && facts.timers && ready {
                all.push(Action::Timer(node));
            }
        }
        if self.model.clocks == Clocks::Common {
            let quiet = world.lines.iter().flatten().all(|(item, _)| self.items.is_data(*item))
                && (0..world.nodes.len())
                    .all(|node| self.facts(world, node).waiting.iter().all(|waiting| *waiting == (0, 0)));
            let timers = (0..world.nodes.len()).any(|node| self.facts(world, node).timers);
            if quiet && timers {
                all.push(Action::Tick);
            }
        }
        all
    }

    /// The world after an action, if it can take place, and whether it is none that brings more into the world or takes something away.
    fn after(&mut self, world: &World, action: Action) -> Option<(World, bool)> {
        let mut next = world.clone();
        let (node, input) = match action {
            Action::Lose(line) => {
                next.lines[line].remove(0);
                next.losses -= 1;
                return Some((next, false));
            }
            Action::Deliver(line) => {
                let (item, _) = next.lines[line].remove(0);
                let (node, port) = self.lines[line].to;
                (node, Input::Hear(port, item))
            }
            Action::Send(node, port) => (node, Input::Send(port)),
            Action::Timer(node) => (node, Input::Timer),
            Action::Tick => {
                for node in 0..next.nodes.len() {
                    self.apply(&mut next, node, Input::Tick)?;
                }
                return Some((next, true));
            }
        };
        let arrival = self.apply(&mut next, node, input)?;
        Some((next, !arrival))
    }

    /// A node takes a step, if it can. True if it brings a new packet into the world.
    fn apply(&mut self, world: &mut World, node: usize, input: Input) -> Option<bool> {
        let (state, output) = self.machines[node].step(self.model, &mut self.items, world.nodes[node], input)?;
        world.nodes[node] = state;
        let new = |item: u32| {
            self.items.is_data(item) && self.model.begins_at(&self.items.all[item as usize]) == self.machines[node].node
        };
        let arrival = output.iter().any(|&(_, item)| new(item));
        for (port, item) in output {
            let Some(&line) = self.out.get(&(node, port)) else { continue };
            if self.items.is_data(item) {
                // Frames that are under way to this node, or wait to be, are that much later.
                let back = self.lines[line].back;
                let Line { from: (peer, at), .. } = self.lines[back];
                let frames = world.lines[back].iter_mut().filter(|(item, _)| !self.items.is_data(*item));
                frames.for_each(|(_, age)| *age = (*age + 1).min(self.model.delays.frame));
                let waiting = self.machines[peer].states[world.nodes[peer] as usize].facts.waiting[at as usize];
                if waiting != (0, 0) {
                    world.late[back] = (world.late[back] + 1).min(self.model.delays.waits);
                }
            }
            world.lines[line].push((item, 0));
        }
        // No frame waits any more: none is late.
        for (number, line) in self.lines.iter().enumerate().filter(|(_, line)| line.from.0 == node) {
            let facts = &self.machines[node].states[state as usize].facts;
            if facts.waiting[line.from.1 as usize] == (0, 0) {
                world.late[number] = 0;
            }
        }
        Some(arrival)
    }

    /// Whether everything is over, and whether nothing is left to send.
    fn at_rest(&self, world: &World) -> (bool, bool) {
        let rests = |node: usize| {
            let facts = self.facts(world, node);
            facts.queued == 0
                && facts.rest
                && facts.asks.is_empty()
                && facts.obeys.is_empty()
                && facts.pending.is_empty()
        };
        let rest = world.lines.iter().all(Vec::is_empty) && (0..world.nodes.len()).all(rests);
        let sent: u32 = (0..world.nodes.len()).map(|node| self.facts(world, node).sent).sum();
        (rest, rest && sent as u64 == self.model.packets.iter().sum::<u64>())
    }

    /// What is wrong with a world by itself.
    fn wrong(&self, world: &World) -> Option<(u8, String)> {
        for (place, machine) in self.machines.iter().enumerate() {
            let facts = self.facts(world, place);
            if facts.dropped > 0 && self.model.lossless {
                return Some((1, format!("node {} has dropped a packet", machine.node)));
            }
            if let Some(wrong) = &facts.wrong {
                return Some((3, format!("node {}: {wrong}", machine.node)));
            }
            if let Some(many) = facts.waiting.iter().map(|waiting| waiting.0).find(|&many| many > self.model.frames) {
                return Some((4, format!("{many} frames wait at a port of node {}", machine.node)));
            }
        }
        for (number, line) in self.lines.iter().enumerate() {
            let ((asks, port), (obeys, at)) = (line.from, line.to);
            let (one, other) = (self.facts(world, asks), self.facts(world, obeys));
            let said = world.lines[number].iter().all(|(item, _)| self.items.is_data(*item))
                && one.waiting[port as usize] == (0, 0);
            let of = |list: &[(u16, u64)], port: u16| -> Vec<u64> {
                list.iter().filter(|entry| entry.0 == port).map(|entry| entry.1).collect()
            };
            let (asked, obeyed) = (of(&one.asks, port), of(&other.obeys, at));
            if said && !one.pending.contains(&port) && self.model.losses == 0 && asked != obeyed {
                let nodes = (self.machines[asks].node, self.machines[obeys].node);
                return Some((3, format!("node {} asks for {asked:?}, node {} does {obeyed:?}", nodes.0, nodes.1)));
            }
            let quiet = said
                && world.lines[number].is_empty()
                && world.lines[line.back].is_empty()
                && other.waiting[at as usize] == (0, 0);
            let known = |facts: &Facts, port: u16| -> Vec<Vec<u64>> {
                facts.counts.iter().filter(|entry| entry.0 == port).map(|entry| entry.1.clone()).collect()
            };
            if quiet && self.model.losses == 0 && known(one, port) != known(other, at) {
                return Some((3, format!("counts {:?} and {:?}", known(one, port), known(other, at))));
            }
        }
        None
    }

    fn explore(mut self) -> Explored {
        let begin = World {
            nodes: vec![0; self.machines.len()].into(),
            lines: vec![Vec::new(); self.lines.len()].into(),
            late: vec![0; self.lines.len()].into(),
            losses: self.model.losses,
        };
        let mut known = HashMap::from([(begin.clone(), 0_usize)]);
        let mut worlds = vec![begin];
        let mut came: Vec<Option<(usize, Action)>> = vec![None];
        // By world: from where it is reached, and whether without hosts and losses.
        let mut before: Vec<Vec<(usize, bool)>> = vec![Vec::new()];
        let mut open = VecDeque::from([0]);
        let mut wrong = None;
        let (mut frames, mut asked) = (0, 0);
        while let Some(from) = open.pop_front() {
            let world = worlds[from].clone();
            if wrong.is_none() {
                wrong = self.wrong(&world).map(|found| (from, found));
            }
            let all = || (0..world.nodes.len()).map(|node| self.facts(&world, node));
            frames =
                frames.max(all().flat_map(|facts| facts.waiting.iter().map(|waiting| waiting.0)).max().unwrap_or(0));
            asked = asked.max(all().map(|facts| facts.asks.len() + !facts.rest as usize).sum());
            if wrong.is_some() {
                break;
            }
            for action in self.actions(&world) {
                let Some((next, drains)) = self.after(&world, action) else { continue };
                let lost = next.losses != world.losses;
                let to = *known.entry(next.clone()).or_insert_with(|| {
                    worlds.push(next);
                    came.push(Some((from, action)));
                    before.push(Vec::new());
                    open.push_back(worlds.len() - 1);
                    worlds.len() - 1
                });
                if !lost && to != from {
                    before[to].push((from, drains));
                }
            }
            assert!(worlds.len() < MOST, "more than {MOST} worlds");
        }
        let found = wrong.or_else(|| {
            let rests: Vec<(bool, bool)> = worlds.iter().map(|world| self.at_rest(world)).collect();
            let drained = stuck(&before, rests.iter().map(|rest| rest.0), |drains| drains);
            let ended = stuck(&before, rests.iter().map(|rest| rest.1), |_| true);
            let drained = drained.map(|world| (world, (2, "what is here never leaves".to_string())));
            drained.or(ended.map(|world| (world, (2, "not everything can be sent".to_string()))))
        });
        let wrong = found.map(|(world, (promise, text))| (promise, text + &self.trace(&worlds, &came, world)));
        Explored {
            worlds: worlds.len(),
            states: self.machines.iter().map(|machine| machine.states.len()).sum(),
            compared: self.machines.iter().map(|machine| machine.compared).sum(),
            wrong,
            frames,
            asked,
        }
    }

    /// The shortest way to a world.
    fn trace(&self, worlds: &[World], came: &[Option<(usize, Action)>], world: usize) -> String {
        let mut steps = Vec::new();
        let mut back = world;
        while let Some((from, action)) = came[back] {
            let node = |place: usize| self.machines[place].node;
            steps.push(match action {
                Action::Deliver(line) | Action::Lose(line) => {
                    let Line { from: a, to: b, .. } = self.lines[line];
                    let (item, _) = worlds[from].lines[line][0];
                    let packet = &self.items.all[item as usize].packet;
                    let what = if self.items.is_data(item) {
                        format!("data {} of flow {}", packet.seq, packet.flow)
                    } else {
                        format!("{:?} {:x}", packet.kind, packet.bits())
                    };
                    let verb = if matches!(action, Action::Lose(_)) { "does not reach" } else { "reaches" };
                    format!("{what} from {} {verb} {}", node(a.0), node(b.0))
                }
                Action::Send(place, port) => format!("{} sends by port {port}", node(place)),
                Action::Timer(place) => format!("a timer of {} goes off", node(place)),
                Action::Tick => "time passes".to_string(),
            });
            back = from;
        }
        steps.reverse();
        let state = |place: usize| {
            let machine = &self.machines[place];
            let text = machine.known.iter().find(|(_, state)| **state == worlds[world].nodes[place]);
            format!("\n\nnode {}: {}", machine.node, text.map_or("", |(text, _)| text))
        };
        let states: String = (0..self.machines.len()).map(state).collect();
        format!("\n{}{states}", steps.join("\n"))
    }
}

/// The first world from which no steps that count lead to one that is good.
fn stuck(
    before: &[Vec<(usize, bool)>],
    good: impl Iterator<Item = bool>,
    counts: impl Fn(bool) -> bool,
) -> Option<usize> {
    let mut good: Vec<bool> = good.collect();
    let mut open: Vec<usize> = (0..good.len()).filter(|&world| good[world]).collect();
    while let Some(world) = open.pop() {
        for &(from, drains) in &before[world] {
            if counts(drains) && !good[from] {
                good[from] = true;
                open.push(from);
            }
        }
    }
    good.iter().position(|good| !good)
}

/// Hosts, a switch for them, a second switch with so many hosts that receive, and rates at which sending takes no time: the senders are
/// numbered from zero, then come the receivers, the first switch and the second. One flow from each sender, to the receivers in turn.
pub(super) fn chain(senders: u32, receivers: u32) -> Setup {
    use fabric::setup::FlowSpec;
    let mut graph = topology::Graph::default();
    let hosts = senders + receivers;
    (0..hosts).for_each(|host| _ = graph.add(topology::Kind::Host, 0, format!("h{host}")));
    let first = graph.add(topology::Kind::Switch, 1, "first");
    let second = graph.add(topology::Kind::Switch, 1, "second");
    let mut wire = |a, b| graph.connect(a, b, FAST, Time::from_us(1));
    (0..senders).for_each(|host| wire(NodeId(host), first));
    wire(first, second);
    (senders..hosts).for_each(|host| wire(NodeId(host), second));
    let flow = |src: u32| FlowSpec::plain(src as u16, src, senders + src % receivers, 1_000_000, Time::ZERO);
    Setup::plain(graph, (0..senders).map(flow).collect())
}

/// Fast enough for a packet to take a few picoseconds.
const FAST: engine::Rate = engine::Rate(1_000_000_000_000_000);
/// Bytes of a packet on the wire.
pub(super) const PACKET: u64 = 1062;

/// How far in the future an instant is, in whole `grain`s; what is past is as good as now.
pub(super) fn left(at: Time, now: Time, grain: Time) -> u64 {
    if at == Time::MAX { u64::MAX } else { (at.saturating_sub(now).0 + grain.0 / 2) / grain.0 }
}
