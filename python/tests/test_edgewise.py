# SPDX-License-Identifier: Apache-2.0
"""The package over the shared library that EDGEWISE_LIBRARY names."""

import array
import copy
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import edgewise

FINDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/fixtures/finds")


def write_png(path, side, value):
    """A grey image of one value."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes([value]) * side for _ in range(side))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class LikePil:
    """What PIL's images tell of themselves: they have no buffer."""

    def __init__(self, data, shape, typestr):
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": typestr, "data": data}


class Networks(unittest.TestCase):
    def test_zoo(self):
        self.assertIn("lenet5", edgewise.models())
        self.assertRegex(edgewise.version(), r"^\d+\.\d+")

    def test_runs_arrays(self):
        with edgewise.open("lenet5", threads=1) as net:
            self.assertEqual(net.parameters, 61706)
            self.assertEqual(net.inputs[0].shape, (1, 28, 28, 1))
            zeros, ones = ([array.array("f", [v] * 784)] for v in (0, 1))
            if edgewise.numpy is not None:
                zeros, ones = ([edgewise.numpy.full((1, 28, 28, 1), v, "float32")] for v in (0, 1))
            a, b, again = net.run(*zeros)[0], net.run(*ones)[0], net.run(*zeros)[0]
            self.assertEqual(list(memoryview(a).cast("B")), list(memoryview(again).cast("B")))
            self.assertNotEqual(list(memoryview(a).cast("B")), list(memoryview(b).cast("B")))
            net.start(*ones)
            with self.assertRaisesRegex(edgewise.Error, "was not waited for"):
                net.start(*ones)
            self.assertEqual(list(memoryview(net.wait()[0]).cast("B")), list(memoryview(b).cast("B")))

    def test_batches(self):
        with edgewise.open("lenet5", threads=1, batch=(1, 4)) as net:
            net.batch = 3
            self.assertEqual(net.outputs[0].shape, (3, 10))
            with self.assertRaisesRegex(edgewise.Error, "is for 1 to 4"):
                net.batch = 5

    def test_inputs_by_name_and_batch_by_shape(self):
        if edgewise.numpy is None:
            self.skipTest("numpy is not installed")
        images = edgewise.numpy.random.default_rng(1).random((3, 28, 28, 1), "float32")
        with edgewise.open("lenet5", threads=1, batch=(1, 4)) as net:
            name = net.inputs[0].name
            one = [net.run(images[i:i + 1])[0][0] for i in range(3)]
            three = net.run({name: images})[0]
            self.assertEqual(net.batch, 3)
            self.assertTrue(edgewise.numpy.allclose(three, one, rtol=1e-5, atol=1e-6))
            with self.assertRaisesRegex(ValueError, f"the inputs are {name}, got nosuch"):
                net.run({"nosuch": images})
            with self.assertRaisesRegex(edgewise.Error, "is for 1 to 4"):
                net.run(edgewise.numpy.zeros((5, 28, 28, 1), "float32"))

    def test_batch_need_not_be_the_first_dimension(self):
        if edgewise.numpy is None:
            self.skipTest("numpy is not installed")
        x = edgewise.numpy.arange(18, dtype="float32").reshape(3, 2, 3)
        with edgewise.open(os.path.join(FINDS, "batch-not-first.onnx"), threads=1, batch=(1, 4)) as net:
            swapped, rows = net.run(x)
            self.assertTrue(edgewise.numpy.array_equal(swapped, x.transpose(1, 0, 2)))
            self.assertTrue(edgewise.numpy.array_equal(rows, x.reshape(6, 3)))
            self.assertEqual([port.shape for port in net.outputs], [(2, 3, 3), (6, 3)])

    def test_only_rows_of_scores_have_classes(self):
        pixels = memoryview(bytes(192)).cast("B", (8, 8, 3))
        for name in ("one-score.onnx", "gives-back.onnx"):
            with edgewise.open(os.path.join(FINDS, name), threads=1, mean=0, std=1) as net:
                with self.assertRaisesRegex(ValueError, "is no classifier: its output is float32"):
                    net.classify(pixels)

    def test_batch_by_the_input_that_has_one(self):
        if edgewise.numpy is None:
            self.skipTest("numpy is not installed")
        ones = edgewise.numpy.ones
        with edgewise.open(os.path.join(FINDS, "batch-of-second-input.onnx"), threads=1, batch=(1, 8)) as net:
            self.assertTrue((net.run(ones((4, 5), "float32"), ones((3, 4), "float32"))[0] == 4 * ones((3, 5))).all())

    def test_scores_that_are_no_numbers_have_no_class(self):
        with edgewise.open(os.path.join(FINDS, "nan-score.onnx"), threads=1, mean=0.5, std=0.5) as net:
            self.assertEqual(net.classify(memoryview(bytes(192)).cast("B", (8, 8, 3))), [])

    def test_scores_of_half_precision(self):
        if edgewise.numpy is None:
            self.skipTest("numpy is not installed")
        with edgewise.open(os.path.join(FINDS, "half-scores.onnx"), threads=1, mean=0, std=1) as net:
            best = net.classify(edgewise.numpy.array([[0, 9], [255, 8]], "uint8"))
            self.assertEqual([name for name, _ in best], ["2", "1", "3", "0"])

    def test_classifies_pixels(self):
        side, row = 24, bytes(range(0, 240, 10))
        grey = memoryview(row * side).cast("B", (side, side))
        rgb = memoryview(b"".join(bytes([v, 7, 250 - v]) for v in row * side)).cast("B", (side, side, 3))
        bgr = memoryview(b"".join(bytes([250 - v, 7, v]) for v in row * side)).cast("B", (side, side, 3))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "grey.png")
            write_png(path, 24, 90)
            even = memoryview(bytes([90]) * side * side).cast("B", (side, side))
            with edgewise.open("lenet5", threads=1, mean=0.5, std=0.5) as net:
                self.assertEqual(net.classify(path), net.classify(even))
                self.assertNotEqual(net.classify(grey), net.classify(even))
        with edgewise.open("resnet9-cifar10", threads=1) as net:
            self.assertEqual(net.classify(rgb), net.classify(bgr, order="bgr"))
            self.assertNotEqual(net.classify(rgb), net.classify(bgr))
            self.assertEqual(net.classify(rgb), net.classify(LikePil(rgb.tobytes(), (side, side, 3), "|u1")))
            with self.assertRaisesRegex(ValueError, "pixels are uint8"):
                net.classify(LikePil(bytes(side * side), (side, side), "|b1"))
            with self.assertRaisesRegex(ValueError, "pixels are uint8"):
                net.classify(memoryview(bytes(side * side)).cast("b", (side, side)))
            with self.assertRaisesRegex(ValueError, "pixels are uint8"):
                net.classify(rgb, order="rgba")
            with self.assertRaisesRegex(ValueError, "order is one of"):
                net.classify(rgb, order="hsv")

    def test_mean_by_name(self):
        with edgewise.open("lenet5", threads=1, mean="imagenet") as net:
            self.assertEqual(len(net.classify(memoryview(bytes(784)).cast("B", (28, 28)))), 5)
        with self.assertRaisesRegex(ValueError, "mean is numbers"):
            edgewise.open("lenet5", mean="mnist")

    def test_classifies_images(self):
        names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "grey.png")
            write_png(path, 100, 77)
            with edgewise.open("lenet5", threads=1, mean=0.5, std=0.5, classes=names) as net:
                best = net.classify(path, top=3)
                self.assertEqual(len(best), 3)
                self.assertIn(best[0][0], names)
                self.assertGreaterEqual(best[0][1], best[1][1])
                # A plain image is the same whatever its size: the rule resizes, crops, normalises.
                value = (77 / 255 - 0.5) / 0.5
                scores = net.run_images(path)[0]
                want = net.run(array.array("f", [value] * 784) if edgewise.numpy is None else
                               edgewise.numpy.full((1, 28, 28, 1), value, "float32"))[0]
                for x, y in zip(memoryview(scores).cast("B").cast("f"),
                                memoryview(want).cast("B").cast("f")):
                    self.assertAlmostEqual(x, y, places=5)
            with edgewise.open("lenet5", threads=1) as net:
                with self.assertRaisesRegex(edgewise.Error, "does not say how its images"):
                    net.classify(path)

    def test_times(self):
        with edgewise.open("lenet5", threads=1) as net:
            t = net.bench(runs=5, warmup=1)
            self.assertEqual(t.runs, 5)
            self.assertTrue(0 < t.min_ms <= t.median_ms <= t.p99_ms)
            steps = net.profile(runs=2)
            self.assertTrue(any("conv" in s.op for s in steps) and all(s.us >= 0 for s in steps))

    @unittest.skipUnless(hasattr(edgewise.lib, "ew_network_graph"), "built without training")
    def test_trained_networks_go_by_name(self):
        three = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "pictures", "three.png")
        with edgewise.open("lenet5-mnist", threads=1) as net:
            self.assertEqual(net.classify(three, top=1)[0][0], "3")

    def test_refuses_copies(self):
        with edgewise.open("lenet5", threads=1) as net:
            for way in copy.copy, copy.deepcopy, pickle.dumps:
                with self.assertRaisesRegex(TypeError, "cannot be copied"):
                    way(net)
        edgewise.Network.__new__(edgewise.Network).close()

    def test_numbers_out_of_range(self):
        for wrong in ({"batch": 1 << 63}, {"batch": (1, (1 << 64) + 2)}, {"threads": 1 << 32}, {"seed": 1 << 64},
                      {"seed": -1}, {"resize": 1 << 64}, {"memory_limit": 1 << 64}):
            with self.assertRaisesRegex(ValueError, "out of range"):
                edgewise.open("lenet5", **wrong)
        for wrong in ({"std": 0}, {"mean": 0.5, "std": -1}, {"std": (1, float("nan"))}):
            with self.assertRaisesRegex(ValueError, "std is over 0"):
                edgewise.open("lenet5", **wrong)
        for wrong, why in (({"threads": -1}, "^-1 threads"), ({"resize": 1 << 62}, "resizing to 4611686018427387904")):
            with self.assertRaisesRegex(edgewise.Error, why):
                edgewise.open("lenet5", **wrong)
        with edgewise.open("lenet5", threads=1, batch=(1, 4)) as net:
            with self.assertRaisesRegex(ValueError, "batch is 18446744073709551617, out of range"):
                net.batch = (1 << 64) + 1
            with self.assertRaisesRegex(ValueError, "runs is 4294967297, out of range"):
                net.profile((1 << 32) + 1)

    def test_elements_of_other_types(self):
        zeros = array.array("f", bytes(4 * 784))
        with edgewise.open("lenet5", threads=1) as net:
            if edgewise.numpy is None:
                want = net.run(array.array("f", [1] * 784))
                self.assertEqual(net.run(array.array("i", [1] * 784)), want)
                return
            shaped = edgewise.numpy.array(zeros).reshape(1, 28, 28, 1)
            for kind in "complex64", "datetime64[s]":
                with self.assertRaisesRegex(ValueError, "input .* is float32, got "):
                    net.run(shaped.astype(kind))
            half = edgewise.numpy.float32(0.5)
            with edgewise.open(os.path.join(FINDS, "quant-bias-of-rows.onnx"), threads=1) as bytes_in:
                with self.assertRaisesRegex(ValueError, "input x0 is uint8, which cannot hold"):
                    bytes_in.run(edgewise.numpy.full((4, 6), 256))
                large = bytes_in.run(edgewise.numpy.full((4, 6), 255))[0]
                self.assertTrue((large == bytes_in.run(edgewise.numpy.full((4, 6), 255, "uint8"))[0]).all())
            edgewise.open("lenet5", threads=1, batch=edgewise.numpy.int64(2), mean=half, std=half).close()

    def test_names_that_are_no_text(self):
        with self.assertRaisesRegex(edgewise.Error, r"\\xff.*\.onnx: No such file"):
            edgewise.open(b"\xff.onnx")
        for wrong in ({"what": "a\0.ewe"}, {"what": "lenet5\0"}, {"what": "lenet5", "classes": ["a\0b"] * 10}):
            with self.assertRaisesRegex(ValueError, "NUL"):
                edgewise.open(**wrong)

    def test_says_why(self):
        with self.assertRaisesRegex(edgewise.Error, "lenet6"):
            edgewise.open("lenet6")
        with self.assertRaisesRegex(edgewise.Error, "nowhere.onnx"):
            edgewise.open("nowhere.onnx")
        with self.assertRaises(ValueError):
            edgewise.open("x.ewe", mean=0.5)
        net = edgewise.open("lenet5", threads=1)
        net.close()
        net.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            net.bench()


