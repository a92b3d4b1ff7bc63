"""Case files: a policy, how attributes depend on each other, who asks for what, who colludes, and what may be learned.

Guarantee   The whole file is read and checked before anything else happens. A dependence that is counted from a file is
            counted as the policy reads rows; the private rows themselves, by whatever path, pattern or folder they are
            named, are counted only if the file says `unprotected: true`, and what comes of that carries the mark.
            Of a dependence with the mark nothing reaches a release, a certificate or a ledger: an epsilon that would be
            planned by it and limits that rest on it are refused where a case is run.
Assumes     The case file is trusted as much as the command that runs it. What it counts is public, or marked.
Why         A case is a job with more keys: the same file is audited, planned and run, so that what was planned is what
            is released. A key that is misspelled or left out is refused, never guessed.
Checked by  tests/unit/jobs/test_case_file.py, tests/cli/test_leakage_commands.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final

from tacit.amounts import as_fraction
from tacit.dependence.dependence import Dependence
from tacit.errors import JobError, PlanError, nearest
from tacit.jobs.case_dependence import CELL, DEPENDENCE, read_dependence, read_value
from tacit.jobs.job_file import (
    PLANNED,
    RELEASES,
    Job,
    JobRelease,
    job_below,
    open_job,
    rows_below,
    schema_of_jobs,
    schema_of_release,
)
from tacit.jobs.variables import NONE_SET, Variables
from tacit.ledger.applications import Applications
from tacit.plan.choose import choose
from tacit.plan.leakage.budget import OBJECTIVES, leakage_budget
from tacit.plan.leakage.informations import MEASURES
from tacit.plan.leakage.leakage_plan import LeakagePlan
from tacit.plan.leakage.setting import EVERYBODY
from tacit.plan.question import Query
from tacit.plan.questions.written import query_schema
from tacit.policy.keys import BOOLEAN, TEXTS, Key, Keys, Schema, together
from tacit.policy.policy import Policy
from tacit.policy.policy_file import policy_below
from tacit.policy.yaml_entries import YamlEntry

_WHOLE: Final = "the case"
_MADE_PUBLIC: Final = "Count a public or an earlier data set, or leave the limit out and write the epsilons as numbers."
DECIMALS: Final = 4  # of an epsilon that is planned for a release

_NUMBER: Final[Schema] = {"type": "number", "minimum": 0}
_BY_NAME: Final[Schema] = {"type": "object", "minProperties": 1, "additionalProperties": TEXTS}
_ONE_OR_EACH: Final[Schema] = {
    "anyOf": [_NUMBER, {"type": "object", "minProperties": 1, "additionalProperties": _NUMBER}]
}


def _numbers(entry: YamlEntry) -> dict[str, Any]:
    return {name: one.real() for name, one in entry.mapping().items()}


def _limit(entry: YamlEntry) -> Any:
    return _numbers(entry) if entry.is_mapping else entry.real()


OPTIONS: Final = Keys(  # of `tc.plan.leakage_budget`, of `tc.Applications`, or of both
    Key(
        "posterior",
        {"type": "number", "minimum": 0, "maximum": 1},
        "How sure any outcome may make.",
        "no such limit",
        to=("plan", "limits"),
    ),
    Key(
        "weights",
        {"type": "object", "additionalProperties": _NUMBER},
        "What a release is worth.",
        "all are worth the same",
        read=_numbers,
        to=("plan",),
    ),
    Key(
        "measure",
        {"enum": list(MEASURES)},
        "Whether values count, or only what is left out.",
        "`value`",
        to=("plan", "limits"),
    ),
    Key("own", BOOLEAN, "Whether what an attribute says about itself counts.", "true", to=("plan", "limits")),
    Key("cap", {"type": "number", "exclusiveMinimum": 0}, "The largest epsilon.", "no bound", to=("plan",)),
    Key("objective", {"enum": list(OBJECTIVES)}, "What is made as large as possible.", "`releases`", to=("plan",)),
    Key("drift", _NUMBER, "How far the dependence may move before the plan is made anew.", "0", to=("plan",)),
)


@dataclass(frozen=True)
class Case:
    """What a case file says. `job` is None where it names no rows: then there is nothing to run.

    `epsilon` has what each application is shown of each attribute, as far as the file says so; the rest is planned.
    `options` are those of `OPTIONS` that the file gives.
    """

    name: str
    file: str
    policy: Policy
    dependence: Annotated[Dependence, DEPENDENCE]
    sensitive: Annotated[
        Mapping[str, tuple[Any, ...]],
        Key(
            "sensitive",
            {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"anyOf": [CELL, {"type": "array", "items": CELL}]},
            },
            "The sensitive values of each protected attribute.",
            read=together,
            required=True,
        ),
    ]
    applications: Annotated[
        Mapping[str, tuple[str, ...]],
        Key("applications", _BY_NAME, "Which attributes each application asks for.", read=together, required=True),
    ]
    coalitions: Annotated[
        Mapping[str, tuple[str, ...]],
        Key("coalitions", _BY_NAME, "Applications that pool what they see.", "all of them together", read=together),
    ]
    epsilon: Annotated[
        Mapping[str, Mapping[str, float]] | None,
        Key(
            "epsilon",
            {"type": "object", "additionalProperties": _ONE_OR_EACH},
            "What each application is shown of each attribute.",
            "planned under the limit",
            read=together,
        ),
    ]
    limit: Annotated[
        Any,
        Key(
            "limit",
            _ONE_OR_EACH,
            "What may be learned, in nats: in all, or for each of some.",
            "no limit; then the epsilons must be given",
            read=_limit,
        ),
    ]
    options: Mapping[str, Any]
    job: Job | None
    places: Mapping[str, YamlEntry] = field(repr=False, compare=False)
    made: dict[str, LeakagePlan] = field(default_factory=dict, repr=False, compare=False)

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Everybody who could learn something, by name: each application alone, and the coalitions of the file.

        A coalition of one stands for its application. Without coalitions everybody is taken to pool what they see.
        Plans, audits and releases all go by these.
        """
        given = self.coalitions or ({EVERYBODY: tuple(self.applications)} if len(self.applications) > 1 else {})
        called = {members[0]: name for name, members in given.items() if len(members) == 1}
        return {**{called.get(name, name): (name,) for name in self.applications}, **given}

    def plan(self) -> LeakagePlan:
        """Return the epsilons that release the most under the limit of the file; it is made once."""
        if "plan" not in self.made:
            self.made["plan"] = self.plan_with()
        return self.made["plan"]

    def plan_with(self, limit: Any = None, **others: Any) -> LeakagePlan:
        """Return the same under another limit, or with other options."""
        wanted = self.limit if limit is None else limit
        if wanted is None:
            fix = "Add `limit: 0.1`, in nats, to the case."
            raise JobError("must be given for a plan", key="limit", file=self.file, fix=fix)
        with self.places["case"].blamed(self.places), self._explained_cap():
            return leakage_budget(
                self.dependence,
                sensitive=self.sensitive,
                limit=wanted,
                applications=self.applications,
                coalitions=self.groups,
                **OPTIONS.handed_to("plan", {**self.options, **others}),
            )

    @contextmanager
    def _explained_cap(self) -> Iterator[None]:
        """Say how a file gives a cap, where a plan needs one and the file has none."""
        try:
            yield
        except PlanError as refused:
            if refused.key != "cap" or "cap" in self.places:
                raise
            line = self.places["limit"].line if "limit" in self.places else None
            fix = "Add `cap: 5`, which releases 99 of 100, or lower the limit."
            refusal = JobError(refused.rule, key="cap", file=self.file, line=line, fix=fix)
        else:
            return
        raise refusal

    def epsilons(self) -> Mapping[str, Mapping[str, float]]:
        """Return what each application is shown of each attribute: as the file says, or as planned."""
        return self.plan().epsilon if self.epsilon is None else self.epsilon

    def to_run(self) -> Job:
        """Return the job of the case with its limits, or refuse a case that cannot be run."""
        if self.job is None:
            whole = self.places["case"]
            fix = "Add them to the case."
            raise whole.refuse("must have the keys rows and releases to be run", given=sorted(whole.mapping()), fix=fix)
        if self.dependence.unprotected and "limit" in self.places:
            raise self.places["limit"].refuse(
                "must be left out where releases are made: the dependence is unprotected, and what a limit refuses "
                "would tell about people for whom nobody paid",
                fix=_MADE_PUBLIC,
            )
        return replace(self.job, leakage=self.limits())

    def limits(self) -> Applications | None:
        """Return the limits that releases are held against; None if the case has no limit."""
        if self.limit is None:
            return None
        with self.places["case"].blamed(self.places):
            return Applications(
                self.dependence,
                sensitive=self.sensitive,
                coalitions=self.groups,
                limit=self.limit,
                **OPTIONS.handed_to("limits", self.options),
            )


