"""Opening encoders: safetensors only, never remote code, clear words where one is missing."""

from __future__ import annotations

from sentence_transformers import SentenceTransformer

from dialeval_plugin.errors import ModelLoadError
from dialeval_plugin.model_folders import check_complete, resolve, tensor_names


def load_encoder(name: str, *, device: str | None = None, revision: str | None = None) -> SentenceTransformer:
    """Open a sentence-transformers folder, a bare transformers checkpoint (mean pooling), or a model of the hub.

    Raises:
        ModelLoadError: the weights are pickled, damaged, or do not fit the configuration or the tokenizer.
        MissingPrerequisite: see `resolve`.
    """
    folder = resolve(name, revision=revision)
    stored = {name for path in sorted(folder.rglob("*.safetensors")) for name in tensor_names(path)}
    try:
        encoder = SentenceTransformer(
            str(folder), device=device, trust_remote_code=False, model_kwargs={"use_safetensors": True}, local_files_only=True
        )
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise ModelLoadError(f"{folder}: cannot be opened as an encoder ({error}). Copy the folder again.") from error
    transformer = getattr(encoder[0], "auto_model", None)
    if transformer is not None:
        check_complete(folder, transformer.state_dict(), stored)
        rows = transformer.get_input_embeddings().num_embeddings
        if len(encoder.tokenizer) > rows:
            raise ModelLoadError(
                f"{folder}: the tokenizer has {len(encoder.tokenizer)} tokens, the embedding only {rows} rows. "
                "The tokenizer belongs to another model; copy the folder again."
            )
    return encoder
