//! Questions about the cursor that follow a change of the window.
//!
//! Each change asks anew. An answer that comes when another change has asked meanwhile is of a window that is gone, and would
//! have the live region looked for in the wrong rows: only the last answer counts. One that never comes costs the patience
//! with the next ones, nothing else.

/// How many answers are still to come.
#[derive(Debug, Default)]
pub(super) struct CursorQueries {
    n_open: u32,
}

impl CursorQueries {
    /// Notes a question.
    pub(super) fn ask(&mut self) {
        self.n_open += 1;
    }

    /// Notes an answer; tells whether it is of the window as it is now.
    pub(super) fn answer(&mut self) -> bool {
        self.n_open = self.n_open.saturating_sub(1);
        self.n_open == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_counts_when_nothing_was_asked_since() {
        let mut queries = CursorQueries::default();
        queries.ask();
        assert!(queries.answer());
        queries.ask();
        queries.ask();
        assert!(!queries.answer(), "it is of the window before the last change");
        assert!(queries.answer());
    }
}
