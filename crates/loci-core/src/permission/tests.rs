//! Decisions on calls written as data.

mod grants;
mod learned;
mod limits;

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::tool::{CallEffects, CommandEffect, PathEffect, Removal, Unclear};
use loci_settings::Scope;

fn book(mode: &str, rules: &str) -> Rulebook {
    let mut book = Rulebook {
        mode: mode.parse().unwrap(),
        dirs: vec!["/p".into(), "/extra".into()],
        read_dirs: vec!["/spill".into()],
        memory_dirs: vec!["/home/dev/.claude/m".into()],
        cwd: "/p".into(),
        home: "/home/dev".into(),
        ..Rulebook::default()
    };
    for line in rules.lines() {
        let (list, texts) = line.split_once(": ").unwrap();
        let list = match list {
            "allow" => RuleList::Allow,
            "ask" => RuleList::Ask,
            _ => RuleList::Deny,
        };
        for text in split_list(texts) {
            book.add(list, text, &RuleOrigin::new(RuleSource::Settings(Scope::Project), "/p"));
        }
    }
    book
}

/// Reads a call: `Tool read|write PATH[=REAL]`, `Tool host HOST`, `Tool {json}`, or `Bash CMD` (a `!` before the
/// command marks it as not understood, `?` as read-only, `+` as a plain edit; ` > PATH` at the end redirects).
fn call(text: &str) -> (String, Option<String>, Value, CallEffects) {
    let (tool, rest) = text.split_once(' ').unwrap();
    let mut effects = CallEffects::default();
    let path = |text: &str| match text.split_once('=') {
        Some((requested, real)) => PathEffect { requested: requested.into(), real: real.into() },
        None => PathEffect::plain(text),
    };
    if tool != "Bash" {
        let mut input = Value::Null;
        match rest.split_once(' ') {
            Some(("read", to)) => effects = CallEffects::read(path(to)),
            Some(("write", to)) => effects = CallEffects::write(path(to)),
            Some(("host", host)) => effects.hosts.push(host.to_owned()),
            _ => {
                input = serde_json::from_str(rest).unwrap();
                effects = CallEffects::unknown("a tool of others");
            }
        }
        return (tool.to_owned(), None, input, effects);
    }
    let line = rest.trim_start_matches(['!', '?', '+']);
    let (parts, redirect) = match line.split_once(" > ") {
        Some((parts, to)) => (parts, Some(path(to))),
        None => (line, None),
    };
    if rest.starts_with('!') {
        effects.unknown.push("substitution".to_owned());
    }
    effects.commands = parts
        .split(" && ")
        .map(|part| CommandEffect {
            is_read_only: rest.starts_with('?'),
            is_edit: rest.starts_with('+'),
            ..CommandEffect::plain(part)
        })
        .collect();
    for word in parts.split(' ').filter(|word| word.starts_with('/')) {
        let is_read = rest.starts_with('?');
        if is_read { effects.reads.push(path(word)) } else { effects.writes.push(path(word)) }
    }
    effects.writes.extend(redirect.clone());
    effects.redirects.extend(redirect);
    (tool.to_owned(), Some(line.to_owned()), json!({"command": line}), effects)
}

fn verdict(book: &Rulebook, text: &str) -> Decision {
    let (tool, command, input, effects) = call(text);
    decide(
        &Call { tool: &tool, command: command.as_deref(), input: &input, effects: &effects, hook: None },
        book,
    )
}

#[track_caller]
fn check(mode: &str, rules: &str, text: &str, expected: &str) {
    let decision = verdict(&book(mode, rules), text);
    let found = format!("{:?}", decision.verdict).to_lowercase();
    assert_eq!(found, expected, "{mode} | {rules} | {text}: {}", decision.reason);
}

/// Memories are written unasked, but people's own rules come first.
/// Invariant 4 of `docs/design/memory.md`.
#[test]
fn rules_that_restrict_hold_for_memories_too() {
    let write = "Write write /home/dev/.claude/m/a.md";
    check("default", "", write, "allow");
    check("default", "deny: Write", write, "deny");
    check("default", "deny: Edit(~/.claude/**)", write, "deny");
    check("acceptEdits", "ask: Edit(~/.claude/m/**)", write, "ask");
}

