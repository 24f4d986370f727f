//! The input: what is typed before it is sent.
//!
//! [`Editor`] is the text with its caret, pure: commands change it, [`Editor::rows`] shows it. `history` and `completion`
//! bring text into it; they read files on threads of their own and never on the one that draws.

mod buffer;
mod chip;
mod command;
mod completion;
mod editor;
#[cfg(unix)]
mod external_editor;
mod history;
mod kill_ring;
mod layout;
mod picture;
mod undo;
mod vim;
mod words;

pub use chip::{Chip, ChipContent, Draft, InputMode, PastedImage};
pub use command::{EditCommand, edit_command};
pub(crate) use completion::MENU_MARK;
pub use completion::{
    CommandItem, CommandMatches, FileAnswer, FileCompleter, FileSource, IgnoredFiles, Mention, Menu,
    MenuItem, MenuStyles, SESSION_MENTION, SuggestionHelper, Token, TokenKind, match_commands, match_emoji,
    whole_name,
};
pub use editor::{EditOutcome, Editor, EnterOutcome, InputStyles, InputView};
#[cfg(unix)]
pub use external_editor::{ExternalEditorError, edit_draft, edit_file, edit_text, editor_command, show_text};
pub use history::{
    HistoryFile, HistoryNews, HistorySearch, PastPrompt, PromptHistory, SearchScope, SearchStyles,
    past_prompt,
};
pub(crate) use loci_stdx::{CommandLimits, run_bounded};
pub use picture::{PictureSource, image_paths, read_picture};
pub use vim::{Vim, VimMode, VimRemap, VimStep};
pub use words::Flavor;
