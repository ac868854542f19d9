// SPDX-License-Identifier: Apache-2.0
// Feeds a tile from a text file and writes what it gives: tests/backend/test_dpu_verilog.c has the
// other end.  A line for each cycle: first last x w bias, in hexadecimal.
module dpu_tile_bench;
    parameter PP = 8, ICP = 16, OCP = 16;
    reg clk = 0, valid = 0, first, last;
    reg [PP*ICP*8-1:0] x;
    reg [OCP*ICP*8-1:0] w;
    reg [OCP*8-1:0] bias;
    reg [4:0] bias_shift, shift;
    reg signed [7:0] lo, hi;
    wire [PP*OCP*8-1:0] y;
    wire done;
    integer in, out, bs, s, l, h, cycles = 0;
    dpu_tile #(PP, ICP, OCP) tile (.*);

    always @(negedge clk) if (done) $fwrite(out, "%h\n", y);

    initial begin
        in = $fopen("cycles.txt", "r");
        out = $fopen("results.txt", "w");
        if ($fscanf(in, "%d %d %d %d\n", s, bs, l, h) != 4) $fatal(1, "no settings");
        shift = s[4:0];
        bias_shift = bs[4:0];
        lo = l[7:0];
        hi = h[7:0];
        while ($fscanf(in, "%h %h %h %h %h\n", first, last, x, w, bias) == 5) begin
            valid = 1;
            cycles = cycles + 1;
            #1 clk = 1;
            #1 clk = 0;
        end
        valid = 0;
        #1 $fwrite(out, "cycles %0d\n", cycles);
        $finish;
    end
endmodule
