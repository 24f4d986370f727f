//! The last frame of a turn: how it ended, what it cost, what was denied.

use std::collections::BTreeMap;

use loci_app::api_provider;
use loci_core::model::{facts, is_price_unknown};
use loci_core::usage::ModelUsage;
use loci_engine::TurnReport;
use loci_engine::turn::{Interruption, Outcome};
use serde_json::{Map, Value, json};

use crate::frame::Frames;

/// What a result tells beside how its turn went.
#[derive(Debug, Default)]
pub(crate) struct ResultContext {
    /// How many results there were before it.
    pub(crate) index: u64,
    /// The prompts that the turn has taken up, in order.
    pub(crate) prompts: Vec<String>,
    /// Prompts that were commands, and are done.
    pub(crate) commands: Vec<String>,
    /// Whether an answer has said so.
    pub(crate) has_marked_prompts: bool,
    /// Whether the first event of an answer's stream has.
    pub(crate) has_marked_stream: bool,
    /// The model that the turn began with.
    pub(crate) model: String,
    /// What became of the agents of the run.
    pub(crate) subagents: Value,
    /// The command that needed no model, where the turn was one.
    pub(crate) local_command: Option<String>,
    /// How many prompts wait.
    pub(crate) n_queued: usize,
    /// What was told of usage with the result before it.
    pub(crate) told: BTreeMap<String, ModelUsage>,
}

impl ResultContext {
    /// Forgets what concerns the turn before.
    pub(crate) fn begin_turn(&mut self, model: &str) {
        self.prompts.clear();
        (self.has_marked_prompts, self.has_marked_stream) = (false, false);
        self.local_command = None;
        model.clone_into(&mut self.model);
    }
}

impl Frames {
    /// Returns the last frame of a turn.
    pub(crate) fn result(&self, report: &TurnReport, context: &ResultContext) -> Value {
        let ending = Ending::of(&report.outcome);
        let mut frame = json!({
            "type": "result",
            "subtype": ending.subtype,
            "is_error": ending.is_error,
            "api_error_status": ending.status,
            "duration_ms": report.duration.as_millis() as u64,
            "duration_api_ms": report.api_duration.as_millis() as u64,
            "num_turns": report.round_trips,
            "stop_reason": report.stop_reason,
            "session_id": self.session.as_str(),
            "total_cost_usd": report.total_cost_usd,
            "usage": turn_usage(report),
            "modelUsage": usage_in_window(report, api_provider(&self.env)),
            "permission_denials": report.denials.iter().map(|denial| json!({
                "tool_name": denial.tool_name,
                "tool_use_id": denial.tool_use_id,
                "tool_input": denial.tool_input,
            })).collect::<Vec<_>>(),
            "fast_mode_state": "off",
            "subagent_stats": context.subagents,
            "safety_stops": u8::from(report.outcome == Outcome::Refused),
            "queued_turn_count": context.n_queued,
            "loci": {"context": {
                "tokens": report.context.tokens,
                "window": report.context.window,
                "compact_at": report.context.thresholds.compact,
                "level": report.context.level.as_str(),
            }},
        });
        let unpriced = report.by_model.iter().filter(|(model, usage)| is_price_unknown(model, usage));
        let unpriced: Vec<&str> = unpriced.map(|(model, _)| model.as_str()).collect();
        if !unpriced.is_empty() {
            frame["loci"]["price_unknown"] = json!(unpriced);
        }
        for (key, after) in [
            ("ttft_ms", report.first_event_after),
            ("ttft_stream_ms", report.first_event_after),
            ("first_content_frame_ms", report.first_content_after),
            ("time_to_request_ms", report.first_request_after),
        ] {
            if let Some(after) = after {
                frame[key] = json!(after.as_millis() as u64);
            }
        }
        if !report.is_saved {
            frame["loci"]["session_saved"] = json!(false);
        }
        if ending.subtype == "success" {
            frame["result"] = json!(report.shown_text.as_ref().unwrap_or(&report.text));
        }
        if let Outcome::Structured(answer) = &report.outcome {
            frame["structured_output"] = answer.clone();
            frame["result"] = json!(answer.to_string());
        }
        if let Outcome::Deferred(call) | Outcome::DeferredUnavailable(call) = &report.outcome {
            frame["deferred_tool_use"] = json!({"id": call.id, "name": call.name, "input": call.input});
        }
        frame["result_index"] = json!(context.index);
        let provider = api_provider(&self.env);
        frame["model_usage_since_last_result"] = usage_since(&context.told, &report.by_model, provider);
        if let Some(last) = context.prompts.last() {
            frame["user_message_uuid"] = json!(last);
            frame["user_message_uuids"] = json!(context.prompts);
        }
        if let Some(command) = &context.local_command {
            frame["local_command"] = json!(command);
        }
        // Clients take it for granted in every result that is no success.
        if ending.subtype != "success" {
            frame["errors"] = json!(Vec::from_iter(ending.error));
        }
        if let Some(origin) = &report.origin {
            frame["origin"] = json!({"kind": origin});
        }
        if let Some(reason) = ending.terminal_reason {
            frame["terminal_reason"] = json!(reason);
        }
        self.sealed(frame, None)
    }

    /// Returns a result for a run that failed before its first turn.
    pub(crate) fn failed_start(&self, error: &str) -> Value {
        let frame = json!({
            "type": "result",
            "subtype": "error_during_execution",
            "is_error": true,
            "duration_ms": 0,
            "duration_api_ms": 0,
            "num_turns": 0,
            "stop_reason": null,
            "session_id": self.session.as_str(),
            "total_cost_usd": 0,
            "usage": loci_core::usage::Usage::default().to_full_value(),
            "modelUsage": {},
            "permission_denials": [],
            "errors": [error],
        });
        self.sealed(frame, None)
    }
}

