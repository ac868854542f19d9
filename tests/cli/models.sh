#!/usr/bin/env bash
# The zoo, and the same as JSON.
edgewise models
[ "$(edgewise models --json | grep -c '"name"')" -eq "$(edgewise models | tail -n +2 | wc -l)" ]
