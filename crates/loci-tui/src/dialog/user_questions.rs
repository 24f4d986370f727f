//! Questions of the model: a tab each, with options and a field for words of one's own.

use std::time::Duration;

use loci_core::user_question::{UserAnswer, UserQuestion, with_answers, with_answers_before};
use loci_engine::{Answer, Command, Question, QuestionKind};
use loci_stdx::visible;
use serde_json::Value;

use super::{Dialog, DialogScroll, DialogStep, DialogView, TextField, edit_elsewhere, is_cancel, width_of};
use crate::app::{Action, Effect};
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::{Action as KeyAction, Context, is_letter};
use crate::layout::{bold, cells, faint, line, mark_of, marked, paragraph};
use crate::render::RenderContext;
use crate::text::{Row, Span, Style};

/// Questions that are answered one tab after the other.
#[derive(Debug)]
pub(crate) struct UserQuestionsDialog {
    id: String,
    /// The agent that asks, where one does.
    asker: Option<String>,
    /// After how long it goes on without an answer.
    patience: Option<Duration>,
    input: Value,
    tabs: Vec<Tab>,
    tab: usize,
    scroll: DialogScroll,
    /// Whether it was told that something is not answered; then Enter sends what there is.
    is_reminded: bool,
}

/// One question and what was said to it.
#[derive(Debug)]
struct Tab {
    question: UserQuestion,
    /// Which row is marked: behind the options stands the field, and behind that what goes on where several may be chosen.
    marked: usize,
    chosen: Vec<bool>,
    other: TextField,
}

impl Tab {
    fn is_other(&self) -> bool {
        self.marked == self.question.options.len()
    }

    /// Tells whether Enter chooses the marked option and no more: where several may be chosen, another row goes on.
    fn only_chooses(&self) -> bool {
        self.question.multi_select && self.marked < self.question.options.len()
    }

    fn n_rows(&self) -> usize {
        self.question.options.len() + 1 + usize::from(self.question.multi_select)
    }

    fn is_unanswered(&self) -> bool {
        self.answer() == UserAnswer::default()
    }

    /// Chooses what is marked, as far as that is a choice.
    fn choose(&mut self) {
        if !self.question.multi_select {
            self.chosen.iter_mut().for_each(|chosen| *chosen = false);
        }
        if let Some(chosen) = self.chosen.get_mut(self.marked) {
            *chosen = !*chosen;
        }
    }

    fn answer(&self) -> UserAnswer {
        let chosen = self.question.options.iter().zip(&self.chosen).filter(|(_, chosen)| **chosen);
        let other = self.other.text().trim();
        let is_typed = !other.is_empty() && (self.question.multi_select || self.is_other());
        UserAnswer {
            labels: match is_typed && !self.question.multi_select {
                true => Vec::new(),
                false => chosen.map(|(option, _)| option.label.clone()).collect(),
            },
            other: is_typed.then(|| other.to_owned()),
            notes: None,
        }
    }
}

impl UserQuestionsDialog {
    /// Asks, where a call comes with questions; none for any other.
    pub(crate) fn new(question: &Question, patience: Option<Duration>) -> Option<Self> {
        let QuestionKind::Answers(questions) = &question.kind else { return None };
        let tabs: Vec<Tab> = questions
            .iter()
            .map(|question| Tab {
                marked: 0,
                chosen: vec![false; question.options.len()],
                other: TextField::default(),
                question: question.clone(),
            })
            .collect();
        (!tabs.is_empty()).then(|| Self {
            id: question.id.clone(),
            asker: question.agent.as_ref().map(|agent| agent.label()),
            patience,
            input: question.input.clone(),
            tabs,
            tab: 0,
            scroll: DialogScroll::default(),
            is_reminded: false,
        })
    }

    fn submit(&self) -> DialogStep {
        let answers: Vec<UserAnswer> = self.tabs.iter().map(Tab::answer).collect();
        let input = Some(with_answers(&self.input, &answers));
        self.reply(Answer::Allow { input, updates: Vec::new() })
    }

    fn reply(&self, answer: Answer) -> DialogStep {
        let question = self.id.clone();
        DialogStep::Answered(vec![Action::Effect(Effect::Send(Command::Answer { question, answer }))])
    }

