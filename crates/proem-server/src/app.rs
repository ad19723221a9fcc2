//! What every request shares.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proem::hooks::HookFailure;
use proem::{Caller, Cancel, Engine, Request, Workspaces, with_cancel};
use proem_core::limit::REQUESTS_WAITING_MAX;
use proem_store::{Conversations, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;
use crate::guard::Token;
use crate::log;
use crate::metrics::Metrics;
use crate::outside::PublicUrl;
use crate::places::Connections;
use crate::room::Room;
use crate::telemetry::Telemetry;
use crate::writes::Writes;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directories that requests may work in.
    pub workspaces: Vec<PathBuf>,
    /// What requests must show, if anything.
    pub token: Option<Token>,
    /// Names besides addresses of this machine by which it may be called.
    pub hosts: Vec<String>,
    /// The address at which a proxy serves this server, if that is known.
    pub public_url: Option<PublicUrl>,
    /// Largest body, in bytes.
    pub body_bytes_max: usize,
    /// Longest that a request may take.
    pub time_max: Duration,
    /// How much is built or read at once.
    pub work_max: usize,
    /// The number of connections there may be, in all and by address.
    pub connections: Connections,
    /// Where spans go, if anywhere.
    pub telemetry: Option<Telemetry>,
    /// Where the editor's files are read from, while it is being worked on; else they are those of the binary.
    pub web: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workspaces: Vec::new(),
            token: None,
            hosts: Vec::new(),
            public_url: None,
            web: None,
            telemetry: None,
            connections: Connections::default(),
            body_bytes_max: 16 << 20,
            time_max: Duration::from_secs(30),
            work_max: 2 * std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get),
        }
    }
}

/// What every request shares.
pub struct App {
    pub(crate) conversations: Conversations,
    /// Builds prompts that are not kept.
    pub(crate) engine: Engine,
    pub(crate) options: Options,
    pub(crate) metrics: Metrics,
    /// The workspaces as they really lie, links resolved.
    roots: Vec<PathBuf>,
    workspaces: Workspaces,
    work: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// Tells whether the store takes writes.
    pub(crate) writes: Writes,
    /// Memory for bodies that are on their way.
    pub(crate) room: Room,
}

impl App {
    /// An application on a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, engine: Engine, options: Options) -> Arc<Self> {
        let work = Arc::new(Semaphore::new(options.work_max));
        let waiting = Arc::new(Semaphore::new(REQUESTS_WAITING_MAX));
        let engine = engine.on_hook_failure(log_hook);
        let conversations = Conversations::new(store, engine.clone());
        let real = |root: &PathBuf| root.canonicalize().unwrap_or_else(|_| root.clone());
        let roots = options.workspaces.iter().map(real).collect();
        let workspaces = Workspaces::new(&options.workspaces);
        let (metrics, writes) = (Metrics::default(), Writes::default());
        let room = Room::new(options.body_bytes_max);
        Arc::new(Self {
            conversations,
            engine,
            options,
            metrics,
            roots,
            workspaces,
            work,
            waiting,
            writes,
            room,
        })
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.conversations.store()
    }

    /// Does work that blocks, such as building a prompt, on a thread of its own. There is room for only so much of
    /// it, and for only so much that waits. Work whose client has gone is not begun, or stops at its next step: a
    /// request that is dropped drops this future.
    pub(crate) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let Ok(place) = Arc::clone(&self.waiting).try_acquire_owned() else {
            return Err(ApiError::busy());
        };
        // Whoever waits has sent all that was to be sent: that it takes too long is ours to say, before the time of the
        // whole request is over, which says that theirs took too long.
        let limit = self.options.time_max * 4 / 5;
        let wanted = Wanted(Cancel::at(Instant::now() + limit));
        let done = tokio::time::timeout(limit, self.work_in_turn(place, wanted.0.clone(), work)).await;
        done.unwrap_or_else(|_| Err(ApiError::busy()))
    }

    /// Returns the number of places for work that are taken.
    pub(crate) fn work_running(&self) -> usize {
        self.options.work_max.saturating_sub(self.work.available_permits())
    }

    /// Does work once there is room for it.
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
                app.writes.fail();
            }
            if cancel.is_cancelled() {
                app.metrics.work_stopped.fetch_add(1, Ordering::Relaxed);
            }
            drop(permit);
            done
        });
        // A panic is ours: nothing of it goes out.
        done.await.unwrap_or_else(|_| Err(ApiError::internal()))
    }

    /// Checks that a request works in a directory that this server serves, and sets it if it names none.
    pub(crate) fn admit(&self, mut request: Request) -> Result<Request, ApiError> {
        let Some(first) = self.options.workspaces.first() else {
            return Err(ApiError::forbidden_cwd("this server has no workspace"));
        };
        let cwd = request.cwd.clone().unwrap_or_else(|| first.display().to_string());
        self.check_cwd(Some(&cwd))?;
        request.cwd = Some(cwd);
        Ok(request)
    }

    /// Checks that a directory is one that this server serves.
    pub(crate) fn check_cwd(&self, cwd: Option<&str>) -> Result<(), ApiError> {
        if cwd.is_some_and(|cwd| self.is_plainly_inside(Path::new(cwd))) {
            return Ok(());
        }
        let real = cwd.and_then(|cwd| Path::new(cwd).canonicalize().ok());
        let is_inside = |root: &PathBuf| real.as_ref().is_some_and(|real| real.starts_with(root));
        if let Some(cwd) = cwd.filter(|cwd| real.is_none() && self.lies_inside(Path::new(cwd))) {
            return Err(ApiError::no_directory(cwd));
        }
        // Whether a directory outside exists is nobody's business.
        let is_absolute = cwd.is_some_and(|cwd| Path::new(cwd).is_absolute());
        if !is_absolute || !self.roots.iter().any(is_inside) {
            return Err(ApiError::forbidden_cwd(
                "the working directory lies in none of the server's workspaces",
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

    /// Tells whether a directory of a workspace is not there any more.
    pub(crate) fn is_gone(&self, cwd: &str) -> bool {
        let path = Path::new(cwd);
        path.symlink_metadata().is_err() && self.lies_inside(path)
    }

    /// Tells whether something that does not exist would lie in a workspace.
    pub(crate) fn lies_inside(&self, path: &Path) -> bool {
        let has_dots = path.components().any(|part| part == Component::ParentDir);
        // A link that leads nowhere may lead outside: what is not there must not be told from what is.
        let nearest = path.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok());
        let nearest = nearest.and_then(|ancestor| ancestor.canonicalize().ok());
        !has_dots && nearest.is_some_and(|real| self.roots.iter().any(|root| real.starts_with(root)))
    }

    /// The caller of every request: a client who may read what this server serves.
    pub(crate) const fn caller(&self) -> Caller {
        Caller::Remote(self.workspaces)
    }
}

/// Logs why a hook failed: clients are not told what it wrote.
fn log_hook(failure: &HookFailure) {
    let (hook, why) = (failure.hook(), failure.why());
    let event = failure.event().word();
    log::line("warning", &[("event", "hook"), ("hook", hook), ("at", event), ("why", why)]);
}

/// Work that a client waits for. It stops when this is dropped.
struct Wanted(Cancel);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(target_os = "linux")]
fn has_no_link(path: &Path) -> bool {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let way = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), way).is_ok()
}

/// Not every system can be asked.
#[cfg(not(target_os = "linux"))]
const fn has_no_link(_: &Path) -> bool {
    false
}
