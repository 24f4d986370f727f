//! `loci doctor`: what this installation is made of, and what is wrong with it.
//!
//! The checks are those of `loci_app::reports::doctor`. The exit code is 1 when something is wrong.

use loci_app::UserError;
use loci_app::reports::doctor::{BuildNames, DoctorReport};
use loci_stdx::Env;

use crate::build_info;
use crate::config::{pretty, write};
use crate::progress_bar::{ProgressBar, ProgressUnit};

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Examines the installation and returns the exit code.
pub(crate) fn run(env: &Env, args: &DoctorArgs) -> Result<u8, UserError> {
    let build = BuildNames { line: build_info::describe(), json: build_info::to_json() };
    let bar = ProgressBar::new("Examining the installation", ProgressUnit::Checks);
    let report = DoctorReport::observed(env, &build, &|n_done, n_total| bar.set(n_done, n_total));
    bar.finish();
    write(&if args.json { pretty(&report.to_json()) } else { report.to_text() })?;
    Ok(u8::from(report.n_problems() > 0))
}
