//! The port of this machine that a browser comes back to after a login.
//!
//! Only this machine can reach it. Whatever comes that is not the answer is told so and changes nothing; the listener goes
//! with whoever waits for it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The path that a browser comes back to.
const PATH: &str = "/callback";
/// How much of a request is read, and how long that may take.
const HEAD_LIMIT: usize = 16 << 10;
const HEAD_TIME: Duration = Duration::from_secs(5);

/// A port that is listened at.
pub(crate) struct Loopback {
    listener: TcpListener,
    /// The same port of the other kind of address: `localhost` may mean either.
    second: Option<TcpListener>,
    pub(crate) port: u16,
}

impl Loopback {
    /// Listens at a port, or at any that is free.
    pub(crate) async fn bind(port: Option<u16>) -> Result<Self, String> {
        let wanted = port.unwrap_or(0);
        let failed = |error: std::io::Error| match port {
            Some(port) => {
                format!("the port {port}, which the login is to come back to, cannot be listened at: {error}")
            }
            None => format!("no port can be listened at: {error}"),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        // A machine may have none of these addresses.
        let second = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await.ok();
        Ok(Self { listener, second, port })
    }

    /// Returns the address to come back to.
    pub(crate) fn redirect_uri(&self) -> String {
        redirect_uri(self.port)
    }

    /// Waits for the next browser that comes to the path; its page waits for [`Visitor::tell`].
    pub(crate) async fn next(&self) -> Visitor {
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                accepted = accept(self.second.as_ref()) => accepted,
            };
            let Ok((stream, _)) = accepted else {
                // Such as too many open files: it may pass.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            if let Ok(Some(visitor)) = tokio::time::timeout(HEAD_TIME, self.read(stream)).await {
                return visitor;
            }
        }
    }

    async fn read(&self, mut stream: TcpStream) -> Option<Visitor> {
        let mut head = Vec::new();
        let mut buffer = [0; 2048];
        while !head.windows(4).any(|it| it == b"\r\n\r\n") {
            let n = stream.read(&mut buffer).await.ok()?;
            if n == 0 || head.len() + n > HEAD_LIMIT {
                return None;
            }
            head.extend_from_slice(&buffer[..n]);
        }
        let head = String::from_utf8_lossy(&head);
        let mut words = head.lines().next().unwrap_or_default().split(' ');
        let url = match (words.next(), words.next()) {
            (Some("GET"), Some(target)) if target.starts_with('/') => {
                Url::parse(&format!("http://localhost:{}{target}", self.port)).ok()
            }
            _ => None,
        };
        match url.filter(|url| url.path() == PATH) {
            Some(url) => Some(Visitor { stream, url }),
            None => {
                answer(&mut stream, "404 Not Found", "There is nothing here").await;
                None
            }
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> std::io::Result<(TcpStream, std::net::SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// Returns the address to come back to at a port.
pub(crate) fn redirect_uri(port: u16) -> String {
    format!("http://localhost:{port}{PATH}")
}

/// A browser that came back.
pub(crate) struct Visitor {
    stream: TcpStream,
    /// The address that it came with.
    pub(crate) url: Url,
}

impl Visitor {
    /// Tells the person what came of it.
    pub(crate) async fn tell(mut self, outcome: &Result<(), String>) {
        match outcome {
            Ok(()) => answer(&mut self.stream, "200 OK", "You are logged in. This page can be closed").await,
            Err(why) => {
                answer(&mut self.stream, "400 Bad Request", &format!("The login failed: {why}")).await;
            }
        }
    }
}

/// Answers with a small page. A browser that has gone needs none.
async fn answer(stream: &mut TcpStream, status: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let page = format!("<!doctype html><meta charset=utf-8><title>loci</title><p>{text}.</p>");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
        page.len()
    );
    let written = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(page.as_bytes()).await?;
        stream.shutdown().await
    };
    if let Err(error) = written.await {
        tracing::debug!(target: "loci::mcp", %error, "a browser did not wait for its page");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn visit(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        said
    }

    #[tokio::test]
    async fn other_visits_are_turned_away_and_the_right_one_is_told_the_outcome() {
        let loopback = Loopback::bind(None).await.unwrap();
        let port = loopback.port;
        let visits = tokio::spawn(async move {
            let mut said = Vec::new();
            for request in [
                "GET /favicon.ico HTTP/1.1",
                "POST /callback HTTP/1.1",
                "nonsense",
                "GET /callback?code=1 HTTP/1.1",
            ] {
                said.push(visit(port, &format!("{request}\r\nHost: x\r\n\r\n")).await);
            }
            said
        });
        let visitor = loopback.next().await;
        assert_eq!(visitor.url.query(), Some("code=1"));
        visitor.tell(&Err("<b>".to_owned())).await;
        let said = visits.await.unwrap();
        assert!(said[..3].iter().all(|it| it.starts_with("HTTP/1.1 404")), "{said:?}");
        assert!(said[3].starts_with("HTTP/1.1 400") && said[3].contains("&lt;b&gt;"), "{}", said[3]);
    }

    #[tokio::test]
    async fn port_that_is_taken_is_named() {
        let first = Loopback::bind(None).await.unwrap();
        let said = Loopback::bind(Some(first.port)).await.err().unwrap();
        assert!(said.contains(&first.port.to_string()), "{said}");
        assert_eq!(first.redirect_uri(), format!("http://localhost:{}/callback", first.port));
    }
}
