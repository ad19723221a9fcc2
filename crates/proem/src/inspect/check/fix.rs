//! Repairs what can be repaired without a decision by the user: only files of the project, and only if the text is
//! unchanged since the check.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use proem_core::note::{Code, Fix, Note};
use proem_core::source::Source;
use proem_core::text::Places;
use proem_core::text_safety::hygiene::without_hidden;

use super::{Report, is_mendable};
use crate::error::Error;
use crate::observe::file::{ReadPolicy, read_utf8};
use crate::request::Request;
use crate::request::caller::Caller;
use crate::settings::world::World;

/// The number of rounds: a repair can uncover the next finding.
const ROUNDS_MAX: usize = 8;

/// The result of a repair.
#[derive(Debug, Clone, Default)]
pub struct Repairs {
    /// The number of repaired findings.
    pub findings: usize,
    /// In which files.
    pub files: Vec<PathBuf>,
    /// Files that were not touched, and why.
    pub refused: Vec<(PathBuf, String)>,
}

/// Repairs the findings of a check, and returns those that are left.
pub fn fix(
    request: &Request,
    check: impl Fn(&Request) -> Result<Report, Error>,
) -> Result<(Repairs, Report), Error> {
    let mut fixed = Repairs::default();
    let mut request = request.clone();
    for _ in 0..ROUNDS_MAX {
        let report = check(&request)?;
        let mended = round(&report.findings, &request, &mut fixed)?;
        read_again(&mut request);
        if mended == 0 {
            return Ok((fixed, report));
        }
        fixed.findings += mended;
    }
    let report = check(&request)?;
    Ok((fixed, report))
}

/// Reads the template of the command line again: the request holds its text from before the repair.
fn read_again(request: &mut Request) {
    let policy = ReadPolicy::user(None, &[]);
    if let Some(path) = &request.template_path
        && let Ok(text) = read_utf8(Path::new(path), &policy, super::FILE)
    {
        request.template = Some(text);
    }
}

/// Repairs each file once; returns the number of repaired findings.
fn round(notes: &[Note], request: &Request, fixed: &mut Repairs) -> Result<usize, Error> {
    let World { host, workspace, .. } = World::read(request, Caller::User)?;
    let roots = crate::discover::SearchRoots::new(&host, &workspace).real_project().to_owned();
    let mut by_file: BTreeMap<&str, Vec<(&Note, &Fix)>> = BTreeMap::new();
    for note in notes {
        if let (Some(Source::File { path, .. }), Some(fix), true) =
            (&note.source, &note.fix, is_mendable(note))
        {
            by_file.entry(path).or_default().push((note, fix));
        }
    }
    let mut count = 0;
    for (path, fixes) in by_file {
        let path = Path::new(path);
        let policy = ReadPolicy::user(host.home().as_deref(), &[]);
        match mend(path, &roots, &fixes, &policy)? {
            Ok(0) => {}
            Ok(mended) => {
                count += mended;
                if !fixed.files.iter().any(|known| known == path) {
                    fixed.files.push(path.to_owned());
                }
            }
            Err(why) => {
                if !fixed.refused.iter().any(|(known, _)| known == path) {
                    fixed.refused.push((path.to_owned(), why));
                }
            }
        }
    }
    Ok(count)
}

fn mend(
    path: &Path,
    root: &Path,
    fixes: &[(&Note, &Fix)],
    policy: &ReadPolicy,
) -> Result<Result<usize, String>, Error> {
    let real = match crate::observe::file::canonical(path) {
        Ok(real) if real.starts_with(root) => real,
        Ok(real) => return Ok(Err(format!("it lies outside of the project, at {}", real.display()))),
        Err(error) => return Ok(Err(crate::error::reason(&error))),
    };
    let text = match read_utf8(&real, policy, super::FILE) {
        Ok(text) => text,
        Err(why) => return Ok(Err(why.to_string())),
    };
    if fs::metadata(&real).is_ok_and(|found| found.permissions().readonly()) {
        return Ok(Err("it is read-only".into()));
    }
    let (mended, count) = mended(&text, fixes);
    if count > 0 {
        replace(&real, &mended).map_err(|why| Error::Write { path: path.display().to_string(), why })?;
    }
    Ok(Ok(count))
}

/// Returns the repaired text, and the number of repaired findings.
fn mended(text: &str, fixes: &[(&Note, &Fix)]) -> (String, usize) {
    let of = |code: Code| fixes.iter().filter(move |(note, _)| note.code == code).count();
    // All hidden characters are removed at once, including those that are not listed.
    if of(Code::HiddenText) > 0
        && let Some(clean) = without_hidden(text)
    {
        return (clean, of(Code::HiddenText));
    }
    if of(Code::LineEndings) > 0 {
        return (text.replace("\r\n", "\n"), of(Code::LineEndings));
    }
    let mut fixes: Vec<&(&Note, &Fix)> = fixes.iter().collect();
    fixes.sort_by_key(|(_, fix)| fix.bytes.start);
    let mut places = Places::new(text);
    fixes.retain(|(note, fix)| fits(note, fix, text, &mut places));
    let (mut mended, mut end, mut count) = (String::with_capacity(text.len()), 0, 0);
    for (_, fix) in fixes {
        // Of two changes of the same bytes the second waits for the next round.
        if fix.bytes.start < end {
            continue;
        }
        mended.push_str(text.get(end..fix.bytes.start).unwrap_or_default());
        mended.push_str(&fix.text);
        end = fix.bytes.end;
        count += 1;
    }
    mended.push_str(text.get(end..).unwrap_or_default());
    (mended, count)
}

/// Tells whether the file still is the text that the fix was made for.
fn fits(note: &Note, fix: &Fix, text: &str, places: &mut Places<'_>) -> bool {
    if text.get(fix.bytes.clone()).is_none() {
        return false;
    }
    let place = note.source.as_ref().and_then(Source::place);
    place == Some(places.at(fix.bytes.start))
}

/// Writes a file beside the old one and puts it in its place, so that there is never half of it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let mut file = tempfile::Builder::new().prefix(".proem-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(fs::metadata(path)?.permissions())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
