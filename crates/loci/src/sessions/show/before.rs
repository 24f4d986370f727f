//! A session as it was before a compaction.

use std::sync::Arc;

use loci_app::UserError;
use loci_core::conversation::history_before;
use loci_core::entry::Entry;
use loci_core::ids::EntryId;

/// Returns what had been said before the boundary that a person named.
pub(super) fn history(entries: &[Arc<Entry>], name: &str) -> Result<Vec<Arc<Entry>>, UserError> {
    let boundaries: Vec<&EntryId> = entries
        .iter()
        .filter(|entry| entry.is_compact_boundary())
        .filter_map(|entry| entry.head().uuid.as_ref())
        .collect();
    let found = boundary(&boundaries, name).ok_or_else(|| no_such_boundary(&boundaries, name))?;
    history_before(entries, found).ok_or_else(|| no_such_boundary(&boundaries, name))
}

/// Finds a boundary by its number, by `last`, or by its id or the only beginning of one.
fn boundary<'a>(boundaries: &[&'a EntryId], name: &str) -> Option<&'a EntryId> {
    if name == "last" {
        return boundaries.last().copied();
    }
    // A few digits are a number, though an id may begin so.
    if let Some(number) = name.parse::<usize>().ok().filter(|_| name.len() < 8) {
        return boundaries.get(number.checked_sub(1)?).copied();
    }
    let mut matching = boundaries.iter().filter(|id| !name.is_empty() && id.as_str().starts_with(name));
    matching.next().copied().filter(|_| matching.next().is_none())
}

fn no_such_boundary(boundaries: &[&EntryId], name: &str) -> UserError {
    let user_error = UserError::new(format!("No compaction of this session is meant by `{name}`"));
    match boundaries {
        [] => user_error.hint("The session was never compacted: leave --before out to see all of it."),
        _ => {
            let ids: Vec<String> =
                boundaries.iter().enumerate().map(|(idx, id)| format!("{} ({id})", idx + 1)).collect();
            user_error.hint(format!("There are these: {}.", ids.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_named_in_three_ways() {
        let ids: Vec<EntryId> = ["aa1", "aa2", "bb3", "7c"].into_iter().map(EntryId::from).collect();
        let ids: Vec<&EntryId> = ids.iter().collect();
        for (name, expected) in [
            ("last", Some("7c")),
            ("1", Some("aa1")),
            ("5", None),
            ("7", None),
            ("7c", Some("7c")),
            ("0", None),
            ("bb", Some("bb3")),
            ("aa", None),
            ("aa2", Some("aa2")),
            ("", None),
        ] {
            assert_eq!(boundary(&ids, name).map(|id| id.as_str()), expected, "{name}");
        }
    }
}
