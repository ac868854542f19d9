# Pages of the C interface from its headers: awk -f docs/api.awk include/*.h >api.md
# A header is sections ("/* ---- Name ---- */"), comments, and the declarations that a comment stands over up to the
# next blank line.  A function without a comment is named on standard error, and the status is 1.

# What was collected: the comment as text, the declarations as they are, a heading of the names in them.
function flush(   names) {
    if (code == "") {
        if (text != "" && intro) printf "%s\n\n", text
        text = ""
        return
    }
    names = named(code)
    if (names != "") printf "### %s\n\n", names
    if (text != "") printf "%s\n\n", text
    else if (exported) {
        printf "%s: no comment over: %s", name, code > "/dev/stderr"
        bad = 1
    }
    printf "```c\n%s```\n\n", code
    code = text = exported = ""
}

# `ew_a`, `ew_b`: functions, or the struct that is declared.
function named(c,   out, rest) {
    rest = c
    while (match(rest, /ew_[a-z0-9_]+\(/)) {
        out = out (out == "" ? "" : ", ") "`" substr(rest, RSTART, RLENGTH - 1) "`"
        rest = substr(rest, RSTART + RLENGTH)
    }
    if (out == "" && match(c, /(struct|enum) ew_[a-z0-9_]+/)) out = "`" substr(c, RSTART, RLENGTH) "`"
    return out
}

# One line of a comment, without its marks.
function plain(line) {
    sub(/^[ \t]*\/\*[ \t]?/, "", line)
    sub(/^[ \t]*\*[ \t]?/, "", line)
    sub(/[ \t]*\*\/[ \t]*$/, "", line)
    return line == "/" ? "" : line
}

BEGIN { print "# The C interface\n\nMade from the headers by `docs/api.awk`; `pkg-config --cflags --libs edgewise` links it.\n" }
FNR == 1 {
    flush()
    intro = 1
    name = FILENAME
    sub(/.*\//, "", name)
    printf "# %s\n\n", name
}
/^\/\* SPDX|^\/\* clang-format/ { next }
/^\/\* ---- .* -+ *\*\/$/ {
    flush()
    intro = 0
    title = $0
    gsub(/^\/\* -+ | -+ *\*\/$/, "", title)
    printf "## %s\n\n", title
    next
}
/^\/\*/ && !comment {
    flush()
    comment = 1
}
comment {
    line = plain($0)
    text = text (text == "" || line == "" ? "" : (text ~ /\n$/ ? "" : " ")) (line == "" ? "\n\n" : line)
    if ($0 ~ /\*\/[ \t]*$/) {
        comment = 0
        gsub(/[ \n]+$/, "", text)
    }
    next
}
/^#(if|endif|else|ifndef|ifdef|include|undef)/ || /^#define (EDGEWISE|EW_API)/ || /^extern "C"/ { next }
/^[ \t]*$/ {
    if (!brace) flush()
    else code = code "\n"
    next
}
/^}$/ && !brace { next } # of extern "C"
{
    line = $0
    intro = 0
    brace += gsub(/{/, "{") - gsub(/}/, "}")
    exported = exported || sub(/^EW_API /, "", line)
    code = code line "\n"
}
END {
    flush()
    exit bad
}
