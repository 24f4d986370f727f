//! Whether the session works, waits for an answer of the client, or is idle: told to clients that asked for it.

use std::collections::BTreeSet;

use loci_stdx::Env;

/// Asks for the frames on behalf of an SDK, which keeps them to itself.
const FOR_SDK: &str = "CLAUDE_CODE_SDK_READS_SESSION_STATE";
/// Asks for them on behalf of whoever reads the stream.
const FOR_ALL: &str = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS";

/// What was last told, and to whom.
#[derive(Debug, Default)]
pub(super) struct SessionState {
    is_told: bool,
    /// Whether an SDK asked and nobody else.
    pub(super) is_host_only: bool,
    is_running: bool,
    /// Requests that wait for the client.
    asked: BTreeSet<String>,
    told: Option<&'static str>,
}

impl SessionState {
    pub(super) fn new(env: &Env) -> Self {
        let is_for_all = env.vars.is_truthy(FOR_ALL);
        Self {
            is_told: is_for_all || env.vars.is_truthy(FOR_SDK),
            is_host_only: !is_for_all,
            ..Self::default()
        }
    }

    /// A turn begins; returns what is to be told.
    pub(super) fn begin(&mut self) -> Option<&'static str> {
        self.is_running = true;
        self.news()
    }

    /// Nothing is under way, nor owed.
    pub(super) fn end(&mut self) -> Option<&'static str> {
        self.is_running = false;
        self.asked.clear();
        self.news()
    }

    /// The client is asked something.
    pub(super) fn ask(&mut self, id: &str) -> Option<&'static str> {
        self.asked.insert(id.to_owned());
        self.news()
    }

    /// It has answered, or need not any more.
    pub(super) fn answer(&mut self, id: &str) -> Option<&'static str> {
        self.asked.remove(id);
        self.news()
    }

    fn news(&mut self) -> Option<&'static str> {
        let now = match (self.asked.is_empty(), self.is_running) {
            (false, _) => "requires_action",
            (true, true) => "running",
            (true, false) => "idle",
        };
        let is_news = self.is_told && self.told != Some(now);
        is_news.then(|| *self.told.insert(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_state_are_told_once_and_only_where_asked_for() {
        let mut env = Env::for_test("/home/dev", "/p");
        assert_eq!(SessionState::new(&env).begin(), None);
        env.vars = [(FOR_SDK, "1")].into_iter().collect();
        let mut state = SessionState::new(&env);
        assert!(state.is_host_only);
        assert_eq!(state.begin(), Some("running"));
        assert_eq!(state.begin(), None);
        assert_eq!(state.ask("q1"), Some("requires_action"));
        assert_eq!(state.ask("q2"), None);
        assert_eq!(state.answer("q1"), None);
        assert_eq!(state.answer("q2"), Some("running"));
        assert_eq!(state.end(), Some("idle"));
        env.vars = [(FOR_SDK, "1"), (FOR_ALL, "1")].into_iter().collect();
        assert!(!SessionState::new(&env).is_host_only);
    }
}
