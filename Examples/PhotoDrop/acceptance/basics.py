"""Sending and receiving, duplicates, metadata, terminals."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from harness import PROGRAM, Scratch, check, need, wait_until
from network import fetch, refuses
from pictures import (
    TINY_JPEG, corners, draw_jpeg, landscape, photo_file, photo_files, read_qr, stored_for, terminal_picture,
)


def twelve_photos():
    """12 photos of 1 to 10 MB"""
    with Scratch("1") as scratch:
        sizes = [1_000_000 + 9_000_000 * number // 11 for number in range(12)]
        photos = photo_files(scratch.path / "from", sizes)
        receiver = scratch.receiver("--for", "60", "--count", "12")
        start = time.monotonic()
        result = scratch.send(receiver.code, scratch.path / "from")
        seconds = time.monotonic() - start
        check(result.returncode == 0, f"send: {result.returncode} {result.stderr}")
        check(re.fullmatch(r"12 photos, 66\.0 MB in [0-9.]+ s\n", result.stdout), f"send printed {result.stdout!r}")
        check(receiver.wait() == 0, f"receive: {receiver.error_text()}")
        for photo in photos:
            check((receiver.folder / photo.name).read_bytes() == photo.read_bytes(), f"{photo.name} differs")
        check(receiver.files() == [photo.name for photo in photos], f"files: {receiver.files()}")
        check(len(receiver.all("saved")) == 12, "not one saved event each")
        check(seconds < 10, f"{seconds:.1f} s")
        return f"({seconds:.1f} s)"


def duplicates():
    """The same photo twice, under two names, and from two senders"""
    with Scratch("8") as scratch:
        first = photo_file(scratch.path / "from/a.jpg", 300_000)
        second = scratch.path / "from/b.jpg"
        second.write_bytes(first.read_bytes())
        other = scratch.path / "other/a.jpg"
        other.parent.mkdir()
        other.write_bytes(TINY_JPEG + b"another picture")
        receiver = scratch.receiver()
        sender = ("--sender", "00112233445566aa")
        for paths in ([first, first, second], [first]):
            result = scratch.send(receiver.code, *paths, options=sender)
            check(result.returncode == 0 and result.stdout.startswith("1 photo,"), result.stdout + result.stderr)
        receiver.wait_saved(1)
        check(scratch.send(receiver.code, second).returncode == 0, "the second sender")
        check(scratch.send(receiver.code, other).returncode == 0, "another photo of the same name")
        saved = receiver.wait_saved(3)
        check([event.get("duplicate", False) for event in saved] == [False, True, False], f"{saved}")
        check(receiver.interrupt() == 0, "receive")
        check(receiver.files() == ["a (2).jpg", "a.jpg"], f"{receiver.files()}")
        counts = f"2 photos are in {receiver.folder}; 1 duplicate was not saved again"
        check(counts in receiver.error_text(), receiver.error_text())


def recalling():
    """recall takes photos back: those of this sender, if the receiver allows it, and not what somebody has changed"""
    with Scratch("8.1") as scratch:
        photos = photo_files(scratch.path / "from", [50_000] * 3)
        receiver = scratch.receiver("--allow-recall")
        sent = scratch.send(receiver.code, scratch.path / "from")
        check(sent.returncode == 0, sent.stderr)
        receiver.wait_saved(3)
        sender = re.search(r"this is sender ([0-9a-f]{16})", sent.stderr).group(1)

        def recall(*paths, code=receiver.code, options=("--sender", sender)):
            return scratch.send(code, *paths, options=options, command="recall")

        check(recall(photos[0], options=()).returncode == 64, "without --sender")
        result = recall(photos[0], options=("--sender", "00112233445566aa"))
        check(result.returncode == 1 and "has not sent it" in result.stderr, f"{result.returncode} {result.stderr}")
        renamed = scratch.path / "other/renamed.jpg"
        renamed.parent.mkdir()
        renamed.write_bytes(photos[2].read_bytes())
        result = recall(renamed)
        check(result.returncode == 1 and "another version" in result.stderr, f"{result.returncode} {result.stderr}")
        check(len(receiver.files()) == 3, f"{receiver.files()}")
        with open(receiver.folder / photos[1].name, "ab") as edited:
            edited.write(b"edited")
        result = recall(*photos[:2])
        check(result.returncode == 0, f"{result.returncode} {result.stderr}")
        check(result.stdout == "".join(f"recalled {photo.name}\n" for photo in photos[:2]), result.stdout)
        left = [photo.name for photo in photos[1:]]
        wait_until(lambda: receiver.files() == left, 10, lambda: f"{receiver.files()} is not {left}")
        check(receiver.interrupt() == 0, "receive")
        check(recall(photos[2]).returncode == 77, "recalled after the end")
        other = scratch.receiver(folder="second")
        check(scratch.send(other.code, photos[0], options=["--sender", sender]).returncode == 0, "send")
        other.wait_saved(1)
        result = recall(photos[0], code=other.code)
        check(result.returncode == 1 and "does not allow" in result.stderr, f"{result.returncode} {result.stderr}")
        check(other.files() == [photos[0].name], f"{other.files()}")


def sending_again():
    """A photo that was recalled, or whose file somebody has removed, is saved when it is sent again"""
    with Scratch("8.2") as scratch:
        photos = photo_files(scratch.path / "from", [50_000] * 2)
        receiver = scratch.receiver("--allow-recall")
        options = ["--sender", "0123456789abcdef"]
        names = [photo.name for photo in photos]
        for command in ("send", "recall", "send", "recall", "send"):
            result = scratch.send(receiver.code, *photos, options=options, command=command)
            check(result.returncode == 0, f"{command}: {result.stderr}")
            left = names if command == "send" else []
            wait_until(lambda: receiver.files() == left, 10, lambda: f"{command}: {receiver.files()} is not {left}")
        (receiver.folder / names[1]).unlink()
        result = scratch.send(receiver.code, photos[1], options=["--sender", "00000000000000bb"])
        check(result.returncode == 0, result.stderr)
        wait_until(lambda: receiver.files() == names, 10, lambda: f"after the removal: {receiver.files()}")


def stripping():
    """GPS positions are removed, the orientation stays"""
    need("vips", "exiftool")
    with Scratch("12") as scratch:
        photo = draw_jpeg(scratch.path / "from/a.jpg", stored_for(corners(), 6), orientation=6, latitude=48)
        check("GPS Latitude" in exiftool(photo), "the picture has no GPS position to begin with")
        for place in ("send", "receive"):
            receiver = scratch.receiver(*(["--strip"] if place == "receive" else []), folder=place)
            options = ["--strip"] if place == "send" else []
            result = scratch.send(receiver.code, photo, options=options)
            check(result.returncode == 0, result.stderr)
            receiver.wait_saved(1)
            receiver.interrupt()
            found = exiftool(receiver.folder / "a.jpg")
            check("GPS" not in found and "Date/Time Original" not in found, f"{place}: {found}")
            check("Rotate 90" in found, f"{place}: the orientation is lost: {found}")
            data = (receiver.folder / "a.jpg").read_bytes()
            check(data[-2:] == b"\xff\xd9", f"{place}: the picture is cut off")
        heic = scratch.path / "from/x.heic"
        heic.write_bytes(b"\0\0\0\x18ftypheic" + bytes(100))
        receiver = scratch.receiver(folder="heic")
        result = scratch.send(receiver.code, heic, options=["--strip"])
        check(result.returncode == 1 and "cannot strip HEIC" in result.stderr, result.stderr)
        receiver = scratch.receiver("--strip", folder="stripping")
        result = scratch.send(receiver.code, heic, photo)
        check(result.returncode == 1 and "neither JPEG nor PNG" in result.stderr, f"{result.returncode} {result.stderr}")
        receiver.wait_saved(1)
        check(receiver.interrupt() == 0 and receiver.files() == ["a.jpg"], f"{receiver.files()}")


def resizing():
    """Large photos are resized, small ones are not"""
    need("vips", "vipsthumbnail")
    with Scratch("12.1") as scratch:
        large = draw_jpeg(scratch.path / "from/large.jpg", landscape(1, 320, 240), orientation=1)
        small = draw_jpeg(scratch.path / "from/small.jpg", corners(160, 120), orientation=1)
        receiver = scratch.receiver()
        result = scratch.send(receiver.code, large, small, options=["--max-edge", "200"])
        check(result.returncode == 0, result.stderr)
        receiver.wait_saved(2)
        sizes = {event["name"]: (event["width"], event["height"]) for event in receiver.all("saved")}
        check(sizes == {"large.jpg": (200, 150), "small.jpg": (160, 120)}, f"{sizes}")
        check((receiver.folder / "small.jpg").read_bytes() == small.read_bytes(), "the small photo was changed")
        result = scratch.send(receiver.code, large, options=["--max-edge", "200"], PATH="/nowhere")
        check(result.returncode == 64 and "libvips-tools" in result.stderr, result.stderr)


def thumbnails_of_senders():
    """A sender makes the thumbnail of a photo that the receiver's page cannot show; it has no GPS position"""
    need("vips", "vipsthumbnail", "exiftool")
    with Scratch("12.2") as scratch:
        large = draw_jpeg(scratch.path / "from/large.jpg", stored_for(landscape(1), 6), orientation=6, latitude=48)
        with open(large, "ab") as file:
            file.write(bytes(9 << 20))
        small = draw_jpeg(scratch.path / "from/small.jpg", landscape(2), orientation=1)
        # A receiver that has no program to make thumbnails with.
        receiver = scratch.receiver(environment={"PATH": "/nowhere"})
        cookie = open_page(receiver.page)
        sender = ("--sender", "00112233445566aa")
        check(scratch.send(receiver.code, large, small, options=sender).returncode == 0, "send")
        saved = {event["name"]: event for event in receiver.wait_saved(2)}
        check((receiver.folder / "large.jpg").read_bytes() == large.read_bytes(), "the photo was changed")
        root = receiver.page.split("?")[0]

        def thumbnail(event):
            return fetch(f"{root}thumb/{event['id']}", cookie=cookie)

        status, headers, content = thumbnail(saved["large.jpg"])
        check(status == 200 and headers["Content-Type"] == "image/jpeg", f"{status} {headers}")
        check(len(content) <= 64 << 10, f"{len(content)} bytes")
        picture = scratch.path / "thumbnail.jpg"
        picture.write_bytes(content)
        found = exiftool(picture)
        check("GPS" not in found and "Orientation" not in found and "Date/Time Original" not in found, found)
        check("320x240" in found, f"the thumbnail is not upright: {found}")
        check(thumbnail(saved["small.jpg"])[0] == 404, "a photo that the page can show has a thumbnail")
        # The same photo of the same sender, without a thumbnail.
        result = scratch.send(receiver.code, large, options=sender, PATH="/nowhere")
        check(result.returncode == 0 and result.stdout.startswith("1 photo,"), f"{result.stdout} {result.stderr}")
        check(receiver.interrupt() == 0, receiver.error_text())
        check(receiver.files() == ["large.jpg", "small.jpg"], f"{receiver.files()}")


