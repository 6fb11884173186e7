//! A small scenario.

/// Two hosts send to a third.
pub const STAR: &str = "\
[topology]
kind = \"star\"
hosts = 4
[[flow]]
src = \"h1\"
dst = \"h0\"
size = \"100KB\"
[[flow]]
src = \"h2\"
dst = \"h0\"
size = \"100KB\"
";
