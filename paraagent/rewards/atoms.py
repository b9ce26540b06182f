"""Does a text state a value? Tolerant of form and of nothing else.

Form is: case, thousands separators, currency signs, written or ISO dates, yes/no for true/false, and 12.50 for 12.5.
A value counts only as a whole: 12 is not stated by 123, 12.7 or -12, nor `prod` by `prod-eu`.
"""

from __future__ import annotations

import calendar
import re
from decimal import Decimal, InvalidOperation

_MONTHS = [name.casefold() for name in calendar.month_name[1:]]
_MONTH = "|".join(rf"{month[:3]}(?:{month[3:]})?" if len(month) > 3 else month for month in _MONTHS) + "|sept"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_MONTH_FIRST = re.compile(rf"\b({_MONTH})\.? {_DAY},? (\d{{4}})\b")
_DAY_FIRST = re.compile(rf"\b{_DAY}(?: of)? ({_MONTH})\.?,? (\d{{4}})\b")
_ISO_TIME = re.compile(
    r"\b(\d{4}-\d\d-\d\d)(?:t|,? at |,? )(\d\d:\d\d)(:\d\d)?(?:\.0+(?!\d))?(?: ?(?:z|utc|gmt)\b|[+-]00:?00\b)?"
)
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_CURRENCY = re.compile(r"[$€£¥₹]")
_NUMBER = re.compile(r"(?<![\w.])(?<!\d[,:/])(?<!\w[-])[-−]?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?(?!\w|[.,:/-]\d)")
_WORDS = {True: ("yes", "true"), False: ("no", "false")}


def states(text: str, value: str | int | float | bool) -> bool:
    """Whether `text` states `value`."""
    if isinstance(value, str) and value.strip().casefold() in ("true", "false"):
        value = value.strip().casefold() == "true"
    if isinstance(value, bool):
        return any(_holds(text.casefold(), word) for word in _WORDS[value])
    if isinstance(value, str):
        plain, wanted = text.casefold(), value.strip().casefold()
        return _holds(plain, wanted) or _holds(_normal(plain), _normal(wanted))
    wanted_number = Decimal(repr(value))
    return any(_number(match[0]) == wanted_number for match in _NUMBER.finditer(_normal(text.casefold())))


def _holds(text: str, wanted: str) -> bool:
    """Whether `wanted` stands in `text` as a whole; an empty text stands nowhere."""
    if not wanted:
        return False
    before = r"(?<!\w)(?<!\w-)" if _wordy(wanted[0]) else ""
    after = r"(?!\w|[-.@]\w)" if _wordy(wanted[-1]) else ""
    before += r"(?<!\d[.,:/])" if wanted[0].isdigit() else ""
    after += r"(?![,:/]\d)" if wanted[-1].isdigit() else ""
    return re.search(before + re.escape(wanted) + after, text) is not None


def _wordy(character: str) -> bool:
    return character.isalnum() or character == "_"


def _normal(text: str) -> str:
    """Case-folded text in one form: ISO dates, `date time` without UTC's sign, no thousands separators, no currency."""
    text = _MONTH_FIRST.sub(lambda match: _iso(match[3], match[1], match[2]), text)
    text = _DAY_FIRST.sub(lambda match: _iso(match[3], match[2], match[1]), text)
    text = _ISO_TIME.sub(lambda match: f"{match[1]} {match[2]}{match[3] or ':00'}", text)
    text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    return _CURRENCY.sub("", text)


def _iso(year: str, month: str, day: str) -> str:
    number = next(index for index, name in enumerate(_MONTHS, 1) if name.startswith(month[:3]))
    return f"{year}-{number:02d}-{int(day):02d}"


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text.replace("−", "-"))
    except InvalidOperation:
        return None
