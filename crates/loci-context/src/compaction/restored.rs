//! What is put before the model again after a compaction, beside the files it read last: whatever it used that the
//! summary does not hold word for word, each kind within a budget of its own.
//!
//! What must stay true:
//! 1. What was used comes back as something to look at. It has a name and a text, and nothing it could be run with again.
//! 2. A conversation gets back its own. What an agent used within its own conversation stays there.

use std::collections::HashSet;

use loci_core::entry::Attachment;

use crate::tokens::prose_tokens;

/// What stands where a text was cut.
const CUT: &str = "\n[cut here to make room]";

/// How much of one kind comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoreBudget {
    /// So many at most.
    pub items: usize,
    /// So many tokens of each.
    pub tokens_each: u64,
    /// So many tokens in all.
    pub tokens: u64,
}

impl RestoreBudget {
    /// Files that were read: whole, or not at all.
    pub const FILES: Self = Self { items: 5, tokens_each: 50_000, tokens: 50_000 };
    /// Skills that were used.
    pub const SKILLS: Self = Self { items: 100, tokens_each: 5_000, tokens: 25_000 };

    /// Returns the same budget where only so many tokens are left.
    pub fn within(self, room: u64) -> Self {
        Self { tokens: self.tokens.min(room), ..self }
    }
}

/// Something that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restorable {
    /// What it is called.
    pub name: String,
    /// What the model read of it.
    pub text: String,
    /// Whether an agent used it, in a conversation of its own.
    pub is_agents: bool,
}

impl Restorable {
    /// Returns it as an attachment of the transcript.
    pub fn attachment(&self) -> Attachment {
        Attachment::Restored { name: self.name.clone(), content: self.text.clone() }
    }

    /// Returns how many tokens it takes.
    pub fn tokens(&self) -> u64 {
        prose_tokens(&restored_text(&self.name, &self.text))
    }

    /// Keeps the beginning of a text that is too long.
    fn cut(self, most_tokens: u64) -> Self {
        if prose_tokens(&self.text) <= most_tokens {
            return self;
        }
        let n_chars = usize::try_from(most_tokens.saturating_mul(4)).unwrap_or(usize::MAX);
        let kept: String = self.text.chars().take(n_chars.saturating_sub(CUT.len())).collect();
        Self { text: kept + CUT, ..self }
    }
}

/// Says what the model is told of something that it used.
pub(crate) fn restored_text(name: &str, text: &str) -> String {
    format!("{name} was used earlier, before the summary. Its text, to look at and not to run again:\n{text}")
}

/// Chooses what comes back of what was used, the newest first: each once, within the budget, and nothing of an agent's.
pub fn restored(used: Vec<Restorable>, budget: RestoreBudget) -> Vec<Restorable> {
    let mut seen = HashSet::new();
    let mut left = budget.tokens;
    let own = used.into_iter().filter(|item| !item.is_agents && !item.text.trim().is_empty());
    let newest = own.filter(|item| seen.insert(item.name.clone())).map(|item| item.cut(budget.tokens_each));
    let fitting = newest.filter(|item| {
        let fits = item.tokens() <= left;
        left -= if fits { item.tokens() } else { 0 };
        fits
    });
    fitting.take(budget.items).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, n_tokens: usize) -> Restorable {
        Restorable { name: name.to_owned(), text: "word".repeat(n_tokens), is_agents: false }
    }

    fn names(items: &[Restorable]) -> Vec<&str> {
        items.iter().map(|item| item.name.as_str()).collect()
    }

    /// The newest that fit come back, each once, and of a long one its beginning.
    #[test]
    fn restored_items_stay_within_budget() {
        let used: Vec<Restorable> = (0..9).map(|n| item(&format!("s{n}"), 100)).collect();
        assert_eq!(restored(used.clone(), RestoreBudget::SKILLS).len(), 9, "as many as fit");
        let few = RestoreBudget { items: 5, ..RestoreBudget::SKILLS };
        assert_eq!(names(&restored(used, few)), ["s0", "s1", "s2", "s3", "s4"]);
        let twice = vec![item("new", 9), item("old", 9), item("new", 50)];
        let found = restored(twice, RestoreBudget::SKILLS);
        assert_eq!((names(&found), found[0].text.len()), (vec!["new", "old"], 36), "the newer of two");
        let found = restored(vec![item("long", 90_000)], RestoreBudget::SKILLS);
        assert!(found[0].text.starts_with("wordword") && found[0].text.ends_with(CUT));
        assert!(prose_tokens(&found[0].text) <= 5_000, "{}", prose_tokens(&found[0].text));
        let large: Vec<Restorable> = (0..5).map(|n| item(&format!("l{n}"), 4_990)).collect();
        let all: u64 = restored(large, RestoreBudget::SKILLS).iter().map(Restorable::tokens).sum();
        assert!((15_000..=25_000).contains(&all), "{all}");
        let small = RestoreBudget::SKILLS.within(60);
        assert_eq!(names(&restored(vec![item("large", 500), item("small", 9)], small)), ["small"]);
    }

    /// Regression class 12: what an agent used does not come into the conversation that started it. What is held is the
    /// rule for whatever plugs in.
    #[test]
    fn skills_used_by_an_agent_are_not_restored() {
        let agents = Restorable { is_agents: true, ..item("agents", 9) };
        assert_eq!(names(&restored(vec![agents, item("own", 9)], RestoreBudget::SKILLS)), ["own"]);
    }
}
