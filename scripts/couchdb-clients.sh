#!/usr/bin/env bash
# Runs real CouchDB clients against a listener that the built `loveseat` serves: six from PyPI, and PouchDB 2.2.3 in Node. Installs them
# beside the build. Prints `N passed, N failed`, and fails if a check fails that is not in scripts/couchdb-clients/expected.txt, or if one
# passes that is.
#   scripts/couchdb-clients.sh             after `swift build -c release`
#   scripts/couchdb-clients.sh cloudant    one client
set -euo pipefail
cd "$(dirname "$0")/.."
home=.build/couchdb-clients
if [ ! -e "$home/ready" ]; then
    rm -rf "$home"
    python3 -c 'import ensurepip, venv' 2> /dev/null || scripts/install-dependencies.sh python3-venv
    python3 -m venv "$home"
    pip=("$home/bin/pip" --quiet --disable-pip-version-check)
    "${pip[@]}" install couchdb==1.2 pycouchdb==1.17.1 cloudant==2.15.0 ibmcloudant==0.11.12 aiocouch==4.0.1 couchdb3==3.5.0
    # Its setup needs an old setuptools, even to download it.
    echo 'setuptools<58' > "$home/constraints.txt"
    PIP_CONSTRAINT="$PWD/$home/constraints.txt" "${pip[@]}" download --no-deps --no-binary :all: -d "$home" Python-PouchDB==0.4.1
    tar -xzf "$home/Python-PouchDB-0.4.1.tar.gz" -C "$home"
    touch "$home/ready"
fi
command -v node > /dev/null || scripts/install-dependencies.sh nodejs
exec "$home/bin/python" scripts/couchdb-clients/run.py "$home" "$@"
