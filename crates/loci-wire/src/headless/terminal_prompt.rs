//! Asking the person at the terminal, a line at a time.
//!
//! Questions are shown one after the other; a line that was typed answers the one that is shown, and what was
//! typed before it was shown is thrown away. What is shown is what would run: characters that hide or reorder
//! text are made visible, and what does not fit is not granted beyond this once (S-7).

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use loci_core::permission::Update;
use loci_core::tool::PathEffect;
use loci_core::user_question::{UserAnswer, with_answers_before};
use loci_engine::{Answer, Question};
use loci_stdx::{counted, visible};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

use super::terminal_questions::{self, AnswerLine};

/// The most of a call that is shown; one that is longer can only be allowed once.
const MOST_CHARS: usize = 4_000;

/// What a line led to.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LineOutcome {
    /// The answer to a question.
    pub(super) answer: Option<(String, Answer)>,
    /// What to show next.
    pub(super) shown: String,
}

/// The person, and what they are being asked.
#[derive(Debug, Default)]
pub(super) struct TerminalPrompt {
    waiting: VecDeque<Question>,
    /// What was said so far to the questions of the call that is shown.
    given: Vec<UserAnswer>,
    terminal: Option<TerminalLines>,
    /// After how long without a line questions of the model go on by themselves.
    patience: Option<Duration>,
    /// When something was last shown.
    shown_at: Option<Instant>,
}

/// What came of waiting for a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TerminalLine {
    /// A line.
    Typed(String),
    /// No more will come.
    Over,
    /// Nobody has typed one for too long.
    Away,
}

#[derive(Debug)]
struct TerminalLines {
    /// The terminal itself, to throw away what was typed too early.
    #[cfg(unix)]
    device: Option<File>,
    lines: UnboundedReceiver<String>,
    /// No more lines will come.
    is_over: bool,
}

impl TerminalPrompt {
    /// Asks nothing yet; questions of the model wait so long for a line, or for ever.
    pub(super) fn new(patience: Option<Duration>) -> Self {
        Self { patience, ..Self::default() }
    }

    /// Adds a question; returns what to show.
    pub(super) fn ask(&mut self, question: Question) -> String {
        self.waiting.push_back(question);
        if self.waiting.len() == 1 { self.show() } else { String::new() }
    }

    /// Drops a question that needs no answer any more; returns what to show.
    pub(super) fn withdraw(&mut self, id: &str) -> String {
        let is_shown = self.waiting.front().is_some_and(|question| question.id == id);
        if is_shown {
            self.given.clear();
        }
        self.waiting.retain(|question| question.id != id);
        if is_shown { format!("\n(no answer is needed any more)\n{}", self.show()) } else { String::new() }
    }

    /// Takes a line as the answer to the question that is shown; `None` means that no more will come.
    pub(super) fn handle_line(&mut self, line: Option<&str>) -> LineOutcome {
        let Some(question) = self.waiting.front() else { return LineOutcome::default() };
        let answer = match (line, terminal_questions::questions(question)) {
            (Some(line), Some(asked)) => {
                match terminal_questions::take_line(question, asked, &mut self.given, line) {
                    AnswerLine::Done(answer) => Some(answer),
                    AnswerLine::Next | AnswerLine::Again => {
                        return LineOutcome { answer: None, shown: self.show() };
                    }
                }
            }
            (Some(line), None) => parse_answer(line, question),
            (None, _) => Some(deny("Nobody is left to ask whether this call may run.", false)),
        };
        let Some(answer) = answer else {
            return LineOutcome {
                answer: None,
                shown: "Please answer y, a, n or n with a reason.\n> ".to_owned(),
            };
        };
        let id = question.id.clone();
        self.given.clear();
        self.waiting.pop_front();
        LineOutcome { answer: Some((id, answer)), shown: self.show() }
    }

    /// Goes on with what was said so far to the questions that are shown; nobody is there to say more.
    pub(super) fn handle_away(&mut self) -> LineOutcome {
        let waited = self.patience.unwrap_or_default();
        let Some(question) = self.waiting.pop_front() else { return LineOutcome::default() };
        let input = with_answers_before(&question.input, &std::mem::take(&mut self.given), waited);
        let answer = Answer::Allow { input: Some(input), updates: Vec::new() };
        let shown = format!("\n(no answer came within {} s: it goes on)\n{}", waited.as_secs(), self.show());
        LineOutcome { answer: Some((question.id, answer)), shown }
    }

