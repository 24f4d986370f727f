//! Bash: runs a command in a fresh shell, within bounds of time, output and memory.
//!
//! What must stay true:
//! 1. When a call ends by timeout, interrupt or by being dropped, no process it started is left.
//! 2. A call returns when its shell ends, whoever else still holds the pipes.
//! 3. Nothing is inherited: the environment is the host's, the input is empty, there is no terminal.

pub(crate) mod capture;
pub(crate) mod death_watch;
mod editor_terminal;
mod exit_code;
mod file_view;
mod git_config;
mod limits;
mod paths;
pub(crate) mod process_tree;
mod result;
pub(crate) mod run;
pub(crate) mod sandbox_note;
pub(crate) mod shell;

#[cfg(test)]
pub(crate) mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::tool::{
    ASKS_OUTSIDE, CallEffects, CommandEffect, Containment, MainArgument, ToolDescriptor, ToolFacts,
    ToolOutcome,
};
use loci_sandbox::{Printed, SandboxReport};
use loci_shell::{ShellContext, analyse};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::background_tasks::{NewTask, TaskKind};
use crate::{Host, Tool, ToolCall, ToolFuture, ToolProgress, Workspace};
use capture::{Capture, SpillPath, decode};
use limits::{Limits, agent_background_time};
use run::{End, Running, Watch};
use shell::SandboxPlace;

/// The switch that keeps commands out of the background.
pub const DISABLE_BACKGROUND: &str = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS";

/// The Bash tool.
pub(crate) struct Bash {
    descriptor: ToolDescriptor,
    /// Overrides the limit on output, for tests.
    max_bytes: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Input {
    command: String,
    timeout: Option<f64>,
    description: Option<String>,
    #[serde(default)]
    run_in_background: bool,
    #[serde(default, rename = "dangerouslyDisableSandbox")]
    disable_sandbox: bool,
}

impl Input {
    fn from_value(input: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(input)
    }
}

impl Default for Bash {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "Bash".to_owned(),
            aliases: &[],
            description: include_str!("bash.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "The command line, as bash takes it"},
                    "timeout": {
                        "type": "number",
                        "description": "How long it may take, in milliseconds (default 120000, at most 600000)",
                    },
                    "description": {
                        "type": "string",
                        "description": "What the command does, in five to ten plain words, for the user",
                    },
                    "run_in_background": {
                        "type": "boolean",
                        "description": "Return at once and let the command run on as a background task",
                    },
                    "dangerouslyDisableSandbox": {
                        "type": "boolean",
                        "description": "Run outside the sandbox; the user is always asked first",
                    },
                },
                "required": ["command"],
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts {
                is_clearable: true,
                is_bare: true,
                runs_code: true,
                main_argument: Some(MainArgument::alone("command")),
                ..ToolFacts::default()
            },
        };
        Self { descriptor, max_bytes: None }
    }
}

/// Returns the Bash tool of a session in which nothing runs in the background.
pub fn foreground_bash() -> Arc<dyn Tool> {
    let mut bash = Bash::default();
    drop_background(&mut bash.descriptor);
    Arc::new(bash)
}

/// Takes the parameter away that lets a call go on in the background. A model that sends it all the same, since it knows the
/// tool from elsewhere, is not refused for that.
pub(crate) fn drop_background(descriptor: &mut ToolDescriptor) {
    if let Some(properties) = descriptor.input_schema["properties"].as_object_mut() {
        properties.retain(|name, _| name != "run_in_background");
    }
    if let Some(schema) = descriptor.input_schema.as_object_mut() {
        schema.remove("additionalProperties");
    }
}

impl Tool for Bash {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, input: &Value, place: &Workspace) -> CallEffects {
        match Input::from_value(input) {
            Ok(input) => effects(&input, place),
            Err(error) => {
                CallEffects { unknown: vec![format!("unreadable input: {error}")], ..CallEffects::default() }
            }
        }
    }

    fn is_concurrency_safe(&self, input: &Value) -> bool {
        let nowhere = ShellContext { cwd: Path::new("/"), home: Path::new("/") };
        Input::from_value(input).is_ok_and(|input| {
            !input.run_in_background
                && !input.disable_sandbox
                && analyse(&input.command, &nowhere).is_read_only()
        })
    }

    fn validate(&self, input: &Value, _host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        let refusal = |text: String| Err(Box::new(ToolOutcome::refusal(text)));
        let input = match Input::from_value(input) {
            Ok(input) => input,
            Err(error) => return refusal(error.to_string()),
        };
        if let Err(why) = check_command(&input.command) {
            return refusal(why);
        }
        Ok(())
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            match Input::from_value(&call.input) {
                Ok(input) => self.run_input(&input, &call, host).await,
                Err(error) => ToolOutcome::invalid_input(error.to_string()),
            }
        })
    }
}

