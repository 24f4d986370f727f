//! What is searched for.
//!
//! Words separated by spaces; `"words in quotes"` must stand in the text as they are, letters' case aside, and as whole
//! words; so must a word with signs inside, such as `src/main.rs`; a star at a word's end stands for any ending.

use super::words::{each_word, is_ideograph, words};

/// A word to find.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Term {
    /// The word, in lower case.
    pub text: String,
    /// Whether any ending will do.
    pub is_prefix: bool,
}

/// A piece of text to find as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal {
    /// The text, in lower case.
    pub text: String,
    /// Whether it was put in quotes.
    pub is_quoted: bool,
    /// Its words in order, as places among the terms.
    pub terms: Vec<usize>,
}

impl Literal {
    /// Returns true when a text in lower case has it, not as a part of longer words.
    fn stands_in(&self, text: &str) -> bool {
        let (Some(first), Some(last)) = (self.text.chars().next(), self.text.chars().next_back()) else {
            return true;
        };
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| rest.find(&self.text)) {
            let (start, end) = (from + found, from + found + self.text.len());
            let before = text[..start].chars().next_back();
            let after = text[end..].chars().next();
            let is_part = before.is_some_and(|it| is_one_word(it, first))
                || after.is_some_and(|it| is_one_word(last, it));
            if !is_part {
                return true;
            }
            from = start + first.len_utf8();
        }
        false
    }
}

/// Tells whether two letters that follow one another are of one word.
fn is_one_word(left: char, right: char) -> bool {
    let is_letter = |it: char| it.is_alphanumeric() && !is_ideograph(it);
    is_letter(left) && is_letter(right)
}

/// A query, understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    terms: Vec<Term>,
    literals: Vec<Literal>,
    /// Terms that follow one another in the query, as places among the terms.
    neighbours: Vec<(usize, usize)>,
    last: Option<usize>,
    /// The terms by their first byte, so that most words of a text are compared with none.
    by_first: Vec<Vec<usize>>,
}

/// What of a query a text has; to be used again for the next text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often each term occurs.
    pub counts: Vec<u32>,
    /// How many words the text has.
    pub n_words: u32,
    /// Which of the query's pairs of neighbours follow one another somewhere in the text, too.
    pairs: Vec<bool>,
}

impl Tally {
    /// Returns true when the text has no word of the query.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }

    /// Returns how many pairs of words follow one another as they do in the query.
    pub fn n_neighbours(&self) -> usize {
        self.pairs.iter().filter(|found| **found).count()
    }
}

impl Query {
    /// Reads a query.
    pub fn parse(text: &str) -> Self {
        let mut query = Self::default();
        for (idx, part) in text.split('"').enumerate() {
            if idx % 2 == 1 {
                query.add_quoted(part);
            } else {
                part.split_whitespace().for_each(|chunk| query.add_chunk(chunk));
            }
        }
        query
    }

    /// Returns the words, each once.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Returns the pieces of text to find as they are.
    pub fn literals(&self) -> &[Literal] {
        &self.literals
    }

    /// Returns which terms follow one another in the query, as places among the terms.
    pub fn neighbours(&self) -> &[(usize, usize)] {
        &self.neighbours
    }

