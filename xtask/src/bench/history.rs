//! `cargo xtask bench history`: what keeping what files held costs a call, by the size of the project.

use super::{machine, page};
use anyhow::{Context, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// Measures, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let writes = match words {
        [] => false,
        [word] if word == "--write" => true,
        _ => bail!("Usage: cargo xtask bench history [--write]"),
    };
    let machine = machine::describe();
    let tables = measure(root)?;
    println!("{tables}");
    if writes {
        let command = "```sh\ncargo xtask bench history --write\n```".to_owned();
        page::write(root, page::HISTORY, &[machine, command, tables].join("\n\n"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

fn measure(root: &Path) -> anyhow::Result<String> {
    let dir = std::env::temp_dir().join(format!("loci-bench-history-{}", std::process::id()));
    std::fs::create_dir_all(&dir).context("Failed to make a directory for the trees")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "--package", "loci-storage", "--example", "history", "--"]);
    let output = command.arg(&dir).current_dir(root).stderr(Stdio::inherit()).output();
    std::fs::remove_dir_all(&dir).context("Failed to remove the trees")?;
    let output = output.context("Failed to run cargo")?;
    if !output.status.success() {
        bail!("File history could not be measured");
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
