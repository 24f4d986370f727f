//! Connecting to a target that was decided on, by an address that was resolved here and looked at (SB-9).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base64::Engine as _;
use loci_core::permission::is_private_address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Egress;
use super::target::{Host, Target};

/// How long one address is tried.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer of another proxy.
const MOST_BYTES: usize = 16 << 10;

/// The proxy behind which the machine itself is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamProxy {
    host: String,
    port: u16,
    /// What it wants to be told, ready to be sent.
    authorization: Option<String>,
    /// Hosts that are reached without it, and what is below them.
    direct: Vec<String>,
}

impl UpstreamProxy {
    /// Reads `http://user:password@host:port` and the list of hosts that are reached without it.
    pub fn parse(address: &str, direct: &str) -> Option<Self> {
        let rest = address.trim().strip_prefix("http://").unwrap_or(address.trim());
        let authority = rest.split('/').next().filter(|it| !it.is_empty() && !rest.contains("://"))?;
        let (user, place) =
            authority.rsplit_once('@').map_or((None, authority), |(user, place)| (Some(user), place));
        let target = Target::parse(place).or_else(|| Target::parse(&format!("{place}:80")))?;
        let authorization = user.map(|user| {
            let text = base64::engine::general_purpose::STANDARD.encode(percent_decoded(user));
            format!("Proxy-Authorization: Basic {text}\r\n")
        });
        let direct = direct.split(',').map(|it| it.trim().trim_start_matches("*.").trim_start_matches('.'));
        let direct = direct.filter(|it| !it.is_empty()).map(str::to_ascii_lowercase).collect();
        Some(Self { host: target.host.to_string(), port: target.port, authorization, direct })
    }

    /// Tells whether a host is reached through it.
    fn serves(&self, host: &Host) -> bool {
        let host = host.to_string();
        !self.direct.iter().any(|it| it == "*" || *it == host || host.ends_with(&format!(".{it}")))
    }
}

/// Returns what is meant by a text of an address, in which `%40` is an `@`; what is no such number stays as it is.
fn percent_decoded(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).filter(|it| *first == b'%' && it.iter().all(u8::is_ascii_hexdigit));
        let number = digits.and_then(|it| u8::from_str_radix(std::str::from_utf8(it).ok()?, 16).ok());
        bytes.push(number.unwrap_or(*first));
        rest = if number.is_some() { &behind[2..] } else { behind };
    }
    bytes
}

/// A connection.
pub(super) struct Dialled {
    pub(super) stream: TcpStream,
    /// Where it leads to the machine's own proxy, for a plain request: the line that this wants to be told, if any.
    pub(super) proxy_line: Option<String>,
}

/// Why there is no connection, for people.
pub(super) enum DialError {
    /// It would lead to this machine, its network, or nowhere, by this address.
    NotPublic(&'static str, IpAddr),
    /// It could not be made.
    Failed(String),
}

/// Connects to a target; a tunnel is asked of the machine's proxy where there is one.
pub(super) async fn dial(egress: &Egress, target: &Target, wants_tunnel: bool) -> Result<Dialled, DialError> {
    if let Host::Ip(address) = target.host
        && !may_reach(egress, address)
    {
        let why = "it is no public address, and not allowed by its number";
        return Err(DialError::NotPublic(why, address));
    }
    match egress.upstream.as_ref().filter(|proxy| proxy.serves(&target.host)) {
        Some(proxy) => {
            let through = through(proxy, target, wants_tunnel).await;
            through.map_err(|error| DialError::Failed(format!("the proxy: {error}")))
        }
        None => {
            let stream = direct(egress, target).await?;
            Ok(Dialled { stream, proxy_line: None })
        }
    }
}

fn may_reach(egress: &Egress, address: IpAddr) -> bool {
    !is_private_address(address) || egress.names_address(address)
}

async fn direct(egress: &Egress, target: &Target) -> Result<TcpStream, DialError> {
    let addresses: Vec<SocketAddr> = match &target.host {
        Host::Ip(address) => vec![SocketAddr::new(*address, target.port)],
        Host::Name(name) => {
            let found = egress.resolve(name, target.port).await;
            found.map_err(|error| DialError::Failed(format!("its name could not be resolved: {error}")))?
        }
    };
    let mut last = match addresses.first() {
        Some(first) => DialError::NotPublic("its name leads to no public address", first.ip()),
        None => DialError::Failed("its name has no address".to_owned()),
    };
    let reachable = addresses.into_iter().filter(|it| may_reach(egress, it.ip()));
    for address in reachable {
        match timeout(PATIENCE, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // A connection that waits for more to send is only slower.
                drop(stream.set_nodelay(true));
                return Ok(stream);
            }
            Ok(Err(error)) => last = DialError::Failed(error.to_string()),
            Err(_) => last = DialError::Failed("it did not answer in time".to_owned()),
        }
    }
    Err(last)
}

async fn through(proxy: &UpstreamProxy, target: &Target, wants_tunnel: bool) -> io::Result<Dialled> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
    let connecting = TcpStream::connect((proxy.host.trim_matches(['[', ']']), proxy.port));
    let mut stream = timeout(PATIENCE, connecting).await.map_err(|_| late())??;
    let authorization = proxy.authorization.as_deref().unwrap_or_default();
    if !wants_tunnel {
        return Ok(Dialled { stream, proxy_line: Some(authorization.to_owned()) });
    }
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        // Byte by byte: what comes behind the answer is the tunnel's.
        let byte = timeout(PATIENCE, stream.read_u8()).await.map_err(|_| late())??;
        answer.push(byte);
        if answer.len() > MOST_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its answer is too long"));
        }
    }
    let line = String::from_utf8_lossy(&answer);
    match line.split(' ').nth(1) {
        Some("200") => Ok(Dialled { stream, proxy_line: None }),
        status => Err(io::Error::other(format!("it answered {}", status.unwrap_or("nothing that is HTTP")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_of_the_machine_is_read() {
        let proxy = UpstreamProxy::parse("http://u:p@proxy.corp:3128/", "localhost, .corp,10.0.0.1").unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.corp", 3128));
        assert_eq!(proxy.authorization.as_deref(), Some("Proxy-Authorization: Basic dTpw\r\n"));
        for (host, expected) in
            [("example.com", true), ("git.corp", false), ("corp", false), ("10.0.0.1", false)]
        {
            assert_eq!(proxy.serves(&Host::parse(host).unwrap()), expected, "{host}");
        }
        for (user, expected) in [
            ("u%40corp:p%23%2f", "u@corp:p#/"),
            ("u:100%", "u:100%"),
            ("u:%zz%4", "u:%zz%4"),
            ("u:%+1", "u:%+1"),
        ] {
            let proxy = UpstreamProxy::parse(&format!("http://{user}@proxy:1"), "").unwrap();
            let text = base64::engine::general_purpose::STANDARD.encode(expected);
            assert_eq!(proxy.authorization, Some(format!("Proxy-Authorization: Basic {text}\r\n")), "{user}");
        }
        assert_eq!(UpstreamProxy::parse("socks5://x:1", ""), None);
        assert_eq!(UpstreamProxy::parse("", ""), None);
    }
}
