use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use loci_testkit::TestHome;

use super::*;

/// A home with credentials in it.
struct World {
    home: TestHome,
    env: Env,
}

impl World {
    fn new(vars: &[(&str, &str)]) -> Self {
        let home = TestHome::new();
        let mut env = Env::for_test(home.home(), home.project());
        env.vars = vars.iter().copied().chain([("PATH", "/usr/bin:/bin")]).collect();
        Self { home, env }
    }

    fn credentials(&self, settings: &Settings) -> Credentials {
        Credentials::new(&ConfigHome::from_env(&self.env), &self.env, settings)
    }

    /// Keeps a login that ends at this time.
    fn log_in(&self, token: &str, expires_at: i64) -> PathBuf {
        let text = format!(r#"{{"claudeAiOauth": {{"accessToken": "{token}", "expiresAt": {expires_at}}}}}"#);
        let path = self.home.write_config(".credentials.json", text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// A helper whose keys count its runs.
    fn counter(&self) -> Settings {
        helper("echo x >> runs; echo key-$(wc -l < runs)")
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.home.project().join("runs")).unwrap_or_default().lines().count()
    }
}

fn helper(command: &str) -> Settings {
    Settings { api_key_helper: Some(command.to_owned()), ..Settings::default() }
}

/// Shows a credential; the tests' own are no secrets.
async fn show(credentials: &Credentials) -> String {
    match credentials.current().await {
        Ok(Auth::ApiKey(secret)) => format!("key {}", secret.expose()),
        Ok(Auth::Bearer(secret)) => format!("token {}", secret.expose()),
        Ok(Auth::Both(secret)) => format!("both {}", secret.expose()),
        Ok(Auth::None) => "none".to_owned(),
        Ok(other) => format!("{other:?}"),
        Err(failure) => failure.message,
    }
}

/// The clock of tests starts in January 2026.
const LATER: i64 = 4_000_000_000_000;

#[tokio::test]
async fn each_source_comes_before_the_next() {
    let all = [
        ("ANTHROPIC_AUTH_TOKEN", "token ANTHROPIC_AUTH_TOKEN"),
        ("ANTHROPIC_API_KEY", "key ANTHROPIC_API_KEY"),
        ("apiKeyHelper", "both helped"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "token CLAUDE_CODE_OAUTH_TOKEN"),
        ("oauth", "token kept"),
        ("none", "none"),
    ];
    for n_gone in 0..all.len() {
        let there = &all[n_gone..];
        let has = |name: &str| there.iter().any(|(other, _)| *other == name);
        let vars: Vec<(&str, &str)> =
            there.iter().map(|(name, _)| *name).filter(|name| name.contains('_')).map(|n| (n, n)).collect();
        let world = World::new(&vars);
        if has("oauth") {
            world.log_in("kept", LATER);
        }
        let settings = if has("apiKeyHelper") { helper("echo helped") } else { Settings::default() };
        let credentials = world.credentials(&settings);
        let (source, expected) = there[0];
        assert_eq!(credentials.source().unwrap().unwrap_or("none"), source);
        assert_eq!(show(&credentials).await, expected);
    }
}

#[tokio::test]
async fn a_key_is_kept_until_it_is_old_or_refused_or_settings_change() {
    let world = World::new(&[]);
    let credentials = world.credentials(&world.counter());
    assert_eq!(show(&credentials).await, "both key-1");
    assert_eq!(show(&credentials).await, "both key-1");
    assert!(credentials.refused(&Auth::Both(Secret::new("key-1"))));
    assert_eq!(show(&credentials).await, "both key-2");
    assert!(credentials.refused(&Auth::Both(Secret::new("key-1"))), "an old one costs no new one");
    assert_eq!(show(&credentials).await, "both key-2");
    assert!(!credentials.reload(&world.env, &world.counter(), ReloadPoint::Call));
    assert_eq!(show(&credentials).await, "both key-3");
    assert!(
        credentials.reload(&world.env, &helper("echo other"), ReloadPoint::Call),
        "another command waits for the next prompt"
    );
    assert_eq!(show(&credentials).await, "both key-4");
    credentials.activate_waiting_helper();
    assert_eq!(show(&credentials).await, "both other");
    assert!(!credentials.reload(&world.env, &helper("echo third"), ReloadPoint::Prompt));
    assert_eq!(show(&credentials).await, "both third");
    assert!(!credentials.reload(&world.env, &Settings::default(), ReloadPoint::Call));
    assert_eq!(show(&credentials).await, "none", "one that is gone is not run");

    let world = World::new(&[(TTL, "0")]);
    let credentials = world.credentials(&world.counter());
    assert_eq!(show(&credentials).await, "both key-1");
    assert_eq!(show(&credentials).await, "both key-2");
}

#[tokio::test]
async fn requests_at_once_run_the_helper_once() {
    let world = World::new(&[]);
    let credentials = world.credentials(&world.counter());
    let (one, two, three) = tokio::join!(show(&credentials), show(&credentials), show(&credentials));
    assert_eq!([one, two, three], ["both key-1"; 3]);
    assert_eq!(world.runs(), 1);
}

#[tokio::test]
async fn a_helper_that_gives_no_key_is_named_after_three_runs() {
    for (command, problem) in [
        ("echo x >> runs; exit 3", "the command ended with code 3"),
        ("echo x >> runs", "the command printed nothing"),
        ("echo x >> runs; echo a; echo secret", "the command printed more than one line"),
        ("echo x >> runs; kill -9 $$", "the command was killed"),
    ] {
        let world = World::new(&[]);
        let credentials = world.credentials(&helper(command));
        assert_eq!(show(&credentials).await, format!("`apiKeyHelper` gave no key: {problem}"));
        assert_eq!(world.runs(), 3, "{command}");
    }
}

#[tokio::test]
async fn helper_that_takes_long_is_told_to_whoever_listens() {
    let world = World::new(&[]);
    let announcer = loci_llm::Announcer::default();
    let heard = world.home.project().join("heard");
    announcer.listen(move |text| fs::write(&heard, text).unwrap());
    // It ends once somebody has heard of it.
    let command = "until [ -s heard ]; do sleep 0.01; done; cat heard";
    let key = helper::patiently(command, &world.env, Duration::ZERO, &announcer).await;
    assert_eq!(key.unwrap().expose(), "Still waiting for the command of `apiKeyHelper`");
}

#[tokio::test]
async fn a_helper_that_works_the_third_time_has_worked() {
    let world = World::new(&[]);
    let command = "echo x >> runs; [ $(wc -l < runs) -ge 3 ] && echo late";
    assert_eq!(show(&world.credentials(&helper(command))).await, "both late");
}

#[tokio::test]
async fn a_helper_sees_the_settings_variables_but_no_other_credentials() {
    let world = World::new(&[("TEAM", "blue"), ("ANTHROPIC_CUSTOM_HEADERS", "X: y")]);
    let command = "echo $TEAM-$ANTHROPIC_CUSTOM_HEADERS-$PWD";
    let expected = format!("both blue--{}", world.home.project().display());
    assert_eq!(show(&world.credentials(&helper(command))).await, expected);
}

#[tokio::test]
async fn a_stored_login_is_read_anew_and_must_be_usable() {
    let world = World::new(&[]);
    let credentials = world.credentials(&Settings::default());
    let path = world.log_in("one", LATER);
    assert_eq!(show(&credentials).await, "token one");
    world.log_in("two", LATER);
    assert!(credentials.refused(&Auth::Bearer(Secret::new("one"))), "it may have been renewed");
    assert_eq!(show(&credentials).await, "token two");
    world.log_in("two", 1);
    assert_eq!(show(&credentials).await, "The stored login has expired");
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(show(&credentials).await.starts_with("Others may read credentials"));
    assert!(credentials.source().is_err());
}

#[tokio::test]
async fn stored_login_is_not_used_where_settings_restrict_logins() {
    let world = World::new(&[]);
    world.log_in("kept", LATER);
    let method = |name: &str| Settings { force_login_method: Some(name.to_owned()), ..Settings::default() };
    let org = Settings { forces_login_org: true, ..Settings::default() };
    for (settings, expected) in [
        (method("claudeai"), "token kept"),
        (method("console"), "none"),
        (method("gateway"), "none"),
        (org, "none"),
    ] {
        assert_eq!(show(&world.credentials(&settings)).await, expected);
    }
}

#[test]
fn nothing_secret_is_printed() {
    let world = World::new(&[("ANTHROPIC_API_KEY", "sk-1")]);
    assert_eq!(format!("{:?}", world.credentials(&Settings::default())), "Credentials");
}
