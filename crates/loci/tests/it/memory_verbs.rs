//! `loci memory`: looking at memories, changing them, and taking changes back.

use crate::memory::{memory, memory_dir, remember};
use crate::support::{World, loci};
use expect_test::expect;
use loci_testkit::{Output, Step};
use serde_json::Value;

fn run(world: &World, args: &[&str]) -> Output {
    world.run(&loci().arg("memory").args(args.iter().copied()))
}

fn run_and_render(world: &World, args: &[&str]) -> String {
    let output = run(world, args);
    let text = format!("exit {:?}\n{}{}", output.code, output.stdout, output.stderr);
    world.normaliser().text(&text)
}

fn read(world: &World, file: &str) -> String {
    std::fs::read_to_string(memory_dir(world).join(file)).unwrap_or_default()
}

async fn world() -> World {
    let world = World::new([]).await;
    remember(&world, "MEMORY.md", "- [tests](tests.md): how tests run\n- [gone](gone.md): nothing\n");
    remember(
        &world,
        "tests.md",
        &memory("tests", "how tests run")
            .replace("Text.", "Run `no-such-tool all` on `src/a.rs`, see `vanished()`."),
    );
    remember(&world, "other.md", &memory("Tests", "other words"));
    remember(&world, "plain.md", "no front matter");
    world
}

