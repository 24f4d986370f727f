//! The checksums of a segment's parts.
//!
//! A search for words that stand everywhere reads tens of megabytes, and each step of [`loci_stdx::checksum`] waits for the one
//! before. Here four chains go side by side.

use loci_stdx::checksum;

/// Returns a number that changes with any byte. Every step is one to one, so a single changed word always shows.
pub(super) fn part_sum(bytes: &[u8]) -> u64 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut chains = [1_u64, 2, 3, 4];
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (chain, word) in chains.iter_mut().zip(words) {
            *chain = (*chain ^ u64::from_le_bytes(*word)).wrapping_mul(MIX).rotate_left(29);
        }
    }
    let end = checksum(rest) ^ bytes.len() as u64;
    chains.iter().fold(end, |sum, chain| (sum ^ chain).wrapping_mul(MIX).rotate_left(29))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_bit_or_length_changes_the_sum() {
        let bytes: Vec<u8> = (0..203).map(|n: u32| (n * 7 % 251) as u8).collect();
        let sum = part_sum(&bytes);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                assert_ne!(part_sum(&other), sum);
            }
            assert_ne!(part_sum(&bytes[..at]), sum);
        }
        // Words that change places show, too, within a chain and between chains.
        for (one, other) in [(0, 8), (0, 32), (8, 72)] {
            let mut moved = bytes.clone();
            (0..8).for_each(|n| moved.swap(one + n, other + n));
            assert_ne!(part_sum(&moved), sum);
        }
    }
}
