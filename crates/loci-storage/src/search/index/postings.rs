//! The list of a word, unpacked on the way: a common word has hundreds of thousands of passages, and of most of them nothing
//! is wanted but that they are counted. So nothing is made of a list but the numbers of a block of passages at a time, and where
//! a word stands is looked at only where somebody asks ([`BlockPositions`]).
//!
//! What is unpacked has a checksum, so damage is not expected here; it is told nevertheless ([`DamagedList`]), since no number
//! of a list may lead outside of the segment.

use std::io;

use loci_stdx::{Packed, put_number};

use super::positions::BlockPositions;
use super::segment::damaged;

/// How many passages are unpacked at once.
const BLOCK: usize = 64;

/// A list that is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DamagedList;

impl From<DamagedList> for io::Error {
    fn from(_: DamagedList) -> Self {
        damaged()
    }
}

/// Which passages have a word, how often each, and where it stands in them, as it was read.
#[derive(Debug, Default)]
pub(super) struct PackedList {
    bytes: Vec<u8>,
    n_passages: u32,
    /// What every number of a passage is below.
    limit: u32,
}

impl PackedList {
    pub(super) fn new(bytes: Vec<u8>, n_passages: u32, limit: u32) -> Self {
        Self { bytes, n_passages: n_passages.min(limit), limit }
    }

    /// Takes the place of this list, in the room that it had: `read` puts the bytes there.
    pub(super) fn refill<E>(
        &mut self,
        n_passages: u32,
        limit: u32,
        read: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        (self.n_passages, self.limit) = (n_passages.min(limit), limit);
        read(&mut self.bytes)
    }

    /// Returns how many passages have the word.
    pub(super) fn n_passages(&self) -> u32 {
        self.n_passages
    }

    /// Returns the passages, the first first.
    pub(super) fn postings(&self) -> Postings<'_> {
        Postings {
            pairs: Packed(&self.bytes),
            n_left: self.n_passages,
            limit: self.limit,
            block: Block::default(),
            next: 0,
            positions: None,
        }
    }

    /// Returns the passages, and can tell where the word stands in each.
    pub(super) fn postings_with_positions(&self) -> Result<Postings<'_>, DamagedList> {
        let mut steps = Packed(&self.bytes);
        steps.skip_numbers(u64::from(self.n_passages) * 2).ok_or(DamagedList)?;
        Ok(Postings { positions: Some(BlockPositions::new(steps)), ..self.postings() })
    }

    /// Makes one list of those of several words; where they stand is left behind.
    pub(super) fn join(mut lists: Vec<Self>) -> Result<Self, DamagedList> {
        if lists.len() <= 1 {
            return Ok(lists.pop().unwrap_or_default());
        }
        let limit = lists.iter().map(|list| list.limit).max().unwrap_or_default();
        let mut pairs = Vec::new();
        for list in &lists {
            let mut postings = list.postings();
            while postings.advance()? {
                pairs.push((postings.passage(), postings.count()));
            }
        }
        pairs.sort_unstable();
        let (mut bytes, mut n_passages, mut before) = (Vec::new(), 0, 0);
        for of_passage in pairs.chunk_by(|left, right| left.0 == right.0) {
            let passage = of_passage[0].0;
            put_number(&mut bytes, u64::from(passage - before));
            put_number(&mut bytes, of_passage.iter().map(|(_, count)| u64::from(*count)).sum());
            before = passage;
            n_passages += 1;
        }
        Ok(Self { bytes, n_passages, limit })
    }
}

/// Passages that were unpacked.
struct Block {
    passages: [u32; BLOCK],
    /// How often the word is in each.
    counts: [u32; BLOCK],
    /// How often it is in those before, of this block.
    counts_before: [u32; BLOCK],
    n_passages: usize,
    /// How often it is in all of them.
    count: u32,
}

impl Default for Block {
    fn default() -> Self {
        let zeros = [0; BLOCK];
        Self { passages: zeros, counts: zeros, counts_before: zeros, n_passages: 0, count: 0 }
    }
}

impl Block {
    /// Returns the last passage, or zero.
    fn last(&self) -> u32 {
        self.n_passages.checked_sub(1).map_or(0, |last| self.passages[last % BLOCK])
    }

