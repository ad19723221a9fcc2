"""Random trees of instruction files. A seed and the names of an agent give the same tree on every machine."""

import random
import unicodedata

from agents_parts import marks

FOLDERS = ("src", "docs", "pkg", "web app", "a&b", "Zoë", "x.y", "node_modules", "lib", "Test")
IMPORTED = (
    "doc.md",
    "docs/a.md",
    "docs/b.txt",
    "docs/deep/c.md",
    "README.md",
    "docs/d.markdown",
    "docs/e.mdc",
    "docs/f.example",
    "notes/g.json",
    "docs/sp ace.md",
)
SPELLINGS = ("@{}", "see @{} first", "@./{}", "- @{}", "> @{}", "# @{}", "**@{}**", "*@{}*", "_@{}_", "(@{})", '"@{}"', "'@{}'", "[@{}]", "{{@{}}}", "<@{}>", "<p>@{}</p>", "`@{}`",
             "```\n@{}\n```", "~~~\n@{}\n~~~", "\n    @{}", "x@{}", "@{}.", "@{},", "@{}:", "@{}#part", "| @{} | x |", "see\t@{}", "<!-- @{} -->", "a @{} and @{}", "@{};", "@{}!")  # fmt: skip
PATHS = ("src/**", "'**/*'", "'*'", "'**/**'", "[]", "", '["*.ts", "src/*.js"]', "'**'")
BIG = (32767, 32768, 32769, 131071, 131072, 131073, 200000)


