//! `loci sessions replay`: a recorded session played again, and what is different now.

mod show;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_app::UserError;
use loci_app::compose::child_env::child_env;
use loci_app::compose::{Permissions, toolbox};
use loci_app::permissions::sandbox::{SandboxWorld, SessionSandbox};
use loci_app::settings::RunSettings;
use loci_app::{PermissionOptions, RunOptions};
use loci_core::ids::SessionId;
use loci_core::permission::Mode;
use loci_engine::{ReplayOptions, ReplayReport, ReplaySandbox, SessionSkills};
use loci_stdx::Env;
use loci_storage::history::{ScratchCopy, ScratchError, ScratchLimits};
use loci_storage::layout::{SessionPlace, SessionTmp};
use loci_tools::RecordDirs;

use super::{SessionsContext, output, rewind, target};
use crate::runtime;

/// The arguments of `loci sessions replay`.
#[derive(Debug, clap::Args)]
pub(super) struct ReplayArgs {
    /// The session: id, title or path.
    session: String,

    /// Run no tools: recorded results stand for them.
    #[arg(long, conflicts_with_all = ["keep", "project", "permission_mode", "allowed_tools", "disallowed_tools"])]
    dry: bool,

    /// The project to copy; without it, the one the session worked in.
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,

    /// Do not remove the copy afterwards.
    #[arg(long)]
    keep: bool,

    /// What runs without asking; what would have to be asked about does not run.
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<Mode>,

    /// Rules for calls that may run.
    #[arg(long = "allowedTools", visible_alias = "allowed-tools", value_name = "RULES", num_args = 1..)]
    allowed_tools: Vec<String>,

    /// Rules for calls that never run.
    #[arg(long = "disallowedTools", visible_alias = "disallowed-tools", value_name = "RULES", num_args = 1..)]
    disallowed_tools: Vec<String>,

    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

/// What was played, and where.
struct Played {
    report: ReplayReport,
    /// The project as recorded, and what was made of it.
    scratch: Option<(PathBuf, ScratchCopy)>,
    warnings: Vec<String>,
}

/// Plays the session; the exit code says whether anything differs.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &ReplayArgs) -> Result<u8, UserError> {
    let place = target::find(ctx, "replay", &args.session)?;
    let entries = target::entries(&place)?;
    // Not that of the session, which may be at work.
    let own = SessionId::parse(&ctx.env.random.uuid_v4().to_string())
        .map_err(|error| UserError::from_error(&error))?;
    let tmp = ctx.home.session_tmp(&ctx.env.cwd, &own);
    let (scratch, sandbox, warnings) = match args.dry {
        true => (None, None, Vec::new()),
        false => {
            let recorded = rewind::cwd(&entries)?;
            let opened = open_sandbox(ctx, args, &place, &tmp, &recorded)?;
            (Some((recorded, opened.scratch)), Some(opened.sandbox), opened.warnings)
        }
    };
    let options = ReplayOptions {
        env: ctx.env.clone(),
        home: ctx.home.clone(),
        tmp,
        session: place.id().clone(),
        entries,
        sandbox,
    };
    let played = Played { report: play(options)?, scratch, warnings };
    finish(&place, played, args)
}

fn play(options: ReplayOptions) -> Result<ReplayReport, UserError> {
    let runtime = runtime::of_session()?;
    Ok(runtime.block_on(loci_engine::replay(options)))
}

fn finish(place: &SessionPlace, played: Played, args: &ReplayArgs) -> Result<u8, UserError> {
    match args.json {
        true => output::print_json(&show::json(place, &played, args.keep))?,
        false => output::print(&show::text(&played, args.keep))?,
    }
    played.warnings.iter().for_each(|note| output::print_message(note));
    match played.scratch {
        Some((_, mut scratch)) if args.keep => scratch.keep(),
        Some((_, scratch)) => {
            let root = scratch.root().to_owned();
            if let Err(error) = scratch.discard() {
                output::print_message(&format!(
                    "The copy could not be removed: `{}`: {error}",
                    root.display()
                ));
            }
        }
        None => {}
    }
    Ok(u8::from(played.report.differs()))
}

