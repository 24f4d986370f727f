//! The transcript pager within the application: its keys, what it shows, and what it asks for.

use super::fullscreen::FullView;
use super::pager::{Pager, PagerSource, PagerStep};
use super::{App, Effect};
use crate::block::Block;
use crate::key::{InputEvent, MouseAction};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{cut, faint, line};
use crate::panel::PanelRequest;
use crate::render::{RenderContext, render_block};
use crate::screen::{Frame, Size};
use crate::text::Row;

/// The pager, and what it shows beside what the interface remembers.
#[derive(Debug)]
pub(super) struct Transcript {
    pager: Pager,
    /// All blocks of the session, once they were read.
    whole: Option<Vec<Block>>,
    /// How many items of the conversation those blocks hold already.
    n_read_items: usize,
    width: u16,
}

impl App {
    /// Opens the pager at the end of the conversation.
    pub(super) fn open_transcript(&mut self) {
        self.transcript = Some(Transcript { pager: Pager::new(), whole: None, n_read_items: 0, width: 80 });
    }

    /// Hands over what was typed; none where no pager is open.
    pub(super) fn transcript_typed(&mut self, event: &InputEvent) -> Option<Vec<Effect>> {
        let ctx = self.verbose_context(self.transcript.as_ref()?.width);
        let contexts = [Context::Transcript, Context::Global];
        let action = self.keymap.action_of(&contexts, event, false).flatten();
        if action == Some(KeyAction::AppSuspend) {
            return Some(vec![Effect::Suspend]);
        }
        let view = self.transcript.as_mut()?;
        let source = match &view.whole {
            Some(whole) => PagerSource::of_whole(whole, &self.conversation, view.n_read_items),
            None => PagerSource::of_log(&self.log, &self.conversation),
        };
        Some(match view.pager.handle(event, action, &source, &ctx) {
            PagerStep::Stay => Vec::new(),
            PagerStep::Close => {
                self.transcript = None;
                Vec::new()
            }
            PagerStep::ShowAll => match (view.whole.is_some(), self.session.is_persistent) {
                (true, _) => Vec::new(),
                (false, false) => {
                    view.pager.set_note("This session is not kept on disk; this is all that is remembered");
                    Vec::new()
                }
                (false, true) => {
                    view.pager.set_note("Reading the session…");
                    view.n_read_items = self.conversation.n_final();
                    vec![Effect::AskPanel(PanelRequest::Transcript)]
                }
            },
            PagerStep::Dump => {
                self.dumped = source.blocks().cloned().collect();
                self.transcript = None;
                if let Some(screen) = &mut self.fullscreen {
                    screen.is_dump_shown = true;
                }
                Vec::new()
            }
            PagerStep::OpenInEditor => {
                let text: Vec<String> = source.blocks().map(block_source).collect();
                vec![Effect::ShowInEditor(text.join("\n"))]
            }
        })
    }

    /// Takes all blocks of the session, if the pager still wants them.
    pub(super) fn show_whole_transcript(&mut self, blocks: Vec<Block>) {
        if let Some(view) = &mut self.transcript {
            view.whole = Some(blocks);
            view.pager.renew();
        }
    }

    /// Scrolls the pager by rows of the wheel.
    pub(super) fn scroll_transcript(&mut self, way: MouseAction, n: usize) {
        let Some(width) = self.transcript.as_ref().map(|view| view.width) else { return };
        let ctx = self.verbose_context(width);
        let Some(view) = &mut self.transcript else { return };
        let source = match &view.whole {
            Some(whole) => PagerSource::of_whole(whole, &self.conversation, view.n_read_items),
            None => PagerSource::of_log(&self.log, &self.conversation),
        };
        view.pager.scroll(way, n, &source, &ctx);
    }

    /// Returns the whole screen, where something takes it; a question that waits is answered first.
    pub(super) fn full_screen(&mut self, size: Size) -> Option<FullView> {
        if !self.dialogs.is_empty() {
            self.leave_dump();
        }
        let mut view = match self.dialogs.is_empty() && self.transcript.is_some() {
            true => self.transcript_view(size),
            false if self.owns_screen() => self.fullscreen_view(size),
            false => None,
        }?;
        self.color_rows(&mut view.rows);
        Some(view)
    }

    fn transcript_view(&mut self, size: Size) -> Option<FullView> {
        let ctx = self.verbose_context(size.width);
        let view = self.transcript.as_mut()?;
        view.width = size.width;
        let source = match &view.whole {
            Some(whole) => PagerSource::of_whole(whole, &self.conversation, view.n_read_items),
            None => PagerSource::of_log(&self.log, &self.conversation),
        };
        Some(view.pager.view(&source, &ctx, size))
    }

    /// Returns what the terminal's own screen shows while the transcript is looked at there, in fullscreen.
    pub(super) fn dump_frame(&mut self, size: Size) -> Option<Frame> {
        self.fullscreen.as_ref().filter(|screen| screen.is_dump_shown)?;
        let committed = self.take_dumped(size.width);
        let hint = "In the scrollback above · any key goes back to fullscreen";
        let live = vec![Row::default(), cut(&line(hint, faint()), size.width)];
        Some(Frame { committed, live, caret: Some((1, 0)), is_caret_visible: true, ..Frame::default() })
    }

    /// Goes back to fullscreen, where the transcript is looked at in the scrollback; none where it is not.
    pub(super) fn leave_dump(&mut self) -> Option<Vec<Effect>> {
        let screen = self.fullscreen.as_mut().filter(|screen| screen.is_dump_shown)?;
        screen.is_dump_shown = false;
        Some(Vec::new())
    }

    /// Returns the rows of what was asked to be written to the scrollback.
    pub(super) fn take_dumped(&mut self, width: u16) -> Vec<Row> {
        let ctx = self.verbose_context(width);
        let blocks = std::mem::take(&mut self.dumped);
        let mut rows = Vec::new();
        for block in &blocks {
            rows.push(Row::default());
            rows.extend(render_block(block, &ctx));
        }
        rows
    }

    fn verbose_context(&self, width: u16) -> RenderContext {
        RenderContext { is_verbose: true, ..self.render_context(width) }
    }
}

/// Returns a block as Markdown, for an editor.
fn block_source(block: &Block) -> String {
    let quoted = |text: &str| text.lines().map(|line| format!("> {line}\n")).collect::<String>();
    let fenced = |text: &str| format!("````\n{}\n````\n", text.trim_end());
    match block {
        Block::Prompt { text, .. } => quoted(text),
        Block::Answer { markdown } | Block::Output { markdown } => format!("{}\n", markdown.trim_end()),
        Block::Thinking { text, .. } => format!("*Thought:* {}\n", text.trim_end()),
        Block::Shell { command, output, .. } => format!("! {command}\n\n{}", fenced(output)),
        Block::Notice { text, .. } | Block::Compaction { text } | Block::TurnEnd { text } => {
            format!("*{text}*\n")
        }
        Block::Call(call) => {
            let diff = call.diff.as_ref().map(|diff| fenced(&format!("{}\n{}", diff.path, diff.after)));
            let output = Some(&call.output).filter(|output| !output.is_empty()).map(|output| fenced(output));
            let head = format!("**{}** {}\n\n", call.tool, call.summary);
            format!("{head}{}{}", diff.unwrap_or_default(), output.unwrap_or_default())
        }
    }
}
