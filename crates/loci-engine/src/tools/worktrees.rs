//! Working copies of a session: made by a hook or by git, entered and left.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use loci_core::app_state::AppState;
use loci_core::hooks::EventInput;
use loci_core::permission::Isolation;
use loci_core::slug_words::slug_words;
use loci_stdx::{Env, Store};
use loci_storage::project::{checkout_root, main_checkout};
use loci_storage::worktree::{
    RemovedWorktree, Worktree, WorktreeOptions, WorktreeRemovalError, WorktreeSession, WorktreeUse,
    create_worktree, hold_worktree, hook_worktree, open_worktree, release_worktree, remove_worktree,
    use_worktree,
};
use loci_tools::{EnteredWorktree, LeftWorktree, Workspace, WorktreeRequest};
use serde_json::{Value, json};

use crate::conversation::host::lock;
use crate::extensions::hooks::HookService;
use crate::extensions::{FeatureHooks, HookMoment, TurnHooks};
use crate::session::state::change;

/// Makes and removes working copies, and knows the one that its owner is in: the session, or an agent that was sent out.
pub(crate) struct WorktreeService {
    env: Env,
    hooks: HookService,
    options: WorktreeOptions,
    owner: Owner,
    current: CurrentWorktree,
}

/// Whose moves they are.
enum Owner {
    /// The session's; its working directories are in its state.
    Session(Arc<Store<AppState>>),
    /// An agent's.
    Agent {
        /// Where its session is.
        session: CurrentWorktree,
        /// Whether it has a copy of its own that it was sent into.
        is_apart: bool,
    },
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
        Self { env, hooks, options, owner: Owner::Session(state), current }
    }

    /// Returns what an agent enters and leaves copies with, by itself: the session stays where it is.
    pub(crate) fn for_agent(&self, is_apart: bool) -> Self {
        Self {
            env: self.env.clone(),
            hooks: self.hooks.clone(),
            options: self.options.clone(),
            owner: Owner::Agent { session: self.current.clone(), is_apart },
            current: CurrentWorktree::default(),
        }
    }

    /// Returns the copy that its owner has entered.
    pub(crate) fn place(&self) -> Option<PathBuf> {
        self.current.get().map(|it| it.worktree.path)
    }

    /// Tells whether its owner has entered a copy.
    pub(crate) fn is_inside(&self) -> bool {
        self.current.get().is_some()
    }

    /// Returns where an agent is to be found again that was cut off: in the copy that it has entered by itself.
    pub(crate) fn entered_by_agent(&self) -> Option<PathBuf> {
        match self.owner {
            Owner::Agent { is_apart: false, .. } => self.current.get().map(|it| it.worktree.path),
            Owner::Agent { .. } | Owner::Session(_) => None,
        }
    }

    /// Tells whether its owner works in a copy already, entered or not.
    fn is_within(&self) -> bool {
        let is_sent_there = match &self.owner {
            Owner::Session(_) => false,
            Owner::Agent { session, is_apart } => *is_apart || session.get().is_some(),
        };
        is_sent_there || self.is_inside()
    }

    fn is_agents(&self) -> bool {
        matches!(self.owner, Owner::Agent { .. })
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

    /// Moves the owner into a working copy.
    pub(crate) async fn enter(
        &self,
        place: &Mutex<Workspace>,
        wish: WorktreeRequest,
        moment: HookMoment,
    ) -> Result<EnteredWorktree, String> {
        let here = lock(place).project.clone();
        let before = self.current.get();
        let worktree = match wish {
            WorktreeRequest::New(_) if self.is_within() => return Err(self.inside_already()),
            WorktreeRequest::New(name) => {
                let made_up = || slug_words(self.env.random.uuid_v4().as_u64_pair().0);
                self.create(name.unwrap_or_else(made_up), HookMoment { cwd: here.clone(), ..moment }).await?
            }
            WorktreeRequest::Existing(path) => self.open(&here, path).await?,
        };
        // From one copy only to another of ours: what was left is not to be come back to by a way around.
        if self.is_within() && !worktree.is_ours() {
            return Err(format!(
                "From one worktree to another only those under `.claude/worktrees` can be entered, and `{}` is elsewhere",
                worktree.path.display()
            ));
        }
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

    fn inside_already(&self) -> String {
        match self.is_inside() || !self.is_agents() {
            true => "The session is in a worktree already. Leave it first with ExitWorktree, or give the `path` of another.",
            false => "This agent works in a worktree already. Stay there, or give the `path` of another.",
        }
        .to_owned()
    }

    /// Takes an agent that goes on back to the copy that it had entered; `place` is where it was sent out from.
    pub(crate) async fn reenter(&self, place: &mut Workspace, path: PathBuf) -> Result<(), String> {
        let original = place.project.clone();
        let worktree = match self.open(&original, path.clone()).await {
            Ok(worktree) => worktree,
            // What a hook made need not be git's.
            Err(why) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                hook_worktree(&original, &name, &path).map_err(|_| why)?
            }
        };
        *place = Workspace { cwd: worktree.path.clone(), project: worktree.path.clone(), ..place.clone() };
        self.note_entered(WorktreeSession { worktree, original }).await;
        Ok(())
    }

    /// Ends the stay of an agent that is done. A copy that it made and in which nothing is new goes with it; one that is
    /// left is returned.
    pub(crate) async fn settle(&self, moment: HookMoment) -> Option<Worktree> {
        let worktree = self.leave().await?.worktree;
        let is_made_here = !worktree.is_reused && worktree.is_ours() && !worktree.is_hooks;
        if is_made_here && self.remove(worktree.clone(), false, moment).await.is_ok() {
            return None;
        }
        Some(worktree)
    }

    /// Has the owner be in no copy any more; returns the one that it was in.
    async fn leave(&self) -> Option<WorktreeSession> {
        let session = self.current.leave()?;
        if self.is_agents() {
            let (env, worktree) = (self.env.clone(), session.worktree.clone());
            let released = tokio::task::spawn_blocking(move || release_worktree(&env, &worktree)).await;
            if let Err(error) = released {
                tracing::debug!(target: "loci::worktrees", %error, "a worktree stays locked");
            }
        }
        Some(session)
    }

    /// Notes that the session is in a copy, for others and for itself.
    async fn note_entered(&self, session: WorktreeSession) {
        let (current, env) = (self.current.clone(), self.env.clone());
        // As that of any agent: git, too, keeps it from being removed.
        let is_held = self.is_agents() && !session.worktree.is_hooks;
        let before = self.current.get().filter(|_| is_held);
        let noted = tokio::task::spawn_blocking(move || {
            if let Some(before) = before {
                release_worktree(&env, &before.worktree);
            }
            if is_held {
                // A process that was killed may have left its lock.
                release_worktree(&env, &session.worktree);
                hold_worktree(&env, &session.worktree);
            }
            current.enter(&env, session);
        })
        .await;
        if let Err(error) = noted {
            tracing::debug!(target: "loci::worktrees", %error, "a worktree is not noted as entered");
        }
    }

    async fn open(&self, here: &Path, path: PathBuf) -> Result<Worktree, String> {
        let (env, here, shown) = (self.env.clone(), here.to_owned(), path.display().to_string());
        let is_first = !self.is_within();
        let found = tokio::task::spawn_blocking(move || {
            open_worktree(&env, &here, &path).or_else(|| {
                // Of a repository that lies in the one at hand, or in a directory that is none.
                let nested = main_checkout(&path).filter(|main| is_first && main.starts_with(&here))?;
                open_worktree(&env, &nested, &path)
            })
        })
        .await;
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
            let who = if self.is_agents() { "This agent" } else { "The session" };
            return Err(format!("{who} has entered no worktree, so there is none to leave."));
        };
        if removes && !session.worktree.is_ours() {
            return Err(format!(
                "The worktree `{}` was not made here, so it is not removed. Leave it with the action `keep`.",
                session.worktree.path.display()
            ));
        }
        // Its own use does not keep it from being removed.
        self.leave().await;
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

    /// Returns what keeps the owner apart from the checkouts that it came from, while it is in a worktree: the main one, and
    /// the linked one that it may have been in before.
    pub(crate) fn isolation(&self) -> Option<Isolation> {
        let WorktreeSession { worktree, original } = self.current.get()?;
        let isolation = Isolation::new(&worktree.path, &worktree.main)?;
        Some(match checkout_root(&original) {
            Some(checkout) => isolation.keeping_out_of(&checkout),
            None => isolation,
        })
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

    /// The owner works elsewhere from now on, and no longer where it did.
    fn move_to(&self, place: &Mutex<Workspace>, to: &Path) {
        let from = {
            let mut place = lock(place);
            place.cwd = to.to_owned();
            std::mem::replace(&mut place.project, to.to_owned())
        };
        if let Owner::Session(state) = &self.owner {
            change(state, |state| {
                let dirs = &mut state.permission.rulebook.dirs;
                dirs.iter_mut().filter(|dir| **dir == from).for_each(|dir| *dir = to.to_owned());
            });
        }
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
