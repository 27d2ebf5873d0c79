"""The estimate of tokens, compared with an exact o200k tokenizer."""

import json
import lzma
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import splintr
from hypothesis import given
from hypothesis import strategies as st

from rekindle.policy.text.token_estimate import (
    estimate_tokens,
    estimate_unrounded,
)

CORPUS = Path(__file__).parents[4] / ".." / "shared" / "relay-corpus" / "relays"

BAR = 0.25  # the error that is promised
DOCUMENT = 100  # tokens from which on a text is a document

ENGLISH = """\
# Relay: billing service migration

## Where things stand

The importer now reads the old ledger in batches of 500 rows and writes each batch inside one
transaction. Yesterday's run covered 1,284,310 of 1,291,077 rows before it was stopped; nothing was
lost, because the cursor is stored in `state/cursor.json` after every commit. The remaining rows all
belong to tenants whose currency is missing, and they need the fallback described below.

Tests are green on `main` (412 passed, 3 skipped). The flaky one is still
`test_retry_backs_off_exponentially`: it depends on the wall clock, so inject a clock before you
trust it. Do **not** raise the timeout again; that only hid the problem for a week.

## Decisions

- Keep the legacy table read-only until 2025-03-31, then drop it (agreed with the data team).
- Amounts are integers in minor units; `Decimal` appears only at the edge, in `api/render.py`.
- Idempotency keys live for 72 hours. Longer was rejected: the index would outgrow memory.

| area      | state       | owner   | next step                      |
|-----------|-------------|---------|--------------------------------|
| importer  | running     | worker  | resume from the stored cursor  |
| reporting | blocked     | finance | wait for the list of tenants   |
| dashboard | not started | nobody  | sketch three charts            |

## Next Action

1. Run `uv run importer --resume --limit 10000` and check that the error count stays below 20.
2. Write the fallback for missing currencies: take it from the country, otherwise mark the row.
3. When both are done, open a pull request titled "Finish the ledger import" and ask for review.
"""

CHINESE = """\
# 交接文档：支付服务迁移

## 当前状态

导入程序现在每次读取五百行旧账本数据，并在同一个事务中写入。昨天的运行处理了绝大部分记录，中途被人工停止，
但没有丢失任何数据，因为每次提交之后都会保存游标。剩下的记录都属于没有设置货币的租户，需要使用下面说明的备用方案。

主分支上的测试全部通过。不稳定的测试只有一个：它依赖系统时间，所以在信任它之前，应该先把时钟作为参数传进去。
不要再次调大超时时间，那样只会把问题掩盖一个星期，最后还是要回来解决。

## 已经做出的决定

- 旧表在三月底之前保持只读，之后删除，这一点已经和数据团队确认。
- 金额一律用整数保存，单位是分；只有在输出的时候才转换成小数。
- 幂等键保留三天。更长的时间被否决了，因为索引会超出内存的大小。

| 模块 | 状态 | 负责人 | 下一步 |
|------|------|--------|--------|
| 导入 | 进行中 | 工作进程 | 从保存的位置继续 |
| 报表 | 阻塞 | 财务部门 | 等待租户名单 |
| 看板 | 未开始 | 暂无 | 先画出三张图表 |

## 下一步行动

1. 从上次的位置继续运行导入程序，确认错误数量没有超过二十条。
2. 为缺少货币的记录编写备用逻辑：优先根据国家推断，否则做上标记，留给人工处理。
3. 两项都完成以后，提交合并请求，并且请同事进行评审。
"""

