//! Logins at a server that wants one: found, begun, answered, renewed, widened, ended; and everything that may be wrong
//! with who gives them.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Condvar, Mutex};

use loci_mcp::ServerStatus::{Connected, Failed, NeedsAuth};
use loci_mcp::{LoginKey, LoginOptions, LoginStore, Logins, Logout, RenewalLock, StoredLogin};
use loci_stdx::OsRandom;
use loci_testkit::AuthorizedServer;
use serde_json::{Value, json};

use crate::remote_servers::Listening;
use crate::support::{World, client, official_sdk, script, until};

/// Keeps logins in memory, for several worlds as a file would for several processes.
#[derive(Default)]
struct MemoryStore {
    logins: Mutex<HashMap<String, StoredLogin>>,
    is_locked: Arc<(Mutex<bool>, Condvar)>,
    secret: Option<String>,
}

struct Held(Arc<(Mutex<bool>, Condvar)>);

impl Drop for Held {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap() = false;
        self.0.1.notify_all();
    }
}

impl LoginStore for MemoryStore {
    fn load(&self, key: &LoginKey) -> Result<StoredLogin, String> {
        Ok(self.logins.lock().unwrap().get(&key.id()).cloned().unwrap_or_default())
    }

    fn save(&self, key: &LoginKey, login: &StoredLogin) -> Result<(), String> {
        let mut logins = self.logins.lock().unwrap();
        match login.is_empty() {
            true => logins.remove(&key.id()),
            false => logins.insert(key.id(), login.clone()),
        };
        Ok(())
    }

    fn lock(&self, _key: &LoginKey) -> Result<RenewalLock, String> {
        let mut is_locked = self.is_locked.0.lock().unwrap();
        while *is_locked {
            is_locked = self.is_locked.1.wait(is_locked).unwrap();
        }
        *is_locked = true;
        Ok(Box::new(Held(Arc::clone(&self.is_locked))))
    }

    fn client_secret(&self, _key: &LoginKey) -> Result<Option<String>, String> {
        Ok(self.secret.clone())
    }
}

/// A server that wants a login, and us with a store.
struct Login {
    server: AuthorizedServer,
    store: Arc<MemoryStore>,
    entry: Value,
    document: Option<String>,
}

impl Login {
    fn new(options: Value) -> Self {
        let server = AuthorizedServer::start(&options);
        let entry = json!({"type": "http", "url": server.url()});
        Self { server, store: Arc::default(), entry, document: None }
    }

    async fn world(&self) -> World {
        let store = Arc::clone(&self.store) as Arc<dyn LoginStore>;
        let client_metadata = self.document.clone();
        let logins = Logins { store, random: Arc::new(OsRandom), client_metadata };
        World::start_with_logins(json!({"s": self.entry}), logins).await
    }

    fn stored(&self) -> StoredLogin {
        self.store.load(&LoginKey { server: "s".to_owned(), url: self.server.url() }).unwrap()
    }

    /// Changes what is stored.
    fn change(&self, change: impl FnOnce(&mut StoredLogin)) {
        let mut login = self.stored();
        change(&mut login);
        self.store.save(&LoginKey { server: "s".to_owned(), url: self.server.url() }, &login).unwrap();
    }
}

/// Logs in as a person with a browser would, and returns what comes of it.
async fn log_in(world: &World) -> Result<(), String> {
    let mut prompt = world.servers.begin_login("s", LoginOptions::default()).await?.unwrap();
    visit(&prompt.page).await;
    prompt.outcome().await
}

/// Visits a page and follows it wherever it leads, as a browser does; returns the last address and what it says.
async fn visit(page: &str) -> (String, String) {
    client().unwrap();
    let browser = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = browser.get(page).send().await.unwrap();
    (answer.url().to_string(), answer.text().await.unwrap())
}

