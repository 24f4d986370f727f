//! One segment's share of a search: the lists of its words are walked over once, and of the passages that have all of them
//! the best are kept and the others counted.
//!
//! What a passage is worth depends on how many passages have each word, in all segments and in what was scanned. Lists say
//! so in front, so the lists are read ([`SegmentLists`]), the numbers added up, and then the lists are walked over
//! ([`SegmentWalk`]). Nothing is made of what is walked over but the best of it.

use std::io;

use loci_core::search::{Corpus, Match, Query, Scorer};
use loci_stdx::nth_largest;

use super::filter::SearchFilter;
use super::passage_reader::{NO_TIME, voice_of};
use super::phrase::PhraseMatcher;
use super::phrase_batch::PhraseBatch;
use super::postings::{CommonPostings, DamagedList, PackedList};
use super::segment::{Column, ListPart, Segment};

/// The lists of a query's words in one segment.
pub(super) struct SegmentLists {
    /// What is known of the passages of this segment.
    pub(super) corpus: Corpus,
    lists: Vec<TermList>,
}

/// The list of a term.
enum TermList {
    /// It is read when it is walked over.
    OnDisk(ListPart),
    /// It had to be read to be counted.
    Read(PackedList),
}

impl TermList {
    fn n_passages(&self) -> u32 {
        match self {
            Self::OnDisk(part) => part.n_passages,
            Self::Read(list) => list.n_passages(),
        }
    }
}

/// What a thread reads lists and columns into, one segment after another.
#[derive(Default)]
pub(super) struct WalkRoom {
    lists: Vec<PackedList>,
    lengths: Vec<u8>,
    times: Vec<u8>,
}

impl SegmentLists {
    pub(super) fn read(segment: &Segment, live: &[Option<u32>], words: &Query) -> io::Result<Self> {
        let mut corpus = Corpus::default();
        for (source, _) in segment.outline.sources.iter().zip(live).filter(|(_, live)| live.is_some()) {
            corpus.n_texts += u64::from(source.n_passages);
            corpus.n_words += source.n_words;
        }
        let wanted = WantedSources::new(segment, |source| live.get(source).is_some_and(Option::is_some));
        let mut lists = Vec::with_capacity(words.terms().len());
        for term in words.terms() {
            let parts = segment.list_parts(term)?;
            lists.push(match parts.as_slice() {
                [only] if wanted.are_all() => {
                    corpus.n_with_term.push(u64::from(only.n_passages));
                    TermList::OnDisk(*only)
                }
                parts => {
                    let list = segment.joined_list(parts)?;
                    corpus.n_with_term.push(wanted.count(&list)?);
                    TermList::Read(list)
                }
            });
        }
        Ok(Self { corpus, lists })
    }
}

/// Which sources of a segment count.
struct WantedSources<'a> {
    ends: &'a [u32],
    /// For each source; nothing, when all count.
    is_wanted: Option<Vec<bool>>,
}

impl<'a> WantedSources<'a> {
    fn new(segment: &'a Segment, is_wanted: impl Fn(usize) -> bool) -> Self {
        let ends = segment.source_ends();
        let is_wanted: Vec<bool> = (0..ends.len()).map(is_wanted).collect();
        let is_wanted = if is_wanted.iter().all(|wanted| *wanted) { None } else { Some(is_wanted) };
        Self { ends, is_wanted }
    }

    fn are_all(&self) -> bool {
        self.is_wanted.is_none()
    }

    /// Returns what tells of one passage after another, in their order, whether its source counts.
    fn passages(&self) -> impl FnMut(u32) -> bool {
        let mut source = 0;
        move |passage| {
            let Some(is_wanted) = &self.is_wanted else { return true };
            while self.ends.get(source).is_some_and(|end| *end <= passage) {
                source += 1;
            }
            is_wanted.get(source).copied().unwrap_or(false)
        }
    }

    /// Returns how many passages of a list count.
    fn count(&self, list: &PackedList) -> Result<u64, DamagedList> {
        if self.are_all() {
            return Ok(u64::from(list.n_passages()));
        }
        let (mut is_wanted, mut postings, mut n_wanted) = (self.passages(), list.postings(), 0);
        while postings.advance()? {
            n_wanted += u64::from(is_wanted(postings.passage()));
        }
        Ok(n_wanted)
    }
}

/// What a segment is walked over with.
pub(super) struct SegmentWalk<'a> {
    pub(super) segment: &'a Segment,
    /// For each source the file it belongs to, if it still counts.
    pub(super) live: &'a [Option<u32>],
    /// Which files are wanted, or nothing when all are.
    pub(super) allowed: Option<&'a [bool]>,
    pub(super) words: &'a Query,
    pub(super) filter: &'a SearchFilter,
    pub(super) scorer: &'a Scorer,
}