@unittest.skipUnless(os.environ.get("EDGEWISE_PROGRAM"), "EDGEWISE_PROGRAM is not set")
class Commands(unittest.TestCase):
    def test_trains_quantises_and_lists(self):
        with tempfile.TemporaryDirectory() as folder:
            run, db = os.path.join(folder, "run"), os.path.join(folder, "r.db")
            got = edgewise.train("lenet5", data="synthetic", samples=320, epochs=1, batch=32, threads=1,
                                 output=run, db=db)
            self.assertGreater(got["test_accuracy"], 0.05)
            with edgewise.open(os.path.join(run, "best.ckpt"), threads=1) as trained:
                self.assertEqual(trained.parameters, 61706)
            net = os.path.join(folder, "int8.onnx")
            q = edgewise.quantize(os.path.join(run, "best.ckpt"), net, calib="synthetic:64", time=False,
                                  equalize=False, correct_bias=False, threads=1)
            self.assertEqual(q["layers_int8"] + q["layers_float32"], 5)
            self.assertTrue(os.path.exists(net))
            rows = edgewise.results(db, where="batch = 32")
            self.assertEqual([r["network"] for r in rows], ["lenet5"])
            self.assertEqual(edgewise.results(db, where="batch = 33"), [])
            self.assertEqual(len(edgewise.results(os.fsencode(db))), 1)
            page = os.path.join(folder, "r.html")
            self.assertIsNone(edgewise.call("report", db=os.fsencode(db), output=page))
            self.assertTrue(os.path.exists(page))

    def test_failures_are_errors(self):
        with self.assertRaisesRegex(edgewise.Error, "no network is called nosuch"):
            edgewise.call("info", "nosuch")
        with self.assertRaisesRegex(edgewise.Error, "no option --colour"):
            edgewise.call("info", "lenet5", colour="red")

    def test_messages_are_utf8_in_any_locale(self):
        script = ("import edgewise\n"
                  "try: edgewise.call('info', b'n\\xc3\\xa9t.onnx')\n"
                  "except edgewise.Error as e: print(ascii(e))")
        ascii_only = dict(os.environ, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
        said = subprocess.run([sys.executable, "-c", script], env=ascii_only, stdout=subprocess.PIPE, check=True).stdout
        self.assertIn(b"n\\xe9t.onnx", said)


if __name__ == "__main__":
    unittest.main()
