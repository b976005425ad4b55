"""Commands in processes that are forked from one that has imported what most of them need.

A process that starts from nothing imports for some five seconds what a command then uses for a tenth of one. `run` is
`subprocess.run` for commands of Python: arguments, folder, variables, output, exit status and signals are those of a process of
its own. Run as a program this file is the server that forks.
"""

from __future__ import annotations

import atexit
import functools
import gc
import hashlib
import importlib
import importlib.util
import itertools
import json
import os
import queue
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

PRELOADED = (
    *("torch.distributed", "torch.export", "transformers.core_model_loading", "transformers.pipelines", "datasets", "evaluate"),
    *("lm_eval.__main__", "lm_eval.evaluator", "lm_eval.models.huggingface", "scipy.stats", "sklearn.linear_model", "pandas"),
    *("pyarrow.parquet", "dialeval_plugin.cli.entry", "dialeval_plugin.cli.main", "dialeval_plugin.scoring"),
    *("dialeval_plugin.methods.slide.training", "dialeval_plugin.models.runtimes.runtime", "torch.utils.collect_env"),
    *("dialeval_plugin.hosts.lm_eval.cli", "dialeval_plugin.methods.general.scorer", "dialeval_plugin.results.gates"),
    *("transformers.conversion_mapping", "transformers.models.bert.modeling_bert"),
    "transformers.models.bert.tokenization_bert",
)
LIGHT = ("dialeval_plugin.cli.entry", "dialeval_plugin.cli.main", "dialeval_plugin.scoring", "dialeval_plugin.results.gates")
LIGHT += ("dialeval_plugin.methods.general.scorer", "scipy.stats")
"""The same where torch is not installed; onnxruntime would start a thread."""
READ_LATE = {"COLUMNS", "HOME", "OPENAI_API_KEY", "PATH", "PIP_TARGET", "PWD", "PYTEST_CURRENT_TEST", "PYTHONPATH"}
READ_LATE |= {"TOKENIZERS_PARALLELISM", "XDG_DATA_HOME"}
READ_LATE |= {"KILL_AT", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "ORT_DISABLE_TELEMETRY"}
READ_LATE |= {"PYTEST_VERSION", "PYTEST_XDIST_WORKER", "PYTHONUNBUFFERED", "RAY_USAGE_STATS_ENABLED", "TORCHINDUCTOR_CACHE_DIR"}
"""Variables that no import reads, as none reads dialeval's own, or that sklearn, torch and dialeval set when used. Commands
that differ in another one, or in the folder of PYTHONPATH that has the host, do not share a server."""
OF_A_GROUP = {"GROUP_RANK", "GROUP_WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "RANK"}
OF_A_GROUP |= {"ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RESTART_COUNT"}
OF_A_GROUP |= {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "WORLD_SIZE"}
"""Variables by which torchrun tells each process which of them it is."""
READ_LATE |= OF_A_GROUP
OF_THE_HUB = {"HF_ENDPOINT", "HF_HUB_CACHE", "HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_XET", "HF_TOKEN"}
"""Variables that huggingface_hub reads once: a forked command reads them again."""
HOME = 900
"""Descriptor of a command's home: libraries build the paths of their caches when they are imported, before the fork."""
FROM_NOTHING = int(os.environ.get("DIALEVAL_FROM_NOTHING", os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"))
"""First commands that are not forked, in the first process of pytest."""
MOST = 3
"""Servers that a process of pytest asks."""
STAND_IN = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    own = {{name: value for name, value in os.environ.items() if name in {of_a_group}}}
    server.sendall((json.dumps([sys.argv[1:], os.getcwd(), own]) + "\\n").encode())
    status, stdout, stderr = json.load(server.makefile())
sys.stdout.write(stdout)
sys.stderr.write(stderr)
sys.exit(status)
"""

_commands = itertools.count()
_servers: dict[frozenset[tuple[str, str]], _Server] = {}
STARTED: dict[int, subprocess.Popen[bytes]] = {}
"""Servers that this process has started, by their numbers; they fork for other processes of pytest, too."""
USED: list[float] = []
"""Processor seconds of each forked command of this process."""


def run(
    command: Sequence[object],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float = 300,
    on_start: Callable[[int], object] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command as `subprocess.run` does, with its output captured as text; `on_start` is called with its process's number.

    On Linux a command of this environment's Python (`-m`, `-c` or an installed script) is forked where OMP_NUM_THREADS is 1, as
    the Makefile sets it: else imports start threads, which a fork would lose. In the first process of pytest the first command
    starts from nothing, as a user's does.

    Raises:
        subprocess.TimeoutExpired: the command took longer than `timeout` seconds and was killed.
    """
    words = [str(word) for word in command]
    server = _server(words, env)
    if server is not None:
        return server.run(words, cwd, env, timeout, on_start)
    if on_start is None:
        return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout, check=False)
    with subprocess.Popen(words, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        on_start(process.pid)
        stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


def start(
    command: Sequence[object], *, cwd: Path, env: Mapping[str, str], timeout: float = 300
) -> tuple[int, Future[subprocess.CompletedProcess[str]]]:
    """Begin to `run` a command; return the number of its process, and what `run` is going to return."""
    number: queue.SimpleQueue[int] = queue.SimpleQueue()
    ended = ThreadPoolExecutor(1).submit(run, command, cwd=cwd, env=env, timeout=timeout, on_start=number.put)
    return number.get(timeout=600), ended


@contextmanager
def stand_in(program: Path, env: Mapping[str, str]) -> Iterator[Path]:
    """Yield a folder for PATH with a program of that name, which starts at once and has `run` run the other one."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/socket")
        server.listen()
        threading.Thread(target=_accept, args=(server, program, env), daemon=True).start()
        own = Path(folder, program.name)
        own.write_text(
            STAND_IN.format(python=sys.executable, address=server.getsockname(), of_a_group=OF_A_GROUP), encoding="utf-8"
        )
        own.chmod(0o755)
        yield Path(folder)
        server.shutdown(socket.SHUT_RDWR)


def _accept(server: socket.socket, program: Path, env: Mapping[str, str]) -> None:
    """Run a command for each connection, side by side, until the socket is shut down."""
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_answer, args=(connection, program, env), daemon=True).start()


def _answer(connection: socket.socket, program: Path, env: Mapping[str, str]) -> None:
    with connection:
        words, folder, own = json.loads(connection.makefile().readline())
        done = run([program, *words], cwd=Path(folder), env={**env, **own})
        connection.sendall(json.dumps([done.returncode, done.stdout, done.stderr]).encode())


def _server(words: Sequence[str], env: Mapping[str, str]) -> _Server | None:
    python = Path(sys.executable)
    is_python = words[0] == str(python) and words[1] in {"-m", "-c"}
    is_script = Path(words[0]).parent == python.parent and not Path(words[0]).name.startswith("python")
    can_fork = sys.platform == "linux" and env.get("OMP_NUM_THREADS") == "1"
    if not can_fork or not (is_python or is_script) or not Path(env["HOME"]).is_dir():
        return None
    late = READ_LATE | OF_THE_HUB
    read = {name: value for name, value in env.items() if name not in late and not name.startswith("DIALEVAL_")}
    if env.get("HF_HUB_OFFLINE") == "0":
        read["HF_HUB_OFFLINE"] = "1"  # as most commands have it; the forked one reads its own
    if hosts := [place for place in env.get("PYTHONPATH", "").split(os.pathsep) if (Path(place) / "lm_eval").exists()]:
        read["PYTHONPATH"] = os.pathsep.join(hosts)
    key = frozenset(read.items())
    if next(_commands) >= FROM_NOTHING and key not in _servers and len(_servers) < MOST:
        _servers[key] = _Server(dict(key))
    return _servers.get(key)


class _Server:
    """The program below, one for all processes of a run of pytest; it ends when the last of them does."""

    def __init__(self, env: Mapping[str, str]) -> None:
        of_this_run = os.environ.get("DIALEVAL_TEST_FILES", os.getpid())
        address = "\0dialeval-" + hashlib.sha256(repr((of_this_run, sorted(env.items()))).encode()).hexdigest()
        with socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.bind(address)  # an error where another process has started it
            server.listen()
            process = subprocess.Popen(
                [sys.executable, __file__, str(server.fileno())],
                env={**env, "HOME": f"/proc/self/fd/{HOME}", "PATH": os.environ["PATH"]},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[server.fileno()],
            )
            STARTED[process.pid] = process
        self._socket, deadline = socket.socket(socket.AF_UNIX), time.monotonic() + 60
        while self._socket.connect_ex(address) and time.monotonic() < deadline:
            time.sleep(0.01)

    def run(
        self,
        words: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        timeout: float,
        on_start: Callable[[int], object] | None,
    ) -> subprocess.CompletedProcess[str]:
        mine, theirs = socket.socketpair()
        with mine, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            with theirs:
                socket.send_fds(self._socket, [b"."], [theirs.fileno(), stdout.fileno(), stderr.fileno()])
            mine.sendall((json.dumps([words, str(cwd), dict(env)]) + "\n").encode())
            number = _number(mine)
            if on_start is not None:
                on_start(number)
            mine.settimeout(timeout)
            try:
                status = _number(mine)
            except TimeoutError as error:
                os.kill(number, signal.SIGKILL)
                _number(mine)
                raise subprocess.TimeoutExpired(list(words), timeout) from error
            USED.append(_number(mine) / 1e6)
            for file in (stdout, stderr):
                file.seek(0)
            return subprocess.CompletedProcess(list(words), status, stdout.read().decode(), stderr.read().decode())


def _number(connection: socket.socket) -> int:
    """Read the number of the process, its exit status, or its microseconds."""
    answer = connection.recv(8)
    assert answer, "the server has ended; its message is on stderr"
    return int.from_bytes(answer, "little", signed=True)


def _bytes(number: int) -> bytes:
    return number.to_bytes(8, "little", signed=True)


def _wait_for_a_command(server: socket.socket) -> list[str]:
    """Fork for each request; returns in the forked process alone, with the request's folder, variables and output in place."""
    running: dict[int, tuple[int, socket.socket]] = {}
    processes: set[socket.socket] = set()
    while True:
        ready, _, _ = select.select([server, *processes, *running], [], [])
        for ended in running.keys() & set(ready):
            command, client = running.pop(ended)
            os.close(ended)
            _, status, usage = os.wait4(command, 0)
            microseconds = round(1e6 * (usage.ru_utime + usage.ru_stime))
            with client, suppress(OSError):
                client.sendall(_bytes(os.waitstatus_to_exitcode(status)) + _bytes(microseconds))
        if server in ready:
            processes.add(server.accept()[0])
        asking = next(iter(processes.intersection(ready)), None)
        if asking is None:
            continue
        message, descriptors, _, _ = socket.recv_fds(asking, 1, 3)
        if not message:
            processes.remove(asking)
            asking.close()
            if not processes:
                os._exit(0)
            continue
        client = socket.socket(fileno=descriptors[0])
        with client.makefile() as request:
            words, folder, env = json.loads(request.readline())
        if (command := os.fork()) == 0:
            break
        client.sendall(_bytes(command))
        running[os.pidfd_open(command)] = command, client
        for descriptor in descriptors[1:]:
            os.close(descriptor)
    for open_socket in (server, client, *processes, *(one for _, one in running.values())):
        open_socket.close()
    for descriptor in running:
        os.close(descriptor)
    for number, descriptor in enumerate(descriptors[1:], start=1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    os.dup2(home := os.open(env["HOME"], os.O_RDONLY), HOME, inheritable=False)
    os.close(home)
    return list(words)


def _main() -> None:
    """Serve, and be the command in each forked process."""
    # This file's own folder, which is on no command's path.
    del sys.path[0]
    is_light = importlib.util.find_spec("torch") is None
    for name in LIGHT if is_light else PRELOADED:
        importlib.import_module(name)
    if not is_light:
        # The host describes the machine in each of its results, with programs that take half a second.
        collect_env = sys.modules["torch.utils.collect_env"]
        collect_env.get_pretty_env_info = functools.cache(collect_env.get_pretty_env_info)
        collect_env.get_pretty_env_info()
        # The first model that a process opens has transformers compile a thousand patterns of weights' names.
        sys.modules["transformers.conversion_mapping"].get_checkpoint_conversion_mapping("bert")
    # Nor does the command line read the options of every command again.
    typer = sys.modules["typer.main"]
    typer.get_command = functools.cache(typer.get_command)
    typer.get_command(sys.modules["dialeval_plugin.cli.main"].app)
    # A thread would be absent from every forked process. jemalloc, which pyarrow brings, starts its own again after a fork.
    threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    assert len(threads) - threads.count("jemalloc_bg_thd") == 1, f"an import has started a thread: {threads}"
    # A command that ends leaves the libraries of torch as they are: to take them apart takes as long as the fork.
    for cleaning in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        cleaning.atexit = False
    gc.collect()
    gc.freeze()
    words = _wait_for_a_command(socket.socket(fileno=int(sys.argv[1])))
    status = 0
    try:
        _run(words)
    except SystemExit as end:
        if isinstance(end.code, str):
            raise
        status = int(end.code or 0)
    # As any process of Python ends, but for what is next: to take apart what all of these modules hold, for half a second.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _run(words: Sequence[str]) -> None:
    """Run the command in this process."""
    sys.modules["numpy"].random.seed()
    program, *rest = words if words[0] != sys.executable else words[1:]
    folder = {"-m": str(Path.cwd()), "-c": ""}.get(program, str(Path(program).parent))
    named = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.path[:] = [folder, *named, *(place for place in sys.path if place not in named)]
    if not OF_THE_HUB.isdisjoint(os.environ):
        constants = importlib.reload(sys.modules["huggingface_hub.constants"])
        importlib.import_module("huggingface_hub.hf_api").api.endpoint = constants.ENDPOINT
    if any((Path(place) / "sitecustomize.py").exists() for place in named):
        sys.modules.pop("sitecustomize", None)
        importlib.import_module("sitecustomize")
    if program == "-m":
        sys.argv[:] = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif program == "-c":
        sys.argv[:] = ["-c", *rest[1:]]
        sys.modules["__main__"] = module = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), module.__dict__)  # noqa: S102 - what `python -c` is for
    else:
        sys.argv[:] = words
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    _main()
