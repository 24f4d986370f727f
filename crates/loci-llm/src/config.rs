//! Where the provider is, who we are to it, and how the connection is made.
//!
//! [`ProviderConfig::from_env`] turns environment variables into values once; it touches no file and no
//! network, and a value it cannot use is a failure that names the variable.

use std::collections::BTreeMap;
use std::time::Duration;

use loci_core::stream::Failure;
use loci_http::{NetworkSettings, bad_value};
use loci_stdx::{Env, Vars};
use reqwest::header::{HeaderName, HeaderValue};

use crate::auth::Auth;
use crate::clouds::{
    BedrockConfig, HostConfig, SmallModelRegion, VertexConfig, bedrock_base, is_geography, vertex_base,
};
use crate::model_traits::ModelTraits;
use crate::prompt_caching::PromptCaching;

const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";
/// Our own name; the words behind it say how we were started.
const USER_AGENT_VERSION: &str = concat!("loci/", env!("CARGO_PKG_VERSION"));

/// Everything that is fixed for the life of a [`crate::Client`].
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderConfig {
    /// The server's address without `/v1/messages`.
    pub base_url: String,
    /// How we prove who we are.
    pub auth: Auth,
    /// Headers the user wants; they replace ours of the same name.
    pub custom_headers: Vec<(String, String)>,
    /// Beta features the user wants on every request.
    pub extra_betas: Vec<String>,
    /// Whether beta features nobody asked for by name may be used.
    pub allows_experimental_betas: bool,
    /// Whether a model with a budget of thinking may be let think between calls, too.
    pub interleaves_thinking: bool,
    /// What settings call our ids at the server (`modelOverrides`).
    pub model_overrides: BTreeMap<String, String>,
    /// Which prompts the server is asked to cache.
    pub caching: PromptCaching,
    /// The `user-agent` header.
    pub user_agent: String,
    /// How connections are made.
    pub network: NetworkSettings,
    /// How long we wait for what.
    pub timeouts: Timeouts,
    /// Whom we speak to.
    pub dialect: Dialect,
}

/// Whom we speak to, and what is special about it.
#[derive(Debug, Clone, PartialEq)]
pub enum Dialect {
    /// The Anthropic API, or a gateway that speaks like it.
    Anthropic,
    /// Another host of the same API.
    Host(HostConfig),
    /// A provider of the settings, whose models are called `name/id`.
    Named(NamedProvider),
    /// Amazon Bedrock.
    Bedrock(BedrockConfig),
    /// Google Vertex AI.
    Vertex(VertexConfig),
}

/// A provider that has a name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedProvider {
    /// The name.
    pub name: String,
    /// What it speaks.
    pub protocol: WireProtocol,
    /// What its models can do, as far as somebody says so.
    pub models: BTreeMap<String, ModelTraits>,
    /// What people set to change its key, for hints.
    pub key_setting: String,
}

/// What a named provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireProtocol {
    /// Chat Completions.
    Chat,
    /// Responses.
    Responses,
    /// The Messages API.
    Messages,
}

impl WireProtocol {
    /// Returns the name that settings have for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
        }
    }
}

/// How long is waited where nobody wants a limit: longer than any answer takes, and a clock can still count it.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long we wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the head of the answer; for the whole answer when it is not streamed.
    pub request: Duration,
    /// Between two events of a stream; pings do not count.
    pub event_idle: Duration,
    /// Between any two bytes of a stream.
    pub byte_idle: Duration,
}

impl ProviderConfig {
    /// Makes the configuration for a server with everything else at its default and no environment read.
    pub fn new(base_url: impl Into<String>, auth: Auth) -> Self {
        let base_url = base_url.into();
        let timeouts = Timeouts::for_server(&base_url);
        Self {
            base_url,
            auth,
            custom_headers: Vec::new(),
            extra_betas: Vec::new(),
            allows_experimental_betas: true,
            interleaves_thinking: true,
            model_overrides: BTreeMap::new(),
            caching: PromptCaching::default(),
            user_agent: user_agent_from_vars(&Vars::default()),
            network: NetworkSettings::default(),
            timeouts,
            dialect: Dialect::Anthropic,
        }
    }

