/* SPDX-License-Identifier: Apache-2.0 */
/* The page's gallery: the pictures that `eval --mistakes` drew.  The store has only their names, so
 * a picture is shown where its file still lies. */
#include <string.h>

#include "base/file.h"
#include "report/html.h"
#include "report/page.h"
#include "report/text_table.h"

#define MOST_BYTES (8u << 20) /* of one picture */

/* Results may come from untrusted files, whose paths must not include arbitrary files in the
 * page. */
static bool is_below(const char *path)
{
    if (path[0] == '/')
        return false;
    for (const char *p = path; *p; p += strcspn(p, "/"), p += *p == '/')
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2]))
            return false;
    return true;
}

static const char *picture_of(const struct ew_run_data *d, struct ew_arena *a)
{
    const bool eval = d->job.command && strcmp(d->job.command, "eval") == 0;
    return eval && ew_run_counts(d) ? ew_run_property(d, "mistakes", a) : NULL;
}

/* Whether a later run has overwritten the file. */
static bool is_overwritten(const struct ew_results *r, int run, const char *path,
                           struct ew_arena *a)
{
    for (int i = run + 1; i < r->n_runs; i++) {
        const char *other = picture_of(&r->runs[i], a);
        if (other && strcmp(other, path) == 0)
            return true;
    }
    return false;
}

static void caption(const struct ew_run_data *d, const char *path, FILE *out)
{
    fputs("<figcaption>", out);
    for (int i = 0; i < d->n_metrics; i++)
        if (d->metrics[i].name && strcmp(d->metrics[i].name, "test_accuracy") == 0)
            fprintf(out, "Accuracy %.2f %%. ", 100 * d->metrics[i].value);
    ew_html_text(out, path);
    fputs(d->run.started ? ", " : "", out);
    ew_html_text(out, d->run.started ? d->run.started : "");
    fputs("</figcaption>", out);
}

static void picture(const struct ew_run_data *d, const char *path, FILE *out)
{
    static const char signature[] = "\x89PNG\r\n\x1a\n";
    EW_CLEANUP(ew_free_ptr) char *bytes = NULL;
    size_t size = 0;
    fputs("<figure><h3>", out);
    ew_html_text(out, d->job.network ? d->job.network : "network");
    if (d->job.dataset) {
        fputs(" on ", out);
        ew_html_text(out, d->job.dataset);
    }
    fputs("</h3>", out);
    if (!is_below(path)) {
        fputs("<p>Not shown: the file is not below the folder of this report.</p>", out);
    } else if (ew_file_read(path, MOST_BYTES, &bytes, &size) != EW_OK || size < sizeof(signature) ||
               memcmp(bytes, signature, sizeof(signature) - 1) != 0) {
        fputs("<p>Not shown: the file is gone, or not a picture.</p>", out);
    } else {
        fputs("<img class=\"gallery\" alt=\"misclassified images with the highest confidence\" "
              "src=\"data:image/png;base64,",
              out);
        ew_html_base64(out, bytes, size);
        fputs("\">", out);
    }
    caption(d, path, out);
    fputs("</figure>", out);
}

bool ew_page_has_mistakes(const struct ew_results *r)
{
    struct ew_arena a;
    bool found = false;
    ew_arena_init(&a);
    for (int i = 0; i < r->n_runs && !found; i++)
        found = picture_of(&r->runs[i], &a) != NULL;
    ew_arena_fini(&a);
    return found;
}

void ew_page_mistakes(const struct ew_results *r, FILE *out)
{
    struct ew_arena a;
    if (!ew_page_has_mistakes(r))
        return;
    ew_arena_init(&a);
    fputs("<section id=\"mistakes\"><h2>Worst mistakes</h2><p>The misclassified images with the "
          "highest confidence; wrong labels are often among them.</p><div class=\"panels\">",
          out);
    for (int i = 0; i < r->n_runs; i++) {
        const char *path = picture_of(&r->runs[i], &a);
        if (path && !is_overwritten(r, i, path, &a))
            picture(&r->runs[i], path, out);
    }
    fputs("</div></section>", out);
    ew_arena_fini(&a);
}
