#!/usr/bin/env bash
# Formats every Swift file in place.
set -euo pipefail
cd "$(dirname "$0")/.."
swift format --in-place --recursive --parallel Sources Tests Package.swift \
    Examples/*/Sources Examples/*/Tests Examples/*/Package.swift
