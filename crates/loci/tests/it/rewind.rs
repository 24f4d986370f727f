//! Going back from outside: `loci sessions rewind`, its undoing, `rewind_files`, `diff` and `blame`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{World, assert_fine, control, loci, print, stream};
use loci_testkit::{Binary, Output, Step};
use serde_json::{Value, json};

/// How many rewinds are killed; set by `cargo xtask torture rewind`.
const KILLS: &str = "LOCI_TORTURE_REWINDS";

/// `loci -p` that may do anything and keeps what files held.
fn keeping<const N: usize>(args: [&str; N]) -> Binary {
    print(["--permission-mode", "acceptEdits", "--allowedTools", "Bash", "--checkpoint-files"]).args(args)
}

fn sessions<const N: usize>(args: [&str; N]) -> Binary {
    loci().arg("sessions").args(args)
}

fn bash(command: &str) -> Step {
    Step::call("Bash", json!({"command": command}))
}

fn id(world: &World) -> String {
    world.home.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned()
}

/// The uuids of the prompts.
fn prompts(world: &World) -> Vec<String> {
    let entries = world.home.only_session();
    let prompts = entries.iter().filter(|entry| entry["promptSource"] == "sdk");
    prompts.map(|prompt| prompt["uuid"].as_str().unwrap().to_owned()).collect()
}

