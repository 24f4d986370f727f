//! Which tools fit a query best: by name first, then by what they do. The same query gives the same tools in the same order.

use super::SearchableTool;

/// What a word counts that is a part of the name, is within one, or is in the description.
const PART: usize = 10;
const WITHIN: usize = 5;
const DESCRIPTION: usize = 2;

/// Returns the names of the tools that fit, the best first; those that are selected by name, in the order they were asked for.
pub(super) fn find(query: &str, most: usize, tools: &[SearchableTool]) -> Vec<String> {
    if let Some(names) = query.trim().strip_prefix("select:") {
        return selected(names, tools);
    }
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    // A name that is written out is meant.
    if let [word] = &words[..]
        && let Some(tool) = tools.iter().find(|tool| tool.name.eq_ignore_ascii_case(word))
    {
        return vec![tool.name.clone()];
    }
    let mut scored: Vec<(usize, &str)> =
        tools.iter().filter_map(|tool| Some((score(&words, tool)?, tool.name.as_str()))).collect();
    scored.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(most).map(|(_, name)| name.to_owned()).collect()
}

fn selected(names: &str, tools: &[SearchableTool]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let tool = tools.iter().find(|tool| tool.name.eq_ignore_ascii_case(name));
        found.extend(tool.map(|tool| tool.name.clone()).filter(|name| !found.contains(name)));
    }
    found
}

/// Returns how well a tool fits; nothing, when it does not.
fn score(words: &[String], tool: &SearchableTool) -> Option<usize> {
    let (name, description) = (tool.name.to_lowercase(), tool.description.to_lowercase());
    let parts = parts(&tool.name);
    let mut total = 0;
    for word in words {
        let (word, is_needed) = match word.strip_prefix('+') {
            Some(word) => (word, true),
            None => (word.as_str(), false),
        };
        if word.is_empty() {
            continue;
        }
        let in_name = match (parts.iter().any(|part| part == word), name.contains(word)) {
            (true, _) => PART,
            (false, true) => WITHIN,
            (false, false) => 0,
        };
        if is_needed && in_name == 0 {
            return None;
        }
        total += in_name + if description.contains(word) { DESCRIPTION } else { 0 };
    }
    (total > 0).then_some(total)
}

/// Splits a name at its separators and where capitals begin.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let Some(part) = parts.last_mut().filter(|_| c.is_alphanumeric()) {
            part.extend(c.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_by_name_and_by_what_they_do() {
        let tools: Vec<SearchableTool> = [
            ("NotebookEdit", "Changes a cell of a notebook"),
            ("TaskCreate", "Adds a task to the list"),
            ("TaskList", "Shows the list of tasks"),
            ("mcp__github__create_issue", "Opens an issue in a repository"),
            ("mcp__github__list_issues", "Lists issues"),
            ("mcp__slack__send", "Sends a message to a channel"),
        ]
        .map(|(name, description)| SearchableTool {
            name: name.to_owned(),
            description: description.to_owned(),
        })
        .to_vec();
        for (query, most, expected) in [
            ("select:TaskList,mcp__slack__send", 1, &["TaskList", "mcp__slack__send"][..]),
            ("select:tasklist, none ,TaskList", 5, &["TaskList"]),
            ("select:", 5, &[]),
            ("notebook edit", 5, &["NotebookEdit"]),
            ("taskcreate", 5, &["TaskCreate"]),
            ("list", 2, &["TaskList", "mcp__github__list_issues"]),
            ("+github list", 5, &["mcp__github__list_issues", "mcp__github__create_issue"]),
            ("channel", 5, &["mcp__slack__send"]),
            ("nothing-of-the-kind", 5, &[]),
            ("", 5, &[]),
        ] {
            assert_eq!(find(query, most, &tools), expected, "{query}");
        }
    }
}
