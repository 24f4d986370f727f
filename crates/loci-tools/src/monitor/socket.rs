//! Watching a web socket: each message is an event.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use loci_core::permission::socket_host;
use loci_core::tool::{CallEffects, Interaction};
use serde_json::Value;
use tokio::time::Instant;

use super::{MINUTE, MOST_CHARS, MOST_LINES, TIME_IS_OVER};
use crate::background_tasks::{BackgroundStatus, TaskHandle};
use crate::{Host, SocketEvent, SocketEvents, SocketRequest};

/// The most letters of an address.
const MOST_URL: usize = 2_000;

/// Returns what opening a socket does: a person is asked about each one, whatever rules allow.
pub(super) fn effects(source: &Value) -> CallEffects {
    let url = source["url"].as_str().unwrap_or_default();
    CallEffects {
        hosts: socket_host(url).into_iter().collect(),
        interaction: Some(Interaction::Confirmation),
        ..CallEffects::unknown(format!("a connection to `{url}` is kept open"))
    }
}

/// Says what is wrong with what a call names.
pub(super) fn check(source: &Value) -> Result<(), String> {
    let url = source["url"].as_str().unwrap_or_default();
    let bad = |why: &str| Err(format!("`ws.url`: {why}."));
    if url.len() > MOST_URL || !url.is_ascii() || url.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        return bad("give an address in plain letters, without spaces");
    }
    let authority = url.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(rest));
    match (socket_host(url), authority) {
        (None, _) | (_, None) => return bad("it is no address of a web socket (`ws://` or `wss://`)"),
        (_, Some(authority)) if authority.contains('@') => {
            return bad("it must not have a name or password in it");
        }
        _ => {}
    }
    let mut seen: Vec<String> = protocols(source);
    if seen.iter().any(|name| name.is_empty() || !name.bytes().all(is_token)) {
        return Err("`ws.protocols`: each must be a name without spaces and separators.".to_owned());
    }
    seen.sort();
    match seen.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err("`ws.protocols`: one is named twice.".to_owned()),
        false => Ok(()),
    }
}

/// Tells whether a byte may be part of the name of a protocol (RFC 7230, a token).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn protocols(source: &Value) -> Vec<String> {
    let names = source["protocols"].as_array().into_iter().flatten();
    names.map(|name| name.as_str().unwrap_or_default().to_owned()).collect()
}

/// Opens the socket that a call names.
pub(super) async fn open(source: &Value, host: &dyn Host) -> Result<Box<dyn SocketEvents>, String> {
    let url = source["url"].as_str().unwrap_or_default().to_owned();
    let web = host.web().ok_or("This session has no way to the web.")?;
    let judged = socket_host(&url).ok_or("The address leads nowhere.")?;
    let request = SocketRequest { url: url.clone(), host: judged, protocols: protocols(source) };
    web.open_socket(request).await.map_err(|why| format!("`{url}` could not be opened: {why}"))
}

/// Tells each message, until the socket is closed or is not to be watched any more.
pub(super) async fn listen(
    mut socket: Box<dyn SocketEvents>,
    task: TaskHandle,
    limit: Option<Duration>,
    output: &Path,
) {
    let lines = task.lines();
    let (mut since, mut n_messages) = (Instant::now(), 0_usize);
    let over = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(over);
    let status = loop {
        let event = tokio::select! {
            event = socket.next() => event,
            () = task.stop.cancelled() => break BackgroundStatus::Killed(task.stop_reason()),
            () = &mut over => {
                lines.tell(vec![TIME_IS_OVER.to_owned()]);
                break BackgroundStatus::Killed("its time is over".to_owned());
            }
        };
        let text = match event {
            SocketEvent::Message(text) => text,
            SocketEvent::Closed(why) => {
                lines.tell(vec![format!("[Closed: {why}]")]);
                break BackgroundStatus::Completed;
            }
        };
        keep(output, &text);
        if since.elapsed() > MINUTE {
            (since, n_messages) = (Instant::now(), 0);
        }
        n_messages += 1;
        lines.tell(vec![text.chars().take(MOST_CHARS).collect()]);
        if n_messages > MOST_LINES {
            lines.tell(vec![format!(
                "[Stopped: more than {MOST_LINES} messages came within a minute. Watch a feed that is filtered.]"
            )]);
            break BackgroundStatus::Killed("too much came".to_owned());
        }
    };
    task.end(status, None);
}

/// Adds a message to the task's file. What cannot be written was told all the same.
fn keep(output: &Path, text: &str) {
    let file = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(output);
    drop(file.and_then(|mut file| writeln!(file, "{text}")));
}
