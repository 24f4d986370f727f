//! The transcript pager within the conversation: its keys, what it shows, and what it asks for.

use super::Effect;
use super::fullscreen::FullView;
use super::pager::{Pager, PagerSource, PagerStep};
use super::transcript_view::TranscriptView;
use crate::block::Block;
use crate::key::{InputEvent, MouseAction};
use crate::keymap::{Action as KeyAction, Context, Keymap};
use crate::layout::{cut, faint, line};
use crate::panel::PanelRequest;
use crate::render::{RenderContext, render_block};
use crate::screen::{Frame, Size};
use crate::text::Row;

/// The pager, and what it shows beside what the interface remembers.
#[derive(Debug)]
pub(super) struct TranscriptPager {
    pager: Pager,
    /// All blocks of the session, once they were read.
    whole: Option<Vec<Block>>,
    /// How many items of the conversation those blocks hold already.
    n_read_items: usize,
    width: u16,
}

impl TranscriptView {
    /// Opens the pager at the end of the conversation.
    pub(super) fn open_pager(&mut self) {
        self.pager = Some(TranscriptPager { pager: Pager::new(), whole: None, n_read_items: 0, width: 80 });
    }

    /// Returns the width at which the pager was last drawn, where it is open.
    pub(super) fn pager_width(&self) -> Option<u16> {
        self.pager.as_ref().map(|view| view.width)
    }

    /// Hands over what was typed; none where no pager is open. `is_kept` says that all of the session can be read.
    pub(super) fn pager_typed(
        &mut self,
        event: &InputEvent,
        keymap: &mut Keymap,
        ctx: &RenderContext,
        is_kept: bool,
    ) -> Option<Vec<Effect>> {
        let view = self.pager.as_mut()?;
        let contexts = [Context::Transcript, Context::Global];
        let action = keymap.action_of(&contexts, event, false).flatten();
        if action == Some(KeyAction::AppSuspend) {
            return Some(vec![Effect::Suspend]);
        }
        let ctx = verbose(ctx);
        let source = match &view.whole {
            Some(whole) => PagerSource::of_whole(whole, &self.conversation, view.n_read_items),
            None => PagerSource::of_log(&self.log, &self.conversation),
        };
        Some(match view.pager.handle(event, action, &source, &ctx) {
            PagerStep::Stay => Vec::new(),
            PagerStep::Close => {
                self.pager = None;
                Vec::new()
            }
            PagerStep::ShowAll => match (view.whole.is_some(), is_kept) {
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
                self.pager = None;
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
    pub(super) fn show_whole(&mut self, blocks: Vec<Block>) {
        if let Some(view) = &mut self.pager {
            view.whole = Some(blocks);
            view.pager.renew();
        }
    }

    /// Scrolls the pager by rows of the wheel.
    pub(super) fn scroll_pager(&mut self, way: MouseAction, n: usize, ctx: &RenderContext) {
        let Some(view) = &mut self.pager else { return };
        let source = match &view.whole {
            Some(whole) => PagerSource::of_whole(whole, &self.conversation, view.n_read_items),
            None => PagerSource::of_log(&self.log, &self.conversation),
        };
        view.pager.scroll(way, n, &source, &verbose(ctx));
    }

    /// Returns the screen of the pager.
    pub(super) fn pager_view(&mut self, size: Size, ctx: &RenderContext) -> Option<FullView> {
        let view = self.pager.as_mut()?;
        view.width = size.width;
        let source = match &view.whole {
            Some(whole) => PagerSource::of_whole(whole, &self.conversation, view.n_read_items),
            None => PagerSource::of_log(&self.log, &self.conversation),
        };
        Some(view.pager.view(&source, &verbose(ctx), size))
    }

    /// Returns what the terminal's own screen shows while the transcript is looked at there, in fullscreen.
    pub(super) fn dump_frame(&mut self, ctx: &RenderContext, width: u16) -> Option<Frame> {
        self.fullscreen.as_ref().filter(|screen| screen.is_dump_shown)?;
        let committed = self.take_dumped(ctx);
        let hint = "In the scrollback above · any key goes back to fullscreen";
        let live = vec![Row::default(), cut(&line(hint, faint()), width)];
        Some(Frame { committed, live, caret: Some((1, 0)), is_caret_visible: true, ..Frame::default() })
    }

    /// Goes back to fullscreen, where the transcript is looked at in the scrollback; false where it is not.
    pub(super) fn leave_dump(&mut self) -> bool {
        let screen = self.fullscreen.as_mut().filter(|screen| screen.is_dump_shown);
        screen.map(|screen| screen.is_dump_shown = false).is_some()
    }

    /// Returns the rows of what was asked to be written to the scrollback.
    pub(super) fn take_dumped(&mut self, ctx: &RenderContext) -> Vec<Row> {
        let blocks = std::mem::take(&mut self.dumped);
        if blocks.is_empty() {
            return Vec::new();
        }
        let ctx = verbose(ctx);
        let rows = |block| std::iter::once(Row::default()).chain(render_block(block, &ctx));
        blocks.iter().flat_map(rows).collect()
    }
}

/// Has everything shown whole.
fn verbose(ctx: &RenderContext) -> RenderContext {
    RenderContext { is_verbose: true, ..ctx.clone() }
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
