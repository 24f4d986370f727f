//! Which cloud serves the models of the first provider, by the variables that choose it.
//!
//! One counts. Bedrock and Mantle may be chosen together: they are two doors of one house, and a model's id says which.

use loci_stdx::Vars;

/// A cloud that serves Anthropic's models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloudKind {
    /// Amazon Bedrock.
    Bedrock,
    /// Google Vertex AI.
    Vertex,
    /// Microsoft Foundry.
    Foundry,
    /// Claude Platform on AWS: Anthropic's own API, reached by way of an Amazon account.
    AnthropicAws,
    /// Bedrock's door for the Messages API.
    Mantle,
}

/// The variables that choose, in the order in which they count.
const SWITCHES: [(&str, CloudKind); 5] = [
    ("CLAUDE_CODE_USE_BEDROCK", CloudKind::Bedrock),
    ("CLAUDE_CODE_USE_VERTEX", CloudKind::Vertex),
    ("CLAUDE_CODE_USE_FOUNDRY", CloudKind::Foundry),
    ("CLAUDE_CODE_USE_ANTHROPIC_AWS", CloudKind::AnthropicAws),
    (MANTLE, CloudKind::Mantle),
];
const MANTLE: &str = "CLAUDE_CODE_USE_MANTLE";

impl CloudKind {
    /// Finds the cloud that variables choose.
    pub fn from_vars(vars: &Vars) -> Option<Self> {
        SWITCHES.iter().find(|(name, _)| vars.is_truthy(name)).map(|(_, cloud)| *cloud)
    }

    /// Tells whether variables choose Mantle, perhaps beside Bedrock.
    pub fn has_mantle(vars: &Vars) -> bool {
        vars.is_truthy(MANTLE)
    }

    /// Names it as `apiProvider` does.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bedrock => "bedrock",
            Self::Vertex => "vertex",
            Self::Foundry => "foundry",
            Self::AnthropicAws => "anthropicAws",
            Self::Mantle => "mantle",
        }
    }

    /// Returns the variables that hold another address than the usual.
    pub fn address_variables(self) -> &'static [&'static str] {
        match self {
            Self::Bedrock => &["ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL"],
            Self::Mantle => &["ANTHROPIC_BEDROCK_MANTLE_BASE_URL"],
            Self::AnthropicAws => &["ANTHROPIC_AWS_BASE_URL"],
            Self::Vertex => &["ANTHROPIC_VERTEX_BASE_URL"],
            Self::Foundry => &["ANTHROPIC_FOUNDRY_BASE_URL"],
        }
    }

    /// Tells whether models are called otherwise there than at Anthropic.
    pub fn has_own_ids(self) -> bool {
        match self {
            Self::Bedrock | Self::Vertex | Self::Foundry | Self::Mantle => true,
            Self::AnthropicAws => false,
        }
    }

    /// Returns the model that an alias means there: each cloud has them at its own time.
    pub(crate) fn model_of_alias(self, alias: &str) -> Option<&'static str> {
        Some(match (alias, self) {
            ("default", Self::Foundry) => "claude-sonnet-4-5",
            ("opus" | "best", Self::Foundry) => "claude-opus-4-6",
            ("opus" | "default" | "best", _) => "claude-opus-5",
            ("sonnet", Self::AnthropicAws) => "claude-sonnet-4-6",
            ("sonnet", Self::Mantle) => "claude-sonnet-5",
            ("sonnet", _) => "claude-sonnet-4-5",
            ("haiku", _) => "claude-haiku-4-5",
            ("fable", _) => "claude-fable-5",
            _ => return None,
        })
    }
}

/// Says which switches are turned on in vain, because another one counts.
pub fn idle_cloud_switches(vars: &Vars) -> Vec<String> {
    let mut on = SWITCHES.iter().filter(|(name, _)| vars.is_truthy(name));
    let Some((first, cloud)) = on.next() else { return Vec::new() };
    let is_idle = |other: CloudKind| !(*cloud == CloudKind::Bedrock && other == CloudKind::Mantle);
    on.filter(|(_, other)| is_idle(*other))
        .map(|(name, _)| format!("{name} has no effect: {first} is set, too, and counts"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_switch_counts_and_others_are_told() {
        for (on, expected, idle) in [
            (&[][..], None, &[][..]),
            (&["CLAUDE_CODE_USE_MANTLE"], Some("mantle"), &[]),
            (&["CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_BEDROCK"], Some("bedrock"), &[]),
            (
                &["CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_FOUNDRY"],
                Some("foundry"),
                &["CLAUDE_CODE_USE_ANTHROPIC_AWS"],
            ),
            (
                &["CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_MANTLE"],
                Some("vertex"),
                &["CLAUDE_CODE_USE_MANTLE"],
            ),
        ] {
            let vars: Vars = on.iter().map(|name| (*name, "1")).collect();
            assert_eq!(CloudKind::from_vars(&vars).map(CloudKind::name), expected, "{on:?}");
            let told = idle_cloud_switches(&vars);
            let told: Vec<&str> = told.iter().filter_map(|text| text.split(' ').next()).collect();
            assert_eq!(told, idle, "{on:?}");
        }
        let off: Vars = [("CLAUDE_CODE_USE_BEDROCK", "0")].into_iter().collect();
        assert_eq!(CloudKind::from_vars(&off), None);
    }
}
