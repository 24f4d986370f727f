//! What was found, for people and for programs.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use loci_core::search::{Query, Snippet, snippet};
use loci_stdx::single_line;
use loci_storage::layout::Dialect;
use loci_storage::search::{Hit, SearchQuery, SearchResults};
use loci_storage::sessions::{SessionMetadata, archived_sessions, session_summary};
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use crate::sessions::{SessionsContext, format, summary};

/// How many bytes of a message are shown.
const SNIPPET: usize = 300;

/// Renders hits.
pub(super) struct HitRenderer<'a> {
    ctx: &'a SessionsContext<'a>,
    query: Query,
    expression: Option<Regex>,
    is_coloured: bool,
    facts: RefCell<HashMap<PathBuf, Option<SessionMetadata>>>,
    /// What archived sessions are about, by id, once somebody asks.
    archived: OnceCell<HashMap<String, String>>,
}

impl<'a> HitRenderer<'a> {
    pub(super) fn new(ctx: &'a SessionsContext<'a>, search: &SearchQuery) -> Self {
        let expression =
            search.is_regex.then(|| RegexBuilder::new(&search.text).multi_line(true).build().ok());
        let is_coloured = crate::print::is_stdout_terminal() && ctx.env.vars.non_empty("NO_COLOR").is_none();
        Self {
            ctx,
            query: Query::parse(&search.text),
            expression: expression.flatten(),
            is_coloured,
            facts: RefCell::default(),
            archived: OnceCell::new(),
        }
    }

    /// Returns a hit as JSON; `highlights` are places in `snippet`, in characters.
    pub(super) fn json(&self, hit: &Hit) -> Value {
        let facts = self.facts(hit);
        let text = &hit.passage.text;
        let found = self.snippet(text);
        let chars = |at: usize| text[found.range.start..at].chars().count();
        let marks: Vec<[usize; 2]> = found.marks.iter().map(|it| [chars(it.start), chars(it.end)]).collect();
        json!({
            "sessionId": hit.session.id().as_str(),
            "file": hit.session.file(),
            "title": self.title(hit, facts.as_ref()),
            "cwd": facts.as_ref().and_then(|facts| facts.cwd.clone()),
            "uuid": hit.message,
            "agent": hit.agent,
            "origin": summary::origin(hit.session.dialect()),
            "isArchived": hit.is_archived,
            "timestamp": hit.time,
            "role": hit.passage.voice.name(),
            "tool": hit.passage.tool,
            "score": hit.score,
            "snippet": text[found.range.clone()],
            "highlights": marks,
            "resume": self.command(hit, facts.as_ref()),
        })
    }

    /// Returns all hits as text.
    pub(super) fn text(&self, found: &SearchResults) -> String {
        let mut text = String::new();
        for hit in &found.hits {
            let facts = self.facts(hit);
            text.push_str(&format!("{}\n", self.heading(hit, facts.as_ref())));
            text.push_str(&format!("{}\n", format::indented(&self.marked(hit), "  | ")));
            text.push_str(&format!("  {}\n\n", self.command(hit, facts.as_ref())));
        }
        let at_least = if found.is_exact { "" } else { "at most " };
        let n_shown = found.hits.len();
        text.push_str(&format!("{n_shown} of {at_least}{} passages\n", found.n_found));
        text
    }

    fn heading(&self, hit: &Hit, facts: Option<&SessionMetadata>) -> String {
        let headline = self.title(hit, facts).unwrap_or("(no prompt)");
        let headline = single_line(headline, 60);
        let tool = hit.passage.tool.as_deref().map(|tool| format!(" {}", single_line(tool, 40)));
        let agent = hit.agent.as_deref().map(|agent| format!(", {}", single_line(agent, 40)));
        let cwd = facts.and_then(|facts| facts.cwd.as_deref());
        let cwd = cwd.map(|cwd| format!("  in {}", single_line(&format::path(&self.ctx.env.home, cwd), 200)));
        let archived = match (hit.is_archived, hit.session.dialect()) {
            (true, _) => "  (archived)",
            (false, Dialect::Codex) => "  (codex)",
            (false, Dialect::Own) => "",
        };
        let time = format::written(hit.time.as_deref());
        let headline = if self.is_coloured { format!("\x1b[1m{headline}\x1b[0m") } else { headline };
        [
            format!("{headline}  {time}  {}", hit.passage.voice.name()),
            tool.unwrap_or_default(),
            agent.unwrap_or_default(),
            cwd.unwrap_or_default(),
            archived.to_owned(),
        ]
        .concat()
    }

