//! The agents at work, a row each, and the person's own command that says what rows look like (`subagentStatusLine`).
//!
//! While agents work the session is asked about them every second. Where there is a command, it reads all of them and
//! prints the rows that are to look otherwise; it runs again once it has ended.

use std::sync::Arc;
use std::time::Duration;

use loci_app::interface::status_line::{AgentRowsConfig, agent_label, parse_agent_rows};
use loci_engine::{AgentAtWork, Command, SessionSnapshot};

use super::short_count;
use crate::app::Effect;
use crate::layout::{cut, faint};
use crate::text::{Row, Span, parse_status, sanitize_line};

/// What the question to the session is called by.
pub(crate) const AGENTS_REQUEST: &str = "agent-rows";
/// How often the session is asked while agents work.
const REFRESH: Duration = Duration::from_secs(1);
/// The most rows that are shown.
const MOST_ROWS: usize = 8;
/// What stands before each row takes so many cells.
const MARGIN: u16 = 4;

/// The rows of agents at work.
#[derive(Debug, Default)]
pub(crate) struct AgentRows {
    agents: Vec<AgentAtWork>,
    /// When the session is asked again.
    due: Option<Duration>,
    /// What the command said of rows, by the agent's id.
    own: Vec<(String, Vec<Span>)>,
    is_command_running: bool,
    has_complained: bool,
}

impl AgentRows {
    /// An agent began or ended.
    pub(crate) fn trigger(&mut self, now: Duration) {
        self.due = Some(now);
    }

