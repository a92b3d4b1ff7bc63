"""Policy files: YAML that people write and review <-> the policy objects.

Reading keeps the line of every key and value (`yaml_entries.py`), so that each refusal names the file, the line, the
key, the rule, the value given and the fix. Predicates are read by `where.py`; nothing in a file is ever run. Writing
gives a text that reads back as an equal policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tacit.errors import PolicyError, kind_of, leads_to_a_file, nearest, path_words
from tacit.policy import knowledge, secrets
from tacit.policy.attributes import KINDS, Attribute, Flag, Integers
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.knowledge import Known
from tacit.policy.policy import PRESENCE, Policy
from tacit.policy.secrets import Everything, Secrets
from tacit.policy.yaml_entries import LARGEST_FILE, YAML_TAG, Entry, Source, write_yaml

POLICY_KEYS: Final = ("name", "domain", "secrets", "known", "presence", "person", "per_person", "order", "item")
_FAMILIES: Final = ("everything", "attributes", "partition", "within", "pairs", "values", "records")
_FACTS: Final = ("size", "marginal", "count")
_TABLES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".pq", ".xlsx", ".jsonl")


def load_policy(path: str | Path) -> Policy:
    """Read a policy file. A policy that does not say its name is called like the file."""
    if not leads_to_a_file(path):
        rule = f"must be the path of a policy file, not {kind_of(path)}"
        raise PolicyError(rule, key="path", fix="Check the path; a policy as a text is for tc.Policy.from_yaml.")
    named = path_words(path)
    file = Path(path).name
    if file.lower().endswith(_TABLES):
        # by its name, before anything is read: what a YAML reader would complain about may be somebody's row
        raise PolicyError(
            "looks like a table, not a policy", key=named, fix=f"`tacit init {named}` drafts a policy for it."
        )
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)  # never more, whatever the path leads to
    except FileNotFoundError:
        refusal = PolicyError("must exist", key=named, fix="Check the path, or draft one: `tacit init DATA`.")
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or "not a path"
        refusal = PolicyError(f"must be a readable file ({reason.lower()})", key=named, fix="Check the path.")
    else:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as fault:
            line = content[: fault.start].count(b"\n") + 1
            refusal = PolicyError(
                "must be a text in UTF-8", key="the policy", file=file, line=line, fix="Save the file as UTF-8."
            )
        else:
            return _read(Source(text, file), name=Path(path).stem or "policy")
    raise refusal


def read_policy(text: str, *, file: str = "policy") -> Policy:
    """Read a policy from a text; `file` is what refusals call it.

    >>> read_policy("{domain: {age: {integers: [17, 90]}}, secrets: {within: {age: 5}}}").secrets
    Within(theta=Fraction(5, 1), names=('age',), metric='l1')
    """
    return _read(Source(text, file), name="policy")


def _read(source: Source, *, name: str) -> Policy:
    top = source.read()
    if not top.is_mapping:
        raise top.refuse(
            "must be a mapping", given=top.plain(), fix="Start with `domain:` and `secrets:`, without a dash."
        )
    said = top.fields(POLICY_KEYS, required=("domain", "secrets"))
    domain = read_domain(said["domain"])
    secret = read_secrets(said["secrets"], domain)
    known = read_known(said["known"], domain) if "known" in said else []
    presence = "public"
    if "presence" in said:
        presence = said["presence"].plain()
        if presence not in PRESENCE:
            raise said["presence"].refuse(
                "must be public or secret", given=presence, fix=nearest(str(presence), PRESENCE)
            )
    owners = read_owners(said)
    called = said["name"].text() if "name" in said else name
    with top.blamed(said):
        return Policy(domain, secret, known, presence, called, **owners)


def attribute_line(text: str, name: str, *, below: str = "") -> int | None:
    """Return the line in which a policy file declares an attribute; `below` is the key that the policy is under.

    >>> attribute_line("{domain: {age: flag, sex: flag}, secrets: everything}", "sex")
    1
    """
    top = Source(text, "").read()
    for key in (*([below] if below else []), "domain", name):
        parts = top.mapping() if top.is_mapping else {}
        if key not in parts:
            return None
        line = next((at.start_mark.line + 1 for at, _ in top.node.value if at.value == key), parts[key].line)
        top = parts[key]
    return int(line)


def read_owners(said: Mapping[str, Entry]) -> dict[str, Any]:
    """Read about whom the policy is: whose row it is, and how many rows of a person count, and which of them."""
    columns = {key: said[key].text() for key in ("person", "order", "item") if key in said}
    for key, column in columns.items():
        if not column:
            raise said[key].refuse("must be the name of a column", given=column, fix="Name it, or leave it out.")
    per_person = said["per_person"].whole() if "per_person" in said else 1
    if per_person < 1:
        raise said["per_person"].refuse("must be at least 1", given=per_person, fix="Leave it out for 1.")
    for key, needs_person in (("per_person", per_person > 1), ("order", "order" in columns)):
        if needs_person and "person" not in columns:
            raise said[key].refuse(
                "needs the key person",
                given=said[key].plain(),
                fix="Name the column that says whose row it is, for instance person: patient_id.",
            )
    return {**columns, "per_person": per_person}


def read_domain(entry: Entry) -> Domain:
    """Read the attributes."""
    attributes: dict[str, Attribute] = {}
    for name, said in entry.mapping().items():
        attributes[name] = _attribute(said)
        with said.blamed():
            Domain({name: attributes[name]})  # refuses the name here, where its line is known
    with entry.blamed():
        return Domain(attributes)


def _attribute(entry: Entry) -> Attribute:
    if not entry.is_mapping:
        if entry.is_list or entry.is_empty or entry.text() != Flag.kind:
            examples = [kind.example for kind in KINDS.values()]
            raise entry.refuse(
                "must say what the values are",
                given=entry.plain(),
                fix=_OTHER_WORDS.get(
                    str(entry.node.value).lower(), f"For instance {', '.join(examples[:-1])} or {examples[-1]}."
                ),
            )
        return Flag()
    said = entry.mapping()
    kinds = [kind for kind in KINDS if kind in said] or ([Integers.kind] if {"low", "high"} & set(said) else [])
    if len(kinds) != 1:
        known = [*KINDS, *(key.name for kind in KINDS.values() for key in kind.keys)]
        unknown = [name for name in said if name not in known]
        *some, last = KINDS
        raise entry.refuse(
            f"must have exactly one of {', '.join(some)} and {last}",
            given=list(said),
            fix=_nearest_kind(unknown[0]) if unknown and not kinds else "Keep one of them.",
        )
    kind = KINDS[kinds[0]]
    names = [key.name for key in kind.keys]
    places = dict(entry.fields((kind.kind, *names)))
    main = places.pop(kind.kind, None)
    if main is not None and main.is_mapping and kind.nested:
        inside = main.fields(names)
        for twice in inside.keys() & places.keys():
            raise places[twice].refuse("must not be given twice", fix=f"It stands inside {kind.kind}, too.")
        places |= inside
        main = None
    with entry.blamed(places):
        return kind.read(entry, main, places)


_OTHER_WORDS: Final = {
    **{word: f"Write {kind.example}." for kind in KINDS.values() for word in kind.other_words},
    **dict.fromkeys(("text", "texts", "string", "strings"), "Texts are listed: write {categories: [a, b, other]}."),
}


def _nearest_kind(word: str) -> str:
    return _OTHER_WORDS.get(word.lower()) or nearest(word, list(KINDS))


def read_secrets(entry: Entry, domain: Domain) -> Secrets:
    """Read one family, or a list of families (their union)."""
    listed = entry.one_or_more()
    if not listed or entry.is_empty:
        raise entry.refuse(
            "must protect something", given=entry.plain(), fix="Write everything, or a list of families."
        )
    families = [_family(said, domain) for said in listed]
    united = families[0]
    for family in families[1:]:
        united = united | family
    return united


def _keyword(entry: Entry, known: Sequence[str], example: str) -> tuple[str, Entry]:
    """Return the one key of an entry and what stands under it; a bare word is its own."""
    if not entry.is_mapping:
        if entry.is_list:
            raise entry.refuse("must not be a list in a list", given=entry.plain(), fix=f"For instance {example}.")
        word = entry.text()
        if word not in known:
            raise entry.refuse("is not a word that may stand here", given=word, fix=nearest(word, list(known)))
        return word, entry
    said = entry.fields(known)
    if len(said) != 1:
        raise entry.refuse(
            "must have exactly one key in each entry",
            given=list(said),
            fix="Start each on a line of its own with a dash.",
        )
    return next(iter(said.items()))


def _family(entry: Entry, domain: Domain) -> Secrets:
    keyword, said = _keyword(entry, _FAMILIES, "{attributes: [disease]}")
    if keyword == "everything":
        if said is not entry and not said.is_empty:
            raise said.refuse("must stand alone", given=said.plain(), fix="Write `everything` without a colon.")
        return Everything()
    if said is entry:
        raise entry.refuse("must say more", given=keyword, fix=f"For instance {_EXAMPLES[keyword]}.")
    places = said.mapping() if said.is_mapping else {}
    with said.blamed(places):
        family = _FAMILY_READERS[keyword](said, domain)
        family.check(domain)
        family.shapes(domain)
        return family


_EXAMPLES: Final = {
    "attributes": "{attributes: [disease]}",
    "partition": "{partition: {attribute: age, width: 10}}",
    "within": "{within: {age: 5}}",
    "pairs": "{pairs: [[{disease: hiv}, {disease: flu}]]}",
    "values": "{values: {disease: [hiv]}}",
    "records": '{records: "age < 18"}',
}


def _names(entry: Entry, domain: Domain) -> list[str]:
    found = []
    for said in entry.one_or_more():
        with said.blamed():
            found.append(said.text())
            domain.attribute(found[-1])
    return found


def _attributes(entry: Entry, domain: Domain) -> Secrets:
    return secrets.attributes(*_names(entry, domain))


def _partition(entry: Entry, domain: Domain) -> Secrets:
    if not entry.is_mapping:
        name = str(entry.node.value) if not entry.is_list else "age"
        raise entry.refuse(
            "must say how wide the blocks are, or list them",
            given=entry.plain(),
            fix=f"Write partition: {{attribute: {name}, width: 10}}, or blocks: [[a, b], ..] instead of width.",
        )
    said = entry.fields(("attribute", "width", "blocks"), required=("attribute",))
    if len({"width", "blocks"} & set(said)) != 1:
        raise entry.refuse("must have either width or blocks", given=sorted(said), fix="Give one of the two.")
    if said["attribute"].is_list:
        raise said["attribute"].refuse("must be one attribute", fix="Write one entry for each.")
    name = _names(said["attribute"], domain)[0]
    if "width" in said:
        widths = [domain[name].read_width(width) for width in said["width"].one_or_more()]
        return secrets.partition(name, width=widths)
    blocks: list[list[Value] | str] = []
    for block in said["blocks"].listed():
        if block.is_list:
            blocks.append([_value(value, domain[name]) for value in block.listed()])
        else:
            blocks.append(block.text())
    return secrets.partition(name, blocks=blocks)


def _within(entry: Entry, domain: Domain) -> Secrets:
    if not entry.is_mapping:
        names = [str(said.node.value) for said in entry.one_or_more() if not (said.is_list or said.is_mapping)]
        short = f"{{{(names or ['age'])[0]}: 5}}"
        if len(names) > 1:
            short = f"{{theta: 5, attributes: [{', '.join(names)}]}}"
        raise entry.refuse("must say the distance", given=entry.plain(), fix=f"Write within: {short}.")
    said = entry.mapping()
    # short: {age: 5}, also {place: 5, metric: l2}; an attribute may itself be called theta
    names = [name for name in said if name != "metric" or (len(said) == 1 and name in domain)]
    if len(names) == 1 and (names[0] in domain or names[0] not in ("theta", "attributes")):
        with said[names[0]].blamed():
            domain.attribute(names[0])
            theta = _theta(said[names[0]])
            secrets.within(theta, names[0]).check(domain)
        metric = said["metric"].text() if "metric" in said and names != ["metric"] else "l1"
        return secrets.within(theta, names[0], metric=metric)
    if len(names) > 1 and not {"theta", "attributes"} & set(names) and all(name in domain for name in names):
        raise entry.refuse(
            "must say one distance for all attributes together",
            given=entry.plain(),
            fix=f"Write {{theta: 5, attributes: [{', '.join(names)}]}}, or one entry for each.",
        )
    long = entry.fields(("theta", "attributes", "metric"), required=("theta", "attributes"))
    metric = long["metric"].text() if "metric" in long else "l1"
    return secrets.within(_theta(long["theta"]), *_names(long["attributes"], domain), metric=metric)


def _theta(entry: Entry) -> int | str:
    """Return the distance exactly as written: 5, 2.5 or 5/2."""
    if entry.node.tag in (f"{YAML_TAG}str", f"{YAML_TAG}float"):
        return str(entry.node.value).replace("_", "")
    return entry.whole()


def _pairs(entry: Entry, domain: Domain) -> Secrets:
    found = []
    for pair in entry.listed():
        sides = pair.listed()
        if len(sides) != 2:
            raise pair.refuse("must be [hidden, cover]", given=pair.plain(), fix="Give two records.")
        found.append(tuple(_side(side, domain) for side in sides))
        with pair.blamed():
            secrets.pairs(found[-1:]).check(domain)
    return secrets.pairs(found)


def _side(entry: Entry, domain: Domain) -> Any:
    if entry.is_mapping:
        found = {}
        for name, value in entry.mapping().items():
            with value.blamed():
                found[name] = _value(value, domain.attribute(name))
        return found
    if len(domain) == 1:
        return _value(entry, next(iter(domain.values())))
    parts = entry.listed()
    if len(parts) != len(domain):
        raise entry.refuse(
            f"must have the attributes {', '.join(domain)}", given=entry.plain(), fix="Write {name: value, ..}."
        )
    return [_value(part, attribute) for part, attribute in zip(parts, domain.values(), strict=True)]


def _values(entry: Entry, domain: Domain) -> Secrets:
    found = {}
    for name, listed in entry.mapping().items():
        with listed.blamed():
            attribute = domain.attribute(name)
        found[name] = [value.whole() if attribute.is_set else _value(value, attribute) for value in listed.listed()]
        with listed.blamed():
            secrets.values({name: found[name]}).check(domain)
    return secrets.values(found)


def _records(entry: Entry, domain: Domain) -> Secrets:
    return secrets.records(entry.text())


_FAMILY_READERS: Final = {
    "attributes": _attributes,
    "partition": _partition,
    "within": _within,
    "pairs": _pairs,
    "values": _values,
    "records": _records,
}


def _value(entry: Entry, attribute: Attribute) -> Value:
    """Return one value of an attribute, read as that attribute's values are meant."""
    found = attribute.read_value(entry)
    with entry.blamed():
        attribute.canonical(found)
    return found


