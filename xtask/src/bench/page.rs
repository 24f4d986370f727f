//! The page that shows the figures: prose by hand, tables by the bench, between two marks.

use anyhow::Context;
use std::path::Path;

pub(crate) const PATH: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- bench: begin -->";
const END: &str = "<!-- bench: end -->";

/// Replaces what stands between the marks of the page.
pub(crate) fn write(root: &Path, text: &str) -> anyhow::Result<()> {
    let path = root.join(PATH);
    let page = std::fs::read_to_string(&path).with_context(|| format!("Failed to read `{PATH}`"))?;
    let page =
        replaced(&page, text).with_context(|| format!("Failed to find `{BEGIN}` and `{END}` in `{PATH}`"))?;
    std::fs::write(&path, page).with_context(|| format!("Failed to write `{PATH}`"))
}

fn replaced(page: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = format!("# Page\n\n{BEGIN}\nold\n{END}\n\nmore\n");
        let new = replaced(&page, "new\n").unwrap();
        assert_eq!(new, format!("# Page\n\n{BEGIN}\n\nnew\n\n{END}\n\nmore\n"));
        assert_eq!(replaced(&new, "new").as_deref(), Some(new.as_str()));
        assert_eq!(replaced("no marks", "new"), None);
    }
}
