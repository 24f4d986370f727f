//! Markdown as rows, also while it streams.
//!
//! A [`StreamingMarkdown`] takes deltas and gives rows in two kinds: those that are final, each once, and those that may
//! still change. What a delta costs depends on the block that is open, not on the answer. However a text was cut into
//! deltas, the final rows are the same; and the same as for the text at once.

mod blocks;
pub(crate) mod inline;
mod table;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

pub(crate) use inline::link_target;

use blocks::{BlockParser, LONGEST_PARAGRAPH, Mark, Piece, PieceKind};

use super::RenderContext;
use super::highlight::{CodeParts, Highlighter, LineDigest, LineKey, PATIENCE};
use crate::text::{Row, Span, Style, expand_tabs, sanitize, wrap};
use crate::theme::Role;

/// Blanks for a tab in code.
const TAB_WIDTH: usize = 4;

/// Markdown that arrives in parts.
#[derive(Debug, Clone)]
pub struct StreamingMarkdown {
    parser: BlockParser,
    /// The line that has not ended.
    line: String,
    /// What is final and was not taken.
    pieces: VecDeque<FinalPiece>,
    /// How many characters of the open paragraph were taken before it ended.
    n_taken_chars: usize,
    is_finished: bool,
    highlighter: Option<Highlighter>,
    /// The block of code that lines belong to.
    code_block: CodeBlock,
}

/// A block of code whose lines come.
#[derive(Debug, Clone, Default)]
struct CodeBlock {
    /// Its number in the document; none yet, where it is zero.
    number: usize,
    /// What the highlighter calls it.
    key: u64,
    /// How many of its lines came.
    n_lines: usize,
    /// Stands for these.
    digest: LineDigest,
}

/// A piece that was not taken, with the line whose colours it waits for, and since when.
#[derive(Debug, Clone)]
struct FinalPiece {
    piece: Piece,
    line: Option<LineKey>,
    /// What its colours are remembered by.
    digest: Option<LineDigest>,
    since: Option<Duration>,
}

impl Default for StreamingMarkdown {
    fn default() -> Self {
        Self {
            parser: BlockParser::new(),
            line: String::new(),
            pieces: VecDeque::new(),
            n_taken_chars: 0,
            is_finished: false,
            highlighter: None,
            code_block: CodeBlock::default(),
        }
    }
}

/// Returns the rows of a whole document.
pub fn render_markdown(source: &str, ctx: &RenderContext) -> Vec<Row> {
    let mut markdown = StreamingMarkdown::default();
    markdown.push(source);
    markdown.finish();
    markdown.take_committed(ctx)
}

impl StreamingMarkdown {
    /// Makes one whose code is coloured: a line of code is final when its colours are there, or 30 ms after it was first
    /// asked for, and 300 ms while the first grammars are loaded. `RenderContext::now` has to move for that.
    pub fn with_highlighter(highlighter: Highlighter) -> Self {
        Self { highlighter: Some(highlighter), ..Self::default() }
    }

    /// Takes what came.
    pub fn push(&mut self, delta: &str) {
        for part in delta.split_inclusive('\n') {
            match part.strip_suffix('\n') {
                Some(rest) => {
                    self.line.push_str(rest);
                    self.end_line();
                }
                None => self.line.push_str(part),
            }
            self.cut_long_line();
        }
        self.enqueue_pieces();
    }

    /// Takes the end.
    pub fn finish(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.parser.finish();
        self.is_finished = true;
        self.enqueue_pieces();
    }

    /// Returns the rows that became final since the last time.
    pub fn take_committed(&mut self, ctx: &RenderContext) -> Vec<Row> {
        let mut rows = Vec::new();
        // Each line waits from when it was first looked at, not from when those before it were done.
        for waiting in &mut self.pieces {
            waiting.since.get_or_insert(ctx.now);
        }
        while let Some(FinalPiece { piece, line, digest, since }) = self.pieces.front() {
            // Asked before they are fetched: colours that come in between are fetched the next time, not passed over.
            let awaits = self.awaits(*line, *since, ctx.now);
            let remembered = || ctx.highlighter.as_ref()?.remembered((*digest)?);
            let colors = line.and_then(|line| self.highlighter.as_ref()?.take(line)).or_else(remembered);
            if colors.is_none() && awaits {
                break;
            }
            let is_paragraph = matches!(piece.kind, PieceKind::Paragraph(_));
            let n_taken = if is_paragraph { std::mem::take(&mut self.n_taken_chars) } else { 0 };
            rows.extend(render_piece(piece, n_taken, colors.as_ref(), ctx));
            self.pieces.pop_front();
        }
        rows
    }

