//! `cargo xtask bench recall`: what a compacted conversation still knows, and what one lookup finds.

use super::{machine, page};
use anyhow::{Context, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// Measures, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let writes = match words {
        [] => false,
        [word] if word == "--write" => true,
        _ => bail!("Usage: cargo xtask bench recall [--write]"),
    };
    let machine = machine::describe();
    let table = measure(root)?;
    println!("{table}");
    if writes {
        let command = "```sh\ncargo xtask bench recall --write\n```".to_owned();
        page::write(root, page::RECALL, &[machine, command, table].join("\n\n"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

fn measure(root: &Path) -> anyhow::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let dir = std::env::temp_dir().join(format!("loci-bench-recall-{}", std::process::id()));
    std::fs::create_dir_all(&dir).context("Failed to make a directory for the conversations")?;
    let mut command = Command::new(cargo);
    command
        .args(["run", "--quiet", "--release", "-p", "loci-storage", "--example", "recall", "--"])
        .arg(&dir);
    let output = command.current_dir(root).stderr(Stdio::inherit()).output().context("Failed to run cargo");
    std::fs::remove_dir_all(&dir).context("Failed to remove the conversations")?;
    let output = output?;
    if !output.status.success() {
        bail!("Lookups could not be measured");
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
