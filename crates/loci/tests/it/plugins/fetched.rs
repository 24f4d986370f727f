//! What is said of plugins that are fetched: nothing in it is anything that a terminal would obey.

use loci_testkit::Step;
use serde_json::json;

use super::needs::market;
use super::verbs::fine;
use crate::support::{World, loci};

#[tokio::test]
async fn nothing_that_a_plugin_says_of_itself_talks_to_the_terminal() {
    let world = World::new(Step::text("done")).await;
    let odd = json!({
        "version": "1.0.0",
        "displayName": "Kit\u{1b}[2J",
        "description": "Nice\nInstalled kit@m; nothing runs\u{202e}",
        "author": {"name": "A\u{7}nn"},
        "commands": "./none\u{1b}[1A",
    });
    market(&world, "m", &json!({}), &[("kit", odd)]);
    world.home.write("m/kit/skills/a/SKILL.md", "\u{1b}]0;title\u{7}x");
    let mut said = fine(&world, &["marketplace", "add", "./m"]);
    said += &fine(&world, &["install", "kit"]);
    said += &fine(&world, &["details", "kit"]);
    said += &fine(&world, &["list"]);
    said += &world.run(&loci().args(["skills", "show", "kit:a"])).stdout;
    assert!(said.contains(r"Kit\u{1b}[2J") && said.contains(r"Nice\nInstalled kit@m"), "{said}");
    assert!(!said.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{said:?}");
}
