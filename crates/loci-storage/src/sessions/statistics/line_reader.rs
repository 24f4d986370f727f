//! Prompts and responses of a transcript, read off its lines without taking them apart.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use loci_core::cost_state::{COST_STATE, CostState};
use loci_core::usage::Usage;
use loci_stdx::{Date, TimeZone, Timestamp};

use super::StatisticsQuery;
use crate::search::index::milliseconds;
use crate::sessions::listing::scan::{self, AssistantMessage};

/// The model of messages that no model wrote.
const SYNTHETIC: &str = "<synthetic>";
/// How texts begin that a slash command left: what a local one said, and the command itself.
const LOCAL: &[u8] = b"<local-command-";
const COMMAND: [&[u8]; 2] = [b"<command-name>", b"<command-message>"];
/// How texts begin that a program put in the user's mouth, as written in JSON.
const NOT_A_PROMPT: [&[u8]; 5] = [
    b"<bash-input>",
    b"<bash-std",
    b"<task-notification>",
    b"<system-reminder>",
    b"[Request interrupted by user",
];

/// A prompt or a response.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct UsageRecord {
    /// What it is known by. A hash: among ten million of them two are taken for one with a chance of one in 400,000.
    pub(super) key: u64,
    /// When it was written, or what was written before it.
    pub(super) time_ms: Option<i64>,
    pub(super) day: Option<Date>,
    /// Whether it lies in the time that is asked for.
    pub(super) is_wanted: bool,
    /// Of a prompt, the model that answered it.
    pub(super) model: Option<Arc<str>>,
    pub(super) what: UsageKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum UsageKind {
    Turn,
    Response(Box<Usage>),
    /// What the session had used by then, all in all.
    State(Box<CostState>),
}

/// Reads transcripts, one after another.
pub(super) struct LineReader<'a> {
    query: &'a StatisticsQuery,
    days: Days<'a>,
    model: Option<Arc<str>>,
    cwd: Option<String>,
    /// The time of the last line that had one.
    time_ms: Option<i64>,
    records: Vec<UsageRecord>,
    /// The prompt that no model has answered yet.
    prompt: Option<usize>,
    /// A slash command that no model has answered yet. It is a turn when one does: what loci itself answers is none.
    command: Option<UsageRecord>,
    /// The last response: blocks that follow may know its usage better.
    response: Option<usize>,
}

impl<'a> LineReader<'a> {
    pub(super) fn new(query: &'a StatisticsQuery) -> Self {
        Self {
            query,
            days: Days { zone: &query.zone, known: None },
            model: None,
            cwd: None,
            time_ms: None,
            records: Vec::new(),
            prompt: None,
            command: None,
            response: None,
        }
    }

    /// Returns where the transcript began and what was said in it, and is ready for the next one.
    pub(super) fn finish_file(&mut self) -> (Option<String>, Vec<UsageRecord>) {
        (self.prompt, self.command, self.response) = (None, None, None);
        self.time_ms = None;
        (self.cwd.take(), std::mem::take(&mut self.records))
    }

    /// Reads one line.
    pub(super) fn read_line(&mut self, line: &[u8]) {
        let line = trimmed(line);
        // A line that was torn says nothing to rely on.
        if !line.ends_with(b"}") {
            return;
        }
        match scan::leading_type(line) {
            None | Some(b"user" | b"assistant") => {}
            Some(kind) if kind == COST_STATE.as_bytes() => return self.read_state(line),
            Some(_) => return,
        }
        let line = LineFields::parse(line);
        if self.cwd.is_none() {
            self.cwd = scan::as_text(line.cwd);
        }
        if line.is_imported {
            return;
        }
        match line.kind {
            b"\"user\"" => match line.speaker() {
                Speaker::Person => self.read_prompt(&line),
                Speaker::Command => self.read_command(&line),
                Speaker::LocalCommand => self.command = None,
                Speaker::Program => {}
            },
            b"\"assistant\"" => self.read_response(&line),
            _ => {}
        }
    }

    fn read_prompt(&mut self, line: &LineFields<'_>) {
        (self.prompt, self.command) = (None, None);
        if let Some(turn) = self.turn(line) {
            self.prompt = Some(self.records.len());
            self.records.push(turn);
        }
    }

    fn read_command(&mut self, line: &LineFields<'_>) {
        (self.prompt, self.command) = (None, self.turn(line));
    }

    fn turn(&mut self, line: &LineFields<'_>) -> Option<UsageRecord> {
        let key = key(b"prompt", line.origin(), b"");
        Some(self.record(key, line.time, None, UsageKind::Turn)).filter(|turn| turn.is_wanted)
    }

