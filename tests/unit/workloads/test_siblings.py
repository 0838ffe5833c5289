"""When a text names a model's sibling in its place."""

from __future__ import annotations

import pytest

from pipeline_assets.workloads.siblings import names_a_sibling


@pytest.mark.parametrize(
    ("text", "products", "expected"),
    [
        pytest.param("Guide of the MX-2 mixer.", ["MX-100"], True, id="a sibling alone"),
        pytest.param("Guide of the MX 100 mixer.", ["MX-100"], False, id="the product"),
        pytest.param("The MX-100 works with the MX-2.", ["MX-100"], False, id="both"),
        pytest.param("A mixer with an RS232 line.", ["MX-100"], False, id="another family"),
        pytest.param("A mixer.", ["MX-100"], False, id="no model"),
        pytest.param("The MX-100 mixer.", ["MX-100 Pro"], False, id="a part of its name"),
        pytest.param("The MX-100A mixer.", ["MX-100"], False, id="its name goes on"),
        pytest.param("The MX-2 mixer.", [], False, id="no product"),
        pytest.param("The MX-2 mixer.", ["Mixer"], False, id="a product without a number"),
        pytest.param("The MX-3.", ["MX-100", "MX-2"], True, id="none of several"),
        pytest.param("Пульт МИ-3.", ["МИ-10"], True, id="another script"),
    ],
)
def test_siblings(text: str, products: list[str], expected: bool) -> None:
    assert names_a_sibling(text, products) is expected