fn json_of(output: &Output) -> Value {
    assert_fine(output);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Two prompts that change the same things by command and by tool.
async fn two_prompts() -> World {
    let world = World::with_git([]).await;
    world.home.write("a.txt", "one\n");
    world.home.write("b.txt", "one\n");
    let written = json!({"file_path": world.path("new/c.txt"), "content": "made\n"});
    let script = [
        bash("sed -i s/one/two/ a.txt && mv b.txt moved.txt && ln -s a.txt link"),
        Step::call("Write", written),
        Step::text("First."),
        bash("echo three >> a.txt && rm link && chmod 755 moved.txt"),
        Step::text("Second."),
    ];
    let world = world.then(script).await;
    assert_fine(&world.run(&keeping(["First prompt"])));
    assert_fine(&world.run(&keeping(["Second prompt", "-c"])));
    assert_eq!(world.home.read("a.txt"), "two\nthree\n");
    world
}

fn tree(world: &World) -> Vec<String> {
    fn walk(dir: &Path, found: &mut Vec<String>) {
        let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries.into_iter().filter(|path| !path.ends_with(".git")) {
            let metadata = fs::symlink_metadata(&path).unwrap();
            use std::os::unix::fs::PermissionsExt;
            let what = if metadata.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap().display())
            } else if metadata.is_dir() {
                String::new()
            } else {
                fs::read_to_string(&path).unwrap()
            };
            found.push(format!("{} {:o} {what}", path.display(), metadata.permissions().mode()));
            if metadata.is_dir() {
                walk(&path, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(&world.home.project(), &mut found);
    found
}

/// Invariants 5 and 11 of `docs/design/file-history.md`.
#[tokio::test]
async fn files_go_back_to_each_prompt_and_forth_again() {
    let world = two_prompts().await;
    let (session, prompts) = (id(&world), prompts(&world));
    let end = tree(&world);
    let rewind = |to: &str| world.run(&sessions(["rewind", &session, "--to", to, "--files", "--json"]));

    let trial = json_of(&world.run(&sessions([
        "rewind",
        &session,
        "--to",
        "last",
        "--files",
        "--dry-run",
        "--json",
    ])));
    assert_eq!(
        (&trial["isApplied"], trial["files"].as_array().unwrap().len()),
        (&json!(false), 3),
        "{trial}"
    );
    assert_eq!(tree(&world), end, "a trial changes nothing");

    let done = json_of(&rewind(&prompts[1]));
    assert_eq!((&done["conflicts"], &done["deletions"]), (&json!([]), &json!(1)), "{done}");
    assert_eq!(world.home.read("a.txt"), "two\n");
    assert!(fs::symlink_metadata(world.home.project().join("link")).unwrap().is_symlink());

    json_of(&rewind(&prompts[0]));
    assert_eq!((world.home.read("a.txt"), world.home.read("b.txt")), ("one\n".into(), "one\n".into()));
    for name in ["moved.txt", "link", "new"] {
        assert!(fs::symlink_metadata(world.home.project().join(name)).is_err(), "{name}");
    }
    json_of(&world.run(&sessions(["undo-rewind", &session, "--json"])));
    assert_eq!(world.home.read("a.txt"), "two\n", "one step forth");
    json_of(&world.run(&sessions(["undo-rewind", &session, "--json"])));
    assert_eq!(world.home.read("a.txt"), "one\n", "undoing the undoing goes back again");
}

#[tokio::test]
async fn the_conversation_goes_back_with_the_files_and_nothing_is_removed() {
    let world = two_prompts().await;
    let (session, prompts) = (id(&world), prompts(&world));
    let before = fs::read(&world.home.sessions()[0]).unwrap();
    let said = world.run(&sessions(["rewind", &session, "--to", &prompts[1][..8]]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.starts_with("Changed 3 paths (+0 -1 lines)"), "{}", said.stdout);
    assert!(said.stderr.contains("undo-rewind"), "{}", said.stderr);
    let after = fs::read(&world.home.sessions()[0]).unwrap();
    assert!(after.starts_with(&before), "a transcript is only appended to");

    let world = world.then([Step::text("Other.")]).await;
    assert_fine(&world.run(&keeping(["Another prompt", "-c"])));
    let sent = world.conversation();
    assert!(sent.contains("First prompt") && !sent.contains("Second prompt"), "{sent}");

    assert_eq!(world.run(&sessions(["undo-rewind", &session])).code, Some(0));
    let world = world.then([Step::text("Back.")]).await;
    assert_fine(&world.run(&keeping(["And now", "-c"])));
    let sent = world.conversation();
    assert!(sent.contains("Second prompt") && !sent.contains("Another prompt"), "{sent}");
}

/// Invariant 7 of `docs/design/file-history.md`.
#[tokio::test]
async fn conflicts_stop_a_rewind_until_the_user_says_otherwise() {
    let world = two_prompts().await;
    let session = id(&world);
    world.home.write("a.txt", "the user's own\n");
    let refused = world.run(&sessions(["rewind", &session, "--to", "last", "--files"]));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stdout.contains("conflict a.txt: changed since by someone else"), "{refused:?}");
    assert!(refused.stderr.contains("--conflicts=overwrite"), "{refused:?}");
    assert_eq!(world.home.read("a.txt"), "the user's own\n");
    let kept = world.run(&sessions([
        "rewind",
        &session,
        "--to",
        "last",
        "--files",
        "--conflicts",
        "keep",
        "--json",
    ]));
    assert_eq!(json_of(&kept)["left"][0]["reason"], "changed since by someone else");
    assert_eq!(world.home.read("a.txt"), "the user's own\n");
    json_of(&world.run(&sessions([
        "rewind",
        &session,
        "--to",
        "last",
        "--files",
        "--conflicts",
        "overwrite",
        "--json",
    ])));
    assert_eq!(world.home.read("a.txt"), "two\n");
    json_of(&world.run(&sessions(["undo-rewind", &session, "--json"])));
    assert_eq!(world.home.read("a.txt"), "the user's own\n");
}

/// L7 of the hostile trial: a transcript of somebody else's says which files it is about.
#[tokio::test]
async fn files_outside_the_directory_of_a_session_need_a_word_of_their_own() {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().canonicalize().unwrap().join("rc");
    fs::write(&file, "one\n").unwrap();
    let world = World::with_git([]).await;
    let change = json!({"file_path": file, "content": "two\n"});
    let read = Step::call("Read", json!({"file_path": file}));
    let world = world.then([read, Step::call("Write", change), Step::text("Done.")]).await;
    let dir = file.parent().unwrap().to_str().unwrap();
    assert_fine(&world.run(&keeping(["Change it", "--add-dir", dir])));
    assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
    fs::write(&file, "the user's own\n").unwrap();
    let session = id(&world);
    let overwrite = ["rewind", &session, "--to", "last", "--files", "--conflicts", "overwrite"];
    let refused = world.run(&sessions(overwrite));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("outside the directory") && refused.stderr.contains("--outside"),
        "{refused:?}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "the user's own\n");
    json_of(&world.run(&sessions(overwrite).args(["--outside", "--json"])));
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n");
}

#[tokio::test]
async fn impossible_rewind_is_refused_with_reason() {
    let world = two_prompts().await;
    let session = id(&world);
    for (args, needle) in [
        (&["rewind", &session, "--to", "nowhere"][..], "Second prompt"),
        (&["undo-rewind", &session], "no rewind that could be undone"),
        (&["rewind", "nobody", "--to", "last"], "nobody"),
        (&["diff", &session, "nowhere"], "No file checkpoint found"),
    ] {
        let output = world.run(&loci().arg("sessions").args(args.iter().copied()));
        assert_eq!(output.code, Some(1), "{args:?}");
        assert!(output.stderr.contains(needle), "{args:?}: {}", output.stderr);
    }
}

/// What background commands change belongs to the turn that sees it.
#[tokio::test]
async fn changes_of_background_commands_are_taken_back_too() {
    let world = World::with_git([]).await;
    world.home.write("a.txt", "one\n");
    let task = json!({"command": "echo two > a.txt; touch done; sleep 30", "run_in_background": true});
    let wait = bash("while ! test -e done; do sleep 0.05; done; echo seen");
    let world = world.then([Step::call("Bash", task), wait, Step::text("Done.")]).await;
    assert_fine(&world.run(&keeping(["Do it"])));
    assert_eq!(world.home.read("a.txt"), "two\n");
    json_of(&world.run(&sessions(["rewind", &id(&world), "--to", "last", "--files", "--json"])));
    assert_eq!(world.home.read("a.txt"), "one\n");
    assert!(!world.home.project().join("done").exists());
}

#[tokio::test]
async fn a_client_rewinds_files_over_the_control_channel() {
    let world = two_prompts().await;
    let prompts = prompts(&world);
    let session = id(&world);
    let enable = |binary: Binary| binary.env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true");
    let ask = |binary: Binary, request: Value| {
        let mut client = world.start(&binary);
        client.write_json(&control("r1", request));
        let answer = client.wait_for_json(|frame| frame["type"] == "control_response")["response"].clone();
        client.finish();
        answer
    };
    let request = |id: &str, is_trial: bool| json!({"subtype": "rewind_files", "user_message_id": id, "dry_run": is_trial});
    let off = ask(stream(["-r", &session]), request(&prompts[1], false));
    assert_eq!(off["error"], "File rewinding is not enabled.");
    let on = || enable(stream(["-r", &session]));
    assert_eq!(ask(on(), request("nobody", false))["error"], "No file checkpoint found for this message.");
    let trial = ask(on(), request(&prompts[1], true));
    assert_eq!(world.home.read("a.txt"), "two\nthree\n");
    let done = ask(on(), request(&prompts[1], false));
    assert_eq!(done["response"]["canRewind"], true, "{done}");
    assert_eq!(done["response"]["deletions"], 1, "{done}");
    let changed = |answer: &Value| answer["response"]["filesChanged"].as_array().unwrap().len();
    assert_eq!((changed(&trial), changed(&done)), (3, 3));
    assert_eq!(world.home.read("a.txt"), "two\n");
}

#[tokio::test]
async fn the_flag_of_the_reference_takes_files_back() {
    let world = two_prompts().await;
    let flag = world.run(&loci().args(["-r", &id(&world), "--rewind-files", &prompts(&world)[1]]));
    assert_eq!(flag.code, Some(0), "{flag:?}");
    assert_eq!(world.home.read("a.txt"), "two\n");
    assert_eq!(world.home.only_session().last().unwrap()["type"], "last-prompt", "the conversation stays");
}

/// A session that only kept the shared format, as Claude Code leaves them. Invariant 13 of `docs/design/file-history.md`.
#[tokio::test]
async fn sessions_of_the_reference_are_rewound_by_their_backups() {
    let world = World::new([]).await;
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions");
    let session = "0a0a0a0a-0013-4000-8000-000000000013";
    let text = fs::read_to_string(fixtures.join("file_history.jsonl")).unwrap();
    let text = text.replace("/home/dev/project", &world.home.project().display().to_string());
    let slug: String = world
        .home
        .project()
        .display()
        .to_string()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    world.home.write_config(format!("projects/{slug}/{session}.jsonl"), text);
    for backup in fs::read_dir(fixtures.join("file_history.backups")).unwrap() {
        let backup = backup.unwrap();
        let name = backup.file_name().into_string().unwrap();
        world.home.write_config(format!("file-history/{session}/{name}"), fs::read(backup.path()).unwrap());
    }
    world.home.write("code.txt", "v = 3\n");
    world.home.write("made.txt", "made\n");
    let rewind = |to: &str| world.run(&sessions(["rewind", session, "--to", to, "--files", "--json"]));
    json_of(&rewind("c1222bd4"));
    assert_eq!(
        (world.home.read("code.txt"), world.home.read("made.txt")),
        ("v = 2\n".into(), "made\n".into())
    );
    json_of(&rewind("9762dea8"));
    assert_eq!(world.home.read("code.txt"), "v = 1\n");
    assert!(!world.home.project().join("made.txt").exists());
    json_of(&world.run(&sessions(["undo-rewind", session, "--json"])));
    assert_eq!(world.home.read("code.txt"), "v = 2\n");
    world.home.write("code.txt", "the user's own\n");
    assert_eq!(rewind("9762dea8").code, Some(1), "what the user wrote is a conflict");
}

/// Invariant 17 of `docs/design/file-history.md`.
#[tokio::test]
async fn any_message_names_the_prompt_it_belongs_to() {
    let world = two_prompts().await;
    let (session, prompts) = (id(&world), prompts(&world));
    let entries = world.home.only_session();
    let is_message = |entry: &&Value| entry["type"] == "user" || entry["type"] == "assistant";
    let mut belongs = "";
    let mut n_messages = 0;
    for entry in entries.iter().filter(is_message) {
        let message = entry["uuid"].as_str().unwrap();
        if prompts.iter().any(|prompt| prompt == message) {
            belongs = message;
            continue;
        }
        n_messages += 1;
        let trial = world.run(&sessions(["rewind", &session, "--to", message, "--dry-run", "--json"]));
        let plan: Value = serde_json::from_str(&trial.stdout).unwrap();
        assert_eq!((trial.code, plan["to"].as_str()), (Some(0), Some(belongs)), "{trial:?}");
        assert!(trial.stderr.contains(&format!("belongs to the prompt {belongs}")), "{}", trial.stderr);
    }
    assert_eq!(n_messages, 8, "three calls, three results, two answers");
    let last = entries.iter().rfind(is_message).unwrap()["uuid"].as_str().unwrap();
    assert_eq!(world.run(&sessions(["rewind", &session, "--to", last, "--files"])).code, Some(0));
    assert_eq!(world.home.read("a.txt"), "two\n");
    let nobody = world.run(&sessions(["rewind", &session, "--to", "zzz"]));
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.stderr.contains("The session has no message with this uuid: `zzz`"), "{}", nobody.stderr);
}

#[tokio::test]
async fn diff_and_blame_say_who_did_what() {
    let world = two_prompts().await;
    let (session, prompts) = (id(&world), prompts(&world));
    let diff = world.run(&sessions(["diff", &session, &prompts[1]]));
    assert_fine(&diff);
    assert!(diff.stdout.contains("+three") && !diff.stdout.contains("+two"), "{}", diff.stdout);
    let all = world.run(&sessions(["diff", &session, "--json"]));
    let paths: Vec<String> =
        all.json_lines().iter().map(|it| it["path"].as_str().unwrap().to_owned()).collect();
    assert_eq!(paths.len(), 5, "a.txt, b.txt, moved.txt, new, new/c.txt: {paths:?}");
    let blamed = world.run(&loci().args(["blame", "a.txt", "--json"]));
    assert_fine(&blamed);
    let by: Vec<Value> = blamed.json_lines().iter().map(|line| line["by"]["text"].clone()).collect();
    assert_eq!(by, [json!("First prompt"), json!("Second prompt")]);
    let text = world.run(&loci().args(["blame", "a.txt"])).stdout;
    assert!(text.contains("First prompt") && text.contains("   2  three"), "{text}");
}

/// Kills a rewind at some moment of its work. Invariant 4 of `docs/design/file-history.md`.
#[tokio::test]
async fn a_rewind_that_is_killed_is_finished_at_the_next_start() {
    const FILES: usize = 300;
    let world = World::with_git([]).await;
    let make = "mkdir many other && seq 1 300 | split -l 1 -a 3 - many/f && ln -s many l";
    let change = "sed -i s/^/two/ many/f* && rm -r other l && mkdir l && touch l/x && chmod 700 many";
    let world = world.then([bash(make), Step::text("Made."), bash(change), Step::text("Changed.")]).await;
    assert_fine(&world.run(&keeping(["Make"])));
    let made = tree(&world);
    assert_fine(&world.run(&keeping(["Change", "-c"])));
    let changed = tree(&world);
    assert_ne!(made, changed);
    let session = id(&world);
    let pending = world.home.config_home().join("loci/rewinds");
    let mut n_cut = 0;
    let n_kills: u64 = std::env::var(KILLS).map_or(4, |kills| kills.parse().unwrap());
    for attempt in 0..n_kills {
        let child = world.start(&sessions(["rewind", &session, "--to", "last", "--files"]));
        let deadline = Instant::now() + Duration::from_secs(30);
        let is_pending = || {
            let entries = fs::read_dir(&pending).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).any(|path| path.to_string_lossy().ends_with(".pending.json"))
        };
        while !is_pending() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(attempt * 15 % 120));
        drop(child); // Kills it.
        n_cut += usize::from(is_pending());
        let world_note = world.run(&sessions(["undo-rewind", &session, "--dry-run"]));
        assert_eq!(world_note.code, Some(0), "{world_note:?}");
        assert!(!is_pending(), "the next start finishes it");
        assert_eq!(tree(&world), made, "attempt {attempt}");
        assert_eq!(world.run(&sessions(["undo-rewind", &session])).code, Some(0));
        assert_eq!(tree(&world), changed);
    }
    println!("{n_kills} kills, {n_cut} of them in the middle");
    assert!(n_cut > 0, "no attempt cut a rewind of {FILES} files short");
}

