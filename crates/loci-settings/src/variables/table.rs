//! The rows: every variable, one line each: its name, what it holds, what it is for.

use super::{Variable, VariableKind};

/// Makes a constant and a row of each line.
macro_rules! variables {
    ($($name:ident: $kind:ident, $about:literal;)*) => {
        $(#[doc = $about] pub const $name: &str = stringify!($name);)*

        /// The rows.
        pub(super) const VARIABLES: &[Variable] =
            &[$(Variable { name: $name, kind: VariableKind::$kind, about: $about }),*];
    };
}

variables! {
    // The model and its server
    ANTHROPIC_API_KEY: Secret, "the key of the Anthropic API, or of what speaks like it";
    ANTHROPIC_AUTH_TOKEN: Secret, "a token that is sent in place of the key";
    ANTHROPIC_BASE_URL: Address, "the server that requests go to";
    ANTHROPIC_BETAS: Text, "beta features to ask for, with commas between them";
    ANTHROPIC_CUSTOM_HEADERS: Text, "headers of each request, a line each";
    ANTHROPIC_CUSTOM_MODEL_OPTION: Text, "a further model to choose from";
    ANTHROPIC_MODEL: Text, "the model to start with; `--model` wins";
    ANTHROPIC_DEFAULT_MODEL: Text, "the model that new sessions begin with where nothing else says one";
    ANTHROPIC_DEFAULT_FABLE_MODEL: Text, "what the alias `fable` means";
    ANTHROPIC_DEFAULT_HAIKU_MODEL: Text, "what the alias `haiku` means, and the model of small work";
    ANTHROPIC_DEFAULT_OPUS_MODEL: Text, "what the alias `opus` means";
    ANTHROPIC_DEFAULT_SONNET_MODEL: Text, "what the alias `sonnet` means";
    ANTHROPIC_SMALL_FAST_MODEL: Text, "the model of small work beside the conversation";
    ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION: Text, "the region of that model at Amazon";
    CLAUDE_CODE_EFFORT_LEVEL: Text, "how hard the model thinks: low, medium, high, xhigh, max or auto";
    MAX_THINKING_TOKENS: Number, "the budget of thinking; 0 turns it off";
    CLAUDE_CODE_MAX_OUTPUT_TOKENS: Number, "the longest answer";
    CLAUDE_CODE_MAX_CONTEXT_TOKENS: Number, "the window of models that are not known";
    CLAUDE_CODE_DISABLE_1M_CONTEXT: Switch, "ask for no large windows";
    CLAUDE_CODE_DISABLE_THINKING: Switch, "send nothing about thinking";
    CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING: Switch, "give thinking a budget where the model could choose";
    CLAUDE_CODE_ALWAYS_ENABLE_EFFORT: Switch, "send the effort to models that are not known to take one";
    CLAUDE_CODE_EXTRA_BODY: Text, "fields of each request's body, as JSON";
    DISABLE_INTERLEAVED_THINKING: Switch, "do not ask for thinking between calls";
    DISABLE_PROMPT_CACHING: Switch, "have no prompts cached";
    ENABLE_PROMPT_CACHING_1H: Switch, "have prompts cached for an hour";
    ENABLE_PROMPT_CACHING_1H_BEDROCK: Switch, "the same at Bedrock";
    FORCE_PROMPT_CACHING_5M: Switch, "have prompts cached for five minutes";
    CLAUDE_CODE_PROMPT_CACHE_TTL: Text, "how long prompts of the main line are cached: 5m or 1h";
    CLAUDE_CODE_SUBAGENT_PROMPT_CACHE_TTL: Text, "the same for agents";
    CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS: Switch, "ask for no beta feature that a gateway may not know";
    CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: Switch, "ask the gateway which models it has";
    CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: Switch, "do not ask again without streaming";
    CLAUDE_CODE_MAX_RETRIES: Number, "how often a request is tried again";
    CLAUDE_CODE_RETRY_WATCHDOG: Switch, "try again for as long as it takes";
    API_TIMEOUT_MS: Number, "how long a request may take";
    API_FORCE_IDLE_TIMEOUT: Switch, "give up streams that fall silent, whoever serves them";
    CLAUDE_STREAM_IDLE_TIMEOUT_MS: Number, "how long a stream may be silent";
    CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS: Number, "how long a stream may bring no byte";
    CLAUDE_ENABLE_STREAM_WATCHDOG: Switch, "whether silent streams are given up";
    CLAUDE_ENABLE_BYTE_WATCHDOG: Switch, "whether streams without a byte are given up";
    CLAUDE_AGENT_SDK_CLIENT_APP: Text, "what drives loci, for the server";
    CLAUDE_AGENT_SDK_VERSION: Text, "the release of the SDK that drives loci";
    CLAUDE_CODE_ENTRYPOINT: Text, "what started loci, as the transcript keeps it";
    // Other providers
    OPENAI_API_KEY: Secret, "the key of the provider `openai`";
    OPENAI_BASE_URL: Address, "the server of the provider `openai`";
    OPENROUTER_API_KEY: Secret, "the key of the provider `openrouter`";
    GEMINI_API_KEY: Secret, "the key of the provider `gemini`";
    OLLAMA_HOST: Address, "the server of the provider `ollama`";
    LOCI_PROVIDER_KEY_NAMES: Given, "names of variables with keys of providers, for what loci runs";
    LOCI_PASS_PROVIDER_KEYS: Switch, "let commands have the keys of providers";
    // Clouds
    CLAUDE_CODE_USE_BEDROCK: Switch, "ask Amazon Bedrock";
    CLAUDE_CODE_USE_MANTLE: Switch, "ask Bedrock by its Messages API";
    CLAUDE_CODE_USE_ANTHROPIC_AWS: Switch, "ask Claude Platform on AWS";
    CLAUDE_CODE_USE_VERTEX: Switch, "ask Google Vertex AI";
    CLAUDE_CODE_USE_FOUNDRY: Switch, "ask Microsoft Foundry";
    CLAUDE_CODE_SKIP_BEDROCK_AUTH: Switch, "somebody else signs requests to Bedrock";
    CLAUDE_CODE_SKIP_MANTLE_AUTH: Switch, "somebody else signs requests to Bedrock's Messages API";
    CLAUDE_CODE_SKIP_ANTHROPIC_AWS_AUTH: Switch, "somebody else signs requests to Claude Platform on AWS";
    CLAUDE_CODE_SKIP_VERTEX_AUTH: Switch, "somebody else proves who we are to Vertex";
    CLAUDE_CODE_SKIP_FOUNDRY_AUTH: Switch, "somebody else proves who we are to Foundry";
    CLAUDE_CODE_SKIP_AWS_CRED_CACHE: Switch, "get credentials for Amazon anew each time";
    CLAUDE_CODE_AWS_CHAIN_RESOLVE_TIMEOUT_MS: Number, "how long credentials for Amazon are looked for";
    ANTHROPIC_BEDROCK_BASE_URL: Address, "another address of Bedrock";
    ANTHROPIC_BEDROCK_MANTLE_BASE_URL: Address, "another address of Bedrock's Messages API";
    ANTHROPIC_BEDROCK_REGION_PREFIX: Text, "the part of ids that names a group of regions";
    ANTHROPIC_BEDROCK_SERVICE_TIER: Text, "the tier of service at Bedrock";
    ANTHROPIC_AWS_API_KEY: Secret, "the key of Claude Platform on AWS";
    ANTHROPIC_AWS_BASE_URL: Address, "another address of Claude Platform on AWS";
    ANTHROPIC_AWS_WORKSPACE_ID: Text, "the workspace there";
    ANTHROPIC_VERTEX_BASE_URL: Address, "another address of Vertex";
    ANTHROPIC_VERTEX_PROJECT_ID: Text, "the project at Google";
    ANTHROPIC_FOUNDRY_API_KEY: Secret, "the key of Foundry";
    ANTHROPIC_FOUNDRY_AUTH_TOKEN: Secret, "a token for Foundry";
    ANTHROPIC_FOUNDRY_BASE_URL: Address, "another address of Foundry";
    ANTHROPIC_FOUNDRY_RESOURCE: Text, "the resource at Foundry, which names its address";
    AWS_ACCESS_KEY_ID: Secret, "credentials for Amazon";
    AWS_SECRET_ACCESS_KEY: Secret, "credentials for Amazon";
    AWS_SESSION_TOKEN: Secret, "credentials for Amazon that end";
    AWS_SECURITY_TOKEN: Secret, "an older name of the same";
    AWS_BEARER_TOKEN_BEDROCK: Secret, "a key of Bedrock alone";
    AWS_REGION: Text, "the region at Amazon";
    AWS_DEFAULT_REGION: Text, "the same, where that one is not set";
    AWS_PROFILE: Text, "the profile of the files of credentials";
    AWS_CONFIG_FILE: Path, "the file of profiles";
    AWS_SHARED_CREDENTIALS_FILE: Path, "the file of credentials";
    AWS_ROLE_ARN: Text, "the role to take";
    AWS_ROLE_SESSION_NAME: Text, "what its session is called";
    AWS_WEB_IDENTITY_TOKEN_FILE: Path, "the file of the token that the role is taken with";
    AWS_CONTAINER_AUTHORIZATION_TOKEN: Secret, "the token for the credentials of a container";
    AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: Path, "the file of that token";
    AWS_CONTAINER_CREDENTIALS_FULL_URI: Address, "where a container's credentials are";
    AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: Address, "the same, at the usual host";
    AWS_EC2_METADATA_DISABLED: Switch, "do not ask the machine for its role";
    AWS_EC2_METADATA_SERVICE_ENDPOINT: Address, "where the machine is asked";
    AWS_ENDPOINT_URL_BEDROCK: Address, "another address of Bedrock";
    AWS_ENDPOINT_URL_SSO: Address, "another address of the login at Amazon";
    AWS_ENDPOINT_URL_STS: Address, "another address of what gives roles";
    AZURE_AUTHORITY_HOST: Address, "where tokens of Azure are got";
    AZURE_CLIENT_CERTIFICATE_PASSWORD: Secret, "the password of a certificate";
    AZURE_CLIENT_CERTIFICATE_PATH: Path, "a certificate; kept from commands";
    AZURE_CLIENT_ID: Text, "the identity at Azure";
    AZURE_CLIENT_SECRET: Secret, "its secret";
    AZURE_FEDERATED_TOKEN_FILE: Path, "the file of a token that stands for it";
    AZURE_PASSWORD: Secret, "a password; kept from commands";
    AZURE_POD_IDENTITY_AUTHORITY_HOST: Address, "where the identity of a pod is got";
    AZURE_TENANT_ID: Text, "the tenant at Azure";
    IDENTITY_ENDPOINT: Address, "where the machine's identity is got";
    IDENTITY_HEADER: Secret, "what is sent there";
    MSI_SECRET: Secret, "an older name of the same";
    GOOGLE_APPLICATION_CREDENTIALS: Path, "the file of credentials for Google";
    GOOGLE_API_KEY: Secret, "a key of Google; kept from commands";
    GOOGLE_CLOUD_PROJECT: Text, "the project at Google";
    GCLOUD_PROJECT: Text, "the same";
    GOOGLE_OAUTH_ACCESS_TOKEN: Secret, "a token of Google; kept from commands";
    GCE_METADATA_HOST: Address, "where the machine is asked for its account";
    CLOUDSDK_ACTIVE_CONFIG_NAME: Text, "the configuration of gcloud";
    CLOUDSDK_AUTH_ACCESS_TOKEN: Secret, "a token of gcloud; kept from commands";
    CLOUDSDK_AUTH_ACCESS_TOKEN_FILE: Path, "the file of one; kept from commands";
    CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE: Path, "credentials of gcloud; kept from commands";
    CLOUDSDK_CONFIG: Path, "where gcloud keeps its things";
    CLOUDSDK_CORE_PROJECT: Text, "the project of gcloud";
    CLOUD_ML_REGION: Text, "the region at Vertex";
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: Secret, "the token with which a workflow gets its identity; kept from commands";
    ACTIONS_ID_TOKEN_REQUEST_URL: Address, "where it gets it; kept from commands";
    // Credentials
    CLAUDE_CODE_OAUTH_TOKEN: Secret, "a token of an account";
    CLAUDE_CODE_API_KEY_HELPER_TTL_MS: Number, "how long what `apiKeyHelper` printed is used";
    // Network
    HTTP_PROXY: Address, "the proxy of requests that are not encrypted";
    HTTPS_PROXY: Address, "the proxy of requests";
    ALL_PROXY: Address, "the proxy of both";
    NO_PROXY: Text, "hosts that are reached without it";
    NODE_EXTRA_CA_CERTS: Path, "further authorities to trust";
    SSL_CERT_FILE: Path, "authorities to trust";
    SSL_CERT_DIR: Path, "a directory of them";
    NODE_TLS_REJECT_UNAUTHORIZED: Text, "no repository may set it; certificates are always checked";
    CLAUDE_CODE_CERT_STORE: Text, "which authorities are trusted: those of the system, or built in";
    CLAUDE_CODE_CLIENT_CERT: Path, "the certificate that proves who we are";
    CLAUDE_CODE_CLIENT_KEY: Path, "its key";
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: Switch, "send nothing that was not asked for";
    // Files and the home
    HOME: Path, "the home directory";
    CLAUDE_CONFIG_DIR: Path, "the config home, in place of `~/.claude`";
    CLAUDE_CODE_PROJECT_DIR_NAME: Text, "what the directory of the project's sessions is called";
    CLAUDE_CODE_TMPDIR: Path, "where files of a session lie for a while";
    CLAUDE_COWORK_MEMORY_PATH_OVERRIDE: Path, "where memories lie";
    CODEX_HOME: Path, "where sessions of Codex are looked for";
    TMPDIR: Path, "where temporary files lie";
    PATH: Text, "where programs are looked for";
    XDG_CONFIG_HOME: Path, "where git's own list of ignored files lies";
    XDG_RUNTIME_DIR: Path, "where the socket of the display lies";
    // Modes of a run
    CLAUDE_CODE_SIMPLE: Switch, "a bare run, as `--bare`";
    CLAUDE_CODE_SAFE_MODE: Switch, "a run without customisations, as `--safe-mode`";
    IS_SANDBOX: Switch, "the machine is a sandbox: root may bypass permissions";
    CLAUDE_CODE_MAX_TURNS: Number, "the most round trips of a turn, as `--max-turns`";
    MAX_STRUCTURED_OUTPUT_RETRIES: Number, "how often an answer that does not fit its schema is asked for again";
    CLAUDE_CODE_RESUME_INTERRUPTED_TURN: Switch, "a session that was cut short goes on by itself";
    CLAUDE_CODE_RESUME_INTERRUPTED_TURN_MAX_AGE_MS: Number, "how old such a turn may be";
    CLAUDE_CODE_RESUME_PROMPT: Text, "the words with which it goes on";
    CLAUDE_CODE_FORWARD_SUBAGENT_TEXT: Switch, "pass on what agents say, as `--forward-subagent-text`";
    CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: Switch, "tell the state of the session on the stream";
    CLAUDE_CODE_SDK_READS_SESSION_STATE: Switch, "the client reads the state of the session";
    CLAUDE_CODE_QUESTION_PREVIEW_FORMAT: Text, "the form of previews; Markdown alone has an effect";
    LOCI_STDIN_WAIT_MS: Number, "how long standard input may be silent beside a prompt";
    DEBUG: Switch, "write what loci does into a file";
    CLAUDE_CODE_DEBUG_LOGS_DIR: Path, "that file";
    CLAUDE_CODE_DEBUG_LOG_LEVEL: Text, "how much is written there";
    // Context, compaction, memory
    CLAUDE_CODE_AUTO_COMPACT_WINDOW: Number, "the window to compact within";
    CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: Number, "the share of the window at which it is compacted, in percent";
    DISABLE_AUTO_COMPACT: Switch, "do not compact unasked";
    DISABLE_COMPACT: Switch, "do not compact at all";
    LOCI_CONTEXT_COLLAPSE: Switch, "fold old stretches instead of compacting the whole";
    LOCI_CONTEXT_EDITING: Switch, "ask the server to clear old results";
    LOCI_DISABLE_CLEARING: Switch, "clear no old results";
    LOCI_COMPACTION_WAIT_MS: Number, "how long a summary that is being made is waited for";
    LOCI_DRAIN_MS: Number, "how long work beside the conversation is waited for at the end";
    LOCI_PREPARE_SUMMARY: Switch, "prepare a summary before the window is full";
    LOCI_SESSION_MEMORY: Switch, "keep running notes of a session";
    LOCI_MEMORY_EXTRACTION: Switch, "look for memories when the model has answered";
    CLAUDE_CODE_DISABLE_AUTO_MEMORY: Switch, "keep no memories between sessions; `0` keeps them";
    CLAUDE_CODE_DISABLE_CLAUDE_MDS: Switch, "read no instruction files";
    CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD: Switch, "read those of added directories, too";
    CLAUDE_CODE_DISABLE_ATTACHMENTS: Switch, "attach nothing to prompts";
    CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS: Switch, "say nothing about git in the prompt";
    CLAUDE_CODE_SKIP_PROMPT_HISTORY: Switch, "keep no session and no history of prompts";
    CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING: Switch, "do not keep what files held before";
    CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING: Switch, "keep it in runs that a program drives";
    // Tools
    BASH_DEFAULT_TIMEOUT_MS: Number, "how long a command may run where its call does not say";
    BASH_MAX_TIMEOUT_MS: Number, "the most that a call may ask for";
    BASH_MAX_OUTPUT_LENGTH: Number, "how much of a command's output the model reads";
    TASK_MAX_OUTPUT_LENGTH: Number, "how much of a task's output the model reads";
    CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR: Switch, "commands begin in the project's directory each time";
    CLAUDE_CODE_SHELL_PREFIX: Text, "a program that is handed every command";
    CLAUDE_CODE_SUBPROCESS_ENV_SCRUB: Switch, "keep credentials from what loci runs";
    CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS: Number, "how much of a file is read at once";
    CLAUDE_CODE_GLOB_HIDDEN: Switch, "whether Glob finds hidden files";
    CLAUDE_CODE_GLOB_NO_IGNORE: Switch, "whether Glob finds ignored files";
    CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY: Number, "how many calls run beside each other";
    CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION: Number, "the most searches of a session";
    CLAUDE_CODE_WEBFETCH_CACHE_TTL_MS: Number, "how long a page that was fetched is used again";
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: Switch, "nothing runs in the background";
    CLAUDE_AUTO_BACKGROUND_TASKS: Switch, "agents and calls of MCP servers that take long go to the background by themselves";
    LOCI_AUTO_BACKGROUND_MS: Number, "after how long it does";
    CLAUDE_CODE_DISABLE_BG_SHELL_PRESSURE_REAP: Switch, "end no idle commands when memory is short";
    CLAUDE_SUBAGENT_BG_SHELL_MAX_MS: Number, "how long a command of an agent may run in the background";
    CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS: Number, "how long `-p` waits for work in the background";
    CLAUDE_CODE_ENABLE_TASKS: Switch, "whether the model keeps a list of tasks, or of todos";
    CLAUDE_CODE_TASK_LIST_ID: Text, "the list of tasks that several sessions share";
    CLAUDE_CODE_DISABLE_CRON: Switch, "no schedules";
    ENABLE_TOOL_SEARCH: Text, "whether rarely needed tools are looked for: a switch, or `auto:N`";
    SLASH_COMMAND_TOOL_CHAR_BUDGET: Number, "the room for the list of skills";
    CLAUDE_CODE_DISABLE_BUNDLED_SKILLS: Switch, "no built-in skills";
    // Agents
    CLAUDE_CODE_SUBAGENT_MODEL: Text, "the model of agents";
    CLAUDE_CODE_FORK_SUBAGENT: Switch, "agents may begin with the conversation";
    CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS: Switch, "no agents Explore and Plan";
    CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS: Switch, "no built-in agents in runs that a program drives";
    CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS: Number, "how many agents work at once";
    CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH: Number, "how deep agents send out agents";
    CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS: Number, "how long an agent may be silent";
    CLAUDE_CODE_DISABLE_AGENT_VIEW: Switch, "no agent view, and no sessions in the background";
    // Hooks
    CLAUDE_CODE_STOP_HOOK_BLOCK_CAP: Number, "how often hooks may keep a turn from ending";
    CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS: Number, "how long hooks have at the end";
    CLAUDE_CODE_DISABLE_PERMISSION_PROMPT_NOTIFY_HOOKS: Switch, "hooks hear of no questions of permission";
    // MCP servers and plugins
    MCP_TIMEOUT: Number, "how long a server may take to start";
    MCP_TOOL_TIMEOUT: Number, "how long a call of a server may take";
    CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT: Number, "how long such a call may be silent";
    CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS: Number, "after how long a call goes to the background";
    MCP_CONNECTION_NONBLOCKING: Switch, "a session begins before its servers are there";
    MCP_CONNECT_TIMEOUT_MS: Number, "how long it waits for them";
    MCP_SERVER_CONNECTION_BATCH_SIZE: Number, "how many servers are started at once";
    MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE: Number, "how many of those elsewhere";
    MCP_PROTOCOL_NEGOTIATION: Text, "how the protocol's version is agreed upon";
    MCP_CLIENT_SECRET: Secret, "the secret of `loci mcp add --client-secret`";
    MAX_MCP_OUTPUT_TOKENS: Number, "how much of a server's result the model reads";
    CLAUDE_CODE_MCP_ALLOWLIST_ENV: Switch, "servers get only variables that are named";
    LOCI_MCP_CLIENT_METADATA_URL: Address, "where a server reads who its client is";
    CLAUDE_CODE_PLUGIN_CACHE_DIR: Path, "where plugins lie";
    CLAUDE_CODE_PLUGIN_SEED_DIR: Path, "directories of plugins that are only read; without an effect, and told";
    CLAUDE_CODE_PLUGIN_GIT_TIMEOUT_MS: Number, "how long git may take to fetch a plugin";
    CLAUDE_CODE_PLUGIN_PREFER_HTTPS: Switch, "fetch plugins by HTTPS, not by SSH";
    // Memories of a team
    LOCI_TEAM_TOKEN: Secret, "the token for the server of a team's memories";
    LOCI_TEAM_DATABASE: Secret, "the database of `loci serve`";
    // The terminal
    TERM: Text, "what the terminal can do";
    TERM_PROGRAM: Text, "which terminal it is";
    LC_TERMINAL: Text, "the same, through SSH";
    COLORTERM: Text, "whether it has all colours";
    NO_COLOR: Text, "no colours, where it is set";
    FORCE_COLOR: Text, "colours, wherever output goes";
    FORCE_HYPERLINK: Switch, "whether addresses are links";
    TMUX: Text, "whether tmux is between";
    STY: Text, "whether screen is between";
    TMUX_TMPDIR: Path, "where the socket of tmux lies";
    CLAUDE_CODE_TMUX_TRUECOLOR: Switch, "all colours within tmux";
    DISPLAY: Text, "the display, for the clipboard and browsers";
    WAYLAND_DISPLAY: Text, "the same of Wayland";
    BROWSER: Text, "the program that opens pages";
    EDITOR: Text, "the editor of prompts";
    VISUAL: Text, "the same, before that one";
    LC_ALL: Text, "the language of messages";
    LANG: Text, "the same, where that one is not set";
    SSH_CLIENT: Text, "whether the terminal is elsewhere";
    SSH_CONNECTION: Text, "the same";
    SSH_TTY: Text, "the same";
    WSL_DISTRO_NAME: Text, "whether this is WSL";
    WSL_INTEROP: Text, "the same";
    WT_SESSION: Text, "whether it is Windows Terminal";
    KITTY_WINDOW_ID: Text, "whether it is kitty";
    GHOSTTY_RESOURCES_DIR: Path, "whether it is Ghostty";
    WEZTERM_PANE: Text, "whether it is WezTerm";
    XTERM_VERSION: Text, "whether it is xterm";
    CLAUDE_CODE_NO_FLICKER: Switch, "the fullscreen interface";
    CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN: Switch, "no fullscreen interface";
    CLAUDE_CODE_ALT_SCREEN_FULL_REPAINT: Switch, "paint the whole screen each time";
    CLAUDE_CODE_FORCE_SYNC_OUTPUT: Switch, "whether frames are painted at once";
    CLAUDE_CODE_DISABLE_MOUSE: Switch, "leave the mouse to the terminal";
    CLAUDE_CODE_DISABLE_MOUSE_CLICKS: Switch, "hear of the wheel alone";
    CLAUDE_CODE_SCROLL_SPEED: Number, "rows a turn of the wheel";
    CLAUDE_CODE_DISABLE_TERMINAL_TITLE: Switch, "leave the title alone";
    CLAUDE_CODE_SYNTAX_HIGHLIGHT: Switch, "whether code has colours";
    CLAUDE_CODE_HIDE_CWD: Switch, "do not show the directory";
    CLAUDE_CODE_ACCESSIBILITY: Switch, "keep the terminal's own cursor in sight";
    CLAUDE_AX_SCREEN_READER: Switch, "plain lines, for screen readers";
    CLAUDE_AX_PREPARK_MS: Number, "how long the cursor rests before a line is read";
    CLAUDE_AX_STARTUP_QUIET_MS: Number, "how long nothing is said at start";
    CLAUDE_CODE_ENABLE_AWAY_SUMMARY: Switch, "a summary for a user who was away";
    CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION: Switch, "suggest prompts";
    CLAUDE_AFK_TIMEOUT_MS: Number, "how long a question waits for its answer";
    CLAUDE_AFK_COUNTDOWN_MS: Number, "how long before its end that is shown";
    // Set for what loci runs
    CLAUDECODE: Given, "loci runs it";
    CLAUDE_CODE_CHILD_SESSION: Given, "a session runs it";
    CLAUDE_CODE_SESSION_ID: Given, "the id of the session";
    CLAUDE_SESSION_ID: Given, "the same, in skills and plugins";
    CLAUDE_CODE_VERSION: Given, "the release, for the program of `policyHelper`";
    CLAUDE_EFFORT: Given, "the effort";
    CLAUDE_PID: Given, "the process of loci";
    CLAUDE_PROJECT_DIR: Given, "the project, for hooks";
    CLAUDE_ENV_FILE: Given, "the file into which a hook writes variables";
    CLAUDE_PLUGIN_ROOT: Given, "where the plugin lies";
    CLAUDE_PLUGIN_DATA: Given, "where it keeps its things";
    CLAUDE_SKILL_DIR: Given, "where the skill lies";
    CLAUDE_CODE_MCP_SERVER_NAME: Given, "the server, for `headersHelper`";
    CLAUDE_CODE_MCP_SERVER_URL: Given, "its address";
    LOCI_HOOK_ENV: Given, "the directory in which hooks left variables for commands";
    LOCI_PROCESS_MARK: Given, "by which a command's processes are found";
    SANDBOX_RUNTIME: Given, "it runs in a sandbox";
    GIT_SSH: Given, "the program that git reaches hosts with, in a sandbox";
    GIT_SSH_COMMAND: Given, "the same";
    GIT_EDITOR: Given, "no editor for commands of the model";
    GIT_TERMINAL_PROMPT: Given, "git asks nothing";
    GIT_ASKPASS: Path, "kept from MCP servers of a project";
    SSH_ASKPASS: Path, "kept from MCP servers of a project";
    GIT_DIR: Given, "the repository of a call of git";
    GIT_INDEX_FILE: Given, "its index";
    GIT_WORK_TREE: Given, "its files";
    GIT_CEILING_DIRECTORIES: Given, "where git stops looking for a repository";
    GIT_DISCOVERY_ACROSS_FILESYSTEM: Given, "whether it looks on other disks";
    GIT_NO_LAZY_FETCH: Given, "git fetches nothing by itself";
    GH_PROMPT_DISABLED: Given, "`gh` asks nothing";
    NO_PROMPT: Given, "`glab` asks nothing";
    GITLAB_TOKEN: Secret, "left out where `glab` is asked, so that its own login counts";
    GITLAB_ACCESS_TOKEN: Secret, "the same";
    OAUTH_TOKEN: Secret, "the same";
    DATABASE_URL: Secret, "kept from MCP servers of a project";
    CLAUDE_CODE_ACCOUNT_UUID: Given, "no settings file sets it";
    CLAUDE_CODE_MESSAGING_SOCKET: Given, "no settings file sets it";
    CLAUDE_CODE_MESSAGING_TOKEN: Given, "no settings file sets it";
    CLAUDE_CODE_REMOTE: Given, "no settings file sets it";
    CLAUDE_CODE_SYNC_PLUGINS: Given, "no project sets it; plugins of an account are not fetched";
    // Without an effect: switches
    CLAUDE_AGENT_SDK_MCP_NO_PREFIX: IdleSwitch, "tools of MCP servers keep the prefix `mcp__<server>__`";
    CLAUDE_CODE_AUTO_CONNECT_IDE: IdleSwitch, "no editor is looked for; editors start `loci acp`";
    CLAUDE_CODE_DISABLE_POLICY_SKILLS: IdleSwitch, "the administrator's skills are read";
    CLAUDE_CODE_DISABLE_UNKNOWN_MODEL_WINDOW_ENFORCEMENT: IdleSwitch, "name the window of the model with CLAUDE_CODE_MAX_CONTEXT_TOKENS";
    CLAUDE_CODE_ENABLE_BACKGROUND_PLUGIN_REFRESH: IdleSwitch, "plugins are not installed beside a session; see /reload-plugins";
    CLAUDE_CODE_ENABLE_FINE_GRAINED_TOOL_STREAMING: IdleSwitch, "inputs of tools stream as the server sends them";
    CLAUDE_CODE_ENABLE_TELEMETRY: IdleSwitch, "nothing is exported; `loci stats` has the figures";
    CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS: IdleSwitch, "there are no agent teams";
    CLAUDE_CODE_BS_AS_CTRL_BACKSPACE: IdleSwitch, "the byte 0x08 removes a letter";
    CLAUDE_CODE_DISABLE_VIRTUAL_SCROLL: IdleSwitch, "fullscreen makes rows of what is in sight alone, and leaves none out";
    CLAUDE_CODE_NEW_INIT: IdleSwitch, "/init writes CLAUDE.md";
    CLAUDE_CODE_PERFORCE_MODE: IdleSwitch, "files that cannot be written are an error like any other";
    CLAUDE_CODE_PROPAGATE_TRACEPARENT: IdleSwitch, "requests carry no trace context";
    CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST: IdleSwitch, "settings of the user may choose the provider and the model";
    CLAUDE_CODE_SIMPLE_SYSTEM_PROMPT: IdleSwitch, "the system prompt has one form; --system-prompt replaces it";
    CLAUDE_CODE_SYNC_PLUGIN_INSTALL: IdleSwitch, "plugins are installed by `loci plugin install` alone";
    CLAUDE_CODE_SYNC_SKILLS: IdleSwitch, "skills of an account are not fetched";
    CLAUDE_CODE_USE_POWERSHELL_TOOL: IdleSwitch, "there is no PowerShell tool";
    DISABLE_DOCTOR_COMMAND: IdleSwitch, "/doctor stays: it changes nothing";
    FORCE_AUTOUPDATE_PLUGINS: IdleSwitch, "plugins are updated by `loci plugin update` alone";
    // Without an effect: whatever they say
    ANTHROPIC_FEDERATION_RULE_ID: IdleValue, "such credentials are not used; set ANTHROPIC_AUTH_TOKEN";
    ANTHROPIC_PROFILE: IdleValue, "profiles are not read; set ANTHROPIC_API_KEY, or an `apiKeyHelper`";
    CLAUDE_CODE_CLIENT_KEY_PASSPHRASE: IdleValue, "a key of a client's certificate must not be encrypted";
    CLAUDE_CODE_EXIT_AFTER_STOP_DELAY: IdleValue, "a run ends when its work and its input do";
    CLAUDE_CODE_GOAL_CHECKIN_MINUTES: IdleValue, "a goal is looked at after each turn";
    CLAUDE_CODE_GLOB_TIMEOUT_SECONDS: IdleValue, "searches have limits of their own";
    CLAUDE_CODE_OAUTH_REFRESH_TOKEN: IdleValue, "set CLAUDE_CODE_OAUTH_TOKEN";
    CLAUDE_CODE_PROCESS_WRAPPER: IdleValue, "no processes of its own run in the background";
    CLAUDE_CODE_SCRIPT_CAPS: IdleValue, "calls of scripts are not counted; deny them with a permission rule";
    CLAUDE_CODE_TOOL_MEMORY_LIMIT: IdleValue, "commands have no limit of their own; start loci in a limited cgroup";
    CLAUDE_CODE_USER_DIALOG_TIMEOUT_MS: IdleValue, "what a client is asked waits for its answer";
    FALLBACK_FOR_ALL_PRIMARY_MODELS: IdleValue, "how often is tried is CLAUDE_CODE_MAX_RETRIES for every model";
    MCP_SDK_GENERATION: IdleValue, "there is one client of MCP servers";
    MCP_OAUTH_CALLBACK_PORT: IdleValue, "name the port in the server's entry (`oauth.callbackPort`)";
    CLAUDE_CODE_SHELL: Text, "commands run in bash; another shell has no effect";
    TZ: Text, "the time zone";
}

/// Variables whose names have a part that differs.
#[rustfmt::skip] // one line a family
pub(super) const FAMILIES: &[Variable] = &[
    family("ANTHROPIC_DEFAULT_*_MODEL_NAME", "what people call such a model"),
    family("ANTHROPIC_DEFAULT_*_MODEL_DESCRIPTION", "what is said of it"),
    family("ANTHROPIC_DEFAULT_*_MODEL_SUPPORTED_CAPABILITIES", "what it can do"),
    family("ANTHROPIC_CUSTOM_MODEL_OPTION_*", "the same of the further model: NAME, DESCRIPTION, SUPPORTED_CAPABILITIES"),
    family("DISABLE_PROMPT_CACHING_*", "have no prompts cached of one family: OPUS, SONNET, HAIKU, FABLE"),
    family("VERTEX_REGION_CLAUDE_*", "the region of one model at Vertex"),
    family("CLAUDE_PLUGIN_OPTION_*", "an option of a plugin, for what it runs"),
];

const fn family(name: &'static str, about: &'static str) -> Variable {
    Variable { name, kind: VariableKind::Text, about }
}
