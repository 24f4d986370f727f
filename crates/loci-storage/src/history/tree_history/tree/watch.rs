//! What the system says has changed, so that a look at a large tree asks for little of it.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(super) use linux::TreeWatcher;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::TreeWatcher;
