#!/usr/bin/env bash
# The version in its three forms.
v=$(edgewise version | cut -d' ' -f2)
edgewise --version | grep -q "^edgewise $v "
edgewise version --json | grep -q "\"version\": \"$v\""
edgewise version -- | grep -q "^edgewise $v "
