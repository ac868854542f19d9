/* SPDX-License-Identifier: Apache-2.0 */
/* Five sentences made from the data. */
#include "report/findings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/figure.h"

#define STALLED 0.1  /* share of an epoch above which waiting for data is reported */
#define ALIKE   1.02 /* ratio of epoch times of equally fast runs */
#define NAMES   4    /* most devices that a sentence lists */

/* The runs that the sentences describe: measured ones, or modelled ones if nothing was measured. */
struct scope {
    const struct ew_results *r;
    bool models;
    int devices; /* devices that those runs used */
};

/* Mean of a field over all epochs but the first, which fills caches. */
static double later(const struct ew_run_data *d, size_t member)
{
    double sum = 0;
    int n = 0;
    for (int i = d->n_epochs > 1; i < d->n_epochs; i++) {
        double v;
        memcpy(&v, (const char *)&d->epochs[i] + member, sizeof(v));
        if (isfinite(v)) {
            sum += v;
            n++;
        }
    }
    return n ? sum / n : (double)NAN;
}

static double epoch_s(const struct ew_run_data *d)
{
    return later(d, offsetof(struct ew_epoch_row, wall_s));
}

static double metric(const struct ew_run_data *d, const char *name)
{
    for (int i = 0; i < d->n_metrics; i++)
        if (d->metrics[i].name && strcmp(d->metrics[i].name, name) == 0)
            return d->metrics[i].value;
    return NAN;
}

/* The network's name for people, without the path of the file in which a study keeps it. */
static const char *network_of(const struct ew_run_data *d, struct ew_arena *a)
{
    const char *net = ew_run_property(d, "net", a);
    return net ? net : d->job.network ? d->job.network : "the network";
}

/* Measured on a machine, as opposed to modelled or simulated. */
static bool is_real(const struct ew_run_data *d)
{
    return ew_run_counts(d) && d->run.quality != EW_QUALITY_SIMULATED &&
           d->run.quality != EW_QUALITY_MODELLED;
}

static bool takes(const struct scope *s, const struct ew_run_data *d)
{
    return s->models ? ew_run_counts(d) : is_real(d);
}

static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* ---- What was run, and on which machine ------------------------------------------------------ */

/* Counts networks by name: one that a study keeps in several files, one for each width, counts
 * once. */
static int distinct_networks(const struct ew_results *r)
{
    int n = 0;
    struct ew_arena a;
    ew_arena_init(&a);
    const char **names = ew_arena_array(&a, (size_t)r->n_runs + 1, sizeof(*names));
    for (int i = 0; names && i < r->n_runs; i++) {
        const struct ew_run_data *d = &r->runs[i];
        const char *name = ew_run_counts(d) && d->job.network ? network_of(d, &a) : NULL;
        bool seen = !name;
        for (int k = 0; k < n && !seen; k++)
            seen = strcmp(name, names[k]) == 0;
        if (!seen)
            names[n++] = name;
    }
    ew_arena_fini(&a);
    return n;
}

static void say_what(const struct ew_results *r, int done, char *out)
{
    int noisy = 0, made = 0;
    for (int i = 0; i < r->n_runs; i++) {
        const struct ew_run_row *run = &r->runs[i].run;
        noisy += ew_run_counts(&r->runs[i]) && run->noise;
        made += ew_run_counts(&r->runs[i]) &&
                (run->quality == EW_QUALITY_SIMULATED || run->quality == EW_QUALITY_MODELLED ||
                 run->quality == EW_QUALITY_EMULATED);
    }
    const int networks = distinct_networks(r);
    snprintf(out, EW_FINDING_CHARS, "%d %s of %d network%s %s done", done,
             done == 1 ? "run" : "runs", networks, networks == 1 ? "" : "s",
             done == 1 ? "is" : "are");
    if (made == done)
        ew_text_add(out, EW_FINDING_CHARS, ", none of them measured");
    else if (made)
        ew_text_add(out, EW_FINDING_CHARS, ", %d of them simulated, modelled or emulated", made);
    if (noisy == done)
        ew_text_add(out, EW_FINDING_CHARS,
                    "; the machine was never quiet, so that all times are upper bounds");
    else if (noisy)
        ew_text_add(out, EW_FINDING_CHARS,
                    "; in %d the machine was not quiet, so that their times are "
                    "upper bounds",
                    noisy);
    ew_text_add(out, EW_FINDING_CHARS, ".");
}

