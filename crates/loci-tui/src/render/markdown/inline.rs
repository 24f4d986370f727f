//! Text within a block: emphasis, code, links and pictures as spans.

use std::sync::Arc;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::blocks::is_html_start;
use crate::render::RenderContext;
use crate::text::{Span, Style, sanitize};
use crate::theme::Role;

/// Text that is no start of any block: with it before a text, the parser of inlines sees one paragraph.
const SENTINEL: &str = ". ";

/// Returns the spans of a text; line ends in it are kept.
pub(super) fn spans(text: &str, base: Style, ctx: &RenderContext) -> Vec<Span> {
    render(text, base, ctx).spans
}

/// Text as spans, and how much of it will stay as it is whatever follows.
pub(super) struct Inline {
    pub(super) spans: Vec<Span>,
    /// How many characters of the spans no later text can change.
    pub(super) n_stable_chars: usize,
}

/// Returns the spans of a text that may go on.
pub(super) fn render(text: &str, base: Style, ctx: &RenderContext) -> Inline {
    let source = escape_blocks(text);
    let mut out = Rendering {
        ctx,
        style: base,
        styles: Vec::new(),
        link: None,
        spans: Vec::new(),
        n_chars: 0,
        pending: None,
    };
    for (event, range) in Parser::new_ext(&source, Options::ENABLE_STRIKETHROUGH).into_offset_iter() {
        out.event(event, range.start, &source);
    }
    drop_sentinel(&mut out.spans);
    let n_chars = out.n_chars.saturating_sub(SENTINEL.len());
    let n_stable_chars = out.pending.map_or(n_chars, |at| at.saturating_sub(SENTINEL.len()));
    Inline { spans: out.spans, n_stable_chars }
}

struct Rendering<'a> {
    ctx: &'a RenderContext,
    style: Style,
    /// What the style was before each mark that is open.
    styles: Vec<Style>,
    /// Where an open link leads, as it was written, and what of its text came so far.
    link: Option<OpenLink>,
    spans: Vec<Span>,
    n_chars: usize,
    /// Where the first sign stands that later text could make a mark of.
    pending: Option<usize>,
}

struct OpenLink {
    address: String,
    target: Option<Arc<str>>,
    text: String,
}

