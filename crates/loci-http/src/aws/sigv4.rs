//! Signature Version 4, by hand: the published cases make it safe, and the crate for it brings seventy others.
//!
//! A request is brought into one canonical form, hashed, and signed with a key that is good for one day, region and service.
//! The path is encoded again as it is sent (every service but S3 wants that); a query is sorted.

use std::collections::BTreeMap;

use aws_lc_rs::{digest, hmac};

use loci_core::hex::to_hex;

use super::AwsKeys;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// A request as far as it is signed.
#[derive(Debug)]
pub(super) struct CanonicalRequest<'a> {
    pub(super) method: &'a str,
    /// As it is sent.
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    /// All headers that are signed.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: &'a [u8],
}

/// What a key is good for.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    /// Date and time, as `x-amz-date` has them.
    pub(super) date: &'a str,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
}

impl Scope<'_> {
    fn day(&self) -> &str {
        self.date.split('T').next().unwrap_or_default()
    }

    fn credential(&self) -> String {
        format!("{}/{}/{}/aws4_request", self.day(), self.region, self.service)
    }
}

/// Returns the `authorization` header.
pub(super) fn authorization(request: &CanonicalRequest<'_>, scope: &Scope<'_>, keys: &AwsKeys) -> String {
    let text = string_to_sign(&request.canonical(), scope);
    let signature = signature(&text, scope, keys.secret_key.expose());
    format!(
        "{ALGORITHM} Credential={}/{}, SignedHeaders={}, Signature={signature}",
        keys.access_key,
        scope.credential(),
        request.signed_headers()
    )
}

impl CanonicalRequest<'_> {
    /// Returns the one form of the request.
    fn canonical(&self) -> String {
        let headers: String =
            self.sorted_headers().iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        format!(
            "{}\n{}\n{}\n{headers}\n{}\n{}",
            self.method,
            encoded(if self.path.is_empty() { "/" } else { self.path }, true),
            canonical_query(self.query),
            self.signed_headers(),
            to_hex(digest::digest(&digest::SHA256, self.body).as_ref())
        )
    }

    fn signed_headers(&self) -> String {
        self.sorted_headers().into_keys().collect::<Vec<_>>().join(";")
    }

    /// Names in lower case; values without the space around and with one space inside, several under one name joined.
    fn sorted_headers(&self) -> BTreeMap<String, String> {
        let mut sorted: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &self.headers {
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            let entry = sorted.entry(name.to_ascii_lowercase());
            entry.and_modify(|all| *all = format!("{all},{value}")).or_insert(value);
        }
        sorted
    }
}

fn string_to_sign(canonical: &str, scope: &Scope<'_>) -> String {
    let hash = to_hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
    format!("{ALGORITHM}\n{}\n{}\n{hash}", scope.date, scope.credential())
}

fn signature(text: &str, scope: &Scope<'_>, secret: &str) -> String {
    let sign = |key: &[u8], text: &str| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
    };
    let day = sign(format!("AWS4{secret}").as_bytes(), scope.day());
    let region = sign(&day, scope.region);
    let service = sign(&region, scope.service);
    let key = sign(&service, "aws4_request");
    to_hex(&sign(&key, text))
}

fn canonical_query(query: &str) -> String {
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (encoded(&decoded(name), false), encoded(&decoded(value), false))
        })
        .collect();
    pairs.sort();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

/// Encodes everything but the characters that never need it, and the slash in a path.
pub(crate) fn encoded(text: &str, is_path: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte as char),
            b'/' if is_path => out.push('/'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut idx = 0;
    while idx < bytes.len() {
        let code = text.get(idx + 1..idx + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[idx], code) {
            (b'%', Some(code)) => {
                out.push(code);
                idx += 3;
            }
            (byte, _) => {
                out.push(byte);
                idx += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Takes dots and doubled slashes out of a path, as the cases that say so expect.
    fn normalised(path: &str) -> String {
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            match part {
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let end = if path.ends_with('/') && !parts.is_empty() { "/" } else { "" };
        format!("/{}{end}", parts.join("/"))
    }

    #[test]
    fn published_cases_are_signed_alike() {
        let cases = std::fs::read_to_string("tests/fixtures/aws-sigv4.json").unwrap();
        let cases: Vec<Value> = serde_json::from_str(&cases).unwrap();
        assert_eq!(cases.len(), 40);
        for case in &cases {
            check(case);
        }
    }

    fn check(case: &Value) {
        let name = case["name"].as_str().unwrap();
        let text = case["request"].as_str().unwrap();
        let canonical = case["canonical"].as_str().unwrap();
        let (head, body) = text.split_once("\n\n").unwrap_or((text.trim_end_matches('\n'), ""));
        let (line, headers) = head.split_once('\n').unwrap();
        let (method, target) = line.split_once(' ').unwrap();
        let target = target.rsplit_once(' ').unwrap().0;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let is_double = name.starts_with("double");
        let path = if is_double { path.to_owned() } else { decoded(path) };
        let path = if case["normalize"] == true { normalised(&path) } else { path };
        let headers = headers.replace("\n ", " ");
        let mut signed: Vec<(String, String)> = headers
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .filter(|(name, _)| !name.eq_ignore_ascii_case("x-amz-date"))
            .collect();
        // The time of the case is in its canonical form.
        let date = canonical.lines().find_map(|line| line.strip_prefix("x-amz-date:")).unwrap();
        signed.push(("x-amz-date".to_owned(), date.to_owned()));
        if let Some(token) = case["token"].as_str().filter(|_| case["omit_token"] != true) {
            signed.push(("x-amz-security-token".to_owned(), token.to_owned()));
        }
        if case["sign_body"] == true {
            let hash = to_hex(digest::digest(&digest::SHA256, body.as_bytes()).as_ref());
            signed.push(("x-amz-content-sha256".to_owned(), hash));
        }
        let request = CanonicalRequest { method, path: &path, query, headers: signed, body: body.as_bytes() };
        assert_eq!(request.canonical(), canonical.trim_end(), "{name}");
        let Some(expected) = case["string_to_sign"].as_str() else { return };
        let credential: Vec<&str> = expected.lines().nth(2).unwrap().split('/').collect();
        let scope = Scope { date, region: credential[1], service: credential[2] };
        let text = string_to_sign(canonical.trim_end(), &scope);
        if !is_double {
            assert_eq!(text, expected.trim_end(), "{name}");
        }
        if let (Some(secret), Some(expected)) = (case["secret"].as_str(), case["signature"].as_str()) {
            assert_eq!(signature(&text, &scope, secret), expected.trim(), "{name}");
        }
    }
}
