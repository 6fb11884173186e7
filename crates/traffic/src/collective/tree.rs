//! Two binary trees, each for half of the data: what is a leaf of one is inside of the other (Sanders, Speck and Träff 2009; NCCL since 2.4).

use super::Cut;
use crate::weave::{Party, Received, Weave, part};
use fabric::id::FlowId;

/// The parent of a rank in a tree of so many whose order from left to right is that of the ranks: every odd rank is a leaf. Rank 0 is the root.
fn parent(rank: usize, count: usize) -> Option<usize> {
    if rank == 0 {
        return None;
    }
    let bit = rank & rank.wrapping_neg();
    let above = (rank ^ bit) | (bit << 1);
    Some(if above < count { above } else { rank ^ bit })
}

/// A tree: by rank, its parent and how far below the root it is; and the ranks from the root down.
struct Tree {
    parent: Vec<Option<usize>>,
    depth: Vec<u32>,
    down: Vec<usize>,
}

impl Tree {
    /// The first or the second of two. The second is the first seen in a mirror, or with an odd number of ranks turned by one, so that its leaves are
    /// the first one's inner ranks.
    fn new(count: usize, second: bool) -> Tree {
        let turned = |rank: usize| match (second, count % 2) {
            (false, _) => rank,
            (true, 0) => count - 1 - rank,
            (true, _) => (rank + 1) % count,
        };
        let mut parents = vec![None; count];
        (0..count).for_each(|rank| parents[turned(rank)] = parent(rank, count).map(turned));
        let depth = |mut rank: usize| {
            let mut depth = 0;
            while let Some(above) = parents[rank] {
                (rank, depth) = (above, depth + 1);
            }
            depth
        };
        let depth: Vec<u32> = (0..count).map(depth).collect();
        let mut down: Vec<usize> = (0..count).collect();
        down.sort_by_key(|&rank| depth[rank]);
        Tree { parent: parents, depth, down }
    }

    fn height(&self) -> u32 {
        self.depth.iter().copied().max().unwrap_or(0)
    }
}

/// Up to the root, and down again.
pub(super) fn double_tree(weave: &mut Weave, party: &Party<'_>, bytes: u64, cut: &Cut) -> Received {
    let count = party.count();
    let trees = [Tree::new(count, false), Tree::new(count, true)];
    let height = trees.iter().map(Tree::height).max().unwrap_or(0);
    let mut received: Received = vec![Vec::new(); count];
    for (number, tree) in (0..).zip(&trees) {
        // By line: what each rank has sent up, and what it was sent from above.
        let mut rose: Vec<Vec<Option<FlowId>>> = Vec::new();
        let mut fell: Vec<Vec<Option<FlowId>>> = Vec::new();
        for line in 0..cut.lines() {
            let piece = cut.wire(cut.of(part(bytes, number, 2), line));
            // What came from below, by rank.
            let mut below: Vec<Vec<FlowId>> = vec![Vec::new(); count];
            let (mut up, mut down) = (vec![None; count], vec![None; count]);
            for &rank in tree.down.iter().rev() {
                let Some(above) = tree.parent[rank] else { continue };
                let slot = cut.slot(line).and_then(|earlier| rose[earlier][rank]);
                let firsts = below[rank].iter().copied().chain(slot).collect::<Vec<_>>();
                let sent = weave.send(party, (rank, above), piece, height - tree.depth[rank], firsts);
                below[above].push(sent);
                received[above].push(sent);
                up[rank] = Some(sent);
            }
            for &rank in &tree.down {
                let Some(above) = tree.parent[rank] else { continue };
                // The root has the sum when all below it have sent theirs.
                let firsts = match down[above] {
                    Some(first) => vec![first],
                    None => below[above].clone(),
                };
                let slot = cut.slot(line).and_then(|earlier| fell[earlier][rank]);
                let step = height + tree.depth[above];
                let sent = weave.send(party, (above, rank), piece, step, firsts.into_iter().chain(slot));
                received[rank].push(sent);
                down[rank] = Some(sent);
            }
            rose.push(up);
            fell.push(down);
        }
    }
    received
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_inside_of_one_tree_and_none_has_more_than_two_below() {
        for count in 2..70 {
            let mut inside = vec![0; count];
            for second in [false, true] {
                let tree = Tree::new(count, second);
                let mut below = vec![0; count];
                tree.parent.iter().flatten().for_each(|&above| below[above] += 1);
                assert_eq!(tree.parent.iter().filter(|parent| parent.is_none()).count(), 1);
                let root = tree.parent.iter().position(Option::is_none).unwrap();
                assert!((0..count).all(|rank| below[rank] <= if rank == root { 1 } else { 2 }), "{count}");
                (0..count).filter(|&rank| below[rank] > 0).for_each(|rank| inside[rank] += 1);
                assert!(tree.height() as usize <= count.ilog2() as usize + 1, "{count}: {}", tree.height());
            }
            // With an odd number the root of the first, which has one rank below, may be inside of the second, too.
            let both: Vec<usize> = (0..count).filter(|&rank| inside[rank] > 1).collect();
            assert!(count < 3 || both.is_empty() || count % 2 == 1 && both == [0], "{count}: {both:?}");
        }
    }
}
