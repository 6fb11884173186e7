//! Pairs exchange halves, then quarters and so on, and back again (Rabenseifner).

use super::Cut;
use crate::weave::{Party, Received, Weave};

/// For 2, 4, 8, … ranks.
pub(super) fn halving_doubling(weave: &mut Weave, party: &Party<'_>, bytes: u64, cut: &Cut) -> Received {
    let count = party.count();
    let halvings = count.ilog2();
    let mut received: Received = vec![Vec::new(); count];
    for step in 0..2 * halvings {
        // The distance is halved while pieces are, and doubled with them.
        let distance = if step < halvings { count >> (step + 1) } else { 1 << (step - halvings) };
        let piece = (bytes as u128 * distance as u128 / count as u128) as u64;
        let mut now = Vec::with_capacity(count * cut.lines());
        for line in 0..cut.lines() {
            for rank in 0..count {
                let first = (step > 0).then(|| received[rank][received[rank].len() - cut.lines() + line]);
                let slot = cut.slot(line).map(|earlier| now[earlier * count + rank]);
                let bytes = cut.wire(cut.of(piece, line));
                now.push(weave.send(party, (rank, rank ^ distance), bytes, step, first.into_iter().chain(slot)));
            }
        }
        for (place, sent) in now.into_iter().enumerate() {
            received[(place % count) ^ distance].push(sent);
        }
    }
    received
}
