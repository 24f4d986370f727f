//! Ids that look like the API's and count up, so that snapshots stay the same from run to run.

/// The counters behind the ids of one server.
#[derive(Debug)]
pub(crate) struct Ids {
    next_message: u64,
    next_tool_use: u64,
    next_request: u64,
}

impl Ids {
    pub(crate) fn starting_at(first: u64) -> Self {
        Self { next_message: first, next_tool_use: first, next_request: first }
    }

    pub(crate) fn message(&mut self) -> String {
        format!("msg_01{:022}", take(&mut self.next_message))
    }

    pub(crate) fn request(&mut self) -> String {
        format!("req_01{:022}", take(&mut self.next_request))
    }

    /// Returns the next `prefix` id that the request body does not hold yet.
    ///
    /// A conversation resumed against a second server already holds ids that the first one gave out.
    pub(crate) fn tool_use(&mut self, prefix: &str, body: &[u8]) -> String {
        loop {
            let id = format!("{prefix}_01{:022}", take(&mut self.next_tool_use));
            if !body.windows(id.len()).any(|it| it == id.as_bytes()) {
                return id;
            }
        }
    }
}

fn take(counter: &mut u64) -> u64 {
    *counter += 1;
    *counter - 1
}