MIXED = """\
# Cycle 37 交接 (2025-02-14)

## What We Did

- ✅ 修复了 `parser.py` 里的编码问题：Windows 上 CRLF 文件不再报错 (PR #218)
- ✅ 新增 12 个单元测试，coverage 从 71.4% 提升到 78.9%
- ⏳ Docker 镜像还没有推送，registry 返回 `403 Forbidden`，需要 human 更新 token
- ❌ 放弃了 GraphQL 方案：schema 太大，build time 从 40s 变成 3m20s

## Key Decisions

| Decision | 原因 | Status |
|----------|------|--------|
| 用 SQLite 代替 PostgreSQL | 单机部署，不需要并发写入 | ✅ done |
| 保留 REST API v1 | 仍有三个客户在使用 | 🔄 ongoing |
| 推迟 i18n | 目前只有中文和英文用户 | ⏸ later |

The landing page is live at https://example.com/app?utm_source=relay and gets about 140 visits a
day. 转化率 2.1%，比上周的 1.6% 略有提升，但样本太小，不能下结论。

## Next Action

**TASK-52**: 实现 `export_to_csv()`，支持 UTF-8 with BOM，然后更新 README 和 CHANGELOG。
If the token arrives first, push the image `app:0.9.3` and close issue #201。
"""

OTHERS = {
    "prose": """\
The harbour was quiet when the last of the boats came in, and the old man who mended the nets had
already lit his lamp. He did not look up. For forty years he had listened to the same engines, and
he could tell each captain by the way the sound dropped at the end of the pier. Tonight one of them
was missing. He put down the needle, folded the net over the back of his chair, and walked slowly to
the window, where the rain had begun to draw long crooked lines across the glass. Somewhere beyond
the breakwater a bell was ringing, irregular and faint, as though nobody were holding the rope.
""",
    "Chinese prose": """\
傍晚的时候，最后一条渔船慢慢驶进了港口，补网的老人已经点亮了那盏旧灯。他没有抬头，四十年来他一直听着同样的马达声，
单凭声音就能分辨出每一位船长。可是今天晚上少了一条船。他放下手里的针线，把渔网搭在椅背上，慢慢走到窗前。
雨水正沿着玻璃往下流，划出一道道弯曲的痕迹。防波堤外面隐隐约约传来钟声，时断时续，好像没有人握着那根绳子。
""",
    "Python": '''\
class RetryPolicy:
    """Decides whether a failed call is worth another attempt."""

    def __init__(self, attempts: int = 5, base_delay: float = 0.25) -> None:
        self.attempts = attempts
        self.base_delay = base_delay
        self._history: list[tuple[int, Exception]] = []

    def delay_before(self, attempt: int) -> float:
        if attempt <= 0:
            raise ValueError(f"attempt must be positive, not {attempt!r}")
        return min(self.base_delay * 2 ** (attempt - 1), 30.0)

    def should_retry(self, attempt: int, error: Exception) -> bool:
        self._history.append((attempt, error))
        return attempt < self.attempts and isinstance(error, (ConnectionError, TimeoutError))
''',
    "JSON": json.dumps(
        {
            "session": {"id": 4711, "started": "2025-02-14T09:30:00Z", "resumed": True},
            "budget": {"limit_tokens": 2000, "used": 1873.5, "ratio": 0.93675},
            "steps": [
                {"name": "collect", "ok": True, "elapsed_ms": 1204, "errors": []},
                {"name": "compile", "ok": False, "elapsed_ms": 88, "errors": ["E0412", "E0433"]},
                {"name": "publish", "ok": None, "elapsed_ms": 0, "errors": []},
            ],
        },
        indent=2,
    ),
    "table": """\
| date       | cycle | passed | failed | minutes | note                    |
|:-----------|------:|-------:|-------:|--------:|:------------------------|
| 2025-02-10 |    31 |    398 |      4 |    12.5 | two new fixtures        |
| 2025-02-11 |    32 |    401 |      1 |    11.9 | clock injected          |
| 2025-02-12 |    33 |    402 |      0 |    12.1 | —                       |
| 2025-02-13 |    34 |    409 |      0 |    12.8 | slow runner, not us     |
""",
    "URLs and hashes": """\
- https://github.com/example/widgets/pull/1834/files#diff-5f2c1e9b7a
- https://docs.example.org/en/latest/reference/storage.html?highlight=fsync&v=3
- https://registry.example.net/v2/app/manifests/sha256:9c1b7e0d4f3a2856bb19e07d5ac4f18e
- commit 3f9d1c7be24a80956e1f0d2ab7c58e43d9f6a012
- run 7c9e6679-7425-40de-944b-e07fc1f90ae7 on /var/lib/worker/cache/0a/1f/segment-000417.log
""",
    "emoji": """\
✅ done 🚀 shipped 🎯 on target 📋 listed 🔥 urgent
❌ failed ⏳ waiting 🔄 again 💡 idea 🧪 test
⚠️ careful 📊 numbers 📝 notes 🤖 agent 🏗️ building
👍🏽 agreed 🌍 everywhere 💰 paid 🔒 closed 🎉 party
🟢 green 🟡 yellow 🔴 red 🔵 blue ⭐ star ❤️ heart
📦 packed 🔍 found 🚨 alarm 📈 rising 🛡️ safe
""",
    "Japanese": """\
インポート処理は古い台帳を五百行ずつ読み込み、それぞれを一つのトランザクションで書き込みます。昨日の実行は途中で
止められましたが、コミットのたびにカーソルを保存しているので、データは失われていません。次の作業は、通貨が設定され
ていないテナントの扱いを決めることです。タイムアウトを延ばすのは避けてください。問題が隠れるだけです。
""",
    "Korean": """\
가져오기 프로그램은 이제 오래된 장부를 오백 줄씩 읽어서 하나의 트랜잭션으로 기록합니다.
어제 실행은 중간에 멈추었지만 커밋할 때마다 위치를 저장하기 때문에 잃어버린 데이터는 없습니다.
다음 작업은 통화가 설정되지 않은 고객을 어떻게 처리할지 정하는 것입니다.
제한 시간을 다시 늘리지 마세요. 문제를 숨길 뿐입니다. 두 가지가 끝나면 동료에게 검토를 부탁하세요.
""",
    "Russian": """\
Программа импорта читает старую книгу по пятьсот строк и записывает каждую порцию в одной
транзакции. Вчерашний запуск был остановлен, но данные не потеряны, потому что положение
сохраняется после каждой записи. Следующая задача состоит в том, чтобы решить, что делать с
клиентами, у которых не указана валюта. Не увеличивайте время ожидания ещё раз: это только скрывает
проблему. Когда обе задачи будут готовы, попросите коллегу проверить изменения.
""",
    "German": """\
Das Programm liest das alte Kassenbuch jetzt in Blöcken von fünfhundert Zeilen und schreibt jeden
Block in einer einzigen Transaktion. Der gestrige Lauf wurde angehalten, verloren ging aber nichts,
weil die Stelle nach jedem Schreiben gespeichert wird. Als Nächstes ist zu entscheiden, was mit den
Kunden geschieht, für die keine Währung hinterlegt ist. Die Wartezeit bitte nicht noch einmal
erhöhen: Das verdeckt nur die Ursache. Danach bitte eine Kollegin um Durchsicht bitten.
""",
}


