//! One turn: what is asked, what runs, what is sent back.

use crate::support::{Pipe, World, assert_fine, conversation, is_result, print, stream, user, watched};
use expect_test::{Expect, expect};
use loci_testkit::{Recorded, Step};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::Write;

#[tokio::test]
async fn a_prompt_is_answered() {
    let world = World::new(Step::text("Hello, wörld.")).await;
    let output = world.print(["Say hello"]);
    assert_fine(&output);
    assert_eq!(output.stdout, "Hello, wörld.\n");

    let request = world.last_request();
    let mut body = request.json.clone();
    let fields = body.as_object_mut().unwrap();
    for (key, long) in [("system", "<system>"), ("tools", "<tools>"), ("messages", "<messages>")] {
        fields.insert(key.into(), long.into());
    }
    expect![[r#"
        {
          "model": "claude-sonnet-4-5",
          "max_tokens": 32000,
          "thinking": {
            "type": "enabled",
            "budget_tokens": 31999
          },
          "context_management": {
            "edits": [
              {
                "type": "clear_thinking_20251015",
                "keep": "all"
              }
            ]
          },
          "stream": true,
          "system": "<system>",
          "tools": "<tools>",
          "messages": "<messages>"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&body).unwrap());
    expect![[r#"
        content-type: application/json
        user-agent: loci/<version> (external, sdk-cli)
        anthropic-version: 2023-06-01
        x-app: cli
        anthropic-beta: interleaved-thinking-2025-05-14,context-management-2025-06-27
        x-claude-code-session-id: <uuid-1>
        x-api-key: sk-ant-test
    "#]]
    .assert_eq(&headers(&request, &world));
    expect![[r#"
        user: Say hello
    "#]]
    .assert_eq(&conversation(&request, &mut world.normaliser()));
}

/// Renders the headers that are ours, without what HTTP adds.
fn headers(request: &Recorded, world: &World) -> String {
    let http = ["host", "content-length", "accept", "accept-encoding"];
    let ours = request.headers.iter().filter(|(name, _)| !http.contains(&name.as_str()));
    let lines: String = ours.map(|(name, value)| format!("{name}: {value}\n")).collect();
    let version = concat!("loci/", env!("CARGO_PKG_VERSION"));
    world.normaliser().literal(version, "loci/<version>").text(&lines)
}

#[tokio::test]
async fn thinking_is_kept_with_its_signature_and_sent_back() {
    let redacted = json!({"type": "redacted_thinking", "data": "b3BhcXVl"});
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    let first =
        Step::new().thinking("Read it.", "c2ln").raw_block(redacted).raw_block(search).raw_block(found);
    let first = first.then_text("Let me look.").tool("Read", json!({"file_path": "a.txt"}));
    let world = World::new([first, Step::text("It says hi.")]).await;
    world.home.write("a.txt", "hi\n");
    assert_fine(&world.print(["What does a.txt say?"]));
    expect![[r#"
        user: What does a.txt say?
        assistant: (thinks Read it.; signed c2ln)
        assistant: {"type":"redacted_thinking","data":"b3BhcXVl"}
        assistant: {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}
        assistant: {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}
        assistant: Let me look.
        assistant: Read {"file_path":"a.txt"} <toolu-1>
        user: <toolu-1>: 1	hi
        2	
    "#]]
    .assert_eq(&world.conversation());
}

#[tokio::test]
async fn read_only_calls_run_together() {
    let calls = Step::text("Both.").tool("Bash", json!({"command": "cat one.pipe"}));
    let calls = calls.tool("Bash", json!({"command": "cat two.pipe"}));
    let world = World::new([calls, Step::text("Both came.")]).await;
    let (one, two) = (Pipe::new(&world.home, "one.pipe"), Pipe::new(&world.home, "two.pipe"));
    let mut session = world.start_closed(&watched(["Read both"]));
    // Both commands run before either can end; then the second ends first.
    let (mut first, mut second) = (one.reader_came(), two.reader_came());
    second.write_all(b"second\n").unwrap();
    drop(second);
    session.wait_for_json(|frame| frame["type"] == "user");
    first.write_all(b"first\n").unwrap();
    drop(first);
    assert_fine(&session.finish());
    // Each result hangs under its own call, what follows under the result written last.
    expect![[r#"
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user Read both
        3 <- 2: assistant Both.
        4 <- 3: assistant calls Bash #1
        5 <- 4: assistant calls Bash #2
        6 <- 5: user answers #2 second
        7 <- 4: user answers #1 first
        8 <- 7: assistant Both came.
        9 cost-state
        10 last-prompt -> 8
    "#]]
    .assert_eq(&world.sketch());
    expect![[r#"
        user: Read both
        assistant: Both.
        assistant: Bash {"command":"cat one.pipe"} <toolu-1>
        assistant: Bash {"command":"cat two.pipe"} <toolu-2>
        user: <toolu-2>: second
        user: <toolu-1>: first
    "#]]
    .assert_eq(&world.conversation());
}

#[tokio::test]
async fn writing_call_waits_for_earlier_calls() {
    let world = World::new([]).await;
    let out = world.path("out.txt");
    let calls = Step::call("Bash", json!({"command": "cat held.pipe"}))
        .tool("Write", json!({"file_path": out, "content": "written\n"}))
        .tool("Read", json!({"file_path": out}))
        .tool("Grep", json!({"pattern": "writ", "output_mode": "content"}));
    let world = world.then([calls, Step::text("Done.")]).await;
    let held = Pipe::new(&world.home, "held.pipe");
    let session = world.start_closed(&print(["Go", "--permission-mode", "acceptEdits"]));
    let mut writer = held.reader_came();
    assert!(!world.home.project().join("out.txt").exists(), "the change ran beside the command before it");
    writer.write_all(b"held\n").unwrap();
    drop(writer);
    assert_fine(&session.finish());
    let results: Vec<String> = world.last_request().tool_results().into_iter().map(|it| it.text).collect();
    let results = world.normaliser().text(&results.join("\n--\n"));
    expect![[r#"
        held
        --
        Created `<project>/out.txt` (1 line).
        --
        1	written
        2	
        --
        out.txt:1:written"#]]
    .assert_eq(&results);
    expect![[r#"
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user Go
        3 <- 2: assistant calls Bash #500
        4 <- 3: assistant calls Write #501
        5 <- 4: assistant calls Read #502
        6 <- 5: assistant calls Grep #503
        7 <- 3: user answers #500 held
        8 <- 4: user answers #501 Created `<project>/out.txt` (1 line).
        9 <- 5: user answers #502 1	written
        10 <- 6: user answers #503 out.txt:1:written
        11 <- 10: assistant Done.
        12 cost-state
        13 last-prompt -> 11
    "#]]
    .assert_eq(&world.sketch());
}

#[tokio::test]
async fn invalid_call_gets_an_error_result() {
    let cases = [
        (
            "Teleport",
            json!({}),
            expect![
                "<tool_use_error>No such tool available: Teleport. The tools are: Agent, Bash, Edit, Glob, Grep, ListAgents, NotebookEdit, Read, Recall, SendMessage, TaskCreate, TaskGet, TaskList, TaskOutput, TaskStop, TaskUpdate, Write, EnterWorktree, ExitWorktree, CronCreate, CronDelete, CronList, ScheduleWakeup, WebFetch, WebSearch, Monitor</tool_use_error>"
            ],
        ),
        (
            "Read",
            json!({}),
            expect![[r#"
            <tool_use_error>InputValidationError: the input of Read does not fit its schema:
            "file_path" is a required property</tool_use_error>"#]],
        ),
        (
            "Read",
            json!({"file_path": "notes.txt", "limit": "many"}),
            expect![[r#"
            <tool_use_error>InputValidationError: the input of Read does not fit its schema:
            `limit`: "many" is not of type "integer"</tool_use_error>"#]],
        ),
        (
            "Read",
            json!({"file_path": "notes.txt", "colour": "red"}),
            expect![[r#"
            <tool_use_error>InputValidationError: the input of Read does not fit its schema:
            Additional properties are not allowed ('colour' was unexpected)</tool_use_error>"#]],
        ),
        (
            "Grep",
            json!({"pattern": "("}),
            expect![[r#"
            <tool_use_error>`pattern` is not a valid regular expression: regex parse error:
                (?:()
                ^
            error: unclosed group
            Patterns use Rust regex syntax: no look-around or back-references; escape braces and other special characters that are meant literally.</tool_use_error>"#]],
        ),
        (
            "Read",
            json!({"file_path": "missing.txt"}),
            expect!["File does not exist. Note: your current working directory is <project>."],
        ),
        (
            "Edit",
            json!({"file_path": "notes.txt", "old_string": "a", "new_string": "b"}),
            expect![
                "Permission to use Edit was not granted: it changes something and no rule allows it. This run cannot ask anyone. Take another way, or tell the user which permission is needed."
            ],
        ),
        (
            "Bash",
            json!({"command": "cat held.pipe", "timeout": 50}),
            expect!["The command did not end within 0.05 s and was stopped, with everything it had started."],
        ),
        (
            "Bash",
            json!({"command": "ls missing"}),
            expect![[r#"
            Exit code 2
            ls: cannot access 'missing': No such file or directory"#]],
        ),
    ];
    for (tool, input, expected) in cases {
        check_result(tool, input, Failing::Yes, expected).await;
    }
}

#[tokio::test]
async fn numbers_and_booleans_may_come_as_text() {
    let cases = [
        ("Read", json!({"file_path": "notes.txt", "offset": "2", "limit": "1"}), expect!["2	two"]),
        (
            "Grep",
            json!({"pattern": "TWO", "output_mode": "content", "-i": "true", "-n": "false"}),
            expect!["notes.txt:two"],
        ),
    ];
    for (tool, input, expected) in cases {
        check_result(tool, input, Failing::No, expected).await;
    }
}

/// Whether a call is expected to end as an error.
#[derive(PartialEq)]
enum Failing {
    Yes,
    No,
}

/// Lets the model make one call, and compares the result it is sent.
async fn check_result(tool: &str, input: Value, failing: Failing, expected: Expect) {
    let world = World::new([Step::call(tool, input.clone()), Step::text("I see.")]).await;
    world.home.write("notes.txt", "one\ntwo\nthree\n");
    let _never_written = Pipe::new(&world.home, "held.pipe");
    let output = world.run(&print(["Try"]).env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"));
    assert_fine(&output);
    assert_eq!(output.stdout, "I see.\n", "the turn goes on");
    let results = world.last_request().tool_results();
    let [result] = results.as_slice() else { panic!("expected one result: {results:?}") };
    assert_eq!(result.is_error, failing == Failing::Yes, "{tool} {input}: {}", result.text);
    expected.assert_eq(&world.normaliser().text(&result.text));
    world.session();
}

#[tokio::test]
async fn each_request_extends_the_previous_one() {
    let world = World::new([]).await;
    let path = world.path("a.txt");
    let world = world
        .then([
            Step::text("First I read.").thinking("Hm.", "c2ln").tool("Read", json!({"file_path": path})),
            Step::call("Edit", json!({"file_path": path, "old_string": "one", "new_string": "1.0e3"})),
            Step::call("Read", json!({"file_path": path})).tool("Glob", json!({"pattern": "*.txt"})),
            Step::text("\u{2028}Half").stop_reason("max_tokens"),
            Step::call("Bash", json!({"command": "no-such-command-here"})),
            Step::text("Answered."),
            Step::text("Again."),
        ])
        .await;
    world.home.write("a.txt", "one\n");
    let mut session = world.start(&stream(["--permission-mode", "acceptEdits"]));
    for prompt in ["Change it", "And now?"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    assert_fine(&session.finish());

    let requests = world.requests();
    assert_eq!(requests.len(), 7);
    let bodies: Vec<Body> = requests.iter().map(Body::of).collect();
    for pair in bodies.windows(2) {
        assert_eq!(pair[0].system, pair[1].system);
        assert_eq!(pair[0].tools, pair[1].tools);
        assert!(pair[1].messages.len() > pair[0].messages.len());
        assert_eq!(pair[0].messages, pair[1].messages[..pair[0].messages.len()]);
    }
    for request in &requests {
        check_cache_marks(request);
    }
}

/// The long parts of a body as their bytes, without cache marks.
#[derive(Deserialize)]
struct RawBody<'a> {
    #[serde(borrow)]
    system: &'a RawValue,
    #[serde(borrow)]
    tools: &'a RawValue,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Debug, PartialEq)]
struct Body {
    system: String,
    tools: String,
    messages: Vec<String>,
}

impl Body {
    fn of(request: &Recorded) -> Self {
        let raw: RawBody<'_> = serde_json::from_slice(&request.body).unwrap();
        let unmarked = |it: &RawValue| it.get().replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        Self {
            system: unmarked(raw.system),
            tools: unmarked(raw.tools),
            messages: raw.messages.into_iter().map(unmarked).collect(),
        }
    }
}

/// The last block of the last user message is marked, and there are at most four marks.
fn check_cache_marks(request: &Recorded) {
    let text = std::str::from_utf8(&request.body).unwrap();
    let n_marks = text.matches(r#""cache_control":{"#).count();
    assert!((2..=4).contains(&n_marks), "{n_marks} marks");
    let last = request.messages().iter().rfind(|it| it["role"] == "user").unwrap();
    let block = last["content"].as_array().unwrap().last().unwrap();
    assert_eq!(block["cache_control"], json!({"type": "ephemeral"}), "{last}");
}

#[tokio::test]
async fn the_model_is_told_where_it_is() {
    let world = World::with_git(Step::text("ok")).await;
    world.home.write("new.txt", "");
    assert_fine(&world.print(["hi"]));
    let system = world.last_request().system_text();
    let (_, environment) = system.split_once("# Environment\n").unwrap();
    let environment = environment.replace(std::env::consts::OS, "<os>");
    expect![[r#"
        - Working directory: <project>
        - Git repository: yes
        - Platform: <os>
        - Shell of the Bash tool: bash
        - Model: claude-sonnet-4-5

        # Git
        The repository when this session began; it does not update by itself.
        Branch: main
        Main branch: main
        Status:
        ?? new.txt
        Recent commits:
        4185bac first commit"#]]
    .assert_eq(&world.normaliser().text(&environment));
    expect!["You are loci, a coding agent working in the user's terminal and files."]
        .assert_eq(&first_line(&system));
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn the_system_prompt_can_be_replaced_and_added_to() {
    let cases: [(&[&str], Expect); 4] = [
        (
            &["--system-prompt", "You test."],
            expect![[r#"
            You are loci, a coding agent working in the user's terminal and files.
            You test."#]],
        ),
        (
            &["--system-prompt", ""],
            expect!["You are loci, a coding agent working in the user's terminal and files."],
        ),
        (
            &["--system-prompt=", "--append-system-prompt", "Be terse."],
            expect![[r#"
            You are loci, a coding agent working in the user's terminal and files.
            Be terse."#]],
        ),
        (
            &["--system-prompt-file", "prompt.md", "--append-system-prompt-file=more.md"],
            expect![[r#"
            You are loci, a coding agent working in the user's terminal and files.
            From a file.


            More of it.
        "#]],
        ),
    ];
    for (args, expected) in cases {
        let world = World::with_git(Step::text("ok")).await;
        world.home.write("prompt.md", "From a file.\n");
        world.home.write("more.md", "More of it.\n");
        assert_fine(&world.run(&print(["hi"]).args(args.iter().copied())));
        expected.assert_eq(&world.last_request().system_text());
    }
}

#[tokio::test]
async fn instruction_files_open_the_conversation() {
    let world = World::new([Step::text("ok"), Step::text("ok")]).await;
    world.home.write_config("CLAUDE.md", "User rule.\n");
    world.home.write("CLAUDE.md", "<!-- note to people -->\nProject rule.\n");
    world.home.write(".claude/CLAUDE.md", "Hidden project rule.\n");
    world.home.write("CLAUDE.local.md", "Local rule.\n");
    world.home.write("sub/CLAUDE.md", "Not above the working directory.\n");
    assert_fine(&world.print(["hi"]));
    let first = world.last_request().messages()[0]["content"][0]["text"].as_str().unwrap().to_owned();
    let (before_date, date) = first.split_once("Today is ").unwrap();
    assert!(date.starts_with("20"), "{date}");
    expect![[r#"
        <system-reminder>
        Context for this conversation, collected when it began:

        # claudeMd
        Instructions from the user and the project. Follow them as written; they take precedence over habits.

        Contents of <home>/.claude/CLAUDE.md (the user's own instructions, for all projects):

        User rule.

        Contents of <project>/CLAUDE.md (project instructions, checked into the code base):

        Project rule.

        Contents of <project>/.claude/CLAUDE.md (project instructions, checked into the code base):

        Hidden project rule.

        Contents of <project>/CLAUDE.local.md (the user's own instructions for this project, not checked in):

        Local rule.

        # currentDate
    "#]]
    .assert_eq(&world.normaliser().text(before_date));

    // The file of the session holds what was said, not the context, which is collected at each start.
    assert!(!world.session().iter().any(|it| it.to_string().contains("Project rule")));
    assert_fine(&world.run(&print(["hi", "--setting-sources="])));
    assert!(!world.last_request().body.windows(4).any(|it| it == b"rule"));
}

#[tokio::test]
async fn more_directories_can_be_worked_in() {
    let world = World::new([]).await;
    let outside = world.home.write_home("other/b.txt", "beside\n");
    let calls = Step::call("Read", json!({"file_path": outside}));
    let world = world.then([calls.clone(), Step::text("ok")]).await;
    let other = outside.parent().unwrap().display().to_string();
    assert_fine(&world.print(["hi", "--add-dir", &other]));
    let request = world.last_request();
    assert_eq!(request.tool_results()[0].text, "1\tbeside\n2\t");
    assert!(request.system_text().contains(&format!("- Also part of this session: {other}")));

    let output = world.print(["hi", "--add-dir", "no/such/dir"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    assert!(output.stderr.contains("no/such/dir"), "{}", output.stderr);
}

/// A model that repeats one failing call costs money and comes to nothing.
#[tokio::test]
async fn model_that_repeats_a_failing_call_is_stopped() {
    let call = Step::call("Read", json!({"file_path": "/nonexistent/x"}));
    let world = World::new(loci_testkit::Script::repeat(call, 60)).await;
    let output = world.run(&print(["Try", "--output-format", "json"]));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stdout.contains("made the same failing call 30 times in a row (Read)"), "{output:?}");
    assert_eq!(world.model.requests().len(), 31);
}
