/* SPDX-License-Identifier: Apache-2.0 */
/* Experiment files (docs/studies.md): from text to a list of jobs.  study/runner.h runs them.
 *
 * The caller passes the tables of commands and their options.
 */
#ifndef EW_STUDY_STUDY_H
#define EW_STUDY_STUDY_H

#include "base/mem.h"
#include "record/record.h"
#include "study/job.h"

/* A command that studies may use. */
struct ew_study_command {
    const char *name;
    const struct ew_field *opts;
    size_t opts_size;
    bool samples; /* it reads the board's sensors itself while it runs */
};

#define EW_STUDY_MAX_S 1e8 /* of job-timeout: three years */

/* Settings of the machine that a job may ask for, beside its command's options. */
struct ew_study_power {
    const char *mode; /* NULL: as it is */
    const char *dvfs; /* "on", "off" */
    const char *cores, *cpu_mhz, *gpu_mhz, *mem_mhz;
    const char *fan; /* "full" */
};

struct ew_study_job {
    const char *label; /* its section */
    const char *command, *network;
    int64_t repeat; /* 0, 1, ... */
    struct ew_job_row row;
    const char **argv; /* command, network and options as words; NULL-terminated */
    int n_argv;
    const struct ew_setting *given; /* what the file says, sweeps resolved */
    int n_given;
    const struct ew_field *fields; /* the command's options, and all their values */
    const void *opts;
    struct ew_study_power power;
    bool samples;     /* its command reads the sensors, so that the study need not */
    const char *keep; /* where what the job writes stays; NULL: it is removed */
    double cool_down_s;
    double timeout_s; /* limit; 0: none; < 0: the study's */
    int64_t block;    /* jobs of a block stay together */
};

struct ew_study {
    const char *name, *title, *about, *differs;
    const char *show, *sort; /* columns of the table of results, and its order; NULL: usual */
    const char *
        setup; /* lines "PATH | words": what jobs need, and the command that makes it; NULL: none */
    int64_t seed, repeat;
    double cool_down_s;
    double timeout_s; /* of jobs that name none of their own; 0: none */
    bool random, quick;
    bool partial;              /* `only` left jobs out */
    bool per_device;           /* every machine of a fleet does every job */
    struct ew_study_job *jobs; /* in the order of running */
    int n_jobs;
    struct ew_published_row *published;
    int n_published;
};

struct ew_study_opts {
    const struct ew_study_command *commands;
    int n_commands;
    bool quick;
    int64_t repeat; /* 0: the file's */
    const char
        *simulate; /* board to simulate the jobs on, without those that cannot be; NULL: none */
    const char *device; /* of jobs whose section names none; NULL: not part of the job */
    const char *only;   /* "lenet,workers=2": labels, and settings that must hold; NULL: all */
    /* Modes for "power-mode = advise N", the most informative first: CORES/CPU/GPU/MEM in MHz,
     * "-" for a setting that the board lacks; count 0: not known. */
    const char *const *advised;
    int n_advised;
};

/* Cuts `text` up; it must outlive the study.  Everything else is in the arena.  Messages name file
 * and line. */
ew_err ew_study_parse(struct ew_arena *a, const char *name, char *text,
                      const struct ew_study_opts *o, struct ew_study *out);

/* Keeps only one job: "ID:REPEAT". */
ew_err ew_study_pick(struct ew_study *s, const char *job);

/* The studies built into the program: name and text; NULL beyond the last. */
const char *ew_study_shipped(int i, const char **text);

/* ---- Private to src/study -------------------------------------------------------------------- */

/* A line of the file. */
struct ew_study_line {
    const char *section, *key;
    char *value;
    int line;
};

struct ew_study_file {
    const char *name;
    const struct ew_study_line *lines;
    int n;
};

/* The job sections, swept and resolved, in the order of the file. */
ew_err ew_study_expand(struct ew_arena *a, const struct ew_study_file *f,
                       const struct ew_study_opts *o, struct ew_study *s);

/* The section [published]. */
ew_err ew_study_published(struct ew_arena *a, const struct ew_study_file *f, struct ew_study *s);

/* Keeps what `only` names, repeats, and puts into order. */
ew_err ew_study_arrange(struct ew_arena *a, const struct ew_study_opts *o, const char *block,
                        struct ew_study *s);

/* Splits at white space; "..." keeps it together.  NULL-terminated, from the arena. */
ew_err ew_study_words(struct ew_arena *a, const char *text, const char ***out, int *n);

/* A setting of a job as the file has it; NULL: the file does not say.  "label" is its section. */
const char *ew_study_given(const struct ew_study_job *j, const char *name);

/* A setting of a job as text, from the file or by default; false: it has none of this name. */
#define EW_STUDY_VALUE 256
bool ew_study_value(const struct ew_study_job *j, const char *name, char out[EW_STUDY_VALUE]);
/* The same as a number; `otherwise` where it is none. */
double ew_study_number(const struct ew_study_job *j, const char *name, double otherwise);

#endif
