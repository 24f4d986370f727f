//! The headers of requests to a server: those of its entry, those that a command of its entry prints, and those that say
//! who asks. They are secrets: they go to the server's own origin and into no message.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use loci_stdx::{Signal, kill_group, own_group};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::Mutex;

use super::TransportError;
use crate::authorizer::{AfterChallenge, Authorizer, Challenge};

/// How long the command may take, and how much it may print.
const HELPER_TIME: Duration = Duration::from_secs(10);
const HELPER_BYTES: u64 = 64 << 10;

/// Where headers come from.
pub(crate) struct HeaderSource {
    pub(crate) fixed: Vec<(String, String)>,
    pub(crate) helper: Option<HeadersHelper>,
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
    /// What the command printed; held while it runs, so that it runs once.
    pub(crate) printed: Mutex<Option<Vec<(String, String)>>>,
}

/// A command that prints headers.
pub(crate) struct HeadersHelper {
    pub(crate) command: String,
    pub(crate) cwd: PathBuf,
    /// Its whole environment.
    pub(crate) env: Vec<(String, String)>,
}

impl HeaderSource {
    /// Returns the headers of the next request. Those that are printed win over those that are written.
    pub(crate) async fn headers(&self) -> Result<HeaderMap, TransportError> {
        let mut headers = HeaderMap::new();
        insert_headers(&mut headers, &self.fixed)?;
        if let Some(helper) = &self.helper {
            let mut printed = self.printed.lock().await;
            if printed.is_none() {
                *printed = Some(helper.run().await.map_err(TransportError::Failed)?);
            }
            insert_headers(&mut headers, printed.as_deref().unwrap_or_default())?;
        }
        if let Some(authorizer) = &self.authorizer {
            let given = authorizer.headers().await.map_err(TransportError::Failed)?;
            insert_headers(&mut headers, &given)?;
        }
        Ok(headers)
    }

    /// Is told that headers were refused; tells whether others may do.
    pub(crate) async fn refused(
        &self,
        sent: &HeaderMap,
        status: u16,
        challenge: Option<String>,
    ) -> AfterChallenge {
        if self.helper.is_some() {
            self.printed.lock().await.take();
            return AfterChallenge::Retry;
        }
        match &self.authorizer {
            Some(authorizer) => {
                let sent = sent.get(AUTHORIZATION).and_then(|it| it.to_str().ok()).map(str::to_owned);
                authorizer.challenged(Challenge { status, header: challenge, authorization: sent }).await
            }
            // A header that is written in the entry was refused: there is nothing else to try.
            None if self.has_authorization() => AfterChallenge::Refused,
            None => AfterChallenge::NeedsLogin,
        }
    }

    fn has_authorization(&self) -> bool {
        self.fixed.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    }
}

fn insert_headers(headers: &mut HeaderMap, pairs: &[(String, String)]) -> Result<(), TransportError> {
    for (name, value) in pairs {
        let parsed: Result<HeaderName, _> = name.parse();
        let parsed =
            parsed.map_err(|_| TransportError::Failed(format!("`{name}` is no name of a header")))?;
        // The value may be a secret, so it is not repeated.
        let mut value: HeaderValue = value.parse().map_err(|_| {
            TransportError::Failed(format!("the value of the header `{name}` cannot be sent"))
        })?;
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(())
}

impl HeadersHelper {
    async fn run(&self) -> Result<Vec<(String, String)>, String> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&self.command).current_dir(&self.cwd).env_clear().envs(self.env.clone());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        own_group(command.as_std_mut());
        let failed = |error: std::io::Error| format!("its headersHelper could not be run: {error}");
        let mut child = command.spawn().map_err(failed)?;
        let mut group = HelperGroup(child.id());
        let work = async {
            let mut text = String::new();
            if let Some(stdout) = child.stdout.take() {
                stdout.take(HELPER_BYTES).read_to_string(&mut text).await.map_err(failed)?;
            }
            let status = child.wait().await.map_err(failed)?;
            match status.success() {
                true => Ok(text),
                false => Err(format!("its headersHelper failed ({status})")),
            }
        };
        let text = tokio::time::timeout(HELPER_TIME, work).await;
        if text.is_ok() {
            group.0 = None;
        }
        let text = text.map_err(|_| "its headersHelper took longer than 10 s".to_owned())??;
        let value: Value = serde_json::from_str(&text)
            .map_err(|_| "its headersHelper printed no JSON object of texts".to_owned())?;
        let fields = value.as_object().ok_or("its headersHelper printed no JSON object of texts")?;
        let pairs = fields.iter().map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        pairs
            .collect::<Option<_>>()
            .ok_or_else(|| "its headersHelper printed a value that is no text".to_owned())
    }
}

/// Ends a command that is given up, with everything it started: its time is over, or nobody waits for it any more.
struct HelperGroup(Option<u32>);

impl Drop for HelperGroup {
    fn drop(&mut self) {
        if let Some(pid) = self.0
            && let Err(error) = kill_group(pid, Signal::Kill)
        {
            tracing::debug!(target: "loci::mcp", %error, "a headersHelper could not be ended");
        }
    }
}
