//! Hosts of the Messages API as it is, at other addresses: Foundry, Claude Platform on AWS, and Bedrock's Mantle.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::SmallModelRegion;

/// What stands before the ids of Bedrock's own models, and of Mantle's.
const BEDROCK_PREFIX: &str = "anthropic.";

/// A host of the Messages API that is not Anthropic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// The variable that names its address, for hints.
    pub address_variable: &'static str,
    /// What to do about credentials that it refuses.
    pub credential_hint: &'static str,
    /// The workspace that every request names.
    pub workspace_id: Option<String>,
    /// What it calls models.
    pub ids: HostIds,
    /// Where the small model is, if it is elsewhere, and the address there.
    pub small: Option<(SmallModelRegion, String)>,
    /// Whether it edits conversations, as Anthropic does.
    pub edits_context: bool,
}

/// What a host calls models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostIds {
    /// As Anthropic does, or as the user says.
    Same,
    /// With `anthropic.` before our ids.
    Mantle,
}

impl HostIds {
    /// Returns what the host calls a model; settings (`modelOverrides`) come first.
    pub(crate) fn id<'a>(self, overrides: &'a BTreeMap<String, String>, ours: &'a str) -> Cow<'a, str> {
        match (overrides.get(ours), self) {
            (Some(own), _) => own.into(),
            (None, Self::Mantle) if ours.starts_with("claude-") => format!("{BEDROCK_PREFIX}{ours}").into(),
            (None, Self::Same | Self::Mantle) => ours.into(),
        }
    }
}

/// Returns the address of Mantle in a region.
pub fn mantle_base(region: &str) -> String {
    format!("https://bedrock-mantle.{region}.api.aws/anthropic")
}

/// Returns the address of Claude Platform on AWS in a region.
pub fn anthropic_aws_base(region: &str) -> String {
    format!("https://aws-external-anthropic.{region}.api.aws")
}

/// Tells whether an id is one of Mantle's: `anthropic.` without a geography before it and without a version behind it.
pub fn is_mantle_id(model: &str) -> bool {
    let model = model.trim();
    let id = model.strip_suffix("[1m]").map_or(model, str::trim_end);
    let Some(name) = id.strip_prefix(BEDROCK_PREFIX) else { return false };
    let last = name.rsplit('-').next().unwrap_or_default();
    let is_version =
        last.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    !name.contains(':') && !is_version
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mantle_has_ids_without_geography_and_version() {
        for (id, expected) in [
            ("anthropic.claude-haiku-4-5", true),
            ("anthropic.claude-sonnet-5[1m]", true),
            ("anthropic.claude-haiku-4-5-20251001-v1:0", false),
            ("anthropic.claude-opus-4-6-v1", false),
            ("us.anthropic.claude-opus-5", false),
            ("claude-opus-5", false),
        ] {
            assert_eq!(is_mantle_id(id), expected, "{id}");
        }
    }

    #[test]
    fn ids_are_those_of_settings_then_of_the_host() {
        let overrides = [("claude-opus-5".to_owned(), "my-opus".to_owned())].into();
        for (ids, ours, expected) in [
            (HostIds::Same, "claude-opus-5", "my-opus"),
            (HostIds::Same, "claude-sonnet-5", "claude-sonnet-5"),
            (HostIds::Mantle, "claude-opus-5", "my-opus"),
            (HostIds::Mantle, "claude-sonnet-5", "anthropic.claude-sonnet-5"),
            (HostIds::Mantle, "anthropic.claude-sonnet-5", "anthropic.claude-sonnet-5"),
        ] {
            assert_eq!(ids.id(&overrides, ours), expected, "{ids:?} {ours}");
        }
    }
}
