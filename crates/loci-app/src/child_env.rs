//! The environment that commands get: ours, without what would let them spend or speak in our name.

use loci_stdx::Env;

/// Credentials of model providers. Commands do not need them, and what a command prints the model reads.
const SECRETS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "ANTHROPIC_FOUNDRY_AUTH_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "CLAUDE_CODE_OAUTH_TOKEN",
];

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
    env.vars
        .iter()
        .filter(|(name, _)| passes || !SECRETS.contains(name))
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
}
