//! The order in which a file system lists a folder. It means nothing, and differs between machines: `check
//! --determinism` turns it round, to see that nothing depends on it.

use std::cell::Cell;

thread_local! {
    static IS_REVERSED: Cell<bool> = const { Cell::new(false) };
}

/// Puts entries as they came from the file system into the order of this thread.
pub(crate) fn arrange<T>(entries: &mut [T]) {
    if IS_REVERSED.get() {
        entries.reverse();
    }
}

/// Does some work for which every folder is listed the other way round.
pub(crate) fn reversed<R>(work: impl FnOnce() -> R) -> R {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            IS_REVERSED.set(self.0);
        }
    }
    let _back = Back(IS_REVERSED.replace(true));
    work()
}
