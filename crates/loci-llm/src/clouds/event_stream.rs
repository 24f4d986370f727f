//! Amazon's binary event streams, as Bedrock answers in them.
//!
//! A frame, big endian: total length u32, length of the headers u32, CRC32 of these eight bytes, headers, payload, CRC32 of
//! everything before it. A header: length of its name u8, name, type u8, value. `:message-type` says `event` (then
//! `:event-type` `chunk`, payload `{"bytes": BASE64}` of one event of the Messages API), `exception` or `error`.
//!
//! What comes out are events of the Messages API; what went wrong comes out as its `error` event.
//!
//! By hand, because the vendor's crate brings its whole stack along for what is one page (the checksum is `crc32fast`'s); its
//! published frames are the test.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

use crate::framing::{Frame, FrameError, FrameReader};

/// The most bytes of a frame.
const FRAME_CAP: usize = 16 * 1024 * 1024;
/// The most bytes of its headers.
const HEADERS_CAP: usize = 128 * 1024;
/// The two lengths and their checksum.
const PRELUDE: usize = 12;
/// The checksum at the end.
const CHECKSUM: usize = 4;

/// Cuts a byte stream into events of the Messages API.
#[derive(Debug, Default)]
pub(crate) struct EventStreamReader {
    input: Vec<u8>,
    start: usize,
    /// The event that is lent.
    name: String,
    data: Vec<u8>,
}

/// What a frame says, as far as it matters.
#[derive(Debug, Default, PartialEq, Eq)]
struct Message {
    message_type: String,
    event_type: String,
    exception_type: String,
    error_code: String,
    error_message: String,
    payload: Vec<u8>,
}

#[derive(Deserialize)]
struct Chunk {
    bytes: String,
}

/// Tells whether bytes begin like a frame, whatever a proxy calls them.
pub(crate) fn is_event_stream(bytes: &[u8]) -> bool {
    bytes.len() >= PRELUDE && number(bytes, 8) == crc32fast::hash(&bytes[..8])
}

impl FrameReader for EventStreamReader {
    fn push(&mut self, bytes: &[u8]) {
        self.input.drain(..self.start);
        self.start = 0;
        self.input.extend_from_slice(bytes);
    }

    fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        loop {
            let rest = &self.input[self.start..];
            let Some(length) = frame_length(rest)? else { return Ok(None) };
            if rest.len() < length {
                return Ok(None);
            }
            let message = Message::read(&rest[..length])?;
            self.start += length;
            if let Some((name, data)) = message.event()? {
                (self.name, self.data) = (name, data);
                return Ok(Some(Frame { event: self.name.as_str().into(), data: &self.data }));
            }
        }
    }

    fn last_frame(&mut self) -> Option<Frame<'_>> {
        None
    }
}

/// Reads the length of the next frame; `None` until its first bytes are there.
fn frame_length(bytes: &[u8]) -> Result<Option<usize>, FrameError> {
    if bytes.len() < PRELUDE {
        return Ok(None);
    }
    if !is_event_stream(bytes) {
        return Err(FrameError::Corrupt("the checksum of a frame's head is wrong"));
    }
    let (length, headers) = (number(bytes, 0) as usize, number(bytes, 4) as usize);
    if length > FRAME_CAP {
        return Err(FrameError::TooLarge { cap: FRAME_CAP });
    }
    if headers > HEADERS_CAP || PRELUDE + headers + CHECKSUM > length {
        return Err(FrameError::Corrupt("the headers of a frame are longer than the frame"));
    }
    Ok(Some(length))
}

impl Message {
    /// Reads one whole frame.
    fn read(frame: &[u8]) -> Result<Self, FrameError> {
        let end = frame.len() - CHECKSUM;
        if number(frame, end) != crc32fast::hash(&frame[..end]) {
            return Err(FrameError::Corrupt("the checksum of a frame is wrong"));
        }
        let payload_start = PRELUDE + number(frame, 4) as usize;
        let mut message = Self { payload: frame[payload_start..end].to_vec(), ..Self::default() };
        let mut headers = &frame[PRELUDE..payload_start];
        while !headers.is_empty() {
            headers = message.take_header(headers)?;
        }
        Ok(message)
    }