#[tokio::test]
async fn blob_store_is_listed_and_garbage_collected() {
    let world = two_prompts().await;
    let doctor = world.run(&loci().args(["doctor", "--json"]));
    let report: Value = serde_json::from_str(&doctor.stdout).unwrap();
    assert!(report["fileHistory"]["bytes"].as_u64().unwrap() > 0, "{report}");
    let collected = json_of(&world.run(&sessions(["gc", "--json"])));
    assert_eq!(collected["limit"].as_u64().unwrap(), 4 * 1024 * 1024 * 1024);
    json_of(&world.run(&sessions(["rewind", &id(&world), "--to", "last", "--files", "--json"])));
    assert_eq!(world.home.read("a.txt"), "two\n", "what a session refers to stays");
}

/// `-p` with a prompt that only looks leaves no trace beyond the point.
#[tokio::test]
async fn read_only_commands_record_no_change() {
    let world = World::with_git([bash("cat README.md"), Step::text("Read.")]).await;
    assert_fine(&world.run(&keeping(["Look"])));
    let log = world.home.config_home().join(format!("loci/tree-history/{}.jsonl", id(&world)));
    assert_eq!(fs::read_to_string(log).unwrap().lines().count(), 1);
    assert!(!world.home.config_home().join("loci/blobs").exists());
}

