//! `loci -p`: one prompt, or a stream of them, without a terminal interface.

use std::ffi::OsString;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loci_app::commands::SessionCommands;
use loci_app::sessions::retention;
use loci_app::sessions::worktree::enter_worktree;
use loci_app::settings::editor::SettingsInputs;
use loci_app::start::{PreparedSession, SessionStart, StartFailure};
use loci_app::{
    COMPATIBLE_VERSION, FlagSettings, RunOptions, TraceFilter, TraceLevel, TraceOptions, TraceTarget,
    UserError,
};
use loci_core::permission::Mode;
use loci_core::user_question::answer_timeout;
use loci_engine::{ClientMessage, InitializeRequest, LoadedHistory, Prompt, resume_prompt};
use loci_stdx::{Env, Timestamp};
use loci_storage::config::SkillsPrefetch;
use loci_storage::layout::ConfigHome;
use loci_wire::{ClientInput, Headless, InputFormat, OutputFormat};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::args::{Args, Input, Output};
use crate::permission_prompter::permission_prompter;
use crate::print::{self, print_message};
use crate::runtime;

/// The most of a piped prompt that is read.
const STDIN_LIMIT: u64 = 10 * 1024 * 1024;

/// How old a turn may be that goes on by itself where the limit is no number.
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Begins to read the user's skills where the words of the command line ask for a run without a terminal. Which of them count,
/// and whether any do, is decided once all is known.
pub(crate) fn begin_skills(line: &[OsString], env: &Env) -> Option<SkillsPrefetch> {
    let has = |words: &[&str]| line.iter().any(|it| words.iter().any(|word| it == word));
    let is_wanted = has(&["-p", "--print"]) && !has(&["--bare"]);
    is_wanted.then(|| SkillsPrefetch::start(ConfigHome::from_env(env).root().join("skills"))).flatten()
}

/// Runs without a terminal and returns the exit code; the reading of the user's skills may be under way.
pub(crate) fn run(
    mut inherited: Env,
    args: Args,
    started: Instant,
    skills: Option<SkillsPrefetch>,
) -> Result<u8, UserError> {
    args.check().map_err(UserError::new)?;
    let mut options = args.options()?;
    if let Some(name) = &args.worktree {
        inherited = enter_worktree(&inherited, &mut options, name, crate::tell_waiting)?;
    }
    args.foreign.tell_notices();
    let mut early = None;
    let mut runtime = None;
    // Whom the conversation runs as may be an agent that the client brings.
    let may_run_as_clients = args.agent.is_some() && args.prompt.is_none();
    if (args.client.await_initialize || may_run_as_clients) && args.input_format == Input::StreamJson {
        let first = runtime::of_session()?;
        early = Some(first.block_on(first_request(&mut options)));
        runtime = Some(first);
    }
    let mut start = SessionStart::new(inherited, options, None, started).unattended().with_skills(skills);
    let client_requests = (args.input_format == Input::StreamJson).then(|| start.connect_client());
    let inputs = start.read_settings()?;
    let env = inputs.env().clone();
    let prompt = match args.input_format {
        Input::Text if args.init_only => None,
        Input::Text => {
            let text = read_prompt(&env, args.prompt.as_deref(), args.continues())?;
            text.as_deref().map(Prompt::text)
        }
        Input::StreamJson => args.prompt.as_deref().map(Prompt::text),
    };
    let prepared = start.traced(trace_options(&env, &args)).prepare_from(inputs);
    let mut prepared = match prepared {
        Ok(prepared) => prepared,
        Err(StartFailure::Past { error, .. }) if args.continues() => {
            return report(&env, &args, prompt, error);
        }
        Err(failure) => return Err(failure.into()),
    };
    let history = &mut prepared.composed.config.history;
    let goes_on = prompt.is_none() && !args.init_only && goes_on_by_itself(&prepared.env, history);
    if goes_on {
        history.keep_turn_open();
    }
    let needs_prompt = args.input_format == Input::Text && !args.init_only && !goes_on;
    if needs_prompt && prompt.is_none() && history.deferred_call().is_none() {
        return Err(no_prompt());
    }
    let (env, home, keeps_days) = (prepared.env.clone(), prepared.home.clone(), prepared.cleanup_period_days);
    let run = Run { env: &env, args: &args, client_requests, early, goes_on };
    let runtime = match runtime {
        Some(runtime) => runtime,
        None => runtime::of_session()?,
    };
    let exit = runtime.block_on(run.serve(prompt, prepared));
    retention::sweep(&env, &home, keeps_days);
    // Standard input may still be waited for by a thread that nothing can wake.
    runtime.shutdown_background();
    exit
}

