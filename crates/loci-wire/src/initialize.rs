//! The payload of a client's `initialize`, read whole, and what of it cannot be honoured.
//!
//! What is not built is never dropped in silence: the client's user is told. Hooks are taken up before there is a session;
//! where they come too late, those that could have refused something refuse the run.

use std::path::PathBuf;
use std::time::Duration;

use loci_core::hooks::HookEvent;
use loci_engine::{ClientHook, InitializeRequest};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The payload as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    hooks: Option<Map<String, Value>>,
    sdk_mcp_servers: Option<Vec<String>>,
    /// What is no object says nothing.
    sdk_mcp_server_configs: Option<Value>,
    json_schema: Option<Value>,
    system_prompt: Option<Texts>,
    append_system_prompt: Option<String>,
    exclude_dynamic_sections: Option<bool>,
    system_prompt_snapshot: Option<bool>,
    agents: Option<Map<String, Value>>,
    skills: Option<Skills>,
    title: Option<String>,
    prompt_suggestions: Option<bool>,
    forward_subagent_text: Option<bool>,
    agent_progress_summaries: Option<bool>,
    plan_mode_instructions: Option<String>,
    tool_aliases: Option<Map<String, Value>>,
    per_task_stop_affordance: Option<bool>,
    plugins: Option<Vec<Plugin>>,
    mcp_servers: Option<Map<String, Value>>,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Plugin {
    path: PathBuf,
    #[serde(default)]
    skip_mcp_discovery: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Skills {
    Names(Vec<String>),
    /// `"all"`, which is what there is without a choice.
    Word(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Matcher {
    matcher: Option<String>,
    hook_callback_ids: Vec<String>,
    timeout: Option<f64>,
    on_failure: Option<String>,
}

/// Reads the payload of `initialize`; the error says what cannot be read.
pub(crate) fn parse_initialize(request: &Value) -> Result<InitializeRequest, String> {
    let failed = |error: serde_json::Error| format!("The initialize request cannot be read: {error}");
    let mut payload = Payload::deserialize(request).map_err(failed)?;
    payload.unknown.remove("subtype");
    let hooks: Vec<Vec<ClientHook>> = payload
        .hooks
        .unwrap_or_default()
        .into_iter()
        .map(|(event, matchers)| parse_hooks(&event, matchers).map_err(failed))
        .collect::<Result<_, _>>()?;
    let plugins = payload.plugins.unwrap_or_default();
    let without_servers = plugins.iter().filter(|plugin| plugin.skip_mcp_discovery);
    Ok(InitializeRequest {
        hooks: hooks.into_iter().flatten().collect(),
        sdk_mcp_servers: payload.sdk_mcp_servers.unwrap_or_default(),
        sdk_mcp_server_settings: match payload.sdk_mcp_server_configs {
            Some(Value::Object(settings)) => settings,
            _ => Map::new(),
        },
        json_schema: payload.json_schema,
        system_prompt: payload.system_prompt.map(|texts| match texts {
            Texts::One(text) => text,
            Texts::Many(texts) => join_blocks(&texts),
        }),
        append_system_prompt: payload.append_system_prompt,
        excludes_dynamic_sections: payload.exclude_dynamic_sections.unwrap_or(false),
        keeps_system_prompt: payload.system_prompt_snapshot,
        agents: payload.agents.unwrap_or_default(),
        skills: match payload.skills {
            Some(Skills::Names(names)) => Some(names),
            Some(Skills::Word(word)) if word != "all" => Some(vec![word]),
            Some(Skills::Word(_)) | None => None,
        },
        title: payload.title,
        wants_prompt_suggestions: payload.prompt_suggestions.unwrap_or(false),
        forwards_subagent_text: payload.forward_subagent_text.unwrap_or(false),
        wants_agent_summaries: payload.agent_progress_summaries.unwrap_or(false),
        plan_mode_instructions: payload.plan_mode_instructions,
        tool_aliases: payload.tool_aliases.unwrap_or_default(),
        can_stop_tasks: payload.per_task_stop_affordance.unwrap_or(false),
        plugin_dirs_without_servers: without_servers.map(|plugin| plugin.path.clone()).collect(),
        plugin_dirs: plugins.into_iter().map(|plugin| plugin.path).collect(),
        mcp_servers: payload.mcp_servers.unwrap_or_default(),
        unknown: payload.unknown,
    })
}

/// Marks where a system prompt ends that is the same everywhere; the SDK has it as a constant. Both sides are sent.
const DYNAMIC_BOUNDARY: &str = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__";

fn join_blocks(texts: &[String]) -> String {
    let texts: Vec<&str> =
        texts.iter().map(String::as_str).filter(|text| *text != DYNAMIC_BOUNDARY).collect();
    texts.join("\n\n")
}

fn parse_hooks(event: &str, matchers: Value) -> Result<Vec<ClientHook>, serde_json::Error> {
    let matchers: Vec<Matcher> = serde_json::from_value(matchers)?;
    let hooks = matchers.into_iter().map(|matcher| ClientHook {
        event: event.to_owned(),
        matcher: matcher.matcher.filter(|text| !text.is_empty()),
        callback_ids: matcher.hook_callback_ids,
        timeout: matcher.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        // A word that is not known is read as the careful one.
        blocks_on_failure: matcher.on_failure.is_some_and(|word| word != "continue"),
    });
    // What calls nobody back asks for nothing.
    Ok(hooks.filter(|hook| !hook.callback_ids.is_empty()).collect())
}

/// Says why a request that came too late for its hooks cannot be taken: going on without them would let through what
/// they are there to stop.
pub(crate) fn check_late_hooks(request: &InitializeRequest) -> Result<(), String> {
    let is_deciding = |hook: &&ClientHook| HookEvent::parse(&hook.event).is_none_or(HookEvent::can_refuse);
    let mut events: Vec<&str> =
        request.hooks.iter().filter(is_deciding).map(|hook| hook.event.as_str()).collect();
    events.dedup();
    match events.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "Hooks must be registered by the first line of a client, and without these a call or a prompt could run that \
             they would have stopped: {}",
            events.join(", ")
        )),
    }
}

