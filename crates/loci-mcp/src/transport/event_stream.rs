//! Server-sent events as MCP uses them: bytes in, events with their ids out. Somebody else owns the socket.
//!
//! Unlike a model's answer, a stream can be taken up again behind the last event that came, so its id is kept, and so is
//! the pause that the server asks for. Any way of cutting the stream into chunks gives the same events; no more than the
//! limit of one is held.

use std::time::Duration;

/// The most bytes that one event may have.
const EVENT_LIMIT: usize = 64 << 20;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StreamedEvent {
    /// Its kind; `message` where it has none.
    pub(crate) kind: String,
    pub(crate) data: Vec<u8>,
}

/// Splits a stream into events.
#[derive(Debug, Default)]
pub(crate) struct EventReader {
    line: Vec<u8>,
    kind: String,
    data: Vec<u8>,
    has_data: bool,
    is_after_cr: bool,
    /// The id of the last event that came whole, to go on behind.
    last_id: Option<String>,
    next_id: Option<String>,
    /// How long to wait before going on, where the server says so.
    pause: Option<Duration>,
}

impl EventReader {
    /// Goes on behind an event.
    pub(crate) fn behind(last_id: Option<String>) -> Self {
        Self { last_id, ..Self::default() }
    }

    /// Takes in more bytes; returns the events that are whole. The error says that one is too large.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<StreamedEvent>, String> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.is_after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            match memchr::memchr2(b'\n', b'\r', rest) {
                Some(at) => {
                    self.line.extend_from_slice(&rest[..at]);
                    self.is_after_cr = rest[at] == b'\r';
                    rest = &rest[at + 1..];
                    events.extend(self.end_line());
                }
                None => {
                    self.line.extend_from_slice(rest);
                    rest = &[];
                }
            }
            if self.line.len() + self.data.len() > EVENT_LIMIT {
                return Err("an event of the stream is larger than 64 MB".to_owned());
            }
        }
        Ok(events)
    }

    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    pub(crate) fn pause(&self) -> Option<Duration> {
        self.pause
    }

    fn end_line(&mut self) -> Option<StreamedEvent> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &[][..]),
        };
        match field {
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => self.next_id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" => {
                let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.pause = number.map(Duration::from_millis).or(self.pause);
            }
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<StreamedEvent> {
        if let Some(id) = self.next_id.take() {
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        let (kind, data) = (std::mem::take(&mut self.kind), std::mem::take(&mut self.data));
        let kind = if kind.is_empty() { "message".to_owned() } else { kind };
        std::mem::take(&mut self.has_data).then_some(StreamedEvent { kind, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}: hello\r\nid: 1\ndata: {\"a\":\ndata:1}\n\nevent: endpoint\rdata: /post\r\rid: 2\nretry: 50\ndata\n\nid: 3\ndata: lost";

    fn read(chunk: usize) -> (Vec<String>, EventReader) {
        let mut reader = EventReader::default();
        let mut shown = Vec::new();
        for bytes in STREAM.as_bytes().chunks(chunk) {
            for event in reader.push(bytes).unwrap() {
                shown.push(format!("{} {}", event.kind, String::from_utf8(event.data).unwrap()));
            }
        }
        (shown, reader)
    }

    #[test]
    fn any_way_of_cutting_gives_the_same_events_and_the_last_id_is_kept() {
        for chunk in 1..=STREAM.len() {
            let (events, reader) = read(chunk);
            assert_eq!(events, ["message {\"a\":\n1}", "endpoint /post", "message "], "{chunk}");
            assert_eq!((reader.last_id(), reader.pause()), (Some("2"), Some(Duration::from_millis(50))));
        }
    }
}
