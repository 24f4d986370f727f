use std::fs;
use std::os::unix::fs::symlink;

use loci_core::plugin::PluginProblem;
use serde_json::json;
use tempfile::TempDir;

use super::*;

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn plugin(dir: &Path, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let root = dir.join(name);
    fs::create_dir_all(&root).unwrap();
    for (file, text) in files {
        write(root.join(file), text);
    }
    root
}

fn given(dir: &Path) -> PluginFolder {
    read_plugin(dir, None, InstallScope::Inline, None).unwrap()
}

fn messages(problems: &[PluginProblem]) -> String {
    problems.iter().map(|it| format!("{it}\n")).collect()
}

#[test]
fn every_kind_of_part_is_found_under_the_plugins_name() {
    let dir = TempDir::new().unwrap();
    let agent = "---\nname: checker\ndescription: d\n---\nCheck.";
    let root = plugin(
        dir.path(),
        "any",
        &[
            (
                ".claude-plugin/plugin.json",
                r#"{"name": "tools", "skills": "./more", "mcpServers": {"x": {"command": "x"}}}"#,
            ),
            ("skills/one/SKILL.md", "one"),
            ("skills/two/SKILL.md", "---\nname: second\n---\ntwo"),
            ("more/three/SKILL.md", "three"),
            ("commands/fix.md", "fix"),
            ("commands/front/comp.md", "comp"),
            ("agents/checker.md", agent),
            ("agents/deep/checker.md", agent),
            ("output-styles/short.md", "---\nname: Short\n---\nBe short."),
            ("hooks/hooks.json", r#"{"hooks": {"Stop": []}}"#),
            (".mcp.json", r#"{"mcpServers": {"db": {"command": "db"}}}"#),
            ("bin/tool", "#!/bin/sh\n"),
            ("settings.json", r#"{"agent": "checker", "permissions": {"allow": ["Bash"]}}"#),
            (".lsp.json", "{}"),
            ("themes/night.json", r#"{"base": "dark"}"#),
            ("themes/notes.txt", "no theme"),
        ],
    );
    let found = given(&root);
    let names: Vec<&str> = found.skills.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["tools:one", "tools:second", "tools:three", "tools:fix", "tools:front:comp"]);
    let names: Vec<&str> = found.agents.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["tools:checker", "tools:deep:checker"]);
    assert_eq!(found.styles[0].name, "tools:Short");
    assert_eq!((found.hooks.len(), found.servers.len()), (1, 2));
    assert!(found.bin.is_some_and(|bin| bin.ends_with("bin")));
    assert_eq!(found.settings.keys().collect::<Vec<_>>(), ["agent"]);
    assert_eq!(found.unsupported, ["LSP servers"]);
    let themes: Vec<_> = found.themes.iter().map(|it| (it.slug.as_str(), it.text.as_str())).collect();
    assert_eq!(themes, [("tools:night", r#"{"base": "dark"}"#)]);
    assert_eq!(found.id.to_string(), "tools@inline");
    assert_eq!(found.problems.len(), 1, "{}", messages(&found.problems));
}

#[test]
fn named_paths_take_the_place_of_usual_ones() {
    let dir = TempDir::new().unwrap();
    let manifest = r#"{"name": "p", "commands": ["./own/a.md", "./none.md"], "agents": []}"#;
    let root = plugin(
        dir.path(),
        "p",
        &[(".claude-plugin/plugin.json", manifest), ("commands/usual.md", "x"), ("own/a.md", "y")],
    );
    let found = given(&root);
    assert_eq!(found.skills.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["p:a"]);
    assert!(messages(&found.problems).contains("`./none.md`"));
    assert_eq!(found.unused, ["commands"], "there are no agents to leave alone");
}

#[test]
fn directory_without_a_manifest_is_a_plugin_and_a_lone_skill_is_its_skill() {
    let dir = TempDir::new().unwrap();
    let root = plugin(dir.path(), "solo", &[("SKILL.md", "do it")]);
    assert_eq!(given(&root).skills[0].name, "solo:solo");
}

#[test]
fn nothing_outside_the_plugin_is_read() {
    let dir = TempDir::new().unwrap();
    write(dir.path().join("secret/SKILL.md"), "secret");
    write(dir.path().join("secret/hooks.json"), r#"{"hooks": {}}"#);
    let root =
        plugin(dir.path(), "p", &[(".claude-plugin/plugin.json", r#"{"name": "p", "skills": "./linked"}"#)]);
    for (link, target) in [
        ("skills", "secret"),
        ("linked", "secret"),
        ("bin", "secret"),
        (".mcp.json", "secret/hooks.json"),
        ("settings.json", "secret/hooks.json"),
    ] {
        symlink(dir.path().join(target), root.join(link)).unwrap();
    }
    fs::create_dir_all(root.join("hooks")).unwrap();
    symlink("../../secret/hooks.json", root.join("hooks/hooks.json")).unwrap();
    fs::create_dir_all(root.join("commands")).unwrap();
    symlink(dir.path().join("secret/SKILL.md"), root.join("commands/steal.md")).unwrap();
    let found = given(&root);
    assert_eq!((found.skills.len(), found.hooks.len(), found.servers.len()), (0, 0, 0));
    assert_eq!((found.bin, found.settings.len()), (None, 0));
    assert_eq!(
        messages(&found.problems).matches("leads out of the plugin").count(),
        7,
        "{}",
        messages(&found.problems)
    );
    // A link that stays inside is followed.
    write(root.join("real/SKILL.md"), "x");
    fs::remove_file(root.join("skills")).unwrap();
    fs::create_dir_all(root.join("skills")).unwrap();
    symlink("../real", root.join("skills/alias")).unwrap();
    assert_eq!(given(&root).skills[0].name, "p:real");
}

#[test]
fn hostile_files_cost_themselves() {
    let dir = TempDir::new().unwrap();
    let big = format!(r#"{{"name": "p", "description": "{}"}}"#, "x".repeat(10 << 20));
    let root = plugin(dir.path(), "big", &[(".claude-plugin/plugin.json", &big)]);
    let problem = read_plugin(&root, None, InstallScope::Inline, None).unwrap_err();
    assert!(problem.message.contains("larger than 1 MiB"), "{problem}");

    let root = plugin(
        dir.path(),
        "odd",
        &[
            ("skills/a/SKILL.md", "---\nname: \"../../init\"\n---\nx"),
            ("skills/b/SKILL.md", "---\nname: \"a\"\n---\nx"),
            ("commands/we ird.md", "x"),
            ("agents/e.md", "---\nname: \"x:general-purpose\"\ndescription: d\n---\nx"),
            ("agents/none.md", "no agent"),
            ("hooks/hooks.json", "{"),
        ],
    );
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join(".mcp.json"), rustix::fs::Mode::RWXU).unwrap();
    let found = given(&root);
    assert_eq!(found.skills.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["odd:a"]);
    assert!(found.agents.is_empty() && found.hooks.is_empty() && found.servers.is_empty());
    assert_eq!(found.problems.len(), 6, "{}", messages(&found.problems));
}

/// What is too large, or leads in a circle, is left out by itself; the rest of the plugin counts.
#[test]
fn huge_front_matter_and_links_in_circles_cost_themselves() {
    let dir = TempDir::new().unwrap();
    let huge = format!("---\nname: huge\ndescription: {}\n---\nx", "a".repeat(10 << 20));
    let deep = format!("---\nname: deep\ndescription: {}\n---\nx", "[".repeat(100_000));
    let root = plugin(
        dir.path(),
        "p",
        &[
            ("skills/good/SKILL.md", "---\ndescription: d\n---\nx"),
            ("skills/huge/SKILL.md", &huge),
            ("skills/deep/SKILL.md", &deep),
            ("commands/huge.md", &huge),
            ("commands/fix.md", "x"),
            ("agents/huge.md", &huge),
            ("agents/good.md", "---\nname: good\ndescription: d\n---\nx"),
            ("output-styles/huge.md", &huge),
        ],
    );
    symlink(".", root.join("commands/again")).unwrap();
    symlink("../skills", root.join("skills/circle")).unwrap();
    fs::create_dir_all(root.join("skills/self")).unwrap();
    symlink("SKILL.md", root.join("skills/self/SKILL.md")).unwrap();
    symlink("self", root.join("skills/link")).unwrap();
    let found = given(&root);
    let names: Vec<&str> = found.skills.iter().map(|it| it.name.as_str()).collect();
    assert!(names.contains(&"p:good") && names.contains(&"p:deep") && names.contains(&"p:fix"), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("huge") || name.contains("circle")), "{names:?}");
    // Links that go in a circle end somewhere, and not after thousands of files.
    assert!(names.len() < 20, "{names:?}");
    assert_eq!(found.agents.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["p:good"]);
    assert!(found.styles.is_empty());
    let said = messages(&found.problems);
    assert!(said.matches("larger than 1 MiB").count() >= 4, "{said}");
}

/// Directories of commands, agents and styles are gone through without a look outside, and in a bounded time.
#[test]
fn links_in_directories_of_definitions_lead_neither_out_nor_round_for_ever() {
    let dir = TempDir::new().unwrap();
    write(dir.path().join("outside/steal.md"), "secret");
    let root = plugin(dir.path(), "p", &[("commands/fix.md", "x"), ("shared/deep/more.md", "y")]);
    for part in ["commands", "agents", "output-styles"] {
        fs::create_dir_all(root.join(part)).unwrap();
        symlink(dir.path().join("outside"), root.join(part).join("out")).unwrap();
        for n in 0..20 {
            symlink(".", root.join(part).join(format!("round{n}"))).unwrap();
        }
    }
    symlink("../shared", root.join("commands/shared")).unwrap();
    let found = given(&root);
    let names: Vec<&str> = found.skills.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["p:fix", "p:shared:deep:more"]);
    assert!(found.agents.is_empty() && found.styles.is_empty());
    for part in ["commands", "agents", "output-styles"] {
        let said = format!("`{part}/out` leads out of the plugin");
        assert!(messages(&found.problems).contains(&said), "{}", messages(&found.problems));
    }
}

#[test]
fn lines_of_what_runs_are_one_line_each_and_hide_nothing() {
    let dir = TempDir::new().unwrap();
    let hooks = json!({"hooks": {"Stop": [{"hooks": [
        {"type": "command", "command": "evil\u{1b}[2K\rInstalled\nhook Stop: nice"},
    ]}]}});
    let servers = json!({"mcpServers": {"srv": {"url": "https://x", "headersHelper": "./token\u{202e}x"}}});
    let root = plugin(
        dir.path(),
        "p",
        &[
            ("hooks/hooks.json", &hooks.to_string()),
            (".mcp.json", &servers.to_string()),
            ("skills/a/SKILL.md", "Now: !`date`\n\n```!\nls\nrm x\n```\n"),
        ],
    );
    let found = given(&root);
    let expected = [
        r"skill /p:a; runs before it is read: `date`, `ls\nrm x`",
        r"hook Stop: evil\u{1b}[2K\u{d}Installed\nhook Stop: nice",
        r"MCP server srv: https://x; its headers come from `./token\u{202e}x`",
    ];
    assert_eq!(found.runs(), expected);
    // Another command before a skill is read is another thing that the plugin may run.
    let digest = found.digest();
    write(root.join("skills/a/SKILL.md"), "Now: !`date -u`\n\n```!\nls\nrm x\n```\n");
    assert_ne!(given(&root).digest(), digest);
}

fn installed(dir: &Path, plugins: &Value) -> PluginPlaces<'static> {
    write(dir.join("plugins/installed_plugins.json"), &json!({"version": 2, "plugins": plugins}).to_string());
    PluginPlaces {
        dir: dir.join("plugins"),
        given: Vec::new(),
        skills_dirs: Vec::new(),
        prefetch: None,
        project: "/p".into(),
    }
}

fn find(places: &PluginPlaces<'_>, enabled: &Value) -> FoundPlugins {
    find_plugins(places, enabled.as_object().unwrap(), &|_, _| None)
}

fn ids(found: &FoundPlugins) -> Vec<String> {
    found.plugins.iter().map(|it| format!("{} {}", it.id, it.scope.as_str())).collect()
}

#[test]
fn installed_plugins_are_on_as_settings_or_their_manifest_say() {
    let dir = TempDir::new().unwrap();
    let on = plugin(dir.path(), "on", &[]);
    let off = plugin(
        dir.path(),
        "off",
        &[(".claude-plugin/plugin.json", r#"{"name": "off", "defaultEnabled": false}"#)],
    );
    let entry = |path: &Path, scope: &str, project: &str| json!({"scope": scope, "installPath": path, "projectPath": project});
    let places = installed(
        dir.path(),
        &json!({
            "on@m": [entry(&on, "user", ""), entry(&on, "local", "/p")],
            "off@m": [entry(&off, "user", "")],
            "elsewhere@m": [entry(&on, "project", "/other")],
            "gone@m": [entry(&dir.path().join("none"), "user", "")],
            "old@m": entry(&on, "user", ""),
        }),
    );
    let found = find(&places, &json!({"missing@m": true, "elsewhere@m": false}));
    assert_eq!(ids(&found), ["on@m local", "old@m user"]);
    assert_eq!(found.disabled.len(), 1);
    let said = messages(&found.problems);
    assert!(
        said.contains("`missing@m`: it is turned on and not installed") && said.contains("`gone@m`"),
        "{said}"
    );
    let found = find(&places, &json!({"off@m": true, "on@m": false, "old@m": false, "gone@m": false}));
    assert_eq!(ids(&found), ["off@m user"]);
    assert_eq!(found.problems, []);
    let found = find_plugins(&places, &Map::new(), &|id, _| (id.name == "on").then(|| "not here".to_owned()));
    assert!(messages(&found.problems).contains("not here") && !ids(&found).concat().contains("on@m"));
    // What the marketplace says counts before what the plugin says, and settings before both.
    let market = dir.path().join("market");
    let catalogue = json!({"plugins": [{"name": "on", "defaultEnabled": false}, {"name": "off", "defaultEnabled": true}]});
    write(market.join(".claude-plugin/marketplace.json"), &catalogue.to_string());
    let known = json!({"m": {"source": {"source": "directory"}, "installLocation": market}});
    write(dir.path().join("plugins/known_marketplaces.json"), &known.to_string());
    assert_eq!(ids(&find(&places, &json!({}))), ["off@m user", "old@m user"]);
    assert_eq!(ids(&find(&places, &json!({"on@m": true, "off@m": false}))), ["on@m local", "old@m user"]);
}

#[test]
fn plugin_of_a_flag_wins_over_an_installed_one_of_its_name() {
    let dir = TempDir::new().unwrap();
    let a = plugin(&dir.path().join("x"), "same", &[]);
    let b = plugin(&dir.path().join("y"), "same", &[]);
    let mut places = installed(dir.path(), &json!({"same@m": [{"scope": "user", "installPath": b}]}));
    places.given = vec![a, dir.path().join("nowhere")];
    let found = find(&places, &json!({}));
    assert_eq!(ids(&found), ["same@inline inline"]);
    assert_eq!(found.problems.iter().map(|it| &*it.kind).collect::<Vec<_>>(), ["not_found", "name_conflict"]);
}

#[test]
fn state_that_cannot_be_read_is_reported() {
    let dir = TempDir::new().unwrap();
    let places = installed(dir.path(), &json!({"../x@m": []}));
    write(dir.path().join("plugins/known_marketplaces.json"), "{");
    let found = find(&places, &json!({}));
    assert_eq!(found.problems.iter().map(|it| &*it.kind).collect::<Vec<_>>(), ["invalid_id", "unreadable"]);
}

#[test]
fn marketplace_says_what_a_plugin_without_a_manifest_is() {
    let dir = TempDir::new().unwrap();
    let root = plugin(dir.path(), "p", &[("own/a.md", "x"), ("commands/usual.md", "y")]);
    let places = installed(dir.path(), &json!({"p@m": [{"scope": "user", "installPath": root}]}));
    let market = dir.path().join("market");
    write(
        market.join(".claude-plugin/marketplace.json"),
        r#"{"name": "m", "plugins": [{"name": "p", "source": "./p", "strict": false, "commands": "./own"}]}"#,
    );
    let known = json!({"m": {"source": {"source": "directory", "path": market}, "installLocation": market}});
    write(dir.path().join("plugins/known_marketplaces.json"), &known.to_string());
    let found = find(&places, &json!({}));
    assert_eq!(found.plugins[0].skills.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["p:a"]);
}
