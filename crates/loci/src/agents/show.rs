//! `loci agents show`: one definition, as it was understood.

use loci_app::UserError;
use loci_context::prose_tokens;
use loci_core::agent::AgentRegistry;
use loci_stdx::printable;
use serde_json::Value;

use super::agent_json;
use crate::config::pretty;

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The agent's name.
    name: String,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(registry: &AgentRegistry, args: &ShowArgs) -> Result<String, UserError> {
    let agent = registry.find(&args.name).ok_or_else(|| {
        let names: Vec<&str> = registry.iter().map(|agent| agent.name.as_str()).collect();
        UserError::new(format!("There is no agent `{}`", args.name))
            .hint(format!("There are: {}", names.join(", ")))
    })?;
    let mut fields = agent_json(agent);
    if args.json {
        fields["prompt"] = agent.prompt.as_str().into();
        return Ok(pretty(&fields));
    }
    let mut out = String::new();
    for (key, value) in fields.as_object().into_iter().flatten() {
        let is_empty = match value {
            Value::Null | Value::Bool(false) => true,
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if !is_empty {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            out += &format!("{key}: {text}\n");
        }
    }
    let tokens = (prose_tokens(&agent.description), prose_tokens(&agent.prompt));
    out += &format!("tokens: {} in every conversation, {} when it is sent out\n", tokens.0, tokens.1);
    for hidden in registry.shadowed.iter().filter(|it| it.name == agent.name) {
        out += &format!("hides that of {}\n", hidden.source);
    }
    Ok(printable(&format!("{out}\n{}\n", agent.prompt.trim_end())))
}
