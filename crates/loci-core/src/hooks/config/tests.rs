//! Configurations as settings write them: what is run, what is not, and what is said about it.

use loci_settings::{Layer, Origin, merge};
use serde_json::json;

use super::*;
use crate::hooks::{CommonInput, ToolFields, example};
use crate::tool::CallEffects;

fn layers(files: &[(Scope, &str)]) -> Vec<Layer> {
    files
        .iter()
        .map(|(scope, text)| Layer::parse(text, Origin::new(*scope, format!("{scope}.json"))).0)
        .collect()
}

/// Renders what settings say, a line each: what counts, what does not, what is wrong.
fn render(files: &[(Scope, &str)], is_trusted: bool) -> String {
    let hooks = SettingsHooks::parse(&merge(&layers(files), is_trusted), Path::new("/p"));
    let counts = hooks.config.entries().iter().map(|entry| describe(entry));
    let refused = hooks.refused.iter().map(|(entry, why)| format!("not {}: {why}", describe(entry)));
    let problems = hooks.problems.iter().map(|it| format!("{}{it}", if it.is_deciding { "!" } else { "" }));
    counts.chain(refused).chain(problems).collect::<Vec<_>>().join("\n")
}

fn describe(entry: &HookEntry) -> String {
    let limit = entry.timeout.map(|limit| format!(" {}s", limit.as_secs_f64())).unwrap_or_default();
    format!(
        "{} [{}] {} `{}`{limit} {}",
        entry.event.name(),
        entry.matcher_text,
        entry.kind(),
        entry.label(),
        entry.source
    )
}

fn check(text: &str, expected: &str) {
    assert_eq!(render(&[(Scope::User, text)], true), expected, "{text}");
}

#[test]
fn every_handler_is_read_with_its_line() {
    let text = r#"{
  "model": "x",
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [
        {"type": "command", "command": "a"},
        {"type": "http", "url": "https://x/", "headers": {"A": "$B"}, "allowedEnvVars": ["B"]},
        {"type": "command", "command": "b", "args": ["1 2"], "timeout": 1.5}
      ]},
      {
        "hooks": [{"type": "mcp_tool", "server": "s", "tool": "t", "input": {"a": {"b": 1}}},
          {"type": "prompt", "prompt": "ok?"},
          {"type": "agent", "prompt": "look"}]
      }
    ],
    "Stop": [{"hooks": [{"type": "command", "command": "c", "asyncRewake": true}]}]
  }
}"#;
    check(
        text,
        "PreToolUse [Bash] command `a` user.json:6\n\
         PreToolUse [Bash] http `https://x/` user.json:7\n\
         PreToolUse [Bash] command `b 1 2` 1.5s user.json:8\n\
         PreToolUse [] mcp_tool `s:t` user.json:11\n\
         PreToolUse [] prompt `ok?` user.json:12\n\
         PreToolUse [] agent `look` user.json:13\n\
         Stop [] command `c` user.json:16",
    );
}

#[test]
fn bad_entry_costs_itself_and_is_reported() {
    let handler = |body: &str| {
        format!(
            r#"{{"hooks": {{"PreToolUse": [{{"hooks": [{body}, {{"type": "command", "command": "good"}}]}}]}}}}"#
        )
    };
    for (body, problem) in [
        ("5", "!user.json:1: a handler is an object; ignored"),
        ("{}", "!user.json:1: there is no `type`; the handler is not run"),
        (r#"{"type": "dance"}"#, "!user.json:1: no such type of handler: `dance`; the handler is not run"),
        (r#"{"type": "command"}"#, "!user.json:1: there is no `command`; the handler is not run"),
        (
            r#"{"type": "command", "command": "a", "sandbox": {"enabled": true, "network": "x"}}"#,
            "!user.json:1: `network` of its `sandbox` is neither true, false nor a list of hosts; the handler is not run",
        ),
        (
            r#"{"type": "command", "command": " "}"#,
            "!user.json:1: there is no `command`; the handler is not run",
        ),
        (
            r#"{"type": "command", "command": "x", "args": "y"}"#,
            "!user.json:1: `args` is a list of texts; the handler is not run",
        ),
        (
            r#"{"type": "command", "command": "x", "shell": "fish"}"#,
            "!user.json:1: no such shell: `fish`; the handler is not run",
        ),
        (
            r#"{"type": "http", "url": "u", "headers": {"a": 1}}"#,
            "!user.json:1: `headers` is an object of texts; the handler is not run",
        ),
    ] {
        check(&handler(body), &format!("PreToolUse [] command `good` user.json:1\n{problem}"));
    }
}

#[test]
fn unknown_events_and_groups_are_reported_and_the_rest_counts() {
    check(
        r#"{"hooks": {"preToolUse": [{"hooks": [{"type": "command", "command": "x"}]}], "Stop": {"hooks": []},
            "PreToolUse": [7, {"matcher": 5, "hooks": []}, {"matcher": "Bash"}, {"hooks": "x"}],
            "SessionStart": [{"hooks": [{"type": "http", "url": "u"}, {"type": "command", "command": "s"}]}]}}"#,
        "SessionStart [] command `s` user.json:3\n\
         user.json:1: no such event: `preToolUse`; its hooks are never run\n\
         !user.json:1: `Stop` is no list of groups; ignored\n\
         !user.json:1: a group of handlers is an object; ignored\n\
         !user.json:2: a matcher is a text, found 5; the group is ignored\n\
         !user.json:2: a group without a list of `hooks` runs nothing\n\
         !user.json:2: a group without a list of `hooks` runs nothing\n\
         user.json:3: `SessionStart` takes no handlers of type `http`; the handler is not run",
    );
    check(
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": "soon"}]}]}}"#,
        "Stop [] command `x` user.json:1\nuser.json:1: `timeout` is a number of seconds, found \"soon\"; the usual one holds",
    );
}

