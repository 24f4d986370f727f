//! The model provider of a session, and where its credentials come from.

use std::sync::Arc;

use loci_llm::{AuthSource, Client, ProviderConfig};

use crate::credentials::Credentials;
use crate::settings::RunSettings;
use crate::user_error::UserError;

/// The provider of a session.
pub(super) struct Provider {
    pub(super) client: Client,
    /// Where the credentials come from, for people.
    pub(super) api_key_source: String,
    pub(super) credentials: Arc<Credentials>,
    /// Whether a script plays the model.
    pub(super) is_scripted: bool,
}

/// Makes the provider of the environment, unless there is a client already, which plays a script.
pub(super) fn provider(run: &RunSettings, scripted: Option<Client>) -> Result<Provider, UserError> {
    let credentials = Arc::new(Credentials::new(&run.home, &run.env, &run.settings));
    let is_scripted = scripted.is_some();
    let (client, api_key_source) = match scripted {
        Some(client) => (client, "none"),
        None => connect(run, &credentials)?,
    };
    Ok(Provider { client, api_key_source: api_key_source.to_owned(), credentials, is_scripted })
}

/// Tells whether a run has nothing to authenticate with, where it needs something.
pub fn needs_credentials(run: &RunSettings) -> Result<bool, UserError> {
    let config = ProviderConfig::from_env(&run.env)?;
    let credentials = Credentials::new(&run.home, &run.env, &run.settings);
    Ok(!is_custom(run, &config) && matches!(credentials.source(), Ok(None)))
}

/// Tells whether requests go to a server of the user's own choice, which may want no credentials.
fn is_custom(run: &RunSettings, config: &ProviderConfig) -> bool {
    run.env.vars.non_empty("ANTHROPIC_BASE_URL").is_some() || !config.custom_headers.is_empty()
}

fn connect(run: &RunSettings, credentials: &Arc<Credentials>) -> Result<(Client, &'static str), UserError> {
    let config = ProviderConfig::from_env(&run.env)?;
    let is_custom = is_custom(run, &config);
    let source = match credentials.source() {
        Ok(Some(source)) => source,
        Ok(None) | Err(_) if is_custom => "none",
        Ok(None) => {
            return Err(UserError::new("No API key is set").hint(
                "Set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), or try `loci demo`, which needs none.",
            ));
        }
        Err(problem) => {
            return Err(UserError::from_error(&problem)
                .hint("Let only yourself read the file (`chmod 600`), or set ANTHROPIC_API_KEY."));
        }
    };
    let client = Client::with_auth_source(config, Arc::clone(credentials) as Arc<dyn AuthSource>)?;
    client.warm_up();
    Ok((client, source))
}
