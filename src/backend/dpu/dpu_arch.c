/* SPDX-License-Identifier: Apache-2.0 */
/* Table of DPU sizes and boards, from data sheets, and the parser of device names. */
#include "backend/dpu/dpu_arch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* clang-format off */
/* From PG338: parallelism; on-chip buffers (two image groups, weights) in KiB; DSP48 slices with
 * low DSP usage and BRAM36 with low RAM usage (table 9, without depthwise units). */
const struct ew_dpu_arch ew_dpu_archs[] = {
    /*  name  pp icp ocp  image weight  dsp bram */
    {"B512",  4,  8,  8, 128, 128,  66,  72},
    {"B800",  4, 10, 10, 160, 200, 102,  90},
    {"B1024", 8,  8,  8, 256, 128, 130, 104},
    {"B1152", 4, 12, 12, 192, 288, 146, 121},
    {"B1600", 8, 10, 10, 320, 200, 202, 126},
    {"B2304", 8, 12, 12, 384, 288, 290, 165},
    {"B3136", 8, 14, 14, 448, 392, 394, 208},
    {"B4096", 8, 16, 16, 512, 512, 514, 255},
};

/* Chips from data sheets.  DPUs as in the vendor's images: Vitis AI 3.0 for ZCU102, ZCU104 and
 * KV260; the board maker's for Ultra96-V2, for which others exist.  Idle power of the ZCU104:
 * QuTiBench's base load.  Host time per image: on the KV260 the published time with one thread
 * minus that with several; on the ZCU104 the published time with one thread minus the KV260's DPU
 * time; assumed as on the ZCU104 for the other boards. */
const struct ew_dpu_board ew_dpu_boards[] = {
    {"zcu102",  "Xilinx ZCU102",   "B4096", 3, 281, 19.2, 0,   0.57, 2520, 912,  0},
    {"zcu104",  "Xilinx ZCU104",   "B4096", 2, 300, 19.2, 9.2, 0.57, 1728, 312, 96},
    {"kv260",   "Kria KV260",      "B4096", 1, 300, 19.2, 0,   0.49, 1248, 144, 64},
    {"ultra96", "Avnet Ultra96-V2", "B2304", 1, 200, 8.5, 0,   0.57,  360, 216,  0},
};
/* clang-format on */

const int ew_dpu_n_archs = (int)EW_COUNT(ew_dpu_archs);
const int ew_dpu_n_boards = (int)EW_COUNT(ew_dpu_boards);

#define DEFAULT_BOARD 1 /* zcu104, the board of the study */

static const struct ew_dpu_arch *find_arch(const char *name, size_t chars)
{
    for (int i = 0; i < ew_dpu_n_archs; i++)
        if (strlen(ew_dpu_archs[i].name) == chars &&
            strncasecmp(ew_dpu_archs[i].name, name, chars) == 0)
            return &ew_dpu_archs[i];
    return NULL;
}

static const struct ew_dpu_board *find_board(const char *name, size_t chars)
{
    for (int i = 0; i < ew_dpu_n_boards; i++)
        if (strlen(ew_dpu_boards[i].name) == chars &&
            strncasecmp(ew_dpu_boards[i].name, name, chars) == 0)
            return &ew_dpu_boards[i];
    return NULL;
}

static void take_board(const struct ew_dpu_board *b, struct ew_dpu_config *out)
{
    *out = (struct ew_dpu_config){.arch = find_arch(b->arch, strlen(b->arch)),
                                  .board = b,
                                  .cores = b->cores,
                                  .clock_mhz = b->clock_mhz,
                                  .ddr_gb_s = b->ddr_gb_s};
}

/* One setting, e.g. "cores=2"; its value is a number in [least, most]. */
static ew_err take_setting(const char *text, size_t chars, struct ew_dpu_config *out)
{
    const struct {
        const char *name;
        double least, most;
    } known[] = {{"cores=", 1, 16}, {"clock=", 10, 2000}, {"ddr=", 0.1, 1000}};
    for (size_t i = 0; i < EW_COUNT(known); i++) {
        const size_t name = strlen(known[i].name);
        if (chars <= name || strncmp(text, known[i].name, name) != 0)
            continue;
        char *end;
        const double v = strtod(text + name, &end);
        EW_CHECK(end == text + chars && v >= known[i].least && v <= known[i].most, EW_ERR_USAGE,
                 "%.*s is not a number from %g to %g", (int)chars, text, known[i].least,
                 known[i].most);
        if (i == 0)
            out->cores = (int)v;
        else
            *(i == 1 ? &out->clock_mhz : &out->ddr_gb_s) = v;
        return EW_OK;
    }
    return ew_fail(EW_ERR_USAGE,
                   "%.*s is neither a size (B512, B800, B1024, B1152, B1600, B2304, B3136, B4096), "
                   "a board (zcu102, zcu104, kv260, ultra96) nor cores=, clock= or ddr=",
                   (int)chars, text);
}

ew_err ew_dpu_config_parse(const char *arguments, struct ew_dpu_config *out)
{
    take_board(&ew_dpu_boards[DEFAULT_BOARD], out);
    bool first = true;
    for (const char *at = arguments; *at; first = false) {
        const size_t chars = strcspn(at, ",");
        const struct ew_dpu_arch *arch = find_arch(at, chars);
        const struct ew_dpu_board *board = find_board(at, chars);
        if (arch)
            out->arch = arch;
        if (board) {
            EW_CHECK(first, EW_ERR_USAGE, "%s comes first: the rest changes what the board has",
                     board->name);
            take_board(board, out);
        }
        if (!arch && !board)
            EW_TRY(take_setting(at, chars, out));
        at += chars + (at[chars] == ',');
    }
    return EW_OK;
}

void ew_dpu_config_text(const struct ew_dpu_config *c, char *buf, size_t size)
{
    snprintf(buf, size, "%s x %d at %g MHz (%s)", c->arch->name, c->cores, c->clock_mhz,
             c->board->name);
}
