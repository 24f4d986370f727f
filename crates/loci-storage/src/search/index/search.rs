//! Answering a search: lists of the index and a scan of the rest, counted and ranked as one.
//!
//! The score of a passage depends on all passages there are, indexed or not, so it does not matter which is which. What
//! comes from the index is read in its session file before it is handed out; what is not as the index says makes its
//! file unknown, and the search begins again.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::io;

use loci_core::search::{Corpus, Match, Query, Scorer};
use loci_stdx::{in_all_lists, in_parallel, nth_largest};

use super::coverage::{Coverage, IndexableFile};
use super::filter::SearchFilter;
use super::passage_reader::{Body, NO_TIME, Spot, read_spot, voice_of};
use super::phrase::has_in_order;
use super::scan::{Pattern, Scan, ScanMatch, scan};
use super::segment::{List, Segment, damaged};
use super::{Hit, SearchObserver, SearchQuery, SearchResults};

/// How many segments are looked at at once.
const MOST_THREADS: usize = 4;
/// How many passages are read at once, though fewer are wanted: some may turn out not to fit.
const AT_ONCE: usize = 16;
/// From how many on the places of passages are read all at once.
const MANY_PLACES: usize = 4_096;
/// How many more than wanted are ranked at first, for those that turn out not to fit.
const SPARE: usize = 64;

/// Everything a search looks at.
pub(super) struct SearchContext<'a> {
    pub(super) files: &'a [IndexableFile],
    pub(super) segments: &'a [Segment],
    pub(super) coverage: &'a Coverage,
    /// Whether what is not as the index says makes the search begin again, or is passed over.
    pub(super) is_strict: bool,
}

/// Why a search begins again.
pub(super) enum IndexMismatch {
    /// This segment is damaged.
    Segment(usize),
    /// This file is not what the index says.
    File(usize),
}

/// A passage that has what is looked for.
#[derive(Debug, Clone, Copy)]
struct ScoredPassage {
    score: f64,
    time_ms: i64,
    /// The segment and the passage there, or the place among what was scanned.
    segment: Option<u32>,
    number: u32,
}

pub(super) fn search(
    ctx: &SearchContext<'_>,
    query: &SearchQuery,
    pattern: &Pattern,
    observer: &dyn SearchObserver,
) -> Result<SearchResults, IndexMismatch> {
    let scanned = scan(ctx.files, &ctx.coverage.rest, pattern, &query.filter, observer);
    let looked = look_up(ctx, pattern, &query.filter)?;
    let allowed = allowed_files(ctx, &query.filter, &scanned)?;
    let mut corpus = scanned.corpus.clone();
    looked.iter().for_each(|looked| corpus.add(&looked.corpus));
    let scorer = corpus.scorer();
    let scored = scored(ctx, &looked, allowed.as_deref(), &scorer)?;
    Ranking { ctx, scanned: &scanned, scored, allowed, scorer }.results(query, pattern)
}

/// What one segment has.
#[derive(Default)]
struct Looked {
    corpus: Corpus,
    /// Passages with all words, and how often each word is in them, one after another.
    passages: Vec<u32>,
    counts: Vec<u32>,
}

impl Looked {
    /// Leaves out the passages of which `keep` says no.
    fn keep_only(&mut self, keep: &[bool], n_terms: usize) {
        if keep.iter().all(|keep| *keep) {
            return;
        }
        let mut n_kept = 0;
        for idx in (0..keep.len()).filter(|idx| keep[*idx]) {
            self.passages[n_kept] = self.passages[idx];
            self.counts.copy_within(idx * n_terms..(idx + 1) * n_terms, n_kept * n_terms);
            n_kept += 1;
        }
        self.passages.truncate(n_kept);
        self.counts.truncate(n_kept * n_terms);
    }
}

fn look_up(
    ctx: &SearchContext<'_>,
    pattern: &Pattern,
    filter: &SearchFilter,
) -> Result<Vec<Looked>, IndexMismatch> {
    let Pattern::Words(words) = pattern else { return Ok(Vec::new()) };
    let looked = in_parallel(ctx.segments.len(), MOST_THREADS, |idx| {
        let (segment, live) = (&ctx.segments[idx], &ctx.coverage.live[idx]);
        look_up_in(segment, live, words, filter).map_err(|_| IndexMismatch::Segment(idx))
    });
    looked.into_iter().collect()
}

