//! Another session takes the place of the one at hand: it was chosen, branched off, or rewound to.

use std::path::PathBuf;

use loci_app::renewal::SwitchTarget;
use loci_app::session_picker::SessionChoice;
use loci_app::start::StartAnswer;

use super::recap::RecapClock;
use super::{Action, App, Effect, Elsewhere, ExitReason, SwitchedFacts, UiAction};
use crate::block::{Block, NoticeLevel};
use crate::dialog::ChoiceDialog;
use crate::panel::{ResumePanel, RewindPanel};

impl App {
    /// Leaves the session for another; what is sent meanwhile waits for that one.
    pub(super) fn switch(&mut self, target: SwitchTarget) -> Vec<Effect> {
        if self.work.is_some() {
            self.flash("Wait for the end of the turn, or press Esc, before you switch to another session");
            return Vec::new();
        }
        self.switching = Some(Switching { target: target.clone(), facts: None });
        vec![Effect::Switch(target)]
    }

    /// Goes on with a session that was chosen: here, or in the directory that it belongs to.
    pub(super) fn resume(&mut self, choice: &SessionChoice, at: Option<String>) -> Vec<Effect> {
        let session = choice.id.clone();
        match &choice.cwd {
            Some(cwd) if !choice.is_here && self.work.is_none() => {
                self.exit(ExitReason::Asked);
                let (cwd, session) = (cwd.clone(), Some(session));
                vec![Effect::GoElsewhere(Elsewhere { cwd, session, at, is_moved: false })]
            }
            _ if !self.session.is_started => vec![Effect::Answer(StartAnswer::Session { id: session, at })],
            _ => self.switch(SwitchTarget { session, at, ..SwitchTarget::default() }),
        }
    }

    /// Leaves for another directory, and goes on there with all that was said.
    pub(super) fn move_to(&mut self, cwd: PathBuf) -> Vec<Effect> {
        if self.work.is_some() {
            self.flash("Wait for the end of the turn, or press Esc, before the session moves");
            return Vec::new();
        }
        let is_kept = self.session.has_turns && self.session.is_persistent;
        let session = self.session.id.clone().filter(|_| is_kept);
        self.exit(ExitReason::Asked);
        vec![Effect::GoElsewhere(Elsewhere { cwd, session, at: None, is_moved: true })]
    }

    /// Lets a prompt be chosen to go back to.
    pub(super) fn choose_rewind(&mut self) -> Vec<Effect> {
        let Some(session) = self.session.id.clone().filter(|_| self.session.is_started) else {
            self.flash("There is no session yet");
            return Vec::new();
        };
        if !self.session.is_persistent {
            self.notice(
                NoticeLevel::Info,
                "This session is not kept on disk, so there is nothing to go back to",
            );
            return Vec::new();
        }
        let (panel, actions) = RewindPanel::new(session);
        self.open_panel(panel);
        self.carry_out(actions)
    }

    /// Lets a session be chosen.
    pub(super) fn choose_session(&mut self) -> Vec<Effect> {
        let current = self.session.id.clone().filter(|_| self.session.is_started);
        let (panel, actions) = ResumePanel::new(current);
        self.open_panel(panel);
        self.carry_out(actions)
    }

    /// The session that was asked for is ready, and will begin.
    pub(super) fn switched(&mut self, facts: SwitchedFacts) {
        if let Some(switching) = &mut self.switching {
            switching.facts = Some(facts);
        }
    }

    /// The session that was asked for cannot be had; the one at hand goes on.
    pub(super) fn switch_failed(&mut self, problem: String) -> Vec<Effect> {
        self.switching = None;
        self.notice(NoticeLevel::Error, problem);
        self.send_held()
    }

