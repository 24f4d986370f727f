//! Beta features: which ones a request uses, and the header and body fields that go together.

use serde_json::{Value, json};

use crate::request::{Request, Thinking};

const LARGE_WINDOW: &str = "context-1m-2025-08-07";
/// Lets a model with a budget of thinking think between calls, too.
pub(super) const INTERLEAVED_THINKING: &str = "interleaved-thinking-2025-05-14";
const CONTEXT_MANAGEMENT: &str = "context-management-2025-06-27";
const EFFORT: &str = "effort-2025-11-24";
const TOOL_REFERENCES: &str = "advanced-tool-use-2025-11-20";
const TASK_BUDGETS: &str = "task-budgets-2026-03-13";

/// Which beta features may be used without anybody asking for them by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Features {
    /// All we know.
    Experimental,
    /// None (`CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS`), for gateways that refuse what they do not know.
    StableOnly,
}

impl Features {
    /// Returns what the server is to do to the conversation before the model reads it; nothing, where it may not be asked.
    /// What is done to reasoning must come first.
    pub(crate) fn context_edits(self, request: &Request) -> Vec<Value> {
        if self == Self::StableOnly || !request.edits_context {
            return Vec::new();
        }
        let thinking = request.thinking.is_on();
        let thinking = thinking.then(|| json!({"type": "clear_thinking_20251015", "keep": "all"}));
        let results = request.clear_results.as_ref().map(|clear| {
            json!({
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": clear.above_tokens},
                "keep": {"type": "tool_uses", "value": clear.keep},
                "clear_at_least": {"type": "input_tokens", "value": clear.at_least},
                "exclude_tools": &*clear.except,
            })
        });
        thinking.into_iter().chain(results).collect()
    }

    /// Returns the effort level to send.
    pub(crate) fn effort(self, request: &Request) -> Option<&str> {
        request.effort.as_deref().filter(|_| self == Self::Experimental)
    }

    fn has_interleaved_thinking(self, request: &Request) -> bool {
        self == Self::Experimental && matches!(request.thinking, Thinking::Budget(_))
    }

    /// Returns the `anthropic-beta` list: what the fields imply, then what was asked for by name.
    ///
    /// The large window was asked for by the model's name, so it stays even when only stable features may be used.
    pub(crate) fn betas(self, request: &Request, extra: &[String]) -> Vec<String> {
        let implied = [
            (request.model_and_window().1, LARGE_WINDOW),
            (self.has_interleaved_thinking(request), INTERLEAVED_THINKING),
            (!self.context_edits(request).is_empty(), CONTEXT_MANAGEMENT),
            (self.effort(request).is_some(), EFFORT),
            (request.tools.iter().any(|tool| tool.uses_references), TOOL_REFERENCES),
            (request.task_budget.is_some(), TASK_BUDGETS),
        ];
        let implied = implied.into_iter().filter(|(is_used, _)| *is_used).map(|(_, name)| name.to_owned());
        let mut betas: Vec<String> = Vec::new();
        for name in implied.chain(request.betas.iter().cloned()).chain(extra.iter().cloned()) {
            if !betas.contains(&name) {
                betas.push(name);
            }
        }
        betas
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(features: Features, change: impl FnOnce(&mut Request), expected: Expect) {
        let mut request = Request::new("claude-sonnet-4-5", 1000, Vec::new());
        change(&mut request);
        expected.assert_eq(&features.betas(&request, &["from-env".to_owned()]).join(","));
    }

    #[test]
    fn betas_follow_the_fields() {
        use Features::{Experimental, StableOnly};
        check(Experimental, |_| {}, expect!["from-env"]);
        check(Experimental, |r| r.model.push_str("[1m]"), expect!["context-1m-2025-08-07,from-env"]);
        check(
            Experimental,
            |r| r.thinking = Thinking::Budget(2000),
            expect!["interleaved-thinking-2025-05-14,context-management-2025-06-27,from-env"],
        );
        check(
            Experimental,
            |r| {
                r.thinking = Thinking::Adaptive;
                r.effort = Some("high".to_owned());
                r.betas = vec!["mine".to_owned(), "from-env".to_owned()];
            },
            expect!["context-management-2025-06-27,effort-2025-11-24,mine,from-env"],
        );
        check(
            Experimental,
            |r| {
                r.thinking = Thinking::Budget(2000);
                r.edits_context = false;
            },
            expect!["interleaved-thinking-2025-05-14,from-env"],
        );
        check(
            StableOnly,
            |r| {
                r.model.push_str("[1m]");
                r.thinking = Thinking::Budget(2000);
                r.effort = Some("high".to_owned());
                r.betas = vec!["mine".to_owned()];
            },
            expect!["context-1m-2025-08-07,mine,from-env"],
        );
    }
}
