//! What papers compute, beside what runs show.

mod theory;

/// Tests find the schemes that come with the program.
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}
