//! The page that shows the figures: prose by hand, tables by the bench, between two marks.

use anyhow::Context;
use std::path::Path;

pub(crate) const PATH: &str = "docs/benchmarks.md";

/// The part of the page with the peers.
pub(crate) const PEERS: &str = "bench";
/// The part with the cost of sessions by their size.
pub(crate) const SESSIONS: &str = "bench sessions";
/// The part with the cost of permission decisions.
pub(crate) const PERMISSIONS: &str = "bench permissions";
/// The part with the cost of the steps before a request.
pub(crate) const CONTEXT: &str = "bench context";
/// The part with the cost of file history.
pub(crate) const HISTORY: &str = "bench history";
/// The part with the cost of agents.
pub(crate) const AGENTS: &str = "bench agents";
/// The part with the cost of hooks.
pub(crate) const HOOKS: &str = "bench hooks";
/// The part with the cost of MCP servers.
pub(crate) const MCP: &str = "bench mcp";
/// The part with the cost of memories.
pub(crate) const MEMORY: &str = "bench memory";
/// The part with the cost of settings and instruction files.
pub(crate) const SETTINGS: &str = "bench settings";
/// The part with what the requests beside a conversation cost.
pub(crate) const SIDE_COST: &str = "bench side-cost";
/// The part about skills and plugins.
pub(crate) const SKILLS: &str = "bench skills";
/// The part with what the server of a team's memories can do.
pub(crate) const TEAM: &str = "bench team";

/// The part with what lookups in a compacted conversation find.
pub(crate) const RECALL: &str = "bench recall";

/// The part with how long it takes to play sessions again.
pub(crate) const REPLAY: &str = "bench replay";

/// The part with what the sandbox adds.
pub(crate) const SANDBOX: &str = "bench sandbox";

/// The part with what a client that drives the program costs.
pub(crate) const SDK: &str = "bench sdk";

/// The part with what searching sessions costs.
pub(crate) const SEARCH: &str = "bench search";

/// The part with what the terminal interface costs.
pub(crate) const TERMINAL: &str = "bench terminal";

/// Replaces what stands between the marks of one part of the page.
pub(crate) fn write(root: &Path, part: &str, text: &str) -> anyhow::Result<()> {
    let path = root.join(PATH);
    let page = std::fs::read_to_string(&path).with_context(|| format!("Failed to read `{PATH}`"))?;
    let page = replaced(&page, part, text)
        .with_context(|| format!("Failed to find the marks of `{part}` in `{PATH}`"))?;
    std::fs::write(&path, page).with_context(|| format!("Failed to write `{PATH}`"))
}

fn replaced(page: &str, part: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {part}: begin -->"), format!("<!-- {part}: end -->"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n\n{}\n\n{end}{after}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_of_a_part_changes() {
        let page =
            "# Page\n\n<!-- a: begin -->\nold\n<!-- a: end -->\n\n<!-- b: begin -->\n<!-- b: end -->\n";
        let new = replaced(page, "a", "new\n").unwrap();
        assert_eq!(
            new,
            "# Page\n\n<!-- a: begin -->\n\nnew\n\n<!-- a: end -->\n\n<!-- b: begin -->\n<!-- b: end -->\n"
        );
        assert_eq!(replaced(&new, "a", "new").as_deref(), Some(new.as_str()));
        assert_eq!(replaced(page, "c", "new"), None);
    }
}
