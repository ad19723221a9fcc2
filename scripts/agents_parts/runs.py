"""Installs agents, and runs one in a tree against the recording server."""

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from agents_parts import marks
from agents_parts.layout import Layout
from agents_parts.stub import Stub

SECONDS = 180  # Most seconds for one run; a busy machine needs many.


def install(folder, name, recipe):
    """Installs the pinned version of a package into a folder of its own."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    wanted = f"{recipe['package']}@{recipe['version']}"
    env = {**os.environ, "PATH": f"{folder / 'node/node_modules/node/bin'}:{os.environ['PATH']}"}
    if recipe.get("tarball"):
        packed = subprocess.run(["npm", "pack", "--silent", wanted], cwd=place, env=env, stdout=subprocess.PIPE)
        archive = packed.stdout.decode().strip()
        if packed.returncode or subprocess.run(["tar", "xzf", archive], cwd=place).returncode:
            return False
        beside = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", ".", *recipe.get("beside", [])]
        return not recipe.get("beside") or subprocess.run(beside, cwd=place, env=env).returncode == 0
    (place / "package.json").write_text("{}\n")
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", wanted]
    return subprocess.run(command, cwd=place, env=env).returncode == 0


def filled(text, values):
    for key, value in values.items():
        text = text.replace("{" + key + "}", str(value))
    return text


def environment(folder, home, more):
    """Returns the variables of a run; nothing of the caller's reaches it but the path."""
    node = folder / "node/node_modules/node/bin"
    path = f"{node}:/usr/local/bin:/usr/bin:/bin"
    return {
        "PATH": path,
        "HOME": str(home),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "CI": "1",
        "NO_COLOR": "1",
        **more,
    }


def end(process):
    """Ends a run with all of its children: they are one session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait(process, stub, log, settle):
    """Waits until an agent has sent its first turn and ended, and not longer than needed."""
    limit, since = time.monotonic() + SECONDS, None
    while time.monotonic() < limit and process.poll() is None:
        is_sent = any("QBEGIN" in text or "hello" in text for body in stub.bodies for text in marks.strings(body))
        since = since or (time.monotonic() if is_sent else None)
        if since and time.monotonic() - since > settle:
            break
        time.sleep(0.05)
    end(process)
    return log.read_text(errors="replace")[-2000:]


def run(folder, recipe, case, keep=None):
    """Runs an agent in a tree; returns the marked parts of its request, the skills that it lists, and what it printed."""
    with (
        tempfile.TemporaryDirectory(prefix="agents-", dir=folder) as scratch,
        Stub(recipe["agent"] == "cursor") as stub,
    ):
        laid = Layout(case, scratch)
        laid.write()
        name = recipe["agent"]
        node = folder / "node/node_modules/node/bin/node"
        values = {
            "url": stub.url,
            "bin": folder / name,
            "scripts": pathlib.Path(__file__).parent,
            "home": laid.home,
            "node": node,
        }
        for path, text in recipe.get("files", {}).items():
            place = laid.home / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                place.write_text(filled(text, values))
        more = {key: filled(text, values) for key, text in recipe.get("env", {}).items()}
        log = pathlib.Path(scratch) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [filled(part, values) for part in recipe["start"]],
                cwd=laid.cwd, env={**environment(folder, laid.home, more), "PWD": str(laid.cwd)},
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
            printed = wait(process, stub, log, recipe.get("settle", 1.5))
        if keep is not None:
            keep.extend(stub.bodies)
        return found(stub.bodies, laid, printed)


def found(bodies, laid, printed):
    """Returns what the main request of a run has of its tree; None as parts if there was none."""
    if rules := next((body["rules"] for body in bodies if "rules" in body), None):
        kinds = {laid.unplaced(rule["path"]): rule["type"] for rule in rules}
        text = "\n".join(rule["content"] for rule in rules if rule["type"] == "global")
        return {"parts": marks.parts(laid.unplaced(text)), "skills": [], "printed": "", "kinds": kinds}
    texts = [laid.unplaced(marks.text_of(body)) for body in bodies]
    texts = [text for text in texts if "hello" in text]
    if not texts:
        return {"parts": None, "skills": [], "printed": printed}
    text = max(texts, key=lambda text: (text.count("QBEGIN"), len(text)))
    return {"parts": marks.parts(text), "skills": marks.skills(text), "printed": ""}
