//! The user's id in the global state file.

use std::fs;

use loci_stdx::SeededRandom;
use loci_storage::{StateFileError, user_id};

use crate::support::World;

#[test]
fn an_id_is_made_once_and_kept() {
    let world = World::new();
    let first = user_id(&world.home, &SeededRandom::new(1)).unwrap();
    assert_eq!(first.len(), 64);
    assert_eq!(user_id(&world.home, &SeededRandom::new(2)).unwrap(), first);
    let text = fs::read_to_string(world.home.state_file()).unwrap();
    assert_eq!(text, format!("{{\n  \"userID\": \"{first}\"\n}}"));
}

#[test]
fn everything_else_keeps_its_bytes() {
    let world = World::new();
    let before = "{\n  \"n\": 1.50,\n  \"projects\": {\n    \"/p\": {\n      \"x\": 123456789012345678901234567890\n    }\n  }\n}";
    world.write(".claude.json", before);
    let id = user_id(&world.home, &SeededRandom::new(1)).unwrap();
    let after = fs::read_to_string(world.home.state_file()).unwrap();
    assert_eq!(after, format!("{},\n  \"userID\": \"{id}\"\n}}", before.strip_suffix("\n}").unwrap()));
}

#[test]
fn an_existing_id_is_read_and_nothing_is_written() {
    let world = World::new();
    world.write(".claude.json", r#"{"userID":"abc"}"#);
    assert_eq!(user_id(&world.home, &SeededRandom::new(1)).unwrap(), "abc");
    assert_eq!(fs::read_to_string(world.home.state_file()).unwrap(), r#"{"userID":"abc"}"#);
    assert!(!world.home.root().exists());
}

#[test]
fn a_broken_file_is_left_alone() {
    let world = World::new();
    world.write(".claude.json", "{ half");
    let error = user_id(&world.home, &SeededRandom::new(1)).unwrap_err();
    assert!(matches!(error, StateFileError::Parse { .. }), "{error}");
    assert_eq!(fs::read_to_string(world.home.state_file()).unwrap(), "{ half");
}
