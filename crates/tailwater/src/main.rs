//! `tailwater`: the program, with the schemes that come with it.

fn main() -> std::process::ExitCode {
    tailwater::main_with(tailwater::registry())
}
