//! A worktree for an agent that works apart from the others: made before it begins, locked while it works, gone with it
//! unless something in it is new. One that goes on does so where it was, or in a worktree made anew.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::hooks::EventInput;
use loci_core::ids::AgentId;
use loci_core::permission::Isolation;
use loci_storage::project::{checkout_root, main_checkout};
use loci_storage::sessions::{AgentMeta, find_agent_file, write_agent_meta};
use loci_storage::worktree::{
    AGENT_WORKTREE_PREFIX, Worktree, hold_worktree, open_worktree, release_worktree, remove_worktree,
    worktree_changes,
};
use loci_tools::{KeptWorktree, Workspace};

use super::plan::AgentPlan;
use super::{AgentService, LiveAgent};
use crate::conversation::host::lock;
use crate::extensions::{HookMoment, TurnHooks as _};

/// A worktree that an agent works in.
pub(super) struct AgentWorktree {
    /// What git made; a hook's is the hook's to remove.
    made: Option<Worktree>,
    path: PathBuf,
    moment: HookMoment,
}

impl AgentService {
    /// Makes the worktree, or opens the one that the agent had, and has it work there.
    pub(super) async fn make_worktree(&self, plan: &mut AgentPlan) -> Result<AgentWorktree, String> {
        let ctx = Arc::clone(&self.deps.ctx);
        let name = format!("{AGENT_WORKTREE_PREFIX}{}", plan.agent.id);
        let cwd = plan.place.cwd.clone();
        let moment = HookMoment { cwd, agent: Some(plan.agent.clone()), ..HookMoment::default() };
        let worktree = match plan.meta.worktree_path.clone().filter(|path| path.is_dir()) {
            Some(path) => AgentWorktree { made: self.open_own(&moment.cwd, &path).await, path, moment },
            // As the settings say, like any other worktree of the session.
            None => {
                let made = ctx.worktrees.create(name, moment.clone()).await?;
                let path = made.path.clone();
                AgentWorktree { made: (!made.is_hooks).then_some(made), path, moment }
            }
        };
        if let Some(made) = worktree.made.clone() {
            let env = ctx.services.env.clone();
            // Whoever else holds it keeps it from being removed as well.
            let held = tokio::task::spawn_blocking(move || {
                // A process that was killed may have left its lock.
                if made.is_reused {
                    release_worktree(&env, &made);
                }
                hold_worktree(&env, &made)
            });
            drop(held.await);
        }
        let (path, branch) = (worktree.path.clone(), worktree.made.as_ref().and_then(|it| it.branch.clone()));
        // Said before anything is done there: should the process be killed, the agent goes on there and nowhere else.
        plan.meta.worktree_path = Some(path.clone());
        plan.meta.worktree_branch = Some(branch.unwrap_or_default());
        let main = worktree.made.as_ref().map(|made| made.main.clone());
        let main = main
            .or_else(|| main_checkout(&worktree.moment.cwd))
            .unwrap_or_else(|| worktree.moment.cwd.clone());
        plan.isolation = Self::isolation_of(plan, &path, &main, &worktree.moment.cwd);
        plan.place = Workspace { cwd: path.clone(), project: path, ..plan.place.clone() };
        Ok(worktree)
    }

    /// Returns what keeps an agent apart that is sent out from `cwd`: from the main checkout, from the one around that
    /// directory, and from all that whoever sends it out is kept apart from.
    fn isolation_of(plan: &AgentPlan, path: &Path, main: &Path, cwd: &Path) -> Option<Isolation> {
        let mut isolation = Isolation::new(path, main)?;
        if let Some(checkout) = checkout_root(cwd) {
            isolation = isolation.keeping_out_of(&checkout);
        }
        Some(match &plan.isolation {
            Some(outer) => isolation.within(outer),
            None => isolation,
        })
    }

    /// Returns those that work in a worktree, as they are to be stopped: by their ids.
    pub(crate) fn working_in(&self, worktree: &Path) -> Vec<AgentId> {
        let works_there = |agent: &Arc<LiveAgent>| {
            agent.isolation().is_some_and(|isolation| isolation.worktree == worktree)
        };
        let live = lock(&self.live);
        let at_work = live.iter().filter(|agent| works_there(agent) && agent.at_work().is_some());
        at_work.map(|agent| agent.id.clone()).collect()
    }

    /// Has the files of an agent say which worktree it has entered by itself, if any.
    pub(crate) fn note_entered(&self, agent: &AgentId, path: Option<PathBuf>) {
        let Some(dir) = self.dir() else { return };
        let Some(file) = find_agent_file(&dir, agent.as_str()) else { return };
        if file.meta.entered_worktree != path {
            let meta = AgentMeta { entered_worktree: path, ..file.meta };
            if let Err(error) = write_agent_meta(&dir, agent, &meta) {
                self.tell_once(format!("What is known of an agent could not be saved: {error}"));
            }
        }
    }

    /// Ends the stay of an agent in a worktree that it has entered by itself; returns one that is kept.
    pub(super) async fn settle_entered(&self, plan: &AgentPlan) -> Option<KeptWorktree> {
        let cwd = plan.place.cwd.clone();
        let moment = HookMoment { cwd, agent: Some(plan.agent.clone()), ..HookMoment::default() };
        let kept = plan.worktrees.settle(moment).await?;
        Some(KeptWorktree { path: kept.path, branch: kept.branch.unwrap_or_default() })
    }

    /// Opens the copy that an agent had before.
    async fn open_own(&self, cwd: &Path, path: &Path) -> Option<Worktree> {
        let (env, cwd, path) = (self.deps.ctx.services.env.clone(), cwd.to_owned(), path.to_owned());
        let opened = tokio::task::spawn_blocking(move || open_worktree(&env, &cwd, &path)).await;
        opened.ok().flatten()
    }

    /// Removes a worktree in which nothing is new; returns one that is kept.
    pub(super) async fn settle_worktree(&self, worktree: AgentWorktree) -> Option<KeptWorktree> {
        let AgentWorktree { made, path, moment } = worktree;
        let Some(made) = made else {
            return Some(KeptWorktree { path, branch: String::new() });
        };
        let env = self.deps.ctx.services.env.clone();
        let settle = move || {
            release_worktree(&env, &made);
            let is_empty = worktree_changes(&env, &made).is_ok_and(|changes| changes.is_empty());
            let is_gone = is_empty && remove_worktree(&env, &made, false).is_ok();
            (is_gone, made)
        };
        let (is_gone, made) = tokio::task::spawn_blocking(settle).await.ok()?;
        if is_gone {
            let worktree_path = made.path;
            self.deps.ctx.hooks.notify(EventInput::WorktreeRemove { worktree_path }, moment);
            return None;
        }
        Some(KeptWorktree { path: made.path, branch: made.branch.unwrap_or_default() })
    }
}
