//! Sessions whose commands run in the sandbox: what runs unasked, what is refused, what the model is told.

mod entrances;
mod hosts;
mod levels;
mod regressions;

use crate::support::{World, assert_fine, loci, watched};
use loci_testkit::{Output, Step};
use serde_json::{Value, json};

/// Tells whether this machine has the full sandbox; says so by name where it does not.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn has_full(world: &World) -> bool {
    let output = world.run(&loci().args(["sandbox", "check"]));
    let is_full = output.stdout.contains("Level: full");
    if !is_full {
        eprintln!("skipped: {}", output.stdout);
    }
    is_full
}

/// Has the model make calls under these settings; returns their results, as the model reads them, and what was said.
async fn results(settings: Value, args: &[&str], calls: &[Value]) -> Option<(Vec<String>, String, World)> {
    let (output, world) = run_calls(settings, args, calls).await?;
    assert_fine(&output);
    Some((tool_results(&world), output.stderr, world))
}

/// Has the model make calls under these settings; returns what came of the run.
async fn run_calls(settings: Value, args: &[&str], calls: &[Value]) -> Option<(Output, World)> {
    let world = World::new([]).await;
    if !has_full(&world) {
        return None;
    }
    world.home.write_config("settings.json", settings.to_string());
    world.home.write_home("outside.txt", "outside\n");
    world.home.write_home(".netrc", "machine secret\n");
    let steps: Vec<Step> = calls.iter().map(|call| Step::call("Bash", call.clone())).collect();
    let world = world.then(steps.into_iter().chain([Step::text("I see.")]).collect::<Vec<_>>()).await;
    let output = world.run(&watched(["hi"]).args(args.iter().copied()));
    Some((output, world))
}

fn tool_results(world: &World) -> Vec<String> {
    world.requests().iter().flat_map(|it| it.tool_results()).map(|result| result.text).collect()
}

fn on() -> Value {
    json!({"sandbox": {"enabled": true}})
}

fn bash(command: &str) -> Value {
    json!({"command": command})
}

