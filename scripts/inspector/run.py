#!/usr/bin/env python3
"""The acceptance tests of the inspector: real processes and Chromium. Only that of the mesh uses other
interfaces than the loopback interface.

Usage: scripts/inspector/run.py [NAME…]
Environment: LOVESEAT, the program; the default is that of a release build. INSPECTOR_SHOTS, where screenshots are kept.
"""

import sys
import tempfile
import time
import traceback
from pathlib import Path

from inspected import Failure, Folder
from browser import Browser
from harness import Skipped
import connections
import shots
import views

TESTS = [
    views.documents, views.document, views.conflicts, views.blobs, views.hostile, connections.peers, connections.mesh,
    shots.screenshots,
]


def main():
    failed = []
    for test in TESTS:
        if sys.argv[1:] and test.__name__ not in sys.argv[1:]:
            continue
        start = time.monotonic()
        title = (test.__doc__ or test.__name__).strip().splitlines()[0]
        try:
            with tempfile.TemporaryDirectory(prefix="loveseat-inspector-") as path, Folder(Path(path)) as folder:
                with Browser(1280, 860) as browser:
                    note = test(folder, browser) or ""
            result = "ok"
        except Skipped as reason:
            result, note = "SKIPPED", str(reason)
        except Failure as reason:
            result, note = "FAILED", str(reason)
            failed.append(test.__name__)
        except Exception:
            result, note = "FAILED", traceback.format_exc()
            failed.append(test.__name__)
        print(f"{test.__name__:12} {result:8} {time.monotonic() - start:6.1f} s  {title}  {note}", flush=True)
    if failed:
        print("failed: " + ", ".join(failed), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
