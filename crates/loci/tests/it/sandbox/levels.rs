//! Machines that give less than the full sandbox: a filter of system calls refuses what they would refuse.

use std::collections::BTreeMap;

use loci_testkit::{Output, Step};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::{Value, json};

use super::{bash, has_full};
use crate::support::{World, loci, watched};

/// What a container refuses, and with that namespaces.
const CONTAINER: &[i64] = &[libc::SYS_unshare];
/// What a kernel without any of it refuses.
const OLD_KERNEL: &[i64] = &[libc::SYS_unshare, libc::SYS_landlock_create_ruleset];

/// Acts on a machine that refuses these system calls, to this thread and to what it starts.
fn without<T: Send>(calls: &[i64], act: impl FnOnce() -> T + Send) -> T {
    let filtered = || {
        let rules: BTreeMap<i64, _> = calls.iter().map(|call| (*call, Vec::new())).collect();
        let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let arch = std::env::consts::ARCH.try_into().unwrap();
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).unwrap();
        let program: BpfProgram = filter.try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();
        act()
    };
    std::thread::scope(|scope| scope.spawn(filtered).join().unwrap())
}

/// Has the model make calls on such a machine; returns their results and the run.
async fn session(
    calls: &[i64],
    settings: Value,
    flags: &[&str],
    commands: &[&str],
) -> Option<(Vec<String>, Output, World)> {
    let world = World::new([]).await;
    if !has_full(&world) {
        return None;
    }
    world.home.write_config("settings.json", settings.to_string());
    world.home.write_home("outside.txt", "outside\n");
    let steps = commands.iter().map(|command| Step::call("Bash", bash(command)));
    let world = world.then(steps.chain([Step::text("I see.")]).collect::<Vec<_>>()).await;
    let output =
        without(calls, || world.run(&watched(["hi"]).args(flags.iter().copied()).env("IS_SANDBOX", "1")));
    let texts =
        world.model.main_requests().iter().flat_map(|it| it.tool_results()).map(|it| it.text).collect();
    Some((texts, output, world))
}

fn with_rules(rest: Value) -> Value {
    let mut sandbox = json!({"enabled": true});
    sandbox.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    json!({"sandbox": sandbox, "permissions": {"allow": ["Bash(touch *)", "Bash(echo *)", "Bash(cat *)"]}})
}

#[tokio::test]
async fn weak_level_holds_what_it_can_says_what_is_open_and_asks_as_usual() {
    let commands = ["mkdir unasked", "touch made"];
    let Some((texts, output, world)) = session(CONTAINER, with_rules(json!({})), &[], &commands).await else {
        return;
    };
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("only its weak level can be had here"), "{}", output.stderr);
    for open in
        ["probes 7, 8", "probes 11, 12, 13", "probe 14", "probes 15, 25", "probe 34", "no network at all"]
    {
        assert!(output.stderr.contains(open), "{open}: {}", output.stderr);
    }
    assert!(texts[0].contains("was not granted"), "nothing runs unasked in it: {}", texts[0]);
    assert!(world.home.project().join("made").exists(), "{}", texts[1]);
    // What runs, asked about or not, is held by Landlock and the filter.
    let commands = ["touch ../home/new", "touch .envrc", "exec 3<>/dev/tcp/127.0.0.1/3128"];
    let bypass = ["--dangerously-skip-permissions"];
    let (texts, _, world) = session(CONTAINER, with_rules(json!({})), &bypass, &commands).await.unwrap();
    assert!(texts[0].contains("Permission denied") && texts[0].contains("[sandbox]"), "{}", texts[0]);
    assert!(!world.home.home().join("new").exists());
    assert!(world.home.project().join(".envrc").exists(), "which is why it is said to be open: {}", texts[1]);
    assert!(texts[2].contains("not permitted"), "{}", texts[2]);
}

#[tokio::test]
async fn doctor_and_check_list_what_is_open_in_the_weak_level() {
    let world = World::new([]).await;
    if !has_full(&world) {
        return;
    }
    let (check, json, doctor, full, weak) = without(CONTAINER, || {
        let run = |args: &[&str]| world.run(&loci().args(args.iter().copied()));
        (
            run(&["sandbox", "check"]),
            run(&["sandbox", "check", "--json"]),
            run(&["doctor"]),
            run(&["sandbox", "run", "--", "touch", "in"]),
            run(&["sandbox", "run", "--weak", "--", "sh", "-c", "touch weak; touch ../home/out"]),
        )
    });
    assert_eq!(check.code, Some(1), "{check:?}");
    assert!(
        check.stdout.contains("Level: weak") && check.stdout.contains("entering namespaces"),
        "{}",
        check.stdout
    );
    assert!(check.stdout.contains("open: protected names inside the project"), "{}", check.stdout);
    assert!(!check.stdout.contains("enableWeakerNestedSandbox"), "that mends nothing here: {}", check.stdout);
    let report: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&report["level"], report["open"].as_array().map(Vec::len)), (&json!("weak"), Some(7)));
    assert!(doctor.stdout.contains("Sandbox: weak (settings: off)"), "{}", doctor.stdout);
    for open in ["(probes 7, 8)", "(probes 11, 12, 13)", "(probe 14)", "(probes 15, 25)", "(probe 34)"] {
        assert!(doctor.stdout.contains(open), "{open}: {}", doctor.stdout);
    }
    assert!(full.code != Some(0) && full.stderr.contains("--weak"), "{full:?}");
    assert!(!world.home.project().join("in").exists());
    assert!(weak.code != Some(0) && world.home.project().join("weak").exists(), "{weak:?}");
    assert!(!world.home.home().join("out").exists());
}

#[tokio::test]
async fn run_that_needs_the_full_sandbox_does_not_start_below_it() {
    for (calls, starts) in [(CONTAINER, false), (OLD_KERNEL, false), (&[][..], true)] {
        let settings = with_rules(json!({"failIfUnavailable": true}));
        let Some((_, output, world)) = session(calls, settings, &[], &["touch made"]).await else { return };
        assert_eq!(output.code == Some(0), starts, "{output:?}");
        assert_eq!(world.home.project().join("made").exists(), starts);
        assert_eq!(world.model.main_requests().is_empty(), !starts, "nothing is sent either");
        assert_eq!(output.stderr.contains("sandbox.failIfUnavailable"), !starts, "{}", output.stderr);
    }
}

#[tokio::test]
async fn without_any_sandbox_people_are_told_and_asked() {
    let commands = ["mkdir unasked", "touch ../home/new"];
    let Some((texts, output, world)) = session(OLD_KERNEL, with_rules(json!({})), &[], &commands).await
    else {
        return;
    };
    assert!(output.stderr.contains("settings ask for it and it cannot be had here"), "{}", output.stderr);
    assert!(texts[0].contains("was not granted"), "{}", texts[0]);
    assert!(!world.home.project().join("unasked").exists());
    // A rule that names the command but not the path outside does not let it run either.
    assert!(!world.home.home().join("new").exists(), "{}", texts[1]);
}
