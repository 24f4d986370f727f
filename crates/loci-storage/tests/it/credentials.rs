//! The login that another program keeps: used while only its owner can read it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use loci_storage::config::stored_login;

use crate::support::World;

const LOGIN: &str =
    r#"{"claudeAiOauth": {"accessToken": " token-1 ", "expiresAt": 17, "scopes": []}, "mcpOAuth": {}}"#;

/// Shows the login of a file with this text and mode, or why there is none.
fn check(text: &str, mode: u32, expected: &str) {
    let world = World::new();
    let path = world.write(".claude/.credentials.json", text);
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    let shown = match stored_login(&world.home) {
        Ok(None) => "none".to_owned(),
        Ok(Some(login)) => format!("{} until {:?}", login.access_token, login.expires_at),
        Err(error) => error.to_string().replace(world.env.home.to_str().unwrap(), "~"),
    };
    assert_eq!(shown, expected, "{text} {mode:o}");
}

#[test]
fn a_private_file_has_a_login() {
    check(LOGIN, 0o600, "token-1 until Some(17)");
    check(LOGIN, 0o400, "token-1 until Some(17)");
    check(r#"{"claudeAiOauth": {"accessToken": "t"}}"#, 0o600, "t until None");
    check(r#"{"claudeAiOauth": {"accessToken": ""}}"#, 0o600, "none");
    check(r#"{"mcpOAuth": {}}"#, 0o600, "none");
}

#[test]
fn a_file_that_others_may_read_is_not_used() {
    let said = "Others may read credentials, so they are not used: `~/.claude/.credentials.json`";
    for mode in [0o644, 0o640, 0o604, 0o620, 0o601] {
        check(LOGIN, mode, said);
    }
}

#[test]
fn credential_errors_do_not_show_the_file() {
    let said = "Failed to parse credentials: `~/.claude/.credentials.json`";
    check(r#"{"claudeAiOauth": "secret-1"}"#, 0o600, said);
    check("secret-2", 0o600, said);
    let world = World::new();
    assert!(stored_login(&world.home).unwrap().is_none(), "no file is no problem");
    fs::create_dir_all(world.home.credentials_file()).unwrap();
    let error = stored_login(&world.home).err().unwrap();
    assert!(error.to_string().starts_with("Failed to read credentials"), "{error}");
}
