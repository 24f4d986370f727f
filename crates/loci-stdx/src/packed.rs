//! Packed bytes: small numbers in few of them, and checksums that notice any change of one word.
//!
//! A hundred lines of variable-length integers, written by hand: a crate for them would be as long as its use.

/// Appends a number, seven bits a byte.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number as u8 & 0x7f) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a text with its length.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Takes numbers and texts off the front of some bytes.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a>(pub &'a [u8]);

impl<'a> Packed<'a> {
    /// Takes a number; `None` when the bytes end too early.
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        match self.0.split_first()? {
            // Most numbers are small.
            (first, rest) if first & 0x80 == 0 => {
                self.0 = rest;
                Some(u64::from(*first))
            }
            _ => self.long_number(),
        }
    }

    #[inline(never)]
    fn long_number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        let mut shift = 0;
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            shift += 7;
        }
    }

    /// Takes two numbers that fit 32 bits.
    #[inline]
    pub fn pair(&mut self) -> Option<(u32, u32)> {
        match self.0 {
            [first, second, rest @ ..] if (first | second) & 0x80 == 0 => {
                self.0 = rest;
                Some((u32::from(*first), u32::from(*second)))
            }
            _ => Some((self.small()?, self.small()?)),
        }
    }

    /// Passes over so many numbers.
    pub fn skip_numbers(&mut self, n_numbers: u64) -> Option<()> {
        let mut n_left = n_numbers;
        // A number ends at a byte without the highest bit. Eight bytes have at most eight ends, so that none is missed.
        while n_left >= 8 {
            let Some((bytes, rest)) = self.0.split_first_chunk::<8>() else { break };
            let ends = (!u64::from_le_bytes(*bytes) >> 7) & 0x0101_0101_0101_0101;
            n_left -= ends.wrapping_mul(0x0101_0101_0101_0101) >> 56;
            self.0 = rest;
        }
        // The rest at once, too, where each of them is one byte.
        if let Some(bytes) = self.0.first_chunk::<8>().filter(|_| n_left < 8) {
            let wanted = (1_u64 << (8 * n_left)) - 1;
            if u64::from_le_bytes(*bytes) & wanted & 0x8080_8080_8080_8080 == 0 {
                self.0 = &self.0[n_left as usize..];
                return Some(());
            }
        }
        let mut at = 0;
        for _ in 0..n_left {
            while *self.0.get(at)? & 0x80 != 0 {
                at += 1;
            }
            at += 1;
        }
        self.0 = self.0.get(at..)?;
        Some(())
    }

    /// Takes a number that fits 32 bits.
    #[inline]
    pub fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// Takes so many bytes.
    pub fn take(&mut self, n_bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n_bytes)?;
        self.0 = rest;
        Some(taken)
    }

    /// Takes a text with its length.
    pub fn text(&mut self) -> Option<&'a str> {
        let n_bytes = usize::try_from(self.number()?).ok()?;
        std::str::from_utf8(self.take(n_bytes)?).ok()
    }

    /// Returns true when everything was taken.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns a number that changes with any byte. Every step is one to one, so a single changed word always shows.
pub fn checksum(bytes: &[u8]) -> u64 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = (bytes.len() as u64).wrapping_mul(MIX) | 1;
    let mut mix = |word: u64| sum = (sum ^ word).wrapping_mul(MIX).rotate_left(29);
    words.iter().for_each(|word| mix(u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(u64::from_le_bytes(last));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_come_back() {
        let mut out = Vec::new();
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        numbers.iter().for_each(|number| put_number(&mut out, *number));
        put_text(&mut out, "wörd");
        let mut bytes = Packed(&out);
        let back: Vec<u64> = (0..numbers.len()).map(|_| bytes.number().unwrap()).collect();
        assert_eq!((back.as_slice(), bytes.text()), (&numbers[..], Some("wörd")));
        assert!(bytes.is_empty() && bytes.number().is_none());
        let mut bytes = Packed(&out);
        assert_eq!(bytes.skip_numbers(6).and_then(|()| bytes.number()), Some(u64::MAX));
        assert_eq!(Packed(&[0x80, 0x80]).skip_numbers(1), None);
        let mut bytes = Packed(&out);
        assert_eq!((bytes.pair(), bytes.pair()), (Some((0, 1)), Some((127, 128))));
        assert_eq!((bytes.pair(), Packed(&[7]).pair()), (Some((300, u32::MAX)), None));
        assert!(Packed(&[0xff; 12]).number().is_none() && Packed(&[9, b'x']).text().is_none());
    }

    #[test]
    fn skipping_numbers_equals_taking_them() {
        let numbers: Vec<u64> = (0..200).map(|n| n * n * n * n % 70_000 * (n % 3)).collect();
        let mut out = Vec::new();
        numbers.iter().for_each(|number| put_number(&mut out, *number));
        for first in 0..40 {
            for n_skipped in 0..=numbers.len() - first {
                let mut bytes = Packed(&out);
                (0..first).for_each(|_| assert!(bytes.number().is_some()));
                assert_eq!(bytes.skip_numbers(n_skipped as u64), Some(()));
                assert_eq!(bytes.number(), numbers.get(first + n_skipped).copied(), "{first} {n_skipped}");
            }
            assert_eq!(Packed(&out).skip_numbers(numbers.len() as u64 + 1), None);
        }
    }

    #[test]
    fn any_changed_bit_changes_the_checksum() {
        let bytes: Vec<u8> = (0..100).collect();
        let sum = checksum(&bytes);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                assert_ne!(checksum(&other), sum);
            }
            assert_ne!(checksum(&bytes[..at]), sum);
        }
    }
}
