"""The charts of a benchmark as PNG files, one for each workload and rate."""

from __future__ import annotations

from pathlib import Path

from tailrace.bench.charts import NINES, nines
from tailrace.bench.result import BenchResult, typical
from tailrace.bench.systems import SYSTEMS
from tailrace.bench.workloads import WORKLOADS
from tailrace.errors import TailraceError

COLORS = ("#0b7a75", "#4a4e8f", "#8d8f94", "#d9542b", "#a06a00", "#b3307e", "#2f6fce", "#5b8c1a")


def write(result: BenchResult, folder: Path) -> list[Path]:
    try:
        import matplotlib
    except ImportError:
        raise TailraceError(
            "TAILRACE_EXTRA_MISSING", "drawing the pictures needs matplotlib.", 'pip install "tailrace[demo]"'
        ) from None
    matplotlib.use("Agg")
    cells = [(workload, rate) for workload in result.workloads for rate in result.rates]
    return [
        _draw(result, workload, rate, folder / f"{workload}-{rate}.png")
        for workload, rate in cells
        if any(result.runs_of(cell) for cell in result.cells(workload, rate))
    ]


def _draw(result: BenchResult, workload: str, rate: int, path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure, (tail, time) = plt.subplots(1, 2, figsize=(12, 5.2), layout="constrained", sharey=True)
    figure.suptitle(f"{workload}: {WORKLOADS[workload].title}, {rate:,} records/s")
    for color, cell in zip(COLORS, result.cells(workload, rate), strict=False):
        runs = result.runs_of(cell)
        if not runs:
            continue
        run, name = typical(runs), SYSTEMS[cell.system].title
        tail.plot([nines(p) for p, _ in run.curve], [ms for _, ms in run.curve], color=color, lw=2, label=name)
        seconds = [second.at_s for second in run.timeline]
        time.plot(seconds, [second.p99_ms for second in run.timeline], color=color, lw=1.6)
        time.plot(run.checkpoints_s, [1.0] * len(run.checkpoints_s), color=color, ls="", marker="|", markersize=10)
    tail.set_xticks([nines(p) for p in NINES], [f"{p:g} %" for p in NINES])
    tail.set_yscale("log")
    tail.set(xlabel="records answered within the latency", ylabel="end-to-end latency, ms (log)")
    time.set(xlabel="seconds into the measurement; p99 of each second, ticks: checkpoints")
    for axes in (tail, time):
        axes.grid(visible=True, which="major", alpha=0.3)
    figure.legend(fontsize="small", loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