    /// Returns true when there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.literals.is_empty()
    }

    /// Counts how often each term occurs, and how many words the text has.
    pub fn count(&self, text: &str, counts: &mut Vec<u32>) -> u32 {
        counts.clear();
        counts.resize(self.terms.len(), 0);
        let mut n_words = 0;
        each_word(text, |word, _| {
            n_words += 1;
            self.each_match(word, |term| counts[term] += 1);
        });
        n_words
    }

    /// Counts what of the query a text has, in one pass over its words.
    pub fn tally(&self, text: &str, tally: &mut Tally) {
        tally.counts.clear();
        tally.counts.resize(self.terms.len(), 0);
        tally.pairs.clear();
        tally.pairs.resize(self.neighbours.len(), false);
        tally.n_words = 0;
        let mut before = None;
        each_word(text, |word, _| {
            tally.n_words += 1;
            let at = self.each_match(word, |term| tally.counts[term] += 1);
            if let (Some(left), Some(right)) = (before, at) {
                let pairs = self.neighbours.iter().zip(&mut tally.pairs);
                pairs.for_each(|(pair, found)| *found |= *pair == (left, right));
            }
            before = at;
        });
    }

    /// Returns the first term that a word of a text matches.
    pub(super) fn term_of(&self, word: &str) -> Option<usize> {
        self.each_match(word, |_| {})
    }

    /// Hands out the terms that a word matches and returns the first of them.
    fn each_match(&self, word: &str, mut take: impl FnMut(usize)) -> Option<usize> {
        let first = usize::from(*word.as_bytes().first()?);
        let mut found = None;
        for &term in self.by_first.get(first).into_iter().flatten() {
            if self.terms[term].matches(word) {
                take(term);
                found = found.or(Some(term));
            }
        }
        found
    }

    /// Returns how many of the literals stand in the text; `None` when one in quotes does not.
    pub fn n_literals(&self, text: &str) -> Option<usize> {
        if self.literals.is_empty() {
            return Some(0);
        }
        let text = text.to_lowercase();
        let mut n_found = 0;
        for literal in &self.literals {
            match (literal.stands_in(&text), literal.is_quoted) {
                (true, _) => n_found += 1,
                (false, true) => return None,
                (false, false) => {}
            }
        }
        Some(n_found)
    }

    /// Returns true when every literal stands in the text.
    pub fn has_literals(&self, text: &str) -> bool {
        self.literals.is_empty() || self.n_literals(text) == Some(self.literals.len())
    }

    fn add_quoted(&mut self, part: &str) {
        let text = part.trim().to_lowercase();
        if text.is_empty() {
            return;
        }
        let terms = self.add_words(part);
        self.literals.push(Literal { text, is_quoted: true, terms });
    }

    fn add_chunk(&mut self, chunk: &str) {
        let found = words(chunk);
        if let ([only], true) = (found.as_slice(), chunk.ends_with('*')) {
            self.add_term(Term { text: only.clone(), is_prefix: true });
            return;
        }
        let terms = self.add_words(chunk);
        if found.len() > 1 {
            let text = chunk.trim_matches(|char: char| !char.is_alphanumeric()).to_lowercase();
            self.literals.push(Literal { text, is_quoted: false, terms });
        }
    }

    fn add_words(&mut self, text: &str) -> Vec<usize> {
        words(text).into_iter().map(|word| self.add_term(Term { text: word, is_prefix: false })).collect()
    }

    /// Adds a term, unless it is there, and returns its place.
    fn add_term(&mut self, term: Term) -> usize {
        let at = self.terms.iter().position(|known| *known == term).unwrap_or(self.terms.len());
        if at == self.terms.len() {
            self.by_first.resize_with(256, Vec::new);
            let first = term.text.as_bytes().first().copied().unwrap_or_default();
            self.by_first[usize::from(first)].push(at);
            self.terms.push(term);
        }
        if let Some(pair) = self.last.map(|last| (last, at)).filter(|pair| !self.neighbours.contains(pair)) {
            self.neighbours.push(pair);
        }
        self.last = Some(at);
        at
    }
}

impl Term {
    /// Returns true when a word of a text is meant.
    pub fn matches(&self, word: &str) -> bool {
        if self.is_prefix { word.starts_with(&self.text) } else { word == self.text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(query: &str) -> String {
        let query = Query::parse(query);
        let term = |term: &Term| format!("{}{}", term.text, if term.is_prefix { "*" } else { "" });
        let literal = |it: &Literal| {
            if it.is_quoted { format!("\"{}\"", it.text) } else { format!("({})", it.text) }
        };
        let parts: Vec<String> =
            query.terms.iter().map(term).chain(query.literals.iter().map(literal)).collect();
        parts.join(" ")
    }

    #[test]
    fn queries_are_understood() {
        for (query, expected) in [
            ("", ""),
            ("Staging port?", "staging port"),
            ("port PORT", "port"),
            ("src/main.rs", "src main rs (src/main.rs)"),
            ("\"exact Words\" more", "exact words more \"exact words\""),
            ("data*", "data*"),
            ("\"unclosed quote", "unclosed quote \"unclosed quote\""),
            ("\"\" --", ""),
            ("日本", "日 本 (日本)"),
        ] {
            assert_eq!(render(query), expected, "{query}");
        }
    }

    #[test]
    fn occurrences_are_counted() {
        let query = Query::parse("data* port data");
        let (mut tally, mut counts) = (Tally::default(), Vec::new());
        query.tally("Database port, data: PORT 9", &mut tally);
        assert_eq!((tally.n_words, tally.counts.as_slice()), (5, [2, 2, 1].as_slice()));
        assert_eq!(query.count("Database port, data: PORT 9", &mut counts), tally.n_words);
        assert_eq!(counts, tally.counts);
        query.tally("nothing", &mut tally);
        assert!(tally.is_empty() && tally.n_words == 1);
    }

    #[test]
    fn words_that_follow_one_another_are_noticed() {
        let query = Query::parse("what was the port of the amber falcon");
        let mut tally = Tally::default();
        for (text, expected) in [
            ("The port of the amber falcon cluster is 9.", 5),
            ("falcon amber, of port", 0),
            ("what was it? the amber port", 2),
            ("", 0),
        ] {
            query.tally(text, &mut tally);
            assert_eq!(tally.n_neighbours(), expected, "{text}");
        }
    }

    #[test]
    fn quoted_phrase_must_occur() {
        let query = Query::parse("\"a  b\" x.y");
        for (text, expected) in [
            ("A  B X.Y", Some(2)),
            ("a  b", Some(1)),
            ("a b x.y", None),
            ("ba  b x.y", None),
            ("a  bc, a  b", Some(1)),
            ("a  b wx.y x.yz", Some(1)),
        ] {
            assert_eq!(query.n_literals(text), expected, "{text}");
        }
        assert!(Query::parse("日本").has_literals("日本語"));
        assert_eq!(Query::parse("x \"a x b\"").literals()[0].terms, [1, 0, 2]);
    }
}