static bool has_energy(const struct scope *s)
{
    for (int i = 0; i < s->r->n_runs; i++)
        if (takes(s, &s->r->runs[i]) &&
            isfinite(later(&s->r->runs[i], offsetof(struct ew_epoch_row, energy_j))))
            return true;
    return false;
}

static const char *machine_name(const struct ew_run_data *d)
{
    const struct ew_machine_row *m = &d->machine;
    return m->board ? m->board : m->cpu ? m->cpu : "not named";
}

/* The machine on which the run was measured, or the board whose model computed it. */
static const char *scope_name(const struct scope *s, const struct ew_run_data *d,
                              struct ew_arena *a)
{
    if (d->run.quality == EW_QUALITY_MODELLED)
        return "AMD's DPU"; /* whichever machine computed it */
    const char *model = s->models ? ew_run_board(d, a) : NULL;
    return model ? model : machine_name(d);
}

/* List without repetitions: "Jetson Nano, Xavier NX". */
static void machine_names(const struct scope *s, struct ew_arena *a, char *out, size_t size)
{
    const char *seen[NAMES];
    int n = 0;
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < s->r->n_runs && n < NAMES; i++) {
        const struct ew_run_data *d = &s->r->runs[i];
        const char *name = scope_name(s, d, a);
        bool known = !takes(s, d);
        for (int k = 0; k < n && !known; k++)
            known = strcmp(seen[k], name) == 0;
        if (known || used >= size)
            continue;
        seen[n++] = name;
        used += (size_t)snprintf(out + used, size - used, "%s%.40s", n > 1 ? ", " : "", name);
    }
}

static int count_devices(const struct scope *s)
{
    int devices = 0;
    for (int i = 0; i < s->r->n_runs; i++) {
        bool seen = !takes(s, &s->r->runs[i]);
        for (int k = 0; k < i && !seen; k++)
            seen = takes(s, &s->r->runs[k]) &&
                   same_text(s->r->runs[i].machine.unit, s->r->runs[k].machine.unit);
        devices += !seen;
    }
    return devices;
}

static void say_where(const struct scope *s, char *out)
{
    const struct ew_run_data *last = NULL;
    struct ew_arena a;
    char names[NAMES * 44];
    ew_arena_init(&a);
    machine_names(s, &a, names, sizeof(names));
    ew_arena_fini(&a);
    for (int i = 0; i < s->r->n_runs; i++)
        if (takes(s, &s->r->runs[i]))
            last = &s->r->runs[i];
    if (s->models) {
        snprintf(out, EW_FINDING_CHARS, "They are simulated by a model of %s: nothing ran there.",
                 names);
        return;
    }
    const char *energy = has_energy(s) ? "; energy was measured"
                                       : "; no power sensor was read, so there is no energy";
    if (s->devices > 1)
        snprintf(out, EW_FINDING_CHARS, "They ran on %d devices (%s)%s.", s->devices, names,
                 energy);
    else
        snprintf(out, EW_FINDING_CHARS, "The machine is %.80s with %lld of %lld cores on%s.",
                 machine_name(last), (long long)last->machine.cores_online,
                 (long long)last->machine.cores, energy);
}

/* ---- What is best ---------------------------------------------------------------------------- */

/* Whether two runs may be ranked against each other: same device, network, data set and section
 * of a study. */
