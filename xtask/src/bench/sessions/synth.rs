//! Sessions made up for measuring: the shape of real ones, a compaction now and then.

use anyhow::Context;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Turns between two compactions.
const TURNS_A_COMPACTION: u64 = 500;
/// Turns after the last one, so that files of all lengths have the same to send.
const LIVE_TURNS: u64 = 100;
/// What a file that was read looks like: sixty lines, as they stand in JSON.
const LINE: &str = "x = compute(42)  # line of code\\n";

/// A home with one project.
pub(crate) struct Home {
    pub(crate) root: PathBuf,
    pub(crate) project: PathBuf,
}

impl Home {
    fn sessions(&self) -> PathBuf {
        let slug = self.project.display().to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        self.root.join(".claude/projects").join(slug)
    }
}

pub(crate) fn home(scratch: &Path, name: &str) -> anyhow::Result<Home> {
    let home = Home { root: scratch.join(name), project: scratch.join(name).join("project") };
    std::fs::create_dir_all(&home.project).context("Failed to make a project")?;
    std::fs::create_dir_all(home.sessions()).context("Failed to make a config home")?;
    Ok(home)
}

/// Writes a session of about so many bytes and returns its id.
pub(crate) fn session(home: &Home, bytes: u64) -> anyhow::Result<String> {
    let id = uuid(0xabcd, 0);
    write(home, &id, 0, bytes)?;
    Ok(id)
}

/// Writes a session of so many turns, without a compaction, and returns its id.
pub(crate) fn turns(home: &Home, n_turns: u64) -> anyhow::Result<String> {
    let id = uuid(0xabcd, 0);
    let cwd = home.project.display().to_string();
    let mut chain = Chain { id: &id, cwd, series: 0, n_entries: 0, lines: String::new() };
    (0..n_turns).for_each(|turn| chain.turn(turn));
    let path = home.sessions().join(format!("{id}.jsonl"));
    std::fs::write(path, &chain.lines).context("Failed to write a session")?;
    Ok(id)
}

/// Writes many sessions, most of them short, and returns how many bytes they have.
pub(crate) fn many(home: &Home, n: u32) -> anyhow::Result<u64> {
    let mut total = 0;
    for number in 0..u64::from(n) {
        let bytes = match number % 20 {
            0 => 300_000,
            1..6 => 40_000,
            _ => 6_000,
        };
        total += write(home, &uuid(0xabcd, number), number, bytes)?;
    }
    Ok(total)
}

fn write(home: &Home, id: &str, series: u64, bytes: u64) -> anyhow::Result<u64> {
    let path = home.sessions().join(format!("{id}.jsonl"));
    let file = File::create(&path).context("Failed to make a session")?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let mut chain =
        Chain { id, cwd: home.project.display().to_string(), series, n_entries: 0, lines: String::new() };
    let mut written = 0;
    let mut turn = 0;
    while written < bytes || (turn > TURNS_A_COMPACTION && turn % TURNS_A_COMPACTION != LIVE_TURNS) {
        chain.turn(turn);
        turn += 1;
        if turn % TURNS_A_COMPACTION == 0 {
            chain.compact();
        }
        file.write_all(chain.lines.as_bytes()).context("Failed to write a session")?;
        written += chain.lines.len() as u64;
        chain.lines.clear();
    }
    file.into_inner().context("Failed to write a session")?.sync_all().context("Failed to sync a session")?;
    Ok(written)
}

/// The entries of one session, each under the one before.
struct Chain<'a> {
    id: &'a str,
    cwd: String,
    series: u64,
    n_entries: u64,
    lines: String,
}

impl Chain<'_> {
    /// A prompt, a call, its result and an answer.
    fn turn(&mut self, n: u64) {
        let body = LINE.repeat(60);
        let call = format!("toolu_{}_{n}", self.series);
        let file = format!("{}/README.md", self.cwd);
        self.entry("user", &format!(r#""message":{{"role":"user","content":"please look at part {n}"}}"#));
        let used =
            format!(r#"{{"type":"tool_use","id":"{call}","name":"Read","input":{{"file_path":"{file}"}}}}"#);
        self.answer(&format!("msg_{n}_a"), &used, "tool_use");
        self.entry(
            "user",
            &format!(
                r#""message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"{body}"}}]}},"toolUseResult":{{"type":"text","file":{{"filePath":"{file}","content":"{body}","numLines":60,"startLine":1,"totalLines":60}}}}"#
            ),
        );
        self.answer(
            &format!("msg_{n}_b"),
            &format!(r#"{{"type":"text","text":"Part {n} is fine."}}"#),
            "end_turn",
        );
    }

    fn answer(&mut self, message: &str, block: &str, stop: &str) {
        self.entry(
            "assistant",
            &format!(
                r#""requestId":"req_1","message":{{"id":"{message}","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{block}],"stop_reason":"{stop}","stop_sequence":null,"usage":{{"input_tokens":100,"output_tokens":20,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}}}"#
            ),
        );
    }

    fn compact(&mut self) {
        let before = uuid(self.series, self.n_entries);
        self.line("null", "system", &format!(
            r#""subtype":"compact_boundary","logicalParentUuid":"{before}","content":"Conversation compacted","isMeta":false,"level":"info","compactMetadata":{{"trigger":"auto","preTokens":160000}}"#
        ));
        self.entry("user", r#""isCompactSummary":true,"isVisibleInTranscriptOnly":true,"message":{"role":"user","content":"Summary of the work so far: parts were read and found fine."}"#);
    }

    /// Adds an entry under the last one.
    fn entry(&mut self, kind: &str, fields: &str) {
        let parent = match self.n_entries {
            0 => "null".to_owned(),
            n => format!("\"{}\"", uuid(self.series, n)),
        };
        self.line(&parent, kind, fields);
    }

    fn line(&mut self, parent: &str, kind: &str, fields: &str) {
        self.n_entries += 1;
        let (id, cwd) = (self.id, &self.cwd);
        let own = uuid(self.series, self.n_entries);
        let seconds = self.n_entries;
        let (day, hour, minute, second) =
            (1 + seconds / 86_400 % 28, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        self.lines.push_str(&format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"{cwd}","sessionId":"{id}","version":"2.1.197","gitBranch":"main","type":"{kind}",{fields},"uuid":"{own}","timestamp":"2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z"}}"#
        ));
        self.lines.push('\n');
    }
}

fn uuid(series: u64, n: u64) -> String {
    format!("{:08x}-0001-4000-8000-{n:012x}", series & 0xffff_ffff)
}
