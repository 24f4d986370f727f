//! What fills the window: every piece of what is sent, by category, and a picture of it.
//!
//! Pieces are estimates; how full the window is was counted by the server, where it was asked already. So the estimates
//! are made to agree: what is sent with every request keeps its figure, and the conversation gets the rest.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use loci_core::entry::{Attachment, Entry, EntryKind};
use loci_core::ids::ToolUseId;

use crate::replaced::Replaced;
use crate::weight::{entry_tokens, weight};
use loci_core::window::{Fullness, Level};

/// A kind of thing that takes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContextCategory {
    /// What the model is told first.
    SystemPrompt,
    /// Built-in tools.
    Tools,
    /// Tools of MCP servers.
    McpTools,
    /// The agents that can be sent out.
    Agents,
    /// The skills there are.
    Skills,
    /// Instruction files and the index of memories.
    MemoryFiles,
    /// The conversation.
    Messages,
}

impl ContextCategory {
    /// All of them, in the order of a request.
    pub const ALL: [Self; 7] = [
        Self::SystemPrompt,
        Self::Tools,
        Self::McpTools,
        Self::Agents,
        Self::Skills,
        Self::MemoryFiles,
        Self::Messages,
    ];

    /// Returns what people call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::SystemPrompt => "System prompt",
            Self::Tools => "System tools",
            Self::McpTools => "MCP tools",
            Self::Agents => "Custom agents",
            Self::Skills => "Skills",
            Self::MemoryFiles => "Memory files",
            Self::Messages => "Messages",
        }
    }
}

/// One piece of what is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextItem {
    /// What it is.
    pub category: ContextCategory,
    /// Its name: of a tool, of a file.
    pub name: String,
    /// Where it comes from.
    pub source: String,
    /// About how many tokens it is.
    pub tokens: u64,
}

impl ContextItem {
    /// Makes an item.
    pub fn new(
        category: ContextCategory,
        name: impl Into<String>,
        source: impl Into<String>,
        tokens: u64,
    ) -> Self {
        Self { category, name: name.into(), source: source.into(), tokens }
    }
}

/// A cell of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextCell {
    /// Something of this category.
    Used(ContextCategory),
    /// Room.
    Free,
    /// Kept free so that the conversation can be compacted.
    Buffer,
}

/// What fills the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextUsage {
    /// The model whose window it is.
    pub model: String,
    /// Every piece, in the order of a request.
    pub items: Vec<ContextItem>,
    /// How full it is.
    pub fullness: Fullness,
    /// Whether the conversation is compacted unasked.
    pub is_automatic: bool,
}

impl ContextUsage {
    /// Puts pieces together, so that they add up to what was counted.
    pub fn new(model: String, mut items: Vec<ContextItem>, fullness: Fullness, is_automatic: bool) -> Self {
        let is_said = |item: &ContextItem| item.category == ContextCategory::Messages;
        let sum = |items: &[ContextItem], said: bool| -> u64 {
            items.iter().filter(|item| is_said(item) == said).map(|item| item.tokens).sum()
        };
        let fixed = sum(&items, false);
        match fullness.tokens.checked_sub(fixed) {
            Some(rest) => {
                let estimated = sum(&items, true);
                scale(items.iter_mut().filter(|item| is_said(item)), estimated, rest);
                if estimated == 0 && rest > 0 {
                    items.push(ContextItem::new(ContextCategory::Messages, "conversation", "", rest));
                }
            }
            None => {
                items.retain(|item| !is_said(item));
                scale(items.iter_mut(), fixed, fullness.tokens);
            }
        }
        items.retain(|item| item.tokens > 0);
        items.sort_by_key(|item| item.category);
        Self { model, items, fullness, is_automatic }
    }

    /// Returns how many tokens a category takes.
    pub fn tokens_of(&self, category: ContextCategory) -> u64 {
        self.items.iter().filter(|item| item.category == category).map(|item| item.tokens).sum()
    }

