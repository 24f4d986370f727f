//! May this call run? What it would do, what "always" would grant, and a word to the model.
//!
//! What is shown is what would run: characters that hide or reorder text are made visible, and a call too long to be read
//! can only be allowed this once (S-7).

use std::path::{Path, PathBuf};

use loci_core::permission::{Destination, Mode, Update};
use loci_engine::{Answer, Command, Prompt, Question, QuestionKind, SANDBOX_NETWORK_TOOL, SideTask};
use loci_stdx::visible;
use serde_json::Value;

use super::{Choices, Dialog, DialogScroll, DialogStep, DialogView, TextField, edit_elsewhere, width_of};
use crate::app::{Action, Effect, UiAction, asked_diff, short_path};
use crate::block::FileDiff;
use crate::key::{InputEvent, Key};
use crate::keymap::{Action as KeyAction, Context, is_letter};
use crate::layout::{bold, cells, code, faint, line, paragraph, warning};
use crate::render::{RenderContext, render_diff, render_markdown};
use crate::text::{Row, Style};

/// A call that is longer can only be allowed once.
const MOST_CHARS: usize = 20_000;

/// The answers, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    Yes,
    Always,
    /// Yes to a plan, of which alone something is left.
    Anew,
    No,
}

/// The question whether a call may run.
#[derive(Debug)]
pub(crate) struct PermissionDialog {
    question: Question,
    cwd: PathBuf,
    diff: Option<FileDiff>,
    answers: Vec<Answered>,
    choices: Choices,
    comment: Option<TextField>,
    /// A comment that was left: it is there again when the field opens.
    left_comment: TextField,
    /// The plan as the person has changed it.
    plan: Option<String>,
    is_explained: bool,
    model_says: ModelSays,
    scroll: DialogScroll,
}

/// What the model says of a command that somebody is asked about.
#[derive(Debug, PartialEq, Eq)]
enum ModelSays {
    /// It is never asked.
    Unwanted,
    /// It is asked once somebody wants the explanation.
    NotAsked,
    /// It is being asked.
    Asked,
    /// What it said, or why it said nothing.
    Told(Result<String, String>),
}

/// What the model is told of a no.
pub(crate) const REFUSAL: &str = "The user does not want this call to run.";
/// The same, before what the person has said to it.
pub(crate) const COMMENTED_REFUSAL: &str = "The user said no to this call: ";

/// How requests begin that ask the model to explain the call of a question.
pub(crate) const EXPLANATION_REQUEST: &str = "explain-";

impl PermissionDialog {
    /// Asks about a call.
    pub(crate) fn new(question: Question, cwd: &Path) -> Self {
        let is_whole = call_text(&question).chars().count() <= MOST_CHARS;
        let grants: Vec<String> =
            question.suggestions.iter().map(|grant| visible(&grant.to_string())).collect();
        let is_about_host = question.tool == SANDBOX_NETWORK_TOOL;
        let (yes, always) = match (&question.kind, question.suggestions.as_slice()) {
            (QuestionKind::PlanApproval, [Update::SetMode(mode, _)]) => {
                ("Yes, and ask before each change", format!("Yes, and {}", work_of(*mode)))
            }
            _ if is_about_host => ("Yes, in this session", format!("Yes, and always: {}", grants.join("; "))),
            _ => ("Yes", format!("Yes, and always: {}", grants.join("; "))),
        };
        let mut answers = vec![(Answered::Yes, yes.to_owned())];
        if is_whole && !grants.is_empty() {
            answers.push((Answered::Always, always));
        }
        let no = match question.kind {
            QuestionKind::PlanApproval => "No, keep planning (Esc; Tab says what is missing)",
            QuestionKind::Permission if is_about_host => {
                "No, not in this session (Esc; Tab says what to do instead)"
            }
            QuestionKind::Permission | QuestionKind::Answers(_) => {
                "No, and tell loci what to do instead (Esc)"
            }
        };
        answers.push((Answered::No, no.to_owned()));
        let (answers, labels) = answers.into_iter().unzip();
        Self {
            diff: asked_diff(&question.tool, &question.input, cwd),
            question,
            cwd: cwd.to_owned(),
            answers,
            choices: Choices::new(labels),
            comment: None,
            left_comment: TextField::default(),
            plan: None,
            is_explained: false,
            model_says: ModelSays::Unwanted,
            scroll: DialogScroll::default(),
        }
    }

