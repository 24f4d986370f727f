"""usage: serve.py WINDOW
Serves a random model of two layers whose tokens are bytes, with llama.cpp's own server in this process: the text is noise, the
protocol is real. The address is the first line of standard output; it ends when standard input does."""
import os
import signal
import socket
import sys
import tempfile

import gguf
import numpy as np
import xllamacpp

TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
VOCABULARY, WIDTH, LAYERS, HEADS, FEED = 320, 64, 2, 4, 128


def write_model(path, window):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(window)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(VOCABULARY)
    writer.add_file_type(0)
    tokens = [b"<unk>", b"<s>", b"</s>"] + [f"<0x{i:02X}>".encode() for i in range(256)]
    tokens += [f"\u2581w{i}".encode() for i in range(len(tokens), VOCABULARY)]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * VOCABULARY)
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * (VOCABULARY - 259))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)
    random = np.random.default_rng(1)

    def noise(*shape):
        return (random.standard_normal(shape) * 0.05).astype(np.float32)

    ones = np.ones(WIDTH, np.float32)
    writer.add_tensor("token_embd.weight", noise(VOCABULARY, WIDTH))
    writer.add_tensor("output_norm.weight", ones)
    writer.add_tensor("output.weight", noise(VOCABULARY, WIDTH))
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        writer.add_tensor(block + "attn_norm.weight", ones)
        writer.add_tensor(block + "ffn_norm.weight", ones)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(block + name + ".weight", noise(WIDTH, WIDTH))
        writer.add_tensor(block + "ffn_gate.weight", noise(FEED, WIDTH))
        writer.add_tensor(block + "ffn_up.weight", noise(FEED, WIDTH))
        writer.add_tensor(block + "ffn_down.weight", noise(WIDTH, FEED))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


window = int(sys.argv[1])
model = os.path.join(tempfile.mkdtemp(prefix="tiny-model."), "tiny.gguf")
write_model(model, window)
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel, params.port = model, window, 1, port
params.n_predict, params.warmup, params.use_jinja = 24, False, True
params.cpuparams.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
while sys.stdin.buffer.read(4096):
    pass
os._exit(0)
