//! Our side, as servers may ask about it: where the session works, and questions for a person.
//!
//! A question goes to hooks first, then to the client that drives the session; where nobody answers, it is cancelled at
//! once. Hooks see the answer, too.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use loci_core::hooks::EventInput;
use loci_mcp::{
    Bridge, BridgeAnswer, ClientSide, ElicitFuture, Elicitation, ElicitationAnswer, SampleFuture,
};
use serde_json::{Map, Value, json};

use super::sampling::{MOST_SAMPLES, sample};
use crate::conversation::SessionContext;
use crate::event::EngineEvent;
use crate::extensions::{ElicitationReply, ElicitationRequest, FeatureHooks, HookMoment};
use crate::session::client_request::ClientRequests;

/// A session, as servers may ask about it.
pub(super) struct SessionClient {
    /// The session, which does not live for them.
    pub(super) ctx: Weak<SessionContext>,
    pub(super) client_requests: ClientRequests,
    /// What the run may spend.
    pub(super) max_budget: Option<f64>,
    /// How often servers asked the model.
    pub(super) n_samples: AtomicU32,
    /// Pages that servers sent somebody to and have not said to be done with, by server and id; held to add or to take.
    pub(super) open_pages: Arc<Mutex<HashSet<(String, String)>>>,
}

/// How many pages may be open: what a server says of others is not told.
const MOST_PAGES: usize = 1000;

impl ClientSide for SessionClient {
    fn roots(&self) -> Vec<PathBuf> {
        let Some(ctx) = self.ctx.upgrade() else { return Vec::new() };
        let dirs = ctx.state.get().permission.rulebook.dirs.clone();
        if dirs.is_empty() { vec![ctx.services.env.cwd.clone()] } else { dirs }
    }

    fn sample(&self, _server: &str, params: Value) -> SampleFuture {
        let (ctx, max_budget) = (self.ctx.clone(), self.max_budget);
        let is_too_often = self.n_samples.fetch_add(1, Ordering::Relaxed) >= MOST_SAMPLES;
        Box::pin(async move {
            let Some(ctx) = ctx.upgrade() else { return Err("the session is over".to_owned()) };
            match is_too_often {
                true => Err(format!("servers have asked the model {MOST_SAMPLES} times in this session")),
                false => sample(&ctx, &params, max_budget).await,
            }
        })
    }

    fn elicit(&self, elicitation: Elicitation) -> ElicitFuture {
        let (ctx, requests) = (self.ctx.clone(), self.client_requests.clone());
        let pages = Arc::clone(&self.open_pages);
        Box::pin(async move {
            let Some(ctx) = ctx.upgrade() else { return ElicitationAnswer::Cancel };
            let request = hook_request(&elicitation);
            let moment = || HookMoment { cwd: ctx.services.env.cwd.clone(), ..HookMoment::default() };
            if let Some((_, id)) = &elicitation.url {
                let mut open = pages.lock().unwrap_or_else(PoisonError::into_inner);
                if open.len() < MOST_PAGES {
                    open.insert((elicitation.server.clone(), id.clone()));
                }
            }
            // What a hook decides nobody was asked, so there is nothing to tell of.
            if let Some(reply) = ctx.hooks.before_elicitation(request.clone(), moment()).await {
                return read_reply(&reply);
            }
            let asked = requests.request("elicitation", payload(&elicitation)).await;
            let reply = ElicitationReply {
                action: asked
                    .as_ref()
                    .ok()
                    .and_then(|it| it["action"].as_str())
                    .unwrap_or("cancel")
                    .to_owned(),
                content: asked.ok().and_then(|it| it.get("content").cloned()),
            };
            let reply = ctx.hooks.after_elicitation(request.clone(), reply, moment()).await;
            let message = format!("The question of the MCP server {} was answered", request.server);
            let notification_type = "elicitation_response".to_owned();
            let told = EventInput::Notification { message, title: None, notification_type };
            ctx.turn_hooks.notify(told, moment());
            read_reply(&reply)
        })
    }

    fn elicitation_completed(&self, server: &str, id: &str) {
        let page = (server.to_owned(), id.to_owned());
        let is_known = self.open_pages.lock().unwrap_or_else(PoisonError::into_inner).remove(&page);
        if let Some(ctx) = self.ctx.upgrade().filter(|_| is_known) {
            let (server, id) = page;
            let moment = HookMoment { cwd: ctx.services.env.cwd.clone(), ..HookMoment::default() };
            let told = EventInput::Notification {
                message: format!("What the MCP server {server} sent you to a page for is done"),
                title: None,
                notification_type: "elicitation_complete".to_owned(),
            };
            ctx.turn_hooks.notify(told, moment);
            // Without a listener there is nobody to tell.
            drop(ctx.events.send(EngineEvent::ElicitationCompleted { server, id }));
        }
    }
}

fn hook_request(elicitation: &Elicitation) -> ElicitationRequest {
    let (url, id) = elicitation.url.clone().unzip();
    ElicitationRequest {
        server: elicitation.server.clone(),
        message: elicitation.message.clone(),
        mode: Some(mode(elicitation).to_owned()),
        url,
        id,
        schema: elicitation.schema.clone(),
    }
}

fn mode(elicitation: &Elicitation) -> &'static str {
    if elicitation.url.is_some() { "url" } else { "form" }
}

fn payload(elicitation: &Elicitation) -> Map<String, Value> {
    let mut payload = Map::from_iter([
        ("mcp_server_name".to_owned(), json!(elicitation.server)),
        ("message".to_owned(), json!(elicitation.message)),
        ("mode".to_owned(), json!(mode(elicitation))),
    ]);
    if let Some((url, id)) = &elicitation.url {
        payload.insert("url".to_owned(), json!(url));
        payload.insert("elicitation_id".to_owned(), json!(id));
    }
    if let Some(schema) = &elicitation.schema {
        payload.insert("requested_schema".to_owned(), schema.clone());
        // For clients that keep no order of keys.
        if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
            payload.insert("property_order".to_owned(), fields.keys().map(String::as_str).collect());
        }
    }
    payload
}

fn read_reply(reply: &ElicitationReply) -> ElicitationAnswer {
    let content = || reply.content.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    match reply.action.as_str() {
        "accept" => ElicitationAnswer::Accept(content()),
        "decline" => ElicitationAnswer::Decline,
        _ => ElicitationAnswer::Cancel,
    }
}

/// The way to servers that live in the client: each message is a question to it.
pub struct ClientBridge(pub ClientRequests);

impl Bridge for ClientBridge {
    fn deliver(&self, server: &str, message: Value) -> BridgeAnswer {
        let payload =
            Map::from_iter([("server_name".to_owned(), json!(server)), ("message".to_owned(), message)]);
        // It leaves now: what is said to a server arrives in the order in which it was said.
        let asking = self.0.request("mcp_message", payload);
        Box::pin(async move {
            let answer = asking.await.map_err(|error| error.to_string())?;
            Ok(answer.get("mcp_response").filter(|it| it.is_object()).cloned())
        })
    }
}
