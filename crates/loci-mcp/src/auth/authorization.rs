//! The page that a person is sent to, and the address that they come back with.
//!
//! An address counts when it carries the state that was sent. Its issuer must be the one that was asked, where the issuer
//! says that its answers name it or where one is named (RFC 9207): otherwise the code of one could be handed to another.

use reqwest::Url;

use super::pkce::Pkce;
use crate::names::brief;

/// What a person is asked to allow.
pub(crate) struct AuthorizationRequest<'a> {
    pub(crate) endpoint: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) redirect_uri: &'a str,
    pub(crate) scope: Option<&'a str>,
    pub(crate) resource: Option<&'a str>,
    pub(crate) state: &'a str,
    pub(crate) pkce: &'a Pkce,
}

/// Returns the address of the page.
pub(crate) fn authorization_url(request: &AuthorizationRequest<'_>) -> Result<Url, String> {
    let mut url = Url::parse(request.endpoint)
        .map_err(|error| format!("the page to log in at has no address: {error}"))?;
    let mut pairs = vec![
        ("response_type", "code"),
        ("client_id", request.client_id),
        ("redirect_uri", request.redirect_uri),
        ("code_challenge", &request.pkce.challenge),
        ("code_challenge_method", "S256"),
        ("state", request.state),
    ];
    pairs.extend(request.scope.map(|scope| ("scope", scope)));
    pairs.extend(request.resource.map(|resource| ("resource", resource)));
    // Without asking anew, what renews a token is often not given.
    let wants_offline =
        request.scope.is_some_and(|it| it.split_whitespace().any(|it| it == "offline_access"));
    pairs.extend(wants_offline.then_some(("prompt", "consent")));
    url.query_pairs_mut().extend_pairs(pairs);
    Ok(url)
}

/// What an answer must be.
#[derive(Clone)]
pub(crate) struct ExpectedAnswer {
    pub(crate) state: String,
    pub(crate) issuer: String,
    /// Whether the issuer says that it names itself.
    pub(crate) must_name_issuer: bool,
}

/// Why an answer gives no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerProblem {
    /// It is no answer to what was asked; the real one may come yet.
    NotOurs(String),
    /// The login is over without a code.
    Refused(String),
}

/// Returns the code of an answer.
pub(crate) fn read_answer(url: &Url, expected: &ExpectedAnswer) -> Result<String, AnswerProblem> {
    let get =
        |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    match get("state") {
        Some(state) if state == expected.state => {}
        Some(_) => return Err(AnswerProblem::NotOurs("it carries another state than was sent".to_owned())),
        None => return Err(AnswerProblem::NotOurs("it carries no state".to_owned())),
    }
    match get("iss") {
        Some(issuer) if issuer == expected.issuer => {}
        Some(issuer) => {
            let text =
                format!("the answer is of another issuer, `{}`; nothing was sent there", brief(&issuer));
            return Err(AnswerProblem::Refused(text));
        }
        None if expected.must_name_issuer => {
            let text = "the answer does not name its issuer, which says that its answers do".to_owned();
            return Err(AnswerProblem::Refused(text));
        }
        None => {}
    }
    if let Some(error) = get("error") {
        let why = get("error_description").unwrap_or_default();
        let text = format!("the login was refused: {} {}", brief(&error), brief(&why));
        return Err(AnswerProblem::Refused(text.trim_end().to_owned()));
    }
    get("code")
        .filter(|code| !code.is_empty())
        .ok_or_else(|| AnswerProblem::Refused("the answer has no code".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_asked_for_with_everything_and_exactly() {
        let pkce = Pkce { verifier: "v".to_owned(), challenge: "ch".to_owned() };
        let request = AuthorizationRequest {
            endpoint: "https://as/a?tenant=1",
            client_id: "c d",
            redirect_uri: "http://localhost:1/callback",
            scope: Some("a offline_access"),
            resource: Some("https://h/mcp"),
            state: "st",
            pkce: &pkce,
        };
        let url = authorization_url(&request).unwrap();
        assert_eq!(
            url.as_str(),
            "https://as/a?tenant=1&response_type=code&client_id=c+d&redirect_uri=http%3A%2F%2Flocalhost%3A1%2Fcallback\
             &code_challenge=ch&code_challenge_method=S256&state=st&scope=a+offline_access\
             &resource=https%3A%2F%2Fh%2Fmcp&prompt=consent"
        );
        let bare = AuthorizationRequest { scope: None, resource: None, ..request };
        let url = authorization_url(&bare).unwrap();
        assert!(!url.as_str().contains("scope=") && !url.as_str().contains("resource="), "{url}");
    }

    #[test]
    fn answers_count_with_their_state_and_of_their_issuer() {
        let expected = ExpectedAnswer {
            state: "st".to_owned(),
            issuer: "https://as".to_owned(),
            must_name_issuer: false,
        };
        let strict = ExpectedAnswer { must_name_issuer: true, ..expected.clone() };
        for (query, expected, shown) in [
            ("code=c&state=st", &expected, "c"),
            ("code=c&state=st&iss=https%3A%2F%2Fas", &strict, "c"),
            ("code=c&state=other", &expected, "not ours"),
            ("code=c", &expected, "not ours"),
            ("error=access_denied&state=other", &expected, "not ours"),
            ("code=c&state=st&iss=https://evil", &expected, "refused"),
            ("code=c&state=st&iss=https://as/", &expected, "refused"),
            ("code=c&state=st", &strict, "refused"),
            ("error=access_denied&error_description=no&state=st", &expected, "refused"),
            ("state=st", &expected, "refused"),
            ("code=&state=st", &expected, "refused"),
        ] {
            let url = Url::parse(&format!("http://localhost:1/callback?{query}")).unwrap();
            let found = match read_answer(&url, expected) {
                Ok(code) => code,
                Err(AnswerProblem::NotOurs(_)) => "not ours".to_owned(),
                Err(AnswerProblem::Refused(_)) => "refused".to_owned(),
            };
            assert_eq!(found, shown, "{query}");
        }
    }
}
