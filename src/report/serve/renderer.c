/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that renders slow responses. */
#include "report/serve/renderer.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"

void ew_response_render(struct ew_response *k, const struct ew_route *a, const char *db)
{
    free(k->text);
    *k = (struct ew_response){0};
    FILE *f = open_memstream(&k->text, &k->size);
    ew_err e = f ? a->render(db, f) : ew_fail(EW_ERR_MEMORY, "no memory for a response");
    if (f && !ew_memstream_close(f, &k->text) && e == EW_OK)
        e = ew_fail(EW_ERR_MEMORY, "no memory for a response");
    k->made_ns =
        ew_clock_ns(); /* when it was finished: requests that came meanwhile get the same */
    if (e == EW_OK)
        return;
    free(k->text);
    k->failed = true;
    k->not_found = e == EW_ERR_NOT_FOUND;
    k->text = NULL;
    if (asprintf(&k->text, "%s\n", ew_error_message()) < 0)
        k->text = NULL;
    k->size = k->text ? strlen(k->text) : 0;
}

void ew_renderer_init(struct ew_renderer *m, const char *db, const struct ew_route *routes,
                      void (*resume)(void *waiter))
{
    *m = (struct ew_renderer){.db = db, .routes = routes, .resume = resume};
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->requested, NULL);
}

static int next_wanted(const struct ew_renderer *m)
{
    for (int i = 0; i < EW_MAX_ROUTES; i++)
        if (m->wanted[i])
            return i;
    return -1;
}

/* Resumes the requests that wait for route i; -1: all. */
static void resume(struct ew_renderer *m, int i)
{
    void *list[EW_CLIENTS_ROOM];
    int n = 0, kept = 0;
    for (int w = 0; w < m->n_waiting; w++)
        if (i < 0 || m->waiting[w].route == i)
            list[n++] = m->waiting[w].waiter;
        else
            m->waiting[kept++] = m->waiting[w];
    m->n_waiting = kept;
    pthread_mutex_unlock(&m->lock);
    for (int w = 0; w < n; w++)
        m->resume(list[w]);
    pthread_mutex_lock(&m->lock);
}

static void *render_all(void *ctx)
{
    struct ew_renderer *m = ctx;
    (void)ew_locale_enter();
    pthread_mutex_lock(&m->lock);
    while (!m->ends) {
        const int i = next_wanted(m);
        if (i < 0) {
            pthread_cond_wait(&m->requested, &m->lock);
            continue;
        }
        struct ew_response k = {0};
        pthread_mutex_unlock(&m->lock);
        ew_response_render(&k, &m->routes[i], m->db);
        pthread_mutex_lock(&m->lock);
        free(m->made[i].text);
        m->made[i] = k;
        m->wanted[i] = false; /* requests that came meanwhile wait for this one */
        resume(m, i);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* Signals are for the thread that waits for connections. */
static bool start(struct ew_renderer *m)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    m->runs = pthread_create(&m->thread, NULL, render_all, m) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return m->runs;
}

bool ew_renderer_request(struct ew_renderer *m, int i, void *waiter)
{
    pthread_mutex_lock(&m->lock);
    const bool well = m->n_waiting < EW_CLIENTS_ROOM && (m->runs || start(m));
    if (well) {
        m->waiting[m->n_waiting].waiter = waiter;
        m->waiting[m->n_waiting++].route = i;
        m->wanted[i] = true;
        pthread_cond_signal(&m->requested);
    }
    pthread_mutex_unlock(&m->lock);
    return well;
}

void ew_renderer_take(struct ew_renderer *m, int i, struct ew_response *k)
{
    pthread_mutex_lock(&m->lock);
    if (m->made[i].made_ns) {
        free(k->text);
        *k = m->made[i];
        m->made[i] = (struct ew_response){0};
    }
    pthread_mutex_unlock(&m->lock);
}

void ew_renderer_fini(struct ew_renderer *m)
{
    pthread_mutex_lock(&m->lock);
    m->ends = true;
    pthread_cond_signal(&m->requested);
    pthread_mutex_unlock(&m->lock);
    if (m->runs)
        pthread_join(m->thread, NULL);
    pthread_mutex_lock(&m->lock);
    resume(m, -1);
    pthread_mutex_unlock(&m->lock);
    for (int i = 0; i < EW_MAX_ROUTES; i++)
        free(m->made[i].text);
    pthread_cond_destroy(&m->requested);
    pthread_mutex_destroy(&m->lock);
}
