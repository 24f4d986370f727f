//! Requests to the HTTP port: CONNECT, and plain requests in absolute form.
//!
//! A plain request is taken apart and written anew: its `Host` is the one that was decided on, its connection is closed
//! behind it, and its body is as long as one `Content-Length` says. What could be read in two ways is refused, so that no
//! second request hides behind the first.

use super::target::Target;

/// The longest head of a request.
pub(super) const MOST_BYTES: usize = 64 << 10;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// A tunnel.
    Connect(Target),
    /// A plain request: what is sent on, and how many bytes follow it.
    Plain {
        target: Target,
        /// What a server gets.
        head: Vec<u8>,
        /// What another proxy gets.
        proxied: Vec<u8>,
        body: u64,
    },
}

/// Why a request is not served: a status and a reason.
pub(super) type Refusal = (u16, &'static str);

/// Headers that are between a client and its proxy, or that we write ourselves.
const DROPPED: &[&str] = &[
    "host",
    "connection",
    "proxy-connection",
    "keep-alive",
    "proxy-authorization",
    "proxy-authenticate",
    "te",
    "trailer",
    "upgrade",
    "transfer-encoding",
];

/// Returns the length of a whole head, the empty line included.
pub(super) fn head_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

/// Reads a head.
pub(super) fn parse(head: &[u8]) -> Result<Request, Refusal> {
    let text = std::str::from_utf8(head).map_err(|_| (400, "the request is not text"))?;
    if text.contains('\0') || text.replace("\r\n", "").contains(['\r', '\n']) {
        return Err((400, "the request has control characters"));
    }
    let mut lines = text.trim_end_matches("\r\n").split("\r\n");
    let line = lines.next().unwrap_or_default();
    let [method, address, version] = line.split(' ').collect::<Vec<_>>()[..] else {
        return Err((400, "not a request"));
    };
    if !version.starts_with("HTTP/1.")
        || method.is_empty()
        || !method.bytes().all(|it| it.is_ascii_alphabetic())
    {
        return Err((400, "not a request of HTTP/1"));
    }
    if method == "CONNECT" {
        return Target::parse(address).map(Request::Connect).ok_or((400, "the host is not certain"));
    }
    let rest = address.get(..7).filter(|it| it.eq_ignore_ascii_case("http://")).map(|_| &address[7..]);
    let rest = rest.ok_or((400, "only http:// addresses are fetched for others; use CONNECT"))?;
    let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let with_port = if has_port(authority) { authority.to_owned() } else { format!("{authority}:80") };
    let target = Target::parse(&with_port).ok_or((400, "the host is not certain"))?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let (headers, body) = headers(lines)?;
    let authority = if target.port == 80 { target.host.to_string() } else { target.to_string() };
    let request = |address: &str| {
        format!("{method} {address} HTTP/1.1\r\nHost: {authority}\r\n{headers}Connection: close\r\n\r\n")
            .into_bytes()
    };
    let (head, proxied) = (request(&path), request(&format!("http://{authority}{path}")));
    Ok(Request::Plain { target, head, proxied, body })
}

fn has_port(authority: &str) -> bool {
    authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'))
}

/// Returns the headers that are sent on, and the length of the body.
fn headers<'a>(lines: impl Iterator<Item = &'a str>) -> Result<(String, u64), Refusal> {
    let (mut kept, mut body, mut n_hosts) = (String::new(), None, 0);
    for line in lines {
        let (name, value) = line.split_once(':').ok_or((400, "a header is no header"))?;
        let is_token = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err((400, "a header's name is none"));
        }
        let (lower, value) = (name.to_ascii_lowercase(), value.trim());
        match lower.as_str() {
            "transfer-encoding" => return Err((411, "the length of the body must be told")),
            "content-length" => {
                let is_number = !value.is_empty() && value.bytes().all(|it| it.is_ascii_digit());
                let length = value.parse().ok().filter(|_| is_number && body.is_none());
                body = Some(length.ok_or((400, "the length of the body is not certain"))?);
                kept += &format!("Content-Length: {value}\r\n");
            }
            "host" => n_hosts += 1,
            name if DROPPED.contains(&name) => {}
            _ => kept += &format!("{name}: {value}\r\n"),
        }
    }
    if n_hosts > 1 { Err((400, "more than one Host")) } else { Ok((kept, body.unwrap_or(0))) }
}

/// Returns the answer that refuses a request.
pub(super) fn refusal(status: u16, reason: &str) -> Vec<u8> {
    let reason: String = reason.chars().filter(|c| !c.is_control()).collect();
    let title = match status {
        403 => "Forbidden",
        411 => "Length Required",
        502 => "Bad Gateway",
        _ => "Bad Request",
    };
    let body = format!("loci sandbox: {reason}\n");
    format!(
        "HTTP/1.1 {status} {title}\r\nx-loci-sandbox: {reason}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match parse(text.replace('\n', "\r\n").as_bytes()) {
            Ok(Request::Connect(target)) => format!("connect {target}"),
            Ok(Request::Plain { target, head, body, .. }) => {
                format!(
                    "{target} +{body}: {}",
                    String::from_utf8(head).unwrap().trim_end().replace("\r\n", " | ")
                )
            }
            Err((status, _)) => status.to_string(),
        }
    }

    #[test]
    fn requests_are_read_one_way_or_refused() {
        for (text, expected) in [
            ("CONNECT Example.com:443 HTTP/1.1\nHost: other.com\n\n", "connect example.com:443"),
            ("CONNECT user@example.com:443 HTTP/1.1\n\n", "400"),
            ("CONNECT example.com HTTP/1.1\n\n", "400"),
            (
                "GET http://Example.com/a?b HTTP/1.1\nHost: evil.com\nProxy-Connection: x\nAccept: y\n\n",
                "example.com:80 +0: GET /a?b HTTP/1.1 | Host: example.com | Accept: y | Connection: close",
            ),
            (
                "GET http://example.com:8080 HTTP/1.1\n\n",
                "example.com:8080 +0: GET / HTTP/1.1 | Host: example.com:8080 | Connection: close",
            ),
            (
                "POST http://a.com/ HTTP/1.1\nContent-Length: 3\n\n",
                "a.com:80 +3: POST / HTTP/1.1 | Host: a.com | Content-Length: 3 | Connection: close",
            ),
            ("POST http://a.com/ HTTP/1.1\nContent-Length: 3\nContent-Length: 4\n\n", "400"),
            ("POST http://a.com/ HTTP/1.1\nContent-Length: +3\n\n", "400"),
            ("POST http://a.com/ HTTP/1.1\nTransfer-Encoding: chunked\n\n", "411"),
            ("POST http://a.com/ HTTP/1.1\nTransfer-Encoding : chunked\n\n", "400"),
            ("GET http://a.com/ HTTP/1.1\nHost: a\nHost: b\n\n", "400"),
            ("GET http://a.com/ HTTP/1.1\nX: a\n folded: b\n\n", "400"),
            ("GET http://good.com@evil.com/ HTTP/1.1\n\n", "400"),
            ("GET https://a.com/ HTTP/1.1\n\n", "400"),
            ("GET / HTTP/1.1\nHost: a.com\n\n", "400"),
            ("GET http://a.com/ HTTP/2.0\n\n", "400"),
            ("\n\n", "400"),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }
}
