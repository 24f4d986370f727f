//! Whether the model looks for tools that it rarely needs: `ENABLE_TOOL_SEARCH`, the server that is asked, the model.
//!
//! Results name what was found in a kind of block (`tool_reference`) that not every server understands, so it is off by
//! default where requests go to a server of the user's own choice.

use loci_core::permission::Rulebook;
use loci_engine::{ToolSearchMode, is_on_cloud};
use loci_llm::ProviderConfig;
use loci_stdx::Vars;
use loci_tools::TOOL_SEARCH;

use crate::options::{RunOptions, ToolChoice};
use crate::settings::RunSettings;

/// The share of the window that definitions may take with `auto`, in percent.
const USUAL_PERCENT: u8 = 10;
/// The hosts whose servers are known to understand.
const KNOWN_HOST: &str = "api.anthropic.com";
/// Models from before the blocks were understood, by how their ids begin.
const OLDER_MODELS: [&str; 9] = [
    "claude-1",
    "claude-2",
    "claude-3",
    "claude-instant",
    "claude-opus-4-0",
    "claude-opus-4-1",
    "claude-opus-4-2",
    "claude-sonnet-4-0",
    "claude-sonnet-4-2",
];

/// Says how the model of a run looks for tools, and what the user should know about that: not at all where it has a few,
/// was given a list of them, or may not.
pub(crate) fn tool_search(
    options: &RunOptions,
    run: &RunSettings,
    rulebook: &Rulebook,
    model: &str,
) -> (ToolSearchMode, Option<String>) {
    let is_usual = !matches!(options.tools, ToolChoice::Only(_)) && !run.is_bare;
    if !is_usual || rulebook.is_tool_denied(TOOL_SEARCH) {
        return (ToolSearchMode::Off, None);
    }
    let config = ProviderConfig::from_env(&run.env).ok();
    // A cloud is asked elsewhere, whatever the address would be.
    let config = config.filter(|_| !is_on_cloud(&run.env.vars));
    let base_url = config.map(|config| config.base_url).unwrap_or_default();
    tool_search_mode(&run.env.vars, &base_url, model)
}

fn tool_search_mode(vars: &Vars, base_url: &str, model: &str) -> (ToolSearchMode, Option<String>) {
    let asked = vars.non_empty("ENABLE_TOOL_SEARCH").map(|text| text.trim().to_lowercase());
    let (wish, warning) = match asked.as_deref().map(parse) {
        None => (None, None),
        Some(Some(mode)) => (Some(mode), None),
        Some(None) => (
            None,
            Some(
                "ENABLE_TOOL_SEARCH is none of true, false, auto and auto:N; it is as if it were not set"
                    .to_owned(),
            ),
        ),
    };
    if vars.is_truthy("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS") || !is_understood(model) {
        return (ToolSearchMode::Off, warning);
    }
    let usual = if is_known(base_url) { ToolSearchMode::On } else { ToolSearchMode::Off };
    (wish.unwrap_or(usual), warning)
}

fn parse(text: &str) -> Option<ToolSearchMode> {
    match text {
        "true" | "1" | "yes" | "on" => Some(ToolSearchMode::On),
        "false" | "0" | "no" | "off" => Some(ToolSearchMode::Off),
        "auto" => Some(ToolSearchMode::Auto(USUAL_PERCENT)),
        _ => {
            let percent: u8 = text.strip_prefix("auto:")?.trim().parse().ok()?;
            (percent <= 100).then_some(ToolSearchMode::Auto(percent))
        }
    }
}

fn is_known(base_url: &str) -> bool {
    let host = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let host = host.split(['/', ':']).next().unwrap_or_default();
    host.eq_ignore_ascii_case(KNOWN_HOST)
}

/// Tells whether a model understands references: those of the vendor since the generation of 4.5.
fn is_understood(model: &str) -> bool {
    let model = model.rsplit(['/', '.']).next().unwrap_or(model);
    model.starts_with("claude-") && !OLDER_MODELS.iter().any(|older| model.starts_with(older))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_looked_for_where_server_and_model_understand_that() {
        use ToolSearchMode::{Auto, Off, On};
        let first = "https://api.anthropic.com";
        for (value, base_url, model, expected) in [
            (None, first, "claude-opus-4-8", On),
            (None, first, "claude-sonnet-4-5-20250929", On),
            (None, "https://API.anthropic.com:443/", "claude-haiku-4-5", On),
            (None, "https://proxy.example", "claude-opus-4-8", Off),
            (None, "https://api.anthropic.com.example", "claude-opus-4-8", Off),
            (None, first, "claude-3-5-haiku-latest", Off),
            (None, first, "claude-opus-4-1", Off),
            (None, first, "claude-sonnet-4-20250514", Off),
            (None, first, "some-other-model", Off),
            (Some("true"), "http://127.0.0.1:1", "claude-opus-4-8", On),
            (Some("true"), first, "claude-3-opus", Off),
            (Some("false"), first, "claude-opus-4-8", Off),
            (Some("auto"), first, "claude-opus-4-8", Auto(10)),
            (Some("auto:5"), "http://127.0.0.1:1", "claude-opus-4-8", Auto(5)),
            (Some("auto:101"), first, "claude-opus-4-8", On),
            (Some("maybe"), "http://127.0.0.1:1", "claude-opus-4-8", Off),
        ] {
            let vars: Vars = value.map(|value| ("ENABLE_TOOL_SEARCH", value)).into_iter().collect();
            let (mode, warning) = tool_search_mode(&vars, base_url, model);
            assert_eq!(mode, expected, "{value:?} {base_url} {model}");
            assert_eq!(warning.is_some(), matches!(value, Some("auto:101" | "maybe")));
        }
        let stable: Vars = [("ENABLE_TOOL_SEARCH", "true"), ("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1")]
            .into_iter()
            .collect();
        assert_eq!(tool_search_mode(&stable, first, "claude-opus-4-8").0, Off);
    }
}
