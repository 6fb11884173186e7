//! The digest of all mechanisms. Helpers for tests change no result.

fn main() {
    identity::emit(&["testing.rs"]);
}