#[test]
fn unknown_fields_of_groups_and_handlers_are_reported_and_comments_are_not() {
    check(
        r#"{"hooks": {"Stop": [{"matchers": "x", "_why": "y", "hooks": [
            {"type": "command", "command": "x", "timeot": 5, "$comment": "z", "description": "d"}]}]}}"#,
        "Stop [] command `x` user.json:2\n\
         user.json:1: no such field: `matchers`; it has no effect\n\
         user.json:2: no such field: `timeot`; it has no effect",
    );
}

#[test]
fn unreadable_if_is_reported_and_the_handler_runs_without_it() {
    let hooks = |event: &str, rule: &str| {
        format!(
            r#"{{"hooks": {{"{event}": [{{"hooks": [{{"type": "command", "command": "x", "if": "{rule}"}}]}}]}}}}"#
        )
    };
    for (event, rule, expected, problem) in [
        ("PreToolUse", "Bash(git *)", "rule", ""),
        ("PreToolUse", "Write(src/**)", "rule", ""),
        ("PreToolUse", "Bash(", "always", "Not a permission rule"),
        ("Stop", "Bash(git *)", "never", "`if` needs a call"),
    ] {
        let settings = merge(&layers(&[(Scope::User, &hooks(event, rule))]), true);
        let parsed = SettingsHooks::parse(&settings, Path::new("/p"));
        let condition = match &parsed.config.entries()[0].condition {
            Condition::Always => "always",
            Condition::Rule(_) => "rule",
            Condition::Never => "never",
        };
        assert_eq!(condition, expected, "{event} {rule}");
        let said = parsed.problems.first().map(ToString::to_string).unwrap_or_default();
        assert!(said.contains(problem) && said.is_empty() == problem.is_empty(), "{event} {rule}: {said}");
    }
}

const ONE: &str = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}"#;

#[test]
fn hooks_of_untrusted_folders_do_not_count() {
    for (scope, counts_untrusted) in [
        (Scope::User, true),
        (Scope::Project, false),
        (Scope::Local, false),
        (Scope::CommandLine, true),
        (Scope::Managed, true),
    ] {
        assert_eq!(!render(&[(scope, ONE)], false).contains("not Stop"), counts_untrusted, "{scope}");
        assert!(!render(&[(scope, ONE)], true).contains("not Stop"), "{scope}");
    }
}

