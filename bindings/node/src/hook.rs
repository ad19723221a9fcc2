//! Callables of JavaScript as hooks. The engine calls them from a thread of its own; they run on the thread of their
//! environment, and answer with [`answer`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use napi::Status;
use napi::bindgen_prelude::FnArgs;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;
use proem_api::Callable;
use proem_core::limit::HOOK_TIME_MAX;

/// The time for which an answer is awaited. The engine stops earlier; this ends the thread.
const WAIT_MAX: Duration = HOOK_TIME_MAX.saturating_mul(2);

type Answer = Result<String, String>;

/// The calls that wait for their answers.
static CALLS: LazyLock<Mutex<HashMap<u32, SyncSender<Answer>>>> = LazyLock::new(Mutex::default);

fn calls() -> std::sync::MutexGuard<'static, HashMap<u32, SyncSender<Answer>>> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

type Arguments = FnArgs<(u32, String)>;

/// A function of JavaScript that starts a call: it takes a number and the event. It does not keep the process alive.
pub type Start = ThreadsafeFunction<Arguments, (), Arguments, Status, false, true>;

pub(crate) struct JsCallable(pub(crate) Start);

impl Callable for JsCallable {
    fn call(&self, event: String) -> Answer {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        if is_ending() {
            return Err("the process is ending".to_owned());
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = sync_channel(1);
        calls().insert(number, sender);
        let status = self.0.call(FnArgs::from((number, event)), ThreadsafeFunctionCallMode::NonBlocking);
        let answer = if status == Status::Ok {
            receiver.recv_timeout(WAIT_MAX).unwrap_or_else(|_| Err("it gave no answer".to_owned()))
        } else {
            Err("its environment has ended".to_owned())
        };
        calls().remove(&number);
        answer
    }
}

/// True when the process is ending: Node then waits for work that was begun, and no callable runs any more.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_ending() -> bool {
    IS_ENDING.load(Ordering::SeqCst)
}

/// Ends all calls of hooks, and refuses work that has not begun. Called when the process exits.
#[napi]
pub fn end() {
    IS_ENDING.store(true, Ordering::SeqCst);
    calls().clear();
}

/// Gives the answer to the call of a hook as JSON, or what it threw. A late answer is ignored.
#[napi]
pub fn answer(call: u32, answer: Option<String>, thrown: Option<String>) {
    if let Some(sender) = calls().remove(&call) {
        let _ = sender.try_send(answer.ok_or_else(|| thrown.unwrap_or_default()));
    }
}
