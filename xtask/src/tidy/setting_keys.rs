//! The table of settings tells the truth about itself: a key that says `used()` is named by code outside the table, and one
//! that code names says so.

use super::tree::Tree;

const TABLE: &str = "crates/loci-settings/src/key/table.rs";

/// The list of keys that are told as without an effect: to stand there is not to be acted upon.
const TOLD: &str = "crates/loci-app/src/settings/ineffective_settings.rs";

/// Keys that code names without acting upon them, and where they are listed for another reason.
const NAMED_ONLY: [&str; 1] = [
    // Named where plugins that set it are told that it has no effect, and where it is taken away with its neighbours.
    "subagentStatusLine",
];

/// Keys that are honoured by what the program never does.
const NOTHING_TO_DO: [&str; 3] = [
    // Sessions have no address.
    "attribution.sessionUrl",
    // No plugin is fetched by a command.
    "disableCommandPluginSources",
    // No service is asked about addresses, so there is nothing to skip.
    "skipWebFetchPreflight",
];

/// Finds rows that say something else than the code does.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let Some(table) = tree.file(TABLE) else { return Vec::new() };
    let code: Vec<(&str, String)> = tree
        .rust()
        .filter(|(file, _)| {
            let is_list = [TABLE, TOLD].contains(&file.path.as_str());
            file.path.starts_with("crates/") && file.path.contains("/src/") && !is_list
        })
        .map(|(file, rust)| (file.path.as_str(), product_lines(&file.text, &rust.product_code())))
        .collect();
    let mut problems = Vec::new();
    for (number, line) in table.text.lines().enumerate() {
        let Some(path) = key_of(line) else { continue };
        let is_used = line.contains(".used()");
        let named = code.iter().find(|(_, text)| names(text, path));
        // One word may mean anything; a word of several is a key.
        let is_telling = !path.contains('.') && path.contains(|c: char| c.is_ascii_uppercase());
        match (is_used, named) {
            (true, None) if !NOTHING_TO_DO.contains(&path) => problems.push(format!(
                "{TABLE}:{}: `{path}` says used(), and no code names it; take the word away, or act upon the key",
                number + 1
            )),
            (false, Some((file, _))) if is_telling && !NAMED_ONLY.contains(&path) => problems.push(format!(
                "{TABLE}:{}: `{path}` is named by {file} and does not say used()",
                number + 1
            )),
            _ => {}
        }
    }
    problems
}

/// Returns the lines of a file that are no tests, with the texts between quotes that `product` leaves out.
fn product_lines(text: &str, product: &str) -> String {
    let is_product: Vec<bool> = product.lines().map(|line| !line.trim().is_empty()).collect();
    let lines = text.lines().enumerate().filter(|(idx, _)| is_product.get(*idx).copied().unwrap_or(false));
    lines.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

fn key_of(line: &str) -> Option<&str> {
    let (path, _) = line.trim().strip_prefix("key(\"")?.split_once('"')?;
    Some(path)
}

/// Tells whether a text names a key: whole, by its last part, or behind another.
fn names(text: &str, path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    text.contains(&format!("\"{path}\""))
        || text.contains(&format!("\"{last}\""))
        || text.contains(&format!(".{last}\""))
}

#[cfg(test)]
mod tests {
    use super::super::tree::expect_problems;
    use super::*;

    #[test]
    fn used_keys_have_a_reader_and_keys_with_a_reader_are_used() {
        let table = "key(\"oneKey\", Bool, \"x\").used(),\nkey(\"twoKey\", Bool, \"x\"),\nkey(\"a.b\", Bool, \"x\").used(),";
        let reader = "fn f() { setting(\"oneKey\"); setting(\"b\"); }\n#[cfg(test)]\nmod tests {\n    const K: &str = \"twoKey\";\n}";
        expect_problems(check, &[(TABLE, table), ("crates/a/src/a.rs", reader)], &[]);
        let told = "const TOLD: &str = \"twoKey\";";
        expect_problems(check, &[(TABLE, table), ("crates/a/src/a.rs", reader), (TOLD, told)], &[]);
        let other = "fn f() { setting(\"twoKey\"); }";
        expect_problems(
            check,
            &[(TABLE, table), ("crates/a/src/a.rs", other)],
            &[
                "crates/loci-settings/src/key/table.rs:1: `oneKey` says used(), and no code names it; take the word away, or \
                 act upon the key",
                "crates/loci-settings/src/key/table.rs:2: `twoKey` is named by crates/a/src/a.rs and does not say used()",
                "crates/loci-settings/src/key/table.rs:3: `a.b` says used(), and no code names it; take the word away, or act \
                 upon the key",
            ],
        );
    }
}
