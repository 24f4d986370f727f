//! `loci acp`: an agent for editors that speak the Agent Client Protocol, on standard input and output.

use std::path::PathBuf;

use loci_app::{
    McpOptions, ModelOptions, PermissionOptions, RunOptions, TextSource, TraceFilter, TraceLevel,
    TraceOptions, TraceTarget, UserError, start_trace,
};
use loci_core::permission::Mode;
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use loci_wire::Acp;

use crate::{login, print, runtime};

#[derive(Debug, clap::Args)]
pub(crate) struct AcpArgs {
    /// Ask for an API key at the terminal, keep it, and exit: what an editor runs to log in.
    #[arg(long)]
    login: bool,

    /// Run commands in terminals of the editor, where it has any: there no sandbox of ours holds them, and the editor's own
    /// environment counts.
    #[arg(long)]
    client_terminal: bool,

    /// The model that sessions begin with: an alias or an id.
    #[arg(long)]
    model: Option<String>,

    /// The effort that they begin with.
    #[arg(long, value_name = "LEVEL")]
    effort: Option<String>,

    /// The permission mode that they begin in.
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<Mode>,

    /// Let the editor offer the mode in which everything runs unasked.
    #[arg(long)]
    allow_dangerously_skip_permissions: bool,

    /// Begin in that mode.
    #[arg(long)]
    dangerously_skip_permissions: bool,

    /// Rules for calls that run without asking.
    #[arg(long, value_name = "RULE", visible_alias = "allowed-tools")]
    allowed_tools: Vec<String>,

    /// Go on though settings have keys that this version does not know and that may restrict what runs.
    #[arg(long)]
    allow_unknown_settings: bool,

    /// Rules for calls that never run.
    #[arg(long, value_name = "RULE")]
    disallowed_tools: Vec<String>,

    /// A further directory to work in, in every session.
    #[arg(long, value_name = "DIR")]
    add_dir: Vec<PathBuf>,

    /// Settings that win over those of files: a JSON object, or a file that holds one.
    #[arg(long, value_name = "JSON|FILE")]
    settings: Option<String>,

    /// MCP servers of every session: a JSON object, or a file that holds one.
    #[arg(long, value_name = "JSON|FILE")]
    mcp_config: Vec<String>,

    /// Use no MCP servers but these and the editor's.
    #[arg(long)]
    strict_mcp_config: bool,

    /// What is added to the system prompt.
    #[arg(long, value_name = "TEXT")]
    append_system_prompt: Option<String>,

    /// Write what happens to this file.
    #[arg(long, value_name = "FILE")]
    debug_file: Option<PathBuf>,

    /// Write what happens to standard error.
    #[arg(long, conflicts_with = "debug_file")]
    debug_to_stderr: bool,
}

/// Serves the editor until it goes away, and returns the exit code.
pub(crate) fn run(env: Env, args: &AcpArgs) -> Result<u8, UserError> {
    if args.login {
        return login::login(&env);
    }
    if let Some(trace) = args.trace() {
        // Sessions share the process, so they share the file that was named.
        start_trace(&trace, &env, &ConfigHome::from_env(&env).root().join("debug/acp.txt"))?;
    }
    let acp = Acp {
        options: args.options(),
        env,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uses_client_terminals: args.client_terminal,
    };
    let runtime = runtime::of_session()?;
    let exit = runtime.block_on(async { Box::pin(acp.run(print::stdout(), &mut print::stderr())).await });
    // Standard input may still be waited for by a thread that nothing can wake.
    runtime.shutdown_background();
    Ok(exit.code())
}

impl AcpArgs {
    /// Returns what every session is asked to be.
    fn options(&self) -> RunOptions {
        RunOptions {
            model: ModelOptions {
                model: self.model.clone(),
                effort: self.effort.clone(),
                ..ModelOptions::default()
            },
            permissions: PermissionOptions {
                allow: self.allowed_tools.clone(),
                deny: self.disallowed_tools.clone(),
                mode: match self.dangerously_skip_permissions {
                    true => Some(Mode::BypassPermissions),
                    false => self.permission_mode,
                },
                may_bypass: self.dangerously_skip_permissions || self.allow_dangerously_skip_permissions,
                dirs: self.add_dir.clone(),
                is_confined: false,
            },
            appended_prompt: self.append_system_prompt.clone().map(TextSource::Text),
            settings: self.settings.clone(),
            mcp: McpOptions {
                configs: self.mcp_config.clone(),
                is_strict: self.strict_mcp_config,
                needs_approval: false,
            },
            build: Some(crate::build_info::describe()),
            accepts_unknown_settings: self.allow_unknown_settings,
            ..RunOptions::default()
        }
    }

    fn trace(&self) -> Option<TraceOptions> {
        let to = match &self.debug_file {
            Some(file) => TraceTarget::File(file.clone()),
            None if self.debug_to_stderr => TraceTarget::Stderr,
            None => return None,
        };
        Some(TraceOptions { filter: TraceFilter::parse(""), level: TraceLevel::parse(""), to })
    }
}
