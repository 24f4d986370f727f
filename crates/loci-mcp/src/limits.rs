//! What servers may take: all variables that bear on that, in one place.

use std::time::Duration;

use loci_stdx::Vars;

use crate::connection::Negotiation;

/// What servers may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// From the start of a server until it has told what it has (`MCP_TIMEOUT`).
    pub start: Duration,
    /// One call (`MCP_TOOL_TIMEOUT`).
    pub call: Duration,
    /// After how long a call goes on in the background, where somebody sits at a terminal
    /// (`CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS`; 0 means never).
    pub auto_background: Option<Duration>,
    /// Between two signs of life of a call: of a program, and over the network (`CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT`).
    pub silence: (Duration, Duration),
    /// How long the first request waits for servers that nobody insisted on (`MCP_CONNECT_TIMEOUT_MS`).
    pub first_request: Duration,
    /// Whether the first request waits for none but those that somebody insisted on (`MCP_CONNECTION_NONBLOCKING`).
    pub is_nonblocking: bool,
    /// How many programs start at once (`MCP_SERVER_CONNECTION_BATCH_SIZE`).
    pub local_starts: usize,
    /// How many servers with an address are connected to at once (`MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE`).
    pub remote_starts: usize,
    /// The most tokens of a result that go into the conversation (`MAX_MCP_OUTPUT_TOKENS`).
    pub output_tokens: usize,
    /// Whether programs get a few variables only (`CLAUDE_CODE_MCP_ALLOWLIST_ENV`).
    pub has_small_env: bool,
    /// Whether servers are asked for the newest revision of the protocol (`MCP_PROTOCOL_NEGOTIATION`).
    pub negotiation: Negotiation,
}

impl Limits {
    /// Reads the variables; what is no number is as if it were not there.
    pub fn from_vars(vars: &Vars) -> Self {
        let number = |name: &str| vars.non_empty(name).and_then(|text| text.trim().parse::<u64>().ok());
        let ms = |name: &str, default: u64| {
            Duration::from_millis(number(name).filter(|n| *n > 0).unwrap_or(default))
        };
        let count = |name: &str| number(name).map_or(20, |n| n.clamp(1, 1000) as usize);
        let idle = number("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT").filter(|n| *n > 0).map(Duration::from_millis);
        Self {
            start: ms("MCP_TIMEOUT", 30_000),
            call: ms("MCP_TOOL_TIMEOUT", 100_000_000),
            auto_background: Some(number("CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS").unwrap_or(120_000))
                .filter(|ms| *ms > 0)
                .map(Duration::from_millis),
            silence: (
                idle.unwrap_or(Duration::from_secs(30 * 60)),
                idle.unwrap_or(Duration::from_secs(5 * 60)),
            ),
            first_request: ms("MCP_CONNECT_TIMEOUT_MS", 5_000),
            is_nonblocking: vars.is_truthy("MCP_CONNECTION_NONBLOCKING"),
            local_starts: count("MCP_SERVER_CONNECTION_BATCH_SIZE"),
            remote_starts: count("MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE"),
            output_tokens: number("MAX_MCP_OUTPUT_TOKENS").filter(|n| *n > 0).unwrap_or(25_000) as usize,
            has_small_env: vars.is_truthy("CLAUDE_CODE_MCP_ALLOWLIST_ENV"),
            negotiation: Negotiation::parse(vars.non_empty("MCP_PROTOCOL_NEGOTIATION")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_change_limits_and_bad_ones_do_not() {
        let vars: Vars = [
            ("MCP_TIMEOUT", "100"),
            ("MCP_TOOL_TIMEOUT", "soon"),
            ("MCP_SERVER_CONNECTION_BATCH_SIZE", "0"),
            ("MAX_MCP_OUTPUT_TOKENS", "7"),
            ("MCP_CONNECTION_NONBLOCKING", "true"),
        ]
        .into_iter()
        .collect();
        let limits = Limits::from_vars(&vars);
        assert_eq!((limits.start, limits.call), (Duration::from_millis(100), Duration::from_secs(100_000)));
        assert_eq!((limits.local_starts, limits.remote_starts, limits.output_tokens), (1, 20, 7));
        let background = |value: &str| {
            let vars: Vars = [("CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS", value)].into_iter().collect();
            Limits::from_vars(&vars).auto_background.map(|it| it.as_millis())
        };
        assert_eq!([background(""), background("50"), background("0")], [Some(120_000), Some(50), None]);
        assert!(limits.is_nonblocking && !Limits::from_vars(&Vars::default()).is_nonblocking);
    }
}