    /// Unpacks so many pairs; every passage is below `limit`.
    fn unpack(&mut self, pairs: &mut Packed<'_>, n_pairs: usize, limit: u32) -> Result<(), DamagedList> {
        match pairs.0.split_first_chunk::<{ 2 * BLOCK }>() {
            // Most steps and counts are small.
            Some((here, rest)) if n_pairs == BLOCK && here.iter().fold(0, |all, byte| all | byte) < 0x80 => {
                pairs.0 = rest;
                self.unpack_small(here, limit)
            }
            _ => self.unpack_any(pairs, n_pairs, limit),
        }
    }

    fn unpack_small(&mut self, pairs: &[u8; 2 * BLOCK], limit: u32) -> Result<(), DamagedList> {
        let before = self.last();
        let (mut passage, mut count) = (before, 0);
        for (idx, [step, count_here]) in pairs.as_chunks::<2>().0.iter().enumerate() {
            passage = passage.wrapping_add(u32::from(*step));
            self.passages[idx] = passage;
            self.counts[idx] = u32::from(*count_here);
            self.counts_before[idx] = count;
            count += u32::from(*count_here);
        }
        (self.n_passages, self.count) = (BLOCK, count);
        // Steps are small: whatever was beyond the last number, the last passage shows it.
        if (before..limit).contains(&passage) { Ok(()) } else { Err(DamagedList) }
    }

    fn unpack_any(&mut self, pairs: &mut Packed<'_>, n_pairs: usize, limit: u32) -> Result<(), DamagedList> {
        let (mut passage, mut count) = (self.last(), 0_u32);
        for idx in 0..n_pairs.min(BLOCK) {
            let (step, count_here) = pairs.pair().ok_or(DamagedList)?;
            passage = passage.checked_add(step).filter(|passage| *passage < limit).ok_or(DamagedList)?;
            self.passages[idx] = passage;
            self.counts[idx] = count_here;
            self.counts_before[idx] = count;
            count = count.checked_add(count_here).ok_or(DamagedList)?;
        }
        (self.n_passages, self.count) = (n_pairs, count);
        Ok(())
    }
}

/// Goes over the passages of a list.
pub(super) struct Postings<'a> {
    pairs: Packed<'a>,
    /// How many passages are not unpacked yet.
    n_left: u32,
    limit: u32,
    block: Block,
    /// The place in the block of the passage to go to next.
    next: usize,
    /// Where the word stands.
    positions: Option<BlockPositions<'a>>,
}

impl<'a> Postings<'a> {
    /// Goes to the next passage; false at the end.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool, DamagedList> {
        if self.next == self.block.n_passages && !self.next_block()? {
            return Ok(false);
        }
        self.next += 1;
        Ok(true)
    }

    /// Unpacks the next block; false at the end.
    #[inline(never)]
    fn next_block(&mut self) -> Result<bool, DamagedList> {
        if self.n_left == 0 {
            return Ok(false);
        }
        let n_pairs = BLOCK.min(self.n_left as usize);
        self.block.unpack(&mut self.pairs, n_pairs, self.limit)?;
        if let Some(positions) = &mut self.positions {
            positions.begin_block(self.block.count)?;
        }
        self.n_left -= n_pairs as u32;
        self.next = 0;
        Ok(true)
    }

    /// Goes on to the first passage that is not before `least`, which may be this one; false at the end.
    #[inline]
    pub(super) fn advance_to(&mut self, least: u32) -> Result<bool, DamagedList> {
        while self.passage() < least {
            // The last of a block says whether one of it is meant.
            if self.next == self.block.n_passages {
                while self.next_block()? && self.block.last() < least {
                    self.next = self.block.n_passages;
                }
                if self.next == self.block.n_passages {
                    return Ok(false);
                }
            }
            self.next += 1;
        }
        Ok(true)
    }

    /// The place in the block of this passage.
    #[inline]
    fn at(&self) -> usize {
        self.next.wrapping_sub(1) % BLOCK
    }

    /// Returns the passage, once one was gone to.
    #[inline]
    pub(super) fn passage(&self) -> u32 {
        self.block.passages[self.at()]
    }

    /// Returns how often the word is in it.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.block.counts[self.at()]
    }

    /// Returns where the word stands in this passage, packed: the step from the one before.
    pub(super) fn positions(&mut self) -> Result<Packed<'a>, DamagedList> {
        let n_here = u64::from(self.count());
        let here = self.steps_from_here()?;
        let mut behind = Packed(here);
        behind.skip_numbers(n_here).ok_or(DamagedList)?;
        Ok(Packed(&here[..here.len() - behind.0.len()]))
    }

    /// Hands out where the word stands in this passage, until `take` says that there is no such place.
    #[inline]
    pub(super) fn each_position(
        &mut self,
        mut take: impl FnMut(u32) -> Option<()>,
    ) -> Result<(), DamagedList> {
        let n_here = self.count();
        let mut steps = Packed(self.steps_from_here()?);
        let mut position = 0_u32;
        for _ in 0..n_here {
            let step = steps.small().ok_or(DamagedList)?;
            position = position.checked_add(step).ok_or(DamagedList)?;
            take(position).ok_or(DamagedList)?;
        }
        Ok(())
    }

    /// Returns the steps of this passage and all after them.
    #[inline]
    fn steps_from_here(&mut self) -> Result<&'a [u8], DamagedList> {
        let n_before = self.block.counts_before[self.at()];
        self.positions.as_mut().ok_or(DamagedList)?.from(n_before)
    }
}

