//! Finding out where one logs in at a server: what its refusal says, then what the resource and its authorization server
//! say of themselves.

use reqwest::Url;

use super::LoginTarget;
use super::challenge::BearerChallenge;
use super::metadata::{
    ResourceMetadata, ServerMetadata, is_allowed, resource_metadata_urls, server_metadata_urls,
};
use crate::names::brief;

/// Where one logs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Discovered {
    /// The resource; none where a server describes none.
    pub(crate) resource: Option<ResourceMetadata>,
    pub(crate) server: ServerMetadata,
}

impl LoginTarget {
    /// Finds the authorization server; none when nothing is described anywhere. The error says what is wrong with what
    /// is described.
    pub(crate) async fn discover(&self, challenge: &BearerChallenge) -> Result<Option<Discovered>, String> {
        let resource = self.resource(challenge.resource_metadata.as_deref()).await?;
        if let Some(url) = &self.oauth.metadata_url {
            let server = self.configured_server(url).await?;
            return Ok(Some(Discovered { resource, server }));
        }
        let Some(resource) = resource else {
            // Before there were descriptions of resources a server was its own authorization server.
            let origin = self.url.origin().ascii_serialization();
            let server = self.server(&origin).await?;
            return Ok(server.map(|server| Discovered { resource: None, server }));
        };
        let mut problem = None;
        for issuer in &resource.authorization_servers {
            match self.server(issuer).await {
                Ok(Some(server)) => return Ok(Some(Discovered { resource: Some(resource), server })),
                Ok(None) => {
                    let text =
                        format!("the authorization server `{}` does not describe itself", brief(issuer));
                    problem.get_or_insert(text);
                }
                Err(text) => {
                    problem.get_or_insert(text);
                }
            }
        }
        Err(problem.unwrap_or_else(|| "its description names no authorization server".to_owned()))
    }

    async fn resource(&self, said: Option<&str>) -> Result<Option<ResourceMetadata>, String> {
        let mut problem = None;
        for url in resource_metadata_urls(&self.url, said) {
            let read = match self.get_json(&url).await {
                Ok(answer) if answer.is_success() && answer.value.is_object() => {
                    ResourceMetadata::parse(&answer.value, &self.url)
                }
                Ok(_) => continue,
                Err(error) => Err(error),
            };
            match read {
                Ok(resource) => return Ok(Some(resource)),
                Err(why) => {
                    problem.get_or_insert(format!(
                        "the description of its resource at `{}`: {why}",
                        redacted_url(&url)
                    ));
                }
            }
        }
        problem.map_or(Ok(None), Err)
    }

    async fn server(&self, issuer: &str) -> Result<Option<ServerMetadata>, String> {
        let name = brief(issuer);
        let url = Url::parse(issuer)
            .map_err(|error| format!("the authorization server `{name}` has no address: {error}"))?;
        if !is_allowed(&self.url, &url) {
            return Err(format!("the authorization server `{name}` is not safe to use: it needs https"));
        }
        let mut problem = None;
        for url in server_metadata_urls(&url) {
            let read = match self.get_json(&url).await {
                Ok(answer) if answer.is_success() && answer.value.is_object() => {
                    ServerMetadata::parse(&answer.value, Some(issuer), &self.url)
                }
                Ok(_) => continue,
                Err(error) => Err(error),
            };
            match read {
                Ok(server) => return Ok(Some(server)),
                Err(why) => {
                    let text = format!(
                        "the description of the authorization server at `{}`: {why}",
                        redacted_url(&url)
                    );
                    problem.get_or_insert(text);
                }
            }
        }
        problem.map_or(Ok(None), Err)
    }

    /// Reads the description that the entry points at, whoever it is of.
    async fn configured_server(&self, text: &str) -> Result<ServerMetadata, String> {
        let wrong = |why: String| format!("its `authServerMetadataUrl` `{}`: {why}", brief(text));
        let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
        if !is_allowed(&self.url, &url) {
            return Err(wrong("it must begin with https".to_owned()));
        }
        let answer = self.get_json(&url).await.map_err(wrong)?;
        if !answer.is_success() {
            return Err(wrong(format!("it is answered with HTTP {}", answer.status)));
        }
        ServerMetadata::parse(&answer.value, None, &self.url).map_err(wrong)
    }
}

/// Returns an address for people, without what may be a secret in it.
fn redacted_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    brief(url.as_str())
}
