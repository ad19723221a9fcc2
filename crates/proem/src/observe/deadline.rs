//! The end of a build: its budgets, and the token with which a caller stops it.
//!
//! A build has a budget of CPU time and one of template work, and it ends early when its [`Cancel`] is set. Loops,
//! reads and waits call [`check`]; templates pay with [`charge`]. The first refusal is remembered: [`build`] then
//! returns an error and never a partial result, whatever the refused step returned.
//!
//! CPU time is that of the threads that work on the build, so a busy machine does not stop a build.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proem_core::fact::Absence;
use proem_core::limit::{BUILD_CPU_MAX, JINJA_WORK_MAX};
use rustix::time::{ClockId, clock_gettime};

use crate::error::StopReason;

/// A token that stops the builds it was given to, from any thread.
///
/// ```
/// use proem::{Cancel, Caller, Request, with_cancel};
///
/// let (cancel, request) = (Cancel::new(), Request::from_json(r#"{"system": "Be brief."}"#)?);
/// assert!(with_cancel(&cancel, || proem::build(&request, Caller::User)).is_ok());
/// cancel.cancel();
/// let stopped = with_cancel(&cancel, || proem::build(&request, Caller::User));
/// assert!(matches!(stopped, Err(proem::Error::Stopped { .. })));
/// # Ok::<(), proem::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    is_set: Arc<AtomicBool>,
    until: Option<Instant>,
}

impl Cancel {
    /// Makes a token that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a token that counts as set from `until` on.
    #[must_use]
    pub fn at(until: Instant) -> Self {
        Self { until: Some(until), ..Self::default() }
    }

