//! The state that all requests share: options, store, metrics, and the limits on work.

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proem::conversation::Recorder;
use proem::hooks::HookFailure;
use proem::models::Models;
use proem::traffic::collect::EventCalls;
use proem::{Caller, Cancel, Engine, Request, Workspaces, with_cancel};
use proem_core::limit::{EVENT_STREAMS_MAX, REQUESTS_WAITING_MAX};
use proem_store::{Conversations, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::connections::ConnectionLimits;
use crate::error::ApiError;
use crate::guard::Token;
use crate::log::{self, Level};
use crate::metrics::Metrics;
use crate::request_target::PublicUrl;
use crate::room::Room;
use crate::telemetry::Telemetry;
use crate::write_health::WriteHealth;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directories that requests may work in.
    pub workspaces: Vec<PathBuf>,
    /// True to read files of the server's user that become text of prompts, below the user's home.
    pub has_user_files: bool,
    /// The token that requests must send, if any.
    pub token: Option<Token>,
    /// Host names that clients may use for this server, besides its addresses.
    pub hosts: Vec<String>,
    /// The URL at which a proxy serves this server, if there is one.
    pub public_url: Option<PublicUrl>,
    /// Maximum size of a body, in bytes.
    pub body_bytes_max: usize,
    /// Maximum time of a request.
    pub time_max: Duration,
    /// Maximum number of builds and reads that run at once.
    pub work_max: usize,
    /// The limits on connections.
    pub connections: ConnectionLimits,
    /// The exporter of spans, if a collector is configured.
    pub telemetry: Option<Telemetry>,
    /// A directory with the editor's files, for its development. Without one, the files in the binary are served.
    pub web: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workspaces: Vec::new(),
            has_user_files: false,
            token: None,
            hosts: Vec::new(),
            public_url: None,
            web: None,
            telemetry: None,
            connections: ConnectionLimits::default(),
            body_bytes_max: 16 << 20,
            time_max: Duration::from_secs(30),
            work_max: 2 * std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get),
        }
    }
}

/// The state that all requests share.
pub struct App {
    pub(crate) conversations: Conversations,
    /// Records the calls of agents.
    pub(crate) recorder: Recorder,
    /// Telemetry events whose calls are not complete yet.
    pub(crate) events: Mutex<EventCalls>,
    /// Builds prompts that are not stored.
    pub(crate) engine: Engine,
    pub(crate) options: Options,
    pub(crate) metrics: Metrics,
    /// The real paths of the workspaces, with links resolved.
    roots: Vec<PathBuf>,
    workspaces: Workspaces,
    work: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// Tells whether the store accepts writes.
    pub(crate) write_health: WriteHealth,
    /// Memory for bodies that are being received.
    pub(crate) room: Room,
    /// Places for streams of events.
    pub(crate) event_streams: Arc<Semaphore>,
    /// True when the server stops: streams end then.
    pub(crate) ending: watch::Sender<bool>,
    /// The time of the start.
    pub(crate) started: Instant,
}