    /// Lets the model explain a command, once somebody wants that.
    pub(crate) fn explained_by_model(mut self) -> Self {
        if self.question.input.get("command").is_some_and(Value::is_string) {
            self.model_says = ModelSays::NotAsked;
        }
        self
    }

    /// Lets a plan be accepted so that only the plan is left of the conversation.
    pub(crate) fn offering_clear(mut self) -> Self {
        // An agent's plan goes to the conversation that sent it out.
        if self.is_plan() && self.question.agent.is_none() && self.plan_text().is_some() {
            let at = self.answers.len() - 1;
            self.answers.insert(at, Answered::Anew);
            self.choices.insert(at, "Yes, and begin a new conversation with the plan alone".to_owned());
        }
        self
    }

    /// Shows or hides the explanation; what the model has to say is asked for when it is first shown.
    fn explain(&mut self) -> DialogStep {
        self.is_explained = !self.is_explained;
        if self.model_says != ModelSays::NotAsked {
            return DialogStep::Open;
        }
        self.model_says = ModelSays::Asked;
        let call: String = call_text(&self.question).chars().take(MOST_CHARS).collect();
        let task = SideTask::ExplainCall { tool: self.question.tool.clone(), call };
        let request = format!("{EXPLANATION_REQUEST}{}", self.question.id);
        DialogStep::Act(vec![Action::Effect(Effect::Send(Command::AskOnTheSide { request, task }))])
    }

    fn is_plan(&self) -> bool {
        self.question.kind == QuestionKind::PlanApproval
    }

    fn answer(&self, answered: Answered) -> DialogStep {
        if let (Answered::Anew, Some(plan)) = (answered, self.plan_text()) {
            let message = "The user accepts the plan and goes on with it in a new conversation.".to_owned();
            let (question, answer) = (self.question.id.clone(), Answer::Deny { message, stops: true });
            let begin = Action::Ui(UiAction::BeginWithPlan(plan.to_owned()));
            return DialogStep::Answered(vec![
                begin,
                Action::Effect(Effect::Send(Command::Answer { question, answer })),
            ]);
        }
        let comment = self.comment.as_ref().map(|field| field.text().trim()).filter(|text| !text.is_empty());
        let updates = match answered {
            Answered::Always => self.question.suggestions.clone(),
            // The mode before planning may be one that the person only passed on the way there: what asks is said.
            Answered::Yes if self.is_plan() && self.question.agent.is_none() => {
                vec![Update::SetMode(Mode::Default, Destination::Session)]
            }
            Answered::Yes | Answered::Anew | Answered::No => Vec::new(),
        };
        // A plan that was worked on is a word to the model, too.
        let changed = self.plan.as_ref().map(|plan| format!("\nThe user changed the plan to:\n{plan}"));
        let changed = changed.unwrap_or_default();
        let answer = match (answered, comment) {
            (Answered::No, None) => {
                let message = format!("{REFUSAL}{changed}");
                Answer::Deny { message, stops: true }
            }
            (Answered::No, Some(comment)) => {
                let message = format!("{COMMENTED_REFUSAL}{comment}{changed}");
                Answer::Deny { message, stops: false }
            }
            (Answered::Yes | Answered::Always | Answered::Anew, _) => {
                Answer::Allow { input: self.edited_input(), updates }
            }
        };
        let question = self.question.id.clone();
        let mut actions = vec![Action::Effect(Effect::Send(Command::Answer { question, answer }))];
        if let Some(comment) = comment.filter(|_| answered != Answered::No) {
            actions.push(Action::Ui(UiAction::Queue(Prompt::text(comment))));
        }
        DialogStep::Answered(actions)
    }