/// How an outcome reads in a result frame.
struct Ending {
    subtype: &'static str,
    is_error: bool,
    status: Option<u16>,
    error: Option<String>,
    terminal_reason: Option<&'static str>,
}

impl Ending {
    fn of(outcome: &Outcome) -> Self {
        let ending = |subtype, is_error, terminal_reason| Self {
            subtype,
            is_error,
            status: None,
            error: None,
            terminal_reason,
        };
        match outcome {
            Outcome::Completed => ending("success", false, Some("completed")),
            Outcome::Blocked(_) => ending("success", false, Some("completed")),
            Outcome::Halted(_) => ending("success", false, Some("hook_stopped")),
            Outcome::Deferred(_) => ending("success", false, Some("tool_deferred")),
            Outcome::DeferredUnavailable(_) => ending("success", true, None),
            Outcome::CommandFailed => ending("success", true, Some("completed")),
            Outcome::Refused => ending("success", true, Some("completed")),
            Outcome::ApiError(failure) => {
                Self { status: failure.status, ..ending("success", true, Some("api_error")) }
            }
            Outcome::MaxTurns(limit) => Self {
                error: Some(format!("Reached maximum number of turns ({limit})")),
                ..ending("error_max_turns", true, Some("max_turns"))
            },
            Outcome::MaxBudget(limit) => Self {
                error: Some(format!("Reached maximum budget (${limit})")),
                ..ending("error_max_budget_usd", true, None)
            },
            Outcome::Structured(_) => ending("success", false, Some("completed")),
            Outcome::MaxStructuredAttempts(n) => Self {
                error: Some(format!("Failed to provide valid structured output after {n} attempts")),
                ..ending(
                    "error_max_structured_output_retries",
                    true,
                    Some("structured_output_retry_exhausted"),
                )
            },
            Outcome::Interrupted(Interruption::Streaming) => {
                ending("error_during_execution", true, Some("aborted_streaming"))
            }
            Outcome::Interrupted(Interruption::Tools) => {
                ending("error_during_execution", true, Some("aborted_tools"))
            }
        }
    }
}

/// Returns true when a run that ended so should exit with an error.
pub(crate) fn is_error(outcome: &Outcome) -> bool {
    Ending::of(outcome).is_error
}

/// Returns what a person reads of an outcome that has no answer.
pub(crate) fn outcome_text(report: &TurnReport) -> String {
    match (&report.outcome, Ending::of(&report.outcome).error) {
        (_, Some(error)) => format!("Error: {error}"),
        (Outcome::Interrupted(_), None) => "Interrupted".to_owned(),
        (Outcome::Structured(answer), None) => answer.to_string(),
        (Outcome::Deferred(call), None) => {
            format!("A call of {} was put off: go on with `loci -p --resume {}`", call.name, report.session)
        }
        _ => report.shown_text.clone().unwrap_or_else(|| report.text.clone()),
    }
}

/// Returns what the main line used in a turn.
fn turn_usage(report: &TurnReport) -> Value {
    let mut usage = report.usage.to_full_value();
    if usage.get("output_tokens_details").is_none() {
        usage["output_tokens_details"] = json!({"thinking_tokens": 0});
    }
    usage
}

/// Returns what each model used; the window of one that we know nothing of is the one in force.
fn usage_in_window(report: &TurnReport, provider: &str) -> Value {
    let mut usage = usage_by_model(&report.by_model, provider);
    let unknown = report
        .by_model
        .iter()
        .filter(|(model, used)| used.context_window.is_none() && !facts(model).is_known);
    for (model, _) in unknown {
        usage[model]["contextWindow"] = json!(report.context.window);
    }
    usage
}

/// Returns what each model used, as clients are told it; `provider` serves those that no named one has.
pub(crate) fn usage_by_model(by_model: &BTreeMap<String, ModelUsage>, provider: &str) -> Value {
    let row = |model: &str, usage: &ModelUsage| {
        let facts = facts(model);
        let mut value = serde_json::to_value(usage).unwrap_or_default();
        value["contextWindow"] = json!(usage.context_window.unwrap_or(facts.window));
        value["maxOutputTokens"] = json!(usage.max_output_tokens.unwrap_or(facts.default_output));
        value["canonicalModel"] = json!(facts.id);
        value["provider"] = json!(model.split_once('/').map_or(provider, |(named, _)| named));
        value["costBasis"] = json!(if is_price_unknown(model, usage) { "unknown" } else { "list" });
        if is_price_unknown(model, usage) {
            value["priceUnknown"] = json!(true);
        }
        value
    };
    by_model.iter().map(|(model, usage)| (model.clone(), row(model, usage))).collect::<Map<_, _>>().into()
}

/// Returns what each model used since the last result; models that were not asked since are left out.
fn usage_since(
    told: &BTreeMap<String, ModelUsage>,
    now: &BTreeMap<String, ModelUsage>,
    provider: &str,
) -> Value {
    let nothing = ModelUsage::default();
    let since = now.iter().map(|(model, usage)| (model, usage.beyond(told.get(model).unwrap_or(&nothing))));
    let n_tokens = |usage: &ModelUsage| {
        let ModelUsage { input_tokens, output_tokens, cache_read_input_tokens, .. } = usage;
        input_tokens + output_tokens + cache_read_input_tokens + usage.cache_creation_input_tokens
    };
    let since = since.filter(|(_, usage)| n_tokens(usage) > 0);
    usage_by_model(&since.map(|(model, usage)| (model.clone(), usage)).collect(), provider)
}
