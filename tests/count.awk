# Sums up a log of `ctest --verbose`: prints "PASSED FAILED SKIPPED", or with show=1 what failed and what
# was skipped.  Test programs print a line "ok NAME", "FAIL NAME" or "skip NAME: why" for each case; a
# program that fails without one (a crash, a time-out) counts as one failed case.
function last_lines(text, n,    line, from, i, out) {
    from = split(text, line, "\n") - n
    if (from > 1)
        out = "  ...\n"
    for (i = from > 1 ? from : 1; i in line; i++)
        if (line[i] != "")
            out = out line[i] "\n"
    return out
}
match($0, /^[0-9]+: /) {
    id = substr($0, 1, RLENGTH - 2) + 0
    text = substr($0, RLENGTH + 1)
    if (text ~ /^(Test command|Working Directory|Environment variables|Test timeout)/)
        next
    if (text ~ /^ok /) {
        passed++; cases[id]++
    } else if (text ~ /^FAIL /) {
        failed++; cases[id]++; fails[id]++
    } else if (text ~ /^skip /) {
        skipped++; cases[id]++
        gsub(/\/[^ ]*\/ew_test\.[A-Za-z0-9]+\//, "", text)
        if (show)
            print text
    }
    # The lines since the last good case are the ones that tell.
    if (text ~ /^(ok|skip) /)
        kept[id] = ""
    else if (length(kept[id]) < 20000)
        kept[id] = kept[id] "  " text "\n"
    if (text ~ /^FAIL /) {
        shown[id] = shown[id] kept[id]
        kept[id] = ""
    }
}
/^ *[0-9]+\/[0-9]+ Test +#[0-9]+:/ {
    split($0, part, "#"); id = part[2] + 0
    name = part[2]; sub(/^[0-9]+: /, "", name); sub(/ .*/, "", name)
    if ($0 ~ /Passed/) {
        if (!cases[id])
            passed++
    } else if ($0 ~ /\*\*\*Skipped/) {
        if (!cases[id]) {
            skipped++
            if (show)
                print "skip " name
        }
    } else {
        how = $0; sub(/.*\*\*\*/, "", how)
        if (!fails[id]) {
            failed++
            shown[id] = kept[id] "FAIL " name ": " how "\n"
        }
        if (show)
            printf "%s: %s:\n%s", preset, name, last_lines(shown[id], 40)
    }
}
END {
    if (passed + failed + skipped == 0) {
        failed = 1
        if (show)
            print preset ": FAIL: no test was run"
    }
    if (!show)
        print passed + 0, failed + 0, skipped + 0
}
