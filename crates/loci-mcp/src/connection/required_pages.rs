//! Calls that a server of the older era refuses until somebody has been at a page: its error names the pages, it tells when
//! what was to be done there is done, and is asked again then.
//!
//! What must stay true: a page is put to a person like any other question, and a call that somebody does not want to visit
//! a page for is not repeated.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Connection, server_requests};
use crate::message::RpcError;

/// The code of such an error.
pub(super) const PAGES_REQUIRED: i64 = -32042;
/// How often a call may be refused for pages, and for how many at once.
pub(super) const MOST_REFUSALS: usize = 3;
const MOST_PAGES: usize = 16;
/// How long the server has to say that it is done, before it is asked again anyway.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

impl Connection {
    /// Has somebody visit the pages that an error names, and waits until the server says that it is done; false when there
    /// are none, or somebody does not want to.
    pub(super) async fn visit_pages(&self, error: &RpcError) -> bool {
        let pages = error.data.get("elicitations").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if pages.is_empty() || pages.len() > MOST_PAGES {
            return false;
        }
        let asked = &self.shared.asked;
        let ids: HashSet<String> =
            pages.iter().filter_map(|it| Some(it["elicitationId"].as_str()?.to_owned())).collect();
        asked.await_pages(&ids);
        for page in pages {
            let mut params = page.clone();
            params["mode"] = json!("url");
            let (server, client) = (asked.server.clone(), asked.client.as_ref());
            let answer = server_requests::result(server, client, "elicitation/create", params).await;
            if !answer.is_ok_and(|answer| answer["action"] == "accept") {
                asked.forget_pages(&ids);
                return false;
            }
        }
        if tokio::time::timeout(LONGEST_WAIT, asked.pages_done(&ids)).await.is_err() {
            self.shared.log.note("it did not say that what was to be done at its page is done");
            asked.forget_pages(&ids);
        }
        true
    }
}
