"""Random observations of what environments do lately."""

from hypothesis import strategies as st

from landbridge.domain.backlog import Ahead, Backlog, Line, Step
from landbridge.domain.carbon import Reading
from landbridge.domain.preferences import Observed
from landbridge.domain.runs import Ran

RUN_KEYS = (
    "trainer@3 on 1 gpu-80gb",
    "trainer@3 on 2 gpu-40gb",
    "trainer@3 on 1 processors",
    "trainer@3 on 8 processors",
)


@st.composite
def _lines(draw: st.DrawFn) -> Line:
    steps = sorted(draw(st.lists(st.tuples(st.floats(1, 1e5), st.integers(0, 20_000)), max_size=3)))
    ahead = sorted(draw(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 16)), max_size=2)), reverse=True)
    return Line(
        (Step(0.0, draw(st.integers(0, 4))), *(Step(*step) for step in steps)),
        tuple(Ahead(*each, seconds=draw(st.none() | st.floats(1, 1e5))) for each in ahead),
    )


BACKLOGS = st.builds(
    Backlog,
    st.dictionaries(st.sampled_from(("running", "cpu", "gpu-80gb", "gpu-40gb")), _lines(), max_size=3),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 9),
)


@st.composite
def observations(draw: st.DrawFn) -> Observed:
    """What may have been seen of an environment's recent work."""
    ran = st.builds(Ran, st.floats(1, 1e5), st.integers(1, 20), st.just("2026-11-30 02Z"))
    return Observed(
        starts=draw(st.integers(0, 9)),
        start_delay_s=draw(st.floats(0, 60)),
        attempts=draw(st.integers(6, 30)),
        failures=draw(st.integers(0, 6)),
        runs=draw(st.dictionaries(st.sampled_from(RUN_KEYS), ran, max_size=2)),
        backlog=draw(st.none() | BACKLOGS),
        bandwidths=draw(st.dictionaries(st.sampled_from(("events", "models")), st.floats(1e6, 1e11), max_size=2)),
        carbon=draw(st.none() | st.builds(Reading, st.floats(0, 900), st.just("carbon source file"))),
    )
