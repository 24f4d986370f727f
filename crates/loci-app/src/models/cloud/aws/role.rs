//! Roles: keys that Amazon's token service lends to whoever may play one, by other keys or by the token of a web identity.
//!
//! A profile with `role_arn` says by whose keys: `source_profile` (which may play a role itself), `credential_source`, or
//! `web_identity_token_file`. Without a profile `AWS_ROLE_ARN` and `AWS_WEB_IDENTITY_TOKEN_FILE` do.

use std::time::Duration;

use loci_core::stream::Failure;
use loci_http::{AwsKeys, AwsSigner, FORM, HttpCall, JsonPostError, Secret, http_call};

use super::super::google::form;
use super::super::ini::Sections;
use super::super::unauthenticated;
use super::FoundKeys;
use super::chain::AwsChain;

const HINT: &str =
    "Set `awsCredentialExport` to a command that prints keys, such as `aws configure export-credentials`.";
/// How long the token service may take.
const LIMIT: Duration = Duration::from_secs(20);
/// How many roles may stand behind each other.
const MOST_ROLES: usize = 5;

impl AwsChain {
    /// Returns the keys of a profile's role.
    pub(super) async fn keys_of_role<'a>(
        &'a self,
        profile: &'a str,
        sections: &[&Sections; 2],
        mut asking: Vec<&'a str>,
    ) -> Result<FoundKeys, Failure> {
        let said = |name: &str| sections.iter().find_map(|it| it.get(profile)?.get(name)).map(String::as_str);
        let failed =
            |what: &str| unauthenticated(format!("The profile `{profile}` assumes a role {what}"), HINT);
        asking.push(profile);
        if asking.len() > MOST_ROLES {
            return Err(failed("behind too many others"));
        }
        if said("mfa_serial").is_some() {
            return Err(failed("that asks for a code (mfa_serial), which loci cannot ask for"));
        }
        let role = Role {
            arn: said("role_arn").unwrap_or_default(),
            session: said("role_session_name"),
            external_id: said("external_id"),
            seconds: said("duration_seconds"),
        };
        if let Some(file) = said("web_identity_token_file") {
            return self.play_by_token(&role, file).await.map_err(|what| failed(&what));
        }
        let source = match (said("source_profile"), said("credential_source")) {
            (Some(source), _) => {
                let source = source.to_owned();
                self.keys_of_source(&source, &asking).await?
            }
            (None, Some("Environment")) => self.keys_of_variables(),
            (None, Some("EcsContainer")) => self.keys_of_container().await?,
            (None, Some("Ec2InstanceMetadata")) => self.keys_of_instance().await,
            (None, Some(other)) => {
                return Err(failed(&format!("by a credential_source `{other}`, which is none")));
            }
            (None, None) => {
                return Err(failed(
                    "and names no source_profile, credential_source or web_identity_token_file",
                ));
            }
        };
        let source = source.ok_or_else(|| failed("whose source has no keys"))?;
        self.play_by_keys(&role, source.keys).await.map_err(|what| failed(&what))
    }

    async fn keys_of_source(&self, source: &str, asking: &[&str]) -> Result<Option<FoundKeys>, Failure> {
        self.keys_of_profile(source, asking.to_vec()).await
    }

    /// Returns the keys that the environment's web identity may have, as programs in a cluster do.
    pub(super) async fn keys_of_web_identity(&self) -> Result<Option<FoundKeys>, Failure> {
        let vars = &self.env.vars;
        let (Some(file), Some(arn)) =
            (vars.non_empty("AWS_WEB_IDENTITY_TOKEN_FILE"), vars.non_empty("AWS_ROLE_ARN"))
        else {
            return Ok(None);
        };
        let role =
            Role { arn, session: vars.non_empty("AWS_ROLE_SESSION_NAME"), external_id: None, seconds: None };
        let failed = |what: String| {
            unauthenticated(
                format!("The role of AWS_ROLE_ARN could not be assumed {what}"),
                "Check the token's file.",
            )
        };
        self.play_by_token(&role, file).await.map(Some).map_err(failed)
    }

    async fn play_by_keys(&self, role: &Role<'_>, keys: AwsKeys) -> Result<FoundKeys, String> {
        let signer =
            AwsSigner { keys, region: self.region.clone(), service: "sts", now: self.env.clock.now() };
        let mut fields = role.fields("AssumeRole");
        fields.extend(role.external_id.map(|it| ("ExternalId", it)));
        fields.extend(role.seconds.map(|it| ("DurationSeconds", it)));
        let (url, body) = (self.token_service(), form(&fields));
        let headers = signer.form_headers(&url, &body)?;
        self.lent_keys(url, headers, body).await
    }

    async fn play_by_token(&self, role: &Role<'_>, file: &str) -> Result<FoundKeys, String> {
        let path = self.env.cwd.join(loci_core::path::expand_home(&self.env.home, file));
        let token = loci_stdx::read_regular_to_string(&path).map_err(|error| {
            format!("by the token in `{}`, which cannot be read: {error}", path.display())
        })?;
        let mut fields = role.fields("AssumeRoleWithWebIdentity");
        fields.push(("WebIdentityToken", token.trim()));
        fields.extend(role.seconds.map(|it| ("DurationSeconds", it)));
        self.lent_keys(self.token_service(), Vec::new(), form(&fields)).await
    }

    fn token_service(&self) -> String {
        let ending = if self.region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let usual = format!("https://sts.{}.{ending}", self.region);
        let base = self.env.vars.non_empty("AWS_ENDPOINT_URL_STS").unwrap_or(&usual);
        format!("{}/", base.trim_end_matches('/'))
    }

    async fn lent_keys(
        &self,
        url: String,
        headers: Vec<(String, String)>,
        body: String,
    ) -> Result<FoundKeys, String> {
        let call = HttpCall { method: "POST", url, headers, body: Some((FORM, body)), limit: LIMIT };
        let (status, text) = http_call(&self.env, call).await.map_err(|error| match error {
            JsonPostError::TimedOut => "and got no answer in time".to_owned(),
            JsonPostError::Failed(what) => format!("and got no answer: {what}"),
        })?;
        let said = |name: &str| element(&text, name);
        // Of a refusal the code is enough; the words may name accounts.
        let refused = || format!("and was refused: {status} {}", said("Code").unwrap_or_default());
        let keys = AwsKeys {
            access_key: said("AccessKeyId").filter(|_| status == 200).ok_or_else(refused)?,
            secret_key: Secret::new(said("SecretAccessKey").ok_or_else(refused)?),
            session_token: said("SessionToken").map(Secret::new),
        };
        Ok(FoundKeys { keys, expires: said("Expiration").and_then(|it| it.parse().ok()) })
    }
}

/// A role, and how it is played.
struct Role<'a> {
    arn: &'a str,
    session: Option<&'a str>,
    external_id: Option<&'a str>,
    seconds: Option<&'a str>,
}

impl<'a> Role<'a> {
    fn fields(&self, action: &'static str) -> Vec<(&'static str, &'a str)> {
        vec![
            ("Action", action),
            ("Version", "2011-06-15"),
            ("RoleArn", self.arn),
            ("RoleSessionName", self.session.unwrap_or("loci")),
        ]
    }
}

/// Returns the text of an element of an answer. The service's answers have none of these names twice, and no markup inside.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once('<')?;
    let text =
        text.trim().replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    (!text.is_empty()).then_some(text)
}
