//! Blocks as rows, for a width: pure functions.
//!
//! A block that is being written (an answer) goes through [`StreamingMarkdown`]; all others are rendered whole, and may
//! be rendered again as often as they change. For a screen reader the same functions give flat lines with labels.

mod call;
mod diff;
mod highlight;
mod markdown;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use call::{is_groupable, render_call, render_call_group};
pub use diff::{DiffStat, diff_stat, render_diff};
pub use highlight::Highlighter;
pub(crate) use markdown::link_target;
pub use markdown::{StreamingMarkdown, render_markdown};

use crate::block::{Block, NoticeLevel};
use crate::text::{Row, Span, Style, expand_tabs, parse_output, sanitize, sanitize_line, wrap};
use crate::theme::{Role, Theme};

/// Columns between two tab stops in what commands print.
const TAB_WIDTH: usize = 8;

/// What a renderer needs to know beside the block.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderContext {
    /// Columns.
    pub width: usize,
    /// Looks by role.
    pub theme: Theme,
    /// Whether results and thinking are shown whole.
    pub is_verbose: bool,
    /// Whether rows are for a screen reader: flat lines with labels, not wrapped.
    pub is_screen_reader: bool,
    /// Whether the terminal takes links (OSC 8); else addresses are written out.
    pub has_hyperlinks: bool,
    /// Whether things that move are not wanted.
    pub is_motion_reduced: bool,
    /// The time, from any start: things that move move with it.
    pub now: Duration,
    /// Who remembers the colours of code that was rendered before.
    pub highlighter: Option<Highlighter>,
}

impl RenderContext {
    /// Makes the context of a terminal with links, not verbose.
    pub fn new(width: usize, theme: Theme) -> Self {
        Self {
            width,
            theme,
            is_verbose: false,
            is_screen_reader: false,
            has_hyperlinks: true,
            is_motion_reduced: false,
            now: Duration::ZERO,
            highlighter: None,
        }
    }

    /// Makes the context of a screen reader: no colours, no wrapping.
    pub fn screen_reader() -> Self {
        let theme = Theme::new(crate::theme::ColorDepth::None, crate::theme::Backdrop::Dark);
        Self {
            is_screen_reader: true,
            has_hyperlinks: false,
            is_motion_reduced: true,
            ..Self::new(usize::MAX / 2, theme)
        }
    }

    pub(crate) fn span(&self, text: impl Into<String>, role: Role) -> Span {
        Span::styled(text, self.theme.style(role))
    }
}

/// Returns the rows of a block.
pub fn render_block(block: &Block, ctx: &RenderContext) -> Vec<Row> {
    match block {
        Block::Prompt { text, attachments } => render_prompt(text, attachments, ctx),
        Block::Answer { markdown } => labelled("claude: ", render_markdown(markdown, ctx), ctx),
        Block::Thinking { text, duration } => render_thinking(text, *duration, ctx),
        Block::Call(call) => render_call(call, ctx),
        Block::Shell { command, output, exit_code } => render_shell(command, output, *exit_code, ctx),
        Block::Notice { level, text } => render_notice(*level, text, ctx),
        Block::Compaction { text } => {
            let mark = if ctx.is_screen_reader { "" } else { "✻ " };
            paragraphs(text, ctx.span(mark, Role::Accent), Role::Faint, ctx)
        }
        Block::TurnEnd { text } => {
            let label = if ctx.is_screen_reader { "turn ended: " } else { "" };
            paragraphs(text, ctx.span(label, Role::Faint), Role::Faint, ctx)
        }
        Block::Output { markdown } => render_markdown(markdown, ctx),
    }
}

/// Whether a blank row stands between two blocks: calls that follow each other stay together.
pub fn has_gap(before: &Block, after: &Block) -> bool {
    !matches!((before, after), (Block::Call(_), Block::Call(_)))
}

/// Puts a screen reader's label before the first row that has text.
pub fn labelled(label: &str, mut rows: Vec<Row>, ctx: &RenderContext) -> Vec<Row> {
    if ctx.is_screen_reader
        && let Some(row) = rows.iter_mut().find(|row| !row.spans.is_empty())
    {
        row.spans.insert(0, Span::plain(label));
    }
    rows
}

