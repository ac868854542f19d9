/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel choice on CUDA devices: families by operator, and what plans need beside operators. */
#include <string.h>

#include "backend/cuda/cuda_backend.h"
#include "base/mem.h"
#include "op/optimizer.h"

static const struct {
    const char *op;
    ew_cuda_offer *offer;
} families[] = {
    {"conv", ew_cuda_offer_conv},
    {"gemm", ew_cuda_offer_dense},
    {"matmul", ew_cuda_offer_dense},
    {"batch_norm", ew_cuda_offer_norm},
    {"group_norm", ew_cuda_offer_set_norm},
    {"instance_norm", ew_cuda_offer_set_norm},
    {"layer_norm", ew_cuda_offer_set_norm},
    {"max_pool", ew_cuda_offer_pool},
    {"average_pool", ew_cuda_offer_pool},
    {"global_average_pool", ew_cuda_offer_pool},
    {"adaptive_avg_pool", ew_cuda_offer_pool},
    {"relu", ew_cuda_offer_act},
    {"clip", ew_cuda_offer_act},
    {"leaky_relu", ew_cuda_offer_act},
    {"hard_swish", ew_cuda_offer_act},
    {"hard_sigmoid", ew_cuda_offer_act},
    {"silu", ew_cuda_offer_act},
    {"sigmoid", ew_cuda_offer_act},
    {"tanh", ew_cuda_offer_act},
    {"neg", ew_cuda_offer_act},
    {"abs", ew_cuda_offer_act},
    {"exp", ew_cuda_offer_act},
    {"log", ew_cuda_offer_act},
    {"sqrt", ew_cuda_offer_act},
    {"reciprocal", ew_cuda_offer_act},
    {"erf", ew_cuda_offer_act},
    {"softplus", ew_cuda_offer_act},
    {"elu", ew_cuda_offer_act},
    {"mish", ew_cuda_offer_act},
    {"floor", ew_cuda_offer_act},
    {"ceil", ew_cuda_offer_act},
    {"add", ew_cuda_offer_pair},
    {"sub", ew_cuda_offer_pair},
    {"mul", ew_cuda_offer_pair},
    {"div", ew_cuda_offer_pair},
    {"pow", ew_cuda_offer_pair},
    {"concat", ew_cuda_offer_move},
    {"split", ew_cuda_offer_move},
    {"transpose", ew_cuda_offer_move},
    {"channel_shuffle", ew_cuda_offer_move},
    {"slice", ew_cuda_offer_slice},
    {"pad", ew_cuda_offer_pad},
    {"expand", ew_cuda_offer_expand},
    {"resize", ew_cuda_offer_resize},
    {"reduce_sum", ew_cuda_offer_reduce},
    {"reduce_mean", ew_cuda_offer_reduce},
    {"reduce_sum_square", ew_cuda_offer_reduce},
    {"qlinear_conv", ew_cuda_offer_qconv},
    {"qlinear_gemm", ew_cuda_offer_qgemm},
    {"qlinear_add", ew_cuda_offer_qbinary},
    {"qlinear_mul", ew_cuda_offer_qbinary},
    {"qlinear_average_pool", ew_cuda_offer_qpool},
    {"qlinear_global_average_pool", ew_cuda_offer_qpool},
    {"quantize_linear", ew_cuda_offer_quantize},
    {"dequantize_linear", ew_cuda_offer_quantize},
    {"lookup", ew_cuda_offer_lookup},
    {"softmax_cross_entropy", ew_cuda_offer_loss},
    {"softmax", ew_cuda_offer_softmax},
    {"log_softmax", ew_cuda_offer_softmax},
    {"dropout", ew_cuda_offer_dropout},
};

int ew_cuda_query_type(const struct ew_kernel_query *query, unsigned weights, unsigned others)
{
    const struct ew_call *c = query->c;
    const enum ew_dtype type = c->in[0]->dtype;
    if (type != EW_F32 && type != ew_backend_info(query->be)->storage)
        return -1;
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i] && !(others >> i & 1) && c->in[i]->dtype != (weights >> i & 1 ? EW_F32 : type))
            return -1;
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i] && c->out[i]->dtype != type)
            return -1;
    return ew_cuda_storage(c->in[0]);
}

int ew_cuda_offer_all(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    if (query->op->flags & EW_OP_VIEW)
        return ew_cuda_offer_view(query, out);
    for (size_t i = 0; i < EW_COUNT(families); i++)
        if (strcmp(families[i].op, query->op->name) == 0)
            return families[i].offer(query, out);
    return 0;
}

ew_err ew_cuda_sum_rows(const struct ew_call *c, const struct ew_cuda_reduce *r)
{
    EW_CUDA_LAUNCH(c, reduce, r);
    return EW_OK;
}

/* ---- Tasks ---- */

static ew_err run_clear(const struct ew_call *c)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    return ew_cuda_check(
        be->cu, be->cu->fill(be->q, c->out[0]->data, 0, ew_tensor_bytes(c->out[0])), "clear");
}

static ew_err run_seed(const struct ew_call *c)
{
    const float share = 1 / (float)*(const int *)c->attr;
    const struct ew_cuda *be = ew_cuda(c->be);
    const int wide = c->out[0]->dtype == EW_F64;
    return ew_cuda_check(
        be->cu, be->cu->seed(be->q, c->out[0]->data, wide, share, be->rates, be->scale), "seed");
}

bool ew_cuda_task(const struct ew_backend *be, enum ew_task task, const struct ew_optimizer *o,
                  struct ew_kernel *out)
{
    switch (task) {
    case EW_TASK_CLEAR:
        *out = (struct ew_kernel){.name = "clear", .run = run_clear};
        return true;
    case EW_TASK_SEED:
        *out = (struct ew_kernel){.name = "seed", .run = run_seed};
        return true;
    case EW_TASK_UPDATE:
        *out = (struct ew_kernel){.name = ew_optimizer_names[o->kind], .run = ew_cuda_run_update};
        return true;
    }
    return false;
}
