"""Finds the marked parts of a request: each file of a tree has a mark at its beginning and at its end."""

import re

MARK = re.compile(r"Q(BEGIN|END)(\d+)Q")
SKILL = re.compile(r"QSKILL(\d+)Q")
# What follows a file that an agent cut off before its end mark.
ENDS = re.compile(r"\n\n--- project-doc ---\n\n|\n</INSTRUCTIONS>")


def begin(number):
    return f"QBEGIN{number}Q"


def end(number):
    return f"QEND{number}Q"


def parts(text):
    """Returns the outermost marked parts of a text, in order; a part without an end goes up to what follows a file."""
    found: list[str] = []
    open_marks: list[str] = []
    start = 0
    at = 0
    while mark := MARK.search(text, at):
        at = mark.end()
        if mark[1] == "BEGIN":
            start = mark.start() if not open_marks else start
            open_marks.append(mark[2])
        elif open_marks and mark[2] in open_marks:
            while open_marks.pop() != mark[2]:
                pass
        if open_marks and (cut := ENDS.search(text, at)) and not MARK.search(text, at, cut.start()):
            found.append(text[start : cut.start()])
            open_marks, at = [], cut.end()
        elif mark[1] == "END" and not open_marks:
            found.append(text[start:at])
    return found


def skills(text):
    """Returns the numbers of the skills that a text lists, in order."""
    return [int(number) for number in SKILL.findall(text)]


def strings(value):
    """Yields all texts of a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings(one)


def text_of(body):
    """Returns the prompt of a request: what stands before the messages, then the messages. Tools stand last."""
    keys = ("system", "systemInstruction", "instructions", "messages", "input", "contents", "tools")
    return "\n".join("\n".join(strings(body[key])) for key in keys if key in body)
