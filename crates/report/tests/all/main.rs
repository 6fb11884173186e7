//! What drawings and pages promise, in one program: a test binary for each file would link everything once more.

mod figures;
mod page;
