"""Screenshots of every view: light, dark and narrow. A person looks at them."""

import os
from pathlib import Path

from browser import Browser
from inspected import ROOT, check
from views import contains, png, post, sights

SCREENSHOT = ROOT / "docs/images/inspector.png"


def screenshots(folder, _):
    """Screenshots: no view is wider than its window"""
    folder.fill("trips", sights(3_000))
    folder.run("create", "trips", "--collections", "travel.hotels,travel.notes")
    for number in range(4):
        (folder.path / f"{number}.png").write_bytes(png(tint=number * 60))
        folder.run("blob", "put", "trips", f"photo:{number}", "photo", f"{number}.png", "--type", "image/png")
    folder.run("create", "copy")
    served = folder.serve("trips", "--inspect", "--couchdb", "--no-tls").with_page()
    couch = served.line(r"^(http://127\.0\.0\.1:\d+)/?$")
    post(f"{couch}/trips/_bulk_docs", {"new_edits": False, "docs": [
        {"_id": "bridge", "_rev": f"3-{digest * 32}", "_revisions": {"start": 3, "ids": [digest * 32, "e" * 32, "a" * 32]},
         "name": name, "city": "Prague", "likes": likes, "address": {"street": "Karlův most", "lines": [1, 2, 3]}}
        for digest, name, likes in (("b", "Charles Bridge", 12), ("c", "Karlův most", 15))
    ]})
    folder.run("set", "copy", "own", "n=1", "--create")
    folder.start("sync", "copy", served.url, "--continuous")
    shots = Path(os.environ.get("INSPECTOR_SHOTS", folder.path / "shots"))
    views = [
        ("documents", "#/documents", contains("sight:000000")),
        ("document", "#/document/_default._default/sight:000004", "return document.querySelector('.tree') !== null"),
        ("conflict", "#/document/_default._default/bridge", "return document.querySelectorAll('.side .keep').length === 2"),
        ("query", "#/query/" + "SELECT%20city%2C%20COUNT(*)%20AS%20sights%2C%20AVG(likes)%20AS%20likes%20FROM%20_%20GROUP%20BY%20city%20ORDER%20BY%20city", "return document.querySelector('textarea') !== null"),
        ("blobs", "#/blobs", "return document.querySelectorAll('.blob img').length === 4"),
        ("peers", "#/peers", contains("over BLIP")),
        ("mesh", "#/mesh", "return document.querySelectorAll('.mesh circle.connected').length >= 1"),
        ("empty", "#/documents/travel.notes", contains("This collection is empty")),
        ("error", "#/document/_default._default/missing", "return document.querySelector('.failure') !== null"),
    ]
    for name, width, height, dark in (("light", 1280, 860, False), ("dark", 1280, 860, True), ("narrow", 390, 844, False)):
        with Browser(width, height, dark=dark) as browser:
            browser.open(served.page)
            for view, place, ready in views:
                browser.run("location.hash = arguments[0]", place)
                browser.wait(ready, what=f"{view} in {name}", seconds=30)
                if view == "query":
                    browser.run("document.querySelector('form').requestSubmit()")
                    browser.wait("return document.querySelector('tbody') !== null", what="the rows")
                if view == "blobs":
                    browser.wait("return [...document.querySelectorAll('.blob img')].every(image => image.complete)", what="the pictures")
                check(browser.run("return document.documentElement.scrollWidth <= window.innerWidth && document.getElementById('view').scrollWidth <= window.innerWidth"), f"{view} in {name} is wider than the window")
                browser.screenshot(shots / f"{view}-{name}.png")
    if os.environ.get("INSPECTOR_SCREENSHOT"):
        SCREENSHOT.parent.mkdir(parents=True, exist_ok=True)
        SCREENSHOT.write_bytes((shots / "conflict-light.png").read_bytes())
    return f"in {shots}" if "INSPECTOR_SHOTS" in os.environ else ""