/// Says why a text is no command.
pub(crate) fn check_command(command: &str) -> Result<(), String> {
    if command.trim().is_empty() {
        return Err("The command is empty. Give a command to run.".to_owned());
    }
    match command.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        Some(c) => Err(format!("The command contains the control character {c:?}. Write it as an escape.")),
        None => Ok(()),
    }
}

/// Returns what a command would do in the background.
pub(crate) fn background_effects(command: &str, place: &Workspace) -> CallEffects {
    effects(&in_background(command.to_owned()), place)
}

/// Starts a command whose complaints go to a file of their own, in the sandbox where the call is to run there; returns it
/// with what keeps its output, and that file, which lies where the command may write. The error says why not.
pub(crate) fn start_with_stderr(
    command: &str,
    file_name: &str,
    call: &ToolCall,
    host: &dyn Host,
) -> Result<(Running, Capture, PathBuf), String> {
    let failed = |error: io::Error| format!("The command could not be started: {error}");
    let sandbox = sandbox_of(call, host)?;
    let dir = match &sandbox {
        Some(place) => place.sandbox.make_scratch(),
        None => host.task_dir(),
    };
    let stderr = dir.map_err(failed)?.join(file_name);
    let file = stderr.display().to_string().replace('\'', r"'\''");
    let input = in_background(format!("exec 2>>'{file}'; {command}"));
    let (_, running) = start(&input, host, sandbox.as_ref()).map_err(failed)?;
    Ok((running, Capture::new(Limits::new(&host.env().vars, None).capture()), stderr))
}

fn in_background(command: String) -> Input {
    Input { command, timeout: None, description: None, run_in_background: true, disable_sandbox: false }
}

fn effects(input: &Input, place: &Workspace) -> CallEffects {
    let reading = analyse(&input.command, &ShellContext { cwd: &place.cwd, home: &place.home });
    let mut effects =
        CallEffects { unclear: reading.unclear, unknown: reading.unknown, ..CallEffects::default() };
    effects.reads = paths::resolve_all(&reading.reads, &mut effects.unknown);
    effects.writes = paths::resolve_all(&reading.writes, &mut effects.unknown);
    effects.redirects = paths::resolve_all(&reading.redirects, &mut effects.unknown);
    effects.removals = paths::removals(reading.removals, &mut effects.unknown);
    let removed = effects.removals.iter().filter_map(|removal| removal.target.clone());
    let moved = paths::resolve_all(&reading.moves, &mut effects.unknown);
    effects.writes.extend(removed.chain(moved).flat_map(|dir| paths::protected_in(&dir)));
    let is_harmless = |program: &str| match program {
        "git" => git_config::runs_no_programs(place),
        // Between directories, diff follows the links in them.
        "diff" => !effects.reads.iter().any(|read| read.real.is_dir()),
        _ => true,
    };
    let commands = reading.commands.into_iter().map(|command| CommandEffect {
        is_read_only: command.is_read_only && !input.run_in_background && is_harmless(&command.program),
        is_edit: command.is_edit && !input.run_in_background,
        runs_unknown: command.runs_unknown,
        text: command.text,
        cover: command.cover,
        readings: command.readings,
    });
    effects.commands = commands.collect();
    if input.disable_sandbox {
        effects.unknown.push(ASKS_OUTSIDE.to_owned());
    }
    effects
}

/// A foreground call with all that its parts need.
struct Foreground<'a> {
    input: &'a Input,
    call: &'a ToolCall,
    host: &'a dyn Host,
    limits: Limits,
    cwd: Cwd,
    sandbox: Option<SandboxPlace>,
}

/// Where a command runs.
struct Cwd {
    path: PathBuf,
    /// Whether the directory of the last command is gone, so that this is another.
    is_moved: bool,
}

