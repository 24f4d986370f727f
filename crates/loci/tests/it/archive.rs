//! `loci sessions archive`, `restore`, `pin` and `audit`, and what `cleanupPeriodDays` does by itself.

use std::fs;

use loci_testkit::{Binary, Step};
use serde_json::{Value, json};

use crate::support::{World, assert_fine, loci};

fn sessions<const N: usize>(args: [&str; N]) -> Binary {
    loci().arg("sessions").args(args).env("TZ", "UTC")
}

fn json_of<const N: usize>(world: &World, args: [&str; N]) -> Value {
    let output = world.run(&sessions(args).arg("--json"));
    assert_fine(&output);
    serde_json::from_str(&output.stdout).unwrap()
}

async fn one_session() -> (World, String) {
    let world = World::new(vec![Step::text("It is 48213."), Step::text("Again."), Step::text("More.")]).await;
    assert_fine(&world.print(["Which port?"]));
    let id = world.home.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned();
    (world, id)
}

#[tokio::test]
async fn a_session_is_archived_found_and_resumed_after_its_return() {
    let (world, id) = one_session().await;
    let file = world.home.sessions()[0].clone();
    let before = fs::read(&file).unwrap();
    assert_eq!(json_of(&world, ["archive", &id])[0]["sessionId"], json!(id));
    assert!(!file.exists());
    assert_eq!(json_of(&world, ["archive"])[0]["title"], "Which port?");
    let found = json_of(&world, ["search", "48213"]);
    assert_eq!(found["hits"][0]["isArchived"], true);
    assert_eq!(found["hits"][0]["title"], "Which port?");
    let resume = found["hits"][0]["resume"].as_str().unwrap();
    assert!(resume.starts_with(&format!("loci sessions restore {id} && ")), "{resume}");
    assert_eq!(json_of(&world, ["restore", &id])["file"], json!(file));
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_fine(&world.print(["And now?", "-r", &id]));
    let actions: Vec<Value> =
        json_of(&world, ["audit"]).as_array().unwrap().iter().map(|line| line["action"].clone()).collect();
    assert_eq!(actions, ["archive", "unarchive"]);
    let missing = world.run(&sessions(["restore", &id]));
    assert!(
        missing.code == Some(1) && missing.stderr.contains("`loci sessions archive` lists"),
        "{missing:?}"
    );
}

#[tokio::test]
async fn pinned_session_is_not_archived() {
    let (world, id) = one_session().await;
    assert_eq!(json_of(&world, ["pin", &id]), json!({"sessionId": id, "isPinned": true}));
    assert_eq!(json_of(&world, ["pin"]), json!([id]));
    let refused = world.run(&sessions(["archive", &id]));
    assert!(refused.code == Some(1) && refused.stderr.contains("pin --off"), "{refused:?}");
    assert_eq!(json_of(&world, ["archive", "--older-than", "0"]), json!([]));
    assert_eq!(json_of(&world, ["pin", "--off", &id])["isPinned"], false);
    assert_eq!(json_of(&world, ["archive", "--older-than", "0"])[0]["problem"], Value::Null);
    assert!(world.home.sessions().is_empty());
}

/// Nothing is put away unless a setting says so, and then by what was said.
#[tokio::test]
async fn cleanup_period_setting_archives_old_sessions() {
    let (world, id) = one_session().await;
    let unset = world.run(&sessions(["archive", "--due"]));
    assert!(unset.code == Some(1) && unset.stderr.contains("cleanupPeriodDays"), "{unset:?}");
    let file = world.home.sessions()[0].clone();
    let text = fs::read_to_string(&file).unwrap();
    let year = text.split("\"timestamp\":\"").nth(1).unwrap()[..4].to_owned();
    fs::write(&file, text.replace(&format!("\"timestamp\":\"{year}"), "\"timestamp\":\"2020")).unwrap();
    assert_fine(&world.print(["Another"]));
    assert!(file.exists(), "no setting, no archive");
    world.home.write_config("settings.json", r#"{"cleanupPeriodDays": 30}"#);
    assert_fine(&world.print(["A third"]));
    assert!(!file.exists());
    assert_eq!(json_of(&world, ["archive"])[0]["sessionId"], json!(id));
    assert_eq!(world.home.sessions().len(), 2, "what was used lately stays");
}

/// Whoever names a session that is not in its place is told how it comes back.
#[tokio::test]
async fn archived_or_removed_session_error_names_restore_command() {
    let (world, id) = one_session().await;
    let told = |binary: &Binary| {
        let output = world.run(binary);
        assert_eq!(output.code, Some(1), "{output:?}");
        output.stderr
    };
    let resume = crate::support::print(["And then?", "-r", &id]);
    assert_fine(&world.run(&sessions(["archive", &id]).arg("--json")));
    let back = format!("It was archived: `loci sessions restore {id}` brings it back.");
    for binary in [sessions(["show", &id]), sessions(["export", &id]), resume.clone()] {
        assert!(told(&binary).contains(&back), "{binary:?}");
    }
    assert_fine(&world.run(&sessions(["restore", &id]).arg("--json")));
    assert_fine(&world.run(&sessions(["rm", &id]).arg("--json")));
    let back = format!("It was removed: `loci sessions rm --restore {id}` brings it back.");
    for binary in [sessions(["show", &id]), sessions(["restore", &id]), resume] {
        assert!(told(&binary).contains(&back), "{binary:?}");
    }
}
