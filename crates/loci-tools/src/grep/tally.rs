//! Adding up what the files gave, cutting the page that was asked for, and putting it into words.

use std::ops::ControlFlow;

use loci_core::tool::ToolOutcome;
use loci_stdx::counted;
use serde_json::{Map, Value, json};

use super::request::{Mode, Request};
use super::search::FileHits;
use crate::spill::with_notes;

/// Why a result may lack something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Partial {
    /// The time limit, in seconds, was reached.
    Time(u64),
    /// The text was too much to hold.
    Size,
    /// There were too many files to look at.
    Files,
}

impl Partial {
    fn note(self) -> String {
        let why = match self {
            Self::Time(seconds) => format!("the search stopped at its limit of {seconds} s"),
            Self::Size => "the matches are more than a search can hold".to_owned(),
            Self::Files => "the directory holds more files than a search looks at".to_owned(),
        };
        format!(
            "(Partial result: {why}, so there may be more. Narrow `path`, `glob` or `pattern` to see all.)"
        )
    }
}

/// All that was found so far, in order.
pub(super) struct Tally<'a> {
    request: &'a Request,
    /// Lines of content, files, or files with their counts.
    entries: Vec<String>,
    n_matches: u64,
    n_unreadable: usize,
    first_problem: Option<String>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(request: &'a Request) -> Self {
        Self { request, entries: Vec::new(), n_matches: 0, n_unreadable: 0, first_problem: None }
    }

    /// Adds a file and says whether more are needed. A count needs them all, for its total.
    pub(super) fn add(&mut self, hits: FileHits) -> ControlFlow<()> {
        if let Some(problem) = hits.problem {
            self.n_unreadable += 1;
            self.first_problem.get_or_insert(format!("{}: {problem}", hits.path));
        }
        if hits.n_matches == 0 {
            return ControlFlow::Continue(());
        }
        self.n_matches += hits.n_matches;
        match self.request.mode {
            Mode::FilesWithMatches => self.entries.push(hits.path),
            Mode::Count => self.entries.push(format!("{}:{}", hits.path, hits.n_matches)),
            Mode::Content => {
                let has_groups = self.request.before > 0 || self.request.after > 0;
                if has_groups && !self.entries.is_empty() && !hits.lines.is_empty() {
                    self.entries.push("--".to_owned());
                }
                self.entries.extend(hits.lines);
            }
        }
        let is_enough = self.request.mode != Mode::Count && self.entries.len() >= self.request.enough();
        if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns what went wrong with the first file that could not be searched.
    pub(super) fn first_problem(&self) -> Option<&str> {
        self.first_problem.as_deref()
    }

    /// Puts the page that was asked for into words.
    pub(super) fn into_outcome(self, partial: Option<Partial>) -> ToolOutcome {
        let offset = self.request.offset.min(self.entries.len());
        let rest = &self.entries[offset..];
        let page = &rest[..rest.len().min(self.request.limit.unwrap_or(usize::MAX))];
        let has_more = page.len() < rest.len();
        let body = if page.is_empty() {
            self.nothing()
        } else if self.request.mode == Mode::FilesWithMatches {
            format!("Found {}\n{}", files(page.len()), page.join("\n"))
        } else {
            page.join("\n")
        };
        let mut notes = Vec::new();
        if self.request.mode == Mode::Count && self.n_matches > 0 {
            notes.push(self.total());
        }
        if has_more {
            notes.push(self.page_note(offset, page.len()));
        }
        notes.extend(partial.map(Partial::note));
        notes.extend(self.unreadable_note());
        ToolOutcome::text(with_notes(body, notes), self.structured(page, has_more, partial))
    }

    fn nothing(&self) -> String {
        let n_entries = self.entries.len();
        match self.request.mode {
            Mode::Content if n_entries > 0 => {
                let lines = counted(n_entries as u64, "line", "lines");
                format!("No entries at this offset: the result has {lines} in all.")
            }
            Mode::FilesWithMatches | Mode::Count if n_entries > 0 => {
                format!("No entries at this offset: the result has {} in all.", files(n_entries))
            }
            Mode::Content | Mode::Count => "No matches found".to_owned(),
            Mode::FilesWithMatches => "No files found".to_owned(),
        }
    }

    fn total(&self) -> String {
        let what =
            if self.request.only_matching || self.request.multiline { "match" } else { "matching line" };
        let plural = match (self.n_matches, what) {
            (1, _) => "",
            (_, "match") => "es",
            _ => "s",
        };
        format!("Found {} {what}{plural} in {}", self.n_matches, files(self.entries.len()))
    }

    fn page_note(&self, offset: usize, length: usize) -> String {
        let what = match self.request.mode {
            Mode::Content => "Lines",
            Mode::FilesWithMatches | Mode::Count => "Files",
        };
        let end = offset + length;
        format!(
            "({what} {}-{end} shown, more follow. Continue with offset {end}, or see all with head_limit 0.)",
            offset + 1
        )
    }

    fn unreadable_note(&self) -> Option<String> {
        let first = self.first_problem()?;
        Some(format!("({} could not be searched, such as {first})", files(self.n_unreadable)))
    }

    fn structured(&self, page: &[String], has_more: bool, partial: Option<Partial>) -> Value {
        let mut fields = Map::new();
        fields.insert("mode".to_owned(), json!(self.request.mode.name()));
        let shape = match self.request.mode {
            Mode::FilesWithMatches => json!({"filenames": page, "numFiles": page.len()}),
            Mode::Content => json!({
                "numFiles": 0,
                "filenames": [],
                "content": page.join("\n"),
                "numLines": page.len(),
            }),
            Mode::Count => json!({
                "numFiles": self.entries.len(),
                "filenames": [],
                "content": page.join("\n"),
                "numMatches": self.n_matches,
            }),
        };
        if let Value::Object(shape) = shape {
            fields.extend(shape);
        }
        if let (true, Some(limit)) = (has_more, self.request.limit) {
            fields.insert("appliedLimit".to_owned(), json!(limit));
        }
        if self.request.offset > 0 {
            fields.insert("appliedOffset".to_owned(), json!(self.request.offset));
        }
        if partial.is_some() {
            fields.insert("partial".to_owned(), json!(true));
        }
        Value::Object(fields)
    }
}

fn files(n_files: usize) -> String {
    counted(n_files as u64, "file", "files")
}
