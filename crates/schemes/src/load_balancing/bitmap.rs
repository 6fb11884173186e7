//! A bitmap of paths at the sender, as in Ultra Ethernet's multipathing: all entropies in turn, but for those that were marked.
//!
//! A sender gives the packets of a flow so many entropies, one after the other, each once in a round and every round in another order. For each it
//! keeps a small penalty. An ACK with a mark raises that of its entropy by one, a loss by four, and a timeout to the most there is; when its turn
//! comes, an entropy with a penalty is skipped, which takes one off. So a path that is congested gets fewer packets until it is not, and no
//! path is given up. The penalties are those of the Ultra Ethernet group's simulator (uet-htsim, `bitmap`).
//!
//! Which packet was trimmed, its NACK says: that counts like a loss. Of other losses the transport says that they happened, not to which packet: they
//! count against the entropy of the last packet that the flow sent.

use engine::{Misfit, Stream, Time};
use fabric::axes::{Counter, Definition, LoadBalancingDef, PathSelector};
use fabric::id::FlowId;
use fabric::view::Site;
use std::collections::HashMap;

engine::parameters! {
    /// Parameters of the bitmap.
    pub struct Params {
        /// Entropies of a flow; a power of two.
        paths: u32 = 64, in 1..=32_768,
        /// The largest penalty.
        most: u32 = 15, in 1..=255,
        /// Penalty of a loss; a mark's is one, a timeout's the largest.
        loss: u32 = 4, in 0..=255,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "bitmap"
    }
    fn about(&self) -> &'static str {
        "A sender gives packets all entropies in turn and skips those whose packets were marked or lost. Packets overtake one another."
    }
    fn source(&self) -> &'static str {
        "Ultra Ethernet Consortium, Ultra Ethernet Specification 1.0, 2025; penalties as in its simulator, uet-htsim"
    }
    fn check(&self) -> Result<(), Misfit> {
        super::power_of_two("paths", self.paths)
    }
}

impl LoadBalancingDef for Params {
    fn host(&self, _: &Site<'_>) -> Option<Box<dyn PathSelector>> {
        Some(Box::new(Bitmap::new(self.clone())))
    }
    fn may_reorder(&self) -> bool {
        true
    }
}

/// What a sender keeps of a flow.
struct Flow {
    /// By the lower bits of an entropy.
    penalties: Vec<u8>,
    /// Where the round is, and its order: the place is combined with it by exclusive or.
    turn: u16,
    order: u16,
    /// The entropy of the last packet, without the upper bits.
    last: u16,
}

impl Flow {
    fn step(&mut self, dice: &mut Stream) {
        self.turn += 1;
        if self.turn as usize == self.penalties.len() {
            self.turn = 0;
            self.order = dice.below(self.penalties.len() as u64) as u16;
        }
    }
    fn current(&self) -> u16 {
        self.turn ^ self.order
    }
    fn penalise(&mut self, entropy: u16, penalty: u32, most: u32) {
        let own = &mut self.penalties[entropy as usize];
        *own = (*own as u32 + penalty).min(most) as u8;
    }
}

/// The mechanism.
pub(super) struct Bitmap {
    params: Params,
    flows: HashMap<FlowId, Flow>,
    skipped: u64,
}

impl Bitmap {
    pub(super) fn new(params: Params) -> Bitmap {
        Bitmap { params, flows: HashMap::new(), skipped: 0 }
    }
}