/// Invariant 18 of `docs/design/file-history.md`.
#[tokio::test]
async fn rewind_names_the_ignored_files_it_does_not_touch() {
    let world = World::with_git([]).await;
    world.home.write(".gitignore", "*.log\nbuild/\n");
    world.home.write("old.log", "old\n");
    let old = fs::File::options().append(true).open(world.home.project().join("old.log")).unwrap();
    old.set_modified(std::time::SystemTime::now() - Duration::from_secs(3_600)).unwrap();
    world.home.commit("begin");
    let command = "echo x > a.txt; echo y > new.log; mkdir -p build/deep; echo z > build/deep/o";
    let world = world.then([bash(command), Step::text("Done.")]).await;
    assert_fine(&world.run(&keeping(["make it"])));
    let session = id(&world);
    let said = world.run(&sessions(["rewind", &session, "--to", "last", "--files", "--dry-run"]));
    let lines: Vec<&str> = said.stdout.lines().filter(|line| line.contains("git ignores")).collect();
    assert_eq!(
        lines,
        ["  not touched, git ignores it: build", "  not touched, git ignores it: new.log"],
        "{said:?}"
    );
    let done = json_of(&world.run(&sessions(["rewind", &session, "--to", "last", "--files", "--json"])));
    let project = world.home.project();
    assert_eq!(done["ignored"], json!([project.join("build"), project.join("new.log")]), "{done}");
    assert!(!project.join("a.txt").exists() && project.join("new.log").exists());
}
