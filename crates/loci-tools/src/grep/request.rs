//! What a Grep call asks for: the input parsed once, with its pattern, globs and file type compiled.

use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::Types;
use loci_core::path::normalise;
use loci_core::tool::PathEffect;
use serde::Deserialize;
use serde_json::{Value, json};

use super::file_type;
use crate::Workspace;

/// How many entries are shown unless the call says otherwise.
const DEFAULT_LIMIT: usize = 250;
/// The most lines of context; a file's lines before a match are held in memory.
const MAX_CONTEXT: usize = 10_000;
/// The most memory a compiled pattern, and its cache in each thread, may take.
const PATTERN_MEMORY: usize = 10 << 20;

/// The shape of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// The paths of files that match.
    FilesWithMatches,
    /// The lines that match.
    Content,
    /// How many lines match in each file.
    Count,
}

impl Mode {
    /// Returns the name the input and the structured result use.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::FilesWithMatches => "files_with_matches",
            Self::Content => "content",
            Self::Count => "count",
        }
    }
}

/// A call that makes sense.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) root: PathEffect,
    pub(super) matcher: RegexMatcher,
    pub(super) mode: Mode,
    pub(super) before: usize,
    pub(super) after: usize,
    pub(super) line_numbers: bool,
    pub(super) only_matching: bool,
    pub(super) multiline: bool,
    /// How many entries to show; `None` is all.
    pub(super) limit: Option<usize>,
    pub(super) offset: usize,
    pub(super) overrides: Override,
    pub(super) types: Types,
}

#[derive(Deserialize)]
struct Input {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(rename = "type")]
    file_type: Option<String>,
    output_mode: Option<Mode>,
    #[serde(rename = "-A")]
    after: Option<usize>,
    #[serde(rename = "-B")]
    before: Option<usize>,
    #[serde(rename = "-C")]
    around: Option<usize>,
    context: Option<usize>,
    #[serde(rename = "-n")]
    line_numbers: Option<bool>,
    #[serde(rename = "-i", default)]
    ignore_case: bool,
    #[serde(rename = "-o", default)]
    only_matching: bool,
    #[serde(default)]
    multiline: bool,
    head_limit: Option<usize>,
    #[serde(default)]
    offset: usize,
}

/// Returns the schema of the input.
pub(super) fn schema() -> Value {
    let lines = |what: &str| json!({"type": "integer", "minimum": 0, "description": format!("{what}; content mode only")});
    json!({
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "The regular expression to look for, in Rust regex syntax"},
            "path": {
                "type": "string",
                "description": "The file or directory to search; the working directory when left out",
            },
            "glob": {
                "type": "string",
                "description": "Only files that match, such as `*.js` or `src/**/*.{ts,tsx}`; several are \
                                separated by spaces or commas, and `!` in front leaves files out",
            },
            "output_mode": {
                "type": "string",
                "enum": ["content", "files_with_matches", "count"],
                "description": "What to return: matching lines, paths of matching files (the default), or \
                                the number of matching lines of each file",
            },
            "-B": lines("Lines to show before each match"),
            "-A": lines("Lines to show after each match"),
            "-C": lines("Lines to show before and after each match"),
            "context": lines("The same as -C"),
            "-n": {"type": "boolean", "description": "Show line numbers, on by default; content mode only"},
            "-i": {"type": "boolean", "description": "Ignore case"},
            "-o": {
                "type": "boolean",
                "description": "Show only the matching part of each line, without context; content mode only",
            },
            "type": {
                "type": "string",
                "description": "Only files of this type, by ripgrep's names: rust, py, js, ts, go, java, cpp, md, ...",
            },
            "head_limit": {
                "type": "integer",
                "minimum": 0,
                "description": "How many lines (content) or files (other modes) to return: 250 by default, 0 for all",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "How many lines or files to leave out before the first returned, to page on",
            },
            "multiline": {
                "type": "boolean",
                "description": "Let a match span lines and `.` match line ends; off by default",
            },
        },
        "required": ["pattern"],
        "additionalProperties": false,
    })
}

/// Returns the path a call would search.
pub(super) fn root(input: &Value, place: &Workspace) -> PathEffect {
    place.resolve(input.get("path").and_then(Value::as_str).unwrap_or_default())
}

impl Request {
    /// Reads an input, or says what is wrong with it.
    pub(super) fn parse(input: &Value, place: &Workspace) -> Result<Self, String> {
        Self::parse_at(input, place, root(input, place))
    }

    /// Reads an input whose root was resolved already.
    pub(super) fn parse_at(input: &Value, place: &Workspace, root: PathEffect) -> Result<Self, String> {
        let input = Input::deserialize(input).map_err(|error| error.to_string())?;
        if input.path.is_some_and(|path| path.contains('\0')) {
            return Err("`path` contains a NUL byte, which no path can".to_owned());
        }
        let around = input.context.or(input.around).unwrap_or(0);
        let has_context = input.output_mode == Some(Mode::Content) && !input.only_matching;
        let context =
            |own: Option<usize>| if has_context { own.unwrap_or(around).min(MAX_CONTEXT) } else { 0 };
        Ok(Self {
            matcher: matcher(&input.pattern, input.ignore_case, input.multiline)?,
            overrides: overrides(input.glob.as_deref().unwrap_or_default(), &root, &place.cwd)?,
            types: file_type::types(input.file_type.as_deref().unwrap_or_default())?,
            root,
            mode: input.output_mode.unwrap_or(Mode::FilesWithMatches),
            before: context(input.before),
            after: context(input.after),
            line_numbers: input.line_numbers.unwrap_or(true),
            only_matching: input.only_matching,
            multiline: input.multiline,
            limit: Some(input.head_limit.unwrap_or(DEFAULT_LIMIT)).filter(|limit| *limit > 0),
            offset: input.offset,
        })
    }