/// Goes over the passages that are in all of some lists.
pub(super) struct CommonPostings<'a> {
    /// One for each list, in their order.
    postings: Vec<Postings<'a>>,
    /// Their places, the shortest first: it says which passages can be common.
    by_length: Vec<usize>,
    has_begun: bool,
}

impl<'a> CommonPostings<'a> {
    /// Begins; of lists for which `needs_positions` says so it can tell where the words stand.
    pub(super) fn new(
        lists: &[&'a PackedList],
        needs_positions: impl Fn(usize) -> bool,
    ) -> Result<Self, DamagedList> {
        let mut postings = Vec::with_capacity(lists.len());
        for (idx, list) in lists.iter().enumerate() {
            postings.push(match needs_positions(idx) {
                true => list.postings_with_positions()?,
                false => list.postings(),
            });
        }
        let mut by_length: Vec<usize> = (0..lists.len()).collect();
        by_length.sort_by_key(|idx| lists[*idx].n_passages);
        Ok(Self { postings, by_length, has_begun: false })
    }

    /// Goes to the next passage that is in all lists and returns it.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<Option<u32>, DamagedList> {
        let Some((first, others)) = self.by_length.split_first() else { return Ok(None) };
        if !self.postings[*first].advance()? {
            return Ok(None);
        }
        if !self.has_begun {
            self.has_begun = true;
            // Each stands at a passage from now on.
            for other in others {
                if !self.postings[*other].advance()? {
                    return Ok(None);
                }
            }
        }
        let mut passage = self.postings[*first].passage();
        'again: loop {
            for other in others {
                if !self.postings[*other].advance_to(passage)? {
                    return Ok(None);
                }
                let there = self.postings[*other].passage();
                if there != passage {
                    if !self.postings[*first].advance_to(there)? {
                        return Ok(None);
                    }
                    passage = self.postings[*first].passage();
                    continue 'again;
                }
            }
            return Ok(Some(passage));
        }
    }

    /// Writes down how often each word is in the passage.
    #[inline]
    pub(super) fn count(&self, counts: &mut [u32]) {
        for (count, postings) in counts.iter_mut().zip(&self.postings) {
            *count = postings.count();
        }
    }

    /// Returns how often a word is in the passage.
    #[inline]
    pub(super) fn count_of(&self, list: usize) -> Result<u32, DamagedList> {
        self.postings.get(list).map(Postings::count).ok_or(DamagedList)
    }

    /// Returns the steps of a word in the passage, and what comes behind them.
    #[inline]
    pub(super) fn steps_of(&mut self, list: usize) -> Result<&'a [u8], DamagedList> {
        self.postings.get_mut(list).ok_or(DamagedList)?.steps_from_here()
    }

    /// Hands out where a word stands in the passage; see [`Postings::each_position`].
    #[inline]
    pub(super) fn each_position(
        &mut self,
        list: usize,
        take: impl FnMut(u32) -> Option<()>,
    ) -> Result<(), DamagedList> {
        self.postings.get_mut(list).ok_or(DamagedList)?.each_position(take)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::super::positions::short_places;
    use super::*;

    /// A list of passages and where the word stands in each.
    fn packed(passages: &BTreeMap<u32, BTreeSet<u32>>) -> PackedList {
        let (mut bytes, mut before) = (Vec::new(), 0);
        for (passage, positions) in passages {
            put_number(&mut bytes, u64::from(passage - before));
            put_number(&mut bytes, positions.len() as u64);
            before = *passage;
        }
        for positions in passages.values() {
            let mut before = 0;
            for position in positions {
                put_number(&mut bytes, u64::from(position - before));
                before = *position;
            }
        }
        PackedList::new(bytes, passages.len() as u32, 400)
    }

    fn positions_of(common: &mut CommonPostings<'_>, list: usize, is_short: bool) -> BTreeSet<u32> {
        let mut all = BTreeSet::new();
        if is_short {
            let count = common.count_of(list).unwrap();
            let places = short_places(common.steps_of(list).unwrap(), count, 0).unwrap();
            return (0..128).filter(|place| places >> place & 1 == 1).collect();
        }
        common.each_position(list, |position| all.insert(position).then_some(())).unwrap();
        all
    }

    fn list() -> impl Strategy<Value = BTreeMap<u32, BTreeSet<u32>>> {
        let long = prop::collection::btree_set(0_u32..3_000, 1..12);
        let short = prop::collection::btree_set(0_u32..128, 1..40);
        let few = prop::collection::btree_set(0_u32..128, 1..9);
        // Blocks in which some steps are long, and those of common words, in which none is.
        let mixed = prop::collection::btree_map(0_u32..400, prop_oneof![long, short], 0..120);
        prop_oneof![mixed, prop::collection::btree_map(0_u32..400, few, 150..390)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn common_postings_equal_a_plain_intersection(
            lists in prop::collection::vec(list(), 0..4), every in 1_u32..4
        ) {
            let all: Vec<PackedList> = lists.iter().map(packed).collect();
            let in_all = |passage: &u32| lists.iter().all(|list| list.contains_key(passage));
            let expected: Vec<u32> =
                lists.first().into_iter().flat_map(BTreeMap::keys).copied().filter(in_all).collect();
            let mut common = CommonPostings::new(&all.iter().collect::<Vec<_>>(), |_| true).unwrap();
            let mut found = Vec::new();
            let mut counts = vec![0; lists.len()];
            while let Some(passage) = common.advance().unwrap() {
                found.push(passage);
                common.count(&mut counts);
                for (idx, list) in lists.iter().enumerate() {
                    prop_assert_eq!(counts[idx] as usize, list[&passage].len());
                    // Those that nobody asks for are passed over.
                    if passage % every == 0 {
                        let is_short = list[&passage].last().is_some_and(|last| *last < 128);
                        prop_assert_eq!(&positions_of(&mut common, idx, is_short), &list[&passage]);
                    }
                }
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn joined_lists_add_up(lists in prop::collection::vec(list(), 0..4)) {
            let mut expected: BTreeMap<u32, u32> = BTreeMap::new();
            for (passage, positions) in lists.iter().flatten() {
                *expected.entry(*passage).or_default() += positions.len() as u32;
            }
            let joined = PackedList::join(lists.iter().map(packed).collect()).unwrap();
            let (mut found, mut postings) = (BTreeMap::new(), joined.postings());
            while postings.advance().unwrap() {
                found.insert(postings.passage(), postings.count());
            }
            prop_assert_eq!(joined.n_passages() as usize, expected.len());
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn damaged_list_is_an_error() {
        let outside = PackedList::new(vec![9, 1], 1, 9);
        assert_eq!(outside.postings().advance(), Err(DamagedList));
        let cut = PackedList::new(vec![3], 1, 9);
        assert_eq!(cut.postings().advance(), Err(DamagedList));
        assert!(cut.postings_with_positions().is_err());
        let no_positions = PackedList::new(vec![3, 2, 0], 1, 9);
        assert_eq!(no_positions.postings_with_positions().unwrap().advance(), Err(DamagedList));
        let cut_position = PackedList::new(vec![3, 1, 0x80], 1, 9);
        let mut postings = cut_position.postings_with_positions().unwrap();
        assert_eq!(postings.advance(), Ok(true));
        assert!(postings.positions().is_err());
        // A whole block of small steps, the last of which leads outside.
        let outside = PackedList::new([1, 1].repeat(64), 64, 64);
        assert_eq!(outside.postings().advance(), Err(DamagedList));
        let inside = PackedList::new([1, 1].repeat(64), 64, 65);
        assert_eq!(inside.postings().advance(), Ok(true));
        let outside = PackedList::new(vec![3, 1, 64], 1, 9);
        let mut postings = outside.postings_with_positions().unwrap();
        assert_eq!(postings.advance(), Ok(true));
        assert!(postings.each_position(|position| (position < 64).then_some(())).is_err());
    }
}
