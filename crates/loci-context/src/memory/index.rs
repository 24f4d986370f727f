//! The index of memories, `MEMORY.md`: one line each, with a link. It is put before the model as far as it fits.

/// Lines of the index that are shown.
pub const INDEX_LINES: usize = 200;
/// And their bytes.
pub const INDEX_BYTES: usize = 25_000;

/// How full an index is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexLevel {
    /// There is room.
    Fine,
    /// It is nearly full; these words say so.
    Near(String),
    /// Its end is not shown; these words say so.
    Over(String),
}

/// A line that leads to a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexLine {
    /// Counted from one.
    pub number: usize,
    /// The words of the link.
    pub title: String,
    /// The file it leads to.
    pub file: String,
}

/// Returns the index as the model is shown it; `path` is where all of it can be read. What does not fit is named, never
/// left out in silence: the newest lines are usually the last.
pub fn shown_index(index: &str, path: &str) -> String {
    let mut end = 0;
    let mut n_shown = 0;
    for line in index.split_inclusive('\n').take(INDEX_LINES) {
        if end + line.trim_end().len() > INDEX_BYTES {
            break;
        }
        end += line.len();
        n_shown += 1;
    }
    let left_out = index[end..].lines().count();
    if left_out == 0 {
        return index.trim_end().to_owned();
    }
    format!(
        "{}\n[The index is longer than fits here: its last {left_out} of {} lines, usually the newest, are left out. Read \
         {path} from line {} on before you rely on it, and shorten it when you write memories.]",
        index[..end].trim_end(),
        n_shown + left_out,
        n_shown + 1
    )
}

/// Tells how full an index is.
pub fn index_level(index: &str) -> IndexLevel {
    let (lines, bytes) = (index.trim_end().lines().count(), index.trim_end().len());
    let is_above =
        |percent: usize| lines * 100 > INDEX_LINES * percent || bytes * 100 > INDEX_BYTES * percent;
    let size = format!("{lines} of {INDEX_LINES} lines and {bytes} of {INDEX_BYTES} bytes");
    if is_above(100) {
        IndexLevel::Over(format!(
            "It was written, but MEMORY.md is too long now: {size}. Its end is not shown to later sessions. Shorten it now: \
             one short line a memory, details in the memory's own file, lines of what no longer holds removed."
        ))
    } else if is_above(90) {
        IndexLevel::Near(format!("MEMORY.md is nearly full: {size}. Shorten its lines before adding more."))
    } else {
        IndexLevel::Fine
    }
}

/// Returns the lines that lead to memories.
pub fn index_lines(index: &str) -> Vec<IndexLine> {
    let lines = index.lines().enumerate();
    lines
        .filter_map(|(idx, line)| {
            let (title, rest) = line.split_once('[')?.1.split_once("](")?;
            let file = rest.split_once(')')?.0.trim().trim_start_matches("./");
            let is_memory = file.ends_with(".md") && !file.contains("://");
            is_memory.then(|| IndexLine { number: idx + 1, title: title.to_owned(), file: file.to_owned() })
        })
        .collect()
}

/// Makes the line of a memory.
pub fn index_line(name: &str, file: &str, description: &str) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = one_line(name).replace(['[', ']'], "");
    format!("- [{name}]({file}): {}", one_line(description))
}

/// Returns the index with a line for `file`, in the place of the one it had.
pub fn with_index_line(index: &str, file: &str, line: &str) -> String {
    let known = index_lines(index).iter().find(|it| it.file == file).map(|it| it.number);
    let mut lines: Vec<&str> = index.lines().collect();
    match known.and_then(|number| lines.get_mut(number - 1)) {
        Some(old) => *old = line,
        None => lines.push(line),
    }
    format!("{}\n", lines.join("\n"))
}

/// Returns the index without the lines of `file`, or `None` when it has none.
pub fn without_index_lines(index: &str, file: &str) -> Option<String> {
    let gone: Vec<usize> =
        index_lines(index).iter().filter(|it| it.file == file).map(|it| it.number).collect();
    if gone.is_empty() {
        return None;
    }
    let kept = index.split_inclusive('\n').enumerate().filter(|(idx, _)| !gone.contains(&(idx + 1)));
    Some(kept.map(|(_, line)| line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(n: usize, width: usize) -> String {
        (1..=n).map(|n| format!("- [m{n}](m{n}.md): {}\n", "x".repeat(width))).collect()
    }

    /// Invariant 5 of `docs/design/memory.md`.
    #[test]
    fn what_does_not_fit_is_named_and_where_it_is() {
        for (index, shown, left_out) in
            [(lines(3, 5), 3, 0), (lines(200, 5), 200, 0), (lines(201, 5), 200, 1), (lines(150, 300), 78, 72)]
        {
            let text = shown_index(&index, "/m/MEMORY.md");
            assert!(text.contains(&format!("[m{shown}]")) && !text.contains(&format!("[m{}]", shown + 1)));
            let notice = format!("its last {left_out} of {} lines", shown + left_out);
            assert_eq!(text.contains(&notice), left_out > 0, "{text}");
            assert_eq!(text.contains(&format!("/m/MEMORY.md from line {}", shown + 1)), left_out > 0);
        }
        assert_eq!(shown_index("", "/m"), "");
        let one_long = "x".repeat(30_000);
        assert!(shown_index(&one_long, "/m").contains("its last 1 of 1 lines"));
    }

    #[test]
    fn a_full_index_is_said_to_be_full() {
        let level = |n: usize, width: usize| match index_level(&lines(n, width)) {
            IndexLevel::Fine => "fine",
            IndexLevel::Near(_) => "near",
            IndexLevel::Over(_) => "over",
        };
        for (n, width, expected) in [
            (0, 0, "fine"),
            (180, 5, "fine"),
            (181, 5, "near"),
            (200, 5, "near"),
            (201, 5, "over"),
            (90, 300, "over"),
        ] {
            assert_eq!(level(n, width), expected, "{n} lines of {width}");
        }
    }

    #[test]
    fn lines_are_found_added_replaced_and_removed() {
        let index =
            "# Memories\n- [Role](role.md): tests\n- [out](https://x.md): no\ntext\n- [Log](./logs/a.md)\n";
        let found: Vec<_> = index_lines(index).into_iter().map(|it| (it.number, it.title, it.file)).collect();
        let line = |n: usize, title: &str, file: &str| (n, title.to_owned(), file.to_owned());
        assert_eq!(found, [line(2, "Role", "role.md"), line(5, "Log", "logs/a.md")]);
        let new = index_line("A [b]", "role.md", "now\n two");
        assert_eq!(new, "- [A b](role.md): now two");
        let replaced = with_index_line(index, "role.md", &new);
        assert_eq!(replaced, index.replace("- [Role](role.md): tests", &new));
        assert_eq!(with_index_line("", "n.md", "- [n](n.md)"), "- [n](n.md)\n");
        assert_eq!(with_index_line("a", "n.md", "- [n](n.md)"), "a\n- [n](n.md)\n");
        let without = without_index_lines(index, "role.md").unwrap();
        assert_eq!(without, index.replace("- [Role](role.md): tests\n", ""));
        assert_eq!(without_index_lines(index, "other.md"), None);
    }
}
