"""Does the gate hold its level, and what does it see? Prints the tables of docs/statistics.md.

Run ``python benchmarks/calibration.py`` (under 15 minutes on 2 cores); ``--repeats 2000`` makes the
published tables, ``--only NAME`` one part of them. Populations come from numpy's generator with
fixed seeds, so that the same command prints the same figures on any number of processes. Every
figure is followed by its standard error; what is asked of a figure is checked at the end.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # Also as `python benchmarks/...`.

from benchmarks.simulation.figures import Table
from benchmarks.simulation.guard_bounds import guard_tables
from benchmarks.simulation.headline import (
    agreement_tables,
    drop_tables,
    main_tables,
    small_tables,
)
from benchmarks.simulation.laboratory import Laboratory
from benchmarks.simulation.level import size_tables
from benchmarks.simulation.plots import write_plots
from benchmarks.simulation.real_outcomes import real_tables
from benchmarks.simulation.seeds_and_days import day_tables, seed_tables
from benchmarks.simulation.trials_used import trials_tables

PARTS: Mapping[str, Callable[[Laboratory], Iterator[Table | str]]] = {
    "main": main_tables,
    "small": small_tables,
    "drop": drop_tables,
    "agreement": agreement_tables,
    "size": size_tables,
    "seeds": seed_tables,
    "days": day_tables,
    "real": real_tables,
    "guards": guard_tables,
    "trials": trials_tables,
}


def main() -> int:
    """Print the parts asked for; 1 if a figure does not hold what is asked of it."""
    options = _options()
    tables: dict[str, Table] = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        lab = Laboratory(pool, options.repeats)
        for name in options.only or PARTS:
            started = time.monotonic()
            for made in PARTS[name](lab):
                print(f"\n{made if isinstance(made, str) else made.text()}", flush=True)
                tables |= {} if isinstance(made, str) else {made.name: made}
            print(f"({name}: {time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)
    _write(tables, options)
    missed = [one for table in tables.values() for one in table.missed()]
    print("\nNot held, three standard errors allowed:" if missed else "\nAll that is asked holds.")
    print("\n".join(missed), end="\n" if missed else "")
    return 1 if missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=300, help="of each cell (default 300)")
    parser.add_argument(
        "--only", choices=PARTS, action="append", help="one part; may be given again (default: all)"
    )
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="write the plots there")
    return parser.parse_args()


def _write(tables: Mapping[str, Table], options: argparse.Namespace) -> None:
    if options.json:
        plain = {name: table.plain() for name, table in tables.items()}
        options.json.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    if options.markdown:
        pages = "\n\n".join(table.markdown() for table in tables.values())
        options.markdown.write_text(pages + "\n", encoding="utf-8")
    if options.plots:
        for path in write_plots(tables, options.plots):
            print(f"written: {path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
