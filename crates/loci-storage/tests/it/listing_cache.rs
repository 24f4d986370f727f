//! A list that remembers agrees with one that reads everything anew.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use loci_storage::sessions::{
    SessionSummary, list_all, list_newest, list_project, list_recent, rename_session,
};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{World, session_id};

/// Enough sessions for facts to be kept.
const SESSIONS: u32 = 20;

#[derive(Debug, Clone)]
enum Step {
    Say(u32, String),
    Rename(u32, String),
    Rewrite(u32, String),
    Remove(u32),
    Spoil(usize),
    List,
}

fn step() -> impl Strategy<Value = Step> {
    let session = 0..SESSIONS;
    let text = "[a-zé\"\\\\]{1,12}";
    prop_oneof![
        4 => (session.clone(), text).prop_map(|(n, text)| Step::Say(n, text)),
        2 => (session.clone(), text).prop_map(|(n, text)| Step::Rename(n, text)),
        1 => (session.clone(), text).prop_map(|(n, text)| Step::Rewrite(n, text)),
        1 => session.prop_map(Step::Remove),
        1 => (0_usize..4_000).prop_map(Step::Spoil),
        4 => Just(Step::List),
    ]
}

fn file_of(world: &World, n: u32) -> PathBuf {
    world.home.projects_dir().join(format!("-p{}/{}.jsonl", n % 3, session_id(n)))
}

fn line(text: &str) -> String {
    let entry = json!({"type": "user", "uuid": "u", "parentUuid": null, "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": text}, "cwd": "/p", "sessionId": "s"});
    format!("{entry}\n")
}

/// Writes a session and gives it a time in the past, as most sessions have.
fn write(world: &World, n: u32, content: &str, moment: u64) {
    let file = file_of(world, n);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, content).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + moment);
    fs::File::options().append(true).open(&file).unwrap().set_modified(time).unwrap();
}

fn happen(world: &World, n: usize, step: &Step) {
    let text = |n: u32| fs::read_to_string(file_of(world, n)).unwrap_or_default();
    match step {
        Step::Say(session, words) => write(world, *session, &(text(*session) + &line(words)), n as u64),
        Step::Rename(session, title) => {
            let place =
                loci_storage::layout::SessionPlace::new(file_of(world, *session), session_id(*session));
            if place.file().exists() {
                drop(rename_session(&place, title));
            }
        }
        Step::Rewrite(session, words) => write(world, *session, &line(words), 1_000 + n as u64),
        Step::Remove(session) => drop(fs::remove_file(file_of(world, *session))),
        Step::Spoil(at) => {
            let path = cache_file(world);
            if let Ok(mut bytes) = fs::read(&path) {
                let at = at % bytes.len().max(1);
                bytes.truncate(at);
                fs::write(&path, bytes).unwrap();
            }
        }
        Step::List => drop(list_all(&world.home).unwrap()),
    }
}

fn cache_file(world: &World) -> PathBuf {
    world.home.loci_dir().join("listing.bin")
}

fn list_without_cache(world: &World) -> Vec<SessionSummary> {
    drop(fs::remove_file(cache_file(world)));
    list_all(&world.home).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Invariant 7 of `docs/design/index.md`.
    #[test]
    fn cached_list_agrees_with_the_files(steps in prop::collection::vec(step(), 1..25)) {
        let world = World::new();
        for n in 0..SESSIONS {
            write(&world, n, &line(&format!("prompt {n}")), u64::from(n));
        }
        list_all(&world.home).unwrap();
        for (n, step) in steps.iter().enumerate() {
            happen(&world, n + 100, step);
        }
        let warm = list_all(&world.home).unwrap();
        let newest = list_newest(&world.home, 5).unwrap();
        prop_assert_eq!(&newest[..], &warm[..warm.len().min(5)]);
        prop_assert_eq!(warm, list_without_cache(&world));
    }
}

