import pickle

import pytest

from impact_twin.errors import CheckFailedError, ImpactTwinError, InputError, StoppedError


def test_an_error_says_what_where_and_the_mend_in_one_line():
    err = InputError("trials must be at least 1", where="--trials", mend="Give 5 or more.")
    assert str(err) == "--trials: trials must be at least 1. Give 5 or more."
    assert str(InputError("no such pair")) == "no such pair"


@pytest.mark.parametrize(
    ("kind", "code"), [(InputError, 2), (CheckFailedError, 1), (StoppedError, 3)]
)
def test_each_kind_has_its_exit_code_and_survives_a_pipe(kind, code):
    err = pickle.loads(pickle.dumps(kind("a", where="b", mend="c")))
    assert isinstance(err, ImpactTwinError)
    assert (type(err), str(err), err.exit_code) == (kind, "b: a. c", code)
