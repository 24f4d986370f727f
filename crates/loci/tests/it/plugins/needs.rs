//! Plugins that need others, have secrets, change after they were approved, or lie among skills.

use loci_testkit::Step;
use serde_json::{Value, json};

use super::verbs::{fine, refused};
use crate::settings::trust;
use crate::support::{World, print};

/// Writes a marketplace of plugins: name and manifest of each.
pub(super) fn market(world: &World, name: &str, extra: &Value, plugins: &[(&str, Value)]) {
    let entries: Vec<Value> =
        plugins.iter().map(|(name, _)| json!({"name": name, "source": format!("./{name}")})).collect();
    let mut catalogue = json!({"name": name, "plugins": entries});
    for (key, value) in extra.as_object().into_iter().flatten() {
        catalogue[key] = value.clone();
    }
    world.home.write(format!("{name}/.claude-plugin/marketplace.json"), catalogue.to_string());
    for (plugin, manifest) in plugins {
        let mut whole = json!({"name": plugin});
        manifest.as_object().into_iter().flatten().for_each(|(key, value)| whole[key] = value.clone());
        world.home.write(format!("{name}/{plugin}/.claude-plugin/plugin.json"), whole.to_string());
        world.home.write(format!("{name}/{plugin}/skills/{plugin}-skill/SKILL.md"), "Do it.");
    }
}

pub(super) fn state(world: &World) -> Value {
    let file = world.home.config_home().join("plugins/installed_plugins.json");
    serde_json::from_str(&world.home.read(file)).unwrap()
}

#[tokio::test]
async fn what_a_plugin_needs_is_installed_with_it_and_pruned_after_it() {
    let world = World::new(Step::text("done")).await;
    market(
        &world,
        "m",
        &json!({}),
        &[
            (
                "app",
                json!({"version": "1.0.0", "dependencies": ["lib", {"name": "base", "version": "^2.0"}]}),
            ),
            ("lib", json!({"version": "1.0.0", "dependencies": ["base"]})),
            ("base", json!({"version": "2.3.0", "defaultEnabled": false})),
            ("picky", json!({"version": "1.0.0", "dependencies": [{"name": "base", "version": "~1.0"}]})),
            ("lost", json!({"version": "1.0.0", "dependencies": ["nowhere"]})),
            ("egg", json!({"version": "1.0.0", "dependencies": ["hen"]})),
            ("hen", json!({"version": "1.0.0", "dependencies": ["egg"]})),
        ],
    );
    fine(&world, &["marketplace", "add", "./m"]);
    let said = fine(&world, &["install", "app"]);
    assert!(said.contains("Installed base@m 2.3.0; it is on") && said.contains("Installed lib@m"), "{said}");
    let listed = fine(&world, &["list"]);
    assert_eq!(listed.matches("  on  ").count(), 3, "{listed}");
    assert_eq!(state(&world)["plugins"]["base@m"][0]["installedAsDependency"], true);
    assert!(state(&world)["plugins"]["app@m"][0].get("installedAsDependency").is_none());

    let both = "in version ^2.0 for `app@m`, ~1.0 for `picky@m`, and 2.3.0 is there";
    refused(&world, &["install", "picky"], both);
    refused(&world, &["install", "lost"], "it needs `nowhere@m`");
    refused(&world, &["disable", "base"], "is still needed by");
    assert!(fine(&world, &["prune"]).contains("Nothing to prune"));

    fine(&world, &["disable", "app"]);
    fine(&world, &["disable", "lib"]);
    fine(&world, &["disable", "base"]);
    let said = fine(&world, &["enable", "app"]);
    assert!(said.contains("base@m is on, too") && said.contains("lib@m is on, too"), "{said}");

    fine(&world, &["uninstall", "app"]);
    let said = fine(&world, &["prune"]);
    assert!(said.contains("base@m\n") && said.contains("lib@m\n") && said.contains("--yes"), "{said}");
    assert!(fine(&world, &["prune", "--yes"]).contains("lib@m is not installed any more"));
    assert_eq!(state(&world)["plugins"], json!({}));
    // Two that need each other come and go together.
    assert!(fine(&world, &["install", "egg"]).contains("Installed hen@m"));
    assert!(fine(&world, &["disable", "hen"]).contains("egg@m is off, too"));
    assert_eq!(fine(&world, &["list"]).matches("  off  ").count(), 2);
    assert!(fine(&world, &["enable", "hen"]).contains("egg@m is on, too"));
    // Where nobody can be asked, what is not needed any more is only named.
    assert!(fine(&world, &["uninstall", "egg", "--prune"]).contains("hen@m\nNothing needs these"));
    assert!(state(&world)["plugins"].get("hen@m").is_some());
    assert!(fine(&world, &["prune", "-y"]).contains("hen@m is not installed any more"));
    assert_eq!(state(&world)["plugins"], json!({}));
}