def _keys() -> Keys:
    """Return the keys of a case and those of its job, of which only the policy must be given."""
    return Keys(*(replace(key, required=key.name == "policy") for key in Keys.of(Job)), *Keys.of(Case), *OPTIONS)


def job_of_case(top: YamlEntry, path: str | Path) -> Job:
    """Read the job of a case with its limits, from the top of a file that is a case."""
    # named anew, not opened anew: what was looked at is what is read
    return _case_below(replace(top, source=replace(top.source, whole=_WHOLE)), path).to_run()


def read_case(path: str | Path, variables: Variables = NONE_SET) -> Case:
    """Read a case file; every refusal names the file, the line, the key, the rule, the value given and the fix."""
    return _case_below(open_job(path, _WHOLE, "case file", variables=variables), path)


def _case_below(top: YamlEntry, path: str | Path) -> Case:
    fields = _keys().entries(top)
    if "limit" not in fields and "epsilon" not in fields:
        raise top.refuse("must have the key limit or the key epsilon", given=sorted(fields), fix="Add `limit: 0.1`.")
    policy = policy_below(fields["policy"])
    private = rows_below(fields["rows"]) if "rows" in fields else {}
    dependence = read_dependence(fields["dependence"], policy, private)
    sensitive = _by_attribute(fields["sensitive"], policy, dependence)
    applications = _groups(fields["applications"], list(dependence.names), "an attribute of the dependence")
    coalitions = _coalitions(fields, applications)
    case = Case(
        name=fields["name"].text() if "name" in fields else Path(path).stem,
        file=str(path),
        policy=policy,
        dependence=dependence,
        sensitive=sensitive,
        applications=applications,
        coalitions=coalitions,
        epsilon=_epsilons(fields["epsilon"], applications) if "epsilon" in fields else None,
        limit=_limit(fields["limit"]) if "limit" in fields else None,
        options=OPTIONS.read(fields),
        job=None,
        places={**fields, "case": top},
    )
    _check_limited(fields.get("limit"), case)
    case.limits()  # refused now, with its line, if it means nothing
    if "rows" not in fields and "releases" not in fields:
        return case
    return replace(
        case, job=job_below(top, path, also=(*Keys.of(Case), *OPTIONS), planned=lambda query: _planned(case, query))
    )


