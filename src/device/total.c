/* SPDX-License-Identifier: Apache-2.0 */
/* Which rails make up a board's power.  Adding a rail to the input that feeds it counts twice;
 * taking one rail of several for the whole counts too little.  So the profile decides where there
 * is one, and else only rules that hold for any board. */
#include <stdio.h>
#include <string.h>

#include "device/board.h"

static bool is_power(const struct ew_board *b, int i)
{
    return b->channels[i].quantity == EW_QUANTITY_POWER;
}

static const char *rail_name(const struct ew_board *b, int i)
{
    return b->channels[i].name + strlen("power.");
}

static void add_rail(struct ew_total_rule *out, int channel)
{
    if (out->n < (int)EW_COUNT(out->rails))
        out->rails[out->n++] = channel;
}

static bool add_named(const struct ew_board *b, const char *name, size_t n,
                      struct ew_total_rule *out)
{
    for (int i = 0; i < b->n_channels; i++) {
        const bool same =
            is_power(b, i) && strlen(rail_name(b, i)) == n && memcmp(rail_name(b, i), name, n) == 0;
        if (same)
            add_rail(out, i);
        if (same)
            return true;
    }
    return false;
}

/* All rails of the profile's sum that the board has; false where some are missing. */
static bool add_listed(const struct ew_board *b, const char *list, struct ew_total_rule *out)
{
    bool all = true;
    for (const char *p = list; *p;) {
        p += strspn(p, " ");
        const size_t n = strcspn(p, " ");
        if (n)
            all = add_named(b, p, n, out) && all;
        p += n;
    }
    return all;
}

static void by_profile(const struct ew_board *b, struct ew_total_rule *out)
{
    const struct ew_profile *profile = b->profile;
    if (!profile)
        return;
    if (profile->total)
        add_named(b, profile->total, strlen(profile->total), out);
    if (out->n == 0 && profile->sum)
        add_listed(b, profile->sum, out);
    out->covers = profile->covers ? profile->covers : "as the board's profile has it";
}

/* A log of an unknown board: some profile's rails are all there. */
static bool by_rails(const struct ew_board *b, struct ew_total_rule *out)
{
    for (int i = 0; i < b->n_profiles; i++) {
        const struct ew_profile *profile = &b->profiles[i];
        out->covers = profile->covers;
        if (profile->sum && add_listed(b, profile->sum, out))
            return true;
        out->n = 0;
    }
    return false;
}

static bool single(const struct ew_board *b, const char *name, const char *covers,
                   struct ew_total_rule *out)
{
    if (!add_named(b, name, strlen(name), out))
        return false;
    out->covers = covers;
    return true;
}

/* CPU packages, their memory and graphics cards do not overlap; cores are inside a package. */
static void parts(const struct ew_board *b, struct ew_total_rule *out)
{
    for (int i = 0; i < b->n_channels; i++) {
        if (!is_power(b, i))
            continue;
        const char *rail = rail_name(b, i);
        const bool gpu = strncmp(rail, "gpu", 3) == 0 && rail[3] >= '0' && rail[3] <= '9';
        if (gpu || strncmp(rail, "package-", 8) == 0 || strncmp(rail, "dram", 4) == 0)
            add_rail(out, i);
    }
    out->covers = "CPU packages, memory and graphics cards where listed; not the rest of the "
                  "machine";
}

static ew_err rails_text(const struct ew_board *b, struct ew_arena *a, struct ew_total_rule *out)
{
    char text[512] = "";
    size_t used = 0;
    for (int i = 0; i < out->n && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " + " : "",
                                 rail_name(b, out->rails[i]));
    out->text =
        ew_arena_strdup(a, out->n ? text : "no sensor measures the power of the whole board");
    EW_CHECK(out->text, EW_ERR_MEMORY, "no memory");
    return EW_OK;
}

ew_err ew_total_decide(const struct ew_board *b, struct ew_arena *a, struct ew_total_rule *out)
{
    *out = (struct ew_total_rule){.covers = "nothing"};
    if (!single(b, "meter", "what the external meter is connected to", out))
        by_profile(b, out);
    if (out->n == 0 && !single(b, "VDD_IN", "the module's input", out) &&
        !single(b, "POM_5V_IN", "the module's input", out) &&
        !single(b, "psys", "the platform (RAPL psys)", out) &&
        !single(b, "battery", "the machine, from its battery", out) && !by_rails(b, out))
        parts(b, out);
    if (out->n == 0)
        out->covers = "nothing";
    return rails_text(b, a, out);
}
