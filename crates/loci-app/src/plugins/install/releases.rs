//! Which release of a plugin is fetched where others say which versions they can use: the highest tag
//! `<plugin>--v<version>` that is within every range.
//!
//! Tags are those of the plugin's own repository, or of the marketplace's where the plugin lies in it; a marketplace that is
//! a directory has them when that lies in a repository. A plugin of a marketplace that has no such tag is taken as the
//! marketplace has it, and its version is held against the ranges like any other.

use std::fmt;
use std::path::{Path, PathBuf};

use loci_core::plugin::{PluginId, Release, best_release, release_tag_prefix, version_fits};
use loci_stdx::Env;
use loci_storage::config::{GitSource, KnownMarketplace, PluginState, repository_root, repository_tags};

use crate::plugins::source::{Fetch, marketplace_fetch};

/// A range of versions that a plugin can use, and which plugin says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VersionRange {
    pub(super) range: String,
    pub(super) by: PluginId,
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for `{}`", self.range, self.by)
    }
}

/// Tells whether a version is within all ranges.
pub(super) fn fits_all(ranges: &[VersionRange], version: &str) -> bool {
    ranges.iter().all(|it| version_fits(Some(&it.range), Some(version)))
}

/// Says which ranges there are.
pub(super) fn listed(ranges: &[VersionRange]) -> String {
    ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns what installed plugins, but for `except`, say of the versions of one.
pub(super) fn installed_ranges(state: &PluginState, of: &PluginId, except: &PluginId) -> Vec<VersionRange> {
    let mut ranges: Vec<VersionRange> = Vec::new();
    for installed in state.installed.iter().filter(|it| it.id != *of && it.id != *except) {
        // One that cannot be read is named elsewhere, and can use nothing.
        let Ok(folder) = state.read_installed(installed) else { continue };
        let meant = folder.manifest.dependencies.iter().filter(|it| it.id(&installed.id.marketplace) == *of);
        for range in meant.filter_map(|it| it.version.clone()) {
            let range = VersionRange { range, by: installed.id.clone() };
            if !ranges.contains(&range) {
                ranges.push(range);
            }
        }
    }
    ranges
}

/// A release that was found, and where it is fetched from.
pub(super) struct FoundRelease {
    pub(super) fetch: Fetch,
    pub(super) version: String,
}

/// A plugin as its marketplace has it.
pub(super) struct Listed<'a> {
    pub(super) id: &'a PluginId,
    pub(super) marketplace: &'a KnownMarketplace,
    /// Where the marketplace's paths start.
    pub(super) root: &'a Path,
}

/// Finds the release to fetch in the place of what the marketplace has now; none where that is to be taken. `dir` is a
/// directory of ours to ask from.
pub(super) fn find_release(
    env: &Env,
    plugin: &Listed<'_>,
    now: &Fetch,
    ranges: &[VersionRange],
    dir: &Path,
) -> Result<Option<FoundRelease>, String> {
    if ranges.is_empty() {
        return Ok(None);
    }
    let best = |url: &str| -> Result<Option<Release>, String> {
        let tags = repository_tags(env, dir, url, &release_tag_prefix(&plugin.id.name))?;
        let ranges: Vec<&str> = ranges.iter().map(|it| it.range.as_str()).collect();
        Ok(best_release(tags.iter().map(String::as_str), &plugin.id.name, &ranges))
    };
    let (git, inner, release) = match now {
        Fetch::Git(git, inner) => match best(&git.url).or_else(|why| over_ssh(git, &best, why))? {
            Some(release) => (git.clone(), inner.clone(), release),
            None => {
                return Err(format!("`{}` has no git tag satisfying {}", plugin.id, listed(ranges)));
            }
        },
        Fetch::Local(path) => {
            let Some((git, start)) = marketplace_repository(env, plugin) else { return Ok(None) };
            let Ok(inner) = path.strip_prefix(&start) else { return Ok(None) };
            // Tags that cannot be listed are none: the marketplace's own copy is there.
            let Some(release) = best(&git.url).ok().flatten() else { return Ok(None) };
            (git, inner.to_owned(), release)
        }
    };
    let git = GitSource { reference: Some(release.tag), commit: None, ..git };
    Ok(Some(FoundRelease { fetch: Fetch::Git(git, inner), version: release.version }))
}

/// Asks a repository over SSH that could not be asked in the other way.
fn over_ssh(
    git: &GitSource,
    best: &dyn Fn(&str) -> Result<Option<Release>, String>,
    why: String,
) -> Result<Option<Release>, String> {
    match &git.ssh_url {
        Some(url) => best(url).map_err(|other| format!("{why}; over SSH: {other}")),
        None => Err(why),
    }
}

/// Returns the repository of a marketplace, and the directory here that is its root.
fn marketplace_repository(env: &Env, plugin: &Listed<'_>) -> Option<(GitSource, PathBuf)> {
    match marketplace_fetch(&plugin.marketplace.source).ok()? {
        Fetch::Git(git, _) => Some((git, plugin.root.canonicalize().ok()?)),
        Fetch::Local(_) => {
            let root = repository_root(env, plugin.root)?;
            let url = root.to_str()?.to_owned();
            Some((GitSource { url, ssh_url: None, reference: None, commit: None, sparse: Vec::new() }, root))
        }
    }
}