class Revision(NamedTuple):
    source: str
    text: str
    tokens: int

    @property
    def error(self) -> float:
        return estimate_tokens(self.text) / self.tokens - 1


@pytest.fixture(scope="module")
def count() -> Callable[[str], int]:
    tokenizer = splintr.Tokenizer.from_pretrained("o200k_base")
    return lambda text: len(tokenizer.encode_ordinary(text))


@pytest.fixture(scope="module")
def revisions(count) -> list[Revision]:
    if not CORPUS.is_dir():
        pytest.skip("the corpus of real relays is not beside this checkout")
    found = []
    for path in sorted(CORPUS.glob("*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                text = json.loads(line)["text"]
                found.append(Revision(path.name.removesuffix(".jsonl.xz"), text, count(text)))
    return [revision for revision in found if revision.tokens >= DOCUMENT]


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, MIXED], ids=["English", "Chinese", "mixed"])
def test_a_hand_over_document_is_estimated_within_the_bar(text, count):
    """A relay in English, in Chinese or in both is estimated within 25 %."""
    exact = count(text)
    print(f"{exact} tokens, estimated {estimate_tokens(text)}")
    assert exact >= DOCUMENT
    assert estimate_tokens(text) == pytest.approx(exact, rel=BAR)


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS.keys())
def test_text_of_another_sort_is_estimated_within_the_bar(text, count):
    """Prose, code, data, links, emoji and other scripts stay within 25 % as well."""
    exact = count(text)
    print(f"{exact} tokens, estimated {estimate_tokens(text)}")
    assert exact >= DOCUMENT
    assert estimate_tokens(text) == pytest.approx(exact, rel=BAR)


