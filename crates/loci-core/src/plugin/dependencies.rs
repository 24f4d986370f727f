//! What plugins need of each other: which versions fit, and which plugins nobody needs any more.

use std::collections::BTreeSet;

use semver::{Version, VersionReq};

use super::{Dependency, PluginId};

/// What stands between a plugin and a version in the tag of a release.
const TAG_MARK: &str = "--v";

impl Dependency {
    /// Returns the plugin that is meant, for one that comes from `marketplace` itself.
    pub fn id(&self, marketplace: &str) -> PluginId {
        let marketplace = self.marketplace.as_deref().unwrap_or(marketplace).to_owned();
        PluginId { name: self.name.clone(), marketplace }
    }
}

/// Tells whether a version is within a range (`~2.1.0`, `^2.0`, `>=1.4 <3`, `1 || 2`); everything is, where there is none.
/// A range or a version that cannot be read fits nothing.
pub fn version_fits(range: Option<&str>, version: Option<&str>) -> bool {
    let Some(range) = range.map(str::trim).filter(|range| !range.is_empty() && *range != "*") else {
        return true;
    };
    let version = version.map(|text| text.trim().trim_start_matches('v'));
    let Some(version) = version.and_then(|text| Version::parse(text).ok()) else { return false };
    range.split("||").any(|part| requirement(part).is_some_and(|it| it.matches(&version)))
}

/// Reads one alternative of a range. A whole version alone means itself.
fn requirement(text: &str) -> Option<VersionReq> {
    if let Ok(version) = Version::parse(text.trim()) {
        return VersionReq::parse(&format!("={version}")).ok();
    }
    let mut comparators: Vec<String> = Vec::new();
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        match comparators.last_mut() {
            // The operator stood apart.
            Some(last) if last.ends_with(['>', '<', '=', '~', '^']) => last.push_str(word),
            _ => comparators.push(word.to_owned()),
        }
    }
    VersionReq::parse(&comparators.join(", ")).ok()
}

/// A release of a plugin: a tag `<plugin>--v<version>` of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The tag.
    pub tag: String,
    /// The version in it.
    pub version: String,
}

/// Returns the release of the highest version that is within every range; none where there is none.
pub fn best_release<'a>(
    tags: impl IntoIterator<Item = &'a str>,
    plugin: &str,
    ranges: &[&str],
) -> Option<Release> {
    let prefix = release_tag_prefix(plugin);
    let released = tags.into_iter().filter_map(|tag| {
        let version = tag.strip_prefix(&prefix)?;
        let fits = ranges.iter().all(|range| version_fits(Some(range), Some(version)));
        Version::parse(version).ok().filter(|_| fits).map(|parsed| (parsed, tag, version))
    });
    let (_, tag, version) = released.max_by(|(one, ..), (other, ..)| one.cmp(other))?;
    Some(Release { tag: tag.to_owned(), version: version.to_owned() })
}

/// Tells whether a text is a version with nothing behind its three numbers.
pub fn is_release_version(text: &str) -> bool {
    Version::parse(text.trim_start_matches('v')).is_ok_and(|it| it.pre.is_empty() && it.build.is_empty())
}

/// Returns what the tags of a plugin's releases begin with.
pub fn release_tag_prefix(plugin: &str) -> String {
    format!("{plugin}{TAG_MARK}")
}

/// An installed plugin, as far as others are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginNeeds {
    /// Which one.
    pub id: PluginId,
    /// Whether it came because another needed it.
    pub is_dependency: bool,
    /// What it needs.
    pub dependencies: Vec<Dependency>,
}

/// Returns the plugins that came because others needed them, and that nothing needs any more.
pub fn orphans(installed: &[PluginNeeds]) -> Vec<PluginId> {
    let mut needed: BTreeSet<PluginId> = BTreeSet::new();
    let mut open: Vec<&PluginNeeds> = installed.iter().filter(|it| !it.is_dependency).collect();
    while let Some(plugin) = open.pop() {
        for id in plugin.dependencies.iter().map(|it| it.id(&plugin.id.marketplace)) {
            if needed.insert(id.clone()) {
                open.extend(installed.iter().filter(|it| it.id == id));
            }
        }
    }
    let is_orphan = |it: &&PluginNeeds| it.is_dependency && !needed.contains(&it.id);
    installed.iter().filter(is_orphan).map(|it| it.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_fit_their_ranges() {
        for (range, version, expected) in [
            ("", "1.0.0", true),
            ("*", "x", true),
            ("~2.1.0", "2.1.7", true),
            ("~2.1.0", "2.2.0", false),
            ("^2.0", "2.9.0", true),
            ("^2.0", "3.0.0", false),
            (">=1.4", "1.4.0", true),
            (">= 1.4 < 2", "1.9.9", true),
            (">=1.4 <2", "2.0.0", false),
            ("=2.1.0", "2.1.0", true),
            ("2.1.0", "2.1.1", false),
            ("1.x || ^3", "3.4.5", true),
            ("^2.0.0", "2.1.0-beta.1", false),
            ("^2", "v2.0.1", true),
            ("nonsense", "1.0.0", false),
            ("^1", "abc123", false),
        ] {
            assert_eq!(version_fits(Some(range), Some(version)), expected, "{range} {version}");
        }
        assert!(version_fits(None, None) && !version_fits(Some("^1"), None));
    }

    #[test]
    fn best_release_is_the_highest_version_that_fits_every_range() {
        let tags = [
            "vault--v2.1.0",
            "vault--v2.1.10",
            "vault--v2.1.9",
            "vault--v2.2.0",
            "vault--v3.0.0-beta.1",
            "vault--vnext",
            "vault-kit--v2.1.99",
            "v2.1.98",
        ];
        let best = |ranges: &[&str]| best_release(tags, "vault", ranges).map(|it| it.version);
        for (ranges, expected) in [
            (&["~2.1.0"][..], Some("2.1.10")),
            (&["^2.0", ">=2.1"], Some("2.2.0")),
            (&["^2.0", "<2.2"], Some("2.1.10")),
            (&["=2.1.0"], Some("2.1.0")),
            (&["~2.1", "~3.0"], None),
            (&["^3.0.0"], None),
            (&["^3.0.0-0"], Some("3.0.0-beta.1")),
            (&["nonsense"], None),
            (&[], Some("3.0.0-beta.1")),
        ] {
            assert_eq!(best(ranges).as_deref(), expected, "{ranges:?}");
        }
        assert_eq!(best_release(tags, "vault-kit", &["^2"]).unwrap().tag, "vault-kit--v2.1.99");
    }

    #[test]
    fn orphans_are_dependencies_that_nothing_needs() {
        let plugin = |name: &str, is_dependency: bool, needs: &[&str]| PluginNeeds {
            id: PluginId { name: name.to_owned(), marketplace: "m".to_owned() },
            is_dependency,
            dependencies: needs
                .iter()
                .map(|name| Dependency { name: (*name).to_owned(), marketplace: None, version: None })
                .collect(),
        };
        let installed = [
            plugin("kept", false, &["a"]),
            plugin("a", true, &["b"]),
            plugin("b", true, &["a"]),
            plugin("left", true, &["alone"]),
            plugin("alone", true, &["left"]),
            plugin("own", false, &[]),
        ];
        let names: Vec<String> = orphans(&installed).into_iter().map(|id| id.name).collect();
        assert_eq!(names, ["left", "alone"]);
    }
}
