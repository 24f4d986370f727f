//! The command line, as written; what it means is decided elsewhere.

mod client;
mod foreign;
mod foreign_verbs;
mod mistyped_verb;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use loci_core::permission::Mode;

pub(crate) use client::{ClientFlags, PermissionPrompts, ThinkingMode};
pub(crate) use foreign::ForeignFlags;
pub(crate) use foreign_verbs::refuse_foreign_verb;
pub(crate) use mistyped_verb::refuse_mistyped_verb;

/// A terminal coding agent.
#[derive(Debug, Parser)]
#[command(
    name = "loci",
    disable_version_flag = true,
    args_conflicts_with_subcommands = true,
    args_override_self = true
)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    args: Args,

    #[command(subcommand)]
    subcommand: Option<Subcommand>,
}

/// The words that are or may be subcommands. Where none of them is given, subcommands are not even described: that is half of
/// the work of reading a command line.
const SUBCOMMANDS: [&str; 26] = [
    "acp",
    "agents",
    "auth",
    "blame",
    "completions",
    "config",
    "context",
    "demo",
    "doctor",
    "help",
    "hooks",
    "login",
    "logout",
    "man",
    "mcp",
    "memory",
    "models",
    "permissions",
    "plugin",
    "plugins",
    "reset-terminal",
    "sandbox",
    "serve",
    "sessions",
    "skills",
    "stats",
];

impl CommandLine {
    /// Reads a command line, the program's name first. What is wrong is said by the whole definition.
    pub(crate) fn read(line: &[OsString]) -> Result<(Args, Option<Subcommand>), clap::Error> {
        let line = &plugin_dirs_last(line);
        let may_be_subcommand =
            |word: &OsString| word.to_str().is_some_and(|word| SUBCOMMANDS.contains(&word));
        if !line.iter().skip(1).any(may_be_subcommand)
            && let Ok(args) = Args::try_parse_from(line)
        {
            return Ok((args, None));
        }
        let line = Self::try_parse_from(line)?;
        Ok((line.args, line.subcommand))
    }
}

/// Puts the `--plugin-dir` that stands before `plugin list` or `plugin details` behind them: it says what they are about.
fn plugin_dirs_last(line: &[OsString]) -> Vec<OsString> {
    const FLAG: &str = "--plugin-dir";
    let mut n_words = 1;
    while let Some(word) = line.get(n_words).and_then(|word| word.to_str()) {
        match word.strip_prefix(FLAG) {
            Some("") => n_words += 2,
            Some(rest) if rest.starts_with('=') => n_words += 1,
            _ => break,
        }
    }
    let verb = |idx: usize| line.get(idx).and_then(|word| word.to_str()).unwrap_or_default();
    let is_about_plugins =
        matches!(verb(n_words), "plugin" | "plugins") && matches!(verb(n_words + 1), "list" | "details");
    if n_words == 1 || !is_about_plugins {
        return line.to_vec();
    }
    [&line[..1], &line[n_words..], &line[1..n_words]].concat()
}

/// What a run is started with.
#[derive(Debug, Parser)]
#[command(name = "loci", disable_version_flag = true, args_override_self = true)]
pub(crate) struct Args {
    /// What to do; piped standard input is added to it.
    pub(crate) prompt: Option<String>,

    /// Print the answer and exit, with no terminal interface.
    #[arg(short, long)]
    pub(crate) print: bool,

    /// How answers are written.
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub(crate) output_format: Output,

    /// How prompts are read.
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub(crate) input_format: Input,

    /// With stream-json: pass the model's events on as they arrive.
    #[arg(long)]
    pub(crate) include_partial_messages: bool,

    /// Run the `Setup` hooks first, to make the project ready.
    #[arg(long)]
    pub(crate) init: bool,

    /// Run the `Setup` and `SessionStart` hooks, and nothing else.
    #[arg(long)]
    pub(crate) init_only: bool,

    /// Run the `Setup` hooks first, to look after the project.
    #[arg(long)]
    pub(crate) maintenance: bool,

    /// With stream-json: tell of every hook that is run.
    #[arg(long)]
    pub(crate) include_hook_events: bool,

    /// With stream-json both ways: echo each accepted prompt.
    #[arg(long)]
    pub(crate) replay_user_messages: bool,