#[test]
fn switches_keep_the_administrators_hooks_unless_the_administrator_says_so() {
    let off = |rest: &str| format!(r#"{{"disableAllHooks": true{rest}}}"#);
    let with = |switch: &str| ONE.replacen('{', &format!("{{\"{switch}\": true, "), 1);
    for (files, expected) in [
        (vec![(Scope::User, ONE.to_owned()), (Scope::Managed, ONE.to_owned())], "user managed"),
        (vec![(Scope::User, with("disableAllHooks")), (Scope::Managed, ONE.to_owned())], "managed"),
        (vec![(Scope::User, ONE.to_owned()), (Scope::Managed, with("disableAllHooks"))], ""),
        (vec![(Scope::User, ONE.to_owned()), (Scope::Managed, with("allowManagedHooksOnly"))], "managed"),
        // Only the administrator can say the second.
        (vec![(Scope::User, with("allowManagedHooksOnly"))], "user"),
        (vec![(Scope::User, ONE.to_owned()), (Scope::Local, off(""))], ""),
    ] {
        let files: Vec<(Scope, &str)> = files.iter().map(|(scope, text)| (*scope, text.as_str())).collect();
        let hooks = SettingsHooks::parse(&merge(&layers(&files), true), Path::new("/p"));
        let scopes: Vec<String> = hooks
            .config
            .entries()
            .iter()
            .map(|it| it.source.scope.to_string().replace(" settings", ""))
            .collect();
        assert_eq!(scopes.join(" "), expected, "{files:?}");
        assert_eq!(
            hooks.config.entries().len() + hooks.refused.len(),
            files.iter().filter(|(_, text)| text.contains("Stop")).count()
        );
    }
}

#[test]
fn untrusted_folder_cannot_turn_hooks_off() {
    let files = [(Scope::User, ONE), (Scope::Project, r#"{"disableAllHooks": true}"#)];
    assert_eq!(render(&files, false), "Stop [] command `x` user.json:1");
    assert!(render(&files, true).starts_with("not Stop"));
}

fn matched(text: &str, event: HookEvent, tool: &str, fits: bool) -> Vec<String> {
    let config = SettingsHooks::parse(&merge(&layers(&[(Scope::User, text)]), true), Path::new("/p")).config;
    let tool = ToolFields { tool_name: tool.to_owned(), tool_input: json!({"command": "x"}) };
    let input = example(event, CommonInput::default(), tool, None);
    config.matching(&input, &|_| fits).iter().map(|entry| entry.label()).collect()
}

#[test]
fn identical_handlers_run_once_whatever_their_timeout() {
    let text = r#"{"hooks": {"PreToolUse": [
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "a"}, {"type": "command", "command": "a", "timeout": 5}]},
        {"matcher": "*", "hooks": [{"type": "command", "command": "a"}, {"type": "command", "command": "b"},
            {"type": "command", "command": "a", "args": []}, {"type": "command", "command": "i", "if": "Bash(x)"}]},
        {"matcher": "Read", "hooks": [{"type": "command", "command": "r"}]}],
        "Stop": [{"matcher": "Read", "hooks": [{"type": "command", "command": "s"}]}]}}"#;
    assert_eq!(matched(text, HookEvent::PreToolUse, "Bash", true), ["a", "b", "a", "i"]);
    assert_eq!(matched(text, HookEvent::PreToolUse, "Bash", false), ["a", "b", "a"]);
    assert_eq!(matched(text, HookEvent::PreToolUse, "Read", false), ["a", "b", "a", "r"]);
    assert_eq!(matched(text, HookEvent::Stop, "", false), ["s"]);
    assert_eq!(matched(text, HookEvent::PostToolUse, "Bash", true), [""; 0]);
}

/// The rules of `if` are the permission engine's own; commands are told apart by whoever knows the shell.
#[test]
fn condition_of_paths_is_compared_by_the_permission_engine() {
    let book =
        Rulebook { dirs: vec!["/p".into()], cwd: "/p".into(), home: "/h".into(), ..Rulebook::default() };
    let writes = |path: &str| CallEffects {
        writes: vec![crate::tool::PathEffect::plain(path)],
        ..CallEffects::default()
    };
    for (rule, tool, path, expected) in [
        ("Edit(src/**)", "Edit", "/p/src/a.rs", true),
        ("Edit(src/**)", "Write", "/p/src/a.rs", true),
        ("Edit(src/**)", "Edit", "/q/src/a.rs", false),
        ("Edit(*.ts)", "Edit", "/p/deep/a.ts", true),
        ("Edit(*.ts)", "Edit", "/p/deep/a.rs", false),
        ("Write(src/**)", "Write", "/p/src/a.rs", true),
        ("Write(src/**)", "Edit", "/p/src/a.rs", false),
        ("Edit", "Edit", "/anywhere", true),
        ("Edit", "Write", "/anywhere", false),
        ("Read(src/**)", "Write", "/p/src/a.rs", false),
    ] {
        let condition = RuleCondition::parse(rule, Path::new("/p")).unwrap();
        let (input, effects) = (json!({"file_path": path}), writes(path));
        let call = Call { tool, command: None, input: &input, effects: &effects, hook: None };
        assert_eq!(condition.matches(&call, &book), expected, "{rule} ~ {tool} {path}");
    }
}

#[test]
fn users_own_hooks_wait_for_trust_before_a_screen_and_the_administrators_do_not() {
    let stop = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "c"}]}]}}"#;
    let layers = layers(&[(Scope::User, stop), (Scope::Managed, stop)]);
    for is_bare in [true, false] {
        let hooks = SettingsHooks::parse(&merge(&layers, true), Path::new("/p"));
        let hooks = if is_bare { hooks.managed_only() } else { hooks.until_trusted() };
        let scopes: Vec<&HookScope> = hooks.config.entries().iter().map(|it| &it.source.scope).collect();
        assert_eq!(scopes, [&HookScope::Settings(Scope::Managed)]);
        let why = if is_bare { "the run is a bare one" } else { "this folder is not trusted yet" };
        assert_eq!(hooks.refused.iter().map(|(_, why)| why.as_str()).collect::<Vec<_>>(), [why]);
    }
}