/// The best of a segment.
#[derive(Debug, Default)]
pub(super) struct SegmentBest {
    /// The passages that none of the others is better than, in no order.
    pub(super) best: Vec<BestPassage>,
    /// How many passages there are, with those that are not among the best.
    pub(super) n_all: usize,
}

/// A passage and what its rank is told by.
#[derive(Debug, Clone, Copy)]
pub(super) struct BestPassage {
    pub(super) score: f64,
    pub(super) time_ms: i64,
    pub(super) passage: u32,
}

impl SegmentWalk<'_> {
    /// Walks over the lists and keeps the best `most`, and those that score as much as the last of them.
    pub(super) fn best(
        &self,
        lists: &SegmentLists,
        most: usize,
        room: &mut WalkRoom,
    ) -> io::Result<SegmentBest> {
        if lists.lists.iter().any(|list| list.n_passages() == 0) {
            return Ok(SegmentBest::default());
        }
        let (mut best, n_all) = self.walk(lists, most, room)?;
        best.shrink();
        if best.kept.is_empty() {
            return Ok(SegmentBest::default());
        }
        let times = self.segment.times_in(&mut room.times)?;
        let with_time = |(score, passage): (f64, u32)| BestPassage {
            score,
            time_ms: times.get(passage as usize).unwrap_or(NO_TIME),
            passage,
        };
        Ok(SegmentBest { best: best.kept.into_iter().map(with_time).collect(), n_all })
    }

    fn walk(
        &self,
        lists: &SegmentLists,
        most: usize,
        room: &mut WalkRoom,
    ) -> io::Result<(BestScores, usize)> {
        let lengths = self.segment.lengths_in(&mut room.lengths)?;
        let lists = self.read_lists(lists, &mut room.lists)?;
        let sieve = Sieve::new(self.segment, self.filter)?;
        let wanted = WantedSources::new(self.segment, |source| self.is_wanted(source));
        let mut is_in_wanted = wanted.passages();
        let mut phrases = PhraseMatcher::new(self.words, |term| lists[term].n_passages());
        let mut postings = CommonPostings::new(&lists, |term| phrases.needs_positions(term))?;
        let mut batch = PhraseBatch::new(lists.len(), |term| phrases.needs_positions(term));
        let mut counts = vec![0; lists.len()];
        let mut best = BestScores::new(most);
        let mut n_all = 0;
        let mut take = |passage: u32, n_words: u32, counts: &[u32]| {
            n_all += 1;
            best.push(self.scorer.score(Match { counts, n_words, n_literals: 0 }), passage);
        };
        while let Some(passage) = postings.advance()? {
            if !is_in_wanted(passage) || !sieve.wants(passage as usize) {
                continue;
            }
            let Some(n_words) = lengths.get(passage as usize) else { continue };
            if phrases.is_empty() || (n_words > 128 && phrases.matches_long(&mut postings, n_words)?) {
                postings.count(&mut counts);
                take(passage, n_words, &counts);
            } else if n_words <= 128 && !batch.push(passage, n_words, &mut postings)? {
                phrases.keep_matching(&mut batch)?;
                batch.drain(&mut counts, &mut take);
            }
        }
        phrases.keep_matching(&mut batch)?;
        batch.drain(&mut counts, &mut take);
        Ok((best, n_all))
    }

    /// Reads the lists that are not there yet.
    fn read_lists<'a>(
        &self,
        lists: &'a SegmentLists,
        room: &'a mut Vec<PackedList>,
    ) -> io::Result<Vec<&'a PackedList>> {
        room.resize_with(lists.lists.len(), PackedList::default);
        for (list, room) in lists.lists.iter().zip(&mut *room) {
            if let TermList::OnDisk(part) = list {
                self.segment.read_list_into(*part, room)?;
            }
        }
        let lists = lists.lists.iter().zip(&*room).map(|(list, read)| match list {
            TermList::OnDisk(_) => read,
            TermList::Read(list) => list,
        });
        Ok(lists.collect())
    }

    fn is_wanted(&self, source: usize) -> bool {
        let file = self.live.get(source).copied().flatten();
        file.is_some_and(|file| self.allowed.is_none_or(|allowed| allowed[file as usize]))
    }
}

/// Tells which passages a filter wants. Of the columns only those are read that it asks about.
struct Sieve<'a> {
    filter: &'a SearchFilter,
    times: Option<Column<'a, 8>>,
    voices: Option<Vec<u8>>,
    tools: Option<NamedColumn<'a>>,
    branches: Option<NamedColumn<'a>>,
}

