//! The claim protocol of `claims.rs`, every order of its steps explored: a model of processes on machines of their own that want the same
//! run, on a file system as NFS is.
//!
//! What is promised, in words:
//!
//! 1. *Exclusion.* Two processes are never at the same run at once, unless one of them was silent for a lease: suspended, or cut
//!    off from the store. (Or unless a third was, between the last look at its claim and the removal of it.)
//! 2. *Progress.* Whatever processes die, are suspended or fail in whatever moment, those that are left get the run done without
//!    their help, as long as one of them does not fail itself.
//!
//! That a finished run stays is no matter of claims: results appear by one rename, and nothing removes them.
//!
//! A step is what one system call does. The file system may show a process that a file is not there when it is (a stale entry of a
//! directory), and may answer "exists" to the one who has just made the file (a lost reply). A process may be suspended and
//! resumed, die, or fail in its run between any two steps. Time is a sequence of ticks: in each, every process that is not
//! suspended beats; a claim that was seen unchanged for two of them is void. A process that makes or ends a claim does so within
//! a tick, unless it is suspended; one that has looked may take as long as it likes before it acts. The model has the rules that were used before, too,
//! and must find what was wrong with them.

use std::collections::{HashMap, VecDeque};

/// Numbers of claims; more do not occur with these budgets.
const SLOTS: usize = 5;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Store,
    Scan(u8),
    Read,
    Create(u8),
    Write,
    Recheck,
    Work,
    /// Ends its claim, on a run that is done or not: whether it is still its own, whether there is a next one, then what follows.
    Own(bool),
    Next(bool),
    Remove(u8),
    RemoveOwn,
    Mark,
    Ended,
    Failed,
    Dead,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct File {
    owner: u8,
    which: u8,
    written: bool,
    released: bool,
    /// Dated in the future by its owner's clock.
    future: bool,
    /// Ticks since it was written, by the file system's clock, up to two.
    age: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Process {
    at: At,
    suspended: bool,
    /// Its claim's number, and which of its claims it is.
    slot: u8,
    which: u8,
    late: bool,
    /// The newest file that was opened in a scan.
    opened: Option<(u8, File)>,
    /// What it has watched: slot, owner, which; whether that has changed since; and for how many ticks, up to two.
    sight: Option<(u8, u8, u8)>,
    changed: bool,
    ticks: u8,
}

/// How often what is unusual may happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Budget {
    suspend: u8,
    die: u8,
    fail: u8,
    stale: u8,
    lost: u8,
    future: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    files: [Option<File>; SLOTS],
    processes: Vec<Process>,
    done: bool,
    /// A process was suspended just before it removed its claim.
    silent: bool,
    budget: Budget,
}

/// Which protocol.
#[derive(Clone, Copy)]
struct Rules {
    /// Claims are watched. Otherwise their dates are compared with a clock.
    watch: bool,
    /// Numbers only go up while the run is not done. Otherwise whoever gives up removes all claims.
    numbers: bool,
}

const NOW: Rules = Rules { watch: true, numbers: true };

impl World {
    fn new(processes: usize, budget: Budget) -> World {
        let process = Process {
            at: At::Store,
            suspended: false,
            slot: 0,
            which: 0,
            late: false,
            opened: None,
            sight: None,
            changed: false,
            ticks: 0,
        };
        World { files: [None; SLOTS], processes: vec![process; processes], done: false, silent: false, budget }
    }

    /// One in which a process has left its claim behind.
    fn left(processes: usize) -> World {
        let mut world = World::new(processes, NOTHING);
        let file = File { owner: processes as u8, which: 1, written: true, released: false, future: false, age: 0 };
        world.files[0] = Some(file);
        world
    }

    /// A file is another than it was.
    fn touched(&mut self, slot: u8) {
        self.processes.iter_mut().filter(|p| p.sight.is_some_and(|s| s.0 == slot)).for_each(|p| p.changed = true);
        if let Some(file) = &mut self.files[slot as usize] {
            file.age = 0;
        }
    }

    fn owns(&self, who: usize) -> bool {
        let process = &self.processes[who];
        let file = self.files[process.slot as usize];
        file.is_some_and(|file| !file.written || (file.owner, file.which) == (who as u8, process.which))
    }

