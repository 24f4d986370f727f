//! Commands of the shell that a person runs at the prompt.

use loci_testkit::{Screen, Step};

use crate::support::World;

const SIZE: (u16, u16) = (100, 30);

fn leave(mut screen: Screen) {
    screen.type_text("\x04");
    screen.wait_for("again to leave");
    screen.type_text("\x04");
    assert!(screen.finish().is_cooked);
}

/// The texts of what was recorded in the person's name.
fn said(world: &World) -> Vec<String> {
    let lines = world.session();
    let users = lines.iter().filter(|line| line["type"] == "user");
    users.filter_map(|line| line["message"]["content"].as_str()).map(str::to_owned).collect()
}

#[tokio::test]
async fn shell_command_is_recorded_and_the_model_answers() {
    let world = World::new([Step::text("I see one file.")]).await;
    world.home.write("seen.txt", "");
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("!ls *.txt; echo oh >&2\r");
    let contents = screen.wait_for("I see one file.");
    assert!(contents.contains("! ls *.txt; echo oh >&2") && contents.contains("seen.txt"), "{contents}");
    leave(screen);
    let said = said(&world);
    assert_eq!(said[0], "<bash-input>ls *.txt; echo oh >&2</bash-input>");
    assert_eq!(said[1], "<bash-stdout>seen.txt</bash-stdout><bash-stderr>oh</bash-stderr>");
    let sent = world.last_request().json["messages"].to_string();
    assert!(sent.contains("<bash-input>") && sent.contains("seen.txt"), "{sent}");
}

#[tokio::test]
async fn without_an_answer_the_model_hears_of_it_with_the_next_prompt() {
    let world = World::new([Step::text("Then this.")]).await;
    world.home.write_home(".claude/settings.json", r#"{"respondToBashCommands": false}"#);
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("!false\r");
    screen.wait_for("exit code 1");
    screen.wait_for("for shortcuts");
    assert!(world.requests().is_empty());
    screen.type_text("and now\r");
    screen.wait_for("Then this.");
    let sent = world.last_request().json["messages"].to_string();
    assert!(sent.contains("<bash-input>false</bash-input>") && sent.contains("and now"), "{sent}");
    leave(screen);
}

#[tokio::test]
async fn command_behind_two_marks_has_the_terminal_where_the_shell_stands() {
    let world = World::new([Step::text("Never.")]).await;
    world.home.write("sub/file", "");
    world.home.write_home(".claude/settings.json", r#"{"respondToBashCommands": false}"#);
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("!cd sub; tty\r");
    screen.wait_for("with `!!` in the place of `!`");
    screen.type_text("!!printf 'na%s? ' me; read name; echo $name in ${PWD##*/}; test -t 1; (exit 3)\r");
    screen.wait_for("name?");
    screen.type_text("bob\r");
    let contents = screen.wait_for("exit code 3");
    assert!(contents.contains("bob in sub") && contents.contains("ran on the terminal"), "{contents}");
    screen.wait_for("for shortcuts");
    leave(screen);
    let said = said(&world);
    assert!(said[2].starts_with("<bash-input>printf"), "{said:?}");
    let told = "(ran on the terminal, ended with code 3; what it showed there is not kept)";
    assert!(said[3].contains(told) && !said[3].contains("bob"), "{said:?}");
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn escape_stops_a_shell_command_and_keeps_what_it_printed() {
    let world = World::new([Step::text("Never.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("!echo begun; sleep 600\r");
    screen.wait_for("\n  begun");
    screen.type_text("\x1b");
    screen.wait_for("Interrupted");
    assert!(world.requests().is_empty());
    leave(screen);
    assert!(said(&world)[1].contains("begun"), "{:?}", said(&world));
    assert!(world.session().iter().all(|line| line["type"] != "assistant"));
}
