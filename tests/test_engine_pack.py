"""Constants that are repacked once, for an artifact, and used where they are when it is loaded."""

import json

import numpy as np
import pytest
from engine_graph import (
    Engine,
    Graph,
    InvalidArgument,
    aligned,
    build_info,
    pack,
    reference,
    run_python,
)


def layers():
    """Return a graph in which each way to keep weights occurs."""
    graph = Graph()
    x = graph.input(1, 16, 9, 8)
    y = graph.convolution(x, (32, 16, 3, 3), graph.constant(32), padding_l=1, padding_r=1)
    y = graph.convolution(y, (48, 16, 3, 3), graph.constant(48), groups=2)  # seen as 5-D
    y = graph.convolution(y, (48, 1, 3, 3), graph.constant(48), groups=48)
    y = graph.node("reshape", [y], shape=[4, -1])
    weights = graph.constant(24, 48 * 5 * 4 // 4)
    turned = graph.node("transpose", [weights], axes=[1, 0])
    y = graph.node("matmul", [y, turned])
    y = graph.node("inner_product", [y, graph.constant(7, 24), graph.constant(7)])
    graph.output(graph.mul(y, graph.constant(4, 7)))
    return graph


def run(graph, constants, inputs, shape):
    engine = Engine(graph)
    engine.set_constants(constants)
    result = np.empty(shape, np.float32)
    engine.run_into(inputs, [result])
    return result, engine.profile()


def in_place(constants, offset=0):
    """Return copies that begin at multiples of 64 bytes, or `offset` bytes after."""
    copies = [aligned(c.shape, c.dtype, offset) for c in constants]
    for copy, constant in zip(copies, constants, strict=True):
        copy[...] = constant
    return copies


def test_packed_constants_are_used_where_they_are():
    graph = layers()
    (expected,) = reference(graph)
    text, packed = pack(graph, graph.constant_data)
    before = [constant.tobytes() for constant in graph.constant_data]
    plain, plan = run(graph, graph.constant_data, graph.input_data, expected.shape)
    got, packed_plan = run(text, in_place(packed), graph.input_data, expected.shape)
    np.testing.assert_allclose(plain, expected, atol=1e-5 * np.abs(expected).max())
    assert got.tobytes() == plain.tobytes()
    assert plan["repacked_bytes"] > 0
    # With some instruction sets, a layout of grouped weights has no name: those are repacked.
    assert packed_plan["repacked_bytes"] < plan["repacked_bytes"] / 2
    assert packed_plan["constant_bytes"] == plan["constant_bytes"]
    assert [constant.tobytes() for constant in graph.constant_data] == before


def test_what_is_packed():
    """Weights that change their layout: not biases, nor what is read row-major."""
    graph = layers()
    text, packed = pack(graph, graph.constant_data)
    constants = json.loads(text)["constants"]
    ranks = [len(c["shape"]) for c in constants if "packed" in c]
    assert ranks.count(4) >= 2
    assert 1 not in ranks
    assert constants[-1] == graph.constants[-1]
    for constant, data, original in zip(constants, packed, graph.constant_data, strict=True):
        assert (data is original) == ("packed" not in constant)


def test_misaligned_constants_are_copied():
    graph = layers()
    text, packed = pack(graph, graph.constant_data)
    (expected,) = reference(graph)
    got, plan = run(text, in_place(packed, offset=4), graph.input_data, expected.shape)
    assert plan["repacked_bytes"] == plan["constant_bytes"]
    np.testing.assert_allclose(got, expected, atol=1e-5 * np.abs(expected).max())


def test_a_constant_in_two_layouts_stays_as_it_is():
    graph = Graph()
    weights = graph.constant(16, 16, 3, 3)
    y = graph.convolution(graph.input(1, 16, 7, 6), weights)
    z = graph.convolution(graph.input(1, 32, 7, 6), weights, groups=2)
    graph.output(y, z)
    text, packed = pack(graph, graph.constant_data)
    assert json.loads(text) == graph.document()
    assert packed[0] is graph.constant_data[0]


def test_part_of_a_constant_stays_as_it_is():
    graph = Graph()
    weights = graph.node(
        "slice", [graph.constant(20, 8, 3, 3)], begin=[2, 0, 0, 0], size=[16, 8, 3, 3]
    )
    graph.output(
        graph.node(
            "convolution", [graph.input(1, 8, 7, 6), weights],
            strides=[1, 1], dilation=[1, 1], padding_l=[0, 0], padding_r=[0, 0], groups=1,
        )
    )  # fmt: skip
    text, packed = pack(graph, graph.constant_data)
    assert json.loads(text) == graph.document()
    (expected,) = reference(graph)
    got, _ = run(text, packed, graph.input_data, expected.shape)
    np.testing.assert_allclose(got, expected, atol=1e-5 * np.abs(expected).max())


LOAD = """
import sys
import numpy as np
from engine_graph import build_info
from test_engine_pack import in_place, layers, run
text, packed = open(sys.argv[1]).read(), np.load(sys.argv[2])
constants = in_place([packed[name] for name in packed])
result, plan = run(text, constants, layers().input_data, (4, 7))
np.save(sys.argv[3], result)
print(build_info()["isa"], plan["repacked_bytes"])
"""


def test_another_machine_unpacks(tmp_path):
    """CASE 20: what was packed for this processor, loaded where oneDNN knows SSE4.1 only."""
    graph = layers()
    text, packed = pack(graph, graph.constant_data)
    files = [tmp_path / name for name in ("graph.json", "constants.npz", "result.npy")]
    files[0].write_text(text)
    np.savez(files[1], **{f"c{i:02}": constant for i, constant in enumerate(packed)})
    process = run_python(LOAD, *map(str, files), ONEDNN_MAX_CPU_ISA="SSE41")
    assert process.returncode == 0, process.stderr
    isa, repacked = process.stdout.split()
    assert isa == "SSE41"
    assert int(repacked) > 0
    (expected,) = reference(graph)
    np.testing.assert_allclose(np.load(files[2]), expected, atol=1e-5 * np.abs(expected).max())


PACKED = {"shape": [16, 8, 3, 3], "strides": [72, 9, 3, 1], "tag": "Abcd16a", "dtype": "f32"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": [16, 8, 3, 4]}, "a shape of the constant's size"),
        ({"shape": [16, 72]}, "as many strides"),
        ({"shape": [], "strides": []}, "a shape of the constant's size"),
        ({"shape": [-16, -8, 3, 3]}, "a shape of the constant's size"),
        ({"strides": [72, 9, 3, -1]}, "strides that stay in the constant"),
        ({"strides": [73, 9, 3, 1]}, "strides that stay in the constant"),
        ({"strides": [2**31 - 1, 9, 3, 1]}, "strides that stay in the constant"),
        ({"tag": "ABCD"}, "a format tag for the shape"),
        ({"tag": "any"}, "a format tag for the shape"),
        ({"tag": "abc"}, "a format tag for the shape"),
        ({"tag": 5}, "not a well-formed"),
        ({"tag": None}, "not a well-formed"),
        ({"shape": "16"}, "expected a list"),
        ({"dtype": "f33"}, "expected a oneDNN dtype"),
        ({"dtype": 32}, "not a well-formed"),
    ],
)
def test_wrong_packing(changes, message):
    graph = Graph()
    graph.output(graph.convolution(graph.input(1, 8, 7, 6), (16, 8, 3, 3)))
    document = graph.document()
    document["constants"][0]["packed"] = {**PACKED, **changes}
    with pytest.raises(InvalidArgument) as error:
        Engine(document)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("dtype", "data", "message"),
    [
        ("f32", np.zeros((16, 8, 3, 3), np.float32), r"expected shape \(1152,\), got \(16, "),
        ("bf16", np.zeros(1152, np.float32), "expected dtype bf16, got DLPack code 2 with 32 bits"),
    ],
)
def test_packed_data_of_another_kind(dtype, data, message):
    graph = Graph()
    graph.output(graph.convolution(graph.input(1, 8, 7, 6), (16, 8, 3, 3)))
    document = graph.document()
    document["constants"][0]["packed"] = {**PACKED, "dtype": dtype}
    engine = Engine(document)
    with pytest.raises(InvalidArgument, match=f"constant 0: {message}"):
        engine.set_constants([data])


