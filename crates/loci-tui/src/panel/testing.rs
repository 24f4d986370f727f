//! A panel on a virtual screen, driven by keys.

use std::sync::Arc;

use loci_core::ids::SessionId;
use loci_engine::SessionSnapshot;

use super::{Panel, PanelContext, PanelData, PanelStep};
use crate::app::Action;
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::Action as KeyAction;
use crate::render::RenderContext;
use crate::screen::{FullScreen, Size, WriterOptions};
use crate::text::Row;
use crate::theme::{Backdrop, ColorDepth, Theme};

/// A session in which nothing was said.
pub(crate) fn snapshot() -> Arc<SessionSnapshot> {
    let id = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap();
    Arc::new(SessionSnapshot::empty(id, "claude-sonnet-4-5"))
}

/// A panel and the size it is seen in.
pub(crate) struct Shown<P> {
    pub(crate) panel: P,
    size: Size,
}

impl<P: Panel> Shown<P> {
    pub(crate) fn new(panel: P, width: u16, height: u16) -> Self {
        Self { panel, size: Size { width, height } }
    }

    /// Returns what is seen, drawn through a terminal.
    pub(crate) fn text(&self) -> String {
        let ctx =
            RenderContext::new(usize::from(self.size.width), Theme::new(ColorDepth::Ansi, Backdrop::Dark));
        let (rows, caret) = self.panel.view(&ctx, self.size).fit(self.size);
        assert!(rows.len() <= usize::from(self.size.height), "{} rows", rows.len());
        let cells = |n| std::num::NonZero::new(n).unwrap();
        let mut screen = vt100::Parser::new(cells(self.size.height), cells(self.size.width), 0);
        screen.process(&FullScreen::new(WriterOptions::default()).draw(&rows, caret, self.size));
        self.assert_second_terminal_agrees(screen.screen(), &rows, caret);
        let contents = screen.screen().contents();
        contents.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    /// Draws the same on another virtual terminal, and compares.
    fn assert_second_terminal_agrees(
        &self,
        screen: &vt100::Screen,
        rows: &[Row],
        caret: Option<(usize, u16)>,
    ) {
        let (width, height) = (usize::from(self.size.width), usize::from(self.size.height));
        let mut other = avt::Terminal::with_scrollback(width, height, None).unwrap();
        let bytes = FullScreen::new(WriterOptions::default()).draw(rows, caret, self.size);
        other.feed(std::str::from_utf8(&bytes).unwrap());
        let trimmed = |line: String| line.trim_end().to_owned();
        let of_one: Vec<String> = screen.rows(0, self.size.width).map(trimmed).collect();
        let of_other: Vec<String> =
            other.screen().visible_lines().map(avt::Line::text).map(trimmed).collect();
        assert_eq!(of_one, of_other, "two terminals agree");
    }

    /// Fails where a control character is in what is shown.
    pub(crate) fn assert_clean(&self) {
        let ctx =
            RenderContext::new(usize::from(self.size.width), Theme::new(ColorDepth::Ansi, Backdrop::Dark));
        let (rows, _) = self.panel.view(&ctx, self.size).fit(self.size);
        for row in rows {
            let text = row.text();
            assert!(!text.chars().any(char::is_control), "{text:?}");
        }
    }

    pub(crate) fn key(&mut self, code: KeyCode, action: Option<KeyAction>) -> PanelStep {
        self.panel.handle(&InputEvent::Key(Key::plain(code)), &PanelContext { action })
    }

    pub(crate) fn paste(&mut self, text: &str) -> PanelStep {
        self.panel.handle(&InputEvent::Paste(text.to_owned()), &PanelContext { action: None })
    }

    /// Presses whatever key is bound to this.
    pub(crate) fn action(&mut self, action: KeyAction) -> PanelStep {
        self.key(KeyCode::F(12), Some(action))
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            self.key(KeyCode::Char(c), None);
        }
    }

    pub(crate) fn receive(&mut self, data: PanelData) -> Vec<Action> {
        self.panel.receive(data)
    }
}
