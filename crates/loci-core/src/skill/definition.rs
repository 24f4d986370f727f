//! What a skill is: the fields of a `SKILL.md`, or of a command file, and its text.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

use super::bundled::BUNDLED_ALIASES;
use super::substitution::Variables;
use crate::front_matter::{self, FieldList, FieldReader};

/// A text that people call by `/name` and the model by its name.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillDefinition {
    /// What it is called by, without the slash.
    pub name: String,
    /// What lists show in the place of the name.
    pub label: Option<String>,
    /// What it is for; the first paragraph, where nothing is said.
    pub description: String,
    /// When the model should use it.
    pub when_to_use: Option<String>,
    /// What may follow the name, for people.
    pub argument_hint: Option<String>,
    /// Names of its arguments, in order.
    pub arguments: Vec<String>,
    /// Whether the model may use it by itself.
    pub is_for_model: bool,
    /// Whether the model is told of it before it is used.
    pub is_listed: bool,
    /// Whether people may call it.
    pub is_for_people: bool,
    /// Rules for calls that run without asking during its turn.
    pub allowed_tools: Vec<String>,
    /// Tools that are not there during its turn.
    pub disallowed_tools: Vec<String>,
    /// The model of its turn.
    pub model: Option<String>,
    /// How hard the model thinks in its turn.
    pub effort: Option<String>,
    /// The agent that it is given to, where it does not run in the conversation.
    pub fork: Option<SkillFork>,
    /// Hooks that hold once it was used, as settings have them.
    pub hooks: Option<Value>,
    /// Patterns of the files that make it known; always known without any.
    pub paths: Vec<String>,
    /// What runs its commands, where it is not bash.
    pub shell: Option<String>,
    /// Its text, before anything is put into it.
    pub body: String,
    /// What its plugin puts into it, by name.
    pub variables: Vec<(String, String)>,
    /// Where it comes from.
    pub source: SkillSource,
    /// What it asks for in vain, or says that nobody understands.
    pub notes: Vec<String>,
}

/// An agent that a skill is given to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFork {
    /// Its type; the usual one without.
    pub agent: Option<String>,
    /// Whether the conversation goes on meanwhile.
    pub is_background: bool,
}

/// Whose skill it is. An earlier one wins over a later one of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkillScope {
    /// The administrator's.
    Managed,
    /// The user's.
    User,
    /// The project's, or one of a further directory.
    Project,
    /// A plugin's.
    Plugin,
    /// Our own.
    Bundled,
}

impl SkillScope {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::User => "user",
            Self::Project => "project",
            Self::Plugin => "plugin",
            Self::Bundled => "bundled",
        }
    }
}

/// Which kind of file a skill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkillKind {
    /// A directory with a `SKILL.md`. It wins over a command file of the same name and scope.
    Skill,
    /// A file below `commands/`.
    CommandFile,
}

/// Where a skill comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillSource {
    /// Whose it is.
    pub scope: SkillScope,
    /// Which kind of file.
    pub kind: SkillKind,
    /// The file, if it is one.
    pub file: Option<PathBuf>,
    /// The plugin, if it is one's.
    pub plugin: Option<String>,
    /// Whether the user trusts the folder that it lies in.
    pub is_trusted: bool,
    /// The directory below the working one whose skill it is, as people write it; none for one that is known from the start.
    pub nested_in: Option<String>,
}

impl SkillSource {
    /// A skill that is part of loci.
    pub fn bundled() -> Self {
        let (scope, kind) = (SkillScope::Bundled, SkillKind::Skill);
        Self { scope, kind, file: None, plugin: None, is_trusted: true, nested_in: None }
    }
}

impl fmt::Display for SkillSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}", file.display()),
            None => f.write_str(self.scope.as_str()),
        }
    }
}

/// The fields that have a meaning.
const FIELDS: [&str; 19] = [
    "name",
    "description",
    "when_to_use",
    "argument-hint",
    "arguments",
    "disable-model-invocation",
    "user-invocable",
    "allowed-tools",
    "disallowed-tools",
    "model",
    "effort",
    "context",
    "agent",
    "background",
    "hooks",
    "paths",
    "shell",
    "metadata",
    "license",
];

/// Those of them that are a text, and those that are one or a list.
const TEXTS: [&str; 11] = [
    "name",
    "description",
    "when_to_use",
    "model",
    "effort",
    "context",
    "agent",
    "shell",
    "disable-model-invocation",
    "user-invocable",
    "background",
];
const LISTS: [&str; 4] = ["arguments", "allowed-tools", "disallowed-tools", "paths"];

