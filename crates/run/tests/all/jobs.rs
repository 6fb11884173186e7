//! What jobs take, computed by hand, and that every graph of tasks and messages ends.

use engine::Time;
use proptest::prelude::*;
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use std::path::Path;

fn resolved(text: &str) -> Resolved {
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]);
    scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

fn run(text: &str) -> run::Finished {
    run::run(resolved(text), &mut |_, _| true)
}

fn problem(text: &str) -> String {
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]);
    scenario.and_then(resolve).map(drop).unwrap_err().to_string()
}

const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 8\n[nic]\nqueues = \"destination\"\nack_size = \"1B\"\n[scheme]\npreset = \"pfc\"\n";
const SMALL: &str = "layers = 2\nhidden = 64\nsequence = 50\nlayer_time = \"30us\"\n";

fn only(finished: &run::Finished) -> &run::job::Trained {
    let [job] = finished.summary.jobs.as_slice() else { panic!("one job") };
    job
}

#[test]
fn replicas_compute_and_then_sum_up_their_gradients() {
    // Two replicas, one microbatch each: 2 layers of 30 us forward and of 60 us backward. Without overlap, then a ring of two with all the gradients:
    // 2 × 12 × 64² × 2 bytes, half of it in each of two steps.
    let text = format!("{STAR}[[job]]\nranks = 2\niterations = 3\noverlap = false\nstart = \"7us\"\n{SMALL}");
    let finished = run(&text);
    let job = only(&finished);
    let alone = finished.outcome.flows[0].spec.ideal.0 as f64;
    assert_eq!(finished.outcome.flows[0].spec.size, 12 * 64 * 64 * 2);
    assert_eq!((job.ranks, job.data, job.finished, job.iterations), (2, 2, 3, 3));
    assert_eq!(job.compute_ps, Some(180e6));
    assert_eq!(job.alone_ps, Some(180e6 + 2.0 * alone));
    // ACKs of a byte each take less than a packet together.
    let over = job.iteration_ps.mean.unwrap() - (180e6 + 2.0 * alone);
    assert!((0.0..85_000.0).contains(&over), "{job:?}");
    assert_eq!(job.bound, Some("compute"));
    let [data] = job.collectives.as_slice() else { panic!("{job:?}") };
    assert_eq!((data.name, data.kind, data.count, data.ranks), ("data", "ring-all-reduce", 3, 2));
    assert_eq!(finished.outcome.flows[0].start, Time::from_us(187));
}

#[test]
fn what_each_parallelism_adds_is_what_an_iteration_is_shorter_without_it() {
    // Two stages of one layer, one microbatch: activations forth and gradients back are one message each. Tensor ranks sum up four times in each
    // stage, forward and backward, in a ring of two: two steps each. Replicas do once, at the end, in two steps; stage 1 is done before stage 0.
    let text = format!(
        "{STAR}[[job]]\nranks = 8\ntensor = 2\npipeline = 2\nbatch = 2\niterations = 2\noverlap = false\nlayers = 2\nhidden = 64\nsequence = 50\nlayer_time = \"30us\"\n"
    );
    let finished = run(&text);
    let job = only(&finished);
    // Tensor, pipeline and data are groups 0, 1 and 2.
    let ideal = |group: u64| {
        finished.outcome.flows.iter().find(|flow| flow.spec.tag as u64 == group).unwrap().spec.ideal.0 as f64
    };
    let adds: Vec<(&str, f64)> = job.collectives.iter().map(|one| (one.name, one.adds_ps.unwrap())).collect();
    let expected = [("tensor", 16.0 * ideal(0)), ("pipeline", 2.0 * ideal(1)), ("data", 2.0 * ideal(2))];
    assert_eq!(adds, expected);
    assert_eq!(job.alone_ps.unwrap() - job.compute_ps.unwrap(), expected.iter().map(|part| part.1).sum::<f64>());
    // Gradients that are sent while others are computed add what is left of them.
    let hidden = run(&format!("{STAR}[[job]]\nranks = 2\nbuckets = 2\n{SMALL}"));
    let [data] = only(&hidden).collectives.as_slice() else { panic!("one") };
    assert_eq!(data.adds_ps, Some(2.0 * hidden.outcome.flows[0].spec.ideal.0 as f64));
}

