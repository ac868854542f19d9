/* SPDX-License-Identifier: Apache-2.0 */
/* Titles of columns, word by word. */
#include "advise/measured_title.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"

#define WORD_CHARS 16

enum role { QUANTITY, UNIT, FILLER };

/* The kinds of units. */
enum kind { NO_UNIT, OF_CLOCK, OF_TIME, OF_POWER };

static const enum kind kinds[EW_MEASURED_QUANTITIES] = {
    [EW_MEASURED_CORES] = NO_UNIT, [EW_MEASURED_CPU] = OF_CLOCK, [EW_MEASURED_GPU] = OF_CLOCK,
    [EW_MEASURED_MEM] = OF_CLOCK,  [EW_MEASURED_TIME] = OF_TIME, [EW_MEASURED_POWER] = OF_POWER};

static const struct word {
    const char *text;
    enum role role;
    int what; /* enum ew_measured_quantity or enum kind */
    double by;
} words[] = {
    {"cores", QUANTITY, EW_MEASURED_CORES, 0},
    {"core", QUANTITY, EW_MEASURED_CORES, 0},
    {"cpu", QUANTITY, EW_MEASURED_CPU, 0},
    {"gpu", QUANTITY, EW_MEASURED_GPU, 0},
    {"mem", QUANTITY, EW_MEASURED_MEM, 0},
    {"memory", QUANTITY, EW_MEASURED_MEM, 0},
    {"emc", QUANTITY, EW_MEASURED_MEM, 0},
    {"time", QUANTITY, EW_MEASURED_TIME, 0},
    {"epoch", QUANTITY, EW_MEASURED_TIME, 0},
    {"step", QUANTITY, EW_MEASURED_TIME, 0},
    {"minibatch", QUANTITY, EW_MEASURED_TIME, 0},
    {"duration", QUANTITY, EW_MEASURED_TIME, 0},
    {"power", QUANTITY, EW_MEASURED_POWER, 0},
    {"hz", UNIT, OF_CLOCK, 1e-6},
    {"khz", UNIT, OF_CLOCK, 1e-3},
    {"mhz", UNIT, OF_CLOCK, 1},
    {"ghz", UNIT, OF_CLOCK, 1e3},
    {"us", UNIT, OF_TIME, 1e-6},
    {"ms", UNIT, OF_TIME, 1e-3},
    {"s", UNIT, OF_TIME, 1},
    {"sec", UNIT, OF_TIME, 1},
    {"seconds", UNIT, OF_TIME, 1},
    {"min", UNIT, OF_TIME, 60},
    {"h", UNIT, OF_TIME, 3600},
    {"mw", UNIT, OF_POWER, 1e-3},
    {"w", UNIT, OF_POWER, 1},
    {"watts", UNIT, OF_POWER, 1},
    {"freq", FILLER, 0, 0},
    {"frequency", FILLER, 0, 0},
    {"clock", FILLER, 0, 0},
    {"active", FILLER, 0, 0},
    {"online", FILLER, 0, 0},
    {"num", FILLER, 0, 0},
    {"number", FILLER, 0, 0},
    {"of", FILLER, 0, 0},
    {"in", FILLER, 0, 0},
    {"per", FILLER, 0, 0},
    {"avg", FILLER, 0, 0},
    {"average", FILLER, 0, 0},
    {"mean", FILLER, 0, 0},
    {"median", FILLER, 0, 0},
    {"total", FILLER, 0, 0},
    {"board", FILLER, 0, 0},
};

static const struct word *find(const char *text)
{
    for (size_t i = 0; i < EW_COUNT(words); i++)
        if (strcmp(words[i].text, text) == 0)
            return &words[i];
    return NULL;
}

/* The next run of letters and digits, in lower case; NULL at the end.  One that is too long for any
 * word is cut. */
static const char *next_word(const char *at, char *out)
{
    int n = 0;
    while (*at && !isalnum((unsigned char)*at))
        at++;
    if (!*at)
        return NULL;
    for (; isalnum((unsigned char)*at); at++)
        if (n < WORD_CHARS - 1)
            out[n++] = (char)tolower((unsigned char)*at);
    out[n] = '\0';
    return at;
}

/* "cpu cores" are cores and "epoch time" is a time; of other pairs nobody knows what is meant. */
static bool join(int *is, int word)
{
    if (*is < 0 || *is == word || (*is == EW_MEASURED_CPU && word == EW_MEASURED_CORES)) {
        *is = word;
        return true;
    }
    return *is == EW_MEASURED_CORES && word == EW_MEASURED_CPU;
}

bool ew_measured_title(const char *title, struct ew_measured_title *out)
{
    char text[WORD_CHARS];
    int is = -1;
    const struct word *unit = NULL;
    for (const char *at = title; (at = next_word(at, text));) {
        const struct word *w = find(text);
        if (!w || (w->role == UNIT && unit))
            return false;
        if (w->role == UNIT)
            unit = w;
        if (w->role == QUANTITY && !join(&is, w->what))
            return false;
    }
    if (is < 0 || (unit && unit->what != (int)kinds[is]))
        return false;
    out->is = (enum ew_measured_quantity)is;
    out->by = unit ? unit->by : kinds[is] == NO_UNIT ? 1 : 0;
    return true;
}

double ew_measured_unit(enum ew_measured_quantity q, double most)
{
    if (kinds[q] == OF_POWER)
        return most >= 500 ? 1e-3 : 1;
    if (kinds[q] == OF_TIME)
        return 1;
    return most >= 2e7 ? 1e-6 : most >= 2e4 ? 1e-3 : most >= 20 ? 1 : 1e3;
}