def read_known(entry: Entry, domain: Domain) -> list[Known]:
    """Read what is public: one fact, or a list."""
    if entry.is_empty:
        return []
    return [_fact(said, domain) for said in entry.one_or_more()]


def _fact(entry: Entry, domain: Domain) -> Known:
    keyword, said = _keyword(entry, _FACTS, "{marginal: [disease]}")
    fact: Known
    with said.blamed():
        if keyword == "size":
            fact = knowledge.size(None if said is entry else said.whole())
        elif said is entry:
            example = "{marginal: [disease]}" if keyword == "marginal" else '{count: "age < 18"}'
            raise entry.refuse("must say more", given=keyword, fix=f"For instance {example}.")
        elif keyword == "marginal":
            fact = knowledge.marginal(*_names(said, domain))
        else:
            fact = knowledge.count(said.text())
        fact.check(domain)
    return fact


def policy_document(policy: Policy) -> dict[str, Any]:
    """Return the policy as plain data that JSON can hold, in the order of a policy file."""
    said = {
        "name": policy.name,
        "domain": {name: attribute.document() for name, attribute in policy.domain.attributes},
        "secrets": policy.secrets.document(),
        "known": [fact.document() for fact in policy.known],
        "presence": policy.presence,
    }
    if policy.person is not None:
        said["person"] = policy.person
    if policy.per_person != 1:
        said["per_person"] = policy.per_person
    # left out where nothing is said, so that a policy keeps its fingerprint
    if policy.order is not None:
        said["order"] = policy.order
    if policy.item is not None:
        said["item"] = policy.item
    return said


_TITLE: Final = """\
# A Tacit policy: what must stay secret, about whom, and what the world already knows.
# Everything in this file is public. `tacit check` says in plain words what it protects and what not.
"""
_NOTES: Final = {
    "domain": "# The values that a person's record may have. Declared here, never read off the data.",
    "secrets": "# What a release must not give away.",
    "known": "# What is public about the data set anyway.",
    "presence": "# Whether it is secret who is in the data: public or secret.",
    "person": "# Whose row it is: all rows with the same value here are one person.",
}


def write_policy(policy: Policy) -> str:
    """Return a policy file that reads back as an equal policy."""
    parts = [_TITLE]
    for key, value in policy_document(policy).items():
        if key in _NOTES:
            parts.append(f"\n{_NOTES[key]}\n")
        parts.append(write_yaml({key: value}))
    return "".join(parts)
