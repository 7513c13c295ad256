//! Small charts in text, for `dash` and `report`.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Divides the columns in proportion to the counts; a count above zero has at least one.
pub(crate) fn shares(counts: &[u64], columns: usize) -> Vec<usize> {
    let sum: u128 = counts.iter().map(|count| u128::from(*count)).sum();
    let of = |part: u128| usize::try_from(part * columns as u128 / sum.max(1)).unwrap_or(columns);
    let mut shares: Vec<_> = (counts.iter())
        .map(|count| of(u128::from(*count)).max(usize::from(*count > 0)))
        .collect();
    // Rounding goes to the largest share.
    if let Some(largest) = (0..counts.len()).max_by_key(|at| shares[*at]) {
        let others = shares.iter().sum::<usize>() - shares[largest];
        shares[largest] = if sum == 0 {
            0
        } else {
            columns.saturating_sub(others)
        };
    }
    shares
}

/// Draws a line of bars, the first count on the left.
pub(crate) fn sparkline(counts: impl DoubleEndedIterator<Item = u64> + Clone) -> String {
    let most = counts.clone().max().unwrap_or(0).max(1);
    let bar = |count: u64| BARS[usize::try_from((count * 7).div_ceil(most)).unwrap_or(7)];
    counts.map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fill_the_columns_and_hide_no_count() {
        assert_eq!(shares(&[1, 1, 2], 8), [2, 2, 4]);
        assert_eq!(shares(&[1, 0, 999], 10), [1, 0, 9]);
        assert_eq!(shares(&[0, 0], 10), [0, 0]);
        assert_eq!(shares(&[u64::MAX, u64::MAX], 4), [2, 2]);
        assert_eq!(sparkline([0, 1, 7].into_iter()), "▁▂█");
    }
}
