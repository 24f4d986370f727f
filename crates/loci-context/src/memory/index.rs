//! The index of memories, `MEMORY.md`: one line each, with a link. It is put before the model as far as it fits.

use super::form::{line_end, without_bom};

/// Lines of the index that are shown.
pub const INDEX_LINES: usize = 200;
/// And their bytes.
pub const INDEX_BYTES: usize = 25_000;
/// Bytes of one line, where not all lines fit.
const LINE_BYTES: usize = 1_000;

/// How full an index is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexLevel {
    /// There is room.
    Fine,
    /// It is nearly full; these words say so.
    Near(String),
    /// A part of it is not shown; these words say so.
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

/// Returns the index as the model is shown it; `path` is where all of it can be read. What does not fit is left out of the
/// middle, and named: the newest lines are usually the last, and what a person wants seen first stands at the beginning.
pub fn render_index(index: &str, path: &str) -> String {
    let index = index.trim_end();
    if matches!(index_level(index), IndexLevel::Fine | IndexLevel::Near(_)) {
        return index.to_owned();
    }
    let lines: Vec<String> = index.lines().map(clipped).collect();
    let n_last = n_fitting(lines.iter().rev(), INDEX_LINES / 2, INDEX_BYTES / 2);
    let last = &lines[lines.len() - n_last..];
    let n_bytes: usize = last.iter().map(|line| line.len() + 1).sum();
    let rest = &lines[..lines.len() - n_last];
    let n_first = n_fitting(rest.iter(), INDEX_LINES - n_last, INDEX_BYTES - n_bytes);
    let gap = match rest.len() - n_first {
        0 => format!(
            "[Some lines are cut at {LINE_BYTES} bytes. Read them in {path}, and shorten them when you write memories.]"
        ),
        n_gap => format!(
            "[The index is longer than fits here: {n_gap} of {} lines are left out, but not the newest, which usually come \
             last. Read {path} from line {} on before you rely on it, and shorten it when you write memories.]",
            lines.len(),
            n_first + 1
        ),
    };
    [&rest[..n_first], &[gap], last].concat().join("\n")
}

/// Counts the lines that fit.
fn n_fitting<'a>(lines: impl Iterator<Item = &'a String>, most_lines: usize, mut bytes: usize) -> usize {
    let fits = |line: &&String| {
        let left = bytes.checked_sub(line.len() + 1);
        bytes = left.unwrap_or(bytes);
        left.is_some()
    };
    lines.take(most_lines).take_while(fits).count()
}

/// Cuts a line that would take the place of many.
fn clipped(line: &str) -> String {
    match line.len() > LINE_BYTES {
        true => format!("{}…", &line[..line.floor_char_boundary(LINE_BYTES)]),
        false => line.to_owned(),
    }
}

