//! Instructions that come with the files they are about.

use loci_testkit::Step;
use serde_json::{Value, json};

use crate::support::{World, assert_fine, print};

fn reads(file: &str) -> Step {
    Step::new().tool("Read", json!({"file_path": file}))
}

/// Returns the reminders behind the last tool results.
fn reminders(messages: &Value) -> Vec<String> {
    let last = messages.as_array().unwrap().iter().rfind(|message| message["role"] == "user").unwrap();
    let blocks = last["content"].as_array().unwrap().iter();
    let texts = blocks.filter(|block| block["type"] == "text").map(|block| block["text"].as_str().unwrap());
    texts.map(str::to_owned).collect()
}

#[tokio::test]
async fn nested_files_and_rules_come_behind_the_read_and_stay_the_same_on_resume() {
    let script = [reads("src/a.ts"), reads("src/b.ts"), Step::text("done")];
    let world = World::new(script).await;
    world.home.write("CLAUDE.md", "TOP");
    world.home.write("src/CLAUDE.md", "<!-- for people -->\nNESTED");
    world.home.write(".claude/rules/ts.md", "---\npaths: src/*.ts\n---\nRULE");
    world.home.write("src/a.ts", "a");
    world.home.write("src/b.ts", "b");
    assert_fine(&world.print(["--allowedTools", "Read", "--", "go"]));
    let requests = world.requests();
    let after_first = reminders(&requests[1].json["messages"]);
    let rule = format!("Contents of {}:\n\nRULE", world.path(".claude/rules/ts.md"));
    let nested = format!("Contents of {}:\n\nNESTED", world.path("src/CLAUDE.md"));
    assert_eq!(
        after_first,
        [rule, nested].map(|text| format!("<system-reminder>\n{text}\n</system-reminder>"))
    );
    assert_eq!(reminders(&requests[2].json["messages"]), [""; 0], "each comes once");

    let attachments: Vec<Value> = world
        .session()
        .iter()
        .filter(|entry| entry["type"] == "attachment")
        .map(|entry| entry["attachment"].clone())
        .collect();
    assert_eq!(
        attachments[1],
        json!({
            "type": "nested_memory",
            "path": world.path("src/CLAUDE.md"),
            "content": {
                "path": world.path("src/CLAUDE.md"),
                "type": "Project",
                "content": "NESTED",
                "contentDiffersFromDisk": true,
            },
            "displayPath": "src/CLAUDE.md",
        })
    );
    assert_eq!(attachments[0]["content"]["globs"], json!(["src/*.ts"]));
    assert_eq!(attachments.len(), 2);

    // A resumed session sends the same bytes, and does not say it again.
    let before = requests[2].json["messages"].as_array().unwrap().clone();
    let world = world.then([reads("src/b.ts"), Step::text("done")]).await;
    assert_fine(&world.print(["-c", "--allowedTools", "Read", "--", "again"]));
    let resumed = &world.requests()[0].json["messages"];
    for (old, new) in before.iter().zip(resumed.as_array().unwrap()).take(before.len() - 1) {
        assert_eq!(without_cache_marks(old), without_cache_marks(new));
    }
    assert_eq!(reminders(&world.last_request().json["messages"]), [""; 0]);
}

fn without_cache_marks(message: &Value) -> Value {
    let mut message = message.clone();
    for block in message["content"].as_array_mut().into_iter().flatten() {
        block.as_object_mut().unwrap().remove("cache_control");
    }
    message
}

#[tokio::test]
async fn a_file_shown_in_full_may_be_edited_and_one_shown_in_part_must_be_read() {
    for (text, is_edited) in [("old words\n", true), ("<!-- for people -->\nold words\n", false)] {
        let edit = Step::new()
            .tool("Edit", json!({"file_path": "CLAUDE.md", "old_string": "old", "new_string": "new"}));
        let world = World::new([edit, Step::text("done")]).await;
        world.home.write("CLAUDE.md", text);
        let run = print(["--permission-mode", "acceptEdits", "--", "go"]);
        assert_fine(&world.run(&run));
        assert_eq!(world.home.read("CLAUDE.md").contains("new words"), is_edited, "{text}");
    }
}

#[tokio::test]
async fn further_directories_are_read_when_asked_for_and_agents_md_unless_refused() {
    for (variable, setting, expected) in [
        ("", "{}", [false, true]),
        ("1", "{}", [true, true]),
        ("", r#"{"readAgentsMd": false}"#, [false, false]),
    ] {
        let world = World::new(Step::text("hi")).await;
        world.home.write("AGENTS.md", "AGENTS");
        world.home.write_home("extra/CLAUDE.md", "EXTRA");
        world.home.write_config("settings.json", setting);
        let run = print(["--add-dir", "~/extra", "--", "hi"])
            .env("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", variable);
        assert_fine(&world.run(&run));
        let sent = world.last_request().json["messages"].to_string();
        assert_eq!(["EXTRA", "AGENTS"].map(|word| sent.contains(word)), expected, "{variable} {setting}");
    }
}

#[tokio::test]
async fn disabled_instructions_load_no_nested_files() {
    let world = World::new([reads("src/a.ts"), Step::text("done")]).await;
    world.home.write("src/CLAUDE.md", "NESTED");
    world.home.write("src/a.ts", "a");
    let run = print(["--allowedTools", "Read", "--", "go"]).env("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1");
    assert_fine(&world.run(&run));
    assert!(!world.last_request().json["messages"].to_string().contains("NESTED"));
}
