//! The start: questions before there is a session, and what is said once it is there.

use loci_app::start::approvals::UnapprovedKey;
use loci_app::start::{StartAnswer, StartQuestion};

use super::pull_request::ask_pull_request;
use super::{Action, App, Effect, ExitReason, SessionFacts, UiAction};
use crate::block::NoticeLevel;
use crate::dialog::{ChoiceDialog, KeyEntry, ServerApprovalDialog};
use crate::interface_settings::InterfaceSettings;

impl App {
    /// Puts a question of the start.
    pub(super) fn ask_at_start(&mut self, question: StartQuestion) -> Vec<Effect> {
        let leave = || vec![Action::Ui(UiAction::Exit(ExitReason::Asked))];
        let answer = |answer: StartAnswer| vec![Action::Effect(Effect::Answer(answer))];
        let dialog = match question {
            StartQuestion::Trust(trust) => {
                let mut body = vec![trust.root, String::new()];
                match trust.grants.is_empty() {
                    true => body.push("Nothing in it asks for more than reading yet.".to_owned()),
                    false => {
                        body.push("Its files would set:".to_owned());
                        body.extend(trust.grants.into_iter().map(|grant| format!("  {grant}")));
                    }
                }
                body.push("Until you trust it, nothing in it is run or applied.".to_owned());
                ChoiceDialog::new(
                    "Do you trust the files in this folder?",
                    body,
                    vec![("Yes, I trust it", answer(StartAnswer::Trust)), ("No, leave", leave())],
                )
            }
            StartQuestion::ExternalImports(files) => ChoiceDialog::new(
                "May the instructions of this folder import files from outside it?",
                files.into_iter().map(|file| format!("  {file}")).collect(),
                vec![
                    ("Yes", answer(StartAnswer::ExternalImports(true))),
                    ("No", answer(StartAnswer::ExternalImports(false))),
                ],
            )
            .marking(1),
            StartQuestion::SettingsErrors(errors) => ChoiceDialog::new(
                "Some settings cannot be read",
                errors.into_iter().map(|error| format!("  {error}")).collect(),
                vec![
                    ("Go on without what is wrong", answer(StartAnswer::SettingsErrors)),
                    ("Leave, to mend them", leave()),
                ],
            ),
            StartQuestion::UnknownSettings(keys) => ChoiceDialog::new(
                "Some settings are not known to this version, and may restrict what runs",
                keys.into_iter().map(|key| format!("  {key}")).collect(),
                vec![
                    ("Leave, to correct them", leave()),
                    ("Go on without them", answer(StartAnswer::UnknownSettings)),
                ],
            )
            .escaping_by(0),
            StartQuestion::McpServers(servers) => {
                self.dialogs.push(ServerApprovalDialog::new(servers));
                return Vec::new();
            }
            StartQuestion::ApiKey(key) => key_dialog(&key),
            StartQuestion::Bypass => ChoiceDialog::new(
                "Everything will run without asking",
                vec![
                    "In this mode loci runs any command and changes any file without asking you first. Use it only \
                     where nothing can be harmed: a container or a virtual machine without secrets."
                        .to_owned(),
                ],
                vec![("No, leave", leave()), ("Yes, I accept that", answer(StartAnswer::Bypass))],
            )
            .escaping_by(0),
            StartQuestion::NoCredentials(rejected) => welcome(rejected.as_ref()),
            StartQuestion::ChooseSession => return self.choose_session(),
            StartQuestion::InUse(holder) => ChoiceDialog::new(
                "This session is in use",
                vec![format!("{holder}.")],
                vec![
                    ("Look at it, without writing", answer(StartAnswer::View)),
                    ("Go on with a copy", answer(StartAnswer::Fork)),
                    ("Take it over; the other process can write no more", answer(StartAnswer::TakeOver)),
                    ("Leave", leave()),
                ],
            ),
        };
        self.dialogs.push(dialog);
        Vec::new()
    }

