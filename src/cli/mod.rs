//! The command line: arguments in, text and an exit status out.
//!
//! Only this module and `testing` read the environment and the wall clock, write files and print.
//! Exit status of the commands that judge: 0 pass, 1 violation, 2 usage, 3 harness error, 4 unknown
//! or not run; over many runs the worst in the order 3, 1, 4, 0.

#[cfg(madsim)]
mod bugs;
#[cfg(not(madsim))]
mod client;
#[cfg(madsim)]
mod conformance;
#[cfg(madsim)]
mod demo;
#[cfg(not(madsim))]
mod duration;
#[cfg(not(madsim))]
mod endpoint;
#[cfg(madsim)]
mod explore;
#[cfg(madsim)]
mod failure;
#[cfg(not(madsim))]
mod lock;
mod log;
mod merge;
#[cfg(madsim)]
mod pages;
#[cfg(madsim)]
mod progress;
#[cfg(madsim)]
mod replay;
mod report;
#[cfg(madsim)]
mod results;
#[cfg(madsim)]
mod smallest;
#[cfg(not(madsim))]
mod storage;
#[cfg(not(madsim))]
mod worker;

use std::{ffi::OsString, process::ExitCode};

use clap::{
    Arg, CommandFactory, FromArgMatches, Parser, Subcommand, builder::Resettable, error::ErrorKind,
};

/// The request could not be understood.
const USAGE: u8 = 2;

/// What there is to say cannot be printed: a harness error.
const NO_OUTPUT: i32 = 3;

/// The exit status of a program that a broken pipe kills, as shells give it.
const BROKEN_PIPE: i32 = 141;

/// Which build this is, for `--version`.
#[cfg(madsim)]
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " (simulation build)");
/// What is logged unless `RUST_LOG` says otherwise. In simulation servers fail because a plan says
/// so, and the timeline tells it.
#[cfg(madsim)]
const LOG: &str = "leasehold=warn,leasehold::storage=off,leasehold::cluster=off";
#[cfg(not(madsim))]
const LOG: &str = "leasehold=warn";
#[cfg(madsim)]
const COMMANDS: &str = "explore, demo, replay, bugs or conformance";
#[cfg(not(madsim))]
const COMMANDS: &str = "lock, storage or client";
#[cfg(not(madsim))]
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " (real build)");

/// Lock correctness for etcd: explore, demonstrate and replay runs of a simulated cluster.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version = BUILD, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run many seeds of a scenario under faults, and judge each.
    Explore(ExploreArguments),
    /// Tell contrib/lock's story in simulation, and what the original hides.
    Demo(DemoArguments),
    /// Run one case again and print its timeline.
    Replay(ReplayArguments),
    /// Hunt known bugs, and say how many seeds it takes to catch each.
    Bugs(BugsArguments),
    /// Compare the simulated etcd with recordings of real servers, case by case.
    Conformance(ConformanceArguments),
    /// Put the records of a run's processes into one order: a history. Or join results of explore.
    Merge(merge::MergeArguments),
    /// Judge a history with every checker.
    Check(merge::CheckArguments),
    /// A process of a real run: a client, its storage, the final reads.
    #[cfg(not(madsim))]
    #[command(hide = true, subcommand)]
    Worker(worker::Role),
    /// Run a command while holding a lock, and stop it before the lock is lost (real build).
    #[cfg(not(madsim))]
    Lock(lock::LockArguments),
    /// Run a command while holding a lock, and stop it before the lock is lost (real build).
    #[cfg(madsim)]
    Lock(Elsewhere),
    /// Serve the fenced key-value storage (real build).
    #[cfg(not(madsim))]
    Storage(storage::StorageArguments),
    /// Serve the fenced key-value storage (real build).
    #[cfg(madsim)]
    Storage(Elsewhere),
    /// Play client 1 or 2 of contrib/lock against etcd and a storage (real build).
    #[cfg(not(madsim))]
    Client(client::ClientArguments),
    /// Play client 1 or 2 of contrib/lock against etcd and a storage (real build).
    #[cfg(madsim)]
    Client(Elsewhere),
}

