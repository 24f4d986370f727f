//! What scripts rely on, sentence by sentence of `docs/headless.md`, where no other test holds it.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::support::{MODEL, World, assert_fine, is_result, loci, print, watched};
use loci_testkit::{Gate, Step};
use rustix::process::Signal;
use serde_json::json;

#[tokio::test]
async fn spent_budget_is_an_error_result_and_code_one() {
    let call = Step::call("Read", json!({"file_path": "a.txt"})).usage(1_000_000, 10, 0, 0);
    let world = World::new([call, Step::text("never")]).await;
    let output = world.run(&print(["hi", "--max-budget-usd", "0.5", "--output-format", "json"]));
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), ""), "{output:?}");
    let result = output.json_lines().into_iter().find(is_result).unwrap();
    assert_eq!(
        (result["subtype"].as_str(), result["is_error"].as_bool()),
        (Some("error_max_budget_usd"), Some(true))
    );
}

/// A person types `loci hi > answer.txt`.
#[tokio::test]
async fn output_that_goes_into_a_pipe_is_the_answer_alone() {
    let world = World::new([Step::text("An answer.")]).await;
    let output = world.start_at_terminal(&loci().args(["--model", MODEL, "hi"])).finish();
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "An answer.\n"), "{output:?}");
    let output = world.start_at_terminal(&loci().args(["--model", MODEL])).finish();
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
    assert!(output.stderr.contains("prompt"), "{}", output.stderr);
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn bad_schema_is_refused_before_the_run() {
    let world = World::new([Step::text("never")]).await;
    for schema in ["{", "5", "[]"] {
        let output = world.run(&print(["hi", "--json-schema", schema]));
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{schema}: {output:?}");
        assert!(!output.stderr.is_empty(), "{schema}");
    }
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn interrupted_run_says_so_in_its_result_and_ends_with_one() {
    let gate = Gate::new();
    let world = World::new([Step::text("one two").wait_before_headers(gate.clone())]).await;
    let mut session = world.start_closed(&watched(["hi"]));
    gate.reached().await;
    session.interrupt();
    let result = session.wait_for_json(is_result);
    assert_eq!(result["subtype"], "error_during_execution", "{result}");
    assert_eq!(session.finish().code, Some(1));
}

#[tokio::test]
async fn hang_up_during_a_turn_ends_without_a_result_and_the_session_goes_on() {
    let gate = Gate::new();
    let world = World::new([Step::text("one two").wait_before_headers(gate.clone())]).await;
    let session = world.start_closed(&watched(["first words"]));
    gate.reached().await;
    session.signal(Signal::HUP);
    let output = session.finish();
    assert_eq!(output.code, Some(129), "{output:?}");
    assert!(!output.json_lines().iter().any(is_result), "{output:?}");
    let world = world.then([Step::text("Three.")]).await;
    assert_eq!(world.print(["go on", "-c"]).code, Some(0));
    assert!(world.conversation().contains("first words"), "{}", world.conversation());
}

#[tokio::test]
async fn run_that_was_started_to_ignore_hang_ups_goes_on() {
    let gate = Gate::new();
    let world = World::new([Step::text("Still here.").wait_before_headers(gate.clone())]).await;
    let binary = print(["hi"]);
    let line = binary.command_line();
    let mut command = Command::new("nohup");
    command.args(&line).current_dir(world.home.project()).env_clear();
    command.envs(world.home.env_vars(world.model.base_url()));
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = child.spawn().unwrap();
    gate.reached().await;
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::HUP).unwrap();
    gate.release();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Still here.\n");
}

#[tokio::test]
async fn sub_command_whose_reader_went_away_is_no_failure() {
    let world = World::new([Step::text("never")]).await;
    for args in
        [&["man"][..], &["completions", "bash"], &["config", "schema"], &["sessions", "list", "--json"]]
    {
        let line = loci().args(args.iter().copied()).command_line();
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).current_dir(world.home.project()).env_clear();
        command.envs(world.home.env_vars(world.model.base_url()));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[tokio::test]
async fn completions_and_manual_pages_know_the_verb_for_editors() {
    let world = World::new([Step::text("never")]).await;
    let output = world.run(&loci().args(["completions", "bash"]));
    assert!(output.stdout.contains("client-terminal"), "{output:?}");
    let dir = world.path("pages");
    assert_eq!(world.run(&loci().args(["man", "--dir", &dir])).code, Some(0));
    assert!(world.home.read("pages/loci-acp.1").contains("client\\-terminal"));
}

/// A verb of other programs is no prompt: nothing is asked of the model, and what to do instead is said.
#[tokio::test]
async fn verbs_that_are_not_here_are_refused_with_what_to_do() {
    let world = World::new([Step::text("ok")]).await;
    for line in [&["update"][..], &["setup-token"], &["project", "purge"], &["attach", "1"]] {
        let output = world.run(&loci().args(line.iter().copied()));
        assert_eq!(output.code, Some(1), "{line:?}: {output:?}");
        assert!(output.stderr.contains(&format!("loci has no verb `{}`", line[0])), "{}", output.stderr);
    }
    assert_fine(&world.run(&loci().args(["-p", "--model", MODEL, "--", "update"])));
    assert_eq!(world.requests().len(), 1, "after `--` it is a prompt");
}
