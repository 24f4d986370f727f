//! Keeping a key, forgetting it, and putting the terminal right.

use loci_testkit::Step;

use crate::support::{World, loci};

#[tokio::test]
async fn key_is_kept_privately_used_and_forgotten() {
    let world = World::new([Step::text("hi")]).await;
    let output = world.run_with_stdin(&loci().arg("login"), "sk-from-login\n");
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        !output.stdout.contains("sk-from-login") && output.stdout.contains("readable by you alone"),
        "{output:?}"
    );
    let path = world.home.config_home().join("loci/api-key");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let answer = world.run(&loci().args(["-p", "hello"]).env("ANTHROPIC_API_KEY", ""));
    assert_eq!(answer.stdout.trim(), "hi", "{answer:?}");
    assert_eq!(world.last_request().header("x-api-key"), Some("sk-from-login"));
    let output = world.run(&loci().arg("logout"));
    assert!(output.stdout.contains("forgotten") && !path.exists(), "{output:?}");
    assert!(world.run(&loci().arg("logout")).stdout.contains("No key"));
}

#[tokio::test]
async fn login_without_a_key_changes_nothing() {
    let world = World::new([Step::text("hi")]).await;
    for (typed, told) in [("", "No key was given"), ("two words", "no key")] {
        let output = world.run_with_stdin(&loci().arg("login"), typed);
        assert!(output.code == Some(1) && output.stderr.contains(told), "{output:?}");
    }
    assert!(!world.home.config_home().join("loci/api-key").exists());
}

#[tokio::test]
async fn reset_terminal_prints_what_undoes_every_mode() {
    let world = World::new([Step::text("hi")]).await;
    let output = world.run(&loci().arg("reset-terminal"));
    assert_eq!(output.code, Some(0), "{output:?}");
    for mode in ["\x1b[?2004l", "\x1b[?1049l", "\x1b[?25h", "\x1b[?1000l"] {
        assert!(output.stdout.contains(mode), "{:?}", output.stdout);
    }
}

#[tokio::test]
async fn auth_status_tells_where_credentials_come_from_and_auth_logs_in_and_out() {
    let world = World::new([Step::text("hi")]).await;
    let status = |key: &str| {
        let output = world.run(&loci().args(["auth", "status"]).env("ANTHROPIC_API_KEY", key));
        let answer: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        let told = |key: &str| answer[key].as_str().unwrap_or("-").to_owned();
        (output.code, answer["loggedIn"] == true, told("authMethod"), told("apiKeySource"))
    };
    let expected =
        |code, is_in, method: &str, source: &str| (Some(code), is_in, method.to_owned(), source.to_owned());
    assert_eq!(status("sk-x"), expected(0, true, "api_key", "ANTHROPIC_API_KEY"));
    assert_eq!(status(""), expected(1, false, "none", "-"));
    let output = world.run_with_stdin(&loci().args(["auth", "login"]), "sk-from-login\n");
    assert!(output.code == Some(0) && output.stdout.contains("readable by you alone"), "{output:?}");
    assert_eq!(status(""), expected(0, true, "api_key", "loci login"));
    let text = world.run(&loci().args(["auth", "status", "--text"]).env("ANTHROPIC_API_KEY", ""));
    assert_eq!((text.code, text.stdout.as_str()), (Some(0), "Credentials: loci login\n"));
    assert!(world.run(&loci().args(["auth", "logout"])).stdout.contains("forgotten"));
    assert_eq!(status(""), expected(1, false, "none", "-"));
    let page = world.run(&loci().args(["auth", "login", "--console"]));
    assert!(page.code == Some(1) && page.stderr.contains("no login at a page"), "{page:?}");
    assert_eq!(world.requests().len(), 0);
}
