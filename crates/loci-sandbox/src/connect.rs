//! A connection through the proxy for a program that knows none, such as ssh: what it says goes there, what comes back is said
//! to it. Runs inside the sandbox.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};

use crate::control::ProxyPort;

/// The longest answer of the proxy.
const MOST_BYTES: usize = 16 << 10;

/// Connects standard input and output with a host, until both sides have ended; the error says why not.
pub fn connect_through_proxy(host: &str, port: u16) -> io::Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, ProxyPort::Http.number()))?;
    write!(stream, "CONNECT {host}:{port} HTTP/1.1\r\n\r\n")?;
    let head = read_head(&mut stream)?;
    if head.split(' ').nth(1) != Some("200") {
        let why = head.lines().find_map(|line| line.strip_prefix("x-loci-sandbox: "));
        let text = format!("`{host}:{port}` was refused: {}", why.unwrap_or("the proxy does not say why"));
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let mut upwards = stream.try_clone()?;
    let upload = move || {
        // Where the other side has gone nobody waits for the rest.
        io::copy(&mut io::stdin().lock(), &mut upwards).ok();
        upwards.shutdown(Shutdown::Write).ok();
    };
    std::thread::Builder::new().spawn(upload)?;
    let mut out = io::stdout().lock();
    let mut bytes = [0; 64 << 10];
    loop {
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            n => {
                out.write_all(&bytes[..n])?;
                out.flush()?;
            }
        }
    }
}

/// Reads the head of an answer, byte by byte: what comes behind it is the other side's.
fn read_head(stream: &mut impl Read) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < MOST_BYTES {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
