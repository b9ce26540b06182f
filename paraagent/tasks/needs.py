"""A need in plain words: what a tool's description says it does, rewritten as what somebody wants done.

"Returns detailed information about the specified cluster, including its tags." becomes "get detailed information about
a cluster". The need is the slot that a searcher asks for, and it stands word for word in the request. Descriptions that
do not open with a plain act, or that talk of the interface itself, give no need.
"""

from __future__ import annotations

import re
from itertools import pairwise

from paraagent.catalog.nouns import word_set
from paraagent.toolenv.identifiers import singular

_SENTENCE = re.compile(r"(?<=[a-z0-9)])[.:!](?:\s|$)|\n")
_OPENING = re.compile(
    r"^(?:\[[^\]]*\]\s*|(?:this|the) (?:api|operation|method|endpoint|call|action|resource|request|route|function)"
    r"(?: is used| allows you| lets you| can be used| enables you| will| may be used| provides the ability)?(?: to)?\s+"
    r"|use this (?:api|operation|method|endpoint|call|action|resource|request)? ?to\s+"
    r"|(?:allows|lets|enables|used|use it|query|api|endpoint|operation|request|ability)"
    r"(?: you| users| the user| one)? to\s+"
    r"|(?:public|simply|synchronously|asynchronously)\s+)",
    re.IGNORECASE,
)
_VERBS = {
    verb: base
    for base, verbs in {
        "get": "get gets return returns provide provides obtain obtains",
        "retrieve": "retrieve retrieves",
        "list": "list lists",
        "describe": "describe describes",
        "fetch": "fetch fetches",
        "find": "find finds",
        "search": "search searches",
        "show": "show shows display displays",
        "read": "read reads",
        "query": "query queries",
        "check": "check checks",
        "view": "view views",
        "count": "count counts",
        "calculate": "calculate calculates compute computes",
        "estimate": "estimate estimates",
        "look up": "lookup",
        "load": "load loads",
        "quote": "quote quotes",
        "track": "track tracks",
        "compare": "compare compares",
        "convert": "convert converts",
        "find out": "tells",
    }.items()
    for verb in verbs.split()
}
_PLAIN = dict.fromkeys(["retrieve", "describe", "fetch", "show", "read", "view", "find", "look up", "query"], "get")
"""Verbs that say no more than that something is to be looked up."""
_CHANGES = (
    "create add insert register post upload publish book submit schedule send subscribe invite launch reserve order "
    "update modify set change edit replace rename move enable disable activate deactivate assign attach detach "
    "associate disassociate tag untag reset restore approve reject merge promote pause resume suspend confirm complete "
    "close reopen delete remove terminate cancel revoke unsubscribe release archive start stop restart reboot block "
    "unblock mute unmute follow unfollow lock unlock mark accept decline dismiss export import clone copy share pin"
)
_LOOKING_UP = {
    f"{form} {particle}": base
    for form_of, particles, base in [
        ("look", "up at for into over through", "get"),
        ("pull", "up", "get"),
        ("bring", "up", "get"),
        ("call", "up", "get"),
        ("read", "out off back in", "get"),
        ("get", "back", "get"),
        ("return", "back", "get"),
        ("find", "out", "find out"),
        ("list", "out", "list"),
        ("check", "on", "check on"),
    ]
    for form in (form_of, f"{form_of}s")
    for particle in particles.split()
}
"""Verbs of two words that read; `look up` is no looking."""
_TWO_WORDS = (
    "set up, sign up, sign in, sign out, log in, log out, log off, check in, check out, roll back, roll out, "
    "carry out, bring up, turn on, turn off, switch on, switch off, switch over, fail over, power on, power off, "
    "shut down, scale up, scale down, clean up, opt in, opt out, back up, start up, close out, tear down, take down"
)
"""Verbs of two words that change something."""
_ACTING = {
    f"{form} {particle}": f"{verb} {particle}"
    for verb, particle in map(str.split, _TWO_WORDS.split(", "))
    for form in (verb, f"{verb}s", f"{verb}es", verb.removesuffix("y") + "ies")
}
_PARTICLES = frozenset(key.split()[1] for key in _LOOKING_UP | _ACTING)
_WRITING = {form: verb for verb in _CHANGES.split() for form in (verb, f"{verb}s", f"{verb}es")}
_WRITING |= {verb.removesuffix("y") + "ies": verb for verb in _CHANGES.split() if verb.endswith("fy")}
_SECOND = {form: verb for form, verb in (_VERBS | _WRITING).items() if form.endswith("s") and len(form) > 3} | {
    "leaves": "leave",
    "keeps": "keep",
    "makes": "make",
    "gives": "give",
}
_AND_THEN = re.compile(rf"\band ({'|'.join(_SECOND)}) (?=(?:the|an?|all|its?|them|any|others)\b)")
"""A second act: `and leaves the others`."""
_AND_BOTH = re.compile(r"^and ([a-z]+s) (?=(?:the|an?|all|its?|them|any|others)\b)")
"""Two acts on one thing: `searches and browses the shelves`."""
_CLAUSE = re.compile(
    r"\s*(?:[;,—–(\[]|\s-\s|\s(?:that|which|including|based on|using|where|when|whose|so that|in order to|"
    r"specified by|associated with (?:the|a|an|your) (?:specified|given)|matching (?:the|a)|if|as well as|"
    r"along with|given (?:its|the|an?)|filtered|sorted|ordered|because|while|through|via|as|such as|within the scope|"
    r"by (?:its|the|their|an?|using|specifying|providing|passing|(?:external|unique|ext) ?ids?|"
    r"ids?|uuids?|names?|keys?|slugs?)|"
    r"with (?:the |a )?(?:pagination|given|specified|provided|id|matching|name|its)|for (?:use|which)|"
    r"identified|owned|(?:and|or) (?:returns?|gets?|retrieves?)|"
    r"in the (?:uri|url|path|body|query))(?=\s|$)).*$",
    re.IGNORECASE | re.DOTALL,
)
_QUALIFIED = re.compile(
    r"(?:\b(the|an?|one|your) )?\b(?:specified|given|provided|supplied|requested|particular|specific|single|selected|"
    r"existing|indicated|named|certain) (\w+(?: \w+)?)",
    re.IGNORECASE,
)
_PLURAL = re.compile(r"\b(?:one|zero) or more (?:of )?(?:the |your |my )?|\bmultiple ", re.IGNORECASE)
_SHELL = re.compile(
    r"^(?:(?:all|some|the|a|an|any|more|of) )*"
    r"(?:(?:detailed|details?|general|basic|summary|specific|current|brief|additional|further|full) )*"
    r"(?:information|info|details?|descriptions?|metadata|data|summary|properties|attributes|list|listing|overview|"
    r"representation)(?: and (?:status|details|metadata|information))?"
    r" (?:about|of|for|on|regarding|concerning) (?:all (?:of )?)?",
    re.IGNORECASE,
)
"""`detailed information about`, `a list of`: what documentation says before it says what a person wants."""
_TITLED = word_set(
    """
    account accounts address alert article asset balance benefit billing board bundle campaign card category channel
    client comment company configuration contact contract customer customers data device devices document domain
    domains endpoint energy entry event events file folder funding game group health image images instance invoice
    item job list location member message meter order orders organization page payment payments plan player policy
    post product products profile profiles project projects report reports resource role rule service set setting
    settings site status store subscription subscriptions tag task tasks team template templates ticket topic topics
    transaction transactions type types user users version video videos webhook workspace
    """
)
"""Words that documentation likes to capitalise."""
_THING = re.compile(r"\b(an?|the|one) ([A-Z][a-z]+)(?=$| (?:of|for|in|on|to|from|with|by|and)\b)")
"""`a Rollout of`: a kind of thing that documentation writes like a name."""
_HOUSES = frozenset({"Amazon", "Google", "Microsoft", "Azure", "Apple"})
_WHOLE = re.compile(r"\b(?:paginated|paged|full|complete|entire) (?=list\b)", re.IGNORECASE)
_BARE_ENDING = re.compile(
    r"\s+(?:of|for|in|to|with|by|from|and|or|the|an?|on|at|about|be|is|are|one|specified|given|any|all|its|id|this|available)$",
    re.IGNORECASE,
)
_UNCLEAR = re.compile(
    r"(?-i:[a-z][A-Z])|[_<>{}()\[\]`|\\/=*#@$%&+\"“”]|\b(?:api|apis|json|http|https|url|endpoint|request|response|parameters?|"
    r"objects?|deprecated|operation|method|calls?|you|see|this|these|xml|field|fields|schema|null|"
    r"true|false|array|payload|filtered|paginated|resource|resources|we|it|sub|legacy|v\d|internal|ids?|test|preview|beta|alpha)\b",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"\b(an?) ([A-Za-z][a-z]+)")