fn look_up_in(
    segment: &Segment,
    live: &[Option<u32>],
    words: &Query,
    filter: &SearchFilter,
) -> io::Result<Looked> {
    let mut looked = Looked::default();
    for (source, _) in segment.outline.sources.iter().zip(live).filter(|(_, live)| live.is_some()) {
        looked.corpus.n_texts += u64::from(source.n_passages);
        looked.corpus.n_words += source.n_words;
    }
    let lists: io::Result<Vec<List>> = words.terms().iter().map(|term| segment.list(term)).collect();
    let lists = lists?;
    let mut columns: Vec<Postings<'_>> = lists.iter().map(Postings::from_list).collect();
    if live.iter().any(Option::is_none) {
        columns = columns.iter().map(|column| column.only_live(segment, live)).collect::<io::Result<_>>()?;
    }
    looked.corpus.n_with_term = columns.iter().map(|column| column.passages.len() as u64).collect();
    (looked.passages, looked.counts) = common(columns);
    narrow_phrases(words, &lists, &mut looked)?;
    narrow(segment, filter, &mut looked, lists.len())?;
    Ok(looked)
}

/// Passages and counts of a list, or of those that count.
struct Postings<'a> {
    passages: Cow<'a, [u32]>,
    counts: Cow<'a, [u32]>,
}

impl<'a> Postings<'a> {
    fn from_list(list: &'a List) -> Self {
        Self { passages: Cow::Borrowed(&list.passages), counts: Cow::Borrowed(&list.counts) }
    }

    fn only_live(&self, segment: &Segment, live: &[Option<u32>]) -> io::Result<Self> {
        let (mut passages, mut counts) = (Vec::new(), Vec::new());
        if self.passages.len() > MANY_PLACES {
            segment.read_places()?;
        }
        for (passage, count) in self.passages.iter().zip(self.counts.iter()) {
            let (source, _) = segment.place(*passage)?;
            if live.get(source as usize).is_some_and(Option::is_some) {
                passages.push(*passage);
                counts.push(*count);
            }
        }
        Ok(Self { passages: passages.into(), counts: counts.into() })
    }
}

/// Returns the passages that are in all lists, and the counts of each list for each of them.
fn common(mut lists: Vec<Postings<'_>>) -> (Vec<u32>, Vec<u32>) {
    if lists.len() <= 1 {
        let only = lists.pop().map(|list| (list.passages.into_owned(), list.counts.into_owned()));
        return only.unwrap_or_default();
    }
    let columns: Vec<(&[u32], &[u32])> = lists.iter().map(|list| (&*list.passages, &*list.counts)).collect();
    in_all_lists(&columns)
}

/// Leaves out the passages in which words of a literal do not follow one another.
fn narrow_phrases(words: &Query, lists: &[List], looked: &mut Looked) -> io::Result<()> {
    for literal in words.literals().iter().filter(|literal| literal.terms.len() > 1) {
        let keep = has_in_order(literal, lists, &looked.passages).ok_or_else(damaged)?;
        looked.keep_only(&keep, lists.len());
    }
    Ok(())
}

/// Leaves out the passages that the filter does not want.
fn narrow(segment: &Segment, filter: &SearchFilter, looked: &mut Looked, n_terms: usize) -> io::Result<()> {
    let mut keep = vec![true; looked.passages.len()];
    let mut sieve = |wants: &dyn Fn(usize) -> bool| {
        for (keep, passage) in keep.iter_mut().zip(&looked.passages) {
            *keep = *keep && wants(*passage as usize);
        }
    };
    if filter.has_times() {
        let times = segment.times()?;
        sieve(&|passage| times.get(passage).is_some_and(|time| filter.wants_time(time)));
    }
    if !filter.voices.is_empty() {
        let voices = segment.voices()?;
        sieve(&|passage| {
            voices.get(passage).and_then(|it| voice_of(*it)).is_some_and(|voice| filter.wants_voice(voice))
        });
    }
    let name = |names: &'_ [String], number: Option<u16>| -> Option<String> {
        names.get(usize::from(number?).checked_sub(1)?).cloned()
    };
    if filter.tool.is_some() {
        let tools = segment.tool_numbers()?;
        sieve(&|passage| filter.wants_tool(name(&segment.outline.tools, tools.get(passage)).as_deref()));
    }
    if filter.branch.is_some() {
        let branches = segment.branch_numbers()?;
        sieve(&|passage| {
            filter.wants_branch(name(&segment.outline.branches, branches.get(passage)).as_deref())
        });
    }
    looked.keep_only(&keep, n_terms);
    Ok(())
}