def _planned(case: Case, query: Query) -> Fraction:
    """Return what a release must cost for its attribute to have the epsilon that the case plans or gives."""
    records = choose(query, case.policy, 1).records
    shows = [] if records is None else [one for one in records.shows if not one.is_public]
    if len(shows) == 1 and shows[0].application and shows[0].application not in case.applications:
        rule = "must be an application of the case, since the epsilon is planned"
        fix = nearest(shows[0].application, list(case.applications))
        raise JobError(rule, key="application", given=shows[0].application, fix=fix)
    if records is not None and not shows:
        names = ", ".join(records.showing.public)
        rule = (
            f"must be a number: no secret of the policy is about {names}, which is shown as it is, whatever the epsilon"
        )
        raise JobError(rule, key="epsilon", given=PLANNED, fix="Write a small number, or add a secret to the policy.")
    if len(shows) != 1 or shows[0].application not in case.applications:
        rule = "must be a number, unless one attribute is shown to an application of the case"
        fix = "Write {true_records: {columns: [arrival], key: [room, day], application: lighting}}, or a number."
        raise JobError(rule, key="epsilon", given=PLANNED, fix=fix)
    if case.dependence.unprotected and case.epsilon is None:
        raise JobError(
            "must be a number: the dependence is unprotected, and what is planned would tell about people for "
            "whom nobody paid",
            key="epsilon",
            given=PLANNED,
            fix=f"{_MADE_PUBLIC} To look at the plan, leave rows and releases out.",
        )
    (one,) = shows
    wanted = case.epsilons()[one.application].get(one.attribute)
    if wanted is None or not wanted > 0:
        raise JobError(
            f"must be a number: the case {'plans nothing of' if wanted is None else 'leaves nothing for'} "
            f"{one.attribute} for {one.application}",
            key="epsilon",
            given=PLANNED,
            fix="Leave the release out, or raise the limit.",
        )
    # rounded down to what people can read, where that leaves anything
    short = Fraction(math.floor(wanted * 10**DECIMALS), 10**DECIMALS)
    return (short or as_fraction(wanted, key="epsilon")) / one.epsilon


