//! WebSearch: pages that a search engine knows, by whichever way the session has to one.

use std::time::Instant;

use loci_core::agent::sanitize_result;
use loci_core::tool::{CallEffects, MainArgument, ToolDescriptor, ToolFacts, ToolOutcome};
use loci_core::web::{WebFindings, WebQuery};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The tool's name.
const NAME: &str = "WebSearch";

/// The WebSearch tool.
pub(crate) struct WebSearch {
    descriptor: ToolDescriptor,
}

impl Default for WebSearch {
    fn default() -> Self {
        let domains = |what: &str| json!({"type": "array", "items": {"type": "string"}, "description": what});
        let descriptor = ToolDescriptor {
            name: NAME.to_owned(),
            aliases: &[],
            description: include_str!("web_search.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "minLength": 2, "description": "What to search for"},
                    "allowed_domains": domains("Only pages of these domains"),
                    "blocked_domains": domains("No pages of these domains"),
                },
                "required": ["query"],
                "additionalProperties": false,
            }),
            max_result_chars: Some(100_000),
            facts: ToolFacts {
                needs_conversation: true,
                is_deferrable: true,
                is_clearable: true,
                main_argument: Some(MainArgument::alone("query")),
                ..ToolFacts::default()
            },
        };
        Self { descriptor }
    }
}

#[derive(Deserialize)]
struct Input {
    query: String,
    #[serde(default)]
    allowed_domains: Vec<String>,
    #[serde(default)]
    blocked_domains: Vec<String>,
}

impl Tool for WebSearch {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    /// What is searched for leaves the machine, so it is asked about unless a rule allows the tool.
    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::unknown("what is searched for is sent to a search engine")
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn validate(&self, input: &Value, _host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        let has = |key: &str| input[key].as_array().is_some_and(|domains| !domains.is_empty());
        match has("allowed_domains") && has("blocked_domains") {
            true => Err(Box::new(ToolOutcome::error(
                "Give `allowed_domains` or `blocked_domains`, not both in one search.",
            ))),
            false => Ok(()),
        }
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let began = Instant::now();
            let Some(web) = host.web() else {
                return ToolOutcome::error("This session has no way to the web.");
            };
            let Ok(Input { query, allowed_domains, blocked_domains }) =
                serde_json::from_value(call.input.clone())
            else {
                return ToolOutcome::error("The input needs a `query`.");
            };
            if !web.count_search() {
                let text = "This session has made as many searches as it may \
                            (`CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION`). Go on with what is known.";
                return outcome(&query, text.to_owned(), &WebFindings::default(), began);
            }
            let asked = WebQuery { query: query.clone(), allowed_domains, blocked_domains };
            tokio::select! {
                found = web.search(asked, &call.cancel) => match found {
                    Ok(found) => outcome(&query, text_of(&query, &found), &found, began),
                    Err(why) => ToolOutcome::error(format!("The search could not be made: {why}")),
                },
                () = call.cancel.cancelled() => ToolOutcome::error("The search was interrupted."),
            }
        })
    }
}

fn text_of(query: &str, found: &WebFindings) -> String {
    let mut text = format!("Results of the search for {query:?}:\n");
    for hit in &found.hits {
        text += &format!("- {} ({})\n", hit.title.trim(), hit.url);
        if !hit.snippet.trim().is_empty() {
            text += &format!("  {}\n", hit.snippet.trim().replace('\n', " "));
        }
    }
    if found.hits.is_empty() {
        text += "No pages were named.\n";
    }
    if !found.text.trim().is_empty() {
        text += &format!("\n{}\n", found.text.trim());
    }
    sanitize_result(&text)
}

fn outcome(query: &str, text: String, found: &WebFindings, began: Instant) -> ToolOutcome {
    let hits: Vec<Value> = found.hits.iter().map(|hit| json!({"title": hit.title, "url": hit.url})).collect();
    let mut results = vec![json!({"content": hits})];
    if !found.text.is_empty() {
        results.push(Value::from(found.text.as_str()));
    }
    let seconds = began.elapsed().as_secs_f64();
    ToolOutcome::text(text, json!({"query": query, "results": results, "durationSeconds": seconds}))
}

#[cfg(test)]
mod tests;
