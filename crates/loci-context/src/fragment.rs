//! The parts of the prompt around the conversation. Those that take more than a line have a file each.
//!
//! Fragments are computed once per session and kept, so that the prefix of every request stays the same bytes.

mod environment;
mod git;
mod instructions;

pub use environment::EnvironmentContext;
pub use git::GitContext;
pub use instructions::Instruction;

/// One named part of what the model is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// Its name, for listings and budgets.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

/// What the system prompt is made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptParts {
    /// Replaces our own prompt; an empty text leaves one line of identity.
    pub replacement: Option<String>,
    /// The agent that the conversation runs as, in the place of our own prompt.
    pub agent: Option<AgentPrompt>,
    /// How to work and talk, beside our own prompt or in the place of a part of it.
    pub style: Option<StylePrompt>,
    /// What settings ask of every answer and commit.
    pub preferences: Option<String>,
    /// Added behind it.
    pub appendix: Option<String>,
    /// Where the session runs.
    pub surroundings: EnvironmentContext,
    /// Where memories lie, if any are kept.
    pub memory_dir: Option<String>,
    /// What git says, inside a repository.
    pub git: Option<GitContext>,
    /// Whether what differs between machines is told in the first message, so that the prompt is the same everywhere.
    pub excludes_dynamic: bool,
    /// The prompt as it was when the session began, where that is kept: it is sent again, whatever the other parts say.
    pub snapshot: Vec<String>,
    /// Whether the model's window is small, so that only what matters most is said.
    pub is_small: bool,
}

/// An output style, as the model is told it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StylePrompt {
    /// What it says.
    pub text: String,
    /// Whether what we say about doing the work stays.
    pub keeps_coding: bool,
}

/// What makes a conversation an agent's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentPrompt {
    /// Its system prompt.
    pub text: String,
    /// Its memories: where they lie, and what is in their index.
    pub memory: Option<AgentMemory>,
    /// Whether another conversation has sent it out and waits for its answer.
    pub is_sent_out: bool,
}

/// The memories of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentMemory {
    /// Where they lie.
    pub dir: String,
    /// What the index says; empty as long as nothing is remembered.
    pub index: String,
}

/// Returns the system prompt: what never changes first, what depends on the machine last.
pub fn system_prompt(parts: &PromptParts) -> Vec<Fragment> {
    if !parts.snapshot.is_empty() {
        return parts.snapshot.iter().map(|text| Fragment { name: "snapshot", text: text.clone() }).collect();
    }
    let mut fragments = vec![identity()];
    match (&parts.replacement, &parts.agent) {
        (Some(text), _) if !text.trim().is_empty() => {
            fragments.push(Fragment { name: "replacement", text: text.clone() });
        }
        (Some(_), None) => {}
        (_, Some(agent)) => {
            fragments.extend(agent_fragments(agent));
            fragments.extend(dynamic_fragments(parts).filter(|_| !parts.excludes_dynamic));
        }
        (None, None) => {
            let keeps_coding = parts.style.as_ref().is_none_or(|style| style.keeps_coding);
            fragments.push(match (keeps_coding, parts.is_small) {
                (true, false) => working(),
                (true, true) => working_small(),
                (false, _) => working_without_coding(),
            });
            let style = parts.style.as_ref().filter(|style| !style.text.is_empty());
            fragments.extend(style.map(|style| Fragment { name: "style", text: style.text.clone() }));
            fragments.extend(dynamic_fragments(parts).filter(|_| !parts.excludes_dynamic));
        }
    }
    let preferences = parts.preferences.as_ref().filter(|_| parts.replacement.is_none());
    fragments.extend(preferences.map(|text| Fragment { name: "preferences", text: text.clone() }));
    if let Some(text) = parts.appendix.as_ref().filter(|text| !text.trim().is_empty()) {
        fragments.push(Fragment { name: "appendix", text: text.clone() });
    }
    fragments
}

/// Returns what depends on the machine, where it is not in the system prompt: it opens the first message.
pub fn excluded_sections(parts: &PromptParts) -> Vec<String> {
    let is_excluded = parts.excludes_dynamic && parts.replacement.is_none();
    dynamic_fragments(parts).filter(|_| is_excluded).map(|fragment| fragment.text).collect()
}

/// Returns what depends on the machine: where memories lie, where the session runs, what git says.
fn dynamic_fragments(parts: &PromptParts) -> impl Iterator<Item = Fragment> {
    let has_memory = parts.agent.is_none() && !parts.is_small;
    let memory = parts.memory_dir.as_deref().filter(|_| has_memory).map(memory);
    let environment = environment::fragment(&parts.surroundings);
    memory.into_iter().chain([environment]).chain(parts.git.as_ref().map(git::fragment))
}

