/* SPDX-License-Identifier: Apache-2.0 */
/* Connection to one machine of a fleet: its launcher (ssh, for example) is a child process, which
 * starts the agent (cli/cmd_agent.c) on the machine; messages (study/frames.h) go through its
 * standard input and output.  No port is opened.
 *
 *   here                    there
 *                           hello    who it is: protocol, version, device, disk, machine's fields
 *   file  NAME\0bytes                written into the folder of the agent
 *   run   word\0word\0               the program with these words, one at a time
 *                           out, err bytes that it writes
 *                           epoch    one that has ended in the store that it writes to
 *                           end      its exit status as text, 128 + signal
 *   fetch NAME              data     the file's bytes
 *   drop  NAME                       the file is removed
 *                           alive    every two seconds
 *                           failed   why it could not do what it was asked to
 */
#ifndef EW_STUDY_LINK_H
#define EW_STUDY_LINK_H

#include <poll.h>

#include "base/spawn.h"
#include "record/record.h"
#include "study/frames.h"
#include "study/machines.h"

#define EW_LINK_PROTOCOL 1
#define EW_LINK_TEXT     512
#define EW_LINK_FDS      3

enum ew_link_event {
    EW_LINK_NOTHING,
    EW_LINK_READY, /* its greeting has arrived and is valid */
    EW_LINK_OUT,   /* `frame` has bytes of the command's standard output */
    EW_LINK_EPOCH, /* `frame` has an epoch of the command (study/epoch_feed.h) */
    EW_LINK_END,   /* the command has ended, `status` */
    EW_LINK_DATA,  /* `frame` has the file that was asked for */
    EW_LINK_GONE   /* `said` says why; close it */
};

struct ew_link {
    const struct ew_fleet_machine *machine;
    struct ew_frames io;
    struct ew_frame frame; /* of the last event */
    struct ew_arena arena; /* holds what `about` points to */
    struct ew_machine_row about;
    char device[64];         /* its own identity */
    char said[EW_LINK_TEXT]; /* the last line of standard error, or the error */
    char launcher_line[EW_LINK_TEXT], line[EW_LINK_TEXT]; /* being put together */
    size_t n_launcher_line, n_line;
    int64_t heard_ns, disk_bytes;
    int status;
    struct ew_spawned process; /* the launcher */
    bool open, ready, broken;
};

/* Starts the launcher; the machine says READY later.  `self` is this program's path. */
ew_err ew_link_open(struct ew_link *l, const struct ew_fleet_machine *m, const char *self);

/* Ends the connection: the agent ends its command, as it also does if this process dies. */
void ew_link_close(struct ew_link *l); /* fine where it is not open */

/* Descriptors for poll: *n of them. */
void ew_link_poll(const struct ew_link *l, struct pollfd fds[EW_LINK_FDS], int *n);

/* Reads what has arrived; call once after each poll. */
void ew_link_receive(struct ew_link *l);

/* The next event; call until NOTHING. */
enum ew_link_event ew_link_next(struct ew_link *l);

/* A failure to send makes the machine GONE. */
void ew_link_file(struct ew_link *l, const char *name, const void *data, size_t size);
void ew_link_run(struct ew_link *l, const char *const *words); /* NULL-terminated */
void ew_link_ask(struct ew_link *l, const char *verb, const char *name);

#endif
