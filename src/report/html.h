/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping text for pages, and the files that are built into the program. */
#ifndef EW_REPORT_HTML_H
#define EW_REPORT_HTML_H

#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* Escaped for elements and for attributes in double quotes; control characters become blanks. */
void ew_html_text(FILE *out, const char *text);

/* Percent-encodes for a URL "data:text/csv,...": shorter than base64 for tables of numbers. */
void ew_html_url(FILE *out, const char *text, size_t size);
/* JSON text as the content of a <script>: no '<' is left in it. */
void ew_html_json(FILE *out, const char *json);

void ew_html_base64(FILE *out, const void *data, size_t size);

/* "style.css", "page.js", "live.js", "graph.js", "graph_style.css", "echarts.js.gz"; NULL: not
 * built in. */
const unsigned char *ew_asset(const char *file, size_t *size);

#endif