    /// Say more; needed for stream-json output.
    #[arg(long)]
    pub(crate) verbose: bool,

    /// The model: an alias (opus, sonnet, haiku) or an id.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Models to take when the first is overloaded, separated by commas.
    #[arg(long, value_name = "MODELS")]
    pub(crate) fallback_model: Option<String>,

    /// How hard the model thinks: low, medium, high, xhigh or max.
    #[arg(long, value_parser = ["low", "medium", "high", "xhigh", "max"], value_name = "LEVEL")]
    pub(crate) effort: Option<String>,

    /// Tokens the model may think with; 0 turns thinking off.
    #[arg(long, value_name = "N")]
    pub(crate) max_thinking_tokens: Option<u64>,

    /// Beta features to ask the API for, separated by commas.
    #[arg(long, value_name = "NAMES", num_args = 1..)]
    pub(crate) betas: Vec<String>,

    /// Plain lines for a screen reader, in the terminal interface.
    #[arg(long)]
    pub(crate) ax_screen_reader: bool,

    /// Stop after so many round trips to the model.
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<u32>,

    /// Stop when so many US dollars are spent.
    #[arg(long, value_name = "USD")]
    pub(crate) max_budget_usd: Option<f64>,

    /// Replace the system prompt.
    #[arg(long, value_name = "TEXT", conflicts_with = "system_prompt_file")]
    pub(crate) system_prompt: Option<String>,

    /// Replace the system prompt by a file's text.
    #[arg(long, value_name = "FILE")]
    pub(crate) system_prompt_file: Option<PathBuf>,

    /// Add to the system prompt.
    #[arg(long, value_name = "TEXT", conflicts_with = "append_system_prompt_file")]
    pub(crate) append_system_prompt: Option<String>,

    /// Add a file's text to the system prompt.
    #[arg(long, value_name = "FILE")]
    pub(crate) append_system_prompt_file: Option<PathBuf>,

    /// Add to the system prompts of agents that are sent out.
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_subagent_system_prompt: Option<String>,

    /// The built-in tools on offer: names, "default" for all, "" for none.
    #[arg(long, value_name = "NAMES", num_args = 0..)]
    pub(crate) tools: Option<Vec<String>>,

    /// Rules for calls that may run without asking.
    #[arg(long = "allowedTools", visible_alias = "allowed-tools", value_name = "RULES", num_args = 1..)]
    pub(crate) allowed_tools: Vec<String>,

    /// Rules for calls that never run; a bare tool name takes the tool away.
    #[arg(long = "disallowedTools", visible_alias = "disallowed-tools", value_name = "RULES", num_args = 1..)]
    pub(crate) disallowed_tools: Vec<String>,

    /// What runs without asking.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<Mode>,

    /// Run everything without asking; for sandboxes only.
    #[arg(long)]
    pub(crate) dangerously_skip_permissions: bool,

    /// Let a client switch to running everything without asking.
    #[arg(long)]
    pub(crate) allow_dangerously_skip_permissions: bool,

    /// Who answers permission questions: "stdio" is the client.
    #[arg(long, value_name = "NAME")]
    pub(crate) permission_prompt_tool: Option<String>,

    /// Further directories the session may work in.
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub(crate) add_dir: Vec<PathBuf>,

    /// MCP servers of this run: JSON with `mcpServers`, or files that hold it.
    #[arg(long, value_name = "FILES_OR_JSON", num_args = 1..)]
    pub(crate) mcp_config: Vec<String>,

    /// Use no other MCP servers than those of --mcp-config.
    #[arg(long)]
    pub(crate) strict_mcp_config: bool,

    /// Settings that win over those of files: a JSON object, or a file that holds one.
    #[arg(long, value_name = "FILE_OR_JSON")]
    pub(crate) settings: Option<String>,

    /// Which settings and instruction files are read: user, project, local.
    #[arg(long, value_name = "SOURCES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) setting_sources: Option<String>,

    /// Work in a worktree of this name (or of `#NUMBER`, a pull request), which is made if it is not there.
    #[arg(short, long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub(crate) worktree: Option<String>,

    /// Agents for this run: a JSON object of definitions by name, or a file that holds one.
    #[arg(long, value_name = "FILE_OR_JSON")]
    pub(crate) agents: Option<String>,

    /// The agent that the conversation runs as.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// A directory with a plugin for this run; may be given several times.
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,

