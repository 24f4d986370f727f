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
/// How far into a page its encoding is looked for, as browsers do.
const HEAD_BYTES: usize = 1024;
/// How deep elements may lie in each other: the converter goes down with them.
const MAX_DEPTH: usize = 200;

/// Parts of a page that nobody sees.
const UNSEEN: [&str; 6] = ["script", "style", "noscript", "template", "svg", "head"];
/// Parts of a page that are not what it says, those that nobody sees among them.
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
    let text = decoded(page, kind.is_empty() || kind.contains("html"));
    let is_html = kind.contains("html") || (kind.is_empty() && looks_like_html(&text));
    let text = if is_html { markdown(&text) } else { text };
    let seen = if text.trim().is_empty() { "" } else { text.as_str() };
    PageContent::Text(truncate_chars(seen, MAX_CHARS).to_owned())
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

/// Decodes by what the answer says of itself, HTML by what stands in its head, or by what the bytes look like.
fn decoded(page: &Page, may_be_html: bool) -> String {
    let named = page.content_type.split(';').skip(1).find_map(charset_in);
    let in_head = || may_be_html.then(|| charset_of_head(&page.body)).flatten();
    match named.or_else(in_head) {
        Some(encoding) => encoding.decode(&page.body).0.into_owned(),
        None => Charset::detect(&page.body).decoded(&page.body),
    }
}

/// Reads `charset=…`.
fn charset_in(part: &str) -> Option<&'static Encoding> {
    let (name, value) = part.split_once('=')?;
    let is_charset = name.trim().eq_ignore_ascii_case("charset");
    is_charset.then(|| Encoding::for_label(value.trim().trim_matches('"').as_bytes())).flatten()
}

/// Finds the encoding that the first bytes of HTML name (`<meta charset="…">`, or the type in a `content`). What is in two
/// bytes a letter would not be readable here, so that it is none of these.
fn charset_of_head(body: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&body[..body.len().min(HEAD_BYTES)]).to_ascii_lowercase();
    let metas = head.split("<meta").skip(1).filter_map(|rest| rest.split('>').next());
    let named = metas.filter_map(|meta| {
        let value = meta.split_once("charset")?.1.trim_start().strip_prefix('=')?;
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        let label: String =
            value.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_:.".contains(*c)).collect();
        Encoding::for_label(label.as_bytes())
    });
    named.into_iter().find(|it| it.is_ascii_compatible())
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
    let convert = |skipped: &[&'static str]| {
        let converter = HtmlToMarkdown::builder().skip_tags(skipped.to_vec()).build();
        converter.convert(html).unwrap_or_else(|_| without_tags(html))
    };
    let text = convert(&SKIPPED);
    // Some pages are one form, or nothing but links.
    if text.trim().is_empty() { convert(&UNSEEN) } else { text }
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
        check(
            "text/html",
            b"<html><head><meta charset='windows-1251'></head><p>\xef\xf0\xe8\xe2\xe5\xf2",
            "привет",
        );
        check(
            "text/html",
            b"<meta http-equiv=content-type content='text/html; charset=shift_jis'><p>\x83e\x83X\x83g",
            "テスト",
        );
        check("text/html; charset=utf-8", "<meta charset=latin1><p>schön".as_bytes(), "schön");
        check("text/html", "<meta charset=utf-16><p>schön".as_bytes(), "schön");
        check("text/plain", "<meta charset=latin1> schön".as_bytes(), "<meta charset=latin1> schön");
    }

    #[test]
    fn page_without_text_is_empty_and_one_that_is_a_form_is_read() {
        for (content_type, body) in [
            ("text/plain", " \n"),
            ("text/html", ""),
            ("text/html", "<div id=root></div><script>x()</script>"),
        ] {
            check(content_type, body.as_bytes(), "");
        }
        check("text/html", b"<body><form id=aspnetForm><h1>Title</h1><p>Words</form>", "# Title\n\nWords");
        check("text/html", b"<nav><a href=/a>A</a></nav>", "[A](/a)");
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
