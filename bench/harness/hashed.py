"""How often a byte of a prompt is hashed while it is built: instructions of the hash function, under callgrind."""
import pathlib, shutil, subprocess, tempfile

CASE = "bytes hashed in one build of 160 KB"


def measure(setting):
    if not shutil.which("valgrind"):
        return []
    found = {"proem": counted(setting, "build"), "the prompt": counted(setting, "once")}
    return [{"row": "P10", "case": CASE, "who": who, "unit": "instructions", "take": "median", "samples": [count]}
            for who, count in found.items()]


def counted(setting, work):
    """Instructions of the hash function in one work: those of three less those of one, halved."""
    return (hashing(setting, work, 3) - hashing(setting, work, 1)) / 2


def hashing(setting, work, times):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        command = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}", "--compress-strings=no",
                   "--compress-pos=no", *setting.bench("hashed"), work, times]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return own_cost(out.read_text(errors="replace"))


def own_cost(text):
    """What the functions of the hash spent themselves; a line after `calls=` is what they spent in others."""
    total, is_hash, is_call = 0, False, False
    for line in text.splitlines():
        if line.startswith("fn="):
            is_hash = "sha2" in line or "sha256" in line
        elif line.startswith("calls="):
            is_call = True
        elif line[:1].isdigit():
            total += int(line.split()[1]) if is_hash and not is_call else 0
            is_call = False
    return total
