//! `loci acp`: an editor drives sessions over the Agent Client Protocol.

mod client;
mod editor;
mod foreign;
mod hostile;
mod permissions;
mod prompts;
mod sessions;
