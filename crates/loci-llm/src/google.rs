//! A signed request for a token, as a Google service account makes it (RS256).
//!
//! By hand, because it is one signature of `aws-lc-rs`, which is here for TLS anyway.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair;
use aws_lc_rs::signature::RSA_PKCS1_SHA256;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

use loci_http::Secret;

/// How long the request itself is good for, in seconds: the longest that is allowed.
const LIFETIME: i64 = 3600;

/// Makes the JWT with which a service account asks for a token; the error says what is wrong with the key.
pub fn service_account_jwt(
    email: &str,
    key_pem: &Secret,
    key_id: &str,
    audience: &str,
    now: i64,
) -> Result<Secret, String> {
    let body: String =
        key_pem.expose().lines().map(str::trim).filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(body).map_err(|_| "its private key is no PEM".to_owned())?;
    let pair = KeyPair::from_pkcs8(&der).or_else(|_| KeyPair::from_der(&der));
    let pair = pair.map_err(|_| "its private key cannot be read".to_owned())?;
    let header = json!({"alg": "RS256", "typ": "JWT", "kid": key_id}).to_string();
    let claims =
        json!({"iss": email, "scope": "https://www.googleapis.com/auth/cloud-platform", "aud": audience,
        "iat": now, "exp": now + LIFETIME})
        .to_string();
    let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let mut signature = vec![0; pair.public_modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
        .map_err(|_| "its private key cannot sign".to_owned())?;
    Ok(Secret::new(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::AsDer;
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    use super::*;

    #[test]
    fn token_request_is_signed_with_the_account_s_key() {
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let der = pair.as_der().unwrap();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(der.as_ref())
        );
        let jwt = service_account_jwt("me@p.iam", &Secret::new(pem), "k1", "http://t", 1_000).unwrap();
        let (text, signature) = jwt.expose().rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
        public.verify(text.as_bytes(), &signature).unwrap();
        let claims = URL_SAFE_NO_PAD.decode(text.split('.').nth(1).unwrap()).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!((&claims["iss"], &claims["exp"]), (&json!("me@p.iam"), &json!(4_600)));
        assert!(service_account_jwt("a", &Secret::new("nonsense!"), "k", "x", 0).is_err());
    }
}
