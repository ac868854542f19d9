/* SPDX-License-Identifier: Apache-2.0 */
/* Shell completion: candidates for the last word of a command line.  The scripts of all shells pass
 * the words on and show the output, so that they know the same verbs, options, choices, networks,
 * studies, data sets, boards and devices as the program. */
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "cli/docs.h"
#include "data/get.h"
#include "device/profile.h"
#include "model/model.h"
#include "network/trained.h"
#include "study/study.h"

/* The word to complete. */
struct prefix {
    const char *word;
};

static void offer(const struct prefix *e, const char *text)
{
    if (strncmp(text, e->word, strlen(e->word)) == 0)
        puts(text);
}

static void offer_words(const struct prefix *e, const char *const *words)
{
    for (; *words; words++)
        offer(e, *words);
}

/* Tells the shell to add file names. */
static void offer_files(void)
{
    puts(EW_COMPLETE_FILES);
}

static void offer_networks(const struct prefix *e)
{
    for (int f = 0; f < ew_family_count(); f++)
        for (int i = 0; i < ew_family_at(f)->n_variants; i++)
            offer(e, ew_family_at(f)->variants[i].name);
}

static void offer_trained(const struct prefix *e)
{
    struct ew_arena a;
    const struct ew_trained *list;
    int n = 0;
    ew_arena_init(&a);
    if (ew_trained_list(&a, &list, &n) == EW_OK)
        for (int i = 0; i < n; i++)
            offer(e, list[i].name);
    ew_arena_fini(&a);
}

static void offer_studies(const struct prefix *e)
{
    const char *text, *file;
    char name[128];
    for (int i = 0; (file = ew_study_shipped(i, &text)); i++) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(file, "."), file);
        offer(e, name);
    }
}

static void offer_sets(const struct prefix *e)
{
    for (int i = 0; i < ew_known_count(); i++)
        offer(e, ew_known_at(i)->name);
    offer(e, "synthetic");
}

static void offer_boards(const struct prefix *e)
{
    struct ew_arena a;
    const struct ew_profile *list;
    int n = 0;
    ew_arena_init(&a);
    if (ew_profiles_load(&a, &list, &n) == EW_OK)
        for (int i = 0; i < n; i++)
            offer(e, list[i].name);
    ew_arena_fini(&a);
}

static void offer_devices(const struct prefix *e)
{
    struct ew_device_found d;
    for (int i = 0; ew_backend_find(i, &d); i++)
        if (*d.device)
            offer(e, d.device);
}

/* ---- Options ---- */

/* The option given by the word before the last one, if it takes a value. */
static const struct ew_field *waiting(const struct ew_cmd *cmd, const char *before)
{
    for (const struct ew_field *f = cmd->opts; f && f->name; f++) {
        const bool by_name = strncmp(before, "--", 2) == 0 && strcmp(before + 2, f->name) == 0;
        const bool by_letter =
            before[0] == '-' && f->letter && before[1] == f->letter && !before[2];
        if ((by_name || by_letter) && f->type != EW_FIELD_BOOL)
            return f;
    }
    return NULL;
}

static void offer_value(const struct prefix *e, const struct ew_field *f)
{
    const char *what = f->metavar ? f->metavar : "";
    if (f->type == EW_FIELD_ENUM) {
        offer_words(e, f->choices);
    } else if (strcmp(f->name, "data") == 0 || strncmp(what, "DATA", 4) == 0) {
        offer_sets(e);
        offer_files();
    } else if (strcmp(f->name, "study") == 0) {
        offer_studies(e);
    } else if (strcmp(f->name, "board") == 0) {
        offer_boards(e);
    } else if (strcmp(f->name, "device") == 0) {
        offer_devices(e);
    } else if (f->type == EW_FIELD_STR) {
        offer_files();
    }
}

static void offer_flags(const struct prefix *e, const struct ew_cmd *cmd)
{
    char text[96];
    for (const struct ew_field *f = cmd->opts; f && f->name; f++) {
        snprintf(text, sizeof(text), "--%s%s", ew_help_is_on(f) ? "no-" : "", f->name);
        offer(e, text);
    }
    offer(e, "--json");
    offer(e, "--help");
}

/* ---- Arguments ---- */

static void offer_verbs(const struct prefix *e)
{
    for (int i = 0; i < ew_cmd_count(); i++)
        offer(e, ew_cmd_at(i)->name);
}

/* Subcommands, from the usage text: "get SET|list|info SET" offers get, list and info. */
static void offer_own_words(const struct prefix *e, const char *args)
{
    char word[64];
    for (const char *p = args; *p;) {
        const size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz");
        const bool begins = p == args || strchr("|[ ", p[-1]);
        if (n > 1 && begins && (!p[n] || strchr(" |]", p[n]))) {
            snprintf(word, sizeof(word), "%.*s", (int)n, p);
            offer(e, word);
        }
        p += n ? n : 1;
    }
}

static void offer_argument(const struct prefix *e, const struct ew_cmd *cmd, int position)
{
    const char *args = cmd->args ? cmd->args : "";
    if (strcmp(cmd->name, "help") == 0) {
        offer_verbs(e);
        return;
    }
    if (position == 0)
        offer_own_words(e, args);
    if (strcmp(cmd->name, "study") == 0)
        offer_studies(e);
    else if (strcmp(cmd->name, "boards") == 0)
        offer_boards(e);
    else if (strcmp(cmd->name, "data") == 0 && position == 1)
        offer_sets(e);
    else if (strcmp(cmd->name, "models") == 0 && position == 1)
        offer_trained(e);
    else if (strcmp(cmd->name, "models") != 0 && strstr(args, "NAME")) {
        offer_networks(e);
        offer_trained(e);
    }
    if (!*args || strcmp(cmd->name, "boards") == 0 || strcmp(cmd->name, "models") == 0)
        return;
    offer_files();
}

void ew_complete(int n, const char *const *words)
{
    const struct prefix e = {n > 0 ? words[n - 1] : ""};
    const struct ew_cmd *cmd = n > 1 ? ew_cmd_find(words[0]) : NULL;
    if (n <= 1) {
        offer_verbs(&e);
        return;
    }
    if (!cmd)
        return;
    const struct ew_field *f = n > 2 ? waiting(cmd, words[n - 2]) : NULL;
    if (f) {
        offer_value(&e, f);
        return;
    }
    if (e.word[0] == '-') {
        offer_flags(&e, cmd);
        return;
    }
    int position = 0;
    for (int i = 1; i < n - 1; i++) {
        if (words[i][0] == '-')
            i += waiting(cmd, words[i]) != NULL;
        else
            position++;
    }
    offer_argument(&e, cmd, position);
}
