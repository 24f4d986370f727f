//! What settings hold every call to: no files outside, no questions.

use super::*;

fn limited(mode: &str, rules: &str, limits: PermissionLimits) -> Rulebook {
    Rulebook { limits, ..book(mode, rules) }
}

const READS: PermissionLimits =
    PermissionLimits { blocks_reads_outside: true, blocks_writes_outside: false, denies_prompts: false };
const WRITES: PermissionLimits =
    PermissionLimits { blocks_reads_outside: false, blocks_writes_outside: true, denies_prompts: false };
const UNASKED: PermissionLimits =
    PermissionLimits { blocks_reads_outside: false, blocks_writes_outside: false, denies_prompts: true };

#[test]
fn blocked_reads_and_writes_outside_are_refused_in_every_mode_and_whatever_rules_allow() {
    let rules = "allow: Read Edit Write Bash Grep";
    for (limits, text, expected) in [
        (READS, "Read read /etc/passwd", "deny"),
        (READS, "Grep read /etc", "deny"),
        (READS, "Read read /p/link=/etc/passwd", "deny"),
        (READS, "Read read /p/a", "allow"),
        (READS, "Read read /extra/a", "allow"),
        (READS, "Read read /spill/toolu_1.txt", "allow"),
        (READS, "Read read /home/dev/.claude/m/a.md", "allow"),
        (READS, "Bash ?cat /etc/passwd", "ask"),
        (READS, "Bash ?cat /p/a", "allow"),
        (WRITES, "Write write /etc/x", "deny"),
        (WRITES, "Edit write /p/link=/etc/x", "deny"),
        (WRITES, "Write write /home/dev/.claude/m/a.md", "allow"),
        (WRITES, "Read read /etc/passwd", "allow"),
    ] {
        for mode in ["default", "acceptEdits", "bypassPermissions", "auto"] {
            let decision = verdict(&limited(mode, rules, limits), text);
            assert_eq!(
                format!("{:?}", decision.verdict).to_lowercase(),
                expected,
                "{mode} {text}: {}",
                decision.reason
            );
        }
        let unasked = if expected == "ask" { "deny" } else { expected };
        let decision = verdict(&limited("dontAsk", rules, limits), text);
        assert_eq!(
            format!("{:?}", decision.verdict).to_lowercase(),
            unasked,
            "dontAsk {text}: {}",
            decision.reason
        );
    }
    let said = verdict(&limited("bypassPermissions", "", READS), "Read read /etc/passwd").reason.to_string();
    assert!(said.contains("blockReadsOutsideWorkingDirectories") && said.contains("/add-dir"), "{said}");
}

#[test]
fn path_that_is_only_known_when_a_command_runs_counts_as_outside() {
    let mut effects =
        CallEffects { commands: vec![CommandEffect::plain("cat $f")], ..CallEffects::default() };
    effects.unclear.push(Unclear::Read("$f".to_owned()));
    let input = json!({"command": "cat $f"});
    let call = Call { tool: "Bash", command: Some("cat $f"), input: &input, effects: &effects, hook: None };
    let judged = |limits| decide(&call, &limited("bypassPermissions", "allow: Bash", limits)).verdict;
    assert_eq!(judged(READS), Verdict::Ask);
    assert_eq!(judged(PermissionLimits::default()), Verdict::Allow);
}

#[test]
fn prompts_are_denied_where_settings_say_so_and_the_rest_is_judged_as_ever() {
    for (mode, rules, text, expected) in [
        ("default", "", "Bash cargo test", "deny"),
        ("default", "allow: Bash(cargo *)", "Bash cargo test", "allow"),
        ("default", "", "Read read /p/a", "allow"),
        ("acceptEdits", "", "Edit write /p/a", "allow"),
        ("acceptEdits", "ask: Edit", "Edit write /p/a", "deny"),
        ("bypassPermissions", "", "Bash cargo test", "allow"),
        ("bypassPermissions", "", "Bash rm -rf /", "deny"),
    ] {
        let decision = verdict(&limited(mode, rules, UNASKED), text);
        assert_eq!(
            format!("{:?}", decision.verdict).to_lowercase(),
            expected,
            "{mode} {text}: {}",
            decision.reason
        );
        assert_eq!(decision.is_prompt_denied(), expected == "deny");
    }
    let said = verdict(&limited("default", "", UNASKED), "Bash cargo test").reason.to_string();
    assert!(said.ends_with("(permissions.denyInsteadOfPrompting)"), "{said}");
}

#[test]
fn limits_only_add_up() {
    let both = READS.and(WRITES);
    assert!(both.include(READS) && both.include(WRITES) && !both.include(UNASKED) && !READS.include(WRITES));
}
