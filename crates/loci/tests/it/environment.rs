//! What surrounds a run: the server, its credentials, the network's ways, background commands, the demo.

use crate::support::{Pipe, World, assert_calls_answered, assert_ended, assert_fine, loci, print};
use expect_test::expect;
use loci_testkit::{HttpVersion, Recorded, Script, ScriptedModel, Step, TestHome};
use serde_json::json;

#[tokio::test]
async fn variables_choose_model_credentials_and_headers() {
    let world = World::new([]).await;
    let binary = loci()
        .args(["-p", "hi", "--betas", "one-2026-01-01,two-2026-02-02"])
        .env("ANTHROPIC_API_KEY", "")
        .env("ANTHROPIC_AUTH_TOKEN", "token-1")
        .env("ANTHROPIC_MODEL", "sonnet")
        .env("ANTHROPIC_DEFAULT_SONNET_MODEL", "gateway/sonnet-7")
        .env("ANTHROPIC_CUSTOM_HEADERS", "X-Team: blue\nX-Trace: on");
    assert_fine(&world.run(&binary));
    let request = world.last_request();
    assert_eq!(request.json["model"], "gateway/sonnet-7");
    for (name, value) in [("authorization", "Bearer token-1"), ("x-team", "blue"), ("x-trace", "on")] {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
    assert_eq!(request.header("x-api-key"), None);
    let betas = request.header("anthropic-beta").unwrap();
    assert!(betas.contains("one-2026-01-01") && betas.contains("two-2026-02-02"), "{betas}");
    // Nothing secret is written down.
    let session = std::fs::read_to_string(&world.home.sessions()[0]).unwrap();
    assert!(!session.contains("token-1"));
}

/// Gateways refuse fields that they do not know; the variables of the reference take them out of requests.
#[tokio::test]
async fn variables_decide_on_caching_thinking_and_effort_of_requests() {
    let world = World::new([]).await;
    let run = |model: &str, vars: &[(&str, &str)]| {
        let binary = loci().args(["-p", "hi", "--model", model]);
        let binary = vars.iter().fold(binary, |binary, (name, value)| binary.env(name, *value));
        assert_fine(&world.run(&binary));
        let request = world.last_request();
        let body = request.json.to_string();
        let marks = [body.contains("cache_control"), body.contains(r#""ttl":"1h""#)];
        let betas = request.header("anthropic-beta").unwrap_or_default().to_owned();
        let fields = [&request.json["thinking"]["type"], &request.json["output_config"]["effort"]];
        (
            marks,
            fields.map(|it| it.as_str().unwrap_or("-").to_owned()),
            betas.contains("interleaved-thinking"),
        )
    };
    let fields = |thinking: &str, effort: &str| [thinking.to_owned(), effort.to_owned()];
    for (model, vars, expected) in [
        ("claude-sonnet-4-5", &[][..], ([true, false], fields("enabled", "-"), true)),
        (
            "claude-sonnet-4-5",
            &[("DISABLE_PROMPT_CACHING", "1"), ("DISABLE_INTERLEAVED_THINKING", "1")],
            ([false, false], fields("enabled", "-"), false),
        ),
        (
            "claude-sonnet-4-5",
            &[("DISABLE_PROMPT_CACHING_SONNET", "1"), ("CLAUDE_CODE_DISABLE_THINKING", "1")],
            ([false, false], fields("-", "-"), false),
        ),
        (
            "claude-opus-4-6",
            &[("DISABLE_PROMPT_CACHING_SONNET", "1"), ("ENABLE_PROMPT_CACHING_1H", "1")],
            ([true, true], fields("adaptive", "high"), false),
        ),
        (
            "claude-opus-4-6",
            &[("CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING", "1")],
            ([true, false], fields("enabled", "high"), true),
        ),
        (
            "gateway-alias",
            &[("CLAUDE_CODE_ALWAYS_ENABLE_EFFORT", "1"), ("CLAUDE_CODE_EFFORT_LEVEL", "low")],
            ([true, false], fields("-", "low"), false),
        ),
    ] {
        assert_eq!(run(model, vars), expected, "{model} {vars:?}");
    }
}

#[tokio::test]
async fn variables_without_an_effect_are_told_by_the_run_and_by_the_doctor() {
    let world = World::new([Step::text("Hi.")]).await;
    let notice = "CLAUDE_CODE_TOOL_MEMORY_LIMIT has no effect in loci: commands have no limit of their own";
    let output = world.run(&print(["hi"]).env("CLAUDE_CODE_TOOL_MEMORY_LIMIT", "4G"));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Hi.\n"), "{output:?}");
    assert!(output.stderr.starts_with(notice), "{}", output.stderr);
    let doctor = world.run(&loci().arg("doctor").env("CLAUDE_CODE_TOOL_MEMORY_LIMIT", "4G"));
    assert!(doctor.stdout.contains(notice), "{}", doctor.stdout);
}

/// `CLAUDE_CODE_SHELL_PREFIX`: whoever audits commands gets each as one word, and runs it.
#[cfg(unix)]
#[tokio::test]
async fn shell_prefix_wraps_commands_hooks_and_servers() {
    use std::os::unix::fs::PermissionsExt as _;
    let calls = [
        Step::call("Bash", json!({"command": "mkdir -p sub; cd sub; echo \"it's $((40 + 2))\""})),
        Step::call("Bash", json!({"command": "pwd; false"})),
    ];
    let world = World::new(calls.into_iter().chain([Step::text("Done.")]).collect::<Vec<_>>()).await;
    let log = world.home.home().join("audit.log");
    let script = format!("#!/bin/bash\nprintf '%s\\n' \"$1\" >> {}\nexec bash -c \"$1\"\n", log.display());
    let audit = world.home.write_home("audit.sh", script);
    std::fs::set_permissions(&audit, std::fs::Permissions::from_mode(0o755)).unwrap();
    let hook = json!([{"hooks": [{"type": "command", "command": "echo from a hook > hooked"}]}]);
    world.home.write_config("settings.json", json!({"hooks": {"PreToolUse": hook}}).to_string());
    let servers = json!({"mcpServers": {"odd": {"command": "/bin/echo", "args": ["two words"]}}}).to_string();
    let binary = print(["hi", "--allowedTools", "Bash", "--mcp-config", &servers]);
    let output = world.run(&binary.env("CLAUDE_CODE_SHELL_PREFIX", audit.display().to_string()));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Done.\n"), "{output:?}");
    let log = std::fs::read_to_string(log).unwrap();
    for part in ["it'\\''s $((40 + 2))", "echo from a hook", "'two words'"] {
        assert!(log.contains(part), "no {part} in {log}");
    }
    assert_eq!(std::fs::read_to_string(world.home.project().join("hooked")).unwrap(), "from a hook\n");
    let messages = world.last_request().json["messages"].to_string();
    let sub = world.home.project().join("sub").display().to_string();
    assert!(messages.contains("it's 42") && messages.contains(&sub), "{messages}");
}

#[tokio::test]
async fn commands_are_told_the_session_the_effort_and_that_they_are_inside() {
    let tell = "echo \"[$CLAUDE_CODE_SESSION_ID $CLAUDE_CODE_CHILD_SESSION $CLAUDE_EFFORT $CLAUDECODE ${CLAUDE_PID:+pid}]\"";
    let world = World::new([Step::call("Bash", json!({"command": tell})), Step::text("Done.")]).await;
    let args =
        ["-p", "hi", "--allowedTools", "Bash", "--model", "claude-opus-4-8", "--output-format", "json"];
    let output = world.run(&loci().args(args));
    assert_fine(&output);
    let result: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let expected = format!("[{} 1 high 1 pid]", result["session_id"].as_str().unwrap());
    let messages = world.last_request().json["messages"].to_string();
    assert!(messages.contains(&expected), "no {expected} in {messages}");
}

#[tokio::test]
async fn a_server_behind_its_own_authority_is_reached_by_http_2() {
    let home = TestHome::new();
    let model =
        ScriptedModel::start_tls([Step::call("Bash", json!({"command": "ls"})), Step::text("Safe.")]).await;
    let authority = home.write_home("authority.pem", model.ca_pem());
    let binary = print(["hi"]).env("NODE_EXTRA_CA_CERTS", authority.display().to_string());
    let output = binary.run(&home, model.base_url(), "");
    assert_fine(&output);
    assert_eq!(output.stdout, "Safe.\n");
    model.requests_valid().unwrap();
    let main = model.main_requests();
    assert!(main.iter().all(|it| it.http_version == HttpVersion::Http2));
    assert!(main.windows(2).all(|it| it[0].connection == it[1].connection), "the connection is kept");

    // Without the authority it is refused, and said why.
    let output = print(["hi"]).run(&home, model.base_url(), "");
    assert_eq!(output.code, Some(1));
    let said = output.stdout.replace(model.base_url(), "<model>");
    expect![[r#"
        API Error: The certificate of `<model>` is not trusted: invalid peer certificate: UnknownIssuer
        If a proxy inspects TLS, or the server is your own, set NODE_EXTRA_CA_CERTS to the certificate of its authority (a PEM file).
    "#]].assert_eq(&said);
}

/// A server on this machine is not made to accept a connection for every turn.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_local_server_keeps_its_connection() {
    let calls = (0..10).map(|_| Step::call("Bash", json!({"command": "ls"})));
    let world = World::new(calls.chain([Step::text("Done.")]).collect::<Vec<_>>()).await;
    assert_fine(&world.print(["hi"]));
    let connections: Vec<usize> = world.requests().iter().map(|it| it.connection).collect();
    assert!(connections.windows(2).any(|it| it[0] == it[1]), "{connections:?}");
}

#[tokio::test]
async fn commands_in_the_background_end_with_the_session() {
    let calls = Step::call("Bash", json!({"command": "sleep 600 > alive.pipe", "run_in_background": true}));
    let world = World::new([calls, Step::text("It runs.")]).await;
    let alive = Pipe::new(&world.home, "alive.pipe");
    let session = world.start_closed(&print(["hi", "--allowedTools", "Bash,Edit(*.pipe)"]));
    let alive = alive.writer_came();
    let output = session.finish();
    assert_fine(&output);
    assert_eq!(output.stdout, "It runs.\n");
    assert_ended(alive);
}

#[tokio::test]
async fn the_demo_does_the_main_job_without_key_or_network() {
    let home = TestHome::new();
    let scratch = home.home().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let demo = loci().args(["demo", "--fast"]).env("TMPDIR", scratch.display().to_string());
    let output = demo.env("ANTHROPIC_API_KEY", "").env("ANTHROPIC_BASE_URL", "").run(&home, "", "");
    assert_fine(&output);
    for sign in [
        "3 failed",
        "7 passed, 0 failed",
        "\n-  local minutes=$((total / 60))\n",
        "tokens ",
        "saved ",
        "resume ",
    ] {
        assert!(output.stdout.contains(sign), "no `{sign}` in\n{}", output.stdout);
    }
    assert_calls_answered(&home.only_session());

    // What it says about going on is true.
    let resume = output.stdout.lines().find_map(|it| it.strip_prefix("resume   cd ")).unwrap();
    let (project, command) = resume.split_once(" && ").unwrap();
    let id = command.split_whitespace().skip_while(|it| *it != "-r").nth(1).unwrap();
    let model = ScriptedModel::start(Step::text("The minutes.")).await;
    let output = print(["What did you change?", "-r", id]).cwd(project).run(&home, model.base_url(), "");
    assert_fine(&output);
    model.requests_valid().unwrap();
    assert_eq!(model.main_requests()[0].n_assistant_turns(), 6);
}

/// What a plain working tree has changed is read from its files as well; a git in a usual place has its settings where they are
/// looked for.
#[cfg(unix)]
#[tokio::test]
async fn plain_repository_is_told_of_without_starting_git() {
    let world = World::with_git([Step::text("ok")]).await;
    world.home.write("a.txt", "one\n");
    world.home.commit("first words");
    world.home.write("a.txt", "two\n");
    world.home.write("new.txt", "");
    let path = world.path("trace.txt");
    let usual = "/usr/local/bin:/usr/bin:/bin";
    assert_fine(&world.run(&print(["hi", "--debug=process", "--debug-file", &path]).env("PATH", usual)));
    let trace = world.home.read("trace.txt");
    // Where the machine's own settings of git have a say in it, git tells.
    let mut machine = std::process::Command::new("git");
    machine.args(["config", "--system", "--list"]).env("PATH", usual);
    if machine.output().is_ok_and(|it| it.stdout.is_empty()) {
        assert!(!trace.contains("git started"), "{trace}");
    }
    let system = world.last_request().system_text();
    assert!(system.contains(" M a.txt\n?? new.txt") && system.contains("first words"), "{system}");
}

/// One `git` tells what the first request says of a repository that is not plain, or whose git is in an unusual place.
#[cfg(unix)]
#[tokio::test]
async fn one_git_is_started_before_the_first_request() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::with_git([Step::text("ok")]).await;
    world.home.write("a.txt", "one\n");
    world.home.commit("first");
    world.home.git(&["config", "user.name", "Ada"]);
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|it| it.is_file()).unwrap();
    let (log, bin) = (world.home.home().join("git.log"), world.home.home().join("bin"));
    let script = format!("#!/bin/sh\necho \"$@\" >> {}\nexec {} \"$@\"\n", log.display(), real.display());
    world.home.write_home("bin/git", script);
    std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let log = log.display().to_string();
    let seen = log.clone();
    let step = Step::dynamic(move |_| {
        let text = std::fs::read_to_string(&seen).unwrap_or_default();
        Step::text(format!("{}", text.lines().count()))
    });
    let world = world.then([step]).await;
    let output = world.run(&print(["hi"]).env("PATH", format!("{}:{path}", bin.display())));
    assert_eq!(output.stdout, "1\n", "{:?}", std::fs::read_to_string(&log));
    assert!(world.last_request().system_text().contains("first"), "what it told is in the request");
}

/// Settings say how long prompts are cached, for the main line and for agents; variables win over them.
#[tokio::test]
async fn settings_and_variables_choose_how_long_prompts_are_cached() {
    const MAIN: &str = "CLAUDE_CODE_PROMPT_CACHE_TTL";
    const AGENTS: &str = "CLAUDE_CODE_SUBAGENT_PROMPT_CACHE_TTL";
    let is_agent = |request: &Recorded| request.header("x-claude-code-agent-id").is_some();
    for (settings, vars, expected) in [
        (json!({}), &[][..], [false, false]),
        (json!({"promptCacheTtl": "1h"}), &[], [true, true]),
        (json!({"promptCacheTtl": "1h", "subagentPromptCacheTtl": "5m"}), &[], [true, false]),
        (json!({"subagentPromptCacheTtl": "1h"}), &[(MAIN, "5m")], [false, true]),
        (json!({"promptCacheTtl": "1h"}), &[(MAIN, "5m"), (AGENTS, "1h")], [false, true]),
        (json!({"promptCacheTtl": "1h"}), &[("FORCE_PROMPT_CACHING_5M", "1")], [false, false]),
    ] {
        let agent = json!({"description": "d", "prompt": "p", "run_in_background": false});
        let script = Script::new([Step::call("Agent", agent), Step::text("Done.")])
            .route([Step::text("Found.")], is_agent);
        let world = World::new(script).await;
        world.home.write_config("settings.json", settings.to_string());
        let binary = vars.iter().fold(print(["hi"]), |binary, (name, value)| binary.env(name, *value));
        assert_fine(&world.run(&binary));
        let requests = world.model.requests();
        let has_long = |wanted: bool| {
            let asked: Vec<&Recorded> =
                requests.iter().filter(|it| is_agent(it) == wanted && it.is_main()).collect();
            assert!(!asked.is_empty(), "{settings} {vars:?}");
            asked.iter().all(|it| it.json.to_string().contains(r#""ttl":"1h""#))
        };
        assert_eq!([has_long(false), has_long(true)], expected, "{settings} {vars:?}");
    }
}