_TAKES_A = re.compile(
    r"(?!hour|honou?r|heir)[b-df-hj-np-tv-z](?:[aeiouylrhw]|(?<=s)[ckmnpt]|(?<=s)qu)"
    r"|u(?:ni[^mn]|s[aeiu]|til|rl|uid|k\b)|eu|one\b|once\b",
    re.IGNORECASE,
)
_TAKES_AN = re.compile(r"[aeiou]|hour|honou?r|heir", re.IGNORECASE)
"""By their sound; of the other words (`ssh key`, `xpub`) nobody knows how they are said."""
_BROKEN = re.compile(r"\ban? (?:of|one of|the|an?|in|for|to)\b|\b[a-z]+(?:gorie|itie|ncie)\b", re.IGNORECASE)
"""What a description lost a word or a letter of."""
_CONTENT = re.compile(r"[a-z]{3,}")
_EMPTY = frozenset(
    [
        "get",
        "list",
        "retrieve",
        "describe",
        "fetch",
        "find",
        "search",
        "show",
        "read",
        "view",
        "the",
        "details",
        "detail",
        "information",
        "info",
        "about",
        "for",
        "from",
        "all",
        "one",
        "and",
        "of",
        "data",
        "some",
        "with",
        "single",
        "list",
        "specific",
        "item",
        "items",
        "record",
        "records",
        "metadata",
        "properties",
        "property",
        "value",
        "values",
        "result",
        "results",
    ]
)
_FEWEST, _MOST = 3, 13


