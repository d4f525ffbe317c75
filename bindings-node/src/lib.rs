//! Drayhorse.