    /// Stops the builds that have this token, or a clone of it.
    pub fn cancel(&self) {
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// Tells whether the token is set.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Runs `work`, whose builds stop when `cancel` is set.
pub fn with_cancel<R>(cancel: &Cancel, work: impl FnOnce() -> R) -> R {
    let (_, scope) = current();
    within((Some(cancel.clone()), scope), work)
}

/// Amounts of CPU time and template work that one build may use.
#[derive(Debug, Clone, Copy)]
struct Budget {
    cpu: Duration,
    work: u64,
}

const BUDGET: Budget = Budget { cpu: BUILD_CPU_MAX, work: JINJA_WORK_MAX as u64 };

/// State that all threads of a build share.
#[derive(Debug)]
struct SharedBudget {
    cancel: Option<Cancel>,
    cpu_max: u64,
    cpu: AtomicU64,
    /// The first reason to stop, by its number; 0 means that the build goes on.
    stopped: AtomicU64,
}

/// The part that one thread has in a build.
#[derive(Debug)]
struct Scope {
    shared: Arc<SharedBudget>,
    /// The thread's CPU time that is already counted, in nanoseconds.
    counted: Cell<u64>,
    /// Work since the clocks were last read.
    unclocked: Cell<u64>,
    work_left: Cell<u64>,
}

type Current = (Option<Cancel>, Option<Rc<Scope>>);

thread_local! {
    static CURRENT: RefCell<Current> = const { RefCell::new((None, None)) };
}

/// Units of work after which the clocks are read: a few hundred microseconds.
const CLOCK_WORK: u64 = 16 << 10;

fn current() -> Current {
    CURRENT.with_borrow(Clone::clone)
}

fn within<R>(current: Current, work: impl FnOnce() -> R) -> R {
    struct RestoreScope(Current);
    impl Drop for RestoreScope {
        fn drop(&mut self) {
            CURRENT.set(std::mem::take(&mut self.0));
        }
    }
    let _back = RestoreScope(CURRENT.replace(current));
    work()
}

/// Runs `work` as one build. Returns the reason to stop if any step was refused, whatever `work` returned.
pub(crate) fn build<R>(work: impl FnOnce() -> R) -> Result<R, (StopReason, R)> {
    build_within(BUDGET, work)
}

fn build_within<R>(budget: Budget, work: impl FnOnce() -> R) -> Result<R, (StopReason, R)> {
    let (cancel, outer) = current();
    // A build inside of a build is part of it.
    let scope = outer.unwrap_or_else(|| Rc::new(Scope::new(cancel.clone(), budget)));
    let done = within((cancel, Some(Rc::clone(&scope))), work);
    match scope.shared.stopped() {
        Some(why) => Err((why, done)),
        None => Ok(done),
    }
}

/// Runs `work` without charging a budget: for checks that only debug builds make.
#[cfg(debug_assertions)]
pub(crate) fn unpaid<R>(work: impl FnOnce() -> R) -> R {
    let (_, scope) = current();
    let done = within((None, None), work);
    if let Some(scope) = scope {
        scope.counted.set(thread_cpu());
    }
    done
}

/// Fails if the build has to end.
pub(crate) fn check() -> Result<(), StopReason> {
    CURRENT.with_borrow(|(_, scope)| scope.as_ref().map_or(Ok(()), |scope| scope.check()))
}

/// Fails if the build has to end, with a reason that a read can report.
pub(crate) fn check_read() -> Result<(), Absence> {
    check().map_err(|why| Absence::Unreadable(format!("the build was stopped: {why}")))
}

/// Charges work of a template, about 20 to 50 ns for each unit. Fails if the build has to end.
pub(crate) fn charge(units: u64) -> Result<(), StopReason> {
    CURRENT.with_borrow(|(_, scope)| scope.as_ref().map_or(Ok(()), |scope| scope.charge(units)))
}

/// Reads the clocks now. Fails if the build has to end.
pub(crate) fn check_clocks() -> Result<(), StopReason> {
    CURRENT.with_borrow(|(_, scope)| scope.as_ref().map_or(Ok(()), |scope| scope.clocks()))
}

/// The build of this thread, for another thread that works on it.
#[derive(Debug, Clone)]
pub(crate) struct BuildHandle(Option<Arc<SharedBudget>>);

/// Returns the build of this thread.
pub(crate) fn inherited() -> BuildHandle {
    BuildHandle(current().1.map(|scope| Arc::clone(&scope.shared)))
}

impl BuildHandle {
    /// Runs `work` as part of that build, on the calling thread.
    pub(crate) fn within<R>(self, work: impl FnOnce() -> R) -> R {
        let cancel = self.0.as_ref().and_then(|shared| shared.cancel.clone());
        within((cancel, self.0.map(|shared| Rc::new(Scope::join(shared, BUDGET.work)))), work)
    }
}

impl Scope {
    fn new(cancel: Option<Cancel>, budget: Budget) -> Self {
        let cpu_max = u64::try_from(budget.cpu.as_nanos()).unwrap_or(u64::MAX);
        let shared = SharedBudget { cancel, cpu_max, cpu: AtomicU64::new(0), stopped: AtomicU64::new(0) };
        Self::join(Arc::new(shared), budget.work)
    }

    fn join(shared: Arc<SharedBudget>, work: u64) -> Self {
        // The clocks are read by the first step: a token that is set stops a build before it reads anything.
        let (counted, unclocked) = (Cell::new(thread_cpu()), Cell::new(CLOCK_WORK));
        Self { shared, counted, unclocked, work_left: Cell::new(work) }
    }

    fn charge(&self, units: u64) -> Result<(), StopReason> {
        let unclocked = self.unclocked.get().saturating_add(units);
        self.unclocked.set(unclocked);
        let Some(left) = self.work_left.get().checked_sub(units) else {
            return Err(self.shared.stop(StopReason::Work));
        };
        self.work_left.set(left);
        if unclocked > CLOCK_WORK { self.clocks() } else { self.shared.stopped().map_or(Ok(()), Err) }
    }

    /// Reads the clocks after every [`CLOCK_WORK`] units, and checks the token each time.
    fn check(&self) -> Result<(), StopReason> {
        let unclocked = self.unclocked.get().saturating_add(CLOCK_WORK / 64);
        self.unclocked.set(unclocked);
        let is_cancelled = self.shared.cancel.as_ref().is_some_and(Cancel::is_cancelled);
        if is_cancelled || unclocked > CLOCK_WORK {
            self.clocks()
        } else {
            self.shared.stopped().map_or(Ok(()), Err)
        }
    }

    fn clocks(&self) -> Result<(), StopReason> {
        self.unclocked.set(0);
        let now = thread_cpu();
        let spent = now.saturating_sub(self.counted.replace(now));
        let total = self.shared.cpu.fetch_add(spent, Ordering::Relaxed).saturating_add(spent);
        if let Some(why) = self.shared.stopped() {
            return Err(why);
        }
        let cancel = self.shared.cancel.as_ref();
        if cancel.is_some_and(Cancel::is_cancelled) {
            return Err(self.shared.stop(StopReason::Cancelled));
        }
        if cancel.is_some_and(Cancel::is_late) {
            return Err(self.shared.stop(StopReason::Time));
        }
        if total > self.shared.cpu_max { Err(self.shared.stop(StopReason::Cpu)) } else { Ok(()) }
    }
}

impl SharedBudget {
    /// Stops the build; the first reason counts.
    fn stop(&self, why: StopReason) -> StopReason {
        let number = 1 + REASONS.iter().position(|reason| *reason == why).unwrap_or(0) as u64;
        let _ = self.stopped.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        self.stopped().unwrap_or(why)
    }

    fn stopped(&self) -> Option<StopReason> {
        let number = self.stopped.load(Ordering::Relaxed).checked_sub(1)?;
        REASONS.get(usize::try_from(number).ok()?).copied()
    }
}

const REASONS: [StopReason; 4] = [StopReason::Work, StopReason::Cpu, StopReason::Time, StopReason::Cancelled];

/// The CPU time of this thread, in nanoseconds.
pub(crate) fn thread_cpu() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Runs `done` in a build whose templates may use `work` units.
    pub(crate) fn with_work<R>(work: u64, done: impl FnOnce() -> R) -> R {
        let scope = Rc::new(Scope::new(None, Budget { work, ..BUDGET }));
        within((None, Some(scope)), done)
    }

    const LARGE: Budget = Budget { cpu: Duration::from_hours(1), work: u64::MAX };

    /// Works until it is stopped.
    fn endless() -> StopReason {
        loop {
            if let Err(why) = charge(1000) {
                return why;
            }
        }
    }

    fn why<R>(done: Result<R, (StopReason, R)>) -> Option<StopReason> {
        done.err().map(|(why, _)| why)
    }

    #[test]
    fn each_budget_stops_a_build() {
        let cpu = Budget { cpu: Duration::from_millis(20), ..LARGE };
        assert_eq!(why(build_within(cpu, endless)), Some(StopReason::Cpu));
        let work = Budget { work: 1_000_000, ..LARGE };
        assert_eq!(why(build_within(work, endless)), Some(StopReason::Work));
        let late = Cancel::at(Instant::now());
        assert_eq!(why(with_cancel(&late, || build_within(LARGE, endless))), Some(StopReason::Time));
        assert!(build_within(LARGE, || charge(1_000_000)).is_ok(), "control");
    }

    #[test]
    fn a_token_stops_a_build_from_another_thread() {
        let cancel = Cancel::new();
        let own = cancel.clone();
        let (begun, has_begun) = std::sync::mpsc::channel();
        let running = std::thread::spawn(move || {
            with_cancel(&own, || {
                build_within(LARGE, || {
                    assert_eq!(check_clocks(), Ok(()));
                    begun.send(()).expect("the test waits");
                    endless()
                })
            })
        });
        has_begun.recv().expect("it begins");
        cancel.cancel();
        assert_eq!(why(running.join().expect("it ends")), Some(StopReason::Cancelled));
    }

    #[test]
    fn a_refusal_that_is_not_passed_on_still_fails_the_build() {
        let cancel = Cancel::new();
        cancel.cancel();
        let swallowed = || u8::from(check().is_ok());
        assert_eq!(with_cancel(&cancel, || build_within(LARGE, swallowed)), Err((StopReason::Cancelled, 0)));
        assert_eq!(build_within(LARGE, swallowed), Ok(1), "control");
    }

    #[test]
    fn threads_of_a_build_share_its_time_and_its_end() {
        let cpu = Budget { cpu: Duration::from_millis(20), ..LARGE };
        let stopped = build_within(cpu, || {
            let own = inherited();
            let endless =
                || std::iter::repeat_with(check_clocks).find_map(Result::err).expect("it is stopped");
            let why = std::thread::spawn(move || own.within(endless)).join().expect("it ends");
            assert_eq!(check(), Err(why));
        });
        assert_eq!(why(stopped), Some(StopReason::Cpu));
    }

    #[test]
    fn builds_one_after_the_other_have_a_budget_each() {
        let work = Budget { work: 1_000_000, ..LARGE };
        for _ in 0..3 {
            assert!(build_within(work, || charge(900_000)).is_ok());
        }
        let nested =
            build_within(work, || build_within(work, || charge(900_000)).is_ok() && charge(900_000).is_ok());
        assert_eq!(nested, Err((StopReason::Work, false)), "a build inside of a build is part of it");
    }
}
