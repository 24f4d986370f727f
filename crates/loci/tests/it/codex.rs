//! Sessions of Codex beside our own: listed, shown, searched, imported and continued.

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect;
use loci_testkit::{Binary, Step};
use serde_json::{Value, json};

use crate::support::{World, assert_calls_answered, assert_fine, loci};

/// The threads of the fixtures.
const TOOLS: &str = "01a1e2da-a003-7b72-b3ac-04414afcfe97";
const COMPACTED: &str = "01a1e2da-dfac-7992-b3a5-8f7b6a9bea9e";

fn sessions<const N: usize>(args: [&str; N]) -> Binary {
    loci().arg("sessions").args(args).env("TZ", "UTC")
}

fn json_of<const N: usize>(world: &World, args: [&str; N]) -> Value {
    let output = world.run(&sessions(args).arg("--json"));
    assert_fine(&output);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Puts a rollout where Codex would, about the project of the world.
fn put(world: &World, fixture: &str, id: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rollouts").join(fixture);
    let text = fs::read_to_string(path).unwrap();
    let text = text.replace("/home/dev/project", &world.home.project().display().to_string());
    let name = format!(".codex/sessions/2026/11/16/rollout-2026-11-16T05-00-00-{id}.jsonl");
    world.home.write_home(name, text)
}

fn ids(list: &Value) -> Vec<(&str, &Value)> {
    let sessions = list.as_array().unwrap().iter();
    sessions.map(|session| (session["sessionId"].as_str().unwrap(), &session["origin"])).collect()
}

/// Invariant 10 of `docs/design/index.md`.
#[tokio::test]
async fn a_codex_session_is_listed_searched_and_shown() {
    let world = World::new([]).await;
    let file = put(&world, "tools.jsonl", TOOLS);
    let before = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap().modified().unwrap());
    assert_eq!(ids(&json_of(&world, ["list"])), [(TOOLS, &json!("codex"))]);
    assert_eq!(ids(&json_of(&world, ["list", "--all", "--origin", "codex"])), [(TOOLS, &json!("codex"))]);
    assert_eq!(ids(&json_of(&world, ["list", "--origin", "own"])), []);
    assert_eq!(ids(&json_of(&world, ["list", "--project", "/"])), []);
    let text = world.run(&sessions(["list"])).stdout;
    assert!(text.contains("[codex] What does the README say?"), "{text}");

    let found = json_of(&world, ["search", "48213", "--role", "assistant"]);
    let hit = &found["hits"][0];
    assert_eq!((&hit["origin"], &hit["sessionId"]), (&json!("codex"), &json!(TOOLS)), "{found}");
    assert_eq!(hit["resume"], format!("loci sessions import {TOOLS} && loci -r {TOOLS}"));
    assert_eq!(json_of(&world, ["search", "48213", "--project", "."])["found"]["number"], 3);
    assert_eq!(json_of(&world, ["search", "48213", "--project", "/"])["found"]["number"], 0);
    let text = world.run(&sessions(["search", "48213"])).stdout;
    assert!(text.contains("  (codex)\n"), "{text}");

    let shown = world.run(&sessions(["show", TOOLS]));
    assert_fine(&shown);
    for needle in
        ["Of: Codex\n", "## You", "  > Bash {\"command\":\"cat README.md\"}", "  ! ls: cannot access"]
    {
        assert!(shown.stdout.contains(needle), "{needle}: {}", shown.stdout);
    }
    assert_eq!(world.run(&sessions(["show", &file.display().to_string()])).stdout, shown.stdout);
    let raw = world.run(&sessions(["show", TOOLS, "--raw"])).stdout;
    assert_eq!(raw.as_bytes(), before.0);
    assert!(world.run(&sessions(["export", TOOLS])).stdout.contains("You are welcome."));
    assert_eq!((fs::read(&file).unwrap(), fs::metadata(&file).unwrap().modified().unwrap()), before);
}

