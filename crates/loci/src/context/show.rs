//! `loci context show`: every fragment that would be sent, with source, tokens and why it is there.

use std::sync::Arc;

use clap::Parser;
use loci_app::RunOptions;
use loci_app::UserError;
use loci_app::compose::compaction::compaction_config;
use loci_app::compose::system_prompt::{preferences, prompt_parts};
use loci_app::compose::{Permissions, Prefetch, Prefetched, toolbox};
use loci_app::extensions::skills::SkillOptions;
use loci_app::memory::open_memory;
use loci_app::models::choose_model::{self, ModelSources};
use loci_app::sessions::resume;
use loci_app::settings::RunSettings;
use loci_context::{
    ContextRoom, Fullness, Instruction, PromptParts, Window, context_tokens, json_tokens, prose_tokens,
    system_prompt, user_context,
};
use loci_core::ids::SessionId;
use loci_core::tool::ToolDescriptor;
use loci_engine::{LoadedHistory, ModelConfig, render_instructions, render_memory_indexes};
use loci_settings::Settings;
use loci_stdx::Env;
use loci_storage::config::{InstructionFile, InstructionScope, Instructions};
use loci_tools::{RecordDirs, Toolbox};
use serde_json::{Value, json};

use crate::args::Args;
use crate::config::pretty;

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Print JSON, with the texts.
    #[arg(long)]
    json: bool,
    /// Flags that the session would be started with, behind `--`.
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

/// One piece of what would be sent.
struct Piece {
    /// Where in the request it stands.
    part: Part,
    name: String,
    source: String,
    why: String,
    text: String,
    tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    System,
    Tools,
    FirstMessage,
}

impl Part {
    const ALL: [Self; 3] = [Self::System, Self::Tools, Self::FirstMessage];

    fn title(self) -> &'static str {
        match self {
            Self::System => "System prompt",
            Self::Tools => "Tools",
            Self::FirstMessage => "Before the first prompt",
        }
    }

    fn id(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Tools => "tools",
            Self::FirstMessage => "firstMessage",
        }
    }
}

/// Returns what bounds a conversation, as a session has it.
fn window(env: &Env, settings: &Settings, model: &ModelConfig) -> Window {
    let facts = model.catalog.facts(&model.main);
    let max_output = model.max_output_tokens.unwrap_or(facts.default_output).min(facts.max_output);
    compaction_config(env, settings, &model.main, None).window(&facts, max_output)
}

/// Returns how many tokens a session holds, as the session itself counts them.
fn context_fullness(past: LoadedHistory, window: Window, overhead: u64) -> Fullness {
    let path = past.replaced.view(past.path);
    let tokens = context_tokens(&path, &past.replaced, overhead);
    ContextRoom::from_path(window, overhead, &path, &past.replaced).fullness(tokens)
}

/// What would be sent, and what would not.
struct Context {
    model: String,
    pieces: Vec<Piece>,
    left_out: Vec<(String, String)>,
    /// The session that goes on, if one does.
    session: Option<SessionId>,
    fullness: Fullness,
}

pub(super) fn run(env: &Env, args: &ShowArgs) -> Result<String, UserError> {
    let line = std::iter::once("loci").chain(args.flags.iter().map(String::as_str));
    let flags = Args::try_parse_from(line)
        .map_err(|error| UserError::new(error.render().to_string().trim_end().to_owned()))?;
    let context = Context::collect(env, &flags.options()?)?;
    Ok(if args.json { pretty(&context.to_json()) } else { context.to_text() })
}

