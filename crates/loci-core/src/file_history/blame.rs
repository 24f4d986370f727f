//! Which version of a file each line comes from.

use crate::diff::{LineChange, line_changes};

/// Follows the lines of a file through its versions, oldest first, to what it holds now. Each line of `now` gets the
/// index of the version that brought it: 0 is what was there before all, `None` what came after the last.
pub fn line_origins(versions: &[String], now: &str) -> Vec<Option<usize>> {
    let Some(first) = versions.first() else { return vec![None; n_lines(now)] };
    let mut text = first.as_str();
    let mut origins = vec![Some(0); n_lines(text)];
    let later = versions.iter().enumerate().skip(1).map(|(idx, version)| (Some(idx), version.as_str()));
    for (idx, next) in later.chain([(None, now)]) {
        origins = carried(text, next, &origins, idx);
        text = next;
    }
    origins
}

fn carried(old: &str, new: &str, origins: &[Option<usize>], idx: Option<usize>) -> Vec<Option<usize>> {
    let origin = |change| match change {
        LineChange::Gone => None,
        LineChange::New => Some(idx),
        LineChange::Kept(at) => Some(origins.get(at).copied().flatten()),
    };
    line_changes(old, new).into_iter().filter_map(origin).collect()
}

fn n_lines(text: &str) -> usize {
    text.split_inclusive('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions and what is there now, one letter a line; what is expected is a digit a line, `-` for later.
    fn check(versions: &[&str], now: &str, expected: &str) {
        let lines = |text: &str| -> String { text.chars().map(|letter| format!("{letter}\n")).collect() };
        let versions: Vec<String> = versions.iter().map(|version| lines(version)).collect();
        let told: String = line_origins(&versions, &lines(now))
            .iter()
            .map(|origin| origin.map_or("-".to_owned(), |idx| idx.to_string()))
            .collect();
        assert_eq!(told, expected, "{versions:?} {now}");
    }

    #[test]
    fn line_origins_name_the_version_of_each_line() {
        check(&["abc"], "abc", "000");
        check(&["abc", "axc"], "axc", "010");
        check(&["abc", "axc", "axcy"], "axcy", "0102");
        check(&["abc", "axc"], "axcz", "010-");
        check(&["", "ab"], "ab", "11");
        check(&["ab", ""], "ab", "--");
        check(&[], "ab", "--");
        check(&["ab"], "", "");
    }
}