#[tokio::test]
async fn login_is_found_begun_used_and_ended() {
    let login = Login::new(json!({"resource_scopes": "a b"}));
    let world = login.world().await;
    let (status, error) = world.status("s");
    assert!(status == NeedsAuth && error.contains("wants a login"), "{status:?} {error}");
    assert_eq!(log_in(&world).await, Ok(()));
    until("it is connected by itself", || world.status("s").0 == Connected).await;
    assert_eq!(world.call("s", "scope", json!({})).await, Ok("scope: a b".to_owned()));
    let [registered, token] =
        ["/register", "/token"].map(|path| login.server.requests_to(path)[0]["sent"].clone());
    assert_eq!(
        (&registered["application_type"], &registered["client_name"]),
        (&json!("native"), &json!("loci"))
    );
    assert_eq!(token["resource"], login.server.url(), "exactly as it is published");
    let token = login.stored().access_token.unwrap();
    assert!(!world.log("s").contains(&token), "no token is in the log");

    assert_eq!(world.servers.logout("s").await, Ok(Logout::Revoked));
    let revoked: Vec<_> =
        login.server.requests_to("/revoke").iter().map(|it| it["sent"]["token_type_hint"].clone()).collect();
    assert_eq!(revoked, ["refresh_token", "access_token"]);
    until("it wants a login again", || world.status("s").0 == NeedsAuth).await;
    assert_eq!(world.servers.logout("s").await, Ok(Logout::NoLogin));
}

#[tokio::test]
async fn every_place_of_a_description_is_found() {
    for options in [
        json!({"describe": "header"}),
        json!({"describe": "root"}),
        json!({"describe": "path", "issuer_path": "/tenant"}),
        json!({"describe": "path", "issuer_path": "/tenant", "openid": true}),
        json!({"describe": "path", "openid": true}),
        json!({"describe": "none"}),
    ] {
        let login = Login::new(options.clone());
        let world = login.world().await;
        assert_eq!(world.status("s").0, NeedsAuth, "{options}: {:?}", world.status("s"));
        assert_eq!(log_in(&world).await, Ok(()), "{options}");
        until("it is connected", || world.status("s").0 == Connected).await;
    }
}

#[tokio::test]
async fn scopes_come_from_the_header_first_and_a_pin_is_all() {
    let both = json!({"challenge_scope": "header", "resource_scopes": "resource", "server_scopes": "x offline_access"});
    for (options, pinned, expected) in [
        (both.clone(), None, json!("header offline_access")),
        (both.clone(), Some("pin"), json!("pin offline_access")),
        (json!({"resource_scopes": "r1 r2"}), None, json!("r1 r2")),
        (json!({"server_scopes": "x y"}), None, Value::Null),
    ] {
        let mut login = Login::new(options.clone());
        if let Some(pinned) = pinned {
            login.entry["oauth"] = json!({"scopes": pinned});
        }
        let world = login.world().await;
        assert_eq!(log_in(&world).await, Ok(()), "{options}");
        assert_eq!(login.server.requests_to("/authorize")[0]["sent"]["scope"], expected, "{options}");
    }
}

#[tokio::test]
async fn clients_are_configured_described_or_registered() {
    let mut login = Login::new(json!({"configured_secret": "s3cret", "registration": false}));
    login.entry["oauth"] = json!({"clientId": "configured"});
    login.store = Arc::new(MemoryStore { secret: Some("s3cret".to_owned()), ..MemoryStore::default() });
    let world = login.world().await;
    assert_eq!(log_in(&world).await, Ok(()), "a client of the entry, with its secret");
    assert!(login.server.requests_to("/token")[0]["authorization"].as_str().unwrap().starts_with("Basic "));

    let mut login = Login::new(json!({"cimd": "https://example.com/client.json"}));
    login.document = Some("https://example.com/client.json".to_owned());
    let world = login.world().await;
    assert_eq!(log_in(&world).await, Ok(()), "a document that describes us");
    assert_eq!(
        login.server.requests_to("/authorize")[0]["sent"]["client_id"],
        "https://example.com/client.json"
    );
    assert!(login.server.requests_to("/register").is_empty());

    for method in ["client_secret_basic", "client_secret_post"] {
        let login = Login::new(json!({"auth_methods": [method]}));
        let world = login.world().await;
        assert_eq!(log_in(&world).await, Ok(()), "{method}");
        assert_eq!(login.server.requests_to("/register")[0]["sent"]["token_endpoint_auth_method"], method);
    }

    let login = Login::new(json!({"registration": false}));
    let world = login.world().await;
    let said = log_in(&world).await.unwrap_err();
    assert!(said.contains("does not let clients register") && said.contains("--client-id"), "{said}");
}

