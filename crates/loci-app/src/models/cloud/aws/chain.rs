//! Where Amazon's keys may be, one place after the other.

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use loci_core::stream::Failure;
use loci_http::{AwsKeys, HttpCall, JsonPostError, Secret, http_call, sha1_hex};
use loci_llm::Announcer;
use loci_stdx::Env;
use serde_json::Value;

use super::super::ini::Sections;
use super::super::unauthenticated;
use super::{AwsService, FoundKeys, LIMIT, config_file, credentials_file, profile_name, read_sections};
use crate::credentials::helper::output_of;

/// How long the addresses of containers and instances may take.
const NEAR: Duration = Duration::from_secs(1);
const SSO_HINT: &str = "Log in with `aws sso login`, or set `awsAuthRefresh` to that command.";

/// What keys are looked for with.
pub(in crate::models::cloud) struct AwsChain {
    pub(in crate::models::cloud) env: Env,
    pub(in crate::models::cloud) region: String,
    /// What requests are signed for.
    pub(in crate::models::cloud) service: AwsService,
    /// The command of `awsCredentialExport`.
    pub(in crate::models::cloud) export: Option<String>,
    /// The command of `awsAuthRefresh`.
    pub(in crate::models::cloud) refresh: Option<String>,
    /// By whom people hear what that command says.
    pub(in crate::models::cloud) announcer: Announcer,
}

impl AwsChain {
    /// Finds keys.
    pub(super) async fn find(&self) -> Result<FoundKeys, Failure> {
        if let Some(command) = &self.export {
            return self.keys_of_command("awsCredentialExport", command).await;
        }
        if let Some(found) = self.keys_of_variables() {
            return Ok(found);
        }
        let profile = profile_name(&self.env);
        if let Some(found) = self.keys_of_profile(&profile, Vec::new()).await? {
            return Ok(found);
        }
        if let Some(found) = self.keys_of_web_identity().await? {
            return Ok(found);
        }
        if let Some(found) = self.keys_of_container().await? {
            return Ok(found);
        }
        if let Some(found) = self.keys_of_instance().await {
            return Ok(found);
        }
        Err(unauthenticated(
            format!(
                "No Amazon credentials were found: no variables, nothing in the profile `{profile}`, no instance"
            ),
            "Set AWS_PROFILE, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_BEARER_TOKEN_BEDROCK, or `awsCredentialExport`.",
        ))
    }

    pub(super) fn keys_of_variables(&self) -> Option<FoundKeys> {
        let said = |name: &str| self.env.vars.non_empty(name).map(|it| it.trim().to_owned());
        let keys = AwsKeys {
            access_key: said("AWS_ACCESS_KEY_ID")?,
            secret_key: Secret::new(said("AWS_SECRET_ACCESS_KEY")?),
            session_token: said("AWS_SESSION_TOKEN").map(Secret::new),
        };
        Some(FoundKeys { keys, expires: None })
    }

