//! Plugins that are fetched: over SSH where nothing else works, in time, with their Node packages, and with nothing in what
//! is said of them that a terminal would obey.

use std::os::unix::fs::PermissionsExt;

use loci_testkit::{Output, Step};
use serde_json::json;

use super::needs::market;
use super::verbs::fine;
use crate::support::{World, loci};

fn plugin(world: &World, args: &[&str], vars: &[(&str, &str)]) -> Output {
    let binary = loci().args(std::iter::once("plugin").chain(args.iter().copied()));
    world.run(&vars.iter().fold(binary, |binary, (name, value)| binary.env(name, *value)))
}

#[tokio::test]
async fn repository_that_cannot_be_reached_is_fetched_over_ssh() {
    let world = World::with_git(Step::text("done")).await;
    world.home.write(".claude-plugin/marketplace.json", json!({"name": "m", "plugins": []}).to_string());
    world.home.commit("a marketplace");
    let place = format!("file://{}", world.home.project().display());
    let config = format!(
        "[url \"{place}\"]\n\tinsteadOf = git@github.com:acme/tools.git\n\
         [url \"file:///none\"]\n\tinsteadOf = https://github.com/acme/tools.git\n"
    );
    std::fs::write(world.home.home().join(".gitconfig"), config).unwrap();
    let output =
        plugin(&world, &["marketplace", "add", "acme/tools"], &[("CLAUDE_CODE_PLUGIN_PREFER_HTTPS", "1")]);
    assert!(output.code == Some(1) && !output.stderr.contains("SSH"), "{output:?}");
    assert!(fine(&world, &["marketplace", "add", "acme/tools"]).contains("m: 0 plugins"));
}