impl Bash {
    async fn run_input(&self, input: &Input, call: &ToolCall, host: &dyn Host) -> ToolOutcome {
        let limits = Limits::new(&host.env().vars, input.timeout);
        let limits = Limits { max_bytes: self.max_bytes.unwrap_or(limits.max_bytes), ..limits };
        let view = file_view::recognise(&input.command, host);
        let sandbox = match sandbox_of(call, host) {
            Ok(sandbox) => sandbox,
            Err(why) => return ToolOutcome::error(why),
        };
        let editor = host.editor().filter(|editor| editor.abilities().runs_commands);
        if let Some(editor) = editor.filter(|_| sandbox.is_none() && !input.run_in_background) {
            return editor_terminal::run(input, call, host, editor, limits).await;
        }
        let (cwd, running) = match start(input, host, sandbox.as_ref()) {
            Ok(started) => started,
            Err(error) => return ToolOutcome::error(format!("Failed to run the command: {error}")),
        };
        let capture = Capture::new(limits.capture());
        if input.run_in_background && may_background(host) {
            let what = "The command runs in the background";
            let outcome = to_background(what, input, call, host, running, capture).await;
            prepare_next(sandbox.as_ref());
            return outcome;
        }
        let foreground = Foreground { input, call, host, limits, cwd, sandbox };
        let outcome = foreground.run(running, capture).await;
        prepare_next(foreground.sandbox.as_ref());
        if let Some((view, stdout)) = view.zip(result::whole_output(&outcome)) {
            view.remember(stdout, host).await;
        }
        outcome
    }
}

impl Foreground<'_> {
    async fn run(&self, mut running: Running, mut capture: Capture) -> ToolOutcome {
        let Self { input, call, host, limits, .. } = *self;
        let watch = Watch {
            deadline: Some(Instant::now() + limits.timeout),
            cancel: &call.cancel,
            to_background: may_background(host).then_some(&call.to_background),
            max_bytes: limits.max_bytes,
            spill: &|| host.spill_path(&call.id),
            progress: &|news| host.progress(&call.id, ToolProgress::Output(decode(news))),
        };
        let seconds = limits.timeout.as_millis() as f64 / 1000.0;
        let why = match running.follow(&mut capture, &watch).await {
            End::Exited(status) => {
                return self.exited(run::exit_code(status), running, capture, watch.spill).await;
            }
            End::TimedOut if may_linger(&input.command, host) => {
                let what = format!("After {seconds} s the command goes on in the background");
                return to_background(&what, input, call, host, running, capture).await;
            }
            End::Backgrounded => {
                let what = "The user moved the command to the background, where it goes on";
                let mut outcome = to_background(what, input, call, host, running, capture).await;
                if outcome.structured.is_object() {
                    outcome.structured["backgroundedByUser"] = Value::Bool(true);
                }
                return outcome;
            }
            End::TimedOut => {
                format!(
                    "The command did not end within {seconds} s and was stopped, with everything it had started."
                )
            }
            End::Cancelled => "The command was interrupted before it ended.".to_owned(),
            End::TooMuch => {
                format!("The command was stopped: it wrote more than {} bytes of output.", limits.max_bytes)
            }
            End::Lost(error) => format!("The command was lost: {error}"),
        };
        let refused_hosts = running.refused_hosts();
        running.kill(&mut capture, &watch).await;
        let note = self.refusals(&capture, refused_hosts, true);
        result::failure(&why, capture, note, watch.spill).await
    }

    async fn exited(
        &self,
        code: i32,
        mut running: Running,
        capture: Capture,
        spill: SpillPath<'_>,
    ) -> ToolOutcome {
        let note = self.settle_cwd(running.last_cwd());
        let report = running.sandbox_report().await;
        if let Some(why) = report.as_ref().and_then(SandboxReport::why_not_run) {
            running.release();
            return ToolOutcome::error(sandbox_note::not_run(&why));
        }
        let refused_hosts = report.as_ref().map(|it| it.refused_hosts.clone()).unwrap_or_default();
        let note = sandbox_note::with_removed(note, report);
        if running.has_open_pipes() {
            self.host.tasks().adopt(running);
        } else {
            running.release();
        }
        let command = &self.input.command;
        let answer = exit_code::meaning(command, code);
        let has_failed = code != 0 && answer.is_none();
        let note = sandbox_note::joined(note, self.refusals(&capture, refused_hosts, has_failed));
        if !has_failed {
            return result::success(command, capture, self.limits.output_chars, answer, note, spill).await;
        }
        let explanation = exit_code::explanation(code).unwrap_or_default();
        let first_line = result::join(&format!("Exit code {code}"), &explanation);
        result::failure(&first_line, capture, note, spill).await
    }

    /// Returns what the sandbox may have refused a command that has ended, whether it worked or not.
    fn refusals(&self, capture: &Capture, refused_hosts: Vec<String>, has_failed: bool) -> Option<String> {
        let place = self.sandbox.as_ref()?;
        let output = result::join(&capture.stdout.text(), &capture.stderr.text());
        let command = &self.input.command;
        let printed = Printed { command, output: &output, cwd: &self.cwd.path, has_failed };
        let wants_outside = self.input.disable_sandbox;
        sandbox_note::refusals(sandbox_note::Ended { printed, refused_hosts, wants_outside }, place)
    }

    /// Moves the session to where the command ended, or says that it stays.
    fn settle_cwd(&self, ended: Option<PathBuf>) -> Option<String> {
        let (host, cwd) = (self.host, &self.cwd.path);
        if self.cwd.is_moved {
            host.set_cwd(cwd.clone());
        }
        let reset = || Some(format!("Shell cwd was reset to {}", cwd.display()));
        let is_same = |ended: &PathBuf| ended == cwd || cwd.canonicalize().is_ok_and(|cwd| cwd == *ended);
        let Some(ended) = ended.filter(|ended| !is_same(ended)) else {
            return if self.cwd.is_moved { reset() } else { None };
        };
        let stays = host.env().vars.is_truthy("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR");
        if stays || !host.workspace().contains_path(&ended) {
            return reset();
        }
        host.set_cwd(ended);
        None
    }
}