    /// Returns the categories that take any, in order.
    pub fn categories(&self) -> Vec<(ContextCategory, u64)> {
        let all = ContextCategory::ALL.iter().map(|category| (*category, self.tokens_of(*category)));
        all.filter(|(_, tokens)| *tokens > 0).collect()
    }

    /// Returns how many tokens are kept free so that the conversation can be compacted; none, where that is off.
    pub fn buffer(&self) -> u64 {
        match self.is_automatic {
            true => self.fullness.window.saturating_sub(self.fullness.thresholds.compact),
            false => 0,
        }
    }

    /// Returns how many tokens are left before that.
    pub fn free(&self) -> u64 {
        self.fullness.window.saturating_sub(self.buffer()).saturating_sub(self.fullness.tokens)
    }

    /// Returns how much of the window is used, in percent.
    pub fn percentage(&self) -> u64 {
        percent(self.fullness.tokens, self.fullness.window)
    }

    /// Returns the picture: so many cells for the whole window. Whatever takes any room has a cell, as long as there are
    /// enough of them.
    pub fn grid(&self, n_cells: usize) -> Vec<ContextCell> {
        let used = self.categories();
        let window = self.fullness.window.max(self.fullness.tokens).max(1);
        let share = |tokens: u64| (tokens as f64 * n_cells as f64 / window as f64).round() as usize;
        let mut cells: Vec<ContextCell> = Vec::with_capacity(n_cells);
        for (category, tokens) in used {
            cells.extend(std::iter::repeat_n(ContextCell::Used(category), share(tokens).max(1)));
        }
        cells.truncate(n_cells);
        let n_left = n_cells - cells.len();
        let n_buffer = match self.buffer() {
            0 => 0,
            tokens => share(tokens).max(1).min(n_left),
        };
        cells.extend(std::iter::repeat_n(ContextCell::Free, n_left - n_buffer));
        cells.extend(std::iter::repeat_n(ContextCell::Buffer, n_buffer));
        cells
    }

    /// Says what would make room, the most useful first.
    pub fn suggestions(&self) -> Vec<String> {
        let window = self.fullness.window;
        let takes = |category, share: u64| self.tokens_of(category) * 100 > window * share;
        let mut out = Vec::new();
        if self.fullness.level >= Level::Warning {
            out.push(match self.is_automatic {
                true => {
                    "The window is nearly full: /compact now keeps what you name, later it is done unasked"
                        .to_owned()
                }
                false => "The window is nearly full and automatic compaction is off: use /compact or /clear"
                    .to_owned(),
            });
        }
        if let Some(item) = self.largest(ContextCategory::Messages, "Results of ", 20) {
            out.push(format!(
                "{} take {} of the window: /compact puts a summary in their place",
                item.name,
                format_percent(item.tokens, window)
            ));
        }
        if takes(ContextCategory::McpTools, 10) {
            out.push(
                "Tools of MCP servers take a lot: switch off servers you do not need with /mcp".to_owned(),
            );
        }
        if takes(ContextCategory::MemoryFiles, 10) {
            out.push(
                "Instruction files take a lot: shorten them with /memory, or move parts into rules for paths"
                    .to_owned(),
            );
        }
        if takes(ContextCategory::Skills, 5) {
            out.push("The list of skills takes a lot: see /skills".to_owned());
        }
        out
    }

    fn largest(&self, category: ContextCategory, prefix: &str, share: u64) -> Option<&ContextItem> {
        let items =
            self.items.iter().filter(|item| item.category == category && item.name.starts_with(prefix));
        items.filter(|item| item.tokens * 100 > self.fullness.window * share).max_by_key(|item| item.tokens)
    }
}

/// Returns a share in percent, rounded.
fn percent(tokens: u64, window: u64) -> u64 {
    (tokens * 100 + window / 2) / window.max(1)
}

/// Returns a share in percent, as people read it.
fn format_percent(tokens: u64, window: u64) -> String {
    format!("{}%", percent(tokens, window))
}

