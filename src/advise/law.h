/* SPDX-License-Identifier: Apache-2.0 */
/* The physical laws of a step: its time and its power as functions of cores and clocks.
 *
 * Each law gives the logarithm of its quantity, the derivatives by its parameters, and the noise of
 * one measurement there.  Fitting is left to fit.h, intervals to predictor.h. */
#ifndef EW_ADVISE_LAW_H
#define EW_ADVISE_LAW_H

#include <stdbool.h>

/* A setting of the board; clocks in GHz. */
struct ew_mode {
    double cores, cpu, gpu, mem;
};

#define EW_LAW_PARAMS 23 /* at most */

/* Prior of a law's parameters: independent normal distributions.
 */
struct ew_prior {
    int n;
    int n_scale; /* the first ones are logarithms of amounts: a change of units moves all of them */
    int n_linear; /* the last ones are uncertain but not searched: the law is linear in them */
    double mean[EW_LAW_PARAMS], sd[EW_LAW_PARAMS];
};

/* A law at one mode. */
struct ew_law_point {
    double y;     /* ln of the quantity */
    double sigma; /* standard deviation of ln of one measurement */
    double jac[EW_LAW_PARAMS];
};

/* Evaluates a law with parameters `theta` at n modes. */
typedef void ew_law(const void *ctx, const double *theta, const struct ew_mode *modes, int n,
                    struct ew_law_point *out);

/* ---- Time ------------------------------------------------------------------------------------ */

/* Parameters of the time law; the l.. are logarithms. */
enum ew_time_param {
    EW_TIME_GPU,      /* arithmetic of the accelerator, Gcycles */
    EW_TIME_MEM,      /* memory traffic, Gcycles of the memory clock */
    EW_TIME_LOADER,   /* work of the loader, Gcycles of a CPU core */
    EW_TIME_LAUNCH,   /* serial work of the CPU: launches, Python, Gcycles */
    EW_TIME_FIXED,    /* what no clock changes */
    EW_TIME_ROOFLINE, /* ln(p - 1): how sharply arithmetic and memory overlap */
    EW_TIME_OVERLAP,  /* ln(q - 1): how sharply loader and accelerator overlap */
    EW_TIME_WORKERS,  /* ln of the cores that the loader can use */
    EW_TIME_RESERVED, /* cores that the loader does not get */
    EW_TIME_CACHE,    /* ln of the loader's share of memory time */
    EW_TIME_SYSTEM,   /* ln of half the GHz that the system takes, shared out over cores */
    EW_TIME_CPU_POW,  /* exponent of the CPU clock */
    EW_TIME_HOST_MEM, /* ln of the memory clock's share in a core's: host work that waits for it */
    EW_TIME_CROWD,    /* ln(r - 1): how sharply workers run out */
    EW_TIME_PARAMS
};

/* What a step consists of at a mode. */
struct ew_time_parts {
    double gpu, loader, total; /* seconds */
    double share; /* of the loader, 0 to 1: whether it or the accelerator decides the time */
};

extern const struct ew_prior ew_time_prior;
extern const struct ew_prior ew_time_prior_host; /* small networks, bound by the host */

/* An ew_law; `ctx` is not used. */
void ew_time_law(const void *ctx, const double *theta, const struct ew_mode *modes, int n,
                 struct ew_law_point *out);
void ew_time_parts(const double *theta, const struct ew_mode *modes, int n,
                   struct ew_time_parts *out);

/* Derivatives of the logarithms of these parts by the parameters. */
struct ew_time_slopes {
    double gpu[EW_TIME_PARAMS], loader[EW_TIME_PARAMS], total[EW_TIME_PARAMS];
};

void ew_time_slopes(const double *theta, const struct ew_mode *m, struct ew_time_slopes *out);

/* ---- Power ----------------------------------------------------------------------------------- */

/* Parameters of the power law, all logarithms; watts in the top mode. */
enum ew_power_param {
    EW_POWER_BASE,       /* what no clock changes */
    EW_POWER_MEM,        /* memory, by its clock */
    EW_POWER_GPU,        /* accelerator, by a power of its clock and by its use */
    EW_POWER_CORES,      /* cores that are on, by the cube of their clock */
    EW_POWER_CPU,        /* CPU, by its clock */
    EW_POWER_STEP_GPU,   /* energy of a step's arithmetic, over its time */
    EW_POWER_STEP_FIXED, /* energy of a step that no clock changes, over its time */
    EW_POWER_LOADER,     /* loader, by its use */
    EW_POWER_GAMMA,      /* exponent of the accelerator's clock */
    EW_POWER_PARAMS
};

/* What the power law takes from the time law. */
struct ew_power_ctx {
    struct ew_mode top;  /* the highest setting of each */
    const double *theta; /* of the time law */
    double top_s;        /* time in the top mode */
    struct ew_time_slopes top_slopes;
    /* How uncertain theta is: lower triangle of L, EW_TIME_PARAMS squared, theta + L u with u
     * normal. The law then has these u behind its own parameters, linear around 0.  NULL: theta is
     * known. */
    const double *spread;
};

extern const struct ew_prior ew_power_prior;      /* any board */
extern const struct ew_prior ew_power_prior_orin; /* AGX Orin, total of its rails */

void ew_power_ctx_init(struct ew_power_ctx *c, const struct ew_mode *top, const double *theta);

/* An ew_law; `ctx` is a struct ew_power_ctx. */
void ew_power_law(const void *ctx, const double *theta, const struct ew_mode *modes, int n,
                  struct ew_law_point *out);

#endif
