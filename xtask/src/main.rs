//! Project chores: `cargo xtask tidy`, `cargo xtask bench` and `cargo xtask torture`.
//!
//! Execution enters here. What a chore found goes to stdout; the exit code says whether all is well.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "chores talk to the person who runs them")]

mod bench;
mod pictures;
mod reference;
mod startup_order;
mod tidy;
mod torture;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask <chore>

  tidy                    checks what the compiler cannot; also runs under `cargo test -p xtask`
  bench [options] [scenario]...
                          measures loci beside its peers; `cargo xtask bench --help` says more
  bench settings [--write]
                          measures what settings and instruction files add to a start
  bench recall [--write]
                          measures what one lookup finds in compacted conversations
  bench search [--write]
                          measures searching a gigabyte of sessions, beside ripgrep
  bench context [--write]
                          measures the steps before a request
  pictures [--show]       takes the pictures of docs/terminal.md anew, in tmux
  reference               writes docs/variables.md and docs/settings-reference.md anew, of the tables
  startup-order           writes which functions run at every start, for the linker
  torture <kind> [options]
                          the tests that are cruel to sessions, at full size; `cargo xtask torture` says more";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let chore = args.next().unwrap_or_default();
    let result = match chore.as_str() {
        "tidy" => tidy::run(&workspace_root()),
        "bench" => bench::run(&workspace_root(), args.collect()),
        "reference" => reference::run(&workspace_root()),
        "pictures" => pictures::run(&workspace_root(), &args.collect::<Vec<_>>()),
        "startup-order" => startup_order::run(&workspace_root(), &args.collect::<Vec<_>>()),
        "torture" => torture::run(&workspace_root(), &args.collect::<Vec<_>>()),
        _ => Err(anyhow::anyhow!("{USAGE}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the directory that holds the workspace's `Cargo.toml`.
///
/// Cargo says at run time where the package is; what was compiled in may be a checkout that has since moved.
fn workspace_root() -> PathBuf {
    let at_run_time = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let xtask = at_run_time.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    xtask.parent().map_or(xtask.clone(), Path::to_path_buf)
}
