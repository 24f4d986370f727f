//! The SOCKS5 port: one command, CONNECT, to a name or an address. Names are resolved here.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::target::{Host, Target};

/// Answers of the protocol.
pub(super) const GRANTED: u8 = 0;
pub(super) const FAILED: u8 = 1;
pub(super) const NOT_ALLOWED: u8 = 2;
const NO_SUCH_COMMAND: u8 = 7;
const NO_SUCH_ADDRESS: u8 = 8;

/// Reads where a client wants to go; an error was answered.
pub(super) async fn request(stream: &mut TcpStream) -> io::Result<Target> {
    let refused = |why: &'static str| io::Error::new(io::ErrorKind::InvalidData, why);
    let [version, n_methods] = read(stream).await?;
    if version != 5 {
        return Err(refused("not SOCKS5"));
    }
    let mut methods = vec![0; usize::from(n_methods)];
    stream.read_exact(&mut methods).await?;
    if !methods.contains(&0) {
        stream.write_all(&[5, 0xff]).await?;
        return Err(refused("no way to log in is known"));
    }
    stream.write_all(&[5, 0]).await?;
    let [_, command, _, kind] = read(stream).await?;
    let host = match kind {
        1 => Some(Host::from_ip(IpAddr::V4(Ipv4Addr::from(read::<4>(stream).await?)))),
        4 => Some(Host::from_ip(IpAddr::V6(Ipv6Addr::from(read::<16>(stream).await?)))),
        3 => {
            let [length] = read(stream).await?;
            let mut name = vec![0; usize::from(length)];
            stream.read_exact(&mut name).await?;
            String::from_utf8(name).ok().and_then(|name| Host::parse(&name))
        }
        _ => {
            answer(stream, NO_SUCH_ADDRESS).await?;
            return Err(refused("an address of an unknown kind"));
        }
    };
    let port = u16::from_be_bytes(read(stream).await?);
    if command != 1 {
        answer(stream, NO_SUCH_COMMAND).await?;
        return Err(refused("only CONNECT is served"));
    }
    match host.filter(|_| port != 0) {
        Some(host) => Ok(Target { host, port }),
        None => {
            answer(stream, NOT_ALLOWED).await?;
            Err(refused("the host is not certain"))
        }
    }
}

/// Answers a request.
pub(super) async fn answer(stream: &mut TcpStream, code: u8) -> io::Result<()> {
    stream.write_all(&[5, code, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

async fn read<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}
