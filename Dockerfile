# Two images: `docker build --target light -t dialeval:light .` scores, compares and certifies without PyTorch (dialeval-core);
# `docker build -t dialeval .` is the whole plugin with lm-eval and evaluate, on the processor.
#
#   docker run --rm -v "$PWD:/data" dialeval:light score chats.jsonl
ARG PYTHON_IMAGE=python:3.12-slim

FROM ${PYTHON_IMAGE} AS wheels
COPY . /source
RUN pip install --no-cache-dir build \
    && python -m build --wheel --outdir /wheels /source \
    && DIALEVAL_DISTRIBUTION=core python -m build --wheel --outdir /wheels /source

FROM ${PYTHON_IMAGE} AS base
# Files that a container writes into a mounted folder are not root's.
RUN useradd --create-home --uid 1000 dialeval && mkdir /data && chown dialeval /data
WORKDIR /data
ENTRYPOINT ["dialeval"]
CMD ["--help"]

FROM base AS light
RUN --mount=type=bind,from=wheels,source=/wheels,target=/wheels \
    pip install --no-cache-dir /wheels/dialeval_core-*.whl
USER dialeval

FROM base AS full
# PyTorch's processor build; an image for a GPU takes another index.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN --mount=type=bind,from=wheels,source=/wheels,target=/wheels \
    pip install --no-cache-dir torch --index-url "$TORCH_INDEX" \
    && pip install --no-cache-dir "$(ls /wheels/dialeval_plugin-*.whl)[api]"
USER dialeval
