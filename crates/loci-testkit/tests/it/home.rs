//! Temporary homes and projects.

use loci_testkit::{Normaliser, TestHome};
use serde_json::json;
use std::path::PathBuf;

#[test]
fn test_home_begins_empty_and_is_removed() {
    let home = TestHome::new();
    assert!(home.config_home().is_dir() && home.project().is_dir());
    assert!(!home.project().join(".git").exists());
    assert!(home.sessions().is_empty());
    let root = home.home().parent().unwrap().to_owned();
    drop(home);
    assert!(!root.exists());
}

#[test]
fn commits_are_the_same_in_every_run() {
    let hash = |home: &TestHome| home.git(&["rev-parse", "HEAD"]);
    let (one, two) = (TestHome::with_git(), TestHome::with_git());
    assert_eq!(hash(&one), hash(&two));
    assert_eq!(one.git(&["status", "--porcelain"]), "");
    assert_eq!(one.git(&["log", "--format=%an %at %s"]), "Test 1767323045 first commit\n");
    one.write("src/a.rs", "fn a() {}\n");
    one.commit("second commit");
    assert_ne!(hash(&one), hash(&two));
}

#[test]
fn git_sees_no_configuration_but_the_project_s() {
    let home = TestHome::with_git();
    home.write_home(".gitconfig", "[user]\n\tname = Stranger\n");
    let origins = home.git(&["config", "--list", "--show-origin"]);
    assert!(origins.lines().all(|it| it.starts_with("file:.git/config")), "{origins}");
}

#[test]
fn test_home_finds_and_reads_sessions() {
    let home = TestHome::new();
    let session = home.write_config("projects/-p/b.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    assert_eq!(home.only_session(), [json!({"n": 1}), json!({"n": 2})]);
    let agent = home.write_config("projects/-p/b/subagents/agent-a.jsonl", "");
    home.write_config("projects/-p/notes.txt", "");
    assert_eq!(home.sessions(), [agent, session]);
}

#[test]
fn test_home_sets_few_variables() {
    let home = TestHome::new();
    let vars = home.env_vars("http://127.0.0.1:1");
    assert_eq!(vars["HOME"], home.home().display().to_string());
    assert_eq!(vars["ANTHROPIC_BASE_URL"], "http://127.0.0.1:1");
    assert_eq!(vars["ANTHROPIC_API_KEY"], "sk-ant-test");
    let is_expected = |key: &String| key.starts_with("GIT_") || key.starts_with("ANTHROPIC_");
    let rest: Vec<&String> = vars.keys().filter(|it| !is_expected(it)).collect();
    // What a session would ask the model for on its own account is off, unless a test is about it.
    let quiet = ["LOCI_MEMORY_EXTRACTION", "LOCI_PREPARE_SUMMARY", "LOCI_SESSION_MEMORY"];
    assert_eq!(rest, [&["HOME", "LANG", "LOCI_DRAIN_MS"], &quiet[..], &["PATH"]].concat());
    assert!(quiet.iter().all(|name| vars[*name] == "0"));
}

#[test]
fn paths_of_the_home_become_placeholders() {
    let home = TestHome::new();
    let path: PathBuf = home.write("a/b.txt", "text");
    assert_eq!(home.read("a/b.txt"), "text");
    let text = format!("{} in {}", path.display(), home.config_home().display());
    assert_eq!(Normaliser::of(&home).text(&text), "<project>/a/b.txt in <home>/.claude");
}
