//! One connection of a sandboxed program, from its first byte to its last.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::dial::{DialError, Dialled, dial};
use super::http::{self, Request};
use super::relay::{carry, copy, read, write_all};
use super::target::{Host, Target};
use super::tls::{self, Greeting};
use super::{Egress, socks};
use crate::control::ProxyPort;
use crate::launch::RefusedHosts;

/// Who is served: the proxy that decides, the command behind the connection where it is known, and what it was refused.
pub(super) struct Client<'a> {
    pub(super) egress: &'a Egress,
    pub(super) command: Option<&'a str>,
    pub(super) refused: &'a RefusedHosts,
}

/// Serves a connection to one of the ports.
pub(super) async fn serve(who: &Client<'_>, port: ProxyPort, stream: TcpStream) -> io::Result<()> {
    match port {
        ProxyPort::Http => serve_http(who, stream).await,
        ProxyPort::Socks => serve_socks(who, stream).await,
    }
}

async fn serve_http(who: &Client<'_>, mut client: TcpStream) -> io::Result<()> {
    let mut bytes = Vec::new();
    let length = loop {
        if let Some(length) = http::head_length(&bytes) {
            break length;
        }
        if bytes.len() > http::MOST_BYTES || client.read_buf(&mut bytes).await? == 0 {
            return refuse(&mut client, 400, "the request has no end").await;
        }
    };
    let rest = bytes.split_off(length);
    let request = match http::parse(&bytes) {
        Ok(request) => request,
        Err((status, why)) => return refuse(&mut client, status, why).await,
    };
    let (Request::Connect(target) | Request::Plain { target, .. }) = &request;
    let is_tunnel = matches!(request, Request::Connect(_));
    let reached = tokio::select! {
        reached = reach(who, target, is_tunnel) => reached,
        // Nobody need be asked about what nobody waits for.
        () = client_hangup(&client), if rest.is_empty() => return Ok(()),
    };
    let Dialled { mut stream, proxy_line } = match reached {
        Ok(dialled) => dialled,
        Err((status, why)) => return refuse(&mut client, status, &why).await,
    };
    match request {
        Request::Connect(target) => {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            tunnel(who, &target, client, stream, rest).await
        }
        Request::Plain { head, proxied, body, .. } => {
            stream.write_all(&with_line(head, proxied, proxy_line.as_deref())).await?;
            exchange(client, stream, rest, body).await
        }
    }
}

/// Returns the request as it is sent: to the machine's proxy, with the line that this wants behind its first.
fn with_line(head: Vec<u8>, proxied: Vec<u8>, proxy_line: Option<&str>) -> Vec<u8> {
    let Some(line) = proxy_line else { return head };
    let first = proxied.windows(2).position(|it| it == b"\r\n").map_or(0, |at| at + 2);
    let (first, rest) = proxied.split_at(first);
    [first, line.as_bytes(), rest].concat()
}

async fn serve_socks(who: &Client<'_>, mut client: TcpStream) -> io::Result<()> {
    let target = socks::request(&mut client).await?;
    let reached = tokio::select! {
        reached = reach(who, &target, true) => reached,
        () = client_hangup(&client) => return Ok(()),
    };
    match reached {
        Ok(Dialled { stream, .. }) => {
            socks::answer(&mut client, socks::GRANTED).await?;
            tunnel(who, &target, client, stream, Vec::new()).await
        }
        Err((status, why)) => {
            socks::answer(&mut client, if status == 403 { socks::NOT_ALLOWED } else { socks::FAILED })
                .await?;
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
    }
}

/// Waits until a client has gone that has nothing to say before it is answered; for ever where it has.
async fn client_hangup(client: &TcpStream) {
    match client.peek(&mut [0; 1]).await {
        Ok(0) | Err(_) => {}
        Ok(_) => std::future::pending().await,
    }
}

/// Decides and connects; the error has a status for the client.
async fn reach(who: &Client<'_>, target: &Target, wants_tunnel: bool) -> Result<Dialled, (u16, String)> {
    let Client { egress, command, refused } = who;
    egress.decide(target, *command).await.map_err(|refusal| {
        refused.note(refusal.text);
        (403, refusal.why)
    })?;
    dial(egress, target, wants_tunnel).await.map_err(|error| match error {
        DialError::NotPublic(why, address) => {
            let address = Host::from_ip(address);
            // The number is for people: the program would learn of the network from it.
            refused.note(format!(
                "`{target}` was refused: {why}; `{address}` itself under sandbox.network.allowedDomains would allow it"
            ));
            (403, why.to_owned())
        }
        DialError::Failed(why) => {
            refused.note(format!("`{target}` could not be reached: {why}"));
            (502, why)
        }
    })
}

async fn refuse(client: &mut TcpStream, status: u16, why: &str) -> io::Result<()> {
    client.write_all(&http::refusal(status, why)).await?;
    client.shutdown().await
}

/// Carries bytes both ways until both sides have ended; a greeting of TLS must name the target.
async fn tunnel(
    who: &Client<'_>,
    target: &Target,
    client: TcpStream,
    server: TcpStream,
    first: Vec<u8>,
) -> io::Result<()> {
    let upwards = async {
        let first = checked_greeting(who, target, &client, first).await?;
        write_all(&server, &first).await?;
        carry(&client, &server).await
    };
    // A server may speak first, so that neither waits for the other.
    tokio::try_join!(upwards, carry(&server, &client)).map(|_| ())
}

/// Reads the first bytes until it is certain that they lead nowhere else.
async fn checked_greeting(
    who: &Client<'_>,
    target: &Target,
    client: &TcpStream,
    mut first: Vec<u8>,
) -> io::Result<Vec<u8>> {
    loop {
        let why = match tls::greeting(&first) {
            Greeting::Other | Greeting::Tls(None) => return Ok(first),
            Greeting::Tls(Some(name)) if Host::parse(&name).as_ref() == Some(&target.host) => {
                return Ok(first);
            }
            Greeting::Tls(Some(_)) => "its TLS greeting names another host",
            Greeting::Broken => "its TLS greeting cannot be read",
            Greeting::Incomplete => {
                let mut more = [0; 4096];
                let n = read(client, &mut more).await?;
                if n == 0 {
                    return Ok(first);
                }
                first.extend_from_slice(&more[..n]);
                continue;
            }
        };
        who.refused.note(format!("`{target}` was refused: {why}"));
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
}

/// Sends the body of a plain request, and no more than that, and carries the answer back.
async fn exchange(client: TcpStream, server: TcpStream, first: Vec<u8>, body: u64) -> io::Result<()> {
    let upwards = async {
        let n_first = usize::try_from(body).unwrap_or(usize::MAX).min(first.len());
        write_all(&server, &first[..n_first]).await?;
        copy(&client, &server, body - n_first as u64).await
    };
    tokio::try_join!(upwards, carry(&server, &client)).map(|_| ())
}
