use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use loci_core::tool::ToolContent;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::files::walk::trip_clock::TripClock;
use crate::testing::TestHost;

/// Writes empty files, the first the newest.
fn write(host: &TestHost, names: &[&str]) {
    for (age, name) in names.iter().enumerate() {
        touch(&host.write(name, ""), age);
    }
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

async fn glob(host: &TestHost, pattern: &str) -> String {
    text(&host.call(&Glob::default(), json!({"pattern": pattern})).await).to_owned()
}

#[tokio::test]
async fn files_come_newest_first() {
    let host = TestHost::new();
    write(&host, &["src/b.rs", "a.rs", "src/deep/c.rs", "notes.md", ".hidden/d.rs", ".git/e.rs", ".jj/f.rs"]);
    for (pattern, expected) in [
        ("**/*.rs", "src/b.rs\na.rs\nsrc/deep/c.rs\n.hidden/d.rs"),
        ("*.rs", "src/b.rs\na.rs\nsrc/deep/c.rs\n.hidden/d.rs"),
        ("./*.rs", "a.rs"),
        ("src/*.rs", "src/b.rs"),
        ("src/**/*.rs", "src/b.rs\nsrc/deep/c.rs"),
        ("{src,.hidden}/*.{rs,md}", "src/b.rs\n.hidden/d.rs"),
        ("src/deep/c.rs", "src/deep/c.rs"),
        ("src", "No files found"),
        ("*.py", "No files found"),
        ("missing/**", "No files found"),
        (".git/*", ".git/e.rs"),
    ] {
        assert_eq!(glob(&host, pattern).await, expected, "{pattern}");
    }
}

#[tokio::test]
async fn equal_times_are_sorted_by_path() {
    let host = TestHost::new();
    for name in ["c", "a", "b/a", "b/b"] {
        touch(&host.write(name, ""), 0);
    }
    assert_eq!(glob(&host, "**").await, "a\nb/a\nb/b\nc");
}

#[tokio::test]
async fn the_structured_result_has_the_shape_of_the_format() {
    let host = TestHost::new();
    write(&host, &["b.rs", "a.rs"]);
    let outcome = host.call(&Glob::default(), json!({"pattern": "*.rs"})).await;
    assert_eq!(
        outcome.structured,
        json!({
            "filenames": ["b.rs", "a.rs"],
            "durationMs": 0,
            "numFiles": 2,
            "truncated": false,
            "totalMatches": 2,
            "countIsComplete": true,
        })
    );
}

#[tokio::test]
async fn paths_outside_are_absolute() {
    let host = TestHost::new();
    write(&host, &["sub/a.rs", "../else/b.rs"]);
    let base = host.project().parent().unwrap().to_path_buf();
    let outside = base.join("else/b.rs").display().to_string();
    let project = host.project().display().to_string();
    for (input, expected) in [
        (json!({"pattern": "*.rs", "path": "sub"}), "sub/a.rs"),
        (json!({"pattern": "*.rs", "path": ""}), "sub/a.rs"),
        (json!({"pattern": format!("{project}/**/*.rs")}), "sub/a.rs"),
        (json!({"pattern": "../else/*.rs"}), &outside),
        (json!({"pattern": "*.rs", "path": base.join("else")}), &outside),
        (json!({"pattern": format!("{}/els*/b.rs", base.display()), "path": "sub"}), &outside),
    ] {
        let outcome = host.call(&Glob::default(), input.clone()).await;
        assert_eq!(text(&outcome), expected, "{input}");
    }
}

#[tokio::test]
async fn effects_name_where_the_walk_starts() {
    let host = TestHost::new();
    write(&host, &["sub/a.rs", "../else/b.rs"]);
    symlink("../else", host.project().join("link")).unwrap();
    let (project, outside) = (host.project(), host.project().with_file_name("else"));
    for (input, requested, real) in [
        (json!({"pattern": "*.rs"}), project.clone(), project.clone()),
        (json!({"pattern": "sub/*.rs"}), project.join("sub"), project.join("sub")),
        (json!({"pattern": "*.rs", "path": "sub"}), project.join("sub"), project.join("sub")),
        (json!({"pattern": "link/*.rs"}), project.join("link"), outside.clone()),
        (json!({"pattern": "../../else/*", "path": "sub"}), outside.clone(), outside),
        (json!({"pattern": "/etc/*.conf", "path": "sub"}), "/etc".into(), "/etc".into()),
    ] {
        let effects = Glob::default().effects(&input, &host.workspace());
        assert_eq!(effects, CallEffects::read(PathEffect { requested, real }), "{input}");
    }
    assert!(Glob::default().is_concurrency_safe(&json!({})));
}

#[tokio::test]
async fn environment_variables_decide_on_ignored_and_hidden_files() {
    let files = [".git/HEAD", ".env", "a.log", "b.txt", "mine.tmp"];
    for (name, value, expected) in [
        ("UNRELATED", "", "a.log\nb.txt\nmine.tmp\n.env"),
        ("CLAUDE_CODE_GLOB_NO_IGNORE", "true", "a.log\nb.txt\nmine.tmp\n.env"),
        ("CLAUDE_CODE_GLOB_NO_IGNORE", "false", "b.txt\n.env"),
        ("CLAUDE_CODE_GLOB_HIDDEN", "false", "a.log\nb.txt\nmine.tmp"),
        ("CLAUDE_CODE_GLOB_HIDDEN", "", "a.log\nb.txt\nmine.tmp\n.env"),
    ] {
        let mut host = TestHost::new();
        write(&host, &files);
        touch(&host.project().join(".env"), 9);
        host.write(".gitignore", "*.log\n");
        host.write("../home/.config/git/ignore", "*.tmp\n");
        let vars = host.env().vars.with(name, value);
        host.env_mut().vars = vars;
        assert_eq!(glob(&host, "{.e,a,b,m}*").await, expected, "{name}={value}");
    }
}

#[tokio::test]
async fn at_most_100_files_are_shown() {
    let host = TestHost::new();
    for idx in 0..450 {
        touch(&host.write(&format!("d{}/{idx:04}.rs", idx % 7), ""), idx);
    }
    let outcome = host.call(&Glob::default(), json!({"pattern": "**/*.rs"})).await;
    let lines: Vec<&str> = text(&outcome).lines().collect();
    // A long result may be cut to a preview: what it lacks stands first.
    assert!(lines[0].contains("newest 100 of 450"), "{}", lines[0]);
    assert_eq!((lines.len(), lines[1], lines[2], lines[101]), (102, "", "d0/0000.rs", "d1/0099.rs"));
    for (key, expected) in [
        ("numFiles", json!(100)),
        ("truncated", json!(true)),
        ("totalMatches", json!(450)),
        ("countIsComplete", json!(true)),
    ] {
        assert_eq!(outcome.structured[key], expected, "{key}");
    }
}

#[tokio::test]
async fn symlinks_are_listed_but_not_followed() {
    let host = TestHost::new();
    write(&host, &["dir/a.rs", "../else/b.rs", "../else/secret.rs"]);
    let project = host.project();
    symlink("../else", project.join("outside")).unwrap();
    symlink(".", project.join("dir/loop")).unwrap();
    symlink("../../else/b.rs", project.join("dir/b.rs")).unwrap();
    symlink("../../else/secret.rs", project.join("dir/s.rs")).unwrap();
    symlink("nowhere.rs", project.join("dir/dangling.rs")).unwrap();
    host.denied.lock().unwrap().push(project.with_file_name("else").join("secret.rs"));
    assert_eq!(glob(&host, "**/*.rs").await, "dir/a.rs\ndir/b.rs");
    assert_eq!(glob(&host, "outside/*.rs").await, "outside/b.rs");
}

#[tokio::test]
async fn denied_files_are_left_out() {
    let host = TestHost::new();
    write(&host, &["a.rs", "private/b.rs", "c.rs"]);
    host.denied.lock().unwrap().extend([host.project().join("private"), host.project().join("c.rs")]);
    assert_eq!(glob(&host, "**/*.rs").await, "a.rs");
    assert_eq!(glob(&host, "private/*.rs").await, "No files found");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn trees_of_the_kernel_are_entered_only_by_name() {
    let host = TestHost::new();
    assert_eq!(glob(&host, "/proc/version").await, "/proc/version");
    assert_eq!(glob(&host, "/pro*/version").await, "No files found");
}

#[tokio::test]
async fn file_names_that_are_not_utf8_are_listed() {
    let host = TestHost::new();
    std::fs::write(host.project().join(OsStr::from_bytes(b"b\xffd.rs")), "").unwrap();
    assert_eq!(glob(&host, "*.rs").await, "b\u{fffd}d.rs");
}

#[tokio::test]
async fn invalid_glob_input_is_refused() {
    let host = TestHost::new();
    write(&host, &["file"]);
    for (input, needle) in [
        (json!({"pattern": "a\0b"}), "NUL"),
        (json!({"pattern": "*", "path": "a\0b"}), "NUL"),
        (json!({"pattern": "a["}), "unclosed"),
        (json!({"pattern": "{a,b"}), "unclosed"),
        (json!({"pattern": ""}), "empty"),
        (json!({"pattern": "*", "path": "missing"}), "Directory does not exist: "),
        (json!({"pattern": "*", "path": "file"}), "not a directory"),
        (json!({"pattern": "*", "limit": 3}), "limit"),
        (json!({}), "pattern"),
    ] {
        let outcome = host.call(&Glob::default(), input.clone()).await;
        assert!(outcome.is_failure() && text(&outcome).starts_with("<tool_use_error>"), "{input}");
        assert!(text(&outcome).contains(needle), "{input}: {}", text(&outcome));
    }
}

#[tokio::test]
async fn out_of_time_is_partial_or_an_error() {
    let (mut n_errors, mut n_partial, mut n_whole) = (0, 0, 0);
    let mut host = TestHost::new();
    write(&host, &["a.rs", "b.rs", "c.rs", "d.rs"]);
    for trip in 1..16 {
        host.env_mut().clock = Arc::new(TripClock::jump(trip, Duration::from_secs(20)));
        let outcome = host.call(&Glob::default(), json!({"pattern": "*.rs"})).await;
        let n_files = outcome.structured["numFiles"].as_u64();
        if outcome.is_failure() {
            assert!(text(&outcome).contains("in 20 s: nothing was found"), "{}", text(&outcome));
            n_errors += 1;
        } else if outcome.structured["countIsComplete"] == json!(false) {
            assert_eq!(outcome.structured["truncated"], json!(true));
            assert!(text(&outcome).contains("Partial result"), "{}", text(&outcome));
            n_partial += 1;
        } else {
            assert_eq!(n_files, Some(4));
            n_whole += 1;
        }
    }
    assert!(n_errors > 0 && n_partial > 0 && n_whole > 0, "{n_errors} {n_partial} {n_whole}");
}

#[tokio::test]
async fn a_cancelled_search_ends() {
    let host = TestHost::new();
    write(&host, &["a.rs"]);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = host.call_with(&Glob::default(), json!({"pattern": "*"}), cancel).await;
    assert!(outcome.is_failure() && text(&outcome).contains("interrupted"), "{}", text(&outcome));
}