#[test]
fn what_whoever_offers_a_tool_forbids_never_runs() {
    let effects = CallEffects { forbidden: Some("not this one".to_owned()), ..CallEffects::unknown("it") };
    let yes = HookVerdict { verdict: Verdict::Allow, reason: String::new() };
    for mode in ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions", "auto"] {
        let call =
            Call { tool: "mcp__s__t", command: None, input: &json!({}), effects: &effects, hook: Some(&yes) };
        let decision = decide(&call, &book(mode, "allow: mcp__s__t"));
        assert_eq!(decision.verdict, Verdict::Deny, "{mode}");
        assert_eq!(decision.reason.to_string(), "not this one");
    }
}

#[test]
fn modes_without_rules() {
    for (text, expected) in [
        // default acceptEdits plan dontAsk bypassPermissions; without a classifier auto is default
        ("Read read /p/a", "allow allow allow allow allow"),
        ("Read read /extra/a", "allow allow allow allow allow"),
        ("Read read /etc/passwd", "ask ask ask deny allow"),
        ("Read read /p/link=/etc/passwd", "ask ask ask deny allow"),
        ("Read read /px/a", "ask ask ask deny allow"),
        ("Read read /spill/toolu_1.txt", "allow allow allow allow allow"),
        ("Edit write /spill/toolu_1.txt", "ask ask ask deny allow"),
        ("Edit write /p/a", "ask allow ask deny allow"),
        ("Write write /home/dev/.claude/m/a.md", "allow allow ask allow allow"),
        ("Write write /home/dev/.claude/m/a.sh", "ask ask ask deny allow"),
        ("Write write /home/dev/.claude/m/CLAUDE.md", "ask ask ask deny allow"),
        ("Write write /home/dev/.claude/m/a.md=/p/CLAUDE.md", "ask ask ask deny allow"),
        ("Write write /home/dev/.claude/settings.md", "ask ask ask deny allow"),
        ("Bash +tee x > /home/dev/.claude/m/a.md", "ask ask ask deny allow"),
        ("Edit write /etc/hosts", "ask ask ask deny allow"),
        ("Edit write /p/.git/config", "ask ask ask deny allow"),
        ("Edit write /p/link=/p/.GIT/config", "ask ask ask deny allow"),
        ("Bash ?ls", "allow allow allow allow allow"),
        ("Bash ?cat /etc/passwd", "ask ask ask deny allow"),
        ("Bash ?ls > /p/x", "ask allow ask deny allow"),
        ("Bash ?ls > /etc/x", "ask ask ask deny allow"),
        ("Bash +touch /p/x", "ask allow ask deny allow"),
        ("Bash +touch /p/.bashrc", "ask ask ask deny allow"),
        ("Bash +touch /out/x", "ask ask ask deny allow"),
        ("Bash cargo test", "ask ask ask deny allow"),
        ("Bash !echo $(x)", "ask ask ask deny allow"),
        ("Bash rm -rf /", "ask ask ask deny ask"),
        ("Bash !bash -c 'rm -rf ~'", "ask ask ask deny ask"),
        ("WebFetch host docs.rs", "allow allow allow allow allow"),
        ("WebFetch host evil.test", "ask ask ask deny allow"),
        ("WebFetch host 169.254.169.254", "ask ask ask deny allow"),
        ("mcp__s__t {}", "ask ask ask deny allow"),
    ] {
        let modes = ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"];
        for (mode, expected) in modes.into_iter().zip(expected.split(' ')) {
            check(mode, "", text, expected);
        }
        check("auto", "", text, expected.split(' ').next().unwrap_or_default());
    }
}