/// Tells how full an index is.
pub fn index_level(index: &str) -> IndexLevel {
    let (lines, bytes) = (index.trim_end().lines().count(), index.trim_end().len());
    let is_above =
        |percent: usize| lines * 100 > INDEX_LINES * percent || bytes * 100 > INDEX_BYTES * percent;
    let size = format!("{lines} of {INDEX_LINES} lines and {bytes} of {INDEX_BYTES} bytes");
    if is_above(100) {
        IndexLevel::Over(format!(
            "It was written, but MEMORY.md is too long now: {size}. Not all of it is shown to later sessions. Shorten it now: \
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
            let file = target(rest)?.trim().trim_start_matches("./");
            let is_memory = file.ends_with(".md") && !file.contains("://");
            is_memory.then(|| IndexLine { number: idx + 1, title: title.to_owned(), file: file.to_owned() })
        })
        .collect()
}

/// Returns where a link leads: what is between angle brackets, or all up to the parenthesis that ends it.
fn target(rest: &str) -> Option<&str> {
    if let Some(rest) = rest.strip_prefix('<') {
        return Some(rest.split_once(">)")?.0);
    }
    let mut depth = 1;
    let end = rest.find(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    Some(&rest[..end])
}

/// Makes the line of a memory.
pub fn index_line(name: &str, file: &str, description: &str) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = one_line(name).replace(['[', ']'], "");
    let is_plain = target(&format!("{file})")) == Some(file);
    let file = if is_plain { file.to_owned() } else { format!("<{file}>") };
    format!("- [{name}]({file}): {}", one_line(description))
}

/// Returns the index with a line for `file`, in the place of the one it had. Lines end as those that are there do.
pub fn with_index_line(index: &str, file: &str, line: &str) -> String {
    let Some(number) = index_lines(index).iter().find(|it| it.file == file).map(|it| it.number) else {
        let ending = line_end(index).unwrap_or("\n");
        let gap = if index.is_empty() || index.ends_with('\n') { "" } else { ending };
        return format!("{index}{gap}{line}{ending}");
    };
    let replaced = |old: &str| {
        let (bom, words) = (old.len() - without_bom(old).len(), old.trim_end_matches(['\r', '\n']).len());
        format!("{}{line}{}", &old[..bom], &old[words..])
    };
    let lines = index.split_inclusive('\n').enumerate();
    lines.map(|(idx, old)| if idx + 1 == number { replaced(old) } else { old.to_owned() }).collect()
}

/// Returns the index without the lines of `file`, or `None` when it has none.
pub fn without_index_lines(index: &str, file: &str) -> Option<String> {
    let gone: Vec<usize> =
        index_lines(index).iter().filter(|it| it.file == file).map(|it| it.number).collect();
    if gone.is_empty() {
        return None;
    }
    let text = without_bom(index);
    let kept = text.split_inclusive('\n').enumerate().filter(|(idx, _)| !gone.contains(&(idx + 1)));
    let bom = &index[..index.len() - text.len()];
    Some(std::iter::once(bom).chain(kept.map(|(_, line)| line)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(n: usize, width: usize) -> String {
        (1..=n).map(|n| format!("- [m{n}](m{n}.md): {}\n", "x".repeat(width))).collect()
    }

    /// Invariant 5 of `docs/design/memory.md`.
    #[test]
    fn index_lines_left_out_are_named_and_the_newest_are_kept() {
        for (n, width, n_first, n_last) in
            [(3, 5, 3, 0), (200, 5, 200, 0), (201, 5, 100, 100), (1_000, 5, 100, 100), (150, 300, 39, 39)]
        {
            let text = render_index(&lines(n, width), "/m/MEMORY.md");
            let has = |n: usize| text.contains(&format!("- [m{n}](m{n}.md)"));
            let expected = |k: usize| k <= n_first || k > n - n_last;
            for k in 1..=n {
                assert_eq!(has(k), expected(k), "line {k} of {n}");
            }
            let n_gap = n - n_first - n_last;
            assert_eq!(text.contains(&format!("{n_gap} of {n} lines are left out")), n_gap > 0, "{text}");
            assert_eq!(text.contains(&format!("/m/MEMORY.md from line {} on", n_first + 1)), n_gap > 0);
            let notice = text.lines().filter(|line| line.starts_with('[')).map(str::len).sum::<usize>();
            assert!(text.lines().count() <= INDEX_LINES + 1 && text.len() <= INDEX_BYTES + notice + 1);
        }
        assert_eq!(render_index("", "/m"), "");
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_takes_no_others_place() {
        let index = format!("- [a](a.md): {}\n- [b](b.md): short\n", "é".repeat(20_000));
        let text = render_index(&index, "/m");
        assert!(text.contains("\n- [a](a.md): éé") && text.ends_with("…\n- [b](b.md): short"), "{text}");
        assert!(
            text.contains("…") && text.contains("cut at 1000 bytes. Read them in /m") && text.len() < 2_000
        );
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

    #[test]
    fn every_name_is_found_again_by_its_line() {
        for file in ["a.md", "with space.md", "a(1).md", "a).md", "(a.md", "a[1].md", "ü文.md", "a: b.md"] {
            let index = with_index_line("# Memories\n", file, &index_line("n", file, "d"));
            assert_eq!(index_lines(&index).first().map(|it| it.file.as_str()), Some(file), "{index}");
            let again = with_index_line(&index, file, &index_line("n", file, "other"));
            assert_eq!(again.lines().count(), 2, "{again}");
            assert_eq!(without_index_lines(&again, file).as_deref(), Some("# Memories\n"));
        }
    }

    #[test]
    fn an_index_keeps_its_form() {
        let line = "- [n](n.md)";
        for (index, expected) in [
            ("a\r\n", "a\r\n- [n](n.md)\r\n"),
            ("a\r\nb", "a\r\nb\r\n- [n](n.md)\r\n"),
            ("- [o](n.md)\r\nb\n", "- [n](n.md)\r\nb\n"),
            ("a\n- [o](n.md)", "a\n- [n](n.md)"),
            ("\u{feff}- [o](n.md)\r\n", "\u{feff}- [n](n.md)\r\n"),
        ] {
            assert_eq!(with_index_line(index, "n.md", line), expected, "{index:?}");
        }
        let without = without_index_lines("\u{feff}- [o](n.md)\r\nb\r\n", "n.md");
        assert_eq!(without.as_deref(), Some("\u{feff}b\r\n"));
    }
}
