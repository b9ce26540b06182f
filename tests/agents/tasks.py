"""Tasks made by hand, whose facts are what the simulated world says."""

from __future__ import annotations

from paraagent.catalog.store import Catalog
from paraagent.task import Atom, ReferenceCall, Slot, Task
from paraagent.toolenv.simulator import GroundedSimulator


def task_of(catalog: Catalog, name: str, seed: int, wants: list[tuple[str, str, dict[str, str], str]]) -> Task:
    """Independent calls, each (need, tool, arguments, path of the fact that is asked for)."""
    calls, atoms = [], []
    for number, (_, tool_name, arguments, path) in enumerate(wants):
        tool = catalog.get(tool_name)
        assert tool
        value = GroundedSimulator(seed).call(tool, arguments).result[path]
        calls.append(ReferenceCall(id=f"c{number}", tool=tool_name, arguments=arguments))
        atoms.append(Atom(call=f"c{number}", path=path, value=value))
    return Task(
        task_id=name,
        request="; ".join(f"{need} with {arguments} and tell me the {path}" for need, _, arguments, path in wants),
        shape="single" if len(wants) == 1 else "parallel",
        width=len(wants),
        reach="service",
        split="test",
        seed=seed,
        slots=tuple(Slot(text=need, tool=tool) for need, tool, _, _ in wants),
        calls=tuple(calls),
        atoms=tuple(atoms),
    )
