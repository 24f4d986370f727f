//! The part of Amazon in the scripted model: binary frames, and a second reading of the signature, written apart from ours.

use crate::recorded::Recorded;
use base64::Engine;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Returns an event of the Messages API as Bedrock sends it.
pub fn frame(event: &Value) -> Vec<u8> {
    let bytes = base64::engine::general_purpose::STANDARD.encode(event.to_string());
    let payload = json!({"bytes": bytes, "p": "abcdefgh"}).to_string();
    framed(
        &[(":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event")],
        &payload,
    )
}

/// Returns an exception as Bedrock sends it in a stream.
pub fn bedrock_exception(kind: &str, message: &str) -> Vec<u8> {
    let payload = json!({"message": message}).to_string();
    framed(
        &[(":exception-type", kind), (":content-type", "application/json"), (":message-type", "exception")],
        &payload,
    )
}

fn framed(fields: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in fields {
        headers.push(name.len() as u8);
        headers.extend_from_slice(name.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&(value.len() as u16).to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let total = 12 + headers.len() + payload.len() + 4;
    let mut out = Vec::with_capacity(total);
    out.extend_from_slice(&(total as u32).to_be_bytes());
    out.extend_from_slice(&(headers.len() as u32).to_be_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out.extend_from_slice(&headers);
    out.extend_from_slice(payload.as_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out
}

/// Checks the signature of a request with the secret that it should be made with.
pub fn check_aws_signature(request: &Recorded, secret: &str) -> Result<(), String> {
    let said = request.header("authorization").ok_or("no signature")?;
    let part = |name: &str| {
        let rest = said.split_once(&format!("{name}="))?.1;
        rest.split(',').next().map(str::trim)
    };
    let credential: Vec<&str> = part("Credential").ok_or("no credential")?.split('/').collect();
    let [_, day, region, service, end] = credential[..] else { return Err("a strange credential".into()) };
    let names = part("SignedHeaders").ok_or("no headers")?;
    let headers: String = names
        .split(';')
        .map(|name| format!("{name}:{}\n", request.header(name).unwrap_or_default().trim()))
        .collect();
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let path: String = path
        .bytes()
        .map(|byte| match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => (byte as char).to_string(),
            byte if byte.is_ascii_alphanumeric() => (byte as char).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let body = hex(&Sha256::digest(&request.body));
    let canonical = format!("{}\n{path}\n{query}\n{headers}\n{names}\n{body}", request.method);
    let date = request.header("x-amz-date").ok_or("no date")?;
    let text = format!(
        "AWS4-HMAC-SHA256\n{date}\n{day}/{region}/{service}/{end}\n{}",
        hex(&Sha256::digest(canonical.as_bytes()))
    );
    let mut key = hmac(format!("AWS4{secret}").as_bytes(), day.as_bytes());
    for step in [region, service, "aws4_request", &text] {
        key = hmac(&key, step.as_bytes());
    }
    match part("Signature") == Some(hex(&key).as_str()) {
        true => Ok(()),
        false => Err(format!("the signature does not fit:\n{canonical}")),
    }
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0u8; 64];
    match key.len() > 64 {
        true => block[..32].copy_from_slice(&Sha256::digest(key)),
        false => block[..key.len()].copy_from_slice(key),
    }
    let pad = |mask: u8| block.map(|byte| byte ^ mask);
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
