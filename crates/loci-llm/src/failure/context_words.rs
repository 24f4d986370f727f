//! How each vendor says that a prompt does not fit, and which numbers it names.
//!
//! | who | what |
//! |---|---|
//! | OpenAI | code `context_length_exceeded`; "maximum context length is N tokens. However, your messages resulted in M tokens"; "exceeds the context window" |
//! | OpenRouter | "maximum context length is N tokens. However, you requested about M tokens (A of text input, B in the output)" |
//! | vLLM | "maximum context length is N tokens. However, you requested M tokens (A in the messages, B in the completion)"; "'max_tokens' is too large: B. This model's maximum context length is N tokens and your request has A input tokens"; "prompt (length M) is longer than the maximum model length of N" |
//! | llama.cpp | type `exceed_context_size_error`, fields `n_prompt_tokens` and `n_ctx` |
//! | LM Studio | "trying to keep the first M tokens …, the model is loaded with context length of only N tokens" |
//! | Ollama | "input length exceeds the context length" |
//! | Gemini | "input token count (M) exceeds the maximum number of tokens allowed (N)" |
//! | xAI | "maximum prompt length is N but the request contains M tokens" |
//! | SGLang | "The input (M tokens) is longer than the model's context length (N tokens)"; "exceeds the model's maximum context length of N tokens" |
//! | Moonshot | "exceeded model token limit: N" |
//! | MiniMax | "context window exceeds limit" |
//! | GitHub | "prompt token count of M exceeds the limit of N" |
//! | gateways | "capability_rejected: prompt_too_long" |
//! | Mistral | "prompt contains M tokens …, too large for model with N maximum context length" |
//! | Bedrock | "Input is too long for requested model" |

use serde_json::Value;

use super::numbers;

/// What a server says of a prompt that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StatedOverflow {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) limit: Option<u64>,
}

/// Words and codes that mean nothing else.
const WORDS: [&str; 20] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "maximum context length",
    "exceeds the context window",
    "exceed the context window",
    "exceeds the available context size",
    "exceeds the context length",
    "exceeds the maximum number of tokens allowed",
    "longer than the maximum model length",
    "maximum prompt length is",
    "context the overflows",
    "context length of only",
    "reduce the length of the messages",
    "prompt is too long",
    "prompt_too_long",
    "longer than the model's context length",
    "greater than the context length",
    "exceeded model token limit",
    "context window exceeds limit",
    "prompt token count of",
];

impl StatedOverflow {
    /// Reads an error; `None` when it says something else.
    pub(super) fn read(error: &Value, message: &str) -> Option<Self> {
        let field = |name: &str| error.get(name).and_then(Value::as_u64);
        if let (Some(input), Some(limit)) = (field("n_prompt_tokens"), field("n_ctx")) {
            return Some(Self { input: Some(input), output: None, limit: Some(limit) });
        }
        let code = ["code", "type"].into_iter().filter_map(|name| error.get(name)?.as_str());
        let text = code.chain([message]).collect::<Vec<_>>().join(" ").to_ascii_lowercase();
        WORDS
            .iter()
            .any(|words| text.contains(words))
            .then(|| Self::from_words(&message.to_ascii_lowercase()))
    }

    fn from_words(text: &str) -> Self {
        let after = |words: &str| numbers(text.split_once(words)?.1).next();
        let before = |words: &str| last_number(text.split_once(words)?.0);
        let limit = after("maximum context length is")
            .or_else(|| after("maximum context length of"))
            .or_else(|| after("maximum model length of"))
            .or_else(|| after("model's context length ("))
            .or_else(|| after("model token limit:"))
            .or_else(|| after("exceeds the limit of"))
            .or_else(|| after("number of tokens allowed"))
            .or_else(|| after("maximum prompt length is"))
            .or_else(|| after("context length of only"))
            .or_else(|| before("maximum context length"));
        let output = before(" in the completion")
            .or_else(|| before(" in the output"))
            .or_else(|| text.contains("max_tokens").then(|| after("is too large:")).flatten());
        let input = before(" in the messages")
            .or_else(|| before(" of text input"))
            .map(|input| input + before(" of tool input").unwrap_or(0))
            .or_else(|| before(" input tokens"))
            .or_else(|| after("resulted in"))
            .or_else(|| after("you requested").map(|all| all.saturating_sub(output.unwrap_or(0))))
            .or_else(|| after("input token count"))
            .or_else(|| after("request contains"))
            .or_else(|| after("prompt contains"))
            .or_else(|| after("keep the first"))
            .or_else(|| after("prompt token count of"))
            .or_else(|| after("the input ("))
            .or_else(|| after("(length "));
        Self { input, output, limit }
    }

