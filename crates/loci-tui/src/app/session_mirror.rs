//! What is known here of the session: which it is, how it stands, and the turn that is under way.

use std::sync::Arc;
use std::time::Duration;

use loci_app::start::renewal::SwitchTarget;
use loci_core::permission::Mode;
use loci_core::stream::{Delta, StreamEvent};
use loci_engine::{Command, CommandRegistry, Fullness, Prompt, TurnStart};

use super::conversation::Conversation;
use super::switching::Switching;
use super::terminal_shell::TerminalCommand;
use super::{BackgroundRun, Effect, SessionFacts};
use crate::block::{Block, NoticeLevel};
use crate::input::Draft;
use crate::interface_settings::SpinnerWords;
use crate::status::{Activity, OptionalModes, Work, next_mode};

/// What is known of the session.
#[derive(Debug, Default)]
pub(crate) struct SessionMirror {
    /// Whether it is there; until then prompts wait.
    pub(super) is_started: bool,
    /// Whether it is only looked at.
    pub(super) is_viewed: bool,
    pub(super) id: Option<String>,
    /// The name it was given.
    pub(super) title: Option<String>,
    /// Whether anything was said in it, so that it can be resumed.
    pub(super) has_turns: bool,
    /// Whether the person has switched thinking off.
    is_thinking_off: bool,
    pub(super) is_persistent: bool,
    pub(super) model: String,
    pub(super) mode: Mode,
    /// Modes that are in the circle here.
    optional_modes: OptionalModes,
    pub(super) context: Option<Fullness>,
    /// How its sandbox stands, in words.
    pub(super) sandbox: Option<String>,
    /// Whether its sandbox lets nothing run outside.
    pub(super) is_sandbox_strict: bool,
    pub(super) commands: Arc<CommandRegistry>,
    /// What is worked towards, and since when it is known here.
    goal: Option<(String, Duration)>,
    /// The turn that is under way.
    pub(super) work: Option<Work>,
    /// How many turns there were, for what is said beside the spinner.
    pub(super) n_turns: usize,
    /// The session that is to take the place of this one.
    pub(super) switching: Option<Switching>,
    /// A new conversation has begun, and the turn of the `/clear` that asked for it is not over: its end says nothing about
    /// prompts that were sent since.
    pub(super) is_clearing: bool,
    /// The model that is to be asked, until it is known how the session stands.
    pub(super) model_wanted: Option<String>,
    /// A command of the shell that waits to be run on the terminal.
    pub(super) terminal_command: Option<TerminalCommand>,
}

impl SessionMirror {
    pub(super) fn new() -> Self {
        Self { commands: Arc::new(CommandRegistry::builtin()), ..Self::default() }
    }

    /// Takes what is known of a session that has begun.
    pub(super) fn begin(&mut self, facts: &SessionFacts) {
        self.is_started = true;
        self.id = Some(facts.id.clone());
        self.title.clone_from(&facts.title);
        self.model.clone_from(&facts.model);
        self.mode = facts.mode;
        self.optional_modes = OptionalModes { bypass: facts.may_bypass, auto: facts.mode == Mode::Auto };
        self.is_persistent = facts.is_persistent;
        self.commands = Arc::clone(&facts.commands);
    }

    /// Returns its id, once there is one.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the line that says how to go on with it, if there is something to go on with.
    pub(crate) fn resume_hint(&self) -> Option<String> {
        Some(format!("Resume this session with: loci -r {}", self.kept_id()?))
    }

    /// Returns its id where something was said in it that is kept.
    pub(super) fn kept_id(&self) -> Option<&str> {
        self.id.as_deref().filter(|_| self.has_turns && self.is_persistent)
    }

    /// Tells whether a turn is under way.
    pub(super) fn is_working(&self) -> bool {
        self.work.is_some()
    }

    /// A turn begins.
    pub(super) fn turn_started(
        &mut self,
        start: TurnStart,
        words: &SpinnerWords,
        now: Duration,
    ) -> &mut Work {
        self.model = start.model;
        self.mode = start.mode;
        self.commands = start.commands;
        self.has_turns = true;
        let tip = words.tip(self.n_turns).map(str::to_owned);
        let verb = words.verb(self.n_turns).map(str::to_owned);
        self.n_turns += 1;
        self.work.insert(Work { since: now, verb, tip, ..Work::default() })
    }

    /// Tells whether what is sent now has to wait: a turn is under way, or another session is to take this one's place.
    pub(super) fn is_busy(&self) -> bool {
        self.is_working() || self.switching.is_some()
    }

    /// Tells whether a draft is a command that the session carries out.
    pub(super) fn is_command(&self, draft: &Draft) -> bool {
        self.commands.parse(&Prompt::new(draft.content(), None)).is_some()
    }

    /// A command of the shell begins to run.
    pub(super) fn shell_started(&mut self, command: &str, now: Duration) {
        let work = self.work.get_or_insert_with(|| Work { since: now, ..Work::default() });
        work.activity = Activity::Running(loci_stdx::single_line(command, 50));
    }