fn render_prompt(text: &str, attachments: &[String], ctx: &RenderContext) -> Vec<Row> {
    let mark =
        if ctx.is_screen_reader { ctx.span("you: ", Role::Text) } else { ctx.span("> ", Role::Accent) };
    let mut rows = paragraphs(text.trim_end(), mark, Role::Prompt, ctx);
    for name in attachments {
        let name = format!("[{}]", sanitize_line(name));
        rows.extend(paragraphs(&name, Span::plain("  "), Role::Faint, ctx));
    }
    rows
}

fn render_thinking(text: &str, duration: Option<Duration>, ctx: &RenderContext) -> Vec<Row> {
    let time = duration.map_or(String::new(), |duration| format!(" for {}", duration_text(duration)));
    let stub = format!("Thought{time}");
    if ctx.is_screen_reader {
        let told = if ctx.is_verbose && !text.trim().is_empty() { text.trim() } else { &stub };
        return paragraphs(told, Span::plain("thinking: "), Role::Text, ctx);
    }
    let has_text = !text.trim().is_empty();
    let hint = if has_text && !ctx.is_verbose { " (ctrl+o shows it)" } else { "" };
    let mut rows = paragraphs(&format!("{stub}{hint}"), ctx.span("✻ ", Role::Thinking), Role::Thinking, ctx);
    if ctx.is_verbose && has_text {
        rows.extend(paragraphs(text.trim(), Span::plain("  "), Role::Thinking, ctx));
    }
    rows
}

fn render_shell(command: &str, output: &str, exit_code: Option<i32>, ctx: &RenderContext) -> Vec<Row> {
    let mark =
        if ctx.is_screen_reader { ctx.span("you: ! ", Role::Text) } else { ctx.span("! ", Role::Accent) };
    let mut rows = paragraphs(command, mark, Role::Prompt, ctx);
    let indent = if ctx.is_screen_reader { "" } else { "  " };
    rows.extend(parse_output(output).into_iter().map(|line| output_row(line, Span::plain(indent), ctx)));
    if let Some(code) = exit_code.filter(|code| *code != 0) {
        rows.extend(paragraphs(&format!("exit code {code}"), Span::plain(indent), Role::Error, ctx));
    }
    rows
}

fn render_notice(level: NoticeLevel, text: &str, ctx: &RenderContext) -> Vec<Row> {
    let (label, label_role, role) = match level {
        NoticeLevel::Info => ("", Role::Text, Role::Faint),
        NoticeLevel::Warning => ("Warning: ", Role::Warning, Role::Text),
        NoticeLevel::Error => ("Error: ", Role::Error, Role::Text),
    };
    let mark =
        if ctx.is_screen_reader { Span::plain(label.to_lowercase()) } else { ctx.span(label, label_role) };
    let spans = [mark, ctx.span(clean(text.trim_end()), role)];
    wrap(&spans, ctx.width, &[], &[])
}

/// Returns rows of text with a mark before the first and as many blanks before the others.
fn paragraphs(text: &str, mark: Span, role: Role, ctx: &RenderContext) -> Vec<Row> {
    let width = crate::text::width(&mark.text);
    let rest = if ctx.is_screen_reader { Span::default() } else { Span::plain(" ".repeat(width)) };
    let spans = [ctx.span(clean(text), role)];
    let mut rows = wrap(&spans, ctx.width, &[mark], &[rest]);
    rows.iter_mut().for_each(trim_row);
    rows
}

/// A line that a program printed: coloured as it was, and left to the terminal to wrap.
fn output_row(line: Vec<Span>, prefix: Span, ctx: &RenderContext) -> Row {
    let mut row = Row::new(vec![prefix]);
    let mut column = 0;
    for span in line {
        let text = expand_tabs(&span.text, column, TAB_WIDTH).into_owned();
        column += crate::text::width(&text);
        row.push(Span::styled(text, ctx.theme.adapt(span.style)));
    }
    trim_row(&mut row);
    row.is_overlong = row.width() > ctx.width;
    row
}

/// Takes blanks at the end away: people copy rows.
fn trim_row(row: &mut Row) {
    while let Some(last) = row.spans.last_mut() {
        if last.style.bg == crate::text::Color::Default && !last.style.is_reversed {
            last.text.truncate(last.text.trim_end_matches(' ').len());
        }
        if !last.text.is_empty() {
            return;
        }
        row.spans.pop();
    }
}

/// Text of others, for spans: clean, with tabs as blanks.
fn clean(text: &str) -> String {
    sanitize(text).replace('\t', "    ")
}

fn plain_style(style: Style) -> bool {
    style == Style::default()
}

/// Says how long something took.
pub fn duration_text(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        seconds => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
    }
}
