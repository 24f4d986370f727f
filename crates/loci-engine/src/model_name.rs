//! From what people call a model to its id.

use loci_core::model::resolve_alias;
use loci_stdx::Vars;

/// Returns the id of the model that a name stands for: an alias, which the environment may redirect, or an id.
pub fn resolve_model(vars: &Vars, name: &str) -> String {
    resolve_alias(name, |alias| {
        let variable = match alias {
            "opus" | "default" => "ANTHROPIC_DEFAULT_OPUS_MODEL",
            "fable" | "best" => "ANTHROPIC_DEFAULT_FABLE_MODEL",
            "sonnet" => "ANTHROPIC_DEFAULT_SONNET_MODEL",
            "haiku" => "ANTHROPIC_DEFAULT_HAIKU_MODEL",
            _ => return None,
        };
        vars.non_empty(variable).map(str::to_owned)
    })
}
