//! The client that the official conformance suite drives: it connects to the server whose address is its last argument and
//! uses everything that is there. The suite looks at what it sends.
//!
//! `MCP_CONFORMANCE_PROTOCOL_VERSION` says which revision the server speaks, `MCP_CONFORMANCE_CONTEXT` which tools are to
//! be called with what, and who we are where that was agreed on beforehand. Where the server wants a login, one is made: the
//! suite's pages lead straight back.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loci_mcp::config::{Approvals, PlanInputs, ServerPolicy, ServerScope, plan_servers};
use loci_mcp::{
    CallError, ClientSide, ElicitFuture, Elicitation, ElicitationAnswer, Limits, LoginKey, LoginOptions,
    LoginStore, Logins, RenewalLock, ServerStatus, ServerView, ServerWorld, Servers, StoredLogin,
    TransportError,
};
use loci_stdx::{OsRandom, SystemClock, Vars};
use serde_json::{Map, Value, json};

/// What the suite calls the first revision without a handshake.
const STATELESS: &str = "2026-07-28";

/// The document that the suite takes for ours.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// How often a login is made before the server is given up.
const MOST_LOGINS: usize = 3;
/// How long a server may take.
const PATIENCE: Duration = Duration::from_secs(25);

/// Keeps logins as long as the program runs.
#[derive(Default)]
struct MemoryStore {
    logins: Mutex<HashMap<String, StoredLogin>>,
    secret: Option<String>,
}

impl LoginStore for MemoryStore {
    fn load(&self, key: &LoginKey) -> Result<StoredLogin, String> {
        let logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(logins.get(&key.id()).cloned().unwrap_or_default())
    }

    fn save(&self, key: &LoginKey, login: &StoredLogin) -> Result<(), String> {
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        logins.insert(key.id(), login.clone());
        Ok(())
    }

    fn lock(&self, _key: &LoginKey) -> Result<RenewalLock, String> {
        // Nobody else renews.
        Ok(Box::new(()))
    }

    fn client_secret(&self, _key: &LoginKey) -> Result<Option<String>, String> {
        Ok(self.secret.clone())
    }
}

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
    let servers = servers(&url, negotiation, &context)?;
    servers.set_client(Arc::new(Agreeing));
    servers.start();
    let view = connected(&servers).await?;
    let done = use_everything(&servers, &view, &context).await;
    servers.take_notices().iter().for_each(|notice| report(notice));
    servers.shutdown().await;
    done
}

/// Waits for the server, and logs in there where it wants that.
async fn connected(servers: &Servers) -> Result<ServerView, String> {
    for n_logins in 0..=MOST_LOGINS {
        servers.wait(&[], PATIENCE).await;
        let view = servers.view("suite").ok_or("there is no server")?;
        let error = view.error.clone().unwrap_or_default();
        match view.status {
            ServerStatus::Connected => return Ok(view),
            ServerStatus::NeedsAuth => log_in(servers).await?,
            // One that describes nothing may let a person in all the same, who has to try.
            ServerStatus::Failed if n_logins == 0 && error.contains("HTTP 401") => log_in(servers).await?,
            status => return Err(format!("{}: {error}", status.name())),
        }
    }
    Err("the server wants one login after another".to_owned())
}

/// Logs in as a person with a browser would.
async fn log_in(servers: &Servers) -> Result<(), String> {
    let prompt = servers.begin_login("suite", LoginOptions::default()).await?;
    let mut prompt = prompt.ok_or("it needs no login")?;
    let browser = reqwest::Client::builder().no_proxy().build().map_err(|error| error.to_string())?;
    browser.get(&prompt.page).send().await.map_err(|error| error.to_string())?;
    prompt.outcome().await
}

/// Calls a tool; a login that does not allow it is made anew, a few times.
async fn call(servers: &Servers, tool: &str, arguments: Value) -> Result<(), String> {
    let mut n_logins = 0;
    loop {
        let called = servers.call("suite", tool, arguments.clone(), Value::Null, None).await;
        match called {
            Ok(_) => return Ok(()),
            Err(CallError::Transport(TransportError::Unauthorized { .. })) if n_logins < MOST_LOGINS => {
                n_logins += 1;
                log_in(servers).await?;
                connected(servers).await?;
            }
            Err(error) => return Err(format!("{tool}: {error}")),
        }
    }
}

fn servers(url: &str, negotiation: &str, context: &Value) -> Result<Servers, String> {
    let mut entry = json!({"suite": {"type": "http", "url": url}});
    if let Some(id) = context.get("client_id") {
        entry["suite"]["oauth"] = json!({"clientId": id});
    }
    let secret = context.get("client_secret").and_then(Value::as_str).map(str::to_owned);
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
        clock: Arc::new(SystemClock::new()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        bridge: None,
        clients: Arc::new(|_| {
            let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
            builder.build().map_err(|error| error.to_string())
        }),
        logins: Some(Arc::new(Logins {
            store: Arc::new(MemoryStore { secret, ..MemoryStore::default() }),
            random: Arc::new(OsRandom),
            client_metadata: Some(DOCUMENT.to_owned()),
        })),
        program_watch: None,
        sandbox_maker: None,
        sampling: Vec::new(),
        on_connected: None,
        config_dir: std::env::temp_dir(),
        may_run_helpers: false,
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
        call(servers, &tool.name, arguments).await?;
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
