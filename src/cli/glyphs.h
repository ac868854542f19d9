/* SPDX-License-Identifier: Apache-2.0 */
/* The font of drawn pictures. */
#ifndef EW_CLI_GLYPHS_H
#define EW_CLI_GLYPHS_H

#include <stdbool.h>

#define EW_GLYPH_W   5
#define EW_GLYPH_H   9
#define EW_GLYPH_CAP 7 /* rows above the baseline */

/* Whether the dot in column x and row y of a letter is set; letters outside ASCII look like '?'. */
bool ew_glyph_dot(char letter, int x, int y);

#endif
