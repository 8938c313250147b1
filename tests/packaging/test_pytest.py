"""How the tests themselves are collected."""

import pytest


def test_the_root_is_not_collected_as_a_package(request):
    # It would be imported by the name of the folder of the clone, which need not be an identifier.
    assert [node for node in request.node.listchain() if isinstance(node, pytest.Package)] == []