/// Says what of a request has no effect.
pub(crate) fn check_support(request: &InitializeRequest) -> Option<String> {
    let unknown_events: Vec<&str> = request
        .hooks
        .iter()
        .map(|hook| hook.event.as_str())
        .filter(|event| HookEvent::parse(event).is_none())
        .collect();
    let names = |names: Vec<&str>| names.join(", ");
    let unsupported = [
        ("hooks", unknown_events.join(", ")),
        ("agentProgressSummaries", flag(request.wants_agent_summaries)),
        ("toolAliases", names(odd_aliases(request))),
    ];
    let known =
        unsupported.iter().filter(|(_, what)| !what.is_empty()).map(|(field, what)| match what.as_str() {
            "yes" => (*field).to_owned(),
            what => format!("{field} ({what})"),
        });
    let unknown = request
        .unknown
        .iter()
        .filter(|(field, value)| is_something(value) && !NEEDLESS.contains(&field.as_str()))
        .map(|(field, _)| field.clone());
    let fields: Vec<String> = known.chain(unknown).collect();
    (!fields.is_empty()).then(|| {
        format!("The client asks for what is not supported yet and has no effect: {}", fields.join(", "))
    })
}

/// Returns the aliases that name no tool.
fn odd_aliases(request: &InitializeRequest) -> Vec<&str> {
    let odd = request.tool_aliases.iter().filter(|(_, tool)| !tool.is_string());
    odd.map(|(name, _)| name.as_str()).collect()
}

/// What clients say of themselves, or to spare us work: nothing goes amiss without it.
const NEEDLESS: [&str; 3] = ["sdkMcpServerManifests", "sdkMcpServerManifestsOrigin", "supportedDialogKinds"];

fn flag(is_set: bool) -> String {
    if is_set { "yes".to_owned() } else { String::new() }
}

