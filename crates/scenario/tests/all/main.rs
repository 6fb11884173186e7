//! The format of scenario files as data.

mod schema;

/// Tests find the schemes that come with the program.
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}
