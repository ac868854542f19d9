/* SPDX-License-Identifier: Apache-2.0 */
/* The page's lists: machines' cards, and all runs. */
#include <string.h>

#include "report/html.h"
#include "report/page.h"
#include "report/text_table.h"

#define MOST_RUNS 2000 /* the store has them all */

/* ---- Studies ---- */

/* A list of the lines of a text. */
static void lines(const char *text, FILE *out)
{
    fputs("<ul>", out);
    while (*text) {
        char line[512];
        const size_t n = strcspn(text, "\n");
        snprintf(line, sizeof(line), "%.*s", n < 500 ? (int)n : 500, text);
        fputs("<li>", out);
        ew_html_text(out, line);
        fputs("</li>", out);
        text += n + (text[n] == '\n');
    }
    fputs("</ul>", out);
}

void ew_page_studies(const struct ew_results *r, FILE *out)
{
    if (!r->n_studies)
        return;
    fputs("<section id=\"studies\"><h2>Studies</h2><div class=\"cards\">", out);
    for (int i = 0; i < r->n_studies; i++) {
        const struct ew_study_row *s = &r->studies[i];
        fputs("<article class=\"card\"><h3>", out);
        ew_html_text(out, s->title ? s->title : s->name ? s->name : "");
        fputs("</h3><p>", out);
        if (s->jobs >= 0 && s->done >= 0)
            fprintf(out, "%lld of %lld jobs done%s. ", (long long)s->done, (long long)s->jobs,
                    s->quick ? ", at the reduced size" : "");
        ew_html_text(out, s->about ? s->about : "");
        fputs("</p>", out);
        if (s->differs) {
            fputs("<p>What differs from what was published:</p>", out);
            lines(s->differs, out);
        }
        fputs("</article>", out);
    }
    fputs("</div></section>", out);
}

/* ---- Machines ---- */

static void value(const struct ew_field *f, const struct ew_machine_row *m, FILE *out)
{
    char text[512], bytes[EW_TEXT_CHARS];
    const void *at = (const char *)m + f->offset;
    if (f->type == EW_FIELD_STR) {
        ew_html_text(out, *(const char *const *)at);
    } else if (f->unit && strcmp(f->unit, "B") == 0) {
        ew_html_text(out, ew_text_bytes(*(const int64_t *)at, bytes));
    } else {
        ew_field_print(f, m, text, sizeof(text));
        ew_html_text(out, text);
        if (f->unit)
            fprintf(out, " %s", f->unit);
    }
}

/* Whether both rows describe the same device, in any state. */
static bool same_device(const struct ew_machine_row *a, const struct ew_machine_row *b)
{
    const char *const pair[][2] = {{a->board, b->board}, {a->unit, b->unit}, {a->cpu, b->cpu}};
    for (size_t i = 0; i < EW_COUNT(pair); i++)
        if (strcmp(pair[i][0] ? pair[i][0] : "", pair[i][1] ? pair[i][1] : "") != 0)
            return false;
    return true;
}

static bool same_value(const struct ew_field *f, const struct ew_machine_row *a,
                       const struct ew_machine_row *b)
{
    char x[512], y[512];
    if (ew_field_absent(f, a) || ew_field_absent(f, b))
        return ew_field_absent(f, a) && ew_field_absent(f, b);
    ew_field_print(f, a, x, sizeof(x));
    ew_field_print(f, b, y, sizeof(y));
    return strcmp(x, y) == 0;
}

/* All different values of the field in runs on this device. */
static void values(const struct ew_field *f, const struct ew_results *r, int device, FILE *out)
{
    int n = 0;
    for (int i = device; i < r->n_runs && n < 16; i++) {
        const struct ew_machine_row *m = &r->runs[i].machine;
        bool seen = ew_field_absent(f, m) || !same_device(&r->runs[device].machine, m);
        for (int j = device; j < i && !seen; j++)
            seen = same_device(m, &r->runs[j].machine) && same_value(f, m, &r->runs[j].machine);
        if (seen)
            continue;
        fputs(n++ ? "; " : "", out);
        value(f, m, out);
    }
    if (!n)
        fputs("-", out);
}

