//! Finding the rules that restrict, wherever a broken or misread file has left them.
//!
//! In a text that is not JSON as a whole the structure around a rule cannot be believed: a quote or bracket too
//! few may have swallowed it. So the letters are searched for `"deny":` and `"ask":`, and whatever list follows
//! is read. In a text that is JSON the same keys are looked for where no key of ours is known, since a slip in
//! the name `permissions` must not switch its rules off, and where a bracket in the wrong place has put them inside another
//! setting. All of it errs on the side of denying.

use super::Kind;
use super::jsonc::{self, Member, Node, Tree};

/// How much may be read in all while searching; only a file made to waste time needs more.
const WORK_LIMIT: usize = 64 * 1024 * 1024;

/// A list of restricting rules and its place.
#[derive(Debug)]
pub(super) struct RestrictingList<'a> {
    pub(super) path: &'static str,
    pub(super) at: usize,
    pub(super) node: std::borrow::Cow<'a, Node>,
}

/// Returns the path of the restricting key that goes by this name, or by this name after a slip of blanks and quotes.
pub(super) fn restricting_path(name: &str) -> Option<&'static str> {
    let after_quote = name.trim_end_matches(['"', '\'']).rsplit(['"', '\'']).next().unwrap_or(name);
    match after_quote.trim() {
        "deny" | "permissions.deny" => Some("permissions.deny"),
        "ask" | "permissions.ask" => Some("permissions.ask"),
        _ => None,
    }
}

/// Searches the letters of a broken text.
pub(super) fn scan(text: &str) -> Vec<RestrictingList<'static>> {
    let mut found = Vec::new();
    let mut work = 0;
    for (name, path) in [("\"deny\"", "permissions.deny"), ("\"ask\"", "permissions.ask")] {
        for (at, _) in text.match_indices(name) {
            let colon = jsonc::skip_trivia_at(text, at + name.len());
            work += colon - at;
            if !text[colon..].starts_with(':') || work > WORK_LIMIT {
                continue;
            }
            let start = jsonc::skip_trivia_at(text, colon + 1);
            work += start - colon;
            if text[start..].starts_with(['[', '"']) && work <= WORK_LIMIT {
                let node = jsonc::parse_at(text, start);
                work += node.end - start;
                found.push(RestrictingList { path, at, node: std::borrow::Cow::Owned(node) });
            }
        }
    }
    found
}

/// Searches a value that is no setting of ours, and everything inside it.
pub(super) fn search<'a>(member: &'a Member, found: &mut Vec<RestrictingList<'a>>) {
    if let Some(path) = restricting_path(&member.key)
        && matches!(member.value.tree, Tree::Array(_) | Tree::String(_))
    {
        found.push(RestrictingList {
            path,
            at: member.start,
            node: std::borrow::Cow::Borrowed(&member.value),
        });
        return;
    }
    search_node(&member.value, found);
}

/// Searches a setting that was read for what cannot belong to it.
///
/// Among texts or switches that is any list or object. Where anything may stand, a list that is called `ask` may mean
/// something else, and only a whole `permissions` is taken for what it says.
pub(super) fn search_taken<'a>(kind: Kind, member: &'a Member, found: &mut Vec<RestrictingList<'a>>) {
    match (kind, &member.value.tree) {
        (Kind::Object | Kind::List | Kind::Any, _) => search_for_group(&member.value, found),
        (_, Tree::Object(members)) => {
            let is_plain = |member: &Member| !matches!(member.value.tree, Tree::Object(_) | Tree::Array(_));
            members.iter().filter(|member| !is_plain(member)).for_each(|member| search(member, found));
        }
        _ => search_node(&member.value, found),
    }
}

fn search_for_group<'a>(node: &'a Node, found: &mut Vec<RestrictingList<'a>>) {
    match &node.tree {
        Tree::Object(members) => members.iter().for_each(|member| match member.key == "permissions" {
            true => search_node(&member.value, found),
            false => search_for_group(&member.value, found),
        }),
        Tree::Array(items) => items.iter().for_each(|item| search_for_group(item, found)),
        Tree::Null | Tree::Bool(_) | Tree::Number(_) | Tree::String(_) | Tree::Unreadable => {}
    }
}

fn search_node<'a>(node: &'a Node, found: &mut Vec<RestrictingList<'a>>) {
    match &node.tree {
        Tree::Object(members) => members.iter().for_each(|member| search(member, found)),
        Tree::Array(items) => items.iter().for_each(|item| search_node(item, found)),
        Tree::Null | Tree::Bool(_) | Tree::Number(_) | Tree::String(_) | Tree::Unreadable => {}
    }
}
