//! The `leasehold` program.

fn main() -> std::process::ExitCode {
    leasehold::cli::main()
}