def need_of(description: str, *, writing: bool = False) -> str | None:
    """The need in lower case without a full stop, 3 to 13 words; None where the description gives none.

    A description must open with an act of reading, or, where `writing` is set, with one that changes something.
    """
    text = _SENTENCE.split(description.strip(), maxsplit=1)[0].strip().rstrip(".")
    previous = None
    while previous != text:
        previous, text = text, _OPENING.sub("", text, count=1)
    verb, rest = _verb_of(text, writing)
    if verb is None or not rest:
        return None
    rest = _WHOLE.sub("", _PLURAL.sub("the ", _QUALIFIED.sub(_with_article, rest)))
    rest = _CLAUSE.sub("", " " + rest).strip()
    rest = re.sub(r"\byour\b", "my", re.sub(r"\byou have\b", "I have", rest, flags=re.IGNORECASE), flags=re.IGNORECASE)
    rest = re.sub(r"^(?:back|up to date|out|up to (?:a maximum of )?\d+)\s+", "", rest)
    rest = _AND_BOTH.sub(lambda match: f"and {singular(match[1])} ", rest)
    rest = _ARTICLE.sub(_right_article, _AND_THEN.sub(lambda match: f"and {_SECOND[match[1]]} ", rest))
    previous = None
    while previous != rest:
        previous, rest = rest, _BARE_ENDING.sub("", rest)
    if verb == "list":
        rest = rest.removeprefix("of ")
    if not writing:
        shell = _SHELL.match(rest)
        rest = rest[shell.end() :] if shell else rest
        verb = "list" if shell and re.search(r"\blist", shell[0], re.IGNORECASE) else _PLAIN.get(verb, verb)
    need = f"{verb} {_THING.sub(lambda match: f'{match[1]} {match[2].lower()}', _lowered(rest))}"
    words = need.split()
    content = [word for word in _CONTENT.findall(need.lower()) if word not in _EMPTY]
    stuttered = any(singular(one.lower()) == singular(next_.lower()) for one, next_ in pairwise(words))
    if not _FEWEST <= len(words) <= _MOST or not content or stuttered or _UNCLEAR.search(need) or _BROKEN.search(need):
        return None
    return need


def _verb_of(text: str, writing: bool) -> tuple[str | None, str]:
    """The verb that a description opens with, of one word or of two, and what follows it; None where it is none."""
    first, _, rest = text.partition(" ")
    second, _, after = rest.partition(" ")
    particle = second.lower()
    if particle in _PARTICLES and not re.match(r"up to\b", rest, re.IGNORECASE):
        pair = f"{first.lower()} {particle}"
        verb = (_ACTING if writing else _LOOKING_UP).get(pair)
        if verb is not None:
            return verb, after
        if pair in _ACTING or particle == "up":
            return None, ""
    return (_WRITING if writing else _VERBS).get(first.lower()), rest


def _right_article(match: re.Match[str]) -> str:
    """`an user` -> `a user`, `a event` -> `an event`."""
    if _TAKES_A.match(match[2]):
        return f"a {match[2]}"
    return f"an {match[2]}" if _TAKES_AN.match(match[2]) else match[0]


def _with_article(match: re.Match[str]) -> str:
    """`the specified cluster` -> `a cluster`, `the given users` -> `the users`."""
    article: str | None = match[1]
    phrase: str = match[2]
    if not article:
        return phrase
    noun = phrase.split()[0]
    if noun.endswith("s") and not noun.endswith(("ss", "us", "is")):
        return f"the {phrase}"
    if noun == "one":
        return phrase
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {phrase}"


def _lowered(text: str) -> str:
    """Words that stand capitalised for no reason in lower case; acronyms and names within a sentence stay."""
    text = " ".join(word.lower() if word.lower() in _TITLED and word.istitle() else word for word in text.split())
    first, _, rest = text.partition(" ")
    keep = (
        first in _HOUSES or (len(first) > 1 and first.isupper()) or any(character.isupper() for character in first[1:])
    )
    return f"{first if keep else first.lower()} {rest}".strip()
