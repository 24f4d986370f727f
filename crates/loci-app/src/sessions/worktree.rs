//! Runs in a worktree of their own (`--worktree`), sessions that go on in the one they were in, and what becomes of a
//! worktree when the person at the terminal leaves.

use std::path::{Path, PathBuf};

use loci_core::hooks::{CommonInput, EventInput, HookDecision, HookEvent, HookInput};
use loci_core::ids::SessionId;
use loci_core::slug_words::slug_words;
use loci_engine::{HookTrialWorld, try_hooks};
use loci_settings::WorktreeSettings;
use loci_stdx::Env;
use loci_storage::worktree::{
    WaitNotice, Worktree, WorktreeBase, WorktreeChanges, WorktreeOptions, WorktreeSession,
    create_worktree_telling, hook_worktree, is_worktree_place, open_worktree, parse_worktree_name,
    remove_worktree, worktree_changes,
};

use crate::compose::child_env::child_env;
use crate::options::{RunOptions, SessionSource};
use crate::permissions::sandbox::sandbox_maker;
use crate::sessions::resume::Resume;
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

/// Makes the worktree that a run asked for, or opens it, and returns the world as it is there. An empty name is made up;
/// `tell` hears when that takes long.
///
/// Where a hook makes it, the run's id is fixed first: the hook is told of the session that begins in the worktree.
pub fn enter_worktree(
    env: &Env,
    options: &mut RunOptions,
    asked: &str,
    tell: WaitNotice,
) -> Result<Env, UserError> {
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
    let worktree = match run.hooks.config.has(HookEvent::WorktreeCreate) {
        true => {
            let id = session_id(env, options)?;
            made_by_hook(&run, &name, id)?
        }
        false => {
            let mut made = worktree_options(&run.settings.worktree);
            made.base = base.unwrap_or(made.base);
            create_worktree_telling(&run.env, &env.cwd, &name, &made, tell).map_err(failed)?
        }
    };
    let cwd = worktree.path.clone();
    options.worktree.enter(env, WorktreeSession { worktree, original: env.cwd.clone() });
    Ok(Env { cwd, ..env.clone() })
}

/// What a session leaves behind that was in a worktree when the person left.
pub struct LeftBehind {
    session: WorktreeSession,
    /// What the worktree has that is nowhere else; nothing where that cannot be told.
    pub changes: Option<WorktreeChanges>,
}

impl LeftBehind {
    /// Takes the worktree that the session of a run was in; none where it was in none, or in one that it is not to remove.
    pub fn take(env: &Env, options: &RunOptions) -> Option<Self> {
        let session =
            options.worktree.leave().filter(|it| it.worktree.is_ours() && it.worktree.path.is_dir())?;
        let changes = match session.worktree.is_hooks {
            true => None,
            false => worktree_changes(env, &session.worktree).ok(),
        };
        Some(Self { session, changes })
    }

    /// Tells whether nothing would be lost with it.
    pub fn is_empty(&self) -> bool {
        self.changes.as_ref().is_some_and(WorktreeChanges::is_empty)
    }

    /// Returns the worktree.
    pub fn worktree(&self) -> &Worktree {
        &self.session.worktree
    }

    /// Removes it, whatever is in it, and tells hooks; what a hook made, a hook removes. Returns the reference that keeps
    /// what was in it.
    pub fn remove(&self, env: &Env, options: &RunOptions) -> Result<Option<String>, UserError> {
        let WorktreeSession { worktree, original } = &self.session;
        let env = Env { cwd: original.clone(), ..env.clone() };
        let kept = match worktree.is_hooks {
            true => None,
            false => {
                let removed = remove_worktree(&env, worktree, !self.is_empty());
                removed.map_err(|error| UserError::from_error(&error))?.kept_as
            }
        };
        let run = RunSettings::load(&env, options)?;
        if run.hooks.config.has(HookEvent::WorktreeRemove) {
            let event = EventInput::WorktreeRemove { worktree_path: worktree.path.clone() };
            let known = options.session.id.as_deref().and_then(|id| SessionId::parse(id).ok());
            let id = known.map_or_else(|| random_id(&run.env), Ok)?;
            try_hook(&run, event, id)?;
        }
        Ok(kept)
    }
}

/// Returns the id of the session that a run begins or goes on with, and fixes that of a new one.
fn session_id(env: &Env, options: &mut RunOptions) -> Result<SessionId, UserError> {
    let session = &mut options.session;
    let known = match &session.source {
        SessionSource::Named(name) if !session.is_fork => SessionId::parse(name).ok(),
        SessionSource::Named(_) | SessionSource::New | SessionSource::Newest => None,
    };
    if let Some(id) = known.or_else(|| session.id.as_deref().and_then(|id| SessionId::parse(id).ok())) {
        return Ok(id);
    }
    let id = random_id(env)?;
    if session.is_fork || session.source == SessionSource::New {
        session.id = Some(id.to_string());
    }
    Ok(id)
}

fn random_id(env: &Env) -> Result<SessionId, UserError> {
    SessionId::parse(&env.random.uuid_v4().to_string()).map_err(|error| UserError::from_error(&error))
}

/// Has the user's hook make a working copy.
fn made_by_hook(run: &RunSettings, name: &str, id: SessionId) -> Result<Worktree, UserError> {
    let decision = try_hook(run, EventInput::WorktreeCreate { name: name.to_owned() }, id)?;
    let failed = |why: &str| UserError::new(format!("The WorktreeCreate hook made no worktree: {why}"));
    match (decision.block, decision.worktree) {
        (Some(why), _) => Err(failed(&why)),
        (None, None) => Err(failed(decision.messages.first().map_or("it printed no path", String::as_str))),
        (None, Some(path)) => hook_worktree(&run.env.cwd, name, Path::new(&path)).map_err(|why| failed(&why)),
    }
}

/// Runs hooks where there is no session.
fn try_hook(run: &RunSettings, event: EventInput, id: SessionId) -> Result<HookDecision, UserError> {
    let input = HookInput {
        common: CommonInput {
            session_id: id.to_string(),
            transcript_path: run.home.session(&run.env.cwd, &id).file().to_owned(),
            cwd: run.env.cwd.clone(),
            ..CommonInput::default()
        },
        event,
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
        runtime.map_err(|error| UserError::new(format!("Failed to run the worktree hooks: {error}")))?;
    Ok(runtime.block_on(try_hooks(run.hooks.config.clone(), world, input, None)).decision)
}

/// Has a session that was in a worktree go on in it. Returns the worktree where that is another place than the one at
/// hand; what is gone is told. A fork begins where it is made.
pub fn worktree_of_session(env: &Env, options: &RunOptions, resume: &mut Resume) -> Option<PathBuf> {
    let cwd: String = resume.history.path.last()?.fields().read("cwd")?;
    let cwd = Path::new(&cwd);
    if options.session.is_fork || !cwd.is_absolute() {
        return None;
    }
    let is_here = cwd == env.cwd;
    if is_here && !is_worktree_place(cwd) {
        return None;
    }
    let Some(worktree) = open_worktree(env, &env.cwd, cwd) else {
        if !cwd.exists() && is_worktree_place(cwd) {
            resume.warnings.push(format!(
                "The worktree `{}` of this session is gone; it goes on in `{}`",
                cwd.display(),
                env.cwd.display()
            ));
        }
        return None;
    };
    let original = if is_here { worktree.main.clone() } else { env.cwd.clone() };
    let path = worktree.path.clone();
    options.worktree.enter(env, WorktreeSession { worktree, original });
    (!is_here).then_some(path)
}
