//! `loci auth`: whether there is something to authenticate with, and the ways in and out, by the names that scripts use.

use loci_app::compose::credentials_source;
use loci_app::settings::RunSettings;
use loci_app::{RunOptions, UserError, api_provider};
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use serde_json::json;

use crate::config::write;
use crate::login;

#[derive(Debug, clap::Args)]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    verb: AuthVerb,
}

#[derive(Debug, clap::Subcommand)]
enum AuthVerb {
    /// Say whether there are credentials, and where they come from; exits with 1 when there are none.
    Status {
        /// Print JSON, as without it.
        #[arg(long, conflicts_with = "text")]
        json: bool,
        /// Print a line for people.
        #[arg(long)]
        text: bool,
    },
    /// Keep an API key, readable by you alone: the same as `loci login`.
    Login {
        /// A login at the console, which loci does not have: only keys can be kept.
        #[arg(long, hide = true)]
        console: bool,
        /// A login by subscription, which loci does not have.
        #[arg(long, hide = true)]
        claudeai: bool,
        /// A login by single sign-on, which loci does not have.
        #[arg(long, hide = true)]
        sso: bool,
        /// The account of such a login.
        #[arg(long, hide = true)]
        email: Option<String>,
    },
    /// Forget the API key that is kept: the same as `loci logout`.
    Logout,
}

pub(crate) fn run(env: &Env, args: &AuthArgs) -> Result<u8, UserError> {
    match &args.verb {
        AuthVerb::Status { text, .. } => status(env, *text),
        AuthVerb::Login { console, claudeai, sso, email } => {
            if *console || *claudeai || *sso || email.is_some() {
                return Err(UserError::new(
                    "loci has no login at a page: it keeps an API key, or uses the login that is there",
                )
                .hint("Run `loci auth login` without flags, and give it a key."));
            }
            login::login(env)
        }
        AuthVerb::Logout => login::logout(env),
    }
}

/// Says how things stand, without asking anybody.
fn status(env: &Env, is_text: bool) -> Result<u8, UserError> {
    let run = RunSettings::load(env, &RunOptions::default())?;
    let source = credentials_source(&run)?;
    let home = ConfigHome::from_env(env);
    if is_text {
        write(&match source {
            Some(source) => format!("Credentials: {source}\n"),
            None => "There are no credentials: run `loci login`, or set ANTHROPIC_API_KEY\n".to_owned(),
        })?;
    } else {
        let mut answer = json!({
            "loggedIn": source.is_some(),
            "authMethod": source.map_or("none", method),
            "apiProvider": api_provider(&run.env),
            "analyticsDisabled": true,
            "projectsDirectory": home.projects_dir(),
            "configDirectory": home.root(),
            "loginExpiresAt": null,
        });
        if let Some(source) = source.filter(|source| method(source).starts_with("api_key")) {
            answer["apiKeySource"] = json!(source);
        }
        write(&format!("{answer:#}\n"))?;
    }
    Ok(u8::from(source.is_none()))
}

/// Returns the word for a kind of credentials, as programs know it.
fn method(source: &str) -> &'static str {
    match source {
        "ANTHROPIC_API_KEY" | "loci login" => "api_key",
        "apiKeyHelper" => "api_key_helper",
        "ANTHROPIC_AUTH_TOKEN" | "CLAUDE_CODE_OAUTH_TOKEN" => "oauth_token",
        "oauth" => "claude.ai",
        _ => "third_party",
    }
}
