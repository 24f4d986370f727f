//! A worktree for an agent that works apart from the others: made before it begins, gone with it unless something in it
//! is new.

use std::path::PathBuf;
use std::sync::Arc;

use loci_core::hooks::EventInput;
use loci_storage::worktree::{AGENT_WORKTREE_PREFIX, Worktree, remove_worktree, worktree_changes};
use loci_tools::{KeptWorktree, Workspace};

use super::AgentService;
use super::plan::AgentPlan;
use crate::extension::{HookMoment, TurnHooks as _};

/// A worktree that an agent works in.
pub(super) struct AgentWorktree {
    /// What git made; a hook's is the hook's to remove.
    made: Option<Worktree>,
    path: PathBuf,
    moment: HookMoment,
}

impl AgentService {
    /// Makes the worktree and has the agent work there.
    pub(super) async fn make_worktree(&self, plan: &mut AgentPlan) -> Result<AgentWorktree, String> {
        let ctx = Arc::clone(&self.deps.ctx);
        let name = format!("{AGENT_WORKTREE_PREFIX}{}", plan.agent.id);
        let cwd = plan.place.cwd.clone();
        let moment = HookMoment { cwd, agent: Some(plan.agent.clone()), ..HookMoment::default() };
        // As the settings say, like any other worktree of the session.
        let made = ctx.worktrees.create(name, moment.clone()).await?;
        let path = made.path.clone();
        let worktree = AgentWorktree { made: made.base.is_some().then_some(made), path, moment };
        let path = worktree.path.clone();
        plan.place = Workspace { cwd: path.clone(), project: path, ..plan.place.clone() };
        Ok(worktree)
    }

    /// Removes a worktree in which nothing is new; returns one that is kept.
    pub(super) async fn settle_worktree(&self, worktree: AgentWorktree) -> Option<KeptWorktree> {
        let AgentWorktree { made, path, moment } = worktree;
        let Some(made) = made else {
            return Some(KeptWorktree { path, branch: String::new() });
        };
        let env = self.deps.ctx.env.clone();
        let settle = move || {
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
