from __future__ import annotations

import pickle

import pytest

from tailrace import errors
from tailrace.errors import BrokerError, DrainError, NothingToDrainError, QueryRefusedError, TailraceError


def test_the_code_decides_the_class() -> None:
    assert type(TailraceError("TAILRACE_BROKER_UNREACHABLE", "it is away.", "start it.")) is BrokerError
    assert type(TailraceError("TAILRACE_OF_NO_CLASS", "it is odd.", "none.")) is TailraceError
    with pytest.raises(DrainError) as raised:
        raise TailraceError("TAILRACE_NOTHING_TO_DRAIN", "none runs.", "start one.")
    assert type(raised.value) is NothingToDrainError
    assert raised.value.code == raised.value.getCondition() == "TAILRACE_NOTHING_TO_DRAIN"


def test_a_chosen_class_keeps_any_code() -> None:
    """A refused start has the code of the finding, which others have too."""
    refused = QueryRefusedError("TAILRACE_BROKER_UNREACHABLE", "it is away.", "start it.")
    assert type(refused) is QueryRefusedError


def test_an_error_in_a_text_is_found_as_its_class() -> None:
    text = f"java.lang.Exception: {TailraceError('TAILRACE_BROKER_UNREACHABLE', 'it is away.', 'start it.')}\n\tat a.b"
    found = TailraceError.find_in(text)
    assert type(found) is BrokerError
    assert (found.problem, found.fix) == ("it is away.", "start it.")


def test_errors_survive_pickling() -> None:
    error = QueryRefusedError("TAILRACE_TOO_FEW_SLOTS", "too few.", "more.")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is QueryRefusedError
    assert str(again) == str(error)


def test_each_class_is_documented_and_each_code_has_one() -> None:
    codes: list[str] = []
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, TailraceError)
        assert kind.__doc__
        assert f"`{name}`" in (errors.__doc__ or "")
        codes += kind.__dict__.get("codes", ())
    assert len(codes) == len(set(codes))
