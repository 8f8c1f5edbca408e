"""The pages, in Chromium."""

import contextlib
import os
from pathlib import Path

from basics import open_page
from browser import Browser
from harness import Scratch, check, need, wait_until
from network import SocksProxy, fetch
from pictures import corners, draw_jpeg, landscape, photo_file, photo_files, read_qr, stored_for

SCREENSHOT = Path(__file__).parents[3] / "docs/images/photodrop.png"
NAMES = [
    "harbour", "first-light", "ridge", "valley", "evening", "north-road", "lake", "long-hill", "dunes", "pass",
    "orchard", "last-day",
]


def thumbnails(browser):
    return browser.run("return [...document.querySelectorAll('#gallery img')].filter(image => image.complete).length")


def draw_photos(scratch, count, first):
    """Draws pictures with the first names, in the folder `from`."""
    for number, name in enumerate(NAMES[:count]):
        draw_jpeg(scratch.path / f"from/{name}.jpg", landscape(first + number), orientation=1)


def click_photo(browser, name, part=".name"):
    """Clicks on a photo, or on a part of it."""
    browser.run(
        "[...document.querySelectorAll('.photo')].find(photo =>"
        " photo.querySelector('.name').textContent === arguments[0]).querySelector(arguments[1]).click()",
        f"{name}.jpg", part,
    )


# The colours of an image's corners: top left, bottom right.
CORNERS = """
    return [...document.querySelectorAll('#gallery .photo')].map(photo => {
        const image = photo.querySelector('img')
        const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight)
        const context = canvas.getContext('2d')
        context.drawImage(image, 0, 0)
        const at = (x, y) => [...context.getImageData(x, y, 1, 1).data].slice(0, 3)
        return {
            name: photo.querySelector('.name').textContent, width: image.naturalWidth, height: image.naturalHeight,
            first: at(8, 8), last: at(image.naturalWidth - 8, image.naturalHeight - 8)
        }
    })
"""


def live_page():
    """The page shows photos as they arrive, and every photo once"""
    need("chromium", "chromedriver", "vips")
    proxy = SocksProxy()
    with contextlib.closing(proxy), Scratch("3") as scratch, Browser(proxy=proxy) as browser:
        photos = [
            draw_jpeg(
                scratch.path / f"from/{name}.jpg", landscape(number), orientation=1
            ) for number, name in enumerate(NAMES)
        ]
        receiver = scratch.receiver()
        browser.open(receiver.page)
        browser.wait("return document.getElementById('status').textContent === 'Ready'", what="the page")
        check(browser.run("return location.search") == "", "the token is still in the address")
        check(browser.run("return document.getElementById('count').textContent") == "0", "photos before the first")
        check(browser.run("return !document.getElementById('empty').hidden"), "no empty state")
        browser.screenshot(scratch.path / "empty.png")
        seen = [thumbnails(browser)]
        for part in (photos[:1], photos[1:4]):
            result = scratch.send(receiver.code, *part, options=["--name", "Ana"])
            check(result.returncode == 0, result.stderr)
            count = seen[-1] + len(part)
            wait_until(lambda: thumbnails(browser) == count, 10, f"{count} thumbnails")
            seen.append(count)
        # A connection that breaks: the browser comes back, and gets what it has missed, once.
        browser.run("window.shown = []; new MutationObserver(changes => changes.forEach(change =>"
                    " change.addedNodes.forEach(node => window.shown.push(node.querySelector('.name').textContent))))"
                    ".observe(document.getElementById('gallery'), { childList: true })")
        check(proxy.cut() > 0, "there was no connection to cut")
        result = scratch.send(receiver.code, *photos[4:], options=["--name", "Ana"])
        check(result.returncode == 0, result.stderr)
        wait_until(lambda: thumbnails(browser) == 12, 15, "12 thumbnails")
        shown = browser.run("return window.shown")
        check(sorted(shown) == sorted(photo.name for photo in photos[4:]), f"shown: {shown}")
        check(browser.run("return document.querySelectorAll('.photo').length") == 12, "a photo twice")
        # Forgetting one.
        browser.run("document.querySelector('.photo .forget').click()")
        browser.wait("return document.querySelectorAll('.photo').length === 11", what="the photo to go")
        check(len(receiver.files()) == 12, "forgetting a photo removed its file")
        # The end.
        browser.run("document.getElementById('stop').click()")
        browser.wait("return document.getElementById('status').textContent.includes('has ended')", what="the end")
        check(receiver.wait(20) == 0, receiver.error_text())


