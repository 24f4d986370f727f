//! Looking up earlier messages of a session in its own file, those before compactions too. A fork of a compacted
//! conversation is looked up in the files it was forked from as well ([`lineage`]).
//!
//! The file is read once, a part at a time on a few threads ([`scan`]), and of each passage that has a word of the query
//! only a few numbers are kept: how rare a word is shows only at the end. The best are then read again, and how much of
//! the query stands together in them decides. What the model no longer sees comes first, but every fourth place is for
//! what it still sees. What was asked of this very lookup, and what it answered, is not among what is found: it would
//! always be the best answer to itself.

mod lineage;
mod project;
mod quote;
mod scan;
mod stretch;

use std::collections::{HashSet, VecDeque};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use loci_core::entry::Entry;
use loci_core::ids::EntryId;
use loci_core::passage::{CallNames, Passage, Voice, passages};
use loci_core::recall::{RecallHit, RecallPlace, RecallQuery, RecallResult, RecallSearch, RecallSource};
use loci_core::search::{Corpus, Match, Query, Scorer, nearest, part_around};

use crate::sessions::session_file::{LoadError, LoadedTranscript, read_line};
use lineage::ancestors;
pub use project::ProjectRecord;
use quote::quote;
use scan::{MatchCandidate, ScannedPart, each_part};
use stretch::Stretch;

/// The tool whose own calls and results are left out.
pub const RECALL_TOOL: &str = "Recall";
/// What a passage that the model still sees counts, and one that only summarises.
const IN_VIEW: f64 = 0.5;
const SUMMARY: f64 = 0.4;
/// Every how many places one is for what the model still sees.
const PLACE_IN_VIEW: usize = 4;
/// How many passages are read again, and how many bytes of them at most.
const MOST_COMPARED: usize = 256;
const MOST_COMPARED_BYTES: usize = 32 << 20;
/// Which of the stretches is the session's own file.
const OWN: usize = 0;
/// What the words of a whole passage count beside those that stand together in it.
const WHOLE: f64 = 0.1;

/// Looks up what is asked for in a session file; `stop` ends it early, with what was found up to there.
pub fn recall(file: &Path, wish: &RecallQuery, stop: &AtomicBool) -> Result<RecallResult, LoadError> {
    let failed = |source| LoadError { path: file.to_owned(), source };
    let own = Stretch::whole(file).map_err(failed)?;
    match wish {
        RecallQuery::Search(search) | RecallQuery::SearchProject(search) => {
            let stretches: Vec<Stretch> = std::iter::once(own).chain(ancestors(file, stop)).collect();
            find(&stretches, search, stop).map_err(failed)
        }
        RecallQuery::Quote { message, offset, limit }
        | RecallQuery::QuoteFrom { message, offset, limit, .. } => {
            let quoted = quote(&own, message, *offset, *limit, stop).map_err(failed)?;
            if quoted != NOWHERE {
                return Ok(quoted);
            }
            let elsewhere = ancestors(file, stop);
            let mut elsewhere =
                elsewhere.iter().filter_map(|it| quote(it, message, *offset, *limit, stop).ok());
            Ok(elsewhere.find(|quoted| *quoted != NOWHERE).unwrap_or(NOWHERE))
        }
    }
}

const NOWHERE: RecallResult = RecallResult::NoSuchMessage { n_matching: 0 };

#[derive(Default)]
struct RecallRun {
    names: CallNames,
    corpus: Corpus,
    candidates: Vec<MatchCandidate>,
    known: HashSet<(EntryId, usize)>,
    /// Where the last compaction lies, and what it preserved.
    boundary: u64,
    preserved: HashSet<EntryId>,
}

/// Finds messages in a conversation's own file, the first of the stretches, and in those it was in before.
fn find(stretches: &[Stretch], wish: &RecallSearch, stop: &AtomicBool) -> io::Result<RecallResult> {
    let query = Query::parse(&wish.query);
    let mut search = RecallRun::default();
    search.corpus.n_with_term = vec![0; query.terms().len()];
    for (idx, stretch) in stretches.iter().enumerate() {
        each_part(stretch, &query, wish.voice, stop, |scanned| search.add(idx, scanned, wish.voice))?;
    }
    search.results(stretches, &query, wish)
}

impl RecallRun {
    /// Adds what the next part of a stretch has. Which tool a result is of shows only here, where the call is known.
    fn add(&mut self, stretch: usize, scanned: ScannedPart, voice: Option<Voice>) {
        if let Some((offset, preserved)) = scanned.boundary.filter(|_| stretch == OWN) {
            (self.boundary, self.preserved) = (offset, preserved);
        }
        for mut seen in scanned.seen {
            self.names.complete(&mut seen.passage);
            let is_own = seen.passage.tool.as_deref() == Some(RECALL_TOOL);
            if is_own || voice.is_some_and(|voice| voice != seen.passage.voice) {
                continue;
            }
            self.corpus.n_texts += 1;
            self.corpus.n_words += u64::from(seen.n_words);
            let Some(mut candidate) = seen.candidate else { continue };
            if !self.known.insert((candidate.uuid.clone(), candidate.part)) {
                continue;
            }
            for (sum, count) in self.corpus.n_with_term.iter_mut().zip(&candidate.counts) {
                *sum += u64::from(*count > 0);
            }
            (candidate.stretch, candidate.tool) = (stretch, seen.passage.tool);
            self.candidates.push(candidate);
        }
    }

    fn is_compacted(&self, candidate: &MatchCandidate) -> bool {
        candidate.stretch != OWN
            || candidate.span.offset < self.boundary && !self.preserved.contains(&candidate.uuid)
    }