/// Tells a value that asks for something from one that asks for nothing.
fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(payload: Value) -> InitializeRequest {
        parse_initialize(&payload).unwrap()
    }

    #[test]
    fn payloads_of_both_sdks_are_parsed() {
        let python = parse(json!({
            "subtype": "initialize",
            "hooks": {"PreToolUse": [
                {"matcher": "Bash", "hookCallbackIds": ["hook_0", "hook_1"], "timeout": 1.5},
                {"matcher": null, "hookCallbackIds": ["hook_2"]},
            ], "Stop": [{"hookCallbackIds": []}]},
            "agents": {"reviewer": {"description": "d", "prompt": "p"}},
        }));
        let hook = |matcher: Option<&str>, ids: &[&str], timeout| ClientHook {
            event: "PreToolUse".to_owned(),
            matcher: matcher.map(str::to_owned),
            callback_ids: ids.iter().map(|&id| id.to_owned()).collect(),
            timeout,
            blocks_on_failure: false,
        };
        let limit = Some(Duration::from_millis(1_500));
        assert_eq!(
            python.hooks,
            [hook(Some("Bash"), &["hook_0", "hook_1"], limit), hook(None, &["hook_2"], None)]
        );
        assert_eq!(python.agents["reviewer"]["prompt"], "p");
        let typescript = parse(json!({
            "subtype": "initialize", "sdkMcpServers": ["calc"], "jsonSchema": {"type": "object"},
            "systemPrompt": ["You test.", "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__", "Quickly."], "perTaskStopAffordance": true, "appendSystemPrompt": "More.", "excludeDynamicSections": true,
            "sdkMcpServerConfigs": {"calc": {"timeout": 5000}},
            "plugins": [{"type": "local", "path": "/p"}, {"type": "local", "path": "/q", "skipMcpDiscovery": true}],
            "skills": ["pdf"], "title": "T", "promptSuggestions": true, "systemPromptSnapshot": false, "fromTheFuture": {"a": 1},
        }));
        assert_eq!(
            typescript,
            InitializeRequest {
                sdk_mcp_servers: vec!["calc".to_owned()],
                sdk_mcp_server_settings: Map::from_iter([("calc".to_owned(), json!({"timeout": 5000}))]),
                plugin_dirs: vec!["/p".into(), "/q".into()],
                plugin_dirs_without_servers: vec!["/q".into()],
                json_schema: Some(json!({"type": "object"})),
                system_prompt: Some("You test.\n\nQuickly.".to_owned()),
                append_system_prompt: Some("More.".to_owned()),
                excludes_dynamic_sections: true,
                skills: Some(vec!["pdf".to_owned()]),
                title: Some("T".to_owned()),
                wants_prompt_suggestions: true,
                keeps_system_prompt: Some(false),
                can_stop_tasks: true,
                unknown: Map::from_iter([("fromTheFuture".to_owned(), json!({"a": 1}))]),
                ..InitializeRequest::default()
            }
        );
        for nothing in [json!({"subtype": "initialize"}), json!({"subtype": "initialize", "hooks": null})] {
            assert_eq!(parse(nothing), InitializeRequest::default());
        }
        for bad in
            [json!({"hooks": "all"}), json!({"hooks": {"Stop": [{"matcher": 5}]}}), json!({"agents": [1]})]
        {
            assert!(parse_initialize(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn unsupported_fields_are_named_and_late_deciding_hooks_are_refused() {
        let hooks = |event: &str| json!({"hooks": {event: [{"hookCallbackIds": ["hook_0"]}]}});
        for (payload, expected) in [
            (json!({}), "fine"),
            (json!({"hooks": {}, "systemPrompt": [""], "sdkMcpServers": [], "skills": "all"}), "fine"),
            (json!({"systemPrompt": "x", "appendSystemPrompt": "y", "title": "t"}), "fine"),
            (json!({"promptSuggestions": true, "later": null, "even": {}}), "fine"),
            (hooks("PreToolUse"), "fine"),
            (hooks("PostToolUse"), "fine"),
            (hooks("OfTheFuture"), "hooks (OfTheFuture)"),
            (json!({"skills": ["a", "b"], "jsonSchema": {}, "excludeDynamicSections": true}), "fine"),
            (json!({"agents": {"r": {}}, "agentProgressSummaries": true}), "agentProgressSummaries"),
            (json!({"later": 1}), "later"),
            (json!({"toolAliases": {"Shell": "Bash"}}), "fine"),
            (json!({"toolAliases": {"Shell": 5}}), "toolAliases (Shell)"),
        ] {
            let found = match check_support(&parse(payload.clone())) {
                None => "fine".to_owned(),
                Some(notice) => notice.rsplit_once(": ").unwrap().1.to_owned(),
            };
            assert_eq!(found, expected, "{payload}");
        }
        for (event, is_fine) in [
            ("PreToolUse", false),
            ("UserPromptSubmit", false),
            ("OfTheFuture", false),
            ("PostToolUse", true),
        ] {
            assert_eq!(check_late_hooks(&parse(hooks(event))).is_ok(), is_fine, "{event}");
        }
    }
}
