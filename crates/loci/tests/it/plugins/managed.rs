//! What an administrator says of plugins, in the directory that only an administrator writes to: it is put into `/etc` of a
//! mount namespace that ends with each run. Where there can be none, that is said and nothing is tried.

use loci_testkit::{Binary, Output, Step};
use serde_json::{Value, json};

use super::needs::market;
use super::verbs::fine;
use crate::support::World;

/// Puts the settings of an administrator where they belong, and runs what follows.
const AS_MANAGED: &str = "mount -t tmpfs tmpfs /etc && mkdir /etc/claude-code && \
    cp managed.json /etc/claude-code/managed-settings.json && exec \"$@\"";

/// Runs loci with settings of an administrator; none where there is no way to have such.
#[expect(clippy::print_stdout, reason = "a test that does nothing says why")]
fn run_managed(world: &World, settings: &Value, words: &[&str]) -> Option<Output> {
    let script = "mount -t tmpfs tmpfs /etc";
    let probe = std::process::Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", script])
        .output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        println!("skipped: there can be no mount namespace here");
        return None;
    }
    world.home.write("managed.json", settings.to_string());
    let binary = Binary::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", AS_MANAGED, "sh", env!("CARGO_BIN_EXE_loci")])
        .args(words.iter().copied());
    Some(world.run(&binary))
}

#[tokio::test]
async fn plugin_that_the_administrator_turns_off_is_neither_installed_nor_used() {
    let world = World::new(Step::text("done")).await;
    market(
        &world,
        "m",
        &json!({}),
        &[("kit", json!({"version": "1.0.0"})), ("other", json!({"version": "1.0.0"}))],
    );
    fine(&world, &["marketplace", "add", "./m"]);
    let off = json!({"enabledPlugins": {"kit@m": false}});
    let Some(refused) = run_managed(&world, &off, &["plugin", "install", "kit@m"]) else { return };
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("the administrator has turned it off for everybody"),
        "{}",
        refused.stderr
    );
    assert!(!world.home.config_home().join("plugins/installed_plugins.json").exists());
    let Some(other) = run_managed(&world, &off, &["plugin", "install", "other@m"]) else { return };
    assert_eq!(other.code, Some(0), "{other:?}");

    fine(&world, &["install", "kit@m"]);
    let Some(list) = run_managed(&world, &off, &["plugin", "list"]) else { return };
    assert!(
        list.stdout.contains("kit@m  1.0.0  off") && list.stdout.contains("other@m  1.0.0  on"),
        "{}",
        list.stdout
    );
}

#[tokio::test]
async fn message_of_the_administrator_is_said_to_whoever_installs_a_plugin() {
    let world = World::new(Step::text("done")).await;
    market(&world, "m", &json!({}), &[("kit", json!({"version": "1.0.0"}))]);
    fine(&world, &["marketplace", "add", "./m"]);
    let message = json!({"pluginTrustMessage": "Ask the platform team\nfirst."});
    let Some(output) = run_managed(&world, &message, &["plugin", "install", "kit@m"]) else { return };
    assert_eq!(output.code, Some(0), "{output:?}");
    let said = "The administrator says: Ask the platform team";
    assert!(
        output.stdout.lines().any(|line| line.starts_with(said) && line.contains("first.")),
        "{}",
        output.stdout
    );
    world.home.write_config("settings.json", message.to_string());
    fine(&world, &["uninstall", "kit@m"]);
    assert!(
        !fine(&world, &["install", "kit@m"]).contains("The administrator says"),
        "nobody else speaks for one"
    );
}