/// Returns the files whose sessions are wanted, or nothing when all are.
fn allowed_files(
    ctx: &SearchContext<'_>,
    filter: &SearchFilter,
    scanned: &Scan,
) -> Result<Option<Vec<bool>>, IndexMismatch> {
    let mut allowed: Option<Vec<bool>> = None;
    if let Some(sessions) = &filter.sessions {
        allowed = Some(ctx.files.iter().map(|file| sessions.contains(file.session.file())).collect());
    }
    if filter.file.is_some() {
        let touched = touched_sessions(ctx, filter, scanned)?;
        let was = allowed.take();
        let is_allowed = |(idx, file): (usize, &IndexableFile)| {
            touched.contains(file.session.file()) && was.as_ref().is_none_or(|was| was[idx])
        };
        allowed = Some(ctx.files.iter().enumerate().map(is_allowed).collect());
    }
    Ok(allowed)
}

fn touched_sessions(
    ctx: &SearchContext<'_>,
    filter: &SearchFilter,
    scanned: &Scan,
) -> Result<HashSet<std::path::PathBuf>, IndexMismatch> {
    let mut files: HashSet<usize> = scanned.touched.iter().copied().collect();
    for (idx, (segment, live)) in ctx.segments.iter().zip(&ctx.coverage.live).enumerate() {
        let damaged = |_: io::Error| IndexMismatch::Segment(idx);
        for passage in segment.passages_with_file(|path| filter.means_file(path)).map_err(damaged)? {
            let (source, _) = segment.place(passage).map_err(damaged)?;
            files.extend(live.get(source as usize).copied().flatten().map(|file| file as usize));
        }
    }
    Ok(files.into_iter().map(|file| ctx.files[file].session.file().to_owned()).collect())
}

/// Scores the passages of each segment that are allowed. What their order and place are told by is read on the way, since
/// here it can be done on a few threads.
fn scored(
    ctx: &SearchContext<'_>,
    looked: &[Looked],
    allowed: Option<&[bool]>,
    scorer: &Scorer,
) -> Result<Vec<Vec<(f64, u32)>>, IndexMismatch> {
    let scored = in_parallel(looked.len(), MOST_THREADS, |idx| {
        let (segment, live) = (&ctx.segments[idx], &ctx.coverage.live[idx]);
        score_in(segment, live, &looked[idx], allowed, scorer).map_err(|_| IndexMismatch::Segment(idx))
    });
    scored.into_iter().collect()
}

fn score_in(
    segment: &Segment,
    live: &[Option<u32>],
    looked: &Looked,
    allowed: Option<&[bool]>,
    scorer: &Scorer,
) -> io::Result<Vec<(f64, u32)>> {
    if looked.passages.is_empty() {
        return Ok(Vec::new());
    }
    let n_terms = looked.corpus.n_with_term.len().max(1);
    let (lengths, _) = (segment.lengths()?, segment.times()?);
    if looked.passages.len() > MANY_PLACES {
        segment.read_places()?;
    }
    let mut scored = Vec::with_capacity(looked.passages.len());
    let mut idx = 0;
    // A plain loop: there may be a hundred thousand of them.
    while idx < looked.passages.len() {
        let (passage, counts) = (looked.passages[idx], &looked.counts[idx * n_terms..(idx + 1) * n_terms]);
        idx += 1;
        if let Some(allowed) = allowed {
            let (source, _) = segment.place(passage)?;
            let file = live.get(source as usize).copied().flatten();
            if !file.is_some_and(|file| allowed[file as usize]) {
                continue;
            }
        }
        if let Some(n_words) = lengths.get(passage as usize) {
            scored.push((scorer.score(Match { counts, n_words, n_literals: 0 }), passage));
        }
    }
    Ok(scored)
}

