# SPDX-License-Identifier: Apache-2.0
"""Slow, in real time: Codex as it is, without a word about limits anywhere. Its own is 300 s, the review takes longer."""
from driver_desk import *
from harness import *


def test_a_round_longer_than_the_limit():
    with DriverDesk(Codex, follow()) as desk:
        agent = desk.start()
        desk.git.running()
        begin = time.monotonic()
        desk.api.wait_for_rounds(1, 330)
        assert 260 < time.monotonic() - begin < 300, time.monotonic() - begin
        threading.Event().wait(max(0, begin + 310 - time.monotonic()))  # the round's own length
        desk.let_go()
        agent.end()
        flow = desk.rounds()[0][0]
        assert len(desk.rounds()) == 1 and all(flow in result for result in desk.api.results), (desk.rounds(), desk.api.results)
        assert STILL in desk.api.results[0] and "result_kind: clean" in desk.api.results[1], desk.api.results


if __name__ == "__main__":
    main(globals())
