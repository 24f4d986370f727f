//! Another session takes the place of the one at hand: it was chosen, branched off, or rewound to.

use loci_app::sessions::picker::SessionChoice;
use loci_app::start::StartAnswer;
use loci_app::start::renewal::SwitchTarget;

use super::{Action, App, Effect, Elsewhere, ExitReason, SwitchedFacts, UiAction};
use crate::block::{Block, NoticeLevel};
use crate::dialog::ChoiceDialog;
use crate::panel::{ResumePanel, RewindPanel};

impl App {
    /// Leaves the session for another; what is sent meanwhile waits for that one.
    pub(super) fn switch(&mut self, target: SwitchTarget) -> Vec<Effect> {
        if self.session.is_working() {
            self.flash("Wait for the end of the turn, or press Esc, before you switch to another session");
            return Vec::new();
        }
        self.session.switching = Some(Switching { target: target.clone(), facts: None });
        vec![Effect::Switch(target)]
    }

    /// Goes on with a session that was chosen: here, or in the directory that it belongs to.
    pub(super) fn resume(&mut self, choice: &SessionChoice, at: Option<String>) -> Vec<Effect> {
        let session = choice.id.clone();
        match &choice.cwd {
            Some(cwd) if !choice.is_here && !self.session.is_working() => {
                self.exit(ExitReason::Asked);
                let (cwd, session) = (cwd.clone(), Some(session));
                vec![Effect::GoElsewhere(Elsewhere { cwd, session, at, is_moved: false })]
            }
            _ if !self.session.is_started => vec![Effect::Answer(StartAnswer::Session { id: session, at })],
            _ => self.switch(SwitchTarget { session, at, ..SwitchTarget::default() }),
        }
    }

    /// Lets a prompt be chosen to go back to.
    pub(super) fn choose_rewind(&mut self) -> Vec<Effect> {
        let Some(session) = self.session.id.clone().filter(|_| self.session.is_started) else {
            self.flash("There is no session yet");
            return Vec::new();
        };
        if !self.session.is_persistent {
            let text = "This session is not kept on disk, so there is nothing to go back to";
            self.transcript.notice(NoticeLevel::Info, text);
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

    /// Another session runs now.
    pub(super) fn renewed(&mut self, id: String) -> Vec<Effect> {
        let mut effects = Vec::new();
        let (left, switching) = self.session.renewed(id);
        self.status.line.trigger(self.now);
        self.queue.forget_sent();
        if switching.as_ref().is_some_and(|it| it.is_copy_of(left.as_deref())) {
            // All that it begins with is shown already.
            self.transcript.expect_nothing_new();
        } else {
            self.transcript.log.clear();
        }
        self.background.clear();
        self.schedule.renewed();
        match switching {
            Some(switching) => {
                let said = self.session.switched(switching, left.as_deref());
                said.into_iter().for_each(|block| self.transcript.push(block));
            }
            None => {
                (self.session.has_turns, self.session.is_clearing) = (false, true);
                self.transcript
                    .notice(NoticeLevel::Info, "A new conversation begins; the last one can be resumed");
                // What was said leaves the screen; the scrollback keeps it.
                effects.push(Effect::RepaintAll);
            }
        }
        effects.extend(self.send_held());
        effects
    }
}

/// Asks what is to become of a session that another process uses.
pub(super) fn in_use_dialog(target: SwitchTarget, holder: &str) -> ChoiceDialog {
    let fork = SwitchTarget { is_fork: true, ..target.clone() };
    let take_over = SwitchTarget { takes_over: true, ..target };
    let switch = |target| vec![Action::Ui(UiAction::Switch(target))];
    ChoiceDialog::new(
        "This session is in use",
        vec![format!("{holder}.")],
        vec![
            ("Go on with a copy", switch(fork)),
            ("Take it over; the other process can write no more", switch(take_over)),
            ("Stay here", Vec::new()),
        ],
    )
}

/// A session that was asked for.
#[derive(Debug)]
pub(super) struct Switching {
    pub(super) target: SwitchTarget,
    /// What is known of it, once it is ready.
    pub(super) facts: Option<SwitchedFacts>,
}

impl Switching {
    /// Tells whether it is a copy of a session, with all of it.
    fn is_copy_of(&self, session: Option<&str>) -> bool {
        let SwitchTarget { session: source, is_fork, at, rewind, .. } = &self.target;
        *is_fork && at.is_none() && rewind.is_none() && Some(source.as_str()) == session
    }

    /// Says what goes on; `left` is the session before.
    pub(super) fn announcement(&self, left: Option<&str>) -> Block {
        let SwitchTarget { is_fork, at, rewind, .. } = &self.target;
        if let Some(rewind) = rewind {
            let text = match rewind.prompt {
                Some(_) if rewind.summary.is_some() => {
                    "What came after that prompt is a summary now; `/rewind` can undo it"
                }
                Some(_) => "The conversation is back before that prompt; `/rewind` can undo it",
                None => "The rewind is undone",
            };
            return Block::TurnEnd { text: text.to_owned() };
        }
        let text = match (is_fork, at, left) {
            (true, _, Some(left)) => format!("This is a branch; `/resume {left}` goes back to the original"),
            (false, Some(_), _) => {
                "The conversation goes on from here; what came after is kept as a branch".to_owned()
            }
            _ => match self.facts.as_ref().and_then(|facts| facts.title.as_deref()) {
                Some(title) => format!("The session goes on: {}", loci_stdx::single_line(title, 80)),
                None => "The session goes on".to_owned(),
            },
        };
        Block::TurnEnd { text }
    }
}