/// What is kept is really used: facts come from there while a file is as it was.
#[test]
fn listing_cache_is_used_and_a_changed_file_is_read_again() {
    let world = World::new();
    for n in 0..SESSIONS {
        write(&world, n, &line(&format!("prompt {n}")), u64::from(n));
    }
    list_all(&world.home).unwrap();
    let prompts = |world: &World| -> Vec<String> {
        list_all(&world.home).unwrap().into_iter().filter_map(|it| it.facts.first_prompt).collect()
    };
    // Of the same size, at the same time, in the same place: nobody can see that it changed.
    write(&world, 7, &line("another7"), 7);
    assert!(prompts(&world).contains(&"prompt 7".to_owned()));
    write(&world, 7, &line("changed!"), 99);
    let prompts = prompts(&world);
    assert!(prompts.contains(&"changed!".to_owned()) && !prompts.contains(&"prompt 7".to_owned()));
}

/// Any damage to what is kept is noticed, so that nothing is shown that no session says.
/// Invariant 7 of `docs/design/index.md`.
#[test]
fn damaged_listing_cache_is_ignored() {
    let world = World::new();
    for n in 0..SESSIONS {
        write(&world, n, &line(&format!("prompt {n}")), u64::from(n));
    }
    let plain = list_all(&world.home).unwrap();
    let whole = fs::read(cache_file(&world)).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 29) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(cache_file(&world), bytes).unwrap();
        assert_eq!(list_all(&world.home).unwrap(), plain, "byte {at}");
    }
}

/// What a list of one project keeps does not make those of others forgotten.
#[test]
fn listing_cache_keeps_other_projects() {
    let world = World::new();
    for n in 0..3 * SESSIONS {
        write(&world, n, &line(&format!("prompt {n:02}")), u64::from(n));
    }
    list_all(&world.home).unwrap();
    for n in (0..3 * SESSIONS).filter(|n| n % 3 == 0) {
        write(&world, n, &line(&format!("changed {n:02}")), 100);
    }
    let project = loci_storage::project::Project::directory(std::path::Path::new("-p0"));
    assert_eq!(list_project(&world.home, &project).unwrap().len(), SESSIONS as usize);
    // Unseen as above, so that only what was kept can say so.
    write(&world, 1, &line("unseen 01"), 1);
    let prompts: Vec<String> =
        list_all(&world.home).unwrap().into_iter().filter_map(|it| it.facts.first_prompt).collect();
    assert!(prompts.contains(&"prompt 01".to_owned()) && prompts.contains(&"changed 57".to_owned()));
}

/// The first page of a list comes from what is kept: files of old sessions are not looked at, new ones and changed ones are
/// read, and nothing is written meanwhile.
#[test]
fn recent_sessions_are_found_by_the_cache_and_new_files_are_among_them() {
    let world = World::new();
    let at =
        |n: u32| line(&format!("prompt {n}")).replace("2026-01-01T00:00", &format!("2026-01-01T00:{n:02}"));
    for n in 0..SESSIONS {
        write(&world, n, &at(n), u64::from(n));
    }
    let recent = |world: &World| -> Vec<String> {
        let (list, is_whole) = list_recent(&world.home, None, 3).unwrap();
        assert!(!is_whole);
        list.sessions.into_iter().filter_map(|it| it.facts.first_prompt).collect()
    };
    let newest = ["prompt 19", "prompt 18", "prompt 17"];
    assert_eq!(recent(&world), newest, "by the files alone");
    assert!(!cache_file(&world).exists(), "the disk is not waited for");
    list_all(&world.home).unwrap();
    assert_eq!(recent(&world), newest);

    // A new file, one of the newest that changed, and one that is gone.
    let kept = fs::read(cache_file(&world)).unwrap();
    write(&world, SESSIONS, &at(SESSIONS), 50);
    write(&world, 18, &line("changed").replace("T00:00", "T00:18"), 51);
    fs::remove_file(file_of(&world, 17)).unwrap();
    assert_eq!(recent(&world)[..3], ["prompt 20", "prompt 19", "changed"]);
    assert_eq!(fs::read(cache_file(&world)).unwrap(), kept);

    // So few are looked at that an old session which somebody goes on with is not among them, but in the whole list.
    write(&world, 0, &line("old").replace("T00:00", "T00:59"), 52);
    assert!(!recent(&world).contains(&"old".to_owned()));
    assert_eq!(list_all(&world.home).unwrap()[0].facts.first_prompt.as_deref(), Some("old"));
    assert_eq!(recent(&world)[0], "prompt 20", "a list of a few changes keeps nothing");
}
