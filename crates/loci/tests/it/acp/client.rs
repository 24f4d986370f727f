//! An editor of a few lines: what it is told it keeps, and every line of it must be JSON-RPC.

use crate::support::{MODEL, World, loci};
use loci_testkit::{Binary, Session};
use serde_json::{Value, json};

/// How requests of the agent are answered; none leaves one open.
pub(super) type Policy = Box<dyn FnMut(&Value) -> Option<Value>>;

/// An editor with one agent.
pub(super) struct Editor {
    agent: Session,
    next_id: i64,
    /// Everything that was read, in order.
    pub(super) log: Vec<Value>,
    policy: Policy,
}

/// `loci acp`.
pub(super) fn acp<const N: usize>(args: [&str; N]) -> Binary {
    loci().args(["acp", "--model", MODEL]).args(args)
}

impl Editor {
    /// Starts an agent and says hello, with these capabilities.
    pub(super) fn start<const N: usize>(world: &World, args: [&str; N], capabilities: &Value) -> Self {
        Self::start_binary(world, &acp(args), capabilities)
    }

    pub(super) fn start_binary(world: &World, binary: &Binary, capabilities: &Value) -> Self {
        let agent = world.start(binary);
        let mut editor = Self { agent, next_id: 0, log: Vec::new(), policy: Box::new(|_| None) };
        let hello = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        assert_eq!(editor.call("initialize", &hello)["protocolVersion"], 1);
        editor
    }

    /// Answers requests from now on.
    pub(super) fn answering(mut self, policy: impl FnMut(&Value) -> Option<Value> + 'static) -> Self {
        self.policy = Box::new(policy);
        self
    }

    /// Sends a request; returns its id.
    pub(super) fn send(&mut self, method: &str, params: &Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.agent.write_json(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.agent.write_json(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Answers a request of the agent.
    pub(super) fn answer(&mut self, request: &Value, result: &Value) {
        self.agent.write_json(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    /// Writes a line as it is.
    pub(super) fn write_line(&mut self, line: &str) {
        self.agent.write_line(line);
    }

    /// Reads the next message; requests are answered as the policy has it.
    pub(super) fn next(&mut self) -> Value {
        let line = self.agent.next_line().unwrap_or_else(|| panic!("the output has ended: {:#?}", self.log));
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        self.log.push(message.clone());
        if message.get("id").is_some()
            && message.get("method").is_some()
            && let Some(result) = (self.policy)(&message)
        {
            self.answer(&message, &result);
        }
        message
    }

    /// Reads on until a message for which `is_it` holds.
    pub(super) fn wait_for(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next();
            if is_it(&message) {
                return message;
            }
        }
    }

    /// Reads on until the answer to a request.
    pub(super) fn answer_to(&mut self, id: i64) -> Value {
        self.wait_for(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Reads on until the agent asks for something.
    pub(super) fn asked(&mut self, method: &str) -> Value {
        self.wait_for(|message| message["method"] == method)
    }

    /// Sends a request and returns its result.
    pub(super) fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer_to(id);
        answer.get("result").unwrap_or_else(|| panic!("{method}: {answer}")).clone()
    }

    /// Sends a request and returns the code of its error.
    pub(super) fn refused(&mut self, method: &str, params: &Value) -> i64 {
        let id = self.send(method, params);
        let answer = self.answer_to(id);
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {answer}"))
    }

    /// Opens a new session in the project.
    pub(super) fn new_session(&mut self, world: &World) -> String {
        let session = self.call("session/new", &json!({"cwd": world.home.project(), "mcpServers": []}));
        session["sessionId"].as_str().unwrap().to_owned()
    }

    pub(super) fn send_prompt(&mut self, session: &str, text: &str) -> i64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }

    /// Prompts and returns why the turn stopped.
    pub(super) fn prompt(&mut self, session: &str, text: &str) -> String {
        let id = self.send_prompt(session, text);
        let answer = self.answer_to(id);
        answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Returns the news of a session so far.
    pub(super) fn updates(&self, session: &str) -> Vec<Value> {
        let is_its = |message: &&Value| {
            message["method"] == "session/update" && message["params"]["sessionId"] == session
        };
        self.log.iter().filter(is_its).map(|message| message["params"]["update"].clone()).collect()
    }

    /// Returns the news of one kind.
    pub(super) fn updates_of(&self, session: &str, kind: &str) -> Vec<Value> {
        self.updates(session).into_iter().filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// Returns what the model said.
    pub(super) fn said(&self, session: &str) -> String {
        let chunks = self.updates_of(session, "agent_message_chunk");
        chunks.iter().filter_map(|it| it["content"]["text"].as_str()).collect()
    }

    /// Goes away; the agent must end well, and have said nothing but what it was read.
    pub(super) fn leave(self) -> loci_testkit::Output {
        let output = self.agent.finish();
        assert_eq!(output.code, Some(0), "{output:?}");
        output
    }

    /// The process itself.
    pub(super) fn agent(&mut self) -> &mut Session {
        &mut self.agent
    }

    pub(super) fn into_agent(self) -> Session {
        self.agent
    }
}

/// Chooses an option of every permission request.
pub(super) fn choosing(option: &'static str) -> impl FnMut(&Value) -> Option<Value> {
    move |request| {
        let is_it = request["method"] == "session/request_permission";
        is_it.then(|| json!({"outcome": {"outcome": "selected", "optionId": option}}))
    }
}
