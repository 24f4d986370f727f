//! `loci config` and `loci doctor`.

use expect_test::{Expect, expect};
use loci_testkit::{Output, Step};
use serde_json::json;

use super::trust;
use crate::support::{World, loci, print};

/// Runs `loci` with these words and compares exit code, output and complaint.
fn check(world: &World, line: &str, expected: Expect) {
    let output = run(world, line);
    let text = format!("{}{}[{}]", output.stdout, output.stderr, output.code.unwrap());
    expected.assert_eq(&world.normaliser().text(&text));
}

fn run(world: &World, line: &str) -> Output {
    world.run(&loci().args(line.split(' ').map(|word| word.replace('_', " "))))
}

#[tokio::test]
async fn values_are_set_read_and_removed() {
    let world = World::new(Step::text("x")).await;
    let user = world.home.write_config("settings.json", "{\n  // mine\n  \"unknown\": [ 1 ],\n}\n");
    check(
        &world,
        "config set model opus",
        expect![[r#"
        Set `model` in ~/.claude/settings.json
        [0]"#]],
    );
    check(
        &world,
        "config get model",
        expect![[r#"
        opus
        [0]"#]],
    );
    check(
        &world,
        "config get model --json",
        expect![[r#"
        "opus"
        [0]"#]],
    );
    check(
        &world,
        "config set permissions.deny [\"Bash(rm_*)\"] --project",
        expect![[r#"
        Set `permissions.deny` in <project>/.claude/settings.json
        [0]"#]],
    );
    check(
        &world,
        "config set env.EDITOR vi",
        expect![[r#"
        Set `env.EDITOR` in ~/.claude/settings.json
        [0]"#]],
    );
    expect![[r#"
        {
          // mine
          "unknown": [ 1 ],
          "model": "opus",
          "env": {
            "EDITOR": "vi"
          }
        }
    "#]]
    .assert_eq(&std::fs::read_to_string(&user).unwrap());
    check(
        &world,
        "config list",
        expect![[r#"
        model = "opus"  (~/.claude/settings.json)
        permissions.deny = ["Bash(rm *)"]  (<project>/.claude/settings.json)
        env = {"EDITOR":"vi"}  (~/.claude/settings.json)
        [0]"#]],
    );
    check(
        &world,
        "config unset env.EDITOR",
        expect![[r#"
        Removed `env.EDITOR` from ~/.claude/settings.json
        [0]"#]],
    );
    check(
        &world,
        "config unset model",
        expect![[r#"
        Removed `model` from ~/.claude/settings.json
        [0]"#]],
    );
    check(
        &world,
        "config unset model",
        expect![[r#"
        Error: `model` is not set in ~/.claude/settings.json
        `loci config explain model` shows every file.
        [1]"#]],
    );
    check(
        &world,
        "config get model",
        expect![[r#"
        Error: `model` is not set
        `loci config explain model` shows every file.
        [1]"#]],
    );
}

/// A list that is set says what goes; one that is added to loses nothing.
#[tokio::test]
async fn list_entries_are_added_removed_and_named_when_replaced() {
    let world = World::new(Step::text("x")).await;
    let user = world.home.write_config(
        "settings.json",
        "{\n  // mine\n  \"permissions\": {\"allow\": [\"Bash(a)\", \"Bash(b)\"]}\n}\n",
    );
    check(
        &world,
        "config add permissions.allow Bash(c) Bash(a)",
        expect![[r#"
        Added `Bash(c)` (`permissions.allow`) in ~/.claude/settings.json
        Already there: `Bash(a)` (`permissions.allow`) in ~/.claude/settings.json
        [0]"#]],
    );
    check(
        &world,
        "config remove permissions.allow Bash(b)",
        expect![[r#"
        Removed `Bash(b)` (`permissions.allow`) from ~/.claude/settings.json
        [0]"#]],
    );
    let text = std::fs::read_to_string(&user).unwrap();
    assert!(text.contains("// mine") && text.contains("Bash(a)") && text.contains("Bash(c)"), "{text}");
    assert!(!text.contains("Bash(b)"), "{text}");
    check(
        &world,
        "config set permissions.allow Bash(d)",
        expect![[r#"
        Set `permissions.allow` in ~/.claude/settings.json
        Replaced what was there; gone: `Bash(a)`, `Bash(c)`
        `loci config add permissions.allow` adds to a list and keeps the rest
        [0]"#]],
    );
    check(
        &world,
        "config set permissions.allow [\"Bash(d)\",\"Bash(e)\"]",
        expect![[r#"
        Set `permissions.allow` in ~/.claude/settings.json
        [0]"#]],
    );
    check(
        &world,
        "config remove permissions.allow Bash(z)",
        expect![[r#"
        Error: `Bash(z)` is not in `permissions.allow` of ~/.claude/settings.json
        `loci config explain permissions.allow` shows every file.
        [1]"#]],
    );
    check(
        &world,
        "config add model opus",
        expect![[r#"
        Error: `model` is not a list
        Use `loci config set model` to set it, `unset` to remove it.
        [1]"#]],
    );
}

#[tokio::test]
async fn invalid_setting_is_refused_with_a_hint() {
    let world = World::new(Step::text("x")).await;
    for (line, expected) in [
        (
            "config set modle opus",
            expect![[r#"
                Error: No such setting: `modle`
                Did you mean `model`?
                [1]"#]],
        ),
        (
            "config set effortLevel huge",
            expect![[r#"
                Error: `effortLevel`: expected one of "low", "medium", "high", "xhigh", found "huge"
                Give it one of "low", "medium", "high", "xhigh".
                [1]"#]],
        ),
        (
            "config set claudeMd x",
            expect![[r#"
                Error: `claudeMd` cannot be set in user settings
                It belongs to managed settings only.
                [1]"#]],
        ),
        (
            "config set voiceEnabled true",
            expect![[r#"
                Set `voiceEnabled` in ~/.claude/settings.json
                It is kept, but this version does not act upon it yet
                [0]"#]],
        ),
    ] {
        check(&world, line, expected);
    }
    world.home.write_config("settings.json", "{\n  \"model\": \n}");
    check(
        &world,
        "config set model opus",
        expect![[r#"
        Error: Failed to edit settings: `<home>/.claude/settings.json`: Not valid JSON on line 3: a value is missing
        Fix the file first; it was left as it is.
        [1]"#]],
    );
}

#[tokio::test]
async fn explain_shows_every_file_and_why_one_wins() {
    let world = World::new(Step::text("x")).await;
    world.home.write_config(
        "settings.json",
        "{\"model\": \"a\", \"env\": {\"MY_API_KEY\": \"sk-1\"},\n \"permissions\": {\"allow\": [\"Read\"]}}",
    );
    world.home.write(
        ".claude/settings.json",
        "{\n  \"model\": \"b\",\n  \"permissions\": {\"allow\": [\"Bash\"]}\n}",
    );
    check(
        &world,
        "config explain model",
        expect![[r#"
        model = "b"
          project      <project>/.claude/settings.json:2  "b"  wins: the highest file that counts
          user         ~/.claude/settings.json:1  "a"  overridden

        What it is: the model to start with, an alias or an id.
        Who may set it: any settings file.
        How files are joined: the highest wins, of managed, command line, local, project, user.
        What comes first: `--model`, then ANTHROPIC_MODEL, then the model of a resumed session.
        [0]"#]],
    );
    check(
        &world,
        "config explain permissions.allow",
        expect![[r#"
            permissions.allow = ["Read"]
              project      <project>/.claude/settings.json:3  ["Bash"]  does not count: this folder is not trusted
              user         ~/.claude/settings.json:2  ["Read"]  wins: the highest file that counts

            What it is: rules for calls that run without asking.
            Who may set it: any settings file; in a project's files once the folder is trusted.
            How files are joined: all lists are put together.
            [0]"#]],
    );
    check(
        &world,
        "config explain env --json",
        expect![[r#"
        {
          "key": "env",
          "value": {
            "MY_API_KEY": "<hidden>"
          },
          "about": "environment variables of loci and of all it runs",
          "isUsed": true,
          "sources": [
            {
              "scope": "user",
              "file": "~/.claude/settings.json",
              "line": 1,
              "value": {
                "MY_API_KEY": "<hidden>"
              },
              "counts": true,
              "why": "wins: the highest file that counts"
            }
          ]
        }
        [0]"#]],
    );
    check(
        &world,
        "config set model c",
        expect![[r#"
        Set `model` in ~/.claude/settings.json
        It has no effect here: <project>/.claude/settings.json sets it too and wins
        [0]"#]],
    );
    check(
        &world,
        "config trust",
        expect![[r#"
        Trusted: <project>
        [0]"#]],
    );
    check(
        &world,
        "config get permissions.allow",
        expect![[r#"
        [
          "Read",
          "Bash"
        ]
        [0]"#]],
    );
    check(
        &world,
        "config trust --revoke",
        expect![[r#"
        No longer trusted: <project>
        [0]"#]],
    );
    assert!(run(&world, "config get permissions.allow").stdout.lines().count() == 3);
}

#[tokio::test]
async fn the_schema_is_json() {
    let world = World::new(Step::text("x")).await;
    let output = run(&world, "config schema");
    let schema: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(schema["properties"]["model"]["type"], "string");
}

/// A rule that restricts nothing, by a slip in its tool's name, is told; one whose name differs by capitals alone holds.
#[tokio::test]
async fn rules_for_tools_that_there_are_not_are_told_by_the_run_and_by_the_doctor() {
    let world = World::new([Step::call("Bash", json!({"command": "touch z"})), Step::text("Done.")]).await;
    trust(&world);
    world.home.write_config("settings.json", r#"{"permissions": {"deny": ["bash(touch:**)", "Bsh"]}}"#);
    let output = world.run(&print(["go", "--allowedTools", "Bash"]));
    assert!(!world.home.project().join("z").exists(), "{output:?}");
    let told = [
        "`bash(touch:**)`: no tool is called `bash`; enforced for `Bash`",
        "`Bsh`: no tool is called `Bsh`, so nothing is restricted by it",
    ];
    let doctor = run(&world, "doctor");
    assert_eq!(doctor.code, Some(1));
    for line in told {
        assert!(output.stderr.contains(line) && doctor.stdout.contains(line), "{output:?} {doctor:?}");
    }
}

#[tokio::test]
async fn doctor_names_what_is_there_and_what_is_wrong() {
    let world = World::new(Step::text("x")).await;
    trust(&world);
    let healthy = run(&world, "doctor");
    assert_eq!(healthy.code, Some(0), "{healthy:?}");
    world.home.write_config("settings.json", "{\"model\": 1, \"mine\": 2, \"voiceEnabled\": true}");
    world.home.write(".mcp.json", r#"{"mcpServers": {"srv": {"command": "secret"}}}"#);
    let text = run(&world, "doctor");
    assert_eq!(text.code, Some(1));
    let shown = world.normaliser().literal(env!("CARGO_PKG_VERSION"), "<version>").text(&text.stdout);
    let shown: Vec<&str> = shown
        .lines()
        .filter(|line| !["Programs: ", "Build: ", "Sandbox"].iter().any(|it| line.starts_with(it)))
        .collect();
    expect![[r#"
        loci <version> (compatible with Claude Code 2.1.325)
        Config home: ~/.claude

        Settings files, lowest first:
          user     ~/.claude/settings.json
          project  <project>/.claude/settings.json  (none)
          local    <project>/.claude/settings.local.json  (none)
          managed  /etc/claude-code/managed-settings.json  (none)

        Problems:
          ~/.claude/settings.json:1: `model`: expected text in double quotes, found 1; ignored (write text in double quotes, or remove the key)

        Notes:
          ~/.claude/settings.json:1: `mine`: no such setting (it is kept)

        Kept, not acted upon:
          `voiceEnabled` has no effect: there is no voice input

        Trust: <project> is trusted
        Credentials: ANTHROPIC_API_KEY
        MCP servers: srv (<project>/.mcp.json)
        Sessions: 0 in 0 projects, nothing wrong with them
        Agents: 0 besides those built in; `loci agents list` names them
        Tasks: 0 in 0 lists
        Plans: 0
        Worktrees: 0
        File history: 0 kept contents, 0 MB of at most 4294 MB

        1 problem"#]]
    .assert_eq(&shown.join("\n"));
    assert!(!text.stdout.contains("sk-ant-test"));
    let json: serde_json::Value = serde_json::from_str(&run(&world, "doctor --json").stdout).unwrap();
    assert_eq!((&json["isWrong"], &json["notActedUpon"][0]), (&true.into(), &"voiceEnabled".into()));
}

#[tokio::test]
async fn every_instruction_file_is_explained() {
    let world = World::new(Step::text("x")).await;
    world.home.write("CLAUDE.md", "top @a.md @~/out.md");
    world.home.write("a.md", "a");
    world.home.write_home("out.md", "x");
    world.home.write(".claude/rules/ts.md", "---\npaths: src/*.ts\n---\nLATER");
    check(
        &world,
        "config explain instructions",
        expect![[r#"
            <project>/CLAUDE.md  19 bytes  the project's
            <project>/a.md  1 byte  the project's; imported by <project>/CLAUDE.md

            Left out:
            ~/out.md  Outside the project and not approved; see `loci config trust --imports`
            <project>/.claude/rules/ts.md  Waits until a file is read that fits src/*.ts
            [0]"#]],
    );
}

#[tokio::test]
async fn git_ignores_local_settings_from_the_first_write_on() {
    let world = World::with_git(Step::text("x")).await;
    check(
        &world,
        "config set model opus --local",
        expect![[r#"
            Set `model` in <project>/.claude/settings.local.json
            Git ignores it from now on, by a rule in ~/.config/git/ignore
            [0]"#]],
    );
    check(
        &world,
        "config set model haiku --local",
        expect![[r#"
            Set `model` in <project>/.claude/settings.local.json
            [0]"#]],
    );
    let rules = std::fs::read_to_string(world.home.home().join(".config/git/ignore")).unwrap();
    assert_eq!(rules, "**/.claude/settings.local.json\n");
    let world = World::with_git(Step::text("x")).await;
    run(&world, "permissions add Bash(ls) --local");
    assert!(world.home.home().join(".config/git/ignore").exists());
}

/// What cannot be read is not in what is shown, so it is told beside it.
#[tokio::test]
async fn config_list_get_and_explain_tell_what_cannot_be_read() {
    let world = World::new(Step::text("x")).await;
    world
        .home
        .write_config("settings.json", "{\"model\": 5, \"effortLevel\": \"high\",\n\"permissions\": {}");
    for line in [
        "config list",
        "config list --json",
        "config get effortLevel",
        "config get model",
        "config explain model",
    ] {
        let output = run(&world, line);
        let told = world.normaliser().text(&output.stderr);
        assert!(told.contains("~/.claude/settings.json:1: `model`"), "{line}: {told}");
        assert!(told.contains("this `{` is never closed"), "{line}: {told}");
    }
    let listed: serde_json::Value = serde_json::from_str(&run(&world, "config list --json").stdout).unwrap();
    assert_eq!(listed[0]["key"], "effortLevel", "{listed}");
}
