//! Recall: earlier messages of this conversation, found and quoted word for word.
//!
//! Where the tool knows the record of the project, it looks up memories and earlier sessions, too. The model has not seen
//! those, so they are read only as far as the rules about reading permit.

use std::path::PathBuf;

use loci_core::passage::Voice;
use loci_core::recall::{RecallHit, RecallPlace, RecallQuery, RecallResult, RecallSearch, RecallSource};
use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

#[cfg(test)]
mod tests;

/// The tool's name.
const NAME: &str = "Recall";
/// How many matches are shown unless more or fewer are wanted, and the most.
const LIMIT: usize = 8;
const MOST: usize = 20;
/// The most bytes of a match, and of all matches together.
const EXCERPT: usize = 900;
const ALL_EXCERPTS: usize = 9_000;
/// The most characters of one message at a time.
const PAGE: usize = 10_000;

/// What `where` says when the whole project is meant.
const PROJECT: &str = "project";

/// Where the record of a project lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordDirs {
    /// Its sessions.
    pub sessions: PathBuf,
    /// Its memories, where they are on.
    pub memory: Option<PathBuf>,
}

/// The Recall tool.
pub(crate) struct Recall {
    descriptor: ToolDescriptor,
    record: Option<RecordDirs>,
}

impl Recall {
    /// Makes the tool; without a record it looks up this conversation alone.
    pub(crate) fn new(record: Option<RecordDirs>) -> Self {
        let roles: Vec<&str> = Voice::ALL.iter().map(|voice| voice.name()).collect();
        let mut descriptor = ToolDescriptor {
            name: NAME.to_owned(),
            aliases: &[],
            description: include_str!("recall.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "A few words to search earlier messages for"},
                    "message": {"type": "string", "description": "The id of one message, to read it whole"},
                    "role": {"type": "string", "enum": roles, "description": "Only what this role said"},
                    "skip": {"type": "integer", "minimum": 0, "description": "How many of the best matches to pass over"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "description": "How many matches to show"},
                    "offset": {"type": "integer", "minimum": 0, "description": "With `message`: the character to go on from"},
                },
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts { needs_conversation: true, ..ToolFacts::default() },
        };
        if record.is_some() {
            descriptor.description += &format!("\n\n{}", include_str!("recall_project.md").trim_end());
            let properties = &mut descriptor.input_schema["properties"];
            properties["where"] = json!({"type": "string", "enum": ["conversation", PROJECT], "description": "What to search: this conversation, or memories and earlier sessions of the project"});
            properties["session"] = json!({"type": "string", "description": "With `message`: the session that it is of, if not this one"});
        }
        Self { descriptor, record }
    }
}

#[derive(Deserialize)]
struct Input {
    query: Option<String>,
    message: Option<String>,
    role: Option<String>,
    skip: Option<usize>,
    limit: Option<usize>,
    offset: Option<usize>,
    #[serde(rename = "where")]
    place: Option<String>,
    session: Option<String>,
}

fn parse_query(input: &Value) -> Result<RecallQuery, String> {
    let input = Input::deserialize(input).map_err(|error| error.to_string())?;
    let given =
        |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    if let Some(message) = given(input.message) {
        let (offset, limit) = (input.offset.unwrap_or(0), PAGE);
        return Ok(match given(input.session) {
            Some(session) => RecallQuery::QuoteFrom { session, message, offset, limit },
            None => RecallQuery::Quote { message, offset, limit },
        });
    }
    let query = given(input.query).filter(|query| query.chars().any(char::is_alphanumeric));
    let query = query.ok_or("Give `query`, a few words to search for, or `message`, the id of a message")?;
    let limit = input.limit.unwrap_or(LIMIT).clamp(1, MOST);
    let search = RecallSearch {
        query,
        voice: input.role.as_deref().and_then(Voice::from_name),
        skip: input.skip.unwrap_or(0),
        limit,
        excerpt: EXCERPT.min(ALL_EXCERPTS / limit),
    };
    Ok(match input.place.as_deref() {
        Some(PROJECT) => RecallQuery::SearchProject(search),
        _ => RecallQuery::Search(search),
    })
}

impl Tool for Recall {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    /// The conversation's record is the session's own: the model has seen all of it before. What lies beyond is read.
    fn effects(&self, input: &Value, place: &Workspace) -> CallEffects {
        let Some(record) = self.record.as_ref() else { return CallEffects::default() };
        let dirs: Vec<&PathBuf> = match parse_query(input) {
            Ok(RecallQuery::SearchProject(_)) => record.memory.iter().chain([&record.sessions]).collect(),
            Ok(RecallQuery::QuoteFrom { .. }) => vec![&record.sessions],
            Ok(RecallQuery::Search(_) | RecallQuery::Quote { .. }) | Err(_) => Vec::new(),
        };
        let reads = dirs.into_iter().map(|dir| place.resolve(&dir.to_string_lossy())).collect();
        CallEffects { reads, ..CallEffects::default() }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn validate(&self, input: &Value, _host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        parse_query(input).map(|_| ()).map_err(|problem| Box::new(ToolOutcome::refusal(problem)))
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let query = match parse_query(&call.input) {
                Ok(query) => query,
                Err(problem) => return ToolOutcome::refusal(problem),
            };
            tokio::select! {
                () = call.cancel.cancelled() => ToolOutcome::error("The lookup was interrupted."),
                recalled = host.recall(query.clone()) => match recalled {
                    Ok(recalled) => outcome(&query, &recalled),
                    Err(problem) => ToolOutcome::error(problem),
                },
            }
        })
    }
}

