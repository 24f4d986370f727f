//! Questions of MCP servers: a form that is filled in, or a page to open.
//!
//! A form is rows that the arrows go through: fields, then `Send` and `Decline`. What stands behind a server's words is
//! always said (which server asks), and an address is shown in full before it is opened.

mod fields;

use loci_stdx::visible;
use serde_json::{Value, json};

use super::{Choices, Dialog, DialogScroll, DialogStep, DialogView, is_cancel, width_of};
use crate::app::{Action, Effect};
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::{Action as KeyAction, is_letter};
use crate::layout::{bold, cells, code, faint, line, mark_of, marked, paragraph, warning};
use crate::render::RenderContext;
use crate::text::{Row, Style};
use fields::{Entry, Field, content, fields};

/// A question of a server.
#[derive(Debug)]
pub(crate) struct ElicitationDialog {
    /// The request that waits for the answer.
    id: String,
    server: String,
    message: String,
    asked: Asked,
    scroll: DialogScroll,
}

/// What is asked for.
#[derive(Debug)]
enum Asked {
    Form(Form),
    Page { url: String, choices: Choices },
}

#[derive(Debug)]
struct Form {
    fields: Vec<Field>,
    rows: Vec<FormRow>,
    marked: usize,
    /// What is wrong with what was filled in.
    problem: Option<String>,
}

/// A row that can be marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormRow {
    Field(usize),
    /// One of the choices of a field that takes several.
    Choice {
        field: usize,
        choice: usize,
    },
    Send,
    Decline,
}

impl ElicitationDialog {
    /// Puts the question of a request, as the headless protocol has it.
    pub(crate) fn new(id: &str, payload: &Value) -> Self {
        let text = |key: &str| payload.get(key).and_then(Value::as_str).unwrap_or_default();
        let asked = match text("mode") {
            "url" => {
                let labels = ["Open it in a browser", "Go on; I open it myself", "Decline"];
                Asked::Page {
                    url: text("url").to_owned(),
                    choices: Choices::new(labels.map(str::to_owned).into()),
                }
            }
            _ => Asked::Form(Form::new(payload.get("requested_schema").unwrap_or(&Value::Null))),
        };
        Self {
            id: id.to_owned(),
            server: visible(text("mcp_server_name")),
            message: visible(text("message")),
            asked,
            scroll: DialogScroll::default(),
        }
    }

    fn reply(&self, answer: Value, before: Option<Action>) -> DialogStep {
        let answer = Action::Effect(Effect::AnswerClient { request: self.id.clone(), answer });
        DialogStep::Answered(before.into_iter().chain([answer]).collect())
    }

    fn act(&self, action: &str) -> DialogStep {
        self.reply(json!({"action": action}), None)
    }
}

impl Form {
    fn new(schema: &Value) -> Self {
        let fields = fields(schema);
        let mut rows = Vec::new();
        for (at, field) in fields.iter().enumerate() {
            match &field.entry {
                Entry::Many { choices, .. } => {
                    rows.extend((0..choices.len()).map(|choice| FormRow::Choice { field: at, choice }));
                }
                Entry::Text { .. } | Entry::One { .. } => rows.push(FormRow::Field(at)),
            }
        }
        rows.extend([FormRow::Send, FormRow::Decline]);
        Self { fields, rows, marked: 0, problem: None }
    }

    fn row(&self) -> FormRow {
        self.rows.get(self.marked).copied().unwrap_or(FormRow::Decline)
    }

    fn step(&mut self, by: usize) {
        self.marked = (self.marked + by) % self.rows.len().max(1);
    }

    /// Returns what is sent; where something is wrong, that field is marked and said so.
    fn submit(&mut self) -> Option<Value> {
        match content(&self.fields) {
            Ok(content) => Some(json!({"action": "accept", "content": content})),
            Err((field, problem)) => {
                let is_of_field = |row: &FormRow| match row {
                    FormRow::Field(at) | FormRow::Choice { field: at, .. } => *at == field,
                    FormRow::Send | FormRow::Decline => false,
                };
                self.marked = self.rows.iter().position(is_of_field).unwrap_or(self.marked);
                self.problem = Some(problem);
                None
            }
        }
    }

