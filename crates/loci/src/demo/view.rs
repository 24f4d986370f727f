//! The transcript as it happens, for people: plain lines, colour only where a terminal wants it.

use std::io::{self, IsTerminal, Write};

use loci_core::message::Block;
use loci_core::stream::{Delta, StreamEvent};
use loci_engine::turn::Outcome;
use loci_engine::{EngineEvent, TurnReport, UserMessage};
use loci_stdx::{Env, counted};
use serde_json::Value;

/// Lines of a result that are shown.
const RESULT_LINES: usize = 8;

/// Writes a session as it goes.
pub(super) struct View<W> {
    out: W,
    has_colour: bool,
    project: String,
    program: String,
    /// Calls without a result yet, by id.
    open: Vec<(String, String)>,
    /// Whether the open calls began together, so that a result must say whose it is.
    is_batch: bool,
    hunks: Vec<(String, Value)>,
    report: Option<Box<TurnReport>>,
}

impl View<io::Stdout> {
    pub(super) fn new(env: &Env, out: io::Stdout) -> Self {
        let has_colour = out.is_terminal() && env.vars.non_empty("NO_COLOR").is_none();
        let project = env.cwd.display().to_string();
        let program = std::env::current_exe().map_or("loci".to_owned(), |path| path.display().to_string());
        Self {
            out,
            has_colour,
            project,
            program,
            open: Vec::new(),
            is_batch: false,
            hunks: Vec::new(),
            report: None,
        }
    }
}

impl<W: Write> View<W> {
    pub(super) fn open(&mut self, prompt: &str) -> io::Result<()> {
        let head = self.paint("1", "loci demo");
        writeln!(self.out, "{head}: a scripted model; the engine, the tools and the session are real\n")?;
        writeln!(self.out, "project  {}", self.project)?;
        writeln!(self.out, "prompt   {prompt}")
    }

    pub(super) fn show(&mut self, event: &EngineEvent) -> io::Result<()> {
        match event {
            EngineEvent::Stream { event: StreamEvent::BlockStarted { kind, .. }, .. } if kind == "text" => {
                write!(self.out, "\n{} ", self.paint("32", "●"))?;
            }
            EngineEvent::Stream { event: StreamEvent::Delta { delta: Delta::Text(text), .. }, .. } => {
                write!(self.out, "{text}")?;
                self.out.flush()?;
            }
            EngineEvent::Stream { event: StreamEvent::BlockDone { block, .. }, .. } => self.finish(block)?,
            EngineEvent::User(message) => self.result(message)?,
            EngineEvent::Warning(trouble) => writeln!(self.out, "! {trouble}")?,
            EngineEvent::TurnEnded(report) => self.report = Some(report.clone()),
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, block: &Block) -> io::Result<()> {
        match block.tool_use() {
            Some(call) => {
                let argument = argument(&call.input);
                let name = self.paint("36", &call.name);
                self.is_batch = !self.open.is_empty();
                self.open.push((call.id.to_string(), format!("{} {argument}", call.name)));
                writeln!(self.out, "  > {name} {argument}")
            }
            None => writeln!(self.out),
        }
    }

    fn result(&mut self, message: &UserMessage) -> io::Result<()> {
        let Some(structured) = &message.tool_use_result else { return Ok(()) };
        if let (Some(path), Some(patch)) = (structured.get("filePath"), structured.get("structuredPatch")) {
            self.hunks.push((path.as_str().unwrap_or_default().to_owned(), patch.clone()));
        }
        let block = &message.message["content"][0];
        let text = block["content"].as_str().unwrap_or_default();
        let idx = self.open.iter().position(|(id, _)| block["tool_use_id"] == id.as_str());
        if let Some((_, label)) = idx.map(|idx| self.open.remove(idx)).filter(|_| self.is_batch) {
            writeln!(self.out, "  < {}", self.paint("2", &label))?;
        }
        let lines: Vec<&str> = text.lines().collect();
        for line in lines.iter().take(RESULT_LINES) {
            writeln!(self.out, "    {}", self.paint("2", line))?;
        }
        if lines.len() > RESULT_LINES {
            let n_more = (lines.len() - RESULT_LINES) as u64;
            let more = format!("... {}", counted(n_more, "more line", "more lines"));
            writeln!(self.out, "    {}", self.paint("2", &more))?;
        }
        Ok(())
    }

    /// Shows what changed, what it cost and where it lies; returns whether the turn worked.
    pub(super) fn close(mut self) -> io::Result<bool> {
        let hunks = std::mem::take(&mut self.hunks);
        if !hunks.is_empty() {
            writeln!(self.out, "\n{}", self.paint("1", "Changes"))?;
        }
        for (path, patch) in &hunks {
            self.diff(path, patch)?;
        }
        let Some(report) = self.report.take() else { return Ok(false) };
        writeln!(self.out, "\n{}", self.paint("1", "Session"))?;
        writeln!(
            self.out,
            "tokens   {} in, {} out in {} round trips; ${:.4} at list price (the scripted model costs nothing)",
            report.usage.input_tokens, report.usage.output_tokens, report.round_trips, report.total_cost_usd
        )?;
        if let Some(path) = &report.transcript {
            writeln!(self.out, "saved    {}", path.display())?;
        }
        writeln!(
            self.out,
            "resume   cd {} && {} -r {} -p \"What did you change?\"",
            self.project, self.program, report.session
        )?;
        writeln!(self.out, "         (a real model answers then: set ANTHROPIC_API_KEY)")?;
        Ok(report.outcome == Outcome::Completed)
    }

    fn diff(&mut self, path: &str, patch: &Value) -> io::Result<()> {
        writeln!(self.out, "--- {path}")?;
        for hunk in patch.as_array().into_iter().flatten() {
            let number = |key: &str| hunk.get(key).and_then(Value::as_u64).unwrap_or(0);
            let place = format!(
                "@@ -{},{} +{},{} @@",
                number("oldStart"),
                number("oldLines"),
                number("newStart"),
                number("newLines")
            );
            writeln!(self.out, "{}", self.paint("36", &place))?;
            for line in hunk["lines"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let colour = match line.as_bytes().first() {
                    Some(b'+') => "32",
                    Some(b'-') => "31",
                    _ => "0",
                };
                writeln!(self.out, "{}", self.paint(colour, line))?;
            }
        }
        Ok(())
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.has_colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// The one argument of a call that says most.
fn argument(input: &Value) -> String {
    ["command", "pattern", "file_path", "path"]
        .into_iter()
        .find_map(|key| input.get(key).and_then(Value::as_str))
        .map_or_else(|| input.to_string(), str::to_owned)
}
