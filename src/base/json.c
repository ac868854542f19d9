/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer (RFC 8259). */
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"
#include "base/utf8.h"

#define MAX_DEPTH 64 /* bits of the level masks */

static uint64_t level(const struct ew_json *j)
{
    return (uint64_t)1 << (j->depth - 1);
}

void ew_json_init(struct ew_json *j, FILE *out)
{
    *j = (struct ew_json){.out = out};
}

void ew_json_init_text(struct ew_json *j, char **text)
{
    *j = (struct ew_json){.text = text};
    *text = NULL;
    j->out = open_memstream(&j->mem, &j->mem_size);
    if (!j->out)
        j->err = ew_fail(EW_ERR_MEMORY, "no memory for JSON text");
}

static void put_escaped(FILE *out, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    const char *p = c ? strchr(from, c) : NULL;
    if (p)
        fprintf(out, "\\%c", to[p - from]);
    else
        fprintf(out, "\\u%04x", c);
}

static void put_string(FILE *out, const char *text)
{
    putc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        const int n = ew_utf8_length(s, 4); /* stops at the NUL */
        if (n == 0)
            fputs("\\ufffd", out); /* replacement character for invalid bytes */
        else if (n == 1 && (*s < 0x20 || *s == '"' || *s == '\\' || *s == 0x7f))
            put_escaped(out, *s);
        else if (ew_utf8_is_control(s, n)) /* could control a terminal */
            fprintf(out, "\\u%04x",
                    n == 2 ? (s[0] & 0x1f) << 6 | (s[1] & 0x3f)
                           : (s[0] & 0xf) << 12 | (s[1] & 0x3f) << 6 | (s[2] & 0x3f));
        else
            fwrite(s, 1, (size_t)n, out);
        s += n ? n : 1;
    }
    putc('"', out);
}

static void new_line(struct ew_json *j)
{
    if (!j->compact)
        fprintf(j->out, "\n%*s", 2 * j->depth, "");
}

/* Writes comma, line break and key before a value; false after an earlier failure. */
static bool before_value(struct ew_json *j, const char *key)
{
    if (j->err != EW_OK)
        return false;
    const bool in_object = j->depth > 0 && !(j->arrays & level(j));
    if (in_object != (key != NULL)) {
        j->err = ew_fail(EW_ERR_INTERNAL, "JSON value with%s a key where it must%s have one",
                         key ? "" : "out", key ? " not" : "");
        return false;
    }
    if (j->depth > 0) {
        if (j->filled & level(j))
            putc(',', j->out);
        j->filled |= level(j);
        new_line(j);
    }
    if (key) {
        put_string(j->out, key);
        fputs(j->compact ? ":" : ": ", j->out);
    }
    return true;
}

static void open_level(struct ew_json *j, const char *key, bool array)
{
    if (!before_value(j, key))
        return;
    if (j->depth == MAX_DEPTH) {
        j->err = ew_fail(EW_ERR_LIMIT, "JSON nested deeper than %d levels", MAX_DEPTH);
        return;
    }
    putc(array ? '[' : '{', j->out);
    j->depth++;
    j->arrays = array ? j->arrays | level(j) : j->arrays & ~level(j);
    j->filled &= ~level(j);
}

void ew_json_object(struct ew_json *j, const char *key)
{
    open_level(j, key, false);
}

void ew_json_array(struct ew_json *j, const char *key)
{
    open_level(j, key, true);
}

void ew_json_end(struct ew_json *j)
{
    if (j->err != EW_OK)
        return;
    if (j->depth == 0) {
        j->err = ew_fail(EW_ERR_INTERNAL, "JSON end without a beginning");
        return;
    }
    const bool array = (j->arrays & level(j)) != 0, filled = (j->filled & level(j)) != 0;
    j->depth--;
    if (filled)
        new_line(j);
    putc(array ? ']' : '}', j->out);
}

static void put_plain(struct ew_json *j, const char *key, const char *text)
{
    if (before_value(j, key))
        fputs(text, j->out);
}

void ew_json_str(struct ew_json *j, const char *key, const char *value)
{
    if (!value)
        put_plain(j, key, "null");
    else if (before_value(j, key))
        put_string(j->out, value);
}

void ew_json_int(struct ew_json *j, const char *key, int64_t value)
{
    if (before_value(j, key))
        fprintf(j->out, "%lld", (long long)value);
}

void ew_json_num(struct ew_json *j, const char *key, double value)
{
    char text[EW_NUM_CHARS] = "null";
    if (isfinite(value))
        ew_num_text(value, text);
    put_plain(j, key, text);
}

void ew_json_bool(struct ew_json *j, const char *key, bool value)
{
    put_plain(j, key, value ? "true" : "false");
}

void ew_json_null(struct ew_json *j, const char *key)
{
    put_plain(j, key, "null");
}

ew_err ew_json_finish(struct ew_json *j)
{
    if (j->err == EW_OK && j->depth != 0)
        j->err = ew_fail(EW_ERR_INTERNAL, "JSON with %d levels still open", j->depth);
    if (!j->out)
        return j->err;
    if (j->err == EW_OK)
        putc('\n', j->out);
    const bool flushed = fflush(j->out) == 0 && !ferror(j->out);
    if (j->err == EW_OK && !flushed)
        j->err = ew_fail(EW_ERR_IO, "writing JSON: %s", strerror(errno));
    if (j->text) {
        if (!ew_memstream_close(j->out, &j->mem) && j->err == EW_OK)
            j->err = ew_fail(EW_ERR_MEMORY, "no memory for JSON text");
        if (j->err == EW_OK)
            *j->text = j->mem;
        else
            free(j->mem);
    }
    j->out = NULL;
    return j->err;
}
