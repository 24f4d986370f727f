//! `cargo xtask bench`: the same scripted work for loci and its peers, on this machine, in one run.
//!
//! The measuring is done by a harness script (`--harness`), which plays a scripted model on loopback and
//! watches each program from outside. This chore builds loci, shuts the network off, runs the harness, and
//! turns what it prints into tables. Peers are installed by hand, wherever the developer likes, and left out
//! when they are not named.

mod agents;
mod args;
mod context;
mod figures;
mod history;
mod hooks;
mod isolation;
mod machine;
mod mcp;
mod memory;
mod page;
mod permissions;
mod program_run;
mod recall;
mod replay;
mod rows;
mod sandbox;
mod script_bench;
mod sdk;
mod search;
mod sessions;
mod settings;
mod side_cost;
mod skills;
mod tables;
mod team;
mod terminal;
pub(crate) mod turn_model;

use anyhow::{Context, bail};
use args::Args;
use figures::{Program, Scenario};
use isolation::Isolation;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The gap must not grow with the number of turns: loci alone, short against long.
const GROWTH: [&str; 3] = ["turns:20", "turns:200", "turns:400"];

/// Builds, measures, prints, and writes the page if asked to.
pub(crate) fn run(root: &Path, words: Vec<String>) -> anyhow::Result<()> {
    match words.split_first().map(|(first, more)| (first.as_str(), more)) {
        Some(("agents", more)) => return agents::run(root, more),
        Some(("sessions", more)) => return sessions::run(root, more),
        Some(("mcp", more)) => return mcp::MEASUREMENT.run(root, more),
        Some(("memory", more)) => return memory::MEASUREMENT.run(root, more),
        Some(("context", more)) => return context::run(root, more),
        Some(("history", more)) => return history::run(root, more),
        Some(("hooks", more)) => return hooks::run(root, more),
        Some(("permissions", more)) => return permissions::run(root, more),
        Some(("recall", more)) => return recall::run(root, more),
        Some(("replay", more)) => return replay::run(root, more),
        Some(("sandbox", more)) => return sandbox::run(root, more),
        Some(("sdk", more)) => return sdk::MEASUREMENT.run(root, more),
        Some(("search", more)) => return search::run(root, more),
        Some(("side-cost", more)) => return side_cost::MEASUREMENT.run(root, more),
        Some(("skills", more)) => return skills::run(root, more),
        Some(("settings", more)) => return settings::MEASUREMENT.run(root, more),
        Some(("team", more)) => return team::run(root, more),
        Some(("terminal", more)) => return terminal::MEASUREMENT.run(root, more),
        _ => {}
    }
    let Some(args) = Args::parse(root, words)? else {
        println!("{}", args::USAGE);
        return Ok(());
    };
    let isolation = Isolation::find()?;
    let loci = build(root)?;
    let programs: Vec<(Program, PathBuf)> =
        std::iter::once((Program::Loci, loci)).chain(args.peers.clone()).collect();
    let names =
        programs.iter().map(|(program, path)| Ok((*program, machine::name(&isolation, *program, path)?)));
    let names: Vec<(Program, String)> = names.collect::<anyhow::Result<_>>()?;

    let machine = machine::describe();
    let measured = measure(&isolation, &args, &programs, &args.scenarios)?;
    let growth = measure(&isolation, &args, &programs[..1], &GROWTH.map(str::to_owned))?;
    let report = tables::report(&names, &measured, &growth);
    println!("\n{report}");
    if args.write {
        let text = format!("{machine}\n\n{}\n\n{report}", args.command_for_page());
        page::write(root, page::PEERS, &text)?;
        println!("wrote {}", page::PATH);
    }
    Ok(())
}

fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo).args(["build", "--release", "-p", "loci"]).current_dir(root).status();
    if !status.context("Failed to run cargo")?.success() {
        bail!("Failed to build loci");
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    Ok(target.join("release/loci"))
}

/// Runs the harness, passing on what it prints as it comes.
fn measure(
    isolation: &Isolation,
    args: &Args,
    programs: &[(Program, PathBuf)],
    scenarios: &[String],
) -> anyhow::Result<Vec<Scenario>> {
    let mut command = isolation.command("python3");
    command.arg(&args.harness).arg("--runs").arg(args.runs.to_string());
    for (program, path) in programs {
        command.arg(format!("--{}", program.key())).arg(path);
    }
    let mut child =
        command.args(scenarios).stdout(Stdio::piped()).spawn().context("Failed to run the harness")?;
    let mut output = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.context("Failed to read from the harness")?;
            println!("{line}");
            output.push_str(&line);
            output.push('\n');
        }
    }
    if !child.wait().context("Failed to wait for the harness")?.success() {
        bail!("The harness failed: `{}`", args.harness.display());
    }
    let measured = figures::parse(&output);
    figures::ensure_whole(&measured, programs.iter().map(|(program, _)| *program), scenarios)?;
    Ok(measured)
}