    /// Waits for the next line, forever when nothing is asked.
    pub(super) async fn next_line(&mut self) -> TerminalLine {
        let asks = self.waiting.front().is_some_and(|it| terminal_questions::questions(it).is_some());
        match self.patience.zip(self.shown_at).filter(|_| asks) {
            None => self.wait_for_line().await,
            Some((patience, since)) => {
                let end = since + patience;
                tokio::time::timeout_at(end, self.wait_for_line()).await.unwrap_or(TerminalLine::Away)
            }
        }
    }

    async fn wait_for_line(&mut self) -> TerminalLine {
        let Some(terminal) = self.terminal.as_mut().filter(|_| !self.waiting.is_empty()) else {
            return std::future::pending().await;
        };
        if terminal.is_over {
            return TerminalLine::Over;
        }
        let line = terminal.lines.recv().await;
        terminal.is_over = line.is_none();
        line.map_or(TerminalLine::Over, TerminalLine::Typed)
    }

    fn show(&mut self) -> String {
        let Some(question) = self.waiting.front() else { return String::new() };
        let text = match terminal_questions::questions(question) {
            Some(asked) => terminal_questions::text(asked, self.given.len()),
            None => text(question),
        };
        self.terminal.get_or_insert_with(TerminalLines::open).discard_typed();
        self.shown_at = Some(Instant::now());
        text
    }
}

impl TerminalLines {
    /// Opens the terminal and reads it on a thread of its own; it cannot be waited for in any other way.
    fn open() -> Self {
        let (sender, lines) = unbounded_channel();
        let device = File::open("/dev/tty").ok();
        let reader = device.as_ref().and_then(|device| device.try_clone().ok());
        let read = move || {
            let mut reader = reader.map(BufReader::new);
            loop {
                let mut line = String::new();
                let n_read = reader.as_mut().map_or(0, |reader| reader.read_line(&mut line).unwrap_or(0));
                if n_read == 0 || sender.send(line).is_err() {
                    return;
                }
            }
        };
        // Without a thread nothing is read, as from a terminal that has gone.
        drop(std::thread::Builder::new().spawn(read));
        Self {
            #[cfg(unix)]
            device,
            lines,
            is_over: false,
        }
    }

    /// Throws away what was typed before there was a question to answer.
    fn discard_typed(&mut self) {
        #[cfg(unix)]
        if let Some(device) = &self.device {
            // A terminal that cannot be flushed can still be read.
            rustix::termios::tcflush(device, rustix::termios::QueueSelector::IFlush).ok();
        }
        while self.lines.try_recv().is_ok() {}
    }
}

/// Returns a question as it is shown.
fn text(question: &Question) -> String {
    let (call, is_whole) = call_text(question);
    let grants = grants(question, is_whole);
    let links: String = question.links.iter().map(|link| format!("    {}\n", link_text(link))).collect();
    let always = match grants.is_empty() {
        true => String::new(),
        false => format!("  a  always: {}\n", format_grants(grants)),
    };
    let agent = question
        .agent
        .as_ref()
        .map(|agent| format!("The agent {} ({})\n", visible(&agent.kind), visible(&agent.description)));
    let agent = agent.unwrap_or_default();
    format!(
        "\n{agent}{} asks to run:\n{call}{links}  Why this is asked: {}\n  y  yes, this once\n{always}  n  no, and stop here\n  \
         n REASON  no, and tell the model why\n> ",
        visible(&question.tool),
        visible(&question.reason),
    )
}

fn link_text(link: &PathEffect) -> String {
    visible(&format!("({} leads to {})", link.requested.display(), link.real.display()))
}

/// Returns the call, indented, and whether that is all of it.
fn call_text(question: &Question) -> (String, bool) {
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let whole = match (&question.input, question.input.get("command")) {
        (_, Some(Value::String(command))) => command.clone(),
        (Value::Object(fields), _) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, field)| format!("{name}: {}", value(field))).collect();
            fields.join("\n")
        }
        (other, _) => other.to_string(),
    };
    let shown: String = whole.chars().take(MOST_CHARS).collect();
    let is_whole = shown.len() == whole.len();
    let mut lines: String = visible(&shown).lines().map(|line| format!("    {line}\n")).collect();
    if !is_whole {
        let n_more = (whole.chars().count() - MOST_CHARS) as u64;
        lines += &format!("    ... and {}\n", counted(n_more, "more character", "more characters"));
    }
    (lines, is_whole)
}

