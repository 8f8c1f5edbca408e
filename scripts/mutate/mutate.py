"""Looks for changes of the core that no unit test notices.

    scripts/mutate.sh [--seed N] [--count N]     makes mutants of a copy of the tree, in one build, and runs the tests of each
    scripts/mutate.sh --list                     shows the mutants, and what became of them the last time
    scripts/mutate.sh --only N                   runs the tests of one mutant, and shows their output

A mutant is one small change (see candidates.py). All are compiled into one copy, and an environment variable says which one a process is.
Mutants that do not compile are dropped. The suites of the mutant's part of the core run until a test fails, the process crashes or its time is
over: then the mutant is killed. What survives, and is not in `equivalents` with a reason, needs a test.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import candidates

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# Parts of the core, with the suites that test them: those of the target first, then those that see it from outside.
AREAS = [
    ("Sources/LoveseatModel/Revisions", ["LoveseatModelTests", "LoveseatStorageTests"]),
    ("Sources/LoveseatBLIP", ["LoveseatBLIPTests", "LoveseatReplicationTests"]),
    ("Sources/LoveseatBLIPReplication", ["LoveseatReplicationTests", "ReplayTests.(?!FuzzTests)"]),
    ("Sources/LoveseatReplication", ["LoveseatReplicationTests"]),
    ("Sources/LoveseatCouchDBReplication", ["LoveseatCouchDBReplicationTests"]),
    (
        "Sources/LoveseatCore/Replication/PeerAccess.swift Sources/LoveseatCore/Replication/CollectionAccess.swift"
        " Sources/LoveseatCore/Endpoints/AccessPolicy.swift",
        ["LoveseatNetworkTests.(AccessPolicyTests|DeletionAccessTests|RequestPolicyTests|RememberedDocumentsTests)"],
    ),
    ("Sources/LoveseatQuery/Translation", ["LoveseatQueryTests"]),
]
TEST_TARGETS = sorted({suite.split(".")[0] for _, suites in AREAS for suite in suites})
# How often an operator is drawn, beside one of 1.
WEIGHTS = {"negated condition": 4, "removed call": 3}


def say(text):
    print(text, flush=True)


# The copy of the tree


def copy_tree(tree, mutants):
    """Makes or refreshes the copy, with its mutants. Files that have not changed keep their times, and need not be compiled again."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    names = {name for name in listed if name and (ROOT / name).is_file()}
    if (ROOT / "Package.resolved").exists():
        names.add("Package.resolved")
    contents = {name: (ROOT / name).read_bytes() for name in names}
    contents["Sources/LoveseatAssertions/Mutants.swift"] = (HERE / "Mutants.swift").read_bytes()
    contents["Package.swift"] += (SMALLER_MANIFEST % json.dumps(TEST_TARGETS)).encode()
    for name in {mutant["file"] for mutant in mutants}:
        contents[name] = planted(name, mutants)
    for name, content in contents.items():
        write(tree / name, content)
        if name in names:
            shutil.copymode(ROOT / name, tree / name)
    for folder in ["Sources", "Tests"]:
        for path in (tree / folder).rglob("*.swift"):
            if str(path.relative_to(tree)) not in contents:
                path.unlink()


# Only what the suites need is compiled.
SMALLER_MANIFEST = """
var needed = Set(%s)
while true {
    let more = package.targets.filter { needed.contains($0.name) }.flatMap { target in
        target.dependencies.compactMap { if case .targetItem(let name, _) = $0 { name } else { nil } }
    }
    if needed.isSuperset(of: more) { break }
    needed.formUnion(more)
}
package.targets.removeAll { !needed.contains($0.name) }
package.products = []
"""


def write(path, content):
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


# Mutants


def sources(area):
    for name in area.split():
        path = ROOT / name
        files = [path] if path.is_file() else sorted(path.rglob("*.swift"))
        # What states conditions is no behaviour.
        yield from (file for file in files if "Invariants" not in file.name)


def choose(seed, count):
    """Draws mutants from all areas alike, and never two of one line."""
    generator = random.Random(seed)
    areas = []
    for area, suites in AREAS:
        groups = {}
        for path in sources(area):
            name = str(path.relative_to(ROOT))
            for mutant in candidates.candidates(path.read_text()):
                mutant.update(file=name, suites=suites)
                groups.setdefault(mutant["operator"], []).append(mutant)
        for group in groups.values():
            generator.shuffle(group)
        areas.append(groups)
    chosen, lines = [], set()
    while len(chosen) < count and any(areas):
        for groups in areas:
            if not groups or len(chosen) == count:
                continue
            operators = sorted(groups)
            operator = generator.choices(operators, [WEIGHTS.get(o, 1) for o in operators])[0]
            mutant = groups[operator].pop()
            if not groups[operator]:
                del groups[operator]
            if (mutant["file"], mutant["line"]) not in lines:
                lines.add((mutant["file"], mutant["line"]))
                chosen.append(mutant)
    for number, mutant in enumerate(chosen, 1):
        original = (ROOT / mutant["file"]).read_text().split("\n")[mutant["line"] - 1]
        mutant.update(number=number, original=original.strip(), state="new")
    return chosen


