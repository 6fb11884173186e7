//! Every rank sends to every other at once.

use super::Cut;
use crate::weave::{Party, Received, Weave};

/// By receiver, its weight; the weights of all but the sender share what the sender has.
pub(super) fn all_to_all(weave: &mut Weave, party: &Party<'_>, bytes: u64, cut: &Cut, weights: &[u64]) -> Received {
    let count = party.count();
    let all: u128 = weights.iter().map(|&weight| weight as u128).sum();
    let mut received: Received = vec![Vec::new(); count];
    for rank in 0..count {
        for distance in 1..count {
            let to = (rank + distance) % count;
            let piece = match weights {
                [] => bytes / (count as u64 - 1),
                _ => (bytes as u128 * weights[to] as u128 / (all - weights[rank] as u128).max(1)) as u64,
            };
            for line in 0..cut.lines() {
                let sent = weave.send(party, (rank, to), cut.wire(cut.of(piece, line)), 0, None);
                received[to].push(sent);
            }
        }
    }
    received
}
