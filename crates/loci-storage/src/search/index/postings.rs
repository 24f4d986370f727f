//! The list of a word, unpacked on the way: a common word has hundreds of thousands of passages, and of most of them nothing
//! is wanted but that they are counted. So nothing is made of a list but the numbers of one passage at a time.
//!
//! What is unpacked has a checksum, so damage is not expected here; it is told nevertheless ([`DamagedList`]), since no number
//! of a list may lead outside of the segment.

use std::io;

use loci_stdx::{Packed, put_number};

use super::segment::damaged;

/// The bit of each place in a short passage, and none for those beyond: to look it up costs less than to shift 128 bits.
static PLACE_BITS: [u128; 256] = {
    let mut bits = [0; 256];
    let mut place = 0;
    while place < 128 {
        bits[place] = 1 << place;
        place += 1;
    }
    bits
};

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
            passage: 0,
            count: 0,
            positions: None,
            n_unread: 0,
        }
    }

    /// Returns the passages, and can tell where the word stands in each.
    pub(super) fn postings_with_positions(&self) -> Result<Postings<'_>, DamagedList> {
        let mut positions = Packed(&self.bytes);
        positions.skip_numbers(u64::from(self.n_passages) * 2).ok_or(DamagedList)?;
        Ok(Postings { positions: Some(positions), ..self.postings() })
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

/// Goes over the passages of a list.
pub(super) struct Postings<'a> {
    pairs: Packed<'a>,
    n_left: u32,
    limit: u32,
    passage: u32,
    count: u32,
    /// Where the word stands, in passages that were not asked for and in this one.
    positions: Option<Packed<'a>>,
    /// How many of these numbers there are up to the end of this passage.
    n_unread: u64,
}

impl<'a> Postings<'a> {
    /// Goes to the next passage; false at the end.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool, DamagedList> {
        if self.n_left == 0 {
            return Ok(false);
        }
        self.n_left -= 1;
        let (step, count) = self.pairs.pair().ok_or(DamagedList)?;
        self.passage =
            self.passage.checked_add(step).filter(|passage| *passage < self.limit).ok_or(DamagedList)?;
        self.count = count;
        self.n_unread += u64::from(self.count);
        Ok(true)
    }

    /// Goes on to the first passage that is not before `least`, which may be this one; false at the end.
    #[inline]
    pub(super) fn advance_to(&mut self, least: u32) -> Result<bool, DamagedList> {
        while self.passage < least {
            if !self.advance()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the passage, once one was gone to.
    #[inline]
    pub(super) fn passage(&self) -> u32 {
        self.passage
    }

    /// Returns how often the word is in it.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Returns where the word stands in this passage, packed: the step from the one before. It can be asked once.
    pub(super) fn positions(&mut self) -> Result<Packed<'a>, DamagedList> {
        let n_here = u64::from(self.count);
        let positions = self.positions_from_here()?;
        let here = positions.0;
        positions.skip_numbers(n_here).ok_or(DamagedList)?;
        Ok(Packed(&here[..here.len() - positions.0.len()]))
    }

    /// Hands out where the word stands in this passage, until `take` says that there is no such place. It can be asked
    /// once.
    #[inline]
    pub(super) fn each_position(
        &mut self,
        mut take: impl FnMut(u32) -> Option<()>,
    ) -> Result<(), DamagedList> {
        let n_here = self.count;
        let positions = self.positions_from_here()?;
        let mut position = 0_u32;
        for _ in 0..n_here {
            let step = positions.small().ok_or(DamagedList)?;
            position = position.checked_add(step).ok_or(DamagedList)?;
            take(position).ok_or(DamagedList)?;
        }
        Ok(())
    }

    /// Returns where the word stands in this passage as a bit for each of its words, of which there are at most 128. It can
    /// be asked once.
    #[inline]
    pub(super) fn short_places(&mut self) -> Result<u128, DamagedList> {
        let n_here = self.count as usize;
        let positions = self.positions_from_here()?;
        // In so short a passage every step is one byte, and none has more places than words.
        let (here, rest) =
            positions.0.split_at_checked(n_here).filter(|_| n_here <= 128).ok_or(DamagedList)?;
        positions.0 = rest;
        let (mut places, mut position) = (0, 0_u32);
        for step in here {
            position += u32::from(*step);
            places |= PLACE_BITS[(position & 0xff) as usize];
        }
        // A step that is no byte of its own leads beyond them, too.
        if position < 128 { Ok(places) } else { Err(DamagedList) }
    }

    /// Passes over what was not asked for; whoever asks takes what is of this passage.
    #[inline]
    fn positions_from_here(&mut self) -> Result<&mut Packed<'a>, DamagedList> {
        let n_before = self.n_unread.checked_sub(u64::from(self.count)).ok_or(DamagedList)?;
        self.n_unread = 0;
        let positions = self.positions.as_mut().ok_or(DamagedList)?;
        if n_before > 0 {
            positions.skip_numbers(n_before).ok_or(DamagedList)?;
        }
        Ok(positions)
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
        let mut passage = self.postings[*first].passage;
        'again: loop {
            for other in others {
                if !self.postings[*other].advance_to(passage)? {
                    return Ok(None);
                }
                let there = self.postings[*other].passage;
                if there != passage {
                    if !self.postings[*first].advance_to(there)? {
                        return Ok(None);
                    }
                    passage = self.postings[*first].passage;
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
            *count = postings.count;
        }
    }

    /// Returns where a word stands in a short passage; see [`Postings::short_places`].
    #[inline]
    pub(super) fn short_places(&mut self, list: usize) -> Result<u128, DamagedList> {
        self.postings.get_mut(list).ok_or(DamagedList)?.short_places()
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
            let places = common.short_places(list).unwrap();
            return (0..128).filter(|place| places >> place & 1 == 1).collect();
        }
        common.each_position(list, |position| all.insert(position).then_some(())).unwrap();
        all
    }

    fn list() -> impl Strategy<Value = BTreeMap<u32, BTreeSet<u32>>> {
        let long = prop::collection::btree_set(0_u32..3_000, 1..12);
        let short = prop::collection::btree_set(0_u32..128, 1..40);
        prop::collection::btree_map(0_u32..400, prop_oneof![long, short], 0..120)
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
        let mut postings = no_positions.postings_with_positions().unwrap();
        assert_eq!(postings.advance(), Ok(true));
        assert!(postings.positions().is_err());
        let outside = PackedList::new(vec![3, 1, 64], 1, 9);
        let mut postings = outside.postings_with_positions().unwrap();
        assert_eq!(postings.advance(), Ok(true));
        assert!(postings.each_position(|position| (position < 64).then_some(())).is_err());
        // No place of a passage of up to 128 words: one too far, a long step, more places than words, too few bytes.
        for (places, count) in [(&[100, 28][..], 2), (&[0x80, 1], 2), (&[1; 129], 129), (&[1, 2], 3)] {
            let mut bytes = vec![3];
            put_number(&mut bytes, count);
            bytes.extend_from_slice(places);
            let list = PackedList::new(bytes, 1, 9);
            let mut postings = Postings {
                positions: Some(Packed(&list.bytes[list.bytes.len() - places.len()..])),
                ..list.postings()
            };
            assert_eq!(postings.advance(), Ok(true));
            assert_eq!(postings.short_places(), Err(DamagedList), "{places:?}");
        }
    }
}