impl Rendering<'_> {
    fn event(&mut self, event: Event<'_>, at: usize, source: &str) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            Event::Text(text) => self.text(&text, at, source),
            Event::Code(code) => self.push(&code, self.ctx.theme.style(Role::InlineCode)),
            Event::Html(html) | Event::InlineHtml(html) => self.push(html.trim_end_matches('\n'), self.style),
            Event::SoftBreak | Event::HardBreak => self.push("\n", self.style),
            Event::Rule => self.push("---", self.style),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.push(&text, self.style);
            }
            Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        self.styles.push(self.style);
        match tag {
            Tag::Emphasis => self.style.is_italic = true,
            Tag::Strong => self.style.is_bold = true,
            Tag::Strikethrough => self.style.is_struck = true,
            Tag::Link { dest_url, .. } => {
                let link = self.ctx.theme.style(Role::Link);
                self.style = Style { fg: link.fg, is_underlined: link.is_underlined, ..self.style };
                let target = link_target(&dest_url);
                self.link = Some(OpenLink { address: dest_url.to_string(), target, text: String::new() });
            }
            Tag::Image { .. } => self.push("[image: ", self.style),
            _ => {}
        }
    }

    fn end(&mut self, end: TagEnd) {
        match end {
            TagEnd::Link => self.end_link(),
            TagEnd::Image => self.push("]", self.style),
            _ => {}
        }
        if let Some(style) = self.styles.pop() {
            self.style = style;
        }
    }

    /// Ends a link; its address is written out where the terminal cannot carry it.
    fn end_link(&mut self) {
        let Some(link) = self.link.take() else { return };
        let is_told = link.text == link.address || link.address.strip_prefix("mailto:") == Some(&link.text);
        let is_carried = self.ctx.has_hyperlinks && link.target.is_some();
        if !is_told && !is_carried && !link.address.is_empty() {
            let style = self.styles.last().copied().unwrap_or(self.style);
            self.push(&format!(" ({})", link.address), style);
        }
    }

    fn text(&mut self, text: &str, at: usize, source: &str) {
        if self.pending.is_none() && self.link.is_none() && text.bytes().any(|byte| is_mark(char::from(byte)))
        {
            let offset = text.char_indices().position(|(idx, _)| may_become_mark(source, at + idx));
            self.pending = offset.map(|offset| self.n_chars + offset);
        }
        if self.link.is_some() {
            return self.push(text, self.style);
        }
        let mut rest = text;
        while let Some((start, end)) = find_address(rest) {
            self.push(&rest[..start], self.style);
            let address = &rest[start..end];
            let link = self.ctx.theme.style(Role::Link);
            let style = Style { fg: link.fg, is_underlined: link.is_underlined, ..self.style };
            self.push_linked(address, style, link_target(address));
            rest = &rest[end..];
        }
        self.push(rest, self.style);
    }

    fn push(&mut self, text: &str, style: Style) {
        if let Some(link) = &mut self.link {
            link.text.push_str(text);
        }
        let link = self.link.as_ref().and_then(|link| link.target.clone());
        self.push_linked(text, style, link);
    }

    fn push_linked(&mut self, text: &str, style: Style, link: Option<Arc<str>>) {
        let mut text = sanitize(text);
        if text.contains('\t') {
            text = text.replace('\t', "    ").into();
        }
        self.n_chars += text.chars().count();
        match self.spans.last_mut() {
            Some(last) if last.style == style && last.link == link => last.text.push_str(&text),
            _ if text.is_empty() => {}
            _ => self.spans.push(Span { text: text.into_owned(), style, link }),
        }
    }
}

/// Returns where a link leads, if a terminal may be told: a known scheme, and nothing that could end the sequence.
pub(crate) fn link_target(address: &str) -> Option<Arc<str>> {
    const SCHEMES: &[&str] = &["http://", "https://", "mailto:", "file://"];
    let is_known = SCHEMES.iter().any(|scheme| address.starts_with(scheme));
    let is_clean = address.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    (is_known && is_clean).then(|| address.into())
}

