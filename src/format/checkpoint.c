/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing checkpoints. */
#include "format/checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "format/graph_file.h"
#include "format/image_card.h"

#define VERSION     1
#define MAX_BYTES   ((size_t)1 << 36)
#define MAX_CLASSES (1 << 24)
#define MAX_STATES  (1 << 24)
#define MAX_NOTES   (1 << 13)
#define HEAD_BYTES  24 /* magic, version, number of notes */
#define SUM_BYTES   8

/* As in PNG: a non-ASCII byte and both line endings reveal a transfer in text mode. */
static const char magic[8] = "\x89"
                             "EWC\r\n\x1a\n";

/* ---- Writing ---- */

static void put_double(struct ew_byte_writer *p, double v)
{
    int64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    ew_write_int(p, bits);
}

/* Notes kept in the graph: how weights of quantisation-aware training are rounded.  The image card
 * is written separately. */
static bool is_kept(const struct ew_note *n)
{
    return strncmp(n->key, "qat.", 4) == 0;
}

static int64_t count_notes(const struct ew_graph *g)
{
    int64_t n = 0;
    for (const struct ew_note *at = g->notes; at; at = at->next)
        n += is_kept(at);
    return n;
}

static void put_notes(struct ew_byte_writer *p, const struct ew_graph *g)
{
    for (const struct ew_note *at = g->notes; at; at = at->next)
        if (is_kept(at)) {
            ew_write_text(p, at->key);
            ew_write_text(p, at->value);
        }
}

static ew_err put_all(struct ew_byte_writer *p, const struct ew_checkpoint *c)
{
    const int64_t notes = count_notes(c->graph);
    EW_CHECK(notes <= MAX_NOTES, EW_ERR_LIMIT, "%s: has %lld rounded layers, over %d",
             c->graph->name, (long long)notes, MAX_NOTES);
    ew_write_bytes(p, magic, sizeof(magic));
    ew_write_int(p, VERSION);
    ew_write_int(p, notes);
    ew_write_text(p, c->options);
    ew_write_text(p, c->progress);
    ew_write_int(p, c->n_classes);
    for (int i = 0; i < c->n_classes; i++)
        ew_write_text(p, c->classes[i]);
    for (int i = 0; i < EW_SAMPLE_CHANNELS; i++)
        put_double(p, c->prep.mean[i]);
    for (int i = 0; i < EW_SAMPLE_CHANNELS; i++)
        put_double(p, c->prep.std[i]);
    EW_TRY(ew_graph_write(p, c->graph));
    ew_write_int(p, c->n_states);
    for (int i = 0; i < c->n_states; i++) {
        ew_write_text(p, c->states[i].param);
        ew_write_int(p, c->states[i].slot);
        ew_write_tensor(p, &c->states[i].t);
    }
    put_notes(p, c->graph);
    ew_write_int(p, (int64_t)ew_hash_sum(&p->hash));
    return EW_OK;
}

ew_err ew_checkpoint_write(const char *path, const struct ew_checkpoint *c)
{
    struct ew_file_out out;
    EW_TRY(ew_file_out_replace(path, &out));
    struct ew_byte_writer p = {.f = out.f};
    const ew_err e = put_all(&p, c);
    if (e == EW_OK)
        return ew_file_out_commit(&out);
    ew_file_out_abort(&out);
    return e;
}

int64_t ew_checkpoint_size(const struct ew_checkpoint *c)
{
    int64_t bytes = 4096 + (int64_t)strlen(c->options) + (int64_t)strlen(c->progress);
    for (int i = 0; i < c->graph->n_values; i++) {
        const struct ew_value *v = &c->graph->values[i];
        if (ew_value_is_weight(v))
            bytes += (int64_t)ew_tensor_bytes(&v->t);
        bytes += 256;
    }
    for (int i = 0; i < c->n_states; i++)
        bytes += (int64_t)ew_tensor_bytes(&c->states[i].t) + 256;
    return bytes;
}

/* ---- Reading ---- */

