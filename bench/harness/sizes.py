"""The program, its cold build and its memory, beside a minimal program with the same large libraries."""
import contextlib, pathlib, re, resource, tempfile, time

import least, serve

CACHE_BYTES = 64 << 20
ALL_LIBRARIES = "all libraries, each called once"


def measure(setting):
    program = None if setting.is_short else least.build()
    lines = [of("size of the program", "proem", "bytes", setting.proem.stat().st_size)]
    if program:
        libraries = least.build(least.LIBRARIES)
        sizes = [("floor", program), (ALL_LIBRARIES, libraries)]
        lines += [of("size of the program", who, "bytes", path.stat().st_size) for who, path in sizes]
        lines += cold_builds()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        lines += memory(setting, program, folder, stack)
    return lines


def of(case, who, unit, value):
    return {"row": "P18", "case": case, "who": who, "unit": unit, "take": "median", "samples": [value]}


def cold_builds():
    """CPU seconds from nothing but downloaded sources to the program."""
    found = []
    for who, package in [("floor", least.PACKAGE), (ALL_LIBRARIES, least.LIBRARIES), ("proem", least.BENCH.parent)]:
        with tempfile.TemporaryDirectory() as target:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            least.cargo(package, target)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        found.append(of("cold build, CPU", who, "ns", used * 1e9))
    return found


def memory(setting, program, folder, stack):
    data = setting.data / "serve"
    command = [setting.proem, "serve", "--listen", "127.0.0.1:0", "--store", data / "distinct.db", "--workspace", data]
    server = serve.launch(command, data, data / "home", folder / "log", stack)
    case = "memory of an idle server"
    idle = resident(server)
    lines = [of(case, "proem", "bytes", idle)]
    others = {"floor": program and [program], "node": setting.node("server"), "FastAPI": setting.python("server")}
    (folder / "answer").write_text('{"carriers": {"system": ""}}')
    for who, command in others.items():
        if command:
            other = serve.launch([*command, folder / "answer"], folder, folder, folder / f"{who}.log", stack)
            time.sleep(1)
            lines.append(of(case, who, "bytes", resident(other)))
    # Every conversation at least once, each with a prompt of its own: more than the cache may hold.
    (folder / "distinct.lua").write_text(serve.MANY % 6_000)
    candidate = serve.Candidate("", "proem", server, "/", "distinct.lua")
    serve.drive(candidate, folder, 5 if setting.is_short else 10)
    case = "memory of a server with a full cache, less an idle one's"
    return [*lines, of(case, "proem", "bytes", resident(server) - idle), of(case, "budget of the cache", "bytes", CACHE_BYTES)]


def resident(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024
