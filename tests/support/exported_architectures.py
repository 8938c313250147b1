"""Writes a transformer of small size with seeded weights to an ONNX file, with the dimensions open that usually are.

A program of its own, called with the name of one and the path: exporters keep state, and print.
"""

import sys
import warnings

import torch
import transformers

TEXT = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
}
IMAGE = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
LAYERS, HEADS, HEAD = 2, 4, 16

ENCODERS = {
    "bert": ("BertModel", TEXT),
    "roberta": ("RobertaModel", TEXT),
    "distilbert": (
        "DistilBertModel",
        {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, "vocab_size": 100},
    ),
    "modernbert": (
        "ModernBertModel",
        TEXT | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2},
    ),
    "electra": ("ElectraModel", TEXT | {"embedding_size": 32}),
    "mpnet": ("MPNetModel", TEXT),
    "deberta": (
        "DebertaV2Model",
        TEXT | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16},
    ),
    "t5 encoder": (
        "T5EncoderModel",
        {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "vocab_size": 100},
    ),
}
"""Models of tokens and a mask: the class in ``transformers``, and the options of its configuration."""
DECODERS = {
    "gpt2": ("GPT2LMHeadModel", {"n_embd": 64, "n_layer": LAYERS, "n_head": HEADS, "vocab_size": 100}),
    "llama": ("LlamaForCausalLM", TEXT),
}
"""Models of tokens, a mask of the past and them, and the keys and values of the past."""
PICTURES = {
    "vit": ("ViTModel", IMAGE | {"image_size": 32, "patch_size": 8}),
    "swin": (
        "SwinModel",
        {"image_size": 64, "patch_size": 4, "embed_dim": 24, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
    ),
    "dinov2": ("Dinov2Model", IMAGE | {"image_size": 56, "patch_size": 14}),
    "segformer": (
        "SegformerModel",
        {"hidden_sizes": [16, 32, 40, 64], "depths": [1, 1, 1, 1], "decoder_hidden_size": 32},
    ),
}
SOUNDS = {
    "wav2vec2": (
        "Wav2Vec2Model",
        TEXT | {"conv_dim": (32,) * 7, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4},
    ),
}


def made(name):
    """The model, arguments to trace it with, and the names of its inputs with those of their open dimensions."""
    kind, options = next(table[name] for table in (ENCODERS, DECODERS, PICTURES, SOUNDS) if name in table)
    torch.manual_seed(0)
    base = getattr(transformers, kind)
    model = base(base.config_class(**options)).eval()
    tokens, text = torch.randint(0, 100, (2, 8)), {0: "batch", 1: "tokens"}
    if name in ENCODERS:
        return _Called(model), (tokens, torch.ones_like(tokens)), {"input_ids": text, "attention_mask": text}
    if name in DECODERS:
        past = [torch.randn(2, HEADS, 5, HEAD) for _ in range(2 * LAYERS)]
        mask = torch.ones(2, 5 + 8, dtype=torch.long)
        inputs = {"input_ids": text, "attention_mask": {0: "batch", 1: "past + tokens"}}
        held = {f"past.{k // 2}.{'kv'[k % 2]}": {0: "batch", 2: "past"} for k in range(2 * LAYERS)}
        return _Decoder(model), (tokens, mask, *past), inputs | held
    if name in SOUNDS:
        return _Called(model), (torch.randn(2, 8000),), {"x": {0: "batch", 1: "samples"}}
    size = options.get("image_size", 64)
    open_sides = {} if name in ("vit", "swin") else {2: "height", 3: "width"}
    return _Called(model), (torch.randn(2, 3, size, size),), {"x": {0: "batch"} | open_sides}


class _Called(torch.nn.Module):
    """The first output of a model, of inputs in order."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *arguments):
        names = ("input_ids", "attention_mask") if len(arguments) == 2 else (self.model.main_input_name,)
        return self.model(**dict(zip(names, arguments, strict=True)))[0]


class _Decoder(_Called):
    """Its scores, and the keys and values of the past and of the tokens."""

    def forward(self, tokens, mask, *past):
        cache = transformers.cache_utils.DynamicCache()
        for layer, (keys, values) in enumerate(zip(past[::2], past[1::2], strict=True)):
            cache.update(keys, values, layer)
        found = self.model(input_ids=tokens, attention_mask=mask, past_key_values=cache, use_cache=True)
        held = [(layer.keys, layer.values) for layer in found.past_key_values.layers]
        return (found.logits, *(tensor for pair in held for tensor in pair))


def main():
    name, path = sys.argv[1:]
    warnings.filterwarnings("ignore")
    model, arguments, inputs = made(name)
    torch.onnx.export(
        model, arguments, path, input_names=list(inputs), dynamic_axes=inputs, dynamo=False, opset_version=17
    )


if __name__ == "__main__":
    main()
