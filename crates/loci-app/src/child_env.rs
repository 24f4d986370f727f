//! The environment that commands get: ours, without what would let them spend or speak in our name.

use loci_stdx::{Env, Vars};

/// Credentials of model providers. Commands do not need them, and what a command prints the model reads.
const SECRETS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_AWS_API_KEY",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "ANTHROPIC_FOUNDRY_AUTH_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "GEMINI_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
];

/// Our own note of further names, a comma between two: the variables that providers of the settings name for their keys.
/// It is written over whatever anybody sets, and goes to no command itself.
const MORE_SECRETS: &str = "LOCI_PROVIDER_KEY_NAMES";

/// Notes in the environment which variables hold keys of the providers that settings name.
pub(crate) fn with_secret_names(vars: Vars, names: &[String]) -> Vars {
    match names {
        [] => vars.without(MORE_SECRETS),
        names => vars.with(MORE_SECRETS, names.join(",")),
    }
}

/// Set to let commands have the credentials all the same.
const PASS_SECRETS: &str = "LOCI_PASS_PROVIDER_KEYS";

/// Returns `env` with the choice about credentials that `start` made: no later settings file widens it.
pub fn with_secrets_as_in(start: &Env, env: Env) -> Env {
    let vars = match start.vars.get(PASS_SECRETS) {
        Some(choice) => env.vars.with(PASS_SECRETS, choice),
        None => env.vars.without(PASS_SECRETS),
    };
    Env { vars, ..env }
}

/// Returns the environment of child processes.
pub fn child_env(env: &Env) -> Vec<(String, String)> {
    let passes = env.vars.is_truthy(PASS_SECRETS);
    let more = env.vars.get(MORE_SECRETS).unwrap_or_default();
    let is_secret = |name: &str| SECRETS.contains(&name) || more.split(',').any(|it| it == name);
    env.vars
        .iter()
        .filter(|(name, _)| *name != MORE_SECRETS && (passes || !is_secret(name)))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_keys_are_not_passed_to_commands() {
        let mut env = Env::for_test("/home/dev", "/p");
        env.vars = [("PATH", "/bin"), ("ANTHROPIC_API_KEY", "sk-1")].into_iter().collect();
        assert_eq!(child_env(&env), [("PATH".to_owned(), "/bin".to_owned())]);
        env.vars = env.vars.with(PASS_SECRETS, "1");
        assert!(child_env(&env).iter().any(|(name, _)| name == "ANTHROPIC_API_KEY"));
    }

    #[test]
    fn keys_that_settings_name_are_not_passed_either() {
        let mut env = Env::for_test("/home/dev", "/p");
        let vars = [("PATH", "/bin"), ("MY_KEY", "k"), ("OPENAI_API_KEY", "o"), (MORE_SECRETS, "PATH")];
        env.vars = with_secret_names(vars.into_iter().collect(), &["MY_KEY".to_owned()]);
        assert_eq!(child_env(&env), [("PATH".to_owned(), "/bin".to_owned())]);
    }
}