#[test]
fn what_overlaps_with_compute_is_not_exposed() {
    // Gradients of the later layer are sent while those of the earlier one are computed, 60 us: half of the communication is hidden.
    let text = |overlap: bool| format!("{STAR}[[job]]\nranks = 2\noverlap = {overlap}\nbuckets = 2\n{SMALL}");
    let (hidden, shown) = (run(&text(true)), run(&text(false)));
    let exposed = |finished: &run::Finished| only(finished).exposed_ps.unwrap();
    let step = hidden.outcome.flows[0].spec.ideal.0 as f64;
    assert!((exposed(&hidden) - 2.0 * step).abs() < 85_000.0, "{:?}", only(&hidden));
    assert!(exposed(&shown) > exposed(&hidden));
}

#[test]
fn a_pipeline_has_its_bubble() {
    // m microbatches of t forward and 2 t backward in p stages take (m + p − 1) · 3 t (Narayanan et al. 2021, §2.2).
    let text = format!(
        "{STAR}[[job]]\nranks = 4\npipeline = 4\nbatch = 6\nlayers = 4\nhidden = 8\nsequence = 1\nlayer_time = \"100us\"\n"
    );
    let finished = run(&text);
    let job = only(&finished);
    assert_eq!(job.compute_ps, Some((6.0 + 4.0 - 1.0) * 300e6));
    // Tiny messages: their latency alone, of those on the way.
    assert!(job.exposed_ps.unwrap() < 100e6, "{job:?}");
    assert_eq!((job.collectives[0].name, job.collectives[0].count), ("pipeline", 3 * 2 * 6));
}

#[test]
fn a_straggler_slows_all_and_jitter_some() {
    let with = |keys: &str| {
        let finished = run(&format!("{STAR}[[job]]\nranks = 8\niterations = 2\n{SMALL}{keys}"));
        only(&finished).compute_ps.unwrap()
    };
    assert_eq!(with("stragglers = 1\nslowdown = 2.0\n"), 2.0 * with(""));
    let jitter = with("jitter = 0.1\n");
    assert!(jitter > with("") && jitter < 1.1 * with(""), "{jitter}");
}

#[test]
fn jobs_side_by_side_have_hosts_of_their_own_and_slow_each_other_where_they_meet() {
    let clos =
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 4\nspines = 1\n[scheme]\npreset = \"pfc\"\n";
    let one = "[[job]]\nranks = 4\nplacement = \"rail\"\nhidden = 256\nlayers = 2\nsequence = 16\nlayer_time = \"10us\"\noverlap = false\n";
    let alone = run(&format!("{clos}{one}"));
    let both = run(&format!("{clos}{one}{one}"));
    let hosts: Vec<u32> = both.outcome.flows.iter().map(|flow| flow.spec.src.0).collect();
    // Round the racks: the first job has the first two of each.
    let of = |range: std::ops::Range<usize>| {
        let mut hosts: Vec<u32> = hosts[range].to_vec();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    };
    let half = hosts.len() / 2;
    assert_eq!((of(0..half), of(half..2 * half)), (vec![0, 1, 4, 5], vec![2, 3, 6, 7]));
    let [first, second] = both.summary.jobs.as_slice() else { panic!("two jobs") };
    assert_eq!((first.name.as_str(), second.name.as_str()), ("job", "job2"));
    let (before, now) = (only(&alone).iteration_ps.mean.unwrap(), first.iteration_ps.mean.unwrap());
    assert!(now > 1.2 * before, "{before} and {now}");
    assert_eq!(first.alone_ps, only(&alone).alone_ps);
}

#[test]
fn a_table_has_every_iteration() {
    let finished = run(&format!("{STAR}[[job]]\nranks = 4\niterations = 3\n{SMALL}"));
    let tables = finished.tables();
    let (_, columns) = tables.iter().find(|(name, _)| *name == "jobs.parquet").expect("a table of jobs");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.parquet"), results::tables::encode(columns)).unwrap();
    let table = results::tables::read(&folder.path().join("a.parquet")).unwrap();
    assert_eq!(table.counts("iteration").unwrap(), [0, 1, 2]);
    let sum: u64 = table.counts("iteration_ps").unwrap().iter().sum();
    assert_eq!(sum, *table.counts("end_ps").unwrap().last().unwrap());
}

