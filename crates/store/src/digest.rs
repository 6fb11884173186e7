//! The names of runs.

use files::hex;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// What names a run: the first half of the SHA-256 of its [`Input`](crate::Input).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 16]);

impl Digest {
    /// Of a text.
    pub fn of(text: &str) -> Digest {
        let mut first = [0; 16];
        first.iter_mut().zip(Sha256::digest(text)).for_each(|(to, from)| *to = from);
        Digest(first)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0, 16))
    }
}
