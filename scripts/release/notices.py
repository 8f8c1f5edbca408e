#!/usr/bin/env python3
"""Prints the licence notices of the libraries that are linked into a program.

    notices.py BUILD PROGRAM             the notices, as text
    notices.py --copyright BUILD PROGRAM as the copyright file of a Debian package

BUILD is the build folder of SwiftPM, such as .build/release. If it does not tell what was linked, the notices of all libraries that were
fetched are printed.
"""
import glob, json, os, re, shutil, sys

as_copyright = sys.argv[1] == "--copyright"
build, program = sys.argv[-2:]
build = os.path.realpath(build)
scratch = next(
    (each for each in (build, os.path.dirname(build), os.path.dirname(os.path.dirname(build)), os.path.abspath(".build"))
     if os.path.isdir(os.path.join(each, "checkouts"))),
    None,
)
if not scratch: sys.exit(f"{build}: there are no checkouts beside it, so that the licences of the libraries are unknown")


def text(*path):
    with open(os.path.join(*path), encoding="utf-8") as file: return file.read().strip("\n")


def checkout(module):
    """The package that a module is of, and the folder of its sources."""
    for pattern in ("Sources/" + module, module, "Sources/*/" + module):
        found = glob.glob(os.path.join(scratch, "checkouts", "*", pattern))
        if found: return os.path.relpath(found[0], os.path.join(scratch, "checkouts")).split(os.sep)[0], found[0]
    # A target whose folder has another name than itself.
    for manifest in glob.glob(os.path.join(scratch, "checkouts", "*", "Package*.swift")):
        if re.search(r'[tT]arget\(\s*name: "%s"' % re.escape(module), text(manifest)):
            return os.path.basename(os.path.dirname(manifest)), os.path.dirname(manifest)
    return None


def linked():
    """Names of packages, with the folders of their modules that the program contains."""
    objects = os.path.join(build, program + ".product", "Objects.LinkFileList")
    packages = {}
    if not os.path.exists(objects):
        return {name: [] for name in os.listdir(os.path.join(scratch, "checkouts"))}
    for module in sorted(set(re.findall(r"/([^/\n]+)\.build/", text(objects)))):
        own = any(os.path.isdir(os.path.join(folder, module)) for folder in ("Sources", "Examples/PhotoDrop/Sources"))
        if own: continue
        found = checkout(module)
        if not found: sys.exit(f"{module} is linked into {program}, and its package is unknown")
        packages.setdefault(found[0], []).append(found[1])
    return packages


def first(folder, *patterns):
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(folder, pattern))): return path
    return None


pins = {}
for each in json.loads(text(scratch, "workspace-state.json"))["object"]["dependencies"]:
    state = each["state"].get("checkoutState", {})
    pins[each["subpath"]] = (each["packageRef"]["location"], state.get("version") or state.get("revision", ""))

toolchain = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("swiftc"))))
libraries = []
for name, modules in sorted(linked().items(), key=lambda each: each[0].lower()):
    folder = os.path.join(scratch, "checkouts", name)
    licence = first(folder, "LICENSE*", "LICENCE*", "COPYING*")
    if not licence: sys.exit(f"{folder} has no licence")
    notice = first(folder, "NOTICE*")
    nested = [path for module in modules for path in sorted(glob.glob(os.path.join(module, "LICENSE*")))
              if path != licence]
    libraries.append((name, *pins[name], text(licence), text(notice) if notice else None, [text(path) for path in nested]))
runtime = text(toolchain, "share/swift/LICENSE.txt")
libraries.append((
    "Swift's runtime and Foundation", "https://github.com/swiftlang", "of the compiler", runtime,
    "They contain ICU, under the Unicode License V3 (https://www.unicode.org/license.txt): Copyright (c) 1991-2025 Unicode, Inc.", [],
))

is_apache = lambda licence: "Apache License" in licence and "Version 2.0, January 2004" in licence
exception = lambda licence: licence[licence.index("## Runtime Library Exception"):] if "## Runtime Library Exception" in licence else None
holders = lambda *texts: sorted({" ".join(line.split()) for each in texts for line in re.findall(r"^\s*(?:Copyright|©).*\d{4}.*$", each or "", re.M)})


def debian():
    print("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/")
    print("Upstream-Name: " + program)
    print("Comment: The program contains the libraries below. NOTICES.txt, beside this file, has their notices.\n")
    print("Files: *\nCopyright: The authors of Loveseat\nLicense: Apache-2.0\n")
    others = {}
    for name, url, version, licence, notice, nested in libraries:
        short = "Apache-2.0" if is_apache(licence) else "Expat" if "Permission is hereby granted, free of charge" in licence else name
        if short != "Apache-2.0": others[short] = licence
        owners = holders(*([notice] if notice else [licence] if short != "Apache-2.0" else [])) or [f"The authors of {name}"]
        print(f"Files: libraries/{name.replace(' ', '-')}/*")
        print("Copyright: " + "\n ".join(owners))
        print(f"License: {short}\nComment: {url} {version}\n")
    print("License: Apache-2.0\n On Debian systems, the text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.")
    for short, licence in others.items():
        print(f"\nLicense: {short}")
        for line in licence.split("\n"): print(" " + (line.strip() or "."))


def notices():
    print(f"{program} contains the following libraries. Those under the Apache License 2.0 have its text in the file LICENSE beside this one, or on Debian in /usr/share/common-licenses/Apache-2.0.")
    for name, url, version, licence, notice, nested in libraries:
        print(f"\n{'=' * 80}\n{name} {version}\n{url}\n")
        if is_apache(licence):
            print("Apache License 2.0" + (", with an exception:\n\n" + exception(licence) if exception(licence) else ""))
        else: print(licence)
        if notice: print("\n" + notice)
        for each in nested: print(f"\n{'-' * 80}\n{each}")


debian() if as_copyright else notices()
