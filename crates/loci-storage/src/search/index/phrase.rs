//! Words that must follow one another, told by where they stand in a passage.
//!
//! What is between two words is not in the index, so a passage that has them in order may still not be as the query
//! wants it; one that has not cannot be. So most passages need not be read.
//!
//! Where a word stands is a bit for each word of the passage. Words that follow one another are then found by moving bits,
//! without a branch for each place. Most passages are short, and one number holds all their bits: those are looked at together
//! ([`super::phrase_batch`]).

use loci_core::search::Query;

use super::phrase_batch::PhraseBatch;
use super::postings::{CommonPostings, DamagedList};

/// The phrases of a query, and room to look for them in one passage after another.
pub(super) struct PhraseMatcher {
    /// Of each phrase its words, the rarest first: the term, and how many words come before it in the phrase.
    phrases: Vec<Vec<PhraseWord>>,
    /// For each term, if it is a word of a phrase: where it stands in a long passage.
    long: Vec<Vec<u64>>,
    /// For each term whether that is of this passage.
    is_known: Vec<bool>,
    /// Where the words of a phrase that were looked for so far begin.
    starts: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct PhraseWord {
    term: usize,
    step: usize,
}

impl PhraseMatcher {
    /// Takes the phrases of a query; `n_passages` is how many passages have each of its terms.
    pub(super) fn new(words: &Query, n_passages: impl Fn(usize) -> u32) -> Self {
        let phrases = words.literals().iter().filter(|literal| literal.terms.len() > 1);
        let phrases = phrases.map(|phrase| {
            let words = phrase.terms.iter().enumerate();
            let mut words: Vec<_> = words.map(|(step, term)| PhraseWord { term: *term, step }).collect();
            words.sort_by_key(|word| n_passages(word.term));
            words
        });
        let phrases: Vec<Vec<PhraseWord>> = phrases.collect();
        let n_terms = words.terms().len();
        Self { phrases, long: vec![Vec::new(); n_terms], is_known: vec![false; n_terms], starts: Vec::new() }
    }

    /// Returns true when it has to be known where a term stands.
    pub(super) fn needs_positions(&self, term: usize) -> bool {
        self.phrases.iter().flatten().any(|word| word.term == term)
    }

    /// Tells whether there is no phrase.
    pub(super) fn is_empty(&self) -> bool {
        self.phrases.is_empty()
    }

    /// Leaves those of a batch in which the words of each phrase follow one another somewhere. Where a word stands is looked
    /// up only as long as those before it are found together.
    pub(super) fn keep_matching(&self, batch: &mut PhraseBatch<'_>) -> Result<(), DamagedList> {
        batch.begin();
        for phrase in &self.phrases {
            batch.begin_phrase();
            for PhraseWord { term, step } in phrase.iter().copied() {
                if !batch.keep_followed(term, step)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Tells the same of the passage that the postings are at, which has so many words.
    pub(super) fn matches_long(
        &mut self,
        postings: &mut CommonPostings<'_>,
        n_words: u32,
    ) -> Result<bool, DamagedList> {
        self.is_known.fill(false);
        for phrase in &self.phrases {
            self.starts.clear();
            self.starts.resize(n_words.div_ceil(64) as usize, u64::MAX);
            for PhraseWord { term, step } in phrase.iter().copied() {
                let places = &mut self.long[term];
                if !std::mem::replace(&mut self.is_known[term], true) {
                    places.clear();
                    places.resize(n_words.div_ceil(64) as usize, 0);
                    postings.each_position(term, |position| {
                        *places.get_mut(position as usize / 64)? |= 1 << (position % 64);
                        Some(())
                    })?;
                }
                if !keep_followed(&mut self.starts, places, step) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Leaves of `starts` those that have a place `step` words later, and tells whether any is left.
fn keep_followed(starts: &mut [u64], places: &[u64], step: usize) -> bool {
    let (words, bits) = (step / 64, step % 64);
    let at = |idx: usize| places.get(idx).copied().unwrap_or(0);
    let mut left = 0;
    for (idx, start) in starts.iter_mut().enumerate() {
        let low = at(idx + words) >> bits;
        let high = if bits == 0 { 0 } else { at(idx + words + 1) << (64 - bits) };
        *start &= low | high;
        left |= *start;
    }
    left != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(positions: &[usize]) -> Vec<u64> {
        let mut places = vec![0; 4];
        positions.iter().for_each(|position| places[position / 64] |= 1 << (position % 64));
        places
    }

    #[test]
    fn followed_places_are_found_across_words_of_bits() {
        for (first, second, step, expected) in [
            (&[0, 5][..], &[6][..], 1, &[5][..]),
            (&[63], &[64], 1, &[63]),
            (&[62, 127], &[64, 129], 2, &[62, 127]),
            (&[10], &[74], 64, &[10]),
            (&[10, 11], &[140], 130, &[10]),
            (&[255], &[0], 1, &[]),
            (&[3], &[3], 1, &[]),
        ] {
            let mut starts = marked(first);
            let is_left = keep_followed(&mut starts, &marked(second), step);
            assert_eq!(starts, marked(expected), "{first:?} {second:?} {step}");
            assert_eq!(is_left, !expected.is_empty(), "{first:?} {second:?} {step}");
        }
    }
}
