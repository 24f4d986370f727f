//! `/reload-plugins`: plugins read anew. Their skills, commands and hooks count at once, their agents from the next prompt on.
//! Servers, programs, output styles and settings of plugins are what a session begins with: a change of them is named.

use std::sync::Arc;

use loci_engine::{LocalEffect, LocalOutcome, NewHooks};
use loci_stdx::{Env, Store, counted};

use super::{SessionCommands, refused};
use crate::options::RunOptions;
use crate::plugins::{RunPlugin, RunPlugins};
use crate::settings::RunSettings;

/// What it takes to read plugins anew.
#[derive(Clone)]
pub struct PluginReload {
    /// The environment as the process was given it.
    pub inherited: Env,
    /// What the run was asked to be.
    pub options: RunOptions,
    /// The plugins of the session.
    pub store: Arc<Store<RunPlugins>>,
}

/// Carries the command out.
pub(super) fn run(commands: &SessionCommands) -> LocalOutcome {
    let Some(reload) = &commands.plugin_reload else {
        return LocalOutcome::error("Plugins cannot be read anew in this session");
    };
    let run = match RunSettings::load(&reload.inherited, &reload.options) {
        Ok(run) => run,
        Err(error) => return refused(&error),
    };
    let (before, now) = (reload.store.get(), Arc::clone(&run.plugins));
    reload.store.update(|_| Arc::clone(&now));
    let hooks = NewHooks(Arc::new(run.hooks.config));
    LocalOutcome::text(summary(&before, &now))
        .with(LocalEffect::SetHooks(hooks))
        .with(LocalEffect::ReloadSkills)
}

/// Says what there is now, and what changed.
fn summary(before: &RunPlugins, now: &RunPlugins) -> String {
    let count = |n: fn(&RunPlugin) -> usize| now.plugins.iter().map(n).sum::<usize>() as u64;
    let mut text = [
        counted(now.plugins.len() as u64, "plugin", "plugins"),
        counted(count(|it| it.folder.skills.len()), "skill", "skills"),
        counted(count(|it| it.folder.agents.len()), "agent", "agents"),
        counted(count(|it| it.folder.hooks.len()), "file of hooks", "files of hooks"),
        counted(count(|it| it.folder.servers.len()), "file of servers", "files of servers"),
    ]
    .join(", ");
    let ids =
        |plugins: &RunPlugins| plugins.plugins.iter().map(|it| it.folder.id.to_string()).collect::<Vec<_>>();
    let (old, new) = (ids(before), ids(now));
    for (label, here, there) in [("new", &new, &old), ("gone", &old, &new)] {
        let names: Vec<&str> = here.iter().filter(|id| !there.contains(id)).map(String::as_str).collect();
        if !names.is_empty() {
            text += &format!("; {label}: {}", names.join(", "));
        }
    }
    if fixed_parts(before) != fixed_parts(now) {
        text += "\n\nMCP servers, programs, output styles, themes or settings of plugins changed; they count from the next session on.";
    }
    now.problems.iter().fold(text, |text, problem| format!("{text}\n\n! {problem}"))
}

/// Returns what a session takes up only when it begins.
fn fixed_parts(plugins: &RunPlugins) -> Vec<String> {
    let parts = |plugin: &RunPlugin| {
        let folder = &plugin.folder;
        format!(
            "{:?} {:?} {:?} {:?} {:?} {:?}",
            folder.id, folder.servers, folder.bin, folder.styles, folder.themes, folder.settings
        )
    };
    plugins.plugins.iter().map(parts).collect()
}
