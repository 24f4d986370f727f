//! Where a word stands in the passages of its list, a block of passages at a time.
//!
//! Behind the passages of a list come the places of the word in each: the step from the place before. A step of less than 128
//! words is one byte, so in most blocks every step is one, and the steps of a passage are found by counting; in the others
//! they are passed over one after another.

use loci_stdx::Packed;

use super::postings::DamagedList;

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

/// A one in each of eight bytes, and their highest bits.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Goes over the steps of a list with the blocks of its passages.
pub(super) struct BlockPositions<'a> {
    /// From the first step of the block on; where steps are passed over, from the first that was not.
    steps: Packed<'a>,
    /// How many steps the block has, and how many of them were passed over.
    n_steps: u32,
    n_passed: u32,
    /// Whether every step of the block is one byte.
    is_flat: bool,
}

impl<'a> BlockPositions<'a> {
    /// Begins before the first block.
    pub(super) fn new(steps: Packed<'a>) -> Self {
        Self { steps, n_steps: 0, n_passed: 0, is_flat: true }
    }

    /// Goes on to the next block, which has so many steps.
    pub(super) fn begin_block(&mut self, n_steps: u32) -> Result<(), DamagedList> {
        self.steps = Packed(self.from(self.n_steps)?);
        (self.n_steps, self.n_passed) = (n_steps, 0);
        let here = self.steps.0.get(..n_steps as usize).ok_or(DamagedList)?;
        self.is_flat = here.iter().fold(0, |all, byte| all | byte) < 0x80;
        Ok(())
    }

    /// Returns the steps of the list from one of this block on, of which none after it was asked for.
    #[inline]
    pub(super) fn from(&mut self, n_before: u32) -> Result<&'a [u8], DamagedList> {
        if self.is_flat {
            return self.steps.0.get(n_before as usize..).ok_or(DamagedList);
        }
        self.pass_over(n_before)
    }

    fn pass_over(&mut self, n_before: u32) -> Result<&'a [u8], DamagedList> {
        let n_more = n_before.checked_sub(self.n_passed).ok_or(DamagedList)?;
        self.steps.skip_numbers(u64::from(n_more)).ok_or(DamagedList)?;
        self.n_passed = n_before;
        Ok(self.steps.0)
    }
}

/// Returns the places of a word in a passage of at most 128 words, a bit for each, given so many steps; each place counts as
/// one that is `back` words before it, and those before the passage do not count.
#[inline(always)]
pub(super) fn short_places(mut steps: &[u8], n_steps: u32, back: u8) -> Result<u128, DamagedList> {
    let back = u64::from(back & 0x7f) * ONES;
    let (mut places, mut before) = (0, 0);
    let mut n_left = n_steps;
    while n_left > 0 {
        let n_here = n_left.min(8);
        let eight = eight_steps(steps) & (u64::MAX >> (64 - 8 * n_here));
        // Each byte of the product is the sum of those up to it. Those behind the last stay at the last place.
        let here = eight.wrapping_mul(ONES).wrapping_add(before * ONES);
        // The first place beyond the passage, or step of more than a byte, has the highest bit, whatever comes of the others.
        if (eight | here) & HIGH_BITS != 0 {
            return Err(DamagedList);
        }
        // A byte with its highest bit set has enough to take from; where it is lost, the place is before the passage.
        let moved = ((here | HIGH_BITS) - back) ^ HIGH_BITS;
        for place in moved.to_le_bytes() {
            places |= PLACE_BITS[usize::from(place)];
        }
        before = here >> 56;
        n_left -= n_here;
        steps = match steps.split_at_checked(n_here as usize) {
            Some((_, rest)) => rest,
            None => return Err(DamagedList),
        };
    }
    Ok(places)
}

/// Returns the first eight steps, the first in the lowest byte, and zeros where there are none.
#[inline]
fn eight_steps(steps: &[u8]) -> u64 {
    if let Some(eight) = steps.first_chunk::<8>() {
        return u64::from_le_bytes(*eight);
    }
    let mut eight = [0; 8];
    eight[..steps.len()].copy_from_slice(steps);
    u64::from_le_bytes(eight)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places(steps: &[u8], n_steps: u32) -> Option<Vec<u32>> {
        places_back(steps, n_steps, 0)
    }

    fn places_back(steps: &[u8], n_steps: u32, back: u8) -> Option<Vec<u32>> {
        let bits = short_places(steps, n_steps, back).ok()?;
        Some((0..128).filter(|place| bits >> place & 1 == 1).collect())
    }

    #[test]
    fn places_that_are_none_of_a_short_passage_are_damage() {
        // One too far, a long step, one in the second eight, sums that would carry, more places than words, too few bytes.
        let many = [1; 129];
        let late = [0, 0, 0, 0, 0, 0, 0, 100, 0, 28];
        for (steps, n_steps) in [
            (&[100, 28][..], 2),
            (&[0x80, 1], 2),
            (&[127, 0x81, 1], 3),
            (&late, 10),
            (&[127; 8], 8),
            (&many, 129),
            (&[1, 2], 3),
        ] {
            assert_eq!(short_places(steps, n_steps, 0), Err(DamagedList), "{steps:?}");
        }
        assert_eq!(places(&[], 0), Some(Vec::new()));
        assert_eq!(places(&[127, 0xff], 1), Some(vec![127]));
        assert_eq!(places(&late, 9), Some(vec![0, 100]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn short_places_equal_adding_up_steps(
            wanted in prop::collection::btree_set(0_u32..128, 0..128),
            behind in prop::collection::vec(any::<u8>(), 0..12),
            back in 0_u8..128,
        ) {
            let mut before = 0;
            let mut steps: Vec<u8> = Vec::new();
            for place in &wanted {
                steps.push((place - before) as u8);
                before = *place;
            }
            let n_steps = steps.len() as u32;
            steps.extend(behind);
            prop_assert_eq!(places(&steps, n_steps), Some(wanted.iter().copied().collect()));
            let moved = wanted.into_iter().filter_map(|place| place.checked_sub(u32::from(back)));
            prop_assert_eq!(places_back(&steps, n_steps, back), Some(moved.collect()));
        }
    }
}
