//! The names of contexts and actions.

/// Makes an enum whose variants have names, and the ways between both.
macro_rules! named {
    ($(#[$meta:meta])* $type:ident { $($variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl $type {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the one of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.name() == name)
            }
        }
    };
}

named! {
    /// Where a key is pressed.
    Context {
        Global = "Global",
        Chat = "Chat",
        Autocomplete = "Autocomplete",
        Settings = "Settings",
        Confirmation = "Confirmation",
        Tabs = "Tabs",
        Help = "Help",
        Transcript = "Transcript",
        HistorySearch = "HistorySearch",
        Task = "Task",
        ThemePicker = "ThemePicker",
        Attachments = "Attachments",
        Footer = "Footer",
        MessageSelector = "MessageSelector",
        DiffDialog = "DiffDialog",
        ModelPicker = "ModelPicker",
        Select = "Select",
        Plugin = "Plugin",
        Scroll = "Scroll",
    }
}

named! {
    /// What a key does. `app:suspend` is ours; all other names are shared with `keybindings.json` of others.
    Action {
        AppInterrupt = "app:interrupt",
        AppExit = "app:exit",
        AppRedraw = "app:redraw",
        AppSuspend = "app:suspend",
        AppToggleTodos = "app:toggleTodos",
        AppToggleTranscript = "app:toggleTranscript",
        HistorySearch = "history:search",
        HistoryPrevious = "history:previous",
        HistoryNext = "history:next",
        ChatCancel = "chat:cancel",
        ChatClearInput = "chat:clearInput",
        ChatClearScreen = "chat:clearScreen",
        ChatKillAgents = "chat:killAgents",
        ChatCycleMode = "chat:cycleMode",
        ChatModelPicker = "chat:modelPicker",
        ChatFastMode = "chat:fastMode",
        ChatThinkingToggle = "chat:thinkingToggle",
        ChatSubmit = "chat:submit",
        ChatNewline = "chat:newline",
        ChatUndo = "chat:undo",
        ChatExternalEditor = "chat:externalEditor",
        ChatStash = "chat:stash",
        ChatImagePaste = "chat:imagePaste",
        AutocompleteAccept = "autocomplete:accept",
        AutocompleteDismiss = "autocomplete:dismiss",
        AutocompletePrevious = "autocomplete:previous",
        AutocompleteNext = "autocomplete:next",
        ConfirmYes = "confirm:yes",
        ConfirmNo = "confirm:no",
        ConfirmPrevious = "confirm:previous",
        ConfirmNext = "confirm:next",
        ConfirmNextField = "confirm:nextField",
        ConfirmPreviousField = "confirm:previousField",
        ConfirmToggle = "confirm:toggle",
        ConfirmCycleMode = "confirm:cycleMode",
        ConfirmToggleExplanation = "confirm:toggleExplanation",
        PermissionToggleDebug = "permission:toggleDebug",
        TranscriptToggleShowAll = "transcript:toggleShowAll",
        TranscriptExit = "transcript:exit",
        HistorySearchNext = "historySearch:next",
        HistorySearchAccept = "historySearch:accept",
        HistorySearchCancel = "historySearch:cancel",
        HistorySearchExecute = "historySearch:execute",
        HistorySearchCycleScope = "historySearch:cycleScope",
        TaskBackground = "task:background",
        ThemeToggleSyntaxHighlighting = "theme:toggleSyntaxHighlighting",
        HelpDismiss = "help:dismiss",
        TabsNext = "tabs:next",
        TabsPrevious = "tabs:previous",
        AttachmentsNext = "attachments:next",
        AttachmentsPrevious = "attachments:previous",
        AttachmentsRemove = "attachments:remove",
        AttachmentsExit = "attachments:exit",
        FooterNext = "footer:next",
        FooterPrevious = "footer:previous",
        FooterUp = "footer:up",
        FooterDown = "footer:down",
        FooterOpenSelected = "footer:openSelected",
        FooterClearSelection = "footer:clearSelection",
        FooterDismiss = "footer:dismiss",
        MessageSelectorUp = "messageSelector:up",
        MessageSelectorDown = "messageSelector:down",
        MessageSelectorTop = "messageSelector:top",
        MessageSelectorBottom = "messageSelector:bottom",
        MessageSelectorSelect = "messageSelector:select",
        DiffDismiss = "diff:dismiss",
        DiffPreviousSource = "diff:previousSource",
        DiffNextSource = "diff:nextSource",
        DiffPreviousFile = "diff:previousFile",
        DiffNextFile = "diff:nextFile",
        DiffViewDetails = "diff:viewDetails",
        DiffBack = "diff:back",
        ModelPickerDecreaseEffort = "modelPicker:decreaseEffort",
        ModelPickerIncreaseEffort = "modelPicker:increaseEffort",
        ModelPickerThisSessionOnly = "modelPicker:thisSessionOnly",
        SelectNext = "select:next",
        SelectPrevious = "select:previous",
        SelectAccept = "select:accept",
        SelectCancel = "select:cancel",
        PluginToggle = "plugin:toggle",
        PluginInstall = "plugin:install",
        PluginFavorite = "plugin:favorite",
        SettingsSearch = "settings:search",
        SettingsRetry = "settings:retry",
        VoicePushToTalk = "voice:pushToTalk",
        ScrollLineUp = "scroll:lineUp",
        ScrollLineDown = "scroll:lineDown",
        ScrollPageUp = "scroll:pageUp",
        ScrollPageDown = "scroll:pageDown",
        ScrollTop = "scroll:top",
        ScrollBottom = "scroll:bottom",
        ScrollHalfPageUp = "scroll:halfPageUp",
        ScrollHalfPageDown = "scroll:halfPageDown",
        ScrollFullPageUp = "scroll:fullPageUp",
        ScrollFullPageDown = "scroll:fullPageDown",
        SelectionCopy = "selection:copy",
        SelectionClear = "selection:clear",
        SelectionExtendLeft = "selection:extendLeft",
        SelectionExtendRight = "selection:extendRight",
        SelectionExtendUp = "selection:extendUp",
        SelectionExtendDown = "selection:extendDown",
        SelectionExtendLineStart = "selection:extendLineStart",
        SelectionExtendLineEnd = "selection:extendLineEnd",
    }
}
