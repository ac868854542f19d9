#!/usr/bin/env bash
# The totals at the end of `./run test` are right: cases are counted one by one, a program that crashes or hangs counts
# as failed, a log without tests is a failure.
# usage: check_count.sh SOURCE_DIR
set -euo pipefail
count=$1/tests/count.awk
status=0

expect() {
    local got
    got=$(awk -f "$count")
    if [ "$got" = "$2" ]; then
        echo "ok count: $1"
    else
        echo "counted $got, expected $2"
        echo "FAIL count: $1"
        status=1
    fi
}

expect "cases of two programs that run at once" "3 1 1" <<'END'
1: Test command: /x/test_a
2: Test command: /x/test_b
1: ok first
2: ok other
1: a.c:3: in second: 1 == 2: 1, 2
1: FAIL second
2: skip third: no such thing here
2: ok fourth
1/2 Test #1: base/a ...........................***Failed    0.00 sec
2/2 Test #2: base/b ...........................   Passed    0.00 sec
END
expect "a crash after a good case" "1 1 0" <<'END'
1: ok first
1/1 Test #1: base/a ...........................***Exception: SegFault  0.10 sec
END
expect "a time-out without a word" "0 1 0" <<'END'
 1/12 Test  #3: base/a ...........................***Timeout 600.02 sec
END
expect "a program of one case" "1 0 0" <<'END'
12/12 Test #12: base/a ...........................   Passed    0.00 sec
END
expect "a program that skips itself" "0 0 1" <<'END'
1/1 Test #1: base/a ...........................***Skipped   0.00 sec
END
expect "a failure after all cases were good" "1 1 0" <<'END'
1: ok first
1: SUMMARY: AddressSanitizer: 8 byte(s) leaked in 1 allocation(s).
1/1 Test #1: base/a ...........................***Failed    0.10 sec
END
expect "no tests" "0 1 0" </dev/null
exit $status
