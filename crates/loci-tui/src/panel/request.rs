//! What panels and commands ask for off the thread that draws, and the answers.

use std::path::PathBuf;
use std::sync::Arc;

use loci_app::commands::model::{self, ModelRow};
use loci_app::commands::{ReportTopic, SessionCommands};
use loci_app::session_command::{self, CommandContext};
use loci_engine::{BackgroundTask, SessionSnapshot};

/// Something that is found out beside the thread that draws.
#[derive(Debug, Clone, PartialEq)]
pub enum PanelRequest {
    /// Write the conversation to a file.
    Export {
        /// Which; one is made of the day and the title where there is none.
        file: Option<String>,
    },
    /// Read what a background task printed.
    TaskOutput {
        /// Its id.
        task: String,
        /// The file that collects it.
        file: PathBuf,
    },
    /// Say something about the session, as text.
    Report {
        /// What about.
        topic: ReportTopic,
        /// How it stands.
        snapshot: Arc<SessionSnapshot>,
    },
    /// List the models that can be chosen.
    Models {
        /// How the session stands.
        snapshot: Arc<SessionSnapshot>,
    },
}

/// The answer to a request.
#[derive(Debug, PartialEq)]
pub enum PanelData {
    /// Where the conversation was written.
    Exported(PathBuf),
    /// The background tasks as they are now.
    Tasks(Vec<BackgroundTask>),
    /// The end of what a task printed.
    TaskOutput {
        /// Its id.
        task: String,
        /// What it printed.
        text: String,
    },
    /// How the session stands.
    Snapshot(Arc<SessionSnapshot>),
    /// Servers have changed: whoever shows them asks again.
    ServersChanged(Result<(), String>),
    /// What is said about the session.
    Report {
        /// What about.
        topic: ReportTopic,
        /// What is said.
        markdown: String,
    },
    /// The models that can be chosen.
    Models(Vec<ModelRow>),
    /// What the model says to a question on the side, or why it says nothing.
    SideAnswer {
        /// The request's id.
        request: String,
        /// What came of it.
        outcome: Result<String, String>,
    },
    /// It could not be done, and why.
    Failed(String),
}

/// Answers a request. Blocks: it reads and writes files.
pub(crate) fn answer(request: PanelRequest, ctx: &CommandContext) -> PanelData {
    let answer = match request {
        PanelRequest::Export { file } => {
            session_command::export(ctx, file.as_deref()).map(PanelData::Exported)
        }
        PanelRequest::TaskOutput { task, file } => {
            session_command::task_output(&file).map(|text| PanelData::TaskOutput { task, text })
        }
        PanelRequest::Report { topic, snapshot } => {
            let markdown = SessionCommands::from(ctx).report(topic, &snapshot);
            Ok(PanelData::Report { topic, markdown })
        }
        PanelRequest::Models { snapshot } => {
            Ok(PanelData::Models(model::rows(&SessionCommands::from(ctx), &snapshot)))
        }
    };
    answer.unwrap_or_else(|error| PanelData::Failed(error.to_string()))
}
