//! The terminal front end.
//!
//! One thread, the caller's, owns everything that is seen: it takes events from a [`mailbox`], changes the state of the
//! application, and draws. Nothing on it waits for a disk, a network or a lock that such work holds. Beside it, one thread
//! reads the terminal and a runtime runs the session; both only put events into the mailbox.
//!
//! What is shown is made in three steps, each pure: a conversation is a list of [`block`]s, which know nothing of widths;
//! renderers make [`text::Row`]s of a block for a width; a [`screen::Frame`] is the rows that are final, which go to the
//! terminal's own scrollback once, and those of the live region, which are compared with the last frame. `screen` writes
//! the difference in one write.

#[cfg(unix)]
pub mod app;
pub mod block;
#[cfg(unix)]
mod clipboard;
#[cfg(unix)]
mod dialog;
pub mod input;
pub mod interface_settings;
pub mod key;
pub mod keymap;
#[cfg(unix)]
mod layout;
pub mod mailbox;
mod named;
#[cfg(unix)]
mod notebook_preview;
pub mod notification;
#[cfg(unix)]
mod panel;
pub mod render;
pub mod screen;
#[cfg(unix)]
mod session;
#[cfg(unix)]
mod status;
#[cfg(unix)]
mod stream_pace;
#[cfg(unix)]
pub mod terminal;
pub mod text;
pub mod theme;