impl App {
    /// Creates the state for a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, engine: Engine, options: Options) -> Arc<Self> {
        let work = Arc::new(Semaphore::new(options.work_max));
        let waiting = Arc::new(Semaphore::new(REQUESTS_WAITING_MAX));
        let engine = engine.on_hook_failure(log_hook);
        let models = Models::load(&Request::default(), Caller::REMOTE).or_else(|error| {
            log::line(Level::Warning, &[("event", "models"), ("why", &error.to_string())]);
            Models::built_in()
        });
        let recorder = Recorder::new(Arc::clone(&store), models.unwrap_or_default());
        let conversations = Conversations::new(store, engine.clone());
        let real = |root: &PathBuf| root.canonicalize().unwrap_or_else(|_| root.clone());
        let roots = options.workspaces.iter().map(real).collect();
        let workspaces = Workspaces::new(&options.workspaces).with_user_files(options.has_user_files);
        let room = Room::new(options.body_bytes_max);
        Arc::new(Self {
            conversations,
            recorder,
            events: Mutex::default(),
            engine,
            options,
            metrics: Metrics::default(),
            roots,
            workspaces,
            work,
            waiting,
            write_health: WriteHealth::default(),
            room,
            event_streams: Arc::new(Semaphore::new(EVENT_STREAMS_MAX)),
            ending: watch::Sender::new(false),
            started: Instant::now(),
        })
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.conversations.store()
    }

    /// Runs blocking work, such as building a prompt, on its own thread. The numbers of running and of waiting calls
    /// are limited. If the client disconnects, the request and this future are dropped, and the work is not started
    /// or stops at its next step.
    pub(crate) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let Ok(place) = Arc::clone(&self.waiting).try_acquire_owned() else {
            return Err(ApiError::busy());
        };
        // Time out before the request does: a full queue is a 503, and a 408 would blame the client.
        let limit = self.options.time_max * 4 / 5;
        let cancel = CancelOnDrop(Cancel::at(Instant::now() + limit));
        let done = tokio::time::timeout(limit, self.work_in_turn(place, cancel.0.clone(), work)).await;
        done.unwrap_or_else(|_| Err(ApiError::busy()))
    }

    /// Returns the number of calls of [`work`](Self::work) that are running.
    pub(crate) fn work_running(&self) -> usize {
        self.options.work_max.saturating_sub(self.work.available_permits())
    }

    /// Returns the number of calls of [`work`](Self::work) that wait for their turn.
    pub(crate) fn work_waiting(&self) -> usize {
        REQUESTS_WAITING_MAX.saturating_sub(self.waiting.available_permits())
    }

    /// Waits for a permit, then runs the work.
    async fn work_in_turn<T: Send + 'static>(
        self: &Arc<Self>,
        place: OwnedSemaphorePermit,
        cancel: Cancel,
        work: impl FnOnce(&Self) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let Ok(permit) = Arc::clone(&self.work).acquire_owned().await else { return Err(ApiError::busy()) };
        drop(place);
        let app = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let done = with_cancel(&cancel, || work(&app));
            if done.as_ref().is_err_and(ApiError::is_of_store) {
                app.write_health.fail();
            }
            if cancel.is_cancelled() {
                app.metrics.work_stopped.fetch_add(1, Ordering::Relaxed);
            }
            drop(permit);
            done
        });
        // The message of a panic must not reach the client.
        done.await.unwrap_or_else(|_| Err(ApiError::internal()))
    }

    /// Checks that the working directory of a request is in a workspace. The default is the first workspace.
    pub(crate) fn admit(&self, mut request: Request) -> Result<Request, ApiError> {
        // It brings its own files, and nothing of the disk is read.
        if request.workspace.is_some() {
            return Ok(request);
        }
        let Some(first) = self.options.workspaces.first() else {
            return Err(ApiError::forbidden_cwd("this server has no workspace"));
        };
        let cwd = request.cwd.clone().unwrap_or_else(|| first.display().to_string());
        self.check_cwd(Some(&cwd))?;
        request.cwd = Some(cwd);
        Ok(request)
    }

    /// Checks that a directory is in a workspace.
    pub(crate) fn check_cwd(&self, cwd: Option<&str>) -> Result<(), ApiError> {
        if cwd.is_some_and(|cwd| self.is_plainly_inside(Path::new(cwd))) {
            return Ok(());
        }
        let real = cwd.and_then(|cwd| Path::new(cwd).canonicalize().ok());
        let is_inside = |root: &PathBuf| real.as_ref().is_some_and(|real| real.starts_with(root));
        if let Some(cwd) = cwd.filter(|cwd| real.is_none() && self.lies_inside(Path::new(cwd))) {
            return Err(ApiError::no_directory(cwd));
        }
        // The answer must not reveal whether a directory outside exists.
        let is_absolute = cwd.is_some_and(|cwd| Path::new(cwd).is_absolute());
        if !is_absolute || !self.roots.iter().any(is_inside) {
            return Err(ApiError::forbidden_cwd(
                "the working directory is not in a workspace of this server",
            ));
        }
        Ok(())
    }

    /// Tells whether a directory is there, lies in a workspace, and no link is on the way to it: one question to the
    /// system, where finding the real path takes one for each folder. When this says no, that is asked.
    fn is_plainly_inside(&self, path: &Path) -> bool {
        let is_below = |root: &PathBuf| path.starts_with(root);
        let has_dots = path.components().any(|part| part == Component::ParentDir);
        !has_dots && self.roots.iter().any(is_below) && has_no_link(path)
    }

    /// Tells whether a directory of a workspace was removed.
    pub(crate) fn is_gone(&self, cwd: &str) -> bool {
        let path = Path::new(cwd);
        path.symlink_metadata().is_err() && self.lies_inside(path)
    }

    /// Tells whether a path that does not exist would be in a workspace.
    pub(crate) fn lies_inside(&self, path: &Path) -> bool {
        let has_dots = path.components().any(|part| part == Component::ParentDir);
        // A dangling link may point outside, where the answer must not reveal what exists.
        let nearest = path.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok());
        let nearest = nearest.and_then(|ancestor| ancestor.canonicalize().ok());
        !has_dots && nearest.is_some_and(|real| self.roots.iter().any(|root| real.starts_with(root)))
    }

    /// Returns the caller of every request: a remote client, which may read the workspaces.
    pub(crate) const fn caller(&self) -> Caller {
        Caller::Remote(self.workspaces)
    }
}

/// Logs the failure of a hook. Its output is not sent to clients.
fn log_hook(failure: &HookFailure) {
    let (hook, why) = (failure.hook(), failure.why());
    let event = failure.event().word();
    log::line(Level::Warning, &[("event", "hook"), ("hook", hook), ("at", event), ("why", why)]);
}

/// Cancels work when it is dropped, because its client has disconnected.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(target_os = "linux")]
fn has_no_link(path: &Path) -> bool {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let flags = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), flags).is_ok()
}

/// Returns false: other systems have no such call, and the caller resolves the path.
#[cfg(not(target_os = "linux"))]
const fn has_no_link(_: &Path) -> bool {
    false
}
