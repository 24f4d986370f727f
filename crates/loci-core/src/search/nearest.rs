//! How much of a query stands together in one place of a text.
//!
//! Words strewn over a long text say little; the same words side by side, in the order of the question, are most often
//! what was meant. Where they are is also what is worth showing.

use std::collections::VecDeque;
use std::ops::Range;

use super::query::Query;
use super::words::each_word;

/// How far apart words may stand to count as together: so many words for each of the query's, and some.
const WORDS_A_TERM: usize = 2;
const WORDS_MORE: usize = 8;

/// The place of a text in which most of a query stands together.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest {
    /// How much of the query that is, from nothing to one: its words by their weight, and its pairs of neighbours.
    pub share: f64,
    /// Where it is, in bytes.
    pub range: Range<usize>,
}

/// A word of the query in a text.
struct QueryWord {
    term: usize,
    /// Which of the query's pairs it completes with the word before it.
    pair: Option<usize>,
    word: usize,
    range: Range<usize>,
}

/// Finds the place; `weights` says what each term of the query is worth, nothing for those that occur nowhere.
pub fn nearest(query: &Query, weights: &[f64], text: &str) -> Nearest {
    let terms = |term: usize| weights.get(term).copied().unwrap_or(0.0);
    let pairs = |pair: usize| {
        let (left, right) = query.neighbours()[pair];
        terms(left).min(terms(right))
    };
    let (n_terms, n_pairs) = (query.terms().len(), query.neighbours().len());
    let all: f64 = (0..n_terms).map(terms).sum::<f64>() + (0..n_pairs).map(pairs).sum::<f64>();
    let reach = n_terms * WORDS_A_TERM + WORDS_MORE;
    let mut here = Together::new(n_terms, n_pairs);
    let mut best = Nearest { share: 0.0, range: 0..0 };
    each_found(query, text, |found| {
        here.push(found, reach);
        let share = here.worth(terms, pairs) / all;
        if share > best.share {
            best = Nearest { share, range: here.range() };
        }
    });
    best
}

/// Words of the query that stand together, and how often each term and each pair is among them.
struct Together {
    found: VecDeque<QueryWord>,
    terms: Vec<u32>,
    pairs: Vec<u32>,
}

impl Together {
    fn new(n_terms: usize, n_pairs: usize) -> Self {
        Self { found: VecDeque::new(), terms: vec![0; n_terms], pairs: vec![0; n_pairs] }
    }

    /// Adds a word and lets go of those that are too far from it.
    fn push(&mut self, found: QueryWord, reach: usize) {
        let last = found.word;
        self.terms[found.term] += 1;
        // A pair counts with the word that completes it, unless the one before it is gone.
        if let Some(pair) = found.pair.filter(|_| !self.found.is_empty()) {
            self.pairs[pair] += 1;
        }
        self.found.push_back(found);
        while self.found.front().is_some_and(|first| first.word + reach < last) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some(gone) = self.found.pop_front() {
            self.terms[gone.term] -= 1;
        }
        if let Some(pair) = self.found.front().and_then(|first| first.pair) {
            self.pairs[pair] -= 1;
        }
    }

    /// Adds up what the words are worth, each word and each pair once.
    fn worth(&self, terms: impl Fn(usize) -> f64, pairs: impl Fn(usize) -> f64) -> f64 {
        let sum = |counts: &[u32], worth: &dyn Fn(usize) -> f64| -> f64 {
            counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(idx, _)| worth(idx)).sum()
        };
        sum(&self.terms, &terms) + sum(&self.pairs, &pairs)
    }

    fn range(&self) -> Range<usize> {
        let start = self.found.front().map_or(0, |first| first.range.start);
        start..self.found.back().map_or(0, |last| last.range.end)
    }
}

fn each_found(query: &Query, text: &str, mut take: impl FnMut(QueryWord)) {
    let mut word = 0;
    let mut before: Option<usize> = None;
    each_word(text, |found, range| {
        let term = query.term_of(found);
        if let Some(term) = term {
            let pair = before.and_then(|left| query.neighbours().iter().position(|it| *it == (left, term)));
            take(QueryWord { term, pair, word, range });
        }
        before = term;
        word += 1;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str, text: &str) -> (f64, String) {
        let query = Query::parse(query);
        let found = nearest(&query, &vec![1.0; query.terms().len()], text);
        ((found.share * 100.0).round() / 100.0, text[found.range].to_owned())
    }

    #[test]
    fn words_together_in_order_score_most() {
        let far = format!("The staging {} port", "filler ".repeat(40));
        for (text, share, place) in [
            ("The staging port is 9.", 1.0, "staging port"),
            ("The port of staging is 9.", 0.67, "port of staging"),
            ("Nothing but a port.", 0.33, "port"),
            (far.as_str(), 0.33, "staging"),
            ("Nothing.", 0.0, ""),
            ("", 0.0, ""),
        ] {
            assert_eq!(of("staging port", text), (share, place.to_owned()), "{text}");
        }
    }

    #[test]
    fn nearest_place_is_where_most_query_words_stand() {
        let text = format!("port {} the staging port of amber {} staging", "x ".repeat(50), "x ".repeat(50));
        assert_eq!(of("staging port amber", &text).1, "staging port of amber");
    }

    #[test]
    fn query_word_without_occurrence_is_not_required() {
        let query = Query::parse("what staging port");
        let found = nearest(&query, &[0.0, 1.0, 1.0], "the staging port");
        assert!((found.share - 1.0).abs() < 1e-9, "{found:?}");
        assert!(nearest(&query, &[0.0; 3], "the staging port").range.is_empty(), "nothing is worth anything");
    }
}
