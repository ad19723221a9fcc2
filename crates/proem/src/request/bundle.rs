//! A workspace that a request brings along: files, facts of git, and a working directory below `/workspace`.
//!
//! A server need not have the directory of its client then. The content is checked here, once: paths are relative and plain,
//! and the number, the size and the depth of files are limited while they are read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use proem_core::digest::Digest;
use proem_core::limit::{
    PATH_BYTES_MAX, REQUEST_BYTES_MAX, Size, WORKSPACE_BYTES_MAX, WORKSPACE_DEPTH_MAX, WORKSPACE_FILES_MAX,
    WORKSPACE_NAME_BYTES_MAX,
};
use schemars::JsonSchema;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Error;
use crate::request::Request;
use crate::request::strict_json::Object;

/// The directory in which prompts show the files of a bundle.
pub(crate) const ROOT: &str = "/workspace";

/// The files of a workspace, with what git says about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Bundle {
    files: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git: Option<BundleGit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
}

/// The facts of git about a bundle. One that is not given is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BundleGit {
    /// The branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The output of `git status --short`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The output of `git diff --stat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

impl Bundle {
    /// Makes a bundle of files by relative path. The error says which path or limit is wrong.
    pub fn new(
        files: BTreeMap<String, String>,
        git: Option<BundleGit>,
        cwd: Option<String>,
    ) -> Result<Self, Error> {
        let mut counted = FileList::default();
        for (path, text) in files {
            counted.add(path, text).map_err(|why| refused(&why))?;
        }
        Self::checked(counted, git, cwd).map_err(|why| refused(&why))
    }

    /// Reads a bundle from JSON.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        if text.len() > REQUEST_BYTES_MAX {
            return Err(refused(&format!(
                "it has {} bytes, and {REQUEST_BYTES_MAX} are allowed",
                text.len()
            )));
        }
        let workspace: VirtualWorkspace =
            serde_json::from_str(text).map_err(|error| refused(&error.to_string()).caused_by(error))?;
        let VirtualWorkspace { bundle, .. } = workspace;
        let bundle = bundle.ok_or_else(|| refused("it has no `files`"))?;
        Ok(Arc::unwrap_or_clone(bundle))
    }

    /// Writes the bundle as JSON. Equal bundles give equal bytes.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Texts can always be serialised.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the SHA-256 of the bundle, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> String {
        Digest::new(self.to_json().as_bytes()).hex()
    }

    /// Returns the files by path.
    #[must_use]
    pub const fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Returns the facts of git; `None` outside of a repository.
    #[must_use]
    pub const fn git(&self) -> Option<&BundleGit> {
        self.git.as_ref()
    }

    fn checked(list: FileList, git: Option<BundleGit>, cwd: Option<String>) -> Result<Self, String> {
        let FileList { files, mut bytes } = list;
        for path in files.keys() {
            let above = ancestors(path).find(|folder| files.contains_key(*folder));
            if let Some(above) = above {
                return Err(format!("`{}` is a file and a folder", above.escape_debug()));
            }
        }
        let facts = git.iter().flat_map(|git| [&git.branch, &git.status, &git.diff]);
        bytes += facts.flatten().map(String::len).sum::<usize>();
        if bytes > WORKSPACE_BYTES_MAX {
            return Err(too_large());
        }
        let cwd = cwd.filter(|cwd| !matches!(cwd.as_str(), "" | "."));
        if let Some(cwd) = &cwd {
            check_path(cwd).map_err(|why| format!("`cwd` is `{}`: {why}", cwd.escape_debug()))?;
            if files.contains_key(cwd) || ancestors(cwd).any(|folder| files.contains_key(folder)) {
                return Err(format!("`cwd` is `{}`, which is a file", cwd.escape_debug()));
            }
        }
        Ok(Self { files, git, cwd })
    }
}

/// The files read so far, within the limits.
#[derive(Default)]
struct FileList {
    files: BTreeMap<String, String>,
    bytes: usize,
}

