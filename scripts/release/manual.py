#!/usr/bin/env python3
"""Writes manual pages from the help texts of a program that uses swift-argument-parser.

    manual.py PROGRAM FOLDER      FOLDER/NAME.1, and FOLDER/NAME-SUBCOMMAND.1 for each subcommand

SOURCE_DATE_EPOCH sets the date of the pages.
"""
import json, os, re, subprocess, sys, textwrap, time

DATE = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))


def roff(text):
    """Escapes what roff would read as something else, and sets `code` in bold."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti")
    text = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", text)
    return "\\&" + text if text.startswith(".") else text


def filled(text):
    """Lines of running text."""
    return [roff(line) for line in textwrap.wrap(text, 72, break_long_words=False, break_on_hyphens=False)]


def paragraphs(text):
    """A discussion: headings in capitals, indented examples that keep their lines, and paragraphs."""
    lines, separate = [], False
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        rows = block.split("\n")
        if re.fullmatch(r"[A-Z][A-Z ]+", rows[0]):
            lines.append(f".SH {rows.pop(0)}")
            separate = False
        if not any(rows): continue
        if separate: lines.append(".PP")
        separate = True
        # A list of exit codes is one long line.
        codes = rows[0].strip().split(" · ")
        if len(codes) > 1:
            for code in codes:
                number, meaning = code.split(" ", 1)
                lines += [".TP", f".B {number}", *filled(meaning)]
        elif all(row.startswith("  ") for row in rows):
            lines += [".nf", *(roff(row[2:]) for row in rows), ".fi"]
        else:
            lines += [line for row in rows for line in filled(row)]
    return lines


def spelled(name):
    return ("-" if name["kind"] in ("short", "longWithSingleDash") else "--") + name["name"]


def synopsis(path, command):
    shown = [argument for argument in command.get("arguments", []) if argument["shouldDisplay"]]
    parts = [f"\\fB{roff(' '.join(path))}\\fR"]
    if subcommands(command): parts.append("\\fIsubcommand\\fR")
    if any(argument["kind"] != "positional" for argument in shown): parts.append("[\\fIoptions\\fR]")
    for argument in shown:
        if argument["kind"] != "positional": continue
        part = f"\\fI{roff(argument['valueName'])}\\fR" + (" ..." if argument["isRepeating"] else "")
        parts.append(f"[{part}]" if argument["isOptional"] else part)
    return " ".join(parts)


def arguments(command, heading):
    """Sections of positional arguments, of options under their titles, and of other options."""
    sections = {}
    for argument in command.get("arguments", []):
        if not argument["shouldDisplay"]: continue
        title = argument.get("sectionTitle") or ("Arguments" if argument["kind"] == "positional" else "Options")
        sections.setdefault(title, []).append(argument)
    lines = []
    for title in sorted(sections, key=lambda title: (title != "Arguments", title == "Options")):
        lines.append(f"{heading} {roff(title.upper() if heading == '.SH' else title)}")
        for argument in sections[title]:
            value = f"\\fI{roff(argument['valueName'])}\\fR"
            if argument["kind"] == "positional": tag = value
            else:
                tag = ", ".join(f"\\fB{roff(spelled(name))}\\fR" for name in argument["names"])
                if argument["kind"] == "option": tag += f" {value}"
            text = argument.get("abstract", "")
            if argument.get("discussion"): text += " " + " ".join(argument["discussion"].split())
            default = argument.get("defaultValue")
            if default and not default.startswith("--"): text += f" (default: {default})"
            lines += [".TP", tag, *filled(text.strip() or argument["valueName"])]
    return lines


def subcommands(command):
    return [each for each in command.get("subcommands", []) if each["shouldDisplay"] and each["commandName"] != "help"]


def nested(path, command):
    """A subcommand within the page of its parent."""
    path = [*path, command["commandName"]]
    lines = [f".SH {roff(' '.join(path[1:]).upper())}", synopsis(path, command), ".PP", *filled(command["abstract"])]
    discussion = paragraphs(command.get("discussion", ""))
    if discussion and not discussion[0].startswith(".SH"): lines.append(".PP")
    # Its headings are below that of the subcommand.
    lines += [re.sub(r"^\.SH ", ".SS ", line) for line in discussion]
    lines += arguments(command, ".SS")
    for each in subcommands(command): lines += nested(path, each)
    return lines


def page(path, command, version):
    name = "-".join(path)
    abstract = re.split(r"\.(?: |$)", command["abstract"])[0]
    lines = [
        f'.TH {roff(name.upper())} 1 {DATE} "{path[0]} {version}" "User Commands"',
        ".SH NAME", f"{roff(name)} \\- {roff(abstract[0].lower() + abstract[1:] if not abstract[:2].isupper() else abstract)}",
        ".SH SYNOPSIS", synopsis(path, command),
        ".SH DESCRIPTION", *filled(command["abstract"]),
    ]
    discussion = paragraphs(command.get("discussion", ""))
    described = [index for index, line in enumerate(discussion) if line.startswith(".SH")]
    first = described[0] if described else len(discussion)
    if first: lines += [".PP", *discussion[:first]]
    lines += arguments(command, ".SH")
    pages = []
    if len(path) == 1:
        if subcommands(command): lines.append(".SH SUBCOMMANDS")
        for each in subcommands(command):
            lines += [".TP", f"\\fB{roff(name + '-' + each['commandName'])}\\fR(1)", *filled(each["abstract"])]
            pages.append(f"{name}-{each['commandName']}")
    else:
        for each in subcommands(command): lines += nested(path, each)
    lines += discussion[first:]
    related = pages or [path[0]]
    related = [f".BR {roff(each)} (1)" + ("," if each != related[-1] else "") for each in related]
    return "\n".join([*lines, ".SH SEE ALSO", *related]) + "\n"


program, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
run = lambda *options: subprocess.run([program, *options], check=True, capture_output=True, text=True).stdout
root = json.loads(run("--experimental-dump-help"))["command"]
version = run("--version").strip()
os.makedirs(folder, exist_ok=True)
for path, command in [((root["commandName"],), root)] + [
    ((root["commandName"], each["commandName"]), each) for each in subcommands(root)
]:
    with open(os.path.join(folder, "-".join(path) + ".1"), "w") as file:
        file.write(page(path, command, version))
