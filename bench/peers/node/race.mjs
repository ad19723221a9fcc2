// What all programs here share: the command line, and the same way of measuring as `bench/src/race.rs`.
const words = process.argv.slice(2);
const value = (name, otherwise) => (words.includes(name) ? words[words.indexOf(name) + 1] : otherwise);
const rows = words.filter((word) => /^P\d+$/.test(word));

export const data = value("--data", ".");
export const rounds = Number(value("--rounds", "30"));
export const isShort = words.includes("--short");
export const wants = (row) => rows.length === 0 || rows.includes(row);

const nanoseconds = () => Number(process.hrtime.bigint());

function batch(work, calls) {
  const start = nanoseconds();
  for (let call = 0; call < calls; call += 1) work();
  return (nanoseconds() - start) / calls;
}

function callsPerBatch(work) {
  let calls = 1;
  while (batch(work, calls) * calls < 200_000 && calls < 65_536) calls *= 2;
  return calls;
}

export function report(row, name, who, take, samples, more = {}) {
  console.log(JSON.stringify({ row, case: name, who, unit: "ns", take, samples, ...more }));
}

/** Work of microseconds: the least of many short batches, after the compiler has had its time. */
export function runShort(row, name, who, work, most = rounds, more = {}) {
  const until = nanoseconds() + 3e8;
  while (nanoseconds() < until) work();
  const calls = callsPerBatch(work);
  const samples = Array.from({ length: Math.min(rounds, most) }, () => batch(work, calls));
  report(row, name, who, "min", samples, more);
}

/** Work of milliseconds: the median of the CPU time. */
export async function runLong(row, name, who, work, most = rounds, more = {}) {
  for (let call = 0; call < 3; call += 1) await work();
  const samples = [];
  for (let call = 0; call < Math.min(rounds, most); call += 1) {
    const before = process.cpuUsage();
    await work();
    const used = process.cpuUsage(before);
    samples.push((used.user + used.system) * 1000);
  }
  report(row, name, who, "median", samples, more);
}
