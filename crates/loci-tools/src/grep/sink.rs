//! What one file's search collects, as ripgrep's searcher reports it.
//!
//! Binary data is treated as ripgrep treats it. In a file met on the way the search ends where such data begins:
//! lists and counts leave the file out, content keeps what came before and says so. A file that was named is
//! searched to the end, but its lines are not shown once it is known to be binary.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use grep_matcher::{Match, Matcher};
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use super::line::{self, MAX_COLUMNS, Role};
use super::request::{Mode, Request};
use crate::files::walk::{Ending, Limit};

/// The most text that is collected in one search.
pub(super) const MAX_BYTES: usize = 20 << 20;
/// How far behind a match that spans lines its pattern may look.
const LOOK_AHEAD: usize = 128;

/// Collects the matches of one file.
pub(super) struct FileSink<'a> {
    pub(super) request: &'a Request,
    pub(super) limit: &'a Limit,
    /// The path in front of each line.
    pub(super) path: &'a str,
    /// How much text all files together have given so far.
    pub(super) total_bytes: &'a AtomicUsize,
    /// Why the search of this file was broken off, if it was; the reader may set it too.
    pub(super) stopped: &'a Cell<Option<Ending>>,
    pub(super) lines: Vec<String>,
    pub(super) n_matches: u64,
    /// Where binary data begins.
    pub(super) binary: Option<u64>,
}

impl FileSink<'_> {
    fn check_limit(&self) -> io::Result<()> {
        match self.limit.reached() {
            Some(ending) => self.stop(ending),
            None => Ok(()),
        }
    }

    fn stop(&self, ending: Ending) -> io::Result<()> {
        self.stopped.set(Some(ending));
        Err(io::Error::other("the search was stopped"))
    }

    fn push(&mut self, line: String) -> io::Result<()> {
        let total = self.total_bytes.fetch_add(line.len() + 1, Ordering::Relaxed);
        if total > MAX_BYTES {
            return self.stop(Ending::Full);
        }
        self.lines.push(line);
        Ok(())
    }

    fn wants_more(&self) -> bool {
        self.lines.len() < self.request.enough()
    }

    fn push_lines(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<()> {
        for (number, text) in (0..).zip(found.lines()) {
            // Only a line that will be cut needs to know where its match is.
            let focus =
                if number == 0 && text.len() > MAX_COLUMNS { self.focus(searcher, found)? } else { 0 };
            self.push(self.render(
                found.line_number().map(|first| first + number),
                Role::Match,
                text,
                focus,
            ))?;
        }
        Ok(())
    }

    fn push_matches(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<()> {
        let (buffer, range) = (found.buffer(), found.bytes_range_in_buffer());
        for part in self.parts(searcher, found)? {
            let skipped = memchr::memchr_iter(b'\n', &buffer[range.start..part.start]).count() as u64;
            let first = found.line_number().map(|number| number + skipped);
            for (number, text) in (0..).zip(buffer[part].split_inclusive(|byte| *byte == b'\n')) {
                self.push(self.render(first.map(|first| first + number), Role::Match, text, 0))?;
            }
        }
        Ok(())
    }

    fn render(&self, number: Option<u64>, role: Role, text: &[u8], focus: usize) -> String {
        line::render(self.path, number.filter(|_| self.request.line_numbers), role, text, focus)
    }

    fn focus(&self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<usize> {
        let start = found.bytes_range_in_buffer().start;
        Ok(self.parts(searcher, found)?.first().map_or(0, |part| part.start - start))
    }

    /// Returns where in the buffer the single matches of a reported range lie, without empty ones.
    fn parts(&self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<Vec<Range<usize>>> {
        let range = found.bytes_range_in_buffer();
        let buffer = found.buffer();
        let matcher = &self.request.matcher;
        let end = if searcher.multi_line_with_matcher(matcher) {
            buffer.len().min(range.end + LOOK_AHEAD)
        } else {
            range.start + line::without_line_end(found.bytes()).len()
        };
        let mut parts = Vec::new();
        let mut take = |part: Match| {
            let is_inside = part.start() < range.end;
            if is_inside && !part.is_empty() {
                parts.push(part.start()..part.end());
            }
            is_inside
        };
        matcher.find_iter_at(&buffer[..end], range.start, &mut take).map_err(io::Error::other)?;
        Ok(parts)
    }

    fn counts_single_matches(&self) -> bool {
        self.request.only_matching || self.request.multiline
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.check_limit()?;
        match self.request.mode {
            Mode::FilesWithMatches => {
                self.n_matches = 1;
                Ok(false)
            }
            Mode::Count if self.counts_single_matches() => {
                self.n_matches += self.parts(searcher, found)?.len() as u64;
                Ok(true)
            }
            Mode::Count => {
                self.n_matches += 1;
                Ok(true)
            }
            Mode::Content => {
                self.n_matches += 1;
                if self.binary.is_some() {
                    return Ok(false);
                }
                if self.request.only_matching {
                    self.push_matches(searcher, found)?;
                } else {
                    self.push_lines(searcher, found)?;
                }
                Ok(self.wants_more())
            }
        }
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.binary.is_some() {
            return Ok(true);
        }
        self.push(self.render(context.line_number(), Role::Context, context.bytes(), 0))?;
        Ok(self.wants_more())
    }

    fn context_break(&mut self, _searcher: &Searcher) -> io::Result<bool> {
        self.push("--".to_owned())?;
        Ok(self.wants_more())
    }

    fn binary_data(&mut self, _searcher: &Searcher, offset: u64) -> io::Result<bool> {
        self.binary.get_or_insert(offset);
        Ok(true)
    }
}
