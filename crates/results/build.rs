//! The digest of what computes and writes results. Comparisons, exhibits and verdicts are made of stored results.

fn main() {
    identity::emit(&["comparison.rs", "exhibit.rs", "numbers.rs", "verdict.rs"]);
}
