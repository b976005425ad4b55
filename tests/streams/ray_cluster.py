"""Two nodes of Ray on this machine, of which one is killed as soon as it is at work: run by tests/streams/test_launch.py.

python tests/streams/ray_cluster.py batches|launch INPUT OUTPUT FOLDER
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

import dialeval_plugin
from dialeval_plugin.cli.main import app

N_SHARDS = 2


class SlowBatches(dialeval_plugin.ScoreBatches):
    """Leaves a mark of the node that it is on, and is slow enough to be killed."""

    def __init__(self, folder: str) -> None:
        super().__init__("response_length")
        self.folder = Path(folder)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        (self.folder / f"{ray.get_runtime_context().get_node_id()}-{time.time_ns()}").touch()
        time.sleep(0.2)
        return super().__call__(batch)


def batches(source: str, output: Path, folder: Path) -> None:
    rows = ray.data.read_json(source, lines=True).repartition(18)
    pool = ray.data.ActorPoolStrategy(size=3)  # more than one node has room for
    scored = rows.map_batches(SlowBatches, fn_constructor_args=(str(folder),), batch_size=10, compute=pool, num_cpus=1)
    output.write_text(json.dumps(scored.take_all()), encoding="utf-8")


def launch(source: str, output: Path, folder: Path) -> None:
    words = ["launch", source, "--scorer", "response_length", "--output", str(output), "--executor", "ray"]
    app([*words, "--shards", str(N_SHARDS), "--executor-option", "mem_per_cpu_gb=0.5"], standalone_mode=False)


def is_at_work(node: Any, output: Path, folder: Path) -> bool:
    logs = list(output.parent.glob(f"{output.name}.shards/*/part-*.log"))
    return len(logs) == N_SHARDS or any(mark.name.startswith(node.node_id) for mark in folder.iterdir())


def main(run: Callable[[str, Path, Path], None], source: str, output: Path, folder: Path) -> None:
    n_cpus = 2 if run is batches else 1
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": n_cpus, "include_dashboard": False})
    second = cluster.add_node(num_cpus=n_cpus)
    ray.init(address=cluster.address, log_to_driver=False)

    def kill() -> None:
        while not is_at_work(second, output, folder):
            time.sleep(0.02)
        cluster.remove_node(second, allow_graceful=False)
        sys.stdout.write("killed\n")

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    run(source, output, folder)
    killer.join(timeout=30)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main({"batches": batches, "launch": launch}[sys.argv[1]], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
