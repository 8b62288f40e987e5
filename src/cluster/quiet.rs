//! Runs whose panics are not printed: shrinking runs the same panic hundreds of times.

use std::{cell::Cell, panic, sync::Once};

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Does something whose runs print no message when they panic; what they panic with is not lost.
///
/// It holds for runs that this thread starts, and for no other thread of the process.
pub(crate) fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !is_quiet() {
                before(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let done = work();
    QUIET.set(before);
    done
}

/// Whether this thread's runs are to be quiet.
pub(super) fn is_quiet() -> bool {
    QUIET.get()
}

/// Makes the thread of a run as quiet as the one that started it.
pub(super) fn inherit(quiet: bool) {
    QUIET.set(quiet);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It ends with the work, also one within another, and is each thread's own.
    #[test]
    fn it_ends_with_the_work() {
        assert!(!is_quiet());
        let within = quietly(|| {
            let inner = quietly(is_quiet);
            let elsewhere = std::thread::spawn(is_quiet).join().expect("it ends");
            (inner, is_quiet(), elsewhere)
        });
        assert_eq!((within, is_quiet()), ((true, true, false), false));
    }
}