impl PathSelector for Bitmap {
    fn next(&mut self, flow: FlowId, own: u16, _: Time, dice: &mut Stream) -> u16 {
        let paths = self.params.paths;
        let mask = (paths - 1) as u16;
        let f = self.flows.entry(flow).or_insert_with(|| Flow {
            penalties: vec![0; paths as usize],
            turn: 0,
            order: dice.below(paths as u64) as u16,
            last: 0,
        });
        // At most once around: where all have penalties, the next one is as good as any.
        for _ in 0..paths {
            let place = f.current() as usize;
            if f.penalties[place] == 0 {
                break;
            }
            f.penalties[place] -= 1;
            self.skipped += 1;
            f.step(dice);
        }
        f.last = f.current();
        f.step(dice);
        // The upper bits are the flow's own, so that flows do not share their paths.
        (own & !mask) | f.last
    }
    fn acknowledged(&mut self, flow: FlowId, entropy: u16, marked: bool, _: Time) {
        let (mask, most) = ((self.params.paths - 1) as u16, self.params.most);
        if let Some(flow) = self.flows.get_mut(&flow).filter(|_| marked) {
            flow.penalise(entropy & mask, 1, most);
        }
    }
    fn trimmed(&mut self, flow: FlowId, entropy: u16, _: Time) {
        let Params { paths, most, loss } = self.params;
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.penalise(entropy & (paths - 1) as u16, loss, most);
        }
    }
    fn lost(&mut self, flow: FlowId, _: Time) {
        let Params { most, loss, .. } = self.params;
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.penalise(flow.last, loss, most);
        }
    }
    fn expired(&mut self, flow: FlowId, _: Time) {
        let most = self.params.most;
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.penalise(flow.last, most, most);
        }
    }
    fn ended(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }
    fn counters(&self) -> Vec<Counter> {
        vec![Counter::sum("bitmap_skipped", self.skipped)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const FLOW: FlowId = FlowId(3);
    const OWN: u16 = 0xabc0;

    fn bitmap(paths: u32) -> (Bitmap, Stream) {
        let params = Params { paths, ..Params::default() };
        (Bitmap { params, flows: HashMap::new(), skipped: 0 }, Stream::new(1, 1))
    }

    fn round(bitmap: &mut Bitmap, dice: &mut Stream, packets: usize) -> Vec<u16> {
        (0..packets).map(|_| bitmap.next(FLOW, OWN, Time::ZERO, dice)).collect()
    }

    #[test]
    fn every_entropy_has_its_turn_in_each_round_and_keeps_the_flows_upper_bits() {
        let (mut bitmap, mut dice) = bitmap(8);
        let all: BTreeSet<u16> = (OWN..OWN + 8).collect();
        let rounds: Vec<Vec<u16>> = (0..10).map(|_| round(&mut bitmap, &mut dice, 8)).collect();
        assert!(rounds.iter().all(|round| round.iter().copied().collect::<BTreeSet<_>>() == all));
        assert!(rounds.windows(2).any(|two| two[0] != two[1]), "every round in another order");
    }

    #[test]
    fn an_entropy_is_skipped_once_for_every_mark_and_no_more_often_than_the_largest_penalty() {
        let (mut bitmap, mut dice) = bitmap(8);
        round(&mut bitmap, &mut dice, 8);
        (0..3).for_each(|_| bitmap.acknowledged(FLOW, OWN + 5, true, Time::ZERO));
        bitmap.acknowledged(FLOW, OWN + 6, false, Time::ZERO);
        // Eight entropies are due once in eight turns, and a turn that is skipped is no packet.
        let sent = round(&mut bitmap, &mut dice, 3 * 7 + 8);
        let of = |sent: &[u16], entropy| sent.iter().filter(|sent| **sent == OWN + entropy).count();
        assert_eq!((of(&sent, 5), of(&sent, 6), bitmap.skipped), (1, 4, 3));
        (0..100).for_each(|_| bitmap.acknowledged(FLOW, OWN + 5, true, Time::ZERO));
        round(&mut bitmap, &mut dice, 7 * 40);
        assert_eq!(bitmap.skipped, 3 + 15);
    }

    #[test]
    fn where_all_have_penalties_packets_are_sent_all_the_same() {
        let (mut bitmap, mut dice) = bitmap(4);
        round(&mut bitmap, &mut dice, 4);
        (0..4).for_each(|entropy| (0..9).for_each(|_| bitmap.acknowledged(FLOW, OWN + entropy, true, Time::ZERO)));
        assert_eq!(round(&mut bitmap, &mut dice, 4).len(), 4);
        bitmap.ended(FLOW);
        assert!(bitmap.flows.is_empty());
    }

    #[test]
    fn entropies_are_a_power_of_two() {
        let misfit = Params { paths: 48, ..Params::default() }.check().unwrap_err();
        assert!(misfit.help.contains("32 or 64"), "{}", misfit.help);
    }
}
