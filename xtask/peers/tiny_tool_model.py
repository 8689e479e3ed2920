"""A language model of 1.4 MB that calls tools, for a real llama.cpp server.

    python tiny_tool_model.py make tiny.gguf [parallel]
    python tiny_tool_model.py serve tiny.gguf 18080

Its weights are a table of which character follows which, written by hand, so it needs no download and always behaves
the same: offered tools, it opens a call, and the server's grammar completes the arguments; after a result, or without
tools, it answers OK. With `parallel` it tosses a coin after each call whether to make another. Needs the packages `gguf`, `numpy` and `xllamacpp`.
"""

import sys

TEMPLATE = r"""
{%- if tools %}
    {{- '<|im_start|>system\n<tools>' }}
    {%- for tool in tools %}{{- '\n' }}{{- tool | tojson }}{%- endfor %}
    {{- '\n</tools>\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or message.role == 'system' or (message.role == 'assistant' and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}{{- '\n' + message.content }}{%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}{%- set tool_call = tool_call.function %}{%- endif %}
            {{- '\n<tool_call>\n{"name": "' }}{{- tool_call.name }}{{- '", "arguments": ' }}{{- tool_call.arguments | tojson }}{{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\n<tool_response>\n' }}{{- message.content }}{{- '\n</tool_response><|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if not tools or messages[-1].role == 'tool' %}{{- '<|answer|>' }}{%- endif %}
{%- endif %}
"""

# The opening of a call is one token, so that nothing shorter leads there.
CALL = '<tool_call>\n{"name": "'
WIDTH, HEADS, HIDDEN = 384, 4, 32


def tokens():
    from gguf import TokenType as T

    bytes_ = [(f"<0x{byte:02X}>", T.BYTE) for byte in range(256)]
    letters = [("\u2581" if code == 32 else chr(code), T.NORMAL) for code in range(32, 127)]
    control = [(name, T.CONTROL) for name in ("<|im_start|>", "<|im_end|>", "<|answer|>")]
    start = [("<unk>", T.UNKNOWN), ("<s>", T.CONTROL), ("</s>", T.CONTROL)]
    return start + bytes_ + letters + control + [(CALL, T.USER_DEFINED)]


def make(path, parallel=None):
    import gguf
    import numpy as np

    vocabulary = tokens()
    place = {token: index for index, (token, _) in enumerate(vocabulary)}
    size = len(vocabulary)
    # What is likely anywhere; raw bytes are not.
    follows = np.zeros((size, WIDTH), np.float32)
    follows[3:259] = -1.0
    likely = {CALL: 3.0, "<|im_end|>": 2.5, '"': 2.0, "}": 1.8, "]": 1.7, "1": 1.0, "<": 0.6, ",": -0.5}
    for token, weight in likely.items():
        follows[place[token]] = weight
    # What surely comes after what.
    sure = [("<|answer|>", "O"), ("O", "K"), ("K", "<|im_end|>"), (">", "<|im_end|>"), (CALL, "<|im_end|>")]
    if parallel:
        sure.append((">", CALL))
    for before, after in sure:
        follows[place[after], place[before]] = 9.0
    embedding = np.zeros((size, WIDTH), np.float32)
    embedding[np.arange(size), np.arange(size)] = 1.0

    model = gguf.GGUFWriter(path, "llama")
    model.add_name("tiny-tool-model")
    model.add_context_length(32768)
    model.add_embedding_length(WIDTH)
    model.add_block_count(1)
    model.add_feed_forward_length(HIDDEN)
    model.add_head_count(HEADS)
    model.add_head_count_kv(1)
    model.add_layer_norm_rms_eps(1e-6)
    model.add_rope_dimension_count(WIDTH // HEADS)
    model.add_vocab_size(size)
    model.add_tokenizer_model("llama")
    model.add_token_list([token.encode() for token, _ in vocabulary])
    model.add_token_scores([0.0] * size)
    model.add_token_types([int(kind) for _, kind in vocabulary])
    model.add_bos_token_id(1)
    model.add_eos_token_id(place["<|im_end|>"])
    model.add_unk_token_id(0)
    model.add_add_bos_token(False)
    model.add_add_space_prefix(False)
    model.add_chat_template(TEMPLATE)
    model.add_tensor("token_embd.weight", embedding.astype(np.float16))
    model.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    model.add_tensor("output.weight", follows.astype(np.float16))
    # One layer that passes everything through unchanged.
    for name in ("attn_norm", "ffn_norm"):
        model.add_tensor(f"blk.0.{name}.weight", np.ones(WIDTH, np.float32))
    narrow = WIDTH // HEADS
    shapes = {
        "attn_q": (WIDTH, WIDTH),
        "attn_output": (WIDTH, WIDTH),
        "attn_k": (narrow, WIDTH),
        "attn_v": (narrow, WIDTH),
        "ffn_gate": (HIDDEN, WIDTH),
        "ffn_up": (HIDDEN, WIDTH),
        "ffn_down": (WIDTH, HIDDEN),
    }
    for name, shape in shapes.items():
        model.add_tensor(f"blk.0.{name}.weight", np.zeros(shape, np.float16))
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()


def serve(path, port):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.port = int(port)
    params.n_ctx = 32768
    params.n_parallel = 2
    params.use_jinja = True
    params.warmup = False
    params.cpuparams.n_threads = 2
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    # The server lives as long as whoever started it keeps our standard input open.
    sys.stdin.read()


if __name__ == "__main__":
    {"make": make, "serve": serve}[sys.argv[1]](*sys.argv[2:])
