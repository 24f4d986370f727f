//! A shell line as a tree. Words keep what is needed to tell their value; positions point into the line.

/// A command of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// Words with assignments before and redirections anywhere.
    Simple(Simple),
    /// One after the other.
    Sequence(Vec<Command>),
    /// `a && b`.
    And(Box<Command>, Box<Command>),
    /// `a || b`.
    Or(Box<Command>, Box<Command>),
    /// `a | b`.
    Pipeline(Vec<Command>),
    /// A compound command: its kind, the commands in it, the words it looks at, its redirections.
    Compound { kind: Compound, body: Vec<Command>, words: Vec<Word>, redirects: Vec<Redirect> },
}

/// Kinds of compound commands, by what they do to the commands in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compound {
    /// `! a`.
    Not,
    /// `if`, `while`, `until`: some of the commands run, in this shell.
    Choice,
    /// `for x in …`.
    For,
    /// `( … )`.
    Subshell,
    /// `{ …; }` and `time a`.
    Group,
    /// `a &`.
    Background,
    /// `case`, `select`: what runs when is not followed.
    Opaque,
    /// A function: it runs when it is called, from wherever that is.
    Function,
    /// `[[ … ]]` and `(( … ))`: no commands but those in substitutions.
    Test,
}

/// A simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
}

/// `name=value` before a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) word: Word,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// Whether it says which descriptor it is about: `3< file`.
    pub(crate) is_numbered: bool,
    pub(crate) operator: String,
    pub(crate) target: Word,
    /// The text of a here-document.
    pub(crate) body: Option<Word>,
}

/// One word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// As written.
    pub(crate) source: String,
    pub(crate) pieces: Vec<Piece>,
    /// Commands of substitutions in it.
    pub(crate) scripts: Vec<Command>,
    /// Whether it has a form that never runs unasked, though its value may be known: `$'…'`, `${…}`, `$(…)`.
    pub(crate) is_fancy: bool,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A character outside quotes.
    Plain(char),
    /// A character that stands for itself.
    Quoted(char),
    /// A variable by its name.
    Variable(String),
    /// A substitution that prints this text, as long as `echo` and `printf` are what they are.
    Output(String),
    /// Something only the run will tell.
    Unknown,
}
