//! Which code gave a result.

use fabric::Registry;
use std::sync::OnceLock;

/// The digest of all code that can change a result: that of the crates which turn a scenario into result files, and that of every crate
/// which brought schemes ([`Registry::identities`]). Stored results of other code are not used.
///
/// Crates that only show results have no part in it.
///
/// # Panics
/// If no registry was installed.
pub fn code() -> &'static str {
    static CODE: OnceLock<String> = OnceLock::new();
    CODE.get_or_init(|| code_of(Registry::get()))
}

/// What [`code`] is in a program with that registry.
pub fn code_of(registry: &Registry) -> String {
    let own = [
        ("engine", engine::CODE),
        ("fabric", fabric::CODE),
        ("traffic", traffic::CODE),
        ("scenario", scenario::CODE),
        ("estimate", estimate::CODE),
        ("results", results::CODE),
        ("run", env!("TAILWATER_CODE")),
    ];
    let brought = registry.identities.iter().map(|(name, code)| (*name, code.as_str()));
    identity::digest(own.into_iter().chain(brought).map(|(name, code)| (name, code.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_code_has_the_same_digest_and_an_edited_crate_another() {
        let with = |edits: &[&str]| {
            let mut registry = schemes::registry();
            registry.identities.extend(edits.iter().map(|edit| ("own", edit.to_string())));
            code_of(&registry)
        };
        assert_eq!(with(&[]), with(&[]));
        assert_eq!(with(&["1"]), with(&["1"]));
        assert_ne!(with(&[]), with(&["1"]));
        assert_ne!(with(&["1"]), with(&["2"]));
        let mut edited = schemes::registry();
        edited.identities[0].1 = "edited".into();
        assert_ne!(with(&[]), code_of(&edited), "the schemes that come with the program");
    }

    #[test]
    fn crates_that_only_show_results_have_no_digest() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let has = |name: &str| {
            let manifest = std::fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
            manifest.contains("[build-dependencies]\nidentity.workspace")
        };
        for name in ["engine", "fabric", "schemes", "traffic", "scenario", "estimate", "results", "run"] {
            assert!(has(name), "{name} can change a result");
        }
        for name in ["files", "ledger", "python", "report", "store", "studio", "tailwater"] {
            assert!(!has(name), "{name} changes no result");
        }
    }
}