    /// Scores a passage by its words alone.
    fn score(scorer: &Scorer, candidate: &MatchCandidate) -> f64 {
        let found =
            Match { counts: &candidate.counts, n_words: candidate.n_words, n_literals: candidate.n_literals };
        // A question repeats how something was said: words in its order count for more than the same words strewn about.
        scorer.score(found) * (1.0 + candidate.n_neighbours as f64)
    }

    /// Returns what each term is worth; one that occurs nowhere cannot be missed.
    fn weights(&self, scorer: &Scorer) -> Vec<f64> {
        let known = self.corpus.n_with_term.iter().map(|n_with| *n_with > 0);
        scorer.weights().iter().zip(known).map(|(weight, known)| if known { *weight } else { 0.0 }).collect()
    }

    fn results(&self, stretches: &[Stretch], query: &Query, wish: &RecallSearch) -> io::Result<RecallResult> {
        let scorer = self.corpus.scorer();
        let weights = self.weights(&scorer);
        let ranked = self.ranked(stretches, query, &scorer, &weights)?;
        let mut hits = Vec::new();
        for candidate in ranked.into_iter().skip(wish.skip).take(wish.limit) {
            let Some((entry, passage)) = read_again(stretches, candidate)? else { continue };
            let text = &passage.text;
            let range = part_around(text, &nearest(query, &weights, text).range, wish.excerpt);
            hits.push(RecallHit {
                source: source(&entry, passage.voice, candidate.tool.clone()),
                excerpt: text[range.clone()].to_owned(),
                offset: text[..range.start].chars().count(),
                n_chars: text.chars().count(),
                is_compacted: self.is_compacted(candidate),
            });
        }
        Ok(RecallResult::Found {
            n_found: self.candidates.len(),
            n_searched: usize::try_from(self.corpus.n_texts).unwrap_or(usize::MAX),
            hits,
        })
    }

    /// Puts the candidates in order: by how much of the query stands together in them, as far as they are read again.
    fn ranked(
        &self,
        stretches: &[Stretch],
        query: &Query,
        scorer: &Scorer,
        weights: &[f64],
    ) -> io::Result<Vec<&MatchCandidate>> {
        let mut ranked: Vec<(f64, &MatchCandidate)> =
            self.candidates.iter().map(|candidate| (Self::score(scorer, candidate), candidate)).collect();
        sort(&mut ranked);
        let best = ranked.first().map_or(1.0, |(score, _)| score.max(f64::MIN_POSITIVE));
        let mut n_bytes = 0;
        for (idx, (score, candidate)) in ranked.iter_mut().enumerate() {
            *score *= WHOLE / best;
            n_bytes += candidate.span.len;
            if idx < MOST_COMPARED
                && n_bytes <= MOST_COMPARED_BYTES
                && let Some((_, passage)) = read_again(stretches, candidate)?
            {
                *score += nearest(query, weights, &passage.text).share;
            }
            let is_summary = candidate.voice == Voice::Summary;
            *score *= if is_summary { SUMMARY } else { 1.0 };
            *score *= if self.is_compacted(candidate) { 1.0 } else { IN_VIEW };
        }
        sort(&mut ranked);
        Ok(self.mixed(ranked.into_iter().map(|(_, candidate)| candidate)))
    }

    /// Gives every so many places to what the model still sees, best first, so that it is not crowded out.
    fn mixed<'a>(&self, ranked: impl Iterator<Item = &'a MatchCandidate>) -> Vec<&'a MatchCandidate> {
        let (mut gone, mut seen): (VecDeque<_>, VecDeque<_>) =
            ranked.enumerate().partition(|(_, candidate)| self.is_compacted(candidate));
        let n_all = gone.len() + seen.len();
        let places = (1..=n_all).filter_map(|place| {
            let takes_seen = match (gone.front(), seen.front()) {
                (Some((gone, _)), Some((seen, _))) => place % PLACE_IN_VIEW == 0 || seen < gone,
                (None, _) => true,
                (Some(_), None) => false,
            };
            let next = if takes_seen { seen.pop_front() } else { gone.pop_front() };
            next.map(|(_, candidate)| candidate)
        });
        places.collect()
    }
}

/// Best first; of two equal answers the newer.
fn sort(ranked: &mut [(f64, &MatchCandidate)]) {
    let place = |it: &MatchCandidate| (std::cmp::Reverse(it.stretch), it.span.offset);
    ranked.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| place(right.1).cmp(&place(left.1))));
}

/// Reads a candidate's passage; `None` when the file has changed under our hands.
fn read_again(stretches: &[Stretch], candidate: &MatchCandidate) -> io::Result<Option<(Entry, Passage)>> {
    let Some(stretch) = stretches.get(candidate.stretch) else { return Ok(None) };
    let mut bytes = vec![0; candidate.span.len];
    stretch.file.read_exact_at(&mut bytes, candidate.span.offset)?;
    let mut loaded = LoadedTranscript::default();
    read_line(loci_stdx::Line { offset: 0, bytes: &bytes, terminated: true }, &mut loaded);
    let Some(entry) = loaded.entries.get(candidate.entry) else { return Ok(None) };
    let passage = passages(entry).into_iter().nth(candidate.part);
    Ok(passage.map(|passage| (Entry::clone(entry), passage)))
}

fn source(entry: &Entry, voice: Voice, tool: Option<String>) -> RecallSource {
    let head = entry.head();
    RecallSource {
        message: head.uuid.as_ref().map(|uuid| uuid.to_string()).unwrap_or_default(),
        voice,
        tool,
        time: head.timestamp.as_deref().map(str::to_owned),
        place: RecallPlace::Here,
    }
}
