//! Runs in a worktree of their own (`--worktree`), and sessions that go on in the one they were in.

use std::path::{Component, Path, PathBuf};

use loci_core::hooks::{CommonInput, EventInput, HookEvent, HookInput};
use loci_core::ids::SessionId;
use loci_core::slug_words::slug_words;
use loci_engine::{HookTrialWorld, try_hooks};
use loci_settings::WorktreeSettings;
use loci_stdx::Env;
use loci_storage::project::main_checkout;
use loci_storage::worktree::{
    WorktreeBase, WorktreeOptions, create_worktree, open_worktree, parse_worktree_name,
};

use crate::child_env::child_env;
use crate::options::RunOptions;
use crate::resume::Resume;
use crate::sandbox::sandbox_maker;
use crate::settings::RunSettings;
use crate::user_error::UserError;

/// Returns how working copies are made, as the settings say.
pub fn worktree_options(settings: &WorktreeSettings) -> WorktreeOptions {
    WorktreeOptions {
        base: match settings.base_ref.as_deref() {
            Some("head") => WorktreeBase::Head,
            _ => WorktreeBase::Fresh,
        },
        symlink_directories: settings.symlink_directories.clone(),
        sparse_paths: settings.sparse_paths.clone(),
    }
}

/// Makes the worktree that a run asked for, or opens it, and returns the world as it is there. An empty name is made up.
pub fn enter_worktree(env: &Env, options: &RunOptions, asked: &str) -> Result<Env, UserError> {
    let failed = |error| UserError::from_error(&error);
    let (name, base) = match asked {
        "" => (slug_words(env.random.uuid_v4().as_u64_pair().0), None),
        asked => parse_worktree_name(asked).map_err(failed)?,
    };
    let run = RunSettings::load(env, options)?;
    if options.is_interactive && !run.instructions.is_trusted() {
        // Making a copy runs what the repository or a hook brings along, and nobody has been asked about it yet.
        return Err(UserError::new("A worktree needs a folder that is trusted, and this one is not yet")
            .hint(
                "Run `loci` here once and answer its question, or look at it and run `loci config trust`.",
            ));
    }
    let path = match run.hooks.config.has(HookEvent::WorktreeCreate) {
        true => made_by_hook(&run, &name)?,
        false => {
            let mut made = worktree_options(&run.settings.worktree);
            made.base = base.unwrap_or(made.base);
            create_worktree(&run.env, &env.cwd, &name, &made).map_err(failed)?.path
        }
    };
    Ok(Env { cwd: path, ..env.clone() })
}

/// Has the user's hook make a working copy.
fn made_by_hook(run: &RunSettings, name: &str) -> Result<PathBuf, UserError> {
    let id = SessionId::parse(&run.env.random.uuid_v4().to_string())
        .map_err(|error| UserError::from_error(&error))?;
    let input = HookInput {
        common: CommonInput {
            session_id: id.to_string(),
            transcript_path: run.home.session(&run.env.cwd, &id).file().to_owned(),
            cwd: run.env.cwd.clone(),
            ..CommonInput::default()
        },
        event: EventInput::WorktreeCreate { name: name.to_owned() },
    };
    let world = HookTrialWorld {
        sandbox_maker: Some(sandbox_maker(run, id.as_str())),
        session: id,
        child_env: child_env(&run.env),
        env: run.env.clone(),
        home: run.home.clone(),
        rulebook: loci_core::permission::Rulebook::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| UserError::new(format!("Failed to run the WorktreeCreate hook: {error}")))?;
    let decision = runtime.block_on(try_hooks(run.hooks.config.clone(), world, input, None)).decision;
    let failed = |why: &str| UserError::new(format!("The WorktreeCreate hook made no worktree: {why}"));
    match (decision.block, decision.worktree) {
        (Some(why), _) => Err(failed(&why)),
        (None, None) => Err(failed(decision.messages.first().map_or("it printed no path", String::as_str))),
        (None, Some(path)) => {
            let path = run.env.cwd.join(path);
            check_hook_path(&run.env.cwd, &path).map_err(|why| failed(&why))?;
            path.canonicalize().map_err(|error| failed(&format!("`{}`: {error}", path.display())))
        }
    }
}

/// Refuses a path that steps or symlinks of the repository could have led elsewhere.
fn check_hook_path(cwd: &Path, path: &Path) -> Result<(), String> {
    if path.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir)) {
        return Err(format!("`{}` has steps in it that lead elsewhere", path.display()));
    }
    let root = main_checkout(cwd).unwrap_or_else(|| cwd.to_owned());
    let below = path.ancestors().take_while(|dir| dir.starts_with(&root) && *dir != root);
    match below.filter(|dir| dir.is_symlink()).last() {
        Some(link) => Err(format!("`{}` is a symlink", link.display())),
        None if !path.is_dir() => Err(format!("`{}` is no directory", path.display())),
        None => Ok(()),
    }
}

/// Returns the worktree that a session was in last, when it is another working copy of the repository at hand; the
/// session goes on there. A fork begins where it is made.
pub fn worktree_of_session(env: &Env, options: &RunOptions, resume: &Resume) -> Option<PathBuf> {
    let cwd: String = resume.history.path.last()?.fields().read("cwd")?;
    let cwd = Path::new(&cwd);
    if options.session.is_fork || cwd == env.cwd || !cwd.is_absolute() {
        return None;
    }
    open_worktree(env, &env.cwd, cwd).map(|found| found.path)
}