/// A column of names, and for each number of it whether that name is wanted. Zero is none.
struct NamedColumn<'a> {
    numbers: Column<'a, 2>,
    is_wanted: Vec<bool>,
}

impl<'a> NamedColumn<'a> {
    fn new(numbers: Column<'a, 2>, names: &[String], wants: impl Fn(Option<&str>) -> bool) -> Self {
        let names = std::iter::once(None).chain(names.iter().map(|name| Some(name.as_str())));
        Self { numbers, is_wanted: names.map(wants).collect() }
    }

    fn wants(&self, passage: usize) -> bool {
        let number = self.numbers.get(passage).unwrap_or(0);
        self.is_wanted.get(usize::from(number)).copied().unwrap_or(false)
    }
}

impl<'a> Sieve<'a> {
    fn new(segment: &'a Segment, filter: &'a SearchFilter) -> io::Result<Self> {
        let mut sieve = Self { filter, times: None, voices: None, tools: None, branches: None };
        if filter.has_times() {
            sieve.times = Some(segment.times()?);
        }
        if !filter.voices.is_empty() {
            sieve.voices = Some(segment.voices()?);
        }
        if filter.tool.is_some() {
            let wants = |name: Option<&str>| filter.wants_tool(name);
            sieve.tools = Some(NamedColumn::new(segment.tool_numbers()?, &segment.outline.tools, wants));
        }
        if filter.branch.is_some() {
            let wants = |name: Option<&str>| filter.wants_branch(name);
            let numbers = segment.branch_numbers()?;
            sieve.branches = Some(NamedColumn::new(numbers, &segment.outline.branches, wants));
        }
        Ok(sieve)
    }

    fn wants(&self, passage: usize) -> bool {
        let wants_time =
            |times: &Column<'_, 8>| times.get(passage).is_some_and(|time| self.filter.wants_time(time));
        let wants_voice = |voices: &Vec<u8>| {
            let voice = voices.get(passage).and_then(|number| voice_of(*number));
            voice.is_some_and(|voice| self.filter.wants_voice(voice))
        };
        self.times.as_ref().is_none_or(wants_time)
            && self.voices.as_ref().is_none_or(wants_voice)
            && self.tools.as_ref().is_none_or(|tools| tools.wants(passage))
            && self.branches.as_ref().is_none_or(|branches| branches.wants(passage))
    }
}

/// The best of many scores: at the end all that are as much as the one that `most` others are not less than.
struct BestScores {
    most: usize,
    /// What scores less is not among the best.
    least: f64,
    kept: Vec<(f64, u32)>,
    /// How many are kept before the worst of them go.
    room: usize,
}

impl BestScores {
    fn new(most: usize) -> Self {
        Self { most, least: f64::NEG_INFINITY, kept: Vec::new(), room: Self::room_for(most) }
    }

    fn room_for(n_kept: usize) -> usize {
        n_kept.saturating_mul(2).max(1_024)
    }

    #[inline]
    fn push(&mut self, score: f64, passage: u32) {
        if score < self.least {
            return;
        }
        self.kept.push((score, passage));
        if self.kept.len() >= self.room {
            self.shrink();
            // Where many score the same, few go.
            self.room = Self::room_for(self.kept.len());
        }
    }

    fn shrink(&mut self) {
        // Scores are not negative, so their bits are in the same order. Those that score as much as the last of the best
        // may come before it.
        let scores = self.kept.iter().map(|(score, _)| score.to_bits()).collect();
        let Some(least) = nth_largest(scores, self.most) else { return };
        self.least = f64::from_bits(least);
        self.kept.retain(|(score, _)| *score >= self.least);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

        /// Letting go of the worst on the way keeps what sorting all of them would. Invariant 1 of `docs/design/index.md`.
        #[test]
        fn best_scores_are_those_of_a_full_sort(
            scores in prop::collection::vec(0_u8..200, 0..6_000), most in 0_usize..300
        ) {
            let mut best = BestScores::new(most);
            let mut all: Vec<(f64, u32)> = Vec::new();
            for (passage, score) in (0..).zip(&scores) {
                best.push(f64::from(*score), passage);
                all.push((f64::from(*score), passage));
            }
            best.shrink();
            let mut sorted = scores;
            sorted.sort_unstable_by(|left, right| right.cmp(left));
            let least = sorted.get(most).map_or(f64::NEG_INFINITY, |least| f64::from(*least));
            all.retain(|(score, _)| *score >= least);
            prop_assert_eq!(best.kept, all);
        }
    }
}
