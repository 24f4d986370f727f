//! `loci hooks test`: runs the hooks that a made-up event concerns.

use loci_app::UserError;
use loci_app::compose::child_env::child_env;
use loci_core::hooks::{CommonInput, HandlerEnd, HookEvent, HookInput, SettingsHooks, ToolFields, example};
use loci_core::ids::SessionId;
use loci_engine::{HookTrial, HookTrialWorld, try_hooks};
use loci_stdx::single_line;
use loci_tools::{Toolbox, Workspace};
use serde_json::{Value, json};

use super::entry_json;
use crate::config::{SettingsContext, pretty};

/// The most letters of an output that are shown.
const MOST_LETTERS: usize = 2000;

/// The session that handlers are told of.
const SESSION: &str = "00000000-0000-4000-8000-000000000000";

#[derive(Debug, clap::Args)]
pub(super) struct TrialArgs {
    /// The event, such as PreToolUse.
    event: String,
    /// The tool that is called, for events of calls.
    #[arg(long, value_name = "NAME", default_value = "Bash")]
    tool: String,
    /// Its arguments, as a JSON object.
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// What the matcher of other events is compared with, such as `startup` or `manual`.
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(
    ctx: &SettingsContext,
    hooks: SettingsHooks,
    args: &TrialArgs,
) -> Result<String, UserError> {
    let event = HookEvent::parse(&args.event).ok_or_else(|| {
        let names: Vec<&str> = HookEvent::ALL.into_iter().map(HookEvent::name).collect();
        UserError::new(format!("No such event: `{}`", args.event))
            .hint(format!("The events are: {}", names.join(", ")))
    })?;
    let input = payload(ctx, event, args)?;
    let (book, _) = crate::permissions::rulebook(ctx, None);
    let workspace = Workspace {
        cwd: ctx.env.cwd.clone(),
        project: ctx.env.cwd.clone(),
        extra_dirs: Vec::new(),
        home: ctx.env.home.clone(),
    };
    let toolbox = Toolbox::with_record(None);
    let effects = input
        .event
        .tool()
        .and_then(|call| Some(toolbox.find(&call.tool_name)?.effects(&call.tool_input, &workspace)));
    let session = SessionId::parse(SESSION).map_err(|error| UserError::from_error(&error))?;
    let settings = ctx.loaded.settings();
    let make_sandbox =
        loci_app::permissions::sandbox::sandbox_maker_in(&ctx.env, &ctx.home, &settings, SESSION);
    let world = HookTrialWorld {
        sandbox_maker: Some(make_sandbox),
        session,
        env: ctx.env.clone(),
        child_env: child_env(&ctx.env),
        home: ctx.home.clone(),
        rulebook: book,
    };
    let runtime = crate::runtime::of_session()?;
    let trial = runtime.block_on(try_hooks(hooks.config, world, input.clone(), effects));
    Ok(if args.json { pretty(&to_json(&input, &trial)) } else { to_text(&input, &trial) })
}

fn payload(ctx: &SettingsContext, event: HookEvent, args: &TrialArgs) -> Result<HookInput, UserError> {
    let tool_input = match &args.input {
        Some(text) => serde_json::from_str(text).map_err(|error| {
            UserError::new(format!("The input is not JSON: {error}")).hint("Give --input a JSON object.")
        })?,
        None if args.tool == "Bash" => json!({"command": "true", "description": "An example"}),
        None => json!({"file_path": ctx.env.cwd.join("example.txt")}),
    };
    let session = SESSION;
    let common = CommonInput {
        session_id: session.to_owned(),
        transcript_path: ctx.home.root().join("projects").join("example").join(format!("{session}.jsonl")),
        cwd: ctx.env.cwd.clone(),
        ..CommonInput::default()
    };
    let tool = ToolFields { tool_name: args.tool.clone(), tool_input };
    Ok(example(event, common, tool, args.subject.as_deref()))
}

fn to_text(input: &HookInput, trial: &HookTrial) -> String {
    let mut out = format!("stdin: {}\n", input.to_json());
    if trial.runs.is_empty() {
        return out + "No hook that counts matches\n";
    }
    for run in &trial.runs {
        let entry = &run.entry;
        out += &format!("\n{} {}  ({})\n", entry.kind(), single_line(&entry.label(), 100), entry.source);
        out += &format!("  {} after {} ms\n", end_text(&run.end), run.taken.as_millis());
        if let HandlerEnd::Exited { stdout, stderr, .. } = &run.end {
            for (name, text) in [("stdout", stdout), ("stderr", stderr)] {
                let shown: String = text.trim_end().chars().take(MOST_LETTERS).collect();
                out += &shown
                    .lines()
                    .map(|line| format!("  {name}: {}\n", loci_stdx::printable(line)))
                    .collect::<String>();
            }
        }
    }
    out + &format!("\ndecision: {}\n", decision_text(trial))
}

fn end_text(end: &HandlerEnd) -> String {
    match end {
        HandlerEnd::Exited { code, .. } => format!("exit code {code}"),
        HandlerEnd::Responded { status, .. } => format!("status {status}"),
        HandlerEnd::Replied(_) => "answered".to_owned(),
        HandlerEnd::Judged { is_ok, reason, .. } => {
            format!("judged {} {reason}", if *is_ok { "fine" } else { "not fine:" })
        }
        HandlerEnd::TimedOut { .. } => "did not end in time".to_owned(),
        HandlerEnd::Failed(why) => format!("failed: {why}"),
        HandlerEnd::Cancelled => "was stopped".to_owned(),
    }
}

fn decision_text(trial: &HookTrial) -> String {
    let decision = &trial.decision;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(decision.stop.as_ref().map(|why| format!("the turn ends: {why}")));
    parts.extend(decision.block.as_ref().map(|why| format!("blocked: {why}")));
    parts.extend(decision.permission.as_ref().map(|(word, why)| format!("{word:?} {why}").to_lowercase()));
    parts.extend(decision.input.as_ref().map(|input| format!("other input: {input}")));
    parts.extend(decision.context.iter().map(|text| format!("the model is told: {text}")));
    parts.extend(decision.messages.iter().map(|text| format!("you are told: {text}")));
    match parts.is_empty() {
        true => "nothing speaks against it".to_owned(),
        false => parts.join("; "),
    }
}

fn to_json(input: &HookInput, trial: &HookTrial) -> Value {
    let runs = trial.runs.iter().map(|run| {
        let mut row = entry_json(&run.entry);
        row["end"] = end_text(&run.end).into();
        row["milliseconds"] = (run.taken.as_millis() as u64).into();
        if let HandlerEnd::Exited { code, stdout, stderr } = &run.end {
            row["exitCode"] = (*code).into();
            row["stdout"] = stdout.as_str().into();
            row["stderr"] = stderr.as_str().into();
        }
        row
    });
    json!({"stdin": input.to_value(), "runs": runs.collect::<Vec<_>>(), "decision": decision_text(trial)})
}