    /// Tells whether characters are typed into the marked row.
    fn is_typing(&self) -> bool {
        let FormRow::Field(at) = self.row() else { return false };
        matches!(self.fields.get(at), Some(Field { entry: Entry::Text { .. }, .. }))
    }

    /// Takes a key for the marked row; returns the answer that it gave.
    fn handle(&mut self, key: Key, action: Option<KeyAction>) -> Option<Value> {
        let (row, n_rows) = (self.row(), self.rows.len());
        match (action, row) {
            (
                Some(
                    KeyAction::ConfirmPrevious
                    | KeyAction::SelectPrevious
                    | KeyAction::ConfirmPreviousField
                    | KeyAction::ConfirmCycleMode,
                ),
                _,
            ) => self.step(n_rows.saturating_sub(1)),
            (Some(KeyAction::ConfirmNext | KeyAction::SelectNext | KeyAction::ConfirmNextField), _) => {
                self.step(1);
            }
            (Some(KeyAction::ConfirmYes | KeyAction::SelectAccept), row) if !is_letter(key) => match row {
                FormRow::Send => return self.submit(),
                FormRow::Decline => return Some(json!({"action": "decline"})),
                FormRow::Field(_) | FormRow::Choice { .. } => self.step(1),
            },
            (_, FormRow::Field(at)) => self.fill(at, key.code, key),
            (_, FormRow::Choice { field, choice }) if key.code == KeyCode::Char(' ') => {
                self.toggle(field, choice);
            }
            _ => {}
        }
        None
    }

    fn fill(&mut self, at: usize, code: KeyCode, key: Key) {
        let Some(field) = self.fields.get_mut(at) else { return };
        self.problem = None;
        match &mut field.entry {
            Entry::Text { field, .. } => drop(field.handle(key)),
            Entry::One { choices, chosen } => {
                let n = choices.len().max(1);
                *chosen = match (code, *chosen) {
                    (KeyCode::Right | KeyCode::Char(' '), now) => Some(now.map_or(0, |it| (it + 1) % n)),
                    (KeyCode::Left, now) => Some(now.map_or(n - 1, |it| (it + n - 1) % n)),
                    (KeyCode::Backspace | KeyCode::Delete, _) => None,
                    (_, now) => now,
                };
            }
            Entry::Many { .. } => {}
        }
    }

    fn toggle(&mut self, field: usize, choice: usize) {
        self.problem = None;
        if let Some(Field { entry: Entry::Many { chosen, .. }, .. }) = self.fields.get_mut(field)
            && let Some(is_chosen) = chosen.get_mut(choice)
        {
            *is_chosen = !*is_chosen;
        }
    }

    fn paste(&mut self, text: &str) {
        if let FormRow::Field(at) = self.row()
            && let Some(Field { entry: Entry::Text { field, .. }, .. }) = self.fields.get_mut(at)
        {
            field.insert(text);
        }
    }

    /// Returns the rows, the one that must be seen, and where the caret stands.
    fn view(&self, width: u16) -> (Vec<Row>, usize, Option<(usize, u16)>) {
        let (mut shown, mut focus, mut caret) = (Vec::new(), 0, None);
        for (idx, row) in self.rows.iter().enumerate() {
            let is_marked = idx == self.marked;
            let style = if is_marked { marked() } else { Style::default() };
            let mark = mark_of(is_marked);
            if let FormRow::Choice { field, choice: 0 } = row
                && let Some(field) = self.fields.get(*field)
            {
                shown.push(line(&format!("  {}:", label(field)), Style::default()));
            }
            if is_marked {
                focus = shown.len();
            }
            match *row {
                FormRow::Send => shown.push(line(&format!("{mark}Send"), style)),
                FormRow::Decline => shown.push(line(&format!("{mark}Decline"), style)),
                FormRow::Field(at) => {
                    let Some(field) = self.fields.get(at) else { continue };
                    let lead = format!("{mark}{}: ", label(field));
                    let value = match &field.entry {
                        Entry::Text { field, .. } => {
                            if is_marked {
                                let column = cells(&lead) + cells(&visible(field.before_caret()));
                                caret = Some((shown.len(), column.min(width.saturating_sub(1))));
                            }
                            visible(field.text())
                        }
                        Entry::One { choices, chosen } => {
                            let chosen = chosen.and_then(|it| choices.get(it));
                            chosen
                                .map_or_else(|| "‹ - ›".to_owned(), |choice| format!("‹ {} ›", choice.label))
                        }
                        Entry::Many { .. } => String::new(),
                    };
                    shown.push(line(&format!("{lead}{value}"), style));
                }
                FormRow::Choice { field, choice } => {
                    let Some(Field { entry: Entry::Many { choices, chosen }, .. }) = self.fields.get(field)
                    else {
                        continue;
                    };
                    let check = if chosen.get(choice) == Some(&true) { "[x]" } else { "[ ]" };
                    let label = choices.get(choice).map(|it| it.label.as_str()).unwrap_or_default();
                    shown.push(line(&format!("{mark}  {check} {label}"), style));
                }
            }
            if is_marked && let Some(described) = self.description(*row) {
                shown.extend(paragraph("    ", described, faint(), width));
            }
        }
        if let Some(problem) = &self.problem {
            shown.push(line(problem, warning()));
        }
        (shown, focus, caret)
    }

