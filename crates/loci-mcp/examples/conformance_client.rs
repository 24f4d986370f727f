//! The client that the official conformance suite drives: it connects to the server whose address is its last argument and
//! uses everything that is there. The suite looks at what it sends.
//!
//! `MCP_CONFORMANCE_PROTOCOL_VERSION` says which revision the server speaks, `MCP_CONFORMANCE_CONTEXT` which tools are to
//! be called with what.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use loci_mcp::config::{Approvals, PlanInputs, ServerPolicy, ServerScope, plan_servers};
use loci_mcp::{
    ClientSide, ElicitFuture, Elicitation, ElicitationAnswer, Limits, ServerStatus, ServerView, ServerWorld,
    Servers,
};
use loci_stdx::{Env, Vars};
use serde_json::{Map, Value, json};

/// What the suite calls the first revision without a handshake.
const STATELESS: &str = "2026-07-28";

/// Says yes to everything and leaves all fields to their defaults, but for those that have none.
struct Agreeing;

impl ClientSide for Agreeing {
    fn roots(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn elicit(&self, elicitation: Elicitation) -> ElicitFuture {
        let properties = elicitation.schema.as_ref().and_then(|schema| schema.get("properties"));
        let properties = properties.and_then(Value::as_object).cloned().unwrap_or_default();
        let answers = properties.into_iter().filter_map(|(name, property)| {
            (property.get("default").is_none() && property["type"] == "boolean").then(|| (name, json!(true)))
        });
        let answers = answers.collect();
        Box::pin(async move { ElicitationAnswer::Accept(answers) })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            report(&problem);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "the suite keeps what is said here")]
fn report(text: &str) {
    eprintln!("{text}");
}

async fn run() -> Result<(), String> {
    let url = std::env::args().next_back().unwrap_or_default();
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let context: Value = serde_json::from_str(&var("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default();
    let negotiation = match var("MCP_CONFORMANCE_PROTOCOL_VERSION").as_str() {
        version if version < STATELESS => "legacy",
        _ => "auto",
    };
    let servers = servers(&url, negotiation)?;
    servers.set_client(Arc::new(Agreeing));
    servers.start();
    servers.wait(&[], Duration::from_secs(25)).await;
    let view = servers.view("suite").ok_or("there is no server")?;
    if view.status != ServerStatus::Connected {
        return Err(format!("{}: {}", view.status.name(), view.error.unwrap_or_default()));
    }
    let done = use_everything(&servers, &view, &context).await;
    servers.take_notices().iter().for_each(|notice| report(notice));
    servers.shutdown().await;
    done
}

fn servers(url: &str, negotiation: &str) -> Result<Servers, String> {
    let entry = json!({"suite": {"type": "http", "url": url}});
    let plan = plan_servers(PlanInputs {
        written: vec![(ServerScope::User, "the suite".to_owned(), entry)],
        is_strict: false,
        policy: &ServerPolicy::default(),
        approvals: &Approvals::default(),
        vars: &|_, _| None,
    });
    if let Some(problem) = plan.problems.first() {
        return Err(problem.to_string());
    }
    rustls::crypto::aws_lc_rs::default_provider().install_default().map_err(|_| "there is a provider")?;
    let cwd = std::env::temp_dir();
    let vars: Vars = [("MCP_PROTOCOL_NEGOTIATION", negotiation)].into_iter().collect();
    let world = ServerWorld {
        project: cwd.clone(),
        log_dir: cwd.join("loci-conformance-logs"),
        cwd,
        session: "conformance".to_owned(),
        child_env: Vec::new(),
        limits: Limits::from_vars(&vars),
        clock: Env::for_test("/h", "/p").clock,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        bridge: None,
        clients: Arc::new(|_| {
            let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
            builder.build().map_err(|error| error.to_string())
        }),
        logins: None,
    };
    Ok(Servers::new(&plan, world))
}

/// Calls every tool, reads every resource and fills in every prompt.
async fn use_everything(servers: &Servers, view: &ServerView, context: &Value) -> Result<(), String> {
    let wanted = context.get("toolCalls").and_then(Value::as_array).cloned().unwrap_or_default();
    for (_, tool) in &view.offer.tools {
        let named = wanted.iter().find(|call| call["name"] == tool.name.as_str());
        let arguments = match tool.name.as_str() {
            "add_numbers" => json!({"a": 5, "b": 3}),
            "json_schema_echo" => json!({"schema": other_schema(view, &tool.name)}),
            _ => named.map_or_else(|| json!({}), |call| call["arguments"].clone()),
        };
        let called = servers.call("suite", &tool.name, arguments, Value::Null, None).await;
        called.map_err(|error| format!("{}: {error}", tool.name))?;
    }
    for resource in &view.offer.resources {
        let read = servers.read("suite", &resource.uri).await;
        read.map_err(|error| format!("{}: {error}", resource.uri))?;
    }
    for prompt in &view.offer.prompts {
        let filled = servers.prompt("suite", &prompt.name, Map::new()).await;
        filled.map_err(|error| format!("{}: {error}", prompt.name))?;
    }
    Ok(())
}

/// Returns the schema of the tool beside this one, as the server wrote it.
fn other_schema(view: &ServerView, name: &str) -> Value {
    let other = view.offer.tools.iter().map(|(_, tool)| tool).find(|tool| tool.name != name);
    other
        .map(|tool| tool.declared_schema.clone().unwrap_or_else(|| tool.input_schema.clone()))
        .unwrap_or_default()
}