    /// Makes the configuration of another host of the Messages API.
    pub fn host(
        env: &Env,
        host: HostConfig,
        base_url: String,
        model_overrides: BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let dialect = Dialect::Host(host);
        Ok(Self { base_url, auth: Auth::None, dialect, model_overrides, ..Self::from_env(env)? })
    }

    /// Makes the configuration of Bedrock; `region` is where it is unless a variable names another address.
    pub fn bedrock(
        env: &Env,
        region: &str,
        overrides: BTreeMap<String, String>,
        small: Option<SmallModelRegion>,
    ) -> Result<Self, Failure> {
        let vars = &env.vars;
        let own = vars.non_empty("ANTHROPIC_BEDROCK_BASE_URL").map(|url| url.trim().to_owned());
        let control_plane = match (vars.non_empty("AWS_ENDPOINT_URL_BEDROCK"), &own) {
            (Some(url), _) => Some(url.trim().to_owned()),
            (None, None) => Some(format!("https://bedrock.{region}.amazonaws.com")),
            (None, Some(_)) => None,
        };
        let has_own_address = own.is_some();
        let base_url = own.unwrap_or_else(|| bedrock_base(region));
        let bedrock = BedrockConfig {
            region: region.to_owned(),
            prefix: vars
                .non_empty("ANTHROPIC_BEDROCK_REGION_PREFIX")
                .filter(|it| is_geography(it))
                .map(|it| it.trim().to_owned()),
            overrides,
            service_tier: vars.non_empty("ANTHROPIC_BEDROCK_SERVICE_TIER").map(|it| it.trim().to_owned()),
            small,
            has_own_address,
            control_plane,
        };
        Ok(Self { base_url, auth: Auth::None, dialect: Dialect::Bedrock(bedrock), ..Self::from_env(env)? })
    }

    /// Makes the configuration of Vertex for a project.
    pub fn vertex(env: &Env, project: &str, overrides: BTreeMap<String, String>) -> Result<Self, Failure> {
        let vars = &env.vars;
        let region = vars.non_empty("CLOUD_ML_REGION").map(str::trim).filter(|region| is_location(region));
        let region = region.unwrap_or("us-east5").to_owned();
        let own = vars.non_empty("ANTHROPIC_VERTEX_BASE_URL");
        let base_url = own.map_or_else(|| vertex_base(&region), |url| url.trim().to_owned());
        let named = vars.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix("VERTEX_REGION_CLAUDE_")?;
            is_location(value.trim()).then(|| (name.to_owned(), value.trim().to_owned()))
        });
        let vertex = VertexConfig {
            project: project.to_owned(),
            region,
            model_regions: named.collect(),
            overrides,
            has_own_address: own.is_some(),
        };
        Ok(Self { base_url, auth: Auth::None, dialect: Dialect::Vertex(vertex), ..Self::from_env(env)? })
    }

    /// Makes the configuration of a named provider: of the environment it has what concerns the connection alone.
    pub fn named(
        env: &Env,
        named: NamedProvider,
        base_url: &str,
        custom_headers: Vec<(String, String)>,
    ) -> Result<Self, Failure> {
        let vars = &env.vars;
        let base = Self::new(base_url, Auth::None);
        Ok(Self {
            custom_headers,
            allows_experimental_betas: false,
            user_agent: user_agent_from_vars(vars),
            network: NetworkSettings::from_env(env)?,
            timeouts: base.timeouts.with_vars(vars)?,
            dialect: Dialect::Named(named),
            ..base
        })
    }

    /// Reads the variables that concern the provider; see each helper for its names.
    pub fn from_env(env: &Env) -> Result<Self, Failure> {
        let vars = &env.vars;
        let base_url = vars.non_empty("ANTHROPIC_BASE_URL").map_or(DEFAULT_BASE_URL, str::trim);
        let base = Self::new(base_url, Auth::from_vars(vars));
        Ok(Self {
            custom_headers: custom_headers_from_vars(vars)?,
            extra_betas: split_list(vars.non_empty("ANTHROPIC_BETAS").unwrap_or_default()),
            allows_experimental_betas: !vars.is_truthy("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS"),
            interleaves_thinking: !vars.is_truthy("DISABLE_INTERLEAVED_THINKING"),
            caching: PromptCaching::from_vars(vars),
            user_agent: user_agent_from_vars(vars),
            network: NetworkSettings::from_env(env)?,
            timeouts: base.timeouts.with_vars(vars)?,
            ..base
        })
    }
}