static bool is_beside(const struct scope *in, const struct ew_run_data *a,
                      const struct ew_run_data *b)
{
    return takes(in, b) && isfinite(epoch_s(b)) && a->run.quality == b->run.quality &&
           same_text(a->machine.unit, b->machine.unit) &&
           same_text(a->job.network, b->job.network) && same_text(a->run.study, b->run.study) &&
           (!a->run.label || same_text(a->run.label, b->run.label)) &&
           same_text(a->job.dataset, b->job.dataset);
}

static bool is_other(const struct ew_run_data *d, const struct ew_option_walk *w)
{
    const char *other = ew_run_property(d, w->name, w->arena);
    return !other || strcmp(other, w->value) != 0;
}

/* The options in which two runs of a network differ: "workers 4".  b NULL: those in which any run
 * beside `a` differs. */
static void differences(const struct scope *in, const struct ew_run_data *a,
                        const struct ew_run_data *b, char *out, size_t size)
{
    struct ew_arena arena;
    ew_arena_init(&arena);
    struct ew_option_walk w = ew_option_begin(a->job.options, &arena);
    const bool mode = ew_run_property(a, "power-mode", &arena); /* which `simulate` repeats */
    size_t used = 0;
    out[0] = '\0';
    while (ew_option_next(&w) && used < size) {
        if (ew_option_is_incidental(w.name) || (mode && strcmp(w.name, "simulate") == 0))
            continue;
        bool differs = b && is_other(b, &w);
        for (int i = 0; i < in->r->n_runs && !b && !differs; i++)
            differs = is_beside(in, a, &in->r->runs[i]) && is_other(&in->r->runs[i], &w);
        if (differs)
            used += (size_t)snprintf(out + used, size - used, "%s%s %.40s", used ? ", " : "",
                                     w.name, w.value);
    }
    ew_arena_fini(&arena);
}

/* Fastest and slowest of a set of comparable training runs. */
struct run_extremes {
    const struct ew_run_data *fast, *slow; /* NULL: there was none */
    int n; /* number of configurations: the first, and runs with other options */
};

/* The extremes among the runs of the network that was trained in the most configurations. */
static struct run_extremes extremes(const struct scope *in)
{
    const struct ew_results *r = in->r;
    struct run_extremes best = {.n = 1};
    for (int i = 0; i < r->n_runs; i++) {
        const struct ew_run_data *a = &r->runs[i];
        struct run_extremes c = {a, a, 0};
        for (int k = 0; k < r->n_runs && takes(in, a) && isfinite(epoch_s(a)); k++) {
            const struct ew_run_data *b = &r->runs[k];
            if (!is_beside(in, a, b))
                continue;
            c.n += b == a || !same_text(a->job.options, b->job.options);
            c.fast = epoch_s(b) < epoch_s(c.fast) ? b : c.fast;
            c.slow = epoch_s(b) > epoch_s(c.slow) ? b : c.slow;
        }
        if (c.n > best.n && !same_text(c.fast->job.options, c.slow->job.options))
            best = c;
    }
    return best;
}

/* Number of configurations comparable with the run's, its own included; repetitions count once. */
static int count_beside(const struct scope *in, const struct ew_run_data *a)
{
    const struct ew_results *r = in->r;
    int n = 0;
    for (int i = 0; i < r->n_runs; i++) {
        bool seen = !is_beside(in, a, &r->runs[i]);
        for (int k = 0; k < i && !seen; k++)
            seen = is_beside(in, a, &r->runs[k]) &&
                   same_text(r->runs[i].job.options, r->runs[k].job.options);
        n += !seen;
    }
    return n;
}

/* Among the runs within ALIKE of the fastest, the one with the least energy; NULL: none needs less
 * than the fastest. */
