/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of preprocessing: from options, and as text. */
#include "data/preprocess.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"

/* The crop's share of the shorter side: 224 of 256, as in AlexNet and most networks since. */
#define CROP_SHARE 0.875

const struct ew_preprocess ew_preprocess_imagenet = {
    .normalised = true, .mean = {0.485, 0.456, 0.406, 0.406}, .std = {0.229, 0.224, 0.225, 0.225}};

static ew_err parse_channels(const char *option, const char *text, double out[EW_SAMPLE_CHANNELS])
{
    char buf[256];
    char *save = NULL;
    int n = 0;
    snprintf(buf, sizeof(buf), "%s", text);
    for (char *w = strtok_r(buf, ",x", &save); w; w = strtok_r(NULL, ",x", &save), n++)
        EW_CHECK(n < EW_SAMPLE_CHANNELS && ew_num_float(w, &out[n]) && isfinite(out[n]),
                 EW_ERR_USAGE, "--%s: \"%s\" is not a list of at most %d numbers", option, text,
                 EW_SAMPLE_CHANNELS);
    EW_CHECK(n > 0, EW_ERR_USAGE, "--%s needs a number", option);
    EW_CHECK(n != 2, EW_ERR_USAGE, "--%s: \"%s\" is two numbers; one for all channels or one each",
             option, text);
    for (int i = n; i < EW_SAMPLE_CHANNELS; i++)
        out[i] = out[n - 1];
    return EW_OK;
}

ew_err ew_preprocess_parse(const char *mean, const char *std, struct ew_preprocess *p)
{
    const bool imagenet = mean && strcmp(mean, "imagenet") == 0;
    if (!mean && !std)
        return EW_OK;
    for (int i = 0; !p->normalised && i < EW_SAMPLE_CHANNELS; i++) {
        p->mean[i] = 0;
        p->std[i] = 1;
    }
    if (imagenet) {
        memcpy(p->mean, ew_preprocess_imagenet.mean, sizeof(p->mean));
        memcpy(p->std, ew_preprocess_imagenet.std, sizeof(p->std));
    } else if (mean) {
        EW_TRY(parse_channels("mean", mean, p->mean));
    }
    if (std)
        EW_TRY(parse_channels("std", std, p->std));
    for (int i = 0; i < EW_SAMPLE_CHANNELS; i++)
        EW_CHECK(p->std[i] > 0, EW_ERR_USAGE, "--std: must be over 0, got %g", p->std[i]);
    p->normalised = true;
    return EW_OK;
}

#define MEASURED_SAMPLES 10000

ew_err ew_preprocess_measure(const struct ew_dataset *d, struct ew_preprocess *p)
{
    struct ew_dataset_stats s;
    EW_TRY(ew_dataset_measure(d, EW_SPLIT_TRAIN, MEASURED_SAMPLES, &s));
    for (int i = 0; i < EW_SAMPLE_CHANNELS; i++) {
        p->mean[i] = s.mean[i];
        p->std[i] = s.std[i] > 0 ? s.std[i] : 1;
    }
    p->normalised = true;
    return EW_OK;
}

double ew_preprocess_grow(const struct ew_preprocess *p, const int64_t image[2],
                          const int64_t input[2])
{
    const double cover =
        fmax((double)input[0] / (double)image[0], (double)input[1] / (double)image[1]);
    const bool same = image[0] == input[0] && image[1] == input[1];
    if (p->resize == EW_RESIZE_DEFAULT && !same)
        return cover / CROP_SHARE;
    return p->resize > 0 ? fmax(cover, (double)p->resize / (double)ew_min_i64(image[0], image[1]))
                         : cover;
}

ew_err ew_preprocess_check(const struct ew_preprocess *p, const char *what)
{
    EW_CHECK(p->normalised, EW_ERR_USAGE,
             "%s does not say how its images are normalised: --mean and --std do (\"--mean "
             "imagenet\", \"--mean 0 --std 1\" for 0 to 1, or \"--mean 0.5 --std 0.5\" for -1 to "
             "1)",
             what);
    return EW_OK;
}

static int put_channels(char *buf, size_t size, const double *v, int64_t channels)
{
    bool same = true;
    int n = 0;
    for (int64_t i = 1; i < channels; i++)
        same = same && v[i] >= v[0] && v[i] <= v[0];
    for (int64_t i = 0; i < (same ? 1 : channels); i++)
        n += snprintf(buf + n, size - (size_t)n, "%s%.4g", i ? "," : "", v[i]);
    return n;
}

const char *ew_preprocess_text(const struct ew_preprocess *p, const int64_t input[3],
                               char buf[EW_PREPROCESS_CHARS])
{
    const long long h = input[0], w = input[1];
    const int64_t side =
        p->resize > 0 ? p->resize : llround((double)ew_min_i64(input[0], input[1]) / CROP_SHARE);
    const size_t size = EW_PREPROCESS_CHARS;
    int n =
        p->resize == EW_RESIZE_COVER
            ? snprintf(buf, size, "resized to cover %lldx%lld", h, w)
            : snprintf(buf, size, "shorter side to %lld, centre %lldx%lld", (long long)side, h, w);
    if (!p->normalised)
        return buf;
    n += snprintf(buf + n, size - (size_t)n, ", mean ");
    n += put_channels(buf + n, size - (size_t)n, p->mean, input[2]);
    n += snprintf(buf + n, size - (size_t)n, ", std ");
    put_channels(buf + n, size - (size_t)n, p->std, input[2]);
    return buf;
}