/// A command that only the other build has; its arguments are for that one to judge.
#[cfg(madsim)]
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
struct Elsewhere {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
struct ExploreArguments {
    /// How many seeds from 0 on, or a range A..B (B not included).
    #[arg(long, default_value = "1000", value_name = "N|A..B", allow_hyphen_values = true)]
    seeds: String,
    /// How many runs at a time [default: the number of cores].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// fenced-lock, fenced-leader, slow-holders or calm.
    #[arg(long, default_value = "fenced-lock", value_name = "NAME")]
    scenario: String,
    /// Which faults are drawn: all, calm, gc, network, clocks, crash, restart or lease.
    #[arg(long, default_value = "all", value_name = "NAME")]
    profile: String,
    /// How the plans of faults are found: random, swarm or guided (guided probes each seed first).
    #[arg(long, default_value = "swarm", value_name = "NAME")]
    strategy: String,
    /// The storage's guard: unfenced, equal or monotonic.
    #[arg(long, default_value = "monotonic", value_name = "GUARD")]
    guard: String,
    /// What goes to the storage as the token: revision or lease.
    #[arg(long, default_value = "revision", value_name = "TOKEN")]
    token: String,
    /// How many clients contend.
    #[arg(long, default_value_t = 3, value_name = "N", allow_hyphen_values = true)]
    clients: i64,
    /// The lifetime of the leases that clients ask for, in seconds [default: each session draws its
    /// own].
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    ttl: Option<i64>,
    /// How many of 1,000 holdings only read.
    #[arg(long, default_value_t = 0, value_name = "N", allow_hyphen_values = true)]
    readers: i64,
    /// Print in which phase of a lock's life the faults of each family began.
    #[arg(long)]
    coverage: bool,
    /// Stop at the first seed that does not pass.
    #[arg(long)]
    fail_fast: bool,
    /// Print the run hash of each seed, to compare machines and builds.
    #[arg(long)]
    hashes: bool,
    /// Write a page of HTML for each violation into this directory; the index names pages that
    /// earlier runs left there.
    #[arg(long, value_name = "DIR")]
    report: Option<std::path::PathBuf>,
    /// Explore share K of N only: the seeds whose remainder by N is K - 1.
    #[arg(long, default_value = "1/1", value_name = "K/N", allow_hyphen_values = true)]
    shard: String,
    /// Print JSON lines instead: one a run that did not pass, then the sum (for merge --results).
    #[arg(long, conflicts_with = "hashes")]
    json: bool,
    /// Do not look for the smallest case that shows the first failure.
    #[arg(long)]
    no_shrink: bool,
    /// Write the smallest case of each rule that was broken into this folder, for a corpus.
    #[arg(long, value_name = "DIR")]
    save: Option<std::path::PathBuf>,
}

#[derive(Debug, clap::Args)]
struct DemoArguments {
    /// How client 1 loses its lease: revoke, expiry or pause.
    #[arg(long, default_value = "pause", value_name = "HOW")]
    by: String,
}

#[derive(Debug, clap::Args)]
struct ReplayArguments {
    /// The token that a failing run has printed, or the file of a case (*.json).
    #[arg(value_name = "TOKEN|FILE")]
    case: String,
    /// Look for the smallest case that shows the same, and tell that too.
    #[arg(long)]
    shrink: bool,
    /// Write the run's history into this file, to be judged again by `check`.
    #[arg(long, value_name = "FILE")]
    history: Option<std::path::PathBuf>,
    /// Write a page of HTML for each violation into this directory; the index names pages that
    /// earlier runs left there.
    #[arg(long, value_name = "DIR")]
    report: Option<std::path::PathBuf>,
}

#[derive(Debug, clap::Args)]
struct BugsArguments {
    /// The bug to hunt [default: all of them].
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Say what each bug is, and hunt none.
    #[arg(long)]
    list: bool,
    /// How many seeds at most in the narrowest profile that has what the bug needs.
    #[arg(long, default_value_t = 200, value_name = "N")]
    seeds: u64,
    /// How many seeds at most in the profile with all families of faults.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    all_seeds: u64,
    /// How the plans of faults are found: random, swarm or guided.
    #[arg(long, default_value = "swarm", value_name = "NAME", conflicts_with = "compare")]
    strategy: String,
    /// Hunt with each strategy, and print one table of the median seeds to the first catch.
    #[arg(long)]
    compare: bool,
    /// Look for the smallest case of each bug's first catch too; the median is to have three faults
    /// or fewer.
    #[arg(long, conflicts_with = "compare")]
    shrink: bool,
    /// After how many catches a hunt ends.
    #[arg(long, default_value_t = 20, value_name = "N")]
    enough: u64,
    /// How many runs at a time [default: the number of cores].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

#[derive(Debug, clap::Args)]
struct ConformanceArguments {
    /// Where the recordings are: all *.json in it and below it.
    #[arg(value_name = "DIR")]
    dir: std::path::PathBuf,
    /// Behave as this etcd, 3.4 or 3.5 [default: the one that was recorded].
    #[arg(long, value_name = "VERSION")]
    etcd_version: Option<String>,
}

/// The whole program.
pub fn main() -> ExitCode {
    if let Err(error) = log::init() {
        return ExitCode::from(usage(format_args!("{error}")));
    }
    ExitCode::from(run(std::env::args_os()))
}

/// Runs the program with these arguments; the result is its exit status.
fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    match parse(arguments) {
        Ok(arguments) => dispatch(arguments.command),
        Err(error) if !error.use_stderr() => {
            out(format_args!("{}", error.to_string().trim_end()));
            0
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            usage(format_args!("no command given: use {COMMANDS}"))
        }
        Err(error) => {
            // Everything up to the first empty line, as one line.
            let text = error.to_string();
            let words: Vec<&str> =
                text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
            usage(format_args!("{}", words.join(" ").trim_start_matches("error: ")))
        }
    }
}

/// Reads the arguments, and the variables that stand in for them.
fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut command =
        Arguments::command().mut_subcommands(|subcommand| subcommand.mut_args(without_empty));
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// A variable that is set to nothing counts as not set, as etcdctl has it (`SetPflagsFromEnv` of
/// its `pkg/flags`).
fn without_empty(argument: Arg) -> Arg {
    let empty = |name| std::env::var_os(name).is_some_and(|value| value.is_empty());
    if argument.get_env().is_some_and(empty) { argument.env(Resettable::Reset) } else { argument }
}

#[cfg(madsim)]
fn dispatch(command: Command) -> u8 {
    match command {
        Command::Explore(arguments) => explore::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Bugs(arguments) => bugs::run(&arguments),
        Command::Conformance(arguments) => conformance::run(&arguments),
        Command::Merge(arguments) if arguments.results => results::join(&arguments.files),
        Command::Merge(arguments) => merge::merge(&arguments),
        Command::Check(arguments) => merge::check(&arguments),
        Command::Lock(elsewhere) => elsewhere.refuse("lock"),
        Command::Storage(elsewhere) => elsewhere.refuse("storage"),
        Command::Client(elsewhere) => elsewhere.refuse("client"),
    }
}

#[cfg(madsim)]
impl Elsewhere {
    fn refuse(&self, name: &str) -> u8 {
        tracing::debug!(arguments = ?self.rest, "not for this build");
        usage(format_args!(
            "`{name}` is for the real world and this is the simulation build: use \
             `cargo real run --release -- {name}` in the repository"
        ))
    }
}

#[cfg(not(madsim))]
fn dispatch(command: Command) -> u8 {
    let name = match command {
        Command::Lock(arguments) => return lock::run(&arguments),
        Command::Storage(arguments) => return storage::run(&arguments),
        Command::Client(arguments) => return client::run(arguments),
        Command::Merge(arguments) if arguments.results => "merge --results",
        Command::Merge(arguments) => return merge::merge(&arguments),
        Command::Check(arguments) => return merge::check(&arguments),
        Command::Worker(role) => return worker::run(&role),
        Command::Explore(_) => "explore",
        Command::Demo(_) => "demo",
        Command::Replay(_) => "replay",
        Command::Bugs(_) => "bugs",
        Command::Conformance(_) => "conformance",
    };
    usage(format_args!(
        "`{name}` runs in simulation only and this is the real build: use \
         `cargo run --release -- {name}` without RUSTFLAGS of your own"
    ))
}

/// Says in one line what is wrong with the request.
fn usage(message: std::fmt::Arguments<'_>) -> u8 {
    err(format_args!("error: {message} (see --help)"));
    USAGE
}

/// Prints a line.
fn out(line: std::fmt::Arguments<'_>) {
    use std::io::Write;
    if let Err(error) = writeln!(std::io::stdout(), "{line}") {
        unwritten(&error);
    }
}

/// Ends the program, which cannot print. When the reader has gone away (`| head`) there is nobody
/// to work for, and it ends as one that a broken pipe kills; anything else, such as a full disk, is
/// told.
fn unwritten(error: &std::io::Error) -> ! {
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        std::process::exit(BROKEN_PIPE);
    }
    err(format_args!("error: standard output: {error}"));
    std::process::exit(NO_OUTPUT);
}

/// Prints a line to standard error.
fn err(line: std::fmt::Arguments<'_>) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}