    fn description(&self, row: FormRow) -> Option<&str> {
        match row {
            FormRow::Field(at) | FormRow::Choice { field: at, .. } => {
                self.fields.get(at)?.description.as_deref()
            }
            FormRow::Send | FormRow::Decline => None,
        }
    }
}

fn label(field: &Field) -> String {
    format!("{}{}", field.title, if field.is_required { " *" } else { "" })
}

impl Dialog for ElicitationDialog {
    fn is_typing(&self) -> bool {
        match &self.asked {
            Asked::Form(form) => form.is_typing(),
            Asked::Page { .. } => false,
        }
    }

    fn handle(&mut self, event: &InputEvent, action: Option<KeyAction>) -> DialogStep {
        if self.scroll.handle(event) {
            return DialogStep::Open;
        }
        if let (InputEvent::Paste(text), Asked::Form(form)) = (event, &mut self.asked) {
            form.paste(text);
        }
        let InputEvent::Key(key) = event else { return DialogStep::Open };
        if is_cancel(action, *key) {
            return self.act("cancel");
        }
        match &mut self.asked {
            Asked::Form(form) => match form.handle(*key, action) {
                Some(answer) => self.reply(answer, None),
                None => DialogStep::Open,
            },
            Asked::Page { url, choices } => {
                let chosen = choices.choose(action, *key);
                let page = Action::Effect(Effect::OpenPage(url.clone()));
                match chosen {
                    Some(0) => self.reply(json!({"action": "accept"}), Some(page)),
                    Some(1) => self.act("accept"),
                    Some(_) => self.act("decline"),
                    None => DialogStep::Open,
                }
            }
        }
    }

    fn view(&self, ctx: &RenderContext) -> DialogView {
        let width = width_of(ctx);
        let mut head = vec![line(&format!("The MCP server `{}` asks", self.server), faint())];
        head.extend(paragraph("", &self.message, bold(), width));
        match &self.asked {
            Asked::Form(form) => {
                let (foot, focus, caret) = form.view(width);
                let hint = "↑↓ fields · ←→ or Space choose · Enter next · Esc not now";
                DialogView {
                    head,
                    foot,
                    focus,
                    caret,
                    hint: Some(line(hint, faint())),
                    scroll: self.scroll.clone(),
                    ..DialogView::default()
                }
            }
            Asked::Page { url, choices } => {
                let (foot, focus) = choices.rows(width);
                let mut body = paragraph("", &visible(url), code(), width);
                body.push(Row::default());
                let hint = Some(line("Enter to choose · Esc not now", faint()));
                DialogView { head, body, foot, focus, hint, scroll: self.scroll.clone(), caret: None }
            }
        }
    }

    fn question(&self) -> Option<&str> {
        Some(&self.id)
    }

    fn notice(&self) -> String {
        format!("The MCP server {} has a question for you", self.server)
    }

