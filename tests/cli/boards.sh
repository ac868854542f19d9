#!/usr/bin/env bash
# The built-in boards, from documents.
edgewise boards
edgewise boards agx-xavier
edgewise boards agx-orin | tail -n 5
edgewise boards jetson-nano --json
edgewise boards nothing 2>error || echo "exit $?"
cat error
edgewise boards show agx-xavier --modes | sed -n '1,3p;$p'
edgewise boards --modes 2>error || echo "exit $?"
cat error
edgewise boards nano 2>&1 || echo "exit $?"
