"""Compares what an agent sent of a tree with what `proem build` gives there."""

import collections
import dataclasses
import itertools
import json
import subprocess
import tempfile

from agents_parts import marks
from agents_parts.layout import Layout

HEAD = """\
| agent | version | trees | files | same files | and order | and bytes | rules of a folder sorted | skills |
|---|---|--:|--:|--:|--:|--:|--:|--:|"""


# Agents whose server puts the parts in order: what their client sends has none.
UNORDERED = ("cursor",)
# Folders of rules that an agent reads in the order of the file system, which is another one on every machine.
AS_LISTED = {"claude-code": "/.claude/rules/"}


@dataclasses.dataclass
class Verdict:
    """The comparison of one tree; `mine` is what proem gives."""

    name: str
    case: dict
    parts: list
    mine: list
    skills: list
    my_skills: list

    @property
    def has_files(self):
        return sorted(map(first, self.parts)) == sorted(map(first, self.mine))

    @property
    def has_order(self):
        return [first(part) for part in self.parts] == [first(part) for part in self.mine]

    @property
    def has_bytes(self):
        return self.parts == self.mine

    @property
    def has_bytes_when_sorted(self):
        """Compares with the rules of each folder in order of their paths."""
        return self.sorted(self.parts) == self.sorted(self.mine)

    def sorted(self, parts):
        folder, paths = AS_LISTED.get(self.name), paths_of(self.case)

        def group(part):
            path = "/" + paths.get(first(part), "").partition(":")[2]
            return path.partition(folder)[0] if folder and folder in path else None

        kept = []
        for own, run in itertools.groupby(parts, group):
            items = list(run)
            kept += items if own is None else sorted(items)
        return kept

    @property
    def has_skills(self):
        return sorted(self.skills) == sorted(self.my_skills)

    @property
    def is_equal(self):
        return self.has_bytes and self.has_skills


def first(part):
    """Returns the number of the first mark."""
    mark = marks.MARK.search(part)
    return mark[2] if mark else ""


def build(proem, name, case):
    """Returns the marked parts and the skills of `proem build`."""
    with tempfile.TemporaryDirectory(prefix="agents-") as scratch:
        laid = Layout(case, scratch)
        laid.write()
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(laid.home), "TZ": "UTC"}
        command = [proem, "build", "-p", name, "--format", "json", "--cwd", str(laid.cwd)]
        ran = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True)
        if ran.returncode:
            raise RuntimeError(f"{case['name']}: {ran.stderr.decode(errors='replace')}")
        carriers = json.loads(ran.stdout)["carriers"]
        order = [key for key in ("system", "developer", "first_user") if key in carriers]
        text = laid.unplaced("\n".join(carriers[key] for key in order))
        return marks.parts(text), marks.skills(text)


def verdict(proem, name, line):
    """Judges one recorded line; a tree that an agent refused has no parts."""
    mine, skills = build(proem, name, line["case"])
    parts = line["parts"]
    if name in UNORDERED:
        parts, mine = parts and sorted(parts), sorted(mine)
    return Verdict(name, line["case"], ["QBEGIN0Q refused"] if parts is None else parts, mine, line["skills"], skills)


def row(name, version, verdicts):
    count: collections.Counter[str] = collections.Counter()
    for one in verdicts:
        count["files"] += len(one.parts)
        for key in ("has_files", "has_order", "has_bytes", "has_bytes_when_sorted", "has_skills"):
            count[key] += getattr(one, key)
    keys = ("files", "has_files", "has_order", "has_bytes", "has_bytes_when_sorted", "has_skills")
    cells = [count[key] for key in keys]
    return f"| {name} | {version} | {len(verdicts)} | " + " | ".join(map(str, cells)) + " |"


def note(path, name, label, version, date, verdicts):
    """Writes the counts of an agent under a label, `before` or `after`, for the documentation."""
    known = json.loads(path.read_text()) if path.exists() else []
    own = next((one for one in known if one["agent"] == name), None)
    if own is None:
        own = {"agent": name}
        known.append(own)
    own.update(version=version, as_of=date, trees=len(verdicts))
    order = None if name in UNORDERED else sum(one.has_order for one in verdicts)
    own[label] = {
        "files": sum(one.has_files for one in verdicts),
        "order": order,
        "bytes": sum(one.has_bytes for one in verdicts),
        **({"sorted": sum(one.has_bytes_when_sorted for one in verdicts)} if name in AS_LISTED else {}),
        "skills": sum(one.has_skills for one in verdicts),
    }
    known.sort(key=lambda one: one["agent"])
    path.write_text("[\n" + ",\n".join(json.dumps(one) for one in known) + "\n]\n")


def paths_of(case):
    """Returns the path of each mark."""
    found: dict[str, str] = {}
    for where in ("tree", "home", "outside"):
        for path, content in case.get(where, {}).items():
            is_hex = isinstance(content, dict) and "hex" in content
            text = bytes.fromhex(content["hex"]).decode(errors="replace") if is_hex else content
            if isinstance(text, str) and (mark := marks.MARK.search(text)):
                found.setdefault(mark[2], f"{where}:{path}")
            if isinstance(text, str) and (mark := marks.SKILL.search(text)):
                found.setdefault(f"s{mark[1]}", f"{where}:{path}")
    return found


def report(name, line, verdict):
    """Describes a difference for a person."""
    case, paths = line["case"], paths_of(line["case"])
    lines = [f"== {name} {case['name']} cwd={case['cwd']!r} git={case['git']} nested={case.get('nested', False)}"]
    if line["parts"] is None:
        return "\n".join([*lines, "  refused: " + line["printed"][-300:]])
    if not verdict.has_order:
        lines.append(f"  agent: {[paths.get(first(part)) for part in verdict.parts]}")
        lines.append(f"  proem: {[paths.get(first(part)) for part in verdict.mine]}")
    elif not verdict.has_bytes:
        for theirs, mine in zip(verdict.parts, verdict.mine):
            if theirs != mine:
                at = next((at for at, (a, b) in enumerate(zip(theirs, mine)) if a != b), min(len(theirs), len(mine)))
                lines.append(
                    f"  {paths.get(first(theirs))} at {at}:\n   agent {theirs[max(0, at - 40) : at + 90]!r}\n   proem {mine[max(0, at - 40) : at + 90]!r}"
                )
    if not verdict.has_skills:
        lines.append(f"  skills agent: {[paths.get(f's{number}') for number in verdict.skills]}")
        lines.append(f"  skills proem: {[paths.get(f's{number}') for number in verdict.my_skills]}")
    return "\n".join(lines)


def renew(case, seen, version, date):
    """Writes what an agent sent into a case; a run that failed leaves the case as it is."""
    if seen["parts"] is None:
        print(f"{case['name']}: no request: {seen['printed'][-300:]}")
        return
    case["marked"], case["skills"], case["seen"] = seen["parts"], seen["skills"], f"{version}, {date}"


def write(path, cases):
    """Writes the cases of an agent, one to a line."""
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    path.write_text(f"[\n{lines}\n]\n")


def take(path, lines, version, options):
    """Adds recorded trees: those that differ, and the first ones that are equal and small."""
    known = json.loads(path.read_text())
    names, kept = {case["name"] for case in known}, 0
    for line in lines:
        case = line["case"]
        if line["parts"] is None or case["name"] in names or len(json.dumps(case)) > 6000 or kept == options.keep:
            continue
        if verdict(options.proem, path.stem, line).is_equal and len(line["parts"]) > 2:
            renew(case, line, version, options.date)
            known.append(case)
            kept += 1
    write(path, known)
