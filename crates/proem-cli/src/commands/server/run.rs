//! `proem run`: runs an agent behind a gateway of its own, and sums up its calls.

use std::collections::BTreeMap;
use std::fs;
use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::{Args, ValueHint};
use proem::models::Models;
use proem::traffic::TrafficReport;
use proem::traffic::report::ReportSource;
use proem::{Caller, Request};
use proem_gateway::{
    Agent, Counters, Gateway, GatewayOptions, LaunchPlan, ObservedCall, Surroundings, agents_as_of, serve,
};
use proem_store::{Store, StoreLocation};
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::gateway::{CallBook, GatewayFlags, analysis, bind, failed};
use crate::arguments::StoreFlags;
use crate::arguments::store::place;
use crate::call_line::summary;
use crate::failure::Failure;
use crate::input::reason;
use crate::notes::{print_line, print_note, print_status, print_warning};
use crate::table::{Cell, Column, Table};
use crate::terminal::{output_columns, print, visible_line};

/// Calls that a report of one run holds. Later ones are counted in its sums alone.
const CALLS_MAX: usize = 100_000;

/// Longest time for exchanges that still run when the agent has ended.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);

/// Run an agent, and find out why its calls missed the cache
///
/// Starts a gateway on a free port, sets what sends this agent's calls there, and runs the agent in the terminal as it is.
/// No file of the agent is changed. When it ends, its calls are summed up on standard error: the share that was read from
/// the cache, the money spent, the money lost, and to what. The exit code is the agent's.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArguments {
    /// Agent or program to run, with its arguments
    #[arg(
        value_name = "AGENT",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "list"
    )]
    command: Vec<String>,
    /// List the known agents, and what redirects them
    #[arg(long, exclusive = true)]
    list: bool,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    flags: GatewayFlags,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// Write a report to this file: a page if its name ends in `.html`, else JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  proem run claude                    Run Claude Code, and sum up its calls
  proem run codex exec 'Fix the test' Run another agent with arguments
  proem run --report r.html -- pi     Write a report, too
  proem run -- ./my-agent             Run any program on the SDKs
  proem run --list                    Show the known agents";

pub(crate) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    if arguments.list {
        return list();
    }
    let command = command(arguments);
    let given = command.first().map_or("", String::as_str);
    let agent =
        Agent::of_command(given).ok_or_else(|| usage(given, "it is not known", "see `proem run --list`"))?;
    if let Some(why) = agent.impossible() {
        let hint = "`proem compat` shows the files that it reads; `proem run --list` shows what can be run";
        return Err(usage(given, why, hint));
    }
    let models = Models::load(&Request::default(), Caller::User)?;
    let observed = Arc::new(Mutex::new(Observed { report: TrafficReport::empty(&models), left: 0 }));
    let run = Run::start(arguments, command, (agent, &observed))?;
    let (status, plan_redirects) = (run.status, run.is_redirected);
    let counters = Arc::clone(&run.gateway);
    let mut observed = observed.lock().unwrap_or_else(PoisonError::into_inner);
    let calls = observed.report.calls.len() + observed.left;
    observed.report.sources.push(ReportSource {
        kind: agent.name().to_owned(),
        path: given.to_owned(),
        calls,
    });
    finish(arguments, agent, &observed, (counters.counters(), plan_redirects))?;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(Failure::Exit(u8::try_from(code).unwrap_or(u8::MAX))),
        (None, signal) => {
            Err(Failure::Exit(128_u8.saturating_add(u8::try_from(signal.unwrap_or(0)).unwrap_or(0))))
        }
    }
}

/// Returns the command: `generic PROGRAM` is the program.
fn command(arguments: &RunArguments) -> &[String] {
    match arguments.command.as_slice() {
        [first, rest @ ..] if first == "generic" && !rest.is_empty() => rest,
        all => all,
    }
}

/// The calls of the run.
struct Observed {
    report: TrafficReport,
    /// Calls that are in the sums alone.
    left: usize,
}

impl Observed {
    fn push(&mut self, call: ObservedCall) {
        self.report.push(call.verdict, call.call.is_subscription);
        if self.report.calls.len() > CALLS_MAX {
            self.report.calls.pop();
            self.left += 1;
        }
    }
}

