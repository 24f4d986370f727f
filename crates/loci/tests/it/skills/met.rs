//! Skills that the model hears of on the way: those for certain files, and those of directories below.

use loci_testkit::Step;
use serde_json::json;

use super::skill;
use crate::support::{World, assert_fine, control, is_result, print, stream, user};

fn read(world: &World, file: &str) -> Step {
    Step::call("Read", json!({"file_path": world.path(file)}))
}

/// Returns which requests have a text.
fn requests_with(world: &World, text: &str) -> Vec<bool> {
    world.requests().iter().map(|it| String::from_utf8_lossy(&it.body).contains(text)).collect()
}

#[tokio::test]
async fn skill_with_paths_is_told_behind_the_file_it_is_about() {
    let world = World::new(Step::text("x")).await;
    let script = [read(&world, "docs/a.md"), read(&world, "src/deep/a.rs"), Step::text("done")];
    let world = world.then(script).await;
    world.home.write("docs/a.md", "text");
    world.home.write("src/deep/a.rs", "fn main() {}");
    skill(&world, "rusty", "---\ndescription: About RUST files\npaths: src/**/*.rs\n---\nWrite $0.");
    assert_fine(&world.print(["go"]));
    assert_eq!(requests_with(&world, "- rusty: About RUST files"), [false, false, true]);
    assert!(world.requests().iter().all(|it| it.tool_names().contains(&"Skill")), "the tools stay");
    // People may type it at any time.
    let world = world.then(Step::text("done")).await;
    assert_fine(&world.print(["/rusty now"]));
    assert!(requests_with(&world, "Write now.")[0]);
}

#[tokio::test]
async fn edited_file_makes_skills_known_as_a_read_one_does() {
    let world = World::new(Step::text("x")).await;
    let write = Step::call("Write", json!({"file_path": world.path("src/new.rs"), "content": "x"}));
    let world = world.then([write, Step::text("done")]).await;
    skill(&world, "rusty", "---\ndescription: About RUST files\npaths: src/*.rs\n---\nx");
    assert_fine(&world.run(&print(["go", "--permission-mode", "acceptEdits"])));
    assert_eq!(requests_with(&world, "- rusty: About RUST files"), [false, true]);
}

#[tokio::test]
async fn nested_skills_are_known_once_a_file_beside_them_was_read() {
    let world = World::new(Step::text("x")).await;
    let script = [
        read(&world, "apps/web/src/a.js"),
        Step::call("Skill", json!({"skill": "deploy"})),
        Step::call("Skill", json!({"skill": "apps/web:deploy"})),
        Step::text("done"),
        Step::text("typed"),
    ];
    let world = world.then(script).await;
    world.home.write("apps/web/src/a.js", "x");
    world
        .home
        .write("apps/web/.claude/skills/deploy/SKILL.md", "---\ndescription: Ships the web\n---\nWEB ONLY.");
    world.home.write("apps/web/.claude/skills/own/SKILL.md", "Only here.");
    world.home.write(".claude/skills/deploy/SKILL.md", "---\ndescription: Ships all\n---\nALL.");
    let mut session = world.start(&stream([]));
    session.write_json(&user("go"));
    session.wait_for_json(is_result);
    session.write_json(&user("/apps/web:deploy"));
    session.wait_for_json(is_result);
    session.finish();
    let told = "- apps/web:deploy: For files in apps/web/: Ships the web";
    assert_eq!(requests_with(&world, told), [false, true, true, true, true]);
    assert_eq!(requests_with(&world, "- own: Only here.")[..2], [false, true]);
    assert_eq!(
        requests_with(&world, "in the place of this one: apps/web:deploy.")[..3],
        [false, false, true]
    );
    assert_eq!(requests_with(&world, "WEB ONLY.")[2..], [false, true, true]);
}

#[tokio::test]
async fn agents_are_told_of_skills_too() {
    let agent = json!({"description": "d", "prompt": "look", "subagent_type": "general-purpose"});
    let world = World::new([Step::call("Agent", agent), Step::text("seen"), Step::text("done")]).await;
    skill(&world, "ship", "---\ndescription: Ships the build\n---\nx");
    assert_fine(&world.print(["go"]));
    assert_eq!(requests_with(&world, "- ship: Ships the build"), [true; 3]);
}

#[tokio::test]
async fn directory_that_is_added_brings_its_skills() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let more = world.home.home().join("more");
    std::fs::create_dir_all(more.join(".claude/skills/extra")).unwrap();
    std::fs::write(more.join(".claude/skills/extra/SKILL.md"), "---\ndescription: Comes with it\n---\nEXTRA")
        .unwrap();
    let mut session = world.start(&stream([]));
    session.write_json(&user("first"));
    session.wait_for_json(is_result);
    session.write_json(&control("r1", json!({"subtype": "register_repo_root", "directory": more})));
    session.wait_for_json(|frame| frame["type"] == "control_response");
    session.write_json(&user("second"));
    session.wait_for_json(is_result);
    session.finish();
    assert_eq!(requests_with(&world, "- extra: Comes with it"), [false, true]);
}