/// What a server says about its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInstructions {
    /// The server.
    pub server: String,
    /// What it says.
    pub text: String,
}

/// Returns the context that opens the first user message: what the system prompt leaves out, instruction files, what
/// servers say, and the date.
pub fn user_context(
    excluded: &[String],
    instructions: &[Instruction],
    servers: &[ServerInstructions],
    date: &str,
) -> String {
    let sections = [instructions::section(instructions), server_section(servers), Some(today(date))];
    let sections: Vec<String> = excluded.iter().cloned().chain(sections.into_iter().flatten()).collect();
    format!(
        "<system-reminder>\nContext for this conversation, collected when it began:\n\n{}\n\nUse what bears on \
         the task; leave the rest aside.\n</system-reminder>",
        sections.join("\n\n")
    )
}

/// Says what servers say, one heading each. They are not the user: what they say is about their tools.
fn server_section(servers: &[ServerInstructions]) -> Option<String> {
    let parts: Vec<String> = servers.iter().map(|it| format!("## {}\n{}", it.server, it.text)).collect();
    (!parts.is_empty()).then(|| {
        format!(
            "# MCP Server Instructions\nThese MCP servers say how their tools and resources are to be used:\n\n{}",
            parts.join("\n\n")
        )
    })
}

/// Says who speaks.
fn identity() -> Fragment {
    Fragment {
        name: "identity",
        text: "You are loci, a coding agent working in the user's terminal and files.".to_owned(),
    }
}

/// Says how to work: the fixed part of the prompt, as prose in `working.md`.
fn working() -> Fragment {
    Fragment { name: "working", text: include_str!("fragment/working.md").trim_end().to_owned() }
}

/// Says the same in a few lines, for models that can read little.
fn working_small() -> Fragment {
    Fragment { name: "working", text: include_str!("fragment/working_small.md").trim_end().to_owned() }
}

/// The sections of it that a style of the user's takes the place of.
const CODING_SECTIONS: [&str; 2] = ["Doing the work\n", "Talking\n"];

/// Says how to use tools, and leaves the rest to a style.
fn working_without_coding() -> Fragment {
    let text = working().text;
    let mut sections = text.split("\n# ");
    // What stands before the first heading speaks of software tasks, too.
    let kept = sections
        .by_ref()
        .skip(1)
        .filter(|section| !CODING_SECTIONS.iter().any(|head| section.starts_with(head)));
    let kept: Vec<String> = kept.map(|section| format!("# {}", section.trim_end())).collect();
    Fragment { name: "working", text: kept.join("\n\n") }
}

/// Says what an agent is, how it answers, and what it remembers.
fn agent_fragments(agent: &AgentPrompt) -> Vec<Fragment> {
    let fragment = |name, text: String| Fragment { name, text };
    let own = (!agent.text.trim().is_empty()).then(|| fragment("agent", agent.text.trim_end().to_owned()));
    let sent_out = include_str!("fragment/sent_out.md").trim_end().to_owned();
    let sent_out = agent.is_sent_out.then(|| fragment("sent_out", sent_out));
    let memory = agent.memory.as_ref().map(|memory| {
        let index = match memory.index.trim() {
            "" => "(nothing yet)",
            index => index,
        };
        let text = include_str!("fragment/agent_memory.md").trim_end();
        fragment("agent_memory", text.replace("{dir}", &memory.dir).replace("{index}", index))
    });
    own.into_iter().chain(sent_out).chain(memory).collect()
}

/// Says how memories are kept in `dir`: the prose is in `memory.md`. Nothing here changes from day to day, so the prefix
/// stays the same.
fn memory(dir: &str) -> Fragment {
    let text = include_str!("fragment/memory.md").trim_end();
    let types = include_str!("memory/types.md").trim_end();
    Fragment { name: "memory", text: text.replace("{types}", types).replace("{dir}", dir) }
}

/// Says the date on which the conversation began. A later date arrives as an attachment, never by changing this.
fn today(date: &str) -> String {
    format!("# currentDate\nToday is {date}.")
}

