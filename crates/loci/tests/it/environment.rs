//! What surrounds a run: the server, its credentials, the network's ways, background commands, the demo.

use crate::support::{Pipe, World, assert_calls_answered, assert_ended, assert_fine, loci, print};
use expect_test::expect;
use loci_testkit::{HttpVersion, ScriptedModel, Step, TestHome};
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
