//! Names of tools and ids of calls as other protocols allow them.
//!
//! Both are mapped by pure functions, so that a name or an id looks the same in every request and the server's prompt cache
//! fits; a name that comes back is found among the tools that were offered.

use std::borrow::Cow;

use crate::request::ToolSpec;

/// The longest name of a tool.
const MOST_NAME: usize = 64;
/// The longest id of a call.
const MOST_ID: usize = 40;

/// Returns a tool's name as it is sent.
pub(crate) fn tool_name_to_wire(name: &str) -> Cow<'_, str> {
    if !name.is_empty() && name.len() <= MOST_NAME && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(MOST_NAME - 9).collect();
    Cow::Owned(format!("{plain}_{:08x}", hash(name) as u32))
}

/// Returns the tool that a name on the wire stands for; a name that was not offered stays as it is.
pub(crate) fn tool_name_from_wire(wire: &str, tools: &[ToolSpec]) -> String {
    let is_offered = tools.iter().any(|tool| tool.name == wire);
    let mapped = || tools.iter().find(|tool| tool_name_to_wire(&tool.name) == wire);
    match is_offered {
        true => wire.to_owned(),
        false => mapped().map_or_else(|| wire.to_owned(), |tool| tool.name.clone()),
    }
}

/// Returns a call's id as it is sent, for the call and for its result.
pub(crate) fn call_id_to_wire(id: &str) -> Cow<'_, str> {
    if is_call_id(id) { Cow::Borrowed(id) } else { Cow::Owned(format!("call_{:016x}", hash(id))) }
}

/// Tells whether every protocol takes an id.
pub(crate) fn is_call_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= MOST_ID && id.chars().all(is_plain)
}

/// Makes an id for a call whose own cannot be used; the numbers say where in the conversation it stands.
pub(crate) fn fresh_call_id(id: &str, n_messages: usize, n_calls: usize) -> String {
    format!("call_{:016x}", hash(&format!("{id} {n_messages} {n_calls}")))
}

/// Makes the id of a past answer from a digest of its text and how often the same was said before.
pub(crate) fn answer_id(digest: u64, n_before: u64) -> String {
    format!("msg_{digest:016x}{n_before:08x}")
}

/// Returns a digest that is the same everywhere and for ever.
pub(crate) fn digest(text: &str) -> u64 {
    hash(text)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// FNV-1a: the same everywhere and for ever, which the library's hasher does not promise.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use loci_core::raw::RawJson;
    use proptest::prelude::*;

    use super::*;

    fn tool(name: &str) -> ToolSpec {
        ToolSpec { name: name.to_owned(), json: RawJson::from_value("").unwrap(), uses_references: false }
    }

    proptest! {
        #[test]
        fn names_of_tools_come_back(names in proptest::collection::hash_set("\\PC{1,100}", 1..6)) {
            let tools: Vec<ToolSpec> = names.iter().map(|name| tool(name)).collect();
            for name in &names {
                let wire = tool_name_to_wire(name);
                prop_assert!(wire.len() <= MOST_NAME && wire.chars().all(is_plain), "{}", wire);
                prop_assert_eq!(&tool_name_from_wire(&wire, &tools), name);
            }
        }

        #[test]
        fn ids_of_calls_are_taken_by_every_protocol(id in "\\PC{0,100}") {
            let wire = call_id_to_wire(&id);
            prop_assert!(is_call_id(&wire));
            prop_assert_eq!(call_id_to_wire(&wire).into_owned(), wire.into_owned());
        }
    }

    #[test]
    fn usable_names_and_ids_stay() {
        assert_eq!(tool_name_to_wire("mcp__files__read-file"), "mcp__files__read-file");
        assert_eq!(call_id_to_wire("toolu_01A"), "toolu_01A");
        assert_eq!(tool_name_from_wire("Nobody", &[tool("Read")]), "Nobody");
    }
}