class Tree:
    """The making of one tree."""

    def __init__(self, names, seed):
        self.dice, self.names, self.count = random.Random(f"{names['agent']} {seed}"), names, 0
        self.case: dict = {"name": f"random-{seed}", "cwd": "", "git": {}, "tree": {}, "home": {}, "outside": {}}
        self.skills = 0

    def chance(self, percent):
        return self.dice.random() * 100 < percent

    def make(self):
        dice, case = self.dice, self.case
        depth = dice.choice((0, 0, 1, 1, 2, 3))
        folders = [""]
        for _ in range(depth):
            folders.append((folders[-1] + "/" + dice.choice(FOLDERS)).lstrip("/"))
        case["cwd"] = folders[-1]
        if self.chance(20):
            case["nested"] = True
        kind = dice.choice(("init", "init", "init", "dir", "file", None))
        if kind:
            case["git"][dice.choice(folders[:2])] = kind
            if self.chance(8):
                case["git"][folders[-1]] = "init"
        for folder in folders:
            for name in self.names["project"]:
                if self.chance(38 if folder in ("", folders[-1]) else 25):
                    self.add("tree", folder, name)
        for name in self.names["home"]:
            if self.chance(40):
                self.add("home", "", name)
        if self.chance(15):
            self.add("outside", "", dice.choice(self.names["project"]))
        if self.chance(25):
            beside = dice.choice(("below", "beside/deep", folders[-1] + "/inner"))
            self.add("tree", beside.lstrip("/"), dice.choice(self.names["project"]))
        self.imports(folders)
        if self.chance(25):
            self.ignores(folders)
        if self.chance(30):
            self.add_skills(folders)
        return case

    def add(self, where, folder, name):
        """Adds a file of a name, or of a pattern such as `rules/**/*.md`."""
        if "**/*" in name:
            below, ending = name.split("**/*")
            for _ in range(self.dice.choice((1, 1, 2))):
                middle = self.dice.choice(("", "", "x/", "y/z/"))
                path = f"{below}{middle}{self.dice.choice('abcdk')}{ending}"
                self.file(where, f"{folder}/{path}".lstrip("/"), self.front_matter())
            return
        if self.chance(self.names.get("case", 3)):
            head, _, last = name.rpartition("/")
            last = self.dice.choice((last.lower(), last.upper(), last.capitalize()))
            name = f"{head}/{last}".lstrip("/")
        self.file(where, f"{folder}/{name}".lstrip("/"), "")

    def front_matter(self):
        keys, dice = self.names.get("keys", []), self.dice
        if not keys or self.chance(35):
            return ""
        lines = []
        for key in keys:
            if self.chance(60):
                value = dice.choice(("true", "false")) if key == "alwaysApply" else dice.choice(PATHS)
                lines.append(f"{key}: {'About this' if key == 'description' else value}".rstrip())
        return "---\n" + "".join(line + "\n" for line in lines) + "---\n"

    def file(self, where, path, head):
        dice, files = self.dice, self.case[where]
        if path in files or any(other.startswith(path + "/") or path.startswith(other + "/") for other in files):
            return
        texts = [text for text in files.values() if isinstance(text, str) and "QBEGIN" in text and len(text) < 5000]
        sort = dice.randrange(100)
        if sort < 3:
            files[path] = dice.choice(("", "", "\n\n", "  \n"))
        elif sort < 4:
            files[path] = {"dir": True}
        elif sort < 7 and texts:
            files[path] = dice.choice(texts)
        elif sort < 10 and files:
            target = dice.choice(sorted(files))
            place = {"tree": "{{root}}", "home": "{{home}}", "outside": "{{scratch}}"}[where]
            files[path] = {"link": f"{place}/{target}"} if target != path else ""
        elif sort < 12:
            self.count += 1
            text = f"{marks.begin(self.count)} bad ".encode() + b"\xe9\xff" + f" {marks.end(self.count)}\n".encode()
            files[path] = {"hex": text.hex()}
        else:
            files[path] = self.text(head, sort)

    def text(self, head, sort):
        self.count += 1
        number, dice = self.count, self.dice
        lines = [f"Line {dice.randrange(1000)} of {number}."]
        if self.chance(self.names.get("imports", 10)):
            for _ in range(dice.choice((1, 1, 2, 3))):
                spelling, path = dice.choice(SPELLINGS), self.reference()
                lines.append(spelling.replace("{}", path).replace("{{", "{").replace("}}", "}"))
        if self.chance(12):
            lines.append(
                dice.choice(("<!-- a comment -->", "a <!-- inline --> b", "<!-- two\nlines -->\n", "- item <!-- c -->"))
            )
        if self.chance(6):
            lines.append(unicodedata.normalize("NFD", "café Ångström"))
        if self.chance(3):
            lines.append(dice.choice(("zero\u200bwidth", "tag\U000e0041\U000e0042", "soft\u00adhyphen", "\u202eover")))
        if self.chance(4):
            lines.append("\n\n\n")
        dice.shuffle(lines)
        if sort >= 97:
            size = dice.choice(BIG)
            lines.append(("filler " * (size // 7 + 1))[: max(0, size - len("\n".join(lines)) - 40)])
        text = f"{head}{marks.begin(number)}\n" + "\n".join(lines) + f"\n{marks.end(number)}\n"
        if self.chance(5):
            text = text.replace("\n", "\r\n")
        if self.chance(4):
            text = "\ufeff" + text
        return text + dice.choice(("", "", "\n", "  \n"))

    def reference(self):
        odd = (
            "missing.md",
            "~/notes.md",
            "../up.md",
            "docs",
            "{{root}}/doc.md",
            "user@example.com",
            "docs/sp\\ ace.md",
        )
        return self.dice.choice(odd) if self.chance(15) else self.dice.choice(IMPORTED)

    def imports(self, folders):
        if not any("@" in text for files in self.files() for text in files.values() if isinstance(text, str)):
            return
        for folder in {folders[0], folders[-1]}:
            for name in IMPORTED:
                if self.chance(45):
                    self.file("tree", f"{folder}/{name}".lstrip("/"), "")
        for path, where in (("notes.md", "home"), ("docs/a.md", "home"), ("up.md", "outside")):
            if self.chance(40):
                self.file(where, path, "")

    def files(self):
        return self.case["tree"], self.case["home"], self.case["outside"]

    def ignores(self, folders):
        patterns = ("docs/", "/docs", "docs/a.md", "*.txt", "AGENTS.md", "!docs/a.md", "doc.md", ".github")
        name = self.dice.choice((".gitignore", ".gitignore", ".ignore", ".cursorignore"))
        chosen = self.dice.sample(patterns, self.dice.choice((1, 2)))
        path = f"{self.dice.choice(folders)}/{name}".lstrip("/")
        self.case["tree"].setdefault(path, "".join(f"{pattern}\n" for pattern in chosen))

    def add_skills(self, folders):
        for _ in range(self.dice.choice((1, 2, 3))):
            where = self.dice.choice(("tree", "tree", "home"))
            folder = self.dice.choice(folders) if where == "tree" else ""
            place = self.dice.choice(self.names["skills"][where])
            name = f"skill-{self.dice.choice('abcdef')}"
            path = f"{folder}/{place}/{name}/SKILL.md".lstrip("/")
            files = self.case[where]
            if path in files or any(path.startswith(other + "/") for other in files):
                continue
            self.skills += 1
            lines = [f"name: {name}", f"description: About QSKILL{self.skills}Q things"]
            extra = self.dice.choice(
                ("", "", "", "disable-model-invocation: true", "user-invocable: false", "allowed-tools: Read")
            )
            lines += [extra] if extra else []
            files[path] = "---\n" + "".join(f"{line}\n" for line in lines) + "---\nBody QBODY.\n"


def tree(names, seed):
    """Returns the tree of a seed, as a case."""
    return Tree(names, seed).make()
