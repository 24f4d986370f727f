//! `/search`: every message of every session, by its words; the one that is chosen is gone on from.

use loci_app::sessions::picker::{FoundMessage, PickerScope};

use super::resume::preview_view;
use super::{ListMark, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll, mark_row};
use crate::app::{Action, Effect, UiAction};
use crate::block::Block;
use crate::dialog::TextField;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{cells, faint, line, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, sanitize_line};

/// How many messages are asked for.
const LIMIT: usize = 50;
/// So many cells are kept for the word that was found.
const WORD_ROOM: usize = 20;

/// Words, and the messages that have them.
#[derive(Debug)]
pub(crate) struct SearchPanel {
    scope: PickerScope,
    field: TextField,
    found: Vec<FoundMessage>,
    mark: ListMark,
    /// The search that is under way.
    searching: Option<String>,
    /// What was searched for last.
    searched: String,
    preview: Option<Preview>,
    problem: Option<String>,
}

#[derive(Debug)]
struct Preview {
    found: FoundMessage,
    blocks: Option<Vec<Block>>,
    scroll: Scroll,
}

impl SearchPanel {
    /// Searches for these words, or lets some be typed; returns what is to be found out.
    pub(crate) fn new(text: Option<&str>) -> (Self, Vec<Action>) {
        let mut field = TextField::default();
        field.insert(text.unwrap_or_default());
        let mut panel = Self {
            scope: PickerScope::All,
            field,
            found: Vec::new(),
            mark: ListMark::default(),
            searching: None,
            searched: String::new(),
            preview: None,
            problem: None,
        };
        let actions = panel.search();
        (panel, actions)
    }

    /// Searches for what stands in the field, unless a search is under way: its answer asks again.
    fn search(&mut self) -> Vec<Action> {
        let text = self.field.text().trim().to_owned();
        if self.searching.is_some() || !text.chars().any(char::is_alphanumeric) {
            return Vec::new();
        }
        self.searching = Some(text.clone());
        vec![Action::Effect(Effect::AskPanel(PanelRequest::FindMessages {
            text,
            scope: self.scope,
            limit: LIMIT,
        }))]
    }

    fn resume(found: &FoundMessage) -> PanelStep {
        PanelStep::CloseWith(vec![Action::Ui(UiAction::Resume(
            Box::new(found.session.clone()),
            found.message.clone(),
        ))])
    }

    /// Marks another of those that were found; Home and End are the field's once something is typed.
    fn moves_mark(&mut self, event: &InputEvent, ctx: &PanelContext) -> bool {
        let is_of_field =
            matches!(event, InputEvent::Key(key) if matches!(key.code, KeyCode::Home | KeyCode::End));
        let is_of_field = is_of_field && !self.field.text().is_empty();
        !is_of_field && self.mark.handle_event(self.found.len(), event, ctx.action)
    }

    fn handle_list(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        match ctx.action {
            _ if self.moves_mark(event, ctx) => {}
            Some(KeyAction::SelectAccept) => {
                return self.found.get(self.mark.at).map_or(PanelStep::Stay, Self::resume);
            }
            _ => return self.handle_text(event),
        }
        PanelStep::Stay
    }

