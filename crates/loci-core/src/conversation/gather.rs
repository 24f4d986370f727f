//! What one walk from leaf to root misses: the other blocks and results of a parallel batch.
//!
//! The blocks of a response form a chain, and each result hangs from its own call:
//! `use1 → use2 → use3`, `use1 → result1`, `use2 → result2`, `use3 → result3`. The walk goes through one of
//! the results and through the calls above it. The rest is found by going down again: from a block on the
//! path to further blocks of the same response, from every call to its results, from a result to the
//! attachments behind it. Only direct children count, so a server that gives all its responses one id does no
//! harm. The outcome has all blocks of the response first, then the results in file order, one for each call.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::entry::EntryKind;
use crate::ids::ToolUseId;

use super::shape::Shape;
use super::tree::Tree;

/// Returns the chain with the missed entries in their places.
pub(super) fn with_siblings(tree: &Tree<'_>, chain: &[usize]) -> Vec<usize> {
    let mut gathering =
        Gathering { tree, shapes: FxHashMap::default(), taken: chain.iter().copied().collect() };
    let mut path = Vec::with_capacity(chain.len());
    let mut at = 0;
    while at < chain.len() {
        let end = gathering.end_of_response(chain, at);
        if end == at {
            path.push(chain[at]);
            at += 1;
        } else {
            at = gathering.response(chain, at, end, &mut path);
        }
    }
    path
}

struct Gathering<'t, 'a> {
    tree: &'t Tree<'a>,
    shapes: FxHashMap<usize, Shape>,
    /// What is on the path already, by the walk or gathered.
    taken: FxHashSet<usize>,
}

impl Gathering<'_, '_> {
    fn shape(&mut self, idx: usize) -> &Shape {
        self.shapes.entry(idx).or_insert_with(|| Shape::from_entry(self.tree.entry(idx)))
    }

    /// Returns the end of the run of blocks of one response that begins at `start`; `start` itself when
    /// there is no such run.
    fn end_of_response(&self, chain: &[usize], start: usize) -> usize {
        let run = chain[start..].iter().take_while(|idx| self.are_one_response(chain[start], **idx));
        start + run.count()
    }

    fn are_one_response(&self, first: usize, second: usize) -> bool {
        let (first, second) = (self.tree.entry(first).head(), self.tree.entry(second).head());
        let is_block = |head: &crate::entry::Head| head.kind == EntryKind::Assistant && !head.is_api_error;
        is_block(first)
            && is_block(second)
            && first.message_id.is_some()
            && first.message_id == second.message_id
    }

    /// Emits the blocks of a response and its results; returns where in the chain to go on.
    fn response(&mut self, chain: &[usize], start: usize, end: usize, path: &mut Vec<usize>) -> usize {
        let mut blocks = chain[start..end].to_vec();
        blocks.extend(self.missed_blocks(&chain[start..end]));
        let calls: FxHashSet<ToolUseId> =
            blocks.iter().flat_map(|idx| self.shape(*idx).calls.clone()).collect();
        if calls.is_empty() {
            path.extend(blocks);
            return end;
        }
        let answers_end = self.end_of_answers(chain, end);
        let answered: FxHashSet<ToolUseId> =
            chain[end..answers_end].iter().flat_map(|idx| self.shape(*idx).results.clone()).collect();
        let mut missed = self.missed_results(&blocks, &calls, answered);
        missed.sort_unstable();
        let first_answer = chain[end..answers_end].first().copied().unwrap_or(usize::MAX);
        let earlier = missed.partition_point(|idx| *idx < first_answer);
        path.extend(blocks);
        path.extend(&missed[..earlier]);
        path.extend(&chain[end..answers_end]);
        path.extend(&missed[earlier..]);
        answers_end
    }

    /// Returns the blocks of the same response that hang below those on the chain, in file order.
    fn missed_blocks(&mut self, on_chain: &[usize]) -> Vec<usize> {
        let mut missed = Vec::new();
        let mut open = on_chain.to_vec();
        while let Some(block) = open.pop() {
            for &child in self.tree.children(block) {
                if self.are_one_response(block, child) && self.taken.insert(child) {
                    missed.push(child);
                    open.push(child);
                }
            }
        }
        missed.sort_unstable();
        missed
    }

    /// Returns the end of the results and attachments that directly follow a response on the chain.
    fn end_of_answers(&mut self, chain: &[usize], start: usize) -> usize {
        let mut end = start;
        while end < chain.len() {
            let is_answer = match self.tree.kind(chain[end]) {
                EntryKind::User => self.shape(chain[end]).is_only_results(),
                EntryKind::Attachment => end > start,
                _ => false,
            };
            if !is_answer {
                break;
            }
            end += 1;
        }
        end
    }

    /// Returns the results of calls that the chain does not answer, with the attachments behind them.
    fn missed_results(
        &mut self,
        blocks: &[usize],
        calls: &FxHashSet<ToolUseId>,
        mut answered: FxHashSet<ToolUseId>,
    ) -> Vec<usize> {
        let tree = self.tree;
        let mut results: Vec<usize> = blocks
            .iter()
            .flat_map(|block| tree.children(*block).iter().copied())
            .filter(|child| tree.kind(*child) == EntryKind::User && !self.taken.contains(child))
            .collect();
        results.sort_unstable();
        let mut missed = Vec::new();
        for result in results {
            let ids = self.shape(result).results.clone();
            let answers = ids.iter().any(|id| calls.contains(id) && !answered.contains(id));
            if answers && self.shape(result).is_only_results() && self.taken.insert(result) {
                answered.extend(ids);
                missed.push(result);
                self.attachments_behind(result, &mut missed);
            }
        }
        missed
    }

    fn attachments_behind(&mut self, result: usize, missed: &mut Vec<usize>) {
        let mut open = vec![result];
        while let Some(idx) = open.pop() {
            for &child in self.tree.children(idx) {
                if self.tree.kind(child) == EntryKind::Attachment && self.taken.insert(child) {
                    missed.push(child);
                    open.push(child);
                }
            }
        }
    }
}
