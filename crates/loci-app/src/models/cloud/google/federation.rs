//! Tokens of Google for those who are known elsewhere: workload identity federation (`external_account`), and accounts that
//! others act for (`impersonated_service_account`).
//!
//! A federation trades a token of its own, which a file or an address gives, for one of Google's; where its file names an
//! account to act for, that token is traded once more. Commands, and the keys of Amazon's machines, are no sources here.

use std::time::Duration;

use loci_http::{FORM, HttpCall, JsonPostError, Secret, http_call};
use serde_json::{Value, json};

use super::{GoogleSource, LIMIT, Token, form};

const EXCHANGE_URL: &str = "https://sts.googleapis.com/v1/token";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// How long a token is asked to last that acts for an account.
const LIFETIME_SECONDS: u64 = 3600;

impl GoogleSource {
    /// Gets a token for whoever a federation vouches for.
    pub(super) async fn federated_token(&self, file: &Value) -> Result<Token, String> {
        let subject = self.subject_token(&file["credential_source"]).await?;
        let said = |name: &str| file[name].as_str().unwrap_or_default();
        let options = file["workforce_pool_user_project"].as_str();
        let options = options.map(|project| json!({"userProject": project}).to_string());
        let mut fields = vec![
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("audience", said("audience")),
            ("scope", SCOPE),
            ("subject_token_type", said("subject_token_type")),
            ("subject_token", subject.expose()),
        ];
        fields.extend(options.as_deref().map(|options| ("options", options)));
        let url = if said("token_url").is_empty() { EXCHANGE_URL } else { said("token_url") };
        let call = HttpCall {
            method: "POST",
            url: url.to_owned(),
            headers: Vec::new(),
            body: Some((FORM, form(&fields))),
            limit: LIMIT,
        };
        let token = self.token(call, None).await?;
        match file["service_account_impersonation_url"].as_str() {
            Some(_) => self.impersonated_token(file, &token).await,
            None => Ok(token),
        }
    }

    /// Trades a token for one of the account that a file names.
    pub(super) async fn impersonated_token(&self, file: &Value, own: &Token) -> Result<Token, String> {
        let url = file["service_account_impersonation_url"].as_str();
        let url = url.ok_or("the file has no `service_account_impersonation_url`")?;
        let lifetime = file["service_account_impersonation"]["token_lifetime_seconds"].as_u64();
        let mut wish = json!({
            "scope": [SCOPE],
            "lifetime": format!("{}s", lifetime.unwrap_or(LIFETIME_SECONDS)),
        });
        if file["delegates"].is_array() {
            wish["delegates"] = file["delegates"].clone();
        }
        let call = HttpCall {
            method: "POST",
            url: url.to_owned(),
            headers: vec![("authorization".to_owned(), format!("Bearer {}", own.secret.expose()))],
            body: Some(("application/json", wish.to_string())),
            limit: LIMIT,
        };
        let (status, body) = http_call(&self.env, call).await.map_err(words)?;
        let value: Value = serde_json::from_str(&body).unwrap_or_default();
        match value["accessToken"].as_str() {
            Some(token) if status == 200 => {
                let now = self.env.clock.now();
                let end = value["expireTime"].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
                let seconds = end.map_or(LIFETIME_SECONDS as i64, |end| end.as_second() - now.as_second());
                let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
                let until = self.env.clock.monotonic() + lasts;
                Ok(Token { secret: Secret::new(token), until, quota_project: None })
            }
            _ => Err(format!(
                "acting for the account failed: the answer is {status} {}",
                value["error"]["message"].as_str().unwrap_or_default()
            )),
        }
    }

    /// Returns the token by which the federation knows who asks.
    async fn subject_token(&self, source: &Value) -> Result<Secret, String> {
        let text = match (source["file"].as_str(), source["url"].as_str()) {
            (Some(file), _) => loci_stdx::read_regular_to_string(self.env.cwd.join(file))
                .map_err(|error| format!("its token in `{file}` cannot be read: {error}"))?,
            (None, Some(url)) => self.asked_token(url, &source["headers"]).await?,
            (None, None) => {
                return Err("a `credential_source` must name a `file` or a `url`; commands and Amazon's \
                            machines are not supported"
                    .to_owned());
            }
        };
        let token = match (source["format"]["type"].as_str(), &source["format"]["subject_token_field_name"]) {
            (Some("json"), Value::String(field)) => {
                let value: Value = serde_json::from_str(&text).unwrap_or_default();
                value[field.as_str()].as_str().unwrap_or_default().to_owned()
            }
            _ => text.trim().to_owned(),
        };
        match token.is_empty() {
            true => Err("its `credential_source` gave no token".to_owned()),
            false => Ok(Secret::new(token)),
        }
    }

    async fn asked_token(&self, url: &str, headers: &Value) -> Result<String, String> {
        let headers = headers.as_object().into_iter().flatten();
        let headers = headers.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let call = HttpCall {
            method: "GET",
            url: url.to_owned(),
            headers: headers.collect(),
            body: None,
            limit: LIMIT,
        };
        match http_call(&self.env, call).await.map_err(words)? {
            (200, body) => Ok(body),
            (status, _) => Err(format!("its `credential_source` answered with {status}")),
        }
    }
}

/// Says why a call came to nothing.
pub(super) fn words(error: JsonPostError) -> String {
    match error {
        JsonPostError::TimedOut => "no answer in time".to_owned(),
        JsonPostError::Failed(what) => what,
    }
}