    fn notice_kind(&self) -> &'static str {
        match self.asked {
            Asked::Form(_) => "elicitation_dialog",
            Asked::Page { .. } => "elicitation_url_dialog",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialog::testing::press;
    use crate::theme::{Backdrop, ColorDepth, Theme};

    /// Types keys: `v` is down, `^` up, `>` right, `\r` Enter, `\x1b` Escape, other characters are themselves; returns what
    /// comes of it.
    fn answered(payload: &Value, keys: &str) -> Value {
        let mut dialog = ElicitationDialog::new("q", payload);
        for c in keys.chars() {
            let code = match c {
                'v' => KeyCode::Down,
                '^' => KeyCode::Up,
                '>' => KeyCode::Right,
                '\r' => KeyCode::Enter,
                '\x1b' => KeyCode::Esc,
                c => KeyCode::Char(c),
            };
            if let DialogStep::Answered(actions) = press(&mut dialog, Key::plain(code)) {
                let shown = |action: &Action| match action {
                    Action::Effect(Effect::AnswerClient { request, answer }) if request == "q" => {
                        answer.clone()
                    }
                    Action::Effect(Effect::OpenPage(page)) => json!(page),
                    _ => json!("?"),
                };
                let actions: Vec<Value> = actions.iter().map(shown).collect();
                return match <[Value; 1]>::try_from(actions) {
                    Ok([one]) => one,
                    Err(several) => json!(several),
                };
            }
        }
        json!("open")
    }

    fn form() -> Value {
        json!({"mcp_server_name": "s", "message": "Who?", "mode": "form", "requested_schema": {
            "properties": {
                "name": {"type": "string", "title": "Name"},
                "age": {"type": "integer"},
                "agree": {"type": "boolean"},
                "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
                "pets": {"type": "array", "items": {"enum": ["cat", "dog"]}},
            },
            "required": ["name"],
        }})
    }

    #[test]
    fn forms_are_filled_in_and_checked_before_they_are_sent() {
        let accept = |content: Value| json!({"action": "accept", "content": content});
        for (keys, expected) in [
            ("Ann\rvvvvv\r", accept(json!({"name": "Ann"}))),
            (
                "Ann\r41\r>\r>>\r \r \r\r",
                accept(
                    json!({"name": "Ann", "age": 41, "agree": true, "colour": "g", "pets": ["cat", "dog"]}),
                ),
            ),
            ("vvvvvv\r", json!("open")),
            ("vvvvvv\rBob^^\r", accept(json!({"name": "Bob"}))),
            ("Ann\rold^^^\r", json!("open")),
            ("^\r", json!({"action": "decline"})),
            ("A\x1b", json!({"action": "cancel"})),
        ] {
            assert_eq!(answered(&form(), keys), expected, "{keys:?}");
        }
    }

    #[test]
    fn defaults_of_the_schema_stand_in_the_form() {
        let payload = json!({"requested_schema": {"properties": {
            "name": {"type": "string", "default": "Ann"},
            "n": {"type": "number", "default": 1.5},
            "sure": {"type": "boolean", "default": false},
            "kind": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"], "default": "b"},
        }}});
        let expected = json!({"name": "Ann", "n": 1.5, "sure": false, "kind": "b"});
        assert_eq!(answered(&payload, "^^\r"), json!({"action": "accept", "content": expected}));
    }

    #[test]
    fn page_is_shown_in_full_and_opened_only_when_chosen() {
        let url = "https://example.com/login?state=1";
        let payload = json!({"mcp_server_name": "s", "message": "Log in", "mode": "url", "url": url});
        assert_eq!(answered(&payload, "\r"), json!([url, {"action": "accept"}]));
        assert_eq!(answered(&payload, "2"), json!({"action": "accept"}));
        assert_eq!(answered(&payload, "3"), json!({"action": "decline"}));
        assert_eq!(answered(&payload, "\x1b"), json!({"action": "cancel"}));
        let ctx = RenderContext::new(60, Theme::new(ColorDepth::Ansi, Backdrop::Dark));
        let view = ElicitationDialog::new("q", &payload).view(&ctx);
        let text: Vec<String> = view.head.iter().chain(&view.body).map(Row::text).collect();
        assert!(text.iter().any(|row| row.contains(url)) && text[0].contains("`s`"), "{text:?}");
    }
}
