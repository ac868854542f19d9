/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel choice on CUDA devices: kernel families by operator, and tasks of plans. */
#include "backend/cuda/cuda_backend.h"
#include "base/mem.h"
#include "graph/ops.h"
#include "op/optimizer.h"

static const struct {
    const struct ew_op *op;
    ew_cuda_offer *offer;
} families[] = {
    {&ew_op_conv, ew_cuda_offer_conv},
    {&ew_op_gemm, ew_cuda_offer_dense},
    {&ew_op_matmul, ew_cuda_offer_dense},
    {&ew_op_batch_norm, ew_cuda_offer_norm},
    {&ew_op_group_norm, ew_cuda_offer_group_norm},
    {&ew_op_instance_norm, ew_cuda_offer_group_norm},
    {&ew_op_layer_norm, ew_cuda_offer_group_norm},
    {&ew_op_max_pool, ew_cuda_offer_pool},
    {&ew_op_average_pool, ew_cuda_offer_pool},
    {&ew_op_global_average_pool, ew_cuda_offer_pool},
    {&ew_op_adaptive_avg_pool, ew_cuda_offer_pool},
    {&ew_op_relu, ew_cuda_offer_act},
    {&ew_op_clip, ew_cuda_offer_act},
    {&ew_op_leaky_relu, ew_cuda_offer_act},
    {&ew_op_hard_swish, ew_cuda_offer_act},
    {&ew_op_hard_sigmoid, ew_cuda_offer_act},
    {&ew_op_silu, ew_cuda_offer_act},
    {&ew_op_sigmoid, ew_cuda_offer_act},
    {&ew_op_tanh, ew_cuda_offer_act},
    {&ew_op_neg, ew_cuda_offer_act},
    {&ew_op_abs, ew_cuda_offer_act},
    {&ew_op_exp, ew_cuda_offer_act},
    {&ew_op_log, ew_cuda_offer_act},
    {&ew_op_sqrt, ew_cuda_offer_act},
    {&ew_op_reciprocal, ew_cuda_offer_act},
    {&ew_op_erf, ew_cuda_offer_act},
    {&ew_op_softplus, ew_cuda_offer_act},
    {&ew_op_elu, ew_cuda_offer_act},
    {&ew_op_mish, ew_cuda_offer_act},
    {&ew_op_floor, ew_cuda_offer_act},
    {&ew_op_ceil, ew_cuda_offer_act},
    {&ew_op_add, ew_cuda_offer_pair},
    {&ew_op_sub, ew_cuda_offer_pair},
    {&ew_op_mul, ew_cuda_offer_pair},
    {&ew_op_div, ew_cuda_offer_pair},
    {&ew_op_pow, ew_cuda_offer_pair},
    {&ew_op_concat, ew_cuda_offer_move},
    {&ew_op_split, ew_cuda_offer_move},
    {&ew_op_transpose, ew_cuda_offer_move},
    {&ew_op_channel_shuffle, ew_cuda_offer_move},
    {&ew_op_slice, ew_cuda_offer_slice},
    {&ew_op_pad, ew_cuda_offer_pad},
    {&ew_op_expand, ew_cuda_offer_expand},
    {&ew_op_resize, ew_cuda_offer_resize},
    {&ew_op_reduce_sum, ew_cuda_offer_reduce},
    {&ew_op_reduce_mean, ew_cuda_offer_reduce},
    {&ew_op_reduce_sum_square, ew_cuda_offer_reduce},
    {&ew_op_qlinear_conv, ew_cuda_offer_qconv},
    {&ew_op_qlinear_gemm, ew_cuda_offer_qgemm},
    {&ew_op_qlinear_add, ew_cuda_offer_qbinary},
    {&ew_op_qlinear_mul, ew_cuda_offer_qbinary},
    {&ew_op_qlinear_average_pool, ew_cuda_offer_qpool},
    {&ew_op_qlinear_global_average_pool, ew_cuda_offer_qpool},
    {&ew_op_quantize_linear, ew_cuda_offer_quantize},
    {&ew_op_dequantize_linear, ew_cuda_offer_quantize},
    {&ew_op_fake_quant, ew_cuda_offer_fake_quant},
    {&ew_op_lookup, ew_cuda_offer_lookup},
    {&ew_op_softmax_cross_entropy, ew_cuda_offer_loss},
    {&ew_op_softmax, ew_cuda_offer_softmax},
    {&ew_op_log_softmax, ew_cuda_offer_softmax},
    {&ew_op_dropout, ew_cuda_offer_dropout},
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
        if (families[i].op == query->op)
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

ew_err ew_cuda_run_seed(const struct ew_call *c)
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
        *out = (struct ew_kernel){.name = "seed", .run = ew_cuda_run_seed};
        return true;
    case EW_TASK_UPDATE:
        *out = (struct ew_kernel){.name = ew_optimizer_names[o->kind], .run = ew_cuda_run_update};
        return true;
    case EW_TASK_ROUND:
        *out = (struct ew_kernel){.name = "round weights", .run = ew_cuda_run_round};
        return true;
    case EW_TASK_RESTORE:
        *out = (struct ew_kernel){.name = "restore weights", .run = ew_cuda_run_restore};
        return true;
    }
    return false;
}
