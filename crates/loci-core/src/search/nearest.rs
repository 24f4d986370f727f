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
struct Found {
    term: usize,
    /// Which of the query's pairs it completes with the word before it.
    pair: Option<usize>,
    word: usize,
    range: Range<usize>,
}

/// Finds the place; `weights` says what each term of the query is worth, nothing for those that occur nowhere.
pub fn nearest(query: &Query, weights: &[f64], text: &str) -> Nearest {
    let weight = |term: usize| weights.get(term).copied().unwrap_or(0.0);
    let pair_weight = |pair: usize| {
        let (left, right) = query.neighbours()[pair];
        weight(left).min(weight(right))
    };
    let (n_terms, n_pairs) = (query.terms().len(), query.neighbours().len());
    let all: f64 = (0..n_terms).map(weight).sum::<f64>() + (0..n_pairs).map(pair_weight).sum::<f64>();
    let reach = n_terms * WORDS_A_TERM + WORDS_MORE;
    let mut here: VecDeque<Found> = VecDeque::new();
    let mut best = Nearest { share: 0.0, range: 0..0 };
    each_found(query, text, |found| {
        let last = found.word;
        here.push_back(found);
        while here.front().is_some_and(|first| first.word + reach < last) {
            here.pop_front();
        }
        let worth = worth(&here, (n_terms, &weight), (n_pairs, &pair_weight)) / all;
        if worth > best.share {
            let start = here.front().map_or(0, |first| first.range.start);
            best = Nearest { share: worth, range: start..here.back().map_or(0, |it| it.range.end) };
        }
    });
    best
}

/// Adds up what words that stand together are worth, each word and each pair once.
fn worth(
    here: &VecDeque<Found>,
    (n_terms, weight): (usize, &dyn Fn(usize) -> f64),
    (n_pairs, pair_weight): (usize, &dyn Fn(usize) -> f64),
) -> f64 {
    let (mut terms, mut pairs) = (vec![false; n_terms], vec![false; n_pairs]);
    for (idx, found) in here.iter().enumerate() {
        terms[found.term] = true;
        // The first word has lost the one before it.
        if let Some(pair) = found.pair.filter(|_| idx > 0) {
            pairs[pair] = true;
        }
    }
    let sum = |seen: &[bool], worth: &dyn Fn(usize) -> f64| -> f64 {
        seen.iter().enumerate().filter(|(_, seen)| **seen).map(|(idx, _)| worth(idx)).sum()
    };
    sum(&terms, weight) + sum(&pairs, pair_weight)
}

fn each_found(query: &Query, text: &str, mut take: impl FnMut(Found)) {
    let mut word = 0;
    let mut before: Option<usize> = None;
    each_word(text, |found, range| {
        let term = query.terms().iter().position(|term| term.matches(found));
        if let Some(term) = term {
            let pair = before.and_then(|left| query.neighbours().iter().position(|it| *it == (left, term)));
            take(Found { term, pair, word, range });
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
    fn what_stands_together_in_order_counts_most() {
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
    fn the_place_is_where_most_of_it_is_not_where_it_begins() {
        let text = format!("port {} the staging port of amber {} staging", "x ".repeat(50), "x ".repeat(50));
        assert_eq!(of("staging port amber", &text).1, "staging port of amber");
    }

    #[test]
    fn what_occurs_nowhere_is_not_missed() {
        let query = Query::parse("what staging port");
        let found = nearest(&query, &[0.0, 1.0, 1.0], "the staging port");
        assert!((found.share - 1.0).abs() < 1e-9, "{found:?}");
        assert!(nearest(&query, &[0.0; 3], "the staging port").range.is_empty(), "nothing is worth anything");
    }
}