#[test]
fn rules_deny_then_ask_then_allow() {
    for (mode, rules, text, expected) in [
        ("default", "allow: Edit", "Edit write /p/a", "allow"),
        ("default", "allow: Edit", "Write write /p/a", "ask"),
        ("default", "allow: Edit", "Edit write /p/.git/config", "ask"),
        ("default", "allow: Edit\ndeny: Edit", "Edit write /p/a", "deny"),
        ("bypassPermissions", "deny: Edit", "Edit write /p/a", "deny"),
        ("bypassPermissions", "ask: Edit", "Edit write /p/a", "ask"),
        ("dontAsk", "ask: Edit", "Edit write /p/a", "deny"),
        ("plan", "allow: Edit", "Edit write /p/a", "ask"),
        ("plan", "allow: Bash(cargo *)", "Bash cargo test", "allow"),
        ("default", "allow: Bash(cargo test)", "Bash cargo test", "allow"),
        ("default", "allow: Bash(cargo test)", "Bash cargo test --all", "ask"),
        ("default", "allow: Bash(cargo test)", "Bash cargo test && rm x", "ask"),
        ("default", "allow: Bash(cargo *)", "Bash cargo fmt && cargo test", "allow"),
        ("default", "allow: Bash(cargo *)", "Bash cargo fmt && touch x", "ask"),
        ("default", "allow: Bash(cargo *)", "Bash !cargo $(x)", "ask"),
        ("default", "allow: Bash", "Bash !cargo $(x)", "ask"),
        ("default", "allow: Bash(cargo $(x))", "Bash !cargo $(x)", "allow"),
        ("default", "allow: Bash\ndeny: Bash(echo *)", "Bash echo hi && touch q", "deny"),
        ("bypassPermissions", "deny: Bash(echo *)", "Bash !x $(echo hi)", "ask"),
        ("default", "allow: Bash", "Bash rm -rf ~", "ask"),
        ("dontAsk", "allow: Edit", "Edit write /p/a", "allow"),
        ("default", "allow: Bash(cargo *)", "Bash cargo test > /p/log", "ask"),
        ("default", "allow: Bash(cargo *) Edit(*.log)", "Bash cargo test > /p/a.log", "allow"),
        ("default", "allow: Bash Edit", "Bash cargo test > /p/log", "allow"),
        ("default", "allow: Bash Edit", "Bash cargo test > /out/log", "ask"),
        ("default", "allow: Bash Edit", "Bash cargo test > /p/.bashrc", "ask"),
        ("default", "allow: Bash", "Bash cargo test > /p/log", "allow"),
        ("default", "allow: Bash(*)", "Bash cargo test > /p/log", "allow"),
        ("default", "allow: Bash", "Bash cargo test > /out/log", "ask"),
        ("default", "allow: Bash", "Bash cargo test > /p/.bashrc", "ask"),
        ("plan", "allow: Bash", "Bash cargo test > /p/log", "ask"),
        ("default", "allow: Edit", "Bash cargo test > /p/log", "ask"),
        ("acceptEdits", "allow: Bash(cargo *)", "Bash cargo test > /p/log", "allow"),
        ("default", "allow: Edit(*.log)", "Bash ?ls > /p/a.log", "allow"),
        ("default", "allow: Bash(touch *)", "Bash touch /out/x", "ask"),
        ("default", "allow: Bash(touch *)", "Bash touch /p/x", "allow"),
        ("default", "allow: Bash(tee *)", "Bash tee /p/.bashrc", "ask"),
        ("default", "allow: *", "Read read /etc/x", "ask"),
        ("default", "deny: *", "Read read /p/x", "deny"),
    ] {
        check(mode, rules, text, expected);
    }
}

/// P-4.
#[test]
fn path_rules_look_at_both_spellings() {
    for (rules, text, expected) in [
        ("deny: Read(.env)", "Read read /p/.env", "deny"),
        ("deny: Read(.env)", "Read read /p/link=/p/sub/.env", "deny"),
        ("deny: Read(.env)", "Read read /p/.env=/p/other", "deny"),
        ("deny: Read(.env)", "Edit write /p/.env", "deny"),
        ("deny: Read(.env)", "NotebookEdit write /p/.env", "ask"),
        ("ask: Read(.env)", "Read read /p/.env", "ask"),
        ("deny: Edit(docs/**)", "Read read /p/docs/a", "allow"),
        ("deny: Edit(docs/**)", "Write write /p/a/docs/a", "deny"),
        ("deny: Edit(docs/**)\nallow: Bash", "Bash ?ls > /p/docs/a", "deny"),
        ("deny: Read(.env)\nallow: Bash", "Bash ?cat /p/.env", "deny"),
        ("allow: Edit(src/**)", "Write write /p/src/a", "allow"),
        ("allow: Edit(src/**)", "Write write /p/vendor/src/a", "ask"),
        ("allow: Edit(src/**)", "Write write /p/src/a=/out/a", "ask"),
        ("allow: Write(src/**)", "Write write /p/src/a", "ask"),
        ("allow: Read(//etc/hosts)", "Read read /etc/hosts", "allow"),
        ("allow: Read(//etc/hosts)", "Bash ?cat /etc/hosts", "allow"),
        ("allow: Read(//etc/hosts)", "Read read /etc/hosts=/etc/shadow", "ask"),
        ("allow: Read", "Read read /etc/shadow", "allow"),
        ("allow: Edit(//p/.git/**)", "Edit write /p/.git/config", "ask"),
    ] {
        check("default", rules, text, expected);
    }
}

