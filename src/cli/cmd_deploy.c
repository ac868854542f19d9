/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise deploy: copies the program and a network to a board, compiles and measures there. */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/cmd.h"
#include "cli/remote.h"
#include "network/network.h"
#include "network/trained.h"
#include "report/text_table.h"
#include "store/store.h"

#define SERVICE "edgewise-monitor"

struct opts {
    const char *program, *folder, *db, *compile;
    bool bench, service;
};

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "bench", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, bench),
     .help = "measure the engine on the board and bring back the results"},
    {.name = "service", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, service),
     .help = "keep `monitor` running there (a systemd user unit): load, power and temperatures "
     "in FOLDER/board.prom, for Prometheus"},
    {.name = "program", .type = EW_FIELD_STR, .offset = offsetof(struct opts, program),
     .metavar = "FILE",
     .help = "program for the board; default: a static one for its architecture beside this one "
     "(edgewise-aarch64, or the output of ./run static), else this one"},
    {.name = "folder", .type = EW_FIELD_STR, .offset = offsetof(struct opts, folder),
     .def = "edgewise", .metavar = "DIR",
     .help = "destination, relative to the home folder on the board"},
    {.name = "compile", .type = EW_FIELD_STR, .offset = offsetof(struct opts, compile),
     .def = "", .metavar = "OPTIONS",
     .help = "additional options of compile on the board, as \"--tune --batch 1-4\""},
    {.name = "db", .type = EW_FIELD_STR, .offset = offsetof(struct opts, db),
     .def = EW_STORE_FILE, .metavar = "FILE", .help = "results database on this machine"},
    EW_FIELD_END};
/* clang-format on */

/* Results of the steps. */
struct deployed {
    char machine[64], version[64], program[512], network[256], engine[256];
    int64_t program_bytes, network_bytes; /* bytes sent */
    int runs;                             /* runs copied back into the local store */
    char median[64];
};

/* ---- The program ---- */

/* "x86_64" or "aarch64" from the ELF header; "": neither. */
static const char *machine_of(const char *path)
{
    Elf64_Ehdr h;
    if (ew_file_head(path, &h, sizeof(h)) != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
        return "";
    return h.e_machine == EM_X86_64 ? "x86_64" : h.e_machine == EM_AARCH64 ? "aarch64" : "";
}

/* Finds the static program for this architecture: installed beside this one, or built by ./run
 * static.  False: none. */
static bool find_static(const char *self, const char *machine, char *out, size_t size)
{
    static const char *const places[] = {"edgewise-%s", "../lib/edgewise/edgewise-%s",
                                         "../../static-%s/src/edgewise"};
    const char *slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < EW_COUNT(places); i++) {
        char name[128];
        snprintf(name, sizeof(name), "%.*s%.40s%s", (int)(strchr(places[i], '%') - places[i]),
                 places[i], machine, strchr(places[i], '%') + 2);
        const int n = snprintf(out, size, "%.*s/%s", (int)(slash - self), self, name);
        if (n > 0 && (size_t)n < size && strcmp(machine_of(out), machine) == 0)
            return true;
    }
    return false;
}

static ew_err find_program(struct ew_cmd_call *c, const struct ew_remote *r, struct deployed *d)
{
    const struct opts *o = c->opts;
    char self[400];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    EW_CHECK(n > 0, EW_ERR_IO, "/proc/self/exe cannot be read");
    self[n] = '\0';
    EW_TRY(ew_remote_run(r, "uname -m", d->machine, sizeof(d->machine)));
    EW_CHECK(d->machine[0], EW_ERR_IO, "%s: uname -m printed nothing there", r->host);
    if (o->program)
        snprintf(d->program, sizeof(d->program), "%s", o->program);
    else if (!find_static(self, d->machine, d->program, sizeof(d->program)))
        snprintf(d->program, sizeof(d->program), "%s", self);
    const char *have = machine_of(d->program);
    if (strcmp(have, d->machine) != 0)
        ew_cmd_hint(
            c,
            "--program must name one built for %s; ./run static builds one for 64-bit Arm boards",
            d->machine);
    EW_CHECK(strcmp(have, d->machine) == 0, EW_ERR_UNSUPPORTED, "%s is %s, %s is for %s", r->host,
             d->machine, d->program, *have ? have : "an unknown machine type");
    return EW_OK;
}

/* ---- Steps ---- */

