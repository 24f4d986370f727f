//! Reference pages that are made of the tables that the code uses: `docs/variables.md` and `docs/settings-reference.md`.
//!
//! `cargo xtask reference` writes them; tidy holds them against the tables, so that they cannot rot.

use std::path::Path;

use crate::tidy::tree::Tree;

/// The table of variables.
const VARIABLES: &str = "crates/loci-settings/src/variables/table.rs";
/// The table of settings.
const SETTINGS: &str = "crates/loci-settings/src/key/table.rs";
/// Why settings have no effect.
const INEFFECTIVE: &str = "crates/loci-app/src/settings/ineffective_settings.rs";

/// Makes a page.
type Page = fn(&Tree) -> String;

/// The pages: where they lie, and what makes them.
pub(crate) const PAGES: [(&str, Page); 2] =
    [("docs/variables.md", variables_page), ("docs/settings-reference.md", settings_page)];

/// Writes the pages.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let tree = Tree::read(root)?;
    for (path, page) in PAGES {
        std::fs::write(root.join(path), page(&tree))?;
        println!("wrote {path}");
    }
    Ok(())
}

/// A row of the table of variables.
pub(crate) struct VariableRow<'a> {
    pub(crate) name: &'a str,
    kind: &'a str,
    about: &'a str,
}

/// Reads the rows of the table of variables, and the titles above them.
fn variable_lines(tree: &Tree) -> impl Iterator<Item = Result<VariableRow<'_>, &str>> {
    let text = tree.file(VARIABLES).map(|file| file.text.as_str()).unwrap_or_default();
    text.lines().filter_map(|line| {
        let line = line.strip_prefix("    ")?;
        if let Some(title) = line.strip_prefix("// ") {
            return Some(Err(title));
        }
        if let Some(rest) = line.strip_prefix("family(\"") {
            let (name, about) = rest.strip_suffix("\"),")?.split_once("\", \"")?;
            return Some(Ok(VariableRow { name, kind: "Text", about }));
        }
        let (name, rest) = line.split_once(": ")?;
        let (kind, about) = rest.strip_suffix("\";")?.split_once(", \"")?;
        Some(Ok(VariableRow { name, kind, about }))
    })
}

/// Reads the names that stand in the table of variables.
pub(crate) fn variable_rows(tree: &Tree) -> impl Iterator<Item = VariableRow<'_>> {
    variable_lines(tree).filter_map(Result::ok)
}

const MADE: &str =
    "<!-- Made by `cargo xtask reference` of the tables in crates/loci-settings; change those. -->\n\n";

fn variables_page(tree: &Tree) -> String {
    let mut page = format!(
        "{MADE}# Environment variables\n\nWhat loci reads of its environment, and what it sets for what it runs. Those under `env` of \
         a settings file count as if they\nwere set. A switch is `1`, `true`, `yes`, `on`, or `0`, `false`, `no`, `off`.\n"
    );
    let mut is_in_families = false;
    for line in variable_lines(tree) {
        match line {
            Err(title) => page += &table(title),
            Ok(row) => {
                if row.name.contains('*') && !is_in_families {
                    is_in_families = true;
                    page += &table("Names with a part that differs");
                }
                let kind = match row.kind {
                    "Given" => "set by loci".to_owned(),
                    "IdleSwitch" | "IdleValue" => "no effect".to_owned(),
                    kind => kind.to_lowercase(),
                };
                page += &format!("| `{}` | {kind} | {} |\n", row.name, cell(row.about));
            }
        }
    }
    page
}

fn table(title: &str) -> String {
    format!("\n## {title}\n\n| variable | holds | what for |\n|---|---|---|\n")
}

fn settings_page(tree: &Tree) -> String {
    let text = tree.file(SETTINGS).map(|file| file.text.as_str()).unwrap_or_default();
    let mut page = format!(
        "{MADE}# Settings\n\nEvery key of a settings file. Where several files set one, the highest wins, lists are joined and \
         objects are joined name by name,\nunless the last column says otherwise; `loci config explain KEY` shows what counts and why.\n"
    );
    for line in text.lines().filter_map(|line| line.strip_prefix("    ")) {
        if let Some(title) = line.strip_prefix("// ") {
            page += &format!("\n## {title}\n\n| key | holds | what for | notes |\n|---|---|---|---|\n");
        } else if let Some(row) = setting_row(tree, line) {
            page += &row;
        }
    }
    page
}

