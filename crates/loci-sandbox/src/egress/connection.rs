//! One connection of a sandboxed program, from its first byte to its last.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, copy_buf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::dial::{Dialled, dial};
use super::http::{self, Request};
use super::target::{Host, Target};
use super::tls::{self, Greeting};
use super::{Egress, socks};
use crate::control::ProxyPort;

/// How much is carried at once.
const BUFFER: usize = 64 << 10;

/// Serves a connection to one of the ports.
pub(super) async fn serve(egress: &Egress, port: ProxyPort, stream: TcpStream) -> io::Result<()> {
    match port {
        ProxyPort::Http => serve_http(egress, stream).await,
        ProxyPort::Socks => serve_socks(egress, stream).await,
    }
}

async fn serve_http(egress: &Egress, mut client: TcpStream) -> io::Result<()> {
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
        reached = reach(egress, target, is_tunnel) => reached,
        // Nobody need be asked about what nobody waits for.
        () = gone(&client), if rest.is_empty() => return Ok(()),
    };
    let Dialled { mut stream, is_proxy } = match reached {
        Ok(dialled) => dialled,
        Err((status, why)) => return refuse(&mut client, status, &why).await,
    };
    match request {
        Request::Connect(target) => {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            tunnel(egress, &target, client, stream, rest).await
        }
        Request::Plain { head, proxied, body, .. } => {
            stream.write_all(if is_proxy { &proxied } else { &head }).await?;
            exchange(client, stream, rest, body).await
        }
    }
}

async fn serve_socks(egress: &Egress, mut client: TcpStream) -> io::Result<()> {
    let target = socks::request(&mut client).await?;
    let reached = tokio::select! {
        reached = reach(egress, &target, true) => reached,
        () = gone(&client) => return Ok(()),
    };
    match reached {
        Ok(Dialled { stream, .. }) => {
            socks::answer(&mut client, socks::GRANTED).await?;
            tunnel(egress, &target, client, stream, Vec::new()).await
        }
        Err((status, why)) => {
            socks::answer(&mut client, if status == 403 { socks::NOT_ALLOWED } else { socks::FAILED })
                .await?;
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
    }
}

/// Waits until a client has gone that has nothing to say before it is answered; for ever where it has.
async fn gone(client: &TcpStream) {
    match client.peek(&mut [0; 1]).await {
        Ok(0) | Err(_) => {}
        Ok(_) => std::future::pending().await,
    }
}

/// Decides and connects; the error has a status for the client.
async fn reach(egress: &Egress, target: &Target, wants_tunnel: bool) -> Result<Dialled, (u16, String)> {
    egress.decide(target).await.map_err(|why| (403, why))?;
    dial(egress, target, wants_tunnel).await.map_err(|why| {
        egress.note(target, &why);
        (502, why)
    })
}

async fn refuse(client: &mut TcpStream, status: u16, why: &str) -> io::Result<()> {
    client.write_all(&http::refusal(status, why)).await?;
    client.shutdown().await
}

/// Carries bytes both ways until both sides have ended; a greeting of TLS must name the target.
async fn tunnel(
    egress: &Egress,
    target: &Target,
    client: TcpStream,
    server: TcpStream,
    first: Vec<u8>,
) -> io::Result<()> {
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let upwards = async {
        let (mut from_client, mut to_server) = (from_client, to_server);
        let first = checked_greeting(egress, target, &mut from_client, first).await?;
        to_server.write_all(&first).await?;
        carry(from_client, to_server).await
    };
    // A server may speak first, so that neither waits for the other.
    tokio::try_join!(upwards, carry(from_server, to_client)).map(|_| ())
}

/// Reads the first bytes until it is certain that they lead nowhere else.
async fn checked_greeting(
    egress: &Egress,
    target: &Target,
    client: &mut OwnedReadHalf,
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
                if client.read_buf(&mut first).await? == 0 {
                    return Ok(first);
                }
                continue;
            }
        };
        egress.note(target, why);
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
}

async fn carry(from: OwnedReadHalf, mut to: OwnedWriteHalf) -> io::Result<()> {
    copy_buf(&mut BufReader::with_capacity(BUFFER, from), &mut to).await?;
    to.shutdown().await
}

/// Sends the body of a plain request, and no more than that, and carries the answer back.
async fn exchange(client: TcpStream, server: TcpStream, first: Vec<u8>, body: u64) -> io::Result<()> {
    let ((from_client, to_client), (from_server, mut to_server)) = (client.into_split(), server.into_split());
    let upwards = async {
        let n_first = usize::try_from(body).unwrap_or(usize::MAX).min(first.len());
        to_server.write_all(&first[..n_first]).await?;
        let left = body - n_first as u64;
        copy_buf(&mut BufReader::with_capacity(BUFFER, from_client.take(left)), &mut to_server).await
    };
    tokio::try_join!(upwards, carry(from_server, to_client)).map(|_| ())
}
