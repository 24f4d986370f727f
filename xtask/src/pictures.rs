//! `cargo xtask pictures`: takes the pictures of docs/terminal.md anew, from a real run of the interface in tmux.
//!
//! A script (`pictures/pictures.py`) makes a home, starts loci in tmux against a model of its own, presses keys, and puts what
//! the screen shows behind the marks of the page.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = "xtask/src/pictures/pictures.py";
const USAGE: &str = "\
Usage: cargo xtask pictures [--loci BIN] [--show]

  --loci BIN   a loci that is built already; without it, one is built
  --show       print the pictures, and leave the page as it is";

/// Takes the pictures.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let (mut loci, mut shows) = (None, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--loci" => loci = Some(PathBuf::from(words.next().context(USAGE)?)),
            "--show" => shows = true,
            _ => bail!(USAGE),
        }
    }
    let loci = match loci {
        Some(path) => std::path::absolute(path).context("Failed to resolve the program")?,
        None => build(root)?,
    };
    let mut script = Command::new("python3");
    script.arg(root.join(SCRIPT)).arg("--loci").arg(loci).arg("--root").arg(root);
    script.args(shows.then_some("--show"));
    if !script.status().context("Failed to run python3")?.success() {
        bail!("The pictures were not taken");
    }
    Ok(())
}

fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo).args(["build", "-p", "loci"]).current_dir(root).status();
    if !built.context("Failed to run cargo")?.success() {
        bail!("Failed to build loci");
    }
    Ok(root.join("target/debug/loci"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// A name that the script does not take would stop the chore, and one that the page lacks as well.
    #[test]
    fn page_has_a_mark_for_every_picture_of_the_script() {
        let names = |text: &str, before: &str, after: char| -> BTreeSet<String> {
            let parts = text.split(before).skip(1).filter_map(|rest| rest.split_once(after));
            parts.map(|(name, _)| name.trim_end_matches(" --").to_owned()).collect()
        };
        let page = names(include_str!("../../docs/terminal.md"), "<!-- picture: ", '>');
        let script = names(include_str!("pictures/pictures.py"), "yield \"", '"');
        assert_eq!(page, script);
        assert!(!page.is_empty());
    }
}
