//! `proem bundle`: makes a workspace of a directory, for a server that does not have it.

use clap::{Args, ValueHint};
use proem::inspect::bundle::{DirectoryBundle, bundle};
use proem::request::bundle::Bundle;
use proem::{Request, Tool};
use serde_json::json;

use crate::arguments::request::prompt_request;
use crate::arguments::{Format, NoteFlags, Output, PromptFlags};
use crate::failure::Failure;
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
