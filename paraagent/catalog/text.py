"""Text as people wrote it (HTML, Markdown, entities, line breaks) made into one clean line; names made into words.

Every description of every field passes through `clean`, so the usual case, plain text, is decided by one quick
search for characters that could be markup, and only the rest is worked on. What looks like a tag but is a
placeholder, such as `<bucket-name>`, becomes `{bucket-name}`: no reader and no checker mistakes it for HTML, and the
hint stays.
"""

from __future__ import annotations

import html
import re
import unicodedata

_SUSPECT = re.compile("[<&`*\\[\\\\|~\t-\r\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
"""Any character that may be markup, or white space other than a blank: one set, which is searched several times as fast
as alternatives."""
_BLOCK_STARTS = frozenset("#>|-*+=_")
_LINE_STARTS = frozenset(" #>-=")
_DROPPED = re.compile(r"<!--.*?-->|<[!?][^>]*>|<(script|style)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_INLINE = re.compile(
    r"</?(?:a|abbr|b|big|cite|code|del|dfn|em|font|i|ins|kbd|mark|q|s|samp|small|span|strong|strike|sub|sup|tt|u|var)"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_BLOCK = re.compile(
    r"</?(?:article|aside|blockquote|br|body|button|caption|caution|center|col|dd|details|div|dl|dt|figure|footer|form|h[1-6]|head"
    r"|header|hr|html|iframe|img|important|input|li|link|main|meta|nav|note|ol|option|p|para|pre|section|select|summary|svg|table"
    r"|tbody|td|tfoot|th|thead|title|tr|ul|video|wbr)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_COMMON = (
    ("<p>", " "),
    ("</p>", " "),
    ("<code>", ""),
    ("</code>", ""),
    ("<br>", " "),
    ("<b>", ""),
    ("</b>", ""),
    ("<i>", ""),
    ("</i>", ""),
    ("<li>", " "),
    ("</li>", " "),
    ("<ul>", " "),
    ("</ul>", " "),
    ("<note>", " "),
    ("</note>", " "),
    ("</a>", ""),
)
"""Tags that most marked-up texts are made of: replacing them as plain strings is five times as fast as matching."""
_ANCHOR = re.compile(r"<a [^<>]*>")
_AUTOLINK = re.compile(r"<((?:https?|ftp|mailto):[^<>\s]*)>")
_ANGLES = re.compile(r"<(/?)([a-zA-Z][^<>]*?)\s*/?>")
_CLOSING = re.compile(r"</[^<>]*>")
_TORN_TAG = re.compile(r"<[^<>]*$")

_FENCE = re.compile(r"(?:```|~~~)[\w-]*")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+[\"'][^\"']*[\"'])?\)|\[[^\[\]]*\])")
_TABLE_RULE = re.compile(r"^[ \t]*\|?[ \t:|-]*-{2,}[ \t:|-]*$", re.MULTILINE)
_LINE_MARK = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[*_=-]{3,}[ \t]*$|\|)", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*[*+][ \t]+", re.MULTILINE)
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1", re.DOTALL)
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![\w*])")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|<>~-])")

_WORD = re.compile(r"IPv\d|[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_SENTENCE_END = re.compile(r"[.!?](?=\s)")


def clean(text: object, limit: int) -> str:
    """Plain text on one line, at most `limit` characters, without tags, Markdown or entities. Not a string: empty."""
    if not isinstance(text, str):
        return ""
    if len(text) > limit * 4:
        text = _TORN_TAG.sub("", text[: limit * 4])
    if _SUSPECT.search(text) or "  " in text or "__" in text or text[:1] in _LINE_STARTS or text[-1:] == " ":
        text = _plain(text)
    return text if len(text) <= limit else _cut(text, limit)


def _plain(text: str) -> str:
    if "&" in text:
        text = html.unescape(html.unescape(text))  # some texts were escaped twice
    if "<" in text:
        text = _without_tags(text)
    if "`" in text or "~~~" in text:
        text = _FENCE.sub(" ", text).replace("`", "")
    if "[" in text:
        text = _LINK.sub(r"\1", text)
    if "\n" in text or text.lstrip()[:1] in _BLOCK_STARTS:
        text = _TABLE_RULE.sub("", text)
        text = _LINE_MARK.sub("", text)
        text = _BULLET.sub("- ", text)
    if "**" in text or "__" in text:
        text = _STRONG.sub(r"\2", text)
    if "*" in text:
        text = _EMPHASIS.sub(r"\1", text)
    if "\\" in text:
        text = _ESCAPE.sub(r"\1", text)
        if "<" in text:
            text = _without_tags(text)
    return " ".join(text.replace("\x00", "").split())


def _without_tags(text: str) -> str:
    if "<a " in text:
        text = _ANCHOR.sub("", text)
    for tag, put in _COMMON:
        text = text.replace(tag, put)
        if "<" not in text:
            return text
    while "<" in text:
        before = text
        text = _DROPPED.sub(" ", text)
        text = _AUTOLINK.sub(r"\1", text)
        text = _ANGLES.sub(_placeholder, _INLINE.sub("", _BLOCK.sub(" ", text)))
        text = _CLOSING.sub(" ", text)
        if text == before:
            break
    return text


def _placeholder(match: re.Match[str]) -> str:
    closing, inner = match[1], match[2]
    return "" if closing or "=" in inner else "{" + inner + "}"


def _cut(text: str, limit: int) -> str:
    """End at a sentence where one ends in the second half, else at a word."""
    head = text[:limit]
    ends = [match.end() for match in _SENTENCE_END.finditer(head, limit // 2)]
    if ends:
        return head[: ends[-1]]
    head = text[: limit - 1]
    space = head.rfind(" ", limit // 2)
    return (head[:space] if space > 0 else head).rstrip(" ,;:(-") + "…"


def words(name: str) -> list[str]:
    """`DescribeDBInstances`, `calendar.events.quickAdd`, `/v1/customers/{id}` as lower-case ASCII words."""
    if not name.isascii():
        name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return [word.lower() for word in _WORD.findall(name)]


def humanise(name: str) -> str:
    """`DescribeInstances` as `Describe instances`."""
    return " ".join(words(name)).capitalize()
