/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the benchmarks of a results database, fastest first.
 *
 *   cc results.c $(pkg-config --cflags --libs edgewise) -o results
 *   edgewise bench resnet18 --db edgewise.db
 *   ./results edgewise.db */
#include <edgewise.h>
#include <edgewise_results.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct ew_result_list *l = NULL;
    if (argc != 2)
        return fprintf(stderr, "usage: results FILE.db\n"), 2;
    ew_err err =
        ew_result_list_open(argv[1], "command = 'bench' AND status = 'done'", "median_ms", &l);
    while (!err && ew_result_list_next(l)) {
        const int network = ew_result_list_find(l, "network");
        const int time = ew_result_list_find(l, "median_ms");
        printf("%s: %.3f ms\n", ew_result_list_text(l, network), ew_result_list_number(l, time));
    }
    if (!err)
        err = ew_result_list_close(l);
    if (err)
        fprintf(stderr, "results: %s\n", ew_error_message());
    return err ? 1 : 0;
}
