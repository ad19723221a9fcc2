//! Candidates that do the same work, measured in turns, so that a slow moment of the machine hits all of them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use serde_json::json;

use crate::Options;

/// The length of a batch of short calls: long enough for the clock, short enough to fit between two interruptions.
const BATCH: Duration = Duration::from_micros(200);

type Work<'r> = Box<dyn FnMut() + 'r>;

/// One case of a row, with its candidates.
pub struct Race<'r> {
    row: &'r str,
    case: String,
    growth: Option<(&'r str, usize)>,
    candidates: Vec<(&'r str, Work<'r>)>,
}

impl<'r> Race<'r> {
    /// Creates a race without candidates.
    #[must_use]
    pub fn new(row: &'r str, case: impl Into<String>) -> Self {
        Self { row, case: case.into(), growth: None, candidates: Vec::new() }
    }

    /// Marks this case as one point of a curve.
    #[must_use]
    pub fn grows(mut self, curve: &'r str, size: usize) -> Self {
        self.growth = Some((curve, size));
        self
    }

    /// Adds a candidate. The result of `work` is computed and dropped.
    #[must_use]
    pub fn enter<T>(mut self, who: &'r str, mut work: impl FnMut() -> T + 'r) -> Self {
        self.candidates.push((who, Box::new(move || drop(black_box(work())))));
        self
    }

    /// For work of microseconds: the time of many short batches, of which the least counts.
    pub fn run_short(mut self, options: &Options) {
        let calls: Vec<u32> = self.candidates.iter_mut().map(|(_, work)| calls_per_batch(work)).collect();
        let samples = self.rounds(options.rounds, |index, work| {
            let start = Instant::now();
            for _ in 0..calls[index] {
                work();
            }
            nanoseconds(start.elapsed()) / f64::from(calls[index])
        });
        self.print("min", &samples);
    }

    /// For work of milliseconds: the CPU time of this process and its children, of which the median counts.
    pub fn run_long(mut self, options: &Options) {
        for (_, work) in &mut self.candidates {
            work();
        }
        let samples = self.rounds(options.rounds, |_, work| {
            let before = cpu_time();
            work();
            nanoseconds(cpu_time().saturating_sub(before))
        });
        self.print("median", &samples);
    }

    /// For single calls that differ, such as lookups of many keys: each call is a sample, and the median counts.
    pub fn run_each(mut self, calls: usize) {
        for (_, work) in &mut self.candidates {
            (0..calls / 10).for_each(|_| work());
        }
        let samples = self.rounds(calls, |_, work| {
            let start = Instant::now();
            work();
            nanoseconds(start.elapsed())
        });
        self.print("median", &samples);
    }

    fn rounds(&mut self, rounds: usize, time: impl Fn(usize, &mut dyn FnMut()) -> f64) -> Vec<Vec<f64>> {
        let mut samples = vec![Vec::with_capacity(rounds); self.candidates.len()];
        for _ in 0..rounds.max(1) {
            for (index, (_, work)) in self.candidates.iter_mut().enumerate() {
                samples[index].push(time(index, work));
            }
        }
        samples
    }

    fn print(&self, take: &'static str, samples: &[Vec<f64>]) {
        for ((who, _), samples) in self.candidates.iter().zip(samples) {
            let line = Line { row: self.row, case: &self.case, who, take };
            line.print(samples, self.growth);
        }
    }
}

/// One line of what a program prints; `docs/benchmarks.md` says what the fields mean.
struct Line<'l> {
    row: &'l str,
    case: &'l str,
    who: &'l str,
    take: &'static str,
}

impl Line<'_> {
    fn print(&self, samples: &[f64], growth: Option<(&str, usize)>) {
        let mut shape = json!({
            "row": self.row, "case": self.case, "who": self.who,
            "unit": "ns", "take": self.take, "samples": samples,
        });
        if let Some((curve, size)) = growth {
            shape["growth"] = json!(curve);
            shape["size"] = json!(size);
        }
        println!("{shape}");
    }
}

/// The number of calls that fills a batch.
fn calls_per_batch(work: &mut dyn FnMut()) -> u32 {
    let mut calls = 1;
    loop {
        let start = Instant::now();
        (0..calls).for_each(|_| work());
        if start.elapsed() >= BATCH || calls >= 1 << 16 {
            return calls;
        }
        calls *= 2;
    }
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

/// The CPU time of this process and its ended children.
fn cpu_time() -> Duration {
    let of = |usage: Usage| micros(usage.user_time()) + micros(usage.system_time());
    let asked = |who| getrusage(who).expect("the system tells what a process used");
    of(asked(UsageWho::RUSAGE_SELF)) + of(asked(UsageWho::RUSAGE_CHILDREN))
}

fn micros(time: TimeVal) -> Duration {
    Duration::from_micros(time.num_microseconds().unsigned_abs())
}
