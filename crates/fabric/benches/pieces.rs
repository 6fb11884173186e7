//! The pieces a packet meets at a switch.

use criterion::{Criterion, criterion_group, criterion_main};
use fabric::buffer::{ALPHA_ONE, Account, Buffer, Share};
use fabric::port::QueueMasks;
use fabric::routing::Tuple;
use std::hint::black_box;

fn pieces(c: &mut Criterion) {
    let tuple = Tuple { source: 0x0b00_0001, destination: 0x0b00_1401, source_port: 10_000, destination_port: 100 };
    c.bench_function("hash of a flow", |b| b.iter(|| black_box(tuple).hash(black_box(64))));

    let mut buffer = Buffer { pool: Some(11_000_000), reserve: 4096, resume_gap: 3072, ..Buffer::default() };
    let mut account = Account::new(Share { alpha: ALPHA_ONE / 8, headroom: 37_500 });
    c.bench_function("a packet in and out of a buffer", |b| {
        b.iter(|| {
            let admitted = buffer.admit(black_box(&mut account), 1048);
            buffer.release(&mut account, 1048);
            admitted
        })
    });

    for queues in [1, 32, 1000] {
        let mut masks = QueueMasks::new(1, queues);
        (0..queues as u32).step_by(3).for_each(|q| masks.set_filled(0, q, true));
        let mut last = 0;
        c.bench_function(&format!("the next of {queues} queues"), |b| {
            b.iter(|| {
                last = masks.next_ready(0, last).unwrap_or(0);
                last
            })
        });
    }
}

criterion_group!(benches, pieces);
criterion_main!(benches);
