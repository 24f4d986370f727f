//! Beta features: which ones a request uses, and the header and body fields that go together.

use crate::request::{Request, Thinking};

const LARGE_WINDOW: &str = "context-1m-2025-08-07";
const INTERLEAVED_THINKING: &str = "interleaved-thinking-2025-05-14";
const CONTEXT_MANAGEMENT: &str = "context-management-2025-06-27";
const EFFORT: &str = "effort-2025-11-24";

/// Which beta features may be used without anybody asking for them by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Features {
    /// All we know.
    Experimental,
    /// None (`CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS`), for gateways that refuse what they do not know.
    StableOnly,
}

impl Features {
    /// Tells whether old reasoning is managed by the server.
    pub(crate) fn has_context_management(self, request: &Request) -> bool {
        self == Self::Experimental && request.thinking.is_on()
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
            (self.has_context_management(request), CONTEXT_MANAGEMENT),
            (self.effort(request).is_some(), EFFORT),
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
