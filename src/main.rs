//! The `jobboard` binary. The library beside it holds all of the program, so tests and fuzzers can link against it.

fn main() -> std::process::ExitCode {
    jobboard::main()
}