def upright():
    """Photos of all eight orientations are upright"""
    need("chromium", "chromedriver", "vips")
    with Scratch("3.1") as scratch, Browser() as browser:
        for orientation in range(1, 9):
            draw_jpeg(
                scratch.path / f"from/{orientation}.jpg", stored_for(corners(), orientation), orientation=orientation,
                latitude=48,
            )
        # Thumbnails of the server, and those that the page makes itself.
        for folder in ("server", "browser"):
            receiver = scratch.receiver(folder=folder)
            browser.open(receiver.page)
            if folder == "browser":
                browser.run(
                    "const get = window.fetch; window.fetch = (path, ...rest) =>"
                    " get(String(path).startsWith('/thumb/') ? '/nothing' : path, ...rest)"
                )
            check(scratch.send(receiver.code, scratch.path / "from").returncode == 0, "send")
            wait_until(lambda: thumbnails(browser) == 8, 20, f"8 thumbnails ({folder})")
            for photo in browser.run(CORNERS):
                check(photo["width"] > photo["height"], f"{folder}: {photo}")
                red, blue = photo["first"], photo["last"]
                check(red[0] > 180 and red[2] < 90, f"{folder}: the first corner of {photo}")
                check(blue[2] > 180 and blue[0] < 90, f"{folder}: the last corner of {photo}")
            receiver.interrupt()


def page_code():
    """The QR code of the page is read from a screenshot"""
    need("chromium", "chromedriver", "zbarimg")
    with Scratch("2.2") as scratch, Browser(800, 900) as browser:
        receiver = scratch.receiver()
        browser.open(receiver.page)
        browser.wait("return document.getElementById('qr').complete && document.getElementById('qr').naturalWidth > 0")
        width = browser.run("return document.getElementById('qr').getBoundingClientRect().width")
        check(width >= 300, f"{width} pixels")
        text = read_qr(browser.screenshot(scratch.path / "page.png"))
        check(text == receiver.code, f"{text!r} is not {receiver.code}")
        photo = photo_file(scratch.path / "from/a.jpg", 1_000)
        check(scratch.send(text, photo).returncode == 0, "the code from the screenshot does not work")


def several_senders():
    """Three senders of 20 photos each, on the page"""
    need("chromium", "chromedriver")
    with Scratch("4") as scratch, Browser() as browser:
        receiver = scratch.receiver()
        browser.open(receiver.page)
        senders = []
        for name in ("Ana", "Ben", "Zoë"):
            photo_files(scratch.path / name, [400_000] * 20, prefix=f"{name}-")
            senders.append(scratch.sender(receiver.code, scratch.path / name, options=("--name", name)))
        for sender in senders:
            check(sender.wait(60) == 0, sender.error_text())
        receiver.wait_saved(60)
        check(len(receiver.files()) == 60, f"{len(receiver.files())} files")
        browser.wait("return document.querySelectorAll('#senders .done').length === 3", what="three senders")
        rows = browser.run("return [...document.querySelectorAll('#senders li')].map(row => row.innerText)")
        for name in ("Ana", "Ben", "Zoë"):
            check(any(f"says it is {name}" in row and "20 of 20" in row for row in rows), f"{rows}")
        progress = receiver.all("progress")
        check(all(event["sent"] <= event["size"] for event in progress), "progress beyond the end")