    /// Returns the keys of a profile; `asking` are the profiles whose roles they are for, this one perhaps among them.
    pub(super) fn keys_of_profile<'a>(
        &'a self,
        profile: &'a str,
        asking: Vec<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Result<Option<FoundKeys>, Failure>> + Send + 'a>> {
        Box::pin(async move {
            let (keys, config) =
                (read_sections(&credentials_file(&self.env)), read_sections(&config_file(&self.env)));
            let said = |name: &str| {
                [&config, &keys].into_iter().find_map(|it| it.get(profile)?.get(name)).map(String::as_str)
            };
            // A profile may be the source of its own role: then it is its keys that count.
            if said("role_arn").is_some() && !asking.contains(&profile) {
                let sections = [&config, &keys];
                return self.keys_of_role(profile, &sections, asking).await.map(Some);
            }
            let nothing = BTreeMap::new();
            for sections in [&keys, &config] {
                if let Some(found) = static_keys(sections.get(profile).unwrap_or(&nothing)) {
                    return Ok(Some(found));
                }
            }
            if let Some(command) = said("credential_process") {
                return self.keys_of_command("credential_process", command).await.map(Some);
            }
            // A login of `aws login` is renewed every quarter of an hour, which its own program does best.
            if said("login_session").is_some() {
                let name = profile.replace('\'', r"'\''");
                let command = format!("aws configure export-credentials --profile '{name}' --format process");
                return self.keys_of_command("aws configure export-credentials", &command).await.map(Some);
            }
            if said("sso_start_url").is_some() || said("sso_session").is_some() {
                return self.keys_of_sso(profile, &config).await.map(Some);
            }
            Ok(None)
        })
    }

    /// Runs a command that prints keys as JSON, nested or flat.
    async fn keys_of_command(&self, name: &str, command: &str) -> Result<FoundKeys, Failure> {
        let failed = |what: String| {
            unauthenticated(format!("`{name}` gave no keys: {what}"), "Run its command by hand.")
        };
        let text = output_of(command, &self.env, LIMIT).await.map_err(failed)?;
        let value: Value =
            serde_json::from_str(&text).map_err(|_| failed("it did not print JSON".to_owned()))?;
        let keys = value.get("Credentials").unwrap_or(&value);
        keys_from_json(keys, ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"])
            .ok_or_else(|| failed("what it printed has no AccessKeyId and SecretAccessKey".to_owned()))
    }

    /// Uses a login that `aws sso login` keeps.
    async fn keys_of_sso(&self, profile: &str, config: &Sections) -> Result<FoundKeys, Failure> {
        let nothing = BTreeMap::new();
        let own = config.get(profile).unwrap_or(&nothing);
        let session = own.get("sso_session").map(|name| name.as_str());
        let shared = session.and_then(|name| config.get(&format!("sso-session {name}"))).unwrap_or(&nothing);
        let said = |name: &str| own.get(name).or_else(|| shared.get(name)).map(String::as_str);
        let failed = |what: &str| unauthenticated(format!("The profile `{profile}` {what}"), SSO_HINT);
        let start = said("sso_start_url").ok_or_else(|| failed("names no sso_start_url"))?;
        let (Some(account), Some(role)) = (said("sso_account_id"), said("sso_role_name")) else {
            return Err(failed("names no sso_account_id and sso_role_name"));
        };
        let region = said("sso_region").unwrap_or(&self.region);
        let file = format!("{}.json", sha1_hex(session.unwrap_or(start)));
        let login = read_json(&self.env.home.join(".aws/sso/cache").join(file));
        let token = login.as_ref().and_then(|login| login["accessToken"].as_str());
        let end =
            login.as_ref().and_then(|login| login["expiresAt"].as_str()?.parse::<jiff::Timestamp>().ok());
        let token = token.filter(|_| end.is_none_or(|end| end > self.env.clock.now()));
        let token = token.ok_or_else(|| failed("has no login of SSO that is still good"))?;
        let usual = format!("https://portal.sso.{region}.amazonaws.com");
        let base = self.env.vars.non_empty("AWS_ENDPOINT_URL_SSO").unwrap_or(&usual);
        let url = format!(
            "{}/federation/credentials?role_name={role}&account_id={account}",
            base.trim_end_matches('/')
        );
        let headers = vec![("x-amz-sso_bearer_token".to_owned(), token.to_owned())];
        let value = self.get_json(&url, headers, Duration::from_secs(10)).await;
        let value = value.map_err(|what| failed(&format!("got no keys from SSO: {what}")))?;
        let names = ["accessKeyId", "secretAccessKey", "sessionToken", "expiration"];
        keys_from_json(&value["roleCredentials"], names).ok_or_else(|| failed("got no keys from SSO"))
    }

    pub(super) async fn keys_of_container(&self) -> Result<Option<FoundKeys>, Failure> {
        let vars = &self.env.vars;
        let url = match vars.non_empty("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            Some(path) => format!("http://169.254.170.2{path}"),
            None => match vars.non_empty("AWS_CONTAINER_CREDENTIALS_FULL_URI") {
                Some(url) => url.to_owned(),
                None => return Ok(None),
            },
        };
        let file = vars.non_empty("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
        let token = match file {
            Some(file) => loci_stdx::read_regular_to_string(file).ok(),
            None => vars.non_empty("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(str::to_owned),
        };
        let headers = token.map(|token| ("authorization".to_owned(), token.trim().to_owned()));
        let failed = |what: String| {
            unauthenticated(format!("The container gave no Amazon credentials: {what}"), "Check its role.")
        };
        let value = self.get_json(&url, headers.into_iter().collect(), NEAR).await.map_err(failed)?;
        let names = ["AccessKeyId", "SecretAccessKey", "Token", "Expiration"];
        keys_from_json(&value, names).map(Some).ok_or_else(|| failed("the answer has none".to_owned()))
    }

    /// Asks the instance, with a token first (IMDSv2); where there is none, nothing is said.
    pub(super) async fn keys_of_instance(&self) -> Option<FoundKeys> {
        if self.env.vars.is_truthy("AWS_EC2_METADATA_DISABLED") {
            return None;
        }
        let base =
            self.env.vars.non_empty("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or("http://169.254.169.254");
        let base = base.trim_end_matches('/');
        let call = HttpCall {
            method: "PUT",
            url: format!("{base}/latest/api/token"),
            headers: vec![("x-aws-ec2-metadata-token-ttl-seconds".to_owned(), "21600".to_owned())],
            body: None,
            limit: NEAR,
        };
        let (200, token) = http_call(&self.env, call).await.ok()? else { return None };
        let headers = || vec![("x-aws-ec2-metadata-token".to_owned(), token.trim().to_owned())];
        let roles = format!("{base}/latest/meta-data/iam/security-credentials/");
        let call =
            HttpCall { method: "GET", url: roles.clone(), headers: headers(), body: None, limit: NEAR };
        let (200, role) = http_call(&self.env, call).await.ok()? else { return None };
        let role = role.lines().next()?.trim().to_owned();
        let value = self.get_json(&format!("{roles}{role}"), headers(), NEAR).await.ok()?;
        keys_from_json(&value, ["AccessKeyId", "SecretAccessKey", "Token", "Expiration"])
    }

    async fn get_json(
        &self,
        url: &str,
        headers: Vec<(String, String)>,
        limit: Duration,
    ) -> Result<Value, String> {
        let call = HttpCall { method: "GET", url: url.to_owned(), headers, body: None, limit };
        match http_call(&self.env, call).await {
            Ok((200, body)) => serde_json::from_str(&body).map_err(|_| "the answer is not JSON".to_owned()),
            Ok((status, _)) => Err(format!("the answer is {status}")),
            Err(JsonPostError::TimedOut) => Err("no answer in time".to_owned()),
            Err(JsonPostError::Failed(what)) => Err(what),
        }
    }
}

fn static_keys(section: &BTreeMap<String, String>) -> Option<FoundKeys> {
    let keys = AwsKeys {
        access_key: section.get("aws_access_key_id")?.clone(),
        secret_key: Secret::new(section.get("aws_secret_access_key")?.as_str()),
        session_token: section.get("aws_session_token").map(|token| Secret::new(token.as_str())),
    };
    Some(FoundKeys { keys, expires: None })
}

fn keys_from_json(value: &Value, [access, secret, token, end]: [&str; 4]) -> Option<FoundKeys> {
    let said = |name: &str| value[name].as_str().filter(|text| !text.is_empty());
    let keys = AwsKeys {
        access_key: said(access)?.to_owned(),
        secret_key: Secret::new(said(secret)?),
        session_token: said(token).map(Secret::new),
    };
    let expires = match &value[end] {
        Value::String(text) => text.parse().ok(),
        Value::Number(millis) => millis.as_i64().and_then(|it| jiff::Timestamp::from_millisecond(it).ok()),
        _ => None,
    };
    Some(FoundKeys { keys, expires })
}

fn read_json(path: &Path) -> Option<Value> {
    serde_json::from_str(&loci_stdx::read_regular_to_string(path).ok()?).ok()
}
