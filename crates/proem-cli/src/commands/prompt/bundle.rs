//! `proem bundle`: makes a workspace of a directory, for a server that does not have it.

use clap::{Args, ValueHint};
use hyper::Method;
use proem::inspect::bundle::{DirectoryBundle, bundle};
use proem::request::RequestUpdate;
use proem::request::bundle::Bundle;
use proem::{Request, Tool};
use serde_json::json;

use crate::arguments::request::prompt_request;
use crate::arguments::{Format, NoteFlags, Output, PromptFlags};
use crate::failure::Failure;
use crate::notes::print_note;
use crate::remote::{Remote, encoded};
use crate::table::{Cell, Column, Table};
use crate::terminal::{output_columns, print, print_raw, visible, visible_line};

/// List the files that a prompt is built from, or print them as a workspace
///
/// With `--format json` prints the value of the request field `workspace`: the files that the profile reads below the
/// directory, and the branch, status and changes that git reports.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BundleArguments {
    /// Directory [default: the current directory]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "cwd")]
    directory: Option<String>,
    #[command(flatten)]
    prompt: PromptFlags,
    #[command(flatten)]
    output: Output<Format>,
    #[command(flatten)]
    notes: NoteFlags,
}

const EXAMPLES: &str = "\
Examples:
  proem bundle                 List the files that the prompt of this directory needs
  proem bundle --format json > workspace.json
                               Write them as a workspace
  curl -d @workspace.json -H 'content-type: application/json' http://127.0.0.1:7717/workspaces
                               Send it to a server";

pub(crate) fn run(arguments: &BundleArguments) -> Result<(), Failure> {
    let mut request = prompt_request(&arguments.prompt)?;
    if arguments.directory.is_some() {
        request.cwd.clone_from(&arguments.directory);
    }
    let DirectoryBundle { bundle, left_out } = bundle_of(&request)?;
    for (path, why) in &left_out {
        arguments.notes.print_always(Some(&visible_line(&format!("{path} is not part of it: {why}"))));
    }
    if arguments.output.format() == Format::Json {
        return print_raw(&format!("{}\n", bundle.to_json()));
    }
    print(&list(&bundle))
}

/// Makes the bundle of a request's directory. Skills are read although the request names no tools.
pub(crate) fn bundle_of(request: &Request) -> Result<DirectoryBundle, Failure> {
    let reading = |request: &Request| {
        let read = Tool { name: "read".to_owned(), ..Tool::default() };
        let tools = request.tools.clone().map(|tools| tools.into_iter().chain([read]).collect());
        Request { tools, ..request.clone() }
    };
    Ok(bundle(&reading(request))?)
}

/// Sends an update to a route of a conversation. If it names a directory that the server does not have, its files are sent.
pub(crate) fn send_with_files(
    remote: &Remote,
    (id, route): (&str, &str),
    update: RequestUpdate,
) -> Result<String, Failure> {
    let path = format!("/conversations/{}", encoded(id));
    // A relative directory is one of this machine.
    let cwd = update.given().cwd.as_deref().and_then(|cwd| std::path::absolute(cwd).ok());
    let cwd = cwd.and_then(|cwd| cwd.to_str().map(str::to_owned));
    let has_place = cwd.is_some() && update.given().workspace.is_none();
    let update = cwd.into_iter().fold(update, RequestUpdate::with_cwd);
    match remote.answer(Method::POST, &format!("{path}/{route}"), update.to_json()?) {
        Err(Failure::Refused { code, .. })
            if has_place && matches!(code.as_str(), "no_directory" | "cwd_not_allowed") =>
        {
            let shown = remote.get(&path).unwrap_or_default();
            let epochs = shown["epochs"].as_array().into_iter().flatten();
            let current = epochs.into_iter().find(|epoch| epoch["epoch"] == shown["epoch"]);
            let profile = current.and_then(|epoch| epoch["profile"].as_str());
            let update = with_files(update, profile)?;
            remote.answer(Method::POST, &format!("{path}/{route}"), update.to_json()?)
        }
        answer => answer,
    }
}

/// Replaces the directory of an update by the files in it that its profile reads, or else `profile`, that of the
/// conversation.
fn with_files(update: RequestUpdate, profile: Option<&str>) -> Result<RequestUpdate, Failure> {
    let mut request = update.given().clone();
    request.profile = request.profile.or_else(|| profile.map(str::to_owned));
    let DirectoryBundle { bundle, left_out } = bundle_of(&request)?;
    let bytes: usize = bundle.files().values().map(String::len).sum();
    let directory = request.cwd.unwrap_or_default();
    let count = bundle.files().len();
    print_note(&visible_line(&format!(
        "the server has no directory {directory}: {count} files of it are sent, {bytes} bytes"
    )));
    for (path, why) in left_out {
        print_note(&visible_line(&format!("{path} is not sent: {why}")));
    }
    Ok(update.with_workspace(bundle.into()))
}

fn list(bundle: &Bundle) -> String {
    let rows = bundle
        .files()
        .iter()
        .map(|(path, text)| vec![Cell::plain(visible(path)), Cell::plain(text.len().to_string()).right()]);
    let table =
        Table::new([Column::text("file"), Column::number("bytes")]).with(rows).print(output_columns());
    let git = bundle.git().map_or_else(|| json!(null), |git| json!(git.branch));
    format!("{table}\nbranch: {}\ndigest: {}\n", visible_line(&git.to_string()), bundle.digest())
}
