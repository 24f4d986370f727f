//! `/copy` of an answer with code in it: all of it, or one of its blocks of code, to the clipboard or to a file.

use loci_stdx::counted;

use super::{ListMark, Panel, PanelContext, PanelRequest, PanelStep, PanelView, mark_row};
use crate::app::{Action, Effect, UiAction};
use crate::dialog::TextField;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{cut, faint};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, sanitize_line};

/// What of an answer can be copied.
#[derive(Debug)]
pub(crate) struct CopyPanel {
    parts: Vec<CopyPart>,
    mark: ListMark,
    /// The name of the file that the marked part is written to.
    file: Option<TextField>,
}

#[derive(Debug, PartialEq, Eq)]
struct CopyPart {
    label: String,
    text: String,
}

impl CopyPanel {
    /// Lists an answer and the blocks of code in it; none where it has no code, so that there is nothing to choose.
    pub(crate) fn new(markdown: &str) -> Option<Self> {
        let blocks = code_blocks(markdown);
        if blocks.is_empty() {
            return None;
        }
        let whole = CopyPart { label: "All of the answer".to_owned(), text: markdown.to_owned() };
        let parts = std::iter::once(whole).chain(blocks).collect();
        Some(Self { parts, mark: ListMark::default(), file: None })
    }

    fn marked_text(&self) -> String {
        self.parts.get(self.mark.at).map(|part| part.text.clone()).unwrap_or_default()
    }

    fn handle_file(&mut self, event: &InputEvent) -> PanelStep {
        let text = self.marked_text();
        let Some(field) = &mut self.file else { return PanelStep::Stay };
        match event {
            InputEvent::Paste(pasted) => field.insert(pasted),
            InputEvent::Key(key) if key.code == KeyCode::Enter => {
                let file = field.text().trim().to_owned();
                if !file.is_empty() {
                    let write = PanelRequest::WriteText { file, text };
                    return PanelStep::CloseWith(vec![Action::Effect(Effect::AskPanel(write))]);
                }
            }
            InputEvent::Key(key) => drop(field.handle(*key)),
            _ => {}
        }
        PanelStep::Stay
    }
}

/// Finds the fenced blocks of code in Markdown.
fn code_blocks(markdown: &str) -> Vec<CopyPart> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, String, String)> = None;
    for line in markdown.split_inclusive('\n') {
        let trimmed = line.trim();
        let n_marks = trimmed
            .bytes()
            .take_while(|byte| *byte == b'`')
            .count()
            .max(trimmed.bytes().take_while(|byte| *byte == b'~').count());
        open = match open {
            Some((fence, language, text)) if trimmed.starts_with(fence) && trimmed.len() == n_marks => {
                blocks.push(code_part(&language, text));
                None
            }
            Some((fence, language, mut text)) => {
                text.push_str(line);
                Some((fence, language, text))
            }
            None if n_marks >= 3 => {
                let (fence, language) = trimmed.split_at(n_marks);
                Some((fence, language.trim().to_owned(), String::new()))
            }
            None => None,
        };
    }
    // One that was never closed ends with the answer.
    blocks.extend(open.map(|(_, language, text)| code_part(&language, text)));
    blocks
}

fn code_part(language: &str, text: String) -> CopyPart {
    let language = if language.is_empty() { "code" } else { language };
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let lines = counted(text.lines().count() as u64, "line", "lines");
    let label = format!("{}, {lines}: {}", sanitize_line(language), sanitize_line(first));
    CopyPart { label, text }
}

impl Panel for CopyPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() {
            return match self.file.take() {
                Some(_) => PanelStep::Stay,
                None => PanelStep::Close,
            };
        }
        if self.file.is_some() {
            return self.handle_file(event);
        }
        match ctx.action {
            _ if self.mark.handle_event(self.parts.len(), event, ctx.action) => {}
            Some(KeyAction::SelectAccept) => {
                return PanelStep::CloseWith(vec![Action::Ui(UiAction::CopyLines(self.marked_text()))]);
            }
            _ if matches!(event, InputEvent::Key(key) if key.code == KeyCode::Char('w')) => {
                self.file = Some(TextField::default());
            }
            _ => {}
        }
        PanelStep::Stay
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        let keys = match self.file {
            Some(_) => "Enter write · Esc back",
            None => "↑↓ move · Enter copy · w write to a file · Esc close",
        };
        let mut view = PanelView::new("Copy", keys);
        if let Some(field) = &self.file {
            view.push_field("File: ", field);
        }
        let room = view.room(size);
        view.body = self.mark.rows(self.parts.len(), room, |idx, is_marked| {
            let label = self.parts.get(idx).map_or("", |part| &part.label);
            let style = if is_marked { crate::text::Style::default() } else { faint() };
            cut(&mark_row(Row::new(vec![Span::styled(label, style)]), is_marked), size.width)
        });
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }

    fn is_typing(&self) -> bool {
        self.file.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Shown;
    use super::*;

    const ANSWER: &str = "Do this:\n\n```rust\nfn main() {\n    run();\n}\n```\n\nand\n\n~~~\nls \u{1b}[2J\n~~~\n\n````md\n```\ninner\n```\n````\n";

    #[test]
    fn code_blocks_are_found_whole() {
        let texts = |markdown: &str| -> Vec<String> {
            code_blocks(markdown).into_iter().map(|part| part.text).collect()
        };
        assert_eq!(texts(ANSWER), ["fn main() {\n    run();\n}\n", "ls \u{1b}[2J\n", "```\ninner\n```\n"]);
        assert_eq!(texts("```\nnever closed"), ["never closed"]);
        assert_eq!(texts("no `code` here"), [] as [&str; 0]);
    }

    #[test]
    fn block_is_chosen_and_copied_or_written() {
        assert!(CopyPanel::new("plain").is_none());
        for (width, height) in [(20, 6), (80, 12)] {
            let mut shown = Shown::new(CopyPanel::new(ANSWER).unwrap(), width, height);
            shown.assert_clean();
            assert!(shown.text().contains("❯ All of the answer"), "{}", shown.text());
            shown.action(KeyAction::SelectNext);
            assert!(shown.text().contains("❯ rust, 3 lines"), "{}", shown.text());
            let code = "fn main() {\n    run();\n}\n".to_owned();
            let copy = Action::Ui(UiAction::CopyLines(code.clone()));
            assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::CloseWith(vec![copy]));
            shown.key(KeyCode::Char('w'), None);
            shown.type_text("main.rs");
            let write = PanelRequest::WriteText { file: "main.rs".into(), text: code };
            let step = shown.key(KeyCode::Enter, Some(KeyAction::SelectAccept));
            assert_eq!(step, PanelStep::CloseWith(vec![Action::Effect(Effect::AskPanel(write))]));
        }
    }
}
