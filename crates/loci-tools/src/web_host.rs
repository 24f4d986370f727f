//! The web as tools see it: pages, a model that reads them, and searches.
//!
//! A page goes to a small model with a question, in a request of its own; the conversation sees the answer alone. So
//! what a page says never stands beside what the user said.

use std::collections::HashMap;
use std::time::Duration;

use loci_core::message::Block;
use loci_core::web::{PageAnswer, PageRequest, WebFindings, WebQuery};
use tokio_util::sync::CancellationToken;

use crate::HostFuture;

/// The web, where a session has one.
pub trait WebHost: Send + Sync {
    /// Tells whether a rule names a host, so that it may lead to a private network.
    fn names_host(&self, host: &str) -> bool;

    /// Fetches a page; the error says why not.
    fn fetch_page(&self, request: PageRequest) -> HostFuture<'_, Result<PageAnswer, String>>;

    /// Opens a web socket to be listened to; the error says why not.
    fn open_socket(&self, request: SocketRequest) -> HostFuture<'_, Result<Box<dyn SocketEvents>, String>>;

    /// Has a model read something and answer a question about it; the error says why not.
    fn read_page<'a>(
        &'a self,
        content: Vec<Block>,
        cancel: &'a CancellationToken,
    ) -> HostFuture<'a, Result<String, String>>;

    /// Searches the web; the error says why not.
    fn search<'a>(
        &'a self,
        query: WebQuery,
        cancel: &'a CancellationToken,
    ) -> HostFuture<'a, Result<WebFindings, String>>;

    /// Returns a page that was fetched a short while ago.
    fn cached_page(&self, url: &str) -> Option<FetchedText>;

    /// Keeps a page for a while.
    fn keep_page(&self, url: String, page: FetchedText);

    /// Counts a search; false when the session has made as many as it may.
    fn count_search(&self) -> bool;
}

/// A web socket that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketRequest {
    /// Its address, as the model wrote it.
    pub url: String,
    /// The host that was judged; the address must lead there and nowhere else.
    pub host: String,
    /// The protocols that may be spoken on it.
    pub protocols: Vec<String>,
}

/// What happens on a web socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketEvent {
    /// A message.
    Message(String),
    /// It is over, and why.
    Closed(String),
}

/// A web socket that is listened to until it is dropped.
pub trait SocketEvents: Send {
    /// Waits for what happens next.
    fn next(&mut self) -> HostFuture<'_, SocketEvent>;
}

/// A page as a model can read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedText {
    /// The status of the answer, and the same in words.
    pub status: (u16, String),
    /// How many bytes it had.
    pub n_bytes: usize,
    /// What is read: text, or a document.
    pub content: PageContent,
    /// What there is to say besides, such as where a file was saved.
    pub note: Option<String>,
}

/// What of a page is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageContent {
    /// Text; HTML is Markdown by now.
    Text(String),
    /// A PDF document, in base64.
    Pdf(String),
    /// Nothing that could be read.
    Nothing,
}

/// Pages that were fetched a short while ago, the oldest going first.
#[derive(Debug)]
pub struct PageCache {
    pages: HashMap<String, (Duration, FetchedText)>,
    lifetime: Duration,
}

/// How many pages are kept.
const MOST_PAGES: usize = 50;

impl PageCache {
    /// Makes a cache whose pages are good for so long.
    pub fn new(lifetime: Duration) -> Self {
        Self { pages: HashMap::new(), lifetime }
    }

    /// Returns a page, if it was kept not too long before `now`, a time since any one point.
    pub fn page(&self, url: &str, now: Duration) -> Option<FetchedText> {
        let (kept, page) = self.pages.get(url)?;
        (now.saturating_sub(*kept) < self.lifetime).then(|| page.clone())
    }

    /// Keeps a page.
    pub fn keep(&mut self, url: String, page: FetchedText, now: Duration) {
        self.pages.retain(|_, (kept, _)| now.saturating_sub(*kept) < self.lifetime);
        if self.pages.len() >= MOST_PAGES {
            let oldest = self.pages.iter().min_by_key(|(_, (kept, _))| *kept).map(|(url, _)| url.clone());
            oldest.and_then(|url| self.pages.remove(&url));
        }
        self.pages.insert(url, (now, page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> FetchedText {
        FetchedText {
            status: (200, "OK".to_owned()),
            n_bytes: text.len(),
            content: PageContent::Text(text.to_owned()),
            note: None,
        }
    }

    #[test]
    fn pages_are_kept_for_their_time_and_the_oldest_goes_first() {
        let seconds = Duration::from_secs;
        let mut cache = PageCache::new(seconds(900));
        cache.keep("a".to_owned(), text("old"), seconds(10));
        assert_eq!(cache.page("a", seconds(909)), Some(text("old")));
        assert_eq!(cache.page("a", seconds(910)), None);
        for n in 0..MOST_PAGES {
            cache.keep(format!("{n}"), text("new"), seconds(20 + n as u64));
        }
        assert_eq!(cache.page("a", seconds(30)), None);
        assert_eq!((cache.page("0", seconds(30)), cache.pages.len()), (Some(text("new")), MOST_PAGES));
    }
}