static const struct ew_run_data *thriftier(const struct scope *in, const struct ew_run_data *fast)
{
    const size_t energy = offsetof(struct ew_epoch_row, energy_j);
    const struct ew_run_data *best = NULL;
    for (int i = 0; i < in->r->n_runs; i++) {
        const struct ew_run_data *d = &in->r->runs[i];
        if (is_beside(in, fast, d) && epoch_s(d) < ALIKE * epoch_s(fast) &&
            later(d, energy) * ALIKE < later(best ? best : fast, energy))
            best = d;
    }
    return best;
}

/* Three significant digits, but all digits before the decimal point. */
static const char *digits(double v, char buf[EW_VALUE_CHARS])
{
    snprintf(buf, EW_VALUE_CHARS, v >= 999.5 && v < 1e9 ? "%.0f" : "%.3g", v);
    return buf;
}

static bool say_best(const struct scope *s, const struct run_extremes *c, char *out)
{
    struct ew_arena a;
    char what[104], epoch[EW_VALUE_CHARS], gain[EW_VALUE_CHARS];
    const bool several = s->devices > 1;
    ew_arena_init(&a);
    differences(s, c->fast, NULL, what, sizeof(what));
    if (*what)
        snprintf(out, EW_FINDING_CHARS,
                 "%s%.40s%sf %d configurations of %.60s%s%.40s the fastest is %.100s: %.12s s an "
                 "epoch, %.12s times faster than the slowest.",
                 several ? "On " : "", several ? machine_name(c->fast) : "", several ? ": o" : "O",
                 count_beside(s, c->fast), network_of(c->fast, &a),
                 c->fast->run.study ? " in study " : "",
                 c->fast->run.study ? c->fast->run.study : "", what,
                 digits(epoch_s(c->fast), epoch),
                 digits(epoch_s(c->slow) / epoch_s(c->fast), gain));
    ew_arena_fini(&a);
    return *what;
}

/* Milliseconds per image of a run of `bench`; nan for other runs. */
static double image_ms(const struct scope *s, const struct ew_run_data *d)
{
    const double rate = metric(d, "images_per_s");
    const bool bench = takes(s, d) && d->job.network && isfinite(metric(d, "median_ms")) &&
                       isfinite(rate) && rate > 0;
    return bench ? 1e3 / rate : (double)NAN;
}

/* Whether another bench of the same network is faster: a network is represented by its fastest
 * run, not by its reference kernels. */
static bool is_beaten(const struct scope *s, int i)
{
    const struct ew_run_data *d = &s->r->runs[i];
    for (int k = 0; k < s->r->n_runs; k++)
        if (same_text(s->r->runs[k].job.network, d->job.network) &&
            image_ms(s, &s->r->runs[k]) < image_ms(s, d))
            return true;
    return false;
}

static void say_one_bench(const struct ew_run_data *d, double low, double high, char *out)
{
    const double rate = 1e3 / low, digit = pow(10, fmax(floor(log10(rate)) - 2, 0));
    char least[EW_VALUE_CHARS], most[EW_VALUE_CHARS];
    digits(low, least);
    digits(high, most);
    if (high > low)
        snprintf(out, EW_FINDING_CHARS,
                 "%.60s takes from %s to %s ms an image, depending on the options.", d->job.network,
                 least, most);
    else
        snprintf(out, EW_FINDING_CHARS, "%.60s takes %s ms an image, or %.*f images a second.",
                 d->job.network, least, rate < 10 ? 2 : 0,
                 digit > 1 ? round(rate / digit) * digit : rate);
}

/* The fastest and the slowest network, each by its fastest bench; if there is one network, its
 * fastest and slowest bench. */