    /// Returns the input of the call with the plan as it was changed.
    fn edited_input(&self) -> Option<Value> {
        let plan = self.plan.clone()?;
        let mut input = self.question.input.clone();
        input["plan"] = Value::from(plan);
        Some(input)
    }

    fn plan_text(&self) -> Option<&str> {
        let asked = self.question.input.get("plan").and_then(Value::as_str);
        self.plan.as_deref().or(asked).filter(|_| self.is_plan())
    }

    /// Has the comment edited, or the plan; nothing else is a text of the person's.
    fn edit(&self) -> DialogStep {
        match (&self.comment, self.plan_text()) {
            (Some(field), _) => edit_elsewhere(&self.question.id, field.text()),
            (None, Some(plan)) => edit_elsewhere(&self.question.id, plan),
            (None, None) => DialogStep::Open,
        }
    }

    fn handle_key(&mut self, key: Key, action: Option<KeyAction>) -> DialogStep {
        let is_open = self.comment.is_some();
        match action {
            Some(KeyAction::ChatExternalEditor) => return self.edit(),
            Some(KeyAction::AppInterrupt) => return stopping(self.answer(Answered::No)),
            Some(KeyAction::ConfirmNo | KeyAction::SelectCancel) if is_open => self.toggle_comment(),
            Some(KeyAction::ConfirmNo | KeyAction::SelectCancel) => return self.answer(Answered::No),
            // A letter answers at once; Enter answers what is marked.
            Some(KeyAction::ConfirmYes) if is_letter(key) => return self.answer(Answered::Yes),
            Some(KeyAction::ConfirmToggleExplanation | KeyAction::PermissionToggleDebug) if !is_open => {
                return self.explain();
            }
            Some(KeyAction::ConfirmNextField | KeyAction::ConfirmPreviousField) => {
                self.toggle_comment();
            }
            Some(KeyAction::ConfirmCycleMode) if is_open => self.toggle_comment(),
            Some(KeyAction::ConfirmCycleMode) => {
                if self.diff.is_some() && self.answers.contains(&Answered::Always) {
                    return self.answer(Answered::Always);
                }
            }
            Some(
                KeyAction::ConfirmYes
                | KeyAction::SelectAccept
                | KeyAction::ConfirmPrevious
                | KeyAction::ConfirmNext
                | KeyAction::SelectPrevious
                | KeyAction::SelectNext,
            ) => return self.choose(key, action),
            _ => match &mut self.comment {
                Some(field) => drop(field.handle(key)),
                None => return self.choose(key, action),
            },
        }
        DialogStep::Open
    }

    /// Opens the field of the comment, or leaves it; what was typed into it stays.
    fn toggle_comment(&mut self) {
        match self.comment.take() {
            Some(field) => self.left_comment = field,
            None => self.comment = Some(std::mem::take(&mut self.left_comment)),
        }
    }

    fn choose(&mut self, key: Key, action: Option<KeyAction>) -> DialogStep {
        let chosen = self.choices.choose(action, key).and_then(|idx| self.answers.get(idx).copied());
        chosen.map_or(DialogStep::Open, |answered| self.answer(answered))
    }

