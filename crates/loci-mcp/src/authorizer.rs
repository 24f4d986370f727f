//! The seam for logins: whoever has credentials for servers with an address fills it.
//!
//! A transport asks for headers before each request and tells when a server wanted others. Values are secrets: they go to
//! the server's own origin and nowhere else, and into no log.

use std::future::Future;
use std::pin::Pin;

/// Something that takes a while.
pub type AuthorizerFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a server said when it refused a request. It has no `Debug`, so that no message can show what was sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Challenge {
    /// 401 or 403.
    pub status: u16,
    /// The `WWW-Authenticate` header.
    pub header: Option<String>,
    /// The `Authorization` header that was sent.
    pub authorization: Option<String>,
}

/// What is to be done about a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterChallenge {
    /// There are other headers now; the request is worth repeating, once.
    Retry,
    /// A person must log in first.
    NeedsLogin,
    /// Nothing can be done.
    Refused,
    /// Nothing can be done now, and why.
    Failed(String),
}

/// Who has credentials for a server.
pub trait Authorizer: Send + Sync {
    /// Returns the headers that say who asks; the error says why there are none.
    fn headers(&self) -> AuthorizerFuture<'_, Result<Vec<(String, String)>, String>>;

    /// Is told that a server refused them.
    fn challenged(&self, challenge: Challenge) -> AuthorizerFuture<'_, AfterChallenge>;
}