def chosen_photos():
    """send --web sends exactly the chosen photos"""
    need("chromium", "chromedriver", "vips")
    with Scratch("9") as scratch, Browser() as browser:
        draw_photos(scratch, 5, 100)
        receiver = scratch.receiver()
        sender = scratch.sender(receiver.code, scratch.path / "from", options=("--web", "--name", "Ana"))
        page = sender.wait_for(lambda event: event["event"] == "page", what="the page")["page"]
        browser.open(page)
        wait_until(lambda: thumbnails(browser) == 5, 20, "5 thumbnails")
        check("Ana's laptop" in browser.run("return document.getElementById('status').textContent"), "the receiver")
        check(browser.run("return document.getElementById('send').disabled"), "nothing is chosen, but Send works")

        def choose(*names):
            for name in names:
                click_photo(browser, name)
            browser.run("document.getElementById('send').click()")

        choose("harbour", "ridge")
        receiver.wait_saved(2)
        browser.wait("return document.querySelectorAll('.stored').length === 2", what="two sent photos")
        sender.wait_for(lambda event: event["event"] == "done", what="the end")
        check(receiver.files() == ["harbour.jpg", "ridge.jpg"], f"{receiver.files()}")
        browser.wait("return !document.getElementById('send').textContent.includes('2')")
        if shots := os.environ.get("PHOTODROP_SHOTS"):
            browser.screenshot(Path(shots) / "send.png")
        choose("valley")
        receiver.wait_saved(3)
        wait_until(lambda: len(sender.all("done")) == 2, 10, "the second end")
        time_of_documents = [event["stored"] for event in sender.all("done")]
        check(time_of_documents == [2, 1], f"{time_of_documents}")
        check(receiver.files() == ["harbour.jpg", "ridge.jpg", "valley.jpg"], f"{receiver.files()}")
        states = [event for event in receiver.all("sender")]
        check(states[-1]["count"] == 3 and states[-1]["received"] == 3, f"{states[-1]}")
        browser.run("document.getElementById('stop').click()")
        check(sender.wait(20) == 0, sender.error_text())


def entered_code():
    """send --web without a code asks for it on the page"""
    need("chromium", "chromedriver", "vips")
    with Scratch("9.2") as scratch, Browser() as browser:
        draw_photos(scratch, 2, 200)
        receiver = scratch.receiver()
        sender = scratch.sender(None, scratch.path / "from", options=("--web", "--name", "Ana"))
        browser.open(sender.wait_for(lambda event: event["event"] == "page", what="the page")["page"])
        wait_until(lambda: thumbnails(browser) == 2, 20, "2 thumbnails")
        browser.run("document.getElementById('all').click()")
        check(browser.run("return document.getElementById('send').disabled"), "Send works without a code")

        def enter(code):
            browser.run(
                "document.getElementById('code').value = arguments[0];"
                "document.querySelector('#enter button').click()", code
            )

        enter("photodrop:1?u=nonsense")
        browser.wait("return !document.getElementById('banner').hidden", what="a reason")
        enter(receiver.code)
        browser.wait("return document.getElementById('enter').hidden", what="the code to be taken")
        check("Ana's laptop" in browser.run("return document.getElementById('status').textContent"), "the receiver")
        browser.run("document.getElementById('send').click()")
        receiver.wait_saved(2)
        browser.run("document.getElementById('stop').click()")
        check(sender.wait(20) == 0, sender.error_text())


def trash():
    """receive --delete-files: a photo that is removed on the page goes to the trash"""
    need("chromium", "chromedriver", "vips")
    with Scratch("9.3") as scratch, Browser() as browser:
        draw_photos(scratch, 2, 210)
        home = scratch.path / "data"
        receiver = scratch.receiver("--delete-files", environment={"XDG_DATA_HOME": str(home)})
        check(scratch.send(receiver.code, scratch.path / "from").returncode == 0, "send")
        receiver.wait_saved(2)
        browser.open(receiver.page)
        wait_until(lambda: thumbnails(browser) == 2, 20, "2 thumbnails")
        click_photo(browser, NAMES[0], ".forget")
        wait_until(lambda: thumbnails(browser) == 1, 10, "the photo to go")
        check(receiver.files() == [f"{NAMES[1]}.jpg"], f"{receiver.files()}")
        taken = home / f"Trash/files/{NAMES[0]}.jpg"
        check(taken.read_bytes() == (scratch.path / f"from/{NAMES[0]}.jpg").read_bytes(), "the file in the trash")
        note = (home / f"Trash/info/{NAMES[0]}.jpg.trashinfo").read_text()
        check(f"Path={receiver.folder}/{NAMES[0]}.jpg" in note, note)


