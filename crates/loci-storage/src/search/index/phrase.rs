//! Words that must follow one another, told by where they stand in a passage.
//!
//! What is between two words is not in the index, so a passage that has them in order may still not be as the query
//! wants it; one that has not cannot be. So most passages need not be read.

use loci_core::search::Literal;
use loci_stdx::Packed;

use super::segment::List;

/// Tells for each of some passages whether the words of a literal follow one another somewhere in it. The passages have
/// all of the words and are in order; `lists` has the list of each term. `None` when a list is damaged.
pub(super) fn has_in_order(literal: &Literal, lists: &[List], passages: &[u32]) -> Option<Vec<bool>> {
    let mut columns = Vec::new();
    for term in &literal.terms {
        columns.push(Positions::read(lists.get(*term)?, passages)?);
    }
    let found = |idx: usize| {
        let (first, others) = columns.split_first()?;
        let follows = |start: &u32| {
            others.iter().zip(1..).all(|(column, step)| column.of(idx).binary_search(&(start + step)).is_ok())
        };
        Some(first.of(idx).iter().any(follows))
    };
    (0..passages.len()).map(found).collect()
}

/// Where one word stands in each of some passages.
struct Positions {
    numbers: Vec<u32>,
    /// Where the numbers of each passage end.
    ends: Vec<usize>,
}

impl Positions {
    fn read(list: &List, wanted: &[u32]) -> Option<Self> {
        let mut found = Self { numbers: Vec::new(), ends: Vec::with_capacity(wanted.len()) };
        let mut bytes = Packed(list.positions());
        let mut wanted = wanted.iter().peekable();
        for (passage, count) in list.passages.iter().zip(&list.counts) {
            match wanted.peek() {
                None => break,
                Some(next) if *next != passage => bytes.skip_numbers(*count)?,
                Some(_) => {
                    wanted.next();
                    let mut position = 0_u32;
                    for _ in 0..*count {
                        position = position.checked_add(bytes.small()?)?;
                        found.numbers.push(position);
                    }
                    found.ends.push(found.numbers.len());
                }
            }
        }
        wanted.peek().is_none().then_some(found)
    }

    fn of(&self, idx: usize) -> &[u32] {
        let start = idx.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.numbers[start..self.ends[idx]]
    }
}