/// Reads a skill that is called `name`. It is one whatever its front matter says; what that says in vain is in its notes.
pub fn parse_skill(text: &str, name: &str, source: SkillSource) -> SkillDefinition {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (head, body) = front_matter::split(text).unwrap_or(("", text));
    match front_matter::parse_fields(head) {
        Ok(FieldList { fields, notes }) => {
            let mut skill = from_fields(fields, name, body, source);
            skill.notes.extend(notes);
            skill
        }
        Err(why) => {
            let mut skill = from_fields(Vec::new(), name, body, source);
            // What its front matter would have kept back is kept back: the model does not find it by itself.
            skill.is_for_model = false;
            skill.notes.push(format!("the front matter cannot be read: {why}"));
            skill
        }
    }
}

fn from_fields(
    mut fields: Vec<(String, Value)>,
    name: &str,
    body: &str,
    source: SkillSource,
) -> SkillDefinition {
    let has_field = |key: &str| fields.iter().any(|(name, _)| name == key);
    let mut reader = FieldReader::new(fields.as_slice());
    let is_skill = source.kind == SkillKind::Skill;
    let mut skill = SkillDefinition {
        name: name.to_owned(),
        label: None,
        description: String::new(),
        when_to_use: None,
        argument_hint: argument_hint(&reader),
        arguments: argument_names(&reader),
        is_for_model: is_for_model(&mut reader),
        is_listed: true,
        is_for_people: reader.switch("user-invocable").unwrap_or(true),
        allowed_tools: reader.rules("allowed-tools").unwrap_or_default(),
        disallowed_tools: reader.rules("disallowed-tools").unwrap_or_default(),
        model: reader.text("model").filter(|model| model != "inherit"),
        effort: reader.effort("effort"),
        fork: fork(&mut reader),
        hooks: reader.get("hooks").filter(|hooks| hooks.is_object()).cloned(),
        paths: reader.names("paths").filter(|_| is_skill).unwrap_or_default(),
        shell: reader
            .parsed("shell", |text| match text {
                "bash" => Some(None),
                "powershell" => Some(Some(text.to_owned())),
                _ => None,
            })
            .flatten(),
        body: body.trim().to_owned(),
        variables: Vec::new(),
        source,
        notes: Vec::new(),
    };
    reader.note_kinds(&TEXTS, &LISTS);
    let is_no_map = |key: &&str| reader.get(key).is_some_and(|it| !it.is_object() && !it.is_null());
    let no_maps: Vec<&str> = ["hooks", "metadata"].into_iter().filter(is_no_map).collect();
    skill.notes = reader.into_notes();
    let closed = skill.notes.iter_mut().find(|note| note.starts_with("`disable-model-invocation: "));
    if let Some(note) = closed {
        *note = note.replace("has no effect", "is taken for true");
    }
    skill.notes.extend(no_maps.into_iter().map(|key| format!("`{key}` is no map and has no effect")));
    if !is_skill {
        let idle = ["name", "paths"].into_iter().filter(|key| has_field(key));
        skill.notes.extend(idle.map(|key| format!("`{key}` counts only in a SKILL.md")));
    }
    let names = fields.iter().map(|(key, _)| key.as_str());
    let unknown = names.filter(|key| !FIELDS.contains(key) && *key != "compatibility");
    skill.notes.extend(unknown.map(|key| format!("`{key}` has no meaning here")));
    if skill.shell.take().is_some() {
        skill.notes.push("`shell: powershell` is not supported: its commands are not run".to_owned());
        skill.shell = Some("powershell".to_owned());
    }
    if skill.fork.is_none() {
        let idle = ["agent", "background"].into_iter().filter(|key| has_field(key));
        skill.notes.extend(idle.map(|key| format!("`{key}` counts only beside `context: fork`")));
    }
    // What is long is taken, not copied.
    skill.label = front_matter::take_text(&mut fields, "name").filter(|_| is_skill);
    let description = front_matter::take_text(&mut fields, "description");
    skill.description = trimmed(description.unwrap_or_else(|| first_paragraph(body)));
    skill.when_to_use = front_matter::take_text(&mut fields, "when_to_use");
    skill.hold_back_untrusted();
    skill
}

/// Tells whether the model may use it. Whoever says something of it that nobody understands means that it may not.
fn is_for_model(reader: &mut FieldReader<'_>) -> bool {
    const KEY: &str = "disable-model-invocation";
    let is_said = reader.get(KEY).is_some_and(|value| !value.is_null());
    !reader.switch(KEY).unwrap_or(is_said)
}

fn fork(reader: &mut FieldReader<'_>) -> Option<SkillFork> {
    let agent = reader.text("agent");
    let is_background = reader.switch("background").unwrap_or(true);
    reader.parsed("context", |text| (text == "fork").then_some(()))?;
    Some(SkillFork { agent, is_background })
}

/// A hint is often written in brackets, which is a list to those who read it as data.
fn argument_hint(reader: &FieldReader<'_>) -> Option<String> {
    match reader.get("argument-hint") {
        Some(Value::Array(items)) => {
            let words: Vec<_> = items.iter().filter_map(Value::as_str).collect();
            Some(format!("[{}]", words.join(", ")))
        }
        _ => reader.text("argument-hint"),
    }
}

