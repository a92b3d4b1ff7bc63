"""Small policies and queries for Hypothesis; every generator covers every kind."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import strategies as st

from brute_force import every_value
from tacit.plan import questions as queries
from tacit.policy import knowledge, secrets
from tacit.policy.attributes import Categories, Dates, Decimals, Flag, Grid, Integers, Items
from tacit.policy.domain import Domain, every_record, positions
from tacit.policy.policy import Policy
from tacit.policy.where import Compare


@st.composite
def attributes(draw, *, items=True, largest=4):
    kinds = ["categories", "integers", "decimals", "dates", "flag", "grid", *(["items"] if items else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "categories":
        size = draw(st.integers(1, largest))
        return Categories([f"v{i}" for i in range(size)], ordered=draw(st.booleans()))
    if kind == "integers":
        low, step, size = draw(st.integers(-3, 3)), draw(st.integers(1, 3)), draw(st.integers(1, largest + 1))
        return Integers(low, low + step * (size - 1), step)
    if kind == "decimals":
        low, step = (
            draw(st.sampled_from(some)) for some in (["-0.5", "0", "0.1", "2.25"], ["0.1", "0.25", "0.5", "1.5"])
        )
        return Decimals(low, Decimal(low) + Decimal(step) * draw(st.integers(0, largest)), step)
    if kind == "dates":
        month, many = draw(st.integers(1, 12)), draw(st.integers(0, largest - 1))
        last = f"{2024 + (month + many > 12)}-{(month + many - 1) % 12 + 1:02}"
        return Dates(f"2024-{month:02}", last, by="month")
    if kind == "flag":
        return Flag()
    if kind == "grid":
        return Grid(draw(st.integers(1, 3)), draw(st.integers(1, 2)))
    many = draw(st.integers(1, 3))
    return Items(many, at_most=draw(st.none() | st.integers(1, many)))


@st.composite
def domains(draw, *, items=True, most=2, largest=4):
    kinds = draw(st.lists(attributes(items=items, largest=largest), min_size=1, max_size=most))
    return Domain({f"a{i}": kind for i, kind in enumerate(kinds)})


@st.composite
def atoms(draw, domain):
    name = draw(st.sampled_from(list(domain)))
    attribute = domain[name]
    if isinstance(attribute, Items):
        return Compare(name, "has", attribute.item(draw(st.integers(0, attribute.count - 1))))
    if isinstance(attribute, Grid):
        part = draw(st.sampled_from(["row", "column"]))
        size = attribute.rows if part == "row" else attribute.columns
        return Compare(name, draw(st.sampled_from(["<", "<=", ">", ">="])), draw(st.integers(-1, size)), part)
    values = every_value(attribute)
    symbol = draw(st.sampled_from(["==", "!=", "in", "<", "<=", ">", ">="]))
    if isinstance(attribute, Categories) and not attribute.ordered and symbol in "<=>=":
        symbol = "=="
    if symbol == "in":
        return Compare(name, "in", tuple(draw(st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True))))
    if symbol in ("<", "<=", ">", ">=") and isinstance(attribute, Integers):
        return Compare(name, symbol, draw(st.integers(attribute.low - 1, attribute.high + 1)))
    value = draw(st.sampled_from(values))
    if isinstance(attribute, Flag) and symbol not in ("==", "!="):
        value = int(value)
    return Compare(name, symbol, value)


@st.composite
def predicates(draw, domain, depth=2):
    if depth == 0 or draw(st.booleans()):
        return draw(atoms(domain))
    word = draw(st.sampled_from(["and", "or", "not"]))
    left = draw(predicates(domain, depth - 1))
    if word == "not":
        return ~left
    right = draw(predicates(domain, depth - 1))
    return left & right if word == "and" else left | right


@st.composite
def families(draw, domain, *, absence=True):
    """Any family, of everybody or of some people; with `absence` also taking part."""
    family = draw(_families(domain, absence=absence))
    return family.only_for(draw(predicates(domain))) if draw(st.integers(0, 2)) == 0 else family


@st.composite
def _families(draw, domain, *, absence):
    names = list(domain)
    kinds = ["everything", "attributes", "partition", "within", "within", "pairs", "values", "records"]
    kind = draw(st.sampled_from([*kinds, "taking part"] if absence else kinds))
    if kind == "taking part":
        return secrets.taking_part()
    some = draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True))
    if kind == "attributes":
        return secrets.attributes(*some)
    if kind == "partition":
        name = draw(st.sampled_from(names))
        attribute = domain[name]
        if isinstance(attribute, Items):
            return secrets.everything()
        if isinstance(attribute, Grid):
            return secrets.partition(name, width=[draw(st.integers(1, 3)), draw(st.integers(1, 3))])
        ordered = domain.axes_of(name)[0].ordered
        if ordered and draw(st.booleans()):
            return secrets.partition(name, width=draw(st.integers(1, 3)) * domain.axes_of(name)[0].spacing)
        labels = draw(st.lists(st.integers(0, 2), min_size=attribute.size, max_size=attribute.size))
        values = every_value(attribute)
        blocks = [[v for v, at in zip(values, labels, strict=True) if at == block] for block in range(3)]
        return secrets.partition(name, blocks=[block for block in blocks if block] or [[values[0]]])
    if kind == "within":
        measured = [n for n in some if not (isinstance(domain[n], Categories) and not domain[n].ordered)]
        if measured:
            axes = [axis for name in measured for axis in domain.axes_of(name)]
            has_sets = any(domain[name].is_set for name in measured)
            wide = 4 if has_sets else sum(axis.size * axis.spacing for axis in axes)
            theta = min(draw(st.sampled_from([1, 2, 3, 4, Fraction(3, 2), Fraction(5, 2)])), Fraction(wide))
            return secrets.within(theta, *measured, metric=draw(st.sampled_from(["l1", "l2", "l3", "l7", "linf"])))
        return secrets.attributes(*some)
    if kind == "pairs":
        listed = []
        for _ in range(draw(st.integers(1, 3))):
            hidden = {n: draw(st.sampled_from(every_value(domain[n]))) for n in some}
            cover = {n: draw(st.sampled_from(every_value(domain[n]))) for n in some}
            if hidden != cover:
                listed.append((hidden, cover))
        return secrets.pairs(listed) if listed else secrets.everything()
    if kind == "values":
        grids = [n for n in some if isinstance(domain[n], Grid)]
        some = [n for n in some if n not in grids[1:]]
        listed = {}
        for name in some:
            options = [0, 1] if isinstance(domain[name], Items) else every_value(domain[name])
            listed[name] = draw(st.lists(st.sampled_from(options), min_size=1, max_size=2, unique=True))
        return secrets.values(listed)
    if kind == "records":
        return secrets.records(draw(predicates(domain)))
    return secrets.everything()


@st.composite
def policies(draw, *, items=True, most=2, largest=4, presences=("public", "secret")):
    domain = draw(domains(items=items, most=most, largest=largest))
    absence = "secret" in presences
    secret = draw(families(domain, absence=absence))
    if draw(st.booleans()):
        secret = secret | draw(families(domain, absence=absence))
    presence = draw(st.sampled_from(presences))
    return Policy(domain, secret, presence="secret" if presence == "secret" else None)


TABLES = ("histogram", "marginals", "items")  # of which every domain has one


def tells(predicate, domain):
    """Whether a predicate holds for some records of a domain and not for others."""
    test = predicate.compile(domain)
    return len({test.of_record(positions(domain, record)) for record in every_record(domain)}) == 2


@st.composite
def linear_queries(draw, domain, kinds=()):
    """Any query of the domain, or only of some kinds, as far as the domain has them."""
    asked = kinds
    predicate = draw(st.none() | predicates(domain))
    lines = [n for n in domain if len(domain.axes_of(n)) == 1 and domain.axes_of(n)[0].ordered]
    numbers = [n for n in domain if isinstance(domain[n], Integers)]
    plain = [n for n in domain if not isinstance(domain[n], Items)]
    sets = [n for n in domain if isinstance(domain[n], Items)]
    kinds = ["count", "listed"]
    kinds += ["cumulative", "ranges", "all ranges"] if lines else []
    kinds += ["total"] if numbers else []
    kinds += ["histogram", "marginals"] if plain else []
    kinds += ["items"] if sets else []
    kind = draw(st.sampled_from([one for one in kinds if not asked or one in asked]))
    if kind == "cumulative":
        return queries.cumulative(draw(st.sampled_from(lines)), where=predicate)
    if kind == "all ranges":
        return queries.ranges(draw(st.sampled_from(lines)), "all", where=predicate)
    if kind == "ranges":
        name = draw(st.sampled_from(lines))
        values = every_value(domain[name])
        picked = []
        for _ in range(draw(st.integers(1, 3))):
            low = draw(st.integers(0, len(values) - 1))
            picked.append((values[low], values[draw(st.integers(low, len(values) - 1))]))
        return queries.ranges(name, picked, where=predicate)
    if kind == "total":
        name = draw(st.sampled_from(numbers))
        others = [n for n in plain if n != name]
        by = draw(st.lists(st.sampled_from(others), max_size=2, unique=True)) if others else []
        weights = [n for n in numbers if n != name and n not in by]
        weight = draw(st.none() | st.sampled_from(weights)) if weights else None
        return queries.total(name, by=by, weight=weight, where=predicate)
    if kind == "histogram":
        names = draw(st.lists(st.sampled_from(plain), min_size=1, max_size=2, unique=True))
        return queries.histogram(*names, where=predicate)
    if kind == "marginals":
        return queries.marginals(*plain, ways=draw(st.integers(1, len(plain))), where=predicate)
    if kind == "listed":
        drawn = draw(st.lists(predicates(domain), min_size=1, max_size=4, unique_by=str))
        telling = [one for one in drawn if tells(one, domain)]
        return queries.counts(telling, where=predicate) if telling else queries.count(predicate)
    if kind == "items":
        return queries.histogram(draw(st.sampled_from(sets)), where=predicate)
    return queries.count(predicate)


@st.composite
def facts(draw, domain):
    plain = [n for n in domain if not isinstance(domain[n], Items)]
    kind = draw(st.sampled_from(["count", "count", "size", *(["marginal"] if plain else [])]))
    if kind == "marginal":
        return knowledge.marginal(*draw(st.lists(st.sampled_from(plain), min_size=1, max_size=2, unique=True)))
    if kind == "count":
        return knowledge.count(draw(predicates(domain, depth=1)))
    return knowledge.size()
