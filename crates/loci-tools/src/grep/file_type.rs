//! File types by ripgrep's names, and what was probably meant by a name that is none.
//!
//! The names are the crate `ignore`'s; how far two of them are apart is counted here, in ten lines.

use ignore::types::{FileTypeDef, Types, TypesBuilder};

/// How many other names are offered.
const MAX_OFFERED: usize = 5;

/// Returns the chosen type; an empty name chooses all files.
pub(super) fn types(name: &str) -> Result<Types, String> {
    if name.is_empty() {
        return Ok(Types::empty());
    }
    let mut builder = TypesBuilder::new();
    builder.add_defaults().select(name);
    builder.build().map_err(|_| unknown(name, &builder.definitions()))
}

fn unknown(name: &str, definitions: &[FileTypeDef]) -> String {
    let mut near: Vec<(usize, &str)> = definitions
        .iter()
        .filter_map(|definition| distance(name, definition).map(|far| (far, definition.name())))
        .collect();
    near.sort_unstable();
    let near: Vec<String> = near.iter().take(MAX_OFFERED).map(|(_, name)| format!("`{name}`")).collect();
    let hint = if near.is_empty() {
        "Use `glob` instead, such as `*.ext`.".to_owned()
    } else {
        format!("Did you mean {}? Or use `glob` instead.", near.join(", "))
    };
    format!("`{name}` is not a known file type. {hint}")
}

/// Returns how far a type is from the name asked for; `None` is too far to be meant.
fn distance(name: &str, definition: &FileTypeDef) -> Option<usize> {
    let name = name.trim_start_matches(['.', '*']).to_lowercase();
    let other = definition.name();
    let extension = format!("*.{name}");
    if other == name || definition.globs().contains(&extension) {
        return Some(0);
    }
    let is_beginning = |long: &str, short: &str| short.len() >= 2 && long.starts_with(short);
    if is_beginning(&name, other) || is_beginning(other, &name) {
        return Some(1);
    }
    let edits = strsim::levenshtein(&name, other);
    (edits <= 2 && edits < other.len().min(name.len())).then_some(1 + edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_types_name_near_ones() {
        for (name, needle) in [
            ("rs", "`rust`"),
            ("tsx", "`ts`"),
            (".py", "`py`"),
            ("pyton", "`python`"),
            ("javascript", "`java`"),
            ("markdwon", "`markdown`"),
            ("qqqqqqqqqq", "`glob` instead, such as"),
        ] {
            let problem = types(name).unwrap_err();
            assert!(problem.contains(needle), "{name}: {problem}");
        }
        assert!(types("rust").unwrap().matched("a.rs", false).is_whitelist());
        assert!(types("rust").unwrap().matched("a.py", false).is_ignore());
        assert!(types("").unwrap().is_empty());
    }
}