def planted(name, mutants):
    """A file with its mutants that are not dropped."""
    text = (ROOT / name).read_text()
    lines = text.split("\n")
    rewritten = [m for m in mutants if m["file"] == name and m["state"] != "dropped"]
    for mutant in rewritten:
        lines[mutant["line"] - 1] = mutant["text"].replace("@N@", str(mutant["number"]))
    if rewritten and "import LoveseatAssertions" not in text:
        # On the first line, which keeps the numbers of all others.
        lines[0] = "import LoveseatAssertions; " + lines[0]
    return "\n".join(lines).encode()


def drop_broken(tree, mutants, output):
    """Drops the mutants of the lines that a compiler complains of, or else the nearest one before such a line. Returns how many."""
    dropped = 0
    for path, line in sorted(set(re.findall(r"^(/[^:\n]+):(\d+):\d+: error:", output, re.M))):
        try:
            name = str(pathlib.Path(path).resolve().relative_to(tree))
        except ValueError:
            continue
        near = [m for m in mutants if m["file"] == name and m["state"] != "dropped" and m["line"] <= int(line)]
        for mutant in sorted(near, key=lambda m: m["line"])[-1:]:
            mutant["state"] = "dropped"
            dropped += 1
    return dropped


def build(tree, mutants, options, save):
    environment = dict(os.environ, LOVESEAT_CHECKED="1", SWIFT_DETERMINISTIC_HASHING="1")
    while True:
        copy_tree(tree, mutants)
        save()
        done = subprocess.run(
            ["swift", "build", "--build-tests", "-c", options.configuration, *options.swift_option],
            cwd=tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        (tree.parent / "build.log").write_text(done.stdout)
        if done.returncode == 0:
            return
        dropped = drop_broken(tree, mutants, done.stdout)
        if not dropped:
            sys.exit(done.stdout[-6000:] + f"\nThe copy does not compile: see {tree.parent}/build.log.")
        say(f"{dropped} mutants do not compile, and are dropped.")


# Tests

FAILURE = re.compile(r"recorded an issue|^✘|Fatal error|^error:|Program crashed")


def run(tree, options, suites, number, limit, show=False):
    """Runs suites as a mutant until a test fails. Returns whether all passed, why not, and the seconds that it took."""
    begin = time.monotonic()
    environment = dict(
        os.environ,
        LOVESEAT_MUTANT=str(number),
        LOVESEAT_CHECKED="1",
        SWIFT_BACKTRACE="enable=no",
        # Each has a place of its own for files that a crash leaves behind.
        TMPDIR=tempfile.mkdtemp(prefix="mutant-", dir=tree.parent),
    )
    reason, passed, found = "", True, False
    for suite in suites:
        if not passed:
            break
        process = subprocess.Popen(
            ["swift", "test", "--skip-build", "-c", options.configuration, *options.swift_option, "--filter", f"^{suite}"]
            if options.swift_test
            else [binary(tree, options), "--testing-library", "swift-testing", "--filter", f"^{suite}"],
            cwd=tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        ended = False
        timer = threading.Timer(limit(suite), lambda: end(process))
        timer.start()
        for line in process.stdout:
            if show:
                say(line.rstrip())
            found = found or bool(re.search(r"Test run with [1-9]\d* test", line))
            if FAILURE.search(line) and passed:
                passed, reason, ended = False, line.strip(), True
                if not show:
                    end(process)
                    break
        code = process.wait()
        if timer.is_alive():
            timer.cancel()
        elif not ended:
            passed, reason = False, f"no end after {limit(suite):.0f} s"
        if code and passed:
            passed, reason = False, f"ended with {code}"
        if passed and not found:
            passed, reason = False, f"no test matches {suite}"
    shutil.rmtree(environment["TMPDIR"], ignore_errors=True)
    return passed, reason[:160], time.monotonic() - begin


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def binary(tree, options):
    found = sorted((tree / ".build" / options.configuration).glob("*PackageTests.xctest"))
    if not found:
        sys.exit("The tests of the copy are not built.")
    inside = found[0] / "Contents/MacOS" / found[0].stem
    return str(inside if inside.exists() else found[0])


def equivalents():
    """Mutants that change nothing anybody could see: the file, the original line and the operator, with a reason."""
    found = {}
    for line in (HERE / "equivalents").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, operator, original, reason = line.split(" | ")
            found[name, operator, original] = reason
    return found


def describe(mutant):
    return f"{mutant['number']:4} {mutant['state']:9} {mutant['file']}:{mutant['line']}: {mutant['operator']}: {mutant['original']}"


def main():
    parser = argparse.ArgumentParser(prog="scripts/mutate.sh", description="Looks for changes of the core that no unit test notices.")
    parser.add_argument("--list", action="store_true", help="show the mutants and what became of them")
    parser.add_argument("--only", type=int, metavar="N", help="run the tests of one mutant and show their output")
    parser.add_argument("--seed", type=int, default=1, help="which mutants to draw")
    parser.add_argument("--count", type=int, default=260, help="how many mutants to draw; some do not compile")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "loveseat-mutants"), help="where the copy is")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="how many run at once")
    parser.add_argument("--configuration", default="release", help="debug or release")
    parser.add_argument("--swift-option", action="append", default=[], help="passed to swift build, such as --swift-option=--ignore-lock")
    parser.add_argument("--swift-test", action="store_true", help="run the tests by swift test instead of their program")
    parser.add_argument("--minutes", type=float, help="begin no mutant after so long")
    parser.add_argument("--dry", action="store_true", help="only make the copy with its mutants")
    options = parser.parse_args()

    folder = pathlib.Path(options.folder).resolve()
    tree, record = folder / "tree", folder / "mutants.json"
    known = equivalents()

    kept = json.loads(record.read_text()) if record.exists() else {}
    is_same = kept.get("seed") == options.seed and kept.get("count") == options.count
    mutants = kept["mutants"] if is_same and kept.get("drawn") == draw_key() else choose(options.seed, options.count)

    def save():
        folder.mkdir(parents=True, exist_ok=True)
        record.write_text(
            json.dumps({"seed": options.seed, "count": options.count, "drawn": draw_key(), "mutants": mutants}, indent=1)
        )

    if options.list:
        for mutant in mutants:
            say(describe(mutant))
        return

    copy_tree(tree, mutants)
    save()
    if options.dry:
        return
    build(tree, mutants, options, save)

    if options.only:
        mutant = mutants[options.only - 1]
        say(describe(mutant))
        passed, reason, _ = run(tree, options, mutant["suites"], options.only, lambda suite: 600, show=True)
        say("It survives." if passed else f"Killed: {reason}")
        return

    limits = {}
    for suite in sorted({suite for m in mutants for suite in m["suites"]}):
        passed, reason, seconds = run(tree, options, [suite], 0, lambda suite: 1_200)
        if not passed:
            sys.exit(f"{suite} fails without a mutant: {reason}")
        limits[suite] = 30 + 4 * seconds * options.jobs
        say(f"{suite}: {seconds:.0f} s")

    begin = time.monotonic()

    def judge(mutant):
        if options.minutes and time.monotonic() - begin > options.minutes * 60:
            return
        passed, reason, _ = run(tree, options, mutant["suites"], mutant["number"], lambda suite: limits[suite])
        equivalent = known.get((mutant["file"], mutant["operator"], mutant["original"]))
        mutant["state"] = "survives" if passed and not equivalent else "same" if passed else "killed"
        mutant["reason"] = equivalent or reason
        save()
        if passed:
            say(describe(mutant))

    rest = [m for m in mutants if m["state"] != "dropped"]
    for mutant in rest:
        mutant["state"] = "new"
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(judge, rest))
    counts = {state: sum(m["state"] == state for m in mutants) for state in ["killed", "survives", "same", "dropped", "new"]}
    judged = counts["killed"] + counts["survives"]
    say(
        f"{counts['killed']} killed ({100 * counts['killed'] / max(1, judged):.1f} %), {counts['survives']} survive, {counts['same']} change nothing"
        f" (scripts/mutate/equivalents), {counts['dropped']} did not compile, {counts['new']} were not run."
    )
    sys.exit(1 if counts["survives"] else 0)


def draw_key():
    """What the draw depends on: other sources have other mutants."""
    key = hashlib.sha256((HERE / "candidates.py").read_bytes())
    for area, _ in AREAS:
        for path in sources(area):
            key.update(path.read_bytes())
    return key.hexdigest()


if __name__ == "__main__":
    main()
