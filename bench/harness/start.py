"""From process start to the finished prompt: the CPU time of whole processes, in turns."""

import os
import pathlib
import shutil
import subprocess
import tempfile

HELLO = 'fn main() { println!("hello"); }'
CASE = "start to prompt, 12 levels, 3 files, 50 skills"
AS_BUILT = "proem, in target/release"


def environment(**more):
    """This process's own, without what could change a prompt."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PROEM_", "XDG_", "OTEL_", "PI_"))
    }
    return kept | {name: str(value) for name, value in more.items()}


def measure(setting):
    root = setting.data / "start"
    deep = root.joinpath("tree", *(f"level-{level}" for level in range(12)))
    build = ["build", "--profile", "layers"]
    rounds = 20 if setting.is_short else 60 * setting.turns
    with tempfile.TemporaryDirectory(dir=setting.data) as name:
        folder = pathlib.Path(name)
        hello, proem = (installed(program, folder) for program in [compile_hello(folder), setting.proem])
        candidates = {
            "floor": ([hello], 1),
            "proem": ([proem, *build], 1),
            AS_BUILT: ([setting.proem, *build], 1),
            "proem --version": ([proem, "--version"], 1),
        }
        if not setting.is_short:
            candidates["node -e 0"] = (["node", "-e", "0"], 20)
        if setting.peers.node:
            candidates["pi"] = (pi(setting), 20)
        env = environment(HOME=root / "home", PI_OFFLINE=1, ANTHROPIC_API_KEY="none")
        for who in ["proem", AS_BUILT, "pi"]:
            if who in candidates:
                check(who, candidates[who][0], deep, env)
        samples: dict[str, list[float]] = {who: [] for who in candidates}
        for number in range(rounds):
            for who, (command, every) in candidates.items():
                if number % every == 0:
                    samples[who].append(cpu_of(command, deep, env))
    return [
        {"row": "P5", "case": CASE, "who": who, "unit": "ns", "take": "median", "samples": found}
        for who, found in samples.items()
    ]


def compile_hello(folder):
    (folder / "hello.rs").write_text(HELLO)
    subprocess.run(["rustc", "-O", "-o", folder / "hello", folder / "hello.rs"], check=True)
    return folder / "hello"


def installed(program, folder):
    """A program that is in memory because it was read from disk, like node and every other that was not linked a moment
    ago: what a linker has written lies in memory page by page, and takes longer to start. A file system without a disk
    keeps what was written."""
    copy = folder / f"installed-{program.name}"
    shutil.copy(program, copy)
    with open(copy, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return copy


def pi(setting):
    """The real program; an extension prints the prompt and ends it before anything is sent."""
    package = setting.peers.node / "node_modules" / "@earendil-works" / "pi-coding-agent"
    extension = pathlib.Path(__file__).parent.parent / "peers" / "node" / "pi-prompt.mjs"
    return ["node", package / "dist" / "cli.js", "--no-session", "-e", extension, "-p", "hello"]


def check(who, command, cwd, env):
    """All must find the same: a faster wrong answer does not count."""
    text = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    ).stdout
    assert text.count("<location>") == 50 and text.count("Prefer small changes, and say why.") == 180, (
        f"{who}: {text[-2000:]}"
    )


def cpu_of(command, cwd, env):
    """CPU nanoseconds, user and system, of one run."""
    process = subprocess.Popen(
        list(map(str, command)),
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{command[0]} ended with {process.returncode}"
    return (usage.ru_utime + usage.ru_stime) * 1e9
