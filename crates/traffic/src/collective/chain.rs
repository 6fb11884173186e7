//! From rank to rank along a line, and back.

use super::Cut;
use crate::weave::{Party, Received, Weave};
use fabric::id::FlowId;

/// Every rank but the last sends to the next what it has received: `bytes` in all. With `back`, the last begins to send as much the other way with
/// the first chunk that reaches it.
pub(super) fn chain(weave: &mut Weave, party: &Party<'_>, bytes: u64, cut: &Cut, back: bool) -> Received {
    let count = party.count();
    let mut received: Received = vec![Vec::new(); count];
    let forth = (1..count).map(|rank| (rank - 1, rank));
    let hops: Vec<(usize, usize)> = match back {
        false => forth.collect(),
        true => forth.clone().chain(forth.rev().map(|(from, to)| (to, from))).collect(),
    };
    let mut before: Vec<Option<FlowId>> = vec![None; cut.lines()];
    for (step, &(from, to)) in (0..).zip(&hops) {
        let mut now: Vec<Option<FlowId>> = Vec::new();
        for (line, &first) in before.iter().enumerate() {
            let slot = cut.slot(line).and_then(|earlier| now[earlier]);
            let piece = cut.wire(cut.of(bytes, line));
            let sent = weave.send(party, (from, to), piece, step, first.into_iter().chain(slot));
            received[to].push(sent);
            now.push(Some(sent));
        }
        before = now;
    }
    received
}