#[test]
fn what_does_not_fit_is_refused_with_its_remedy() {
    for (keys, words) in [
        ("ranks = 6\ntensor = 4", "6 ranks are no whole number of replicas of 4 × 1"),
        ("ranks = 9", "9 ranks on 8 hosts"),
        ("pipeline = 4\nlayers = 2", "2 layers are fewer than 4 stages"),
        ("batch = 7", "a batch of 7 is no whole number of microbatches of 1 for each of 8 replicas"),
        ("experts = 4\nexpert = 3", "8 replicas cannot be cut into groups of 3"),
        ("experts = 2\ntop_k = 3", "each token goes to 3 of 2 experts"),
        ("placement = \"listed\"", "there is no list of hosts"),
        ("hosts = [\"h0\", \"h1\", \"h0\"]", "a host is there twice"),
        ("skew = 1.0", "a dense model sends nothing to experts"),
        ("top_k = 3", "a dense model has no experts"),
        ("slowdown = 2.0", "there are no stragglers"),
        ("domain = 4", "ring-all-reduce has no domains"),
        ("layers = 4\nhidden = 65536\nexperts = 64", "the gradients of a stage's experts would have"),
        ("tflops = 1.0\nlayer_time = \"1us\"", "say too much"),
        ("all_reduce = \"broadcast\"", "broadcast is no all-reduce"),
        ("all_reduce = \"hierarchical-all-reduce\"", "a hierarchical all-reduce of no domains"),
        ("all_reduce = \"hierarchical-all-reduce\"\ndomain = 3", "8 replicas are no whole number of domains of 3"),
        // What is computed takes memory, too.
        ("batch = 8000000000000", "ranks would compute 768000000000000 parts of layers"),
        ("layers = 1000000\nhidden = 1\nbatch = 160\niterations = 1", "ranks would compute 640000000 parts of layers"),
        ("layers = 1\nhidden = 1\niterations = 2000000", "ranks would compute 64000000 parts of layers"),
        ("layers = 1\nhidden = 8\nchannels = 4096\nchunks = 2048", "more than 50000000 flows"),
        // A name that is refused is all that is wrong with it.
        ("name = \"a,b\"", "\"a,b\" is no name for a group"),
    ] {
        let said = problem(&format!("{STAR}[[job]]\n{keys}\n"));
        assert!(said.contains(words), "{keys}: {said}");
    }
    let said = problem(&format!("{STAR}[[job]]\nranks = 6\n[[job]]\nranks = 4\n"));
    assert!(said.contains("4 ranks on 2 hosts") && said.contains("hosts of a job before are not free"), "{said}");
    let said = problem(&format!("{STAR}[[job]]\nname = \"a\"\nranks = 2\n[[job]]\nname = \"a\"\nranks = 4\n"));
    assert!(said.contains("there is a job called \"a\" already"), "{said}");
}

#[test]
fn buckets_that_change_nothing_are_noted() {
    let noted = |keys: &str| {
        let notes = run(&format!("{STAR}[[job]]\nranks = 2\n{SMALL}{keys}")).summary.notes;
        notes.iter().any(|note| note.contains("buckets has no effect"))
    };
    assert!(noted("overlap = false\nbuckets = 2\n"));
    assert!(!noted("overlap = false\n") && !noted("buckets = 2\n"));
}

#[test]
fn a_cycle_is_named() {
    let flow = |id: &str, src: &str, dst: &str, after: &str| {
        format!("[[flow]]\nid = \"{id}\"\nsrc = \"{src}\"\ndst = \"{dst}\"\nsize = \"1KB\"\nafter = \"{after}\"\n")
    };
    let text =
        format!("{STAR}{}{}{}", flow("a", "h0", "h1", "c"), flow("b", "h1", "h2", "a"), flow("c", "h2", "h0", "b"));
    let said = problem(&text);
    assert!(
        said.contains("h0 to h1, which waits for h2 to h0, which waits for h1 to h2, which waits for h0 to h1"),
        "{said}"
    );
}

