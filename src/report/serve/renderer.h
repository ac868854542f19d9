/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that renders slow responses, one after the other, while the server answers other
 * requests.  A request for a slow response is suspended until it is ready. */
#ifndef EW_REPORT_SERVE_RENDERER_H
#define EW_REPORT_SERVE_RENDERER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "report/serve/clients.h"
#include "report/serve/routes.h"

#define EW_MAX_ROUTES 16

/* The cached body of a route. */
struct ew_response {
    char *text;
    size_t size;
    int64_t made_ns; /* 0: never */
    bool failed;     /* the text says why */
    bool not_found;  /* the database does not exist yet */
};

/* Renders the body; failures are cached too, so that repeated requests cost nothing. */
void ew_response_render(struct ew_response *k, const struct ew_route *a, const char *db);

struct ew_renderer {
    const char *db;
    const struct ew_route *routes;
    void (*resume)(void *waiter); /* called by the thread, without the lock */
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t requested;
    bool runs, ends;
    bool wanted[EW_MAX_ROUTES];
    struct ew_response made[EW_MAX_ROUTES]; /* not taken yet */
    struct {
        void *waiter;
        int route;
    } waiting[EW_CLIENTS_ROOM];
    int n_waiting;
};

void ew_renderer_init(struct ew_renderer *m, const char *db, const struct ew_route *routes,
                      void (*resume)(void *waiter));

/* Has route i rendered unless it is being rendered already; the waiter is resumed when it is done.
 * False: no thread could be started, or too many wait. */
bool ew_renderer_request(struct ew_renderer *m, int i, void *waiter);

/* Moves the new response of route i to *k, if there is one. */
void ew_renderer_take(struct ew_renderer *m, int i, struct ew_response *k);

/* Waits for the response that is being rendered, and resumes all. */
void ew_renderer_fini(struct ew_renderer *m);

#endif