#[tokio::test]
async fn registration_is_used_again_unless_the_issuer_is_another() {
    let login = Login::new(json!({}));
    let world = login.world().await;
    assert_eq!(log_in(&world).await, Ok(()));
    assert_eq!(log_in(&world).await, Ok(()));
    assert_eq!(login.server.requests_to("/register").len(), 1, "who we are is known");
    login.server.set(&json!({"issuer_path": "/moved"}));
    assert_eq!(log_in(&world).await, Ok(()));
    assert_eq!(login.server.requests_to("/register").len(), 2, "another issuer does not know us");
    assert!(login.stored().issuer.unwrap().ends_with("/moved"));
}

#[tokio::test]
async fn answers_that_are_wrong_give_no_login() {
    for (options, said) in [
        (json!({"iss": "wrong"}), "another issuer, `https://evil.example`"),
        (json!({"names_issuer": true}), "does not name its issuer"),
        (json!({"deny": true}), "access_denied not today"),
    ] {
        let login = Login::new(options.clone());
        let world = login.world().await;
        let outcome = log_in(&world).await;
        assert!(outcome.as_ref().is_err_and(|it| it.contains(said)), "{options}: {outcome:?}");
        assert!(login.server.requests_to("/token").is_empty() && login.stored().access_token.is_none());
    }
    let login = Login::new(json!({"iss": "right", "names_issuer": true}));
    assert_eq!(log_in(&login.world().await).await, Ok(()));
}

#[tokio::test]
async fn wrong_state_changes_nothing_and_the_right_answer_is_still_waited_for() {
    let login = Login::new(json!({"state": "wrong"}));
    let world = login.world().await;
    let mut prompt = world.servers.begin_login("s", LoginOptions::default()).await.unwrap().unwrap();
    let (_, said) = visit(&prompt.page).await;
    assert!(said.contains("another state"), "{said}");
    assert!(login.server.requests_to("/token").is_empty());
    login.server.set(&json!({}));
    visit(&prompt.page).await;
    assert_eq!(prompt.outcome().await, Ok(()));
}

#[tokio::test]
async fn address_that_a_person_pastes_is_checked_alike() {
    let login = Login::new(json!({}));
    let world = login.world().await;
    let elsewhere = "http://localhost:9/callback".to_owned();
    let wish = LoginOptions { redirect_uri: Some(elsewhere), ..LoginOptions::default() };
    let mut prompt = world.servers.begin_login("s", wish).await.unwrap().unwrap();
    assert_eq!(prompt.port, None, "whoever asked waits for the browser");
    let browser =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let answer = browser.get(&prompt.page).send().await.unwrap();
    let address = answer.headers()["location"].to_str().unwrap().to_owned();
    assert!(world.servers.answer_login("s", "nonsense").await.unwrap_err().contains("Not an address"));
    let forged = address.replace("state=", "state=x");
    assert!(world.servers.answer_login("s", &forged).await.unwrap_err().contains("another state"));
    assert_eq!(world.servers.answer_login("s", &address).await, Ok(()));
    assert_eq!(prompt.outcome().await, Ok(()));
    assert!(world.servers.answer_login("s", &address).await.is_err(), "nobody waits any more");
    assert!(world.servers.answer_login("t", &address).await.is_err());
}

#[tokio::test]
async fn descriptions_that_are_not_to_be_believed_are_named() {
    for (options, said) in [
        (json!({"issuer": "https://evil.example"}), "another issuer, `https://evil.example`"),
        (json!({"describe": "foreign"}), "another resource, `http://127.0.0.1:9/mcp`"),
        (json!({"metadata_redirect": true}), "redirects to another host"),
    ] {
        let login = Login::new(options.clone());
        let world = login.world().await;
        let (status, error) = world.status("s");
        assert!(status == Failed && error.contains(said), "{options}: {status:?} {error}");
        let outcome = log_in(&world).await;
        assert!(outcome.as_ref().is_err_and(|it| it.contains(said)), "{options}: {outcome:?}");
        assert!(login.server.requests_to("/register").is_empty(), "nothing is said there");
    }
    let login = Login::new(json!({"basic": true}));
    assert_eq!(login.world().await.status("s").0, Failed, "no token answers a question for a password");
}

