//! Logins at MCP servers in the file of another program, and what the servers of projects were when they were approved.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use loci_storage::config::{
    ApprovedServer, approved_servers, edit_approved_servers, mcp_client_secret, mcp_login,
    set_mcp_client_secret, set_mcp_login,
};
use serde_json::{Map, Value, json};

use crate::support::World;

const ID: &str = "s|0123";
const WHOSE: (&str, &str) = ("s", "https://h/mcp");

fn login(token: &str) -> Map<String, Value> {
    let login = json!({"serverName": "s", "serverUrl": "https://h/mcp", "accessToken": token});
    login.as_object().unwrap().clone()
}

fn token(world: &World) -> Option<String> {
    let kept = mcp_login(&world.home, ID, WHOSE.0, WHOSE.1).unwrap()?;
    Some(kept["accessToken"].as_str().unwrap().to_owned())
}

#[test]
fn logins_are_kept_privately_and_every_other_byte_stays() {
    let world = World::new();
    assert_eq!(token(&world), None, "no file is no problem");
    set_mcp_login(&world.home, ID, WHOSE, |_| Some(login("t1"))).unwrap();
    let path = world.home.credentials_file();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let theirs = "{\n  \"claudeAiOauth\": {\"accessToken\":   \"x\", \"n\": 1.50},\n  \"z\": [1,2]\n}\n";
    fs::write(&path, theirs).unwrap();
    set_mcp_login(&world.home, ID, WHOSE, |_| Some(login("t2"))).unwrap();
    assert_eq!(token(&world).as_deref(), Some("t2"));
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("{\"accessToken\":   \"x\", \"n\": 1.50}") && text.contains("\"z\": [1,2]"),
        "{text}"
    );
    set_mcp_client_secret(&world.home, ID, Some("secret")).unwrap();
    assert_eq!(mcp_client_secret(&world.home, ID).unwrap().as_deref(), Some("secret"));
    assert_eq!(mcp_client_secret(&world.home, "t|0123").unwrap(), None);
    set_mcp_client_secret(&world.home, ID, None).unwrap();
    set_mcp_login(&world.home, ID, WHOSE, |_| None).unwrap();
    assert_eq!((token(&world), mcp_client_secret(&world.home, ID).unwrap()), (None, None));
    assert!(fs::read_to_string(&path).unwrap().contains("\"n\": 1.50"));
}

#[test]
fn login_of_another_program_is_found_by_name_and_address_and_forgotten_with_ours() {
    let world = World::new();
    let kept = json!({"mcpOAuth": {
        "s|ffff": {"serverName": "s", "serverUrl": "https://h/mcp", "accessToken": "theirs", "theirs": 1},
        "s|eeee": {"serverName": "s", "serverUrl": "https://other/mcp", "accessToken": "other"},
    }});
    let path = world.write(".claude/.credentials.json", kept.to_string());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(token(&world).as_deref(), Some("theirs"));
    set_mcp_login(&world.home, ID, WHOSE, |now| {
        assert!(now.is_empty(), "ours has its own place");
        Some(login("ours"))
    })
    .unwrap();
    assert_eq!(token(&world).as_deref(), Some("ours"));
    set_mcp_login(&world.home, ID, WHOSE, |_| None).unwrap();
    assert_eq!(token(&world), None);
    let left: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(left["mcpOAuth"].as_object().unwrap().keys().collect::<Vec<_>>(), ["s|eeee"]);
}

#[test]
fn file_that_others_may_read_or_that_is_none_is_left_alone() {
    for (text, mode, said) in [
        ("{}", 0o644, "Others may read"),
        ("secret-1", 0o600, "Failed to parse"),
        ("[\"secret-1\"]", 0o600, "Failed to parse"),
    ] {
        let world = World::new();
        let path = world.write(".claude/.credentials.json", text);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let error = set_mcp_login(&world.home, ID, WHOSE, |_| Some(login("t"))).unwrap_err().to_string();
        assert!(error.contains(said) && !error.contains("secret-1"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn threads_that_write_at_once_lose_nothing() {
    let world = World::new();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let home = &world.home;
            scope.spawn(move || {
                let (id, server) = (format!("s{n}|0"), format!("s{n}"));
                set_mcp_login(home, &id, (&server, "u"), |_| Some(login(&n.to_string()))).unwrap();
            });
        }
    });
    let kept: Value =
        serde_json::from_str(&fs::read_to_string(world.home.credentials_file()).unwrap()).unwrap();
    assert_eq!(kept["mcpOAuth"].as_object().unwrap().len(), 8);
}

#[test]
fn approvals_are_kept_for_each_project() {
    let world = World::new();
    let root = world.cwd().to_owned();
    assert!(approved_servers(&world.home, &root).unwrap().is_empty());
    let server = ApprovedServer { definition: "d".to_owned(), tools: None };
    let edit = |name: &str| {
        edit_approved_servers(&world.home, &root, |servers| {
            servers.insert(name.to_owned(), server.clone());
        })
        .unwrap()
    };
    assert!(edit("a") && edit("b") && !edit("a"), "the same again changes nothing");
    assert_eq!(approved_servers(&world.home, &root).unwrap().len(), 2);
    assert!(approved_servers(&world.home, &root.join("other")).unwrap().is_empty());
    assert!(edit_approved_servers(&world.home, &root, |servers| servers.clear()).unwrap());
    assert!(approved_servers(&world.home, &root).unwrap().is_empty());
    world.write(".claude/loci/mcp-approvals.json", "{");
    assert!(approved_servers(&world.home, &root).is_err());
}
