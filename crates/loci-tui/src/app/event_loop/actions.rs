//! What the application wants done, done: told to the session, written to the terminal, read or asked beside this thread.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use loci_app::UserError;
use loci_app::compose::child_env::child_env;
use loci_app::interface::helper_command::HelperCommand;
use loci_app::interface::status_line::{
    AgentRowsConfig, STATUS_LINE, SUBAGENT_STATUS_LINE, ScriptRun, agent_rows_input, script_vars,
    status_input,
};
use loci_app::mcp::logins::{has_browser, open_browser};
use loci_engine::{Command, SessionSnapshot};
use loci_storage::config::InputHistory;
use loci_storage::layout::ConfigHome;

use super::super::{Effect, Event, ExitReason, News};
use super::EventLoop;
use super::own_files::begin_file;
use crate::block::{Block, NoticeLevel};
use crate::clipboard;
use crate::input::{
    Draft, FileAnswer, FileCompleter, FileSource, HistoryFile, HistoryNews, PastPrompt, PictureSource,
    SuggestionHelper, TokenKind, edit_draft, edit_file, edit_text, read_picture, show_text,
};
use crate::notification::tmux_passes;
use crate::panel::PanelData;
use crate::session::ToSession;
use crate::status::AgentRows;

/// Runs a command that has the terminal.
const RUN: &str = r#"eval "$1""#;
/// The same, and leaves what it showed there until Enter is pressed.
const RUN_AND_WAIT: &str = r#"eval "$1"; code=$?; printf '\n[Enter goes back]'; read -r; exit $code"#;

impl EventLoop {
    /// Opens a page where a browser can be expected; its address is on the screen in any case.
    fn open_page(&self, page: &str) {
        if has_browser(&self.env)
            && let Err(why) = open_browser(&self.env, page)
        {
            tracing::debug!(target: "loci::mcp", why, "no browser came up");
        }
    }