    fn handle_key(&mut self, key: Key, action: Option<KeyAction>) -> DialogStep {
        if is_cancel(action, key) {
            return self.decline();
        }
        let n_tabs = self.tabs.len();
        let Some(tab) = self.tabs.get_mut(self.tab) else { return DialogStep::Open };
        let n_rows = tab.n_rows();
        match action {
            Some(KeyAction::ConfirmPrevious | KeyAction::SelectPrevious) => {
                tab.marked = (tab.marked + n_rows - 1) % n_rows;
            }
            Some(KeyAction::ConfirmNext | KeyAction::SelectNext) => tab.marked = (tab.marked + 1) % n_rows,
            Some(KeyAction::ConfirmNextField) => self.tab = (self.tab + 1) % n_tabs,
            Some(KeyAction::ConfirmPreviousField | KeyAction::ConfirmCycleMode) => {
                self.tab = (self.tab + n_tabs - 1) % n_tabs;
            }
            Some(KeyAction::ConfirmYes | KeyAction::SelectAccept) if !is_letter(key) => {
                return if tab.only_chooses() { self.toggle() } else { self.enter() };
            }
            Some(KeyAction::ChatExternalEditor) => {
                tab.marked = tab.question.options.len();
                return edit_elsewhere(&self.id, tab.other.text());
            }
            _ if tab.is_other() => drop(tab.other.handle(key)),
            Some(KeyAction::TabsPrevious) => self.tab = (self.tab + n_tabs - 1) % n_tabs,
            Some(KeyAction::TabsNext) => self.tab = (self.tab + 1) % n_tabs,
            Some(KeyAction::ConfirmToggle) => tab.choose(),
            Some(_) => {}
            None => return self.digit(key),
        }
        DialogStep::Open
    }

    /// Takes the number of an answer.
    fn digit(&mut self, key: Key) -> DialogStep {
        let KeyCode::Char(digit @ '1'..='9') = key.code else { return DialogStep::Open };
        let Some(tab) = self.tabs.get_mut(self.tab) else { return DialogStep::Open };
        let idx = digit as usize - '1' as usize;
        if idx >= tab.n_rows() {
            return DialogStep::Open;
        }
        tab.marked = idx;
        match (tab.is_other(), tab.only_chooses()) {
            (true, _) => DialogStep::Open,
            (false, true) => self.toggle(),
            (false, false) => self.enter(),
        }
    }

    fn toggle(&mut self) -> DialogStep {
        if let Some(tab) = self.tabs.get_mut(self.tab) {
            tab.choose();
        }
        DialogStep::Open
    }

    /// Takes what is marked and goes to the next question; after the last one to those that were passed over, once, and then
    /// all is sent.
    fn enter(&mut self) -> DialogStep {
        let Some(tab) = self.tabs.get_mut(self.tab) else { return DialogStep::Open };
        if !tab.is_other() && !tab.question.multi_select {
            tab.chosen.iter_mut().for_each(|chosen| *chosen = false);
            tab.choose();
        }
        let next = match self.is_reminded {
            false if self.tab + 1 < self.tabs.len() => Some(self.tab + 1),
            false => self.tabs.iter().position(Tab::is_unanswered),
            true => (self.tab + 1..self.tabs.len()).find(|idx| self.tabs[*idx].is_unanswered()),
        };
        let Some(next) = next else { return self.submit() };
        self.is_reminded |= next <= self.tab;
        (self.tab, self.scroll) = (next, DialogScroll::default());
        // Enter sends without an answer now, as the hint says.
        if self.is_reminded
            && let Some(tab) = self.tabs.get_mut(next).filter(|tab| tab.question.multi_select)
        {
            tab.marked = tab.n_rows() - 1;
        }
        DialogStep::Open
    }

    fn decline(&self) -> DialogStep {
        let message = "The user does not want to answer these questions now.".to_owned();
        self.reply(Answer::Deny { message, stops: true })
    }

    fn tab_row(&self) -> Option<Row> {
        (self.tabs.len() > 1).then(|| {
            let mut spans = Vec::new();
            for (idx, tab) in self.tabs.iter().enumerate() {
                let mark = if tab.is_unanswered() { "☐" } else { "☒" };
                let style = if idx == self.tab { marked() } else { faint() };
                let header = loci_stdx::single_line(&tab.question.header, 20);
                spans.push(Span::styled(format!("{mark} {header}  "), style));
            }
            Row::new(spans)
        })
    }
}

