//! Skills that are given to an agent (`context: fork`).

use loci_testkit::{Recorded, Script, Step};
use serde_json::{Value, json};

use super::{bash, result_of, skill};
use crate::support::{World, assert_fine, is_result, print, stream, user};

fn is_agents(request: &Recorded) -> bool {
    request.header("x-claude-code-agent-id").is_some()
}

fn body(request: &Recorded) -> String {
    String::from_utf8_lossy(&request.body).into_owned()
}

#[tokio::test]
async fn typed_skill_runs_in_an_agent_of_its_type_and_its_answer_is_the_result() {
    let world = World::new([Step::text("one"), Step::text("FOUND a whale"), Step::text("thanks")]).await;
    skill(
        &world,
        "research",
        "---\ncontext: fork\nagent: Explore\nmodel: claude-haiku-4-5\neffort: low\n---\nResearch $ARGUMENTS.",
    );
    let mut session = world.start(&stream([]));
    session.write_json(&user("the first prompt"));
    session.wait_for_json(is_result);
    session.write_json(&user("/research whales /other"));
    let result = session.wait_for_json(is_result);
    assert_eq!((&result["result"], &result["is_error"]), (&json!("FOUND a whale"), &json!(false)));
    session.write_json(&user("go on"));
    session.wait_for_json(is_result);
    session.finish();
    let requests = world.requests();
    assert_eq!(requests.iter().map(is_agents).collect::<Vec<_>>(), [false, true, false]);
    let forked = body(&requests[1]);
    assert!(forked.contains("Research whales /other.") && !forked.contains("the first prompt"), "{forked}");
    assert_eq!(requests[1].json["model"], "claude-haiku-4-5");
    assert!(!requests[1].tool_names().contains(&"Edit"), "Explore changes nothing");
    let last = body(&requests[2]);
    assert!(
        last.contains("<command-name>/research</command-name>") && last.contains("FOUND a whale"),
        "{last}"
    );
    assert!(!last.contains("Research whales"), "the text is the agent's alone");
}

#[tokio::test]
async fn skill_that_the_model_uses_answers_with_what_the_agent_said() {
    let call = Step::call("Skill", json!({"skill": "research", "args": "whales"}));
    let world = World::new([call, Step::text("FOUND a whale"), Step::text("done")]).await;
    skill(&world, "research", "---\ncontext: fork\n---\nResearch $ARGUMENTS.");
    assert_fine(&world.print(["go"]));
    let requests = world.requests();
    assert_eq!(requests.iter().map(is_agents).collect::<Vec<_>>(), [false, true, false]);
    assert!(body(&requests[1]).contains("Research whales."));
    let results = requests[2].tool_results();
    assert!(results[0].text.contains("FOUND a whale") && results[0].text.contains("agentId:"), "{results:?}");
}

#[tokio::test]
async fn grants_and_refusals_of_a_forked_skill_are_the_agents_alone() {
    let agent = Script::new([bash("touch made"), bash("date > never"), Step::text("done")]);
    let script = Script::new([bash("touch late"), Step::text("done")]).route(agent, is_agents);
    let world = World::new(script).await;
    skill(
        &world,
        "make",
        "---\ncontext: fork\nallowed-tools: Bash(touch *), Bash(date *)\ndisallowed-tools: Bash(date *)\n---\nMake it.",
    );
    let mut session = world.start(&stream([]));
    for prompt in ["/make", "now you"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    session.finish();
    let exists = |name: &str| world.home.project().join(name).exists();
    assert_eq!([exists("made"), exists("never"), exists("late")], [true, false, false]);
    let forked = world.requests().into_iter().find(is_agents).unwrap();
    assert!(body(&forked).contains("Not to be used in this turn: Bash(date *)"), "{}", body(&forked));
}

#[tokio::test]
async fn unknown_type_of_agent_is_an_error_that_names_those_there_are() {
    let world = World::new(Step::text("never asked")).await;
    skill(&world, "research", "---\ncontext: fork\nagent: Nobody\n---\nx");
    let output = world.run(&print(["/research", "--output-format", "json"]));
    let result = result_of(&output);
    assert!(result["is_error"] == json!(true), "{result}");
    let said = result["result"].as_str().unwrap();
    assert!(said.contains("`Nobody`") && said.contains("general-purpose"), "{said}");
    assert!(world.model.requests().is_empty());
}

#[tokio::test]
async fn forked_skill_is_not_stacked() {
    let world = World::new([Step::text("done"), Step::text("done")]).await;
    skill(&world, "plain", "Plain: $ARGUMENTS");
    skill(&world, "forked", "---\ncontext: fork\n---\nForked: $ARGUMENTS");
    assert_fine(&world.print(["/plain /forked x"]));
    assert!(body(&world.last_request()).contains("Plain: /forked x"));
    assert_fine(&world.print(["/forked /plain x"]));
    assert!(body(&world.last_request()).contains("Forked: /plain x"));
}

#[tokio::test]
async fn hooks_may_refuse_the_prompt_of_a_forked_skill() {
    let world = World::new(Step::text("never asked")).await;
    skill(&world, "forked", "---\ncontext: fork\n---\nx");
    let hooks: Value = json!({"hooks": {"UserPromptSubmit": [{"hooks": [
        {"type": "command", "command": "echo not today >&2; exit 2"}]}]}});
    world.home.write_config("settings.json", hooks.to_string());
    let output = world.run(&print(["/forked", "--output-format", "json"]));
    assert!(result_of(&output)["result"].as_str().unwrap().contains("not today"), "{output:?}");
    assert!(world.model.requests().is_empty());
}

#[tokio::test]
async fn at_a_terminal_the_agent_works_in_the_background_unless_the_skill_waits() {
    for (field, is_background) in [("", true), ("background: false\n", false)] {
        let script =
            Script::new([Step::text("I saw it.")]).route(Script::new([Step::text("FOUND it")]), is_agents);
        let world = World::new(script).await;
        skill(&world, "research", &format!("---\ncontext: fork\n{field}---\nResearch."));
        let mut screen = world.start_interface(["/research"], (100, 30));
        match is_background {
            true => {
                screen.wait_for("/research works in the background");
                // The model hears of it when the agent is done.
                screen.wait_for("I saw it.");
            }
            false => drop(screen.wait_for("FOUND it")),
        }
        screen.type_text("\x04");
        screen.wait_for("again to leave");
        screen.type_text("\x04");
        screen.finish();
        assert_eq!(world.requests().len(), if is_background { 2 } else { 1 });
    }
}