    fn read_state(&mut self, line: &[u8]) {
        let Some(state) = CostState::parse(line) else { return };
        let time = scan::fields(line).find(|(key, _)| *key == b"timestamp");
        let time = time.map_or(&b""[..], |(_, time)| time);
        let record = self.record(key(b"state", line, b""), time, None, UsageKind::State(Box::new(state)));
        self.records.push(record);
    }

    fn read_response(&mut self, line: &LineFields<'_>) {
        let answer = AssistantMessage::parse(line.message);
        let Some(model) = self.model_of(answer.model) else { return };
        if let Some(prompt) = self.prompt.take_if(|_| !line.is_sidechain) {
            self.records[prompt].model = Some(model.clone());
        }
        if let Some(command) = self.command.take_if(|_| !line.is_sidechain) {
            self.records.push(UsageRecord { model: Some(model.clone()), ..command });
        }
        let Ok(usage) = serde_json::from_slice::<Usage>(answer.usage) else { return };
        let key = match answer.id {
            b"" => key(b"entry", line.origin(), b""),
            id => key(b"response", id, line.request),
        };
        let last = self.response.and_then(|at| self.records.get_mut(at)).filter(|last| last.key == key);
        match last {
            Some(UsageRecord { what: UsageKind::Response(known), .. }) => {
                if usage.output_tokens > known.output_tokens {
                    **known = usage;
                }
            }
            Some(_) | None => {
                self.response = Some(self.records.len());
                let usage = UsageKind::Response(Box::new(usage));
                let record = self.record(key, line.time, Some(model), usage);
                self.records.push(record);
            }
        }
    }

    /// Returns the name of a model, the same value as long as it is the same model; nothing where no model spoke.
    fn model_of(&mut self, raw: &[u8]) -> Option<Arc<str>> {
        let quoted = |name: &Arc<str>| raw.get(1..raw.len().saturating_sub(1)) == Some(name.as_bytes());
        if let Some(model) = self.model.as_ref().filter(|name| quoted(name)) {
            return Some(model.clone());
        }
        let model: Arc<str> = scan::as_text(raw).filter(|name| name != SYNTHETIC)?.into();
        self.model = Some(model.clone());
        Some(model)
    }

    /// Makes a record of a line with this time, as written; one without a time is wanted where no time is asked for.
    fn record(&mut self, key: u64, time: &[u8], model: Option<Arc<str>>, what: UsageKind) -> UsageRecord {
        let query = self.query;
        let own = scan::as_text(time).and_then(|text| milliseconds(&text));
        self.time_ms = own.or(self.time_ms);
        let dated = own.or_else(|| self.time_ms.filter(|_| matches!(what, UsageKind::State(_))));
        let is_wanted = match dated {
            None => query.since_ms.is_none() && query.until_ms.is_none(),
            Some(time) => {
                query.since_ms.is_none_or(|since| time >= since)
                    && query.until_ms.is_none_or(|until| time < until)
            }
        };
        let day = dated.and_then(|time| self.days.day(time));
        UsageRecord { key, time_ms: self.time_ms, day, is_wanted, model, what }
    }
}

/// Takes off what crashes leave around a line.
fn trimmed(line: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| *byte != 0 && !byte.is_ascii_whitespace();
    let start = line.iter().position(is_text).unwrap_or(line.len());
    let end = line.iter().rposition(is_text).map_or(start, |last| last + 1);
    &line[start..end]
}

fn key(kind: &[u8], id: &[u8], more: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (kind, id, more).hash(&mut hasher);
    hasher.finish()
}

/// The fields of a line that count, as written.
#[derive(Default)]
struct LineFields<'a> {
    kind: &'a [u8],
    message: &'a [u8],
    uuid: &'a [u8],
    forked_from: &'a [u8],
    request: &'a [u8],
    time: &'a [u8],
    cwd: &'a [u8],
    is_sidechain: bool,
    /// Said by a program, for the model's ears or in a person's name.
    is_hidden: bool,
    is_imported: bool,
}

impl<'a> LineFields<'a> {
    fn parse(line: &'a [u8]) -> Self {
        let mut found = Self::default();
        for (key, value) in scan::fields(line) {
            match key {
                b"type" => found.kind = value,
                b"message" => found.message = value,
                b"uuid" => found.uuid = value,
                b"forkedFrom" => found.forked_from = value,
                b"requestId" => found.request = value,
                b"timestamp" => found.time = value,
                b"cwd" => found.cwd = value,
                b"isSidechain" => found.is_sidechain = value == b"true",
                b"isMeta" | b"isCompactSummary" => found.is_hidden |= value == b"true",
                b"importedFrom" => found.is_imported = true,
                // The rest of a result may be long, and nothing in it counts.
                b"toolUseResult" if !found.time.is_empty() => break,
                _ => {}
            }
        }
        found
    }