static ew_err check_frame(struct ew_byte_reader *in, int64_t *notes)
{
    int64_t version, sum;
    const void *head;
    EW_CHECK(in->size >= sizeof(magic) && memcmp(in->bytes, magic, sizeof(magic)) == 0,
             EW_ERR_FORMAT, "%s: not a checkpoint", in->what);
    EW_CHECK(in->size >= HEAD_BYTES + SUM_BYTES, EW_ERR_FORMAT, "%s: is cut off at %zu bytes",
             in->what, in->size);
    EW_TRY(ew_read_bytes(in, sizeof(magic), &head));
    EW_TRY(ew_read_int(in, INT64_MIN, INT64_MAX, &version));
    EW_CHECK(version <= VERSION || version > 1 << 16, EW_ERR_UNSUPPORTED,
             "%s: is a checkpoint of version %lld; this program reads up to %d", in->what,
             (long long)version, VERSION);
    in->size -= SUM_BYTES;
    struct ew_byte_reader end = {in->bytes, in->size + SUM_BYTES, in->size, in->what, in->arena};
    EW_TRY(ew_read_int(&end, INT64_MIN, INT64_MAX, &sum));
    EW_CHECK((uint64_t)sum == ew_hash_of(in->bytes, in->size), EW_ERR_FORMAT,
             "%s: is damaged or cut off: its checksum does not fit", in->what);
    EW_CHECK(version == VERSION, EW_ERR_FORMAT, "%s: has no version", in->what);
    return ew_read_int(in, 0, MAX_NOTES, notes);
}

static ew_err get_double(struct ew_byte_reader *in, double *out)
{
    int64_t bits;
    EW_TRY(ew_read_int(in, INT64_MIN, INT64_MAX, &bits));
    memcpy(out, &bits, sizeof(bits));
    return EW_OK;
}

static ew_err get_classes(struct ew_byte_reader *in, struct ew_checkpoint *c)
{
    int64_t n;
    EW_TRY(ew_read_int(in, 0, MAX_CLASSES, &n));
    EW_CHECK((size_t)n <= in->size / 8, EW_ERR_FORMAT, "%s: has %lld classes, more than bytes",
             in->what, (long long)n);
    const char **names = ew_arena_array(&c->arena, (size_t)n + 1, sizeof(*names));
    EW_CHECK(names, EW_ERR_MEMORY, "%s: no memory", in->what);
    for (int64_t i = 0; i < n; i++)
        EW_TRY(ew_read_text(in, &names[i]));
    c->classes = names;
    c->n_classes = (int)n;
    return EW_OK;
}

static ew_err get_states(struct ew_byte_reader *in, struct ew_checkpoint *c)
{
    int64_t n;
    EW_TRY(ew_read_int(in, 0, MAX_STATES, &n));
    EW_CHECK((size_t)n <= in->size / 8, EW_ERR_FORMAT, "%s: has %lld states, more than bytes",
             in->what, (long long)n);
    struct ew_checkpoint_state *s = ew_arena_array(&c->arena, (size_t)n + 1, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "%s: no memory", in->what);
    for (int64_t i = 0; i < n; i++) {
        EW_TRY(ew_read_text(in, &s[i].param));
        EW_TRY(ew_read_int(in, 0, MAX_STATES, &s[i].slot));
        EW_TRY(ew_read_tensor(in, &s[i].t));
        EW_CHECK(s[i].t.data, EW_ERR_FORMAT, "%s: the state of %s has no data", in->what,
                 s[i].param);
    }
    c->states = s;
    c->n_states = (int)n;
    return EW_OK;
}

static ew_err get_notes(struct ew_byte_reader *in, int64_t n, struct ew_graph *g)
{
    for (int64_t i = 0; i < n; i++) {
        struct ew_note note;
        EW_TRY(ew_read_text(in, &note.key));
        EW_TRY(ew_read_text(in, &note.value));
        EW_CHECK(is_kept(&note), EW_ERR_FORMAT, "%s: has a note called %.60s", in->what, note.key);
        EW_TRY(ew_graph_note_set(g, note.key, note.value));
    }
    return EW_OK;
}