    fn handle_text(&mut self, event: &InputEvent) -> PanelStep {
        let is_changed = match event {
            InputEvent::Paste(text) => {
                self.field.insert(text);
                true
            }
            InputEvent::Key(key) if key.ctrl && key.code == KeyCode::Char('a') => {
                self.scope = match self.scope {
                    PickerScope::Project => PickerScope::All,
                    PickerScope::All => PickerScope::Project,
                };
                true
            }
            InputEvent::Key(key)
                if key.code == KeyCode::Tab || key.ctrl && key.code == KeyCode::Char('v') =>
            {
                let Some(found) = self.found.get(self.mark.at).cloned() else { return PanelStep::Stay };
                let (file, from) = (found.session.file.clone(), found.message.clone());
                self.preview = Some(Preview { found, blocks: None, scroll: Scroll::default() });
                return PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::Preview {
                    file,
                    from,
                }))]);
            }
            InputEvent::Key(key) => {
                let before = self.field.text().to_owned();
                // A key that moves the caret finds nothing else.
                self.field.handle(*key) && self.field.text() != before
            }
            _ => false,
        };
        if !is_changed {
            return PanelStep::Stay;
        }
        self.problem = None;
        PanelStep::Act(self.search())
    }

    fn note(&self) -> Option<&'static str> {
        match (&self.searching, self.found.is_empty(), self.field.text().trim().is_empty()) {
            (Some(_), true, _) => Some("Searching; the first time all sessions are read…"),
            (_, true, true) => Some("Type words; \"words in quotes\" stand together, a star is any ending"),
            (None, true, false) => Some("Nothing was found"),
            (_, false, _) => None,
        }
    }
}

impl Panel for SearchPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        let Some(preview) = &mut self.preview else {
            return if ctx.is_cancel() { PanelStep::Close } else { self.handle_list(event, ctx) };
        };
        if ctx.is_cancel() {
            self.preview = None;
        } else if ctx.action == Some(KeyAction::SelectAccept) {
            return Self::resume(&preview.found);
        } else {
            preview.scroll.handle(event);
        }
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::FoundMessages { text, found } => {
                self.searching = None;
                if text != self.field.text().trim() {
                    return self.search();
                }
                (self.found, self.mark.at, self.searched) = (found, 0, text);
            }
            PanelData::Preview { file, blocks } => {
                if let Some(preview) = self.preview.as_mut().filter(|it| it.found.session.file == file) {
                    preview.blocks = Some(blocks);
                }
            }
            PanelData::Failed(why) => {
                self.searching = None;
                self.problem = Some(why);
            }
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView {
        if let Some(Preview { found, blocks, scroll }) = &self.preview {
            return preview_view(&found.session, blocks.as_deref(), scroll, ctx, size);
        }
        let place = match self.scope {
            PickerScope::Project => "this project",
            PickerScope::All => "all projects",
        };
        let hint = "Enter go on from there · Ctrl+V preview · Ctrl+A this project or all · Esc close";
        let mut view = PanelView::new(&format!("Search what was said · {place}"), hint);
        view.push_field("Search: ", &self.field);
        let room = view.room(size);
        view.body = self.mark.rows(self.found.len(), room, |idx, is_marked| {
            let found = self.found.get(idx);
            let row = found.map_or_else(Row::default, |found| found_row(found, &self.searched, size.width));
            mark_row(row, is_marked)
        });
        if let Some(problem) = &self.problem {
            view.body = vec![line(problem, warning())];
        } else if let Some(note) = self.note() {
            view.body = vec![line(note, faint())];
        }
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }

    fn is_typing(&self) -> bool {
        true
    }
}

/// Returns the words around what was found so that what was found is seen: what stands long before it is left out.
fn seen_snippet(snippet: &str, searched: &str, room: usize) -> String {
    let words: Vec<String> = searched
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let begins_with = |from: usize, word: &str| {
        let rest = snippet.get(from..).unwrap_or_default();
        rest.chars().flat_map(char::to_lowercase).take(word.chars().count()).eq(word.chars())
    };
    let starts = snippet.char_indices().map(|(at, _)| at);
    let Some(at) = starts.clone().find(|at| words.iter().any(|word| begins_with(*at, word))) else {
        return snippet.to_owned();
    };
    if usize::from(cells(&snippet[..at])) + WORD_ROOM <= room {
        return snippet.to_owned();
    }
    // Some words before it, so that it is clear what it is about.
    let from = starts.rev().find(|from| *from <= at && usize::from(cells(&snippet[*from..at])) >= room / 3);
    format!("…{}", snippet.get(from.unwrap_or(at)..).unwrap_or_default())
}