static bool say_bench(const struct scope *s, char *out)
{
    const struct ew_run_data *fast = NULL, *slow = NULL;
    double low = HUGE_VAL, high = 0, most_of_all = 0;
    char least[EW_VALUE_CHARS], most[EW_VALUE_CHARS];
    for (int i = 0; i < s->r->n_runs; i++) {
        const double ms = image_ms(s, &s->r->runs[i]);
        if (!isfinite(ms))
            continue;
        most_of_all = fmax(most_of_all, ms);
        if (is_beaten(s, i))
            continue;
        if (ms < low) {
            low = ms;
            fast = &s->r->runs[i];
        }
        if (ms > high) {
            high = ms;
            slow = &s->r->runs[i];
        }
    }
    if (!fast || !slow)
        return false;
    if (same_text(fast->job.network, slow->job.network))
        say_one_bench(fast, low, most_of_all, out);
    else
        snprintf(out, EW_FINDING_CHARS,
                 "Of the benchmarked networks %.60s is the fastest with %s ms per image and "
                 "%.60s the slowest with %s ms (fastest run of each).",
                 fast->job.network, digits(low, least), slow->job.network, digits(high, most));
    return true;
}

/* ---- Where the time goes, what to do --------------------------------------------------------- */

static double stall_share(const struct ew_run_data *d)
{
    return later(d, offsetof(struct ew_epoch_row, stall_s)) / epoch_s(d);
}

static void say_time(const struct scope *s, const struct ew_run_data *d, char *out)
{
    const size_t member = offsetof(struct ew_epoch_row, energy_j);
    const double energy = later(d, member);
    const struct ew_run_data *less = thriftier(s, d);
    char joule[EW_VALUE_CHARS], watt[EW_VALUE_CHARS], what[104] = "";
    snprintf(out, EW_FINDING_CHARS,
             "Of that epoch %.0f %% is computing and %.0f %% waiting for data",
             100 * later(d, offsetof(struct ew_epoch_row, compute_s)) / epoch_s(d),
             100 * stall_share(d));
    if (isfinite(energy))
        ew_text_add(out, EW_FINDING_CHARS, "; it takes %s J at %s W", digits(energy, joule),
                    digits(energy / epoch_s(d), watt));
    if (less)
        differences(s, less, d, what, sizeof(what));
    if (*what)
        ew_text_add(out, EW_FINDING_CHARS,
                    ", while %.100s is as fast within 2 %% and takes %.0f %% less", what,
                    100 * (1 - later(less, member) / energy));
    ew_text_add(out, EW_FINDING_CHARS, ".");
}

/* The run with the largest speed-up by int8. */
static const struct ew_run_data *best_int8(const struct scope *s)
{
    const struct ew_run_data *best = NULL;
    for (int i = 0; i < s->r->n_runs; i++) {
        const double gain = metric(&s->r->runs[i], "int8_speedup");
        if (takes(s, &s->r->runs[i]) && isfinite(gain) &&
            (!best || gain > metric(best, "int8_speedup")))
            best = &s->r->runs[i];
    }
    return best;
}

/* Whether runs that differ in their workers alone show that more than the fastest has bring
 * nothing: one with more was no faster, or one with fewer waited no longer. */
static bool workers_are_enough(const struct scope *s, const struct ew_run_data *fast)
{
    struct ew_arena a;
    bool enough = false;
    ew_arena_init(&a);
    const char *own = ew_run_property(fast, "workers", &a);
    const double workers = own ? strtod(own, NULL) : 0;
    for (int i = 0; own && i < s->r->n_runs && !enough; i++) {
        const struct ew_run_data *d = &s->r->runs[i];
        char what[104] = "";
        if (is_beside(s, fast, d))
            differences(s, d, fast, what, sizeof(what));
        if (strncmp(what, "workers ", 8) != 0 || strchr(what, ','))
            continue;
        const double others = strtod(what + 8, NULL);
        enough = others > workers ||
                 (others < workers &&
                  stall_share(d) * epoch_s(d) < ALIKE * stall_share(fast) * epoch_s(fast));
    }
    ew_arena_fini(&a);
    return enough;
}