/// Cuts a text to a bound in characters and says so.
fn bounded(text: &str, limit: usize, notice: &str) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}\n{notice}", text[..at].trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn names(parts: &PromptParts) -> String {
        system_prompt(parts).iter().map(|fragment| fragment.name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn system_prompt_fragments_are_in_order() {
        let git = Some(GitContext { branch: "main".to_owned(), ..GitContext::default() });
        for (replacement, appendix, expected) in [
            (None, None, "identity working environment git"),
            (None, Some("Be terse."), "identity working environment git appendix"),
            (Some("You test."), None, "identity replacement"),
            (Some(""), None, "identity"),
            (Some(""), Some("Be terse."), "identity appendix"),
        ] {
            let parts = PromptParts {
                replacement: replacement.map(str::to_owned),
                appendix: appendix.map(str::to_owned),
                git: git.clone(),
                ..PromptParts::default()
            };
            assert_eq!(names(&parts), expected);
        }
    }

    #[test]
    fn small_windows_get_a_small_prompt() {
        let parts = |is_small| PromptParts {
            is_small,
            memory_dir: Some("/m".to_owned()),
            git: Some(GitContext { branch: "main".to_owned(), ..GitContext::default() }),
            ..PromptParts::default()
        };
        let size = |parts: &PromptParts| system_prompt(parts).iter().map(|it| it.text.len()).sum::<usize>();
        assert_eq!(names(&parts(true)), "identity working environment git");
        assert!(size(&parts(true)) * 3 < size(&parts(false)), "{}", size(&parts(true)));
        assert!(size(&parts(true)) < 2_000, "{}", size(&parts(true)));
    }

    #[test]
    fn excluded_dynamic_sections_open_the_first_message() {
        let parts = |excludes_dynamic, replacement: Option<&str>| PromptParts {
            excludes_dynamic,
            replacement: replacement.map(str::to_owned),
            memory_dir: Some("/m".to_owned()),
            git: Some(GitContext { branch: "main".to_owned(), ..GitContext::default() }),
            ..PromptParts::default()
        };
        for (parts, in_prompt, n_excluded) in [
            (parts(false, None), "identity working memory environment git", 0),
            (parts(true, None), "identity working", 3),
            (parts(true, Some("You test.")), "identity replacement", 0),
        ] {
            assert_eq!((names(&parts).as_str(), excluded_sections(&parts).len()), (in_prompt, n_excluded));
        }
        let text = user_context(&excluded_sections(&parts(true, None)), &[], &[], "2026-01-02");
        assert!(text.contains("# Environment\n- Working directory") && text.contains("Today is"), "{text}");
    }

    #[test]
    fn style_stands_behind_ours_or_in_the_place_of_its_coding_part() {
        let with = |keeps_coding: bool| {
            let style = StylePrompt { text: "Talk like a pirate.".to_owned(), keeps_coding };
            system_prompt(&PromptParts { style: Some(style), ..PromptParts::default() })
        };
        let (beside, instead) = (with(true), with(false));
        assert_eq!(beside[1], working());
        assert_eq!((beside[2].name, beside[2].text.as_str()), ("style", "Talk like a pirate."));
        let kept = &instead[1].text;
        assert!(kept.starts_with("# Care") && kept.contains("# Tools") && kept.contains("is data"), "{kept}");
        assert!(!kept.contains("# Doing the work") && !kept.contains("# Talking"), "{kept}");
        assert_eq!(instead[2].name, "style");
    }

    #[test]
    fn agent_prompt_takes_the_place_of_ours() {
        let memory = Some(AgentMemory { dir: "/m".to_owned(), index: String::new() });
        for (agent, expected) in [
            (AgentPrompt::default(), "identity environment"),
            (
                AgentPrompt { text: "You review.".to_owned(), ..AgentPrompt::default() },
                "identity agent environment",
            ),
            (
                AgentPrompt { text: "You review.".to_owned(), memory, is_sent_out: true },
                "identity agent sent_out agent_memory environment",
            ),
        ] {
            assert_eq!(names(&PromptParts { agent: Some(agent), ..PromptParts::default() }), expected);
        }
    }

    #[test]
    fn user_context_names_each_file() {
        let files = [Instruction {
            path: "/p/CLAUDE.md".to_owned(),
            scope: "project instructions, checked into the code base",
            text: "Be terse.\n".to_owned(),
        }];
        expect![[r#"
            <system-reminder>
            Context for this conversation, collected when it began:

            # claudeMd
            Instructions from the user and the project. Follow them as written; they take precedence over habits.

            Contents of /p/CLAUDE.md (project instructions, checked into the code base):

            Be terse.

            # currentDate
            Today is 2026-01-02.

            Use what bears on the task; leave the rest aside.
            </system-reminder>"#]]
        .assert_eq(&user_context(&[], &files, &[], "2026-01-02"));
        let servers = [ServerInstructions { server: "calc".to_owned(), text: "Use add.".to_owned() }];
        let context = user_context(&[], &[], &servers, "2026-01-02");
        assert!(!context.contains("claudeMd"), "{context}");
        assert!(context.contains("## calc\nUse add.\n\n# currentDate"), "{context}");
    }
}
