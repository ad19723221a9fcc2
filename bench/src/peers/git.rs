//! git without git.

use std::path::Path;

/// The branch, by gix.
#[must_use]
pub fn branch(tree: &Path) -> String {
    let repository = gix::open(tree).expect("it is a repository");
    let name = repository.head_name().expect("it has a head").expect("the head is a branch");
    name.shorten().to_string()
}
