//! How well a text answers a query: BM25, with what stands in the text as it was asked for counting more.
//! (`docs/design/index.md` says why `tantivy` does not search.)

/// Saturation of repeated words, and how much the length of a text counts: the usual values.
const K1: f64 = 1.2;
const B: f64 = 0.75;
/// What a literal that is found multiplies.
const LITERAL: f64 = 1.5;

/// What is known of all texts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Corpus {
    /// How many texts there are.
    pub n_texts: u64,
    /// How many words they have in all.
    pub n_words: u64,
    /// In how many of them each term of the query occurs.
    pub n_with_term: Vec<u64>,
}

impl Corpus {
    /// Returns what each term weighs, the rarer the more, and how long texts are.
    pub fn scorer(&self) -> Scorer {
        let n_texts = self.n_texts as f64;
        let weight = |n_with: &u64| {
            let n_with = *n_with as f64;
            (1.0 + (n_texts - n_with + 0.5).max(0.5) / (n_with + 0.5)).ln()
        };
        Scorer {
            weights: self.n_with_term.iter().map(weight).collect(),
            average: (self.n_words as f64 / self.n_texts.max(1) as f64).max(1.0),
        }
    }

    /// Adds what is known of further texts.
    pub fn add(&mut self, other: &Self) {
        self.n_texts += other.n_texts;
        self.n_words += other.n_words;
        self.n_with_term.resize(self.n_with_term.len().max(other.n_with_term.len()), 0);
        for (sum, n_with) in self.n_with_term.iter_mut().zip(&other.n_with_term) {
            *sum += n_with;
        }
    }
}

/// Scores texts against one query.
#[derive(Debug, Clone, PartialEq)]
pub struct Scorer {
    weights: Vec<f64>,
    average: f64,
}

/// What one text has of a query.
#[derive(Debug, Clone, Copy)]
pub struct Match<'a> {
    /// How often each term occurs.
    pub counts: &'a [u32],
    /// How many words the text has.
    pub n_words: u32,
    /// How many literals stand in it.
    pub n_literals: usize,
}

impl Scorer {
    /// Returns what each term weighs.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns how well a text answers the query; zero when no term occurs. Common words are in a hundred thousand texts, so
    /// this is plain arithmetic.
    pub fn score(&self, found: Match<'_>) -> f64 {
        let length = 1.0 - B + B * f64::from(found.n_words) / self.average;
        let mut sum = 0.0;
        let mut n_found = 0;
        let mut idx = 0;
        while idx < self.weights.len() && idx < found.counts.len() {
            if found.counts[idx] > 0 {
                let count = f64::from(found.counts[idx]);
                n_found += 1;
                sum += self.weights[idx] * count * (K1 + 1.0) / (count + K1 * length);
            }
            idx += 1;
        }
        if n_found < self.weights.len() {
            sum *= n_found as f64 / self.weights.len() as f64;
        }
        match found.n_literals {
            0 => sum,
            n => sum * LITERAL.powi(i32::try_from(n).unwrap_or(8)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counts: &[u32], n_words: u32, n_literals: usize) -> f64 {
        let corpus = Corpus { n_texts: 1_000, n_words: 100_000, n_with_term: vec![900, 3] };
        corpus.scorer().score(Match { counts, n_words, n_literals })
    }

    #[test]
    fn better_answers_score_more() {
        for (better, worse) in [
            (of(&[0, 1], 100, 0), of(&[1, 0], 100, 0)),
            (of(&[1, 1], 100, 0), of(&[0, 1], 100, 0)),
            (of(&[1, 1], 50, 0), of(&[1, 1], 500, 0)),
            (of(&[1, 2], 100, 0), of(&[1, 1], 100, 0)),
            (of(&[1, 1], 100, 1), of(&[1, 1], 100, 0)),
        ] {
            assert!(better > worse, "{better} {worse}");
        }
        assert!(of(&[0, 0], 10, 0).abs() < f64::EPSILON);
    }
}
