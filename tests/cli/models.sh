#!/usr/bin/env bash
# The zoo and the trained networks, and the same as JSON.  A cache of its own: what somebody has fetched is no matter.
export XDG_CACHE_HOME=$PWD/cache
edgewise models | tee table
[ "$(edgewise models --json | grep -c '"name"')" -eq "$(grep -cvE '^(name|trained|studies:| |$)' table)" ]
