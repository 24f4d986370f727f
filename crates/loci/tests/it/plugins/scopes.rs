//! Whose settings the verbs of `loci plugin` write, what goes with a plugin, and what programs read of the list.

use loci_testkit::Step;
use serde_json::{Value, json};

use super::needs::{market, state};
use super::verbs::{fine, refused};
use crate::settings::trust;
use crate::support::{World, loci};

async fn world_with(plugins: &[(&str, Value)]) -> World {
    let world = World::new(Step::text("done")).await;
    market(&world, "m", &json!({}), plugins);
    fine(&world, &["marketplace", "add", "./m"]);
    world
}

fn project_settings(world: &World, file: &str) -> Value {
    let path = world.home.project().join(".claude").join(file);
    std::fs::read_to_string(path).map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

#[tokio::test]
async fn plugin_is_turned_on_and_off_where_it_is_installed() {
    let world = world_with(&[("app", json!({"version": "1.0.0"}))]).await;
    trust(&world);
    fine(&world, &["install", "app@m", "--scope", "project"]);
    assert_eq!(project_settings(&world, "settings.json")["enabledPlugins"], json!({"app@m": true}));
    fine(&world, &["disable", "app"]);
    assert_eq!(project_settings(&world, "settings.json")["enabledPlugins"], json!({"app@m": false}));
    fine(&world, &["enable", "app", "-s", "local"]);
    assert_eq!(project_settings(&world, "settings.local.json")["enabledPlugins"], json!({"app@m": true}));
    refused(&world, &["update", "app", "--scope", "user"], "not installed for `user`");
    refused(&world, &["uninstall", "app"], "not installed for `user`");
    fine(&world, &["uninstall", "app", "-s", "project"]);
    assert_eq!(state(&world)["plugins"], json!({}));
}

#[tokio::test]
async fn all_plugins_are_turned_off_those_that_others_need_last() {
    let needs = json!({"version": "1.0.0", "dependencies": ["base"]});
    let plain = json!({"version": "1.0.0"});
    let world = world_with(&[("app", needs), ("base", plain.clone()), ("zoo", plain)]).await;
    fine(&world, &["install", "app"]);
    fine(&world, &["install", "zoo"]);
    fine(&world, &["disable", "--all"]);
    assert_eq!(fine(&world, &["list"]).matches("  off  ").count(), 3);
    assert_eq!(fine(&world, &["disable", "-a"]), "No plugin is on\n");
    let output = world.run(&loci().args(["plugin", "disable", "--all", "--scope", "user"]));
    assert_eq!(output.code, Some(1), "{output:?}");
}

#[tokio::test]
async fn enable_is_refused_where_what_is_needed_stays_off() {
    let needs = json!({"version": "1.0.0", "dependencies": ["base"]});
    let world = world_with(&[("app", needs), ("base", json!({"version": "1.0.0"}))]).await;
    trust(&world);
    fine(&world, &["install", "app"]);
    fine(&world, &["disable", "app"]);
    fine(&world, &["disable", "base", "--scope", "local"]);
    refused(&world, &["enable", "app"], "needs `base@m`, which the local settings turn off");
    assert!(fine(&world, &["enable", "app", "--scope", "local"]).contains("base@m is on, too"));
}

#[tokio::test]
async fn data_of_a_plugin_goes_with_its_last_installation_unless_it_is_to_be_kept() {
    let world = world_with(&[("app", json!({"version": "1.0.0"}))]).await;
    let keep = || world.home.write_config("plugins/data/app-m/cache.txt", "x");
    fine(&world, &["install", "app"]);
    fine(&world, &["install", "app", "--scope", "local"]);
    let file = keep();
    assert!(fine(&world, &["uninstall", "app"]).contains("What it kept stays"));
    assert!(file.exists(), "it is installed for the project, too");
    assert!(fine(&world, &["uninstall", "app", "-s", "local", "--keep-data"]).contains("What it kept stays"));
    assert!(file.exists());
    fine(&world, &["install", "app"]);
    assert!(fine(&world, &["uninstall", "app"]).contains("Removed what it kept"));
    assert!(!file.exists());
}

#[tokio::test]
async fn list_for_programs_has_a_row_a_plugin_and_what_is_offered() {
    let needs = json!({"version": "1.0.0", "dependencies": ["base"]});
    let world = world_with(&[("app", needs), ("base", json!({"version": "1.0.0"}))]).await;
    fine(&world, &["install", "base"]);
    let read = |args: &[&str]| -> Value { serde_json::from_str(&fine(&world, args)).unwrap() };
    let rows = read(&["list", "--json"]);
    assert_eq!((&rows[0]["id"], &rows[0]["enabled"]), (&json!("base@m"), &json!(true)), "{rows}");
    assert!(rows[0]["installedAt"].is_string() && rows[0].get("errors").is_none(), "{rows}");
    let both = read(&["list", "--json", "--available"]);
    assert_eq!(both["installed"], rows);
    assert_eq!(both["available"][0]["pluginId"], "app@m");
    assert_eq!(both["available"][0]["marketplaceName"], "m");
    world.home.write_config("settings.json", r#"{"enabledPlugins": {"gone@m": true}}"#);
    let rows = read(&["list", "--json"]);
    let gone = rows.as_array().unwrap().iter().find(|row| row["id"] == "gone@m").unwrap();
    assert!(gone["errors"][0].as_str().unwrap().contains("not installed"), "{gone}");
    let markets = read(&["marketplace", "list", "--json"]);
    assert_eq!(markets[0]["source"], "directory");
    assert!(markets[0]["path"].as_str().unwrap().ends_with("/m"), "{markets}");
}

#[tokio::test]
async fn new_plugin_lies_among_the_users_skills_and_is_there_at_once() {
    let world = World::new(Step::text("done")).await;
    let said = fine(
        &world,
        &[
            "init",
            "mine",
            "--author",
            "Ann",
            "--description",
            "Helps",
            "--with",
            "skills",
            "agents",
            "hooks",
            "mcp",
            "output-style",
        ],
    );
    assert!(said.contains("mine@skills-dir"), "{said}");
    let root = world.home.config_home().join("skills/mine");
    let manifest: Value =
        serde_json::from_str(&world.home.read(root.join(".claude-plugin/plugin.json"))).unwrap();
    assert_eq!((&manifest["author"]["name"], &manifest["description"]), (&json!("Ann"), &json!("Helps")));
    assert!(fine(&world, &["validate", &root.display().to_string()]).contains("Nothing is wrong"));
    let details = fine(&world, &["details", "mine"]);
    for part in ["skill /mine:example", "agent mine:example", "hook PostToolUse", "output style mine:mine"] {
        assert!(details.contains(part), "{part}: {details}");
    }
    refused(&world, &["init", "mine"], "--force");
    world.home.write(root.join("skills/about/SKILL.md"), "My own.");
    fine(&world, &["init", "mine", "--force", "--description", "New"]);
    assert!(world.home.read(root.join(".claude-plugin/plugin.json")).contains("\"New\""));
    assert_eq!(world.home.read(root.join("skills/about/SKILL.md")), "My own.");
    refused(&world, &["init", "other", "--with", "channel"], "not supported");
    assert!(!world.home.config_home().join("skills/other").exists());
}

#[tokio::test]
async fn marketplace_that_is_removed_takes_its_plugins_along() {
    let world = world_with(&[("app", json!({"version": "1.0.0"}))]).await;
    trust(&world);
    let said = fine(&world, &["marketplace", "add", "./m", "--scope", "project"]);
    assert!(said.contains("m is named in"), "{said}");
    let named = project_settings(&world, "settings.json")["extraKnownMarketplaces"]["m"].clone();
    assert_eq!(named["source"]["source"], "directory");
    fine(&world, &["install", "app"]);
    let said = fine(&world, &["marketplace", "remove", "m", "--scope", "project"]);
    assert!(said.contains("m stays known"), "{said}");
    assert!(project_settings(&world, "settings.json")["extraKnownMarketplaces"].get("m").is_none());
    assert!(fine(&world, &["list"]).contains("app@m  1.0.0  on"));
    let said = fine(&world, &["marketplace", "rm", "m"]);
    assert!(said.contains("app@m is not installed any more") && said.contains("m is forgotten"), "{said}");
    assert_eq!(state(&world)["plugins"], json!({}));
    assert!(fine(&world, &["list"]).contains("There are no plugins"));
    refused(&world, &["marketplace", "remove", "m"], "There is no marketplace");
}

#[tokio::test]
async fn version_of_a_plugin_that_says_none_is_the_commit_of_its_marketplace() {
    let world = World::with_git(Step::text("done")).await;
    market(&world, "m", &json!({}), &[("app", json!({}))]);
    world.home.commit("a marketplace");
    let commit = world.home.git(&["rev-parse", "HEAD"]);
    let short: String = commit.trim().chars().take(12).collect();
    fine(&world, &["marketplace", "add", "./m"]);
    assert!(fine(&world, &["install", "app"]).contains(&format!("Installed app@m {short}")));
    assert!(fine(&world, &["update", "app"]).contains("is up to date"));
    world.home.write("m/app/skills/more/SKILL.md", "More.");
    world.home.commit("another");
    assert!(fine(&world, &["update", "app"]).contains(&format!("from {short} to ")));
}

#[tokio::test]
async fn entry_of_a_marketplace_adds_to_a_plugin_and_shares_its_root() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let hook = json!({"SessionStart": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]});
    let catalogue = json!({"name": "m", "plugins": [
        {"name": "kit", "source": "./kit", "hooks": {"hooks": hook}, "skills": "./extra"},
        {"name": "one", "source": "./", "strict": false, "skills": ["./skills/a"]},
        {"name": "torn", "source": "./torn", "strict": false, "commands": "./x.md"},
    ]});
    world.home.write("m/.claude-plugin/marketplace.json", catalogue.to_string());
    for (file, text) in [
        ("kit/.claude-plugin/plugin.json", r#"{"name": "kit", "version": "1.0.0"}"#),
        ("kit/skills/own/SKILL.md", "Own."),
        ("kit/extra/more/SKILL.md", "More."),
        ("skills/a/SKILL.md", "A."),
        ("skills/b/SKILL.md", "B."),
        ("torn/.claude-plugin/plugin.json", r#"{"name": "torn", "agents": "./y.md"}"#),
    ] {
        world.home.write(format!("m/{file}"), text);
    }
    fine(&world, &["marketplace", "add", "./m"]);
    let said = fine(&world, &["install", "kit"]);
    assert!(said.contains("hook SessionStart: touch hooked"), "{said}");
    fine(&world, &["install", "one"]);
    refused(&world, &["install", "torn"], "`strict` is false");
    let skills = world.run(&loci().args(["skills", "list"])).stdout;
    for (name, is_there) in [("/kit:own", true), ("/kit:more", true), ("/one:a", true), ("/one:b", false)] {
        assert_eq!(skills.contains(name), is_there, "{name}: {skills}");
    }
    assert_eq!(world.print(["hi"]).stderr, "");
    assert!(world.home.project().join("hooked").exists());
    // What a marketplace adds later waits as any change does.
    let mut changed = catalogue;
    changed["plugins"][0]["hooks"] =
        json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch again"}]}]}});
    world.home.write("m/.claude-plugin/marketplace.json", changed.to_string());
    let output = world.print(["hi"]);
    assert!(output.stderr.contains("`loci plugin approve kit@m`"), "{}", output.stderr);
    assert!(!world.home.project().join("again").exists());
    assert!(fine(&world, &["approve", "kit"]).contains("touch again"));
}

#[tokio::test]
async fn plugin_that_was_renamed_or_removed_is_said() {
    let renames = json!({"renames": {"old": "new", "gone": null}, "description": "d"});
    let world = World::new(Step::text("done")).await;
    market(&world, "m", &renames, &[("new", json!({"version": "1.0.0"}))]);
    fine(&world, &["marketplace", "add", "./m"]);
    refused(&world, &["install", "old@m"], "It is called `new` now");
    refused(&world, &["install", "gone@m"], "It was removed");
    world.home.write_config("settings.json", r#"{"enabledPlugins": {"old@m": true, "gone@m": true}}"#);
    let said = fine(&world, &["list"]);
    assert!(
        said.contains("renamed to `new` in the marketplace `m`; run `loci plugin install new@m`"),
        "{said}"
    );
    assert!(said.contains("its marketplace has removed it"), "{said}");
    assert!(fine(&world, &["validate", "m", "--strict"]).contains("Nothing is wrong"));
}

fn user_settings(world: &World) -> Value {
    serde_json::from_str(&world.home.read(world.home.config_home().join("settings.json"))).unwrap()
}

#[tokio::test]
async fn settings_that_name_a_renamed_plugin_are_rewritten_as_a_session_starts() {
    let world = World::new(Step::text("done")).await;
    let catalogue = |renames: Value| json!({"renames": renames, "description": "d"});
    market(&world, "m", &catalogue(json!({})), &[("old", json!({"version": "1.0.0"})), ("off", json!({}))]);
    fine(&world, &["marketplace", "add", "./m"]);
    fine(&world, &["install", "old@m"]);
    let renames = json!({"old": "middle", "middle": "new", "off": "other", "gone": null});
    let option = json!({"a": {"type": "number", "title": "A", "description": "d"}});
    let new = json!({"version": "1.0.0", "userConfig": option});
    let plugins = [("new", new), ("other", json!({"version": "1.0.0"}))];
    market(&world, "m", &catalogue(renames), &plugins);

    // The copy of the former name runs on until the present one is there.
    let said = world.print(["hi"]).stderr;
    assert!(said.contains("it is called `new` in the marketplace `m` now"), "{said}");
    assert_eq!(user_settings(&world)["enabledPlugins"], json!({"old@m": true}));
    let said = fine(&world, &["install", "new@m"]);
    assert!(said.contains("old@m is not installed any more"), "{said}");
    assert_eq!(user_settings(&world)["enabledPlugins"], json!({"new@m": true}));

    // What is named in settings alone is called otherwise there; one that was off stays off.
    fine(&world, &["install", "other@m", "--local"]);
    let user = json!({"enabledPlugins": {"old@m": true, "gone@m": true}, "pluginConfigs": {"old@m": {"options": {"a": 1}}}});
    world.home.write_config("settings.json", user.to_string());
    world.home.write(".claude/settings.json", r#"{"enabledPlugins": {"off@m": false}}"#);
    world.home.write(".claude/settings.local.json", "{}");
    fine(&world, &["list"]);
    assert_eq!(user_settings(&world), user, "only a session writes");
    let output = world.print(["hi"]);
    assert!(
        output.stderr.contains("renamed to `new`") && output.stderr.contains("removed it"),
        "{}",
        output.stderr
    );
    let user = json!({"enabledPlugins": {"new@m": true}, "pluginConfigs": {"new@m": {"options": {"a": 1}}}});
    assert_eq!(user_settings(&world), user);
    assert_eq!(
        project_settings(&world, "settings.json"),
        json!({"enabledPlugins": {"off@m": false}}),
        "nobody trusts the folder"
    );
    trust(&world);
    assert_eq!(world.print(["hi"]).stderr, "", "said once");
    assert_eq!(project_settings(&world, "settings.json"), json!({"enabledPlugins": {"other@m": false}}));
    let said = fine(&world, &["list"]);
    assert!(said.contains("new@m  1.0.0  on") && said.contains("other@m  1.0.0  off"), "{said}");
}

#[tokio::test]
async fn validate_names_what_is_wrong_with_a_marketplace_and_what_is_odd() {
    let world = World::new(Step::text("done")).await;
    let catalogue = json!({"name": "m", "plugins": [
        {"name": "a", "source": "./a", "version": "2.0.0"},
        {"name": "a", "source": "./../a"},
        {"name": "b", "source": "./b"},
    ]});
    world.home.write("m/.claude-plugin/marketplace.json", catalogue.to_string());
    world.home.write("m/a/.claude-plugin/plugin.json", r#"{"name": "a", "version": "1.0.0"}"#);
    world.home.write("m/b/.claude-plugin/plugin.json", "{no json");
    for part in [
        "plugins[1]: there are two plugins called `a`",
        "plugins[1].source leads out",
        "plugins[2] plugin.json: its manifest is no JSON",
        "plugins[0] says version 2.0.0, and its manifest 1.0.0",
        "no `description`",
    ] {
        refused(&world, &["validate", "m"], part);
    }
    world.home.write("odd/.claude-plugin/plugin.json", r#"{"name": "My_Kit", "metadata": 1}"#);
    let said = fine(&world, &["validate", "odd"]);
    assert!(
        said.contains("`My_Kit` is not kebab-case") && said.contains("`metadata` is no object"),
        "{said}"
    );
    refused(&world, &["validate", "odd", "--strict"], "not kebab-case");
    world.home.write("odd/skills/a/SKILL.md", "---\n- no fields\n---\nx");
    refused(&world, &["validate", "odd"], "`skills/a/SKILL.md`: the front matter cannot be read");
    world.home.write("empty/README.md", "x");
    refused(&world, &["validate", "empty"], "There is no manifest in");
    world
        .home
        .write("kit/.claude-plugin/plugin.json", r#"{"name": "kit", "command": "./x", "publisher": "me"}"#);
    let said = fine(&world, &["validate", "kit"]);
    assert!(
        said.contains("`command` of its manifest means nothing here; did you mean `commands`?"),
        "{said}"
    );
    assert!(said.contains("`publisher` of its manifest means nothing here\n"), "{said}");
    refused(&world, &["validate", "kit", "--strict"], "`publisher`");
}

#[tokio::test]
async fn plugin_of_a_flag_is_listed_when_the_flag_is_given() {
    let world = World::new(Step::text("done")).await;
    world.home.write("kit/.claude-plugin/plugin.json", r#"{"name": "kit", "version": "1.0.0"}"#);
    for line in [["--plugin-dir", "kit", "plugin", "list"], ["plugin", "list", "--plugin-dir", "kit"]] {
        let output = world.run(&loci().args(line));
        assert!(output.stdout.contains("kit@inline  1.0.0  on  (inline,"), "{line:?}: {output:?}");
    }
    assert!(fine(&world, &["list"]).contains("There are no plugins"));
}

#[tokio::test]
async fn variable_for_plugins_that_has_no_effect_is_said() {
    let world = World::new(Step::text("done")).await;
    let output = world.run(&loci().args(["plugin", "list"]).env("CLAUDE_CODE_PLUGIN_SEED_DIR", "/opt/seed"));
    assert!(output.stdout.contains("`CLAUDE_CODE_PLUGIN_SEED_DIR`: it has no effect"), "{output:?}");
}

#[tokio::test]
async fn sources_that_are_not_supported_are_refused_by_name_with_what_to_do() {
    let world = World::new(Step::text("done")).await;
    let kinds = [
        (
            "npm",
            json!({"source": "npm", "package": "@acme/kit"}),
            "unpack what `npm pack` fetches into a directory",
        ),
        (
            "archive",
            json!({"source": "archive", "url": "https://127.0.0.1:9/kit.zip"}),
            "unpack it into a directory",
        ),
        ("command", json!({"source": "command", "command": "touch made"}), "run the command yourself"),
        (
            "url",
            json!({"source": "url", "url": "https://127.0.0.1:9/m.json"}),
            "download it and name the file",
        ),
    ];
    let entries: Vec<Value> =
        kinds.iter().map(|(kind, source, _)| json!({"name": kind, "source": source})).collect();
    let catalogue = json!({"name": "m", "description": "d", "plugins": entries});
    world.home.write("m/.claude-plugin/marketplace.json", catalogue.to_string());
    fine(&world, &["marketplace", "add", "./m"]);
    let named: serde_json::Map<String, Value> =
        kinds.iter().map(|(kind, source, _)| (format!("m-{kind}"), json!({"source": source}))).collect();
    world.home.write_config("settings.json", json!({"extraKnownMarketplaces": named}).to_string());
    for (kind, _, instead) in &kinds {
        for plugin in [format!("{kind}@m"), format!("kit@m-{kind}")] {
            refused(&world, &["install", &plugin], instead);
        }
        refused(&world, &["validate", "m"], instead);
    }
    refused(&world, &["marketplace", "add", "https://127.0.0.1:9/m.json"], "download it and name the file");
    assert!(!world.home.project().join("made").exists());
}
