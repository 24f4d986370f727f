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

/// Credentials of clouds' accounts. Programs such as `aws` and `az` need them, so commands have them, unless they are asked to go
/// without ([`SCRUB`]).
const CLOUD_SECRETS: &[&str] = &[
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "AWS_ACCESS_KEY_ID",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SECURITY_TOKEN",
    "AWS_SESSION_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_CLIENT_CERTIFICATE_PASSWORD",
    "AZURE_CLIENT_CERTIFICATE_PATH",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_PASSWORD",
    "CLOUDSDK_AUTH_ACCESS_TOKEN",
    "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE",
    "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE",
    "GOOGLE_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_OAUTH_ACCESS_TOKEN",
    "IDENTITY_HEADER",
    "MSI_SECRET",
];

/// The reference's switch that keeps credentials of models and of clouds from commands, hooks and servers.
const SCRUB: &str = "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB";

/// Tells whether commands go without credentials of clouds.
pub(crate) fn is_scrubbed(vars: &Vars) -> bool {
    vars.is_truthy(SCRUB)
}

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

/// Returns `env` with the choices about credentials that `start` made: no later settings file widens them.
pub fn with_secrets_as_in(start: &Env, env: Env) -> Env {
    let mut vars = match start.vars.get(PASS_SECRETS) {
        Some(choice) => env.vars.with(PASS_SECRETS, choice),
        None => env.vars.without(PASS_SECRETS),
    };
    if is_scrubbed(&start.vars) {
        vars = vars.with(SCRUB, "1");
    }
    Env { vars, ..env }
}

/// Returns the environment of child processes.
pub fn child_env(env: &Env) -> Vec<(String, String)> {
    let mut vars = helper_env(env);
    if is_scrubbed(&env.vars) {
        vars.retain(|(name, _)| !CLOUD_SECRETS.contains(&name.as_str()));
    }
    vars
}

/// Returns the environment of commands that get credentials for us, which may need those of clouds for it.
pub(crate) fn helper_env(env: &Env) -> Vec<(String, String)> {
    let passes = env.vars.is_truthy(PASS_SECRETS) && !is_scrubbed(&env.vars);
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
    fn commands_go_without_credentials_of_clouds_where_that_is_asked_for() {
        let mut env = Env::for_test("/home/dev", "/p");
        let vars = [
            ("AWS_ACCESS_KEY_ID", "a"),
            ("AZURE_CLIENT_SECRET", "z"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "g"),
        ];
        env.vars = vars.into_iter().chain([("AWS_REGION", "eu"), ("ANTHROPIC_API_KEY", "sk-1")]).collect();
        let names =
            |env: &Env| child_env(env).into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ");
        assert_eq!(
            names(&env),
            "AWS_ACCESS_KEY_ID AWS_REGION AZURE_CLIENT_SECRET GOOGLE_APPLICATION_CREDENTIALS"
        );
        let usual = env.clone();
        // It outweighs the wish to pass keys on.
        env.vars = env.vars.with(SCRUB, "1").with(PASS_SECRETS, "1");
        assert_eq!(names(&env), "AWS_REGION CLAUDE_CODE_SUBPROCESS_ENV_SCRUB LOCI_PASS_PROVIDER_KEYS");
        assert!(
            helper_env(&env).iter().any(|(name, _)| name == "AWS_ACCESS_KEY_ID"),
            "whoever gets a key for us"
        );
        // Settings that change later do not take it back.
        assert!(!names(&with_secrets_as_in(&env, usual)).contains("AWS_ACCESS_KEY_ID"));
    }

    #[test]
    fn keys_that_settings_name_are_not_passed_either() {
        let mut env = Env::for_test("/home/dev", "/p");
        let vars = [("PATH", "/bin"), ("MY_KEY", "k"), ("OPENAI_API_KEY", "o"), (MORE_SECRETS, "PATH")];
        env.vars = with_secret_names(vars.into_iter().collect(), &["MY_KEY".to_owned()]);
        assert_eq!(child_env(&env), [("PATH".to_owned(), "/bin".to_owned())]);
    }
}