struct OpenSandbox {
    scratch: ScratchCopy,
    sandbox: ReplaySandbox,
    warnings: Vec<String>,
}

/// Copies the project and brings the rules in force to the copy.
fn open_sandbox(
    ctx: &SessionsContext<'_>,
    args: &ReplayArgs,
    place: &SessionPlace,
    tmp: &SessionTmp,
    recorded: &Path,
) -> Result<OpenSandbox, UserError> {
    let project = real_project(ctx.env, args.project.as_deref().unwrap_or(recorded))?;
    let options = options(args);
    // The rules are those of a run in the project. For each of its places they are read anew, so that what is relative to
    // the project is relative to that.
    let here = Env { cwd: project.clone(), ..ctx.env.clone() };
    let run = RunSettings::load(&here, &options)?;
    let rules_at = |place: &Path| {
        let env = Env { cwd: place.to_owned(), ..run.env.clone() };
        Permissions::new(&env, &options.permissions, &run.settings.permissions, None)
    };
    let of_project = rules_at(&project)?;
    let recorded_rulebook = rules_at(recorded)?.rulebook;
    let scratch = ScratchCopy::copy(&project, &ctx.env.home, tmp, ScratchLimits::default())
        .map_err(|error| to_user_error(&error))?;
    let scratch_rulebook = rules_at(scratch.root())?.rulebook;
    let env = Env { cwd: scratch.root().to_owned(), ..run.env.clone() };
    let warnings: Vec<String> = run.warnings.iter().cloned().chain(of_project.warnings).collect();
    let sessions = place.file().parent().map(Path::to_path_buf).unwrap_or_default();
    let record = RecordDirs { sessions, memory: None };
    let toolbox = toolbox(&options, &run, &scratch_rulebook, record, &Arc::new(SessionSkills::none()))?;
    let world = SandboxWorld {
        env: &env,
        config_home: run.home.root().to_owned(),
        scratch: tmp.sandbox_dir(),
        dirs: scratch_rulebook.dirs.clone(),
    };
    let os = SessionSandbox::new(&world, &run.settings)?;
    let warnings = [warnings, os.warnings].concat();
    let sandbox = ReplaySandbox {
        os_sandbox: os.sandbox,
        child_env: child_env(&env),
        toolbox,
        rulebook: scratch_rulebook,
        project: recorded.to_owned(),
        places: vec![(recorded.to_owned(), recorded_rulebook), (project, of_project.rulebook)],
        tool_results: place.tool_results_dir(),
        tmp: tmp.clone(),
        transcript: place.file().to_owned(),
        env,
    };
    Ok(OpenSandbox { scratch, sandbox, warnings })
}

fn real_project(env: &Env, project: &Path) -> Result<PathBuf, UserError> {
    let path = env.cwd.join(project);
    let found = path.canonicalize().ok().filter(|path| path.is_dir());
    found.ok_or_else(|| {
        UserError::new(format!("There is no project to copy: `{}`", path.display())).hint(
            "--project names the directory that takes its place; --dry plays the session without running its tools.",
        )
    })
}

/// What a run is asked for that would be judged in the same way.
fn options(args: &ReplayArgs) -> RunOptions {
    let permissions = PermissionOptions {
        allow: args.allowed_tools.clone(),
        deny: args.disallowed_tools.clone(),
        mode: args.permission_mode,
        ..PermissionOptions::default()
    };
    RunOptions { permissions, ..RunOptions::default() }
}

fn to_user_error(error: &ScratchError) -> UserError {
    let user_error = UserError::from_error(error);
    match error {
        ScratchError::TooLarge { .. } => {
            user_error.hint("--dry plays the session without a copy, and without running its tools.")
        }
        ScratchError::Read { .. } | ScratchError::Write { .. } | ScratchError::Place(_) => user_error,
    }
}
