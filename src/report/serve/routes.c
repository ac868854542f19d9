/* SPDX-License-Identifier: Apache-2.0 */
/* Routes: the page's frame, figures and the whole report.  state.c renders the state. */
#include "report/serve/routes.h"

#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/mem.h"
#include "report/html.h"
#include "report/page.h"
#include "report/serve/serve.h"
#include "report/store/load.h"

static ew_route_fn render_index, render_video, render_figures, render_report;

const struct ew_route ew_routes[] = {
    {.path = "/", .type = "text/html; charset=utf-8", .render = render_index, .cache_ms = 60000},
    {.path = "/style.css", .type = "text/css; charset=utf-8", .asset = "style.css"},
    {.path = "/page.js", .type = "text/javascript; charset=utf-8", .asset = "page.js"},
    {.path = "/live.js", .type = "text/javascript; charset=utf-8", .asset = "live.js"},
    {.path = "/echarts.js",
     .type = "text/javascript; charset=utf-8",
     .asset = "echarts.js.gz",
     .packed = true},
    {.path = "/state.json",
     .type = "application/json; charset=utf-8",
     .render = ew_route_state,
     .cache_ms = 400},
    {.path = "/video.json",
     .type = "application/json; charset=utf-8",
     .render = render_video,
     .cache_ms = 100},
    {.path = "/figures",
     .type = "text/html; charset=utf-8",
     .render = render_figures,
     .cache_ms = 4000,
     .slow = true},
    {.path = "/report.html",
     .type = "text/html; charset=utf-8",
     .render = render_report,
     .cache_ms = 4000,
     .slow = true,
     .own_csp = true},
    {.path = "/metrics",
     .type = "text/plain; version=0.0.4; charset=utf-8",
     .render = ew_route_metrics,
     .cache_ms = 900},
    {.path = NULL},
};

static ew_err render_index(const char *db, FILE *out)
{
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
          "<meta name=\"color-scheme\" content=\"light dark\"><title>Edgewise</title>"
          "<link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"style.css\"></head>"
          "<body><header><h1>Edgewise</h1><p>Results of <b>",
          out);
    ew_html_text(out, db);
    fputs("</b>, updated live. <a href=\"report.html\">The whole report</a>, <a "
          "href=\"metrics\">metrics</a>.</p><p id=\"link\" class=\"alarm\" role=\"status\" "
          "aria-live=\"polite\"></p></header><main><section id=\"video\" hidden><h2>Video</h2><div "
          "id=\"video-box\"></div></section><section><h2>Studies</h2><div id=\"studies\" "
          "class=\"grid2\"></div></section><section><h2 id=\"running-title\">Running now</h2><div "
          "id=\"running\"></div></section><section><h2>Events</h2><div class=\"box\"><pre "
          "id=\"log\" class=\"log\" tabindex=\"0\"></pre></div></section><div "
          "id=\"figures\"></div></main><footer>This page is read-only.</footer><script "
          "src=\"echarts.js\"></script><script src=\"page.js\"></script><script "
          "src=\"live.js\"></script></body></html>\n",
          out);
    return EW_OK;
}

#define VIDEO_BYTES ((size_t)8 << 20)

/* {"age_s": ..., "video": what `edgewise run --live` has written}; no "video" if there is no such
 * file.
 */
static ew_err render_video(const char *db, FILE *out)
{
    EW_CLEANUP(ew_free_ptr) char *path = NULL, *text = NULL;
    size_t size = 0;
    struct stat st;
    EW_CHECK(asprintf(&path, "%s" EW_SERVE_VIDEO, db) >= 0, EW_ERR_MEMORY, "no memory");
    if (stat(path, &st) != 0) {
        fputs("{}", out);
        return EW_OK;
    }
    EW_TRY(ew_file_read(path, VIDEO_BYTES, &text, &size));
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const double age_s = difftime(now.tv_sec, st.st_mtim.tv_sec);
    fprintf(out, "{\"age_s\":%.0f,\"video\":%s}", age_s > 0 ? age_s : 0, text);
    return EW_OK;
}

static ew_err load(const char *db, struct ew_results *r, struct ew_figures *f)
{
    struct ew_store *s;
    EW_TRY(ew_store_open(db, &(struct ew_store_opts){.read_only = true}, &s));
    ew_results_init(r);
    ew_err e = ew_results_load(s, NULL, NULL, r);
    ew_store_close(s);
    if (e == EW_OK)
        e = ew_figures_init(ew_figures_report, r, NULL, f);
    if (e != EW_OK)
        ew_results_fini(r);
    return e;
}

static ew_err render_figures(const char *db, FILE *out)
{
    struct ew_results r;
    struct ew_figures f;
    EW_TRY(load(db, &r, &f));
    ew_err e = ew_page_figures(&f, false, out);
    if (e == EW_OK)
        e = ew_page_data(&f, out);
    ew_page_machines(&r, out);
    ew_figures_fini(&f);
    ew_results_fini(&r);
    return e;
}

static ew_err render_report(const char *db, FILE *out)
{
    struct ew_results r;
    struct ew_figures f;
    EW_TRY(load(db, &r, &f));
    const ew_err e = ew_page_write(&r, &f, &(struct ew_page_opts){.title = "Edgewise report"}, out);
    ew_figures_fini(&f);
    ew_results_fini(&r);
    return e;
}
