//! A small HTTP server on loopback that stands for somebody else's: a token service, an instance's metadata, a web page.
//!
//! A function makes each answer of its request, and the requests are kept.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;

use crate::recorded::{HttpVersion, Recorded};

/// A running server; its thread ends with the process.
#[derive(Clone, Debug)]
pub struct HttpDouble {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Recorded>>>,
}

impl HttpDouble {
    /// Starts it; `answer` gives a status and a body.
    ///
    /// # Panics
    ///
    /// If no port can be had.
    pub fn start(answer: impl Fn(&Recorded) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port of loopback");
        let address = listener.local_addr().expect("it has an address");
        let requests: Arc<Mutex<Vec<Recorded>>> = Arc::default();
        let kept = Arc::clone(&requests);
        let answer = Arc::new(Mutex::new(answer));
        std::thread::spawn(move || {
            for (connection, mut stream) in listener.incoming().flatten().enumerate() {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                // A connection on which nothing is asked yet must not hold up the others.
                std::thread::spawn(move || {
                    let Some(request) = read(&mut stream, connection) else { return };
                    let (status, body) = answer.lock().unwrap_or_else(PoisonError::into_inner)(&request);
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                    let head = format!(
                        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                        body.len()
                    );
                    // A client that has gone wants no answer.
                    stream.write_all(format!("{head}{body}").as_bytes()).ok();
                });
            }
        });
        Self { address, requests }
    }

    /// Returns where it is, without a slash at the end.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns its host and port.
    pub fn authority(&self) -> String {
        self.address.to_string()
    }

    /// Returns the requests that came, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns method and path of each request.
    pub fn paths(&self) -> Vec<String> {
        self.requests().iter().map(|it| format!("{} {}", it.method, it.path)).collect()
    }

    /// Returns the bodies of the requests.
    pub fn bodies(&self) -> Vec<String> {
        self.requests().iter().map(|it| String::from_utf8_lossy(&it.body).into_owned()).collect()
    }
}

/// Reads one request; none where the client goes before its end.
fn read(stream: &mut TcpStream, connection: usize) -> Option<Recorded> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let n = stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&buffer[..n]);
        let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, value)| value.parse::<usize>().ok()).unwrap_or(0);
        let body = &bytes[end + 4..];
        if body.len() < length {
            continue;
        }
        let body = Bytes::copy_from_slice(&body[..length]);
        return Some(Recorded {
            method,
            path,
            headers,
            json: serde_json::from_slice(&body).unwrap_or_default(),
            body,
            arrived: Instant::now(),
            http_version: HttpVersion::Http11,
            connection,
            violations: Vec::new(),
        });
    }
}