#[tokio::test]
async fn an_imported_session_goes_on() {
    let world = World::new([Step::text("It was 48213.")]).await;
    put(&world, "tools.jsonl", TOOLS);
    let refused = world.print(["Which port was it?", "-r", TOOLS]);
    let hint = format!("loci sessions import {TOOLS}");
    assert!(refused.code == Some(1) && refused.stderr.contains(&hint), "{refused:?}");

    let imported = json_of(&world, ["import", TOOLS]);
    assert_eq!((&imported["sessionId"], &imported["leftOut"]), (&json!(TOOLS), &json!(0)), "{imported}");
    assert_eq!(imported["resume"], format!("loci -r {TOOLS}"));
    assert_fine(&world.run(&loci().args(["-p", "Which port was it?", "-r", TOOLS])));
    expect![[r#"
        user: What does the README say?
        assistant: I will look at the file first.
        assistant: Bash {"command":"cat README.md"} call_e38851c2aec9
        user: call_e38851c2aec9: Chunk ID: bc2f24
        Wall time: 0.0000 seconds
        Process exited with code 0
        Original token count: 2
        Output:
        # Hello

        assistant: Bash {"command":"cd / && ls /nowhere-at-all"} call_35a885d65afc
        assistant: Bash {"command":"echo staging port 48213"} call_27c6259b6720
        user: call_35a885d65afc error: Chunk ID: 324e52
        Wall time: 0.0000 seconds
        Process exited with code 2
        Original token count: 16
        Output:
        ls: cannot access '/nowhere-at-all': No such file or directory

        user: call_27c6259b6720: Chunk ID: 98acd9
        Wall time: 0.0057 seconds
        Process exited with code 0
        Original token count: 5
        Output:
        staging port 48213

        assistant: The README says Hello, and the staging port is 48213.
        user: Thank you
        assistant: You are welcome.
        user: Which port was it?
    "#]]
    .assert_eq(&world.conversation());
    let model = world.last_request().json["model"].clone();
    assert!(model.as_str().unwrap().starts_with("claude-"), "{model}");
    assert_calls_answered(&world.home.only_session());

    assert_eq!(ids(&json_of(&world, ["list"])), [(TOOLS, &Value::Null)], "nothing is listed twice");
    let hits = json_of(&world, ["search", "cat README.md"]);
    assert_eq!(hits["found"]["number"], 1, "nothing is found twice: {hits}");
    let again = world.run(&sessions(["import", TOOLS]));
    assert!(again.code == Some(1) && again.stderr.contains("--again"), "{again:?}");
    let copy = json_of(&world, ["import", TOOLS, "--again"]);
    assert_ne!(copy["sessionId"], TOOLS);
    // What was paid for elsewhere is not counted here.
    let stats = world.run(&loci().args(["stats", "--json"]));
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    assert_eq!((&stats["sessions"], &stats["turns"]), (&json!(1), &json!(1)), "{stats}");
}

#[tokio::test]
async fn what_codex_summarised_is_sent_as_a_summary() {
    let world = World::new([Step::text("Heron and gull.")]).await;
    let file = put(&world, "compacted.jsonl", COMPACTED);
    let output = world.run(&sessions(["import", &file.display().to_string()]));
    assert_eq!((output.code, output.stdout.trim()), (Some(0), COMPACTED), "{output:?}");
    assert_fine(&world.print(["Again, please", "-c"]));
    expect![[r#"
        user: The conversation was compacted in Codex. The summary:

        elided:
        Two.

        What the user said, word for word:

        Remember the word heron.

        And the word gull.
        user: Which words?
        assistant: One.
        user: Again, please
    "#]]
    .assert_eq(&world.conversation());
}

/// As `zstd` compresses it.
/// Invariant 10 of `docs/design/index.md`.
#[tokio::test]
async fn a_compressed_codex_session_is_listed_searched_shown_and_imported() {
    let world = World::new([]).await;
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rollouts");
    let bytes = fs::read(fixtures.join("tools.jsonl.zst")).unwrap();
    let name = format!(".codex/sessions/2026/11/16/rollout-2026-11-16T05-00-00-{TOOLS}.jsonl.zst");
    let file = world.home.write_home(name, bytes);
    assert_eq!(ids(&json_of(&world, ["list", "--all"])), [(TOOLS, &json!("codex"))]);
    assert_eq!(json_of(&world, ["search", "48213"])["found"]["number"], 3);
    let raw = world.run(&sessions(["show", "--raw", TOOLS]));
    assert_eq!(raw.stdout, fs::read_to_string(fixtures.join("tools.jsonl")).unwrap());
    let by_path = world.run(&sessions(["show", &file.display().to_string()]));
    assert_fine(&by_path);
    assert!(by_path.stdout.contains("What does the README say?"), "{by_path:?}");
    let imported = world.run(&sessions(["import", TOOLS]));
    assert_eq!((imported.code, imported.stdout.trim_end()), (Some(0), TOOLS), "{imported:?}");
    assert_eq!(ids(&json_of(&world, ["list", "--all"])), [(TOOLS, &Value::Null)]);
}

#[tokio::test]
async fn broken_rollout_is_reported() {
    let world = World::new([]).await;
    let broken = world.home.write("broken.jsonl", "{\"type\":\"session_meta\",\"payload\":{\"id\":7}}\n");
    let packed = world.home.write("x.jsonl.zst", "x");
    let other = world.home.write("notes.jsonl", "{\"a\":1}\n");
    let path = |path: &Path| path.display().to_string();
    for (name, needles) in [
        (path(&broken), ["Not a Codex session", "session_meta"]),
        (path(&packed), ["Failed to read", "x.jsonl.zst"]),
        (path(&other), ["No Codex session found", "list --all --origin codex"]),
        (TOOLS.to_owned(), ["No Codex session found", ".codex"]),
        ("missing.jsonl".to_owned(), ["Failed to read", "missing.jsonl"]),
    ] {
        let output = world.run(&sessions(["import", &name]));
        let said = needles.iter().all(|needle| output.stderr.contains(needle));
        assert!(output.code == Some(1) && said, "{name}: {output:?}");
    }
    assert!(world.home.sessions().is_empty());
}