static ew_err send_all(struct ew_cmd_call *c, const struct ew_remote *r, struct deployed *d)
{
    const char *net = c->args[1];
    char command[512], folder[256], path[EW_TRAINED_PATH];
    EW_TRY(find_program(c, r, d));
    EW_INFO("%s: %s", r->host, d->machine);
    EW_TRY(ew_remote_send(r, d->program, "edgewise", true, &d->program_bytes));
    EW_TRY(ew_remote_quote(r->folder, folder, sizeof(folder)));
    snprintf(command, sizeof(command), "cd %s && ./edgewise version | head -n 1", folder);
    const ew_err e = ew_remote_run(r, command, d->version, sizeof(d->version));
    if (e != EW_OK || strncmp(d->version, "edgewise ", 9) != 0)
        ew_cmd_hint(c, "./run static builds a program that needs no libraries of the board; "
                       "--program names it");
    EW_TRY(e);
    EW_CHECK(strncmp(d->version, "edgewise ", 9) == 0, EW_ERR_UNSUPPORTED,
             "%s: the program does not run on the board", r->host);
    EW_INFO("%s: %s", r->host, d->version);
    if (ew_trained_find(net, path)) /* a file by its name, which the board may not have */
        net = path;
    const char *slash = strrchr(net, '/'), *base = slash ? slash + 1 : net;
    snprintf(d->network, sizeof(d->network), "%.250s", base);
    if (!ew_network_is_file(net)) /* of the zoo: known there too */
        return EW_OK;
    EW_CHECK(strcmp(base, "edgewise") != 0, EW_ERR_USAGE,
             "%s: the program there is called edgewise: give the network another name", net);
    return ew_remote_send(r, net, base, false, &d->network_bytes);
}

/* A file may have a name that begins like an option. */
static const char *before(const char *name)
{
    return name[0] == '-' ? "./" : "";
}

static ew_err compile_there(struct ew_cmd_call *c, const struct ew_remote *r, struct deployed *d)
{
    const struct opts *o = c->opts;
    char command[1024], folder[256], net[300], engine[300];
    const char *dot = strrchr(d->network, '.');
    const bool ready = dot && strcmp(dot, ".ewe") == 0;
    const int n =
        ready || !dot ? (int)strlen(d->network) - (ready ? 4 : 0) : (int)(dot - d->network);
    snprintf(d->engine, sizeof(d->engine), "%.*s.ewe", n, d->network);
    if (ready)
        return EW_OK;
    EW_TRY(ew_remote_quote(r->folder, folder, sizeof(folder)));
    EW_TRY(ew_remote_quote(d->network, net, sizeof(net)));
    EW_TRY(ew_remote_quote(d->engine, engine, sizeof(engine)));
    const char *here = before(d->network);
    const size_t length =
        (size_t)snprintf(command, sizeof(command), "cd %s && ./edgewise compile %s%s -o %s%s %s",
                         folder, here, net, here, engine, o->compile);
    EW_CHECK(length < sizeof(command), EW_ERR_LIMIT, "--compile: too long");
    char said[2048];
    return ew_remote_run(r, command, said, sizeof(said));
}

static ew_err bring_home(const struct opts *o, const struct ew_remote *r, struct deployed *d)
{
    const char *folder = getenv("TMPDIR");
    char file[512];
    snprintf(file, sizeof(file), "%.480s/edgewise-deploy-XXXXXX",
             folder && *folder ? folder : "/tmp");
    const int fd = mkstemp(file);
    EW_CHECK(fd >= 0, EW_ERR_IO, "%s: %s", file, strerror(errno));
    close(fd);
    struct ew_store *here = NULL, *there = NULL;
    ew_err e = ew_remote_fetch(r, "deploy.db", file);
    if (e == EW_OK)
        e = ew_store_open(o->db, NULL, &here);
    if (e == EW_OK)
        e = ew_store_open(file, &(struct ew_store_opts){.existing = true}, &there);
    if (e == EW_OK)
        e = ew_store_copy(there, here, NULL, &d->runs);
    ew_store_close(there);
    ew_store_close(here);
    unlink(file);
    return e;
}

static ew_err bench_there(const struct opts *o, const struct ew_remote *r, struct deployed *d)
{
    char command[1024], folder[256], engine[300], said[4096];
    EW_TRY(ew_remote_quote(r->folder, folder, sizeof(folder)));
    EW_TRY(ew_remote_quote(d->engine, engine, sizeof(engine)));
    snprintf(command, sizeof(command), "cd %s && ./edgewise bench %s%s --db deploy.db", folder,
             before(d->engine), engine);
    EW_TRY(ew_remote_run(r, command, said, sizeof(said)));
    const char *time = strstr(said, "median ");
    snprintf(d->median, sizeof(d->median), "%.*s", time ? (int)strcspn(time, ",") : 0,
             time ? time : "");
    return bring_home(o, r, d);
}