/// Tells whether a session that ended in the middle of a turn goes on with it though nobody says so
/// (`CLAUDE_CODE_RESUME_INTERRUPTED_TURN`), unless that is too long ago.
fn goes_on_by_itself(env: &Env, history: &LoadedHistory) -> bool {
    if !env.vars.is_truthy("CLAUDE_CODE_RESUME_INTERRUPTED_TURN") || !history.is_cut_short() {
        return false;
    }
    let said = env.vars.non_empty("CLAUDE_CODE_RESUME_INTERRUPTED_TURN_MAX_AGE_MS");
    let most = said.map(|text| text.trim().parse::<i64>().ok().filter(|ms| *ms >= 0).unwrap_or(HOUR_MS));
    let Some(most) = most.filter(|most| *most > 0) else { return true };
    let last = history.path.last().and_then(|entry| entry.fields().read::<String>("timestamp"));
    let last = last.and_then(|text| text.parse::<Timestamp>().ok());
    last.is_some_and(|at| env.clock.now().as_millisecond().saturating_sub(at.as_millisecond()) <= most)
}

/// Returns what is to be traced, if the arguments or the environment ask for that.
pub(crate) fn trace_options(env: &Env, args: &Args) -> Option<TraceOptions> {
    let file = env.vars.non_empty("CLAUDE_CODE_DEBUG_LOGS_DIR").map(PathBuf::from);
    let is_wanted = args.debug.is_some()
        || args.debug_file.is_some()
        || args.debug_to_stderr
        || env.vars.is_truthy("DEBUG");
    is_wanted.then(|| TraceOptions {
        filter: TraceFilter::parse(args.debug.as_deref().unwrap_or_default()),
        level: TraceLevel::parse(env.vars.non_empty("CLAUDE_CODE_DEBUG_LOG_LEVEL").unwrap_or_default()),
        to: match args.debug_file.clone().or(file) {
            _ if args.debug_to_stderr => TraceTarget::Stderr,
            Some(file) => TraceTarget::File(file),
            None => TraceTarget::Session,
        },
    })
}

/// What a run needs beside its composition.
struct Run<'a> {
    env: &'a Env,
    args: &'a Args,
    client_requests: Option<UnboundedReceiver<ClientMessage>>,
    /// What was heard of the client before anything was read, where it asked to be waited for.
    early: Option<EarlyInput>,
    /// Whether the turn that was cut short goes on without a prompt.
    goes_on: bool,
}

/// The client's lines, with the request that they began with.
struct EarlyInput {
    input: ClientInput,
    initialize: Option<InitializeRequest>,
}

/// Waits for the client's first line, and takes from it what counts before settings are read: plugins, MCP servers, agents.
async fn first_request(options: &mut RunOptions) -> EarlyInput {
    let mut input = ClientInput::stdin();
    let initialize = input.initialize().await;
    if let Some(request) = &initialize {
        options.plugin_dirs.extend(request.plugin_dirs.iter().cloned());
        options.plugin_dirs_without_servers.extend(request.plugin_dirs_without_servers.iter().cloned());
        options.client_agents.clone_from(&request.agents);
        if !request.mcp_servers.is_empty() {
            options.mcp.configs.push(serde_json::json!({"mcpServers": request.mcp_servers}).to_string());
        }
    }
    EarlyInput { input, initialize }
}

