//! What a server asks of us: whether we are there, where we work, questions for a person, and, where the user lets it,
//! questions for the model.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::Shared;
use crate::message::{INVALID_PARAMS, METHOD_NOT_FOUND, RpcError, response};
use crate::names::{visible_excerpt, visible_text};

/// The code of the error that says that the model was not asked.
const SAMPLING_REFUSED: i64 = -1;
/// How many questions of one server may be open at once.
const MOST_ASKED: usize = 16;

/// A question of a server for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    /// The server.
    pub server: String,
    /// What it asks, fit to be shown.
    pub message: String,
    /// What the answer is to hold; none when it is an address to open.
    pub schema: Option<Value>,
    /// The address to open, and the server's id for that.
    pub url: Option<(String, String)>,
}

/// The answer of a person, or whoever answers for one.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    /// Yes, with this.
    Accept(Map<String, Value>),
    /// No.
    Decline,
    /// Nobody answers.
    Cancel,
}

/// An answer that takes a while.
pub type ElicitFuture = Pin<Box<dyn Future<Output = ElicitationAnswer> + Send>>;

/// What the model says to a server, or why it is not asked; takes a while.
pub type SampleFuture = Pin<Box<dyn Future<Output = Result<Value, String>> + Send>>;

/// Our side, as servers may ask about it.
pub trait ClientSide: Send + Sync {
    /// The directories that are worked in, the first one first.
    fn roots(&self) -> Vec<PathBuf>;

    /// Puts a question to a person.
    fn elicit(&self, elicitation: Elicitation) -> ElicitFuture;

    /// Asks the model what a server wants to know, which the user has allowed; the parameters are those of
    /// `sampling/createMessage`, and so is the answer.
    fn sample(&self, _server: &str, _params: Value) -> SampleFuture {
        Box::pin(async { Err("there is no model to ask".to_owned()) })
    }

    /// Is told that what was to be done at an address is done.
    fn elicitation_completed(&self, _server: &str, _id: &str) {}
}

/// What a server has asked and is waiting for.
pub(crate) struct Asked {
    pub(crate) server: String,
    pub(crate) client: Arc<dyn ClientSide>,
    /// Whether the user lets it ask the model.
    pub(crate) may_sample: bool,
    /// The tasks that answer; held to add or to take one.
    open: Mutex<HashMap<String, AbortHandle>>,
    /// Pages that calls wait for; held to add or to take some.
    awaited_pages: Mutex<HashSet<String>>,
    /// Is told when one is done.
    page_done: Notify,
}

impl Asked {
    pub(crate) fn new(server: String, client: Arc<dyn ClientSide>, may_sample: bool) -> Self {
        let (awaited_pages, page_done) = (Mutex::default(), Notify::new());
        Self { server, client, may_sample, open: Mutex::default(), awaited_pages, page_done }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server does not want to know any more.
    pub(crate) fn cancel(&self, id: &Value) {
        if let Some(task) = self.open().remove(&id.to_string()) {
            task.abort();
        }
    }

    pub(crate) fn completed(&self, id: &str) {
        self.client.elicitation_completed(&self.server, id);
        if self.awaited_pages().remove(id) {
            self.page_done.notify_waiters();
        }
    }

    fn awaited_pages(&self) -> MutexGuard<'_, HashSet<String>> {
        self.awaited_pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes pages that a call waits for.
    pub(super) fn await_pages(&self, ids: &HashSet<String>) {
        self.awaited_pages().extend(ids.iter().cloned());
    }

    /// Nobody waits for these pages any more.
    pub(super) fn forget_pages(&self, ids: &HashSet<String>) {
        self.awaited_pages().retain(|id| !ids.contains(id));
    }

    /// Waits until the server has said of all these pages that they are done.
    pub(super) async fn pages_done(&self, ids: &HashSet<String>) {
        loop {
            let mut done = std::pin::pin!(self.page_done.notified());
            // From here on nothing is missed.
            done.as_mut().enable();
            if self.awaited_pages().is_disjoint(ids) {
                return;
            }
            done.await;
        }
    }

    pub(crate) fn stop(&self) {
        self.open().drain().for_each(|(_, task)| task.abort());
    }
}

/// Answers a question in its own time.
pub(super) fn answer(shared: &Arc<Shared>, id: Value, method: String, params: Value) {
    let key = id.to_string();
    let mut open = shared.asked.open();
    open.retain(|_, task| !task.is_finished());
    let is_busy = open.len() >= MOST_ASKED;
    let connection = Arc::downgrade(shared);
    let (server, client) = (shared.asked.server.clone(), Arc::clone(&shared.asked.client));
    let may_sample = shared.asked.may_sample && shared.envelope.get().is_none();
    let task = tokio::spawn(async move {
        let result = match is_busy {
            true => Err(RpcError::new(-32000, "too many questions are open")),
            false if may_sample && method == "sampling/createMessage" => {
                client.sample(&server, params).await.map_err(|why| RpcError::new(SAMPLING_REFUSED, why))
            }
            false => result(server, client.as_ref(), &method, params).await,
        };
        let Some(shared) = connection.upgrade() else { return };
        if let Err(error) = shared.transport.send(response(&id, result)).await {
            tracing::debug!(target: "loci::mcp", %error, "a question could not be answered");
        }
    });
    if !is_busy {
        open.insert(key, task.abort_handle());
    }
}

pub(super) async fn result(
    server: String,
    client: &dyn ClientSide,
    method: &str,
    params: Value,
) -> Result<Value, RpcError> {
    match method {
        "ping" => Ok(json!({})),
        "roots/list" => Ok(json!({"roots": client.roots().iter().map(|dir| root(dir)).collect::<Vec<_>>()})),
        "elicitation/create" => {
            let elicitation =
                read_elicitation(server, &params).map_err(|why| RpcError::new(INVALID_PARAMS, why))?;
            let schema = elicitation.schema.clone();
            Ok(match client.elicit(elicitation).await {
                ElicitationAnswer::Accept(content) => match schema {
                    Some(schema) => fitting_answer(&schema, content),
                    None => json!({"action": "accept"}),
                },
                ElicitationAnswer::Decline => json!({"action": "decline"}),
                ElicitationAnswer::Cancel => json!({"action": "cancel"}),
            })
        }
        other => Err(RpcError::new(METHOD_NOT_FOUND, format!("loci does not answer `{other}`"))),
    }
}

fn root(dir: &Path) -> Value {
    let name = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy();
    json!({"uri": file_uri(dir), "name": name})
}

/// Returns the address of a path; what an address cannot hold is written as its bytes.
pub(crate) fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

fn read_elicitation(server: String, params: &Value) -> Result<Elicitation, String> {
    let text = |key: &str| params.get(key).and_then(Value::as_str);
    let message = visible_excerpt(text("message").unwrap_or_default());
    if text("mode") == Some("url") {
        let url = text("url").ok_or("a question with an address needs one")?;
        // A browser opens what it is given, whatever that does.
        if !reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
            return Err("a question may lead to a page of the web alone".to_owned());
        }
        let id = text("elicitationId").unwrap_or_default();
        return Ok(Elicitation {
            server,
            message,
            schema: None,
            url: Some((visible_text(url), visible_text(id))),
        });
    }
    let schema = params.get("requestedSchema").filter(|schema| schema.is_object());
    Ok(Elicitation { server, message, schema: Some(schema.cloned().unwrap_or_else(|| json!({}))), url: None })
}

