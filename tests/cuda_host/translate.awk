# Translates CUDA source for g++ (awk -f translate.awk FILE): launches, and declarations of shared memory.  All else is
# done by host_device.h.  Line numbers stay those of the file.
#
#   kernel<V, T><<<grid, block, shared, stream>>>(a, b)
#       ew_host::prepare("kernel", grid, block, shared, stream, [=](const auto &...ew_p) { kernel<V, T>(ew_p...); })(a, b)
#   __shared__ float sums[4], more[2];
#       static float sums[4], more[2]; EW_HOST_FRESH(sums); EW_HOST_FRESH(more);
#   extern __shared__ float4 memory[];
#       float4 *const memory = static_cast<float4 *>(ew_host::dynamic_shared);

{ text = text $0 "\n" }

END {
    gsub(/\\/, "\001", text) # so that no awk takes them for escapes
    text = shared(launches(text))
    gsub(/\001/, "\\", text)
    printf "#line 1 \"%s\"\n%s", FILENAME, text
}

function fail(what) {
    print FILENAME ": " what > "/dev/stderr"
    exit failed = 1
}

# Line ends of a piece of text that moves or is left out: they stay, so that lines keep their numbers.
function ends(s) {
    gsub(/[^\n]/, "", s)
    return s
}

# Start of the name, with template arguments, that ends at position `to` of s.
function start_of_name(s, to,    depth, c) {
    if (substr(s, to, 1) == ">") {
        do {
            c = substr(s, to, 1)
            depth += (c == ">") - (c == "<")
            to--
        } while (depth > 0 && to > 0)
    }
    while (to > 0 && substr(s, to, 1) ~ /[A-Za-z0-9_]/)
        to--
    return to + 1
}

function launches(s,    out, at, to, first, close_at, config, kernel, name) {
    while ((at = index(s, "<<<")) > 0) {
        to = at - 1
        while (substr(s, to, 1) ~ /[ \n]/)
            to--
        first = start_of_name(s, to)
        close_at = index(s, ">>>")
        if (first > to || close_at < at)
            fail("a launch that is not understood: " substr(s, at, 60))
        kernel = substr(s, first, to - first + 1)
        name = kernel
        gsub(/[ \n]+/, " ", name)
        config = substr(s, at + 3, close_at - at - 3)
        out = out substr(s, 1, first - 1) "ew_host::prepare(\"" name "\"," substr(s, to + 1, at - to - 1) config \
            ", [=](const auto &...ew_p) { " kernel "(ew_p...); })"
        s = substr(s, close_at + 3)
    }
    return out s
}

function shared(s,    out, at, end, rest, body, names, n, i, name, fresh, type) {
    while ((at = index(s, "__shared__")) > 0) {
        rest = substr(s, at + 10)
        end = end_of_statement(rest)
        body = substr(rest, 1, end - 1)
        if (substr(s, at - 7, 7) == "extern ") {
            name = type = body
            sub(/^ */, "", type)
            sub(/ [A-Za-z_]+\[\]$/, "", type)
            sub(/\[\]$/, "", name)
            sub(/^.* /, "", name)
            out = out substr(s, 1, at - 8) type " *const " name " = static_cast<" type " *>(ew_host::dynamic_shared);"
        } else {
            names = body
            gsub(/\n/, " ", names)
            gsub(/\{[^}]*\}/, "", names)
            gsub(/\([^()]*\)/, "", names)
            gsub(/\[[^]]*\]/, "", names)
            fresh = ""
            n = split(names, list, ",")
            for (i = 1; i <= n; i++) {
                name = list[i]
                sub(/ *$/, "", name)
                sub(/^.* /, "", name)
                fresh = fresh " EW_HOST_FRESH(" name ");"
            }
            out = out substr(s, 1, at - 1) "static" body ";" fresh
        }
        s = substr(rest, end + 1)
    }
    return out s
}

# Position of the semicolon that ends the statement, behind any braces.
function end_of_statement(s,    i, c, depth) {
    for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        depth += (c == "{") - (c == "}")
        if (c == ";" && depth == 0)
            return i
    }
    fail("shared memory without an end")
}