# What is chosen by measurement --------------------------------------------------------------------


def convolutions():
    graph = Graph()
    x = graph.input(1, 32, 14, 13)
    for _ in range(3):
        x = graph.convolution(x, (32, 32, 3, 3), padding_l=1, padding_r=1)
    graph.output(x)
    return graph


def tuned(graph, layout, isa=None):
    isa = isa or build_info()["isa"]
    return {**graph.document(), "tuned": {"layout": layout, "isa": isa}}


def layouts(plan):
    return [step["layouts"]["dst"] for step in plan["steps"] if step["kind"] == "convolution"]


def test_a_layout_is_chosen_by_measurement():
    graph = convolutions()
    (expected,) = reference(graph)
    text, packed = pack(graph, graph.constant_data, tune="layouts")
    document = json.loads(text)
    assert document["tuned"]["isa"] == build_info()["isa"]
    assert document["tuned"]["layout"] in ("any", "channels_last", "blocked")
    got, plan = run(text, in_place(packed), graph.input_data, expected.shape)
    np.testing.assert_allclose(got, expected, atol=1e-5 * np.abs(expected).max())
    assert plan["repacked_bytes"] == 0


def test_the_chosen_layout_is_used():
    graph = convolutions()
    (expected,) = reference(graph)
    block = "aBcd16b" if build_info()["isa"].startswith("AVX512") else "aBcd8b"
    for layout, tag in (("channels_last", "acdb"), ("blocked", block)):
        got, plan = run(tuned(graph, layout), graph.constant_data, graph.input_data, expected.shape)
        # The last one may write what the caller gets.
        assert layouts(plan)[:-1] == [tag] * 2
        np.testing.assert_allclose(got, expected, atol=1e-5 * np.abs(expected).max())


def test_what_was_measured_on_another_machine_is_not_used():
    graph = convolutions()
    (expected,) = reference(graph)
    arguments = graph.constant_data, graph.input_data, expected.shape
    _, plan = run(graph, *arguments)
    for layout in ("channels_last", "blocked"):
        _, other = run(tuned(graph, layout, isa="VAX"), *arguments)
        assert other == plan


def test_nothing_to_choose():
    graph = Graph()
    graph.output(graph.node("eltwise", [graph.input(1, 5)], alg="relu", alpha=0.0, beta=0.0))
    text, _ = pack(graph, graph.constant_data, tune="layouts")
    assert "tuned" not in json.loads(text)


def test_wrong_tuning():
    with pytest.raises(InvalidArgument, match="expected layout any, channels_last or blocked"):
        Engine(tuned(convolutions(), "abcd"))
    with pytest.raises(InvalidArgument, match="not a well-formed"):
        Engine({**convolutions().document(), "tuned": {}})
