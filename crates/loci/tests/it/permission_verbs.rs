//! `loci permissions`: what rules say about a call, where they stand, and changing them.

use crate::support::{World, loci};
use expect_test::{Expect, expect};
use loci_testkit::Output;
use serde_json::Value;

async fn world() -> World {
    let world = World::new([]).await;
    world.home.write_config(
        "settings.json",
        "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(git *)\",\n      \"Read(//etc/hosts)\"\n    ],\n    \"deny\": [\"Bash(git push *)\"]\n  }\n}\n",
    );
    world.home.write(".claude/settings.json", "{\"permissions\": {\n\"ask\": [\n\"Bash(make deploy)\"]}}");
    world
}

fn run(world: &World, args: &[&str]) -> Output {
    world.run(&loci().arg("permissions").args(args.iter().copied()))
}

fn check(world: &World, args: &[&str], expected: &Expect) {
    let output = run(world, args);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    expected.assert_eq(&world.normaliser().text(&output.stdout));
}

/// P-7.
#[tokio::test]
async fn a_denied_call_is_explained_with_file_and_line() {
    check(
        &world().await,
        &["explain", "Bash git push origin"],
        &expect![[r#"
        deny: the rule `Bash(git push *)` (user settings, ~/.claude/settings.json:7)

        Mode: default

        Steps:
          hooks that deny                      nothing to say
          deny rules                           deny: the rule `Bash(git push *)` (user settings, ~/.claude/settings.json:7)

        Rules about it:
          deny  Bash(git push *)  (user settings, ~/.claude/settings.json:7)  matches
          ask   Bash(make deploy)  (project settings, <project>/.claude/settings.json:3)  does not match
          allow Bash(git *)  (user settings, ~/.claude/settings.json:4)  matches
          allow Read(//etc/hosts)  (user settings, ~/.claude/settings.json:5)  does not match

        What it would do:
          runs        git push origin

        No rule is offered that would let it run unasked.
    "#]],
    );
}

#[tokio::test]
async fn an_asked_call_is_explained_with_what_would_allow_it() {
    check(
        &world().await,
        &["explain", "Bash", "touch", "made"],
        &expect![[r#"
            ask: it changes something and no rule allows it

            Mode: default

            Steps:
              hooks that deny                      nothing to say
              deny rules                           nothing to say
              policy of the client for the tool    nothing to say
              a restricted run's directories       nothing to say
              files outside the directories        nothing to say
              the checkout beside a worktree       nothing to say
              ask rules                            nothing to say
              hooks that ask                       nothing to say
              rules that unknown parts may evade   nothing to say
              commands that read outside           nothing to say
              critical removals                    nothing to say
              what a person has to say             nothing to say
              bypassed permissions                 nothing to say
              a session that moves                 nothing to say
              the plan                             nothing to say
              memories                             nothing to say
              the sandbox                          nothing to say
              protected paths                      nothing to say
              private hosts                        nothing to say
              allow rules                          nothing to say
              hooks that allow                     nothing to say
              only reading                         nothing to say
              permission mode                      ask: it changes something and no rule allows it

            Rules about it:
              deny  Bash(git push *)  (user settings, ~/.claude/settings.json:7)  does not match
              ask   Bash(make deploy)  (project settings, <project>/.claude/settings.json:3)  does not match
              allow Bash(git *)  (user settings, ~/.claude/settings.json:4)  does not match
              allow Read(//etc/hosts)  (user settings, ~/.claude/settings.json:5)  does not match

            What it would do:
              runs        touch made
              writes      <project>/made

            What would let it run:
              the rule `Bash(touch made)`, in your settings for this project
        "#]],
    );
}

/// Settings that keep reads inside are explained as what denies, whatever rules allow.
#[tokio::test]
async fn blocked_read_is_explained_with_the_setting_that_blocks_it() {
    let world = world().await;
    world.home.write(
        ".claude/settings.json",
        r#"{"permissions": {"blockReadsOutsideWorkingDirectories": true, "denyInsteadOfPrompting": true}}"#,
    );
    let explained = |call: &str| {
        let output = run(&world, &["explain", call]);
        output.stdout.lines().next().unwrap_or_default().to_owned()
    };
    let read = explained("Read /etc/hosts");
    assert!(
        read.starts_with("deny: `/etc/hosts` is outside") && read.contains("blockReadsOutside"),
        "{read}"
    );
    let asked = explained("Bash touch made");
    assert!(asked.starts_with("deny: ") && asked.contains("permissions.denyInsteadOfPrompting"), "{asked}");
    let output =
        world.run(&loci().args(["config", "explain", "permissions.blockReadsOutsideWorkingDirectories"]));
    assert!(
        output.stdout.contains("project") && output.stdout.contains("true in any file wins"),
        "{output:?}"
    );
}

#[tokio::test]
async fn an_explanation_is_json_too() {
    check(
        &world().await,
        &["explain", "--json", r#"Bash {"command": "git status && make deploy"}"#],
        &expect![[r#"
            {
              "tool": "Bash",
              "input": {
                "command": "git status && make deploy"
              },
              "mode": "default",
              "verdict": "ask",
              "reason": "the rule `Bash(make deploy)` (project settings, <project>/.claude/settings.json:3)",
              "reasonType": "rule",
              "rule": {
                "rule": "Bash(make deploy)",
                "list": "ask",
                "source": "project settings",
                "file": "<project>/.claude/settings.json",
                "line": 3
              },
              "steps": [
                {
                  "check": "hooks that deny",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "deny rules",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "policy of the client for the tool",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "a restricted run's directories",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "files outside the directories",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "the checkout beside a worktree",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "ask rules",
                  "verdict": "ask",
                  "reason": "the rule `Bash(make deploy)` (project settings, <project>/.claude/settings.json:3)"
                }
              ],
              "rules": [
                {
                  "rule": "Bash(git push *)",
                  "list": "deny",
                  "source": "user settings",
                  "file": "~/.claude/settings.json",
                  "line": 7,
                  "fit": "does not match"
                },
                {
                  "rule": "Bash(make deploy)",
                  "list": "ask",
                  "source": "project settings",
                  "file": "<project>/.claude/settings.json",
                  "line": 3,
                  "fit": "matches"
                },
                {
                  "rule": "Bash(git *)",
                  "list": "allow",
                  "source": "user settings",
                  "file": "~/.claude/settings.json",
                  "line": 4,
                  "fit": "covers a part"
                },
                {
                  "rule": "Read(//etc/hosts)",
                  "list": "allow",
                  "source": "user settings",
                  "file": "~/.claude/settings.json",
                  "line": 5,
                  "fit": "does not match"
                }
              ],
              "effects": [
                {
                  "effect": "runs (reads)",
                  "text": "git status"
                },
                {
                  "effect": "runs",
                  "text": "make deploy"
                },
                {
                  "effect": "reads",
                  "text": "<project>"
                }
              ],
              "suggestions": [],
              "notes": []
            }
        "#]],
    );
}

#[tokio::test]
async fn rules_are_listed_with_file_and_line() {
    let world = world().await;
    check(
        &world,
        &["list"],
        &expect![[r#"
        Mode: default
        Directory: <project>
        deny  Bash(git push *)  (user settings, ~/.claude/settings.json:7)
        ask   Bash(make deploy)  (project settings, <project>/.claude/settings.json:3)
        allow Bash(git *)  (user settings, ~/.claude/settings.json:4)
        allow Read(//etc/hosts)  (user settings, ~/.claude/settings.json:5)
    "#]],
    );
    check(
        &world,
        &["list", "--json"],
        &expect![[r#"
        {
          "mode": "default",
          "directories": [
            "<project>"
          ],
          "rules": [
            {
              "rule": "Bash(git push *)",
              "list": "deny",
              "source": "user settings",
              "file": "~/.claude/settings.json",
              "line": 7
            },
            {
              "rule": "Bash(make deploy)",
              "list": "ask",
              "source": "project settings",
              "file": "<project>/.claude/settings.json",
              "line": 3
            },
            {
              "rule": "Bash(git *)",
              "list": "allow",
              "source": "user settings",
              "file": "~/.claude/settings.json",
              "line": 4
            },
            {
              "rule": "Read(//etc/hosts)",
              "list": "allow",
              "source": "user settings",
              "file": "~/.claude/settings.json",
              "line": 5
            }
          ],
          "notes": []
        }
    "#]],
    );
}

/// P-11.
#[tokio::test]
async fn rules_are_added_and_removed_and_nothing_else_changes() {
    let world = world().await;
    let before = std::fs::read_to_string(world.home.config_home().join("settings.json")).unwrap();
    check(
        &world,
        &["add", "--user", "Bash(cargo test *)"],
        &expect![[r#"
        Added `Bash(cargo test *)` (allow) in ~/.claude/settings.json
    "#]],
    );
    check(
        &world,
        &["add", "--user", "Bash(cargo test *)"],
        &expect![[r#"
        Already there: `Bash(cargo test *)` (allow) in ~/.claude/settings.json
    "#]],
    );
    check(
        &world,
        &["add", "--deny", "Read(./secrets/**)"],
        &expect![[r#"
        Added `Read(./secrets/**)` (deny) in <project>/.claude/settings.local.json
    "#]],
    );
    check(
        &world,
        &["explain", "--json", "Bash cargo test -p x"],
        &expect![[r#"
            {
              "tool": "Bash",
              "input": {
                "command": "cargo test -p x"
              },
              "mode": "default",
              "verdict": "allow",
              "reason": "the rule `Bash(cargo test *)` (user settings, ~/.claude/settings.json:6)",
              "reasonType": "rule",
              "rule": {
                "rule": "Bash(cargo test *)",
                "list": "allow",
                "source": "user settings",
                "file": "~/.claude/settings.json",
                "line": 6
              },
              "steps": [
                {
                  "check": "hooks that deny",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "deny rules",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "policy of the client for the tool",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "a restricted run's directories",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "files outside the directories",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "the checkout beside a worktree",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "ask rules",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "hooks that ask",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "rules that unknown parts may evade",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "commands that read outside",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "critical removals",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "what a person has to say",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "bypassed permissions",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "a session that moves",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "the plan",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "memories",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "the sandbox",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "protected paths",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "private hosts",
                  "verdict": null,
                  "reason": null
                },
                {
                  "check": "allow rules",
                  "verdict": "allow",
                  "reason": "the rule `Bash(cargo test *)` (user settings, ~/.claude/settings.json:6)"
                }
              ],
              "rules": [
                {
                  "rule": "Bash(git push *)",
                  "list": "deny",
                  "source": "user settings",
                  "file": "~/.claude/settings.json",
                  "line": 8,
                  "fit": "does not match"
                },
                {
                  "rule": "Read(./secrets/**)",
                  "list": "deny",
                  "source": "local settings",
                  "file": "<project>/.claude/settings.local.json",
                  "line": 4,
                  "fit": "does not match"
                },
                {
                  "rule": "Bash(make deploy)",
                  "list": "ask",
                  "source": "project settings",
                  "file": "<project>/.claude/settings.json",
                  "line": 3,
                  "fit": "does not match"
                },
                {
                  "rule": "Bash(git *)",
                  "list": "allow",
                  "source": "user settings",
                  "file": "~/.claude/settings.json",
                  "line": 4,
                  "fit": "does not match"
                },
                {
                  "rule": "Read(//etc/hosts)",
                  "list": "allow",
                  "source": "user settings",
                  "file": "~/.claude/settings.json",
                  "line": 5,
                  "fit": "does not match"
                },
                {
                  "rule": "Bash(cargo test *)",
                  "list": "allow",
                  "source": "user settings",
                  "file": "~/.claude/settings.json",
                  "line": 6,
                  "fit": "matches"
                }
              ],
              "effects": [
                {
                  "effect": "runs",
                  "text": "cargo test -p x"
                }
              ],
              "suggestions": [],
              "notes": []
            }
        "#]],
    );
    check(
        &world,
        &["remove", "Bash(cargo test *)", "--json"],
        &expect![[r#"
        {
          "rule": "Bash(cargo test *)",
          "removed": [
            {
              "list": "allow",
              "file": "~/.claude/settings.json"
            }
          ]
        }
    "#]],
    );
    check(
        &world,
        &["remove", "--local", "Read(./secrets/**)"],
        &expect![[r#"
        Removed `Read(./secrets/**)` (deny) from <project>/.claude/settings.local.json
    "#]],
    );
    let after = std::fs::read_to_string(world.home.config_home().join("settings.json")).unwrap();
    assert_eq!(after, before, "every other byte is as it was");
}

#[tokio::test]
async fn invalid_rule_is_refused() {
    let world = world().await;
    for (args, needle) in [
        (&["add", "Bash("][..], "Not a permission rule"),
        (&["add", "mcp__*"], "only behind"),
        (&["add", "Write(src/**)"], "never consulted"),
        (&["remove", "Bash(nothing)"], "No settings file that can be changed"),
        (&["explain", "Thing with words"], "Not a JSON object"),
    ] {
        let output = run(&world, args);
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
        assert!(output.stderr.contains(needle), "{}", output.stderr);
    }
    assert!(!world.home.project().join(".claude/settings.local.json").exists());
}

/// What is explained is what happens: the mode of the settings, the trust, the broken file.
#[tokio::test]
async fn explanations_follow_the_settings() {
    for (settings, call, verdict) in [
        ("{}", "Read notes.txt", "allow"),
        ("{}", "Bash rm -rf ~", "ask"),
        (r#"{"permissions": {"defaultMode": "acceptEdits"}}"#, "Bash touch x", "allow"),
        (r#"{"permissions": {"defaultMode": "dontAsk"}}"#, "Bash touch x", "deny"),
        (r#"{"permissions": {"deny": ["Bash(ls"]}}"#, "Bash ls", "deny"),
        (
            r#"{"permissions": {"allow": ["WebFetch(domain:a.test)"]}}"#,
            "WebFetch https://A.test:80/x",
            "allow",
        ),
        (r#"{"permissions": {"allow": ["mcp__s"]}}"#, "mcp__s__t", "allow"),
    ] {
        let world = World::new([]).await;
        world.home.write_config("settings.json", settings);
        let output = run(&world, &["explain", "--json", call]);
        let explained: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(explained["verdict"], verdict, "{settings} {call}: {explained}");
    }
}

/// Rules that wait for trust are shown beside those that count, and one that is added says that it waits.
#[tokio::test]
async fn untrusted_rules_are_explained_as_waiting() {
    let world = World::new([]).await;
    world.home.write(".claude/settings.local.json", r#"{"permissions": {"allow": ["Bash(touch *)"]}}"#);
    let output = run(&world, &["explain", "--json", "Bash touch x"]);
    let explained: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(explained["verdict"], "ask", "{explained}");
    let note = explained["notes"][0].as_str().unwrap_or_default();
    let waits =
        "Waits until this folder is trusted (`loci config trust`): permissions.allow = [\"Bash(touch *)\"]";
    assert!(note.starts_with(waits) && note.ends_with("settings.local.json:1)"), "{note}");
    let added = run(&world, &["add", "Bash(make *)"]);
    assert!(added.stdout.contains("It counts once this folder is trusted"), "{added:?}");
    let added = run(&world, &["add", "--user", "Bash(make *)"]);
    assert!(!added.stdout.contains("It counts once"), "{added:?}");
}

/// Options may stand before a call, and behind one in quotes; elsewhere they are the call's, which is told.
#[tokio::test]
async fn options_of_explain_stand_before_a_call_or_behind_one_in_quotes() {
    let world = world().await;
    let explained = |args: &[&str]| {
        let output = run(&world, &[&["explain", "--json"], args].concat());
        assert_eq!(output.code, Some(0), "{args:?} {output:?}");
        let json: Value = serde_json::from_str(&output.stdout).unwrap();
        let notes = json["notes"].as_array().unwrap().len();
        (
            json["mode"].as_str().unwrap().to_owned(),
            json["input"]["command"].as_str().unwrap().to_owned(),
            notes,
        )
    };
    let (plan, usual) = ("plan".to_owned(), "default".to_owned());
    for (args, expected) in [
        (&["--permission-mode", "plan", "Bash git push"][..], (&plan, "git push", 0)),
        (&["Bash git push", "--permission-mode", "plan"], (&plan, "git push", 0)),
        (&["Bash git push", "--permission-mode=plan", "--json"], (&plan, "git push", 0)),
        (&["Bash npm ls", "--all", "--json"], (&usual, "npm ls --all --json", 0)),
        (&["Bash", "npm", "ls", "--json"], (&usual, "npm ls --json", 0)),
        (&["Bash", "ls", "--permission-mode", "plan"], (&usual, "ls --permission-mode plan", 1)),
        (
            &["Bash git push", "--", "--permission-mode", "plan"],
            (&usual, "git push -- --permission-mode plan", 1),
        ),
        (&["--", "Bash", "git", "checkout", "--", "file"], (&usual, "git checkout -- file", 0)),
    ] {
        let (mode, command, notes) = explained(args);
        assert_eq!((&mode, command.as_str(), notes), expected, "{args:?}");
    }
    let output = run(&world, &["explain", "Bash git push", "--permission-mode", "bold"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("Unknown permission mode: `bold`"), "{output:?}");
}