fn setting_row(tree: &Tree, line: &str) -> Option<String> {
    let (path, rest) = line.strip_prefix("key(\"")?.split_once("\", ")?;
    let (kind, rest) = match rest.strip_prefix("OneOf(&[") {
        Some(names) => names.split_once("]), \"").map(|(names, rest)| (format!("OneOf {names}"), rest)),
        None => rest.split_once(", \"").map(|(kind, rest)| (kind.to_owned(), rest)),
    }?;
    let (about, words) = rest.split_once("\")")?;
    let mut notes = Vec::new();
    notes.extend(parenthesised(words, ".only(").map(|who| {
        match who {
            "Managed" => "managed settings only",
            "UserOrManaged" => "not in a project's files",
            "NotShared" => "not in the shared file of a project",
            _ => "in `.claude.json`",
        }
        .to_owned()
    }));
    notes.extend(parenthesised(words, ".merged(").and_then(|merge| {
        Some(
            match merge.split('(').next()? {
                "AnyTrue" => "`true` in any file wins",
                "AnyFalse" => "`false` in any file wins",
                "Strictest" => "the strictest value wins",
                "ByNameStrictest" => "of limits the strictest wins",
                "ManagedOrUnion" => "a managed list replaces all others",
                _ => return None,
            }
            .to_owned(),
        )
    }));
    if !words.contains(".used()") {
        notes.push(why_idle(tree, path).unwrap_or_else(|| "no effect, and none is missed".to_owned()));
    }
    Some(format!("| `{path}` | {} | {} | {} |\n", kind_text(&kind), cell(about), cell(&notes.join("; "))))
}

/// Returns why a key has no effect.
fn why_idle(tree: &Tree, path: &str) -> Option<String> {
    let start = format!("row(\"{path}\", \"");
    let line = tree.file(INEFFECTIVE)?.text.lines().find_map(|line| line.trim().strip_prefix(&start))?;
    Some(format!("no effect: {}", line.split_once("\")")?.0))
}

fn kind_text(kind: &str) -> String {
    match kind.split(['(', ' ']).next().unwrap_or(kind) {
        "Bool" => "true or false".to_owned(),
        "Text" => "text".to_owned(),
        "OneOf" => {
            let names = kind.split('"').skip(1).step_by(2).map(|name| format!("`{name}`"));
            names.collect::<Vec<_>>().join(", ")
        }
        "Integer" => "whole number".to_owned(),
        "Number" => "number".to_owned(),
        "Texts" | "Restrictions" => "list of texts".to_owned(),
        "List" => "list".to_owned(),
        "TextMap" => "texts by name".to_owned(),
        "BoolMap" => "switches by name".to_owned(),
        "TextOrTexts" => "text, or list of texts".to_owned(),
        "Object" => "object".to_owned(),
        _ => "any".to_owned(),
    }
}

/// Returns what stands between the parentheses behind a word, inner ones and all.
fn parenthesised<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.split_once(word)?.1;
    let mut depth = 0;
    let end = rest.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth < 0
    })?;
    Some(&rest[..end])
}

/// Makes a text fit into a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace("\\\"", "\"").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_a_row_for_each_line_of_the_tables() {
        let variables = "variables! {\n    // The model\n    A_KEY: Secret, \"the key | of it\";\n    B: IdleSwitch, \"no <b>\";\n}\n    family(\"C_*\", \"of each\"),\n";
        let settings = "    // Model\n    key(\"a.b\", OneOf(&[\"x\", \"y\"]), \"what\").only(Managed).merged(Strictest(&[\"x\", \"y\"])).used(),\n    key(\"voice\", Object, \"voice input\").free(),\n";
        let told = "    row(\"voice\", \"there is none\"),\n";
        let tree = Tree::new([(VARIABLES, variables), (SETTINGS, settings), (INEFFECTIVE, told)]);
        let page = variables_page(&tree);
        for row in [
            "## The model",
            "| `A_KEY` | secret | the key \\| of it |",
            "| `B` | no effect | no &lt;b> |",
            "| `C_*` | text | of each |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
        let page = settings_page(&tree);
        for row in [
            "| `a.b` | `x`, `y` | what | managed settings only; the strictest value wins |",
            "| `voice` | object | voice input | no effect: there is none |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
        assert_eq!(variable_rows(&tree).map(|row| row.name).collect::<Vec<_>>(), ["A_KEY", "B", "C_*"]);
    }
}