/// Opens the store; an agent also runs without one.
fn book(arguments: &RunArguments, cwd: String) -> CallBook {
    let location = place(arguments.store.store.as_deref());
    let opened = location.and_then(|location| Ok((location.open()?, location)));
    let (store, location) = match opened {
        Ok((store, location)) => (Some(Arc::<dyn Store>::from(store)), Some(location)),
        Err(failure) => {
            print_warning(&format!("calls are not stored: {}", failure.message()));
            (None, None)
        }
    };
    let path = location.as_ref().and_then(StoreLocation::path);
    CallBook { cwd: Some(cwd), ..CallBook::new(store, path, arguments.flags.keep) }
}

/// A run that has ended.
struct Run {
    status: ExitStatus,
    is_redirected: bool,
    gateway: Arc<Gateway>,
}

impl Run {
    fn start(
        arguments: &RunArguments,
        command: &[String],
        (agent, observed): (Agent, &Arc<Mutex<Observed>>),
    ) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|error| failed("cannot start", &error))?;
        let listeners = bind(&runtime, &[SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)])?;
        let address = listeners.addresses().map_err(|error| failed("cannot listen", &error))?;
        let url = address.first().map_or_else(String::new, |address| format!("http://{address}"));
        let around = surroundings(agent, command);
        let plan = agent
            .plan(command, &url, arguments.flags.routes(), &around)
            .map_err(|error| usage(agent.name(), &error.to_string(), "unset it, or correct it"))?;
        if ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
            .iter()
            .any(|name| around.env.contains_key(*name))
        {
            print_warning("a proxy is set for HTTPS; the gateway calls providers without it");
        }
        let cwd = around.cwd.display().to_string();
        let kept = Arc::clone(observed);
        let book = book(arguments, cwd);
        let analysis = analysis(
            &book,
            Box::new(move |call| {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(call);
            }),
        )?;
        let routes = plan.routes.clone();
        let options = GatewayOptions {
            routes,
            uses_http2: arguments.flags.http2,
            drain_time_max: DRAIN_TIME_MAX,
            ..GatewayOptions::default()
        };
        let gateway = Gateway::new(options, Some(&analysis), book.account_key());
        let (end, ended) = oneshot::channel::<()>();
        let served = runtime.spawn(serve(listeners, Arc::clone(&gateway), async {
            // The end is also the end of the sender.
            let _ = ended.await;
        }));
        let status = run_child(&runtime, &plan)?;
        drop(end);
        // A task that failed has no exchange left.
        let _ = runtime.block_on(served);
        runtime.shutdown_timeout(Duration::from_secs(1));
        analysis.flush();
        if let Some(why) = book.failure.get() {
            print_warning(&format!("calls are not stored: {why}"));
        }
        Ok(Self { status, is_redirected: plan.is_redirected, gateway })
    }
}

/// Runs the agent with this terminal, and passes signals on.
fn run_child(runtime: &Runtime, plan: &LaunchPlan) -> Result<ExitStatus, Failure> {
    let mut command = Command::new(&plan.program);
    command.args(&plan.arguments).envs(&plan.env);
    // Before it is started, so that none of them ends this process and leaves it alone.
    let signals = Signals::catch(runtime)?;
    let mut child = command.spawn().map_err(|error| Failure::Server {
        message: format!("cannot run {}: {}", visible_line(&plan.program), reason(&error)),
        hint: "install it, or name its path".into(),
    })?;
    signals.pass_on(runtime, &child);
    child.wait().map_err(|error| failed("cannot wait for the agent", &error))
}

/// The signals that are passed on.
struct Signals(Vec<(Signal, tokio::signal::unix::Signal)>);

impl Signals {
    fn catch(runtime: &Runtime) -> Result<Self, Failure> {
        let _entered = runtime.enter();
        let wanted = [
            (Signal::INT, SignalKind::interrupt()),
            (Signal::QUIT, SignalKind::quit()),
            (Signal::TERM, SignalKind::terminate()),
            (Signal::HUP, SignalKind::hangup()),
            (Signal::USR1, SignalKind::user_defined1()),
            (Signal::USR2, SignalKind::user_defined2()),
        ];
        let caught = wanted.into_iter().map(|(name, kind)| Ok((name, signal(kind)?)));
        let caught: std::io::Result<Vec<_>> = caught.collect();
        caught.map(Self).map_err(|error| failed("cannot wait for signals", &error))
    }

    fn pass_on(self, runtime: &Runtime, child: &Child) {
        let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
        for (name, mut caught) in self.0 {
            runtime.spawn(async move {
                while caught.recv().await.is_some() {
                    // The terminal sends its own signals to the agent, too.
                    let is_of_terminal = matches!(name, Signal::INT | Signal::QUIT) && is_in_foreground();
                    if !is_of_terminal {
                        // An agent that has ended needs no signal.
                        let _ = kill_process(id, name);
                    }
                }
            });
        }
    }
}

