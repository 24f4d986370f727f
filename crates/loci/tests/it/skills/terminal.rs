//! Skills, and what plugins bring, at a real terminal.

use loci_testkit::Step;

use super::skill;
use crate::support::World;

const SIZE: (u16, u16) = (100, 30);

#[tokio::test]
async fn skill_is_completed_and_run_by_its_name() {
    let world = World::new([Step::text("Well met."), Step::text("Greetings.")]).await;
    skill(
        &world,
        "greeting",
        "---\ndescription: Greets WHO-IS-NAMED\nargument-hint: [who]\n---\nGreet $0 with @notes.txt.",
    );
    world.home.write("notes.txt", "SOME-NOTES");
    // Skills are known once there is a session.
    let mut screen = world.start_interface(["hi"], SIZE);
    screen.wait_for("Well met.");
    screen.type_text("/greet");
    screen.wait_for("Greets WHO-IS-NAMED");
    screen.type_text("\tAnn\r");
    screen.wait_for("Greetings.");
    screen.type_text("/exit\r");
    assert_eq!(screen.finish().output.code, Some(0));
    let sent = world.last_request().json["messages"].to_string();
    assert!(sent.contains("Greet Ann with @notes.txt.") && sent.contains("SOME-NOTES"), "{sent}");
}

#[tokio::test]
async fn theme_of_a_plugin_is_offered() {
    let world = World::new([Step::text("Well met.")]).await;
    world.home.write("kit/.claude-plugin/plugin.json", r#"{"name": "kit"}"#);
    world
        .home
        .write("kit/themes/night.json", r##"{"name": "Kit night", "overrides": {"claude": "#102030"}}"##);
    let mut screen = world.start_interface(["--plugin-dir", "kit", "hi"], SIZE);
    screen.wait_for("Well met.");
    screen.type_text("/theme\r");
    screen.wait_for("Kit night");
    screen.type_text("\x1b");
    screen.wait_gone("Kit night");
    screen.type_text("/exit\r");
    assert_eq!(screen.finish().output.code, Some(0));
}
