//! Builds the same prompt on simulated machines that differ in one thing, and names the sources whose bytes change.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use proem_core::stability::Stability;

use crate::build::Build;
use crate::engine::build;
use crate::error::Error;
use crate::observe::date_words::local_date;
use crate::observe::host::Host;
use crate::observe::listing_order;
use crate::request::caller::Caller;
use crate::request::{Pin, Request};

/// The simulated difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Axis {
    /// Nothing: it is only built again.
    Again,
    /// The time of the same day.
    Clock,
    /// The day.
    Day,
    /// The time zone.
    Zone,
    /// The language of the system.
    Locale,
    /// The order in which folders are listed.
    Directories,
    /// The home directory has another path.
    Home,
    /// The variables of the environment, and the machine's name and shell.
    Environment,
}

impl Axis {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Again,
        Self::Clock,
        Self::Day,
        Self::Zone,
        Self::Locale,
        Self::Directories,
        Self::Home,
        Self::Environment,
    ];

    /// The word used in JSON and tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Again => "again",
            Self::Clock => "clock",
            Self::Day => "day",
            Self::Zone => "zone",
            Self::Locale => "locale",
            Self::Directories => "directories",
            Self::Home => "home",
            Self::Environment => "environment",
        }
    }

    /// Describes the difference, as a phrase that completes "it moves …".
    #[must_use]
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Again => "when it is built again",
            Self::Clock => "with the time of day",
            Self::Day => "with the day",
            Self::Zone => "with the time zone",
            Self::Locale => "with the language of the system",
            Self::Directories => "with the order in which folders are listed",
            Self::Home => "with the home directory",
            Self::Environment => "with the environment",
        }
    }

    /// The most stable value that may move with it; none may with the order of folders.
    const fn allowed(self) -> Option<Stability> {
        match self {
            Self::Again | Self::Clock => Some(Stability::Turn),
            Self::Day => Some(Stability::Day),
            Self::Zone | Self::Locale | Self::Environment => Some(Stability::Machine),
            Self::Home => Some(Stability::User),
            Self::Directories => None,
        }
    }
}

/// A source whose bytes changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedSource {
    /// The source.
    pub source: Source,
    /// The difference between the machines.
    pub axis: Axis,
    /// The declared stability of the source.
    pub stability: Stability,
    /// True if the source may change with that.
    pub is_allowed: bool,
    /// True if its bytes are frozen.
    pub is_frozen: bool,
}

impl MovedSource {
    /// A finding, where it must not move.
    #[must_use]
    pub fn note(&self) -> Option<Note> {
        let message = format!(
            "{} moves {}, and is said to change {}",
            self.source,
            self.axis.phrase(),
            self.stability.rhythm()
        );
        let note = Note::new(Code::NotDeterministic, Severity::Error, message)
            .with_hint("give its section a `stability` that is true, or take away what it depends on")
            .with_source(self.source.clone());
        (!self.is_allowed).then_some(note)
    }
}

/// Builds a prompt under every difference, and names each source whose bytes change.
pub fn determinism(request: &Request, caller: Caller) -> Result<Vec<MovedSource>, Error> {
    let base = pinned(request, caller)?;
    let first = pieces(&build(&base, caller)?);
    let mut moved = Vec::new();
    for axis in Axis::ALL {
        // A remote caller cannot set the home directory.
        if caller.is_remote() && matches!(axis, Axis::Home | Axis::Locale | Axis::Environment) {
            continue;
        }
        let changed = changed(&base, axis)?;
        let built = match axis {
            Axis::Directories => listing_order::reversed(|| build(&changed, caller)),
            _ => build(&changed, caller),
        };
        // A source that changes by itself gives no information about other differences.
        let is_restless = |one: &MovedSource| {
            moved.iter().any(|known: &MovedSource| known.axis == Axis::Again && known.source == one.source)
        };
        let found = differences(&first, &pieces(&built?), axis);
        let found: Vec<MovedSource> = found.into_iter().filter(|one| !is_restless(one)).collect();
        moved.extend(without_frames(found));
    }
    Ok(moved)
}