def protection():
    """The page is for the browser that has its address, and nobody else"""
    with Scratch("14.1") as scratch:
        receiver = scratch.receiver()
        root = receiver.page.split("?")[0]
        cookie = open_page(receiver.page)
        for path in ("", "code", "events", "qr.svg"):
            check(fetch(root + path)[0] == 403, f"/{path} without the cookie")
        check(fetch(root + "?k=wrong")[0] == 403, "a wrong token")
        check(fetch(root, {"Host": "evil.example:80"}, cookie=cookie)[0] == 421, "another host's name")
        check(fetch(root + "stop", method="POST", cookie=cookie)[0] == 403, "POST without an origin")
        origin = {"Origin": "http://evil.example"}
        check(fetch(root + "stop", origin, method="POST", cookie=cookie)[0] == 403, "POST of another page")
        status, headers, _ = fetch(root, cookie=cookie)
        check(status == 200 and headers["Referrer-Policy"] == "no-referrer", f"{status} {headers}")
        photo = photo_file(scratch.path / "from/a.jpg", 100_000)
        check(scratch.send(receiver.code, photo).returncode == 0, "send")
        identifier = receiver.wait_saved(1)[0]["id"]
        status, headers, body = fetch(f"{root}photo/{identifier}", {"Range": "bytes=10-19"}, cookie=cookie)
        check(status == 206 and body == photo.read_bytes()[10:20], f"{status} {len(body)}")
        status, headers, body = fetch(f"{root}photo/{identifier}", cookie=cookie)
        check(body == photo.read_bytes() and headers["Content-Type"] == "image/jpeg", f"{headers}")
        origin = {"Origin": root.rstrip("/")}
        check(fetch(root + "stop", origin, method="POST", cookie=cookie)[0] == 200, "POST of the page itself")
        check(receiver.wait(20) == 0, receiver.error_text())


def screenshot():
    """A screenshot for the README, and the page in other sizes and colours"""
    need("chromium", "chromedriver", "vips")
    with Scratch("19") as scratch:
        for number, name in enumerate(NAMES):
            draw_jpeg(scratch.path / f"from/{name}.jpg", landscape(number, 640, 480), orientation=1)
        receiver = scratch.receiver(folder="Pictures")
        shots = Path(os.environ.get("PHOTODROP_SHOTS", scratch.path / "shots"))
        for name, width, height, dark in (
            ("light", 1280, 860, False), ("dark", 1280, 860, True), ("narrow", 390, 844, False),
        ):
            with Browser(width, height, dark=dark) as browser:
                browser.open(receiver.page)
                if not receiver.all("saved"):
                    browser.wait("return document.getElementById('text').textContent !== ''", what="the code")
                    browser.screenshot(shots / "empty.png")
                    for sender, files in (("Ana", NAMES[:7]), ("Ben", NAMES[7:])):
                        paths = [scratch.path / f"from/{file}.jpg" for file in files]
                        check(scratch.send(receiver.code, *paths, options=["--name", sender]).returncode == 0, "send")
                    receiver.wait_saved(12)
                wait_until(lambda: thumbnails(browser) == 12, 20, "12 thumbnails")
                check(
                    browser.run("return document.documentElement.scrollWidth <= window.innerWidth"),
                    f"{name}: the page is wider than the window",
                )
                browser.screenshot(shots / f"{name}.png")
        if os.environ.get("PHOTODROP_SCREENSHOT"):
            SCREENSHOT.parent.mkdir(parents=True, exist_ok=True)
            SCREENSHOT.write_bytes((shots / "light.png").read_bytes())


TESTS = [
    (2.2, page_code), (3, live_page), (3.1, upright), (4, several_senders), (9, chosen_photos), (9.2, entered_code),
    (9.3, trash), (14.1, protection), (19, screenshot),
]