/// Tells if this process and the agent are those that the terminal sends signals to.
fn is_in_foreground() -> bool {
    let input = std::io::stdin();
    input.is_terminal() && tcgetpgrp(&input).is_ok_and(|group| group == getpgrp())
}

fn surroundings(agent: Agent, command: &[String]) -> Surroundings {
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let home = env.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let program = command.first().map_or("", String::as_str);
    let version = agent.needs_version().then(|| version(program)).flatten();
    Surroundings { env, cwd: std::env::current_dir().unwrap_or_default(), home, version }
}

/// Asks a program for its version. An agent that does not answer in time has none.
fn version(program: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
    let child = command.spawn().ok()?;
    let id = Pid::from_raw(i32::try_from(child.id()).ok()?)?;
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // The receiver may have given up.
        let _ = sender.send(child.wait_with_output());
    });
    let output = receiver.recv_timeout(Duration::from_secs(5));
    if output.is_err() {
        let _ = kill_process(id, Signal::KILL);
    }
    String::from_utf8(output.ok()?.ok()?.stdout).ok()
}

/// Prints the summary, and writes the report.
fn finish(
    arguments: &RunArguments,
    agent: Agent,
    observed: &Observed,
    (counters, is_redirected): (&Counters, bool),
) -> Result<(), Failure> {
    let report = &observed.report;
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let (failed, unread, unreachable) =
        (load(&counters.failed), load(&counters.unread), load(&counters.unreachable));
    if arguments.json {
        let summary = json!({
            "version": 1,
            "agent": agent.name(),
            "requests": load(&counters.requests),
            "failed": failed,
            "unread": unread,
            "unreachable": unreachable,
            "totals": report.totals,
            "misses": report.misses(false).into_iter().take(10).collect::<Vec<_>>(),
            "hints": if report.totals.calls == 0 { silence(agent, counters, is_redirected) } else { Vec::new() },
        });
        print_line(&summary.to_string());
    } else if report.totals.calls == 0 {
        print_status("proem: saw no call");
        for why in silence(agent, counters, is_redirected) {
            print_note(&why);
        }
    } else {
        for (index, line) in summary(report).iter().enumerate() {
            print_status(&if index == 0 { format!("proem: {line}") } else { format!("  {line}") });
        }
        for (count, what) in
            [(failed, "were refused by the provider"), (unread, "passed without being analysed")]
        {
            if count > 0 {
                print_note(&format!("{count} further calls {what}"));
            }
        }
    }
    if unreachable > 0 && !arguments.json {
        print_warning(&format!("{unreachable} requests could not reach their provider"));
    }
    arguments.report.as_deref().map_or(Ok(()), |path| write_report(path, report))
}

/// Returns the reasons why a run may have seen no call.
fn silence(agent: Agent, counters: &Counters, is_redirected: bool) -> Vec<String> {
    let requests = counters.requests.load(Ordering::Relaxed);
    let mut reasons = Vec::new();
    if !is_redirected {
        reasons.push("nothing that redirects the agent could be set".to_owned());
    } else if requests > 0 {
        reasons.push(format!("{requests} requests passed, and none was an answered call to a model"));
    }
    if requests == 0 {
        reasons.push("the agent may have ended before its first call".to_owned());
        reasons.extend(agent.silent().iter().cloned());
    }
    reasons
}

fn write_report(path: &Path, report: &TrafficReport) -> Result<(), Failure> {
    let is_page = path.extension().is_some_and(|extension| extension == "html");
    let text = if is_page {
        report.to_html(false)
    } else {
        serde_json::to_string_pretty(report).map_err(|error| Failure::Output(error.into()))? + "\n"
    };
    let refuse = |why: std::io::Error| Failure::Write { path: path.display().to_string(), why };
    fs::write(path, text).map_err(refuse)
}

fn list() -> Result<(), Failure> {
    let columns = [Column::word("agent"), Column::text("program"), Column::text("redirected by")];
    let row = |agent: Agent| {
        let means = agent.impossible().map_or_else(|| agent.means(), |why| format!("not possible: {why}"));
        vec![Cell::plain(agent.name()), Cell::plain(agent.title()), Cell::plain(means)]
    };
    let table = Table::new(columns).with(Agent::all().map(row)).print(output_columns());
    print(&format!("{table}\nas of {}\n", agents_as_of()))
}

fn usage(agent: &str, why: &str, hint: &str) -> Failure {
    Failure::Usage { message: format!("cannot run {}: {why}", visible_line(agent)), hint: hint.to_owned() }
}
