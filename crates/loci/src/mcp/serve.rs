//! `loci mcp serve`: the built-in tools for other programs, over standard input and output.
//!
//! The tools run in this directory, with its settings and behind its permission rules. There is nobody to ask here: that its
//! host calls a tool is the consent of its user, unless a mode was chosen. Nothing is recorded, no model is asked, and no MCP
//! server is started.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use loci_app::start::SessionStart;
use loci_app::{McpOptions, PermissionOptions, RunOptions, UserError};
use loci_core::message::Block;
use loci_core::permission::Mode;
use loci_core::tool::{ToolContent, ToolOutcome};
use loci_engine::{Consent, EngineEvent, NewSession, ToolProgress, ToolService};
use loci_llm::Client;
use loci_mcp::tool_server::{ServedCall, ServedProgress, ServedResult, ServedTool, ServedTools, serve};
use loci_stdx::{Env, Random};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::print::print_message;
use crate::runtime;

#[derive(Debug, clap::Args)]
pub(super) struct ServeArgs {
    /// What runs without asking, whatever the host has asked its user: calls that the mode would ask about are refused.
    /// Without it the host's call is its user's consent; rules that deny and ask hold all the same.
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<Mode>,

    /// Rules for calls that may run without asking.
    #[arg(long = "allowedTools", visible_alias = "allowed-tools", value_name = "RULES", num_args = 1..)]
    allowed_tools: Vec<String>,

    /// Go on though settings have keys that this version does not know and that may restrict what runs.
    #[arg(long)]
    allow_unknown_settings: bool,

    /// Rules for calls that never run; a bare tool name takes the tool away.
    #[arg(long = "disallowedTools", visible_alias = "disallowed-tools", value_name = "RULES", num_args = 1..)]
    disallowed_tools: Vec<String>,
}

/// Serves until standard input ends, and returns the exit code.
pub(super) fn run(env: &Env, args: &ServeArgs) -> Result<u8, UserError> {
    let options = RunOptions {
        is_persistent: false,
        permissions: PermissionOptions {
            mode: args.permission_mode,
            allow: args.allowed_tools.clone(),
            deny: args.disallowed_tools.clone(),
            ..PermissionOptions::default()
        },
        mcp: McpOptions { is_strict: true, ..McpOptions::default() },
        accepts_unknown_settings: args.allow_unknown_settings,
        ..RunOptions::default()
    };
    // No model is asked, so none has to be there.
    let client = Some(Client::scripted(|_| Vec::new(), Duration::ZERO));
    let mut start = SessionStart::new(env.clone(), options, client, Instant::now()).unattended();
    let started = start.prepare().map_err(UserError::from)?.begin();
    started.warnings.iter().for_each(|warning| print_message(warning));
    let runtime = runtime::of_session()?;
    let consent = if args.permission_mode.is_some() { Consent::Rules } else { Consent::Host };
    let random = Arc::clone(&started.env.random);
    runtime.block_on(serve_session(started.session, random, consent));
    // Standard input may still be waited for by a thread that nothing can wake.
    runtime.shutdown_background();
    Ok(0)
}

async fn serve_session(new: NewSession, random: Arc<dyn Random>, consent: Consent) {
    let NewSession { session, handle: _handle, mut events } = new;
    let service = Arc::new(session.into_tool_service(consent));
    let listeners: Listeners = Arc::default();
    let told = Arc::clone(&listeners);
    // What calls say while they run is passed on; nothing else that the engine says is for a client.
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if let EngineEvent::Progress { call, progress: ToolProgress::Output(text) } = event {
                let listener =
                    told.lock().unwrap_or_else(PoisonError::into_inner).get(call.as_str()).cloned();
                if let Some(listener) = listener {
                    listener(text);
                }
            }
        }
    });
    let tools = Arc::new(BuiltInTools { service: Arc::clone(&service), listeners, random });
    let stop = CancellationToken::new();
    let signalled = stop.clone();
    tokio::spawn(async move {
        end_signal().await;
        signalled.cancel();
    });
    serve(tools, env!("CARGO_PKG_VERSION"), tokio::io::stdin(), tokio::io::stdout(), stop).await;
    service.shutdown().await;
}

/// Ends when the process is asked to end.
async fn end_signal() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Who wants to know what calls say while they run, by the ids of calls; held to add, to take or to look one up.
type Listeners = Arc<Mutex<HashMap<String, ServedProgress>>>;

/// The tools of a session, as a client sees them.
struct BuiltInTools {
    service: Arc<ToolService>,
    listeners: Listeners,
    random: Arc<dyn Random>,
}

impl ServedTools for BuiltInTools {
    fn tools(&self) -> Vec<ServedTool> {
        let tools = self.service.tools().into_iter();
        tools
            .map(|tool| ServedTool {
                name: tool.name,
                description: tool.description,
                input_schema: tool.input_schema,
            })
            .collect()
    }

    fn call(
        &self,
        tool: &str,
        arguments: Value,
        cancel: CancellationToken,
        progress: Option<ServedProgress>,
    ) -> ServedCall {
        let id = format!("mcp_{}", self.random.uuid_v4().simple());
        let (service, listeners, tool) =
            (Arc::clone(&self.service), Arc::clone(&self.listeners), tool.to_owned());
        Box::pin(async move {
            if let Some(progress) = progress {
                listeners.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), progress);
            }
            let outcome = service.call(id.clone(), &tool, arguments, cancel).await;
            listeners.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            served_result(&outcome)
        })
    }
}

fn served_result(outcome: &ToolOutcome) -> ServedResult {
    match &outcome.content {
        ToolContent::Text(text) => ServedResult::text(text.as_str(), outcome.is_failure()),
        ToolContent::Blocks(blocks) => {
            ServedResult { content: blocks.iter().map(served_part).collect(), is_error: outcome.is_failure() }
        }
    }
}

/// Returns a part of a result in the words of the protocol.
fn served_part(block: &Block) -> Value {
    let value = block.to_value();
    match (value["type"].as_str(), value["source"]["data"].as_str()) {
        (Some("text"), _) => json!({"type": "text", "text": value["text"]}),
        (Some("image"), Some(data)) => {
            json!({"type": "image", "data": data, "mimeType": value["source"]["media_type"]})
        }
        _ => json!({"type": "text", "text": value.to_string()}),
    }
}
