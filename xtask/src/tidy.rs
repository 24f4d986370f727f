//! What the compiler cannot check: crate directions, purity, file sizes, forgotten notes, licences.
//!
//! Each check is a function from the [`Tree`] to problems, in a file of its own; a problem is one line that
//! says where, what, and what to do. The checks never touch the disk, so each is tested with made-up files.
//! The test here runs them all on the repository, which is why `cargo test` says whether a change is good.

mod architecture;
mod dependencies;
mod directions;
mod first_commands;
mod globals;
mod headers;
mod invariants;
mod leftovers;
mod licences;
mod machine_paths;
mod manifest;
mod markdown;
mod mod_files;
mod printing;
mod purity;
mod regressions;
mod rust_source;
mod setting_keys;
mod shape;
mod sizes;
mod tool_texts;
mod trace_categories;
pub(crate) mod tree;
mod type_names;
mod variables;

use std::path::Path;
use tree::Tree;

/// A check of the whole tree.
type Check = fn(&Tree) -> Vec<String>;

const CHECKS: &[Check] = &[
    architecture::check,
    dependencies::check,
    directions::check,
    first_commands::check,
    globals::check,
    headers::check,
    invariants::check,
    leftovers::check,
    machine_paths::check,
    markdown::check,
    mod_files::check,
    printing::check,
    purity::check,
    regressions::check,
    setting_keys::check,
    shape::check,
    sizes::check,
    tool_texts::check,
    trace_categories::check,
    type_names::check,
    variables::check,
];

/// Prints problems and warnings; fails when there are problems.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let tree = Tree::read(root)?;
    for warning in sizes::warnings(&tree).into_iter().chain(shape::warnings(&tree)) {
        println!("warning: {warning}");
    }
    let problems = problems(root, &tree)?;
    for problem in &problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => println!("tidy: {} files, no problems", tree.files().len()),
        n => anyhow::bail!("tidy: {n} problems"),
    }
    Ok(())
}

fn problems(root: &Path, tree: &Tree) -> anyhow::Result<Vec<String>> {
    let mut problems: Vec<String> = CHECKS.iter().flat_map(|check| check(tree)).collect();
    problems.extend(licences::check(tree, &licences::packages(root)?));
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let root = crate::workspace_root();
        let tree = Tree::read(&root).unwrap();
        let problems = problems(&root, &tree).unwrap();
        assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    }
}
