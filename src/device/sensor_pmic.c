/* SPDX-License-Identifier: Apache-2.0 */
/* The power management chip of a Raspberry Pi 5: current and voltage of each rail, queried from the
 * firmware through /dev/vcio ("pmic_read_adc", like vcgencmd).  The input current is not measured,
 * so the sum of rails is below the board's power.  A captured board has the reply as text in
 * captured/pmic_read_adc. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/num.h"
#include "device/board.h"
#include "device/pmic.h"
#include "device/sensor.h"

#define MAX_RAILS    24
#define ANSWER_BYTES (EW_PMIC_BYTES - 1)

/* A message of the firmware's mailbox: 32-bit words with one property. */
#define MAILBOX_IOCTL  _IOWR(100, 0, char *)
#define TAG_GENCMD     0x00030080u
#define MAILBOX_HEADER 6

struct rail {
    char name[32];
    int channel;
};

struct state {
    const struct ew_root *root;
    bool captured;
    struct rail rails[MAX_RAILS];
    int n, input; /* channel of the 5 V input's voltage, -1: none */
};

static enum ew_absent ask_firmware(int fd, char answer[EW_PMIC_BYTES])
{
    static const char command[] = "pmic_read_adc";
    uint32_t words[MAILBOX_HEADER + ANSWER_BYTES / 4 + 1] = {0};
    words[0] = sizeof(words);
    words[2] = TAG_GENCMD;
    words[3] = ANSWER_BYTES;
    memcpy(words + MAILBOX_HEADER, command, sizeof(command));
    if (ioctl(fd, MAILBOX_IOCTL, words) < 0)
        return EW_ABSENT_UNSUPPORTED;
    memcpy(answer, words + MAILBOX_HEADER, ANSWER_BYTES);
    answer[ANSWER_BYTES] = '\0';
    return strstr(answer, "current(") ? EW_ABSENT_NOT : EW_ABSENT_UNSUPPORTED;
}

enum ew_absent ew_pmic_ask(const struct ew_root *root, bool captured, char answer[EW_PMIC_BYTES])
{
    int fd;
    if (captured)
        return ew_root_read(root, EW_PMIC_CAPTURED, answer, EW_PMIC_BYTES) == EW_OK
                   ? EW_ABSENT_NOT
                   : EW_ABSENT_NO_SENSOR;
    if (ew_root_open_file(root, "dev/vcio", O_RDWR, &fd) != EW_OK)
        return ew_absent_of(errno);
    const enum ew_absent absent = ask_firmware(fd, answer);
    close(fd);
    return absent;
}

/* The number after NAME_x in "     NAME_A current(7)=0.12300000A". */
static struct ew_sample_value figure(const char *answer, const char *name, const char *suffix)
{
    char key[48];
    const int n = snprintf(key, sizeof(key), "%s%s ", name, suffix);
    for (const char *p = answer; (p = strstr(p, key)); p++) {
        if (p != answer && p[-1] != ' ' && p[-1] != '\n')
            continue;
        const char *equals = memchr(p + n, '=', 32);
        char text[32];
        if (!equals || snprintf(text, sizeof(text), "%.20s", equals + 1) < 0)
            break;
        text[strspn(text, "0123456789.-")] = '\0';
        double v;
        return ew_num_float(text, &v) ? ew_sample_value_of(v)
                                      : ew_sample_value_absent(EW_ABSENT_BAD);
    }
    return ew_sample_value_absent(EW_ABSENT_NO_SENSOR);
}

/* A rail is a NAME_A with a NAME_V. */
static ew_err add_rails(struct ew_probe *p, struct state *s, const char *answer)
{
    for (const char *at = answer; (at = strstr(at, "_A current(")) && s->n < MAX_RAILS; at++) {
        const char *start = at;
        while (start > answer && start[-1] != ' ' && start[-1] != '\n')
            start--;
        struct rail *r = &s->rails[s->n];
        snprintf(r->name, sizeof(r->name), "%.*s", (int)(at - start), start);
        if (!ew_sample_value_is(figure(answer, r->name, "_V")))
            continue;
        struct ew_channel c = {.quantity = EW_QUANTITY_POWER,
                               .quality = EW_QUALITY_DERIVED,
                               .source = "pmic_read_adc"};
        EW_TRY(ew_probe_text(p, &c.name, "power.%s", r->name));
        EW_TRY(ew_probe_add(p, &c, &r->channel));
        s->n++;
    }
    const struct ew_channel input = {"voltage.EXT5V", EW_QUANTITY_VOLTAGE, EW_QUALITY_MEASURED,
                                     "pmic_read_adc", 0};
    s->input = -1;
    if (ew_sample_value_is(figure(answer, "EXT5V", "_V")))
        EW_TRY(ew_probe_add(p, &input, &s->input));
    return EW_OK;
}

static ew_err probe(struct ew_probe *p, void **state)
{
    const char *compatible = p->board->id.compatible;
    if (!compatible || !strstr(compatible, "raspberrypi,5"))
        return EW_OK; /* no other board has one */
    struct state *s = ew_arena_alloc(p->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory");
    *state = s;
    s->root = p->root;
    s->captured = p->captured;
    char answer[EW_PMIC_BYTES];
    const enum ew_absent absent = ew_pmic_ask(s->root, s->captured, answer);
    if (absent == EW_ABSENT_NO_PERMISSION)
        return ew_probe_missing(p, absent, "/dev/vcio cannot be opened; be in the group 'video'");
    if (absent != EW_ABSENT_NOT)
        return ew_probe_missing(p, absent, "the firmware does not answer pmic_read_adc");
    return add_rails(p, s, answer);
}

static void read_rails(void *state, int64_t now_ns, struct ew_sample_value *values)
{
    const struct state *s = state;
    char answer[EW_PMIC_BYTES];
    const enum ew_absent absent =
        s->n ? ew_pmic_ask(s->root, s->captured, answer) : EW_ABSENT_NO_SENSOR;
    for (int i = 0; i < s->n; i++) {
        const struct rail *r = &s->rails[i];
        if (absent != EW_ABSENT_NOT) {
            values[r->channel] = ew_sample_value_absent(absent);
            continue;
        }
        const struct ew_sample_value amps = figure(answer, r->name, "_A");
        const struct ew_sample_value volts = figure(answer, r->name, "_V");
        values[r->channel] = !ew_sample_value_is(amps)    ? amps
                             : !ew_sample_value_is(volts) ? volts
                                                          : ew_sample_value_of(amps.v * volts.v);
    }
    if (s->input >= 0)
        values[s->input] = absent == EW_ABSENT_NOT ? figure(answer, "EXT5V", "_V")
                                                   : ew_sample_value_absent(absent);
}

const struct ew_sensor ew_sensor_pmic = {
    .name = "pmic",
    .what = "power by Raspberry Pi 5 PMIC",
    .probe = probe,
    .read = read_rails,
};
