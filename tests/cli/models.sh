#!/usr/bin/env bash
# The zoo and the trained networks, also as JSON.  With an empty cache, so that earlier downloads do not matter.
export XDG_CACHE_HOME=$PWD/cache
edgewise models | tee table
[ "$(edgewise models --json | grep -c '"name"')" -eq "$(grep -cvE '^(name|trained|studies:| |$)' table)" ]