    pub(super) fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.perform_one(effect);
        }
    }

    fn perform_one(&mut self, effect: Effect) {
        match effect {
            Effect::Send(command) => {
                if matches!(command, Command::Prompt(_)) {
                    self.read_own_files();
                }
                self.tell(ToSession::Command(command));
            }
            Effect::AnswerClient { request, answer } => {
                self.tell(ToSession::AnswerClient { request, answer });
            }
            Effect::Answer(answer) => self.tell(ToSession::Answer(answer)),
            Effect::StoreKey(key) => self.tell(ToSession::StoreKey(key)),
            Effect::Preview { question, tool, input } => {
                self.tell(ToSession::Preview { question, tool, input });
            }
            Effect::Remember(prompt) => self.remember(prompt),
            Effect::LoadHistory => {
                if let Some(history) = &self.history {
                    history.load_everywhere();
                }
            }
            Effect::AskFiles { source, kind, query } => self.ask_files(source, kind, &query),
            Effect::CompleteArgument { command, written } => {
                self.tell(ToSession::CompleteArgument { command, written });
            }
            Effect::ListMentions => self.tell(ToSession::ListMentions),
            Effect::SetMentions(mentions) => {
                if let Some((_, completer)) = &self.completer {
                    completer.set_mentions(mentions);
                }
            }
            Effect::EditDraft { draft, answer } => {
                self.failing(|it| it.edit_draft(&draft, answer.as_deref()));
            }
            Effect::CallPerson(message) => {
                let channel = self.app.preferences().notification_channel();
                let bytes = self.facts().notification(channel, &message);
                self.failing(|it| if it.terminal.is_dumb() { Ok(()) } else { it.output.write_all(&bytes) });
            }
            Effect::RepaintAll => self.failing(|it| {
                it.terminal.set_up_again()?;
                if it.full_screen.is_none() {
                    let bytes = it.writer.scroll_away();
                    it.output.write_all(&bytes)?;
                }
                it.repaint()
            }),
            Effect::ReadPicture { number, source } => self.read_picture(number, source),
            Effect::Write(sequence) => self.failing(|it| it.output.write_all(sequence.as_bytes())),
            Effect::OpenPage(page) => self.open_page(&page),
            Effect::Copy(text) => {
                self.failing(|it| it.output.write_all(&clipboard::terminal_sequence(&text)));
                self.copy_by_programs(text);
            }
            Effect::Suspend => self.failing(|it| {
                it.leave_screen()?;
                if it.terminal.suspend()? { it.repaint() } else { Ok(()) }
            }),
            Effect::Repaint => self.failing(|it| {
                if !it.terminal.set_up_again()? {
                    return Ok(());
                }
                it.leave_screen()?;
                it.repaint()
            }),
            Effect::PlayDemo => {
                self.plays_demo = true;
                self.exit = Some(ExitReason::Asked);
            }
            Effect::Exit(reason) => self.exit = Some(reason),
            Effect::AskPanel(request) => self.tell(ToSession::AskPanel(request)),
            Effect::ShowInEditor(text) => self.failing(|it| it.show_in_editor(&text)),
            Effect::AskPullRequest { is_pushed } => self.ask_pull_request(is_pushed),
            Effect::RunStatusLine { command, snapshot } => self.run_status_line(command, snapshot),
            Effect::RunAgentRows { config, snapshot } => self.run_agent_rows(config, snapshot),
            Effect::RunOnTerminal { command, cwd, waits } => {
                self.failing(|it| it.run_on_terminal(command, &cwd, waits));
            }
            Effect::EditText { name, text } => self.failing(|it| it.edit_panel_text(name, &text)),
            Effect::EditFile(path) => self.failing(|it| it.edit_own_file(&path)),
            Effect::ReadOwnFiles => self.read_own_files(),
            Effect::EditKeyBindings => self.failing(Self::edit_key_bindings),
            Effect::EditTheme { slug, name } => self.failing(|it| it.edit_theme(&slug, &name)),
            Effect::Switch(target) => self.tell(ToSession::Switch(target)),
            Effect::GoBackground(run) => self.background = Some(run),
            Effect::GoElsewhere(elsewhere) => {
                self.elsewhere = Some(elsewhere);
                self.exit = Some(ExitReason::Asked);
            }
        }
    }

    /// Runs the command of the status line; what it prints comes back as news.
    fn run_status_line(&mut self, command: HelperCommand, snapshot: Arc<SessionSnapshot>) {
        let vars = script_vars(&self.env, self.size.width, self.size.height);
        let (sandboxes, cwd) = (self.app.preferences().helper_sandboxes(), snapshot.current_dir.clone());
        let run = ScriptRun { label: STATUS_LINE, command, sandboxes, cwd, vars };
        let (mailbox, mut viewer) = (self.mailbox.clone(), self.app.status_viewer());
        let (env, pull_requests, changed) = (self.env.clone(), self.pull_requests.clone(), mailbox.clone());
        let input = move || {
            let changed = move |found| changed.put(News::PullRequest(found));
            viewer.pull_request = pull_requests.current(&env, &snapshot.current_dir, changed);
            status_input(&snapshot, &viewer).to_string()
        };
        self.status_script.start(run, input, move |said| mailbox.put(News::StatusLine(said)));
    }

    /// Asks which pull request the branch at hand has, beside this thread; the answer is news.
    fn ask_pull_request(&self, is_pushed: bool) {
        if self.env.vars.is_truthy("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC") {
            return;
        }
        let (env, pull_requests, mailbox) =
            (self.env.clone(), self.pull_requests.clone(), self.mailbox.clone());
        let ask = move || {
            if is_pushed {
                pull_requests.expire();
            }
            let changed = mailbox.clone();
            let changed = move |found| changed.put(News::PullRequest(found));
            mailbox.put(News::PullRequest(pull_requests.current(&env, &env.cwd, changed)));
        };
        if let Err(error) = std::thread::Builder::new().name("pull request".to_owned()).spawn(ask) {
            tracing::warn!(target: "loci::tui", "the pull request is not asked for: {error}");
        }
    }

    /// Runs the command for the rows of agents; what it prints comes back as news.
    fn run_agent_rows(&mut self, config: AgentRowsConfig, snapshot: Arc<SessionSnapshot>) {
        let columns = AgentRows::columns(self.size.width);
        let mut vars = script_vars(&self.env, columns, self.size.height);
        vars.extend(config.vars);
        let (label, cwd) = (SUBAGENT_STATUS_LINE, snapshot.current_dir.clone());
        let sandboxes = self.app.preferences().helper_sandboxes();
        let run = ScriptRun { label, command: config.command, sandboxes, cwd, vars };
        let mailbox = self.mailbox.clone();
        let input = move || agent_rows_input(&snapshot, columns).to_string();
        self.agent_rows_script.start(run, input, move |said| mailbox.put(News::AgentRows(said)));
    }

    /// Does something with the terminal; without one nothing is left to do.
    fn failing(&mut self, act: impl FnOnce(&mut Self) -> io::Result<()>) {
        if act(self).is_err() {
            self.exit = Some(ExitReason::HungUp);
        }
    }

    /// Shows a text in the person's own editor.
    fn show_in_editor(&mut self, text: &str) -> io::Result<()> {
        self.take_open_answers()?;
        if let Err(error) = show_text(&mut self.terminal, &self.env.vars, text) {
            let text = UserError::from_error(&error).to_string();
            self.mailbox.put(News::Output(vec![Block::Notice { level: NoticeLevel::Error, text }]));
        }
        self.repaint()
    }

    /// Gives the terminal to the person's editor until it ends.
    fn edit_draft(&mut self, draft: &Draft, answer: Option<&str>) -> io::Result<()> {
        self.leave_screen()?;
        let edited = edit_draft(&mut self.terminal, &self.env.vars, draft, answer);
        let edited = edited.map_err(|error| UserError::from_error(&error).to_string());
        self.take_edited(News::Edited(Box::new(edited)))
    }

    /// Gives the terminal to the person's editor, for a text of the panel that is open.
    fn edit_panel_text(&mut self, name: String, text: &str) -> io::Result<()> {
        self.leave_screen()?;
        let edited = edit_text(&mut self.terminal, &self.env.vars, text);
        let text = edited.map_err(|error| UserError::from_error(&error).to_string());
        self.take_edited(News::PanelData(PanelData::EditedText { name, text }))
    }

    /// Gives the terminal to a command of the shell until it ends.
    fn run_on_terminal(&mut self, command: String, cwd: &Path, waits: bool) -> io::Result<()> {
        // What was said before it stands above what it shows.
        self.draw()?;
        self.leave_screen()?;
        let mut bash = std::process::Command::new("bash");
        let script = if waits { RUN_AND_WAIT } else { RUN };
        bash.args(["-c", script, "bash", &command]).current_dir(cwd);
        bash.env_clear().envs(child_env(&self.env));
        let ended = self.terminal.lend(|| bash.status())?;
        let ended = ended.map(|status| status.code()).map_err(|error| error.to_string());
        self.take_edited(News::RanOnTerminal { command, ended })
    }

    /// The same, for a file of the person's own.
    fn edit_own_file(&mut self, path: &Path) -> io::Result<()> {
        self.leave_screen()?;
        let edited = begin_file(path, "")
            .map_err(|error| format!("Failed to make a file: `{}`: {error}", path.display()))
            .and_then(|()| {
                edit_file(&mut self.terminal, &self.env.vars, path)
                    .map_err(|error| UserError::from_error(&error).to_string())
            });
        let problem = edited.err();
        self.take_edited(News::PanelData(PanelData::EditedFile(problem)))
    }

    /// Leaves the screen to somebody else.
    pub(super) fn leave_screen(&mut self) -> io::Result<()> {
        self.take_open_answers()?;
        if self.full_screen.is_some() {
            return Ok(());
        }
        let bytes = self.writer.leave();
        self.output.write_all(&bytes)?;
        self.terminal.set_rows_below(None);
        Ok(())
    }

    /// Goes on with what came of an editor.
    fn take_edited(&mut self, news: News) -> io::Result<()> {
        let now = self.now();
        let actions = self.app.update(Event::News(news), now);
        self.perform(actions);
        self.repaint()
    }

    /// Asks tmux beside this thread whether it lets sequences through to the terminal.
    pub(super) fn ask_tmux(&self) {
        if !self.terminal_facts.is_tmux {
            return;
        }
        let (vars, may_pass) = (self.env.vars.clone(), Arc::clone(&self.may_pass));
        let ask = move || may_pass.store(tmux_passes(&vars), Ordering::Relaxed);
        // Without a thread nothing passes.
        drop(std::thread::Builder::new().name("tmux".to_owned()).spawn(ask));
    }

    /// Begins to read the input history beside this thread.
    pub(super) fn open_history(&mut self) {
        let mailbox = self.mailbox.clone();
        let file = InputHistory::new(&ConfigHome::from_env(&self.env));
        match HistoryFile::start(file, move |news| mailbox.put(News::History(news))) {
            Ok(history) => {
                history.load_project(self.env.cwd.clone());
                self.history = Some(history);
            }
            Err(error) => self.mailbox.put(News::History(HistoryNews::Failed(error.to_string()))),
        }
    }

    /// Keeps a prompt in the input history.
    fn remember(&mut self, prompt: PastPrompt) {
        let is_unwanted = self.env.vars.is_truthy("CLAUDE_CODE_SKIP_PROMPT_HISTORY");
        if !is_unwanted {
            let timestamp = self.env.clock.now().as_millisecond();
            self.unsaved.push(PastPrompt { timestamp, ..prompt });
            self.save_history(false);
        }
    }

    /// Writes prompts of the history; those typed before there was a session wait for its id, unless this is the end.
    pub(super) fn save_history(&mut self, is_end: bool) {
        let session_id = self.app.session().id().map(str::to_owned);
        if self.unsaved.is_empty() || session_id.is_none() && !is_end {
            return;
        }
        if let Some(history) = &self.history {
            for prompt in self.unsaved.drain(..) {
                let session_id = prompt.session_id.clone().or_else(|| session_id.clone());
                history.append(&PastPrompt { session_id, ..prompt });
            }
        }
    }

    /// Finds files beside this thread.
    fn ask_files(&mut self, source: FileSource, kind: TokenKind, query: &str) {
        if self.completer.as_ref().is_none_or(|(known, _)| *known != source) {
            let (mailbox, env) = (self.mailbox.clone(), &self.env);
            let tell = move |answer| mailbox.put(News::Files(answer));
            let (cwd, home, vars) = (env.cwd.clone(), env.home.clone(), child_env(env));
            let helper = SuggestionHelper { vars, sandboxes: self.app.preferences().helper_sandboxes() };
            let started = FileCompleter::start(cwd, home, helper, source.clone(), tell);
            self.completer = started.ok().map(|completer| (source, completer));
        }
        match &self.completer {
            Some((_, completer)) => completer.ask(kind, query),
            None => self.mailbox.put(News::Files(FileAnswer::failed(kind, query))),
        }
    }

    /// Puts a text on the clipboard of the window system and of tmux, where there are such, beside this thread.
    fn copy_by_programs(&self, text: String) {
        if !clipboard::has_programs(&self.env.vars) {
            return;
        }
        let vars = self.env.vars.clone();
        let copy = move || clipboard::copy_by_programs(&text, &vars);
        if let Err(error) = std::thread::Builder::new().name("clipboard".to_owned()).spawn(copy) {
            tracing::debug!(target: "loci::tui", %error, "nothing was copied");
        }
    }

    /// Reads a picture beside this thread.
    fn read_picture(&self, number: u32, source: PictureSource) {
        let (mailbox, vars) = (self.mailbox.clone(), self.env.vars.clone());
        let read = move || {
            let read = Box::new(read_picture(&source, &vars));
            mailbox.put(News::Picture { number, read });
        };
        if let Err(error) = std::thread::Builder::new().name("picture".to_owned()).spawn(read) {
            let read = Box::new(Err(format!("The picture cannot be read: {error}")));
            self.mailbox.put(News::Picture { number, read });
        }
    }
}
