//! What a process does to itself before a program starts in it: capabilities, limits, Landlock, the filter.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities};

use super::helper::checked;
use super::landlock::Rules;
use super::seccomp::Filter;
use crate::policy::{HelperStep, Preparation};

/// How many processes a sandbox may have, in a user namespace of its own.
pub(super) const MOST_PROCESSES: u64 = 4096;
/// How large a file may get.
const LARGEST_FILE: u64 = 64 << 30;

/// Applies what needs no namespaces. `rules` are those of Landlock, with all that they give; the filter is there
/// where that layer is asked for.
pub(super) fn restrict(
    asked: &Preparation,
    filter: Option<&Filter>,
    rules: impl FnOnce() -> io::Result<Rules>,
) -> io::Result<()> {
    let fault = asked.fault;
    checked(fault, HelperStep::Capabilities, drop_capabilities)?;
    checked(fault, HelperStep::Limits, || set_limits(asked.layers.has_mounts()))?;
    checked(fault, HelperStep::Landlock, || match asked.layers.landlock {
        true => rules()?.enforce(),
        false => Ok(()),
    })?;
    checked(fault, HelperStep::Seccomp, || match (asked.layers.seccomp, filter) {
        (true, Some(filter)) => filter.apply(),
        (true, None) => Err(io::Error::other("there is no filter")),
        (false, _) => Ok(rustix::thread::set_no_new_privs(true)?),
    })
}

/// Gives up what rights the namespace gave, for this process and all that it starts. Those that nothing started from it can
/// have again go first (`sys::empty_bounding_set`).
fn drop_capabilities() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

fn set_limits(has_namespaces: bool) -> io::Result<()> {
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, LARGEST_FILE)?;
    // Elsewhere the user's other processes count as well.
    if has_namespaces { limit(Resource::Nproc, MOST_PROCESSES) } else { Ok(()) }
}

/// Lowers a limit; one that is lower already stays.
fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let lower = |old: Option<u64>| Some(old.map_or(most, |old| old.min(most)));
    setrlimit(resource, Rlimit { current: lower(now.current), maximum: lower(now.maximum) })?;
    Ok(())
}