    /// Returns the id of the entry, or of the one it was copied from.
    fn origin(&self) -> &'a [u8] {
        let field = scan::fields(self.forked_from).find(|(key, _)| *key == b"messageUuid");
        field.map_or(self.uuid, |(_, uuid)| uuid)
    }

    /// Returns who speaks in a message of the user.
    fn speaker(&self) -> Speaker {
        if self.is_sidechain || self.is_hidden || self.uuid.is_empty() {
            return Speaker::Program;
        }
        let content = scan::fields(self.message).find(|(key, _)| *key == b"content");
        let content = content.map_or(&b""[..], |(_, content)| content);
        match content.first() {
            Some(b'"') => Speaker::from_text(&content[1..]),
            Some(b'[') => Speaker::of_block(content[1..].trim_ascii_start()),
            _ => Speaker::Program,
        }
    }
}

/// Who speaks in a message of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Person,
    /// A slash command, which a model may be asked to answer.
    Command,
    /// A slash command that was answered without a model.
    LocalCommand,
    Program,
}

impl Speaker {
    /// Looks at the first block: results come first in a message.
    fn of_block(block: &[u8]) -> Self {
        let (mut kind, mut text): (&[u8], &[u8]) = (b"", b"");
        for (key, value) in scan::fields(block) {
            match key {
                b"type" => kind = value,
                b"text" => text = value,
                _ => {}
            }
        }
        match kind {
            b"\"text\"" => Self::from_text(text.get(1..).unwrap_or_default()),
            b"" | b"\"tool_result\"" => Self::Program,
            _ => Self::Person,
        }
    }

    fn from_text(text: &[u8]) -> Self {
        let begins = |starts: &[&[u8]]| starts.iter().any(|start| text.starts_with(start));
        match text {
            _ if begins(&COMMAND) => Self::Command,
            _ if begins(&[LOCAL]) => Self::LocalCommand,
            _ if begins(&NOT_A_PROMPT) => Self::Program,
            _ => Self::Person,
        }
    }
}

/// The calendar of a place; most moments lie in the same day as the one before.
struct Days<'a> {
    zone: &'a TimeZone,
    known: Option<(Range<i64>, Date)>,
}

