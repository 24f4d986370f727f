//! Working copies of a session: made by a hook or by git, entered and left.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use loci_core::app_state::AppState;
use loci_core::hooks::EventInput;
use loci_core::permission::Isolation;
use loci_core::slug_words::slug_words;
use loci_stdx::{Env, Store};
use loci_storage::worktree::{
    RemovedWorktree, Worktree, WorktreeOptions, WorktreeRemovalError, WorktreeSession, WorktreeUse,
    create_worktree, hook_worktree, open_worktree, remove_worktree, use_worktree,
};
use loci_tools::{EnteredWorktree, LeftWorktree, Workspace, WorktreeRequest};
use serde_json::{Value, json};

use crate::conversation::host::lock;
use crate::extension::{FeatureHooks, HookMoment, TurnHooks};
use crate::hooks::HookService;
use crate::state::change;

/// Makes and removes working copies, and knows the one that the session is in.
pub(crate) struct WorktreeService {
    env: Env,
    hooks: HookService,
    options: WorktreeOptions,
    state: Arc<Store<AppState>>,
    current: CurrentWorktree,
}

/// The working copy that the session of a run is in, shared with whoever looks after it when the run ends.
#[derive(Clone, Default)]
pub struct CurrentWorktree {
    /// Held to look or to change it.
    inside: Arc<Mutex<Option<Inside>>>,
    /// Whether the session has a name. The state of the session knows, but must not outlive it.
    is_named: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Inside {
    session: WorktreeSession,
    /// Keeps others from removing it.
    _in_use: Option<WorktreeUse>,
}

impl CurrentWorktree {
    /// Returns the copy; none while the session is in none.
    pub fn get(&self) -> Option<WorktreeSession> {
        lock(&self.inside).as_ref().map(|inside| inside.session.clone())
    }

    /// Tells whether the session that is in it has a name.
    pub fn is_of_named_session(&self) -> bool {
        self.is_named.load(Ordering::Relaxed)
    }

    /// The session is in a copy from now on.
    pub fn enter(&self, env: &Env, session: WorktreeSession) {
        let in_use = use_worktree(env, &session.worktree);
        *lock(&self.inside) = Some(Inside { session, _in_use: in_use });
    }

    /// The session is in none any more; returns the one that it was in.
    pub fn leave(&self) -> Option<WorktreeSession> {
        lock(&self.inside).take().map(|inside| inside.session)
    }
}

impl WorktreeService {
    pub(crate) fn new(
        env: Env,
        hooks: HookService,
        options: WorktreeOptions,
        state: Arc<Store<AppState>>,
        current: CurrentWorktree,
    ) -> Self {
        // A session that takes another's place begins where the run did, wherever the other one had gone.
        if current.get().is_some_and(|it| it.worktree.path != env.cwd) {
            current.leave();
        }
        current.is_named.store(state.get().session.title.is_some(), Ordering::Relaxed);
        Self { env, hooks, options, state, current }
    }

    /// Makes a working copy for whoever works at `moment.cwd`: by the user's hook, where there is one, else by git.
    pub(crate) async fn create(&self, name: String, moment: HookMoment) -> Result<Worktree, String> {
        let cwd = moment.cwd.clone();
        if let Some(made) = self.hooks.create_worktree(name.clone(), moment).await {
            let made = made.and_then(|path| hook_worktree(&cwd, &name, &path));
            return made.map_err(|why| format!("The WorktreeCreate hook made no worktree: {why}"));
        }
        let (env, options) = (self.env.clone(), self.options.clone());
        let make = move || create_worktree(&env, &cwd, &name, &options).map_err(|error| with_cause(&error));
        tokio::task::spawn_blocking(make).await.map_err(|error| error.to_string())?
    }

    /// Removes a working copy, when nothing is lost or that is wanted, and tells hooks. What a hook made, a hook removes.
    pub(crate) async fn remove(
        &self,
        worktree: Worktree,
        discards: bool,
        moment: HookMoment,
    ) -> Result<RemovedWorktree, WorktreeRemovalError> {
        let (worktree_path, main) = (worktree.path.clone(), worktree.main.clone());
        let removed = match worktree.is_hooks {
            true => RemovedWorktree::default(),
            false => {
                let env = self.env.clone();
                let remove = move || remove_worktree(&env, &worktree, discards);
                let done = tokio::task::spawn_blocking(remove).await;
                done.map_err(|error| WorktreeRemovalError::Git(error.to_string()))??
            }
        };
        // Hooks cannot be run where nothing is any more.
        self.hooks.notify(EventInput::WorktreeRemove { worktree_path }, HookMoment { cwd: main, ..moment });
        Ok(removed)
    }

