#!/usr/bin/env python3
"""Measures what a later turn costs the server beside a bare axum handler with the same answer, in one run.

CPU is the server process's own, as the system counts it: wall time would measure the client, too. Rounds alternate;
the table has medians. `--requests N` for each round, `--rounds N`.
"""
import argparse, json, os, pathlib, re, statistics, subprocess, tempfile, time, urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "delivery.md").read_text()[:16_000]


def start(command, cwd, log):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PROEM_", "XDG_", "OTEL_"))}
    process = subprocess.Popen(command, cwd=cwd, env=kept | {"HOME": str(cwd)}, stdout=open(log, "w"), stderr=subprocess.STDOUT)
    while process.poll() is None:
        found = re.search(r"listening on http://(127\.0\.0\.1:\d+)", pathlib.Path(log).read_text())
        if found:
            return process, found[1]
        time.sleep(0.01)
    raise SystemExit(pathlib.Path(log).read_text())


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def drive(process, url, script, seconds):
    """Asks for a while on four connections; returns CPU microseconds and answers a second."""
    before = cpu_seconds(process)
    done = subprocess.run(["wrk", "-t1", "-c4", f"-d{seconds}s", "-s", script, url], capture_output=True, text=True, check=True)
    requests = int(re.search(r"(\d+) requests in", done.stdout)[1])
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", done.stdout)
    assert not refused, done.stdout
    return (cpu_seconds(process) - before) / requests * 1e6, float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--proem", default=ROOT / "target/release/proem")
    parser.add_argument("--bare", default=ROOT / "target/release/examples/bare_axum")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        body = json.dumps({"profile": "template", "template": TEXT})
        (folder / "turn.lua").write_text('wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = "{}"\n')
        (folder / "get.lua").write_text("")
        served, address = start([given.proem, "serve", "--listen", "127.0.0.1:0", "--store", folder / "store.db"], folder, folder / "log")
        bare = None
        try:
            url = f"http://{address}/conversations/c/turn"
            def turn(text):
                return urllib.request.urlopen(urllib.request.Request(url, text.encode(), {"Content-Type": "application/json"}))
            turn(body).read()
            answer = turn("{}").read()
            (folder / "answer").write_bytes(answer)
            tag = urllib.request.urlopen(f"http://{address}/conversations/c").headers["ETag"]
            (folder / "known.lua").write_text(f"wrk.headers['If-None-Match'] = '{tag}'\n")
            bare, floor = start([given.bare, folder / "answer"], folder, folder / "bare")
            rows = {
                "bare axum, the same bytes": (bare, f"http://{floor}/", "turn.lua"),
                "a later turn, from memory": (served, url, "turn.lua"),
                "a conversation that did not change (304)": (served, f"http://{address}/conversations/c", "known.lua"),
                "`/healthz`": (served, f"http://{address}/healthz", "get.lua"),
            }
            found = {name: [] for name in rows}
            for _ in range(given.rounds):
                for name, (process, target, script) in rows.items():
                    found[name].append(drive(process, target, folder / script, given.seconds))
            print(f"Answers of {len(answer):,} bytes; four kept connections, {given.rounds} rounds of {given.seconds} s each, medians.\n")
            print("| | CPU of the server | against bare axum | answers/s |\n|---|--:|--:|--:|")
            first = statistics.median(cpu for cpu, _ in found["bare axum, the same bytes"])
            for name, values in found.items():
                cpu, rate = (statistics.median(column) for column in zip(*values))
                print(f"| {name} | {cpu:.1f} µs | {cpu / first:.2f}× | {rate:,.0f} |")
        finally:
            for process in filter(None, [served, bare]):
                process.terminate()
                process.wait()


main()