/// Makes figures that add up to `from` add up to `to`, each in proportion; the last gets what rounding leaves.
fn scale<'a>(items: impl Iterator<Item = &'a mut ContextItem>, from: u64, to: u64) {
    if from == 0 {
        return;
    }
    let (mut seen, mut given) = (0u128, 0u64);
    for item in items {
        seen += u128::from(item.tokens);
        let up_to = (seen * u128::from(to) / u128::from(from)) as u64;
        item.tokens = up_to - given;
        given = up_to;
    }
}

/// Returns what a conversation is made of: prompts, answers, results by tool, and what was told beside them.
pub fn conversation_items(path: &[Arc<Entry>], replaced: &Replaced) -> Vec<ContextItem> {
    let tools: HashMap<&ToolUseId, &str> = path
        .iter()
        .flat_map(|entry| weight(entry).calls.iter())
        .map(|called| (&called.call, called.tool.as_ref()))
        .collect();
    let mut sums: BTreeMap<(ContextCategory, String), u64> = BTreeMap::new();
    let mut add = |category, name: &str, tokens: u64| {
        *sums.entry((category, name.to_owned())).or_default() += tokens;
    };
    for entry in path {
        let tokens = entry_tokens(entry, replaced);
        match entry.head().kind {
            EntryKind::User => {
                let mut words = tokens;
                for result in &weight(entry).results {
                    // What was cleared is weighed as what replaces it, which is small.
                    let size = if replaced.content(&result.call).is_some() { 0 } else { result.tokens };
                    let tool = tools.get(&result.call).copied().unwrap_or("calls");
                    add(ContextCategory::Messages, &format!("Results of {tool}"), size);
                    words = words.saturating_sub(size);
                }
                add(ContextCategory::Messages, "Prompts", words);
            }
            EntryKind::Assistant => add(ContextCategory::Messages, "Answers", tokens),
            EntryKind::Attachment => {
                let (category, name) = attachment_item(entry);
                add(category, &name, tokens);
            }
            EntryKind::System => add(ContextCategory::Messages, "Commands and notes", tokens),
            EntryKind::Progress | EntryKind::Metadata => {}
        }
    }
    let items =
        sums.into_iter().map(|((category, name), tokens)| ContextItem::new(category, name, "", tokens));
    items.collect()
}

