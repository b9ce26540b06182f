"""The page of traces as a file: self-contained, the same bytes each time, small, and nothing in it can be markup."""

from __future__ import annotations

import base64
import gzip
import re
from hashlib import sha256
from pathlib import Path

import orjson

from paraagent.report import viewer
from tests.report.episodes import EVIL, episode, full, hostile, large, many, task


def packs(page: str) -> list[list[dict[str, object]]]:
    texts = re.findall(r'<script type="text/plain" id="pack-\d+">([^<]*)</script>', page)
    return [orjson.loads(gzip.decompress(base64.b64decode(text))) for text in texts]


def test_the_same_episodes_give_the_same_bytes(tmp_path: Path) -> None:
    first = viewer.page([full(), hostile()], {"full": task()}, "Two")
    assert viewer.page([full(), hostile()], {"full": task()}, "Two") == first
    assert viewer.write(tmp_path / "a" / "page.html", [full(), hostile()], {"full": task()}, "Two") == 2
    assert (tmp_path / "a" / "page.html").read_text("utf-8") == first


def test_only_its_own_script_may_run() -> None:
    page = viewer.page([full()], {}, "One")
    scripts = re.findall(r"<script(?: [^>]*)?>(.*?)</script>", page, re.DOTALL)
    hashes = [base64.b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    [allowed] = re.findall(r"script-src 'sha256-([^']+)'", policy[1])
    assert allowed == hashes[-1]
    assert "default-src 'none'" in policy[1]
    assert "unsafe-inline" not in page
    assert not re.search(r"(?:src|href)=\"https?:", page)


def test_nothing_that_anybody_said_is_markup() -> None:
    page = viewer.page([hostile()], {}, EVIL)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\u2028" not in page
    assert "\x00" not in page


def test_two_thousand_episodes_stay_small() -> None:
    episodes = many(2_000)
    page = viewer.page(episodes, {}, "Many")
    assert sum(map(len, packs(page))) == 2_000
    assert len(page) < sum(len(each.model_dump_json()) for each in episodes) / 3


def test_an_episode_without_turns_or_task_is_shown_all_the_same() -> None:
    empty = episode("none", (), end="error", answer=None, error="the server is down")
    [[data]] = packs(viewer.page([empty], {}, "Empty"))
    assert (data["turns"], data["targets"], data["error"]) == ([], None, "the server is down")


def test_a_large_episode_is_whole() -> None:
    [[data]] = packs(viewer.page([large()], {}, "Large"))
    assert len(data["turns"]) == 15  # type: ignore[arg-type]
    assert len(orjson.dumps(data)) > 250_000
