"""The command `dialeval` in two processes that train together, as `accelerate launch` starts them on GPUs.

On processors accelerate leaves the start to MPI; torchrun, which it uses itself for GPUs, sets the same environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def launch(*arguments: object, n_processes: int = 2, timeout: float = 540) -> subprocess.CompletedProcess[str]:
    """Run `dialeval` with some arguments and wait for its end."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n_processes}", "--no-python"]
    command = [str(Path(sys.executable).with_name("dialeval")), *map(str, arguments)]
    return subprocess.run(
        [sys.executable, *launcher, *command] if n_processes > 1 else command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
