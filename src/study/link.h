/* SPDX-License-Identifier: Apache-2.0 */
/* One machine of a fleet, reached: its launcher runs as a process of ours, the program's agent
 * (cli/cmd_agent.c) at the launcher's other end, and messages (study/frames.h) go through its
 * standard input and output.  Nothing listens anywhere.
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
    EW_LINK_READY, /* it has said who it is, and that is right */
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
    char device[64];         /* its identity, whatever it is called here */
    char said[EW_LINK_TEXT]; /* the last line of standard error, or of trouble */
    char launcher_line[EW_LINK_TEXT], line[EW_LINK_TEXT]; /* being put together */
    size_t n_launcher_line, n_line;
    int64_t heard_ns, disk_bytes;
    int status;
    struct ew_spawned process; /* the launcher */
    bool open, ready, broken;
};

/* Starts the launcher; the machine says READY later.  `self` is this program's path. */
ew_err ew_link_open(struct ew_link *l, const struct ew_fleet_machine *m, const char *self);

/* Ends the connection: the agent ends what it runs, as it does when we die. */
void ew_link_close(struct ew_link *l); /* fine where it is not open */

/* What poll has to look at: *n of them. */
void ew_link_poll(const struct ew_link *l, struct pollfd fds[EW_LINK_FDS], int *n);

/* Takes in what has come; once after each poll. */
void ew_link_hear(struct ew_link *l);

/* What happened, one thing after the other until NOTHING. */
enum ew_link_event ew_link_next(struct ew_link *l);

/* What cannot be sent makes the machine GONE. */
void ew_link_file(struct ew_link *l, const char *name, const void *data, size_t size);
void ew_link_run(struct ew_link *l, const char *const *words); /* NULL-terminated */
void ew_link_ask(struct ew_link *l, const char *verb, const char *name);

#endif
