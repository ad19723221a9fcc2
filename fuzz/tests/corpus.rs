//! Every input of the corpus, through its property: what a fuzzer found once stays found.

use std::fs;
use std::path::Path;

#[test]
fn the_corpus_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, property) in proem_fuzz::ALL {
        let mut count = 0;
        for entry in fs::read_dir(corpus.join(name)).expect("every property has a corpus") {
            let path = entry.expect("it can be listed").path();
            let input = fs::read(&path).expect("it can be read");
            println!("{}", path.display());
            property(&input);
            count += 1;
        }
        assert!(count > 0, "{name} has no input");
    }
}
