//! A session as one HTML page that loads nothing and runs nothing.
//!
//! Every text is escaped; pictures are kept only where their type and bytes are what they say; a content security
//! policy forbids the rest, should something slip through.

use loci_app::sessions::transcript::{Call, PartKind};

use super::super::format;
use super::Document;

const STYLE: &str = include_str!("page.css");

/// Pictures that browsers show without running anything.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Returns the whole page.
pub(super) fn render(document: &Document<'_>) -> String {
    let mut body = String::new();
    for part in &document.parts {
        let time = escaped(&format::written(part.time.as_deref()));
        body.push_str(&match &part.kind {
            PartKind::Prompt(words) => {
                let id = escaped(part.uuid.as_deref().unwrap_or_default());
                format!(
                    "<section class=\"prompt\" id=\"{id}\"><h2>You <time>{time}</time></h2>{}</section>\n",
                    text(words)
                )
            }
            PartKind::Answer(words) => format!("<section class=\"answer\">{}</section>\n", text(words)),
            PartKind::Thinking(words) => folded("thinking", "Thinking", &text(words)),
            PartKind::Call(call) => rendered_call(call),
            PartKind::Image { media_type, data } => picture(media_type, data),
            PartKind::Compaction(words) => {
                format!("<p class=\"compaction\">{} <time>{time}</time></p>\n", escaped(words))
            }
            PartKind::Summary(words) => folded("summary", "Summary of what came before", &text(words)),
            PartKind::CommandOutput(words) => format!("<section class=\"note\">{}</section>\n", text(words)),
            PartKind::Command(words) | PartKind::Note(words) => {
                format!("<p class=\"note\">{}</p>\n", escaped(words))
            }
            PartKind::Failure(words) => format!("<p class=\"failure\">{}</p>\n", escaped(words)),
        });
    }
    page(document, &body)
}

fn page(document: &Document<'_>, body: &str) -> String {
    let facts = &document.session.facts;
    let title = escaped(&loci_stdx::single_line(document.title(), 200));
    let rows = [
        ("Session", Some(document.session.place.id().to_string())),
        ("Directory", facts.cwd.clone()),
        ("Branch", facts.git_branch.clone()),
        ("Begun", facts.created.map(format::minute)),
        ("Last activity", Some(format::minute_of_ms(facts.newest_ms()))),
    ];
    let row = |(name, value): (&str, Option<String>)| {
        value.map(|value| format!("<dt>{name}</dt><dd>{}</dd>", escaped(&value)))
    };
    let facts: String = rows.into_iter().filter_map(row).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header><h1>{title}</h1><dl>{facts}</dl></header>\n\
         <main>\n{body}</main>\n</body>\n</html>\n"
    )
}

fn rendered_call(call: &Call) -> String {
    let input = serde_json::to_string_pretty(&call.input).unwrap_or_else(|_| call.input.to_string());
    let about = escaped(&loci_stdx::single_line(&gist(call), 100));
    let (class, result) = match &call.result {
        Some(result) if result.is_error => {
            ("call failed", format!("<pre class=\"error\">{}</pre>", escaped(&result.text)))
        }
        Some(result) => ("call", format!("<pre>{}</pre>", escaped(&result.text))),
        None => ("call failed", "<p class=\"note\">No result was recorded.</p>".to_owned()),
    };
    let title = format!("<b>{}</b> <code>{about}</code>", escaped(&call.name));
    format!(
        "<details class=\"{class}\"><summary>{title}</summary><pre>{}</pre>{result}</details>\n",
        escaped(&input)
    )
}

/// Returns what a call is about: its first text argument.
fn gist(call: &Call) -> String {
    let texts = call
        .input
        .as_object()
        .into_iter()
        .flat_map(|input| input.values())
        .filter_map(|value| value.as_str());
    texts.into_iter().next().unwrap_or_default().to_owned()
}

fn folded(class: &str, title: &str, inner: &str) -> String {
    format!("<details class=\"{class}\"><summary>{title}</summary>{inner}</details>\n")
}

fn picture(media_type: &str, data: &str) -> String {
    let is_base64 = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    if PICTURES.contains(&media_type) && is_base64 && !data.is_empty() {
        return format!("<img alt=\"\" src=\"data:{media_type};base64,{data}\">\n");
    }
    format!("<p class=\"note\">[{}]</p>\n", escaped(media_type))
}

/// Text keeps its line breaks and spaces; nothing in it is markup.
fn text(words: &str) -> String {
    format!("<div class=\"text\">{}</div>", escaped(words.trim_end()))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(char),
            _ if char.is_control() => {}
            _ => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_text_is_escaped() {
        let nasty = "<script>alert('x')</script>&\"\u{1b}";
        assert_eq!(escaped(nasty), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;");
    }

    #[test]
    fn only_valid_images_are_embedded() {
        assert!(picture("image/png", "iVBORw0KGgo=").starts_with("<img"));
        for (media_type, data) in
            [("image/svg+xml", "AAAA"), ("image/png", "\"><script>"), ("image/png", ""), ("<b>", "AA")]
        {
            assert!(
                !picture(media_type, data).contains("<img") && !picture(media_type, data).contains("<b>"),
                "{media_type}"
            );
        }
    }
}
