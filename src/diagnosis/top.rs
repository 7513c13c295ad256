//! Counting by key in bounded memory.

use std::{cmp::Reverse, collections::BTreeMap};

/// Drops the rarest beyond twice as many; returns whether it dropped any.
pub(super) fn keep_most<K: Ord, V>(
    all: &mut BTreeMap<K, V>,
    most: usize,
    count: impl Fn(&V) -> u64,
) -> bool {
    if all.len() <= 2 * most {
        return false;
    }
    let mut counts: Vec<_> = all.values().map(&count).collect();
    counts.sort_unstable_by_key(|count| Reverse(*count));
    let least = counts[most];
    all.retain(|_, of| count(of) > least);
    true
}
