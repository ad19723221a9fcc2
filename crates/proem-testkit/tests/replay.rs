//! Every input of the fuzzers' corpus, through its property: a fault that a fuzzer found stays mended.

use std::fs;

use proem_testkit::project_root;

#[expect(unreachable_pub, reason = "the fuzzers have them as a library")]
#[path = "../../../fuzz/src/lib.rs"]
mod properties;

#[test]
fn the_corpus_holds() {
    for (name, property) in properties::ALL {
        let inputs = fs::read_dir(project_root().join("fuzz/corpus").join(name)).unwrap();
        let mut count = 0;
        for entry in inputs {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            property(&fs::read(&path).unwrap());
            count += 1;
        }
        assert!(count > 0, "{name} has no input");
    }
}
