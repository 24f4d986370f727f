//! What requests to Amazon's services have of their own: signatures that cover the body.

mod sigv4;

use loci_core::stream::{Failure, FailureKind};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::secret::Secret;

/// The type of a form.
pub const FORM: &str = "application/x-www-form-urlencoded";

/// Names the file in which a login of SSO is kept; nothing is kept safe by it.
pub fn sha1_hex(text: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    loci_core::hex::to_hex(digest.as_ref())
}

/// Keys of an Amazon account, for a while or for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsKeys {
    /// Whose keys they are.
    pub access_key: String,
    /// What requests are signed with.
    pub secret_key: Secret,
    /// The token of a session, where the keys are lent.
    pub session_token: Option<Secret>,
}

/// Signs requests: with which keys, for where and when.
#[derive(Debug, Clone)]
pub struct AwsSigner {
    /// The keys.
    pub keys: AwsKeys,
    /// The region.
    pub region: String,
    /// The service.
    pub service: &'static str,
    /// The time of the request.
    pub now: jiff::Timestamp,
}

/// The same keys for the same place; when they are used does not matter.
impl PartialEq for AwsSigner {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys && self.region == other.region && self.service == other.service
    }
}

impl Eq for AwsSigner {}

impl AwsSigner {
    /// Returns the headers that sign a form which is posted to a service of Amazon's that is no model.
    pub fn form_headers(&self, url: &str, form: &str) -> Result<Vec<(String, String)>, String> {
        let url = Url::parse(url).map_err(|error| format!("`{url}` is no address: {error}"))?;
        let mut headers = HeaderMap::new();
        headers.insert(reqwest::header::CONTENT_TYPE, HeaderValue::from_static(FORM));
        self.sign("POST", &url, &mut headers, form.as_bytes()).map_err(|failure| failure.message)?;
        headers.remove(reqwest::header::CONTENT_TYPE);
        let pair = |(name, value): (&HeaderName, &HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        Ok(headers.iter().filter_map(pair).collect())
    }

    /// Adds the signature of a request to its headers.
    pub fn sign(&self, method: &str, url: &Url, headers: &mut HeaderMap, body: &[u8]) -> Result<(), Failure> {
        let host = match (url.host_str().unwrap_or_default(), url.port()) {
            (host, Some(port)) => format!("{host}:{port}"),
            (host, None) => host.to_owned(),
        };
        let date = self.now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let mut signed = vec![("host".to_owned(), host), ("x-amz-date".to_owned(), date.clone())];
        if let Some(kind) = headers.get(reqwest::header::CONTENT_TYPE).and_then(|it| it.to_str().ok()) {
            signed.push(("content-type".to_owned(), kind.to_owned()));
        }
        if let Some(token) = &self.keys.session_token {
            signed.push(("x-amz-security-token".to_owned(), token.expose().to_owned()));
        }
        let request = sigv4::CanonicalRequest {
            method,
            path: url.path(),
            query: url.query().unwrap_or_default(),
            headers: signed,
            body,
        };
        let region = region_of_host(url.host_str().unwrap_or_default()).unwrap_or(&self.region);
        let scope = sigv4::Scope { date: &date, region, service: self.service };
        let authorization = sigv4::authorization(&request, &scope, &self.keys);
        let mut insert = |name: &'static str, value: &str| -> Result<(), Failure> {
            let mut value = HeaderValue::from_str(value).map_err(|_| bad_header(name))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
            Ok(())
        };
        insert("x-amz-date", &date)?;
        if let Some(token) = &self.keys.session_token {
            insert("x-amz-security-token", token.expose())?;
        }
        insert("authorization", &authorization)
    }
}

/// Says that a header cannot be sent.
pub fn bad_header(name: &str) -> Failure {
    Failure::new(FailureKind::InvalidRequest, format!("Not a header that can be sent: `{name}`"))
        .with_hint("Header names are letters, digits and dashes; values have no line breaks.")
}

/// Tells whether a text is shaped like the name of a region.
pub fn is_region(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.contains('-') && text.chars().all(is_plain)
}

/// A host of Amazon's names the region that a signature must name, too.
fn region_of_host(host: &str) -> Option<&str> {
    let host = [".amazonaws.com", ".api.aws"].iter().find_map(|ending| host.strip_suffix(ending))?;
    let services = ["bedrock-runtime.", "bedrock.", "bedrock-mantle.", "aws-external-anthropic."];
    let behind = services.iter().find_map(|service| Some(host.split_once(service)?.1))?;
    behind.split('.').next().filter(|region| is_region(region))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_is_for_the_region_that_the_host_names() {
        for (host, expected) in [
            ("bedrock-runtime.eu-west-1.amazonaws.com", Some("eu-west-1")),
            ("bedrock.us-gov-west-1.amazonaws.com", Some("us-gov-west-1")),
            ("vpce-1-a.bedrock-runtime.us-east-1.vpce.amazonaws.com", Some("us-east-1")),
            ("bedrock-mantle.us-west-2.api.aws", Some("us-west-2")),
            ("aws-external-anthropic.eu-west-1.api.aws", Some("eu-west-1")),
            ("bedrock-runtime.amazonaws.com", None),
            ("bedrock-runtime.eu-west-1.example.com", None),
            ("127.0.0.1", None),
        ] {
            assert_eq!(region_of_host(host), expected, "{host}");
        }
        let keys = AwsKeys { access_key: "AK".into(), secret_key: Secret::new("s"), session_token: None };
        let now = jiff::Timestamp::UNIX_EPOCH;
        let signer = AwsSigner { keys, region: "us-east-1".into(), service: "bedrock", now };
        for (host, region) in
            [("bedrock-runtime.eu-west-1.amazonaws.com", "eu-west-1"), ("gateway", "us-east-1")]
        {
            let url = Url::parse(&format!("https://{host}/model/x/invoke")).unwrap();
            let mut headers = HeaderMap::new();
            signer.sign("POST", &url, &mut headers, b"{}").unwrap();
            let said = headers["authorization"].to_str().unwrap();
            assert!(said.contains(&format!("/{region}/bedrock/aws4_request")), "{said}");
        }
    }
}