/// A list, or names with spaces between them.
fn argument_names(reader: &FieldReader<'_>) -> Vec<String> {
    match reader.get("arguments") {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(text)) => {
            text.split([' ', ',']).filter(|name| !name.is_empty()).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Takes the space around a text away; one that has none is not copied.
fn trimmed(text: String) -> String {
    match text.trim() {
        inner if inner.len() == text.len() => text,
        inner => inner.to_owned(),
    }
}

/// A path on one line, whatever its names are.
fn shown(dir: &std::path::Path) -> String {
    dir.display().to_string().replace(char::is_control, "?")
}

/// The first paragraph of a text that is no heading, on one line.
fn first_paragraph(body: &str) -> String {
    let lines = body.lines().map(str::trim).skip_while(|line| line.is_empty() || line.starts_with('#'));
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

impl SkillDefinition {
    /// Takes away what only a folder that the user trusts may ask for, and says so.
    fn hold_back_untrusted(&mut self) {
        if self.source.is_trusted {
            return;
        }
        if self.hooks.take().is_some() {
            self.notes.push("`hooks` wait until this folder is trusted".to_owned());
        }
        if !std::mem::take(&mut self.allowed_tools).is_empty() {
            self.notes.push("`allowed-tools` wait until this folder is trusted".to_owned());
        }
    }

    /// Returns the other names that people can call it by, where nothing else has them: a skill of a plugin that names
    /// itself is called by that name alone, too.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        let is_ours = self.source.scope == SkillScope::Bundled;
        let own = BUNDLED_ALIASES.iter().filter(move |(_, name)| is_ours && *name == self.name);
        let is_plugins = self.source.scope == SkillScope::Plugin;
        let bare =
            self.name.rsplit(':').next().filter(|last| is_plugins && self.label.as_deref() == Some(last));
        own.map(|(alias, _)| *alias).chain(bare)
    }

    /// Tells whether it may stand beside others at the beginning of one prompt: not one that is given to an agent, and not
    /// the loop, whose arguments may be a command themselves.
    pub fn is_stackable(&self) -> bool {
        let is_loop = self.source.scope == SkillScope::Bundled && self.name == "loop";
        self.fork.is_none() && !is_loop
    }

    /// Returns the directory that its files lie in.
    pub fn dir(&self) -> Option<&std::path::Path> {
        self.source.file.as_deref().and_then(std::path::Path::parent)
    }

    /// Returns what stands before its text: where its files lie, for it may name some of them. A command file is all there is
    /// of a command.
    pub fn directory_note(&self) -> String {
        let dir = self.dir().filter(|_| self.source.kind == SkillKind::Skill);
        dir.map(|dir| format!("This skill lies in {}, where relative paths in it begin.\n\n", shown(dir)))
            .unwrap_or_default()
    }

    /// Returns the variables of its text, where it is used in a place that has these.
    pub fn variables_in(&self, place: &Variables) -> Variables {
        let mut variables = place.clone();
        if let Some(dir) = self.dir() {
            variables.set("CLAUDE_SKILL_DIR", dir.display().to_string());
        }
        if let Some(effort) = &self.effort {
            variables.set("CLAUDE_EFFORT", effort);
        }
        for (name, value) in &self.variables {
            variables.set_disarmed(name, value);
        }
        variables
    }

    /// Returns the rules it grants, with its directories put in.
    pub fn granted_rules(&self, variables: &Variables) -> Vec<String> {
        self.allowed_tools.iter().map(|rule| variables.expand(rule)).collect()
    }

    /// Tells whether there is something to be told of it before it is used.
    pub fn has_summary(&self) -> bool {
        let is_said = |text: &str| !text.trim().is_empty();
        is_said(&self.description) || self.when_to_use.as_deref().is_some_and(is_said)
    }

    /// Returns what the model is told of it before it is used.
    pub fn summary(&self) -> String {
        match &self.when_to_use {
            Some(when) => format!("{} {}", self.description, when.trim()).trim().to_owned(),
            None => self.description.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(kind: SkillKind) -> SkillSource {
        let file = Some("/home/.claude/skills/deploy/SKILL.md".into());
        SkillSource { scope: SkillScope::User, kind, file, ..SkillSource::bundled() }
    }

    fn parse(text: &str) -> SkillDefinition {
        parse_skill(text, "deploy", source(SkillKind::Skill))
    }

    #[test]
    fn every_field_of_a_skill_is_read() {
        let skill = parse(
            "---\nname: Deploy it\ndescription: Ships the build\nwhen_to_use: When asked to ship.\n\
             argument-hint: [target] [version]\narguments: target version\ndisable-model-invocation: yes\n\
             user-invocable: off\nallowed-tools: Bash(git add *), Bash(git commit *)\ndisallowed-tools:\n  - WebFetch\n\
             model: opus\neffort: high\ncontext: fork\nagent: Explore\nbackground: no\nhooks:\n  Stop: []\n\
             paths: src/**, docs/*.md\nshell: bash\nlicense: MIT\nfuture: 1\n---\n\n# Deploy\n\nShip $target.\n",
        );
        let texts = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
        assert_eq!(skill.label.as_deref(), Some("Deploy it"));
        assert_eq!(skill.summary(), "Ships the build When asked to ship.");
        assert_eq!(skill.argument_hint.as_deref(), Some("[target] [version]"));
        assert_eq!(skill.arguments, texts(&["target", "version"]));
        assert_eq!((skill.is_for_model, skill.is_for_people), (false, false));
        assert_eq!(skill.allowed_tools, texts(&["Bash(git add *)", "Bash(git commit *)"]));
        assert_eq!(skill.disallowed_tools, texts(&["WebFetch"]));
        assert_eq!((skill.model.as_deref(), skill.effort.as_deref()), (Some("opus"), Some("high")));
        assert_eq!(skill.fork, Some(SkillFork { agent: Some("Explore".to_owned()), is_background: false }));
        assert!(skill.hooks.is_some());
        assert_eq!(skill.paths, texts(&["src/**", "docs/*.md"]));
        assert_eq!(skill.body, "# Deploy\n\nShip $target.");
        assert_eq!(skill.notes, texts(&["`future` has no meaning here"]));
        assert_eq!(skill.dir(), Some(std::path::Path::new("/home/.claude/skills/deploy")));
    }

    #[test]
    fn text_without_front_matter_is_a_skill_described_by_its_first_paragraph() {
        let skill = parse("# Deploy\n\nShip the build\nto the server.\n\nThen rest.");
        assert_eq!(skill.description, "Ship the build to the server.");
        assert_eq!((skill.is_for_model, skill.is_for_people, skill.fork), (true, true, None));
    }

    #[test]
    fn unreadable_front_matter_keeps_the_skill_from_the_model() {
        let skill = parse("---\n- no mapping\n---\nShip it.");
        assert!(!skill.is_for_model && skill.is_for_people, "{:?}", skill.notes);
        assert_eq!(skill.body, "Ship it.");
        assert_eq!(skill.notes.len(), 1);
    }

    #[test]
    fn command_files_have_neither_label_nor_paths() {
        let skill =
            parse_skill("---\nname: x\npaths: y\n---\nz", "front:comp", source(SkillKind::CommandFile));
        assert_eq!((skill.name.as_str(), skill.label, skill.paths), ("front:comp", None, Vec::new()));
        assert_eq!(skill.notes, ["`name` counts only in a SKILL.md", "`paths` counts only in a SKILL.md"]);
    }

    #[test]
    fn value_of_another_kind_is_noted_and_costs_itself() {
        for (line, note) in [
            ("hooks: Stop", "`hooks` is no map"),
            ("hooks: [Stop]", "`hooks` is no map"),
            ("metadata: mine", "`metadata` is no map"),
            ("allowed-tools: 5", "`allowed-tools: 5` is not understood"),
            ("allowed-tools:\n  Bash: x", "`allowed-tools: {\"Bash\":\"x\"}` is not understood"),
            ("paths: true", "`paths: true` is not understood"),
            ("model: [opus]", "`model: [\"opus\"]` is not understood"),
            ("description:\n  en: x", "`description: {\"en\":\"x\"}` is not understood"),
            (
                "disable-model-invocation: perhaps",
                "`disable-model-invocation: perhaps` is not understood and is taken for true",
            ),
        ] {
            let skill = parse(&format!("---\n{line}\nargument-hint: [a] [b]\n---\nShip it."));
            assert_eq!(skill.argument_hint.as_deref(), Some("[a] [b]"), "{line}");
            assert!(skill.notes.len() == 1 && skill.notes[0].starts_with(note), "{line}: {:?}", skill.notes);
            assert_eq!(
                skill.is_for_model,
                !line.starts_with("disable"),
                "{line}: what restricts stays closed"
            );
        }
    }

    #[test]
    fn hooks_and_grants_of_an_untrusted_folder_wait() {
        let source =
            SkillSource { is_trusted: false, scope: SkillScope::Project, ..source(SkillKind::Skill) };
        let skill = parse_skill("---\nhooks:\n  Stop: []\nallowed-tools: Bash(*)\n---\nx", "a", source);
        assert_eq!((skill.hooks, skill.allowed_tools.len()), (None, 0));
        let wait = |key: &str| format!("`{key}` wait until this folder is trusted");
        assert_eq!(skill.notes, [wait("hooks"), wait("allowed-tools")]);
    }
}
