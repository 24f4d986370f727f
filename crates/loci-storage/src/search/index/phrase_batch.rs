//! Short passages whose words are looked for together, 64 at a time.
//!
//! Whether a passage has a phrase is as good as chance to the processor, which would go on with the wrong one half of the time
//! and throw that away. So the places of a word are looked up in all passages of a batch, without a decision between them, and
//! those that are left are then looked at for the next word.

use super::positions::short_places;
use super::postings::{CommonPostings, DamagedList};

/// How many passages are looked at together.
const BATCH: usize = 64;

/// Passages that have all words of a query and at most 128 words of their own.
pub(super) struct PhraseBatch<'a> {
    passages: [u32; BATCH],
    n_words: [u32; BATCH],
    n_passages: usize,
    terms: Vec<BatchTerm<'a>>,
    /// Where the words of a phrase that were looked for so far begin, for each passage.
    starts: [u128; BATCH],
    /// The passages that are left, by their places.
    left: [u8; BATCH],
    n_left: usize,
}

/// What a batch has of a term.
struct BatchTerm<'a> {
    /// How often it is in each passage.
    counts: [u32; BATCH],
    /// Its steps there, and what comes behind them; nothing, where nobody asks for places of the term.
    steps: [&'a [u8]; BATCH],
    has_steps: bool,
}

impl<'a> PhraseBatch<'a> {
    /// Begins without passages; of terms for which `needs_positions` says so it can be looked up where they stand.
    pub(super) fn new(n_terms: usize, needs_positions: impl Fn(usize) -> bool) -> Self {
        let term =
            |idx| BatchTerm { counts: [0; BATCH], steps: [&[]; BATCH], has_steps: needs_positions(idx) };
        Self {
            passages: [0; BATCH],
            n_words: [0; BATCH],
            n_passages: 0,
            terms: (0..n_terms).map(term).collect(),
            starts: [0; BATCH],
            left: [0; BATCH],
            n_left: 0,
        }
    }

    /// Adds the passage that the postings are at; tells whether there is room for another.
    #[inline]
    pub(super) fn push(
        &mut self,
        passage: u32,
        n_words: u32,
        postings: &mut CommonPostings<'a>,
    ) -> Result<bool, DamagedList> {
        let at = self.n_passages % BATCH;
        self.passages[at] = passage;
        self.n_words[at] = n_words;
        for (idx, term) in self.terms.iter_mut().enumerate() {
            term.counts[at] = postings.count_of(idx)?;
            if term.has_steps {
                term.steps[at] = postings.steps_of(idx)?;
            }
        }
        self.n_passages = at + 1;
        Ok(self.n_passages < BATCH)
    }

    /// Begins to look: all passages are left.
    pub(super) fn begin(&mut self) {
        self.n_left = self.n_passages;
        (0_u8..).zip(&mut self.left).for_each(|(at, left)| *left = at);
    }

    /// Begins to look for a phrase in those that are left.
    pub(super) fn begin_phrase(&mut self) {
        self.starts.fill(u128::MAX);
    }

    /// Leaves those in which a word stands `step` words behind a beginning; tells whether any is left.
    pub(super) fn keep_followed(&mut self, term: usize, step: usize) -> Result<bool, DamagedList> {
        // No word of so short a passage has so many before it.
        let back = u8::try_from(step).ok().filter(|step| *step < 128);
        let (Some(back), Some(term)) = (back, self.terms.get(term)) else {
            self.n_left = 0;
            return Ok(false);
        };
        let mut n_kept = 0;
        for idx in 0..self.n_left {
            let left = self.left[idx % BATCH];
            let at = usize::from(left) % BATCH;
            let starts = self.starts[at] & short_places(term.steps[at], term.counts[at], back)?;
            self.starts[at] = starts;
            self.left[n_kept % BATCH] = left;
            n_kept += usize::from(starts != 0);
        }
        self.n_left = n_kept;
        Ok(n_kept > 0)
    }

    /// Hands out the passages that are left, with their number of words and how often each word is in them, and is empty then.
    pub(super) fn drain(&mut self, counts: &mut [u32], mut take: impl FnMut(u32, u32, &[u32])) {
        for left in &self.left[..self.n_left] {
            let at = usize::from(*left) % BATCH;
            for (count, term) in counts.iter_mut().zip(&self.terms) {
                *count = term.counts[at];
            }
            take(self.passages[at], self.n_words[at], counts);
        }
        (self.n_passages, self.n_left) = (0, 0);
    }
}
