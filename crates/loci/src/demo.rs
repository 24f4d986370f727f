//! demo
use crate::args::DemoArgs;
use crate::complaint::Complaint;
use loci_stdx::Env;
pub(crate) fn run(_env: &Env, _args: &DemoArgs) -> Result<u8, Complaint> {
    Ok(0)
}
