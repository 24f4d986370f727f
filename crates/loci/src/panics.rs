//! What becomes of a panic of a library's where the system gives no more threads or open files: no fault of ours or theirs,
//! so an ordinary error and no message with places in the source.

use loci_app::UserError;

/// How the messages begin that the standard library and the runtime panic with.
const SCARCITY: [&str; 3] =
    ["OS can't spawn worker thread", "failed to create UnixStream", "failed to spawn thread"];

/// Keeps quiet about panics for want of threads and files; everything else is told as before.
pub(crate) fn install() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload_as_str().is_some_and(is_scarcity) {
            before(info);
        }
    }));
}

/// Tells whether what a panic left speaks of want.
pub(crate) fn is_of_scarcity(payload: &(dyn std::any::Any + Send)) -> bool {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).is_some_and(is_scarcity)
}

/// Returns the error for it.
pub(crate) fn scarcity(what: &str) -> UserError {
    UserError::new(format!("{what}: the system gives no more threads or open files"))
        .hint("See what `ulimit -u` and `ulimit -n` allow, and what else runs.")
}

fn is_scarcity(text: &str) -> bool {
    SCARCITY.iter().any(|words| text.starts_with(words))
}
