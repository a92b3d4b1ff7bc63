"""Policy files: reading and writing them as YAML, and their JSON schema.

Each refusal names the file, the line, the key, the rule, the value given and the fix (`yaml_entries.py`). `where.py`
reads predicates; nothing in a file is ever run. A written policy reads back as an equal policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tacit.errors import PolicyError, kind_of, leads_to_a_file, nearest, path_words
from tacit.policy.adversary import ADVERSARY
from tacit.policy.application import KEYS as APPLICATION_KEYS
from tacit.policy.application import Application
from tacit.policy.attributes import KINDS, Attribute, Flag, Integers
from tacit.policy.domain import Domain
from tacit.policy.keys import POSITIVE, SCHEMA_DRAFT, TEXT, Key, Keys, Schema, or_variables, together
from tacit.policy.knowledge import FACTS, Known, KnownMarginal
from tacit.policy.policy import PRESENCE, Policy
from tacit.policy.secrets import FAMILIES, Attributes, Secrets, SomePeople
from tacit.policy.where import where
from tacit.policy.yaml_entries import YamlEntry, YamlSource, write_yaml


def load_policy(path: str | Path) -> Policy:
    """Read a policy file. A policy without a name gets that of the file."""
    if not leads_to_a_file(path):
        rule = f"must be the path of a policy file, not {kind_of(path)}"
        raise PolicyError(rule, key="path", fix="Check the path; a policy as a text is for tc.Policy.from_yaml.")
    source = YamlSource.open(
        path,
        file=Path(path).name,
        whole="the policy",
        refusal=PolicyError,
        kind="a policy",
        if_table=f"`tacit init {path_words(path)}` drafts a policy for it.",
        if_missing="Check the path, or draft one: `tacit init DATA`.",
    )
    return _read(source.read(), name=Path(path).stem or "policy")


def read_policy(text: str, *, file: str = "policy") -> Policy:
    """Read a policy from a text; `file` is its name in refusals.

    >>> read_policy("{domain: {age: {integers: [17, 90]}}, secrets: {within: {age: 5}}}").secrets
    Within(theta=Fraction(5, 1), names=('age',), metric='l1')
    """
    return _read(YamlSource(text, file).read(), name="policy")


def policy_below(entry: YamlEntry) -> Policy:
    """Read the policy of a job or of monitors: written below the key, or in a file that is named there."""
    if entry.is_mapping:
        # the same lines, but errors in a policy are PolicyErrors in every file
        return _read(YamlEntry(entry.node, entry.path, replace(entry.source, refusal=PolicyError)), name="policy")
    path = entry.file_path()
    if not path.is_file():
        fix = f"Check the path; it is relative to {entry.source.whole.removesuffix(' file')} file."
        raise entry.refuse("must be a policy file", given=entry.text(), fix=fix)
    return load_policy(path)


def _read(top: YamlEntry, *, name: str) -> Policy:
    if not top.is_mapping:
        fix = "Start with `domain:` and `secrets:`, without a dash."
        raise top.refuse("must be a mapping", given=top.plain(), fix=fix)
    entries = POLICY_KEYS.entries(top)
    domain = read_domain(entries["domain"])
    secrets = read_secrets(entries["secrets"], domain)
    known = read_known(entries["known"], domain) if "known" in entries else []
    others = {"name": name, **POLICY_KEYS.read(entries)}
    for key, needs_person in (("per_person", others.get("per_person", 1) > 1), ("order", "order" in others)):
        if needs_person and "person" not in others:
            fix = "Name the column that says whose row it is, for instance person: patient_id."
            raise entries[key].refuse("needs the key person", given=entries[key].plain(), fix=fix)
    if "applications" in entries:
        others["applications"] = _applications(entries["applications"], domain)
    with top.blamed(entries):
        return Policy(domain, secrets, known, **others)


def _applications(entry: YamlEntry, domain: Domain) -> list[Application]:
    """Read who may ask."""
    found = []
    for name, one in entry.mapping().items():
        places = APPLICATION_KEYS.entries(one)
        given: dict[str, Any] = {
            key: [part.text() for part in places[key].one_or_more()] for key in _SEVERAL if key in places
        }
        given |= {"purpose": places["purpose"].text()}
        if "until" in places:
            given["until"] = places["until"].plain()  # YAML takes a day for a date
        if "secrets" in places:
            given["secrets"] = read_secrets(places["secrets"], domain)
        with one.blamed(places):
            found.append(Application(name, **given))
            found[-1].check(domain, list(entry.mapping()))
    return found


def attribute_line(text: str, name: str, *, below: str = "") -> int | None:
    """Return the line in which a policy file declares an attribute; `below` is the key above the policy.

    >>> attribute_line("{domain: {age: flag, sex: flag}, secrets: everything}", "sex")
    1
    """
    top = YamlSource(text, "").read()
    for key in (*([below] if below else []), "domain", name):
        parts = top.mapping() if top.is_mapping else {}
        if key not in parts:
            return None
        line = next((at.start_mark.line + 1 for at, _ in top.node.value if at.value == key), parts[key].line)
        top = parts[key]
    return int(line)


def _presence(entry: YamlEntry) -> Any:
    presence = entry.plain()
    if presence not in PRESENCE:
        raise entry.refuse("must be public or secret", given=presence, fix=nearest(str(presence), PRESENCE))
    return presence


def _column(entry: YamlEntry) -> str:
    name = entry.text()
    if not name:
        raise entry.refuse("must be the name of a column", given=name, fix="Name it, or leave it out.")
    return name


def _at_least_one(entry: YamlEntry) -> int:
    number = entry.whole()
    if number < 1:
        raise entry.refuse("must be at least 1", given=number, fix="Leave it out for 1.")
    return number


def read_domain(entry: YamlEntry) -> Domain:
    """Read the attributes."""
    attributes: dict[str, Attribute] = {}
    for name, value in entry.mapping().items():
        attributes[name] = _attribute(value)
        with value.blamed():
            Domain({name: attributes[name]})  # refuses the name here, with its line
    with entry.blamed():
        return Domain(attributes)


def _attribute(entry: YamlEntry) -> Attribute:
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
    entries = entry.mapping()
    kinds = [kind for kind in KINDS if kind in entries] or ([Integers.kind] if {"low", "high"} & set(entries) else [])
    if len(kinds) != 1:
        known = [*KINDS, *(key.name for kind in KINDS.values() for key in kind.keys)]
        unknown = [name for name in entries if name not in known]
        *some, last = KINDS
        fix = "Keep one of them."
        if unknown and not kinds:
            fix = _OTHER_WORDS.get(unknown[0].lower()) or nearest(unknown[0], list(KINDS))
        raise entry.refuse(f"must have exactly one of {', '.join(some)} and {last}", given=list(entries), fix=fix)
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


def read_secrets(entry: YamlEntry, domain: Domain) -> Secrets:
    """Read one family, or a list of families (their union)."""
    listed = entry.one_or_more()
    if not listed or entry.is_empty:
        fix = "Write everything, or a list of families."
        raise entry.refuse("must protect something", given=entry.plain(), fix=fix)
    families = [_family(one, domain) for one in listed]
    united = families[0]
    for family in families[1:]:
        united = united | family
    return united


def _keyword(
    entry: YamlEntry, known: Sequence[str], example: str, *, beside: tuple[str, ...] = ()
) -> tuple[str, YamlEntry]:
    """Return the only key of an entry (apart from those in `beside`) with its value; a bare word is both."""
    if not entry.is_mapping:
        if entry.is_list:
            raise entry.refuse("must not be a list in a list", given=entry.plain(), fix=f"For instance {example}.")
        word = entry.text()
        if word not in known:
            raise entry.refuse("is not a word that may stand here", given=word, fix=nearest(word, list(known)))
        return word, entry
    entries = {key: value for key, value in entry.fields((*known, *beside)).items() if key not in beside}
    if len(entries) != 1:
        fix = "Start each on a line of its own with a dash."
        raise entry.refuse("must have exactly one key in each entry", given=list(entries), fix=fix)
    return next(iter(entries.items()))


def _family(entry: YamlEntry, domain: Domain) -> Secrets:
    keyword, value = _keyword(entry, list(FAMILIES), Attributes.example, beside=(SomePeople.keyword,))
    kind = FAMILIES[keyword]
    if value is entry:
        if kind.example:
            raise entry.refuse("must say more", given=keyword, fix=f"For instance {kind.example}.")
        return kind()
    places = value.mapping() if value.is_mapping else {}
    with value.blamed(places):
        family = kind.read(value, domain)
        family.check(domain)
        family.shapes(domain)
    people = entry.mapping().get(SomePeople.keyword)
    if people is None:
        return family
    with people.blamed():
        some = family.only_for(where(people.text()))
        some.check(domain)
        return some


def read_known(entry: YamlEntry, domain: Domain) -> list[Known]:
    """Read what is public: one fact, or a list."""
    if entry.is_empty:
        return []
    return [_fact(one, domain) for one in entry.one_or_more()]


def _fact(entry: YamlEntry, domain: Domain) -> Known:
    keyword, value = _keyword(entry, list(FACTS), KnownMarginal.example)
    kind = FACTS[keyword]
    with value.blamed():
        if value is entry and not kind.alone:
            raise entry.refuse("must say more", given=keyword, fix=f"For instance {kind.example}.")
        fact = kind() if value is entry else kind.key.reader(value, domain)
        fact.check(domain)
    return fact


# ---- keys, and the JSON schema that follows from them ---------------------------------------------------------------

_SEVERAL: Final = ("asks", "sees", "key", "coalition")
PERSON: Final = Key("person", TEXT, "The column that says whose row it is.", "every row is one person", read=_column)
PER_PERSON: Final = Key(
    "per_person",
    {**POSITIVE, "default": 1},
    "How many rows of one person count, of those that fit the domain. Needs `person`.",
    "1",
    read=_at_least_one,
)
ORDER: Final = Key(
    "order",
    TEXT,
    "The column by which the first rows of a person count; must be public. Needs `person`.",
    "rows are chosen as at random, always the same ones",
    read=_column,
)
ITEM: Final = Key(
    "item",
    TEXT,
    "The column of items in a table with one row for each person and item.",
    "the one called like the set",
    read=_column,
)
POLICY_KEYS: Final = Keys(
    Key("name", {"type": "string"}, "What reports call the policy.", "the name of the file"),
    Key(
        "domain",
        {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"type": "string", "pattern": r"^[^\[\]`\r\n]+$"},
            "additionalProperties": {"$ref": "#/$defs/attribute"},
        },
        "The columns and the values they may have. Declared, never read off the data.",
        read=together,
        required=True,
    ),
    Key(
        "secrets",
        {"$ref": "#/$defs/families"},
        "What a release must not give away: one family of secrets, or the union of several.",
        read=together,
        required=True,
    ),
    Key(
        "known",
        {"anyOf": [{"$ref": "#/$defs/fact"}, {"type": "array", "items": {"$ref": "#/$defs/fact"}}, {"type": "null"}]},
        "What is public about the data set anyway, one fact or a list. It couples people and raises the noise.",
        "nothing",
        read=together,
    ),
    Key(
        "presence",
        {"enum": list(PRESENCE), "default": "public"},
        "`public`, or `secret`: who is in the data is a secret, and so how many there are.",
        "`public`; `secret` with `taking_part`",
        read=_presence,
    ),
    ADVERSARY,
    PERSON,
    PER_PERSON,
    ORDER,
    ITEM,
    Key(
        "applications",
        {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": APPLICATION_KEYS.schema("Who may ask for what, for which purpose and until when."),
        },
        "Who may ask for what, by name; nobody else is shown anything.",
        "everybody may ask for everything",
        read=together,
    ),
)


def policy_schema() -> Schema:
    """Return the JSON schema (draft 2020-12) of policy files, for editors that complete and check while typing.

    A schema cannot know which attributes a domain has, so the reader refuses more: names and values that the domain
    does not have, predicates that cannot be read, and what YAML would silently change.
    """
    return {
        "$schema": SCHEMA_DRAFT,
        "title": "Tacit policy",
        **POLICY_KEYS.schema("What must stay secret, about whom, and what the world already knows."),
        "if": {"properties": {"per_person": {"minimum": 2}}, "required": ["per_person"]},
        "then": {"required": ["person"]},
        "dependentRequired": {"order": ["person"]},
        "$defs": {
            "attribute": {
                "anyOf": [schema for kind in KINDS.values() for schema in kind.schemas()],
                "description": "The values of one column.",
            },
            "family": {
                "anyOf": [schema for family in FAMILIES.values() for schema in family.schemas()],
                "description": "A family of secrets.",
            },
            "families": {
                "anyOf": [
                    {"$ref": "#/$defs/family"},
                    {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/family"}},
                ],
                "description": "One family of secrets, or several.",
            },
            "fact": {
                "anyOf": [schema for fact in FACTS.values() for schema in fact.schemas()],
                "description": "Something public about the data set.",
            },
        },
    }


POLICY: Final = Key(
    "policy",
    {"anyOf": [TEXT, {"$ref": "#/$defs/policy"}]},
    "A policy file, relative to this file, or the policy itself.",
    read=lambda entry: policy_below(entry),
    required=True,
)


def schema_with_policy(title: str, description: str, keys: Keys, definitions: Schema) -> Schema:
    """Return the JSON schema of a file that has a policy, or names one, below the key `policy`.

    Values may have variables, but for those of the policy (`jobs/variables.py`).
    """
    policy = policy_schema()
    shared = policy.pop("$defs")
    del policy["$schema"]
    return {
        "$schema": SCHEMA_DRAFT,
        "title": title,
        **or_variables(keys.schema(description)),
        "$defs": {**shared, "policy": policy, **or_variables(definitions)},
    }


# ---- writing --------------------------------------------------------------------------------------------------------


def policy_document(policy: Policy) -> dict[str, Any]:
    """Return the policy as plain data that JSON can hold, in the order of a policy file."""
    # left out if they are not given, so that a policy keeps its fingerprint
    owners = {name: getattr(policy, name) for name in ("person", "per_person", "order", "item")}
    applications = {one.name: one.document() for one in policy.applications}
    return {
        "name": policy.name,
        "domain": {name: attribute.document() for name, attribute in policy.domain.attributes},
        "secrets": policy.secrets.document(),
        "known": [fact.document() for fact in policy.known],
        "presence": policy.presence,
        **({"adversary": policy.adversary.document()} if policy.adversary.is_named else {}),
        **{name: value for name, value in owners.items() if value != getattr(Policy, name)},
        **({"applications": applications} if applications else {}),
    }


_TITLE: Final = """\
# A Tacit policy: what must stay secret, about whom, and what the world already knows.
# Everything in this file is public. `tacit check` says in plain words what it protects and what not.
"""
_NOTES: Final = {
    "domain": "# The values that a person's record may have. Declared here, never read off the data.",
    "secrets": "# What a release must not give away.",
    "known": "# What is public about the data set anyway.",
    "presence": "# Whether it is secret who is in the data: public or secret.",
    "adversary": "# Against whom, where what is known ties people together.",
    "applications": "# Who may ask for what, and why. Nobody else is shown anything.",
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
