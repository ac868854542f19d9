#!/usr/bin/env bash
# Started by a program that ignores SIGCHLD, ends of child processes are still noticed.  Regression: a study failed
# after its first job, monitor waited forever.
env --ignore-signal=CHLD true 2>/dev/null || { echo "no env that ignores signals here" >&2; exit 77; }
printf '[a]\ncommand = bench\nnetwork = lenet5\niters = 1\nwarmup = 0\n' >s.study
env --ignore-signal=CHLD edgewise study s.study --db s.db >/dev/null 2>&1 || echo "exit $?"
edgewise results --db s.db --columns status
env --ignore-signal=CHLD timeout 60 edgewise monitor --json -- sh -c 'exit 3' 2>/dev/null | grep '"exit_status"'
