//! The default keys, a row for each context and action.

use super::action::Action as A;
use super::action::Context as C;
use super::{Action, Binding, Context, parse_chord};

/// Keys are separated by `, `; those of a chord by a blank.
const DEFAULTS: &[(Context, Action, &str)] = &[
    (C::Global, A::AppInterrupt, "ctrl+c"),
    (C::Global, A::AppExit, "ctrl+d"),
    (C::Global, A::AppSuspend, "ctrl+z"),
    (C::Global, A::AppToggleTodos, "ctrl+t"),
    (C::Global, A::AppToggleTranscript, "ctrl+o"),
    (C::Chat, A::HistorySearch, "ctrl+r"),
    (C::Chat, A::HistoryPrevious, "up, ctrl+p"),
    (C::Chat, A::HistoryNext, "down, ctrl+n"),
    (C::Chat, A::ChatCancel, "escape"),
    (C::Chat, A::ChatClearInput, "ctrl+l"),
    (C::Chat, A::ChatClearScreen, "super+k"),
    (C::Chat, A::ChatKillAgents, "ctrl+x ctrl+k"),
    (C::Chat, A::ChatCycleMode, "shift+tab, alt+m"),
    (C::Chat, A::ChatModelPicker, "alt+p"),
    (C::Chat, A::ChatFastMode, "alt+o"),
    (C::Chat, A::ChatThinkingToggle, "alt+t"),
    (C::Chat, A::ChatSubmit, "enter"),
    (C::Chat, A::ChatNewline, "ctrl+j, shift+enter, alt+enter, ctrl+enter"),
    (C::Chat, A::ChatUndo, "ctrl+_, ctrl+shift+-, ctrl+/"),
    (C::Chat, A::ChatExternalEditor, "ctrl+g, ctrl+x ctrl+e"),
    (C::Chat, A::ChatStash, "ctrl+s"),
    (C::Chat, A::ChatImagePaste, "ctrl+v, alt+v"),
    (C::Autocomplete, A::AutocompleteAccept, "tab"),
    (C::Autocomplete, A::AutocompleteDismiss, "escape"),
    (C::Autocomplete, A::AutocompletePrevious, "up, ctrl+p"),
    (C::Autocomplete, A::AutocompleteNext, "down, ctrl+n"),
    (C::Confirmation, A::ConfirmYes, "y, enter"),
    (C::Confirmation, A::ConfirmNo, "n, escape"),
    (C::Confirmation, A::ConfirmPrevious, "up"),
    (C::Confirmation, A::ConfirmNext, "down"),
    (C::Confirmation, A::ConfirmNextField, "tab"),
    (C::Confirmation, A::ConfirmToggle, "space"),
    (C::Confirmation, A::ConfirmCycleMode, "shift+tab, alt+m"),
    (C::Confirmation, A::ConfirmToggleExplanation, "ctrl+e"),
    (C::Transcript, A::TranscriptToggleShowAll, "ctrl+e"),
    (C::Transcript, A::TranscriptExit, "q, ctrl+c, escape"),
    (C::HistorySearch, A::HistorySearchNext, "ctrl+r"),
    (C::HistorySearch, A::HistorySearchAccept, "escape, tab"),
    (C::HistorySearch, A::HistorySearchCancel, "ctrl+c"),
    (C::HistorySearch, A::HistorySearchExecute, "enter"),
    (C::HistorySearch, A::HistorySearchCycleScope, "ctrl+s"),
    (C::Task, A::TaskBackground, "ctrl+b, ctrl+x ctrl+b"),
    (C::ThemePicker, A::ThemeToggleSyntaxHighlighting, "ctrl+t"),
    (C::Help, A::HelpDismiss, "escape"),
    (C::Tabs, A::TabsNext, "tab, right"),
    (C::Tabs, A::TabsPrevious, "shift+tab, left"),
    (C::Attachments, A::AttachmentsNext, "right"),
    (C::Attachments, A::AttachmentsPrevious, "left"),
    (C::Attachments, A::AttachmentsRemove, "backspace, delete"),
    (C::Attachments, A::AttachmentsExit, "down, escape"),
    (C::Footer, A::FooterNext, "right"),
    (C::Footer, A::FooterPrevious, "left"),
    (C::Footer, A::FooterUp, "up"),
    (C::Footer, A::FooterDown, "down"),
    (C::Footer, A::FooterOpenSelected, "enter"),
    (C::Footer, A::FooterClearSelection, "escape"),
    (C::Footer, A::FooterDismiss, "backspace, delete"),
    (C::MessageSelector, A::MessageSelectorUp, "up, k, ctrl+p"),
    (C::MessageSelector, A::MessageSelectorDown, "down, j, ctrl+n"),
    (C::MessageSelector, A::MessageSelectorTop, "ctrl+up, shift+up, alt+up, shift+k"),
    (C::MessageSelector, A::MessageSelectorBottom, "ctrl+down, shift+down, alt+down, shift+j"),
    (C::MessageSelector, A::MessageSelectorSelect, "enter"),
    (C::DiffDialog, A::DiffDismiss, "escape"),
    (C::DiffDialog, A::DiffPreviousSource, "left"),
    (C::DiffDialog, A::DiffNextSource, "right"),
    (C::DiffDialog, A::DiffPreviousFile, "up, k"),
    (C::DiffDialog, A::DiffNextFile, "down, j"),
    (C::DiffDialog, A::DiffViewDetails, "enter"),
    (C::DiffDialog, A::ScrollPageUp, "pageup"),
    (C::DiffDialog, A::ScrollPageDown, "pagedown"),
    (C::DiffDialog, A::ScrollFullPageUp, "shift+space, b"),
    (C::DiffDialog, A::ScrollFullPageDown, "space"),
    (C::DiffDialog, A::ScrollTop, "g, home"),
    (C::DiffDialog, A::ScrollBottom, "shift+g, end"),
    (C::ModelPicker, A::ModelPickerDecreaseEffort, "left"),
    (C::ModelPicker, A::ModelPickerIncreaseEffort, "right"),
    (C::ModelPicker, A::ModelPickerThisSessionOnly, "s"),
    (C::Select, A::SelectNext, "down, j, ctrl+n"),
    (C::Select, A::SelectPrevious, "up, k, ctrl+p"),
    (C::Select, A::SelectAccept, "enter"),
    (C::Select, A::SelectCancel, "escape"),
    (C::Plugin, A::PluginToggle, "space"),
    (C::Plugin, A::PluginInstall, "i"),
    (C::Plugin, A::PluginFavorite, "f"),
    (C::Settings, A::SettingsSearch, "/"),
    (C::Settings, A::SettingsRetry, "r"),
    (C::Settings, A::SelectAccept, "enter, space"),
    (C::Settings, A::ConfirmNo, "escape"),
    (C::Scroll, A::ScrollPageUp, "pageup"),
    (C::Scroll, A::ScrollPageDown, "pagedown"),
    (C::Scroll, A::ScrollTop, "ctrl+home"),
    (C::Scroll, A::ScrollBottom, "ctrl+end"),
    (C::Scroll, A::SelectionCopy, "ctrl+shift+c, super+c"),
    (C::Scroll, A::SelectionExtendLeft, "shift+left"),
    (C::Scroll, A::SelectionExtendRight, "shift+right"),
    (C::Scroll, A::SelectionExtendUp, "shift+up"),
    (C::Scroll, A::SelectionExtendDown, "shift+down"),
    (C::Scroll, A::SelectionExtendLineStart, "shift+home"),
    (C::Scroll, A::SelectionExtendLineEnd, "shift+end"),
];

pub(super) fn bindings() -> Vec<Binding> {
    let of_row = |(context, action, keys): &(Context, Action, &'static str)| {
        let (context, action) = (*context, *action);
        let chords = keys.split(", ").filter_map(parse_chord);
        chords.map(move |chord| Binding { context, chord, action }).collect::<Vec<_>>()
    };
    DEFAULTS.iter().flat_map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_key_is_read_and_no_key_does_two_things() {
        let n_keys: usize = DEFAULTS.iter().map(|(_, _, keys)| keys.split(", ").count()).sum();
        let bindings = bindings();
        assert_eq!(bindings.len(), n_keys);
        for (at, binding) in bindings.iter().enumerate() {
            let twin = bindings[..at]
                .iter()
                .find(|other| other.context == binding.context && other.chord == binding.chord);
            assert_eq!(twin, None, "{binding:?}");
        }
    }
}