/// Returns what "always" would grant; nothing that was not shown in full.
fn grants(question: &Question, is_whole: bool) -> &[Update] {
    if is_whole { &question.suggestions } else { &[] }
}

fn format_grants(grants: &[Update]) -> String {
    let grants: Vec<String> = grants.iter().map(|grant| visible(&grant.to_string())).collect();
    grants.join("; ")
}

/// Reads an answer; none means that it is to be asked again.
fn parse_answer(line: &str, question: &Question) -> Option<Answer> {
    let line = line.trim();
    let (word, rest) = line.split_once([' ', ',', ':']).unwrap_or((line, ""));
    let grants = grants(question, call_text(question).1);
    match (word.to_lowercase().as_str(), rest.trim()) {
        ("y" | "yes", "") => Some(Answer::Allow { input: None, updates: Vec::new() }),
        ("a" | "always", "") if !grants.is_empty() => {
            Some(Answer::Allow { input: None, updates: grants.to_vec() })
        }
        ("n" | "no", "") => Some(deny("The user does not want this call to run.", true)),
        ("n" | "no", reason) => Some(deny(&format!("The user said no to this call: {reason}"), false)),
        _ => None,
    }
}

fn deny(message: &str, stops: bool) -> Answer {
    Answer::Deny { message: message.to_owned(), stops }
}

#[cfg(test)]
mod tests {
    use loci_core::permission::{Destination, RuleChange, RuleList};
    use serde_json::json;

    use super::*;

    fn question(id: &str, input: Value) -> Question {
        let rule = RuleChange {
            list: RuleList::Allow,
            rules: vec!["Bash(touch x)".to_owned()],
            to: Destination::Local,
        };
        Question {
            id: id.to_owned(),
            agent: None,
            tool: "Bash".to_owned(),
            server: None,
            call: "toolu_1".into(),
            input,
            kind: loci_engine::QuestionKind::Permission,
            reason: "it changes something".to_owned(),
            reason_kind: "other".into(),
            blocked_path: None,
            links: vec![PathEffect { requested: "/p/x".into(), real: "/etc/x".into() }],
            suggestions: vec![Update::AddRules(rule)],
        }
    }

    /// P-9.
    #[test]
    fn answer_other_than_y_a_n_is_asked_again() {
        let asked = question("q", json!({"command": "touch x"}));
        for (line, expected) in [
            ("y\n", "yes"),
            (" YES ", "yes"),
            ("a", "always"),
            ("n", "stop"),
            ("no, use make", "no: use make"),
            ("n: too slow", "no: too slow"),
            ("", "?"),
            ("yes please", "?"),
            ("yn", "?"),
            ("always n", "?"),
        ] {
            let found = match parse_answer(line, &asked) {
                None => "?".to_owned(),
                Some(Answer::Allow { updates, .. }) if updates.is_empty() => "yes".to_owned(),
                Some(Answer::Allow { .. }) => "always".to_owned(),
                Some(Answer::Deny { stops: true, .. }) => "stop".to_owned(),
                Some(Answer::Deny { message, .. }) => {
                    format!("no: {}", message.rsplit(": ").next().unwrap_or_default())
                }
            };
            assert_eq!(found, expected, "{line:?}");
        }
    }

    /// P-8.
    #[test]
    fn question_shows_hidden_characters_and_symlinks() {
        let shown = text(&question("q", json!({"command": "ls\u{202e} \u{1b}[2J;\u{200b}rm x"})));
        assert!(shown.contains(r"ls\u{202e} \u{1b}[2J;\u{200b}rm x"), "{shown}");
        assert!(shown.contains("`Bash(touch x)`"), "{shown}");
        assert!(shown.contains("(/p/x leads to /etc/x)"), "{shown}");
        let long = question("q", json!({"command": "x".repeat(MOST_CHARS + 7)}));
        let shown = text(&long);
        assert!(shown.contains("7 more characters") && !shown.contains("always"), "{shown}");
        assert_eq!(parse_answer("a", &long), None, "what was not shown in full is not granted");
    }
}