impl Context {
    fn collect(env: &Env, options: &RunOptions) -> Result<Self, UserError> {
        let run = RunSettings::load(env, options)?;
        let (env, home, settings) = (&run.env, &run.home, &run.settings);
        let rulebook = Permissions::new(env, &options.permissions, &settings.permissions, None)?.rulebook;
        let record = RecordDirs { sessions: home.project_dir(&env.cwd), memory: None };
        let start = resume::read_named(env, home, options)?;
        let used = start.as_ref().and_then(|start| start.model.as_deref());
        let sources = ModelSources { asked: &options.model, settings, in_force: &run.in_force, before: used };
        let (model, _) = choose_model::choose(env, sources)?;
        let (memory, _) = open_memory(env, home, run.is_bare, settings, run.instructions.memory_root());
        let window = window(env, settings, &model);
        let Prefetched { git, instructions: found, skills, .. } = Prefetch::start(options, &run).join();
        let skills = Arc::new(skills.into_session(SkillOptions::new(&run), window.tokens));
        let mut tools = toolbox(options, &run, &rulebook, record, &skills)?;
        loci_app::extensions::agents::offer_agents_of_run(
            &mut tools,
            options,
            &run,
            &rulebook,
            start.as_ref(),
        )?;
        let memory_dir = memory.as_ref().map(|memory| memory.place.dir.as_path());
        let prompt = PromptParts {
            preferences: preferences(settings),
            ..prompt_parts(env, options, &rulebook, &model.main, git, memory_dir)?
        };
        let shows_team = run.instructions.is_trusted();
        let mut pieces: Vec<Piece> = system_prompt(&prompt)
            .into_iter()
            .map(|fragment| {
                let (source, why) = origin(fragment.name);
                Piece::prose(Part::System, fragment.name, source, why, fragment.text)
            })
            .collect();
        pieces.extend(tools.descriptors().map(tool));
        pieces.extend(found.files.iter().filter(|file| !file.content.trim().is_empty()).map(instruction));
        let indexes = memory.iter().flat_map(|memory| render_memory_indexes(&memory.journal, shows_team));
        pieces.extend(indexes.map(index));
        let date = env.clock.local_date().to_string();
        pieces.push(frame(&found, &date));
        let left_out = left_out(&tools, &found);
        let overhead = pieces.iter().map(|piece| piece.tokens).sum();
        let session = start.as_ref().map(|start| start.place.id().clone());
        let fullness = match start {
            Some(start) => context_fullness(start.history, window, overhead),
            None => ContextRoom::new(window, overhead).fullness(overhead),
        };
        Ok(Self { model: model.main, pieces, left_out, session, fullness })
    }

    fn total(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.tokens).sum()
    }

    fn to_text(&self) -> String {
        let mut lines = Vec::new();
        for part in Part::ALL {
            let pieces: Vec<&Piece> = self.pieces.iter().filter(|piece| piece.part == part).collect();
            let tokens: u64 = pieces.iter().map(|piece| piece.tokens).sum();
            lines.push(format!("{}, about {tokens} tokens:", part.title()));
            lines.extend(pieces.iter().map(|piece| {
                format!("  {:>6}  {}  ({}; {})", piece.tokens, piece.name, piece.source, piece.why)
            }));
            lines.push(String::new());
        }
        if !self.left_out.is_empty() {
            lines.push("Left out:".to_owned());
            lines.extend(self.left_out.iter().map(|(name, why)| format!("  {name}  ({why})")));
            lines.push(String::new());
        }
        if let Some(session) = &self.session {
            let more = self.fullness.tokens.saturating_sub(self.total());
            lines.push(format!("Conversation {session}, about {more} tokens"));
            lines.push(String::new());
        }
        lines.push(format!("About {} tokens in all, for {}", self.fullness.tokens, self.model));
        let Fullness { window, thresholds, level, .. } = self.fullness;
        lines.push(format!(
            "The window holds {window}; it is compacted from {} on. It is now: {}",
            thresholds.compact,
            level.as_str()
        ));
        lines.join("\n") + "\n"
    }

    fn to_json(&self) -> Value {
        let piece = |piece: &Piece| {
            json!({
                "part": piece.part.id(),
                "name": piece.name,
                "source": piece.source,
                "why": piece.why,
                "tokens": piece.tokens,
                "bytes": piece.text.len(),
                "text": piece.text,
            })
        };
        json!({
            "model": self.model,
            "fragments": self.pieces.iter().map(piece).collect::<Vec<_>>(),
            "leftOut": self.left_out.iter().map(|(name, why)| json!({"name": name, "why": why})).collect::<Vec<_>>(),
            "session": self.session.as_ref().map(SessionId::as_str),
            "tokens": self.fullness.tokens,
            "window": self.fullness.window,
            "compactAt": self.fullness.thresholds.compact,
            "level": self.fullness.level.as_str(),
        })
    }
}

