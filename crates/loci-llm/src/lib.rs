//! Model providers: protocol, endpoint, authentication and framing.
