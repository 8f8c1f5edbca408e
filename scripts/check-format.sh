#!/usr/bin/env bash
# Fails if a Swift file is not formatted, or a public declaration has no documentation.
set -euo pipefail
cd "$(dirname "$0")/.."
swift format lint --strict --recursive --parallel Sources Tests Package.swift \
    Examples/*/Sources Examples/*/Tests Examples/*/Package.swift
