//! Searching what was said: words, queries, scores and excerpts. All of it works on plain text, so that a scan of a
//! file and an index of many files give the same answers.

mod nearest;
mod query;
mod score;
mod snippet;
mod words;

pub use nearest::{Nearest, nearest};
pub use query::{Literal, Query, Tally, Term};
pub use score::{Corpus, Match, Scorer};
pub use snippet::{Snippet, part_around, snippet};
pub use words::{MAX_WORD, each_word, words};