/// Removes the frames of templates, which come and go with the content that they surround.
fn without_frames(found: Vec<MovedSource>) -> Vec<MovedSource> {
    let is_frame =
        |moved: &MovedSource| matches!(moved.source, Source::BuiltIn { .. } | Source::Profile { .. });
    let has_content = found.iter().any(|moved| !is_frame(moved));
    found.into_iter().filter(|moved| !has_content || !is_frame(moved)).collect()
}

/// Returns the request with every value set that a difference starts from.
fn pinned(request: &Request, caller: Caller) -> Result<Request, Error> {
    let host = Host::observe(request, caller)?;
    let mut pinned = request.clone();
    if pinned.host.now == Pin::Observe {
        pinned.host.now = Pin::Given(host.now().unwrap_or_else(|_| Timestamp::now()).to_string());
    }
    if pinned.host.timezone == Pin::Observe {
        pinned.host.timezone = host.timezone().map_or(Pin::None, Pin::Given);
    }
    if caller == Caller::User {
        if pinned.host.config_dir == Pin::Observe {
            let folder = host.config_dir().and_then(|folder| folder.to_str().map(str::to_owned));
            pinned.host.config_dir = folder.map_or(Pin::None, Pin::Given);
        }
        if pinned.host.env == Pin::Observe {
            pinned.host.env = Pin::Given(
                std::env::vars_os()
                    .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                    .collect(),
            );
        }
        if pinned.host.shell == Pin::Observe {
            pinned.host.shell = host.shell().map_or(Pin::None, Pin::Given);
        }
    }
    Ok(pinned)
}

fn changed(base: &Request, axis: Axis) -> Result<Request, Error> {
    let mut changed = base.clone();
    let host = &mut changed.host;
    match axis {
        Axis::Again | Axis::Directories => {}
        Axis::Clock => host.now = moved_clock(&base.host.now, base.host.timezone.given(), false)?,
        Axis::Day => host.now = moved_clock(&base.host.now, base.host.timezone.given(), true)?,
        Axis::Zone => {
            let is_far = base.host.timezone.given().is_some_and(|zone| zone == "Pacific/Kiritimati");
            host.timezone = Pin::Given(if is_far { "America/Adak" } else { "Pacific/Kiritimati" }.into());
        }
        Axis::Home => host.home = Pin::Given("/home/another-user".into()),
        Axis::Locale => {
            for name in ["LANG", "LC_ALL", "LC_TIME", "LC_COLLATE", "LANGUAGE"] {
                set(&mut host.env, name, "tr_TR.UTF-8");
            }
        }
        Axis::Environment => {
            let names = host.env.given().into_iter().flatten().map(|(name, _)| name.clone());
            let is_kept = |name: &str| {
                name.starts_with("PROEM_") || name.starts_with("XDG_") || matches!(name, "PATH" | "HOME")
            };
            for name in names.filter(|name| !is_kept(name)).collect::<Vec<_>>() {
                set(&mut host.env, &name, "something-else");
            }
            host.hostname = Pin::Given("another-machine".into());
            host.shell = Pin::Given("/bin/another-shell".into());
        }
    }
    Ok(changed)
}

fn set(env: &mut Pin<BTreeMap<String, String>>, name: &str, value: &str) {
    if let Pin::Given(variables) = env {
        variables.insert(name.to_owned(), value.to_owned());
    }
}

/// Another time of the same day, here and in UTC; or the same time of the next day.
fn moved_clock(now: &Pin<String>, zone: Option<&String>, is_day: bool) -> Result<Pin<String>, Error> {
    let Pin::Given(text) = now else { return Ok(now.clone()) };
    let moment: Timestamp = text.parse().map_err(|error: jiff::Error| {
        Error::request(format!("`host.now` is `{text}`, which is not a time")).caused_by(error)
    })?;
    let zone = zone.map_or("UTC", String::as_str);
    let days = |moment: Timestamp| (local_date(moment, "UTC"), local_date(moment, zone));
    let shifts: &[i64] = if is_day { &[86_400, -86_400] } else { &[3671, -3671, 61, -61] };
    let moved =
        shifts.iter().filter_map(|seconds| moment.checked_add(SignedDuration::from_secs(*seconds)).ok());
    let found = moved.clone().find(|moved| is_day || days(*moved) == days(moment));
    let found = found.or_else(|| moved.clone().next()).unwrap_or(moment);
    Ok(Pin::Given(found.to_string()))
}

