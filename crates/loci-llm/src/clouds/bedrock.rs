//! Paths and ids of Bedrock.

use super::BedrockConfig;
use crate::request::Request;

/// Our ids whose name there has more to it.
const VERSIONS: [(&str, &str); 6] = [
    ("claude-opus-4-6", "-v1"),
    ("claude-opus-4-5", "-20251101-v1:0"),
    ("claude-opus-4-1", "-20250805-v1:0"),
    ("claude-sonnet-4-5", "-20250929-v1:0"),
    ("claude-haiku-4-5", "-20251001-v1:0"),
    ("claude-sonnet-4", "-20250514-v1:0"),
];

/// Returns the path of a request.
pub(crate) fn bedrock_path(config: &BedrockConfig, request: &Request) -> String {
    let id = model_id(config, request.model_and_window().0);
    let verb = if request.is_streaming { "invoke-with-response-stream" } else { "invoke" };
    format!("/model/{}/{verb}", in_path(&id))
}

/// A slash in an id is part of it; a colon may stay.
pub(super) fn in_path(id: &str) -> String {
    id.replace('%', "%25").replace('/', "%2F").replace(' ', "%20")
}

/// Returns the address of a region.
pub(crate) fn bedrock_base(region: &str) -> String {
    format!("https://bedrock-runtime.{region}.amazonaws.com")
}

impl BedrockConfig {
    /// Returns the region in which a model is asked.
    pub(crate) fn region_of(&self, id: &str) -> &str {
        let small = self.small.as_ref().filter(|small| small.models.iter().any(|model| model == id));
        small.map_or(&self.region, |small| &small.region)
    }
}

/// Returns what Bedrock calls a model.
pub(super) fn model_id(config: &BedrockConfig, id: &str) -> String {
    if let Some(own) = config.overrides.get(id) {
        return own.clone();
    }
    if !id.starts_with("claude-") {
        return id.to_owned();
    }
    let is_dated = id.rsplit('-').next().is_some_and(|end| end.len() == 8 && end.parse::<u32>().is_ok());
    let version = VERSIONS.iter().find(|(known, _)| *known == id).map_or("", |(_, version)| version);
    let version = if is_dated { "-v1:0" } else { version };
    format!("{}anthropic.{id}{version}", geography(config, config.region_of(id)))
}

/// Tells whether a text names a geography that may be preferred.
pub fn is_geography(text: &str) -> bool {
    ["us", "eu", "apac", "jp", "au", "global"].contains(&text.trim().trim_end_matches('.'))
}

/// Government regions have no other; elsewhere a preference counts.
fn geography(config: &BedrockConfig, region: &str) -> String {
    if region.starts_with("us-gov-") {
        return "us-gov.".to_owned();
    }
    if let Some(prefix) = &config.prefix {
        return format!("{}.", prefix.trim_end_matches('.'));
    }
    let known = [("us-", "us."), ("eu-", "eu."), ("ap-", "apac.")];
    known
        .iter()
        .find(|(start, _)| region.starts_with(start))
        .map_or("global.", |(_, prefix)| prefix)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clouds::SmallModelRegion;

    #[test]
    fn our_ids_become_those_of_bedrock() {
        let check = |region: &str, prefix: Option<&str>, id: &str, expected: &str| {
            let overrides = [("claude-own".to_owned(), "arn:aws:bedrock:x:1:y/z".to_owned())].into();
            let config = BedrockConfig {
                region: region.to_owned(),
                prefix: prefix.map(str::to_owned),
                overrides,
                service_tier: None,
                small: Some(SmallModelRegion {
                    models: vec!["claude-haiku-4-5".to_owned()],
                    region: "ap-south-1".to_owned(),
                }),
                has_own_address: false,
                control_plane: None,
            };
            assert_eq!(model_id(&config, id), expected);
        };
        check("us-west-2", None, "claude-opus-5", "us.anthropic.claude-opus-5");
        check("eu-west-1", None, "claude-haiku-4-5", "apac.anthropic.claude-haiku-4-5-20251001-v1:0");
        check("eu-west-1", None, "claude-sonnet-4-6", "eu.anthropic.claude-sonnet-4-6");
        check("ap-south-1", None, "claude-opus-4-6", "apac.anthropic.claude-opus-4-6-v1");
        check(
            "sa-east-1",
            None,
            "claude-sonnet-4-5-20250929",
            "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
        );
        check("us-east-1", Some("global"), "claude-fable-5", "global.anthropic.claude-fable-5");
        check("us-gov-west-1", Some("global"), "claude-opus-5", "us-gov.anthropic.claude-opus-5");
        check("us-east-1", None, "eu.anthropic.claude-opus-5", "eu.anthropic.claude-opus-5");
        check("us-east-1", None, "claude-own", "arn:aws:bedrock:x:1:y/z");
        check(
            "us-east-1",
            None,
            "arn:aws:bedrock:us-east-1:1:application-inference-profile/ab",
            "arn:aws:bedrock:us-east-1:1:application-inference-profile/ab",
        );
    }

    #[test]
    fn ids_are_encoded_once_in_the_path() {
        assert_eq!(
            in_path("us.anthropic.claude-haiku-4-5-20251001-v1:0"),
            "us.anthropic.claude-haiku-4-5-20251001-v1:0"
        );
        assert_eq!(in_path("arn:aws:x:1:profile/ab"), "arn:aws:x:1:profile%2Fab");
    }
}
