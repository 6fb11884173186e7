//! Pieces go round a ring: a rank sends on what it received in the step before.

use super::Cut;
use crate::weave::{Party, Received, Weave, part};

/// `times` the way round but one step: once to reduce and scatter or to gather, twice for both.
pub(super) fn ring(weave: &mut Weave, party: &Party<'_>, bytes: u64, cut: &Cut, times: u32) -> Received {
    let count = party.count();
    let steps = times * (count as u32 - 1);
    let mut received: Received = vec![Vec::new(); count];
    for step in 0..steps {
        let mut now = Vec::with_capacity(count * cut.lines());
        for line in 0..cut.lines() {
            for rank in 0..count {
                let number = (rank as u64 + 2 * count as u64 - step as u64) % count as u64;
                let piece = cut.of(part(bytes, number, count as u64), line);
                let first = step.checked_sub(1).map(|_| {
                    let left = (rank + count - 1) % count;
                    let before = received[rank].len() - cut.lines() + line;
                    debug_assert_eq!(weave.flows[received[rank][before].index()].src, party.hosts[left]);
                    received[rank][before]
                });
                // What was sent on this line of the same edge so many chunks ago must have been taken.
                let slot = cut.slot(line).map(|earlier| now[earlier * count + rank]);
                let to = (rank + 1) % count;
                let sent = weave.send(party, (rank, to), cut.wire(piece), step, first.into_iter().chain(slot));
                now.push(sent);
            }
        }
        for (place, sent) in now.into_iter().enumerate() {
            received[(place % count + 1) % count].push(sent);
        }
    }
    received
}
