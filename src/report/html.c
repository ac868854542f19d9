/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping, base64, built-in files. */
#include "report/html.h"

#include <string.h>

#include "base/mem.h"

void ew_html_text(FILE *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        const unsigned char c = (unsigned char)*p;
        switch (c) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            putc(c < 32 || c == 127 ? ' ' : c, out);
        }
    }
}

void ew_html_json(FILE *out, const char *json)
{
    for (const char *p = json; *p; p++) {
        if (*p == '<')
            fputs("\\u003c", out);
        else
            putc(*p, out);
    }
}

void ew_html_url(FILE *out, const char *text, size_t size)
{
    static const char plain[] = "-_.!~*(),;:@/?=+$";
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        const bool is_word =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (is_word || (c && strchr(plain, c)))
            putc(c, out);
        else
            fprintf(out, "%%%02X", c);
    }
}

void ew_html_base64(FILE *out, const void *data, size_t size)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i += 3) {
        const size_t n = size - i < 3 ? size - i : 3;
        const unsigned v = (unsigned)p[i] << 16 | (n > 1 ? (unsigned)p[i + 1] << 8 : 0) |
                           (n > 2 ? (unsigned)p[i + 2] : 0);
        putc(digit[v >> 18], out);
        putc(digit[v >> 12 & 63], out);
        putc(n > 1 ? digit[v >> 6 & 63] : '=', out);
        putc(n > 2 ? digit[v & 63] : '=', out);
    }
}

#define EW_EMBED(id, file, ...) static const unsigned char id##_bytes[] = {__VA_ARGS__};
#include "charts_embed.h"
#include "report_embed.h"
#undef EW_EMBED

const unsigned char *ew_asset(const char *file, size_t *size)
{
    static const struct {
        const char *file;
        const unsigned char *bytes;
        size_t size; /* without the 0 at the end */
    } assets[] = {
#define EW_EMBED(id, file, ...) {file, id##_bytes, sizeof(id##_bytes) - 1},
#include "charts_embed.h"
#include "report_embed.h"
#undef EW_EMBED
    };
    for (size_t i = 0; i < EW_COUNT(assets); i++)
        if (strcmp(assets[i].file, file) == 0) {
            *size = assets[i].size;
            return assets[i].bytes;
        }
    return NULL;
}