    /// Says it in the words of the Messages API, which are read again by whoever makes room; nothing without a limit.
    pub(super) fn plain_words(self) -> String {
        match self {
            Self { input: Some(input), output: Some(output), limit: Some(limit) } if input < limit => {
                format!("input length and `max_tokens` exceed context limit: {input} + {output} > {limit}")
            }
            Self { input, limit: Some(limit), .. } => {
                format!("prompt is too long: {} tokens > {limit} maximum", input.unwrap_or(limit + 1))
            }
            Self { limit: None, .. } => "prompt is too long".to_owned(),
        }
    }
}

fn last_number(text: &str) -> Option<u64> {
    numbers(text).last()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_vendor_is_understood() {
        let some = |input, output, limit| (input, output, limit);
        for (error, expected) in [
            (
                json!({"code": "context_length_exceeded", "message": "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens. Please reduce the length of the messages."}),
                some(Some(150_000), None, Some(128_000)),
            ),
            (
                json!({"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model. Please adjust your input and try again."}),
                some(None, None, None),
            ),
            (
                json!({"message": "This endpoint's maximum context length is 32768 tokens. However, you requested about 40120 tokens (31000 of text input, 1120 of tool input, 8000 in the output). Please reduce the length of either one."}),
                some(Some(32_120), Some(8_000), Some(32_768)),
            ),
            (
                json!({"message": "This model's maximum context length is 32768 tokens. However, you requested 40000 tokens (32000 in the messages, 8000 in the completion)."}),
                some(Some(32_000), Some(8_000), Some(32_768)),
            ),
            (
                json!({"message": "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 2000 input tokens (32000 > 32768 - 2000)."}),
                some(Some(2_000), Some(32_000), Some(32_768)),
            ),
            (
                json!({"message": "The decoder prompt (length 9000) is longer than the maximum model length of 8192."}),
                some(Some(9_000), None, Some(8_192)),
            ),
            (
                json!({"type": "exceed_context_size_error", "n_prompt_tokens": 70_000, "n_ctx": 65_536, "message": "the request exceeds the available context size"}),
                some(Some(70_000), None, Some(65_536)),
            ),
            (
                json!({"message": "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}),
                some(Some(5_000), None, Some(4_096)),
            ),
            (json!({"message": "input length exceeds the context length"}), some(None, None, None)),
            (
                json!({"message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}),
                some(Some(1_200_000), None, Some(1_048_576)),
            ),
            (
                json!({"message": "This model's maximum prompt length is 131072 but the request contains 140000 tokens."}),
                some(Some(140_000), None, Some(131_072)),
            ),
            (
                json!({"message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"}),
                some(Some(40_000), None, Some(32_768)),
            ),
            (
                json!({"message": "The input (33000 tokens) is longer than the model's context length (32768 tokens)."}),
                some(Some(33_000), None, Some(32_768)),
            ),
            (
                json!({"message": "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 40000 tokens: 32000 tokens from the input messages and 8000 tokens for the completion."}),
                some(Some(40_000), None, Some(32_768)),
            ),
            (
                json!({"message": "Invalid request: Your request exceeded model token limit: 131072"}),
                some(None, None, Some(131_072)),
            ),
            (json!({"message": "invalid params, context window exceeds limit"}), some(None, None, None)),
            (
                json!({"message": "prompt token count of 70000 exceeds the limit of 64000", "code": "model_max_prompt_tokens_exceeded"}),
                some(Some(70_000), None, Some(64_000)),
            ),
            (json!({"message": "capability_rejected: prompt_too_long"}), some(None, None, None)),
        ] {
            let message = error["message"].as_str().unwrap();
            let read = StatedOverflow::read(&error, message).unwrap_or_else(|| panic!("{message}"));
            assert_eq!((read.input, read.output, read.limit), expected, "{message}");
        }
        let other = json!({"type": "invalid_request_error", "message": "max_tokens must be positive"});
        assert_eq!(StatedOverflow::read(&other, "max_tokens must be positive"), None);
    }
}
