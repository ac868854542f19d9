/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that makes slow answers, one after the other, while the server answers other requests.
 * A request for a slow answer waits until it is ready. */
#ifndef EW_REPORT_SERVE_MAKER_H
#define EW_REPORT_SERVE_MAKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "report/serve/answer.h"
#include "report/serve/clients.h"

#define EW_MOST_ANSWERS 16

/* The body of an answer when it was last made. */
struct ew_kept {
    char *text;
    size_t size;
    int64_t made_ns; /* 0: never */
    bool failed;     /* the text says why */
    bool not_found;  /* the database does not exist yet */
};

/* Makes the body; failures are kept as long as answers, so that repeated requests cost nothing. */
void ew_kept_make(struct ew_kept *k, const struct ew_answer *a, const char *db);

struct ew_maker {
    const char *db;
    const struct ew_answer *answers;
    void (*resume)(void *waiter); /* called by the thread, without the lock */
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t asked;
    bool runs, ends;
    bool wanted[EW_MOST_ANSWERS];
    struct ew_kept made[EW_MOST_ANSWERS]; /* not taken yet */
    struct {
        void *waiter;
        int answer;
    } waiting[EW_CLIENTS_ROOM];
    int n_waiting;
};

void ew_maker_init(struct ew_maker *m, const char *db, const struct ew_answer *answers,
                   void (*resume)(void *waiter));

/* Lets answer i be made unless it is being made already; the waiter is resumed when it is there.
 * False: no thread could be started, or too many wait. */
bool ew_maker_ask(struct ew_maker *m, int i, void *waiter);

/* Moves what has been made of answer i to *k, if anything has. */
void ew_maker_take(struct ew_maker *m, int i, struct ew_kept *k);

/* Waits for the answer that is being made, and resumes all. */
void ew_maker_fini(struct ew_maker *m);

#endif
