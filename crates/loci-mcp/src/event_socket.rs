//! A web socket that is only listened to: each message is an event. No MCP is spoken on it.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use reqwest::{Client, StatusCode, Url};
use tokio::time::{Interval, MissedTickBehavior};
use tokio_tungstenite::tungstenite::error::{CapacityError, Error};
use tokio_tungstenite::tungstenite::{Message as Frame, protocol::CloseFrame};

use crate::transport::web::{failed, refused};
use crate::transport::web_socket::{
    MOST_SILENT_PINGS, PING, Socket, check_accept, new_key, upgrade, upgrade_headers,
};

/// The largest message that is taken; a larger one ends the watch.
const MESSAGE_LIMIT: usize = 1 << 20;
/// How long the other side may take to answer.
const OPENING: Duration = Duration::from_secs(30);

/// Something that happened on a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketNews {
    /// A message.
    Text(String),
    /// A message that is no text, of so many bytes.
    Binary(usize),
    /// It is over, and why.
    Closed(String),
}

/// A socket that is listened to.
pub struct EventSocket {
    socket: Socket,
    pings: Interval,
    n_silent: u32,
}

impl EventSocket {
    /// Opens a socket by a client that was made for its address. It must have asked for HTTP 1.1 and follow no redirect.
    pub async fn open(client: &Client, url: &str, protocols: &[String]) -> Result<Self, String> {
        let url = request_url(url)?;
        let key = new_key();
        let protocols = (!protocols.is_empty()).then(|| protocols.join(", "));
        let headers = upgrade_headers(&key, protocols.as_deref()).map_err(|error| error.to_string())?;
        let request = client.get(url).headers(headers).send();
        let response = tokio::time::timeout(OPENING, request).await;
        let response = response.map_err(|_| format!("it did not answer within {} s", OPENING.as_secs()))?;
        let response = response.map_err(|error| failed(&error).to_string())?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(refused(response).await.to_string());
        }
        check_accept(&response, &key).map_err(|error| error.to_string())?;
        let socket = upgrade(response, MESSAGE_LIMIT).await.map_err(|error| error.to_string())?;
        let mut pings = tokio::time::interval(PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.tick().await;
        Ok(Self { socket, pings, n_silent: 0 })
    }

    /// Waits for what happens next. After the end nothing more does.
    pub async fn next(&mut self) -> SocketNews {
        loop {
            tokio::select! {
                frame = self.socket.next() => {
                    self.n_silent = 0;
                    if let Some(news) = news_of(frame) {
                        return news;
                    }
                }
                _ = self.pings.tick() => {
                    self.n_silent += 1;
                    if self.n_silent > MOST_SILENT_PINGS {
                        return SocketNews::Closed("the other side does not answer any more".to_owned());
                    }
                    if let Err(error) = self.socket.send(Frame::Ping(Vec::new().into())).await {
                        return SocketNews::Closed(format!("the connection broke off: {error}"));
                    }
                }
            }
        }
    }
}

/// Returns what a frame means; nothing where it only keeps the connection alive.
fn news_of(frame: Option<Result<Frame, Error>>) -> Option<SocketNews> {
    let Some(frame) = frame else {
        return Some(SocketNews::Closed("the other side closed it without a word".to_owned()));
    };
    Some(match frame {
        Ok(Frame::Text(text)) => SocketNews::Text(text.to_string()),
        Ok(Frame::Binary(bytes)) => SocketNews::Binary(bytes.len()),
        Ok(Frame::Close(farewell)) => SocketNews::Closed(close_text(farewell.as_ref())),
        Ok(Frame::Ping(_) | Frame::Pong(_) | Frame::Frame(_)) => return None,
        Err(Error::Capacity(CapacityError::MessageTooLong { .. })) => {
            SocketNews::Closed("a message was larger than 1 MiB; watch a feed that is filtered".to_owned())
        }
        Err(error) => SocketNews::Closed(format!("the connection broke off: {error}")),
    })
}

fn close_text(farewell: Option<&CloseFrame>) -> String {
    match farewell {
        None => "the other side closed it without a code".to_owned(),
        Some(farewell) if farewell.reason.is_empty() => {
            format!("the other side closed it with code {}", u16::from(farewell.code))
        }
        Some(farewell) => {
            format!("the other side closed it with code {}: {}", u16::from(farewell.code), farewell.reason)
        }
    }
}

/// Returns the address as the HTTP client knows it.
fn request_url(url: &str) -> Result<Url, String> {
    let (scheme, rest) = url.split_once(':').unwrap_or_default();
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "ws" => "http",
        "wss" => "https",
        _ => return Err("it is no address of a web socket".to_owned()),
    };
    Url::parse(&format!("{scheme}:{rest}")).map_err(|error| error.to_string())
}