    /// Not supported: a plugin is fetched by `loci plugin install`, or lies in a directory.
    #[arg(long, value_name = "URL", hide = true)]
    pub(crate) plugin_url: Vec<String>,

    /// With stream-json: pass on what agents say, not only what they do.
    #[arg(long)]
    pub(crate) forward_subagent_text: bool,

    /// Continue the newest session of this directory, or of the repository around it.
    #[arg(short, long = "continue", conflicts_with = "resume")]
    pub(crate) continue_newest: bool,

    /// Continue the session with this id or title, or in this file.
    #[arg(short, long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "")]
    pub(crate) resume: Option<String>,

    /// Continue a copy under a new id; the session itself stays as it is.
    #[arg(long)]
    pub(crate) fork_session: bool,

    /// Continue from this message of the session, whatever was said after it.
    #[arg(long, value_name = "UUID")]
    pub(crate) resume_session_at: Option<String>,

    /// What `/background` starts: a session that goes on without its terminal, with the other arguments as they were.
    #[arg(long, hide = true, value_name = "JSON")]
    pub(crate) go_on_in_background: Option<String>,

    /// With --resume: bring files back to what they were before this prompt, and exit.
    #[arg(long, value_name = "UUID")]
    pub(crate) rewind_files: Option<String>,

    /// Keep what files held before they are changed, so that it can be brought back.
    #[arg(long)]
    pub(crate) checkpoint_files: bool,

    /// What to call the session.
    #[arg(short, long, value_name = "TITLE")]
    pub(crate) name: Option<String>,

    /// Take the session over from another process that is using it.
    #[arg(long)]
    pub(crate) take_over: bool,

    /// The id of the new session.
    #[arg(long, value_name = "UUID")]
    pub(crate) session_id: Option<String>,

    /// Write nothing to disk.
    #[arg(long)]
    pub(crate) no_session_persistence: bool,

    /// Write down what the run does and when: all of it, or these categories (api,tools), or all but some (!engine).
    #[arg(long, value_name = "CATEGORIES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) debug: Option<String>,

    /// Write that to this file, in place of one for the session in the config home.
    #[arg(long, value_name = "FILE")]
    pub(crate) debug_file: Option<PathBuf>,

    /// Write that to standard error.
    #[arg(long)]
    pub(crate) debug_to_stderr: bool,

    /// Do without instruction files, memories and most tools: Bash, Read and Edit are left.
    #[arg(long)]
    pub(crate) bare: bool,

    /// Print the version.
    #[arg(short = 'v', long, short_alias = 'V', action = clap::ArgAction::SetTrue)]
    pub(crate) version: bool,

    #[command(flatten)]
    pub(crate) client: ClientFlags,

