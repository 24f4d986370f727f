//! How the context has filled over a session: after each answer, by what is in it.
//!
//! The sums are those that the provider counted. How they divide is an estimate: what does not grow (system prompt, tools,
//! instruction files) is taken as it is now, the rest in proportion to what was written since the last compaction.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use loci_core::entry::{Entry, EntryKind};
use loci_core::message::{BlockKind, Content};
use loci_core::usage::Usage;
use loci_storage::sessions::load_transcript;
use serde_json::Value;

use crate::user_error::UserError;

/// What the context is made of, over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContextPart {
    /// System prompt, tools, instruction files, skills, agents.
    Fixed,
    /// What people wrote.
    Prompts,
    /// What the model wrote, calls included.
    Answers,
    /// What calls returned.
    Results,
}

impl ContextPart {
    /// All of them, from the bottom to the top.
    pub const ALL: [Self; 4] = [Self::Fixed, Self::Prompts, Self::Answers, Self::Results];

    /// Returns what it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Fixed => "System, tools, files",
            Self::Prompts => "Prompts",
            Self::Answers => "Answers and calls",
            Self::Results => "Results of calls",
        }
    }

    /// Returns its letter in pictures without colours.
    pub fn letter(self) -> char {
        match self {
            Self::Fixed => 'S',
            Self::Prompts => 'P',
            Self::Answers => 'A',
            Self::Results => 'R',
        }
    }
}

/// How full the context was after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextPoint {
    /// Tokens of each part, in the order of [`ContextPart::ALL`].
    pub parts: [u64; 4],
    /// Whether a compaction came before it.
    pub is_compacted: bool,
}

impl ContextPoint {
    /// Returns all tokens.
    pub fn total(&self) -> u64 {
        self.parts.iter().sum()
    }
}

/// Reads how the context of a session has filled; `fixed` is what does not grow.
pub fn context_history(transcript: &Path, fixed: u64) -> Result<Vec<ContextPoint>, UserError> {
    let loaded = load_transcript(transcript).map_err(|error| UserError::from_error(&error))?;
    Ok(points(&loci_core::conversation::history(&loaded.entries), fixed))
}

fn points(entries: &[Arc<Entry>], fixed: u64) -> Vec<ContextPoint> {
    let mut points = Vec::new();
    let mut weights = [0_u64; 3];
    let mut is_compacted = false;
    let mut seen = HashSet::new();
    for entry in entries {
        if entry.is_compact_boundary() {
            (weights, is_compacted) = ([0; 3], true);
            continue;
        }
        add_weights(entry, &mut weights);
        let Some(total) = response_tokens(entry, &mut seen) else { continue };
        let fixed = fixed.min(total);
        let rest = total - fixed;
        let sum = weights.iter().sum::<u64>().max(1);
        let share = |weight: u64| {
            u64::try_from(u128::from(rest) * u128::from(weight) / u128::from(sum)).unwrap_or(rest)
        };
        let (prompts, results) = (share(weights[0]), share(weights[2]));
        // What rounding leaves belongs to the answers.
        let answers = rest.saturating_sub(prompts + results);
        points.push(ContextPoint { parts: [fixed, prompts, answers, results], is_compacted });
        is_compacted = false;
    }
    points
}

/// Returns what a response came to in all, once for each: one that has several blocks has several entries.
fn response_tokens(entry: &Entry, seen: &mut HashSet<String>) -> Option<u64> {
    if entry.head().kind != EntryKind::Assistant {
        return None;
    }
    let message: Value = entry.fields().read("message")?;
    let id = message.get("id").and_then(Value::as_str).unwrap_or_default();
    let usage: Usage = serde_json::from_value(message.get("usage")?.clone()).ok()?;
    let total = usage.input_tokens
        + usage.cache_creation_input_tokens
        + usage.cache_read_input_tokens
        + usage.output_tokens;
    (total > 0 && seen.insert(id.to_owned())).then_some(total)
}