fn found_row(found: &FoundMessage, searched: &str, width: u16) -> Row {
    let room = usize::from(width).saturating_sub(usize::from(cells(&found.time)) + 4);
    let snippet = seen_snippet(&sanitize_line(&found.snippet), searched, room);
    let title = loci_stdx::single_line(&found.session.title, 30);
    Row::new(vec![
        Span::styled(sanitize_line(&format!("{}  ", found.time)), faint()),
        Span::plain(snippet),
        Span::styled(sanitize_line(&format!("  {} · {title}", found.voice)), faint()),
    ])
}

#[cfg(test)]
mod tests {
    use loci_app::sessions::picker::SessionChoice;

    use super::super::testing::Shown;
    use super::*;

    fn found(id: &str) -> FoundMessage {
        FoundMessage {
            session: SessionChoice {
                id: id.to_owned(),
                file: format!("/c/{id}.jsonl").into(),
                title: "A title\u{1b}[2J".to_owned(),
                ago: "1 d ago".to_owned(),
                time: "2026-01-01 10:00".to_owned(),
                branch: None,
                n_messages: 2,
                shown_cwd: None,
                cwd: None,
                is_branch: false,
                parent: None,
                depth: 0,
                is_here: true,
            },
            message: Some("m1".to_owned()),
            voice: "assistant",
            time: "2026-01-01 10:00".to_owned(),
            snippet: "the 日本 port\u{7}".to_owned(),
        }
    }

    #[test]
    fn what_was_found_is_seen_and_previewed_in_a_narrow_window() {
        for width in [100, 60, 40] {
            let (panel, _) = SearchPanel::new(Some("Needle"));
            let mut shown = Shown::new(panel, width, 8);
            let long = FoundMessage {
                snippet: format!("{} the needle 日本 {}", "前 words".repeat(20), "after ".repeat(20)),
                ..found("a")
            };
            shown.receive(PanelData::FoundMessages { text: "Needle".into(), found: vec![long] });
            assert!(shown.text().contains("needle"), "{width}: {}", shown.text());
            let asked = shown.key(KeyCode::Tab, None);
            let (file, from) = ("/c/a.jsonl".into(), Some("m1".to_owned()));
            assert_eq!(
                asked,
                PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::Preview { file, from }))])
            );
        }
        assert_eq!(seen_snippet("short needle", "needle", 60), "short needle");
        assert_eq!(seen_snippet("nothing of it", "other", 4), "nothing of it");
    }

    #[test]
    fn words_find_messages_that_are_gone_on_from() {
        for width in [20, 50, 100] {
            let (panel, actions) = SearchPanel::new(Some("port"));
            let ask = |text: &str| {
                let (text, scope) = (text.to_owned(), PickerScope::All);
                Action::Effect(Effect::AskPanel(PanelRequest::FindMessages { text, scope, limit: LIMIT }))
            };
            assert_eq!(actions, [ask("port")]);
            let mut shown = Shown::new(panel, width, 8);
            shown.type_text("s");
            let data = || PanelData::FoundMessages { text: "port".into(), found: vec![found("a")] };
            assert_eq!(shown.receive(data()), [ask("ports")]);
            shown.receive(PanelData::FoundMessages {
                text: "ports".into(),
                found: vec![found("a"), found("b")],
            });
            shown.assert_clean();
            assert!(shown.text().contains("❯ 2026-01-01"), "{}", shown.text());
            shown.action(KeyAction::SelectNext);
            for caret in [KeyCode::Home, KeyCode::Right, KeyCode::End] {
                assert_eq!(shown.key(caret, None), PanelStep::Stay, "the caret moves, the mark stays");
            }
            let step = shown.action(KeyAction::SelectAccept);
            let PanelStep::CloseWith(actions) = step else { panic!("chosen") };
            assert!(
                matches!(&actions[..], [Action::Ui(UiAction::Resume(choice, Some(at)))] if choice.id == "b" && at == "m1"),
                "{actions:?}"
            );
        }
    }
}
