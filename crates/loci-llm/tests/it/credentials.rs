//! Credentials that do not last: asked for before each request, and again when the server refuses one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use loci_core::stream::{Failure, FailureKind};
use loci_http::Secret;
use loci_llm::{Auth, AuthFuture, AuthSource, Client};
use loci_testkit::{Script, ScriptedModel, Step};

use crate::support::{Outcome, config, model, request, run};

/// Gives one key after the other and notes what was refused.
#[derive(Debug, Default)]
struct Keys {
    next: Mutex<VecDeque<&'static str>>,
    refused: Mutex<Vec<String>>,
}

impl Keys {
    fn new(keys: &[&'static str]) -> Arc<Self> {
        Arc::new(Self { next: Mutex::new(keys.iter().copied().collect()), ..Self::default() })
    }
}

impl AuthSource for Keys {
    fn current(&self) -> AuthFuture<'_> {
        let key = self.next.lock().unwrap().pop_front();
        let auth = key.map(|key| Auth::Both(Secret::new(key)));
        Box::pin(std::future::ready(
            auth.ok_or_else(|| Failure::new(FailureKind::Unauthenticated, "no more keys")),
        ))
    }

    fn refused(&self, auth: &Auth) -> bool {
        let Auth::Both(secret) = auth else { panic!("{auth:?} was never given") };
        self.refused.lock().unwrap().push(secret.expose().to_owned());
        true
    }
}

fn refusal() -> Step {
    Step::status(401).error("authentication_error", "not a key: first-key-1 second-key-2")
}

/// Runs one request and returns what came of it, with the keys that were sent and those that were refused.
async fn check(
    steps: impl Into<Script>,
    keys: &[&'static str],
    sent: &[&str],
    refused: &[&str],
) -> (Outcome, ScriptedModel) {
    let model = model(steps).await;
    let source = Keys::new(keys);
    let config = config(model.base_url());
    let client = Client::with_auth_source(config, Arc::clone(&source) as Arc<dyn AuthSource>).unwrap();
    let outcome = run(&client, request()).await;
    let keys: Vec<String> =
        model.requests().iter().map(|r| r.header("x-api-key").unwrap().to_owned()).collect();
    assert_eq!(keys, sent);
    assert_eq!(*source.refused.lock().unwrap(), refused);
    (outcome, model)
}

#[tokio::test]
async fn both_headers_carry_the_key() {
    let (outcome, model) = check(Step::text("hi"), &["first-key-1"], &["first-key-1"], &[]).await;
    assert!(outcome.has_ended());
    assert_eq!(model.requests()[0].header("authorization"), Some("Bearer first-key-1"));
}

#[tokio::test]
async fn a_refused_key_is_replaced_once() {
    let keys = ["first-key-1", "second-key-2", "third-key-3"];
    let (outcome, _) = check([refusal(), Step::text("hi")], &keys, &keys[..2], &keys[..1]).await;
    assert!(outcome.has_ended());
    let (outcome, _) = check([refusal(), refusal()], &keys, &keys[..2], &keys[..1]).await;
    assert_eq!(outcome.failure().kind, FailureKind::Unauthenticated);
}

#[tokio::test]
async fn the_same_key_again_is_not_sent_again() {
    let keys = ["first-key-1", "first-key-1"];
    let (outcome, _) = check([refusal(), Step::text("hi")], &keys, &keys[..1], &keys[..1]).await;
    assert_eq!(outcome.failure().kind, FailureKind::Unauthenticated);
}

#[tokio::test]
async fn other_failures_do_not_cost_the_key() {
    let (outcome, _) = check(Step::status(403), &["first-key-1", "x"], &["first-key-1"], &[]).await;
    assert_eq!(outcome.failure().kind, FailureKind::Forbidden);
}

#[tokio::test]
async fn without_a_credential_nothing_is_sent() {
    let (outcome, _) = check(Step::text("hi"), &[], &[], &[]).await;
    assert_eq!(outcome.failure().message, "no more keys");
}

#[tokio::test]
async fn a_key_that_the_server_repeats_is_masked() {
    let keys = ["first-key-1", "first-key-1"];
    let (outcome, _) = check(refusal(), &keys, &keys[..1], &keys[..1]).await;
    let failure = format!("{:?}", outcome.failure());
    assert!(failure.contains("not a key: [redacted]") && !failure.contains("first-key-1"), "{failure}");
}
