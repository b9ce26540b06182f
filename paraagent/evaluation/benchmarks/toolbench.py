"""ToolBench queries as StableToolBench publishes them: requests with the APIs that they need.

One JSON file a split, `G1_category.json` … `G3_instruction.json`; their own APIs enter a catalog by the source
`toolbench:DIR`. Official place: `solvable_queries/test_instruction/` of THUNLP-MT/StableToolBench.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from paraagent.catalog.store import Catalog
from paraagent.errors import UsageError
from paraagent.evaluation.search import LabelledQuery

_WHERE = "they are in solvable_queries/test_instruction/ of the repository THUNLP-MT/StableToolBench"


def labelled_queries(folder: Path, catalog: Catalog, limit: int | None = None) -> list[LabelledQuery]:
    """Every query whose APIs are all in the catalog, by file and in the order of the file; at most `limit` of a file.

    Raises:
        UsageError: the folder holds no queries, or a file is not of this format.
    """
    names = {
        (service, source_name): name
        for service, source_name, name in catalog.rows(
            "SELECT service, source_name, name FROM tools WHERE source LIKE 'toolbench:%'"
        )
    }
    found: list[LabelledQuery] = []
    for path in sorted(folder.glob("*.json")):
        for row in _rows(path)[:limit]:
            relevant = [names.get((str(api[0]), str(api[1]))) for api in row["relevant APIs"]]
            if relevant and all(relevant):
                found.append(LabelledQuery(path.stem, str(row["query"]), frozenset(filter(None, relevant))))
    if not found:
        raise UsageError(f"There are no ToolBench queries in {folder}: {_WHERE}")
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        rows = orjson.loads(path.read_bytes())
        return [row for row in rows if row["query"] and isinstance(row["relevant APIs"], list)]
    except (OSError, orjson.JSONDecodeError, TypeError, KeyError) as error:
        raise UsageError(f"{path} does not hold ToolBench queries ({error}): {_WHERE}") from error
