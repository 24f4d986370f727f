//! What `/status` says of the provider: who serves the models, where, and whether somebody else proves who we are.

use loci_engine::CloudKind;
use loci_stdx::{Env, Vars};

use super::aws::region_and_source;
use super::google::project;

/// Returns the rows: what is told, and its value. No credential is among them.
pub(crate) fn provider_status(env: &Env) -> Vec<(String, String)> {
    let vars = &env.vars;
    let row = |name: &str, value: String| (name.to_owned(), value);
    let Some(cloud) = CloudKind::from_vars(vars) else {
        return address(vars, "ANTHROPIC_BASE_URL").map(|url| row("Base URL", url)).into_iter().collect();
    };
    let mut rows = vec![row("API provider", title(cloud, vars))];
    let mut address_of = |variables: &[&str]| {
        rows.extend(variables.iter().filter_map(|name| Some(row("Base URL", address(vars, name)?))));
    };
    match cloud {
        CloudKind::Bedrock if CloudKind::has_mantle(vars) => {
            address_of(&["ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL"]);
        }
        CloudKind::Bedrock => address_of(&["ANTHROPIC_BEDROCK_BASE_URL"]),
        CloudKind::Mantle => address_of(&["ANTHROPIC_BEDROCK_MANTLE_BASE_URL"]),
        CloudKind::AnthropicAws => address_of(&["ANTHROPIC_AWS_BASE_URL"]),
        CloudKind::Vertex => address_of(&["ANTHROPIC_VERTEX_BASE_URL"]),
        CloudKind::Foundry => address_of(&["ANTHROPIC_FOUNDRY_BASE_URL"]),
    }
    let said = |name: &str| vars.non_empty(name).map(|text| text.trim().to_owned());
    match cloud {
        CloudKind::Bedrock | CloudKind::Mantle | CloudKind::AnthropicAws => {
            let (region, source) = region_and_source(env);
            let source = source.map(|source| format!(" ({source})")).unwrap_or_default();
            rows.push(row("AWS region", format!("{region}{source}")));
            if cloud == CloudKind::AnthropicAws {
                rows.extend(said("ANTHROPIC_AWS_WORKSPACE_ID").map(|id| row("Workspace ID", id)));
            }
        }
        CloudKind::Vertex => {
            rows.extend(project(env).ok().map(|project| row("GCP project", project)));
            let region = said("CLOUD_ML_REGION").filter(|region| loci_llm::is_location(region));
            rows.push(row("Default region", region.unwrap_or_else(|| "us-east5 (the usual one)".to_owned())));
        }
        CloudKind::Foundry => {
            rows.extend(said("ANTHROPIC_FOUNDRY_RESOURCE").map(|name| row("Resource", name)));
        }
    }
    let skips = SKIPS.iter().any(|(of, name)| *of == cloud && vars.is_truthy(name));
    rows.extend(skips.then(|| row("Authentication", "skipped".to_owned())));
    rows
}

/// The variables by which somebody else proves who we are.
const SKIPS: [(CloudKind, &str); 5] = [
    (CloudKind::Bedrock, "CLAUDE_CODE_SKIP_BEDROCK_AUTH"),
    (CloudKind::Mantle, "CLAUDE_CODE_SKIP_MANTLE_AUTH"),
    (CloudKind::AnthropicAws, "CLAUDE_CODE_SKIP_ANTHROPIC_AWS_AUTH"),
    (CloudKind::Vertex, "CLAUDE_CODE_SKIP_VERTEX_AUTH"),
    (CloudKind::Foundry, "CLAUDE_CODE_SKIP_FOUNDRY_AUTH"),
];

fn title(cloud: CloudKind, vars: &Vars) -> String {
    match cloud {
        CloudKind::Bedrock if CloudKind::has_mantle(vars) => "Amazon Bedrock + Amazon Bedrock (Mantle)",
        CloudKind::Bedrock => "Amazon Bedrock",
        CloudKind::Mantle => "Amazon Bedrock (Mantle)",
        CloudKind::AnthropicAws => "Claude Platform on AWS",
        CloudKind::Vertex => "Google Vertex AI",
        CloudKind::Foundry => "Microsoft Foundry",
    }
    .to_owned()
}

/// Returns the address that a variable names, without a user and a password in it.
fn address(vars: &Vars, variable: &str) -> Option<String> {
    let url = vars.non_empty(variable)?.trim();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = host.rsplit('@').next().unwrap_or_default();
    Some(if scheme.is_empty() { format!("{host}{path}") } else { format!("{scheme}://{host}{path}") })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(vars: &[(&str, &str)], expected: Expect) {
        let home = loci_testkit::TestHome::new();
        let mut env = Env::for_test(home.home(), home.project());
        env.vars = vars.iter().copied().collect();
        let rows = provider_status(&env);
        let rows: Vec<String> = rows.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        expected.assert_eq(&rows.join("\n"));
    }

    #[test]
    fn provider_and_place_are_told_without_secrets() {
        check(&[], expect![[""]]);
        check(
            &[("ANTHROPIC_BASE_URL", "https://me:hush@gateway:8443/a@b")],
            expect!["Base URL: https://gateway:8443/a@b"],
        );
        check(
            &[
                ("CLAUDE_CODE_USE_BEDROCK", "1"),
                ("AWS_REGION", "eu-west-1"),
                ("AWS_BEARER_TOKEN_BEDROCK", "hush"),
            ],
            expect![[r#"
                API provider: Amazon Bedrock
                AWS region: eu-west-1"#]],
        );
        check(
            &[
                ("CLAUDE_CODE_USE_BEDROCK", "1"),
                ("CLAUDE_CODE_USE_MANTLE", "1"),
                ("CLAUDE_CODE_SKIP_BEDROCK_AUTH", "1"),
            ],
            expect![[r#"
                API provider: Amazon Bedrock + Amazon Bedrock (Mantle)
                AWS region: us-east-1 (the usual one)
                Authentication: skipped"#]],
        );
        check(
            &[
                ("CLAUDE_CODE_USE_ANTHROPIC_AWS", "1"),
                ("ANTHROPIC_AWS_WORKSPACE_ID", "wrkspc_1"),
                ("ANTHROPIC_AWS_BASE_URL", "https://proxy"),
                ("AWS_REGION", "us-west-2"),
                ("ANTHROPIC_AWS_API_KEY", "hush"),
            ],
            expect![[r#"
                API provider: Claude Platform on AWS
                Base URL: https://proxy
                AWS region: us-west-2
                Workspace ID: wrkspc_1"#]],
        );
        check(
            &[
                ("CLAUDE_CODE_USE_VERTEX", "1"),
                ("ANTHROPIC_VERTEX_PROJECT_ID", "proj"),
                ("CLOUD_ML_REGION", "global"),
            ],
            expect![[r#"
                API provider: Google Vertex AI
                GCP project: proj
                Default region: global"#]],
        );
        check(
            &[("CLAUDE_CODE_USE_FOUNDRY", "1"), ("ANTHROPIC_FOUNDRY_RESOURCE", "mine")],
            expect![[r#"
                API provider: Microsoft Foundry
                Resource: mine"#]],
        );
    }
}
