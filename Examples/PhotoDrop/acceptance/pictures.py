"""Pictures, drawn here, and QR codes in pictures."""

import math
import random
import struct
import subprocess
import zlib

TINY_JPEG = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffdb004300080606070605080707070909080a0c140d0c0b0b0c1912130f141d1a1f1e1d"
    "1a1c1c20242e2720222c231c1c2837292c30313434341f27393d38323c2e333432ffc0000b080001000101011100ffc4001f000001050101"
    "0101010100000000000000000102030405060708090a0bffc400b5100002010303020403050504040000017d010203000411051221314106"
    "13516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738393a434445464748494a535455"
    "565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9ba"
    "c2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9faffda0008010100003f00fbd3ffd9"
)


def photo_file(path, size, seed=0):
    """Writes a small JPEG that any program shows, with random bytes behind it up to a size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    start = TINY_JPEG
    path.write_bytes(start + random.Random(f"{path.name} {seed}").randbytes(max(0, size - len(start))))
    return path


def photo_files(folder, sizes, prefix="IMG_", seed=0):
    return [photo_file(folder / f"{prefix}{number:03}.jpg", size, seed) for number, size in enumerate(sizes, 1)]


def landscape(seed, width=320, height=240):
    """The rows of a drawn picture: a sky, a sun and hills."""
    dice = random.Random(seed)
    top = [dice.randint(30, 120), dice.randint(90, 160), dice.randint(170, 250)]
    bottom = [dice.randint(230, 255), dice.randint(150, 220), dice.randint(110, 190)]
    sun = (dice.uniform(0.2, 0.8) * width, dice.uniform(0.2, 0.45) * height, dice.uniform(14, 26))
    hills = [
        (0.45 + 0.16 * layer + dice.uniform(-0.04, 0.04), dice.uniform(1, 3), dice.uniform(0, 6),
         [int(part * (0.75 - 0.2 * layer)) for part in (dice.randint(60, 140), dice.randint(100, 170), dice.randint(80, 150))])
        for layer in range(3)
    ]
    lines = [
        [height * (level + 0.07 * math.sin(frequency * x * 6.28 / width + phase)) for x in range(width)]
        for level, frequency, phase, _ in hills
    ]
    rows = []
    for y in range(height):
        share = y / height
        sky = [int(a + (b - a) * share) for a, b in zip(top, bottom)]
        row = bytearray()
        for x in range(width):
            colour = sky
            if (x - sun[0]) ** 2 + (y - sun[1]) ** 2 < sun[2] ** 2:
                colour = [255, 244, 214]
            for line, hill in zip(lines, hills):
                if y > line[x]:
                    colour = hill[3]
            row += bytes(colour)
        rows.append(bytes(row))
    return rows


def corners(width=160, height=120):
    """The rows of a picture with a red corner at the top left and a blue one at the bottom right."""
    rows = []
    for y in range(height):
        row = bytearray()
        for x in range(width):
            if x < width // 3 and y < height // 3:
                row += bytes([220, 20, 20])
            elif x > 2 * width // 3 and y > 2 * height // 3:
                row += bytes([20, 20, 220])
            else:
                row += bytes([235, 235, 235])
        rows.append(bytes(row))
    return rows


def stored_for(rows, orientation):
    """Turns rows so that a viewer that follows the EXIF orientation shows them as they were."""
    width, height = len(rows[0]) // 3, len(rows)

    def pixel(x, y):
        return rows[y][3 * x:3 * x + 3]

    place = {
        1: lambda c, r: (c, r), 2: lambda c, r: (width - 1 - c, r),
        3: lambda c, r: (width - 1 - c, height - 1 - r), 4: lambda c, r: (c, height - 1 - r),
        5: lambda c, r: (r, c), 6: lambda c, r: (width - 1 - r, c),
        7: lambda c, r: (width - 1 - r, height - 1 - c), 8: lambda c, r: (r, height - 1 - c),
    }[orientation]
    columns, lines = (height, width) if orientation > 4 else (width, height)
    return [b"".join(pixel(*place(c, r)) for c in range(columns)) for r in range(lines)]


def exif(orientation, latitude=None):
    """An APP1 segment with an orientation, a date and, if wanted, a GPS position."""
    entries = [(0x0112, 3, 1, struct.pack(">HH", orientation, 0))]
    date = b"2026:11:21 10:00:00\0"
    count = 2 if latitude is None else 3
    data = 8 + 2 + 12 * count + 4
    exif_directory = data
    date_place = exif_directory + 2 + 12 + 4
    entries.append((0x8769, 4, 1, struct.pack(">I", exif_directory)))
    extra = struct.pack(">H", 1) + struct.pack(">HHII", 0x9003, 2, len(date), date_place) + struct.pack(">I", 0) + date
    if latitude is not None:
        gps = data + len(extra)
        values = gps + 2 + 24 + 4
        entries.append((0x8825, 4, 1, struct.pack(">I", gps)))
        extra += struct.pack(">H", 2)
        extra += struct.pack(">HHI4s", 1, 2, 2, b"N\0\0\0") + struct.pack(">HHII", 2, 5, 3, values)
        extra += struct.pack(">I", 0) + struct.pack(">IIIIII", int(latitude), 1, 51, 1, 30, 1)
    body = b"MM\0*\0\0\0\x08" + struct.pack(">H", count)
    body += b"".join(struct.pack(">HHI", tag, kind, number) + value for tag, kind, number, value in entries)
    body += struct.pack(">I", 0) + extra
    content = b"Exif\0\0" + body
    return b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content


def draw_jpeg(path, rows, orientation=None, latitude=None):
    """Writes rows of pixels as a JPEG, with vips."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ppm = path.with_suffix(".ppm")
    ppm.write_bytes(b"P6\n%d %d\n255\n" % (len(rows[0]) // 3, len(rows)) + b"".join(rows))
    subprocess.run(["vips", "jpegsave", ppm, path, "--Q", "90"], check=True, capture_output=True)
    ppm.unlink()
    if orientation is not None:
        data = path.read_bytes()
        path.write_bytes(data[:2] + exif(orientation, latitude) + data[2:])
    return path


def draw_png(path, rows):
    """Writes rows of RGB pixels as a PNG."""
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b""))
    return path


def terminal_picture(path, lines, scale=6):
    """Draws half blocks as a terminal does, black on white."""
    rows = []
    for line in lines:
        upper, lower = bytearray(), bytearray()
        for character in line:
            top, bottom = {" ": (255, 255), "▀": (0, 255), "▄": (255, 0), "█": (0, 0)}[character]
            upper += bytes([top] * 3 * scale)
            lower += bytes([bottom] * 3 * scale)
        rows += [bytes(upper)] * scale + [bytes(lower)] * scale
    return draw_png(path, rows)


def read_qr(path):
    result = subprocess.run(
        ["zbarimg", "--raw", "-q", "-Sdisable", "-Sqrcode.enable", path], capture_output=True, text=True
    )
    return result.stdout.strip()