impl Days<'_> {
    fn day(&mut self, time_ms: i64) -> Option<Date> {
        if let Some((range, day)) = &self.known
            && range.contains(&time_ms)
        {
            return Some(*day);
        }
        let day = Timestamp::from_millisecond(time_ms).ok()?.to_zoned(self.zone.clone()).date();
        let start = |day: Date| Some(day.to_zoned(self.zone.clone()).ok()?.timestamp().as_millisecond());
        let range = start(day).zip(day.tomorrow().ok().and_then(start));
        self.known = range.map(|(start, end)| (start..end, day));
        Some(day)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(lines: &[Value]) -> Vec<UsageRecord> {
        let query = StatisticsQuery::new(TimeZone::UTC);
        let mut reading = LineReader::new(&query);
        lines.iter().for_each(|line| reading.read_line(line.to_string().as_bytes()));
        reading.finish_file().1
    }

    fn user(more: Value, content: Value) -> Value {
        let mut line = json!({"type": "user", "uuid": "u", "timestamp": "2026-01-02T03:04:05.000Z"});
        line["message"] = json!({"role": "user", "content": content});
        for (key, value) in more.as_object().unwrap() {
            line[key] = value.clone();
        }
        line
    }

    #[test]
    fn turn_counts_only_prompts_of_a_person() {
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        for (more, content, n_turns) in [
            (json!({}), json!("Fix it"), 1),
            (json!({}), json!("say \"tool_result\""), 1),
            (json!({}), text("Fix it"), 1),
            (json!({}), json!([{"type": "image", "source": {}}, {"type": "text", "text": "look"}]), 1),
            (json!({"isMeta": true}), json!("hidden"), 0),
            (json!({"isSidechain": true}), json!("a task"), 0),
            (json!({"isCompactSummary": true}), json!("sum"), 0),
            (json!({"importedFrom": {"agent": "codex"}}), json!("Fix it"), 0),
            (json!({}), json!([{"tool_use_id": "t", "type": "tool_result", "content": "x"}]), 0),
            (json!({}), text("[Request interrupted by user]"), 0),
            (json!({}), json!("<local-command-stdout>x</local-command-stdout>"), 0),
            (json!({}), json!("<local-command-stderr>x</local-command-stderr>"), 0),
            (json!({}), json!("<command-name>/model</command-name>"), 0),
            (json!({}), text("<command-message>model</command-message>"), 0),
            (json!({}), json!("<bash-input>ls</bash-input>"), 0),
            (json!({}), json!([]), 0),
            (json!({}), json!(7), 0),
        ] {
            let line = user(more, content);
            assert_eq!(read(std::slice::from_ref(&line)).len(), n_turns, "{line}");
        }
    }

    fn answer(id: &str, request: &str, model: &str, output: u64) -> Value {
        json!({"type": "assistant", "uuid": "a", "requestId": request, "timestamp": "2026-01-02T03:04:06.000Z",
            "message": {"id": id, "model": model, "content": [{"type": "text", "text": "x"}],
                "usage": {"input_tokens": 10, "output_tokens": output}}})
    }

    #[test]
    fn the_blocks_of_a_response_are_one_and_the_fullest_usage_counts() {
        let records = read(&[
            user(json!({}), json!("go")),
            answer("m1", "r1", "claude-sonnet-4-5", 1),
            answer("m1", "r1", "claude-sonnet-4-5", 7),
            answer("m1", "r1", "claude-sonnet-4-5", 7),
            answer("m1", "r2", "claude-sonnet-4-5", 2),
            answer("m2", "r3", SYNTHETIC, 0),
        ]);
        let outputs: Vec<u64> = records
            .iter()
            .filter_map(|records| match &records.what {
                UsageKind::Response(usage) => Some(usage.output_tokens),
                UsageKind::Turn | UsageKind::State(_) => None,
            })
            .collect();
        assert_eq!(outputs, [7, 2]);
        assert_eq!(
            (&records[0].what, records[0].model.as_deref()),
            (&UsageKind::Turn, Some("claude-sonnet-4-5"))
        );
        assert_eq!(records[0].day.unwrap().to_string(), "2026-01-02");
    }

    /// What a model answers is a turn, whoever wrote the words; what loci answers itself is none.
    #[test]
    fn a_slash_command_is_a_turn_when_a_model_answers_it() {
        let says = |text: &str| user(json!({}), json!(text));
        let (command, output) = (says("<command-name>/x</command-name>"), says("<local-command-stdout>"));
        let hidden = user(json!({"isMeta": true}), json!("what the command asks for"));
        let answer = || answer("m", "r", "claude-sonnet-4-5", 1);
        let aside = user(json!({"isSidechain": true}), json!("a task"));
        for (lines, expected) in [
            (vec![command.clone(), hidden.clone(), answer()], "TR"),
            (vec![command.clone(), output.clone(), answer()], "R"),
            (vec![command.clone(), output.clone(), says("go"), answer()], "TR"),
            (vec![command.clone(), says("go"), answer()], "TR"),
            (vec![command.clone(), hidden, command.clone(), output], ""),
            (vec![says("go"), command.clone()], "T"),
            (vec![command, aside], ""),
        ] {
            let records = read(&lines);
            let is_turn = |records: &UsageRecord| if records.what == UsageKind::Turn { 'T' } else { 'R' };
            assert_eq!(records.iter().map(is_turn).collect::<String>(), expected, "{lines:?}");
            let unanswered = records.iter().filter(|records| records.model.is_none()).count();
            assert_eq!(unanswered, usize::from(expected == "T"), "{lines:?}");
        }
    }

    #[test]
    fn statistics_skip_lines_that_are_no_entries() {
        for line in ["", "null", "{", r#"{"type":"user"}"#, r#"{"type":"assistant","message":7}"#, "\u{0}"] {
            let query = StatisticsQuery::new(TimeZone::UTC);
            let mut reading = LineReader::new(&query);
            reading.read_line(line.as_bytes());
            assert_eq!(reading.finish_file(), (None, vec![]), "{line}");
        }
    }

    #[test]
    fn statistics_days_begin_at_local_midnight() {
        let zone = TimeZone::posix("JST-9").unwrap();
        let mut days = Days { zone: &zone, known: None };
        for (time, expected) in [
            ("2026-01-01T14:59:59.999Z", "2026-01-01"),
            ("2026-01-01T15:00:00.000Z", "2026-01-02"),
            ("2026-01-02T14:59:59.999Z", "2026-01-02"),
            ("2026-01-01T00:00:00.000Z", "2026-01-01"),
        ] {
            let ms = time.parse::<Timestamp>().unwrap().as_millisecond();
            assert_eq!(days.day(ms).unwrap().to_string(), expected, "{time}");
        }
    }
}
