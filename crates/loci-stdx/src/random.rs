//! Randomness as an argument: the [`Random`] trait, the system's source, and a seeded one for tests.

use std::fmt;
use std::sync::{Mutex, PoisonError};

pub use uuid::Uuid;

/// A source of random bytes and of the few shapes made from them.
pub trait Random: Send + Sync + fmt::Debug {
    /// Fills `buffer` with random bytes.
    fn fill(&self, buffer: &mut [u8]);

    /// Returns a random (version 4) UUID.
    fn uuid_v4(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// Returns a number in `[0, 1)`, evenly spread.
    fn unit_f64(&self) -> f64 {
        const BITS: u32 = f64::MANTISSA_DIGITS;
        (random_u64(self) >> (u64::BITS - BITS)) as f64 / (1_u64 << BITS) as f64
    }

    /// Returns `n_digits` lower-case hexadecimal digits.
    fn hex(&self, n_digits: usize) -> String {
        random_digits(self, b"0123456789abcdef", n_digits)
    }

    /// Returns `n_chars` characters out of `a-z0-9`.
    fn alphanumeric(&self, n_chars: usize) -> String {
        random_digits(self, b"abcdefghijklmnopqrstuvwxyz0123456789", n_chars)
    }
}

fn random_u64<R: Random + ?Sized>(random: &R) -> u64 {
    let mut bytes = [0; 8];
    random.fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// Draws `n` digits; 64 bits for each make the bias of the remainder too small to measure.
fn random_digits<R: Random + ?Sized, const BASE: usize>(random: &R, digits: &[u8; BASE], n: usize) -> String {
    (0..n).map(|_| char::from(digits[(random_u64(random) % BASE as u64) as usize])).collect()
}

/// The random source of the operating system.
///
/// Should that source fail, which the platforms we run on rule out after boot, bytes come from a
/// generator seeded by the standard library's hasher keys: identifiers stay unique, and nothing panics.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsRandom;

impl Random for OsRandom {
    fn fill(&self, buffer: &mut [u8]) {
        if getrandom::fill(buffer).is_err() {
            fastrand::Rng::new().fill(buffer);
        }
    }
}

/// A source that gives the same bytes for the same seed, for tests.
#[derive(Debug)]
pub struct SeededRandom {
    /// Guards the generator's state; held for one `fill`.
    generator: Mutex<fastrand::Rng>,
}

impl SeededRandom {
    /// Returns a source that starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { generator: Mutex::new(fastrand::Rng::with_seed(seed)) }
    }
}

impl Random for SeededRandom {
    fn fill(&self, buffer: &mut [u8]) {
        self.generator.lock().unwrap_or_else(PoisonError::into_inner).fill(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte for ever, to reach the ends of ranges.
    #[derive(Debug)]
    struct Constant(u8);

    impl Random for Constant {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(self.0);
        }
    }

    #[test]
    fn same_seed_same_values() {
        let (left, right) = (SeededRandom::new(7), SeededRandom::new(7));
        assert_eq!(left.uuid_v4(), right.uuid_v4());
        assert_eq!(left.hex(12), right.hex(12));
        assert_ne!(left.uuid_v4(), left.uuid_v4());
        assert_ne!(SeededRandom::new(7).uuid_v4(), SeededRandom::new(8).uuid_v4());
    }

    #[test]
    fn uuids_are_version_four_and_differ() {
        let sources: [&dyn Random; 2] = [&OsRandom, &SeededRandom::new(0)];
        for random in sources {
            assert_eq!(random.uuid_v4().get_version_num(), 4);
            assert_ne!(random.uuid_v4(), random.uuid_v4());
        }
    }

    #[test]
    fn unit_is_below_one_and_reaches_zero() {
        assert_eq!(Constant(0).unit_f64(), 0.0);
        assert!(Constant(0xff).unit_f64() < 1.0);
        let random = SeededRandom::new(1);
        assert!((0..1000).map(|_| random.unit_f64()).all(|unit| (0.0..1.0).contains(&unit)));
    }

    #[test]
    fn digits_stay_in_their_alphabet() {
        let random = SeededRandom::new(3);
        let (hex, name) = (random.hex(500), random.alphanumeric(500));
        assert_eq!((hex.len(), name.len()), (500, 500));
        assert!(hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
        assert!(name.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase()));
        assert_eq!(random.hex(0), "");
    }
}
