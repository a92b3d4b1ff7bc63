"""Coins that are kept with probability 1 - exp(-epsilon): tossed anew, or one for each name, the same whenever asked.

Guarantee   A coin is a uniform number U of [0, 1), read from its binary digits, kept if U < 1 - exp(-epsilon): exactly
            so, given ideal bits. What is kept at one epsilon is kept at every larger one. Coins of one secret
            for different names are as good as independent to whoever does not have the secret, and so are coins of
            different secrets.
Assumes     The keystream (`noise/keystream.py`); AES-256 is a pseudorandom permutation; the secret stays secret.
Why         Digits of U and of 1 - exp(-epsilon) are compared 64 at a time; only a tie needs the next 64. For a rational
            epsilon above 0 the threshold is irrational, so that a tie ends. The threshold is rounded to more digits
            until these agree from below and above. It rises with epsilon, and U does not change: hence the superset.
            The first 128 digits of U are the block that AES makes of the name, block after block (CBC-MAC, a
            pseudorandom function for names of one length l): an observer of q coins gains at most about (q l)^2 / 2^127
            (2^36 coins of two blocks: 2^-53). Digits after these come from HMAC-SHA-256 of the block, and are needed
            once in 2^128 coins.
Reference   NIST FIPS 197 (AES); RFC 2104 (HMAC); Bellare, Kilian, Rogaway, The security of the cipher block chaining
            message authentication code, 2000.
Checked by  tests/unit/noise/test_kept_coins.py, tests/statistical/test_kept_coins.py
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tacit.arrays import Bools
from tacit.noise.keystream import Keystream, current_stream

SECRET_BYTES: Final = 32
_WORD: Final = 64
_AT_A_TIME: Final = 2**15  # names, whose blocks a processor keeps close
_SLACK: Final = 16  # bytes of room that a cipher wants behind what it writes
Names = npt.NDArray[np.uint64]  # name, block, word


def new_secret() -> bytes:
    """Return a secret that coins can be made from."""
    return current_stream().words(np.uint8, SECRET_BYTES).tobytes()


def secret_for(secret: bytes, name: str) -> bytes:
    """Return the secret of one purpose among many, which tells nothing about those of others."""
    return hmac.new(secret, name.encode(), hashlib.sha256).digest()


def tossed(epsilon: Fraction, count: int, stream: Keystream | None = None) -> Bools:
    """Return so many new coins: which of them are kept. Threads may be given the stream of whom they work for."""
    stream = stream or current_stream()
    words = stream.words(np.uint64, count)
    return _kept(epsilon, words, lambda _, __: stream.bits(_WORD))


def remembered(secret: bytes, names: Names, epsilon: Fraction) -> Bools:
    """Return the coins of these names: which of them are kept, whenever and with whatever others they are asked for.

    A name is a row of blocks of two 64-bit words, as many for each name.
    """
    # each name is made into one block by chaining, which is safe for names of one length (CBC-MAC)
    cipher = Cipher(algorithms.AES(secret), modes.ECB()).encryptor()  # noqa: S305
    made = _encrypted(cipher, names[:, 0])
    for place in range(1, names.shape[1]):
        made = _encrypted(cipher, made ^ names[:, place])

    def later(at: int, place: int) -> int:
        if place == 1:
            return int(made[at, 1])
        more = hmac.new(secret, made[at].tobytes() + place.to_bytes(8, "little"), hashlib.sha256).digest()
        return int.from_bytes(more[:8], "little")

    return _kept(epsilon, made[:, 0], later)


def remembered_by_number(secret: bytes, numbers: npt.NDArray[np.uint64], epsilon: Fraction) -> Bools:
    """Return the coins of names that are numbers, which have one block."""
    starts = range(0, len(numbers), _AT_A_TIME)
    parts = (name_of_number(numbers[start : start + _AT_A_TIME]) for start in starts)
    return np.concatenate([np.zeros(0, np.bool_), *(remembered(secret, names, epsilon) for names in parts)])


def _encrypted(cipher: Any, blocks: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return what AES makes of each block of two words."""
    given = np.ascontiguousarray(blocks, dtype="<u8")
    made = np.empty(given.nbytes + _SLACK, np.uint8)
    cipher.update_into(given.data.cast("B") if len(given) else b"", made.data)
    return made[: given.nbytes].view("<u8").reshape(-1, 2)


def name_of_number(numbers: npt.NDArray[np.uint64]) -> Names:
    """Return names of one block for numbers, a different one for each."""
    names = np.zeros((len(numbers), 1, 2), dtype="<u8")
    names[:, 0, 0] = numbers
    return names


def name_of_text(text: str) -> tuple[int, int]:
    """Return the block of a text: different ones for different texts, as far as SHA-256 has no collisions."""
    made = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(made[:8], "little"), int.from_bytes(made[8:16], "little")


def share_kept(epsilon: Fraction) -> float:
    """Return the probability that a coin is kept."""
    return -math.expm1(-float(epsilon))


def _kept(epsilon: Fraction, words: npt.NDArray[np.uint64], later: Callable[[int, int], int]) -> Bools:
    """Compare uniform numbers with the threshold; `later(which, place)` has their 64 digits after the first ones."""
    first = threshold_word(epsilon, 0)
    kept = np.asarray(words < np.uint64(first))
    for at in np.flatnonzero(words == np.uint64(first)).tolist():
        place, digits = 1, later(at, 1)
        while digits == threshold_word(epsilon, place):
            place += 1
            digits = later(at, place)
        kept[at] = digits < threshold_word(epsilon, place)
    return kept


@lru_cache(maxsize=1024)
def threshold_word(epsilon: Fraction, place: int) -> int:
    """Return 64 binary digits of 1 - exp(-epsilon), those from 64 * place on."""
    bits = _WORD * (place + 1)
    digits = bits // 3 + 30
    while True:
        # exp is rounded to nearest: half a unit of the last digit, and the argument is rounded too
        low, high = (_exp_bound(epsilon, digits, rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING))
        least, most = (int((1 - Fraction(end)) * 2**bits // 1) for end in (high, low))
        if least == most:
            return int(least % 2**_WORD)
        digits *= 2


def _exp_bound(epsilon: Fraction, digits: int, rounding: str) -> Decimal:
    """Return a number of so many digits that exp(-epsilon) is not below (floor) or not above (ceiling)."""
    exact = Context(prec=digits, rounding=rounding)
    power = exact.divide(Decimal(-epsilon.numerator), Decimal(epsilon.denominator))
    near = Context(prec=digits).exp(power)
    return near.next_minus(exact) if rounding == ROUND_FLOOR else near.next_plus(exact)
