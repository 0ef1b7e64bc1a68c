"""The chain of leases as the centre keeps it: retries, clones, roll-backs, terms."""

from landbridge.domain.ownership.leases_centre import (
    BeginGeneration,
    EnvironmentLease,
    Hello,
    LeaseAlarm,
    LeaseDecision,
    LeaseMessage,
    Link,
    LinkChanged,
    RaiseTerm,
    Reconciled,
    Regrant,
    Renew,
    Silent,
    claim_refusal,
    decide_lease,
)


class Centre:
    """One environment's row, told one message after the other."""

    def __init__(self) -> None:
        self.state = EnvironmentLease(environment="a")
        self.now = 0
        self.last = LeaseDecision(self.state)

    def tell(self, message: LeaseMessage) -> LeaseDecision:
        self.last = decide_lease(self.state, message, self.now)
        self.state = self.last.state
        return self.last

    def ask(self, message: LeaseMessage) -> tuple[int, int, str]:
        reply = self.tell(message).reply
        assert reply is not None
        return reply.term, reply.n, reply.refused

    def hello(self, incarnation: str = "one", term: int = 0, n: int = 1) -> tuple[int, int, str]:
        return self.ask(Hello(incarnation=incarnation, term=term, n=n))

    def alarms(self) -> list[str]:
        return [effect.kind for effect in self.last.effects if isinstance(effect, LeaseAlarm)]


def connected() -> Centre:
    centre = Centre()
    centre.hello()
    centre.tell(Reconciled("one", 1))
    return centre


def test_the_first_hello_wants_an_inventory_and_its_comparison_allows_starting() -> None:
    centre = Centre()
    assert centre.hello() == (1, 1, "")
    assert centre.last.reply is not None
    assert (centre.last.reply.may_start, centre.last.reply.want_inventory) == (False, True)
    assert claim_refusal(centre.state, "one", 1) == "reconciling"
    centre.tell(Reconciled("one", 1))

    assert centre.ask(Renew("one", 1, 2)) == (1, 2, "")
    assert centre.last.reply is not None
    assert centre.last.reply.may_start
    assert claim_refusal(centre.state, "one", 1) == ""


def test_asking_for_the_same_link_again_is_a_retry_and_counts_as_a_grant() -> None:
    centre = connected()
    first = centre.ask(Renew("one", 1, 2))
    grants = centre.state.grants

    assert centre.ask(Renew("one", 1, 2)) == first
    assert centre.state.grants == grants + 1


def test_what_a_dispatcher_comes_to_understand_is_told_with_its_next_link() -> None:
    centre = connected()
    before = (centre.state.held_term, centre.state.link)

    centre.ask(Renew("one", 1, 2, ("type.job", "operator.jobset")))
    assert centre.last.effects == (LinkChanged(Link.CONNECTED),)
    assert centre.state.features == ("type.job", "operator.jobset")
    centre.ask(Renew("one", 1, 3, ("type.job", "operator.jobset")))
    centre.ask(Renew("one", 1, 4))
    assert not centre.last.effects
    centre.ask(Renew("one", 1, 5, ("type.job",)))
    assert centre.last.effects == (LinkChanged(Link.CONNECTED),)
    centre.ask(Renew("one", 1, 5, ("type.job", "operator.jobset")))

    assert centre.state.features == ("type.job", "operator.jobset")
    assert before == (centre.state.held_term, centre.state.link), "nothing is compared anew for it"


def test_a_copy_that_skips_or_repeats_links_is_refused_with_an_alarm() -> None:
    centre = connected()
    for n in (2, 3, 4):
        centre.ask(Renew("one", 1, n))

    assert centre.ask(Renew("one", 1, 3))[2] == "say-hello"
    assert centre.alarms() == ["broken-chain"]
    assert centre.ask(Renew("one", 1, 9))[2] == "say-hello"