#[tokio::test]
async fn token_is_renewed_before_its_end_and_when_it_is_refused() {
    let login = Login::new(json!({}));
    let world = login.world().await;
    log_in(&world).await.unwrap();
    until("it is connected", || world.status("s").0 == Connected).await;
    let first = login.stored();
    login.change(|login| login.expires_at = Some(1));
    assert!(world.call("s", "scope", json!({})).await.is_ok());
    let second = login.stored();
    assert!(second.access_token != first.access_token && second.refresh_token != first.refresh_token);
    // One that the server does not know, although it should hold.
    login.change(|login| login.access_token = Some("access-unknown".to_owned()));
    assert!(world.call("s", "scope", json!({})).await.is_ok());
    assert_ne!(login.stored().access_token, second.access_token);
    let renewals = login.server.requests_to("/token");
    let renewals: Vec<_> = renewals.iter().filter(|it| it["sent"]["grant_type"] == "refresh_token").collect();
    assert_eq!(renewals.len(), 2);
    assert!(renewals.iter().all(|it| it["sent"]["resource"] == login.server.url()));
}

#[tokio::test]
async fn refused_renewal_needs_a_login_and_one_that_fails_for_now_loses_nothing() {
    let login = Login::new(json!({}));
    let world = login.world().await;
    log_in(&world).await.unwrap();
    until("it is connected", || world.status("s").0 == Connected).await;
    login.server.set(&json!({"refresh_status": 503}));
    login.change(|login| login.expires_at = Some(1));
    let said = world.call("s", "scope", json!({})).await.unwrap_err();
    assert!(said.contains("could not be renewed"), "{said}");
    assert!(login.stored().refresh_token.is_some(), "it may be better later");
    login.server.set(&json!({}));
    assert!(world.call("s", "scope", json!({})).await.is_ok());
    login.server.set(&json!({"refresh_error": "invalid_grant"}));
    login.change(|login| login.expires_at = Some(1));
    let said = world.call("s", "scope", json!({})).await.unwrap_err();
    assert!(said.contains("wants a login"), "{said}");
    assert_eq!(world.status("s").0, NeedsAuth);
    let left = login.stored();
    assert!(left.access_token.is_none() && left.refresh_token.is_none() && left.client_id.is_some());
}

#[tokio::test]
async fn server_that_refuses_for_ever_is_asked_twice() {
    let login = Login::new(json!({}));
    let world = login.world().await;
    log_in(&world).await.unwrap();
    until("it is connected", || world.status("s").0 == Connected).await;
    login.server.set(&json!({"always_401": true}));
    let n_before = login.server.requests_to("/mcp").len();
    assert!(world.call("s", "scope", json!({})).await.is_err());
    assert_eq!(
        login.server.requests_to("/mcp").len(),
        n_before + 2,
        "once more with another token, and no more"
    );
    assert_eq!(world.status("s").0, NeedsAuth);
}

#[tokio::test]
async fn call_that_needs_more_asks_for_both_and_not_for_ever() {
    let login = Login::new(json!({"resource_scopes": "read", "call_scope": "write"}));
    let world = login.world().await;
    log_in(&world).await.unwrap();
    until("it is connected", || world.status("s").0 == Connected).await;
    let said = world.call("s", "scope", json!({})).await.unwrap_err();
    assert!(said.contains("wants a login (HTTP 403)"), "{said}");
    assert_eq!(world.status("s").0, Connected, "what it allows still works");
    let wish = LoginOptions { only_if_needed: true, ..LoginOptions::default() };
    let mut prompt = world.servers.begin_login("s", wish.clone()).await.unwrap().expect("more is needed");
    visit(&prompt.page).await;
    assert_eq!(prompt.outcome().await, Ok(()));
    until("it is connected", || world.status("s").0 == Connected).await;
    assert_eq!(world.call("s", "scope", json!({})).await, Ok("scope: read write".to_owned()));
    assert!(world.servers.begin_login("s", wish).await.unwrap().is_none(), "nothing more is needed");
    login.change(|login| login.requested_scope = Some("read write more".to_owned()));
    login.server.set(&json!({"call_scope": "more"}));
    let said = world.call("s", "scope", json!({})).await.unwrap_err();
    assert!(said.contains("another login would be asked for the same"), "{said}");
}