    /// Another process uses the session that was asked for.
    pub(super) fn ask_in_use(&mut self, target: SwitchTarget, holder: &str) -> Vec<Effect> {
        self.switching = None;
        let fork = SwitchTarget { is_fork: true, ..target.clone() };
        let take_over = SwitchTarget { takes_over: true, ..target };
        self.dialogs.push(ChoiceDialog::new(
            "This session is in use",
            vec![format!("{holder}.")],
            vec![
                ("Go on with a copy", vec![Action::Ui(UiAction::Switch(fork))]),
                (
                    "Take it over; the other process can write no more",
                    vec![Action::Ui(UiAction::Switch(take_over))],
                ),
                ("Stay here", Vec::new()),
            ],
        ));
        self.send_held()
    }

    /// Another session runs now.
    pub(super) fn renewed(&mut self, id: String) -> Vec<Effect> {
        let left = self.session.id.replace(id);
        let is_branch = self.switching.as_ref().is_some_and(|it| it.is_copy_of(left.as_deref()));
        self.session.context = None;
        self.session.sandbox = None;
        self.session.title = None;
        self.queue.forget_sent();
        if is_branch {
            // All that it begins with is shown already.
            self.tail = Some(Vec::new());
        } else {
            self.log.clear();
        }
        self.background.clear();
        self.front = None;
        self.agent_logs.borrow_mut().clear();
        self.recap = RecapClock::default();
        match self.switching.take() {
            Some(switching) => self.show_switched(switching, left.as_deref()),
            None => {
                self.session.has_turns = false;
                self.is_clearing = true;
                self.notice(NoticeLevel::Info, "A new conversation begins; the last one can be resumed");
            }
        }
        self.send_held()
    }

    fn show_switched(&mut self, switching: Switching, left: Option<&str>) {
        let Switching { target, facts } = switching;
        self.session.has_turns = true;
        self.session.title.clone_from(&target.title);
        if let Some(facts) = facts {
            self.session.title = facts.title.or(self.session.title.take());
            self.session.model = facts.model;
            self.session.mode = facts.mode;
            facts.warnings.into_iter().for_each(|text| self.notice(NoticeLevel::Warning, text));
            facts.notes.into_iter().for_each(|text| self.notice(NoticeLevel::Info, text));
        }
        if let Some(rewind) = &target.rewind {
            let text = match rewind.prompt {
                Some(_) if rewind.summary.is_some() => {
                    "What came after that prompt is a summary now; `/rewind` can undo it"
                }
                Some(_) => "The conversation is back before that prompt; `/rewind` can undo it",
                None => "The rewind is undone",
            };
            return self.conversation.push(Block::TurnEnd { text: text.to_owned() });
        }
        let text = match (target.is_fork, &target.at, left) {
            (true, _, Some(left)) => format!("This is a branch; `/resume {left}` goes back to the original"),
            (false, Some(_), _) => {
                "The conversation goes on from here; what came after is kept as a branch".to_owned()
            }
            _ => "The session goes on".to_owned(),
        };
        self.conversation.push(Block::TurnEnd { text });
    }

    /// Goes on in a copy of the conversation.
    pub(super) fn branch(&mut self, title: Option<String>) -> Vec<Effect> {
        match self.session.id.clone().filter(|_| self.session.has_turns) {
            Some(session) => {
                self.switch(SwitchTarget { session, is_fork: true, title, ..SwitchTarget::default() })
            }
            None => {
                self.notice(NoticeLevel::Info, "Nothing was said yet, so there is nothing to branch from");
                Vec::new()
            }
        }
    }
}

/// A session that was asked for.
#[derive(Debug)]
pub(super) struct Switching {
    target: SwitchTarget,
    /// What is known of it, once it is ready.
    facts: Option<SwitchedFacts>,
}

impl Switching {
    /// Tells whether it is a copy of a session, with all of it.
    fn is_copy_of(&self, session: Option<&str>) -> bool {
        let SwitchTarget { session: source, is_fork, at, rewind, .. } = &self.target;
        *is_fork && at.is_none() && rewind.is_none() && Some(source.as_str()) == session
    }
}
