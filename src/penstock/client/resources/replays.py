"""The calls of the client about replays."""

from typing import Literal

from msgspec import to_builtins

from penstock.client.operation import call
from penstock.client.request import Request, get, post, put, said
from penstock.schema import operations as docs

StepState = Literal["pending", "going", "done", "failed", "blocked"]


class ReplayCalls:
    """What a server shows and does about replays: what was made from bad lots, made again."""

    @call
    def plan_replay(
        self, bad: docs.BadLots, *, at_once: int | None = None
    ) -> Request[docs.ReplayPlan]:
        """What a replay would do: its steps in order, and their cost by past durations."""
        return get(docs.ReplayPlan, "replays", "plan", **to_builtins(bad), atOnce=at_once)

    @call
    def start_replay(
        self, replay_id: str, bad: docs.BadLots, *, why: str, max_running: int | None = None
    ) -> Request[docs.Replay]:
        """Begin a replay under an id of your choice; the same again changes nothing."""
        body = said(why=why, maxRunning=max_running, **to_builtins(bad))
        return put(docs.Replay, "replays", replay_id, body=body)

    @call
    def replays(self, limit: int = 100) -> Request[docs.ReplayList]:
        """The last replays, newest first."""
        return get(docs.ReplayList, "replays", limit=limit)

    @call
    def replay(self, replay_id: str) -> Request[docs.Replay]:
        """How far a replay is."""
        return get(docs.Replay, "replays", replay_id)

    @call
    def replay_steps(
        self, replay_id: str, *, state: StepState | None = None, first: int = 1, limit: int = 100
    ) -> Request[docs.ReplaySteps]:
        """Steps of a replay in order, from a number on; those in a state, if it is named."""
        where = "replays", replay_id, "steps"
        return get(docs.ReplaySteps, *where, state=state, first=first, limit=limit)

    @call
    def pause_replay(self, replay_id: str, why: str) -> Request[docs.Replay]:
        """Set no more steps of a replay going."""
        return _move(replay_id, "pause", why)

    @call
    def resume_replay(self, replay_id: str, why: str) -> Request[docs.Replay]:
        """Let a replay that was paused go on."""
        return _move(replay_id, "resume", why)

    @call
    def cancel_replay(self, replay_id: str, why: str) -> Request[docs.Replay]:
        """Stop a replay for good; what was not begun stays as it was."""
        return _move(replay_id, "cancel", why)


def _move(replay_id: str, move: str, why: str) -> Request[docs.Replay]:
    where = "replays", replay_id, move
    return post(docs.Replay, *where, body=said(why=why), repeatable=True)