/// Returns an answer with the schema's defaults for what it leaves out. One that does not fit is no answer.
fn fitting_answer(schema: &Value, mut content: Map<String, Value>) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let (false, Some(default)) = (content.contains_key(name), property.get("default")) {
            content.insert(name.clone(), default.clone());
        }
    }
    let wanted = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let has_all = wanted.filter_map(Value::as_str).all(|name| content.contains_key(name));
    let fits = properties
        .into_iter()
        .flatten()
        .all(|(name, property)| content.get(name).is_none_or(|value| fits(property, value)));
    match has_all && fits {
        true => json!({"action": "accept", "content": content}),
        false => json!({"action": "cancel"}),
    }
}

/// Tells whether a value is of the kind that a property wants: the few kinds that a form may have.
fn fits(property: &Value, value: &Value) -> bool {
    let is_of_kind = match property.get("type").and_then(Value::as_str) {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
        }
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        _ => true,
    };
    let choices = property.get("enum").and_then(Value::as_array);
    let named = property.get("oneOf").or_else(|| property.get("anyOf")).and_then(Value::as_array);
    let is_named =
        |named: &Vec<Value>| named.iter().any(|choice| choice.get("const").is_none_or(|it| it == value));
    is_of_kind && choices.is_none_or(|choices| choices.contains(value)) && named.is_none_or(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_get_defaults_and_those_that_do_not_fit_are_none() {
        let schema = json!({"properties": {
            "name": {"type": "string"}, "n": {"type": "integer", "default": 3}, "c": {"type": "string", "enum": ["a", "b"]},
        }, "required": ["name"]});
        let check = |content: Value, expected: Value| {
            let Value::Object(content) = content else { panic!() };
            assert_eq!(fitting_answer(&schema, content.clone()), expected, "{content:?}");
        };
        let cancel = json!({"action": "cancel"});
        check(json!({"name": "x"}), json!({"action": "accept", "content": {"name": "x", "n": 3}}));
        check(json!({"n": 1}), cancel.clone());
        check(json!({"name": 5}), cancel.clone());
        check(json!({"name": "x", "n": 1.5}), cancel.clone());
        check(json!({"name": "x", "c": "z"}), cancel);
    }

    #[test]
    fn questions_lead_to_pages_of_the_web_alone() {
        for (url, is_taken) in [
            ("https://example.com/login", true),
            ("http://localhost:8080/", true),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
            ("vscode://x", false),
            ("example.com", false),
        ] {
            let params = json!({"mode": "url", "message": "m", "url": url, "elicitationId": "1"});
            assert_eq!(read_elicitation("s".to_owned(), &params).is_ok(), is_taken, "{url}");
        }
    }

    #[test]
    fn addresses_of_directories_hold_any_name() {
        assert_eq!(file_uri(Path::new("/a b/ü#")), "file:///a%20b/%C3%BC%23");
    }
}
