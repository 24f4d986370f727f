//! Answers of a given shape: `--json-schema` and `initialize.jsonSchema`.

use crate::support::{World, assert_fine, control, is_result, print, stream, user};
use loci_testkit::{Binary, Output, Step};
use serde_json::{Value, json};

const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"},"mail":{"type":"string","format":"email"}},"required":["n"]}"#;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn answer(input: Value) -> Step {
    Step::call("StructuredOutput", input)
}

fn result(output: &Output) -> Value {
    output.json_lines().into_iter().find(is_result).unwrap_or_else(|| panic!("{output:?}"))
}

fn with_schema() -> Binary {
    print(["How many?", "--output-format", "json", "--json-schema", SCHEMA])
}

#[tokio::test]
async fn valid_call_ends_the_run_without_another_model_request() {
    let world = World::new([answer(json!({"n": 3, "mail": "no address"})), Step::text("never asked")]).await;
    let output = world.run(&with_schema());
    assert_fine(&output);
    let result = result(&output);
    assert_eq!(result["structured_output"], json!({"n": 3, "mail": "no address"}), "format is not enforced");
    assert_eq!(result["result"], r#"{"n":3,"mail":"no address"}"#, "its compact JSON");
    assert_eq!(
        (&result["subtype"], &result["stop_reason"], &result["num_turns"]),
        (&json!("success"), &json!("tool_use"), &json!(2))
    );
    let requests = world.requests();
    assert_eq!(requests.len(), 1);
    let tools = requests[0].json["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "StructuredOutput").unwrap();
    assert_eq!(tool["input_schema"], schema());
}

#[tokio::test]
async fn text_output_is_the_compact_json() {
    let world = World::new([answer(json!({"n": 3}))]).await;
    let output = world.run(&print(["How many?", "--json-schema", SCHEMA, "--tools", ""]));
    assert_fine(&output);
    assert_eq!(output.stdout, "{\"n\":3}\n");
    assert_eq!(world.last_request().tool_names(), ["StructuredOutput"], "--tools does not take it away");
}

#[tokio::test]
async fn invalid_call_gets_an_error_and_plain_text_a_reminder() {
    let steps = [answer(json!({"n": "many"})), Step::text("It is 3."), answer(json!({"n": 3}))];
    let world = World::new(steps).await;
    let output = world.run(&with_schema());
    assert_fine(&output);
    assert_eq!(result(&output)["structured_output"], json!({"n": 3}));
    let requests = world.requests();
    assert_eq!(requests.len(), 3);
    let refused = requests[1].messages().last().unwrap().to_string();
    assert!(refused.contains("InputValidationError") && refused.contains("is_error"), "{refused}");
    let reminded = requests[2].messages().last().unwrap().to_string();
    assert!(reminded.contains("StructuredOutput tool"), "{reminded}");
}

#[tokio::test]
async fn run_gives_up_after_five_attempts() {
    let bad = || answer(json!({}));
    let world =
        World::new([bad(), Step::text("3"), bad(), Step::text("3"), bad(), answer(json!({"n": 3}))]).await;
    let output = world.run(&with_schema());
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), ""), "{output:?}");
    let result = result(&output);
    assert_eq!(result["subtype"], "error_max_structured_output_retries");
    assert_eq!((&result["is_error"], &result["result"]), (&json!(true), &Value::Null));
    assert!(result["errors"][0].as_str().unwrap().contains("5 attempts"), "{result}");
    assert_eq!(world.requests().len(), 5);
}

#[tokio::test]
async fn max_structured_output_retries_changes_the_number_of_attempts() {
    let world = World::new([answer(json!({})), answer(json!({"n": 3}))]).await;
    let output = world.run(&with_schema().env("MAX_STRUCTURED_OUTPUT_RETRIES", "1"));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn schema_of_initialize_counts_for_every_turn_and_after_a_clear() {
    let world = World::new([1, 2, 3].map(|n| answer(json!({"n": n})))).await;
    let lines = [
        control("r1", json!({"subtype": "initialize", "jsonSchema": schema()})),
        user("one"),
        user("two"),
        user("/clear"),
        user("three"),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n");
    let output = world.run_with_stdin(&stream([]), &lines);
    assert_fine(&output);
    let answers: Vec<Value> = output
        .json_lines()
        .into_iter()
        .filter(is_result)
        .map(|result| result["structured_output"]["n"].clone())
        .filter(|n| !n.is_null())
        .collect();
    assert_eq!(answers, [1, 2, 3]);
}

#[tokio::test]
async fn session_that_ended_with_a_structured_answer_goes_on_without_repairs() {
    let world = World::new([answer(json!({"n": 3})), Step::text("Because.")]).await;
    assert_fine(&world.run(&with_schema()));
    assert_fine(&world.print(["Why?", "-c"]));
    let text = world.last_request().json.to_string();
    assert!(!text.contains("Continue from where") && !text.contains("No response requested"), "{text}");
    world.session();
}

#[tokio::test]
async fn bad_schemas_are_refused_at_start() {
    let world = World::new([]).await;
    for (schema, needle) in [
        ("{", "--json-schema is not JSON"),
        (r#"{"type":"array"}"#, "does not describe an object"),
        (r#"{"type":"object","properties":{"a":{"type":"nonsense"}}}"#, "cannot be used"),
    ] {
        let output = world.run(&print(["hi", "--json-schema", schema]));
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
        assert!(output.stderr.contains(needle), "{schema}: {}", output.stderr);
    }
    assert_eq!(world.model.requests().len(), 0);
}
