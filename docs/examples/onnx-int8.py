#!/usr/bin/env python3
"""Energy of a model in ONNX Runtime, as it is (fp32) and with 8-bit weights (int8): underwatt.compare().

    pip install underwatt onnx onnxruntime        (onnxruntime-gpu for a GPU)
    python onnx-int8.py [SECONDS]                 SECONDS: how long it may take, 120 where none are given

The model is made here: three layers that classify points by random weights.  On a machine without a GPU the energy is the
processors' (RAPL), where this user may read it; else times alone are compared.
"""
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

import underwatt

BATCH, WIDTHS = 64, (256, 1024, 1024, 10)


def make_model(path):
    random = np.random.default_rng(1)
    nodes, weights, name = [], [], "x"
    for i, (n_in, n_out) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        w = random.normal(0, n_in**-0.5, (n_in, n_out)).astype(np.float32)
        weights.append(numpy_helper.from_array(w, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [name, f"w{i}"], [f"h{i}"]))
        name = f"h{i}"
        if i + 2 < len(WIDTHS):
            nodes.append(helper.make_node("Relu", [name], [f"r{i}"]))
            name = f"r{i}"
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [None, w]) for n, w in (("x", WIDTHS[0]), (name, WIDTHS[-1])))
    graph = helper.make_graph(nodes, "points", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def session(path):
    wanted = ("CUDAExecutionProvider", "CPUExecutionProvider")
    return ort.InferenceSession(path, providers=[p for p in wanted if p in ort.get_available_providers()])


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 120.0
    with tempfile.TemporaryDirectory() as folder:
        full, small = pathlib.Path(folder, "fp32.onnx"), pathlib.Path(folder, "int8.onnx")
        make_model(full)
        quantize_dynamic(full, small, weight_type=QuantType.QInt8)
        sessions = {"fp32": session(full), "int8": session(small)}
    points = np.random.default_rng(2).normal(size=(1024, WIDTHS[0])).astype(np.float32)
    batch = {"x": points[:BATCH]}
    classes = sessions["fp32"].run(None, {"x": points})[0].argmax(1)    # int8 is judged by them

    def variant(s):
        def agrees():
            return float((s.run(None, {"x": points})[0].argmax(1) == classes).mean())

        return underwatt.Variant(lambda: s.run(None, batch), count=BATCH, accuracy=agrees)

    on_gpu = "CUDAExecutionProvider" in sessions["fp32"].get_providers()
    result = underwatt.compare(
        {name: variant(s) for name, s in sessions.items()}, per="sample", time_s=seconds, device="gpu" if on_gpu else "cpu"
    )
    print(result)
    print(result.chart())


if __name__ == "__main__":
    main()