@pytest.mark.heavy
def test_every_real_relay_is_estimated_within_the_bar(revisions):
    """Every revision of every real relay is estimated within 25 %, whatever its source."""
    errors: dict[str, list[float]] = {}
    for revision in revisions:
        errors.setdefault(revision.source, []).append(revision.error)
    for source, of_source in errors.items():
        print(
            f"{source[:44]:44} {len(of_source):4}  {min(of_source):+.1%} .. {max(of_source):+.1%}"
        )
    worst = max(abs(error) for of_source in errors.values() for error in of_source)
    print(f"{len(revisions)} revisions, worst error {worst:.1%}")
    assert worst <= BAR


@pytest.mark.heavy
def test_the_lines_of_a_real_relay_add_up_to_the_whole(revisions):
    """Estimating a relay line by line gives the estimate of the whole within 3 %."""
    drifts = []
    for revision in random.Random(0).sample(revisions, 80):
        whole = estimate_tokens(revision.text)
        drifts.append(sum(map(estimate_tokens, revision.text.split("\n"))) / whole - 1)
    print(f"lines against the whole: {min(drifts):+.1%} .. {max(drifts):+.1%}")
    assert max(map(abs, drifts)) <= 0.03


# Characters of every category, lone surrogates with them, and enough breaks to make lines.
any_text = st.text(st.characters(exclude_categories=()) | st.sampled_from("\n\n -0aA|中"))


@given(any_text)
def test_any_text_has_an_estimate(text):
    """No text is refused or negative, and one that is not blank costs at least one token."""
    assert estimate_tokens(text) >= (1 if text.strip() else 0)


def test_an_empty_text_costs_nothing():
    """Nothing is estimated as nothing."""
    assert estimate_tokens("") == 0


@given(any_text)
def test_lines_add_up_but_for_their_rounding(text):
    """Summed over its lines a text differs from the whole by at most a half per line."""
    lines = text.split("\n")
    assert abs(sum(map(estimate_tokens, lines)) - estimate_tokens(text)) <= (len(lines) + 1) / 2


@given(any_text)
def test_the_weights_of_lines_add_up_to_the_weight_of_the_text(text):
    """Before rounding nothing is lost between the lines and the whole, with or without breaks."""
    whole = pytest.approx(estimate_unrounded(text), abs=1e-6)
    assert sum(map(estimate_unrounded, text.split("\n"))) == whole
    assert sum(estimate_unrounded(line + "\n") for line in text.split("\n")) == whole


@given(any_text)
def test_a_line_costs_the_same_with_and_without_its_break(text):
    """Cutting lines with or without their breaks makes no difference."""
    assert [estimate_tokens(line + "\n") for line in text.split("\n")] == [
        estimate_tokens(line) for line in text.split("\n")
    ]


def test_a_long_text_of_one_kind_is_estimated_by_its_size():
    """Twice the text is twice the tokens, and no search runs away on a run without end."""
    for unit in ("a", "A", " ", "-", "!", "-!", "0", " 0", "\n", " \n", "Aa", "─", "中", "\ud800"):
        half, whole = (estimate_tokens(unit * (size // len(unit))) for size in (200_000, 400_000))
        assert half <= whole <= 2 * half + 1