    /// Reads one header and returns what follows it.
    fn take_header<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], FrameError> {
        let cut = FrameError::Corrupt("a header of a frame is cut short");
        let take = |bytes: &'a [u8], n: usize| bytes.split_at_checked(n).ok_or(cut);
        let (length, rest) = take(bytes, 1)?;
        let (name, rest) = take(rest, usize::from(length[0]))?;
        let name = std::str::from_utf8(name)
            .map_err(|_| FrameError::Corrupt("the name of a header is not UTF-8"))?;
        if name.is_empty() {
            return Err(FrameError::Corrupt("a header of a frame has no name"));
        }
        let (kind, rest) = take(rest, 1)?;
        let length = match kind[0] {
            0 | 1 => return Ok(rest),
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            9 => 16,
            6 | 7 => {
                let (length, rest) = take(rest, 2)?;
                let (value, rest) = take(rest, usize::from(u16::from_be_bytes([length[0], length[1]])))?;
                if kind[0] == 7 {
                    let value = std::str::from_utf8(value)
                        .map_err(|_| FrameError::Corrupt("the value of a header is not UTF-8"))?;
                    self.note(name, value);
                }
                return Ok(rest);
            }
            _ => return Err(FrameError::Corrupt("a header of a frame has no type that is known")),
        };
        take(rest, length).map(|(_, rest)| rest)
    }

    fn note(&mut self, name: &str, value: &str) {
        let place = match name {
            ":message-type" => &mut self.message_type,
            ":event-type" => &mut self.event_type,
            ":exception-type" => &mut self.exception_type,
            ":error-code" => &mut self.error_code,
            ":error-message" => &mut self.error_message,
            _ => return,
        };
        value.clone_into(place);
    }

    /// Returns the event of the Messages API that is inside; kinds we do not know have none.
    fn event(&self) -> Result<Option<(String, Vec<u8>)>, FrameError> {
        match self.message_type.as_str() {
            "exception" => {
                let said: serde_json::Value = serde_json::from_slice(&self.payload).unwrap_or_default();
                let words = said["message"].as_str().or_else(|| said["originalMessage"].as_str());
                let words = words.map_or_else(|| self.exception_type.clone(), str::to_owned);
                Ok(Some(error_event(error_type(&self.exception_type), &words)))
            }
            "error" => Ok(Some(error_event(error_type(&self.error_code), &self.error_message))),
            _ if self.event_type == "chunk" => {
                let bad = FrameError::Corrupt("a chunk of the stream is not the JSON we expect");
                let chunk: Chunk = serde_json::from_slice(&self.payload).map_err(|_| bad)?;
                let data = STANDARD.decode(chunk.bytes.as_bytes()).map_err(|_| bad)?;
                Ok(Some((String::new(), data)))
            }
            _ => Ok(None),
        }
    }
}

/// Returns what the Messages API calls an exception of Bedrock.
fn error_type(exception: &str) -> &'static str {
    match exception.to_ascii_lowercase().trim_end_matches("exception") {
        "throttling" | "toomanyrequests" => "rate_limit_error",
        "serviceunavailable" => "overloaded_error",
        "validation" => "invalid_request_error",
        "accessdenied" => "permission_error",
        "modeltimeout" => "timeout_error",
        _ => "api_error",
    }
}

fn error_event(kind: &str, message: &str) -> (String, Vec<u8>) {
    let event = json!({"type": "error", "error": {"type": kind, "message": message}});
    ("error".to_owned(), event.to_string().into_bytes())
}