    /// Returns when it wants to hear of the time.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.due
    }

    /// Asks the session who works, when it is time.
    pub(crate) fn tick(&mut self, now: Duration) -> Option<Effect> {
        self.due.take_if(|due| *due <= now)?;
        Some(Effect::Send(Command::Snapshot { request: AGENTS_REQUEST.to_owned() }))
    }

    /// Takes who works, and has the command run.
    pub(crate) fn take(&mut self, snapshot: Arc<SessionSnapshot>, now: Duration) -> Option<Effect> {
        self.agents.clone_from(&snapshot.agents_at_work);
        self.own.retain(|(id, _)| self.agents.iter().any(|agent| agent.id.as_str() == id));
        if self.agents.is_empty() {
            return None;
        }
        self.due = Some(now + REFRESH);
        let Some(config) = AgentRowsConfig::from_settings(&snapshot.settings) else {
            self.own.clear();
            return None;
        };
        (!std::mem::replace(&mut self.is_command_running, true))
            .then_some(Effect::RunAgentRows { config, snapshot })
    }

    /// Takes what the command printed; returns what is wrong, once.
    pub(crate) fn printed(&mut self, said: Result<String, String>) -> Option<String> {
        self.is_command_running = false;
        match said.and_then(|text| parse_agent_rows(&text)) {
            Ok(rows) => {
                let spans = |content: String| parse_status(&content).into_iter().next().unwrap_or_default();
                self.own = rows.into_iter().map(|(id, content)| (id, spans(content))).collect();
                None
            }
            Err(why) => (!std::mem::replace(&mut self.has_complained, true)).then_some(why),
        }
    }

    /// Returns how many cells a row of the command may have.
    pub(crate) fn columns(width: u16) -> u16 {
        width.saturating_sub(MARGIN)
    }

    /// Returns the rows.
    pub(crate) fn rows(&self, width: u16) -> Vec<Row> {
        let rows: Vec<Vec<Span>> = self.agents.iter().filter_map(|agent| self.row(agent)).collect();
        let n_more = rows.len().saturating_sub(MOST_ROWS);
        let more = (n_more > 0).then(|| vec![Span::styled(format!("and {n_more} more (/tasks)"), faint())]);
        let shown = rows.into_iter().take(MOST_ROWS).chain(more);
        shown.map(|row| cut(&Row::new([vec![Span::styled("  ● ", faint())], row].concat()), width)).collect()
    }

    /// Returns one row; none where the command hides it.
    fn row(&self, agent: &AgentAtWork) -> Option<Vec<Span>> {
        match self.own.iter().find(|(id, _)| id == agent.id.as_str()) {
            Some((_, spans)) => Some(spans.clone()).filter(|spans| !spans.is_empty()),
            None => {
                let tokens = short_count(agent.tokens());
                let text = format!("{} · {tokens} tokens", sanitize_line(&agent_label(agent)));
                Some(vec![Span::styled(text, faint())])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use loci_core::ids::{AgentId, SessionId};
    use loci_stdx::Timestamp;
    use serde_json::json;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn snapshot(ids: &[&str], command: Option<&str>) -> Arc<SessionSnapshot> {
        let session = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap();
        let mut snapshot = SessionSnapshot::empty(session, "claude-sonnet-4-5");
        let agent = |id: &&str| AgentAtWork {
            id: AgentId::new(*id),
            name: None,
            kind: "Explore".to_owned(),
            description: format!("task {id}"),
            started: Timestamp::UNIX_EPOCH,
            model: "claude-haiku-4-5".to_owned(),
            effort: None,
            window: 200_000,
            cwd: "/p".into(),
            samples: vec![1_500],
        };
        snapshot.agents_at_work = ids.iter().map(agent).collect();
        snapshot.settings = json!({"subagentStatusLine": {"type": "command", "command": command}});
        Arc::new(snapshot)
    }

    fn texts(rows: &AgentRows) -> Vec<String> {
        rows.rows(60).iter().map(Row::text).collect()
    }

    #[test]
    fn agents_are_shown_while_they_work_and_asked_about_every_second() {
        let mut rows = AgentRows::default();
        assert!(rows.deadline().is_none() && rows.tick(MS(0)).is_none());
        rows.trigger(MS(10));
        assert!(rows.tick(MS(10)).is_some() && rows.tick(MS(11)).is_none());
        assert_eq!(rows.take(snapshot(&["a", "b"], None), MS(20)), None);
        assert_eq!(
            texts(&rows),
            ["  ● Explore · task a · 1.5k tokens", "  ● Explore · task b · 1.5k tokens"]
        );
        assert!(rows.tick(MS(900)).is_none() && rows.tick(MS(1_020)).is_some());
        assert_eq!(rows.take(snapshot(&[], None), MS(1_030)), None);
        assert!(texts(&rows).is_empty() && rows.deadline().is_none(), "nobody works, nobody asks");
        let many: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        rows.take(snapshot(&many.iter().map(String::as_str).collect::<Vec<_>>(), None), MS(1_040));
        assert_eq!(texts(&rows)[8], "  ● and 2 more (/tasks)");
    }

    #[test]
    fn command_changes_and_hides_rows_and_runs_once_at_a_time() {
        let mut rows = AgentRows::default();
        let action = rows.take(snapshot(&["a", "b", "c"], Some("mine")), MS(0));
        assert!(matches!(action, Some(Effect::RunAgentRows { config, .. }) if config.command.line == "mine"));
        assert_eq!(rows.take(snapshot(&["a", "b", "c"], Some("mine")), MS(1)), None, "it runs still");
        let printed = "{\"id\":\"a\",\"content\":\"\\u001b[31mred\\u001b[0m\\nsecond\"}\n{\"id\":\"b\",\"content\":\"\"}";
        assert_eq!(rows.printed(Ok(printed.to_owned())), None);
        assert_eq!(texts(&rows), ["  ● red", "  ● Explore · task c · 1.5k tokens"]);
        assert!(rows.take(snapshot(&["a"], Some("mine")), MS(2)).is_some());
        assert!(
            rows.printed(Ok("oops".to_owned())).is_some() && rows.printed(Err("slow".to_owned())).is_none()
        );
        assert_eq!(texts(&rows), ["  ● red"], "a failure takes nothing away");
        rows.take(snapshot(&["a"], None), MS(3));
        assert_eq!(
            texts(&rows),
            ["  ● Explore · task a · 1.5k tokens"],
            "without a command rows are as usual"
        );
    }
}
