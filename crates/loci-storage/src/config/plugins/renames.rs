//! Plugins that their marketplace calls by another name now, or has no more (`renames` of its catalogue).
//!
//! What settings say of the former name counts for the present one: one that was turned off stays off. An installed copy of
//! the former name runs on until the present one is installed, which takes its place; one that was removed from its
//! marketplace is off. Nothing is written here: whoever starts a session rewrites the settings ([`RenamedPlugin`]).

use std::collections::BTreeSet;

use loci_core::plugin::{PluginId, PluginProblem, Renamed};
use serde_json::{Map, Value};

use super::is_on;
use super::state::{Catalogues, InstalledPlugin};

/// A plugin that settings name as it is not called any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenamedPlugin {
    /// The name in settings.
    pub old: PluginId,
    /// What it is called now; none where its marketplace has removed it.
    pub new: Option<PluginId>,
}

/// What the catalogues say of names, and what follows.
#[derive(Default)]
pub(super) struct Renames {
    /// What settings say, by the names that count.
    pub(super) enabled: Map<String, Value>,
    /// What settings should say by another name.
    pub(super) renamed: Vec<RenamedPlugin>,
    /// What is to be said.
    pub(super) problems: Vec<PluginProblem>,
    /// Installed plugins that are not used, and why.
    replaced: Vec<(PluginId, String)>,
}

impl Renames {
    /// Looks for names in settings, and among what is installed, that are none any more.
    pub(super) fn find(
        enabled: &Map<String, Value>,
        installed: &[InstalledPlugin],
        catalogues: &Catalogues<'_>,
    ) -> Self {
        let mut found = Self { enabled: enabled.clone(), ..Self::default() };
        if catalogues.has_none() {
            return found;
        }
        let present: BTreeSet<&PluginId> = installed.iter().map(|it| &it.id).collect();
        let named: Vec<PluginId> = enabled.keys().filter_map(|key| PluginId::parse(key)).collect();
        let ids: BTreeSet<&PluginId> = present.iter().copied().chain(&named).collect();
        for id in ids {
            let said = enabled.get(&id.to_string());
            let is_off = said.is_some_and(|said| !is_on(said));
            // What is off, and of a marketplace that nothing is used of, is not worth a look at the catalogue.
            if is_off && !present.iter().any(|other| other.marketplace == id.marketplace) {
                continue;
            }
            match catalogues.renamed(id) {
                Some(Renamed::To(name)) => {
                    let Some(new) = PluginId::parse(&format!("{name}@{}", id.marketplace)) else { continue };
                    found.take_new_name(id, new, said, &present);
                }
                Some(Renamed::Removed) => found.take_removed(id, said, &present),
                None => {}
            }
        }
        found
    }

    fn take_new_name(
        &mut self,
        old: &PluginId,
        new: PluginId,
        said: Option<&Value>,
        present: &BTreeSet<&PluginId>,
    ) {
        let (has_old, has_new) = (present.contains(old), present.contains(&new));
        if has_old && !has_new {
            if said.is_none_or(is_on) {
                let message = format!(
                    "it is called `{}` in the marketplace `{}` now; run `loci plugin install {new}`, which takes its place",
                    new.name, new.marketplace
                );
                self.problems.push(PluginProblem::new(old, "renamed", message));
            }
            return;
        }
        if has_old {
            let why = format!(
                "it is called `{new}` now, which is installed; `loci plugin uninstall {old}` takes this copy away"
            );
            self.replaced.push((old.clone(), why));
        }
        let Some(said) = said else { return };
        self.enabled.remove(&old.to_string());
        if has_new {
            self.enabled.entry(new.to_string()).or_insert_with(|| said.clone());
        }
        if is_on(said) && !has_old {
            let what_to_do =
                if has_new { String::new() } else { format!("; run `loci plugin install {new}`") };
            let message =
                format!("renamed to `{}` in the marketplace `{}`{what_to_do}", new.name, new.marketplace);
            self.problems.push(PluginProblem::new(old, "renamed", message));
        }
        self.renamed.push(RenamedPlugin { old: old.clone(), new: Some(new) });
    }

    fn take_removed(&mut self, old: &PluginId, said: Option<&Value>, present: &BTreeSet<&PluginId>) {
        let was_on = said.is_none_or(is_on);
        if present.contains(old) && was_on {
            let why =
                format!("its marketplace has removed it; `loci plugin uninstall {old}` takes the copy away");
            self.replaced.push((old.clone(), why));
        }
        if said.is_some() && was_on {
            self.enabled.remove(&old.to_string());
            if !present.contains(old) {
                self.problems.push(PluginProblem::new(old, "renamed", "its marketplace has removed it"));
            }
            self.renamed.push(RenamedPlugin { old: old.clone(), new: None });
        }
    }

    /// Says why an installed plugin is not used, where that is so.
    pub(super) fn replacement(&self, id: &PluginId) -> Option<String> {
        self.replaced.iter().find(|(old, _)| old == id).map(|(_, why)| why.clone())
    }
}