/// Reads a number of four bytes; zero where there are none.
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|it| it.try_into().ok()).map_or(0, u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Makes a frame as Bedrock does.
    fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let mut head = Vec::new();
        for (name, value) in headers {
            head.push(name.len() as u8);
            head.extend_from_slice(name.as_bytes());
            head.push(7);
            head.extend_from_slice(&(value.len() as u16).to_be_bytes());
            head.extend_from_slice(value.as_bytes());
        }
        let total = PRELUDE + head.len() + payload.len() + CHECKSUM;
        let mut out = Vec::new();
        out.extend_from_slice(&(total as u32).to_be_bytes());
        out.extend_from_slice(&(head.len() as u32).to_be_bytes());
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(payload);
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        out
    }

    fn chunk(event: &str) -> Vec<u8> {
        let payload = json!({"bytes": STANDARD.encode(event), "p": "abc"}).to_string();
        frame(&[(":message-type", "event"), (":event-type", "chunk")], payload.as_bytes())
    }

    fn read_all<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<String>, FrameError> {
        let mut reader = EventStreamReader::default();
        let mut out = Vec::new();
        for bytes in chunks {
            reader.push(bytes);
            while let Some(frame) = reader.next_frame()? {
                out.push(format!("{}={}", frame.event, String::from_utf8_lossy(frame.data)));
            }
        }
        Ok(out)
    }

    #[test]
    fn published_frames_are_read_and_broken_ones_refused() {
        let read = |name: &str| {
            let bytes = std::fs::read(format!("tests/fixtures/aws-event-stream/{name}")).unwrap();
            frame_length(&bytes).and_then(|length| match length {
                Some(length) if length == bytes.len() => Message::read(&bytes),
                _ => Err(FrameError::Corrupt("not one whole frame")),
            })
        };
        for name in ["valid_empty_payload", "valid_no_headers", "valid_with_all_headers_and_payload"] {
            assert!(read(name).is_ok(), "{name}: {:?}", read(name));
        }
        assert_eq!(read("valid_with_all_headers_and_payload").unwrap().payload, b"some payload");
        for name in [
            "invalid_header_name_length",
            "invalid_header_name_length_too_long",
            "invalid_header_string_length_cut_off",
            "invalid_header_string_value_length",
            "invalid_header_value_type",
            "invalid_headers_length",
            "invalid_message_checksum",
            "invalid_prelude_checksum",
        ] {
            assert!(read(name).is_err(), "{name}");
        }
    }

    #[test]
    fn exceptions_become_errors_of_the_messages_api() {
        let exception = |kind: &str| {
            frame(&[(":message-type", "exception"), (":exception-type", kind)], br#"{"message":"Slow down"}"#)
        };
        let read = |bytes: Vec<u8>| read_all([bytes.as_slice()]).unwrap().join(" ");
        assert_eq!(
            read(exception("throttlingException")),
            r#"error={"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}}"#
        );
        assert!(read(exception("serviceUnavailableException")).contains("overloaded_error"));
        assert!(read(exception("validationException")).contains("invalid_request_error"));
        let error = frame(&[(":message-type", "error"), (":error-code", "x"), (":error-message", "no")], b"");
        assert_eq!(read(error), r#"error={"type":"error","error":{"type":"api_error","message":"no"}}"#);
        assert_eq!(read(frame(&[(":message-type", "event"), (":event-type", "new")], b"x")), "");
    }

    #[test]
    fn endless_frames_are_refused() {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(FRAME_CAP as u32 + 1).to_be_bytes());
        bytes.extend_from_slice(&0u32.to_be_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        assert_eq!(read_all([bytes.as_slice()]), Err(FrameError::TooLarge { cap: FRAME_CAP }));
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            events in proptest::collection::vec("\\PC{0,20}", 0..6),
            cuts in proptest::collection::vec(1usize..30, 1..20),
        ) {
            let bytes: Vec<u8> = events.iter().flat_map(|event| chunk(event)).collect();
            let expected: Vec<String> = events.iter().map(|event| format!("={event}")).collect();
            let mut rest = bytes.as_slice();
            let mut chunks = Vec::new();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, tail) = rest.split_at((*cut).min(rest.len()));
                chunks.push(chunk);
                rest = tail;
            }
            prop_assert_eq!(read_all(chunks).unwrap(), expected);
        }

        #[test]
        fn noise_is_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(read_all([bytes.as_slice()]));
        }
    }
}