    /// A question was answered, or withdrawn; unless another is open, its call runs.
    pub(super) fn question_over(&mut self, question: &str, conversation: &mut Conversation) {
        conversation.answered(question);
        let is_asking = self.work.as_ref().is_some_and(|work| work.activity == Activity::Asking);
        if is_asking && !conversation.is_asking() {
            self.go_on(conversation.waiting_summary());
        }
    }

    /// The turn is over; returns what is known of it.
    pub(super) fn turn_ended(&mut self) -> Option<Work> {
        self.work.take()
    }

    pub(super) fn set_activity(&mut self, activity: Activity) {
        if let Some(work) = &mut self.work {
            work.activity = activity;
        }
    }

    /// Goes on: with a call that has no result yet, or with the model.
    pub(super) fn go_on(&mut self, waiting: Option<String>) {
        self.set_activity(waiting.map_or(Activity::Waiting, Activity::Running));
    }

    /// The model is asked.
    pub(super) fn requesting(&mut self) {
        if let Some(work) = &mut self.work {
            (work.activity, work.is_unanswered) = (Activity::Waiting, true);
        }
    }

    /// Notes that a prompt that was sent is recorded, or has yet to be.
    pub(super) fn await_prompt(&mut self, is_awaited: bool) {
        if let Some(work) = &mut self.work {
            work.is_prompt_awaited = is_awaited;
        }
    }

    /// Stops the turn.
    pub(super) fn interrupt(&mut self) -> Effect {
        if let Some(work) = &mut self.work {
            work.is_stopping = true;
        }
        Effect::Send(Command::Interrupt)
    }

    /// Notes why a compaction failed: it is told as an answer that failed, too, and as a turn that did.
    pub(super) fn note_told(&mut self, failure: String) {
        if let Some(work) = &mut self.work {
            work.told = Some(failure);
        }
    }

    /// Tells whether what went wrong was told already.
    pub(super) fn is_told(&self, text: &str) -> bool {
        self.work.as_ref().and_then(|work| work.told.as_deref()).is_some_and(|told| text.ends_with(told))
    }

    /// Takes news of a response; `waiting` says which calls have no result yet.
    pub(super) fn stream(
        &mut self,
        event: &StreamEvent,
        waiting: impl FnOnce() -> Option<String>,
        now: Duration,
    ) {
        let Some(work) = &mut self.work else { return };
        work.is_unanswered &= !says_something(event);
        match event {
            StreamEvent::Delta { delta, .. } => {
                let (text, activity) = match delta {
                    Delta::Text(text) => (text, Activity::Answering),
                    Delta::Thinking(text) => (text, Activity::Thinking),
                    Delta::InputJson(text) => (text, Activity::Answering),
                };
                work.letters += text.len();
                if work.activity != activity {
                    work.activity = activity;
                }
            }
            StreamEvent::Ended(ended) => {
                work.tokens += ended.usage.output_tokens;
                work.letters = 0;
                work.calls_since = Some(now);
                work.activity = waiting().map_or(Activity::Waiting, Activity::Running);
            }
            StreamEvent::Wire(_)
            | StreamEvent::Started(_)
            | StreamEvent::BlockStarted { .. }
            | StreamEvent::BlockDone { .. } => {}
        }
    }

    /// A call has its result; returns how long those at hand took.
    pub(super) fn call_ended(&mut self, waiting: Option<String>, now: Duration) -> Option<Duration> {
        self.go_on(waiting);
        let since = self.work.as_mut()?.calls_since.replace(now)?;
        Some(now.saturating_sub(since))
    }

    /// Switches thinking off, or back to what the model does by itself; returns what is said.
    pub(super) fn toggle_thinking(&mut self) -> (&'static str, Effect) {
        self.is_thinking_off = !self.is_thinking_off;
        let (most, text) = match self.is_thinking_off {
            true => (Some(0), "Thinking is off from the next request on · Alt+T switches it on"),
            false => (None, "Thinking is on from the next request on · Alt+T switches it off"),
        };
        (text, Effect::Send(Command::SetThinking(most)))
    }

    /// Returns the mode that follows in the circle.
    pub(super) fn next_mode(&self) -> Mode {
        next_mode(self.mode, self.optional_modes)
    }

    /// Notes another mode; false where it is the same.
    pub(super) fn set_mode(&mut self, mode: Mode) -> bool {
        std::mem::replace(&mut self.mode, mode) != mode
    }

    /// Notes what is worked towards.
    pub(super) fn set_goal(&mut self, condition: Option<String>, now: Duration) {
        let is_known = self.goal.as_ref().map(|(known, _)| known) == condition.as_ref();
        if !is_known {
            self.goal = condition.map(|condition| (condition, now));
        }
    }

    /// Returns for how long a goal has been worked towards.
    pub(super) fn goal_time(&self, now: Duration) -> Option<Duration> {
        self.goal.as_ref().map(|(_, since)| now.saturating_sub(*since))
    }

    /// Another session runs now; returns the id of the one before, and the one that was asked for.
    pub(super) fn renewed(&mut self, id: String) -> (Option<String>, Option<Switching>) {
        // The one that takes its place tells what it works towards.
        (self.goal, self.context, self.sandbox, self.title) = (None, None, None, None);
        (self.id.replace(id), self.switching.take())
    }