/// Returns what a call runs in: what was judged holds, and where nobody has judged it runs inside.
fn sandbox_of(call: &ToolCall, host: &dyn Host) -> Result<Option<SandboxPlace>, String> {
    match (host.sandbox(), &call.effects.containment) {
        (Some(_), Containment::Outside(_)) | (None, Containment::Unsaid | Containment::Outside(_)) => {
            Ok(None)
        }
        (Some(sandbox), Containment::Inside | Containment::Unsaid) => {
            let dirs = host.workspace().dirs().map(Path::to_path_buf).collect();
            Ok(Some(SandboxPlace { sandbox, dirs }))
        }
        (None, Containment::Inside) => Err(sandbox_note::not_run("the session has no sandbox any more")),
    }
}

fn start(input: &Input, host: &dyn Host, sandbox: Option<&SandboxPlace>) -> io::Result<(Cwd, Running)> {
    let place = host.workspace();
    let is_moved = !place.cwd.is_dir();
    let path = if is_moved { place.project } else { place.cwd };
    if !path.is_dir() {
        let text = format!("the directory `{}` does not exist any more", path.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    // The command writes it, so that it lies where the command may write.
    let dir = match sandbox {
        Some(place) => place.sandbox.make_scratch()?,
        None => host.task_dir()?,
    };
    let cwd_file = tempfile::Builder::new().prefix("cwd-").tempfile_in(dir)?;
    let running = shell::launch(shell::Launch {
        command: &input.command,
        cwd: &path,
        env: host.child_env(),
        cwd_file: cwd_file.into_temp_path(),
        death_watch: host.tasks().death_watch(),
        sandbox,
    })?;
    Ok((Cwd { path, is_moved }, running))
}

/// Has the helper of the next command start while the model thinks.
fn prepare_next(place: Option<&SandboxPlace>) {
    if let Some(place) = place {
        drop(place.sandbox.prepare_next());
    }
}

/// Tells whether anything may run in the background.
pub fn may_background(host: &dyn Host) -> bool {
    !host.env().vars.is_truthy(DISABLE_BACKGROUND)
}

fn may_linger(command: &str, host: &dyn Host) -> bool {
    may_background(host) && !exit_code::must_not_linger(command)
}

/// Makes a running command a background task and tells the model.
async fn to_background(
    what: &str,
    input: &Input,
    call: &ToolCall,
    host: &dyn Host,
    running: Running,
    capture: Capture,
) -> ToolOutcome {
    let id = host.env().random.alphanumeric(9);
    let task = host.task_dir().map(|dir| NewTask {
        output: dir.join(format!("{id}.output")),
        id: id.clone(),
        kind: TaskKind::Shell,
        tool_use_id: call.id.clone(),
        command: input.command.clone(),
        description: input.description.clone().unwrap_or_default(),
    });
    // What the main conversation starts runs as long as the session does.
    let limit = (!host.tasks().is_main()).then(|| agent_background_time(&host.env().vars));
    let started = match task {
        Ok(task) => host.tasks().start(task, running, capture, limit).await,
        Err(error) => Err(error),
    };
    match started {
        Ok(output) => backgrounded(what, &id, &output),
        Err(error) => ToolOutcome::error(format!(
            "The command was stopped: it could not run in the background because its output file failed: {error}"
        )),
    }
}

fn backgrounded(what: &str, id: &str, output: &Path) -> ToolOutcome {
    let text = format!(
        "{what} as task {id}. Its output goes to {}; read that file or use TaskOutput to follow it, and TaskStop to \
         end it.",
        output.display()
    );
    let structured = json!({
        "stdout": "",
        "stderr": "",
        "interrupted": false,
        "isImage": false,
        "noOutputExpected": false,
        "backgroundTaskId": id,
    });
    ToolOutcome { is_error: Some(false), ..ToolOutcome::text(text, structured) }
}
