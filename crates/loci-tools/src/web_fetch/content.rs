//! What of a page a model can read: HTML as Markdown, other text as it is, PDF as a document.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::Encoding;
use htmd::HtmlToMarkdown;
use loci_core::web::Page;
use loci_stdx::truncate_chars;

use crate::PageContent;
use crate::files::text_file::{Charset, binary_kind};

/// The most characters of a page that are kept, and can be read part by part.
pub(super) const MAX_CHARS: usize = 1_000_000;
/// The largest document that is read; base64 makes it a third larger, and requests have a limit.
const MAX_PDF_BYTES: usize = 8 << 20;
/// How deep elements may lie in each other: the converter goes down with them.
const MAX_DEPTH: usize = 200;

/// Parts of a page that are not what it says.
const SKIPPED: [&str; 12] = [
    "script", "style", "noscript", "template", "nav", "aside", "footer", "form", "iframe", "svg", "head",
    "button",
];

/// Returns what of a page can be read.
pub(super) fn readable(page: &Page) -> PageContent {
    let kind = media_type(&page.content_type);
    if kind == "application/pdf" || page.body.starts_with(b"%PDF-") {
        return match page.body.len() <= MAX_PDF_BYTES {
            true => PageContent::Pdf(STANDARD.encode(&page.body)),
            false => PageContent::Nothing,
        };
    }
    if binary_kind(&page.body[..page.body.len().min(8192)]).is_some() {
        return PageContent::Nothing;
    }
    let text = decoded(page);
    let is_html = kind.contains("html") || (kind.is_empty() && looks_like_html(&text));
    let text = if is_html { markdown(&text) } else { text };
    PageContent::Text(truncate_chars(&text, MAX_CHARS).to_owned())
}

/// Returns the ending of a file with this content.
pub(super) fn file_ending(page: &Page) -> &'static str {
    match infer::get(&page.body) {
        Some(kind) => kind.extension(),
        None => "bin",
    }
}

fn media_type(header: &str) -> String {
    header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Decodes by what the answer says of itself, or by what the bytes look like.
fn decoded(page: &Page) -> String {
    let named = page.content_type.split(';').skip(1).find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| Encoding::for_label(value.trim().trim_matches('"').as_bytes())).flatten()
    });
    match named {
        Some(encoding) => encoding.decode(&page.body).0.into_owned(),
        None => Charset::detect(&page.body).decoded(&page.body),
    }
}

fn looks_like_html(text: &str) -> bool {
    let start = text.trim_start().get(..15).unwrap_or_default().to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Converts HTML; what cannot be converted is shown as it is.
fn markdown(html: &str) -> String {
    if depth(html) > MAX_DEPTH {
        return without_tags(html);
    }
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    converter.convert(html).unwrap_or_else(|_| without_tags(html))
}

/// Counts how deep elements could lie in each other: what is opened and not closed. A page that leaves many open on
/// purpose counts as deep, which costs it its form only.
fn depth(html: &str) -> usize {
    const VOID: [&str; 14] = [
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
        "track", "wbr",
    ];
    const UNCLOSED: [&str; 8] = ["p", "li", "td", "tr", "th", "dt", "dd", "option"];
    let (mut open, mut deepest) = (0usize, 0usize);
    for tag in html.split('<').skip(1) {
        let is_end = tag.starts_with('/');
        let name: String =
            tag.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
        let name = name.to_ascii_lowercase();
        if name.is_empty() || VOID.contains(&name.as_str()) || UNCLOSED.contains(&name.as_str()) {
            continue;
        }
        open = if is_end { open.saturating_sub(1) } else { open + 1 };
        deepest = deepest.max(open);
    }
    deepest
}

/// Leaves nothing but what stands between tags.
fn without_tags(html: &str) -> String {
    let pieces = html.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    let lines = pieces.map(str::trim).filter(|piece| !piece.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content_type: &str, body: &[u8]) -> PageContent {
        let page = Page { content_type: content_type.to_owned(), body: body.to_vec(), ..Page::default() };
        readable(&page)
    }

    fn check(content_type: &str, body: &[u8], expected: &str) {
        assert_eq!(read(content_type, body), PageContent::Text(expected.to_owned()), "{content_type}");
    }

    #[test]
    fn html_becomes_markdown_without_what_is_around_the_text() {
        let html = b"<!DOCTYPE html><html><head><title>T</title><script>x()</script></head><body><nav>Menu</nav>\
            <h1>Title</h1><p>One <a href=\"/b\">link</a> &amp; <code>x</code>.</p><ul><li>a</li><li>b</li></ul>\
            <style>p{}</style><footer>Imprint</footer></body></html>";
        let expected = "# Title\n\nOne [link](/b) & `x`.\n\n*   a\n*   b";
        check("text/html; charset=utf-8", html, expected);
        check("", html, expected);
        check("application/xhtml+xml", html, expected);
    }

    #[test]
    fn other_text_stays_as_it_is_and_charsets_are_read() {
        check("text/markdown", b"# <b>", "# <b>");
        check("application/json", b"{\"a\": 1}", "{\"a\": 1}");
        check("text/plain; charset=ISO-8859-1", b"sch\xf6n", "schön");
        check("text/plain; charset=\"utf-8\"", "schön".as_bytes(), "schön");
        check("text/plain", b"", "");
    }

    #[test]
    fn documents_are_read_whole_and_other_files_not_at_all() {
        assert_eq!(read("application/pdf", b"%PDF-1.7 x"), PageContent::Pdf("JVBERi0xLjcgeA==".to_owned()));
        assert_eq!(read("text/html", b"%PDF-1.7 x"), PageContent::Pdf("JVBERi0xLjcgeA==".to_owned()));
        assert_eq!(read("image/png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), PageContent::Nothing);
        assert_eq!(read("text/plain", b"a\0b\0c"), PageContent::Nothing);
    }

    #[test]
    fn long_and_deep_pages_are_bounded() {
        let PageContent::Text(text) = read("text/plain", "ü".repeat(MAX_CHARS + 1).as_bytes()) else {
            panic!()
        };
        assert_eq!(text.chars().count(), MAX_CHARS);
        let deep = format!("{}deep{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
        check("text/html", deep.as_bytes(), "deep");
        let open = format!("{}<b>open", "<section>".repeat(50_000));
        check("text/html", open.as_bytes(), "open");
    }
}
