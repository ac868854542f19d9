// SPDX-License-Identifier: Apache-2.0
// A multiply-accumulate tile of PP pixels x ICP input channels x OCP output channels: the arithmetic
// of one DPU core for convolutions, with bias shift, activation, rounding half up and saturation.
//
// Each cycle with `valid` takes ICP channels of PP pixels and of OCP filters at one kernel tap.
// `first` begins sums with the biases, `last` ends them: the results are there in the next cycle,
// with `done`.  So a layer takes ceil(OH/PP) * OW * ceil(OC/OCP) * ceil(IC/ICP) * KH * KW cycles.
module dpu_tile #(
    parameter PP = 8,
    parameter ICP = 16,
    parameter OCP = 16
) (
    input wire clk,
    input wire valid,
    input wire first,
    input wire last,
    input wire [PP*ICP*8-1:0] x,     // pixel p, channel i at byte p * ICP + i
    input wire [OCP*ICP*8-1:0] w,    // filter o, channel i at byte o * ICP + i
    input wire [OCP*8-1:0] bias,
    input wire [4:0] bias_shift,     // left, 0 to 23
    input wire [4:0] shift,          // right, 0 to 16
    input wire signed [7:0] lo,      // least and greatest result: 0 for ReLU, 6 * 2^position for ReLU6
    input wire signed [7:0] hi,
    output reg [PP*OCP*8-1:0] y,     // pixel p, filter o at byte p * OCP + o
    output reg done
);
    reg signed [31:0] sums[0:PP*OCP-1];

    function signed [31:0] product;
        input [ICP*8-1:0] a;
        input [ICP*8-1:0] b;
        integer i;
        begin
            product = 0;
            for (i = 0; i < ICP; i = i + 1)
                product = product + $signed(a[i*8+:8]) * $signed(b[i*8+:8]);
        end
    endfunction

    // Half up: half of the last place is added, the rest is cut off.
    function signed [7:0] round;
        input signed [31:0] sum;
        reg signed [32:0] half, v;
        begin
            half = (shift == 0) ? 33'sd0 : 33'sd1 <<< (shift - 1);
            v = (33'(sum) + half) >>> shift;
            if (v < 33'(lo)) round = lo;
            else if (v > 33'(hi)) round = hi;
            else round = v[7:0];
        end
    endfunction

    integer p, o;
    reg signed [31:0] start, next;
    always @(posedge clk) begin
        done <= valid && last;
        if (valid)
            for (p = 0; p < PP; p = p + 1)
                for (o = 0; o < OCP; o = o + 1) begin
                    start = 32'($signed(bias[o*8+:8])) <<< bias_shift;
                    next = (first ? start : sums[p*OCP+o]) +
                           product(x[p*ICP*8+:ICP*8], w[o*ICP*8+:ICP*8]);
                    sums[p*OCP+o] <= next;
                    if (last) y[(p*OCP+o)*8+:8] <= round(next);
                end
    end
endmodule
