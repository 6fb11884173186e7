//! The digest of this crate's sources: after an edit its runs are done again.

fn main() {
    identity::emit(&[]);
}