    /// Returns the part of a message that was found, with what was searched for highlighted.
    fn marked(&self, hit: &Hit) -> String {
        let text = &hit.passage.text;
        let found = self.snippet(text);
        let mut out = String::new();
        let mut at = found.range.start;
        for mark in found.marks.iter().filter(|_| self.is_coloured) {
            out.push_str(&format::plain(&text[at..mark.start]));
            out.push_str(&format!("\x1b[1;33m{}\x1b[0m", format::plain(&text[mark.clone()])));
            at = mark.end;
        }
        out.push_str(&format::plain(&text[at..found.range.end]));
        let (before, after) = (found.range.start > 0, found.range.end < text.len());
        format!("{}{}{}", if before { "… " } else { "" }, out.trim(), if after { " …" } else { "" })
    }

    fn snippet(&self, text: &str) -> Snippet {
        let Some(expression) = &self.expression else { return snippet(&self.query, text, SNIPPET) };
        let first = expression.find(text).map_or(0..0, |found| found.range());
        let start = text.floor_char_boundary(first.start.saturating_sub(SNIPPET / 3));
        let end = text
            .ceil_char_boundary((start + SNIPPET).max(first.end.min(first.start + SNIPPET)).min(text.len()));
        let marks = expression.find_iter(text).map(|found| found.range());
        let marks = marks.filter(|mark| start <= mark.start && mark.end <= end && !mark.is_empty()).collect();
        Snippet { range: start..end, marks }
    }

    /// Returns the command that resumes the session at the message.
    fn command(&self, hit: &Hit, facts: Option<&SessionMetadata>) -> String {
        let cwd = facts.and_then(|facts| facts.cwd.as_deref());
        // Where a directory is gone, a session goes on in the one that somebody is in.
        let away = cwd.map(Path::new).filter(|cwd| self.ctx.env.cwd != **cwd && cwd.is_dir());
        let away = away.map(Path::to_string_lossy);
        let away = away.map(|cwd| format!("cd {} && ", quoted(&cwd))).unwrap_or_default();
        if hit.session.dialect() == Dialect::Codex {
            return format!(
                "loci sessions import {} && {away}loci -r {}",
                hit.session.id(),
                hit.session.id()
            );
        }
        // What a subagent said is no place to go on from; its session is.
        let at = hit.message.as_deref().filter(|_| hit.agent.is_none());
        let at = at.map(|uuid| format!(" --resume-session-at {}", quoted(uuid))).unwrap_or_default();
        let id = hit.session.id();
        let restore = if hit.is_archived { format!("loci sessions restore {id} && ") } else { String::new() };
        format!("{restore}{away}loci -r {id}{at}")
    }

    /// Returns what a session is about; of one that was put away, what it was about then.
    fn title<'b>(&'b self, hit: &Hit, facts: Option<&'b SessionMetadata>) -> Option<&'b str> {
        let archived = || {
            let all = archived_sessions(&self.ctx.home).unwrap_or_default().into_iter();
            all.filter_map(|it| Some((it.place.id().to_string(), it.headline?))).collect()
        };
        let then =
            || hit.is_archived.then(|| self.archived.get_or_init(archived).get(hit.session.id().as_str()));
        facts.and_then(SessionMetadata::headline).or_else(|| then().flatten().map(String::as_str))
    }

    fn facts(&self, hit: &Hit) -> Option<SessionMetadata> {
        let mut known = self.facts.borrow_mut();
        let facts = known.entry(hit.session.file().to_owned());
        facts.or_insert_with(|| session_summary(&hit.session).ok().flatten().map(|it| it.facts)).clone()
    }
}

/// Writes a word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain =
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
