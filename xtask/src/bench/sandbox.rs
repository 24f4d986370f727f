//! `cargo xtask bench sandbox`: what the sandbox adds to a command, and its proxy to a connection, beside bubblewrap and
//! Codex's sandbox where they are there.

use super::isolation::Isolation;
use super::{machine, page};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const USAGE: &str = "Usage: cargo xtask bench sandbox [--write] [--loci BIN] [--codex BIN]

  --loci BIN     a release build of loci, which is the helper as people have it; target/release/loci if that is there
  --codex BIN    Codex, if it is to be measured; or LOCI_BENCH_CODEX
  --write        writes the page";

/// How many commands are started one after the other to see whether anything grows.
const GROWTH_COMMANDS: &str = "10000";

#[derive(Default)]
struct Args {
    writes: bool,
    loci: Option<PathBuf>,
    codex: Option<PathBuf>,
}

fn parse(root: &Path, words: &[String]) -> anyhow::Result<Args> {
    let mut args = Args::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().map(PathBuf::from).context(USAGE);
        match word.as_str() {
            "--write" => args.writes = true,
            "--loci" => args.loci = Some(value()?),
            "--codex" => args.codex = Some(value()?),
            _ => bail!(USAGE),
        }
    }
    args.codex = args.codex.or_else(|| std::env::var_os("LOCI_BENCH_CODEX").map(PathBuf::from));
    args.loci = args.loci.or_else(|| Some(root.join("target/release/loci")).filter(|it| it.is_file()));
    Ok(args)
}

/// Measures, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let args = parse(root, words)?;
    let machine = machine::describe();
    let tables = measure(root, &args)?;
    println!("{tables}");
    if args.writes {
        let command = "```sh\ncargo xtask bench sandbox --codex BIN --write\n```".to_owned();
        page::write(root, page::SANDBOX, &[machine, command, tables].join("\n\n"))?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

fn measure(root: &Path, args: &Args) -> anyhow::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--release", "--package", "loci-sandbox"]);
    build.args(["--example", "added_time", "--bin", "sandbox-probe"]);
    if !build.current_dir(root).status().context("Failed to run cargo")?.success() {
        bail!("The measurement could not be built: see above");
    }
    let built = root.join("target/release");
    let timed = built.join("examples/added_time");
    // A peer runs where it reaches nobody.
    let mut command = match &args.codex {
        Some(_) => Isolation::find()?.command(&timed),
        None => Command::new(&timed),
    };
    for (flag, program) in [("--loci", &args.loci), ("--codex", &args.codex)] {
        command.args(program.iter().flat_map(|program| [flag.as_ref(), program.as_os_str()]));
    }
    let mut growth = Command::new(built.join("sandbox-probe"));
    growth.args(["growth", GROWTH_COMMANDS]);
    Ok([printed(command, root)?, printed(growth, root)?].join("\n\n"))
}

fn printed(mut command: Command, root: &Path) -> anyhow::Result<String> {
    let output = command
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("Failed to start a measurement")?;
    if !output.status.success() {
        bail!("The measurement failed: see above");
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
