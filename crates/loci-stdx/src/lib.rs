//! Domain-free blocks: reactive store, atomic write, locks, regular files, JSONL scanning from both ends, process
//! groups, clock.
//!
//! Nothing here knows what loci is. Whatever touches the world (time, randomness, environment) comes
//! as a value in [`Env`], which the binary builds once and passes down; [`Env::from_process`] is the
//! only place that reads the process environment.

mod append;
mod atomic;
mod bounded_command;
mod clock;
#[cfg(unix)]
mod dir_entries;
mod dirs;
mod env;
mod json_text;
mod jsonl;
mod lock;
mod packed;
mod parallel;
mod private;
mod process;
mod random;
mod readable;
#[cfg(unix)]
mod real_dir;
mod regular;
mod same_file;
mod shell_prefix;
mod sorted;
mod store;
mod terminal_text;
mod text;
mod user;

pub use append::{AppendError, AppendFile, Attachment};
pub use atomic::{WriteError, WriteOptions, write_atomic};
pub use bounded_command::{
    CommandFailure, CommandLimits, CommandOutput, GroupGuard, exchange, run_bounded, run_for_status,
};
pub use clock::{Clock, Date, FixedClock, SystemClock, TimeZone, Timestamp, rfc3339_millis};
#[cfg(unix)]
pub use dir_entries::{EntryKind, dir_entries};
pub use dirs::{create_private_dir, create_private_dir_all, sync_dir};
pub use env::{Env, Vars};
pub use json_text::put_json_text;
pub use jsonl::{Line, ReverseLines, head_and_tail, lines, lines_at};
pub use lock::{FileLock, LockError};
pub use packed::{Packed, checksum, put_number, put_text};
pub use parallel::{in_parallel, in_parallel_with};
pub use private::{create_private, private_file, write_private};
pub use process::{
    Signal, ignores_hang_up, is_alive, kill_group, own_group, start_ticks, survive_file_size_limit,
    terminate_then_kill,
};
pub use random::{OsRandom, Random, SeededRandom, Uuid};
pub use readable::wait_readable;
#[cfg(unix)]
pub use real_dir::{FileStat, RealDir, is_symlink_error, is_temporary_name, open_real};
pub use regular::{copy_regular, open_regular, open_regular_with, read_regular, read_regular_to_string};
pub use shell_prefix::{prefixed_command, prefixed_program};
pub use sorted::nth_largest;
pub use store::{Listener, Store, Subscription};
pub use terminal_text::{TerminalWriter, escape_for_terminal};
pub use text::{counted, printable, single_line, truncate_chars, utf16_len, visible};
#[cfg(unix)]
pub use user::effective_uid;
pub use user::{is_in_foreground, is_root};