struct Ranking<'a> {
    ctx: &'a SearchContext<'a>,
    scanned: &'a Scan,
    /// For each segment its passages and what each is worth.
    scored: Vec<Vec<(f64, u32)>>,
    allowed: Option<Vec<bool>>,
    scorer: Scorer,
}

/// The best of some candidates, in no order, and how many there were.
#[derive(Default)]
struct Best {
    candidates: Vec<ScoredPassage>,
    n_all: usize,
}

impl Ranking<'_> {
    fn is_allowed(&self, file: usize) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed[file])
    }

    /// Returns the best `most` of each segment and everything that was scanned: the best `most` of all are among them.
    fn candidates(&self, most: usize) -> Result<Best, IndexMismatch> {
        let mut best = Best::default();
        for (number, scanned) in
            self.scanned.found.iter().enumerate().filter(|(_, it)| self.is_allowed(it.file))
        {
            let found = Match { counts: &scanned.counts, n_words: scanned.n_words, n_literals: 0 };
            best.candidates.push(ScoredPassage {
                score: self.scorer.score(found),
                time_ms: scanned.time_ms,
                segment: None,
                number: u32::try_from(number).unwrap_or(u32::MAX),
            });
        }
        best.n_all = best.candidates.len();
        let of_segments = in_parallel(self.scored.len(), MOST_THREADS, |idx| self.best_of(idx, most));
        for (idx, of_segment) in of_segments.into_iter().enumerate() {
            best.candidates.extend(of_segment.map_err(|_| IndexMismatch::Segment(idx))?);
            best.n_all += self.scored[idx].len();
        }
        Ok(best)
    }

    fn best_of(&self, idx: usize, most: usize) -> io::Result<Vec<ScoredPassage>> {
        let scored = &self.scored[idx];
        let mut least = f64::NEG_INFINITY;
        if most < scored.len() {
            // Scores are not negative, so their bits are in the same order. Those that score as much as the last of the
            // best may come before it.
            let scores = scored.iter().map(|(score, _)| score.to_bits()).collect();
            least = nth_largest(scores, most).map_or(least, f64::from_bits);
        }
        let segment = u32::try_from(idx).ok();
        if scored.is_empty() {
            return Ok(Vec::new());
        }
        let times = self.ctx.segments[idx].times()?;
        let best = scored.iter().filter(|(score, _)| *score >= least);
        let candidate = |(score, number): &(f64, u32)| {
            let time_ms = times.get(*number as usize).unwrap_or(NO_TIME);
            ScoredPassage { score: *score, time_ms, segment, number: *number }
        };
        Ok(best.map(candidate).collect())
    }

    /// Returns the file of a candidate and its spot there.
    fn place(&self, candidate: &ScoredPassage) -> Result<(usize, Spot), IndexMismatch> {
        let Some(segment) = candidate.segment else {
            let ScanMatch { file, spot, .. } = &self.scanned.found[candidate.number as usize];
            return Ok((*file, *spot));
        };
        let idx = segment as usize;
        let damaged = || IndexMismatch::Segment(idx);
        let (source, spot) = self.ctx.segments[idx].place(candidate.number).map_err(|_| damaged())?;
        let file = self.ctx.coverage.live[idx].get(source as usize).copied().flatten().ok_or_else(damaged)?;
        Ok((file as usize, spot))
    }

    /// The best first; of equals the newest; of those the order of paths.
    fn order(&self, left: &ScoredPassage, right: &ScoredPassage) -> Ordering {
        let by_worth = right.score.total_cmp(&left.score).then(right.time_ms.cmp(&left.time_ms));
        by_worth.then_with(|| match (self.place(left), self.place(right)) {
            (Ok(left), Ok(right)) => left.cmp(&right),
            _ => Ordering::Equal,
        })
    }

    fn results(&self, query: &SearchQuery, pattern: &Pattern) -> Result<SearchResults, IndexMismatch> {
        let n_wanted = query.skip.saturating_add(query.limit);
        let mut n_ranked = n_wanted.saturating_add(SPARE);
        let mut hits = Vec::new();
        let (mut n_taken, mut n_wrong) = (0, 0);
        let n_all = loop {
            let Best { candidates: mut best, n_all } = self.candidates(n_ranked)?;
            n_ranked = n_ranked.min(n_all);
            if n_ranked < best.len() {
                best.select_nth_unstable_by(n_ranked, |left, right| self.order(left, right));
            }
            best.truncate(n_ranked);
            best.sort_unstable_by(|left, right| self.order(left, right));
            while n_taken < n_ranked && hits.len() < n_wanted {
                // Where many do not fit, more are read at once.
                let n_read = (n_wanted - hits.len()).max(AT_ONCE).max(n_wrong / 2).min(n_ranked - n_taken);
                let read = in_parallel(n_read, MOST_THREADS, |idx| self.hit(&best[n_taken + idx], pattern));
                // Those after the last that is wanted were read for nothing, and do not count.
                for hit in read {
                    if hits.len() == n_wanted {
                        break;
                    }
                    match hit? {
                        Some(hit) => hits.push(hit),
                        None => n_wrong += 1,
                    }
                    n_taken += 1;
                }
            }
            if n_taken < n_ranked || n_ranked == n_all {
                break n_all;
            }
            n_ranked = n_ranked.saturating_mul(4);
        };
        Ok(SearchResults {
            n_found: n_all - n_wrong,
            is_exact: n_wrong == 0 && !has_literals(pattern) || n_taken == n_all,
            hits: hits.into_iter().skip(query.skip).collect(),
            unread: self.scanned.unread.iter().map(|file| self.ctx.files[*file].file().to_owned()).collect(),
            is_whole: true,
        })
    }

    /// Returns the tool whose call or result a candidate is.
    fn tool_of(&self, candidate: &ScoredPassage) -> Option<String> {
        let Some(segment) = candidate.segment else {
            return self.scanned.found[candidate.number as usize].tool.clone();
        };
        let segment = &self.ctx.segments[segment as usize];
        let number = segment.tool_numbers().ok()?.get(candidate.number as usize)?;
        segment.outline.tools.get(usize::from(number).checked_sub(1)?).cloned()
    }

    fn not_there(&self, file: usize) -> Result<Option<Hit>, IndexMismatch> {
        if self.ctx.is_strict { Err(IndexMismatch::File(file)) } else { Ok(None) }
    }

    /// Reads a candidate's words; `None` when they are not as the query wants them.
    fn hit(&self, candidate: &ScoredPassage, pattern: &Pattern) -> Result<Option<Hit>, IndexMismatch> {
        let (file, spot) = self.place(candidate)?;
        let on_disk = &self.ctx.files[file];
        let read = Body::open(on_disk).and_then(|body| read_spot(&body, spot));
        let Ok(Some((entry, mut passage))) = read else { return self.not_there(file) };
        match pattern {
            Pattern::Words(words) => {
                let mut counts = Vec::new();
                words.count(&passage.text, &mut counts);
                if counts.contains(&0) {
                    return self.not_there(file);
                }
                if !words.has_literals(&passage.text) {
                    return Ok(None);
                }
            }
            Pattern::Expression(_) => {}
        }
        passage.tool = passage.tool.or_else(|| self.tool_of(candidate));
        Ok(Some(Hit {
            session: on_disk.session.clone(),
            agent: on_disk.agent.as_ref().map(|(agent, _)| agent.clone()),
            is_archived: on_disk.pack.is_some(),
            message: entry.head().uuid.as_ref().map(|uuid| uuid.to_string()),
            time: entry.head().timestamp.as_deref().map(str::to_owned),
            score: candidate.score,
            passage,
        }))
    }
}

fn has_literals(pattern: &Pattern) -> bool {
    matches!(pattern, Pattern::Words(words) if !words.literals().is_empty())
}
