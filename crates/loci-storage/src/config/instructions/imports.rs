//! `@path` in instruction files.
//!
//! An `@` counts at the start of a line or behind a space; the path runs to the next space, `\ ` being a space
//! inside it. Nothing counts in a fenced block or between backticks. Only names of text files are imported.

use std::path::Path;

use super::html_comments::{Fence, split_line};

/// Endings of files that are text; a name without one is text too.
const TEXT: &[&str] = &[
    "md",
    "mdx",
    "markdown",
    "txt",
    "text",
    "rst",
    "adoc",
    "org",
    "json",
    "jsonc",
    "json5",
    "jsonl",
    "yaml",
    "yml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "env",
    "properties",
    "xml",
    "html",
    "htm",
    "css",
    "scss",
    "less",
    "svg",
    "csv",
    "tsv",
    "sql",
    "graphql",
    "proto",
    "js",
    "jsx",
    "mjs",
    "cjs",
    "ts",
    "tsx",
    "vue",
    "svelte",
    "py",
    "pyi",
    "rb",
    "php",
    "pl",
    "lua",
    "r",
    "jl",
    "rs",
    "go",
    "java",
    "kt",
    "kts",
    "scala",
    "swift",
    "c",
    "h",
    "cc",
    "cpp",
    "hpp",
    "cs",
    "fs",
    "ml",
    "hs",
    "ex",
    "exs",
    "erl",
    "clj",
    "dart",
    "zig",
    "nim",
    "sh",
    "bash",
    "zsh",
    "fish",
    "ps1",
    "bat",
    "cmake",
    "mk",
    "gradle",
    "tf",
    "nix",
    "diff",
    "patch",
    "log",
    "lock",
    "tex",
    "bib",
    "vim",
    "el",
];

/// Tells whether a name is that of a text file.
pub(super) fn is_text_name(path: &Path) -> bool {
    match path.extension() {
        None => true,
        Some(extension) => {
            extension.to_str().is_some_and(|extension| TEXT.contains(&extension.to_lowercase().as_str()))
        }
    }
}

/// Returns the paths that a Markdown text imports, in the order they appear.
pub(super) fn imports_of(markdown: &str) -> Vec<String> {
    if !markdown.contains('@') {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut prose = String::new();
    let mut fence: Option<Fence> = None;
    let mut rest = markdown;
    while !rest.is_empty() {
        let (line, following) = split_line(rest);
        rest = following;
        match fence {
            Some(open) => fence = (!open.is_closed_by(line)).then_some(open),
            None => match Fence::opened_by(line) {
                Some(open) => {
                    // A span of code never reaches across a block.
                    in_prose(&std::mem::take(&mut prose), &mut found);
                    fence = Some(open);
                }
                None if line.trim().is_empty() => in_prose(&std::mem::take(&mut prose), &mut found),
                None => prose.push_str(line),
            },
        }
    }
    in_prose(&prose, &mut found);
    found
}

/// Finds imports in one paragraph, leaving out what stands between backticks.
fn in_prose(paragraph: &str, found: &mut Vec<String>) {
    let mut at = 0;
    let mut follows_space = true;
    while let Some(c) = paragraph[at..].chars().next() {
        if c == '`' {
            at = behind_code(paragraph, at);
            follows_space = false;
            continue;
        }
        if c == '@' && follows_space {
            let (path, end) = path_at(paragraph, at + 1);
            at = end;
            if is_path(&path) && !found.contains(&path) {
                found.push(path);
            }
            follows_space = false;
            continue;
        }
        follows_space = c.is_whitespace();
        at += c.len_utf8();
    }
}

/// Returns the end of the code that begins with backticks at `at`, or of those alone when none close it.
fn behind_code(text: &str, at: usize) -> usize {
    let run = |at: usize| text[at..].bytes().take_while(|byte| *byte == b'`').count();
    let opening = run(at);
    let mut next = at + opening;
    while let Some(found) = text[next..].find('`') {
        let start = next + found;
        let length = run(start);
        next = start + length;
        if length == opening {
            return next;
        }
    }
    at + opening
}

fn path_at(text: &str, start: usize) -> (String, usize) {
    let mut path = String::new();
    let mut at = start;
    while let Some(c) = text[at..].chars().next() {
        if text[at..].starts_with("\\ ") {
            path.push(' ');
            at += 2;
        } else if c.is_whitespace() || c == '`' {
            break;
        } else {
            path.push(c);
            at += c.len_utf8();
        }
    }
    (path, at)
}

/// Tells a path from a mention: it begins as a path does.
fn is_path(path: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    path.starts_with("~/") || (path.starts_with('/') && path.len() > 1) || path.starts_with(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(markdown: &str, expected: &[&str]) {
        assert_eq!(imports_of(markdown), expected, "{markdown:?}");
    }

    #[test]
    fn import_must_be_a_word_of_its_own() {
        check("@docs/a.md", &["docs/a.md"]);
        check("See @docs/a.md and\n- @./b.txt\n    @~/c\t@/d", &["docs/a.md", "./b.txt", "~/c", "/d"]);
        check("@with\\ space.md x", &["with space.md"]);
        check("foo@docs/x.md (@docs/x.md) \"@docs/x.md\"", &[]);
        check("@docs/x.md,", &["docs/x.md,"]);
        check("@a @a\n@a", &["a"]);
        check("@ @@x @#y @/ mail@example.com", &[]);
    }

    #[test]
    fn nothing_is_imported_in_code() {
        check("`@a` ``x ` @b`` @c", &["c"]);
        check("```\n@a\n```\n@b\n~~~ md\n@c\n", &["b"]);
        check("a ` lone\n\n@b ` @c", &["b", "c"]);
        check("`two\nlines @a` @b", &["b"]);
        check("@a`@b`", &["a"]);
    }

    #[test]
    fn only_text_is_imported() {
        for (name, expected) in [
            ("a.md", true),
            ("a", true),
            ("a.TXT", true),
            ("a.bin", false),
            ("a.png", false),
            ("a.md,", false),
        ] {
            assert_eq!(is_text_name(Path::new(name)), expected, "{name}");
        }
    }
}