    /// Tells whether a line of code waits for its colours still.
    fn awaits(&self, line: Option<LineKey>, since: Option<Duration>, now: Duration) -> bool {
        let (Some(line), Some(highlighter)) = (line, &self.highlighter) else { return false };
        let is_early = since.is_none_or(|since| now.saturating_sub(since) < highlighter.patience());
        is_early && !highlighter.is_done(line)
    }

    /// Tells whether some of it waits for its colours still, though all of it is there.
    pub(crate) fn awaits_colors(&self, now: Duration) -> bool {
        self.pieces.iter().any(|waiting| self.awaits(waiting.line, waiting.since, now))
    }

    /// Waits for colours no more; those that are there are remembered by whoever renders.
    pub(crate) fn stop_waiting(&mut self) {
        self.highlighter = None;
    }

    /// Returns when it is looked at again, where it waits for colours.
    pub(crate) fn deadline(&self, now: Duration) -> Option<Duration> {
        self.awaits_colors(now).then_some(now + PATIENCE)
    }

    /// Returns the first rows of a paragraph that is longer than the live region, as far as nothing can change them.
    pub fn take_overflow(&mut self, max_live: usize, ctx: &RenderContext) -> Vec<Row> {
        if !self.pieces.is_empty() {
            return Vec::new();
        }
        // The last row may always go on.
        let max_live = max_live.max(1);
        if self.most_open_rows(ctx.width).is_some_and(|n_rows| n_rows <= max_live) {
            return Vec::new();
        }
        let mut preview = self.preview();
        // Marks at the very end may get longer, and then mean something else for what is before them.
        preview.map_open_paragraph(|text| text.trim_end_matches(['*', '_', '~', '`', '\\']).to_owned());
        let Some(text) = preview.open_paragraph() else { return Vec::new() };
        let inline = inline::render(text, Style::default(), ctx);
        let rendered: Vec<char> = inline.spans.iter().flat_map(|span| span.text.chars()).collect();
        let n_stable = inline.n_stable_chars.min(start_of_header(text, &rendered));
        let Some(piece) = last_piece(preview) else { return Vec::new() };
        let mut rows = render_piece(&piece, self.n_taken_chars, None, ctx);
        if rows.len() <= max_live {
            return Vec::new();
        }
        let n_blank_rows = usize::from(piece.has_blank_before && self.n_taken_chars == 0);
        let mut n_rows = 0;
        let mut taken = self.n_taken_chars;
        while n_rows + max_live < rows.len() {
            if n_rows < n_blank_rows {
                n_rows += 1;
                continue;
            }
            let after = end_of_row(&rendered, taken, &rows[n_rows], &piece);
            // The word after a row decides that the row ended there: it must be stable, too.
            let word_end = rendered[after..]
                .iter()
                .position(|c| c.is_whitespace())
                .map_or(rendered.len(), |at| after + at);
            if word_end > n_stable {
                break;
            }
            taken = after;
            n_rows += 1;
        }
        if n_rows <= n_blank_rows {
            return Vec::new();
        }
        self.n_taken_chars = taken;
        rows.truncate(n_rows);
        rows
    }

    /// Returns how many rows the open paragraph can take at most, told by its length alone; none where its text may be
    /// shown as something longer.
    fn most_open_rows(&self, width: usize) -> Option<usize> {
        let begun = self.parser.open_top_paragraph()?;
        let is_begun = !begun.is_empty() || self.line.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_simple = |text: &str| text.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\n');
        let has_picture = begun.contains("![") || self.line.contains('!');
        if !is_begun || has_picture || !is_simple(begun) || !is_simple(&self.line) {
            return None;
        }
        let n_bytes = (begun.len() + 1 + self.line.len()).saturating_sub(self.n_taken_chars);
        let n_lines = begun.bytes().filter(|byte| *byte == b'\n').count() + 2;
        // Of two rows of a line that follow each other, the words would not have had room in one.
        Some(1 + n_lines + 2 * n_bytes / width.max(1))
    }

