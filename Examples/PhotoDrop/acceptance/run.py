#!/usr/bin/env python3
"""The acceptance tests of PhotoDrop: real processes, on this computer's loopback interface only.

Usage: acceptance/run.py [NUMBER…]
Environment: PHOTODROP and LOVESEAT, the programs; the default is that of a release build.
"""

import sys
import time
import traceback

import basics
import capacity
import couchdb
import events
import failures
import hostile
import options
import pages
import recorded
from harness import Failure, Skipped

TESTS = sorted(
    [(number, test) for module in (basics, capacity, couchdb, events, failures, hostile, options, pages, recorded) for number, test in module.TESTS],
    key=lambda entry: entry[0],
)


def main():
    wanted = {float(argument) for argument in sys.argv[1:]}
    failed, skipped, passed = [], [], 0
    for number, test in TESTS:
        if wanted and number not in wanted and int(number) not in wanted:
            continue
        start = time.monotonic()
        title = (test.__doc__ or test.__name__).strip().splitlines()[0]
        try:
            note = test() or ""
            result = "ok"
            passed += 1
        except Skipped as reason:
            result, note = "SKIPPED", str(reason)
            skipped.append(number)
        except Failure as reason:
            result, note = "FAILED", str(reason)
            failed.append(number)
        except Exception:
            result, note = "FAILED", traceback.format_exc()
            failed.append(number)
        print(f"{number:>4g} {result:8} {time.monotonic() - start:6.1f} s  {title}  {note}", flush=True)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    if skipped:
        print("*** NOT TESTED: " + ", ".join(f"{number:g}" for number in skipped), file=sys.stderr)
    if failed:
        print("failed: " + ", ".join(f"{number:g}" for number in failed), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
