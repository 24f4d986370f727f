//! Which model stands behind an inference profile of Bedrock's (`GetInferenceProfile`): the ARN of one that an account has
//! made for itself does not tell, and window, price and thinking depend on it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::bedrock::in_path;
use crate::exchange::Shared;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Tells whether a name is the ARN of an inference profile.
pub fn is_inference_profile(name: &str) -> bool {
    name.starts_with("arn:") && name.contains(":bedrock:") && name.contains("inference-profile/")
}

/// Returns the path of a profile's description.
pub(crate) fn profile_path(arn: &str) -> String {
    format!("/inference-profiles/{}", in_path(arn))
}

/// Asks which model a profile stands for; `None` when nobody may say, or not in time.
pub(crate) async fn model_of_profile(shared: Arc<Shared>, arn: String) -> Option<String> {
    let asked = async {
        let auth = shared.provider.source.current().await.ok()?;
        let (url, headers) = shared.provider.profile(&arn, &auth).ok()??;
        let answer = shared.transport.get(url, headers).await.ok()?;
        if !answer.status().is_success() {
            tracing::info!(target: "loci::api", status = answer.status().as_u16(), "the inference profile is not told");
            return None;
        }
        model_in(&serde_json::from_slice(&answer.bytes().await.ok()?).ok()?)
    };
    tokio::time::timeout(PATIENCE, asked).await.ok().flatten()
}

/// A profile names the same model in each of its regions.
fn model_in(profile: &Value) -> Option<String> {
    let models = profile.get("models")?.as_array()?.iter();
    let arn = models.filter_map(|model| model["modelArn"].as_str()).next()?;
    arn.rsplit('/').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn profile_tells_the_model_behind_it() {
        let arn = "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-4-6-v1";
        let cases = [
            (
                json!({"models": [{"modelArn": arn}, {"modelArn": "x/y"}]}),
                Some("anthropic.claude-opus-4-6-v1"),
            ),
            (json!({"models": []}), None),
            (json!({"models": [{}]}), None),
            (json!([]), None),
        ];
        for (profile, expected) in cases {
            assert_eq!(model_in(&profile).as_deref(), expected, "{profile}");
        }
        let own = "arn:aws:bedrock:us-east-1:1:application-inference-profile/ab";
        assert!(is_inference_profile(own) && !is_inference_profile("anthropic.claude-opus-4-6-v1"));
        assert!(!is_inference_profile("arn:aws:bedrock:us-east-1::foundation-model/x"));
        let path = "/inference-profiles/arn:aws:bedrock:us-east-1:1:application-inference-profile%2Fab";
        assert_eq!(profile_path(own), path);
    }
}