    /// Returns the rows that may still change, with open marks shown as they will most likely end.
    pub fn live(&self, ctx: &RenderContext) -> Vec<Row> {
        let mut n_taken = self.n_taken_chars;
        let mut preview = self.preview();
        let mut pieces: Vec<Piece> = self.pieces.iter().map(|waiting| waiting.piece.clone()).collect();
        pieces.extend(preview.take_pieces());
        preview.map_open_paragraph(inline::complete);
        preview.finish();
        pieces.extend(preview.take_pieces());
        let mut rows = Vec::new();
        for piece in &pieces {
            let is_paragraph = matches!(piece.kind, PieceKind::Paragraph(_));
            let n_taken = if is_paragraph { std::mem::take(&mut n_taken) } else { 0 };
            rows.extend(render_piece(piece, n_taken, None, ctx));
        }
        rows
    }

    /// Takes pieces from the parser, and asks for the colours of code.
    fn enqueue_pieces(&mut self) {
        for piece in self.parser.take_pieces() {
            let (mut line, mut digest) = (None, None);
            if let PieceKind::CodeLine { block, language, text } = &piece.kind
                && !language.is_empty()
            {
                if self.code_block.number != *block {
                    let key = self.highlighter.as_ref().map_or(0, Highlighter::begin_block);
                    let digest = LineDigest::new(language);
                    self.code_block = CodeBlock { number: *block, key, n_lines: 0, digest };
                }
                let open = &mut self.code_block;
                open.digest = open.digest.then(text);
                digest = Some(open.digest);
                if let Some(highlighter) = &self.highlighter {
                    let key = (open.key, open.n_lines);
                    open.n_lines += 1;
                    highlighter.request(key, open.digest, language, text);
                    line = Some(key);
                }
            }
            self.pieces.push_back(FinalPiece { piece, line, digest, since: None });
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.parser.push_line(line.strip_suffix('\r').unwrap_or(&line));
    }

    /// Ends a line that is too long to be parsed with each delta, unless it is code.
    fn cut_long_line(&mut self) {
        while self.line.len() > LONGEST_PARAGRAPH && !self.parser.is_in_code() {
            let end = self.line.floor_char_boundary(LONGEST_PARAGRAPH);
            let cut = self.line[..end].rfind(' ').map_or(end, |blank| blank + 1);
            let rest = self.line.split_off(cut);
            self.end_line();
            self.line = rest;
        }
    }

    /// The state as if the open line ended here.
    fn preview(&self) -> BlockParser {
        let mut preview = self.parser.clone();
        if !is_bare_mark(&self.line) {
            preview.push_line(&self.line);
        }
        preview
    }
}

/// Whether a line is only the start of a mark: what it will be is not known yet.
fn is_bare_mark(line: &str) -> bool {
    let text = line.trim();
    let is_number = text.trim_end_matches(['.', ')']).bytes().all(|byte| byte.is_ascii_digit());
    text.is_empty()
        || is_number
        || text.chars().all(|c| matches!(c, '`' | '~' | '#' | '-' | '*' | '+' | '_' | '>' | '|' | ':' | ' '))
}

fn last_piece(mut preview: BlockParser) -> Option<Piece> {
    let has_other = !preview.take_pieces().is_empty();
    preview.finish();
    let mut pieces = preview.take_pieces();
    (pieces.len() == 1 && !has_other).then(|| pieces.pop()).flatten()
}

/// Where the last line starts, if it may become the header of a table: from there on nothing is stable.
fn start_of_header(text: &str, rendered: &[char]) -> usize {
    let last_line = text.rsplit('\n').next().unwrap_or_default();
    if !last_line.contains('|') {
        return usize::MAX;
    }
    rendered.iter().rposition(|c| *c == '\n').map_or(0, |at| at + 1)
}

/// Returns how many characters of a paragraph are behind once a row of it is written.
fn end_of_row(rendered: &[char], start: usize, row: &Row, piece: &Piece) -> usize {
    let prefix: usize = piece.prefix.iter().map(Mark::width).sum();
    let body: Vec<char> = row.text().chars().skip(prefix).collect();
    let mut at = start;
    let is_blank = |at: usize| rendered.get(at) == Some(&' ');
    while is_blank(at) && body.first() != Some(&' ') {
        at += 1;
    }
    at += body.len();
    while is_blank(at) {
        at += 1;
    }
    if rendered.get(at) == Some(&'\n') { at + 1 } else { at }
}

impl Mark {
    fn width(&self) -> usize {
        match self {
            Self::Quote => 2,
            Self::Bullet(text) => text.len(),
            Self::Indent(width) => *width,
        }
    }

