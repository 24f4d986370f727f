//! Plugins as values: what a manifest says, what its options are set to, and what stands for something else in its files.
//!
//! A plugin is a directory of skills, agents, hooks, MCP servers and output styles. Files are found and read in
//! `loci-storage`; here is what they mean. Everything is read leniently: a field that cannot be understood costs itself
//! and is reported. Only a name that is none costs the whole plugin, for everything it brings is called by it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

mod catalogue;
mod dependencies;
mod id;
mod manifest;
mod oddities;
mod options;
mod parts;
mod policy;
mod source_match;
mod variables;

pub use catalogue::{Renamed, catalogue_problems, joined_manifest, renamed};
pub use dependencies::{
    PluginNeeds, Release, best_release, is_release_version, orphans, release_tag_prefix, version_fits,
};
pub use id::{INLINE_MARKETPLACE, PluginId, SKILLS_DIR_MARKETPLACE, is_component_name, is_plugin_name};
pub use manifest::{Declared, Dependency, Manifest, parse_manifest, plugin_path};
pub use oddities::{catalogue_oddities, manifest_oddities, unread_field_problems};
pub use options::{OptionKind, OptionSpec, OptionValue, option_values, parse_options};
pub use parts::{plugin_hooks, plugin_servers};
pub use policy::{MarketplacePolicy, PluginOnly, imitation_refusal, reserved_refusal};
pub use variables::PluginVariables;

/// Something wrong with a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginProblem {
    /// Its id, or the directory where that is not known.
    pub plugin: String,
    /// The kind, for programs.
    pub kind: Cow<'static, str>,
    /// What it is and what comes of it, one clause.
    pub message: String,
}

impl PluginProblem {
    /// Makes a problem.
    pub fn new(plugin: impl ToString, kind: &'static str, message: impl Into<String>) -> Self {
        Self { plugin: plugin.to_string(), kind: kind.into(), message: message.into() }
    }
}

impl std::fmt::Display for PluginProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Plugin `{}`: {}", self.plugin, self.message)
    }
}

/// The plugins of a session, for those who look on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginList {
    /// Those that are on.
    pub plugins: Vec<PluginSummary>,
    /// Their colour themes.
    pub themes: Vec<PluginTheme>,
    /// What is wrong.
    pub problems: Vec<PluginProblem>,
}

/// A colour theme of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginTheme {
    /// What settings call it by, behind `custom:`: the plugin's name, a colon, the name of its file.
    pub slug: String,
    /// What its file says.
    pub text: String,
}

/// A plugin of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginSummary {
    /// Its name.
    pub name: String,
    /// Where it lies.
    pub path: String,
    /// Its id.
    pub source: String,
}
