"""Lays out a tree of files, in the form of the cases in corpus/agents."""

import os
import pathlib
import subprocess


class Layout:
    """The places of one tree below a folder. With `nested` the project lies in the home directory."""

    def __init__(self, case, folder):
        self.case, self.scratch = case, pathlib.Path(folder).resolve() / "scratch"
        self.root = self.scratch / "tree"
        self.home = self.scratch if case.get("nested") else self.scratch.parent / "home"
        self.cwd = self.root / case["cwd"]

    def placed(self, text):
        for name, path in (("root", self.root), ("home", self.home), ("scratch", self.scratch)):
            text = text.replace("{{" + name + "}}", str(path))
        return text

    def unplaced(self, text):
        """Replaces the places in a text by their names."""
        for name, path in (("root", self.root), ("home", self.home), ("scratch", self.scratch)):
            text = text.replace(str(path), "{{" + name + "}}")
        return text

    def write(self):
        is_link = any(self.case["cwd"].startswith(name) for name in self.case["tree"])
        (self.root if is_link else self.cwd).mkdir(parents=True, exist_ok=True)
        self.home.mkdir(exist_ok=True)
        self.files(self.root, self.case["tree"])
        self.files(self.home, self.case["home"])
        self.files(self.scratch, self.case.get("outside", {}))
        for folder, kind in self.case["git"].items():
            path = self.root / folder
            path.mkdir(parents=True, exist_ok=True)
            if kind == "init":
                subprocess.run(["git", "init", "-q", str(path)], check=True, stdin=subprocess.DEVNULL)
            elif kind == "dir":
                (path / ".git").mkdir(exist_ok=True)
            else:
                (path / ".git").write_text("gitdir: /nowhere\n")

    def files(self, folder, files):
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                path.write_bytes(self.placed(content).encode())
            elif "link" in content:
                os.symlink(self.placed(content["link"]), path)
            elif "hex" in content:
                path.write_bytes(bytes.fromhex(content["hex"]))
            else:
                path.mkdir(exist_ok=True)
