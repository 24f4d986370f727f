//! A scripted Messages API server, temporary homes and projects, golden transcripts, fault injection.
//!
//! A test says what the model will answer, runs the real thing against it on loopback, and then looks at
//! the requests that arrived and the files that were left behind:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use loci_testkit::{ScriptedModel, Step};
//! use serde_json::json;
//!
//! let model = ScriptedModel::start([
//!     Step::call("Read", json!({"file_path": "a.txt"})),
//!     Step::text("The file says hello."),
//! ])
//! .await;
//! // ... run a client against `model.base_url()` ...
//! assert_eq!(model.requests().len(), 0);
//! model.requests_valid().unwrap();
//! # });
//! ```
//!
//! The script (`script`) is data, how it looks on the wire (`wire`) and what a request must obey (`rules`)
//! are pure, and only `server` owns sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test kit fails loudly")]

mod authorized_server;
mod aws;
mod gate;
mod home;
mod http_double;
mod node;
mod normalise;
mod python;
mod recorded;
mod rules;
mod run;
mod script;
mod server;
mod wire;

pub use authorized_server::AuthorizedServer;
pub use aws::{bedrock_exception, check_aws_signature, frame as bedrock_frame};
pub use gate::Gate;
pub use home::TestHome;
pub use http_double::HttpDouble;
pub use node::NodePackages;
pub use normalise::Normaliser;
pub use python::PythonVenv;
pub use recorded::{HttpVersion, Recorded, ToolResult};
pub use rules::violations;
pub use run::{Binary, Output, Session};
#[cfg(unix)]
pub use run::{Screen, ScreenEnd, Terminal};
pub use script::{Script, Step, Usage};
pub use server::ScriptedModel;
