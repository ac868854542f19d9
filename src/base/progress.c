/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line. */
#include "base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

#define REDRAW_NS (EW_NS_PER_S / 10)
#define FIRST_NS  (EW_NS_PER_S / 2) /* what is over sooner needs no line */

/* Streams that filter what passes have no descriptor of their own. */
int ew_term_fd(FILE *out)
{
    return out == stdout ? STDOUT_FILENO : out == stderr ? STDERR_FILENO : fileno(out);
}

void ew_term_clear_line(FILE *out)
{
    static const char sequence[] = "\r\033[K";
    fflush(out);
    (void)!write(ew_term_fd(out), sequence, sizeof(sequence) - 1);
}

int ew_terminal_columns(FILE *out)
{
    struct winsize w;
    return ioctl(ew_term_fd(out), TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

void ew_term_rewrite(FILE *out, const char *text)
{
    ew_term_clear_line(out);
    fprintf(out, "%.*s", (int)ew_utf8_fit(text, ew_terminal_columns(out) - 1), text);
    fflush(out);
}

void ew_progress_begin(struct ew_progress *p, FILE *out, const char *what, int64_t total)
{
    *p = (struct ew_progress){.what = what, .total = total, .start_ns = ew_clock_ns()};
    p->shown_ns = p->start_ns + FIRST_NS - REDRAW_NS;
    if (out && isatty(ew_term_fd(out)))
        p->out = out;
}

static void duration_text(int64_t s, char *buf, size_t size)
{
    if (s < 3600)
        snprintf(buf, size, "%d:%02d", (int)(s / 60), (int)(s % 60));
    else
        snprintf(buf, size, "%lld:%02d:%02d", (long long)(s / 3600), (int)(s / 60 % 60),
                 (int)(s % 60));
}

void ew_progress_text(const struct ew_progress *p, int64_t done, int64_t elapsed_ns, char *buf,
                      size_t size)
{
    const double share = p->total > 0 ? (double)done / (double)p->total : 0;
    int n = snprintf(buf, size, "%s %3d%% %lld/%lld", p->what, (int)(100 * share), (long long)done,
                     (long long)p->total);
    if (done <= 0 || done > p->total || n < 0 || (size_t)n >= size)
        return;
    char left[32];
    const double seconds = (double)elapsed_ns / (double)EW_NS_PER_S;
    duration_text((int64_t)(seconds * (1 - share) / share + 0.5), left, sizeof(left));
    snprintf(buf + n, size - (size_t)n, ", %s left", left);
}

void ew_progress_update(struct ew_progress *p, int64_t done)
{
    if (!p->out)
        return;
    const int64_t now = ew_clock_ns();
    if (now - p->shown_ns < REDRAW_NS)
        return;
    p->shown_ns = now;
    char text[256];
    ew_progress_text(p, done, now - p->start_ns, text, sizeof(text));
    ew_term_rewrite(p->out, text);
}

void ew_progress_end(struct ew_progress *p)
{
    if (!p->out)
        return;
    ew_term_clear_line(p->out);
    fflush(p->out);
    p->out = NULL;
}
