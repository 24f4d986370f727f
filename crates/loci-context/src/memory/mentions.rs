//! What a memory names in backticks: files, programs and symbols, which may be gone by now.

/// Something a memory names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mention {
    /// A file or directory, as written.
    Path(String),
    /// A program that a command line begins with.
    Program(String),
    /// A name in code.
    Symbol(String),
}

/// Returns what a text names in backticks. Only what is certainly one of these counts: a doubt is no mention.
pub fn mentions(body: &str) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let mut is_fenced = false;
    for line in body.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            found.extend(line.split('`').skip(1).step_by(2).filter_map(mention));
        }
    }
    found.sort();
    found.dedup();
    found
}

fn mention(span: &str) -> Option<Mention> {
    let span = span.trim();
    let is_odd = |c: char| !(c.is_alphanumeric() || "/._-~:()+@".contains(c));
    if let Some((first, _)) = span.split_once(' ') {
        let is_program = first.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
            && first.starts_with(|c: char| c.is_ascii_lowercase())
            && !first.ends_with('.');
        return is_program.then(|| Mention::Program(first.to_owned()));
    }
    if span.is_empty() || span.contains(is_odd) || span.contains("://") {
        return None;
    }
    if let Some(name) = span.strip_suffix("()") {
        return symbol(name);
    }
    if span.contains("::") {
        return symbol(span.rsplit("::").next()?);
    }
    let path = span.split(':').next()?;
    let name = path.rsplit('/').next()?;
    let has_extension = name.rsplit_once('.').is_some_and(|(stem, end)| {
        !stem.is_empty()
            && (1..=5).contains(&end.len())
            && end.starts_with(|c: char| c.is_ascii_alphabetic())
            && end.chars().all(|c| c.is_ascii_alphanumeric())
    });
    let is_number = path.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_path = (path.contains('/') && !path.starts_with("//")) || (has_extension && !is_number);
    is_path.then(|| Mention::Path(path.to_owned()))
}

fn symbol(name: &str) -> Option<Mention> {
    let name = name.trim_end_matches("()").rsplit(['.', ':']).next()?;
    let is_name = name.len() > 2 && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then(|| Mention::Symbol(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_certain_mentions_are_found() {
        let path = |text: &str| Some(Mention::Path(text.to_owned()));
        let program = |text: &str| Some(Mention::Program(text.to_owned()));
        let symbol = |text: &str| Some(Mention::Symbol(text.to_owned()));
        for (span, expected) in [
            ("src/main.rs", path("src/main.rs")),
            ("src/main.rs:42", path("src/main.rs")),
            ("Cargo.toml", path("Cargo.toml")),
            ("~/notes.md", path("~/notes.md")),
            ("docs/", path("docs/")),
            ("cargo xtask tidy", program("cargo")),
            ("Some words here", None),
            ("parse_line()", symbol("parse_line")),
            ("Session::run", symbol("run")),
            ("core::Session", symbol("Session")),
            ("https://x.org/a", None),
            ("v1.2", None),
            ("1.2.3", None),
            ("word", None),
            ("a/*.rs", None),
            ("{\"a\": 1}", None),
            ("", None),
        ] {
            assert_eq!(mention(span), expected, "{span}");
        }
        let body = "Uses `a.rs` and `b.rs`.\n```\n`c.rs`\n```\nAgain `a.rs`.";
        assert_eq!(mentions(body), [Mention::Path("a.rs".to_owned()), Mention::Path("b.rs".to_owned())]);
    }
}
