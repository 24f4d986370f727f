//! Sending what was typed: to the model, to the session, or to ourselves; at once, or when its time has come.

use loci_engine::Command;

use super::{App, Effect};
use crate::block::NoticeLevel;
use crate::input::{Draft, InputMode};
use crate::status::short_count;

/// How many tokens a window holds as long as that is not known.
const USUAL_WINDOW: u64 = 200_000;

impl App {
    /// Sends a text that nobody typed as it stands.
    pub(super) fn submit(&mut self, text: String) -> Vec<Effect> {
        self.dispatch(Draft::plain(InputMode::Prompt, &text))
    }

    /// Sends what stands in the prompt; nothing where Enter only ends a line there.
    pub(super) fn submit_prompt(&mut self) -> Vec<Effect> {
        match self.prompt.input.enter() {
            Some(draft) => self.submit_draft(draft),
            None => Vec::new(),
        }
    }

    /// Sends what was typed, chips and all.
    pub(super) fn submit_draft(&mut self, draft: Draft) -> Vec<Effect> {
        self.prompt.disarm();
        self.prompt.is_help_shown = false;
        if self.preferences.interface.follows_output {
            self.transcript.follow_output();
        }
        if draft.is_reading() {
            self.flash("The picture is still being read; it is sent as soon as that is done");
            self.prompt.submit_when_read(&draft);
            return Vec::new();
        }
        if let Some(missing) = missing_notice(&draft) {
            self.transcript.notice(NoticeLevel::Warning, missing.text);
            if missing.stays {
                self.prompt.input.set_draft(&draft);
                return Vec::new();
            }
        }
        let (prompt, ctx) = self.prompt_parts();
        let remembered = prompt.recall.remember(&draft, &ctx);
        let mut actions = self.dispatch(draft);
        actions.extend(remembered);
        // Who puts a prompt aside has something to say first; it has been said.
        if self.prompt.input.restore_stash() {
            self.flash("The prompt that was put aside is back");
        }
        actions
    }

    /// Sends a draft that is complete.
    pub(super) fn dispatch(&mut self, draft: Draft) -> Vec<Effect> {
        if draft.mode == InputMode::Prompt {
            let text = draft.expanded().trim().to_owned();
            if let Some(actions) = self.run_command(&text) {
                return actions;
            }
            let window = self.session.context.map_or(USUAL_WINDOW, |context| context.window);
            if let Some(warning) = cut_notice(text.len() as u64, window) {
                self.transcript.notice(NoticeLevel::Warning, warning);
            }
        }
        self.dispatch_to_session(draft)
    }

    /// Sends a draft to the session, or has it wait.
    pub(super) fn dispatch_to_session(&mut self, draft: Draft) -> Vec<Effect> {
        if self.session.is_viewed {
            self.flash("This session is only looked at: another process uses it");
            self.prompt.input.set_draft(&draft);
            return Vec::new();
        }
        if draft.mode == InputMode::Shell {
            // Behind others that wait it waits for its time.
            if self.queue.has_held() {
                self.queue.hold(draft);
                return Vec::new();
            }
            return self.run_shell(draft);
        }
        if !self.session.is_busy() {
            return vec![self.queue.send(draft)];
        }
        if self.session.is_command(&draft) || self.session.switching.is_some() || self.queue.has_held() {
            self.queue.hold(draft);
            return Vec::new();
        }
        vec![Effect::Send(Command::Queue(self.queue.queue(draft)))]
    }

    /// Sends what waited for the end of the turn: the first, and the rest after it. Each is tried once at most, whatever
    /// becomes of it.
    pub(super) fn send_held(&mut self) -> Vec<Effect> {
        let mut actions = Vec::new();
        for _ in 0..self.queue.n_held() {
            // A session that is about to take the place of this one hears it all.
            if self.session.switching.is_some() {
                break;
            }
            let Some(draft) = self.queue.take_held() else { break };
            actions.extend(match draft.mode {
                InputMode::Shell => self.run_shell(draft),
                _ => self.dispatch(draft),
            });
            // A command that needs no turn lets the next one follow at once.
            if self.session.is_working() || self.queue.is_turn_due() {
                break;
            }
        }
        actions
    }
}

/// Says that a prompt of so many bytes is more than a window holds, so that the model does not see all of it.
fn cut_notice(n_bytes: u64, window: u64) -> Option<String> {
    let tokens = n_bytes / 4;
    (tokens > window).then(|| {
        format!(
            "This prompt has about {} tokens, and the window of the model holds {}: the model sees its beginning and its end, \
             and is told that the middle is left out. A file that is named (@file) is read in parts",
            short_count(tokens),
            short_count(window)
        )
    })
}

/// What is told of a draft that is not complete.
struct Missing {
    text: String,
    /// It is not sent.
    stays: bool,
}

/// Says what was pasted once and is gone: it is never left out in silence. A prompt goes without it; what would be another
/// command without it, or nothing at all, stays.
fn missing_notice(draft: &Draft) -> Option<Missing> {
    let missing = draft.missing().join(", ");
    if missing.is_empty() {
        return None;
    }
    let text = draft.expanded();
    let is_command = draft.mode == InputMode::Shell || text.trim_start().starts_with('/');
    let stays = is_command || text.trim().is_empty();
    let text = match stays {
        true => format!("Not sent: {missing} is not there any more. Paste it again, or delete it"),
        false => format!("Sent without {missing}, which is not there any more"),
    };
    Some(Missing { text, stays })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_that_is_more_than_the_window_holds_is_told_to_be_cut() {
        assert_eq!(cut_notice(800_000, 200_000), None);
        let notice = cut_notice(1_034_000, 200_000).unwrap_or_default();
        assert!(notice.contains("about 258.5k tokens") && notice.contains("holds 200.0k"), "{notice}");
    }
}