/// Returns the `user-agent` header: how we were started, and by which library and program, where they say.
fn user_agent_from_vars(vars: &Vars) -> String {
    let entrypoint = vars.non_empty("CLAUDE_CODE_ENTRYPOINT").unwrap_or("sdk-cli");
    let part = |label: &str, name| {
        vars.non_empty(name).map(|text| format!(", {label}/{}", header_safe(text))).unwrap_or_default()
    };
    let library = part("agent-sdk", "CLAUDE_AGENT_SDK_VERSION");
    let program = part("client-app", "CLAUDE_AGENT_SDK_CLIENT_APP");
    format!("{USER_AGENT_VERSION} (external, {}{library}{program})", header_safe(entrypoint))
}

/// What cannot stand in a header is left out: a program's name must not keep it from working.
fn header_safe(text: &str) -> String {
    text.trim().chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect()
}

impl Timeouts {
    /// Gateways may buffer, so they get more time between bytes.
    fn for_server(base_url: &str) -> Self {
        let is_direct = base_url.trim_end_matches('/') == DEFAULT_BASE_URL;
        Self {
            request: Duration::from_secs(600),
            event_idle: Duration::from_secs(300),
            byte_idle: Duration::from_secs(if is_direct { 180 } else { 300 }),
        }
    }

    /// Idle times outside sensible bounds are brought inside them, as other clients do.
    fn with_vars(self, vars: &Vars) -> Result<Self, Failure> {
        let millis = |name| parse_number(vars, name).map(|n| n.map(Duration::from_millis));
        let unless_off = |time: Duration, switches: &[&str]| match switches.iter().any(|it| is_off(vars, it))
        {
            true => FOREVER,
            false => time,
        };
        let (least_event_idle, bounds) =
            (Duration::from_secs(300), (Duration::from_secs(10), Duration::from_secs(1800)));
        Ok(Self {
            request: millis("API_TIMEOUT_MS")?.filter(|time| !time.is_zero()).unwrap_or(self.request),
            event_idle: unless_off(
                millis("CLAUDE_STREAM_IDLE_TIMEOUT_MS")?
                    .map_or(self.event_idle, |time| time.max(least_event_idle)),
                &["CLAUDE_ENABLE_STREAM_WATCHDOG"],
            ),
            byte_idle: unless_off(
                millis("CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS")?
                    .map_or(self.byte_idle, |time| time.clamp(bounds.0, bounds.1)),
                &["CLAUDE_ENABLE_BYTE_WATCHDOG", "API_FORCE_IDLE_TIMEOUT"],
            ),
        })
    }
}

/// Tells whether a text is shaped like a place of Google's; it becomes part of a host's name.
pub fn is_location(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Tells whether a switch is turned off, which is not to say that it is unset.
fn is_off(vars: &Vars, name: &str) -> bool {
    let value = vars.get(name).unwrap_or_default().trim();
    ["0", "false", "no", "off"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// `ANTHROPIC_CUSTOM_HEADERS`: one `Name: value` a line.
fn custom_headers_from_vars(vars: &Vars) -> Result<Vec<(String, String)>, Failure> {
    const NAME: &str = "ANTHROPIC_CUSTOM_HEADERS";
    let lines = vars.non_empty(NAME).unwrap_or_default().lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).map(|line| parse_header(NAME, line)).collect()
}

fn parse_header(variable: &str, line: &str) -> Result<(String, String), Failure> {
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    let (name, value) = (name.trim(), value.trim());
    let is_valid = line.contains(':')
        && HeaderName::from_bytes(name.as_bytes()).is_ok()
        && HeaderValue::from_str(value).is_ok();
    if is_valid {
        return Ok((name.to_owned(), value.to_owned()));
    }
    // A header's value is often a credential, so only its name is shown.
    Err(bad_value(variable, "a list of headers, one `Name: value` a line", name, "X-Team: platform"))
}

fn split_list(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Reads a whole number; an unset or empty variable is `None`.
pub(crate) fn parse_number(vars: &Vars, name: &str) -> Result<Option<u64>, Failure> {
    let Some(value) = vars.non_empty(name) else { return Ok(None) };
    value.trim().parse().map(Some).map_err(|_| bad_value(name, "a whole number", value, "10000"))
}

#[cfg(test)]
mod tests;