fn outcome(query: &RecallQuery, recalled: &RecallResult) -> ToolOutcome {
    match (query, recalled) {
        (_, RecallResult::NoSuchMessage { n_matching: 0 }) => ToolOutcome::error(
            "No message of this conversation has that id. Search with `query`; each match names its message.",
        ),
        (_, RecallResult::NoSuchMessage { n_matching }) => {
            ToolOutcome::error(format!("{n_matching} messages have an id that begins so. Give more of it."))
        }
        (
            RecallQuery::Quote { offset, .. } | RecallQuery::QuoteFrom { offset, .. },
            RecallResult::Quoted { source, text, n_chars },
        ) => quoted(*offset, source, text, *n_chars),
        (RecallQuery::Search(search), RecallResult::Found { n_found, n_searched, hits }) => {
            let none = format!("None of {n_searched} earlier messages has a word of this. Try other words.");
            hits_outcome(search, *n_found, *n_searched, hits, none)
        }
        (RecallQuery::SearchProject(search), RecallResult::Found { n_found, n_searched, hits }) => {
            let none = format!("Nothing in memories and {n_searched} earlier sessions has a word of this.");
            hits_outcome(search, *n_found, *n_searched, hits, none)
        }
        (RecallQuery::Quote { .. } | RecallQuery::QuoteFrom { .. }, RecallResult::Found { .. })
        | (RecallQuery::Search(_) | RecallQuery::SearchProject(_), RecallResult::Quoted { .. }) => {
            ToolOutcome::error("The lookup answered something else than was asked. Try again.")
        }
    }
}

fn quoted(offset: usize, source: &RecallSource, text: &str, n_chars: usize) -> ToolOutcome {
    let end = offset + text.chars().count();
    let mut said = format!("{}\n{text}", heading(source));
    if offset > 0 || end < n_chars {
        said.push_str(&format!("\n(Characters {offset} to {end} of {n_chars}."));
        if end < n_chars {
            said.push_str(&format!(" Go on with `offset` {end}."));
        }
        said.push(')');
    }
    let structured = json!({"message": source.message, "offset": offset, "numChars": n_chars, "text": text});
    ToolOutcome::text(said, structured)
}

fn hits_outcome(
    search: &RecallSearch,
    n_found: usize,
    n_searched: usize,
    hits: &[RecallHit],
    none: String,
) -> ToolOutcome {
    let structured = json!({
        "numFound": n_found,
        "numSearched": n_searched,
        "messages": hits.iter().map(|hit| hit.source.message.as_str()).collect::<Vec<_>>(),
    });
    if hits.is_empty() {
        let text = match n_found {
            0 => none,
            1 => "There is 1 match and no more after it.".to_owned(),
            _ => format!("There are {n_found} matches and no more after them."),
        };
        return ToolOutcome::text(text, structured);
    }
    let (first, last) = (search.skip + 1, search.skip + hits.len());
    let mut text = format!("Matches {first} to {last} of {n_found}, the best first, word for word:");
    for (idx, hit) in hits.iter().enumerate() {
        text.push_str(&format!("\n\n{}. {}\n{}", first + idx, heading_of(hit), hit.excerpt));
        if hit.excerpt.chars().count() < hit.n_chars {
            let at = hit.offset;
            let all = match hit.source.place {
                RecallPlace::Here => "`message` shows all",
                RecallPlace::Session(_) => "`message` with `session` shows all",
                RecallPlace::Memory => "Read shows all",
            };
            text.push_str(&format!("\n[from character {at} of {}; {all}]", hit.n_chars));
        }
    }
    if last < n_found {
        text.push_str(&format!("\n\n(Go on with `skip` {last}.)"));
    }
    ToolOutcome::text(text, structured)
}

fn heading_of(hit: &RecallHit) -> String {
    let seen = if hit.is_compacted { ", before a compaction" } else { "" };
    format!("{}{seen}", heading(&hit.source))
}

fn heading(source: &RecallSource) -> String {
    let session = match &source.place {
        RecallPlace::Here => String::new(),
        RecallPlace::Session(id) => format!(", session {id}"),
        RecallPlace::Memory => return format!("[{}] a memory of this project", source.message),
    };
    let tool = source.tool.as_deref().map(|tool| format!(" of {tool}")).unwrap_or_default();
    let time = source.time.as_deref().map(|time| format!(", {time}")).unwrap_or_default();
    format!("[{}] {}{tool}{time}{session}", source.message, source.voice.name())
}