    /// Takes what is known of the session that was asked for; returns what is said of it.
    pub(super) fn switched(&mut self, switching: Switching, left: Option<&str>) -> Vec<Block> {
        let said = switching.announcement(left);
        let Switching { target, facts } = switching;
        self.has_turns = true;
        self.title = target.title;
        let mut blocks = Vec::new();
        if let Some(facts) = facts {
            self.title = facts.title.or(self.title.take());
            (self.model, self.mode) = (facts.model, facts.mode);
            let notice = |level| move |text| Block::Notice { level, text };
            blocks.extend(facts.warnings.into_iter().map(notice(NoticeLevel::Warning)));
            blocks.extend(facts.notes.into_iter().map(notice(NoticeLevel::Info)));
        }
        blocks.push(said);
        blocks
    }

    /// Returns a copy of the conversation to go on in; none where nothing was said.
    pub(super) fn branch(&self, title: Option<String>) -> Option<SwitchTarget> {
        let session = self.id.clone().filter(|_| self.has_turns)?;
        Some(SwitchTarget { session, is_fork: true, title, ..SwitchTarget::default() })
    }

    /// Returns how it goes on without a terminal, or why it cannot; `go_on` is what a turn under way is asked to do.
    pub(super) fn background_run(
        &self,
        prompt: Option<String>,
        go_on: &str,
    ) -> Result<BackgroundRun, &'static str> {
        let session = self.id.clone().ok_or("The session has not begun yet")?;
        if !self.is_persistent {
            return Err("This session is not kept on disk, so nobody could go on with it");
        }
        if prompt.is_none() && !self.is_working() {
            return Err("Nothing is under way. `/background PROMPT` says what is to be done");
        }
        Ok(BackgroundRun {
            session,
            is_new: !self.has_turns && !self.is_working(),
            prompt: prompt.unwrap_or_else(|| go_on.to_owned()),
            mode: self.mode,
            model: self.model.clone(),
        })
    }
}

/// Tells whether something of an answer is in an event: words, or a call.
fn says_something(event: &StreamEvent) -> bool {
    match event {
        StreamEvent::Delta { delta: Delta::Text(text), .. } => !text.trim().is_empty(),
        StreamEvent::BlockDone { block, .. } => {
            block.tool_use().is_some() || block.text().is_some_and(|text| !text.trim().is_empty())
        }
        StreamEvent::Delta { .. }
        | StreamEvent::BlockStarted { .. }
        | StreamEvent::Wire(_)
        | StreamEvent::Started(_)
        | StreamEvent::Ended(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> SessionMirror {
        SessionMirror {
            id: Some("s".to_owned()),
            has_turns: true,
            is_persistent: true,
            ..SessionMirror::new()
        }
    }

    fn text(text: &str) -> StreamEvent {
        StreamEvent::Delta { index: 0, delta: Delta::Text(text.to_owned()) }
    }

    #[test]
    fn session_is_resumed_only_where_something_of_it_is_kept() {
        assert_eq!(session().resume_hint().as_deref(), Some("Resume this session with: loci -r s"));
        assert_eq!(SessionMirror { is_persistent: false, ..session() }.resume_hint(), None);
        assert_eq!(SessionMirror { has_turns: false, ..session() }.resume_hint(), None);
        assert_eq!(SessionMirror { has_turns: false, ..session() }.branch(None), None);
    }

    #[test]
    fn answer_of_blanks_alone_is_none() {
        let mut it = SessionMirror { work: Some(Work::default()), ..session() };
        it.requesting();
        it.stream(&text("\n "), || None, Duration::ZERO);
        assert!(it.work.as_ref().is_some_and(|work| work.is_unanswered));
        it.stream(&text("word"), || None, Duration::ZERO);
        assert!(it.work.as_ref().is_some_and(|work| !work.is_unanswered));
    }

    #[test]
    fn goal_counts_from_when_it_was_first_heard_of_and_ends_with_the_session() {
        let mut it = session();
        let s = Duration::from_secs;
        it.set_goal(Some("g".to_owned()), s(1));
        it.set_goal(Some("g".to_owned()), s(5));
        assert_eq!(it.goal_time(s(11)), Some(s(10)));
        let (left, _) = it.renewed("next".to_owned());
        assert_eq!((left.as_deref(), it.goal_time(s(12)), it.id()), (Some("s"), None, Some("next")));
    }

    #[test]
    fn session_goes_on_in_the_background_only_with_something_to_do_on_disk() {
        let idle = session();
        assert!(idle.background_run(None, "go on").is_err());
        assert_eq!(
            idle.background_run(Some("p".to_owned()), "go on").map(|run| run.prompt),
            Ok("p".to_owned())
        );
        let working = SessionMirror { work: Some(Work::default()), ..session() };
        assert_eq!(working.background_run(None, "go on").map(|run| run.prompt), Ok("go on".to_owned()));
        let unkept = SessionMirror { is_persistent: false, ..working };
        assert!(unkept.background_run(Some("p".to_owned()), "go on").is_err());
    }
}