static ew_err get_all(struct ew_byte_reader *in, struct ew_checkpoint *c)
{
    int64_t notes;
    EW_TRY(check_frame(in, &notes));
    EW_TRY(ew_read_text(in, &c->options));
    EW_TRY(ew_read_text(in, &c->progress));
    EW_TRY(get_classes(in, c));
    for (int i = 0; i < EW_SAMPLE_CHANNELS; i++)
        EW_TRY(get_double(in, &c->prep.mean[i]));
    for (int i = 0; i < EW_SAMPLE_CHANNELS; i++)
        EW_TRY(get_double(in, &c->prep.std[i]));
    EW_TRY(ew_graph_read(in, &c->graph));
    EW_TRY(get_states(in, c));
    EW_TRY(get_notes(in, notes, c->graph));
    EW_CHECK(in->at == in->size, EW_ERR_FORMAT, "%s: has %zu bytes too many", in->what,
             in->size - in->at);
    return EW_OK;
}

/* How evaluation resizes: as in training, to the smallest size that covers the input, unless the
 * options say otherwise. */
static int64_t resize_of(const struct ew_checkpoint *c)
{
    static const char key[] = "\nresize = ";
    const struct ew_graph *g = c->graph;
    const struct ew_shape *in = g->n_inputs ? &g->values[g->inputs[0]].t.shape : NULL;
    const char *said = strstr(c->options, key);
    const int64_t side = said ? strtoll(said + sizeof(key) - 1, NULL, 10) : 0;
    if (side > 0)
        return side;
    return in && in->rank == 4 && in->dim[1] == in->dim[2] ? in->dim[1] : EW_RESIZE_COVER;
}

/* Writes the image card into the graph's notes. */
static ew_err note_images(struct ew_checkpoint *c)
{
    struct ew_preprocess *p = &c->prep;
    p->resize = resize_of(c);
    p->normalised = p->std[0] > 0;
    for (int i = 0; i < EW_SAMPLE_CHANNELS; i++) {
        p->normalised = p->normalised && isfinite(p->mean[i]) && isfinite(p->std[i]);
        if (i > 0 && !(p->std[i] > 0)) /* unused channels */
            p->std[i] = 1;
    }
    const struct ew_image_card card = {
        .prep = *p, .classes = c->classes, .n_classes = c->n_classes};
    return ew_image_card_put(c->graph, &card);
}

ew_err ew_checkpoint_parse(const void *bytes, size_t size, const char *what,
                           struct ew_checkpoint *out)
{
    *out = (struct ew_checkpoint){0};
    ew_arena_init(&out->arena);
    struct ew_byte_reader in = {.bytes = bytes, .size = size, .what = what, .arena = &out->arena};
    ew_err e = get_all(&in, out);
    if (e == EW_OK)
        e = note_images(out);
    if (e != EW_OK)
        ew_checkpoint_fini(out);
    return e;
}

ew_err ew_checkpoint_read(const char *path, struct ew_checkpoint *out)
{
    char *bytes;
    size_t size;
    *out = (struct ew_checkpoint){0};
    EW_TRY(ew_file_read(path, MAX_BYTES, &bytes, &size));
    const ew_err e = ew_checkpoint_parse(bytes, size, path, out);
    if (e == EW_OK)
        out->bytes = bytes;
    else
        free(bytes);
    return e;
}

void ew_checkpoint_fini(struct ew_checkpoint *c)
{
    ew_graph_free(c->graph);
    ew_arena_fini(&c->arena);
    free(c->bytes);
    *c = (struct ew_checkpoint){0};
}

bool ew_checkpoint_is(const char *path)
{
    char head[sizeof(magic)];
    return ew_file_head(path, head, sizeof(head)) == sizeof(head) &&
           memcmp(head, magic, sizeof(magic)) == 0;
}