impl Dialog for UserQuestionsDialog {
    fn contexts(&self) -> &'static [Context] {
        &[Context::Confirmation, Context::Tabs, Context::Select, Context::Global, Context::Chat]
    }

    fn is_typing(&self) -> bool {
        self.tabs.get(self.tab).is_some_and(Tab::is_other)
    }

    fn handle(&mut self, event: &InputEvent, action: Option<KeyAction>) -> DialogStep {
        if self.scroll.handle(event) {
            return DialogStep::Open;
        }
        match event {
            InputEvent::Key(key) => self.handle_key(*key, action),
            InputEvent::Paste(text) => {
                if let Some(tab) = self.tabs.get_mut(self.tab).filter(|tab| tab.is_other()) {
                    tab.other.insert(text);
                }
                DialogStep::Open
            }
            _ => DialogStep::Open,
        }
    }

    fn view(&self, ctx: &RenderContext) -> DialogView {
        let width = width_of(ctx);
        let Some(tab) = self.tabs.get(self.tab) else { return DialogView::default() };
        let asker = self.asker.as_ref().map(|asker| line(&format!("{} asks", visible(asker)), faint()));
        let mut head: Vec<Row> = asker.into_iter().chain(self.tab_row()).collect();
        head.extend(paragraph("", &visible(&tab.question.question), bold(), width));
        let (mut foot, mut focus, mut caret) = (Vec::new(), 0, None);
        for (idx, option) in tab.question.options.iter().enumerate() {
            let is_marked = idx == tab.marked;
            if is_marked {
                focus = foot.len();
            }
            let check = match (tab.question.multi_select, tab.chosen.get(idx)) {
                (true, Some(true)) => "[x] ",
                (true, _) => "[ ] ",
                (false, _) => "",
            };
            let lead = format!("{}{}. {check}", mark_of(is_marked), idx + 1);
            let style = if is_marked { marked() } else { Style::default() };
            foot.extend(paragraph(&lead, &visible(&option.label), style, width));
            if !option.description.is_empty() {
                foot.extend(paragraph("     ", &visible(&option.description), faint(), width));
            }
        }
        let lead = format!("{}{}. Other: ", mark_of(tab.is_other()), tab.question.options.len() + 1);
        if tab.is_other() {
            focus = foot.len();
            let column = cells(&lead) + cells(&tab.other.display_text().1);
            caret = Some((focus, column.min(width.saturating_sub(1))));
        }
        let style = if tab.is_other() { marked() } else { Style::default() };
        foot.push(line(&format!("{lead}{}", visible(&tab.other.display_text().0)), style));
        if tab.question.multi_select {
            let number = tab.n_rows();
            let is_marked = tab.marked + 1 == number;
            if is_marked {
                focus = foot.len();
            }
            let what = if self.tab + 1 < self.tabs.len() { "Next question" } else { "Send" };
            let style = if is_marked { marked() } else { Style::default() };
            foot.push(line(&format!("{}{number}. {what}", mark_of(is_marked)), style));
        }
        let hint = "Enter to choose · Tab other questions · Ctrl+G own words · Esc not now";
        let reminder = match self.is_reminded && tab.is_unanswered() {
            true => "Not answered yet · Enter sends without it · ",
            false => "",
        };
        let hint = format!("{reminder}{hint}");
        let hint = match self.patience {
            Some(patience) => format!("{hint} · goes on after {} s without a key", patience.as_secs()),
            None => hint,
        };
        // What is to be shown beside an option that is marked.
        let preview = tab.question.options.get(tab.marked).and_then(|option| option.preview.as_deref());
        let body = preview.into_iter().flat_map(str::lines);
        let body = body.flat_map(|text| paragraph("  ", &visible(text), Style::default(), width)).collect();
        DialogView {
            head,
            foot,
            focus,
            caret,
            hint: Some(line(&hint, faint())),
            scroll: self.scroll.clone(),
            body,
        }
    }

    fn question(&self) -> Option<&str> {
        Some(&self.id)
    }

    fn edited(&mut self, text: String) {
        if let Some(tab) = self.tabs.get_mut(self.tab) {
            tab.other.set(&text);
        }
    }

    fn expire(&self, waited: Duration) -> Option<DialogStep> {
        let answers: Vec<UserAnswer> = self.tabs.iter().map(Tab::answer).collect();
        let input = Some(with_answers_before(&self.input, &answers, waited));
        Some(self.reply(Answer::Allow { input, updates: Vec::new() }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dialog::testing::press;

    fn dialog() -> UserQuestionsDialog {
        let option = |label: &str| json!({"label": label, "description": "d"});
        let input = json!({"questions": [
            {"question": "Which?", "header": "Which", "options": [option("a"), option("b")], "multiSelect": false},
            {"question": "How?", "header": "How", "options": [option("x"), option("y")], "multiSelect": true}]});
        let questions = loci_core::user_question::parse_questions(&input).unwrap();
        UserQuestionsDialog::new(
            &Question {
                id: "q".into(),
                agent: None,
                kind: QuestionKind::Answers(questions),
                tool: "AskUserQuestion".into(),
                server: None,
                call: "t".into(),
                input,
                reason: String::new(),
                reason_kind: "other".into(),
                blocked_path: None,
                links: Vec::new(),
                suggestions: Vec::new(),
            },
            Some(Duration::from_secs(60)),
        )
        .unwrap()
    }

    #[test]
    fn chosen_answers_count_when_the_question_times_out() {
        let mut dialog = dialog();
        press(&mut dialog, Key::plain(KeyCode::Enter));
        let Some(DialogStep::Answered(actions)) = dialog.expire(Duration::from_secs(60)) else { panic!() };
        let Some(Action::Effect(Effect::Send(Command::Answer {
            answer: Answer::Allow { input: Some(input), .. },
            ..
        }))) = actions.into_iter().next()
        else {
            panic!()
        };
        assert_eq!((&input["answers"], &input["afkTimeoutMs"]), (&json!({"Which?": "a"}), &json!(60_000)));
    }

    #[test]
    fn own_words_are_written_in_an_editor() {
        let mut dialog = dialog();
        let ctrl_g = Key { ctrl: true, ..Key::plain(KeyCode::Char('g')) };
        let edit = Action::Effect(Effect::EditText { name: "q".into(), text: String::new() });
        assert_eq!(press(&mut dialog, ctrl_g), DialogStep::Act(vec![edit]));
        dialog.edited("two\nlines\n".into());
        let ctx = RenderContext::new(60, crate::app::AppOptions::default().theme);
        let rows: Vec<String> = dialog.view(&ctx).foot.iter().map(Row::text).collect();
        assert!(rows.iter().any(|row| row.contains("❯ 3. Other: two⏎lines")), "{rows:?}");
        assert_eq!(dialog.tabs[0].answer().other.as_deref(), Some("two\nlines"));
    }

    /// Types keys: `v` is down, `\r` Enter, `\x1b` Escape, other characters are themselves; returns the answers.
    fn answers(keys: &str) -> Value {
        let mut dialog = dialog();
        for c in keys.chars() {
            let code = match c {
                'v' => KeyCode::Down,
                '\r' => KeyCode::Enter,
                '\x1b' => KeyCode::Esc,
                c => KeyCode::Char(c),
            };
            let step = press(&mut dialog, Key::plain(code));
            if let DialogStep::Answered(actions) = step {
                return match actions.into_iter().next() {
                    Some(Action::Effect(Effect::Send(Command::Answer {
                        answer: Answer::Allow { input: Some(input), .. },
                        ..
                    }))) => input["answers"].clone(),
                    _ => json!("declined"),
                };
            }
        }
        json!("open")
    }

    #[test]
    fn answers_are_chosen_or_typed() {
        for (keys, expected) in [
            ("\r 4", json!({"Which?": "a", "How?": "x"})),
            ("2 v vv\r", json!({"Which?": "b", "How?": "x, y"})),
            ("vvmine\r124", json!({"Which?": "mine", "How?": "x, y"})),
            ("1", json!("open")),
            // Enter on one of several chooses it, and takes it back.
            ("1\rv\r4", json!({"Which?": "a", "How?": "x, y"})),
            ("1\r\rv\rvv\r", json!({"Which?": "a", "How?": "y"})),
            ("1vvown\r", json!({"Which?": "a", "How?": "own"})),
            // What was passed over is shown again, once.
            ("\r4", json!("open")),
            ("\r4\r", json!({"Which?": "a"})),
            ("\r414", json!({"Which?": "a", "How?": "x"})),
            ("vv\r 4", json!("open")),
            ("vv\r 4vv\r", json!({"Which?": "b", "How?": "x"})),
            ("vv\r4\r", json!("open")),
            ("vv\r4\r\r", json!({})),
            ("1\x1b", json!("declined")),
        ] {
            assert_eq!(answers(keys), expected, "{keys:?}");
        }
    }
}
