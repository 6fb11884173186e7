//! Files of other tools.

mod fuzz;

/// Tests find the schemes that come with the program.
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}