impl Run<'_> {
    async fn serve(mut self, prompt: Option<Prompt>, mut prepared: PreparedSession) -> Result<u8, UserError> {
        let mut stderr = print::stderr();
        let composed = &mut prepared.composed;
        tell(&std::mem::take(&mut composed.warnings));
        let is_early = self.early.is_some();
        let EarlyInput { mut input, initialize } = self.early.take().unwrap_or_else(|| EarlyInput {
            input: match self.args.input_format {
                Input::Text => ClientInput::none(),
                Input::StreamJson => ClientInput::stdin(),
            },
            initialize: None,
        });
        let mcp = composed.config.mcp.clone();
        if let Some(mcp) = &mcp {
            mcp.servers.start();
        }
        let initialize = match prompt {
            None if !is_early => input.initialize().await,
            // What is to be done is known; nobody is waited for.
            None | Some(_) => initialize,
        };
        warn_of_previews(self.env);
        if let Some(request) = &initialize {
            warn_of_late_parts(request, is_early);
            prepared.options.take_initialize(request.clone());
            composed.take_initialize(&prepared.options).await?;
            tell(&std::mem::take(&mut composed.warnings));
        }
        let prompt = prompt.or_else(|| self.goes_on.then(|| Prompt::text(resume_prompt(&self.env.vars))));
        let identity = &composed.config.identity;
        let forwards_agent_text = self.args.forward_subagent_text
            || self.env.vars.is_truthy("CLAUDE_CODE_FORWARD_SUBAGENT_TEXT")
            || initialize.as_ref().is_some_and(|request| request.forwards_subagent_text);
        let suggests_prompts = self.args.client.suggests_prompts()
            || initialize.as_ref().is_some_and(|request| request.wants_prompt_suggestions);
        let front = Headless {
            forwards_agent_text,
            suggests_prompts,
            question_timeout: answer_timeout(
                composed.config.settings["askUserQuestionTimeout"].as_str(),
                self.env.vars.non_empty("CLAUDE_AFK_TIMEOUT_MS"),
            ),
            api_key_source: composed.config.api_key_source.clone(),
            models: composed.models.clone(),
            output_style: composed.config.output_style.clone(),
            output_styles: Arc::clone(&composed.style_names),
            may_bypass: composed.may_bypass,
            mode: composed.config.rulebook.mode,
            initialize,
            has_awaited_initialize: is_early,
            client_requests: self.client_requests,
            flag_settings: prepared.options.flag_settings.clone(),
            session_commands: SessionCommands {
                settings: SettingsInputs::from_options(self.env, &prepared.options),
                plugin_reload: Some(composed.plugin_reload.clone()),
                ..session_commands(self.env)
            },
            ..headless(self.env, self.args, prompt, identity.id().clone())
        };
        if let Some(mcp) = &mcp {
            // Those that the client has brought.
            mcp.servers.start();
        }
        let started = prepared.begin();
        let exit =
            Box::pin(front.run(started.session, input, print::stdout(), &mut stderr, Some(started.renew)))
                .await;
        if let Some(mcp) = mcp {
            mcp.servers.shutdown().await;
        }
        Ok(exit.code())
    }
}

/// Tells people what they should know.
fn tell(warnings: &[String]) {
    warnings.iter().for_each(|warning| print_message(warning));
}

/// The format of what options of a question show, by which the TypeScript SDK passes `toolConfig` on.
const PREVIEW_FORMAT: &str = "CLAUDE_CODE_QUESTION_PREVIEW_FORMAT";

/// Tells that previews stay what they are where another format is asked for.
fn warn_of_previews(env: &Env) {
    if env.vars.non_empty(PREVIEW_FORMAT).is_some_and(|format| format != "markdown") {
        print_message(&format!(
            "toolConfig.askUserQuestion.previewFormat ({PREVIEW_FORMAT}) has no effect in loci: previews are Markdown"
        ));
    }
}

/// Says what of a request came too late to count: what a run has to know before it reads its settings.
fn warn_of_late_parts(request: &InitializeRequest, is_early: bool) {
    let parts =
        [("plugins", !request.plugin_dirs.is_empty()), ("mcpServers", !request.mcp_servers.is_empty())];
    for (part, _) in parts.into_iter().filter(|(_, is_given)| *is_given && !is_early) {
        print_message(&format!("initialize.{part} has no effect without --await-initialize"));
    }
}

fn headless(env: &Env, args: &Args, prompt: Option<Prompt>, session: loci_core::ids::SessionId) -> Headless {
    Headless {
        env: env.clone(),
        session,
        output: match args.output_format {
            Output::Text => OutputFormat::Text,
            Output::Json => OutputFormat::Json,
            Output::StreamJson => OutputFormat::StreamJson,
        },
        is_terminal: print::is_stdout_terminal(),
        input: match args.input_format {
            Input::Text => InputFormat::Text,
            Input::StreamJson => InputFormat::StreamJson,
        },
        has_partial_messages: args.include_partial_messages,
        has_hook_events: args.include_hook_events,
        forwards_agent_text: args.forward_subagent_text,
        suggests_prompts: args.client.suggests_prompts(),
        replays_prompts: args.replay_user_messages,
        prompter: permission_prompter(args),
        may_bypass: false,
        mode: Mode::Default,
        version: COMPATIBLE_VERSION.to_owned(),
        api_key_source: "none".to_owned(),
        models: Vec::new(),
        output_style: String::new(),
        output_styles: Arc::new(Vec::new),
        prompt,
        question_timeout: None,
        initialize: None,
        has_awaited_initialize: false,
        client_requests: None,
        flag_settings: FlagSettings::default(),
        session_commands: session_commands(env),
    }
}

