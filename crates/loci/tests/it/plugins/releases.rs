//! Versions of plugins that others need, found by the tags of releases.

use loci_testkit::Step;
use serde_json::{Value, json};

use super::needs::{market, state};
use super::verbs::{fine, refused};
use crate::support::{World, loci};

/// Writes the marketplace `m` with the plugin `vault` in a version, commits it, and tags it as a release.
fn release(world: &World, manifest_version: &str, tag: Option<&str>, others: &[(&str, Value)]) {
    let mut plugins = vec![("vault", json!({"version": manifest_version}))];
    plugins.extend(others.iter().cloned());
    market(world, "m", &json!({}), &plugins);
    world.home.write("m/vault/notes.txt", manifest_version);
    world.home.commit(manifest_version);
    if let Some(tag) = tag {
        world.home.git(&["tag", tag]);
    }
}

fn needs(range: &str) -> Value {
    json!({"version": "1.0.0", "dependencies": [{"name": "vault", "version": range}]})
}

/// Returns where the copy of the plugin `vault` lies, below the cache, and its version.
fn vault(world: &World) -> (String, String) {
    let entry = state(world)["plugins"]["vault@m"][0].clone();
    let path = entry["installPath"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    (path, entry["version"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn needed_plugin_is_fetched_at_the_highest_tag_that_everybody_can_use() {
    let world = World::with_git(Step::text("done")).await;
    world.home.git(&["config", "user.email", "ann@example.com"]);
    world.home.git(&["config", "user.name", "Ann"]);
    let others = [
        ("kit", needs("~2.1.0")),
        ("wide", needs("^2.0")),
        ("strict", needs("=2.1.0")),
        ("future", needs("~3.0")),
    ];
    release(&world, "2.1.0", Some("vault--v2.1.0"), &others);
    // A manifest that nobody brought up to date: the tag counts.
    release(&world, "2.1.0-stale", Some("vault--v2.1.4"), &others);
    release(&world, "2.2.0", Some("vault--v2.2.0"), &others);
    release(&world, "4.0.0", None, &others);
    fine(&world, &["marketplace", "add", "./m"]);

    let said = fine(&world, &["install", "wide"]);
    assert!(said.contains("Installed vault@m 2.2.0; it is on"), "{said}");
    let (copy, version) = vault(&world);
    let commit = world.home.git(&["rev-parse", "vault--v2.2.0"]);
    assert_eq!((copy, version.as_str()), (format!("2.2.0-{}", &commit.trim()[..12]), "2.2.0"));

    // Another plugin can use less: what is there gives way to what both can use.
    let said = fine(&world, &["install", "kit"]);
    assert!(said.contains("Installed vault@m 2.1.4"), "{said}");
    let listed = fine(&world, &["list"]);
    assert!(listed.contains("vault@m  2.1.4  on") && !listed.contains("it stays off"), "{listed}");
    assert_eq!(state(&world)["plugins"]["vault@m"].as_array().unwrap().len(), 1);
    assert_eq!(state(&world)["plugins"]["vault@m"][0]["installedAsDependency"], true);
    assert_eq!(fine(&world, &["update", "vault"]), "vault@m 2.1.4 is up to date\n");

    refused(&world, &["install", "future"], "~3.0 for `future@m`, and 4.0.0 is there");
    assert_eq!(vault(&world).1, "2.1.4", "nothing has changed");

    // A tag that was moved is another copy.
    world.home.git(&["tag", "--force", "vault--v2.1.4", "vault--v2.2.0"]);
    assert!(fine(&world, &["update", "vault"]).contains("Updated vault@m from 2.1.4 to 2.1.4"));

    // Once nobody says which version, the marketplace does.
    fine(&world, &["uninstall", "kit"]);
    fine(&world, &["uninstall", "wide"]);
    assert!(fine(&world, &["update", "vault"]).contains("to 4.0.0"));
    // What somebody installed is not pruned because another needs it in another version.
    fine(&world, &["uninstall", "vault"]);
    fine(&world, &["install", "vault"]);
    assert!(fine(&world, &["install", "strict"]).contains("Installed vault@m 2.1.0"));
    assert!(state(&world)["plugins"]["vault@m"][0].get("installedAsDependency").is_none());
}

#[tokio::test]
async fn plugin_of_its_own_repository_needs_a_tag_that_fits() {
    let world = World::with_git(Step::text("done")).await;
    world.home.git(&["config", "user.email", "ann@example.com"]);
    world.home.git(&["config", "user.name", "Ann"]);
    world.home.write(".claude-plugin/plugin.json", json!({"name": "vault", "version": "2.0.0"}).to_string());
    world.home.write("skills/open/SKILL.md", "Open it.");
    world.home.commit("a plugin that is a repository");
    world.home.git(&["tag", "vault--v2.0.0"]);
    let url = format!("file://{}", world.home.project().display());
    let catalogue = json!({"name": "m", "plugins": [
        {"name": "vault", "source": {"source": "url", "url": url}},
        {"name": "kit", "source": "./kit"},
        {"name": "late", "source": "./late"},
    ]});
    world.home.write("far/.claude-plugin/marketplace.json", catalogue.to_string());
    for (name, range) in [("kit", "^2.0"), ("late", "^3.0")] {
        let mut manifest = needs(range);
        manifest["name"] = json!(name);
        world.home.write(format!("far/{name}/.claude-plugin/plugin.json"), manifest.to_string());
    }
    fine(&world, &["marketplace", "add", "./far"]);
    refused(&world, &["install", "late"], "`vault@m` has no git tag satisfying ^3.0 for `late@m`");
    assert!(fine(&world, &["install", "kit"]).contains("Installed vault@m 2.0.0"));
}

#[tokio::test]
async fn marketplace_is_fetched_again_before_a_plugin_of_it_is_installed() {
    let world = World::with_git(Step::text("done")).await;
    world.home.git(&["config", "user.email", "ann@example.com"]);
    world.home.git(&["config", "user.name", "Ann"]);
    let publish = |plugins: &[&str]| {
        let entry = |name: &&str| json!({"name": name, "source": format!("./{name}")});
        let entries: Vec<Value> = plugins.iter().map(entry).collect();
        let catalogue = json!({"name": "m", "plugins": entries});
        world.home.write(".claude-plugin/marketplace.json", catalogue.to_string());
        for name in plugins {
            let manifest = json!({"name": name, "version": "1.0.0"});
            world.home.write(format!("{name}/.claude-plugin/plugin.json"), manifest.to_string());
        }
        world.home.commit("plugins");
    };
    publish(&["old"]);
    let url = format!("file://{}", world.home.project().display());
    fine(&world, &["marketplace", "add", &url]);
    publish(&["old", "new"]);
    let quiet = loci().args(["plugin", "install", "new@m"]);
    let output = world.run(&quiet.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"));
    assert!(output.code == Some(1) && output.stderr.contains("has no plugin `new`"), "{output:?}");
    // What was fetched a while ago is fetched again.
    let file = world.home.config_home().join("plugins/known_marketplaces.json");
    let age = || {
        let mut known: Value = serde_json::from_str(&world.home.read(&file)).unwrap();
        known["m"]["lastUpdated"] = json!("2020-01-01T00:00:00.000Z");
        world.home.write(file.display().to_string(), known.to_string());
    };
    age();
    assert!(fine(&world, &["install", "new@m"]).contains("Installed new@m 1.0.0"));
    // A repository that cannot be reached is told, and what is known of it counts.
    age();
    std::fs::rename(world.home.project().join(".git"), world.home.project().join("gone")).unwrap();
    let said = fine(&world, &["install", "old@m"]);
    assert!(said.contains("was not refreshed") && said.contains("Installed old@m 1.0.0"), "{said}");
}
