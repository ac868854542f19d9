#!/usr/bin/env bash
# The three forms of the version.
v=$(edgewise version | cut -d' ' -f2)
edgewise --version | grep -q "^edgewise $v "
edgewise version --json | grep -q "\"version\": \"$v\""
edgewise version -- | grep -q "^edgewise $v "
