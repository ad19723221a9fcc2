//! The command line of a benchmark program.

use std::path::{Path, PathBuf};

/// `proem-bench PROGRAM --data DIR [--rounds N] [--short] [ROW...]`.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder that the program `fixtures` wrote.
    pub data: PathBuf,
    /// The number of samples of each candidate.
    pub rounds: usize,
    /// Small sizes only.
    pub is_short: bool,
    rows: Vec<String>,
}

impl Options {
    /// Reads the command line of this process, and stops it if that makes no sense.
    #[must_use]
    pub fn of_process() -> Self {
        let mut options = Self { data: PathBuf::new(), rounds: 30, is_short: false, rows: Vec::new() };
        let mut words = std::env::args().skip(2);
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
            match word.as_str() {
                "--data" => options.data = value().into(),
                "--rounds" => options.rounds = value().parse().expect("--rounds takes a number"),
                "--short" => options.is_short = true,
                row if row.starts_with(['P', 'T']) => options.rows.push(word),
                _ => panic!("{word} means nothing here"),
            }
        }
        options
    }

    /// Tells whether a row is to be measured; without any on the command line, all are.
    #[must_use]
    pub fn wants(&self, row: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|wanted| wanted == row)
    }

    /// The same with fewer rounds, where one takes long.
    #[must_use]
    pub fn at_most(&self, rounds: usize) -> Self {
        Self { rounds: self.rounds.min(rounds), ..self.clone() }
    }

    /// A path below the data.
    #[must_use]
    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.data.join(below)
    }

    /// The sizes of this form: the short one leaves out what is larger than `most`.
    #[must_use]
    pub fn sizes(&self, all: &[usize], most: usize) -> Vec<usize> {
        all.iter().copied().filter(|size| !self.is_short || *size <= most).collect()
    }
}