    fn head(&self, width: u16) -> Vec<Row> {
        let asker = self.question.agent.as_ref().map(|agent| format!("{} asks: ", visible(&agent.label())));
        let what = match (self.question.tool.as_str(), &self.diff) {
            _ if self.is_plan() => "is this plan good?".to_owned(),
            ("Bash", _) => "may this command run?".to_owned(),
            (SANDBOX_NETWORK_TOOL, _) => format!("may a sandboxed command reach {}?", self.host()),
            ("Write", Some(diff)) => format!("may {} be written?", visible(&diff.path)),
            (_, Some(diff)) => format!("may {} be changed?", visible(&diff.path)),
            ("Read", None) if self.question.input["file_path"].is_string() => {
                let path = self.question.input["file_path"].as_str().unwrap_or_default();
                format!("may {} be read?", visible(&short_path(path, &self.cwd)))
            }
            ("WebFetch", None) => "may this page be fetched?".to_owned(),
            (tool, None) => format!("may {} run?", visible(tool)),
        };
        let title = match asker {
            Some(asker) => format!("{asker}{what}"),
            None => capitalised(&what),
        };
        paragraph("", &title, bold(), width)
    }

    /// Returns the host of a question about one.
    fn host(&self) -> String {
        visible(self.question.input.get("host").and_then(Value::as_str).unwrap_or_default())
    }

    fn body(&self, ctx: &RenderContext) -> Vec<Row> {
        let width = width_of(ctx);
        let mut rows = Vec::new();
        match (&self.diff, self.plan_text()) {
            (Some(diff), _) => rows.extend(render_diff(diff, ctx)),
            (None, Some(plan)) => rows.extend(render_markdown(plan, ctx)),
            (None, None) => {
                for text in visible(&call_text(&self.question)).lines() {
                    rows.extend(paragraph("  ", text, code(), width));
                }
            }
        }
        if let Some(about) = self.question.input.get("description").and_then(Value::as_str) {
            rows.extend(paragraph("  ", &visible(about), faint(), width));
        }
        for link in &self.question.links {
            let text = format!("{} leads to {}", link.requested.display(), link.real.display());
            rows.extend(paragraph("  ", &visible(&text), warning(), width));
        }
        let reason = format!("Why this is asked: {}", visible(&self.question.reason));
        rows.extend(paragraph("", &reason, faint(), width));
        if self.is_explained {
            rows.extend(
                self.explanation().iter().flat_map(|text| paragraph("", text, Style::default(), width)),
            );
        }
        rows.push(Row::default());
        rows
    }

    /// Says more about why it is asked and what the answers do.
    fn explanation(&self) -> Vec<String> {
        let mut lines = vec![String::new()];
        lines.extend(match &self.model_says {
            ModelSays::Unwanted | ModelSays::NotAsked => None,
            ModelSays::Asked => Some("The model is asked what this does…".to_owned()),
            ModelSays::Told(Ok(text)) => Some(format!("The model says: {}", visible(text.trim()))),
            ModelSays::Told(Err(why)) => Some(format!("The model did not explain it: {}", visible(why))),
        });
        lines.extend([
            format!(
                "Tool: {}; call: {}.",
                visible(&self.question.tool),
                visible(self.question.call.as_str())
            ),
            format!("Kind of reason: {}.", visible(&self.question.reason_kind)),
        ]);
        if let Some(path) = &self.question.blocked_path {
            let path = short_path(&path.display().to_string(), &self.cwd);
            lines.push(format!("The path in the way: {}.", visible(&path)));
        }
        match self.question.suggestions.is_empty() {
            true => {
                lines.push("Nothing can be granted for good here: it is asked about every time.".to_owned());
            }
            false => lines.push("\"Always\" would save:".to_owned()),
        }
        lines.extend(
            self.question.suggestions.iter().map(|grant| format!("  {}", visible(&grant.to_string()))),
        );
        lines.push(
            "Yes runs this one call. No stops the turn, or with a comment tells the model why.".to_owned(),
        );
        lines
    }
}

