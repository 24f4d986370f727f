//! The global state file: the user's id, trust, and the versions before.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use loci_core::skill::{SkillUsage, SkillUsageTable};
use loci_stdx::SeededRandom;
use loci_storage::config::{StateFileError, add_skill_usage, external_imports, set_trust, user_id};

use crate::support::World;

#[test]
fn user_id_is_made_once() {
    let world = World::new();
    let first = user_id(&world.home, &SeededRandom::new(1)).unwrap();
    assert_eq!(first.len(), 64);
    assert_eq!(user_id(&world.home, &SeededRandom::new(2)).unwrap(), first);
    let text = fs::read_to_string(world.home.state_file()).unwrap();
    assert_eq!(text, format!("{{\n  \"userID\": \"{first}\"\n}}"));
}

#[test]
fn state_edit_keeps_all_other_bytes() {
    let world = World::new();
    let before = "{\n  \"n\": 1.50,\n  \"projects\": {\n    \"/p\": {\n      \"x\": 123456789012345678901234567890\n    }\n  }\n}";
    world.write(".claude.json", before);
    let id = user_id(&world.home, &SeededRandom::new(1)).unwrap();
    let after = fs::read_to_string(world.home.state_file()).unwrap();
    assert_eq!(after, format!("{},\n  \"userID\": \"{id}\"\n}}", before.strip_suffix("\n}").unwrap()));
}

#[test]
fn existing_user_id_is_read_without_a_write() {
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

fn backups(world: &World, kind: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(world.home.root().join("backups")) else { return Vec::new() };
    let mut texts: Vec<(String, String)> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap()))
        .filter(|(name, _)| name.contains(&format!(".claude.json.{kind}.")))
        .collect();
    texts.sort();
    texts.into_iter().map(|(_, text)| text).collect()
}

#[test]
fn the_last_five_versions_are_kept() {
    let world = World::new();
    for n in 0..8 {
        let path = world.write(".claude.json", format!("{{\"n\":{n}}}"));
        let written = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + n);
        fs::File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
        assert!(set_trust(&world.home, Path::new("/p"), true).unwrap());
    }
    let kept: Vec<String> = (3..8).map(|n| format!("{{\"n\":{n}}}")).collect();
    assert_eq!(backups(&world, "backup"), kept);
}

#[test]
fn trust_is_kept_for_a_folder_and_nothing_else_changes() {
    let world = World::new();
    let before = "{\n  \"projects\": {\n    \"/a.b\": {\n      \"x\": 1.50\n    }\n  }\n}";
    world.write(".claude.json", before);
    assert!(set_trust(&world.home, Path::new("/a.b"), true).unwrap());
    let after = before.replace("1.50\n", "1.50,\n      \"hasTrustDialogAccepted\": true\n");
    assert_eq!(fs::read_to_string(world.home.state_file()).unwrap(), after);
    assert!(!set_trust(&world.home, Path::new("/a.b"), true).unwrap(), "nothing to do");
    assert_eq!(fs::metadata(world.home.state_file()).unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn a_broken_file_is_copied_before_anything_is_said() {
    let world = World::new();
    world.write(".claude.json", "{ half");
    set_trust(&world.home, Path::new("/p"), true).unwrap_err();
    assert_eq!(backups(&world, "corrupted"), ["{ half"]);
    assert_eq!(fs::read_to_string(world.home.state_file()).unwrap(), "{ half");
}

#[test]
fn imports_from_outside_are_approved_by_project() {
    let world = World::new();
    assert_eq!(external_imports(&world.home, Path::new("/p")), None);
    world.write(".claude.json", r#"{"projects": {"/p": {"hasClaudeMdExternalIncludesApproved": true}}}"#);
    assert_eq!(external_imports(&world.home, Path::new("/p")), Some(true));
    assert_eq!(external_imports(&world.home, Path::new("/q")), None);
}

#[test]
fn uses_of_skills_add_up_and_whatever_else_is_kept_stays() {
    let world = World::new();
    let before = r#"{
  "n": 1.50,
  "skillUsage": {
    "ship": {
      "usageCount": 3,
      "lastUsedAt": 50,
      "mine": true
    },
    "odd": 7
  },
  "z": []
}"#;
    world.write(".claude.json", before);
    let mut uses = SkillUsageTable::default();
    for name in ["ship", "look", "odd"] {
        uses.add(name, SkillUsage { count: 2, last_used_ms: 40 });
    }
    assert!(add_skill_usage(&world.home, &uses, Duration::from_secs(9)).unwrap());
    let after = fs::read_to_string(world.home.state_file()).unwrap();
    let expected = r#"{
  "n": 1.50,
  "skillUsage": {
    "ship": {
      "usageCount": 5,
      "lastUsedAt": 50,
      "mine": true
    },
    "odd": 7,
    "look": {
      "usageCount": 2,
      "lastUsedAt": 40
    }
  },
  "z": []
}"#;
    assert_eq!(after, expected);
    world.write(".claude.json", r#"{"skillUsage": "mine"}"#);
    assert!(!add_skill_usage(&world.home, &uses, Duration::from_secs(9)).unwrap());
    assert_eq!(fs::read_to_string(world.home.state_file()).unwrap(), r#"{"skillUsage": "mine"}"#);
}
