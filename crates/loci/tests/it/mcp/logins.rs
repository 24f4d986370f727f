//! Logins at MCP servers with the binary: `loci mcp login` and `logout`, what runs do with them, and how clients begin one.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use loci_testkit::{AuthorizedServer, Binary, Output, Session, Step};
use serde_json::{Value, json};

use super::config;
use crate::settings::tool_result;
use crate::support::{World, control, is_result, loci, print, stream, user, wait_for_file};

/// A browser: follows the page wherever it leads. Where it ends is in the file.
const BROWSER: &str = r#"#!/usr/bin/env python3
import os, sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    said = opener.open(sys.argv[1]).read().decode()
except urllib.error.HTTPError as error:
    said = error.read().decode()
with open(__file__ + ".part", "w") as page:
    page.write(said)
os.rename(__file__ + ".part", __file__ + ".said")
"#;

fn browser(world: &World) -> String {
    let path = world.home.write_home("browser", BROWSER);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn mcp(world: &World, args: &[&str]) -> Output {
    world.run(&loci().arg("mcp").args(args.iter().copied()).env("BROWSER", browser(world)))
}

fn credentials_file(world: &World) -> PathBuf {
    world.home.config_home().join(".credentials.json")
}

fn credentials(world: &World) -> Value {
    serde_json::from_str(&std::fs::read_to_string(credentials_file(world)).unwrap()).unwrap()
}

/// Changes what is kept of the only login.
fn change_login(world: &World, change: impl FnOnce(&mut Value)) {
    let mut kept = credentials(world);
    let logins = kept["mcpOAuth"].as_object_mut().unwrap();
    change(logins.values_mut().next().unwrap());
    std::fs::write(credentials_file(world), kept.to_string()).unwrap();
}

/// A world with the server `s` of the user, which wants a login.
async fn world(server: &AuthorizedServer, script: impl Into<loci_testkit::Script>) -> World {
    let world = World::new(script).await;
    let output = mcp(&world, &["add", "-s", "user", "-t", "http", "s", &server.url()]);
    assert_eq!(output.code, Some(0), "{output:?}");
    world
}

#[tokio::test]
async fn login_call_expiry_renewal_and_logout() {
    let server = AuthorizedServer::start(&json!({"resource_scopes": "read"}));
    let world = world(&server, [Step::text("None.")]).await;
    // Another program's login, which is none of our business.
    let theirs = json!({"claudeAiOauth": {"accessToken": "theirs"}, "unknown": [1, 2]});
    std::fs::create_dir_all(world.home.config_home()).unwrap();
    std::fs::write(credentials_file(&world), theirs.to_string()).unwrap();
    std::fs::set_permissions(credentials_file(&world), std::fs::Permissions::from_mode(0o600)).unwrap();

    let output = world
        .run(&print(["hi", "--output-format", "stream-json", "--verbose"]).env("BROWSER", browser(&world)));
    let init = output.json_lines().into_iter().find(|frame| frame["subtype"] == "init").unwrap();
    assert_eq!(init["mcp_servers"], json!([{"name": "s", "status": "needs-auth", "source": "user"}]));
    assert!(output.stderr.contains("`loci mcp login s`"), "{}", output.stderr);
    assert!(server.requests_to("/authorize").is_empty(), "a run without a terminal opens no browser");
    assert!(mcp(&world, &["list"]).stdout.contains("! needs a login, `loci mcp login s`"));

    let output = mcp(&world, &["login", "s"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("Logged in at the MCP server `s`"), "{output:?}");
    let page = PathBuf::from(format!("{}.said", browser(&world)));
    // The browser is a program of its own, which may end after ours.
    wait_for_file(&page);
    let said = std::fs::read_to_string(page).unwrap();
    assert!(said.contains("You are logged in"), "{said}");
    let kept = credentials(&world);
    assert_eq!((&kept["claudeAiOauth"], &kept["unknown"]), (&theirs["claudeAiOauth"], &json!([1, 2])));
    let login = kept["mcpOAuth"].as_object().unwrap().values().next().unwrap().clone();
    assert_eq!((&login["serverName"], &login["serverUrl"]), (&json!("s"), &json!(server.url())));
    let mode = std::fs::metadata(credentials_file(&world)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(mcp(&world, &["get", "s"]).stdout.contains("Login: logged in"));

    let call = || [Step::call("mcp__s__scope", json!({})), Step::text("Done.")];
    let world = world.then(call()).await;
    let run = print(["hi", "--allowedTools", "mcp__s", "--debug-file", "debug.log"]);
    assert_eq!(world.run(&run).code, Some(0));
    assert_eq!(tool_result(&world), "scope: read");

    change_login(&world, |login| login["expiresAt"] = json!(1));
    let world = world.then(call()).await;
    assert_eq!(world.run(&run).code, Some(0));
    assert_eq!(tool_result(&world), "scope: read", "an expired token is renewed");
    change_login(&world, |login| login["accessToken"] = json!("access-gone"));
    let world = world.then(call()).await;
    assert_eq!(world.run(&run).code, Some(0));
    assert_eq!(tool_result(&world), "scope: read", "a refused token is renewed");
    let renewed = credentials(&world)["mcpOAuth"].as_object().unwrap().values().next().unwrap().clone();
    assert_ne!(renewed["refreshToken"], login["refreshToken"]);
    let trace = world.home.read("debug.log");
    for secret in ["access-", "refresh-"] {
        assert!(!trace.contains(secret), "no token is in the trace");
        assert!(!mcp(&world, &["logs", "s"]).stdout.contains(secret), "no token is in the log");
    }

    assert!(mcp(&world, &["logout", "s"]).stdout.contains("Logged out"));
    assert_eq!(credentials(&world)["mcpOAuth"], json!({}));
    assert_eq!(credentials(&world)["claudeAiOauth"], theirs["claudeAiOauth"]);
    assert_eq!(server.requests_to("/revoke").len(), 2);
    assert!(mcp(&world, &["logout", "s"]).stdout.contains("There is no login"));
    assert!(mcp(&world, &["list"]).stdout.contains("! needs a login"));
}

#[tokio::test]
async fn pasted_address_ends_a_login_without_a_browser() {
    let server = AuthorizedServer::start(&json!({}));
    let world = world(&server, Step::text("x")).await;
    // What is said goes to standard error, which is read here as it comes.
    let command = format!("exec '{}' mcp login s --no-browser 2>&1", env!("CARGO_BIN_EXE_loci"));
    let mut session =
        world.start(&Binary::new("/bin/sh").args(["-c", &command]).env("BROWSER", "/bin/false"));
    let page = wait_for_line(&mut session, "http://127.0.0.1").trim().to_owned();
    let address = redirected_to(&page);
    session.write_line(&address.replace("state=", "state=forged"));
    wait_for_line(&mut session, "another state");
    session.write_line(&address);
    wait_for_line(&mut session, "Logged in");
    assert_eq!(session.finish().code, Some(0));
}

fn wait_for_line(session: &mut Session, part: &str) -> String {
    loop {
        let line = session.next_line().unwrap_or_else(|| panic!("never: {part}"));
        if line.contains(part) {
            return line;
        }
    }
}

/// Returns where a page sends a browser.
fn redirected_to(page: &str) -> String {
    let script = "import sys, http.client, urllib.parse as u\np = u.urlsplit(sys.argv[1])\n\
                  c = http.client.HTTPConnection(p.netloc)\nc.request('GET', p.path + '?' + p.query)\n\
                  print(c.getresponse().headers['Location'])";
    let output = std::process::Command::new("python3").args(["-c", script, page]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn login_that_fails_says_why_and_keeps_nothing() {
    for (options, said) in [
        (json!({"deny": true}), "access_denied"),
        (json!({"iss": "wrong"}), "another issuer"),
        (json!({"issuer": "https://evil.example"}), "another issuer"),
        (json!({"registration": false}), "does not let clients register"),
    ] {
        let server = AuthorizedServer::start(&options);
        let world = world(&server, Step::text("x")).await;
        let output = mcp(&world, &["login", "s"]);
        assert!(output.code == Some(1) && output.stderr.contains(said), "{options}: {output:?}");
        let kept = std::fs::read_to_string(credentials_file(&world)).unwrap_or_default();
        assert!(!kept.contains("accessToken"), "{kept}");
    }
    let world = World::new(Step::text("x")).await;
    assert_eq!(mcp(&world, &["login", "none"]).code, Some(1));
    mcp(&world, &["add", "p", "--", "true"]);
    assert!(mcp(&world, &["login", "p"]).stderr.contains("has no address"));
}

#[tokio::test]
async fn configured_client_has_its_secret_beside_the_logins() {
    let options = json!({"registration": false, "configured_secret": "s3cret-s3cret"});
    let server = AuthorizedServer::start(&options);
    let world = World::new(Step::text("x")).await;
    let url = server.url();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let add = [
        "add",
        "-t",
        "http",
        "--client-id",
        "configured",
        "--client-secret",
        "--callback-port",
        &port,
        "s",
        &url,
    ];
    assert!(mcp(&world, &add).stderr.contains("MCP_CLIENT_SECRET"), "there is nobody to ask");
    let added = world.run(&loci().arg("mcp").args(add).env("MCP_CLIENT_SECRET", "s3cret-s3cret"));
    assert_eq!(added.code, Some(0), "{added:?}");
    let state = std::fs::read_to_string(world.home.home().join(".claude.json")).unwrap();
    assert!(state.contains("\"clientId\": \"configured\"") && !state.contains("s3cret"), "{state}");
    assert_eq!(mcp(&world, &["login", "s"]).code, Some(0));
    let redirect = server.requests_to("/authorize")[0]["sent"]["redirect_uri"].clone();
    assert_eq!(redirect, format!("http://localhost:{port}/callback"));
    let shown = mcp(&world, &["get", "s"]).stdout;
    assert!(
        shown.contains("client configured") && shown.contains("with a secret") && !shown.contains("s3cret"),
        "{shown}"
    );
    assert_eq!(mcp(&world, &["remove", "s"]).code, Some(0));
    let kept = std::fs::read_to_string(credentials_file(&world)).unwrap();
    assert!(!kept.contains("s3cret") && !kept.contains("access-"), "nothing of it is left: {kept}");
    let bad = ["add", "--client-id", "x", "p", "--", "true"];
    assert!(mcp(&world, &bad).stderr.contains("servers with an address"));
}

#[tokio::test]
async fn login_that_others_may_read_is_not_used() {
    let server = AuthorizedServer::start(&json!({}));
    let world = world(&server, Step::text("x")).await;
    assert_eq!(mcp(&world, &["login", "s"]).code, Some(0));
    std::fs::set_permissions(credentials_file(&world), std::fs::Permissions::from_mode(0o644)).unwrap();
    let listed = mcp(&world, &["list"]).stdout;
    assert!(listed.contains("Others may read credentials"), "{listed}");
}

#[tokio::test]
async fn many_processes_renew_one_login_and_none_loses_it() {
    let server = AuthorizedServer::start(&json!({}));
    let world = world(&server, Step::text("x")).await;
    assert_eq!(mcp(&world, &["login", "s"]).code, Some(0));
    change_login(&world, |login| login["expiresAt"] = json!(1));
    let sessions: Vec<_> = (0..4).map(|_| world.start_closed(&loci().args(["mcp", "list"]))).collect();
    for session in sessions {
        let output = session.finish();
        assert!(output.stdout.contains("✓ connected"), "{output:?}");
    }
    let renewals = server.requests_to("/token");
    let n = renewals.iter().filter(|it| it["sent"]["grant_type"] == "refresh_token").count();
    assert_eq!(n, 1, "the others used what the first one got");
}

#[tokio::test]
async fn client_begins_and_ends_a_login_by_control_requests() {
    let server = AuthorizedServer::start(&json!({}));
    let world = World::new(Step::text("a")).await;
    let servers = config(json!({"s": {"type": "http", "url": server.url()}}));
    let mut session = world.start(&stream(["--mcp-config", &servers]).env("BROWSER", "/bin/false"));
    session.write_json(&user("one"));
    session.wait_for_json(is_result);
    let mut ask = |id: &str, request: Value| {
        session.write_json(&control(id, request));
        session.wait_for_json(|frame| {
            frame["type"] == "control_response" && frame["response"]["request_id"] == id
        })["response"]
            .clone()
    };
    let begun = ask(
        "a1",
        json!({"subtype": "mcp_authenticate", "serverName": "s", "redirectUri": "http://localhost:9/callback"}),
    );
    let answer = &begun["response"];
    assert_eq!(
        (&answer["requiresUserAction"], &answer["callbackExpected"], &answer["redirectScheme"]),
        (&json!(true), &json!(true), &json!("custom")),
        "{begun}"
    );
    let begun = ask("a2", json!({"subtype": "mcp_authenticate", "serverName": "s"}));
    let page = begun["response"]["authUrl"].as_str().unwrap().to_owned();
    assert!(begun["response"]["callbackPort"].is_u64(), "{begun}");
    let wrong = json!({"subtype": "mcp_oauth_callback_url", "serverName": "s", "callbackUrl": "http://localhost/callback?code=1&state=2"});
    assert!(ask("a3", wrong)["error"].as_str().unwrap().contains("another state"));
    assert_eq!(ask("a4", json!({"subtype": "mcp_authenticate", "serverName": "none"}))["subtype"], "error");
    assert!(std::process::Command::new(browser(&world)).arg(&page).status().unwrap().success());
    let mut tries = 0;
    while ask(&format!("s{tries}"), json!({"subtype": "mcp_status"}))["response"]["mcpServers"][0]["status"]
        != "connected"
    {
        tries += 1;
        assert!(tries < 2000, "it never connects");
    }
    let again = ask("a5", json!({"subtype": "mcp_authenticate", "serverName": "s"}));
    assert_eq!(again["response"], json!({"requiresUserAction": false}));
    assert_eq!(ask("a6", json!({"subtype": "mcp_clear_auth", "serverName": "s"}))["subtype"], "success");
    let status = |answer: &Value| answer["response"]["mcpServers"][0]["status"].clone();
    while status(&ask(&format!("t{tries}"), json!({"subtype": "mcp_status"}))) != "needs-auth" {
        tries += 1;
        assert!(tries < 4000, "it never wants a login again");
    }
    session.close_stdin();
    assert_eq!(session.finish().code, Some(0));
    assert_eq!(server.requests_to("/revoke").len(), 2);
}
