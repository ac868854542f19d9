/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs of a study are run, how often and in which order. */
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "study/study.h"

#define ORDER_STREAM 0x0dde /* of random numbers: the order of jobs */

/* Whether the job matches one word of --only: a label, or name=value. */
static bool fits(const struct ew_study_job *j, char *word, bool *is_label)
{
    char *equals = strchr(word, '=');
    *is_label = !equals;
    if (!equals)
        return strcmp(j->label, word) == 0;
    *equals = '\0';
    const char *value = ew_study_given(j, word);
    const bool ok = value && strcmp(value, equals + 1) == 0;
    *equals = '=';
    return ok;
}

/* Whether the job matches --only: one of its labels (if it has any) and all of its settings. */
static bool wanted(const struct ew_study_job *j, const char *only)
{
    bool labels = false, labelled = false, settings = true;
    EW_CLEANUP(ew_free_ptr) char *text = only ? strdup(only) : NULL;
    char *save = NULL;
    if (!text)
        return true;
    for (char *w = strtok_r(text, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        bool is_label;
        const bool ok = fits(j, w, &is_label);
        labels |= is_label;
        if (is_label)
            labelled |= ok;
        else
            settings &= ok;
    }
    return settings && (!labels || labelled);
}

/* Jobs with the same values of the `block` settings get the same number, by first appearance. */
static ew_err number_blocks(struct ew_arena *a, const char *block, struct ew_study *s)
{
    const char **names;
    int n = 0;
    EW_TRY(ew_study_words(a, block ? block : "", &names, &n));
    const char **keys = ew_arena_array(a, (size_t)s->n_jobs + 1, sizeof(*keys));
    EW_CHECK(keys, EW_ERR_MEMORY, "no memory for a study");
    int64_t blocks = 0;
    for (int i = 0; i < s->n_jobs; i++) {
        const char *key = "";
        for (int k = 0; k < n && key; k++) {
            const char *value = ew_study_given(&s->jobs[i], names[k]);
            key = ew_arena_printf(a, "%s%s\n", key, value ? value : "");
        }
        EW_CHECK(key, EW_ERR_MEMORY, "no memory for a study");
        keys[i] = key;
        int64_t found = blocks;
        for (int k = 0; k < i && found == blocks; k++)
            if (strcmp(keys[k], key) == 0)
                found = s->jobs[k].block;
        s->jobs[i].block = found;
        blocks += found == blocks;
    }
    return EW_OK;
}

/* Refuses the same job in two sections: it would run once and count twice. */
static ew_err check_doubles(const struct ew_study *s)
{
    for (int i = 0; i < s->n_jobs; i++)
        for (int k = 0; k < i; k++)
            EW_CHECK(strcmp(s->jobs[i].row.id, s->jobs[k].row.id) != 0, EW_ERR_FORMAT,
                     "%s: [%s] and [%s] ask for the same job", s->name, s->jobs[k].label,
                     s->jobs[i].label);
    return EW_OK;
}

static int by_block(const void *a, const void *b)
{
    const struct ew_study_job *x = a, *y = b;
    return (x->block > y->block) - (x->block < y->block);
}

/* Order of runs: block by block; in each, all jobs once in a random order, then the next
 * repetition. */
static ew_err repeat_jobs(struct ew_arena *a, struct ew_study *s)
{
    const int n = s->n_jobs;
    size_t total;
    EW_CHECK(ew_mul_size((size_t)n, (size_t)s->repeat, &total) && total < (1 << 24), EW_ERR_LIMIT,
             "%s: %d jobs %lld times are too many", s->name, n, (long long)s->repeat);
    struct ew_study_job *out = ew_arena_array(a, total + 1, sizeof(*out));
    int64_t *order = ew_arena_array(a, (size_t)n + 1, sizeof(*order));
    EW_CHECK(out && order, EW_ERR_MEMORY, "no memory for a study");
    int at = 0;
    for (int from = 0, to; from < n; from = to) {
        to = from;
        while (to < n && s->jobs[to].block == s->jobs[from].block)
            to++;
        for (int64_t r = 0; r < s->repeat; r++) {
            for (int i = from; i < to; i++)
                order[i - from] = i;
            struct ew_rng rng = {.seed = (uint64_t)s->seed,
                                 .stream = ORDER_STREAM + ((uint64_t)s->jobs[from].block << 32) +
                                           ((uint64_t)r << 16)};
            if (s->random)
                ew_rng_shuffle(&rng, order, (size_t)(to - from));
            for (int i = 0; i < to - from; i++) {
                out[at] = s->jobs[order[i]];
                out[at++].repeat = r;
            }
        }
    }
    s->jobs = out;
    s->n_jobs = at;
    return EW_OK;
}

/* A stable sort: the file's order stays inside a block. */
static void sort_blocks(struct ew_study *s)
{
    for (int i = 1; i < s->n_jobs; i++) {
        const struct ew_study_job job = s->jobs[i];
        int k = i;
        for (; k > 0 && by_block(&s->jobs[k - 1], &job) > 0; k--)
            s->jobs[k] = s->jobs[k - 1];
        s->jobs[k] = job;
    }
}

ew_err ew_study_arrange(struct ew_arena *a, const struct ew_study_opts *o, const char *block,
                        struct ew_study *s)
{
    int n = 0;
    EW_TRY(check_doubles(s));
    for (int i = 0; i < s->n_jobs; i++)
        if (wanted(&s->jobs[i], o->only))
            s->jobs[n++] = s->jobs[i];
    EW_CHECK(n > 0, EW_ERR_USAGE, "%s: no job is called '%s'", s->name, o->only);
    s->partial = n < s->n_jobs;
    s->n_jobs = n;
    EW_TRY(number_blocks(a, block, s));
    sort_blocks(s);
    return repeat_jobs(a, s);
}

ew_err ew_study_pick(struct ew_study *s, const char *job)
{
    const char *colon = strrchr(job, ':');
    int64_t repeat = 0;
    EW_CHECK(!colon || ew_num_int(colon + 1, &repeat), EW_ERR_USAGE, "'%s' is not ID:REPEAT", job);
    const size_t n = colon ? (size_t)(colon - job) : strlen(job);
    for (int i = 0; i < s->n_jobs; i++)
        if (s->jobs[i].repeat == repeat && strlen(s->jobs[i].row.id) == n &&
            strncmp(s->jobs[i].row.id, job, n) == 0) {
            s->jobs += i;
            s->n_jobs = 1;
            return EW_OK;
        }
    return ew_fail(EW_ERR_NOT_FOUND,
                   "%s: has no job %s here; the program that listed it has other options", s->name,
                   job);
}
