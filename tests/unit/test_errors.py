from __future__ import annotations

import copy
import pickle

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException

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


def test_it_reads_as_an_error_of_spark() -> None:
    error: PySparkException = TailraceError("TAILRACE_BROKER_UNREACHABLE", "it is away.", "start it.")
    assert error.getCondition() == "TAILRACE_BROKER_UNREACHABLE"
    with pytest.warns(FutureWarning, match="getCondition"):
        assert error.getErrorClass() == "TAILRACE_BROKER_UNREACHABLE"
    assert error.getMessageParameters() == {"problem": "it is away.", "fix": "start it."}
    text = "[TAILRACE_BROKER_UNREACHABLE] it is away.\nFix: start it."
    assert str(error) == error.getMessage() == getattr(error, "_desc", None) == text
    assert repr(error) == "BrokerError('TAILRACE_BROKER_UNREACHABLE', 'it is away.', 'start it.')"
    assert error.getQueryContext() == []
    assert error.getSqlState() is None
    assert error.getBreakingChangeInfo() is None


@pytest.mark.parametrize("kind", [AnalysisException, IllegalArgumentException])
def test_a_refusal_is_caught_as_that_of_spark(kind: type[PySparkException]) -> None:
    with pytest.raises(kind) as refused:
        raise TailraceError("TAILRACE_UNSUPPORTED_SINK", problem="it cannot.", fix="use another.")
    assert type(refused.value) is QueryRefusedError
    assert refused.value.getSqlState() == "0A000"
    for again in (pickle.loads(pickle.dumps(refused.value)), copy.copy(refused.value)):
        assert type(again) is QueryRefusedError
        assert (again.code, again.problem, again.fix) == ("TAILRACE_UNSUPPORTED_SINK", "it cannot.", "use another.")
        assert repr(again) == repr(refused.value)


def test_each_class_is_documented_and_each_code_has_one() -> None:
    codes: list[str] = []
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, TailraceError)
        assert kind.__doc__
        assert f"`{name}`" in (errors.__doc__ or "")
        codes += kind.__dict__.get("codes", ())
    assert len(codes) == len(set(codes))