    /// Every world that one step leads to, with whether it is a step that nobody who is suspended has to take.
    fn next(&self, rules: Rules) -> Vec<(World, bool)> {
        let mut all = Vec::new();
        let mut tick = self.clone();
        let mut prompt = false;
        for who in 0..tick.processes.len() {
            let Process { at, slot, suspended, .. } = tick.processes[who];
            match at {
                At::Recheck | At::Work if !suspended => tick.touched(slot),
                At::Recheck | At::Work | At::Write | At::Own(_) | At::Next(_) if suspended => {
                    tick.processes[who].late = true
                }
                At::RemoveOwn if suspended => tick.silent = true,
                At::Write | At::Own(_) | At::Next(_) | At::RemoveOwn | At::Remove(_) | At::Mark => prompt |= !suspended,
                _ => {}
            }
        }
        tick.processes.iter_mut().for_each(|p| p.ticks = if p.sight.is_some() { (p.ticks + 1).min(2) } else { 0 });
        if !rules.watch {
            tick.files.iter_mut().flatten().for_each(|file| file.age = (file.age + 1).min(2));
        }
        if !prompt {
            all.push((tick, true));
        }
        for who in 0..self.processes.len() {
            let at = self.processes[who].at;
            if matches!(at, At::Ended | At::Failed | At::Dead) {
                continue;
            }
            let mut change = |free: bool, change: &dyn Fn(&mut World, &mut Process)| {
                let mut world = self.clone();
                let mut process = world.processes[who];
                change(&mut world, &mut process);
                // What the step did to the sight of others is in the world already.
                world.processes[who] = process;
                all.push((world, free));
            };
            if self.processes[who].suspended {
                change(false, &|_, p| p.suspended = false);
                continue;
            }
            if self.budget.suspend > 0 {
                change(true, &|w, p| (w.budget.suspend, p.suspended) = (w.budget.suspend - 1, true));
            }
            if self.budget.die > 0 {
                change(true, &|w, p| (w.budget.die, p.at) = (w.budget.die - 1, At::Dead));
            }
            let after = |done: bool| if done { At::Ended } else { At::Failed };
            match at {
                At::Store => change(true, &|w, p| p.at = if w.done { At::Ended } else { At::Scan(0) }),
                At::Scan(slot) => {
                    let file = self.files.get(slot as usize).copied().flatten();
                    change(true, &|_, p| match file {
                        Some(file) => (p.opened, p.at) = (Some((slot, file)), At::Scan(slot + 1)),
                        None => p.at = At::Read,
                    });
                    if file.is_some() && self.budget.stale > 0 {
                        change(true, &|w, p| (w.budget.stale, p.at) = (w.budget.stale - 1, At::Read));
                    }
                }
                At::Read => change(true, &|w, p| {
                    let Some((slot, opened)) = p.opened.take() else {
                        (p.sight, p.changed, p.ticks) = (None, false, 0);
                        p.at = At::Create(0);
                        return;
                    };
                    // A file that was removed meanwhile can still be read.
                    let same = |file: &File| (file.owner, file.which) == (opened.owner, opened.which);
                    let file = w.files[slot as usize].filter(same).unwrap_or(opened);
                    let sight = Some((slot, file.owner, file.which));
                    if p.sight != sight || p.changed {
                        (p.sight, p.changed, p.ticks) = (sight, false, 0);
                    }
                    let silent = if rules.watch { p.ticks >= 2 } else { !file.future && file.age >= 2 };
                    p.at = if file.released || silent { At::Create(slot + 1) } else { At::Store };
                }),
                At::Create(slot) => {
                    assert!((slot as usize) < SLOTS, "more numbers than there is room for");
                    let free = self.files[slot as usize].is_none();
                    let make = |w: &mut World, p: &mut Process, future: bool| {
                        p.which += 1;
                        let file =
                            File { owner: who as u8, which: p.which, written: false, released: false, future, age: 0 };
                        w.files[slot as usize] = Some(file);
                        w.touched(slot);
                    };
                    change(true, &|w, p| match free {
                        true => {
                            make(w, p, false);
                            (p.slot, p.late, p.sight, p.changed, p.ticks) = (slot, false, None, false, 0);
                            p.at = At::Write;
                        }
                        false => p.at = At::Scan(0),
                    });
                    if free && self.budget.future > 0 {
                        change(true, &|w, p| {
                            w.budget.future -= 1;
                            make(w, p, true);
                            (p.slot, p.late, p.sight, p.changed, p.ticks) = (slot, false, None, false, 0);
                            p.at = At::Write;
                        });
                    }
                    if free && self.budget.lost > 0 {
                        change(true, &|w, p| {
                            w.budget.lost -= 1;
                            make(w, p, false);
                            p.at = At::Scan(0);
                        });
                    }
                }
                At::Write => change(true, &|w, p| {
                    if let Some(file) = &mut w.files[p.slot as usize] {
                        file.written = true;
                    }
                    w.touched(p.slot);
                    p.at = At::Recheck;
                }),
                At::Recheck => change(true, &|w, p| p.at = if w.done { At::Own(true) } else { At::Work }),
                At::Work => {
                    change(true, &|w, p| (w.done, p.at) = (true, At::Own(true)));
                    if self.budget.fail > 0 {
                        change(true, &|w, p| (w.budget.fail, p.at) = (w.budget.fail - 1, At::Own(false)));
                    }
                }
                At::Own(done) => change(true, &|w, p| {
                    p.at = if w.owns(who) { At::Next(done) } else { after(done) };
                }),
                At::Next(done) => change(true, &|w, p| {
                    let next = w.files[p.slot as usize + 1].is_some();
                    p.at = match (done || !rules.numbers, next) {
                        (true, true) => after(done),
                        (true, false) => At::Remove(p.slot),
                        (false, next) if p.slot == 0 && !p.late && !next => At::RemoveOwn,
                        (false, _) => At::Mark,
                    };
                }),
                At::Remove(slot) => change(true, &|w, p| {
                    w.files[slot as usize] = None;
                    w.touched(slot);
                    p.at = if slot > 0 { At::Remove(slot - 1) } else { after(w.done) };
                }),
                At::RemoveOwn => change(true, &|w, p| {
                    w.files[p.slot as usize] = None;
                    w.touched(p.slot);
                    p.at = At::Failed;
                }),
                At::Mark => change(true, &|w, p| {
                    if let Some(file) = &mut w.files[p.slot as usize] {
                        file.released = true;
                    }
                    w.touched(p.slot);
                    p.at = At::Failed;
                }),
                At::Ended | At::Failed | At::Dead => {}
            }
        }
        all
    }

