//! `loci sessions doctor`: real sessions, damaged, examined and mended by the real program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use expect_test::expect;
use loci_testkit::{Binary, Step};
use serde_json::{Value, json};

use crate::support::{World, assert_fine, is_result, loci, stream, user};

/// How many repairs are killed in the middle, and how often that is tried.
const KILLS: usize = 2;
const ATTEMPTS: usize = 12;
/// How many damaged sessions they find.
const SESSIONS: usize = 40;

fn doctor<const N: usize>(args: [&str; N]) -> Binary {
    loci().args(["sessions", "doctor"]).args(args)
}

/// Runs it with `--json`; returns the report and the exit code.
fn report<const N: usize>(world: &World, args: [&str; N]) -> (Value, i32) {
    let output = world.run(&doctor(args).arg("--json"));
    assert_eq!(output.stderr, "");
    (serde_json::from_str(&output.stdout).unwrap(), output.code.unwrap())
}

fn kinds(report: &Value) -> Vec<(&str, &str)> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().map(|it| (it["kind"].as_str().unwrap(), it["state"].as_str().unwrap())).collect()
}

async fn two_turns() -> (World, PathBuf) {
    let script = [Step::text("It is 48213."), Step::text("Still 48213."), Step::text("And now, too.")];
    let world = World::new(script.to_vec()).await;
    assert_fine(&world.print(["Which port?"]));
    assert_fine(&world.print(["And now?", "-c"]));
    let file = world.home.sessions()[0].clone();
    (world, file)
}

/// Loses the line of the first answer, and tears the last.
fn damage(file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.contains("It is 48213."));
    let text = lines.collect::<Vec<_>>().join("\n");
    fs::write(file, &text[..text.len() - 9]).unwrap();
}

/// Invariants 2, 3 and 5 of `docs/design/doctor.md`.
#[tokio::test]
async fn a_damaged_session_is_mended_and_goes_on() {
    let (world, file) = two_turns().await;
    assert_eq!(report(&world, []), (json!({"sessions": 1, "findings": [], "isWrong": false}), 0));
    damage(&file);
    let broken = fs::read(&file).unwrap();
    let (found, code) = report(&world, []);
    assert_eq!((kinds(&found), code), (vec![("lost-parent", "found"), ("torn-tail", "found")], 1), "{found}");
    assert_eq!(fs::read(&file).unwrap(), broken, "looking changes nothing");
    let sum = world.run(&loci().arg("doctor"));
    assert!(sum.stdout.contains("Sessions: 1 in 1 project, 2 findings: `loci sessions doctor`"), "{sum:?}");
    assert_eq!(sum.code, Some(1));

    let (mended, code) = report(&world, ["--repair"]);
    assert_eq!(
        (kinds(&mended), code),
        (vec![("lost-parent", "mended"), ("torn-tail", "mended")], 0),
        "{mended}"
    );
    let said = mended["findings"][0]["said"].as_str().unwrap();
    let original = said.split('`').nth(1).unwrap();
    assert_eq!(fs::read(original).unwrap(), broken, "the original is kept");
    assert!(original.contains("/.claude/loci/aside/"), "{original}");
    assert_eq!(report(&world, ["--repair"]), (json!({"sessions": 1, "findings": [], "isWrong": false}), 0));
    assert_fine(&world.print(["Once more?", "-c"]));
    let sent = world.conversation();
    assert!(sent.contains("Which port?") && sent.contains("Still 48213."), "{sent}");
}