def _groups(entry: YamlEntry, known: list[str], what: str) -> dict[str, tuple[str, ...]]:
    """Return lists of names by name: what applications ask for, or who colludes."""
    found: dict[str, tuple[str, ...]] = {}
    for name, listed in entry.mapping().items():
        members = listed.one_or_more()
        if not members:
            raise listed.refuse("must not be empty", given=[], fix=f"Name {what}.")
        for one in members:
            if one.text() not in known:
                raise one.refuse(f"must be {what}", given=one.text(), fix=nearest(one.text(), known))
        found[name] = tuple(dict.fromkeys(one.text() for one in members))
    if not found:
        raise entry.refuse("must not be empty", given={}, fix="Name one: [..].")
    return found


def _coalitions(
    fields: Mapping[str, YamlEntry], applications: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return who colludes; every group has a name of its own, also where an application is one by itself."""
    if "coalitions" not in fields:
        if EVERYBODY in applications and len(applications) > 1:
            fix = "Rename it: without coalitions, that is all of them together."
            raise fields["applications"].refuse(f"must not be called {EVERYBODY}", given=EVERYBODY, fix=fix)
        return {}
    found = _groups(fields["coalitions"], list(applications), "an application of the case")
    for name, members in found.items():
        if name in applications and members != (name,):
            rule = "must not have the name of an application, unless it is alone in it"
            raise fields["coalitions"].refuse(rule, given=name, fix="Rename it.")
    return found


def _check_limited(entry: YamlEntry | None, case: Case) -> None:
    """Refuse a limit that could be meant for an attribute or for a group."""
    for name in case.limit if isinstance(case.limit, Mapping) else ():
        if entry is not None and name in case.sensitive and name in case.groups:
            fix = "Rename one of them."
            raise entry.refuse("must not be both an attribute and an application or coalition", given=name, fix=fix)


def _epsilons(entry: YamlEntry, applications: Mapping[str, tuple[str, ...]]) -> dict[str, dict[str, float]]:
    """Return the epsilon of each application and attribute; all of them must be there."""
    found: dict[str, dict[str, float]] = {}
    for name, given in entry.fields(tuple(applications), required=tuple(applications)).items():
        asked = applications[name]
        each = given.fields(asked, required=asked) if given.is_mapping else dict.fromkeys(asked, given)
        found[name] = {}
        for attribute, one in each.items():
            epsilon = float(one.real())
            if epsilon < 0:
                raise one.refuse("must not be negative", given=epsilon, fix="Write 0 to show nothing.")
            found[name][attribute] = epsilon
    return found


def _by_attribute(entry: YamlEntry, policy: Policy, dependence: Dependence) -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for name, listed in entry.mapping().items():
        if name not in dependence.values:
            fix = nearest(name, list(dependence.names))
            raise listed.refuse("must be an attribute of the dependence", given=name, fix=fix)
        found[name] = tuple(read_value(one, policy.domain, name) for one in listed.one_or_more())
        for value, one in zip(found[name], listed.one_or_more(), strict=True):
            if value not in dependence.values[name]:
                known = ", ".join(map(str, dependence.values[name][:10]))
                raise one.refuse(f"must be a value of {name} in the dependence", given=value, fix=f"Known: {known}.")
    return found


# ---- the JSON schema ------------------------------------------------------------------------------------------------


def case_schema() -> Schema:
    """Return the JSON schema (draft 2020-12) of case files: that of jobs, with more keys."""
    description = "Who is shown what, and what may be learned from it."
    keys = Keys(*(_planned_too(key) if key.name == RELEASES else key for key in _keys()))
    found = schema_of_jobs("Tacit case", description, keys, {"query": query_schema()})
    return {**found, "anyOf": [{"required": ["limit"]}, {"required": ["epsilon"]}]}


def _planned_too(releases: Key) -> Key:
    keys = Keys.of(JobRelease)
    (epsilon,) = (key for key in keys if key.name == "epsilon")
    either = replace(epsilon, schema={"anyOf": [{"const": PLANNED}, *epsilon.schema["anyOf"]]})
    release = schema_of_release(Keys(*(either if key is epsilon else key for key in keys)))
    return replace(releases, schema={**releases.schema, "items": release})
