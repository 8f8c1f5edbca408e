#!/usr/bin/env bash
# Formats every Swift file in place.
set -euo pipefail
cd "$(dirname "$0")/.."
swift format --in-place --recursive --parallel Sources Tests Package.swift \
    Examples/PhotoDrop/Sources Examples/PhotoDrop/Tests Examples/PhotoDrop/Package.swift
