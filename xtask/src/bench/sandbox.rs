//! `cargo xtask bench sandbox`: what the sandbox adds to a command, and its proxy to a connection.

use super::{machine, page};
use anyhow::{Context, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// Measures, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let writes = match words {
        [] => false,
        [word] if word == "--write" => true,
        _ => bail!("Usage: cargo xtask bench sandbox [--write]"),
    };
    let machine = machine::describe();
    let tables = measure(root)?;
    println!("{tables}");
    if writes {
        let command = "```sh\ncargo xtask bench sandbox --write\n```".to_owned();
        page::write(root, page::SANDBOX, &[machine, command, tables].join("\n\n"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

fn measure(root: &Path) -> anyhow::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "--package", "loci-sandbox", "--example", "added_time"]);
    let output =
        command.current_dir(root).stderr(Stdio::inherit()).output().context("Failed to run cargo")?;
    if !output.status.success() {
        bail!("The measurement failed: see above");
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
