//! `loci sessions`: every verb on sessions that the binary itself made.

use crate::support::{World, assert_fine, loci, print};
use expect_test::{Expect, expect};
use loci_testkit::{Binary, Output, Step};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// `loci sessions` with these arguments, in a zone that every machine knows.
fn sessions<const N: usize>(args: [&str; N]) -> Binary {
    loci().arg("sessions").args(args).env("TZ", "UTC")
}

/// Runs a verb that must go well and returns its JSON.
fn json_of<const N: usize>(world: &World, args: [&str; N]) -> Value {
    let output = world.run(&sessions(args).arg("--json"));
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

fn id_of(file: &Path) -> String {
    file.file_stem().unwrap().to_str().unwrap().to_owned()
}

fn only_id(world: &World) -> String {
    id_of(&world.home.sessions()[0])
}

/// A project with one session of two turns: a call, then words.
async fn two_turns() -> World {
    let world = World::with_git([]).await;
    let notes = world.path("notes.txt");
    world.home.write("notes.txt", "port = 80\n");
    let world = world
        .then([
            Step::call("Read", json!({"file_path": notes})),
            Step::text("The port is <b>80</b>."),
            Step::text("Nothing else."),
        ])
        .await;
    assert_fine(&world.print(["What is the port?", "-n", "Ports"]));
    assert_fine(&world.print(["And what else?", "-c"]));
    world
}

/// Compares what a verb printed, with ids, paths and times replaced.
fn check(world: &World, output: &Output, expected: &Expect) {
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    expected.assert_eq(&without_minutes(&world.normaliser().text(&output.stdout)));
}

/// Replaces minutes such as `2026-01-02 03:04`.
fn without_minutes(text: &str) -> String {
    let is_minute = |word: &[char]| {
        word.iter()
            .zip("dddd-dd-dd dd:dd".chars())
            .all(|(c, p)| if p == 'd' { c.is_ascii_digit() } else { *c == p })
    };
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::new();
    let mut at = 0;
    while at < chars.len() {
        if chars.len() - at >= 16 && is_minute(&chars[at..at + 16]) {
            out.push_str("<minute>");
            at += 16;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

#[tokio::test]
async fn a_list_says_what_each_session_is_about() {
    let world = two_turns().await;
    let listed = json_of(&world, ["list"]);
    let [session] = listed.as_array().unwrap().as_slice() else { panic!("{listed}") };
    for (key, value) in [
        ("sessionId", json!(only_id(&world))),
        ("title", json!("Ports")),
        ("summary", json!("Ports")),
        ("firstPrompt", json!("What is the port?")),
        ("lastPrompt", json!("And what else?")),
        ("gitBranch", json!("main")),
        ("cwd", json!(world.home.project())),
        ("messages", json!(6)),
        ("messagesAreExact", json!(true)),
        ("entrypoint", json!("sdk-cli")),
        ("path", json!(world.home.sessions()[0])),
        ("tag", Value::Null),
    ] {
        assert_eq!(session[key], value, "{key}");
    }
    assert!(session["costUsd"].as_f64().unwrap() > 0.0);
    let table = world.run(&sessions(["list"])).stdout;
    assert!(table.starts_with("SESSION") && table.contains("main    Ports · What is the port?"), "{table}");
    let elsewhere = world.run(&sessions(["list"]).cwd(world.home.home()));
    assert_eq!((elsewhere.code, elsewhere.stdout.as_str()), (Some(0), ""));
    assert!(elsewhere.stderr.contains("loci sessions list --all"), "{elsewhere:?}");
    let all = world.run(&sessions(["list", "--all", "--json"]).cwd(world.home.home()));
    assert_eq!(serde_json::from_str::<Value>(&all.stdout).unwrap(), listed);
    let named = world.run(&sessions(["list", "--json", "--project"]).arg(world.path("")).cwd("/"));
    assert_eq!(serde_json::from_str::<Value>(&named.stdout).unwrap(), listed);
}

#[tokio::test]
async fn show_prints_the_conversation() {
    let world = two_turns().await;
    let output = world.run(&sessions(["show", "Ports"]));
    let (facts, told) = output.stdout.split_once("\n\n").unwrap();
    for fact in ["Title: Ports", "Directory: ", "Branch: main", "Messages: 6", "Cost: $", "File: "] {
        assert!(facts.contains(fact), "{fact}: {facts}");
    }
    let told = Output { stdout: told.to_owned(), ..output.clone() };
    check(
        &world,
        &told,
        &expect![[r#"

            ## You, <minute> (<uuid-1>)

            What is the port?

              > Read {"file_path":"<project>/notes.txt"}
                1	port = 80
                2

            The port is <b>80</b>.

            ## You, <minute> (<uuid-2>)

            And what else?

            Nothing else.
        "#]],
    );
    let raw = world.run(&sessions(["show", "Ports", "--raw"])).stdout;
    let stored = fs::read_to_string(&world.home.sessions()[0]).unwrap();
    assert!(raw.lines().count() >= 6 && raw.lines().all(|line| stored.contains(line)), "{raw}");
}

#[tokio::test]
async fn a_tree_shows_branches_forks_and_where_a_resume_goes_on() {
    let world = two_turns().await;
    let id = only_id(&world);
    let first = json_of(&world, ["tree", "Ports"])["turns"][0]["lastUuid"].as_str().unwrap().to_owned();
    let world = world.then([Step::text("Another way."), Step::text("In a copy.")]).await;
    assert_fine(&world.print(["Another question?", "-r", &id, "--resume-session-at", &first]));
    assert_fine(&world.print(["In the copy?", "-r", &id, "--fork-session"]));
    check(
        &world,
        &world.run(&sessions(["tree", &id])),
        &expect![[r#"
            <uuid-1>  Ports
            ● <minute>  What is the port?  (1 answer, 1 call)  [<uuid-2>]
            ├─○ <minute>  And what else?  (1 answer)  [<uuid-3>]
            ● <minute>  Another question?  (1 answer)  [<uuid-4>]  ← a resume goes on here
                ⑂ forked as <uuid-5>  Ports (fork)
        "#]],
    );
    let tree = json_of(&world, ["tree", &id]);
    let live: Vec<&Value> = tree["turns"].as_array().unwrap().iter().map(|turn| &turn["isLive"]).collect();
    assert_eq!(live, [&json!(true), &json!(false), &json!(true)]);
    let ascii = world.run(&sessions(["tree", &id, "--ascii"])).stdout;
    assert!(
        ascii.is_ascii() && ascii.contains("+-o") && ascii.contains("<- a resume goes on here"),
        "{ascii}"
    );
}

#[tokio::test]
async fn a_branch_begins_at_any_message() {
    let world = two_turns().await;
    let id = only_id(&world);
    let before = fs::read(&world.home.sessions()[0]).unwrap();
    let first = json_of(&world, ["tree", &id])["turns"][0]["lastUuid"].as_str().unwrap().to_owned();
    let branch = world.run(&sessions(["branch", &id, "--at", &first, "--name", "Ports, again"]));
    assert_eq!(branch.code, Some(0), "{branch:?}");
    let new = branch.stdout.trim();
    assert_eq!(branch.stderr, format!("Continue it with `loci -r {new}`\n"));
    let messages = json_of(&world, ["show", new])["messages"].as_array().unwrap().len();
    assert_eq!(messages, 4, "the second turn is left behind");
    assert_eq!(fs::read(session_file(&world, &id)).unwrap(), before, "the source is untouched");
    let world = world.then(Step::text("On the branch.")).await;
    assert_fine(&world.print(["Go on", "-r", "Ports, again"]));
    expect![[r#"
        user: What is the port?
        assistant: Read {"file_path":"<project>/notes.txt"} <toolu-1>
        user: <toolu-1>: 1	port = 80
        2	
        assistant: The port is <b>80</b>.
        user: Go on
    "#]]
    .assert_eq(&world.conversation());
    let unknown = world.run(&sessions(["branch", &id, "--at", "nowhere"]));
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("no message") && unknown.stderr.contains("sessions tree"), "{unknown:?}");
}

fn session_file(world: &World, id: &str) -> PathBuf {
    world.home.sessions().into_iter().find(|file| id_of(file) == id).unwrap()
}

#[tokio::test]
async fn exports_are_complete_and_escaped() {
    let world = two_turns().await;
    let markdown = world.run(&sessions(["export", "Ports"])).stdout;
    for part in
        ["# Ports\n", "\n## You, ", "**Read**\n\n```json\n{\n  \"file_path\"", "The port is <b>80</b>."]
    {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    let html = world.run(&sessions(["export", "Ports", "--format", "html"])).stdout;
    for part in [
        "<!doctype html>",
        "default-src 'none'",
        "prefers-color-scheme: dark",
        "<details class=\"call\"><summary><b>Read</b>",
        "The port is &lt;b&gt;80&lt;/b&gt;.",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    for outside in ["http://", "https://", "<script", "url(", "@import", "<link"] {
        assert!(!html.contains(outside), "{outside}");
    }
    let told: Value =
        serde_json::from_str(&world.run(&sessions(["export", "Ports", "--format", "json"])).stdout).unwrap();
    assert_eq!((told["title"].as_str(), told["messages"].as_array().unwrap().len()), (Some("Ports"), 6));

    let wrote = json_of(&world, ["export", "Ports", "-o", "out.html"]);
    assert_eq!(wrote["file"], json!(world.path("out.html")));
    assert_eq!(world.home.read("out.html"), html, "the name says the format");
    let again = world.run(&sessions(["export", "Ports", "-o", "out.html"]));
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("--force"), "{again:?}");
    assert_eq!(world.run(&sessions(["export", "Ports", "-o", "out.html", "--force"])).code, Some(0));
}

#[tokio::test]
async fn titles_and_tags_are_set_and_removed() {
    let world = two_turns().await;
    let id = only_id(&world);
    assert_eq!(
        json_of(&world, ["rename", "Ports", " Harbours "]),
        json!({"sessionId": id, "title": "Harbours"})
    );
    assert_eq!(json_of(&world, ["tag", "Harbours", "sea"]), json!({"sessionId": id, "tag": "sea"}));
    let session = &json_of(&world, ["list"])[0];
    assert_eq!((&session["title"], &session["tag"]), (&json!("Harbours"), &json!("sea")));
    assert_eq!(json_of(&world, ["tag", "Harbours", "--clear"]), json!({"sessionId": id, "tag": null}));
    let talk = world.run(&sessions(["rename", "Harbours", "Ports"]));
    assert_eq!((talk.stdout.as_str(), talk.code), ("", Some(0)), "talk goes to stderr");
    assert!(talk.stderr.contains("is now called `Ports`"));
    let empty = world.run(&sessions(["rename", "Ports", "  "]));
    assert_eq!(empty.code, Some(1), "{empty:?}");
}

#[tokio::test]
async fn removed_session_is_restored() {
    let world = two_turns().await;
    let id = only_id(&world);
    let file = session_file(&world, &id);
    let before = fs::read(&file).unwrap();
    let removed = world.run(&sessions(["rm", "Ports"]));
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(removed.stderr.contains(&format!("loci sessions rm --restore {id}")), "{removed:?}");
    assert_eq!(json_of(&world, ["list"]), json!([]));
    assert_eq!(world.print(["x", "-r", &id]).code, Some(1), "it cannot be resumed meanwhile");
    let unknown = world.run(&sessions(["rm", "--restore", "0a0a0a0a-0001-4000-8000-000000000001"]));
    assert!(unknown.code == Some(1) && unknown.stderr.contains(&format!("--restore {id}")), "{unknown:?}");
    assert_eq!(json_of(&world, ["rm", "--restore", &id])["path"], json!(file));
    assert_eq!(fs::read(&file).unwrap(), before);
    let log = fs::read_to_string(world.home.config_home().join("loci/audit.log")).unwrap();
    assert_eq!(log.lines().count(), 2, "{log}");
}

#[tokio::test]
async fn unknown_session_error_has_a_hint() {
    let world = two_turns().await;
    let id = only_id(&world);
    for (verb, name, needle) in [
        ("show", "port", format!("loci sessions show {id}  # Ports")),
        ("tree", &id[..8], format!("loci sessions tree {id}")),
        ("export", "0a0a0a0a-0001-4000-8000-000000000001", "loci sessions list --all".to_owned()),
        ("rm", "nothing", "loci sessions list --all".to_owned()),
    ] {
        let output = world.run(&sessions([verb, name]));
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
        assert!(output.stderr.starts_with("Error: ") && output.stderr.contains(&needle), "{output:?}");
    }
    let unknown = world.run(&sessions(["lsit"]));
    assert!(unknown.code == Some(1) && unknown.stderr.contains("list"), "{unknown:?}");
}

/// Class 4: looking at a session does not make it newer.
/// Invariant 16 of `docs/design/session-log.md`.
#[tokio::test]
async fn reading_verbs_leave_the_file_alone() {
    let world = two_turns().await;
    let file = &world.home.sessions()[0];
    let state = |file: &Path| (fs::read(file).unwrap(), fs::metadata(file).unwrap().modified().unwrap());
    let before = state(file);
    let verbs = [["list", "--all"], ["show", "Ports"], ["tree", "Ports"], ["export", "Ports"]];
    for verb in verbs {
        assert_eq!(world.run(&sessions(verb)).code, Some(0));
        assert_eq!(state(file), before, "{verb:?}");
    }
    assert_eq!(world.home.sessions().len(), 1);
}

/// Class 11: a run that got no answer is a session like any other.
#[tokio::test]
async fn a_run_without_an_answer_is_listed_and_resumed() {
    let world = World::new([Step::status(400)]).await;
    assert_eq!(world.print(["Will fail"]).code, Some(1));
    let id = only_id(&world);
    assert_eq!(json_of(&world, ["list"])[0]["firstPrompt"], "Will fail");
    let world = world.then(Step::text("Now.")).await;
    assert_fine(&world.run(&print(["Again", "-r", &id])));
}

/// Puts a fixture of the official program into the project, with what lies beside it; returns its id.
fn place(world: &World, name: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions");
    let text = fs::read_to_string(fixtures.join(format!("{name}.jsonl"))).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let id = first["sessionId"].as_str().unwrap().to_owned();
    world.home.write_config(format!("projects/-home-dev-project/{id}.jsonl"), text);
    let agents = fixtures.join(name).join("subagents");
    for agent in fs::read_dir(agents).into_iter().flatten().map(|entry| entry.unwrap()) {
        let to = format!("projects/-home-dev-project/{id}/subagents/{}", agent.file_name().to_str().unwrap());
        world.home.write_config(to, fs::read(agent.path()).unwrap());
    }
    id
}

#[tokio::test]
async fn tree_draws_official_sessions() {
    let world = World::new([]).await;
    for (name, expected) in [
        (
            "subagent",
            expect![[r#"
            <uuid-1>
            ● <minute>  Delegate twice  (2 answers, 2 calls)  [<uuid-2>]  ← a resume goes on here
                ◇ Explore ab7014824ff16d189: second job  (5 entries)
                ◇ general-purpose ae4edb4495a193692: first job  (5 entries)
        "#]],
        ),
        (
            "compacted_auto",
            expect![[r#"
            <uuid-1>
            ● <minute>  What is the port?  (1 answer, 1 call)  [<uuid-2>]
            ● <minute>  Compare both notes and look for todo.txt  (1 answer)  [<uuid-3>]
            ● <minute>  Thanks, wrap up  [<uuid-4>]
            ◆ <minute>  compacted (auto): 80025 tokens became 696  (1 answer)  [<uuid-5>]
            ● <minute>  One more step please  (2 answers, 1 call)  [<uuid-6>]  ← a resume goes on here
        "#]],
        ),
        (
            "branched",
            expect![[r#"
            <uuid-1>
            ● <minute>  What is the port?  (2 answers, 1 call)  [<uuid-2>]
            ├─○ <minute>  Compare both notes and look for todo.txt  (2 answers, 3 calls)  [<uuid-3>]
            │ ○ <minute>  Thanks, wrap up  (1 answer)  [<uuid-4>]
            ● <minute>  Actually, what is the host?  (1 answer)  [<uuid-5>]  ← a resume goes on here
        "#]],
        ),
    ] {
        let id = place(&world, name);
        check(&world, &world.run(&sessions(["tree", &id])), &expected);
    }
}

#[tokio::test]
async fn show_prints_messages_before_a_compaction() {
    let world = World::new([]).await;
    let id = place(&world, "compacted_auto");
    let told = world.run(&sessions(["show", &id])).stdout;
    let places: Vec<Option<usize>> =
        ["What is the port?", "---- compacted (auto)", "  | ", "One more step please"]
            .iter()
            .map(|words| told.find(words))
            .collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {told}");
    let messages = json_of(&world, ["show", &id])["messages"].as_array().unwrap().len();
    assert_eq!(messages, 14, "those before the compaction too");
}

/// A directory may be called anything: its sessions are gone on with and listed like all others.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn sessions_of_a_directory_whose_name_is_not_utf8_are_found() {
    use std::os::unix::ffi::OsStrExt as _;
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let odd = world.home.project().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&odd).unwrap();
    assert_fine(&world.run(&print(["first"]).cwd(&odd)));
    assert_fine(&world.run(&print(["-c", "second"]).cwd(&odd)));
    let asked = serde_json::to_string(world.last_request().messages()).unwrap();
    assert!(asked.contains("first") && asked.contains("second"), "{asked}");
    let output = world.run(&sessions(["list"]).cwd(&odd));
    assert_fine(&output);
    assert!(output.stdout.contains("first") || output.stdout.contains("second"), "{}", output.stdout);
}