#[tokio::test]
async fn people_read_what_is_wrong_and_what_was_done() {
    let (world, file) = two_turns().await;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let shown = |binary: &Binary| world.normaliser().text(&world.run(binary).stdout);
    expect![[r#"
        exposed  ~/.claude/projects/<project>/<uuid-1>.jsonl
          others may use it (mode 644)
          repair: its mode becomes 600

        1 session, 1 finding: `loci sessions doctor --repair` mends what can be mended
    "#]]
    .assert_eq(&shown(&doctor([])));
    expect![[r#"
        exposed  ~/.claude/projects/<project>/<uuid-1>.jsonl
          others may use it (mode 644)
          mended: its mode is 600

        1 session, 1 finding, all mended
    "#]]
    .assert_eq(&shown(&doctor(["--repair"])));
    assert_eq!(shown(&doctor([])), "1 session, nothing is wrong\n");
}

/// Invariant 7 of `docs/design/doctor.md`.
#[tokio::test]
async fn a_session_that_another_process_has_is_left_alone() {
    let world = World::new(vec![Step::text("One."), Step::text("Two.")]).await;
    let mut running = world.start(&stream([]));
    running.write_json(&user("First"));
    running.wait_for_json(is_result);
    let file = world.home.sessions()[0].clone();
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend_from_slice(b"no entry\n");
    fs::write(&file, &bytes).unwrap();
    let (left, code) = report(&world, ["--repair"]);
    assert_eq!((kinds(&left), code), (vec![("broken-line", "left")], 1), "{left}");
    assert!(left["findings"][0]["said"].as_str().unwrap().contains("in use by process"), "{left}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
    running.write_json(&user("Second"));
    running.wait_for_json(is_result);
    assert_eq!(running.finish().code, Some(0));
    assert!(fs::read(&file).unwrap().starts_with(&bytes), "it went on in the same file");
    assert_eq!(report(&world, ["--repair"]).1, 0);
    assert_eq!(report(&world, []).1, 0);
}

/// Invariant 6 of `docs/design/doctor.md`.
#[tokio::test]
async fn a_repair_that_is_killed_is_finished_by_the_next() {
    let (world, file) = two_turns().await;
    damage(&file);
    let broken = fs::read_to_string(&file).unwrap();
    let id = file.file_stem().unwrap().to_str().unwrap().to_owned();
    let copy = |n: usize| {
        let other = format!("{}{n:08}", &id[..28]);
        (file.with_file_name(format!("{other}.jsonl")), broken.replace(&id, &other))
    };
    let aside = world.home.config_home().join("loci/aside");
    let n_kept = || fs::read_dir(&aside).map_or(0, Iterator::count);
    let mut n_cut = 0;
    for attempt in 1..=ATTEMPTS {
        if n_cut == KILLS {
            break;
        }
        for (path, text) in (0..SESSIONS).map(copy) {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let n_before = n_kept();
        let repair = world.start(&doctor(["--repair"]));
        let deadline = Instant::now() + Duration::from_secs(30);
        while n_kept() < n_before + attempt % 3 * 6 + 1 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        drop(repair); // Kills it.
        n_cut += usize::from(report(&world, []).1 == 1);
        let (mended, code) = report(&world, ["--repair"]);
        assert_eq!(code, 0, "{mended}");
        assert_eq!(report(&world, []).0["findings"], json!([]));
        let texts: Vec<String> = (0..SESSIONS).map(|n| fs::read_to_string(copy(n).0).unwrap()).collect();
        assert!(texts.iter().all(|text| text.contains("Which port?") && text.contains("Still 48213.")));
    }
    assert!(n_cut > 0, "no kill was in the middle of a repair");
}

/// `loci doctor` reads the newest sessions and says so; those before them are for `loci sessions doctor`.
#[tokio::test]
async fn the_general_doctor_reads_the_newest_sessions_only() {
    let world = World::new(vec![]).await;
    let dir = world.home.config_home().join("projects/-p");
    fs::create_dir_all(&dir).unwrap();
    fs::set_permissions(world.home.config_home(), fs::Permissions::from_mode(0o700)).unwrap();
    let file = |n: u64| dir.join(format!("0a0a0a0a-0001-4000-8000-{n:012}.jsonl"));
    let write = |n: u64, text: &str| {
        fs::write(file(n), text).unwrap();
        fs::set_permissions(file(n), fs::Permissions::from_mode(0o600)).unwrap();
        let time = std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + n);
        fs::File::options().append(true).open(file(n)).unwrap().set_modified(time).unwrap();
    };
    let line = json!({"type": "user", "uuid": "u", "parentUuid": null, "message": {"role": "user", "content": "hi"}});
    (0..30).for_each(|n| write(n, &format!("{line}\n")));
    write(3, "{\"torn");
    let said = |args: &[&str]| {
        let output = world.run(&loci().args(args.iter().copied()));
        let line = output.stdout.lines().find(|line| line.starts_with("Sessions: ")).map(str::to_owned);
        (line.unwrap_or(output.stdout), output.code.unwrap())
    };
    let (line, code) = said(&["doctor"]);
    assert_eq!(
        (line.as_str(), code),
        (
            "Sessions: 30 in 1 project, nothing wrong with the 20 newest, which were read; `loci sessions doctor` reads all",
            0
        )
    );
    assert_eq!(said(&["sessions", "doctor"]).1, 1);
    write(29, "{\"torn");
    let (line, code) = said(&["doctor"]);
    assert_eq!(
        (line.as_str(), code),
        (
            "Sessions: 30 in 1 project, 1 finding in the 20 newest: `loci sessions doctor` reads all and names them, `--repair` mends them",
            1
        )
    );
    let report: Value = serde_json::from_str(&said(&["doctor", "--json"]).0).unwrap();
    assert_eq!(
        (&report["sessions"], &report["sessionsRead"], &report["sessionFindings"]),
        (&json!(30), &json!(20), &json!(1))
    );
}