    /// Returns how many entries are enough to fill the page and to know whether there are more.
    pub(super) fn enough(&self) -> usize {
        self.limit.map_or(usize::MAX, |limit| self.offset.saturating_add(limit).saturating_add(1))
    }
}

fn matcher(pattern: &str, ignore_case: bool, multiline: bool) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .case_insensitive(ignore_case)
        .dot_matches_new_line(multiline)
        .size_limit(PATTERN_MEMORY)
        .dfa_size_limit(PATTERN_MEMORY);
    // `$` should also match in front of a Windows line end, except for who looks for carriage returns.
    if !pattern.contains("\\r") {
        builder.crlf(true);
    }
    if multiline {
        builder.line_terminator(None);
    } else {
        builder.line_terminator(Some(b'\n')).ban_byte(Some(0));
    }
    builder.build(pattern).map_err(|error| {
        let hint = if !multiline && pattern.contains("\\n") {
            "Set `multiline` to search across lines."
        } else {
            "Patterns use Rust regex syntax: no look-around or back-references; escape braces and other special \
             characters that are meant literally."
        };
        format!("`pattern` is not a valid regular expression: {error}\n{hint}")
    })
}

/// Compiles globs, which apply to paths below the root. One that is written from the working directory, or from
/// the root of the disk, means the same files as if it were written from the root of the search.
fn overrides(globs: &str, root: &PathEffect, cwd: &Path) -> Result<Override, String> {
    let mut builder = OverrideBuilder::new(&root.real);
    for glob in split_globs(globs) {
        let (bang, glob) = glob.strip_prefix('!').map_or(("", glob), |rest| ("!", rest));
        let relative = below(glob, root, cwd).map(|rest| format!("{bang}/{rest}"));
        for spelling in [Some(format!("{bang}{glob}")), relative].into_iter().flatten() {
            builder.add(&spelling).map_err(|error| format!("`glob` is not valid: {error}"))?;
        }
    }
    builder.build().map_err(|error| format!("`glob` is not valid: {error}"))
}

/// Returns the rest of a glob that starts with the path of the search root.
fn below(glob: &str, root: &PathEffect, cwd: &Path) -> Option<String> {
    let whole = normalise(cwd, Path::new(glob));
    let rest = whole.strip_prefix(&root.requested).or_else(|_| whole.strip_prefix(&root.real)).ok()?;
    let is_anchored = glob.contains('/') && (root.requested != cwd || glob.starts_with(['/', '.']));
    rest.to_str().filter(|rest| is_anchored && !rest.is_empty()).map(str::to_owned)
}

/// Splits on spaces and commas that are not inside braces.
fn split_globs(text: &str) -> Vec<&str> {
    let mut depth = 0usize;
    text.split(|letter: char| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (letter == ',' || letter.is_whitespace())
    })
    .filter(|glob| !glob.is_empty())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_split_outside_braces() {
        for (text, expected) in [
            ("*.rs", vec!["*.rs"]),
            ("*.rs *.toml", vec!["*.rs", "*.toml"]),
            ("*.rs, !target/** ", vec!["*.rs", "!target/**"]),
            ("*.{ts,tsx},*.js", vec!["*.{ts,tsx}", "*.js"]),
            ("{a,{b, c}}.md d", vec!["{a,{b, c}}.md", "d"]),
            ("a}b,c", vec!["a}b", "c"]),
            (" , ", vec![]),
        ] {
            assert_eq!(split_globs(text), expected, "{text}");
        }
    }

    #[test]
    fn globs_apply_below_the_root_however_they_are_written() {
        let cwd = Path::new("/code");
        for (root, glob, file, expected) in [
            ("/code", "*.rs", "/code/a/b.rs", true),
            ("/code", "src/*.rs", "/code/src/b.rs", true),
            ("/code", "src/*.rs", "/code/a/src/b.rs", false),
            ("/code", "./*.rs", "/code/b.rs", true),
            ("/code", "./*.rs", "/code/a/b.rs", false),
            ("/code", "/code/src/*.rs", "/code/src/b.rs", true),
            ("/code/src", "src/*.rs", "/code/src/b.rs", true),
            ("/code/src", "src/*.rs", "/code/src/a/b.rs", false),
            ("/code/src", "a/*.rs", "/code/src/a/b.rs", true),
            ("/code/src", "!src/a/*.rs", "/code/src/a/b.rs", false),
            ("/code/src", "!src/a/*.rs", "/code/src/b.rs", true),
            ("/else", "a/*.rs", "/else/a/b.rs", true),
            ("/code", "*.rs !b.*", "/code/b.rs", false),
        ] {
            let overrides = overrides(glob, &PathEffect::plain(root), cwd).unwrap();
            assert_eq!(!overrides.matched(file, false).is_ignore(), expected, "{root} {glob} {file}");
        }
    }
}
