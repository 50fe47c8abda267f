"""What can be asked of a blocking client can be asked of an asynchronous one, in the same words."""
import inspect

import pytest

import vial

PAIRS = [(vial.Sandbox, vial.AsyncSandbox), (vial.Session, vial.AsyncSession),
         (vial.Stream, vial.AsyncStream), (vial.SessionFiles, vial.AsyncSessionFiles)]


def public(kind):
    """Its methods, under the names of a blocking client."""
    return {"close" if name == "aclose" else name: member
            for name, member in inspect.getmembers(kind) if not name.startswith("_")}


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS)
def test_same_methods(blocking, asynchronous):
    ours, theirs = public(blocking), public(asynchronous)
    assert sorted(ours) == sorted(theirs)
    for name, member in ours.items():
        assert member.__doc__ and theirs[name].__doc__, name
        if callable(member) and callable(theirs[name]):
            parameters = [[(p.name, p.kind, p.default) for p in
                           inspect.signature(one).parameters.values()]
                          for one in (member, theirs[name])]
            assert parameters[0] == parameters[1], name
