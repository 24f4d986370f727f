//! Markdown by lines: which blocks a document has, told as soon as each can no longer change.
//!
//! This is the block half of CommonMark with tables, written for streams: a line comes in, pieces that are final come
//! out, and the state between is the open containers and one open leaf. Text within a leaf is `inline`'s. Two things are
//! left out on purpose, because they would change what was already shown: underlined (setext) headings, whose `---` is a
//! rule here, and references to link definitions that come later.

use super::table::{Alignment, parse_delimiter_row, split_cells};

/// A piece of a document that is final, with what stands before its rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub(super) prefix: Vec<Mark>,
    /// Whether a blank row parts it from what is above.
    pub(super) has_blank_before: bool,
    pub(super) kind: PieceKind,
}

/// What stands before the rows of a piece, for one container.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Mark {
    /// A quote's bar, before each row.
    Quote,
    /// The marker of an item, before its first row; blanks before the others.
    Bullet(String),
    /// Blanks, as wide as the marker.
    Indent(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum PieceKind {
    Paragraph(String),
    Heading {
        text: String,
    },
    /// A line of code; `block` counts the blocks of the document.
    CodeLine {
        block: usize,
        language: String,
        text: String,
    },
    Table(Table),
    Rule,
    /// A line of HTML, shown as it is.
    HtmlLine(String),
    /// An item without text.
    Empty,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Table {
    pub(super) header: Vec<String>,
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<String>>,
}

#[derive(Debug, Clone)]
enum Container {
    Quote,
    Item { content_indent: usize, marker: Marker, is_marker_shown: bool },
}

#[derive(Debug, Clone, PartialEq)]
enum Marker {
    Bullet(char),
    Number { number: u64, delimiter: char },
}

impl Marker {
    fn text(&self) -> String {
        match self {
            Self::Bullet(_) => "- ".to_owned(),
            Self::Number { number, delimiter } => format!("{number}{delimiter} "),
        }
    }
}

#[derive(Debug, Clone)]
enum Leaf {
    None,
    Paragraph(String),
    Fence { mark: char, length: usize, indent: usize, language: String },
    IndentedCode { n_blank: usize },
    Table(Table),
    Html,
}

/// A paragraph longer than this is cut: what a delta costs must not grow with it.
pub(super) const LONGEST_PARAGRAPH: usize = 16 * 1024;

/// The state between two lines.
#[derive(Debug, Clone)]
pub(super) struct BlockParser {
    containers: Vec<Container>,
    leaf: Leaf,
    /// The item that closed last and how deep it was: the next one counts on.
    closed_item: Option<(usize, Marker)>,
    is_blank_pending: bool,
    has_pieces: bool,
    n_code_blocks: usize,
    pieces: Vec<Piece>,
}

impl BlockParser {
    pub(super) fn new() -> Self {
        Self {
            containers: Vec::new(),
            leaf: Leaf::None,
            closed_item: None,
            is_blank_pending: false,
            has_pieces: false,
            n_code_blocks: 0,
            pieces: Vec::new(),
        }
    }

    /// Returns the pieces that became final since the last time.
    pub(super) fn take_pieces(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.pieces)
    }

    /// Returns the text of the paragraph that is open.
    pub(super) fn open_paragraph(&self) -> Option<&str> {
        match &self.leaf {
            Leaf::Paragraph(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text of the paragraph that is open or may begin with the next line, unless it is within a list or a quote.
    pub(super) fn open_top_paragraph(&self) -> Option<&str> {
        match &self.leaf {
            Leaf::Paragraph(text) if self.containers.is_empty() => Some(text),
            Leaf::None if self.containers.is_empty() => Some(""),
            _ => None,
        }
    }

    /// Changes the text of the paragraph that is open.
    pub(super) fn map_open_paragraph(&mut self, change: impl FnOnce(&str) -> String) {
        if let Leaf::Paragraph(text) = &mut self.leaf {
            *text = change(text);
        }
    }

    /// Whether a code block is open.
    pub(super) fn is_in_code(&self) -> bool {
        matches!(self.leaf, Leaf::Fence { .. })
    }

    /// Takes the end of the document.
    pub(super) fn finish(&mut self) {
        self.close_containers(0);
    }

    /// Takes a line, without its end.
    pub(super) fn push_line(&mut self, line: &str) {
        let line = expand_leading_tabs(line);
        let (n_matched, rest) = self.match_containers(&line);
        let is_all_matched = n_matched == self.containers.len();
        if is_all_matched && self.push_into_leaf(rest) {
            return;
        }
        if rest.trim().is_empty() {
            return self.push_blank(n_matched);
        }
        self.push_blocks(n_matched, rest);
    }

    /// Follows the line through the open containers; returns how many it is in, and what is left of it.
    fn match_containers<'a>(&self, line: &'a str) -> (usize, &'a str) {
        let mut rest = line;
        for (idx, container) in self.containers.iter().enumerate() {
            let after = match container {
                Container::Quote => strip_quote(rest),
                Container::Item { .. } if rest.trim().is_empty() => Some(rest),
                Container::Item { content_indent, .. } => {
                    (indent_of(rest) >= *content_indent).then(|| &rest[*content_indent..])
                }
            };
            match after {
                Some(after) => rest = after,
                None => return (idx, rest),
            }
        }
        (self.containers.len(), rest)
    }

    /// Takes a line into an open leaf that takes all lines; says whether it did.
    fn push_into_leaf(&mut self, rest: &str) -> bool {
        match &mut self.leaf {
            Leaf::Fence { mark, length, indent, language } => {
                if is_closing_fence(rest, *mark, *length) {
                    self.leaf = Leaf::None;
                } else {
                    let text = rest[indent_of(rest).min(*indent)..].to_owned();
                    let (block, language) = (self.n_code_blocks, language.clone());
                    self.emit(PieceKind::CodeLine { block, language, text });
                }
                true
            }
            Leaf::IndentedCode { n_blank } => {
                if rest.trim().is_empty() {
                    *n_blank += 1;
                    return true;
                }
                if indent_of(rest) < 4 {
                    return false;
                }
                let blanks = std::mem::take(n_blank);
                let text = rest[4..].to_owned();
                for text in std::iter::repeat_n(String::new(), blanks).chain([text]) {
                    let (block, language) = (self.n_code_blocks, String::new());
                    self.emit(PieceKind::CodeLine { block, language, text });
                }
                true
            }
            Leaf::Html if !rest.trim().is_empty() => {
                self.emit(PieceKind::HtmlLine(rest.to_owned()));
                true
            }
            _ => false,
        }
    }

    fn push_blank(&mut self, n_matched: usize) {
        // A blank line ends quotes that do not go on; items stay open.
        let first_quote = self.containers.iter().skip(n_matched).position(|c| matches!(c, Container::Quote));
        match first_quote {
            Some(offset) => self.close_containers(n_matched + offset),
            None => self.close_leaf(),
        }
        self.is_blank_pending = true;
    }

    fn push_blocks(&mut self, n_matched: usize, rest: &str) {
        let mut n_open = n_matched;
        let mut rest = rest;
        loop {
            let is_continued = n_open == self.containers.len() && matches!(self.leaf, Leaf::Paragraph(_));
            let Some(start) = block_start(rest, is_continued) else { break };
            self.close_containers(n_open);
            match start {
                BlockStart::Quote(after) => {
                    self.containers.push(Container::Quote);
                    rest = after;
                }
                BlockStart::Item { marker, content_indent, after } => {
                    let marker = self.counted(marker);
                    let item = Container::Item { content_indent, marker, is_marker_shown: false };
                    self.containers.push(item);
                    rest = after;
                }
                BlockStart::Fence { mark, length, indent, language } => {
                    self.n_code_blocks += 1;
                    self.leaf = Leaf::Fence { mark, length, indent, language };
                    return;
                }
                BlockStart::Heading(text) => return self.emit_heading(text),
                BlockStart::Rule => return self.emit(PieceKind::Rule),
                BlockStart::Html => {
                    self.leaf = Leaf::Html;
                    return self.emit(PieceKind::HtmlLine(rest.to_owned()));
                }
                BlockStart::IndentedCode => {
                    self.n_code_blocks += 1;
                    self.leaf = Leaf::IndentedCode { n_blank: 0 };
                    self.push_into_leaf(rest);
                    return;
                }
            }
            n_open = self.containers.len();
            if rest.trim().is_empty() {
                return;
            }
        }
        self.push_text(n_open, rest);
    }

    fn push_text(&mut self, n_matched: usize, rest: &str) {
        let is_all_matched = n_matched == self.containers.len();
        if is_all_matched && self.push_into_table(rest) {
            return;
        }
        if let Leaf::Paragraph(text) = &mut self.leaf {
            // Also where the line is outside of its containers: it goes on lazily.
            text.push('\n');
            text.push_str(rest.trim_start());
            self.cut_long_paragraph();
            return;
        }
        self.close_containers(n_matched);
        self.close_leaf();
        self.leaf = Leaf::Paragraph(rest.trim_start().to_owned());
        self.cut_long_paragraph();
    }

    /// Takes a line as a row of an open table, or as the line below the header that makes one; says whether it did.
    fn push_into_table(&mut self, rest: &str) -> bool {
        match &mut self.leaf {
            Leaf::Table(table) if rest.contains('|') => {
                table.rows.push(split_cells(rest));
                true
            }
            Leaf::Paragraph(text) => {
                let (before, header) = text.rsplit_once('\n').map_or(("", text.as_str()), |split| split);
                let header = if header.contains('|') { split_cells(header) } else { Vec::new() };
                let Some(alignments) = parse_delimiter_row(rest) else { return false };
                if header.is_empty() || header.len() != alignments.len() {
                    return false;
                }
                if !before.is_empty() {
                    let before = before.to_owned();
                    self.emit(PieceKind::Paragraph(before));
                }
                self.leaf = Leaf::Table(Table { header, alignments, rows: Vec::new() });
                true
            }
            _ => false,
        }
    }

    fn cut_long_paragraph(&mut self) {
        let Leaf::Paragraph(text) = &mut self.leaf else { return };
        while text.len() > LONGEST_PARAGRAPH {
            let end = text.floor_char_boundary(LONGEST_PARAGRAPH);
            let cut = text[..end].rfind([' ', '\n']).map_or(end, |blank| blank + 1);
            let rest = text.split_off(cut);
            let head = std::mem::replace(text, rest);
            self.pieces.push(piece_of(
                &mut self.containers,
                &mut self.is_blank_pending,
                &mut self.has_pieces,
                PieceKind::Paragraph(head.trim_end().to_owned()),
            ));
        }
    }

    /// A number that does not go on from the last item's is counted on.
    fn counted(&mut self, marker: Marker) -> Marker {
        let last = self.closed_item.take();
        match (marker, last) {
            (Marker::Number { number, delimiter }, Some((depth, Marker::Number { number: last, .. })))
                if depth == self.containers.len() && number <= last && last - number < 2 =>
            {
                Marker::Number { number: last + 1, delimiter }
            }
            (marker, _) => marker,
        }
    }

    fn emit_heading(&mut self, text: String) {
        self.is_blank_pending |= self.has_pieces;
        self.emit(PieceKind::Heading { text });
    }

    fn emit(&mut self, kind: PieceKind) {
        let piece = piece_of(&mut self.containers, &mut self.is_blank_pending, &mut self.has_pieces, kind);
        self.pieces.push(piece);
    }

    fn close_containers(&mut self, n_left: usize) {
        if n_left >= self.containers.len() {
            // What starts here is no text of an open leaf.
            return self.close_leaf();
        }
        self.close_leaf();
        while self.containers.len() > n_left {
            if let Some(Container::Item { is_marker_shown: false, .. }) = self.containers.last() {
                self.emit(PieceKind::Empty);
            }
            if let Some(Container::Item { marker, .. }) = self.containers.pop() {
                self.closed_item = Some((self.containers.len(), marker));
            }
        }
    }

    fn close_leaf(&mut self) {
        match std::mem::replace(&mut self.leaf, Leaf::None) {
            Leaf::None | Leaf::Fence { .. } | Leaf::Html => {}
            Leaf::IndentedCode { n_blank } => self.is_blank_pending |= n_blank > 0,
            Leaf::Paragraph(text) => self.emit(PieceKind::Paragraph(text)),
            Leaf::Table(table) => self.emit(PieceKind::Table(table)),
        }
    }
}

fn piece_of(
    containers: &mut [Container],
    is_blank_pending: &mut bool,
    has_pieces: &mut bool,
    kind: PieceKind,
) -> Piece {
    let prefix = containers.iter_mut().map(|container| match container {
        Container::Quote => Mark::Quote,
        Container::Item { marker, is_marker_shown, .. } => {
            let text = marker.text();
            if std::mem::replace(is_marker_shown, true) {
                Mark::Indent(text.len())
            } else {
                Mark::Bullet(text)
            }
        }
    });
    let prefix = prefix.collect();
    let has_blank_before = std::mem::take(is_blank_pending) && *has_pieces;
    *has_pieces = true;
    Piece { prefix, has_blank_before, kind }
}

enum BlockStart<'a> {
    Quote(&'a str),
    Item { marker: Marker, content_indent: usize, after: &'a str },
    Fence { mark: char, length: usize, indent: usize, language: String },
    Heading(String),
    Rule,
    Html,
    IndentedCode,
}

/// Returns the block that starts with a line, if it is more than text; fewer may do so within a paragraph.
fn block_start(line: &str, is_in_paragraph: bool) -> Option<BlockStart<'_>> {
    let indent = indent_of(line);
    if indent >= 4 {
        return (!is_in_paragraph).then_some(BlockStart::IndentedCode);
    }
    let text = &line[indent..];
    if let Some(after) = strip_quote(text) {
        return Some(BlockStart::Quote(after));
    }
    if let Some((mark, length, info)) = parse_fence(text) {
        let language = info.split([' ', ',', '{']).next().unwrap_or_default().to_owned();
        return Some(BlockStart::Fence { mark, length, indent, language });
    }
    if let Some(heading) = parse_heading(text) {
        return Some(BlockStart::Heading(heading));
    }
    if is_rule(text) {
        return Some(BlockStart::Rule);
    }
    if !is_in_paragraph && is_html_start(text) {
        return Some(BlockStart::Html);
    }
    let (marker, marker_width) = parse_marker(text)?;
    let after = &text[marker_width..];
    let blanks = indent_of(after);
    let is_empty = after.trim().is_empty();
    if is_in_paragraph && (is_empty || matches!(marker, Marker::Number { number, .. } if number != 1)) {
        return None;
    }
    let padding = if is_empty || blanks > 4 { 1 } else { blanks };
    let content_indent = indent + marker_width + padding;
    Some(BlockStart::Item { marker, content_indent, after: after.get(padding..).unwrap_or_default() })
}

fn strip_quote(line: &str) -> Option<&str> {
    let indent = indent_of(line);
    let after = line[indent.min(line.len())..].strip_prefix('>').filter(|_| indent < 4)?;
    Some(after.strip_prefix(' ').unwrap_or(after))
}

fn parse_fence(text: &str) -> Option<(char, usize, &str)> {
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = text.len() - text.trim_start_matches(mark).len();
    let info = text[length..].trim();
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some((mark, length, info))
}

fn is_closing_fence(line: &str, mark: char, length: usize) -> bool {
    let text = line.trim_start();
    let n_marks = text.len() - text.trim_start_matches(mark).len();
    indent_of(line) < 4 && n_marks >= length && text[n_marks..].trim().is_empty()
}

fn parse_heading(text: &str) -> Option<String> {
    let level = text.len() - text.trim_start_matches('#').len();
    let after = &text[level..];
    if !(1..=6).contains(&level) || !(after.is_empty() || after.starts_with(' ')) {
        return None;
    }
    let heading = after.trim();
    let without_marks = heading.trim_end_matches('#');
    let is_closed = without_marks.is_empty() || without_marks.ends_with(' ');
    Some(if is_closed { without_marks.trim_end() } else { heading }.to_owned())
}

fn is_rule(text: &str) -> bool {
    let mut marks = text.chars().filter(|c| *c != ' ');
    let Some(first) = marks.next().filter(|c| matches!(c, '-' | '*' | '_')) else { return false };
    let rest: Vec<char> = marks.collect();
    rest.len() >= 2 && rest.iter().all(|c| *c == first)
}

fn parse_marker(text: &str) -> Option<(Marker, usize)> {
    let first = text.chars().next()?;
    let (marker, width) = if matches!(first, '-' | '+' | '*') {
        (Marker::Bullet(first), 1)
    } else {
        let n_digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let delimiter = text[n_digits..].chars().next().filter(|c| matches!(c, '.' | ')'))?;
        if !(1..=9).contains(&n_digits) {
            return None;
        }
        (Marker::Number { number: text[..n_digits].parse().ok()?, delimiter }, n_digits + 1)
    };
    let after = &text[width..];
    (after.is_empty() || after.starts_with(' ')).then_some((marker, width))
}

/// Whether a line starts HTML that is a block: a comment, a declaration, or a tag that holds or parts blocks.
pub(super) fn is_html_start(text: &str) -> bool {
    const TAGS: &[&str] = &[
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "details",
        "dialog",
        "div",
        "dl",
        "dd",
        "dt",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "head",
        "header",
        "hr",
        "html",
        "iframe",
        "li",
        "link",
        "main",
        "menu",
        "meta",
        "nav",
        "ol",
        "p",
        "pre",
        "script",
        "section",
        "source",
        "style",
        "summary",
        "svg",
        "table",
        "tbody",
        "td",
        "textarea",
        "tfoot",
        "th",
        "thead",
        "title",
        "tr",
        "ul",
    ];
    let Some(after) = text.strip_prefix('<') else { return false };
    if after.starts_with(['!', '?']) {
        return true;
    }
    let after = after.strip_prefix('/').unwrap_or(after);
    let name_end = after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len());
    let name = after[..name_end].to_ascii_lowercase();
    TAGS.contains(&name.as_str()) && matches!(after.as_bytes().get(name_end), None | Some(b' ' | b'>' | b'/'))
}

/// Returns how many blanks a line starts with.
fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn expand_leading_tabs(line: &str) -> std::borrow::Cow<'_, str> {
    let end = line.find(|c| c != ' ' && c != '\t').unwrap_or(line.len());
    if line[..end].contains('\t') {
        let blanks = crate::text::expand_tabs(&line[..end], 0, 4).into_owned();
        std::borrow::Cow::Owned(blanks + &line[end..])
    } else {
        std::borrow::Cow::Borrowed(line)
    }
}
