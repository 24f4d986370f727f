//! `loci sessions search` on sessions that the binary itself made.

use expect_test::expect;
use loci_testkit::{Binary, Step};
use serde_json::{Value, json};

use crate::support::{World, assert_fine, loci};

fn search<const N: usize>(args: [&str; N]) -> Binary {
    loci().args(["sessions", "search"]).args(args).env("TZ", "UTC")
}

fn found<const N: usize>(world: &World, args: [&str; N]) -> Value {
    let output = world.run(&search(args).arg("--json"));
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

fn roles(found: &Value) -> Vec<&str> {
    let mut roles: Vec<&str> =
        found["hits"].as_array().unwrap().iter().map(|hit| hit["role"].as_str().unwrap()).collect();
    roles.sort_unstable();
    roles
}

/// A session that reads a file about ports, and one about something else.
async fn world() -> World {
    let world = World::with_git([]).await;
    world.home.write("notes.txt", "staging port = 48213\n");
    let notes = world.path("notes.txt");
    let world = world
        .then([
            Step::call("Read", json!({"file_path": notes})),
            Step::text("The staging port is 48213."),
            Step::text("Nothing of the sort."),
        ])
        .await;
    assert_fine(&world.print(["What is the staging port?", "-n", "Ports"]));
    assert_fine(&world.print(["Something else entirely"]));
    world
}

#[tokio::test]
async fn messages_are_found_with_the_command_that_resumes_there() {
    let world = world().await;
    let all = found(&world, ["48213"]);
    assert_eq!(all["found"], json!({"number": 2, "isExact": true}));
    assert_eq!(roles(&all), ["assistant", "result"]);
    assert_eq!(found(&world, ["48213", "--role", "result"])["hits"][0]["tool"], "Read");
    let answer = found(&world, ["--role", "assistant", "staging port"]);
    let [hit] = answer["hits"].as_array().unwrap().as_slice() else { panic!("{answer}") };
    assert_eq!(hit["title"], "Ports");
    assert_eq!(hit["snippet"], "The staging port is 48213.");
    assert_eq!(hit["highlights"], json!([[4, 11], [12, 16]]));
    let resume = hit["resume"].as_str().unwrap().to_owned();
    assert!(resume.starts_with("loci -r ") && resume.ends_with(hit["uuid"].as_str().unwrap()), "{resume}");

    let world = world.then([Step::text("Again.")]).await;
    let words: Vec<&str> = resume.split(' ').skip(1).collect();
    assert_fine(&world.run(&crate::support::print(["And then?"]).args(words)));
    assert!(world.conversation().ends_with("user: And then?\n"), "{}", world.conversation());
}

/// Invariant 4 of `docs/design/index.md`: a disk that is full costs the index and nothing else; what was written of it does not go on filling the disk.
#[tokio::test]
async fn full_disk_removes_the_partial_index() {
    let world = World::new([]).await;
    let words: String = (0..150_000).map(|n| format!("w{n} ")).collect();
    let line = json!({"parentUuid": null, "isSidechain": false, "type": "user", "uuid": "u1",
        "message": {"role": "user", "content": format!("badger {words}")}, "timestamp": "2026-01-01T00:00:00.000Z"});
    world.home.write_config("projects/-p/0a0a0a0a-0001-4000-8000-000000000001.jsonl", format!("{line}\n"));
    // No file may be longer than 64 kB, which a process is told as it is told of a full disk.
    let script = r#"trap '' XFSZ; ulimit -f 128; exec "$0" "$@""#;
    let loci = env!("CARGO_BIN_EXE_loci");
    let binary = Binary::new("/bin/sh").args(["-c", script, loci, "sessions", "search", "badger", "--json"]);
    let output = world.run(&binary);
    assert_eq!(output.code, Some(0), "{output:?}");
    // On a busy machine it takes long enough to say how far it is.
    assert!(output.stderr.lines().all(|line| line.starts_with("Indexing sessions: ")), "{output:?}");
    let index = world.home.config_home().join("loci/index");
    let left: Vec<_> = std::fs::read_dir(&index).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
    assert_eq!(found(&world, ["badger"])["found"]["number"], 1);
    assert!(std::fs::read_dir(&index).unwrap().count() > 1, "the next one that has room indexes");
}

/// A directory that is gone is no place to go to: the session goes on where somebody is.
#[tokio::test]
async fn a_session_whose_directory_is_gone_is_resumed_here() {
    let world = World::new(vec![Step::text("It goes on.")]).await;
    let id = "0a0a0a0a-0001-4000-8000-000000000001";
    for (n, cwd) in [("1", "/nowhere/gone"), ("2", "/")] {
        let id = format!("{}{n}", &id[..35]);
        let line = json!({"parentUuid": null, "isSidechain": false, "type": "user", "uuid": format!("u{n}"), "cwd": cwd,
            "message": {"role": "user", "content": "about badgers"}, "timestamp": "2026-01-01T00:00:00.000Z", "sessionId": id});
        world.home.write_config(format!("projects/-gone/{id}.jsonl"), format!("{line}\n"));
    }
    let all = found(&world, ["badgers"]);
    let resumes: Vec<&str> =
        all["hits"].as_array().unwrap().iter().map(|hit| hit["resume"].as_str().unwrap()).collect();
    let [gone, there] = resumes.as_slice() else { panic!("{all}") };
    assert_eq!(*gone, format!("loci -r {id} --resume-session-at u1"));
    assert!(there.starts_with("cd / && loci -r "), "{there}");
    let words: Vec<&str> = gone.split(' ').skip(1).collect();
    assert_fine(&world.run(&crate::support::print(["Go on."]).args(words)));
    assert!(world.conversation().contains("about badgers"), "{}", world.conversation());
}

#[tokio::test]
async fn a_search_can_be_narrowed() {
    let world = world().await;
    for (args, expected) in [
        (vec!["port"], 3),
        (vec!["port", "--tool", "Read"], 1),
        (vec!["--file", "notes.txt", "else"], 0),
        (vec!["--file", "notes.txt", "port", "--role", "user"], 1),
        (vec!["port", "--branch", "nowhere"], 0),
        (vec!["port", "--since", "1h"], 3),
        (vec!["port", "--until", "2020-01-01"], 0),
        (vec!["port", "--project", "."], 3),
        (vec!["port", "--project", "/"], 0),
        // Not just any five digits, which the name of the directory may have as well.
        (vec!["--regex", r"\b48\d{3}\b"], 2),
        (vec!["po*", "--no-index"], 3),
        (vec!["port", "-n", "1"], 1),
    ] {
        let output = world.run(&search(["--json"]).args(args.iter().copied()));
        assert_fine(&output);
        let found: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(found["hits"].as_array().unwrap().len(), expected, "{args:?} {found}");
    }
}

#[tokio::test]
async fn search_text_output_matches_snapshot() {
    let world = world().await;
    let output = world.run(&search(["--role", "assistant", "staging"]));
    let text = world.normaliser().text(&output.stdout);
    let minute = text.find(" 20").map(|at| text[at + 1..at + 17].to_owned()).unwrap();
    expect![[r#"
        Ports  <minute>  assistant  in <project>
          | The staging port is 48213.
          loci -r <uuid-1> --resume-session-at <uuid-2>

        1 of 1 passages
    "#]]
    .assert_eq(&text.replace(&minute, "<minute>"));
    let nothing = world.run(&search(["absent"]));
    assert_eq!((nothing.code, nothing.stderr.as_str()), (Some(0), "Nothing was found\n"));
    for (args, needle) in [
        (["--regex", "("], "Leave --regex out"),
        (["--", "--"], "Use --regex"),
        (["--since=yesterday", "x"], "2026-01-31"),
        (["--role=nobody", "x"], "the roles are"),
    ] {
        let output = world.run(&search(args));
        assert!(output.code != Some(0) && output.stderr.contains(needle), "{args:?} {output:?}");
    }
}

/// What was searched for stands out on a terminal, and nowhere else.
#[cfg(unix)]
#[tokio::test]
async fn search_highlights_matches_on_a_terminal() {
    let world = world().await;
    let wish = || search(["--role", "assistant", "staging"]);
    let bright = "The \u{1b}[1;33mstaging\u{1b}[0m port";
    let shown = world.start_on_screen(&wish()).finish();
    assert!(shown.code == Some(0) && shown.stderr.contains(bright), "{shown:?}");
    let plain = world.start_on_screen(&wish().env("NO_COLOR", "1")).finish();
    assert!(plain.stderr.contains("The staging port") && !plain.stderr.contains(bright), "{plain:?}");
    let piped = world.run(&wish());
    assert!(piped.stdout.contains("The staging port") && !piped.stdout.contains('\u{1b}'), "{piped:?}");
}

/// What is said where nothing is shown, and why.
#[tokio::test]
async fn empty_search_result_says_why() {
    let world = world().await;
    for (args, code, said) in [
        (vec!["nowhere"], 0, "Nothing was found\n"),
        (vec!["port", "--branch", "other"], 0, "Nothing was found; with fewer filters there may be more\n"),
        (
            vec!["port", "--skip", "99"],
            0,
            "Nothing is left to show; --skip and --limit leave out what was found\n",
        ),
        (
            vec!["port", "-n", "0"],
            0,
            "Nothing is left to show; --skip and --limit leave out what was found\n",
        ),
        (vec!["--regex", ""], 1, "Error: There is nothing to search for\n"),
        (vec![" "], 1, "Error: There is nothing to search for\n"),
    ] {
        let output = world.run(&search([]).args(args.clone()));
        assert!(output.stderr.starts_with(said), "{args:?}: {output:?}");
        assert_eq!((output.code, output.stdout.as_str()), (Some(code), ""), "{args:?}");
    }
    for (args, said) in [
        (vec!["sessions", "audit"], "Nothing was archived, removed or mended yet\n".to_owned()),
        (
            vec!["sessions", "list", "--origin", "codex"],
            format!(
                "There are no sessions of Codex in `{}` that were not imported\n",
                world.home.home().join(".codex").display()
            ),
        ),
    ] {
        let output = world.run(&loci().args(args.clone()));
        assert_eq!((output.code, output.stderr), (Some(0), said), "{args:?}");
    }
}