    /// Whether two that were never silent are at work.
    fn collides(&self) -> bool {
        !self.silent && self.processes.iter().filter(|p| p.at == At::Work && !p.late && !p.suspended).count() > 1
    }

    /// Whether somebody is left who can do the run.
    fn hopes(&self) -> bool {
        let left = |p: &&Process| !p.suspended && !matches!(p.at, At::Ended | At::Failed | At::Dead | At::Own(false));
        let ending = |p: &&Process| matches!(p.at, At::Next(false) | At::RemoveOwn | At::Mark | At::Remove(_));
        self.processes.iter().filter(left).any(|p| !ending(&p))
    }
}

/// What an exploration found.
#[derive(Debug)]
struct Explored {
    worlds: usize,
    collision: Option<World>,
    blocked: Option<World>,
}

/// Explores every world, and from which of them the run gets done by those who are left.
fn explore(begin: World, rules: Rules) -> Explored {
    let mut known = HashMap::from([(begin.clone(), 0_usize)]);
    let (mut worlds, mut before) = (vec![begin], vec![Vec::new()]);
    let mut open = VecDeque::from([0]);
    let mut collision = None;
    while let Some(from) = open.pop_front() {
        if collision.is_none() && worlds[from].collides() {
            collision = Some(worlds[from].clone());
        }
        for (world, free) in worlds[from].next(rules) {
            let to = *known.entry(world.clone()).or_insert_with(|| {
                worlds.push(world);
                before.push(Vec::new());
                open.push_back(worlds.len() - 1);
                worlds.len() - 1
            });
            // Nobody is suspended, dies or fails to be of help.
            let (one, other) = (&worlds[from].budget, &worlds[to].budget);
            if free && (one.suspend, one.die, one.fail) == (other.suspend, other.die, other.fail) {
                before[to].push(from);
            }
        }
    }
    let mut good: Vec<bool> = worlds.iter().map(|world| world.done).collect();
    let mut open: Vec<usize> = (0..worlds.len()).filter(|&world| good[world]).collect();
    while let Some(world) = open.pop() {
        for &from in &before[world] {
            if !good[from] {
                good[from] = true;
                open.push(from);
            }
        }
    }
    let blocked = (0..worlds.len()).find(|&world| !good[world] && worlds[world].hopes());
    Explored { worlds: worlds.len(), collision, blocked: blocked.map(|world| worlds[world].clone()) }
}

const NOTHING: Budget = Budget { suspend: 0, die: 0, fail: 0, stale: 0, lost: 0, future: 0 };

#[test]
fn no_two_processes_are_at_a_run_and_none_that_is_gone_stops_the_others() {
    let mut worlds = 0;
    for (begin, budget) in [
        (World::new(2, NOTHING), Budget { suspend: 1, die: 1, fail: 1, stale: 1, ..NOTHING }),
        (World::new(2, NOTHING), Budget { suspend: 1, lost: 1, fail: 1, ..NOTHING }),
        (World::new(2, NOTHING), Budget { lost: 1, stale: 2, die: 1, ..NOTHING }),
        (World::new(3, NOTHING), Budget { die: 1, ..NOTHING }),
        (World::new(3, NOTHING), Budget { fail: 1, ..NOTHING }),
        (World::left(2), Budget { suspend: 1, fail: 1, stale: 1, ..NOTHING }),
        (World::left(3), Budget { fail: 1, ..NOTHING }),
    ] {
        let processes = begin.processes.len();
        let explored = explore(World { budget, ..begin }, NOW);
        println!("{processes} processes, {budget:?}: {} worlds", explored.worlds);
        assert_eq!((&explored.collision, &explored.blocked), (&None, &None), "{processes} processes, {budget:?}");
        worlds += explored.worlds;
    }
    println!("{worlds} worlds in all");
    assert!(worlds > 100_000, "{worlds}: the model explores what it should");
}

#[test]
fn claims_whose_dates_are_compared_with_a_clock_block_for_ever_when_dated_in_the_future() {
    let rules = Rules { watch: false, ..NOW };
    let begin = World::new(2, Budget { die: 1, future: 1, ..NOTHING });
    assert!(explore(begin.clone(), rules).blocked.is_some());
    assert!(explore(begin, NOW).blocked.is_none());
}

#[test]
fn numbers_of_claims_that_are_used_again_let_two_processes_in() {
    let begin = World { budget: Budget { fail: 1, ..NOTHING }, ..World::left(3) };
    assert!(explore(begin, Rules { numbers: false, ..NOW }).collision.is_some());
}