#[tokio::test]
async fn git_has_the_time_that_a_variable_says() {
    let world = World::with_git(Step::text("done")).await;
    world.home.write("slow.sh", "#!/bin/sh\nsleep 60\n");
    std::fs::set_permissions(world.home.project().join("slow.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    let config = format!("[core]\n\tsshCommand = {}/slow.sh\n", world.home.project().display());
    std::fs::write(world.home.home().join(".gitconfig"), config).unwrap();
    let vars = [("CLAUDE_CODE_PLUGIN_GIT_TIMEOUT_MS", "1000")];
    let output = plugin(&world, &["marketplace", "add", "git@example.invalid:a/b.git"], &vars);
    assert!(output.stderr.contains("took longer than 1 seconds"), "{output:?}");
}

#[tokio::test]
async fn node_packages_that_are_locked_are_fetched_without_scripts() {
    let world = World::new(Step::text("done")).await;
    let version = json!({"version": "1.0.0"});
    let names = ["locked", "loose", "yarn", "config", "git", "plain"];
    market(&world, "m", &json!({}), &names.map(|name| (name, version.clone())));
    let manifest = json!({"dependencies": {"left-pad": "1"}}).to_string();
    for (file, text) in [
        ("locked/package.json", manifest.as_str()),
        ("locked/package-lock.json", "{}"),
        ("loose/package.json", &manifest),
        ("yarn/package.json", &manifest),
        ("yarn/yarn.lock", ""),
        ("config/package.json", &manifest),
        ("config/package-lock.json", "{}"),
        ("config/.npmrc", "git=./evil"),
        ("git/package.json", &manifest),
        ("git/package-lock.json", r#"{"resolved": "git+ssh://x/y.git"}"#),
        ("plain/package.json", "{}"),
    ] {
        world.home.write(format!("m/{file}"), text);
    }
    let npm =
        world.home.write("tools/npm", "#!/bin/sh\necho \"$@ ${ANTHROPIC_API_KEY:-no key}\" > fetched\n");
    std::fs::set_permissions(&npm, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", npm.parent().unwrap().display(), std::env::var("PATH").unwrap());
    fine(&world, &["marketplace", "add", "./m"]);
    let cached = |name: &str| world.home.config_home().join(format!("plugins/cache/m/{name}/1.0.0/fetched"));
    for (name, said) in [
        ("locked", "Its Node packages were fetched (npm ci --ignore-scripts"),
        ("loose", "were not fetched: it has no lockfile"),
        ("yarn", "`yarn.lock` is not used"),
        ("config", "its `.npmrc` could have them run something"),
        ("git", "names repositories"),
        ("plain", "Installed plain@m"),
    ] {
        let output = plugin(&world, &["install", name], &[("PATH", &path)]);
        assert!(output.code == Some(0) && output.stdout.contains(said), "{name}: {output:?}");
        assert_eq!(cached(name).exists(), name == "locked", "{name}");
    }
    assert_eq!(world.home.read(cached("locked")), "ci --ignore-scripts --no-audit --no-fund no key\n");
    let output = plugin(&world, &["install", "locked"], &[("PATH", "/usr/bin:/bin")]);
    assert!(output.code == Some(0), "what cannot be fetched keeps nothing from being installed: {output:?}");
}

#[tokio::test]
async fn nothing_that_a_plugin_says_of_itself_talks_to_the_terminal() {
    let world = World::new(Step::text("done")).await;
    let odd = json!({
        "version": "1.0.0",
        "displayName": "Kit\u{1b}[2J",
        "description": "Nice\nInstalled kit@m; nothing runs\u{202e}",
        "author": {"name": "A\u{7}nn"},
        "commands": "./none\u{1b}[1A",
    });
    market(&world, "m", &json!({}), &[("kit", odd)]);
    world.home.write("m/kit/skills/a/SKILL.md", "\u{1b}]0;title\u{7}x");
    let mut said = fine(&world, &["marketplace", "add", "./m"]);
    said += &fine(&world, &["install", "kit"]);
    said += &fine(&world, &["details", "kit"]);
    said += &fine(&world, &["list"]);
    said += &world.run(&loci().args(["skills", "show", "kit:a"])).stdout;
    assert!(said.contains(r"Kit\u{1b}[2J") && said.contains(r"Nice\nInstalled kit@m"), "{said}");
    assert!(!said.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{said:?}");
}

#[tokio::test]
async fn plugins_of_a_marketplace_share_files_by_links_and_none_leads_out() {
    let world = World::new(Step::text("done")).await;
    let version = json!({"version": "1.0.0"});
    market(&world, "m", &json!({}), &[("kit", version.clone()), ("shared", version)]);
    world.home.write("secret/SKILL.md", "SECRET");
    world.home.write("m/.git/config", "token");
    world.home.write("m/shared/bin/tool", "#!/bin/sh\n");
    let kit = world.home.project().join("m/kit");
    for (target, link) in [
        ("../../shared/skills/shared-skill", "skills/foo"),
        ("../shared/bin", "bin"),
        ("../../../secret", "skills/out"),
        ("../.git/config", "config"),
        (".", "round"),
    ] {
        std::os::unix::fs::symlink(target, kit.join(link)).unwrap();
    }
    fine(&world, &["marketplace", "add", "./m"]);
    let said = fine(&world, &["install", "kit"]);
    assert!(said.contains("skill /kit:foo\n") && said.contains("program bin/tool"), "{said}");
    for (link, why) in [("skills/out", "leads out"), ("config", "leads out"), ("round", "leads in a circle")]
    {
        assert!(said.contains(&format!("kit/{link}` {why}")), "{link}: {said}");
    }
    let copy = world.home.config_home().join("plugins/cache/m/kit/1.0.0");
    assert!(said.contains(&format!("(user, {})", copy.display())), "{said}");
    assert!(copy.join("skills/foo/SKILL.md").symlink_metadata().unwrap().is_file());
    for link in ["skills/out", "config", "round"] {
        assert!(copy.join(link).symlink_metadata().is_err(), "{link}");
    }
    // What was approved is what is there.
    assert!(!fine(&world, &["list"]).contains("has changed"));
    assert!(fine(&world, &["update", "kit"]).contains("is up to date"));
    let left = std::fs::read_dir(copy.parent().unwrap()).unwrap().count();
    assert_eq!(left, 1, "nothing half done stays");
}

#[tokio::test]
async fn marketplace_that_settings_have_themselves_is_what_they_say_now() {
    let world = World::with_git(Step::text("done")).await;
    world.home.write(".claude-plugin/plugin.json", json!({"name": "kit", "version": "1.0.0"}).to_string());
    world.home.write("skills/greet/SKILL.md", "Greet.");
    world.home.commit("a plugin");
    let url = format!("file://{}", world.home.project().display());
    let say = |plugins: &[&str]| {
        let entry = |name: &&str| json!({"name": name, "source": {"source": "url", "url": url}});
        let entries: Vec<_> = plugins.iter().map(entry).collect();
        let source = json!({"source": "settings", "name": "team", "plugins": entries});
        let settings = json!({"additionalMarketplaces": {"team": {"source": source}}});
        world.home.write_config("settings.json", settings.to_string());
    };
    say(&["kit"]);
    assert!(fine(&world, &["install", "kit@team"]).contains("Installed kit@team 1.0.0"));
    assert!(fine(&world, &["list"]).contains("kit@team  1.0.0  on"));
    say(&["kit", "other"]);
    assert!(fine(&world, &["install", "other@team"]).contains("Installed other@team 1.0.0"));
}
