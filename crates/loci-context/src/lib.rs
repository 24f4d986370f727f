//! What the model sees: fragments, assembly, token counts, the view of a transcript.