impl Dialog for PermissionDialog {
    fn contexts(&self) -> &'static [Context] {
        &[Context::Confirmation, Context::Select, Context::Global, Context::Chat]
    }

    fn is_typing(&self) -> bool {
        self.comment.is_some()
    }

    fn handle(&mut self, event: &InputEvent, action: Option<KeyAction>) -> DialogStep {
        let may_page = self.comment.is_none() && self.choices.is_first_marked();
        if self.scroll.handle(event) || may_page && self.scroll.pages(event) {
            return DialogStep::Open;
        }
        match event {
            InputEvent::Key(key) => self.handle_key(*key, action),
            InputEvent::Paste(text) => {
                if let Some(field) = &mut self.comment {
                    field.insert(text);
                }
                DialogStep::Open
            }
            InputEvent::Focus(_)
            | InputEvent::Mouse(_)
            | InputEvent::Reply(_)
            | InputEvent::Resize { .. }
            | InputEvent::Signal(_)
            | InputEvent::Closed => DialogStep::Open,
        }
    }

    fn view(&self, ctx: &RenderContext) -> DialogView {
        let width = width_of(ctx);
        let (mut foot, mut focus) = self.choices.rows(width);
        let mut caret = None;
        if let Some(field) = &self.comment {
            let lead = "Tell loci: ";
            focus = foot.len();
            let (text, before) = field.display_text();
            let column = cells(lead) + cells(&before);
            caret = Some((focus, column.min(width.saturating_sub(1))));
            foot.push(line(&format!("{lead}{}", visible(&text)), Style::default()));
        }
        let hint = match (self.comment.is_some(), self.is_plan()) {
            (true, _) => "Enter to answer · Tab or Esc to leave the comment · Ctrl+G editor",
            (false, true) => "Esc no · Tab comment · Ctrl+G edit the plan · Ctrl+E explain",
            (false, false) => "Esc no · Tab comment · Ctrl+E explain",
        };
        DialogView {
            head: self.head(width),
            body: self.body(ctx),
            scroll: self.scroll.clone(),
            foot,
            focus,
            hint: Some(line(hint, faint())),
            caret,
        }
    }

    fn question(&self) -> Option<&str> {
        Some(&self.question.id)
    }

    fn notice(&self) -> String {
        match self.is_plan() {
            true => "loci has a plan for you to approve".to_owned(),
            false => format!("loci needs your permission to use {}", self.question.tool),
        }
    }

    fn label(&self) -> &'static str {
        if self.is_plan() { "question: " } else { "permission required: " }
    }

    fn set_diff(&mut self, diff: FileDiff) {
        self.diff = Some(diff);
    }

    fn explained(&mut self, outcome: Result<String, String>) {
        self.model_says = ModelSays::Told(outcome);
    }

    fn edited(&mut self, text: String) {
        let is_plan = self.is_plan() && !text.trim().is_empty();
        match &mut self.comment {
            Some(field) => field.set(&text),
            None if is_plan => self.plan = Some(text),
            None => {}
        }
    }
}

/// Has a no stop the turn, also where it says why.
fn stopping(step: DialogStep) -> DialogStep {
    let DialogStep::Answered(mut actions) = step else { return step };
    for action in &mut actions {
        if let Action::Effect(Effect::Send(Command::Answer { answer: Answer::Deny { stops, .. }, .. })) =
            action
        {
            *stops = true;
        }
    }
    DialogStep::Answered(actions)
}

/// Says how a plan is carried out in a mode.
fn work_of(mode: Mode) -> String {
    match mode {
        Mode::AcceptEdits => "change files without asking".to_owned(),
        Mode::Auto => "have a classifier decide what runs".to_owned(),
        Mode::BypassPermissions => "run everything without asking".to_owned(),
        Mode::Default | Mode::Plan | Mode::DontAsk => format!("go on in the mode {mode}"),
    }
}

/// Returns what would run, as text.
fn call_text(question: &Question) -> String {
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match (&question.input, question.input.get("command")) {
        (_, Some(Value::String(command))) => command.clone(),
        (Value::Object(fields), _) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, field)| format!("{name}: {}", value(field))).collect();
            fields.join("\n")
        }
        (other, _) => other.to_string(),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
