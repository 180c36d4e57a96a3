"""Replay recorded Grappler decisions with preset ``grappler`` and print every difference.

usage: python tests/tools/replay_grappler.py DIR

DIR holds ``*.jsonl.gz`` and ``models/*.meta.json`` (and ``tf_invalid.json``). Exit code 0 only when all cases agree.
"""

import argparse
import collections
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from goldens import read_cases, run_case


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="only cases whose id contains this")
    parser.add_argument("--most", type=int, default=20, help="differing cases to print (default 20)")
    arguments = parser.parse_args()
    total: collections.Counter[str] = collections.Counter()
    equal: collections.Counter[str] = collections.Counter()
    printed, start = 0, time.perf_counter()
    for case in read_cases(arguments.folder):
        if arguments.only not in case.id:
            continue
        try:
            differences = run_case(case)
        except Exception:  # noqa: BLE001  (a crash is a difference; go on with the next case)
            differences = [traceback.format_exc()]
        total[case.kind] += 1
        equal[case.kind] += not differences
        if differences and printed < arguments.most:
            printed += 1
            print(f"{case.kind} {case.id} ({case.mode}): {len(differences)} differences")
            for line in differences[:6]:
                print("   ", line)
    for kind in total:
        print(f"{kind}: {equal[kind]} of {total[kind]} cases agree")
    print(
        f"{sum(equal.values())} passed, {sum(total.values()) - sum(equal.values())} failed in {time.perf_counter() - start:.0f} s"
    )
    if not total:
        print(f"No cases in {arguments.folder}.", file=sys.stderr)
    return 0 if total and total == equal else 1


if __name__ == "__main__":
    sys.exit(main())