#[tokio::test]
async fn plugin_of_another_marketplace_comes_only_where_that_is_allowed() {
    let world = World::new(Step::text("done")).await;
    let needs = json!({"version": "1.0.0", "dependencies": [{"name": "shared", "marketplace": "other"}]});
    market(&world, "m", &json!({}), &[("app", needs.clone())]);
    market(&world, "other", &json!({}), &[("shared", json!({"version": "1.0.0"}))]);
    fine(&world, &["marketplace", "add", "./m"]);
    fine(&world, &["marketplace", "add", "./other"]);
    refused(&world, &["install", "app"], "allowCrossMarketplaceDependenciesOn");
    market(&world, "m", &json!({"allowCrossMarketplaceDependenciesOn": ["other"]}), &[("app", needs)]);
    assert!(fine(&world, &["install", "app"]).contains("Installed shared@other 1.0.0"));
}

#[tokio::test]
async fn missing_and_unfit_needs_are_named_at_start() {
    let world = World::new(Step::text("done")).await;
    for (name, manifest) in [
        ("app", json!({"name": "app", "dependencies": ["gone"]})),
        ("top", json!({"name": "top", "dependencies": ["app"]})),
        ("old", json!({"name": "old", "dependencies": [{"name": "base", "version": "^2"}]})),
        ("base", json!({"name": "base", "version": "1.0.0"})),
    ] {
        world.home.write(format!("{name}/.claude-plugin/plugin.json"), manifest.to_string());
        world.home.write(format!("{name}/skills/{name}s/SKILL.md"), "x");
    }
    let dirs = ["app", "top", "old", "base"].into_iter().flat_map(|name| ["--plugin-dir", name]);
    let output = world.run(&print(["hi"]).args(dirs));
    for part in [
        "needs `gone@inline`, which is not installed; it stays off",
        "needs `app@inline`, which is off; it stays off",
        "`base@inline` in version ^2, and 1.0.0 is there; it stays off",
    ] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    let sent = String::from_utf8_lossy(&world.last_request().body).into_owned();
    assert!(sent.contains("base:bases"), "{sent}");
    for gone in ["app:apps", "top:tops", "old:olds"] {
        assert!(!sent.contains(gone), "{gone}: {sent}");
    }
}