def exiftool(path):
    return subprocess.run(["exiftool", "-ee", path], capture_output=True, text=True, check=True).stdout


def open_page(page):
    """Exchanges the token for the cookie."""
    status, headers, _ = fetch(page)
    check(status == 303, f"the page answered {status}")
    return headers["Set-Cookie"].split(";")[0]


def hygiene():
    """Nothing is left of a session, and its secret is nowhere but in the code"""
    with Scratch("16") as scratch:
        photo = photo_file(scratch.path / "from/a.jpg", 50_000)
        receiver = scratch.receiver("--count", "1")
        secrets = [receiver.secret, receiver.compact.split(":")[-1]]
        arguments = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True).stdout
        cookie = open_page(receiver.page)
        status, headers, page = fetch(receiver.page.split("?")[0], cookie=cookie)
        check(status == 200 and "default-src 'self'" in headers["Content-Security-Policy"], f"{status} {headers}")
        check(oct(os.stat(next(scratch.temporary.glob("photodrop-*"))).st_mode)[-3:] == "700", "the folder's mode")
        result = scratch.send(receiver.code, photo)
        check(result.returncode == 0 and receiver.wait() == 0, result.stderr)
        shown = "".join(receiver.lines[1:]) + receiver.error_text() + result.stdout + result.stderr
        for secret in secrets:
            for name, text in (("ps", arguments), ("the page", page.decode()), ("the output", shown)):
                check(secret not in text, f"the secret is in {name}")
        check(refuses(receiver.port), "the port still accepts connections")
        check(list(scratch.temporary.iterdir()) == [], f"left: {list(scratch.temporary.iterdir())}")


