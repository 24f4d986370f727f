//! OpenAI's Chat Completions, as OpenAI, OpenRouter, vLLM, LM Studio, llama.cpp and Ollama speak them.
//!
//! The transcript stays as the Messages API has it; `encode` says it in this protocol, `decode` says what comes back in ours.
//! Both are pure.

mod decode;
mod encode;
mod pdf_text;
mod reasoning;
mod think_tags;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use loci_core::ids::RequestId;
use loci_core::stream::{Failure, StreamEvent};
use reqwest::header::HeaderMap;

use self::decode::Decoder;
use crate::chat::pdf_text::PdfTextCache;
use crate::config::NamedProvider;
use crate::failure::{self, RequestFacts};
use crate::model_traits::ModelTraits;
use crate::provider::{Decode, Protocol};
use crate::request::Request;

pub(crate) use self::encode::{Part, part, result_parts, tool_parts};

/// The protocol of `POST /chat/completions`.
#[derive(Debug)]
pub(crate) struct Chat {
    provider: String,
    models: BTreeMap<String, ModelTraits>,
    server: ChatServer,
    /// Documents are read once for each client.
    pdf_texts: PdfTextCache,
}

impl Chat {
    /// Takes from the configuration what concerns the protocol.
    pub(crate) fn new(named: &NamedProvider, base_url: &str) -> Self {
        Self {
            provider: named.name.clone(),
            models: named.models.clone(),
            server: ChatServer::at(base_url),
            pdf_texts: PdfTextCache::default(),
        }
    }

    fn traits(&self, request: &Request) -> ModelTraits {
        self.models.get(request.model_in(&self.provider)).copied().unwrap_or_default()
    }
}

/// Whose server it is, where that makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatServer {
    /// OpenAI's own, which has names of its own for some fields.
    OpenAi,
    /// OpenRouter, which passes marks of what is to be cached on to models that want them.
    OpenRouter,
    /// Google's, whose models want a signature with every call.
    Google,
    /// Any other.
    Other,
}

impl ChatServer {
    /// Tells whether it takes documents as they are.
    pub(crate) fn takes_files(self) -> bool {
        match self {
            Self::OpenAi | Self::OpenRouter => true,
            Self::Google | Self::Other => false,
        }
    }

    fn at(base_url: &str) -> Self {
        match base_url {
            url if url.starts_with("https://api.openai.com/") => Self::OpenAi,
            url if url.starts_with("https://openrouter.ai/") => Self::OpenRouter,
            url if url.contains("generativelanguage.googleapis.com/") => Self::Google,
            url if url.contains("aiplatform.googleapis.com/") => Self::Google,
            _ => Self::Other,
        }
    }
}

impl Protocol for Chat {
    fn headers(&self, _request: &Request) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn body(&self, request: &Request) -> Bytes {
        encode::body(request, &self.provider, self.server, &self.pdf_texts)
    }

    fn decoder(&self, request: &Arc<Request>, request_id: Option<RequestId>) -> Box<dyn Decode> {
        let splits_thinking = self.traits(request).has_think_tags;
        Box::new(Decoder::new(request, request_id, &self.provider, splits_thinking))
    }

    fn read_whole(
        &self,
        request: &Arc<Request>,
        body: &[u8],
        request_id: Option<RequestId>,
    ) -> Result<Vec<StreamEvent>, Failure> {
        let splits_thinking = self.traits(request).has_think_tags;
        decode::read_whole(Decoder::new(request, request_id, &self.provider, splits_thinking), body)
    }

    fn failure(&self, status: u16, headers: &HeaderMap, body: &[u8], asked: RequestFacts<'_>) -> Failure {
        failure::from_answer(status, headers, body, asked)
    }
}