def test_a_second_dispatcher_displaces_the_first_which_may_not_come_back() -> None:
    centre = connected()
    centre.ask(Renew("one", 1, 2))
    assert centre.hello("two", 1, 3) == (2, 1, "")

    assert centre.ask(Renew("one", 1, 3))[2] == "displaced"
    assert centre.hello("one", 1, 3)[2] == "displaced"
    assert centre.alarms() == ["two-dispatchers"]
    assert claim_refusal(centre.state, "one", 2) == "displaced"


def test_every_hello_starts_a_new_term_so_that_old_grants_are_void() -> None:
    centre = connected()
    centre.hello("two", 1, 2)

    assert claim_refusal(centre.state, "two", 1) == "stale-term"
    assert centre.state.held_term == 2
    assert not centre.state.restored


def test_a_hello_whose_reply_was_lost_is_answered_again_even_after_a_restart() -> None:
    centre = connected()
    centre.ask(Renew("one", 1, 2))
    assert centre.hello("two", 1, 3) == (2, 1, "")
    assert centre.hello("two", 1, 3) == (2, 1, "")
    assert centre.hello("three", 1, 3) == (3, 1, "")

    assert not centre.state.restored


def test_an_environment_that_went_back_in_time_counts_as_restored_until_it_was_compared() -> None:
    centre = connected()
    for n in (2, 3, 4, 5):
        centre.ask(Renew("one", 1, n))
    centre.hello("two", 1, 3)
    assert centre.state.restored
    assert centre.alarms() == ["environment-restored"]
    centre.hello("three", 2, 2)
    assert centre.state.restored
    centre.tell(Reconciled("three", centre.state.held_term))

    assert not centre.state.restored


def test_a_term_beyond_what_the_centre_issued_betrays_a_restored_centre() -> None:
    centre = connected()

    assert centre.hello("two", 9, 4)[2] == "centre-behind"
    assert centre.alarms() == ["centre-behind"]
    assert centre.state.held_term == 1


def test_a_lost_environment_has_to_say_hello() -> None:
    centre = connected()
    centre.tell(Silent(centre.state.grants - 1))
    assert centre.state.link == "connected"
    centre.tell(Silent(centre.state.grants))

    assert [effect.link for effect in centre.last.effects if isinstance(effect, LinkChanged)] == ["lost"]
    assert centre.ask(Renew("one", 1, 2))[2] == "say-hello"


def test_a_raised_term_reaches_the_environment_with_its_next_renewal() -> None:
    centre = connected()
    centre.tell(RaiseTerm())
    assert claim_refusal(centre.state, "one", 1) == "stale-term"

    assert centre.ask(Renew("one", 1, 2)) == (2, 1, "")
    assert centre.last.effects == (Regrant(2),)
    assert centre.last.reply is not None
    assert centre.last.reply.may_start
    assert centre.ask(Renew("one", 1, 2)) == (2, 1, "")
    assert centre.ask(Renew("one", 2, 2)) == (2, 2, "")


def test_the_term_of_a_connected_environment_advances_by_itself() -> None:
    centre = connected()
    centre.now = 3_600_000

    assert centre.ask(Renew("one", 1, 2)) == (2, 1, "")


def test_a_new_generation_issues_terms_above_all_earlier_ones() -> None:
    centre = connected()
    centre.tell(BeginGeneration(2))
    assert centre.ask(Renew("one", 1, 2))[2] == "say-hello"

    assert centre.hello("one", 7, 31) == (1_000_001, 1, "")
    assert not centre.state.restored


def test_a_later_link_of_the_same_term_betrays_a_restored_centre_too() -> None:
    centre = connected()
    centre.ask(Renew("one", 1, 2))
    backup = centre.state
    for n in (3, 4, 5):
        centre.ask(Renew("one", 1, n))
    centre.state = backup
    assert centre.ask(Renew("one", 1, 6))[2] == "say-hello"
    assert centre.hello("one", 1, 6)[2] == "centre-behind"
    assert centre.alarms() == ["centre-behind"]
    assert not centre.state.restored
    assert centre.hello("two", 1, 6)[2] == "centre-behind"  # its dispatcher was started again meanwhile
    centre.tell(BeginGeneration(2))
    term, n, refused = centre.hello("two", 1, 6)
    assert (term > 1, n, refused) == (True, 1, "")