static bool known(const struct ew_field *f, const struct ew_results *r, int device)
{
    for (int i = device; i < r->n_runs; i++)
        if (same_device(&r->runs[device].machine, &r->runs[i].machine) &&
            !ew_field_absent(f, &r->runs[i].machine))
            return true;
    return false;
}

static void card(const struct ew_results *r, int device, int runs, FILE *out)
{
    const struct ew_machine_row *m = &r->runs[device].machine;
    fputs("<article class=\"card\"><h3>", out);
    ew_html_text(out, m->board ? m->board : m->cpu ? m->cpu : "machine");
    fprintf(out, "%s</h3><p>%d %s</p><dl>", m->virtual_machine ? ", virtual" : "", runs,
            runs == 1 ? "run" : "runs");
    for (const struct ew_field *f = ew_record_kind(EW_RECORD_MACHINE)->fields; f->name; f++) {
        const bool long_text = strcmp(f->name, "sensors") == 0;
        if (strcmp(f->name, "board") == 0 || strcmp(f->name, "id") == 0 || !known(f, r, device))
            continue;
        fputs("<dt>", out);
        ew_html_text(out, f->help);
        fprintf(out, "</dt><dd>%s", long_text ? "<details><summary>show</summary>" : "");
        values(f, r, device, out);
        fprintf(out, "%s</dd>", long_text ? "</details>" : "");
    }
    fputs("</dl></article>", out);
}

void ew_page_machines(const struct ew_results *r, FILE *out)
{
    fputs("<section id=\"machines\"><h2>Machines</h2><div class=\"cards\">", out);
    for (int i = 0; i < r->n_runs; i++) {
        int before = 0, runs = 0;
        for (int j = 0; j < r->n_runs; j++) {
            const bool same = same_device(&r->runs[i].machine, &r->runs[j].machine);
            before += same && j < i;
            runs += same;
        }
        if (!before)
            card(r, i, runs, out);
    }
    fputs("</div></section>", out);
}

/* ---- Runs ---- */

static void cell(const char *text, FILE *out)
{
    fputs("<td>", out);
    ew_html_text(out, text ? text : "");
}

static void run_row(const struct ew_run_data *d, FILE *out)
{
    static const char *const status[] = {
#define EW_RUN_STATUS_WORD(id, name) name,
        EW_RUN_STATUS_MAP(EW_RUN_STATUS_WORD)
#undef EW_RUN_STATUS_WORD
    };
    const char *word =
        d->run.status >= 0 && d->run.status < EW_RUN_STATUS_N ? status[d->run.status] : "unknown";
    char buf[EW_VALUE_CHARS];
    fprintf(out, "<tr class=\"%s\">", word);
    cell(d->run.started, out);
    cell(d->run.study, out);
    cell(d->run.label, out);
    cell(d->job.command, out);
    cell(d->job.network, out);
    cell(d->job.dataset, out);
    fprintf(out, "<td class=n>%s", ew_text_value(d->run.wall_s, buf));
    cell(word, out);
    cell(d->run.quality >= 0 ? ew_figure_quality(d->run.quality) : "", out);
    cell(d->run.reason ? d->run.reason : d->run.noise, out);
}

void ew_page_runs(const struct ew_results *r, FILE *out)
{
    static const char *const head[] = {"started", "study",    "label",  "command", "network",
                                       "data",    "time [s]", "status", "quality", "remark"};
    fprintf(out,
            "<section id=\"runs\"><h2>Runs</h2><details%s><summary>All %d</summary>"
            "<div class=\"scroll\"><table><thead><tr>",
            r->n_runs <= 12 ? " open" : "", r->n_runs);
    for (size_t i = 0; i < EW_COUNT(head); i++)
        fprintf(out, "<th%s>%s</th>", i == 6 ? " class=\"n\"" : "", head[i]);
    fputs("</tr></thead><tbody>", out);
    for (int i = r->n_runs > MOST_RUNS ? r->n_runs - MOST_RUNS : 0; i < r->n_runs; i++)
        run_row(&r->runs[i], out);
    fputs("</tbody></table></div></details></section>", out);
}
