//! Working copies of a session: made by a hook or by git, entered and left.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use loci_core::app_state::AppState;
use loci_core::hooks::EventInput;
use loci_core::slug_words::slug_words;
use loci_stdx::{Env, Store};
use loci_storage::worktree::{
    RemovedWorktree, Worktree, WorktreeOptions, WorktreeRemovalError, create_worktree, open_worktree,
    remove_worktree,
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
    /// The copy that the session has entered; held to look or to change it.
    entered: Mutex<Option<Entered>>,
}

#[derive(Clone)]
struct Entered {
    worktree: Worktree,
    /// Where the session was before the first one.
    original: PathBuf,
}

impl WorktreeService {
    pub(crate) fn new(
        env: Env,
        hooks: HookService,
        options: WorktreeOptions,
        state: Arc<Store<AppState>>,
    ) -> Self {
        Self { env, hooks, options, state, entered: Mutex::default() }
    }

    /// Makes a working copy for whoever works at `moment.cwd`: by the user's hook, where there is one, else by git.
    pub(crate) async fn create(&self, name: String, moment: HookMoment) -> Result<Worktree, String> {
        let cwd = moment.cwd.clone();
        if let Some(made) = self.hooks.create_worktree(name.clone(), moment).await {
            let path = made.map_err(|why| format!("The WorktreeCreate hook made no worktree: {why}"))?;
            let path = path.canonicalize().map_err(|error| format!("`{}`: {error}", path.display()))?;
            let made = Worktree { name, path, main: cwd, branch: None, base: None, is_reused: false };
            return if made.path.is_dir() { Ok(made) } else { Err("the hook made no directory".to_owned()) };
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
        let removed = match worktree.base {
            None => RemovedWorktree::default(),
            Some(_) => {
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
        let before = lock(&self.entered).clone();
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
        *lock(&self.entered) = Some(Entered { worktree, original });
        Ok(entered)
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
        let Some(Entered { worktree, original }) = lock(&self.entered).clone() else {
            return Err("The session has entered no worktree, so there is none to leave.".to_owned());
        };
        let removed = match removes {
            false => RemovedWorktree::default(),
            true => match self.remove(worktree.clone(), discards, moment).await {
                Ok(removed) => removed,
                Err(error @ WorktreeRemovalError::WouldLose(_)) => {
                    return Err(format!(
                        "{error}. Commit or push what is needed, keep the worktree, or, if the user says so, set \
                         `discard_changes`."
                    ));
                }
                Err(error @ WorktreeRemovalError::Git(_)) => return Err(error.to_string()),
            },
        };
        self.move_to(place, &original);
        lock(&self.entered).take();
        Ok(LeftWorktree {
            path: worktree.path,
            branch: worktree.branch,
            original_cwd: original,
            discarded_files: removed.discarded.n_files,
            discarded_commits: removed.discarded.n_commits,
            kept_as: removed.kept_as,
        })
    }

    /// Tells whether the session is in a worktree.
    pub(crate) fn is_entered(&self) -> bool {
        lock(&self.entered).is_some()
    }

    /// Returns what the transcript says of the copy that the session is in.
    pub(crate) fn record(&self) -> Value {
        let Some(Entered { worktree, original }) = lock(&self.entered).clone() else { return Value::Null };
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

/// Returns an error with what caused it.
fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