impl FileList {
    fn add(&mut self, path: String, text: String) -> Result<(), String> {
        check_path(&path).map_err(|why| format!("the path `{}`: {why}", shortened(&path)))?;
        self.bytes += path.len() + text.len();
        if self.files.len() == WORKSPACE_FILES_MAX {
            return Err(format!("it has more than {WORKSPACE_FILES_MAX} files"));
        }
        if self.bytes > WORKSPACE_BYTES_MAX {
            return Err(too_large());
        }
        if self.files.contains_key(&path) {
            return Err(format!("the path `{}` is there twice", path.escape_debug()));
        }
        self.files.insert(path, text);
        Ok(())
    }
}

fn too_large() -> String {
    format!("its files have more than {} together", Size::new(WORKSPACE_BYTES_MAX))
}

/// Returns the beginning of a path for messages.
fn shortened(path: &str) -> String {
    let beginning: String = path.chars().take(80).collect();
    let more = if beginning.len() < path.len() { "…" } else { "" };
    format!("{}{more}", beginning.escape_debug())
}

/// Returns the folders above a path, the nearest first.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(path.rsplit_once('/').map(|(above, _)| above), |path| {
        path.rsplit_once('/').map(|(above, _)| above)
    })
}

/// Checks a path of a bundle. The error says what is wrong with it.
fn check_path(path: &str) -> Result<(), String> {
    if path.is_empty() {
        return Err("it is empty".into());
    }
    if path.starts_with('/') {
        return Err("it is absolute; write it relative to the root of the workspace".into());
    }
    if path.contains('\0') {
        return Err("it has a NUL".into());
    }
    if path.len() + ROOT.len() >= PATH_BYTES_MAX {
        return Err("it is too long".into());
    }
    for (index, name) in path.split('/').enumerate() {
        if index >= WORKSPACE_DEPTH_MAX {
            return Err(format!("it lies more than {WORKSPACE_DEPTH_MAX} levels deep"));
        }
        match name {
            "" => return Err("it has an empty name".into()),
            "." | ".." => return Err(format!("it has `{name}`; write it without")),
            _ if name.eq_ignore_ascii_case(".git") => {
                return Err("files of git are not part of a workspace; give facts in `git`".into());
            }
            _ if name.len() > WORKSPACE_NAME_BYTES_MAX => {
                return Err(format!("a name has more than {WORKSPACE_NAME_BYTES_MAX} bytes"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn refused(why: &str) -> Error {
    Error::request_with_hint(
        format!("`workspace` is not valid: {why}"),
        "give `files` by relative path, or the digest of a workspace that was sent before",
    )
}

/// The workspace of a request: a bundle, or the digest of one that was sent before.
#[derive(Debug, Clone)]
pub struct VirtualWorkspace {
    digest: String,
    /// The working directory below [`ROOT`], empty for itself; `None` if only the digest is known.
    cwd: Option<String>,
    bundle: Option<Arc<Bundle>>,
}

impl PartialEq for VirtualWorkspace {
    /// Equal digests mean equal files.
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest && self.cwd == other.cwd
    }
}

impl From<Bundle> for VirtualWorkspace {
    fn from(bundle: Bundle) -> Self {
        let cwd = Some(bundle.cwd.clone().unwrap_or_default());
        Self { digest: bundle.digest(), cwd, bundle: Some(Arc::new(bundle)) }
    }
}

impl VirtualWorkspace {
    /// Returns the digest of the bundle.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the bundle, if it is known.
    #[must_use]
    pub fn bundle(&self) -> Option<&Bundle> {
        self.bundle.as_deref()
    }

    /// Returns the working directory below the root, if it is known.
    pub(crate) fn cwd(&self) -> Option<&str> {
        self.cwd.as_deref()
    }

    /// Returns the working directory as prompts show it.
    pub(crate) fn path(&self) -> String {
        match self.cwd.as_deref() {
            None | Some("") => ROOT.to_owned(),
            Some(cwd) => format!("{ROOT}/{cwd}"),
        }
    }

    /// Returns the reference to the bundle alone.
    pub(crate) fn reference(&self) -> Self {
        Self { bundle: None, ..self.clone() }
    }

    /// Returns the workspace with the bundle that it refers to.
    pub(crate) fn with_bundle(&self, bundle: Bundle) -> Result<Self, Error> {
        let own = bundle.cwd.clone();
        let cwd = self.cwd.clone().or(own).filter(|cwd| !cwd.is_empty());
        let Bundle { files, git, .. } = &bundle;
        let list = FileList { files: files.clone(), bytes: 0 };
        let placed = Bundle::checked(list, git.clone(), cwd).map_err(|why| refused(&why))?;
        let cwd = Some(placed.cwd.unwrap_or_default());
        Ok(Self { digest: self.digest.clone(), cwd, bundle: Some(Arc::new(bundle)) })
    }
}

impl Serialize for VirtualWorkspace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Reference<'w> {
            digest: &'w str,
            cwd: &'w str,
        }
        match (&self.bundle, &self.cwd) {
            (Some(bundle), _) => bundle.serialize(serializer),
            (None, None) => self.digest.serialize(serializer),
            (None, Some(cwd)) => Reference { digest: &self.digest, cwd }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for VirtualWorkspace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WorkspaceVisitor)
    }
}

struct WorkspaceVisitor;

impl<'de> Visitor<'de> for WorkspaceVisitor {
    type Value = VirtualWorkspace;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("`workspace` as an object with `files`, or as a digest")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<VirtualWorkspace, E> {
        Ok(VirtualWorkspace { digest: digest(text).map_err(E::custom)?, cwd: None, bundle: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<VirtualWorkspace, A::Error> {
        let (mut files, mut git, mut cwd, mut known) = (None, None, None, None);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let is_twice = match &*key {
                "files" => files.replace(map.next_value::<FileList>()?).is_some(),
                "git" => {
                    let given = map.next_value::<Option<Object<BundleGit>>>()?;
                    git.replace(given.map(|Object(facts)| facts)).is_some()
                }
                "cwd" => cwd.replace(map.next_value::<Option<String>>()?).is_some(),
                "digest" => known.replace(map.next_value::<String>()?).is_some(),
                other => {
                    let other = shortened(other);
                    let why =
                        format!("unknown field `workspace.{other}`; the fields are: files, git, cwd, digest");
                    return Err(A::Error::custom(why));
                }
            };
            if is_twice {
                return Err(A::Error::custom(format!("duplicate field `workspace.{key}`")));
            }
        }
        let (git, cwd) = (git.flatten(), cwd.flatten());
        match (files, known) {
            (Some(files), None) => {
                Bundle::checked(files, git, cwd).map(VirtualWorkspace::from).map_err(A::Error::custom)
            }
            (None, Some(known)) if git.is_none() => {
                let digest = digest(&known).map_err(A::Error::custom)?;
                Ok(VirtualWorkspace { digest, cwd, bundle: None })
            }
            (None, None) => Err(A::Error::custom("`workspace` has no `files`")),
            _ => Err(A::Error::custom("`workspace` has a `digest`, and `files` or `git`: give one of them")),
        }
    }
}

fn digest(text: &str) -> Result<String, &'static str> {
    match Digest::from_hex(text) {
        Some(digest) => Ok(digest.hex()),
        None => Err("`workspace` is not a digest: 64 hexadecimal digits, as `POST /workspaces` returns"),
    }
}

impl<'de> Deserialize<'de> for FileList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Files;
        impl<'de> Visitor<'de> for Files {
            type Value = FileList;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("`workspace.files` as an object of texts by path")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FileList, A::Error> {
                let mut list = FileList::default();
                // Stops at the first limit: a list of a million files is not read to its end.
                while let Some((path, text)) = map.next_entry::<String, String>()? {
                    list.add(path, text)
                        .map_err(|why| A::Error::custom(format_args!("`workspace.files`: {why}")))?;
                }
                Ok(list)
            }
        }
        deserializer.deserialize_map(Files)
    }
}

/// The forms of a workspace in a request, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes the shape")]
pub(super) enum WorkspaceShape {
    /// The digest of a workspace that was sent before.
    Digest(String),
    /// The digest, with another working directory.
    Reference {
        /// The digest of a workspace that was sent before.
        digest: String,
        /// The working directory below `/workspace`.
        cwd: Option<String>,
    },
    /// The workspace itself.
    Bundle {
        /// The files by relative path.
        files: BTreeMap<String, String>,
        /// The facts of git; without them the workspace is not a repository.
        git: Option<BundleGit>,
        /// The working directory below `/workspace`.
        cwd: Option<String>,
    },
}

impl Request {
    /// Refuses a request with two working directories.
    pub(crate) fn check_place(&self) -> Result<(), Error> {
        if self.workspace.is_some() && self.cwd.is_some() {
            return Err(Error::request_with_hint(
                "it has a `workspace` and a `cwd`, and only one of them can be the place of a prompt",
                "write the working directory in `workspace.cwd`, relative to the workspace",
            ));
        }
        Ok(())
    }

    /// Returns the working directory that the request names.
    pub(crate) fn place(&self) -> Option<Cow<'_, str>> {
        match &self.workspace {
            Some(workspace) => Some(workspace.path().into()),
            None => self.cwd.as_deref().map(Cow::Borrowed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        Request::from_json(&format!(r#"{{"workspace": {text}}}"#)).expect_err("it is refused").to_string()
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for (path, why) in [
            ("../x", "`..`"),
            ("a/../../x", "`..`"),
            ("a/./x", "`.`"),
            ("/etc/passwd", "absolute"),
            ("", "empty"),
            ("a//b", "empty name"),
            ("a/", "empty name"),
            ("a\\u0000b", "NUL"),
            (".git/config", "files of git"),
            ("sub/.GIT/config", "files of git"),
        ] {
            let text = format!(r#"{{"files": {{"{path}": ""}}}}"#);
            assert!(problem(&text).contains(why), "{path}: {}", problem(&text));
            let text = format!(r#"{{"files": {{}}, "cwd": "{path}"}}"#);
            assert!(path.is_empty() || problem(&text).contains(why), "{path}: {}", problem(&text));
        }
        let deep = format!(r#"{{"files": {{"{}x": ""}}}}"#, "a/".repeat(WORKSPACE_DEPTH_MAX));
        assert!(problem(&deep).contains("levels deep"));
        let long = format!(r#"{{"files": {{"{}": ""}}}}"#, "a".repeat(300));
        assert!(problem(&long).contains("more than 255 bytes"));
    }

    #[test]
    fn limits_and_contradictions_are_refused() {
        let files: Vec<String> =
            (0..=WORKSPACE_FILES_MAX).map(|number| format!(r#""{number}": """#)).collect();
        let many = format!(r#"{{"files": {{{}}}}}"#, files.join(","));
        assert!(problem(&many).contains("files"), "{}", problem(&many));
        let large = format!(r#"{{"files": {{"a": "{}"}}}}"#, "x".repeat(WORKSPACE_BYTES_MAX));
        assert!(problem(&large).contains("together"));
        for (text, why) in [
            (r#"{"files": {}, "git": [null, null]}"#, "expected an object"),
            (r#"{"files": {"a": "", "a/b": ""}}"#, "a file and a folder"),
            (r#"{"files": {"a": "", "a": ""}}"#, "twice"),
            (r#"{"files": {"a": ""}, "cwd": "a/b"}"#, "which is a file"),
            (r#"{"files": {}, "file": {}}"#, "unknown field `workspace.file`"),
            (r#"{"git": {}}"#, "no `files`"),
            (r#""abc""#, "not a digest"),
            (r#"{"files": ["a"]}"#, "`workspace.files`"),
            (r#"{"files": {"a": 1}}"#, "a string"),
        ] {
            assert!(problem(text).contains(why), "{text}: {}", problem(text));
        }
        let both = Request::from_json(r#"{"workspace": {"files": {}}, "cwd": "/x"}"#);
        assert!(both.expect_err("it is refused").to_string().contains("a `workspace` and a `cwd`"));
    }

    #[test]
    fn a_workspace_reads_back_and_its_digest_does_not_depend_on_the_order() {
        let read = |text: &str| -> VirtualWorkspace { serde_json::from_str(text).expect("it is valid") };
        let one = read(r#"{"files": {"a": "1", "b/c": "2"}, "git": {"branch": "main"}, "cwd": "b"}"#);
        let other = read(r#"{"cwd": "b", "git": {"branch": "main"}, "files": {"b/c": "2", "a": "1"}}"#);
        assert_eq!(one, other);
        assert_eq!((one.path().as_str(), one.digest().len()), ("/workspace/b", 64));
        let written = serde_json::to_string(&one.reference()).expect("it is JSON");
        assert_eq!(read(&written), one);
        let known = read(&format!("\"{}\"", one.digest()));
        let bundle = Bundle::from_json(&one.bundle().expect("it has one").to_json()).expect("it is valid");
        assert_eq!(known.with_bundle(bundle).expect("it fits"), one);
    }
}
