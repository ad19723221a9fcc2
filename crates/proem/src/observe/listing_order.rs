//! The order in which a file system lists a folder. It has no meaning and differs between machines: `check
//! --determinism` reverses it, to prove that no result depends on it.

use std::cell::Cell;

thread_local! {
    static IS_REVERSED: Cell<bool> = const { Cell::new(false) };
}

/// Sorts entries of a file system into the order of this thread.
pub(crate) fn arrange<T>(entries: &mut [T]) {
    if IS_REVERSED.get() {
        entries.reverse();
    }
}

/// Runs `work` with every folder listed in reverse order.
pub(crate) fn reversed<R>(work: impl FnOnce() -> R) -> R {
    struct RestoreOrder(bool);
    impl Drop for RestoreOrder {
        fn drop(&mut self) {
            IS_REVERSED.set(self.0);
        }
    }
    let _back = RestoreOrder(IS_REVERSED.replace(true));
    work()
}
