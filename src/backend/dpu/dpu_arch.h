/* SPDX-License-Identifier: Apache-2.0 */
/* DPU sizes, boards with a DPU, and the syntax of device names:
 *
 *   dpu[:SIZE or BOARD][,cores=N][,clock=MHZ][,ddr=GB/S]     dpu:B4096,cores=2   dpu:kv260 */
#ifndef EW_BACKEND_DPU_ARCH_H
#define EW_BACKEND_DPU_ARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* A size of the DPUCZDX8G (product guide PG338). */
struct ew_dpu_arch {
    const char *name;
    int pp, icp, ocp;          /* pixel, input channel and output channel parallelism */
    int image_kib, weight_kib; /* on-chip buffers */
    int dsp, bram;             /* per core with the documented defaults: DSP48 slices, BRAM36 */
};

/* A board with the DPU of its usual image. */
struct ew_dpu_board {
    const char *name, *title;
    const char *arch;
    int cores;
    double clock_mhz;
    double ddr_gb_s;     /* peak memory bandwidth */
    double idle_w;       /* idle power of the board; 0: unknown */
    double host_ms;      /* host time per image and thread: preprocessing, postprocessing,
                          * start-up */
    int dsp, bram, uram; /* of the chip: DSP slices, BRAM36, UltraRAM288 */
};

struct ew_dpu_config {
    const struct ew_dpu_arch *arch;
    const struct ew_dpu_board *board;
    int cores;
    double clock_mhz;
    double ddr_gb_s; /* peak, shared by the cores */
};

extern const struct ew_dpu_arch ew_dpu_archs[];
extern const int ew_dpu_n_archs;
extern const struct ew_dpu_board ew_dpu_boards[];
extern const int ew_dpu_n_boards;

/* Parses the text after "dpu:"; "" is the ZCU104's DPU.  Errors list the alternatives. */
ew_err ew_dpu_config_parse(const char *arguments, struct ew_dpu_config *out);
/* "B4096 x 2 at 300 MHz (zcu104)" */
void ew_dpu_config_text(const struct ew_dpu_config *c, char *buf, size_t size);

#endif
