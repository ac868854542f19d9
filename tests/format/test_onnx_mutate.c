/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed files with invalid fields: models of the fuzz corpus, parsed, with a few fields
 * changed, serialised and imported.  The fuzz target's own mutations mostly break framing; these do
 * not.  Arguments: COUNT, or "at N" to run a single mutation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/rootfs.h"
#include "ew_test.h"
#include "format/onnx_import.h"

#define CORPUS      "tests/fuzz/corpus/onnx"
#define MUTATIONS   20000
#define MAX_PARTS   512
#define PACKED_SIZE ((size_t)1 << 20)

struct mutation {
    struct ew_rng rng;
    struct ew_arena arena;
    ProtobufCMessage *part[MAX_PARTS]; /* all messages of the model */
    int n_parts;
};

static size_t pick(struct mutation *m, size_t n)
{
    return n ? (size_t)ew_rng_next_below(&m->rng, n) : 0;
}

static int64_t edge(struct mutation *m)
{
    static const int64_t edges[] = {0,
                                    1,
                                    -1,
                                    2,
                                    3,
                                    -2,
                                    7,
                                    255,
                                    4096,
                                    65536,
                                    INT32_MAX,
                                    INT32_MIN,
                                    (int64_t)1 << 32,
                                    (int64_t)1 << 40,
                                    (int64_t)1 << 62,
                                    INT64_MAX,
                                    INT64_MIN};
    return edges[pick(m, EW_COUNT(edges))];
}

static void *take(void *arena, size_t n)
{
    return ew_arena_alloc(arena, n);
}

static void leave(void *arena, void *p)
{
    (void)arena;
    (void)p;
}

/* Lists all messages of the tree, breadth first. */
static void collect(struct mutation *m, ProtobufCMessage *root)
{
    m->part[0] = root;
    m->n_parts = 1;
    for (int i = 0; i < m->n_parts; i++) {
        const ProtobufCMessageDescriptor *d = m->part[i]->descriptor;
        char *base = (char *)m->part[i];
        for (unsigned k = 0; k < d->n_fields; k++) {
            const ProtobufCFieldDescriptor *f = &d->fields[k];
            if (f->type != PROTOBUF_C_TYPE_MESSAGE)
                continue;
            const bool many = f->label == PROTOBUF_C_LABEL_REPEATED;
            ProtobufCMessage *one;
            ProtobufCMessage **list = &one;
            memcpy(many ? (void *)&list : (void *)&one, base + f->offset, sizeof(void *));
            const size_t n = many ? *(size_t *)(void *)(base + f->quantifier_offset) : one != NULL;
            for (size_t j = 0; j < n && m->n_parts < MAX_PARTS; j++)
                m->part[m->n_parts++] = list[j];
        }
    }
}

/* ---- Edits ---- */

/* A random name of the model, a number, or nothing. */
static char *some_text(struct mutation *m)
{
    const ProtobufCMessage *p = m->part[pick(m, (size_t)m->n_parts)];
    if (p->descriptor == &ew__onnx_node__descriptor && pick(m, 4)) {
        const Ew__OnnxNode *n = (const Ew__OnnxNode *)(const void *)p;
        if (n->n_output && pick(m, 2))
            return n->output[pick(m, n->n_output)];
        if (n->n_input && pick(m, 2))
            return n->input[pick(m, n->n_input)];
        return n->op_type;
    }
    if (p->descriptor == &ew__onnx_attr__descriptor)
        return ((const Ew__OnnxAttr *)(const void *)p)->name;
    return pick(m, 3) ? ew_arena_printf(&m->arena, "%lld", (long long)edge(m))
                      : ew_arena_strdup(&m->arena, "");
}

static void set_number(struct mutation *m, void *at, ProtobufCType type)
{
    static const float odd[] = {0, -1, 1e30f, -1e30f, INFINITY, NAN};
    const int64_t v = edge(m);
    const int32_t narrow = (int32_t)v;
    const double wide = (double)odd[pick(m, EW_COUNT(odd))];
    if (type == PROTOBUF_C_TYPE_INT32)
        memcpy(at, &narrow, sizeof(narrow));
    else if (type == PROTOBUF_C_TYPE_FLOAT)
        memcpy(at, &odd[pick(m, EW_COUNT(odd))], sizeof(float));
    else if (type == PROTOBUF_C_TYPE_DOUBLE)
        memcpy(at, &wide, sizeof(wide));
    else
        memcpy(at, &v, sizeof(v));
}

static size_t item_size(ProtobufCType type)
{
    if (type == PROTOBUF_C_TYPE_INT32 || type == PROTOBUF_C_TYPE_FLOAT)
        return 4;
    return type == PROTOBUF_C_TYPE_BYTES ? sizeof(ProtobufCBinaryData) : 8;
}

