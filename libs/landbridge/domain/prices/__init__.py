"""Price lists as CSV, and the cost section of a contract that follows from one at a moment."""

from landbridge.domain.prices.price_list import PriceList, PriceRow, read_prices
from landbridge.domain.prices.section import Section, cost_section

__all__ = ["PriceList", "PriceRow", "Section", "cost_section", "read_prices"]