impl Piece {
    fn prose(
        part: Part,
        name: impl Into<String>,
        source: &str,
        why: impl Into<String>,
        text: String,
    ) -> Self {
        let tokens = prose_tokens(&text);
        Self { part, name: name.into(), source: source.to_owned(), why: why.into(), text, tokens }
    }
}

/// Says where a fragment of the system prompt comes from, and why it is there.
fn origin(name: &str) -> (&'static str, &'static str) {
    match name {
        "identity" => ("built in", "always"),
        "working" => ("built in", "always, unless --system-prompt takes its place"),
        "memory" => ("built in", "memories are kept; autoMemoryEnabled turns them off"),
        "environment" => ("this machine", "always, unless --system-prompt takes its place"),
        "git" => ("git", "the folder is a repository; includeGitInstructions turns it off"),
        "preferences" => ("settings", "language or attribution is set"),
        "replacement" => ("--system-prompt", "you asked for it"),
        "appendix" => ("--append-system-prompt", "you asked for it"),
        _ => ("built in", "always"),
    }
}

fn tool(descriptor: &ToolDescriptor) -> Piece {
    let text = json!({
        "name": descriptor.name,
        "description": descriptor.description,
        "input_schema": descriptor.input_schema,
    });
    let schema = descriptor.input_schema.to_string();
    let tokens =
        prose_tokens(&descriptor.name) + prose_tokens(&descriptor.description) + json_tokens(&schema);
    Piece {
        part: Part::Tools,
        name: descriptor.name.clone(),
        source: "built in".to_owned(),
        why: "on offer".to_owned(),
        text: text.to_string(),
        tokens,
    }
}

fn instruction(file: &InstructionFile) -> Piece {
    let source = match file.scope {
        InstructionScope::Managed => "the administrator's",
        InstructionScope::User => "yours, for all projects",
        InstructionScope::Project => "the project's",
        InstructionScope::Local => "yours, for this project",
    };
    let why = match &file.imported_by {
        Some(by) => format!("imported by {}", by.display()),
        None if file.is_partial => "read at the start, comments and front matter left out".to_owned(),
        None => "read at the start".to_owned(),
    };
    let text = file.content.trim_end().to_owned();
    Piece::prose(Part::FirstMessage, file.path.display().to_string(), source, why, text)
}

fn index(index: Instruction) -> Piece {
    let why = "the index of memories, read at the start";
    let source = index.scope.split('.').next().unwrap_or(index.scope);
    Piece::prose(Part::FirstMessage, index.path, source, why, index.text)
}

/// The date, and the words between the files.
fn frame(found: &Instructions, date: &str) -> Piece {
    let shown = render_instructions(found);
    let whole = user_context(&[], &shown, &[], date);
    let texts = shown.iter().filter(|file| !file.text.trim().is_empty());
    let frame = texts.fold(whole, |frame, file| frame.replacen(file.text.trim_end(), "", 1));
    Piece::prose(Part::FirstMessage, "date and headings", "built in", "always", frame)
}

fn left_out(tools: &Toolbox, found: &Instructions) -> Vec<(String, String)> {
    let all = Toolbox::builtin();
    let missing = all.descriptors().filter(|tool| tools.find(&tool.name).is_none());
    let missing = missing
        .map(|tool| (tool.name.clone(), "a tool that --tools, a rule or a setting takes away".to_owned()));
    let files = found.left_out.iter().chain(&found.diagnostics);
    missing.chain(files.map(|note| (note.path.display().to_string(), note.message.clone()))).collect()
}