    /// Moves the session into a working copy.
    pub(crate) async fn enter(
        &self,
        place: &Mutex<Workspace>,
        wish: WorktreeRequest,
        moment: HookMoment,
    ) -> Result<EnteredWorktree, String> {
        let here = lock(place).project.clone();
        let before = self.current.get();
        let worktree = match wish {
            WorktreeRequest::New(_) if before.is_some() => {
                return Err(
                    "The session is in a worktree already. Leave it first with ExitWorktree, or give the \
                            `path` of another."
                        .to_owned(),
                );
            }
            WorktreeRequest::New(name) => {
                let made_up = || slug_words(self.env.random.uuid_v4().as_u64_pair().0);
                self.create(name.unwrap_or_else(made_up), HookMoment { cwd: here.clone(), ..moment }).await?
            }
            WorktreeRequest::Existing(path) => self.open(&here, path).await?,
        };
        let entered = EnteredWorktree {
            path: worktree.path.clone(),
            branch: worktree.branch.clone(),
            is_new: !worktree.is_reused,
        };
        self.move_to(place, &worktree.path);
        let original = before.map_or(here, |before| before.original);
        self.note_entered(WorktreeSession { worktree, original }).await;
        Ok(entered)
    }

    /// Notes that the session is in a copy, for others and for itself.
    async fn note_entered(&self, session: WorktreeSession) {
        let (current, env) = (self.current.clone(), self.env.clone());
        let noted = tokio::task::spawn_blocking(move || current.enter(&env, session)).await;
        if let Err(error) = noted {
            tracing::debug!(target: "loci::worktrees", %error, "a worktree is not noted as entered");
        }
    }

    async fn open(&self, here: &Path, path: PathBuf) -> Result<Worktree, String> {
        let (env, here, shown) = (self.env.clone(), here.to_owned(), path.display().to_string());
        let found = tokio::task::spawn_blocking(move || open_worktree(&env, &here, &path)).await;
        let found = found.map_err(|error| error.to_string())?;
        found.ok_or_else(|| format!("`{shown}` is no worktree of this repository; see `git worktree list`"))
    }

    /// Leads the session back.
    pub(crate) async fn exit(
        &self,
        place: &Mutex<Workspace>,
        removes: bool,
        discards: bool,
        moment: HookMoment,
    ) -> Result<LeftWorktree, String> {
        let Some(session) = self.current.get() else {
            return Err("The session has entered no worktree, so there is none to leave.".to_owned());
        };
        if removes && !session.worktree.is_ours() {
            return Err(format!(
                "The worktree `{}` was not made here, so it is not removed. Leave it with the action `keep`.",
                session.worktree.path.display()
            ));
        }
        // Its own use does not keep it from being removed.
        self.current.leave();
        let removed = match removes {
            false => Ok(RemovedWorktree::default()),
            true => self.remove(session.worktree.clone(), discards, moment).await,
        };
        let removed = match removed {
            Ok(removed) => removed,
            Err(error) => {
                self.note_entered(session).await;
                return Err(removal_error(&error));
            }
        };
        let WorktreeSession { worktree, original } = session;
        self.move_to(place, &original);
        Ok(LeftWorktree {
            path: worktree.path,
            branch: worktree.branch,
            original_cwd: original,
            discarded_files: removed.discarded.n_files,
            discarded_commits: removed.discarded.n_commits,
            kept_as: removed.kept_as,
        })
    }

    /// Notes that the session has got a name.
    pub(crate) fn note_named(&self) {
        self.current.is_named.store(true, Ordering::Relaxed);
    }

    /// Returns what keeps the session apart from the checkout that it came from, while it is in a worktree.
    pub(crate) fn isolation(&self) -> Option<Isolation> {
        let WorktreeSession { worktree, .. } = self.current.get()?;
        Isolation::new(&worktree.path, &worktree.main)
    }

    /// Returns what the transcript says of the copy that the session is in.
    pub(crate) fn record(&self) -> Value {
        let Some(WorktreeSession { worktree, original }) = self.current.get() else { return Value::Null };
        json!({
            "originalCwd": original,
            "worktreePath": worktree.path,
            "worktreeName": worktree.name,
            "worktreeBranch": worktree.branch,
            "originalHeadCommit": worktree.base,
        })
    }

    /// The session works elsewhere from now on, and no longer where it did.
    fn move_to(&self, place: &Mutex<Workspace>, to: &Path) {
        let from = {
            let mut place = lock(place);
            place.cwd = to.to_owned();
            std::mem::replace(&mut place.project, to.to_owned())
        };
        change(&self.state, |state| {
            let dirs = &mut state.permission.rulebook.dirs;
            dirs.iter_mut().filter(|dir| **dir == from).for_each(|dir| *dir = to.to_owned());
        });
    }
}

/// Says why a worktree was not removed, and what can be done.
fn removal_error(error: &WorktreeRemovalError) -> String {
    match error {
        WorktreeRemovalError::WouldLose(_) => format!(
            "{error}. Commit or push what is needed, keep the worktree, or, if the user says so, set `discard_changes`."
        ),
        WorktreeRemovalError::InUse(_) => format!("{error}. Leave it with the action `keep`."),
        WorktreeRemovalError::Git(_) => error.to_string(),
    }
}

/// Returns an error with what caused it.
fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
