//! The event queue under the load of a fabric: a fixed number of events pending, each replaced by one a packet time or a
//! link delay later.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use engine::{Event, EventQueue, Stream, Time};

fn hold(c: &mut Criterion) {
    let mut group = c.benchmark_group("event queue, pop and push");
    for pending in [100u32, 1_000, 10_000] {
        let mut queue = EventQueue::new(pending as f64 / 600.0, Time::from_ns(1_100));
        let mut dice = Stream::new(1, 1);
        let mut delay = move || if dice.chance(0.5) { Time(1_083_840) } else { Time(4_800 + dice.below(80_000)) };
        for source in 0..pending {
            let at = delay();
            queue.push(Event::new(at, Event::rank_of(at, Time::ZERO), 0, source));
        }
        group.bench_function(BenchmarkId::from_parameter(pending), |b| {
            b.iter(|| {
                let event = queue.pop().expect("the queue is never empty");
                let at = event.time() + delay();
                queue.push(Event::new(at, Event::rank_of(at, event.time()), 0, event.source()));
            })
        });
    }
    group.finish();
}

criterion_group!(benches, hold);
criterion_main!(benches);
