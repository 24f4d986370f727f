use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use loci_core::tool::{PathEffect, ToolContent};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::files::walk::trip_clock::TripClock;
use crate::testing::TestHost;

mod limits;
mod swapped;
mod which_files;

/// Writes files, the first the newest.
fn project(files: &[(&str, &str)]) -> TestHost {
    let host = TestHost::new();
    for (age, (name, content)) in files.iter().enumerate() {
        touch(&host.write(name, content), age);
    }
    host
}

fn touch(path: &Path, age: usize) {
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

fn text(outcome: &ToolOutcome) -> &str {
    match &outcome.content {
        ToolContent::Text(text) => text,
        ToolContent::Blocks(_) => panic!("blocks"),
    }
}

async fn grep(host: &TestHost, input: Value) -> String {
    text(&host.call(&Grep::default(), input).await).to_owned()
}

async fn check(host: &TestHost, input: Value, expected: &str) {
    assert_eq!(grep(host, input.clone()).await, expected, "{input}");
}

fn small() -> TestHost {
    project(&[
        ("src/main.rs", "fn main() {\n    run();\n}\n\nfn run() {\n    todo!()\n}\n"),
        ("lib.rs", "pub fn run() {}\n"),
        ("notes.md", "run, Run, RUN\n"),
    ])
}

#[tokio::test]
async fn files_are_listed_newest_first() {
    let host = small();
    check(&host, json!({"pattern": "run"}), "Found 3 files\nsrc/main.rs\nlib.rs\nnotes.md").await;
    check(&host, json!({"pattern": "todo"}), "Found 1 file\nsrc/main.rs").await;
    check(&host, json!({"pattern": "absent"}), "No files found").await;
    let outcome = host.call(&Grep::default(), json!({"pattern": "fn run"})).await;
    assert_eq!(
        outcome.structured,
        json!({"mode": "files_with_matches", "filenames": ["src/main.rs", "lib.rs"], "numFiles": 2})
    );
    assert_eq!(outcome.is_error, None);
}

#[tokio::test]
async fn content_shows_lines() {
    let host = small();
    for (options, expected) in [
        (json!({}), "src/main.rs:2:    run();\nsrc/main.rs:5:fn run() {\nlib.rs:1:pub fn run() {}"),
        (json!({"-n": false}), "src/main.rs:    run();\nsrc/main.rs:fn run() {\nlib.rs:pub fn run() {}"),
        (json!({"-o": true}), "src/main.rs:2:run()\nsrc/main.rs:5:run()\nlib.rs:1:run()"),
        (json!({"-o": true, "-C": 3}), "src/main.rs:2:run()\nsrc/main.rs:5:run()\nlib.rs:1:run()"),
        (json!({"path": "lib.rs"}), "lib.rs:1:pub fn run() {}"),
        (json!({"path": "src"}), "src/main.rs:2:    run();\nsrc/main.rs:5:fn run() {"),
    ] {
        let mut input = json!({"pattern": "run\\(\\)", "output_mode": "content"});
        input.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        check(&host, input, expected).await;
    }
    let input = json!({"pattern": "todo", "output_mode": "content"});
    let outcome = host.call(&Grep::default(), input).await;
    assert_eq!(
        outcome.structured,
        json!({
            "mode": "content",
            "numFiles": 0,
            "filenames": [],
            "content": "src/main.rs:6:    todo!()",
            "numLines": 1,
        })
    );
    check(&host, json!({"pattern": "absent", "output_mode": "content"}), "No matches found").await;
}

#[tokio::test]
async fn context_comes_in_groups() {
    let host = project(&[("a", "1\n2 x\n3\n4\n5\n6\n7 x\n8\n"), ("b", "1\n2\n3 x\n")]);
    for (options, expected) in [
        (json!({"-A": 1}), "a:2:2 x\na-3-3\n--\na:7:7 x\na-8-8\n--\nb:3:3 x"),
        (json!({"-B": 1}), "a-1-1\na:2:2 x\n--\na-6-6\na:7:7 x\n--\nb-2-2\nb:3:3 x"),
        (json!({"-C": 1, "path": "b"}), "b-2-2\nb:3:3 x"),
        (json!({"context": 1, "path": "b"}), "b-2-2\nb:3:3 x"),
        (json!({"context": 1, "-B": 0, "path": "a"}), "a:2:2 x\na-3-3\n--\na:7:7 x\na-8-8"),
        (json!({"-C": 2, "path": "a"}), "a-1-1\na:2:2 x\na-3-3\na-4-4\na-5-5\na-6-6\na:7:7 x\na-8-8"),
        (json!({"-A": 1, "-n": false, "path": "b"}), "b:3 x"),
        (json!({"-C": i64::MAX, "path": "b"}), "b-1-1\nb-2-2\nb:3:3 x"),
        (json!({"-B": "1", "-n": "false", "path": "b"}), "b-2\nb:3 x"),
    ] {
        let mut input = json!({"pattern": "x", "output_mode": "content"});
        input.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        check(&host, input, expected).await;
    }
    // Context means nothing to the other modes.
    check(&host, json!({"pattern": "x", "-C": 1}), "Found 2 files\na\nb").await;
}

#[tokio::test]
async fn counts_have_a_total() {
    let host = project(&[("a", "x x\nx\ny\n"), ("b", "x\n"), ("c", "y\n")]);
    let count = |options: Value| {
        let mut input = json!({"pattern": "x", "output_mode": "count"});
        input.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        input
    };
    check(&host, count(json!({})), "a:2\nb:1\n\nFound 3 matching lines in 2 files").await;
    check(&host, count(json!({"-o": true})), "a:3\nb:1\n\nFound 4 matches in 2 files").await;
    check(&host, count(json!({"path": "b"})), "b:1\n\nFound 1 matching line in 1 file").await;
    check(&host, json!({"pattern": "z", "output_mode": "count"}), "No matches found").await;
    let outcome = host.call(&Grep::default(), count(json!({"head_limit": 1}))).await;
    assert_eq!(
        text(&outcome),
        "a:2\n\nFound 3 matching lines in 2 files\n\n\
         (Files 1-1 shown, more follow. Continue with offset 1, or see all with head_limit 0.)"
    );
    assert_eq!(
        outcome.structured,
        json!({
            "mode": "count",
            "numFiles": 2,
            "filenames": [],
            "content": "a:2",
            "numMatches": 3,
            "appliedLimit": 1,
        })
    );
}

#[tokio::test]
async fn case_is_ignored_on_demand() {
    let host = small();
    for (ignore_case, expected) in
        [(false, "notes.md:1:RUN"), (true, "notes.md:1:run\nnotes.md:1:Run\nnotes.md:1:RUN")]
    {
        let input = json!({"pattern": "RUN", "-i": ignore_case, "-o": true, "output_mode": "content", "path": "notes.md"});
        check(&host, input, expected).await;
    }
}

#[tokio::test]
async fn multiline_spans_lines() {
    let host = project(&[("a", "begin {\n  one\n}\nbetween\nbegin {\n  two\n} end\n")]);
    let pattern = "begin \\{.*?\\}";
    check(&host, json!({"pattern": pattern}), "No files found").await;
    for (options, expected) in [
        (json!({}), "a:1:begin {\na:2:  one\na:3:}\na:5:begin {\na:6:  two\na:7:} end"),
        (json!({"-o": true}), "a:1:begin {\na:2:  one\na:3:}\na:5:begin {\na:6:  two\na:7:}"),
        (
            json!({"-A": 1, "head_limit": 4}),
            "a:1:begin {\na:2:  one\na:3:}\na-4-between\n\n\
          (Lines 1-4 shown, more follow. Continue with offset 4, or see all with head_limit 0.)",
        ),
        (json!({"output_mode": "count"}), "a:2\n\nFound 2 matches in 1 file"),
        (json!({"output_mode": "files_with_matches"}), "Found 1 file\na"),
    ] {
        let mut input = json!({"pattern": pattern, "output_mode": "content", "multiline": true});
        input.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        check(&host, input, expected).await;
    }
}

#[tokio::test]
async fn anchors_know_windows_line_ends() {
    let host = project(&[("a", "one;\r\ntwo\r\n"), ("b", "one;\n")]);
    for (pattern, expected) in [
        (";$", "a:1:one;\nb:1:one;"),
        ("^two$", "a:2:two"),
        (";\\r", "a:1:one;"),
        ("e;.*", "a:1:one;\nb:1:one;"),
    ] {
        check(&host, json!({"pattern": pattern, "output_mode": "content"}), expected).await;
    }
}

#[tokio::test]
async fn pages_follow_one_another() {
    let lines: String = (1..=7).map(|n| format!("{n}\n")).collect();
    let host = project(&[("a", &lines), ("b", "8\n9\n")]);
    let more = |from: usize, to: usize| {
        format!(
            "\n\n(Lines {from}-{to} shown, more follow. Continue with offset {to}, or see all with head_limit 0.)"
        )
    };
    for (limit, offset, expected) in [
        (2, 0, format!("1\n2{}", more(1, 2))),
        (2, 2, format!("3\n4{}", more(3, 4))),
        (2, 7, "8\n9".to_owned()),
        (2, 8, "9".to_owned()),
        (2, 9, "No entries at this offset: the result has 9 lines in all.".to_owned()),
        (9, 0, "1\n2\n3\n4\n5\n6\n7\n8\n9".to_owned()),
        (0, 5, "6\n7\n8\n9".to_owned()),
    ] {
        let input = json!({
            "pattern": "\\d", "output_mode": "content", "-n": false, "head_limit": limit, "offset": offset,
        });
        let shown = grep(&host, input).await.replace("a:", "").replace("b:", "");
        assert_eq!(shown, expected, "{limit} {offset}");
    }
    let outcome = host.call(&Grep::default(), json!({"pattern": "\\d", "head_limit": 1, "offset": 0})).await;
    assert_eq!(
        outcome.structured,
        json!({"mode": "files_with_matches", "filenames": ["a"], "numFiles": 1, "appliedLimit": 1})
    );
    let outcome = host.call(&Grep::default(), json!({"pattern": "\\d", "offset": 5})).await;
    assert_eq!(text(&outcome), "No entries at this offset: the result has 2 files in all.");
    assert_eq!(
        outcome.structured,
        json!({"mode": "files_with_matches", "filenames": [], "numFiles": 0, "appliedOffset": 5})
    );
}

#[tokio::test]
async fn the_default_limit_is_250_and_zero_is_none() {
    let host = project(&[("a", &"x\n".repeat(300))]);
    for (input, expected) in [
        (json!({}), 250),
        (json!({"head_limit": 0}), 300),
        (json!({"head_limit": 299}), 299),
        (json!({"head_limit": 300}), 300),
    ] {
        let mut call = json!({"pattern": "x", "output_mode": "content"});
        call.as_object_mut().unwrap().extend(input.as_object().unwrap().clone());
        let outcome = host.call(&Grep::default(), call).await;
        assert_eq!(outcome.structured["numLines"], json!(expected), "{input}");
        assert_eq!(outcome.structured.get("appliedLimit").is_some(), expected < 300, "{input}");
    }
}

#[tokio::test]
async fn long_lines_are_cut_around_the_match() {
    let host = project(&[("a", &format!("{}needle{}\n", "x".repeat(9_000), "y".repeat(9_000)))]);
    let shown = grep(&host, json!({"pattern": "needle", "output_mode": "content"})).await;
    assert!(shown.contains("xneedley") && shown.chars().count() < 560, "{shown}");
    let shown = grep(&host, json!({"pattern": "x+", "output_mode": "content", "-o": true})).await;
    assert_eq!(shown, format!("a:1:{} […] (cut: 9000 bytes)", "x".repeat(500)));
}

#[tokio::test]
async fn invalid_grep_input_is_refused() {
    let host = small();
    rustix::fs::mkfifoat(rustix::fs::CWD, host.project().join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    for (input, needle) in [
        (json!({"pattern": "a("}), "unclosed group"),
        (json!({"pattern": "(?=a)"}), "look-around"),
        (json!({"pattern": "a\\nb"}), "Set `multiline`"),
        (json!({"pattern": "a", "glob": "a["}), "`glob` is not valid"),
        (json!({"pattern": "a", "type": "rs"}), "Did you mean `rust`"),
        (json!({"pattern": "a", "path": "missing"}), "Path does not exist: "),
        (json!({"pattern": "a", "path": "missing"}), "Note: your current working directory is "),
        (json!({"pattern": "a", "path": "a\0"}), "NUL"),
        (json!({"pattern": "a", "path": "pipe"}), "neither a file nor a directory"),
        (json!({"pattern": "a", "output_mode": "lines"}), "output_mode"),
        (json!({"pattern": "a", "-A": -1}), "-A"),
        (json!({"pattern": "a", "word": true}), "word"),
        (json!({}), "pattern"),
    ] {
        let outcome = host.call(&Grep::default(), input.clone()).await;
        assert!(outcome.is_failure() && text(&outcome).starts_with("<tool_use_error>"), "{input}");
        assert!(text(&outcome).contains(needle), "{input}: {}", text(&outcome));
    }
    // A dash in front is no option here.
    check(&host, json!({"pattern": "-> |--x"}), "No files found").await;
}

#[tokio::test]
async fn effects_name_the_root() {
    let host = small();
    symlink("src", host.project().join("link")).unwrap();
    let project = host.project();
    for (input, requested, real) in [
        (json!({"pattern": "x"}), project.clone(), project.clone()),
        (json!({"pattern": "x", "path": ""}), project.clone(), project.clone()),
        (json!({"pattern": "x", "path": "link"}), project.join("link"), project.join("src")),
        (json!({"pattern": "x", "path": "/etc/../usr"}), "/usr".into(), "/usr".into()),
    ] {
        let effects = Grep::default().effects(&input, &host.workspace());
        assert_eq!(effects, CallEffects::read(PathEffect { requested, real }), "{input}");
    }
    let tool = Grep::default();
    assert!(tool.is_concurrency_safe(&json!({})));
    assert_eq!(tool.descriptor().max_result_chars, Some(20_000));
}
