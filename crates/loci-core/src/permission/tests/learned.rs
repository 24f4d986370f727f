//! Rules that are learned from answers.

use super::*;

/// Renders what is learned from calls that were answered with yes (`+`) or no (`-`).
fn check(rules: &str, answers: &str, expected: &[&str]) {
    let book = book("default", rules);
    let asked: Vec<AskedCall> = answers
        .lines()
        .map(|line| {
            let (sign, text) = line.split_at(1);
            let (tool, command, input, effects) = call(text.trim());
            AskedCall { tool, command, input, effects, is_allowed: sign == "+" }
        })
        .collect();
    let learned = learn_rules(&asked, &book);
    let texts: Vec<String> = learned.iter().map(|it| format!("{} {}", it.answered.len(), it.text)).collect();
    assert_eq!(texts, expected, "{answers}");
    for rule in &learned {
        let mut granted = book.clone();
        granted.add(RuleList::Allow, &rule.text, &RuleOrigin::new(RuleSource::Session, "/p"));
        for call in asked.iter().filter(|call| !call.is_allowed) {
            let judged = Call {
                tool: &call.tool,
                command: call.command.as_deref(),
                input: &call.input,
                effects: &call.effects,
                hook: None,
            };
            assert_ne!(decide(&judged, &granted).verdict, Verdict::Allow, "{}", rule.text);
        }
    }
}

#[test]
fn few_rules_answer_most_questions_and_no_refusal_is_overruled() {
    check("", "", &[]);
    check("", "+ Bash deploy now", &["1 Bash(deploy now)"]);
    // Commands that share two words are put together.
    check(
        "",
        "+ Bash gh pr view 1\n+ Bash gh issue view 2\n+ Bash gh pr view 3\n+ Bash tool lint src/a\n+ Bash tool lint src/b",
        &["2 Bash(gh pr *)", "2 Bash(tool lint *)", "1 Bash(gh issue view 2)"],
    );
    // What was refused is not let in by a wide rule.
    check(
        "",
        "+ Bash gh pr view 1\n+ Bash gh pr view 2\n- Bash gh pr close 3",
        &["1 Bash(gh pr view 1)", "1 Bash(gh pr view 2)"],
    );
    // Programs that do what their arguments say are never put together.
    check("", "+ Bash bash a x\n+ Bash bash a y", &["1 Bash(bash a x)", "1 Bash(bash a y)"]);
    check(
        "",
        "+ Bash git push origin a\n+ Bash git push origin b",
        &["1 Bash(git push origin a)", "1 Bash(git push origin b)"],
    );
    // What a rule lets run already needs none.
    check("allow: Bash(gh pr *)", "+ Bash gh pr view 1", &[]);
    check(
        "",
        "+ mcp__s__t {}\n+ mcp__s__t {}\n+ WebFetch host example.com",
        &["2 mcp__s__t", "1 WebFetch(domain:example.com)"],
    );
}

#[test]
fn learned_rule_says_what_else_it_allows() {
    for (rule, expected) in [
        ("Bash(gh pr *)", "every command that begins with `gh pr`, whatever follows"),
        ("Bash(make x)", "nothing else: this command alone"),
        ("WebFetch(domain:a.b)", "every page of a.b"),
        ("Read(//d/**)", "Read of every file below //d"),
        ("mcp__s__t", "every call of mcp__s__t, whatever its arguments"),
    ] {
        assert_eq!(also_allows(rule), expected);
    }
}
