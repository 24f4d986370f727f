//! Searching what the index does not know: files are read, and every passage is looked at.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use loci_core::search::{Corpus, Query};
use regex::Regex;

use super::SearchObserver;
use super::coverage::{IndexableFile, UnindexedTail};
use super::filter::SearchFilter;
use super::passage_reader::{Body, LastLine, LocatedPassage, Spot, each_passage};

/// How many read at once.
const MOST_READERS: usize = 4;

/// What is looked for.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    /// Words, all of which must be there.
    Words(Query),
    /// An expression that must match somewhere.
    Expression(Regex),
}

/// A passage that has what is looked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScanMatch {
    pub(super) file: usize,
    pub(super) spot: Spot,
    pub(super) time_ms: i64,
    pub(super) n_words: u32,
    pub(super) counts: Vec<u32>,
    pub(super) tool: Option<String>,
}

/// What a scan found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) corpus: Corpus,
    pub(super) found: Vec<ScanMatch>,
    /// Files in which a call names the file that is wanted.
    pub(super) touched: Vec<usize>,
    /// Files that could not be read.
    pub(super) unread: Vec<usize>,
}

impl Scan {
    fn add(&mut self, other: Self) {
        self.corpus.add(&other.corpus);
        self.found.extend(other.found);
        self.touched.extend(other.touched);
        self.unread.extend(other.unread);
    }
}

/// Scans the rests of files with a few threads.
pub(super) fn scan(
    files: &[IndexableFile],
    rests: &[UnindexedTail],
    pattern: &Pattern,
    filter: &SearchFilter,
    observer: &dyn SearchObserver,
) -> Scan {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Scan::default());
    let n_readers = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS);
    let read = || {
        let mut mine = Scan::default();
        while let Some(rest) = rests.get(next.fetch_add(1, Ordering::Relaxed)) {
            if observer.is_stopped() {
                break;
            }
            if scan_rest(&files[rest.file], rest, pattern, filter, &mut mine).is_err() {
                mine.unread.push(rest.file);
            }
        }
        all.lock().unwrap_or_else(PoisonError::into_inner).add(mine);
    };
    std::thread::scope(|scope| {
        for _ in 1..n_readers.min(rests.len()) {
            // Without another thread this one does all the work.
            drop(std::thread::Builder::new().spawn_scoped(scope, read));
        }
        read();
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn scan_rest(
    on_disk: &IndexableFile,
    rest: &UnindexedTail,
    pattern: &Pattern,
    filter: &SearchFilter,
    scan: &mut Scan,
) -> io::Result<()> {
    let body = Body::open(on_disk)?;
    let mut counts = Vec::new();
    let mut corpus = Corpus::default();
    if let Pattern::Words(words) = pattern {
        corpus.n_with_term = vec![0; words.terms().len()];
    }
    each_passage(&body, rest.start, body.end(on_disk), LastLine::Read, rest.calls.clone(), |located| {
        if located.passage.files.iter().any(|path| filter.means_file(path)) {
            scan.touched.push(rest.file);
        }
        if let Some(n_words) = scan_file(&located, pattern, &mut counts, &mut corpus)
            && is_wanted(&located, filter)
        {
            scan.found.push(ScanMatch {
                file: rest.file,
                spot: located.spot,
                time_ms: located.time_ms,
                n_words,
                counts: counts.clone(),
                tool: located.passage.tool,
            });
        }
        true
    })?;
    scan.corpus.add(&corpus);
    Ok(())
}

/// Counts a passage, and returns how many words it has if it has what is looked for.
fn scan_file(
    located: &LocatedPassage<'_>,
    pattern: &Pattern,
    counts: &mut Vec<u32>,
    corpus: &mut Corpus,
) -> Option<u32> {
    let text = &located.passage.text;
    match pattern {
        Pattern::Expression(expression) => expression.is_match(text).then_some(0),
        Pattern::Words(words) => {
            let n_words = words.count(text, counts);
            corpus.n_texts += 1;
            corpus.n_words += u64::from(n_words);
            for (sum, count) in corpus.n_with_term.iter_mut().zip(counts.iter()) {
                *sum += u64::from(*count > 0);
            }
            counts.iter().all(|count| *count > 0).then_some(n_words)
        }
    }
}

fn is_wanted(located: &LocatedPassage<'_>, filter: &SearchFilter) -> bool {
    filter.wants_time(located.time_ms)
        && filter.wants_voice(located.passage.voice)
        && filter.wants_tool(located.passage.tool.as_deref())
        && filter.wants_branch(located.branch)
}