#[test]
fn hosts_agents_skills_and_parameters() {
    for (rules, text, expected) in [
        ("allow: WebFetch(domain:ok.test)", "WebFetch host ok.test", "allow"),
        ("allow: WebFetch(domain:ok.test)", "WebFetch host a.ok.test", "ask"),
        ("allow: WebFetch\ndeny: WebFetch(domain:*.bad.test)", "WebFetch host x.bad.test", "deny"),
        ("deny: WebFetch(domain:docs.rs)", "WebFetch host docs.rs", "deny"),
        ("allow: WebFetch(domain:*)", "WebFetch host any.test", "allow"),
        ("allow: WebFetch", "WebFetch host 127.0.0.1", "ask"),
        ("allow: WebFetch(domain:*)", "WebFetch host localhost", "ask"),
        ("allow: WebFetch(domain:*.*.*.*)", "WebFetch host 10.0.0.1", "ask"),
        ("allow: WebFetch(domain:localhost)", "WebFetch host localhost", "allow"),
        ("allow: WebFetch(domain:10.0.0.*)", "WebFetch host 10.0.0.1", "allow"),
        ("deny: WebFetch(domain:localhost)", "WebFetch host localhost", "deny"),
        ("allow: Monitor\ndeny: WebFetch(domain:*.bad.test)", "Monitor host x.bad.test", "deny"),
        ("allow: Monitor\nask: WebFetch(domain:bad.test)", "Monitor host bad.test", "ask"),
        ("allow: Monitor\ndeny: WebFetch(domain:bad.test)", "Monitor host ok.test", "allow"),
        ("allow: Monitor\ndeny: WebFetch", "Monitor host ok.test", "allow"),
        ("allow: mcp__s", "mcp__s__t {}", "allow"),
        ("allow: mcp__s__t", "mcp__s__u {}", "ask"),
        ("allow: mcp__s\ndeny: mcp__s__t", "mcp__s__t {}", "deny"),
        ("allow: mcp__*", "mcp__s__t {}", "ask"),
        ("allow: mcp__s(*)", "mcp__s__t {}", "ask"),
        ("allow: mcp__s__t(q:x)", r#"mcp__s__t {"q":"x"}"#, "ask"),
        ("allow: mcp__s\ndeny: mcp__s(*)", "mcp__s__t {}", "deny"),
        ("allow: mcp__s\nask: mcp__s__t(q:x)", r#"mcp__s__t {"q":"x"}"#, "ask"),
        ("allow: mcp__s\nask: mcp__s__t(q:x)", r#"mcp__s__t {"q":"y"}"#, "allow"),
        ("allow: Task", "Agent {}", "allow"),
        ("allow: Agent\ndeny: Task", "Agent {}", "deny"),
        ("allow: Agent\nask: Task(Explore)", r#"Agent {"subagent_type":"Explore"}"#, "ask"),
        ("allow: Agent(Explore)", r#"Agent {"subagent_type":"Explore"}"#, "allow"),
        ("allow: Task(Explore)", r#"Agent {"subagent_type":"Other"}"#, "ask"),
        ("allow: Agent\ndeny: Agent(model:opus)", r#"Agent {"model":"opus"}"#, "deny"),
        ("allow: Agent\ndeny: Agent(model:opus)", r#"Agent {"model":"haiku"}"#, "allow"),
        ("allow: Agent\ndeny: Agent(model:opus)", r#"Agent {}"#, "allow"),
        ("allow: Agent\nask: Agent(model:o*)", r#"Agent {"model":"opus"}"#, "ask"),
        ("allow: Skill(pdf)", r#"Skill {"skill":"pdf"}"#, "allow"),
        ("allow: Skill(pdf)", r#"Skill {"skill":"pdf","args":"x"}"#, "allow"),
        ("allow: Skill(pdf *)", r#"Skill {"skill":"pdfx"}"#, "ask"),
        ("allow: X\ndeny: X(flag:true)", r#"X {"flag":true}"#, "deny"),
        ("allow: X\ndeny: X(nonsense)", r#"X {}"#, "deny"),
    ] {
        check("default", rules, text, expected);
    }
}

/// A rule for a server covers the tools of that very server, however names read.
#[test]
fn rules_for_servers_go_by_the_server_that_answers() {
    for (rule, server, tool, expected) in [
        ("allow: mcp__a__b", "a", "mcp__a__b__c", "ask"),
        ("allow: mcp__a__b", "a__b", "mcp__a_b__c", "allow"),
        ("allow: mcp__a_b", "a__b", "mcp__a_b__c", "allow"),
        ("allow: mcp__a", "a__b", "mcp__a_b__c", "ask"),
        ("allow: mcp__a", "a", "mcp__a__b__c", "allow"),
        ("allow: mcp__a__b__c", "a", "mcp__a__b__c", "allow"),
        ("allow: mcp__a__*", "a", "mcp__a__b__c", "allow"),
        ("allow: mcp__ok", "ok.", "mcp__ok___get", "ask"),
        ("allow: mcp__ok__*", "ok.", "mcp__ok___get", "ask"),
        ("allow: mcp__ok_", "ok.", "mcp__ok___get", "allow"),
        ("allow: mcp__ok.", "ok.", "mcp__ok___get", "allow"),
        ("allow: mcp__ok__get", "ok.", "mcp__ok___get", "ask"),
        ("allow: mcp__ok", "ok", "mcp__ok___get", "allow"),
        ("allow: mcp__a__b\ndeny: mcp__a__b", "a__b", "mcp__a_b__c", "deny"),
        ("allow: mcp__a\nask: mcp__a__b", "a", "mcp__a__b__c", "ask"),
    ] {
        let effects = CallEffects { server: Some(server.to_owned()), ..CallEffects::unknown("x") };
        let call = Call { tool, command: None, input: &json!({}), effects: &effects, hook: None };
        let found = format!("{:?}", decide(&call, &book("default", rule)).verdict).to_lowercase();
        assert_eq!(found, expected, "{rule} | {server} | {tool}");
    }
    // Where nobody says whose tool it is, what stands behind the first separator is the tool.
    check("default", "allow: mcp__a__b", "mcp__a__b__c {}", "ask");
}

/// P-4.
#[test]
fn unknown_command_parts_evade_no_rule() {
    let book = book("bypassPermissions", "deny: Read(.env) Bash(git push *)");
    let judge = |effects: &CallEffects| {
        decide(&Call { tool: "Bash", command: Some("x"), input: &Value::Null, effects, hook: None }, &book)
            .verdict
    };
    let reading = |text: &str| CallEffects {
        commands: vec![CommandEffect { readings: vec![text.to_owned()], ..CommandEffect::plain("x") }],
        ..CallEffects::default()
    };
    assert_eq!(judge(&reading("git \0")), Verdict::Ask);
    assert_eq!(judge(&reading("npm \0")), Verdict::Allow);
    assert_eq!(judge(&reading("\0")), Verdict::Ask);
    assert_eq!(judge(&reading("git push \0")), Verdict::Deny);
    let unclear = |unclear| CallEffects { unclear: vec![unclear], ..reading("cat") };
    assert_eq!(judge(&unclear(Unclear::Read("$F".to_owned()))), Verdict::Ask);
    let removal = |target: Option<&str>| CallEffects {
        removals: vec![Removal { text: "x".to_owned(), target: target.map(PathEffect::plain) }],
        ..reading("x")
    };
    assert_eq!(judge(&removal(None)), Verdict::Ask);
    assert_eq!(judge(&removal(Some("/extra"))), Verdict::Ask);
    assert_eq!(judge(&removal(Some("/p/build"))), Verdict::Allow);
}

/// P-7.
#[test]
fn reasons_name_the_rule_and_its_scope() {
    for (mode, rules, text, expected) in [
        (
            "default",
            "deny: Bash(git push *)",
            "Bash git push",
            "the rule `Bash(git push *)` (project settings)",
        ),
        (
            "dontAsk",
            "",
            "Bash make",
            "it changes something and no rule allows it, and mode dontAsk does not ask",
        ),
        ("default", "", "WebFetch host example.org", "no rule allows it to reach `example.org`"),
        ("default", "", "Edit write /p/.git/x", "`/p/.git/x` is a protected path"),
        ("default", "", "Read read /etc/x", "`/etc/x` is outside the working directories"),
    ] {
        assert_eq!(verdict(&book(mode, rules), text).reason.to_string(), expected);
    }
}

#[test]
fn an_explanation_ends_where_the_decision_fell() {
    let book = book("default", "allow: Bash(cargo *)");
    let (tool, command, input, effects) = call("Bash cargo test");
    let call =
        Call { tool: &tool, command: command.as_deref(), input: &input, effects: &effects, hook: None };
    let steps = explain(&call, &book);
    assert_eq!(steps.last().and_then(|step| step.decision.clone()), Some(decide(&call, &book)));
    assert_eq!(steps.last().map(|step| step.check), Some("allow rules"));
    assert_eq!(steps.iter().filter(|step| step.decision.is_some()).count(), 1);
}

#[test]
fn searches_leave_denied_files_out() {
    let book = book("default", "deny: Read(.env) Read(secrets/**) Edit(x)\nask: Read(y)");
    for (path, expected) in
        [("/p/.env", true), ("/p/a/secrets/k", true), ("/p/x", false), ("/p/y", false), ("/q/.env", false)]
    {
        assert_eq!(book.is_read_denied(Path::new(path)), expected, "{path}");
    }
}

const CALLS: &[&str] = &[
    "Read read /p/.env",
    "Edit write /p/src/a",
    "Write write /p/.git/config",
    "Bash ?ls /p/src",
    "Bash git push && cargo test",
    "Bash !x $(y)",
    "Bash rm -rf /",
    "Bash ?ls > /p/out",
    "WebFetch host a.test",
    "mcp__s__t {}",
];

const RULES: &[&str] = &[
    "Bash",
    "Bash(git *)",
    "Bash(cargo test)",
    "Bash(* test)",
    "Bash(ls",
    "Read(.env)",
    "Edit(src/**)",
    "Edit",
    "Read",
    "Write(x)",
    "WebFetch(domain:a.test)",
    "mcp__*",
    "mcp__s",
    "*",
    "X(a:b)",
];

fn openness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Deny => 0,
        Verdict::Ask => 1,
        Verdict::Allow => 2,
    }
}

proptest! {
    /// More restrictions never open anything; fewer permissions never do; the order of rules is nothing (P-5).
    #[test]
    fn rules_are_monotonic(
        mode in prop::sample::select(vec!["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]),
        rules in prop::collection::vec((0usize..3, prop::sample::select(RULES)), 0..6),
        extra in prop::sample::select(RULES),
        text in prop::sample::select(CALLS),
    ) {
        let lists = ["allow", "ask", "deny"];
        let written: Vec<String> = rules.iter().map(|(list, rule)| format!("{}: {rule}", lists[*list])).collect();
        let before = verdict(&book(mode, &written.join("\n")), text).verdict;
        for list in ["ask", "deny"] {
            let more = [written.clone(), vec![format!("{list}: {extra}")]].concat().join("\n");
            let after = verdict(&book(mode, &more), text).verdict;
            prop_assert!(openness(after) <= openness(before), "{mode} {more} {text}");
        }
        let fewer: Vec<String> = written.iter().filter(|rule| !rule.starts_with("allow")).cloned().collect();
        let after = verdict(&book(mode, &fewer.join("\n")), text).verdict;
        prop_assert!(openness(after) <= openness(before));
        let reversed: Vec<String> = written.iter().rev().cloned().collect();
        prop_assert_eq!(verdict(&book(mode, &reversed.join("\n")), text).verdict, before);
    }
}