#[tokio::test]
async fn sandboxed_command_runs_unasked_and_cannot_write_outside() {
    let calls = [
        bash("touch made && echo done"),
        bash("echo x > ../home/outside.txt"),
        bash("cat ~/.netrc"),
        bash("cat ../home/outside.txt; X=$HOME; ls $X >/dev/null && echo $TMPDIR && touch $TMPDIR/t"),
        bash("mkdir -p sub && cd sub"),
        bash("pwd; mkdir .envrc; git init -q . && echo made"),
    ];
    let Some((texts, said, world)) = results(on(), &[], &calls).await else { return };
    assert_eq!(texts[0], "done");
    assert!(world.home.project().join("made").exists());
    assert!(texts[1].contains("[sandbox] writing") && texts[1].contains("outside.txt"), "{}", texts[1]);
    assert!(texts[1].contains("dangerouslyDisableSandbox"), "{}", texts[1]);
    assert!(texts[2].contains("Permission denied") && texts[2].contains("allowRead"), "{}", texts[2]);
    assert!(texts[3].contains("outside") && texts[3].contains("/sandbox"), "{}", texts[3]);
    assert!(
        texts[5].contains("/sub") && texts[5].contains("made"),
        "the shell stays where it went: {}",
        texts[5]
    );
    assert_eq!(std::fs::read_to_string(world.home.home().join("outside.txt")).unwrap(), "outside\n");
    let names: Vec<_> =
        std::fs::read_dir(world.home.project()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(
        !names.iter().any(|name| name == ".vscode" || name == "HEAD"),
        "placeholders are gone: {names:?}"
    );
    assert!(!said.contains("Sandbox"), "{said}");
}

/// What a repository would run outside is said where the command's result is read.
#[tokio::test]
async fn repository_is_made_in_the_session_s_directory_without_what_would_run_outside() {
    let calls = [
        bash(
            "cd .. ; cd project && rm -rf .git; git init -q && git config core.pager 'touch pwned' && git rev-parse --is-inside-work-tree",
        ),
        bash("git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git log --format=%s"),
    ];
    let Some((texts, _, world)) = results(on(), &[], &calls).await else { return };
    assert!(texts[0].starts_with("true\n"), "{}", texts[0]);
    assert!(
        texts[0].contains("[sandbox] the repository") && texts[0].contains("`core.pager`"),
        "{}",
        texts[0]
    );
    assert_eq!(texts[1], "one");
    let config = std::fs::read_to_string(world.home.project().join(".git/config")).unwrap();
    assert!(config.contains("[core]") && !config.contains("pager"), "{config}");
}

/// What ends well was refused something all the same where git, or a pipe, goes on.
#[tokio::test]
async fn refusals_of_a_command_that_ends_well_are_told_with_it() {
    let asks =
        "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT h.invalid:443 HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3";
    let calls = [
        bash(
            "git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git branch gone",
        ),
        bash("git branch -d gone"),
        bash("git branch -m other 2>&1 | cat"),
        bash(asks),
        bash("false"),
        bash("seq 200000; touch ../outside.txt || true"),
        bash("grep -r nothing .git/HEAD || echo 'touch: /etc/x: Read-only file system, they say'"),
        json!({"command": "false", "run_in_background": false, "dangerouslyDisableSandbox": true}),
    ];
    let strict = json!({"sandbox": {"enabled": true, "allowUnsandboxedCommands": false}});
    let Some((texts, ..)) = results(strict, &[], &calls).await else { return };
    let config = "`.git/config` stays shut";
    let says = |idx: usize, words: &[&str]| {
        let text = texts[idx].replace(&format!("{}/", project_of(&texts[idx])), "");
        words.iter().for_each(|it| assert!(text.contains(it), "{idx}: {it}: {text}"));
    };
    says(1, &["Deleted branch gone", "[sandbox] writing", config, "a branch is renamed or deleted"]);
    says(2, &["update of config-file failed", config]);
    says(3, &["403", "[sandbox] `h.invalid:443` was refused", "WebFetch(domain:h.invalid)"]);
    assert!(!texts[4].contains("[sandbox]"), "it is told once, of the command that asked: {}", texts[4]);
    says(5, &["<persisted-output>", "[sandbox] writing", "outside.txt"]);
    assert!(!texts[6].contains("[sandbox]"), "{}", texts[6]);
    says(7, &["dangerouslyDisableSandbox has no effect"]);
}

/// Returns the project that a result names.
fn project_of(text: &str) -> &str {
    let named = text.split('`').find(|it| it.ends_with("/.git/config"));
    named.and_then(|it| it.strip_suffix("/.git/config")).unwrap_or("/nowhere")
}

#[tokio::test]
async fn leaving_the_sandbox_is_a_question_and_rules_still_hold() {
    let outside = json!({"command": "touch made", "dangerouslyDisableSandbox": true});
    let refused = |text: &str| text.contains("was not granted");
    let Some((texts, ..)) = results(on(), &[], std::slice::from_ref(&outside)).await else { return };
    assert!(refused(&texts[0]), "nobody can be asked: {}", texts[0]);
    let strict = json!({"sandbox": {"enabled": true, "allowUnsandboxedCommands": false}});
    let both = [outside.clone(), json!({"command": "touch ../x", "dangerouslyDisableSandbox": true})];
    let (texts, ..) = results(strict, &[], &both).await.unwrap();
    assert!(!refused(&texts[0]), "the wish is not heard, and it runs inside: {}", texts[0]);
    assert!(texts[1].contains("Read-only file system"), "{}", texts[1]);
    let allowed = json!({"sandbox": {"enabled": true}, "permissions": {"allow": ["Bash(touch *)"]}});
    let (texts, ..) = results(allowed, &[], &[outside]).await.unwrap();
    assert!(refused(&texts[0]), "an allow rule does not lead out: {}", texts[0]);
    for (settings, args, command, is_refused) in [
        (
            json!({"sandbox": {"enabled": true}, "permissions": {"deny": ["Bash(touch *)"]}}),
            &[][..],
            "touch a",
            true,
        ),
        (
            json!({"sandbox": {"enabled": true}, "permissions": {"ask": ["Bash(touch *)"]}}),
            &[],
            "touch a",
            true,
        ),
        (json!({"sandbox": {"enabled": true}, "permissions": {"ask": ["Bash"]}}), &[], "touch a", false),
        (json!({"sandbox": {"enabled": true}, "permissions": {"ask": ["Bash(*)"]}}), &[], "touch a", false),
        (json!({"sandbox": {"enabled": true, "autoAllowBashIfSandboxed": false}}), &[], "touch a", true),
        (json!({"sandbox": {"enabled": true, "excludedCommands": ["touch *"]}}), &[], "touch a", true),
        (json!({"sandbox": {"enabled": true, "excludedCommands": ["touch"]}}), &[], "ls && touch a", true),
        (on(), &["--permission-mode", "plan"], "touch a", true),
        (on(), &[], "rm -rf ~", true),
        (json!({}), &[], "touch a", true),
    ] {
        let (texts, ..) = results(settings.clone(), args, &[bash(command)]).await.unwrap();
        assert_eq!(refused(&texts[0]), is_refused, "{settings} {args:?} {command}: {}", texts[0]);
    }
}

#[tokio::test]
async fn paths_of_settings_and_rules_are_the_sandbox_s_too() {
    let settings = json!({
        "sandbox": {
            "enabled": true,
            "filesystem": {"allowWrite": ["~/open"], "denyRead": ["~/outside.txt"], "allowRead": ["~/.netrc"]},
            "credentials": {"envVars": [{"name": "SECRET", "mode": "deny"}]},
        },
        "permissions": {"deny": ["Edit(./kept/**)", "Read(*.pem)"], "allow": []},
    });
    let world = World::new([]).await;
    if !has_full(&world) {
        return;
    }
    world.home.write_config("settings.json", settings.to_string());
    world.home.write_home("open/x", "");
    world.home.write_home("outside.txt", "hidden");
    world.home.write_home(".netrc", "shown");
    world.home.write("kept/a", "kept");
    world.home.write("deep/k.pem", "key");
    let script = "echo x > ~/open/y; cat ~/.netrc; f=~/outside.txt; cat $f; d=kept; echo x > $d/b; n=k; cat deep/$n.pem; echo \"[$SECRET]\"";
    let output =
        world.run(&loci().args(["sandbox", "run", "--", "sh", "-c", script]).env("SECRET", "s3cret"));
    let text = output.stdout;
    assert!(world.home.home().join("open/y").exists(), "{text}");
    assert!(text.contains("shown") && !text.contains("hidden") && !text.contains("key\n"), "{text}");
    assert!(!world.home.project().join("kept/b").exists(), "{text}");
    assert!(text.contains("[]") && !text.contains("s3cret"), "{text}");
}

#[tokio::test]
async fn sandbox_verbs_check_and_run() {
    let world = World::new([]).await;
    if !has_full(&world) {
        return;
    }
    let output = world.run(&loci().args([
        "sandbox",
        "run",
        "--",
        "sh",
        "-c",
        "touch in && echo x > ../home/out || exit 9",
    ]));
    assert_eq!(output.code, Some(9), "{}", output.stderr);
    assert!(world.home.project().join("in").exists() && !world.home.home().join("out").exists());
    let made = world.run(&loci().args([
        "sandbox",
        "run",
        "--",
        "sh",
        "-c",
        "rm -rf .git; git init -q && git config alias.x '!y'; curl -s http://refused.invalid/; true",
    ]));
    assert!(made.code == Some(0) && made.stderr.contains("[sandbox] the repository"), "{}", made.stderr);
    assert!(made.stderr.contains("`alias.x`"), "{}", made.stderr);
    let report = world.run(&loci().args(["sandbox", "check", "--json"]));
    assert!(report.stdout.contains("\"level\": \"full\""), "{}", report.stdout);
    let doctor = world.run(&loci().args(["doctor"]));
    assert!(doctor.stdout.contains("full (settings: off)"), "{}", doctor.stdout);
    world.home.write_config(
        "settings.json",
        json!({"sandbox": {"enabled": true, "excludedCommands": ["docker"]}}).to_string(),
    );
    for (command, expected) in
        [("touch x", "runs inside"), ("docker ps", "runs outside: sandbox.excludedCommands")]
    {
        let output = world.run(&loci().args(["permissions", "explain", "Bash", command]));
        assert!(output.stdout.contains(expected), "{command}: {}", output.stdout);
    }
    let network = json!({"allowedDomains": ["a.com", "::1:80"]});
    let settings = json!({"sandbox": {"enabled": true, "network": network}}).to_string();
    world.home.write_config("settings.json", settings);
    let doctor = world.run(&loci().args(["doctor"]));
    assert!(doctor.stdout.contains("`::1:80` may be an address or one with a port"), "{}", doctor.stdout);
    assert!(!doctor.stdout.contains("a.com"), "{}", doctor.stdout);
    let settings = json!({"sandbox": {"enabled": true, "network": {"tlsTerminate": {}}}}).to_string();
    world.home.write_config("settings.json", settings);
    let lost = "`sandbox.network.tlsTerminate` has no effect";
    let doctor = world.run(&loci().args(["doctor"]));
    assert!(doctor.stdout.contains(lost), "{}", doctor.stdout);
    let output = world.run(&loci().args(["sandbox", "run", "--", "true"]));
    assert!(output.code == Some(0) && output.stderr.contains(lost), "{}", output.stderr);
}

#[tokio::test]
async fn settings_for_a_sandbox_that_is_off_are_said() {
    for settings in
        [json!({"filesystem": {"denyRead": ["~/x"]}}), json!({"network": {"strictAllowlist": true}})]
    {
        let world = World::new([Step::text("hi")]).await;
        world.home.write_config("settings.json", json!({"sandbox": settings}).to_string());
        let output = world.run(&watched(["hi"]));
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        assert!(output.stderr.contains("`sandbox.enabled` is not set"), "{settings}: {}", output.stderr);
    }
}

/// A project may say less than the user once it is trusted, and never unnoticed.
#[tokio::test]
async fn project_that_turns_the_sandbox_off_is_told_of() {
    for is_trusted in [true, false] {
        let world = World::new([]).await;
        if !has_full(&world) {
            return;
        }
        world.home.write_config("settings.json", on().to_string());
        world.home.write(".claude/settings.json", json!({"sandbox": {"enabled": false}}).to_string());
        if is_trusted {
            crate::settings::trust(&world);
        }
        let call = Step::call("Bash", bash("touch made"));
        let world = world.then([call, Step::text("I see.")]).await;
        let output = world.run(&watched(["hi"]));
        let said = "this project's settings hold less than yours: `sandbox.enabled` is false";
        assert_eq!(output.stderr.contains(said), is_trusted, "{}", output.stderr);
        assert_eq!(world.home.project().join("made").exists(), !is_trusted, "without trust it runs inside");
    }
}

#[tokio::test]
async fn settings_that_open_or_fill_in_connections_are_said_to_have_no_effect_and_hide_what_they_name() {
    let settings = json!({
        "env": {"TOKEN": "secret"},
        "sandbox": {
            "enabled": true,
            "network": {"tlsTerminate": {}},
            "credentials": {
                "envVars": [{"name": "TOKEN", "mode": "mask", "injectHosts": ["a.test"]}],
                "files": [{"path": "~/outside.txt", "mode": "mask", "extract": "(x)"}],
                "awsPairs": [{"accessKeyIdVar": "A", "secretAccessKeyVar": "B"}]
            }
        }
    });
    let calls = [bash("echo token=$TOKEN; cat ~/outside.txt || true")];
    let Some((output, world)) = run_calls(settings, &[], &calls).await else { return };
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let (texts, said) = (tool_results(&world), output.stderr);
    assert!(texts[0].contains("token=\n") && texts[0].contains("Permission denied"), "{}", texts[0]);
    let mask = r#""mode": "mask" in sandbox.credentials"#;
    for key in ["sandbox.network.tlsTerminate", mask, "sandbox.credentials.awsPairs"] {
        assert!(said.contains(&format!("`{key}` has no effect")), "{key}: {said}");
    }
}
