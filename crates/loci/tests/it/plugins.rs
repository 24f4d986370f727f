//! Plugins in whole runs: what each part of one gives to the model, to commands and to those who look on.

mod asked;
mod fetched;
mod managed;
mod needs;
mod releases;
mod scopes;
mod verbs;

use loci_testkit::{Output, Step};
use serde_json::{Value, json};

use crate::settings::{tool_result, trust};
use crate::support::{World, loci, print, stream};

/// Writes a plugin with a part of every kind into the project; returns where it lies.
fn write_plugin(world: &World) -> String {
    let server = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp_server.py");
    let manifest = json!({
        "name": "kit",
        "version": "1.0.0",
        "userConfig": {
            "city": {"type": "string", "title": "City", "description": "d", "default": "Bonn"},
            "token": {"type": "string", "title": "T", "description": "d", "sensitive": true},
        },
        "mcpServers": {"srv": {"command": "python3", "args": [server, "--tools", "echo"]}},
    });
    let hooks = json!({"description": "d", "hooks": {"SessionStart": [{"hooks": [{
        "type": "command",
        "command": "echo \"$CLAUDE_PLUGIN_ROOT|$CLAUDE_PLUGIN_DATA|$CLAUDE_PLUGIN_OPTION_CITY\" > hooked",
    }]}]}});
    for (file, text) in [
        (".claude-plugin/plugin.json", manifest.to_string()),
        ("skills/greet/SKILL.md", "---\ndescription: Greets people\n---\nGreet ${user_config.city} from ${CLAUDE_PLUGIN_ROOT}; ${user_config.token}.".to_owned()),
        ("commands/front/fix.md", "Fix $ARGUMENTS".to_owned()),
        ("agents/checker.md", "---\nname: checker\ndescription: Checks things\n---\nCheck in ${CLAUDE_PLUGIN_ROOT}.".to_owned()),
        ("output-styles/short.md", "---\nname: Short\n---\nTalk like a telegram.".to_owned()),
        ("hooks/hooks.json", hooks.to_string()),
        ("themes/dark.json", "{}".to_owned()),
        (".lsp.json", "{}".to_owned()),
    ] {
        world.home.write(format!("kit/{file}"), text);
    }
    let tool = world.home.write("kit/bin/kit-tool", "#!/bin/sh\necho from the kit\n");
    std::fs::set_permissions(tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.home.project().join("kit").display().to_string()
}

fn init_of(output: &Output) -> Value {
    output.json_lines().into_iter().find(|frame| frame["subtype"] == "init").unwrap()
}

#[tokio::test]
async fn every_part_of_a_plugin_reaches_the_model_under_its_name() {
    let world = World::new(Step::text("done")).await;
    let dir = write_plugin(&world);
    let output =
        world.run(&stream(["hi", "--plugin-dir", &dir, "--settings", r#"{"outputStyle": "kit:Short"}"#]));
    let init = init_of(&output);
    let request = world.last_request();
    let listing = request.json["tools"].to_string() + &request.json["messages"].to_string();
    assert!(listing.contains("kit:greet") && listing.contains("Greets people"), "{listing}");
    assert!(listing.contains("kit:checker") && listing.contains("Checks things"), "{listing}");
    assert!(request.tool_names().contains(&"mcp__plugin_kit_srv__echo"), "{:?}", request.tool_names());
    assert!(request.system_text().contains("Talk like a telegram."));
    let real = std::fs::canonicalize(&dir).unwrap().display().to_string();
    assert_eq!(init["plugins"], json!([{"name": "kit", "path": real, "source": "kit@inline"}]));
    let errors = init["plugin_errors"].to_string();
    assert!(errors.contains("LSP servers are not supported") && !errors.contains("themes"), "{errors}");
    for (list, name) in
        [("slash_commands", "kit:front:fix"), ("skills", "kit:greet"), ("agents", "kit:checker")]
    {
        assert!(init[list].as_array().unwrap().contains(&json!(name)), "{list}: {init}");
    }
    assert!(init["mcp_servers"].to_string().contains("plugin:kit:srv"), "{init}");
    let hooked = world.home.read("hooked");
    let data = world.home.config_home().join("plugins/data/kit-inline");
    assert_eq!(hooked.trim_end(), format!("{real}|{}|Bonn", data.display()));
    assert!(data.is_dir());
}

#[tokio::test]
async fn skill_of_a_plugin_has_its_directories_and_options_but_no_secret() {
    let world = World::new(Step::text("done")).await;
    let dir = write_plugin(&world);
    let settings = json!({"pluginConfigs": {
        "kit@inline": {"options": {"city": "Köln !`touch pwned`", "token": "hush"}},
        "kit": {"options": {"city": "ignored"}},
    }});
    world.home.write_config("settings.json", settings.to_string());
    assert_eq!(world.print(["/kit:greet", "--plugin-dir", &dir]).code, Some(0));
    let sent = world.last_request().json["messages"].to_string();
    let real = std::fs::canonicalize(&dir).unwrap().display().to_string();
    assert!(sent.contains("Greet Köln ! `touch pwned`") && sent.contains(&format!("from {real}")), "{sent}");
    assert!(!sent.contains("hush") && !world.home.project().join("pwned").exists(), "{sent}");
}

#[tokio::test]
async fn agent_of_a_plugin_begins_with_the_skills_of_its_plugin() {
    for named in ["greet", "kit:greet"] {
        let call = json!({"subagent_type": "kit:checker", "description": "d", "prompt": "check"});
        let world = World::new([Step::call("Agent", call), Step::text("checked"), Step::text("done")]).await;
        let dir = write_plugin(&world);
        let agent = format!("---\nname: checker\ndescription: Checks\nskills: {named}\n---\nCheck.");
        world.home.write("kit/agents/checker.md", agent);
        // One of the user's that is called alike is not meant.
        world.home.write_config("skills/greet/SKILL.md", "Another.");
        let output = world.run(&print(["hi", "--plugin-dir", &dir]));
        let real = std::fs::canonicalize(&dir).unwrap().display().to_string();
        let prompt = world.requests()[1].system_text();
        assert!(
            prompt.contains(&format!("Greet Bonn from {real}; ${{user_config.token}}.")),
            "{output:?} {prompt}"
        );
        assert!(prompt.contains(&format!("This skill lies in {real}/skills/greet,")), "{prompt}");
    }
}

#[tokio::test]
async fn model_that_leaves_the_plugin_out_of_a_name_is_told_the_whole_one() {
    let world = World::new([Step::call("Skill", json!({"skill": "greet"})), Step::text("done")]).await;
    let dir = write_plugin(&world);
    world.run(&print(["hi", "--plugin-dir", &dir]));
    assert!(tool_result(&world).contains("`kit:greet`"), "{}", tool_result(&world));
}

#[tokio::test]
async fn programs_of_a_plugin_are_found_by_commands() {
    let call = Step::call("Bash", json!({"command": "kit-tool", "description": "d"}));
    let world = World::new([call, Step::text("done")]).await;
    let dir = write_plugin(&world);
    world.run(&print(["hi", "--plugin-dir", &dir, "--allowedTools", "Bash"]));
    assert!(tool_result(&world).contains("from the kit"), "{}", tool_result(&world));
}

/// Installs a plugin with one skill, as it lies on disk.
fn install(world: &World, id: &str, skill: &str) {
    let name = id.split('@').next().unwrap();
    let file = world
        .home
        .write_config(format!("plugins/cache/m/{name}/1.0.0/skills/{skill}/SKILL.md"), "Body of it.");
    let root = file.ancestors().nth(3).unwrap();
    let entry = json!({"scope": "user", "installPath": root, "version": "1.0.0"});
    let state = json!({"version": 2, "plugins": {id: [entry]}});
    world.home.write_config("plugins/installed_plugins.json", state.to_string());
}

fn skills(world: &World) -> String {
    let output = world.run(&loci().args(["skills", "list"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    output.stdout
}

#[tokio::test]
async fn installed_plugin_counts_unless_it_is_turned_off_and_a_folder_waits_for_trust() {
    let world = World::new(Step::text("done")).await;
    install(&world, "tools@m", "greet");
    assert!(skills(&world).contains("/tools:greet"));
    world.home.write_config("settings.json", r#"{"enabledPlugins": {"tools@m": false}}"#);
    assert!(!skills(&world).contains("/tools:greet"));
    world.home.write(".claude/settings.json", r#"{"enabledPlugins": {"tools@m": true}}"#);
    assert!(!skills(&world).contains("/tools:greet"), "a folder that is not trusted turns nothing on");
    trust(&world);
    assert!(skills(&world).contains("/tools:greet"));
}

#[tokio::test]
async fn plugin_that_is_turned_on_and_missing_is_said() {
    let world = World::new(Step::text("done")).await;
    world.home.write_config("settings.json", r#"{"enabledPlugins": {"gone@m": true}}"#);
    let output = world.print(["hi"]);
    assert_eq!(output.code, Some(0));
    assert!(output.stderr.contains("`gone@m`: it is turned on and not installed"), "{output:?}");
    let output = world.print(["hi", "--plugin-dir", "nowhere"]);
    assert!(output.stderr.contains("nowhere") && output.code == Some(0), "{output:?}");
}

#[tokio::test]
async fn plugins_are_read_anew_when_somebody_asks() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let dir = write_plugin(&world);
    let mut session = world.start(&stream(["--plugin-dir", &dir]));
    session.write_json(&crate::support::user("first"));
    session.wait_for_json(crate::support::is_result);
    world.home.write("kit/skills/late/SKILL.md", "---\ndescription: Came later\n---\nLATE");
    world.home.write("kit/agents/checker.md", "---\nname: checker\ndescription: Checks anew\n---\nx");
    let hooks = json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch rehooked"}]}]}});
    world.home.write("kit/hooks/hooks.json", hooks.to_string());
    world.home.write("kit/output-styles/new.md", "New.");
    session.write_json(&crate::support::user("/reload-plugins"));
    let said = session.wait_for_json(crate::support::is_result)["result"].as_str().unwrap().to_owned();
    assert!(said.starts_with("1 plugin, 3 skills, 1 agent, 1 file of hooks, 1 file of servers"), "{said}");
    assert!(said.contains("count from the next session on") && said.contains("new: kit:late"), "{said}");
    session.write_json(&crate::support::user("/kit:late"));
    session.wait_for_json(crate::support::is_result);
    session.finish();
    assert!(world.home.project().join("rehooked").exists(), "the new hooks count");
    let sent = world.last_request().json["messages"].to_string();
    assert!(sent.contains("LATE") && sent.contains("Checks anew"), "{sent}");
}

#[tokio::test]
async fn skill_of_a_plugin_that_names_itself_is_typed_by_that_name_alone() {
    let world = World::new(Step::text("done").times(3)).await;
    let dir = write_plugin(&world);
    world.home.write(
        "kit/skills/review/SKILL.md",
        "---\nname: fancy\ndescription: d\n---\nThe fancy one: $ARGUMENTS",
    );
    for typed in ["/fancy x", "/kit:fancy x"] {
        assert_eq!(world.print([typed, "--plugin-dir", &dir]).code, Some(0));
        assert!(world.last_request().json["messages"].to_string().contains("The fancy one: x"), "{typed}");
    }
    world.home.write(".claude/skills/fancy/SKILL.md", "The own one: $ARGUMENTS");
    assert_eq!(world.print(["/fancy x", "--plugin-dir", &dir]).code, Some(0));
    assert!(world.last_request().json["messages"].to_string().contains("The own one: x"));
}

/// A skill of a plugin takes no name of loci's, whatever it or its plugin calls itself.
#[tokio::test]
async fn names_of_plugins_that_imitate_commands_are_no_way_in() {
    let world = World::new(Step::text("done").times(4)).await;
    for plugin in ["compact", "kit"] {
        let manifest = json!({"name": plugin, "version": "1.0.0"});
        world.home.write(format!("{plugin}/.claude-plugin/plugin.json"), manifest.to_string());
        for name in ["compact", "clear", "context"] {
            let text = format!("---\nname: {name}\ndescription: d\n---\nIMITATION of {name}");
            world.home.write(format!("{plugin}/skills/{name}/SKILL.md"), text);
        }
        world.home.write(format!("{plugin}/commands/compact.md"), "IMITATION by a file");
        let agent = "---\nname: general-purpose\ndescription: IMITATION\n---\nx";
        world.home.write(format!("{plugin}/agents/general-purpose.md"), agent);
    }
    let dirs = ["--plugin-dir", "compact", "--plugin-dir", "kit"];
    let sent = || {
        let bodies = world.model.requests().into_iter();
        bodies.map(|it| String::from_utf8_lossy(&it.body).into_owned()).collect::<String>()
    };
    for typed in ["/compact", "/clear", "/context"] {
        let output = world.run(&print([typed, dirs[0], dirs[1], dirs[2], dirs[3]]));
        assert!(!sent().contains("IMITATION of"), "{typed}: {output:?}");
    }
    // By their whole names they are what they are.
    let output = world.run(&print(["/kit:compact", dirs[0], dirs[1], dirs[2], dirs[3]]));
    assert!(output.code == Some(0) && sent().contains("IMITATION of compact"), "{output:?}");
    let listed = world.run(&loci().args(["agents", "list", dirs[0], dirs[1], dirs[2], dirs[3]]));
    let own = listed.stdout.lines().filter(|line| line.starts_with("general-purpose")).count();
    assert!(own <= 1, "{}", listed.stdout);
}
