//! Running programs under a test home; a shell stands in for the binary.

use loci_testkit::{Binary, TestHome};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

fn shell(script: &str) -> Binary {
    Binary::new("/bin/sh").args(["-c", script])
}

#[test]
fn run_returns_code_and_output() {
    let home = TestHome::new();
    let cases = [
        ("cat; echo loud >&2; exit 3", "in", "in", "loud\n", Some(3), None),
        ("true", "input nobody reads", "", "", Some(0), None),
        ("kill -TERM $$", "", "", "", None, Some(15)),
    ];
    for (script, stdin, stdout, stderr, code, signal) in cases {
        let output = shell(script).run(&home, "http://x", stdin);
        let seen = (output.stdout.as_str(), output.stderr.as_str(), output.code, output.signal);
        assert_eq!(seen, (stdout, stderr, code, signal), "{script}");
    }
}

#[test]
fn input_and_output_may_be_larger_than_a_pipe() {
    let text = "0123456789abcde\n".repeat(20_000);
    let output = shell("cat; cat /dev/null >&2").run(&TestHome::new(), "http://x", &text);
    assert_eq!(output.stdout.len(), text.len());
}

#[test]
fn surroundings_are_those_of_the_home() {
    let home = TestHome::new();
    let script = "pwd; echo $HOME $ANTHROPIC_BASE_URL $EXTRA; env | grep -c CARGO";
    let output = shell(script).env("EXTRA", "more").run(&home, "http://x", "");
    let (project, home) = (home.project(), home.home());
    assert_eq!(output.stdout, format!("{}\n{} http://x more\n0\n", project.display(), home.display()));
}

#[test]
fn json_lines_are_parsed() {
    let output = shell(r#"echo '{"n":1}'; echo '[2]'"#).run(&TestHome::new(), "http://x", "");
    assert_eq!(output.json_lines(), [json!({"n": 1}), json!([2])]);
}

#[test]
fn time_limit_kills_the_run_and_says_so() {
    let run = || {
        let binary = shell("echo started; exec sleep 1000").limit(Duration::from_millis(100));
        binary.run(&TestHome::new(), "http://x", "")
    };
    let message = *catch_unwind(AssertUnwindSafe(run)).unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("still running") && message.contains("started"), "{message}");
}

#[test]
fn a_session_talks_line_by_line() {
    let script = r#"while read line; do echo "noise"; echo "{\"heard\":\"$line\"}"; done; echo end"#;
    let mut session = shell(script).start(&TestHome::new(), "http://x");
    session.write_line("one");
    assert_eq!(session.wait_for_json(|it| it["heard"] == "one"), json!({"heard": "one"}));
    session.write_line("two");
    assert_eq!(session.next_line().as_deref(), Some("noise"));
    let output = session.finish();
    assert_eq!((output.stdout.lines().count(), output.code), (5, Some(0)));
    assert!(output.stdout.ends_with("end\n"));
}

#[test]
fn a_session_takes_signals() {
    // Not SIGINT: a shell that was started in the background may be unable to trap it.
    let script = "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let mut session = shell(script).start(&TestHome::new(), "http://x");
    assert_eq!(session.next_line().as_deref(), Some("ready"));
    session.terminate();
    assert_eq!(session.next_line().as_deref(), Some("caught"));
    assert_eq!(session.next_line(), None);
    assert_eq!(session.finish().code, Some(7));
}

#[test]
fn a_crash_is_a_kill() {
    let mut session = shell("echo ready; exec sleep 1000").start(&TestHome::new(), "http://x");
    session.next_line();
    let output = session.crash();
    assert_eq!((output.stdout.as_str(), output.signal), ("ready\n", Some(9)));
}
