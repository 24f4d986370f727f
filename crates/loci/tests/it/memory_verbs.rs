//! `loci memory`: looking at memories, changing them, and taking changes back.

use crate::memory::{memory, memory_dir, remember};
use crate::support::{World, loci};
use expect_test::expect;
use loci_testkit::Output;
use serde_json::Value;

fn run(world: &World, args: &[&str]) -> Output {
    world.run(&loci().arg("memory").args(args.iter().copied()))
}

fn said(world: &World, args: &[&str]) -> String {
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
async fn what_is_the_matter_with_memories_is_said() {
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
    .assert_eq(&said(&world, &["doctor"]));
    let list: Value = serde_json::from_str(&run(&world, &["list", "--json"]).stdout).unwrap();
    assert_eq!(list.as_array().map(Vec::len), Some(3));
    assert_eq!(list[2]["flags"].as_array().map(Vec::len), Some(3));
}

/// Invariant 8 of `docs/design/memory.md`. Both sentences are shown, wherever people look.
#[tokio::test]
async fn sentences_that_disagree_are_shown() {
    let world = World::new([]).await;
    let text = |name: &str, text: &str| memory(name, name).replace("Text.", text);
    remember(&world, "MEMORY.md", "- [a](a.md): a\n- [b](b.md): b\n");
    remember(&world, "a.md", &text("staging server", "It is slow. The staging server listens on port 8080."));
    remember(&world, "b.md", &text("staging notes", "Staging runs on port 9090."));
    let (one, other) = ("The staging server listens on port 8080.", "Staging runs on port 9090.");
    let found = format!("a.md: it says \"{one}\", `b.md` says \"{other}\"\n");
    let doctor = said(&world, &["doctor"]);
    assert!(doctor.starts_with("exit Some(1)\n") && doctor.contains(&found), "{doctor}");
    let listed = said(&world, &["list"]);
    assert!(listed.contains(&format!("! it says \"{other}\", `a.md` says \"{one}\"\n")), "{listed}");

    // A proposal is held against what counts already, but not against what it would replace.
    assert_eq!(run(&world, &["edit", "b.md", "--text", other]).code, Some(0), "now there is a book");
    let books = world.home.config_home().join("loci/memory");
    let pending = std::fs::read_dir(books).unwrap().next().unwrap().unwrap().path().join("pending");
    std::fs::create_dir_all(&pending).unwrap();
    std::fs::write(pending.join("new.md"), text("ports", "The staging server is on port 7070.")).unwrap();
    std::fs::write(pending.join("b.md"), text("staging notes", "Staging runs on port 8080.")).unwrap();
    let review = said(&world, &["review"]);
    let (new, changed) = review.split_once("== new.md").map(|(before, after)| (after, before)).unwrap();
    assert!(new.contains("it says \"The staging server is on port 7070.\", `a.md` says"), "{review}");
    assert!(new.contains("`b.md` says \"Staging runs on port 8080.\""), "{review}");
    assert!(!changed.contains("`a.md` says"), "now they agree: {review}");
    let json: Value = serde_json::from_str(&run(&world, &["review", "--json"]).stdout).unwrap();
    assert!(json[1]["flags"].to_string().contains("port 7070"), "{json}");
}

#[tokio::test]
async fn memories_are_shown_found_changed_and_forgotten() {
    let world = world().await;
    assert_eq!(
        said(&world, &["search", "WORDS", "other"]),
        "exit Some(0)\nother.md:3: description: other words\n"
    );
    assert!(said(&world, &["show", "tests.md"]).contains("from: not known"), "written by other means");
    assert_eq!(run(&world, &["edit", "tests.md", "--text", "New text."]).code, Some(0));
    let text = read(&world, "tests.md");
    assert!(text.contains("\nmodified: ") && text.ends_with("---\nNew text.\n"), "{text}");
    assert!(said(&world, &["show", "tests.md"]).contains("by person"));
    assert_eq!(run(&world, &["forget", "tests.md"]).code, Some(0));
    assert_eq!(read(&world, "tests.md"), "");
    assert_eq!(read(&world, "MEMORY.md"), "- [gone](gone.md): nothing\n");
    let history = run(&world, &["history", "tests"]).stdout;
    assert_eq!(history.lines().count(), 2, "{history}");
    assert_eq!(run(&world, &["undo"]).code, Some(0));
    assert_eq!(read(&world, "tests.md"), text);
    assert!(read(&world, "MEMORY.md").contains("tests.md"));
    let missing = said(&world, &["show", "nothing"]);
    assert!(
        missing.contains("No such memory: `nothing`") && missing.contains("loci memory list"),
        "{missing}"
    );
}

/// Invariant 6 of `docs/design/memory.md`.
#[tokio::test]
async fn an_edit_by_hand_is_never_undone() {
    let world = world().await;
    run(&world, &["edit", "tests.md", "--text", "New text."]);
    remember(&world, "tests.md", "by hand");
    let refused = said(&world, &["undo"]);
    assert!(refused.contains("edited meanwhile: `tests.md`"), "{refused}");
    assert_eq!(read(&world, "tests.md"), "by hand");
    assert!(said(&world, &["show", "tests.md"]).contains("edited by hand since"));
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