/* As systemd takes it without quotes. */
static bool is_plain(const char *folder)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
    return folder[strspn(folder, letters)] == '\0';
}

/* The user's own unit: nobody has to be root, and it is gone with the folder and the file. */
static ew_err start_service(struct ew_cmd_call *c, const struct ew_remote *r)
{
    char unit[1024], quoted[1200], command[1600];
    const char *home = r->folder[0] == '/' ? "" : "%h/";
    snprintf(
        unit, sizeof(unit),
        "[Unit]\nDescription=Edgewise: load, power and temperatures for Prometheus\n\n"
        "[Service]\nExecStart=%s%s/edgewise monitor --json --interval 10 --log %s%s/board.prom\n"
        "StandardOutput=null\nRestart=on-failure\n\n[Install]\nWantedBy=default.target\n",
        home, r->folder, home, r->folder);
    EW_TRY(ew_remote_quote(unit, quoted, sizeof(quoted)));
    snprintf(command, sizeof(command),
             "d=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user; mkdir -p \"$d\" && "
             "printf %%s %s >\"$d/" SERVICE ".service\" && systemctl --user daemon-reload && "
             "systemctl --user enable " SERVICE " && systemctl --user restart " SERVICE,
             quoted);
    char said[256];
    const ew_err e = ew_remote_run(r, command, said, sizeof(said));
    if (e != EW_OK)
        ew_cmd_hint(c, "systemd user units need a session bus on the board; run there as root: "
                       "loginctl enable-linger USER");
    return e;
}

static ew_err show(const struct ew_cmd_call *c, const struct ew_remote *r, const struct deployed *d)
{
    const struct opts *o = c->opts;
    char a[EW_TEXT_CHARS], b[EW_TEXT_CHARS];
    if (!c->json) {
        printf("%s:%s/%s, %s\n", r->host, r->folder, d->engine, d->machine);
        printf("sent:      program %s, network %s\n", ew_text_bytes(d->program_bytes, a),
               ew_text_bytes(d->network_bytes, b));
        if (o->bench)
            printf("time:      %s there; %d runs in %s\n", d->median, d->runs, o->db);
        if (o->service)
            printf("service:   " SERVICE ", every 10 s in %s/board.prom; ssh %s systemctl --user "
                   "status " SERVICE "\n",
                   r->folder, r->host);
        printf("run it:    ssh %s %s/edgewise run %s/%s IMAGE\n", r->host, r->folder, r->folder,
               d->engine);
        return EW_OK;
    }
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "host", r->host);
    ew_json_str(&j, "machine", d->machine);
    ew_json_str(&j, "version", d->version);
    ew_json_str(&j, "engine", d->engine);
    ew_json_int(&j, "program_bytes_sent", d->program_bytes);
    ew_json_int(&j, "network_bytes_sent", d->network_bytes);
    ew_json_int(&j, "runs", d->runs);
    ew_json_bool(&j, "service", o->service);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    const struct ew_remote r = {.host = c->args[0], .folder = o->folder};
    struct deployed d = {0};
    EW_CHECK(r.host[0] != '-', EW_ERR_USAGE, "'%s' is not a host", r.host);
    EW_CHECK(o->folder[0] && o->folder[0] != '-', EW_ERR_USAGE,
             "--folder: '%s' is not a folder name", o->folder);
    EW_CHECK(!o->service || is_plain(o->folder), EW_ERR_USAGE,
             "--service: a folder of letters, digits and ._-/, not '%s'", o->folder);
    EW_TRY(send_all(c, &r, &d));
    EW_TRY(compile_there(c, &r, &d));
    if (o->bench)
        EW_TRY(bench_there(o, &r, &d));
    if (o->service)
        EW_TRY(start_service(c, &r));
    return show(c, &r, &d);
}

const struct ew_cmd ew_cmd_deploy = {
    .name = "deploy",
    .group = EW_CMD_MEASURE,
    .summary = "copy a network to a board by ssh, compile and measure it there",
    .args = "USER@BOARD NAME|FILE.onnx|CKPT|FILE.ewe",
    .about = "Copies the program and the network to the board, compiles the engine there, and "
             "with --bench measures it and brings the results back.\n"
             "Unchanged files are not sent again, and an interrupted copy is resumed; the board "
             "needs only ssh and a shell.\n"
             "$EW_SSH names another program than ssh.",
    .examples =
        "deploy pi@raspberrypi net.onnx --bench\n"
        "deploy pi@raspberrypi lenet5-mnist --service\n"
        "deploy jetson resnet18 --program edgewise-aarch64 --compile \"--tune --batch 1-4\"",
    .min_args = 2,
    .max_args = 2,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