/// Returns where an address that was written without marks starts and ends.
fn find_address(text: &str) -> Option<(usize, usize)> {
    let start = ["http://", "https://"].iter().filter_map(|scheme| text.find(scheme)).min()?;
    let rest = &text[start..];
    let end =
        rest.find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`')).unwrap_or(rest.len());
    let mut address = rest[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_']);
    if address.ends_with(')') && address.matches(')').count() > address.matches('(').count() {
        address = &address[..address.len() - 1];
    }
    Some((start, start + address.len()))
}

/// Puts the sentinel before a text, and a backslash before lines that the parser of inlines would make blocks of: an
/// underline, which makes a heading of what is above, and HTML.
fn escape_blocks(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    out.push_str(SENTINEL);
    for (idx, line) in text.split('\n').enumerate() {
        if idx > 0 {
            out.push('\n');
        }
        if idx > 0 && (line.starts_with('=') || is_html_start(line)) {
            out.push('\\');
        }
        out.push_str(line);
    }
    out
}

fn drop_sentinel(spans: &mut Vec<Span>) {
    if let Some(first) = spans.first_mut() {
        // A text that is empty leaves the sentinel without its blank.
        let sentinel = if first.text.starts_with(SENTINEL) { SENTINEL.len() } else { 1 };
        first.text.drain(..sentinel.min(first.text.len()));
        if first.text.is_empty() {
            spans.remove(0);
        }
    }
}

/// Whether a sign is, or begins, a mark in some place.
fn is_mark(c: char) -> bool {
    matches!(c, '*' | '_' | '~' | '`' | '[' | '<' | '!' | '\\' | '&')
}

/// Whether the sign at an offset, which is text so far, could become a mark by what follows.
fn may_become_mark(source: &str, at: usize) -> bool {
    let Some(c) = source.get(at..).and_then(|rest| rest.chars().next()) else { return false };
    if !is_mark(c) {
        return false;
    }
    let before = source[..at].chars().next_back();
    let after = source[at + c.len_utf8()..].chars().next();
    let Some(after) = after else { return true };
    let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
    match c {
        '*' | '~' => !after.is_whitespace(),
        '_' => !after.is_whitespace() && !before.is_some_and(char::is_alphanumeric),
        '<' => after.is_ascii_alphabetic() || matches!(after, '/' | '!' | '?'),
        '!' => after == '[',
        '&' => !is_blank(Some(after)),
        _ => true,
    }
}

/// Returns a text whose open marks are closed, as they will most likely be.
pub(super) fn complete(text: &str) -> String {
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut bracket: Option<usize> = None;
    let bytes = text.as_bytes();
    let mut idx = 0;
    while idx < text.len() {
        let c = bytes[idx] as char;
        let run = bytes[idx..].iter().take_while(|byte| **byte == bytes[idx]).count();
        let is_last = idx + run == text.len();
        match c {
            '\\' => idx += 1,
            '`' => match find_code_end(text, idx + run, run) {
                Some(end) => {
                    idx = end;
                    continue;
                }
                None if is_last => return close(&text[..idx], &open),
                None => return close(&format!("{}{}", text.trim_end(), "`".repeat(run)), &open),
            },
            '*' | '_' | '~' if is_last => {
                let kept = if c == '~' && run == 1 { text } else { &text[..idx] };
                return close(kept, &open);
            }
            '*' | '_' | '~' if c != '~' || run >= 2 => {
                update_open(&mut open, c, run.min(3), text, idx, run);
                idx += run;
                continue;
            }
            '[' => bracket = Some(idx),
            ']' => match (bracket.take(), bytes.get(idx + 1)) {
                (Some(_), Some(b'(')) if !text[idx..].contains(')') => {
                    return close(&format!("{text})"), &open);
                }
                _ => {}
            },
            _ => {}
        }
        idx += 1;
        while !text.is_char_boundary(idx.min(text.len())) {
            idx += 1;
        }
    }
    match bracket {
        Some(at) if at + 1 < text.len() || open.is_empty() => {
            close(&format!("{}{}", &text[..at], &text[at + 1..]), &open)
        }
        _ => close(text, &open),
    }
}

fn find_code_end(text: &str, from: usize, length: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut idx = from;
    while idx < bytes.len() {
        let run = bytes[idx..].iter().take_while(|byte| **byte == b'`').count();
        if run == length {
            return Some(idx + run);
        }
        idx += run.max(1);
    }
    None
}

fn update_open(open: &mut Vec<(char, usize)>, c: char, length: usize, text: &str, at: usize, run: usize) {
    let before = text[..at].chars().next_back();
    let after = text[at + run..].chars().next();
    let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_within_word = c == '_' && is_word(before) && is_word(after);
    if is_within_word {
        return;
    }
    if !is_blank(before) && open.iter().any(|(mark, _)| *mark == c) {
        let mut left = length;
        while left > 0
            && let Some(position) = open.iter().rposition(|(mark, _)| *mark == c)
        {
            let taken = open[position].1.min(left);
            left -= taken;
            open[position].1 -= taken;
            if open[position].1 == 0 {
                open.truncate(position);
            }
        }
    } else if !is_blank(after) {
        open.push((c, length));
    }
}

fn close(text: &str, open: &[(char, usize)]) -> String {
    let mut out = text.trim_end_matches(' ').to_owned();
    let mut has_text = false;
    for (mark, length) in open.iter().rev() {
        let marks = mark.to_string().repeat(*length);
        // Marks with nothing between them are not shown at all.
        if !has_text && out.ends_with(&marks) {
            out.truncate(out.len() - marks.len());
        } else {
            has_text = true;
            out.push_str(&marks);
        }
    }
    out
}
