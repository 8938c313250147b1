"""Operators of onnxruntime that are refused for good reason, which the error tells."""

from __future__ import annotations

_SEARCH = (
    "it generates tokens one by one by the model in its attributes: compile that model, and loop around its engine"
)
_NO_EXPORTER = "no exporter of models writes it"
_RESEARCH = "it belongs to an architecture of which no exported model is known"
_ONE_PROCESSOR = (
    "it lays out channels for one processor: save the model with onnxruntime's ORT_ENABLE_EXTENDED, not ORT_ENABLE_ALL"
)

_REASONS: dict[str, str] = {
    **dict.fromkeys(("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"), _SEARCH),
    **dict.fromkeys(
        ("BranchwiseRMSNorm", "EngramGate", "GatedAdd", "GatedDeltaNet", "GatedRMSNorm", "GatherPacked"), _RESEARCH
    ),
    **dict.fromkeys(
        ("HyperConnectionPostMix", "HyperConnectionPreMix", "LinearAttentionGate", "MRotaryEmbedding"), _RESEARCH
    ),
    **dict.fromkeys(
        ("MoEGroupRouter", "NGramHashMapping", "ScaledSiLU", "VarlenCausalConvWithState", "VarlenNGramHashMapping"),
        _RESEARCH,
    ),
    "AttnLSTM": f"{_NO_EXPORTER}: an LSTM around an attention of its own",
    "BifurcationDetector": "it compares guessed tokens with generated ones, which belongs around a model",
    "NGramRepeatBlock": "it forbids tokens while text is generated, which belongs around a model",
    "MurmurHash3": "it hashes bytes and strings",
    "WordConvEmbedding": f"{_NO_EXPORTER}: characters of words are embedded by a convolution of its own",
    "CropAndResize": f"{_NO_EXPORTER}: ONNX has RoiAlign",
    "ConvTransposeWithDynamicPads": f"{_NO_EXPORTER}: ONNX has ConvTranspose",
    "MaxpoolWithMask": _NO_EXPORTER,
    "SampleOp": "it is an example of how operators are added to onnxruntime",
    "SparseToDenseMatMul": "it multiplies a sparse tensor, and there are none",
    "DynamicTimeWarping": "it finds a path of a run-time length after Whisper has run, which belongs around a model",
    "UnfoldTensor": f"{_NO_EXPORTER}: it belongs to onnxruntime's own export of Whisper",
    "DecoderMaskedMultiHeadAttention": "it belongs inside of GreedySearch and BeamSearch, in buffers that these keep",
    "SparseAttention": f"{_NO_EXPORTER} but that of Phi-3-small, whose blocks are chosen by tables",
    "MatMulFpQ4": "its weights are packed as the kernels of one processor want them",
}


def reason_of(domain: str, name: str) -> str | None:
    """Why an operator has no converter; None if nothing is known of it."""
    if domain == "com.microsoft.nchwc":
        return _ONE_PROCESSOR
    return _REASONS.get(name) if domain == "com.microsoft" else None
