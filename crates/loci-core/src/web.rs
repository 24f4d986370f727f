//! Pages and searches of the web, in the words of whoever asks for them: no client, no protocol.

/// A page that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// Its address, as the model wrote it.
    pub url: String,
    /// The host that was judged; the address must lead there and nowhere else.
    pub host: String,
    /// Whether somebody said that this very host may be contacted, wherever its name leads.
    pub may_be_private: bool,
}

/// What came of asking for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageAnswer {
    /// The page.
    Page(Page),
    /// It lies on another host, which nobody has judged.
    Elsewhere(Redirect),
}

/// A page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Where it was found, after redirects on the same host.
    pub url: String,
    /// The status of the answer.
    pub status: u16,
    /// The status in words.
    pub status_text: String,
    /// What kind of content it says it has, such as `text/html; charset=utf-8`.
    pub content_type: String,
    /// The content.
    pub body: Vec<u8>,
}

/// A redirect that was not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// The address that sent us on.
    pub from: String,
    /// Where to.
    pub to: String,
    /// The status of the answer.
    pub status: u16,
}

/// A search of the web.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebQuery {
    /// What is searched for.
    pub query: String,
    /// Only results of these domains, where any are named.
    pub allowed_domains: Vec<String>,
    /// No results of these domains.
    pub blocked_domains: Vec<String>,
}

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebFindings {
    /// Pages, best first.
    pub hits: Vec<WebHit>,
    /// What was said about them.
    pub text: String,
}

/// A page that a search found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebHit {
    /// Its title.
    pub title: String,
    /// Its address.
    pub url: String,
    /// Some words of it, where they were given.
    pub snippet: String,
}
