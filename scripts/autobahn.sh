#!/usr/bin/env bash
# Runs the Autobahn test-suite, all cases but compression, against both ends of the WebSocket: an echo server and an echo
# client over what the listener and the replicator use. Installs the suite from PyPI beside the build.
#   scripts/autobahn.sh             after `swift build --build-tests -c release`
#   CASES="6.2 7.9" scripts/autobahn.sh
set -euo pipefail
cd "$(dirname "$0")/.."
home=.build/autobahn
if [ ! -e "$home/ready" ]; then
    rm -rf "$home"
    python3 -c 'import ensurepip, venv' 2> /dev/null || scripts/install-dependencies.sh python3-venv
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet --disable-pip-version-check autobahn==26.10.2 twisted==26.10.0 fissix==24.4.24
    "$home/bin/pip" install --quiet --disable-pip-version-check --no-deps autobahntestsuite==25.10.1
    # The cases are Python 2: strings of bytes, which are read as Latin-1; classic classes; integer division. Those of
    # compression go.
    cp -r "$("$home/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/autobahntestsuite/case" "$home/case"
    for file in "$home"/case/*.py; do
        { echo '# -*- coding: latin-1 -*-'; sed -E '1,2{/coding/d}' "$file"; } > "$home/file" && mv "$home/file" "$file"
    done
    sed -i -E '/case1[23]|Case1[23]/d' "$home/case/__init__.py"
    "$home/bin/python" -W ignore -m fissix -w -n --no-diffs "$home/case" > /dev/null 2>&1
    sed -i 's/(object, Case, )/(Case, )/' "$home"/case/*.py
    sed -i 's/len(self.payload) \//len(self.payload) \/\//' "$home/case/case10_1_1.py"
    sed -i '/import implements$/d; /^ *implements(/d' "$home/case/case9_9_1.py"
    touch "$home/ready"
fi
echo=.build/release/WebSocketEcho
run() { PYTHONPATH="$home" "$home/bin/python" scripts/autobahn/cases.py "$@"; }

echo "The server:"
coproc SERVER { exec "$echo" server; }
trap 'kill "$SERVER_PID" 2> /dev/null' EXIT
read -r port <&"${SERVER[0]}"
run server "$port"
echo "The client:"
run client "$echo" client
