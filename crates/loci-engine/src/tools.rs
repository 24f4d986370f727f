//! Calls of tools: how one is prepared and run, and what the tools of a session reach beyond `loci-tools`.

pub(crate) mod calls;
pub(crate) mod prepared_call;
pub(crate) mod result_tags;
pub(crate) mod sandbox_hosts;
pub(crate) mod task_list;
pub(crate) mod web;
pub(crate) mod worktrees;
