//! Handlers that are addresses: the input is posted, and nothing is followed elsewhere.

use std::sync::Arc;

use loci_core::hooks::{HandlerEnd, HookEntry};
use loci_http::{JsonPost, JsonPostError, post_json};
use tokio_util::sync::CancellationToken;

use super::HookService;
use crate::conversation::host::lock;

/// How much of an answer is read.
const ANSWER_BYTES: usize = 1 << 20;

impl HookService {
    /// Posts the input to an address, if that may be called.
    pub(super) async fn run_http(
        &self,
        entry: &HookEntry,
        json: Arc<str>,
        (url, headers, allowed_env): (&str, &[(String, String)], &[String]),
        cancel: &CancellationToken,
    ) -> HandlerEnd {
        let config = self.config();
        if !config.allows_url(url) {
            return HandlerEnd::Failed(
                "its address is not among `allowedHttpHookUrls`, and was not called".to_owned(),
            );
        }
        let (env, child_env) = {
            let ambient = lock(&self.world().ambient);
            (ambient.env.clone(), ambient.child_env.clone())
        };
        let may_send = |name: &str| {
            allowed_env.iter().any(|it| it == name)
                && config.allowed_env.as_ref().is_none_or(|all| all.iter().any(|it| it == name))
        };
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), filled(value, &child_env, &may_send)));
        let post = JsonPost {
            url: url.to_owned(),
            headers: headers.collect(),
            body: json.as_ref().to_owned(),
            limit: entry.time_limit(),
            max_bytes: ANSWER_BYTES,
        };
        tokio::select! {
            answer = post_json(&env, post) => match answer {
                Ok((status, body)) => HandlerEnd::Responded { status, body },
                Err(JsonPostError::TimedOut) => HandlerEnd::TimedOut { blocks: false },
                Err(JsonPostError::Failed(why)) => HandlerEnd::Failed(why),
            },
            () = cancel.cancelled() => HandlerEnd::Cancelled,
        }
    }
}

/// Fills variables (`$NAME`, `${NAME}`) in; those that may not be sent are empty. They are those of commands, so that no
/// list can name a key of the model provider.
fn filled(text: &str, vars: &[(String, String)], may_send: &dyn Fn(&str) -> bool) -> String {
    let value = |name: &str| vars.iter().rev().find(|(it, _)| it == name).map(|(_, value)| value.as_str());
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let (name, tail) = match behind.strip_prefix('{').and_then(|inside| inside.split_once('}')) {
            Some((name, tail)) => (name, tail),
            None => behind.split_at(
                behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(behind.len()),
            ),
        };
        match name.is_empty() {
            true => out.push('$'),
            false if may_send(name) => out.push_str(value(name).unwrap_or_default()),
            false => {}
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_are_filled_in() {
        let vars = [("TOKEN", "t"), ("SECRET", "s")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (text, expected) in [
            ("Bearer $TOKEN", "Bearer t"),
            ("Bearer ${TOKEN}!", "Bearer t!"),
            ("$SECRET-${SECRET}", "-"),
            ("$NONE|$TOKEN_|$", "||$"),
            ("5$ and $$TOKEN", "5$ and $t"),
            ("${TOKEN", "${TOKEN"),
        ] {
            assert_eq!(filled(text, &vars, &|name| name == "TOKEN"), expected, "{text}");
        }
    }
}
