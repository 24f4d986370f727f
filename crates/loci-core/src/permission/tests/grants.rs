//! What is offered to be granted, what hooks and classifiers may say, and what they may not.

use super::*;

fn offered(mode: &str, rules: &str, text: &str) -> String {
    let book = book(mode, rules);
    let (tool, command, input, effects) = call(text);
    let call =
        Call { tool: &tool, command: command.as_deref(), input: &input, effects: &effects, hook: None };
    let decision = decide(&call, &book);
    let updates = suggest(&call, &book, &decision);
    let mut granted = book;
    for update in &updates {
        assert_eq!(update.apply(&mut granted), [], "{text}");
    }
    if !updates.is_empty() {
        assert_eq!(decide(&call, &granted).verdict, Verdict::Allow, "{text}: an offer lets the call run");
    }
    updates.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// P-8.
#[test]
fn offers_are_narrow_and_honest() {
    let local = "in your settings for this project";
    let session = "until the session ends";
    for (mode, rules, text, expected) in [
        ("default", "", "Bash make x", format!("the rule `Bash(make x)`, {local}")),
        ("default", "", "Bash cargo test -p a", format!("the rule `Bash(cargo test *)`, {local}")),
        ("default", "", "Bash npm run build --x", format!("the rule `Bash(npm run build *)`, {local}")),
        ("default", "", "Bash npm run --x", format!("the rule `Bash(npm run --x)`, {local}")),
        ("default", "", "Bash cargo testx", format!("the rule `Bash(cargo testx)`, {local}")),
        ("default", "", "Bash a && b && a", format!("the rule `Bash(a)`, `Bash(b)`, {local}")),
        ("default", "allow: Bash(a)", "Bash a && b", format!("the rule `Bash(b)`, {local}")),
        ("dontAsk", "", "Bash make x", format!("the rule `Bash(make x)`, {local}")),
        ("default", "", "Bash a && b && c && d && e && f", String::new()),
        ("default", "", "Bash !echo $(x)", String::new()),
        ("default", "", "Bash echo a*", String::new()),
        ("default", "", "Bash rm -rf /", String::new()),
        ("default", "ask: Bash(make *)", "Bash make x", String::new()),
        ("default", "deny: Bash(make *)", "Bash make x", String::new()),
        ("default", "", "Bash ?cat /etc/hosts", format!("the rule `Read(//etc/**)`, {session}")),
        ("default", "", "Bash ?ls > /p/out", format!("the rule `Edit(//p/out)`, {session}")),
        ("default", "", "Bash ?ls > /p/.bashrc", String::new()),
        ("default", "", "Read read /etc/a[1]/x", format!("the rule `Read(//etc/a\\[1\\]/**)`, {session}")),
        // One rule would have to match both spellings.
        ("default", "", "Read read /p/link=/out/x", String::new()),
        ("default", "", "Read read /x", String::new()),
        ("default", "", "Grep read /etc", format!("the rule `Read(//etc)`, {session}")),
        ("default", "", "Edit write /p/a", format!("the mode acceptEdits, {session}")),
        ("plan", "", "Edit write /p/a", String::new()),
        (
            "default",
            "",
            "Edit write /out/a",
            format!("the directory `/out`, {session}; the mode acceptEdits, {session}"),
        ),
        ("default", "", "Edit write /p/.git/x", String::new()),
        ("default", "", "WebFetch host a.test", format!("the rule `WebFetch(domain:a.test)`, {local}")),
        ("default", "", "mcp__s__t {}", format!("the rule `mcp__s__t`, {local}")),
        ("default", "", "Agent {}", String::new()),
        ("default", "", "Read read /p/a", String::new()),
    ] {
        assert_eq!(offered(mode, rules, text), expected, "{mode} {rules} {text}");
    }
}

fn hooked(mode: &str, rules: &str, text: &str, verdict: Verdict) -> String {
    let (tool, command, input, effects) = call(text);
    let hook = HookVerdict { verdict, reason: "so".to_owned() };
    let call = Call {
        tool: &tool,
        command: command.as_deref(),
        input: &input,
        effects: &effects,
        hook: Some(&hook),
    };
    format!("{:?}", decide(&call, &book(mode, rules)).verdict).to_lowercase()
}

/// P-2, P-6.
#[test]
fn hooks_restrict_always_and_allow_within_the_rules() {
    for (mode, rules, text, deny, ask, allow) in [
        ("default", "", "Bash make", "deny", "ask", "allow"),
        ("bypassPermissions", "", "Bash make", "deny", "ask", "allow"),
        ("dontAsk", "", "Bash make", "deny", "deny", "allow"),
        ("default", "allow: Bash", "Bash make", "deny", "ask", "allow"),
        ("default", "deny: Bash", "Bash make", "deny", "deny", "deny"),
        ("default", "ask: Bash", "Bash make", "deny", "ask", "ask"),
        ("default", "", "Bash rm -rf /", "deny", "ask", "ask"),
        ("default", "", "Edit write /p/.git/x", "deny", "ask", "ask"),
        ("default", "", "Read read /p/a", "deny", "ask", "allow"),
    ] {
        for (verdict, expected) in [(Verdict::Deny, deny), (Verdict::Ask, ask), (Verdict::Allow, allow)] {
            assert_eq!(hooked(mode, rules, text, verdict), expected, "{mode} {rules} {text} {verdict:?}");
        }
    }
}

/// P-14.
#[test]
fn a_classifier_is_asked_about_what_nobodys_rule_decides() {
    for (mode, rules, text, expected) in [
        ("auto", "", "Bash make", true),
        ("auto", "", "Edit write /p/a", true),
        ("auto", "", "Bash rm -rf /", true),
        ("auto", "", "Read read /p/a", false),
        ("auto", "allow: Bash(make)", "Bash make", false),
        ("auto", "ask: Bash(make)", "Bash make", false),
        ("auto", "deny: Bash(make)", "Bash make", false),
        ("default", "", "Bash make", false),
    ] {
        let book = book(mode, rules);
        assert_eq!(verdict(&book, text).is_for_classifier(book.mode), expected, "{mode} {rules} {text}");
    }
    assert_eq!(Decision::from(Classified::Pass(String::new())).verdict, Verdict::Allow);
    assert_eq!(Decision::from(Classified::Block("no".to_owned())).verdict, Verdict::Deny);
}

#[test]
fn rules_are_told_apart_by_what_they_have_to_do_with_a_call() {
    let book =
        book("default", "allow: Bash(git *) Bash(make) Read(x)\ndeny: Bash(git push *)\nask: Bash(rm *)");
    let show = |text: &str| {
        let (tool, command, input, effects) = call(text);
        let call =
            Call { tool: &tool, command: command.as_deref(), input: &input, effects: &effects, hook: None };
        let rows = fits(&call, &book).into_iter().filter(|(_, fit)| *fit != RuleFit::No);
        rows.map(|(rule, fit)| format!("{} {fit:?}", rule.text())).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(show("Bash git push && make"), "Bash(git push *) Certain, Bash(git *) Part, Bash(make) Part");
    assert_eq!(show("Bash make"), "Bash(make) Certain");
    assert_eq!(show("Read read /p/x"), "Read(x) Certain");
}