/* Shortens a list, or duplicates or replaces an entry. */
static void edit_list(struct mutation *m, char *base, const ProtobufCFieldDescriptor *f)
{
    size_t *n = (size_t *)(void *)(base + f->quantifier_offset);
    char *list;
    memcpy(&list, base + f->offset, sizeof(list));
    const size_t size = item_size(f->type);
    if (*n == 0)
        return;
    char *a = list + pick(m, *n) * size;
    switch (pick(m, 3)) {
    case 0:
        --*n;
        break;
    case 1:
        memmove(a, list + pick(m, *n) * size, size);
        break;
    default:
        if (f->type == PROTOBUF_C_TYPE_STRING)
            memcpy(a, &(char *){some_text(m)}, sizeof(char *));
        else if (f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_BYTES)
            set_number(m, a, f->type);
    }
}

static void edit_one(struct mutation *m, char *base, const ProtobufCFieldDescriptor *f)
{
    ProtobufCBinaryData *bytes;
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        if (pick(m, 4) == 0)
            memset(base + f->offset, 0, sizeof(void *));
        break;
    case PROTOBUF_C_TYPE_STRING:
        memcpy(base + f->offset, &(char *){some_text(m)}, sizeof(char *));
        break;
    case PROTOBUF_C_TYPE_BYTES:
        bytes = (ProtobufCBinaryData *)(void *)(base + f->offset);
        bytes->len = pick(m, bytes->len + 1);
        break;
    default:
        *(protobuf_c_boolean *)(void *)(base + f->quantifier_offset) = pick(m, 8) != 0;
        set_number(m, base + f->offset, f->type);
    }
}

static void edit(struct mutation *m)
{
    ProtobufCMessage *p = m->part[pick(m, (size_t)m->n_parts)];
    const ProtobufCFieldDescriptor *f = &p->descriptor->fields[pick(m, p->descriptor->n_fields)];
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        edit_list(m, (char *)p, f);
    else
        edit_one(m, (char *)p, f);
}

/* ---- Running ---- */

static int taken, refused;

/* Any error is accepted except internal ones and out of memory. */
static bool import(const uint8_t *bytes, size_t size)
{
    struct ew_graph *g;
    const ew_err e = ew_onnx_parse(bytes, size, "mutated.onnx", NULL, &g);
    if (e == EW_OK)
        ew_graph_free(g);
    *(e == EW_OK ? &taken : &refused) += 1;
    return e != EW_ERR_INTERNAL && e != EW_ERR_MEMORY;
}

static void mutate(const char *bytes, size_t size, uint64_t k, uint8_t *packed, bool show)
{
    struct mutation m = {.rng = {.seed = 7, .stream = k}};
    ew_arena_init(&m.arena);
    ProtobufCAllocator allocator = {take, leave, &m.arena};
    ProtobufCMessage *root = protobuf_c_message_unpack(&ew__onnx_model__descriptor, &allocator,
                                                       size, (const uint8_t *)bytes);
    if (EW_EXPECT(root)) {
        collect(&m, root);
        for (size_t n = 1 + pick(&m, 3); n > 0; n--)
            edit(&m);
        const size_t n = protobuf_c_message_get_packed_size(root);
        if (n <= PACKED_SIZE) {
            protobuf_c_message_pack(root, packed);
            if (show)
                ew_file_write("mutated.onnx", packed, n);
            if (!import(packed, n))
                EW_FAIL("mutation %llu: %s", (unsigned long long)k, ew_error_message());
        }
    }
    ew_arena_fini(&m.arena);
}

static void run(int64_t from, int64_t to)
{
    struct ew_arena a;
    ew_arena_init(&a);
    struct ew_root root;
    const char *const *names;
    int n;
    uint8_t *packed = malloc(PACKED_SIZE);
    if (!EW_EXPECT_OK(ew_root_open(CORPUS, &root)) || !EW_EXPECT(packed) ||
        !EW_EXPECT_OK(ew_root_list(&root, "/", &a, &names, &n)))
        return;
    for (int i = 0; i < n; i++) {
        char *bytes;
        size_t size;
        if (!EW_EXPECT_OK(ew_file_read(ew_arena_printf(&a, CORPUS "/%s", names[i]), PACKED_SIZE,
                                       &bytes, &size)))
            break;
        for (int64_t k = from + (i - from % n + n) % n; k < to; k += n)
            mutate(bytes, size, (uint64_t)k, packed, to == from + 1);
        free(bytes);
    }
    ew_root_close(&root);
    ew_arena_fini(&a);
    free(packed);
}

int main(int argc, char **argv)
{
    const bool one = argc > 2 && strcmp(argv[1], "at") == 0;
    const int64_t from = one ? atoll(argv[2]) : 0;
    const int64_t count = one ? 1 : argc > 1 ? atoll(argv[1]) : MUTATIONS;
    ew_test_begin("%lld mutations", (long long)count);
    run(from, from + count);
    printf("%d taken, %d refused\n", taken, refused);
    ew_test_end();
    return ew_test_status();
}
