//! Failures below HTTP: names, sockets, proxies, certificates, silence.

use std::error::Error;
use std::io;
use std::time::Duration;

use loci_core::stream::{Failure, FailureKind};
use rustls::{AlertDescription, CertificateError};

use crate::transport::LocalError;

/// The next step where a proxy wants to know who asks.
pub const PROXY_HINT: &str =
    "The proxy wants a user and password: put them into HTTPS_PROXY, as in http://user:password@proxy:8080.";
/// The next step where nobody was reached.
pub const CONNECT_HINT: &str = "Check the network, ANTHROPIC_BASE_URL and the proxy settings.";
/// The next step where nothing more came.
pub const STALLED_HINT: &str = "Try again; for a slow server raise CLAUDE_STREAM_IDLE_TIMEOUT_MS, CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS or API_TIMEOUT_MS.";
/// The next step where TLS could not be agreed on.
pub const TLS_HINT: &str = "Check ANTHROPIC_BASE_URL; behind a proxy that inspects TLS, set NODE_EXTRA_CA_CERTS to its certificate (a PEM file).";

/// Where a connection was going; shown in messages, so without credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The server.
    pub server: String,
    /// The proxy on the way to it.
    pub proxy: Option<String>,
    /// Whether what is connected to, the proxy or the server, is on this machine.
    pub is_here: bool,
}

impl Route {
    fn describe(&self) -> String {
        match &self.proxy {
            Some(proxy) => format!("`{}` through the proxy `{proxy}`", self.server),
            None => format!("`{}`", self.server),
        }
    }
}

/// Sorts an error that came before any answer.
pub(crate) fn from_error(error: reqwest::Error, route: &Route) -> Failure {
    // The address may hold credentials, and the route names it without them.
    let error = error.without_url();
    let what = if error.is_connect() { "Failed to connect to" } else { "No answer from" };
    sorted(&error, what, route)
}

/// Sorts an error of a server on this machine that came before any answer.
pub(crate) fn from_local(error: &LocalError, route: &Route) -> Failure {
    let is_connect = matches!(error, LocalError::Connect(_));
    sorted(error, if is_connect { "Failed to connect to" } else { "No answer from" }, route)
}

fn sorted(error: &(dyn Error + 'static), what: &str, route: &Route) -> Failure {
    if let Some(tls) = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>()) {
        return tls_failure(tls, route);
    }
    let (why, next) = reason(error, route);
    // Nobody on the way can have refused it: whoever should listen does not run, and waiting starts nothing.
    let kind = match route.is_here && io_kind(error) == Some(io::ErrorKind::ConnectionRefused) {
        true => FailureKind::NoListener,
        false => FailureKind::Connect,
    };
    Failure::new(kind, format!("{what} {}: {why}", route.describe())).with_hint(next)
}

fn io_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind).last()
}

fn reason(error: &(dyn Error + 'static), route: &Route) -> (String, String) {
    let texts: Vec<String> = causes(error).map(ToString::to_string).collect();
    let says = |words: &str| texts.iter().any(|text| text.contains(words));
    let io_kind = io_kind(error);
    let general = CONNECT_HINT.to_owned();
    if says("proxy authorization required") {
        return ("the proxy wants a user and password".to_owned(), PROXY_HINT.to_owned());
    }
    if says("tunnel error") || says("socks") {
        let next = "Check HTTPS_PROXY and that the proxy may reach the server, or add the host to NO_PROXY.";
        return ("the proxy did not let us through".to_owned(), next.to_owned());
    }
    if says("dns error") || says("failed to lookup address") {
        let next =
            "Check the spelling of ANTHROPIC_BASE_URL or the proxy, and that this machine can resolve names.";
        return ("its name was not found".to_owned(), next.to_owned());
    }
    if says("timed out") || io_kind == Some(io::ErrorKind::TimedOut) {
        return ("it took too long".to_owned(), general);
    }
    match io_kind {
        Some(io::ErrorKind::ConnectionRefused) => {
            let what = if route.proxy.is_some() { "the proxy" } else { "the server" };
            (
                "the connection was refused".to_owned(),
                format!("Check that {what} is running and that its port is right."),
            )
        }
        _ => (texts.last().cloned().unwrap_or_default(), general),
    }
}

/// Says that a connection or the head of an answer did not come in time.
pub fn no_answer(route: &Route, waited: Duration) -> Failure {
    let message = format!("No answer from {} for {}", route.describe(), format_time(waited));
    Failure::new(FailureKind::Stalled, message).with_hint(STALLED_HINT)
}

/// Says that a stream that began has gone silent.
pub fn stalled(waited: Duration) -> Failure {
    let message = format!("The server went silent in the middle of the answer for {}", format_time(waited));
    Failure::new(FailureKind::Stalled, message).with_hint(STALLED_HINT)
}

/// Returns the deepest cause's words, which name what actually happened.
pub fn root_words(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

fn tls_failure(error: &rustls::Error, route: &Route) -> Failure {
    let server = route.describe();
    let message = match error {
        rustls::Error::InvalidCertificate(_) => {
            format!("The certificate of {server} is not trusted: {error}")
        }
        _ => format!("Failed to agree on TLS with {server}: {error}"),
    };
    Failure::new(FailureKind::Tls, message).with_hint(tls_hint(error))
}

fn tls_hint(error: &rustls::Error) -> String {
    let hint = match error {
        rustls::Error::InvalidCertificate(reason) => match reason {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => {
                "Check the clock of this machine; if it is right, the server needs a new certificate."
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "The certificate belongs to another host: check ANTHROPIC_BASE_URL."
            }
            _ => {
                "If a proxy inspects TLS, or the server is your own, set NODE_EXTRA_CA_CERTS to the certificate of its authority (a PEM file)."
            }
        },
        rustls::Error::InvalidMessage(_) => {
            "The server does not speak TLS there: check whether ANTHROPIC_BASE_URL should begin with http:// or name another port."
        }
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::AccessDenied,
        ) => {
            "The server wants another client certificate: check CLAUDE_CODE_CLIENT_CERT and CLAUDE_CODE_CLIENT_KEY."
        }
        _ => TLS_HINT,
    };
    hint.to_owned()
}

/// Walks from an error to its root. An [`io::Error`] is asked for what it wraps, which its `source` skips.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| match error.downcast_ref::<io::Error>() {
        Some(io_error) => io_error.get_ref().map(|inner| inner as &(dyn Error + 'static)),
        None => error.source(),
    })
}