    fn spans(&self, is_first: bool, ctx: &RenderContext) -> Span {
        match self {
            Self::Quote if ctx.is_screen_reader => Span::plain("> "),
            Self::Quote => Span::styled("│ ", ctx.theme.style(Role::Faint)),
            Self::Bullet(text) if is_first => Span::plain(text.clone()),
            Self::Bullet(_) | Self::Indent(_) => Span::plain(" ".repeat(self.width())),
        }
    }
}

/// Returns the rows of a piece, without the first characters if they were taken before.
fn render_piece(piece: &Piece, n_taken: usize, colors: Option<&CodeParts>, ctx: &RenderContext) -> Vec<Row> {
    let prefix = |is_first: bool| -> Vec<Span> {
        piece.prefix.iter().map(|mark| mark.spans(is_first && n_taken == 0, ctx)).collect()
    };
    let (first, rest) = (prefix(true), prefix(false));
    let prefix_width = piece.prefix.iter().map(Mark::width).sum::<usize>();
    let mut rows = Vec::new();
    if piece.has_blank_before && n_taken == 0 {
        rows.push(Row::default());
    }
    match &piece.kind {
        PieceKind::Paragraph(text) => {
            let base = if piece.prefix.contains(&Mark::Quote) {
                ctx.theme.style(Role::Quote)
            } else {
                Style::default()
            };
            let spans = skip_chars(without_end_lines(inline::spans(text, base, ctx)), n_taken);
            if n_taken == 0 || !spans.is_empty() {
                rows.extend(wrap(&spans, ctx.width, &first, &rest));
            }
        }
        PieceKind::Heading { text } => {
            let spans = inline::spans(text, ctx.theme.style(Role::Heading), ctx);
            rows.extend(wrap(&spans, ctx.width, &first, &rest));
        }
        PieceKind::CodeLine { text, .. } => rows.push(code_row(text, colors, first, prefix_width, ctx)),
        PieceKind::Table(table) => {
            let room = ctx.width.saturating_sub(prefix_width);
            let table_rows = table::render(table, room, ctx);
            rows.extend(table_rows.into_iter().enumerate().map(|(idx, row)| {
                let mut prefixed = Row::new(if idx == 0 { first.clone() } else { rest.clone() });
                row.spans.into_iter().for_each(|span| prefixed.push(span));
                prefixed.is_overlong = row.is_overlong;
                prefixed
            }));
        }
        PieceKind::Rule => {
            let mut row = Row::new(first);
            let width = ctx.width.saturating_sub(prefix_width).min(40);
            row.push(Span::styled("─".repeat(width), ctx.theme.style(Role::Faint)));
            rows.push(row);
        }
        PieceKind::HtmlLine(text) => {
            let mut row = Row::new(first);
            row.push(Span::plain(expand_tabs(&sanitize(text), 0, TAB_WIDTH)));
            row.is_overlong = row.width() > ctx.width;
            rows.push(row);
        }
        PieceKind::Empty => rows.push(Row::new(first)),
    }
    rows
}

/// Leaves out line ends behind which nothing is seen, such as one before a link without words.
fn without_end_lines(mut spans: Vec<Span>) -> Vec<Span> {
    while let Some(last) = spans.last_mut() {
        last.text.truncate(last.text.trim_end_matches('\n').len());
        if !last.text.is_empty() {
            break;
        }
        spans.pop();
    }
    spans
}

/// A row of code: indented by two columns, or by what it is in; left to the terminal to wrap.
fn code_row(
    text: &str,
    colors: Option<&CodeParts>,
    prefix: Vec<Span>,
    prefix_width: usize,
    ctx: &RenderContext,
) -> Row {
    let has_mark = prefix.iter().any(|span| !span.text.trim().is_empty());
    if text.trim().is_empty() && !has_mark {
        return Row::default();
    }
    let mut row = Row::new(prefix);
    if prefix_width == 0 && !ctx.is_screen_reader {
        row.push(Span::plain("  "));
    }
    let plain = vec![(text.to_owned(), Role::Text)];
    let mut column = 0;
    for (part, role) in colors.unwrap_or(&plain) {
        let part = expand_tabs(&sanitize(part), column, TAB_WIDTH).into_owned();
        column += crate::text::width(&part);
        row.push(Span::styled(part, ctx.theme.style(*role)));
    }
    row.is_overlong = row.width() > ctx.width;
    row
}

fn skip_chars(spans: Vec<Span>, n_chars: usize) -> Vec<Span> {
    let mut left = n_chars;
    let mut out = Vec::new();
    for mut span in spans {
        let count = span.text.chars().count();
        if left >= count {
            left -= count;
            continue;
        }
        if let Some((at, _)) = span.text.char_indices().nth(left) {
            span.text.drain(..at);
        }
        left = 0;
        out.push(span);
    }
    out
}
