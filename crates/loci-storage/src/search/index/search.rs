//! Answering a search: lists of the index and a scan of the rest, counted and ranked as one.
//!
//! The score of a passage depends on all passages there are, indexed or not, so it does not matter which is which. What
//! comes from the index is read in its session file before it is handed out; what is not as the index says makes its
//! file unknown, and the search begins again.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::io;

use loci_core::search::{Match, Scorer};
use loci_stdx::{in_parallel, in_parallel_with};

use super::coverage::{Coverage, IndexableFile};
use super::filter::SearchFilter;
use super::passage_reader::{Body, Spot, read_spot};
use super::scan::{Pattern, Scan, ScanMatch, scan};
use super::segment::Segment;
use super::walk::{SegmentBest, SegmentLists, SegmentWalk, WalkRoom};
use super::{Hit, SearchObserver, SearchQuery, SearchResults};

/// How many segments are looked at at once.
const MOST_THREADS: usize = 4;
/// How many passages are read at once, though fewer are wanted: some may turn out not to fit.
const AT_ONCE: usize = 16;
/// From how many on the places of passages are read all at once.
const MANY_PLACES: usize = 4_096;
/// How many more than wanted are ranked at first, for those that turn out not to fit.
const SPARE: usize = 64;
/// How many times as many are kept where words must stand together: what is between them is told by reading only.
const SPARE_LITERALS: usize = 16;

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
    let lists = read_lists(ctx, pattern)?;
    let allowed = allowed_files(ctx, &query.filter, &scanned)?;
    let mut corpus = scanned.corpus.clone();
    lists.iter().for_each(|lists| corpus.add(&lists.corpus));
    let scorer = corpus.scorer();
    Ranking { ctx, pattern, filter: &query.filter, scanned: &scanned, lists, allowed, scorer }.results(query)
}

fn read_lists(ctx: &SearchContext<'_>, pattern: &Pattern) -> Result<Vec<SegmentLists>, IndexMismatch> {
    let Pattern::Words(words) = pattern else { return Ok(Vec::new()) };
    let lists = in_parallel(ctx.segments.len(), MOST_THREADS, |idx| {
        let (segment, live) = (&ctx.segments[idx], &ctx.coverage.live[idx]);
        SegmentLists::read(segment, live, words).map_err(|_| IndexMismatch::Segment(idx))
    });
    lists.into_iter().collect()
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
            files.extend(live.get(segment.source_of(passage)).copied().flatten().map(|file| file as usize));
        }
    }
    Ok(files.into_iter().map(|file| ctx.files[file].session.file().to_owned()).collect())
}

struct Ranking<'a> {
    ctx: &'a SearchContext<'a>,
    pattern: &'a Pattern,
    filter: &'a SearchFilter,
    scanned: &'a Scan,
    /// What each segment has of the words.
    lists: Vec<SegmentLists>,
    allowed: Option<Vec<bool>>,
    scorer: Scorer,
}

/// The best of each segment.
struct BestOfSegments {
    /// As many of each as this, at least.
    most: usize,
    segments: Vec<SegmentBest>,
}

impl Ranking<'_> {
    fn is_allowed(&self, file: usize) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed[file])
    }

    /// Walks over the lists of all segments and keeps the best `most` of each.
    fn best_of_segments(&self, most: usize) -> Result<BestOfSegments, IndexMismatch> {
        let Pattern::Words(words) = self.pattern else {
            return Ok(BestOfSegments { most: usize::MAX, segments: Vec::new() });
        };
        let best = in_parallel_with(self.lists.len(), MOST_THREADS, WalkRoom::default, |room, idx| {
            let walk = SegmentWalk {
                segment: &self.ctx.segments[idx],
                live: &self.ctx.coverage.live[idx],
                allowed: self.allowed.as_deref(),
                words,
                filter: self.filter,
                scorer: &self.scorer,
            };
            walk.best(&self.lists[idx], most, room).map_err(|_| IndexMismatch::Segment(idx))
        });
        Ok(BestOfSegments { most, segments: best.into_iter().collect::<Result<_, _>>()? })
    }

    /// Returns the best of each segment and everything that was scanned: the best of all are among them.
    fn candidates(&self, best: &BestOfSegments) -> Result<Vec<ScoredPassage>, IndexMismatch> {
        let mut candidates = Vec::new();
        for (number, scanned) in
            self.scanned.found.iter().enumerate().filter(|(_, it)| self.is_allowed(it.file))
        {
            let found = Match { counts: &scanned.counts, n_words: scanned.n_words, n_literals: 0 };
            candidates.push(ScoredPassage {
                score: self.scorer.score(found),
                time_ms: scanned.time_ms,
                segment: None,
                number: u32::try_from(number).unwrap_or(u32::MAX),
            });
        }
        for (idx, of_segment) in best.segments.iter().enumerate() {
            let segment = u32::try_from(idx).ok();
            candidates.extend(of_segment.best.iter().map(|best| ScoredPassage {
                score: best.score,
                time_ms: best.time_ms,
                segment,
                number: best.passage,
            }));
            if of_segment.best.len() > MANY_PLACES {
                let damaged = |_| IndexMismatch::Segment(idx);
                self.ctx.segments[idx].read_places().map_err(damaged)?;
            }
        }
        Ok(candidates)
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

    fn results(&self, query: &SearchQuery) -> Result<SearchResults, IndexMismatch> {
        let n_wanted = query.skip.saturating_add(query.limit);
        let mut n_ranked = n_wanted.saturating_add(SPARE);
        let mut best = self.best_of_segments(match has_literals(self.pattern) {
            true => n_ranked.saturating_mul(SPARE_LITERALS),
            false => n_ranked,
        })?;
        let mut hits = Vec::new();
        let (mut n_taken, mut n_wrong) = (0, 0);
        let n_all = loop {
            if n_ranked > best.most {
                best = self.best_of_segments(n_ranked)?;
            }
            let mut ranked = self.candidates(&best)?;
            let n_scanned = ranked.len() - best.segments.iter().map(|it| it.best.len()).sum::<usize>();
            let n_all = n_scanned + best.segments.iter().map(|it| it.n_all).sum::<usize>();
            n_ranked = n_ranked.min(n_all);
            if n_ranked < ranked.len() {
                ranked.select_nth_unstable_by(n_ranked, |left, right| self.order(left, right));
            }
            ranked.truncate(n_ranked);
            ranked.sort_unstable_by(|left, right| self.order(left, right));
            while n_taken < n_ranked && hits.len() < n_wanted {
                // Where many do not fit, more are read at once.
                let n_read = (n_wanted - hits.len()).max(AT_ONCE).max(n_wrong / 2).min(n_ranked - n_taken);
                let read = in_parallel(n_read, MOST_THREADS, |idx| self.hit(&ranked[n_taken + idx]));
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
            is_exact: n_wrong == 0 && !has_literals(self.pattern) || n_taken == n_all,
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
    fn hit(&self, candidate: &ScoredPassage) -> Result<Option<Hit>, IndexMismatch> {
        let (file, spot) = self.place(candidate)?;
        let on_disk = &self.ctx.files[file];
        let read = Body::open(on_disk).and_then(|body| read_spot(&body, spot));
        let Ok(Some((entry, mut passage))) = read else { return self.not_there(file) };
        match self.pattern {
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
