//! Servers that a project brings: which of them may be used, one by one.
//!
//! Each is shown as it is written down, with whatever its entry has beside the command: what is approved should have been
//! seen. None is ticked to begin with, and whoever leaves the question uses none.

use loci_app::mcp::approvals::ServerDecision;
use loci_app::start::StartAnswer;
use loci_app::start::approvals::UnapprovedServer;

use super::choices::choice_rows;
use super::{Dialog, DialogScroll, DialogStep, DialogView, is_cancel, width_of};
use crate::app::{Action, Effect};
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::{Action as KeyAction, is_letter};
use crate::layout::{bold, code, faint, line, paragraph, warning};
use crate::render::RenderContext;
use crate::text::{Row, Style, sanitize_line};

/// What follows the servers, in this order.
const ENDS: [(End, &str); 3] = [
    (End::Ticked, "Use those that are ticked"),
    (End::All, "Use all of them, and whatever this project names later"),
    (End::None, "Use none of them"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Ticked,
    All,
    None,
}

/// The servers, each with a tick.
#[derive(Debug)]
pub(crate) struct ServerApprovalDialog {
    servers: Vec<UnapprovedServer>,
    is_ticked: Vec<bool>,
    /// A server, or what follows them.
    marked: usize,
    scroll: DialogScroll,
}

impl ServerApprovalDialog {
    /// Asks about these servers.
    pub(crate) fn new(servers: Vec<UnapprovedServer>) -> Self {
        Self { is_ticked: vec![false; servers.len()], servers, marked: 0, scroll: DialogScroll::default() }
    }

    fn n_rows(&self) -> usize {
        self.servers.len() + ENDS.len()
    }

    /// Ticks the server that is marked, or comes to an end.
    fn choose(&mut self) -> DialogStep {
        if let Some(is_ticked) = self.is_ticked.get_mut(self.marked) {
            *is_ticked = !*is_ticked;
            return DialogStep::Open;
        }
        match ENDS.get(self.marked.saturating_sub(self.servers.len())) {
            Some((end, _)) => self.answer(*end),
            None => DialogStep::Open,
        }
    }

    fn answer(&self, end: End) -> DialogStep {
        let is_approved = |idx: usize| match end {
            End::Ticked => self.is_ticked.get(idx).copied().unwrap_or(false),
            End::All => true,
            End::None => false,
        };
        let mut decision = ServerDecision { approves_all: end == End::All, ..ServerDecision::default() };
        for (idx, server) in self.servers.iter().enumerate() {
            let names = if is_approved(idx) { &mut decision.approved } else { &mut decision.rejected };
            names.push(server.name.clone());
        }
        DialogStep::Answered(vec![Action::Effect(Effect::Answer(StartAnswer::McpServers(decision)))])
    }

    fn handle_key(&mut self, key: Key, action: Option<KeyAction>) -> DialogStep {
        if is_cancel(action, key) {
            return self.answer(End::None);
        }
        let n = self.n_rows();
        match action {
            Some(KeyAction::ConfirmPrevious | KeyAction::SelectPrevious) => {
                self.marked = (self.marked + n - 1) % n;
            }
            Some(KeyAction::ConfirmNext | KeyAction::SelectNext) => self.marked = (self.marked + 1) % n,
            Some(KeyAction::ConfirmYes | KeyAction::SelectAccept) if !is_letter(key) => return self.choose(),
            // A tick is no answer: the space bar never ends the question.
            Some(KeyAction::ConfirmToggle) if self.marked < self.servers.len() => return self.choose(),
            Some(_) => {}
            None => {
                if let KeyCode::Char(digit @ '1'..='9') = key.code
                    && let idx = digit as usize - '1' as usize
                    && idx < n
                {
                    self.marked = idx;
                    return self.choose();
                }
            }
        }
        DialogStep::Open
    }
}

impl Dialog for ServerApprovalDialog {
    fn handle(&mut self, event: &InputEvent, action: Option<KeyAction>) -> DialogStep {
        if self.scroll.handle(event) {
            return DialogStep::Open;
        }
        match event {
            InputEvent::Key(key) => self.handle_key(*key, action),
            _ => DialogStep::Open,
        }
    }

    fn view(&self, ctx: &RenderContext) -> DialogView {
        let width = width_of(ctx);
        let title = match self.servers.len() {
            1 => "This project has an MCP server of its own",
            _ => "This project has MCP servers of its own",
        };
        let mut head = paragraph("", title, bold(), width);
        let warned = "They run commands, or send what the model says elsewhere, as you.";
        head.extend(paragraph("", warned, Style::default(), width));
        head.push(Row::default());
        let mut body: Vec<Row> = self.servers.iter().flat_map(|server| server_rows(server, width)).collect();
        body.push(Row::default());
        let ticks = self.servers.iter().zip(&self.is_ticked).map(|(server, is_ticked)| {
            format!("{} {}", if *is_ticked { "☒" } else { "☐" }, sanitize_line(&server.name))
        });
        let labels = ticks.chain(ENDS.iter().map(|(_, label)| (*label).to_owned()));
        let (foot, focus) = choice_rows(labels, self.marked, width);
        DialogView {
            head,
            body,
            scroll: self.scroll.clone(),
            foot,
            focus,
            hint: Some(line("Space to tick · Enter to choose · Esc uses none", faint())),
            caret: None,
        }
    }
}

/// Returns what a server is, as it is written down.
fn server_rows(server: &UnapprovedServer, width: u16) -> Vec<Row> {
    let mut rows = paragraph("", &format!("{}:", sanitize_line(&server.name)), Style::default(), width);
    rows.extend(paragraph("    ", &sanitize_line(&server.way), code(), width));
    for detail in &server.details {
        rows.extend(paragraph("    ", &sanitize_line(detail), faint(), width));
    }
    if server.is_changed {
        rows.extend(paragraph("    ", "It is not what you approved of before.", warning(), width));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::testing::press;
    use super::*;
    use crate::theme::{Backdrop, ColorDepth, Theme};

    fn servers(names: &[&str]) -> Vec<UnapprovedServer> {
        let server = |name: &&str| UnapprovedServer {
            name: (*name).to_owned(),
            way: format!("npx {name}\u{1b}[2J"),
            details: vec!["with NODE_OPTIONS=--require ./x.js".to_owned()],
            is_changed: *name == "b",
        };
        names.iter().map(server).collect()
    }

    /// Presses keys; returns what is approved and rejected, and whether all that comes is.
    fn check(names: &[&str], keys: &[KeyCode], expected: Option<(&[&str], &[&str], bool)>) {
        let mut dialog = ServerApprovalDialog::new(servers(names));
        let end = keys.iter().find_map(|code| match press(&mut dialog, Key::plain(*code)) {
            DialogStep::Open | DialogStep::Act(_) => None,
            DialogStep::Answered(actions) => Some(actions),
        });
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let wanted = expected.map(|(approved, rejected, approves_all)| {
            let decision =
                ServerDecision { approved: owned(approved), rejected: owned(rejected), approves_all };
            vec![Action::Effect(Effect::Answer(StartAnswer::McpServers(decision)))]
        });
        assert_eq!(end, wanted, "{names:?} {keys:?}");
    }

    #[test]
    fn each_server_is_approved_or_rejected() {
        use KeyCode::{Char, Down, Enter, Esc, Up};
        let all = ["a", "b", "c"];
        check(&all, &[Char(' '), Down, Down, Char(' '), Down, Enter], Some((&["a", "c"], &["b"], false)));
        check(&all, &[Char('2'), Char('4')], Some((&["b"], &["a", "c"], false)));
        check(&all, &[Char('2'), Char('2'), Char('4')], Some((&[], &all, false)));
        check(&all, &[Up, Up, Enter], Some((&all, &[], true)));
        check(&all, &[Char(' '), Up, Enter], Some((&[], &all, false)));
        check(&all, &[Char(' '), Esc], Some((&[], &all, false)));
        check(&all, &[Enter, Enter, Char('y'), Char('n'), Char('9')], None);
        check(&all, &[Up, Char(' ')], None);
        check(&["a"], &[Enter, Down, Enter], Some((&["a"], &[], false)));
    }

    #[test]
    fn what_a_server_is_can_be_seen_whole() {
        let dialog = ServerApprovalDialog::new(servers(&["a", "b"]));
        for width in [20, 80] {
            let ctx = RenderContext::new(width, Theme::new(ColorDepth::Ansi, Backdrop::Dark));
            let (rows, _) = dialog.view(&ctx).fit(60);
            let text: String = rows.iter().map(|row| row.text() + "\n").collect();
            // Rows end between words, and within those that are longer than a row.
            let words: String = text.split_whitespace().collect();
            for expected in ["npxa", "NODE_OPTIONS=--require", "notwhatyouapprovedof", "☐b"] {
                assert!(words.contains(expected), "{width} {expected}: {text}");
            }
            assert!(!text.contains('\u{1b}'), "{text:?}");
            let (rows, _) = dialog.view(&ctx).fit(6);
            assert!(rows.iter().any(|row| row.text().contains("☐ a")), "{width}: the marked one stays");
        }
    }
}
