//! The digest of what turns a scenario into a result. How fast that is changes no result.

fn main() {
    identity::emit(&["bench.rs"]);
}