/// Says what an attachment counts as.
fn attachment_item(entry: &Entry) -> (ContextCategory, String) {
    match entry.attachment() {
        Some(Attachment::SkillListing { .. }) => (ContextCategory::Skills, "list of skills".to_owned()),
        Some(Attachment::AgentListingDelta { .. }) => (ContextCategory::Agents, "list of agents".to_owned()),
        Some(Attachment::NestedMemory { path, display_path, .. }) => {
            let unnamed = || "instructions met on the way".to_owned();
            let path = display_path.or_else(|| Some(path).filter(|path| !path.is_empty()));
            (ContextCategory::MemoryFiles, path.unwrap_or_else(unnamed))
        }
        _ => (ContextCategory::Messages, "Attachments".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use loci_core::window::Window;

    fn fullness(tokens: u64, window: u64) -> Fullness {
        let thresholds = Window { tokens: window, max_output: 32_000, percent: None }.thresholds();
        Fullness { tokens, window, thresholds, level: thresholds.level(tokens) }
    }

    fn usage(tokens: u64, items: &[(ContextCategory, u64)]) -> ContextUsage {
        let items = items.iter().map(|(category, tokens)| ContextItem::new(*category, "x", "", *tokens));
        ContextUsage::new("m".to_owned(), items.collect(), fullness(tokens, 200_000), true)
    }

    #[test]
    fn items_add_up_to_what_was_counted() {
        use ContextCategory::{Messages, SystemPrompt, Tools};
        for (tokens, items, expected) in [
            (50_000, vec![(SystemPrompt, 3_000), (Tools, 9_000), (Messages, 100)], [3_000, 9_000, 38_000]),
            (50_000, vec![(SystemPrompt, 3_000), (Tools, 9_000)], [3_000, 9_000, 38_000]),
            (600, vec![(SystemPrompt, 3_000), (Tools, 9_000), (Messages, 7)], [150, 450, 0]),
            (0, vec![(SystemPrompt, 3_000)], [0, 0, 0]),
        ] {
            let usage = usage(tokens, &items);
            let found = [SystemPrompt, Tools, Messages].map(|category| usage.tokens_of(category));
            assert_eq!(found, expected, "{tokens} {items:?}");
        }
    }

    #[test]
    fn grid_has_every_category_and_the_buffer() {
        use ContextCategory::{Messages, SystemPrompt, Tools};
        let usage = usage(100_000, &[(SystemPrompt, 10), (Tools, 20_000), (Messages, 1)]);
        let grid = usage.grid(100);
        let count = |cell| grid.iter().filter(|it| **it == cell).count();
        assert_eq!(grid.len(), 100);
        assert_eq!(count(ContextCell::Used(SystemPrompt)), 1, "little is still something");
        assert_eq!(count(ContextCell::Used(Tools)), 10);
        assert_eq!(count(ContextCell::Used(Messages)), 40);
        assert_eq!(count(ContextCell::Buffer), 17, "33,000 of 200,000");
        assert_eq!(grid.last(), Some(&ContextCell::Buffer));
        assert_eq!((usage.buffer(), usage.free(), usage.percentage()), (33_000, 67_000, 50));
    }

    #[test]
    fn grid_of_any_size_has_that_size() {
        for tokens in [0, 1, 199_999, 500_000] {
            let usage = usage(tokens, &ContextCategory::ALL.map(|category| (category, 10)));
            for n_cells in [0, 1, 3, 7, 100, 400] {
                assert_eq!(usage.grid(n_cells).len(), n_cells, "{tokens} {n_cells}");
            }
        }
    }

    #[test]
    fn without_automatic_compaction_nothing_is_kept_free() {
        let usage = ContextUsage { is_automatic: false, ..usage(100_000, &[]) };
        assert_eq!((usage.buffer(), usage.free()), (0, 100_000));
        assert!(!usage.grid(50).contains(&ContextCell::Buffer));
    }

    fn entry(value: Value) -> Arc<Entry> {
        Arc::new(Entry::parse(value.to_string()).unwrap())
    }

    #[test]
    fn conversation_is_told_by_who_said_what() {
        let words = |n: usize| "word ".repeat(n);
        let path = [
            entry(json!({"type": "user", "message": {"role": "user", "content": words(100)}})),
            entry(json!({"type": "assistant", "message": {"role": "assistant", "content": [
                {"type": "text", "text": words(10)}, {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]}})),
            entry(json!({"type": "user", "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": words(1_000)}]}})),
            entry(json!({"type": "attachment", "attachment": {"type": "skill_listing", "content": words(50),
                "rendered": words(50), "renderedRole": "user"}})),
        ];
        let items = conversation_items(&path, &Replaced::default());
        let names: Vec<(&str, bool)> =
            items.iter().map(|item| (item.name.as_str(), item.tokens > 0)).collect();
        assert_eq!(
            names,
            [("list of skills", true), ("Answers", true), ("Prompts", true), ("Results of Read", true)]
        );
        let results = items.iter().find(|item| item.name == "Results of Read").unwrap();
        assert!(results.tokens > 1_000, "{results:?}");
    }

    #[test]
    fn suggestions_name_what_takes_most() {
        assert_eq!(usage(1_000, &[(ContextCategory::Messages, 1)]).suggestions(), [""; 0]);
        let mut full =
            usage(165_000, &[(ContextCategory::McpTools, 40_000), (ContextCategory::MemoryFiles, 30_000)]);
        let all = full.suggestions().join("\n");
        assert!(all.contains("/compact") && all.contains("/mcp") && all.contains("/memory"), "{all}");
        full.is_automatic = false;
        assert!(full.suggestions()[0].contains("automatic compaction is off"));
    }
}
