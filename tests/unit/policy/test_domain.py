"""Domains: what a value is, where it lies, and what is said about values and attributes that are none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import PolicyError
from tacit.policy.attributes import Categories, Flag, Grid, Integers, Items
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain, canonical


def refused(make):
    with pytest.raises(PolicyError) as refusal:
        make()
    return str(refusal.value)


FLU = Categories(["flu", "hiv"])
REFUSED = [
    (lambda: Categories("abc"), "categories must be one list of values; got 'abc'. Write Categories([a, b, ..])."),
    (lambda: Categories([]), "categories must not be empty; got []. List at least one value."),
    (lambda: Categories(["a", 1.5]), "categories must be texts, whole numbers or true/false; got 1.5. Quote it."),
    (
        lambda: Categories("F", "M"),
        "categories must be one list of values; got ['F', 'M']. Write Categories(['F', 'M']).",
    ),
    (lambda: Categories(5), "categories must be one list of values; got 5."),
    (lambda: Items("a", "b"), "items must be a number or a list; got ['a', 'b']."),
    (lambda: FLU.position("HIV"), "must be one of the categories; got 'HIV'. Did you mean 'hiv'?"),
    (lambda: Categories(["1", "2"]).position(1), "must be one of the categories; got 1. Did you mean '1'?"),
    (lambda: Items(["gym"]).cell_position(" Gym"), "must be one of the items; got ' Gym'. Did you mean 'gym'?"),
    (lambda: Grid(2, 2, otherwise="Clip"), "otherwise must be a cell or 'clip'; got 'Clip'. Did you mean 'clip'?"),
    (lambda: Categories(["a", None]), "categories must be texts, whole numbers or true/false; got None. Quote it."),
    (lambda: Categories(["a", "b", "a"]), "categories must not repeat a value; got 'a'. Remove one of them."),
    (lambda: Categories([1, True]), "categories must not repeat a value; got True. Remove one of them."),
    (lambda: FLU.position("fluu"), "must be one of the categories; got 'fluu'. Did you mean 'flu'?"),
    (lambda: Integers(0, 1.5), "integers.high must be a whole number; got 1.5. Round it, or declare decimals"),
    (lambda: Integers(True, 2), "integers.low must be a whole number; got True. Round it, or declare decimals"),
    (lambda: Integers(5, 1), "integers.low must not be above high; got (5, 1). Swap the two."),
    (lambda: Integers(0, 9, 0), "integers.step must be at least 1; got 0. Leave it out for 1."),
    (lambda: Integers(0, 10, 3), "integers.high must be a whole number of steps above low; got 10. Use 9."),
    (lambda: Integers(0, 2**63), "integers must fit into 62 bits"),
    (
        lambda: Integers(0, 9, otherwise="clap"),
        "otherwise must be a value of the range or 'clip'; got 'clap'. Did you mean 'clip'?",
    ),
    (lambda: Integers(0, 9, otherwise=10), "otherwise must be a whole number from 0 to 9; got 10. Change it."),
    (lambda: Integers(0, 9, 3).position(4), "must be a whole number from 0 to 9 in steps of 3; got 4. Change it."),
    (lambda: Integers(0, 9).position(True), "must be a whole number from 0 to 9; got True. Change it."),
    (lambda: Integers(0, 9).position(math.nan), "must be a whole number from 0 to 9; got nan. Change it."),
    (lambda: Integers(0, 9).position(10**400), "must be a whole number from 0 to 9; got 1000000"),
    (lambda: Integers(0, 9).position("3"), "must be a whole number from 0 to 9; got '3'. Change it."),
    (lambda: Flag(otherwise="no"), "otherwise must be true or false; got 'no'. Leave it out."),
    (lambda: Flag().position(2), "must be true or false; got 2. Write true or false."),
    (lambda: Grid(0, 3), "grid.rows must be at least 1; got 0. Count the cells."),
    (lambda: Grid(True, 3), "grid.rows must be at least 1; got True. Count the cells."),
    (lambda: Grid(2, 3, of=("a",)), "grid.of must name two columns; got ('a',). Write [latitude, longitude]."),
    (lambda: Grid(2, 3, of="ab"), "grid.of must name two columns; got 'ab'. Write [latitude, longitude]."),
    (lambda: Grid(2, 3, of=("a", "a")), "grid.of must name two columns; got ('a', 'a'). Write [latitude, longitude]."),
    (lambda: Grid(2, 3, low=(1, 2)), "grid.low must come with high; got (1, 2). Give both or neither."),
    (lambda: Grid(2, 3, low=("a", 1), high=(2, 3)), "grid.low, grid.high must be two numbers each"),
    (lambda: Grid(2, 3, low=(1, math.inf), high=(2, 3)), "grid.low, grid.high must be two numbers each"),
    (lambda: Grid(2, 3, low=(1, 5), high=(2, 3)), "grid.low must be below high"),
    (lambda: Grid(2, 3).position((2, 0)), "must be a cell [row, column] below [2, 3]; got (2, 0). Change it."),
    (lambda: Grid(2, 3, otherwise=(5, 5)), "must be a cell [row, column] below [2, 3]; got (5, 5). Change it."),
    (lambda: Items(0), "items must have at least one item; got 0. Count them."),
    (lambda: Items("abc"), "items must be a number or a list; got 'abc'. Write 1000 or [a, b, ..]."),
    (lambda: Items(1.5), "items must be a number or a list; got 1.5. Write 1000 or [a, b, ..]."),
    (lambda: Items(["a", ["b"]]), "items must be texts or whole numbers; got ['b']. Quote it."),
    (lambda: Items(["a", "a"]), "items must not repeat an item; got ('a', 'a'). Remove the second one."),
    (lambda: Items(["a"], first=1), "items.first must not be given for items with names; got 1. Remove it."),
    (lambda: Items(3, first="a"), "items.first must be a whole number; got 'a'. Leave it out for 0."),
    (lambda: Items(3, at_most=4), "items.at_most must be from 1 to 3; got 4. Leave it out for no bound."),
    (lambda: Items(3, at_most=True), "items.at_most must be from 1 to 3; got True. Leave it out for no bound."),
    (lambda: Items(3, first=1).cell_position(4), "must be an item from 1 to 3; got 4. Change it."),
    (lambda: Items(["bread"]).cell_position("bred"), "must be one of the items; got 'bred'. Did you mean 'bread'?"),
    (lambda: Items(3).positions("ab"), "must be a set of items; got 'ab'. Write a list of items."),
    (lambda: Items(3, at_most=1).positions([0, 1]), "must have at most 1 items; got [0, 1]. Remove some."),
    (lambda: Domain({}), "domain must have at least one attribute; got {}. Declare a column."),
    (lambda: Domain(["age"]), "domain must be a mapping; got ['age']. Write {\"age\": tc.Integers(17, 90)}."),
    (
        lambda: Domain({"age": 5}),
        "domain.age must be Integers, Decimals, Dates, Times, Categories, Flag, Grid or Items; got 5.",
    ),
    (
        lambda: Domain({"place": Grid(2, 2), "place.row": Flag()}),
        "domain must not be used twice; got 'place.row'. Rename one attribute.",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_what_is_no_attribute_or_value_is_refused_with_the_fix(make, sentence):
    assert refused(make).startswith(sentence)


@pytest.mark.parametrize("name", ["", "a[1]", "a]", "a`b", "a\nb", "a\rb", "a\u2028b", 5, None])
def test_names_that_would_be_ambiguous_are_refused(name):
    assert "must be a text without brackets, backticks or line breaks" in refused(lambda: Domain({name: Flag()}))


def test_positions_and_values_are_inverse():
    for attribute in (Categories(["a", 1, False]), Integers(-3, 9, 3), Flag(), Grid(3, 2)):
        assert [attribute.position(attribute.value(at)) for at in range(attribute.size)] == list(range(attribute.size))


def test_whole_numbers_of_any_kind_are_values():
    for value in (20, 20.0, np.int64(20), np.float64(20)):
        assert canonical(Integers(17, 90), value, key="age") == 20
        assert type(canonical(Integers(17, 90), value, key="age")) is int


def test_axes():
    domain = Domain(
        {"age": Integers(0, 20, 5), "place": Grid(3, 2), "sex": Categories(["f", "m"]), "clicked": Items(9)}
    )
    assert domain.axes_of("age") == (Axis("age", 5, ordered=True, spacing=5),)
    assert [axis.name for axis in domain.axes_of("place")] == ["place.row", "place.column"]
    assert not domain.axis("sex").ordered
    assert domain.axes_of("clicked") == ()
    assert domain["clicked"].item_axis("clicked", 7) == Axis("clicked", 2, ordered=True, item=7)


def test_the_number_of_sets_is_exact():
    for count in range(1, 8):
        for most in range(1, count + 1):
            expected = sum(math.comb(count, chosen) for chosen in range(most + 1))
            assert Items(count, at_most=most).size == expected
    assert Items(41270, at_most=20000).size.bit_length() > 40000  # and quick


def test_records_come_as_mappings_sequences_or_bare_values():
    domain = Domain({"age": Integers(17, 90), "clicked": Items(5)})
    assert domain.record({"clicked": [3, 1], "age": 20}) == (20, frozenset({1, 3}))
    assert domain.record([20, {1}]) == (20, frozenset({1}))
    assert Domain({"age": Integers(17, 90)}).record(20) == (20,)
    assert Domain({"age": Integers(17, 90)}).record((20,)) == (20,)
    assert Domain({"clicked": Items(5)}).record([1, 2]) == (frozenset({1, 2}),)
    assert Domain({"place": Grid(3, 3)}).record((1, 2)) == ((1, 2),)


@pytest.mark.parametrize("attribute", [Integers(0, 9), Categories(["a"]), Flag(), Grid(3, 3), Items(5)])
def test_a_record_is_its_own_record(attribute):
    domain = Domain({"x": attribute})
    value = {1} if isinstance(attribute, Items) else attribute.value(0)
    assert domain.record(domain.record(value)) == domain.record(value)
    assert Domain({"x": Items(["a", "b"])}).record(("a",)) == (frozenset({"a"}),)


def test_records_that_do_not_fit_are_refused():
    domain = Domain({"age": Integers(17, 90), "sex": Categories(["f", "m"])})
    assert refused(lambda: domain.record({"age": 20})) == "record must give every attribute; got a dict. Add sex."
    assert refused(lambda: domain.record({"age": 20, "sexx": "f"})) == (
        "record must be an attribute of the domain; got 'sexx'. Did you mean 'sex'?"
    )
    assert refused(lambda: domain.record(20)) == "record must have the attributes age, sex; got 20. Write a mapping."
    assert refused(lambda: domain.record((20, "x"))) == "sex must be one of the categories; got 'x'. Known: f, m."