    pub(super) fn started(&mut self, facts: SessionFacts) -> Vec<Effect> {
        self.session.begin(&facts);
        let announcement = announcement(&facts.interface.announcements, &facts.id);
        self.schedule.set_prompt_patience(facts.idle_notice);
        let preferences = &mut self.preferences;
        preferences.theming.take_plugin_themes(facts.themes);
        preferences.helper_sandboxes = facts.helper_sandboxes;
        preferences.answer_timeout = facts.answer_timeout;
        if let Some(vars) = &facts.vars {
            preferences.options = std::mem::take(&mut preferences.options).with_vars(vars);
        }
        self.dialogs.countdown = facts.answer_countdown;
        self.take_interface_settings(facts.interface);
        announcement.into_iter().for_each(|text| self.transcript.notice(NoticeLevel::Info, text));
        facts.warnings.into_iter().for_each(|text| self.transcript.notice(NoticeLevel::Warning, text));
        let is_idle = !self.queue.has_held() && !self.queue.has_sent() && !self.session.is_working();
        let mut effects: Vec<Effect> =
            ask_pull_request(&self.preferences, &self.session).into_iter().collect();
        effects.extend(match facts.initial_prompt.filter(|_| is_idle) {
            Some(text) => self.submit(text),
            None => self.send_held(),
        });
        effects
    }

    /// Takes what settings say about the interface.
    pub(super) fn take_interface_settings(&mut self, settings: InterfaceSettings) {
        self.prompt.input.set_flavor(settings.flavor);
        self.prompt.input.set_vim(settings.vim_remaps.as_deref());
        self.dialogs.patience = self.preferences.answer_timeout.or(settings.question_timeout);
        let change = self.preferences.take_settings(settings);
        let conversation = &mut self.transcript.conversation;
        conversation.color_code(self.preferences.colors_code());
        self.preferences.highlighter = conversation.highlighter();
        if change.has_other_status_line {
            self.status.line.configure(self.preferences.interface.status_line.clone(), self.now);
        }
        self.apply_theme();
        if change.is_first {
            self.tasks.begin(self.preferences.interface.shows_tasks);
        }
        if change.has_other_view {
            self.transcript.view_changed(self.preferences.is_focused());
        }
        self.choose_renderer();
    }
}

/// Asks for an API key.
pub(super) fn key_entry() -> KeyEntry {
    KeyEntry::at_start(vec![Action::Effect(Effect::Answer(StartAnswer::Credentials))])
}

/// Says what is missing where there is no key, and offers what goes without.
fn welcome(rejected: Option<&UnapprovedKey>) -> ChoiceDialog {
    let demo = "The demo needs none: it shows loci at work with a scripted model.";
    let text = match rejected {
        Some(key) => format!(
            "ANTHROPIC_API_KEY is set (it ends in …{}), and you said no to it. Give another one, or use it after all. {demo}",
            key.tail
        ),
        None => format!("Give one now, or set ANTHROPIC_API_KEY later. {demo}"),
    };
    let mut answers = vec![("Enter an API key", vec![Action::Ui(UiAction::AskForKey)])];
    if rejected.is_some() {
        let used = vec![Action::Effect(Effect::Answer(StartAnswer::ApiKey(true)))];
        answers.push(("Use the key of the environment", used));
    }
    answers.push(("Watch the demo", vec![Action::Effect(Effect::PlayDemo)]));
    answers.push(("Leave", vec![Action::Ui(UiAction::Exit(ExitReason::Asked))]));
    ChoiceDialog::new("Welcome. loci needs an API key to talk to the model", vec![text], answers)
}

/// Asks whether the key of the environment is used: what is used is what is paid with.
fn key_dialog(key: &UnapprovedKey) -> ChoiceDialog {
    let answer = |may_use| vec![Action::Effect(Effect::Answer(StartAnswer::ApiKey(may_use)))];
    let (other, no) = match key.has_other {
        true => ("and another credential is kept. ", "No, use what is kept"),
        false => ("and nothing else is kept. ", "No"),
    };
    let text = format!(
        "ANTHROPIC_API_KEY is set (it ends in …{}), {other}What is used is what is paid with. The answer is remembered \
         for this key.",
        key.tail
    );
    let answers = vec![("Yes, use the key of the environment", answer(true)), (no, answer(false))];
    ChoiceDialog::new("Use the API key of the environment?", vec![text], answers)
        .marking(usize::from(key.has_other))
}

/// Returns one of an organisation's announcements: which one is as random as the id of the session.
fn announcement(all: &[String], session: &str) -> Option<String> {
    let sum: usize = session.bytes().map(usize::from).sum();
    all.get(sum.checked_rem(all.len())?).cloned()
}