#[tokio::test]
async fn secrets_are_kept_apart_from_settings_and_reach_hooks_alone() {
    let world = World::new(Step::text("done")).await;
    let options = json!({
        "token": {"type": "string", "title": "T", "description": "d", "sensitive": true, "required": true},
        "region": {"type": "string", "title": "R", "description": "d"},
        "n": {"type": "number", "title": "N", "description": "d", "max": 5},
    });
    market(&world, "m", &json!({}), &[("app", json!({"version": "1.0.0", "userConfig": options}))]);
    let hook = json!({"hooks": {"SessionStart": [{"hooks": [
        {"type": "command", "command": "echo \"$CLAUDE_PLUGIN_OPTION_TOKEN $CLAUDE_PLUGIN_OPTION_REGION\" > seen"}]}]}});
    world.home.write("m/app/hooks/hooks.json", hook.to_string());
    world.home.write("m/app/skills/tell/SKILL.md", "Say ${user_config.token} in ${user_config.region}.");
    fine(&world, &["marketplace", "add", "./m"]);
    let said = fine(&world, &["install", "app", "--config", "region=eu"]);
    assert!(said.contains("needs the option `token`: run `loci plugin configure app@m token`"), "{said}");
    refused(&world, &["configure", "app", "n=9"], "out of its bounds");
    refused(&world, &["configure", "app", "zone=1"], "It has: token, region, n");
    let binary = crate::support::loci().args(["plugin", "configure", "app", "token"]);
    let output = world.run_with_stdin(&binary, "hush-hush\n");
    assert_eq!(output.code, Some(0), "{output:?}");
    let settings = world.home.read(world.home.config_home().join("settings.json"));
    assert!(settings.contains("\"region\"") && !settings.contains("hush"), "{settings}");
    let file = world.home.config_home().join("loci/plugin-secrets.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert!(world.home.read(&file).contains("hush-hush"));
    let output = world.print(["/app:tell"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(world.home.read("seen"), "hush-hush eu\n");
    let sent = String::from_utf8_lossy(&world.last_request().body).into_owned();
    assert!(!sent.contains("hush-hush") && sent.contains("in eu."), "{sent}");
    assert!(fine(&world, &["details", "app"]).contains("`token` (string): set, a secret"));
    fine(&world, &["configure", "app", "--unset", "token"]);
    assert!(!world.home.read(&file).contains("hush-hush"));
}

#[tokio::test]
async fn change_of_what_a_plugin_runs_waits_for_approval() {
    let world = World::new([Step::text("one"), Step::text("two"), Step::text("three")]).await;
    market(&world, "m", &json!({}), &[("app", json!({"version": "1.0.0"}))]);
    let hooks = |command: &str| {
        json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": command}]}]}}).to_string()
    };
    world.home.write("m/app/hooks/hooks.json", hooks("touch first"));
    fine(&world, &["marketplace", "add", "./m"]);
    fine(&world, &["install", "app"]);
    world.print(["hi"]);
    let exists = |name: &str| world.home.project().join(name).exists();
    assert!(exists("first"));
    let copy = "plugins/cache/m/app/1.0.0/hooks/hooks.json";
    world.home.write_config(copy, hooks("touch second"));
    let output = world.print(["hi"]);
    assert!(!exists("second") && output.stderr.contains("`loci plugin approve app@m`"), "{}", output.stderr);
    let said = fine(&world, &["approve", "app"]);
    assert!(said.contains("hook SessionStart: touch second") && said.contains("Approved app@m"), "{said}");
    assert_eq!(world.print(["hi"]).stderr, "");
    assert!(exists("second"));
}

#[tokio::test]
async fn directory_of_skills_with_a_manifest_is_a_plugin() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let plant = |dir: &str, name: &str| {
        let hooks = json!({"hooks": {"SessionStart": [{"hooks": [
            {"type": "command", "command": format!("touch {name}-ran")}]}]}});
        let servers = json!({"mcpServers": {"s": {"command": "touch", "args": [format!("{name}-served")]}}});
        for (file, text) in [
            (".claude-plugin/plugin.json", json!({"name": name, "version": "0.1.0"}).to_string()),
            ("skills/go/SKILL.md", format!("Go {name}.")),
            ("hooks/hooks.json", hooks.to_string()),
            (".mcp.json", servers.to_string()),
        ] {
            world.home.write(format!("{dir}/{name}/{file}"), text);
        }
    };
    plant(".claude/skills", "theirs");
    let own = world.home.config_home().join("skills");
    plant(&own.display().to_string(), "mine");
    let listed = fine(&world, &["list"]);
    assert!(listed.contains("mine@skills-dir  0.1.0  on  (user,") && !listed.contains("theirs"), "{listed}");
    let exists = |name: &str| world.home.project().join(name).exists();
    world.print(["/mine:go"]);
    assert!(exists("mine-ran") && !exists("theirs-ran"), "a folder that is not trusted brings nothing");

    trust(&world);
    let output = world.print(["/theirs:go"]);
    assert!(exists("theirs-ran") && !exists("theirs-served"), "{output:?}");
    assert!(output.stderr.contains("its MCP servers are left out"), "{}", output.stderr);
    fine(&world, &["disable", "mine@skills-dir"]);
    assert!(fine(&world, &["list"]).contains("mine@skills-dir  0.1.0  off"));
    assert!(fine(&world, &["list"]).contains("theirs@skills-dir  0.1.0  on"));
}

#[tokio::test]
async fn marketplace_of_settings_is_added_when_a_plugin_of_it_is_installed() {
    let world = World::new(Step::text("done")).await;
    market(&world, "team", &json!({}), &[("app", json!({"version": "1.0.0"}))]);
    let settings = json!({
        "extraKnownMarketplaces": {"team": {"source": {"source": "directory", "path": "team"}}},
        "enabledPlugins": {"app@team": true},
    });
    world.home.write_config("settings.json", settings.to_string());
    let output = world.print(["hi"]);
    assert!(output.stderr.contains("run `loci plugin install app@team`"), "{}", output.stderr);
    assert!(fine(&world, &["marketplace", "list"]).contains("team  not added yet"));
    assert!(fine(&world, &["install", "app@team"]).contains("Installed app@team 1.0.0"));
    assert!(fine(&world, &["marketplace", "list"]).contains("team  1 plugin"));
    refused(&world, &["install", "app@other"], "There is no marketplace `other`");
}

#[tokio::test]
async fn release_is_tagged_when_everything_agrees() {
    let world = World::with_git(Step::text("done")).await;
    market(&world, "m", &json!({}), &[("app", json!({"version": "1.2.0"}))]);
    world.home.git(&["config", "user.email", "ann@example.com"]);
    world.home.git(&["config", "user.name", "Ann"]);
    refused(&world, &["tag", "m/app"], "not committed");
    world.home.commit("a plugin");
    assert_eq!(fine(&world, &["tag", "m/app", "--dry-run"]), "Would tag app--v1.2.0\n");
    assert!(fine(&world, &["tag", "m/app", "-m", "Release %s"]).starts_with("Created tag app--v1.2.0\n"));
    assert!(world.home.git(&["tag", "--list", "-n"]).contains("Release 1.2.0"));
    refused(&world, &["tag", "m/app"], "is there already");
    let catalogue = json!({"name": "m", "plugins": [{"name": "app", "source": "./app", "version": "1.3.0"}]});
    world.home.write("m/.claude-plugin/marketplace.json", catalogue.to_string());
    refused(&world, &["tag", "m/app"], "its manifest says 1.2.0, and its marketplace 1.3.0");
}

#[tokio::test]
async fn plugin_of_an_address_is_refused_by_name() {
    let world = World::new(Step::text("never asked")).await;
    let output = world.run(&print(["hi", "--plugin-url", "https://example.com/p.zip"]));
    assert!(output.code == Some(1) && output.stderr.contains("--plugin-dir"), "{output:?}");
    assert!(world.model.requests().is_empty());
}
