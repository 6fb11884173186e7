//! Presets: what a scenario has unless it says otherwise. Which exist is the registry's business.

use crate::document::{Document, suggest};
use fabric::Registry;
pub use fabric::axes::registry::Preset;

/// Every preset.
pub fn all() -> &'static [Preset] {
    &Registry::get().presets
}

/// The preset of that name.
pub fn named(name: &str) -> Option<&'static Preset> {
    Registry::get().preset(name)
}

/// What to write in place of a name that is no preset's.
pub fn instead_of(name: &str) -> String {
    let known: Vec<&str> = all().iter().map(|preset| preset.name).collect();
    match suggest(name, &known) {
        Some(meant) => format!("did you mean \"{meant}\"? `tailwater schemes` lists all presets"),
        None => "write one such as pfc, dcqcn, hpcc or bfc: `tailwater schemes` lists all presets".into(),
    }
}

/// Gives a document every setting of a preset that it does not have itself. A key of a mechanism's own table counts only while that
/// mechanism is chosen.
pub(crate) fn apply(preset: &Preset, document: &mut Document) {
    for (path, value) in preset.settings {
        if let Some((mechanism, _)) = path.strip_prefix("scheme.").and_then(|path| path.split_once('.')) {
            let chosen = crate::scenario::SCHEME_AXES.iter().any(|axis| {
                let scheme = document.root().table("scheme").ok().flatten();
                let choice = scheme.and_then(|mut scheme| scheme.optional::<String>(axis).ok().flatten());
                choice.as_deref() == Some(mechanism)
            });
            if !chosen {
                continue;
            }
        }
        // What was written under its older name was written.
        if *path == "scheme.load_balancing" && document.value("scheme.routing").is_some() {
            continue;
        }
        document.set_by_preset(preset.name, path, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_fills_gaps_and_overrides_nothing() {
        let mut document = Document::parse("a", "[scheme]\ncongestion_control = \"none\"\n").unwrap();
        let preset = Preset {
            name: "p",
            about: "",
            settings: &[
                ("scheme.flow_control", "pfc"),
                ("scheme.congestion_control", "dcqcn"),
                ("scheme.pfc.frame", "70B"),
                ("scheme.dcqcn.gain", "0.5"),
            ],
        };
        apply(&preset, &mut document);
        let mut scheme = document.root().table("scheme").unwrap().unwrap();
        assert_eq!(scheme.required::<String>("flow_control").unwrap(), "pfc");
        assert_eq!(scheme.required::<String>("congestion_control").unwrap(), "none");
        assert!(scheme.has("pfc"));
        assert!(!scheme.has("dcqcn"), "DCQCN is not chosen, so its parameters are not set");
    }
}