#[tokio::test]
async fn many_that_renew_at_once_never_lose_the_login() {
    let login = Login::new(json!({}));
    let world = login.world().await;
    log_in(&world).await.unwrap();
    for _ in 0..3 {
        login.change(|login| login.expires_at = Some(1));
        let worlds = futures_util::future::join_all((0..6).map(|_| login.world())).await;
        for world in &worlds {
            assert_eq!(world.status("s"), (Connected, String::new()));
        }
    }
    assert!(login.stored().refresh_token.is_some());
    let renewals = login.server.requests_to("/token");
    let n = renewals.iter().filter(|it| it["sent"]["grant_type"] == "refresh_token").count();
    assert_eq!(n, 3, "whoever comes second uses what the first got");
}

#[tokio::test]
async fn token_stays_with_its_address_and_out_of_messages() {
    let login = Login::new(json!({}));
    let world = login.world().await;
    log_in(&world).await.unwrap();
    let other = AuthorizedServer::start(&json!({}));
    let mut moved = Login { entry: json!({"type": "http", "url": other.url()}), ..login };
    assert_eq!(moved.world().await.status("s").0, NeedsAuth, "another address has no login");
    assert!(other.requests_to("/mcp").iter().all(|it| it["authorization"].is_null()));
    // A server that repeats what it was sent: our own header is refused without a login, and is not shown.
    moved.entry["headers"] = json!({"Authorization": "Bearer my-secret-header"});
    let world = moved.world().await;
    let (status, error) = world.status("s");
    assert_eq!(status, Failed, "a header of the entry that is refused is no reason to log in");
    assert!(error.contains("you sent") && !error.contains("my-secret"), "{error}");
    assert!(!world.log("s").contains("my-secret"));
    let said = world.servers.begin_login("s", LoginOptions::default()).await.err().unwrap();
    assert!(said.contains("has an `Authorization` header"), "{said}");
}

#[tokio::test]
async fn official_server_lets_us_in_renews_and_takes_back() {
    let Some(python) = official_sdk() else {
        eprintln!("skipped: there is no python3 on this machine");
        return;
    };
    let server = Listening::start(|port, _| {
        let mut command = python.script(script("official_authorized_server.py"));
        command.arg(port.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    })
    .await;
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let store = Arc::new(MemoryStore::default());
    let keep = Arc::clone(&store) as Arc<dyn LoginStore>;
    let logins = Logins { store: keep, random: Arc::new(OsRandom), client_metadata: None };
    let world = World::start_with_logins(json!({"s": {"type": "http", "url": url}}), logins).await;
    assert_eq!(world.status("s").0, NeedsAuth, "{:?}", world.status("s"));
    assert_eq!(log_in(&world).await, Ok(()));
    until("it is connected", || world.status("s").0 == Connected).await;
    assert_eq!(world.call("s", "whoami", json!({})).await, Ok("you are in".to_owned()));
    let key = LoginKey { server: "s".to_owned(), url };
    let mut login = store.load(&key).unwrap();
    let before = login.refresh_token.clone();
    login.expires_at = Some(1);
    store.save(&key, &login).unwrap();
    assert_eq!(world.call("s", "whoami", json!({})).await, Ok("you are in".to_owned()));
    assert_ne!(store.load(&key).unwrap().refresh_token, before, "the token was renewed");
    assert_eq!(world.servers.logout("s").await, Ok(Logout::Revoked));
    until("it wants a login again", || world.status("s").0 == NeedsAuth).await;
}