fn format_time(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::{Expect, expect};

    use super::*;

    fn check(error: io::Error, expected: Expect) {
        let route = Route { server: "https://api.example.com".to_owned(), proxy: None, is_here: false };
        // Wrapped twice, as the HTTP library does.
        let wrapped = io::Error::other(io::Error::new(error.kind(), error));
        let failure = sorted(&wrapped, "Failed to connect to", &route);
        expected.assert_eq(&format!(
            "{:?}: {failure}\n{}",
            failure.kind,
            failure.hint.as_deref().unwrap_or_default()
        ));
    }

    #[test]
    fn connection_that_this_machine_refuses_is_not_tried_again() {
        for (is_here, kind, is_retryable) in [
            (true, io::ErrorKind::ConnectionRefused, false),
            (false, io::ErrorKind::ConnectionRefused, true),
            (true, io::ErrorKind::ConnectionReset, true),
            (true, io::ErrorKind::TimedOut, true),
        ] {
            let route = Route { server: "http://localhost".to_owned(), proxy: None, is_here };
            let failure = sorted(&io::Error::from(kind), "Failed to connect to", &route);
            assert_eq!(failure.is_retryable(), is_retryable, "{is_here} {kind:?}");
        }
    }

    #[test]
    fn reasons_are_found_at_the_root() {
        check(
            io::Error::other("failed to lookup address information: Name or service not known"),
            expect![[r#"
                Connect: Failed to connect to `https://api.example.com`: its name was not found
                Check the spelling of ANTHROPIC_BASE_URL or the proxy, and that this machine can resolve names."#]],
        );
        check(
            io::ErrorKind::TimedOut.into(),
            expect![[r#"
            Connect: Failed to connect to `https://api.example.com`: it took too long
            Check the network, ANTHROPIC_BASE_URL and the proxy settings."#]],
        );
        check(
            io::ErrorKind::ConnectionRefused.into(),
            expect![[r#"
            Connect: Failed to connect to `https://api.example.com`: the connection was refused
            Check that the server is running and that its port is right."#]],
        );
        check(
            io::ErrorKind::NetworkUnreachable.into(),
            expect![[r#"
            Connect: Failed to connect to `https://api.example.com`: network unreachable
            Check the network, ANTHROPIC_BASE_URL and the proxy settings."#]],
        );
        check(
            io::Error::other(rustls::Error::InvalidCertificate(CertificateError::Expired)),
            expect![[r#"
            Tls: The certificate of `https://api.example.com` is not trusted: invalid peer certificate: Expired
            Check the clock of this machine; if it is right, the server needs a new certificate."#]],
        );
        check(
            io::Error::other(rustls::Error::InvalidCertificate(CertificateError::NotValidForName)),
            expect![[r#"
                Tls: The certificate of `https://api.example.com` is not trusted: invalid peer certificate: NotValidForName
                The certificate belongs to another host: check ANTHROPIC_BASE_URL."#]],
        );
        check(
            io::Error::other(rustls::Error::HandshakeNotComplete),
            expect![[r#"
            Tls: Failed to agree on TLS with `https://api.example.com`: handshake not complete
            Check ANTHROPIC_BASE_URL; behind a proxy that inspects TLS, set NODE_EXTRA_CA_CERTS to its certificate (a PEM file)."#]],
        );
        let strange = CertificateError::Other(rustls::OtherError(Arc::new(io::Error::other("strange"))));
        check(
            io::Error::other(rustls::Error::InvalidCertificate(strange)),
            expect![[r#"
            Tls: The certificate of `https://api.example.com` is not trusted: invalid peer certificate: Other(OtherError(Custom { kind: Other, error: "strange" }))
            If a proxy inspects TLS, or the server is your own, set NODE_EXTRA_CA_CERTS to the certificate of its authority (a PEM file)."#]],
        );
    }
}
