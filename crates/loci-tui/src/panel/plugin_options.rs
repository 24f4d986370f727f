//! The options of a plugin as a form, inside the panel of plugins: a row each, one at a time typed into.
//!
//! What is typed into a secret is shown as dots, and its value is never read for the form: it only knows that there is one.

use loci_app::commands::plugin::PluginOptions;
use loci_app::plugins::PluginOption;

use super::{ListMark, PanelContext, PanelRequest, PanelView, mark_row};
use crate::app::{Action, Effect, SecretText};
use crate::dialog::TextField;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::Action as KeyAction;
use crate::layout::{cells, faint, line, paragraph, warning};
use crate::screen::Size;
use crate::text::{Row, Style};

/// The options of one plugin.
pub(super) struct OptionsForm {
    options: PluginOptions,
    mark: ListMark,
    /// What is typed for the marked one.
    editing: Option<TextField>,
    /// What became of the last change.
    note: Option<String>,
}

impl std::fmt::Debug for OptionsForm {
    /// Names nothing that was typed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OptionsForm({})", self.options.id)
    }
}

/// What came of a key.
#[derive(Debug, PartialEq)]
pub(super) enum FormStep {
    /// It stays open.
    Stay,
    /// It stays open, and something is to be done.
    Act(Vec<Action>),
    /// It is closed.
    Close,
}

impl OptionsForm {
    /// Begins with the first option that has no value.
    pub(super) fn new(options: PluginOptions) -> Self {
        let marked = options.options.iter().position(|option| !option.is_set).unwrap_or(0);
        Self { options, mark: ListMark::new(marked), editing: None, note: None }
    }

    /// Takes the options as they are now, and what became of a change.
    pub(super) fn receive(&mut self, options: PluginOptions, note: Option<String>) {
        self.mark.at = self.mark.at.min(options.options.len().saturating_sub(1));
        self.options = options;
        self.note = note.map(|note| note.trim().to_owned());
    }

    /// Returns whose options they are.
    pub(super) fn id(&self) -> &str {
        &self.options.id
    }

    /// Tells whether characters are typed into a field.
    pub(super) fn is_typing(&self) -> bool {
        self.editing.is_some()
    }

    fn marked(&self) -> Option<&PluginOption> {
        self.options.options.get(self.mark.at)
    }

    /// Takes what was typed.
    pub(super) fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> FormStep {
        if self.editing.is_some() {
            return self.handle_editing(event, ctx);
        }
        if ctx.is_cancel() {
            return FormStep::Close;
        }
        match (ctx.action, event) {
            _ if self.mark.handle_event(self.options.options.len(), event, ctx.action) => {}
            (Some(KeyAction::SelectAccept), _) => self.edit(),
            (_, InputEvent::Key(key)) if matches!(key.code, KeyCode::Delete | KeyCode::Backspace) => {
                return self.set(None);
            }
            _ => {}
        }
        FormStep::Stay
    }

    fn edit(&mut self) {
        let mut field = TextField::default();
        field.insert(self.marked().and_then(|option| option.typed.as_deref()).unwrap_or_default());
        self.editing = Some(field);
        self.note = None;
    }

    fn handle_editing(&mut self, event: &InputEvent, ctx: &PanelContext) -> FormStep {
        let Some(field) = &mut self.editing else { return FormStep::Stay };
        match event {
            _ if ctx.is_cancel() => self.editing = None,
            InputEvent::Paste(text) => field.insert(text.trim()),
            InputEvent::Key(key) if key.code == KeyCode::Enter => {
                let typed = SecretText::from(field.text().trim());
                self.editing = None;
                // Nothing typed changes nothing: Delete forgets.
                return if typed.reveal().is_empty() { FormStep::Stay } else { self.set(Some(typed)) };
            }
            InputEvent::Key(key) => drop(field.handle(*key)),
            _ => {}
        }
        FormStep::Stay
    }

    fn set(&mut self, typed: Option<SecretText>) -> FormStep {
        let Some(key) = self.marked().map(|option| option.spec.key.clone()) else { return FormStep::Stay };
        self.note = Some("Writing it down…".to_owned());
        let id = self.options.id.clone();
        FormStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::SetPluginOption {
            id,
            key,
            typed,
        }))])
    }

    /// Says what is seen of it.
    pub(super) fn view(&self, size: Size) -> PanelView {
        let hint = match self.is_typing() {
            true => "Enter keep · Esc leave it",
            false => "Enter change · Delete forget · Esc back",
        };
        let mut view = PanelView::new(&format!("Options of {}", self.options.id), hint);
        view.head.extend(self.note.iter().flat_map(|note| paragraph("", note, warning(), size.width)));
        if let (Some(field), Some(option)) = (&self.editing, self.marked()) {
            push_field(&mut view, option, field);
        }
        let about = self.marked().map(|option| about(option, size)).unwrap_or_default();
        let room = view.room(size);
        let n_about = about.len().min(room / 2);
        let options = &self.options.options;
        view.body = self.mark.rows(options.len(), room - n_about, |idx, is_marked| {
            mark_row(
                line(&options.get(idx).map(option_text).unwrap_or_default(), Style::default()),
                is_marked,
            )
        });
        if options.is_empty() {
            view.body = vec![line("It has no options", faint())];
        }
        view.body.extend(about.into_iter().take(n_about));
        view
    }
}

/// Adds the field that is typed into; a secret is dots.
fn push_field(view: &mut PanelView, option: &PluginOption, field: &TextField) {
    let label = format!("{} = ", option.spec.key);
    if !option.spec.is_sensitive {
        view.push_field(&label, field);
        return;
    }
    let dots = |text: &str| "•".repeat(text.chars().count());
    view.caret = Some((view.head.len(), cells(&label) + cells(&dots(field.before_caret()))));
    view.head.push(line(&format!("{label}{}", dots(field.text())), Style::default()));
}

/// Says what an option is called and set to.
fn option_text(option: &PluginOption) -> String {
    let spec = &option.spec;
    let value = match (&option.typed, option.is_set, &spec.default) {
        (Some(typed), ..) => typed.clone(),
        (None, true, _) => "set, a secret".to_owned(),
        (None, false, Some(_)) if spec.is_sensitive => "its default".to_owned(),
        (None, false, Some(default)) => format!("{default} (default)"),
        (None, false, None) if spec.is_required => "not set, and needed".to_owned(),
        (None, false, None) => "not set".to_owned(),
    };
    format!("{}: {value}", spec.title)
}

/// Says what an option is for.
fn about(option: &PluginOption, size: Size) -> Vec<Row> {
    let spec = &option.spec;
    let several = if spec.is_multiple { ", several with commas between them" } else { "" };
    let text = format!("{} ({}{several})", spec.description, spec.kind.as_str());
    paragraph("", text.trim(), faint(), size.width)
}
