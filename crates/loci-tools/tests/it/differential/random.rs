//! Numbers of a sequence that is the same for the same seed, and how long it is.

/// Multiplies the number of cases and changes their seed: `LOCI_DIFFERENTIAL=200` is a night's work.
const TIMES: &str = "LOCI_DIFFERENTIAL";

/// Numbers of a sequence.
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        // Another length is another sequence, so that nights see what days have not.
        Self { state: (seed ^ (times() - 1)).max(1) }
    }

    /// A number below `n`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % n
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// True once in `n` times.
    pub(super) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// How many cases to try where `n` are tried by day.
pub(super) fn n_cases(n: usize) -> usize {
    usize::try_from(times()).unwrap().saturating_mul(n)
}

fn times() -> u64 {
    match std::env::var(TIMES) {
        Ok(text) => text.parse::<u64>().expect("a number").max(1),
        Err(_) => 1,
    }
}
