//! Sorted numbers: the n-th largest of many, and what several sorted lists have in common.

/// Returns the numbers that are in all lists, and what each list has for each of them, one after another. A list is some
/// numbers in order, and as many values.
pub fn in_all_lists(lists: &[(&[u32], &[u32])]) -> (Vec<u32>, Vec<u32>) {
    let (mut common, mut values) = (Vec::new(), Vec::new());
    let Some((shortest, _)) = lists.iter().min_by_key(|(numbers, _)| numbers.len()) else {
        return (common, values);
    };
    let mut at = vec![0; lists.len()];
    for number in *shortest {
        let n_known = values.len();
        for ((numbers, of_them), at) in lists.iter().zip(&mut at) {
            *at = first_from(numbers, *at, *number);
            match numbers.get(*at).filter(|other| *other == number) {
                Some(_) => values.extend(of_them.get(*at)),
                None => break,
            }
        }
        if values.len() == n_known + lists.len() {
            common.push(*number);
        } else {
            values.truncate(n_known);
        }
    }
    (common, values)
}

/// Returns where the first number lies that is not less than `least`, from `at` on: in steps that double, since it is
/// mostly near.
fn first_from(numbers: &[u32], mut at: usize, least: u32) -> usize {
    let mut step = 1;
    while numbers.get(at + step).is_some_and(|number| *number < least) {
        at += step;
        step *= 2;
    }
    let near = numbers.get(at..numbers.len().min(at + step + 1)).unwrap_or_default();
    at + near.partition_point(|number| *number < least)
}

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
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

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

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn intersection_equals_a_plain_search(
            lists in prop::collection::vec(prop::collection::btree_map(0_u32..60, 0_u32..9, 0..50), 0..4)
        ) {
            let columns: Vec<(Vec<u32>, Vec<u32>)> =
                lists.iter().map(|list: &BTreeMap<u32, u32>| list.iter().unzip()).collect();
            let borrowed: Vec<(&[u32], &[u32])> = columns.iter().map(|(a, b)| (&a[..], &b[..])).collect();
            let all: BTreeSet<u32> = lists.iter().flat_map(|list| list.keys().copied()).collect();
            let is_common = |number: &u32| lists.iter().all(|list| list.contains_key(number));
            let common: Vec<u32> = all.into_iter().filter(is_common).collect();
            let values = common.iter().flat_map(|number| lists.iter().map(|list| list[number])).collect();
            prop_assert_eq!(in_all_lists(&borrowed), (common, values));
        }
    }
}
