//! One of the targets, by the name in `FUZZ_TARGET`, for libFuzzer.
#![no_main]

use std::sync::LazyLock;

/// The target that was asked for.
static TARGET: LazyLock<&fuzz::Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    fuzz::target(&name).unwrap_or_else(|| panic!("FUZZ_TARGET={name} is none of {}", fuzz::names().join(", ")))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