/// Invariant 8 of `docs/design/memory.md`.
#[tokio::test]
async fn memory_list_flags_problems() {
    let world = world().await;
    expect![[r#"
        exit Some(1)
        other.md: it is about the same as `tests.md`
        other.md: MEMORY.md has no line for it
        plain.md: it has no front matter
        plain.md: MEMORY.md has no line for it
        tests.md: it is about the same as `other.md`
        tests.md: it names `src/a.rs`, which is not there
        tests.md: it names `no-such-tool`, which is not there
        tests.md: it names `vanished`, which is nowhere in the project
        MEMORY.md:2: `gone.md` is not there
        3 memories, 9 to look at: `loci memory edit` or `loci memory forget` them
    "#]]
    .assert_eq(&run_and_render(&world, &["doctor"]));
    let list: Value = serde_json::from_str(&run(&world, &["list", "--json"]).stdout).unwrap();
    assert_eq!(list.as_array().map(Vec::len), Some(3));
    assert_eq!(list[2]["flags"].as_array().map(Vec::len), Some(3));
}

/// Invariant 8 of `docs/design/memory.md`. Both values are shown, wherever people look.
#[tokio::test]
async fn memories_that_contradict_are_shown() {
    let world = World::new([]).await;
    let text = |name: &str, text: &str| memory(name, name).replace("Text.", text);
    remember(&world, "MEMORY.md", "- [a](a.md): a\n- [b](b.md): b\n");
    remember(&world, "a.md", &text("staging server", "It is slow.\n\nPort: 8080"));
    remember(&world, "b.md", &text("staging notes", "Port: 9090"));
    let found = "a.md: it says `8080` for `port`, `b.md` says `9090`\n";
    let doctor = run_and_render(&world, &["doctor"]);
    assert!(doctor.starts_with("exit Some(1)\n") && doctor.contains(found), "{doctor}");
    let listed = run_and_render(&world, &["list"]);
    assert!(listed.contains("! it says `9090` for `port`, `a.md` says `8080`\n"), "{listed}");

    // A proposal is held against what counts already, but not against what it would replace.
    assert_eq!(run(&world, &["edit", "b.md", "--text", "Port: 9090"]).code, Some(0), "now there is a book");
    let books = world.home.config_home().join("loci/memory");
    let pending = std::fs::read_dir(books).unwrap().next().unwrap().unwrap().path().join("pending");
    std::fs::create_dir_all(&pending).unwrap();
    std::fs::write(pending.join("new.md"), text("staging ports", "Port: 7070")).unwrap();
    std::fs::write(pending.join("b.md"), text("staging notes", "Port: 8080")).unwrap();
    let review = run_and_render(&world, &["review"]);
    let (new, changed) = review.split_once("== new.md").map(|(before, after)| (after, before)).unwrap();
    assert!(new.contains("it says `7070` for `port`, `a.md` says `8080`"), "{review}");
    assert!(new.contains("`b.md` says `8080`"), "{review}");
    assert!(!changed.contains("`a.md` says"), "now they agree: {review}");
    let json: Value = serde_json::from_str(&run(&world, &["review", "--json"]).stdout).unwrap();
    assert!(json[1]["flags"].to_string().contains("7070"), "{json}");
}

#[tokio::test]
async fn memories_are_shown_found_changed_and_forgotten() {
    let world = world().await;
    assert_eq!(
        run_and_render(&world, &["search", "WORDS", "other"]),
        "exit Some(0)\nother.md:3: description: other words\n"
    );
    assert!(
        run_and_render(&world, &["show", "tests.md"]).contains("from: not known"),
        "written by other means"
    );
    assert_eq!(run(&world, &["edit", "tests.md", "--text", "New text."]).code, Some(0));
    let text = read(&world, "tests.md");
    assert!(text.contains("\nmodified: ") && text.ends_with("---\nNew text.\n"), "{text}");
    assert!(run_and_render(&world, &["show", "tests.md"]).contains("by person"));
    assert_eq!(run(&world, &["forget", "tests.md"]).code, Some(0));
    assert_eq!(read(&world, "tests.md"), "");
    assert_eq!(read(&world, "MEMORY.md"), "- [gone](gone.md): nothing\n");
    let history = run(&world, &["history", "tests"]).stdout;
    assert_eq!(history.lines().count(), 2, "{history}");
    assert_eq!(run(&world, &["undo"]).code, Some(0));
    assert_eq!(read(&world, "tests.md"), text);
    assert!(read(&world, "MEMORY.md").contains("tests.md"));
    let missing = run_and_render(&world, &["show", "nothing"]);
    assert!(
        missing.contains("No such memory: `nothing`") && missing.contains("loci memory list"),
        "{missing}"
    );
}

/// A text that could never be read again is refused whole, not cut.
#[tokio::test]
async fn a_text_that_is_too_long_for_a_memory_is_refused() {
    let world = world().await;
    let before = read(&world, "tests.md");
    let output = world.run_with_stdin(&loci().args(["memory", "edit", "tests.md"]), &"x".repeat(1024 * 1024));
    assert!(output.code == Some(1) && output.stderr.contains("larger than 1 MiB"), "{output:?}");
    assert_eq!(read(&world, "tests.md"), before);
    let history = run_and_render(&world, &["history"]);
    assert!(history.contains("No change is known"), "{history}");
}

/// Invariant 6 of `docs/design/memory.md`.
#[tokio::test]
async fn an_edit_by_hand_is_never_undone() {
    let world = world().await;
    run(&world, &["edit", "tests.md", "--text", "New text."]);
    remember(&world, "tests.md", "by hand");
    let refused = run_and_render(&world, &["undo"]);
    assert!(refused.contains("edited meanwhile: `tests.md`"), "{refused}");
    assert_eq!(read(&world, "tests.md"), "by hand");
    assert!(run_and_render(&world, &["show", "tests.md"]).contains("edited by hand since"));
}

/// Many processes at once: each change is made once and numbered once, and none is lost.
/// Invariant 7 of `docs/design/memory.md`.
#[tokio::test]
async fn many_processes_share_the_book() {
    let world = world().await;
    for n in 0..8 {
        remember(&world, &format!("m{n}.md"), &memory(&format!("m{n}"), "x"));
    }
    let edits =
        (0..8).map(|n| vec!["edit".to_owned(), format!("m{n}.md"), "--text".to_owned(), format!("New {n}.")]);
    let forgets = (0..4).map(|_| vec!["forget".to_owned(), "tests.md".to_owned()]);
    let running: Vec<_> =
        edits.chain(forgets).map(|args| world.start_closed(&loci().arg("memory").args(args))).collect();
    let ended: Vec<Output> = running.into_iter().map(loci_testkit::Session::finish).collect();
    assert!(ended[..8].iter().all(|it| it.code == Some(0)), "{ended:?}");
    let n_forgotten = ended[8..].iter().filter(|it| it.code == Some(0)).count();
    assert_eq!(n_forgotten, 1, "one of them was first: {ended:?}");
    let changes: Value = serde_json::from_str(&run(&world, &["history", "--json"]).stdout).unwrap();
    let ids: Vec<u64> = changes.as_array().unwrap().iter().filter_map(|it| it["id"].as_u64()).collect();
    assert_eq!(ids, (1..=9).collect::<Vec<u64>>());
    for id in ids.iter().rev() {
        assert_eq!(run(&world, &["undo", &id.to_string()]).code, Some(0), "{id}");
    }
    assert_eq!(read(&world, "m0.md"), memory("m0", "x"), "all taken back");
    assert!(read(&world, "tests.md").contains("no-such-tool"));
}

/// What stands in the way of memories is named; all others are listed, and the next session starts.
/// Invariant 8 of `docs/design/memory.md`.
#[tokio::test]
async fn unreadable_memory_is_reported_and_others_are_listed() {
    let world = World::new([Step::text("Hello.")]).await;
    let dir = memory_dir(&world);
    std::fs::create_dir_all(dir.join("MEMORY.md")).unwrap();
    remember(&world, "fine.md", &memory("fine", "a plain one"));
    let large = std::fs::File::create(dir.join("large.md")).unwrap();
    large.set_len(50 * 1024 * 1024).unwrap();
    std::os::unix::fs::symlink("/etc/hosts", dir.join("link.md")).unwrap();
    expect![[r#"
        exit Some(0)
        feedback   fine.md  a plain one
        -          large.md
                   ! Failed to read memory: `large.md`: it is larger than 1 MiB
        -          MEMORY.md
                   ! Failed to read memory: `MEMORY.md`: it is not a file
    "#]]
    .assert_eq(&run_and_render(&world, &["list"]));
    let doctor = run_and_render(&world, &["doctor"]);
    assert!(doctor.contains("large.md: Failed") && doctor.contains("1 memory, 2 to look at"), "{doctor}");
    for (args, expected) in [
        (&["show", "large"][..], "`large.md`: it is larger than 1 MiB"),
        (&["forget", "large.md"], "`large.md`: it is larger than 1 MiB"),
        (&["show", "link"], "Failed to read memory: `link.md`"),
        (&["forget", "fine"], "`MEMORY.md`: it is not a file"),
        (&["show", "../fine"], "No such memory: `../fine`"),
        (&["show", "/etc/hosts"], "No such memory: `/etc/hosts`"),
    ] {
        let said = run_and_render(&world, args);
        assert!(said.starts_with("exit Some(1)\n") && said.contains(expected), "{args:?}: {said}");
    }
    assert!(dir.join("fine.md").is_file() && dir.join("MEMORY.md").is_dir(), "and nothing is changed");
    let output = world.run(&loci().args(["-p", "hi"]));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Hello.\n"), "{output:?}");
    let shown = world.last_request().messages()[0].to_string();
    assert!(shown.contains("[The index cannot be shown: it is not a file. Read it in parts"), "{shown}");
}

/// Invariant 6 of `docs/design/memory.md`. Files by other programs are respected in whatever form they have.
#[tokio::test]
async fn every_file_encoding_is_shown_and_preserved() {
    let world = World::new([]).await;
    let whole = memory("x", "of its own");
    let crlf = whole.replace('\n', "\r\n");
    let files: [(&str, &[u8]); 6] = [
        ("bom.md", format!("\u{feff}{whole}").as_bytes()),
        ("crlf.md", crlf.as_bytes()),
        ("latin.md", b"---\nname: x\ndescription: caf\xe9\ntype: feedback\n---\nText.\n"),
        ("open.md", b"---\nname: x\nnever closed\n"),
        ("with space.md", whole.as_bytes()),
        ("\u{fc}n\u{ef}-\u{6587}.md", whole.as_bytes()),
    ]
    .map(|(name, bytes)| (name, Box::leak(bytes.to_vec().into_boxed_slice()) as &[u8]));
    let path = |name: &str| memory_dir(&world).join(name);
    remember(&world, "MEMORY.md", "- [one](open.md): a\n- [other](open.md): b\n");
    for (name, bytes) in files {
        std::fs::write(path(name), bytes).unwrap();
        assert_eq!(run(&world, &["show", name]).code, Some(0), "{name}");
        let is_text = name != "latin.md";
        let edited = run(&world, &["edit", name, "--text", "New.\nNewer."]);
        assert_eq!(edited.code, Some(u8::from(!is_text).into()), "{name}: {edited:?}");
        assert!(is_text || edited.stderr.contains("because it is not UTF-8"), "{edited:?}");
        let text = std::fs::read(path(name)).unwrap();
        let (bom, end) = (text.starts_with(b"\xef\xbb\xbf"), if name == "crlf.md" { "\r\n" } else { "\n" });
        assert_eq!(bom, name == "bom.md", "{name}");
        assert_eq!(text.ends_with(format!("New.{end}Newer.{end}").as_bytes()), is_text, "{name}");
        assert_eq!(text.windows(2).any(|it| it == b"\r\n"), name == "crlf.md", "{name}");
        assert_eq!(run(&world, &["forget", name]).code, Some(0), "{name}");
        assert!(!path(name).exists(), "{name}");
        if name == "open.md" {
            assert_eq!(read(&world, "MEMORY.md"), "", "both lines are gone");
        }
        let n_undone = if is_text { 2 } else { 1 };
        (0..n_undone).for_each(|_| assert_eq!(run(&world, &["undo"]).code, Some(0), "{name}"));
        assert_eq!(std::fs::read(path(name)).unwrap(), bytes, "{name}");
    }
    assert_eq!(read(&world, "MEMORY.md").lines().count(), 2);
    // Nor is an index that is no text.
    std::fs::write(path("MEMORY.md"), b"- [caf\xe9](open.md): a\r\n").unwrap();
    let refused = run_and_render(&world, &["forget", "open.md"]);
    assert!(refused.contains("it is not UTF-8 and would not stay as it is: `MEMORY.md`"), "{refused}");
    assert!(path("open.md").exists());
    assert_eq!(run(&world, &["forget", "crlf.md"]).code, Some(0), "no line of it changes");
}

/// What a team shares, and logs of days, are seen and corrected like other memories, and no path leads out.
#[tokio::test]
async fn memories_in_directories_are_found_by_their_path() {
    let world = World::new([]).await;
    remember(&world, "team/ops/deploy.md", &memory("deploy", "on Mondays"));
    remember(&world, "logs/2026/01/2026-01-02.md", "a day\n");
    std::fs::write(world.home.home().join("outside.md"), "theirs").unwrap();
    std::os::unix::fs::symlink(world.home.home(), memory_dir(&world).join("team/link")).unwrap();
    assert!(run_and_render(&world, &["show", "team/ops/deploy"]).contains("description: on Mondays"));
    assert_eq!(run(&world, &["edit", "team/ops/deploy.md", "--text", "On Fridays."]).code, Some(0));
    assert!(read(&world, "team/ops/deploy.md").ends_with("---\nOn Fridays.\n"));
    assert_eq!(run(&world, &["forget", "logs/2026/01/2026-01-02.md"]).code, Some(0));
    assert_eq!(read(&world, "logs/2026/01/2026-01-02.md"), "");
    (0..2).for_each(|_| assert_eq!(run(&world, &["undo"]).code, Some(0)));
    assert_eq!(read(&world, "team/ops/deploy.md"), memory("deploy", "on Mondays"));
    assert_eq!(read(&world, "logs/2026/01/2026-01-02.md"), "a day\n");
    let outside = world.home.home().join("outside.md").display().to_string();
    for name in
        ["team/link/outside.md", "team/../../../../outside.md", "../outside.md", &outside, "team/none"]
    {
        for verb in ["show", "forget"] {
            let refused = run_and_render(&world, &[verb, name]);
            assert!(refused.starts_with("exit Some(1)\nError: No such memory"), "{verb} {name}: {refused}");
        }
    }
    assert_eq!(std::fs::read_to_string(world.home.home().join("outside.md")).unwrap(), "theirs");
}

/// Several memories may have one name; none of them is meant by it then.
#[tokio::test]
async fn a_name_that_several_have_is_refused() {
    let world = World::new([]).await;
    remember(&world, "a.md", &memory("Release Steps", "one"));
    remember(&world, "b.md", &memory("release steps", "other"));
    remember(&world, "c.md.md", &memory("c", "third"));
    remember(&world, "\u{fc}ber.md", &memory("\u{dc}bung", "fourth"));
    for verb in ["show", "forget"] {
        let refused = run_and_render(&world, &[verb, "release steps"]);
        assert!(refused.starts_with("exit Some(1)\n"), "{refused}");
        assert!(refused.contains("Several are called `release steps`: `a.md`, `b.md`"), "{refused}");
    }
    assert!(memory_dir(&world).join("a.md").exists() && memory_dir(&world).join("b.md").exists());
    assert_eq!(run(&world, &["forget", "b"]).code, Some(0));
    for (name, file) in [("RELEASE STEPS", "a.md"), ("c.md", "c.md.md"), ("\u{fc}BUNG", "\u{fc}ber.md")] {
        let shown: Value = serde_json::from_str(&run(&world, &["show", name, "--json"]).stdout).unwrap();
        assert_eq!(shown["file"], file, "{name}");
    }
}

/// Names and texts do nothing at a terminal.
#[tokio::test]
async fn control_characters_in_memories_are_not_printed() {
    let world = World::new([]).await;
    remember(&world, "a\u{1b}[2Jb.md", &memory("x", "d").replace("Text.", "Red: \u{1b}[31m and \u{9b}31m."));
    for args in
        [&["list"][..], &["show", "x"], &["search", "red"], &["doctor"], &["forget", "x"], &["history"]]
    {
        let output = run(&world, args);
        assert!(!output.stdout.contains(['\u{1b}', '\u{9b}']), "{args:?}: {:?}", output.stdout);
        assert!(output.stdout.contains("a[2Jb.md"), "{args:?}: {:?}", output.stdout);
    }
    let history: Value = serde_json::from_str(&run(&world, &["history", "--json"]).stdout).unwrap();
    assert_eq!(history[0]["files"][0]["file"], "a\u{1b}[2Jb.md", "programs are told the name itself");
    let refused = run(&world, &["show", "a\u{1b}[2Jb.md"]);
    assert_eq!(
        refused.stderr.lines().next(),
        Some("Error: No such memory: `a\\u001b[2Jb.md`"),
        "complaints show them as what they are"
    );
}

/// Of several proposals, one that cannot be dealt with does not hide what became of those before it.
#[tokio::test]
async fn accepted_proposals_before_a_failure_are_reported() {
    let world = world().await;
    assert_eq!(run(&world, &["edit", "other.md", "--text", "New."]).code, Some(0), "now there is a book");
    let books = world.home.config_home().join("loci/memory");
    let pending = std::fs::read_dir(books).unwrap().next().unwrap().unwrap().path().join("pending");
    std::fs::create_dir_all(&pending).unwrap();
    for name in ["a.md", "c.md"] {
        std::fs::write(pending.join(name), memory(name, "a proposal")).unwrap();
    }
    std::fs::write(pending.join("b.md"), b"caf\xe9").unwrap();
    let output = run(&world, &["accept", "a", "a", "b", "c"]);
    assert!(output.stdout.starts_with("`a.md` counts from now on") && output.code == Some(1), "{output:?}");
    assert!(output.stdout.lines().count() == 1 && output.stderr.contains("not UTF-8"), "{output:?}");
    let output = run(&world, &["reject", "--all", "--json"]);
    let said: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let done: Vec<&str> = said.iter().filter_map(|it| it["done"].as_str()).collect();
    assert_eq!(done, ["`b.md` is turned down", "`c.md` is turned down"]);
    assert_eq!(run(&world, &["reject", "--all", "--json"]).stdout, "", "nothing is no line");
    assert_eq!(run(&world, &["undo", "3"]).code, Some(0), "what is no text comes back");
    assert_eq!(std::fs::read(pending.join("b.md")).unwrap(), b"caf\xe9");
}

/// Processes that accept the same proposal at once: it counts once, and the others are told.
/// Invariant 7 of `docs/design/memory.md`.
#[tokio::test]
async fn a_proposal_is_accepted_once() {
    let world = world().await;
    assert_eq!(run(&world, &["edit", "other.md", "--text", "New."]).code, Some(0), "now there is a book");
    let books = world.home.config_home().join("loci/memory");
    let pending = std::fs::read_dir(books).unwrap().next().unwrap().unwrap().path().join("pending");
    std::fs::create_dir_all(&pending).unwrap();
    std::fs::write(pending.join("new.md"), memory("new", "a proposal")).unwrap();
    let accept = || world.start_closed(&loci().args(["memory", "accept", "new.md"]));
    let running: Vec<_> = (0..4).map(|_| accept()).collect();
    let ended: Vec<Output> = running.into_iter().map(loci_testkit::Session::finish).collect();
    assert_eq!(ended.iter().filter(|it| it.code == Some(0)).count(), 1, "{ended:?}");
    for other in ended.iter().filter(|it| it.code != Some(0)) {
        let is_told = ["edited", "No such proposal"].iter().any(|it| other.stderr.contains(it));
        assert!(is_told, "{other:?}");
    }
    assert_eq!(read(&world, "MEMORY.md").matches("(new.md)").count(), 1);
    let changes: Value = serde_json::from_str(&run(&world, &["history", "--json"]).stdout).unwrap();
    assert_eq!(changes.as_array().unwrap().iter().filter(|it| it["act"] == "accept").count(), 1);
    assert!(run(&world, &["review"]).stdout.starts_with("Nothing waits"));
}