def in_terminal(scratch, rows, columns, arguments=(), **environment):
    """Runs `photodrop receive` at a terminal, and returns the lines of its QR code and the code's text."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    variables = scratch.environment(TERM="xterm-256color")
    variables.pop("NO_COLOR", None)
    variables.update(environment)
    process = subprocess.Popen(
        [PROGRAM, "receive", str(scratch.path / "received"), "--interface", "127.0.0.1", "--no-web", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=side, env=variables,
    )
    os.close(side)
    code = process.stdout.readline().decode().strip()
    text = b""
    while select.select([main], [], [], 1.0)[0]:
        try:
            text += os.read(main, 65536)
        except OSError:
            break
    process.send_signal(signal.SIGINT)
    process.wait(20)
    process.stdout.close()
    os.close(main)
    return [line for line in text.decode().replace("\r", "").split("\n") if line], code


def half_blocks(lines):
    """The characters that are black on white."""
    found = [re.fullmatch("\x1b\\[38;5;16;48;5;231m([ ▀▄█]*)\x1b\\[0m", line) for line in lines]
    return [match.group(1) for match in found if match]


def terminals():
    """Codes at terminals of several kinds"""
    with Scratch("17") as scratch:
        lines, code = in_terminal(scratch, 24, 80)
        blocks = half_blocks(lines)
        check(19 <= len(blocks) <= 23, f"{len(blocks)} lines")
        check(len(blocks) + 2 <= 24, "the code does not fit with its text")
        lines, code = in_terminal(scratch, 24, 80, NO_COLOR="1")
        check(any("##" in line for line in lines), f"NO_COLOR: {lines[:3]}")
        check("\x1b" not in "".join(lines), "NO_COLOR: there are escape sequences")
        lines, code = in_terminal(scratch, 60, 120, LC_ALL="C")
        check(any("##" in line for line in lines) and "█" not in "".join(lines), "without UTF-8")
        lines, code = in_terminal(scratch, 10, 20)
        check(any("too small" in line for line in lines), f"{lines}")
        lines, code = in_terminal(scratch, 24, 80, ["--quiet"])
        check(lines == [], f"--quiet: {lines}")
        receiver = scratch.receiver()
        check("█" not in receiver.error_text() and "##" not in receiver.error_text(), "no terminal, but a QR code")


def terminal_codes():
    """QR codes of terminals are read by zbarimg, and work"""
    need("zbarimg")
    with Scratch("2") as scratch:
        for rows, columns in ((24, 80), (50, 120)):
            lines, code = in_terminal(scratch, rows, columns)
            picture = terminal_picture(scratch.path / f"{rows}.png", half_blocks(lines))
            found = read_qr(picture)
            check(found, f"no code at {rows} rows")
            if rows == 50:
                check(found == code, f"{found} is not {code}")
            else:
                check(found.startswith("PHOTODROP:1:127.0.0.1:"), found)
        # One that is still valid, as a picture and as a text.
        receiver = scratch.receiver()
        for number, text in enumerate((receiver.code, receiver.compact)):
            shown = subprocess.run([PROGRAM, "code", "show", text], capture_output=True, text=True, check=True)
            picture = terminal_picture(scratch.path / "code.png", half_blocks(shown.stdout.split("\n")))
            check(read_qr(picture) == text, f"{read_qr(picture)} is not {text}")
            photo = photo_file(scratch.path / f"from/{number}.jpg", 1_000)
            result = subprocess.run(
                [PROGRAM, "send", "--qr", picture, photo], capture_output=True, text=True, env=scratch.environment()
            )
            check(result.returncode == 0, result.stderr)
        receiver.wait_saved(2)


def without_zbar():
    """Without zbarimg, send --qr names the package"""
    with Scratch("18") as scratch:
        photo = photo_file(scratch.path / "from/a.jpg", 1_000)
        receiver = scratch.receiver()
        result = subprocess.run(
            [PROGRAM, "send", "--qr", "code.png", photo], capture_output=True, text=True,
            env=scratch.environment(PATH="/nowhere"),
        )
        check(result.returncode == 64 and "zbar-tools" in result.stderr, f"{result.returncode} {result.stderr}")
        check(scratch.send(receiver.code, photo, PATH="/nowhere").returncode == 0, "the text does not work")


def codes():
    """Texts that are not codes are refused"""
    with Scratch("2.1") as scratch:
        photo = photo_file(scratch.path / "from/a.jpg", 1_000)
        for text, words in (("hello", "not a PhotoDrop code"), ("photodrop:2?u=x", "newer version")):
            result = scratch.send(text, photo)
            check(result.returncode == 65 and words in result.stderr, f"{result.returncode} {result.stderr}")
        receiver = scratch.receiver()
        note = scratch.path / "from/note.txt"
        note.write_text("not a photo")
        result = scratch.send(receiver.code, note, photo)
        check(result.returncode == 1 and "note.txt: neither a photo nor a video" in result.stderr, f"{result}")
        receiver.wait_saved(1)
        missing = scratch.send(receiver.code, scratch.path / "from/none.jpg")
        check(missing.returncode == 66 and "none.jpg: No such file" in missing.stderr, f"{missing}")


TESTS = [
    (1, twelve_photos), (2, terminal_codes), (2.1, codes), (8, duplicates), (8.1, recalling), (8.2, sending_again),
    (12, stripping), (12.1, resizing), (12.2, thumbnails_of_senders), (16, hygiene), (17, terminals),
    (18, without_zbar),
]
