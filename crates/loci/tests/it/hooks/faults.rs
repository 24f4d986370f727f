//! Hooks that misbehave cost themselves only: no message is lost, and no turn hangs.

use loci_testkit::Step;
use serde_json::json;

use super::{configure, run};
use crate::support::World;

#[tokio::test]
async fn hooks_that_misbehave_cost_themselves_only() {
    let faults = [
        ("flood", "head -c 20000000 /dev/zero | tr '\\0' x"),
        ("invalid text", "printf 'a\\377\\376b'; printf '\\377' >&2; exit 1"),
        ("closed pipes", "exec <&- >&- 2>&-; exit 0"),
        ("no reading", "exit 0"),
        ("leftover", "sleep 30 & exit 0"),
        ("bad object", "echo '{\"continue\": 5}'"),
        ("deep object", "python3 -c 'print(\"{\\\"a\\\":\" * 3000)' 2>/dev/null || echo '{'"),
        ("signal", "kill -9 $$"),
    ];
    for event in ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"] {
        for (name, fault) in faults {
            let world =
                World::new(vec![Step::call("Bash", json!({"command": "touch made"})), Step::text("Done.")])
                    .await;
            configure(&world, json!({event: super::command("", fault)}));
            let output = run(&world);
            assert!(world.home.project().join("made").exists(), "{event} {name}");
            assert_eq!(super::result(&output)["result"], "Done.", "{event} {name}");
        }
    }
}

#[tokio::test]
async fn hook_that_ignores_signals_and_forks_is_ended_at_its_time() {
    let world =
        World::new(vec![Step::call("Bash", json!({"command": "touch made"})), Step::text("Done.")]).await;
    let stubborn =
        "trap '' TERM INT HUP; (trap '' TERM; while :; do sleep 0.05; done) & while :; do sleep 0.05; done";
    let handler = json!({"type": "command", "command": stubborn, "timeout": 0.3});
    configure(&world, json!({"PreToolUse": [{"hooks": [handler]}]}));
    let output = run(&world);
    assert!(world.home.project().join("made").exists());
    assert!(output.stderr.contains("did not end in time"), "{}", output.stderr);
}

#[tokio::test]
async fn long_text_of_a_hook_goes_to_a_file_and_leaves_a_preview() {
    let world = World::new(Step::text("Done.")).await;
    configure(
        &world,
        json!({"UserPromptSubmit": super::command("", "head -c 50000 /dev/zero | tr '\\0' x; echo END")}),
    );
    run(&world);
    let told = super::last_message(&world);
    assert!(told.len() < 30_000 && !told.contains("END"), "{}", told.len());
    assert!(told.contains("tool-results/hook-"), "{told}");
}
