//! The n-th largest of many numbers, without sorting them.

/// Returns the number that so many others are not less than; it is in the list, so the list must be longer than that.
pub fn nth_largest(mut numbers: Vec<u64>, n: usize) -> Option<u64> {
    if n >= numbers.len() {
        return None;
    }
    let at = numbers.len() - 1 - n;
    Some(*numbers.select_nth_unstable(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_largest_is_where_sorting_puts_it() {
        let numbers = vec![5, 1, 9, 9, 3, 0, 7];
        let mut sorted = numbers.clone();
        sorted.sort_unstable_by(|left, right| right.cmp(left));
        for (n, number) in sorted.iter().enumerate() {
            assert_eq!(nth_largest(numbers.clone(), n), Some(*number));
        }
        assert_eq!((nth_largest(numbers, 7), nth_largest(Vec::new(), 0)), (None, None));
    }
}
