//! Digests of source code.
//!
//! A stored result is worth something only to the code that gave it. Every crate that can change a result has a build script that calls
//! [`emit`]; the crate then knows the digest of its own sources as `env!("TAILWATER_CODE")`. Crates that only show results have none, so that
//! work on them leaves stored results as they are.
//!
//! The digest is FNV-1a with 64 bits: it tells one edit from the next, and needs no dependency. It is no protection against forgery.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// The variable that [`emit`] sets for the crate that is being compiled.
pub const VARIABLE: &str = "TAILWATER_CODE";

/// A digest in the making.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Goes on with these bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ *byte as u64).wrapping_mul(0x0100_0000_01b3);
        }
    }
    /// As 16 hexadecimal digits.
    pub fn hex(self) -> String {
        let mut text = String::new();
        _ = write!(text, "{:016x}", self.0);
        text
    }
}

/// The digest of named texts. Order, names and boundaries count.
pub fn digest<'a>(named: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut hash = Fnv::default();
    for (name, text) in named {
        for part in [name.as_bytes(), text] {
            hash.write(&(part.len() as u64).to_le_bytes());
            hash.write(part);
        }
    }
    hash.hex()
}

/// The digest of all files below `folder`, but for those of `except`, which are relative to it and may be folders.
pub fn of_folder(folder: &Path, except: &[&str]) -> io::Result<String> {
    let mut files = Vec::new();
    collect(folder, folder, except, &mut files)?;
    // The order in which a file system lists them is its own.
    files.sort();
    Ok(digest(files.iter().map(|(name, text)| (name.as_str(), text.as_slice()))))
}

fn collect(root: &Path, folder: &Path, except: &[&str], files: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let parts = path.strip_prefix(root).unwrap_or(&path).iter().map(|part| part.to_string_lossy());
        let name = parts.collect::<Vec<_>>().join("/");
        if except.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, except, files)?;
        } else {
            files.push((name, std::fs::read(&path)?));
        }
    }
    Ok(())
}

/// For a build script: gives the crate that is being compiled the digest of its `src` as `env!("TAILWATER_CODE")`, but for the files of
/// `except`, which cannot change a result.
///
/// # Panics
/// If the sources cannot be read: a build without a digest would use results of other code.
pub fn emit(except: &[&str]) {
    let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("src");
    let code = of_folder(&folder, except)
        .unwrap_or_else(|error| panic!("{}: cannot be read: {error}; call this from a build script", folder.display()));
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rustc-env={VARIABLE}={code}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate's sources.
    fn sources(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn the_digest_is_fnv_1a() {
        assert_eq!(Fnv::default().hex(), "cbf29ce484222325");
        let mut hash = Fnv::default();
        hash.write(b"foobar");
        assert_eq!(hash.hex(), "85944171f73967e8");
    }

    #[test]
    fn the_same_code_has_the_same_digest_wherever_it_is() {
        let code = [("lib.rs", "mod a;"), ("a.rs", "fn a() {}"), ("b/c.rs", "fn c() {}")];
        let (one, mut other) = (sources(&code), code);
        other.reverse();
        let other = sources(&other);
        assert_eq!(of_folder(one.path(), &[]).unwrap(), of_folder(other.path(), &[]).unwrap());
    }

    #[test]
    fn a_changed_a_new_and_a_renamed_file_change_it() {
        let of = |files: &[(&str, &str)]| of_folder(sources(files).path(), &[]).unwrap();
        let was = of(&[("lib.rs", "mod a;"), ("a.rs", "1")]);
        for now in [
            &[("lib.rs", "mod a;"), ("a.rs", "2")][..],
            &[("lib.rs", "mod a;"), ("b.rs", "1")],
            &[("lib.rs", "mod a;"), ("a.rs", "1"), ("b.rs", "")],
            &[("lib.rs", "mod a;1"), ("a.rs", "")],
            &[("lib.rs", "mod a;")],
        ] {
            assert_ne!(was, of(now), "{now:?}");
        }
    }

    #[test]
    fn what_is_excepted_does_not_change_it() {
        let of = |text: &str| {
            let dir = sources(&[("lib.rs", "mod a;"), ("page.rs", text), ("page/style.css", text)]);
            of_folder(dir.path(), &["page.rs", "page"]).unwrap()
        };
        assert_eq!(of("one"), of("another"));
    }
}
