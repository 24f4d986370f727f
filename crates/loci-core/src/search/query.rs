//! What is searched for.
//!
//! Words separated by spaces; `"words in quotes"` must stand in the text as they are, letters' case aside; so must a
//! word with signs inside, such as `src/main.rs`; a star at a word's end stands for any ending.

use super::words::{each_word, words};

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
}

/// A query, understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    terms: Vec<Term>,
    literals: Vec<Literal>,
    /// Terms that follow one another in the query, as places among the terms.
    neighbours: Vec<(usize, usize)>,
    last: Option<usize>,
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
            for (term, count) in self.terms.iter().zip(counts.iter_mut()) {
                *count += u32::from(term.matches(word));
            }
        });
        n_words
    }

    /// Returns how many of the literals stand in the text; `None` when one in quotes does not.
    pub fn n_literals(&self, text: &str) -> Option<usize> {
        if self.literals.is_empty() {
            return Some(0);
        }
        let text = text.to_lowercase();
        let mut n_found = 0;
        for literal in &self.literals {
            match (text.contains(&literal.text), literal.is_quoted) {
                (true, _) => n_found += 1,
                (false, true) => return None,
                (false, false) => {}
            }
        }
        Some(n_found)
    }

    /// Counts the pairs of words that follow one another both in the query and somewhere in the text.
    pub fn n_neighbours(&self, text: &str) -> usize {
        let mut found = vec![false; self.neighbours.len()];
        let mut before = None;
        each_word(text, |word, _| {
            let at = self.terms.iter().position(|term| term.matches(word));
            for (pair, found) in self.neighbours.iter().zip(&mut found) {
                *found |= before == Some(pair.0) && at == Some(pair.1);
            }
            before = at;
        });
        found.into_iter().filter(|found| *found).count()
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
        self.add_words(part);
        self.literals.push(Literal { text, is_quoted: true });
    }

    fn add_chunk(&mut self, chunk: &str) {
        let found = words(chunk);
        if let ([only], true) = (found.as_slice(), chunk.ends_with('*')) {
            return self.add_term(Term { text: only.clone(), is_prefix: true });
        }
        self.add_words(chunk);
        if found.len() > 1 {
            let text = chunk.trim_matches(|char: char| !char.is_alphanumeric()).to_lowercase();
            self.literals.push(Literal { text, is_quoted: false });
        }
    }

    fn add_words(&mut self, text: &str) {
        for word in words(text) {
            self.add_term(Term { text: word, is_prefix: false });
        }
    }

    fn add_term(&mut self, term: Term) {
        let at = self.terms.iter().position(|known| *known == term).unwrap_or(self.terms.len());
        if at == self.terms.len() {
            self.terms.push(term);
        }
        if let Some(pair) = self.last.map(|last| (last, at)).filter(|pair| !self.neighbours.contains(pair)) {
            self.neighbours.push(pair);
        }
        self.last = Some(at);
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

    fn shown(query: &str) -> String {
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
            assert_eq!(shown(query), expected, "{query}");
        }
    }

    #[test]
    fn occurrences_are_counted() {
        let query = Query::parse("data* port");
        let mut counts = Vec::new();
        assert_eq!(query.count("Database port, data: PORT 9", &mut counts), 5);
        assert_eq!(counts, [2, 2]);
    }

    #[test]
    fn words_that_follow_one_another_are_noticed() {
        let query = Query::parse("what was the port of the amber falcon");
        for (text, expected) in [
            ("The port of the amber falcon cluster is 9.", 5),
            ("falcon amber, of port", 0),
            ("what was it? the amber port", 2),
            ("", 0),
        ] {
            assert_eq!(query.n_neighbours(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_in_quotes_must_be_there() {
        let query = Query::parse("\"a  b\" x.y");
        for (text, expected) in [("A  B X.Y", Some(2)), ("a  b", Some(1)), ("a b x.y", None)] {
            assert_eq!(query.n_literals(text), expected, "{text}");
        }
    }
}