#[test]
fn a_link_that_fails_slows_a_job_and_does_not_stop_it() {
    let clos =
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 4\nspines = 2\n[scheme]\npreset = \"pfc\"\n";
    let job = "[[job]]\ntensor = 2\niterations = 2\nlayers = 2\nhidden = 256\nsequence = 64\nlayer_time = \"5us\"\nplacement = \"rail\"\n";
    let whole = run(&format!("{clos}{job}"));
    let broken = run(&format!("{clos}[[link]]\nbetween = [\"leaf0\", \"spine0\"]\ndown = [[\"20us\"]]\n{job}"));
    assert_eq!((only(&broken).finished, broken.summary.ending), (2, "complete"));
    assert!(only(&broken).iteration_ps.mean > only(&whole).iteration_ps.mean);
}

/// A job in numbers of which some do not fit together.
fn any_job() -> impl Strategy<Value = String> {
    let sizes = (0..3u32, 0..2u32, 0..2u32, 1..4u32, 1..3u32);
    let more = (any::<bool>(), 1..4u32, 0..4usize, 1..3u32, 1..4u32, 0..3u32);
    (sizes, more).prop_map(|((tensor, pipeline, expert, iterations, microbatches), (overlap, buckets, reduce, channels, chunks, slow))| {
        let (tensor, pipeline, expert) = (1 << tensor, 1 << pipeline, 1 << expert);
        let replicas = 8 / (tensor * pipeline);
        let reduce = ["ring-all-reduce", "tree-all-reduce", "halving-doubling-all-reduce"][reduce % 3];
        let expert = if replicas % expert == 0 && expert > 1 { format!("experts = {expert}\nexpert = {expert}\nskew = 0.7\n") } else { String::new() };
        format!(
            "[[job]]\ntensor = {tensor}\npipeline = {pipeline}\n{expert}iterations = {iterations}\nbatch = {}\nlayers = 2\nhidden = 32\nsequence = 24\n\
             layer_time = \"3us\"\noverlap = {overlap}\nbuckets = {buckets}\nall_reduce = \"{reduce}\"\nchannels = {channels}\nchunks = {chunks}\n\
             jitter = 0.2\nstragglers = {slow}\nplacement = \"random\"\n",
            replicas * microbatches * pipeline
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::with_source_file(file!()) })]

    #[test]
    fn any_job_ends_and_is_the_same_on_any_number_of_threads(job in any_job(), scheme in 0..3usize) {
        let scheme = ["pfc", "bfc", "dcqcn"][scheme];
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nhosts_per_leaf = 2\nspines = 2\n[scheme]\npreset = \"{scheme}\"\n{job}"
        );
        let resolved = resolved(&text);
        let one = resolved.simulate_on(1, &mut |_, _| true);
        prop_assert!(one.flows.iter().all(|flow| flow.received != Time::MAX), "{text}");
        for threads in [2, 3, 4] {
            let other = resolved.simulate_on(threads, &mut |_, _| true);
            let seen = |outcome: &fabric::Outcome| outcome.flows.iter().map(|flow| (flow.start, flow.received, flow.acknowledged)).collect::<Vec<_>>();
            prop_assert_eq!(seen(&one), seen(&other), "{} threads: {}", threads, text);
            prop_assert_eq!(&one.sent, &other.sent);
        }
    }
}

/// Flows on eight hosts: their ends, sizes, and which earlier ones each waits for.
type Waits = Vec<((u32, u32), u64, Vec<usize>)>;

/// A graph of any shape without a cycle: of the earlier flows that have an end where a flow starts, it waits for some.
fn any_graph() -> impl Strategy<Value = Waits> {
    let flow = ((0..8u32, 1..8u32), 1..20_000u64, any::<u32>());
    prop::collection::vec(flow, 2..30).prop_map(|drawn| {
        let mut graph: Waits = Vec::new();
        for ((src, away), size, which) in drawn {
            let ends = |(from, to): (u32, u32)| from == src || to == src;
            let earlier = (0..graph.len()).filter(|&i| ends(graph[i].0));
            let after = earlier.enumerate().filter(|(turn, _)| which >> (turn % 32) & 1 == 1).map(|(_, i)| i).collect();
            graph.push(((src, (src + away) % 8), size, after));
        }
        graph
    })
}

