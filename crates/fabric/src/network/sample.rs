//! Measuring while running: samples of the switches' memory, histograms of queue lengths, and whether anything moves.

use super::{Core, class};
use crate::topology::Kind;
use engine::{Event, Time};

impl Core {
    /// Samples the occupancy of every switch.
    pub(super) fn sample(&mut self) {
        let Some(every) = self.sample_every else { return };
        for (node, buffer) in self.buffers.iter().enumerate() {
            if self.setup.graph.nodes[node].kind == Kind::Switch {
                self.samples[node].push(buffer.used.min(u32::MAX as u64) as u32);
            }
        }
        // A very long run keeps every other sample and goes on at half the pace.
        let most = self.samples.iter().map(Vec::len).max().unwrap_or(0);
        let every = if most < MAX_SAMPLES { every } else { Time(every.0 * 2) };
        if most >= MAX_SAMPLES {
            self.sample_every = Some(every);
            for samples in &mut self.samples {
                let mut odd = true;
                samples.retain(|_| {
                    odd = !odd;
                    !odd
                });
            }
        }
        let moved = self.counts.injected.0 + self.counts.delivered.0 + self.counts.acks;
        if moved != self.progress.0 {
            self.progress = (moved, self.now);
        }
        let next = if self.active > 0 {
            // Frames that renew a pause keep a deadlock busy; it is told by its length.
            let idle = self.now - self.progress.1;
            if idle > Time::ZERO && self.at_rest() || idle > self.patience && self.later_changes() == 0 {
                self.stuck = true;
                return;
            }
            self.now + every
        } else if let Some(flow) = self.setup.flows.get(self.next_flow) {
            let at = flow.start.max(self.now + every);
            self.progress.1 = at;
            at
        } else {
            return;
        };
        self.events.push(Event::new(next, Event::LAST, class::SAMPLE, 0));
    }

    /// How many changes of links are still to come.
    fn later_changes(&self) -> usize {
        self.changes.iter().filter(|(time, _)| *time > self.now).count()
    }

    /// Adds the present queue lengths to the monitor's histograms.
    pub(super) fn monitor(&mut self) {
        let Some(m) = self.setup.measure.queue_monitor else { return };
        for (port, counts) in self.monitor.iter_mut().enumerate() {
            let p = &self.ports[port];
            if p.host {
                continue;
            }
            let first = p.first_queue as usize;
            let bytes: u64 = self.queues[first..first + self.per_port as usize].iter().map(|q| q.bytes).sum();
            let kilobytes = (bytes / 1000) as usize;
            if counts.len() <= kilobytes {
                counts.resize(kilobytes + 1, 0);
            }
            counts[kilobytes] += 1;
        }
        if self.now.0.is_multiple_of(m.keep.0) {
            self.kept.push((self.now, self.monitor.clone()));
        }
        if self.now < m.to {
            self.events.push(Event::new(self.now + m.every, 0, class::MONITOR, 0));
        }
    }
}

/// Samples kept of each switch.
const MAX_SAMPLES: usize = 1 << 17;