fn add_weights(entry: &Entry, weights: &mut [u64; 3]) {
    let is_answer = match entry.head().kind {
        EntryKind::User => false,
        EntryKind::Assistant => true,
        _ => return,
    };
    let [prompts, answers, results] = weights;
    match entry.content() {
        None => {}
        Some(Content::Text(text)) => *(if is_answer { answers } else { prompts }) += text.len() as u64,
        Some(Content::Blocks(blocks)) => {
            for block in &blocks {
                let part = match (is_answer, block.kind()) {
                    (true, _) => &mut *answers,
                    (false, BlockKind::ToolResult) => &mut *results,
                    (false, _) => &mut *prompts,
                };
                *part += block.json().as_str().len() as u64;
            }
        }
    }
}

/// Puts points together so that there are at most so many; each stands for the fullest of its neighbours.
pub fn condensed(points: &[ContextPoint], most: usize) -> Vec<ContextPoint> {
    let size = points.len().div_ceil(most.max(1)).max(1);
    let fullest = |chunk: &[ContextPoint]| {
        let most = chunk.iter().max_by_key(|point| point.total())?;
        Some(ContextPoint { is_compacted: chunk.iter().any(|it| it.is_compacted), ..*most })
    };
    points.chunks(size).filter_map(fullest).collect()
}

/// Draws points as columns, so many rows high: the letter of a part, the bottom row last. The top stands for `most` tokens.
pub fn columns(points: &[ContextPoint], rows: usize, most: u64) -> Vec<Vec<Option<ContextPart>>> {
    let most = most.max(1);
    let column = |point: &ContextPoint| -> Vec<Option<ContextPart>> {
        let mut below = 0;
        let mut cells = Vec::new();
        for (part, tokens) in ContextPart::ALL.into_iter().zip(point.parts) {
            below += tokens;
            let top = usize::try_from(u128::from(below) * rows as u128 / u128::from(most))
                .unwrap_or(rows)
                .min(rows);
            while cells.len() < top {
                cells.push(Some(part));
            }
        }
        if cells.is_empty() && point.total() > 0 && rows > 0 {
            cells.push(Some(ContextPart::Fixed));
        }
        cells.resize(rows, None);
        cells
    };
    let drawn: Vec<Vec<Option<ContextPart>>> = points.iter().map(column).collect();
    (0..rows)
        .rev()
        .map(|row| drawn.iter().map(|column| column.get(row).copied().flatten()).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(value: Value) -> Arc<Entry> {
        Arc::new(Entry::parse(value.to_string()).unwrap())
    }

    fn answer(id: &str, tokens: u64, text: &str) -> Arc<Entry> {
        entry(json!({"type": "assistant", "uuid": format!("{id}-{}", text.len()), "message": {
            "id": id, "role": "assistant", "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": tokens, "output_tokens": 0}}}))
    }

    #[test]
    fn points_divide_what_was_counted_and_begin_anew_after_a_compaction() {
        let prompt = entry(
            json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": "x".repeat(1_000)}}),
        );
        let result = entry(json!({"type": "user", "uuid": "r", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": "y".repeat(3_000)}]}}));
        let boundary = entry(json!({"type": "system", "subtype": "compact_boundary", "uuid": "b"}));
        let entries = [
            prompt,
            answer("m1", 2_000, "a"),
            answer("m1", 2_000, "bb"),
            result,
            answer("m2", 9_000, "c"),
            boundary,
            answer("m3", 1_500, "d"),
        ];
        let points = points(&entries, 1_000);
        let totals: Vec<(u64, bool)> = points.iter().map(|it| (it.total(), it.is_compacted)).collect();
        assert_eq!(totals, [(2_000, false), (9_000, false), (1_500, true)], "a response counts once");
        let [fixed, prompts, _, results] = points[1].parts;
        assert!(fixed == 1_000 && results > prompts && prompts > 0, "{:?}", points[1]);
        assert_eq!(points[2].parts, [1_000, 0, 500, 0]);
        let drawn = columns(&points, 4, 9_000);
        let text: Vec<String> = drawn
            .iter()
            .map(|row| row.iter().map(|cell| cell.map_or('.', ContextPart::letter)).collect())
            .collect();
        assert_eq!(text.len(), 4);
        assert!(text[0].starts_with(".R") && text[3].starts_with('S'), "{text:?}");
        assert_eq!(condensed(&points, 2).len(), 2);
        assert_eq!(condensed(&[], 2).len(), 0);
    }
}
