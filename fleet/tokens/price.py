"""What tokens cost, in US dollars. Prices are data with a date; a model in no list has no price.

Three places, the first that knows the model wins: `[price]` in agents.toml, the genai-prices library
where it is installed, and the table shipped beside this file. Long-context tiers and one-hour cache
writes are priced at the base rate.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

from fleet.backends.ledger import Counts
from fleet.core.model import Price

TABLE = os.path.join(os.path.dirname(__file__), "prices.toml")
_MILLION = 1_000_000


class PriceBook:
    """Prices by model name. With `library` False nothing outside this engine is asked."""

    def __init__(self, own: Iterable[Price] = (), *, library: bool = True) -> None:
        self._own = {price.model: price for price in own}
        self._library = library
        self._known: dict[str, Price | None] = {}
        self._table: dict[str, Price] | None = None
        self._date: object = None  # of the shipped table
        self.sources: set[str] = set()  # which places gave a price, for the line under a table

    def price(self, model: str) -> Price | None:
        """The price of a model, or None."""
        if model not in self._known:
            self._known[model] = self._find(model)
        return self._known[model]

    def cost(self, model: str, counts: Counts) -> float | None:
        """What these tokens cost; None when the model has no price, nothing when there are no tokens."""
        if not counts.total:
            return 0.0
        price = self.price(model)
        if price is None:
            return None
        dollars = (
            counts.input * price.input
            + counts.output * price.output
            + counts.cache_write * price.cache_write
            + counts.cache_read * price.cache_read
        )
        return dollars / _MILLION

    def _find(self, model: str) -> Price | None:
        for name in _spellings(model):
            if name in self._own:
                self.sources.add("[price] in agents.toml")
                return self._own[name]
        found = self._from_library(model) if self._library else None
        if found is not None:
            return found
        table = self._shipped()
        for name in _spellings(model):
            if name in table:
                self.sources.add(f"shipped table of {self._date}")
                return table[name]
        return None

    def _shipped(self) -> dict[str, Price]:
        if self._table is None:
            with open(TABLE, "rb") as handle:
                data = tomllib.load(handle)
            self._table = {name: Price(name, *rates) for name, rates in data["models"].items()}
            self._date = data["date"]
        return self._table

    def _from_library(self, model: str) -> Price | None:
        try:
            import genai_prices
        except ImportError:
            self._library = False
            return None
        for name in _spellings(model):
            try:
                rates = genai_prices.calc_price(
                    genai_prices.Usage(input_tokens=1), model_ref=name
                ).model_price
            except (LookupError, ValueError):
                continue
            price = _rates(model, rates)
            if price is not None:
                self.sources.add(f"genai-prices {_version()}")
                return price
        return None


def _rates(model: str, rates: Any) -> Price | None:
    """Base rates out of the library's own form; a model it lists without input and output has none."""
    names = ("input_mtok", "output_mtok", "cache_write_mtok", "cache_read_mtok")
    found = [getattr(getattr(rates, name, None), "base", getattr(rates, name, None)) for name in names]
    if found[0] is None or found[1] is None:
        return None
    # Without a price of their own, cached tokens are billed as what they are: input.
    first, output, write, read = (float(found[0] if rate is None else rate) for rate in found)
    return Price(model, first, output, write, read)


def _version() -> str:
    from importlib.metadata import version

    return version("genai-prices")


def _spellings(model: str) -> Iterator[str]:
    """A name as written, without a context suffix, without provider, without a date: nothing looser."""
    plain = re.sub(r"\[[^]]*\]$", "", model)
    short = plain.rpartition("/")[2]
    yield from dict.fromkeys((model, plain, short, re.sub(r"[-@]20\d{6}$", "", short)))