fn session_commands(env: &Env) -> SessionCommands {
    SessionCommands {
        env: env.clone(),
        home: ConfigHome::from_env(env),
        build: crate::build_info::describe(),
        settings: SettingsInputs::default(),
        plugin_reload: None,
    }
}

/// A session that cannot be resumed is an error result for programs and a complaint for people.
fn report(env: &Env, args: &Args, prompt: Option<Prompt>, user_error: UserError) -> Result<u8, UserError> {
    let id = loci_core::ids::SessionId::parse(&env.random.uuid_v4().to_string());
    if let Ok(id) = id {
        let front = headless(env, args, prompt, id);
        // Nobody is left to tell when stdout is gone; the complaint follows on stderr.
        drop(front.report_failed_start(user_error.message(), &mut print::stdout()));
    }
    Err(user_error)
}

/// Joins the prompt argument and piped standard input; either alone is enough. A session that goes on may do so without:
/// a call of it may wait to be taken up.
fn read_prompt(env: &Env, argument: Option<&str>, goes_on: bool) -> Result<Option<String>, UserError> {
    let mut stdin = std::io::stdin();
    let mut piped = String::new();
    let has_something = goes_on || argument.is_some_and(|text| !text.trim().is_empty());
    if !stdin.is_terminal() && has_input(env, &stdin, has_something) {
        let mut bytes = Vec::new();
        stdin
            .by_ref()
            .take(STDIN_LIMIT + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| UserError::new(format!("Standard input cannot be read: {error}")))?;
        if bytes.len() as u64 > STDIN_LIMIT {
            return Err(UserError::new("Standard input is larger than 10 MB")
                .hint("Save it to a file and name the file in the prompt."));
        }
        piped = String::from_utf8_lossy(&bytes).into_owned();
    }
    let parts: Vec<&str> =
        [argument.unwrap_or_default(), &piped].into_iter().filter(|part| !part.trim().is_empty()).collect();
    match parts[..] {
        [] if goes_on => Ok(None),
        [] => Err(no_prompt()),
        _ => Ok(Some(parts.join("\n"))),
    }
}

fn no_prompt() -> UserError {
    UserError::new("There is no prompt")
        .hint("Give one as an argument, `loci -p \"your prompt\"`, or pipe one in.")
}

/// How long standard input may be silent beside a prompt.
const STDIN_PATIENCE: Duration = Duration::from_secs(3);
/// The variable that changes it, in milliseconds.
const STDIN_WAIT: &str = "LOCI_STDIN_WAIT_MS";

/// Waits for the first byte or the end of standard input, and tells whether it is to be read.
///
/// Whoever starts loci may have left a pipe open that nobody writes to. Where a prompt is given, that is not waited for;
/// where none is, there is nothing else to do.
fn has_input(env: &Env, stdin: &std::io::Stdin, has_prompt: bool) -> bool {
    let chosen = env.vars.non_empty(STDIN_WAIT).and_then(|text| text.parse().ok());
    let patience = chosen.map_or(STDIN_PATIENCE, Duration::from_millis);
    // What cannot be waited for is read, which says what is wrong.
    if loci_stdx::wait_readable(stdin, patience).unwrap_or(true) {
        return true;
    }
    let seconds = patience.as_secs_f32();
    let (what, hint) = match has_prompt {
        true => ("going on without it", "close it with `< /dev/null`"),
        false => ("still waiting for a prompt there", "give one as an argument, `loci -p \"your prompt\"`"),
    };
    print_message(&format!(
        "Nothing came on standard input for {seconds} seconds: {what} ({hint}; {STDIN_WAIT} waits longer)"
    ));
    !has_prompt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_are_begun_before_the_arguments_are_read_only_where_a_run_may_need_them() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_test(dir.path(), dir.path());
        let begun = |words: &[&str]| {
            let line: Vec<OsString> =
                std::iter::once("loci").chain(words.iter().copied()).map(Into::into).collect();
            begin_skills(&line, &env).is_some()
        };
        assert!(!begun(&["-p", "hi"]), "there are none");
        std::fs::create_dir_all(ConfigHome::from_env(&env).root().join("skills/a")).unwrap();
        for (words, expected) in [
            (&["-p", "hi"][..], true),
            (&["hi", "--print"], true),
            (&["hi"], false),
            (&["skills", "list"], false),
            (&["-p", "hi", "--bare"], false),
        ] {
            assert_eq!(begun(words), expected, "{words:?}");
        }
    }
}