    #[command(flatten)]
    pub(crate) foreign: ForeignFlags,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Subcommand {
    /// Be an agent for an editor: the Agent Client Protocol on standard input and output.
    Acp(Box<crate::acp::AcpArgs>),
    /// List agents and show their definitions.
    Agents(crate::agents::AgentsArgs),
    /// Say which prompt of which session last changed each line of a file.
    Blame(crate::blame::BlameArgs),
    /// Watch loci fix a failing test, with a scripted model: no key, no network.
    Demo(DemoArgs),
    /// Print completions for a shell: `source <(loci completions bash)`.
    Completions(crate::completions::CompletionsArgs),
    /// Look at settings, change them, and see why they are what they are.
    Config(crate::config::ConfigArgs),
    /// See what the model would be told, and why.
    Context(crate::context::ContextArgs),
    /// Examine this installation; exits with 1 when something is wrong.
    Doctor(crate::doctor::DoctorArgs),
    /// Print manual pages.
    Man(crate::man::ManArgs),
    /// Add MCP servers, look at them, take them away.
    Mcp(crate::mcp::McpArgs),
    /// Look at what is remembered between sessions, review it, change it, take changes back.
    Memory(crate::memory::MemoryArgs),
    /// List the models of all providers, and see whether one answers.
    Models(crate::models::ModelsArgs),
    /// List hooks, each with its file and line, and try them.
    Hooks(crate::hooks::HooksArgs),
    /// See where credentials come from, keep a key, forget it.
    Auth(crate::auth::AuthArgs),
    /// Keep an API key, readable by you alone: typed unseen, or read from standard input.
    Login(crate::login::LoginArgs),
    /// Forget the API key that is kept.
    Logout(crate::login::LogoutArgs),
    /// Put the terminal right after a program was killed.
    ResetTerminal(crate::login::ResetTerminalArgs),
    /// See what rules say about a call, list them, add and remove them.
    Permissions(crate::permissions::PermissionsArgs),
    /// Install plugins, look at them, turn them on and off, make one.
    #[command(visible_alias = "plugins")]
    Plugin(crate::plugin::PluginArgs),
    /// See what sandbox this machine can give, and run a command in it.
    Sandbox(crate::sandbox::SandboxArgs),
    /// List, read, branch, export, name, rewind and remove sessions.
    Sessions(crate::sessions::SessionsArgs),
    /// Be a server for others.
    Serve(crate::serve::ServeArgs),
    /// List skills and custom commands, where each comes from and who may use it.
    Skills(crate::skills::SkillsArgs),
    /// Count sessions, turns, tokens and cost by model, project and day.
    Stats(crate::stats::StatsArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Do not pause between words.
    #[arg(long)]
    pub(crate) fast: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// The answer's text.
    Text,
    /// One result object.
    Json,
    /// One object a line, as things happen.
    StreamJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Input {
    /// One prompt.
    Text,
    /// One object a line.
    StreamJson,
}

impl Args {
    /// SDKs do not say `-p`: a given format means the same.
    pub(crate) fn is_headless(&self) -> bool {
        self.print || self.init_only || self.output_format != Output::Text || self.input_format != Input::Text
    }

    /// Whether a session that exists already is asked for.
    pub(crate) fn continues(&self) -> bool {
        self.resume.is_some() || self.continue_newest
    }

    /// Checks combinations that can never work.
    pub(crate) fn check(&self) -> Result<(), String> {
        let streams_out = self.output_format == Output::StreamJson;
        let streams_in = self.input_format == Input::StreamJson;
        let problems = [
            (
                streams_out && !self.verbose,
                "--output-format=stream-json needs --verbose when used with --print",
            ),
            (streams_in && !streams_out, "--input-format=stream-json needs --output-format=stream-json"),
            (
                self.replay_user_messages && !(streams_in && streams_out),
                "--replay-user-messages needs stream-json for both --input-format and --output-format",
            ),
            (
                self.include_partial_messages && !streams_out,
                "--include-partial-messages needs --output-format=stream-json",
            ),
            (
                self.include_hook_events && !streams_out,
                "--include-hook-events needs --output-format=stream-json",
            ),
            (
                self.forward_subagent_text && !streams_out,
                "--forward-subagent-text needs --output-format=stream-json",
            ),
            (
                self.client.suggests_prompts() && !streams_out,
                "--prompt-suggestions needs --output-format=stream-json",
            ),
            (
                self.resume.as_deref() == Some("") && self.is_headless(),
                "--resume needs an id, a title or a file here; `loci sessions list` shows what there is",
            ),
            (
                self.session_id.is_some() && self.continues() && !self.fork_session,
                "--session-id chooses the id of a new session; with --continue or --resume it needs --fork-session",
            ),
            (
                self.fork_session && !self.continues(),
                "--fork-session needs the session to copy: give --continue or --resume",
            ),
            (
                self.resume_session_at.is_some() && !self.continues(),
                "--resume-session-at needs the session that has the message: give --resume",
            ),
            (
                self.max_budget_usd.is_some_and(|limit| !limit.is_finite() || limit <= 0.0),
                "--max-budget-usd needs an amount above 0",
            ),
            (
                self.rewind_files.is_some() && self.resume.is_none(),
                "--rewind-files needs the session that has the prompt: give --resume",
            ),
            (self.max_turns == Some(0), "--max-turns needs a number above 0"),
            (
                self.client.session_mirror && !streams_out,
                "--session-mirror needs --output-format=stream-json",
            ),
            (
                self.client.restricted && self.dangerously_skip_permissions,
                "--restricted cannot be combined with --dangerously-skip-permissions",
            ),
        ];
        if let Some((_, problem)) = problems.into_iter().find(|(is_wrong, _)| *is_wrong) {
            return Err(problem.to_owned());
        }
        if let Some(refusal) = self.foreign.refusal() {
            return Err(refusal.to_owned());
        }
        self.client.schema()?;
        self.client.compact_window().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Args {
        Args::try_parse_from(std::iter::once("loci").chain(line.split(' '))).unwrap()
    }

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory;
        CommandLine::command().debug_assert();
        Args::command().debug_assert();
    }

    /// Wrappers put their own flags before those of whoever calls them, and lists still grow.
    #[test]
    fn flag_that_is_given_twice_counts_as_given_last() {
        let args = parse(
            "-p -p --model one --permission-mode plan --model two --permission-mode default --add-dir a --add-dir b",
        );
        assert_eq!((args.model.as_deref(), args.permission_mode), (Some("two"), Some(Mode::Default)));
        assert_eq!(args.add_dir.len(), 2);
        assert!(Args::try_parse_from(["loci", "-p", "one", "two"]).is_err(), "a second prompt is no flag");
    }

    #[test]
    fn every_subcommand_is_known_before_it_is_described() {
        use clap::CommandFactory;
        let command = CommandLine::command();
        let own = command.get_subcommands().flat_map(|sub| {
            std::iter::once(sub.get_name().to_owned()).chain(sub.get_all_aliases().map(str::to_owned))
        });
        let mut expected: Vec<String> = own.chain(["help".to_owned()]).collect();
        expected.sort();
        assert_eq!(SUBCOMMANDS.to_vec(), expected);
    }

    #[test]
    fn line_is_read_the_same_with_and_without_subcommands() {
        let read = |line: &str| {
            let line: Vec<OsString> =
                std::iter::once("loci").chain(line.split(' ')).map(OsString::from).collect();
            CommandLine::read(&line).map_err(|error| error.kind())
        };
        assert!(matches!(read("-p hi"), Ok((Args { print: true, .. }, None))));
        assert!(matches!(read("sessions list"), Ok((_, Some(Subcommand::Sessions(_))))));
        let (args, subcommand) = read("-p sessions").unwrap();
        assert!(
            subcommand.is_none() && args.prompt.as_deref() == Some("sessions"),
            "behind -p it is a prompt"
        );
        assert_eq!(read("--help").unwrap_err(), clap::error::ErrorKind::DisplayHelp);
        assert_eq!(read("--no-such-flag").unwrap_err(), clap::error::ErrorKind::UnknownArgument);
    }

    #[test]
    fn both_forms_of_a_flag_parse() {
        for line in ["-p hi --model opus", "-p hi --model=opus", "hi --print --model opus"] {
            let args = parse(line);
            assert!(args.is_headless(), "{line}");
            assert_eq!((args.prompt.as_deref(), args.model.as_deref()), (Some("hi"), Some("opus")), "{line}");
        }
    }

    #[test]
    fn a_fork_may_choose_its_id() {
        let args =
            parse("-p hi -r some --fork-session --session-id 0a0a0a0a-0001-4000-8000-000000000001 -n mine");
        assert_eq!((args.check(), args.name.as_deref()), (Ok(()), Some("mine")));
    }

    #[test]
    fn sdks_need_no_print_flag() {
        let line = "--output-format stream-json --verbose --input-format stream-json --system-prompt= --setting-sources=";
        let args = parse(line);
        assert!(args.is_headless());
        assert_eq!(args.system_prompt.as_deref(), Some(""));
        assert_eq!(args.setting_sources.as_deref(), Some(""));
        assert_eq!(args.check(), Ok(()));
    }

    #[test]
    fn impossible_combinations_are_named() {
        for (line, needle) in [
            ("-p hi --output-format stream-json", "--verbose"),
            ("-p --input-format stream-json", "--output-format=stream-json"),
            ("-p hi --include-partial-messages", "stream-json"),
            ("-p hi --replay-user-messages", "stream-json"),
            ("-p hi -c --session-id 0a0a0a0a-0001-4000-8000-000000000001", "--session-id"),
            ("-p hi --fork-session", "--resume"),
            ("-p hi --resume-session-at u1", "--resume"),
            ("-p hi -r", "sessions list"),
            ("-p hi --rewind-files u1", "--resume"),
            ("-p hi --max-turns 0", "--max-turns"),
            ("-p hi --max-budget-usd 0", "--max-budget-usd"),
        ] {
            let problem = parse(line).check().unwrap_err();
            assert!(problem.contains(needle), "{line}: {problem}");
        }
    }
}
