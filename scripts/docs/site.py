#!/usr/bin/env python3
"""Adds the pages of the repository to a site of DocC: README as its first page, those of docs/, and llms.txt. See scripts/site.sh.

    site.py SITE BASE PRODUCT…
"""
import glob, html, os, re, shutil, sys

import markdown

site, base, *products = sys.argv[1:]
base = f"/{base}/" if base else "/"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
pre, code { font: 14px/1.4 ui-monospace, monospace; background: #f4f4f6; border-radius: 4px }
pre { padding: .75rem; overflow-x: auto } code { padding: .1em .3em } pre code { padding: 0 }
table { border-collapse: collapse; display: block; overflow-x: auto } td, th { border: 1px solid #ccc; padding: .3rem .6rem; text-align: left; vertical-align: top }
img { max-width: 100% } nav { margin-bottom: 2rem } a { color: #06c }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1b1b1d } pre, code { background: #2a2a2d } a { color: #6af } td, th { border-color: #555 } }
"""


def read(path):
    with open(path, encoding="utf-8") as file: return file.read()


def title(text):
    return re.search(r"^# (.*)$", text, re.M)[1].replace("`", "")


def summary(text):
    """The first sentence of a page, in one line."""
    body = re.sub(r"(?ms)^```.*?^```|^\|.*?$|^#.*?$|^- .*?$(?:\n  .*?$)*", "", text.split("\n", text[: text.index("# ")].count("\n") + 1)[-1])
    paragraph = next((" ".join(each.split()) for each in re.split(r"\n\s*\n", body) if each.strip()), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|<doc:(\w+)>|``([^`]*)``", lambda found: found[1] or found[2] or found[3], paragraph)
    return re.split(r"(?<=\.) ", plain)[0].rstrip(":")


def destination(target, page):
    """Where a link of a page of the repository leads on the site; None if it is not part of it."""
    path, _, anchor = target.partition("#")
    if not path: return target
    path = os.path.normpath(os.path.join(os.path.dirname(page), path))
    anchor = f"#{anchor}" if anchor else ""
    article = re.fullmatch(r"Sources/(\w+)/\w+\.docc(?:/(\w+)\.md)?", path)
    if article: return f"{base}documentation/{article[1].lower()}" + (f"/{article[2].lower()}" if article[2] else "") + "/" + anchor
    if path in PAGES: return base + PAGES[path] + anchor
    if path.startswith("docs/images/"): return base + path
    return None


def page(path):
    text = read(path)

    def link(found):
        if re.match(r"[a-z]+:", found[2]): return found[0]
        there = destination(found[2], path)
        return f"{found[1]}({there})" if there else found[1].removeprefix("!")[1:-1]

    body = re.sub(r"(!?\[[^\]]*\])\(([^)\s]+)\)", link, text)
    body = markdown.markdown(body, extensions=["fenced_code", "tables", "toc", "sane_lists"])
    links = [("Loveseat", base), ("Reference", f"{base}documentation/"), ("Articles", f"{base}documentation/loveseat/"), ("Changes", f"{base}changelog.html")]
    navigation = " · ".join(f'<a href="{there}">{name}</a>' for name, there in links)
    return (f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>{html.escape(title(text))}</title><style>{STYLE}</style><nav>{navigation}</nav>\n{body}\n</html>\n")


PAGES = {"README.md": "index.html", "CHANGELOG.md": "changelog.html", "SECURITY.md": "security.html", "CONTRIBUTING.md": "contributing.html",
         "Benchmarks/README.md": "benchmarks.html", "Examples/PhotoDrop/README.md": "photodrop.html", "LICENSE": "LICENSE.txt"}
for path in sorted(glob.glob("docs/*.md") + glob.glob("docs/decisions/*.md")): PAGES[path] = path[:-2] + "html"
PAGES["docs/decisions"] = "docs/decisions/index.html"

for path, there in PAGES.items():
    os.makedirs(os.path.dirname(os.path.join(site, there)), exist_ok=True)
    if path == "LICENSE": shutil.copy(path, os.path.join(site, there))
    if not path.endswith(".md"): continue
    with open(os.path.join(site, there), "w", encoding="utf-8") as file: file.write(page(path))
decisions = [path for path in PAGES if path.startswith("docs/decisions/")]
with open(os.path.join(site, "docs/decisions/index.html"), "w", encoding="utf-8") as file:
    rows = "".join(f'<li><a href="{base}{PAGES[path]}">{html.escape(title(read(path)))}</a></li>' for path in decisions)
    file.write(f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Decisions</title><style>{STYLE}</style><h1>Decisions</h1><ul>{rows}</ul></html>\n')
shutil.copytree("docs/images", os.path.join(site, "docs/images"), dirs_exist_ok=True)

# The index for language models, with the texts as they were written.
def entry(path):
    copy = os.path.join(site, "text", path)
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    shutil.copy(path, copy)
    text = read(path)
    name, line = title(text), summary(text)
    return f"- [{name}]({base}text/{path})" + (f": {line}" if line else "")

order = re.findall(r"<doc:(\w+)>", read("Sources/Loveseat/Loveseat.docc/Loveseat.md"))
articles = [f"Sources/Loveseat/Loveseat.docc/{name}.md" for name in dict.fromkeys(order)]
more = sorted(path for path in PAGES if re.fullmatch(r"docs/\w[\w-]*\.md", path))
lines = ["# Loveseat", "", "> " + summary(read("README.md")), "", "## Articles", "", *map(entry, ["README.md", *articles]), "", "## Details", "",
         *map(entry, more), "", "## Decisions", "", *map(entry, decisions), "", "## Reference", ""]
for product in products:
    catalogue = read(f"Sources/{product}/{product}.docc/{product}.md")
    lines.append(f"- [{product}]({base}documentation/{product.lower()}/): {summary(catalogue)}")
lines += ["", f"The reference of a symbol is JSON, too: {base}data/documentation/loveseat/database.json for Database of Loveseat.", "",
          "## Optional", "", *map(entry, ["CHANGELOG.md", "Benchmarks/README.md", "Examples/PhotoDrop/README.md"])]
with open(os.path.join(site, "llms.txt"), "w", encoding="utf-8") as file: file.write("\n".join(lines) + "\n")

# Every link between pages leads somewhere.
broken = set()
for path in {there for path, there in PAGES.items() if there.endswith(".html")}:
    for target in re.findall(r'(?:href|src)="([^"#]*)', read(os.path.join(site, path))):
        if not target.startswith(base): continue
        found = os.path.join(site, target[len(base):])
        if not os.path.exists(os.path.join(found, "index.html") if os.path.isdir(found) else found): broken.add((path, target))
for each in sorted(broken): print("%s: there is no %s" % each, file=sys.stderr)
sys.exit(bool(broken))
