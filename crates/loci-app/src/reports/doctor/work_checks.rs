//! What the doctor looks at of agents, plans, tasks and worktrees.

use std::fs;
use std::path::Path;

use loci_core::agent::{AgentRegistry, AgentScope, Problem};
use loci_stdx::counted;
use loci_storage::sessions::survey_task_lists;
use loci_storage::worktree::{SurveyedWorktree, WorktreeState, survey_worktrees};
use serde_json::{Value, json};

use super::checks::Installation;
use super::{Block, Check};
use crate::extensions::agents::all_agents;
use crate::settings::InstructionOptions;

/// Definitions that cannot be read, that another hides, or that ask for something in vain.
pub(super) fn agents(it: &Installation) -> Check {
    let options = InstructionOptions::new(&it.places, &it.loaded, &[]);
    let registry = all_agents(&it.env, &options.definition_places(&it.env, &it.home), &it.plugins);
    let is_own = |scope: AgentScope| scope != AgentScope::BuiltIn;
    let n_own = registry.iter().filter(|agent| is_own(agent.source.scope)).count();
    let (texts, problems): (Vec<&Problem>, Vec<&Problem>) =
        registry.problems.iter().partition(|problem| is_other_text(problem));
    let hidden = hidden(&registry);
    let vain = registry.iter().flat_map(|agent| {
        agent.notes.iter().map(move |note| format!("{} ({}): {note}", agent.name, agent.source))
    });
    let notes: Vec<String> = hidden
        .iter()
        .cloned()
        .chain(vain)
        .chain(texts.iter().map(|problem| format!("{problem}; it counts as a text")))
        .collect();
    let rows: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let value = json!({"own": n_own, "problems": rows, "hidden": hidden, "notes": notes});
    Check {
        n_problems: rows.len(),
        text: vec![
            Block::Line(format!("Agents: {n_own} besides those built in; `loci agents list` names them")),
            Block::Section("Agents that cannot be read:", rows),
            Block::Section("Notes about agents:", notes),
        ],
        json: vec![("agents", value)],
    }
}

/// Texts that lie beside definitions are no mistake.
fn is_other_text(problem: &Problem) -> bool {
    problem.message.contains("no front matter") || problem.message.contains("no `name`")
}

fn hidden(registry: &AgentRegistry) -> Vec<String> {
    let own = registry.shadowed.iter().filter(|agent| agent.source.scope != AgentScope::BuiltIn);
    own.map(|agent| {
        let before = registry.find(&agent.name).map(|it| it.source.to_string()).unwrap_or_default();
        format!("{} ({}) does not count: {before} comes first", agent.name, agent.source)
    })
    .collect()
}

/// Lists of tasks, and what in them is no task.
pub(super) fn tasks(it: &Installation) -> Check {
    let lists = survey_task_lists(&it.home);
    let n_tasks: usize = lists.iter().map(|list| list.n_tasks).sum();
    let broken = lists.iter().flat_map(|list| &list.broken);
    let broken = broken.map(|file| format!("`{}` holds no task", it.places.display_path(file)));
    let locks = lists.iter().filter_map(|list| list.lock_problem.clone());
    let rows: Vec<String> = broken.chain(locks).collect();
    let line = format!("Tasks: {n_tasks} in {}", counted(lists.len() as u64, "list", "lists"));
    Check {
        n_problems: rows.len(),
        json: vec![("tasks", json!({"lists": lists.len(), "tasks": n_tasks, "problems": rows}))],
        text: vec![Block::Line(line), Block::Section("Tasks:", rows)],
    }
}

/// Plans that cannot be read.
pub(super) fn plans(it: &Installation) -> Check {
    let dir = it.home.root().join("plans");
    let files: Vec<_> = fs::read_dir(&dir).into_iter().flatten().flatten().map(|file| file.path()).collect();
    let plans: Vec<_> = files.iter().filter(|path| path.extension().is_some_and(|it| it == "md")).collect();
    let rows: Vec<String> = plans.iter().filter_map(|path| plan_problem(it, path)).collect();
    Check {
        n_problems: rows.len(),
        json: vec![("plans", json!({"plans": plans.len(), "problems": rows}))],
        text: vec![Block::Line(format!("Plans: {}", plans.len())), Block::Section("Plans:", rows)],
    }
}

fn plan_problem(it: &Installation, path: &Path) -> Option<String> {
    let shown = it.places.display_path(path);
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => {
            Some(format!("`{shown}` is a symlink, so it is not written to"))
        }
        Ok(_) => {
            let error = loci_stdx::read_regular_to_string(path).err()?;
            Some(format!("`{shown}` cannot be read: {error}"))
        }
        Err(error) => Some(format!("`{shown}`: {error}")),
    }
}

/// Working copies that somebody left behind.
pub(super) fn worktrees(it: &Installation) -> Check {
    let found = survey_worktrees(&it.env, &it.env.cwd);
    let (mut problems, mut notes) = (Vec::new(), Vec::new());
    for worktree in &found {
        match &worktree.state {
            WorktreeState::Whole(_) => notes.extend(left_behind(worktree)),
            state => problems.push(format!("{}: {}", worktree.name, advice(worktree, state))),
        }
    }
    let rows: Vec<Value> = found
        .iter()
        .map(|worktree| json!({"name": worktree.name, "path": worktree.path, "state": advice(worktree, &worktree.state)}))
        .collect();
    let line = format!("Worktrees: {}", found.len());
    Check {
        n_problems: problems.len(),
        json: vec![("worktrees", rows.into())],
        text: vec![
            Block::Line(line),
            Block::Section("Worktrees:", problems),
            Block::Section("Worktrees of agents:", notes),
        ],
    }
}

/// Says what to do about a copy that an agent left; those of people are theirs.
fn left_behind(worktree: &SurveyedWorktree) -> Option<String> {
    worktree.is_agents().then(|| format!("{}: {}", worktree.name, advice(worktree, &worktree.state)))
}

fn advice(worktree: &SurveyedWorktree, state: &WorktreeState) -> String {
    match state {
        WorktreeState::Whole(changes) if changes.is_empty() => "nothing in it is new".to_owned(),
        WorktreeState::Whole(changes) => format!(
            "{} and {} are nowhere else",
            counted(changes.n_files as u64, "file", "files"),
            counted(changes.n_commits as u64, "commit", "commits")
        ),
        WorktreeState::Orphaned => {
            format!("`{}` is no worktree any more; look at it, then remove it", worktree.path.display())
        }
        WorktreeState::Missing => {
            "its directory is gone; `git worktree prune` makes git forget it".to_owned()
        }
        WorktreeState::Unreadable(why) => why.clone(),
    }
}
