//! app_state
