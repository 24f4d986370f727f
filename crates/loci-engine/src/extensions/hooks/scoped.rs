//! Hooks that skills and agents bring along, beside those of settings.

use std::sync::Arc;

use loci_core::hooks::{HookConfig, HookEntry, HookEvent, HookScope};

use super::HookService;
use crate::conversation::host::lock;
use crate::extensions::ScopedHooks;

/// Hooks that were brought along, each under a number to take them away by.
#[derive(Default)]
pub(super) struct ScopedHookList {
    next: u64,
    all: Vec<(u64, ScopedHooks)>,
    /// Those that run once, and have.
    spent: Vec<Arc<HookEntry>>,
}

impl ScopedHookList {
    pub(super) fn add(&mut self, hooks: ScopedHooks) -> u64 {
        self.next += 1;
        self.all.push((self.next, hooks));
        self.next
    }

    pub(super) fn remove(&mut self, id: u64) {
        self.all.retain(|(it, _)| *it != id);
    }

    pub(super) fn has(&self, event: HookEvent) -> bool {
        self.all.iter().any(|(_, hooks)| hooks.config.has(event))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the handlers that count in the conversation of an agent, or in the main line.
    fn of(&self, agent: Option<&str>) -> impl Iterator<Item = &Arc<HookEntry>> {
        let counts = move |hooks: &&ScopedHooks| match &hooks.agent {
            Some(owner) => agent == Some(owner.as_str()),
            None => true,
        };
        self.all.iter().map(|(_, hooks)| hooks).filter(counts).flat_map(|hooks| hooks.config.entries())
    }

    /// Tells whether a handler may run, and remembers one that may no second time. A skill that is invoked again brings
    /// the same handler along.
    fn may_run(&mut self, entry: &Arc<HookEntry>) -> bool {
        let is_once = entry.is_once && matches!(entry.source.scope, HookScope::Skill(_));
        if !is_once {
            return true;
        }
        let is_spent = self.spent.iter().any(|other| {
            (other.event, &other.source, &other.handler) == (entry.event, &entry.source, &entry.handler)
        });
        if !is_spent {
            self.spent.push(Arc::clone(entry));
        }
        !is_spent
    }
}

impl HookService {
    /// Returns what counts in the conversation of an agent, or in the main line.
    pub(super) fn config_for(&self, agent: Option<&str>) -> Arc<HookConfig> {
        let config = self.config();
        let scoped = lock(&self.inner.scoped);
        if scoped.is_empty() {
            return config;
        }
        let mut all = HookConfig::clone(&config);
        all.extend_shared(scoped.of(agent).cloned());
        Arc::new(all)
    }

    /// Leaves out handlers that run once, and have.
    pub(super) fn without_spent(&self, entries: Vec<Arc<HookEntry>>) -> Vec<Arc<HookEntry>> {
        if !entries.iter().any(|entry| entry.is_once) {
            return entries;
        }
        let mut scoped = lock(&self.inner.scoped);
        entries.into_iter().filter(|entry| scoped.may_run(entry)).collect()
    }
}