/// The same as a scenario on two racks, with `more` waits besides.
fn text_of(graph: &Waits, down: &str, more: Option<(usize, usize)>) -> String {
    let mut text = format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 4\nspines = 2\n[scheme]\npreset = \"pfc\"\n{down}"
    );
    for (i, ((src, dst), size, after)) in graph.iter().enumerate() {
        let more = more.filter(|(flow, _)| *flow == i).map(|(_, first)| first);
        let after: Vec<String> = after.iter().copied().chain(more).map(|first| format!("\"f{first}\"")).collect();
        text += &format!("[[flow]]\nid = \"f{i}\"\nsrc = \"h{src}\"\ndst = \"h{dst}\"\nsize = \"{size}B\"\n");
        if !after.is_empty() {
            text += &format!("after = [{}]\n", after.join(", "));
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::with_source_file(file!()) })]

    #[test]
    fn graphs_of_any_shape_end_in_order_on_any_threads_with_a_failed_link_too_and_a_cycle_is_named(
        graph in any_graph(),
        at in 0..40u32,
    ) {
        let down = format!("[[link]]\nbetween = [\"leaf0\", \"spine0\"]\ndown = [[\"{at}us\"]]\n");
        for down in ["", down.as_str()] {
            let text = text_of(&graph, down, None);
            let resolved = resolved(&text);
            let one = resolved.simulate_on(1, &mut |_, _| true);
            prop_assert!(one.flows.iter().all(|flow| flow.acknowledged != Time::MAX), "{text}");
            // Flows of one start are in the order written.
            for (flow, (ends, _, after)) in one.flows.iter().zip(&graph) {
                for &first in after {
                    let before = &one.flows[first];
                    let ended = if graph[first].0.1 == ends.0 { before.received } else { before.acknowledged };
                    prop_assert!(flow.start >= ended, "{text}");
                }
            }
            for threads in [2, 3] {
                let other = resolved.simulate_on(threads, &mut |_, _| true);
                let seen = |outcome: &fabric::Outcome| outcome.flows.iter().map(|flow| (flow.start, flow.received, flow.acknowledged)).collect::<Vec<_>>();
                prop_assert_eq!(seen(&one), seen(&other), "{} threads: {}", threads, text);
            }
        }
        // A flow that waits for one that waits for it.
        let back = graph.iter().enumerate().flat_map(|(i, (_, _, after))| after.iter().map(move |&first| (first, i)));
        let mut fits = back.filter(|&(first, i)| [graph[i].0.0, graph[i].0.1].contains(&graph[first].0.0));
        if let Some(more) = fits.next() {
            let said = problem(&text_of(&graph, "", Some(more)));
            let host = graph[more.0].0.0;
            prop_assert!(said.contains("which waits for") && said.contains(&format!("h{host} to ")), "{said}");
        }
    }
}

/// When the flows of a scenario start and are received, by their ends and sizes.
fn seen(finished: &run::Finished) -> Vec<(u32, u32, u64, Time, Time)> {
    let flows = finished.outcome.flows.iter();
    let mut seen: Vec<_> =
        flows.map(|flow| (flow.spec.src.0, flow.spec.dst.0, flow.spec.size, flow.start, flow.received)).collect();
    seen.sort_unstable();
    seen
}

#[test]
fn a_job_is_the_same_from_its_schedule_and_from_its_trace() {
    let fabric =
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 4\nspines = 1\n[scheme]\npreset = \"pfc\"\n";
    let job = "[[job]]\nstart = \"2us\"\ntensor = 2\npipeline = 2\nlayers = 2\nhidden = 64\nsequence = 30\nlayer_time = \"9us\"\nchunks = 2\nslots = 1\nlatency = \"1us\"\n";
    let job = format!(
        "{fabric}{job}[[collective]]\nkind = \"tree-all-reduce\"\nsize = \"100KB\"\nrounds = 2\ngap = \"3us\"\n"
    );
    let scenario = Scenario::parse("a.toml", &job, Path::new("/nowhere"), &[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.goal"), scenario.goal().unwrap()).unwrap();
    std::fs::write(folder.path().join("a.csv"), scenario.trace().unwrap()).unwrap();
    let direct = run(&job);
    assert!(direct.outcome.flows.iter().all(|flow| flow.received != Time::MAX));
    for name in ["a.goal", "a.csv"] {
        let text = format!("{fabric}[traffic]\ntrace = \"{name}\"\n");
        let scenario = Scenario::parse("b.toml", &text, folder.path(), &[]);
        let resolved = scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}"));
        let again = run::run(resolved, &mut |_, _| true);
        assert_eq!(seen(&direct), seen(&again), "{name}");
    }
}