/// The text that one source put into the prompt.
struct SourceText {
    source: Source,
    text: String,
    stability: Stability,
    is_frozen: bool,
}

fn pieces(build: &Build) -> BTreeMap<String, SourceText> {
    let mut pieces: BTreeMap<String, SourceText> = BTreeMap::new();
    for (carrier, text) in build.whole().carriers() {
        let frozen_bytes = build.frozen().body().text(carrier).map_or(0, str::len);
        for span in build.whole().spans(carrier) {
            let source = span.source.without_place();
            let piece = pieces.entry(format!("{}\0{source}", carrier.word())).or_insert_with(|| SourceText {
                source,
                text: String::new(),
                stability: span.stability,
                is_frozen: span.bytes.start < frozen_bytes,
            });
            piece.stability = piece.stability.max(span.stability);
            piece.text.push_str(text.get(span.bytes.clone()).unwrap_or_default());
        }
    }
    pieces
}

fn differences(
    before: &BTreeMap<String, SourceText>,
    after: &BTreeMap<String, SourceText>,
    axis: Axis,
) -> Vec<MovedSource> {
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let difference = |key: &String| {
        let (old, new) = (before.get(key), after.get(key));
        if old.map(|piece| &piece.text) == new.map(|piece| &piece.text) {
            return None;
        }
        let piece = old.or(new)?;
        let is_allowed = axis.allowed().is_some_and(|least| piece.stability >= least);
        let (source, stability, is_frozen) = (piece.source.clone(), piece.stability, piece.is_frozen);
        Some(MovedSource { source, axis, stability, is_allowed, is_frozen })
    };
    keys.into_iter().filter_map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(stability: Stability, axis: Axis) -> MovedSource {
        let piece = |text: &str| {
            let source = Source::Hook { name: "team".into() };
            let piece = SourceText { source, text: text.to_owned(), stability, is_frozen: true };
            BTreeMap::from([("system".to_owned(), piece)])
        };
        let found = differences(&piece("one"), &piece("two"), axis);
        assert_eq!(differences(&piece("one"), &piece("one"), axis), []);
        found.into_iter().next().expect("it moved")
    }

    #[test]
    fn a_source_may_move_as_its_stability_says() {
        assert!(moved(Stability::Turn, Axis::Clock).is_allowed);
        assert!(moved(Stability::Day, Axis::Day).is_allowed);
        assert!(!moved(Stability::Day, Axis::Clock).is_allowed);
        assert!(!moved(Stability::Project, Axis::Day).is_allowed);
        assert!(!moved(Stability::Turn, Axis::Directories).is_allowed);
        assert!(!moved(Stability::Release, Axis::Locale).is_allowed);
        let note = moved(Stability::Project, Axis::Again).note().expect("it must not move");
        assert_eq!(
            note.message,
            "hook team moves when it is built again, and is said to change with the project's files"
        );
        assert_eq!(moved(Stability::Turn, Axis::Again).note(), None);
    }

    #[test]
    fn another_time_of_the_same_day_stays_in_it() {
        for now in ["2026-03-07T00:00:30Z", "2026-03-07T23:59:50Z", "2026-03-07T12:00:00Z"] {
            for zone in ["UTC", "America/Chicago", "Pacific/Kiritimati"] {
                let (pin, zone) = (Pin::Given(now.to_owned()), zone.to_owned());
                let Ok(Pin::Given(moved)) = moved_clock(&pin, Some(&zone), false) else { panic!("no time") };
                let day = |text: &str| local_date(text.parse().expect("a time"), &zone);
                assert!(moved != now && day(&moved) == day(now), "{now} {zone} {moved}");
            }
        }
    }
}