static bool say_advice(const struct scope *s, const struct ew_run_data *fast, char *out)
{
    const struct ew_run_data *q = best_int8(s);
    struct ew_arena a;
    ew_arena_init(&a);
    if (fast && stall_share(fast) > STALLED)
        snprintf(out, EW_FINDING_CHARS,
                 "Even the fastest configuration waits for data%s a packed data set (data pack) or "
                 "faster storage, which can gain up to %.0f %%.",
                 workers_are_enough(s, fast) ? ", and more --workers gain nothing: try"
                                             : ": try more --workers,",
                 100 * stall_share(fast));
    else if (q && metric(q, "int8_speedup") > 1)
        snprintf(out, EW_FINDING_CHARS,
                 "For inference use int8: %.60s becomes %.3g times faster "
                 "(accuracy %.3g instead of %.3g).",
                 network_of(q, &a), metric(q, "int8_speedup"), metric(q, "int8_accuracy"),
                 metric(q, "float32_accuracy"));
    else if (fast)
        snprintf(out, EW_FINDING_CHARS,
                 "Loading keeps up, so only a faster or smaller network, a larger batch or another "
                 "device trains faster: edgewise recommend compares them.");
    ew_arena_fini(&a);
    return fast || (q && metric(q, "int8_speedup") > 1);
}

/* The last training run, for databases in which no option was varied. */
static const struct ew_run_data *last_trained(const struct scope *s)
{
    const struct ew_run_data *last = NULL;
    for (int i = 0; i < s->r->n_runs; i++)
        if (takes(s, &s->r->runs[i]) && s->r->runs[i].n_epochs && isfinite(epoch_s(&s->r->runs[i])))
            last = &s->r->runs[i];
    return last;
}

static void say_one(const struct ew_run_data *d, char *out)
{
    const double accuracy = d->epochs[d->n_epochs - 1].accuracy;
    struct ew_arena a;
    char epoch[EW_VALUE_CHARS];
    ew_arena_init(&a);
    snprintf(out, EW_FINDING_CHARS, "%.60s takes %s s an epoch", network_of(d, &a),
             digits(epoch_s(d), epoch));
    if (isfinite(accuracy))
        ew_text_add(out, EW_FINDING_CHARS,
                    " and classifies %.3g %% of the validation images correctly after %d.",
                    100 * accuracy, d->n_epochs);
    else
        ew_text_add(out, EW_FINDING_CHARS, ".");
    ew_arena_fini(&a);
}

/* For databases without a finished run: the reason of the last failure. */
static int say_failed(const struct ew_results *r, char *out)
{
    const struct ew_run_data *last = NULL;
    for (int i = 0; i < r->n_runs; i++)
        if (r->runs[i].run.status == EW_RUN_FAILED || r->runs[i].run.status == EW_RUN_SKIPPED)
            last = &r->runs[i];
    if (!last || !last->run.reason)
        return 0;
    snprintf(out, EW_FINDING_CHARS, "No run has finished; the last one says: %.200s.",
             last->run.reason);
    return 1;
}

int ew_findings(const struct ew_results *r, char text[EW_FINDINGS][EW_FINDING_CHARS])
{
    struct scope s = {.r = r, .models = true};
    int n = 0, done = 0;
    for (int i = 0; i < r->n_runs; i++) {
        done += ew_run_counts(&r->runs[i]);
        s.models &= !is_real(&r->runs[i]);
    }
    if (!done)
        return say_failed(r, text[0]);
    s.devices = count_devices(&s);
    say_what(r, done, text[n++]);
    say_where(&s, text[n++]);
    const struct run_extremes best = extremes(&s);
    const struct ew_run_data *fast = best.fast ? best.fast : last_trained(&s);
    if (best.fast && say_best(&s, &best, text[n]))
        n++;
    if (!best.fast && fast)
        say_one(fast, text[n++]);
    if (fast)
        say_time(&s, fast, text[n++]);
    if (!fast)
        n += say_bench(&s, text[n]);
    n += say_advice(&s, fast, text[n]);
    return n;
}
