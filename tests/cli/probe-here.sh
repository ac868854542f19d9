#!/usr/bin/env bash
# This machine, whatever it has; a capture of it is read back as the same board.
edgewise probe >text
edgewise probe --json >json
grep -q '^mem.total ' text
grep -q '"name": "cpu.load"' json
edgewise probe --capture board >captured
grep -q 'files in board' captured
edgewise probe --root board >again
diff <(sed -n 's/^\([a-z].*\)  .*$/\1/p' text | cut -c1-28 | grep -v -e '^power ' -e '^energy.' -e '^power\.') \
    <(sed -n 's/^\([a-z].*\)  .*$/\1/p' again | cut -c1-28 | grep -v -e '^power ' -e '^energy.' -e '^power\.')
if edgewise probe --capture board 2>error; then exit 1; fi
grep -q 'board: is not an empty folder' error
