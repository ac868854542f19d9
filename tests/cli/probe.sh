#!/usr/bin/env bash
# Every captured board: its sensors, what is absent and why, and which rails make up its power.
for board in "$CASES"/../fixtures/boards/*/; do
    echo "== $(basename "$board")"
    edgewise probe --root "$board"
done
edgewise probe --root "$CASES/../fixtures/boards/agx-orin-jp6" \
    --tegrastats "$CASES/../fixtures/boards/agx-orin-jp6/captured/tegrastats.txt" | grep '#2'
edgewise probe --json --root "$CASES/../fixtures/boards/rpi4"
